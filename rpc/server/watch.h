/* rpc/server/watch.h -- inside the room: what a session's process tries and may not, told to the server.
 *
 *     rpc_watch_hand_over(socket, listener);                      // in the session, at its beginning
 *     rpc_watch *w = rpc_watch_start(loop, socket, &(rpc_watch_options){...}, err);        // in the server
 *     tells(user, "tried to open '/etc/passwd', which it may not")     // an event
 *     rpc_watch_end(w);                                                // ended(user), once
 *
 * The kernel stops a call that the filter of seccomp reports (rpc/server/filter.h) until the server has
 * answered. A refused call fails by this answer. A file that is opened is only looked at: the kernel goes on
 * and decides itself, since a module could exchange the path behind the server's look. So a module can keep
 * its attempt out of the log, by such an exchange, but cannot open the file.
 *
 * The server reads the path from the session's memory, and compares its text with what Landlock lets the
 * session open (rpc_sandbox_lists). It touches no file of that path: a folder of a network that hangs would
 * stop the server.
 */
#ifndef RPC_SERVER_WATCH_H
#define RPC_SERVER_WATCH_H

#include <stdbool.h>

#include "rpc/loop/loop.h"

typedef struct rpc_watch rpc_watch;

typedef struct {
    bool has_driver;    /* as in rpc_sandbox */
    const char *folder; /* of the session, from the root; belongs to the caller, until `ended` */
    long pid;           /* of its first process */
    void (*tells)(void *user, const char *text); /* a line of the log */
    void (*ended)(void *user);
    void *user;
} rpc_watch_options;

/* Closes both files. False: there is no listener (-1), or the server is gone. */
bool rpc_watch_hand_over(int socket, int listener);
/* Takes the socket in all cases. NULL with an error: out of memory. */
rpc_watch *rpc_watch_start(rpc_loop *loop, int socket, const rpc_watch_options *options, tec_error *err);
/* `ended` may come before it returns. */
void rpc_watch_end(rpc_watch *watch);

enum { RPC_WATCH_PATH = 1024 };
/* The path from the root, without dots, of a file that a thread names from a folder that it has open
 * (AT_FDCWD: its working folder): for process 12, "../x" is "/tmp/x", and "/proc/12/maps" "/proc/self/maps".
 * False: too long, or the folder cannot be found out. */
bool rpc_watch_path(long pid, long thread, int from, const char *path, char to[RPC_WATCH_PATH]);

#endif
