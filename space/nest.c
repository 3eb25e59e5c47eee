/* space/nest.c -- stages that are not tiled, on a CPU: element-wise ones, transposes, reductions along rows
 * or columns.
 *
 *     for outer loops parallel { for reduction { for some vectors unrolled { for lane vectorised } } }
 *
 * A stage stands in a nest of its own, or inside the outer loop of the nest of its reader.
 */
#include <math.h>
#include <string.h>

#include "space/master.h"

enum { MAX_LOOPS = 48, MAX_TAPS = 64, MOST_PARALLEL = 8 };
enum { LANES_NOWHERE, LANES_ON_COLUMNS, LANES_ON_ROWS };

static const char *const how_words[] = {"scalar", "columns", "rows"};
static const char *const place_words[] = {"root", "reader", "row"};

/* ---- declaring ---- */

/* How many of the first spatial loops give tasks enough; those that become vectors are left out. A loop of
 * unknown extent counts as one task, so that a known one follows it. */
static int count_tasks(const space_stage *stage, int most)
{
    int64_t tasks = 1;
    int k = 0, seen = 0;

    for (; k < stage->n_loops && seen < most && tasks < SPACE_TASKS; k++)
        if (stage->loop[k].kind == IR_SPATIAL) {
            tasks *= stage->loop[k].extent ? stage->loop[k].extent : 1;
            seen++;
        }
    return seen;
}

/* How many outer loops are fused and run in parallel; 0 where the work is too little for threads. */
static int64_t pick_parallel(tec_knobs *knobs, const space_stage *stage)
{
    static const int64_t counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    int most = stage->flat ? 1 : stage->n_spatial, start;

    if (stage->most_fused && most > stage->most_fused)
        most = stage->most_fused;
    if (most > MOST_PARALLEL)
        most = MOST_PARALLEL;
    start = space_pays_in_parallel(stage) ? count_tasks(stage, most) : 0;
    return space_pick(knobs, stage, "parallel", counts, most + 1, start);
}

/* Steps of all the last reduction loops; 0: unknown. */
static int64_t steps_of(const space_stage *stage, int loops)
{
    int64_t steps = 1;

    for (int i = stage->n_loops - 1; i >= 0 && loops > 0; i--)
        if (stage->loop[i].kind == IR_REDUCE_ITER) {
            steps *= stage->loop[i].extent;
            loops--;
        }
    return steps;
}

/* With how many vectors at once a row starts. Each vector has partial results of its own, which do not wait
 * for one another. For 16 lanes, a row of 784 elements has 12 steps of four vectors and a rest of 16; a row
 * of 100 starts with single vectors. A single row of unknown length is taken to be long. If a reduction in
 * parts has several rows of unknown length, these may be short: the masks of four vectors at the end of each
 * row would then cost twice as much as those of two. */
static int vectors_at_once(const space_stage *stage)
{
    enum { LONG = 4, UNKNOWN = 2, FEWEST_STEPS = 3 };
    int64_t steps = steps_of(stage, stage->rows);

    if (!stage->rows || stage->columns)
        return 1;
    if (steps || !stage->part_terms)
        return steps >= FEWEST_STEPS * LONG * stage->lanes ? LONG : 1;
    return stage->rows == stage->n_reduce ? LONG : UNKNOWN;
}

/* The target's lanes, half of them, none, or several vectors at once. */
static int64_t pick_lanes(tec_knobs *knobs, const space_stage *stage)
{
    int64_t value[5], n = 0;

    for (int64_t l = stage->lanes; l >= 1; l /= 2)
        if (l == stage->lanes || l == stage->lanes / 2 || l == 1)
            value[n++] = l;
    for (int at_once = 2; at_once <= 4 && stage->lanes > 1; at_once *= 2)
        if (stage->rows || (at_once == 2 && !stage->n_reduce))
            value[n++] = at_once * stage->lanes;
    return space_pick(knobs, stage, "lanes", value, (int)n,
                      stage->lanes > 1 ? vectors_at_once(stage) * stage->lanes : stage->lanes);
}

/* Vectors at once of an element-wise stage; last reduction loops that are written out of a reduction. Taps
 * are whole loops: as many of the last reduction loops as make at most MAX_TAPS steps together. */
static int64_t pick_unroll(tec_knobs *knobs, const space_stage *stage)
{
    static const int64_t vectors[] = {1, 2, 4, 8}, taps[] = {0, 1, 2, 3};
    int most = 0;

    if (!stage->n_reduce)
        return space_pick(knobs, stage, "unroll", vectors, BASE_COUNT(vectors), 1);
    while (most < 3 && most < stage->n_reduce && steps_of(stage, most + 1) > 0 &&
           steps_of(stage, most + 1) <= MAX_TAPS)
        most++;
    return space_pick(knobs, stage, "unroll", taps, most + 1,
                      most == stage->n_reduce && steps_of(stage, most) <= MAX_TAPS / 2 ? most : 0);
}

/* Which directions a reduction may have its vectors along; the start prefers columns, which need no final sum
 * over lanes. */
static int pick_how(tec_knobs *knobs, const space_stage *stage)
{
    const char *word[3] = {how_words[LANES_NOWHERE]};
    int meaning[3] = {LANES_NOWHERE}, n = 1;

    if (stage->columns)
        meaning[n] = LANES_ON_COLUMNS, word[n++] = how_words[LANES_ON_COLUMNS];
    if (stage->rows)
        meaning[n] = LANES_ON_ROWS, word[n++] = how_words[LANES_ON_ROWS];
    return meaning[space_pick_word(knobs, stage, "lanes_on", word, n, n > 1)];
}

/* A reduction to one result, which gives no tasks, starts with as many partial ones as pay. If its length is
 * not known, pick_part decides instead, or it stays whole: for a hundred elements, a fixed number of partial
 * results takes five times as long as none. */
static int64_t start_factor(const space_stage *stage, const int64_t *count, int n, int64_t results)
{
    int64_t start = 0, most = space_more_tasks(stage, results);

    if (results != 1 || isinf(stage->cycles) || !space_is_worth_forks(stage->cycles))
        return 0;
    for (int i = 0; i < n; i++)
        start = count[i] <= most ? count[i] : start;
    return start;
}

/* A reduction with few results is cut into partial ones. */
static int64_t pick_factor(tec_knobs *knobs, const space_stage *stage)
{
    static const int64_t counts[] = {0, 2, 4, 8, 16, 32, 64};
    int64_t results = 1;
    const ir_stmt *body = stage->block->body;

    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_SPATIAL)
            results *= stage->loop[i].extent;
    bool few = results > 0 && results < SPACE_TASKS && space_pays_in_parallel(stage);
    return few && body->kind == IR_UPDATE && body->update.combiner->reorders
               ? space_pick(knobs, stage, "partial", counts, BASE_COUNT(counts),
                            start_factor(stage, counts, BASE_COUNT(counts), results))
               : 0;
}

/* Partial results of so many terms each, if the length of the reduction is not known: as many as the length
 * at the call gives, a single one for a short reduction, which then starts no threads. */
static int64_t pick_part(tec_knobs *knobs, const space_stage *stage)
{
    int64_t terms = stage->part_terms, value[] = {0, terms / 4, terms, 4 * terms};

    return terms ? space_pick(knobs, stage, "part", value, BASE_COUNT(value), terms) : 0;
}

/* A tile is a square of one vector in each row: lower/columns.c turns it in registers. */
static bool turns_in_registers(const space_stage *stage, int64_t tile)
{
    return stage->turned && (tile == 4 || tile == 8 || tile == 16) && tile <= stage->lanes;
}

/* What is read across is read in whole cache lines where the tile has one of each row. Smaller squares that
 * fill a vector cost less than reading a line in pieces. */
static int64_t start_tile(const space_stage *stage)
{
    enum { LINE = 16, HALF = 8 };
    const space_loop *last = NULL;
    int64_t least;

    for (int i = 0; i < stage->n_loops; i++)
        last = stage->loop[i].kind == IR_SPATIAL ? &stage->loop[i] : last;
    least = last->extent && (last->extent < stage->transposed->extent || !stage->transposed->extent)
                ? last->extent
                : stage->transposed->extent;
    if (turns_in_registers(stage, HALF) && least >= HALF && (least < LINE || stage->lanes == HALF))
        return HALF;
    return least && least < LINE ? 1 : LINE;
}

/* Nothing that is measured for one thread depends on parallel loops. */
static bool has_one_core(const tec_knobs *knobs)
{
    const target *t = sched_target(space_base(knobs->sp));

    return t && t->num_cores == 1 && target_offers(t, TARGET_HOST);
}

/* The knobs of a stage that is not tiled. Most have no effect beside some value of another (`idle`), which
 * keeps the space small. Declared in a fixed order. The word `idle` belongs to the point: with a place in its
 * reader, for instance, the stage has no parallel loop of its own, so that knob then has one value that
 * counts. */
space_nest_choice space_declare_nest(tec_knobs *knobs, const space_stage *stage)
{
    static const int64_t tiles[] = {1, 4, 8, 16, 32};
    space_nest_choice c = {.tile = 1};

    if (stage->reader)
        c.place = space_pick_word(knobs, stage, "place", place_words, stage->reader->n_spatial > 1 ? 3 : 2,
                                  stage->start_place);
    c.how = stage->n_reduce ? pick_how(knobs, stage) : LANES_NOWHERE;
    c.lanes = stage->n_spatial || stage->n_reduce ? pick_lanes(knobs, stage) : 1;
    c.unroll = pick_unroll(knobs, stage);
    if (stage->n_spatial)
        c.parallel = pick_parallel(knobs, stage);
    c.pieces = space_pick_pieces(knobs, stage);
    if (stage->transposed)
        c.tile = space_pick(knobs, stage, "tile", tiles, BASE_COUNT(tiles), start_tile(stage));
    c.part = pick_part(knobs, stage);
    c.factor = stage->n_reduce && !stage->part_terms ? pick_factor(knobs, stage) : 0;
    bool partial = c.factor || c.part;
    space_leave_idle(knobs, stage, "parallel", c.place || partial || has_one_core(knobs));
    space_leave_idle(knobs, stage, "tile", c.place != 0);
    space_leave_idle(knobs, stage, "pieces", c.place && stage->pieces);
    space_leave_idle(knobs, stage, "unroll",
                     stage->n_reduce ? partial || c.how == LANES_ON_ROWS : c.place != 0);
    space_leave_idle(knobs, stage, "lanes_on", partial);
    space_leave_idle(knobs, stage, "lanes",
                     stage->n_reduce && (partial ? stage->rows == 0 : c.how == LANES_NOWHERE));
    if (partial)
        tec_knob_require(knobs, !c.place, "partial results are made by a nest of their own");
    return c;
}

/* ---- element-wise ---- */

static bool has_constant_extents(const sched *schedule, const char *const *loop, int n)
{
    for (int i = 0; i < n; i++)
        if (space_extent(schedule, loop[i]) <= 0)
            return false;
    return true;
}

/* One parallel loop of the first n, *one; a loop of one iteration stays serial. */
static bool fuse_parallel(sched *schedule, const char *const *loop, int n, const char **one)
{
    *one = space_fuse(schedule, loop, n);
    return *one && (space_extent(schedule, *one) == 1 || space_run_in_parallel(schedule, *one));
}

/* Fuses the first n loops into one parallel loop. Where extents are sums with symbols, it may not be provable
 * that iterations of a fused loop write elements of their own; of the outermost loop alone it is. */
bool space_run_outer(sched *schedule, const char *const *loop, int n, const char **outer)
{
    const char *one = NULL;

    if (n > 1 && !has_constant_extents(schedule, loop, n) &&
        !fuse_parallel(sched_fork(sched_context(schedule), schedule), loop, n, &one))
        n = 1;
    if (n > 0 && !fuse_parallel(schedule, loop, n, &one))
        return false;
    if (outer && n > 0)
        *outer = one;
    return true;
}

/* The last loop in vectors, several at once; *left stays outside, NULL where nothing does. A loop of unknown
 * length is split with a guard: the last vector may be partly outside. */
bool space_cut_vectors(sched *schedule, const char *loop, int64_t lanes, int64_t unroll, const char **left)
{
    int64_t n = space_extent(schedule, loop);
    const char *part[3];

    *left = NULL;
    if (n > 0 && n <= lanes)
        return space_vectorise(schedule, loop);
    if (!sched_split(schedule, loop, TEC_GUARD, part, (int64_t[]){TEC_INFER, unroll, lanes}, 3))
        return false;
    *left = part[0];
    return space_unroll(schedule, part[1]) && space_vectorise(schedule, part[2]);
}

/* The loop that a tile stands in, and the one over its rows. */
typedef struct {
    const char *around, *rows;
} tile_loops;

/* Where something is read across, a tile of both axes at a time.
 *
 *     for y { for x { T[y, x] = A[x, y] } }    =>    for y.0 { for x.0 { for y.1 { for x.1 { .. } } } }
 *
 * A tile of 16 by 16 reads 16 cache lines of A and uses all of each, where a row alone would use one element
 * of many lines. */
static bool tile_transposed(sched *schedule, const space_stage *stage, int64_t tile, const char **loop,
                            int count, tile_loops *out)
{
    const char *y[2], *x[2], *order[MAX_LOOPS];
    int at = 0, m = 0;

    while (at < count && strcmp(loop[at], stage->transposed->name) != 0)
        at++;
    if (tile == 1 || at >= count - 1)
        return true;
    if (!sched_split(schedule, loop[at], TEC_GUARD, y, (int64_t[]){TEC_INFER, tile}, 2) ||
        !sched_split(schedule, loop[count - 1], TEC_GUARD, x, (int64_t[]){TEC_INFER, tile}, 2))
        return false;
    for (int i = 0; i < count - 1; i++)
        order[m++] = i == at ? y[0] : loop[i];
    order[m++] = x[0], order[m++] = y[1], order[m++] = x[1];
    loop[at] = y[0];
    loop[count - 1] = x[1];
    *out = (tile_loops){.around = x[0], .rows = y[1]};
    return sched_reorder(schedule, order, m);
}

/* The tile of what is read across goes through a local copy, in vectors both ways; with all its rows written
 * out, the copy lies in registers. */
static bool turn_in_registers(sched *schedule, const space_stage *stage, const tile_loops *tile)
{
    const char *loop[MAX_LOOPS], *reduce[MAX_LOOPS];
    const char *copy = sched_cache_read(schedule, stage->turned, "local", &stage->name, 1);
    int n_reduce, n;

    if (!copy || !sched_compute_at(schedule, copy, tile->around))
        return false;
    n = space_own_loops(schedule, copy, tile->around, loop, reduce, &n_reduce);
    for (int i = 0; i < n - 1; i++)
        if (!space_unroll(schedule, loop[i]))
            return false;
    return n > 0 && space_vectorise(schedule, loop[n - 1]) && space_unroll(schedule, tile->rows);
}

/* How many of n spatial loops may run in parallel: where others are computed row by row, those of the
 * rows. */
static int most_parallel(const space_stage *stage, const space_nest_choice *choice, int n)
{
    int most = choice->by_rows ? stage->n_spatial - 1 : n;

    return most < n ? most : n;
}

/* Fuses the n loops into one, *loop, of which vectors are made later. Where extents are symbols it may not be
 * provable that lanes of the fused loop write elements of their own: then the loops stay as they are. False
 * where a step was refused. */
static bool make_flat(sched *schedule, const space_nest_choice *choice, const char **loop, int *n)
{
    if (!has_constant_extents(schedule, loop, *n)) {
        sched *trial = sched_fork(sched_context(schedule), schedule);
        const char *one = sched_fuse(trial, loop, *n), *left;

        if (!one || !space_cut_vectors(trial, one, choice->lanes, choice->unroll, &left))
            return true;
    }
    loop[0] = sched_fuse(schedule, loop, *n);
    *n = 1;
    return loop[0];
}

/* A stage without reuse: fuses the loops where the order of elements does not matter, makes vectors of the
 * last one, and runs the outer ones in parallel. *outer: a loop where stages that it reads may be computed.
 * Vectors first, and then the parallel loop over what is left outside of them. */
static bool apply_pointwise(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                            const char **outer)
{
    const char *loop[MAX_LOOPS], *reduce[MAX_LOOPS], *left;
    tile_loops tile = {NULL, NULL};
    int n_reduce, n = space_own_loops(schedule, stage->name, NULL, loop, reduce, &n_reduce);

    if (n == 0)
        return true;
    if (stage->flat && n > 1 && !make_flat(schedule, choice, loop, &n))
        return false;
    if (stage->transposed && !tile_transposed(schedule, stage, choice->tile, loop, n, &tile))
        return false;
    if (outer && n > 1)
        *outer = loop[0];
    if (!space_cut_vectors(schedule, loop[n - 1], choice->lanes, choice->unroll, &left))
        return false;
    if (tile.around && choice->tile <= choice->lanes && turns_in_registers(stage, choice->tile) &&
        !turn_in_registers(schedule, stage, &tile))
        return false;
    bool tiled = stage->transposed && choice->tile > 1;
    if (left && !tiled)
        loop[n - 1] = left;
    else
        n--;
    n = most_parallel(stage, choice, n);
    int64_t most = stage->flat ? n : choice->parallel;
    return space_run_outer(schedule, loop, choice->parallel == 0 ? 0 : most < n ? (int)most : n, outer);
}

/* ---- reductions ---- */

static bool unroll_taps(sched *schedule, const char *const *reduce, int n, int64_t taps)
{
    for (int64_t i = 0; i < taps && i < n; i++)
        if (!space_unroll(schedule, reduce[n - 1 - i]))
            return false;
    return true;
}

/* The sums of a block in registers inside `loop`. A refused step is no failure: the sums then stay in memory.
 */
bool space_keep_in_register(sched *schedule, const char *block, const char *loop)
{
    const char *copy = sched_cache_write_at(schedule, block, "local", loop), **all;

    if (!copy) {
        sched_clear(schedule);
        return true;
    }
    int n = sched_loops_of(schedule, copy, &all);
    return space_vectorise(schedule, all[n - 1]);
}

/* The last spatial loop becomes the innermost, as vectors of results. The sums of a vector stay in a
 * register over all reduction loops, which now lie inside.
 *
 *     for y { for x in 0..64 { for k { S } } }, 16 lanes
 *     =>  for y { for x.0 in 0..4 { for k { for x.1 in 0..16 vectorised { S } } } }
 */
static bool lanes_on_columns(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                             const char **spatial, int *count, const char *const *reduce, int n_reduce)
{
    const char *part[2], *order[MAX_LOOPS];
    int64_t extent;
    int m = 0;

    while (*count > 1 &&
           space_extent(schedule, spatial[*count - 1]) == 1) /* loops of one step stay outside */
        --*count;
    part[0] = NULL, part[1] = spatial[*count - 1];
    extent = space_extent(schedule, part[1]);

    if ((extent == 0 || extent > choice->lanes) &&
        !sched_split(schedule, part[1], TEC_GUARD, part, (int64_t[]){TEC_INFER, choice->lanes}, 2))
        return false;
    for (int i = 0; i < n_reduce; i++)
        order[m++] = reduce[i];
    order[m++] = part[1];
    if (!sched_reorder(schedule, order, m) || !space_vectorise(schedule, part[1]) ||
        !unroll_taps(schedule, reduce, n_reduce, choice->unroll))
        return false;
    spatial[*count - 1] = part[0];
    *count -= part[0] == NULL;
    return *count == 0 || space_keep_in_register(schedule, stage->name, spatial[*count - 1]);
}

/* The last reduction loops, as vectors of partial results. */
static bool lanes_on_rows(sched *schedule, const char *const *row, int n, int64_t lanes)
{
    const char *one = space_fuse(schedule, row, n), *part[2] = {NULL, one};
    int64_t extent = one ? space_extent(schedule, one) : 0;

    if (!one || lanes < 2 || (extent > 0 && extent < lanes))
        return one != NULL;
    return (extent == lanes ||
            sched_split(schedule, one, TEC_GUARD, part, (int64_t[]){TEC_INFER, lanes}, 2)) &&
           space_vectorise(schedule, part[1]);
}

/* Vectors of a reduction by the choice; *n is how many spatial loops are left around them. */
static bool reduce_inside(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                          const char **spatial, int *n, const char **reduce, int n_reduce)
{
    int rows = stage->rows < n_reduce ? stage->rows : n_reduce;

    if (choice->how == LANES_ON_COLUMNS && *n > 0)
        return lanes_on_columns(schedule, stage, choice, spatial, n, reduce, n_reduce);
    if (choice->how == LANES_ON_ROWS && rows > 0)
        return lanes_on_rows(schedule, reduce + n_reduce - rows, rows, choice->lanes);
    return unroll_taps(schedule, reduce, n_reduce, choice->unroll);
}

/* *outer: the outermost spatial loop, in which stages that it reads may be computed. */
static bool apply_reduction(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                            const char **outer)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS];
    int n_reduce, n = space_own_loops(schedule, stage->name, NULL, spatial, reduce, &n_reduce);

    if (outer && n > 0)
        *outer = spatial[0];
    if (!reduce_inside(schedule, stage, choice, spatial, &n, reduce, n_reduce))
        return false;
    n = most_parallel(stage, choice, n);
    return space_run_outer(schedule, spatial, choice->parallel < n ? (int)choice->parallel : n, outer);
}

/* The loop over parts of so many iterations of `loop`; *rest becomes the loop in one part. NULL: refused. */
static const char *cut_parts(sched *schedule, const char *loop, int64_t iterations, const char **rest)
{
    const char *part[2];

    if (!loop || !sched_split(schedule, loop, TEC_GUARD, part,
                              (int64_t[]){TEC_INFER, iterations > 1 ? iterations : 1}, 2))
        return NULL;
    *rest = part[1];
    return part[0];
}

/* The loop over parts where the rows, `inner` terms each, are known: several rows are a part. */
static const char *parts_of_rows(sched *schedule, const char *const *loop, int n, int64_t terms,
                                 int64_t inner)
{
    const char *rest;

    return cut_parts(schedule, space_fuse(schedule, loop, n), terms / inner, &rest);
}

/* The loop over parts where a row, in steps of vectors, has an unknown length: parts are pieces of the row.
 * If the number of rows is known, a part has a piece of each; otherwise a piece of some rows.
 *
 *     for y { for x { for l } }  =>  for c = (y.0, x.0) { for y.1 in 0..128 { for x.1 in 0..128 { for l } } }
 *
 * A part may then turn out small, with one long row or with many short ones. So that such a part is not far
 * from worth a thread, it has an eighth of a task's terms along the row, and as many rows as an eighth has
 * steps: for 32 lanes and 32,768 terms, 4096 columns of 128 rows. */
static const char *parts_of_both(sched *schedule, const char *outer, const char *step, const char *lane,
                                 int64_t terms, int64_t lanes)
{
    enum { SHARE = 8 };
    int64_t rows = outer ? space_extent(schedule, outer) : 1, steps = terms / lanes;
    const char *row[2] = {NULL, outer}, *piece[2], *order[5];
    int n = 0;

    if (!rows && !(row[0] = cut_parts(schedule, outer, steps / SHARE, &row[1])))
        return NULL;
    piece[0] = cut_parts(schedule, step, rows ? steps / rows : steps / SHARE, &piece[1]);
    if (!piece[0] || !outer)
        return piece[0];
    if (row[0])
        order[n++] = row[0];
    order[n++] = piece[0], order[n++] = row[1], order[n++] = piece[1];
    if (lane)
        order[n++] = lane;
    return !sched_reorder(schedule, order, n) ? NULL : row[0] ? space_fuse(schedule, order, 2) : piece[0];
}

/* A reduction of unknown length to one result: partial results of choice->part terms each, in parallel; then
 * the reduction over them, serial. The number of partial results follows from the length at the call.
 *
 *     for i in 0..n { S sum= A[i] }, 64 lanes, parts of 32768 terms
 *     =>  for c in 0..ceildiv(n, 32768) parallel { for v in 0..512 { for l in 0..64 vectorised { P[c] } } }
 *         for c { S sum= P[c] }
 *
 * The loop over lanes is cut off first. So the last part runs no vectors behind the end: whether vector v
 * exists is a condition on v alone, which ends the loop. */
static bool reduce_in_parts(sched *schedule, const space_stage *stage, const space_nest_choice *choice)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *row[2] = {NULL, NULL}, *part;
    int n_reduce, unknown = stage->n_reduce;

    space_own_loops(schedule, stage->name, NULL, spatial, reduce, &n_reduce);
    int outer = n_reduce - stage->rows;
    while (unknown > 0 && space_extent(schedule, reduce[unknown - 1]))
        unknown--;
    if (unknown <= outer) {
        part = parts_of_rows(schedule, reduce, unknown, choice->part, steps_of(stage, n_reduce - unknown));
    } else {
        row[0] = space_fuse(schedule, reduce + outer, stage->rows);
        if (!row[0] || (choice->lanes > 1 && !sched_split(schedule, row[0], TEC_GUARD, row,
                                                          (int64_t[]){TEC_INFER, choice->lanes}, 2)))
            return false;
        const char *rows = space_fuse(schedule, reduce, outer);
        part = outer && !rows ? NULL
                              : parts_of_both(schedule, rows, row[0], row[1], choice->part, choice->lanes);
    }
    const char *partial = part ? sched_rfactor(schedule, part, 0) : NULL;
    if (!partial || (row[1] && !space_vectorise(schedule, row[1])))
        return false;
    space_own_loops(schedule, partial, NULL, spatial, reduce, &n_reduce);
    return (row[0] || lanes_on_rows(schedule, reduce + n_reduce - stage->rows, stage->rows, choice->lanes)) &&
           space_run_in_parallel(schedule, part);
}

/* Where extents are sums with symbols, a step may not be provable: then the reduction stays whole. */
static bool apply_parts(sched *schedule, const space_stage *stage, const space_nest_choice *choice)
{
    sched *tried = sched_fork(sched_context(schedule), schedule);
    space_nest_choice whole = *choice;

    whole.part = 0;
    whole.how = stage->rows ? LANES_ON_ROWS : LANES_NOWHERE;
    return reduce_in_parts(tried, stage, choice) ? reduce_in_parts(schedule, stage, choice)
                                                 : apply_reduction(schedule, stage, &whole, NULL);
}

/* Partial results in parallel, each over a part of the first reduction loop; then what is left of the
 * reduction, over them. The result's own nest, over the few partial results, stays serial. */
static bool apply_partial(sched *schedule, const space_stage *stage, const space_nest_choice *choice)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *part[2];
    int n_reduce, n = space_own_loops(schedule, stage->name, NULL, spatial, reduce, &n_reduce);

    if (!sched_split(schedule, reduce[0], TEC_GUARD, part, (int64_t[]){choice->factor, TEC_INFER}, 2))
        return false;
    const char *partial = sched_rfactor(schedule, part[0], 0);
    if (!partial)
        return false;
    n = space_own_loops(schedule, partial, NULL, spatial, reduce, &n_reduce);
    if (stage->rows > 0 && n_reduce > 0 && !lanes_on_rows(schedule, reduce + n_reduce - 1, 1, choice->lanes))
        return false;
    return space_run_outer(schedule, spatial, n, NULL);
}

/* ---- steps of a scan ---- */

/* What a step of a scan computes element by element gets vectors along its last loop, inside the loop over
 * the steps; these wait for one another, and nothing runs in parallel. A step that is refused leaves the
 * stage as it was: its elements may depend on one another in ways that only the schedule sees. */
static bool apply_fixed(sched *schedule, const space_stage *stage)
{
    const char *time = NULL;

    for (int i = 0; i < stage->n_loops; i++)
        if (stage->loop[i].kind == IR_SCAN)
            time = stage->loop[i].name;
    const space_loop *last = stage->n_loops ? &stage->loop[stage->n_loops - 1] : NULL;
    if (!time || stage->n_reduce || last->kind != IR_SPATIAL || stage->block->body->kind != IR_STORE ||
        (last->extent && last->extent < stage->lanes))
        return true;
    sched *tried = sched_fork(sched_context(schedule), schedule);
    return !space_vectorise_inside(tried, stage->name, time, stage->lanes) ||
           space_vectorise_inside(schedule, stage->name, time, stage->lanes);
}

/* ---- both ---- */

/* The choices of a nest as steps; partial results first, since they leave other knobs without effect. */
bool space_apply_nest(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                      const char **outer)
{
    if (outer)
        *outer = NULL;
    if (stage->part == SPACE_FIXED)
        return apply_fixed(schedule, stage);
    if (choice->part)
        return apply_parts(schedule, stage, choice);
    if (choice->factor)
        return apply_partial(schedule, stage, choice);
    if (choice->pieces != SPACE_ONE_PIECE)
        return space_apply_pieces(schedule, stage, choice);
    return stage->n_reduce ? apply_reduction(schedule, stage, choice, outer)
                           : apply_pointwise(schedule, stage, choice, outer);
}

/* Stages that are computed row by row go into this loop. */
const char *space_row_loop(const sched *schedule, const space_stage *stage)
{
    const char *row = NULL, *last = NULL;

    for (int i = 0; i < stage->block->n_iters; i++)
        if (stage->block->iters[i].kind == IR_SPATIAL) {
            row = last;
            last = stage->block->iters[i].var->var.name;
        }
    return row ? space_loop_of(schedule, stage->name, row) : NULL;
}

/* The stage's own loops begin inside of `outer`, so only these get vectors. */
bool space_apply_inside(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                        const char *outer)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS];

    if (!sched_compute_at(schedule, stage->name, outer))
        return false;
    if (!stage->n_reduce)
        return space_vectorise_inside(schedule, stage->name, outer, choice->lanes);
    int n_reduce, n = space_own_loops(schedule, stage->name, outer, spatial, reduce, &n_reduce);
    return reduce_inside(schedule, stage, choice, spatial, &n, reduce, n_reduce);
}
