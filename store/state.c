/* store/state.c -- what a tuner keeps besides records: its jobs and its cost models. */
#include <string.h>
#include <time.h>

#include "store/sql.h"

static const char *const state_words[] = {
#define X(name, text) text,
    STORE_JOB_LIST(X)
#undef X
};

const char *store_job_state_text(store_job_state state)
{
    return (unsigned)state < BASE_COUNT(state_words) ? state_words[state] : "unknown state";
}

static bool check_text(tec_context *cx, const char *what, const char *text, size_t limit, bool needed)
{
    size_t size = text ? strlen(text) : 0;

    if (needed && size == 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s is missing", what);
    if (size > limit)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s has %zu bytes, over the limit of %zu", what,
                         size, limit);
    return !text || store_is_utf8(text) ||
           base_fail(cx, TEC_INVALID, (base_loc){0}, "%s is not UTF-8 text", what);
}

static bool check_blob(tec_context *cx, const char *what, size_t size)
{
    if (size <= STORE_MAX_BLOB)
        return true;
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s has %zu bytes, over the limit of %d", what, size,
                     STORE_MAX_BLOB);
}

static int64_t or_now(int64_t t)
{
    return t ? t : (int64_t)time(NULL);
}

static const void *copy_blob(store_stmt *st, int column, size_t *size)
{
    const void *data = store_blob(st, column, size);

    return data ? base_copy(st->cx, data, *size) : NULL;
}

/* ---- jobs ---- */

static bool check_job(tec_context *cx, const store_job *job)
{
    if ((unsigned)job->state >= BASE_COUNT(state_words))
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "job '%s': there is no state %d",
                         job->name ? job->name : "", (int)job->state);
    return check_text(cx, "the name of the job", job->name, STORE_MAX_NAME, true) &&
           check_text(cx, "the arguments of the job", job->arguments, STORE_MAX_TEXT, false) &&
           check_blob(cx, "the progress of the job", job->progress_size);
}

/* Adds the job or replaces what is stored under its name. */
bool store_write_job(tec_context *cx, store *db, const store_job *job)
{
    if (!check_job(cx, job))
        return false;
    store_stmt st = store_statement(
        cx, db,
        "INSERT INTO jobs (name, arguments, seed, state, progress, created, updated) VALUES (?, ?, ?, ?, ?, "
        "?, ?) ON CONFLICT "
        "(name) DO UPDATE SET arguments = excluded.arguments, seed = excluded.seed, state = excluded.state, "
        "progress = excluded.progress, updated = excluded.updated");
    store_bind_text(&st, job->name);
    store_bind_text(&st, job->arguments);
    store_bind_int(&st, (int64_t)job->seed);
    store_bind_text(&st, state_words[job->state]);
    store_bind_blob(&st, job->progress_size ? job->progress : NULL, job->progress_size);
    store_bind_int(&st, or_now(job->created));
    store_bind_int(&st, or_now(job->updated));
    return store_done(&st);
}

/* The times are the store's to set, whatever the caller's struct holds. */
bool store_put_job(tec_context *cx, store *db, const store_job *job)
{
    store_job now = *job;

    now.created = now.updated = 0;
    return store_begin(cx, db) && store_end_write(cx, db, store_write_job(cx, db, &now));
}

#define JOB_COLUMNS "name, arguments, seed, state, created, updated"

/* The columns of JOB_COLUMNS as a job; NULL with an error for a state that no version knows. */
static store_job *read_job(store_stmt *st)
{
    store_job *job = base_new(st->cx, store_job);
    int state = store_find_word(state_words, BASE_COUNT(state_words), store_text(st, 3));

    *job = (store_job){.name = base_strdup(st->cx, store_text(st, 0)),
                       .arguments = base_strdup(st->cx, store_text(st, 1)),
                       .seed = (uint64_t)store_int(st, 2),
                       .created = store_int(st, 4),
                       .updated = store_int(st, 5)};
    if (state < 0)
        return base_fail(st->cx, TEC_IO, (base_loc){.file = st->s->path},
                         "the record store is damaged: job '%s' has the unknown state '%s'", job->name,
                         store_text(st, 3));
    job->state = (store_job_state)state;
    return job;
}

/* NULL where there is no such job, and after an error. */
const store_job *store_get_job(tec_context *cx, store *db, const char *name)
{
    store_job *job = NULL;

    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(cx, db, "SELECT " JOB_COLUMNS ", progress FROM jobs WHERE name = ?");
    store_bind_text(&st, name);
    if (store_step(&st) == 1)
        job = read_job(&st);
    if (job)
        job->progress = copy_blob(&st, 6, &job->progress_size);
    store_finish(&st);
    return job;
}

/* All jobs by name, without their progress. */
const store_job *const *store_jobs(tec_context *cx, store *db, int *count)
{
    base_vec jobs = {0};
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(cx, db, "SELECT " JOB_COLUMNS " FROM jobs ORDER BY name");
    while ((got = store_step(&st)) == 1) {
        const store_job *job = read_job(&st);

        if (!job) {
            got = -1;
            break;
        }
        base_push(cx, &jobs, job);
    }
    store_finish(&st);
    if (got < 0)
        return NULL;
    base_push(cx, &jobs, NULL);
    *count = jobs.n - 1;
    return (const store_job *const *)jobs.at;
}

/* ---- cost models ---- */

/* Replaces the model of this target and name. */
bool store_put_model(tec_context *cx, store *db, const store_model *model)
{
    if (!check_text(cx, "the target of the model", model->target, STORE_MAX_NAME, true) ||
        !check_text(cx, "the name of the model", model->name, STORE_MAX_NAME, true) ||
        !check_blob(cx, "the model", model->size) || !store_begin(cx, db))
        return false;
    store_stmt st =
        store_statement(cx, db,
                        "INSERT INTO models (target, name, version, data, hash, n_records, time) VALUES (?, "
                        "?, ?, ?, ?, ?, ?) ON CONFLICT (target, name, version) DO UPDATE SET data = "
                        "excluded.data, hash = excluded.hash, n_records = excluded.n_records, time = "
                        "excluded.time");
    store_bind_text(&st, model->target);
    store_bind_text(&st, model->name);
    store_bind_int(&st, model->version);
    store_bind_blob(&st, model->size ? model->data : "", model->size);
    store_bind_int(&st, (int64_t)store_bytes_hash(model->data, model->size));
    store_bind_int(&st, model->n_records);
    store_bind_int(&st, or_now(model->time));
    return store_end_write(cx, db, store_done(&st));
}

#define MODEL_COLUMNS "target, name, version, n_records, time"

static store_model *read_model(store_stmt *st)
{
    store_model *model = base_new(st->cx, store_model);

    *model = (store_model){.target = base_strdup(st->cx, store_text(st, 0)),
                           .name = base_strdup(st->cx, store_text(st, 1)),
                           .version = store_int(st, 2),
                           .n_records = store_int(st, 3),
                           .time = store_int(st, 4)};
    return model;
}

/* A model with a flipped bit would steer a search without anybody's notice. */
static const store_model *verify_model(store_stmt *st, const store_model *model, uint64_t hash)
{
    if (store_bytes_hash(model->data, model->size) == hash)
        return model;
    return base_fail(st->cx, TEC_IO, (base_loc){.file = st->s->path},
                     "the cost model '%s' for target '%s' is damaged: its hash differs", model->name,
                     model->target);
}

/* NULL where there is none of this version; a model whose bytes do not match their hash is an error. */
const store_model *store_get_model(tec_context *cx, store *db, const char *target, const char *name,
                                   int64_t version)
{
    const store_model *found = NULL;

    if (!store_usable(cx, db))
        return NULL;
    store_stmt st = store_statement(cx, db,
                                    "SELECT " MODEL_COLUMNS
                                    ", data, hash FROM models WHERE target = ? AND name = ? AND version = ?");
    store_bind_text(&st, target);
    store_bind_text(&st, name);
    store_bind_int(&st, version);
    if (store_step(&st) == 1) {
        store_model *model = read_model(&st);

        model->data = copy_blob(&st, 5, &model->size);
        found = verify_model(&st, model, (uint64_t)store_int(&st, 6));
    }
    store_finish(&st);
    return found;
}

/* All models without their bytes. */
const store_model *const *store_models(tec_context *cx, store *db, int *count)
{
    base_vec models = {0};
    int got;

    *count = 0;
    if (!store_usable(cx, db))
        return NULL;
    store_stmt st =
        store_statement(cx, db, "SELECT " MODEL_COLUMNS " FROM models ORDER BY target, name, version");
    while ((got = store_step(&st)) == 1)
        base_push(cx, &models, read_model(&st));
    store_finish(&st);
    if (got < 0)
        return NULL;
    base_push(cx, &models, NULL);
    *count = models.n - 1;
    return (const store_model *const *)models.at;
}
