/* autotune/trees.c -- XGBoost's C API. See trees.h. */
#include "autotune/trees.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

#include "base/guard.h"

struct tune_trees {
    BoosterHandle booster;
    int32_t n, column[TUNE_N_FEATURES]; /* of a row, in the order in which XGBoost gets them */
};

/* False with XGBoost's message, less its stack. */
static bool good(tec_context *cx, int status, const char *what)
{
    const char *why = status == 0 ? "" : XGBGetLastError();

    if (status != 0)
        base_fail(cx, TEC_INTERNAL, (base_loc){0}, "cost model: cannot %s: %.*s", what,
                  (int)strcspn(why, "\n"), why);
    return status == 0;
}

/* ---- making and ending ---- */

/* The library's memory and ours; NULL is allowed. */
void tune_trees_free(tune_trees *trees)
{
    if (trees)
        XGBoosterFree(trees->booster);
    free(trees);
}

static void free_trees(void *t)
{
    tune_trees_free(t);
}

/* Held until they are ready for the caller. */
static tune_trees *new_trees(tec_context *cx, base_held *held)
{
    tune_trees *trees = base_calloc(cx, 1, sizeof *trees);

    base_hold(cx, held, free_trees, trees);
    /* The library's messages are for the reader of its own programs. */
    if (good(cx, XGBSetGlobalConfig("{\"verbosity\": 0}"), "start") &&
        good(cx, XGBoosterCreate(NULL, 0, &trees->booster), "start"))
        return trees;
    base_drop(held);
    return NULL;
}

bool tune_trees_save(tec_context *cx, tune_trees *trees, base_text *out)
{
    bst_ulong n = 0;
    const char *bytes = NULL;

    if (!good(cx, XGBoosterSaveModelToBuffer(trees->booster, "{\"format\": \"ubj\"}", &n, &bytes), "save"))
        return false;
    uint64_t size = n;
    base_addn(cx, out, (const char *)&trees->n, sizeof trees->n);
    base_addn(cx, out, (const char *)trees->column, sizeof trees->column);
    base_addn(cx, out, (const char *)&size, sizeof size);
    base_addn(cx, out, bytes, n);
    return true;
}

/* False where so many bytes are not there. */
static bool take(const uint8_t **at, const uint8_t *end, void *out, size_t size)
{
    if ((size_t)(end - *at) < size)
        return false;
    memcpy(out, *at, size);
    *at += size;
    return true;
}

/* Reads trees from *at and moves it behind them. The bytes come from a file: sizes are checked before the
 * library sees them. */
tune_trees *tune_trees_load(tec_context *cx, const uint8_t **at, const uint8_t *end)
{
    base_held held;
    tune_trees *trees = new_trees(cx, &held);
    uint64_t size = 0;

    if (!trees)
        return NULL;
    if (take(at, end, &trees->n, sizeof trees->n) && take(at, end, trees->column, sizeof trees->column) &&
        take(at, end, &size, sizeof size) && (uint64_t)(end - *at) >= size &&
        good(cx, XGBoosterLoadModelFromBuffer(trees->booster, *at, size), "load") &&
        good(cx, XGBoosterSetParam(trees->booster, "nthread", "1"), "load")) {
        *at += size;
        base_keep(&held);
        return trees;
    }
    base_drop(&held);
    return base_fail(cx, TEC_INVALID, (base_loc){0},
                     "cannot load a cost model: the bytes of its trees end too early, or XGBoost does not "
                     "read them");
}

/* ---- rows ---- */

/* Whether two columns are equal in all rows. */
static bool same_column(const tune_data *data, int a, int b)
{
    for (size_t i = 0; i < (size_t)data->n; i++)
        if (data->features[i * TUNE_N_FEATURES + (size_t)a] !=
            data->features[i * TUNE_N_FEATURES + (size_t)b])
            return false;
    return true;
}

/* A column with one value splits nothing. */
static bool differs(const tune_data *data, int column)
{
    for (size_t i = 1; i < (size_t)data->n; i++)
        if (data->features[i * TUNE_N_FEATURES + (size_t)column] != data->features[column])
            return true;
    return false;
}

/* Keeps the columns that tell rows apart, and of equal ones the first. Fewer columns make fitting faster, and
 * trees that are saved name the columns they were given. */
static void choose_columns(tune_trees *trees, const tune_data *data)
{
    for (int c = 0; c < TUNE_N_FEATURES; c++) {
        bool wanted = differs(data, c);

        for (int i = 0; wanted && i < trees->n; i++)
            wanted = !same_column(data, trees->column[i], c);
        if (wanted)
            trees->column[trees->n++] = c;
    }
    if (trees->n == 0)
        trees->column[trees->n++] = 0; /* XGBoost wants one: the trees are single leaves */
}

/* The chosen columns of count rows, as XGBoost's C API takes an array: in the text form of NumPy's array
 * interface. */
static const char *array_text(tec_context *cx, const tune_trees *trees, const float *features, int count)
{
    float *data = base_array(cx, float, (size_t)count *(size_t)trees->n);

    for (int i = 0; i < count; i++)
        for (int c = 0; c < trees->n; c++)
            data[(size_t)i * (size_t)trees->n + (size_t)c] =
                features[(size_t)i * TUNE_N_FEATURES + (size_t)trees->column[c]];
    return base_format(
        cx, "{\"data\": [%" PRIuPTR ", false], \"shape\": [%d, %d], \"typestr\": \"<f4\", \"version\": 3}",
        (uintptr_t)data, count, (int)trees->n);
}

/* ---- learning ---- */

/* Few, shallow trees of coarse bins: what hundreds of noisy rows can tell, in a fraction of a second. */
enum { ROUNDS = 50 };
static const char *const settings[][2] = {
    {"nthread", "1"},
    {"tree_method", "hist"},
    {"max_bin", "32"},
    {"max_depth", "5"},
    {"eta", "0.2"},
    {"base_score", "0"},
    {"lambda", "1"},
    {"subsample", "1"},
    {"colsample_bynode", "1"},
    {"min_child_weight", "0.5"},
};

static bool set_up(tec_context *cx, tune_trees *trees, const char *objective, uint64_t seed)
{
    bool ok = good(cx, XGBoosterSetParam(trees->booster, "objective", objective), "set up");

    for (int i = 0; ok && i < BASE_COUNT(settings); i++)
        ok = good(cx, XGBoosterSetParam(trees->booster, settings[i][0], settings[i][1]), "set up");
    ok =
        ok && good(cx, XGBoosterSetParam(trees->booster, "num_feature", base_format(cx, "%d", (int)trees->n)),
                   "set up");
    return ok &&
           good(cx, XGBoosterSetParam(trees->booster, "seed", base_format(cx, "%" PRIu64, seed % INT32_MAX)),
                "set up");
}

static bool fill(tec_context *cx, DMatrixHandle matrix, const tune_data *data)
{
    bst_ulong n = (bst_ulong)data->n;

    return good(cx, XGDMatrixSetFloatInfo(matrix, "label", data->label, n), "take the labels") &&
           good(cx, XGDMatrixSetUIntInfo(matrix, "group", data->group, (bst_ulong)data->n_groups),
                "take the groups");
}

static void free_matrix(void *m)
{
    XGDMatrixFree(m);
}

/* One call of the library per round, so that a cancel is seen between rounds. One thread: results must not
 * depend on their number. */
static bool learn(tec_context *cx, tune_trees *trees, const char *objective, uint64_t seed,
                  const tune_data *data)
{
    DMatrixHandle m = NULL;
    base_held held;

    choose_columns(trees, data);
    if (!good(cx,
              XGDMatrixCreateFromDense(array_text(cx, trees, data->features, data->n),
                                       "{\"missing\": NaN, \"nthread\": 1}", &m),
              "take the rows"))
        return false;
    base_hold(cx, &held, free_matrix, m);
    bool ok = fill(cx, m, data) && set_up(cx, trees, objective, seed);
    for (int i = 0; ok && i < ROUNDS; i++) {
        base_check(cx);
        ok = good(cx, XGBoosterUpdateOneIter(trees->booster, i, m), "learn");
    }
    base_drop(&held);
    return ok;
}

tune_trees *tune_trees_fit(tec_context *cx, const char *objective, uint64_t seed, const tune_data *data)
{
    base_held held;
    tune_trees *trees = new_trees(cx, &held);

    if (!trees)
        return NULL;
    if (!learn(cx, trees, objective, seed, data)) {
        base_drop(&held);
        return NULL;
    }
    base_keep(&held);
    return trees;
}

/* ---- asking ---- */

/* Adds scale times the prediction of each row to score[row]. */
bool tune_trees_predict(tec_context *cx, tune_trees *trees, const float *features, int count, double scale,
                        double *score)
{
    const char *how = "{\"type\": 1, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
                      "\"strict_shape\": false, "
                      "\"cache_id\": 0, \"missing\": NaN}";
    const bst_ulong *shape;
    bst_ulong n_shape;
    const float *result;

    if (!good(cx,
              XGBoosterPredictFromDense(trees->booster, array_text(cx, trees, features, count), how, NULL,
                                        &shape, &n_shape, &result),
              "predict"))
        return false;
    for (int i = 0; i < count; i++)
        score[i] += scale * (double)result[i];
    return true;
}

/* Adds the gain of each feature; the library names columns f0, f1, ..., which are mapped back to features. */
bool tune_trees_gain(tec_context *cx, tune_trees *trees, double gain[TUNE_N_FEATURES])
{
    const char **name;
    const bst_ulong *shape;
    bst_ulong n, n_shape;
    const float *score;

    if (!good(cx,
              XGBoosterFeatureScore(trees->booster, "{\"importance_type\": \"total_gain\"}", &n, &name,
                                    &n_shape, &shape, &score),
              "count gains"))
        return false;
    for (bst_ulong i = 0; i < n; i++) {
        int feature = atoi(name[i] + 1); /* "f12" */

        if (feature >= 0 && feature < trees->n)
            gain[trees->column[feature]] += (double)score[i];
    }
    return true;
}
