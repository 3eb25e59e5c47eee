/* store/json.c -- a record as a line of JSON, and back.
 *
 * Both directions walk the table of fields. Reals are written with 17 digits, so that they, and with them the
 * content hash, read back exactly; 64-bit numbers are written as text, since most readers of JSON take
 * numbers for doubles.
 *
 * A line may be hostile: its length, its depth (by cJSON) and the number of its values are limited before it
 * is parsed.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "store/record.h"

enum { FORMAT = 1 };

/* ---- writing ---- */

/* Control characters are escaped; everything else is UTF-8 already. */
static void add_string(tec_context *cx, base_text *text, const char *string)
{
    base_add(cx, text, "\"");
    for (; *string; string++) {
        size_t plain = 0;

        while ((unsigned char)string[plain] >= ' ' && string[plain] != '"' && string[plain] != '\\' &&
               string[plain] != 0x7f)
            plain++;
        base_addn(cx, text, string, plain);
        string += plain;
        if (!*string)
            break;
        if (*string == '\n')
            base_add(cx, text, "\\n");
        else if (*string == '"' || *string == '\\')
            base_addf(cx, text, "\\%c", *string);
        else
            base_addf(cx, text, "\\u%04x", (unsigned char)*string);
    }
    base_add(cx, text, "\"");
}

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Three bytes are four letters; the last group is filled with '='. */
static void add_base64(tec_context *cx, base_text *text, const unsigned char *data, size_t size)
{
    base_add(cx, text, "\"");
    for (size_t i = 0; i < size; i += 3) {
        unsigned left = size - i > 2 ? 3 : (unsigned)(size - i);
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        char four[4] = {digits64[bits >> 18], digits64[bits >> 12 & 63],
                        left > 1 ? digits64[bits >> 6 & 63] : '=', left > 2 ? digits64[bits & 63] : '='};

        base_addn(cx, text, four, 4);
    }
    base_add(cx, text, "\"");
}

/* One field's value; 64-bit numbers in quotes, since JSON's numbers lose their low bits in most readers. */
static void add_value(tec_context *cx, base_text *text, const store_field *field, const store_record *record)
{
    const void *value = (const char *)record + field->at, *count = (const char *)record + field->count_at;

    switch (field->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: add_string(cx, text, store_field_text(field, record)); return;
    case STORE_FIELD_INT: base_addf(cx, text, "%" PRId64, *(const int64_t *)value); return;
    case STORE_FIELD_INT32: base_addf(cx, text, "%d", *(const int *)value); return;
    case STORE_FIELD_U64: base_addf(cx, text, "\"%" PRIu64 "\"", *(const uint64_t *)value); return;
    case STORE_FIELD_REAL: base_addf(cx, text, "%.17g", *(const double *)value); return;
    case STORE_FIELD_REALS:
        base_add(cx, text, "[");
        for (int i = 0; i < *(const int *)count; i++)
            base_addf(cx, text, "%s%.17g", i ? "," : "", (*(const double *const *)value)[i]);
        base_add(cx, text, "]");
        return;
    case STORE_FIELD_STATUS: add_string(cx, text, store_status_text(*(const store_status *)value)); return;
    case STORE_FIELD_BYTES: add_base64(cx, text, *(const void *const *)value, *(const size_t *)count); return;
    }
}

/* Texts that are empty, lists that have nothing and numbers that nobody knows are left out: so they read
 * back. */
static bool is_empty(const store_field *field, const store_record *record)
{
    const void *value = (const char *)record + field->at, *count = (const char *)record + field->count_at;

    if (field->kind == STORE_FIELD_TEXT || field->kind == STORE_FIELD_LINE)
        return !*store_field_text(field, record);
    if (field->flags & STORE_FIELD_UNKNOWN)
        return field->kind == STORE_FIELD_REAL ? *(const double *)value == 0 : *(const int64_t *)value == 0;
    return (field->kind == STORE_FIELD_REALS && *(const int *)count == 0) ||
           (field->kind == STORE_FIELD_BYTES && *(const size_t *)count == 0);
}

/* Writes the fields of one object of a record as JSON, without empty and derived ones. */
static void add_object(tec_context *cx, base_text *text, const char *object, const store_record *record)
{
    const char *comma = *object ? "" : ",";

    for (int i = 0; i < store_n_fields; i++) {
        const store_field *field = &store_fields[i];

        if (strcmp(field->object, object) != 0 || field->flags & STORE_FIELD_DERIVED ||
            is_empty(field, record))
            continue;
        base_addf(cx, text, "%s\"%s\":", comma, field->name);
        add_value(cx, text, field, record);
        comma = ",";
    }
}

static const char *const objects[] = {"workload", "target", "device"};

/* The record as a line without an end. The hash lets a reader see whether the line is whole. */
const char *store_json(tec_context *cx, const store_record *record)
{
    const store_record *c = store_complete(cx, record);
    char hash[STORE_HASH_SIZE];
    base_text t = {0};

    if (!c)
        return NULL;
    base_addf(cx, &t, "{\"tec_record\":%d,\"hash\":\"%s\"", FORMAT, store_record_hash(c, hash));
    for (int i = 0; i < BASE_COUNT(objects); i++) {
        base_addf(cx, &t, ",\"%s\":{", objects[i]);
        add_object(cx, &t, objects[i], c);
        base_add(cx, &t, "}");
    }
    add_object(cx, &t, "", c);
    base_add(cx, &t, "}");
    return base_text_str(cx, &t);
}

/* ---- limits ---- */

/* Counts what will become values, outside of strings, and finds the NUL that would cut a string short. */
static bool within_limits(tec_context *cx, const char *line, size_t size)
{
    int64_t values = 0;
    bool inside = false;

    for (size_t i = 0; i < size; i++) {
        if (line[i] == '\0' ||
            (inside && line[i] == '\\' && size - i > 5 && memcmp(line + i, "\\u0000", 6) == 0))
            return base_fail(cx, TEC_INVALID, (base_loc){0}, "unexpected NUL character at byte %zu", i + 1);
        if (inside && line[i] == '\\')
            i++;
        else if (line[i] == '"')
            inside = !inside;
        else if (!inside && strchr(",:[{", line[i]))
            values++;
    }
    if (values <= STORE_MAX_VALUES)
        return true;
    return base_fail(cx, TEC_INVALID, (base_loc){0}, "expected at most %d values, found %lld",
                     STORE_MAX_VALUES, (long long)values);
}

/* ---- reading ---- */

typedef struct {
    tec_context *cx;
    store_record *r;
    const store_field *f;
} reader;

static void *expected(reader *rd, const char *what)
{
    return base_fail(rd->cx, TEC_INVALID, (base_loc){0}, "%s%s%s: expected %s", rd->f->object,
                     *rd->f->object ? "." : "", rd->f->name, what);
}

static bool read_text(reader *rd, const cJSON *json, const char **to)
{
    if (!cJSON_IsString(json))
        return expected(rd, "a string");
    *to = base_strdup(rd->cx, json->valuestring);
    return true;
}

/* Doubles hold whole numbers exactly up to 2^53. */
static bool read_int(reader *rd, const cJSON *json, int64_t limit, int64_t *to)
{
    if (!cJSON_IsNumber(json) || !(fabs(json->valuedouble) <= (double)limit) ||
        json->valuedouble != trunc(json->valuedouble))
        return expected(rd, base_format(rd->cx, "a whole number between -%lld and %lld", (long long)limit,
                                        (long long)limit));
    *to = (int64_t)json->valuedouble;
    return true;
}

/* Numbers of JSON are doubles in most readers, which lose digits above 2^53: hashes and seeds are strings. */
static bool read_u64(reader *rd, const cJSON *json, uint64_t *to)
{
    char *end = NULL;

    errno = 0;
    if (cJSON_IsString(json) && json->valuestring[0] >= '0' && json->valuestring[0] <= '9')
        *to = strtoull(json->valuestring, &end, 10);
    return (end && !*end && errno == 0) || expected(rd, "a string of digits below 2^64");
}

/* An array of numbers, not longer than the field's limit. */
static bool read_reals(reader *rd, const cJSON *json, const double **to, int *count)
{
    int n = cJSON_IsArray(json) ? cJSON_GetArraySize(json) : -1, i = 0;
    const cJSON *item;

    if (n < 0 || n > rd->f->limit)
        return expected(rd, base_format(rd->cx, "an array of at most %lld numbers", (long long)rd->f->limit));
    double *values = base_array(rd->cx, double, n);
    cJSON_ArrayForEach(item, json)
    {
        if (!cJSON_IsNumber(item))
            return expected(rd, "numbers alone");
        values[i++] = item->valuedouble;
    }
    *to = values;
    *count = n;
    return true;
}

static int digit64(char c)
{
    const char *at = c ? strchr(digits64, c) : NULL;

    return at ? (int)(at - digits64) : -1;
}

/* Appends the bytes of four digits; false: they are none. Only the last four may end in '='. */
static bool read_four(const char *four, bool last, unsigned char *out, size_t *size)
{
    int pad = last ? (four[3] == '=') + (four[3] == '=' && four[2] == '=') : 0;
    uint32_t bits = 0;

    for (int i = 0; i < 4; i++) {
        int digit = i < 4 - pad ? digit64(four[i]) : 0;

        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
    }
    for (int i = 0; i < 3 - pad; i++)
        out[(*size)++] = (unsigned char)(bits >> (16 - 8 * i));
    return true;
}

/* The size is checked before memory is taken for it. */
static bool read_base64(reader *rd, const cJSON *json, const void **to, size_t *count)
{
    size_t length = cJSON_IsString(json) ? strlen(json->valuestring) : 1, n = 0;

    if (length % 4 || length / 4 * 3 > (size_t)rd->f->limit + 2)
        return expected(rd,
                        base_format(rd->cx, "base64 text of at most %lld bytes", (long long)rd->f->limit));
    unsigned char *data = base_alloc(rd->cx, length / 4 * 3);
    for (size_t i = 0; i < length; i += 4)
        if (!read_four(json->valuestring + i, i + 4 == length, data, &n))
            return expected(rd, "base64 text");
    *to = data;
    *count = n;
    return true;
}

/* A value of another type than the field's is an error that names the field. */
static bool read_value(reader *rd, const cJSON *json)
{
    char *value = (char *)rd->r + rd->f->at, *count = (char *)rd->r + rd->f->count_at;
    int64_t number = 0;

    switch (rd->f->kind) {
    case STORE_FIELD_TEXT:
    case STORE_FIELD_LINE: return read_text(rd, json, (const char **)value);
    case STORE_FIELD_INT: return read_int(rd, json, (int64_t)1 << 53, (int64_t *)value);
    case STORE_FIELD_INT32:
        if (!read_int(rd, json, INT32_MAX, &number))
            return false;
        *(int *)value = (int)number;
        return true;
    case STORE_FIELD_U64: return read_u64(rd, json, (uint64_t *)value);
    case STORE_FIELD_REAL:
        if (!cJSON_IsNumber(json))
            return expected(rd, "a number");
        *(double *)value = json->valuedouble;
        return true;
    case STORE_FIELD_REALS: return read_reals(rd, json, (const double **)value, (int *)count);
    case STORE_FIELD_STATUS:
        return (cJSON_IsString(json) && store_status_parse(json->valuestring, (store_status *)value)) ||
               expected(rd, "a known status");
    case STORE_FIELD_BYTES: return read_base64(rd, json, (const void **)value, (size_t *)count);
    }
    return false;
}

/* Reads the fields of one object of the table; unknown members are ignored, so that newer lines can be read.
 */
static bool read_object(reader *rd, const char *object, const cJSON *from)
{
    if (!cJSON_IsObject(from))
        return base_fail(rd->cx, TEC_INVALID, (base_loc){0}, "%s: expected an object", object);
    for (int i = 0; i < store_n_fields; i++) {
        rd->f = &store_fields[i];
        if (strcmp(rd->f->object, object) != 0 || rd->f->flags & STORE_FIELD_DERIVED)
            continue;
        const cJSON *j = cJSON_GetObjectItemCaseSensitive(from, rd->f->name);
        if (!j && rd->f->kind == STORE_FIELD_STATUS)
            return expected(rd, "a known status");
        if (j && !read_value(rd, j))
            return false;
    }
    return true;
}

/* A version that is not known is refused: its fields may mean something else. */
static bool check_format(tec_context *cx, const cJSON *json)
{
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(json, "tec_record");

    if (!cJSON_IsNumber(version))
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "not a record: there is no \"tec_record\" with the version of the format");
    if (version->valuedouble != FORMAT)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){0},
                         "the record has version %g of the format, but tec %s reads version %d",
                         version->valuedouble, tec_version(), FORMAT);
    return true;
}

/* A line written by hand need not know its hash. */
static bool check_hash(tec_context *cx, const cJSON *json, const store_record *record)
{
    const cJSON *stated = cJSON_GetObjectItemCaseSensitive(json, "hash");
    char hash[STORE_HASH_SIZE];

    if (!stated ||
        (cJSON_IsString(stated) && strcmp(stated->valuestring, store_record_hash(record, hash)) == 0))
        return true;
    return base_fail(cx, TEC_INVALID, (base_loc){0},
                     "the record does not match its hash: it was changed or damaged (a changed record "
                     "needs no \"hash\")");
}

/* The record is completed and compared with the hash that the line claims. */
static const store_record *read_record(tec_context *cx, const cJSON *json)
{
    reader rd = {.cx = cx, .r = base_new(cx, store_record)};

    if (!cJSON_IsObject(json))
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "expected a JSON object");
    if (!check_format(cx, json))
        return NULL;
    for (int i = 0; i < BASE_COUNT(objects); i++) {
        const cJSON *part = cJSON_GetObjectItemCaseSensitive(json, objects[i]);

        if (part && !read_object(&rd, objects[i], part))
            return NULL;
    }
    if (!read_object(&rd, "", json))
        return NULL;
    const store_record *record = store_complete(cx, rd.r);
    return record && check_hash(cx, json, record) ? record : NULL;
}

static void delete_json(void *j)
{
    cJSON_Delete(j);
}

/* NULL with an error that says what was expected where. The line may come from anybody. */
const store_record *store_json_parse(tec_context *cx, const char *line, size_t size)
{
    const char *end = NULL;
    base_held held;

    if (size > STORE_MAX_LINE)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "expected at most %d bytes, found %zu",
                         STORE_MAX_LINE, size);
    if (!within_limits(cx, line, size))
        return NULL;
    /* cJSON wants the end marked: a copy with a NUL, which also makes the text the reader's own. */
    char *text = base_strndup(cx, line, size);
    cJSON *j = cJSON_ParseWithOpts(text, &end, 1);
    if (!j)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "not JSON, at byte %lld",
                         end ? (long long)(end - text) + 1 : 1);
    base_hold(cx, &held, delete_json, j);
    const store_record *record = read_record(cx, j);
    base_drop(&held);
    return record;
}
