/* space/tile.c -- the size of a register tile, from counting multiply-adds and loads.
 *
 *     rows r, vectors v:   r*v sums in registers;  a step loads v vectors and r scalars for r*v multiply-adds
 *     16 registers:        6 x 2 = 12 sums, 2 + 1 registers for operands: loads hide behind multiply-adds
 *
 * A larger tile loads less for each multiply-add, but must leave registers for its operands, and should
 * divide the problem: what is left over is computed by smaller tiles at lower speed.
 *
 * An example, with 2 multiply-adds and 2 loads a cycle, rows unknown (120), 4 vectors:
 *
 *     6 x 2   a step: 12/2 = 6 cycles, loads (6 + 2)/2 = 4, with the extra 6.25;  20 tiles, 2 columns:  250
 *     12 x 1  a step: 6 cycles, loads (12 + 1)/2 = 6.5, with the extra 6.63;  10 tiles, 4 columns:  265
 */
#include "space/look.h"

/* Cycles for one step of the reduction: two multiply-adds and two loads a cycle, and sums that depend on
 * themselves. Each vector costs a little more, since it comes from further away than the row's element: among
 * equals, the tile that uses it for more rows wins. */
static double step_time(const target *machine, int rows, int vectors)
{
    double fma = (double)rows * vectors / (machine->fma_ports ? machine->fma_ports : 1);
    double load = (double)(rows + vectors) / (machine->load_ports ? machine->load_ports : 1), latency = 4,
           away = vectors / 8.0;

    return away + (fma > load ? (fma > latency ? fma : latency) : (load > latency ? load : latency));
}

/* Full tiles, and a shorter one for the rows that are left, for each column of tiles. In units of steps of
 * the reduction; its length is common to all tiles. */
double space_tile_time(const target *machine, int64_t rows, int64_t vectors, space_tile tile)
{
    int64_t full = rows / tile.rows, rest = rows % tile.rows;
    double one_column = (double)full * step_time(machine, tile.rows, tile.vectors) +
                        (rest ? step_time(machine, (int)rest, tile.vectors) : 0);

    return one_column * (double)((vectors + tile.vectors - 1) / tile.vectors);
}

int space_most_sums(const target *machine)
{
    return machine && machine->sum_registers ? machine->sum_registers : 12;
}

/* The tile with the least time; with `whole`, of those that leave no rows over. *least gets the time, 0 where
 * there is none. Widths that do not divide the vectors are not tried: their last column of tiles would be
 * narrower. */
static space_tile fastest(const target *machine, int64_t rows, int64_t vectors, bool whole, double *least)
{
    int most = space_most_sums(machine);
    space_tile best = {1, 1};

    *least = 0;
    for (int v = 1; v <= 8 && v <= vectors; v++)
        for (int r = 1; r * v <= most && r <= rows && vectors % v == 0; r++) {
            double time = space_tile_time(machine, rows, vectors, (space_tile){r, v});

            if ((whole && rows % r) || (*least > 0 && time >= *least))
                continue;
            *least = time;
            best = (space_tile){r, v};
        }
    return best;
}

/* Tries every tile that fits the registers and takes the one with the least time for the whole problem. rows
 * 0: their number is unknown, and 120, which many heights divide, stands for it. Of many tiles, those are
 * taken that leave no rows over where that takes hardly longer, since they can be dealt out to threads in
 * equal pieces: 4096 rows of one vector are 256 tiles of 16 rows, not 170 of 24 and one of 16. */
space_tile space_tile_choose(const target *machine, int64_t rows, int64_t vectors)
{
    enum { MANY = 32 };
    const double hardly = 1.03;
    double least, whole;

    if (!machine)
        return (space_tile){1, 1};
    if (rows <= 0)
        rows = 120;
    space_tile best = fastest(machine, rows, vectors, false, &least),
               even = fastest(machine, rows, vectors, true, &whole);
    if (rows % best.rows && rows / best.rows >= MANY && whole <= hardly * least)
        return even;
    /* As many tiles, of more equal heights. */
    int64_t tiles = (rows + best.rows - 1) / best.rows;
    best.rows = (int)((rows + tiles - 1) / tiles);
    return best;
}
