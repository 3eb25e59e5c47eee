/* autotune/statement.h -- inside the room: below features.c, a program as its innermost statements, with
 * what each touches at each loop.
 *
 *     tune_nest nest;
 *     tune_read_nest(cx, program, dims, &nest);
 *     for (int i = 0; i < nest.n; i++)
 *         ... nest.statement[i]->access[0].elements[p] ...  elements touched by loops p and further in,
 *             for p in 0..n_loops
 *
 * A statement is a store, a step of a reduction or a call, with the loops of more than one iteration around
 * it, outermost first. Everything is a number (double): no proofs, and a symbol has the value that is given.
 * A position p in the loops stands for loops p..n-1 running while those outside stand still; position n is
 * one iteration.
 */
#ifndef AUTOTUNE_STATEMENT_H
#define AUTOTUNE_STATEMENT_H

#include "ir/ir.h"
#include "targets/target.h"

typedef struct {
    const ir_expr *var;
    double extent;
    ir_how how;
    bool reduce; /* it runs an iteration variable of a reduction */
} tune_loop;

/* All that a statement does with one buffer in one direction. */
typedef struct {
    const ir_buffer *buffer;
    bool written;
    bool odd;         /* indices that data or calls decide */
    double count;     /* accesses an iteration */
    double bytes;     /* of an element */
    double *extent;   /* of the box that is touched: for each dimension by position */
    double *step;     /* for each dimension by loop: how far the index moves */
    double size;      /* elements of the buffer, where it is allocated */
    double *elements; /* touched, by position */
    double *lines;    /* bytes of the cache lines touched, by position */
    double *run;      /* contiguous elements touched, by position */
    double *stride;   /* elements between neighbours, by loop */
} tune_access;

/* Operations of one iteration. */
typedef struct {
    double add, mul, div, minmax, math, compare, select, integer, cast;
    /* of these: selections by indices alone, with their conditions; few iterations keep them once loops are
     * cut at their bounds */
    double bounds;
} tune_work;

typedef struct {
    const ir_block *block;
    tune_loop *loop;
    int n_loops;
    tune_access *access; /* the buffer that is written first */
    int n_accesses;
    tune_work work;
    bool update;
    double domain; /* of the block; 0: the block stands in another */
    double guards;
    bool *guarded;   /* by loop: a condition depends on it */
    double *steps;   /* iterations, by position */
    double *touched; /* bytes of lines of all buffers, by position */
} tune_statement;

typedef struct {
    tune_statement **statement;
    int n;
    double parameters, temporaries; /* bytes of buffers */
} tune_nest;

/* In the context. */
void tune_read_nest(tec_context *cx, const ir_program *program, const int64_t *dims, tune_nest *out);

/* ---- levels and caches (level.c) ---- */

enum { TUNE_VECTOR, TUNE_TILE, TUNE_SUMS, TUNE_REDUCED, TUNE_TASK, TUNE_ALL, TUNE_N_LEVELS };
enum { TUNE_N_CACHES = 3 };

/* The positions where the levels of features.def begin: each inside of the next. */
void tune_levels(const tune_statement *statement, int at[TUNE_N_LEVELS]);
/* The outermost position whose bytes (by position) are at most `capacity`; one iteration at least. */
int tune_fits(const tune_statement *statement, const double *bytes, double capacity);
/* Bytes of the access that come into a cache of that capacity while all loops run. */
double tune_traffic(const tune_statement *statement, const tune_access *access, double capacity);
double tune_statement_traffic(const tune_statement *statement, const target *machine,
                              int cache);               /* of all its accesses */
double tune_capacity(const target *machine, int cache); /* a usual one where the target's is not known */

double tune_operations(const tune_work *work);               /* on data, an iteration */
double tune_statement_work(const tune_statement *statement); /* operations, loads and stores in all */
/* Cycles of one core for what it computes, and for what it loads. */
double tune_cycles(const tune_statement *statement, const target *machine);
double tune_load_cycles(const tune_statement *statement, const target *machine);
double tune_lanes(const tune_statement *statement); /* of its vectors; 1: none */
/* of an element of what it writes; of a call that writes nothing: 4 */
double tune_bytes(const tune_statement *statement);

/* vector registers for what a tile touches of it */
double tune_registers(const tune_statement *statement, const tune_access *access, const target *machine);
/* Vector registers for what a tile writes, for all that it reads, and for the one of its operands that needs
 * the fewest. */
typedef struct {
    double results, operands, least;
} tune_tile;
tune_tile tune_tile_of(const tune_statement *statement, const target *machine);
/* Cycles of all cores by what takes longest: arithmetic, with the latency of sums where few are under way;
 * loads, with those of results that find no register; or what comes into a cache. */
double tune_estimate(const tune_statement *statement, const target *machine);
/* Features of GPUs (gpu.c), into the rows of the statement and of the access. */
void tune_gpu_statement(const tune_statement *statement, const target *machine, float *out);
void tune_gpu_access(const tune_statement *statement, const tune_access *access, float *out);
/* Iterations that the loops of these kinds have together. */
double tune_extent_of(const tune_statement *statement, ir_how first, ir_how last);
/* How many times as long the busiest core takes as all would if the work were even. */
double tune_imbalance(const tune_statement *statement, const target *machine);

double tune_log(double x);               /* log2(1 + x), of at most 2^100 */
double tune_ratio(double of, double to); /* log2(of / to) within [-40, 40]; 0 where one is not above 0 */

/* ---- rows of the tables ---- */

void tune_statement_features(const tune_statement *statement, const target *machine, double total,
                             float *out);
void tune_access_features(const tune_statement *statement, const tune_access *access, const target *machine,
                          float *out);

#endif
