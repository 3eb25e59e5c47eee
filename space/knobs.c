/* space/knobs.c -- what a template calls: declaring knobs, and reading the values of a point.
 *
 *     int64_t lanes = tec_knob_choice(k, "lanes", 4, 8, 16); // learning: adds a knob, gives its first value
 *     if (!tec_knobs_done(k)) return true;                       // learning ends here
 *     ... steps of the schedule, with `lanes` of the point ...
 *
 * While knobs are learnt, each declaration computes the list of values and adds a knob. Later runs find the
 * knob by its place and only read; a template that declares other knobs than it did at first is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "ir/build.h"
#include "space/knobs.h"

enum { MAX_ORDER = 5 };

/* Keeps the first reason; later refusals follow from it. */
void space_refuse(tec_knobs *k, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!k->reason)
        k->reason = base_vformat(k->cx, fmt, args);
    va_end(args);
}

/* The knob of a run after the first; NULL: the template changed its mind. */
static const space_knob *next_knob(tec_knobs *k, const char *name)
{
    const space_knob *knob = k->next < k->sp->n ? &k->sp->knob[k->next] : NULL;

    if (!knob || strcmp(knob->name, name) != 0) {
        space_refuse(k,
                     "knob '%s' was not declared in the template's first run: knobs must not depend on the "
                     "values of others",
                     name);
        return NULL;
    }
    k->next++;
    return knob;
}

/* The knob is added with what the caller found; NULL with an error in the context. The limit of 2^126 points
 * leaves room for adding in 128 bits. */
static const space_knob *learn_knob(tec_knobs *k, space_knob knob)
{
    space *sp = k->learnt;
    const space_number limit = (space_number)1 << 126;

    if (base_failed(k->cx))
        return NULL;
    if (sp->n == TEC_MAX_KNOBS)
        return base_fail(k->cx, TEC_INVALID, base_where(k->cx),
                         "knob '%s': a template may declare %d knobs at most", knob.name, TEC_MAX_KNOBS);
    if (space_knob_named(sp, knob.name) >= 0)
        return base_fail(k->cx, TEC_INVALID, base_where(k->cx), "knob '%s' is declared twice", knob.name);
    if (knob.count < 1)
        return base_fail(k->cx, TEC_INVALID, base_where(k->cx), "knob '%s' has no value", knob.name);
    if (sp->count > limit / (space_number)knob.count)
        return base_fail(k->cx, TEC_INVALID, base_where(k->cx),
                         "with knob '%s' the space has more points than can be counted", knob.name);
    knob.name = base_strdup(sp->cx, knob.name);
    sp->count *= (space_number)knob.count;
    sp->knob[sp->n] = knob;
    return &sp->knob[sp->n++];
}

/* The numbers of the knob's value at the point; NULL: see k->reason. */
static const int64_t *value_of(const tec_knobs *k, const space_knob *knob)
{
    return knob ? space_value(k->sp, k->p, (int)(knob - k->sp->knob)) : NULL;
}

/* ---- splits ---- */

/* All values of a split are listed when it is learnt. */
static const space_knob *learn_split(tec_knobs *k, const char *name, int64_t extent,
                                     const tec_split_domain *d)
{
    space_knob knob = {.name = name, .kind = SPACE_SPLIT, .parts = d->parts, .extent = extent};

    knob.number = space_split_values(k->cx, name, extent, d, &knob.count, &knob.start);
    return knob.number ? learn_knob(k, knob) : NULL;
}

/* The factors of the point, the first being TEC_INFER; while learning, those of the start. Never NULL:
 * after an error all are 1. */
const int64_t *tec_knob_split(tec_knobs *k, const char *name, int64_t extent, const tec_split_domain *d)
{
    static const int64_t ones[TEC_MAX_PARTS] = {TEC_INFER, 1, 1, 1, 1, 1, 1, 1};
    BASE_GUARD(k ? k->cx : NULL, ones);
    const space_knob *knob = k->mode == SPACE_LEARN ? learn_split(k, name, extent, d) : next_knob(k, name);
    const int64_t *v = k->mode == SPACE_LEARN ? (knob ? knob->number : NULL) : value_of(k, knob);

    return v ? v : ones;
}

/* ---- choices ---- */

/* Gives the point's value; while learning, the first of the list. */
int64_t tec_knob_choice_n(tec_knobs *k, const char *name, const int64_t *value, int n)
{
    BASE_GUARD(k ? k->cx : NULL, value && n > 0 ? value[0] : 0);
    const space_knob *knob;

    if (k->mode == SPACE_LEARN) {
        knob = learn_knob(k, (space_knob){.name = name,
                                          .kind = SPACE_CHOICE,
                                          .parts = 1,
                                          .count = n,
                                          .number = base_copy(k->cx, value, (size_t)n * sizeof *value)});
        return knob ? knob->number[0] : n > 0 ? value[0] : 0;
    }
    knob = next_knob(k, name);
    return knob ? *value_of(k, knob) : value[0];
}

static const char *const *copy_words(tec_context *cx, const char *const *word, int n)
{
    const char **copy = base_array(cx, const char *, n);

    for (int i = 0; i < n; i++)
        copy[i] = base_strdup(cx, word[i]);
    return copy;
}

static const int64_t *count_up(tec_context *cx, int n)
{
    int64_t *number = base_array(cx, int64_t, n);

    for (int i = 0; i < n; i++)
        number[i] = i;
    return number;
}

/* As tec_knob_choice_n, with words for values. The words are copied: the caller's may be temporary. */
const char *tec_knob_word_n(tec_knobs *k, const char *name, const char *const *word, int n)
{
    BASE_GUARD(k ? k->cx : NULL, word && n > 0 ? word[0] : "");
    const space_knob *knob;

    if (k->mode == SPACE_LEARN) {
        learn_knob(k, (space_knob){.name = name,
                                   .kind = SPACE_WORD,
                                   .parts = 1,
                                   .count = n,
                                   .number = count_up(k->cx, n),
                                   .word = copy_words(k->cx, word, n)});
        return n > 0 ? word[0] : "";
    }
    knob = next_knob(k, name);
    return knob ? knob->word[*value_of(k, knob)] : word[0];
}

/* ---- orders ---- */

/* The next permutation in the order of dictionaries; false behind the last.
 *
 *     0 1 2 -> 0 2 1 -> 1 0 2 -> 1 2 0 -> 2 0 1 -> 2 1 0
 *
 * From the end: the longest falling tail, the number before it, the least greater number of the tail in its
 * place, and the tail turned round. */
static bool permute(int64_t *at, int n)
{
    int i = n - 2, j = n - 1;

    while (i >= 0 && at[i] > at[i + 1])
        i--;
    if (i < 0)
        return false;
    while (at[j] < at[i])
        j--;
    int64_t swap = at[i];
    at[i] = at[j];
    at[j] = swap;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        swap = at[a];
        at[a] = at[b];
        at[b] = swap;
    }
    return true;
}

/* A knob whose values are the permutations of n loops, in the order of dictionaries; the first is the order
 * as given. Limited to MAX_ORDER loops, since n! values are listed. */
static const space_knob *learn_order(tec_knobs *k, const char *name, const char *const *loop, int n)
{
    space_knob knob = {
        .name = name, .kind = SPACE_ORDER, .parts = n, .count = 1, .word = copy_words(k->cx, loop, n)};
    int64_t at[MAX_ORDER], *number;
    const char **names;

    if (n < 1 || n > MAX_ORDER)
        return base_fail(k->cx, TEC_INVALID, base_where(k->cx),
                         "knob '%s' orders %d loops: 1 to %d are possible", name, n, MAX_ORDER);
    for (int i = 2; i <= n; i++)
        knob.count *= i;
    number = base_array(k->cx, int64_t, knob.count *n);
    names = base_array(k->cx, const char *, knob.count *n);
    memcpy(at, count_up(k->cx, n), (size_t)n * sizeof *at);
    for (int v = 0; v < knob.count; v++, permute(at, n)) {
        memcpy(number + v * n, at, (size_t)n * sizeof *at);
        for (int i = 0; i < n; i++)
            names[v * n + i] = knob.word[at[i]];
    }
    knob.number = number;
    knob.permuted = names;
    return learn_knob(k, knob);
}

/* The loops in the order of the point; while learning, as given. */
const char *const *tec_knob_order_n(tec_knobs *k, const char *name, const char *const *loop, int n)
{
    BASE_GUARD(k ? k->cx : NULL, loop);
    const space_knob *knob;

    if (k->mode == SPACE_LEARN) {
        knob = learn_order(k, name, loop, n);
        return knob ? knob->permuted : loop;
    }
    knob = next_knob(k, name);
    return knob ? knob->permuted + k->p->value[knob - k->sp->knob] * knob->parts : loop;
}

/* ---- what is said about knobs ---- */

/* The value that is one number, this one; -1: there is none. */
static int place_of(const space_knob *knob, int64_t number)
{
    int v = knob->parts == 1 ? 0 : knob->count;

    while (v < knob->count && knob->number[v] != number)
        v++;
    return v < knob->count ? v : -1;
}

/* Moves the start of the knob to a value of its list. Only while learning: the start belongs to the space and
 * not to a point. */
void tec_knob_start(tec_knobs *k, const char *name, int64_t value)
{
    BASE_GUARD(k ? k->cx : NULL, );
    int i = k->mode == SPACE_LEARN ? space_knob_named(k->learnt, name) : -1;

    if (k->mode != SPACE_LEARN || base_failed(k->cx))
        return;
    space_knob *knob = i >= 0 ? &k->learnt->knob[i] : NULL;
    int v = knob ? place_of(knob, value) : -1;
    if (v >= 0)
        knob->start = v;
    else
        base_fail(k->cx, TEC_INVALID, base_where(k->cx),
                  knob ? "knob '%s' cannot start at %lld: it has no such value"
                       : "no knob '%s' starts at %lld",
                  name, (long long)value);
}

/* A run that checks or applies; -1: there is no such knob, or knobs are learnt. */
static int known_knob(const tec_knobs *k, const char *name)
{
    return k->mode == SPACE_LEARN ? -1 : space_knob_named(k->sp, name);
}

/* Only this value counts. False: the point is to be refused, since it has another; one that is applied need
 * not count. `bound` and `value` are collected whether or not the point has this value, because space_settle
 * moves it there. */
static bool bind(tec_knobs *k, int knob, int value)
{
    k->bound |= (uint64_t)1 << knob;
    k->value[knob] = value;
    return k->mode == SPACE_APPLY || k->p->value[knob] == value;
}

/* The knob has no effect at this point: its start is the value that counts, and others are refused or
 * replaced by it. */
void tec_knob_idle(tec_knobs *k, const char *name)
{
    BASE_GUARD(k ? k->cx : NULL, );
    int i = known_knob(k, name);

    if (i >= 0 && !bind(k, i, k->sp->knob[i].start))
        space_refuse(k, "knob '%s' has no effect at this point, so only its start value is tried", name);
}

/* At this point `value` has the same effect as `other`, which counts. */
void tec_knob_alias(tec_knobs *k, const char *name, int64_t value, int64_t other)
{
    BASE_GUARD(k ? k->cx : NULL, );
    int i = known_knob(k, name), v = i < 0 ? -1 : place_of(&k->sp->knob[i], value),
        w = i < 0 ? -1 : place_of(&k->sp->knob[i], other);

    if (v >= 0 && w >= 0 && k->p->value[i] == v && !bind(k, i, w))
        space_refuse(k,
                     "knob '%s': another value has the same effect at this point, and only that one is tried",
                     name);
}

/* How many loops of its group stand in front of it. */
static int place_in_group(const int64_t *at, int64_t loop, const int *group)
{
    int place = 0;

    for (; *at != loop; at++)
        place += group[*at] == group[loop];
    return place;
}

static bool ordered_alike(const int64_t *a, const int64_t *b, const int *group, int n)
{
    for (int loop = 0; loop < n; loop++)
        if (place_in_group(a, loop, group) != place_in_group(b, loop, group))
            return false;
    return true;
}

/* Names of different groups do not mind each other's order: of all orders that agree within each group the
 * first one counts.
 *
 *     names a b c d, groups {a c} {b d}:  a c b d, a b c d and b d a c agree inside each group: one counts
 */
void tec_knob_order_groups(tec_knobs *k, const char *name, const int *group)
{
    BASE_GUARD(k ? k->cx : NULL, );
    int i = known_knob(k, name), first = 0;
    const space_knob *knob = i < 0 ? NULL : &k->sp->knob[i];

    if (!knob || knob->kind != SPACE_ORDER)
        return;
    const int64_t *now = space_value(k->sp, k->p, i);
    while (!ordered_alike(knob->number + (int64_t)first * knob->parts, now, group, knob->parts))
        first++;
    if (!bind(k, i, first))
        space_refuse(k,
                     "knob '%s': another order has the same effect at this point, and only that one is tried",
                     name);
}

/* Refuses the point with a reason unless ok; not while learning, when values are only examples. */
void tec_knob_require(tec_knobs *k, bool ok, const char *fmt, ...)
{
    BASE_GUARD(k ? k->cx : NULL, );
    va_list args;

    if (ok || k->reason || k->mode == SPACE_LEARN)
        return;
    va_start(args, fmt);
    k->reason = base_vformat(k->cx, fmt, args);
    va_end(args);
}

/* All knobs are declared: true where the schedule is to be made now. A template that forgets a knob of its
 * space is refused. */
bool tec_knobs_done(tec_knobs *k)
{
    BASE_GUARD(k ? k->cx : NULL, false);
    k->done = true;
    if (k->mode != SPACE_LEARN && k->next < k->sp->n)
        space_refuse(k, "knob '%s' was declared in the template's first run, but not in this one",
                     k->sp->knob[k->next].name);
    return k->mode == SPACE_APPLY && !k->reason && !base_failed(k->cx);
}

/* How to run a loop, by a word that a knob may choose. */
bool tec_annotate(tec_schedule *s, const char *loop, const char *word)
{
    BASE_GUARD(s ? sched_context(s) : NULL, false);
    ir_how how = IR_SERIAL;

    if (!word)
        return sched_reject(s, "no word says how to run loop '%s'", loop ? loop : "_");
    if (strcmp(word, "serial") == 0)
        return true;
    if (!ir_how_parse(word, &how))
        return sched_reject(s, "'%s' is no way to run loop '%s'", word, loop ? loop : "_");
    return sched_annotate(s, loop, how);
}

/* One call of the template. False where it, or a knob's rule, has refused the point. */
bool space_run(tec_knobs *k, sched *s)
{
    bool good = k->sp->f(k, s, k->sp->user);

    base_pass_on(k->cx);
    if (!k->done)
        space_refuse(k, "the template never asked tec_knobs_done");
    return good && !k->reason;
}
