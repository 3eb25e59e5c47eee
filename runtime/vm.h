/* runtime/vm.h -- inside the room: an instance of a program: what vm.c runs and program.c opens.
 *
 * Invariant: the module's bytecode has passed the verifier, so that types, places and registers are not
 * looked at
 * again. Frames lie in one array of registers, which grows; a callee's frame begins where its caller's ends.
 */
#ifndef RUNTIME_VM_H
#define RUNTIME_VM_H

#include <stdatomic.h>

#include "runtime/env.h"
#include "runtime/fixed.h"
#include "runtime/module.h"
#include "runtime/object.h"
#include "runtime/vm_device.h"
#include "runtime/vm_profile.h"
#include "tec/program.h"

typedef union {
    int64_t i;
    rt_object *o;
} rt_word;

typedef struct {
    int32_t function;
    int32_t at;   /* of the caller: the word of its call */
    int64_t base; /* of its registers */
} rt_call;

struct tec_program {
    tec_module *module;
    const rt_module_desc *desc;
    const rt_program_desc *program;
    int32_t entry;
    tec_program_options options;
    rt_env env;
    rt_heap *heap;
    rt_arena arena;
    rt_object **constants;
    int32_t *classes;   /* of types */
    int32_t *layouts;   /* of types (runtime/layouts.h) */
    uint64_t **objects; /* for each function: which registers hold objects, as bits */
    int64_t *dims;      /* of a kernel or of dimension code */
    void **args;
    int64_t *turns;        /* [n_functions] calls so far */
    rt_fixed_call **fixed; /* [n_functions]; NULL: the function's description is read at each call */
    rt_word *registers;
    int64_t n_registers; /* room */
    rt_call *calls;
    int64_t n_calls, max_calls; /* room */
    atomic_bool cancelled;
    tec_program_counts counts;
    rt_vm_profile *profile;           /* NULL: off */
    bool on_device;                   /* some kernel of the module is a device\'s */
    rt_vm_devices *devices;           /* NULL: no kernel of a device was called yet */
    const rt_tensor_object **tensors; /* arguments of a kernel */
};

/* Runs a function on values of its types: gives references. */
bool rt_vm_run(tec_program *program, int32_t function, rt_object *const *in, rt_object **out, tec_error *err);

#endif
