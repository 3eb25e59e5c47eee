/* ops/schedule.c -- default schedules: inline what is cheap, let the anchor's implementation tile, treat what is left nest by nest.
 *
 * Nothing is measured here: choices follow from shapes and the target's description. A step that is refused is our mistake and makes the
 * whole schedule fail; only inlining, and keeping sums in registers, is tried and may be refused.
 */
#include "ops/schedule.h"

#include <string.h>

enum {
    PARALLEL_WORK = 1 << 14, /* elements below which starting threads costs more than it gives */
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

int64_t op_extent(const sched *s, const char *loop)
{
    int64_t n;

    return sched_extent(s, loop, &n) ? n : 0;
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

static bool schedule_pointwise(tec_context *cx, sched *s, const char *block, const char **loop, int n)
{
    const ir_block *b = block_of(s, block);
    bool parallel = pays_in_parallel(s, loop, n);
    const char *outer, *one;

    if (n == 0)
        return true;
    int known = space_constant_suffix(s, loop, n);
    if (known > 1 && space_is_flat(cx, b)) {
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

/* The loops of a reduction as vectors, along columns or rows where it pays. Takes from the spatial loops what is no longer there. */
static bool vectorise_reduction(tec_context *cx, sched *s, const char *block, const char **spatial, int *n, const char *const *reduce, int n_reduce)
{
    const char *outer;

    if (*n == 0 || !space_has_columns(cx, block_of(s, block))) {
        int rows = space_count_rows(cx, s, block_of(s, block), reduce, n_reduce);

        return rows == 0 || vectorise_rows(s, block, reduce + n_reduce - rows, rows);
    }
    if (!vectorise_columns(s, block, spatial[*n - 1], reduce, n_reduce, &outer) || !unroll_taps(s, reduce, n_reduce))
        return false;
    spatial[*n - 1] = outer;
    *n -= outer == NULL;
    return *n == 0 || space_keep_in_register(s, block, spatial[*n - 1]);
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
    return row ? space_loop_of(s, block, row) : NULL;
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

    space_inline_cheap(s, NULL, 0);
    if (impl && impl->schedule && anchor && !impl->schedule(s, anchor))
        return false;
    int n = sched_blocks(s, &name);
    for (int i = 0; i < n; i++)
        if (space_has_note(s, name[i], "by_rows") && !schedule_by_rows(s, name[i]))
            return false;
    for (int i = 0; i < n; i++)
        if (is_untouched(s, name[i]) && !op_schedule_nest(s, name[i]))
            return false;
    return true;
}
