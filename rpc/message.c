/* rpc/message.c -- see message.h: the table of messages from rpc/messages.def, and one codec that walks it.
 *
 * A struct of messages.def and its row of fields come from the same lines, so the codec can walk the struct
 * without offsets: it lays the fields out as a C compiler does, each at the next multiple of its alignment.
 * An example:
 *
 *     i64 handle; text name; i64s shape    ->    offsets 0, 8, 16 on a machine of 64 bits
 *
 * On the wire every field is a multiple of eight bytes or begins with a count of eight bytes. A field that is
 * newer than the version of the connection is neither written nor read.
 */
#include "rpc/message.h"

#include <string.h>

/* ---- the table ---- */

/* A record is known as record_of_NAME to the rows that list it, a message's own fields by fields_of_NAME. */
#define RECORD(name) static const rpc_field fields_of_##name[] = {
#define MESSAGE(name, kind, sender, place, roles, limit, what) static const rpc_field fields_of_##name[] = {
#define FIELD(since, type, name, what) {#name, RPC_TYPE_##type, since, NULL, what},
#define ROWS(since, record, name, what) {#name, RPC_TYPE_rows, since, &record_of_##record, what},
#define END(name)                                                                                            \
    }                                                                                                        \
    ;                                                                                                        \
    static const rpc_record record_of_##name = {#name, sizeof(rpc_##name), fields_of_##name,                 \
                                                BASE_COUNT(fields_of_##name)};
#include "rpc/messages.def"

const rpc_message rpc_messages[] = {
#define RECORD(name)
#define MESSAGE(name, kind, sender, place, roles, limit, what)                                               \
    {kind, RPC_FROM_##sender, RPC_ON_##place, RPC_ROLE_##roles, limit, what, &record_of_##name},
#define FIELD(since, type, name, what)
#define ROWS(since, record, name, what)
#define END(name)
#include "rpc/messages.def"
};
const int rpc_n_messages = BASE_COUNT(rpc_messages);

const rpc_message *rpc_find_message(uint32_t kind)
{
    for (int i = 0; i < rpc_n_messages; i++)
        if ((uint32_t)rpc_messages[i].kind == kind)
            return &rpc_messages[i];
    return NULL;
}

/* ---- where fields lie ---- */

/* Bytes of a field in the struct, not on the wire. */
typedef struct {
    size_t size, align;
} layout;

#define LAYOUT(type) {sizeof(type), _Alignof(type)}
static const layout layouts[] = {
    [RPC_TYPE_i64] = LAYOUT(rpc_type_i64),   [RPC_TYPE_f64] = LAYOUT(rpc_type_f64),
    [RPC_TYPE_text] = LAYOUT(rpc_type_text), [RPC_TYPE_bytes] = LAYOUT(rpc_type_bytes),
    [RPC_TYPE_i64s] = LAYOUT(rpc_type_i64s), [RPC_TYPE_rows] = LAYOUT(rpc_rows),
};

/* The place of the next field behind *end, which moves past it. Must be called for every field, also for one
 * that is left out: the next offset depends on it. */
static size_t place_field(const rpc_field *f, size_t *end)
{
    const layout *l = &layouts[f->type];
    size_t at = (*end + l->align - 1) / l->align * l->align;

    *end = at + l->size;
    return at;
}

/* ---- structs to bytes ---- */

static void put_record(rt_bytes *b, const rpc_record *r, const void *from, int version);

static void put_numbers(rt_bytes *b, const rpc_numbers *v)
{
    run_put_i64(b, v->n);
    for (int64_t i = 0; i < v->n; i++)
        run_put_i64(b, v->at[i]);
}

static void put_rows(rt_bytes *b, const rpc_record *r, const rpc_rows *v, int version)
{
    run_put_i64(b, v->n);
    for (int64_t i = 0; i < v->n; i++)
        put_record(b, r, (const char *)v->at + (size_t)i * r->size, version);
}

static void put_field(rt_bytes *b, const rpc_field *f, const void *at, int version)
{
    switch (f->type) {
    case RPC_TYPE_i64: run_put_i64(b, *(const int64_t *)at); break;
    case RPC_TYPE_f64: run_put_f64(b, *(const double *)at); break;
    case RPC_TYPE_text: run_put_text(b, *(const char *const *)at); break;
    case RPC_TYPE_bytes: run_put_bytes(b, ((const rpc_span *)at)->data, ((const rpc_span *)at)->n); break;
    case RPC_TYPE_i64s: put_numbers(b, at); break;
    case RPC_TYPE_rows: put_rows(b, f->record, at, version); break;
    }
}

/* The wire has no padding, and needs none. */
static void put_record(rt_bytes *b, const rpc_record *r, const void *from, int version)
{
    size_t end = 0;

    for (int i = 0; i < r->n_fields; i++) {
        const void *at = (const char *)from + place_field(&r->fields[i], &end);

        if (r->fields[i].since <= version)
            put_field(b, &r->fields[i], at, version);
    }
}

void rpc_encode(rt_bytes *b, rpc_kind kind, const void *message, int version)
{
    put_record(b, rpc_find_message(kind)->record, message, version);
}

/* ---- bytes to structs ---- */

/* `arena` has the lists that were decoded; texts and bytes point into the message itself. */
typedef struct {
    run_reader r;
    int version;
    rt_arena *arena;
} decoder;

static void get_record(decoder *d, const rpc_record *r, void *to);

/* The count is held against the bytes that are left before anything is allocated: a short message cannot ask
 * for much memory. */
static void get_numbers(decoder *d, rpc_numbers *v)
{
    int64_t n = run_get_count(&d->r, INT64_MAX, 8);
    int64_t *at = rt_arena_alloc(d->arena, n, sizeof *at, NULL);

    if (!at)
        d->r.failed = true;
    for (int64_t i = 0; at && i < n; i++)
        at[i] = run_get_i64(&d->r);
    *v = (rpc_numbers){at, at ? n : 0};
}

/* The least that a record of this version takes: each field begins with eight bytes. */
static size_t least_bytes(const rpc_record *r, int version)
{
    size_t n = 0;

    for (int i = 0; i < r->n_fields; i++)
        n += r->fields[i].since <= version ? 8 : 0;
    return n;
}

/* As for numbers, but with the least size of a row. A record of no fields cannot occur in rows. */
static void get_rows(decoder *d, const rpc_record *r, rpc_rows *v)
{
    int64_t n = run_get_count(&d->r, INT64_MAX, least_bytes(r, d->version));
    char *at = rt_arena_alloc(d->arena, n, r->size, NULL);

    if (!at)
        d->r.failed = true;
    for (int64_t i = 0; at && i < n; i++)
        get_record(d, r, at + (size_t)i * r->size);
    *v = (rpc_rows){at, at ? n : 0};
}

static void get_field(decoder *d, const rpc_field *f, void *at)
{
    switch (f->type) {
    case RPC_TYPE_i64: *(int64_t *)at = run_get_i64(&d->r); break;
    case RPC_TYPE_f64: *(double *)at = run_get_f64(&d->r); break;
    case RPC_TYPE_text: *(const char **)at = run_get_text(&d->r); break;
    case RPC_TYPE_bytes: ((rpc_span *)at)->data = run_get_bytes(&d->r, &((rpc_span *)at)->n); break;
    case RPC_TYPE_i64s: get_numbers(d, at); break;
    case RPC_TYPE_rows: get_rows(d, f->record, at); break;
    }
}

/* Fields that the sender's version lacks are zero, and texts empty instead of NULL: nobody has to ask for
 * NULL. */
static void get_record(decoder *d, const rpc_record *r, void *to)
{
    size_t end = 0;

    for (int i = 0; i < r->n_fields; i++) {
        const rpc_field *f = &r->fields[i];
        void *at = (char *)to + place_field(f, &end);

        if (f->since <= d->version)
            get_field(d, f, at);
        else if (f->type == RPC_TYPE_text)
            *(const char **)at = "";
    }
}

/* Every byte must be used: what is left over would be a field that one side knows and the other does not. */
bool rpc_decode(rpc_any *out, uint32_t kind, const void *data, size_t n, int version, rt_arena *arena)
{
    const rpc_message *m = rpc_find_message(kind);
    decoder d = {.r = run_read(data, n), .version = version, .arena = arena};

    memset(out, 0, sizeof *out);
    if (!m || n > m->limit)
        return false;
    get_record(&d, m->record, out);
    return run_read_all(&d.r);
}
