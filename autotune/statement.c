/* autotune/statement.c -- the features of one statement: TUNE_STATEMENT of features.def. */
#include <math.h>

#include "autotune/features.h"
#include "autotune/statement.h"

#define SET(name, value) (out[TUNE_STATEMENT_##name] = (float)(value))

/* Operations per iteration by kind. An addition that can be fused with a multiplication counts as one fma. */
static void set_work(const tune_statement *statement, double total, float *out)
{
    const tune_work *work = &statement->work;
    double fused = fmin(work->add, work->mul);

    SET(share, total > 0 ? tune_statement_work(statement) / total : 0);
    SET(iterations, tune_log(statement->steps[0]));
    SET(fma, fused);
    SET(add, work->add - fused);
    SET(mul, work->mul - fused);
    SET(div, work->div);
    SET(minmax, work->minmax);
    SET(math, work->math);
    SET(compare, work->compare);
    SET(select, work->select);
    SET(integer, work->integer);
    SET(cast, work->cast);
}

/* Loads by the memory that they read, and stores. */
static void set_accesses(const tune_statement *statement, float *out)
{
    double loads[3] = {0}, stores = 0;

    for (int i = 0; i < statement->n_accesses; i++) {
        const tune_access *access = &statement->access[i];
        ir_scope scope = access->buffer->scope;

        *(access->written ? &stores
                          : &loads[scope == IR_GLOBAL   ? 0
                                   : scope == IR_SHARED ? 1
                                                        : 2]) += access->count;
    }
    SET(loads_global, loads[0]);
    SET(loads_shared, loads[1]);
    SET(loads_local, loads[2]);
    SET(stores, stores);
}

static void set_kind(const tune_statement *statement, float *out)
{
    int depth = statement->n_loops;

    if (statement->block)
        out[TUNE_STATEMENT_role_none + (int)statement->block->role] = 1;
    SET(reduction, statement->update);
    SET(depth, tune_log(depth));
    SET(waste, tune_ratio(statement->steps[0], statement->domain));
    SET(guards, statement->guards);
}

static void set_vector(const tune_statement *statement, const target *machine, const int *at, float *out)
{
    double lanes = tune_lanes(statement),
           in_register = fmax(1, machine->vector_bits / 8.0 / tune_bytes(statement));
    double used = ceil(lanes / in_register) * in_register;

    if (at[TUNE_VECTOR] == statement->n_loops)
        return;
    SET(vector, tune_log(lanes));
    SET(vector_fill, tune_ratio(lanes, in_register));
    SET(vector_rest, (used - lanes) / used);
    SET(vector_reduce, statement->loop[statement->n_loops - 1].reduce);
}

/* How well the unrolled part uses the registers: sums that live at once against the target's vector
 * registers, and code that is written out. */
static void set_tile(const tune_statement *statement, const target *machine, const int *at, float *out)
{
    double copies = tune_extent_of(statement, IR_UNROLLED, IR_UNROLLED),
           registers = fmax(1, machine->vector_registers);
    double elements = 0, guarded = 0;
    tune_tile tile = tune_tile_of(statement, machine);

    for (int i = at[TUNE_TILE]; i < statement->n_loops; i++)
        guarded += statement->guarded[i];
    for (int i = 0; i < statement->n_accesses; i++)
        elements += statement->access[i].written ? statement->access[i].elements[at[TUNE_TILE]] : 0;
    SET(guards_tile, guarded);
    SET(unrolled, tune_log(copies));
    SET(code, tune_log(copies * tune_operations(&statement->work)));
    SET(tile_elements, tune_log(elements));
    SET(accumulators, tune_ratio(tile.results, registers));
    SET(pressure, tune_ratio(tile.results + tile.operands, registers));
    SET(chains, tune_log(tile.results));
    SET(tile_loads,
        tune_ratio(tile.operands, statement->steps[at[TUNE_TILE]] / statement->steps[at[TUNE_VECTOR]]));
}

static void set_parallel(const tune_statement *statement, const target *machine, float *out)
{
    double n = tune_extent_of(statement, IR_PARALLEL, IR_PARALLEL);

    SET(parallel, tune_log(n));
    SET(parallel_per_core, tune_ratio(n, machine->num_cores));
    SET(imbalance, log2(tune_imbalance(statement, machine)));
    SET(blocks, log2(tune_extent_of(statement, IR_BLOCK_X, IR_BLOCK_Z)));
    SET(threads, log2(tune_extent_of(statement, IR_THREAD_X, IR_THREAD_Z)));
    SET(vthreads, log2(tune_extent_of(statement, IR_VTHREAD, IR_VTHREAD)));
}

/* The innermost loops, inner ones first: extent, kind, and whether they reduce. Further out there is nothing
 * to see but their product. */
static void set_loops(const tune_statement *statement, const int *at, float *out)
{
    enum { SHOWN = 5, EACH = TUNE_STATEMENT_loop1_extent - TUNE_STATEMENT_loop0_extent };
    double reduce = 1, inner = 1;

    for (int i = 0; i < statement->n_loops; i++) {
        reduce *= statement->loop[i].reduce ? statement->loop[i].extent : 1;
        inner *= statement->loop[i].reduce && i >= at[TUNE_SUMS] ? statement->loop[i].extent : 1;
    }
    SET(reduce, tune_log(reduce));
    SET(reduce_inner, tune_log(inner));
    for (int i = 0; i < SHOWN && i < statement->n_loops; i++) {
        const tune_loop *loop = &statement->loop[statement->n_loops - 1 - i];
        float *row = out + i * EACH;
        int how = loop->how < IR_BLOCK_X ? (int)loop->how : IR_BLOCK_X;

        row[TUNE_STATEMENT_loop0_extent] = (float)tune_log(loop->extent);
        row[TUNE_STATEMENT_loop0_serial + how] = 1;
        row[TUNE_STATEMENT_loop0_reduce] = loop->reduce;
    }
}

/* Relations between what is computed and what is touched: they hold for other shapes too. */
static void set_reuse(const tune_statement *statement, const int *at, float *out)
{
    enum { FIRST = 8, CURVE = TUNE_STATEMENT_reuse_in_24 - TUNE_STATEMENT_reuse_in_8 + 1 };
    double each = fmax(tune_operations(&statement->work), 1);

    for (int i = 0; i < TUNE_N_LEVELS; i++) {
        out[TUNE_STATEMENT_steps_vector + i] = (float)tune_log(statement->steps[at[i]]);
        out[TUNE_STATEMENT_touched_vector + i] = (float)tune_log(statement->touched[at[i]]);
        out[TUNE_STATEMENT_reuse_vector + i] =
            (float)tune_ratio(each * statement->steps[at[i]], statement->touched[at[i]]);
    }
    for (int i = 0; i < CURVE; i++) {
        int p = tune_fits(statement, statement->touched, exp2(FIRST + 2 * i));

        out[TUNE_STATEMENT_reuse_in_8 + i] =
            (float)tune_ratio(each * statement->steps[p], statement->touched[p]);
    }
}

static void set_caches(const tune_statement *statement, const target *machine, const int *at, float *out)
{
    double each = fmax(tune_operations(&statement->work), 1);

    for (int c = 0; c < TUNE_N_CACHES; c++) {
        double capacity = tune_capacity(machine, c);

        out[TUNE_STATEMENT_room_sums_l1 + c] = (float)tune_ratio(statement->touched[at[TUNE_SUMS]], capacity);
        out[TUNE_STATEMENT_room_task_l1 + c] = (float)tune_ratio(statement->touched[at[TUNE_TASK]], capacity);
        out[TUNE_STATEMENT_traffic_l1 + c] =
            (float)tune_ratio(tune_statement_traffic(statement, machine, c), each * statement->steps[0]);
    }
}

/* Fills the slot of one statement. `total` is the work of the whole program, for this statement's share. */
void tune_statement_features(const tune_statement *statement, const target *machine, double total, float *out)
{
    int at[TUNE_N_LEVELS];

    tune_levels(statement, at);
    set_work(statement, total, out);
    set_accesses(statement, out);
    set_kind(statement, out);
    set_vector(statement, machine, at, out);
    set_tile(statement, machine, at, out);
    set_parallel(statement, machine, out);
    set_loops(statement, at, out);
    set_reuse(statement, at, out);
    set_caches(statement, machine, at, out);
    tune_gpu_statement(statement, machine, out);
}
