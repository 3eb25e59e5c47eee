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
lower_lives *lower_lives_new(tec_context *cx, lower_life *const *all, int count)
{
    lower_lives *lives = base_new(cx, lower_lives);
    lower_life **sorted = base_copy(cx, all, (size_t)count * sizeof *sorted);

    if (count > 1)
        qsort(sorted, (size_t)count, sizeof *sorted, by_start);
    for (lives->leaves = 1; lives->leaves < count;)
        lives->leaves *= 2;
    *lives =
        (lower_lives){.cx = cx, .by_start = (const lower_life **)sorted, .n = count, .leaves = lives->leaves};
    lives->latest = base_array(cx, int, 2 * lives->leaves);
    for (int i = 0; i < 2 * lives->leaves; i++)
        lives->latest[i] = NOT_ENTERED;
    for (int i = 0; i < count; i++)
        sorted[i]->rank = i;
    return lives;
}

void lower_lives_enter(lower_lives *lives, const lower_life *one)
{
    for (int k = lives->leaves + one->rank; k > 0 && lives->latest[k] < one->last; k /= 2)
        lives->latest[k] = one->last;
}

/* Node node stands for the intervals from rank `from` on, `size` of them. */
static void collect(const lower_lives *lives, int node, int from, int size, const lower_life *one,
                    base_vec *out)
{
    if (lives->latest[node] == NOT_ENTERED || lives->latest[node] < one->first ||
        lives->by_start[from]->first > one->last)
        return;
    if (size == 1) {
        base_push(lives->cx, out, lives->by_start[from]->owner);
        return;
    }
    collect(lives, 2 * node, from, size / 2, one, out);
    if (from + size / 2 < lives->n)
        collect(lives, 2 * node + 1, from + size / 2, size / 2, one, out);
}

void lower_lives_meeting(const lower_lives *lives, const lower_life *one, base_vec *out)
{
    if (lives->n > 0)
        collect(lives, 1, 0, lives->leaves, one, out);
}
