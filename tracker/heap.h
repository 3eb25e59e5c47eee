/* tracker/heap.h -- a binary heap whose items know their place, so that any of them can move or leave.
 *
 *     track_heap h = {0};
 *     if (!track_heap_put(&h, &lease->deadline, now + 20000)) ... no memory
 *     track_heap_move(&h, &lease->deadline, now + 40000);
 *     track_lease *first = TRACK_OWNER(track_heap_least(&h), track_lease, deadline);
 *
 * Items of equal keys leave in the order in which they got the key. Put, move and take cost O(log n).
 * Lifetime: the heap owns its array alone. Errors: put gives false without memory. Threads: one at a time.
 */
#ifndef TRACKER_HEAP_H
#define TRACKER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    double key;
    uint64_t order;
    int place; /* from 1; 0: in no heap */
} track_node;

typedef struct {
    track_node **at;
    int n, cap;
    uint64_t orders;
} track_heap;

#define TRACK_OWNER(node, type, field) ((type *)(void *)((char *)(node) - offsetof(type, field)))

bool track_heap_put(track_heap *heap, track_node *node, double key);
void track_heap_move(track_heap *heap, track_node *node, double key);
void track_heap_take(track_heap *heap, track_node *node); /* one that is in no heap is left alone */
track_node *track_heap_least(const track_heap *heap);     /* NULL: empty */
void track_heap_free(track_heap *heap);

#endif
