/* autotune/builder.h -- builders: processes that turn traces into modules, one candidate after the other.
 *
 *     int tool_build_worker(...) { return tune_build_worker(WORKER_SOCKET); }         // in the process
 *     worker_send(fd, TUNE_BUILD, body: task number, trace)                           // from outside
 *     worker_receive(fd, &kind, &body, ...): TUNE_BUILT: a tune_built
 *
 * A builder keeps the definitions that it has parsed; to a task that it does not know it answers
 * TUNE_UNKNOWN, which asks for a TUNE_TASK (number, definition, target) and the question again.
 */
#ifndef AUTOTUNE_BUILDER_H
#define AUTOTUNE_BUILDER_H

#include "worker/wire.h"

enum { TUNE_TASK = 16, TUNE_BUILD, TUNE_BUILT };

typedef enum {
    TUNE_BUILD_OK,
    TUNE_BUILD_REFUSED, /* a step of the trace */
    TUNE_BUILD_FAILED,
    TUNE_UNKNOWN,
    TUNE_N_BUILDS
} tune_build_outcome;

typedef struct {
    tune_build_outcome outcome;
    const char *stage, *error; /* "schedule", "build" */
    double schedule_seconds, compile_seconds, link_seconds;
    const void *module;
    size_t size;
} tune_built;

void tune_put_built(rt_bytes *bytes, const tune_built *built);
bool tune_get_built(worker_reader *reader,
                    tune_built *built); /* what it points at lies in the bytes that are read */

/* The exit status. Allocates at most so many bytes. limits: of base_set_limits_text. cuda: as of
 * tec_context_set_cuda. */
int tune_build_worker(int fd, int64_t memory_limit, const char *limits, const char *cuda);

#endif
