/* autotune/features.h -- what a cost model sees of a candidate: as many numbers for every program, all
 * finite.
 *
 *     float row[TUNE_N_FEATURES];
 *     if (tune_features(cx, sched_tree(s), target, dims, row))
 *         tune_model_add(model, task, row, seconds);
 *
 * Read from the scheduled loop tree as it is, in one walk and without lowering it: a block's bindings say
 * which elements its loops touch, and the sizes of all boxes are computed as numbers, for the dims that will
 * be measured. The features are those of autotune/features.def: of the program, of its hottest statements,
 * the hottest first, and of the buffers of each: the one that is written, then those that bring in the most
 * bytes. Slots that a program does not fill are 0. Sizes are logarithms, relations are ratios to work or to
 * capacities, so that what is learned of one shape says something of others.
 * Lifetime: nothing stays in the context. Threads: as the context.
 */
#ifndef AUTOTUNE_FEATURES_H
#define AUTOTUNE_FEATURES_H

#include "ir/ir.h"
#include "targets/target.h"

enum {
#define TUNE_PROGRAM(name, what) TUNE_PROGRAM_##name,
#include "autotune/features.def"
    TUNE_N_PROGRAM
};
enum {
#define TUNE_STATEMENT(name, what) TUNE_STATEMENT_##name,
#include "autotune/features.def"
    TUNE_N_STATEMENT
};
enum {
#define TUNE_ACCESS(name, what) TUNE_ACCESS_##name,
#include "autotune/features.def"
    TUNE_N_ACCESS
};

/* Rises with every change of what the numbers mean: rows of another version are not learned from. */
enum { TUNE_FEATURES_VERSION = 4 };
enum {
    TUNE_SLOTS = 3,        /* statements */
    TUNE_ACCESS_SLOTS = 3, /* buffers of a statement */
    TUNE_N_SLOT = TUNE_N_STATEMENT + TUNE_ACCESS_SLOTS * TUNE_N_ACCESS,
    TUNE_N_FEATURES = TUNE_N_PROGRAM + TUNE_SLOTS * TUNE_N_SLOT,
};

/* `dims`: a size for each symbol of the program, in its order; NULL: the middle of its range. False with an
 * error where the tree is none. */
bool tune_features(tec_context *cx, const ir_program *scheduled, const target *machine, const int64_t *dims,
                   float out[TUNE_N_FEATURES]);

const char *tune_feature_name(tec_context *cx,
                              int index); /* "hot0.read1.touched_tile"; NULL: there is none */
const char *tune_feature_what(int i);     /* for people; NULL: there is none */

/* Rows as bytes, for records; the first says with which version. Bytes of another length, or with numbers
 * that are not finite, are refused. */
enum { TUNE_FEATURES_SIZE = 4 * TUNE_N_FEATURES };
const void *tune_features_pack(tec_context *cx, const float row[TUNE_N_FEATURES]);
bool tune_features_unpack(const void *data, size_t size, int version, float out[TUNE_N_FEATURES]);

#endif
