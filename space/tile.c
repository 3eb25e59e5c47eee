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
static double problem_time(const target *machine, int64_t rows, int64_t vectors, space_tile tile)
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

/* Tries every tile that fits the registers and takes the one with the least time for the whole problem. rows
 * 0: their number is unknown, and 120, which many heights divide, stands for it. Widths that do not divide
 * the vectors are not tried: their last column of tiles would be narrower. */
space_tile space_tile_choose(const target *machine, int64_t rows, int64_t vectors)
{
    int most = space_most_sums(machine);
    space_tile best = {1, 1};
    double best_time = 0;

    if (!machine)
        return best;
    if (rows <= 0)
        rows = 120;
    for (int v = 1; v <= 8 && v <= vectors; v++) {
        if (vectors % v)
            continue;
        for (int r = 1; r * v <= most && r <= rows; r++) {
            double time = problem_time(machine, rows, vectors, (space_tile){r, v});

            if (best_time == 0 || time < best_time) {
                best_time = time;
                best = (space_tile){r, v};
            }
        }
    }
    /* As many tiles, of more equal heights. */
    int64_t tiles = (rows + best.rows - 1) / best.rows;
    best.rows = (int)((rows + tiles - 1) / tiles);
    return best;
}
