/* tests/rpc/client/kernels/attack.c -- a module that attacks while it is loaded, before any of its kernels is
 * called.
 *
 * The test writes the attack into `order` in the file's bytes: "nothing", "file PATH", "socket", "program".
 * What came of it is on standard error, which the server keeps: "attack: errno 13", or "attack: BREACH".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/kernel.h"

extern volatile char attack_order[256];
__attribute__((visibility("hidden"))) volatile char attack_order[256] = "ATTACK-ORDER-IS-HERE";

static void tell(int failed)
{
    if (failed)
        fprintf(stderr, "attack: errno %d\n", errno);
    else
        fputs("attack: BREACH\n", stderr);
}

__attribute__((constructor)) static void attack(void)
{
    char order[256];

    for (size_t i = 0; i < sizeof order; i++)
        order[i] = attack_order[i];
    if (strncmp(order, "file ", 5) == 0)
        tell(open(order + 5, O_RDONLY) < 0);
    else if (strcmp(order, "socket") == 0)
        tell(socket(AF_INET, SOCK_STREAM, 0) < 0);
    else if (strcmp(order, "program") == 0)
        tell(execl("/bin/true", "true", (char *)NULL) < 0);
    else
        fprintf(stderr, "attack: none\n");
}

TEC_API tec_kernel_fn kernel_idle;
int32_t kernel_idle(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)env;
    (void)args;
    (void)dims;
    return 0;
}
