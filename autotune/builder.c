/* autotune/builder.c -- see builder.h. Each candidate is built in a scratch context that is dropped with
 * it.
 */
#include "autotune/builder.h"

#include <sys/resource.h>

#include "base/guard.h"
#include "base/limit.h"
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
    const char *limits, *cuda;
} builder;

/* ---- messages ---- */

void tune_put_built(rt_bytes *bytes, const tune_built *built)
{
    worker_put_i64(bytes, built->outcome);
    worker_put_text(bytes, built->stage);
    worker_put_text(bytes, built->error);
    worker_put_f64(bytes, built->schedule_seconds);
    worker_put_f64(bytes, built->compile_seconds);
    worker_put_f64(bytes, built->link_seconds);
    worker_put_bytes(bytes, built->module, built->size);
}

bool tune_get_built(worker_reader *reader, tune_built *built)
{
    built->outcome = (tune_build_outcome)worker_get_count(reader, TUNE_N_BUILDS - 1, 0);
    built->stage = worker_get_text(reader);
    built->error = worker_get_text(reader);
    built->schedule_seconds = worker_get_f64(reader);
    built->compile_seconds = worker_get_f64(reader);
    built->link_seconds = worker_get_f64(reader);
    built->module = worker_get_bytes(reader, &built->size);
    return worker_read_all(reader);
}

/* ---- tasks ---- */

static void read_task(task *self, const char *definition, const char *device)
{
    BASE_GUARD(self->cx, );

    self->file = te_parse(self->cx, "task", definition);
    self->def = self->file && self->file->defs.n ? self->file->defs.at[0] : NULL;
    self->tree = self->def ? te_tree(self->cx, self->def) : NULL;
    self->target = self->tree ? target_parse(self->cx, device) : NULL;
}

static void forget_tasks(builder *self)
{
    while (self->n > 0)
        tec_context_free(self->known[--self->n].cx);
}

/* Reads a definition and a target that later builds name by number. Old tasks are forgotten when there are
 * too many; the tuner is then told that the number is unknown and sends the task again. */
static bool add_task(builder *self, worker_reader *reader)
{
    uint64_t number = (uint64_t)worker_get_i64(reader);
    const char *definition = worker_get_text(reader), *device = worker_get_text(reader);

    if (!worker_read_all(reader))
        return false;
    if (self->n == MAX_TASKS)
        forget_tasks(self);
    task *t = &self->known[self->n];
    *t = (task){.cx = tec_context_new(), .number = number};
    if (!t->cx)
        return false;
    self->n++;
    tec_context_set_cuda(t->cx, self->cuda);
    if (!base_read_limits(t->cx, self->limits))
        return false;
    read_task(t, definition, device);
    return true;
}

static const task *find(const builder *self, uint64_t number)
{
    for (int i = 0; i < self->n; i++)
        if (self->known[i].number == number)
            return &self->known[i];
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

static bool schedule(tec_context *cx, const task *self, const char *trace, sched **made, tune_built *out)
{
    double begun = tec_clock();

    *made = sched_new(cx, self->tree, self->target);
    sched_use_intrinsics(*made, &self->file->intrinsics);
    bool good = sched_replay(*made, "trace", trace);
    out->schedule_seconds = tec_clock() - begun;
    return good || fail(out, TUNE_BUILD_REFUSED, "schedule", sched_error(*made));
}

/* In a scratch context of the task's. */
static bool build(tec_context *cx, const task *self, const char *trace, rt_bytes *module, tune_built *out)
{
    BASE_GUARD(cx, fail(out, TUNE_BUILD_FAILED, "build", tec_context_error(cx)));
    sched *s;

    if (!self->target)
        return fail(out, TUNE_BUILD_FAILED, "build", tec_context_error(self->cx));
    if (!schedule(cx, self, trace, &s, out))
        return false;
    double begun = tec_clock();
    comp_unit u = {.name = self->def->name, .tree = sched_tree(s), .origin = "trial"};
    comp_code *code = comp_compile(cx, &u, 1, &(comp_options){.target = self->target, .jobs = 1});
    double compiled = tec_clock();
    bool good = code && comp_bytes(cx, code, module);
    out->compile_seconds = compiled - begun;
    out->link_seconds = tec_clock() - compiled;
    return good || fail(out, TUNE_BUILD_FAILED, "build", tec_context_error(cx));
}

/* NULL with the task's error. */
static tec_context *scratch_of(const task *self)
{
    BASE_GUARD(self->cx, NULL);
    return base_child(self->cx);
}

/* Builds one candidate and sends the module, or the stage and the first line of what failed. */
static bool answer_build(const builder *self, int fd, worker_reader *reader)
{
    const task *t = find(self, (uint64_t)worker_get_i64(reader));
    const char *trace = worker_get_text(reader);
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
    bool sent =
        worker_read_all(reader) && worker_send(fd, TUNE_BUILT, &body, WORKER_NO_DEADLINE) == WORKER_DONE;
    rt_bytes_free(&module);
    rt_bytes_free(&body);
    tec_context_free(cx);
    return sent;
}

/* ---- the loop ---- */

static bool serve_one(builder *self, int fd, uint32_t kind, const rt_bytes *question)
{
    worker_reader r = worker_read(question->data, question->n);

    return kind == TUNE_TASK ? add_task(self, &r) : kind == TUNE_BUILD && answer_build(self, fd, &r);
}

/* Steps of niceness: the process that chooses candidates on the same cores goes first, because builders wait
 * for its candidates. */
enum { NICENESS = 5 };

/* Serves builds until the other side closes the socket. Runs with low priority, so that measuring on the same
 * machine comes first. The result is the exit status of the process. */
int tune_build_worker(int fd, int64_t memory_limit, const char *limits, const char *cuda)
{
    builder b = {.cuda = cuda, .limits = limits};
    rt_bytes question = {0};
    worker_state state = WORKER_DONE;
    uint32_t kind;

    setpriority(PRIO_PROCESS, 0, NICENESS);
    if (memory_limit > 0)
        worker_limit_memory(memory_limit);
    while (state == WORKER_DONE) {
        state = worker_receive(fd, &kind, &question, WORKER_MAX_JOB, WORKER_NO_DEADLINE);
        if (state == WORKER_DONE && !serve_one(&b, fd, kind, &question))
            state = WORKER_GARBLED;
    }
    rt_bytes_free(&question);
    forget_tasks(&b);
    return state == WORKER_CLOSED ? 0 : 1;
}
