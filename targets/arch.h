/* targets/arch.h -- for the rooms below targets/: an architecture of CPUs is one const struct of data and one
 * function.
 *
 *     const target_arch *a = target_arch_find("aarch64");
 *     printf("%s has %d bits\n", a->triple, a->pointer_bits);
 *
 * The rows are those of targets/archs.def; the struct of NAME is in targets/NAME.c, with the table of its
 * CPUs.
 */
#ifndef TARGETS_ARCH_H
#define TARGETS_ARCH_H

#include "targets/target.h"

/* A CPU: a row names the row that it builds on and the features that it adds, in LLVM's words. */
typedef struct {
    const char *name;
    const char *parent;   /* a row of the same architecture; NULL: none */
    const char *features; /* "avx2 fma" */
    int64_t l1_bytes, l2_bytes, l3_bytes;
    int load_ports, fma_ports;
    int lines_fetched; /* as in target.h; 1 also where it was not measured */
} target_cpu;

/* How kernels switch denormals off: LLVM's intrinsics that get and set the control register, and the bits
 * that are set in it. */
typedef struct {
    const char *get, *set; /* NULL: there is no such mode */
    int bits;              /* of the register's value */
    uint64_t flush;
    bool in_memory; /* the intrinsics take the address of the value */
} target_float_mode;

/* What to look for in an assembly text (targets/llvm/spills.c). Lists are words with blanks between them. */
typedef struct {
    const char *comment;         /* the characters that begin a comment */
    const char *jumps;           /* how instructions begin that jump */
    const char *multiply_adds;   /* ... that multiply and add */
    const char *vector_operands; /* parts of which a vector multiply-add has one; "": any is one */
    const char *scalar_operands; /* parts of which a vector multiply-add has none */
    const char *stack,
        *frame;              /* parts of a reference to the stack by its pointer, and by the frame pointer */
    const char *keeps_frame; /* a part of the instruction that sets the frame pointer */
    const char *stores;      /* how instructions begin that write memory; NULL: the last operand is written */
} target_assembly;

typedef struct target_arch {
    const char *name;
    const char *triples; /* how its triples begin: "aarch64- arm64-" */
    const char *triple;  /* of Linux */
    int pointer_bits;
    int elf_machine;        /* e_machine of its ELF files */
    const char *plain_cpu;  /* LLVM's name of the CPU that brings no feature of its own: code has the features
                              of its description alone */
    const target_cpu *cpus; /* the first row is meant where a description names no CPU */
    int n_cpus;
    const char *more_features; /* which -mattr may name, beside those of the CPUs */
    const char *helpers; /* how functions begin that LLVM calls for what has no instruction, beside memcpy and
                            the like; NULL: none */
    void (*derive)(target *machine); /* what follows from the features: widths, registers, flags */
    bool vectors_flush;              /* vectors have no denormals, whatever the mode */
    bool maximum_of_nan; /* LLVM's maximum, which is NaN where an operand is, is one instruction */
    /* LLVM's maximum that gives either of two zeros is a maximum, a test of its first operand and a move */
    bool maximum_of_either_zero;
    target_float_mode mode;
    target_assembly assembly;
} target_arch;

extern const target_arch *const target_archs[];
extern const int target_n_archs;
const target_arch *target_arch_find(const char *name); /* NULL: none */

#define TARGET_ARCH(name, component) extern const target_arch target_arch_##name;
#include "targets/archs.def"

#define TARGET_KIB(n) ((int64_t)(n) * 1024)
#define TARGET_MIB(n) ((int64_t)(n) * 1024 * 1024)

#endif
