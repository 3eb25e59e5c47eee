/* graph/onnx/known.c -- small integer tensors as expressions: what shapes, pads and bounds are computed from.
 *
 * Exporters compute the shape of an Expand or the pads of a Pad by chains like Shape -> Gather -> Concat ->
 * Where, over constants and symbolic dimensions. So each operator that moves integers, or computes with them,
 * is followed here too, element by element. What cannot be followed (floats, large tensors, other operators)
 * is simply not known.
 */
#include "graph/onnx/import.h"

typedef struct {
    onnx_node *n;
    op_call call;          /* the operator's view: its operands' types and attributes */
    const onnx_known **in; /* of each operand */
    const op_type *type;   /* of the result */
    int64_t dim[ONNX_MAX_RANK], count;
} tracked;

/* Extents as numbers, and their product; false where symbolic or too large to follow (`large`). */
static bool extents(tec_context *cx, const op_type *type, int64_t *dim, int64_t *count, bool *large)
{
    int64_t most = base_limit(cx, BASE_LIMIT_known_elements);

    *count = 1;
    for (int i = 0; i < type->n; i++) {
        if (i >= ONNX_MAX_RANK || !ir_is_int(type->dim[i], &dim[i]) || dim[i] < 0)
            return false;
        if (__builtin_mul_overflow(*count, dim[i], count) || *count > most) {
            *large = true;
            return false;
        }
    }
    return true;
}

static int64_t extent(const tracked *self, int operand, int axis)
{
    int64_t n = 1;

    ir_is_int(self->call.input[operand].dim[axis], &n);
    return n;
}

/* An element of an operand; NULL where the position is outside. */
static const ir_expr *element(const tracked *self, int operand, const int64_t *at)
{
    int64_t flat = 0;

    for (int i = 0; i < self->call.input[operand].n; i++)
        flat = flat * extent(self, operand, i) + at[i];
    return flat >= 0 && flat < self->in[operand]->n ? self->in[operand]->at[flat] : NULL;
}

/* ---- moving: the operand's element for position `at` of the result ---- */

/* Dimension i of the result is dimension perm[i] of the operand. */
static const ir_expr *transposed(const tracked *self, const int64_t *at)
{
    const int64_t *perm;
    int64_t from[ONNX_MAX_RANK];
    int n = op_ints(&self->call, "perm", &perm);

    for (int i = 0; i < n; i++)
        from[perm[i]] = at[i];
    return element(self, 0, from);
}

/* Known only if the beginnings are constants. */
static const ir_expr *sliced(const tracked *self, const int64_t *at)
{
    const op_attr *begin = op_attr_find(&self->call, "begin");
    const int64_t *step;
    int64_t from[ONNX_MAX_RANK];
    int n = op_ints(&self->call, "step", &step);

    for (int i = 0; i < n; i++) {
        if (!ir_is_int(begin->exprs[i], &from[i]))
            return NULL;
        from[i] += at[i] * step[i];
    }
    return element(self, 0, from);
}

/* NumPy's broadcasting: extents of 1 and missing dimensions stand still. */
static const ir_expr *broadcast(const tracked *self, int operand, const int64_t *at)
{
    int n = self->call.input[operand].n, shift = self->type->n - n;
    int64_t from[ONNX_MAX_RANK];

    for (int i = 0; i < n; i++)
        from[i] = extent(self, operand, i) == 1 ? 0 : at[i + shift];
    return element(self, operand, from);
}

static const ir_expr *expanded(const tracked *self, const int64_t *at)
{
    return broadcast(self, 0, at);
}

static const ir_expr *tiled(const tracked *self, const int64_t *at)
{
    int64_t from[ONNX_MAX_RANK];

    for (int i = 0; i < self->type->n; i++)
        from[i] = at[i] % extent(self, 0, i);
    return element(self, 0, from);
}

/* Counts the place down through the operands until it lies within one of them. */
static const ir_expr *concatenated(const tracked *self, const int64_t *at)
{
    int64_t from[ONNX_MAX_RANK], axis = op_int(&self->call, "axis", 0);
    int k = 0;

    for (int i = 0; i < self->type->n; i++)
        from[i] = at[i];
    for (; k < self->call.n_inputs - 1 && from[axis] >= extent(self, k, (int)axis); k++)
        from[axis] -= extent(self, k, (int)axis);
    return element(self, k, from);
}

/* The index must be a constant; a negative one counts from the end. */
static const ir_expr *gathered(const tracked *self, const int64_t *at)
{
    int64_t from[ONNX_MAX_RANK], axis = op_int(&self->call, "axis", 0), index;
    int inner = self->call.input[1].n;
    const ir_expr *expr = element(self, 1, at + axis);

    if (!expr || !ir_is_int(expr, &index))
        return NULL;
    for (int i = 0; i < self->call.input[0].n; i++)
        from[i] = i < axis ? at[i] : at[i + inner - 1 + (i == axis && inner == 0)];
    from[axis] = index < 0 ? index + extent(self, 0, (int)axis) : index;
    return from[axis] >= 0 && from[axis] < extent(self, 0, (int)axis) ? element(self, 0, from) : NULL;
}

/* ---- computing ---- */

static const ir_expr *quotient(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    return ir_is_value(right, 0) ? NULL : ir_div(cx, left, right);
}

static const ir_expr *remainder_of(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    return ir_is_value(right, 0) ? NULL : ir_floormod(cx, left, right);
}

static const ir_expr *negated(const tracked *self, const int64_t *at)
{
    const ir_expr *expr = element(self, 0, at);

    return expr ? ir_neg(self->n->cx, expr) : NULL;
}

static const ir_expr *both(tec_context *cx, const ir_expr *left, const ir_expr *right)
{
    return ir_mul(cx, left, right);
}

/* Truth is 1 or 0 here, as in constants. */
static const ir_expr *truth(tec_context *cx, const ir_expr *expr)
{
    return ir_select(cx, expr, ir_int(cx, 1), ir_int(cx, 0));
}

#define COMPARE(name, op)                                                                                    \
    static const ir_expr *name(tec_context *cx, const ir_expr *a, const ir_expr *b)                          \
    {                                                                                                        \
        return truth(cx, op(cx, a, b));                                                                      \
    }
COMPARE(is_equal, ir_eq)
COMPARE(is_less, ir_lt)
COMPARE(is_less_equal, ir_le)
COMPARE(is_greater, ir_gt)
COMPARE(is_greater_equal, ir_ge)

static const ir_expr *chosen(const tracked *self, const int64_t *at)
{
    tec_context *cx = self->n->cx;
    const ir_expr *c = broadcast(self, 0, at), *yes = broadcast(self, 1, at), *no = broadcast(self, 2, at);

    return c && yes && no ? ir_select(cx, ir_ne(cx, c, ir_int(cx, 0)), yes, no) : NULL;
}

/* `same`: the elements of operand 0 in their order. */
static const struct {
    const char *op;
    const ir_expr *(*move)(const tracked *t, const int64_t *at);
    const ir_expr *(*binary)(tec_context *cx, const ir_expr *left, const ir_expr *right);
    bool same;
} rules[] = {
    {"identity", NULL, NULL, true},
    {"reshape", NULL, NULL, true},
    {"cast", NULL, NULL, true},
    {"transpose", transposed, NULL, false},
    {"slice", sliced, NULL, false},
    {"expand", expanded, NULL, false},
    {"tile", tiled, NULL, false},
    {"concat", concatenated, NULL, false},
    {"gather", gathered, NULL, false},
    {"where", chosen, NULL, false},
    {"add", NULL, ir_add, false},
    {"sub", NULL, ir_sub, false},
    {"mul", NULL, ir_mul, false},
    {"div", NULL, quotient, false},
    {"mod", NULL, remainder_of, false},
    {"neg", negated, NULL, false},
    {"min", NULL, ir_min, false},
    {"max", NULL, ir_max, false},
    {"and", NULL, both, false},
    {"or", NULL, ir_max, false},
    {"equal", NULL, is_equal, false},
    {"less", NULL, is_less, false},
    {"less_equal", NULL, is_less_equal, false},
    {"greater", NULL, is_greater, false},
    {"greater_equal", NULL, is_greater_equal, false},
};

static int rule_of(const char *op)
{
    for (int i = 0; i < BASE_COUNT(rules); i++)
        if (base_same(rules[i].op, op))
            return i;
    return -1;
}

/* Element number `flat` of the result by the operator's rule; NULL where an operand's element is not known.
 */
static const ir_expr *result(const tracked *self, int rule, int64_t flat)
{
    int64_t at[ONNX_MAX_RANK + 1] = {0}, rest = flat;

    if (rules[rule].same)
        return flat < self->in[0]->n ? self->in[0]->at[flat] : NULL;
    for (int i = self->type->n - 1; i >= 0; i--) {
        at[i] = rest % self->dim[i];
        rest /= self->dim[i];
    }
    if (rules[rule].move)
        return rules[rule].move(self, at);
    const ir_expr *a = broadcast(self, 0, at), *b = broadcast(self, 1, at);
    return a && b ? rules[rule].binary(self->n->cx, a, b) : NULL;
}

/* Whether expressions in 64 bits mean the same: nothing wraps, nothing is rounded. */
static bool is_exact(const tracked *self, int rule)
{
    base_dtype to = self->type->dtype;

    if (rules[rule].binary)
        return self->call.n_inputs == 2 && (base_dtype_same(self->call.input[0].dtype, BASE_I64) ||
                                            base_dtype_same(self->call.input[0].dtype, BASE_BOOL));
    if (base_same(self->call.op->name, "neg"))
        return base_dtype_same(to, BASE_I64);
    return !base_is_float(to) &&
           (!base_same(self->call.op->name, "cast") || (base_is_int(to) && to.bits >= 32));
}

/* All operands must be known, element by element. `is_long`: some operand's elements are longer expressions
 * than are followed; `many`: some operand has more elements than are followed. Both are other reasons for a
 * refusal than a value that is computed at run time. */
static bool know_operands(tracked *self, graph_value *const *in, bool *is_long, bool *many)
{
    onnx_import_state *im = self->n->im;
    int64_t dim[ONNX_MAX_RANK], count;
    bool large;

    for (int k = 0; k < self->call.n_inputs; k++) {
        self->in[k] = in[k] ? onnx_known_of(self->n, in[k]) : NULL;
        *is_long = *is_long || (in[k] && base_map_has(&im->long_ones, in[k]));
        *many = *many || (in[k] && base_map_has(&im->many, in[k]));
        if (!self->in[k] || !extents(im->cx, &in[k]->type, dim, &count, &large) || count != self->in[k]->n)
            return false;
        ((op_type *)self->call.input)[k] = in[k]->type;
    }
    return self->call.n_inputs > 0;
}

/* Called for each value that a conversion makes: notes its elements as expressions if they can be followed.
 */
void onnx_track(onnx_node *node, graph_value *value, const char *op, graph_value *const *in, int n_in,
                const op_attr *attr, int n_attrs)
{
    int rule = rule_of(op);
    tracked t = {.n = node, .type = value ? &value->type : NULL};
    bool is_long = false, many = false, large = false;

    if (!value || rule < 0)
        return;
    t.in = base_array(node->cx, const onnx_known *, n_in);
    bool small = extents(node->cx, t.type, t.dim, &t.count, &large);
    t.call = (op_call){.cx = node->cx,
                       .op = op_find(op),
                       .name = node->name,
                       .n_inputs = n_in,
                       .input = base_array(node->cx, op_type, n_in),
                       .attr = attr,
                       .n_attrs = n_attrs};
    bool known = know_operands(&t, in, &is_long, &many);
    if (is_long)
        base_map_put(node->cx, &node->im->long_ones, value, value);
    if ((many || (known && large)) && !base_is_float(value->type.dtype))
        base_map_put(node->cx, &node->im->many, value, value);
    if (!small || !known || !is_exact(&t, rule))
        return;
    const ir_expr **expr = base_array(node->cx, const ir_expr *, t.count);
    for (int64_t i = 0; i < t.count; i++)
        if (!(expr[i] = result(&t, rule, i)))
            return;
    onnx_set_known(node, value, expr, (int)t.count);
}
