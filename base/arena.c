/* arena.c -- the memory of a context: pieces cut from chunks, given back all at once or down to a mark.
 *
 * Small requests are cut from chunks of one size, which are kept for reuse; a large request gets a chunk of
 * its own, which is freed as soon as it is dropped. Chunks form stacks (`top`, `large`), so that a mark is
 * three numbers. In builds with the address sanitizer whatever is not handed out is poisoned, with a gap
 * behind every piece.
 */
#include <stdlib.h>
#include <string.h>

#include "base/context.h"

enum {
    CHUNK_BYTES = 256 * 1024,
    /* from here on, a chunk of its own wastes less than the rest of a shared one */
    LARGE_BYTES = CHUNK_BYTES / 4,
    ALIGNMENT = 16,
    SMALL_BYTES = 256
};

#ifdef TEC_DEBUG
enum { IS_DEBUG = 1 };
#else
enum { IS_DEBUG = 0 };
#endif

struct base_chunk {
    base_chunk *below;
    size_t size, used;
    _Alignas(ALIGNMENT) unsigned char data[];
};

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { GAP = ALIGNMENT };
#define HIDE(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define SHOW(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
enum { GAP = 0 };
#define HIDE(p, n) ((void)(p), (void)(n))
#define SHOW(p, n) ((void)(p), (void)(n))
#endif

/* Zeroed where the chunk is a piece of its own: the system gives large ones as pages of zeros, which need no
 * memory before they are written. Does not return without memory: base_no_memory leaves the call
 * (base/guard.h). */
static base_chunk *new_chunk(tec_context *cx, size_t size, base_chunk *below, bool zeroed)
{
    base_chunk *c = base_may_allocate(cx)
                        ? zeroed ? calloc(1, sizeof(base_chunk) + size) : malloc(sizeof(base_chunk) + size)
                        : NULL;

    if (!c)
        base_no_memory(cx, size);
    *c = (base_chunk){.below = below, .size = size};
    HIDE(c->data, size);
    return c;
}

static base_chunk *free_chunk(base_chunk *chunk)
{
    base_chunk *below = chunk->below;

    SHOW(chunk->data, chunk->size);
    free(chunk);
    return below;
}

/* Most pieces are small: a loop over them takes less time than a call of memset. */
static void *clear(unsigned char *p, size_t room, size_t size)
{
    if (size > SMALL_BYTES || GAP)
        return memset(p, 0, size);
    for (size_t i = 0; i < room; i += ALIGNMENT)
        memset(p + i, 0, ALIGNMENT);
    return p;
}

/* Room is rounded up by the caller; only the asked part is shown to the address sanitizer, so that the gap
 * catches writes past the end. */
static unsigned char *cut(base_chunk *chunk, size_t room, size_t size)
{
    unsigned char *p = chunk->data + chunk->used;

    chunk->used += room;
    SHOW(p, size);
    return p;
}

/* Released chunks of the usual size are kept as spares: marks are set and released in loops. */
static void push_chunk(tec_context *cx)
{
    base_arena *arena = &cx->arena;
    base_chunk *chunk = arena->spare;

    if (chunk) {
        arena->spare = chunk->below;
        chunk->below = arena->top;
    } else {
        chunk = new_chunk(cx, CHUNK_BYTES, arena->top, false);
    }
    arena->top = chunk;
}

/* Never NULL: without memory the call is left by a jump (base/guard.h). Zeroed. Every few hundred allocations
 * the deadline and the cancel are looked at. */
void *base_alloc(tec_context *cx, size_t size)
{
    base_arena *arena = &cx->arena;

    if (size > SIZE_MAX / 2 || (IS_DEBUG && !base_may_allocate(cx)))
        base_no_memory(cx, size);
    if (--cx->patience < 0)
        base_check(cx);
    size_t room = ((size ? size : 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP;
    arena->handed_out += size;
    if (room >= LARGE_BYTES) {
        arena->large = new_chunk(cx, room, arena->large, true);
        return cut(arena->large, room, size);
    }
    if (!arena->top || arena->top->size - arena->top->used < room)
        push_chunk(cx);
    return clear(cut(arena->top, room, size), room, size);
}

void *base_alloc_array(tec_context *cx, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / 2 / size)
        base_no_memory(cx, SIZE_MAX);
    return base_alloc(cx, n * size);
}

void *base_copy(tec_context *cx, const void *data, size_t size)
{
    void *copy = base_alloc(cx, size);

    return size ? memcpy(copy, data, size) : copy;
}

size_t base_used(const tec_context *cx)
{
    return cx->arena.handed_out;
}

base_mark base_arena_mark(tec_context *cx)
{
    const base_arena *a = &cx->arena;

    return (base_mark){a->top, a->top ? a->top->used : 0, a->large, a->handed_out};
}

static void shrink(base_chunk *chunk, size_t used)
{
    HIDE(chunk->data + used, chunk->size - used);
    chunk->used = used;
}

/* Drops everything that was allocated after the mark. Chunks of the usual size are kept for the next request.
 */
static void release(base_arena *arena, base_mark mark)
{
    while (arena->large != mark.large)
        arena->large = free_chunk(arena->large);
    while (arena->top != mark.chunk) {
        base_chunk *chunk = arena->top;
        arena->top = chunk->below;
        shrink(chunk, 0);
        chunk->below = arena->spare;
        arena->spare = chunk;
    }
    if (arena->top)
        shrink(arena->top, mark.used);
    arena->handed_out = mark.handed_out;
}

void base_arena_release(tec_context *cx, base_mark mark)
{
    release(&cx->arena, mark);
}

void base_arena_reset(base_arena *arena)
{
    release(arena, (base_mark){0});
}

void base_arena_free(base_arena *arena)
{
    base_arena_reset(arena);
    while (arena->spare)
        arena->spare = free_chunk(arena->spare);
}
