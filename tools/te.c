/* tools/te.c -- `tec te`: kernels from a .te file, without C: print any stage of them, build a module, time
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "autotune/source.h"
#include "compiler/dispatch.h"
#include "compiler/generators.h"
#include "compiler/ranges.h"
#include "hardware/hardware.h"
#include "ir/text.h"
#include "space/space.h"
#include "te/text.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/device_cache.h"
#include "tools/dims.h"
#include "tools/limits.h"
#include "tools/te_run.h"

typedef struct {
    const char *output, *schedule, *records, *target, *precision, *emit, *name, *dispatch;
    int64_t threads;
    tool_list given_dims, limits, inputs;
    tool_dims dims;
    const char *device, *device_cache, *dump;
    bool time, check, json, strict;
} settings;

/* Filled from the top to the bottom. */
typedef struct {
    tec_context *cx;
    settings *s;
    const char *path;
    const target *t;
    te_file *file;
    te_def *def;
    sched *schedule;
    const char *origin; /* where the schedule comes from */
    const space_ranges
        *ranges; /* of the record, or by default: the schedule is that of the last; NULL: none */
} session;

/* ---- the definition and its schedule ---- */

/* The first one without --name. */
static te_def *pick(session *self)
{
    base_vec names = {0};

    for (int i = 0; i < self->file->defs.n; i++) {
        te_def *def = self->file->defs.at[i];

        if (!self->s->name || strcmp(def->name, self->s->name) == 0)
            return def;
        base_push(self->cx, &names, def->name);
    }
    return base_fail(self->cx, TEC_INVALID, (base_loc){.file = self->path}, "there is no definition '%s'%s",
                     self->s->name, base_did_you_mean(self->cx, self->s->name, &names));
}

/* "its symbols are n, m" */
static const char *symbols_text(tec_context *cx, const base_vec *names)
{
    base_text t = {0};

    base_add(cx, &t, names->n ? "its symbols are " : "it has no symbols");
    for (int i = 0; i < names->n; i++)
        base_addf(cx, &t, "%s%s", i ? ", " : "", (const char *)names->at[i]);
    return base_text_str(cx, &t);
}

/* A --dim that names no symbol is a mistake, and told with the nearest name. */
static bool specialise(session *self)
{
    base_vec names = {0};
    const char *unused;

    for (int i = 0; i < self->def->symbols.n; i++)
        base_push(self->cx, &names, ((const ir_expr *)self->def->symbols.at[i])->var.name);
    self->def = tool_specialise(self->cx, self->def, &self->s->dims);
    unused = self->def ? tool_unused_dim(&self->s->dims) : NULL;
    self->s->dims.unknown = unused != NULL;
    if (unused)
        base_fail(self->cx, TEC_INVALID, self->def->loc, "'%s' has no symbol '%s'%s; %s", self->def->name,
                  unused, base_did_you_mean(self->cx, unused, &names), symbols_text(self->cx, &names));
    return self->def && !unused;
}

/* From the record store, saying whether it has one. NULL: none, with an error only where the store cannot be
 * read. The store is closed again before the schedule is used: the trace is a copy. */
static const char *recorded(session *self, bool file_has_one)
{
    store *db =
        store_open(self->cx, self->s->records, &(store_options){.read_only = true, .must_exist = true});
    const space_task *task = db ? space_task_new(self->cx, self->def, NULL) : NULL;
    const space_source *source = task ? tune_source(self->cx, db) : NULL;
    const char *origin = "record", *trace = NULL;

    self->ranges = source ? source->ranges(source, self->cx, task, self->t) : NULL;
    if (self->ranges)
        trace = self->ranges->at[self->ranges->n - 1].trace;
    else if (source)
        trace = source->best(source, self->cx, task, self->t, &origin);

    const char *there = task && !trace ? tune_records_text(self->cx, db, self->t) : "";

    store_close(db);
    if (!trace && !base_failed(self->cx))
        fprintf(stderr,
                "%s: no record for '%s' on this target with %d threads; its schedule is %s (tec tune makes "
                "records)\n%s: %s\n",
                self->s->records, self->def->name, self->t->num_cores,
                file_has_one ? "that of the file" : "where a tuner would begin", self->s->records, there);
    if (!trace)
        return NULL;
    fprintf(stderr, "%s: '%s' has the schedule of %s%s\n", self->s->records, self->def->name,
            base_same(origin, "record") ? "its record" : "a record with the same anchor",
            self->ranges
                ? base_format(self->cx, ", one for each of %d ranges of '%s'", self->ranges->n,
                              ((const ir_expr *)self->def->symbols.at[self->ranges->symbol])->var.name)
                : "");
    self->origin = origin;
    return trace;
}

/* A schedule's reason reads "FILE:LINE:COLUMN: reason", or "FILE:LINE:COLUMN: error: reason" where its text
 * is no trace. All are reported alike, with "error: ". */
static void fail_schedule(tec_context *cx, const char *file, const sched *schedule)
{
    base_text all = {0};
    int count;
    const char *const *reasons = sched_errors(schedule, &count);

    for (int i = 0; i < count; i++) {
        const char *reason = reasons[i], *word = "error: ";
        size_t n = file && base_starts_with(reason, file) ? strlen(file) : 0;

        n += n ? strspn(reason + n, ":0123456789") : 0;
        const char *rest = reason + n + (n && reason[n] == ' ');
        base_addf(cx, &all, "%s%.*s%s%s%s", i ? "\n" : "", (int)n, reason, n ? " " : "",
                  base_starts_with(rest, word) ? "" : word, rest);
    }
    base_fail_whole(cx, TEC_INVALID, base_text_str(cx, &all));
}

/* The schedule from --schedule, from the record store, from the file, or by default, in this order. A
 * schedule of the file is read where it stands, so that its errors have lines of the file. */
static bool make_schedule(session *self)
{
    const char *text = base_dict_get(&self->file->schedules, self->def->name), *from = self->path;
    const base_loc *behind = NULL;
    const ir_program *tree = te_tree(self->cx, self->def);
    const char *record;
    size_t size;

    self->origin = "te file";
    if (!tree)
        return false;
    self->schedule = sched_new(self->cx, tree, self->t);
    sched_use_intrinsics(self->schedule, &self->file->intrinsics);
    if (self->s->schedule) {
        text = base_read_file(self->cx, self->s->schedule, &size);
        from = self->s->schedule;
        if (!text)
            return false;
    } else if (self->s->records && (record = recorded(self, text))) {
        text = record;
        from = self->s->records;
    } else if (text)
        behind = base_dict_get(&self->file->schedule_at, self->def->name);
    if (base_failed(self->cx))
        return false;
    if (!text)
        self->schedule = space_default(self->cx, tree, self->t);
    if (!self->schedule)
        return false;
    if (!text && sched_failed(self->schedule))
        return base_fail(self->cx, TEC_INVALID, (base_loc){.file = from}, "%s", sched_error(self->schedule));
    if (!text) {
        self->ranges = space_default_ranges(self->cx, self->def, self->schedule);
        return true;
    }
    bool good = behind ? sched_replay_behind(self->schedule, *behind, text)
                       : sched_replay_file(self->schedule, from, text);
    if (!good)
        fail_schedule(self->cx, from, self->schedule);
    return good;
}

/* ---- what is printed ---- */

typedef enum { EMIT_NOTHING, EMIT_TE, EMIT_TREE, EMIT_TRACE, EMIT_LOWERED, EMIT_OBJ, EMIT_CODE } emit_kind;
static const char *const emit_names[] = {"", "te", "tree", "trace", "lowered", "obj"};

/* Beside the names above, what to emit is a form of code ("llvm", "asm"). */
static bool read_emit(tec_context *cx, const char *text, emit_kind *out)
{
    const char *const *forms = comp_code_forms(cx);

    *out = EMIT_NOTHING;
    for (int i = 1; text && i < BASE_COUNT(emit_names); i++)
        if (strcmp(text, emit_names[i]) == 0)
            *out = (emit_kind)i;
    for (int i = 0; text && forms[i]; i++)
        if (strcmp(text, forms[i]) == 0)
            *out = EMIT_CODE;
    return !text || *out != EMIT_NOTHING;
}

/* "the form to print: te, tree, trace, lowered, llvm, asm, obj, opencl, cuda or registers" */
static const char *what_to_emit(tec_context *cx)
{
    const char *const *forms = comp_code_forms(cx);
    base_text list = {0};

    for (int i = 1; i < BASE_COUNT(emit_names) - 1; i++)
        base_addf(cx, &list, "%s, ", emit_names[i]);
    for (int i = 0; forms[i]; i++)
        base_addf(cx, &list, "%s%s", forms[i], forms[i + 1] ? ", " : " or ");
    base_add(cx, &list, "obj");
    return base_text_str(cx, &list);
}

/* What needs no compilation. */
static const char *early_text(session *self, emit_kind kind)
{
    switch (kind) {
    case EMIT_TE: return te_text(self->cx, self->def);
    case EMIT_TREE: return ir_program_text(self->cx, sched_tree(self->schedule));
    case EMIT_TRACE: return sched_trace_text(self->cx, self->schedule);
    case EMIT_LOWERED:
    case EMIT_CODE:
    case EMIT_OBJ:
    case EMIT_NOTHING: return NULL;
    }
    return NULL;
}

static const char *late_text(const comp_code *code, emit_kind kind)
{
    return kind == EMIT_LOWERED ? comp_lowered_text(code, 0)
           : kind == EMIT_CODE  ? comp_code_text(code, 0)
                                : NULL;
}

/* -o applies to texts as well. */
static bool print_text(session *self, const char *text)
{
    if (self->s->output && strcmp(self->s->output, "-") != 0)
        return base_write_file(self->cx, self->s->output, text, strlen(text));
    fputs(text, stdout);
    return true;
}

/* ---- the command ---- */

/* Loads what was compiled and checks or times it. */
static int run_built(session *self, const comp_code *code)
{
    tec_error err = {0};

    if (!tool_open_device_cache(self->cx, self->s->device_cache, &err))
        return tool_fail_run("te", &err);
    tec_module *module = comp_load(self->cx, code, NULL);
    te_run r = {.cx = self->cx,
                .def = self->def,
                .module = module,
                .function = comp_desc(code)->functions,
                .on = self->s->device,
                .threads = (int)self->s->threads,
                .json = self->s->json,
                .strict = self->s->strict,
                .rough = self->t->precision != TARGET_EXACT,
                .inputs = &self->s->inputs};
    int status = module ? TOOL_OK : tool_fail_dims("te", self->cx, &self->s->dims);

    if (status == TOOL_OK && self->s->check)
        status = tool_te_check(&r);
    if (status == TOOL_OK && self->s->time)
        status = tool_te_time(&r);
    if (status == TOOL_OK && !self->s->json)
        tool_print_device_cache();
    tec_module_free(module);
    return status;
}

/* The kernel, and behind it one for each range but the last. NULL with an error. */
static const comp_unit *units_of(session *self, const comp_unit *unit, int *n)
{
    const char *refused = NULL;
    comp_ranged kernel = {.unit = *unit};

    if (self->ranges) {
        kernel.symbol = self->ranges->symbol;
        kernel.n = self->ranges->n - 1;
        kernel.to = space_ranges_ends(self->cx, self->ranges);
        kernel.tree = space_ranges_trees(self->cx, self->def, self->t, self->ranges, &refused);
        if (!kernel.tree)
            return base_fail(self->cx, TEC_INVALID,
                             self->s->records ? (base_loc){.file = self->s->records} : self->def->loc, "%s",
                             refused ? refused : "a schedule for a range of a symbol does not apply");
        kernel.unit.tree = kernel.tree[kernel.n];
    }
    return comp_units_of_ranges(self->cx, &kernel, 1, n);
}

/* Compiles the scheduled kernel and does what the options ask for: print, write, run, or only say that all is
 * well. */
static int build(session *self, emit_kind kind)
{
    comp_unit u = {.name = self->def->name,
                   .tree = sched_tree(self->schedule),
                   .plain = sched_plain(self->schedule),
                   .origin = self->origin};
    comp_options o = {.target = self->t,
                      .strict = self->s->strict,
                      .want_lowered = kind == EMIT_LOWERED,
                      .lower_only = kind == EMIT_LOWERED,
                      .text = kind == EMIT_CODE ? self->s->emit : NULL,
                      .dump_dir = self->s->dump};

    if (self->s->dispatch &&
        !(u.dispatch = comp_dispatch_new(self->cx, self->def, self->schedule, self->s->dispatch)))
        return tool_fail_dims("te", self->cx, &self->s->dims);
    if (o.dump_dir)
        mkdir(o.dump_dir, 0777); /* what is wrong with it, writing into it will tell */
    int n_units;
    const comp_unit *units = units_of(self, &u, &n_units);
    comp_code *code = units ? comp_compile(self->cx, units, n_units, &o) : NULL;
    const char *text = code ? late_text(code, kind) : NULL;

    if (!code)
        return tool_fail_dims("te", self->cx, &self->s->dims);
    if (self->t->precision == TARGET_TF32 && !hw_rounds_to_tf32(u.tree))
        fprintf(stderr,
                "%s: precision tf32 changes nothing: the schedule of '%s' (%s) has no product by tensor "
                "cores\n",
                self->path, self->def->name, self->origin);
    if (text)
        return print_text(self, text) ? TOOL_OK : tool_fail_dims("te", self->cx, &self->s->dims);
    if (kind == EMIT_OBJ)
        return comp_write_object(self->cx, code,
                                 self->s->output ? self->s->output
                                                 : base_format(self->cx, "%s.o", self->def->name))
                   ? TOOL_OK
                   : tool_fail_dims("te", self->cx, &self->s->dims);
    tool_hold_interrupts(true);
    const char *file = self->s->output ? tool_begin_output(self->cx, self->s->output) : NULL;
    bool written = !self->s->output || (file && comp_write(self->cx, code, NULL, file, 0) &&
                                        tool_finish_output(self->cx, self->s->output, file));
    tool_hold_interrupts(false);
    if (!written)
        return tool_fail_dims("te", self->cx, &self->s->dims);
    if (self->s->time || self->s->check)
        return run_built(self, code);
    if (!self->s->output)
        fprintf(stderr,
                "%s: '%s' and its schedule (%s) are legal, and compile for %s; -o writes a module, --emit "
                "prints, --time measures\n",
                self->path, self->def->name, self->origin, target_text(self->cx, self->t));
    return TOOL_OK;
}

/* Texts that need no code are printed before anything is compiled. */
static int run(session *self, emit_kind kind)
{
    size_t size;
    const char *text = base_read_file(self->cx, self->path, &size);

    self->t = text ? tool_target(self->cx, self->s->target, self->s->threads) : NULL;
    self->file = self->t ? te_parse(self->cx, self->path, text) : NULL;
    self->def = self->file ? pick(self) : NULL;
    if (!self->def || !specialise(self) || !make_schedule(self))
        return tool_fail_dims("te", self->cx, &self->s->dims);
    text = early_text(self, kind);
    if (text)
        return print_text(self, text) ? TOOL_OK : tool_fail_dims("te", self->cx, &self->s->dims);
    return build(self, kind);
}

/* Reads the command line into *to and *files. */
static int read_options(int argc, char **argv, settings *to, tool_list *files)
{
    const tool_option options[] = {
        {"o", TOOL_TEXT, &to->output, "OUT",
         "writes the module, or the form that --emit names, to this file; - is standard output"},
        {"name", TOOL_TEXT, &to->name, "NAME", "the definition to take from the file (default: the first)"},
        {"schedule", TOOL_TEXT, &to->schedule, "FILE",
         "a file with the schedule (default: 'schedule NAME { ... }' in FILE.te, otherwise the target's "
         "default)"},
        {"records", TOOL_TEXT, &to->records, "DB",
         "takes the schedule from this record store, if the store has one for the definition"},
        {"target", TOOL_TARGET, &to->target, "T",
         "the target to compile for (default: native, this machine)"},
        {"dim", TOOL_LIST, &to->given_dims, "NAME=N", "gives symbol NAME the value N; may be repeated"},
        {"dispatch", TOOL_TEXT, &to->dispatch, "N%T[=R,...]",
         "compiles a version for each remainder of symbol N by T (default: for all T of them)"},
        {"threads", TOOL_COUNT, &to->threads, "N",
         "uses records that were measured with N threads, and N threads for --time"},
        {"emit", TOOL_TEXT, &to->emit, "WHAT",
         "the form to print: te, tree, trace, lowered, obj, llvm and asm (CPUs), opencl, cuda, "
         "registers (cuda: what kernels use)"},
        {"dump-ir", TOOL_TEXT, &to->dump, "DIR",
         "writes the loop program after each pass that changed it into this directory"},
        {"time", TOOL_FLAG, &to->time, NULL, "measures the kernel"},
        {"check", TOOL_FLAG, &to->check, NULL,
         "runs the kernel, and compares the results with those of the definition in the interpreter; symbols "
         "without a value run at several sizes"},
        {"input", TOOL_LIST, &to->inputs, "NAME=FILE",
         "--time, --check: reads input NAME from a .npy, .pb or .json file (default: random numbers); may be "
         "repeated"},
        {"device", TOOL_TEXT, &to->device, "NAME",
         "the device to run on, by its name in 'tec devices' (default: the first of the target's kind)"},
        {"device-cache", TOOL_TEXT, &to->device_cache, "DIR|off", TOOL_DEVICE_CACHE_HELP},
        {"limit", TOOL_LIST, &to->limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
        {"precision", TOOL_CHOICE, &to->precision, TOOL_PRECISION_VALUE, TOOL_PRECISION_HELP},
        {"strict", TOOL_FLAG, &to->strict, NULL,
         "no fused multiply-add, denormals are kept, sums in the order of their schedule, which may have "
         "partial sums"},
        {"json", TOOL_FLAG, &to->json, NULL, "prints JSON"},
    };
    const tool_usage usage = {
        "te",    "FILE.te",           "Compiles, prints or measures the kernel that a .te file defines.",
        options, BASE_COUNT(options), 1,
        1};
    return tool_parse(&usage, argc, argv, files);
}

/* The command: options that contradict each other are refused before the file is read. */
int tool_te(int argc, char **argv)
{
    settings s = {.target = "native"};
    tool_target_text room;
    tool_list files = {0};
    emit_kind kind;
    int status = read_options(argc, argv, &s, &files);

    if (status != TOOL_GO_ON ||
        (status = tool_take_precision("te", &s.target, s.precision, &room)) != TOOL_GO_ON)
        return status;
    if (s.schedule && s.records)
        return tool_misuse(
            "te", "--schedule and --records both say where the schedule comes from; give one of them");
    if (s.emit && (s.time || s.check))
        return tool_misuse("te", "--emit prints and %s runs; give one of them",
                           s.time ? "--time" : "--check");
    if (s.inputs.n && !s.time && !s.check)
        return tool_misuse("te", "--input is for a kernel that runs; give --time or --check, too");
    if (!tool_read_dims("te", &s.given_dims, &s.dims))
        return TOOL_USAGE;
    session x = {.cx = tool_context(), .s = &s, .path = files.at[0]};
    if (!tool_set_limits("te", x.cx, &s.limits)) {
        status = TOOL_USAGE;
    } else if (read_emit(x.cx, s.emit, &kind)) {
        status = run(&x, kind);
    } else {
        fprintf(stderr, "tec te: --emit is %s, found '%s'\n", what_to_emit(x.cx), s.emit);
        status = TOOL_USAGE;
    }
    tec_context_free(x.cx);
    return status;
}
