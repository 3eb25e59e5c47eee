/* tree/fill.c -- which elements the instances of a block write: whether a box is filled, whether distinct
 * instances have their own.
 *
 *     for i in 0..4 { for j in 0..8 { block P(v = i*8 + j) writes P[v] } }
 *         with i standing still: all of P[i*8:+8]
 *
 * All answers are proofs: "no" means that the fact was not proven. They rest on the iterator map
 * (ir/reason/itermap.h) from the inner loops, under the predicate, to the elements: through the store's own
 * map, which may be a layout. Points outside a block's domain are no instances and count as filled.
 *
 *     for a in 0..3 { for b in 0..4 { block Q(y = i*12 + a*4 + b in 0..n) where y < n && a*4 + b < 10 } }
 *
 * The box of Q with i standing still is Q[i*12:+10]. Its spatial binding, less the minimum, is a*4 + b: a
 * bijection from 3 x 4 points onto 0..12, and under `a*4 + b < 10` onto 0..10, which is the box. `y < n`
 * only keeps Q in its domain and is left out: what it skips does not exist. Had the condition been `b < 3`,
 * the map would miss every fourth element, and who relied on the box would read what was never written.
 * Loops that reduce are left out, since each of their iterations writes the same elements; all others must
 * run at least once where the box has elements.
 */
#include "ir/reason/facts.h"
#include "ir/reason/itermap.h"
#include "tree/touch.h"

/* expr is a variable, or a variable and a constant. */
static const ir_expr *shifted_variable(const ir_expr *expr, int64_t *shift)
{
    *shift = 0;
    if (expr->op == IR_ADD && ir_is_int(expr->arg[1], shift))
        expr = expr->arg[0];
    return expr->op == IR_VAR ? expr : NULL;
}

/* The spatial or scan variable that index d of a written box is, up to a constant; -1: something else. */
static int written_iter(const ir_block *block, const ir_region *written, int d)
{
    int64_t shift;
    const ir_expr *var =
        ir_is_value(written->extent[d], 1) ? shifted_variable(written->min[d], &shift) : NULL;

    for (int i = 0; var && i < block->n_iters; i++)
        if (block->iters[i].var == var &&
            (block->iters[i].kind == IR_SPATIAL || block->iters[i].kind == IR_SCAN))
            return i;
    return -1;
}

int64_t tree_store_shift(const ir_region *written, int d)
{
    int64_t shift;

    shifted_variable(written->min[d], &shift);
    return shift;
}

/* The same element in all instances. */
static bool is_one_element(tec_context *cx, const ir_block *block, const ir_region *written, int d)
{
    for (int i = 0; i < block->n_iters; i++)
        if (ir_uses_var(cx, written->min[d], block->iters[i].var))
            return false;
    return ir_is_value(written->extent[d], 1);
}

/* Plain stores: C[y, x + 1] with dim_of[y] = 0 and dim_of[x] = 1. False for C[y, y] (the second dimension
 * has no variable of its own), for C[y*2] (no shifted variable) and for C[y] by a block with a spatial x in
 * 0..8 (eight instances write one element). */
bool tree_store_dims(const tree_view *view, const ir_block *block, const ir_region *written, int *dim_of)
{
    for (int i = 0; i < block->n_iters; i++)
        dim_of[i] = -1;
    for (int d = 0; d < written->buffer->n; d++) {
        int i = written_iter(block, written, d);

        if (i >= 0 && dim_of[i] < 0)
            dim_of[i] = d;
        else if (!is_one_element(view->cx, block, written, d))
            return false;
    }
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_SPATIAL && dim_of[i] < 0 &&
            !ir_prove_equal(view->facts, block->iters[i].extent, ir_int(view->cx, 1)))
            return false;
    return true;
}

/* How a block's spatial variables index what it writes: as they are, or through a layout. */
typedef struct {
    const ir_region *access;
    bool plain;
    const int *dim_of; /* plain: as of tree_store_dims */
    tree_layout layout;
    bool *used; /* iteration variables that index */
} store_map;

/* First the plain form, which nearly all blocks have; then a layout, which takes the iterator map. */
static bool read_store(const tree_view *view, const ir_block *block, const ir_region *written, store_map *map)
{
    int *dim_of = base_array(view->cx, int, block->n_iters);

    *map = (store_map){.access = written,
                       .plain = tree_store_dims(view, block, written, dim_of),
                       .dim_of = dim_of,
                       .used = base_array(view->cx, bool, block->n_iters)};
    if (!map->plain && !tree_invert_store(view, block, written, &map->layout))
        return false;
    for (int i = 0; i < block->n_iters; i++)
        map->used[i] = map->plain ? dim_of[i] >= 0 : map->layout.var[i] != NULL;
    return true;
}

/* The spatial part of a block's bindings over its inner loops. */
typedef struct {
    const ir_expr **bind, **dom, **loop, **extent;
    int n, n_loops;
    const ir_expr *where;
    bool unclear;
} spatial_map;

static bool any_mentions(tec_context *cx, const ir_expr *const *expr, int n, const ir_expr *var)
{
    for (int i = 0; i < n; i++)
        if (ir_uses_var(cx, expr[i], var))
            return true;
    return false;
}

/* Which loops a condition is about. */
typedef struct {
    /* others: inner loops that neither reduce nor occur in the spatial bindings */
    bool outer, reduces, spatial, others;
} condition_loops;

/* Sorts the loops that the condition uses: those that stand still, those that move along elements, those
 * that reduce, and those that do neither (they repeat the same elements). */
static condition_loops loops_of(const tree_view *view, const tree_site *site, const ir_expr *expr, int fixed,
                                const spatial_map *map)
{
    condition_loops about = {0};

    for (int j = 0; j < site->n_loops; j++) {
        const ir_expr *var = site->loop[j]->loop.var;

        if (!ir_uses_var(view->cx, expr, var))
            continue;
        if (j < fixed)
            about.outer = true;
        else if (any_mentions(view->cx, map->bind, map->n, var))
            about.spatial = true;
        else if (tree_kind_for(view->cx, site, var) == IR_REDUCE_ITER)
            about.reduces = true;
        else
            about.others = true;
    }
    return about;
}

/* Conjuncts without an inner loop of the spatial variables guard updates, or single out one of many equal
 * runs, but not the first write; those over the outer loops alone decide whether the block runs at all, which
 * runs_with looks at. A mixture of the two may leave iterations of the outer loops without any run:
 * map->unclear. */
static const ir_expr *spatial_guards(const tree_view *view, const tree_site *site, const ir_expr *where,
                                     int fixed, spatial_map *map)
{
    const ir_expr *kept = NULL;
    base_vec all = {0};

    ir_conjuncts(view->cx, where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        condition_loops about = loops_of(view, site, all.at[i], fixed, map);

        if (about.spatial)
            kept = ir_all(view->cx, kept, all.at[i]);
        else if (about.others && (about.outer || about.reduces))
            map->unclear = true;
    }
    return kept;
}

/* A binding, counted from `min` where there is one, that must count through `extent` values. */
static void add_spatial(const tree_view *view, const ir_facts *facts, spatial_map *map, const ir_expr *bind,
                        const ir_expr *min, const ir_expr *extent)
{
    map->bind[map->n] = min ? ir_simplify(facts, ir_sub(view->cx, bind, min)) : bind;
    map->dom[map->n++] = extent;
}

/* The indices, counted from the corner of the box. A mask only permutes whole runs of its unit. A dimension
 * of which the box has one element, the one that is written, has nothing to count: S[i, j ^ (i % 8)] with i
 * and j standing still. */
static void layout_part(const tree_view *view, const tree_site *site, const store_map *store,
                        const ir_region *box, const ir_facts *facts, spatial_map *self)
{
    const tree_layout *layout = &store->layout;
    ir_subst map = tree_bindings(view->cx, site);

    for (int d = 0; d < layout->n; d++) {
        const ir_expr *unit = ir_int(view->cx, layout->unit[d]), *zero = ir_int(view->cx, 0);

        if (ir_is_value(box->extent[d], 1) &&
            ir_prove_equal(facts, tree_stored_at(view->cx, site, store->access, d), box->min[d]))
            continue;
        if (layout->mask[d] && !(ir_prove_equal(facts, ir_floormod(view->cx, box->min[d], unit), zero) &&
                                 ir_prove_equal(facts, ir_floormod(view->cx, box->extent[d], unit), zero)))
            self->unclear = true;
        add_spatial(view, facts, self, ir_apply(view->cx, &map, layout->index[d]), box->min[d],
                    box->extent[d]);
    }
}

/* A loop that is all of a variable may run on as far as the layout is padded: those points are no
 * instances. */
static const ir_expr *padded_extent(const tree_site *site, const ir_stmt *loop, const store_map *store)
{
    for (int i = 0; i < site->block->n_iters && !store->plain; i++)
        if (store->used[i] && site->stmt->block.bind[i] == loop->loop.var &&
            ir_same(loop->loop.extent, site->block->iters[i].extent))
            return store->layout.extent[i];
    return loop->loop.extent;
}

/* The box NULL: the variables as they are. */
static spatial_map spatial_part(const tree_view *view, const tree_site *site, const ir_expr *where,
                                const store_map *store, const ir_region *box, int fixed)
{
    const ir_block *block = site->block;
    const ir_facts *facts = tree_site_facts(view, site, fixed);
    int most = block->n_iters + (box ? box->buffer->n : 0);
    spatial_map m = {0};

    m.bind = base_array(view->cx, const ir_expr *, most);
    m.dom = base_array(view->cx, const ir_expr *, most);
    m.loop = base_array(view->cx, const ir_expr *, site->n_loops);
    m.extent = base_array(view->cx, const ir_expr *, site->n_loops);
    for (int i = 0; i < block->n_iters; i++) {
        int d = store->dim_of[i];

        if (store->used[i] && !box)
            add_spatial(view, facts, &m, site->stmt->block.bind[i], NULL, block->iters[i].extent);
        else if (store->plain && d >= 0)
            add_spatial(view, facts, &m, tree_stored_at(view->cx, site, store->access, d), box->min[d],
                        box->extent[d]);
    }
    if (box && !store->plain)
        layout_part(view, site, store, box, facts, &m);
    m.where = spatial_guards(view, site, where, fixed, &m);
    for (int j = fixed; j < site->n_loops; j++)
        if (any_mentions(view->cx, m.bind, m.n, site->loop[j]->loop.var) ||
            ir_uses_var(view->cx, m.where, site->loop[j]->loop.var)) {
            m.loop[m.n_loops] = site->loop[j]->loop.var;
            m.extent[m.n_loops++] =
                box ? padded_extent(site, site->loop[j], store) : site->loop[j]->loop.extent;
        }
    return m;
}

/* The map from the inner loops to the box reaches each of its elements at least once. */
static bool onto_box(const tree_view *view, const tree_site *site, const ir_expr *where,
                     const store_map *store, const ir_region *box, int fixed)
{
    spatial_map m = spatial_part(view, site, where, store, box, fixed);
    ir_iter_map map;

    return !m.unclear && ir_iter_map_detect(tree_site_facts(view, site, fixed), m.loop, m.extent, m.n_loops,
                                            m.bind, m.dom, m.n, m.where, &map);
}

/* Some inner loop of this variable's binding occurs in that of another one. */
static bool shares_loops(const tree_view *view, const tree_site *site, int iter, int fixed)
{
    const ir_expr *const *bind = site->stmt->block.bind;

    for (int j = fixed; j < site->n_loops; j++)
        for (int i = 0; i < site->block->n_iters; i++)
            if (i != iter && ir_uses_var(view->cx, bind[iter], site->loop[j]->loop.var) &&
                ir_uses_var(view->cx, bind[i], site->loop[j]->loop.var))
                return true;
    return false;
}

/* Where the inner loops of a variable of one value are at 0, it has that value, and no condition on them
 * keeps the block from running: a split of such a loop, guarded, runs once. */
static bool runs_at_zero(const tree_view *view, const tree_site *site, int iter, int fixed)
{
    const ir_facts *facts = tree_site_facts(view, site, fixed);
    const ir_expr *bind = site->stmt->block.bind[iter];
    ir_subst zeros = {0};
    base_vec conditions = {0};

    if (shares_loops(view, site, iter, fixed))
        return false;
    for (int j = fixed; j < site->n_loops; j++)
        if (ir_uses_var(view->cx, bind, site->loop[j]->loop.var))
            base_map_put(view->cx, &zeros.vars, site->loop[j]->loop.var, ir_int(view->cx, 0));
    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &conditions);
    for (int i = 0; i < conditions.n; i++) {
        const ir_expr *there = ir_apply(view->cx, &zeros, conditions.at[i]);

        if (there != conditions.at[i] && !ir_prove(facts, there))
            return false;
    }
    return ir_prove_equal(facts, ir_apply(view->cx, &zeros, bind), ir_int(view->cx, 0));
}

/* Variables of one value, which index nothing, have it: where a tile of them lies outside the domain, nothing
 * runs. */
static bool single_values_hold(const tree_view *view, const tree_site *site, const store_map *store,
                               int fixed)
{
    const ir_expr *guard = tree_outer_guard(view, site, fixed);
    ir_facts *facts = ir_facts_new(view->cx, tree_site_facts(view, site, site->n_loops));

    if (guard)
        ir_facts_assume(facts, guard);
    for (int i = 0; i < site->block->n_iters; i++)
        if (!store->used[i] && site->block->iters[i].kind == IR_SPATIAL &&
            !ir_prove_equal(facts, site->stmt->block.bind[i], ir_int(view->cx, 0)) &&
            !runs_at_zero(view, site, i, fixed))
            return false;
    return true;
}

/* Most loops: there is nothing to prove. */
static bool all_count(const tree_site *site, int fixed)
{
    int64_t n;

    for (int j = fixed; j < site->n_loops; j++)
        if (!ir_is_int(site->loop[j]->loop.extent, &n) || n < 1)
            return false;
    return true;
}

/* Where the box has elements, the loops run at least once, unless they only reduce: an empty reduction
 * initialises. */
static bool loops_run(const tree_view *view, const tree_site *site, const store_map *store,
                      const ir_region *box, int fixed)
{
    ir_facts *facts = ir_facts_new(view->cx, tree_site_facts(view, site, fixed));
    const ir_expr *one = ir_int(view->cx, 1);

    if (all_count(site, fixed))
        return true;
    for (int d = 0; d < box->buffer->n; d++) {
        if (ir_prove_lt(facts, box->extent[d], one))
            return true;
        ir_facts_assume(facts, ir_le(view->cx, one, box->extent[d]));
    }
    for (int j = fixed; j < site->n_loops; j++) {
        const ir_stmt *l = site->loop[j];
        bool reduces = tree_kind_for(view->cx, site, l->loop.var) == IR_REDUCE_ITER;

        for (int i = 0; reduces && i < site->block->n_iters; i++)
            reduces = !(store->used[i] && ir_uses_var(view->cx, site->stmt->block.bind[i], l->loop.var));
        if (!reduces && !ir_prove_le(facts, one, l->loop.extent))
            return false;
        tree_know_loop(facts, l->loop.var, l->loop.extent, reduces);
    }
    return true;
}

/* The box ends within the domain of the iteration variable. */
static bool ends_inside(const tree_view *view, const tree_site *site, const store_map *store,
                        const ir_region *box, int iter, int fixed)
{
    int d = store->dim_of[iter];
    const ir_expr *end = ir_add(view->cx, site->block->iters[iter].extent,
                                ir_int(view->cx, tree_store_shift(store->access, d)));

    return ir_prove_le(tree_site_facts(view, site, fixed), ir_add(view->cx, box->min[d], box->extent[d]),
                       end);
}

/* The predicate without the conjuncts that cut a dimension of the box at the end of the domain: of the box
 * [4*i:+4, 0:n] written by `view = i*4 + a where view < 10 && w = b*8 + c < n`, only w < n is left. */
static const ir_expr *cuts_of_box(const tree_view *view, const tree_site *site, const store_map *store,
                                  const ir_region *box, const ir_expr *guards, int fixed)
{
    base_vec all = {0};
    const ir_expr *kept = guards;

    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool inside = true;

        for (int k = 0; inside && k < site->block->n_iters; k++)
            for (int j = fixed; inside && j < site->n_loops && store->dim_of[k] >= 0; j++)
                if (ir_uses_var(view->cx, site->stmt->block.bind[k], site->loop[j]->loop.var) &&
                    ir_uses_var(view->cx, all.at[i], site->loop[j]->loop.var))
                    inside = ends_inside(view, site, store, box, k, fixed);
        if (inside)
            kept = ir_all(view->cx, kept, all.at[i]);
    }
    return kept;
}

/* The block touches one element at a time. A block of blocks touches a box, and its own map says nothing of
 * what happens in there. */
static bool is_point(const ir_region *access)
{
    for (int d = 0; d < access->buffer->n; d++)
        if (!ir_is_value(access->extent[d], 1))
            return false;
    return true;
}

/* The iteration variable that index d uses and no other index does, the only one that it uses; -1: none. */
static int only_iter(const tree_view *view, const ir_block *block, const ir_region *access, int d)
{
    int found = -1;

    for (int i = 0; i < block->n_iters; i++) {
        if (!ir_uses_var(view->cx, access->min[d], block->iters[i].var))
            continue;
        if (found >= 0 || block->iters[i].kind != IR_SPATIAL)
            return -1;
        found = i;
    }
    for (int k = 0; found >= 0 && k < access->buffer->n; k++)
        if (k != d && ir_uses_var(view->cx, access->min[k], block->iters[found].var))
            return -1;
    return found;
}

/* Elements may be numbered in any way, as long as one stays one. In a rolling buffer, with y standing still,
 *
 *     block P(y in 0..9, x) writes P[y % 3, x],  box P[y % 3 : +1, 0:8]
 *
 * is the same question as that of writes P[y, x] and the box P[y : +1, 0:8], which has a plain answer. False:
 * nothing is numbered so. */
static bool renumber(const tree_view *view, const tree_site *site, int fixed, ir_region *access,
                     ir_region *box)
{
    int n = access->buffer->n;
    const ir_expr **index = base_copy(view->cx, access->min, (size_t)n * sizeof *index),
                  **min = base_copy(view->cx, box->min, (size_t)n * sizeof *min);
    const ir_facts *facts = tree_site_facts(view, site, fixed);
    int64_t shift;
    bool changed = false;

    for (int d = 0; d < n; d++) {
        int i = shifted_variable(index[d], &shift) ? -1 : only_iter(view, site->block, access, d);

        if (i < 0 || !ir_is_value(box->extent[d], 1) ||
            !ir_prove_equal(facts, tree_stored_at(view->cx, site, access, d), box->min[d]))
            continue;
        index[d] = site->block->iters[i].var;
        min[d] = site->stmt->block.bind[i];
        changed = true;
    }
    access->min = index;
    box->min = min;
    return changed;
}

/* The element tells the variable even of a value outside of its domain: (v//3, v%3) does of all integers,
 * while y*4 + x does of y and x only as long as x is less than 4. */
static bool inverts_anywhere(const tree_view *view, const ir_block *block, const tree_layout *layout,
                             int iter)
{
    ir_subst at_index = {0};

    for (int d = 0; d < layout->n; d++) {
        if (layout->mask[d])
            return false;
        base_map_put(view->cx, &at_index.vars, layout->point[d], layout->index[d]);
    }
    return ir_prove_equal(view->facts, ir_apply(view->cx, &at_index, layout->var[iter]),
                          block->iters[iter].var);
}

/* What tiles reach over the domain is no element that the box has of another instance. So it is where each
 * variable has a dimension of its own. In a layout the variable may run up to what fills the padding:
 * S[y*4 + x] at x = 4 is an element of the next y. */
static bool ends_nowhere(const tree_view *view, const tree_site *site, const store_map *store)
{
    const ir_facts *facts = tree_site_facts(view, site, site->n_loops);

    for (int i = 0; i < site->block->n_iters && !store->plain; i++)
        if (store->used[i] && !ir_prove_lt(facts, site->stmt->block.bind[i], store->layout.extent[i]) &&
            !inverts_anywhere(view, site->block, &store->layout, i))
            return false;
    return true;
}

/* Tiles may reach over the domain, where nothing is; or the predicate may cut them to the box exactly; or
 * both, in different dimensions. */
static bool fills_box(const tree_view *view, const tree_site *site, const ir_region *access,
                      const ir_region *box, int fixed)
{
    const ir_expr *where = site->stmt->block.where, *guards = tree_loop_guards(view, site);
    store_map store;

    if (!read_store(view, site->block, access, &store) || !loops_run(view, site, &store, box, fixed) ||
        !single_values_hold(view, site, &store, fixed))
        return false;
    return ((guards == where || ends_nowhere(view, site, &store)) &&
            onto_box(view, site, guards, &store, box, fixed)) ||
           (guards != where &&
            (onto_box(view, site, where, &store, box, fixed) ||
             (store.plain && onto_box(view, site, cuts_of_box(view, site, &store, box, guards, fixed), &store,
                                      box, fixed))));
}

/* Blocks of blocks are taken apart; then the store as it stands, and with its elements renumbered. */
bool tree_touches_whole_box(const tree_view *view, const tree_site *site, const ir_region *access,
                            const ir_region *box, int fixed)
{
    ir_region point = *access, part = *box;

    if (!is_point(access)) {
        const tree_site *unfolded = tree_unfold(view, site, access->buffer, &point);

        return unfolded && tree_touches_whole_box(view, unfolded, &point, box, fixed);
    }
    if (site->branches)
        return false;
    return fills_box(view, site, access, box, fixed) ||
           (renumber(view, site, fixed, &point, &part) && fills_box(view, site, &point, &part, fixed));
}

/* Of all bindings, reduce ones included: a rewrite that keeps this runs no term of a sum twice. */
bool tree_injective(const tree_view *view, const tree_site *site, int fixed, const char **reason)
{
    const ir_block *block = site->block;
    const ir_facts *facts = tree_site_facts(view, site, fixed);
    ir_ranges inner = tree_inner_ranges(view->cx, site, fixed);
    const ir_expr **dom = base_array(view->cx, const ir_expr *, block->n_iters);
    ir_iter_map m;

    for (int i = 0; i < block->n_iters; i++)
        dom[i] = block->iters[i].extent;
    ir_iter_map_detect(facts, inner.var, inner.extent, inner.n, site->stmt->block.bind, dom, block->n_iters,
                       site->stmt->block.where, &m);
    if (m.injective)
        return true;
    *reason = m.reason;
    return false;
}

/* The conjuncts over loops of the spatial bindings alone. */
static const ir_expr *purely_spatial(const tree_view *view, const tree_site *site, int fixed,
                                     const spatial_map *map)
{
    const ir_expr *kept = NULL;
    base_vec all = {0};

    ir_conjuncts(view->cx, site->stmt->block.where, IR_KEEP_LIKELY, &all);
    for (int i = 0; i < all.n; i++) {
        bool pure = true;

        for (int j = fixed; j < site->n_loops; j++) {
            const ir_expr *var = site->loop[j]->loop.var;
            pure = pure &&
                   (any_mentions(view->cx, map->bind, map->n, var) || !ir_uses_var(view->cx, all.at[i], var));
        }
        if (pure)
            kept = ir_all(view->cx, kept, all.at[i]);
    }
    return kept;
}

/* The spatial bindings take distinct values at distinct points of the loops that they use, from loop `first`
 * on. */
static bool distinct_from(const tree_view *view, const tree_site *site, const store_map *store,
                          const ir_expr *var, int first)
{
    spatial_map m = spatial_part(view, site, NULL, store, NULL, first);
    ir_iter_map map;

    if (!any_mentions(view->cx, m.bind, m.n, var))
        return false;
    ir_iter_map_detect(tree_site_facts(view, site, first), m.loop, m.extent, m.n_loops, m.bind, m.dom, m.n,
                       purely_spatial(view, site, first, &m), &map);
    return map.bijective || map.injective;
}

/* The spatial bindings tell this loop's variable: with the outer loops fixed, or, where a fused loop was
 * split across them, with some or all of these in view. An example, where b and f.0 stand around f.1:
 *
 *     P[b * 32 + (f.0 * 256 + f.1) % 34]   f.0 * 256 + f.1 < 340
 *
 * With f.1 alone in view, the condition cuts it at a place that is not known. With all in view, 34 elements
 * from b * 32 on and those of the next b overlap. With b fixed, f.0 and f.1 tell the element.
 */
bool tree_digits_apart(const tree_view *view, const tree_site *site, const ir_region *access,
                       const ir_expr *var, int depth)
{
    store_map store;

    if (!read_store(view, site->block, access, &store))
        return false;
    for (int first = depth - 1; first >= 0; first--)
        if (distinct_from(view, site, &store, var, first))
            return true;
    return false;
}
