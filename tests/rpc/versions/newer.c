/* tests/rpc/versions/newer.c -- programs of one version after, which still speak this one. */
#include "rpc/link.h"

const rpc_range rpc_spoken = {RPC_OLDEST, RPC_NEWEST + 1};
