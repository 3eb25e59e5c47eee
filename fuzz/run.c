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
static const target *target_of(tec_context *cx, const fuzz_case *c, const target *t)
{
    return c->target[0] ? target_parse(cx, c->target) : t;
}

fuzz_case fuzz_make(tec_context *cx, uint64_t seed, int64_t index, const target *t, const fuzz_watch *watch)
{
    uint64_t key[] = {seed, (uint64_t)index}, state = base_hash(key, sizeof key, BASE_HASH_SEED);
    fuzz_case c = {
        .seed = seed, .index = index, .data = base_random(&state) >> 16, .target = "", .trace = ""};

    if (!target_offers(t, TARGET_THREADS) && fuzz_chance(&state, GPU_PERCENT))
        c.target = "cuda";
    c.te = fuzz_definition(cx, &state);
    int wanted = 5 + fuzz_below(&state, 12);
    fuzz_steps(cx, &c, target_of(cx, &c, t), &state, wanted, watch);
    tec_context_clear(cx);
    return c;
}

/* ---- findings ---- */

static bool found(check *k, fuzz_outcome outcome, const char *where, const char *what)
{
    *k->r = (fuzz_result){.outcome = outcome,
                          .where = where,
                          .what = what,
                          .primitives = k->r->primitives,
                          .passes = k->r->passes,
                          .steps = k->r->steps,
                          .refused = k->r->refused};
    return false;
}

/* What the context says: our bug is a finding, anything else a limit that was told. */
static bool failed(check *k, const char *where)
{
    tec_status status = tec_context_status(k->cx);
    const char *what = base_strdup(k->cx, tec_context_error(k->cx) ? tec_context_error(k->cx)
                                                                   : "it failed without a reason");

    tec_context_clear(k->cx);
    return found(k, status == TEC_INTERNAL || status == TEC_OK ? FUZZ_WRONG : FUZZ_UNSUPPORTED, where, what);
}

/* ---- what the interpreter can run on the way ---- */

static int row_of(const char *pass)
{
    return (int)(lower_find(pass) - lower_passes);
}

static bool stop_at_virtual_threads(ir_walk *w, const ir_stmt *s)
{
    w->stop |= s->kind == IR_FOR && s->loop.how == IR_VTHREAD;
    return true;
}

static bool has_virtual_threads(tec_context *cx, const ir_program *p)
{
    ir_walk w = {.stmt = stop_at_virtual_threads, .cx = cx};

    ir_walk_stmt(&w, p->body);
    return w.stop;
}

/* Not inside of blocks or threads: there, memory that is called shared is that of all virtual threads, and
 * where they write the same to one element nothing is lost, but the interpreter takes it for a race. */
static bool stop_outside_launches(ir_walk *w, const ir_stmt *s)
{
    stop_at_virtual_threads(w, s);
    return s->kind != IR_FOR || s->loop.how < IR_BLOCK_X;
}

static bool has_virtual_threads_outside(tec_context *cx, const ir_program *p)
{
    ir_walk w = {.stmt = stop_outside_launches, .cx = cx};

    ir_walk_stmt(&w, p->body);
    return w.stop;
}

/* Virtual threads get barriers after they were interleaved. */
static bool lacks_barriers(const check *k, int row, const ir_program *p)
{
    return target_offers(k->t, TARGET_THREADS) && row >= row_of("blocks") && row < row_of("barriers") &&
           has_virtual_threads(k->cx, p);
}

/* On the way to code for a GPU, what the interpreter needs is missing at times, and is made here at once by
 * the pass that will make it: before `threads`, the partial results of reductions over threads, and their
 * start; from `blocks` to `barriers`, the loops around what one thread does alone, and the barriers. Row -1:
 * the scheduled tree. NULL: that pass cannot. With virtual threads the interpreter runs as though barriers
 * were there. */
static const ir_program *runnable(check *k, int row, const ir_program *p)
{
    const char *const passes[] = {"threads", "init", "alone", "barriers"};
    int first = row < row_of("threads") ? 0
                : row < row_of("init")  ? 1
                : row < row_of("alone") ? 2
                                        : 3,
        end = first < 2 ? 2 : 4;

    if (!target_offers(k->t, TARGET_THREADS) || row >= row_of("barriers") || row == row_of("init"))
        return p;
    if (lacks_barriers(k, row, p))
        return has_virtual_threads_outside(k->cx, p) ? NULL : p;
    p = lower_run_passes(&(lower_options){.cx = k->cx, .target = k->t}, p, passes + first, end - first);
    tec_context_clear(k->cx);
    return p;
}

/* The program after that row gives what the oracle gave, for all sizes. */
static bool same(check *k, const ir_program *p, int row, const char *where)
{
    bool implied = lacks_barriers(k, row, p);

    p = runnable(k, row, p);
    for (int i = 0; p && i < k->n_sets; i++) {
        k->data[i].implied_barriers = implied;
        if (!fuzz_interpret(k->cx, p, &k->data[i], false))
            return found(
                k, FUZZ_WRONG, where,
                base_format(k->cx, "%s%s", k->data[i].fault, fuzz_sizes_text(k->cx, &k->data[i].sizes)));
    }
    return true;
}

/* ---- the definition and the oracle ---- */

/* The case's definition, which must also print as it parses. */
static bool define(check *k)
{
    te_file *file = te_parse(k->cx, "case.te", k->c->te);

    k->tree = file ? te_tree(k->cx, file->defs.at[0]) : NULL;
    if (!k->tree) {
        failed(k, "definition");
        k->r->outcome = FUZZ_INVALID;
        return false;
    }
    k->file = file;
    const char *text = fuzz_te_text(k->cx, file);
    te_file *again = te_parse(k->cx, "printed.te", text);
    if (!again || strcmp(fuzz_te_text(k->cx, again), text) != 0) {
        tec_context_clear(k->cx);
        return found(k, FUZZ_WRONG, "text",
                     base_format(k->cx, "the definition does not print as it parses:\n%s", text));
    }
    return true;
}

static bool consult_oracle(check *k)
{
    fuzz_sizes sizes[FUZZ_MAX_SETS];

    k->n_sets = fuzz_draw_sizes(k->cx, k->tree, k->c->data, sizes);
    if (k->n_sets == 0)
        return found(k, FUZZ_INVALID, "definition", "no sizes fit the facts");
    for (int i = 0; i < k->n_sets; i++)
        if (!fuzz_draw_data(k->cx, k->tree, &sizes[i], k->c->data + (uint64_t)i, &k->data[i]) ||
            !fuzz_interpret(k->cx, k->tree, &k->data[i], true))
            return found(k, FUZZ_INVALID, "definition",
                         base_format(k->cx, "%s%s", k->data[i].fault, fuzz_sizes_text(k->cx, &sizes[i])));
    return true;
}

static bool not_refused(check *k, const char *where, const fuzz_data *d)
{
    return found(k, FUZZ_WRONG, where,
                 base_format(k->cx, "sizes that break a fact: %s%s", d->fault ? d->fault : "",
                             fuzz_sizes_text(k->cx, &d->sizes)));
}

/* The interpreter refuses sizes that break a fact; those that would make an argument's extent negative cannot
 * be handed in at all. */
static bool consult_about_refusals(check *k)
{
    fuzz_sizes sizes[FUZZ_MAX_SETS];
    int n = fuzz_draw_refused(k->cx, k->tree, k->c->data, sizes);

    for (int i = 0; i < n; i++) {
        fuzz_data *d = &k->refused[k->n_refused];

        if (!fuzz_draw_data(k->cx, k->tree, &sizes[i], k->c->data + (uint64_t)i, d))
            continue;
        fuzz_interpret(k->cx, k->tree, d, false);
        if (!fuzz_is_refusal(d))
            return not_refused(k, "definition", d);
        k->n_refused++;
    }
    return true;
}

/* ---- the schedule ---- */

static sched *new_schedule(check *k)
{
    sched *s = sched_new(k->cx, k->tree, k->t);

    sched_use_intrinsics(s, &k->file->intrinsics);
    return s;
}

static void count_primitive(check *k)
{
    const sched_step *step = sched_step_at(k->s, sched_n_steps(k->s) - 1);

    k->r->primitives |= (uint64_t)1 << (step->primitive - sched_primitives);
}

/* Line by line, leaving out what is refused; with `each`, results are compared after every line. */
static bool replay(check *k, bool each)
{
    k->s = new_schedule(k);
    k->r->steps = k->r->refused = 0;
    for (const char *line = k->c->trace, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        const char *text = base_strndup(k->cx, line, (size_t)(end - line));
        int before = sched_n_steps(k->s);

        if (strspn(text, " \t") == strlen(text))
            continue;
        bool accepted = sched_replay(k->s, "trace", text);
        if (base_failed(k->cx))
            return failed(k, base_format(k->cx, "step: %s", text));
        k->r->steps += accepted;
        k->r->refused += !accepted;
        sched_clear(k->s);
        if (sched_n_steps(k->s) == before)
            continue;
        count_primitive(k);
        const sched_step *step = sched_step_at(k->s, before);
        if (each &&
            !same(k, sched_tree(k->s), -1, base_format(k->cx, "schedule: %s", step->primitive->name))) {
            k->r->what = base_format(k->cx, "%s\nafter %s", k->r->what, text);
            return false;
        }
    }
    return true;
}

static bool schedule(check *k)
{
    if (!replay(k, false))
        return false;
    const char *text = sched_trace_text(k->cx, k->s);
    sched *again = new_schedule(k);
    if (!sched_replay(again, "trace", text))
        return found(k, FUZZ_WRONG, "replay",
                     base_format(k->cx, "the trace does not replay: %s", sched_error(again)));
    if (same(k, sched_tree(k->s), -1, "schedule"))
        return true;
    return replay(k, true) ? same(k, sched_tree(k->s), -1, "schedule") : false;
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
static const char *where_it_stopped(const check *k)
{
    int row = k->n_passes;

    while (row < lower_n_passes && !lower_applies(&lower_passes[row], k->t))
        row++;
    return row < lower_n_passes ? base_format(k->cx, "pass: %s (%d)", lower_passes[row].name, row + 1)
                                : "pass";
}

static bool lower(check *k)
{
    lower_options o = {.cx = k->cx, .target = k->t, .watch = after_pass, .user = k};
    const ir_program *p = lower_run(&o, sched_tree(k->s));

    if (k->r->outcome != FUZZ_SAME) {
        tec_context_clear(k->cx);
        return false;
    }
    if (!p)
        return failed(k, where_it_stopped(k));
    return true;
}

/* ---- machine code ---- */

static int threads_of(const check *k)
{
    return strstr(k->c->trace, "parallel(") ? 3 : 1;
}

/* f NULL: on another machine; device NULL: the host. */
static bool call_once(check *k, tec_device *device, tec_function *f, fuzz_data *d)
{
    if (!f)
        return fuzz_call_elsewhere(k->cx, k->there, threads_of(k), d);
    return device ? fuzz_call_on(k->cx, device, f, d) : fuzz_call(k->cx, f, d);
}

/* Runs the code on every set of data, and on sets that break a fact, which must be refused. */
static bool call_sets(check *k, tec_device *device, tec_function *f)
{
    bool good = true;

    for (int i = 0; i < k->n_sets && good; i++) {
        good = call_once(k, device, f, &k->data[i]);
        if (!good)
            found(k, FUZZ_WRONG, "code",
                  base_format(k->cx, "%s%s", k->data[i].fault, fuzz_sizes_text(k->cx, &k->data[i].sizes)));
    }
    for (int i = 0; i < k->n_refused && good; i++) {
        call_once(k, device, f, &k->refused[i]);
        good = fuzz_is_refusal(&k->refused[i]) || not_refused(k, "code", &k->refused[i]);
    }
    return good;
}

/* Calls the module's function on this machine or its device, with the threads that the trace asks for. */
static bool call_all(check *k, tec_module *m)
{
    tec_error err = {0};
    int threads = threads_of(k);
    tec_pool *pool = threads > 1 ? tec_pool_new(threads, &err) : NULL;
    const char *kind = comp_codegen(k->t)->device;
    tec_device *device = kind ? tec_device_open(kind, &err) : NULL;
    tec_function *f = tec_function_new(
        m, NULL, &(tec_run_options){.pool = pool, .threads = threads, .device = device}, &err);
    bool good = f != NULL;

    if (!good)
        found(k, FUZZ_WRONG, "code", base_strdup(k->cx, err.text));
    good = good && call_sets(k, device, f);
    tec_function_free(f);
    tec_device_free(device);
    tec_pool_free(pool);
    return good;
}

/* Sends the module to the other machine and calls its function there. */
static bool call_elsewhere(check *k, const comp_code *code)
{
    rt_bytes module = {0};
    tec_error err = {0};
    bool good = comp_bytes(k->cx, code, &module);

    if (!good)
        failed(k, "code");
    else if (!k->there->load(k->there->user, module.data, module.n, &err)) {
        good = false;
        found(k, FUZZ_WRONG, "code", base_strdup(k->cx, err.text));
    }
    rt_bytes_free(&module);
    return good && call_sets(k, NULL, NULL);
}

/* Compiles and calls; code for another machine is compiled only, unless there is one to run it. */
static bool run_code(check *k)
{
    comp_unit u = {.name = k->tree->name, .tree = sched_tree(k->s), .origin = "random"};
    comp_code *code =
        comp_compile(k->cx, &u, 1, &(comp_options){.target = k->t, .jobs = 1, .no_verify = true});

    if (!code)
        return failed(k, "code");
    if (k->there)
        return call_elsewhere(k, code);
    if (!comp_codegen(k->t)->device && target_unfit(k->cx, k->t))
        return true;
    tec_module *m = comp_load(k->cx, code, NULL);
    if (!m)
        return failed(k, "code");
    bool good = call_all(k, m);
    tec_module_free(m);
    return good;
}

/* A case that was drawn for another target than the run's is lowered only. */
void fuzz_check_on(tec_context *cx, const fuzz_case *c, const target *t, const fuzz_elsewhere *there,
                   fuzz_result *out)
{
    check k = {.cx = cx, .c = c, .t = target_of(cx, c, t), .there = there, .r = out};

    *out = (fuzz_result){.where = "", .what = ""};
    (void)(define(&k) && consult_oracle(&k) && consult_about_refusals(&k) && schedule(&k) && lower(&k) &&
           (c->target[0] || !comp_codegen(k.t)->generate || run_code(&k)));
    tec_context_clear(cx);
}

void fuzz_check(tec_context *cx, const fuzz_case *c, const target *t, fuzz_result *out)
{
    fuzz_check_on(cx, c, t, NULL, out);
}

/* ---- a case as a file ---- */

const char *fuzz_te_text(tec_context *cx, const te_file *f)
{
    base_text t = {0};

    base_add(cx, &t, te_text(cx, f->defs.at[0]));
    for (int i = 0; i < f->intrinsics.list.n; i++)
        base_add(cx, &t, te_intrinsic_text(cx, f->intrinsics.list.at[i]));
    return base_text_str(cx, &t);
}

/* The case as a .te file that `tec fuzz` reads back, with `comment` above it. */
const char *fuzz_case_text(tec_context *cx, const fuzz_case *c, const char *comment)
{
    base_text t = {0};

    base_addf(cx, &t, "# tec fuzz: case %lld of seed %llu, data %llu%s%s\n", (long long)c->index,
              (unsigned long long)c->seed, (unsigned long long)c->data, c->target[0] ? ", target " : "",
              c->target);
    for (const char *line = comment ? comment : ""; *line;) {
        size_t n = strcspn(line, "\n");

        base_addf(cx, &t, "# %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    base_addf(cx, &t, "%s\nschedule f {\n", c->te);
    for (const char *line = c->trace; *line;) {
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
    const te_def *d = f->defs.at[0];
    const char *trace = base_dict_get(&f->schedules, d->name);
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
