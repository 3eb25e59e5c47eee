/* tvmtune/probe.h -- inside the room: the second half of `tvmtune doctor`: whether something can be measured,
 * on a device of the daemon's pool, or on this machine where the daemon has no pool.
 *
 *     tvm_probe p = {.cx = cx, .tracker = "127.0.0.1:9190", .device_class = "board", .tec = "/usr/bin/tec"};
 *     if (!tvm_probe_tracker(&p)) puts(p.why);
 *     ...                                              // in the order of the functions
 *     tvm_probe_close(&p);
 *
 * Each step needs the steps before it, says in `note` what it found, and where it fails says why in `why`.
 */
#ifndef TVMTUNE_PROBE_H
#define TVMTUNE_PROBE_H

#include "base/base.h"
#include "tec/rpc.h"

typedef struct {
    tec_context *cx;
    const char *tec;                /* the compiler */
    const char *tracker, *key_file; /* tracker "": this machine measures */
    const char *device_class;       /* "": the first one that the daemon knows */
    char note[400], why[600];
    /* what the steps open */
    tec_rpc *at_tracker, *at_server;
    tec_rpc_lease *lease;
    tec_rpc_session *session;
    const char *folder; /* of the kernels; NULL: not made yet */
    double noop;        /* seconds */
} tvm_probe;

bool tvm_probe_tracker(tvm_probe *self);     /* the tracker answers, and knows the key */
bool tvm_probe_match(tvm_probe *self);       /* a device of the class is granted */
bool tvm_probe_session(tvm_probe *self);     /* its server opens a session */
bool tvm_probe_ping(tvm_probe *self);        /* a question and its answer, timed */
bool tvm_probe_noop(tvm_probe *self);        /* a kernel that does next to nothing, compiled and timed */
bool tvm_probe_calibration(tvm_probe *self); /* a kernel whose work is known; longer than the one before */
void tvm_probe_close(tvm_probe *self);

#endif
