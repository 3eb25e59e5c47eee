/* tools/inspect_model.c -- inside an ONNX model: its operators, its graph before and after passes, one kernel
 * as a `.te` file. */
#include "tools/inspect_model.h"

#include <stdio.h>
#include <string.h>

#include "graph/emit.h"
#include "graph/onnx/onnx.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "space/space.h"
#include "te/text.h"
#include "tools/command.h"
#include "tools/data.h"

static const graph_body *main_body(const graph_module *m)
{
    return ((const graph_function *)m->functions.at[0])->body;
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
static const graph_node *find_node(tec_context *cx, const graph_module *m, const char *name)
{
    const graph_body *body = main_body(m);

    for (int i = 0; i < body->nodes.n; i++)
        if (contains(body->nodes.at[i], name))
            return body->nodes.at[i];
    base_fail(cx, TEC_INVALID, (base_loc){0}, "no kernel computes a node '%s'; the kernels are:", name);
    for (int i = 0; i < body->nodes.n; i++)
        base_note(cx, (base_loc){0}, "%s", ((const graph_node *)body->nodes.at[i])->name);
    return NULL;
}

static void add_indented(tec_context *cx, base_text *t, const char *lines)
{
    while (*lines) {
        int n = (int)strcspn(lines, "\n");

        base_addf(cx, t, "  %.*s\n", n, lines);
        lines += n + (lines[n] == '\n');
    }
}

/* The kernel of a node as a .te file that `tec te` builds. The comment tells for which target the schedule
 * was made: on another it may be refused. */
static const char *kernel_text(tec_context *cx, const graph_module *m, const graph_node *node,
                               const target *t)
{
    te_def *d = graph_definition(m, node, t);
    const ir_program *tree = d ? te_tree(cx, d) : NULL;
    const sched *s = tree ? space_default(cx, tree, t) : NULL;
    base_text out = {0};

    if (!s)
        return NULL;
    if (sched_failed(s))
        return base_fail(cx, TEC_INTERNAL, node->loc, "the default schedule of '%s' was refused: %s",
                         node->name, sched_error(s));
    base_addf(cx, &out, "# %s\n# implementation %s, for %s\n", node->name,
              node->impl ? node->impl->name : "generic", target_text(cx, t));
    base_addf(cx, &out, "%s\nschedule %s {\n", te_text(cx, d), d->name);
    add_indented(cx, &out, sched_trace_text(cx, s));
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
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no graph pass '%s'; what can be seen is:", name);
        base_note(cx, (base_loc){0}, "read: the graph of the file");
        for (int i = 0; i < graph_n_passes; i++)
            base_note(cx, (base_loc){0}, "%s: %s", graph_passes[i].name, graph_passes[i].what);
    }
    return n;
}

/* All passes for a kernel, as those decide what is fused. */
static const char *model_text(tec_context *cx, const char *path, const inspect_model_options *o)
{
    const target *t = tool_target(cx, o->target, o->threads);
    int n = o->node ? graph_n_passes : passes_until(cx, o->graph);
    graph_module *m = t && n >= 0 ? onnx_import(cx, path, &(onnx_options){0}) : NULL;

    for (int i = 0; m && i < n; i++)
        m = graph_passes[i].run(m, t);
    if (!m || !o->node)
        return m ? graph_text(cx, m, 0) : NULL;
    const graph_node *node = find_node(cx, m, o->node);
    return node ? kernel_text(cx, m, node, t) : NULL;
}

int tool_inspect_model(tec_context *cx, const char *path, const inspect_model_options *o)
{
    const char *text = o->node || o->graph ? model_text(cx, path, o) : onnx_summary(cx, path);

    if (!text)
        return tool_fail("inspect", cx);
    fputs(text, stdout);
    return TOOL_OK;
}
