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
static size_t place_field(const rpc_field *field, size_t *end)
{
    const layout *l = &layouts[field->type];
    size_t at = (*end + l->align - 1) / l->align * l->align;

    *end = at + l->size;
    return at;
}

/* ---- structs to bytes ---- */

static void put_record(rt_bytes *bytes, const rpc_record *record, const void *from, int version);

static void put_numbers(rt_bytes *bytes, const rpc_numbers *numbers)
{
    worker_put_i64(bytes, numbers->n);
    for (int64_t i = 0; i < numbers->n; i++)
        worker_put_i64(bytes, numbers->at[i]);
}

static void put_rows(rt_bytes *bytes, const rpc_record *record, const rpc_rows *rows, int version)
{
    worker_put_i64(bytes, rows->n);
    for (int64_t i = 0; i < rows->n; i++)
        put_record(bytes, record, (const char *)rows->at + (size_t)i * record->size, version);
}

static void put_field(rt_bytes *bytes, const rpc_field *field, const void *at, int version)
{
    switch (field->type) {
    case RPC_TYPE_i64: worker_put_i64(bytes, *(const int64_t *)at); break;
    case RPC_TYPE_f64: worker_put_f64(bytes, *(const double *)at); break;
    case RPC_TYPE_text: worker_put_text(bytes, *(const char *const *)at); break;
    case RPC_TYPE_bytes:
        worker_put_bytes(bytes, ((const rpc_span *)at)->data, ((const rpc_span *)at)->n);
        break;
    case RPC_TYPE_i64s: put_numbers(bytes, at); break;
    case RPC_TYPE_rows: put_rows(bytes, field->record, at, version); break;
    }
}

/* The wire has no padding, and needs none. */
static void put_record(rt_bytes *bytes, const rpc_record *record, const void *from, int version)
{
    size_t end = 0;

    for (int i = 0; i < record->n_fields; i++) {
        const void *at = (const char *)from + place_field(&record->fields[i], &end);

        if (record->fields[i].since <= version)
            put_field(bytes, &record->fields[i], at, version);
    }
}

void rpc_encode(rt_bytes *bytes, rpc_kind kind, const void *message, int version)
{
    put_record(bytes, rpc_find_message(kind)->record, message, version);
}

/* ---- bytes to structs ---- */

/* `arena` has the lists that were decoded; texts and bytes point into the message itself. */
typedef struct {
    worker_reader r;
    int version;
    rt_arena *arena;
} decoder;

static void get_record(decoder *self, const rpc_record *record, void *to);

/* The count is compared with the bytes that are left before anything is allocated: a short message cannot ask
 * for much memory. */
static void get_numbers(decoder *self, rpc_numbers *numbers)
{
    int64_t n = worker_get_count(&self->r, INT64_MAX, 8);
    int64_t *at = rt_arena_alloc(self->arena, n, sizeof *at, NULL);

    if (!at)
        self->r.failed = true;
    for (int64_t i = 0; at && i < n; i++)
        at[i] = worker_get_i64(&self->r);
    *numbers = (rpc_numbers){at, at ? n : 0};
}

/* The least that a record of this version takes: each field begins with eight bytes. */
static size_t least_bytes(const rpc_record *record, int version)
{
    size_t n = 0;

    for (int i = 0; i < record->n_fields; i++)
        n += record->fields[i].since <= version ? 8 : 0;
    return n;
}

/* As for numbers, but with the least size of a row. A record of no fields cannot occur in rows. */
static void get_rows(decoder *self, const rpc_record *record, rpc_rows *rows)
{
    int64_t n = worker_get_count(&self->r, INT64_MAX, least_bytes(record, self->version));
    char *at = rt_arena_alloc(self->arena, n, record->size, NULL);

    if (!at)
        self->r.failed = true;
    for (int64_t i = 0; at && i < n; i++)
        get_record(self, record, at + (size_t)i * record->size);
    *rows = (rpc_rows){at, at ? n : 0};
}

static void get_field(decoder *self, const rpc_field *field, void *at)
{
    switch (field->type) {
    case RPC_TYPE_i64: *(int64_t *)at = worker_get_i64(&self->r); break;
    case RPC_TYPE_f64: *(double *)at = worker_get_f64(&self->r); break;
    case RPC_TYPE_text: *(const char **)at = worker_get_text(&self->r); break;
    case RPC_TYPE_bytes: ((rpc_span *)at)->data = worker_get_bytes(&self->r, &((rpc_span *)at)->n); break;
    case RPC_TYPE_i64s: get_numbers(self, at); break;
    case RPC_TYPE_rows: get_rows(self, field->record, at); break;
    }
}

/* Fields that the sender's version lacks are zero, and texts empty instead of NULL: nobody has to ask for
 * NULL. */
static void get_record(decoder *self, const rpc_record *record, void *to)
{
    size_t end = 0;

    for (int i = 0; i < record->n_fields; i++) {
        const rpc_field *field = &record->fields[i];
        void *at = (char *)to + place_field(field, &end);

        if (field->since <= self->version)
            get_field(self, field, at);
        else if (field->type == RPC_TYPE_text)
            *(const char **)at = "";
    }
}

/* Every byte must be used: what is left over would be a field that one side knows and the other does not. */
bool rpc_decode(rpc_any *out, uint32_t kind, const void *data, size_t size, int version, rt_arena *arena)
{
    const rpc_message *message = rpc_find_message(kind);
    decoder d = {.r = worker_read(data, size), .version = version, .arena = arena};

    memset(out, 0, sizeof *out);
    if (!message || size > message->limit)
        return false;
    get_record(&d, message->record, out);
    return worker_read_all(&d.r);
}
