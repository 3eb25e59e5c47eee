/* tools/compile.c -- `tec compile`: an ONNX model to a module file. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/build.h"
#include "graph/onnx/onnx.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/report.h"

typedef struct {
    const char *output, *target, *weights, *dump;
    int64_t threads;
    tool_list dims;
    bool json, quiet, strict;
} settings;

static bool read_dims(tec_context *cx, const tool_list *list, onnx_options *o)
{
    onnx_dim *dims = base_array(cx, onnx_dim, list->n);

    for (int i = 0; i < list->n; i++) {
        const char *value;

        if (!tool_pair(list->at[i], &dims[i].name, &value))
            return false;
        if (!tool_number(value, &dims[i].value) || dims[i].value < 0) {
            fprintf(stderr, "tec compile: '%s' is no extent\n", value);
            return false;
        }
    }
    o->dims = dims;
    o->n_dims = list->n;
    return true;
}

/* model.onnx -> model.tec */
static const char *default_output(tec_context *cx, const char *model)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model, *dot = strrchr(name, '.');

    return base_format(cx, "%.*s.tec", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

static int compile(tec_context *cx, const char *model, const settings *s)
{
    onnx_options import = {0};
    const target *t = tool_target(cx, s->target, s->threads);
    double start = tec_clock();
    const char *path = s->output ? s->output : default_output(cx, model);
    unsigned flags = !s->weights ? 0 : strcmp(s->weights, "inside") == 0 ? RT_WEIGHTS_INSIDE : RT_WEIGHTS_BESIDE;

    if (!t || !read_dims(cx, &s->dims, &import))
        return t ? TOOL_USAGE : tool_fail("compile", cx);
    if (s->dump)
        mkdir(s->dump, 0777); /* what is wrong with it, writing into it will tell */
    graph_module *m = onnx_import(cx, model, &import);
    graph_build_options o = {.target = t, .dump_dir = s->dump, .strict = s->strict};
    if (m && !s->quiet)
        fprintf(stderr, "%s: %d operators, for %s\n", model, ((graph_function *)m->functions.at[0])->body->nodes.n, target_text(cx, t));
    graph_built *b = m ? graph_build(m, &o) : NULL;
    tool_hold_interrupts(true);
    bool written = b && graph_write(b, path, flags);
    tool_hold_interrupts(false);
    if (!written)
        return tool_fail("compile", cx);
    tool_report_module(cx, &b->desc, path, tec_clock() - start, s->json, s->quiet);
    return TOOL_OK;
}

int tool_compile(int argc, char **argv)
{
    settings s = {.target = "native"};
    tool_list files = {0};
    const tool_option options[] = {
        {"o", TOOL_TEXT, &s.output, "OUT", "the module to write (the model's name with .tec)"},
        {"target", TOOL_TEXT, &s.target, "T", "what to compile for: native, \"llvm -mcpu=x86-64-v3\", ... (native)"},
        {"dim", TOOL_LIST, &s.dims, "NAME=N", "fixes a symbolic dimension; may be repeated"},
        {"threads", TOOL_INT, &s.threads, "N", "threads to schedule for (the cores of the target)"},
        {"weights", TOOL_TEXT, &s.weights, "inside|beside", "where weights go (inside, from 2 GB on beside as .safetensors)"},
        {"dump-ir", TOOL_TEXT, &s.dump, "DIR", "writes the loop AST after every pass that changed it"},
        {"strict", TOOL_FLAG, &s.strict, NULL, "no fused multiply-add, no re-association, denormals kept"},
        {"json", TOOL_FLAG, &s.json, NULL, "the summary as JSON"},
        {"quiet", TOOL_FLAG, &s.quiet, NULL, "no progress, no summary"},
    };
    const tool_usage usage = {"compile", "MODEL.onnx",
                              "Compiles an ONNX model into one module file. A symbolic dimension stays symbolic unless --dim fixes it.",
                              options, BASE_COUNT(options), 1, 1};
    int status = tool_parse(&usage, argc, argv, &files);

    if (status != TOOL_GO_ON)
        return status;
    if (s.weights && strcmp(s.weights, "inside") != 0 && strcmp(s.weights, "beside") != 0) {
        fprintf(stderr, "tec compile: --weights is inside or beside, found '%s'\n", s.weights);
        return TOOL_USAGE;
    }
    tec_context *cx = tec_context_new();
    status = compile(cx, files.at[0], &s);
    tec_context_free(cx);
    return status;
}
