/* autotune/builder.c -- see builder.h. Each candidate is built in a scratch context that is dropped with
 * it.
 */
#include "autotune/builder.h"

#include <sys/resource.h>

#include "base/guard.h"
#include "compiler/compiler.h"
#include "schedule/sched.h"
#include "te/text.h"
#include "worker/protocol.h"
#include "worker/serve.h"

enum { MAX_TASKS = 256 };

typedef struct {
    tec_context *cx;
    uint64_t number;
    const te_file *file;
    const te_def *def;
    const ir_program *tree;
    const target *target; /* NULL: cx has the reason why this is no task */
} task;

typedef struct {
    task known[MAX_TASKS];
    int n;
} builder;

/* ---- messages ---- */

void tune_put_built(rt_bytes *b, const tune_built *x)
{
    run_put_i64(b, x->outcome);
    run_put_text(b, x->stage);
    run_put_text(b, x->error);
    run_put_f64(b, x->schedule_seconds);
    run_put_f64(b, x->compile_seconds);
    run_put_f64(b, x->link_seconds);
    run_put_bytes(b, x->module, x->size);
}

bool tune_get_built(run_reader *r, tune_built *x)
{
    x->outcome = (tune_build_outcome)run_get_count(r, TUNE_N_BUILDS - 1, 0);
    x->stage = run_get_text(r);
    x->error = run_get_text(r);
    x->schedule_seconds = run_get_f64(r);
    x->compile_seconds = run_get_f64(r);
    x->link_seconds = run_get_f64(r);
    x->module = run_get_bytes(r, &x->size);
    return run_read_all(r);
}

/* ---- tasks ---- */

static void read_task(task *t, const char *definition, const char *device)
{
    BASE_GUARD(t->cx, );

    t->file = te_parse(t->cx, "task", definition);
    t->def = t->file && t->file->defs.n ? t->file->defs.at[0] : NULL;
    t->tree = t->def ? te_tree(t->cx, t->def) : NULL;
    t->target = t->tree ? target_parse(t->cx, device) : NULL;
}

static void forget_tasks(builder *b)
{
    while (b->n > 0)
        tec_context_free(b->known[--b->n].cx);
}

/* Reads a definition and a target that later builds name by number. Old tasks are forgotten when there are
 * too many; the tuner is then told that the number is unknown and sends the task again. */
static bool add_task(builder *b, run_reader *r)
{
    uint64_t number = (uint64_t)run_get_i64(r);
    const char *definition = run_get_text(r), *device = run_get_text(r);

    if (!run_read_all(r))
        return false;
    if (b->n == MAX_TASKS)
        forget_tasks(b);
    task *t = &b->known[b->n];
    *t = (task){.cx = tec_context_new(), .number = number};
    if (!t->cx)
        return false;
    b->n++;
    read_task(t, definition, device);
    return true;
}

static const task *find(const builder *b, uint64_t number)
{
    for (int i = 0; i < b->n; i++)
        if (b->known[i].number == number)
            return &b->known[i];
    return NULL;
}

/* ---- building ---- */

static bool fail(tune_built *out, tune_build_outcome outcome, const char *stage, const char *error)
{
    out->outcome = outcome;
    out->stage = stage;
    out->error = error ? error : "failed without a reason";
    return false;
}

static bool schedule(tec_context *cx, const task *t, const char *trace, sched **made, tune_built *out)
{
    double begun = tec_clock();

    *made = sched_new(cx, t->tree, t->target);
    sched_use_intrinsics(*made, &t->file->intrinsics);
    bool good = sched_replay(*made, "trace", trace);
    out->schedule_seconds = tec_clock() - begun;
    return good || fail(out, TUNE_BUILD_REFUSED, "schedule", sched_error(*made));
}

/* In a scratch context of the task's. */
static bool build(tec_context *cx, const task *t, const char *trace, rt_bytes *module, tune_built *out)
{
    BASE_GUARD(cx, fail(out, TUNE_BUILD_FAILED, "build", tec_context_error(cx)));
    sched *s;

    if (!t->target)
        return fail(out, TUNE_BUILD_FAILED, "build", tec_context_error(t->cx));
    if (!schedule(cx, t, trace, &s, out))
        return false;
    double begun = tec_clock();
    comp_unit u = {.name = t->def->name, .tree = sched_tree(s), .origin = "trial"};
    comp_code *code = comp_compile(cx, &u, 1, &(comp_options){.target = t->target, .jobs = 1});
    double compiled = tec_clock();
    bool good = code && comp_bytes(cx, code, module);
    out->compile_seconds = compiled - begun;
    out->link_seconds = tec_clock() - compiled;
    return good || fail(out, TUNE_BUILD_FAILED, "build", tec_context_error(cx));
}

/* NULL with the task's error. */
static tec_context *scratch_of(const task *t)
{
    BASE_GUARD(t->cx, NULL);
    return base_child(t->cx);
}

/* Builds one candidate and sends the module, or the stage and the first line of what failed. */
static bool answer_build(const builder *b, int fd, run_reader *r)
{
    const task *t = find(b, (uint64_t)run_get_i64(r));
    const char *trace = run_get_text(r);
    tec_context *cx = t ? scratch_of(t) : NULL;
    rt_bytes module = {0}, body = {0};
    tune_built out = {.outcome = t ? TUNE_BUILD_OK : TUNE_UNKNOWN};

    if (cx)
        build(cx, t, trace, &module, &out);
    else if (t)
        fail(&out, TUNE_BUILD_FAILED, "build", tec_context_error(t->cx));
    out.module = module.data;
    out.size = module.n;
    tune_put_built(&body, &out);
    bool sent = run_read_all(r) && run_send(fd, TUNE_BUILT, &body, RUN_NO_DEADLINE) == RUN_DONE;
    rt_bytes_free(&module);
    rt_bytes_free(&body);
    tec_context_free(cx);
    return sent;
}

/* ---- the loop ---- */

static bool serve_one(builder *b, int fd, uint32_t kind, const rt_bytes *question)
{
    run_reader r = run_read(question->data, question->n);

    return kind == TUNE_TASK ? add_task(b, &r) : kind == TUNE_BUILD && answer_build(b, fd, &r);
}

/* Steps of niceness: whoever chooses the candidates, on the same cores, goes first, for builders have nothing
 * to do without it. */
enum { NICENESS = 5 };

/* Serves builds until the other side closes the socket. Runs with low priority, so that measuring on the same
 * machine comes first. The result is the exit status of the process. */
int tune_build_worker(int fd, int64_t memory_limit)
{
    builder b = {0};
    rt_bytes question = {0};
    run_state state = RUN_DONE;
    uint32_t kind;

    setpriority(PRIO_PROCESS, 0, NICENESS);
    if (memory_limit > 0)
        run_limit_memory(memory_limit);
    while (state == RUN_DONE) {
        state = run_receive(fd, &kind, &question, RUN_MAX_JOB, RUN_NO_DEADLINE);
        if (state == RUN_DONE && !serve_one(&b, fd, kind, &question))
            state = RUN_GARBLED;
    }
    rt_bytes_free(&question);
    forget_tasks(&b);
    return state == RUN_CLOSED ? 0 : 1;
}
