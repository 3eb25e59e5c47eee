/* rpc/message.h -- the messages of the wire as structs, and their bytes.
 *
 *     rpc_call m = {.module = 1, .function = "matmul", .arrays = {handles, 3}};
 *     rt_bytes body = {0};
 *     rpc_encode(&body, RPC_KIND_call, &m, version);
 *
 *     rpc_any got;                                             // room for any message
 *     if (!rpc_decode(&got, kind, data, n, version, &arena)) ... cannot be decoded
 *     if (kind == RPC_KIND_call) use(got.call.function);
 *
 * Each row of rpc/messages.def becomes a struct rpc_NAME, a constant RPC_KIND_NAME and a row of
 * rpc_messages. An encoder writes the fields that the negotiated version has; a decoder gives zeros and
 * empty texts for the others.
 * Lifetime: decoded texts and bytes lie in the bytes that were read, lists in the arena.
 * Errors: a decoder takes its input for hostile: a body over the message's limit, a count beyond the bytes
 *   that are there, or bytes left over make it give false. The memory that it takes is bounded by the bytes
 *   that are there.
 * Threads: plain data.
 */
#ifndef RPC_MESSAGE_H
#define RPC_MESSAGE_H

#include "runtime/alloc.h"
#include "worker/wire.h"

enum { RPC_OLDEST = 1, RPC_NEWEST = 7 }; /* versions of the protocol that this library speaks */

typedef struct {
    const void *data;
    size_t n;
} rpc_span;

typedef struct {
    const int64_t *at;
    int64_t n;
} rpc_numbers;

/* A list of records, of whichever kind; `at` points to the first. */
typedef struct {
    const void *at;
    int64_t n;
} rpc_rows;

typedef int64_t rpc_type_i64;
typedef double rpc_type_f64;
typedef const char *rpc_type_text;
typedef rpc_span rpc_type_bytes;
typedef rpc_numbers rpc_type_i64s;

#define RECORD(name) typedef struct {
#define MESSAGE(name, kind, sender, place, roles, limit, what) typedef struct {
#define FIELD(since, type, name, what) rpc_type_##type name;
#define ROWS(since, record, name, what) rpc_rows name;
#define END(name)                                                                                            \
    }                                                                                                        \
    rpc_##name;
#include "rpc/messages.def"

typedef enum {
#define RECORD(name)
#define MESSAGE(name, kind, sender, place, roles, limit, what) RPC_KIND_##name = kind,
#define FIELD(since, type, name, what)
#define ROWS(since, record, name, what)
#define END(name)
#include "rpc/messages.def"
    RPC_KIND_NONE = 0
} rpc_kind;

typedef union {
#define RECORD(name)
#define MESSAGE(name, kind, sender, place, roles, limit, what) rpc_##name name;
#define FIELD(since, type, name, what)
#define ROWS(since, record, name, what)
#define END(name)
#include "rpc/messages.def"
} rpc_any;

/* ---- the table, for what goes over all messages ---- */

typedef enum {
    RPC_TYPE_i64,
    RPC_TYPE_f64,
    RPC_TYPE_text,
    RPC_TYPE_bytes,
    RPC_TYPE_i64s,
    RPC_TYPE_rows
} rpc_type;

typedef struct rpc_record rpc_record;

typedef struct {
    const char *name;
    rpc_type type;
    int since;
    const rpc_record *record; /* of RPC_TYPE_rows */
    const char *what;
} rpc_field;

struct rpc_record {
    const char *name;
    size_t size; /* of its struct */
    const rpc_field *fields;
    int n_fields;
};

typedef enum { RPC_FROM_CLIENT = 1, RPC_FROM_SERVER = 2, RPC_FROM_EITHER = 3 } rpc_sender;
typedef enum { RPC_ON_CONNECTION, RPC_ON_SESSION } rpc_place;

/* Roles of keys, as bits. */
enum { RPC_ROLE_SUBMIT = 1, RPC_ROLE_SERVE = 2, RPC_ROLE_ADMINISTER = 4, RPC_ROLE_ANY = 7 };

typedef struct {
    rpc_kind kind;
    rpc_sender sender;
    rpc_place place;
    unsigned roles;
    size_t limit; /* bytes of the body */
    const char *what;
    const rpc_record *record;
} rpc_message;

extern const rpc_message rpc_messages[];
extern const int rpc_n_messages;

const rpc_message *rpc_find_message(uint32_t kind); /* NULL: there is none */

/* ---- bytes ---- */

/* Adds the body to *bytes; a failed allocation shows in bytes->failed. */
void rpc_encode(rt_bytes *bytes, rpc_kind kind, const void *message, int version);
/* The struct of the kind in *out; false: the bytes are no such message. */
bool rpc_decode(rpc_any *out, uint32_t kind, const void *data, size_t size, int version, rt_arena *arena);

/* Bytes of a data message before those of its piece. */
enum { RPC_DATA_HEAD = 8 };

#endif
