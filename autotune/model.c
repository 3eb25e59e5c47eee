/* autotune/model.c -- cost models: rows of tasks, labels relative to the best of each, and the trees that
 * learn them. See model.h.
 *
 * A score is the sum of two parts, each divided by its spread on the task's own rows:
 *
 *     prior   the estimate of the features, and trees learned from other tasks or loaded from the store
 *     own     trees learned from this task's rows alone, with the weight n / (n + 64) for n rows a task
 *
 * So the prior counts until the task has taught as much, and does not stand in the way later. Trees that
 * correct the prior were tried instead: errors of which hundreds of rows have made trees sure take hundreds
 * of rows to correct.
 *
 * The own trees are always learned anew from all rows, which takes a fifth of a second for 800 of them. Trees
 * grown batch by batch would depend on where the batches ended, and a resumed tuner could not propose what an
 * uninterrupted one does. The trees of the prior are learned twice, as a ranking and as a regression: a
 * search finds what one set of trees overrates, and two seldom agree there.
 */
#include "autotune/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/trees.h"
#include "base/guard.h"

/* Kinds and XGBoost's objectives; N_OBJECTIVES of them have one. */
static const struct kind {
    const char *name, *objective; /* NULL: learns nothing */
} kinds[] = {{"rank", "rank:pairwise"}, {"regression", "reg:squarederror"}, {"none", NULL}};

/* More rows than this take long and teach little: the newest count. */
enum { MOST_ROWS = 4096 };

/* A model that was settled more often is slow, and better made anew. */
enum { MOST_SETTLED = 4, N_OBJECTIVES = 2, MOST_SETS = MOST_SETTLED * N_OBJECTIVES, FORMAT = 3 };

typedef struct {
    uint64_t task;
    double cost;
    const float *features;
} row;

struct tune_model {
    tec_context *cx; /* holds the rows */
    const struct kind *kind;
    uint64_t seed;
    base_vec rows;                               /* of row * */
    int fitted;                                  /* rows that its own trees know */
    int n_prior;                                 /* rows that the prior knows */
    tune_trees *set[MOST_SETS + 1], *own;        /* the prior; NULL where there was nothing to learn */
    double scale[MOST_SETS + 1], estimate_scale; /* 0: of a kind that tells nothing */
    double own_scale, prior_scale;
    int n_sets;
};

/* ---- making and ending ---- */

/* NULL with an error that names all kinds. */
static const struct kind *find_kind(tec_context *cx, const char *name)
{
    for (int i = 0; i < BASE_COUNT(kinds); i++)
        if (base_same(kinds[i].name, name))
            return &kinds[i];
    return base_fail(cx, TEC_INVALID, (base_loc){0},
                     "there is no cost model '%s': expected rank, regression or none", name);
}

/* Lives outside of the context's arena, since models hold memory of a library: tune_model_close frees it. */
tune_model *tune_model_new(tec_context *cx, const char *kind, uint64_t seed)
{
    const struct kind *k = find_kind(cx, kind);
    base_held held;

    if (!k)
        return NULL;
    tune_model *model = base_calloc(cx, 1, sizeof *model);
    base_hold(cx, &held, free, model);
    *model = (tune_model){.cx = base_child(cx),
                          .kind = k,
                          .seed = seed,
                          .prior_scale = 1,
                          .estimate_scale = k->objective != NULL};
    base_keep(&held);
    return model;
}

/* NULL is allowed. The rows go with the model's own context. */
void tune_model_close(tune_model *model)
{
    if (!model)
        return;
    for (int i = 0; i < model->n_sets; i++)
        tune_trees_free(model->set[i]);
    tune_trees_free(model->own);
    tec_context_free(model->cx);
    free(model);
}

void tune_model_hand_up(tune_model *model, tec_context *to)
{
    base_hand_up(model->cx, to);
}

const char *tune_model_kind(const tune_model *model)
{
    return model->kind->name;
}

/* ---- rows ---- */

/* A row for the next fit: features and cost in seconds, infinity for a candidate that failed. Rows of one
 * task are compared with each other only. */
bool tune_model_add(tec_context *cx, tune_model *model, uint64_t task, const float features[TUNE_N_FEATURES],
                    double cost)
{
    if (isnan(cost) || cost <= 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "expected a cost above 0 (infinity for a failure), found %g seconds", cost),
               false;
    for (int i = 0; i < TUNE_N_FEATURES; i++)
        if (!isfinite(features[i]))
            return base_fail(cx, TEC_INVALID, (base_loc){0}, "feature '%s' is %g: expected a finite number",
                             tune_feature_name(cx, i), (double)features[i]),
                   false;
    row *r = base_new(model->cx, row);
    *r = (row){.task = task,
               .cost = cost,
               .features = base_copy(model->cx, features, sizeof *features * TUNE_N_FEATURES)};
    base_push(model->cx, &model->rows, r);
    return true;
}

bool tune_model_knows(const tune_model *model)
{
    return model->estimate_scale != 0 || tune_model_count(model) > 0;
}

int tune_model_count(const tune_model *model)
{
    return model->n_prior + model->rows.n;
}

/* ---- learning ---- */

/* By task in the order of their first rows; within a task in the order of the rows. XGBoost wants the rows of
 * a group one after the other. Rows a1 b1 a2 b2 become a1 a2 b1 b2, groups 2, 2. */
static const row **by_task(tec_context *cx, const row *const *rows, int count, tune_data *out)
{
    const row **sorted = base_array(cx, const row *, count + 1);
    bool *taken = base_array(cx, bool, count + 1);
    unsigned *group = base_array(cx, unsigned, count + 1);
    int filled = 0;

    for (int first = 0; first < count; first++) {
        if (taken[first])
            continue;
        for (int i = first; i < count; i++)
            if (!taken[i] && rows[i]->task == rows[first]->task) {
                sorted[filled++] = rows[i];
                taken[i] = true;
                group[out->n_groups]++;
            }
        out->n_groups++;
    }
    out->group = group;
    return sorted;
}

/* Relative throughput within each task; false where no task has two different ones: there is nothing to
 * learn. Costs 2, 4 and infinity (a failure) of one task become 1, 0.5 and 0, whatever the unit of its costs
 * is: so tasks of milliseconds and of microseconds teach alike. */
static bool label(const row **rows, const tune_data *data, float *out)
{
    bool differ = false;

    for (int g = 0, i = 0; g < data->n_groups; i += (int)data->group[g++]) {
        double best = INFINITY;

        for (unsigned j = 0; j < data->group[g]; j++)
            best = fmin(best, rows[i + (int)j]->cost);
        for (unsigned j = 0; j < data->group[g]; j++) {
            out[i + (int)j] = isinf(rows[i + (int)j]->cost) ? 0 : (float)(best / rows[i + (int)j]->cost);
            differ = differ || out[i + (int)j] != out[i];
        }
    }
    return differ;
}

/* Adds to `score`. The estimate is a time, so it counts negative: more is slower. */
static bool predict_prior(tec_context *cx, const tune_model *model, const float *features, int n,
                          double scale, double *score)
{
    for (int i = 0; i < n; i++)
        score[i] -= scale * model->estimate_scale *
                    (double)features[(size_t)i * TUNE_N_FEATURES + TUNE_PROGRAM_estimate];
    for (int i = 0; i < model->n_sets; i++)
        if (!tune_trees_predict(cx, model->set[i], features, n, scale * model->scale[i], score))
            return false;
    return true;
}

/* The standard deviation; 1 where all are equal. */
static double spread(const double *score, int count)
{
    double sum = 0, squares = 0;

    for (int i = 0; i < count; i++) {
        sum += score[i];
        squares += score[i] * score[i];
    }
    double variance = squares / count - sum / count * (sum / count);
    return variance > 1e-12 ? sqrt(variance) : 1;
}

/* What the prior and the own trees count. */
typedef struct {
    tune_trees *own; /* NULL: there is nothing to learn */
    double own_scale, prior_scale, weight;
} lesson;

/* With 64 rows of one task both parts count the same. Dividing by the spread makes them comparable: scores of
 * a ranking and of a regression have no common unit. */
static bool weigh(tec_context *cx, const tune_model *model, const tune_data *data, lesson *out)
{
    enum { EQUAL = 64 }; /* rows of a task, of as much weight as the prior */
    double *own = base_array(cx, double, data->n), *prior = base_array(cx, double, data->n),
           weight = (double)data->n / (data->n + EQUAL * data->n_groups);

    if (!tune_trees_predict(cx, out->own, data->features, data->n, 1, own) ||
        !predict_prior(cx, model, data->features, data->n, 1, prior))
        return false;
    out->weight = weight;
    out->own_scale = weight / spread(own, data->n);
    out->prior_scale = (1 - weight) / spread(prior, data->n);
    return true;
}

/* From the newest rows. True without trees where all rows are alike: that is no error. */
static bool learn(tec_context *cx, const tune_model *model, const char *objective, lesson *out)
{
    int skipped = model->rows.n > MOST_ROWS ? model->rows.n - MOST_ROWS : 0;
    tune_data d = {.n = model->rows.n - skipped};
    const row **rows = by_task(cx, (const row *const *)model->rows.at + skipped, d.n, &d);
    float *labels = base_array(cx, float, d.n),
          *features = base_array(cx, float, (size_t)d.n *TUNE_N_FEATURES);

    if (!label(rows, &d, labels))
        return true;
    for (int i = 0; i < d.n; i++)
        memcpy(features + (size_t)i * TUNE_N_FEATURES, rows[i]->features, sizeof *features * TUNE_N_FEATURES);
    d.features = features;
    d.label = labels;
    out->own = tune_trees_fit(cx, objective, model->seed, &d);
    return out->own && weigh(cx, model, &d, out);
}

static void free_lesson(void *l)
{
    tune_trees_free(((lesson *)l)->own);
}

/* Learns from all rows. The old trees stay in use until new ones are ready, so a failure changes nothing.
 * Scratch memory goes at once; an error is moved to `cx` before. */
bool tune_model_fit(tec_context *cx, tune_model *model)
{
    lesson found = {.prior_scale = 1};
    base_held held;

    if (!model->kind->objective || model->fitted == model->rows.n)
        return true;
    tec_context *scratch = base_child(cx);
    base_hold(cx, &held, free_lesson, &found);
    bool ok = learn(scratch, model, model->kind->objective, &found);
    base_adopt(cx, scratch);
    tec_context_free(scratch);
    if (!ok) {
        base_drop(&held);
        return false;
    }
    base_keep(&held);
    tune_trees_free(model->own);
    model->own = found.own;
    model->own_scale = found.own_scale;
    model->prior_scale = found.prior_scale;
    model->fitted = model->rows.n;
    return true;
}

bool tune_model_may_settle(const tune_model *model)
{
    return model->n_sets + N_OBJECTIVES <= MOST_SETS;
}

/* As every kind that learns does it. */
static bool learn_all(tec_context *cx, const tune_model *model, lesson found[N_OBJECTIVES])
{
    base_held held[N_OBJECTIVES];
    bool ok = true;
    int n = 0;

    for (int i = 0; i < N_OBJECTIVES; i++)
        base_hold(cx, &held[i], free_lesson, &found[i]);
    for (int i = 0; i < BASE_COUNT(kinds) && ok; i++)
        ok = !kinds[i].objective || learn(cx, model, kinds[i].objective, &found[n++]);
    for (int i = 0; i < N_OBJECTIVES; i++)
        if (ok)
            base_keep(&held[i]);
        else
            base_drop(&held[i]);
    return ok;
}

/* What was learned counts no more than this where other tasks follow: that it knows its own rows by heart
 * does not make it wiser about others. */
static const double MOST_WEIGHT = 0.5;

/* Each part counts relative to its spread: the new sets together get the share `weight`, at most a half, and
 * all that was there before keeps the rest. */
static void add_to_prior(tune_model *model, const lesson found[N_OBJECTIVES])
{
    double weight = fmin(found[0].weight, MOST_WEIGHT), above = (1 - weight) / (1 - found[0].weight);

    for (int i = 0; i < model->n_sets; i++)
        model->scale[i] *= found[0].prior_scale * above;
    model->estimate_scale *= found[0].prior_scale * above;
    for (int i = 0; i < N_OBJECTIVES; i++) {
        model->scale[model->n_sets] = found[i].own_scale * weight / found[i].weight / N_OBJECTIVES;
        model->set[model->n_sets++] = found[i].own;
    }
}

/* What was learnt becomes the prior for further tasks, and the rows are forgotten. */
bool tune_model_settle(tec_context *cx, tune_model *model)
{
    lesson found[N_OBJECTIVES] = {{0}};

    if (!tune_model_may_settle(model))
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "a cost model can be settled at most %d times: make a new model from records",
                         MOST_SETTLED),
               false;
    tec_context *scratch = base_child(cx);
    bool ok = !model->kind->objective || model->rows.n == 0 || learn_all(scratch, model, found);
    base_adopt(cx, scratch);
    tec_context_free(scratch);
    if (!ok)
        return false;
    if (found[0].own)
        add_to_prior(model, found);
    tune_trees_free(model->own);
    model->own = NULL;
    model->prior_scale = 1;
    model->n_prior += model->rows.n;
    model->fitted = 0;
    model->rows = (base_vec){0};
    base_reset(model->cx);
    return true;
}

/* ---- asking ---- */

/* The first number that is none is named: XGBoost would take NaN for "missing" and go on. */
static bool check_rows(tec_context *cx, const float *features, int count)
{
    for (size_t i = 0; i < (size_t)count * TUNE_N_FEATURES; i++)
        if (!isfinite(features[i]))
            return base_fail(cx, TEC_INVALID, (base_loc){0},
                             "row %d: feature '%s' is %g: expected a finite number",
                             (int)(i / TUNE_N_FEATURES), tune_feature_name(cx, (int)(i % TUNE_N_FEATURES)),
                             (double)features[i]),
                   false;
    return true;
}

/* Scores for count rows, higher meaning faster. Scores compare candidates of one task; they have no unit. */
bool tune_model_predict(tec_context *cx, tune_model *model, const float *features, int count, double *score)
{
    if (!check_rows(cx, features, count))
        return false;
    for (int i = 0; i < count; i++)
        score[i] = 0;
    if (count == 0)
        return true;
    base_mark mark = base_arena_mark(cx);
    bool ok = predict_prior(cx, model, features, count, model->prior_scale, score) &&
              (!model->own || tune_trees_predict(cx, model->own, features, count, model->own_scale, score));
    if (ok)
        base_arena_release(cx, mark);
    return ok;
}

/* Which features the trees use, as shares of their total gain. */
bool tune_model_importance(tec_context *cx, tune_model *model, double gain[TUNE_N_FEATURES])
{
    double sum = 0;

    memset(gain, 0, sizeof *gain * TUNE_N_FEATURES);
    for (int i = 0; i < model->n_sets; i++)
        if (!tune_trees_gain(cx, model->set[i], gain))
            return false;
    if (model->own && !tune_trees_gain(cx, model->own, gain))
        return false;
    for (int i = 0; i < TUNE_N_FEATURES; i++)
        sum += gain[i];
    for (int i = 0; i < TUNE_N_FEATURES && sum > 0; i++)
        gain[i] /= sum;
    return true;
}

/* ---- as bytes ---- */

/* What stands in front of the sets; numbers in the machine's order, which the magic word shows. */
typedef struct {
    uint64_t magic, hash; /* of what follows */
    uint32_t format, features_version, n_features, kind, n_sets, n_rows;
    double estimate_scale;
} header;
static const uint64_t magic = 0x6c65646f6d636574; /* "tecmodel" where the least byte comes first */

/* XGBoost trusts what it reads, so nothing may reach it but what was saved. */
static uint64_t hash_of(const void *data, size_t size)
{
    size_t start = offsetof(header, format);

    return base_hash((const uint8_t *)data + start, size - start, BASE_HASH_SEED);
}

/* A scale, then the trees. */
static bool save_set(tec_context *cx, tune_trees *trees, double scale, base_text *out)
{
    base_addn(cx, out, (const char *)&scale, sizeof scale);
    return tune_trees_save(cx, trees, out);
}

/* Fits first, so that the bytes hold everything that was learnt. The hash covers header and trees. */
bool tune_model_save(tec_context *cx, tune_model *model, const void **data, size_t *size)
{
    header h = {.magic = magic,
                .format = FORMAT,
                .features_version = TUNE_FEATURES_VERSION,
                .n_features = TUNE_N_FEATURES};
    base_text out = {0};

    if (!tune_model_fit(cx, model))
        return false;
    h.kind = (uint32_t)(model->kind - kinds);
    h.n_sets = (uint32_t)model->n_sets + (model->own != NULL);
    h.n_rows = (uint32_t)tune_model_count(model);
    h.estimate_scale = model->prior_scale * model->estimate_scale;
    base_addn(cx, &out, (const char *)&h, sizeof h);
    for (int i = 0; i < model->n_sets; i++)
        if (!save_set(cx, model->set[i], model->prior_scale * model->scale[i], &out))
            return false;
    if (model->own && !save_set(cx, model->own, model->own_scale, &out))
        return false;
    h.hash = hash_of(out.data, out.n);
    memcpy(out.data, &h, sizeof h);
    *data = out.data;
    *size = out.n;
    return true;
}

/* NULL, as a result for callers that return it. */
static void *refuse(tec_context *cx, const char *why)
{
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "cannot load a cost model: %s", why);
}

/* Reads the sets of trees after a header that was checked; each set is checked against the bytes that are
 * left. */
static tune_model *load_sets(tec_context *cx, const header *self, const uint8_t *at, const uint8_t *end,
                             uint64_t seed)
{
    tune_model *model = tune_model_new(cx, kinds[self->kind].name, seed);

    for (uint32_t i = 0; model && i < self->n_sets; i++) {
        if ((size_t)(end - at) >= sizeof *model->scale) {
            memcpy(&model->scale[i], at, sizeof *model->scale);
            at += sizeof *model->scale;
        }
        model->set[i] = tune_trees_load(cx, &at, end);
        if (!model->set[i]) {
            tune_model_close(model);
            return NULL;
        }
        model->n_sets++;
    }
    if (model) {
        model->n_prior = (int)self->n_rows;
        model->estimate_scale = self->estimate_scale;
    }
    return model;
}

/* NULL with an error for bytes that are damaged or of another version of the features. */
tune_model *tune_model_load(tec_context *cx, const void *data, size_t size, uint64_t seed)
{
    header h;

    if (!data || size < sizeof h)
        return refuse(cx, base_format(cx, "its %zu bytes are too few for a header", size));
    memcpy(&h, data, sizeof h);
    if (h.magic != magic)
        return refuse(cx, "the bytes are not a cost model");
    if (h.hash != hash_of(data, size))
        return refuse(cx, "it is damaged");
    if (h.format != FORMAT || h.features_version != TUNE_FEATURES_VERSION || h.n_features != TUNE_N_FEATURES)
        return refuse(cx, base_format(cx,
                                      "it has format %u and %u features of version %u, but this program has "
                                      "format %d and %d features of version %d",
                                      h.format, h.n_features, h.features_version, FORMAT, TUNE_N_FEATURES,
                                      TUNE_FEATURES_VERSION));
    if (h.kind >= BASE_COUNT(kinds) || h.n_sets > MOST_SETS + 1 || h.n_rows > INT32_MAX)
        return refuse(cx, "it is damaged");
    return load_sets(cx, &h, (const uint8_t *)data + sizeof h, (const uint8_t *)data + size, seed);
}
