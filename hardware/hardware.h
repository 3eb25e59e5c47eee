/* hardware/hardware.h -- tensor intrinsics: what an instruction means, how it is written, and which targets
 * have it.
 *
 *     const char *missing;
 *     // NULL: no such name, or `missing` says what t lacks
 *     const te_intrinsic *dot = hw_intrinsic(cx, "x86.vnni16", t, &missing);
 *
 * One row of hardware/intrinsics.def and one file each: a declaration as in a `.te` file (docs/te.md) and the
 * features that it needs.
 * Lifetime: the context's. Errors: none of the user's; a declaration that does not parse is ours.
 */
#ifndef HARDWARE_HARDWARE_H
#define HARDWARE_HARDWARE_H

#include "targets/target.h"
#include "te/intrinsic.h"

typedef struct {
    const char *name;
    const char *text;                 /* `intrinsic NAME(...) { ... }` */
    const char *arch;                 /* NULL: any */
    const char *feature, *or_feature; /* LLVM's, of which it needs one; NULL: none */
    int capability;                   /* of an NVIDIA GPU, 80: sm_80 and later; 0: an intrinsic of CPUs */
    bool own;         /* of this capability alone, with the instructions that are its own: sm_90a */
    const char *what; /* one line for lists */
} hw_row;

#define HW_INTRINSIC(row) extern const hw_row hw_##row;
#include "hardware/intrinsics.def"

/* NULL with *missing where the target (NULL: any) lacks what it needs, and NULL alone where there is none of
 * that name. */
const te_intrinsic *hw_intrinsic(tec_context *cx, const char *name, const target *machine,
                                 const char **missing);
/* Whether the program has a product of f32 whose factors tensor cores round to tf32. */
bool hw_rounds_to_tf32(const ir_program *program);
/* "x86.vnni16, ...": those of GPUs for an NVIDIA GPU, else those of CPUs. */
const char *hw_names(tec_context *cx, const target *machine);

#endif
