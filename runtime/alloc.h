/* runtime/alloc.h -- all memory of the runtime: checked, counted, and made to fail in tests.
 *
 *     struct row *rows = rt_alloc_array(n, sizeof *rows, err);
 *     if (!rows)
 *         return false;
 *     rt_free(rows);
 *
 * Errors: NULL and NO_MEMORY. Sizes of 0 are legal and give a pointer that may be freed.
 * Threads: any.
 */
#ifndef RUNTIME_ALLOC_H
#define RUNTIME_ALLOC_H

#include "runtime/error.h"

/* Bytes of a page that takes one entry of the address cache in place of 512. */
enum { RT_HUGE_PAGE = 2 << 20 };

void *rt_alloc(size_t size, tec_error *err); /* zeroed, aligned for any type */
void *rt_alloc_array(int64_t n, size_t size, tec_error *err);
/* 64-byte aligned, not zeroed; from RT_HUGE_PAGE on at a huge page, and on such pages where there are some */
void *rt_alloc_aligned(size_t size, tec_error *err);
char *rt_strdup(const char *s, tec_error *err);
void rt_free(void *p);

/* Whether a resource that is no memory (a thread, a mapping) may be made now: takes part in the failures that
 * tests plan. */
bool rt_may_allocate(void);
/* The n-th allocation from now on fails, once (1: the next); 0: none. For tests. */
void rt_alloc_fail_at(int64_t n);
int64_t rt_alloc_live(void); /* allocations that are not freed */

/* Many small things that die together. `{0}` is empty. */
struct rt_arena {
    struct rt_chunk *top;
};
typedef struct rt_arena rt_arena;
/* zeroed, aligned for any type */
void *rt_arena_alloc(rt_arena *arena, int64_t count, size_t size, tec_error *err);
void rt_arena_free(rt_arena *arena);

#endif
