/* store/stats.c -- questions over many records: the nearest shapes, what was tried, what failed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql.h"

/* ---- the nearest shapes ---- */

typedef struct {
    double distance;
    int order; /* of two that are equally far the earlier comes first */
    const char *exact_key, *anchor_key;
} candidate;

/* Shapes act by their ratios: from 64 to 128 is as far as from 512 to 1024. */
static double distance(const double *left, const void *right, int count)
{
    double other[STORE_MAX_SHAPE], sum = 0;

    memcpy(other, right, (size_t)count * sizeof *other);
    for (int i = 0; i < count; i++) {
        double d = log1p(left[i]) - log1p(other[i]);

        sum += d * d;
    }
    return sqrt(sum);
}

static int nearer(const void *a, const void *b)
{
    const candidate *x = *(candidate *const *)a, *y = *(candidate *const *)b;

    return x->distance != y->distance ? (x->distance > y->distance) - (x->distance < y->distance)
                                      : x->order - y->order;
}

/* The condition takes NULL for "any". */
static void bind_any(store_stmt *st, const char *text)
{
    if (text)
        store_bind_text(st, text);
    else
        store_bind_none(st);
}

/* The workloads with such a shape, tuned or not, the nearest first. */
static bool find_candidates(tec_context *cx, store *db, const store_query *query, const double *shape,
                            int n_shape, base_vec *found)
{
    store_stmt st = store_statement(
        cx, db,
        "SELECT exact_key, anchor_key, shape FROM workloads WHERE length(shape) = ?1 AND (?2 IS NULL OR "
        "family = ?2) AND (?3 IS NULL OR exact_key = ?3) AND (?4 IS NULL OR anchor_key = ?4) ORDER BY id");
    int got;

    store_bind_int(&st, n_shape * (int64_t)sizeof *shape);
    bind_any(&st, query->family);
    bind_any(&st, query->exact_key);
    bind_any(&st, query->anchor_key);
    while ((got = store_step(&st)) == 1) {
        candidate *c = base_new(cx, candidate);
        size_t size;
        const void *other = store_blob(&st, 2, &size);

        *c = (candidate){other ? distance(shape, other, n_shape) : INFINITY, found->n,
                         base_strdup(cx, store_text(&st, 0)), base_strdup(cx, store_text(&st, 1))};
        base_push(cx, found, c);
    }
    store_finish(&st);
    if (found->n)
        qsort(found->at, (size_t)found->n, sizeof *found->at, nearer);
    return got == 0;
}

/* The fastest of the first most candidates that have a record; NULL with an error. */
static const store_near *take_nearest(tec_context *cx, store *db, const store_query *query,
                                      const base_vec *candidates, int most, int *count)
{
    store_near *near = base_array(cx, store_near, most < candidates->n ? most : candidates->n);

    for (int i = 0; i < candidates->n && *count < most; i++) {
        const candidate *c = candidates->at[i];
        store_query one = *query;
        int found;

        one.exact_key = c->exact_key;
        one.anchor_key = c->anchor_key;
        const store_record *const *best = store_best(cx, db, &one, 1, &found);
        if (!best)
            return NULL;
        if (found)
            near[(*count)++] = (store_near){c->distance, best[0]};
    }
    return near;
}

/* The most records whose shapes lie nearest to `shape`, nearest first. Distances are between logarithms: 64
 * is about as far from 32 as from 128. */
const store_near *store_nearest(tec_context *cx, store *db, const store_query *query, const double *shape,
                                int n_shape, int most, int *count)
{
    store_query all = {0};
    base_vec candidates = {0};

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    if (n_shape < 1 || n_shape > STORE_MAX_SHAPE || most < 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "a shape has 1 to %d numbers, not %d",
                         STORE_MAX_SHAPE, n_shape);
    query = query ? query : &all;
    if (!find_candidates(cx, db, query, shape, n_shape, &candidates))
        return NULL;
    const store_near *near = take_nearest(cx, db, query, &candidates, most, count);
    *count = near ? *count : 0;
    return near;
}

/* ---- what was tried ---- */

/* For each pair the row of its first record, because store_decode wants a whole record, with the counts
 * behind the row. */
static store_stmt select_summaries(tec_context *cx, store *db, const store_query *query)
{
    base_text head = {0};

    base_add(cx, &head, "SELECT r.id, ");
    store_add_columns(cx, &head);
    base_add(cx, &head,
             ", g.n_ok, g.n_failed, (SELECT SUM(x.count) FROM dropped x WHERE x.workload = r.workload AND "
             "x.target = r.target), g.best" STORE_TABLES " JOIN (");
    return store_select_in(cx, db, query, base_text_str(cx, &head),
                           "MIN(r.id) AS first, COUNT(CASE WHEN r.status = 'ok' THEN 1 END) AS n_ok, "
                           "COUNT(CASE WHEN r.status <> 'ok' THEN 1 END) AS n_failed, "
                           "MIN(CASE WHEN r.status = 'ok' THEN r.median END) AS best",
                           " GROUP BY r.workload, r.target) g ON g.first = r.id ORDER BY r.id");
}

/* One row: a workload on a target, with counts and its fastest record. */
static store_summary *read_summary(store_stmt *st, store_numbers *numbers)
{
    store_summary *sum = base_new(st->cx, store_summary);
    int counts = store_n_fields + 1;
    store_record r;
    const char *wrong = store_decode(st, numbers, &r);

    if (wrong)
        return base_fail(st->cx, TEC_IO, (base_loc){.file = st->s->path}, "record %lld is damaged: %s",
                         (long long)r.id, wrong);
    const store_record *kept = store_keep(st->cx, &r);
    *sum = (store_summary){kept->workload,
                           kept->target,
                           store_int(st, counts),
                           store_int(st, counts + 1),
                           store_int(st, counts + 2),
                           store_real(st, counts + 3)};
    return sum;
}

/* The items of a list of pointers, one behind the other. */
static const void *flatten(tec_context *cx, const base_vec *items, size_t size)
{
    char *all = base_alloc_array(cx, (size_t)items->n, size);

    for (int i = 0; i < items->n; i++)
        memcpy(all + (size_t)i * size, items->at[i], size);
    return all;
}

/* What was tuned: one row for each workload and target. */
const store_summary *store_summaries(tec_context *cx, store *db, const store_query *query, int *count)
{
    store_query all = {0};
    base_vec rows = {0};
    int got = 0;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_numbers *numbers = base_new(cx, store_numbers);
    store_stmt st = select_summaries(cx, db, query ? query : &all);
    while (got >= 0 && (got = store_step(&st)) == 1) {
        const store_summary *sum = read_summary(&st, numbers);

        if (!sum)
            got = -1;
        else
            base_push(cx, &rows, sum);
    }
    store_finish(&st);
    if (got < 0)
        return NULL;
    *count = rows.n;
    return flatten(cx, &rows, sizeof(store_summary));
}

/* ---- what failed ---- */

/* Adds the row's count to the same failure in what compacting dropped, if there is one. */
static bool add_failure(store_stmt *st, base_vec *rows)
{
    store_failure *failure = base_new(st->cx, store_failure);

    *failure = (store_failure){.stage = base_strdup(st->cx, store_text(st, 1)),
                               .error_kind = base_strdup(st->cx, store_text(st, 2)),
                               .count = store_int(st, 3),
                               .example = base_strdup(st->cx, store_text(st, 4))};
    if (!store_status_parse(store_text(st, 0), &failure->status))
        return base_fail(st->cx, TEC_IO, (base_loc){.file = st->s->path},
                         "the record store is damaged: unknown status '%s'", store_text(st, 0));
    for (int i = 0; i < rows->n; i++) {
        store_failure *old = rows->at[i];

        if (old->status == failure->status && base_same(old->stage, failure->stage) &&
            base_same(old->error_kind, failure->error_kind)) {
            old->count += failure->count;
            return true;
        }
    }
    base_push(st->cx, rows, failure);
    return true;
}

/* The statement is finished on every way out. */
static bool add_failures(store_stmt *st, base_vec *rows)
{
    int got;

    while ((got = store_step(st)) == 1)
        if (!add_failure(st, rows)) {
            got = -1;
            break;
        }
    store_finish(st);
    return got == 0;
}

/* The rows of `dropped` for pairs of workload and target that query asks for. They know of no device, job or
 * tuner. */
static store_stmt select_dropped(tec_context *cx, store *db, const store_query *query)
{
    store_query pairs = {.exact_key = query->exact_key,
                         .anchor_key = query->anchor_key,
                         .family = query->family,
                         .target = query->target,
                         .targets = query->targets,
                         .n_targets = query->n_targets};

    return store_select(
        cx, db, &pairs,
        "x.status, x.stage, x.error_kind, x.count, x.example FROM dropped x WHERE x.status <> 'ok' AND "
        "(x.workload, x.target) IN (SELECT r.workload, r.target",
        ")");
}

/* What failed how often, most frequent first, including records that compacting dropped where the query
 * allows to count these. */
const store_failure *store_failures(tec_context *cx, store *db, const store_query *query, int *count)
{
    store_query failed = query ? *query : (store_query){0};
    base_vec rows = {0};

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    failed.only_failed = true;
    failed.only_ok = false;
    store_stmt st =
        store_select(cx, db, &failed, "r.status, r.stage, r.error_kind, COUNT(*), MAX(r.error)",
                     " GROUP BY r.status, r.stage, r.error_kind ORDER BY COUNT(*) DESC, MIN(r.id)");
    if (!add_failures(&st, &rows))
        return NULL;
    if (!failed.device && !failed.job && !failed.tuner && !failed.codegen && !failed.after) {
        st = select_dropped(cx, db, &failed);
        if (!add_failures(&st, &rows))
            return NULL;
    }
    *count = rows.n;
    return flatten(cx, &rows, sizeof(store_failure));
}
