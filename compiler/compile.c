/* compiler/compile.c -- lowers units and generates code of them, in parallel, and collects what came out.
 *
 * Each unit is compiled in a scratch context of its own by whichever thread takes it next; what lasts is
 * copied to the caller's context after all threads ended, in the order of the units, so that neither the
 * result nor the first error depends on how many threads there were.
 */
#define _GNU_SOURCE
#include "compiler/compile.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/guard.h"
#include "compiler/cache.h"
#include "compiler/describe.h"
#include "compiler/dispatch.h"
#include "compiler/generators.h"
#include "compiler/launches.h"
#include "ir/text.h"
#include "lower/pass.h"

/* One unit on its way. */
typedef struct {
    tec_context *scratch;
    const char *symbol;
    const ir_program **lowered; /* the unit's, and each different one of its versions */
    int n_lowered;
    const ir_program *version[COMP_MAX_VERSIONS]; /* lowered, of each version */
    const char *lowered_text;
    const target_code *code;
    bool done;
} job;

typedef struct {
    tec_context *cx;
    const comp_unit *units;
    const comp_options *options;
    job *jobs;
    int n;
    atomic_int next;
    atomic_bool failed;
    pthread_mutex_t log; /* one message at a time reaches the caller's log */
} work;

static const target *target_of(const comp_unit *unit, const comp_options *options)
{
    return unit->target ? unit->target : options->target;
}

static void forward_log(void *user, int level, const char *text)
{
    work *w = user;

    pthread_mutex_lock(&w->log);
    base_forward_log(w->cx, level, text);
    pthread_mutex_unlock(&w->log);
}

/* The text of a program behind its first line, which names it and its parameters. */
static const char *body_text(tec_context *cx, const ir_program *program)
{
    const char *text = ir_program_text(cx, program), *end = strchr(text, '\n');

    return end ? end : text;
}

/* Lowers the versions; program[r] becomes the number of the one that remainder r runs. Equal bodies over the
 * same parameters are one. */
static bool lower_versions(job *self, const lower_options *options, const comp_dispatch *dispatch,
                           int *program)
{
    base_dict known = {0};

    for (int i = 0; i < dispatch->n; i++) {
        const ir_program *p = lower_run(options, dispatch->version[i].tree);
        if (!p)
            return false;
        const char *text = body_text(self->scratch, p);
        const int *same = base_dict_get(&known, text);

        self->version[i] = p;
        if (!same) {
            int *number = base_new(self->scratch, int);

            *number = self->n_lowered;
            self->lowered[self->n_lowered++] = p;
            base_dict_put(self->scratch, &known, text, number);
            same = number;
        }
        program[dispatch->version[i].residue] = *same;
    }
    return true;
}

/* Symbols of the programs of a unit with versions: SYMBOL_any, SYMBOL_1, ... */
static const char **version_symbols(const job *self)
{
    const char **symbol = base_array(self->scratch, const char *, self->n_lowered);

    for (int i = 0; i < self->n_lowered; i++)
        symbol[i] = i ? base_format(self->scratch, "%s_%d", self->symbol, i)
                      : base_format(self->scratch, "%s_any", self->symbol);
    return symbol;
}

static void keep_lowered_text(job *self)
{
    base_text all = {0};

    for (int i = 0; i < self->n_lowered; i++)
        base_add(self->scratch, &all, ir_program_text(self->scratch, self->lowered[i]));
    self->lowered_text = base_text_str(self->scratch, &all);
}

/* The code of what was lowered: found in the cache, or generated. */
static const target_code *generate_code(work *self, job *j, const target *machine,
                                        const target_codegen_options *options)
{
    comp_cache *cache = self->options->dump_dir || self->options->text ? NULL : self->options->cache;

    if (!cache || options->dispatch)
        return comp_codegen(machine)->generate(j->scratch, j->lowered, j->n_lowered, machine, options);
    const char *key = comp_cache_key(j->scratch, j->lowered, j->n_lowered, machine, self->options->strict);
    const target_code *code = comp_cache_find(cache, key);
    j->symbol = comp_cache_symbol(j->scratch, key);
    if (code) {
        target_code *found = base_copy(j->scratch, code, sizeof *code);

        found->target = machine; /* the one that it was made for may be gone */
        return found;
    }
    code = comp_codegen(machine)->generate(j->scratch, j->lowered, j->n_lowered, machine, options);
    if (code)
        comp_cache_add(cache, key, code);
    return code;
}

/* In whichever thread: giving up ends this unit alone, with the error in its scratch context. */
static void compile_unit(work *self, int unit)
{
    job *j = &self->jobs[unit];
    BASE_GUARD(j->scratch, );
    const comp_options *options = self->options;
    const comp_dispatch *dispatch = self->units[unit].dispatch;
    const target *t = target_of(&self->units[unit], options);
    lower_options lower = {.cx = j->scratch,
                           .target = t,
                           .strict = options->strict,
                           .no_verify = options->no_verify,
                           .dump_dir = options->dump_dir};
    target_codegen_options generate = {.symbols = &j->symbol,
                                       .texts = (const char *const[]){options->text, NULL},
                                       .keep_denormals = options->strict};
    target_dispatch choose = {.symbol = j->symbol};

    j->lowered = base_array(j->scratch, const ir_program *, dispatch ? dispatch->n + 1 : 1);
    j->lowered[j->n_lowered++] = lower_run(&lower, self->units[unit].tree);
    if (j->lowered[0] && comp_codegen(t)->prepare)
        j->lowered[0] = comp_codegen(t)->prepare(j->scratch, j->lowered[0], t);
    if (!j->lowered[0])
        return;
    if (dispatch) {
        int *program = base_array(j->scratch, int, (int)dispatch->modulus);

        if (!lower_versions(j, &lower, dispatch, program))
            return;
        choose.dim = dispatch->symbol;
        choose.modulus = dispatch->modulus;
        choose.program = program;
        generate.symbols = version_symbols(j);
        generate.dispatch = &choose;
    }
    if (options->want_lowered)
        keep_lowered_text(j);
    if (!options->lower_only)
        j->code = generate_code(self, j, t, &generate);
    j->done = options->lower_only || j->code;
}

/* Later units are not begun once one has failed; earlier ones were, so the first failure in order is always
 * found. */
static void *work_through(void *arg)
{
    work *w = arg;

    for (int k; !atomic_load(&w->failed) && (k = atomic_fetch_add(&w->next, 1)) < w->n;) {
        compile_unit(w, k);
        if (!w->jobs[k].done)
            atomic_store(&w->failed, true);
    }
    return NULL;
}

static int available_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* This thread works too, so a failure to start others only makes it slower. */
static void run_jobs(work *self)
{
    enum { MAX_THREADS = 64 };
    pthread_t thread[MAX_THREADS];
    int wanted = self->options->jobs > 0 ? self->options->jobs : available_cores(), started = 0;

    if (wanted > self->n)
        wanted = self->n;
    while (started < wanted - 1 && started < MAX_THREADS &&
           pthread_create(&thread[started], NULL, work_through, self) == 0)
        started++;
    work_through(self);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

/* tec_k3_conv1_bn1: unique by the number, readable in a disassembly. */
static const char *symbol_of(tec_context *cx, int k, const char *name)
{
    char *s = base_format(cx, "tec_k%d_%.60s", k, name);

    for (char *p = s; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9')))
            *p = '_';
    return s;
}

static void open_jobs(work *self)
{
    for (int k = 0; k < self->n; k++) {
        self->jobs[k].scratch = base_child(self->cx);
        tec_context_set_log(self->jobs[k].scratch, forward_log, self, base_log_level(self->cx));
        self->jobs[k].symbol = symbol_of(self->cx, k, self->units[k].name);
    }
}

static void close_log(void *lock)
{
    pthread_mutex_destroy(lock);
}

static const char *copied(tec_context *cx, const char *text)
{
    return text ? base_strdup(cx, text) : NULL;
}

/* Only the function that is called: it calls the other versions itself. */
static const target_code *keep_code(tec_context *cx, const target_code *code, const char *const *symbol)
{
    target_code *c = base_copy(cx, code, sizeof *code);
    target_code_form *forms = base_array(cx, target_code_form, code->n_forms);

    c->symbols = base_copy(cx, symbol, sizeof *symbol);
    c->n = 1;
    c->bytes = base_copy(cx, code->bytes, code->size);
    c->helpers = copied(cx, code->helpers);
    c->forms = forms;
    for (int i = 0; i < code->n_forms; i++)
        forms[i] = (target_code_form){code->forms[i].name, copied(cx, code->forms[i].text)};
    return c;
}

/* Copies what job unit made into the caller's context, or the first error with a note of the unit that it is
 * about. */
static bool collect(work *self, int unit, comp_code *out)
{
    tec_context *cx = self->cx;
    const job *j = &self->jobs[unit];

    if (!j->done) {
        /* A unit that is not done and without an error of its own was not begun. */
        if (tec_context_status(j->scratch) != TEC_OK) {
            base_adopt(cx, j->scratch);
            base_note(cx, self->units[unit].tree->loc, "while compiling '%s'", self->units[unit].name);
        }
        return false;
    }
    const target_codegen *codegen = comp_codegen(out->targets[unit]);
    const char *symbol = base_strdup(cx, j->symbol); /* may lie in the scratch context */
    out->codes[unit] = j->code ? keep_code(cx, j->code, &symbol) : NULL;
    out->lowered[unit] = copied(cx, j->lowered_text);
    return comp_describe(cx, &self->units[unit], j->lowered[0], j->version, symbol, &out->functions[unit]) &&
           (!codegen->device || !j->code ||
            comp_describe_launches(cx, self->units[unit].tree, j->lowered[0], symbol, codegen->device,
                                   &out->functions[unit]));
}

/* Room for what each unit becomes, and which target each is for. */
static comp_code *new_code(work *self)
{
    comp_code *code = base_new(self->cx, comp_code);

    code->options = *self->options;
    code->codegen = comp_codegen(self->options->target);
    code->n = self->n;
    code->targets = base_array(self->cx, const target *, self->n);
    for (int k = 0; k < self->n; k++)
        code->targets[k] = target_of(&self->units[k], self->options);
    code->codes = base_array(self->cx, const target_code *, self->n);
    code->lowered = base_array(self->cx, const char *, self->n);
    code->functions = base_array(self->cx, rt_function_desc, self->n);
    return code;
}

static const char **feature_names(tec_context *cx, const target *machine, int *count)
{
    base_vec names = {0};

    for (const char *p = machine->features; *p;) {
        size_t length = strcspn(p, ",");

        if (*p == '+')
            base_push(cx, &names, base_strndup(cx, p + 1, length - 1));
        p += length + (p[length] == ',');
    }
    *count = names.n;
    return (const char **)names.at;
}

/* The target of the units that run on the host; NULL: none does. */
static const target *host_of(const comp_code *code)
{
    if (!code->codegen->device)
        return code->options.target;
    for (int k = 0; k < code->n; k++)
        if (!comp_codegen(code->targets[k])->device)
            return code->targets[k];
    return NULL;
}

/* Codes of the host, or of the device, in the order of the units. */
const target_code **comp_codes(tec_context *cx, const comp_code *code, bool of_device, int *n)
{
    const target_code **codes = base_array(cx, const target_code *, code->n);
    base_dict known = {0};

    *n = 0;
    for (int k = 0; k < code->n; k++) {
        if ((comp_codegen(code->targets[k])->device != NULL) != of_device)
            continue;
        /* With a cache, units that were lowered to the same program have one function. */
        if (code->codes[k] && base_dict_get(&known, code->codes[k]->symbols[0]))
            continue;
        if (code->codes[k])
            base_dict_put(cx, &known, code->codes[k]->symbols[0], code);
        codes[(*n)++] = code->codes[k];
    }
    return codes;
}

/* What the loader must know before it loads: target, features that code needs, floating-point mode. */
static bool describe_module(tec_context *cx, comp_code *code)
{
    const target *t = code->options.target, *host = host_of(code);
    int n = 0;
    const char **features = host ? feature_names(cx, host, &n) : NULL;

    code->desc = (rt_module_desc){.target = target_text(cx, t),
                                  .arch = host ? target_arch_name(host) : NULL,
                                  .features = features,
                                  .n_features = n,
                                  .flags = code->options.strict ? RT_MODULE_KEEP_DENORMALS : 0,
                                  .producer = base_format(cx, "tec %s", tec_version()),
                                  .functions = code->functions,
                                  .n_functions = code->n};
    return !code->codegen->device || code->options.lower_only || code->n == 0 ||
           comp_describe_device(cx, code);
}

/* Of the options' own target; that of the host beside it always has a generator. */
bool comp_can_generate(tec_context *cx, const comp_options *options)
{
    const target_codegen *g = comp_codegen(options->target);
    base_text names = {0};

    if (!g->generate) {
        base_fail(
            cx, TEC_UNSUPPORTED, (base_loc){0},
            "there is no code generator for target '%s': its programs can only be scheduled and lowered",
            target_text(cx, options->target));
        return false;
    }
    for (int i = 0; options->text && g->texts[i]; i++) {
        if (base_same(g->texts[i], options->text))
            return true;
        base_addf(cx, &names, "%s%s", i ? ", " : "", g->texts[i]);
    }
    if (options->text)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "code for target '%s' has no text form '%s'; expected %s",
                  target_text(cx, options->target), options->text, base_text_str(cx, &names));
    return !options->text;
}

/* Compiles count units, in any number of threads, with equal results. NULL with the first error in the order
 * of the units. */
comp_code *comp_compile(tec_context *cx, const comp_unit *units, int count, const comp_options *options)
{
    work w = {.cx = cx, .units = units, .options = options, .n = count, .jobs = base_array(cx, job, count)};
    comp_code *code = new_code(&w);
    bool good = true;
    base_held log;

    if (base_failed(cx) || (count && !options->lower_only && !comp_can_generate(cx, options)))
        return NULL;
    pthread_mutex_init(&w.log, NULL);
    base_hold(cx, &log, close_log, &w.log);
    open_jobs(&w);
    run_jobs(&w);
    for (int k = 0; k < count; k++) {
        good = good && collect(&w, k, code);
        tec_context_free(w.jobs[k].scratch);
    }
    base_drop(&log);
    if (!good)
        return NULL;
    return describe_module(cx, code) ? code : NULL;
}

bool comp_can_compile(tec_context *cx, const comp_unit *unit, const comp_options *options)
{
    job j = {.scratch = base_child(cx), .symbol = "probe"};
    work w = {.cx = cx, .units = unit, .options = options, .jobs = &j, .n = 1};

    compile_unit(&w, 0);
    if (!j.done)
        base_adopt(cx, j.scratch);
    tec_context_free(j.scratch);
    return j.done;
}

const char *comp_lowered_text(const comp_code *code, int k)
{
    return code->lowered[k];
}
const char *comp_code_text(const comp_code *code, int k)
{
    return target_code_text(code->codes[k], code->options.text);
}
const rt_module_desc *comp_desc(const comp_code *code)
{
    return &code->desc;
}
