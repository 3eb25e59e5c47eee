/* tests/rpc/client/pool.h -- a tracker and servers as programs of their own, for tests of leases.
 *
 *     pool p = pool_start(2, NULL);                // a tracker, and two servers of class "board"
 *     tec_rpc *t = pool_connect(&p);
 *     ...
 *     pool_stop(&p);
 */
#ifndef TESTS_RPC_CLIENT_POOL_H
#define TESTS_RPC_CLIENT_POOL_H

#include "tests/rpc/client/kit.h"

enum { POOL_MOST = 8 };

typedef struct {
    char folder[64], keys[128], log[128], tracker[64], state[160]; /* state "": in the folder */
    char config[64];                                               /* of the tracker; "": none */
    pid_t tracker_pid;
    int tracker_out;
    fixture server[POOL_MOST];
    int n;
    tec_error err;
} pool;

/* Starts the tracker at its port, or for port 0 at a free one. */
static inline void pool_start_tracker(pool *p, int port)
{
    char listen[64], state[200], line[240];
    int out[2];

    snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
    snprintf(state, sizeof state, "%s%s", p->state[0] ? p->state : p->folder,
             p->state[0] ? "" : "/tracker.db");
    cr_assert_eq(pipe(out), 0);
    p->tracker_pid = fork();
    if (p->tracker_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int log = open(p->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

        dup2(out[1], 1);
        dup2(log, 2);
        close(out[0]);
        close(out[1]);
        execl(TEC_BINARY_DIR "/rpc_tracker", "rpc_tracker", "--listen", listen, "--key-file", p->keys,
              "--state", state, "--heartbeat", "0.5", "--lease", "3", p->config[0] ? "--config" : NULL,
              p->config, NULL);
        _exit(127);
    }
    close(out[1]);
    p->tracker_out = out[0];
    cr_assert(kit_read_line(out[0], line, sizeof line));
    cr_assert_eq(sscanf(line, "rpc_tracker: ready at port %d", &port), 1, "%s", line);
    snprintf(p->tracker, sizeof p->tracker, "127.0.0.1:%d", port);
}

static inline int pool_port(const pool *p)
{
    return atoi(strchr(p->tracker, ':') + 1);
}

static inline void pool_kill_tracker(pool *p)
{
    kill(p->tracker_pid, SIGKILL);
    cr_assert_eq(waitpid(p->tracker_pid, NULL, 0), p->tracker_pid);
    close(p->tracker_out);
}

/* Starts the server of this number and name, which may have run before; waits until clients can lease its
 * devices. */
static inline void pool_start_server(pool *p, int i, const char *const *more)
{
    char name[16];
    const char *argv[24] = {
        "--tracker", p->tracker, "--device-class", "board", "--key-file", p->keys, "--name", name, NULL};
    int n = 8;
    bool dials_out = more && *more && strcmp(*more, "--dial-out") == 0;

    snprintf(name, sizeof name, "s%d", i);
    while (more && *more && n < 23)
        argv[n++] = *more++;
    fixture *f = &p->server[i];
    if (!f->folder[0])
        kit_prepare(f);
    else
        unlink(f->log);
    snprintf(f->keys, sizeof f->keys, "%s", p->keys);
    cr_assert(kit_launch(f, dials_out ? NULL : "127.0.0.1:0", argv), "the server did not start: see %s",
              f->log);
    cr_assert(kit_logged(f, "the tracker reaches this server"), "see %s", f->log);
}

/* Fills a pool whose `config` may be set. */
static inline void pool_start_at(pool *p, int n, const char *const *more)
{
    rpc_key_row row = {.roles = RPC_ROLE_ANY, .classes = "*", .users = "*"};

    p->n = n;
    snprintf(p->folder, sizeof p->folder, "/tmp/tec-pool-XXXXXX");
    cr_assert(mkdtemp(p->folder));
    snprintf(p->keys, sizeof p->keys, "%s/pool.keys", p->folder);
    snprintf(p->log, sizeof p->log, "%s/log", p->folder);
    cr_assert(rpc_keys_add(p->keys, &row, &p->err), "%s", p->err.text);
    pool_start_tracker(p, 0);
    for (int i = 0; i < n; i++)
        pool_start_server(p, i, more);
}

static inline pool pool_start(int n, const char *const *more)
{
    pool p = {.n = 0};

    pool_start_at(&p, n, more);
    return p;
}

/* Ends all programs that still run; the exit status of a server that did not end well, or 0. */
static inline int pool_stop(pool *p)
{
    char command[200];
    int worst = 0, status;

    for (int i = 0; i < p->n; i++)
        if (p->server[i].pid && (status = kit_stop(&p->server[i])) != 0)
            worst = status;
    kill(p->tracker_pid, SIGTERM);
    cr_assert_eq(waitpid(p->tracker_pid, &status, 0), p->tracker_pid);
    close(p->tracker_out);
    snprintf(command, sizeof command, "rm -rf %s", p->folder);
    cr_assert_eq(system(command), 0);
    return worst ? worst : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A connection to the tracker with a key, or for NULL with the first one. */
static inline tec_rpc *pool_connect_as(pool *p, const char *key)
{
    tec_rpc *t = tec_rpc_connect(p->tracker,
                                 &(tec_rpc_options){.key_file = p->keys, .key = key, .seconds = 20}, &p->err);

    cr_assert(t, "%s", p->err.text);
    return t;
}

static inline tec_rpc *pool_connect(pool *p)
{
    return pool_connect_as(p, NULL);
}

/* A device of the class; fails the test where none comes within 20 s. */
static inline tec_rpc_lease *pool_lease(pool *p, tec_rpc *t, const char *job)
{
    tec_rpc_lease *l = tec_rpc_request(
        t, &(tec_rpc_lease_options){.device_class = "board", .user = "ann", .job = job}, &p->err);

    cr_assert(l, "%s", p->err.text);
    cr_assert_eq(tec_rpc_wait(l, 20, &p->err), TEC_RPC_GRANTED, "%s", p->err.text);
    return l;
}

#endif
