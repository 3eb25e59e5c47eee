/* runtime/executor.h -- inside the room: the executor, shared by executor.c (life, inputs, running),
 * plan.c (what depends on shapes) and observe.c (profile, kept values, NaNs).
 *
 * Invariant: `shapes_ready` says that everything derived from the inputs' shapes is up to date,
 * `addresses_ready` the same of all that is derived from addresses; running needs both, and changing an input
 * or a binding clears what it must.
 */
#ifndef RUNTIME_EXECUTOR_H
#define RUNTIME_EXECUTOR_H

#include "runtime/alloc.h"
#include "runtime/capture.h"
#include "runtime/env.h"
#include "runtime/host.h"
#include "runtime/launch.h"
#include "runtime/limits.h"
#include "runtime/module.h"
#include "runtime/profile.h"
#include "runtime/site.h"

/* An input or an output: where its bytes are. */
typedef struct {
    int64_t shape[RT_MAX_RANK];
    DLTensor tensor;    /* over `shape`; data as below */
    rt_host_memory own; /* grows */
    void *bound;        /* the user's bytes */
    bool is_bound;
    bool is_set; /* an input has a shape; an output that is bound has the user's in bound_shape */
    int64_t bound_shape[RT_MAX_RANK];
    int64_t alignment; /* that the steps which use it ask */
} rt_port;

typedef struct {
    int64_t offset, bytes;
    void *address;   /* in main memory */
    rt_place place;  /* at a site */
    DLTensor tensor; /* for the observers */
    int64_t shape[RT_MAX_RANK];
} rt_value;

typedef struct {
    int32_t function;    /* of the module, for the shapes of now (runtime/ranges.h), or RT_STEP_COPY */
    tec_kernel_fn *code; /* NULL: a copy, or a function of a device */
    void **args;
    int64_t *dims;
    int64_t *turn;           /* calls of the function so far, in all steps */
    rt_site *site;           /* of a function of a device; else NULL */
    rt_launcher *launchers;  /* [n_launchers]: of the function's ranges, then its own */
    int32_t n_launchers;     /* that were opened */
    rt_launcher *launcher;   /* for the shapes of now */
    rt_launch_param *params; /* for the launchers */
} rt_step;

/* A copy of what a step wrote. */
typedef struct {
    int32_t step, param;
    DLTensor tensor; /* of the step's value, with data of its own */
    void *own;
    int64_t own_size;
} rt_kept_value;

struct tec_executor {
    tec_module *module;
    const rt_module_desc *desc;
    const rt_graph_desc *graph;
    rt_env env;
    rt_arena arena; /* all arrays whose length is known from the graph */
    rt_port *inputs, *outputs;
    int64_t *symbols;
    rt_value *values;
    rt_step *steps;
    rt_host_memory pool;
    int64_t pool_size;
    bool shapes_ready, addresses_ready;
    bool running;   /* a run was begun and not waited for */
    rt_site *sites; /* [graph->n_sites] */
    rt_capture *captures;
    int32_t n_captures;
    bool check_nan;
    rt_limits limits;
    rt_step_profile *profile; /* [n_steps], with counts of one call; NULL: off */
    rt_kept_value *kept;      /* [n_kept]; NULL: off */
    int32_t n_kept;
    void *fetched; /* room for a value of a device in main memory, where NaNs are looked for */
};

/* "step 3 'Conv+Relu' (conv1, relu1)", cut to size; gives buffer. */
const char *rt_step_text(const tec_executor *ex, int32_t step, char *buffer, size_t size);

/* executor.c: puts a step of a device into its stream; runs one of the host. */
bool rt_run_step(tec_executor *ex, int32_t index, tec_error *err);

/* plan.c: brings what depends on shapes and on addresses up to date. */
bool rt_plan_shapes(tec_executor *ex, tec_error *err);
bool rt_plan_addresses(tec_executor *ex, tec_error *err);
bool rt_port_reserve(rt_port *port, int64_t bytes, tec_error *err);

/* observe.c */
bool rt_observe_open(tec_executor *ex, const tec_run_options *options, tec_error *err);
void rt_observe_close(tec_executor *ex);
bool rt_observe_plan(tec_executor *ex, tec_error *err); /* after shapes changed */
bool rt_observe_keep(tec_executor *ex, int32_t step, tec_error *err);
/* false with an error where one was written */
bool rt_observe_nan(const tec_executor *ex, int32_t step, tec_error *err);

#endif
