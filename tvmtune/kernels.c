/* tvmtune/kernels.c -- see kernels.h. */
#include "tvmtune/kernels.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <string.h>

#include "base/guard.h"
#include "tvmtune/field.h"

static void free_json(void *j)
{
    cJSON_Delete(j);
}

static const char *copy(tec_context *cx, const cJSON *object, const char *key)
{
    return base_strdup(cx, tvm_text_of(object, key));
}

/* 16 hexadecimal digits. */
static bool is_key(const char *key)
{
    return strlen(key) == 16 && strspn(key, "0123456789abcdef") == 16;
}

static bool has_key(const store_part *parts, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(parts[i].key, key) == 0)
            return true;
    return false;
}

/* Whether the line is an object of this event, given to `take`. */
static bool read_line(tec_context *cx, const char *line, size_t size, const char *event,
                      void (*take)(tec_context *cx, const cJSON *object, void *user), void *user)
{
    cJSON *o = cJSON_ParseWithLength(line, size);
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "event"));
    bool is = found && strcmp(found, event) == 0;
    base_held held;

    base_hold(cx, &held, free_json, o);
    if (is)
        take(cx, o, user);
    base_drop(&held);
    return is;
}

static int count_lines(const char *text)
{
    int n = 1;

    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* The child's output is a line for each event, as JSON; what is no JSON is passed over, as the output of a
 * child that was killed ends anywhere. */
static void read_lines(tec_context *cx, const char *text, const char *event,
                       void (*take)(tec_context *cx, const cJSON *object, void *user), void *user)
{
    for (size_t size; *text; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        read_line(cx, text, size, event, take, user);
    }
}

/* ---- the kernels ---- */

typedef struct {
    store_part *at;
    store_part_report *reports;
    int n;
    const char *codegen, *machine;
} found;

/* A kernel without a key of 16 digits, or with the key of one before, is left out. */
static void take_kernel(tec_context *cx, const cJSON *object, void *user)
{
    found *f = user;
    const cJSON *uses = cJSON_GetObjectItemCaseSensitive(object, "uses");
    const store_part p = {.key = copy(cx, object, "key"),
                          .target = copy(cx, object, "target"),
                          .name = copy(cx, object, "task"),
                          .summary = copy(cx, object, "summary"),
                          .uses = cJSON_IsNumber(uses) ? uses->valuedouble : 1};

    if (!is_key(p.key) || has_key(f->at, f->n, p.key))
        return;
    f->at[f->n++] = p;
    f->codegen = copy(cx, object, "codegen");
    f->machine = copy(cx, object, "machine");
}

tvm_kernels tvm_read_kernels(tec_context *cx, const char *text)
{
    found f = {.at = base_array(cx, store_part, count_lines(text)), .codegen = "unknown", .machine = ""};

    read_lines(cx, text, "kernel", take_kernel, &f);
    return (tvm_kernels){f.at, f.n, *f.codegen ? f.codegen : "unknown", f.machine};
}

/* ---- what came of them ---- */

static void take_outcome(tec_context *cx, const cJSON *object, void *user)
{
    found *f = user;
    const char *key = copy(cx, object, "key");
    char *text = cJSON_PrintUnformatted(object);

    if (text && is_key(key))
        f->reports[f->n++] = (store_part_report){key, base_strdup(cx, text)};
    cJSON_free(text);
}

store_part_report *tvm_read_outcomes(tec_context *cx, const char *text, int *n)
{
    found f = {.reports = base_array(cx, store_part_report, count_lines(text))};

    read_lines(cx, text, "task", take_outcome, &f);
    *n = f.n;
    return f.reports;
}

typedef struct {
    int64_t n, kept;
} remeasured;

/* A count that a hostile process printed: nobody has more kernels than that, and sums of some stay
 * numbers. */
static int count_of(const cJSON *number)
{
    enum { MOST = 100000 };

    return !cJSON_IsNumber(number) || number->valuedouble < 0 ? 0
           : number->valuedouble > MOST                       ? MOST
                                                              : (int)number->valuedouble;
}

/* Schedules of another version of the code generator that were measured again, and how many of them were
 * kept. */
static void take_remeasured(tec_context *cx, const cJSON *object, void *user)
{
    remeasured *r = user;
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, "tasks"),
                *kept = cJSON_GetObjectItemCaseSensitive(object, "kept");

    (void)cx;
    r->n += count_of(n);
    r->kept += count_of(kept);
}

int tvm_read_remeasured(tec_context *cx, const char *text, int *kept)
{
    remeasured r = {0};

    read_lines(cx, text, "remeasured", take_remeasured, &r);
    *kept = (int)(r.kept < INT_MAX ? r.kept : INT_MAX);
    return (int)(r.n < INT_MAX ? r.n : INT_MAX);
}
