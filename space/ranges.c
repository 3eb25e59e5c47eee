/* space/ranges.c -- schedules for ranges of a symbol (space/task.h): as text, and as loop trees.
 *
 *     when symbol 0 <= 11:
 *     S.i.0, S.i.1 = split(S.i, _, 4)
 *     otherwise:
 *     parallel(S.i)
 *
 * No step of a trace begins with these words, so that a reader of traces refuses the text at its first line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/sched.h"
#include "space/task.h"

enum { MOST_RANGES = 64 };

static const char when[] = "when symbol ", otherwise[] = "otherwise:\n";

const char *space_ranges_text(tec_context *cx, const space_ranges *ranges)
{
    base_text out = {0};

    for (int i = 0; i < ranges->n; i++) {
        if (i + 1 < ranges->n)
            base_addf(cx, &out, "%s%d <= %" PRId64 ":\n", when, ranges->symbol, ranges->at[i].to);
        else
            base_addf(cx, &out, "%s", otherwise);
        base_addf(cx, &out, "%s", ranges->at[i].trace);
    }
    return base_text_str(cx, &out);
}

/* "when symbol 0 <= 11:" and the end of the line; false: no such line. */
static bool read_head(const char **at, int *symbol, int64_t *to)
{
    char *end;

    if (base_starts_with(*at, otherwise)) {
        *at += strlen(otherwise);
        *to = INT64_MAX;
        return true;
    }
    if (!base_starts_with(*at, when))
        return false;
    *symbol = (int)strtol(*at + strlen(when), &end, 10);
    if (strncmp(end, " <= ", 4) != 0)
        return false;
    *to = strtoll(end + 4, &end, 10);
    *at = end + 2;
    return strncmp(end, ":\n", 2) == 0 && *to < INT64_MAX;
}

/* Where the next range begins, or the text ends. */
static const char *next_head(const char *at)
{
    while (*at && !base_starts_with(at, when) && !base_starts_with(at, otherwise)) {
        const char *line = strchr(at, '\n');

        at = line ? line + 1 : at + strlen(at);
    }
    return at;
}

/* Ends must rise, one symbol chooses for all, and the last range is the one without an end. */
const space_ranges *space_ranges_read(tec_context *cx, const char *text)
{
    space_ranges *out = base_new(cx, space_ranges);
    space_range *range = base_array(cx, space_range, MOST_RANGES);

    *out = (space_ranges){.symbol = -1, .at = range};
    for (const char *at = text; *at && out->n < MOST_RANGES; out->n++) {
        space_range *r = &range[out->n];
        int symbol = out->symbol;

        if (!read_head(&at, &symbol, &r->to) || (out->n > 0 && r->to <= r[-1].to) ||
            (out->n > 0 && symbol != out->symbol))
            return NULL;
        const char *end = next_head(at);
        out->symbol = symbol;
        r->trace = base_strndup(cx, at, (size_t)(end - at));
        at = end;
    }
    bool whole = out->n > 1 && range[out->n - 1].to == INT64_MAX && out->symbol >= 0;
    return whole ? out : NULL;
}

const int64_t *space_ranges_ends(tec_context *cx, const space_ranges *ranges)
{
    int64_t *to = base_array(cx, int64_t, ranges->n);

    for (int i = 0; i < ranges->n; i++)
        to[i] = ranges->at[i].to;
    return to;
}

/* A schedule for each trace, over one and the same definition. */
const ir_program **space_ranges_trees(tec_context *cx, const ir_program *plain, const target *machine,
                                      const space_ranges *ranges, const char **refused)
{
    const ir_program **tree = base_array(cx, const ir_program *, ranges->n);

    if (ranges->symbol >= plain->n_symbols) {
        *refused = base_format(cx, "its ranges are of symbol %d, but '%s' has %d symbols", ranges->symbol,
                               plain->name, plain->n_symbols);
        return NULL;
    }
    for (int i = 0; i < ranges->n; i++) {
        sched *s = sched_new(cx, plain, machine);

        if (!s)
            return NULL;
        if (!sched_replay(s, "record", ranges->at[i].trace)) {
            *refused = base_strdup(cx, sched_error(s));
            return NULL;
        }
        tree[i] = sched_tree(s);
    }
    return tree;
}
