/* blob.c -- ranges of a file as read-only bytes: mapped, read, or read to huge pages. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/file.h"

enum { HUGE_PAGE = 2 << 20 };

static bool give_mapping(rt_blob *b, void *base, size_t length, size_t skip)
{
    *b = (rt_blob){(const uint8_t *)base + skip, base, length, RT_BLOB_MAPPED};
    return true;
}

bool rt_blob_map(rt_blob *b, int fd, uint64_t offset, uint64_t size, const char *path, tec_error *err)
{
    size_t skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    void *base;

    if (size == 0)
        return true;
    base = rt_may_allocate() ? mmap(NULL, size + skip, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - skip)) : MAP_FAILED;
    if (base == MAP_FAILED)
        return rt_fail(err, TEC_NO_MEMORY, "%s: cannot map %llu bytes", path, (unsigned long long)size);
    return give_mapping(b, base, size + skip, skip);
}

static bool read_range(void *to, int fd, uint64_t offset, uint64_t size, const char *path, tec_error *err)
{
    char *at = to;

    while (size > 0) {
        ssize_t n = pread(fd, at, size, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_io(err, path, "read it", errno);
        if (n == 0)
            return rt_fail(err, TEC_IO, "%s: was cut off while it was read", path);
        at += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return true;
}

bool rt_blob_read(rt_blob *b, int fd, uint64_t offset, uint64_t size, const char *path, tec_error *err)
{
    void *data;

    if (size == 0)
        return true;
    data = rt_alloc_aligned(size, err);
    if (!data)
        return false;
    *b = (rt_blob){data, data, size, RT_BLOB_ALLOCATED};
    if (read_range(data, fd, offset, size, path, err))
        return true;
    rt_blob_free(b);
    return false;
}

bool rt_blob_read_huge(rt_blob *b, int fd, uint64_t offset, uint64_t size, const char *path, tec_error *err)
{
    size_t length = size + HUGE_PAGE, skip;
    void *base;

    if (size == 0)
        return true;
    base = rt_may_allocate() ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (base == MAP_FAILED)
        return rt_fail_memory(err, length);
    skip = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    give_mapping(b, base, length, skip);
    /* A kernel without huge pages refuses; ordinary ones do as well. */
    madvise((char *)base + skip, size, MADV_HUGEPAGE);
    if (read_range((char *)base + skip, fd, offset, size, path, err) && mprotect(base, length, PROT_READ) == 0)
        return true;
    rt_blob_free(b);
    return rt_fail_memory(err, length);
}

void rt_blob_free(rt_blob *b)
{
    if (b->how == RT_BLOB_MAPPED)
        munmap(b->base, b->length);
    else if (b->how == RT_BLOB_ALLOCATED)
        rt_free(b->base);
    *b = (rt_blob){0};
}
