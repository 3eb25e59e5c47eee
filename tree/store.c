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
static int64_t unit_of(const ir_facts *f, const ir_expr *mask, const ir_expr *shape)
{
    ir_interval b = ir_bounds(f, mask);
    int64_t unit = 1;

    while (b.min >= 0 && unit <= b.max && unit < MAX_UNIT)
        unit *= 2;
    if (b.min < 0 || unit <= b.max)
        return 0;
    const ir_expr *rest = ir_floormod(ir_facts_context(f), shape, ir_int(ir_facts_context(f), unit));
    return ir_is_value(ir_simplify(f, rest), 0) ? unit : 0;
}

/* index[d] = a ^ mask becomes a; of two operands that could be the mask, the second is it. What has none is
 * left to the iterator map, which refuses it. */
static void take_mask(const ir_facts *f, tree_layout *m, int d, const ir_expr *shape)
{
    const ir_expr *e = m->index[d];

    for (int k = 1; e->op == IR_BITXOR && k >= 0; k--) {
        int64_t unit = unit_of(f, e->arg[k], shape);

        if (!unit)
            continue;
        m->mask[d] = e->arg[k];
        m->unit[d] = unit;
        m->index[d] = e->arg[1 - k];
        return;
    }
}

/* ---- padding ---- */

typedef struct {
    ir_walk w;
    const ir_expr *var;
    int64_t multiple;
} divisor_search;

static bool look_for_divisor(ir_walk *w, const ir_expr *e)
{
    divisor_search *x = (divisor_search *)w;
    int64_t c;

    if ((e->op == IR_FLOORDIV || e->op == IR_FLOORMOD) && ir_is_int(e->arg[1], &c) && c > 0 &&
        c <= MAX_UNIT && ir_uses_var(w->cx, e->arg[0], x->var)) {
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
static const ir_expr *rounded(const ir_facts *f, const ir_expr *var, const ir_expr *extent,
                              const ir_expr *const *index, int n)
{
    tec_context *cx = ir_facts_context(f);
    divisor_search x = {.w = {.cx = cx, .expr = look_for_divisor}, .var = var, .multiple = 1};

    for (int d = 0; d < n; d++)
        ir_walk_expr(&x.w, index[d]);
    const ir_expr *by = ir_int(cx, x.multiple);
    return ir_simplify(f, ir_mul(cx, ir_ceildiv(cx, extent, by), by));
}

/* ---- the inverse ---- */

static bool resolved(tec_context *cx, const ir_expr *e, const tree_layout *m, const bool *known,
                     const ir_expr *const *plain)
{
    for (int d = 0; d < m->n; d++)
        if (!known[d] && ir_uses_var(cx, e, plain[d]))
            return false;
    return true;
}

/* plain[d] stands for the index without its mask; value[d] becomes it, over the point. False where masks
 * follow from one another. */
static bool undo_masks(const ir_facts *f, const tree_layout *m, const ir_expr *const *plain,
                       const ir_subst *vars, ir_subst *value)
{
    tec_context *cx = ir_facts_context(f);
    bool *known = base_array(cx, bool, m->n);

    for (int d = 0; d < m->n; d++)
        if (!m->mask[d]) {
            base_map_put(cx, &value->vars, plain[d], m->point[d]);
            known[d] = true;
        }
    for (int round = 0; round < m->n; round++)
        for (int d = 0; d < m->n; d++) {
            const ir_expr *mask = known[d] ? NULL : ir_apply(cx, vars, m->mask[d]);

            if (known[d] || !resolved(cx, mask, m, known, plain))
                continue;
            base_map_put(cx, &value->vars, plain[d],
                         ir_bitxor(cx, m->point[d], ir_simplify(f, ir_apply(cx, value, mask))));
            known[d] = true;
        }
    for (int d = 0; d < m->n; d++)
        if (!known[d])
            return false;
    return true;
}

static bool invert(const ir_facts *f, const ir_iter_map *map, const ir_expr *const *var, int n_vars,
                   tree_layout *m)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr **plain = base_array(cx, const ir_expr *, m->n),
                  **out = base_array(cx, const ir_expr *, n_vars);
    ir_subst vars = {0}, value = {0};

    for (int d = 0; d < m->n; d++) {
        m->point[d] = ir_var(cx, base_format(cx, "p%d", d), BASE_I64);
        plain[d] = ir_var(cx, base_format(cx, "q%d", d), BASE_I64);
    }
    if (!ir_iter_map_inverse(f, map, plain, var, n_vars, out))
        return false;
    for (int i = 0; i < n_vars; i++)
        base_map_put(cx, &vars.vars, var[i], out[i]);
    if (!undo_masks(f, m, plain, &vars, &value))
        return false;
    for (int i = 0; i < n_vars; i++)
        m->var[i] = ir_apply(cx, &value, out[i]);
    return true;
}

bool tree_read_layout(const ir_facts *outer, const ir_expr *const *var, const ir_expr *const *extent,
                      int n_vars, const ir_expr *const *index, const ir_expr *const *shape, int n,
                      tree_layout *m, const char **reason)
{
    tec_context *cx = ir_facts_context(outer);
    ir_facts *f = ir_facts_new(cx, outer);
    ir_iter_map map;

    *m = (tree_layout){.n = n,
                       .index = base_array(cx, const ir_expr *, n),
                       .mask = base_array(cx, const ir_expr *, n),
                       .unit = base_array(cx, int64_t, n),
                       .point = base_array(cx, const ir_expr *, n),
                       .extent = base_array(cx, const ir_expr *, n_vars),
                       .var = base_array(cx, const ir_expr *, n_vars)};
    for (int i = 0; i < n_vars; i++)
        ir_facts_range(f, var[i], ir_int(cx, 0), extent[i]);
    for (int d = 0; d < n; d++) {
        m->index[d] = index[d];
        take_mask(f, m, d, shape[d]);
    }
    for (int i = 0; i < n_vars; i++)
        m->extent[i] = rounded(outer, var[i], extent[i], m->index, n);
    if (!ir_iter_map_detect(outer, var, m->extent, n_vars, m->index, shape, n, NULL, &map)) {
        const char *padded = map.reason;

        /* for a reason in the caller's numbers */
        ir_iter_map_detect(outer, var, extent, n_vars, m->index, shape, n, NULL, &map);
        *reason = map.reason ? map.reason : padded;
        return false;
    }
    if (invert(outer, &map, var, n_vars, m))
        return true;
    *reason = "its swizzles follow from one another";
    return false;
}

/* ---- accesses of blocks ---- */

static bool any_uses(const tree_view *v, const ir_region *r, const ir_expr *var)
{
    for (int d = 0; d < r->buffer->n; d++)
        if (ir_uses_var(v->cx, r->min[d], var))
            return true;
    return false;
}

/* The spatial variables that index; those of one value are 0 instead. */
static int list_vars(const tree_view *v, const ir_block *b, const ir_region *r, int *iter, ir_subst *single)
{
    int n = 0;

    for (int i = 0; i < b->n_iters; i++) {
        if (b->iters[i].kind != IR_SPATIAL || !any_uses(v, r, b->iters[i].var))
            continue;
        if (ir_prove_equal(v->facts, b->iters[i].extent, ir_int(v->cx, 1)))
            base_map_put(v->cx, &single->vars, b->iters[i].var, ir_int(v->cx, 0));
        else
            iter[n++] = i;
    }
    return n;
}

bool tree_invert_read(const tree_view *v, const ir_block *b, const ir_region *r, tree_layout *m)
{
    int n = r->buffer->n, *iter = base_array(v->cx, int, b->n_iters);
    const ir_expr **var = base_array(v->cx, const ir_expr *, b->n_iters),
                  **extent = base_array(v->cx, const ir_expr *, b->n_iters),
                  **index = base_array(v->cx, const ir_expr *, n),
                  **value = base_array(v->cx, const ir_expr *, b->n_iters),
                  **most = base_array(v->cx, const ir_expr *, b->n_iters);
    ir_subst single = {0};
    const char *reason;

    int n_vars = list_vars(v, b, r, iter, &single);
    for (int i = 0; i < n_vars; i++) {
        var[i] = b->iters[iter[i]].var;
        extent[i] = b->iters[iter[i]].extent;
    }
    for (int d = 0; d < n; d++) {
        if (!ir_is_value(r->extent[d], 1) || (r->min[d]->has & IR_HAS_LOAD))
            return false;
        index[d] = ir_apply(v->cx, &single, r->min[d]);
    }
    if (!tree_read_layout(v->facts, var, extent, n_vars, index, r->buffer->shape, n, m, &reason))
        return false;
    for (int i = 0; i < n_vars; i++) {
        value[iter[i]] = m->var[i];
        most[iter[i]] = m->extent[i];
    }
    m->var = value;
    m->extent = most;
    return true;
}

/* Variable i alone moves dimension d of the box, by at least the width that the box has there. */
static bool moves_apart(const tree_view *v, const ir_block *b, const ir_region *w, int i, int d)
{
    const ir_expr *rest;
    int64_t step;

    if (!ir_linear(v->facts, w->min[d], &b->iters[i].var, 1, &step, &rest) ||
        !ir_prove_le(v->facts, w->extent[d], ir_int(v->cx, step < 0 ? -step : step)))
        return false;
    for (int j = 0; j < b->n_iters; j++)
        if (ir_uses_var(v->cx, rest, b->iters[j].var))
            return false;
    return true;
}

/* Each spatial variable of more than one value has a dimension that it moves apart: the boxes of two
 * instances do not meet. */
static bool boxes_apart(const tree_view *v, const ir_block *b, const ir_region *w)
{
    for (int i = 0; i < b->n_iters; i++) {
        bool apart =
            b->iters[i].kind != IR_SPATIAL || ir_prove_equal(v->facts, b->iters[i].extent, ir_int(v->cx, 1));

        for (int d = 0; !apart && d < w->buffer->n; d++)
            apart = moves_apart(v, b, w, i, d);
        if (!apart)
            return false;
    }
    return true;
}

bool tree_writes_once(const tree_view *v, const ir_block *b, const ir_region *w)
{
    tree_layout m;

    return boxes_apart(v, b, w) || tree_invert_store(v, b, w, &m);
}

bool tree_is_padded(const tree_view *v, const ir_block *b, const tree_layout *m)
{
    for (int i = 0; i < b->n_iters; i++)
        if (m->extent[i] && !ir_prove_equal(v->facts, m->extent[i], b->iters[i].extent))
            return true;
    return false;
}

static bool is_foreign(const ir_block *b)
{
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_OPAQUE)
            return true;
    return false;
}

/* The elements that a writer may write: from start[d] to end[d]. */
typedef struct {
    const ir_expr **start; /* NULL: all of the buffer */
    const ir_expr **end;
} reach;

/* False where the block pads through a layout. */
static bool read_reach(const tree_view *v, const ir_block *b, const ir_region *w, reach *r)
{
    int *dim_of = base_array(v->cx, int, b->n_iters), n = w->buffer->n;
    tree_layout m;

    *r = (reach){NULL, NULL};
    for (int d = 0; d < n; d++)
        if (!ir_is_value(w->extent[d], 1))
            /* a foreign function writes all of its box; of a block of blocks it is not known */
            return is_foreign(b);
    if (!tree_plain_store(v, b, w, dim_of))
        return tree_invert_store(v, b, w, &m) && !tree_is_padded(v, b, &m);
    r->start = base_copy(v->cx, w->min, (size_t)n * sizeof *w->min);
    r->end = base_array(v->cx, const ir_expr *, n);
    for (int d = 0; d < n; d++)
        r->end[d] = ir_add(v->cx, w->min[d], ir_int(v->cx, 1));
    for (int i = 0; i < b->n_iters; i++)
        if (dim_of[i] >= 0) {
            r->start[dim_of[i]] = ir_int(v->cx, tree_store_shift(w, dim_of[i]));
            r->end[dim_of[i]] = ir_add(v->cx, b->iters[i].extent, r->start[dim_of[i]]);
        }
    return true;
}

static bool reaches_end(const tree_view *v, const reach *r, const ir_buffer *b, int d)
{
    return !r->end || ir_prove_equal(v->facts, r->end[d], b->shape[d]);
}

/* Where r ends, another writer begins, which reaches the end of all dimensions: r is the front part of a
 * buffer, as the first steps of a scan are. */
static bool is_continued(const tree_view *v, const reach *all, int n, const reach *r, const ir_buffer *b,
                         int d)
{
    for (int i = 0; i < n; i++) {
        bool whole = all[i].start && ir_prove_equal(v->facts, all[i].start[d], r->end[d]);

        for (int k = 0; whole && k < b->n; k++)
            whole = reaches_end(v, &all[i], b, k);
        if (whole)
            return true;
    }
    return false;
}

bool tree_leaves_padding(const tree_view *v, const ir_stmt *root, const ir_buffer *buffer)
{
    tree_sites all = tree_all_sites(v->cx, root);
    reach *writer = base_array(v->cx, reach, all.n);
    int n = 0;

    for (int i = 0; i < all.n; i++) {
        const ir_block *b = all.at[i].block;
        const ir_region *w = tree_access(b->writes, b->n_writes, buffer);

        if (w && (b->init || !tree_combiner(b)) && !read_reach(v, b, w, &writer[n++]))
            return true;
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; d < buffer->n; d++)
            if (!reaches_end(v, &writer[i], buffer, d) && !is_continued(v, writer, n, &writer[i], buffer, d))
                return true;
    return false;
}

bool tree_invert_store(const tree_view *v, const ir_block *b, const ir_region *w, tree_layout *m)
{
    if (!tree_invert_read(v, b, w, m))
        return false;
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_SPATIAL && !m->var[i] &&
            !ir_prove_equal(v->facts, b->iters[i].extent, ir_int(v->cx, 1)))
            return false;
    return true;
}
