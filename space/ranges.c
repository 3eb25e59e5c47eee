/* space/ranges.c -- schedules for ranges of a symbol (space/task.h): as text, and as loop trees.
 *
 *     when symbol 0 <= 11:
 *     S.i.0, S.i.1 = split(S.i, _, 4)
 *     when symbol 0 == 12:
 *     unroll(S.i)
 *     otherwise:
 *     parallel(S.i)
 *
 * With "==" the symbol is a number in the definition that is scheduled, so that its loops have constant
 * extents. No step of a trace begins with these words, so that a reader of traces refuses the text at its
 * first line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "schedule/sched.h"
#include "space/task.h"

enum { MOST_RANGES = 64 };

static const char when[] = "when symbol ", otherwise[] = "otherwise:\n";

const char *space_ranges_text(tec_context *cx, const space_ranges *ranges)
{
    base_text out = {0};

    for (int i = 0; i < ranges->n; i++) {
        if (i + 1 < ranges->n)
            base_addf(cx, &out, "%s%d %s %" PRId64 ":\n", when, ranges->symbol,
                      ranges->at[i].fixed ? "==" : "<=", ranges->at[i].to);
        else
            base_addf(cx, &out, "%s", otherwise);
        base_addf(cx, &out, "%s", ranges->at[i].trace);
    }
    return base_text_str(cx, &out);
}

/* "when symbol 0 <= 11:" and the end of the line; false: no such line. */
static bool read_head(const char **at, int *symbol, space_range *out)
{
    char *end;

    *out = (space_range){.to = INT64_MAX};

    if (base_starts_with(*at, otherwise)) {
        *at += strlen(otherwise);
        return true;
    }
    if (!base_starts_with(*at, when))
        return false;
    *symbol = (int)strtol(*at + strlen(when), &end, 10);
    out->fixed = base_starts_with(end, " == ");
    if (!out->fixed && !base_starts_with(end, " <= "))
        return false;
    out->to = strtoll(end + 4, &end, 10);
    *at = end + 2;
    return strncmp(end, ":\n", 2) == 0 && out->to < INT64_MAX;
}

/* Extents are not negative, so a first range that ends at 0 is one value too. */
static bool is_one_value(const space_range *range, int number)
{
    return number > 0 ? range[number].to == range[number - 1].to + 1 : range[0].to == 0;
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

        if (!read_head(&at, &symbol, r) || (out->n > 0 && r->to <= r[-1].to) ||
            (out->n > 0 && symbol != out->symbol) || (r->fixed && !is_one_value(range, out->n)))
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

/* ---- values that have a schedule of their own ---- */

/* Adds a range, or lets the last one grow where that has the same schedule. A range that would end where the
 * last one does is empty. */
static void add(space_range *list, int *n, int64_t to, bool fixed, const char *trace)
{
    space_range *last = *n > 0 ? &list[*n - 1] : NULL;

    if (last ? last->to >= to : to < 0)
        return;
    if (last && !last->fixed && !fixed && strcmp(last->trace, trace) == 0)
        last->to = to;
    else
        list[(*n)++] = (space_range){to, fixed, trace};
}

/* For values 8 and 32 of "up to 20: a, above: b": up to 7: a, 8, up to 20: a, up to 31: b, 32, above: b. */
const space_ranges *space_ranges_fix(tec_context *cx, const space_ranges *standing, const char *trace,
                                     int symbol, const int64_t *value, const char *const *fixed, int count)
{
    const space_ranges all = {.symbol = symbol,
                              .at = &(space_range){.to = INT64_MAX, .trace = trace},
                              .n = 1},
                       *old = standing ? standing : &all;
    bool keep = old->n + 2 * count <= MOST_RANGES; /* fixed ranges of other values, where there is room */
    space_range *at = base_array(cx, space_range, old->n + 2 * count);
    space_ranges *out = base_new(cx, space_ranges);
    int k = 0, n = 0;

    for (int i = 0; i < old->n; i++) {
        const space_range *r = &old->at[i];

        for (; k < count && value[k] <= r->to; k++) {
            if (!r->fixed)
                add(at, &n, value[k] - 1, false, r->trace);
            add(at, &n, value[k], true, fixed[k]);
        }
        if (!r->fixed || keep)
            add(at, &n, r->to, r->fixed, r->trace);
    }
    *out = (space_ranges){.symbol = symbol, .at = at, .n = n};
    return out;
}

/* ---- trees ---- */

/* The tree with the steps of the range; NULL with the reason in *refused where one does not apply. */
static const ir_program *scheduled(tec_context *cx, const ir_program *tree, const target *machine,
                                   const space_range *range, const char **refused)
{
    sched *s = sched_new(cx, tree, machine);

    if (!s)
        return NULL;
    if (sched_replay(s, "record", range->trace))
        return sched_tree(s);
    *refused = base_strdup(cx, sched_error(s));
    return NULL;
}

/* The same of the definition in which the symbol is a number. The tree keeps the symbols of the whole
 * definition, since the caller passes their values by position. */
static const ir_program *fixed_tree(tec_context *cx, const te_def *def, const ir_program *plain,
                                    const target *machine, int symbol, const space_range *range,
                                    const char **refused)
{
    const ir_expr *value = ir_int(cx, range->to);
    const te_def *special = te_specialise(cx, def, &plain->symbols[symbol], &value, 1);
    const ir_program *tree = special ? te_tree(cx, special) : NULL;
    const ir_program *done = tree ? scheduled(cx, tree, machine, range, refused) : NULL;

    if (!done)
        return NULL;
    ir_program *out = ir_program_copy(cx, done);
    out->symbols = plain->symbols;
    out->n_symbols = plain->n_symbols;
    return out;
}

/* An earlier range whose function runs this one too; `number` itself: none. */
static int same_range(const space_ranges *ranges, int number)
{
    const space_range *r = &ranges->at[number];

    for (int i = 0; i < number && !r->fixed; i++)
        if (!ranges->at[i].fixed && strcmp(ranges->at[i].trace, r->trace) == 0)
            return i;
    return number;
}

/* Equal traces give one tree, so that ranges around a fixed one share their function. */
const ir_program **space_ranges_trees(tec_context *cx, const te_def *def, const target *machine,
                                      const space_ranges *ranges, const char **refused)
{
    const ir_program **tree = base_array(cx, const ir_program *, ranges->n), *plain = te_tree(cx, def);

    if (!plain)
        return NULL;
    if (ranges->symbol >= plain->n_symbols) {
        *refused = base_format(cx, "its ranges are of symbol %d, but '%s' has %d symbols", ranges->symbol,
                               plain->name, plain->n_symbols);
        return NULL;
    }
    for (int i = 0; i < ranges->n; i++) {
        const space_range *r = &ranges->at[i];
        int same = same_range(ranges, i);

        tree[i] = same < i   ? tree[same]
                  : r->fixed ? fixed_tree(cx, def, plain, machine, ranges->symbol, r, refused)
                             : scheduled(cx, plain, machine, r, refused);
        if (!tree[i])
            return NULL;
    }
    return tree;
}
