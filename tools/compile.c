/* tools/compile.c -- `tec compile`: an ONNX model or a program to a module file. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "autotune/source.h"
#include "compiler/dispatch.h"
#include "graph/build.h"
#include "hardware/hardware.h"
#include "lang/lang.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/dims.h"
#include "tools/limits.h"
#include "tools/report.h"

typedef struct {
    const char *output, *params, *target, *precision, *weights, *dump, *dump_graph, *records, *place,
        *executor, *dispatch;
    int64_t threads;
    tool_list given_dims, limits;
    tool_dims dims;
    bool json, quiet, strict;
} settings;

/* model.onnx -> model.tec In the current folder, not beside the model. */
static const char *default_output(tec_context *cx, const char *model)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model, *dot = strrchr(name, '.');

    return base_format(cx, "%.*s.tec", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

/* Multiply-adds and the like of all uses of a kernel, symbols counting as one. 0 where the number depends on
 * symbols. */
static double work_of(tec_context *cx, const graph_kernel_entry *entry)
{
    int64_t flops;

    return ir_is_int(comp_flops(cx, entry->plain), &flops) ? (double)flops * entry->uses : 0;
}

/* Which kernels have no record, and their share of the work, which is what that may cost; then what records
 * there are. Five names at most; the share says more than their number. */
static void report_records(tec_context *cx, const graph_kernels *kernels, const char *db,
                           const space_source *source, const target *machine)
{
    double all = 0, without = 0;
    base_text names = {0};
    int n = 0;

    for (int i = 0; i < kernels->entries.n; i++) {
        const graph_kernel_entry *entry = graph_kernel_at(kernels, i);
        bool by_default = base_same(entry->unit.origin, "default");

        all += work_of(cx, entry);
        without += by_default ? work_of(cx, entry) : 0;
        if (by_default && n++ < 5)
            base_addf(cx, &names, "%s%s", n > 1 ? ", " : ": ", entry->node);
        if (entry->refused)
            fprintf(stderr, "%s: the record for '%s' does not apply: %s\n", db, entry->node, entry->refused);
    }
    fprintf(stderr, "%s: %d of %d kernels have no record%s%s", db, n, kernels->entries.n,
            base_text_str(cx, &names), n > 5 ? ", ..." : "");
    if (n && all > 0)
        fprintf(stderr,
                "; they do %.0f %% of the arithmetic, with default schedules (tec tune makes records)",
                100 * without / all);
    fprintf(stderr, "\n");
    if (n)
        fprintf(stderr, "%s: %s\n", db, tune_records_text(cx, source->data, machine));
}

/* params: a .safetensors file; NULL: the program has no parameters. */
static graph_module *read_program(tec_context *cx, const char *path, const char *params)
{
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    const lang_params *values = params ? lang_params_read(cx, params) : NULL;

    return text && !base_failed(cx) ? lang_parse(cx, path, text, values) : NULL;
}

/* What the target's device cannot run, and why. */
static void report_hosted(const graph_built *built)
{
    for (int i = 0; i < built->hosted.n; i++) {
        const graph_hosted *h = built->hosted.at[i];

        fprintf(stderr, "'%s' runs on the host: %s\n", h->node->name, h->why);
    }
}

/* Which kernels have versions for remainders, and why others have none. */
static void report_versions(const graph_kernels *kernels)
{
    for (int i = 0; i < kernels->entries.n; i++) {
        const graph_kernel_entry *entry = graph_kernel_at(kernels, i);

        if (entry->unit.dispatch)
            fprintf(stderr, "'%s' has %d versions\n", entry->node, entry->unit.dispatch->n);
        else if (entry->undispatched)
            fprintf(stderr, "'%s' has no versions: %s\n", entry->node, entry->undispatched);
    }
}

static graph_place_rule place_rule(const char *given)
{
    return given && strcmp(given, "unified") == 0  ? GRAPH_UNIFIED
           : given && strcmp(given, "device") == 0 ? GRAPH_ON_DEVICE
                                                   : GRAPH_FEWEST_COPIES;
}

static void report_tf32(const char *model, const graph_kernels *kernels)
{
    int n = 0;

    for (int i = 0; i < kernels->entries.n; i++)
        n += hw_rounds_to_tf32(((const graph_kernel_entry *)kernels->entries.at[i])->unit.tree);
    tool_report_tf32(model, n, kernels->entries.n);
}

/* Signals are held while the module is written: an interrupt leaves either the old file or the new one.
 * Nothing is written before everything has been compiled. */
static int compile_with(tec_context *cx, const char *model, settings *given, const space_source *source)
{
    onnx_options import = tool_import_options(cx, &given->dims);
    const target *t = tool_target(cx, given->target, given->threads);
    double start = tec_clock();
    const char *path = given->output ? given->output : default_output(cx, model);
    unsigned flags = !given->weights                         ? 0
                     : strcmp(given->weights, "inside") == 0 ? RT_WEIGHTS_INSIDE
                                                             : RT_WEIGHTS_BESIDE;

    if (!t)
        return tool_fail("compile", cx);
    if (given->dump)
        mkdir(given->dump, 0777); /* what is wrong with it, writing into it will tell */
    graph_module *module = base_ends_with(model, ".tecp") ? read_program(cx, model, given->params)
                                                          : onnx_import(cx, model, &import);
    graph_build_options o = {.target = t,
                             .source = source,
                             .dispatch = given->dispatch,
                             .dump_dir = given->dump,
                             .dump_graph = given->dump_graph,
                             .strict = given->strict,
                             .place_strict = given->place && strcmp(given->place, "strict") == 0,
                             .place_rule = place_rule(given->place)};
    if (module && given->executor)
        module->for_vm = strcmp(given->executor, "vm") == 0;
    if (module && !given->quiet)
        fprintf(stderr, "%s: %d operators, for %s\n", model,
                ((graph_function *)module->functions.at[0])->body->nodes.n, target_text(cx, t));
    graph_built *built = module ? graph_build(module, &o) : NULL;
    tool_hold_interrupts(true);
    const char *file = built ? tool_begin_output(cx, path) : NULL;
    bool written = file && graph_write(built, file, flags) && tool_finish_output(cx, path, file);
    tool_hold_interrupts(false);
    if (!written)
        return tool_fail_dims("compile", cx, &given->dims);
    if (!given->quiet)
        report_hosted(built);
    if (t->precision == TARGET_TF32 && !given->quiet)
        report_tf32(model, built->kernels);
    if (given->dispatch && !given->quiet)
        report_versions(built->kernels);
    if (source && !given->quiet)
        report_records(cx, built->kernels, given->records, source, t);
    tool_report_module(cx, &built->desc, path, tec_clock() - start, given->json, given->quiet);
    return TOOL_OK;
}

/* The store is open while kernels are made, since schedules are asked for one by one. */
static int compile(tec_context *cx, const char *model, settings *given)
{
    if (!given->records)
        return compile_with(cx, model, given, NULL);
    store *db = store_open(cx, given->records, &(store_options){.read_only = true, .must_exist = true});
    int status = db ? compile_with(cx, model, given, tune_source(cx, db)) : tool_fail("compile", cx);

    store_close(db);
    return status;
}

/* Reads the command line into *to and *files. */
static int read_options(int argc, char **argv, settings *to, tool_list *files)
{
    const tool_option options[] = {
        {"o", TOOL_TEXT, &to->output, "OUT",
         "the module to write; - is standard output (default: the model's name with .tec)"},
        {"target", TOOL_TARGET, &to->target, "T",
         "the target, such as \"llvm -mcpu=x86-64-v3\" (default: native, this machine)"},
        {"dim", TOOL_LIST, &to->given_dims, "NAME=N",
         "gives symbolic dimension NAME the extent N; may be repeated"},
        {"threads", TOOL_COUNT, &to->threads, "N",
         "uses records that were measured with N threads (default: the cores of the target)"},
        {"params", TOOL_TEXT, &to->params, "FILE",
         "a program's parameters, from a .safetensors file, by name"},
        {"records", TOOL_TEXT, &to->records, "DB",
         "takes schedules from this record store; a kernel without a record gets the default schedule"},
        {"dispatch", TOOL_TEXT, &to->dispatch, "N%T[=R,...]",
         "compiles versions of products and convolutions for the remainders of symbolic dimension N by T"},
        {"place", TOOL_CHOICE, &to->place, "auto|unified|device|strict",
         "where operators run that the target's device can run: device: there; auto: there, but small ones "
         "of "
         "a program where that makes the fewest copies; unified: those on the host that conditions depend "
         "on; "
         "strict: there, and what cannot is an error (default: auto)"},
        {"executor", TOOL_CHOICE, &to->executor, "auto|vm",
         "what runs a model without control flow: auto takes the static executor, vm makes bytecode (auto)"},
        {"weights", TOOL_CHOICE, &to->weights, "inside|beside",
         "writes weights into the module or into a .safetensors file beside it (default: inside, from 2 GB "
         "on beside)"},
        {"dump-ir", TOOL_TEXT, &to->dump, "DIR",
         "writes the loop program after each pass that changed it into this directory"},
        {"dump-graph", TOOL_TEXT, &to->dump_graph, "DIR",
         "writes the graph after each pass that changed it, and its planned form, into this directory"},
        {"limit", TOOL_LIST, &to->limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
        {"precision", TOOL_CHOICE, &to->precision, TOOL_PRECISION_VALUE, TOOL_PRECISION_HELP},
        {"strict", TOOL_FLAG, &to->strict, NULL,
         "no fused multiply-add, denormals are kept, sums in the order of their schedule, which may have "
         "partial sums"},
        {"json", TOOL_FLAG, &to->json, NULL, "prints the summary as JSON"},
        {"quiet", TOOL_FLAG, &to->quiet, NULL, "prints neither progress nor a summary"},
    };
    const tool_usage usage = {
        "compile",
        "MODEL.onnx|PROGRAM.tecp",
        "Compiles an ONNX model or a program into one module file. A symbolic dimension stays "
        "symbolic unless --dim fixes it.",
        options,
        BASE_COUNT(options),
        1,
        1};
    return tool_parse(&usage, argc, argv, files);
}

/* The command: compiles one model or program. */
int tool_compile(int argc, char **argv)
{
    settings s = {.target = "native"};
    tool_target_text room;
    tool_list files = {0};
    int status = read_options(argc, argv, &s, &files);

    if (status != TOOL_GO_ON ||
        (status = tool_take_precision("compile", &s.target, s.precision, &room)) != TOOL_GO_ON)
        return status;
    if (!tool_read_dims("compile", &s.given_dims, &s.dims))
        return TOOL_USAGE;
    if (s.dims.n && base_ends_with(files.at[0], ".tecp"))
        return tool_misuse("compile", "--dim %s: a program's extents come from its arguments",
                           s.dims.at[0].name);
    tec_context *cx = tool_context();
    status = tool_set_limits("compile", cx, &s.limits) ? compile(cx, files.at[0], &s) : TOOL_USAGE;
    tec_context_free(cx);
    return status;
}
