/* runtime/capture.h -- inside the room: steps of a device that follow each other, recorded once and repeated
 * as a whole.
 *
 *     if (!rt_captures_open(ex, err))                 // once; which steps may be recorded
 *         return false;
 *     rt_capture *c = rt_capture_at(ex, i);           // of the steps that begin with i; NULL: none
 *     if (c)
 *         ok = rt_capture_run(ex, c, err);            // steps c->first to c->end - 1
 *     rt_captures_forget(ex);                         // after a new plan; rt_captures_close: for good
 *
 * A launch costs the host some microseconds, more than many a kernel takes. Devices whose kind has the
 * functions `begin_capture` to `drop_capture` take a recorded list of launches in one call.
 * The first run after a plan goes step by step, the second one records, the others repeat: an input whose
 * shape changes with each run never pays for recording.
 * Invariant: places in the memory of a site, sizes and numbers of blocks depend on the plan of the shapes
 * alone, so a recording is valid until the next one.
 * Lifetime: the executor's. Errors: into the caller's tec_error. Threads: the executor's one.
 */
#ifndef RUNTIME_CAPTURE_H
#define RUNTIME_CAPTURE_H

#include "runtime/device.h"

struct tec_executor;

typedef struct {
    int32_t first, end; /* steps of one site */
    int32_t runs;       /* since the last plan, up to the recording */
    void *recorded;     /* the kind's own; NULL: not yet */
} rt_capture;

bool rt_captures_open(struct tec_executor *ex, tec_error *err);
void rt_captures_forget(struct tec_executor *ex);
void rt_captures_close(struct tec_executor *ex);

rt_capture *rt_capture_at(const struct tec_executor *ex, int32_t step);
bool rt_capture_run(struct tec_executor *ex, rt_capture *capture, tec_error *err);

#endif
