/* schedule/layout.c -- storage_align, buffer_bind: where the elements of a buffer lie.
 *
 *     storage_align(P, 0, 16, 4)      buffer P: f32[8, 30]  =>  buffer P: f32[8, 30] strides(36, 1)
 *     buffer_bind(P, (40, 1), 8, 64)  buffer P: f32[8, 30]  =>  buffer P: f32[8, 30] strides(40,
 *                                                                 1) offset(8) align(64)
 *
 * What an element means does not change; buffers that share memory are refused, and so are arguments of the
 * program, which others lay out: only their alignment may be asked for.
 */
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "schedule/rewrite.h"

/* Parameters and aliases have a layout that callers rely on. */
const ir_buffer *sched_own_buffer(sched_call *call)
{
    const ir_buffer *buffer = sched_buffer_named(call->tree, call->arg[0].name);

    if (!buffer)
        return sched_no_buffer(call, call->arg[0].name);
    if (tree_is_parameter(call->tree, buffer))
        return sched_refuse(call, "'%s' is an argument of the program, and the caller determines its layout",
                            buffer->name);
    if (buffer->alias)
        return sched_refuse(call, "'%s' may share memory with other buffers", buffer->name);
    return buffer;
}

typedef struct {
    ir_walk walk;
    const ir_buffer *buffer;
    const char *taker; /* a function that gets the buffer as an operand */
} finder;

static bool find_taker(ir_walk *walk, const ir_expr *expr)
{
    finder *f = (finder *)walk;

    for (int i = 0; expr->op == IR_CALL && i < expr->call.n_buffers; i++)
        if (expr->call.buffer[i] == f->buffer)
            f->taker = expr->call.name;
    return true;
}

/* A buffer whose elements may be put elsewhere. */
static const ir_buffer *movable(sched_call *call)
{
    const ir_buffer *buffer = sched_own_buffer(call);
    finder f = {.walk = {.cx = call->cx, .expr = find_taker}, .buffer = buffer};

    if (!buffer)
        return NULL;
    if (buffer->strides)
        return sched_refuse(call, "'%s' has strides already", buffer->name);
    ir_walk_stmt(&f.walk, call->tree->body);
    return f.taker ? sched_refuse(call, "'%s' takes '%s' as an operand and relies on its present layout",
                                  f.taker, buffer->name)
                   : buffer;
}

/* ---- storage_align ---- */

/* The least number from `least` on that is `offset` more than a multiple of `factor`.
 *
 *     least = 30, factor 16, offset 4:  ceildiv(30 - 4, 16)*16 + 4 = 36
 */
static const ir_expr *aligned(const ir_facts *facts, const ir_expr *least, int64_t factor, int64_t offset)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr *least_over = ir_sub(cx, least, ir_int(cx, offset)), *by = ir_int(cx, factor);
    const ir_expr *over = BASE_PLANT_ON(cx, storage_align_room) ? ir_floordiv(cx, least_over, by)
                                                                : ir_ceildiv(cx, least_over, by);

    return ir_simplify(facts, ir_add(cx, ir_mul(cx, over, ir_int(cx, factor)), ir_int(cx, offset)));
}

/* storage_align(buffer, dim, factor, offset): neighbours in the dimension lie k * factor + offset elements
 * apart, as few as there is room for. The strides are found from the innermost dimension outwards: each is
 * the least one with room for all that lies inside, and only that of `dim` is rounded up. */
const ir_program *sched_do_storage_align(sched_call *call)
{
    const ir_buffer *buffer = movable(call);
    int64_t dim = call->arg[1].i, factor = call->arg[2].i, offset = call->arg[3].i;

    if (!buffer)
        return NULL;
    if (dim < 0 || dim >= buffer->n)
        return sched_refuse(call, "expected a dimension of '%s' from 0 to %d, found %lld", buffer->name,
                            buffer->n - 1, (long long)dim);
    if (factor < 1 || offset < 0 || offset >= factor)
        return sched_refuse(call, "expected a positive factor and an offset below it, found %lld and %lld",
                            (long long)factor, (long long)offset);
    const ir_expr **stride = base_array(call->cx, const ir_expr *, buffer->n), *next = ir_int(call->cx, 1);
    for (int d = buffer->n - 1; d >= 0; d--) {
        stride[d] = d == dim ? aligned(call->s->view.facts, next, factor, offset) : next;
        next = ir_mul(call->cx, stride[d], buffer->shape[d]);
    }
    ir_buffer *wide = ir_buffer_copy(call->cx, buffer);
    wide->strides = stride;
    return sched_swap_buffer(call->cx, call->tree, buffer, wide);
}

/* ---- buffer_bind ---- */

/* Allocations begin at multiples of it. */
enum { MOST_ALIGN = 64 };

/* The dimension that is not taken and whose stride is proven to be the least of those; -1: they cannot be
 * compared. */
static int least_stride(const ir_facts *facts, const ir_buffer *buffer, const ir_expr *const *stride,
                        const bool *taken)
{
    for (int d = 0; d < buffer->n; d++) {
        bool least = !taken[d];

        for (int e = 0; least && e < buffer->n; e++)
            least = taken[e] || ir_prove_le(facts, stride[d], stride[e]);
        if (least)
            return d;
    }
    return -1;
}

/* Each stride reaches over all that the smaller ones reach. Where a dimension is empty, there is nothing to
 * keep apart.
 *
 *     shape [8, 30], strides (40, 1):  reach 1 -> stride 1 fits, reach 1 + 1*29 = 30 -> stride 40 >= 30 fits
 *
 * `reach` is one more than the greatest sum of the strides taken so far. A stride below the reach lets two
 * elements meet: with strides (20, 1) the elements [1, 0] and [0, 20] lie at one place. */
static bool keeps_apart(const ir_facts *outer, const ir_buffer *buffer, const ir_expr *const *stride)
{
    tec_context *cx = ir_facts_context(outer);
    const ir_expr *reach = ir_int(cx, 1);
    bool *taken = base_array(cx, bool, buffer->n);
    ir_facts *facts = ir_facts_new(cx, outer);
    int left = buffer->n;

    for (int d = 0; d < buffer->n; d++)
        ir_facts_assume(facts, ir_ge(cx, buffer->shape[d], ir_int(cx, 1)));

    for (int d = 0; d < buffer->n; d++)
        if (ir_prove_equal(facts, buffer->shape[d], ir_int(cx, 1))) { /* its stride is never taken */
            taken[d] = true;
            left--;
        }
    for (; left > 0; left--) {
        int d = least_stride(facts, buffer, stride, taken);

        if (d < 0 || !ir_prove_le(facts, reach, stride[d]))
            return false;
        taken[d] = true;
        reach = ir_simplify(
            facts, ir_add(cx, reach, ir_mul(cx, stride[d], ir_sub(cx, buffer->shape[d], ir_int(cx, 1)))));
    }
    return true;
}

/* Strides, offset and alignment may be any that keep the elements apart and in front of nothing: negative
 * numbers would lie before the allocation. An alignment below the size of an element would split elements. */
static bool check_place(sched_call *call, const ir_buffer *buffer, const sched_arg *stride,
                        const ir_expr *offset, int64_t align)
{
    if (stride->n != buffer->n)
        return sched_refuse(
            call, "expected one stride for each dimension: %d strides are given, but '%s' has %d dimensions",
            stride->n, buffer->name, buffer->n);
    for (int d = 0; d < buffer->n; d++)
        if (!base_dtype_same(stride->exprs[d]->dtype, BASE_I64) ||
            !ir_prove_le(call->s->view.facts, ir_int(call->cx, 0), stride->exprs[d]))
            return sched_refuse(call, "cannot prove that stride '%s' is at least 0",
                                ir_expr_text(call->cx, stride->exprs[d]));
    if (!base_dtype_same(offset->dtype, BASE_I64) ||
        !ir_prove_le(call->s->view.facts, ir_int(call->cx, 0), offset))
        return sched_refuse(call, "cannot prove that offset '%s' is at least 0",
                            ir_expr_text(call->cx, offset));
    if (align < 0 || align > MOST_ALIGN || (align & (align - 1)) ||
        (align && align < base_dtype_bytes(buffer->dtype)))
        return sched_refuse(call,
                            "expected an alignment of 0 or a power of two from %d to %d bytes, found %lld",
                            base_dtype_bytes(buffer->dtype), MOST_ALIGN, (long long)align);
    if (!BASE_PLANT_ON(call->cx, buffer_bind_overlap) &&
        !keeps_apart(call->s->view.facts, buffer, stride->exprs))
        return sched_refuse(call,
                            "cannot prove that the strides give each element of '%s' an address of its own",
                            buffer->name);
    return true;
}

/* Whether strides and offset say that the elements lie as they do: compact, row-major, from the start. */
static bool is_compact(sched_call *call, const ir_buffer *buffer)
{
    const sched_arg *stride = &call->arg[1];
    const ir_expr *next = ir_int(call->cx, 1);

    if (stride->n != buffer->n || buffer->strides || buffer->offset || !ir_is_value(call->arg[2].expr, 0))
        return false;
    for (int d = buffer->n - 1; d >= 0; d--) {
        if (!ir_prove_equal(call->s->view.facts, stride->exprs[d], next))
            return false;
        next = ir_mul(call->cx, next, buffer->shape[d]);
    }
    return true;
}

/* An argument keeps its layout, and each call has to give it at a multiple of `align` bytes. */
static const ir_program *align_argument(sched_call *call, const ir_buffer *buffer)
{
    if (!is_compact(call, buffer))
        return sched_refuse(call,
                            "'%s' is an argument of the program, which has its layout; only its alignment "
                            "may change",
                            buffer->name);
    if (!check_place(call, buffer, &call->arg[1], call->arg[2].expr, call->arg[3].i))
        return NULL;
    ir_buffer *placed = ir_buffer_copy(call->cx, buffer);
    placed->align = (int)call->arg[3].i;
    ir_program *out = (ir_program *)sched_swap_buffer(call->cx, call->tree, buffer, placed);
    ir_param *params = out ? base_copy(call->cx, out->params, (size_t)out->n_params * sizeof *params) : NULL;
    for (int i = 0; out && i < out->n_params; i++)
        if (params[i].buffer == buffer)
            params[i].buffer = placed;
    if (out)
        out->params = params;
    return out;
}

/* buffer_bind(buffer, (strides), offset, align): element [i, j] lies offset + i*stride + j*stride elements
 * behind an address that is a multiple of `align` bytes; 0: that of an element. */
const ir_program *sched_do_buffer_bind(sched_call *call)
{
    const ir_buffer *argument = sched_buffer_named(call->tree, call->arg[0].name);
    const ir_expr *offset = call->arg[2].expr;

    if (argument && tree_is_parameter(call->tree, argument))
        return align_argument(call, argument);
    const ir_buffer *buffer = movable(call);
    if (!buffer)
        return NULL;
    if (!check_place(call, buffer, &call->arg[1], offset, call->arg[3].i))
        return NULL;
    ir_buffer *placed = ir_buffer_copy(call->cx, buffer);
    placed->strides = call->arg[1].exprs;
    placed->offset = ir_is_value(offset, 0) ? NULL : offset;
    placed->align = (int)call->arg[3].i;
    return sched_swap_buffer(call->cx, call->tree, buffer, placed);
}
