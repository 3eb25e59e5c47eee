/* rpc/server/sandbox.h -- what a session's process may do: almost nothing but compute.
 *
 *     char text[200];
 *     if (!rpc_sandbox_enter(&(rpc_sandbox){.memory_bytes = 1 << 30}, text, sizeof text, err))
 *         ... text says which layers are in force; err, which one is missing
 *
 * The layers: no new privileges; another user where the server is root; Landlock (files of a session's
 * folder, libraries, what /proc/self and /sys say); seccomp; limits of memory, processes, files and core
 * dumps; death with the server. Without seccomp, or without both Landlock and another user, a session could
 * read the server's keys: then this fails, unless `weak` is set.
 *
 * A session of a CPU has a list of the system calls that it needs; all others fail, and those that only an
 * attack wants (sockets, other programs, tracing) end the process by SIGSYS. The driver of another device
 * loads libraries and starts compilers, so there only what an attack wants fails. In both, calls that reach
 * other processes fail, and no process leaves the group of the session's first process, by which the server
 * ends them all. The server is told what a session tries and may not (rpc/server/watch.h), if the system can.
 * Threads: before there are others.
 */
#ifndef RPC_SERVER_SANDBOX_H
#define RPC_SERVER_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base.h"

typedef struct {
    bool has_driver;      /* a session's device is no CPU */
    bool weak;            /* go on without the layers that the system lacks */
    int64_t memory_bytes; /* that may be allocated from now on */
    int watcher;          /* a socket to the server, which watches from now on; it is closed */
} rpc_sandbox;

/* The working folder is a session's own. `text`: "seccomp, landlock, own user, watched". */
bool rpc_sandbox_enter(const rpc_sandbox *sandbox, char *text, size_t size, tec_error *err);
/* Whether Landlock lets a session with this folder open the file: by the text of its path, from the root and
 * without dots. */
bool rpc_sandbox_lists(bool has_driver, const char *folder, const char *path, bool writes);

#endif
