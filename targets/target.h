/* targets/target.h -- what a device is like: features, CPU, vectors, caches, limits; parsed from text.
 *
 *     const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2");    // or "native"
 *     if (t->vector_bits == 512) ...
 *     puts(target_text(cx, t));                      // canonical; parses to the same target
 *
 * `native` expands to this CPU with explicit features. A description is complete after parsing: schedules and
 * passes read the fields and never the text. Lifetime: the context's. Errors: an unknown kind, option, CPU or
 * value names what was written and what exists.
 */
#ifndef TARGETS_TARGET_H
#define TARGETS_TARGET_H

#include "base/base.h"

typedef struct target target;

/* What a kind of target has, and its code generator takes: the rows of targets/kinds.def. Who schedules,
 * lowers or tunes asks for a feature. */
typedef enum {
    /* Code is functions of tec/kernel.h that a CPU calls: parallel loops run on its pool, memory is its stack
     * and a workspace. */
    TARGET_HOST = 1 << 0,
    TARGET_CPU = 1 << 1,     /* described by -mcpu and by features of an architecture */
    TARGET_FLOATS = 1 << 2,  /* arithmetic on floating-point numbers */
    TARGET_MATH = 1 << 3,    /* exp, tanh and their like are functions of the generated language */
    TARGET_VECTORS = 1 << 4, /* expressions of several lanes */
    /* The generator keeps in registers what is a value of the program, and leaves arrays in memory. */
    TARGET_REGISTERS = 1 << 5,
    TARGET_CACHES = 1 << 6,      /* memory behind caches, which can be asked to fetch early */
    TARGET_THREADS = 1 << 7,     /* launches of blocks of threads, which share memory and meet at barriers */
    TARGET_SCRATCHPADS = 1 << 8, /* small memories that programs fill and empty themselves */
    TARGET_COPIES = 1 << 9,      /* copies into scratchpads that run beside the computation */
    TARGET_TOKENS = 1 << 10,     /* units that run beside each other and wait for each other by tokens */
    TARGET_IMPORTS = 1 << 11,    /* functions that a pragma brings as C or as LLVM's text */
    /* The cores of a CPU run blocks, and the threads of a block one after the other: a block of one thread
     * with vectors is best. A device has this, not a kind (targets/devices.c). */
    TARGET_CORES = 1 << 12,
    /* Code is machine code of one device, so a target may name several, and a module holds code for each. */
    TARGET_SEVERAL = 1 << 13,
} target_feature;

/* How far kernels may depart from the arithmetic of the definition. Each level allows what those before it
 * allow. */
typedef enum {
    TARGET_EXACT, /* nothing but fused multiply-adds */
    TARGET_TF32,  /* products of f32 by tensor cores, which round the factors to tf32 */
    TARGET_FAST,  /* approximate divisions, roots and functions; denormals are 0 */
} target_precision;

struct target {
    const struct target_kind *kind; /* for the rooms targets/ and below it */
    unsigned offers;                /* the kind's target_feature */
    const char *triple;             /* "x86_64-linux-gnu" */
    const struct target_arch *arch; /* for the rooms targets/ and below it; NULL: not a CPU */
    const char *cpu; /* LLVM's name of the CPU, or of the level; of devices: "sm_80", "sm_80,sm_90a" */
    /* LLVM's feature text, explicit and complete for the kernels: "+avx2,+fma,...,-avx512f"; sorted by
     * name. */
    const char *features;
    int num_cores; /* threads to schedule for */
    bool native;   /* code for it runs here */
    /* The class of devices that is meant, for records of a pool: it decides no code. NULL: any such CPU */
    const char *model;

    /* CPU */
    int vector_bits; /* widest vectors that schedules should use */
    int vector_registers;
    int sum_registers;        /* of these so many hold sums of a register tile where schedules begin */
    bool has_memory_operands; /* a multiply-add reads an operand from memory, which then needs no register */
    bool has_fma, has_rounding, has_f16c, has_avx512, has_avx512bf16, has_avx512fp16, has_vnni, has_dotprod,
        has_masks;
    /* "x86.bf16dot": instructions that add up pairs of products of bfloat16, called by this and by their
     * number of sums (hardware/); NULL: there are none, or multiply-adds of float32 are faster */
    const char *bf16_pairs;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches seen by one core */
    int load_ports, fma_ports;
    /* Cache lines that arrive for one request inside of a long run of lines: the CPU sees the run and fetches
     * what follows. 1: the line that was asked for. */
    int lines_fetched;

    /* GPU */
    int capability;        /* of an NVIDIA GPU, 80: sm_80; 0: another device */
    bool own_instructions; /* also those that later devices lack: sm_90a */
    int max_threads;       /* of a block; 0: no limit is known */
    int max_block[3];      /* of these along x, y and z */
    int warp_size;
    int64_t shared_bytes, register_bytes;
    bool no_f64; /* the device cannot compute in doubles */
    target_precision precision;

    /* Of a target that names several devices, each of them, the one with the most first. All else here is
     * what each of them has: one schedule serves all. n_each is 0 where one device is named. */
    const target *const *each;
    int n_each;

    /* of a device: the CPU beside it, as -host names it; NULL: this machine's, or it is a CPU itself */
    const struct target *host;
};

const target *target_parse(tec_context *cx, const char *text);
const target *target_native(tec_context *cx);
/* From what the runtime of another machine says of its CPU: the triple and all features that it has, known
 * here or not ("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+aes -num-cores=4"). As `native` is on that
 * machine, but for the sizes of caches. */
const target *target_of_machine(tec_context *cx, const char *text);
/* What runs on the host where machine is a device; machine itself where it is a CPU. */
const target *target_host(tec_context *cx, const target *machine);
const char *target_text(tec_context *cx, const target *machine);

/* The same machine with code of the precision that a name means ("exact", "tf32", "fast"). NULL with an error
 * where there is none of that name, or where it would change nothing on that machine. */
const target *target_with_precision(tec_context *cx, const target *machine, const char *name);
const char *target_precision_name(target_precision precision);

/* The target that fits a device of the runtime, by its kind ("cpu", "opencl" ...) and what its driver says;
 * NULL: none is known to fit. */
const char *target_for_device(tec_context *cx, const char *kind, const char *hardware, const char *driver);
uint64_t
target_fingerprint(const target *machine); /* of what decides the generated code; not of the host beside it */

/* Why code for machine cannot run on this machine, naming both and the missing features; NULL where it
 * can. */
const char *target_unfit(tec_context *cx, const target *machine);

/* Whether the target has all of these features (TARGET_THREADS | TARGET_SCRATCHPADS); NULL, a target that is
 * not known, has none. */
static inline bool target_offers(const target *machine, unsigned features)
{
    return machine && (machine->offers & features) == features;
}

/* Whether LLVM's feature `name` ("sse4.1", "dotprod") is on. */
bool target_has(const target *machine, const char *name);

/* The name of the architecture ("x86_64", "aarch64"), or of the kind of a target that is no CPU. */
const char *target_arch_name(const target *machine);

/* Whether the target is a CPU of that architecture (NULL: any) with one of two features of LLVM's (NULL: none
 * is needed). */
bool target_is_cpu_with(const target *machine, const char *arch, const char *feature, const char *or_feature);

/* Lanes of the dtype in one vector register, at least 1. */
static inline int target_lanes(const target *machine, base_dtype dtype)
{
    int n = machine->vector_bits / dtype.bits;
    return n > 1 ? n : 1;
}

#endif
