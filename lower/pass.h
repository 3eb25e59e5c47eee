/* lower/pass.h -- the pipeline that makes a loop tree device-ready, and what each pass sees.
 *
 *     const ir_program *p = lower_run(&(lower_options){.cx = cx, .target = t}, tree);
 *
 * lower/passes.def is the table: a row for each pass, in order, with what the target must offer. A pass is
 * one file lower/NAME.c with one function lower_NAME; it gives a new program (or the same pointer where
 * nothing changed), or NULL with an error.
 */
#ifndef LOWER_PASS_H
#define LOWER_PASS_H

#include "ir/ir.h"
#include "ir/verify/verify.h"
#include "targets/target.h"

typedef struct {
    tec_context *cx;
    const target *target;
    bool strict;          /* floating point: no fused multiply-add, no re-association */
    bool no_verify;       /* skip ir_verify between passes (release tuning) */
    const char *dump_dir; /* the IR after each pass that changed it: DIR/NAME.NN-pass.tir; NULL: none */
    /* Called after each pass with its result (p == before where unchanged); NULL: not called. */
    void (*watch)(void *user, const char *pass, const ir_program *before, const ir_program *after);
    void *user;
} lower_options;

typedef const ir_program *lower_pass_fn(const lower_options *options, const ir_program *program);

/* lower_blocks, lower_trim, ...: one function for each row of lower/passes.def. */
#define LOWER_PASS(name, level, needs, excludes, help) lower_pass_fn lower_##name;
#include "lower/passes.def"

typedef struct {
    const char *name;
    lower_pass_fn *run;
    ir_verify_level level;    /* what holds of its output */
    const char *what;         /* one line for `tec opt --help` */
    unsigned needs, excludes; /* features of the target (target_feature): all of these, and none of those */
} lower_pass;
extern const lower_pass lower_passes[];
extern const int lower_n_passes;
const lower_pass *lower_find(const char *name); /* NULL: no such pass */

bool lower_applies(const lower_pass *pass, const target *machine); /* whether the row runs for the target */

/* All rows that apply to the target. */
const ir_program *lower_run(const lower_options *options, const ir_program *tree);
/* Just these, in this order (tec opt). A slice may start anywhere, so what the levels of the table say is not
 * verified. */
const ir_program *lower_run_passes(const lower_options *options, const ir_program *program,
                                   const char *const *names, int count);

/* What code generators rely on after the last row, for CPU targets:
 * - No blocks, updates, reduces; loops are serial or parallel (not nested); one-dimensional accesses, compact
 *   buffers; vector loads and stores have ramps of stride 1 (contiguous), any other ramp or index vector is a
 *   gather or scatter.
 * - An IR_ALLOCATE of scope IR_LOCAL has a small constant size (at most 16 KiB a function) and lives on the
 *   stack (entry block). Any other allocate has the note "workspace" (byte offset into env->workspace) or,
 *   inside a parallel loop, "thread_workspace" (byte offset into the worker's own); program notes "workspace"
 *   and "thread_workspace" give the totals in bytes. Offsets are multiples of 64.
 * - Local buffers that became registers are separate buffers of one vector (or scalar) each.
 * - FMA is explicit where allowed; math functions that the target has no instruction for are expanded
 *   (lower/math.c).
 * - Asserts carry the checks that the caller asked for; the checks of arguments are the runtime's, from
 *   metadata.
 */

#endif
