/* schedule/layout.c -- storage_align: where the elements of a buffer lie.
 *
 *     storage_align(P, 0, 16, 4)       buffer P: f32[8, 30]  =>  buffer P: f32[8, 30] strides(36, 1)
 *
 * What an element means does not change; arguments of the program, which others lay out, and buffers that share memory are refused.
 */
#include "ir/facts.h"
#include "ir/text.h"
#include "schedule/state.h"

const ir_buffer *sched_own_buffer(sched_call *c)
{
    const ir_buffer *b = sched_buffer_named(c->tree, c->arg[0].name);

    if (!b)
        return sched_refuse(c, "there is no buffer '%s'", c->arg[0].name);
    if (sched_is_output(c->tree, b))
        return sched_refuse(c, "'%s' is an argument of the program, which has its layout", b->name);
    if (b->alias)
        return sched_refuse(c, "'%s' may share memory with other buffers", b->name);
    return b;
}

/* ---- storage_align ---- */

/* The least number from `least` on that is `offset` more than a multiple of `factor`. */
static const ir_expr *aligned(const ir_facts *f, const ir_expr *least, int64_t factor, int64_t offset)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *over = ir_ceildiv(cx, ir_sub(cx, least, ir_int(cx, offset)), ir_int(cx, factor));

    return ir_simplify(f, ir_add(cx, ir_mul(cx, over, ir_int(cx, factor)), ir_int(cx, offset)));
}

/* storage_align(buffer, dim, factor, offset): neighbours in the dimension lie k * factor + offset elements apart, as few as there
 * is room for. */
const ir_program *sched_do_storage_align(sched_call *c)
{
    const ir_buffer *b = sched_own_buffer(c);
    int64_t dim = c->arg[1].i, factor = c->arg[2].i, offset = c->arg[3].i;

    if (!b)
        return NULL;
    if (b->strides)
        return sched_refuse(c, "'%s' has strides already", b->name);
    if (dim < 0 || dim >= b->n)
        return sched_refuse(c, "'%s' has dimensions 0 to %d; %lld is none", b->name, b->n - 1, (long long)dim);
    if (factor < 1 || offset < 0 || offset >= factor)
        return sched_refuse(c, "expected a positive factor and an offset below it, found %lld and %lld", (long long)factor,
                            (long long)offset);
    const ir_expr **stride = base_array(c->cx, const ir_expr *, b->n), *next = ir_int(c->cx, 1);
    for (int d = b->n - 1; d >= 0; d--) {
        stride[d] = d == dim ? aligned(c->s->facts, next, factor, offset) : next;
        next = ir_mul(c->cx, stride[d], b->shape[d]);
    }
    ir_buffer *wide = ir_buffer_copy(c->cx, b);
    wide->strides = stride;
    return sched_swap_buffer(c->cx, c->tree, b, wide);
}
