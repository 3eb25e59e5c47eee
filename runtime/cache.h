/* runtime/cache.h -- inside the room: a folder in which code that a driver compiled is kept between
 * processes.
 *
 *     rt_cache_key key = rt_cache_key_of(&(rt_cache_parts){...});
 *     void *code = rt_cache_load(&key, &size);           // NULL: compile, then
 *     rt_cache_save(&key, code, size);
 *     rt_free(code);
 *
 * An entry is a file, named by its key: a hash of the source, the device, its driver and the options. The
 * header of the file says its version, key, size and a checksum of the code. An entry that is damaged or of
 * another version is as good as none, and the next save replaces it. Entries are written under another name
 * and then renamed, so that other processes see the whole of an entry or nothing. If all entries together are
 * larger than the bound, the entries that were used longest ago are removed.
 * Lifetime: code that was loaded is the caller's (rt_free).
 * Errors: none. The cache saves time only; without a folder, or where reading or writing fails, code is
 *   compiled.
 * Threads: any, and any number of processes.
 */
#ifndef RUNTIME_CACHE_H
#define RUNTIME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What compiled code depends on. */
typedef struct {
    const char *source;
    size_t source_size;
    const char *device, *driver, *options;
} rt_cache_parts;

typedef struct {
    uint64_t hash[2];
} rt_cache_key;

/* Whether there is a folder: without one, a caller need not ask the driver for its code. */
bool rt_cache_is_on(void);
rt_cache_key rt_cache_key_of(const rt_cache_parts *parts);
/* The code of an entry; NULL: there is no good one. */
void *rt_cache_load(const rt_cache_key *key, size_t *size);
void rt_cache_save(const rt_cache_key *key, const void *code, size_t size);
/* Counts a program for tec_device_cache_counts. */
void rt_cache_count(bool loaded);

#endif
