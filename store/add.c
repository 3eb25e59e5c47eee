/* store/add.c -- inserting records: what many of them share (workload, target, device) is a row of its own,
 * found or made. */
#include <string.h>

#include "store/sql.h"

static const void *at(const store_record *record, size_t offset)
{
    return (const char *)record + offset;
}

static bool is_of(const store_field *field, const char *object)
{
    return strcmp(field->object, object) == 0;
}

/* Binds the field's value to the next parameter of the statement, by the kind in the table of fields. */
static void bind_field(store_stmt *st, const store_field *field, const store_record *record)
{
    const void *value = at(record, field->at), *count = at(record, field->count_at);

    switch (field->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: store_bind_text(st, store_field_text(field, record)); return;
    case STORE_FIELD_INT:
    case STORE_FIELD_U64: store_bind_int(st, *(const int64_t *)value); return;
    case STORE_FIELD_INT32: store_bind_int(st, *(const int *)value); return;
    case STORE_FIELD_REAL: store_bind_real(st, *(const double *)value); return;
    case STORE_FIELD_REALS:
        /* A NULL pointer would be NULL and not an empty blob. */
        store_bind_blob(st, *(const int *)count ? *(const void *const *)value : "",
                        (size_t)*(const int *)count * sizeof(double));
        return;
    case STORE_FIELD_STATUS: store_bind_text(st, store_status_text(*(const store_status *)value)); return;
    case STORE_FIELD_BYTES: store_bind_blob(st, *(const void *const *)value, *(const size_t *)count); return;
    }
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers lie in the file as they do in memory");

void store_bind_fields(store_stmt *st, const char *object, const store_record *record)
{
    for (int i = 0; i < store_n_fields; i++)
        if (is_of(&store_fields[i], object))
            bind_field(st, &store_fields[i], record);
}

/* Whether two records agree in a field that their workload, target or device keys: such rows are shared, so
 * their contents must be equal and not only their hashes. */
static bool same_value(const store_field *field, const store_record *left, const store_record *right)
{
    switch (field->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: return strcmp(store_field_text(field, left), store_field_text(field, right)) == 0;
    case STORE_FIELD_REALS: {
        int n = *(const int *)at(left, field->count_at);

        return n == *(const int *)at(right, field->count_at) &&
               (n == 0 ||
                memcmp(*(const void *const *)at(left, field->at), *(const void *const *)at(right, field->at),
                       (size_t)n * sizeof(double)) == 0);
    }
    case STORE_FIELD_INT:
    case STORE_FIELD_U64:
    case STORE_FIELD_REAL: return memcmp(at(left, field->at), at(right, field->at), 8) == 0;
    case STORE_FIELD_INT32:
    case STORE_FIELD_STATUS:
    case STORE_FIELD_BYTES: break;
    }
    return false;
}

static bool same_object(const char *object, const store_record *left, const store_record *right)
{
    for (int i = 0; i < store_n_fields; i++)
        if (is_of(&store_fields[i], object) && !same_value(&store_fields[i], left, right))
            return false;
    return true;
}

/* ---- statements from the table of fields ---- */

static int add_names(tec_context *cx, base_text *sql, const char *object)
{
    int n = 0;

    for (int i = 0; i < store_n_fields; i++)
        if (is_of(&store_fields[i], object))
            base_addf(cx, sql, "%s%s", n++ ? ", " : "", store_fields[i].name);
    return n;
}

static void add_marks(tec_context *cx, base_text *sql, int n)
{
    for (int i = 0; i < n; i++)
        base_add(cx, sql, i ? ", ?" : "?");
}

/* The condition that the new row says nothing of the field. */
static void add_is_empty(tec_context *cx, base_text *sql, const store_field *field)
{
    bool is_blob = field->kind == STORE_FIELD_REALS || field->kind == STORE_FIELD_BYTES;
    bool is_text = field->kind == STORE_FIELD_TEXT || field->kind == STORE_FIELD_LINE;

    if (is_blob)
        base_addf(cx, sql, "length(excluded.%s) = 0", field->name);
    else
        base_addf(cx, sql, "excluded.%s = %s", field->name, is_text ? "''" : "0");
}

/* Of a row that is there already, what the new one knows replaces what it had. */
static store_stmt prepare_object(tec_context *cx, store *db, const char *object, const char *unique)
{
    base_text sql = {0};
    bool first = true;

    base_addf(cx, &sql, "INSERT INTO %ss (", object);
    int n = add_names(cx, &sql, object);
    base_add(cx, &sql, ") VALUES (");
    add_marks(cx, &sql, n);
    base_addf(cx, &sql, ") ON CONFLICT (%s) DO UPDATE SET ", unique);
    for (int i = 0; i < store_n_fields; i++) {
        const char *name = store_fields[i].name;

        if (!is_of(&store_fields[i], object))
            continue;
        base_addf(cx, &sql, "%s%s = CASE WHEN ", first ? "" : ", ", name);
        add_is_empty(cx, &sql, &store_fields[i]);
        base_addf(cx, &sql, " THEN %ss.%s ELSE excluded.%s END", object, name, name);
        first = false;
    }
    base_add(cx, &sql, " RETURNING id");
    return store_statement(cx, db, base_text_str(cx, &sql));
}

/* The same record twice is one row: the hash over its fields is unique, and a second one changes nothing. */
static store_stmt prepare_record(tec_context *cx, store *db)
{
    base_text sql = {0};

    base_add(cx, &sql, "INSERT INTO records (hash, workload, target, device, features_hash, ");
    int n = add_names(cx, &sql, "");
    base_add(cx, &sql, ") VALUES (");
    add_marks(cx, &sql, n + 5);
    base_add(cx, &sql, ") ON CONFLICT (hash) DO NOTHING");
    return store_statement(cx, db, base_text_str(cx, &sql));
}

/* ---- a batch ---- */

static const struct {
    const char *object, *unique;
} objects[] = {{"workload", "exact_key, anchor_key"}, {"target", "fingerprint"}, {"device", "name, text"}};

enum { N_OBJECTS = 3 };

typedef struct {
    store *s;
    store_stmt object[N_OBJECTS], record;
    int64_t id[N_OBJECTS]; /* of the last record's objects */
    const store_record *last;
} inserter;

/* Records of one session name the same workload, target and device again and again: the last ids are kept,
 * and the database is asked only for others. */
static bool find_object(inserter *in, int index, const store_record *record)
{
    store_stmt *st = &in->object[index];

    if (in->last && same_object(objects[index].object, in->last, record))
        return true;
    store_again(st);
    store_bind_fields(st, objects[index].object, record);
    int got = store_step(st);
    if (got == 1)
        in->id[index] = store_int(st, 0);
    store_again(st);
    return got == 1;
}

/* Workload, target and device first, then the record with their row numbers. A record whose hash is there
 * already is counted as a duplicate and changes nothing. */
static bool insert_record(inserter *in, const store_record *record, store_added *added)
{
    char hash[STORE_HASH_SIZE];

    for (int i = 0; i < N_OBJECTS; i++)
        if (!find_object(in, i, record))
            return false;
    store_again(&in->record);
    store_bind_text(&in->record, store_record_hash(record, hash));
    for (int i = 0; i < N_OBJECTS; i++)
        store_bind_int(&in->record, in->id[i]);
    store_bind_int(&in->record, (int64_t)store_bytes_hash(record->features, record->features_size));
    store_bind_fields(&in->record, "", record);
    if (store_step(&in->record) != 0)
        return false;
    *(store_changed(&in->record) ? &added->added : &added->duplicates) += 1;
    return true;
}

/* Inserts a batch in its order; an error of one record names its place in the batch. */
static bool insert_all(tec_context *cx, inserter *in, const store_record *records, int count,
                       store_added *added)
{
    for (int i = 0; i < count; i++) {
        const store_record *record = store_complete(cx, &records[i]);

        if (!record || !insert_record(in, record, added)) {
            if (count > 1)
                base_note(cx, (base_loc){0}, "in record %d of a batch of %d", i + 1, count);
            return false;
        }
        in->last = record;
    }
    return true;
}

/* Prepares one statement for each table, runs them for each record, and finishes them in any case. */
bool store_insert(tec_context *cx, store *db, const store_record *records, int count, store_added *added)
{
    if (!store_run(cx, db, db->engine->one_writer))
        return false;
    base_mark mark = base_arena_mark(cx);
    inserter in = {.s = db, .record = prepare_record(cx, db)};

    for (int i = 0; i < N_OBJECTS; i++)
        in.object[i] = prepare_object(cx, db, objects[i].object, objects[i].unique);
    bool ok = insert_all(cx, &in, records, count, added);
    for (int i = 0; i < N_OBJECTS; i++)
        store_finish(&in.object[i]);
    store_finish(&in.record);
    base_arena_release(cx, mark);
    return ok;
}

/* Records and the progress of their job in one transaction: after a crash neither knows more than the other.
 */
static bool add_once(tec_context *cx, store *db, const store_record *records, int n, const store_job *job,
                     store_added *count)
{
    *count = (store_added){0};
    if (!store_begin(cx, db))
        return false;
    bool ok = store_insert(cx, db, records, n, count) && (!job || store_write_job(cx, db, job));
    return store_end_write(cx, db, ok);
}

/* A server that went away in between may have kept the batch or not. To add the batch once more is right in
 * both cases, because equal records are kept once. */
bool store_add(tec_context *cx, store *db, const store_record *records, int number, const store_job *job,
               store_added *added)
{
    enum { MOST = 3 };
    store_added count = {0};
    bool ok = false;

    for (int i = 1; !ok && i <= MOST; i++) {
        tec_context *own = base_child(cx);

        ok = add_once(own, db, records, number, job, &count);
        bool last = i == MOST || !store_is_away(db);
        if (!ok && last)
            base_adopt(cx, own);
        tec_context_free(own);
        if (last)
            break;
    }
    if (added)
        *added = ok ? count : (store_added){0};
    return ok;
}
