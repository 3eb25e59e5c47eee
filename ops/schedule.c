/* ops/schedule.c -- default schedules: inline what is cheap, let the anchor's implementation tile, treat what is left nest by nest.
 *
 * Nothing is measured here: choices follow from shapes and the target's description. A step that is refused is our mistake and makes the
 * whole schedule fail; only inlining, and keeping sums in registers, is tried and may be refused.
 */
#include "ops/schedule.h"

#include <string.h>

#include "ir/walk.h"

enum {
    PARALLEL_WORK = 1 << 14, /* elements below which starting threads costs more than it gives */
    CHEAP_OPS = 3,           /* operations that may be done again for a second reader */
    MAX_TAPS = 32,           /* the steps of a reduction that are written out */
    TASKS_PER_CORE = 4       /* enough for cores that are late */
};

/* ---- looking ---- */

int op_loops(const sched *s, const char *block, const char ***names)
{
    return sched_loops_of(s, block, names);
}

static const ir_block *block_of(const sched *s, const char *name)
{
    const ir_stmt *b = sched_block(s, name);

    return b ? b->block.block : NULL;
}

const char *op_loop(const sched *s, const char *block, const char *iter)
{
    const ir_stmt *b = sched_block(s, block);
    const char **loop;
    int n = sched_loops_of(s, block, &loop);

    for (int i = 0; b && i < b->block.block->n_iters; i++) {
        if (!base_same(b->block.block->iters[i].var->var.name, iter))
            continue;
        for (int j = n - 1; j >= 0; j--) {
            if (ir_uses_var(sched_context(s), b->block.bind[i], sched_loop(s, loop[j])->loop.var))
                return loop[j];
        }
    }
    return NULL;
}

int64_t op_extent(const sched *s, const char *loop)
{
    int64_t n;

    return sched_extent(s, loop, &n) ? n : 0;
}

bool op_note(const sched *s, const char *block, const char *key)
{
    const ir_block *b = block_of(s, block);
    const ir_expr *v = b ? ir_note_get(b->notes, key) : NULL;

    return v && ir_is_true(v);
}

static bool reduces(const ir_block *b)
{
    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_REDUCE_ITER)
            return true;
    return false;
}

/* ---- inlining ---- */

typedef struct {
    ir_walk w;
    int ops;
    bool math;
} cost;

static bool count_node(ir_walk *w, const ir_expr *e)
{
    cost *c = (cost *)w;

    if (e->op == IR_LOAD)
        return false;
    c->ops += ir_is_op(e->op);
    c->math = c->math || (e->op >= IR_SQRT && e->op <= IR_ATANH);
    return true;
}

static bool is_cheap(tec_context *cx, const ir_block *b)
{
    cost c = {.w = {.expr = count_node, .cx = cx}};

    if (b->body->kind != IR_STORE)
        return false;
    ir_walk_expr(&c.w, b->body->store.value);
    return !c.math && c.ops <= CHEAP_OPS;
}

/* A producer is computed where it is read if that computes nothing dear twice. */
static bool wants_inline(tec_context *cx, const sched *s, const char *name)
{
    const ir_block *b = block_of(s, name);
    const char **reader;
    int n = sched_readers_of(s, name, &reader);

    if (reduces(b) || b->n_writes != 1 || n == 0 || op_note(s, name, "keep"))
        return false;
    bool cheap = is_cheap(cx, b);
    for (int i = 0; i < n; i++) {
        const ir_block *r = block_of(s, reader[i]);

        /* A reduction may read each element many times. */
        if (!cheap && (n > 1 || (reduces(r) && r->role == IR_ROLE_ANCHOR)))
            return false;
    }
    return true;
}

static void inline_cheap(tec_context *cx, sched *s)
{
    const char **name;
    int n = sched_blocks(s, &name);

    for (int i = 0; i < n; i++)
        if (wants_inline(cx, s, name[i]) && !sched_compute_inline(s, name[i]))
            sched_clear(s);
}

/* ---- register tiles ---- */

/* Cycles for one step of the reduction: two multiply-adds and two loads a cycle, and sums that depend on themselves. */
static double step_time(const target *t, int rows, int vectors)
{
    double fma = (double)rows * vectors / (t->fma_ports ? t->fma_ports : 1);
    double load = (double)(rows + vectors) / (t->load_ports ? t->load_ports : 1), latency = 4;

    return fma > load ? (fma > latency ? fma : latency) : (load > latency ? load : latency);
}

static double problem_time(const target *t, int64_t rows, int64_t vectors, op_tile tile)
{
    int64_t full = rows / tile.rows, rest = rows % tile.rows;
    double one_column = (double)full * step_time(t, tile.rows, tile.vectors) + (rest ? step_time(t, (int)rest, tile.vectors) : 0);

    return one_column * (double)((vectors + tile.vectors - 1) / tile.vectors);
}

op_tile op_tile_choose(const target *t, int64_t rows, int64_t vectors)
{
    int registers = t && t->vector_registers ? t->vector_registers : 16;
    int most = registers >= 32 ? 24 : registers - registers / 4;
    op_tile best = {1, 1};
    double best_time = 0;

    if (!t)
        return best;
    if (rows <= 0)
        rows = 120;
    for (int v = 1; v <= 8 && v <= vectors; v++) {
        if (vectors % v)
            continue;
        for (int r = 1; r * v <= most && r <= rows; r++) {
            double time = problem_time(t, rows, vectors, (op_tile){r, v});

            if (best_time == 0 || time < best_time) {
                best_time = time;
                best = (op_tile){r, v};
            }
        }
    }
    /* As many tiles, of more equal heights. */
    int64_t tiles = (rows + best.rows - 1) / best.rows;
    best.rows = (int)((rows + tiles - 1) / tiles);
    return best;
}

/* ---- parallel ---- */

bool op_parallel(sched *s, const char *const *loop, int n)
{
    const char *outer = n > 1 ? sched_fuse(s, loop, n) : n == 1 ? loop[0] : NULL;

    if (!outer)
        return n == 0;
    if (sched_target(s) && sched_target(s)->num_cores == 1)
        return true;
    return op_extent(s, outer) == 1 || sched_annotate(s, outer, IR_PARALLEL);
}

/* Whether a nest touches enough elements; an unknown extent may be large. */
static bool pays_in_parallel(const sched *s, const char *const *loop, int n)
{
    double work = 1;

    for (int i = 0; i < n; i++) {
        int64_t extent = op_extent(s, loop[i]);

        if (extent == 0)
            return true;
        work *= (double)extent;
    }
    return work >= PARALLEL_WORK;
}

/* ---- nests ---- */

typedef struct {
    ir_walk w;
    const ir_expr *const *index; /* of the store */
    int n;
    bool flat;
} flat_check;

static bool check_load(ir_walk *w, const ir_expr *e)
{
    flat_check *c = (flat_check *)w;

    for (int i = 0; e->op == IR_VAR && i < c->n; i++)
        c->flat = c->flat && e != c->index[i];
    if (e->op != IR_LOAD)
        return true;
    for (int i = 0; i < e->load.n; i++)
        c->flat = c->flat && e->load.n == c->n && e->load.index[i] == c->index[i];
    return false;
}

static bool same_shape(const ir_buffer *a, const ir_buffer *b)
{
    for (int i = 0; i < a->n; i++)
        if (!ir_same(a->shape[i], b->shape[i]))
            return false;
    return a->n == b->n;
}

/* Every access is the element at the same position of a tensor of the same shape, and nothing else depends on the position: one loop over
 * all elements will do. */
static bool is_flat(tec_context *cx, const ir_block *b)
{
    if (b->body->kind != IR_STORE)
        return false;
    const ir_stmt *st = b->body;
    flat_check c = {.w = {.expr = check_load, .cx = cx}, .index = st->store.index, .n = st->store.n, .flat = true};

    ir_walk_expr(&c.w, st->store.value);
    for (int i = 0; i < b->n_iters; i++)
        c.flat = c.flat && i < st->store.n && st->store.index[i] == b->iters[i].var;
    for (int i = 0; c.flat && i < b->n_reads; i++)
        c.flat = b->reads[i].buffer->n == 0 || same_shape(b->reads[i].buffer, st->store.buffer);
    return c.flat && b->n_iters == st->store.n;
}

static int lanes_of(const sched *s, const ir_block *b)
{
    base_dtype t = b->n_writes ? b->writes[0].buffer->dtype : BASE_F32;

    return sched_target(s) ? target_lanes(sched_target(s), t) : 1;
}

/* The innermost spatial loop as vectors: whole ones, and a masked or scalar rest. Gives the loop left outside, or NULL where the loop itself
 * became the vector. */
static bool vectorise(sched *s, const char *loop, int lanes, const char **outer)
{
    int64_t n = op_extent(s, loop);
    const char *part[2];

    *outer = NULL;
    if (n > 0 && n <= lanes)
        return n == 1 || sched_annotate(s, loop, IR_VECTORISED);
    if (!sched_split(s, loop, (int64_t[]){SCHED_INFER, lanes}, 2, SCHED_GUARD, part))
        return false;
    *outer = part[0];
    return sched_annotate(s, part[1], IR_VECTORISED);
}

/* Spatial loops, then reduction loops, outermost first. */
static int partition(const sched *s, const char *block, const char **spatial, const char **reduce, int *n_reduce)
{
    const char **all;
    int n = sched_loops_of(s, block, &all), n_spatial = 0;

    *n_reduce = 0;
    for (int i = 0; i < n; i++) {
        if (sched_loop_kind(s, all[i]) == IR_REDUCE_ITER)
            reduce[(*n_reduce)++] = all[i];
        else
            spatial[n_spatial++] = all[i];
    }
    return n_spatial;
}

/* How many of the innermost loops have constant extents. */
static int constant_suffix(const sched *s, const char *const *loop, int n)
{
    int64_t extent;
    int k = 0;

    while (k < n && sched_extent(s, loop[n - 1 - k], &extent))
        k++;
    return k;
}

static bool schedule_pointwise(tec_context *cx, sched *s, const char *block, const char **loop, int n)
{
    const ir_block *b = block_of(s, block);
    bool parallel = pays_in_parallel(s, loop, n);
    const char *outer, *one;

    if (n == 0)
        return true;
    int known = constant_suffix(s, loop, n);
    if (known > 1 && is_flat(cx, b)) {
        one = sched_fuse(s, loop + n - known, known);
        if (!one)
            return false;
        n -= known - 1;
        loop[n - 1] = one;
    }
    if (!vectorise(s, loop[n - 1], lanes_of(s, b), &outer))
        return false;
    loop[n - 1] = outer;
    return !parallel || op_parallel(s, loop, n - (outer == NULL));
}

/* ---- reductions ---- */

typedef struct {
    ir_walk w;
    const ir_expr *var;
    bool side_by_side;
} column_check;

static bool check_column(ir_walk *w, const ir_expr *e)
{
    column_check *c = (column_check *)w;

    for (int i = 0; e->op == IR_LOAD && i < e->load.n - 1; i++)
        c->side_by_side = c->side_by_side && !ir_uses_var(w->cx, e->load.index[i], c->var);
    return true;
}

/* Neighbouring sums read elements that lie side by side, or the same ones: vectors of sums pay. */
static bool has_columns(tec_context *cx, const ir_block *b)
{
    column_check c = {.w = {.expr = check_column, .cx = cx}, .side_by_side = true};

    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_SPATIAL)
            c.var = b->iters[i].var;
    if (c.var)
        ir_walk_stmt(&c.w, b->body);
    return c.var && c.side_by_side;
}

/* The last spatial loop becomes the innermost, as vectors of sums. Gives the loop left outside in its place, or NULL. */
static bool vectorise_columns(sched *s, const char *block, const char *column, const char *const *reduce, int n_reduce, const char **outer)
{
    int lanes = lanes_of(s, block_of(s, block));
    int64_t n = op_extent(s, column);
    const char *part[2] = {NULL, column}, **order = NULL;
    base_vec list = {0};
    tec_context *cx = sched_context(s);

    *outer = NULL;
    if (n == 1)
        return true;
    if ((n == 0 || n > lanes) && !sched_split(s, column, (int64_t[]){SCHED_INFER, lanes}, 2, SCHED_GUARD, part))
        return false;
    for (int i = 0; i < n_reduce; i++)
        base_push(cx, &list, reduce[i]);
    base_push(cx, &list, part[1]);
    order = (const char **)list.at;
    *outer = part[0];
    return sched_reorder(s, order, list.n) && sched_annotate(s, part[1], IR_VECTORISED);
}

typedef struct {
    ir_walk w;
    const ir_iter *axis; /* the last n reduction axes */
    int n;
    bool along_rows;
} row_check;

static bool uses_axis(tec_context *cx, const row_check *c, const ir_expr *e)
{
    for (int i = 0; i < c->n; i++)
        if (ir_uses_var(cx, e, c->axis[i].var))
            return true;
    return false;
}

/* Each load steps through memory one by one: its last indices are the axes, all but the first of them over the whole dimension. Or it
 * stays where it is. */
static bool check_row(ir_walk *w, const ir_expr *e)
{
    row_check *c = (row_check *)w;

    if (e->op != IR_LOAD || !uses_axis(w->cx, c, e))
        return true;
    int first = e->load.n - c->n;
    for (int i = 0; c->along_rows && i < e->load.n; i++) {
        const ir_iter *axis = i < first ? NULL : &c->axis[i - first];

        if (first < 0 || !axis)
            c->along_rows = first >= 0 && !uses_axis(w->cx, c, e->load.index[i]);
        else
            c->along_rows = e->load.index[i] == axis->var && (i == first || ir_same(e->load.buffer->shape[i], axis->extent));
    }
    return true;
}

/* How many of the last reduction loops run along rows of what is read, as one loop: vectors of partial sums pay. */
static int count_rows(tec_context *cx, const sched *s, const ir_block *b, const char *const *reduce, int n_reduce)
{
    ir_iter *axis = base_array(cx, ir_iter, b->n_iters);
    int n = 0;

    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_REDUCE_ITER)
            axis[n++] = b->iters[i];
    if (n != n_reduce || b->body->kind != IR_UPDATE || !b->body->update.combiner->reorders)
        return 0;
    for (int take = constant_suffix(s, reduce, n) > 1 ? constant_suffix(s, reduce, n) : 1; take > 0; take--) {
        row_check c = {.w = {.expr = check_row, .cx = cx}, .axis = axis + n - take, .n = take, .along_rows = true};

        ir_walk_stmt(&c.w, b->body);
        if (c.along_rows)
            return take;
    }
    return 0;
}

/* The last reduction loops as vectors of partial results, where at least one whole vector fits. */
static bool vectorise_rows(sched *s, const char *block, const char *const *row, int n_rows)
{
    int lanes = lanes_of(s, block_of(s, block));
    int64_t n = 1;

    for (int i = 0; i < n_rows; i++)
        n *= op_extent(s, row[i]);
    if (lanes < 2 || (n > 0 && n < lanes))
        return true;
    const char *part[2], *one = n_rows > 1 ? sched_fuse(s, row, n_rows) : row[0];
    part[1] = one;
    return one && (n == lanes || sched_split(s, one, (int64_t[]){SCHED_INFER, lanes}, 2, SCHED_GUARD, part)) && sched_annotate(s, part[1], IR_VECTORISED);
}

/* A short reduction is written out. */
static bool unroll_taps(sched *s, const char *const *reduce, int n)
{
    int64_t taps = 1;

    for (int i = 0; i < n; i++)
        taps *= op_extent(s, reduce[i]);
    if (taps == 0 || taps > MAX_TAPS)
        return true;
    for (int i = 0; i < n; i++)
        if (!sched_annotate(s, reduce[i], IR_UNROLLED))
            return false;
    return true;
}

/* The sums of one vector stay in a register; where that is refused, in memory. */
static bool keep_in_register(sched *s, const char *block, const char *loop)
{
    const char *copy = sched_cache_write_at(s, block, IR_LOCAL, loop), **all;

    if (!copy) {
        sched_clear(s);
        return true;
    }
    int n = sched_loops_of(s, copy, &all);
    return op_extent(s, all[n - 1]) == 1 || sched_annotate(s, all[n - 1], IR_VECTORISED);
}

/* The loops of a reduction as vectors, along columns or rows where it pays. Takes from the spatial loops what is no longer there. */
static bool vectorise_reduction(tec_context *cx, sched *s, const char *block, const char **spatial, int *n, const char *const *reduce, int n_reduce)
{
    const char *outer;

    if (*n == 0 || !has_columns(cx, block_of(s, block))) {
        int rows = count_rows(cx, s, block_of(s, block), reduce, n_reduce);

        return rows == 0 || vectorise_rows(s, block, reduce + n_reduce - rows, rows);
    }
    if (!vectorise_columns(s, block, spatial[*n - 1], reduce, n_reduce, &outer) || !unroll_taps(s, reduce, n_reduce))
        return false;
    spatial[*n - 1] = outer;
    *n -= outer == NULL;
    return *n == 0 || keep_in_register(s, block, spatial[*n - 1]);
}

/* How many of the outer loops give all cores enough to do. */
static int count_tasks(const sched *s, const char *const *loop, int n)
{
    int64_t tasks = 1, cores = sched_target(s) ? sched_target(s)->num_cores : 1;
    int k = 0;

    for (; k < n && tasks < cores * TASKS_PER_CORE; k++)
        tasks *= op_extent(s, loop[k]) ? op_extent(s, loop[k]) : 1;
    return k;
}

static bool schedule_reduction(tec_context *cx, sched *s, const char *block, const char **spatial, int n, const char **reduce, int n_reduce)
{
    bool parallel = n > 0 && pays_in_parallel(s, spatial, n);

    if (!vectorise_reduction(cx, s, block, spatial, &n, reduce, n_reduce))
        return false;
    return !parallel || op_parallel(s, spatial, count_tasks(s, spatial, n));
}

/* The loops of a reduction inside the loop `outer`, which others have scheduled. */
static bool schedule_inside(sched *s, const char *block, const char *outer)
{
    tec_context *cx = sched_context(s);
    const char **all;
    int n = sched_loops_of(s, block, &all), first = 0, n_reduce = 0, n_spatial = 0;
    const char **spatial = base_array(cx, const char *, n), **reduce = base_array(cx, const char *, n);

    while (first < n && strcmp(all[first], outer) != 0)
        first++;
    for (int i = first + 1; i < n; i++)
        if (sched_loop_kind(s, all[i]) == IR_REDUCE_ITER)
            reduce[n_reduce++] = all[i];
        else
            spatial[n_spatial++] = all[i];
    return vectorise_reduction(cx, s, block, spatial, &n_spatial, reduce, n_reduce);
}

bool op_schedule_nest(sched *s, const char *block)
{
    tec_context *cx = sched_context(s);
    const char **all;
    int n = sched_loops_of(s, block, &all), n_reduce;
    const char **spatial = base_array(cx, const char *, n), **reduce = base_array(cx, const char *, n);

    n = partition(s, block, spatial, reduce, &n_reduce);
    return n_reduce ? schedule_reduction(cx, s, block, spatial, n, reduce, n_reduce) : schedule_pointwise(cx, s, block, spatial, n);
}

/* No loop around the block was annotated: no one has scheduled it yet, nor computes it elsewhere. */
static bool is_untouched(const sched *s, const char *block)
{
    const char **loop;
    int n = sched_loops_of(s, block, &loop);

    for (int i = 0; i < n; i++) {
        const ir_stmt *l = sched_loop(s, loop[i]);

        if (l->loop.how != IR_SERIAL || l->loop.body->kind == IR_SEQ)
            return false;
    }
    return true;
}

/* The loop over the rows of a block: that of its last but one spatial variable. */
static const char *row_loop(const sched *s, const char *block)
{
    const ir_block *b = block_of(s, block);
    const char *row = NULL, *last = NULL;

    for (int i = 0; i < b->n_iters; i++)
        if (b->iters[i].kind == IR_SPATIAL) {
            row = last;
            last = b->iters[i].var->var.name;
        }
    return row ? op_loop(s, block, row) : NULL;
}

/* A block with the note "by_rows" is computed for one row of its reader after the other. */
static bool schedule_by_rows(sched *s, const char *block)
{
    const char **reader, *row;

    if (sched_readers_of(s, block, &reader) != 1 || !is_untouched(s, reader[0]))
        return true;
    if (!op_schedule_nest(s, reader[0]))
        return false;
    row = row_loop(s, reader[0]);
    return !row || (sched_compute_at(s, block, row) && schedule_inside(s, block, row));
}

bool op_schedule(sched *s, const op_impl *impl)
{
    const char **name, *anchor = sched_block_with_role(s, IR_ROLE_ANCHOR);

    inline_cheap(sched_context(s), s);
    if (impl && impl->schedule && anchor && !impl->schedule(s, anchor))
        return false;
    int n = sched_blocks(s, &name);
    for (int i = 0; i < n; i++)
        if (op_note(s, name[i], "by_rows") && !schedule_by_rows(s, name[i]))
            return false;
    for (int i = 0; i < n; i++)
        if (is_untouched(s, name[i]) && !op_schedule_nest(s, name[i]))
            return false;
    return true;
}
