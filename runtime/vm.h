/* runtime/vm.h -- inside the room: an instance of a program: what vm.c runs and program.c opens.
 *
 * Invariant: the module's bytecode has passed the verifier, so that types, places and registers are not
 * looked at again. Frames lie in one array of registers, which grows; a callee's frame begins where its
 * caller's ends.
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

/* What the loop reads of a function, close together. */
typedef struct {
    const int32_t *words;
    const rt_routine_desc *desc;
    int32_t n_registers;
    const uint8_t *layouts; /* of each register (runtime/layouts.h); 0: none, or no tensor */
    uint64_t objects[];     /* which registers hold objects, as bits; then the layouts */
} rt_vm_function;

/* Of a caller: where its registers begin, and the word of its call. */
typedef struct {
    const rt_vm_function *f;
    int64_t base;
    int32_t at;
} rt_call;

/* What the loop reads comes first. */
struct tec_program {
    rt_heap *heap;
    rt_vm_function **functions; /* of the program */
    rt_object **constants;
    rt_fixed_call **fixed; /* [n_functions of the module]; NULL: its description is read at each call */
    void **args;           /* of a kernel */
    rt_word *registers;
    int64_t n_registers; /* room */
    rt_call *calls;
    int64_t max_calls;      /* room */
    rt_vm_profile *profile; /* NULL: off */
    bool on_device;         /* some kernel of the module is a device's */
    tec_program_counts counts;
    rt_env env;
    const rt_module_desc *desc;
    const rt_program_desc *program;
    tec_module *module;
    int32_t entry;
    tec_program_options options;
    rt_arena arena;
    int32_t *classes;   /* of types */
    rt_layouts layouts; /* of types and kernels' parameters; none where some kernel is a device's */
    int64_t *dims;      /* of a kernel or of dimension code */
    int64_t *turns;     /* [n_functions of the module] calls so far */
    atomic_bool cancelled;
    rt_vm_devices *devices;           /* NULL: no kernel of a device was called yet */
    const rt_tensor_object **tensors; /* arguments of a kernel */
};

/* Runs a function on values of its types: gives references. */
bool rt_vm_run(tec_program *program, int32_t function, rt_object *const *in, rt_object **out, tec_error *err);

#endif
