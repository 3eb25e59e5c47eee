/* tvmtune/kernels.h -- inside the room: what `tec tune` prints as JSON lines, read back: the kernels of a
 * file, and what came of each.
 *
 *     tvm_kernels k = tvm_read_kernels(cx, text);                      // of `tec tune --kernels --json`
 *     store_part_report *reports = tvm_read_outcomes(cx, text, &n);    // of `tec tune --json`
 *
 * The lines come from a process that read a hostile file: a line that is no such object is left out.
 */
#ifndef TVMTUNE_KERNELS_H
#define TVMTUNE_KERNELS_H

#include "store/queue_tasks.h"

typedef struct {
    store_part *parts;
    int n;
    const char *codegen; /* the version of the code generator that the lines name, or "unknown" */
    const char *machine; /* the target in full; "": the lines do not say it */
} tvm_kernels;

tvm_kernels tvm_read_kernels(tec_context *cx, const char *text);
store_part_report *tvm_read_outcomes(tec_context *cx, const char *text, int *n);

/* How many schedules of an earlier code generator the tuning measured again, and how many of them it kept. */
int tvm_read_remeasured(tec_context *cx, const char *text, int *kept);

#endif
