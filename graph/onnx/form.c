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
static const char *read_range(const char *text, int *least, int *most)
{
    char *end;

    *least = *most = (int)strtol(text, &end, 10);
    if (*end != '-')
        return end;
    text = end + 1;
    if (*text == '*') {
        *most = -1;
        return text + 1;
    }
    *most = (int)strtol(text, &end, 10);
    return end;
}

static const char *range_text(tec_context *cx, int least, int most)
{
    if (most < 0)
        return base_format(cx, "at least %d", least);
    return least == most ? base_format(cx, "%d", least) : base_format(cx, "%d to %d", least, most);
}

/* An operand is missing where the list is too short or its name is empty; most < 0: any number, all of them
 * given. */
static bool check_operands(onnx_node *node, int least, int most)
{
    if (most >= 0 && node->n_in > most)
        return onnx_wrong(node, "%d operands, expected %s", node->n_in, range_text(node->cx, least, most));
    for (int k = 0; k < (most < 0 && node->n_in > least ? node->n_in : least); k++)
        if (k >= node->n_in || !*node->proto->input[k])
            return onnx_wrong(node, "operand %d is missing", k);
    return true;
}

/* Results without a name are not used by anybody; a node that has none at all is a mistake of the model. */
static bool check_results(onnx_node *node, int least, int most)
{
    int named = 0;

    for (int k = 0; k < node->n_out; k++)
        named += *node->proto->output[k] != '\0';
    if (node->n_out < least || (most >= 0 && node->n_out > most))
        return onnx_wrong(node, "%d results, expected %s", node->n_out, range_text(node->cx, least, most));
    return named > 0 || onnx_wrong(node, "none of its results has a name");
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

/* One attribute of the form; self->name is NULL at its end. */
static const char *read_field(const char *text, field *self)
{
    *self = (field){.since = 1};
    while (*text == ' ')
        text++;
    if (!*text)
        return text;
    self->required = *text == '!';
    self->name = text + self->required;
    text = strchr(text, ':');
    self->length = (int)(text - self->name);
    self->type = text[1];
    for (text += 2; *text && *text != ' ';) {
        char *end = NULL;

        if (*text == '(') {
            self->values = text + 1;
            text = strchr(text, ')');
            self->values_length = (int)(text - self->values);
            end = (char *)text + 1;
        } else if (*text == '@')
            self->since = (int)strtol(text + 1, &end, 10);
        else
            self->until = (int)strtol(text + 1, &end, 10) - 1;
        text = end;
    }
    return text;
}

static bool exists(const field *self, int64_t opset)
{
    return opset >= self->since && (self->until == 0 || opset <= self->until);
}

static bool is_named(const field *self, const char *name)
{
    return strlen(name) == (size_t)self->length && strncmp(self->name, name, (size_t)self->length) == 0;
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
static char held(const Onnx__AttributeProto *AttributeProto)
{
    if (AttributeProto->has_type && AttributeProto->type != 0) {
        for (int i = 0; i < BASE_COUNT(types); i++)
            if (types[i].type == AttributeProto->type)
                return types[i].letter;
        return '?';
    }
    if (AttributeProto->has_i || AttributeProto->has_f || AttributeProto->has_s)
        return AttributeProto->has_i ? 'i' : AttributeProto->has_f ? 'f' : 's';
    if (AttributeProto->t || AttributeProto->g || AttributeProto->sparse_tensor)
        return AttributeProto->t ? 't' : AttributeProto->g ? 'g' : 'p';
    return AttributeProto->n_ints      ? 'I'
           : AttributeProto->n_floats  ? 'F'
           : AttributeProto->n_strings ? 'S'
                                       : '\0';
}

/* `values` is the list of a form, as in "(none|add|mul)". */
static bool is_among(const field *self, const char *value, size_t size)
{
    for (const char *p = self->values; p < self->values + self->values_length;) {
        size_t length = strcspn(p, "|)");

        if (length == size && (size == 0 || strncmp(p, value, size) == 0))
            return true;
        p += length + 1;
    }
    return false;
}

/* The attribute has the type and, if it is a string, one of the values that the form lists. */
static bool check_attribute(onnx_node *node, const field *self, const Onnx__AttributeProto *AttributeProto)
{
    char is = held(AttributeProto);

    if (AttributeProto->ref_attr_name && *AttributeProto->ref_attr_name)
        return onnx_wrong(
            node, "attribute '%s' refers to an attribute of a function, but this node is not in a function",
            AttributeProto->name);
    if (is == '\0' ? self->type < 'A' || self->type > 'Z' : is != self->type)
        return onnx_wrong(node, "attribute '%s' is %s, expected %s", AttributeProto->name,
                          is ? type_name(is) : "empty", type_name(self->type));
    if ((self->type == 't' && !AttributeProto->t) || (self->type == 'g' && !AttributeProto->g))
        return onnx_wrong(node, "attribute '%s' is empty, expected %s", AttributeProto->name,
                          type_name(self->type));
    if (self->values && !is_among(self, (const char *)AttributeProto->s.data, AttributeProto->s.len))
        return onnx_wrong(node, "attribute '%s' is '%s', expected one of %s", AttributeProto->name,
                          onnx_string(node, AttributeProto->name, ""),
                          base_strndup(node->cx, self->values, (size_t)self->values_length));
    return true;
}

/* Until opset 5 an operator might say which operands it overwrites. Names that begin with two underscores are
 * private to the exporter. */
static bool is_ignored(const onnx_node *node, const char *name)
{
    return strncmp(name, "__", 2) == 0 || (node->opset < 6 && base_same(name, "consumed_inputs"));
}

/* Attributes come and go with opsets: one of another opset counts as unknown. */
static bool is_known(onnx_node *node, const char *form, const Onnx__AttributeProto *AttributeProto)
{
    field f;

    for (const char *p = read_field(form, &f); f.name; p = read_field(p, &f))
        if (is_named(&f, AttributeProto->name) && exists(&f, node->opset))
            return check_attribute(node, &f, AttributeProto);
    return is_ignored(node, AttributeProto->name) ||
           onnx_wrong(node, "there is no attribute '%s' in opset %lld", AttributeProto->name,
                      (long long)node->opset);
}

/* Attributes that are there must be known in this opset, and required ones must be there. */
static bool check_attributes(onnx_node *node, const char *form)
{
    const Onnx__NodeProto *p = node->proto;
    field f;

    if (p->n_attribute > MOST_ATTRIBUTES)
        return onnx_wrong(node, "expected at most %d attributes, found %zu", MOST_ATTRIBUTES, p->n_attribute);
    for (size_t i = 0; i < p->n_attribute; i++) {
        if (!p->attribute[i]->name)
            return onnx_wrong(node, "an attribute has no name");
        for (size_t j = 0; j < i; j++)
            if (base_same(p->attribute[i]->name, p->attribute[j]->name))
                return onnx_wrong(node, "there are two attributes '%s'", p->attribute[i]->name);
        if (!is_known(node, form, p->attribute[i]))
            return false;
    }
    for (const char *q = read_field(form, &f); f.name; q = read_field(q, &f))
        if (f.required && exists(&f, node->opset) &&
            !onnx_attr(node, base_strndup(node->cx, f.name, (size_t)f.length)))
            return onnx_wrong(node, "attribute '%.*s' is missing", f.length, f.name);
    return true;
}

/* The form is read anew for each node; it is a short text beside the operator's row (graph/onnx/node.c). */
bool onnx_check_form(onnx_node *node, const char *form)
{
    int least_in, most_in, least_out, most_out;
    const char *p = read_range(form, &least_in, &most_in);

    p = read_range(p + 1, &least_out, &most_out);
    return check_operands(node, least_in, most_in) && check_results(node, least_out, most_out) &&
           check_attributes(node, p);
}
