/* autotune/statement.c -- the features of one statement: TUNE_STATEMENT of features.def. */
#include <math.h>

#include "autotune/features.h"
#include "autotune/statement.h"

#define SET(name, value) (out[TUNE_STATEMENT_##name] = (float)(value))

/* Operations per iteration by kind. An addition that can be fused with a multiplication counts as one fma. */
static void set_work(const tune_statement *l, double total, float *out)
{
    const tune_work *w = &l->work;
    double fused = fmin(w->add, w->mul);

    SET(share, total > 0 ? tune_statement_work(l) / total : 0);
    SET(iterations, tune_log(l->steps[0]));
    SET(fma, fused);
    SET(add, w->add - fused);
    SET(mul, w->mul - fused);
    SET(div, w->div);
    SET(minmax, w->minmax);
    SET(math, w->math);
    SET(compare, w->compare);
    SET(select, w->select);
    SET(integer, w->integer);
    SET(cast, w->cast);
}

/* Loads by the memory that they read, and stores. */
static void set_accesses(const tune_statement *l, float *out)
{
    double loads[3] = {0}, stores = 0;

    for (int i = 0; i < l->n_accesses; i++) {
        const tune_access *a = &l->access[i];
        ir_scope scope = a->buffer->scope;

        *(a->written ? &stores : &loads[scope == IR_GLOBAL ? 0 : scope == IR_SHARED ? 1 : 2]) += a->count;
    }
    SET(loads_global, loads[0]);
    SET(loads_shared, loads[1]);
    SET(loads_local, loads[2]);
    SET(stores, stores);
}

static void set_kind(const tune_statement *l, float *out)
{
    int depth = l->n_loops;

    if (l->block)
        out[TUNE_STATEMENT_role_none + (int)l->block->role] = 1;
    SET(reduction, l->update);
    SET(depth, tune_log(depth));
    SET(waste, tune_ratio(l->steps[0], l->domain));
    SET(guards, l->guards);
}

static void set_vector(const tune_statement *l, const target *t, const int *at, float *out)
{
    double lanes = tune_lanes(l), in_register = fmax(1, t->vector_bits / 8.0 / tune_bytes(l));
    double used = ceil(lanes / in_register) * in_register;

    if (at[TUNE_VECTOR] == l->n_loops)
        return;
    SET(vector, tune_log(lanes));
    SET(vector_fill, tune_ratio(lanes, in_register));
    SET(vector_rest, (used - lanes) / used);
    SET(vector_reduce, l->loop[l->n_loops - 1].reduce);
}

/* How well the unrolled part uses the registers: sums that live at once against the target's vector
 * registers, and code that is written out. */
static void set_tile(const tune_statement *l, const target *t, const int *at, float *out)
{
    double copies = tune_extent_of(l, IR_UNROLLED, IR_UNROLLED), registers = fmax(1, t->vector_registers);
    double elements = 0, guarded = 0;
    tune_tile tile = tune_tile_of(l, t);

    for (int i = at[TUNE_TILE]; i < l->n_loops; i++)
        guarded += l->guarded[i];
    for (int i = 0; i < l->n_accesses; i++)
        elements += l->access[i].written ? l->access[i].elements[at[TUNE_TILE]] : 0;
    SET(guards_tile, guarded);
    SET(unrolled, tune_log(copies));
    SET(code, tune_log(copies * tune_operations(&l->work)));
    SET(tile_elements, tune_log(elements));
    SET(accumulators, tune_ratio(tile.results, registers));
    SET(pressure, tune_ratio(tile.results + tile.operands, registers));
    SET(chains, tune_log(tile.results));
    SET(tile_loads, tune_ratio(tile.operands, l->steps[at[TUNE_TILE]] / l->steps[at[TUNE_VECTOR]]));
}

static void set_parallel(const tune_statement *l, const target *t, float *out)
{
    double n = tune_extent_of(l, IR_PARALLEL, IR_PARALLEL);

    SET(parallel, tune_log(n));
    SET(parallel_per_core, tune_ratio(n, t->num_cores));
    SET(imbalance, log2(tune_imbalance(l, t)));
    SET(blocks, log2(tune_extent_of(l, IR_BLOCK_X, IR_BLOCK_Z)));
    SET(threads, log2(tune_extent_of(l, IR_THREAD_X, IR_THREAD_Z)));
    SET(vthreads, log2(tune_extent_of(l, IR_VTHREAD, IR_VTHREAD)));
}

/* The innermost loops, inner ones first: extent, kind, and whether they reduce. Further out there is nothing
 * to see but their product. */
static void set_loops(const tune_statement *l, const int *at, float *out)
{
    enum { SHOWN = 5, EACH = TUNE_STATEMENT_loop1_extent - TUNE_STATEMENT_loop0_extent };
    double reduce = 1, inner = 1;

    for (int i = 0; i < l->n_loops; i++) {
        reduce *= l->loop[i].reduce ? l->loop[i].extent : 1;
        inner *= l->loop[i].reduce && i >= at[TUNE_SUMS] ? l->loop[i].extent : 1;
    }
    SET(reduce, tune_log(reduce));
    SET(reduce_inner, tune_log(inner));
    for (int i = 0; i < SHOWN && i < l->n_loops; i++) {
        const tune_loop *loop = &l->loop[l->n_loops - 1 - i];
        float *row = out + i * EACH;
        int how = loop->how < IR_BLOCK_X ? (int)loop->how : IR_BLOCK_X;

        row[TUNE_STATEMENT_loop0_extent] = (float)tune_log(loop->extent);
        row[TUNE_STATEMENT_loop0_serial + how] = 1;
        row[TUNE_STATEMENT_loop0_reduce] = loop->reduce;
    }
}

/* Relations between what is computed and what is touched: they hold for other shapes too. */
static void set_reuse(const tune_statement *l, const int *at, float *out)
{
    enum { FIRST = 8, CURVE = TUNE_STATEMENT_reuse_in_24 - TUNE_STATEMENT_reuse_in_8 + 1 };
    double each = fmax(tune_operations(&l->work), 1);

    for (int i = 0; i < TUNE_N_LEVELS; i++) {
        out[TUNE_STATEMENT_steps_vector + i] = (float)tune_log(l->steps[at[i]]);
        out[TUNE_STATEMENT_touched_vector + i] = (float)tune_log(l->touched[at[i]]);
        out[TUNE_STATEMENT_reuse_vector + i] = (float)tune_ratio(each * l->steps[at[i]], l->touched[at[i]]);
    }
    for (int i = 0; i < CURVE; i++) {
        int p = tune_fits(l, l->touched, exp2(FIRST + 2 * i));

        out[TUNE_STATEMENT_reuse_in_8 + i] = (float)tune_ratio(each * l->steps[p], l->touched[p]);
    }
}

static void set_caches(const tune_statement *l, const target *t, const int *at, float *out)
{
    double each = fmax(tune_operations(&l->work), 1);

    for (int c = 0; c < TUNE_N_CACHES; c++) {
        double capacity = tune_capacity(t, c);

        out[TUNE_STATEMENT_room_sums_l1 + c] = (float)tune_ratio(l->touched[at[TUNE_SUMS]], capacity);
        out[TUNE_STATEMENT_room_task_l1 + c] = (float)tune_ratio(l->touched[at[TUNE_TASK]], capacity);
        out[TUNE_STATEMENT_traffic_l1 + c] =
            (float)tune_ratio(tune_statement_traffic(l, t, c), each * l->steps[0]);
    }
}

/* Fills the slot of one statement. `total` is the work of the whole program, for this statement's share. */
void tune_statement_features(const tune_statement *l, const target *t, double total, float *out)
{
    int at[TUNE_N_LEVELS];

    tune_levels(l, at);
    set_work(l, total, out);
    set_accesses(l, out);
    set_kind(l, out);
    set_vector(l, t, at, out);
    set_tile(l, t, at, out);
    set_parallel(l, t, out);
    set_loops(l, at, out);
    set_reuse(l, at, out);
    set_caches(l, t, at, out);
}
