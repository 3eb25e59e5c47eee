/* rpc/client/measure.h -- candidates of a tuner, measured by a session.
 *
 *     const rpc_measure q = {.modules = {(int64_t[]){module}, 1}, .repeats = 5, .min_seconds = 0.02, ...};
 *     rpc_measurement m;
 *     if (!rpc_ask_measure(session, &q, &m, &err)) ... err.status: TEC_TIMEOUT, TEC_CRASHED, TEC_LOST ...
 *
 * Lifetime: the answer points into the measurement that it is part of. Errors, time and threads: as in
 * tec/rpc.h.
 */
#ifndef RPC_CLIENT_MEASURE_H
#define RPC_CLIENT_MEASURE_H

#include "rpc/message.h"
#include "tec/rpc.h"
#include "worker/protocol.h"

typedef struct {
    worker_answer answer;
    double costs[WORKER_MODULES * WORKER_MAX_COSTS];
    double waited_seconds;
    char stage[16], kind[32], error[600];
    int signal; /* that ended the session, where there is no answer; 0: none did */
} rpc_measurement;

/* False: the session gave no answer; *out has the signal alone. */
bool rpc_ask_measure(tec_rpc_session *session, const rpc_measure *measure, rpc_measurement *out,
                     tec_error *err);
/* As tec_rpc_release, without waiting for an answer: the request goes along with the next one. */
void rpc_release_later(tec_rpc_session *session, int64_t handle);

#endif
