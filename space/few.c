/* space/few.c -- more default schedules for one row and a few, where the number of rows is a symbol.
 *
 * A register tile of 12 rows leaves a tile of one row for 13 rows. The sums of so short a tile wait for
 * themselves: a step takes as long for one row as for four. Tiles of 9 and 4 rows take 13 units of time in
 * place of 12 + 4. A schedule has one height for all numbers of rows, so that a kernel gets a second schedule
 * for those small numbers that lose much with the first (space_ranges in space/task.h):
 *
 *     rows       height
 *     to 12      12
 *     13 to 15    9      9 + 4, 9 + 5, 9 + 6
 *     to 24      12
 *     25 to 27    9      9 + 9 + 7, 9 + 9 + 8, 9 + 9 + 9
 *     above      12      but for 49, 50 and 61
 *
 * With more rows the short tile is one beside many.
 *
 * One row alone is computed by the definition for one row, as a step of a decoder or a batch of one asks for
 * it. A tile of one row has as many sums as it has vectors, 2, and they wait for themselves; the definition
 * for one row makes tiles along its columns, of 8 vectors or more.
 */
#include <math.h>

#include "ir/build.h"
#include "space/master.h"
#include "space/task.h"

enum { MOST_ROWS = 64 };
/* A second schedule costs code, so the first one must lose so much of the time of some call. */
#define WORTH 0.08
/* Numbers of rows that the second one serves better by less stay with the first. */
#define HARDLY 0.03

/* The tiled stage whose number of rows is a symbol of the tree, and the number of that symbol; NULL: there is
 * none. Lanes along the reduction have tiles of another kind. */
static const space_tiled *tiled_by_symbol(const space_shape *shape, int *symbol)
{
    const ir_program *tree = sched_tree(shape->base);

    for (int i = 0; i < shape->n; i++) {
        const space_tiled *tiled = shape->stage[i].tiled;

        for (int a = 0; tiled && !tiled->on_reduction && a < tiled->n_axes; a++) {
            if (!tiled->axis[a].row || tiled->axis[a].wide || tiled->axis[a].loop->extent)
                continue;
            const ir_expr *extent = sched_loop(shape->base, tiled->axis[a].loop->name)->loop.extent;

            for (*symbol = 0; *symbol < tree->n_symbols; ++*symbol)
                if (tree->symbols[*symbol] == extent)
                    return tiled;
        }
    }
    return NULL;
}

static double time_of(const target *machine, space_tile tile, int rows, int height)
{
    return space_tile_time(machine, rows, tile.vectors, (space_tile){height, tile.vectors});
}

/* What so many rows lose with the better one of two heights: 0.22 for 13 rows in tiles of 12, which take 1.22
 * times as long as with the best height. */
static double loss_of(const target *machine, space_tile tile, int rows, int other)
{
    double least = INFINITY;

    for (int height = 1; height <= tile.rows; height++)
        least = fmin(least, time_of(machine, tile, rows, height));
    return fmin(time_of(machine, tile, rows, tile.rows), time_of(machine, tile, rows, other)) / least - 1;
}

/* The sum over all numbers of rows. *most: the largest loss. */
static double losses_of(const target *machine, space_tile tile, int other, double *most)
{
    double sum = 0;

    *most = 0;
    for (int rows = 1; rows <= MOST_ROWS; rows++) {
        double loss = loss_of(machine, tile, rows, other);

        *most = fmax(*most, loss);
        sum += loss;
    }
    return sum;
}

/* The height that loses least beside the tile's own, of those above half of it: two tiles of it are more rows
 * than one tile of the own height has. 0: the own height is good enough. */
static int second_height(const target *machine, space_tile tile)
{
    double most, least = losses_of(machine, tile, tile.rows, &most);
    int best = 0;

    if (most <= WORTH)
        return 0;
    for (int height = tile.rows - 1; 2 * height > tile.rows; height--) {
        double sum = losses_of(machine, tile, height, &most);

        if (sum < least) {
            least = sum;
            best = height;
        }
    }
    return best;
}

/* The trace of the default schedule for two tiles of the height. NULL: there is none, or a step of it needs
 * to know that there are so many rows. */
static const char *trace_of(tec_context *cx, const ir_program *tree, const target *machine, int symbol,
                            int height)
{
    ir_program *few = ir_program_copy(cx, tree);
    const ir_expr **fact = base_array(cx, const ir_expr *, tree->n_facts + 2);

    for (int i = 0; i < tree->n_facts; i++)
        fact[i] = tree->facts[i];
    fact[tree->n_facts] = ir_ge(cx, tree->symbols[symbol], ir_int(cx, 2 * height - 1));
    fact[tree->n_facts + 1] = ir_le(cx, tree->symbols[symbol], ir_int(cx, 2 * height));
    few->facts = fact;
    few->n_facts += 2;
    const sched *s = space_default(cx, few, machine);
    if (!s || sched_failed(s))
        return NULL;
    const char *trace = sched_trace_text(cx, s);
    sched *whole = sched_new(cx, tree, machine);
    return sched_replay(whole, "default", trace) ? trace : NULL;
}

/* Units of time for each vector of sums, in tiles of this size. */
static double time_of_vector(const target *machine, space_tile tile)
{
    return space_tile_time(machine, tile.rows, tile.vectors, tile) / (tile.rows * tile.vectors);
}

/* The trace of the default schedule of the definition in which the symbol is 1, where its tiles are faster
 * than one row of `tiled` is. In tiles of 12 rows by 2 vectors, one row takes 2.1 units of time for each
 * vector of sums; tiles of 12 panels by 2 vectors take 0.5. NULL: its tiles are not faster, or the definition
 * does not allow one row. A failure would stay in the context, so all this is tried in a context of its
 * own. */
static const char *trace_of_one(tec_context *cx, const te_def *def, const target *machine,
                                const ir_expr *symbol, const space_tiled *tiled)
{
    tec_context *once = base_child(cx);
    const ir_expr *one = ir_int(once, 1);
    const te_def *row = te_specialise(once, def, &symbol, &one, 1);
    const ir_program *tree = row ? te_tree(once, row) : NULL;
    const space_shape *shape = tree ? space_analyse(once, tree, machine) : NULL;
    const space_stage *sums = shape ? space_stage_named(shape, tiled->sums->name) : NULL;
    bool faster = sums && sums->tiled &&
                  (1 + WORTH) * time_of_vector(machine, sums->tiled->tile) <
                      time_of_vector(machine, (space_tile){1, tiled->tile.vectors});
    const sched *s = faster ? space_default(once, tree, machine) : NULL;
    const char *trace = s && !sched_failed(s) ? base_strdup(cx, sched_trace_text(once, s)) : NULL;
    tec_context_free(once);
    return trace;
}

/* Adds the number of rows to the last range where both have one schedule. */
static void add_rows(space_ranges *ranges, space_range *range, int64_t rows, const char *trace)
{
    ranges->n += ranges->n == 0 || range[ranges->n - 1].fixed || range[ranges->n - 1].trace != trace;
    range[ranges->n - 1] = (space_range){.to = rows, .trace = trace};
}

/* Where one row has a schedule of its own, the first two ranges are no rows and one row: a fixed range must
 * follow on another. Then each run of numbers that one schedule serves is a range. The last range goes on for
 * ever. */
const space_ranges *space_default_ranges(tec_context *cx, const te_def *def, const sched *start)
{
    const ir_program *tree = sched_plain(start);
    const target *machine = sched_target(start);
    bool may = tree->n_symbols > 0 && machine && target_offers(machine, TARGET_HOST);
    const space_shape *shape = may ? space_analyse(cx, tree, machine) : NULL;
    int symbol = 0;
    const space_tiled *tiled = shape ? tiled_by_symbol(shape, &symbol) : NULL;
    int second = tiled ? second_height(machine, tiled->tile) : 0;
    const char *other = second ? trace_of(cx, tree, machine, symbol, second) : NULL,
               *one = tiled ? trace_of_one(cx, def, machine, tree->symbols[symbol], tiled) : NULL,
               *own = other || one ? sched_trace_text(cx, start) : NULL;

    if (!own)
        return NULL;
    space_range *range = base_array(cx, space_range, MOST_ROWS + 3);
    space_ranges *out = base_new(cx, space_ranges);
    *out = (space_ranges){.symbol = symbol, .at = range};
    if (one) {
        add_rows(out, range, 0, own);
        range[out->n++] = (space_range){.to = 1, .fixed = true, .trace = one};
    }
    for (int rows = one ? 2 : 1; other && rows <= MOST_ROWS; rows++) {
        bool better = time_of(machine, tiled->tile, rows, tiled->tile.rows) >
                      (1 + HARDLY) * time_of(machine, tiled->tile, rows, second);

        add_rows(out, range, rows, better ? other : own);
    }
    add_rows(out, range, INT64_MAX, own);
    return out;
}
