/* tools/devices_pool.h -- inside the room: the devices of a pool, for `tec devices`. */
#ifndef TOOLS_DEVICES_POOL_H
#define TOOLS_DEVICES_POOL_H

#include <stdbool.h>

/* Prints what the tracker at HOST:PORT knows; the exit status. `key_file` NULL: that of this machine. */
int tool_devices_of_pool(const char *tracker, const char *key_file, bool json);

#endif
