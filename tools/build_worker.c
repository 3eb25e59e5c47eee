/* tools/build_worker.c -- `tec build-worker BYTES LIMITS`: builds candidates for the tuner that started
 * it. */
#include <stdio.h>
#include <stdlib.h>

#include "autotune/builder.h"
#include "tools/command.h"
#include "worker/serve.h"

int tool_build_worker(int argc, char **argv)
{
    int64_t memory_limit = 0;

    if (argc != 3 || !tool_number(argv[1], &memory_limit) || !worker_become_worker(WORKER_SOCKET)) {
        fprintf(
            stderr,
            "tec build-worker: builds kernels for 'tec tune', which starts it; it is of no use by itself\n");
        return TOOL_USAGE;
    }
    return tune_build_worker(WORKER_SOCKET, memory_limit, argv[2], getenv("TEC_CUDA"));
}
