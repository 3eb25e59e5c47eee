/* te/tree.c -- the default loop tree of a definition: one block for each stage, in order, each under a
 * perfect nest of its own axes.
 *
 *     C[y: n, x: m] = sum[k: l](A[y, k] * B[k, x])
 * =>
 *     for C.y in 0..n { for C.x in 0..m { for C.k in 0..l {
 *       block C(y = C.y, x = C.x, k reduce = C.k) { init { C[y, x] = 0 }  C[y, x] sum= A[y, k] * B[k, x] }
 *     }}}
 *
 * The blocks of a scan stand one after the other in one loop over the steps that are not given; those that
 * are given come before it. An update counts its steps from 0, so time is its first iteration variable plus
 * the number of given steps. That variable is of kind scan in the updates of states. What lives within a step
 * has no order of its own in time; it only follows what it reads.
 */
#include "ir/reason/facts.h"
#include "ir/region/region.h"
#include "ir/walk.h"
#include "te/extern.h"
#include "te/inside.h"

static const ir_expr *zero(tec_context *cx)
{
    return ir_int(cx, 0);
}

/* How many steps are computed, which the conditions of te/scan.c make at least 0. */
static const ir_expr *time_extent(tec_context *cx, const te_scan *s)
{
    return ir_sub(cx, s->extent, ir_int(cx, s->first));
}

/* Iteration variables of the block, with axis -> variable in `map`. In a scan with one given step over t: n
 *
 *     update h[t, j] = f(h[t - 1, j])   =>   block h(t scan = loop in 0..n - 1, j)
 *                                              h[t + 1, j] = f(h[t + 1 - 1, j])
 *
 * so that all iteration variables begin at 0, as schedules expect. */
static ir_iter *make_iters(tec_context *cx, const te_stage *s, ir_subst *map)
{
    int n = s->n_axes + s->n_reduce;
    ir_iter *iters = base_array(cx, ir_iter, n);

    for (int i = 0; i < n; i++) {
        bool reduce = i >= s->n_axes;
        const ir_expr *axis = reduce ? s->reduce_axis[i - s->n_axes] : s->axis[i];

        iters[i].var = ir_var(cx, axis->var.name, BASE_I64);
        iters[i].extent = reduce ? s->reduce_extent[i - s->n_axes] : s->extent[i];
        iters[i].kind = reduce ? IR_REDUCE_ITER : IR_SPATIAL;
        base_map_put(cx, &map->vars, axis, iters[i].var);
    }
    if (s->scan) {
        iters[0].extent = time_extent(cx, s->scan);
        iters[0].kind = s->init ? IR_SCAN : IR_SPATIAL;
        base_map_put(cx, &map->vars, s->axis[0], ir_add(cx, iters[0].var, ir_int(cx, s->scan->first)));
    }
    return iters;
}

/* All outputs of one point, with no order among them: none reads another. */
static const ir_stmt *store_all(tec_context *cx, const te_stage *s, const ir_expr *const *index,
                                const ir_expr *const *value)
{
    const ir_stmt **store = base_array(cx, const ir_stmt *, s->n_outputs);

    for (int i = 0; i < s->n_outputs; i++)
        store[i] = ir_store(cx, s->output[i]->buffer, value[i], index, s->n_axes);
    return ir_seq(cx, store, s->n_outputs);
}

/* A condition of the reduction becomes an `if` around the update: where it fails, the point adds nothing. */
static const ir_stmt *update(tec_context *cx, const te_stage *s, const ir_expr *const *index,
                             const ir_subst *map)
{
    const ir_expr *r = s->body[0];
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, s->n_outputs);
    const ir_expr **source = base_array(cx, const ir_expr *, s->n_outputs);

    for (int i = 0; i < s->n_outputs; i++) {
        buffer[i] = s->output[i]->buffer;
        source[i] = ir_apply(cx, map, r->reduce.source[i]);
    }
    const ir_stmt *u = ir_update(cx, r->reduce.combiner, buffer, index, s->n_axes, source);
    return r->reduce.condition ? ir_if(cx, ir_apply(cx, map, r->reduce.condition), u, NULL) : u;
}

/* A reduction becomes an init with the identity and an update; other bodies become stores. */
static void set_bodies(tec_context *cx, const te_stage *s, ir_block *b, const ir_subst *map)
{
    const ir_expr **index = base_array(cx, const ir_expr *, s->n_axes);

    for (int i = 0; i < s->n_axes; i++)
        index[i] = base_map_get(&map->vars, s->axis[i]);
    if (s->body[0]->op == IR_REDUCE) {
        b->init = store_all(cx, s, index, s->body[0]->reduce.combiner->identity);
        b->body = update(cx, s, index, map);
        return;
    }
    const ir_expr **value = base_array(cx, const ir_expr *, s->n_outputs);
    for (int i = 0; i < s->n_outputs; i++)
        value[i] = ir_apply(cx, map, s->body[i]);
    b->body = store_all(cx, s, index, value);
}

/* Regions are what the body touches for one value of each iteration variable. The start values count as well:
 * a block that only resets writes. */
static void set_regions(const ir_facts *outer, ir_block *b)
{
    tec_context *cx = ir_facts_context(outer);
    ir_facts *f = ir_facts_new(cx, outer);
    base_vec reads = {0}, writes = {0};

    for (int i = 0; i < b->n_iters; i++)
        ir_facts_range(f, b->iters[i].var, zero(cx), b->iters[i].extent);
    ir_touched(f, b->init ? ir_seq2(cx, b->init, b->body) : b->body, &reads, &writes);
    b->n_reads = reads.n;
    b->reads = ir_regions_of(cx, &reads);
    b->n_writes = writes.n;
    b->writes = ir_regions_of(cx, &writes);
}

/* The axes' loops around the block, the first axis outermost and reduction axes innermost. `time`: the loop
 * variable of the scan around the nest, bound to the first iteration variable, or NULL. */
static const ir_stmt *nest(tec_context *cx, const te_stage *s, const ir_block *b, const ir_expr *time)
{
    const ir_expr **bind = base_array(cx, const ir_expr *, b->n_iters);

    for (int i = 0; i < b->n_iters; i++)
        bind[i] = time && i == 0
                      ? time
                      : ir_var(cx, base_format(cx, "%s.%s", s->name, b->iters[i].var->var.name), BASE_I64);
    const ir_stmt *t = ir_block_stmt(cx, b, bind, NULL);
    for (int i = b->n_iters - 1; i >= (time != NULL); i--)
        t = ir_for(cx, bind[i], zero(cx), b->iters[i].extent, IR_SERIAL, t);
    return t;
}

/* The block of a stage under a nest of its axes. `time`: the loop of the scan that is around, NULL outside of
 * one. */
static const ir_stmt *stage_tree(const ir_facts *f, const te_stage *s, const ir_expr *time)
{
    tec_context *cx = ir_facts_context(f);
    ir_subst map = {0};
    ir_block *b = base_new(cx, ir_block);

    ir_at(cx, s->loc);
    b->name = s->name;
    b->role = s->role;
    b->n_iters = s->n_axes + s->n_reduce;
    b->iters = make_iters(cx, s, &map);
    b->notes = s->notes;
    b->loc = s->loc;
    set_bodies(cx, s, b, &map);
    if (!b->body)
        return NULL;
    set_regions(f, b);
    return nest(cx, s, b, time);
}

/* First the given steps of each state, then one loop over the others with all updates in order. */
static const ir_stmt *scan_tree(const ir_facts *f, const te_scan *s)
{
    tec_context *cx = ir_facts_context(f);
    base_vec given = {0}, steps = {0};
    const ir_expr *time = ir_var(cx, base_format(cx, "%s.%s", s->name, s->time->var.name), BASE_I64);

    for (int i = 0; i < s->states.n; i++)
        base_push(cx, &given, stage_tree(f, ((te_tensor *)s->states.at[i])->stage->init, NULL));
    for (int i = 0; i < s->steps.n; i++)
        base_push(cx, &steps, stage_tree(f, s->steps.at[i], time));
    ir_at(cx, s->loc);
    const ir_stmt *body = ir_seq(cx, (const ir_stmt *const *)steps.at, steps.n);
    base_push(cx, &given, ir_for(cx, time, zero(cx), time_extent(cx, s), IR_SERIAL, body));
    return ir_seq(cx, (const ir_stmt *const *)given.at, given.n);
}

/* One opaque instance: nothing is known of the order in which the function does its work. */
static const ir_stmt *extern_tree(const ir_facts *f, const te_stage *s)
{
    tec_context *cx = ir_facts_context(f);
    ir_block *b = base_new(cx, ir_block);
    ir_iter *iter = base_new(cx, ir_iter);
    const ir_expr *once = zero(cx);

    ir_at(cx, s->loc);
    *iter = (ir_iter){.var = ir_var(cx, "once", BASE_I64), .extent = ir_int(cx, 1), .kind = IR_OPAQUE};
    *b = (ir_block){
        .name = s->name, .role = s->role, .n_iters = 1, .iters = iter, .notes = s->notes, .loc = s->loc};
    b->body = te_extern_call(cx, s);
    if (!b->body)
        return NULL;
    set_regions(f, b);
    return ir_block_stmt(cx, b, &once, NULL);
}

static bool is_output(const te_def *d, const te_tensor *t)
{
    for (int i = 0; i < d->outputs.n; i++)
        if (d->outputs.at[i] == t)
            return true;
    return false;
}

/* The order of a kernel's arguments: inputs, scalars, outputs. Symbols are none: they are told by shapes. */
static const ir_param *make_params(tec_context *cx, const te_def *d, int *n)
{
    ir_param *p = base_array(cx, ir_param, d->inputs.n + d->scalars.n + d->outputs.n);

    *n = 0;
    for (int i = 0; i < d->inputs.n; i++)
        p[(*n)++].buffer = ((te_tensor *)d->inputs.at[i])->buffer;
    for (int i = 0; i < d->scalars.n; i++)
        p[(*n)++].scalar = d->scalars.at[i];
    for (int i = 0; i < d->outputs.n; i++)
        p[(*n)++] = (ir_param){.buffer = ((te_tensor *)d->outputs.at[i])->buffer, .output = true};
    return p;
}

/* All tensors that are neither inputs nor outputs: memory that only this program sees. */
static void collect_buffers(tec_context *cx, const te_def *d, base_vec *out)
{
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        for (int j = 0; s->kind != TE_INPUT && j < s->n_outputs; j++)
            if (!is_output(d, s->output[j]))
                base_push(cx, out, s->output[j]->buffer);
    }
}

/* Each once, though several stages may call it. */
static void collect_intrinsics(tec_context *cx, const te_def *d, base_vec *out)
{
    base_map seen = {0};

    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];
        const ir_intrinsic *in = s->kind == TE_EXTERN ? s->call->intrinsic : NULL;

        if (in && !base_map_has(&seen, in))
            base_push(cx, out, in);
        if (in)
            base_map_put(cx, &seen, in, in);
    }
}

/* The definition's facts, then what a call has to keep for extents and indices to make sense. */
static bool add_facts(tec_context *cx, const te_def *d, ir_program *p)
{
    te_conditions derived = {0};
    ir_facts *f;

    p->n_facts = d->facts.n;
    p->facts = (const ir_expr *const *)d->facts.at;
    f = ir_facts_new(cx, ir_facts_of_program(cx, p));
    if (!te_derive_conditions(cx, d, f, &derived))
        return false;
    int n = d->facts.n + derived.conditions.n;
    const ir_expr **facts = base_array(cx, const ir_expr *, n);
    const char **reasons = base_array(cx, const char *, n);

    for (int i = 0; i < n; i++) {
        facts[i] = i < d->facts.n ? d->facts.at[i] : derived.conditions.at[i - d->facts.n];
        reasons[i] = i < d->facts.n ? NULL : derived.reasons.at[i - d->facts.n];
    }
    p->n_facts = n;
    p->facts = facts;
    p->reasons = derived.conditions.n ? reasons : NULL;
    return true;
}

/* ---- names ---- */

typedef struct {
    ir_walk w;
    base_dict names;
} block_names;

/* A hook that collects the names of all blocks. */
static bool note_name(ir_walk *w, const ir_stmt *s)
{
    if (s->kind == IR_BLOCK)
        base_dict_put(w->cx, &((block_names *)w)->names, s->block.block->name, s);
    return true;
}

typedef struct {
    ir_rewrite rw;
    base_dict taken;
} loop_namer;

/* Loops are named after stage and axis; the second of a name gets a number, so that schedules can tell them
 * apart. */
static const ir_stmt *name_loop(ir_rewrite *rw, const ir_stmt *s)
{
    loop_namer *n = (loop_namer *)rw;

    if (s->kind != IR_FOR)
        return ir_rewrite_stmt_children(rw, s);
    const ir_expr *old = s->loop.var;
    const char *name = old->var.name;
    for (int i = 2; base_dict_has(&n->taken, name); i++)
        name = base_format(rw->cx, "%s'%d", old->var.name, i);
    base_dict_put(rw->cx, &n->taken, name, s);
    if (name != old->var.name) {
        const ir_expr *var = ir_var(rw->cx, name, old->dtype);
        s = ir_for(rw->cx, var, s->loop.min, s->loop.extent, s->loop.how,
                   ir_substitute_stmt(rw->cx, s->loop.body, old, var));
    }
    return s ? ir_rewrite_stmt_children(rw, s) : NULL;
}

/* Schedules find loops and blocks by name. Where the axis `init` of C would make a loop 'C.init' beside the
 * user's stage 'C.init', the loop gets a number. */
static const ir_stmt *name_loops(tec_context *cx, const ir_stmt *s)
{
    block_names blocks = {.w = {.stmt = note_name, .cx = cx}};

    if (!s)
        return NULL;
    ir_walk_stmt(&blocks.w, s);
    loop_namer n = {.rw = {.cx = cx, .stmt = name_loop}, .taken = blocks.names};
    return ir_rewrite_stmt(&n.rw, s);
}

/* A definition must be complete: it has an output and no open scan. NULL with an error. */
const ir_program *te_tree(tec_context *cx, const te_def *d)
{
    if (!d || base_failed(cx))
        return NULL;
    if (d->outputs.n == 0)
        return base_fail(cx, TEC_INVALID, d->loc, "'%s' has no output", d->name);
    if (d->open)
        return base_fail(cx, TEC_INVALID, d->open->loc, "scan '%s' is not closed", d->open->name);

    ir_program *p = base_new(cx, ir_program);
    base_vec buffers = {0}, nests = {0}, intrinsics = {0};
    collect_buffers(cx, d, &buffers);
    p->name = d->name;
    p->loc = d->loc;
    p->params = make_params(cx, d, &p->n_params);
    p->n_symbols = d->symbols.n;
    p->symbols = (const ir_expr *const *)d->symbols.at;
    if (!add_facts(cx, d, p))
        return NULL;
    p->n_buffers = buffers.n;
    p->buffers = (const ir_buffer *const *)buffers.at;
    collect_intrinsics(cx, d, &intrinsics);
    p->n_intrinsics = intrinsics.n;
    p->intrinsics = (const ir_intrinsic *const *)intrinsics.at;

    const ir_facts *f = ir_facts_of_program(cx, p);
    for (int i = 0; i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        if (s->kind == TE_COMPUTE)
            base_push(cx, &nests, stage_tree(f, s, NULL));
        else if (s->kind == TE_SCAN && s == s->scan->steps.at[0])
            base_push(cx, &nests, scan_tree(f, s->scan));
        else if (s->kind == TE_EXTERN)
            base_push(cx, &nests, extern_tree(f, s));
    }
    p->body = name_loops(cx, ir_seq(cx, (const ir_stmt *const *)nests.at, nests.n));
    return p->body && !base_failed(cx) ? p : NULL;
}
