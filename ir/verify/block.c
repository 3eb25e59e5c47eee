/* ir/verify/block.c -- the regions of a block against what its statements touch.
 *
 * A dimension that is declared as a whole contains every access: indices lie in the shape. For all others
 * containment is proven under the domains of the iteration variables, and unproven counts as violated. A
 * region that the block touches twice is one hull (ir_touched).
 */
#include "ir/verify/block.h"

#include "ir/build.h"
#include "ir/region/region.h"
#include "ir/text.h"

static bool is_whole(const ir_facts *facts, const ir_region *region, int d)
{
    return ir_prove_equal(facts, region->min[d], ir_int(ir_facts_context(facts), 0)) &&
           ir_prove_equal(facts, region->extent[d], region->buffer->shape[d]);
}

/* The inner box with the dimensions that the outer one takes as a whole. */
static ir_region widen(const ir_facts *facts, const ir_region *outer, const ir_region *inner)
{
    tec_context *cx = ir_facts_context(facts);
    int n = inner->buffer->n;
    const ir_expr **min = base_array(cx, const ir_expr *, n), **extent = base_array(cx, const ir_expr *, n);

    for (int d = 0; d < n; d++) {
        bool whole = is_whole(facts, outer, d);
        min[d] = whole ? outer->min[d] : inner->min[d];
        extent[d] = whole ? outer->extent[d] : inner->extent[d];
    }
    return (ir_region){inner->buffer, min, extent};
}

/* Whether one of the declared regions of the buffer contains everything that is touched. */
static bool is_told(const ir_facts *facts, const ir_region *declared, int count, const ir_region *touched)
{
    for (int i = 0; i < count; i++) {
        if (declared[i].buffer != touched->buffer)
            continue;
        ir_region wide = widen(facts, &declared[i], touched);
        if (ir_region_contains(facts, &declared[i], &wide))
            return true;
    }
    return false;
}

static const char *describe(tec_context *cx, const char *verb, const char *list, const ir_region *declared,
                            int n, const ir_region *touched)
{
    base_text t = {0};

    for (int i = 0; i < n; i++)
        if (declared[i].buffer == touched->buffer)
            base_addf(cx, &t, "%s%s", t.n ? ", " : "", ir_region_text(cx, &declared[i]));
    return base_format(cx, "%s %s, which its %s are not proven to contain (%s)", verb,
                       ir_region_text(cx, touched), list, t.n ? base_text_str(cx, &t) : "nothing of it");
}

/* The message about the first access that the block's declaration does not cover, or NULL. Both the
 * initialisation and the body count. */
const char *ir_find_untold_access(tec_context *cx, const ir_facts *outer, const ir_block *block)
{
    ir_facts *facts = ir_facts_new(cx, outer);
    base_vec reads = {0}, writes = {0};

    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(facts, block->iters[i].var, ir_int(cx, 0), block->iters[i].extent);
    if (block->init)
        ir_touched(facts, block->init, &reads, &writes);
    ir_touched(facts, block->body, &reads, &writes);
    for (int i = 0; i < reads.n; i++)
        if (!is_told(facts, block->reads, block->n_reads, reads.at[i]))
            return describe(cx, "reads", "reads", block->reads, block->n_reads, reads.at[i]);
    for (int i = 0; i < writes.n; i++)
        if (!is_told(facts, block->writes, block->n_writes, writes.at[i]))
            return describe(cx, "writes", "writes", block->writes, block->n_writes, writes.at[i]);
    return NULL;
}
