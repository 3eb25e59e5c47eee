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
 * through here too, so that `keep` speaks of every value. `inner` are the parts but the outermost, which
 * follows from the extent. */
static void add_list(lister *self, const int64_t *inner)
{
    if (self->d->keep && !self->d->keep(inner, self->inner, self->d->user))
        return;
    if (self->n == MAX_VALUES) {
        self->overflow = true;
        return;
    }
    if (self->n == self->cap) {
        int64_t *grown =
            base_array(self->cx, int64_t, (size_t)(self->cap ? 2 * self->cap : 64) * (size_t)self->inner);

        if (self->n)
            memcpy(grown, self->list, (size_t)(self->n * self->inner) * sizeof *grown);
        self->cap = self->cap ? 2 * self->cap : 64;
        self->list = grown;
    }
    memcpy(self->list + self->n++ * self->inner, inner, (size_t)self->inner * sizeof *inner);
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
static bool fits(const lister *self, int64_t left, int64_t f)
{
    switch (self->d->policy) {
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
static void list_parts(lister *self, int part, int64_t left)
{
    if (part == self->inner) {
        add_list(self, self->chosen);
        return;
    }
    int64_t most = self->d->most && self->d->most[part] ? self->d->most[part] : left ? left : UNKNOWN_MOST;
    if (left && most > left)
        most = left;
    for (int64_t f = 1; f <= most && !self->overflow; f++) {
        if (!fits(self, left, f))
            continue;
        self->chosen[part] = f;
        list_parts(self, part + 1, left ? (left + f - 1) / f : 0);
    }
}

/* In the order of dictionaries, so that a point's number does not depend on the order in which candidates
 * were found. */
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
static void put_in_order(lister *self)
{
    size_t size = (size_t)self->inner * sizeof *self->list;
    int kept = 0;

    if (self->n)
        qsort_r(self->list, (size_t)self->n, size, compare_lists, &self->inner);
    for (int i = 0; i < self->n; i++)
        if (i == 0 || compare_lists(self->list + (kept - 1) * self->inner, self->list + i * self->inner,
                                    &self->inner) != 0)
            memmove(self->list + kept++ * self->inner, self->list + i * self->inner, size);
    self->n = kept;
}

/* -1: it is not among them. */
static int find_list(lister *self, const int64_t *inner)
{
    for (int i = 0; i < self->n; i++)
        if (compare_lists(self->list + i * self->inner, inner, &self->inner) == 0)
            return i;
    return -1;
}

/* The lists with TEC_INFER in front of each. */
static const int64_t *with_outer(const lister *self)
{
    int64_t *all = base_array(self->cx, int64_t, self->n *(self->inner + 1));

    for (int i = 0; i < self->n; i++) {
        all[i * (self->inner + 1)] = TEC_INFER;
        memcpy(all + i * (self->inner + 1) + 1, self->list + i * self->inner,
               (size_t)self->inner * sizeof *all);
    }
    return all;
}

/* Refuses what only a mistake in a template can ask for; the message names the knob. */
static bool check_domain(tec_context *cx, const char *name, int64_t extent, const tec_split_domain *domain)
{
    if (domain->parts < 2 || domain->parts > TEC_MAX_PARTS)
        return base_fail(cx, TEC_INVALID, base_where(cx), "knob '%s' splits into %d parts: expected 2 to %d",
                         name, domain->parts, TEC_MAX_PARTS) != NULL;
    if (extent < 0)
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "knob '%s' splits an extent of %lld: expected at least 0", name,
                         (long long)extent) != NULL;
    for (int i = 0; i < domain->n_candidates * (domain->parts - 1); i++)
        if (domain->candidate[i] < 1)
            return base_fail(cx, TEC_INVALID, base_where(cx),
                             "knob '%s' has a candidate with factor %lld: expected at least 1", name,
                             (long long)domain->candidate[i]) != NULL;
    return true;
}

/* All values of a split knob and the index of its start. The start and the candidates are values even where
 * the policy would leave them out. The list may be long, so its order is what makes a place in it mean the
 * same on every run. */
const int64_t *space_split_values(tec_context *cx, const char *name, int64_t extent,
                                  const tec_split_domain *domain, int *count, int *start)
{
    lister l = {.cx = cx, .d = domain, .inner = domain->parts - 1};

    if (!check_domain(cx, name, extent, domain))
        return NULL;
    if (domain->policy != TEC_SPLIT_CANDIDATES)
        list_parts(&l, 0, extent);
    for (int i = 0; i < domain->n_candidates; i++)
        add_list(&l, domain->candidate + i * l.inner);
    if (domain->start)
        add_list(&l, domain->start);
    if (l.overflow)
        return base_fail(cx, TEC_INVALID, base_where(cx), "knob '%s' has more than %d values", name,
                         MAX_VALUES);
    put_in_order(&l);
    *count = l.n;
    *start = domain->start ? find_list(&l, domain->start) : 0;
    if (*start < 0)
        return base_fail(cx, TEC_INVALID, base_where(cx), "knob '%s': 'keep' excludes the start value", name);
    return with_outer(&l);
}
