/* tools/remote.c -- see remote.h. */
#include "tools/remote.h"

#include <limits.h>
#include <stdio.h>

#include "runtime/error.h"
#include "tools/key_file.h"

int tool_remote_check(const char *command, const tool_remote_options *o)
{
    if (o->rpc && o->tracker)
        return tool_misuse(command, "--rpc names a server, and --tracker asks for one; give one of them");
    if (o->tracker && !o->device_class)
        return tool_misuse(command,
                           "--tracker needs --device-class: which devices are as good as each other");
    if (!o->tracker && (o->device_class || o->user || o->job || o->priority || o->wait > 0))
        return tool_misuse(command, "--device-class, --user, --job, --priority and --wait are for --tracker");
    if (!tool_is_remote(o) && o->key_file)
        return tool_misuse(command, "--key-file is for --rpc and --tracker");
    return TOOL_GO_ON;
}

/* Tells the place in the queue when it changes. */
static void tell_queue(tec_rpc_lease *l, const char *command, const char *class, int64_t *told)
{
    tec_rpc_queue q;

    if (!tec_rpc_queue_of(l, &q) || q.ahead == *told)
        return;
    *told = q.ahead;
    fprintf(stderr, "tec %s: waiting: %lld ahead of you; %lld of %lld devices of class '%s' are leased\n",
            command, (long long)q.ahead, (long long)q.leased, (long long)q.devices, class);
}

/* Looks four times a second, so that the place in the queue is told soon. */
static bool wait_for_lease(tool_remote *r, const char *command, const tool_remote_options *o, tec_error *err)
{
    tec_rpc_lease_state state = TEC_RPC_WAITING;
    double until = tec_clock() + o->wait;
    int64_t told = -1;

    while (state == TEC_RPC_WAITING && (o->wait <= 0 || tec_clock() < until)) {
        state = tec_rpc_wait(r->lease, 0.25, err);
        tell_queue(r->lease, command, o->device_class, &told);
    }
    if (state == TEC_RPC_WAITING)
        return rt_fail(err, TEC_TIMEOUT, "no device of class '%s' became free within %g s", o->device_class,
                       o->wait);
    return state == TEC_RPC_GRANTED;
}

/* A connection to the tracker, a lease, and a connection to its server. */
static bool lease(tool_remote *r, const char *command, const tool_remote_options *o, const char *key_file,
                  tec_error *err)
{
    r->tracker =
        tec_rpc_connect(o->tracker, &(tec_rpc_options){.key_file = key_file, .program = command}, err);
    r->lease = r->tracker ? tec_rpc_request(r->tracker,
                                            &(tec_rpc_lease_options){.device_class = o->device_class,
                                                                     .user = o->user,
                                                                     .job = o->job,
                                                                     .priority = (int)o->priority},
                                            err)
                          : NULL;
    if (!r->lease || !wait_for_lease(r, command, o, err))
        return false;
    r->server = tec_rpc_connect_leased(r->lease, NULL, err);
    return r->server != NULL;
}

/* What was opened before a failure is closed again. */
bool tool_remote_open(tool_remote *r, const char *command, const tool_remote_options *o, const char *device,
                      tec_error *err)
{
    char keys[PATH_MAX];

    *r = (tool_remote){0};
    if (!tool_key_file(o->key_file, keys, sizeof keys))
        return rt_fail(err, TEC_INVALID, "neither --key-file nor $HOME says where the file of keys is");
    bool good;
    if (o->tracker)
        good = lease(r, command, o, keys, err);
    else {
        r->server = tec_rpc_connect(o->rpc, &(tec_rpc_options){.key_file = keys, .program = command}, err);
        good = r->server != NULL;
    }
    if (good)
        r->session =
            tec_rpc_open(r->server, &(tec_rpc_session_options){.device = device, .label = command}, err);
    if (r->session)
        return true;
    tool_remote_close(r);
    return false;
}

void tool_remote_close(tool_remote *r)
{
    tec_rpc_close(r->session);
    tec_rpc_disconnect(r->server);
    tec_rpc_give_back(r->lease);
    tec_rpc_disconnect(r->tracker);
    *r = (tool_remote){0};
}
