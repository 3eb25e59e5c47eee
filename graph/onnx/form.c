/* graph/onnx/form.c -- whether a node has the operands, results and attributes that its operator has in ONNX.
 *
 * The row of an operator says so in a line, its form:
 *
 *     1-3>1 axis:i !kernel_shape:I mode:s(DCR|CRD)@11 broadcast:i<7
 *
 *     operands > results  a number or a range; `*` is any number
 *     name:type           an attribute: i int, f float, s string, t tensor, g graph; I, F, S: lists of those
 *     !name:type          it must be there
 *     (A|B)               of a string: the values that it may have
 *     @11, <7             it exists since opset 11, until opset 6
 *
 * So conversions find what the form promises: operands that must be there are, and attributes have their
 * type.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/import.h"

enum { MOST_ATTRIBUTES = 64 };

/* ---- operands and results ---- */

/* "2", "1-3" or "0-*", where -1 stands for any number. */
static const char *read_range(const char *p, int *least, int *most)
{
    char *end;

    *least = *most = (int)strtol(p, &end, 10);
    if (*end != '-')
        return end;
    p = end + 1;
    if (*p == '*') {
        *most = -1;
        return p + 1;
    }
    *most = (int)strtol(p, &end, 10);
    return end;
}

static const char *range_text(tec_context *cx, int least, int most)
{
    if (most < 0)
        return base_format(cx, "at least %d", least);
    return least == most ? base_format(cx, "%d", least) : base_format(cx, "%d to %d", least, most);
}

static bool check_operands(onnx_node *n, int least, int most)
{
    if (most >= 0 && n->n_in > most)
        return onnx_wrong(n, "%d operands, expected %s", n->n_in, range_text(n->cx, least, most));
    for (int k = 0; k < (most < 0 && n->n_in > least ? n->n_in : least); k++)
        if (k >= n->n_in || !*n->proto->input[k])
            return onnx_wrong(n, "operand %d is missing", k);
    return true;
}

static bool check_results(onnx_node *n, int least, int most)
{
    int named = 0;

    for (int k = 0; k < n->n_out; k++)
        named += *n->proto->output[k] != '\0';
    if (n->n_out < least || (most >= 0 && n->n_out > most))
        return onnx_wrong(n, "%d results, expected %s", n->n_out, range_text(n->cx, least, most));
    return named > 0 || onnx_wrong(n, "none of its results has a name");
}

/* ---- attributes ---- */

/* One attribute of a form; name NULL: there is none left. */
typedef struct {
    const char *name, *values; /* not terminated */
    int length, values_length;
    char type;
    bool required;
    int since, until;
} field;

/* One attribute of the form; f->name is NULL at its end. */
static const char *read_field(const char *p, field *f)
{
    *f = (field){.since = 1};
    while (*p == ' ')
        p++;
    if (!*p)
        return p;
    f->required = *p == '!';
    f->name = p + f->required;
    p = strchr(p, ':');
    f->length = (int)(p - f->name);
    f->type = p[1];
    for (p += 2; *p && *p != ' ';) {
        char *end = NULL;

        if (*p == '(') {
            f->values = p + 1;
            p = strchr(p, ')');
            f->values_length = (int)(p - f->values);
            end = (char *)p + 1;
        } else if (*p == '@')
            f->since = (int)strtol(p + 1, &end, 10);
        else
            f->until = (int)strtol(p + 1, &end, 10) - 1;
        p = end;
    }
    return p;
}

static bool exists(const field *f, int64_t opset)
{
    return opset >= f->since && (f->until == 0 || opset <= f->until);
}

static bool is_named(const field *f, const char *name)
{
    return strlen(name) == (size_t)f->length && strncmp(f->name, name, (size_t)f->length) == 0;
}

static const struct {
    char letter;
    int32_t type; /* AttributeProto.AttributeType */
    const char *name;
} types[] = {
    {'f', 1, "a float"},          {'i', 2, "an int"},
    {'s', 3, "a string"},         {'t', 4, "a tensor"},
    {'g', 5, "a graph"},          {'F', 6, "a list of floats"},
    {'I', 7, "a list of ints"},   {'S', 8, "a list of strings"},
    {'p', 11, "a sparse tensor"},
};

static const char *type_name(char letter)
{
    for (int i = 0; i < BASE_COUNT(types); i++)
        if (types[i].letter == letter)
            return types[i].name;
    return "of another type";
}

/* What the attribute holds: by its `type`, or in files from before that field by the value that is there;
 * '?': something else. */
static char held(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type != 0) {
        for (int i = 0; i < BASE_COUNT(types); i++)
            if (types[i].type == a->type)
                return types[i].letter;
        return '?';
    }
    if (a->has_i || a->has_f || a->has_s)
        return a->has_i ? 'i' : a->has_f ? 'f' : 's';
    if (a->t || a->g || a->sparse_tensor)
        return a->t ? 't' : a->g ? 'g' : 'p';
    return a->n_ints ? 'I' : a->n_floats ? 'F' : a->n_strings ? 'S' : '\0';
}

static bool is_among(const field *f, const char *value, size_t n)
{
    for (const char *p = f->values; p < f->values + f->values_length;) {
        size_t length = strcspn(p, "|)");

        if (length == n && (n == 0 || strncmp(p, value, n) == 0))
            return true;
        p += length + 1;
    }
    return false;
}

/* The attribute has the type and, if it is a string, one of the values that the form lists. */
static bool check_attribute(onnx_node *n, const field *f, const Onnx__AttributeProto *a)
{
    char is = held(a);

    if (a->ref_attr_name && *a->ref_attr_name)
        return onnx_wrong(n, "attribute '%s' refers to an attribute of a function, but this node is in none",
                          a->name);
    if (is == '\0' ? f->type < 'A' || f->type > 'Z' : is != f->type)
        return onnx_wrong(n, "attribute '%s' is %s, expected %s", a->name, is ? type_name(is) : "empty",
                          type_name(f->type));
    if ((f->type == 't' && !a->t) || (f->type == 'g' && !a->g))
        return onnx_wrong(n, "attribute '%s' is empty, expected %s", a->name, type_name(f->type));
    if (f->values && !is_among(f, (const char *)a->s.data, a->s.len))
        return onnx_wrong(n, "attribute '%s' is '%s', expected one of %s", a->name,
                          onnx_string(n, a->name, ""),
                          base_strndup(n->cx, f->values, (size_t)f->values_length));
    return true;
}

/* Until opset 5 an operator might say which operands it overwrites. Names that begin with two underscores are
 * private to the exporter. */
static bool is_ignored(const onnx_node *n, const char *name)
{
    return strncmp(name, "__", 2) == 0 || (n->opset < 6 && base_same(name, "consumed_inputs"));
}

static bool is_known(onnx_node *n, const char *form, const Onnx__AttributeProto *a)
{
    field f;

    for (const char *p = read_field(form, &f); f.name; p = read_field(p, &f))
        if (is_named(&f, a->name) && exists(&f, n->opset))
            return check_attribute(n, &f, a);
    return is_ignored(n, a->name) ||
           onnx_wrong(n, "there is no attribute '%s' in opset %lld", a->name, (long long)n->opset);
}

/* Attributes that are there must be known in this opset, and required ones must be there. */
static bool check_attributes(onnx_node *n, const char *form)
{
    const Onnx__NodeProto *p = n->proto;
    field f;

    if (p->n_attribute > MOST_ATTRIBUTES)
        return onnx_wrong(n, "%zu attributes; no operator has more than %d", p->n_attribute, MOST_ATTRIBUTES);
    for (size_t i = 0; i < p->n_attribute; i++) {
        if (!p->attribute[i]->name)
            return onnx_wrong(n, "an attribute has no name");
        for (size_t j = 0; j < i; j++)
            if (base_same(p->attribute[i]->name, p->attribute[j]->name))
                return onnx_wrong(n, "there are two attributes '%s'", p->attribute[i]->name);
        if (!is_known(n, form, p->attribute[i]))
            return false;
    }
    for (const char *q = read_field(form, &f); f.name; q = read_field(q, &f))
        if (f.required && exists(&f, n->opset) &&
            !onnx_attr(n, base_strndup(n->cx, f.name, (size_t)f.length)))
            return onnx_wrong(n, "attribute '%.*s' is missing", f.length, f.name);
    return true;
}

bool onnx_check_form(onnx_node *n, const char *form)
{
    int least_in, most_in, least_out, most_out;
    const char *p = read_range(form, &least_in, &most_in);

    p = read_range(p + 1, &least_out, &most_out);
    return check_operands(n, least_in, most_in) && check_results(n, least_out, most_out) &&
           check_attributes(n, p);
}
