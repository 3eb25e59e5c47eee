/* tracker/serve.h -- the tracker as messages: connections on a loop, the pool behind them, the state on disk.
 *
 *     track_service *s = track_serve(loop, "127.0.0.1:9191", &(track_service_options){.find = find, ...},
 * err);
 *     printf("ready at port %d\n", track_service_port(s));
 *     rpc_loop_run(loop);                                // until track_service_drain has sent all
 *     rpc_loop_free(loop);
 *     track_service_free(s);
 *
 * What a message says is in docs/rpc-messages.md, what happens then in tracker/pool.h. A server that
 * announces itself is dialled back with the key that it came with; clients can lease its devices once it has
 * shaken hands. What the pool decides in one turn of the loop is stored in one transaction, and then the
 * messages go out.
 *
 * Lifetime: freed after its loop, and before its state. Errors: what goes wrong with one connection ends that
 * connection; a state
 *   that cannot be written is logged, stands in the answer to `inquire`, and is written anew until that
 * works.
 * Threads: the loop's.
 */
#ifndef TRACKER_SERVE_H
#define TRACKER_SERVE_H

#include "rpc/loop/loop.h"
#include "tracker/state.h"

typedef struct track_service track_service;

typedef struct {
    bool (*find)(void *user, const uint8_t id[RPC_ID_BYTES], rpc_grant *grant); /* as of rpc_link_options */
    /* Whether the key may serve, or ask for, devices of this class; NULL: it may. */
    bool (*allows)(void *user, const uint8_t id[RPC_ID_BYTES], const char *class);
    /* The user that a request of this key counts for, where it asks for `wanted` ("": the key's own), in
     * `to`; false: the key is not for that user. NULL: it is for any. */
    bool (*user_of)(void *user, const uint8_t id[RPC_ID_BYTES], const char *wanted, char *to, size_t size);
    void (*log)(void *user, const char *line); /* NULL: nothing is logged */
    void *user;
    const char *program;
    track_state *state;
    int64_t term_ms, heartbeat_ms; /* 0: 20,000 and 5,000 */
    int most;                      /* connections; 0: 10,000 */
} track_service_options;

track_service *track_serve(rpc_loop *loop, const char *address, const track_service_options *self,
                           tec_error *err);
int track_service_port(const track_service *service);
bool track_service_is_loopback(const track_service *service);
track_pool *track_service_pool(track_service *service);
/* Says goodbye to all, and stops the loop; leases go on in the state. */
void track_service_drain(track_service *service);
void track_service_free(track_service *service);

#endif
