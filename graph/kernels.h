/* graph/kernels.h -- inside the room: the set of kernels of one compilation: definitions scheduled, equal
 * ones once.
 *
 *     graph_kernels k = {.cx = cx, .target = t, .source = source};
 *     int a = graph_kernel(&k, def, node, "conv1+relu1");      // its index; the same for an equal definition
 *     comp_code *code = graph_compile_kernels(&k, &options);
 *
 * A schedule comes from the source, where there is one and it knows the task; otherwise it is the default. If
 * the source has schedules for ranges of a symbol, the kernel is several functions of the module, of which
 * the runtime chooses (runtime/ranges.h), on the host or on a device.
 */
#ifndef GRAPH_KERNELS_H
#define GRAPH_KERNELS_H

#include "compiler/ranges.h"
#include "graph/graph.h"
#include "graph/place.h"
#include "space/task.h"

typedef struct {
    comp_unit unit;
    const te_def *def;
    const op_impl *impl;      /* of its anchor; may be NULL */
    const graph_node *anchor; /* the operator that decides how it is scheduled; NULL: none */
    const space_task *task;
    const ir_program *plain; /* the definition's own tree, by which equal ones are found */
    uint64_t hash;
    int uses; /* how often it was asked for */
    /* bit i: parameter i is a constant of the graph, at a node that uses the kernel */
    uint64_t constants;
    int64_t
        again; /* bytes of constants that are read until one of these is read again; 0: none is, in a run */
    const char *trace; /* of the source's schedule, or of the default one where tasks are wanted; or NULL */
    const char *node;  /* the first that asked, by the user's name */
    /* why the source's schedule does not fit, so that the default stands in; NULL: it does */
    const char *refused;
    const space_ranges *ranges;     /* NULL: one schedule for all values */
    const ir_program **range_trees; /* of each range; the last one is the unit's */
    const char *undispatched; /* why it has no versions for remainders, though they were asked for; or NULL */
} graph_kernel_entry;

typedef struct {
    tec_context *cx;
    const target *target;
    const space_source *source; /* may be NULL */
    bool placed;                /* nodes have devices: those on device 0 are for the host */
    bool want_tasks;            /* with the traces of the default schedules */
    /* "n%8": versions of the host's products and convolutions with that symbol (compiler/dispatch.h); NULL:
     * of none */
    const char *dispatch;
    /* of a program for a device: which kernels the device can run, and the options to find out by */
    graph_placed *where; /* NULL: all are for the target */
    const comp_options *try_options;
    base_vec entries;       /* graph_kernel_entry * */
    base_map constants;     /* graph_value * that kernels read -> int64_t *: constant_bytes before */
    int64_t constant_bytes; /* that all nodes read */
    int n_bounded;          /* nodes of a program with extents as symbols of their kernel (graph/bounded.h) */
    base_dict names;
} graph_kernels;

/* The kernel of a node, or of a definition of the compiler's own (node NULL). -1 with an error. */
int graph_kernel(graph_kernels *kernels, const te_def *def, const graph_node *node, const char *name);
/* The same for that target: the set's own, or that of the host beside it. */
int graph_kernel_for(graph_kernels *kernels, const target *machine, const te_def *def, const graph_node *node,
                     const char *name);
const graph_kernel_entry *graph_kernel_at(const graph_kernels *kernels, int i);
/* Notes which of the kernel's parameters, which read these values (graph_value *), are constants. Called for
 * each node that uses a kernel, in the order in which they run. */
void graph_kernel_reads(graph_kernels *kernels, int i, const base_vec *reads);
/* A kernel in which one symbol is a number, as a computation of its own. */
typedef struct {
    const te_def *def;
    const ir_program *plain;
    const space_task *task;
    const char *trace; /* of its default schedule */
} graph_fixed_kernel;
/* Of the kernel with symbol `symbol` of its definition at that value. False with an error. */
bool graph_fix_kernel(graph_kernels *kernels, const graph_kernel_entry *entry, int symbol, int64_t value,
                      graph_fixed_kernel *out);
comp_code *graph_compile_kernels(graph_kernels *kernels, const comp_options *options);

#endif
