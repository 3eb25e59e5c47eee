/* targets/cpus.h -- inside the room: the tables of known CPUs and devices, and sets of features.
 *
 *     const target_cpu *c = target_cpu_find("x86-64-v3", NULL);
 *     base_vec set = target_cpu_features(cx, c);               // with those of the rows that it builds on
 *
 * A set of features is a vector of names without sign, sorted, each once.
 */
#ifndef TARGETS_CPUS_H
#define TARGETS_CPUS_H

#include "targets/target.h"

typedef struct target_cpu {
    const char *name, *arch;
    const char *parent;   /* the row that this one builds on; NULL: none */
    const char *features; /* what it adds: "avx2 fma" */
    int64_t l1_bytes, l2_bytes, l3_bytes;
    int load_ports, fma_ports;
} target_cpu;

extern const target_cpu target_cpus[];
extern const int target_n_cpus;

const target_cpu *target_cpu_find(const char *name, const char *arch); /* arch NULL: any */
base_vec target_cpu_features(tec_context *cx, const target_cpu *cpu);
base_vec target_known_features(tec_context *cx, const char *arch); /* all that -mattr may name */

void target_set_add(tec_context *cx, base_vec *set, const char *name); /* keeps it sorted and unique */
void target_set_remove(base_vec *set, const char *name);
bool target_set_has(const base_vec *set, const char *name);

/* What this machine has (targets/native.c). */
typedef struct {
    const char *arch; /* NULL: an architecture that we know nothing about */
    base_vec features;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* 0: unknown */
    int num_cores;
} target_machine;
target_machine target_this_machine(tec_context *cx);

/* GPUs and accelerators (targets/devices.c). */
typedef struct {
    const char *kind, *name; /* "cuda", "sm_90" */
    int max_threads, warp_size;
    int64_t shared_bytes, register_bytes;
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
