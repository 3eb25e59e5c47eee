/* tools/fuzz_jobs.c -- the processes of `tec fuzz`: the child that works through a range of cases, the parent
 * that collects rows.
 *
 * A row is a line: index, outcome, accepted, refused, primitives, passes, where, what, with tabs between. The
 * child writes what it is about to do into memory that it shares with the parent, so that the parent knows
 * the case of a process that died.
 */
#include "tools/fuzz_jobs.h"
#include "tools/context.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tec/runtime.h"
#include "tools/args.h"

extern char **environ;

enum { NOTE_FD = 3, NOTE_BYTES = 1 << 17, LINE_BYTES = 1 << 15, CHUNK = 8, MAX_JOBS = 64, MAX_MEMORY_GB = 8 };

/* ---- the child ---- */

/* Called before each step of making a case, too: a schedule that crashes is then known up to that step. */
static void note_case(void *user, const fuzz_case *sample, const char *step)
{
    char *note = user;
    tec_context *cx = tool_context();
    fuzz_case with = *sample;

    with.trace = step ? base_format(cx, "%s%s\n", sample->trace, step) : sample->trace;
    if (note)
        snprintf(note, NOTE_BYTES, "%s", fuzz_case_text(cx, &with, NULL));
    tec_context_free(cx);
}

/* NULL in a worker that was started by hand. */
static char *open_note(void)
{
    char *note = mmap(NULL, NOTE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, NOTE_FD, 0);

    return note == MAP_FAILED ? NULL : note;
}

/* A case that asks for too much then fails by itself, and not by bringing the machine down. No core files, of
 * which there could be thousands. */
static void limit_memory(void)
{
    struct rlimit most = {(rlim_t)MAX_MEMORY_GB << 30, (rlim_t)MAX_MEMORY_GB << 30};

#if !defined(__SANITIZE_ADDRESS__) &&                                                                        \
    !defined(__SANITIZE_THREAD__) /* their shadow is memory of the process */
    setrlimit(RLIMIT_AS, &most);
#endif
    most = (struct rlimit){0, 0};
    setrlimit(RLIMIT_CORE, &most);
}

static void print_escaped(const char *s, int most)
{
    for (; *s && most > 0; s++, most--)
        if (*s == '\n')
            fputs("\\n", stdout);
        else
            putchar(*s == '\t' || *s == '\\' ? ' ' : *s);
}

/* Flushed row by row: a child may die at the next case. */
static void print_row(const fuzz_case *sample, const fuzz_result *result)
{
    printf("%" PRId64 "\t%d\t%d\t%d\t%" PRIx64 "\t%" PRIx64 "\t", sample->index, (int)result->outcome,
           result->steps, sample->refused + result->refused, result->primitives, result->passes);
    print_escaped(result->where, 200);
    putchar('\t');
    print_escaped(result->what, 4000);
    putchar('\n');
    fflush(stdout);
}

static void work_on(tec_context *cx, const fuzz_case *sample, const target *machine, tool_fuzz_server *server,
                    char *note)
{
    fuzz_elsewhere there = server->address ? tool_fuzz_there(server) : (fuzz_elsewhere){0};
    fuzz_result r;

    note_case(note, sample, NULL);
    fuzz_check_on(cx, sample, machine, server->address || server->compile_only ? &there : NULL, &r);
    print_row(sample, &r);
}

/* The child: cases first to end-1, one row each on standard output. */
int tool_fuzz_work(const target *machine, tec_context *cx, tool_fuzz_server *server, uint64_t seed,
                   int64_t first, int64_t end)
{
    char *note = open_note();

    limit_memory();
    for (int64_t i = first; i < end; i++) {
        tec_context *child = base_child(cx);

        if (note)
            *note = '\0';
        fuzz_case c = fuzz_make(child, seed, i, machine, &(fuzz_watch){note_case, note});

        work_on(child, &c, machine, server, note);
        tec_context_free(child);
    }
    tool_fuzz_leave(server);
    return TOOL_OK;
}

/* The child for a single case from a file; a file that is no case is invalid. */
int tool_fuzz_work_file(const target *machine, tec_context *cx, tool_fuzz_server *server, const char *path)
{
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    fuzz_case c;

    limit_memory();
    if (!text || !fuzz_case_parse(cx, path, text, &c)) {
        fuzz_result r = {
            .outcome = FUZZ_INVALID, .where = "definition", .what = base_strdup(cx, tec_context_error(cx))};

        print_row(&(fuzz_case){.trace = ""}, &r);
        return TOOL_OK;
    }
    work_on(cx, &c, machine, server, open_note());
    tool_fuzz_leave(server);
    return TOOL_OK;
}

/* ---- the parent ---- */

/* The note and the file of errors belong to one child; a new one gets its own. */
typedef struct {
    pid_t pid;
    int fd, n, errors;  /* of what it wrote: rows, and stderr */
    int64_t next, end;  /* the case that it works on, the end of its range */
    double begun, used; /* the case: by the clock, and processor time of the process before it */
    char *note;
    char text[LINE_BYTES];
} job;

/* Without a name in any folder: it goes with its last descriptor. */
static int memory_file(const char *name, size_t size)
{
    int fd = memfd_create(name, MFD_CLOEXEC);

    if (fd >= 0 && size && ftruncate(fd, (off_t)size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The child gets the pipe, the file for errors and the shared memory under fixed numbers. */
static bool spawn(job *work, const char *const *argv, int note_fd, int pipe_fd[2])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;

    /* A group of its own: Ctrl-C reaches only the parent, which ends it. */
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, work->errors, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, note_fd, NOTE_FD);
    int failed =
        posix_spawn(&work->pid, "/proc/self/exe", &actions, &attributes, (char **)(void *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed == 0;
}

static double processor_time(const job *work)
{
    struct timespec t;
    clockid_t clock;

    return clock_getcpuclockid(work->pid, &clock) == 0 && clock_gettime(clock, &t) == 0
               ? (double)t.tv_sec + (double)t.tv_nsec / 1e9
               : 0;
}

/* Called when the row of the case before has come. */
static void begin_case(job *work)
{
    work->begun = tec_clock();
    work->used = processor_time(work);
}

/* The limit is one of processor time, so that a busy machine fails no case; what waits for ever ends by the
 * clock. */
static bool is_late(const tool_fuzz_jobs *jobs, const job *work)
{
    enum { PATIENCE = 20 };

    return processor_time(work) - work->used > jobs->timeout ||
           tec_clock() - work->begun > PATIENCE * jobs->timeout;
}

/* A child with its pipe and its shared memory. False: it could not be started. After an error some
 * descriptors stay open, which the end of the program closes. */
static bool start(job *work, const char *const *argv)
{
    int pipe_fd[2], note_fd = memory_file("note", NOTE_BYTES);

    work->pid = 0;
    work->n = 0;
    work->errors = memory_file("errors", 0);
    work->note = note_fd < 0 ? MAP_FAILED : mmap(NULL, NOTE_BYTES, PROT_READ, MAP_SHARED, note_fd, 0);
    if (work->errors < 0 || work->note == MAP_FAILED || pipe2(pipe_fd, O_CLOEXEC) != 0)
        return false;
    bool good = spawn(work, argv, note_fd, pipe_fd);
    close(pipe_fd[1]);
    close(note_fd);
    work->fd = pipe_fd[0];
    begin_case(work);
    return good;
}

/* Which machine runs the code; NULL, the end of the arguments: the child's own. */
static const char *machine_option(const tool_fuzz_jobs *jobs)
{
    return jobs->rpc ? "--rpc" : jobs->compile_only ? "--compile-only" : NULL;
}

/* A child for the cases that this job still has. */
static bool start_range(const tool_fuzz_jobs *jobs, job *work)
{
    tec_context *cx = tool_context();
    const char *argv[] = {"tec",
                          "fuzz",
                          "--worker",
                          "--target",
                          jobs->target,
                          "--seed",
                          base_format(cx, "%" PRIu64, jobs->seed),
                          "--first",
                          base_format(cx, "%" PRId64, work->next),
                          "--cases",
                          base_format(cx, "%" PRId64, work->end - work->next),
                          "--plant",
                          jobs->plant ? jobs->plant : "none",
                          machine_option(jobs),
                          jobs->rpc,
                          "--key-file",
                          jobs->key_file,
                          NULL};
    bool good = start(work, argv);

    tec_context_free(cx);
    return good;
}

/* The opposite of print_escaped, which turns tabs and backslashes into blanks. */
static const char *unescaped(tec_context *cx, const char *text)
{
    char *out = base_strdup(cx, text), *to = out;

    for (; *text; text++)
        if (text[0] == '\\' && text[1] == 'n') {
            *to++ = '\n';
            text++;
        } else
            *to++ = *text;
    *to = '\0';
    return out;
}

/* Cuts the line in place. False: the line is not whole. Eight fields; a tab in the last one cannot occur. */
static bool read_row(tec_context *cx, char *line, tool_fuzz_row *out)
{
    char *field[8], *rest = NULL;
    int n = 0;

    for (char *f = line; f && n < 8; f = rest) {
        rest = strchr(f, '\t');
        if (rest)
            *rest++ = '\0';
        field[n++] = f;
    }
    if (n < 8)
        return false;
    *out = (tool_fuzz_row){.index = strtoll(field[0], NULL, 10),
                           .outcome = (fuzz_outcome)atoi(field[1]),
                           .accepted = atoi(field[2]),
                           .refused = atoi(field[3]),
                           .primitives = strtoull(field[4], NULL, 16),
                           .passes = strtoull(field[5], NULL, 16),
                           .where = unescaped(cx, field[6]),
                           .what = unescaped(cx, field[7])};
    return true;
}

/* The last lines that the process wrote to stderr. */
static const char *last_words(tec_context *cx, const job *work)
{
    char text[1500];
    off_t size = lseek(work->errors, 0, SEEK_END),
          from = size > (off_t)sizeof text - 1 ? size - (off_t)sizeof text + 1 : 0;
    ssize_t n = pread(work->errors, text, sizeof text - 1, from);

    text[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\t')
            text[i] = ' ';
    return base_strdup(cx, text);
}

/* What a process that died without its row says. */
static tool_fuzz_row obituary(const tool_fuzz_jobs *jobs, const job *work, int status, bool late)
{
    const char *words = last_words(jobs->cx, work), *how = late ? "it does not end"
                                                           : WIFSIGNALED(status)
                                                               ? strsignal(WTERMSIG(status))
                                                               : "it ended without a result";

    return (tool_fuzz_row){.index = work->next,
                           .outcome = FUZZ_WRONG,
                           .where = late ? "hang" : "crash",
                           .what = base_format(jobs->cx, "%s\n%s", how, words),
                           .text = base_strdup(jobs->cx, work->note)};
}

/* Waits for the end; true: it died in the middle of a case, *row is about that. */
static bool finish(const tool_fuzz_jobs *jobs, job *work, bool late, tool_fuzz_row *row)
{
    int status = 0;
    bool died;

    close(work->fd);
    if (late)
        kill(work->pid, SIGKILL);
    waitpid(work->pid, &status, 0);
    died = work->next < work->end;
    if (died)
        *row = obituary(jobs, work, status, late);
    munmap(work->note, NOTE_BYTES);
    close(work->errors);
    work->pid = 0;
    return died;
}

/* Rows wait here until those of all cases before them came. row[told] is the first that was not handed on.
 * `enough`: the one who takes rows wants no more. */
typedef struct {
    const tool_fuzz_jobs *j;
    tool_fuzz_row *row;
    bool *here;
    int64_t told;
    bool enough;
} collection;

/* A row of a case outside of the range comes from a child that was started for another one, and is
 * dropped. */
static void collect(collection *all, const tool_fuzz_row *row)
{
    int64_t k = row->index - all->j->first, n = all->j->end - all->j->first;

    if (k < 0 || k >= n)
        return;
    all->row[k] = *row;
    all->here[k] = true;
    for (; !all->enough && all->told < n && all->here[all->told]; all->told++)
        all->enough = !all->j->row(all->j->user, &all->row[all->told]);
}

/* Takes all whole lines out of what was read; the rest stays for the next time. */
static void take_lines(collection *all, job *work)
{
    char *line = work->text, *end;

    for (; (end = memchr(line, '\n', (size_t)(work->text + work->n - line))); line = end + 1) {
        tool_fuzz_row row;

        *end = '\0';
        if (read_row(all->j->cx, line, &row)) {
            work->next = row.index + 1;
            begin_case(work);
            collect(all, &row);
        }
    }
    work->n -= (int)(line - work->text);
    memmove(work->text, line, (size_t)work->n);
}

/* Reads what it wrote; a process that ended in the middle of its range is followed by another for the rest. A
 * child that died takes its own case with it, which becomes a row, and the case behind it begins in a new
 * child. */
static bool serve(collection *all, job *work, bool readable)
{
    tool_fuzz_row row;

    if (readable) {
        ssize_t got = read(work->fd, work->text + work->n, sizeof work->text - (size_t)work->n);

        if (got > 0) {
            work->n += (int)got;
            take_lines(all, work);
            return true;
        }
        if (got < 0 && errno == EINTR)
            return true;
    } else if (!is_late(all->j, work))
        return true;
    if (!finish(all->j, work, !readable, &row))
        return true;
    collect(all, &row);
    work->next++;
    return work->next >= work->end || start_range(all->j, work);
}

/* Starts what is free on the next cases; gives how many processes run, or -1. Chunks are small, so that a
 * slow case delays few others. */
static int keep_busy(const tool_fuzz_jobs *given, job *jobs, int count, int64_t *next, struct pollfd *fds)
{
    int running = 0;

    for (int i = 0; i < count; i++) {
        if (!jobs[i].pid && *next < given->end) {
            jobs[i].next = *next;
            jobs[i].end = *next = *next + CHUNK < given->end ? *next + CHUNK : given->end;
            if (!start_range(given, &jobs[i]))
                return -1;
        }
        fds[i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].fd : -1, .events = POLLIN};
        running += jobs[i].pid != 0;
    }
    return running;
}

/* Ends all processes; their rows are not waited for. */
static void drop(job *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (jobs[i].pid) {
            kill(jobs[i].pid, SIGKILL);
            waitpid(jobs[i].pid, NULL, 0);
            close(jobs[i].fd);
            close(jobs[i].errors);
            munmap(jobs[i].note, NOTE_BYTES);
        }
}

/* Ctrl-C is read from a file like the rows are, so that no row is lost half way. */
static int open_signals(sigset_t *old)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, old);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Keeps all jobs busy until the cases are done. Rows are handed on in the order of the cases. False:
 * interrupted, or *why says what failed. An example: cases 0..7 go to the first child, 8..15 to the second.
 * Rows of case 8 wait in `collection` until case 7 has told. */
bool tool_fuzz_run(const tool_fuzz_jobs *given, const char **why)
{
    collection all = {.j = given,
                      .row = base_array(given->cx, tool_fuzz_row, given->end - given->first),
                      .here = base_array(given->cx, bool, given->end - given->first)};
    int n = given->jobs < 1 ? 1 : given->jobs > MAX_JOBS ? MAX_JOBS : given->jobs, running = 0;
    job *jobs = base_array(given->cx, job, n);
    int64_t next = given->first;
    struct pollfd fds[MAX_JOBS + 1];
    sigset_t old;
    int signals = open_signals(&old);
    bool good = true, interrupted = false;

    *why = NULL;
    while (good && !all.enough && !interrupted && (running = keep_busy(given, jobs, n, &next, fds)) > 0) {
        fds[n] = (struct pollfd){.fd = signals, .events = POLLIN};
        poll(fds, (nfds_t)n + 1, 200);
        interrupted = fds[n].revents != 0;
        for (int i = 0; i < n && good && !interrupted; i++)
            good = !jobs[i].pid || serve(&all, &jobs[i], fds[i].revents != 0);
    }
    if (!good || running < 0)
        *why = "a process could not be started";
    drop(jobs, n);
    close(signals);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return good && running >= 0 && !interrupted;
}

/* One case from a file in a child; a crash or a hang becomes a row too. */
bool tool_fuzz_try(const tool_fuzz_jobs *jobs, const char *path, tool_fuzz_row *out)
{
    const char *argv[] = {"tec",
                          "fuzz",
                          "--worker",
                          "--target",
                          jobs->target,
                          "--file",
                          path,
                          "--plant",
                          jobs->plant ? jobs->plant : "none",
                          machine_option(jobs),
                          jobs->rpc,
                          "--key-file",
                          jobs->key_file,
                          NULL};
    job *b = base_new(jobs->cx, job);
    bool late = false, row = false;

    if (!start(b, argv))
        return false;
    for (;;) {
        struct pollfd fd = {.fd = b->fd, .events = POLLIN};

        late = poll(&fd, 1, 200) == 0 && is_late(jobs, b);
        ssize_t got = fd.revents ? read(b->fd, b->text + b->n, sizeof b->text - 1 - (size_t)b->n) : 1;
        b->n += fd.revents && got > 0 ? (int)got : 0;
        if (late || got == 0)
            break;
    }
    b->text[b->n] = '\0';
    b->text[strcspn(b->text, "\n")] = '\0';
    row = b->n > 0 && read_row(jobs->cx, b->text, out);
    b->next = row ? 1 : 0;
    b->end = 1;
    finish(jobs, b, late, out);
    return true;
}
