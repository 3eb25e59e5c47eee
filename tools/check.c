/* tools/check.c -- `tec check`: each case in a process of its own, so that a crash or a hang is that case's
 * failure alone.
 *
 * The parent never compiles: it starts `tec check --one DIR` for each case, at most --jobs at once, and reads
 * one line from each. What a child that dies has printed before is lost; the cause is told instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/limit.h"
#include "compiler/generators.h"
#include "tec/device.h"
#include "tools/check_case.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/device_cache.h"
#include "tools/limits.h"

extern char **environ;

enum { MOST_WORDS = 14 + TOOL_REMOTE_WORDS + 2 * BASE_N_LIMITS }; /* of a child's command line */

typedef struct {
    const char *target, *precision, *device_cache;
    tool_list limits;
    check_where where; /* neither a server nor a tracker: this machine */
    int64_t jobs, timeout;
    bool verbose, one, json, compile_only;
} settings;

/* A case in its process. pid 0: free. text[0..n) is what the child wrote so far. */
typedef struct {
    pid_t pid;
    int fd, n;
    const char *dir;
    double deadline;
    char text[4096];
} job;

/* count[] is indexed by the outcome. */
typedef struct {
    const settings *s;
    cJSON *rows;
    bool device; /* the target is of a device beside the host */
    int count[3];
    int64_t on_device, on_host; /* operators */
    int64_t loaded, compiled;   /* programs of device code: from the cache, by the driver */
} tally;

static const char *const words[] = {"pass", "fail", "unsupported"};

/* ---- the child: one case, its outcome on the pipe ---- */

/* The time of a case begins when it has its device: waiting for one is no fault of the case. */
static void tell_ready(void)
{
    putchar('+');
    fflush(stdout);
}

/* Ends with status 0 also for a case that fails: the line tells. */
static int check_one(const char *dir, const settings *given)
{
    tec_context *cx = tool_context();
    const target *t = tool_target(cx, given->target, 1);

    if (!t)
        return tool_fail("check", cx);
    if (!tool_set_limits("check", cx, &given->limits))
        return TOOL_USAGE;
    tec_error err = {0};
    int64_t loaded, compiled;
    const check_where where = {given->where.options, tell_ready};
    if (!tool_open_device_cache(cx, given->device_cache, &err)) {
        tec_context_free(cx);
        return tool_fail_run("check", &err);
    }
    check_result r = check_case(cx, dir, t,
                                &(check_options){.where = tool_is_remote(&where.options) ? &where : NULL,
                                                 .verbose = given->verbose,
                                                 .compile_only = given->compile_only});
    tec_device_cache_counts(&loaded, &compiled);
    printf("%d %d %d %lld %lld %s\n", (int)r.outcome, r.on_device, r.on_host, (long long)loaded,
           (long long)compiled, r.reason);
    fflush(stdout);
    tec_context_free(cx);
    return TOOL_OK;
}

/* ---- the parent ---- */

/* Starts `tec check --one DIR` with its standard output in a pipe. False: no process could be started. */
static bool start(job *work, const char *dir, const settings *given)
{
    const char *argv[MOST_WORDS] = {"tec", "check", "--one", "--target", given->target, dir};
    tool_remote_words numbers;
    posix_spawn_file_actions_t actions;
    int pipe_fd[2], n = 6;

    if (given->verbose)
        argv[n++] = "--verbose";
    if (given->compile_only)
        argv[n++] = "--compile-only";
    if (given->device_cache) {
        argv[n++] = "--device-cache";
        argv[n++] = given->device_cache;
    }
    for (int i = 0; i < given->limits.n; i++) {
        argv[n++] = "--limit";
        argv[n++] = given->limits.at[i];
    }
    tool_remote_say(&given->where.options, &numbers, argv + n);
    if (pipe2(pipe_fd, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], STDOUT_FILENO);
    if (!given->verbose)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
    int failed = posix_spawn(&work->pid, "/proc/self/exe", &actions, NULL, (char **)(void *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fd[1]);
    work->fd = pipe_fd[0];
    work->n = 0;
    work->dir = dir;
    work->deadline = given->where.options.tracker ? INFINITY : tec_clock() + (double)given->timeout;
    if (failed)
        close(pipe_fd[0]);
    return failed == 0;
}

/* One line for a case, or a row of the JSON that is printed at the end. */
static void tell(tally *sum, const char *dir, check_result result)
{
    sum->count[result.outcome]++;
    sum->on_device += result.on_device;
    sum->on_host += result.on_host;
    if (sum->rows) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddStringToObject(row, "case", dir);
        cJSON_AddStringToObject(row, "outcome", words[result.outcome]);
        cJSON_AddStringToObject(row, "reason", result.reason);
        if (sum->device) {
            cJSON_AddNumberToObject(row, "on_device", result.on_device);
            cJSON_AddNumberToObject(row, "on_host", result.on_host);
        }
        cJSON_AddItemToArray(sum->rows, row);
    } else {
        printf("%-11s %s%s%s\n", words[result.outcome], dir, *result.reason ? ": " : "", result.reason);
        fflush(stdout);
    }
}

/* "0 5 1 2 0 reason": outcome, operators on the device and on the host, device code from the cache and
 * compiled, reason. The reason may be empty. */
static bool read_result(char *text, check_result *result, tally *sum)
{
    long long loaded, compiled;
    int outcome, at = 0;

    text[strcspn(text, "\n")] = '\0';
    if (sscanf(text, "%d %d %d %lld %lld%n", &outcome, &result->on_device, &result->on_host, &loaded,
               &compiled, &at) != 5 ||
        outcome < 0 || outcome > 2)
        return false;
    sum->loaded += loaded;
    sum->compiled += compiled;
    result->outcome = (check_outcome)outcome;
    result->reason = text[at] ? text + at + 1 : "";
    return true;
}

/* Ends the process of a case. Its line is its result; without one it crashed. A late child is killed before
 * it is waited for. */
static void finish(job *work, tally *sum, bool late)
{
    int status;
    char reason[128];
    check_result r;

    close(work->fd);
    if (late)
        kill(work->pid, SIGKILL);
    waitpid(work->pid, &status, 0);
    work->text[work->n] = '\0';
    work->pid = 0;
    if (late)
        snprintf(reason, sizeof reason, "no end within %lld s", (long long)sum->s->timeout);
    else if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "crashed: %s", strsignal(WTERMSIG(status)));
    else if (!read_result(work->text, &r, sum))
        snprintf(reason, sizeof reason, "ended without a result (status %d)", WEXITSTATUS(status));
    else {
        tell(sum, work->dir, r);
        return;
    }
    tell(sum, work->dir, (check_result){.outcome = CHECK_FAIL, .reason = reason});
}

/* The sign that the case has its device is not kept: from then on it has its time. */
static void take(job *work, int size, double timeout)
{
    char *at = work->text + work->n;

    if (work->n == 0 && size > 0 && *at == '+') {
        work->deadline = tec_clock() + timeout;
        memmove(at, at + 1, (size_t)--size);
    }
    work->n += size;
}

/* Reads what children wrote; ends those that closed their pipe or are late. Waits 200 ms at most, so that
 * deadlines are kept. A line that fills the buffer is cut by never being read further. */
static void serve(job *jobs, int count, tally *sum)
{
    struct pollfd fds[64];

    for (int i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].fd : -1, .events = POLLIN};
    poll(fds, (nfds_t)count, 200);
    for (int i = 0; i < count; i++) {
        job *j = &jobs[i];

        if (!j->pid)
            continue;
        if (fds[i].revents) {
            ssize_t got = read(j->fd, j->text + j->n, sizeof j->text - 1 - (size_t)j->n);

            if (got > 0 && j->n + got < (ssize_t)sizeof j->text - 1)
                take(j, (int)got, (double)sum->s->timeout);
            else if (got == 0 || (got < 0 && errno != EINTR))
                finish(j, sum, false);
        } else if (tec_clock() > j->deadline)
            finish(j, sum, true);
    }
}

static int running(const job *jobs, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += jobs[i].pid != 0;
    return count;
}

/* At most `jobs` cases at once, in the order of the command line. */
static void check_all(const tool_list *dirs, tally *sum)
{
    job *jobs = calloc(64, sizeof *jobs);
    int n = sum->s->jobs < 1 ? 1 : sum->s->jobs > 64 ? 64 : (int)sum->s->jobs, next = 0;

    while (jobs && (next < dirs->n || running(jobs, n))) {
        for (int i = 0; i < n && next < dirs->n; i++)
            if (!jobs[i].pid) {
                const char *dir = dirs->at[next++];

                if (!start(&jobs[i], dir, sum->s))
                    tell(sum, dir, (check_result){.outcome = CHECK_FAIL, .reason = "cannot start a process"});
            }
        serve(jobs, n, sum);
    }
    free(jobs);
}

/* Why code for the target cannot run here; NULL: it can. A server says so itself. */
static const char *why_unfit(tec_context *cx, const target *machine, const settings *given)
{
    return tool_is_remote(&given->where.options) || given->compile_only ? NULL : comp_unfit(cx, machine);
}

/* The share of operators on the device counts over all cases, failed ones too. */
static void print_totals(const tally *sum)
{
    int64_t all = sum->on_device + sum->on_host;

    if (sum->device)
        printf("%lld of %lld operators %s the device (%.1f %%)\n", (long long)sum->on_device, (long long)all,
               sum->s->compile_only ? "are for" : "ran on",
               all ? 100.0 * (double)sum->on_device / (double)all : 100.0);
    if (sum->loaded + sum->compiled > 0)
        printf("device code: %lld from the cache, %lld compiled\n", (long long)sum->loaded,
               (long long)sum->compiled);
    printf("%d passed, %d failed, %d unsupported\n", sum->count[0], sum->count[1], sum->count[2]);
}

/* What a device far away says that its CPU is. NULL: it cannot be asked, reported. */
static const char *ask_target(tec_context *cx, const settings *given)
{
    tec_error err = {0};
    tool_remote device;
    const tec_rpc_offer *offer = tool_remote_open(&device, "check", &given->where.options, NULL, &err)
                                     ? tec_rpc_list(device.server, false, &err)
                                     : NULL;
    const target *found = offer ? target_of_machine(cx, offer->target) : NULL;

    if (!found)
        offer ? tool_fail("check", cx) : tool_fail_run("check", &err);
    tool_remote_close(&device);
    return found ? target_text(cx, found) : NULL;
}

/* Looks first whether the target can run at all, which no case then needs to find out. */
static int check(const tool_list *dirs, settings *given)
{
    tally t = {.s = given, .rows = given->json ? cJSON_CreateArray() : NULL};
    tec_context *cx = tool_context();

    if (!tool_set_limits("check", cx, &given->limits)) {
        tec_context_free(cx);
        return TOOL_USAGE;
    }
    if (!given->target && tool_is_remote(&given->where.options) && !(given->target = ask_target(cx, given))) {
        tec_context_free(cx);
        return TOOL_FAILED;
    }
    given->target = given->target ? given->target : "native";
    const target *wanted = tool_target(cx, given->target, 1);
    const char *unfit = wanted ? why_unfit(cx, wanted, given) : NULL;

    if (!wanted || unfit) {
        int status = wanted ? TOOL_FAILED : tool_fail("check", cx);

        if (unfit)
            fprintf(stderr, "tec check: %s\n", unfit);
        tec_context_free(cx);
        return status;
    }
    t.device = !target_offers(wanted, TARGET_HOST);
    check_all(dirs, &t);
    tec_context_free(cx);
    if (t.rows) {
        char *text = cJSON_Print(t.rows);

        printf("%s\n", text);
        free(text);
        cJSON_Delete(t.rows);
    } else
        print_totals(&t);
    return t.count[CHECK_FAIL] ? TOOL_FAILED : TOOL_OK;
}

/* The command: reads its options and runs all cases, or with --one a single case in this process. */
int tool_check(int argc, char **argv)
{
    settings s = {.jobs = sysconf(_SC_NPROCESSORS_ONLN), .timeout = 300};
    tool_list dirs = {0};
    const tool_option options[] = {
        {"target", TOOL_TARGET, &s.target, "T",
         "what to compile for (native; with --rpc or --tracker what the device's CPU is)"},
        {"precision", TOOL_CHOICE, &s.precision, TOOL_PRECISION_VALUE, TOOL_PRECISION_HELP},
        TOOL_REMOTE_OPTIONS(s.where.options),
        {"jobs", TOOL_COUNT, &s.jobs, "N", "cases at once (the number of cores)"},
        {"timeout", TOOL_COUNT, &s.timeout, "S", "seconds after which a case has failed (300)"},
        {"verbose", TOOL_FLAG, &s.verbose, NULL, "names the node that made a wrong value"},
        {"compile-only", TOOL_FLAG, &s.compile_only, NULL,
         "runs nothing: a case passes when it is compiled, for any target"},
        {"device-cache", TOOL_TEXT, &s.device_cache, "DIR|off", TOOL_DEVICE_CACHE_HELP},
        {"limit", TOOL_LIST, &s.limits, TOOL_LIMIT_VALUE, TOOL_LIMIT_WHAT},
        {"json", TOOL_FLAG, &s.json, NULL, "print JSON"},
        {"one", TOOL_FLAG, &s.one, NULL, "one case in this process, for the command's own use"},
    };
    const tool_usage usage = {"check",
                              "DIR...",
                              "Compiles and runs ONNX test cases, and compares the outputs. A case is a "
                              "directory with model.onnx and test_data_set_*/{input,output}_*.pb.",
                              options,
                              BASE_COUNT(options),
                              1,
                              -1};
    tool_target_text room;
    int status = tool_parse(&usage, argc, argv, &dirs);

    if (status != TOOL_GO_ON ||
        (status = tool_take_precision("check", &s.target, s.precision, &room)) != TOOL_GO_ON ||
        (status = tool_remote_check("check", &s.where.options)) != TOOL_GO_ON)
        return status;
    return s.one ? check_one(dirs.at[0], &s) : check(&dirs, &s);
}
