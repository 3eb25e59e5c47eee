/* store/record.c -- the table of a record's fields, and what needs nothing but the table: completing,
 * hashing, copying. */
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AT(member) offsetof(store_record, member)
#define TEXT(object, name, member, limit, flags) {object, name, STORE_FIELD_TEXT, AT(member), 0, limit, flags}
#define NUMBER(object, name, kind, member, flags) {object, name, STORE_FIELD_##kind, AT(member), 0, 0, flags}

enum { HASHED = STORE_FIELD_HASHED, DERIVED = STORE_FIELD_DERIVED, NEEDED = STORE_FIELD_NEEDED };

/* What JSON can carry as a number. */
static const int64_t MAX_WHOLE = (int64_t)1 << 53;

/* The order is that of the content hash: a row that is hashed never moves. */
const store_field store_fields[] = {
    TEXT("workload", "anchor_key", workload.anchor_key, STORE_MAX_KEY, HASHED | NEEDED),
    TEXT("workload", "exact_key", workload.exact_key, STORE_MAX_KEY, HASHED | NEEDED),
    TEXT("workload", "family", workload.family, STORE_MAX_KEY, 0),
    TEXT("workload", "definition", workload.definition, STORE_MAX_TEXT, 0),
    TEXT("workload", "summary", workload.summary, STORE_MAX_KEY, 0),
    {"workload", "shape", STORE_FIELD_REALS, AT(workload.shape), AT(workload.n_shape), STORE_MAX_SHAPE, 0},
    NUMBER("workload", "flops", REAL, workload.flops, 0),
    NUMBER("workload", "anchor_hash", U64, workload.anchor_hash, DERIVED),
    NUMBER("workload", "exact_hash", U64, workload.exact_hash, DERIVED),
    TEXT("target", "fingerprint", target.fingerprint, STORE_MAX_NAME, HASHED | NEEDED),
    TEXT("target", "text", target.text, STORE_MAX_KEY, 0),
    TEXT("device", "name", device.name, STORE_MAX_NAME, HASHED),
    TEXT("device", "text", device.text, STORE_MAX_KEY, HASHED),
    TEXT("", "trace", trace, STORE_MAX_TEXT, HASHED),
    {"", "costs", STORE_FIELD_REALS, AT(costs), AT(n_costs), STORE_MAX_COSTS, HASHED},
    NUMBER("", "median", REAL, median, DERIVED),
    NUMBER("", "spread", REAL, spread, DERIVED),
    NUMBER("", "status", STATUS, status, HASHED),
    TEXT("", "stage", stage, STORE_MAX_NAME, HASHED),
    TEXT("", "error_kind", error_kind, STORE_MAX_NAME, HASHED),
    {"", "error", STORE_FIELD_LINE, AT(error), 0, STORE_MAX_ERROR, HASHED},
    NUMBER("", "features_version", INT32, features_version, 0),
    {"", "features", STORE_FIELD_BYTES, AT(features), AT(features_size), STORE_MAX_FEATURES, 0},
    TEXT("", "tuner", tuner, STORE_MAX_NAME, HASHED),
    TEXT("", "job", job, STORE_MAX_NAME, 0),
    NUMBER("", "seed", U64, seed, HASHED),
    NUMBER("", "batch", INT, batch, HASHED),
    NUMBER("", "trial", INT, trial, HASHED),
    TEXT("", "codegen", codegen, STORE_MAX_NAME, HASHED),
    TEXT("", "tec", version, STORE_MAX_NAME, HASHED),
    NUMBER("", "time", INT, time, HASHED),
    TEXT("", "point", point, STORE_MAX_TEXT, 0),
    TEXT("", "driver", driver, STORE_MAX_NAME, 0),
    NUMBER("", "clock_mhz", INT, clock_mhz, STORE_FIELD_UNKNOWN),
    NUMBER("", "temperature", REAL, temperature, STORE_FIELD_UNKNOWN | STORE_FIELD_SIGNED),
};
const int store_n_fields = BASE_COUNT(store_fields);

static const char *const status_words[] = {
#define X(name, text) text,
    STORE_STATUS_LIST(X)
#undef X
};

int store_find_word(const char *const *words, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (word && strcmp(words[i], word) == 0)
            return i;
    return -1;
}

const char *store_status_text(store_status status)
{
    return (unsigned)status < BASE_COUNT(status_words) ? status_words[status] : "unknown status";
}

bool store_status_parse(const char *text, store_status *out)
{
    int i = store_find_word(status_words, BASE_COUNT(status_words), text);

    if (i >= 0)
        *out = (store_status)i;
    return i >= 0;
}

static const void *member(const store_record *record, size_t at)
{
    return (const char *)record + at;
}

const char *store_field_text(const store_field *field, const store_record *record)
{
    const char *text = *(const char *const *)member(record, field->at);

    return text ? text : "";
}

/* ---- median and spread ---- */

/* Sorts what it is given. */
static double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, base_compare_doubles);
    return n % 2 ? values[n / 2] : values[n / 2 - 1] / 2 + values[n / 2] / 2;
}

/* Median and median of the deviations from it: one outlier moves neither. */
void store_summarise(const double *costs, int count, double *median, double *spread)
{
    double values[STORE_MAX_COSTS];

    *median = *spread = 0;
    if (count <= 0 || count > STORE_MAX_COSTS)
        return;
    memcpy(values, costs, (size_t)count * sizeof *values);
    *median = median_of(values, count);
    for (int i = 0; i < count; i++)
        values[i] = fabs(values[i] - *median);
    *spread = median_of(values, count);
}

/* ---- checking ---- */

/* Bytes of the UTF-8 character at bytes, as RFC 3629 allows it: shortest form, no surrogates; 0: there is
 * none. */
static int character_size(const unsigned char *bytes)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = bytes[0] < 0x80       ? 1
            : bytes[0] >> 5 == 6  ? 2
            : bytes[0] >> 4 == 14 ? 3
            : bytes[0] >> 3 == 30 ? 4
                                  : 0;

    if (n < 2)
        return n;
    unsigned code = bytes[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if (bytes[i] >> 6 != 2)
            return 0;
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : n;
}

bool store_is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p) {
        int n = character_size(p);

        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

/* What a tool said may hold anything; that must not cost us the record. */
static const char *first_line(tec_context *cx, const char *text)
{
    char *line = base_strndup(cx, text, STORE_MAX_ERROR);
    int n, at = 0;

    line[strcspn(line, "\r\n")] = '\0';
    for (; line[at]; at += n) {
        n = character_size((unsigned char *)line + at);
        if (n == 0 || (unsigned char)line[at] < ' ') {
            line[at] = line[at] == '\t' ? ' ' : '?';
            n = 1;
        }
    }
    return line;
}

static const char *full_name(tec_context *cx, const store_field *field)
{
    return base_format(cx, "%s%s%s", field->object, *field->object ? "." : "", field->name);
}

static bool check_text(tec_context *cx, const store_field *field, const char *text)
{
    size_t size = strlen(text);

    if (size == 0 && field->flags & NEEDED)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s is missing", full_name(cx, field));
    if (size > (size_t)field->limit)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s has %zu bytes, over the limit of %lld",
                         full_name(cx, field), size, (long long)field->limit);
    if (!store_is_utf8(text))
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s is not UTF-8 text", full_name(cx, field));
    return true;
}

static bool check_reals(tec_context *cx, const store_field *field, const double *values, int count)
{
    if (count < 0 || count > field->limit)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s has %d numbers; 0 to %lld are allowed",
                         full_name(cx, field), count, (long long)field->limit);
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]) || (values[i] < 0 && !(field->flags & STORE_FIELD_SIGNED)))
            return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s[%d] is %g; expected a finite number%s",
                             full_name(cx, field), i, values[i],
                             field->flags & STORE_FIELD_SIGNED ? "" : ", not below zero");
    return true;
}

/* Limits of every field, checked before anything is written or hashed. */
static bool check_field(tec_context *cx, const store_field *field, const store_record *record)
{
    const void *at = member(record, field->at), *count = member(record, field->count_at);

    switch (field->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: return check_text(cx, field, store_field_text(field, record));
    case STORE_FIELD_REALS: return check_reals(cx, field, *(const double *const *)at, *(const int *)count);
    case STORE_FIELD_REAL:
        return check_reals(
            cx,
            &(store_field){.object = field->object, .name = field->name, .limit = 1, .flags = field->flags},
            at, 1);
    case STORE_FIELD_STATUS:
        if ((unsigned)*(const store_status *)at < BASE_COUNT(status_words))
            return true;
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no status %d",
                         (int)*(const store_status *)at);
    case STORE_FIELD_BYTES:
        if (*(const size_t *)count <= (size_t)field->limit)
            return true;
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "%s has %zu bytes, over the limit of %lld",
                         full_name(cx, field), *(const size_t *)count, (long long)field->limit);
    case STORE_FIELD_INT:
        if (llabs(*(const int64_t *)at) <= MAX_WHOLE)
            return true;
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "%s is %lld; expected a number between -2^53 and 2^53", full_name(cx, field),
                         (long long)*(const int64_t *)at);
    case STORE_FIELD_INT32:
    case STORE_FIELD_U64: return true;
    }
    return true;
}

/* A cost of 0 would win against all others. */
static bool check_costs(tec_context *cx, const store_record *record)
{
    if (record->status != STORE_OK)
        return true;
    if (record->n_costs == 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "a record that is ok needs at least one cost");
    for (int i = 0; i < record->n_costs; i++)
        if (!(record->costs[i] > 0))
            return base_fail(cx, TEC_INVALID, (base_loc){0},
                             "costs[%d] is %g seconds; expected more than zero", i, record->costs[i]);
    return true;
}

uint64_t store_bytes_hash(const void *data, size_t size)
{
    return base_hash(data, size, BASE_HASH_SEED);
}

static uint64_t text_hash(const char *text)
{
    return store_bytes_hash(text, strlen(text));
}

/* A copy with all derived fields filled in; NULL with an error for a record that no store would take. */
const store_record *store_complete(tec_context *cx, const store_record *record)
{
    store_record *c = base_copy(cx, record, sizeof *record);

    c->error = first_line(cx, record->error ? record->error : "");
    c->version = record->version && *record->version ? record->version : tec_version();
    c->time = record->time ? record->time : (int64_t)time(NULL);
    c->features = record->features_size ? record->features : NULL;
    for (int i = 0; i < store_n_fields; i++)
        if (!(store_fields[i].flags & DERIVED) && !check_field(cx, &store_fields[i], c))
            return NULL;
    if (!check_costs(cx, c))
        return NULL;
    store_summarise(c->costs, c->n_costs, &c->median, &c->spread);
    c->workload.anchor_hash = text_hash(c->workload.anchor_key);
    c->workload.exact_hash = text_hash(c->workload.exact_key);
    return c;
}

/* ---- hashing ---- */

/* Byte by byte from the least on: the hash is the same on all machines, and is stored. */
static uint64_t hash_number(uint64_t number, uint64_t h)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    return base_hash(bytes, sizeof bytes, h);
}

static uint64_t hash_reals(const double *values, int count, uint64_t hash)
{
    uint64_t bits;

    hash = hash_number((uint64_t)count, hash);
    for (int i = 0; i < count; i++) {
        memcpy(&bits, &values[i], sizeof bits);
        hash = hash_number(bits, hash);
    }
    return hash;
}

/* Adds the field to the content hash. Numbers are hashed as bytes in a fixed order, so that all machines
 * agree. */
static uint64_t hash_field(const store_field *field, const store_record *record, uint64_t hash)
{
    const void *at = member(record, field->at), *count = member(record, field->count_at);
    const char *text;

    switch (field->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: text = store_field_text(field, record); return base_hash(text, strlen(text), hash);
    case STORE_FIELD_INT:
    case STORE_FIELD_U64: return hash_number(*(const uint64_t *)at, hash);
    case STORE_FIELD_INT32: return hash_number((uint64_t)*(const int *)at, hash);
    case STORE_FIELD_REAL: return hash_reals(at, 1, hash);
    case STORE_FIELD_REALS: return hash_reals(*(const double *const *)at, *(const int *)count, hash);
    case STORE_FIELD_STATUS:
        text = store_status_text(*(const store_status *)at);
        return base_hash(text, strlen(text), hash);
    case STORE_FIELD_BYTES: return base_hash(*(const void *const *)at, *(const size_t *)count, hash);
    }
    return hash;
}

/* 128 bits by two seeds, over the fields that are marked HASHED. */
const char *store_record_hash(const store_record *record, char out[STORE_HASH_SIZE])
{
    uint64_t h[2] = {BASE_HASH_SEED, ~BASE_HASH_SEED};

    for (int i = 0; i < store_n_fields; i++)
        if (store_fields[i].flags & HASHED)
            for (int k = 0; k < 2; k++)
                h[k] = hash_field(&store_fields[i], record, h[k]);
    snprintf(out, STORE_HASH_SIZE, "%016" PRIx64 "%016" PRIx64, h[0], h[1]);
    return out;
}

/* ---- copying ---- */

/* A copy of everything that the record points to: cursors reuse their memory. */
store_record *store_keep(tec_context *cx, const store_record *record)
{
    store_record *c = base_copy(cx, record, sizeof *record);

    for (int i = 0; i < store_n_fields; i++) {
        const store_field *field = &store_fields[i];
        const void *from = *(const void *const *)member(record, field->at);
        const void **to = (const void **)((char *)c + field->at);

        if (field->kind == STORE_FIELD_TEXT || field->kind == STORE_FIELD_LINE)
            *to = base_strdup(cx, from ? from : "");
        else if (field->kind == STORE_FIELD_REALS)
            *to = base_copy(cx, from, (size_t)*(const int *)member(record, field->count_at) * sizeof(double));
        else if (field->kind == STORE_FIELD_BYTES && from)
            *to = base_copy(cx, from, *(const size_t *)member(record, field->count_at));
    }
    return c;
}
