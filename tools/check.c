/* tools/check.c -- `tec check`: each case in a process of its own, so that a crash or a hang is that case's failure alone. */
#include <errno.h>
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

#include "tools/check_case.h"
#include "tools/command.h"
#include "tools/data.h"

extern char **environ;

typedef struct {
    const char *target;
    int64_t jobs, timeout;
    bool verbose, one, json;
} settings;

/* A case in its process. */
typedef struct {
    pid_t pid;
    int fd, n;
    const char *dir;
    double deadline;
    char text[4096];
} job;

typedef struct {
    const settings *s;
    cJSON *rows;
    int count[3];
} tally;

static const char *const words[] = {"pass", "fail", "unsupported"};

/* ---- the child: one case, its outcome on the pipe ---- */

static int check_one(const char *dir, const settings *s)
{
    tec_context *cx = tec_context_new();
    const target *t = tool_target(cx, s->target, 1);

    if (!t)
        return tool_fail("check", cx);
    check_result r = check_case(cx, dir, t, s->verbose);
    printf("%d%s\n", (int)r.outcome, r.reason);
    fflush(stdout);
    tec_context_free(cx);
    return TOOL_OK;
}

/* ---- the parent ---- */

static bool start(job *j, const char *dir, const settings *s)
{
    const char *argv[] = {"tec", "check", "--one", "--target", s->target, dir, s->verbose ? "--verbose" : NULL, NULL};
    posix_spawn_file_actions_t actions;
    int pipe_fd[2];

    if (pipe(pipe_fd) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_fd[0]);
    posix_spawn_file_actions_addclose(&actions, pipe_fd[1]);
    if (!s->verbose)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
    int failed = posix_spawn(&j->pid, "/proc/self/exe", &actions, NULL, (char **)(void *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fd[1]);
    j->fd = pipe_fd[0];
    j->n = 0;
    j->dir = dir;
    j->deadline = tec_clock() + (double)s->timeout;
    if (failed)
        close(pipe_fd[0]);
    return failed == 0;
}

static void tell(tally *t, const char *dir, check_outcome outcome, const char *reason)
{
    t->count[outcome]++;
    if (t->rows) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddStringToObject(row, "case", dir);
        cJSON_AddStringToObject(row, "outcome", words[outcome]);
        cJSON_AddStringToObject(row, "reason", reason);
        cJSON_AddItemToArray(t->rows, row);
    } else {
        printf("%-11s %s%s%s\n", words[outcome], dir, *reason ? ": " : "", reason);
        fflush(stdout);
    }
}

static void finish(job *j, tally *t, bool late)
{
    int status;
    char reason[128];

    close(j->fd);
    if (late)
        kill(j->pid, SIGKILL);
    waitpid(j->pid, &status, 0);
    j->text[j->n] = '\0';
    j->pid = 0;
    if (late)
        snprintf(reason, sizeof reason, "no end within %lld s", (long long)t->s->timeout);
    else if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "crashed: %s", strsignal(WTERMSIG(status)));
    else if (j->n < 2 || j->text[0] < '0' || j->text[0] > '2')
        snprintf(reason, sizeof reason, "ended without a result (status %d)", WEXITSTATUS(status));
    else {
        j->text[strcspn(j->text, "\n")] = '\0';
        tell(t, j->dir, (check_outcome)(j->text[0] - '0'), j->text + 1);
        return;
    }
    tell(t, j->dir, CHECK_FAIL, reason);
}

/* Reads what children wrote; ends those that closed their pipe or are late. */
static void serve(job *jobs, int n, tally *t)
{
    struct pollfd fds[64];

    for (int i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].fd : -1, .events = POLLIN};
    poll(fds, (nfds_t)n, 200);
    for (int i = 0; i < n; i++) {
        job *j = &jobs[i];

        if (!j->pid)
            continue;
        if (fds[i].revents) {
            ssize_t got = read(j->fd, j->text + j->n, sizeof j->text - 1 - (size_t)j->n);

            if (got > 0 && j->n + got < (ssize_t)sizeof j->text - 1)
                j->n += (int)got;
            else if (got == 0 || (got < 0 && errno != EINTR))
                finish(j, t, false);
        } else if (tec_clock() > j->deadline)
            finish(j, t, true);
    }
}

static int running(const job *jobs, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += jobs[i].pid != 0;
    return count;
}

static void check_all(const tool_list *dirs, tally *t)
{
    job *jobs = calloc(64, sizeof *jobs);
    int n = t->s->jobs < 1 ? 1 : t->s->jobs > 64 ? 64 : (int)t->s->jobs, next = 0;

    while (jobs && (next < dirs->n || running(jobs, n))) {
        for (int i = 0; i < n && next < dirs->n; i++)
            if (!jobs[i].pid) {
                const char *dir = dirs->at[next++];

                if (!start(&jobs[i], dir, t->s))
                    tell(t, dir, CHECK_FAIL, "cannot start a process");
            }
        serve(jobs, n, t);
    }
    free(jobs);
}

static int check(const tool_list *dirs, const settings *s)
{
    tally t = {.s = s, .rows = s->json ? cJSON_CreateArray() : NULL};
    tec_context *cx = tec_context_new();
    const target *wanted = tool_target(cx, s->target, 1);
    const char *unfit = wanted ? target_unfit(cx, wanted) : NULL;

    if (!wanted || unfit) {
        int status = wanted ? TOOL_FAILED : tool_fail("check", cx);

        if (unfit)
            fprintf(stderr, "tec check: %s\n", unfit);
        tec_context_free(cx);
        return status;
    }
    tec_context_free(cx);
    check_all(dirs, &t);
    if (t.rows) {
        char *text = cJSON_Print(t.rows);

        printf("%s\n", text);
        free(text);
        cJSON_Delete(t.rows);
    } else
        printf("%d passed, %d failed, %d unsupported\n", t.count[0], t.count[1], t.count[2]);
    return t.count[CHECK_FAIL] ? TOOL_FAILED : TOOL_OK;
}

int tool_check(int argc, char **argv)
{
    settings s = {.target = "native", .jobs = sysconf(_SC_NPROCESSORS_ONLN), .timeout = 300};
    tool_list dirs = {0};
    const tool_option options[] = {
        {"target", TOOL_TEXT, &s.target, "T", "what to compile for; must run here (native)"},
        {"jobs", TOOL_COUNT, &s.jobs, "N", "cases at once (the number of cores)"},
        {"timeout", TOOL_COUNT, &s.timeout, "S", "seconds after which a case has failed (300)"},
        {"verbose", TOOL_FLAG, &s.verbose, NULL, "names the node that made a wrong value"},
        {"json", TOOL_FLAG, &s.json, NULL, "print JSON"},
        {"one", TOOL_FLAG, &s.one, NULL, "one case in this process, for the command's own use"},
    };
    const tool_usage usage = {"check", "DIR...", "Compiles, runs and compares cases: directories with model.onnx and test_data_set_*/{input,output}_*.pb.",
                              options, BASE_COUNT(options), 1, -1};
    int status = tool_parse(&usage, argc, argv, &dirs);

    if (status != TOOL_GO_ON)
        return status;
    return s.one ? check_one(dirs.at[0], &s) : check(&dirs, &s);
}
