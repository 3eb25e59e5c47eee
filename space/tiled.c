/* space/tiled.c -- tiled stages on a CPU: tiles of the output, each computed at once from sums in registers.
 *
 *     for outer parallel                       one loop of all outermost parts
 *       for inner parts of each axis
 *         prologues, copies of operands        where their knobs put them
 *         sums: for [reduction] { for rows unrolled { for vectors unrolled { for lane vectorised } } }
 *         output: for rows { for vectors { for lane vectorised } }
 *
 * For example C[y, x] sum= A[y, k] * B[k, x] with the output R[y, x] = max(C[y, x], 0) and the knobs tile.y =
 * [_, 2, 6], tile.x = [_, 1, 2, 8], unroll.k = [_, 4] on a CPU with 16 registers of 8 floats:
 *
 *     for yx in 0..(n//12)*(m//16) parallel    one task is 12 rows of 16 columns
 *       for y.1 in 0..2                        two register tiles below one another
 *         for k.0 in 0..l//4 { for k.1 in 0..4 unrolled {
 *           for r in 0..6 unrolled { for v in 0..2 unrolled { for lane in 0..8 vectorised {
 *             C'[r, v, lane] sum= A[.., k] * B[k, ..]      C' is 12 registers
 *         for r in 0..6 { for v in 0..2 { for lane in 0..8 vectorised { R[..] = max(C'[r, v, lane], 0) } } }
 *
 * A vector of B is loaded once and used 6 times, an element of A twice: the loads hide behind the
 * multiply-adds. More than 14 sums would not leave registers for the operands, which require_tiles refuses.
 *
 * With a blocked reduction, the tile is several register tiles large and lies in the cache:
 *
 *         sums: for k.0 { for blocks of rows, of vectors { take up; for k.1 { rows, vectors,
 *             lanes unrolled }; put back } }
 */
#include <string.h>

#include "space/master.h"

enum { MOST_ROWS = 16, MOST_VECTORS = 8, MOST_COPIES = 512, MAX_LOOPS = 48 };
enum { LANES_ON_COLUMN, LANES_ON_REDUCTION };
enum { AT_ROOT, AT_OUTER, AT_INNER, AT_READER };
enum { NOT_COPIED, COPIED_OUTER, COPIED_INNER };

static const char *const lane_words[] = {"column", "reduction"};
static const char *const place_words[] = {"root", "outer", "inner", "inline"};
static const char *const copy_words[] = {"none", "outer", "inner"};

/* Everything is fixed before the first step is taken, so that the steps below cannot disagree. */
struct space_tiled_choice {
    /* of each axis: [_, inner], a row also its register tile, a column also vectors and lanes */
    const int64_t *tile[SPACE_MAX_AXES];
    /* names of the output's loops, of the sums' reduction loops */
    const char *const *outer, *const *inner, *const *reduce;
    int64_t row_blocks, column_blocks, reduce_block; /* reduce_block 0: the reduction is not blocked */
    const int64_t *unroll;                           /* of the last reduction loop; NULL: it has none */
    int64_t taps;                                    /* further short reduction loops that are written out */
    int64_t ahead; /* steps by which a streamed operand is asked for early; 0: it is not */
    int lanes_on;
    int place[SPACE_MAX_OPERANDS], copy[SPACE_MAX_OPERANDS];
};

/* ---- declaring ---- */

static int64_t lanes_for(const space_stage *stage, int64_t extent)
{
    return extent && extent < stage->lanes ? extent : stage->lanes;
}

/* As many vectors, of equal lengths: 28 elements are two of 14, without a shorter one at the end. Otherwise
 * all lanes. */
static int64_t even_lanes(int64_t lanes, int64_t extent)
{
    int64_t vectors = (extent + lanes - 1) / lanes;

    return extent && extent % vectors == 0 ? extent / vectors : lanes;
}

typedef struct {
    int64_t lanes, even, panel;
    bool single; /* lanes may be given up, for lanes on the reduction */
} lane_rule;

/* Whether a split of the column is offered: all lanes, half of them, or as many as make equal vectors. `tile`
 * is the number of elements of the column in one tile, which must fit the panels. */
static bool keep_lanes(const int64_t *inner, int n, void *user)
{
    const lane_rule *rule = user;
    int64_t l = inner[n - 1], tile = l * inner[n - 2];

    if (rule->panel && tile % rule->panel != 0 && rule->panel % tile != 0)
        return false;
    return l == rule->lanes || l == rule->even || (l == rule->lanes / 2 && l >= 4) ||
           (l == 1 && rule->single);
}

/* [_, vectors, lanes] for the column, the axis along which vectors run. Where operands are packed in panels,
 * a tile is a whole number of panels or divides one; the lanes are the target's, fewer on a short axis, or 1
 * where the vectors may run along the reduction instead. */
static const int64_t *split_column(tec_knobs *knobs, const space_stage *stage, const space_loop *loop)
{
    const space_tiled *h = stage->tiled;
    bool single = h->along_reduction && stage->lanes > 1;
    /* all lies in the first panel: tiles may be of any size */
    int64_t panel = loop->extent && loop->extent <= h->panel ? 0 : h->panel;
    int64_t lanes = lanes_for(stage, panel ? panel : loop->extent);
    lane_rule rule = {lanes, panel ? lanes : even_lanes(lanes, loop->extent), panel, single};
    int64_t start[] = {1, loop->extent && loop->extent <= lanes ? 1 : h->tile.vectors, rule.even},
            most[] = {0, MOST_VECTORS, stage->lanes};

    if (h->on_reduction)
        start[1] = h->tile.vectors, start[2] = 1;

    return space_pick_split(knobs, stage, "tile", loop->iter, loop->extent,
                            &(tec_split_domain){.parts = 4,
                                                .policy = TEC_SPLIT_VERBOSE,
                                                .most = most,
                                                .start = start,
                                                .keep = keep_lanes,
                                                .user = &rule});
}

/* Where a wide axis starts: as many of its values as the tile has vectors. Those of lanes along the reduction
 * are columns already. */
static int64_t start_wide(const space_tiled *tiled)
{
    return tiled->on_reduction ? 1 : tiled->tile.vectors;
}

/* Tasks that the axes but the last one give where they start. An extent that is not constant may be large.
 * For an output of 100 x 64 with tiles of 2 x 8 columns: the first axis counts if it is not the last, so
 * that an output with the column last has as many tasks as it has rows in front of it. */
static int64_t count_tasks(const space_tiled *tiled)
{
    int64_t tasks = 1;

    for (int i = 0; i < tiled->n_axes - 1; i++) {
        const space_axis *axis = &tiled->axis[i];
        int64_t n = axis->loop->extent, size = axis->column ? tiled->tile.vectors * lanes_for(tiled->sums, n)
                                               : axis->wide ? start_wide(tiled)
                                               : axis->row && tiled->seldom ? n
                                                                            : 1;

        tasks *= n ? (n + size - 1) / size : SPACE_TASKS;
    }
    return tasks;
}

/* The outermost part of a last row of unknown length is a loop of its own, inside of the parallel one: the
 * rest at its end is then cut off, where of fused loops each tile would ask for it. Where it has all the
 * tasks it runs in parallel itself. */
static bool stays_apart(const space_tiled *tiled, int i)
{
    return i == tiled->n_axes - 1 && tiled->axis[i].row && tiled->axis[i].loop->extent == 0 &&
           count_tasks(tiled) > 1;
}

/* The tiles of the column leave no rest. */
static bool divides_column(const space_tiled *tiled)
{
    for (int i = 0; i < tiled->n_axes; i++) {
        int64_t n = tiled->axis[i].loop->extent, lanes = lanes_for(tiled->sums, n);

        if (tiled->axis[i].column && n > lanes && n % (lanes * tiled->tile.vectors))
            return false;
    }
    return true;
}

/* The inner part of the last row: all its tiles, or so many that there are tasks enough. Pieces are equal,
 * and the column has no rest: otherwise the fused loop puts conditions into all tiles, which costs less than
 * one thread alone where no other axis has tasks. An example: 120 rows in tiles of 6 are 20 tiles. If more
 * tasks are wanted, 4 pieces of 5 tiles each are made. */
static int64_t start_rows(const space_tiled *tiled, int64_t extent)
{
    int64_t tiles = (extent + tiled->tile.rows - 1) / tiled->tile.rows;
    int64_t inner = tiles / space_more_tasks(tiled->sums, count_tasks(tiled));

    if ((extent % tiled->tile.rows || !divides_column(tiled)) && count_tasks(tiled) > 1)
        return tiles;
    while (inner > 1 && tiles % inner)
        inner--;
    return inner > 1 ? inner : 1;
}

/* [_, rows] for an axis across the vectors. Edges of padding (`seldom`) are cut off the outer loop, so that
 * the interior needs no conditions: there the start leaves the loop over row tiles as long as it can be. The
 * start for a row axis of 56 with tiles of 6 rows: [_, 10, 6] where edges are cut, else the number that
 * start_rows finds. */
static const int64_t *split_axis(tec_knobs *knobs, const space_stage *stage, const space_axis *axis,
                                 bool last)
{
    const space_tiled *h = stage->tiled;
    int64_t rows = last         ? h->tile.rows
                   : axis->wide ? start_wide(h)
                                : 1,
            n = axis->loop->extent, most[] = {0, MOST_ROWS};
    int64_t start[] = {1, rows};

    if (axis->column)
        return split_column(knobs, stage, axis->loop);
    if (n && (last || (axis->row && h->seldom)))
        start[0] = last && !h->seldom ? start_rows(h, n) : (n + rows - 1) / rows;
    return space_pick_split(
        knobs, stage, "tile", axis->loop->iter, n,
        &(tec_split_domain){
            .parts = axis->row ? 3 : 2, .policy = TEC_SPLIT_VERBOSE, .most = most, .start = start});
}

enum { USUAL = 4 }; /* steps of a reduction that are written out, where registers allow */

/* How many steps the schedule begins with. LLVM loads the operands of all steps that are written out early,
 * so that the registers which sums leave free must hold about half of these operands; what they cannot hold
 * lies on the stack. For 8 x 2 sums and 32 registers: 16 are free, a step has 10 operands, two steps are
 * 20. */
static int64_t usual_steps(const space_tiled *tiled)
{
    int operands = tiled->tile.rows + tiled->tile.vectors,
        free = tiled->registers - tiled->tile.rows * tiled->tile.vectors;
    int64_t steps = tiled->streamed_once ? 1 : USUAL;

    while (tiled->registers && steps > 1 && steps * operands > 2 * free)
        steps /= 2;
    return steps;
}

/* How many steps of the innermost reduction loop are written out. The start divides the extent, so that no
 * loop over a rest is needed. */
static const int64_t *split_reduction(tec_knobs *knobs, const space_stage *stage)
{
    enum { MOST = 16 };
    const space_tiled *h = stage->tiled;
    const space_loop *last = h->n_reduce ? h->reduce[h->n_reduce - 1] : NULL;
    int64_t start = usual_steps(h), most = MOST;

    if (!last)
        return NULL;
    if (h->seldom && last->extent < USUAL)
        start = last->extent;
    while (start > 1 && (!last->extent || last->extent % start))
        start /= 2;
    return space_pick_split(knobs, stage, "unroll", last->iter, last->extent,
                            &(tec_split_domain){.parts = 2, .most = &most, .start = &start});
}

/* The reduction loop that is blocked: the longest, or the first of unknown extent. */
static const space_loop *longest(const space_tiled *tiled)
{
    const space_loop *best = NULL;

    for (int i = 0; i < tiled->n_reduce; i++)
        if (!best || (best->extent && (!tiled->reduce[i]->extent || tiled->reduce[i]->extent > best->extent)))
            best = tiled->reduce[i];
    return best;
}

/* What accumulates in a tile must be proven to be the tile's own, which takes known extents. */
static bool has_known_axes(const space_tiled *tiled)
{
    for (int i = 0; i < tiled->n_axes; i++)
        if (tiled->axis[i].loop->extent == 0)
            return false;
    return true;
}

/* The lengths of a reduction block that divide the reduction; 0, no block, is the first. With a reduction
 * over 96: 0, 4, 8, 16, 32. Over an unknown length only blocks from 64 on pay, since the last one is
 * guarded. */
static int64_t pick_reduce_block(tec_knobs *knobs, const space_stage *stage)
{
    static const int64_t all[] = {0, 4, 8, 16, 32, 64, 128, 256, 512};
    const space_loop *loop = has_known_axes(stage->tiled) ? longest(stage->tiled) : NULL;
    int64_t value[BASE_COUNT(all)];
    int n = 0;

    for (int i = 0; loop && i < BASE_COUNT(all); i++)
        if (all[i] == 0 ||
            (loop->extent ? all[i] < loop->extent && loop->extent % all[i] == 0 : all[i] >= 64))
            value[n++] = all[i];
    return space_pick(knobs, stage, "reduce_block", value, n, 0);
}

/* How many results of the axis one pass of the innermost loops computes: the rows of a row axis, vectors
 * times lanes of the column, 1 of all others. */
static int64_t tile_of(const space_tiled_choice *choice, const space_tiled *tiled, int i)
{
    return tiled->axis[i].row      ? choice->tile[i][2]
           : tiled->axis[i].column ? choice->tile[i][2] * choice->tile[i][3]
                                   : 1;
}

/* Vectors of sums that a register tile has. */
static int64_t count_sums(const space_tiled_choice *choice, const space_tiled *tiled)
{
    int64_t n = 1;

    for (int i = 0; i < tiled->n_axes; i++)
        n *= tiled->axis[i].column && choice->lanes_on == LANES_ON_COLUMN ? choice->tile[i][2]
                                                                          : tile_of(choice, tiled, i);
    return n;
}

/* Updates that stand in the innermost loop. What counts is code: rows * vectors * steps * taps updates in the
 * innermost loop. */
static int64_t count_copies(const space_tiled_choice *choice, const space_tiled *tiled)
{
    int64_t n = count_sums(choice, tiled) * (choice->unroll ? choice->unroll[1] : 1);

    for (int i = 0, taken = 0; i < tiled->n_reduce - 1 && taken < choice->taps; i++)
        if (tiled->reduce[tiled->n_reduce - 2 - i]->extent) {
            n *= tiled->reduce[tiled->n_reduce - 2 - i]->extent;
            taken++;
        }
    return n;
}

/* How often the innermost loop stands in the code: a tile that does not divide its axis has a shorter one at
 * the end, and conditions of what is computed at its reader leave an interior and edges. One tile along all
 * of its axis has neither.
 *
 *     x of unknown length: an interior and a rest, 2;  a conditional prologue adds an edge: 3 for each axis
 */
static int64_t count_versions(const space_tiled_choice *choice, const space_tiled *tiled)
{
    bool conditional = false;
    int64_t n = 1;

    for (int i = 0; i < tiled->n_producers; i++)
        conditional |= choice->place[i] == AT_READER && tiled->producer[i]->conditional;
    for (int i = 0; i < tiled->n_axes; i++)
        if ((tiled->axis[i].row || tiled->axis[i].column) &&
            !(tiled->axis[i].loop->extent && tiled->axis[i].loop->extent <= tile_of(choice, tiled, i)))
            n *= 1 + (tiled->axis[i].loop->extent % tile_of(choice, tiled, i) != 0) + conditional;
    return n;
}

/* What the parts of an axis other than the first come to, with the blocks of a blocked reduction. */
static int64_t span_of(const space_tiled_choice *choice, const space_tiled *tiled, int i)
{
    int64_t blocks = !choice->reduce_block                          ? 1
                     : tiled->axis[i].column                        ? choice->column_blocks
                     : i == tiled->n_axes - 1 && tiled->axis[i].row ? choice->row_blocks
                                                                    : 1;

    return choice->tile[i][1] * tile_of(choice, tiled, i) * blocks;
}

/* What no schedule can satisfy or the compiler would take too long for: more sums than registers, too many
 * copies of the update, blocks that do not divide, vectors along two loops at once. Two registers are left
 * for operands: with 16 registers, 14 vectors of sums. */
static void require_tiles(tec_knobs *knobs, const space_shape *shape, const space_stage *stage,
                          const space_tiled_choice *choice)
{
    const space_tiled *h = stage->tiled;
    int64_t sums = count_sums(choice, h), updates = count_copies(choice, h),
            versions = count_versions(choice, h);

    tec_knob_require(knobs, sums <= shape->registers - 2, "%lld vectors of sums do not fit in %d registers",
                     (long long)sums, shape->registers);
    tec_knob_require(
        knobs, updates * versions <= MOST_COPIES,
        "%lld updates are written out in %lld versions of the innermost loop: %d in all are too many",
        (long long)updates, (long long)versions, MOST_COPIES);
    for (int i = 0; i < h->n_axes && choice->reduce_block; i++)
        tec_knob_require(knobs, h->axis[i].loop->extent % span_of(choice, h, i) == 0,
                         "a blocked reduction needs tiles that divide '%s'", h->axis[i].loop->name);
    for (int i = 0; i < h->n_producers && h->pair; i++)
        tec_knob_require(knobs, choice->place[i] != AT_READER,
                         "an instruction reads pairs of '%s', which therefore lies in memory",
                         h->producer[i]->name);
    for (int i = 0; i < h->n_axes; i++)
        if (h->axis[i].column && h->along_reduction && stage->lanes > 1)
            tec_knob_require(knobs, (choice->tile[i][3] == 1) == (choice->lanes_on == LANES_ON_REDUCTION),
                             "lanes stand on the column or on the reduction, not on both");
}

/* How many register tiles the block of a blocked reduction has in each direction. Without a blocked
 * reduction both numbers change nothing (idle), and only one value of each is tried. */
static void pick_blocks(tec_knobs *knobs, const space_stage *stage, space_tiled_choice *choice)
{
    static const int64_t blocks[] = {1, 2, 4, 8};
    const space_tiled *h = stage->tiled;

    choice->reduce_block = pick_reduce_block(knobs, stage);
    choice->row_blocks = choice->column_blocks = 1;
    if (!has_known_axes(h) || !longest(h))
        return;
    choice->row_blocks = space_pick(knobs, stage, "row_blocks", blocks, BASE_COUNT(blocks), 1);
    choice->column_blocks = space_pick(knobs, stage, "column_blocks", blocks, 3, 1);
    space_leave_idle(knobs, stage, "row_blocks",
                     choice->reduce_block == 0 || !h->n_axes || !h->axis[h->n_axes - 1].row);
    space_leave_idle(knobs, stage, "column_blocks", choice->reduce_block == 0);
}

/* Orders of the outermost parts, of the inner parts, and of the reduction loops: three separate knobs, since
 * they nest in that order whatever their values. */
static void pick_orders(tec_knobs *knobs, const space_stage *stage, space_tiled_choice *choice)
{
    const space_tiled *h = stage->tiled;
    const char **axis = base_array(knobs->cx, const char *, h->n_axes),
               **reduce = base_array(knobs->cx, const char *, h->n_reduce);

    for (int i = 0; i < h->n_axes; i++)
        axis[i] = h->axis[i].loop->name;
    for (int i = 0; i < h->n_reduce; i++)
        reduce[i] = h->reduce[i]->name;
    choice->outer = space_pick_order(knobs, stage, "outer_order", axis, h->n_axes);
    choice->inner = space_pick_order(knobs, stage, "inner_order", axis, h->n_axes);
    choice->reduce = space_pick_order(knobs, stage, "reduce_order", reduce, h->n_reduce);
}

/* Whether the last reduction loop is written out as a whole. */
static bool is_written_out(const space_stage *stage, const space_tiled_choice *choice)
{
    const space_loop *last = stage->tiled->reduce[stage->tiled->n_reduce - 1];
    int64_t steps = choice->lanes_on == LANES_ON_REDUCTION ? stage->lanes : choice->unroll[1];
    int64_t n = last == longest(stage->tiled) && choice->reduce_block ? choice->reduce_block : last->extent;

    return steps > 1 && n > 0 && n <= steps;
}

/* Reduction loops stand around those that are written out, and the last one's steps are innermost: their
 * order among each other counts. Within a group the order is part of the schedule; between groups it is fixed
 * by what the loops become. */
static void group_reduction(tec_knobs *knobs, const space_stage *stage, const space_tiled_choice *choice)
{
    enum { LOOPS, TAPS, STEPS };
    int group[SPACE_MAX_AXES], last = stage->tiled->n_reduce - 1;

    for (int i = 0; i < last; i++)
        group[i] = i < last - choice->taps ? LOOPS : TAPS;
    if (last >= 0)
        group[last] = is_written_out(stage, choice) ? STEPS : LOOPS;
    space_group_order(knobs, stage, "reduce_order", group, last + 1);
}

/* A loop that runs once may stand anywhere; where all inner loops do, inner places are the outer one. An
 * example: with tile.y = [_, 1, 6] the inner loop of y runs once, and its place among the inner loops is
 * none. */
static void group_loops(tec_knobs *knobs, const space_stage *stage, const space_tiled_choice *choice)
{
    const space_tiled *h = stage->tiled;
    int outer[SPACE_MAX_AXES], inner[SPACE_MAX_AXES];
    bool no_inner = true;

    for (int i = 0; i < h->n_axes; i++) {
        int64_t n = h->axis[i].loop->extent;

        outer[i] = stays_apart(h, i) || (n && n <= span_of(choice, h, i)) ? i + 1 : 0;
        inner[i] = choice->tile[i][1] == 1 ? i + 1 : 0;
        no_inner = no_inner && inner[i];
    }
    space_group_order(knobs, stage, "outer_order", outer, h->n_axes);
    space_group_order(knobs, stage, "inner_order", inner, h->n_axes);
    for (int i = 0; i < h->n_producers && no_inner; i++)
        space_leave_alias(knobs, stage, base_format(knobs->cx, "place.%s", h->producer[i]->name), AT_INNER,
                          AT_OUTER);
    for (int i = 0; i < h->n_operands && no_inner; i++)
        space_leave_alias(knobs, stage, base_format(knobs->cx, "copy.%s", h->operand[i]), COPIED_INNER,
                          COPIED_OUTER);
}

/* The short reduction loops (a 3 x 3 window) that may be written out besides the innermost steps. For a
 * convolution over channels, ky, kx the two loops in front of the last may be taps: 0, 1 or 2 of them. */
static int64_t pick_taps(tec_knobs *knobs, const space_stage *stage)
{
    enum { SHORT = 8 };
    static const int64_t counts[] = {0, 1, 2};
    const space_tiled *h = stage->tiled;
    int n = 0;

    while (n < 2 && n < h->n_reduce - 1 && h->reduce[h->n_reduce - 2 - n]->extent &&
           h->reduce[h->n_reduce - 2 - n]->extent <= SHORT)
        n++;
    return space_pick(knobs, stage, "taps", counts, n + 1, 0);
}

/* Where each prologue is computed and whether an operand is copied, so that a tile's part of it lies
 * together. */
static void pick_places(tec_knobs *knobs, const space_stage *stage, space_tiled_choice *choice)
{
    const space_tiled *h = stage->tiled;

    for (int i = 0; i < h->n_producers; i++)
        choice->place[i] =
            space_pick_word(knobs, stage, base_format(knobs->cx, "place.%s", h->producer[i]->name),
                            place_words, 4, h->in_passing[i] ? AT_READER : AT_ROOT);
    for (int i = 0; i < h->n_operands; i++)
        choice->copy[i] = space_pick_word(knobs, stage, base_format(knobs->cx, "copy.%s", h->operand[i]),
                                          copy_words, 3, NOT_COPIED);
}

/* All knobs of a tiled stage in a fixed order, since values are found by their place. A knob that has no
 * effect beside another's value is declared idle there, so that tuners do not measure the same schedule
 * twice. The requirements come last, when all values are known. */
const space_tiled_choice *space_declare_tiled(tec_knobs *knobs, const space_shape *shape,
                                              const space_stage *stage)
{
    const space_tiled *h = stage->tiled;
    space_tiled_choice *choice = base_new(knobs->cx, space_tiled_choice);
    bool vectors = h->lane && stage->lanes > 1;

    for (int i = 0; i < h->n_axes; i++)
        choice->tile[i] = split_axis(knobs, stage, &h->axis[i], i == h->n_axes - 1);
    choice->lanes_on =
        !vectors && h->along_reduction && stage->lanes > 1 ? LANES_ON_REDUCTION : LANES_ON_COLUMN;
    if (h->along_reduction && vectors)
        choice->lanes_on = space_pick_word(knobs, stage, "lanes", lane_words, 2,
                                           h->on_reduction ? LANES_ON_REDUCTION : LANES_ON_COLUMN);
    choice->unroll = split_reduction(knobs, stage);
    if (choice->unroll)
        space_leave_idle(knobs, stage, base_format(knobs->cx, "unroll.%s", h->reduce[h->n_reduce - 1]->iter),
                         choice->lanes_on == LANES_ON_REDUCTION);
    if (h->streamed)
        choice->ahead = space_pick_ahead(knobs, stage,
                                         usual_steps(h) * h->tile.vectors * (int64_t)stage->lanes *
                                             (h->pair ? 2 : 1) * base_dtype_bytes(h->streamed->dtype));
    choice->taps = pick_taps(knobs, stage);
    pick_orders(knobs, stage, choice);
    pick_blocks(knobs, stage, choice);
    pick_places(knobs, stage, choice);
    group_reduction(knobs, stage, choice);
    group_loops(knobs, stage, choice);
    require_tiles(knobs, shape, stage, choice);
    return choice;
}

/* ---- applying ---- */

/* What the steps hand to each other. */
typedef struct {
    sched *s;
    const space_stage *g;
    const space_tiled *h;
    const space_tiled_choice *c;
    const char *part[SPACE_MAX_AXES][4]; /* of each axis of the output */
    /* the loop of all outermost parts; the innermost of the inner ones */
    const char *outer, *inner;
    const char *buffer; /* of the sums */
} tiling;

static int parts_of(const space_axis *axis)
{
    return axis->column ? 4 : axis->row ? 3 : 2;
}

/* Cuts the loops of the output; with a blocked reduction the tile has several register tiles. The parts of an
 * axis are [outermost, inner, tile, lanes], as many as the axis has. */
static bool split_output(tiling *self)
{
    for (int i = 0; i < self->h->n_axes; i++) {
        const space_axis *axis = &self->h->axis[i];
        int64_t f[4];

        memcpy(f, self->c->tile[i], (size_t)parts_of(axis) * sizeof *f);
        if (self->c->reduce_block && (axis->row || axis->column))
            f[2] *= axis->column               ? self->c->column_blocks
                    : i == self->h->n_axes - 1 ? self->c->row_blocks
                                               : 1;
        if (!sched_split(self->s, axis->loop->name, TEC_GUARD, self->part[i], f, parts_of(axis)))
            return false;
    }
    return true;
}

static int axis_of(const tiling *self, const char *loop)
{
    int i = 0;

    while (strcmp(self->h->axis[i].loop->name, loop) != 0)
        i++;
    return i;
}

/* The parts of a tile: rows, then what has vectors of its own, vectors, lanes. */
static int append_tile(const tiling *self, const char **order, int count)
{
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < self->h->n_axes; i++)
            if (self->h->axis[i].row && self->h->axis[i].wide == wide)
                order[count++] = self->part[i][2];
    for (int i = 0; i < self->h->n_axes; i++)
        if (self->h->axis[i].column) {
            order[count++] = self->part[i][2];
            order[count++] = self->part[i][3];
        }
    return count;
}

/* Loops of one step, then outermost parts, inner parts, tiles. The sums move before the loops around them are
 * fused, so that conditions on those stay simple. The place of the sums is the innermost of the inner loops:
 * a register tile of sums is computed in each. */
static bool order_output(tiling *self)
{
    const char *order[MAX_LOOPS];
    int n = 0, n_outer;

    for (int i = 0; i < self->h->out->n_loops; i++)
        if (self->h->out->loop[i].extent == 1)
            order[n++] = self->h->out->loop[i].name;
    for (int i = 0; i < self->h->n_axes; i++)
        if (!stays_apart(self->h, axis_of(self, self->c->outer[i])))
            order[n++] = self->part[axis_of(self, self->c->outer[i])][0];
    n_outer = n;
    for (int i = 0; i < self->h->n_axes; i++)
        if (stays_apart(self->h, i))
            order[n++] = self->part[i][0];
    for (int i = 0; i < self->h->n_axes; i++)
        order[n++] = self->part[axis_of(self, self->c->inner[i])][1];
    self->inner = order[n - 1];
    n = append_tile(self, order, n);
    if (!sched_reorder(self->s, order, n) || !sched_compute_at(self->s, self->g->name, self->inner))
        return false;
    self->outer = space_fuse(self->s, order, n_outer);
    return self->outer != NULL;
}

/* The sums' own loop of a variable; NULL: it has one value in a tile, from the loops around. */
static const char *own_loop(const tiling *self, const char *iter)
{
    const char *loop = space_loop_of(self->s, self->g->name, iter), **around;
    int n = sched_loops_of(self->s, self->h->out->name, &around);

    for (int i = 0; loop && i < n; i++)
        if (strcmp(around[i], loop) == 0)
            return NULL;
    return loop;
}

/* The loops of the sums, cut as the choices say. NULL: there is no such loop. */
typedef struct {
    const char *reduce[2 * SPACE_MAX_AXES]; /* what stands outside of the innermost steps */
    int n_reduce;
    const char *k0;                   /* blocks of the reduction */
    const char *steps;                /* innermost: written out */
    const char *taps[SPACE_MAX_AXES]; /* short loops around them, also */
    int n_taps;
    const char *block[SPACE_MAX_AXES]; /* blocks of rows and vectors */
    int n_blocks;
    const char *tile[SPACE_MAX_AXES]; /* rows and vectors of the register tile */
    int n_tile;
    const char *lane;
} sums_loops;

/* A spatial loop of the sums that is longer than the register tile, in blocks of `size`. With tiles of 6
 * rows and 4 row_blocks a loop over 24 rows becomes 4 blocks of 6. Without a blocked reduction the loop is
 * the tile itself. */
static bool cut_blocks(tiling *self, sums_loops *loops, const char *loop, int64_t size)
{
    int64_t n = space_extent(self->s, loop);
    const char *part[2];

    if (!self->c->reduce_block || n == 0 || size < 1 || n <= size) {
        loops->tile[loops->n_tile++] = loop;
        return true;
    }
    if (!sched_split(self->s, loop, TEC_GUARD, part, (int64_t[]){TEC_INFER, size}, 2))
        return false;
    loops->block[loops->n_blocks++] = part[0];
    loops->tile[loops->n_tile++] = part[1];
    return true;
}

/* The lanes: of the column's loop, which may hold several vectors. A loop of one short vector stays whole,
 * and is the lanes itself. */
static bool cut_lanes(tiling *self, sums_loops *loops, const char *loop, int64_t vectors, int64_t lanes)
{
    int64_t n = space_extent(self->s, loop);
    const char *part[2];

    if (n <= lanes || n % lanes) {
        loops->lane = n <= 2 * lanes ? loop : NULL;
        if (!loops->lane)
            loops->tile[loops->n_tile++] = loop;
        return true;
    }
    if (!sched_split(self->s, loop, TEC_GUARD, part, (int64_t[]){TEC_INFER, lanes}, 2))
        return false;
    loops->lane = part[1];
    return cut_blocks(self, loops, part[0], vectors);
}

static const int64_t *column_tile(const tiling *self)
{
    for (int i = 0; i < self->h->n_axes; i++)
        if (self->h->axis[i].column)
            return self->c->tile[i];
    return NULL;
}

/* 0: the last axis is no row. */
static int64_t row_tile(const tiling *self)
{
    const space_axis *a = &self->h->axis[self->h->n_axes - 1];

    return a->row ? self->c->tile[self->h->n_axes - 1][2] : 0;
}

static bool follows_column(const tiling *self, const char *iter)
{
    for (int i = 0; i < self->h->n_follows; i++)
        if (strcmp(self->h->follows[i], iter) == 0)
            return true;
    return false;
}

/* Its values have vectors of their own, and come behind the rows. */
static bool has_vectors(const tiling *self, const char *iter)
{
    for (int i = 0; i < self->h->n_axes; i++)
        if (self->h->axis[i].wide && base_same(self->h->axis[i].iter, iter))
            return true;
    return follows_column(self, iter);
}

/* Spatial loops other than that of the lanes: those of the last row are cut by its tile, those that follow
 * the column by its vectors. In two passes: first the loops that do not follow the column, then those that
 * do, so that rows stand outside of vectors. */
static bool cut_spatial(tiling *self, sums_loops *loops)
{
    const int64_t *column = column_tile(self);
    bool on_column = self->c->lanes_on == LANES_ON_COLUMN;
    const char *lane = self->h->lane ? own_loop(self, self->h->lane) : NULL;
    const char *own_row = self->h->row ? own_loop(self, self->h->row) : NULL;

    own_row = own_row ? own_row : "";
    for (int i = 0; i < 2 * self->g->n_loops; i++) {
        const space_loop *loop = &self->g->loop[i % self->g->n_loops];
        const char *own = loop->kind == IR_SPATIAL && has_vectors(self, loop->iter) == (i >= self->g->n_loops)
                              ? own_loop(self, loop->iter)
                              : NULL;

        /* a tile of two groups: one after the other */
        if (own && self->h->uneven && base_same(self->h->group, loop->iter)) {
            loops->reduce[loops->n_reduce++] = own;
            continue;
        }
        if (!own || (lane && on_column && strcmp(own, lane) == 0))
            continue;
        int64_t size = strcmp(own_row, own) == 0          ? row_tile(self)
                       : follows_column(self, loop->iter) ? column[2]
                                                          : space_extent(self->s, own);
        if (!cut_blocks(self, loops, own, size))
            return false;
    }
    return !lane || !on_column || cut_lanes(self, loops, lane, column[2], column[3]);
}

static int reduce_place(const space_tiled *tiled, const char *loop)
{
    int i = 0;

    while (strcmp(tiled->reduce[i]->name, loop) != 0)
        i++;
    return i;
}

/* Cuts the longest reduction loop; the outer part k0 stands outside of the tile. */
static bool cut_reduce_block(tiling *self, sums_loops *loops)
{
    const char *part[2];

    if (!self->c->reduce_block)
        return true;
    if (!sched_split(self->s, own_loop(self, longest(self->h)->iter), TEC_GUARD, part,
                     (int64_t[]){TEC_INFER, self->c->reduce_block}, 2))
        return false;
    loops->k0 = part[0];
    return true;
}

/* The last reduction loop, and its innermost steps: those that are written out, or the lanes. A short loop is
 * written out whole. */
static bool cut_steps(tiling *self, sums_loops *loops, const char *own)
{
    int64_t by = self->c->lanes_on == LANES_ON_REDUCTION ? self->g->lanes : self->c->unroll[1],
            n = space_extent(self->s, own);
    const char *part[2] = {own, NULL};

    if (by > 1 && n > 0 && n <= by) {
        loops->steps = own;
        return true;
    }
    if (by > 1 && !sched_split(self->s, own, TEC_GUARD, part, (int64_t[]){TEC_INFER, by}, 2))
        return false;
    loops->reduce[loops->n_reduce++] = part[0];
    loops->steps = part[1];
    return true;
}

/* Sorts the reduction loops into those around the tile, the short ones inside that are written out (`taps`),
 * and the innermost one, cut into steps. */
static bool cut_reduction(tiling *self, sums_loops *loops)
{
    if (!cut_reduce_block(self, loops))
        return false;
    for (int i = 0; i < self->h->n_reduce; i++) {
        int at = reduce_place(self->h, self->c->reduce[i]);
        const char *own = own_loop(self, self->h->reduce[at]->iter);

        if (at < self->h->n_reduce - 1 - self->c->taps)
            loops->reduce[loops->n_reduce++] = own;
        else if (at < self->h->n_reduce - 1)
            loops->taps[loops->n_taps++] = own;
        else if (!cut_steps(self, loops, own))
            return false;
    }
    return true;
}

/* Parts that a split did not make (NULL) are left out. */
static int append(const char **order, int n, const char *const *loop, int count)
{
    for (int i = 0; i < count; i++)
        if (loop[i])
            order[n++] = loop[i];
    return n;
}

/* Blocks of the reduction outermost, the register tile innermost; lanes along the reduction stand where its
 * steps do. Blocks of rows and columns stand outside of the reduction steps of a block, as each takes up its
 * sums once. */
static bool order_sums(tiling *self, const sums_loops *loops)
{
    const char *order[MAX_LOOPS];
    bool on_reduction = self->c->lanes_on == LANES_ON_REDUCTION;
    int n = append(order, 0, &loops->k0, 1);

    n = append(order, n, loops->block, loops->n_blocks);
    n = append(order, n, loops->reduce, loops->n_reduce);
    n = append(order, n, loops->taps, loops->n_taps);
    if (!on_reduction)
        n = append(order, n, &loops->steps, 1);
    n = append(order, n, loops->tile, loops->n_tile);
    n = append(order, n, on_reduction ? &loops->steps : &loops->lane, 1);
    if (self->h->pair)
        order[n++] = own_loop(self, self->h->pair->iter);
    return n < 2 || sched_reorder(self->s, order, n);
}

/* Lanes with pairs are an instruction where it has as many lanes. Otherwise they are vectors like others,
 * which pick every second element of the pairs and are several times slower: the tuner may meet them, and
 * defaults have lanes that fit. */
static bool compute_lanes(tiling *self, const char *lane)
{
    const char *name = self->h->pair && lane
                           ? base_format(sched_context(self->s), "%s%lld", sched_target(self->s)->bf16_pairs,
                                         (long long)space_extent(self->s, lane))
                           : NULL;

    if (name && sched_tensorize(self->s, lane, name))
        return true;
    if (name)
        sched_clear(self->s);
    return space_vectorise(self->s, lane);
}

/* The loops of the register tile are written out, so that each sum has a register of its own. A loop that
 * stays a loop would index the sums by its variable, and what is indexed cannot be a register. */
static bool annotate_sums(tiling *self, const sums_loops *loops)
{
    bool on_reduction = self->c->lanes_on == LANES_ON_REDUCTION;

    for (int i = 0; i < loops->n_taps; i++)
        if (!space_unroll(self->s, loops->taps[i]))
            return false;
    for (int i = 0; i < loops->n_tile; i++)
        if (!space_unroll(self->s, loops->tile[i]))
            return false;
    if (on_reduction)
        return space_vectorise(self->s, loops->steps);
    return space_unroll(self->s, loops->steps) && compute_lanes(self, loops->lane);
}

/* Rows and vectors of the blocks that fill the registers and empty them: the same vectors as those of the
 * sums, or they would be no registers. For sums of 6 rows and 2 vectors of 8 lanes the copy over [6, 16]
 * becomes: 6 rows unrolled, 2 vectors unrolled, 8 lanes vectorised. */
static bool annotate_copies(tiling *self, const sums_loops *loops, const char *copy, const char *around)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *part[2];
    int n_reduce, n = space_own_loops(self->s, copy, around, spatial, reduce, &n_reduce);
    int64_t lanes = loops->lane ? space_extent(self->s, loops->lane) : 0,
            last = n ? space_extent(self->s, spatial[n - 1]) : 0;

    if (lanes > 0 && last > lanes && last % lanes == 0) {
        if (!sched_split(self->s, spatial[n - 1], TEC_GUARD, part, (int64_t[]){TEC_INFER, lanes}, 2))
            return false;
        spatial[n - 1] = part[0];
        spatial[n++] = part[1];
    }
    for (int i = 0; i < n - 1; i++)
        if (!space_unroll(self->s, spatial[i]))
            return false;
    return n == 0 || space_vectorise(self->s, spatial[n - 1]);
}

/* With a blocked reduction the registers hold a part of the tile: it is taken up before the steps of a block
 * and put back behind them. Without blocks the sums of a tile are all in registers, from their init to the
 * output. */
static bool keep_in_registers(tiling *self, const sums_loops *loops)
{
    const char *around = loops->n_blocks ? loops->block[loops->n_blocks - 1] : loops->k0, **writer;

    if (!self->c->reduce_block)
        return sched_set_scope(self->s, self->buffer, "local");
    const char *copy = sched_cache_write_at(self->s, self->g->name, "local", around);
    if (!copy)
        return false;
    int n = sched_producers_of(self->s, copy, &writer);
    for (int i = 0; i < n; i++)
        if (sched_block(self->s, writer[i])->block.block->role == IR_ROLE_CACHE &&
            !annotate_copies(self, loops, writer[i], around))
            return false;
    return annotate_copies(self, loops, copy, around);
}

/* The steps of the innermost loop that is left of the reduction ask for the streamed operand. Without such a
 * loop all of the reduction is written out, and there is no later step. */
static bool ask_early(tiling *self, const sums_loops *loops)
{
    return !self->c->ahead || !loops->n_reduce ||
           sched_prefetch(self->s, self->h->streamed->name, loops->reduce[loops->n_reduce - 1],
                          (int)self->c->ahead);
}

/* Inside one tile: cuts the spatial loops, then the reduction, and puts the sums into registers. */
static bool compute_sums(tiling *self)
{
    sums_loops l = {0};

    return cut_spatial(self, &l) && cut_reduction(self, &l) && order_sums(self, &l) &&
           keep_in_registers(self, &l) && annotate_sums(self, &l) && ask_early(self, &l);
}

/* The output takes the same vectors as the sums. Otherwise sums would travel through memory from the vectors
 * of one shape to those of another. */
static bool finish_output(tiling *self)
{
    for (int i = 0; i < self->h->n_axes; i++) {
        const space_axis *axis = &self->h->axis[i];

        if ((axis->row || axis->column) && !self->c->reduce_block && !space_unroll(self->s, self->part[i][2]))
            return false;
        if (axis->column && !space_vectorise(self->s, self->part[i][3]))
            return false;
    }
    return true;
}

/* Last first: a producer may feed another one. AT_READER is inlining; AT_ROOT leaves the stage where it is,
 * with knobs of its own. */
static bool place_producers(tiling *self)
{
    for (int i = self->h->n_producers - 1; i >= 0; i--) {
        const space_stage *p = self->h->producer[i];
        const char *at = self->c->place[i] == AT_OUTER ? self->outer : self->inner;

        if (self->c->place[i] == AT_READER) {
            if (!sched_compute_inline(self->s, p->name))
                return false;
        } else if (self->c->place[i] != AT_ROOT && (!sched_compute_at(self->s, p->name, at) ||
                                                    !space_vectorise_inside(self->s, p->name, at, p->lanes)))
            return false;
    }
    return true;
}

/* A copy is computed where its knob says and read by the sums alone. Worthwhile where the elements of a tile
 * lie far apart: the copy has them side by side, and is read many times. */
static bool copy_operands(tiling *self)
{
    for (int i = 0; i < self->h->n_operands; i++) {
        const char *at = self->c->copy[i] == COPIED_OUTER ? self->outer : self->inner;

        if (self->c->copy[i] == NOT_COPIED)
            continue;
        const char *copy = sched_cache_read(self->s, self->h->operand[i], "global", &self->g->name, 1);
        if (!copy || !sched_compute_at(self->s, copy, at) ||
            !space_vectorise_inside(self->s, copy, at, self->g->lanes))
            return false;
    }
    return true;
}

/* The whole schedule of a tiled stage. The sums are moved into the tiles before the outer loops are fused, so
 * that conditions stay simple. The parallel loop is annotated last, as a parallel loop takes part in no
 * fusion. */
bool space_apply_tiled(sched *schedule, const space_stage *stage, const space_tiled_choice *choice)
{
    tiling t = {.s = schedule,
                .g = stage,
                .h = stage->tiled,
                .c = choice,
                .buffer = stage->block->writes[0].buffer->name};

    return split_output(&t) && order_output(&t) && compute_sums(&t) && place_producers(&t) &&
           copy_operands(&t) && finish_output(&t) &&
           (!space_pays_in_parallel(stage) || space_extent(schedule, t.outer) == 1 ||
            (space_run_in_parallel(schedule, t.outer) && space_alternate(schedule, t.h, t.outer)));
}
