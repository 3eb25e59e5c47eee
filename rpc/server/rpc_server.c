/* rpc/server/rpc_server.c -- the program `rpc_server`: offers this machine's devices to clients. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/server/server.h"
#include "rpc/server/session.h"
#include "runtime/alloc.h"

/* ---- options: on the command line, or as lines "NAME = VALUE" of a file ---- */

typedef struct {
    const char *listen, *key_file, *device_class, *folder, *program, *config;
    const char *tracker, *name, *announce, *tracker_key;
    int64_t sessions, memory_mib, output_kib;
    double seconds, drain;
    bool dial_out, weak_sandbox, once, json, quiet, help, version;
} settings;

typedef enum { FLAG, TEXT, COUNT, DECIMAL } option_kind;

static const struct {
    const char *name;
    option_kind kind;
    size_t at;
    const char *value, *what;
} options[] = {
    {"listen", TEXT, offsetof(settings, listen), "A:P",
     "where to listen (127.0.0.1:9190; port 0: a free one)"},
    {"key-file", TEXT, offsetof(settings, key_file), "F",
     "keys that may connect (on loopback: one of this machine, made at the first start)"},
    {"device-class", TEXT, offsetof(settings, device_class), "C",
     "class of the CPU, or KIND=CLASS with commas for several kinds of devices; keys must be for it"},
    {"tracker", TEXT, offsetof(settings, tracker), "A:P",
     "the tracker that gives the devices away; sessions then need a lease of it"},
    {"name", TEXT, offsetof(settings, name), "N",
     "of this server at the tracker (the machine's name and the port)"},
    {"announce", TEXT, offsetof(settings, announce), "A:P",
     "where tracker and clients reach this server (at the address it dials the tracker from)"},
    {"dial-out", FLAG, offsetof(settings, dial_out), NULL,
     "listen nowhere: clients come through the tracker's relay, as behind a router that lets nobody in"},
    {"tracker-key", TEXT, offsetof(settings, tracker_key), "ID",
     "the key for the tracker (the first of the file with the role serve)"},
    {"sessions", COUNT, offsetof(settings, sessions), "N", "sessions at once (4)"},
    {"memory", COUNT, offsetof(settings, memory_mib), "MIB", "memory of a session (4096)"},
    {"seconds", DECIMAL, offsetof(settings, seconds), "S", "time of a question (600)"},
    {"output", COUNT, offsetof(settings, output_kib), "KIB", "what a session may print (1024)"},
    {"drain", DECIMAL, offsetof(settings, drain), "S", "time of sessions at work when the server ends (30)"},
    {"folder", TEXT, offsetof(settings, folder), "DIR", "where sessions have their folders (/tmp)"},
    {"session-program", TEXT, offsetof(settings, program), "F",
     "what starts sessions (this program); for emulators, where a program cannot start itself"},
    {"config", TEXT, offsetof(settings, config), "F",
     "a file with a line NAME = VALUE for each option; the command line counts more"},
    {"weak-sandbox", FLAG, offsetof(settings, weak_sandbox), NULL,
     "start although this system cannot isolate sessions"},
    {"once", FLAG, offsetof(settings, once), NULL, "end with the first client that had a session"},
    {"json", FLAG, offsetof(settings, json), NULL, "print the line that says where it listens as JSON"},
    {"quiet", FLAG, offsetof(settings, quiet), NULL, "no log"},
    {"help", FLAG, offsetof(settings, help), NULL, "this text"},
    {"version", FLAG, offsetof(settings, version), NULL, "the version"},
};

enum { USAGE = 2 };

static int misuse(const char *what, const char *name)
{
    fprintf(stderr, "rpc_server: %s '%s'\nTry 'rpc_server --help'.\n", what, name);
    return USAGE;
}

/* Sets an option from its text; false: the text is none of its kind. Numbers are positive and bounded: a
 * product with the unit, as in memory_mib << 20, then fits 64 bits. */
static bool set(settings *given, int index, const char *value)
{
    char *end = NULL, *at = (char *)given + options[index].at;

    errno = 0;
    switch (options[index].kind) {
    case FLAG:
        *(bool *)(void *)at = strcmp(value, "yes") == 0;
        return *(bool *)(void *)at || !strcmp(value, "no");
    case TEXT: *(const char **)(void *)at = value; return *value != '\0';
    case COUNT: {
        long long n = strtoll(value, &end, 10);

        *(int64_t *)(void *)at = n;
        return end != value && !*end && n > 0 && n <= 1000000000;
    }
    case DECIMAL: {
        double d = strtod(value, &end);

        *(double *)(void *)at = d;
        return end != value && !*end && d > 0 && d <= 1e7;
    }
    }
    return false;
}

/* n is given because the name may end at a '='. */
static int find_option(const char *name, size_t n)
{
    for (int i = 0; i < BASE_COUNT(options); i++)
        if (strlen(options[i].name) == n && strncmp(options[i].name, name, n) == 0)
            return i;
    return -1;
}

/* "--name value" and "--name=value". An exit status, or -1. Stops at the first mistake: what stands behind it
 * may be its value. */
static int read_arguments(settings *given, int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        const char *name = strncmp(argv[k], "--", 2) == 0 ? argv[k] + 2 : "", *equals = strchr(name, '=');
        int i = find_option(name, equals ? (size_t)(equals - name) : strlen(name));

        if (i < 0)
            return misuse("there is no option", argv[k]);
        bool flag = options[i].kind == FLAG;
        if (flag && equals)
            return misuse("takes no value:", argv[k]);
        const char *value = flag ? "yes" : equals ? equals + 1 : k + 1 < argc ? argv[++k] : "";
        if (!set(given, i, value))
            return misuse("wrong or missing value of", argv[k]);
    }
    return -1;
}

/* In place: the end is cut, and the start skipped. */
static char *trim(char *text)
{
    size_t n = strlen(text);

    while (n && strchr(" \t\r\n", text[n - 1]))
        text[--n] = '\0';
    return text + strspn(text, " \t");
}

/* The texts of the file stay for as long as the program runs. A line that is empty or begins with # is
 * skipped. `config` within a file is refused: files do not name files. Gives -1, or an exit status. */
static int read_config(settings *given, const char *path)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int number = 0, status = -1;

    if (!f) {
        fprintf(stderr, "rpc_server: %s: cannot open: %s\n", path, strerror(errno));
        return 1;
    }
    while (status < 0 && getline(&line, &size, f) >= 0) {
        char *name = trim(line), *equals = strchr(name, '=');

        number++;
        if (!*name || *name == '#')
            continue;
        if (equals)
            *equals = '\0';
        name = trim(name);
        int i = find_option(name, strlen(name));
        char *value = equals ? rt_strdup(trim(equals + 1), NULL) : NULL;
        if (i >= 0 && strcmp(name, "config") != 0 && value && set(given, i, value))
            continue;
        fprintf(stderr, "rpc_server: %s:%d: %s '%s'\n", path, number,
                i < 0 ? "there is no option" : "wrong or missing value of", name);
        status = USAGE;
    }
    free(line);
    fclose(f);
    return status;
}

static void print_help(void)
{
    printf("usage: rpc_server [options]\n\nOffers the devices of this machine to clients that have a key: "
           "'tec run --rpc', programs that use tec/rpc.h,\nand with --tracker 'tec run --tracker'. SIGTERM "
           "lets sessions at work end, a second one ends them.\n\noptions:\n");
    for (int i = 0; i < BASE_COUNT(options); i++) {
        char text[40];

        snprintf(text, sizeof text, "--%s%s%s", options[i].name, options[i].value ? " " : "",
                 options[i].value ? options[i].value : "");
        printf("  %-18s %s\n", text, options[i].what);
    }
}

/* ---- the program ---- */

/* In UTC, so that logs of several machines can be laid side by side. */
static void write_log(void *user, const char *line)
{
    const settings *s = user;
    char when[32];
    time_t now = time(NULL);
    struct tm parts;

    if (s->quiet)
        return;
    gmtime_r(&now, &parts);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    fprintf(stderr, "%s %s\n", when, line);
}

/* The host is the one that was asked for, the port the one that was got: for port 0 they differ. Flushed at
 * once, as the program that started the server waits for this line. */
static void say_ready(void *user, int port)
{
    const settings *s = user;
    char host[256];
    int asked;

    rpc_split_address(s->listen, host, &asked, NULL);
    if (s->dial_out) {
        if (s->json)
            printf("{\"tracker\": \"%s\", \"pid\": %ld}\n", s->tracker, (long)getpid());
        else
            printf("rpc_server: serving through the tracker at %s\n", s->tracker);
        fflush(stdout);
        return;
    }
    bool v6 = strchr(host, ':') != NULL;
    const char *open = v6 ? "[" : "", *close = v6 ? "]" : "";
    if (s->json)
        printf("{\"listening\": \"%s%s%s:%d\", \"port\": %d, \"pid\": %ld}\n", open, host, close, port, port,
               (long)getpid());
    else
        printf("rpc_server: listening on %s%s%s:%d\n", open, host, close, port);
    fflush(stdout);
}

static void on_stop(void *user)
{
    rpc_server_drain(user);
}

static int fail(const tec_error *err)
{
    fprintf(stderr, "rpc_server: %s\n", err->text);
    return 1;
}

/* The loop is freed before the server, since closing a connection still calls the server. */
static int serve(settings *given, const rpc_server_options *self)
{
    tec_error err = {0};
    rpc_loop *loop = rpc_loop_new(&err);
    rpc_server *server = loop ? rpc_server_new(loop, self, &err) : NULL;

    (void)given;
    if (!server)
        return fail(&err);
    rpc_on_signal(loop, SIGTERM, on_stop, server, &err);
    rpc_on_signal(loop, SIGINT, on_stop, server, &err);
    rpc_loop_run(loop);
    rpc_loop_free(loop);
    err = *rpc_server_error(server);
    rpc_server_free(server);
    return err.status == TEC_OK ? 0 : fail(&err);
}

/* The loopback key is made only if no file is named: a named file that is missing is a mistake. `keys` and
 * `folder` live as long as the server, which ends within this call. */
static int run(settings *given)
{
    tec_error err = {0};
    char keys[PATH_MAX], folder[PATH_MAX];

    if (given->tracker && !given->device_class)
        return misuse("name the class of the devices with --device-class: it is what clients ask for at",
                      given->tracker);
    if (given->dial_out && (!given->tracker || given->announce || given->listen))
        return misuse("needs a --tracker and neither --listen nor --announce:", "--dial-out");
    if (!given->tracker && (given->name || given->announce || given->tracker_key))
        return misuse("is for a server with a --tracker:", given->name       ? "--name"
                                                           : given->announce ? "--announce"
                                                                             : "--tracker-key");
    if (!given->listen)
        given->listen = given->tracker ? "127.0.0.1:0" : "127.0.0.1:9190";
    if (!given->key_file &&
        !rpc_keys_default_path(getenv("XDG_STATE_HOME"), getenv("HOME"), keys, sizeof keys))
        return misuse("neither $HOME is set nor", "--key-file");
    if (!given->key_file && !rpc_keys_prepare(keys, &err))
        return fail(&err);
    if (!realpath(given->folder ? given->folder : "/tmp", folder)) {
        fprintf(stderr, "rpc_server: %s: %s\n", given->folder ? given->folder : "/tmp", strerror(errno));
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    return serve(given, &(rpc_server_options){.listen = given->listen,
                                              .key_file = given->key_file ? given->key_file : keys,
                                              .key_file_named = given->key_file != NULL,
                                              .device_class = given->device_class,
                                              .tracker = given->tracker,
                                              .name = given->name,
                                              .announce = given->announce,
                                              .dial_out = given->dial_out,
                                              .tracker_key = given->tracker_key,
                                              .folder = folder,
                                              .program = given->program,
                                              .most_sessions = (int)given->sessions,
                                              .memory_bytes = given->memory_mib << 20,
                                              .seconds = given->seconds,
                                              .output_bytes = given->output_kib << 10,
                                              .drain_seconds = given->drain,
                                              .weak_sandbox = given->weak_sandbox,
                                              .once = given->once,
                                              .log = write_log,
                                              .ready = say_ready,
                                              .user = given});
}

/* The command line is read twice, before and after the file of --config: the first time to learn the file's
 * name, the second time so that the command line counts more. A session's process comes here as well, and
 * must not read options. */
int main(int argc, char **argv)
{
    settings given = {0}, s = {0};

    if (rpc_is_session(argc, argv))
        return rpc_session_main(argc, argv);
    int status = read_arguments(&given, argc, argv);
    if (status >= 0)
        return status;
    if (given.help) {
        print_help();
        return 0;
    }
    if (given.version) {
        printf("rpc_server %s\n", tec_version());
        return 0;
    }
    if (given.config && (status = read_config(&s, given.config)) >= 0)
        return status;
    status = read_arguments(&s, argc, argv);
    return status >= 0 ? status : run(&s);
}
