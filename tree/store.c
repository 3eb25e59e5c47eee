/* tree/store.c -- which element an instance writes, and which instance writes an element.
 *
 *     P[floordiv(i, 8), j, i % 8] = ...          i = p0*8 + p2, j = p1
 *     S[i, j ^ (i % 8)] = ...                    i = p0, j = p1 ^ (p0 % 8)
 *
 * The indices of a store are quasi-affine in the iteration variables, each perhaps swizzled: `a ^ mask`,
 * where the mask stays below a power of two that divides the dimension and follows from the other dimensions.
 * Without the masks they are a map that the iterator map (ir/reason/itermap.h) proves to be one-to-one and
 * inverts; with them, the dimensions that have no mask give the masks of the others. Where a layout pads, the
 * variables run up to the next multiple of what they are divided by: those points are no instances.
 */
#include "ir/reason/facts.h"
#include "ir/reason/itermap.h"
#include "tree/depend.h"
#include "tree/touch.h"

/* ---- swizzles ---- */

enum { MAX_UNIT = 1 << 16 };

/* The least power of two above the mask that divides the dimension; 0: none. */
static int64_t unit_of(const ir_facts *facts, const ir_expr *mask, const ir_expr *shape)
{
    ir_interval b = ir_bounds(facts, mask);
    int64_t unit = 1;

    while (b.min >= 0 && unit <= b.max && unit < MAX_UNIT)
        unit *= 2;
    if (b.min < 0 || unit <= b.max)
        return 0;
    const ir_expr *rest = ir_floormod(ir_facts_context(facts), shape, ir_int(ir_facts_context(facts), unit));
    return ir_is_value(ir_simplify(facts, rest), 0) ? unit : 0;
}

/* index[d] = a ^ mask becomes a; of two operands that could be the mask, the second is it. What has none is
 * left to the iterator map, which refuses it. */
static void take_mask(const ir_facts *facts, tree_layout *layout, int dim, const ir_expr *shape)
{
    const ir_expr *expr = layout->index[dim];

    for (int k = 1; expr->op == IR_BITXOR && k >= 0; k--) {
        int64_t unit = unit_of(facts, expr->arg[k], shape);

        if (!unit)
            continue;
        layout->mask[dim] = expr->arg[k];
        layout->unit[dim] = unit;
        layout->index[dim] = expr->arg[1 - k];
        return;
    }
}

/* ---- padding ---- */

typedef struct {
    ir_walk w;
    const ir_expr *var;
    int64_t multiple;
} divisor_search;

/* Collects the least common multiple of all constants that an expression over the variable is divided by, as
 * long as it stays below MAX_UNIT: P[i / 8, i % 8] gives 8, and Q[i / 6, (i % 6) / 4] gives 12. */
static bool look_for_divisor(ir_walk *written, const ir_expr *expr)
{
    divisor_search *x = (divisor_search *)written;
    int64_t c;

    if ((expr->op == IR_FLOORDIV || expr->op == IR_FLOORMOD) && ir_is_int(expr->arg[1], &c) && c > 0 &&
        c <= MAX_UNIT && ir_uses_var(written->cx, expr->arg[0], x->var)) {
        int64_t a = x->multiple, b = c;

        while (b) {
            int64_t r = a % b;
            a = b;
            b = r;
        }
        if (x->multiple / a <= MAX_UNIT)
            x->multiple = x->multiple / a * c;
    }
    return true;
}

/* The extent of the variable up to the next multiple of all that its indices divide by. */
static const ir_expr *rounded(const ir_facts *facts, const ir_expr *var, const ir_expr *extent,
                              const ir_expr *const *index, int n)
{
    tec_context *cx = ir_facts_context(facts);
    divisor_search x = {.w = {.cx = cx, .expr = look_for_divisor}, .var = var, .multiple = 1};

    for (int d = 0; d < n; d++)
        ir_walk_expr(&x.w, index[d]);
    const ir_expr *by = ir_int(cx, x.multiple);
    return ir_simplify(facts, ir_mul(cx, ir_ceildiv(cx, extent, by), by));
}

/* ---- the inverse ---- */

/* All dimensions that the mask depends on are known by now. */
static bool resolved(tec_context *cx, const ir_expr *expr, const tree_layout *layout, const bool *known,
                     const ir_expr *const *plain)
{
    for (int d = 0; d < layout->n; d++)
        if (!known[d] && ir_uses_var(cx, expr, plain[d]))
            return false;
    return true;
}

/* plain[d] stands for the index without its mask; value[d] becomes it, over the point. False where masks
 * follow from one another. */
static bool undo_masks(const ir_facts *facts, const tree_layout *layout, const ir_expr *const *plain,
                       const ir_subst *vars, ir_subst *value)
{
    tec_context *cx = ir_facts_context(facts);
    bool *known = base_array(cx, bool, layout->n);

    for (int d = 0; d < layout->n; d++)
        if (!layout->mask[d]) {
            base_map_put(cx, &value->vars, plain[d], layout->point[d]);
            known[d] = true;
        }
    for (int round = 0; round < layout->n; round++)
        for (int d = 0; d < layout->n; d++) {
            const ir_expr *mask = known[d] ? NULL : ir_apply(cx, vars, layout->mask[d]);

            if (known[d] || !resolved(cx, mask, layout, known, plain))
                continue;
            base_map_put(cx, &value->vars, plain[d],
                         ir_bitxor(cx, layout->point[d], ir_simplify(facts, ir_apply(cx, value, mask))));
            known[d] = true;
        }
    for (int d = 0; d < layout->n; d++)
        if (!known[d])
            return false;
    return true;
}

/* From "indices over variables" to "variables over the point". The iterator map gives each variable over the
 * unmasked indices q0, q1 ..; undo_masks gives these over the point p0, p1 ..; put into each other:
 *
 *     S[i, j ^ (i % 8)]:     i = q0, j = q1;   q0 = p0, q1 = p1 ^ (q0 % 8);   so i = p0, j = p1 ^ (p0 % 8)
 */
static bool invert(const ir_facts *facts, const ir_iter_map *map, const ir_expr *const *var, int n_vars,
                   tree_layout *layout)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_expr **plain = base_array(cx, const ir_expr *, layout->n),
                  **out = base_array(cx, const ir_expr *, n_vars);
    ir_subst vars = {0}, value = {0};

    for (int d = 0; d < layout->n; d++) {
        layout->point[d] = ir_var(cx, base_format(cx, "p%d", d), BASE_I64);
        plain[d] = ir_var(cx, base_format(cx, "q%d", d), BASE_I64);
    }
    if (!ir_iter_map_inverse(facts, map, plain, var, n_vars, out))
        return false;
    for (int i = 0; i < n_vars; i++)
        base_map_put(cx, &vars.vars, var[i], out[i]);
    if (!undo_masks(facts, layout, plain, &vars, &value))
        return false;
    for (int i = 0; i < n_vars; i++)
        layout->var[i] = ir_apply(cx, &value, out[i]);
    return true;
}

/* Three steps: take the masks off the indices, ask the iterator map whether the rest is one-to-one onto the
 * shape, and invert it. The variables may run up to the next multiple of what they are divided by, as a
 * layout that pads has more elements than there are values:
 *
 *     P[i / 8, i % 8], i in 0..10, P: [2, 8]       i runs to 16: onto all 16 elements; 10 .. 15 are padding
 *
 * If that fails, the map is asked again with the extents as they are, for a reason in the numbers that the
 * user wrote. */
bool tree_read_layout(const ir_facts *outer, const ir_expr *const *var, const ir_expr *const *extent,
                      int n_vars, const ir_expr *const *index, const ir_expr *const *shape, int count,
                      tree_layout *layout, const char **reason)
{
    tec_context *cx = ir_facts_context(outer);
    ir_facts *facts = ir_facts_new(cx, outer);
    ir_iter_map map;

    *layout = (tree_layout){.n = count,
                            .index = base_array(cx, const ir_expr *, count),
                            .mask = base_array(cx, const ir_expr *, count),
                            .unit = base_array(cx, int64_t, count),
                            .point = base_array(cx, const ir_expr *, count),
                            .extent = base_array(cx, const ir_expr *, n_vars),
                            .var = base_array(cx, const ir_expr *, n_vars)};
    for (int i = 0; i < n_vars; i++)
        ir_facts_range(facts, var[i], ir_int(cx, 0), extent[i]);
    for (int d = 0; d < count; d++) {
        layout->index[d] = index[d];
        take_mask(facts, layout, d, shape[d]);
    }
    for (int i = 0; i < n_vars; i++)
        layout->extent[i] = rounded(outer, var[i], extent[i], layout->index, count);
    if (!ir_iter_map_detect(outer, var, layout->extent, n_vars, layout->index, shape, count, NULL, &map)) {
        const char *padded = map.reason;

        /* for a reason in the caller's numbers */
        ir_iter_map_detect(outer, var, extent, n_vars, layout->index, shape, count, NULL, &map);
        *reason = map.reason ? map.reason : padded;
        return false;
    }
    if (invert(outer, &map, var, n_vars, layout))
        return true;
    *reason = "its swizzles follow from one another";
    return false;
}

/* ---- accesses of blocks ---- */

/* Some index of the access moves with the variable. */
static bool any_uses(const tree_view *view, const ir_region *region, const ir_expr *var)
{
    for (int d = 0; d < region->buffer->n; d++)
        if (ir_uses_var(view->cx, region->min[d], var))
            return true;
    return false;
}

/* The spatial variables that index; those of one value are 0 instead. */
static int list_vars(const tree_view *view, const ir_block *block, const ir_region *region, int *iter,
                     ir_subst *single)
{
    int n = 0;

    for (int i = 0; i < block->n_iters; i++) {
        if (block->iters[i].kind != IR_SPATIAL || !any_uses(view, region, block->iters[i].var))
            continue;
        if (ir_prove_equal(view->facts, block->iters[i].extent, ir_int(view->cx, 1)))
            base_map_put(view->cx, &single->vars, block->iters[i].var, ir_int(view->cx, 0));
        else
            iter[n++] = i;
    }
    return n;
}

/* The layout of an access of one element, with the variables that index as its variables; the results are
 * put back to the numbers of the block's iteration variables, where NULL stands for a variable that does not
 * index. An index that is data has no inverse. */
bool tree_invert_read(const tree_view *view, const ir_block *block, const ir_region *region,
                      tree_layout *layout)
{
    int n = region->buffer->n, *iter = base_array(view->cx, int, block->n_iters);
    const ir_expr **var = base_array(view->cx, const ir_expr *, block->n_iters),
                  **extent = base_array(view->cx, const ir_expr *, block->n_iters),
                  **index = base_array(view->cx, const ir_expr *, n),
                  **value = base_array(view->cx, const ir_expr *, block->n_iters),
                  **most = base_array(view->cx, const ir_expr *, block->n_iters);
    ir_subst single = {0};
    const char *reason;

    int n_vars = list_vars(view, block, region, iter, &single);
    for (int i = 0; i < n_vars; i++) {
        var[i] = block->iters[iter[i]].var;
        extent[i] = block->iters[iter[i]].extent;
    }
    for (int d = 0; d < n; d++) {
        if (!ir_is_value(region->extent[d], 1) || (region->min[d]->has & IR_HAS_LOAD))
            return false;
        index[d] = ir_apply(view->cx, &single, region->min[d]);
    }
    if (!tree_read_layout(view->facts, var, extent, n_vars, index, region->buffer->shape, n, layout, &reason))
        return false;
    for (int i = 0; i < n_vars; i++) {
        value[iter[i]] = layout->var[i];
        most[iter[i]] = layout->extent[i];
    }
    layout->var = value;
    layout->extent = most;
    return true;
}

/* Variable index alone moves dimension dim of the box, by at least the width that the box has there. */
static bool moves_apart(const tree_view *view, const ir_block *block, const ir_region *written, int index,
                        int dim)
{
    const ir_expr *rest;
    int64_t step;

    if (!ir_linear(view->facts, written->min[dim], &block->iters[index].var, 1, &step, &rest) ||
        !ir_prove_le(view->facts, written->extent[dim], ir_int(view->cx, step < 0 ? -step : step)))
        return false;
    for (int j = 0; j < block->n_iters; j++)
        if (ir_uses_var(view->cx, rest, block->iters[j].var))
            return false;
    return true;
}

/* Each spatial variable of more than one value has a dimension that it moves apart: the boxes of two
 * instances do not meet. */
static bool boxes_apart(const tree_view *view, const ir_block *block, const ir_region *written)
{
    for (int i = 0; i < block->n_iters; i++) {
        bool apart = block->iters[i].kind != IR_SPATIAL ||
                     ir_prove_equal(view->facts, block->iters[i].extent, ir_int(view->cx, 1));

        for (int d = 0; !apart && d < written->buffer->n; d++)
            apart = moves_apart(view, block, written, i, d);
        if (!apart)
            return false;
    }
    return true;
}

bool tree_writes_once(const tree_view *view, const ir_block *block, const ir_region *written)
{
    tree_layout m;

    return boxes_apart(view, block, written) || tree_invert_store(view, block, written, &m);
}

/* The variables run further than the domain of the block: the elements of these points are nobody's. */
bool tree_is_padded(const tree_view *view, const ir_block *block, const tree_layout *layout)
{
    for (int i = 0; i < block->n_iters; i++)
        if (layout->extent[i] && !ir_prove_equal(view->facts, layout->extent[i], block->iters[i].extent))
            return true;
    return false;
}

/* Stricter than a read: a spatial variable that indexes nothing writes the same element once for each of its
 * values, and then no element tells its writer. */
bool tree_invert_store(const tree_view *view, const ir_block *block, const ir_region *written,
                       tree_layout *layout)
{
    if (!tree_invert_read(view, block, written, layout))
        return false;
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_SPATIAL && !layout->var[i] &&
            !ir_prove_equal(view->facts, block->iters[i].extent, ir_int(view->cx, 1)))
            return false;
    return true;
}
