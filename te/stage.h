/* te/stage.h -- inside the room: stages: what te_compute, scans and extern stages are made with.
 *
 *     te_stage *s = te_build_stage(&(te_recipe){.def = d, .name = "C", .output = &name, .axis = axes,
 *         .n = 2, .body = &e, .n_bodies = 1});
 *     if (s) base_push(d->cx, &d->stages, s);
 *
 * te_build_stage checks axes and bodies and takes reductions below the root out into stages that stand before
 * the new one; the caller decides where the new one stands.
 */
#ifndef TE_STAGE_H
#define TE_STAGE_H

#include "ir/reason/facts.h"
#include "te/te.h"

typedef struct {
    te_def *def;
    te_scan *scan;         /* of an update: bodies may read the scan's tensors; NULL: none */
    const ir_expr *length; /* of the first dimension of the outputs; NULL: that of the first axis */
    /* the one output, made already; NULL: outputs are made, and their names taken */
    te_tensor *state;
    const char *name;          /* of the stage */
    const char *const *output; /* n_bodies names */
    const ir_expr *const *axis;
    int n;
    const ir_expr *const *body;
    int n_bodies;
} te_recipe;
te_stage *te_build_stage(const te_recipe *recipe); /* NULL with an error */

/* NAME, or NAME.v0, NAME.v1, ... */
const char *const *te_output_names(tec_context *cx, const char *name, int n);
bool te_claim_name(te_def *def, const char *name, const void *what);
te_stage *te_new_stage(te_def *def, te_kind kind, const char *name, int n_outputs);
te_tensor *te_new_tensor(te_def *def, te_stage *stage, int which, const ir_buffer *buffer);
bool te_check_axes(te_def *def, const char *name, const ir_expr *const *axis, int count);
ir_facts *te_facts(te_def *def); /* what is known about its symbols */

/* A load of a tensor of the scan by one of its updates: an error unless the step that it reads is computed
 * before. False: not the scan's. */
bool te_scan_reads(te_scan *scan, const ir_expr *load);

#endif
