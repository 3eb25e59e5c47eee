/* targets/cpus.h -- inside the room: finding CPUs, sets of features, the tables of devices and kinds.
 *
 *     const target_arch *arch;
 *     const target_cpu *c = target_cpu_find("x86-64-v3", &arch);
 *     base_vec set = target_cpu_features(cx, arch, c);          // with those of the rows that it builds on
 *
 * A set of features is a vector of names without sign, sorted, each once.
 */
#ifndef TARGETS_CPUS_H
#define TARGETS_CPUS_H

#include "targets/arch.h"

/* The first architecture that has a CPU of that name; NULL: none has. */
const target_cpu *target_cpu_find(const char *name, const target_arch **arch);
const target_cpu *target_cpu_of(const target_arch *arch, const char *name); /* NULL: none */
base_vec target_cpu_features(tec_context *cx, const target_arch *arch, const target_cpu *cpu);
base_vec target_known_features(tec_context *cx, const target_arch *arch); /* all that -mattr may name */

void target_set_add(tec_context *cx, base_vec *set, const char *name); /* keeps it sorted and unique */
void target_set_remove(base_vec *set, const char *name);
bool target_set_has(const base_vec *set, const char *name);

/* What this machine has (targets/native.c). */
typedef struct {
    const target_arch *arch; /* NULL: an architecture that we know nothing about */
    base_vec features;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* 0: unknown */
    int num_cores;
} target_machine;

const target_arch *target_host_arch(void); /* that of this machine; NULL: none of ours */
target_machine target_this_machine(tec_context *cx);

/* GPUs and accelerators (targets/devices.c). */
typedef struct {
    const char *kind, *name;           /* "cuda", "sm_90" */
    int max_threads, max_z, warp_size; /* threads of a block, in all and along z */
    int64_t shared_bytes, register_bytes;
    bool no_f64;       /* it cannot compute in doubles */
    bool has_fma;      /* a multiply-add in one instruction, rounded once */
    const char *cores; /* its blocks run on cores of this CPU's kind (TARGET_CORES); NULL: it is no CPU */
    /* what the driver says of such a device, in its name or the device's; NULL: nothing that tells it */
    const char *said;
} target_device;
extern const target_device target_devices[];
extern const int target_n_devices;

/* A row of targets/kinds.def. */
typedef struct target_kind {
    const char *name;   /* "llvm", "cuda", "opencl", "vdla" */
    unsigned features;  /* target_feature */
    const char *option; /* "-arch": which of the kind's devices; NULL: a CPU, or the one device */
    const char *wants;  /* "an architecture" */
    const char *help;
} target_kind;

extern const target_kind target_kinds[];
extern const int target_n_kinds;
const target_kind *target_kind_find(const char *name);

#endif
