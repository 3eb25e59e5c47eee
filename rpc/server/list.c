/* rpc/server/list.c -- what the server offers: found by a process of its own, kept, told to clients. */
#include <string.h>

#include "rpc/server/serving.h"
#include "runtime/alloc.h"

enum { LIST_SECONDS = 60 };
/* Of the process that looks for devices, which loads the drivers of all of them. */
static const int64_t LIST_MEMORY = (int64_t)4 << 30;

/* The list is decoded and encoded anew for each client, as its version may be older and the sessions at work
 * have changed. */
void rpc_send_list(rpc_client *peer)
{
    rpc_server *server = peer->server;
    rt_arena arena = {0};
    rpc_any m;

    peer->wants_list = false;
    if (!peer->conn || !rpc_decode(&m, RPC_KIND_listed, server->list, server->n_list, RPC_NEWEST, &arena))
        return;
    m.listed.sessions = server->n_sessions;
    m.listed.most_sessions = server->o.most_sessions;
    rpc_conn_send(peer->conn, 0, RPC_KIND_listed, &m.listed);
    rt_arena_free(&arena);
}

/* Keeps the answer of the process that looked for devices. A failure ends the process at once, with its text
 * as the reason; on_list_ended tells those who wait. */
static bool on_list_answer(void *user, rpc_kind kind, const uint8_t *body, size_t size)
{
    rpc_server *server = user;
    rt_arena arena = {0};
    rpc_any m;

    if (kind == RPC_KIND_failure && rpc_decode(&m, (uint32_t)kind, body, size, RPC_NEWEST, &arena))
        rpc_host_kill(server->lister, (tec_status)m.failure.status, m.failure.text);
    else if (kind == RPC_KIND_listed && rpc_decode(&m, (uint32_t)kind, body, size, RPC_NEWEST, &arena)) {
        uint8_t *list = rt_alloc(size, NULL);

        if (list) {
            memcpy(list, body, size);
            rt_free(server->list);
            server->list = list;
            server->n_list = size;
        }
    }
    rt_arena_free(&arena);
    return true;
}

static void on_list_taken(void *user, size_t n)
{
    (void)user;
    (void)n;
}

/* The first list opens the doors: until then nobody is let in. A later look that fails leaves the old list in
 * force. `end->output` are the layers of the sandbox, which the process prints when it only lists. */
static void on_list_ended(void *user, const rpc_host_end *end)
{
    rpc_server *server = user;
    tec_error err = {0};

    server->lister = NULL;
    if (end->status != TEC_OK || !server->list)
        rpc_tell(server, "looking for devices failed: %s", *end->text ? end->text : "no answer came");
    if (!server->list) {
        rpc_stop_for(server, end->status == TEC_OK ? TEC_CRASHED : end->status, end->text);
        return;
    }
    if (!server->draining && !server->listener && !server->member) {
        rpc_tell(server, "sessions are kept in by: %s", end->output);
        if (!rpc_start_listening(server, &err))
            rpc_stop_for(server, err.status, err.text);
    }
    for (rpc_client *c = server->clients; c; c = c->next)
        if (c->wants_list)
            rpc_send_list(c);
    rpc_stop_when_idle(server);
}

static void on_list_tells(void *user, const char *text)
{
    rpc_tell(user, "the process that looks for devices %s", text);
}

static const rpc_host_events list_events = {on_list_answer, on_list_taken, on_list_ended, on_list_tells};

/* In a process of its own, with the same sandbox as a session: a driver that crashes ends that process
 * only. */
bool rpc_look_for_devices(rpc_server *server, tec_error *err)
{
    rpc_host_options o = rpc_host_options_of(server, &list_events, server);

    o.session.device = "list";
    o.session.seconds = LIST_SECONDS;
    o.session.memory_bytes = LIST_MEMORY;
    server->lister = rpc_host_start(server->loop, &o, err);
    return server->lister != NULL;
}
