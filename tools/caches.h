/* tools/caches.h -- inside the room: the caches of a core, as `tec devices` shows them.
 *
 *     int64_t bytes[WORKER_N_CACHES];
 *     worker_caches(bytes);
 *     tool_print_caches("  ", bytes, WORKER_N_CACHES);    "  caches of a core: l1_data 48 KiB, l2 1024 KiB"
 */
#ifndef TOOLS_CACHES_H
#define TOOLS_CACHES_H

#include <cjson/cJSON.h>
#include <stdint.h>

/* In the order of worker_caches; 0 is unknown and left out. Where none is known no line is printed. */
void tool_print_caches(const char *indent, const int64_t *bytes, int64_t n);
/* As an object "caches" of the device. */
void tool_add_caches(cJSON *device, const int64_t *bytes, int64_t n);

#endif
