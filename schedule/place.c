/* schedule/place.c -- compute_at, compute_root and reverse_compute_at: in which loop a block runs.
 *
 *     for P.y { P[y] = A[y]*2 }                              for C.y.0 {
 *     for C.y.0 { for C.y.1 {           compute_at(P,          for P.y in 0..10 { P[C.y.0*8 + P.y] = ... where it lies in P's
 * domain }
 *       C[y] = P[y] + P[y+1] + P[y+2]   C.y.0)  =>             for C.y.1 { C[y] = P[y] + P[y+1] + P[y+2] }
 *     }}                                                     }
 *
 * A moved block gets new loops: over the region that its readers need (compute_at), over the part that its producers complete
 * (reverse_compute_at), or over its whole domain (compute_root). Reductions complete inside. A block with scan variables moves within
 * its step, and all of the step is still written, since later ones may read it.
 */
#include <string.h>

#include "ir/facts.h"
#include "ir/text.h"
#include "schedule/state.h"

/* A block on its way to another place. */
typedef struct {
    sched_call *c;
    sched_path from;               /* to the block */
    sched_path to;                 /* to the loop whose body receives it; n = 0: the root */
    const ir_expr *loop;           /* that loop's variable; NULL: the root */
    const char *loop_name;         /* for messages */
    sched_sites all;               /* of the tree before */
    const sched_site *site;        /* of the block */
    int step;                      /* its outer loops that a step of its scan is one iteration of; 0: it has no scan variables */
    const ir_expr **min, **extent; /* of its new loops, per iteration variable */
    base_vec guards;               /* conditions over the loops around the target under which the neighbours run */
    base_vec last_steps;           /* conditions on those loops that all steps of its inputs are made */
} move;

/* All points; of a scan: all of the step. */
static void whole_domain(move *m)
{
    const ir_block *b = m->site->block;

    for (int i = 0; i < b->n_iters; i++) {
        m->min[i] = b->iters[i].kind == IR_SCAN ? m->site->stmt->block.bind[i] : ir_int(m->c->cx, 0);
        m->extent[i] = b->iters[i].extent;
    }
}

static bool start(sched_call *c, move *m, const char *block, const char *loop)
{
    *m = (move){.c = c, .loop_name = loop};
    if (!sched_need_block(c, block, &m->from) || (loop && !sched_need_loop(c, loop, &m->to)))
        return false;
    m->loop = loop ? sched_end(&m->to)->loop.var : NULL;
    m->all = sched_all_sites(c->cx, c->tree->body);
    m->site = sched_site_named(&m->all, block);
    m->step = sched_step_depth(c->s, m->site);
    m->min = base_array(c->cx, const ir_expr *, m->site->block->n_iters);
    m->extent = base_array(c->cx, const ir_expr *, m->site->block->n_iters);
    whole_domain(m);
    return true;
}

/* Whether a site lies under the target loop; everything lies under the root. */
static bool under(const move *m, const sched_site *site)
{
    return !m->loop || sched_depth_under(site, m->loop);
}

static int fixed_loops(const move *m, const sched_site *site)
{
    return m->loop ? sched_depth_under(site, m->loop) : 0;
}

static bool encloses_target(const move *m, const ir_expr *var)
{
    for (int i = 0; i < m->to.n; i++)
        if (m->to.link[i].stmt->kind == IR_FOR && m->to.link[i].stmt->loop.var == var)
            return true;
    return false;
}

/* ---- checks ---- */

/* The loops around the target that `site` and the block to be moved have in common: neither crosses their iterations. */
static int kept_loops(const move *m, const sched_site *site)
{
    int n = sched_common_loops(site, m->site);

    while (n > 0 && !encloses_target(m, m->site->loop[n - 1]->loop.var))
        n--;
    return n;
}

/* w comes after the block and writes nothing that it reads in this access in the same iteration of those loops: the block reads what
 * earlier iterations wrote. */
static bool earlier_only(const move *m, const ir_region *access, const sched_site *w)
{
    const ir_region *write = sched_access(w->block->writes, w->block->n_writes, access->buffer);
    int kept = kept_loops(m, w);

    return kept && w->order > m->site->order && sched_apart(m->c->s, m->site, access, w, write, kept);
}

/* The same step: w lies under the loops that count the steps of the block, if it has any. */
static bool in_step(const move *m, const sched_site *w)
{
    return sched_common_loops(w, m->site) >= m->step;
}

/* The block alone writes its buffers (in a step), and may run anywhere (there). What else lies in the loops that it leaves stays there. */
static bool movable(move *m)
{
    const ir_block *b = m->site->block;
    const char *reason = sched_not_repeatable(m->c->s, m->site);

    if (reason)
        return sched_refuse(m->c, "'%s' cannot move: %s", b->name, reason);
    if (m->step && !encloses_target(m, m->site->loop[m->step - 1]->loop.var))
        return sched_refuse(m->c, "'%s' stays in its scan loop '%s'", b->name, m->site->loop[m->step - 1]->loop.var->var.name);
    if (m->site->branches)
        return sched_refuse(m->c, "'%s' stands under a condition", b->name);
    for (int i = 0; i < m->all.n; i++) {
        const sched_site *other = &m->all.at[i];

        for (int j = 0; other != m->site && in_step(m, other) && j < b->n_writes; j++)
            if (sched_writes(other->block, b->writes[j].buffer))
                return sched_refuse(m->c, "'%s' is not the only writer of '%s': '%s' writes it too", b->name,
                                    b->writes[j].buffer->name, other->block->name);
    }
    return true;
}

static const ir_stmt *target_body(const move *m, const ir_stmt *root)
{
    sched_path p;

    if (!m->loop)
        return root;
    return sched_find_var(m->c->cx, root, m->loop, &p) ? sched_end(&p)->loop.body : NULL;
}

/* Everything that the block reads is complete before child `index` of the target's (old) body, and is not overwritten on the
 * way. */
static bool inputs_complete(move *m, int index)
{
    const ir_stmt *body = target_body(m, m->c->tree->body);
    const ir_block *b = m->site->block;

    for (int i = 0; i < m->all.n; i++) {
        const sched_site *w = &m->all.at[i];

        for (int j = 0; w != m->site && j < b->n_reads; j++) {
            const ir_buffer *input = b->reads[j].buffer;

            if (!sched_writes(w->block, input) || earlier_only(m, &b->reads[j], w))
                continue;
            if (w->order > m->site->order)
                return sched_refuse(m->c, "'%s' overwrites '%s', which '%s' reads", w->block->name, input->name, b->name);
            for (int k = 0; k < w->n_loops; k++) {
                const ir_expr *var = w->loop[k]->loop.var;
                if (sched_depth_under(m->site, var) && !encloses_target(m, var))
                    return sched_refuse(m->c, "'%s' would leave loop '%s', in which its input '%s' is computed", b->name,
                                        var->var.name, input->name);
            }
            if (under(m, w) && sched_child_with(body, w->block->name) >= index)
                return sched_refuse(m->c, "'%s', which '%s' reads, is not complete before the body of '%s': '%s' writes it there",
                                    input->name, b->name, m->loop ? m->loop_name : "the program", w->block->name);
        }
    }
    return true;
}

/* ---- the new nest ---- */

/* The block under new loops over min .. min+extent-1; f holds at the target. `out`: the tree that receives it, for fresh
 * names. */
static const ir_stmt *new_nest(move *m, const ir_facts *f, const ir_stmt *root)
{
    const ir_block *b = m->site->block;
    tec_context *cx = m->c->cx;
    const ir_expr **var = base_array(cx, const ir_expr *, b->n_iters), **bind = base_array(cx, const ir_expr *, b->n_iters),
                  *where = NULL;
    ir_facts *in = ir_facts_new(cx, f);
    const ir_program *before = m->c->tree;
    ir_program rest = *before;

    rest.body = root;
    m->c->tree = &rest;
    for (int i = 0; i < b->n_iters; i++) {
        const char *name = base_format(cx, "%s.%s", b->name, b->iters[i].var->var.name);

        if (b->iters[i].kind == IR_SCAN) {
            bind[i] = m->min[i];
            continue;
        }
        var[i] = ir_var(cx, sched_fresh_name(m->c, NULL, name), BASE_I64);
        bind[i] = ir_add(cx, m->min[i], var[i]);
        sched_know_loop(in, var[i], m->extent[i]);
    }
    m->c->tree = before;
    for (int i = 0; i < b->n_iters; i++)
        if (bind[i] != var[i] || m->extent[i] != b->iters[i].extent)
            where = sched_domain_guard(in, where, bind[i], b->iters[i].extent);
    for (int i = 0; i < m->guards.n; i++)
        where = ir_all(cx, where, m->guards.at[i]);
    for (int i = 0; i < m->last_steps.n; i++)
        where = ir_all(cx, where, m->last_steps.at[i]);
    const ir_stmt *s = ir_block_stmt(cx, b, bind, where);
    for (int i = b->n_iters - 1; i >= 0; i--) {
        bool lost = i == 0 && m->loop && BASE_PLANT_ON(cx, compute_at_extent);

        if (var[i])
            s = ir_for(cx, var[i], ir_int(cx, 0), lost ? ir_sub(cx, m->extent[i], ir_int(cx, 1)) : m->extent[i], IR_SERIAL, s);
    }
    return s;
}

/* Takes the block out and puts it in front of (or, `behind`, after) the child of the target's body that holds block
 * `neighbour`. */
static const ir_stmt *carry_out(move *m, const char *neighbour, bool behind)
{
    tec_context *cx = m->c->cx;
    const ir_stmt *rest = sched_remove(cx, &m->from), *body, *nest;
    sched_path to;

    if (!m->loop) {
        int index = neighbour ? sched_child_with(rest, neighbour) + behind : rest->kind == IR_SEQ ? rest->seq.n : 1;

        nest = new_nest(m, m->c->s->facts, rest);
        return sched_insert(cx, rest, index, nest);
    }
    if (!sched_find_var(cx, rest, m->loop, &to))
        return NULL;
    nest = new_nest(m, sched_facts_at(m->c->s, &to, to.n), rest);
    body = sched_end(&to)->loop.body;
    body = sched_insert(cx, body, sched_child_with(body, neighbour) + behind, nest);
    return sched_rebuild(cx, &to, to.n - 1, body ? sched_with_child(cx, sched_end(&to), 0, body) : NULL);
}

/* ---- compute_at ---- */

/* e reads no buffer, and its variables are loops around the target, symbols or scalars: what the readers' own lets define is
 * out of reach. */
static bool in_reach(const move *m, const ir_expr *e)
{
    const ir_program *p = m->c->tree;
    base_vec vars = {0};

    if (e->has & IR_HAS_LOAD)
        return false;
    ir_free_vars(m->c->cx, e, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool known = encloses_target(m, vars.at[i]);

        for (int j = 0; j < p->n_symbols; j++)
            known = known || p->symbols[j] == vars.at[i];
        for (int j = 0; j < p->n_params; j++)
            known = known || p->params[j].scalar == vars.at[i];
        if (!known)
            return false;
    }
    return true;
}

/* The access of r to what the block writes, in the same step; NULL: none. */
static const ir_region *read_of(const move *m, const sched_site *r, const ir_region *write)
{
    const ir_region *read =
        r == m->site || !in_step(m, r) ? NULL : sched_access(r->block->reads, r->block->n_reads, write->buffer);

    return read && !(m->step && sched_apart(m->c->s, r, read, m->site, write, m->step)) ? read : NULL;
}

/* The hull of what blocks under the target read of a buffer. */
static ir_region needed(move *m, const ir_region *write, const ir_facts **f)
{
    ir_region *boxes = base_array(m->c->cx, ir_region, m->all.n);
    int n = 0;

    for (int i = 0; i < m->all.n; i++) {
        const sched_site *r = &m->all.at[i];
        const ir_region *read = read_of(m, r, write);

        if (!read || (n && BASE_PLANT_ON(m->c->cx, compute_at_hull)))
            continue;
        if (n == 0)
            *f = sched_site_facts(m->c->s, r, fixed_loops(m, r));
        boxes[n++] = sched_box(m->c->s, r, read, fixed_loops(m, r), true);
    }
    return ir_region_union(*f, boxes, n);
}

/* Narrows one loop of the block; where several buffers ask for different parts, to none. */
static void narrow_loop(move *m, const ir_facts *f, int i, const ir_expr *min, const ir_expr *extent, bool first)
{
    const ir_expr *whole = m->site->block->iters[i].extent;

    if (!in_reach(m, min) || !in_reach(m, extent))
        return;
    bool same = first || (ir_prove_equal(f, m->min[i], min) && ir_prove_equal(f, m->extent[i], extent));
    m->min[i] = same ? ir_simplify(f, min) : ir_int(m->c->cx, 0);
    m->extent[i] = same ? ir_simplify(f, extent) : whole;
    if (ir_is_value(m->min[i], 0) && ir_prove_le(f, whole, m->extent[i]))
        m->extent[i] = whole;
}

/* The interval of a variable over the elements of a box. */
static bool span_in_box(const ir_facts *f, const sched_layout *l, const ir_expr *var, const ir_region *box, const ir_expr **min,
                        const ir_expr **extent)
{
    ir_ranges inner = {.var = l->point, .min = box->min, .extent = box->extent, .n = l->n};

    return ir_span(f, var, &inner, NULL, min, extent);
}

static bool invert_layout(move *m, const ir_facts *f, const ir_region *write, const ir_region *box, bool first)
{
    const ir_expr *min, *extent;
    sched_layout l;

    if (!sched_invert_store(m->c->s, m->site->block, write, &l))
        return sched_refuse(m->c, "the store of '%s' to '%s' cannot be inverted", m->site->block->name, write->buffer->name);
    for (int i = 0; i < m->site->block->n_iters; i++)
        if (l.var[i] && span_in_box(f, &l, l.var[i], box, &min, &extent))
            narrow_loop(m, f, i, min, extent, first);
    return true;
}

/* Narrows the loops of the block to the points that write `box`. */
static bool invert_store(move *m, const ir_facts *f, const ir_region *write, const ir_region *box, bool first)
{
    const ir_block *b = m->site->block;
    int *dim_of = base_array(m->c->cx, int, b->n_iters);

    if (!sched_plain_store(m->c->s, b, write, dim_of))
        return invert_layout(m, f, write, box, first);
    for (int i = 0; i < b->n_iters; i++)
        if (dim_of[i] >= 0 && b->iters[i].kind != IR_SCAN) {
            const ir_expr *shift = ir_int(m->c->cx, sched_store_shift(write, dim_of[i]));

            narrow_loop(m, f, i, ir_sub(m->c->cx, box->min[dim_of[i]], shift), box->extent[dim_of[i]], first);
        }
    return true;
}

/* Where no reader runs, the block has nothing to do, and what it would read may be undefined. */
static void inherit_guards(move *m, const sched_site *reader)
{
    base_vec all = {0};

    sched_outer_guards(m->c->s, reader, fixed_loops(m, reader), &all);
    for (int i = 0; i < all.n; i++) {
        bool shared = true;

        for (int j = 0; shared && j < m->all.n; j++)
            for (int k = 0; k < m->site->block->n_writes; k++)
                if (read_of(m, &m->all.at[j], &m->site->block->writes[k]))
                    shared = shared && sched_has_guard(m->c->s, &m->all.at[j], all.at[i]);
        if (shared)
            base_push(m->c->cx, &m->guards, all.at[i]);
    }
}

/* Nobody reads from an earlier step what the block is about to overwrite, and would find it overwritten. */
static bool overtakes_nobody(move *m)
{
    for (int j = 0; j < m->site->block->n_writes; j++)
        for (int i = 0; i < m->all.n; i++) {
            const sched_site *r = &m->all.at[i];

            if (r->order < m->site->order && read_of(m, r, &m->site->block->writes[j]))
                return sched_refuse(m->c, "'%s' reads '%s' before '%s' overwrites it", r->block->name,
                                    m->site->block->writes[j].buffer->name, m->site->block->name);
        }
    return true;
}

/* Finds the first block that reads what this one writes; all readers must lie under the target. */
static const sched_site *first_reader(move *m)
{
    const ir_block *b = m->site->block;
    const sched_site *first = NULL;

    for (int j = 0; j < b->n_writes; j++) {
        const ir_buffer *buffer = b->writes[j].buffer;

        if (m->loop && !m->step && sched_is_output(m->c->tree, buffer))
            return sched_refuse(m->c, "'%s' is an argument of the program; all of it must be written", buffer->name);
        if (buffer->alias)
            return sched_refuse(m->c, "'%s' may share memory with other buffers", buffer->name);
        for (int i = 0; i < m->all.n; i++) {
            const sched_site *r = &m->all.at[i];

            if (!read_of(m, r, &b->writes[j]))
                continue;
            if (!under(m, r))
                return sched_refuse(m->c, "'%s' reads '%s', but does not lie under '%s'", r->block->name, buffer->name,
                                    m->loop_name);
            first = !first || r->order < first->order ? r : first;
        }
    }
    if (!first && m->loop)
        return sched_refuse(m->c, "nothing reads what '%s' writes", b->name);
    return first;
}

static bool set_region(move *m)
{
    const ir_block *b = m->site->block;

    for (int j = 0; j < b->n_writes; j++) {
        const ir_facts *f = NULL;
        bool read = false;

        for (int i = 0; i < m->all.n; i++)
            read = read || read_of(m, &m->all.at[i], &b->writes[j]);
        if (!read)
            continue;
        ir_region box = needed(m, &b->writes[j], &f);
        if (!invert_store(m, f, &b->writes[j], &box, j == 0))
            return false;
    }
    return true;
}

/* In the new tree, each step of the block still writes all that it wrote before: later steps, and what follows the scan, may read it. */
static bool step_is_whole(move *m, const ir_stmt *root)
{
    sched_sites now = sched_all_sites(m->c->cx, root);
    const sched_site *site = sched_site_named(&now, m->site->block->name);

    for (int j = 0; m->step && j < m->site->block->n_writes; j++) {
        const ir_region *write = &m->site->block->writes[j];
        ir_region box = sched_box(m->c->s, m->site, write, m->step, true);

        if (!sched_fills(m->c->s, site, write, &box, m->step))
            return sched_refuse(m->c, "it is not proven that '%s' would still write all of '%s' in each step of '%s'",
                                m->site->block->name, write->buffer->name, m->site->loop[m->step - 1]->loop.var->var.name);
    }
    return true;
}

/* compute_at(P, l): P runs inside l, before its first reader there, over what the readers need. */
const ir_program *sched_do_compute_at(sched_call *c)
{
    const sched_site *reader;
    move m;

    if (!start(c, &m, c->arg[0].name, c->arg[1].name) || !movable(&m) || !sched_takes_loops(c, &m.to) || !overtakes_nobody(&m) ||
        !(reader = first_reader(&m)))
        return NULL;
    if (!inputs_complete(&m, sched_child_with(sched_end(&m.to)->loop.body, reader->block->name)) || !set_region(&m))
        return NULL;
    inherit_guards(&m, reader);
    const ir_stmt *root = carry_out(&m, reader->block->name, false);
    return root && step_is_whole(&m, root) && sched_reads_are_written(c, root, m.site->block->name) &&
                   sched_still_independent(c, &m.to, root)
               ? sched_with_body(c, root)
               : NULL;
}

/* compute_root(P): P runs in a nest of its own again, before the first nest that reads it. */
const ir_program *sched_do_compute_root(sched_call *c)
{
    move m;

    if (!start(c, &m, c->arg[0].name, NULL) || !movable(&m))
        return NULL;
    const sched_site *reader = first_reader(&m);
    if (c->reason)
        return NULL;
    int index = reader ? sched_child_with(c->tree->body, reader->block->name) : INT32_MAX;
    if (!inputs_complete(&m, index))
        return NULL;
    const ir_stmt *root = carry_out(&m, reader ? reader->block->name : NULL, reader && BASE_PLANT_ON(c->cx, compute_root_place));
    return sched_with_body(c, root);
}

/* ---- reverse_compute_at ---- */

/* Q runs where its producers do, apart from what only keeps those in their domains. */
static void add_guards(move *m, const sched_site *w)
{
    base_vec all = {0}, counts = {0};

    sched_outer_guards(m->c->s, w, fixed_loops(m, w), &all);
    sched_conjuncts(m->c->cx, sched_loop_guards(m->c->s, w), &counts);
    for (int i = 0; i < all.n; i++) {
        bool known = false, kept = false;

        for (int j = 0; j < counts.n; j++)
            kept = kept || counts.at[j] == all.at[i];
        for (int j = 0; j < m->guards.n; j++)
            known = known || ir_same(m->guards.at[j], all.at[i]);
        if (kept && !known)
            base_push(m->c->cx, &m->guards, all.at[i]);
    }
}

static bool in_reach(const move *m, const ir_expr *e);

/* The copy of an accumulating cache leaves its buffer complete when it is at the last of its steps. */
static bool add_last_steps(move *m, const sched_site *w)
{
    tec_context *cx = m->c->cx;

    for (int i = 0; i < w->block->n_iters; i++) {
        const ir_iter *step = &w->block->iters[i];
        const ir_expr *bind = w->stmt->block.bind[i],
                      *last = ir_simplify(m->c->s->facts, ir_sub(cx, step->extent, ir_int(cx, 1)));

        if (step->kind != IR_SCAN || sched_common_loops(w, m->site) >= sched_step_depth(m->c->s, w))
            continue;
        if (w->block->role != IR_ROLE_COPY || !in_reach(m, bind) || !ir_prove_le(m->c->s->facts, ir_int(cx, 0), last))
            return sched_refuse(m->c, "'%s' is not complete in an iteration of '%s': it goes on in later ones", w->block->name,
                                m->loop_name);
        if (!ir_is_value(last, 0))
            base_push(cx, &m->last_steps, ir_eq(cx, bind, last));
    }
    return true;
}

/* Blocks under the target that write what Q reads: complete within an iteration. Gives the last one. */
static const sched_site *last_producer(move *m)
{
    const sched_site *last = NULL;

    for (int i = 0; i < m->all.n; i++) {
        const sched_site *w = &m->all.at[i];
        bool produces = false;

        for (int j = 0; j < m->site->block->n_reads; j++)
            produces = produces || (sched_writes(w->block, m->site->block->reads[j].buffer) &&
                                    !earlier_only(m, &m->site->block->reads[j], w));
        if (w == m->site || !produces || !under(m, w))
            continue;
        for (int k = 0; k < fixed_loops(m, w); k++)
            if (sched_kind_for(m->c->cx, w, w->loop[k]->loop.var) != IR_SPATIAL &&
                sched_kind_for(m->c->cx, w, w->loop[k]->loop.var) != IR_SCAN)
                return sched_refuse(m->c, "'%s' is not complete in an iteration of '%s': '%s' is its reduction loop",
                                    w->block->name, m->loop_name, w->loop[k]->loop.var->var.name);
        if (!add_last_steps(m, w))
            return NULL;
        add_guards(m, w);
        last = w;
    }
    if (!last)
        return sched_refuse(m->c, "nothing under '%s' writes what '%s' reads", m->loop_name, m->site->block->name);
    return last;
}

/* v = x - c: the iteration variable of Q that index d of a read is, up to a constant; -1: none. */
static int read_iter(move *m, const ir_region *read, int d, int64_t *c)
{
    const ir_block *b = m->site->block;

    if (!ir_is_value(read->extent[d], 1))
        return -1;
    for (int i = 0; i < b->n_iters; i++) {
        const ir_expr *shift = ir_simplify(m->c->s->facts, ir_sub(m->c->cx, read->min[d], b->iters[i].var));

        if (b->iters[i].kind == IR_SPATIAL && ir_is_int(shift, c))
            return i;
    }
    return -1;
}

/* The iterations of w together write every element of its domain (of a scan: in a step). A piece of a cut loop does not, nor a block that was computed at its
 * readers: it writes what they use, and an index under a condition may not be used. */
static bool writes_all(move *m, const sched_site *w, const ir_region *write, const int *dim_of)
{
    int step = 0, n = write->buffer->n;
    const ir_expr **extent = base_array(m->c->cx, const ir_expr *, n), **min = base_array(m->c->cx, const ir_expr *, n);
    ir_region whole = {.buffer = write->buffer, .min = min, .extent = extent};

    for (int d = 0; d < n; d++) {
        min[d] = write->min[d];
        extent[d] = ir_int(m->c->cx, 1);
    }
    for (int k = 0; k < w->block->n_iters; k++)
        if (dim_of[k] >= 0 && w->block->iters[k].kind == IR_SCAN) {
            min[dim_of[k]] = sched_stored_at(m->c->cx, w, write, dim_of[k]);
            step = sched_step_depth(m->c->s, w);
        } else if (dim_of[k] >= 0) {
            min[dim_of[k]] = ir_int(m->c->cx, sched_store_shift(write, dim_of[k]));
            extent[dim_of[k]] = w->block->iters[k].extent;
        }
    return sched_fills(m->c->s, w, write, &whole, step);
}

/* ... of a buffer with a layout, whose padding counts as written. */
static bool writes_box(move *m, const sched_site *w, const ir_region *write)
{
    ir_region whole = ir_region_whole(m->c->cx, write->buffer);

    return sched_fills(m->c->s, w, write, &whole, 0);
}

static bool plain_read(move *m, const ir_region *read)
{
    int64_t shift;

    for (int d = 0; d < read->buffer->n; d++)
        if (read_iter(m, read, d, &shift) < 0)
            return false;
    return true;
}

/* Q reads every element of the buffer at one of its points: those in the box say which points run. */
static bool take_layout_part(move *m, const ir_facts *f, const ir_region *read, const ir_region *box)
{
    sched_layout l;

    if (!sched_invert_read(m->c->s, m->site->block, read, &l))
        return false;
    for (int i = 0; i < m->site->block->n_iters; i++)
        if (l.var[i] && !span_in_box(f, &l, l.var[i], box, &m->min[i], &m->extent[i]))
            return false;
    return true;
}

/* The loop's variable says where Q starts. */
static bool any_starts_at(const move *m, const ir_expr *var)
{
    for (int i = 0; i < m->site->block->n_iters; i++)
        if (sched_mentions(m->c->cx, m->min[i], var))
            return true;
    return false;
}

/* Loops around the target that say nothing of which points of Q run, must run. What Q shares with w before runs as it did. */
static const ir_stmt *idle_loop(move *m, const sched_site *w)
{
    for (int i = sched_common_loops(w, m->site); i < fixed_loops(m, w); i++) {
        const ir_stmt *l = w->loop[i];

        if (!any_starts_at(m, l->loop.var) && !ir_prove_le(sched_site_facts(m->c->s, w, i), ir_int(m->c->cx, 1), l->loop.extent))
            return l;
    }
    return NULL;
}

/* All that Q reads of w's part is computed in each iteration in which Q runs, and Q runs. */
static bool part_is_reached(move *m, const sched_site *w, const char **reason)
{
    const ir_stmt *idle = idle_loop(m, w);

    if (idle)
        *reason = base_format(m->c->cx, "it is not proven that '%s' runs at all", idle->loop.var->var.name);
    for (int i = 0; !idle && i < m->guards.n; i++)
        if (!sched_has_guard(m->c->s, w, m->guards.at[i])) {
            *reason = base_format(m->c->cx, "it depends on '%s' whether all that '%s' reads is computed",
                                  ir_expr_text(m->c->cx, m->guards.at[i]), m->site->block->name);
            return false;
        }
    return !idle;
}

/* Q runs at the points that read, one variable for each dimension, what lies in the box. */
static bool take_plain_part(move *m, const ir_region *read, const sched_site *w, const ir_region *write, const int *dim_of,
                            const ir_region *box, const char **reason)
{
    const ir_block *b = m->site->block;
    const ir_facts *f = sched_site_facts(m->c->s, w, fixed_loops(m, w));
    bool *set = base_array(m->c->cx, bool, b->n_iters);

    for (int k = 0; k < w->block->n_iters; k++) {
        int64_t shift = 0;
        int d = dim_of[k], i = d < 0 ? -1 : read_iter(m, read, d, &shift);

        if (i < 0 || set[i])
            continue;
        int64_t ahead = shift - sched_store_shift(write, d);
        const ir_expr *end = ir_add(m->c->cx, b->iters[i].extent, ir_int(m->c->cx, ahead));
        if (ahead < 0 || !ir_prove_le(f, end, w->block->iters[k].extent)) {
            *reason = base_format(m->c->cx, "no part of '%s' that '%s' writes covers all of axis '%s' of '%s'",
                                  read->buffer->name, w->block->name, b->iters[i].var->var.name, b->name);
            return false;
        }
        m->min[i] = ir_simplify(f, ir_sub(m->c->cx, box->min[d], ir_int(m->c->cx, shift)));
        m->extent[i] = ir_simplify(f, box->extent[d]);
        set[i] = true;
    }
    return true;
}

/* Lets the part of `write` that w completes per iteration say which points of Q run; false where it does not cover all of
 * them. */
static bool take_part(move *m, const ir_region *read, const sched_site *w, const ir_region *write, const char **reason)
{
    int *dim_of = base_array(m->c->cx, int, w->block->n_iters);
    ir_region box = sched_box(m->c->s, w, write, fixed_loops(m, w), true);
    const ir_facts *f = sched_site_facts(m->c->s, w, fixed_loops(m, w));
    bool plain = sched_plain_store(m->c->s, w->block, write, dim_of);

    if (!plain && !writes_box(m, w, write)) {
        *reason = base_format(m->c->cx, "the store of '%s' cannot be inverted", w->block->name);
        return false;
    }
    if (plain && !writes_all(m, w, write, dim_of)) {
        *reason = base_format(m->c->cx, "it is not proven that '%s' writes all of '%s'", w->block->name, read->buffer->name);
        return false;
    }
    if (!plain_read(m, read) && take_layout_part(m, f, read, &box))
        return part_is_reached(m, w, reason);
    if (!plain) {
        *reason = base_format(m->c->cx, "the read of '%s' by '%s' cannot be inverted", read->buffer->name, m->site->block->name);
        return false;
    }
    return take_plain_part(m, read, w, write, dim_of, &box, reason) && part_is_reached(m, w, reason);
}

/* One producer's part decides; the others must have completed what Q reads there. The first producer whose part passes is
 * taken. */
static const ir_stmt *try_parts(move *m, const char *last)
{
    const char *why = NULL, *reason = NULL;

    for (int i = 0; i < m->all.n; i++)
        for (int j = 0; j < m->site->block->n_reads; j++) {
            const sched_site *w = &m->all.at[i];
            const ir_region *read = &m->site->block->reads[j],
                            *write = sched_access(w->block->writes, w->block->n_writes, read->buffer);

            if (w == m->site || !write || !under(m, w) || earlier_only(m, read, w))
                continue;
            whole_domain(m);
            m->c->reason = NULL;
            if (take_part(m, read, w, write, &reason)) {
                const ir_stmt *root = carry_out(m, last, !BASE_PLANT_ON(m->c->cx, reverse_compute_at_place));

                if (root && step_is_whole(m, root) && sched_reads_are_written(m->c, root, m->site->block->name))
                    return root;
                reason = m->c->reason;
            }
            why = why ? why : reason;
        }
    m->c->reason = NULL;
    return why ? sched_refuse(m->c, "%s", why)
               : sched_refuse(m->c, "what '%s' writes under '%s' is read by '%s' as another buffer of the same memory", last,
                              m->loop_name, m->site->block->name);
}

/* The other inputs of Q are complete before the target's body. */
static bool others_complete(move *m, const sched_site *last)
{
    const ir_block *b = m->site->block;
    int first_under = m->all.n;

    for (int i = m->all.n - 1; i >= 0; i--)
        if (under(m, &m->all.at[i]))
            first_under = i;
    for (int i = 0; i < m->all.n; i++)
        for (int j = 0; j < b->n_reads; j++) {
            const sched_site *w = &m->all.at[i];

            if (w == m->site || under(m, w) || !sched_writes(w->block, b->reads[j].buffer) || earlier_only(m, &b->reads[j], w))
                continue;
            if (w->order > first_under)
                return sched_refuse(m->c, "'%s', which '%s' reads, is not complete before '%s': '%s' writes it later",
                                    b->reads[j].buffer->name, b->name, m->loop_name, w->block->name);
        }
    if (last->order > m->site->order)
        return sched_refuse(m->c, "'%s' writes what '%s' reads, but runs after it", last->block->name, b->name);
    return true;
}

/* reverse_compute_at(Q, l): Q runs inside l, after its last producer there, over what the producers complete in the iteration. */
const ir_program *sched_do_reverse_compute_at(sched_call *c)
{
    const sched_site *last;
    move m;

    if (!start(c, &m, c->arg[0].name, c->arg[1].name))
        return NULL;
    if (under(&m, m.site))
        return sched_refuse(c, "'%s' lies under '%s' already", c->arg[0].name, c->arg[1].name);
    if (!movable(&m) || !sched_takes_loops(c, &m.to) || !overtakes_nobody(&m) || !(last = last_producer(&m)) ||
        !others_complete(&m, last))
        return NULL;
    for (int j = 0; j < m.site->block->n_writes; j++)
        if (m.site->block->writes[j].buffer->alias)
            return sched_refuse(c, "'%s' may share memory with other buffers", m.site->block->writes[j].buffer->name);
    const ir_stmt *root = try_parts(&m, last->block->name);
    return root && sched_still_independent(c, &m.to, root) ? sched_with_body(c, root) : NULL;
}
