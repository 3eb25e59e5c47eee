/* targets/target.h -- what a device is like: kind, CPU, vector width, registers, caches, limits; parsed from text.
 *
 *     const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2");    // or "native"
 *     if (t->vector_bits == 512) ...
 *     puts(target_text(cx, t));                                                   // canonical; parses back to the same target
 *
 * `native` expands to this CPU with explicit features. A description is complete after parsing: schedules and passes read the
 * fields and never the text. Lifetime: the context's. Errors: an unknown kind, option, CPU or value names what was written and
 * what exists.
 */
#ifndef TARGETS_TARGET_H
#define TARGETS_TARGET_H

#include "base/base.h"

typedef struct target target;

/* One row of the table of kinds (targets/kinds.c); what makes code registers itself in compiler/, since rooms above may not be
 * included. */
typedef struct {
    const char *name; /* "llvm", "cuda", "opencl", "vdla" */
    bool is_gpu;
    const char *what; /* for help texts */
} target_kind;

struct target {
    const target_kind *kind;
    const char *triple; /* "x86_64-linux-gnu" */
    const char *arch;   /* "x86_64", "aarch64" */
    const char *cpu;    /* LLVM's name of the CPU, or of the level */
    /* LLVM's feature text, explicit and complete for the kernels: "+avx2,+fma,...,-avx512f"; sorted by name. */
    const char *features;
    int num_cores; /* threads to schedule for */
    bool native;   /* code for it runs here */

    /* CPU */
    int vector_bits; /* widest vectors that schedules should use */
    int vector_registers;
    bool has_fma, has_f16c, has_avx512, has_avx512bf16, has_avx512fp16, has_vnni, has_dotprod, has_masks;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches seen by one core */
    int load_ports, fma_ports;

    /* GPU */
    int max_threads, warp_size;
    int64_t shared_bytes, register_bytes;
};

const target *target_parse(tec_context *cx, const char *text);
const target *target_native(tec_context *cx);
const char *target_text(tec_context *cx, const target *t);
uint64_t target_fingerprint(const target *t); /* of what decides the generated code */

/* Why code for t cannot run on this machine, naming both and the missing features; NULL where it can. */
const char *target_unfit(tec_context *cx, const target *t);

/* Whether LLVM's feature `name` ("sse4.1", "dotprod") is on. */
bool target_has(const target *t, const char *name);

/* Lanes of dtype t in one vector register, at least 1. */
static inline int target_lanes(const target *t, base_dtype d)
{
    int n = t->vector_bits / d.bits;
    return n > 1 ? n : 1;
}

#endif
