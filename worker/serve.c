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

#include "runtime/alloc.h"
#include "worker/bench.h"

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

/* ---- the loop ---- */

/* Loads the modules of the job, does it, and unloads them. The answer lasts until the next job. */
static const run_answer *do_job(run_bench *b, uint32_t kind, const run_job *j, run_answer *out)
{
    tec_module *module[RUN_MODULES] = {0};
    double begun = tec_clock(), took;
    const run_answer *a = NULL;
    tec_error err = {0};

    for (int i = 0; i < j->n_modules && !a; i++) {
        module[i] = tec_module_open_bytes(j->modules[i].data, j->modules[i].size, NULL, &err);
        if (!module[i])
            a = run_bench_refuse(b, i, &err);
    }
    took = tec_clock() - begun;
    *out = a ? *a : *run_bench_do(b, kind, j, module);
    out->load_seconds = took;
    for (int i = 0; i < j->n_modules; i++)
        tec_module_free(module[i]);
    return out;
}

/* False: the question was none, or the socket is gone. */
static bool serve_one(run_bench *b, int fd, uint32_t kind, const rt_bytes *question)
{
    run_dim dims[RT_MAX_SYMBOLS];
    run_reader r = run_read(question->data, question->n);
    rt_bytes answer = {0};
    run_answer a;
    run_job j;

    if ((kind != RUN_MEASURE && kind != RUN_KEEP) || !run_get_job(&r, &j, dims))
        return false;
    run_put_answer(&answer, do_job(b, kind, &j, &a));
    bool sent = run_send(fd, RUN_ANSWER, &answer, RUN_NO_DEADLINE) == RUN_DONE;
    rt_bytes_free(&answer);
    return sent;
}

/* Serves jobs until the other side closes the socket. The result is the exit status of the process. */
int run_serve(int fd)
{
    run_bench *b = run_bench_new();
    rt_bytes question = {0};
    run_state state = b ? RUN_DONE : RUN_NO_MEMORY;
    uint32_t kind;

    while (state == RUN_DONE) {
        state = run_receive(fd, &kind, &question, RUN_MAX_JOB, RUN_NO_DEADLINE);
        if (state == RUN_DONE && !serve_one(b, fd, kind, &question))
            state = RUN_GARBLED;
    }
    rt_bytes_free(&question);
    run_bench_free(b);
    return state == RUN_CLOSED ? 0 : 1;
}
