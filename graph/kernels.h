/* graph/kernels.h -- the set of kernels of one compilation: definitions scheduled, equal ones once.
 *
 *     graph_kernels k = {.cx = cx, .target = t};
 *     int a = graph_kernel(&k, def, impl, "conv1+relu1");      // index of the unit; the same for an equal definition
 *     comp_code *code = graph_compile_kernels(&k, &options);
 */
#ifndef GRAPH_KERNELS_H
#define GRAPH_KERNELS_H

#include "compiler/compiler.h"
#include "ops/op.h"

typedef struct {
    tec_context *cx;
    const target *target;
    base_vec units;    /* comp_unit * */
    base_vec trees;    /* ir_program *: the default trees, by which equal definitions are found */
    base_vec hashes;   /* uint64_t * */
    base_dict names;
} graph_kernels;

int graph_kernel(graph_kernels *k, const te_def *def, const op_impl *anchor, const char *name); /* -1 with an error */
const comp_unit *graph_kernel_unit(const graph_kernels *k, int unit);
comp_code *graph_compile_kernels(graph_kernels *k, const comp_options *o);

#endif
