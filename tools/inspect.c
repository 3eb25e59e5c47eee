/* tools/inspect.c -- `tec inspect`: what a module, an ONNX model or a tensor file holds. */
#include <stdio.h>
#include <string.h>

#include "runtime/module.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/inspect_model.h"
#include "tools/report.h"

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static int inspect_tensor(tec_context *cx, const char *path)
{
    const DLTensor *t = tool_read(cx, path);
    char text[256];

    if (!t)
        return tool_fail("inspect", cx);
    printf("%s\n", tec_tensor_text(t, text, sizeof text));
    return TOOL_OK;
}

static void print_functions(const rt_module_desc *m)
{
    char text[256], type[24];

    for (int i = 0; i < m->n_functions; i++) {
        const rt_function_desc *f = &m->functions[i];

        printf("function %s (%s)\n", f->name, f->origin ? f->origin : "-");
        for (int k = 0; k < f->n_params; k++) {
            const rt_param_desc *p = &f->params[k];

            printf("  %s %s: %s[", p->is_output ? "output" : "input ", p->name, base_dtype_print(p->dtype, type, sizeof type));
            for (int d = 0; d < p->rank; d++)
                printf("%s%s", d ? ", " : "", rt_dim_text(p->shape[d], f->symbols, text, sizeof text));
            printf("]\n");
        }
    }
}

static void print_steps(const rt_module_desc *m, const rt_graph_desc *g)
{
    for (int i = 0; i < g->n_steps; i++) {
        const rt_step_desc *s = &g->steps[i];

        printf("  step %d: %s (%s) by %s\n", i, s->name ? s->name : "", s->nodes ? s->nodes : "", s->function < 0 ? "copy" : m->functions[s->function].name);
    }
}

static int inspect_module(const char *path)
{
    tec_error err = {0};
    tec_module *m = tec_module_open(path, NULL, &err);

    if (!m)
        return tool_fail_run("inspect", &err);
    const rt_module_desc *d = rt_module_describe(m);
    printf("module %s\ntarget %s\nproducer %s\n", path, d->target, d->producer ? d->producer : "-");
    for (int i = 0; i < d->n_graphs; i++) {
        tool_print_graph(&d->graphs[i]);
        print_steps(d, &d->graphs[i]);
    }
    print_functions(d);
    printf("%d constants\n", d->n_constants);
    tec_module_free(m);
    return TOOL_OK;
}

int tool_inspect(int argc, char **argv)
{
    inspect_model_options model = {.target = "native"};
    tool_list files = {0};
    const tool_option options[] = {
        {"node", TOOL_TEXT, &model.node, "NAME", "of a model: the kernel that computes this node, as a .te file with its schedule"},
        {"graph", TOOL_TEXT, &model.graph, "read|PASS", "of a model: its graph as it was read, or behind a pass; the last is fuse"},
        {"target", TOOL_TEXT, &model.target, "T", "what kernel and graph are for (native)"},
        {"threads", TOOL_COUNT, &model.threads, "N", "takes N for the cores of the target"},
    };
    const tool_usage usage = {"inspect", "FILE", "Prints what a module, an ONNX model (.onnx) or a tensor (.npy, .pb) holds.", options,
                              BASE_COUNT(options), 1, 1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    tec_context *cx = tec_context_new();
    const char *path = files.at[0];
    if (ends_with(path, ".onnx"))
        status = tool_inspect_model(cx, path, &model);
    else if (ends_with(path, ".npy") || ends_with(path, ".pb"))
        status = inspect_tensor(cx, path);
    else
        status = inspect_module(path);
    tec_context_free(cx);
    return status;
}
