/* tvmtune/stream.h -- inside the room: server-sent events. Each client gets every job that it may see once,
 * and from then on
 * each job that changes.
 *
 *     event: job                      event: gone
 *     data: {"id":3,"state":...}      data: 3
 *
 * The thread of the doors asks the store, at most five times a second and once for all clients; a client with
 * nothing to
 * send is suspended until the next tick.
 *
 * Lifetime: until it is closed, after the end of the doors' thread. Threads: tvm_streams_tick and
 * tvm_streams_end by any;
 * the rest by the thread of the doors.
 */
#ifndef TVMTUNE_STREAM_H
#define TVMTUNE_STREAM_H

#include <microhttpd.h>

#include "store/queue.h"
#include "tvmtune/clock.h"

typedef struct tvm_streams tvm_streams;

tvm_streams *tvm_streams_open(store *db, const tvm_ahead *ahead); /* NULL: no memory */
/* An answer without end to a user, or to an admin. NULL: no memory. */
struct MHD_Response *tvm_streams_answer(tvm_streams *streams, struct MHD_Connection *c, const char *user,
                                        bool admin);
void tvm_streams_tick(tvm_streams *streams);
/* All answers end: before the daemon is stopped. */
void tvm_streams_end(tvm_streams *streams);
void tvm_streams_close(tvm_streams *streams); /* NULL is legal */

#endif
