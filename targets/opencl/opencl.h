/* targets/opencl/opencl.h -- inside the room: OpenCL C of lowered programs.
 *
 *     extern const target_codegen opencl_codegen;                  // the row of targets/kinds.def
 *
 * A program becomes a kernel for each of its launches, called SYMBOL_0, SYMBOL_1, ... A kernel takes a
 * buffer as a pointer to its memory and a `long` offset in bytes, a scalar or a symbol as its value, in the
 * order of lower/launches.h. The whole of a module is one text: the prelude, then the kernels.
 */
#ifndef TARGETS_OPENCL_OPENCL_H
#define TARGETS_OPENCL_OPENCL_H

#include "targets/codegen.h"
#include "targets/source/source.h"

extern const target_codegen opencl_codegen;
extern const source_dialect opencl_dialect, opencl_dialect_without_f64;
extern const char *const opencl_prelude[]; /* what the text of kernels calls, in pieces; ends with NULL */

#endif
