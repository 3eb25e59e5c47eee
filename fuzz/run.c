/* fuzz/run.c -- a case from its number, and what it must keep: the same results after every step, after every
 * pass, and as machine code.
 *
 * The oracle is the default tree in the interpreter. The first thing that differs is named; where it is the
 * schedule, the trace is replayed line by line to find the primitive.
 */
#include <stdio.h>
#include <string.h>

#include "compiler/compiler.h"
#include "compiler/generators.h"
#include "fuzz/data.h"
#include "fuzz/draw.h"
#include "fuzz/fuzz.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "schedule/path.h"
#include "schedule/primitive.h"
#include "te/text.h"
#include "tec/device.h"

typedef struct {
    tec_context *cx;
    const fuzz_case *c;
    const target *t;
    const fuzz_elsewhere *there; /* NULL: code runs here */
    fuzz_result *r;
    const te_file *file;
    const ir_program *tree;
    sched *s;
    fuzz_data data[FUZZ_MAX_SETS];
    int n_sets;
    fuzz_data refused[FUZZ_MAX_SETS]; /* sizes that break a fact */
    int n_refused;
    int n_passes; /* rows of the pipeline that are done */
} check;

enum { GPU_PERCENT = 25 };

/* What the case is scheduled and lowered for. */
static const target *target_of(tec_context *cx, const fuzz_case *sample, const target *machine)
{
    return sample->target[0] ? target_parse(cx, sample->target) : machine;
}

/* Draws case `index` of a seed: its definition, target, data and the trace of its random schedule. */
fuzz_case fuzz_make(tec_context *cx, uint64_t seed, int64_t index, const target *machine,
                    const fuzz_watch *watch)
{
    uint64_t key[] = {seed, (uint64_t)index}, state = base_hash(key, sizeof key, BASE_HASH_SEED);
    fuzz_case c = {
        .seed = seed, .index = index, .data = base_random(&state) >> 16, .target = "", .trace = ""};

    if (!target_offers(machine, TARGET_THREADS) && fuzz_chance(&state, GPU_PERCENT))
        c.target = "cuda";
    c.te = fuzz_definition(cx, &state);
    int wanted = 5 + fuzz_below(&state, 12);
    fuzz_steps(cx, &c, target_of(cx, &c, machine), &state, wanted, watch);
    tec_context_clear(cx);
    return c;
}

/* ---- findings ---- */

static bool found(check *self, fuzz_outcome outcome, const char *where, const char *what)
{
    *self->r = (fuzz_result){.outcome = outcome,
                             .where = where,
                             .what = what,
                             .primitives = self->r->primitives,
                             .passes = self->r->passes,
                             .steps = self->r->steps,
                             .refused = self->r->refused};
    return false;
}

/* What the context says: our bug is a finding, anything else a limit that was told. */
static bool failed(check *self, const char *where)
{
    tec_status status = tec_context_status(self->cx);
    const char *what = base_strdup(self->cx, tec_context_error(self->cx) ? tec_context_error(self->cx)
                                                                         : "it failed without a reason");

    tec_context_clear(self->cx);
    return found(self, status == TEC_INTERNAL || status == TEC_OK ? FUZZ_WRONG : FUZZ_UNSUPPORTED, where,
                 what);
}

/* ---- what the interpreter can run on the way ---- */

static int row_of(const char *pass)
{
    return (int)(lower_find(pass) - lower_passes);
}

static bool stop_at_virtual_threads(ir_walk *walk, const ir_stmt *stmt)
{
    walk->stop |= stmt->kind == IR_FOR && stmt->loop.how == IR_VTHREAD;
    return true;
}

static bool has_virtual_threads(tec_context *cx, const ir_program *program)
{
    ir_walk w = {.stmt = stop_at_virtual_threads, .cx = cx};

    ir_walk_stmt(&w, program->body);
    return w.stop;
}

/* Not inside of blocks or threads: there, memory that is called shared is that of all virtual threads, and
 * where they write the same to one element nothing is lost, but the interpreter takes it for a race. */
static bool stop_outside_launches(ir_walk *walk, const ir_stmt *stmt)
{
    stop_at_virtual_threads(walk, stmt);
    return stmt->kind != IR_FOR || stmt->loop.how < IR_BLOCK_X;
}

static bool has_virtual_threads_outside(tec_context *cx, const ir_program *program)
{
    ir_walk w = {.stmt = stop_outside_launches, .cx = cx};

    ir_walk_stmt(&w, program->body);
    return w.stop;
}

/* Virtual threads get barriers after they were interleaved. */
static bool lacks_barriers(const check *self, int row, const ir_program *program)
{
    return target_offers(self->t, TARGET_THREADS) && row >= row_of("blocks") && row < row_of("barriers") &&
           has_virtual_threads(self->cx, program);
}

/* On the way to code for a GPU, what the interpreter needs is missing at times, and is made here at once by
 * the pass that will make it: before `threads`, the partial results of reductions over threads, and their
 * start; from `blocks` to `barriers`, the loops around what one thread does alone, the places of warp memory,
 * and the barriers. (Barriers put allocations around the threads: memory of a warp would be one for all.) Row
 * -1: the scheduled tree. NULL: that pass cannot. With virtual threads the interpreter runs as though
 * barriers were there. */
static const ir_program *runnable(check *self, int row, const ir_program *program)
{
    const char *const passes[] = {"threads", "init", "alone", "warps", "barriers"};
    int first = row < row_of("threads") ? 0
                : row < row_of("init")  ? 1
                : row < row_of("alone") ? 2
                : row < row_of("warps") ? 3
                                        : 4,
        end = first < 2 ? 2 : 5;

    if (!target_offers(self->t, TARGET_THREADS) || row >= row_of("barriers") || row == row_of("init"))
        return program;
    if (lacks_barriers(self, row, program))
        return has_virtual_threads_outside(self->cx, program) ? NULL : program;
    program = lower_run_passes(&(lower_options){.cx = self->cx, .target = self->t}, program, passes + first,
                               end - first);
    tec_context_clear(self->cx);
    return program;
}

/* The program after that row gives what the oracle gave, for all sizes. A schedule may make a program that is
 * too long to interpret; a pass may not make a program longer. */
static bool same(check *self, const ir_program *program, int row, const char *where)
{
    bool implied = lacks_barriers(self, row, program);

    program = runnable(self, row, program);
    for (int i = 0; program && i < self->n_sets; i++) {
        self->data[i].implied_barriers = implied;
        if (!fuzz_interpret(self->cx, program, &self->data[i], false))
            return found(self, row < 0 && fuzz_is_too_long(&self->data[i]) ? FUZZ_UNSUPPORTED : FUZZ_WRONG,
                         where,
                         base_format(self->cx, "%s%s", self->data[i].fault,
                                     fuzz_sizes_text(self->cx, &self->data[i].sizes)));
    }
    return true;
}

/* ---- the definition and the oracle ---- */

/* The case's definition, which must also print as it parses. */
static bool define(check *self)
{
    te_file *file = te_parse(self->cx, "case.te", self->c->te);

    self->tree = file ? te_tree(self->cx, file->defs.at[0]) : NULL;
    if (!self->tree) {
        failed(self, "definition");
        self->r->outcome = FUZZ_INVALID;
        return false;
    }
    self->file = file;
    const char *text = fuzz_te_text(self->cx, file);
    te_file *again = te_parse(self->cx, "printed.te", text);
    if (!again || strcmp(fuzz_te_text(self->cx, again), text) != 0) {
        tec_context_clear(self->cx);
        return found(self, FUZZ_WRONG, "text",
                     base_format(self->cx, "the definition does not print as it parses:\n%s", text));
    }
    return true;
}

/* Draws sizes and data, and interprets the definition without a schedule on them: the results to compare
 * with. */
static bool consult_oracle(check *self)
{
    fuzz_sizes sizes[FUZZ_MAX_SETS];

    self->n_sets = fuzz_draw_sizes(self->cx, self->tree, self->c->data, sizes);
    if (self->n_sets == 0)
        return found(self, FUZZ_INVALID, "definition", "no sizes fit the facts");
    for (int i = 0; i < self->n_sets; i++)
        if (!fuzz_draw_data(self->cx, self->tree, &sizes[i], self->c->data + (uint64_t)i, &self->data[i]) ||
            !fuzz_interpret(self->cx, self->tree, &self->data[i], true))
            return found(
                self, FUZZ_INVALID, "definition",
                base_format(self->cx, "%s%s", self->data[i].fault, fuzz_sizes_text(self->cx, &sizes[i])));
    return true;
}

static bool not_refused(check *self, const char *where, const fuzz_data *data)
{
    return found(self, FUZZ_WRONG, where,
                 base_format(self->cx, "sizes that break a fact: %s%s", data->fault ? data->fault : "",
                             fuzz_sizes_text(self->cx, &data->sizes)));
}

/* The interpreter refuses sizes that break a fact; those that would make an argument's extent negative cannot
 * be handed in at all. */
static bool consult_about_refusals(check *self)
{
    fuzz_sizes sizes[FUZZ_MAX_SETS];
    int n = fuzz_draw_refused(self->cx, self->tree, self->c->data, sizes);

    for (int i = 0; i < n; i++) {
        fuzz_data *data = &self->refused[self->n_refused];

        if (!fuzz_draw_data(self->cx, self->tree, &sizes[i], self->c->data + (uint64_t)i, data))
            continue;
        fuzz_interpret(self->cx, self->tree, data, false);
        if (!fuzz_is_refusal(data))
            return not_refused(self, "definition", data);
        self->n_refused++;
    }
    return true;
}

/* ---- the schedule ---- */

static sched *new_schedule(check *self)
{
    sched *s = sched_new(self->cx, self->tree, self->t);

    sched_use_intrinsics(s, &self->file->intrinsics);
    return s;
}

static void count_primitive(check *self)
{
    const sched_step *step = sched_step_at(self->s, sched_n_steps(self->s) - 1);

    self->r->primitives |= (uint64_t)1 << (step->primitive - sched_primitives);
}

/* Line by line, leaving out what is refused; with `each`, results are compared after every line. */
static bool replay(check *self, bool each)
{
    self->s = new_schedule(self);
    self->r->steps = self->r->refused = 0;
    for (const char *line = self->c->trace, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        const char *text = base_strndup(self->cx, line, (size_t)(end - line));
        int before = sched_n_steps(self->s);

        if (strspn(text, " \t") == strlen(text))
            continue;
        bool accepted = sched_replay(self->s, "trace", text);
        if (base_failed(self->cx))
            return failed(self, base_format(self->cx, "step: %s", text));
        self->r->steps += accepted;
        self->r->refused += !accepted;
        sched_clear(self->s);
        if (sched_n_steps(self->s) == before)
            continue;
        count_primitive(self);
        const sched_step *step = sched_step_at(self->s, before);
        if (each && !same(self, sched_tree(self->s), -1,
                          base_format(self->cx, "schedule: %s", step->primitive->name))) {
            self->r->what = base_format(self->cx, "%s\nafter %s", self->r->what, text);
            return false;
        }
    }
    return true;
}

/* The trace that was accepted must replay from its printed text, and the tree must give the results of the
 * definition. Where it does not, the steps are replayed with a comparison after each, which names the one
 * that is wrong. */
static bool schedule(check *self)
{
    if (!replay(self, false))
        return false;
    const char *text = sched_trace_text(self->cx, self->s);
    sched *again = new_schedule(self);
    if (!sched_replay(again, "trace", text))
        return found(self, FUZZ_WRONG, "replay",
                     base_format(self->cx, "the trace does not replay: %s", sched_error(again)));
    if (same(self, sched_tree(self->s), -1, "schedule"))
        return true;
    return replay(self, true) ? same(self, sched_tree(self->s), -1, "schedule") : false;
}

/* ---- lowering ---- */

/* Sharing of equal expressions counts too: it is all that some passes do. */
static bool changed(tec_context *cx, const ir_program *before, const ir_program *after)
{
    return !ir_same_program(cx, before, after) ||
           ir_count_nodes(cx, before->body) != ir_count_nodes(cx, after->body);
}

/* Called after each pass: the program must still compute the same. */
static void after_pass(void *user, const char *pass, const ir_program *before, const ir_program *after)
{
    check *k = user;
    int row = k->n_passes;

    /* Rows that do not apply to the target are not told of. */
    while (row + 1 < lower_n_passes && strcmp(lower_passes[row].name, pass) != 0)
        row++;
    k->n_passes = row + 1;
    if (before == after || !changed(k->cx, before, after))
        return;
    k->r->passes |= (uint64_t)1 << row;
    if (k->r->outcome == FUZZ_SAME)
        same(k, after, row, base_format(k->cx, "pass: %s (%d)", pass, row + 1));
}

/* The row at which lowering stopped. */
static const char *where_it_stopped(const check *self)
{
    int row = self->n_passes;

    while (row < lower_n_passes && !lower_applies(&lower_passes[row], self->t))
        row++;
    return row < lower_n_passes ? base_format(self->cx, "pass: %s (%d)", lower_passes[row].name, row + 1)
                                : "pass";
}

/* after_pass runs each program that a pass made: the first that gives other results names the pass. */
static bool lower(check *self)
{
    lower_options o = {.cx = self->cx, .target = self->t, .watch = after_pass, .user = self};
    const ir_program *program = lower_run(&o, sched_tree(self->s));

    if (self->r->outcome != FUZZ_SAME) {
        tec_context_clear(self->cx);
        return false;
    }
    if (!program)
        return failed(self, where_it_stopped(self));
    return true;
}

/* ---- machine code ---- */

static int threads_of(const check *self)
{
    return strstr(self->c->trace, "parallel(") ? 3 : 1;
}

/* function NULL: on another machine; device NULL: the host. */
static bool call_once(check *self, tec_device *device, tec_function *function, fuzz_data *data)
{
    if (!function)
        return fuzz_call_elsewhere(self->cx, self->there, threads_of(self), data);
    return device ? fuzz_call_on(self->cx, device, function, data) : fuzz_call(self->cx, function, data);
}

/* Runs the code on every set of data, and on sets that break a fact, which must be refused. */
static bool call_sets(check *self, tec_device *device, tec_function *function)
{
    bool good = true;

    for (int i = 0; i < self->n_sets && good; i++) {
        good = call_once(self, device, function, &self->data[i]);
        if (!good)
            found(self, FUZZ_WRONG, "code",
                  base_format(self->cx, "%s%s", self->data[i].fault,
                              fuzz_sizes_text(self->cx, &self->data[i].sizes)));
    }
    for (int i = 0; i < self->n_refused && good; i++) {
        call_once(self, device, function, &self->refused[i]);
        good = fuzz_is_refusal(&self->refused[i]) || not_refused(self, "code", &self->refused[i]);
    }
    return good;
}

/* Calls the module's function on this machine or its device, with the threads that the trace asks for. */
static bool call_all(check *self, tec_module *module)
{
    tec_error err = {0};
    int threads = threads_of(self);
    tec_pool *pool = threads > 1 ? tec_pool_new(threads, &err) : NULL;
    const char *kind = comp_codegen(self->t)->device;
    tec_device *device = kind ? tec_device_open(kind, &err) : NULL;
    tec_function *function = tec_function_new(
        module, NULL, &(tec_run_options){.pool = pool, .threads = threads, .device = device}, &err);
    bool good = function != NULL;

    if (!good)
        found(self, FUZZ_WRONG, "code", base_strdup(self->cx, err.text));
    good = good && call_sets(self, device, function);
    tec_function_free(function);
    tec_device_free(device);
    tec_pool_free(pool);
    return good;
}

/* Sends the module to the other machine and calls its function there. */
static bool call_elsewhere(check *self, const comp_code *code)
{
    rt_bytes module = {0};
    tec_error err = {0};
    bool good = comp_bytes(self->cx, code, &module);

    if (!good)
        failed(self, "code");
    else if (!self->there->load(self->there->user, module.data, module.n, &err)) {
        good = false;
        found(self, FUZZ_WRONG, "code", base_strdup(self->cx, err.text));
    }
    rt_bytes_free(&module);
    return good && call_sets(self, NULL, NULL);
}

/* What the device's driver or the loader says against the module; NULL: its function can be called. */
static const char *refusal_of(tec_context *cx, const target *machine, tec_module *module)
{
    tec_error err = {0};
    tec_device *device = tec_device_open(comp_codegen(machine)->device, &err);
    tec_function *function =
        device ? tec_function_new(module, NULL, &(tec_run_options){.device = device}, &err) : NULL;
    const char *why = function ? NULL : base_strdup(cx, err.text);

    tec_function_free(function);
    tec_device_free(device);
    return why;
}

/* Says why before any case does: a driver may be there, and the library that compiles for it or a fitting
 * device may not. So a program of one element goes all the way but for the call. */
const char *fuzz_unfit(tec_context *cx, const target *machine)
{
    const char *why = comp_codegen(machine)->generate
                          ? comp_unfit(cx, machine)
                          : base_format(cx, "no code is made for '%s'", target_text(cx, machine));

    if (why || !comp_codegen(machine)->device)
        return why;
    te_file *file = te_parse(cx, "probe.te", "def f(A: f32[1]) {\n  B[i] = A[i]\n  return B\n}\n");
    comp_unit unit = {.name = "f", .tree = te_tree(cx, file->defs.at[0]), .origin = "probe"};
    comp_code *code = comp_compile(cx, &unit, 1, &(comp_options){.target = machine, .jobs = 1});
    tec_module *module = code ? comp_load(cx, code, NULL) : NULL;
    why = module ? refusal_of(cx, machine, module) : base_strdup(cx, tec_context_error(cx));
    tec_module_free(module);
    tec_context_clear(cx);
    return why;
}

/* Compiles and calls; code for another machine is compiled only, unless there is one to run it. */
static bool run_code(check *self)
{
    comp_unit u = {.name = self->tree->name, .tree = sched_tree(self->s), .origin = "random"};
    comp_code *code =
        comp_compile(self->cx, &u, 1, &(comp_options){.target = self->t, .jobs = 1, .no_verify = true});

    if (!code)
        return failed(self, "code");
    if (self->there)
        return !self->there->load || call_elsewhere(self, code);
    if (!comp_codegen(self->t)->device && target_unfit(self->cx, self->t))
        return true;
    tec_module *module = comp_load(self->cx, code, NULL);
    if (!module)
        return failed(self, "code");
    bool good = call_all(self, module);
    tec_module_free(module);
    return good;
}

/* A case that was drawn for another target than the run's is lowered only. */
void fuzz_check_on(tec_context *cx, const fuzz_case *sample, const target *machine,
                   const fuzz_elsewhere *there, fuzz_result *out)
{
    check k = {.cx = cx, .c = sample, .t = target_of(cx, sample, machine), .there = there, .r = out};

    *out = (fuzz_result){.where = "", .what = ""};
    (void)(define(&k) && consult_oracle(&k) && consult_about_refusals(&k) && schedule(&k) && lower(&k) &&
           (sample->target[0] || !comp_codegen(k.t)->generate || run_code(&k)));
    tec_context_clear(cx);
}

void fuzz_check(tec_context *cx, const fuzz_case *sample, const target *machine, fuzz_result *out)
{
    fuzz_check_on(cx, sample, machine, NULL, out);
}

/* ---- a case as a file ---- */

const char *fuzz_te_text(tec_context *cx, const te_file *file)
{
    base_text t = {0};

    base_add(cx, &t, te_text(cx, file->defs.at[0]));
    for (int i = 0; i < file->intrinsics.list.n; i++)
        base_add(cx, &t, te_intrinsic_text(cx, file->intrinsics.list.at[i]));
    return base_text_str(cx, &t);
}

/* The case as a .te file that `tec fuzz` reads back, with `comment` above it. */
const char *fuzz_case_text(tec_context *cx, const fuzz_case *sample, const char *comment)
{
    base_text t = {0};

    base_addf(cx, &t, "# tec fuzz: case %lld of seed %llu, data %llu%s%s\n", (long long)sample->index,
              (unsigned long long)sample->seed, (unsigned long long)sample->data,
              sample->target[0] ? ", target " : "", sample->target);
    for (const char *line = comment ? comment : ""; *line;) {
        size_t n = strcspn(line, "\n");

        base_addf(cx, &t, "# %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    base_addf(cx, &t, "%s\nschedule f {\n", sample->te);
    for (const char *line = sample->trace; *line;) {
        size_t n = strcspn(line, "\n");

        const char *step = line + strspn(line, " ");

        if (step < line + n)
            base_addf(cx, &t, "  %.*s\n", (int)(line + n - step), step);
        line += n + (line[n] == '\n');
    }
    base_add(cx, &t, "}\n");
    return base_text_str(cx, &t);
}

/* The reverse of fuzz_case_text; files without its first line are case 0. */
bool fuzz_case_parse(tec_context *cx, const char *file, const char *text, fuzz_case *out)
{
    te_file *f = te_parse(cx, file, text);
    unsigned long long seed = 0, data = 1;
    long long index = 0;
    char on[32] = "";

    if (!f)
        return false;
    const te_def *def = f->defs.at[0];
    const char *trace = base_dict_get(&f->schedules, def->name);
    (void)sscanf(text, "# tec fuzz: case %lld of seed %llu, data %llu, target %31s", &index, &seed, &data,
                 on);
    *out = (fuzz_case){.seed = seed,
                       .index = index,
                       .data = data,
                       .target = base_strdup(cx, on),
                       .te = fuzz_te_text(cx, f),
                       .trace = trace ? trace : ""};
    return true;
}
