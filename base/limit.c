/* base/limit.c -- see limit.h. */
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/guard.h"

const base_limit_row base_limit_rows[BASE_N_LIMITS] = {
#define BASE_LIMIT(id, name, usual, most, what) [BASE_LIMIT_##id] = {name, usual, most, what},
#include "base/limits.def"
#undef BASE_LIMIT
};

int64_t base_limit(const tec_context *cx, base_limit_id id)
{
    int64_t given = cx->limits->most[id];

    return given ? given : base_limit_rows[id].usual;
}

const char *base_limit_text(tec_context *cx, base_limit_id id)
{
    const char *name = base_limit_rows[id].name;

    return base_format(cx, "the limit '%s' is %lld (--limit %s=N, tec_context_set_limit)", name,
                       (long long)base_limit(cx, id), name);
}

/* The row of that name; -1: there is none. */
static int find_row(const char *name)
{
    for (int i = 0; name && i < BASE_N_LIMITS; i++)
        if (strcmp(base_limit_rows[i].name, name) == 0)
            return i;
    return -1;
}

/* A limit that is not there is refused with the name that was probably meant. */
static bool set_limit(tec_context *cx, const char *name, int64_t value)
{
    int id = find_row(name);
    base_vec names = {0};

    for (int i = 0; id < 0 && i < BASE_N_LIMITS; i++)
        base_push(cx, &names, base_limit_rows[i].name);
    if (id < 0)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no limit '%s'%s", name ? name : "",
                  base_did_you_mean(cx, name ? name : "", &names));
    else if (value < 1 || value > base_limit_rows[id].most)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "limit '%s': expected a number from 1 to %lld, found %lld",
                  name, (long long)base_limit_rows[id].most, (long long)value);
    else
        cx->limits->most[id] = value;
    return !base_failed(cx);
}

bool tec_context_set_limit(tec_context *cx, const char *name, int64_t value)
{
    BASE_GUARD(cx, false);
    return set_limit(cx, name, value);
}

int64_t tec_context_limit(const tec_context *cx, const char *name)
{
    int id = find_row(name);

    return cx && id >= 0 ? base_limit(cx, (base_limit_id)id) : 0;
}

const char *tec_limit_name(int k)
{
    return k >= 0 && k < BASE_N_LIMITS ? base_limit_rows[k].name : NULL;
}

const char *tec_limit_help(const char *name)
{
    int id = find_row(name);

    return id >= 0 ? base_limit_rows[id].what : NULL;
}

const char *base_set_limits_text(tec_context *cx)
{
    base_text text = {0};

    for (int i = 0; i < BASE_N_LIMITS; i++)
        if (cx->limits->most[i])
            base_addf(cx, &text, "%s%s=%lld", text.n ? "," : "", base_limit_rows[i].name,
                      (long long)cx->limits->most[i]);
    return base_text_str(cx, &text);
}

/* What base_set_limits_text has written, in a process that works for another one. */
bool base_read_limits(tec_context *cx, const char *text)
{
    while (*text && !base_failed(cx)) {
        size_t n = strcspn(text, ",");
        char *pair = base_strndup(cx, text, n), *equal = strchr(pair, '='), *end = pair;

        if (equal) {
            *equal = '\0';
            int64_t value = strtoll(equal + 1, &end, 10);
            set_limit(cx, pair, value);
        }
        if (!equal || *end)
            base_fail(cx, TEC_INVALID, (base_loc){0}, "expected NAME=N,NAME=N,..., found '%s'", text);
        text += n + (text[n] == ',');
    }
    return !base_failed(cx);
}
