/* runtime/fixed.h -- inside the room: what a call of a kernel needs whose shapes are numbers, in one piece of
 * memory.
 *
 *     rt_fixed_call *call;
 *     if (rt_fix_call(&arena, module, function, &call, err)) ...    // call is NULL: not that kind of kernel
 *
 * The description of a kernel lies in dozens of cache lines: the function, its parameters, their dimensions,
 * the code of each. A program that streams its weights finds none of these lines in a near cache at the next
 * call; for a Tree-LSTM, reading them took 3 % of the time. A few lines hold all that a call needs:
 *
 *     code, turn, workspace, n_params | 2 + out, 1, 450 | 1, 450 | 2, 1, 300     rank and flags, then extents
 *
 * Lifetime: the arena's. Errors: out of memory. Threads: `turn` belongs to one instance of a program.
 */
#ifndef RUNTIME_FIXED_H
#define RUNTIME_FIXED_H

#include "runtime/alloc.h"
#include "runtime/format.h"
#include "runtime/layouts.h"
#include "tec/kernel.h"
#include "tec/runtime.h"

/* In the first word of a parameter: masks of the rank and the flag, shifts of the alignment, which has 32
 * bits, and of the number of the layout (runtime/layouts.h). */
enum { RT_FIXED_RANK = 255, RT_FIXED_OUTPUT = 256, RT_FIXED_ALIGNMENT = 16, RT_FIXED_LAYOUT = 48 };

typedef struct {
    tec_kernel_fn *code;
    int64_t turn;                        /* calls so far */
    int64_t workspace, thread_workspace; /* bytes */
    int32_t n_params;
    /* of each parameter, the last one first, so that outputs come before inputs: rank, flag, alignment and
     * layout, then its extents */
    int64_t words[];
} rt_fixed_call;

/* Layouts of parameters are added to `layouts`. *call is NULL for a kernel of a device, for one with symbols,
 * conditions or ranges, and where an extent is no number or an output stands before an input. False: out of
 * memory. */
bool rt_fix_call(rt_arena *arena, const tec_module *module, int32_t function, rt_layouts *layouts,
                 rt_fixed_call **call, tec_error *err);

#endif
