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

/* Signals that mean a crash end the process (a parent may have ignored them), no core file is written, and
 * the process dies with its parent. */
bool worker_become_worker(int fd)
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
    return worker_send(fd, WORKER_HELLO, &(rt_bytes){0}, WORKER_NO_DEADLINE) == WORKER_DONE;
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

/* `more` bytes above what the process has now; less than 0 lifts the limit. */
void worker_limit_memory(int64_t more)
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
static const worker_answer *do_job(worker_bench *bench, uint32_t kind, const worker_job *job,
                                   worker_answer *out)
{
    tec_module *module[WORKER_MODULES] = {0};
    double begun = tec_clock(), took;
    const worker_answer *answer = NULL;
    tec_error err = {0};

    for (int i = 0; i < job->n_modules && !answer; i++) {
        module[i] = tec_module_open_bytes(job->modules[i].data, job->modules[i].size, NULL, &err);
        if (!module[i])
            answer = worker_bench_refuse(bench, i, &err);
    }
    took = tec_clock() - begun;
    *out = answer ? *answer : *worker_bench_do(bench, kind, job, module);
    out->load_seconds = took;
    for (int i = 0; i < job->n_modules; i++)
        tec_module_free(module[i]);
    return out;
}

/* False: the question was none, or the socket is gone. */
static bool serve_one(worker_bench *bench, int fd, uint32_t kind, const rt_bytes *question)
{
    worker_dim dims[RT_MAX_SYMBOLS];
    worker_reader r = worker_read(question->data, question->n);
    rt_bytes answer = {0};
    worker_answer a;
    worker_job j;

    if ((kind != WORKER_MEASURE && kind != WORKER_KEEP) || !worker_get_job(&r, &j, dims))
        return false;
    worker_put_answer(&answer, do_job(bench, kind, &j, &a));
    bool sent = worker_send(fd, WORKER_ANSWER, &answer, WORKER_NO_DEADLINE) == WORKER_DONE;
    rt_bytes_free(&answer);
    return sent;
}

/* Serves jobs until the other side closes the socket. The result is the exit status of the process. */
int worker_serve(int fd)
{
    worker_bench *bench = worker_bench_new();
    rt_bytes question = {0};
    worker_state state = bench ? WORKER_DONE : WORKER_NO_MEMORY;
    uint32_t kind;

    while (state == WORKER_DONE) {
        state = worker_receive(fd, &kind, &question, WORKER_MAX_JOB, WORKER_NO_DEADLINE);
        if (state == WORKER_DONE && !serve_one(bench, fd, kind, &question))
            state = WORKER_GARBLED;
    }
    rt_bytes_free(&question);
    worker_bench_free(bench);
    return state == WORKER_CLOSED ? 0 : 1;
}
