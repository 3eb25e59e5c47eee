/* lower/lives.c -- intervals of positions, and which of those entered meet another one.
 *
 * The intervals lie in an array by their starts, and a binary tree over it keeps the latest end among those
 * entered below each node. Two intervals meet where one starts before the other's end and ends after its
 * start: so a question visits the front part of the array, and of that only the nodes whose latest end is
 * late enough, each of which has something to find.
 *
 *     intervals by start: a 0..3, b 2..9, c 4..5, d 8..9      latest ends:      9
 *     question 6..7: meets b alone                                           9     9
 *                                                                           3 9   5 9
 *
 * Node (a, b) is searched as 9 >= 6; a ends at 3 and is skipped; b is found. Node (c, d) starts at 4 <= 7 and
 * has a latest end of 9, so it is searched; c ends at 5, and d starts at 8 > 7: nothing there.
 */
#include "lower/lives.h"

#include <limits.h>
#include <stdlib.h>

enum { NOT_ENTERED = INT_MIN };

struct lower_lives {
    tec_context *cx;
    const lower_life **by_start;
    int *latest; /* node k has the children 2k and 2k + 1; the leaves start at `leaves` */
    int n, leaves;
};

static int by_start(const void *pa, const void *pb)
{
    const lower_life *a = *(lower_life *const *)pa, *b = *(lower_life *const *)pb;

    return a->first < b->first ? -1 : a->first > b->first;
}

/* The number of leaves is a power of two; leaves without an interval are never entered. Ranks are written
 * into the caller's intervals. */
lower_lives *lower_lives_new(tec_context *cx, lower_life *const *all, int n)
{
    lower_lives *l = base_new(cx, lower_lives);
    lower_life **sorted = base_copy(cx, all, (size_t)n * sizeof *sorted);

    if (n > 1)
        qsort(sorted, (size_t)n, sizeof *sorted, by_start);
    for (l->leaves = 1; l->leaves < n;)
        l->leaves *= 2;
    *l = (lower_lives){.cx = cx, .by_start = (const lower_life **)sorted, .n = n, .leaves = l->leaves};
    l->latest = base_array(cx, int, 2 * l->leaves);
    for (int i = 0; i < 2 * l->leaves; i++)
        l->latest[i] = NOT_ENTERED;
    for (int i = 0; i < n; i++)
        sorted[i]->rank = i;
    return l;
}

void lower_lives_enter(lower_lives *l, const lower_life *one)
{
    for (int k = l->leaves + one->rank; k > 0 && l->latest[k] < one->last; k /= 2)
        l->latest[k] = one->last;
}

/* Node k stands for the intervals from rank `from` on, `size` of them. */
static void collect(const lower_lives *l, int k, int from, int size, const lower_life *one, base_vec *out)
{
    if (l->latest[k] == NOT_ENTERED || l->latest[k] < one->first || l->by_start[from]->first > one->last)
        return;
    if (size == 1) {
        base_push(l->cx, out, l->by_start[from]->owner);
        return;
    }
    collect(l, 2 * k, from, size / 2, one, out);
    if (from + size / 2 < l->n)
        collect(l, 2 * k + 1, from + size / 2, size / 2, one, out);
}

void lower_lives_meeting(const lower_lives *l, const lower_life *one, base_vec *out)
{
    if (l->n > 0)
        collect(l, 1, 0, l->leaves, one, out);
}
