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
    int lanes_on;
    int place[SPACE_MAX_OPERANDS], copy[SPACE_MAX_OPERANDS];
};

/* ---- declaring ---- */

static int64_t lanes_for(const space_stage *g, int64_t extent)
{
    return extent && extent < g->lanes ? extent : g->lanes;
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
static const int64_t *split_column(tec_knobs *k, const space_stage *g, const space_loop *l)
{
    const space_tiled *h = g->tiled;
    bool single = h->along_reduction && g->lanes > 1;
    /* all lies in the first panel: tiles may be of any size */
    int64_t panel = l->extent && l->extent <= h->panel ? 0 : h->panel;
    int64_t lanes = lanes_for(g, panel ? panel : l->extent);
    lane_rule rule = {lanes, panel ? lanes : even_lanes(lanes, l->extent), panel, single};
    int64_t start[] = {1, l->extent && l->extent <= lanes ? 1 : h->tile.vectors, rule.even},
            most[] = {0, MOST_VECTORS, g->lanes};

    if (h->on_reduction)
        start[1] = h->tile.vectors, start[2] = 1;

    return space_pick_split(k, g, "tile", l->iter, l->extent,
                            &(tec_split_domain){.parts = 4,
                                                .policy = TEC_SPLIT_VERBOSE,
                                                .most = most,
                                                .start = start,
                                                .keep = keep_lanes,
                                                .user = &rule});
}

/* Tasks that the axes but the last one give where they start. An extent that is not constant may be large. */
static int64_t count_tasks(const space_tiled *h)
{
    int64_t tasks = 1;

    for (int i = 0; i < h->n_axes - 1; i++) {
        const space_axis *a = &h->axis[i];
        int64_t n = a->loop->extent, size = a->column             ? h->tile.vectors * lanes_for(h->sums, n)
                                            : a->wide             ? h->tile.vectors
                                            : a->row && h->seldom ? n
                                                                  : 1;

        tasks *= n ? (n + size - 1) / size : SPACE_TASKS;
    }
    return tasks;
}

/* The outermost part of a last row of unknown length is a loop of its own, inside of the parallel one: the
 * rest at its end is then cut off, where of fused loops each tile would ask for it. Where it has all the
 * tasks it runs in parallel itself. */
static bool stays_apart(const space_tiled *h, int i)
{
    return i == h->n_axes - 1 && h->axis[i].row && h->axis[i].loop->extent == 0 && count_tasks(h) > 1;
}

/* The tiles of the column leave no rest. */
static bool divides_column(const space_tiled *h)
{
    for (int i = 0; i < h->n_axes; i++) {
        int64_t n = h->axis[i].loop->extent, lanes = lanes_for(h->sums, n);

        if (h->axis[i].column && n > lanes && n % (lanes * h->tile.vectors))
            return false;
    }
    return true;
}

/* The inner part of the last row: all its tiles, or so many that there are tasks enough. Pieces are equal,
 * and the column has no rest: otherwise the fused loop puts conditions into all tiles. An example: 120 rows
 * in tiles of 6 are 20 tiles. If more tasks are wanted, 4 pieces of 5 tiles each are made. */
static int64_t start_rows(const space_tiled *h, int64_t n)
{
    int64_t tiles = (n + h->tile.rows - 1) / h->tile.rows;
    int64_t inner = tiles / space_more_tasks(h->sums, count_tasks(h));

    if (n % h->tile.rows || !divides_column(h))
        return tiles;
    while (inner > 1 && tiles % inner)
        inner--;
    return inner > 1 ? inner : 1;
}

/* [_, rows] for an axis across the vectors. Edges of padding (`seldom`) are cut off the outer loop, so that
 * the interior needs no conditions: there the start leaves the loop over row tiles as long as it can be. */
static const int64_t *split_axis(tec_knobs *k, const space_stage *g, const space_axis *a, bool last)
{
    const space_tiled *h = g->tiled;
    int64_t rows = last      ? h->tile.rows
                   : a->wide ? h->tile.vectors
                             : 1,
            n = a->loop->extent, most[] = {0, MOST_ROWS};
    int64_t start[] = {1, rows};

    if (a->column)
        return split_column(k, g, a->loop);
    if (n && (last || (a->row && h->seldom)))
        start[0] = last && !h->seldom ? start_rows(h, n) : (n + rows - 1) / rows;
    return space_pick_split(
        k, g, "tile", a->loop->iter, n,
        &(tec_split_domain){
            .parts = a->row ? 3 : 2, .policy = TEC_SPLIT_VERBOSE, .most = most, .start = start});
}

enum { USUAL = 4 }; /* steps of a reduction that are written out, where registers allow */

/* How many steps the schedule begins with. LLVM loads the operands of all steps that are written out early,
 * so that the registers which sums leave free must hold about half of these operands; what they cannot hold
 * lies on the stack. For 8 x 2 sums and 32 registers: 16 are free, a step has 10 operands, two steps are
 * 20. */
static int64_t usual_steps(const space_tiled *h)
{
    int operands = h->tile.rows + h->tile.vectors, free = h->registers - h->tile.rows * h->tile.vectors;
    int64_t steps = USUAL;

    while (h->registers && steps > 1 && steps * operands > 2 * free)
        steps /= 2;
    return steps;
}

/* How many steps of the innermost reduction loop are written out. The start divides the extent, so that no
 * loop over a rest is needed. */
static const int64_t *split_reduction(tec_knobs *k, const space_stage *g)
{
    enum { MOST = 16 };
    const space_tiled *h = g->tiled;
    const space_loop *last = h->n_reduce ? h->reduce[h->n_reduce - 1] : NULL;
    int64_t start = usual_steps(h), most = MOST;

    if (!last)
        return NULL;
    if (h->seldom && last->extent < USUAL)
        start = last->extent;
    while (start > 1 && (!last->extent || last->extent % start))
        start /= 2;
    return space_pick_split(k, g, "unroll", last->iter, last->extent,
                            &(tec_split_domain){.parts = 2, .most = &most, .start = &start});
}

/* The reduction loop that is blocked: the longest, or the first of unknown extent. */
static const space_loop *longest(const space_tiled *h)
{
    const space_loop *best = NULL;

    for (int i = 0; i < h->n_reduce; i++)
        if (!best || (best->extent && (!h->reduce[i]->extent || h->reduce[i]->extent > best->extent)))
            best = h->reduce[i];
    return best;
}

/* What accumulates in a tile must be proven to be the tile's own, which takes known extents. */
static bool has_known_axes(const space_tiled *h)
{
    for (int i = 0; i < h->n_axes; i++)
        if (h->axis[i].loop->extent == 0)
            return false;
    return true;
}

/* The lengths of a reduction block that divide the reduction; 0, no block, is the first. */
static int64_t pick_reduce_block(tec_knobs *k, const space_stage *g)
{
    static const int64_t all[] = {0, 4, 8, 16, 32, 64, 128, 256, 512};
    const space_loop *l = has_known_axes(g->tiled) ? longest(g->tiled) : NULL;
    int64_t value[BASE_COUNT(all)];
    int n = 0;

    for (int i = 0; l && i < BASE_COUNT(all); i++)
        if (all[i] == 0 || (l->extent ? all[i] < l->extent && l->extent % all[i] == 0 : all[i] >= 64))
            value[n++] = all[i];
    return space_pick(k, g, "reduce_block", value, n, 0);
}

static int64_t tile_of(const space_tiled_choice *c, const space_tiled *h, int i)
{
    return h->axis[i].row ? c->tile[i][2] : h->axis[i].column ? c->tile[i][2] * c->tile[i][3] : 1;
}

/* Vectors of sums that a register tile has. */
static int64_t count_sums(const space_tiled_choice *c, const space_tiled *h)
{
    int64_t n = 1;

    for (int i = 0; i < h->n_axes; i++)
        n *= h->axis[i].column && c->lanes_on == LANES_ON_COLUMN ? c->tile[i][2] : tile_of(c, h, i);
    return n;
}

/* Updates that stand in the innermost loop. What counts is code: rows * vectors * steps * taps updates in the
 * innermost loop. */
static int64_t count_copies(const space_tiled_choice *c, const space_tiled *h)
{
    int64_t n = count_sums(c, h) * (c->unroll ? c->unroll[1] : 1);

    for (int i = 0, taken = 0; i < h->n_reduce - 1 && taken < c->taps; i++)
        if (h->reduce[h->n_reduce - 2 - i]->extent) {
            n *= h->reduce[h->n_reduce - 2 - i]->extent;
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
static int64_t count_versions(const space_tiled_choice *c, const space_tiled *h)
{
    bool conditional = false;
    int64_t n = 1;

    for (int i = 0; i < h->n_producers; i++)
        conditional |= c->place[i] == AT_READER && h->producer[i]->conditional;
    for (int i = 0; i < h->n_axes; i++)
        if ((h->axis[i].row || h->axis[i].column) &&
            !(h->axis[i].loop->extent && h->axis[i].loop->extent <= tile_of(c, h, i)))
            n *= 1 + (h->axis[i].loop->extent % tile_of(c, h, i) != 0) + conditional;
    return n;
}

/* What the parts of an axis other than the first come to, with the blocks of a blocked reduction. */
static int64_t span_of(const space_tiled_choice *c, const space_tiled *h, int i)
{
    int64_t blocks = !c->reduce_block                       ? 1
                     : h->axis[i].column                    ? c->column_blocks
                     : i == h->n_axes - 1 && h->axis[i].row ? c->row_blocks
                                                            : 1;

    return c->tile[i][1] * tile_of(c, h, i) * blocks;
}

/* What no schedule can satisfy or the compiler would take too long for: more sums than registers, too many
 * copies of the update, blocks that do not divide, vectors along two loops at once. */
static void require_tiles(tec_knobs *k, const space_shape *shape, const space_stage *g,
                          const space_tiled_choice *c)
{
    const space_tiled *h = g->tiled;
    int64_t sums = count_sums(c, h), updates = count_copies(c, h), versions = count_versions(c, h);

    tec_knob_require(k, sums <= shape->registers - 2, "%lld vectors of sums do not fit in %d registers",
                     (long long)sums, shape->registers);
    tec_knob_require(
        k, updates * versions <= MOST_COPIES,
        "%lld updates are written out in %lld versions of the innermost loop: %d in all are too many",
        (long long)updates, (long long)versions, MOST_COPIES);
    for (int i = 0; i < h->n_axes && c->reduce_block; i++)
        tec_knob_require(k, h->axis[i].loop->extent % span_of(c, h, i) == 0,
                         "a blocked reduction needs tiles that divide '%s'", h->axis[i].loop->name);
    for (int i = 0; i < h->n_axes; i++)
        if (h->axis[i].column && h->along_reduction && g->lanes > 1)
            tec_knob_require(k, (c->tile[i][3] == 1) == (c->lanes_on == LANES_ON_REDUCTION),
                             "lanes stand on the column or on the reduction, not on both");
}

/* How many register tiles the block of a blocked reduction has in each direction. */
static void pick_blocks(tec_knobs *k, const space_stage *g, space_tiled_choice *c)
{
    static const int64_t blocks[] = {1, 2, 4, 8};
    const space_tiled *h = g->tiled;

    c->reduce_block = pick_reduce_block(k, g);
    c->row_blocks = c->column_blocks = 1;
    if (!has_known_axes(h) || !longest(h))
        return;
    c->row_blocks = space_pick(k, g, "row_blocks", blocks, BASE_COUNT(blocks), 1);
    c->column_blocks = space_pick(k, g, "column_blocks", blocks, 3, 1);
    space_leave_idle(k, g, "row_blocks", c->reduce_block == 0 || !h->n_axes || !h->axis[h->n_axes - 1].row);
    space_leave_idle(k, g, "column_blocks", c->reduce_block == 0);
}

/* Orders of the outermost parts, of the inner parts, and of the reduction loops: three separate knobs, since
 * they nest in that order whatever their values. */
static void pick_orders(tec_knobs *k, const space_stage *g, space_tiled_choice *c)
{
    const space_tiled *h = g->tiled;
    const char **axis = base_array(k->cx, const char *, h->n_axes),
               **reduce = base_array(k->cx, const char *, h->n_reduce);

    for (int i = 0; i < h->n_axes; i++)
        axis[i] = h->axis[i].loop->name;
    for (int i = 0; i < h->n_reduce; i++)
        reduce[i] = h->reduce[i]->name;
    c->outer = space_pick_order(k, g, "outer_order", axis, h->n_axes);
    c->inner = space_pick_order(k, g, "inner_order", axis, h->n_axes);
    c->reduce = space_pick_order(k, g, "reduce_order", reduce, h->n_reduce);
}

/* Whether the last reduction loop is written out as a whole. */
static bool is_written_out(const space_stage *g, const space_tiled_choice *c)
{
    const space_loop *last = g->tiled->reduce[g->tiled->n_reduce - 1];
    int64_t steps = c->lanes_on == LANES_ON_REDUCTION ? g->lanes : c->unroll[1];
    int64_t n = last == longest(g->tiled) && c->reduce_block ? c->reduce_block : last->extent;

    return steps > 1 && n > 0 && n <= steps;
}

/* Reduction loops stand around those that are written out, and the last one's steps are innermost: their
 * order among each other counts. Within a group the order is part of the schedule; between groups it is fixed
 * by what the loops become. */
static void group_reduction(tec_knobs *k, const space_stage *g, const space_tiled_choice *c)
{
    enum { LOOPS, TAPS, STEPS };
    int group[SPACE_MAX_AXES], last = g->tiled->n_reduce - 1;

    for (int i = 0; i < last; i++)
        group[i] = i < last - c->taps ? LOOPS : TAPS;
    if (last >= 0)
        group[last] = is_written_out(g, c) ? STEPS : LOOPS;
    space_group_order(k, g, "reduce_order", group, last + 1);
}

/* A loop that runs once may stand anywhere; where all inner loops do, inner places are the outer one. An
 * example: with tile.y = [_, 1, 6] the inner loop of y runs once, and its place among the inner loops is
 * none. */
static void group_loops(tec_knobs *k, const space_stage *g, const space_tiled_choice *c)
{
    const space_tiled *h = g->tiled;
    int outer[SPACE_MAX_AXES], inner[SPACE_MAX_AXES];
    bool no_inner = true;

    for (int i = 0; i < h->n_axes; i++) {
        int64_t n = h->axis[i].loop->extent;

        outer[i] = stays_apart(h, i) || (n && n <= span_of(c, h, i)) ? i + 1 : 0;
        inner[i] = c->tile[i][1] == 1 ? i + 1 : 0;
        no_inner = no_inner && inner[i];
    }
    space_group_order(k, g, "outer_order", outer, h->n_axes);
    space_group_order(k, g, "inner_order", inner, h->n_axes);
    for (int i = 0; i < h->n_producers && no_inner; i++)
        space_leave_alias(k, g, base_format(k->cx, "place.%s", h->producer[i]->name), AT_INNER, AT_OUTER);
    for (int i = 0; i < h->n_operands && no_inner; i++)
        space_leave_alias(k, g, base_format(k->cx, "copy.%s", h->operand[i]), COPIED_INNER, COPIED_OUTER);
}

/* The short reduction loops (a 3 x 3 window) that may be written out besides the innermost steps. */
static int64_t pick_taps(tec_knobs *k, const space_stage *g)
{
    enum { SHORT = 8 };
    static const int64_t counts[] = {0, 1, 2};
    const space_tiled *h = g->tiled;
    int n = 0;

    while (n < 2 && n < h->n_reduce - 1 && h->reduce[h->n_reduce - 2 - n]->extent &&
           h->reduce[h->n_reduce - 2 - n]->extent <= SHORT)
        n++;
    return space_pick(k, g, "taps", counts, n + 1, 0);
}

/* Where each prologue is computed and whether an operand is copied, so that a tile's part of it lies
 * together. */
static void pick_places(tec_knobs *k, const space_stage *g, space_tiled_choice *c)
{
    const space_tiled *h = g->tiled;

    for (int i = 0; i < h->n_producers; i++)
        c->place[i] = space_pick_word(k, g, base_format(k->cx, "place.%s", h->producer[i]->name), place_words,
                                      4, h->in_passing[i] ? AT_READER : AT_ROOT);
    for (int i = 0; i < h->n_operands; i++)
        c->copy[i] =
            space_pick_word(k, g, base_format(k->cx, "copy.%s", h->operand[i]), copy_words, 3, NOT_COPIED);
}

/* All knobs of a tiled stage in a fixed order, since values are found by their place. A knob that has no
 * effect beside another's value is declared idle there, so that tuners do not measure the same schedule
 * twice. The requirements come last, when all values are known. */
const space_tiled_choice *space_declare_tiled(tec_knobs *k, const space_shape *shape, const space_stage *g)
{
    const space_tiled *h = g->tiled;
    space_tiled_choice *c = base_new(k->cx, space_tiled_choice);
    bool vectors = h->lane && g->lanes > 1;

    for (int i = 0; i < h->n_axes; i++)
        c->tile[i] = split_axis(k, g, &h->axis[i], i == h->n_axes - 1);
    c->lanes_on = !vectors && h->along_reduction && g->lanes > 1 ? LANES_ON_REDUCTION : LANES_ON_COLUMN;
    if (h->along_reduction && vectors)
        c->lanes_on = space_pick_word(k, g, "lanes", lane_words, 2,
                                      h->on_reduction ? LANES_ON_REDUCTION : LANES_ON_COLUMN);
    c->unroll = split_reduction(k, g);
    if (c->unroll)
        space_leave_idle(k, g, base_format(k->cx, "unroll.%s", h->reduce[h->n_reduce - 1]->iter),
                         c->lanes_on == LANES_ON_REDUCTION);
    c->taps = pick_taps(k, g);
    pick_orders(k, g, c);
    pick_blocks(k, g, c);
    pick_places(k, g, c);
    group_reduction(k, g, c);
    group_loops(k, g, c);
    require_tiles(k, shape, g, c);
    return c;
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

static int parts_of(const space_axis *a)
{
    return a->column ? 4 : a->row ? 3 : 2;
}

/* Cuts the loops of the output; with a blocked reduction the tile has several register tiles. The parts of an
 * axis are [outermost, inner, tile, lanes], as many as the axis has. */
static bool split_output(tiling *t)
{
    for (int i = 0; i < t->h->n_axes; i++) {
        const space_axis *a = &t->h->axis[i];
        int64_t f[4];

        memcpy(f, t->c->tile[i], (size_t)parts_of(a) * sizeof *f);
        if (t->c->reduce_block && (a->row || a->column))
            f[2] *= a->column ? t->c->column_blocks : i == t->h->n_axes - 1 ? t->c->row_blocks : 1;
        if (!sched_split(t->s, a->loop->name, TEC_GUARD, t->part[i], f, parts_of(a)))
            return false;
    }
    return true;
}

static int axis_of(const tiling *t, const char *loop)
{
    int i = 0;

    while (strcmp(t->h->axis[i].loop->name, loop) != 0)
        i++;
    return i;
}

/* The parts of a tile: rows, then what has vectors of its own, vectors, lanes. */
static int append_tile(const tiling *t, const char **order, int n)
{
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < t->h->n_axes; i++)
            if (t->h->axis[i].row && t->h->axis[i].wide == wide)
                order[n++] = t->part[i][2];
    for (int i = 0; i < t->h->n_axes; i++)
        if (t->h->axis[i].column) {
            order[n++] = t->part[i][2];
            order[n++] = t->part[i][3];
        }
    return n;
}

/* Loops of one step, then outermost parts, inner parts, tiles. The sums move before the loops around them are
 * fused, so that conditions on those stay simple. The place of the sums is the innermost of the inner loops:
 * a register tile of sums is computed in each. */
static bool order_output(tiling *t)
{
    const char *order[MAX_LOOPS];
    int n = 0, n_outer;

    for (int i = 0; i < t->h->out->n_loops; i++)
        if (t->h->out->loop[i].extent == 1)
            order[n++] = t->h->out->loop[i].name;
    for (int i = 0; i < t->h->n_axes; i++)
        if (!stays_apart(t->h, axis_of(t, t->c->outer[i])))
            order[n++] = t->part[axis_of(t, t->c->outer[i])][0];
    n_outer = n;
    for (int i = 0; i < t->h->n_axes; i++)
        if (stays_apart(t->h, i))
            order[n++] = t->part[i][0];
    for (int i = 0; i < t->h->n_axes; i++)
        order[n++] = t->part[axis_of(t, t->c->inner[i])][1];
    t->inner = order[n - 1];
    n = append_tile(t, order, n);
    if (!sched_reorder(t->s, order, n) || !sched_compute_at(t->s, t->g->name, t->inner))
        return false;
    t->outer = space_fuse(t->s, order, n_outer);
    return t->outer != NULL;
}

/* The sums' own loop of a variable; NULL: it has one value in a tile, from the loops around. */
static const char *own_loop(const tiling *t, const char *iter)
{
    const char *loop = space_loop_of(t->s, t->g->name, iter), **around;
    int n = sched_loops_of(t->s, t->h->out->name, &around);

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

/* A spatial loop of the sums that is longer than the register tile, in blocks of `size`. */
static bool cut_blocks(tiling *t, sums_loops *l, const char *loop, int64_t size)
{
    int64_t n = space_extent(t->s, loop);
    const char *part[2];

    if (!t->c->reduce_block || n == 0 || size < 1 || n <= size) {
        l->tile[l->n_tile++] = loop;
        return true;
    }
    if (!sched_split(t->s, loop, TEC_GUARD, part, (int64_t[]){TEC_INFER, size}, 2))
        return false;
    l->block[l->n_blocks++] = part[0];
    l->tile[l->n_tile++] = part[1];
    return true;
}

/* The lanes: of the column's loop, which may hold several vectors. A loop of one short vector stays whole,
 * and is the lanes itself. */
static bool cut_lanes(tiling *t, sums_loops *l, const char *loop, int64_t vectors, int64_t lanes)
{
    int64_t n = space_extent(t->s, loop);
    const char *part[2];

    if (n <= lanes || n % lanes) {
        l->lane = n <= 2 * lanes ? loop : NULL;
        if (!l->lane)
            l->tile[l->n_tile++] = loop;
        return true;
    }
    if (!sched_split(t->s, loop, TEC_GUARD, part, (int64_t[]){TEC_INFER, lanes}, 2))
        return false;
    l->lane = part[1];
    return cut_blocks(t, l, part[0], vectors);
}

static const int64_t *column_tile(const tiling *t)
{
    for (int i = 0; i < t->h->n_axes; i++)
        if (t->h->axis[i].column)
            return t->c->tile[i];
    return NULL;
}

static int64_t row_tile(const tiling *t)
{
    const space_axis *a = &t->h->axis[t->h->n_axes - 1];

    return a->row ? t->c->tile[t->h->n_axes - 1][2] : 0;
}

static bool follows_column(const tiling *t, const char *iter)
{
    for (int i = 0; i < t->h->n_follows; i++)
        if (strcmp(t->h->follows[i], iter) == 0)
            return true;
    return false;
}

/* Its values have vectors of their own, and come behind the rows. */
static bool has_vectors(const tiling *t, const char *iter)
{
    for (int i = 0; i < t->h->n_axes; i++)
        if (t->h->axis[i].wide && base_same(t->h->axis[i].iter, iter))
            return true;
    return follows_column(t, iter);
}

/* Spatial loops other than that of the lanes: those of the last row are cut by its tile, those that follow
 * the column by its vectors. In two passes: first the loops that do not follow the column, then those that
 * do, so that rows stand outside of vectors. */
static bool cut_spatial(tiling *t, sums_loops *l)
{
    const int64_t *column = column_tile(t);
    bool on_column = t->c->lanes_on == LANES_ON_COLUMN;
    const char *lane = t->h->lane ? own_loop(t, t->h->lane) : NULL;
    const char *own_row = t->h->row ? own_loop(t, t->h->row) : NULL;

    own_row = own_row ? own_row : "";
    for (int i = 0; i < 2 * t->g->n_loops; i++) {
        const space_loop *loop = &t->g->loop[i % t->g->n_loops];
        const char *own = loop->kind == IR_SPATIAL && has_vectors(t, loop->iter) == (i >= t->g->n_loops)
                              ? own_loop(t, loop->iter)
                              : NULL;

        /* a tile of two groups: one after the other */
        if (own && t->h->uneven && base_same(t->h->group, loop->iter)) {
            l->reduce[l->n_reduce++] = own;
            continue;
        }
        if (!own || (lane && on_column && strcmp(own, lane) == 0))
            continue;
        int64_t size = strcmp(own_row, own) == 0       ? row_tile(t)
                       : follows_column(t, loop->iter) ? column[2]
                                                       : space_extent(t->s, own);
        if (!cut_blocks(t, l, own, size))
            return false;
    }
    return !lane || !on_column || cut_lanes(t, l, lane, column[2], column[3]);
}

static int reduce_place(const space_tiled *h, const char *loop)
{
    int i = 0;

    while (strcmp(h->reduce[i]->name, loop) != 0)
        i++;
    return i;
}

/* Cuts the longest reduction loop; the outer part k0 stands outside of the tile. */
static bool cut_reduce_block(tiling *t, sums_loops *l)
{
    const char *part[2];

    if (!t->c->reduce_block)
        return true;
    if (!sched_split(t->s, own_loop(t, longest(t->h)->iter), TEC_GUARD, part,
                     (int64_t[]){TEC_INFER, t->c->reduce_block}, 2))
        return false;
    l->k0 = part[0];
    return true;
}

/* The last reduction loop, and its innermost steps: those that are written out, or the lanes. A short loop is
 * written out whole. */
static bool cut_steps(tiling *t, sums_loops *l, const char *own)
{
    int64_t by = t->c->lanes_on == LANES_ON_REDUCTION ? t->g->lanes : t->c->unroll[1],
            n = space_extent(t->s, own);
    const char *part[2] = {own, NULL};

    if (by > 1 && n > 0 && n <= by) {
        l->steps = own;
        return true;
    }
    if (by > 1 && !sched_split(t->s, own, TEC_GUARD, part, (int64_t[]){TEC_INFER, by}, 2))
        return false;
    l->reduce[l->n_reduce++] = part[0];
    l->steps = part[1];
    return true;
}

/* Sorts the reduction loops into those around the tile, the short ones inside that are written out (`taps`),
 * and the innermost one, cut into steps. */
static bool cut_reduction(tiling *t, sums_loops *l)
{
    if (!cut_reduce_block(t, l))
        return false;
    for (int i = 0; i < t->h->n_reduce; i++) {
        int at = reduce_place(t->h, t->c->reduce[i]);
        const char *own = own_loop(t, t->h->reduce[at]->iter);

        if (at < t->h->n_reduce - 1 - t->c->taps)
            l->reduce[l->n_reduce++] = own;
        else if (at < t->h->n_reduce - 1)
            l->taps[l->n_taps++] = own;
        else if (!cut_steps(t, l, own))
            return false;
    }
    return true;
}

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
static bool order_sums(tiling *t, const sums_loops *l)
{
    const char *order[MAX_LOOPS];
    bool on_reduction = t->c->lanes_on == LANES_ON_REDUCTION;
    int n = append(order, 0, &l->k0, 1);

    n = append(order, n, l->block, l->n_blocks);
    n = append(order, n, l->reduce, l->n_reduce);
    n = append(order, n, l->taps, l->n_taps);
    if (!on_reduction)
        n = append(order, n, &l->steps, 1);
    n = append(order, n, l->tile, l->n_tile);
    n = append(order, n, on_reduction ? &l->steps : &l->lane, 1);
    return n < 2 || sched_reorder(t->s, order, n);
}

/* The loops of the register tile are written out, so that each sum has a register of its own. */
static bool annotate_sums(tiling *t, const sums_loops *l)
{
    bool on_reduction = t->c->lanes_on == LANES_ON_REDUCTION;

    for (int i = 0; i < l->n_taps; i++)
        if (!space_unroll(t->s, l->taps[i]))
            return false;
    for (int i = 0; i < l->n_tile; i++)
        if (!space_unroll(t->s, l->tile[i]))
            return false;
    if (on_reduction)
        return space_vectorise(t->s, l->steps);
    return space_unroll(t->s, l->steps) && space_vectorise(t->s, l->lane);
}

/* Rows and vectors of the blocks that fill the registers and empty them: the same vectors as those of the
 * sums, or they would be no registers. */
static bool annotate_copies(tiling *t, const sums_loops *l, const char *copy, const char *around)
{
    const char *spatial[MAX_LOOPS], *reduce[MAX_LOOPS], *part[2];
    int n_reduce, n = space_own_loops(t->s, copy, around, spatial, reduce, &n_reduce);
    int64_t lanes = l->lane ? space_extent(t->s, l->lane) : 0,
            last = n ? space_extent(t->s, spatial[n - 1]) : 0;

    if (lanes > 0 && last > lanes && last % lanes == 0) {
        if (!sched_split(t->s, spatial[n - 1], TEC_GUARD, part, (int64_t[]){TEC_INFER, lanes}, 2))
            return false;
        spatial[n - 1] = part[0];
        spatial[n++] = part[1];
    }
    for (int i = 0; i < n - 1; i++)
        if (!space_unroll(t->s, spatial[i]))
            return false;
    return n == 0 || space_vectorise(t->s, spatial[n - 1]);
}

/* With a blocked reduction the registers hold a part of the tile: it is taken up before the steps of a block
 * and put back behind them. Without blocks the sums of a tile are all in registers, from their init to the
 * output. */
static bool keep_in_registers(tiling *t, const sums_loops *l)
{
    const char *around = l->n_blocks ? l->block[l->n_blocks - 1] : l->k0, **writer;

    if (!t->c->reduce_block)
        return sched_set_scope(t->s, t->buffer, "local");
    const char *copy = sched_cache_write_at(t->s, t->g->name, "local", around);
    if (!copy)
        return false;
    int n = sched_producers_of(t->s, copy, &writer);
    for (int i = 0; i < n; i++)
        if (sched_block(t->s, writer[i])->block.block->role == IR_ROLE_CACHE &&
            !annotate_copies(t, l, writer[i], around))
            return false;
    return annotate_copies(t, l, copy, around);
}

/* Inside one tile: cuts the spatial loops, then the reduction, and puts the sums into registers. */
static bool compute_sums(tiling *t)
{
    sums_loops l = {0};

    return cut_spatial(t, &l) && cut_reduction(t, &l) && order_sums(t, &l) && keep_in_registers(t, &l) &&
           annotate_sums(t, &l);
}

/* The output takes the same vectors as the sums. */
static bool finish_output(tiling *t)
{
    for (int i = 0; i < t->h->n_axes; i++) {
        const space_axis *a = &t->h->axis[i];

        if ((a->row || a->column) && !t->c->reduce_block && !space_unroll(t->s, t->part[i][2]))
            return false;
        if (a->column && !space_vectorise(t->s, t->part[i][3]))
            return false;
    }
    return true;
}

/* Last first: a producer may feed another one. */
static bool place_producers(tiling *t)
{
    for (int i = t->h->n_producers - 1; i >= 0; i--) {
        const space_stage *p = t->h->producer[i];
        const char *at = t->c->place[i] == AT_OUTER ? t->outer : t->inner;

        if (t->c->place[i] == AT_READER) {
            if (!sched_compute_inline(t->s, p->name))
                return false;
        } else if (t->c->place[i] != AT_ROOT && (!sched_compute_at(t->s, p->name, at) ||
                                                 !space_vectorise_inside(t->s, p->name, at, p->lanes)))
            return false;
    }
    return true;
}

/* A copy is computed where its knob says and read by the sums alone. */
static bool copy_operands(tiling *t)
{
    for (int i = 0; i < t->h->n_operands; i++) {
        const char *at = t->c->copy[i] == COPIED_OUTER ? t->outer : t->inner;

        if (t->c->copy[i] == NOT_COPIED)
            continue;
        const char *copy = sched_cache_read(t->s, t->h->operand[i], "global", &t->g->name, 1);
        if (!copy || !sched_compute_at(t->s, copy, at) ||
            !space_vectorise_inside(t->s, copy, at, t->g->lanes))
            return false;
    }
    return true;
}

/* The whole schedule of a tiled stage. The sums are moved into the tiles before the outer loops are fused, so
 * that conditions stay simple. The parallel loop is annotated last, as a parallel loop takes part in no
 * fusion. */
bool space_apply_tiled(sched *s, const space_stage *g, const space_tiled_choice *c)
{
    tiling t = {.s = s, .g = g, .h = g->tiled, .c = c, .buffer = g->block->writes[0].buffer->name};

    return split_output(&t) && order_output(&t) && compute_sums(&t) && place_producers(&t) &&
           copy_operands(&t) && finish_output(&t) &&
           (!space_pays_in_parallel(g) || space_extent(s, t.outer) == 1 ||
            sched_annotate(s, t.outer, IR_PARALLEL));
}
