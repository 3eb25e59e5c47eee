/* tests/chaos/stage.h -- a pool whose parts can be harmed: a tracker with a small disk of its own, servers
 * behind proxies, clients that dribble their handshake; and the search for what is left when all is over.
 *
 *     static stage s;
 *     stage_start(&s);
 *     stage_fill_disk(&s);  ...  stage_free_disk(&s);
 *     stage_rest(&s);
 *     stage_find_leaks(&s);
 *     stage_find_left_behind(&s);           // where clients begin with stage_mark_client
 *     stage_stop(&s);
 */
#ifndef TESTS_CHAOS_STAGE_H
#define TESTS_CHAOS_STAGE_H

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include "tests/chaos/proxy.h"
#include "tests/rpc/client/pool.h"

enum { SERVERS = 3, SPARE = SERVERS, LORIS = 3, MOST_LORIS = 200 };

typedef enum {
    NO_FAULT = -1,
    SERVER_KILLED,
    TRACKER_KILLED,
    CLIENT_KILLED,
    CUT,
    DELAYED,
    TRUNCATED,
    FLIPPED,
    SLOW_LORIS,
    HUNG_KERNEL,
    CRASHING_KERNEL,
    EATING_KERNEL,
    DISK_FULL,
    CLOCK_BACK,
    N_FAULTS
} fault;

static const char *const stage_faults[N_FAULTS] = {"server killed in a trial",
                                                   "tracker killed, restarted",
                                                   "client killed",
                                                   "connection cut",
                                                   "connection delayed",
                                                   "frame truncated",
                                                   "frame flipped",
                                                   "slow-loris client",
                                                   "hung kernel",
                                                   "segfaulting kernel",
                                                   "memory-eating kernel",
                                                   "disk full",
                                                   "clock set back"};

/* Faults of the wire, which the proxy makes. */
static inline proxy_fault stage_harm(fault f)
{
    return f == CUT         ? PROXY_CUT
           : f == DELAYED   ? PROXY_DELAY
           : f == TRUNCATED ? PROXY_TRUNCATE
           : f == FLIPPED   ? PROXY_FLIP
                            : PROXY_PASS;
}

typedef struct {
    pool p;
    proxy proxies[SERVERS];
    char state[128], ballast[160];
    char temp[128]; /* folder of the temporary files of clients that stage_mark_client has marked */
    int loris[MOST_LORIS], n_loris, loris_sent;
    int files; /* descriptors of a server that is idle */
} stage;

static inline int stage_count_children(pid_t parent)
{
    char path[64], text[4096] = "";
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *f = fopen(path, "re");
    size_t got = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    for (size_t i = 0; i < got; i++)
        n += text[i] == ' ';
    return n;
}

static inline int stage_count_files(pid_t of)
{
    char path[64];
    int n = -2;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)of);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static inline void stage_start_server(stage *s, int i)
{
    fixture *f = &s->p.server[i];
    char name[8], announce[32], listen[32];
    const char *argv[] = {"--tracker",  s->p.tracker, "--device-class", "board", "--key-file", s->p.keys,
                          "--announce", announce,     "--name",         name,    NULL};

    snprintf(name, sizeof name, "s%d", i);
    snprintf(announce, sizeof announce, "127.0.0.1:%d", s->proxies[i].port);
    snprintf(listen, sizeof listen, "127.0.0.1:%d", s->proxies[i].shared->target);
    cr_assert(kit_launch(f, listen, argv), "a server does not start: see %s", f->log);
}

/* A file system of a megabyte for the tracker's state, in a namespace that goes with this process. */
static inline void stage_mount_state(stage *s)
{
    uid_t user = geteuid();
    char line[64];

    cr_assert_eq(unshare(CLONE_NEWNS | (user ? CLONE_NEWUSER : 0)), 0, "no namespace: %s", strerror(errno));
    if (user) {
        FILE *f = fopen("/proc/self/uid_map", "we");

        snprintf(line, sizeof line, "0 %u 1", (unsigned)user);
        cr_assert(f && fputs(line, f) >= 0 && fclose(f) == 0);
    }
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0, "%s", strerror(errno));
    snprintf(s->state, sizeof s->state, "%s/state", s->p.folder);
    cr_assert(mkdir(s->state, 0700) == 0 && mount("none", s->state, "tmpfs", 0, "size=1m") == 0, "%s",
              strerror(errno));
    snprintf(s->ballast, sizeof s->ballast, "%s/ballast", s->state);
}

static inline void stage_start(stage *s)
{
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*", .users = "*"};

    s->p = (pool){.folder = "/tmp/tec-pool-XXXXXX", .n = SERVERS};
    cr_assert(mkdtemp(s->p.folder));
    stage_mount_state(s);
    snprintf(s->p.keys, sizeof s->p.keys, "%s/pool.keys", s->p.folder);
    snprintf(s->p.log, sizeof s->p.log, "%s/log", s->p.folder);
    snprintf(s->p.state, sizeof s->p.state, "%s/tracker.db", s->state);
    cr_assert(rpc_keys_add(s->p.keys, &row, &s->p.err), "%s", s->p.err.text);
    snprintf(s->temp, sizeof s->temp, "%s/temp", s->p.folder);
    cr_assert_eq(mkdir(s->temp, 0700), 0);
    pool_start_tracker(&s->p, 0);
    for (int i = 0; i < SERVERS; i++) {
        kit_prepare(&s->p.server[i]);
        s->proxies[i] = proxy_start();
        s->proxies[i].shared->target = proxy_free_port();
        stage_start_server(s, i);
    }
    s->files = stage_count_files(s->p.server[0].pid);
}

static inline void stage_send_loris(stage *s, int server)
{
    for (int i = 0; i < LORIS && s->n_loris < MOST_LORIS; i++) {
        int fd = proxy_dial(s->proxies[server].shared->target);

        if (fd >= 0)
            s->loris[s->n_loris++] = fd;
    }
}

/* A byte of a greeting from each of them. */
static inline void stage_dribble(stage *s)
{
    static const char greeting[] = "tec-rpc\n";

    for (int i = 0; i < s->n_loris; i++)
        send(s->loris[i], greeting + s->loris_sent % 8, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    s->loris_sent++;
}

/* In a client before its program starts: it and all that it starts keep their temporary files apart, and are
 * known by that. */
static inline void stage_mark_client(const stage *s)
{
    setenv("TMPDIR", s->temp, 1);
}

/* Whether a process has a variable, as in "NAME=value"; one that has ended has none. */
static inline bool stage_has_variable(const char *pid, const char *variable)
{
    char path[300], *text = NULL;
    size_t size = 0;
    bool has = false;

    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    FILE *f = fopen(path, "re");
    while (f && !has && getdelim(&text, &size, 0, f) > 0)
        has = strcmp(text, variable) == 0;
    free(text);
    if (f)
        fclose(f);
    return has;
}

/* Processes (builders, say) and temporary files of marked clients, which have all ended: there are none. */
static inline void stage_find_left_behind(const stage *s)
{
    char variable[160];
    const struct dirent *entry;

    snprintf(variable, sizeof variable, "TMPDIR=%s", s->temp);
    DIR *d = opendir("/proc");
    while (d && (entry = readdir(d)))
        cr_assert_not(entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                          stage_has_variable(entry->d_name, variable),
                      "process %s of a client is left", entry->d_name);
    closedir(d);
    d = opendir(s->temp);
    while (d && (entry = readdir(d)))
        cr_assert(entry->d_name[0] == '.', "a client left %s/%s", s->temp, entry->d_name);
    closedir(d);
}

/* Sessions' processes, folders, descriptors and leases that are left when all work is done and its time is
 * over. */
static inline void stage_find_leaks(stage *s)
{
    char command[400];
    int most_files = s->files + 4;

    for (int i = 0; i < SERVERS; i++) {
        const fixture *f = &s->p.server[i];

        cr_assert_eq(stage_count_children(f->pid), 0, "server %d has children", i);
        cr_assert_leq(stage_count_files(f->pid), most_files, "server %d has %d descriptors", i,
                      stage_count_files(f->pid));
    }
    cr_assert_leq(stage_count_files(s->p.tracker_pid), most_files + 8, "the tracker has %d descriptors",
                  stage_count_files(s->p.tracker_pid));
    snprintf(command, sizeof command,
             TEC_BINARY_DIR
             "/tec devices --tracker %s --key-file %s --json | grep -c '\"state\":.*\"free\"' | grep -qx %d",
             s->p.tracker, s->p.keys, SERVERS);
    cr_assert_eq(system(command), 0, "a device is not free: %s", command);
}

static inline int stage_count_logged(const stage *s, const char *text)
{
    char line[1000];
    int n = 0;
    FILE *f = fopen(s->p.log, "re");

    while (f && fgets(line, sizeof line, f))
        n += strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return n;
}

/* A server of a class of its own, whose device the test leases: the tracker stores each lease. */
static inline void stage_start_spare(stage *s)
{
    fixture *f = &s->p.server[SPARE];
    const char *argv[] = {"--tracker", s->p.tracker, "--device-class", "spare", "--key-file",
                          s->p.keys,   "--name",     "spare",          NULL};

    kit_prepare(f);
    cr_assert(kit_launch(f, "127.0.0.1:0", argv), "a server does not start: see %s", f->log);
    cr_assert(kit_logged(f, "the tracker reaches this server"), "see %s", f->log);
}

/* Fills the disk, and gives the tracker something to store until it finds that it cannot. The tracker's log
 * of changes is written anew from its beginning after 64 pages, and each lease takes a page or more, so
 * within 64 leases the log needs memory that the disk does not have. Beginning anew the log may also give
 * memory back, which is filled too. False: the tracker has not noticed. */
static inline bool stage_fill_disk(stage *s)
{
    static const char zeros[4096];
    int before = stage_count_logged(s, "the state is not stored"),
        fd = open(s->ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    tec_rpc *tracker = pool_connect(&s->p);

    for (int i = 0; i < 2 * 64 && stage_count_logged(s, "the state is not stored") == before; i++) {
        while (write(fd, zeros, sizeof zeros) > 0)
            ;
        tec_rpc_lease *lease = tec_rpc_request(
            tracker, &(tec_rpc_lease_options){.device_class = "spare", .user = "ann", .job = "spare"},
            &s->p.err);

        if (lease)
            tec_rpc_wait(lease, 5, &s->p.err);
        tec_rpc_give_back(lease);
    }
    close(fd);
    tec_rpc_disconnect(tracker);
    return stage_count_logged(s, "the state is not stored") > before;
}

/* Twelve pending seconds let leases of killed clients and slow connections run out. */
static inline void stage_rest(stage *s)
{
    for (int i = 0; i < 600; i++) {
        stage_dribble(s);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    for (int i = 0; i < s->n_loris; i++)
        close(s->loris[i]);
}

static inline void stage_stop(stage *s)
{
    for (int i = 0; i < SERVERS; i++)
        proxy_stop(&s->proxies[i]);
    cr_assert_eq(umount2(s->state, MNT_DETACH), 0);
    cr_assert_eq(pool_stop(&s->p), 0);
}

#endif
