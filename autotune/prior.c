/* autotune/prior.c -- see prior.h. */
#include "autotune/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/source.h"
#include "te/text.h"

void tune_record_features(tec_context *cx, store_record *r, const float row[TUNE_N_FEATURES])
{
    r->features_version = TUNE_FEATURES_VERSION;
    r->features = tune_features_pack(cx, row);
    r->features_size = TUNE_FEATURES_SIZE;
}

static bool schedule_again(tec_context *cx, const store_record *r, const target *t, float *out)
{
    te_file *f = r->workload.definition && *r->workload.definition
                     ? te_parse(cx, "record", r->workload.definition)
                     : NULL;
    const ir_program *tree = f && f->defs.n > 0 ? te_tree(cx, f->defs.at[0]) : NULL;
    sched *s = tree ? sched_new(cx, tree, t) : NULL;

    if (!s)
        return false;
    sched_use_intrinsics(s, &f->intrinsics);
    return sched_replay(s, "record", r->trace) && tune_features(cx, sched_tree(s), t, NULL, out);
}

bool tune_features_of_record(tec_context *cx, const store_record *r, const target *t,
                             float out[TUNE_N_FEATURES])
{
    if (tune_features_unpack(r->features, r->features_size, r->features_version, out))
        return true;
    tec_context *scratch = base_child(cx);
    bool ok = schedule_again(scratch, r, t, out);
    tec_context_free(scratch);
    return ok;
}

double tune_cost_of_record(const store_record *r)
{
    return r->status == STORE_OK && r->median > 0 ? r->median : INFINITY;
}

/* ---- which workloads ---- */

typedef struct {
    const store_workload *workload;
    double distance; /* of a task's own: -1; of another family: infinite */
    int place;
} candidate;

static double distance(const store_workload *w, const space_task *task)
{
    double sum = 0;

    if (base_same(w->exact_key, task->exact_key))
        return -1;
    if (!base_same(w->family, task->family) || w->n_shape != task->n_shape)
        return INFINITY;
    for (int i = 0; i < w->n_shape; i++)
        sum += pow(log2(w->shape[i] + 1) - log2(task->shape[i] + 1), 2);
    return sum;
}

static double nearest(const store_workload *w, const space_task *const *tasks, int n)
{
    double least = INFINITY;

    for (int i = 0; i < n; i++)
        least = fmin(least, distance(w, tasks[i]));
    return least;
}

static int by_distance(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    return x->distance != y->distance ? (x->distance < y->distance ? -1 : 1) : x->place - y->place;
}

/* All workloads of the target, the nearest first. NULL with an error. */
static candidate *related(tec_context *cx, store *db, const space_task *const *tasks, int n_tasks,
                          const char *target_key, int *n)
{
    const store_summary *all = store_summaries(cx, db, &(store_query){.target = target_key}, n);
    candidate *out = base_array(cx, candidate, *n + 1);

    if (!all && base_failed(cx))
        return NULL;
    for (int i = 0; i < *n; i++)
        out[i] = (candidate){&all[i].workload, nearest(&all[i].workload, tasks, n_tasks), i};
    qsort(out, (size_t)*n, sizeof *out, by_distance);
    return out;
}

/* ---- their rows ---- */

/* The first records of the workload: a tuner's first are spread over the space, its last are all good. */
static bool add_workload(tec_context *cx, tune_model *m, store *db, const store_workload *w, const target *t,
                         int most, tune_taught *out)
{
    store_query q = {
        .exact_key = w->exact_key, .anchor_key = w->anchor_key, .target = tune_target_key(cx, t)};
    store_cursor *c = store_find(cx, db, &q);
    float row[TUNE_N_FEATURES];
    bool ok = true;
    int n = 0;

    for (store_record r; ok && n < most && store_next(cx, c, &r);) {
        if (r.status == STORE_DEVICE_ERROR || r.status == STORE_CANCELLED)
            continue;
        if (!tune_features_of_record(cx, &r, t, row)) {
            out->passed_over++;
            continue;
        }
        ok = tune_model_add(cx, m, w->exact_hash, row, tune_cost_of_record(&r));
        n++;
    }
    out->rows += n;
    out->workloads += n > 0;
    return store_end(c) && ok;
}

/* Teaches the model from the store: the most closely related workloads, a limited number of rows from each,
 * so that one that was tuned for days does not drown the others. */
bool tune_teach(tec_context *cx, tune_model *m, store *db, const space_task *const *tasks, int n_tasks,
                const target *t, const tune_teach_options *options, tune_taught *out)
{
    enum { WORKLOADS = 12, ROWS = 160, ALL_ROWS = 4096 };
    int others = options && options->workloads ? options->workloads : WORKLOADS,
        rows = options ? options->rows : 0, n = 0;
    candidate *from = related(cx, db, tasks, n_tasks, tune_target_key(cx, t), &n);

    *out = (tune_taught){0};
    if (!from)
        return false;
    n = n < n_tasks + others ? n : n_tasks + others;
    rows = rows ? rows : n && ALL_ROWS / n < ROWS ? ALL_ROWS / n : ROWS;
    for (int i = 0; i < n && others > 0; i++) {
        int before = out->workloads;

        if (!add_workload(cx, m, db, from[i].workload, t, rows, out))
            return false;
        others -= from[i].distance >= 0 && out->workloads > before;
    }
    return out->rows == 0 || tune_model_settle(cx, m);
}

/* ---- their points ---- */

enum { NEAR_WORKLOADS = 8, NEAR_POINTS = 4 };

/* The fastest points of a workload, moved into this space. Records after `last` are left out: a resumed
 * session must see what its first run saw. */
static bool add_points(tec_context *cx, store *db, const store_workload *w, const space *sp, const target *t,
                       int64_t last, base_vec *out)
{
    store_query q = {.exact_key = w->exact_key,
                     .anchor_key = w->anchor_key,
                     .target = tune_target_key(cx, t),
                     .only_ok = true,
                     .fastest_first = true};
    store_cursor *c = store_find(cx, db, &q);

    for (store_record r; out->n < NEAR_POINTS && store_next(cx, c, &r);) {
        space_point p;

        if (r.id <= last && *r.point && space_point_near(cx, sp, r.point, &p))
            base_push(cx, out, base_copy(cx, &p, sizeof p));
    }
    return store_end(c);
}

/* Points for the first batch, in turns from the related workloads. *n: how many; NULL: an error. */
const space_point *tune_related_points(tec_context *cx, store *db, const space_task *task, const space *sp,
                                       const target *t, int64_t last, int *n)
{
    int n_from;
    candidate *from = related(cx, db, &task, 1, tune_target_key(cx, t), &n_from);
    space_point *out = base_array(cx, space_point, NEAR_WORKLOADS * NEAR_POINTS);
    base_vec points[NEAR_WORKLOADS] = {0};

    *n = 0;
    for (int i = 0; from && i < n_from && i < NEAR_WORKLOADS && isfinite(from[i].distance); i++)
        if (!add_points(cx, db, from[i].workload, sp, t, last, &points[i]))
            return NULL;
    for (int k = 0; k < NEAR_POINTS; k++)
        for (int i = 0; i < NEAR_WORKLOADS; i++)
            if (k < points[i].n)
                out[(*n)++] = *(const space_point *)points[i].at[k];
    return from ? out : NULL;
}

/* As text, one to a line. */
enum { POINTS_VERSION = 1 };

/* Stores points as texts, under a name, for another session on the same target. */
bool tune_keep_points(tec_context *cx, store *db, const space *sp, const space_point *p, int n,
                      const target *t, const char *name)
{
    base_text text = {0};

    for (int i = 0; i < n; i++)
        base_addf(cx, &text, "%s\n", space_point_text(cx, sp, &p[i]));
    return store_put_model(cx, db,
                           &(store_model){.target = tune_target_key(cx, t),
                                          .name = name,
                                          .version = POINTS_VERSION,
                                          .data = text.data,
                                          .size = text.n,
                                          .n_records = n});
}

const space_point *tune_kept_points(tec_context *cx, store *db, const space *sp, const target *t,
                                    const char *name, int *n)
{
    const store_model *kept = store_get_model(cx, db, tune_target_key(cx, t), name, POINTS_VERSION);
    char *line = kept ? base_strndup(cx, kept->data, kept->size) : NULL, *rest;
    space_point *out = kept ? base_array(cx, space_point, NEAR_WORKLOADS * NEAR_POINTS) : NULL;

    *n = 0;
    for (line = line ? strtok_r(line, "\n", &rest) : NULL; line && *n < NEAR_WORKLOADS * NEAR_POINTS;
         line = strtok_r(NULL, "\n", &rest))
        *n += space_point_near(cx, sp, line, &out[*n]);
    return out;
}

/* ---- models in the store ---- */

bool tune_keep_model(tec_context *cx, tune_model *m, store *db, const target *t, const char *name)
{
    store_model kept = {.target = tune_target_key(cx, t),
                        .name = name,
                        .version = TUNE_FEATURES_VERSION,
                        .n_records = tune_model_count(m)};

    return tune_model_save(cx, m, &kept.data, &kept.size) && store_put_model(cx, db, &kept);
}

tune_model *tune_kept_model(tec_context *cx, store *db, const target *t, const char *name, uint64_t seed)
{
    const store_model *kept = store_get_model(cx, db, tune_target_key(cx, t), name, TUNE_FEATURES_VERSION);

    return kept ? tune_model_load(cx, kept->data, kept->size, seed) : NULL;
}

/* ---- what a tuner begins with ---- */

/* The one that was kept for the target, where it knows more than the records say and can still learn; NULL:
 * there is none, or *why it is of no use. */
static tune_model *wiser_model(tec_context *cx, store *db, const char *kind, uint64_t seed, const target *t,
                               const char **why)
{
    int64_t records = store_count(cx, db, &(store_query){.target = tune_target_key(cx, t)});
    tec_context *trial = base_child(cx);
    tune_model *m = tune_kept_model(trial, db, t, kind, seed);

    if (m)
        tune_model_hand_up(m, cx);
    *why = base_failed(trial) ? base_format(cx, "; %s", tec_context_error(trial)) : "";
    tec_context_free(trial);
    if (m && records >= 0 && tune_model_count(m) > records && tune_model_may_settle(m))
        return m;
    tune_model_close(m);
    return NULL;
}

/* The model that a session starts with: the one kept for this target if there is a usable one, else one
 * taught from related records. *what says which, for the user. */
tune_model *tune_prior(tec_context *cx, store *db, const char *kind, uint64_t seed,
                       const space_task *const *tasks, int n_tasks, const target *t, const char **what)
{
    const char *why;
    tune_model *m = wiser_model(cx, db, kind, seed, t, &why);
    tune_taught r = {0};

    if (m) {
        *what = base_format(cx, "the model kept for this target, learned from %d measurements",
                            tune_model_count(m));
        return m;
    }
    m = tune_model_new(cx, kind, seed);
    if (m && !tune_teach(cx, m, db, tasks, n_tasks, t, NULL, &r)) {
        tune_model_close(m);
        return NULL;
    }
    *what = r.rows ? base_format(cx, "%d measurements of %d related kernels%s", r.rows, r.workloads, why)
                   : base_format(cx, "%s: the store has no records for this target%s",
                                 tune_model_knows(m) ? "an estimate" : "nothing", why);
    return m;
}
