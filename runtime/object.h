/* runtime/object.h -- inside the room: what registers of the VM hold: storages, tensors, tuples, data values,
 * closures; and the heap that their memory comes from.
 *
 *     rt_object *s = rt_new_storage(heap, 64, err), *t = rt_new_tensor(heap, s, 0, BASE_F32, 1, shape, err);
 *     rt_release(s);           // the tensor keeps it
 *     rt_release(t);           // frees both
 *     rt_object *w = rt_new_whole(heap, 0, BASE_F32, 1, shape, err);    // the same in one block
 *
 * Objects count their references and make no cycles. Freeing a value frees what it alone refers to, without
 * recursion: a list of any length. Blocks that are freed wait in the heap for the next object of their size,
 * so that a run that has seen its shapes asks the system for nothing. Tensors of a shape that the program
 * knows wait as they are, with their heads filled, for the next tensor of their layout (runtime/layouts.h).
 * Lifetime: a heap lives until it is closed and its last object is released. Constants belong to the module:
 * they are never counted nor freed, and have no storage. Errors: into the caller's tec_error; a size past the
 * heap's limit is NO_MEMORY. Threads: one at a time for a heap and its objects.
 */
#ifndef RUNTIME_OBJECT_H
#define RUNTIME_OBJECT_H

#include "runtime/alloc.h"
#include "runtime/bytecode.h"
#include "tec/runtime.h"

typedef enum {
    RT_OBJECT_STORAGE,
    RT_OBJECT_TENSOR,
    RT_OBJECT_TUPLE,
    RT_OBJECT_DATA,
    RT_OBJECT_CLOSURE
} rt_object_kind;

typedef struct rt_heap rt_heap;
typedef struct tec_object rt_object;

struct tec_object {
    rt_heap *heap;
    rt_object *next; /* of those that are about to be freed */
    int32_t refs;    /* -1: a constant */
    uint8_t kind;
    uint16_t size_class;
};

/* Sizes of blocks: an object's class is a number below this. */
enum { RT_N_CLASSES = 320 };
int64_t rt_class_bytes(int size_class);

typedef struct rt_mirror rt_mirror; /* of a storage, on a device: runtime/mirror.h */

typedef struct {
    rt_object head;
    int64_t bytes;
    char *data;
    rt_mirror *mirror; /* NULL: no device has touched it */
    bool fresh;        /* nothing has been written into it; only programs with kernels of a device tell */
    int32_t ready;     /* the layout of the tensor in its block; 0: it has none, or was extended */
} rt_storage_object;

typedef struct {
    rt_object head;
    rt_storage_object *storage; /* NULL: a constant */
    int64_t bytes;
    int32_t layout; /* the number of its element type and extents (runtime/layouts.h); 0: none */
    int32_t ready;  /* the same while the tensor alone refers to the storage in whose block it lies; else 0 */
    DLTensor tensor; /* compact, over `shape` */
    int64_t shape[];
} rt_tensor_object;

/* A tuple, a data value, a closure. */
typedef struct {
    rt_object head;
    int32_t what; /* which data type; which function */
    int32_t tag;  /* which constructor; 0 for others */
    int32_t n;
    rt_object *part[];
} rt_node_object;

/* max_bytes: of all objects together; 0: no limit. Layouts are 1 to n_layouts. */
rt_heap *rt_heap_new(int64_t max_bytes, int32_t n_layouts, tec_error *err);
void rt_heap_close(rt_heap *heap);
int64_t rt_heap_bytes(const rt_heap *heap); /* of the objects that live */
/* Asks for what the next allocations read, which then comes to the cache while the caller goes on. */
void rt_heap_fetch(const rt_heap *heap);
/* Bytes in other memory count as those of objects do, until they are given back. */
bool rt_heap_take(rt_heap *heap, int64_t bytes, tec_error *err);
void rt_heap_give(rt_heap *heap, int64_t bytes);

/* Since the heap was made, or since its owner set them to 0. */
typedef struct {
    int64_t from_system; /* how often the system was asked for memory */
    int64_t storages, storage_bytes;
    int64_t copied; /* bytes that rt_append copied */
    int64_t peak;   /* most bytes of objects at one time */
} rt_heap_counts;
rt_heap_counts *rt_heap_count(rt_heap *heap);

rt_object *rt_new_storage(rt_heap *heap, int64_t bytes, tec_error *err);
/* Refuses what does not fit into the storage, and negative extents. */
rt_object *rt_new_tensor(rt_heap *heap, rt_object *storage, int64_t offset, base_dtype dtype, int32_t rank,
                         const int64_t *shape, tec_error *err);
/* A tensor with a storage of its own for `room` bytes, or for its elements where those take more: both lie in
 * one block. Refuses negative extents. */
rt_object *rt_new_whole(rt_heap *heap, int64_t room, base_dtype dtype, int32_t rank, const int64_t *shape,
                        tec_error *err);
/* The same for a tensor of this layout, without more room; it may lie in a slab. 0: a shape without a number.
 */
rt_object *rt_new_known(rt_heap *heap, int32_t layout, base_dtype dtype, int32_t rank, const int64_t *shape,
                        tec_error *err);
/* A freed tensor of this layout that waits in the heap; NULL: none waits, or it would pass the limit. */
rt_object *rt_take_ready(rt_heap *heap, int32_t layout);
/* The same elements with another shape, or the first of them; refuses a shape of more. */
rt_object *rt_new_view(rt_heap *heap, rt_object *tensor, int32_t rank, const int64_t *shape, tec_error *err);
/* Whether rt_new_row shares the memory of the tensor; a row that there is not counts as shared. */
bool rt_shares_row(const rt_object *tensor, int64_t index);
/* Element `index` along the first axis. Shares the tensor's memory where that keeps the alignment of 64 bytes
 * which kernels may rely on, and is a copy otherwise. Refuses an index past the end. */
rt_object *rt_new_row(rt_heap *heap, rt_object *tensor, int64_t index, tec_error *err);
/* The elements of `tensor` with `rows` behind them along the first axis: one element of rank count - 1, or a
 * tensor of rank count. Takes the caller's reference to `tensor` and gives one: to the same tensor, extended
 * in place, where nobody else refers to the tensor or to its memory and that has room; otherwise to a new
 * one, whose memory has room for as many rows again. NULL with an error: the reference is still the
 * caller's. */
rt_object *rt_append(rt_heap *heap, rt_object *tensor, const rt_object *rows, tec_error *err);
/* Parts are NULL. */
rt_node_object *rt_new_node(rt_heap *heap, rt_object_kind kind, int32_t what, int32_t tag, int32_t count,
                            tec_error *err);
/* In memory of the caller's, which holds so many bytes. */
size_t rt_constant_object_bytes(int32_t rank);
void rt_constant_object(void *memory, base_dtype dtype, int32_t rank, const int64_t *shape, const void *data);

static inline rt_object *rt_retain(rt_object *object)
{
    if (object && object->refs >= 0)
        object->refs++;
    return object;
}
/* Frees an object whose last reference went, and what it alone holds. */
void rt_free_object(rt_object *object);
static inline void rt_release(rt_object *object)
{
    if (object && object->refs >= 0 && --object->refs == 0)
        rt_free_object(object);
}

/* The memory on the device of a storage that goes: waits there for another storage. */
void rt_mirror_drop(rt_mirror *mirror);

static inline rt_tensor_object *rt_as_tensor(rt_object *object)
{
    return (rt_tensor_object *)(void *)object;
}
static inline rt_node_object *rt_as_node(rt_object *object)
{
    return (rt_node_object *)(void *)object;
}

#endif
