/* tools/devices_pool.h -- inside the room: the devices of a pool, for `tec devices`. */
#ifndef TOOLS_DEVICES_POOL_H
#define TOOLS_DEVICES_POOL_H

#include <stdbool.h>

/* What an administrator says; one of the names at most is not NULL. */
typedef struct {
    const char *set_aside, *why; /* SERVER/DEVICE, and the reason */
    const char *drain;           /* SERVER */
    const char *restore;         /* SERVER/DEVICE or SERVER */
} tool_pool_order;

/* Reports options that do not go together; TOOL_GO_ON, or a status. */
int tool_check_order(const tool_pool_order *order, const char *tracker, bool json);
static inline bool tool_is_order(const tool_pool_order *order)
{
    return order->set_aside || order->drain || order->restore;
}

/* Tells the tracker at HOST:PORT, and prints what it has done; the exit status. `key_file` NULL: that of this
 * machine. */
int tool_order_pool(const char *tracker, const char *key_file, const tool_pool_order *order);

/* Prints what the tracker at HOST:PORT knows; the exit status. `key_file` NULL: that of this machine. */
int tool_devices_of_pool(const char *tracker, const char *key_file, bool json);

#endif
