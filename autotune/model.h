/* autotune/model.h -- inside the room: cost models: learn from measured candidates, score others; higher
 * scores are faster.
 *
 *     tune_model *m = tune_model_new(cx, "rank", seed);
 *     // one measured candidate; INFINITY where it failed
 *     tune_model_add(cx, m, task, row, seconds);
 *     if (tune_model_fit(cx, m) && tune_model_predict(cx, m, rows, n, score))
 *         ...
 *     tune_model_close(m);
 *
 * Gradient boosted trees (XGBoost). Costs count relative to the best of their task, so that tasks can be
 * learned together: 1 is the fastest candidate known, 0 one that failed. "rank" learns which of two
 * candidates of a task is faster, "regression" the relative throughput, "none" nothing. A model without
 * anything to learn from goes by the estimate that is among the features; "none" gives all candidates the
 * same score. Transfer: `tune_model_settle` learns what is known so far in both ways, whatever the kind, as
 * the prior for what follows: the rows are dropped, later ones are learned by themselves, and scores are the
 * weighted sum of both; the prior's weight falls with the rows. A model is seeded by adding the rows of
 * related tasks, then settling. Repeatable: scores follow from kind, seed and rows (in their order), whenever
 * and how often the model was fitted between.
 * Lifetime: a model lives until it is closed. Errors: in the context of the call. Threads: one.
 */
#ifndef AUTOTUNE_MODEL_H
#define AUTOTUNE_MODEL_H

#include "autotune/features.h"

typedef struct tune_model tune_model;

/* NULL with an error that lists the kinds */
tune_model *tune_model_new(tec_context *cx, const char *kind, uint64_t seed);
void tune_model_close(tune_model *model); /* NULL is legal */
const char *tune_model_kind(const tune_model *model);

/* A candidate of a task; cost in seconds, INFINITY where it failed. Numbers that are not finite, and costs
 * that are none, are refused. */
bool tune_model_add(tec_context *cx, tune_model *model, uint64_t task, const float features[TUNE_N_FEATURES],
                    double cost);
int tune_model_count(const tune_model *model);  /* rows that it learns from */
bool tune_model_knows(const tune_model *model); /* something to tell candidates apart by */

/* Learns from the rows; nothing to do where none came since the last time. */
bool tune_model_fit(tec_context *cx, tune_model *model);
bool tune_model_settle(tec_context *cx, tune_model *model);
/* one that was settled very often may not; it is slow, and better made anew */
bool tune_model_may_settle(const tune_model *model);
/* count rows, one after the other. */
bool tune_model_predict(tec_context *cx, tune_model *model, const float *features, int count, double *score);

/* What was learned, without the rows. Damaged bytes, and those of another version of the features, are
 * refused with a message; what is loaded is settled. */
bool tune_model_save(tec_context *cx, tune_model *model, const void **data, size_t *size);
tune_model *tune_model_load(tec_context *cx, const void *data, size_t size, uint64_t seed);

/* `to`, from which the context that the model was made in descends, has the model from now on. */
void tune_model_hand_up(tune_model *model, tec_context *to);

/* How much each feature took part in decisions (gain, summing to 1); all 0 where nothing was learned. */
bool tune_model_importance(tec_context *cx, tune_model *model, double gain[TUNE_N_FEATURES]);

#endif
