/* rpc/versions.c -- the versions of the protocol that a program speaks. A file of its own, so that the
 * programs of tests/rpc/versions have others. */
#include "rpc/link.h"

const rpc_range rpc_spoken = {RPC_OLDEST, RPC_NEWEST};
