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
void space_refuse(tec_knobs *knobs, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!knobs->reason)
        knobs->reason = base_vformat(knobs->cx, fmt, args);
    va_end(args);
}

/* The knob of a run after the first; NULL: the template changed its mind. */
static const space_knob *next_knob(tec_knobs *knobs, const char *name)
{
    const space_knob *knob = knobs->next < knobs->sp->n ? &knobs->sp->knob[knobs->next] : NULL;

    if (!knob || strcmp(knob->name, name) != 0) {
        space_refuse(knobs,
                     "knob '%s' was not declared in the template's first run: knobs must not depend on the "
                     "values of others",
                     name);
        return NULL;
    }
    knobs->next++;
    return knob;
}

/* The knob is added with what the caller found; NULL with an error in the context. The limit of 2^126 points
 * leaves room for adding in 128 bits. A knob's place in the point is the order in which the template first
 * declares it. With 20 knobs of 1,000 values a space has 10^60 points: more than 2^126 cannot be numbered. */
static const space_knob *learn_knob(tec_knobs *knobs, space_knob knob)
{
    space *sp = knobs->learnt;
    const space_number limit = (space_number)1 << 126;

    if (base_failed(knobs->cx))
        return NULL;
    if (sp->n == TEC_MAX_KNOBS)
        return base_fail(knobs->cx, TEC_INVALID, base_where(knobs->cx),
                         "knob '%s': a template may declare %d knobs at most", knob.name, TEC_MAX_KNOBS);
    if (space_knob_named(sp, knob.name) >= 0)
        return base_fail(knobs->cx, TEC_INVALID, base_where(knobs->cx), "knob '%s' is declared twice",
                         knob.name);
    if (knob.count < 1)
        return base_fail(knobs->cx, TEC_INVALID, base_where(knobs->cx), "knob '%s' has no value", knob.name);
    if (sp->count > limit / (space_number)knob.count)
        return base_fail(knobs->cx, TEC_INVALID, base_where(knobs->cx),
                         "knob '%s' makes the space too large: it has 2^63 points or more", knob.name);
    knob.name = base_strdup(sp->cx, knob.name);
    sp->count *= (space_number)knob.count;
    sp->knob[sp->n] = knob;
    return &sp->knob[sp->n++];
}

/* The numbers of the knob's value at the point; NULL: see knobs->reason. */
static const int64_t *value_of(const tec_knobs *knobs, const space_knob *knob)
{
    return knob ? space_value(knobs->sp, knobs->p, (int)(knob - knobs->sp->knob)) : NULL;
}

/* ---- splits ---- */

/* All values of a split are listed when it is learnt. */
static const space_knob *learn_split(tec_knobs *knobs, const char *name, int64_t extent,
                                     const tec_split_domain *domain)
{
    space_knob knob = {.name = name, .kind = SPACE_SPLIT, .parts = domain->parts, .extent = extent};

    knob.number = space_split_values(knobs->cx, name, extent, domain, &knob.count, &knob.start);
    return knob.number ? learn_knob(knobs, knob) : NULL;
}

/* The factors of the point, the first being TEC_INFER; while learning, those of the start. Never NULL:
 * after an error all are 1. */
const int64_t *tec_knob_split(tec_knobs *knobs, const char *name, int64_t extent,
                              const tec_split_domain *domain)
{
    static const int64_t ones[TEC_MAX_PARTS] = {TEC_INFER, 1, 1, 1, 1, 1, 1, 1};
    BASE_GUARD(knobs ? knobs->cx : NULL, ones);
    const space_knob *knob =
        knobs->mode == SPACE_LEARN ? learn_split(knobs, name, extent, domain) : next_knob(knobs, name);
    const int64_t *v = knobs->mode == SPACE_LEARN ? (knob ? knob->number : NULL) : value_of(knobs, knob);

    return v ? v : ones;
}

/* ---- choices ---- */

/* Gives the point's value; while learning, the first of the list. */
int64_t tec_knob_choice_n(tec_knobs *knobs, const char *name, const int64_t *value, int count)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, value && count > 0 ? value[0] : 0);
    const space_knob *knob;

    if (knobs->mode == SPACE_LEARN) {
        knob = learn_knob(knobs,
                          (space_knob){.name = name,
                                       .kind = SPACE_CHOICE,
                                       .parts = 1,
                                       .count = count,
                                       .number = base_copy(knobs->cx, value, (size_t)count * sizeof *value)});
        return knob ? knob->number[0] : count > 0 ? value[0] : 0;
    }
    knob = next_knob(knobs, name);
    return knob ? *value_of(knobs, knob) : value[0];
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
const char *tec_knob_word_n(tec_knobs *knobs, const char *name, const char *const *word, int count)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, word && count > 0 ? word[0] : "");
    const space_knob *knob;

    if (knobs->mode == SPACE_LEARN) {
        learn_knob(knobs, (space_knob){.name = name,
                                       .kind = SPACE_WORD,
                                       .parts = 1,
                                       .count = count,
                                       .number = count_up(knobs->cx, count),
                                       .word = copy_words(knobs->cx, word, count)});
        return count > 0 ? word[0] : "";
    }
    knob = next_knob(knobs, name);
    return knob ? knob->word[*value_of(knobs, knob)] : word[0];
}

/* ---- orders ---- */

/* The next permutation in the order of dictionaries; false behind the last.
 *
 *     0 1 2 -> 0 2 1 -> 1 0 2 -> 1 2 0 -> 2 0 1 -> 2 1 0
 *
 * From the end: the longest falling tail, the number before it, the least greater number of the tail in its
 * place, and the tail turned round. */
static bool permute(int64_t *at, int count)
{
    int i = count - 2, j = count - 1;

    while (i >= 0 && at[i] > at[i + 1])
        i--;
    if (i < 0)
        return false;
    while (at[j] < at[i])
        j--;
    int64_t swap = at[i];
    at[i] = at[j];
    at[j] = swap;
    for (int a = i + 1, b = count - 1; a < b; a++, b--) {
        swap = at[a];
        at[a] = at[b];
        at[b] = swap;
    }
    return true;
}

/* A knob whose values are the permutations of count loops, in the order of dictionaries; the first is the
 * order as given. Limited to MAX_ORDER loops, since count! values are listed.
 *
 *     order(k, [i, j, l])    values 0: i j l   1: i l j   2: j i l   3: j l i   4: l i j   5: l j i
 */
static const space_knob *learn_order(tec_knobs *knobs, const char *name, const char *const *loop, int count)
{
    space_knob knob = {.name = name,
                       .kind = SPACE_ORDER,
                       .parts = count,
                       .count = 1,
                       .word = copy_words(knobs->cx, loop, count)};
    int64_t at[MAX_ORDER], *number;
    const char **names;

    if (count < 1 || count > MAX_ORDER)
        return base_fail(knobs->cx, TEC_INVALID, base_where(knobs->cx),
                         "knob '%s' orders %d loops: expected 1 to %d", name, count, MAX_ORDER);
    for (int i = 2; i <= count; i++)
        knob.count *= i;
    number = base_array(knobs->cx, int64_t, knob.count *count);
    names = base_array(knobs->cx, const char *, knob.count *count);
    memcpy(at, count_up(knobs->cx, count), (size_t)count * sizeof *at);
    for (int v = 0; v < knob.count; v++, permute(at, count)) {
        memcpy(number + v * count, at, (size_t)count * sizeof *at);
        for (int i = 0; i < count; i++)
            names[v * count + i] = knob.word[at[i]];
    }
    knob.number = number;
    knob.permuted = names;
    return learn_knob(knobs, knob);
}

/* The loops in the order of the point; while learning, as given. */
const char *const *tec_knob_order_n(tec_knobs *knobs, const char *name, const char *const *loop, int count)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, loop);
    const space_knob *knob;

    if (knobs->mode == SPACE_LEARN) {
        knob = learn_order(knobs, name, loop, count);
        return knob ? knob->permuted : loop;
    }
    knob = next_knob(knobs, name);
    return knob ? knob->permuted + knobs->p->value[knob - knobs->sp->knob] * knob->parts : loop;
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

/* Moves the start of the knob to a value of its list. Only while learning: the start belongs to the space
 * and not to a point. The start is the schedule that is used without tuning, and the point from which
 * explorers set out. */
void tec_knob_start(tec_knobs *knobs, const char *name, int64_t value)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, );
    int i = knobs->mode == SPACE_LEARN ? space_knob_named(knobs->learnt, name) : -1;

    if (knobs->mode != SPACE_LEARN || base_failed(knobs->cx))
        return;
    space_knob *knob = i >= 0 ? &knobs->learnt->knob[i] : NULL;
    int v = knob ? place_of(knob, value) : -1;
    if (v >= 0)
        knob->start = v;
    else
        base_fail(knobs->cx, TEC_INVALID, base_where(knobs->cx),
                  knob ? "knob '%s' cannot start at %lld: it has no such value"
                       : "no knob '%s' starts at %lld",
                  name, (long long)value);
}

/* A run that checks or applies; -1: there is no such knob, or knobs are learnt. */
static int known_knob(const tec_knobs *knobs, const char *name)
{
    return knobs->mode == SPACE_LEARN ? -1 : space_knob_named(knobs->sp, name);
}

/* Only this value counts. False: the point is to be refused, since it has another; one that is applied need
 * not count. `bound` and `value` are collected whether or not the point has this value, because space_settle
 * moves it there. */
static bool bind(tec_knobs *knobs, int knob, int value)
{
    knobs->bound |= (uint64_t)1 << knob;
    knobs->value[knob] = value;
    return knobs->mode == SPACE_APPLY || knobs->p->value[knob] == value;
}

/* The knob has no effect at this point: its start is the value that counts, and others are refused or
 * replaced by it. */
void tec_knob_idle(tec_knobs *knobs, const char *name)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, );
    int i = known_knob(knobs, name);

    if (i >= 0 && !bind(knobs, i, knobs->sp->knob[i].start))
        space_refuse(knobs, "knob '%s' has no effect at this point, so only its start value is tried", name);
}

/* At this point `value` has the same effect as `other`, which counts. */
void tec_knob_alias(tec_knobs *knobs, const char *name, int64_t value, int64_t other)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, );
    int i = known_knob(knobs, name), v = i < 0 ? -1 : place_of(&knobs->sp->knob[i], value),
        w = i < 0 ? -1 : place_of(&knobs->sp->knob[i], other);

    if (v >= 0 && w >= 0 && knobs->p->value[i] == v && !bind(knobs, i, w))
        space_refuse(knobs,
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

/* Two orders are the same schedule if each loop has the same place within its group: permuting loops of
 * different groups changes nothing. */
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
void tec_knob_order_groups(tec_knobs *knobs, const char *name, const int *group)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, );
    int i = known_knob(knobs, name), first = 0;
    const space_knob *knob = i < 0 ? NULL : &knobs->sp->knob[i];

    if (!knob || knob->kind != SPACE_ORDER)
        return;
    const int64_t *now = space_value(knobs->sp, knobs->p, i);
    while (!ordered_alike(knob->number + (int64_t)first * knob->parts, now, group, knob->parts))
        first++;
    if (!bind(knobs, i, first))
        space_refuse(knobs,
                     "knob '%s': another order has the same effect at this point, and only that one is tried",
                     name);
}

/* Refuses the point with a reason unless ok; not while learning, when values are only examples. */
void tec_knob_require(tec_knobs *knobs, bool ok, const char *fmt, ...)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, );
    va_list args;

    if (ok || knobs->reason || knobs->mode == SPACE_LEARN)
        return;
    va_start(args, fmt);
    knobs->reason = base_vformat(knobs->cx, fmt, args);
    va_end(args);
}

/* All knobs are declared: true where the schedule is to be made now. A template that forgets a knob of its
 * space is refused. */
bool tec_knobs_done(tec_knobs *knobs)
{
    BASE_GUARD(knobs ? knobs->cx : NULL, false);
    knobs->done = true;
    if (knobs->mode != SPACE_LEARN && knobs->next < knobs->sp->n)
        space_refuse(knobs, "knob '%s' was declared in the template's first run, but not in this one",
                     knobs->sp->knob[knobs->next].name);
    return knobs->mode == SPACE_APPLY && !knobs->reason && !base_failed(knobs->cx);
}

/* How to run a loop, by a word that a knob may choose. */
bool tec_annotate(tec_schedule *schedule, const char *loop, const char *word)
{
    BASE_GUARD(schedule ? sched_context(schedule) : NULL, false);
    ir_how how = IR_SERIAL;

    if (!word)
        return sched_reject(schedule, "no word says how to run loop '%s'", loop ? loop : "_");
    if (strcmp(word, "serial") == 0)
        return true;
    if (!ir_how_parse(word, &how))
        return sched_reject(schedule, "'%s' is not a way to run loop '%s'", word, loop ? loop : "_");
    return sched_annotate(schedule, loop, how);
}

/* One call of the template. False where it, or a knob's rule, has refused the point. */
bool space_run(tec_knobs *knobs, sched *schedule)
{
    bool good = knobs->sp->f(knobs, schedule, knobs->sp->user);

    base_pass_on(knobs->cx);
    if (!knobs->done)
        space_refuse(knobs, "the template never called tec_knobs_done");
    return good && !knobs->reason;
}
