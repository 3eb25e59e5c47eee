/* schedule/depend.c -- who touches what: boxes, coverage, private buffers, independence of iterations.
 *
 * All answers are proofs: "no" means that the fact was not proven. The order of a legal tree is what the proofs start from:
 * whatever is read was written before by what the definition requires. So an iteration of a loop can only be disturbed by
 * another one where an element crosses between them, and none does where
 * - the buffer is private to the loop: used below it only, and each iteration first writes all that it reads, or
 * - one block owns it: distinct iterations of that block write distinct elements, and everything else in an iteration stays
 * within what the
 *   owner writes in the same iteration.
 */
#include "ir/facts.h"
#include "schedule/state.h"

const ir_combiner *sched_combiner(const ir_block *b)
{
    const ir_stmt *s = b->body;

    while (s && (s->kind == IR_IF || s->kind == IR_LET_STMT))
        s = s->kind == IR_IF ? s->branch.then : s->let.body;
    return s && s->kind == IR_UPDATE ? s->update.combiner : NULL;
}

/* Whether instances of the block add to what others of it wrote. */
static bool accumulates(const ir_block *b)
{
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_REDUCE_ITER || b->iters[i].kind == IR_OPAQUE)
            return true;
    return sched_combiner(b) != NULL;
}

/* The reduction is whole inside the inner loops: init, and every reduce iteration variable free of the outer ones. */
static bool completes_inside(tec_context *cx, const sched_site *site, int fixed)
{
    if (!site->block->init)
        return false;
    for (int i = 0; i < site->block->n_iters; i++) {
        if (site->block->iters[i].kind != IR_SPATIAL && site->block->iters[i].kind != IR_REDUCE_ITER)
            return false;
        for (int j = 0; j < fixed && site->block->iters[i].kind == IR_REDUCE_ITER; j++)
            if (sched_mentions(cx, site->stmt->block.bind[i], site->loop[j]->loop.var))
                return false;
    }
    return true;
}

/* e is a variable, or a variable and a constant. */
static const ir_expr *shifted_variable(const ir_expr *e, int64_t *shift)
{
    *shift = 0;
    if (e->op == IR_ADD && ir_is_int(e->arg[1], shift))
        e = e->arg[0];
    return e->op == IR_VAR ? e : NULL;
}

/* The spatial or scan variable that index d of a written box is, up to a constant; -1: something else. */
static int written_iter(const ir_block *b, const ir_region *w, int d)
{
    int64_t shift;
    const ir_expr *var = ir_is_value(w->extent[d], 1) ? shifted_variable(w->min[d], &shift) : NULL;

    for (int i = 0; var && i < b->n_iters; i++)
        if (b->iters[i].var == var && (b->iters[i].kind == IR_SPATIAL || b->iters[i].kind == IR_SCAN))
            return i;
    return -1;
}

int64_t sched_store_shift(const ir_region *w, int d)
{
    int64_t shift;

    shifted_variable(w->min[d], &shift);
    return shift;
}

/* The same element in all instances. */
static bool is_one_element(tec_context *cx, const ir_block *b, const ir_region *w, int d)
{
    for (int i = 0; i < b->n_iters; i++)
        if (sched_mentions(cx, w->min[d], b->iters[i].var))
            return false;
    return ir_is_value(w->extent[d], 1);
}

bool sched_plain_store(const sched *s, const ir_block *b, const ir_region *w, int *dim_of)
{
    for (int i = 0; i < b->n_iters; i++)
        dim_of[i] = -1;
    for (int d = 0; d < w->buffer->n; d++) {
        int i = written_iter(b, w, d);

        if (i >= 0 && dim_of[i] < 0)
            dim_of[i] = d;
        else if (!is_one_element(s->cx, b, w, d))
            return false;
    }
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_SPATIAL && dim_of[i] < 0 && !ir_prove_equal(s->facts, b->iters[i].extent, ir_int(s->cx, 1)))
            return false;
    return true;
}

/* Whenever q runs, w does as far as their common `fixed` loops decide it. Points that w leaves out because they lie outside its
 * domain do not count. */
static bool runs_with(const sched *s, const sched_site *q, const sched_site *w, int fixed)
{
    base_vec outer = {0}, guards = {0};

    sched_outer_guards(s, w, fixed, &outer);
    if (outer.n == 0)
        return true;
    sched_conjuncts(s->cx, sched_loop_guards(s, w), &guards);
    for (int i = 0; i < outer.n; i++) {
        bool counts = false;

        for (int j = 0; j < guards.n; j++)
            counts = counts || guards.at[j] == outer.at[i];
        if (counts && !sched_has_guard(s, q, outer.at[i]))
            return false;
    }
    return true;
}

/* How a block's spatial variables index what it writes: as they are, or through a layout. */
typedef struct {
    const ir_region *access;
    bool plain;
    const int *dim_of; /* plain: as of sched_plain_store */
    sched_layout layout;
    bool *used; /* iteration variables that index */
} store_map;

static bool read_store(const sched *s, const ir_block *b, const ir_region *w, store_map *m)
{
    int *dim_of = base_array(s->cx, int, b->n_iters);

    *m = (store_map){
        .access = w, .plain = sched_plain_store(s, b, w, dim_of), .dim_of = dim_of, .used = base_array(s->cx, bool, b->n_iters)};
    if (!m->plain && !sched_invert_store(s, b, w, &m->layout))
        return false;
    for (int i = 0; i < b->n_iters; i++)
        m->used[i] = m->plain ? dim_of[i] >= 0 : m->layout.var[i] != NULL;
    return true;
}

/* The spatial part of a block's bindings over its inner loops. */
typedef struct {
    const ir_expr **bind, **dom, **loop, **extent;
    int n, n_loops;
    const ir_expr *where;
    bool unclear;
} spatial_map;

static bool any_mentions(tec_context *cx, const ir_expr *const *e, int n, const ir_expr *var)
{
    for (int i = 0; i < n; i++)
        if (sched_mentions(cx, e[i], var))
            return true;
    return false;
}

/* Which loops a condition is about. */
typedef struct {
    bool outer, reduces, spatial, others; /* others: inner loops that neither reduce nor occur in the spatial bindings */
} condition_loops;

static condition_loops loops_of(const sched *s, const sched_site *site, const ir_expr *e, int fixed, const spatial_map *m)
{
    condition_loops about = {0};

    for (int j = 0; j < site->n_loops; j++) {
        const ir_expr *var = site->loop[j]->loop.var;

        if (!sched_mentions(s->cx, e, var))
            continue;
        if (j < fixed)
            about.outer = true;
        else if (any_mentions(s->cx, m->bind, m->n, var))
            about.spatial = true;
        else if (sched_kind_for(s->cx, site, var) == IR_REDUCE_ITER)
            about.reduces = true;
        else
            about.others = true;
    }
    return about;
}

/* Conjuncts without an inner loop of the spatial variables guard updates, or single out one of many equal runs, but not the
 * first write; those over the outer loops alone decide whether the block runs at all, which runs_with looks at. A mixture of
 * the two may leave iterations of the outer loops without any run: m->unclear. */
static const ir_expr *spatial_guards(const sched *s, const sched_site *site, const ir_expr *where, int fixed, spatial_map *m)
{
    const ir_expr *kept = NULL;
    base_vec all = {0};

    sched_conjuncts(s->cx, where, &all);
    for (int i = 0; i < all.n; i++) {
        condition_loops about = loops_of(s, site, all.at[i], fixed, m);

        if (about.spatial)
            kept = ir_all(s->cx, kept, all.at[i]);
        else if (about.others && (about.outer || about.reduces))
            m->unclear = true;
    }
    return kept;
}

static void add_spatial(const sched *s, const ir_facts *f, spatial_map *m, const ir_expr *bind, const ir_expr *min,
                        const ir_expr *extent)
{
    m->bind[m->n] = min ? ir_simplify(f, ir_sub(s->cx, bind, min)) : bind;
    m->dom[m->n++] = extent;
}

/* The indices, counted from the corner of the box. A mask only permutes whole runs of its unit. */
static void layout_part(const sched *s, const sched_site *site, const store_map *store, const ir_region *box, const ir_facts *f,
                        spatial_map *m)
{
    const sched_layout *l = &store->layout;
    ir_subst map = sched_bindings(s->cx, site);

    for (int d = 0; d < l->n; d++) {
        const ir_expr *unit = ir_int(s->cx, l->unit[d]), *zero = ir_int(s->cx, 0);

        if (l->mask[d] && !(ir_prove_equal(f, ir_floormod(s->cx, box->min[d], unit), zero) &&
                            ir_prove_equal(f, ir_floormod(s->cx, box->extent[d], unit), zero)))
            m->unclear = true;
        add_spatial(s, f, m, ir_apply(s->cx, &map, l->index[d]), box->min[d], box->extent[d]);
    }
}

/* A loop that is all of a variable may run on as far as the layout is padded: those points are no instances. */
static const ir_expr *padded_extent(const sched_site *site, const ir_stmt *loop, const store_map *store)
{
    for (int i = 0; i < site->block->n_iters && !store->plain; i++)
        if (store->used[i] && site->stmt->block.bind[i] == loop->loop.var &&
            ir_same(loop->loop.extent, site->block->iters[i].extent))
            return store->layout.extent[i];
    return loop->loop.extent;
}

/* The box NULL: the variables as they are. */
static spatial_map spatial_part(const sched *s, const sched_site *site, const ir_expr *where, const store_map *store,
                                const ir_region *box, int fixed)
{
    const ir_block *b = site->block;
    const ir_facts *f = sched_site_facts(s, site, fixed);
    int most = b->n_iters + (box ? box->buffer->n : 0);
    spatial_map m = {0};

    m.bind = base_array(s->cx, const ir_expr *, most);
    m.dom = base_array(s->cx, const ir_expr *, most);
    m.loop = base_array(s->cx, const ir_expr *, site->n_loops);
    m.extent = base_array(s->cx, const ir_expr *, site->n_loops);
    for (int i = 0; i < b->n_iters; i++) {
        int d = store->dim_of[i];

        if (store->used[i] && !box)
            add_spatial(s, f, &m, site->stmt->block.bind[i], NULL, b->iters[i].extent);
        else if (store->plain && d >= 0)
            add_spatial(s, f, &m, sched_stored_at(s->cx, site, store->access, d), box->min[d], box->extent[d]);
    }
    if (box && !store->plain)
        layout_part(s, site, store, box, f, &m);
    m.where = spatial_guards(s, site, where, fixed, &m);
    for (int j = fixed; j < site->n_loops; j++)
        if (any_mentions(s->cx, m.bind, m.n, site->loop[j]->loop.var) ||
            sched_mentions(s->cx, m.where, site->loop[j]->loop.var)) {
            m.loop[m.n_loops] = site->loop[j]->loop.var;
            m.extent[m.n_loops++] = box ? padded_extent(site, site->loop[j], store) : site->loop[j]->loop.extent;
        }
    return m;
}

static bool onto_box(const sched *s, const sched_site *site, const ir_expr *where, const store_map *store, const ir_region *box,
                     int fixed)
{
    spatial_map m = spatial_part(s, site, where, store, box, fixed);
    ir_iter_map map;

    return !m.unclear &&
           ir_iter_map_detect(sched_site_facts(s, site, fixed), m.loop, m.extent, m.n_loops, m.bind, m.dom, m.n, m.where, &map);
}

/* Some inner loop of this variable's binding occurs in that of another one. */
static bool shares_loops(const sched *s, const sched_site *site, int iter, int fixed)
{
    const ir_expr *const *bind = site->stmt->block.bind;

    for (int j = fixed; j < site->n_loops; j++)
        for (int i = 0; i < site->block->n_iters; i++)
            if (i != iter && sched_mentions(s->cx, bind[iter], site->loop[j]->loop.var) &&
                sched_mentions(s->cx, bind[i], site->loop[j]->loop.var))
                return true;
    return false;
}

/* Where the inner loops of a variable of one value are at 0, it has that value, and no condition on them keeps the block from running: a
 * split of such a loop, guarded, runs once. */
static bool runs_at_zero(const sched *s, const sched_site *site, int iter, int fixed)
{
    const ir_facts *f = sched_site_facts(s, site, fixed);
    const ir_expr *bind = site->stmt->block.bind[iter];
    ir_subst zeros = {0};
    base_vec conditions = {0};

    if (shares_loops(s, site, iter, fixed))
        return false;
    for (int j = fixed; j < site->n_loops; j++)
        if (sched_mentions(s->cx, bind, site->loop[j]->loop.var))
            base_map_put(s->cx, &zeros.vars, site->loop[j]->loop.var, ir_int(s->cx, 0));
    sched_conjuncts(s->cx, site->stmt->block.where, &conditions);
    for (int i = 0; i < conditions.n; i++) {
        const ir_expr *there = ir_apply(s->cx, &zeros, conditions.at[i]);

        if (there != conditions.at[i] && !ir_prove(f, there))
            return false;
    }
    return ir_prove_equal(f, ir_apply(s->cx, &zeros, bind), ir_int(s->cx, 0));
}

/* Variables of one value, which index nothing, have it: where a tile of them lies outside the domain, nothing runs. */
static bool single_values_hold(const sched *s, const sched_site *site, const store_map *store, int fixed)
{
    for (int i = 0; i < site->block->n_iters; i++)
        if (!store->used[i] && site->block->iters[i].kind == IR_SPATIAL &&
            !ir_prove_equal(sched_site_facts(s, site, site->n_loops), site->stmt->block.bind[i], ir_int(s->cx, 0)) &&
            !runs_at_zero(s, site, i, fixed))
            return false;
    return true;
}

/* Loops that no spatial variable of more than one value uses must run at least once, unless they reduce: an empty reduction
 * initialises. */
static bool others_run(const sched *s, const sched_site *site, const store_map *store, int fixed)
{
    for (int j = fixed; j < site->n_loops; j++) {
        const ir_expr *var = site->loop[j]->loop.var;
        bool covered = sched_kind_for(s->cx, site, var) == IR_REDUCE_ITER;

        for (int i = 0; i < site->block->n_iters; i++)
            covered = covered || (store->used[i] && sched_mentions(s->cx, site->stmt->block.bind[i], var));
        if (!covered && !ir_prove_le(sched_site_facts(s, site, j), ir_int(s->cx, 1), site->loop[j]->loop.extent))
            return false;
    }
    return true;
}

/* Tiles may reach over the domain, where nothing is; or the predicate may cut them to the box exactly. */
bool sched_fills(const sched *s, const sched_site *site, const ir_region *access, const ir_region *box, int fixed)
{
    const ir_expr *where = site->stmt->block.where, *guards = sched_loop_guards(s, site);
    store_map store;

    if (site->branches || !read_store(s, site->block, access, &store) || !others_run(s, site, &store, fixed) ||
        !single_values_hold(s, site, &store, fixed))
        return false;
    if (store.plain && !guards && sched_counts_box(s, site, access, store.dim_of, box, fixed))
        return true;
    return onto_box(s, site, guards, &store, box, fixed) || (guards != where && onto_box(s, site, where, &store, box, fixed));
}

bool sched_covers(const sched *s, const sched_site *site, const ir_region *access, const ir_region *box, int fixed)
{
    return (!accumulates(site->block) || completes_inside(s->cx, site, fixed)) && sched_fills(s, site, access, box, fixed);
}

bool sched_injective(const sched *s, const sched_site *site, int fixed, const char **reason)
{
    const ir_block *b = site->block;
    const ir_facts *f = sched_site_facts(s, site, fixed);
    ir_ranges inner = sched_inner_ranges(s->cx, site, fixed);
    const ir_expr **dom = base_array(s->cx, const ir_expr *, b->n_iters);
    ir_iter_map m;

    for (int i = 0; i < b->n_iters; i++)
        dom[i] = b->iters[i].extent;
    ir_iter_map_detect(f, inner.var, inner.extent, inner.n, site->stmt->block.bind, dom, b->n_iters, site->stmt->block.where, &m);
    if (m.injective)
        return true;
    *reason = m.reason;
    return false;
}

typedef struct {
    ir_walk w;
    bool found;
} effect_search;

const char *sched_kind_text(ir_iter_kind kind)
{
    switch (kind) {
    case IR_SPATIAL: return "a spatial";
    case IR_REDUCE_ITER: return "a reduction";
    case IR_SCAN: return "a scan";
    case IR_OPAQUE: return "an opaque";
    }
    return NULL;
}

const char *sched_not_idempotent(tec_context *cx, const ir_block *b)
{
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_SCAN || b->iters[i].kind == IR_OPAQUE)
            return b->iters[i].kind == IR_SCAN ? "it is a step of a scan" : "it is opaque";
    for (int i = 0; i < b->n_reads; i++)
        if (sched_writes(b, b->reads[i].buffer))
            return base_format(cx, "it reads '%s', which it writes", b->reads[i].buffer->name);
    if (sched_combiner(b) && !b->init)
        return "it does not initialise its reduction itself";
    return sched_has_effect(cx, b->body) ? "it calls a function with an effect" : NULL;
}

static bool look_for_effect(ir_walk *w, const ir_expr *e)
{
    ((effect_search *)w)->found |= (e->has & IR_HAS_EFFECT) != 0;
    return false;
}

bool sched_has_effect(tec_context *cx, const ir_stmt *body)
{
    effect_search x = {.w = {.cx = cx, .expr = look_for_effect}};

    ir_walk_stmt(&x.w, body);
    return x.found;
}

/* ---- private buffers ---- */

static bool same_depth_everywhere(const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if ((sched_reads(block, b) || sched_writes(block, b)) && !sched_depth_under(&all->at[i], var))
            return false;
    }
    return true;
}

const ir_region *sched_access(const ir_region *r, int n, const ir_buffer *b)
{
    for (int i = 0; i < n; i++)
        if (r[i].buffer == b)
            return &r[i];
    return NULL;
}

/* The box of an access lies within `outer`; whether both reach over the edge of the domain plays no part. */
static bool within(const sched *s, const sched_site *site, const ir_region *access, int fixed, const ir_region *outer)
{
    if (!access)
        return true;
    const ir_facts *f = sched_site_facts(s, site, fixed);
    ir_region box = sched_box(s, site, access, fixed, true);
    if (ir_region_contains(f, outer, &box))
        return true;
    box = sched_box(s, site, access, fixed, false);
    return ir_region_contains(f, outer, &box);
}

bool sched_reads_within(const sched *s, const sched_site *q, const ir_region *read, const sched_site *w, const ir_region *write,
                        int fixed)
{
    ir_region box = sched_box(s, w, write, fixed, true);

    return within(s, q, read, fixed, &box) && sched_fills(s, w, write, &box, fixed) && runs_with(s, q, w, fixed);
}

/* No iteration of the loop of `var` reads in this access what any iteration writes in the owner's. */
static bool never_meets(const sched *s, const sched_site *site, const ir_region *read, const sched_site *owner,
                        const ir_expr *var)
{
    const ir_region *write = sched_access(owner->block->writes, owner->block->n_writes, read->buffer);

    return sched_apart(s, site, read, owner, write, sched_depth_under(site, var) - 1);
}

/* Whether all accesses of other blocks below the loop stay within box; `var`'s loop and those around stand still. `but_earlier`:
 * what the owner does not write anywhere in the loop may be read, too. */
static bool all_within(const sched *s, const sched_sites *all, const sched_site *owner, const ir_buffer *b, const ir_expr *var,
                       const ir_region *box, bool but_earlier)
{
    for (int i = 0; i < all->n; i++) {
        const sched_site *site = &all->at[i];
        int fixed = sched_depth_under(site, var);

        if (!fixed || site == owner)
            continue;
        const ir_region *read = sched_access(site->block->reads, site->block->n_reads, b);
        const ir_region *write = sched_access(site->block->writes, site->block->n_writes, b);
        if (but_earlier && read && never_meets(s, site, read, owner, var))
            read = NULL;
        if (!within(s, site, read, fixed, box) || !within(s, site, write, fixed, box) ||
            ((read || write) && !runs_with(s, site, owner, fixed)))
            return false;
    }
    return true;
}

static const sched_site *first_writer(const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++)
        if (sched_depth_under(&all->at[i], var) && (sched_writes(all->at[i].block, b) || sched_reads(all->at[i].block, b)))
            return sched_writes(all->at[i].block, b) && !sched_reads(all->at[i].block, b) ? &all->at[i] : NULL;
    return NULL;
}

static int common_loops(const sched_site *a, const sched_site *b)
{
    int n = 0;

    while (n < a->n_loops && n < b->n_loops && a->loop[n]->loop.var == b->loop[n]->loop.var)
        n++;
    return n;
}

/* What a block needs of what others put there: what it reads, or what it adds to. */
static const ir_region *needs_of(const sched_site *q, const ir_buffer *b)
{
    const ir_region *read = sched_access(q->block->reads, q->block->n_reads, b);

    return read || !accumulates(q->block) ? read : sched_access(q->block->writes, q->block->n_writes, b);
}

/* Each block below the loop finds what it needs where the first writer has just put it, in the same iteration of all loops that the
 * two share. */
static bool reads_what_is_new(const sched *s, const sched_sites *all, const sched_site *w, const ir_region *write, const ir_buffer *b,
                              const ir_expr *var)
{
    if (accumulates(w->block) && !completes_inside(s->cx, w, sched_depth_under(w, var))) /* it reads itself what it wrote before */
        return false;
    for (int i = 0; i < all->n; i++) {
        const sched_site *q = &all->at[i];
        const ir_region *need = q != w && sched_depth_under(q, var) ? needs_of(q, b) : NULL;
        int fixed = common_loops(w, q);

        if (!need)
            continue;
        if ((accumulates(w->block) && !completes_inside(s->cx, w, fixed)) || !sched_reads_within(s, q, need, w, write, fixed))
            return false;
    }
    return true;
}

bool sched_private(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    const sched_site *w = first_writer(all, b, var);

    if (!w || b->alias || sched_is_output(s->tree, b) || !same_depth_everywhere(all, b, var))
        return false;
    int fixed = sched_depth_under(w, var);
    const ir_region *access = sched_access(w->block->writes, w->block->n_writes, b);
    ir_region box = sched_box(s, w, access, fixed, true);
    return (sched_covers(s, w, access, &box, fixed) && all_within(s, all, w, b, var, &box, false)) ||
           reads_what_is_new(s, all, w, access, b, var);
}

/* The loops that the block was in before the step as well; all of them where it is new. */
static int loops_kept(sched_call *c, const sched_site *now)
{
    sched_sites before = sched_all_sites(c->cx, c->tree->body);
    const sched_site *old = sched_site_named(&before, now->block->name);

    return old ? sched_common_loops(old, now) : now->n_loops;
}

/* Only writers that share a loop can fall short: the others have covered their whole domain. Nor can those that in an iteration of
 * loops, which the block does not leave, write nothing that it reads: earlier iterations have, and come before as they did. */
bool sched_reads_are_written(sched_call *c, const ir_stmt *root, const char *block)
{
    sched_sites all = sched_all_sites(c->cx, root);
    const sched_site *q = sched_site_named(&all, block);
    int kept = loops_kept(c, q);

    for (int i = 0; i < all.n; i++) {
        const sched_site *w = &all.at[i];
        int fixed = sched_common_loops(w, q);

        for (int j = 0; w != q && fixed && j < q->block->n_reads; j++) {
            const ir_region *read = &q->block->reads[j],
                            *write = sched_access(w->block->writes, w->block->n_writes, read->buffer);

            if (!write || sched_reads_within(c->s, q, read, w, write, fixed) ||
                sched_apart(c->s, w, write, q, read, fixed < kept ? fixed : kept))
                continue;
            sched_refuse(c, "it is not proven that '%s' finds all of '%s' that it reads complete in one iteration of '%s'",
                         q->block->name, read->buffer->name, q->loop[fixed - 1]->loop.var->var.name);
            return false;
        }
    }
    return true;
}

/* ---- independence ---- */

/* Distinct iterations of the loop write distinct elements: one index moves by at least the width of its box. */
static bool strides_apart(const sched *s, const sched_site *site, const ir_region *box, const ir_expr *var, int depth)
{
    const ir_facts *f = sched_site_facts(s, site, depth);

    for (int d = 0; d < box->buffer->n; d++) {
        const ir_expr *rest;
        int64_t step;

        if (!ir_linear(f, box->min[d], &var, 1, &step, &rest) || step == 0)
            continue;
        if (ir_prove_le(f, box->extent[d], ir_int(s->cx, step < 0 ? -step : step)))
            return true;
    }
    return false;
}

/* An iteration of the loop touches a box of the buffer that no other one does: it may read there what it wrote, as the steps of a
 * scan do. */
static bool all_apart(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    ir_region *box = base_array(s->cx, ir_region, 2 * all->n);
    const sched_site *site = NULL;
    int n = 0, depth = 0;

    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;
        const ir_region *access[] = {sched_access(block->reads, block->n_reads, b),
                                     sched_access(block->writes, block->n_writes, b)};
        int below = sched_depth_under(&all->at[i], var);

        for (int k = 0; below && k < 2; k++)
            if (access[k]) {
                site = &all->at[i];
                depth = below;
                box[n++] = sched_box(s, site, access[k], depth, true);
            }
    }
    ir_region hull = ir_region_union(sched_site_facts(s, site, depth), box, n);
    return strides_apart(s, site, &hull, var, depth);
}

/* The conjuncts over loops of the spatial bindings alone. */
static const ir_expr *purely_spatial(const sched *s, const sched_site *site, int fixed, const spatial_map *m)
{
    const ir_expr *kept = NULL;
    base_vec all = {0};

    sched_conjuncts(s->cx, site->stmt->block.where, &all);
    for (int i = 0; i < all.n; i++) {
        bool pure = true;

        for (int j = fixed; j < site->n_loops; j++) {
            const ir_expr *var = site->loop[j]->loop.var;
            pure = pure && (any_mentions(s->cx, m->bind, m->n, var) || !sched_mentions(s->cx, all.at[i], var));
        }
        if (pure)
            kept = ir_all(s->cx, kept, all.at[i]);
    }
    return kept;
}

/* The spatial bindings take distinct values at distinct points of the loops that they use, from loop `first` on. */
static bool distinct_from(const sched *s, const sched_site *site, const store_map *store, const ir_expr *var, int first)
{
    spatial_map m = spatial_part(s, site, NULL, store, NULL, first);
    ir_iter_map map;

    if (!any_mentions(s->cx, m.bind, m.n, var))
        return false;
    ir_iter_map_detect(sched_site_facts(s, site, first), m.loop, m.extent, m.n_loops, m.bind, m.dom, m.n,
                       purely_spatial(s, site, first, &m), &map);
    return map.bijective || map.injective;
}

/* ... so they tell this loop's variable: with the outer loops fixed, or, where a fused loop was split across them, with all in
 * view. */
static bool digits_apart(const sched *s, const sched_site *site, const ir_region *access, const ir_expr *var, int depth)
{
    store_map store;

    return read_store(s, site->block, access, &store) &&
           (distinct_from(s, site, &store, var, depth - 1) || (depth > 1 && distinct_from(s, site, &store, var, 0)));
}

bool sched_shared_under(const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    int n = 0;

    for (int i = 0; i < all->n; i++)
        n += sched_depth_under(&all->at[i], var) && (sched_reads(all->at[i].block, b) || sched_writes(all->at[i].block, b));
    return n > 1;
}

static const char *conflict(const sched *s, const sched_sites *all, const sched_site *w, const ir_region *access,
                            const ir_expr *var)
{
    const ir_buffer *b = access->buffer;
    int depth = sched_depth_under(w, var);
    ir_region box = sched_box(s, w, access, depth, true);
    bool apart = strides_apart(s, w, &box, var, depth);

    if (sched_kind_for(s->cx, w, var) != IR_SPATIAL)
        return base_format(s->cx, "'%s' is %s loop of '%s'", var->var.name, sched_kind_text(sched_kind_for(s->cx, w, var)),
                           w->block->name);
    if (all_apart(s, all, b, var))
        return NULL;
    if (!apart && !digits_apart(s, w, access, var, depth))
        return base_format(s->cx, "it is not proven that iterations of '%s' write distinct elements of '%s'", var->var.name,
                           b->name);
    const ir_region *own = sched_access(w->block->reads, w->block->n_reads, b);
    if (own && never_meets(s, w, own, w, var))
        own = NULL;
    if (!sched_shared_under(all, b, var))
        return own ? base_format(s->cx, "'%s' reads what it writes, '%s'", w->block->name, b->name) : NULL;
    if (own || !all_within(s, all, w, b, var, &box, true) || !(apart || sched_fills(s, w, access, &box, depth)))
        return base_format(s->cx,
                           "it is not proven that each iteration of '%s' uses only its own elements of '%s', which '%s' writes",
                           var->var.name, b->name, w->block->name);
    return NULL;
}

static const char *aliased(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; b->alias && i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if (!sched_depth_under(&all->at[i], var))
            continue;
        for (int j = 0; j < block->n_reads + block->n_writes; j++) {
            const ir_buffer *other = j < block->n_reads ? block->reads[j].buffer : block->writes[j - block->n_reads].buffer;

            if (other != b && other->alias == b->alias)
                return base_format(s->cx, "'%s' and '%s' may share memory", b->name, other->name);
        }
    }
    return NULL;
}

/* Some writer must own the buffer; the reason that the first one gives is the one to read. */
const char *sched_buffer_dependence(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    const char *reason = NULL;

    for (int i = 0; i < all->n; i++) {
        const sched_site *w = &all->at[i];
        const ir_region *access = sched_depth_under(w, var) ? sched_access(w->block->writes, w->block->n_writes, b) : NULL;

        if (!access)
            continue;
        const char *why = conflict(s, all, w, access, var);
        if (!why)
            return aliased(s, all, b, var);
        reason = reason ? reason : why;
    }
    return reason;
}

/* The block runs once for all iterations of its loop `depth`: its threads share the work (bind.c, need_common_work). */
static bool is_common_work(const sched_site *site, int depth)
{
    for (int i = depth; i < site->n_loops; i++)
        if (site->loop[i]->loop.how == site->loop[depth - 1]->loop.how)
            return true;
    return false;
}

/* Memory that the threads of a block share is no thread's own, whatever each of them writes first, unless they fill it together. */
static bool is_shared_by_threads(const sched_sites *all, const ir_buffer *b, const ir_expr *var)
{
    for (int i = 0; i < all->n && (b->scope == IR_SHARED || b->scope == IR_WARP); i++) {
        int depth = sched_depth_under(&all->at[i], var);
        ir_how how = depth ? all->at[i].loop[depth - 1]->loop.how : IR_SERIAL;

        if (how >= IR_THREAD_X && how <= IR_THREAD_Z && sched_writes(all->at[i].block, b) && !is_common_work(&all->at[i], depth))
            return true;
    }
    return false;
}

/* No two iterations of the loop run a block: its extent or the predicates see to that. */
static bool runs_at_most_once(const sched *s, const sched_sites *all, const ir_expr *var)
{
    for (int i = 0; i < all->n; i++) {
        const sched_site *site = &all->at[i];
        int depth = sched_depth_under(site, var);

        if (!depth || ir_prove_le(sched_site_facts(s, site, depth - 1), site->loop[depth - 1]->loop.extent, ir_int(s->cx, 1)))
            continue;
        ir_facts *inside = ir_facts_new(s->cx, sched_site_facts(s, site, site->n_loops));
        if (site->stmt->block.where)
            ir_facts_assume(inside, site->stmt->block.where);
        if (!ir_prove_le(inside, var, ir_int(s->cx, 0)))
            return false;
    }
    return true;
}

const char *sched_dependence(const sched *s, const sched_sites *all, const ir_expr *var)
{
    base_map done = {0};

    if (runs_at_most_once(s, all, var))
        return NULL;
    for (int i = 0; i < all->n; i++) {
        const ir_block *block = all->at[i].block;

        if (!sched_depth_under(&all->at[i], var))
            continue;
        for (int j = 0; j < block->n_writes; j++) {
            const ir_buffer *b = block->writes[j].buffer;

            if (base_map_has(&done, b))
                continue;
            base_map_put(s->cx, &done, b, b);
            if (!is_shared_by_threads(all, b, var) && sched_private(s, all, b, var))
                continue;
            const char *reason = sched_buffer_dependence(s, all, b, var);
            if (reason)
                return reason;
        }
        if (sched_has_effect(s->cx, block->body))
            return base_format(s->cx, "'%s' calls a function with an effect", block->name);
    }
    return NULL;
}

bool sched_takes_loops(sched_call *c, const sched_path *to)
{
    for (int i = 0; i < to->n; i++) {
        const ir_stmt *s = to->link[i].stmt;

        if (s->kind == IR_FOR && s->loop.how == IR_VECTORISED) {
            sched_refuse(c, "'%s' is vectorised and takes no further loops", s->loop.var->var.name);
            return false;
        }
    }
    return true;
}

bool sched_still_independent(sched_call *c, const sched_path *to, const ir_stmt *root)
{
    sched_sites all = {0};

    for (int i = 0; i < to->n; i++) {
        const ir_stmt *l = to->link[i].stmt;

        if (l->kind != IR_FOR || l->loop.how == IR_SERIAL || l->loop.how == IR_UNROLLED)
            continue;
        if (!all.n)
            all = sched_all_sites(c->cx, root);
        const char *reason = sched_dependence(c->s, &all, l->loop.var);
        if (reason) {
            sched_refuse(c, "'%s' is %s, and %s", l->loop.var->var.name, ir_how_text(l->loop.how), reason);
            return false;
        }
    }
    return true;
}
