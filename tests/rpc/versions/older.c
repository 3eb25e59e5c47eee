/* tests/rpc/versions/older.c -- programs of one version before. */
#include "rpc/link.h"

const rpc_range rpc_spoken = {RPC_OLDEST, RPC_NEWEST - 1};
