/* autotune/trees.h -- inside the room: boosted trees by XGBoost, behind few functions.
 *
 *     tune_trees *t = tune_trees_fit(cx, "rank:pairwise", seed, &data);
 *     tune_trees_predict(cx, t, rows, n, 1, score);                 // adds to what is there
 *     tune_trees_free(t);
 *
 * Trees look at columns that differ in the rows which they learned from; of columns that are equal there, at
 * the first. One thread, and a seed: equal data gives equal trees. Errors: in the context, with XGBoost's own
 * words.
 */
#ifndef AUTOTUNE_TREES_H
#define AUTOTUNE_TREES_H

#include "autotune/features.h"

typedef struct tune_trees tune_trees;

typedef struct {
    const float *features; /* n rows of TUNE_N_FEATURES */
    const float *label;    /* 0..1, higher is better */
    const unsigned *group; /* rows of each task, which lie together */
    int n, n_groups;
} tune_data;

tune_trees *tune_trees_fit(tec_context *cx, const char *objective, uint64_t seed, const tune_data *data);
void tune_trees_free(tune_trees *trees); /* NULL is legal */

/* Add to what is there: the scores of count rows, times `scale`; the gain of all decisions on each
 * feature. */
bool tune_trees_predict(tec_context *cx, tune_trees *trees, const float *features, int count, double scale,
                        double *score);
bool tune_trees_gain(tec_context *cx, tune_trees *trees, double gain[TUNE_N_FEATURES]);

/* Appends the bytes. */
bool tune_trees_save(tec_context *cx, tune_trees *trees, base_text *out);
/* Reads what was saved there, and nothing else: the bytes are trusted. Moves *at behind it. */
tune_trees *tune_trees_load(tec_context *cx, const uint8_t **at, const uint8_t *end);

#endif
