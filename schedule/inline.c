/* schedule/inline.c -- compute_inline and reverse_inline: a stage disappears into its readers, or into its
 * producer.
 *
 *     P[y] = A[y]*2                                  compute_inline(P)
 *     C[y] = P[y] + P[y]*P[y+1]                =>    C[y] = let p = A[y]*2 in p + p*(A[y+1]*2)
 *
 * The stored value has the dtype of the buffer already, so its casts stay. A value that is used more than
 * once becomes a let where at least one use is evaluated in any case; a value that is used below conditions
 * only stays there, since its loads may be out of bounds elsewhere.
 *
 * A worked example of the second rule, with A: f32[18] and C over y in 0..16:
 *
 *     C[y] = P[y] + select(y < 8, P[y + 1]*P[y + 1], P[y + 2]) + P[y]
 *
 *     C[y] = let p = A[y]*2 in
 *            p + select(y < 8, (let p' = A[y + 1]*2 in p'*p'), A[y + 2]*2) + p
 *
 * P[y] is used twice where it is evaluated in any case, so its let stands around the whole expression. P[y +
 * 1] is used twice too, but below the condition alone: a let around the whole expression would load A[y + 1]
 * where the condition does not want it. If the user wrote the condition to stay within A, this load would be
 * out of bounds. So each operand of a select, `and` or `or` after the first is a root of its own, with lets
 * of its own.
 */
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* ---- the value of a stage at an index ---- */

/* The map from elements back to instances: of P[2*i + j] = .., point = {e}, iter = {e / 2, e % 2}. What
 * follows from it: the value at index x is the stored expression with each iteration variable replaced by its
 * iter, and the point by x. */
typedef struct {
    tec_context *cx;
    const ir_buffer *buffer;
    const ir_block *block;
    const ir_stmt *store;        /* the block's only statement */
    const ir_expr *const *point; /* a variable for each dimension of the buffer, */
    const ir_expr *const *iter;  /* and each iteration variable over them; NULL: it is 0 */
    const ir_facts *facts;
} stage_value;

/* A let of the stage's own value gets a new variable for each place that the value goes to: two lets of one
 * variable in one expression would be told apart by nothing but their place. */
static const ir_expr *fresh_let(ir_rewrite *rw, const ir_expr *e)
{
    e = ir_rewrite_children(rw, e);
    if (!e || e->op != IR_LET)
        return e;
    const ir_expr *var = ir_let_var(rw->cx, e->let.var->var.name, e->let.value);
    return ir_let(rw->cx, var, e->let.value, ir_substitute(rw->cx, e->let.body, e->let.var, var));
}

/* The iteration variable of the instance that writes the element at the index. The quick case is an iteration
 * variable that is an index itself; there is nothing to simplify. */
static const ir_expr *iter_at(const stage_value *v, int i, const ir_expr *const *index)
{
    ir_subst map = {0};

    if (!v->iter[i])
        return ir_int(v->cx, 0);
    for (int d = 0; d < v->buffer->n; d++) {
        if (v->iter[i] == v->point[d])
            return index[BASE_PLANT_ON(v->cx, compute_inline_index) ? 0 : d];
        if (v->point[d])
            base_map_put(v->cx, &map.vars, v->point[d], index[d]);
    }
    return ir_simplify(v->facts, ir_apply(v->cx, &map, v->iter[i]));
}

static const ir_expr *value_at(const stage_value *v, const ir_expr *const *index)
{
    ir_rewrite rw = {.cx = v->cx, .expr = fresh_let};
    ir_subst map = {0};

    for (int i = 0; i < v->block->n_iters; i++)
        base_map_put(v->cx, &map.vars, v->block->iters[i].var, iter_at(v, i, index));
    return ir_apply(v->cx, &map, ir_rewrite_expr(&rw, v->store->store.value));
}

/* ---- inlining into an expression ---- */

/* Loads of one index: the uses that are evaluated in any case, and the value. */
typedef struct {
    const ir_expr *load;
    const ir_expr *value;
    const ir_expr *var; /* of the let; NULL: used once, or cheap */
    int uses;
} use_group;

/* One root: an expression that is evaluated whole wherever it stands. `visits` counts how often count_uses
 * met a node. */
typedef struct {
    ir_rewrite rw;
    const stage_value *v;
    base_vec groups; /* use_group *, of the part of the expression that is evaluated in any case */
    base_map visits;
} inlining;

static bool same_index(const ir_expr *a, const ir_expr *b)
{
    for (int d = 0; d < a->load.n; d++)
        if (!ir_same(a->load.index[d], b->load.index[d]))
            return false;
    return true;
}

static use_group *group_of(inlining *x, const ir_expr *load)
{
    for (int i = 0; i < x->groups.n; i++)
        if (same_index(((use_group *)x->groups.at[i])->load, load))
            return x->groups.at[i];
    return NULL;
}

/* From which operand on the machine may skip an evaluation; 3: no operand is skipped. */
static int first_lazy_operand(const ir_expr *e)
{
    return e->op == IR_AND || e->op == IR_OR || e->op == IR_SELECT ? 1 : 3;
}

/* Counts the uses that are evaluated in any case. What stands in the body of a let may use its variable, so
 * it is left to a root of its own. A node that several parents share is counted twice at most: that is all
 * that matters, and shared chains stay cheap. */
static void count_uses(inlining *x, const ir_expr *e)
{
    intptr_t visits = (intptr_t)base_map_get(&x->visits, e);

    if (visits == 2)
        return;
    base_map_put(x->rw.cx, &x->visits, e, (const void *)(visits + 1));
    if (e->op == IR_LOAD && e->load.buffer == x->v->buffer) {
        use_group *g = group_of(x, e);

        if (!g) {
            g = base_new(x->rw.cx, use_group);
            g->load = e;
            base_push(x->rw.cx, &x->groups, g);
        }
        g->uses++;
    } else if (e->op == IR_LOAD) {
        for (int d = 0; d < e->load.n; d++)
            count_uses(x, e->load.index[d]);
    } else if (e->op == IR_LET) {
        count_uses(x, e->let.value);
    } else if (e->op == IR_CALL) {
        for (int i = 0; i < e->call.n; i++)
            count_uses(x, e->call.arg[i]);
    } else if (ir_is_op(e->op) || e->op == IR_CAST || e->op == IR_REINTERPRET) {
        int lazy = first_lazy_operand(e);

        for (int i = 0; i < 3 && i < lazy && e->arg[i]; i++)
            count_uses(x, e->arg[i]);
    }
}

/* A variable, a constant or one load costs nothing to write twice; a let would only hide it from later
 * passes. */
static bool is_cheap(const ir_expr *e)
{
    while (e->op == IR_CAST)
        e = e->arg[0];
    return e->op == IR_INT || e->op == IR_FLOAT || e->op == IR_VAR || e->op == IR_LOAD;
}

static const ir_expr *inline_root(const stage_value *v, const ir_expr *e);

typedef struct {
    ir_walk w;
    const ir_buffer *buffer;
    bool found;
} load_search;

static bool look_for_load(ir_walk *w, const ir_expr *e)
{
    load_search *x = (load_search *)w;

    x->found = x->found || (e->op == IR_LOAD && e->load.buffer == x->buffer);
    return !x->found && (e->has & IR_HAS_LOAD);
}

static bool any_load(tec_context *cx, const ir_expr *e, const ir_buffer *b)
{
    load_search x = {.w = {.cx = cx, .expr = look_for_load}, .buffer = b};

    ir_walk_expr(&x.w, e);
    return x.found;
}

/* Operands of a condition and bodies of lets are roots of their own, after the values that exist in any case
 * were taken. */
static const ir_expr *inline_node(ir_rewrite *rw, const ir_expr *e)
{
    inlining *x = (inlining *)rw;
    int lazy = ir_is_op(e->op) ? first_lazy_operand(e) : 3;

    if (e->op == IR_LOAD && e->load.buffer == x->v->buffer) {
        use_group *g = group_of(x, e);
        return !g ? e : g->var ? g->var : g->value;
    }
    if (e->op == IR_LET)
        return ir_let(rw->cx, e->let.var, ir_rewrite_expr(rw, e->let.value),
                      inline_root(x->v, ir_rewrite_expr(rw, e->let.body)));
    if (lazy == 3)
        return ir_rewrite_children(rw, e);
    const ir_expr *arg[3] = {NULL};
    for (int i = 0; i < 3 && e->arg[i]; i++) {
        arg[i] = ir_rewrite_expr(rw, e->arg[i]);
        if (i >= lazy)
            arg[i] = inline_root(x->v, arg[i]);
        if (!arg[i])
            return NULL;
    }
    return ir_op_raw(rw->cx, e->op, arg);
}

/* The value of each group. Its own index may hold loads of the stage too, as in P[i64(P[y])], so the index is
 * inlined first. */
static void make_values(inlining *x)
{
    for (int i = 0; i < x->groups.n; i++) {
        use_group *g = x->groups.at[i];
        const ir_expr **index = base_array(x->rw.cx, const ir_expr *, g->load->load.n);

        for (int d = 0; d < g->load->load.n; d++)
            index[d] = inline_root(x->v, g->load->load.index[d]);
        g->value = value_at(x->v, index);
        if (g->uses > 1 && g->value && !is_cheap(g->value))
            g->var = ir_let_var(x->rw.cx, x->v->buffer->name, g->value);
    }
}

/* e with every load of the stage replaced; e is evaluated whole where it stands. The groups get their lets
 * from the inside out, so that the first group found is the outermost let. No value mentions another group's
 * variable. */
static const ir_expr *inline_root(const stage_value *v, const ir_expr *e)
{
    inlining x = {.rw = {.cx = v->cx, .expr = inline_node}, .v = v};

    if (!e || !any_load(v->cx, e, v->buffer))
        return e;
    count_uses(&x, e);
    make_values(&x);
    e = ir_rewrite_expr(&x.rw, e);
    for (int i = x.groups.n - 1; e && i >= 0; i--) {
        const use_group *g = x.groups.at[i];

        if (g->var)
            e = ir_let(v->cx, g->var, g->value, e);
    }
    return e;
}

/* ---- statements ---- */

typedef struct {
    ir_rewrite rw;
    const stage_value *v;
} block_inlining;

static const ir_expr *each_root(ir_rewrite *rw, const ir_expr *e)
{
    return inline_root(((block_inlining *)rw)->v, e);
}

static const ir_block *inline_into(const stage_value *v, const ir_facts *f, const ir_block *b)
{
    block_inlining x = {.rw = {.cx = v->cx, .expr = each_root}, .v = v};
    ir_block *copy = ir_block_copy(v->cx, b);

    copy->body = ir_rewrite_stmt(&x.rw, b->body);
    copy->init = b->init ? ir_rewrite_stmt(&x.rw, b->init) : NULL;
    return copy->body && (!b->init || copy->init) ? sched_refresh(f, copy) : NULL;
}

/* Every block below s that reads the stage, except the stage's own block. */
static const ir_stmt *inline_everywhere(sched_call *c, const stage_value *v, const ir_facts *f,
                                        const ir_stmt *s)
{
    if (s->kind == IR_BLOCK) {
        if (s->block.block == v->block || !tree_reads(s->block.block, v->buffer))
            return s;
        return sched_with_block(c->cx, s, inline_into(v, f, s->block.block));
    }
    for (int i = 0, n = tree_n_children(s); s && i < n; i++) {
        const ir_stmt *child = inline_everywhere(c, v, f, tree_child(s, i));

        s = child ? sched_with_child(c->cx, s, i, child) : NULL;
    }
    return s;
}

/* ---- checks ---- */

/* Which instance writes an element. Two ways, from cheap to general: each dimension is an iteration variable
 * plus a constant, or the indices are a one-to-one layout such as [floordiv(i, 8), i % 8]. A dimension that
 * no variable indexes must have one element; otherwise some elements would have no instance that writes them,
 * and no value. */
static bool invert_store(sched_call *c, const ir_block *b, stage_value *v)
{
    int *dim_of = base_array(c->cx, int, b->n_iters);
    const ir_expr **point = base_array(c->cx, const ir_expr *, v->buffer->n),
                  **iter = base_array(c->cx, const ir_expr *, b->n_iters);
    tree_layout l;

    v->point = point;
    v->iter = iter;
    if (tree_plain_store(&c->s->view, b, &b->writes[0], dim_of)) {
        for (int i = 0; i < b->n_iters; i++)
            if (dim_of[i] >= 0) {
                const ir_expr *shift = ir_int(c->cx, tree_store_shift(&b->writes[0], dim_of[i]));

                point[dim_of[i]] = b->iters[i].var;
                iter[i] = ir_sub(c->cx, b->iters[i].var, shift);
            }
        for (int d = 0; d < v->buffer->n; d++)
            if (!point[d] && !ir_is_value(v->buffer->shape[d], 1))
                return sched_refuse(c, "'%s' does not write all of '%s'", b->name, v->buffer->name);
        return true;
    }
    if (!tree_invert_store(&c->s->view, b, &b->writes[0], &l))
        return sched_refuse(c, "the store of '%s' cannot be inverted", b->name);
    v->point = l.point;
    v->iter = l.var;
    return true;
}

/* The block is one store that can be inverted. */
static bool read_value(sched_call *c, const ir_block *b, stage_value *v)
{
    *v = (stage_value){.cx = c->cx, .block = b, .store = b->body, .facts = c->s->view.facts};
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind != IR_SPATIAL)
            return sched_refuse(c, "'%s' is no spatial axis of '%s'; only spatial stages can be inlined",
                                b->iters[i].var->var.name, b->name);
    if (b->init || b->body->kind != IR_STORE || b->n_writes != 1)
        return sched_refuse(c, "'%s' is more than one store", b->name);
    v->buffer = b->body->store.buffer;
    return invert_store(c, b, v);
}

static bool only_writer(sched_call *c, const tree_sites *all, const tree_site *p, const ir_buffer *b)
{
    for (int i = 0; i < all->n; i++)
        if (&all->at[i] != p && tree_writes(all->at[i].block, b))
            return sched_refuse(c, "'%s' is not the only writer of '%s': '%s' writes it too", p->block->name,
                                b->name, all->at[i].block->name);
    return true;
}

/* The loops that P, w and all readers of the buffer have in common. */
static int loops_around(const tree_sites *all, const tree_site *p, const tree_site *w, const ir_buffer *b)
{
    int common = tree_common_loops(p, w);

    for (int i = 0; i < all->n; i++)
        if (tree_reads(all->at[i].block, b)) {
            int with = tree_common_loops(p, &all->at[i]);
            common = with < common ? with : common;
        }
    return common;
}

/* In an iteration of those, w writes nothing of what P reads in this access: P reads what earlier iterations
 * wrote. */
static bool earlier_only(sched_call *c, const tree_sites *all, const tree_site *p, const ir_region *read,
                         const tree_site *w, const ir_buffer *b)
{
    int around = loops_around(all, p, w, b);

    return around && tree_apart(&c->s->view, p, read, w,
                                tree_access(w->block->writes, w->block->n_writes, read->buffer), around);
}

/* The inputs hold the same values when the readers run: nothing writes them after P, and no reader leaves a
 * loop in which one is computed.
 *
 *     P[y] = A[y];  A[y] = 0;  C[y] = P[y]       # inlined, C would read the zero
 *
 * The second check is about time, too: a reader outside of the loop that computes an input would read what
 * the last iteration left, where P read the value of its own iteration. */
static bool inputs_last(sched_call *c, const tree_sites *all, const tree_site *p, const ir_buffer *b)
{
    for (int i = 0; i < all->n; i++) {
        const tree_site *w = &all->at[i];

        for (int j = 0; w != p && j < p->block->n_reads; j++) {
            if (!tree_writes(w->block, p->block->reads[j].buffer))
                continue;
            if (w->order > p->order && earlier_only(c, all, p, &p->block->reads[j], w, b))
                continue;
            if (w->order > p->order)
                return sched_refuse(c, "'%s' overwrites '%s', which '%s' reads", w->block->name,
                                    p->block->reads[j].buffer->name, p->block->name);
            for (int k = 0; k < w->n_loops; k++)
                for (int r = 0; tree_depth_under(p, w->loop[k]->loop.var) && r < all->n; r++)
                    if (tree_reads(all->at[r].block, b) &&
                        !tree_depth_under(&all->at[r], w->loop[k]->loop.var))
                        return sched_refuse(c, "'%s' reads '%s' outside loop '%s', in which '%s' is computed",
                                            all->at[r].block->name, b->name, w->loop[k]->loop.var->var.name,
                                            p->block->reads[j].buffer->name);
        }
    }
    return true;
}

static bool not_shared(sched_call *c, const ir_buffer *b)
{
    return !b->alias || sched_refuse(c, "'%s' may share memory with other buffers", b->name);
}

/* A buffer that is to be dropped. */
static bool may_vanish(sched_call *c, const ir_buffer *b)
{
    if (tree_is_parameter(c->tree, b))
        return sched_refuse(c, "'%s' is an argument of the program; it must be written", b->name);
    return not_shared(c, b);
}

/* Refuses unless every reader may compute P's value for itself: P may run again, its buffer may disappear, no
 * reader needs the buffer itself, and the inputs still hold their values. */
static bool may_inline(sched_call *c, const tree_sites *all, const tree_site *p, const stage_value *v)
{
    const char *reason = tree_not_idempotent(c->cx, p->block);
    bool read = false;

    if (reason)
        return sched_refuse(c, "'%s' cannot be inlined: %s", p->block->name, reason);
    if (!may_vanish(c, v->buffer))
        return false;
    for (int i = 0; i < all->n; i++) {
        const ir_block *r = all->at[i].block;

        read = read || tree_reads(r, v->buffer);
        for (int j = 0; j < r->n_iters; j++)
            if (tree_reads(r, v->buffer) && r->iters[j].kind == IR_OPAQUE)
                return sched_refuse(c, "'%s' is opaque and reads '%s' as it is", r->name, v->buffer->name);
    }
    if (!read)
        return sched_refuse(c, "nothing reads '%s'", v->buffer->name);
    return only_writer(c, all, p, v->buffer) && inputs_last(c, all, p, v->buffer);
}

/* A stage that reads its producer at n places, and is read at n places itself, grows n-fold with each stage
 * that is inlined: past this many nodes the steps and passes that follow take minutes. */
enum { MAX_NODES = 1 << 16 };

static bool stays_small(sched_call *c, const ir_stmt *body)
{
    int before = ir_count_nodes(c->cx, c->tree->body), after = body ? ir_count_nodes(c->cx, body) : 0;

    return after <= MAX_NODES || after <= before ||
           sched_refuse(c, "the program would grow from %d to %d nodes; at most %d are possible", before,
                        after, MAX_NODES);
}

/* compute_inline(P): every read of P becomes P's expression there. */
const ir_program *sched_do_compute_inline(sched_call *c)
{
    sched_path at;
    stage_value v;

    if (!sched_need_block(c, c->arg[0].name, &at) || !read_value(c, sched_end(&at)->block.block, &v))
        return NULL;
    tree_sites all = tree_all_sites(c->cx, c->tree->body);
    if (!may_inline(c, &all, tree_site_named(&all, c->arg[0].name), &v))
        return NULL;
    const ir_stmt *body = inline_everywhere(c, &v, c->s->view.facts, sched_remove(c->cx, &at));
    const ir_program *after = stays_small(c, body) ? sched_with_body(c, body) : NULL;
    return after ? sched_drop_buffer(c->cx, after, v.buffer) : NULL;
}

/* ---- reverse_inline ---- */

/* Q reads its producer's buffer at one index, each dimension an iteration variable of Q with the producer's
 * extent. Only uses that are evaluated in any case count. A read below a condition would make P's store
 * conditional. */
static const ir_expr *single_read(sched_call *c, const ir_block *q, const ir_buffer *x, inlining *loads)
{
    count_uses(loads, q->body->store.value);
    if (loads->groups.n != 1)
        return sched_refuse(c, "'%s' does not read '%s' at exactly one index, in any case", q->name, x->name);
    return ((use_group *)loads->groups.at[0])->load;
}

/* `other` is set where Q reads the buffer at another index than `load`: its value would be that of another
 * instance. */
typedef struct {
    ir_rewrite rw;
    const ir_buffer *buffer;
    const ir_expr *load, *value;
    bool other;
} exchange;

static const ir_expr *exchange_load(ir_rewrite *rw, const ir_expr *e)
{
    exchange *x = (exchange *)rw;

    if (e->op == IR_LOAD && e->load.buffer == x->buffer) {
        x->other = x->other || !same_index(e, x->load);
        return x->value;
    }
    return ir_rewrite_children(rw, e);
}

/* Each axis of Q is one of P. Only needed where padding plays a role: without it, Q reads each element once,
 * and each element has one instance of P, so the points of P and Q correspond. */
static bool axes_match(sched_call *c, const stage_value *p, const stage_value *q, const ir_subst *map)
{
    for (int i = 0; i < q->block->n_iters; i++) {
        const ir_expr *at = base_map_get(&map->vars, q->block->iters[i].var);
        bool found = ir_is_value(at, 0);

        for (int k = 0; k < p->block->n_iters; k++)
            found = found ||
                    (at == p->block->iters[k].var &&
                     ir_prove_equal(c->s->view.facts, p->block->iters[k].extent, q->block->iters[i].extent));
        if (!found)
            return false;
    }
    return true;
}

/* Q reads every element of P's buffer at one of its points: what those are, over P's.
 *
 *     P[i] = ..;   Q[y, x] = P[y*4 + x] + 1      gives y = i / 4, x = i % 4
 *
 * The read is inverted (which point of Q reads element e), then e is replaced by what P stores to. The result
 * goes to `map`, over the variables of P. */
static bool same_domain(sched_call *c, const stage_value *p, const stage_value *q, const ir_expr *load,
                        ir_subst *map)
{
    ir_region read = ir_region_point(c->cx, p->buffer, load->load.index);
    ir_facts *f = ir_facts_new(c->cx, c->s->view.facts);
    ir_subst written = {0};
    tree_layout l;

    if (!tree_invert_read(&c->s->view, q->block, &read, &l))
        return sched_refuse(c, "it is not proven that '%s' reads all of '%s', each element once",
                            q->block->name, p->buffer->name);
    for (int i = 0; i < p->block->n_iters; i++)
        ir_facts_range(f, p->block->iters[i].var, ir_int(c->cx, 0), p->block->iters[i].extent);
    for (int d = 0; d < p->buffer->n; d++)
        base_map_put(c->cx, &written.vars, l.point[d], p->store->store.index[d]);
    for (int i = 0; i < q->block->n_iters; i++) {
        const ir_iter *axis = &q->block->iters[i];
        const ir_expr *at = l.var[i] ? ir_simplify(f, ir_apply(c->cx, &written, l.var[i])) : ir_int(c->cx, 0);

        if (!l.var[i] && !ir_prove_equal(c->s->view.facts, axis->extent, ir_int(c->cx, 1)))
            return sched_refuse(c, "axis '%s' of '%s' is no dimension of '%s'", axis->var->var.name,
                                q->block->name, p->buffer->name);
        base_map_put(c->cx, &map->vars, axis->var, at);
    }
    if (!axes_match(c, p, q, map) && (tree_is_padded(&c->s->view, q->block, &l) ||
                                      tree_leaves_padding(&c->s->view, c->tree->body, p->buffer)))
        return sched_refuse(c, "it is not proven that '%s' has a point for each of '%s'", p->block->name,
                            q->block->name);
    return true;
}

/* P's block with Q's store in place of its own. The value of P is bound by a let where Q uses it several
 * times. The store goes to Q's buffer, at Q's index over P's variables, while loops, predicate and name stay
 * those of P. */
static const ir_block *merged(sched_call *c, const stage_value *p, const stage_value *q)
{
    inlining loads = {.rw = {.cx = c->cx}, .v = p};
    const ir_expr *load = single_read(c, q->block, p->buffer, &loads);
    ir_subst map = {0};

    if (!load || !same_domain(c, p, q, load, &map))
        return NULL;
    const ir_expr *var = ir_let_var(c->cx, p->buffer->name, p->store->store.value);
    exchange x = {
        .rw = {.cx = c->cx, .expr = exchange_load}, .buffer = p->buffer, .load = load, .value = var};
    bool once = ((use_group *)loads.groups.at[0])->uses == 1 || is_cheap(p->store->store.value);
    if (once)
        x.value = p->store->store.value;
    const ir_expr *value = ir_rewrite_expr(&x.rw, q->store->store.value);
    if (x.other)
        return sched_refuse(c, "'%s' reads '%s' at more than one index", q->block->name, p->buffer->name);
    value = ir_apply(c->cx, &map, value);
    if (!once)
        value = ir_let(c->cx, var, p->store->store.value, value);
    const ir_expr **index = base_array(c->cx, const ir_expr *, q->buffer->n);
    for (int d = 0; d < q->buffer->n; d++)
        index[d] = d < p->buffer->n && BASE_PLANT_ON(c->cx, reverse_inline_index)
                       ? p->store->store.index[d]
                       : ir_apply(c->cx, &map, q->store->store.index[d]);
    ir_block *b = ir_block_copy(c->cx, p->block);
    b->body = ir_store(c->cx, q->buffer, value, index, q->buffer->n);
    return b->body ? sched_refresh(c->s->view.facts, b) : NULL;
}

/* The last one: whatever else Q reads is complete before it. */
static const tree_site *last_producer(sched_call *c, const tree_sites *all, const tree_site *q)
{
    const tree_site *p = NULL;

    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < q->block->n_reads; j++) {
            if (&all->at[i] == q || !tree_writes(all->at[i].block, q->block->reads[j].buffer) ||
                p == &all->at[i])
                continue;
            if (!p || all->at[i].order > p->order)
                p = &all->at[i];
        }
    return p ? p : sched_refuse(c, "'%s' reads no other stage", q->block->name);
}

/* Nothing else reads what P stores. */
static bool only_reader(sched_call *c, const tree_sites *all, const tree_site *q, const ir_buffer *x)
{
    for (int i = 0; i < all->n; i++)
        if (&all->at[i] != q && tree_reads(all->at[i].block, x))
            return sched_refuse(c, "'%s' reads '%s' too", all->at[i].block->name, x->name);
    return true;
}

/* reverse_inline(Q): Q's expression moves into its producer's store. The last producer is the one to merge
 * with: the other inputs of Q are then complete, since P comes after them. */
const ir_program *sched_do_reverse_inline(sched_call *c)
{
    sched_path from, at;
    stage_value vp, vq;

    if (!sched_need_block(c, c->arg[0].name, &from))
        return NULL;
    tree_sites all = tree_all_sites(c->cx, c->tree->body);
    const tree_site *q = tree_site_named(&all, c->arg[0].name), *p = last_producer(c, &all, q);
    if (!p || !read_value(c, q->block, &vq) || !read_value(c, p->block, &vp))
        return NULL;
    const char *reason = tree_not_idempotent(c->cx, q->block);
    if (reason)
        return sched_refuse(c, "'%s' cannot be inlined: %s", q->block->name, reason);
    if (!may_vanish(c, vp.buffer) || !not_shared(c, vq.buffer) || !only_writer(c, &all, p, vp.buffer) ||
        !only_writer(c, &all, q, vq.buffer) || !only_reader(c, &all, q, vp.buffer))
        return NULL;
    const ir_block *b = merged(c, &vp, &vq);
    if (!b)
        return NULL;
    const ir_stmt *rest = sched_remove(c->cx, &from);
    if (!sched_find_block(c->cx, rest, p->block->name, &at))
        return NULL;
    rest = sched_rebuild(c->cx, &at, at.n - 1, sched_with_block(c->cx, sched_end(&at), b));
    /* Loops that only ever wrote what was private to them now write what others see. */
    if (!rest || !sched_reads_are_written(c, rest, p->block->name) || !sched_still_independent(c, &at, rest))
        return NULL;
    return sched_drop_buffer(c->cx, sched_with_body(c, rest), vp.buffer);
}
