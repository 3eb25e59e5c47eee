/* tvmtune/devices.h -- inside the room: what the tracker of the pool says of its devices, for the page.
 *
 *     tvm_devices *d = tvm_devices_open(cx, &(tvm_devices_options){.tec = "/usr/bin/tec", .folder = "state",
 *                                                                  .tracker = "127.0.0.1:9190"});
 *     tvm_devices_tick(d);                              // a few times a second, on the daemon's thread
 *     const char *json = tvm_devices_state(cx, d);      // on the thread of the doors
 *     tvm_devices_close(d);
 *
 * `tec devices --tracker` asks, as a child process, and only while somebody wants to know: for WANTED seconds
 * after the last call of tvm_devices_state. So no request waits for a tracker, and a tracker that hangs costs
 * a state that is old.
 *
 * Lifetime: until it is closed. Errors: none; what is wrong with the tracker is part of the state. Threads:
 * the two above.
 */
#ifndef TVMTUNE_DEVICES_H
#define TVMTUNE_DEVICES_H

#include "base/base.h"

typedef struct tvm_devices tvm_devices;

typedef struct {
    const char *tec, *folder;       /* the program, and where its output goes; needed */
    const char *tracker, *key_file; /* HOST:PORT, NULL: there is no pool; key_file NULL: those of `tec` */
} tvm_devices_options;

/* NULL with an error: no memory. */
tvm_devices *tvm_devices_open(tec_context *cx, const tvm_devices_options *options);
void tvm_devices_tick(tvm_devices *self);
/* The last answer as JSON (`tec devices --tracker --json`), or {"trouble": why there is none}; "": nothing is
 * known yet, or there is no pool. NULL self is legal. */
const char *tvm_devices_state(tec_context *cx, tvm_devices *self);
void tvm_devices_close(tvm_devices *self); /* NULL is legal */

#endif
