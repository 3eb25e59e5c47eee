/* autotune/prior.c -- see prior.h. */
#include "autotune/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/source.h"
#include "te/text.h"

void tune_record_features(tec_context *cx, store_record *record, const float row[TUNE_N_FEATURES])
{
    record->features_version = TUNE_FEATURES_VERSION;
    record->features = tune_features_pack(cx, row);
    record->features_size = TUNE_FEATURES_SIZE;
}

static bool schedule_again(tec_context *cx, const store_record *record, const target *machine, float *out)
{
    te_file *file = record->workload.definition && *record->workload.definition
                        ? te_parse(cx, "record", record->workload.definition)
                        : NULL;
    const ir_program *tree = file && file->defs.n > 0 ? te_tree(cx, file->defs.at[0]) : NULL;
    sched *s = tree ? sched_new(cx, tree, machine) : NULL;

    if (!s)
        return false;
    sched_use_intrinsics(s, &file->intrinsics);
    return sched_replay(s, "record", record->trace) && tune_features(cx, sched_tree(s), machine, NULL, out);
}

bool tune_features_of_record(tec_context *cx, const store_record *record, const target *machine,
                             float out[TUNE_N_FEATURES])
{
    if (tune_features_unpack(record->features, record->features_size, record->features_version, out))
        return true;
    tec_context *scratch = base_child(cx);
    bool ok = schedule_again(scratch, record, machine, out);
    tec_context_free(scratch);
    return ok;
}

double tune_cost_of_record(const store_record *record)
{
    return record->status == STORE_OK && record->median > 0 ? record->median : INFINITY;
}

/* ---- which workloads ---- */

typedef struct {
    const store_workload *workload;
    double distance; /* of a task's own: -1; of another family: infinite */
    int place;
} candidate;

static double distance(const store_workload *workload, const space_task *task)
{
    double sum = 0;

    if (base_same(workload->exact_key, task->exact_key))
        return -1;
    if (!base_same(workload->family, task->family) || workload->n_shape != task->n_shape)
        return INFINITY;
    for (int i = 0; i < workload->n_shape; i++)
        sum += pow(log2(workload->shape[i] + 1) - log2(task->shape[i] + 1), 2);
    return sum;
}

static double nearest(const store_workload *workload, const space_task *const *tasks, int n)
{
    double least = INFINITY;

    for (int i = 0; i < n; i++)
        least = fmin(least, distance(workload, tasks[i]));
    return least;
}

static int by_distance(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    return x->distance != y->distance ? (x->distance < y->distance ? -1 : 1) : x->place - y->place;
}

/* All workloads of the target, the nearest first. NULL with an error. */
static candidate *related(tec_context *cx, store *db, const space_task *const *tasks, int n_tasks,
                          const char *target_key, int *count)
{
    const store_summary *all = store_summaries(cx, db, &(store_query){.target = target_key}, count);
    candidate *out = base_array(cx, candidate, *count + 1);

    if (!all && base_failed(cx))
        return NULL;
    for (int i = 0; i < *count; i++)
        out[i] = (candidate){&all[i].workload, nearest(&all[i].workload, tasks, n_tasks), i};
    qsort(out, (size_t)*count, sizeof *out, by_distance);
    return out;
}

/* ---- their rows ---- */

/* The first records of the workload: a tuner's first are spread over the space, its last are all good. */
static bool add_workload(tec_context *cx, tune_model *model, store *db, const store_workload *workload,
                         const target *machine, int most, tune_taught *out)
{
    store_query q = {.exact_key = workload->exact_key,
                     .anchor_key = workload->anchor_key,
                     .target = tune_target_key(cx, machine)};
    store_cursor *cursor = store_find(cx, db, &q);
    float row[TUNE_N_FEATURES];
    bool ok = true;
    int n = 0;

    for (store_record r; ok && n < most && store_next(cx, cursor, &r);) {
        if (r.status == STORE_DEVICE_ERROR || r.status == STORE_CANCELLED)
            continue;
        if (!tune_features_of_record(cx, &r, machine, row)) {
            out->passed_over++;
            continue;
        }
        ok = tune_model_add(cx, model, workload->exact_hash, row, tune_cost_of_record(&r));
        n++;
    }
    out->rows += n;
    out->workloads += n > 0;
    return store_end(cursor) && ok;
}

/* Teaches the model from the store: the most closely related workloads, a limited number of rows from each,
 * so that one that was tuned for days does not drown the others. */
bool tune_teach(tec_context *cx, tune_model *model, store *db, const space_task *const *tasks, int n_tasks,
                const target *machine, const tune_teach_options *options, tune_taught *out)
{
    enum { WORKLOADS = 12, ROWS = 160, ALL_ROWS = 4096 };
    int others = options && options->workloads ? options->workloads : WORKLOADS,
        rows = options ? options->rows : 0, n = 0;
    candidate *from = related(cx, db, tasks, n_tasks, tune_target_key(cx, machine), &n);

    *out = (tune_taught){0};
    if (!from)
        return false;
    n = n < n_tasks + others ? n : n_tasks + others;
    rows = rows ? rows : n && ALL_ROWS / n < ROWS ? ALL_ROWS / n : ROWS;
    for (int i = 0; i < n && others > 0; i++) {
        int before = out->workloads;

        if (!add_workload(cx, model, db, from[i].workload, machine, rows, out))
            return false;
        others -= from[i].distance >= 0 && out->workloads > before;
    }
    return out->rows == 0 || tune_model_settle(cx, model);
}

/* ---- their points ---- */

enum { NEAR_WORKLOADS = 8, NEAR_POINTS = 4 };

/* The fastest points of a workload, moved into this space. Records after `last` are left out: a resumed
 * session must see what its first run saw. */
static bool add_points(tec_context *cx, store *db, const store_workload *workload, const space *sp,
                       const target *machine, int64_t last, base_vec *out)
{
    store_query q = {.exact_key = workload->exact_key,
                     .anchor_key = workload->anchor_key,
                     .target = tune_target_key(cx, machine),
                     .only_ok = true,
                     .fastest_first = true};
    store_cursor *cursor = store_find(cx, db, &q);

    for (store_record r; out->n < NEAR_POINTS && store_next(cx, cursor, &r);) {
        space_point p;

        if (r.id <= last && *r.point && space_point_near(cx, sp, r.point, &p))
            base_push(cx, out, base_copy(cx, &p, sizeof p));
    }
    return store_end(cursor);
}

/* Points for the first batch, in turns from the related workloads. *count: how many; NULL: an error. */
const space_point *tune_related_points(tec_context *cx, store *db, const space_task *task, const space *sp,
                                       const target *machine, int64_t last, int *count)
{
    int n_from;
    candidate *from = related(cx, db, &task, 1, tune_target_key(cx, machine), &n_from);
    space_point *out = base_array(cx, space_point, NEAR_WORKLOADS * NEAR_POINTS);
    base_vec points[NEAR_WORKLOADS] = {0};

    *count = 0;
    for (int i = 0; from && i < n_from && i < NEAR_WORKLOADS && isfinite(from[i].distance); i++)
        if (!add_points(cx, db, from[i].workload, sp, machine, last, &points[i]))
            return NULL;
    for (int k = 0; k < NEAR_POINTS; k++)
        for (int i = 0; i < NEAR_WORKLOADS; i++)
            if (k < points[i].n)
                out[(*count)++] = *(const space_point *)points[i].at[k];
    return from ? out : NULL;
}

/* As text, one to a line. */
enum { POINTS_VERSION = 1 };

/* Stores points as texts, under a name, for another session on the same target. */
bool tune_keep_points(tec_context *cx, store *db, const space *sp, const space_point *point, int count,
                      const target *machine, const char *name)
{
    base_text text = {0};

    for (int i = 0; i < count; i++)
        base_addf(cx, &text, "%s\n", space_point_text(cx, sp, &point[i]));
    return store_put_model(cx, db,
                           &(store_model){.target = tune_target_key(cx, machine),
                                          .name = name,
                                          .version = POINTS_VERSION,
                                          .data = text.data,
                                          .size = text.n,
                                          .n_records = count});
}

const space_point *tune_kept_points(tec_context *cx, store *db, const space *sp, const target *machine,
                                    const char *name, int *count)
{
    const store_model *kept = store_get_model(cx, db, tune_target_key(cx, machine), name, POINTS_VERSION);
    char *line = kept ? base_strndup(cx, kept->data, kept->size) : NULL, *rest;
    space_point *out = kept ? base_array(cx, space_point, NEAR_WORKLOADS * NEAR_POINTS) : NULL;

    *count = 0;
    for (line = line ? strtok_r(line, "\n", &rest) : NULL; line && *count < NEAR_WORKLOADS * NEAR_POINTS;
         line = strtok_r(NULL, "\n", &rest))
        *count += space_point_near(cx, sp, line, &out[*count]);
    return out;
}

/* ---- models in the store ---- */

bool tune_keep_model(tec_context *cx, tune_model *model, store *db, const target *machine, const char *name)
{
    store_model kept = {.target = tune_target_key(cx, machine),
                        .name = name,
                        .version = TUNE_FEATURES_VERSION,
                        .n_records = tune_model_count(model)};

    return tune_model_save(cx, model, &kept.data, &kept.size) && store_put_model(cx, db, &kept);
}

tune_model *tune_kept_model(tec_context *cx, store *db, const target *machine, const char *name,
                            uint64_t seed)
{
    const store_model *kept =
        store_get_model(cx, db, tune_target_key(cx, machine), name, TUNE_FEATURES_VERSION);

    return kept ? tune_model_load(cx, kept->data, kept->size, seed) : NULL;
}

/* ---- what a tuner begins with ---- */

/* The one that was kept for the target, where it knows more than the records say and can still learn; NULL:
 * there is none, or *why it is of no use. */
static tune_model *wiser_model(tec_context *cx, store *db, const char *kind, uint64_t seed,
                               const target *machine, const char **why)
{
    int64_t records = store_count(cx, db, &(store_query){.target = tune_target_key(cx, machine)});
    tec_context *trial = base_child(cx);
    tune_model *model = tune_kept_model(trial, db, machine, kind, seed);

    if (model)
        tune_model_hand_up(model, cx);
    *why = base_failed(trial) ? base_format(cx, "; %s", tec_context_error(trial)) : "";
    tec_context_free(trial);
    if (model && records >= 0 && tune_model_count(model) > records && tune_model_may_settle(model))
        return model;
    tune_model_close(model);
    return NULL;
}

/* The model that a session starts with: the one kept for this target if there is a usable one, else one
 * taught from related records. *what says which, for the user. */
tune_model *tune_prior(tec_context *cx, store *db, const char *kind, uint64_t seed,
                       const space_task *const *tasks, int n_tasks, const target *machine, const char **what)
{
    const char *why;
    tune_model *model = wiser_model(cx, db, kind, seed, machine, &why);
    tune_taught r = {0};

    if (model) {
        *what = base_format(cx, "the model kept for this target, learned from %d measurements",
                            tune_model_count(model));
        return model;
    }
    model = tune_model_new(cx, kind, seed);
    if (model && !tune_teach(cx, model, db, tasks, n_tasks, machine, NULL, &r)) {
        tune_model_close(model);
        return NULL;
    }
    *what = r.rows ? base_format(cx, "%d measurements of %d related kernels%s", r.rows, r.workloads, why)
                   : base_format(cx, "%s: the store has no records for this target%s",
                                 tune_model_knows(model) ? "an estimate" : "nothing", why);
    return model;
}
