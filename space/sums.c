/* space/sums.c -- the analysis of a tiled stage: which axes of its results are columns and rows of a register
 * tile, what is computed with it, and the tile at which the search starts.
 *
 *     P[y, k] = A[y, k] * s                            a producer: only C reads it
 *     C[y, x] = sum[k](P[y, k] * B[k, x])              column x, row y; lanes of a vector run along x
 *
 * With 16 registers of 8 lanes the tile of C starts with 6 rows and 2 vectors: 12 sums, 2 vectors of B and
 * one element of P take 15 registers.
 */
#include <math.h>
#include <string.h>

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "space/loads.h"
#include "space/master.h"

enum { PANEL = 8 /* vectors: an operand whose rows are no longer lies together already */ };

/* ---- loads ---- */

/* A hook that stops at the first select. */
static bool note_select(ir_walk *walk, const ir_expr *expr)
{
    walk->stop |= expr->op == IR_SELECT;
    return !walk->stop;
}

/* Padding is written as a select. */
static bool has_condition(tec_context *cx, const ir_block *block)
{
    ir_walk w = {.expr = note_select, .cx = cx};

    ir_walk_stmt(&w, block->body);
    return w.stop;
}

/* The variable of the pair's loop; NULL: there is no pair. */
static const ir_expr *pair_of(const space_tiled *tiled)
{
    return tiled->pair ? space_iter_named(tiled->sums->block, tiled->pair->iter)->var : NULL;
}

/* Neighbouring values of the variable read: 0 the same element, 1 neighbouring ones, 2 some of a row, 3
 * elements far apart. The two elements of a pair (NULL: none) count as one. The classes are worth points in
 * `merit`: a vector load, a gather from few cache lines, one line for each lane. For x in
 * C[y, x] = sum[k](A[y, k] * B[k, x]):
 *
 *     A[y, k]  0 (0 points)     B[k, x]  1 (4 points)     so lanes along x have 4
 *     and for y: A 3 (-6 points), B 0                     lanes along y have -6
 */
static int distance(const ir_facts *facts, const ir_expr *load, const ir_expr *var, const ir_expr *pair)
{
    tec_context *cx = ir_facts_context(facts);
    int row = space_row_dimension(load) - (pair && load->load.index[load->load.n - 1] == pair);
    int64_t step;
    const ir_expr *rest;

    if (!space_load_uses(cx, load, var))
        return 0;
    for (int i = 0; i < row; i++)
        if (ir_uses_var(cx, load->load.index[i], var))
            return 3;
    if (!ir_linear(facts, load->load.index[row], &var, 1, &step, &rest))
        return 3;
    return step == 1 ? 1 : 2;
}

/* ---- axes ---- */

/* The variable of the sums that is the last one to follow an axis of the output. Searched from the last
 * dimension, since a variable may occur in several: the one that it moves fastest counts. */
static const ir_iter *sums_iter(tec_context *cx, const space_tiled *tiled, const space_loop *axis)
{
    const ir_expr *load = space_only_load(cx, tiled->out->block, tiled->sums->block->writes[0].buffer);
    const ir_iter *var = space_iter_named(tiled->out->block, axis->iter);
    const ir_stmt *update = space_update_of(tiled->sums->block);

    for (int d = load->load.n - 1; var && d >= 0; d--)
        for (int i = 0; ir_uses_var(cx, load->load.index[d], var->var) && i < tiled->sums->block->n_iters;
             i++)
            if (update->update.index[d] == tiled->sums->block->iters[i].var)
                return &tiled->sums->block->iters[i];
    return NULL;
}

typedef struct {
    ir_walk w;
    const ir_expr *var;
    int64_t run; /* 0: all values; 1: each value counts */
} run_finder;

/* How many neighbouring values of the variable give the same index: i//4 has runs of 4, i alone runs of 1, no
 * mention 0. */
static bool find_run(ir_walk *walk, const ir_expr *expr)
{
    run_finder *r = (run_finder *)walk;
    int64_t by;

    if (expr == r->var)
        r->run = 1;
    if (expr->op != IR_FLOORDIV || expr->arg[0] != r->var || !ir_is_int(expr->arg[1], &by))
        return true;
    r->run = ir_gcd(r->run, by);
    return false;
}

/* How many neighbouring values of the variable give an expression one value: `v / 5 * 5 + k` is the same for
 * 5 values of v. 0: for all of them. */
static int64_t run_in(tec_context *cx, const ir_expr *expr, const ir_expr *var)
{
    run_finder r = {.w = {.expr = find_run, .cx = cx}, .var = var};

    ir_walk_expr(&r.w, expr);
    return r.run;
}

/* The common divisor over all indices: 0 where the load does not depend on the variable. For W[c // 4, k] and
 * c that is 4; for W[c // 4, c] it is 1; for A[y, k] it is 0. */
static int64_t run_of_load(tec_context *cx, const ir_expr *load, const ir_expr *var)
{
    int64_t run = 0;

    for (int d = 0; d < load->load.n; d++)
        run = ir_gcd(run, run_in(cx, load->load.index[d], var));
    return run;
}

/* An index `c % 20 % 16` counts up within pieces of gcd(20, 16) = 4 values of c and may jump between them; `c
 * % 4 % 16` within pieces of 4, because the second modulus changes nothing. *range is the number of values
 * that the index has. 0: no piece ends, or a modulus is unknown. The recursion starts at the innermost
 * modulus; *range is 0 until one has been seen. */
static int64_t piece_of(const ir_expr *index, int64_t *range)
{
    int64_t by, piece;

    if (index->op != IR_FLOORMOD)
        return *range = 0;
    piece = piece_of(index->arg[0], range);
    if (!ir_is_int(index->arg[1], &by))
        return *range = 0;
    if (*range && by >= *range)
        return piece;
    *range = by;
    return ir_gcd(piece, by);
}

/* An operand that the lanes share depends on the variable. */
static bool is_shared_by_lanes(tec_context *cx, const space_tiled *tiled, const ir_iter *lane,
                               const ir_expr *var)
{
    space_load_list l = space_loads_of(cx, tiled->sums->block);

    for (int i = 0; lane && i < l.n; i++)
        if (!space_load_uses(cx, l.load[i], lane->var) && space_load_uses(cx, l.load[i], var))
            return true;
    return false;
}

/* Which variables of the sums move with the column. Where the output writes in packed panels (an index x %
 * 16) the panel's length limits the tiles; where lanes share an operand, `run` says over how many
 * neighbouring values. An output in panels of 16 reads C[x//16, x % 16]: both variables of the sums move with
 * the column, the second within a panel. */
static void list_followers(tec_context *cx, space_tiled *tiled, const space_loop *column, const ir_iter *lane)
{
    const ir_expr *load = space_only_load(cx, tiled->out->block, tiled->sums->block->writes[0].buffer);
    const ir_iter *var = space_iter_named(tiled->out->block, column->iter);
    const ir_stmt *update = space_update_of(tiled->sums->block);
    int64_t range = 0;

    for (int d = 0; var && d < load->load.n && tiled->n_follows < SPACE_MAX_AXES; d++) {
        const ir_expr *index = load->load.index[d];

        if (!ir_uses_var(cx, index, var->var))
            continue;
        if (index->op == IR_FLOORMOD) {
            tiled->uneven = piece_of(index, &range) < range;
            tiled->panel = range;
        }
        if (update->update.index[d]->op != IR_VAR)
            continue;
        tiled->follows[tiled->n_follows++] = update->update.index[d]->var.name;
        if (is_shared_by_lanes(cx, tiled, lane, update->update.index[d])) {
            tiled->run = ir_gcd(tiled->run, run_in(cx, index, var->var));
            tiled->group = update->update.index[d]->var.name;
        }
    }
}

/* How well lanes along this axis read memory; negative: badly. -100: no lanes at all along this axis. For
 * C[y, x] sum= A[y, k] * B[k, x]: along x, A is the same for all lanes and B lies side by side, which is the
 * best that there is; along y, A lies far apart. */
static int merit(const ir_facts *facts, const space_tiled *tiled, const space_loop *axis)
{
    static const int points[] = {0, 4, -2, -6};
    tec_context *cx = ir_facts_context(facts);
    const ir_iter *iter = sums_iter(cx, tiled, axis);
    space_load_list l = space_loads_of(cx, tiled->sums->block);
    const ir_expr *pair = pair_of(tiled);
    int sum = 0;

    if (!iter || ir_is_value(iter->extent, 1))
        return -100;
    for (int i = 0; i < l.n; i++)
        sum += points[distance(facts, l.load[i], iter->var, pair)];
    return sum;
}

/* The loop that vectors run along: the one with the most merit, the innermost among equals. Loops of one
 * iteration are taken only where there is nothing else. */
static const space_loop *choose_column(const ir_facts *facts, const space_tiled *tiled)
{
    const space_loop *best = NULL;
    int most = -100;

    for (int i = 0; i < tiled->out->n_loops; i++) {
        int points = tiled->out->loop[i].extent == 1 ? -100 : merit(facts, tiled, &tiled->out->loop[i]);

        if (points > most || (points == most && best)) {
            most = points;
            best = &tiled->out->loop[i];
        }
    }
    return best;
}

/* Rows reuse a vector that was loaded: some operand depends on the lane and not on them. */
static bool shares_vectors(tec_context *cx, const space_tiled *tiled, const space_loop *axis,
                           const ir_iter *lane)
{
    const ir_iter *iter = sums_iter(cx, tiled, axis);
    space_load_list l = space_loads_of(cx, tiled->sums->block);

    for (int i = 0; iter && lane && i < l.n; i++)
        if (space_load_uses(cx, l.load[i], lane->var) && !space_load_uses(cx, l.load[i], iter->var))
            return true;
    return false;
}

/* Axes beyond the most are left out, and their loops stay as they are. */
static void add_axis(space_tiled *tiled, space_axis axis)
{
    if (tiled->n_axes < SPACE_MAX_AXES)
        tiled->axis[tiled->n_axes++] = axis;
}

/* Where a column is no longer than one vector: the last axis along which vectors share an operand that does
 * not depend on the lane, for *run neighbouring values (0: for all of them). An example is a depthwise
 * convolution over few channels: a row of pixels fills registers where channels do not. */
static const space_loop *find_wide(tec_context *cx, const space_tiled *tiled, const space_loop *column,
                                   const ir_iter *lane, const space_loop *const *row, int64_t *run)
{
    space_load_list l = space_loads_of(cx, tiled->sums->block);

    for (int i = tiled->out->n_loops - 1;
         lane && column && column->extent && column->extent <= tiled->sums->lanes && i >= 0; i--) {
        const space_loop *loop = &tiled->out->loop[i];
        const ir_iter *iter = loop->extent == 1 || loop == column || loop == row[0] || loop == row[1]
                                  ? NULL
                                  : sums_iter(cx, tiled, loop);

        for (int j = 0; iter && j < l.n; j++)
            if (!space_load_uses(cx, l.load[j], lane->var) &&
                (*run = run_of_load(cx, l.load[j], iter->var)) != 1)
                return loop;
    }
    return NULL;
}

/* NULL for an axis that moves the output and no variable of the sums. */
static void name_iters(tec_context *cx, space_tiled *tiled)
{
    for (int i = 0; i < tiled->n_axes; i++) {
        const ir_iter *iter = sums_iter(cx, tiled, tiled->axis[i].loop);

        tiled->axis[i].iter = iter ? iter->var->var.name : NULL;
    }
}

/* One load of each buffer stands for all: templates ask about buffers. A[y, k] * A[x, k] gives one entry for
 * A. */
static void list_loads(tec_context *cx, space_tiled *tiled)
{
    space_load_list l = space_loads_of(cx, tiled->sums->block);

    for (int i = 0; i < l.n && tiled->n_loads < SPACE_MAX_OPERANDS; i++) {
        bool known = false;

        for (int j = 0; j < tiled->n_loads; j++)
            known = known || tiled->load[j]->load.buffer == l.load[i]->load.buffer;
        if (!known)
            tiled->load[tiled->n_loads++] = l.load[i];
    }
}

/* Others, the wide one, the column, then at most two rows: the last axes that share vectors, or the last
 * axis where none does. row[1] is the last one that shares vectors, row[0] the one before it. For a
 * convolution out[n, oc, y, x] whose vectors lie along oc: n and y are others, oc is the column, x is the
 * row. The last axis comes innermost in the tile: the kernel element that is loaded for a column is used for
 * all rows before the next is loaded. */
static void order_axes(tec_context *cx, space_tiled *tiled, const space_loop *column, const ir_iter *lane)
{
    const space_loop *row[2] = {NULL, NULL}, *last = NULL;

    for (int i = tiled->out->n_loops - 1; i >= 0; i--) {
        const space_loop *loop = &tiled->out->loop[i];

        if (loop == column || loop->extent == 1)
            continue;
        last = last ? last : loop;
        if (shares_vectors(cx, tiled, loop, lane) && !row[0])
            row[row[1] ? 0 : 1] = loop;
    }
    row[1] = row[1] ? row[1] : last;
    const space_loop *wide = find_wide(cx, tiled, column, lane, row, &tiled->run);
    for (int i = 0; i < tiled->out->n_loops; i++) {
        const space_loop *loop = &tiled->out->loop[i];

        if (loop->extent != 1 && loop != column && loop != row[0] && loop != row[1] && loop != wide)
            add_axis(tiled, (space_axis){.loop = loop});
    }
    if (wide)
        add_axis(tiled, (space_axis){.loop = wide, .row = true, .wide = true});
    if (column)
        add_axis(tiled, (space_axis){.loop = column, .column = true});
    for (int i = 0; i < 2; i++)
        if (row[i])
            add_axis(tiled, (space_axis){.loop = row[i], .row = true});
    const ir_iter *iter = row[1] ? sums_iter(cx, tiled, row[1]) : NULL;
    tiled->row = iter ? iter->var->var.name : NULL;
}

/* The last reduction loop runs along what is read, for at least one vector. For C[y, x] sum= A[y, k] * B[x,
 * k], a matrix product with B transposed, both operands lie side by side along k: the lanes of a vector may
 * be eight terms of one sum. */
static bool along_reduction(const ir_facts *facts, const space_tiled *tiled)
{
    space_load_list l = space_loads_of(ir_facts_context(facts), tiled->sums->block);
    const space_loop *last = tiled->n_reduce ? tiled->reduce[tiled->n_reduce - 1] : NULL;

    if (!last || (last->extent && last->extent < tiled->sums->lanes))
        return false;
    const ir_iter *k = space_iter_named(tiled->sums->block, last->iter);
    for (int i = 0; i < l.n; i++)
        if (distance(facts, l.load[i], k->var, pair_of(tiled)) > 1)
            return false;
    return true;
}

/* A stage without sums that only `of` reads. */
static bool is_prologue(const space_shape *shape, const space_stage *stage, const space_stage *of)
{
    const char **reader;
    int n = sched_readers_of(shape->base, stage->name, &reader);

    return stage->part == SPACE_NEST && stage->n_reduce == 0 && n == 1 && strcmp(reader[0], of->name) == 0;
}

/* Marks the stages that only this tiled stage reads; they are computed with it. `conditional` stages, as
 * padding is, are not copied into the tile blindly: their conditions would stand in the innermost loop. */
static void find_producers(const space_shape *shape, space_tiled *tiled)
{
    for (int i = 0; i < shape->n && tiled->n_producers < SPACE_MAX_OPERANDS; i++) {
        space_stage *g = &shape->stage[i];

        if (!is_prologue(shape, g, tiled->sums))
            continue;
        g->part = SPACE_PROLOGUE;
        g->conditional = has_condition(sched_context(shape->base), g->block);
        g->flat = space_is_flat(sched_context(shape->base), g->block);
        tiled->producer[tiled->n_producers++] = g;
    }
}

/* 0: not constant. */
static double count_elements(const space_stage *stage)
{
    double n = 1;

    for (int i = 0; i < stage->n_loops; i++)
        n *= (double)stage->loop[i].extent;
    return n;
}

/* Whether the stage makes 32 bits of 16, which takes a vector instruction for all lanes, and as many for a
 * single element where the sums read it. */
static bool widens(tec_context *cx, const space_stage *stage)
{
    space_load_list l = space_loads_of(cx, stage->block);
    bool halves = false;

    for (int i = 0; i < l.n; i++)
        halves |= l.load[i]->dtype.bits == 16;
    return halves && stage->block->writes[0].buffer->dtype.bits > 16;
}

/* The sums read each element of the prologue a few times, and side by side: to store it for them costs more
 * than it gives. A prologue whose size is not known is stored: reads is 0 then. */
static bool is_read_in_passing(tec_context *cx, const space_tiled *tiled, const space_stage *stage)
{
    enum { FEW = 4 };
    double reads = count_elements(tiled->sums), elements = count_elements(stage);

    return reads > 0 && reads <= FEW * elements && !space_has_math(cx, stage->block) && !widens(cx, stage) &&
           !space_find_transposed(cx, stage);
}

/* Each element of what the prologues make is read a few times only, by vectors that lie inside of one pixel:
 * computing it there costs less than storing it. */
static bool is_seldom_read(tec_context *cx, const space_tiled *tiled)
{
    enum { SELDOM = 16 };
    double reads = count_elements(tiled->sums), elements = 0;
    bool narrow = false, math = false;

    for (int i = 0; i < tiled->n_axes; i++)
        narrow = narrow || (tiled->axis[i].column && tiled->axis[i].loop->extent &&
                            tiled->axis[i].loop->extent <= tiled->sums->lanes);
    for (int i = 0; i < tiled->n_producers; i++) {
        elements = fmax(elements, count_elements(tiled->producer[i]));
        math = math || space_has_math(cx, tiled->producer[i]->block) || widens(cx, tiled->producer[i]);
    }
    return narrow && !math && reads > 0 && reads <= SELDOM * elements;
}

bool space_is_produced(const space_tiled *tiled, const ir_buffer *buffer)
{
    for (int i = 0; i < tiled->n_producers; i++)
        if (tiled->producer[i]->block->writes[0].buffer == buffer)
            return true;
    return false;
}

static bool is_listed(const space_tiled *tiled, const char *name)
{
    for (int i = 0; i < tiled->n_operands; i++)
        if (strcmp(tiled->operand[i], name) == 0)
            return true;
    return false;
}

/* Operands of which a tile uses pieces of long rows. A copy under a reduction of unknown length is not proven
 * to be the tile's own. */
static void find_operands(tec_context *cx, space_tiled *tiled)
{
    space_load_list l = space_loads_of(cx, tiled->sums->block);
    bool known = true;

    for (int i = 0; i < tiled->n_reduce; i++)
        known = known && tiled->reduce[i]->extent > 0;
    for (int i = 0; known && i < l.n && tiled->n_operands < SPACE_MAX_OPERANDS; i++) {
        const ir_buffer *buffer = l.load[i]->load.buffer;
        int64_t row;
        bool panel = ir_is_int(buffer->shape[buffer->n - 1], &row) && row <= PANEL * tiled->sums->lanes;

        if (buffer->n >= 2 && !panel && !space_is_produced(tiled, buffer) && !is_listed(tiled, buffer->name))
            tiled->operand[tiled->n_operands++] = buffer->name;
    }
}

/* The last reduction loop where the operator's note says that it is a pair and the target has an instruction
 * for that. */
static const space_loop *find_pair(const space_shape *shape, const space_stage *stage)
{
    const target *machine = sched_target(shape->base);
    const space_loop *last = stage->n_loops ? &stage->loop[stage->n_loops - 1] : NULL;

    return last && last->kind == IR_REDUCE_ITER && last->extent == 2 && machine && machine->bf16_pairs &&
                   space_has_note(shape->base, stage->name, "pairs")
               ? last
               : NULL;
}

static void list_reduction(space_tiled *tiled)
{
    for (int i = 0; i < tiled->sums->n_loops && tiled->n_reduce < SPACE_MAX_AXES; i++)
        if (tiled->sums->loop[i].kind == IR_REDUCE_ITER && tiled->sums->loop[i].extent != 1 &&
            &tiled->sums->loop[i] != tiled->pair)
            tiled->reduce[tiled->n_reduce++] = &tiled->sums->loop[i];
}

/* The vectors that share an operand for tiled->run values: whole ones, or with a shorter one at the end where
 * the panels are uneven as well. */
static int64_t vectors_of_run(const space_tiled *tiled, int64_t lanes)
{
    return tiled->uneven             ? (tiled->run + lanes - 1) / lanes
           : tiled->run % lanes == 0 ? tiled->run / lanes
                                     : 1;
}

/* At most so many rows, all of them, or a little fewer that divide them: tiles of 8 for 128 rows in place of
 * tiles of 12 with a rest. Where no number does, as many tiles of more equal heights: 7 and 6 for 13 rows. */
static int even_rows(int64_t rows, int most)
{
    if (rows && rows < most)
        return (int)rows;
    for (int r = most; rows && 3 * r >= 2 * most; r--)
        if (rows % r == 0)
            return r;
    int64_t tiles = (rows + most - 1) / most;
    return rows ? (int)((rows + tiles - 1) / tiles) : most;
}

/* How many iterations the loop has; where facts leave a few numbers that differ by little, the greatest of
 * them: with 13 <= n <= 14, a loop over n has 14. 0: unknown. */
static int64_t rows_of(const space_shape *shape, const space_loop *loop)
{
    enum { LITTLE = 4 }; /* a quarter */

    if (loop->extent)
        return loop->extent;
    const ir_facts *facts = ir_facts_of_program(sched_context(shape->base), sched_tree(shape->base));
    ir_interval few = ir_bounds(facts, sched_loop(shape->base, loop->name)->loop.extent);
    bool close = few.min > 0 && few.max < INT32_MAX && few.max - few.min <= few.min / LITTLE;
    return close ? few.max : 0;
}

/* Bytes from one row of the tile to the next in the operand that lies along the reduction; 0: there is none,
 * or its rows are not constant. For C[y, x] = sum[k](A[y, k] * B[k, x]) of float32 with 1024 k: 4096. */
static int64_t bytes_between_rows(tec_context *cx, const space_tiled *tiled)
{
    const ir_iter *row = space_iter_named(tiled->sums->block, tiled->row);

    for (int i = 0; row && i < tiled->n_loads; i++) {
        const ir_buffer *buffer = tiled->load[i]->load.buffer;
        const ir_expr *const *index = tiled->load[i]->load.index;
        int64_t bytes = base_dtype_bytes(buffer->dtype), extent;
        int d = tiled->load[i]->load.n - 1;
        const ir_expr *pair = pair_of(tiled);
        const ir_iter *last =
            index[d]->op == IR_VAR ? space_iter_named(tiled->sums->block, index[d]->var.name) : NULL;
        bool along = pair ? ir_uses_var(cx, index[d], pair) : last && last->kind == IR_REDUCE_ITER;

        if (!along)
            continue;
        for (; d >= 0 && !ir_uses_var(cx, index[d], row->var); d--)
            bytes = ir_is_int(buffer->shape[d], &extent) ? bytes * extent : 0;
        if (d >= 0)
            return bytes;
    }
    return 0;
}

/* How many rows have a line each in the first cache at once. A line's place there comes from its address
 * within 4096 bytes, as the ways of first caches are pages: rows 4096 bytes apart share one place, and there
 * are 8 of each place in 32 KiB. With more rows, each line is gone before its next element is read. */
static int64_t rows_in_cache(const target *machine, int64_t bytes)
{
    enum { WAY = 4096 };
    int64_t ways = machine && machine->l1_bytes ? machine->l1_bytes / WAY : 0, apart = WAY;

    if (bytes <= 0 || ways < 1)
        return INT64_MAX;
    while (bytes % apart)
        apart /= 2;
    return ways * (WAY / apart);
}

/* A whole panel and the rows that then fit; several panels where the rows are too few. A core that begins 2
 * multiply-adds a cycle, each of which takes 4 cycles, needs 8 sums so that none waits for itself. So of
 * panels of 2 vectors, one row takes 4 panels, two rows take 2, and four rows take 1. */
static space_tile tile_of_panels(const target *machine, int64_t rows, int64_t vectors, int64_t panels)
{
    int most = space_most_sums(machine);
    space_tile best = {0};
    double least = INFINITY;

    for (int64_t n = 1; n == 1 || (rows > 0 && n <= panels && n * vectors <= 8); n++) {
        int64_t fit = most / (n * vectors);
        space_tile tile = {even_rows(rows, fit > 1 ? (int)fit : 1), (int)(n * vectors)};
        double time = panels % n ? INFINITY : space_tile_time(machine, rows, panels * vectors, tile);

        if (n == 1 || time < least) {
            least = time;
            best = tile;
        }
    }
    return best;
}

/* The register tile where the search starts: from the model of space/tile.c, then made to fit panels, lanes
 * along the reduction, and stages with many versions of their edges. Each branch replaces the model's answer
 * for a case that the model does not know: lanes along the reduction, packed panels, and stages with many
 * edges. */
static void choose_tile(const space_shape *shape, space_tiled *tiled)
{
    enum { SMALL = 8, SMALL_WIDE = 6, MOST_COLUMNS = 8, SPARE = 2 /* registers for operands */ };
    int64_t rows = 1, columns = 0, wide = 0, lanes = tiled->sums->lanes;

    for (int i = 0; i < tiled->n_axes; i++) {
        if (tiled->axis[i].row && !tiled->axis[i].wide)
            rows = rows_of(shape, tiled->axis[i].loop);
        if (tiled->axis[i].column)
            columns = tiled->axis[i].loop->extent;
        if (tiled->axis[i].wide)
            wide = tiled->axis[i].loop->extent;
    }
    if (tiled->panel && tiled->panel < lanes)
        lanes = tiled->panel;
    const target *t = sched_target(shape->base);
    tiled->registers = t && t->sum_registers && !t->has_memory_operands ? t->vector_registers : 0;
    int64_t vectors = tiled->run ? vectors_of_run(tiled, wide ? 1 : lanes)
                      : wide     ? wide
                      : columns  ? (columns + lanes - 1) / lanes
                                 : 2;
    tiled->tile = space_tile_choose(sched_target(shape->base), rows, vectors);
    if (tiled->on_reduction) { /* a vector of partial sums for each column: any number of columns will do */
        space_tile across = space_tile_choose(sched_target(shape->base), columns, rows ? rows : SMALL);

        tiled->tile = (space_tile){across.vectors, across.rows < MOST_COLUMNS ? across.rows : MOST_COLUMNS};
    } else if (tiled->panel > lanes && tiled->panel <= PANEL * lanes)
        tiled->tile =
            tile_of_panels(t, rows, tiled->panel / lanes, (columns + tiled->panel - 1) / tiled->panel);
    /* edges of padding, and rests of a wide axis, stand beside the interior in several versions: few sums in
     * each */
    if (tiled->seldom) {
        int fit = wide && tiled->tile.vectors > 1 ? SMALL_WIDE / tiled->tile.vectors : SMALL;

        tiled->tile.rows = rows && rows < fit ? (int)rows : fit > 1 ? fit : 1;
    }
    /* the model has not seen these vectors with these rows */
    int room = (shape->registers - SPARE) / tiled->tile.vectors;
    tiled->tile.rows = tiled->tile.rows <= room ? tiled->tile.rows : room > 1 ? room : 1;
    int64_t most = tiled->row ? rows_in_cache(t, bytes_between_rows(sched_context(shape->base), tiled)) : 0;
    if (most > 0 && tiled->tile.rows > most && !tiled->on_reduction)
        tiled->tile.rows = even_rows(rows, (int)most);
}

/* Everything that the templates want to know of a tiled stage and its output `out`. The order matters: the
 * column decides which axes are rows, and both decide what the operands look like from a tile. Nothing is
 * decided here that a knob could decide: the result describes the definition, and choose_tile only proposes
 * where knobs start. */
space_tiled *space_read_tiled(tec_context *cx, const space_shape *shape, const space_stage *stage,
                              const space_stage *out)
{
    const ir_facts *facts = ir_facts_of_program(cx, sched_tree(shape->base));
    space_tiled *h = base_new(cx, space_tiled);

    *h = (space_tiled){.sums = stage, .out = out, .pair = find_pair(shape, stage)};
    list_reduction(h);
    h->along_reduction = along_reduction(facts, h);
    const space_loop *column = choose_column(facts, h);
    h->on_reduction = column && stage->lanes > 1 && h->along_reduction && merit(facts, h, column) < 0;
    const ir_iter *lane = column ? sums_iter(cx, h, column) : NULL;
    h->lane = lane ? lane->var->var.name : NULL;
    if (column)
        list_followers(cx, h, column, lane);
    order_axes(cx, h, column, lane);
    name_iters(cx, h);
    list_loads(cx, h);
    find_producers(shape, h);
    h->seldom = is_seldom_read(cx, h);
    for (int i = 0; i < h->n_producers; i++)
        h->in_passing[i] =
            !h->pair &&
            (h->seldom ||
             (h->producer[i]->flat && !space_has_note(shape->base, h->producer[i]->name, "keep")) ||
             is_read_in_passing(cx, h, h->producer[i]));
    find_operands(cx, h);
    space_find_streamed(cx, shape, h);
    choose_tile(shape, h);
    return h;
}
