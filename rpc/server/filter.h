/* rpc/server/filter.h -- inside the room: which system calls a session's process may make (seccomp).
 *
 *     int listener;
 *     if (rpc_filter_enter(has_driver, &listener)) ...     // "no new privileges" is set already
 *
 * On Linux 5.5 and up the process behind the listener, which is the server (rpc/server/watch.h), is asked
 * about each file that is opened by its name, and about each call that is refused because it reaches beyond
 * the session: so they can be logged. The calls wait for its answer. When the listener is closed, such calls
 * fail with ENOSYS.
 */
#ifndef RPC_SERVER_FILTER_H
#define RPC_SERVER_FILTER_H

#include <stdbool.h>

/* *listener: a file of this process, which it has to close before anything foreign runs; -1: the system asks
 * nobody, refused calls fail with EPERM, and files are opened as other layers allow. */
bool rpc_filter_enter(bool has_driver, int *listener);
/* "kill" for its number; NULL for a call that the listener is never asked about. */
const char *rpc_filter_name(int number);
/* openat and open: the listener may let the kernel go on. All others are to be refused. */
bool rpc_filter_opens(int number);

#endif
