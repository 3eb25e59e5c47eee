/* runtime/vm_profile.h -- inside the room: the time of a program's kernels and instructions.
 *
 *     rt_vm_profile_start(p);                      // of a run
 *     ... an instruction ...
 *     rt_vm_profile_step(p, RT_MOVE);              // behind each instruction
 *
 * A kernel's time is its own row; what the VM does around the call belongs to `invoke_packed`. The time that
 * reading the clock takes is measured when a run starts, and left out. Lifetime: rows live in the caller's
 * arena. Errors: into the caller's tec_error. Threads: one at a time.
 */
#ifndef RUNTIME_VM_PROFILE_H
#define RUNTIME_VM_PROFILE_H

#include "runtime/alloc.h"
#include "runtime/file.h"
#include "runtime/profile.h"

typedef struct {
    rt_step_profile instruction[RT_N_INSTRUCTIONS];
    rt_step_profile *kernel; /* [functions of the module], with counts of all calls */
    double last, kernels;    /* the clock; seconds of kernels inside of the instruction that runs */
    double clock_s;          /* that reading the clock takes */
} rt_vm_profile;

rt_vm_profile *rt_vm_profile_new(rt_arena *arena, int32_t n_kernels, tec_error *err);
void rt_vm_profile_start(rt_vm_profile *profile);
void rt_vm_profile_step(rt_vm_profile *profile, int32_t op);
/* Around the code of a kernel. */
void rt_vm_profile_begin(rt_vm_profile *profile);
void rt_vm_profile_kernel(rt_vm_profile *profile, int32_t index, const rt_function_desc *kernel,
                          const int64_t *dims);

#endif
