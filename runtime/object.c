/* runtime/object.c -- see object.h. Blocks are 64-byte aligned; a storage's bytes follow its head in one
 * block, and between them the tensor for which the storage was made, if there is one. Blocks have 64, 128,
 * 256 and 512 bytes, and from there on eight sizes to a doubling, so that a block is at most an eighth larger
 * than what lies in it:
 *
 *     class   6    7    8    9   10   11  ..   16    17    18 ..
 *     bytes  64  128  256  512  576  640  ..  960  1024  1152 ..
 *
 * Small tensors of a known layout are made many at a time, in a slab: all heads, then all bytes.
 *
 *     slab | storage, tensor | storage, tensor | .. | bytes | bytes | ..
 *
 * So the heads lie close together. Where the head of one tensor stands behind the bytes of another, which a
 * second thread writes, the first thread waits for the head when it frees the tensor: `ret` took twice as
 * long in a Tree-LSTM on two threads as on one. Probably the second core fetches ahead what it is going to
 * write.
 *
 * Objects are counted, and freed without recursion: a list of a million nodes would otherwise need a stack of
 * a million frames. An object whose count has become 0 is linked into a list of the dead by `next`; its parts
 * are dropped, which may add to the list, and then it is freed.
 *
 *     release a list:  dead = [c1];  parts of c1: c2, so dead = [c2];  free c1;  parts of c2: c3, and so on
 *
 * Constants have a count of -1 and are never freed.
 */
#include "runtime/object.h"

#include <string.h>

#include "runtime/shape.h"
#include "runtime/tensor.h"

enum { FIRST_CLASS = 6, LAST_WHOLE = 9 }; /* of LAST_WHOLE and below: 2^class bytes */
enum { INSIDE = 0 }; /* the class of a tensor in the block of its storage, and of a storage in a slab */
enum { SLAB_BYTES = 16 << 10 }; /* at least two tensors make a slab; larger ones have blocks of their own */

/* A free block of some class: only its first word is used. */
typedef struct block {
    struct block *next;
} block;

/* The tensors of a layout that wait, linked by head.next, each of which alone refers to its storage. */
typedef struct {
    rt_tensor_object *first;
    int64_t bytes; /* what one of them counts, with its storage */
} layout_list;

typedef struct slab {
    struct slab *next;
} slab;

/* `bytes` counts what is in use, by whole blocks; memory of free blocks stays with the heap, so a program
 * that repeats itself asks the system for nothing. What an allocation changes lies in one line of the cache.
 */
struct rt_heap {
    int64_t bytes, max_bytes, live;
    rt_heap_counts counts;
    bool closed;
    int32_t n_layouts;
    slab *slabs;
    block *free[RT_N_CLASSES]; /* by classes */
    layout_list ready[];       /* [1 + n_layouts] */
};

/* ---- blocks ---- */

rt_heap *rt_heap_new(int64_t max_bytes, int32_t n_layouts, tec_error *err)
{
    size_t size = sizeof(rt_heap) + (1 + (size_t)n_layouts) * sizeof(layout_list);
    rt_heap *h = rt_alloc_aligned(size, err);

    if (h) {
        memset(h, 0, size);
        h->max_bytes = max_bytes;
        h->n_layouts = n_layouts;
    }
    return h;
}

/* All that waits, of sizes and of layouts; no object lives any more. */
static void free_heap(rt_heap *heap)
{
    for (int k = 0; k < RT_N_CLASSES; k++)
        while (heap->free[k]) {
            block *b = heap->free[k];

            heap->free[k] = b->next;
            rt_free(b);
        }
    for (int32_t l = 1; l <= heap->n_layouts; l++)
        while (heap->ready[l].first) {
            rt_tensor_object *tensor = heap->ready[l].first;

            heap->ready[l].first = rt_as_tensor(tensor->head.next);
            if (tensor->storage->head.size_class != INSIDE)
                rt_free(tensor->storage);
        }
    while (heap->slabs) {
        slab *first = heap->slabs;

        heap->slabs = first->next;
        rt_free(first);
    }
    rt_free(heap);
}

/* Results may outlive the program: the heap goes with the last of them. */
void rt_heap_close(rt_heap *heap)
{
    if (!heap)
        return;
    heap->closed = true;
    if (heap->live == 0)
        free_heap(heap);
}

int64_t rt_heap_bytes(const rt_heap *heap)
{
    return heap->bytes;
}

/* The lists of the first seven layouts; most programs have no more. */
void rt_heap_fetch(const rt_heap *heap)
{
    const char *lists = (const char *)heap->ready;

    __builtin_prefetch(heap, 1);
    __builtin_prefetch(lists, 1);
    __builtin_prefetch(lists + 64, 1);
}

rt_heap_counts *rt_heap_count(rt_heap *heap)
{
    return &heap->counts;
}

int64_t rt_class_bytes(int size_class)
{
    int over = size_class - LAST_WHOLE;

    return over <= 0 ? (int64_t)1 << size_class : (int64_t)(8 + over % 8) << (LAST_WHOLE - 3 + over / 8);
}

/* The least class whose blocks have so many bytes; RT_N_CLASSES where there is none. For 600 bytes: 2^9 <
 * 600, and ceil(600 / 64) - 8 = 2, so the second class behind that of 512 bytes. */
static int class_of(size_t size)
{
    int below = size <= 1 ? -1 : 63 - __builtin_clzll((unsigned long long)size - 1); /* 2^below < size */

    if (below < LAST_WHOLE)
        return below + 1 < FIRST_CLASS ? FIRST_CLASS : below + 1;
    int eighths = (int)((size - 1) >> (below - 3)) - 7;
    int k = LAST_WHOLE + 8 * (below - LAST_WHOLE) + eighths;
    return k < RT_N_CLASSES ? k : RT_N_CLASSES;
}

static bool fail_limit(const rt_heap *heap, tec_error *err)
{
    return rt_fail(err, TEC_NO_MEMORY, "the limit of %lld bytes of memory is reached",
                   (long long)heap->max_bytes);
}

bool rt_heap_take(rt_heap *heap, int64_t bytes, tec_error *err)
{
    if (heap->max_bytes && bytes > heap->max_bytes - heap->bytes)
        return fail_limit(heap, err);
    heap->bytes += bytes;
    if (heap->bytes > heap->counts.peak)
        heap->counts.peak = heap->bytes;
    return true;
}

void rt_heap_give(rt_heap *heap, int64_t bytes)
{
    heap->bytes -= bytes;
}

/* Its head is filled, the rest is not. The limit counts whole blocks, as those are what is taken from the
 * system. */
static void *new_object(rt_heap *heap, rt_object_kind kind, size_t size, tec_error *err)
{
    int k = class_of(size);
    rt_object *object;

    if (k == RT_N_CLASSES)
        return rt_fail_memory(err, size), NULL;
    if (!rt_heap_take(heap, rt_class_bytes(k), err))
        return NULL;
    object = (rt_object *)(void *)heap->free[k];
    if (object) {
        heap->free[k] = heap->free[k]->next;
    } else {
        object = rt_alloc_aligned((size_t)rt_class_bytes(k), err);
        heap->counts.from_system++;
    }
    if (!object) {
        rt_heap_give(heap, rt_class_bytes(k));
        return NULL;
    }
    *object = (rt_object){.heap = heap, .refs = 1, .kind = (uint8_t)kind, .size_class = (uint16_t)k};
    heap->live++;
    return object;
}

enum { HEAD = 64 }; /* of a storage; then its bytes, or the tensor for which it was made */

static rt_tensor_object *tensor_inside(rt_storage_object *storage)
{
    return (rt_tensor_object *)(void *)((char *)storage + HEAD);
}

/* The heap may be freed with its last object. */
static void count_out(rt_heap *heap, int64_t bytes)
{
    rt_heap_give(heap, bytes);
    heap->live--;
    if (heap->closed && heap->live == 0)
        free_heap(heap);
}

static void put_first(layout_list *list, rt_tensor_object *tensor)
{
    tensor->head.next = list->first ? &list->first->head : NULL;
    list->first = tensor;
}

/* The tensor waits for the next one of its layout, with its storage. */
static void let_wait(rt_tensor_object *tensor)
{
    rt_heap *heap = tensor->head.heap;
    layout_list *list = &heap->ready[tensor->ready];

    put_first(list, tensor);
    count_out(heap, list->bytes);
}

/* A tensor in the block of its storage goes with the storage, which other tensors may still use. */
static void free_object(rt_object *object)
{
    rt_heap *heap = object->heap;
    rt_storage_object *storage = (rt_storage_object *)(void *)object;
    int k = object->size_class;

    if (object->kind == RT_OBJECT_STORAGE && storage->ready) {
        storage->head.refs = 1;
        tensor_inside(storage)->ready = storage->ready;
        let_wait(tensor_inside(storage));
    } else if (k != INSIDE) {
        block *b = (block *)(void *)object;

        b->next = heap->free[k];
        heap->free[k] = b;
        count_out(heap, rt_class_bytes(k));
    }
}

/* ---- references ---- */

/* Gives the list with object in front, if this was the last reference. */
static rt_object *drop(rt_object *object, rt_object *dead)
{
    if (!object || object->refs < 0 || --object->refs > 0)
        return dead;
    object->next = dead;
    return object;
}

/* A constant tensor has no storage. */
static rt_object *drop_parts(rt_object *object, rt_object *dead)
{
    if (object->kind == RT_OBJECT_STORAGE) {
        rt_storage_object *storage = (rt_storage_object *)(void *)object;

        if (storage->mirror)
            rt_mirror_drop(storage->mirror);
        storage->mirror = NULL;
        return dead;
    }
    if (object->kind == RT_OBJECT_TENSOR)
        return drop(rt_as_tensor(object)->storage ? &rt_as_tensor(object)->storage->head : NULL, dead);
    for (int32_t i = 0; i < rt_as_node(object)->n; i++)
        dead = drop(rt_as_node(object)->part[i], dead);
    return dead;
}

/* Most objects that go are tensors of a layout that alone hold their storage: they wait as they are. */
void rt_free_object(rt_object *object)
{
    rt_object *dead = object;

    if (object->kind == RT_OBJECT_TENSOR && rt_as_tensor(object)->ready) {
        let_wait(rt_as_tensor(object));
        return;
    }
    object->next = NULL;
    while (dead) {
        rt_object *first = dead;

        dead = drop_parts(first, first->next);
        free_object(first);
    }
}

/* ---- objects ---- */

/* The head and the bytes are one block; the bytes begin at `at` in it, a multiple of 64. */
static rt_storage_object *new_storage(rt_heap *heap, size_t at, int64_t bytes, tec_error *err)
{
    rt_storage_object *storage;

    if (bytes < 0)
        return rt_fail(err, TEC_INVALID, "expected a size of a storage of at least 0 bytes, found %lld",
                       (long long)bytes),
               NULL;
    if (bytes > PTRDIFF_MAX / 2) /* less on a 32-bit board */
        return rt_fail(err, TEC_NO_MEMORY, "out of memory: cannot allocate %lld bytes", (long long)bytes),
               NULL;
    storage = new_object(heap, RT_OBJECT_STORAGE, at + (size_t)bytes, err);
    if (!storage)
        return NULL;
    storage->bytes = bytes;
    storage->mirror = NULL;
    storage->fresh = false;
    storage->ready = 0;
    storage->data = (char *)storage + at;
    heap->counts.storages++;
    heap->counts.storage_bytes += bytes;
    return storage;
}

rt_object *rt_new_storage(rt_heap *heap, int64_t bytes, tec_error *err)
{
    rt_storage_object *storage = new_storage(heap, HEAD, bytes, err);

    return storage ? &storage->head : NULL;
}

static void fill_tensor(rt_tensor_object *tensor, base_dtype dtype, int32_t rank, const int64_t *shape,
                        void *data, int64_t bytes)
{
    if (rank)
        memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    tensor->tensor =
        (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = dtype, .shape = tensor->shape};
    tensor->bytes = bytes;
    tensor->layout = tensor->ready = 0;
}

static bool check_extents(int32_t rank, const int64_t *shape, tec_error *err)
{
    for (int32_t d = 0; d < rank; d++)
        if (shape[d] < 0)
            return rt_fail(err, TEC_INVALID, "a tensor with extent %lld", (long long)shape[d]);
    return true;
}

/* From now on the tensor in the storage's block is not alone. */
static void share(rt_storage_object *storage)
{
    rt_retain(&storage->head);
    if (storage->ready)
        tensor_inside(storage)->ready = 0;
}

/* A tensor over `room` bytes at `data`. Whatever the extents are, the tensor does not reach past them. The
 * reference to the storage is taken last, when nothing can fail any more. */
static rt_object *tensor_at(rt_heap *heap, rt_storage_object *storage, char *data, int64_t room,
                            base_dtype dtype, int32_t rank, const int64_t *shape, tec_error *err)
{
    int64_t bytes = rt_shape_bytes(dtype, rank, shape);
    rt_tensor_object *tensor;

    if (!check_extents(rank, shape, err))
        return NULL;
    if (bytes < 0 || bytes > room)
        return rt_fail(err, TEC_INVALID, "a tensor of %lld bytes does not fit into %lld", (long long)bytes,
                       (long long)room),
               NULL;
    tensor = new_object(heap, RT_OBJECT_TENSOR, sizeof *tensor + (size_t)rank * sizeof *shape, err);
    if (!tensor)
        return NULL;
    fill_tensor(tensor, dtype, rank, shape, data, bytes);
    tensor->storage = storage;
    if (storage)
        share(storage);
    return &tensor->head;
}

/* Offsets are those of a plan: multiples of 64, which keeps vectors aligned. */
rt_object *rt_new_tensor(rt_heap *heap, rt_object *storage, int64_t offset, base_dtype dtype, int32_t rank,
                         const int64_t *shape, tec_error *err)
{
    rt_storage_object *s = (rt_storage_object *)(void *)storage;

    if (offset < 0 || offset > s->bytes || offset % 64)
        return rt_fail(err, TEC_INVALID, "a tensor at offset %lld of %lld bytes", (long long)offset,
                       (long long)s->bytes),
               NULL;
    return tensor_at(heap, s, s->data + offset, s->bytes - offset, dtype, rank, shape, err);
}

/* Where the bytes begin in a block with a tensor of this rank. */
static size_t whole_head(int32_t rank)
{
    return HEAD + (sizeof(rt_tensor_object) + (size_t)rank * sizeof(int64_t) + 63) / 64 * 64;
}

/* In the block of its storage, whose only reference the tensor takes over. */
static rt_tensor_object *put_tensor(rt_storage_object *storage, base_dtype dtype, int32_t rank,
                                    const int64_t *shape, int64_t bytes)
{
    rt_tensor_object *tensor = tensor_inside(storage);

    tensor->head =
        (rt_object){.heap = storage->head.heap, .refs = 1, .kind = RT_OBJECT_TENSOR, .size_class = INSIDE};
    fill_tensor(tensor, dtype, rank, shape, storage->data, bytes);
    tensor->storage = storage;
    return tensor;
}

/* The block:   head of the storage | tensor, its extents | bytes from a multiple of 64 on
 *
 * The tensor holds the storage's only reference. A view of the tensor takes another one, so the block stays
 * as long as the view, whether or not the tensor is alive. */
rt_object *rt_new_whole(rt_heap *heap, int64_t room, base_dtype dtype, int32_t rank, const int64_t *shape,
                        tec_error *err)
{
    size_t at = whole_head(rank);
    int64_t bytes = rt_shape_bytes(dtype, rank, shape);
    rt_storage_object *storage;

    if (!check_extents(rank, shape, err))
        return NULL;
    if (bytes < 0)
        return rt_fail(err, TEC_NO_MEMORY, "out of memory: a tensor of 2^63 bytes or more"), NULL;
    storage = new_storage(heap, at, bytes > room ? bytes : room, err);
    if (!storage)
        return NULL;
    return &put_tensor(storage, dtype, rank, shape, bytes)->head;
}

rt_object *rt_take_ready(rt_heap *heap, int32_t layout)
{
    layout_list *list = &heap->ready[layout];
    rt_tensor_object *tensor = list->first;

    if (!tensor || !rt_heap_take(heap, list->bytes, NULL))
        return NULL;
    list->first = rt_as_tensor(tensor->head.next);
    tensor->head.refs = 1;
    heap->live++;
    heap->counts.storages++;
    heap->counts.storage_bytes += tensor->bytes;
    return &tensor->head;
}

/* What a tensor takes in a slab. */
static size_t slab_part(int32_t rank, int64_t bytes)
{
    return whole_head(rank) + ((size_t)bytes + 63) / 64 * 64;
}

/* As many tensors of the layout as fit into a slab, which wait. The first in memory is the first to be taken.
 */
static bool make_slab(rt_heap *heap, int32_t layout, base_dtype dtype, int32_t rank, const int64_t *shape,
                      int64_t bytes, tec_error *err)
{
    size_t head = whole_head(rank), part = slab_part(rank, bytes), n = SLAB_BYTES / part;
    layout_list *list = &heap->ready[layout];
    slab *made = rt_alloc_aligned(64 + n * part, err);
    char *heads = (char *)made + 64, *data = heads + n * head;

    if (!made)
        return false;
    made->next = heap->slabs;
    heap->slabs = made;
    heap->counts.from_system++;
    list->bytes = (int64_t)part;
    for (size_t i = n; i-- > 0;) {
        rt_storage_object *storage = (rt_storage_object *)(void *)(heads + i * head);

        *storage = (rt_storage_object){
            .head = {.heap = heap, .refs = 1, .kind = RT_OBJECT_STORAGE, .size_class = INSIDE},
            .bytes = bytes,
            .data = data + i * (part - head),
            .ready = layout};
        rt_tensor_object *tensor = put_tensor(storage, dtype, rank, shape, bytes);
        tensor->layout = tensor->ready = layout;
        tensor->head.refs = 0;
        put_first(list, tensor);
    }
    return true;
}

/* Small tensors of a layout come from a slab, which is made where none of them waits; others have a block of
 * their own, and those of a layout wait there as well when they are freed. */
rt_object *rt_new_known(rt_heap *heap, int32_t layout, base_dtype dtype, int32_t rank, const int64_t *shape,
                        tec_error *err)
{
    layout_list *list = &heap->ready[layout];
    int64_t bytes = rt_shape_bytes(dtype, rank, shape);

    if (layout && bytes >= 0 && bytes <= SLAB_BYTES && 2 * slab_part(rank, bytes) <= SLAB_BYTES) {
        if (!list->first && !make_slab(heap, layout, dtype, rank, shape, bytes, err))
            return NULL;
        rt_object *taken = rt_take_ready(heap, layout);
        if (!taken)
            fail_limit(heap, err);
        return taken;
    }
    rt_object *whole = rt_new_whole(heap, 0, dtype, rank, shape, err);
    if (whole && layout) {
        rt_tensor_object *tensor = rt_as_tensor(whole);

        tensor->layout = tensor->ready = tensor->storage->ready = layout;
        list->bytes = rt_class_bytes(tensor->storage->head.size_class);
    }
    return whole;
}

/* The same bytes under another shape, or the first of them. */
rt_object *rt_new_view(rt_heap *heap, rt_object *tensor, int32_t rank, const int64_t *shape, tec_error *err)
{
    rt_tensor_object *of = rt_as_tensor(tensor);

    return tensor_at(heap, of->storage, of->tensor.data, of->bytes, of->tensor.dtype, rank, shape, err);
}

static char *row_at(const rt_tensor_object *tensor, int64_t index)
{
    return (char *)tensor->tensor.data +
           index * rt_shape_bytes(tensor->tensor.dtype, tensor->tensor.ndim - 1, tensor->shape + 1);
}

/* A row of a multiple of 64 bytes shares the memory of its tensor, whose own begins at a multiple of 64. */
bool rt_shares_row(const rt_object *tensor, int64_t index)
{
    const rt_tensor_object *of = (const rt_tensor_object *)(const void *)tensor;

    return index < 0 || index >= of->shape[0] || (uintptr_t)row_at(of, index) % 64 == 0;
}

/* Shared where that keeps the alignment, else a copy in a storage of its own. */
rt_object *rt_new_row(rt_heap *heap, rt_object *tensor, int64_t index, tec_error *err)
{
    const rt_tensor_object *of = rt_as_tensor(tensor);
    int32_t rank = of->tensor.ndim - 1;
    int64_t bytes = rt_shape_bytes(of->tensor.dtype, rank, of->shape + 1);
    rt_object *row;
    char *data;

    if (index < 0 || index >= of->shape[0])
        return rt_fail(err, TEC_INVALID, "element %lld of %lld", (long long)index, (long long)of->shape[0]),
               NULL;
    data = row_at(of, index);
    if ((uintptr_t)data % 64 == 0)
        return tensor_at(heap, of->storage, data, bytes, of->tensor.dtype, rank, of->shape + 1, err);
    row = rt_new_whole(heap, 0, of->tensor.dtype, rank, of->shape + 1, err);
    if (row && bytes)
        memcpy(rt_as_tensor(row)->tensor.data, data, (size_t)bytes);
    return row;
}

/* How many rows `rows` adds; -1 where its extents are not those of an element of `to`. */
static int64_t count_rows(const rt_tensor_object *to, const rt_tensor_object *rows)
{
    int32_t rank = to->tensor.ndim, whole = rows->tensor.ndim == rank;

    for (int32_t d = 1; d < rank; d++)
        if (to->shape[d] != rows->shape[d - 1 + whole])
            return -1;
    return whole ? rows->shape[0] : 1;
}

/* All of the block that the storage lies in. */
static int64_t room_of(const rt_storage_object *storage)
{
    return rt_class_bytes(storage->head.size_class) - (storage->data - (const char *)storage);
}

/* Whether `bytes` more fit behind the tensor's elements, where nobody else can see them. */
static bool may_extend(const rt_tensor_object *tensor, int64_t bytes)
{
    const rt_storage_object *s = tensor->storage;

    return tensor->head.refs == 1 && s && s->head.refs == 1 && s->head.size_class != INSIDE &&
           ((const char *)tensor->tensor.data - s->data) + tensor->bytes + bytes <= room_of(s);
}

/* For a tensor of so many bytes that grows: up to the next power of two with the heads, so that the room
 * doubles, and n rows cost O(n) bytes of copies in all. */
static int64_t room_to_grow(int64_t bytes, int32_t rank)
{
    int64_t head = (int64_t)whole_head(rank);

    return ((int64_t)1 << (64 - __builtin_clzll((unsigned long long)(bytes + head - 1)))) - head;
}

/* Extends the tensor in place, or moves it to a storage with room for as many rows again (object.h). */
rt_object *rt_append(rt_heap *heap, rt_object *tensor, const rt_object *rows, tec_error *err)
{
    rt_tensor_object *t = rt_as_tensor(tensor);
    const rt_tensor_object *more = (const rt_tensor_object *)(const void *)rows;
    int64_t n = count_rows(t, more), bytes = more->bytes, shape[RT_MAX_RANK];
    rt_object *larger;

    if (n < 0)
        return rt_fail(err, TEC_INVALID,
                       "the appended element has other extents than the elements before it"),
               NULL;
    if (n > INT64_MAX - t->shape[0] || bytes > INT64_MAX / 4 - t->bytes)
        return rt_fail_memory(err, (size_t)bytes), NULL;
    memcpy(shape, t->shape, (size_t)t->tensor.ndim * sizeof *shape);
    shape[0] += n;
    if (may_extend(t, bytes)) {
        t->storage->bytes = room_of(t->storage);
        t->layout = t->ready = t->storage->ready = 0;
        if (bytes)
            memcpy((char *)t->tensor.data + t->bytes, more->tensor.data, (size_t)bytes);
        t->shape[0] = shape[0];
        t->bytes += bytes;
        heap->counts.copied += bytes;
        return tensor;
    }
    larger = rt_new_whole(heap, room_to_grow(t->bytes + bytes, t->tensor.ndim), t->tensor.dtype,
                          t->tensor.ndim, shape, err);
    if (!larger)
        return NULL;
    heap->counts.copied += t->bytes + bytes;
    if (t->bytes)
        memcpy(rt_as_tensor(larger)->tensor.data, t->tensor.data, (size_t)t->bytes);
    if (bytes)
        memcpy((char *)rt_as_tensor(larger)->tensor.data + t->bytes, more->tensor.data, (size_t)bytes);
    rt_release(tensor);
    return larger;
}

/* The parts are NULL until the caller fills them, so that a node can be released half made. */
rt_node_object *rt_new_node(rt_heap *heap, rt_object_kind kind, int32_t what, int32_t tag, int32_t count,
                            tec_error *err)
{
    rt_node_object *object =
        new_object(heap, kind, sizeof *object + (size_t)count * sizeof *object->part, err);

    if (!object)
        return NULL;
    object->what = what;
    object->tag = tag;
    object->n = count;
    memset(object->part, 0, (size_t)count * sizeof *object->part);
    return object;
}

size_t rt_constant_object_bytes(int32_t rank)
{
    return sizeof(rt_tensor_object) + (size_t)rank * sizeof(int64_t);
}

/* In the caller's memory, of rt_constant_object_bytes; the data are the module's. */
void rt_constant_object(void *memory, base_dtype dtype, int32_t rank, const int64_t *shape, const void *data)
{
    rt_tensor_object *o = memory;

    memset(o, 0, sizeof *o);
    o->head.refs = -1;
    o->head.kind = RT_OBJECT_TENSOR;
    fill_tensor(o, dtype, rank, shape, (void *)(uintptr_t)data, rt_shape_bytes(dtype, rank, shape));
}
