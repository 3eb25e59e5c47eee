/* targets/cuda/cuda.h -- inside the room: CUDA C of lowered programs, and device code by NVRTC.
 *
 *     extern const target_codegen cuda_codegen;                    // the row of targets/kinds.def
 *
 * A program becomes a kernel for each of its launches, called SYMBOL_0, SYMBOL_1, ... A kernel takes a buffer
 * as a pointer, a scalar or a symbol as its value, in the order of lower/launches.h. The whole of a module is
 * one text, the prelude and then the kernels, which NVRTC compiles to a cubin for the target's architecture
 * and to PTX for later ones.
 */
#ifndef TARGETS_CUDA_CUDA_H
#define TARGETS_CUDA_CUDA_H

#include "targets/codegen.h"
#include "targets/source/source.h"

extern const target_codegen cuda_codegen;
extern const source_dialect cuda_dialect;
extern const char *const cuda_prelude[]; /* what the text of kernels calls, in pieces; ends with NULL */
extern const char *const cuda_prelude_tensor[]; /* and the instructions of hardware/ */

/* What NVRTC makes of a text. */
typedef struct {
    const void *cubin;
    size_t cubin_size;
    /* The same for later architectures, as a text with a NUL at its end, which counts in the size. */
    const void *ptx;
    size_t ptx_size;
    /* A line for each kernel with its registers, what the compiler spilled of them, and shared memory. */
    const char *usage;
} cuda_code;

/* Compiles a text of CUDA C for one architecture, in its precision; the results are in the context's memory.
 * False with an error in the context: UNSUPPORTED where there is no NVRTC, or where NVRTC does not know the
 * architecture; INTERNAL with the compiler's log where it refuses the text. */
bool cuda_compile(tec_context *cx, const char *text, const target *machine, cuda_code *out);

#endif
