/* tools/tec_runner.c -- the program `tec_runner`: calls and measures modules for the process that started it;
 * links the runtime alone. */
#include <stdio.h>

#include "worker/serve.h"

int main(void)
{
    if (run_become_worker(RUN_SOCKET))
        return run_serve(RUN_SOCKET);
    fprintf(stderr,
            "tec_runner: measures kernels for 'tec tune', which starts it; it is of no use by itself\n");
    return 2;
}
