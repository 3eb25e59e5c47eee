/* targets/cuda/cuda.h -- inside the room: CUDA C of lowered programs, and device code by NVRTC.
 *
 *     extern const target_codegen cuda_codegen;                    // the row of targets/kinds.def
 *
 * A program becomes a kernel for each of its launches, called SYMBOL_0, SYMBOL_1, ... A kernel takes a buffer
 * as a pointer, a scalar or a symbol as its value, in the order of lower/launches.h. The whole of a module is
 * one text, the prelude and then the kernels, which NVRTC compiles to a cubin for the target's architecture.
 */
#ifndef TARGETS_CUDA_CUDA_H
#define TARGETS_CUDA_CUDA_H

#include "targets/codegen.h"
#include "targets/source/source.h"

extern const target_codegen cuda_codegen;
extern const source_dialect cuda_dialect;
extern const char *const cuda_prelude[]; /* what the text of kernels calls, in pieces; ends with NULL */
extern const char *const cuda_prelude_tensor[]; /* and the instructions of hardware/ */

/* The cubin of a text of CUDA C for an architecture ("sm_80"), in the context's memory. *usage (NULL: not
 * asked for): a line for each kernel with its registers, what the compiler spilled of them, and shared
 * memory. NULL with an error in the context: UNSUPPORTED where there is no NVRTC, or where NVRTC does not
 * know the architecture; INTERNAL with the compiler's log where it refuses the text. */
const void *cuda_compile(tec_context *cx, const char *text, const char *arch, size_t *size,
                         const char **usage);

#endif
