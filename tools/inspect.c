/* tools/inspect.c -- `tec inspect`: what a module, an ONNX model or a tensor file holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/module.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/inspect_model.h"
#include "tools/limits.h"
#include "tools/report.h"

/* Type and shape, not the elements. */
static int inspect_tensor(tec_context *cx, const char *path)
{
    const DLTensor *t = tool_read(cx, path);
    char text[256];

    if (!t)
        return tool_fail("inspect", cx);
    printf("%s\n", tec_tensor_text(t, text, sizeof text));
    return TOOL_OK;
}

/* Each function with its parameters and their shapes over its symbols. */
static void print_functions(const rt_module_desc *module)
{
    char text[256], type[24];

    for (int i = 0; i < module->n_functions; i++) {
        const rt_function_desc *function = &module->functions[i];

        printf("function %s (%s)%s%s\n", function->name, function->origin ? function->origin : "-",
               function->summary ? ": " : "", function->summary ? function->summary : "");
        for (int k = 0; k < function->n_params; k++) {
            const rt_param_desc *param = &function->params[k];

            printf("  %s %s: %s[", param->is_output ? "output" : "input ", param->name,
                   base_dtype_print(param->dtype, type, sizeof type));
            for (int d = 0; d < param->rank; d++)
                printf("%s%s", d ? ", " : "",
                       rt_dim_text(param->shape[d], function->symbols, text, sizeof text));
            printf("]\n");
        }
        for (int k = 0; k < function->n_ranges; k++)
            printf("  %s <= %" PRId64 ": function %s\n", function->symbols[function->chooser],
                   function->ranges[k].to, module->functions[function->ranges[k].function].name);
    }
}

/* "copy", "relu", "relu on opencl", "copy from opencl to the host" */
static const char *step_text(tec_context *cx, const rt_module_desc *module, const rt_graph_desc *graph,
                             const rt_step_desc *step)
{
    int from, to;

    if (step->function >= 0) {
        const rt_function_desc *function = &module->functions[step->function];

        return function->device ? base_format(cx, "%s on %s", function->name, function->device)
                                : function->name;
    }
    from = graph->values[step->values[0]].site;
    to = graph->values[step->values[1]].site;
    if (from == to)
        return "copy";
    return base_format(cx, "copy from %s to %s", from ? graph->sites[from - 1].device : "the host",
                       to ? graph->sites[to - 1].device : "the host");
}

/* Only of devices; the host's is among the steps' values. */
static void print_pools(const rt_graph_desc *graph)
{
    char text[256];

    for (int i = 0; i < graph->n_sites; i++)
        printf("  on %s: %s bytes for intermediate values\n", graph->sites[i].device,
               rt_dim_text(graph->sites[i].pool_size, NULL, text, sizeof text));
}

static void print_steps(tec_context *cx, const rt_module_desc *module, const rt_graph_desc *graph)
{
    for (int i = 0; i < graph->n_steps; i++) {
        const rt_step_desc *s = &graph->steps[i];

        const char *summary = s->function >= 0 ? module->functions[s->function].summary : NULL;

        printf("  step %d: %s (%s) by %s\n", i,
               summary   ? summary
               : s->name ? s->name
                         : "",
               s->nodes ? s->nodes : "", step_text(cx, module, graph, s));
    }
}

/* A line of the program's text, or a node of the model. */
static void print_place(const rt_program_desc *program, int32_t line)
{
    if (line < 0)
        printf("  %s\n", program->texts[-1 - line]);
    else
        printf("  line %d\n", (int)line);
}

/* Each function with its registers' number and its instructions, by the word where they begin. */
static void print_bytecode(const rt_program_desc *program)
{
    char text[1024];

    for (int i = 0; i < program->n_functions; i++) {
        const rt_routine_desc *f = &program->functions[i];
        int32_t line = 0;

        printf("function @%s: %d parameters, %d registers\n", f->name, f->n_params, f->n_registers);
        for (int32_t at = 0; at < f->n_words; at += rt_instruction_words(f->words, at, f->n_words)) {
            if (rt_line_of(f, at) != line)
                print_place(program, line = rt_line_of(f, at));
            printf("  %5d  %s\n", (int)at, rt_instruction_text(program, f, at, text, sizeof text));
        }
    }
}

/* "device code for cuda -arch=sm_80: 3 kernels, 9120 bytes of machine code" */
static void print_codes(const rt_module_desc *module)
{
    static const char *const format[] = {[RT_CODE_OPENCL_C] = "OpenCL C",
                                         [RT_CODE_CUBIN] = "machine code",
                                         [RT_CODE_PTX] = "PTX, for later devices"};

    for (int i = 0; i < module->n_codes; i++) {
        const rt_code_desc *code = &module->codes[i];

        printf("device code for %s: %d %s, %" PRIu64 " bytes of %s\n", code->target, (int)code->n_kernels,
               code->n_kernels == 1 ? "kernel" : "kernels", code->size, format[code->format]);
    }
}

/* Opens the module as running it would, so a damaged one is refused. */
static int inspect_module(tec_context *cx, const char *path, bool bytecode)
{
    tec_error err = {0};
    tec_module *module = tec_module_open(path, NULL, &err);

    if (!module)
        return tool_fail_run("inspect", &err);
    const rt_module_desc *desc = rt_module_describe(module);
    printf("module %s\ntarget %s\nproducer %s\n", path, desc->target, desc->producer ? desc->producer : "-");
    for (int i = 0; i < desc->n_graphs; i++) {
        tool_print_graph(&desc->graphs[i]);
        print_pools(&desc->graphs[i]);
        print_steps(cx, desc, &desc->graphs[i]);
    }
    print_functions(desc);
    print_codes(desc);
    if (bytecode)
        print_bytecode(&desc->program);
    else
        for (int i = 0; i < desc->program.n_functions; i++)
            printf("program function %s: %d words of bytecode\n", desc->program.functions[i].name,
                   desc->program.functions[i].n_words);
    printf("%d constants\n", desc->n_constants);
    tec_module_free(module);
    return TOOL_OK;
}

/* The command: decides by the ending of the file what it is. */
int tool_inspect(int argc, char **argv)
{
    inspect_model_options model = {.target = "native"};
    bool bytecode = false;
    tool_list files = {0}, given_dims = {0}, limits = {0};
    const tool_option options[] = {
        {"bytecode", TOOL_FLAG, &bytecode, NULL, "for a module: prints the bytecode of its program"},
        {"node", TOOL_TEXT, &model.node, "NAME",
         "for a model: prints the kernel that computes this node, as a .te file with its schedule"},
        {"graph", TOOL_TEXT, &model.graph, "read|PASS",
         "for a model: prints its graph as it was read, or after a pass (the last pass is fuse)"},
        {"target", TOOL_TARGET, &model.target, "T",
         "the target of the kernel or graph (default: native, this machine)"},
        {"threads", TOOL_COUNT, &model.threads, "N", "assumes a target with N cores"},
        {"records", TOOL_TEXT, &model.records, "DB",
         "with --node: takes the schedule from this record store, if the store has one for the kernel"},
        {"dim", TOOL_LIST, &given_dims, "NAME=N",
         "for a model: gives symbolic dimension NAME the extent N; may be repeated"},
        {"limit", TOOL_LIST, &limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
    };
    const tool_usage usage = {
        "inspect",
        "FILE",
        "Prints the contents of a module, an ONNX model (.onnx) or a tensor (.npy, .pb).",
        options,
        BASE_COUNT(options),
        1,
        1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    if (model.records && !model.node)
        return tool_misuse("inspect", "--records is for --node");
    if (!tool_read_dims("inspect", &given_dims, &model.dims))
        return TOOL_USAGE;
    if (model.dims.n && !model.node && !model.graph)
        return tool_misuse("inspect", "--dim is for --node and --graph");
    tec_context *cx = tool_context();
    const char *path = files.at[0];
    if (!tool_set_limits("inspect", cx, &limits))
        status = TOOL_USAGE;
    else if (base_ends_with(path, ".onnx"))
        status = tool_inspect_model(cx, path, &model);
    else if (base_ends_with(path, ".npy") || base_ends_with(path, ".pb"))
        status = inspect_tensor(cx, path);
    else
        status = inspect_module(cx, path, bytecode);
    tec_context_free(cx);
    return status;
}
