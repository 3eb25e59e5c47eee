/* ops/matmul.c -- matrix products of rank 2 and above, batches broadcast as NumPy's matmul does.
 *
 * B is packed into panels of a few vectors of columns, each panel row after row, so that the inner loop
 * streams it:
 *
 *     Bp[batch, nb, k, ni] = B[batch, k, nb*NI + ni]   or 0
 *     A[batch, m, nb, ni]  = sum[k](X[batch, m, k] * Bp[batch, nb, k, ni])
 *     Y[batch, m, n]       = A[batch, m, n / NI, n % NI]  (+ C, broadcast)
 *
 * Where the CPU adds up products of bfloat16 by pairs, the rows of a panel lie together in twos, and the last
 * one of an odd number has zeros beside it:
 *
 *     Bp[batch, nb, ko, ni, ki] = B[batch, ko*2 + ki, nb*NI + ni]   or 0
 *     A[batch, m, nb, ni]       = sum[ko, ki: 2](X[batch, m, ko*2 + ki] * Bp[batch, nb, ko, ni, ki])
 */
#include "ops/families.h"
#include "ops/packing.h"

#include "ir/text.h"
#include "ir/walk.h"

enum { FEW_PANELS = 2, FEW_ELEMENTS = 1024 };

/* A[batch, m, k] (transposed: [batch, k, m]) times B[batch, k, n] (transposed: [batch, n, k]); batches
 * broadcast. */
typedef struct {
    bool trans_a, trans_b;
    int batch; /* dimensions of the output before m and n */
    const ir_expr *m, *n, *k;
    base_dtype sum; /* what products are added up in */
    int64_t panel;  /* columns of B that lie together */
    bool pairs;     /* of terms of a sum lie together, and an instruction takes both */
} op_matmul;

/* Two vectors of columns for each row of sums; no more than the columns that there are, in powers of two. For
 * 16 lanes: 32 columns, 128 where A has one row, and 8 for a B of 5 to 8 columns. */
static int64_t choose_panel(const op_call *call, const op_matmul *matmul)
{
    int lanes = call->target ? target_lanes(call->target, matmul->sum) : 1;
    int64_t n, m, wanted = 2 * lanes;

    /* One row of A gives no reuse: more columns at once keep more sums in flight. */
    if (ir_is_int(matmul->m, &m) && m == 1)
        wanted = 8 * lanes;
    if (ir_is_int(matmul->n, &n))
        while (wanted > 1 && wanted / 2 >= n)
            wanted /= 2;
    return wanted;
}

/* Whether the CPU has dot products of two bfloat16. Their vectors are whole, so the columns must fill panels;
 * and where the length of a sum is not known, pairs that are packed in each run cost more than they give. */
static bool takes_pairs(const op_call *call, const op_matmul *matmul)
{
    const target *t = call->target;
    base_dtype dtype = call->input[0].dtype;
    int64_t n, k;

    return dtype.code == kDLBfloat && t && t->bf16_pairs && ir_is_int(matmul->k, &k) &&
           ir_is_int(matmul->n, &n) && n % target_lanes(t, matmul->sum) == 0;
}

/* Panels that are all full. */
static int64_t choose_full_panel(const op_matmul *matmul)
{
    int64_t n = 0, panel = matmul->panel;

    ir_is_int(matmul->n, &n);
    while (n % panel)
        panel /= 2;
    return panel;
}

/* Broadcast like any two operands, without their last two dimensions. An operand of rank 2 has none and
 * serves all batches. */
static bool read_batches(const op_call *call, op_type *out)
{
    op_type batch[2];
    op_call only_batches = *call;

    for (int i = 0; i < 2; i++)
        batch[i] = (op_type){call->input[i].dtype, call->input[i].n - 2, call->input[i].dim};
    only_batches.input = batch;
    only_batches.n_inputs = 2;
    return op_broadcast(&only_batches, out);
}

/* The sizes of the product with transposed operands taken into account, and the width of B's panels. The
 * extents must be equal or provably so. */
static bool read_matmul(const op_call *call, op_matmul *matmul)
{
    const op_type *a = &call->input[0], *b = &call->input[1];

    *matmul =
        (op_matmul){.trans_a = op_int(call, "trans_a", 0) != 0, .trans_b = op_int(call, "trans_b", 0) != 0};
    if (a->n < 2 || b->n < 2)
        return op_fail(call, "the operands are %s and %s: expected matrices", op_type_text(call->cx, a),
                       op_type_text(call->cx, b));
    if (!base_dtype_same(a->dtype, b->dtype) || base_is_bool(a->dtype))
        return op_fail(call, "the operands are %s and %s: expected the same numeric type",
                       op_type_text(call->cx, a), op_type_text(call->cx, b));
    matmul->m = a->dim[a->n - 2 + matmul->trans_a];
    matmul->k =
        b->dim[b->n - 2 + matmul->trans_b]; /* of B, which may be packed before A's extents are known */
    matmul->n = b->dim[b->n - 1 - matmul->trans_b];
    if (!op_equal_extents(call, 0, a->n - 1 - matmul->trans_a, 1, b->n - 2 + matmul->trans_b))
        return op_fail(call, "cannot multiply %s by %s: the inner dimensions differ",
                       op_type_text(call->cx, a), op_type_text(call->cx, b));
    matmul->batch = (a->n > b->n ? a->n : b->n) - 2;
    matmul->sum = base_is_float(a->dtype) && a->dtype.bits == 16 ? BASE_F32 : a->dtype;
    matmul->panel = choose_panel(call, matmul);
    matmul->pairs = takes_pairs(call, matmul);
    if (matmul->pairs)
        matmul->panel = choose_full_panel(matmul);
    return true;
}

/* [batch..., m, n], with batches broadcast against each other. */
static bool matmul_relation(op_call *call)
{
    op_matmul v;
    op_type batch;

    if (!read_matmul(call, &v) || !read_batches(call, &batch))
        return false;
    const ir_expr **dim = base_array(call->cx, const ir_expr *, v.batch + 2);
    for (int i = 0; i < v.batch; i++)
        dim[i] = batch.dim[i];
    dim[v.batch] = v.m;
    dim[v.batch + 1] = v.n;
    call->output[0] = (op_type){call->input[0].dtype, v.batch + 2, dim};
    return true;
}

/* ---- bodies ---- */

/* Batch indices of an operand of rank n, from those of the output. Dimensions are aligned at the end: an
 * operand with fewer lacks the first ones. Gives how many it has. */
static int batch_index(const op_call *call, int operand, const ir_expr *const *batch, int n_batch,
                       const ir_expr **index)
{
    const op_type *t = &call->input[operand];
    int n = t->n - 2;

    for (int i = 0; i < n; i++)
        index[i] = ir_is_value(t->dim[i], 1) ? ir_int(call->cx, 0) : batch[n_batch - n + i];
    return n;
}

/* Puts row and column where the operand has them: behind each other from `at` on, or swapped. */
static void matrix_index(const ir_expr **index, int at, const ir_expr *row, const ir_expr *column,
                         bool transposed)
{
    index[at + transposed] = row;
    index[at + !transposed] = column;
}

/* The condition that an index which runs to the next multiple of `step` is inside of the extent; NULL: the
 * extent is a multiple itself, so that all indices are inside. */
static const ir_expr *below(tec_context *cx, const ir_expr *index, const ir_expr *extent, int64_t step)
{
    int64_t n;

    return ir_is_int(extent, &n) && n % step == 0 ? NULL : ir_lt(cx, index, extent);
}

/* The axis over the terms of a sum; in pairs, an axis over pairs and one over the two of a pair (*inner, NULL
 * otherwise). *k is the term's number: outer * 2 + inner. `axis` makes an axis of the kind that is wanted. */
static void add_pair(tec_context *cx, const ir_expr *(*axis)(tec_context *, const char *, const ir_expr *),
                     const op_matmul *matmul, const ir_expr **outer, const ir_expr **inner, const ir_expr **k)
{
    const ir_expr *two = ir_int(cx, 2);

    *outer = *k = axis(cx, "k", matmul->pairs ? ir_ceildiv(cx, matmul->k, two) : matmul->k);
    *inner = matmul->pairs ? axis(cx, "ki", two) : NULL;
    if (matmul->pairs)
        *k = ir_add(cx, ir_mul(cx, *outer, two), *inner);
}

/* B as panels [batch, nb, k, ni], with zeros in the last panel where n is no multiple of its width. The zeros
 * in the last panel are multiplied and never read again: unpack asks for columns below n only. In pairs:
 * [batch, nb, ko, ni, ki], with zeros below the last row where their number is odd. */
static bool pack_b(const op_call *call, te_def *def, te_tensor *in, te_tensor **out)
{
    op_matmul v;
    tec_context *cx = call->cx;
    const ir_expr *inner, *k;

    if (!read_matmul(call, &v))
        return false;
    int batch = call->input[1].n - 2;
    const ir_expr **axis = base_array(cx, const ir_expr *, batch + 4),
                  **index = base_array(cx, const ir_expr *, batch + 2);
    for (int i = 0; i < batch; i++)
        index[i] = axis[i] = te_axis(cx, base_format(cx, "b%d", i), call->input[1].dim[i]);
    const ir_expr *nb = axis[batch] = te_axis(cx, "nb", ir_ceildiv(cx, v.n, ir_int(cx, v.panel)));
    const ir_expr *ni = axis[batch + 2] = te_axis(cx, "ni", ir_int(cx, v.panel));
    const ir_expr *column = ir_add(cx, ir_mul(cx, nb, ir_int(cx, v.panel)), ni);

    add_pair(cx, te_axis, &v, &axis[batch + 1], &inner, &k);
    axis[batch + 3] = inner;
    matrix_index(index, batch, k, column, v.trans_b);
    const op_type *y = &call->output[0];
    int64_t rows = op_count_uses(y, y->n - 2, y->n - 1), batches = op_count_uses(y, 0, y->n - 2 - batch);
    if (__builtin_mul_overflow(rows, batches, &rows)) /* batches that B serves all */
        rows = INT64_MAX;
    base_dtype dtype = v.pairs ? call->input[1].dtype : op_packed_dtype(call, 1, rows);
    const ir_expr *expr = ir_cast(cx, dtype, te_read(in, index, batch + 2));
    const ir_expr *inside =
        ir_all(cx, below(cx, column, v.n, v.panel), v.pairs ? below(cx, k, v.k, 2) : NULL);
    if (expr && inside)
        expr = ir_select(cx, inside, expr, ir_imm(cx, expr->dtype, 0));
    *out = te_compute(def, op_stage_name(def, base_format(cx, "%s.panels", call->op->name)), axis,
                      batch + 3 + v.pairs, expr);
    te_note(*out, "keep", ir_bool(cx, true));
    return *out != NULL;
}

/* A[batch, m, ko, ki] with a zero behind the last element of each row where the rows are odd. A that has its
 * pairs side by side and lies in memory stays what it is. */
static te_tensor *pair_left(const op_call *call, const op_matmul *matmul, te_def *def, te_tensor *left)
{
    const op_type *type = &call->input[0];
    tec_context *cx = call->cx;
    int batch = type->n - 2;
    const ir_expr **axis = base_array(cx, const ir_expr *, type->n + 1),
                  **index = base_array(cx, const ir_expr *, type->n), *k,
                  *inside = below(cx, matmul->k, matmul->k, 2);
    ir_role role = def->role;

    if (!left || (left->stage->kind == TE_INPUT && !matmul->trans_a && !inside))
        return left;
    for (int i = 0; i < batch; i++)
        index[i] = axis[i] = te_axis(cx, base_format(cx, "a%d", i), type->dim[i]);
    axis[batch] = te_axis(cx, "m", matmul->m);
    add_pair(cx, te_axis, matmul, &axis[batch + 1], &axis[batch + 2], &k);
    matrix_index(index, batch, axis[batch], k, matmul->trans_a);
    const ir_expr *expr = te_read(left, index, type->n);
    if (inside && expr)
        expr = ir_select(cx, ir_lt(cx, k, matmul->k), expr, ir_imm(cx, expr->dtype, 0));
    def->role = IR_ROLE_PROLOGUE;
    te_tensor *pairs = te_compute(def, op_stage_name(def, base_format(cx, "%s.pairs", call->op->name)), axis,
                                  type->n + 1, expr);
    def->role = role;
    te_note(pairs, "keep", ir_bool(cx, true));
    return pairs;
}

/* 16-bit elements of A in the type of the sums. Each is read for every panel, and would be converted each
 * time; where there are few panels and few elements that costs less than a place of their own. */
static te_tensor *widen_left(const op_call *call, const op_matmul *matmul, te_def *def, te_tensor *left)
{
    const op_type *type = &call->input[0];
    tec_context *cx = call->cx;
    const ir_expr **axis = base_array(cx, const ir_expr *, type->n);
    ir_role role = def->role;
    int64_t n, m, k;
    bool few = !ir_is_int(matmul->m, &m) || !ir_is_int(matmul->k, &k) || m * k < FEW_ELEMENTS;

    if (base_dtype_same(type->dtype, matmul->sum) ||
        (few && ir_is_int(matmul->n, &n) && n <= FEW_PANELS * (int64_t)matmul->panel))
        return left;
    for (int i = 0; i < type->n; i++)
        axis[i] = te_axis(cx, base_format(cx, "a%d", i), type->dim[i]);
    def->role = IR_ROLE_PROLOGUE;
    te_tensor *wide = te_compute(def, op_stage_name(def, base_format(cx, "%s.wide", call->op->name)), axis,
                                 type->n, ir_cast(cx, matmul->sum, te_read(left, axis, type->n)));
    def->role = role;
    te_note(wide, "keep", ir_bool(cx, true));
    return wide;
}

/* The sums in panels; a batch dimension of extent 1 is read at 0. The note says that an instruction adds up
 * the pairs. */
static te_tensor *accumulate(const op_call *call, const op_matmul *matmul, te_def *def, te_tensor *left,
                             te_tensor *panels)
{
    tec_context *cx = call->cx;
    int n = matmul->batch;
    const ir_expr **axis = base_array(cx, const ir_expr *, n + 3),
                  **ia = base_array(cx, const ir_expr *, n + 3),
                  **ib = base_array(cx, const ir_expr *, n + 4), *reduce[2], *k;

    for (int i = 0; i < n; i++)
        axis[i] = te_axis(cx, base_format(cx, "b%d", i), call->output[0].dim[i]);
    const ir_expr *m = axis[n] = te_axis(cx, "m", matmul->m),
                  *nb = axis[n + 1] = te_axis(cx, "nb", ir_ceildiv(cx, matmul->n, ir_int(cx, matmul->panel)));
    const ir_expr *ni = axis[n + 2] = te_axis(cx, "ni", ir_int(cx, matmul->panel));
    add_pair(cx, te_reduce_axis, matmul, &reduce[0], &reduce[1], &k);

    int na = batch_index(call, 0, axis, n, ia), nbatch = batch_index(call, 1, axis, n, ib);
    matrix_index(ia, na, m, k, matmul->trans_a);
    if (left->buffer->n > call->input[0].n) {
        ia[na] = m;
        ia[na + 1] = reduce[0];
        ia[na + 2] = reduce[1];
    }
    ib[nbatch] = nb;
    ib[nbatch + 1] = reduce[0];
    ib[nbatch + 2] = ni;
    ib[nbatch + 3] = reduce[1];
    const ir_expr *product =
        ir_mul(cx, ir_cast(cx, matmul->sum, te_read(left, ia, left->buffer->n)),
               ir_cast(cx, matmul->sum, te_read(panels, ib, nbatch + 3 + matmul->pairs)));
    te_tensor *sums = te_compute(def, op_stage_name(def, base_format(cx, "%s.acc", call->op->name)), axis,
                                 n + 3, te_reduce(cx, "sum", product, reduce, 1 + matmul->pairs));
    if (matmul->pairs)
        te_note(sums, "pairs", ir_bool(cx, true));
    return sums;
}

/* From panels of columns back to a matrix, and to the type of the result. */
static te_tensor *unpack(const op_call *call, const op_matmul *matmul, te_def *def, te_tensor *sums)
{
    tec_context *cx = call->cx;
    int n = matmul->batch;
    const ir_expr **axis = base_array(cx, const ir_expr *, n + 2),
                  **index = base_array(cx, const ir_expr *, n + 3), *panel = ir_int(cx, matmul->panel);
    ir_role role = def->role;

    for (int i = 0; i < n; i++)
        index[i] = axis[i] = te_axis(cx, base_format(cx, "b%d", i), call->output[0].dim[i]);
    index[n] = axis[n] = te_axis(cx, "m", call->output[0].dim[n]);
    axis[n + 1] = te_axis(cx, "n", call->output[0].dim[n + 1]);
    index[n + 1] = ir_floordiv(cx, axis[n + 1], panel);
    index[n + 2] = ir_floormod(cx, axis[n + 1], panel);
    def->role = IR_ROLE_EPILOGUE;
    te_tensor *tensor = te_compute(def, op_stage_name(def, call->op->name), axis, n + 2,
                                   ir_cast(cx, call->output[0].dtype, te_read(sums, index, n + 3)));
    def->role = role;
    return tensor;
}

/* in[1] is in panels already, by op_emit or by the graph. */
static bool packed_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    op_matmul v;

    if (!read_matmul(call, &v))
        return false;
    te_tensor *left = v.pairs ? pair_left(call, &v, def, in[0]) : widen_left(call, &v, def, in[0]);
    *out = left ? unpack(call, &v, def, accumulate(call, &v, def, left, in[1])) : NULL;
    return *out != NULL;
}

static const op_impl impls[] = {
    {.name = "matmul.packed", .version = 1, .body = packed_body, .packs = 1, .pack = pack_b},
};

static const op_info rows[] = {
    {.name = "matmul",
     .min_inputs = 2,
     .max_inputs = 2,
     .n_outputs = 1,
     .kind = OP_COMPLEX,
     .relation = matmul_relation,
     .impls = impls,
     .n_impls = BASE_COUNT(impls),
     .in_place = -1,
     .doc = "matrix product of the last two dimensions, batches broadcast; trans_a, trans_b (0)"},
};
const op_family op_matmul_family = {rows, BASE_COUNT(rows)};
