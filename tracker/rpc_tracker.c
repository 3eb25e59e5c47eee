/* tracker/rpc_tracker.c -- the program `rpc_tracker`: options, the key file, signals. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "rpc/keys.h"
#include "runtime/alloc.h"
#include "tec/base.h"
#include "tracker/serve.h"

enum { OK = 0, FAILED = 1, USAGE = 2, LINE = 1000, MOST_LINES = 10000 };

static const char usual_listen[] = "127.0.0.1:9190";

/* `default_keys` is what key_file points to where no file is named. `service` is NULL while options are read
 * for the first time, by which read_line tells a start from a SIGHUP. */
typedef struct {
    const char *listen, *key_file, *state, *config;
    double lease_s, heartbeat_s;
    bool quiet;
    rt_arena kept; /* values of the configuration */
    char default_keys[4096];
    rpc_keys keys;
    rpc_loop *loop;
    track_service *service;
} program;

/* The options, to standard output where they were asked for. */
static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: rpc_tracker [options]\n\n"
        "The directory of a pool of devices: rpc_server announces devices here, clients lease them.\n\n"
        "  --listen HOST:PORT  the address to listen at (default: %s); port 0 takes a free port\n"
        "  --key-file FILE     the keys that may connect; required for addresses other than loopback. On\n"
        "                      loopback the default file is made at the first start\n"
        "  --state FILE        keeps leases and devices set aside over restarts (default: tracker.db beside "
        "the "
        "keys)\n"
        "  --config FILE       lines 'OPTION VALUE' with these options, and 'weight USER N'; read again at "
        "SIGHUP\n"
        "  --lease SECONDS     ends a lease that is not renewed for so long (default: 20)\n"
        "  --heartbeat SECONDS the time between two signs of life of a server (default: 5)\n"
        "  --quiet             log nothing\n"
        "  --version, --help\n",
        usual_listen);
}

/* ---- keys ---- */

/* The keys in force: the file is read at the start and at SIGHUP. For the handshake. Before `service` is set
 * nobody connects. */
static bool find(void *user, const uint8_t id[RPC_ID_BYTES], rpc_grant *grant)
{
    const program *p = user;
    const rpc_key_row *row = rpc_keys_find(&p->keys, id);

    if (!row || row->state == RPC_KEY_REVOKED) {
        grant->why = row ? "it is revoked" : "there is no such key";
        return false;
    }
    if (row->state == RPC_KEY_LOOPBACK && p->service && !track_service_is_loopback(p->service)) {
        grant->why = "it is for loopback, and this tracker listens beyond";
        return false;
    }
    grant->key = row->key;
    grant->roles = row->roles;
    return true;
}

/* The classes of a key count for what its servers offer and for what its clients ask. */
static bool allows(void *user, const uint8_t id[RPC_ID_BYTES], const char *class)
{
    const program *p = user;
    const rpc_key_row *row = rpc_keys_find(&p->keys, id);

    return row && rpc_class_allowed(row->classes, class);
}

static bool user_of(void *user, const uint8_t id[RPC_ID_BYTES], const char *wanted, char *to, size_t size)
{
    const program *p = user;
    const rpc_key_row *row = rpc_keys_find(&p->keys, id);

    return row && rpc_key_user(row, wanted, to, size);
}

static bool read_keys(program *self, tec_error *err)
{
    rpc_keys fresh = {0};

    if (!rpc_keys_read(&fresh, self->key_file, err))
        return false;
    rpc_keys_free(&self->keys);
    self->keys = fresh;
    return true;
}

/* The named file, or on loopback the usual one, which is made if need be. */
static bool settle_keys(program *self, tec_error *err)
{
    if (!self->key_file) {
        if (!rpc_is_loopback(self->listen))
            return rt_fail(
                err, TEC_DENIED,
                "%s can be reached from other machines: name the keys that may connect with --key-file",
                self->listen);
        if (!rpc_keys_default_path(getenv("XDG_STATE_HOME"), getenv("HOME"), self->default_keys,
                                   sizeof self->default_keys))
            return rt_fail(err, TEC_INVALID,
                           "cannot find the key file: --key-file is not given, and neither XDG_STATE_HOME "
                           "nor HOME is set");
        self->key_file = self->default_keys;
        if (!rpc_keys_prepare(self->key_file, err))
            return false;
    }
    return read_keys(self, err);
}

/* ---- options ---- */

enum {
    OPT_LISTEN = 256,
    OPT_KEYS,
    OPT_STATE,
    OPT_CONFIG,
    OPT_LEASE,
    OPT_HEARTBEAT,
    OPT_QUIET,
    OPT_VERSION,
    OPT_HELP
};

static const struct option options[] = {
    {"listen", required_argument, NULL, OPT_LISTEN}, {"key-file", required_argument, NULL, OPT_KEYS},
    {"state", required_argument, NULL, OPT_STATE},   {"config", required_argument, NULL, OPT_CONFIG},
    {"lease", required_argument, NULL, OPT_LEASE},   {"heartbeat", required_argument, NULL, OPT_HEARTBEAT},
    {"quiet", no_argument, NULL, OPT_QUIET},         {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},           {NULL, 0, NULL, 0},
};

/* Below a tenth of a second the network would decide. */
static bool seconds(const char *name, const char *text, double most, double *to, tec_error *err)
{
    char *end;

    *to = strtod(text, &end);
    if (end == text || *end || !(*to >= 0.1 && *to <= most))
        return rt_fail(err, TEC_INVALID, "%s takes 0.1 to %g seconds, not '%s'", name, most, text);
    return true;
}

/* Values are kept as pointers: those of the command line and of `kept` last as long as the program. */
static bool set_option(program *self, int option, const char *value, tec_error *err)
{
    switch (option) {
    case OPT_LISTEN: self->listen = value; return true;
    case OPT_KEYS: self->key_file = value; return true;
    case OPT_STATE: self->state = value; return true;
    case OPT_CONFIG: self->config = value; return true;
    case OPT_LEASE: return seconds("lease", value, 3600, &self->lease_s, err);
    case OPT_HEARTBEAT: return seconds("heartbeat", value, 600, &self->heartbeat_s, err);
    case OPT_QUIET: self->quiet = true; return true;
    default: return rt_fail(err, TEC_INVALID, "unknown option");
    }
}

/* One line of the configuration: an option that the command line did not set, or a user's weight. Weights are
 * for a tracker that is there; options for one that is not yet. strtok changes the line, which is the
 * caller's buffer. */
static bool read_line(program *self, char *line, tec_error *err)
{
    char *name = strtok(line, " \t\n"), *value = name ? strtok(NULL, " \t\n") : NULL;

    if (!name || name[0] == '#')
        return true;
    if (strcmp(name, "weight") == 0) {
        char *number = value ? strtok(NULL, " \t\n") : NULL, *end = NULL;
        double weight = number ? strtod(number, &end) : 0;

        if (!number || end == number || *end || strtok(NULL, " \t\n"))
            return rt_fail(err, TEC_INVALID, "expected 'weight USER N'");
        return !self->service || track_set_weight(track_service_pool(self->service), value, weight, err);
    }
    for (const struct option *o = options; o->name; o++) {
        if (strcmp(o->name, name) != 0 || o->val >= OPT_VERSION || o->val == OPT_CONFIG)
            continue;
        if (!value != (o->has_arg == no_argument) || strtok(NULL, " \t\n"))
            return rt_fail(err, TEC_INVALID, "'%s' takes %s value", name, o->has_arg ? "one" : "no");
        if (self->service)
            return true;
        char *kept = value ? rt_arena_alloc(&self->kept, (int64_t)strlen(value) + 1, 1, err) : NULL;
        if (kept)
            strcpy(kept, value);
        return (!value || kept) && set_option(self, o->val, kept, err);
    }
    return rt_fail(err, TEC_INVALID, "there is no option '%s'", name);
}

/* Line by line; an error names the file and the line. Stops at the first error. */
static bool read_config(program *self, tec_error *err)
{
    FILE *f = self->config ? fopen(self->config, "r") : NULL;
    char line[LINE];
    int n = 0;

    if (!self->config)
        return true;
    if (!f)
        return rt_fail(err, TEC_IO, "%s: cannot read this configuration", self->config);
    while (err->status == TEC_OK && n++ < MOST_LINES && fgets(line, sizeof line, f)) {
        tec_error own = {0};

        if (!read_line(self, line, &own))
            rt_fail(err, own.status, "%s:%d: %s", self->config, n, own.text);
    }
    fclose(f);
    return err->status == TEC_OK;
}

/* The configuration first, so that the command line overrides it. Two passes over the command line: the first
 * one finds --config, --help and --version and reports what is no option, the second sets the options. Gives
 * -1 to go on, or an exit status. */
static int parse(program *self, int argc, char **argv, tec_error *err)
{
    for (int pass = 0; pass < 2; pass++) {
        optind = 1;
        opterr = pass == 0;
        for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
            if (c == '?' || c == ':')
                return USAGE;
            if (c == OPT_HELP) {
                print_help(stdout);
                return OK;
            }
            if (c == OPT_VERSION) {
                printf("rpc_tracker %s\n", tec_version());
                return OK;
            }
            if ((pass == 1 || c == OPT_CONFIG) && !set_option(self, c, optarg, err))
                return USAGE;
        }
        if (optind < argc) {
            rt_fail(err, TEC_INVALID, "unexpected operand '%s'", argv[optind]);
            return USAGE;
        }
        if (pass == 0 && !read_config(self, err))
            return USAGE;
    }
    return -1;
}

/* ---- running ---- */

static void print_log(void *user, const char *line)
{
    const program *p = user;
    char when[40];
    time_t now = time(NULL);
    struct tm utc;

    if (p->quiet || !gmtime_r(&now, &utc) || !strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return;
    fprintf(stderr, "%s %s\n", when, line);
}

/* Leases go on without the tracker: their clients renew them when it is back. */
static void on_end(void *user)
{
    program *p = user;

    track_service_drain(p->service);
}

#ifdef TEC_DEBUG
/* An hour back: how a tracker takes a clock that is set is tried by tests of debug builds alone. */
static void on_clock(void *user)
{
    program *p = user;

    rpc_loop_shift_clock(p->loop, -3600000);
    print_log(p, "the clock was set back by an hour");
}
#endif

/* Keys and weights anew; a file that makes no sense leaves the old ones in force. */
static void on_hangup(void *user)
{
    program *p = user;
    tec_error keys = {0}, config = {0};

    if (!read_keys(p, &keys))
        print_log(p, keys.text);
    if (!read_config(p, &config))
        print_log(p, config.text);
    print_log(p, "read keys and weights again");
}

/* "tracker.db" in the folder of the keys, unless a file is named. */
static char *state_path(const program *self)
{
    const char *slash = strrchr(self->key_file, '/');
    size_t folder = slash ? (size_t)(slash - self->key_file) + 1 : 0, n = folder + sizeof "tracker.db";
    char *path = self->state ? rt_strdup(self->state, NULL) : rt_alloc(n, NULL);

    if (path && !self->state)
        snprintf(path, n, "%.*stracker.db", (int)folder, self->key_file);
    return path;
}

/* Opens the state before the port, and closes the connections before the state: what they decide at their end
 * is stored. The configuration is read once more here, now that there is a service: this is when weights are
 * taken. */
static bool run(program *self, tec_error *err)
{
    track_service_options o = {.find = find,
                               .allows = allows,
                               .user_of = user_of,
                               .log = print_log,
                               .user = self,
                               .program = "rpc_tracker"};
    char *path = state_path(self);

    o.term_ms = (int64_t)(self->lease_s * 1e3);
    o.heartbeat_ms = (int64_t)(self->heartbeat_s * 1e3);
    umask(077);
    o.state = path ? track_state_open(path, err) : NULL;
    self->loop = o.state ? rpc_loop_new(err) : NULL;
    self->service = self->loop ? track_serve(self->loop, self->listen, &o, err) : NULL;
    bool good = self->service && read_config(self, err) &&
                rpc_on_signal(self->loop, SIGTERM, on_end, self, err) &&
                rpc_on_signal(self->loop, SIGINT, on_end, self, err) &&
                rpc_on_signal(self->loop, SIGHUP, on_hangup, self, err);
#ifdef TEC_DEBUG
    good = good && rpc_on_signal(self->loop, SIGUSR2, on_clock, self, err);
#endif
    if (good) {
        printf("rpc_tracker: ready at port %d\n", track_service_port(self->service));
        fflush(stdout);
        rpc_loop_run(self->loop);
    }
    rpc_loop_free(self->loop);
    if (self->service)
        good = track_state_commit(o.state, err) && good;
    track_service_free(self->service);
    track_state_close(o.state);
    rt_free(path);
    return good;
}

/* Exit status 0: ended by a signal in order; 1: could not start or store; 2: misused. */
int main(int argc, char **argv)
{
    program p = {.listen = usual_listen};
    tec_error err = {0};
    int status = parse(&p, argc, argv, &err);

    signal(SIGPIPE, SIG_IGN);
    if (status == -1)
        status = settle_keys(&p, &err) && run(&p, &err) ? OK : FAILED;
    rpc_keys_free(&p.keys);
    rt_arena_free(&p.kept);
    if (err.status != TEC_OK)
        fprintf(stderr, "rpc_tracker: %s\n", err.text);
    if (status == USAGE)
        fprintf(stderr, "rpc_tracker: 'rpc_tracker --help' shows the options\n");
    return status;
}
