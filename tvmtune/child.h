/* tvmtune/child.h -- inside the room: a child process with limits, whose output goes to files.
 *
 *     tvm_child c;
 *     if (tvm_child_start(&c, argv, "out", "errors", memory)) ...
 *     while (!tvm_child_ended(&c, &status)) ...
 *
 * The child leads a process group of its own and dies with the thread that started it.
 */
#ifndef TVMTUNE_CHILD_H
#define TVMTUNE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

typedef struct {
    pid_t pid; /* 0: none */
} tvm_child;

/* False: errno says why. memory 0: no limit. */
bool tvm_child_start(tvm_child *child, const char *const *argv, const char *out, const char *errors,
                     int64_t memory);
bool tvm_child_ended(tvm_child *child, int *status); /* as waitpid gives it */
void tvm_child_ask(const tvm_child *child);          /* to stop, and to keep what it has */
void tvm_child_kill(tvm_child *child);               /* and waits for its end */

/* The program of this name in the folder of the running program. */
const char *tvm_beside(tec_context *cx, const char *name);

#endif
