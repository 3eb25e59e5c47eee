/* tools/device_cache.c -- see device_cache.h. */
#include "tools/device_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/device.h"

bool tool_open_device_cache(tec_context *cx, const char *option, tec_error *err)
{
    const char *folder = option, *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (folder && strcmp(folder, "off") == 0)
        return true;
    if (!folder && cache && cache[0] == '/')
        folder = base_format(cx, "%s/tec", cache);
    else if (!folder && home && home[0] == '/')
        folder = base_format(cx, "%s/.cache/tec", home);
    return tec_device_cache(folder, TOOL_DEVICE_CACHE_BYTES, err);
}

void tool_print_device_cache(void)
{
    int64_t loaded, built;

    tec_device_cache_counts(&loaded, &built);
    if (loaded + built > 0)
        printf("device code: %lld from the cache, %lld compiled\n", (long long)loaded, (long long)built);
}
