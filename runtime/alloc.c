/* alloc.c -- checked and counted memory, and an arena over it.
 *
 * Tests let the n-th allocation fail, for each n in turn, and so reach every path that runs out of memory.
 */
#include "runtime/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_llong live;
static atomic_llong fail_countdown; /* 0: no failure is planned */

/* To be asked once for each allocation that is not made by this file, such as mmap. Costs one load where no
 * failure is planned. Under several threads exactly one of them sees the failure. */
bool rt_may_allocate(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
        return true;
    return atomic_fetch_sub(&fail_countdown, 1) != 1;
}

void rt_alloc_fail_at(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

/* Blocks, not bytes: a test that ends with another number than it began with has a leak. */
int64_t rt_alloc_live(void)
{
    return atomic_load(&live);
}

/* Also reports the failure, so that no caller has to. */
static void *counted(void *p, size_t size, tec_error *err)
{
    if (p)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    else
        rt_fail_memory(err, size);
    return p;
}

/* Zeroed, and never NULL for a size of 0: NULL always means an error. */
void *rt_alloc(size_t size, tec_error *err)
{
    return counted(rt_may_allocate() ? calloc(1, size ? size : 1) : NULL, size, err);
}

/* n comes from files and calls, so its product with the size is checked. */
void *rt_alloc_array(int64_t n, size_t size, tec_error *err)
{
    size_t total;

    if (n < 0 || __builtin_mul_overflow((size_t)n, size, &total)) {
        rt_fail_memory(err, SIZE_MAX);
        return NULL;
    }
    return rt_alloc(total, err);
}

/* At a multiple of 64 and not zeroed, in whole lines. Memory that fills a huge page begins at the boundary of
 * one, and asks for huge pages: on Sapphire Rapids a product that streams 9 MB takes 0.84 to 0.92 of the time
 * so. The rest behind the last whole huge page stays on ordinary pages, so that no memory is taken for
 * nothing. */
void *rt_alloc_aligned(size_t size, tec_error *err)
{
    bool huge = size >= RT_HUGE_PAGE;
    size_t rounded;
    void *data = NULL;

    if (__builtin_add_overflow(size ? size : 1, (size_t)63, &rounded)) {
        rt_fail_memory(err, size);
        return NULL;
    }
    rounded &= ~(size_t)63;
    if (!rt_may_allocate() || posix_memalign(&data, huge ? RT_HUGE_PAGE : 64, rounded) != 0)
        data = NULL;
    /* A kernel without huge pages refuses; ordinary ones do as well. */
    if (data && huge)
        madvise(data, size / RT_HUGE_PAGE * RT_HUGE_PAGE, MADV_HUGEPAGE);
    return counted(data, size, err);
}

char *rt_strdup(const char *s, tec_error *err)
{
    size_t n = strlen(s) + 1;
    char *copy = rt_alloc(n, err);

    return copy ? memcpy(copy, s, n) : NULL;
}

void rt_free(void *p)
{
    if (p)
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(p);
}

/* data[0..used) is given out; `below` is the chunk that was filled before. */
typedef struct rt_chunk {
    struct rt_chunk *below;
    size_t used, size;
    _Alignas(max_align_t) unsigned char data[];
} rt_chunk;

enum { CHUNK_BYTES = 16 << 10 };

/* What is left in the chunk below is lost: at most CHUNK_BYTES for each large piece. */
static rt_chunk *push_chunk(rt_arena *arena, size_t size, tec_error *err)
{
    rt_chunk *chunk = rt_alloc(sizeof *chunk + size, err);

    if (chunk) {
        chunk->below = arena->top;
        chunk->size = size;
        arena->top = chunk;
    }
    return chunk;
}

/* Room for count things of `size` bytes, not cleared, until rt_arena_free. NULL with an error, also where
 * count * size overflows: counts come from files. */
void *rt_arena_alloc(rt_arena *arena, int64_t count, size_t size, tec_error *err)
{
    const size_t align = _Alignof(max_align_t);
    size_t total;
    rt_chunk *chunk = arena->top;

    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &total) || total > SIZE_MAX / 2) {
        rt_fail_memory(err, SIZE_MAX);
        return NULL;
    }
    total = (total + align - 1) & ~(align - 1);
    if (!chunk || chunk->size - chunk->used < total)
        chunk = push_chunk(arena, total > CHUNK_BYTES ? total : CHUNK_BYTES, err);
    if (!chunk)
        return NULL;
    chunk->used += total;
    return chunk->data + chunk->used - total;
}

void rt_arena_free(rt_arena *arena)
{
    while (arena->top) {
        rt_chunk *chunk = arena->top;

        arena->top = chunk->below;
        rt_free(chunk);
    }
}
