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
static const char *read_term(onnx_node *node, const char *letters, int count, int most, char *out)
{
    int length = 0;

    for (; *letters && *letters != ',' && *letters != '-'; letters++) {
        if (*letters == ' ')
            continue;
        if (strncmp(letters, "...", 3) == 0) {
            for (int i = most - count; i < most && length < ONNX_MAX_RANK; i++)
                out[length++] = (char)(FIRST_ELLIPSIS + i);
            letters += 2;
        } else if (isalpha((unsigned char)*letters) && length < ONNX_MAX_RANK)
            out[length++] = *letters;
        else {
            onnx_wrong(node, "'%c' in equation '%s'", *letters, onnx_string(node, "equation", ""));
            return NULL;
        }
    }
    out[length] = '\0';
    return letters;
}

/* How many letters a term has, and whether an ellipsis. */
static int count_letters(const char *text, bool *ellipsis)
{
    int count = 0;

    *ellipsis = false;
    for (; *text && *text != ',' && *text != '-'; text++) {
        count += isalpha((unsigned char)*text) != 0;
        *ellipsis = *ellipsis || *text == '.';
    }
    return count;
}

/* Without an arrow the result has the ellipsis, then all letters that stand once, in alphabetical order. */
static void implicit_result(terms *self)
{
    int length = 0;

    for (int i = 0; i < self->ellipsis; i++)
        self->result[length++] = (char)(FIRST_ELLIPSIS + i);
    for (int letter = 'A'; letter <= 'z'; letter++) {
        int count = 0;

        for (int k = 0; k < self->n_operands; k++)
            for (const char *p = self->letters[k]; *p; p++)
                count += *p == letter;
        if (count == 1)
            self->result[length++] = (char)letter;
    }
    self->result[length] = '\0';
}

/* Reads the equation twice: once to learn how many dimensions "..." stands for, then to give each dimension a
 * letter. */
static bool read_terms(onnx_node *node, terms *self)
{
    const char *text = onnx_string(node, "equation", ""), *p = text;
    int dims[MOST_OPERANDS];

    *self = (terms){.n_operands = node->n_in};
    if (node->n_in > MOST_OPERANDS)
        return onnx_unsupported(node, "%d operands; expected at most %d", node->n_in, MOST_OPERANDS);
    for (int k = 0; k < node->n_in; k++) {
        bool ellipsis;
        int letters = count_letters(p, &ellipsis);

        dims[k] = ellipsis ? onnx_rank(node, k) - letters : 0;
        if (dims[k] < 0 || letters + dims[k] != onnx_rank(node, k))
            return onnx_wrong(node, "equation '%s' names %d dimensions of operand %d, which is %s", text,
                              letters, k, op_type_text(node->cx, &node->in[k]->type));
        self->ellipsis = dims[k] > self->ellipsis ? dims[k] : self->ellipsis;
        p += strcspn(p, ",-");
        if ((*p == ',') != (k < node->n_in - 1))
            return onnx_wrong(node, "equation '%s' does not describe %d operands", text, node->n_in);
        p += *p == ',';
    }
    p = text;
    for (int k = 0; k < node->n_in; k++) {
        p = read_term(node, p, dims[k], self->ellipsis, self->letters[k]);
        if (!p)
            return false;
        p += *p == ',';
    }
    if (!*p) {
        implicit_result(self);
        return true;
    }
    p = p[1] == '>' ? read_term(node, p + 2, self->ellipsis, self->ellipsis, self->result) : p;
    return p && (!*p || onnx_wrong(node, "'%c' in equation '%s'", *p, text));
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

/* Whether every letter is batch, left, right or summed over in both, and none occurs twice in an operand. */
static bool sort_letters(const terms *self, sorted *letters)
{
    const char *a = self->letters[0], *b = self->letters[1];

    *letters = (sorted){{0}, {0}, {0}, {0}};
    if (self->n_operands != 2 || self->ellipsis)
        return false;
    for (int k = 0; k < 2; k++)
        for (const char *p = self->letters[k]; *p; p++)
            if (strchr(p + 1, *p))
                return false;
    for (const char *p = a; *p; p++) {
        bool in_b = strchr(b, *p), in_result = strchr(self->result, *p);

        if (!in_b && !in_result)
            return false;
        append(in_b ? in_result ? letters->batch : letters->sum : letters->left, *p);
    }
    for (const char *p = b; *p; p++) {
        if (strchr(a, *p))
            continue;
        if (!strchr(self->result, *p))
            return false;
        append(letters->right, *p);
    }
    return *letters->sum && (*letters->left || *letters->right);
}

static const ir_expr *extent_of(const graph_value *value, const char *letters, char letter)
{
    return value->type.dim[strchr(letters, letter) - letters];
}

/* The product of the extents of the letters of `list`: what a matrix product sees as one dimension. */
static const ir_expr *extents_of(onnx_node *node, const graph_value *value, const char *letters,
                                 const char *list)
{
    const ir_expr *e = ir_int(node->cx, 1);

    for (; *list; list++)
        e = ir_mul(node->cx, e, extent_of(value, letters, *list));
    return e;
}

/* The operand's dimensions in the order of three lists, each of the last two as one. */
static graph_value *arranged(onnx_node *node, graph_value *value, const char *letters, const char *batch,
                             const char *rows, const char *columns)
{
    const char *lists[3] = {batch, rows, columns};
    const ir_expr *dim[ONNX_MAX_RANK + 2];
    int64_t perm[ONNX_MAX_RANK];
    int count = 0;

    for (int l = 0; l < 3; l++)
        for (const char *p = lists[l]; *p; p++)
            perm[count++] = strchr(letters, *p) - letters;
    graph_value *turned = onnx_transpose(node, value, perm);
    count = 0;
    for (const char *p = batch; *p; p++)
        dim[count++] = extent_of(value, letters, *p);
    dim[count++] = extents_of(node, value, letters, rows);
    dim[count++] = extents_of(node, value, letters, columns);
    return turned ? onnx_reshape(node, turned, dim, count) : NULL;
}

/* Both operands are transposed and reshaped to [batch, left, sum] and [batch, sum, right]; the product is
 * shaped back and put into the order of the result. */
static graph_value *as_product(onnx_node *node, const terms *self, const sorted *letters)
{
    const char *a = self->letters[0], *b = self->letters[1],
               *lists[3] = {letters->batch, letters->left, letters->right};
    graph_value *y =
        onnx_matmul(node, arranged(node, node->in[0], a, letters->batch, letters->left, letters->sum),
                    arranged(node, node->in[1], b, letters->batch, letters->sum, letters->right), false);
    char order[3 * ONNX_MAX_RANK + 1] = "";
    const ir_expr *dim[ONNX_MAX_RANK];
    int64_t perm[ONNX_MAX_RANK];
    int count = 0;

    for (int l = 0; l < 3; l++)
        for (const char *p = lists[l]; *p && count < ONNX_MAX_RANK; p++) {
            append(order, *p);
            dim[count++] = l < 2 ? extent_of(node->in[0], a, *p) : extent_of(node->in[1], b, *p);
        }
    for (int i = 0; i < count; i++)
        perm[i] = strchr(order, self->result[i]) - order;
    y = y ? onnx_reshape(node, y, dim, count) : NULL;
    return onnx_transpose(node, y, perm);
}

/* Extents of 1 meet others in an Einsum, which a matrix product would refuse. */
static bool has_equal_extents(const onnx_node *node, const terms *self, const sorted *letters)
{
    const char *lists[2] = {letters->batch, letters->sum};

    for (int l = 0; l < 2; l++)
        for (const char *p = lists[l]; *p; p++) {
            const ir_expr *a = extent_of(node->in[0], self->letters[0], *p),
                          *b = extent_of(node->in[1], self->letters[1], *p);

            if (ir_is_value(a, 1) != ir_is_value(b, 1))
                return false;
        }
    return strlen(self->result) == strlen(letters->batch) + strlen(letters->left) + strlen(letters->right) &&
           strlen(self->result) <= ONNX_MAX_RANK;
}

/* Two operands without repeated letters are a matrix product, which is fast; everything else goes to the
 * operator `einsum`. */
static bool convert_einsum(onnx_node *node)
{
    base_text text = {0};
    terms t;
    sorted s;

    if (!read_terms(node, &t))
        return false;
    for (const char *p = t.result; *p; p++)
        if (strchr(p + 1, *p))
            return onnx_wrong(node, "dimension '%c' of the result is named twice", *p);
    if (strlen(t.result) > ONNX_MAX_RANK)
        return onnx_unsupported(node, "%zu dimensions; expected at most %d", strlen(t.result), ONNX_MAX_RANK);
    if (sort_letters(&t, &s) && has_equal_extents(node, &t, &s))
        return onnx_set(node, 0, as_product(node, &t, &s));
    for (int k = 0; k < t.n_operands; k++)
        base_addf(node->cx, &text, "%s%s", k ? "," : "", t.letters[k]);
    base_addf(node->cx, &text, "->%s", t.result);
    /* Dimensions of an ellipsis are named by digits in the operator's text. */
    char *equation = base_strdup(node->cx, base_text_str(node->cx, &text));
    for (char *p = equation; *p; p++)
        if (*p < FIRST_ELLIPSIS + ONNX_MAX_RANK)
            *p = (char)('0' + *p);
    op_attr attr = op_attr_string("equation", equation);
    return onnx_emit(node, "einsum", &attr, 1);
}

static const onnx_row rows[] = {{"Einsum", convert_einsum, 12, 0, "1-*>1 !equation:s", NULL}};
const onnx_rows onnx_einsum_rows = {rows, BASE_COUNT(rows)};
