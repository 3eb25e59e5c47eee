/* tools/inspect_model.c -- inside an ONNX model: its operators, its graph before and after passes, one kernel
 * as a `.te` file. */
#include "tools/inspect_model.h"

#include <stdio.h>
#include <string.h>

#include "autotune/source.h"
#include "graph/build.h"
#include "graph/emit.h"
#include "graph/onnx/onnx.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "te/text.h"
#include "tools/command.h"
#include "tools/data.h"

static const graph_body *main_body(const graph_module *module)
{
    return ((const graph_function *)module->functions.at[0])->body;
}

/* ---- kernels ---- */

/* A group computes several nodes. */
static bool contains(const graph_node *node, const char *name)
{
    for (int k = 0; node->kind == GRAPH_GROUP && k < node->body[0]->nodes.n; k++)
        if (contains(node->body[0]->nodes.at[k], name))
            return true;
    return base_same(node->name, name);
}

/* The list of kernels in the message spares a second call. */
static const graph_node *find_node(tec_context *cx, const graph_module *module, const char *name)
{
    const graph_body *body = main_body(module);

    for (int i = 0; i < body->nodes.n; i++)
        if (contains(body->nodes.at[i], name))
            return body->nodes.at[i];
    base_fail(cx, TEC_INVALID, (base_loc){0}, "no kernel computes a node '%s'; the kernels are:", name);
    for (int i = 0; i < body->nodes.n; i++)
        base_note(cx, (base_loc){0}, "%s", ((const graph_node *)body->nodes.at[i])->name);
    return NULL;
}

static void add_indented(tec_context *cx, base_text *text, const char *lines)
{
    while (*lines) {
        int n = (int)strcspn(lines, "\n");

        base_addf(cx, text, "  %.*s\n", n, lines);
        lines += n + (lines[n] == '\n');
    }
}

/* The kernel of a node as a .te file that `tec te` builds. The comment tells for which target the schedule
 * was made, as on another it may be refused, and where the schedule comes from. */
static const char *kernel_text(tec_context *cx, const graph_module *module, const graph_node *node,
                               const target *machine, const space_source *source)
{
    te_def *def = graph_definition(module, node, machine);
    graph_kernels kernels = {.cx = cx, .target = machine, .source = source, .want_tasks = true};
    int number = def ? graph_kernel(&kernels, def, node, def->name) : -1;
    base_text out = {0};

    if (number < 0)
        return NULL;
    const graph_kernel_entry *entry = graph_kernel_at(&kernels, number);
    base_addf(cx, &out, "# %s\n# implementation %s, for %s\n", node->name,
              node->impl ? node->impl->name : "generic", target_text(cx, machine));
    if (source)
        base_addf(cx, &out, "# schedule: %s\n", entry->unit.origin);
    base_addf(cx, &out, "%s\nschedule %s {\n", te_text(cx, def), def->name);
    add_indented(cx, &out, entry->trace);
    base_add(cx, &out, "}\n");
    return base_text_str(cx, &out);
}

/* ---- graphs ---- */

/* The number of passes up to the last one of that name; -1: there is none. */
static int passes_until(tec_context *cx, const char *name)
{
    int n = base_same(name, "read") ? 0 : -1;

    for (int i = 0; i < graph_n_passes; i++)
        if (base_same(graph_passes[i].name, name))
            n = i + 1;
    if (n < 0) {
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no graph pass '%s'; expected one of:", name);
        base_note(cx, (base_loc){0}, "read: the graph of the file");
        for (int i = 0; i < graph_n_passes; i++)
            base_note(cx, (base_loc){0}, "%s: %s", graph_passes[i].name, graph_passes[i].what);
    }
    return n;
}

/* All passes for a kernel, as those decide what is fused. */
static const char *model_text(tec_context *cx, const char *path, inspect_model_options *options,
                              const space_source *source)
{
    const onnx_options import = tool_import_options(cx, &options->dims);
    const target *t = tool_target(cx, options->target, options->threads);
    int n = options->node ? graph_n_passes : passes_until(cx, options->graph);
    graph_module *module = t && n >= 0 ? onnx_import(cx, path, &import) : NULL;

    for (int i = 0; module && i < n; i++)
        module = graph_passes[i].run(module, t);
    if (!module || !options->node)
        return module ? graph_text(cx, module, 0) : NULL;
    const graph_node *node = find_node(cx, module, options->node);
    return node ? kernel_text(cx, module, node, t, source) : NULL;
}

/* The store is open while the kernel is made, since its schedule is asked for then. */
int tool_inspect_model(tec_context *cx, const char *path, inspect_model_options *options)
{
    const char *text = NULL;
    store *db = options->records ? store_open(cx, options->records,
                                              &(store_options){.read_only = true, .must_exist = true})
                                 : NULL;

    if (db || !options->records)
        text = options->node || options->graph
                   ? model_text(cx, path, options, db ? tune_source(cx, db) : NULL)
                   : onnx_summary(cx, path);
    if (text)
        fputs(text, stdout);
    store_close(db);
    return text ? TOOL_OK : tool_fail_dims("inspect", cx, &options->dims);
}
