/* space/text.c -- points as JSON: an object with one member for each knob.
 *
 *     {"C.y": [4, 12], "unroll": 4, "outer": ["C.x", "C.y"], "pack": "panel"}
 *
 * A split lists its inner parts, an order its names. Values stand there by what they are and not by their
 * place, so that a text means the same for another version of the space, or is refused.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/lexer.h"
#include "space/space.h"

/* ---- printing ---- */

/* Names of loops and stages have no characters below a blank, so quotes and backslashes are all that needs an
 * escape. */
static void add_string(tec_context *cx, base_text *text, const char *s)
{
    base_add(cx, text, "\"");
    for (; *s; s++)
        base_addf(cx, text, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    base_add(cx, text, "\"");
}

/* The value as it stands in a point's text. The outermost part of a split follows from the others and is
 * left out. A split of 64 into [2, 4, 8] is written as [4, 8]. */
static void add_value(tec_context *cx, base_text *text, const space_knob *knob, int value)
{
    const int64_t *number = knob->number + (int64_t)value * knob->parts;
    int first = knob->kind == SPACE_SPLIT;

    if (knob->kind == SPACE_CHOICE)
        base_addf(cx, text, "%" PRId64, number[0]);
    if (knob->kind == SPACE_WORD)
        add_string(cx, text, knob->word[number[0]]);
    if (knob->kind == SPACE_CHOICE || knob->kind == SPACE_WORD)
        return;
    for (int i = first; i < knob->parts; i++) {
        base_add(cx, text, i == first ? "[" : ", ");
        if (knob->kind == SPACE_ORDER)
            add_string(cx, text, knob->word[number[i]]);
        else
            base_addf(cx, text, "%" PRId64, number[i]);
    }
    base_add(cx, text, "]");
}

/* All knobs, in the order in which the template declared them; read back, the order does not matter. */
const char *space_point_text(tec_context *cx, const space *sp, const space_point *point)
{
    base_text t = {0};

    for (int i = 0; i < space_n_knobs(sp); i++) {
        base_add(cx, &t, i ? ", " : "{");
        add_string(cx, &t, space_knob_at(sp, i)->name);
        base_add(cx, &t, ": ");
        add_value(cx, &t, space_knob_at(sp, i), point->value[i]);
    }
    base_add(cx, &t, space_n_knobs(sp) ? "}" : "{}");
    return base_text_str(cx, &t);
}

/* ---- parsing ---- */

/* One number or string, as it is printed. */
static void parse_item(base_lexer *lx, tec_context *cx, base_text *out)
{
    int64_t i;

    if (lx->tok.kind == BASE_TOK_STRING) {
        add_string(cx, out, lx->tok.text);
        base_advance(lx);
    } else if (base_expect_int(lx, "a number or a string", &i))
        base_addf(cx, out, "%" PRId64, i);
}

/* A value in the form that add_value gives it. Gives the text in the form of add_value, whatever spaces stand
 * in the input. */
static const char *parse_value(base_lexer *lx, tec_context *cx)
{
    base_text t = {0};

    if (!base_accept(lx, "[")) {
        parse_item(lx, cx, &t);
        return base_text_str(cx, &t);
    }
    base_add(cx, &t, "[");
    do {
        if (t.n > 1)
            base_add(cx, &t, ", ");
        parse_item(lx, cx, &t);
    } while (base_accept(lx, ","));
    base_expect(lx, "]");
    base_add(cx, &t, "]");
    return base_text_str(cx, &t);
}

/* The value that is printed so; -1: there is none. Values are compared as printed text, which is slow and
 * simple: records are read once. */
static int value_of(tec_context *cx, const space_knob *knob, const char *text)
{
    for (int v = 0; v < knob->count; v++) {
        base_mark mark = base_arena_mark(cx);
        base_text t = {0};

        add_value(cx, &t, knob, v);
        bool same = strcmp(base_text_str(cx, &t), text) == 0;
        base_arena_release(cx, mark);
        if (same)
            return v;
    }
    return -1;
}

/* False with an error. */
static bool find_value(tec_context *cx, const space_knob *knob, const char *text, int32_t *out)
{
    *out = value_of(cx, knob, text);
    return *out >= 0 ||
           base_fail(cx, TEC_INVALID, (base_loc){0}, "knob '%s' has no value %s", knob->name, text) != NULL;
}

/* "NAME": VALUE. `seen` has a bit for each knob, to find the ones that the text leaves out. */
static bool parse_member(base_lexer *lx, tec_context *cx, const space *sp, space_point *out, uint64_t *seen)
{
    const char *name = lx->tok.kind == BASE_TOK_STRING ? lx->tok.text : NULL;
    int knob = name ? space_knob_named(sp, name) : -1;

    if (!name) {
        base_unexpected(lx, "the name of a knob");
        return false;
    }
    if (knob < 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "the space has no knob '%s'", name) != NULL;
    base_advance(lx);
    base_expect(lx, ":");
    const char *value = parse_value(lx, cx);
    if (base_failed(cx) || !find_value(cx, space_knob_at(sp, knob), value, &out->value[knob]))
        return false;
    *seen |= (uint64_t)1 << knob;
    return true;
}

/* The text must name every knob of the space once: a record of another version of the space is refused rather
 * than read in part. */
bool space_point_parse(tec_context *cx, const space *sp, const char *text, space_point *out)
{
    base_lexer *lx = base_lexer_new(cx, NULL, text);
    uint64_t seen = 0;

    *out = (space_point){.n = space_n_knobs(sp)};
    base_expect(lx, "{");
    if (!base_at(lx, "}"))
        do {
            if (!parse_member(lx, cx, sp, out, &seen))
                return false;
        } while (base_accept(lx, ","));
    base_expect(lx, "}");
    for (int i = 0; i < space_n_knobs(sp) && !base_failed(cx); i++)
        if (!(seen >> i & 1))
            base_fail(cx, TEC_INVALID, (base_loc){0}, "the point has no value for knob '%s'",
                      space_knob_at(sp, i)->name);
    return !base_failed(cx);
}

/* ---- from another space ---- */

/* The logarithms of the ratios of the numbers, in all; infinite where it is not as many of them.
 *
 *     the split [4, 12] against the text [4, 6]:   |log2 5 - log2 5| + |log2 7 - log2 13| = 0.89
 */
static double distance(const space_knob *knob, int value, const char *text)
{
    double sum = 0;

    for (int i = knob->kind == SPACE_SPLIT; i < knob->parts; i++) {
        char *end;

        text += strspn(text, "[, ");
        sum += fabs(log2((double)strtoll(text, &end, 10) + 1) -
                    log2((double)knob->number[(int64_t)value * knob->parts + i] + 1));
        if (end == text)
            return INFINITY;
        text = end;
    }
    return text[strspn(text, "] ")] ? INFINITY : sum;
}

/* Stays as it is where no value is like it. Words and orders have no distance: they are taken only if they
 * are there. Numbers are compared by their ratio, so that 8 is as far from 4 as from 16. */
static void take_nearest(tec_context *cx, const space_knob *knob, const char *text, int32_t *value)
{
    double least = INFINITY;

    if (knob->kind == SPACE_WORD || knob->kind == SPACE_ORDER) {
        int same = value_of(cx, knob, text);

        *value = same >= 0 ? same : *value;
        return;
    }
    for (int v = 0; v < knob->count; v++) {
        double d = distance(knob, v, text);

        if (d < least) {
            least = d;
            *value = v;
        }
    }
}

/* As space_point_parse for a point of another space: unknown knobs are skipped, values become the nearest
 * here. So a record of another size, or of an older version of the space, gives a place to start from. */
static bool read_near(base_lexer *lx, tec_context *cx, const space *sp, space_point *out)
{
    base_expect(lx, "{");
    if (!base_at(lx, "}"))
        do {
            int knob = lx->tok.kind == BASE_TOK_STRING ? space_knob_named(sp, lx->tok.text) : -1;

            base_advance(lx);
            base_expect(lx, ":");
            const char *value = parse_value(lx, cx);
            if (base_failed(cx))
                return false;
            if (knob >= 0)
                take_nearest(cx, space_knob_at(sp, knob), value, &out->value[knob]);
        } while (base_accept(lx, ","));
    base_expect(lx, "}");
    return !base_failed(cx);
}

/* Everything is parsed in a context of its own: a text that is not understood leaves no error behind. */
bool space_point_near(tec_context *cx, const space *sp, const char *text, space_point *out)
{
    tec_context *own = base_child(cx);

    *out = space_start(sp);
    bool good = read_near(base_lexer_new(own, NULL, text), own, sp, out) && space_settle(own, sp, out);
    tec_context_free(own);
    return good;
}
