/* tvmtune/serve.c -- `tvmtune serve`: the daemon. One folder holds the store, the token, the port and the
 * files of running jobs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/stop.h"
#include "tvmtune/child.h"
#include "tvmtune/commands.h"
#include "tvmtune/config.h"
#include "tvmtune/http.h"
#include "tvmtune/run.h"
#include "tvmtune/users.h"

typedef struct {
    const char *state, *store, *tec, *config, *log, *run_log, *hosts, *tracker, *key_file;
    int64_t port, jobs, memory, patience, quota, keep_days, lease, body_seconds, tolerance, devices;
} settings;

/* What the loop looks after besides the jobs. */
typedef struct {
    tvm_doors *doors;
    tvm_devices *devices;
    tool_stop *stop;
} open_parts;

enum { TURN_MS = 50, QUIET_MS = 1000 };

/* ---- the folder ---- */

static const char *in_state(tec_context *cx, const settings *given, const char *name)
{
    return base_format(cx, "%s/%s", given->state, name);
}

/* One daemon for each folder; the kernel drops the lock with the process. -1 with an error. */
static int lock_folder(tec_context *cx, const settings *given)
{
    const char *path = in_state(cx, given, "lock");
    int fd = -1;

    if (mkdir(given->state, 0700) == 0 || errno == EEXIST)
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0 && errno == EWOULDBLOCK)
        base_fail(cx, TEC_INVALID, (base_loc){.file = given->state}, "another daemon serves this folder");
    else
        base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot lock the folder: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A file that this user alone may read. */
static bool write_secret(tec_context *cx, const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int why = errno;

    if (fd >= 0 && close(fd) != 0)
        ok = false;
    return ok || base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot write the token: %s", strerror(why));
}

static const char *make_token(tec_context *cx, const char *path)
{
    char text[TVM_TOKEN_SIZE];

    return tvm_new_token(cx, text) && write_secret(cx, path, text) ? base_strdup(cx, text) : NULL;
}

/* The token of the folder, made by its first daemon. A token that others may read is refused. */
static const char *find_token(tec_context *cx, const settings *given)
{
    const char *path = in_state(cx, given, "token");
    struct stat st;
    size_t size;

    if (stat(path, &st) != 0)
        return make_token(cx, path);
    if (st.st_mode & 077)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                         "other users may read the token (mode %03o): set its mode to 600, or remove the "
                         "file to get a new token",
                         (unsigned)st.st_mode & 0777);
    char *text = base_read_file(cx, path, &size);
    if (!text)
        return NULL;
    text[strcspn(text, "\r\n")] = '\0';
    return strlen(text) >= 16 ? text
                              : base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                                          "expected a token of at least 16 characters");
}

/* What other daemons of the store know this one by: made at the first start, because a daemon that comes
 * back has to find its jobs. */
static const char *find_name(tec_context *cx, const settings *given)
{
    enum { DIGITS = 8 };
    const char *path = in_state(cx, given, "name");
    struct utsname machine;
    char token[TVM_TOKEN_SIZE];
    size_t size;

    if (access(path, F_OK) != 0) {
        uname(&machine);
        if (!tvm_new_token(cx, token))
            return NULL;
        const char *made = base_format(cx, "%s-%.*s", machine.nodename, DIGITS, token);
        return base_write_file(cx, path, made, strlen(made)) ? made : NULL;
    }
    char *name = base_read_file(cx, path, &size);
    if (name)
        name[strcspn(name, "\r\n")] = '\0';
    return !name || *name ? name : base_fail(cx, TEC_INVALID, (base_loc){.file = path}, "the name is empty");
}

static const char *find_store(tec_context *cx, const settings *given)
{
    return given->store ? given->store : in_state(cx, given, "tune.db");
}

static const char *find_tec(tec_context *cx, const settings *given)
{
    return given->tec ? given->tec : tvm_beside(cx, "tec");
}

/* ---- running ---- */

/* Until it is asked to stop. A store that cannot be written is told once, and tried again every second. */
static void loop(tec_context *cx, const open_parts *parts, tvm_runner *runner)
{
    bool well = true;

    while (!tool_stop_asked(parts->stop, 0)) {
        bool ok = tvm_runner_step(runner, well ? TURN_MS : QUIET_MS);
        if (!ok && well)
            fprintf(stderr, "tvmtune serve: %s\n", tec_context_error(cx));
        tec_context_clear(cx);
        tvm_doors_tick(parts->doors);
        tvm_devices_tick(parts->devices);
        well = ok;
    }
}

/* What happens to jobs, for the journal. */
static void say_job(void *user, const store_queued *queued)
{
    (void)user;
    fprintf(stderr, "tvmtune serve: job %lld is %s%s%s\n", (long long)queued->id,
            store_queue_state_text(queued->state), *queued->cause ? ": " : "", queued->cause);
}

/* What the runner of the jobs is told of the settings. */
static tvm_runner_options runner_options(tec_context *cx, const settings *given)
{
    return (tvm_runner_options){.store = find_store(cx, given),
                                .name = find_name(cx, given),
                                .alone = !given->store,
                                .lease = given->lease,
                                .work = in_state(cx, given, "work"),
                                .tec = find_tec(cx, given),
                                .at_once = (int)given->jobs,
                                .memory = given->memory << 20,
                                .patience = given->patience,
                                .keep_seconds = given->keep_days * 24 * 3600,
                                .tracker = given->tracker,
                                .key_file = given->key_file,
                                .devices = given->devices,
                                .tolerance = given->tolerance,
                                .run_log = given->run_log,
                                .told = strcmp(given->log, "error") ? say_job : NULL};
}

/* Runs jobs while the doors are open. The file `port` is there exactly as long as jobs are run. */
static int serve_with(tec_context *cx, const settings *given, const open_parts *parts)
{
    const tvm_runner_options o = runner_options(cx, given);
    const char *port = base_format(cx, "%d\n", tvm_doors_port(parts->doors));
    tec_context *turns = tool_context();
    tvm_runner *runner = !o.name                    ? NULL
                         : access(o.tec, X_OK) == 0 ? tvm_runner_open(turns, &o)
                                                    : base_fail(turns, TEC_IO, (base_loc){.file = o.tec},
                                                                "cannot be run: %s", strerror(errno));
    bool ok = runner && base_write_file(turns, in_state(cx, given, "port"), port, strlen(port));

    if (ok) {
        fprintf(stderr, "tvmtune serve: http://127.0.0.1:%s", port);
        loop(turns, parts, runner);
        unlink(in_state(cx, given, "port"));
    }
    int status = ok ? TOOL_OK : tool_fail("serve", o.name ? turns : cx);
    tvm_runner_close(runner);
    tec_context_free(turns);
    return status;
}

/* Opens in this order: lock, token, devices, doors, runner; closes backwards. */
static int serve(tec_context *cx, const settings *given)
{
    int lock = lock_folder(cx, given);
    const char *token = lock >= 0 ? find_token(cx, given) : NULL;
    tool_stop *stop =
        token ? tool_stop_watch(cx, "tvmtune serve: stopping; jobs go on when the daemon starts again", NULL)
              : NULL;
    tvm_devices *devices = stop ? tvm_devices_open(cx, &(tvm_devices_options){.tec = find_tec(cx, given),
                                                                              .folder = given->state,
                                                                              .tracker = given->tracker,
                                                                              .key_file = given->key_file})
                                : NULL;
    const tvm_doors_options o = {.store = find_store(cx, given),
                                 .token = token,
                                 .port = (int)given->port,
                                 .quota = given->quota,
                                 .tracker = given->tracker,
                                 .devices = devices,
                                 .body_seconds = given->body_seconds,
                                 .hosts = given->hosts};
    tvm_doors *doors = devices ? tvm_doors_open(cx, &o) : NULL;

    const open_parts parts = {doors, devices, stop};
    int status = doors ? serve_with(cx, given, &parts) : tool_fail("serve", cx);

    tvm_doors_close(doors);
    tvm_devices_close(devices);
    tool_stop_close(stop);
    if (lock >= 0)
        close(lock);
    return status;
}

static int check_and_serve(tec_context *cx, const settings *given)
{
    if (!given->tracker && (given->key_file || given->tolerance || given->devices))
        return tool_misuse("serve", "--%s is for --tracker",
                           given->key_file    ? "key-file"
                           : given->tolerance ? "tolerance"
                                              : "devices");
    if (given->jobs > TVM_AT_ONCE || given->port > 65535)
        return tool_misuse("serve", "--jobs goes up to %d, --port up to 65535", TVM_AT_ONCE);
    return serve(cx, given);
}

/* Where the daemon keeps its state, and what it allows. */
static void add_service(tool_options *all, settings *to)
{
    const tool_option options[] = {
        {"state", TOOL_TEXT, &to->state, "DIR",
         "where the store, the token and the port are kept (" TVM_STATE ")"},
        {"store", TOOL_TEXT, &to->store, "STORE",
         "the record store: a file, or postgresql://... for daemons that share a queue (DIR/tune.db)"},
        {"lease", TOOL_COUNT, &to->lease, "S",
         "seconds after which another daemon of the store takes over the jobs of one that is not heard of "
         "(30)"},
        {"port", TOOL_NATURAL, &to->port, "N", "on 127.0.0.1; 0: the system chooses one (0)"},
        {"jobs", TOOL_COUNT, &to->jobs, "N", "jobs that run at once, up to 64 (1)"},
        {"memory", TOOL_NATURAL, &to->memory, "MB",
         "what each process of a job may allocate; 0: no limit (16384)"},
        {"patience", TOOL_COUNT, &to->patience, "S",
         "seconds without a word after which a process of a job is ended (600)"},
        {"quota", TOOL_NATURAL, &to->quota, "N",
         "the most unfinished jobs of one user; 0 is no limit (default: 0)"},
        {"keep-days", TOOL_NATURAL, &to->keep_days, "N",
         "jobs that were over for longer are removed, with their files; 0: never (0)"},
        {"body-seconds", TOOL_COUNT, &to->body_seconds, "S",
         "in which the body of a request must have arrived; later the connection is closed (300)"},
        {"hosts", TOOL_TEXT, &to->hosts, "NAMES",
         "further names of this daemon in the header Host, between commas: those of a proxy"},
    };

    TOOL_ADD(all, options);
}

/* Devices of a pool. */
static void add_pool(tool_options *all, settings *to)
{
    const tool_option options[] = {
        {"tracker", TOOL_TEXT, &to->tracker, "HOST:PORT",
         "leases the devices on which jobs with a --device-class are measured"},
        {"key-file", TOOL_TEXT, &to->key_file, "F",
         "the keys that --tracker and its servers know (those of this machine's loopback servers)"},
        {"devices", TOOL_COUNT, &to->devices, "N",
         "devices of the pool that one job has at most, so that several jobs share a class (8)"},
        {"tolerance", TOOL_COUNT, &to->tolerance, "PERCENT",
         "by which a device of the pool may differ from the others before it is set aside (25)"},
    };

    TOOL_ADD(all, options);
}

/* What is written, and where options and the compiler come from. */
static void add_rest(tool_options *all, settings *to)
{
    const tool_option options[] = {
        {"log", TOOL_CHOICE, &to->log, "error|info",
         "what is written to standard error; info: each state of a job too (error)"},
        {"run-log", TOOL_TEXT, &to->run_log, "FILE",
         "adds a line to this file before each run of a candidate on this machine, for audits (none)"},
        {"config", TOOL_TEXT, &to->config, "FILE",
         "a file of such options, one 'NAME = VALUE' a line; the command line wins"},
        {"tec", TOOL_TEXT, &to->tec, "PROGRAM",
         "the compiler that the jobs use (the `tec` beside this program)"},
    };

    TOOL_ADD(all, options);
}

/* Reads the command line into *to. Options of the file of settings come before those of the command line. */
static int read_options(tec_context *cx, int argc, char **argv, settings *to)
{
    tool_options options = {.n = 0};
    tool_list none = {0};

    add_service(&options, to);
    add_pool(&options, to);
    add_rest(&options, to);
    const tool_usage usage = {
        "serve",
        "",
        "Runs the tuning daemon in the foreground until it is interrupted. What its jobs measured is kept.",
        options.at,
        options.n,
        0,
        0};
    char **all = tvm_with_config(cx, &usage, &argc, argv);

    return all ? tool_parse(&usage, argc, all, &none) : tool_fail("serve", cx);
}

/* The command: it returns when the daemon was interrupted. */
int tvm_serve(int argc, char **argv)
{
    settings s = {.state = TVM_STATE,
                  .jobs = 1,
                  .memory = 16384,
                  .patience = 600,
                  .lease = 30,
                  .body_seconds = TVM_BODY_SECONDS,
                  .log = "error"};
    tec_context *cx = tool_context();
    int status = read_options(cx, argc, argv, &s);

    if (status == TOOL_GO_ON)
        status = check_and_serve(cx, &s);
    tec_context_free(cx);
    return status;
}
