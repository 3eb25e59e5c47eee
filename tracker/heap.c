/* tracker/heap.c -- see heap.h.
 *
 * at[0] is the least; the children of place p, counted from 1, are at 2p and 2p + 1. Each node knows its
 * place, so that one in the middle can be moved or taken without a search; place 0 means that it is in no
 * heap.
 */
#include "tracker/heap.h"

#include <string.h>

#include "runtime/alloc.h"

/* Among equal keys the one that was put in first, so that equals are served in the order of coming. */
static bool before(const track_node *a, const track_node *b)
{
    return a->key < b->key || (a->key <= b->key && a->order < b->order);
}

/* `place` counts from 1. */
static void set(track_heap *h, int place, track_node *n)
{
    h->at[place - 1] = n;
    n->place = place;
}

/* The others move down one by one, and the node is written once, at the end. */
static void rise(track_heap *h, track_node *n)
{
    int place = n->place;

    for (; place > 1 && before(n, h->at[place / 2 - 1]); place /= 2)
        set(h, place, h->at[place / 2 - 1]);
    set(h, place, n);
}

/* Each time the lesser one of two children moves up. */
static void sink(track_heap *h, track_node *n)
{
    int place = n->place;

    for (int child; (child = 2 * place) <= h->n; place = child) {
        if (child < h->n && before(h->at[child], h->at[child - 1]))
            child++;
        if (!before(h->at[child - 1], n))
            break;
        set(h, place, h->at[child - 1]);
    }
    set(h, place, n);
}

/* Puts the item last and lets it rise. The array doubles when it is full. */
bool track_heap_put(track_heap *h, track_node *n, double key)
{
    if (h->n == h->cap) {
        int cap = h->cap ? 2 * h->cap : 16;
        track_node **at = rt_alloc_array(cap, sizeof *at, NULL);

        if (!at)
            return false;
        if (h->n)
            memcpy(at, h->at, (size_t)h->n * sizeof(*at));
        rt_free(h->at);
        h->at = at;
        h->cap = cap;
    }
    n->key = key;
    n->order = h->orders++;
    set(h, ++h->n, n);
    rise(h, n);
    return true;
}

/* Counts as put in anew among its equals. */
void track_heap_move(track_heap *h, track_node *n, double key)
{
    n->key = key;
    n->order = h->orders++;
    rise(h, n);
    sink(h, n);
}

/* The last node fills the gap, and may have to go either way: it comes from another branch. A node that is in
 * no heap is left alone. */
void track_heap_take(track_heap *h, track_node *n)
{
    int place = n->place;

    if (!place)
        return;
    track_node *last = h->at[--h->n];
    n->place = 0;
    if (last == n)
        return;
    set(h, place, last);
    rise(h, last);
    sink(h, last);
}

track_node *track_heap_least(const track_heap *h)
{
    return h->n ? h->at[0] : NULL;
}

void track_heap_free(track_heap *h)
{
    rt_free(h->at);
    *h = (track_heap){0};
}
