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
static bool before(const track_node *left, const track_node *right)
{
    return left->key < right->key || (left->key <= right->key && left->order < right->order);
}

/* `place` counts from 1. */
static void set(track_heap *heap, int place, track_node *node)
{
    heap->at[place - 1] = node;
    node->place = place;
}

/* The others move down one by one, and the node is written once, at the end. */
static void rise(track_heap *heap, track_node *node)
{
    int place = node->place;

    for (; place > 1 && before(node, heap->at[place / 2 - 1]); place /= 2)
        set(heap, place, heap->at[place / 2 - 1]);
    set(heap, place, node);
}

/* Each time the lesser one of two children moves up. */
static void sink(track_heap *heap, track_node *node)
{
    int place = node->place;

    for (int child; (child = 2 * place) <= heap->n; place = child) {
        if (child < heap->n && before(heap->at[child], heap->at[child - 1]))
            child++;
        if (!before(heap->at[child - 1], node))
            break;
        set(heap, place, heap->at[child - 1]);
    }
    set(heap, place, node);
}

/* Puts the item last and lets it rise. The array doubles when it is full. */
bool track_heap_put(track_heap *heap, track_node *node, double key)
{
    if (heap->n == heap->cap) {
        int cap = heap->cap ? 2 * heap->cap : 16;
        track_node **at = rt_alloc_array(cap, sizeof *at, NULL);

        if (!at)
            return false;
        if (heap->n)
            memcpy(at, heap->at, (size_t)heap->n * sizeof(*at));
        rt_free(heap->at);
        heap->at = at;
        heap->cap = cap;
    }
    node->key = key;
    node->order = heap->orders++;
    set(heap, ++heap->n, node);
    rise(heap, node);
    return true;
}

/* Counts as put in anew among its equals. */
void track_heap_move(track_heap *heap, track_node *node, double key)
{
    node->key = key;
    node->order = heap->orders++;
    rise(heap, node);
    sink(heap, node);
}

/* The last node fills the gap, and may have to go either way: it comes from another branch. A node that is in
 * no heap is left alone. */
void track_heap_take(track_heap *heap, track_node *node)
{
    int place = node->place;

    if (!place)
        return;
    track_node *last = heap->at[--heap->n];
    node->place = 0;
    if (last == node)
        return;
    set(heap, place, last);
    rise(heap, last);
    sink(heap, last);
}

track_node *track_heap_least(const track_heap *heap)
{
    return heap->n ? heap->at[0] : NULL;
}

void track_heap_free(track_heap *heap)
{
    rt_free(heap->at);
    *heap = (track_heap){0};
}
