/* count_allocations.c -- a library to preload: counts the calls of the allocator, by any thread, between
 * watch_begin and watch_end. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

void watch_begin(void);
long watch_end(void);

static atomic_int watching;
static atomic_long calls;

void watch_begin(void)
{
    atomic_store(&calls, 0);
    atomic_store(&watching, 1);
}

long watch_end(void)
{
    atomic_store(&watching, 0);
    return atomic_load(&calls);
}

static void count(void)
{
    if (atomic_load(&watching))
        atomic_fetch_add(&calls, 1);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    count();
    return __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

void free(void *p)
{
    if (p)
        count();
    __libc_free(p);
}
