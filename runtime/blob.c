/* blob.c -- ranges of a file, or of the caller's memory, as read-only bytes: mapped or read. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/file.h"

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
    *blob = (rt_blob){(const uint8_t *)base + skip, base, size + skip, RT_BLOB_MAPPED};
    return true;
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

/* A copy in memory, aligned as weights are; a large one lies on huge pages. */
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

/* Right for every blob, also for one that was never filled. */
void rt_blob_free(rt_blob *blob)
{
    if (blob->how == RT_BLOB_MAPPED)
        munmap(blob->base, blob->length);
    else if (blob->how == RT_BLOB_ALLOCATED)
        rt_free(blob->base);
    *blob = (rt_blob){0};
}
