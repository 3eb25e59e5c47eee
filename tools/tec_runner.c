/* tools/tec_runner.c -- the program `tec_runner`: calls and measures modules for the process that started it;
 * links the runtime alone. */
#include <stdio.h>

#include "worker/serve.h"

int main(void)
{
    if (worker_become_worker(WORKER_SOCKET))
        return worker_serve(WORKER_SOCKET);
    fprintf(stderr,
            "tec_runner: measures kernels for 'tec tune', which starts it; it is of no use by itself\n");
    return 2;
}
