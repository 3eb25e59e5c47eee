/* space/split.c -- the values of a split knob: lists of inner parts, in the order of dictionaries.
 *
 *     extent 12, three parts, factors:   [_, 1, 1] [_, 1, 2] [_, 1, 3] ... [_, 12, 1]
 *
 * Inner parts are chosen from the second on; each divides (or cuts) what the parts chosen before it left of
 * the extent. The last part is innermost.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "space/knobs.h"

enum { MAX_VALUES = 1 << 20, UNKNOWN_MOST = 64 };

typedef struct {
    tec_context *cx;
    const tec_split_domain *d;
    int inner; /* parts - 1 */
    int64_t chosen[TEC_MAX_PARTS];
    int64_t *list; /* n lists of `inner` numbers */
    int n, cap;
    bool overflow;
} lister;

/* Adds a list of inner parts if the domain's own rule (`keep`) accepts it. Candidates and the start come
 * through here too, so that `keep` speaks of every value. */
static void add_list(lister *l, const int64_t *inner)
{
    if (l->d->keep && !l->d->keep(inner, l->inner, l->d->user))
        return;
    if (l->n == MAX_VALUES) {
        l->overflow = true;
        return;
    }
    if (l->n == l->cap) {
        int64_t *grown = base_array(l->cx, int64_t, (size_t)(l->cap ? 2 * l->cap : 64) * (size_t)l->inner);

        if (l->n)
            memcpy(grown, l->list, (size_t)(l->n * l->inner) * sizeof *grown);
        l->cap = l->cap ? 2 * l->cap : 64;
        l->list = grown;
    }
    memcpy(l->list + l->n++ * l->inner, inner, (size_t)l->inner * sizeof *inner);
}

static bool is_power_of_two(int64_t f)
{
    return (f & (f - 1)) == 0;
}

/* f cuts n into pieces as equal as can be. An example: 28 in pieces of 10 are 10, 10 and 8, the least size
 * for three pieces, so 10 is balanced; 12 is not, as three pieces of 12 could be smaller. */
static bool is_balanced(int64_t n, int64_t f)
{
    int64_t pieces = (n + f - 1) / f;

    return (n + pieces - 1) / pieces == f;
}

/* Whether f may be the next part, of what is left (0: unknown). With an unknown extent powers of two stand
 * for everything, as nothing is known to divide it. */
static bool fits(const lister *l, int64_t left, int64_t f)
{
    switch (l->d->policy) {
    case TEC_SPLIT_FACTORS: return left ? left % f == 0 : is_power_of_two(f);
    case TEC_SPLIT_POWERS: return is_power_of_two(f);
    case TEC_SPLIT_VERBOSE: return is_power_of_two(f) || (left && (left % f == 0 || is_balanced(left, f)));
    case TEC_SPLIT_CANDIDATES: return false;
    }
    return false;
}

/* All lists in the order of dictionaries, part by part. `left` is what remains of the extent, 0 where the
 * extent is unknown: then any factor up to a limit may be right. An example of the rest: of 12, a part of 5
 * leaves ceildiv(12, 5) = 3. */
static void list_parts(lister *l, int part, int64_t left)
{
    if (part == l->inner) {
        add_list(l, l->chosen);
        return;
    }
    int64_t most = l->d->most && l->d->most[part] ? l->d->most[part] : left ? left : UNKNOWN_MOST;
    if (left && most > left)
        most = left;
    for (int64_t f = 1; f <= most && !l->overflow; f++) {
        if (!fits(l, left, f))
            continue;
        l->chosen[part] = f;
        list_parts(l, part + 1, left ? (left + f - 1) / f : 0);
    }
}

static int compare_lists(const void *a, const void *b, void *inner)
{
    const int64_t *x = a, *y = b;
    int n = *(int *)inner;

    for (int i = 0; i < n; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Sorted, each once. Lists that the policy made are in order already; candidates and the start are not. */
static void put_in_order(lister *l)
{
    size_t size = (size_t)l->inner * sizeof *l->list;
    int kept = 0;

    if (l->n)
        qsort_r(l->list, (size_t)l->n, size, compare_lists, &l->inner);
    for (int i = 0; i < l->n; i++)
        if (i == 0 || compare_lists(l->list + (kept - 1) * l->inner, l->list + i * l->inner, &l->inner) != 0)
            memmove(l->list + kept++ * l->inner, l->list + i * l->inner, size);
    l->n = kept;
}

/* -1: it is not among them. */
static int find_list(lister *l, const int64_t *inner)
{
    for (int i = 0; i < l->n; i++)
        if (compare_lists(l->list + i * l->inner, inner, &l->inner) == 0)
            return i;
    return -1;
}

/* The lists with TEC_INFER in front of each. */
static const int64_t *with_outer(const lister *l)
{
    int64_t *all = base_array(l->cx, int64_t, l->n *(l->inner + 1));

    for (int i = 0; i < l->n; i++) {
        all[i * (l->inner + 1)] = TEC_INFER;
        memcpy(all + i * (l->inner + 1) + 1, l->list + i * l->inner, (size_t)l->inner * sizeof *all);
    }
    return all;
}

/* Refuses what only a mistake in a template can ask for; the message names the knob. */
static bool check_domain(tec_context *cx, const char *name, int64_t extent, const tec_split_domain *d)
{
    if (d->parts < 2 || d->parts > TEC_MAX_PARTS)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "knob '%s' splits into %d parts: 2 to %d are possible", name, d->parts,
                         TEC_MAX_PARTS) != NULL;
    if (extent < 0)
        return base_fail(cx, TEC_INVALID, base_where(cx), "knob '%s' splits an extent of %lld", name,
                         (long long)extent) != NULL;
    for (int i = 0; i < d->n_candidates * (d->parts - 1); i++)
        if (d->candidate[i] < 1)
            return base_fail(cx, TEC_INVALID, base_where(cx), "knob '%s' has a candidate with factor %lld",
                             name, (long long)d->candidate[i]) != NULL;
    return true;
}

/* All values of a split knob and the index of its start. The start and the candidates are values even where
 * the policy would leave them out. The list may be long, so its order is what makes a place in it mean the
 * same on every run. */
const int64_t *space_split_values(tec_context *cx, const char *name, int64_t extent,
                                  const tec_split_domain *d, int *count, int *start)
{
    lister l = {.cx = cx, .d = d, .inner = d->parts - 1};

    if (!check_domain(cx, name, extent, d))
        return NULL;
    if (d->policy != TEC_SPLIT_CANDIDATES)
        list_parts(&l, 0, extent);
    for (int i = 0; i < d->n_candidates; i++)
        add_list(&l, d->candidate + i * l.inner);
    if (d->start)
        add_list(&l, d->start);
    if (l.overflow)
        return base_fail(cx, TEC_INVALID, base_where(cx), "knob '%s' has more than %d values", name,
                         MAX_VALUES);
    put_in_order(&l);
    *count = l.n;
    *start = d->start ? find_list(&l, d->start) : 0;
    if (*start < 0)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "knob '%s': its start is a value that 'keep' leaves out", name);
    return with_outer(&l);
}
