/* store/check.c -- is the file whole: its pages, its schema, its links, the hashes of its contents, its
 * traces. */
#include <stdarg.h>
#include <string.h>

#include "store/sql.h"

typedef struct {
    tec_context *cx;
    store *s;
    const store_check_options *o;
    int64_t n;
} checker;

static void problem(checker *ck, const char *fmt, ...) BASE_PRINTF(2, 3);
static void problem(checker *ck, const char *fmt, ...)
{
    base_mark mark = base_arena_mark(ck->cx);
    va_list args;

    ck->n++;
    va_start(args, fmt);
    if (ck->o->problem)
        ck->o->problem(ck->o->user, base_vformat(ck->cx, fmt, args));
    va_end(args);
    base_arena_release(ck->cx, mark);
}

/* A part of the check that cannot be carried out is a problem of the file, not the end of the check. */
static void end_part(checker *ck, store_stmt *st, int got)
{
    store_finish(st);
    if (got < 0)
        problem(ck, "%s", tec_context_error(ck->cx));
    tec_context_clear(ck->cx);
}

static void tell(void *ck, const char *what)
{
    problem(ck, "%s", what);
}

/* In a context of its own: a trace that cannot be applied leaves an error, which is the finding and not the
 * check's failure. */
static void check_trace(checker *ck, const store_record *record)
{
    tec_context *own = base_child(ck->cx);

    if (ck->o->readable && record->status == STORE_OK && !ck->o->readable(ck->o->user, own, record))
        problem(ck, "record %lld: its trace cannot be applied: %s", (long long)record->id,
                base_failed(own) ? tec_context_error(own) : "");
    tec_context_free(own);
}

/* Completes the record anew and compares whatever is derived: hashes, median, spread. */
static void check_record(checker *ck, const store_record *record, const char *hash, uint64_t features_hash)
{
    tec_context *own = base_child(ck->cx);
    const store_record *again = store_complete(own, record);
    char actual[STORE_HASH_SIZE];

    if (!again)
        problem(ck, "record %lld: %s", (long long)record->id, tec_context_error(own));
    else if (strcmp(store_record_hash(record, actual), hash) != 0)
        problem(ck, "record %lld: its contents do not match its hash", (long long)record->id);
    else if (store_bytes_hash(record->features, record->features_size) != features_hash)
        problem(ck, "record %lld: its features do not match their hash", (long long)record->id);
    else if (again->median != record->median || again->spread != record->spread)
        problem(ck, "record %lld: its median or spread is not that of its costs", (long long)record->id);
    else if (again->workload.exact_hash != record->workload.exact_hash ||
             again->workload.anchor_hash != record->workload.anchor_hash)
        problem(ck, "record %lld: a key of its workload does not match its hash", (long long)record->id);
    else
        check_trace(ck, record);
    tec_context_free(own);
}

/* Reads every record; one that cannot be decoded is a problem and not the end of the check. */
static void check_records(checker *ck)
{
    store_numbers *numbers = base_new(ck->cx, store_numbers);
    base_text sql = {0};
    store_record r;
    int got;

    base_add(ck->cx, &sql, "r.id, ");
    store_add_columns(ck->cx, &sql);
    base_add(ck->cx, &sql, ", r.hash, r.features_hash");
    store_stmt st = store_select(ck->cx, ck->s, &(store_query){.after = INT64_MIN},
                                 base_text_str(ck->cx, &sql), " ORDER BY r.id");
    st.many = true;
    while ((got = store_step(&st)) == 1) {
        const char *wrong = store_decode(&st, numbers, &r);

        if (wrong)
            problem(ck, "record %lld: %s", (long long)r.id, wrong);
        else
            check_record(ck, &r, store_text(&st, store_n_fields + 1),
                         (uint64_t)store_int(&st, store_n_fields + 2));
    }
    end_part(ck, &st, got);
}

/* Compares the bytes of each cost model with the hash beside them. */
static void check_models(checker *ck)
{
    store_stmt st = store_statement(ck->cx, ck->s, "SELECT target, name, version, data, hash FROM models");
    int got;

    while ((got = store_step(&st)) == 1) {
        size_t size;
        const void *data = store_blob(&st, 3, &size);

        if (store_bytes_hash(data, size) != (uint64_t)store_int(&st, 4))
            problem(ck, "the cost model '%s' (version %lld) for target '%s' does not match its hash",
                    store_text(&st, 1), (long long)store_int(&st, 2), store_text(&st, 0));
    }
    end_part(ck, &st, got);
}

/* A state that no version knows would make the job invisible. */
static void check_jobs(checker *ck)
{
    store_stmt st = store_statement(ck->cx, ck->s, "SELECT name, state FROM jobs");
    int got;

    while ((got = store_step(&st)) == 1) {
        bool known = false;

        for (int i = STORE_JOB_RUNNING; i <= STORE_JOB_CANCELLED; i++)
            known |= strcmp(store_job_state_text((store_job_state)i), store_text(&st, 1)) == 0;
        if (!known)
            problem(ck, "job '%s' has the unknown state '%s'", store_text(&st, 0), store_text(&st, 1));
    }
    end_part(ck, &st, got);
}

/* How many problems were found, each told to the caller as it is found; -1 where the store cannot be used. */
int64_t store_check(tec_context *cx, store *db, const store_check_options *options)
{
    store_check_options none = {0};

    if (!store_usable(cx, db))
        return -1;
    checker ck = {.cx = base_child(cx), .s = db, .o = options ? options : &none};
    db->engine->check(ck.cx, db, tell, &ck);
    check_records(&ck);
    check_models(&ck);
    check_jobs(&ck);
    tec_context_free(ck.cx);
    return ck.n;
}
