/* tools/tec_runner.c -- the program `tec_runner [FOLDER BYTES]`: calls and measures modules for the process
 * that started it; links the runtime alone. What drivers compile is kept in FOLDER, up to BYTES. */
#include <stdio.h>
#include <stdlib.h>

#include "tec/device.h"
#include "worker/serve.h"

int main(int argc, char **argv)
{
    tec_error err = {0};

    if (argc == 3 && !tec_device_cache(argv[1], strtoll(argv[2], NULL, 10), &err)) {
        fprintf(stderr, "tec_runner: %s\n", err.text);
        return 2;
    }
    if (worker_become_worker(WORKER_SOCKET))
        return worker_serve(WORKER_SOCKET);
    fprintf(stderr,
            "tec_runner: measures kernels for 'tec tune', which starts it; it is of no use by itself\n");
    return 2;
}
