/* worker/serve.c -- see serve.h. */
#include "worker/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/module.h"
#include "worker/arguments.h"
#include "worker/time.h"

typedef struct {
    run_shelf shelf;
    tec_pool *pool; /* of as many threads as the last job wanted; NULL: one */
    run_dim dims[RT_MAX_SYMBOLS];
    double costs[RUN_MODULES * RUN_MAX_COSTS];
    char error[600];
    run_answer answer;
} server;

/* A module of the job, ready to be called. */
typedef struct {
    tec_module *module;
    tec_function *function;
    const rt_function_desc *desc;
} loaded;

/* ---- the process ---- */

bool run_become_worker(int fd)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct stat s;

    if (fstat(fd, &s) != 0 || !S_ISSOCK(s.st_mode))
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < BASE_COUNT(fatal); i++)
        signal(fatal[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return run_send(fd, RUN_HELLO, &(rt_bytes){0}, RUN_NO_DEADLINE) == RUN_DONE;
}

/* Bytes of private memory that can be written, as RLIMIT_DATA counts them; -1: unknown. */
static int64_t private_bytes(void)
{
    char text[256];
    long long data;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    return sscanf(text, "%*s %*s %*s %*s %*s %lld", &data) == 1 ? (int64_t)data * sysconf(_SC_PAGESIZE) : -1;
}

void run_limit_memory(int64_t more)
{
    int64_t now = private_bytes(), most;
    struct rlimit r;

    if (getrlimit(RLIMIT_DATA, &r) != 0)
        return;
    r.rlim_cur = r.rlim_max;
    if (more >= 0 && now >= 0 && !__builtin_add_overflow(now, more, &most) && (rlim_t)most < r.rlim_max)
        r.rlim_cur = (rlim_t)most;
    setrlimit(RLIMIT_DATA, &r);
}

/* ---- a job ---- */

static bool fail(server *s, const char *stage, int culprit, const tec_error *err)
{
    snprintf(s->error, sizeof s->error, "%s", err->text);
    s->answer.outcome = RUN_ERROR;
    s->answer.culprit = culprit;
    s->answer.stage = stage;
    s->answer.kind = err->status == TEC_NO_MEMORY ? "memory" : "error";
    s->answer.error = s->error;
    return false;
}

/* Threads last from job to job. */
static bool set_threads(server *s, int threads, tec_error *err)
{
    if (threads <= 1 || (s->pool && tec_pool_threads(s->pool) == threads))
        return true;
    tec_pool_free(s->pool);
    s->pool = tec_pool_new(threads, err);
    return s->pool != NULL;
}

static bool load(server *s, const run_job *j, int i, loaded *l, tec_error *err)
{
    bool ready = set_threads(s, j->threads, err);

    l->module = ready ? tec_module_open_bytes(j->modules[i].data, j->modules[i].size, NULL, err) : NULL;
    l->function = l->module
                      ? tec_function_new(l->module, NULL,
                                         &(tec_run_options){.pool = s->pool, .threads = j->threads}, err)
                      : NULL;
    if (!l->function)
        return false;
    l->desc = &rt_module_describe(l->module)->functions[0];
    return true;
}

/* Different bytes for what is kept and what is held against it, so that an element that neither writes is
 * seen. */
enum { BLANK_KEPT = 0xa5, BLANK_CHECKED = 0x5a };

static bool check_outputs(server *s, const loaded *l, run_arguments *a, int i)
{
    if (run_arguments_check(a, l->desc, s->error, sizeof s->error))
        return true;
    s->answer = (run_answer){
        .outcome = RUN_WRONG, .culprit = i, .stage = "check", .kind = "wrong answer", .error = s->error};
    return false;
}

/* Runs each module once on outputs that were blanked, checks them, and only then times all modules in turns.
 */
static bool measure_loaded(server *s, const run_job *j, const loaded *l, run_arguments *a)
{
    run_call call[RUN_MODULES];
    double first[RUN_MODULES], begun = tec_clock();
    tec_error err = {0};

    for (int i = 0; i < j->n_modules; i++) {
        call[i] = (run_call){l[i].function, a->args, a->n};
        run_arguments_blank(a, BLANK_CHECKED);
        if (!run_call_once(&call[i], &first[i], &err))
            return fail(s, "run", i, &err);
        if (j->check && !check_outputs(s, &l[i], a, i))
            return false;
    }
    s->answer.check_seconds = tec_clock() - begun;
    begun = tec_clock();
    s->answer.n_costs = run_time(call, j->n_modules, j, first, s->costs, &err);
    s->answer.timed_seconds = tec_clock() - begun;
    return s->answer.n_costs > 0 || fail(s, "run", 0, &err);
}

static bool keep_loaded(server *s, const loaded *l, run_arguments *a)
{
    run_call call = {l->function, a->args, a->n};
    tec_error err = {0};
    double begun = tec_clock(), took;

    run_arguments_blank(a, BLANK_KEPT);
    bool good = run_call_once(&call, &took, &err);
    run_limit_memory(-1);
    good = good && run_arguments_keep(a, &err);
    s->answer.check_seconds = tec_clock() - begun;
    return good || fail(s, "reference", 0, &err);
}

/* The memory limit holds while code of the candidate runs, and no longer. */
static bool do_loaded(server *s, uint32_t kind, const run_job *j, const loaded *l)
{
    tec_error err = {0};
    run_arguments *a = run_arguments_for(&s->shelf, l->desc, j, &err);

    if (!a)
        return fail(s, "load", 0, &err);
    if (kind == RUN_MEASURE && j->check && !a->has_kept) {
        s->answer.outcome = RUN_NO_REFERENCE;
        return false;
    }
    run_limit_memory(j->memory_limit);
    bool good = kind == RUN_KEEP ? keep_loaded(s, l, a) : measure_loaded(s, j, l, a);
    run_limit_memory(-1);
    return good;
}

/* Loads the modules, does the job, and unloads them; what went wrong stands in s->answer. */
static void do_job(server *s, uint32_t kind, const run_job *j)
{
    loaded l[RUN_MODULES] = {0};
    double begun = tec_clock();
    tec_error err = {0};
    bool good = true;

    s->answer = (run_answer){.costs = {s->costs, s->costs + RUN_MAX_COSTS}};
    for (int i = 0; i < j->n_modules && good; i++)
        good = load(s, j, i, &l[i], &err) || fail(s, "load", i, &err);
    double took = tec_clock() - begun;
    if (good)
        do_loaded(s, kind, j, l);
    s->answer.load_seconds = took;
    for (int i = 0; i < j->n_modules; i++) {
        tec_function_free(l[i].function);
        tec_module_free(l[i].module);
    }
}

/* ---- the loop ---- */

static bool serve_one(server *s, int fd, uint32_t kind, const rt_bytes *question)
{
    run_reader r = run_read(question->data, question->n);
    rt_bytes answer = {0};
    run_job j;

    if ((kind != RUN_MEASURE && kind != RUN_KEEP) || !run_get_job(&r, &j, s->dims))
        return false;
    do_job(s, kind, &j);
    run_put_answer(&answer, &s->answer);
    bool sent = run_send(fd, RUN_ANSWER, &answer, RUN_NO_DEADLINE) == RUN_DONE;
    rt_bytes_free(&answer);
    return sent;
}

/* Serves jobs until the other side closes the socket. The result is the exit status of the process. */
int run_serve(int fd)
{
    server *s = rt_alloc(sizeof *s, NULL);
    rt_bytes question = {0};
    run_state state = s ? RUN_DONE : RUN_NO_MEMORY;
    uint32_t kind;

    while (state == RUN_DONE) {
        state = run_receive(fd, &kind, &question, RUN_MAX_JOB, RUN_NO_DEADLINE);
        if (state == RUN_DONE && !serve_one(s, fd, kind, &question))
            state = RUN_GARBLED;
    }
    rt_bytes_free(&question);
    if (s) {
        tec_pool_free(s->pool);
        run_shelf_clear(&s->shelf);
    }
    rt_free(s);
    return state == RUN_CLOSED ? 0 : 1;
}
