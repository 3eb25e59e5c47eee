/* autotune/prior.h -- inside the room: between cost models and the record store: rows in records, and
 * models from the records of related tasks.
 *
 *     tune_record_features(cx, &record, row);                     // what is stored with a measurement
 *     tune_taught seeded;
 *     tune_teach(cx, model, db, &task, 1, target, NULL, &seeded); // before the first row of the tasks' own
 *
 * Related are records of the same target: first those of the tasks themselves, which others made, then those
 * of workloads of the same families, the nearest shapes first, then those of other families. Records with
 * features of another version, or without any, which is what an import gives, are scheduled again for their
 * features: a millisecond each. Each workload gives a limited number of rows, so that no one workload drowns
 * the others: records of all qualities, since a model must know what is slow, too.
 * Errors: in the context. Threads: as the store: one.
 */
#ifndef AUTOTUNE_PRIOR_H
#define AUTOTUNE_PRIOR_H

#include "autotune/model.h"
#include "space/task.h"
#include "store/store.h"

/* Puts the row into the record, in the context. */
void tune_record_features(tec_context *cx, store_record *record, const float row[TUNE_N_FEATURES]);
/* What is stored, or what follows from definition, trace and target; false, without an error, where these do
 * not apply. Symbols have the sizes of tune_features without dims. */
bool tune_features_of_record(tec_context *cx, const store_record *record, const target *machine,
                             float out[TUNE_N_FEATURES]);
/* What a model learns from: the median, INFINITY where the candidate failed. Not for failures of the
 * device. */
double tune_cost_of_record(const store_record *record);

typedef struct {
    int workloads; /* besides the tasks' own; 0: 12 */
    int rows;      /* of each; 0: 160, fewer where that were more than a model learns from at once */
} tune_teach_options;

typedef struct {
    int workloads, rows, passed_over; /* passed over: records whose features cannot be had */
} tune_taught;

/* Adds the rows of related workloads and settles the model where there were any. NULL options: the defaults.
 * False with an error. */
bool tune_teach(tec_context *cx, tune_model *model, store *db, const space_task *const *tasks, int n_tasks,
                const target *machine, const tune_teach_options *options, tune_taught *out);

/* What a tuner begins with: seeded by the records that are there; or, where the model that was kept for the
 * target has learned from more than those are (they were compacted, or the model came by a merge), that
 * model. *what gets words on it. NULL with an error. */
tune_model *tune_prior(tec_context *cx, store *db, const char *kind, uint64_t seed,
                       const space_task *const *tasks, int n_tasks, const target *machine, const char **what);

/* The points of the space that come nearest to the fastest ones of related workloads, and of the task itself,
 * where records have points: of each workload in turn, the nearest first. Records after `last` (an id) do not
 * count. NULL with an error. */
const space_point *tune_related_points(tec_context *cx, store *db, const space_task *task, const space *sp,
                                       const target *machine, int64_t last, int *count);

/* Such points in the store, for a job that goes on. */
bool tune_keep_points(tec_context *cx, store *db, const space *sp, const space_point *point, int count,
                      const target *machine, const char *name);
/* NULL without an error: there are none of that name. */
const space_point *tune_kept_points(tec_context *cx, store *db, const space *sp, const target *machine,
                                    const char *name, int *count);

/* The model in the store, for a target and under a name: its kind ("rank") for the one that tuners hand
 * on. */
bool tune_keep_model(tec_context *cx, tune_model *model, store *db, const target *machine, const char *name);
/* NULL without an error: there is none of this version of the features. */
tune_model *tune_kept_model(tec_context *cx, store *db, const target *machine, const char *name,
                            uint64_t seed);

#endif
