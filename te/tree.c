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
#include "te/names.h"

static const ir_expr *zero(tec_context *cx)
{
    return ir_int(cx, 0);
}

/* How many steps are computed, which the conditions of te/scan.c make at least 0. */
static const ir_expr *time_extent(tec_context *cx, const te_scan *scan)
{
    return ir_sub(cx, scan->extent, ir_int(cx, scan->first));
}

/* Iteration variables of the block, with axis -> variable in `map`. They have the names that the text of the
 * definition gives the axes, and the loops are named after them. In a scan with one given step over t: n
 *
 *     update h[t, j] = f(h[t - 1, j])   =>   block h(t scan = loop in 0..n - 1, j)
 *                                              h[t + 1, j] = f(h[t + 1 - 1, j])
 *
 * so that all iteration variables begin at 0, as schedules expect. */
static ir_iter *make_iters(tec_context *cx, const te_stage *stage, ir_subst *map)
{
    int n = stage->n_axes + stage->n_reduce;
    ir_iter *iters = base_array(cx, ir_iter, n);
    te_axis_names names = te_name_axes(cx, stage);

    for (int i = 0; i < n; i++) {
        int k = i - stage->n_axes;
        bool reduce = k >= 0;
        const ir_expr *axis = reduce ? stage->reduce_axis[k] : stage->axis[i];

        iters[i].var = ir_var(cx, reduce ? names.reduce[k] : names.axis[i], BASE_I64);
        iters[i].extent = reduce ? stage->reduce_extent[k] : stage->extent[i];
        iters[i].kind = reduce ? IR_REDUCE_ITER : IR_SPATIAL;
        base_map_put(cx, &map->vars, axis, iters[i].var);
    }
    if (stage->scan) {
        iters[0].extent = time_extent(cx, stage->scan);
        iters[0].kind = stage->init ? IR_SCAN : IR_SPATIAL;
        base_map_put(cx, &map->vars, stage->axis[0],
                     ir_add(cx, iters[0].var, ir_int(cx, stage->scan->first)));
    }
    return iters;
}

/* All outputs of one point, with no order among them: none reads another. */
static const ir_stmt *store_all(tec_context *cx, const te_stage *stage, const ir_expr *const *index,
                                const ir_expr *const *value)
{
    const ir_stmt **store = base_array(cx, const ir_stmt *, stage->n_outputs);

    for (int i = 0; i < stage->n_outputs; i++)
        store[i] = ir_store(cx, stage->output[i]->buffer, value[i], index, stage->n_axes);
    return ir_seq(cx, store, stage->n_outputs);
}

/* A condition of the reduction becomes an `if` around the update: where it fails, the point adds nothing. */
static const ir_stmt *update(tec_context *cx, const te_stage *stage, const ir_expr *const *index,
                             const ir_subst *map)
{
    const ir_expr *r = stage->body[0];
    const ir_buffer **buffer = base_array(cx, const ir_buffer *, stage->n_outputs);
    const ir_expr **source = base_array(cx, const ir_expr *, stage->n_outputs);

    for (int i = 0; i < stage->n_outputs; i++) {
        buffer[i] = stage->output[i]->buffer;
        source[i] = ir_apply(cx, map, r->reduce.source[i]);
    }
    const ir_stmt *u = ir_update(cx, r->reduce.combiner, buffer, index, stage->n_axes, source);
    return r->reduce.condition ? ir_if(cx, ir_apply(cx, map, r->reduce.condition), u, NULL) : u;
}

/* A reduction becomes an init with the identity and an update; other bodies become stores. */
static void set_bodies(tec_context *cx, const te_stage *stage, ir_block *block, const ir_subst *map)
{
    const ir_expr **index = base_array(cx, const ir_expr *, stage->n_axes);

    for (int i = 0; i < stage->n_axes; i++)
        index[i] = base_map_get(&map->vars, stage->axis[i]);
    if (stage->body[0]->op == IR_REDUCE) {
        block->init = store_all(cx, stage, index, stage->body[0]->reduce.combiner->identity);
        block->body = update(cx, stage, index, map);
        return;
    }
    const ir_expr **value = base_array(cx, const ir_expr *, stage->n_outputs);
    for (int i = 0; i < stage->n_outputs; i++)
        value[i] = ir_apply(cx, map, stage->body[i]);
    block->body = store_all(cx, stage, index, value);
}

/* Regions are what the body touches for one value of each iteration variable. The start values count as well:
 * a block that only resets writes. */
static void set_regions(const ir_facts *outer, ir_block *block)
{
    tec_context *cx = ir_facts_context(outer);
    ir_facts *facts = ir_facts_new(cx, outer);
    base_vec reads = {0}, writes = {0};

    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(facts, block->iters[i].var, zero(cx), block->iters[i].extent);
    ir_touched(facts, block->init ? ir_seq2(cx, block->init, block->body) : block->body, &reads, &writes);
    block->n_reads = reads.n;
    block->reads = ir_regions_of(cx, &reads);
    block->n_writes = writes.n;
    block->writes = ir_regions_of(cx, &writes);
}

/* A stage writes one point of each output, whatever is known of its extents. Of an axis that has at most one
 * value, j in 0..m with m <= 1, the region of C[i, j] is found to be C[i, 0:m]: the same elements, but no
 * longer of the form from which primitives tell the iteration that wrote an element. */
static void keep_points(tec_context *cx, const te_stage *stage, ir_block *block, const ir_subst *map)
{
    ir_region *writes = base_copy(cx, block->writes, (size_t)block->n_writes * sizeof *writes);

    for (int k = 0; k < block->n_writes; k++) {
        const ir_expr **index = base_array(cx, const ir_expr *, stage->n_axes);
        bool point = true;

        for (int d = 0; d < stage->n_axes; d++) {
            bool one = ir_is_value(writes[k].extent[d], 1);

            index[d] = one ? writes[k].min[d] : base_map_get(&map->vars, stage->axis[d]);
            point = point && one;
        }
        if (!point)
            writes[k] = ir_region_point(cx, writes[k].buffer, index);
    }
    block->writes = writes;
}

/* The axes' loops around the block, the first axis outermost and reduction axes innermost. `time`: the loop
 * variable of the scan around the nest, bound to the first iteration variable, or NULL. */
static const ir_stmt *nest(tec_context *cx, const te_stage *stage, const ir_block *block, const ir_expr *time)
{
    const ir_expr **bind = base_array(cx, const ir_expr *, block->n_iters);

    for (int i = 0; i < block->n_iters; i++)
        bind[i] =
            time && i == 0
                ? time
                : ir_var(cx, base_format(cx, "%s.%s", stage->name, block->iters[i].var->var.name), BASE_I64);
    const ir_stmt *t = ir_block_stmt(cx, block, bind, NULL);
    for (int i = block->n_iters - 1; i >= (time != NULL); i--)
        t = ir_for(cx, bind[i], zero(cx), block->iters[i].extent, IR_SERIAL, t);
    return t;
}

/* The block of a stage under a nest of its axes. `time`: the loop of the scan that is around, NULL outside of
 * one. */
static const ir_stmt *stage_tree(const ir_facts *facts, const te_stage *stage, const ir_expr *time)
{
    tec_context *cx = ir_facts_context(facts);
    ir_subst map = {0};
    ir_block *block = base_new(cx, ir_block);

    ir_at(cx, stage->loc);
    block->name = stage->name;
    block->role = stage->role;
    block->n_iters = stage->n_axes + stage->n_reduce;
    block->iters = make_iters(cx, stage, &map);
    block->notes = stage->notes;
    block->loc = stage->loc;
    set_bodies(cx, stage, block, &map);
    if (!block->body)
        return NULL;
    set_regions(facts, block);
    keep_points(cx, stage, block, &map);
    return nest(cx, stage, block, time);
}

/* First the given steps of each state, then one loop over the others with all updates in order. */
static const ir_stmt *scan_tree(const ir_facts *facts, const te_scan *scan)
{
    tec_context *cx = ir_facts_context(facts);
    base_vec given = {0}, steps = {0};
    const ir_expr *time = ir_var(cx, base_format(cx, "%s.%s", scan->name, te_time_name(cx, scan)), BASE_I64);

    for (int i = 0; i < scan->states.n; i++)
        base_push(cx, &given, stage_tree(facts, ((te_tensor *)scan->states.at[i])->stage->init, NULL));
    for (int i = 0; i < scan->steps.n; i++)
        base_push(cx, &steps, stage_tree(facts, scan->steps.at[i], time));
    ir_at(cx, scan->loc);
    const ir_stmt *body = ir_seq(cx, (const ir_stmt *const *)steps.at, steps.n);
    base_push(cx, &given, ir_for(cx, time, zero(cx), time_extent(cx, scan), IR_SERIAL, body));
    return ir_seq(cx, (const ir_stmt *const *)given.at, given.n);
}

/* One opaque instance: nothing is known of the order in which the function does its work. */
static const ir_stmt *extern_tree(const ir_facts *facts, const te_stage *stage)
{
    tec_context *cx = ir_facts_context(facts);
    ir_block *block = base_new(cx, ir_block);
    ir_iter *iter = base_new(cx, ir_iter);
    const ir_expr *once = zero(cx);

    ir_at(cx, stage->loc);
    *iter = (ir_iter){.var = ir_var(cx, "once", BASE_I64), .extent = ir_int(cx, 1), .kind = IR_OPAQUE};
    *block = (ir_block){.name = stage->name,
                        .role = stage->role,
                        .n_iters = 1,
                        .iters = iter,
                        .notes = stage->notes,
                        .loc = stage->loc};
    block->body = te_extern_call(cx, stage);
    if (!block->body)
        return NULL;
    set_regions(facts, block);
    return ir_block_stmt(cx, block, &once, NULL);
}

static bool is_output(const te_def *def, const te_tensor *tensor)
{
    for (int i = 0; i < def->outputs.n; i++)
        if (def->outputs.at[i] == tensor)
            return true;
    return false;
}

/* The order of a kernel's arguments: inputs, scalars, outputs. Symbols are none: they are told by shapes. */
static const ir_param *make_params(tec_context *cx, const te_def *def, int *count)
{
    ir_param *param = base_array(cx, ir_param, def->inputs.n + def->scalars.n + def->outputs.n);

    *count = 0;
    for (int i = 0; i < def->inputs.n; i++)
        param[(*count)++].buffer = ((te_tensor *)def->inputs.at[i])->buffer;
    for (int i = 0; i < def->scalars.n; i++)
        param[(*count)++].scalar = def->scalars.at[i];
    for (int i = 0; i < def->outputs.n; i++)
        param[(*count)++] = (ir_param){.buffer = ((te_tensor *)def->outputs.at[i])->buffer, .output = true};
    return param;
}

/* All tensors that are neither inputs nor outputs: memory that only this program sees. */
static void collect_buffers(tec_context *cx, const te_def *def, base_vec *out)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *s = def->stages.at[i];

        for (int j = 0; s->kind != TE_INPUT && j < s->n_outputs; j++)
            if (!is_output(def, s->output[j]))
                base_push(cx, out, s->output[j]->buffer);
    }
}

/* Each once, though several stages may call it. */
static void collect_intrinsics(tec_context *cx, const te_def *def, base_vec *out)
{
    base_map seen = {0};

    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];
        const ir_intrinsic *in = stage->kind == TE_EXTERN ? stage->call->intrinsic : NULL;

        if (in && !base_map_has(&seen, in))
            base_push(cx, out, in);
        if (in)
            base_map_put(cx, &seen, in, in);
    }
}

/* The definition's facts, then what a call has to keep for extents and indices to make sense. */
static bool add_facts(tec_context *cx, const te_def *def, ir_program *program)
{
    te_conditions derived = {0};
    ir_facts *f;

    program->n_facts = def->facts.n;
    program->facts = (const ir_expr *const *)def->facts.at;
    f = ir_facts_new(cx, ir_facts_of_program(cx, program));
    if (!te_derive_conditions(cx, def, f, &derived))
        return false;
    int n = def->facts.n + derived.conditions.n;
    const ir_expr **facts = base_array(cx, const ir_expr *, n);
    const char **reasons = base_array(cx, const char *, n);

    for (int i = 0; i < n; i++) {
        facts[i] = i < def->facts.n ? def->facts.at[i] : derived.conditions.at[i - def->facts.n];
        reasons[i] = i < def->facts.n ? NULL : derived.reasons.at[i - def->facts.n];
    }
    program->n_facts = n;
    program->facts = facts;
    program->reasons = derived.conditions.n ? reasons : NULL;
    return true;
}

/* ---- names ---- */

typedef struct {
    ir_walk w;
    base_dict names;
} block_names;

/* A hook that collects the names of all blocks. */
static bool note_name(ir_walk *walk, const ir_stmt *stmt)
{
    if (stmt->kind == IR_BLOCK)
        base_dict_put(walk->cx, &((block_names *)walk)->names, stmt->block.block->name, stmt);
    return true;
}

typedef struct {
    ir_rewrite rw;
    base_dict taken;
} loop_namer;

/* Loops are named after stage and axis; the second of a name gets a number, so that schedules can tell them
 * apart. */
static const ir_stmt *name_loop(ir_rewrite *rw, const ir_stmt *stmt)
{
    loop_namer *namer = (loop_namer *)rw;

    if (stmt->kind != IR_FOR)
        return ir_rewrite_stmt_children(rw, stmt);
    const ir_expr *old = stmt->loop.var;
    const char *name = old->var.name;
    for (int i = 2; base_dict_has(&namer->taken, name); i++)
        name = base_format(rw->cx, "%s'%d", old->var.name, i);
    base_dict_put(rw->cx, &namer->taken, name, stmt);
    if (name != old->var.name) {
        const ir_expr *var = ir_var(rw->cx, name, old->dtype);
        stmt = ir_for(rw->cx, var, stmt->loop.min, stmt->loop.extent, stmt->loop.how,
                      ir_substitute_stmt(rw->cx, stmt->loop.body, old, var));
    }
    return stmt ? ir_rewrite_stmt_children(rw, stmt) : NULL;
}

/* Schedules find loops and blocks by name. Where the axis `init` of C would make a loop 'C.init' beside the
 * user's stage 'C.init', the loop gets a number. */
static const ir_stmt *name_loops(tec_context *cx, const ir_stmt *stmt)
{
    block_names blocks = {.w = {.stmt = note_name, .cx = cx}};

    if (!stmt)
        return NULL;
    ir_walk_stmt(&blocks.w, stmt);
    loop_namer n = {.rw = {.cx = cx, .stmt = name_loop}, .taken = blocks.names};
    return ir_rewrite_stmt(&n.rw, stmt);
}

/* A definition must be complete: it has an output and no open scan. NULL with an error. */
const ir_program *te_tree(tec_context *cx, const te_def *def)
{
    if (!def || base_failed(cx))
        return NULL;
    if (def->outputs.n == 0)
        return base_fail(cx, TEC_INVALID, def->loc, "'%s' has no output", def->name);
    if (def->open)
        return base_fail(cx, TEC_INVALID, def->open->loc, "scan '%s' is not closed", def->open->name);

    ir_program *program = base_new(cx, ir_program);
    base_vec buffers = {0}, nests = {0}, intrinsics = {0};
    collect_buffers(cx, def, &buffers);
    program->name = def->name;
    program->loc = def->loc;
    program->params = make_params(cx, def, &program->n_params);
    program->n_symbols = def->symbols.n;
    program->symbols = (const ir_expr *const *)def->symbols.at;
    if (!add_facts(cx, def, program))
        return NULL;
    program->n_buffers = buffers.n;
    program->buffers = (const ir_buffer *const *)buffers.at;
    collect_intrinsics(cx, def, &intrinsics);
    program->n_intrinsics = intrinsics.n;
    program->intrinsics = (const ir_intrinsic *const *)intrinsics.at;

    const ir_facts *facts = ir_facts_of_program(cx, program);
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        if (stage->kind == TE_COMPUTE)
            base_push(cx, &nests, stage_tree(facts, stage, NULL));
        else if (stage->kind == TE_SCAN && stage == stage->scan->steps.at[0])
            base_push(cx, &nests, scan_tree(facts, stage->scan));
        else if (stage->kind == TE_EXTERN)
            base_push(cx, &nests, extern_tree(facts, stage));
    }
    program->body = name_loops(cx, ir_seq(cx, (const ir_stmt *const *)nests.at, nests.n));
    return program->body && !base_failed(cx) ? program : NULL;
}
