/* tests/autotune/measure.c -- the local measurer: good candidates get their time, bad ones a cause, and each
 * is its own trial alone. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tec/runtime.h"
#include "tests/autotune/candidates.h"

static tune_measurer *m;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_all(void)
{
    if (m)
        m->close(m);
    m = NULL;
    tec_context_free(cx);
}
TestSuite(measure, .init = open_context, .fini = close_all);

static void open_measurer(tune_measure_options o)
{
    o.builder = o.builder ? o.builder : TEC_BINARY_DIR "/tec";
    o.runner = o.runner ? o.runner : TEC_BINARY_DIR "/tec_runner";
    o.min_seconds = o.min_seconds > 0 ? o.min_seconds : 0.002;
    o.build_timeout = o.build_timeout > 0 ? o.build_timeout : 60;
    o.run_timeout = o.run_timeout > 0 ? o.run_timeout : 20;
    m = tune_measurer_local(cx, &o);
    cr_assert(m, "%s", tec_context_error(cx));
}

static const char plain[] =
    "def mm(A: f32[64, 64], B: f32[64, 64]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n";
static const char fast[] = "reorder(C.k, C.x)\nvectorize(C.x)\n";

static tune_result measure_one(const tune_task *t, const char *trace, bool check)
{
    tune_result r;

    cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = trace, .seed = 1, .check = check}, 1),
              "%s", tec_context_error(cx));
    cr_assert_eq(m->collect(m, cx, NULL, &r, 1, INFINITY), 1, "%s", tec_context_error(cx));
    return r;
}

static bool measure_pair(const tune_candidate *a, const tune_candidate *b, tune_result r[2])
{
    return m->submit_pair(m, cx, a, b) && m->collect_pair(m, cx, r, INFINITY) == 1;
}

static void is_good(const tune_result *r, bool checked)
{
    cr_assert_eq(r->status, STORE_OK, "%s: %s: %s", r->stage, r->error_kind, r->error);
    cr_assert_str_eq(r->stage, "");
    cr_assert(r->n_costs >= 1 && r->median > 0 && r->spread >= 0);
    cr_assert_eq(r->checked, checked);
    cr_assert(r->build_seconds > 0 && r->run_seconds > 0);
}

static void failed_as(const tune_result *r, store_status status, const char *stage, const char *kind,
                      const char *text)
{
    cr_assert(r->status == status && strcmp(r->stage, stage) == 0 && strcmp(r->error_kind, kind) == 0 &&
                  strstr(r->error, text),
              "expected %s, %s, %s, '%s'; found %s, %s, %s, '%s'", store_status_text(status), stage, kind,
              text, store_status_text(r->status), r->stage, r->error_kind, r->error);
    cr_assert_null(strchr(r->error, '\n'));
    cr_assert_eq(r->n_costs, 0);
}

/* ---- good ones ---- */

Test(measure, gives_costs_in_the_order_of_submission)
{
    tune_task *t = task_for(plain);
    const char *trace[] = {NULL, fast, "vectorize(C.x)\n", "parallel(C.y)\n", "unroll(C.k)\n"};
    tune_candidate c[5];
    tune_result r[5];
    int got = 0;

    open_measurer((tune_measure_options){.repeats = 3});
    for (int i = 0; i < 5; i++)
        c[i] = (tune_candidate){.task = t, .trace = trace[i], .seed = 1, .check = i % 2};
    cr_assert(m->submit(m, cx, c, 5));
    while (got < 5) {
        int n = m->collect(m, cx, NULL, r + got, 5 - got, INFINITY);

        cr_assert(n > 0, "%s", tec_context_error(cx));
        got += n;
    }
    for (int i = 0; i < 5; i++) {
        is_good(&r[i], i % 2);
        cr_assert(r[i].n_costs <= 3);
    }
    cr_assert(r[1].median < r[0].median, "vectors: %g s, plain: %g s", r[1].median, r[0].median);
    cr_assert_eq(m->collect(m, cx, NULL, r, 5, INFINITY), 0);
    tune_measure_stats s = m->stats(m);
    cr_assert(s.candidates == 5 && s.ok == 5 && s.builders_lost == 0 && s.runners_lost == 0);
    cr_assert(s.timed >= 5 * 0.002 && s.run >= s.timed && s.compile > 0 && s.link > 0 && s.wall > 0);
}

static int lines_of(const char *path, const char *words)
{
    char line[800];
    int n = 0;
    FILE *f = fopen(path, "re");

    cr_assert(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, words) != NULL;
    fclose(f);
    return n;
}

/* Each run of a candidate is a line, by the hash of its trace; a comparison has two. Runs that make the
 * outputs to compare with are none. */
Test(measure, logs_each_run_before_it_begins)
{
    tune_task *t = task_for(plain);
    char path[] = "/tmp/tec-runs-XXXXXX", hash[60], both[60];
    tune_result r[2];
    tune_candidate c[2] = {{.task = t, .trace = fast, .seed = 1, .check = true}, {.task = t, .seed = 1}};

    close(mkstemp(path));
    open_measurer((tune_measure_options){.log = path, .log_name = "a\nb.te"});
    measure_one(t, fast, true);
    measure_one(t, "split(C.q, _, 3)\n", true);
    cr_assert(measure_pair(&c[0], &c[1], r));
    unsigned long long h = base_hash(fast, strlen(fast), BASE_HASH_SEED),
                       d = base_hash(t->default_trace, strlen(t->default_trace), BASE_HASH_SEED);
    snprintf(hash, sizeof hash, "a b.te: measures '%016llx'\n", h);
    snprintf(both, sizeof both, "a b.te: measures '%016llx %016llx'\n", h, d);
    cr_assert_eq(lines_of(path, hash), 1);
    cr_assert_eq(lines_of(path, both), 1);
    cr_assert_eq(lines_of(path, ""), 2);
    unlink(path);
}

Test(measure, runs_nothing_that_cannot_be_logged)
{
    tune_task *t = task_for(plain);
    tune_result r;

    open_measurer((tune_measure_options){.log = "/dev/full"});
    cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = fast, .seed = 1}, 1));
    cr_assert_eq(m->collect(m, cx, NULL, &r, 1, INFINITY), -1);
    cr_assert(strstr(tec_context_error(cx), "the log of runs cannot be written: No space left"), "%s",
              tec_context_error(cx));
}

Test(measure, a_log_that_cannot_be_opened_is_an_error)
{
    const tune_measure_options o = {
        .builder = TEC_BINARY_DIR "/tec", .runner = TEC_BINARY_DIR "/tec_runner", .log = "/nowhere/runs"};

    cr_assert_null(tune_measurer_local(cx, &o));
    cr_assert(strstr(tec_context_error(cx), "/nowhere/runs: error: cannot be opened"), "%s",
              tec_context_error(cx));
}

/* The parts are much longer than a call, on a machine with other work too. */
Test(measure, spends_the_time_that_is_asked_for)
{
    tune_task *t = task_for(plain);

    open_measurer((tune_measure_options){.min_seconds = 0.2, .repeats = 4});
    tune_result r = measure_one(t, fast, false);
    is_good(&r, false);
    cr_assert_eq(r.n_costs, 4);
    cr_assert(m->stats(m).timed >= 0.2, "%g", m->stats(m).timed);
}

/* What a cancel drops is no error. */
Test(measure, a_cancel_lets_go_those_who_wait)
{
    tune_task *t = task_for(tiled);
    tune_candidate c = {.task = t, .trace = doing(hanging), .seed = 1};
    tune_result r;

    open_measurer((tune_measure_options){.run_timeout = 600});
    cr_assert(m->submit(m, cx, &c, 1));
    while (m->stats(m).link == 0)
        usleep(10000);
    double begun = tec_clock();
    cr_assert_eq(m->collect(m, cx, t, &r, 1, 0.3), 0, "a wait ends");
    m->cancel(m);
    cr_assert_eq(m->collect(m, cx, t, &r, 1, INFINITY), 0);
    cr_assert(m->submit(m, cx, &c, 1));
    cr_assert_eq(m->collect(m, cx, NULL, &r, 1, INFINITY), 0);
    cr_assert(tec_clock() - begun < 60);
    cr_assert_not(base_failed(cx));
}

/* The first task's candidate hangs. */
Test(measure, no_task_waits_for_another_one)
{
    tune_task *hung = task_for(tiled), *quick = task_for(plain);
    const tune_candidate c[] = {{.task = quick, .trace = fast, .seed = 1},
                                {.task = hung, .trace = doing(hanging), .seed = 1}};
    tune_result r[2];

    open_measurer((tune_measure_options){.run_timeout = 3});
    cr_assert(m->submit(m, cx, &c[1], 1));
    cr_assert(m->submit(m, cx, &c[0], 1));
    cr_assert_eq(m->collect(m, cx, quick, r, 2, INFINITY), 1);
    is_good(&r[0], false);
    cr_assert_eq(m->collect(m, cx, hung, r, 2, INFINITY), 1);
    failed_as(&r[0], STORE_TIMEOUT, "run", "timeout", "no end within 3 s");
}

/* ---- bad ones ---- */

/* The next one is measured as if nothing had been. */
static void goes_on(const tune_task *t)
{
    tune_result r = measure_one(t, doing(right), true);

    is_good(&r, true);
}

Test(measure, a_crash_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    goes_on(t);
    tune_result r = measure_one(t, doing(crashing), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "SIGSEGV", "ended by SIGSEGV");
    cr_assert_eq(m->stats(m).runners_lost, 1);
    goes_on(t);
    cr_assert_eq(m->stats(m).runners_lost, 1);
}

Test(measure, a_hang_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){.run_timeout = 1});
    tune_result r = measure_one(t, doing(hanging), true);
    failed_as(&r, STORE_TIMEOUT, "run", "timeout", "no end within 1 s");
    goes_on(t);
}

Test(measure, allocating_without_end_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){.memory_limit = 64 << 20});
    tune_result r = measure_one(t, allocating(), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "memory", "ended by SIGSEGV");
    goes_on(t);
}

Test(measure, a_schedule_that_needs_too_much_memory_says_so)
{
    tune_task *t = task_for(
        "def f(A: f32[2048, 2048]) {\n  T[y, x] = A[y, x] * 2.0\n  C[y] = sum[x](T[y, x])\n  return C\n}\n");

    open_measurer((tune_measure_options){.memory_limit = 8 << 20});
    tune_result r = measure_one(t, "", false);
    failed_as(&r, STORE_RUN_ERROR, "run", "memory", "out of memory");
    r = measure_one(t, "compute_inline(T)\n", false);
    is_good(&r, false);
}

Test(measure, a_wrong_answer_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, doing("c[0] += 1;"), true);
    failed_as(&r, STORE_WRONG, "check", "wrong answer", "output 'C' [0, 0] is ");
    r = measure_one(t, doing(""), true);
    failed_as(&r, STORE_WRONG, "check", "wrong answer", "expected");
    r = measure_one(t, doing("c[0] += 1;"), false);
    is_good(&r, false);
    goes_on(t);
}

Test(measure, inputs_cannot_be_spoiled)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, doing("((float *)a)[0] = 5;"), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "SIGSEGV", "ended by SIGSEGV");
    goes_on(t);
}

Test(measure, a_runner_that_is_killed_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    goes_on(t);
    tune_result r = measure_one(t, killing_itself(SIGKILL), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "SIGKILL", "ended by SIGKILL");
    r = measure_one(t, killing_itself(SIGABRT), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "SIGABRT", "ended by SIGABRT");
    r = measure_one(t, doing(base_format(cx, "sys(%d, 3, 0, 0, 0, 0);", SYS_EXIT_)), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "exit", "ended with status 3");
    goes_on(t);
}

Test(measure, a_status_of_the_kernel_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, doing("return 7;"), false);
    failed_as(&r, STORE_RUN_ERROR, "run", "error", "mm");
    goes_on(t);
}

Test(measure, a_refused_trace_says_why)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, "vectorize(C.x)\nsplit(C.z, _, 4)\n", false);
    failed_as(&r, STORE_REFUSED, "schedule", "refused", "C.z");
    cr_assert(strstr(r.error, "trace:2"), "%s", r.error);
    goes_on(t);
    cr_assert_eq(m->stats(m).builders_lost, 0);
}

Test(measure, what_does_not_build_says_why)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, doing("return x;"), false);
    failed_as(&r, STORE_BUILD_ERROR, "build", "error", "clang-19 refuses the imported C");
    goes_on(t);
}

Test(measure, a_build_that_takes_too_long_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);

    open_measurer((tune_measure_options){.build_timeout = 1e-4});
    tune_result r = measure_one(t, doing(right), false);
    failed_as(&r, STORE_TIMEOUT, "build", "timeout", "no end within 0.0001 s");
    cr_assert(m->stats(m).builders_lost >= 1);
}

/* ---- workers ---- */

/* Processes of this one whose command line holds the word; the number, and the last in *pid. */
static int children(const char *word, pid_t *pid)
{
    DIR *d = opendir("/proc");
    int n = 0;

    for (struct dirent *e; (e = readdir(d));) {
        char path[300], text[4096];
        int parent = 0;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        if (atoi(e->d_name) <= 0 || !(f = fopen(path, "re")))
            continue;
        bool mine = fscanf(f, "%*d %*s %*s %d", &parent) == 1 && parent == getpid();
        fclose(f);
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        if (!mine || !(f = fopen(path, "re")))
            continue;
        size_t size = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[size] = '\0';
        for (size_t i = 0; i < size; i++)
            text[i] = text[i] ? text[i] : ' ';
        if (strstr(text, word)) {
            n++;
            *pid = atoi(e->d_name);
        }
    }
    closedir(d);
    return n;
}

Test(measure, a_worker_that_was_killed_at_rest_costs_no_trial)
{
    tune_task *t = task_for(tiled);
    pid_t pid = 0;

    open_measurer((tune_measure_options){.builders = 1});
    goes_on(t);
    cr_assert_eq(children("tec_runner", &pid), 1);
    kill(pid, SIGKILL);
    cr_assert_eq(children("build-worker", &pid), 1);
    kill(pid, SIGKILL);
    usleep(200000);
    goes_on(t);
    cr_assert_eq(m->stats(m).runners_lost, 1);
    cr_assert_eq(m->stats(m).builders_lost, 1);
}

Test(measure, a_runner_that_is_killed_at_work_is_one_failed_trial)
{
    tune_task *t = task_for(tiled);
    tune_result r;
    pid_t pid = 0;

    open_measurer((tune_measure_options){0});
    goes_on(t);
    cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = doing(hanging), .seed = 1}, 1));
    /* The runner is at work once its module is built; before that a kill costs nothing, so it is repeated. */
    while (m->collect(m, cx, NULL, &r, 1, 0) == 0) {
        if (m->stats(m).build > 0 && children("tec_runner", &pid))
            kill(pid, SIGKILL);
        usleep(100000);
    }
    failed_as(&r, STORE_RUN_ERROR, "run", "SIGKILL", "ended by SIGKILL");
    goes_on(t);
}

Test(measure, leaves_no_process_and_no_descriptor)
{
    tune_task *t = task_for(tiled);
    int before = 0, after = 0;
    pid_t pid;

    for (int fd = 0; fd < 256; fd++)
        before += fcntl(fd, F_GETFD) >= 0;
    for (int i = 0; i < 3; i++) {
        open_measurer((tune_measure_options){.run_timeout = 1});
        goes_on(t);
        measure_one(t, doing(crashing), false);
        cr_assert(m->submit(m, cx, &(tune_candidate){.task = t, .trace = doing(hanging)}, 1));
        usleep(50000 * i);
        m->close(m);
        m = NULL;
    }
    for (int fd = 0; fd < 256; fd++)
        after += fcntl(fd, F_GETFD) >= 0;
    cr_assert_eq(after, before);
    cr_assert_eq(children("tec", &pid), 0);
}

/* Whether the process runs; one that is dead but not reaped does not. */
static bool runs(pid_t pid)
{
    char path[64], state = 'Z';

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool known = fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
    fclose(f);
    return known && state != 'Z' && state != 'X';
}

/* In a process that is then killed: the numbers of its workers, one of which hangs in a candidate. */
static void work_until_killed(int out)
{
    tune_task *t = task_for(tiled);
    pid_t pid[2] = {0};

    open_measurer((tune_measure_options){.builders = 1, .run_timeout = 600});
    goes_on(t);
    m->submit(m, cx, &(tune_candidate){.task = t, .trace = doing(hanging)}, 1);
    while (m->stats(m).link == 0)
        usleep(10000);
    usleep(300000);
    children("tec_runner", &pid[0]);
    children("build-worker", &pid[1]);
    if (write(out, pid, sizeof pid) == sizeof pid)
        pause();
    _exit(1);
}

Test(measure, workers_end_with_a_tuner_that_is_killed)
{
    pid_t pid[2], child;
    int fd[2];

    cr_assert_eq(pipe(fd), 0);
    child = fork();
    if (child == 0)
        work_until_killed(fd[1]);
    close(fd[1]);
    cr_assert_eq(read(fd[0], pid, sizeof pid), (ssize_t)sizeof pid);
    cr_assert(pid[0] > 0 && pid[1] > 0 && runs(pid[0]) && runs(pid[1]));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 500 && (runs(pid[0]) || runs(pid[1])); i++)
        usleep(10000);
    cr_assert_not(runs(pid[0]));
    cr_assert_not(runs(pid[1]));
    close(fd[0]);
}

Test(measure, a_program_that_is_not_there_is_an_error)
{
    tune_measure_options o = {.builder = TEC_BINARY_DIR "/tec", .runner = "/nowhere/tec_runner"};

    cr_assert_null(tune_measurer_local(cx, &o));
    cr_assert(strstr(tec_context_error(cx), "'/nowhere/tec_runner', which does not exist"), "%s",
              tec_context_error(cx));
}

Test(measure, a_program_that_is_no_worker_is_an_error)
{
    tune_task *t = task_for(plain);
    tune_result r;

    open_measurer((tune_measure_options){.runner = "/bin/true"});
    cr_assert(m->submit(m, cx, &(tune_candidate){.task = t}, 1));
    cr_assert_eq(m->collect(m, cx, NULL, &r, 1, INFINITY), -1);
    cr_assert(
        strstr(tec_context_error(cx), "'/bin/true' does not answer as a worker should: ended with status 0"),
        "%s", tec_context_error(cx));
}

/* ---- comparing, symbols, all cores ---- */

Test(measure, compares_two_in_turns)
{
    tune_task *t = task_for(plain);
    tune_candidate slow = {.task = t, .seed = 1, .check = true},
                   quick = {.task = t, .trace = fast, .seed = 1, .check = true};
    tune_result r[2];

    open_measurer((tune_measure_options){.repeats = 7});
    cr_assert(measure_pair(&slow, &quick, r), "%s", tec_context_error(cx));
    for (int i = 0; i < 2; i++) {
        is_good(&r[i], true);
        cr_assert_eq(r[i].n_costs, r[0].n_costs);
    }
    cr_assert(r[1].median < r[0].median);
}

Test(measure, a_comparison_with_one_that_fails_blames_that_one)
{
    tune_task *t = task_for(tiled);
    tune_candidate good = {.task = t, .trace = doing(right), .check = true},
                   wrong = {.task = t, .trace = doing(""), .check = true};
    tune_candidate refused = {.task = t, .trace = "unroll(C.z)\n"};
    tune_result r[2];

    open_measurer((tune_measure_options){0});
    cr_assert(measure_pair(&good, &wrong, r));
    failed_as(&r[0], STORE_CANCELLED, "run", "cancelled", "the other candidate");
    failed_as(&r[1], STORE_WRONG, "check", "wrong answer", "output 'C'");
    cr_assert(measure_pair(&refused, &good, r));
    failed_as(&r[0], STORE_REFUSED, "schedule", "refused", "C.z");
    failed_as(&r[1], STORE_CANCELLED, "build", "cancelled", "the other candidate");
    goes_on(t);
}

Test(measure, a_default_that_fails_is_nobodys_fault)
{
    tune_task *t = task_for(tiled);

    t->default_trace = doing(crashing);
    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, doing(right), true);
    failed_as(&r, STORE_DEVICE_ERROR, "reference", "SIGSEGV", "ended by SIGSEGV");
    t->default_trace = "unroll(C.z)\n";
    r = measure_one(t, doing(right), true);
    failed_as(&r, STORE_DEVICE_ERROR, "reference", "refused", "C.z");
    r = measure_one(t, doing(right), false);
    is_good(&r, false);
}

Test(measure, symbols_have_the_values_of_the_task)
{
    const char text[] = "def f(n, A: f32[n, 8]) {\n  C[y] = sum[x](A[y, x])\n  return C\n}\n";
    tune_task *t = task_for(text);
    int64_t small = 3;

    open_measurer((tune_measure_options){0});
    tune_result r = measure_one(t, "", true);
    is_good(&r, true);
    t->dims = &small;
    tune_result s = measure_one(t, "", true);
    is_good(&s, true);
    cr_assert(s.median < r.median);
}

Test(measure, takes_turns_where_all_cores_are_measured)
{
    tune_task *t = task_for(plain);
    tune_candidate c[6];
    tune_result r[6];

    open_measurer((tune_measure_options){.threads = (int)sysconf(_SC_NPROCESSORS_ONLN), .builders = 2});
    for (int i = 0; i < 6; i++)
        c[i] =
            (tune_candidate){.task = t, .trace = i % 2 ? "parallel(C.y)\n" : fast, .seed = 1, .check = true};
    cr_assert(m->submit(m, cx, c, 6));
    usleep(300000);
    cr_assert_eq(m->stats(m).run, 0, "something ran while nobody waited");
    cr_assert_eq(m->collect(m, cx, NULL, r, 6, INFINITY), 6);
    for (int i = 0; i < 6; i++)
        is_good(&r[i], true);
}

Test(measure, keeps_the_caller_off_the_measured_cores)
{
    cpu_set_t before, during, after;

    sched_getaffinity(0, sizeof before, &before);
    if (CPU_COUNT(&before) < 2)
        return;
    open_measurer((tune_measure_options){.threads = 1});
    sched_getaffinity(0, sizeof during, &during);
    m->close(m);
    m = NULL;
    sched_getaffinity(0, sizeof after, &after);
    cr_assert(CPU_COUNT(&during) < CPU_COUNT(&before));
    cr_assert(CPU_EQUAL(&before, &after));
}
