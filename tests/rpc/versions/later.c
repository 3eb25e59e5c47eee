/* tests/rpc/versions/later.c -- programs of a later time, which no longer speak this version. */
#include "rpc/link.h"

const rpc_range rpc_spoken = {RPC_NEWEST + 1, RPC_NEWEST + 2};
