/* autotune/model.c -- cost models: rows of tasks, labels relative to the best of each, and the trees that learn them. See model.h.
 *
 * Sets of trees whose predictions are added, each times its scale: the ground, which is the estimate of the features and what was learned from other
 * tasks or loaded, and the model's own, learned from the rows alone. On the rows both spread as widely; then the own one's weight is n / (n + 64),
 * for n rows a task: what others taught counts until the task has taught as much, and does not stand in its way later. (As a ground to be corrected it
 * did: errors of trees that hundreds of rows made sure take hundreds of rows to correct.)
 * The own trees are always learned anew from all rows, which takes a fifth of a second for 800 of them: trees that were grown batch by batch would
 * depend on when the batches ended, and a resumed tuner could not propose what an uninterrupted one does.
 * What becomes ground is learned twice, as a ranking and as a regression: a search finds what one set of trees overrates, and two seldom agree there.
 */
#include "autotune/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/trees.h"

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
    base_vec rows;     /* of row * */
    int fitted;    /* rows that its own trees know */
    int n_ground;  /* rows that the ground knows */
    tune_trees *set[MOST_SETS + 1], *own; /* the ground; NULL where there was nothing to learn */
    double scale[MOST_SETS + 1], estimate_scale; /* 0: of a kind that tells nothing */
    double own_scale, ground_scale;
    int n_sets;
};

/* ---- making and ending ---- */

static const struct kind *find_kind(tec_context *cx, const char *name)
{
    for (int i = 0; i < BASE_COUNT(kinds); i++)
        if (base_same(kinds[i].name, name))
            return &kinds[i];
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no cost model '%s': expected rank, regression or none", name);
}

tune_model *tune_model_new(tec_context *cx, const char *kind, uint64_t seed)
{
    const struct kind *k = find_kind(cx, kind);
    tune_model *m = k ? calloc(1, sizeof *m) : NULL;

    if (!m)
        return k ? base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "cost model: out of memory") : NULL;
    *m = (tune_model){.cx = base_child(cx), .kind = k, .seed = seed, .ground_scale = 1, .estimate_scale = k->objective != NULL};
    return m;
}

void tune_model_close(tune_model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_sets; i++)
        tune_trees_free(m->set[i]);
    tune_trees_free(m->own);
    tec_context_free(m->cx);
    free(m);
}

const char *tune_model_kind(const tune_model *m)
{
    return m->kind->name;
}

/* ---- rows ---- */

bool tune_model_add(tec_context *cx, tune_model *m, uint64_t task, const float features[TUNE_N_FEATURES], double cost)
{
    if (isnan(cost) || cost <= 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "a cost of %g seconds: expected one above 0, infinity for a failure", cost), false;
    for (int i = 0; i < TUNE_N_FEATURES; i++)
        if (!isfinite(features[i]))
            return base_fail(cx, TEC_INVALID, (base_loc){0}, "feature '%s' is %g: expected a finite number", tune_feature_name(cx, i),
                             (double)features[i]),
                   false;
    row *r = base_new(m->cx, row);
    *r = (row){.task = task, .cost = cost, .features = base_copy(m->cx, features, sizeof *features * TUNE_N_FEATURES)};
    base_push(m->cx, &m->rows, r);
    return true;
}

bool tune_model_knows(const tune_model *m)
{
    return m->estimate_scale != 0 || tune_model_count(m) > 0;
}

int tune_model_count(const tune_model *m)
{
    return m->n_ground + m->rows.n;
}

/* ---- learning ---- */

/* By task in the order of their first rows; within a task in the order of the rows. */
static const row **by_task(tec_context *cx, const row *const *rows, int n, tune_data *out)
{
    const row **sorted = base_array(cx, const row *, n + 1);
    bool *taken = base_array(cx, bool, n + 1);
    unsigned *group = base_array(cx, unsigned, n + 1);
    int filled = 0;

    for (int first = 0; first < n; first++) {
        if (taken[first])
            continue;
        for (int i = first; i < n; i++)
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

/* Relative throughput within each task; false where no task has two different ones: there is nothing to learn. */
static bool label(const row **rows, const tune_data *d, float *out)
{
    bool differ = false;

    for (int g = 0, i = 0; g < d->n_groups; i += (int)d->group[g++]) {
        double best = INFINITY;

        for (unsigned j = 0; j < d->group[g]; j++)
            best = fmin(best, rows[i + (int)j]->cost);
        for (unsigned j = 0; j < d->group[g]; j++) {
            out[i + (int)j] = isinf(rows[i + (int)j]->cost) ? 0 : (float)(best / rows[i + (int)j]->cost);
            differ = differ || out[i + (int)j] != out[i];
        }
    }
    return differ;
}

static bool predict_ground(tec_context *cx, const tune_model *m, const float *features, int n, double scale, double *score)
{
    for (int i = 0; i < n; i++)
        score[i] -= scale * m->estimate_scale * (double)features[(size_t)i * TUNE_N_FEATURES + TUNE_PROGRAM_estimate];
    for (int i = 0; i < m->n_sets; i++)
        if (!tune_trees_predict(cx, m->set[i], features, n, scale * m->scale[i], score))
            return false;
    return true;
}

/* The standard deviation; 1 where all are equal. */
static double spread(const double *score, int n)
{
    double sum = 0, squares = 0;

    for (int i = 0; i < n; i++) {
        sum += score[i];
        squares += score[i] * score[i];
    }
    double variance = squares / n - sum / n * (sum / n);
    return variance > 1e-12 ? sqrt(variance) : 1;
}

/* What the ground and the own trees count. */
typedef struct {
    tune_trees *own; /* NULL: there is nothing to learn */
    double own_scale, ground_scale, weight;
} lesson;

static bool weigh(tec_context *cx, const tune_model *m, const tune_data *d, lesson *out)
{
    enum { EQUAL = 64 }; /* rows of a task, of as much weight as the ground */
    double *own = base_array(cx, double, d->n), *ground = base_array(cx, double, d->n), weight = (double)d->n / (d->n + EQUAL * d->n_groups);

    if (!tune_trees_predict(cx, out->own, d->features, d->n, 1, own) || !predict_ground(cx, m, d->features, d->n, 1, ground))
        return false;
    out->weight = weight;
    out->own_scale = weight / spread(own, d->n);
    out->ground_scale = (1 - weight) / spread(ground, d->n);
    return true;
}

/* From the newest rows. */
static bool learn(tec_context *cx, const tune_model *m, const char *objective, lesson *out)
{
    int skipped = m->rows.n > MOST_ROWS ? m->rows.n - MOST_ROWS : 0;
    tune_data d = {.n = m->rows.n - skipped};
    const row **rows = by_task(cx, (const row *const *)m->rows.at + skipped, d.n, &d);
    float *labels = base_array(cx, float, d.n), *features = base_array(cx, float, (size_t)d.n * TUNE_N_FEATURES);

    if (!label(rows, &d, labels))
        return true;
    for (int i = 0; i < d.n; i++)
        memcpy(features + (size_t)i * TUNE_N_FEATURES, rows[i]->features, sizeof *features * TUNE_N_FEATURES);
    d.features = features;
    d.label = labels;
    out->own = tune_trees_fit(cx, objective, m->seed, &d);
    return out->own && weigh(cx, m, &d, out);
}

bool tune_model_fit(tec_context *cx, tune_model *m)
{
    lesson found = {.ground_scale = 1};

    if (!m->kind->objective || m->fitted == m->rows.n)
        return true;
    tec_context *scratch = base_child(cx);
    bool ok = learn(scratch, m, m->kind->objective, &found);
    base_adopt(cx, scratch);
    tec_context_free(scratch);
    tune_trees_free(ok ? m->own : found.own);
    if (!ok)
        return false;
    m->own = found.own;
    m->own_scale = found.own_scale;
    m->ground_scale = found.ground_scale;
    m->fitted = m->rows.n;
    return true;
}

bool tune_model_may_settle(const tune_model *m)
{
    return m->n_sets + N_OBJECTIVES <= MOST_SETS;
}

/* As every kind that learns does it. */
static bool learn_all(tec_context *cx, const tune_model *m, lesson found[N_OBJECTIVES])
{
    bool ok = true;
    int n = 0;

    for (int i = 0; i < BASE_COUNT(kinds) && ok; i++)
        ok = !kinds[i].objective || learn(cx, m, kinds[i].objective, &found[n++]);
    for (int i = 0; i < N_OBJECTIVES && !ok; i++)
        tune_trees_free(found[i].own);
    return ok;
}

/* What was learned counts no more than this where other tasks follow: that it knows its own rows by heart does not make it wiser about others. */
static const double MOST_WEIGHT = 0.5;

static void lay_on_ground(tune_model *m, const lesson found[N_OBJECTIVES])
{
    double weight = fmin(found[0].weight, MOST_WEIGHT), above = (1 - weight) / (1 - found[0].weight);

    for (int i = 0; i < m->n_sets; i++)
        m->scale[i] *= found[0].ground_scale * above;
    m->estimate_scale *= found[0].ground_scale * above;
    for (int i = 0; i < N_OBJECTIVES; i++) {
        m->scale[m->n_sets] = found[i].own_scale * weight / found[i].weight / N_OBJECTIVES;
        m->set[m->n_sets++] = found[i].own;
    }
}

bool tune_model_settle(tec_context *cx, tune_model *m)
{
    lesson found[N_OBJECTIVES] = {{0}};

    if (!tune_model_may_settle(m))
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "a cost model can be settled %d times: make a new one from records", MOST_SETTLED), false;
    tec_context *scratch = base_child(cx);
    bool ok = !m->kind->objective || m->rows.n == 0 || learn_all(scratch, m, found);
    base_adopt(cx, scratch);
    tec_context_free(scratch);
    if (!ok)
        return false;
    if (found[0].own)
        lay_on_ground(m, found);
    tune_trees_free(m->own);
    m->own = NULL;
    m->ground_scale = 1;
    m->n_ground += m->rows.n;
    m->fitted = 0;
    m->rows = (base_vec){0};
    base_reset(m->cx);
    return true;
}

/* ---- asking ---- */

static bool check_rows(tec_context *cx, const float *features, int n)
{
    for (size_t i = 0; i < (size_t)n * TUNE_N_FEATURES; i++)
        if (!isfinite(features[i]))
            return base_fail(cx, TEC_INVALID, (base_loc){0}, "row %d: feature '%s' is %g: expected a finite number", (int)(i / TUNE_N_FEATURES),
                             tune_feature_name(cx, (int)(i % TUNE_N_FEATURES)), (double)features[i]),
                   false;
    return true;
}

bool tune_model_predict(tec_context *cx, tune_model *m, const float *features, int n, double *score)
{
    if (!check_rows(cx, features, n))
        return false;
    for (int i = 0; i < n; i++)
        score[i] = 0;
    if (n == 0)
        return true;
    base_mark mark = base_arena_mark(cx);
    bool ok = predict_ground(cx, m, features, n, m->ground_scale, score) &&
              (!m->own || tune_trees_predict(cx, m->own, features, n, m->own_scale, score));
    if (ok)
        base_arena_release(cx, mark);
    return ok;
}

bool tune_model_importance(tec_context *cx, tune_model *m, double gain[TUNE_N_FEATURES])
{
    double sum = 0;

    memset(gain, 0, sizeof *gain * TUNE_N_FEATURES);
    for (int i = 0; i < m->n_sets; i++)
        if (!tune_trees_gain(cx, m->set[i], gain))
            return false;
    if (m->own && !tune_trees_gain(cx, m->own, gain))
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

static bool save_set(tec_context *cx, tune_trees *t, double scale, base_text *out)
{
    base_addn(cx, out, (const char *)&scale, sizeof scale);
    return tune_trees_save(cx, t, out);
}

bool tune_model_save(tec_context *cx, tune_model *m, const void **data, size_t *size)
{
    header h = {.magic = magic, .format = FORMAT, .features_version = TUNE_FEATURES_VERSION, .n_features = TUNE_N_FEATURES};
    base_text out = {0};

    if (!tune_model_fit(cx, m))
        return false;
    h.kind = (uint32_t)(m->kind - kinds);
    h.n_sets = (uint32_t)m->n_sets + (m->own != NULL);
    h.n_rows = (uint32_t)tune_model_count(m);
    h.estimate_scale = m->ground_scale * m->estimate_scale;
    base_addn(cx, &out, (const char *)&h, sizeof h);
    for (int i = 0; i < m->n_sets; i++)
        if (!save_set(cx, m->set[i], m->ground_scale * m->scale[i], &out))
            return false;
    if (m->own && !save_set(cx, m->own, m->own_scale, &out))
        return false;
    h.hash = hash_of(out.data, out.n);
    memcpy(out.data, &h, sizeof h);
    *data = out.data;
    *size = out.n;
    return true;
}

static void *refuse(tec_context *cx, const char *why)
{
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "cannot load a cost model: %s", why);
}

static tune_model *load_sets(tec_context *cx, const header *h, const uint8_t *at, const uint8_t *end, uint64_t seed)
{
    tune_model *m = tune_model_new(cx, kinds[h->kind].name, seed);

    for (uint32_t i = 0; m && i < h->n_sets; i++) {
        if ((size_t)(end - at) >= sizeof *m->scale) {
            memcpy(&m->scale[i], at, sizeof *m->scale);
            at += sizeof *m->scale;
        }
        m->set[i] = tune_trees_load(cx, &at, end);
        if (!m->set[i]) {
            tune_model_close(m);
            return NULL;
        }
        m->n_sets++;
    }
    if (m) {
        m->n_ground = (int)h->n_rows;
        m->estimate_scale = h->estimate_scale;
    }
    return m;
}

tune_model *tune_model_load(tec_context *cx, const void *data, size_t size, uint64_t seed)
{
    header h;

    if (!data || size < sizeof h)
        return refuse(cx, base_format(cx, "%zu bytes are less than its header has", size));
    memcpy(&h, data, sizeof h);
    if (h.magic != magic)
        return refuse(cx, "the bytes are none");
    if (h.hash != hash_of(data, size))
        return refuse(cx, "it is damaged");
    if (h.format != FORMAT || h.features_version != TUNE_FEATURES_VERSION || h.n_features != TUNE_N_FEATURES)
        return refuse(cx, base_format(cx, "it has format %u and %u features of version %u, this program has %d and %d of %d", h.format,
                                      h.n_features, h.features_version, FORMAT, TUNE_N_FEATURES, TUNE_FEATURES_VERSION));
    if (h.kind >= BASE_COUNT(kinds) || h.n_sets > MOST_SETS + 1 || h.n_rows > INT32_MAX)
        return refuse(cx, "it is damaged");
    return load_sets(cx, &h, (const uint8_t *)data + sizeof h, (const uint8_t *)data + size, seed);
}
