/* tools/data.h -- tensors for programs: files; and what commands share.
 *
 *     DLTensor *x = tool_read(cx, "image.npy", &err);           // .npy, or ONNX .pb
 *     if (!tool_write(cx, "copy.npy", x)) return tool_fail("run", cx);
 */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include "base/base.h"
#include "targets/target.h"
#include "tec/runtime.h"

/* In the context; NULL with an error in it. */
DLTensor *tool_read(tec_context *cx, const char *path);
bool tool_write(tec_context *cx, const char *path, const DLTensor *tensor); /* .npy, or .pb by the name */
/* Writes an output of a module to DIR/NAME.FORMAT, where '/' and ':' of its name become '_'. */
bool tool_write_output(tec_context *cx, const char *dir, const char *format, const char *name,
                       const DLTensor *tensor);
/* zeroed, 64-byte aligned */
DLTensor *tool_new_tensor(tec_context *cx, DLDataType dtype, int ndim, const int64_t *shape);

/* Prints the context's error, prefixed by the command; TOOL_FAILED. */
int tool_fail(const char *command, const tec_context *cx);
int tool_fail_run(const char *command, const tec_error *err);

/* A target with its number of threads; NULL with an error in the context. */
const target *tool_target(tec_context *cx, const char *text, int64_t threads);

/* Where to write what goes to `path`: there, or for "-" to a file that tool_finish_output copies to standard
 * output and removes. */
const char *tool_begin_output(tec_context *cx, const char *path);
bool tool_finish_output(tec_context *cx, const char *path, const char *written);

/* While files are written, an interrupt waits: what was begun is finished or removed, never left in part. */
void tool_hold_interrupts(bool hold);

/* "1.234 ms" and its like, into buffer. */
const char *tool_seconds(double seconds, char *buffer, size_t size);

#endif
