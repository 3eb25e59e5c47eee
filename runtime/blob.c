/* blob.c -- ranges of a file, or of the caller's memory, as read-only bytes: mapped, read, or read to huge
 * pages. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/alloc.h"
#include "runtime/file.h"

/* `skip` bytes at the start are not the caller's: the file's page begins there, or the memory before a huge
 * page. */
static bool give_mapping(rt_blob *blob, void *base, size_t length, size_t skip)
{
    *blob = (rt_blob){(const uint8_t *)base + skip, base, length, RT_BLOB_MAPPED};
    return true;
}

/* Maps the range, which need not begin on a page. Bytes in memory are used where they lie. */
bool rt_blob_map(rt_blob *blob, const rt_source *from, uint64_t offset, uint64_t size, tec_error *err)
{
    size_t skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    void *base;

    if (size == 0)
        return true;
    if (from->bytes) {
        *blob = (rt_blob){from->bytes + offset, NULL, size, RT_BLOB_NONE};
        return true;
    }
    base = rt_may_allocate()
               ? mmap(NULL, size + skip, PROT_READ, MAP_PRIVATE, from->fd, (off_t)(offset - skip))
               : MAP_FAILED;
    if (base == MAP_FAILED)
        return rt_fail(err, TEC_NO_MEMORY, "%s: cannot map %llu bytes", from->name, (unsigned long long)size);
    return give_mapping(blob, base, size + skip, skip);
}

/* Reads all bytes or fails; signals do not cut a read short. */
static bool read_range(void *to, const rt_source *from, uint64_t offset, uint64_t size, tec_error *err)
{
    char *at = to;

    if (from->bytes)
        return memcpy(to, from->bytes + offset, size), true;
    while (size > 0) {
        ssize_t n = pread(from->fd, at, size, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_io(err, from->name, "read it", errno);
        if (n == 0)
            return rt_fail(err, TEC_IO, "%s: was cut off while it was read", from->name);
        at += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return true;
}

/* A copy in memory, aligned as weights are. */
bool rt_blob_read(rt_blob *blob, const rt_source *from, uint64_t offset, uint64_t size, tec_error *err)
{
    void *data;

    if (size == 0)
        return true;
    data = rt_alloc_aligned(size, err);
    if (!data)
        return false;
    *blob = (rt_blob){data, data, size, RT_BLOB_ALLOCATED};
    if (read_range(data, from, offset, size, err))
        return true;
    rt_blob_free(blob);
    return false;
}

/* A copy on huge pages, which saves misses of the address cache for large weights. The memory is read-only
 * afterwards. One huge page more than needed is mapped, so that a multiple of its size lies within. The bytes
 * must be read after madvise: pages are made at the first write. */
bool rt_blob_read_huge(rt_blob *blob, const rt_source *from, uint64_t offset, uint64_t size, tec_error *err)
{
    size_t length = size + RT_HUGE_PAGE, skip;
    void *base;

    if (size == 0)
        return true;
    base = rt_may_allocate() ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                             : MAP_FAILED;
    if (base == MAP_FAILED)
        return rt_fail_memory(err, length);
    skip = (RT_HUGE_PAGE - (uintptr_t)base % RT_HUGE_PAGE) % RT_HUGE_PAGE;
    give_mapping(blob, base, length, skip);
    /* A kernel without huge pages refuses; ordinary ones do as well. */
    madvise((char *)base + skip, size, MADV_HUGEPAGE);
    if (read_range((char *)base + skip, from, offset, size, err) && mprotect(base, length, PROT_READ) == 0)
        return true;
    rt_blob_free(blob);
    return rt_fail_memory(err, length);
}

/* Right for every blob, also for one that was never filled. */
void rt_blob_free(rt_blob *blob)
{
    if (blob->how == RT_BLOB_MAPPED)
        munmap(blob->base, blob->length);
    else if (blob->how == RT_BLOB_ALLOCATED)
        rt_free(blob->base);
    *blob = (rt_blob){0};
}
