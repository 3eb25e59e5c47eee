/* ops/einsum.c -- sums of products with named dimensions: "bij,bjk->bik".
 *
 * A letter is a dimension. One that the result does not have is summed over; one that an operand has twice is
 * its diagonal.
 */
#include <string.h>

#include "ops/families.h"
#include "ops/op.h"

enum { LETTERS = 128 };

/* What the equation says, letter by letter. */
typedef struct {
    const char *result;           /* letters of the result */
    const char *letters[LETTERS]; /* of each operand */
    const ir_expr *extent[LETTERS];
    int operand[LETTERS], at[LETTERS]; /* where the extent comes from */
} equation;

/* Splits the equation at commas and the arrow; false with an error where it does not fit the operands. */
static bool read_equation(const op_call *call, equation *self)
{
    const char *text = op_string(call, "equation", ""), *arrow = strstr(text, "->");
    char *copy = arrow ? base_strndup(call->cx, text, (size_t)(arrow - text)) : NULL;

    *self = (equation){.result = arrow ? arrow + 2 : NULL};
    for (int k = 0; arrow && k < call->n_inputs && k < LETTERS; k++) {
        char *end = copy ? strchr(copy, ',') : NULL;

        if (!copy || (k == call->n_inputs - 1) != !end)
            return op_fail(call, "equation '%s' does not describe %d operands", text, call->n_inputs);
        if (end)
            *end = '\0';
        self->letters[k] = copy;
        copy = end ? end + 1 : NULL;
        if ((int)strlen(self->letters[k]) != call->input[k].n)
            return op_fail(call, "'%s' does not name the dimensions of operand %d, which is %s",
                           self->letters[k], k, op_type_text(call->cx, &call->input[k]));
    }
    return (arrow && call->n_inputs <= LETTERS) || op_fail(call, "equation '%s' has no '->'", text);
}

/* The extent of each letter; a dimension of 1 gives way to another extent. */
static bool read_extents(const op_call *call, equation *self)
{
    for (int k = 0; k < call->n_inputs; k++)
        for (int i = 0; i < call->input[k].n; i++) {
            int letter = (unsigned char)self->letters[k][i] % LETTERS;
            const ir_expr **extent = &self->extent[letter], *mine = call->input[k].dim[i];

            if (!*extent || ir_is_value(*extent, 1)) {
                *extent = mine;
                self->operand[letter] = k;
                self->at[letter] = i;
            } else if (!ir_is_value(mine, 1) &&
                       !op_equal_extents(call, self->operand[letter], self->at[letter], k, i))
                return op_fail(call,
                               "dimension '%c' of operand %d, which is %s, has another extent elsewhere",
                               self->letters[k][i], k, op_type_text(call->cx, &call->input[k]));
        }
    for (const char *p = self->result; *p; p++)
        if (!self->extent[(unsigned char)*p % LETTERS] || strchr(p + 1, *p))
            return op_fail(call, "dimension '%c' of the result is %s", *p,
                           self->extent[(unsigned char)*p % LETTERS] ? "named twice" : "no operand's");
    return true;
}

/* All operands have one type; a letter has one extent wherever it stands, or 1. */
static bool einsum_relation(op_call *call)
{
    equation q;

    if (!read_equation(call, &q) || !read_extents(call, &q))
        return false;
    int n = (int)strlen(q.result);
    const ir_expr **dim = base_array(call->cx, const ir_expr *, n);
    for (int i = 0; i < n; i++)
        dim[i] = q.extent[(unsigned char)q.result[i] % LETTERS];
    for (int k = 1; k < call->n_inputs; k++)
        if (!base_dtype_same(call->input[k].dtype, call->input[0].dtype))
            return op_fail(call, "operand %d is %s, but the first operand is %s: expected the same type", k,
                           op_type_text(call->cx, &call->input[k]), op_type_text(call->cx, &call->input[0]));
    call->output[0] = (op_type){call->input[0].dtype, n, dim};
    return true;
}

/* One axis per letter: letters of the result are spatial, the others are reduced. */
static bool einsum_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    equation q;
    const ir_expr *var[LETTERS] = {NULL}, *reduced[LETTERS], *product = NULL;
    int n_reduced = 0;
    base_dtype t = call->output[0].dtype, wide = base_is_float(t) && t.bits == 16 ? BASE_F32 : t;

    if (!read_equation(call, &q) || !read_extents(call, &q))
        return false;
    const ir_expr **axis = op_axes_of(call, &call->output[0]);
    for (int i = 0; q.result[i]; i++)
        var[(unsigned char)q.result[i] % LETTERS] = axis[i];
    for (int l = 0; l < LETTERS; l++)
        if (q.extent[l] && !var[l]) {
            var[l] = reduced[n_reduced] = te_reduce_axis(cx, base_format(cx, "r%d", n_reduced), q.extent[l]);
            n_reduced++;
        }
    for (int k = 0; k < call->n_inputs; k++) {
        const ir_expr **index = base_array(cx, const ir_expr *, call->input[k].n + 1);

        for (int i = 0; i < call->input[k].n; i++)
            index[i] = ir_is_value(call->input[k].dim[i], 1) ? ir_int(cx, 0)
                                                             : var[(unsigned char)q.letters[k][i] % LETTERS];
        const ir_expr *expr = te_read(in[k], index, call->input[k].n);
        if (!expr)
            return false;
        product = product ? ir_mul(cx, product, ir_cast(cx, wide, expr)) : ir_cast(cx, wide, expr);
    }
    if (n_reduced)
        product = te_reduce(cx, "sum", product, reduced, n_reduced);
    *out =
        te_compute(def, op_stage_name(def, call->op->name), axis, call->output[0].n, ir_cast(cx, t, product));
    return *out != NULL;
}

static const op_impl impls[] = {{.name = "einsum", .version = 1, .body = einsum_body, .packs = -1}};

static const op_info rows[] = {
    {.name = "einsum",
     .min_inputs = 1,
     .max_inputs = -1,
     .n_outputs = 1,
     .kind = OP_REDUCTION,
     .relation = einsum_relation,
     .impls = impls,
     .n_impls = BASE_COUNT(impls),
     .in_place = -1,
     .doc = "equation: letters of each operand's dimensions, \"->\", those of the result"},
};
const op_family op_einsum_family = {rows, BASE_COUNT(rows)};
