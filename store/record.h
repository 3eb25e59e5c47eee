/* store/record.h -- inside the room: the one table of what a record consists of: columns, JSON names,
 * limits, content hash.
 *
 * The insertion, the queries, both directions of the JSON lines, the content hash and deep copies all walk
 * this table: a new field is a member of store_record, a row here and a migration in schema.c.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "store/store.h"

typedef enum {
    STORE_FIELD_TEXT,   /* const char * */
    STORE_FIELD_LINE,   /* const char *, cut at the end of its first line, bytes that are no text replaced */
    STORE_FIELD_INT,    /* int64_t */
    STORE_FIELD_INT32,  /* int */
    STORE_FIELD_U64,    /* uint64_t; the same 64 bits as a signed number in the file */
    STORE_FIELD_REAL,   /* double, finite */
    STORE_FIELD_REALS,  /* const double *, with an int beside it; little-endian in the file */
    STORE_FIELD_STATUS, /* store_status, by its word */
    STORE_FIELD_BYTES,  /* const void *, with a size_t beside it */
} store_field_kind;

enum {
    STORE_FIELD_HASHED = 1,  /* part of the content hash */
    STORE_FIELD_DERIVED = 2, /* computed from others when a record is added; not exchanged */
    STORE_FIELD_NEEDED = 4,  /* an empty text is an error */
    STORE_FIELD_UNKNOWN = 8, /* a number that is 0 where nobody knows it; then left out of JSON */
    STORE_FIELD_SIGNED = 16, /* a real that may be below zero */
};

typedef struct {
    const char *object; /* "workload", "target", "device": its table without the s; "": the record's own */
    const char *name;   /* the column, and the key in JSON */
    store_field_kind kind;
    size_t at, count_at; /* offsets in store_record */
    int64_t limit;       /* bytes of a text or blob, number of reals */
    unsigned flags;
} store_field;

extern const store_field store_fields[];
extern const int store_n_fields;

/* The text of a field, "" for NULL. */
const char *store_field_text(const store_field *field, const store_record *record);

/* `record` with all that the store fills in, or NULL with what is wrong with it. Shares the arrays and texts
 * of `record`. */
const store_record *store_complete(tec_context *cx, const store_record *record);

bool store_is_utf8(const char *text);
uint64_t store_bytes_hash(const void *data, size_t size);

/* The words of a list of statuses, for both directions. */
int store_find_word(const char *const *words, int n, const char *word); /* -1: none */

#endif
