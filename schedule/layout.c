/* schedule/layout.c -- storage_align, buffer_bind: where the elements of a buffer lie.
 *
 *     storage_align(P, 0, 16, 4)      buffer P: f32[8, 30]  =>  buffer P: f32[8, 30] strides(36, 1)
 *     buffer_bind(P, (40, 1), 8, 64)  buffer P: f32[8, 30]  =>  buffer P: f32[8, 30] strides(40,
 *                                                                 1) offset(8) align(64)
 *
 * What an element means does not change; arguments of the program, which others lay out, and buffers that
 * share memory are refused.
 */
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "schedule/rewrite.h"

const ir_buffer *sched_own_buffer(sched_call *c)
{
    const ir_buffer *b = sched_buffer_named(c->tree, c->arg[0].name);

    if (!b)
        return sched_no_buffer(c, c->arg[0].name);
    if (tree_is_parameter(c->tree, b))
        return sched_refuse(c, "'%s' is an argument of the program, which has its layout", b->name);
    if (b->alias)
        return sched_refuse(c, "'%s' may share memory with other buffers", b->name);
    return b;
}

typedef struct {
    ir_walk walk;
    const ir_buffer *buffer;
    const char *taker; /* a function that gets the buffer as an operand */
} finder;

static bool find_taker(ir_walk *w, const ir_expr *e)
{
    finder *f = (finder *)w;

    for (int i = 0; e->op == IR_CALL && i < e->call.n_buffers; i++)
        if (e->call.buffer[i] == f->buffer)
            f->taker = e->call.name;
    return true;
}

/* A buffer whose elements may be put elsewhere. */
static const ir_buffer *movable(sched_call *c)
{
    const ir_buffer *b = sched_own_buffer(c);
    finder f = {.walk = {.cx = c->cx, .expr = find_taker}, .buffer = b};

    if (!b)
        return NULL;
    if (b->strides)
        return sched_refuse(c, "'%s' has strides already", b->name);
    ir_walk_stmt(&f.walk, c->tree->body);
    return f.taker ? sched_refuse(c, "'%s' gets '%s' as an operand and expects its layout", f.taker, b->name)
                   : b;
}

/* ---- storage_align ---- */

/* The least number from `least` on that is `offset` more than a multiple of `factor`.
 *
 *     least = 30, factor 16, offset 4:  ceildiv(30 - 4, 16)*16 + 4 = 36
 */
static const ir_expr *aligned(const ir_facts *f, const ir_expr *least, int64_t factor, int64_t offset)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *least_over = ir_sub(cx, least, ir_int(cx, offset)), *by = ir_int(cx, factor);
    const ir_expr *over = BASE_PLANT_ON(cx, storage_align_room) ? ir_floordiv(cx, least_over, by)
                                                                : ir_ceildiv(cx, least_over, by);

    return ir_simplify(f, ir_add(cx, ir_mul(cx, over, ir_int(cx, factor)), ir_int(cx, offset)));
}

/* storage_align(buffer, dim, factor, offset): neighbours in the dimension lie k * factor + offset elements
 * apart, as few as there is room for. The strides are found from the innermost dimension outwards: each is
 * the least one with room for all that lies inside, and only that of `dim` is rounded up. */
const ir_program *sched_do_storage_align(sched_call *c)
{
    const ir_buffer *b = movable(c);
    int64_t dim = c->arg[1].i, factor = c->arg[2].i, offset = c->arg[3].i;

    if (!b)
        return NULL;
    if (dim < 0 || dim >= b->n)
        return sched_refuse(c, "'%s' has dimensions 0 to %d; %lld is none", b->name, b->n - 1,
                            (long long)dim);
    if (factor < 1 || offset < 0 || offset >= factor)
        return sched_refuse(c, "expected a positive factor and an offset below it, found %lld and %lld",
                            (long long)factor, (long long)offset);
    const ir_expr **stride = base_array(c->cx, const ir_expr *, b->n), *next = ir_int(c->cx, 1);
    for (int d = b->n - 1; d >= 0; d--) {
        stride[d] = d == dim ? aligned(c->s->view.facts, next, factor, offset) : next;
        next = ir_mul(c->cx, stride[d], b->shape[d]);
    }
    ir_buffer *wide = ir_buffer_copy(c->cx, b);
    wide->strides = stride;
    return sched_swap_buffer(c->cx, c->tree, b, wide);
}

/* ---- buffer_bind ---- */

/* Allocations begin at multiples of it. */
enum { MOST_ALIGN = 64 };

/* The dimension that is not taken and whose stride is proven to be the least of those; -1: they cannot be
 * compared. */
static int least_stride(const ir_facts *f, const ir_buffer *b, const ir_expr *const *stride,
                        const bool *taken)
{
    for (int d = 0; d < b->n; d++) {
        bool least = !taken[d];

        for (int e = 0; least && e < b->n; e++)
            least = taken[e] || ir_prove_le(f, stride[d], stride[e]);
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
static bool keeps_apart(const ir_facts *outer, const ir_buffer *b, const ir_expr *const *stride)
{
    tec_context *cx = ir_facts_context(outer);
    const ir_expr *reach = ir_int(cx, 1);
    bool *taken = base_array(cx, bool, b->n);
    ir_facts *f = ir_facts_new(cx, outer);
    int left = b->n;

    for (int d = 0; d < b->n; d++)
        ir_facts_assume(f, ir_ge(cx, b->shape[d], ir_int(cx, 1)));

    for (int d = 0; d < b->n; d++)
        if (ir_prove_equal(f, b->shape[d], ir_int(cx, 1))) { /* its stride is never taken */
            taken[d] = true;
            left--;
        }
    for (; left > 0; left--) {
        int d = least_stride(f, b, stride, taken);

        if (d < 0 || !ir_prove_le(f, reach, stride[d]))
            return false;
        taken[d] = true;
        reach =
            ir_simplify(f, ir_add(cx, reach, ir_mul(cx, stride[d], ir_sub(cx, b->shape[d], ir_int(cx, 1)))));
    }
    return true;
}

/* Strides, offset and alignment may be any that keep the elements apart and in front of nothing: negative
 * numbers would lie before the allocation. An alignment below the size of an element would split elements. */
static bool check_place(sched_call *c, const ir_buffer *b, const sched_arg *stride, const ir_expr *offset,
                        int64_t align)
{
    if (stride->n != b->n)
        return sched_refuse(c, "%d strides are given, '%s' has %d dimensions", stride->n, b->name, b->n);
    for (int d = 0; d < b->n; d++)
        if (!base_dtype_same(stride->exprs[d]->dtype, BASE_I64) ||
            !ir_prove_le(c->s->view.facts, ir_int(c->cx, 0), stride->exprs[d]))
            return sched_refuse(c, "stride '%s' is not proven to be a number from 0 on",
                                ir_expr_text(c->cx, stride->exprs[d]));
    if (!base_dtype_same(offset->dtype, BASE_I64) || !ir_prove_le(c->s->view.facts, ir_int(c->cx, 0), offset))
        return sched_refuse(c, "offset '%s' is not proven to be a number from 0 on",
                            ir_expr_text(c->cx, offset));
    if (align < 0 || align > MOST_ALIGN || (align & (align - 1)) ||
        (align && align < base_dtype_bytes(b->dtype)))
        return sched_refuse(c, "expected an alignment of 0 or a power of two from %d to %d bytes, found %lld",
                            base_dtype_bytes(b->dtype), MOST_ALIGN, (long long)align);
    if (!BASE_PLANT_ON(c->cx, buffer_bind_overlap) && !keeps_apart(c->s->view.facts, b, stride->exprs))
        return sched_refuse(c, "it is not proven that the strides keep the elements of '%s' apart", b->name);
    return true;
}

/* buffer_bind(buffer, (strides), offset, align): element [i, j] lies offset + i*stride + j*stride elements
 * behind an address that is a multiple of `align` bytes; 0: that of an element. */
const ir_program *sched_do_buffer_bind(sched_call *c)
{
    const ir_buffer *b = movable(c);
    const ir_expr *offset = c->arg[2].expr;

    if (!b)
        return NULL;
    if (!check_place(c, b, &c->arg[1], offset, c->arg[3].i))
        return NULL;
    ir_buffer *placed = ir_buffer_copy(c->cx, b);
    placed->strides = c->arg[1].exprs;
    placed->offset = ir_is_value(offset, 0) ? NULL : offset;
    placed->align = (int)c->arg[3].i;
    return sched_swap_buffer(c->cx, c->tree, b, placed);
}
