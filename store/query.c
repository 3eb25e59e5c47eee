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

static const char *text_of(const store_query *q, int i)
{
    return *(const char *const *)((const char *)q + texts[i].at);
}

static void add_targets(tec_context *cx, base_text *sql, const store_query *q)
{
    int n = q->n_targets + (q->target != NULL);

    if (n == 0)
        return;
    base_add(cx, sql, " AND t.fingerprint IN (");
    for (int i = 0; i < n; i++)
        base_add(cx, sql, i ? ", ?" : "?");
    base_add(cx, sql, ")");
}

/* The condition in SQL with a parameter for each text; texts never become part of the SQL itself. */
static void add_where(tec_context *cx, base_text *sql, const store_query *q)
{
    base_add(cx, sql, " WHERE r.id > ?");
    for (int i = 0; i < BASE_COUNT(texts); i++)
        if (text_of(q, i))
            base_addf(cx, sql, " AND %s", texts[i].sql);
    /* The index of jobs holds those with a name alone, and SQLite cannot see that the parameter has one. */
    if (q->job && *q->job)
        base_add(cx, sql, " AND r.job <> ''");
    add_targets(cx, sql, q);
    if (q->only_ok)
        base_addf(cx, sql, " AND r.status = '%s'", store_status_text(STORE_OK));
    if (q->only_failed)
        base_addf(cx, sql, " AND r.status <> '%s'", store_status_text(STORE_OK));
}

static void bind_where(store_stmt *st, const store_query *q)
{
    store_bind_int(st, q->after);
    for (int i = 0; i < BASE_COUNT(texts); i++)
        if (text_of(q, i))
            store_bind_text(st, text_of(q, i));
    if (q->target)
        store_bind_text(st, q->target);
    for (int i = 0; i < q->n_targets; i++)
        store_bind_text(st, q->targets[i]);
}

void store_add_columns(tec_context *cx, base_text *sql)
{
    for (int i = 0; i < store_n_fields; i++) {
        const store_field *f = &store_fields[i];

        base_addf(cx, sql, "%s%c.%s", i ? ", " : "", *f->object ? *f->object : 'r', f->name);
    }
}

/* ---- decoding ---- */

static const char *decode_reals(store_stmt *st, int column, double *to, int64_t limit, int *n)
{
    size_t size;
    const void *data = store_blob(st, column, &size);

    if (size % sizeof *to || size > (size_t)limit * sizeof *to)
        return "a list of numbers has an impossible size";
    if (size)
        memcpy(to, data, size);
    *n = (int)(size / sizeof *to);
    return NULL;
}

/* The field's value out of column `column`. The reason where the row does not hold what its table says, else
 * NULL. */
static const char *decode_field(store_stmt *st, const store_field *f, int column, double *numbers,
                                store_record *out)
{
    char *value = (char *)out + f->at, *count = (char *)out + f->count_at;

    switch (f->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: *(const char **)value = store_text(st, column); return NULL;
    case STORE_FIELD_INT:
    case STORE_FIELD_U64: *(int64_t *)value = store_int(st, column); return NULL;
    case STORE_FIELD_INT32: *(int *)value = (int)store_int(st, column); return NULL;
    case STORE_FIELD_REAL: *(double *)value = store_real(st, column); return NULL;
    case STORE_FIELD_REALS:
        *(const double **)value = numbers;
        return decode_reals(st, column, numbers, f->limit, (int *)count);
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
        const store_field *f = &store_fields[i];

        wrong = decode_field(st, f, i + 1, *f->object ? numbers->shape : numbers->costs, out);
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

/* The tables that the conditions of q need. */
static void add_tables(tec_context *cx, base_text *sql, const store_query *q)
{
    base_add(cx, sql, " FROM records r");
    if (q->exact_key || q->anchor_key || q->family)
        base_add(cx, sql, " JOIN workloads w ON w.id = r.workload");
    if (q->target || q->n_targets)
        base_add(cx, sql, " JOIN targets t ON t.id = r.target");
    if (q->device)
        base_add(cx, sql, " JOIN devices d ON d.id = r.device");
}

/* Without a head, `what` may name all tables. */
store_stmt store_select_in(tec_context *cx, store *s, const store_query *q, const char *head,
                           const char *what, const char *tail)
{
    base_mark mark = base_arena_mark(cx);
    base_text sql = {0};

    base_addf(cx, &sql, "%sSELECT %s", head, what);
    if (*head)
        add_tables(cx, &sql, q);
    else
        base_add(cx, &sql, STORE_TABLES);
    add_where(cx, &sql, q);
    base_add(cx, &sql, tail);
    store_stmt st = store_statement(cx, s, base_text_str(cx, &sql));
    bind_where(&st, q);
    base_arena_release(cx, mark);
    return st;
}

store_stmt store_select(tec_context *cx, store *s, const store_query *q, const char *what, const char *tail)
{
    return store_select_in(cx, s, q, "", what, tail);
}

/* A cursor over the records that fit; store_end closes it. NULL with an error. */
store_cursor *store_find(tec_context *cx, store *s, const store_query *q)
{
    base_text columns = {0};
    store_query all = {0};

    if (!store_usable(cx, s))
        return NULL;
    store_cursor *c = base_calloc(cx, 1, sizeof *c);
    base_hold(cx, &c->held, free, c);
    c->st.s = s;
    q = q ? q : &all;
    base_mark mark = base_arena_mark(cx);
    base_add(cx, &columns, "r.id, ");
    store_add_columns(cx, &columns);
    const char *limit = q->limit > 0 ? base_format(cx, " LIMIT %lld", (long long)q->limit) : "";
    const char *tail = base_format(cx, " ORDER BY %sr.id%s", q->fastest_first ? "r.median, " : "", limit);
    c->st = store_select(cx, s, q, base_text_str(cx, &columns), tail);
    c->st.many = true;
    base_arena_release(cx, mark);
    if (c->st.rc == 0)
        return c;
    store_step(&c->st);
    store_end(c);
    return NULL;
}

/* The next record, valid until the following call. False at the end and after an error, which store_end tells
 * apart. */
bool store_next(tec_context *cx, store_cursor *c, store_record *out)
{
    if (!c || c->ended || !store_usable(cx, c->st.s))
        return false;
    c->st.cx = cx;
    int got = store_step(&c->st);
    c->failed |= got < 0;
    c->ended = got != 1;
    if (got != 1)
        return false;
    const char *wrong = store_decode(&c->st, &c->numbers, out);
    c->failed |= wrong != NULL;
    if (wrong)
        return base_fail(cx, TEC_IO, (base_loc){.file = c->st.s->path}, "record %lld is damaged: %s",
                         (long long)out->id, wrong);
    return true;
}

bool store_end(store_cursor *c)
{
    bool ok = c && !c->failed;

    if (c) {
        store_finish(&c->st);
        base_drop(&c->held);
    }
    return ok;
}

/* ---- the best, counts ---- */

/* The k fastest successful records, copied into the context; NULL after an error. */
const store_record *const *store_best(tec_context *cx, store *s, const store_query *q, int k, int *n)
{
    store_query best = q ? *q : (store_query){0};
    base_vec found = {0};
    store_record r;

    *n = 0;
    best.only_ok = best.fastest_first = true;
    best.limit = k > 0 ? k : 1;
    store_cursor *c = store_find(cx, s, &best);
    while (k > 0 && store_next(cx, c, &r))
        base_push(cx, &found, store_keep(cx, &r));
    if (!store_end(c))
        return NULL;
    base_push(cx, &found, NULL);
    *n = found.n - 1;
    return (const store_record *const *)found.at;
}

int64_t store_count(tec_context *cx, store *s, const store_query *q)
{
    store_query all = {0};

    if (!store_usable(cx, s))
        return -1;
    store_stmt st = store_select_in(cx, s, q ? q : &all, "SELECT n FROM (", "COUNT(*) AS n", ") c");
    int64_t n = store_step(&st) == 1 ? store_int(&st, 0) : -1;
    store_finish(&st);
    return n;
}

int64_t store_last(tec_context *cx, store *s)
{
    int64_t id = 0;

    return store_usable(cx, s) && store_number(cx, s, "SELECT COALESCE(MAX(id), 0) FROM records", &id) ? id
                                                                                                       : -1;
}
