/* tools/inspect_model.h -- `tec inspect MODEL.onnx`.
 *
 *     return tool_inspect_model(cx, "net.onnx", &(inspect_model_options){.target = "native",
 *         .node = "conv1"});
 */
#ifndef TOOLS_INSPECT_MODEL_H
#define TOOLS_INSPECT_MODEL_H

#include "tools/dims.h"

typedef struct {
    const char *target;
    int64_t threads;
    const char *node; /* the kernel that computes this node, as a .te file with its schedule */
    /* the graph as it was "read", or behind a pass by its name, or behind the last, "fuse" */
    const char *graph;
    const char *records; /* where the kernel's schedule comes from if the store has one; NULL: the default */
    tool_dims dims;
    /* Neither: a summary of operators. */
} inspect_model_options;

int tool_inspect_model(tec_context *cx, const char *path, inspect_model_options *options);

#endif
