/* store/query.c -- finding records: the condition of a query as SQL, decoding rows, cursors, the best,
 * counts. */
#include <stdlib.h>
#include <string.h>

#include "store/sql.h"

/* ---- conditions ---- */

static const struct {
    size_t at;
    const char *sql;
} texts[] = {
    {offsetof(store_query, exact_key), "w.exact_key = ?"},
    {offsetof(store_query, anchor_key), "w.anchor_key = ?"},
    {offsetof(store_query, family), "w.family = ?"},
    {offsetof(store_query, device), "d.name = ?"},
    {offsetof(store_query, job), "r.job = ?"},
    {offsetof(store_query, tuner), "r.tuner = ?"},
    {offsetof(store_query, codegen), "r.codegen = ?"},
};

static const char *text_of(const store_query *query, int i)
{
    return *(const char *const *)((const char *)query + texts[i].at);
}

static void add_targets(tec_context *cx, base_text *sql, const store_query *query)
{
    int n = query->n_targets + (query->target != NULL);

    if (n == 0)
        return;
    base_add(cx, sql, " AND t.fingerprint IN (");
    for (int i = 0; i < n; i++)
        base_add(cx, sql, i ? ", ?" : "?");
    base_add(cx, sql, ")");
}

/* The condition in SQL with a parameter for each text; texts never become part of the SQL itself. */
static void add_where(tec_context *cx, base_text *sql, const store_query *query)
{
    base_add(cx, sql, " WHERE r.id > ?");
    for (int i = 0; i < BASE_COUNT(texts); i++)
        if (text_of(query, i))
            base_addf(cx, sql, " AND %s", texts[i].sql);
    /* The index of jobs holds those with a name alone, and SQLite cannot see that the parameter has one. */
    if (query->job && *query->job)
        base_add(cx, sql, " AND r.job <> ''");
    add_targets(cx, sql, query);
    if (query->only_ok)
        base_addf(cx, sql, " AND r.status = '%s'", store_status_text(STORE_OK));
    if (query->only_failed)
        base_addf(cx, sql, " AND r.status <> '%s'", store_status_text(STORE_OK));
}

/* In the order in which the question marks were written. */
static void bind_where(store_stmt *st, const store_query *query)
{
    store_bind_int(st, query->after);
    for (int i = 0; i < BASE_COUNT(texts); i++)
        if (text_of(query, i))
            store_bind_text(st, text_of(query, i));
    if (query->target)
        store_bind_text(st, query->target);
    for (int i = 0; i < query->n_targets; i++)
        store_bind_text(st, query->targets[i]);
}

void store_add_columns(tec_context *cx, base_text *sql)
{
    for (int i = 0; i < store_n_fields; i++) {
        const store_field *f = &store_fields[i];

        base_addf(cx, sql, "%s%c.%s", i ? ", " : "", *f->object ? *f->object : 'r', f->name);
    }
}

/* ---- decoding ---- */

/* Lists are stored as the bytes of doubles. A file that was damaged or written by others gives a size that
 * is no list: the row is then an error by itself. */
static const char *decode_reals(store_stmt *st, int column, double *to, int64_t limit, int *count)
{
    size_t size;
    const void *data = store_blob(st, column, &size);

    if (size % sizeof *to || size > (size_t)limit * sizeof *to)
        return "a list of numbers has an impossible size";
    if (size)
        memcpy(to, data, size);
    *count = (int)(size / sizeof *to);
    return NULL;
}

/* The field's value out of column `column`. The reason where the row does not hold what its table says, else
 * NULL. */
static const char *decode_field(store_stmt *st, const store_field *field, int column, double *numbers,
                                store_record *out)
{
    char *value = (char *)out + field->at, *count = (char *)out + field->count_at;

    switch (field->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: *(const char **)value = store_text(st, column); return NULL;
    case STORE_FIELD_INT:
    case STORE_FIELD_U64: *(int64_t *)value = store_int(st, column); return NULL;
    case STORE_FIELD_INT32: *(int *)value = (int)store_int(st, column); return NULL;
    case STORE_FIELD_REAL: *(double *)value = store_real(st, column); return NULL;
    case STORE_FIELD_REALS:
        *(const double **)value = numbers;
        return decode_reals(st, column, numbers, field->limit, (int *)count);
    case STORE_FIELD_STATUS:
        return store_status_parse(store_text(st, column), (store_status *)value) ? NULL
                                                                                 : "its status is unknown";
    case STORE_FIELD_BYTES: *(const void **)value = store_blob(st, column, (size_t *)count); return NULL;
    }
    return NULL;
}

const char *store_decode(store_stmt *st, store_numbers *numbers, store_record *out)
{
    const char *wrong = NULL;

    *out = (store_record){.id = store_int(st, 0)};
    for (int i = 0; i < store_n_fields && !wrong; i++) {
        const store_field *field = &store_fields[i];

        wrong = decode_field(st, field, i + 1, *field->object ? numbers->shape : numbers->costs, out);
    }
    return wrong;
}

/* ---- cursors ---- */

struct store_cursor {
    base_held held; /* its memory; the statement is held by itself */
    store_stmt st;
    bool failed, ended; /* a statement that is asked again behind its end would start anew */
    store_numbers numbers;
};

/* The tables that the conditions of query need. */
static void add_tables(tec_context *cx, base_text *sql, const store_query *query)
{
    base_add(cx, sql, " FROM records r");
    if (query->exact_key || query->anchor_key || query->family)
        base_add(cx, sql, " JOIN workloads w ON w.id = r.workload");
    if (query->target || query->n_targets)
        base_add(cx, sql, " JOIN targets t ON t.id = r.target");
    if (query->device)
        base_add(cx, sql, " JOIN devices d ON d.id = r.device");
}

/* Without a head, `what` may name all tables. */
store_stmt store_select_in(tec_context *cx, store *db, const store_query *query, const char *head,
                           const char *what, const char *tail)
{
    base_mark mark = base_arena_mark(cx);
    base_text sql = {0};

    base_addf(cx, &sql, "%sSELECT %s", head, what);
    if (*head)
        add_tables(cx, &sql, query);
    else
        base_add(cx, &sql, STORE_TABLES);
    add_where(cx, &sql, query);
    base_add(cx, &sql, tail);
    store_stmt st = store_statement(cx, db, base_text_str(cx, &sql));
    bind_where(&st, query);
    base_arena_release(cx, mark);
    return st;
}

store_stmt store_select(tec_context *cx, store *db, const store_query *query, const char *what,
                        const char *tail)
{
    return store_select_in(cx, db, query, "", what, tail);
}

/* A cursor over the records that fit; store_end closes it. NULL with an error. */
store_cursor *store_find(tec_context *cx, store *db, const store_query *query)
{
    base_text columns = {0};
    store_query all = {0};

    if (!store_usable(cx, db))
        return NULL;
    store_cursor *cursor = base_calloc(cx, 1, sizeof *cursor);
    base_hold(cx, &cursor->held, free, cursor);
    cursor->st.s = db;
    query = query ? query : &all;
    base_mark mark = base_arena_mark(cx);
    base_add(cx, &columns, "r.id, ");
    store_add_columns(cx, &columns);
    const char *limit = query->limit > 0 ? base_format(cx, " LIMIT %lld", (long long)query->limit) : "";
    const char *tail = base_format(cx, " ORDER BY %sr.id%s", query->fastest_first ? "r.median, " : "", limit);
    cursor->st = store_select(cx, db, query, base_text_str(cx, &columns), tail);
    cursor->st.many = true;
    base_arena_release(cx, mark);
    if (cursor->st.rc == 0)
        return cursor;
    store_step(&cursor->st);
    store_end(cursor);
    return NULL;
}

/* The next record, valid until the following call. False at the end and after an error, which store_end tells
 * apart. */
bool store_next(tec_context *cx, store_cursor *cursor, store_record *out)
{
    if (!cursor || cursor->ended || !store_usable(cx, cursor->st.s))
        return false;
    cursor->st.cx = cx;
    int got = store_step(&cursor->st);
    cursor->failed |= got < 0;
    cursor->ended = got != 1;
    if (got != 1)
        return false;
    const char *wrong = store_decode(&cursor->st, &cursor->numbers, out);
    cursor->failed |= wrong != NULL;
    if (wrong)
        return base_fail(cx, TEC_IO, (base_loc){.file = cursor->st.s->path}, "record %lld is damaged: %s",
                         (long long)out->id, wrong);
    return true;
}

/* False after an error in the walk: without it, a walk that stopped half-way would look like the end. */
bool store_end(store_cursor *cursor)
{
    bool ok = cursor && !cursor->failed;

    if (cursor) {
        store_finish(&cursor->st);
        base_drop(&cursor->held);
    }
    return ok;
}

/* ---- the best, counts ---- */

/* The most fastest successful records, copied into the context; NULL after an error. */
const store_record *const *store_best(tec_context *cx, store *db, const store_query *query, int most,
                                      int *count)
{
    store_query best = query ? *query : (store_query){0};
    base_vec found = {0};
    store_record r;

    *count = 0;
    best.only_ok = best.fastest_first = true;
    best.limit = most > 0 ? most : 1;
    store_cursor *cursor = store_find(cx, db, &best);
    while (most > 0 && store_next(cx, cursor, &r))
        base_push(cx, &found, store_keep(cx, &r));
    if (!store_end(cursor))
        return NULL;
    base_push(cx, &found, NULL);
    *count = found.n - 1;
    return (const store_record *const *)found.at;
}

int64_t store_count(tec_context *cx, store *db, const store_query *query)
{
    store_query all = {0};

    if (!store_usable(cx, db))
        return -1;
    store_stmt st = store_select_in(cx, db, query ? query : &all, "SELECT n FROM (", "COUNT(*) AS n", ") c");
    int64_t n = store_step(&st) == 1 ? store_int(&st, 0) : -1;
    store_finish(&st);
    return n;
}

int64_t store_last(tec_context *cx, store *db)
{
    int64_t id = 0;

    return store_usable(cx, db) && store_number(cx, db, "SELECT COALESCE(MAX(id), 0) FROM records", &id) ? id
                                                                                                         : -1;
}
