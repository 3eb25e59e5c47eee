/* autotune/seed.h -- between cost models and the record store: rows in records, and models from the records of related tasks.
 *
 *     tune_record_features(cx, &record, row);                     // what is stored with a measurement
 *     tune_seed_result seeded;
 *     tune_seed(cx, model, db, task, target, NULL, &seeded);     // before the first row of the task's own
 *
 * Related are records of the same target, first those of workloads of the same family, the nearest shapes first, then those of other families.
 * Records with features of another version, or without any, which is what an import gives, are scheduled again for their features: a millisecond
 * each. Each workload gives a limited number of rows, so that no one
 * workload drowns the others: records of all qualities, since a model must know what is slow, too.
 * Errors: in the context. Threads: as the store: one.
 */
#ifndef AUTOTUNE_SEED_H
#define AUTOTUNE_SEED_H

#include "autotune/model.h"
#include "space/task.h"
#include "store/store.h"

/* Puts the row into the record, in the context. */
void tune_record_features(tec_context *cx, store_record *r, const float row[TUNE_N_FEATURES]);
/* What is stored, or what follows from definition, trace and target; false, without an error, where these do not apply. Symbols have the sizes of
 * tune_features without dims. */
bool tune_features_of_record(tec_context *cx, const store_record *r, const target *t, float out[TUNE_N_FEATURES]);
/* What a model learns from: the median, INFINITY where the candidate failed. Not for failures of the device. */
double tune_cost_of_record(const store_record *r);

typedef struct {
    int workloads; /* 0: 12 */
    int rows;      /* of each; 0: 160 */
} tune_seed_options;

typedef struct {
    int workloads, rows, passed_over; /* passed over: records whose features cannot be had */
} tune_seed_result;

/* Adds the rows of related workloads, those of the task itself left out, and settles the model where there were any. NULL options: the
 * defaults. False with an error. */
bool tune_seed(tec_context *cx, tune_model *m, store *db, const space_task *task, const target *t, const tune_seed_options *options,
               tune_seed_result *out);

/* The model in the store, for a target and under a name that says what it knows ("rank conv f32"). */
bool tune_keep_model(tec_context *cx, tune_model *m, store *db, const target *t, const char *name);
/* NULL without an error: there is none of this version of the features. */
tune_model *tune_kept_model(tec_context *cx, store *db, const target *t, const char *name, uint64_t seed);

#endif
