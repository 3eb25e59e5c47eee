/* autotune/features.c -- rows of features: the program's own, and the slots of its hottest statements. See
 * features.h.
 */
#include "autotune/features.h"

#include <math.h>
#include <string.h>

#include "autotune/statement.h"

#define SET(name, value) (out[TUNE_PROGRAM_##name] = (float)(value))

/* ---- which statements, which buffers ---- */

/* Moves the `slots` greatest to the front, the greatest first; of equal ones the earlier. */
static void order(void **item, double *key, int count, int slots)
{
    for (int i = 0; i < slots && i < count; i++)
        for (int j = count - 1; j > i; j--)
            if (key[j] > key[j - 1]) {
                void *x = item[j];
                double k = key[j];

                item[j] = item[j - 1];
                item[j - 1] = x;
                key[j] = key[j - 1];
                key[j - 1] = k;
            }
}

/* How hot a statement is: the cycles that it takes by the rules of level.c. */
static double weight(const tune_statement *statement, const target *machine)
{
    return tune_cycles(statement, machine) + tune_load_cycles(statement, machine);
}

static void order_statements(tec_context *cx, tune_nest *nest, const target *machine)
{
    double *key = base_array(cx, double, nest->n + 1);

    for (int i = 0; i < nest->n; i++)
        key[i] = weight(nest->statement[i], machine);
    order((void **)nest->statement, key, nest->n, TUNE_SLOTS);
}

/* The first access, which is of what is written, then those that move the most. */
static void set_accesses(tec_context *cx, const tune_statement *statement, const target *machine, float *out)
{
    double *key = base_array(cx, double, statement->n_accesses + 1);
    void **access = base_array(cx, void *, statement->n_accesses + 1);

    for (int i = 0; i < statement->n_accesses; i++) {
        access[i] = &statement->access[i];
        key[i] =
            i == 0 ? INFINITY : tune_traffic(statement, &statement->access[i], tune_capacity(machine, 0));
    }
    order(access, key, statement->n_accesses, TUNE_ACCESS_SLOTS);
    for (int i = 0; i < TUNE_ACCESS_SLOTS && i < statement->n_accesses; i++)
        tune_access_features(statement, access[i], machine, out + i * TUNE_N_ACCESS);
}

/* ---- of the program ---- */

typedef struct {
    double work, outside_parallel, outside_vector, rest, steps, domain, cycles, load_cycles,
        traffic[TUNE_N_CACHES], estimate, largest;
} totals;

/* Adds what one statement contributes to the program's sums. Work counts operations, cycles and traffic are
 * estimates. */
static void add_statement(totals *sum, const tune_statement *statement, const target *machine)
{
    double work = tune_statement_work(statement);

    sum->work += work;
    sum->outside_parallel += tune_extent_of(statement, IR_PARALLEL, IR_PARALLEL) > 1 ? 0 : work;
    sum->outside_vector += tune_lanes(statement) > 1 ? 0 : work;
    sum->steps += statement->domain > 0 ? statement->steps[0] : 0;
    sum->domain += statement->domain;
    sum->cycles += tune_cycles(statement, machine);
    sum->load_cycles += tune_load_cycles(statement, machine);
    for (int c = 0; c < TUNE_N_CACHES; c++)
        sum->traffic[c] += tune_statement_traffic(statement, machine, c);
    sum->estimate += tune_estimate(statement, machine);
    sum->largest = fmax(sum->largest, statement->domain);
}

/* How often parallel loops are started. In the order of the tree, statements of one
 * loop stand side by side. */
static double parallel_loops(const tune_nest *nest)
{
    const ir_expr *last = NULL;
    double n = 0;

    for (int i = 0; i < nest->n; i++)
        for (int j = 0; j < nest->statement[i]->n_loops; j++)
            if (nest->statement[i]->loop[j].how == IR_PARALLEL && nest->statement[i]->loop[j].var != last) {
                n += nest->statement[i]->steps[0] / nest->statement[i]->steps[j];
                last = nest->statement[i]->loop[j].var;
            }
    return n;
}

static void set_target(const target *machine, float *out)
{
    SET(cores, tune_log(machine->num_cores));
    SET(vector_bytes, tune_log(machine->vector_bits / 8.0));
    SET(registers, tune_log(machine->vector_registers));
    SET(capacity_l1, tune_log(tune_capacity(machine, 0)));
    SET(capacity_l2, tune_log(tune_capacity(machine, 1)));
    SET(capacity_l3, tune_log(tune_capacity(machine, 2)));
    SET(gpu, target_offers(machine, TARGET_THREADS));
    SET(shared_capacity, tune_log((double)machine->shared_bytes));
}

/* Logarithms for quantities, ratios for shares: both keep features in a range in which trees find good cuts
 * for small and large programs alike. */
static void set_totals(const tune_nest *nest, const totals *sum, float *out)
{
    double work = fmax(sum->work, 1);

    SET(work, tune_log(sum->work));
    SET(bytes, tune_log(nest->parameters));
    SET(intensity, tune_ratio(sum->work, nest->parameters));
    SET(statements, tune_log(nest->n));
    SET(outside_parallel, sum->outside_parallel / work);
    SET(outside_vector, sum->outside_vector / work);
    SET(repeated, tune_ratio(sum->steps, sum->domain));
    SET(parallel_loops, tune_log(parallel_loops(nest)));
    SET(temporaries, tune_log(nest->temporaries));
    SET(cycles, tune_ratio(sum->cycles, work));
    SET(load_cycles, tune_ratio(sum->load_cycles, work));
    for (int c = 0; c < TUNE_N_CACHES; c++)
        out[TUNE_PROGRAM_traffic_l1 + c] = (float)tune_ratio(sum->traffic[c], work);
    SET(estimate, tune_ratio(sum->estimate, sum->largest));
}

/* ---- the row ---- */

/* The statements with the most work get slots of their own; the rest are one share. */
static void set_row(tec_context *cx, tune_nest *nest, const target *machine, float *out)
{
    totals sum = {0};

    for (int i = 0; i < nest->n; i++)
        add_statement(&sum, nest->statement[i], machine);
    set_target(machine, out);
    set_totals(nest, &sum, out);
    order_statements(cx, nest, machine);
    for (int i = 0; i < nest->n && i < TUNE_SLOTS; i++) {
        float *slot = out + TUNE_N_PROGRAM + i * TUNE_N_SLOT;

        tune_statement_features(nest->statement[i], machine, sum.work, slot);
        set_accesses(cx, nest->statement[i], machine, slot + TUNE_N_STATEMENT);
    }
    for (int i = TUNE_SLOTS; i < nest->n; i++)
        sum.rest += tune_statement_work(nest->statement[i]);
    SET(rest, sum.rest / fmax(sum.work, 1));
}

/* Features of a scheduled program on a target, with `dims` for its symbols. The row means the same only for
 * one TUNE_FEATURES_VERSION. */
bool tune_features(tec_context *cx, const ir_program *scheduled, const target *machine, const int64_t *dims,
                   float out[TUNE_N_FEATURES])
{
    tune_nest nest;

    memset(out, 0, sizeof *out * TUNE_N_FEATURES);
    if (!scheduled || !scheduled->body || !machine)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "features need a program with a body, and a target"),
               false;
    base_mark mark = base_arena_mark(cx);
    tune_read_nest(cx, scheduled, dims, &nest);
    set_row(cx, &nest, machine, out);
    base_arena_release(cx, mark);
    return true;
}

/* ---- names ---- */

static const struct {
    const char *name, *what;
} rows[] = {
#define TUNE_PROGRAM(name, what) {#name, what},
#include "autotune/features.def"
#define TUNE_STATEMENT(name, what) {#name, what},
#include "autotune/features.def"
#define TUNE_ACCESS(name, what) {#name, what},
#include "autotune/features.def"
};

/* The row of the table; *slot and *access are -1 where the feature is of none. */
static int row_of(int index, int *slot, int *access)
{
    *slot = *access = -1;
    if (index < TUNE_N_PROGRAM)
        return index;
    index -= TUNE_N_PROGRAM;
    *slot = index / TUNE_N_SLOT;
    index %= TUNE_N_SLOT;
    if (index < TUNE_N_STATEMENT)
        return TUNE_N_PROGRAM + index;
    *access = (index - TUNE_N_STATEMENT) / TUNE_N_ACCESS;
    return TUNE_N_PROGRAM + TUNE_N_STATEMENT + (index - TUNE_N_STATEMENT) % TUNE_N_ACCESS;
}

const char *tune_feature_name(tec_context *cx, int index)
{
    int slot, access;

    if (index < 0 || index >= TUNE_N_FEATURES)
        return NULL;
    const char *name = rows[row_of(index, &slot, &access)].name;
    if (slot < 0)
        return name;
    if (access < 0)
        return base_format(cx, "hot%d.%s", slot, name);
    return access == 0 ? base_format(cx, "hot%d.write.%s", slot, name)
                       : base_format(cx, "hot%d.read%d.%s", slot, access, name);
}

const char *tune_feature_what(int i)
{
    int slot, access;

    return i < 0 || i >= TUNE_N_FEATURES ? NULL : rows[row_of(i, &slot, &access)].what;
}

/* ---- as bytes ---- */

const void *tune_features_pack(tec_context *cx, const float row[TUNE_N_FEATURES])
{
    uint8_t *out = base_array(cx, uint8_t, TUNE_FEATURES_SIZE);

    for (int i = 0; i < TUNE_N_FEATURES; i++) {
        uint32_t bits;

        memcpy(&bits, &row[i], sizeof bits);
        for (int b = 0; b < 4; b++)
            out[4 * i + b] = (uint8_t)(bits >> 8 * b);
    }
    return out;
}

/* False for data of another version, or with values that are no numbers: stores may hold anything. */
bool tune_features_unpack(const void *data, size_t size, int version, float out[TUNE_N_FEATURES])
{
    const uint8_t *bytes = data;

    if (!data || version != TUNE_FEATURES_VERSION || size != TUNE_FEATURES_SIZE)
        return false;
    for (int i = 0; i < TUNE_N_FEATURES; i++) {
        uint32_t bits = 0;

        for (int b = 0; b < 4; b++)
            bits |= (uint32_t)bytes[4 * i + b] << 8 * b;
        memcpy(&out[i], &bits, sizeof bits);
        if (!isfinite(out[i]))
            return false;
    }
    return true;
}
