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

static base_chunk *new_chunk(tec_context *cx, size_t size, base_chunk *below)
{
    base_chunk *c = base_may_allocate(cx) ? malloc(sizeof(base_chunk) + size) : NULL;

    if (!c)
        base_no_memory(cx, size);
    *c = (base_chunk){.below = below, .size = size};
    HIDE(c->data, size);
    return c;
}

static base_chunk *free_chunk(base_chunk *c)
{
    base_chunk *below = c->below;

    SHOW(c->data, c->size);
    free(c);
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

static void *cut(base_chunk *c, size_t room, size_t size)
{
    unsigned char *p = c->data + c->used;

    c->used += room;
    SHOW(p, size);
    return clear(p, room, size);
}

static void push_chunk(tec_context *cx)
{
    base_arena *a = &cx->arena;
    base_chunk *c = a->spare;

    if (c) {
        a->spare = c->below;
        c->below = a->top;
    } else {
        c = new_chunk(cx, CHUNK_BYTES, a->top);
    }
    a->top = c;
}

/* Never NULL: without memory the call is left by a jump (base/guard.h). Zeroed. Every few hundred allocations
 * the deadline and the cancel are looked at. */
void *base_alloc(tec_context *cx, size_t size)
{
    base_arena *a = &cx->arena;

    if (size > SIZE_MAX / 2 || (IS_DEBUG && !base_may_allocate(cx)))
        base_no_memory(cx, size);
    if (--cx->patience < 0)
        base_check(cx);
    size_t room = ((size ? size : 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP;
    a->handed_out += size;
    if (room >= LARGE_BYTES) {
        a->large = new_chunk(cx, room, a->large);
        return cut(a->large, room, size);
    }
    if (!a->top || a->top->size - a->top->used < room)
        push_chunk(cx);
    return cut(a->top, room, size);
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

static void shrink(base_chunk *c, size_t used)
{
    HIDE(c->data + used, c->size - used);
    c->used = used;
}

/* Drops everything that was allocated after the mark. Chunks of the usual size are kept for the next request.
 */
static void release(base_arena *a, base_mark mark)
{
    while (a->large != mark.large)
        a->large = free_chunk(a->large);
    while (a->top != mark.chunk) {
        base_chunk *c = a->top;
        a->top = c->below;
        shrink(c, 0);
        c->below = a->spare;
        a->spare = c;
    }
    if (a->top)
        shrink(a->top, mark.used);
    a->handed_out = mark.handed_out;
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
