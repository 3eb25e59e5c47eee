/* tools/device_cache.h -- the option --device-cache: where the commands keep what a driver compiled.
 *
 *     {"device-cache", TOOL_TEXT, &s.device_cache, "DIR|off", TOOL_DEVICE_CACHE_HELP},
 *     ...
 *     if (!tool_open_device_cache(cx, s.device_cache, &err))
 *         return tool_fail_run("run", &err);
 *
 * Lifetime: the folder is set for the process. Errors: in *err: a folder whose name is too long.
 * Threads: the setting is one for all threads.
 */
#ifndef TOOLS_DEVICE_CACHE_H
#define TOOLS_DEVICE_CACHE_H

#include "base/base.h"
#include "tec/runtime.h"

#define TOOL_DEVICE_CACHE_HELP                                                                               \
    "keeps the code that an OpenCL driver compiled in this folder ($XDG_CACHE_HOME/tec or ~/.cache/tec)"

/* The bound of the folder: 256 MiB. */
#define TOOL_DEVICE_CACHE_BYTES (INT64_C(256) << 20)

/* Up to so many bytes of compiled device code are kept for later runs. `option` names the folder: NULL: the
 * user's cache folder, "off": none. */
bool tool_open_device_cache(tec_context *cx, const char *option, tec_error *err);

/* "device code: 1 from the cache, 0 compiled"; of a process without such code nothing. */
void tool_print_device_cache(void);

#endif
