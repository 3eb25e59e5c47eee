/* rpc/server/offer.h -- inside the room: which class each device of this server is in.
 *
 *     "rpi4"                    the class of the CPU, and of no other device
 *     "cpu=rpi4,opencl=mali"    a class for each kind of device
 *
 * The devices of a class are as good as each other, so devices of two kinds are never in one class. A device
 * without a class is not offered to a tracker.
 */
#ifndef RPC_SERVER_OFFER_H
#define RPC_SERVER_OFFER_H

#include "rpc/message.h"
#include "tec/base.h"

bool rpc_check_classes(const char *classes, tec_error *err);
/* The class of a device, "cpu:0", in `to`; false: it has none. */
bool rpc_class_of(const char *classes, const char *device, char *to, size_t size);
/* Whether a key that is for these classes ("*", "gpu,board") may use one of the server's. */
bool rpc_key_fits(const char *classes, const char *of_key);

/* The devices of a list that have a class, in *devices and *count, with their fingerprints: in the arena, but
 * for the texts of the list. False: no device has a class. */
bool rpc_make_offer(const char *classes, const rpc_listed *list, rt_arena *arena, const rpc_offered **devices,
                    int *count, tec_error *err);

#endif
