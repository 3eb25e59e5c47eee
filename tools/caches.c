/* tools/caches.c -- see caches.h. */
#include "tools/caches.h"

#include <stdio.h>

#include "worker/health.h"

/* By the names that the JSON has. */
static const char *const cache_names[WORKER_N_CACHES] = {"l1_data", "l1_code", "l2", "l3"};

void tool_print_caches(const char *indent, const int64_t *bytes, int64_t n)
{
    const char *between = "caches of a core: ";

    for (int64_t i = 0; i < n && i < WORKER_N_CACHES; i++)
        if (bytes[i] > 0) {
            printf("%s%s%s %lld KiB", indent, between, cache_names[i], (long long)(bytes[i] >> 10));
            indent = "";
            between = ", ";
        }
    if (!*indent)
        putchar('\n');
}

void tool_add_caches(cJSON *device, const int64_t *bytes, int64_t n)
{
    cJSON *caches = cJSON_AddObjectToObject(device, "caches");

    for (int64_t i = 0; i < n && i < WORKER_N_CACHES; i++)
        if (bytes[i] > 0)
            cJSON_AddNumberToObject(caches, cache_names[i], (double)bytes[i]);
}
