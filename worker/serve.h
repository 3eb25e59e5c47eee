/* worker/serve.h -- a runner: a process that loads modules, calls them and measures them, for as long as its
 * socket is open.
 *
 *     int main(void) { return worker_serve(WORKER_SOCKET); }
 *
 * It links base, runtime and runner alone. It does not survive a module that crashes, and does not end one
 * that hangs: who asks does that, and starts another. Memory that a module allocates is limited by the job.
 */
#ifndef WORKER_SERVE_H
#define WORKER_SERVE_H

#include <stdbool.h>
#include <stdint.h>

/* the first frame of a worker, of this kind, says that it is there */
enum { WORKER_SOCKET = 3, WORKER_HELLO = 0x74656301 };

/* What every worker process does first: it dies with its parent, and of a crash without a core file or
 * handlers of libraries. False: `fd` is no socket. */
bool worker_become_worker(int fd);

/* From now on so many bytes more may be allocated; negative: any. */
void worker_limit_memory(int64_t more);

/* The exit status: 0 when the other end closed the socket. */
int worker_serve(int fd);

#endif
