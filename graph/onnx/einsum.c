/* graph/onnx/einsum.c -- ONNX's Einsum: spaces and "..." resolved; a plain product of two operands becomes a
 * matrix product.
 *
 *     "...ij, ...jk"   on ranks 4 and 3      =>   "ABij,Bjk->ABik"
 *     "bhqd,bhkd->bhqk"                      =>   matmul([b, h, q, d], [b, h, k, d] transposed)
 */
#include <ctype.h>
#include <string.h>

#include "graph/onnx/compose.h"

enum { MOST_OPERANDS = 32, FIRST_ELLIPSIS = 1 }; /* ellipsis dimensions get letters that no text has */

typedef struct {
    char letters[MOST_OPERANDS][2 * ONNX_MAX_RANK], result[4 * ONNX_MAX_RANK];
    int n_operands, ellipsis; /* the most dimensions that "..." stands for */
} terms;

/* One term: letters, and "..." for `count` dimensions, the last of the ellipsis. NULL with an error;
 * otherwise behind the term. */
static const char *read_term(onnx_node *n, const char *p, int count, int most, char *out)
{
    int length = 0;

    for (; *p && *p != ',' && *p != '-'; p++) {
        if (*p == ' ')
            continue;
        if (strncmp(p, "...", 3) == 0) {
            for (int i = most - count; i < most && length < ONNX_MAX_RANK; i++)
                out[length++] = (char)(FIRST_ELLIPSIS + i);
            p += 2;
        } else if (isalpha((unsigned char)*p) && length < ONNX_MAX_RANK)
            out[length++] = *p;
        else {
            onnx_wrong(n, "'%c' in equation '%s'", *p, onnx_string(n, "equation", ""));
            return NULL;
        }
    }
    out[length] = '\0';
    return p;
}

/* How many letters a term has, and whether an ellipsis. */
static int count_letters(const char *p, bool *ellipsis)
{
    int count = 0;

    *ellipsis = false;
    for (; *p && *p != ',' && *p != '-'; p++) {
        count += isalpha((unsigned char)*p) != 0;
        *ellipsis = *ellipsis || *p == '.';
    }
    return count;
}

/* Without an arrow the result has the ellipsis, then all letters that stand once, in alphabetical order. */
static void implicit_result(terms *t)
{
    int length = 0;

    for (int i = 0; i < t->ellipsis; i++)
        t->result[length++] = (char)(FIRST_ELLIPSIS + i);
    for (int letter = 'A'; letter <= 'z'; letter++) {
        int count = 0;

        for (int k = 0; k < t->n_operands; k++)
            for (const char *p = t->letters[k]; *p; p++)
                count += *p == letter;
        if (count == 1)
            t->result[length++] = (char)letter;
    }
    t->result[length] = '\0';
}

/* Reads the equation twice: once to learn how many dimensions "..." stands for, then to give each dimension a
 * letter. */
static bool read_terms(onnx_node *n, terms *t)
{
    const char *text = onnx_string(n, "equation", ""), *p = text;
    int dims[MOST_OPERANDS];

    *t = (terms){.n_operands = n->n_in};
    if (n->n_in > MOST_OPERANDS)
        return onnx_unsupported(n, "%d operands; at most %d", n->n_in, MOST_OPERANDS);
    for (int k = 0; k < n->n_in; k++) {
        bool ellipsis;
        int letters = count_letters(p, &ellipsis);

        dims[k] = ellipsis ? onnx_rank(n, k) - letters : 0;
        if (dims[k] < 0 || letters + dims[k] != onnx_rank(n, k))
            return onnx_wrong(n, "equation '%s' names %d dimensions of operand %d, which is %s", text,
                              letters, k, op_type_text(n->cx, &n->in[k]->type));
        t->ellipsis = dims[k] > t->ellipsis ? dims[k] : t->ellipsis;
        p += strcspn(p, ",-");
        if ((*p == ',') != (k < n->n_in - 1))
            return onnx_wrong(n, "equation '%s' is not of %d operands", text, n->n_in);
        p += *p == ',';
    }
    p = text;
    for (int k = 0; k < n->n_in; k++) {
        p = read_term(n, p, dims[k], t->ellipsis, t->letters[k]);
        if (!p)
            return false;
        p += *p == ',';
    }
    if (!*p) {
        implicit_result(t);
        return true;
    }
    p = p[1] == '>' ? read_term(n, p + 2, t->ellipsis, t->ellipsis, t->result) : p;
    return p && (!*p || onnx_wrong(n, "'%c' in equation '%s'", *p, text));
}

/* ---- two operands ---- */

/* Letters of one kind, in the order of the result or of the first operand. */
typedef struct {
    char batch[ONNX_MAX_RANK + 1], left[ONNX_MAX_RANK + 1], right[ONNX_MAX_RANK + 1], sum[ONNX_MAX_RANK + 1];
} sorted;

static void append(char *list, char letter)
{
    size_t length = strlen(list);

    list[length] = letter;
    list[length + 1] = '\0';
}

/* Whether every letter is batch, left, right or summed over in both, and none stands twice in an operand. */
static bool sort_letters(const terms *t, sorted *s)
{
    const char *a = t->letters[0], *b = t->letters[1];

    *s = (sorted){{0}, {0}, {0}, {0}};
    if (t->n_operands != 2 || t->ellipsis)
        return false;
    for (int k = 0; k < 2; k++)
        for (const char *p = t->letters[k]; *p; p++)
            if (strchr(p + 1, *p))
                return false;
    for (const char *p = a; *p; p++) {
        bool in_b = strchr(b, *p), in_result = strchr(t->result, *p);

        if (!in_b && !in_result)
            return false;
        append(in_b ? in_result ? s->batch : s->sum : s->left, *p);
    }
    for (const char *p = b; *p; p++) {
        if (strchr(a, *p))
            continue;
        if (!strchr(t->result, *p))
            return false;
        append(s->right, *p);
    }
    return *s->sum && (*s->left || *s->right);
}

static const ir_expr *extent_of(const graph_value *v, const char *letters, char letter)
{
    return v->type.dim[strchr(letters, letter) - letters];
}

static const ir_expr *extents_of(onnx_node *n, const graph_value *v, const char *letters, const char *list)
{
    const ir_expr *e = ir_int(n->cx, 1);

    for (; *list; list++)
        e = ir_mul(n->cx, e, extent_of(v, letters, *list));
    return e;
}

/* The operand's dimensions in the order of three lists, each of the last two as one. */
static graph_value *arranged(onnx_node *n, graph_value *v, const char *letters, const char *batch,
                             const char *rows, const char *columns)
{
    const char *lists[3] = {batch, rows, columns};
    const ir_expr *dim[ONNX_MAX_RANK + 2];
    int64_t perm[ONNX_MAX_RANK];
    int count = 0;

    for (int l = 0; l < 3; l++)
        for (const char *p = lists[l]; *p; p++)
            perm[count++] = strchr(letters, *p) - letters;
    graph_value *turned = onnx_transpose(n, v, perm);
    count = 0;
    for (const char *p = batch; *p; p++)
        dim[count++] = extent_of(v, letters, *p);
    dim[count++] = extents_of(n, v, letters, rows);
    dim[count++] = extents_of(n, v, letters, columns);
    return turned ? onnx_reshape(n, turned, dim, count) : NULL;
}

/* Both operands are transposed and reshaped to [batch, left, sum] and [batch, sum, right]; the product is
 * shaped back and put into the order of the result. */
static graph_value *as_product(onnx_node *n, const terms *t, const sorted *s)
{
    const char *a = t->letters[0], *b = t->letters[1], *lists[3] = {s->batch, s->left, s->right};
    graph_value *y = onnx_matmul(n, arranged(n, n->in[0], a, s->batch, s->left, s->sum),
                                 arranged(n, n->in[1], b, s->batch, s->sum, s->right), false);
    char order[3 * ONNX_MAX_RANK + 1] = "";
    const ir_expr *dim[ONNX_MAX_RANK];
    int64_t perm[ONNX_MAX_RANK];
    int count = 0;

    for (int l = 0; l < 3; l++)
        for (const char *p = lists[l]; *p && count < ONNX_MAX_RANK; p++) {
            append(order, *p);
            dim[count++] = l < 2 ? extent_of(n->in[0], a, *p) : extent_of(n->in[1], b, *p);
        }
    for (int i = 0; i < count; i++)
        perm[i] = strchr(order, t->result[i]) - order;
    y = y ? onnx_reshape(n, y, dim, count) : NULL;
    return onnx_transpose(n, y, perm);
}

/* Extents of 1 meet others in an Einsum, which a matrix product would refuse. */
static bool has_equal_extents(const onnx_node *n, const terms *t, const sorted *s)
{
    const char *lists[2] = {s->batch, s->sum};

    for (int l = 0; l < 2; l++)
        for (const char *p = lists[l]; *p; p++) {
            const ir_expr *a = extent_of(n->in[0], t->letters[0], *p),
                          *b = extent_of(n->in[1], t->letters[1], *p);

            if (ir_is_value(a, 1) != ir_is_value(b, 1))
                return false;
        }
    return strlen(t->result) == strlen(s->batch) + strlen(s->left) + strlen(s->right) &&
           strlen(t->result) <= ONNX_MAX_RANK;
}

/* Two operands without repeated letters are a matrix product, which is fast; everything else goes to the
 * operator `einsum`. */
static bool convert_einsum(onnx_node *n)
{
    base_text text = {0};
    terms t;
    sorted s;

    if (!read_terms(n, &t))
        return false;
    for (const char *p = t.result; *p; p++)
        if (strchr(p + 1, *p))
            return onnx_wrong(n, "dimension '%c' of the result is named twice", *p);
    if (strlen(t.result) > ONNX_MAX_RANK)
        return onnx_unsupported(n, "%zu dimensions; at most %d", strlen(t.result), ONNX_MAX_RANK);
    if (sort_letters(&t, &s) && has_equal_extents(n, &t, &s))
        return onnx_set(n, 0, as_product(n, &t, &s));
    for (int k = 0; k < t.n_operands; k++)
        base_addf(n->cx, &text, "%s%s", k ? "," : "", t.letters[k]);
    base_addf(n->cx, &text, "->%s", t.result);
    /* Dimensions of an ellipsis are named by digits in the operator's text. */
    char *equation = base_strdup(n->cx, base_text_str(n->cx, &text));
    for (char *p = equation; *p; p++)
        if (*p < FIRST_ELLIPSIS + ONNX_MAX_RANK)
            *p = (char)('0' + *p);
    op_attr attr = op_attr_string("equation", equation);
    return onnx_emit(n, "einsum", &attr, 1);
}

static const onnx_row rows[] = {{"Einsum", convert_einsum, 12, 0, "1-*>1 !equation:s", NULL}};
const onnx_rows onnx_einsum_rows = {rows, BASE_COUNT(rows)};
