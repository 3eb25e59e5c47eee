/* autotune/level.c -- parts of the loops around a statement, and what they cost a machine by simple rules.
 * See statement.h.
 *
 * Only `tune_estimate` knows of latencies, and none knows of write buffers or prefetching. They need not: a
 * model learns what they are worth.
 */
#include <math.h>

#include "autotune/statement.h"

double tune_log(double x)
{
    return log2(1 + fmin(fmax(x, 0), 0x1p100));
}

double tune_ratio(double of, double to)
{
    return of > 0 && to > 0 ? fmin(fmax(log2(of) - log2(to), -40), 40) : 0;
}

/* ---- levels ---- */

static bool in_parallel(ir_how how)
{
    return how == IR_PARALLEL || (how >= IR_BLOCK_X && how <= IR_THREAD_Z);
}

/* Where the loops around a statement divide, as the number of loops outside: vector, unrolled tile, loops of
 * sums, the outermost reduction, the task of a thread. A level without loops of its own begins where the next
 * one does. */
void tune_levels(const tune_statement *statement, int at[TUNE_N_LEVELS])
{
    int p = statement->n_loops, reduced, task = 0;

    while (p > 0 && statement->loop[p - 1].how == IR_VECTORISED)
        p--;
    at[TUNE_VECTOR] = p;
    while (p > 0 &&
           (statement->loop[p - 1].how == IR_VECTORISED || statement->loop[p - 1].how == IR_UNROLLED))
        p--;
    at[TUNE_TILE] = p;
    while (p > 0 && statement->loop[p - 1].reduce && statement->loop[p - 1].how == IR_SERIAL)
        p--;
    at[TUNE_SUMS] = reduced = p;
    for (int i = p - 1; i >= 0; i--) {
        if (statement->loop[i].reduce)
            reduced = i;
        if (in_parallel(statement->loop[i].how) && !task)
            task = i + 1;
    }
    at[TUNE_REDUCED] = reduced;
    at[TUNE_TASK] = task < reduced ? task : reduced;
    at[TUNE_ALL] = 0;
}

double tune_extent_of(const tune_statement *statement, ir_how first, ir_how last)
{
    double n = 1;

    for (int i = 0; i < statement->n_loops; i++)
        n *=
            statement->loop[i].how >= first && statement->loop[i].how <= last ? statement->loop[i].extent : 1;
    return n;
}

double tune_imbalance(const tune_statement *statement, const target *machine)
{
    double n = tune_extent_of(statement, IR_PARALLEL, IR_PARALLEL), cores = fmax(1, machine->num_cores);

    return ceil(n / cores) * cores / n;
}

/* ---- caches ---- */

double tune_capacity(const target *machine, int cache)
{
    static const double usual[TUNE_N_CACHES] = {32 << 10, 512 << 10, 8 << 20};
    int64_t known[TUNE_N_CACHES] = {machine->l1_bytes, machine->l2_bytes, machine->l3_bytes};

    return known[cache] > 0 ? (double)known[cache] : usual[cache];
}

int tune_fits(const tune_statement *statement, const double *bytes, double capacity)
{
    int p = statement->n_loops;

    while (p > 0 && bytes[p - 1] <= capacity)
        p--;
    return p;
}

/* What the access shares with the iterations of loops further out, because it does not depend on them,
 * stays. */
double tune_traffic(const tune_statement *statement, const tune_access *access, double capacity)
{
    int p = tune_fits(statement, statement->touched, capacity);

    while (p > 0 && access->lines[p - 1] == access->lines[p])
        p--;
    return access->lines[p] * statement->steps[0] / statement->steps[p];
}

double tune_statement_traffic(const tune_statement *statement, const target *machine, int cache)
{
    double traffic = 0;

    for (int i = 0; i < statement->n_accesses; i++)
        traffic += tune_traffic(statement, &statement->access[i], tune_capacity(machine, cache));
    return traffic;
}

/* ---- work ---- */

double tune_operations(const tune_work *work)
{
    return work->add + work->mul + work->div + work->minmax + work->math + work->compare + work->select +
           work->integer + work->cast;
}

double tune_statement_work(const tune_statement *statement)
{
    double accesses = 0;

    for (int i = 0; i < statement->n_accesses; i++)
        accesses += statement->access[i].count;
    return (tune_operations(&statement->work) + accesses) * statement->steps[0];
}

double tune_lanes(const tune_statement *statement)
{
    return tune_extent_of(statement, IR_VECTORISED, IR_VECTORISED);
}

double tune_bytes(const tune_statement *statement)
{
    return statement->n_accesses ? statement->access[0].bytes : 4;
}

static double register_lanes(double bytes, const target *machine)
{
    return fmax(1, machine->vector_bits / 8.0 / bytes);
}

/* How many registers, and so instructions, one vector of the statement takes. */
static double registers_per_vector(const tune_statement *statement, const target *machine)
{
    return ceil(tune_lanes(statement) / register_lanes(tune_bytes(statement), machine));
}

double tune_cycles(const tune_statement *statement, const target *machine)
{
    enum { DIVISION = 8, FUNCTION = 20 };
    const tune_work *w = &statement->work;
    double fused = machine->has_fma ? fmin(w->add, w->mul) : 0;
    double each = w->add + w->mul - fused + w->minmax + w->compare + w->select + w->integer + w->cast +
                  DIVISION * w->div + FUNCTION * w->math;

    return each * registers_per_vector(statement, machine) * statement->steps[0] / tune_lanes(statement) /
           fmax(1, machine->fma_ports);
}

/* Neighbouring lanes take a register together; an element that all lanes use, or one that lies apart, takes
 * one each. */
double tune_registers(const tune_statement *statement, const tune_access *access, const target *machine)
{
    int at[TUNE_N_LEVELS];

    tune_levels(statement, at);
    bool side_by_side = at[TUNE_VECTOR] < statement->n_loops && access->stride[statement->n_loops - 1] == 1;
    double elements = access->elements[at[TUNE_TILE]], lanes = fmax(1, access->elements[at[TUNE_VECTOR]]);

    return side_by_side ? ceil(lanes / register_lanes(access->bytes, machine)) * elements / lanes : elements;
}

double tune_load_cycles(const tune_statement *statement, const target *machine)
{
    double loads = 0;
    int at[TUNE_N_LEVELS];

    tune_levels(statement, at);
    for (int i = 0; i < statement->n_accesses; i++)
        if (!statement->access[i].written || statement->access[i].buffer->scope != IR_LOCAL)
            loads += tune_registers(statement, &statement->access[i], machine);
    return loads * statement->steps[0] / statement->steps[at[TUNE_TILE]] / fmax(1, machine->load_ports);
}

/* ---- both ---- */

tune_tile tune_tile_of(const tune_statement *statement, const target *machine)
{
    tune_tile tile = {.least = INFINITY};

    for (int i = 0; i < statement->n_accesses; i++) {
        double n = tune_registers(statement, &statement->access[i], machine);

        *(statement->access[i].written ? &tile.results : &tile.operands) += n;
        tile.least = statement->access[i].written ? tile.least : fmin(tile.least, n);
    }
    tile.least = isinf(tile.least) ? 0 : tile.least;
    return tile;
}

/* What takes longest hides most of the rest. */
static double overlapped(double a, double b)
{
    return cbrt(a * a * a + b * b * b);
}

/* Cycles of one statement: the larger of arithmetic, loads and traffic to each cache, since they overlap,
 * times how unevenly threads share the work. Sums that depend on each other wait for the latency of an
 * addition; sums beyond the registers are spilt to memory. Rough by intent: a start for a model that has
 * learnt nothing yet. */
double tune_estimate(const tune_statement *statement, const target *machine)
{
    enum { LATENCY = 4, START = 10 }; /* cycles of a sum's step; of entering a loop of sums */
    /* bytes a cycle into L1, L2 and L3 of a usual machine */
    static const double bandwidth[TUNE_N_CACHES] = {32, 12, 4};
    tune_tile tile = tune_tile_of(statement, machine);
    int at[TUNE_N_LEVELS];

    tune_levels(statement, at);
    double tiles = statement->steps[0] / statement->steps[at[TUNE_TILE]],
           loads = tune_load_cycles(statement, machine);
    double operations = tune_operations(&statement->work), caches = 0;
    double cycles = operations > 0
                        ? tune_cycles(statement, machine) * (operations - statement->work.bounds) / operations
                        : 0;

    if (statement->update) {
        double starts = statement->steps[0] / statement->steps[at[TUNE_SUMS]];
        /* 0: not known */
        double spilt = machine->vector_registers
                           ? fmax(0, tile.results + tile.least + 1 - machine->vector_registers)
                           : 0;

        cycles *= fmax(1, LATENCY * fmax(2, machine->fma_ports) / fmax(1, tile.results));
        loads += (2 * spilt * tiles + 2 * tile.results * starts) / fmax(1, machine->load_ports);
        cycles += START * starts;
    }
    for (int c = 0; c < TUNE_N_CACHES; c++)
        caches = fmax(caches, tune_statement_traffic(statement, machine, c) / bandwidth[c]);
    return (overlapped(overlapped(cycles, loads), caches) + tiles) * tune_imbalance(statement, machine);
}
