/* autotune/access.c -- the features of one buffer in a statement: TUNE_ACCESS of features.def. */
#include <math.h>

#include "autotune/features.h"
#include "autotune/statement.h"

#define SET(name, value) (out[TUNE_ACCESS_##name] = (float)(value))

static void set_buffer(const tune_access *access, float *out)
{
    ir_scope scope = access->buffer->scope;

    SET(there, 1);
    SET(global, scope == IR_GLOBAL);
    SET(shared, scope == IR_SHARED);
    SET(local, scope == IR_LOCAL);
    SET(element, tune_log(access->bytes));
    SET(count, access->count);
    SET(size, tune_log(access->size * access->bytes));
}

static void set_levels(const tune_statement *statement, const tune_access *access, const int *at, float *out)
{
    for (int i = 0; i < TUNE_N_LEVELS; i++) {
        out[TUNE_ACCESS_touched_vector + i] = (float)tune_log(access->elements[at[i]] * access->bytes);
        out[TUNE_ACCESS_reuse_vector + i] =
            (float)tune_ratio(statement->steps[at[i]] * access->count, access->elements[at[i]]);
    }
    SET(run, tune_log(access->run[at[TUNE_TILE]] * access->bytes));
    SET(lines, tune_ratio(access->lines[at[TUNE_TASK]], access->elements[at[TUNE_TASK]] * access->bytes));
}

/* Every vector starts at a sum of multiples of the strides of the other loops, and the array itself at a
 * line. */
static double alignment(const tune_access *access, const int *at)
{
    double align = 64;

    for (int i = 0; i < at[TUNE_VECTOR]; i++)
        while (align > 1 && fmod(fabs(access->stride[i]) * access->bytes, align) != 0)
            align /= 2;
    return align;
}

/* Lines of a tile whose addresses differ by multiples of 4 KiB meet in one set of L1, which holds 8 or 12 of
 * them. For 16 rows of 4096 bytes: all 16 lines meet. For 16 rows of 2048 bytes every second one does: 8. */
static double lines_together(const tune_statement *statement, const tune_access *access, const int *at)
{
    enum { LINE = 64, PERIOD = 4096 };
    double together = 1;

    for (int i = at[TUNE_TILE]; i < statement->n_loops; i++) {
        double step = fabs(access->stride[i]) * access->bytes, places = 1;

        while (places < statement->loop[i].extent && fmod(places * step, PERIOD) != 0)
            places *= 2;
        together *= step < LINE ? 1 : fmax(1, statement->loop[i].extent / places);
    }
    return together;
}

static void set_stride(const tune_statement *statement, const tune_access *access, const int *at, float *out)
{
    double stride = statement->n_loops ? fabs(access->stride[statement->n_loops - 1]) : 0;

    SET(stride, tune_log(stride));
    SET(same, stride == 0 && !access->odd);
    SET(contiguous, stride == 1 && !access->odd);
    SET(gather, stride > 1 || access->odd);
    SET(aligned, access->odd ? 0 : log2(alignment(access, at)));
    SET(together, access->odd ? 0 : log2(lines_together(statement, access, at)));
}

/* The innermost loop around the tile that repeats the access, and what lies between two of its iterations. */
static void set_reuse(const tune_statement *statement, const tune_access *access, const int *at, float *out)
{
    for (int i = at[TUNE_TILE] - 1; i >= 0; i--)
        if (access->elements[i] == access->elements[i + 1]) {
            SET(reuse_loop, tune_log(statement->loop[i].extent));
            SET(reuse_distance, tune_log(statement->touched[i + 1]));
            return;
        }
}

/* The reuse that caches of 2^8, 2^12, ... bytes would see. */
static void set_curve(const tune_statement *statement, const tune_access *access, float *out)
{
    enum { FIRST = 8, CURVE = TUNE_ACCESS_reuse_in_20 - TUNE_ACCESS_reuse_in_8 + 1 };

    for (int i = 0; i < CURVE; i++) {
        int p = tune_fits(statement, access->lines, exp2(FIRST + 4 * i));

        out[TUNE_ACCESS_reuse_in_8 + i] =
            (float)tune_ratio(statement->steps[p] * access->count, access->elements[p]);
    }
}

/* All features of one access of a statement: its buffer, its levels, strides, reuse and traffic of caches. */
void tune_access_features(const tune_statement *statement, const tune_access *access, const target *machine,
                          float *out)
{
    int at[TUNE_N_LEVELS];

    tune_levels(statement, at);
    set_buffer(access, out);
    set_levels(statement, access, at, out);
    set_stride(statement, access, at, out);
    set_reuse(statement, access, at, out);
    set_curve(statement, access, out);
    for (int c = 0; c < TUNE_N_CACHES; c++)
        out[TUNE_ACCESS_traffic_l1 + c] =
            (float)tune_ratio(tune_traffic(statement, access, tune_capacity(machine, c)), access->lines[0]);
    if (target_offers(machine, TARGET_THREADS))
        tune_gpu_access(statement, access, out);
}
