/* tools/remote.c -- see remote.h. */
#include "tools/remote.h"

#include <limits.h>
#include <stdio.h>

#include "runtime/error.h"
#include "tools/key_file.h"

/* Words that only make sense together are compared with each other before anything is dialled. */
int tool_remote_check(const char *command, const tool_remote_options *options)
{
    if (options->rpc && options->tracker)
        return tool_misuse(command, "--rpc names a server, and --tracker asks for one; give one of them");
    if (options->tracker && !options->device_class)
        return tool_misuse(command,
                           "--tracker needs --device-class: which devices are as good as each other");
    if (!options->tracker &&
        (options->device_class || options->user || options->job || options->priority || options->wait > 0))
        return tool_misuse(command, "--device-class, --user, --job, --priority and --wait are for --tracker");
    if (!tool_is_remote(options) && options->key_file)
        return tool_misuse(command, "--key-file is for --rpc and --tracker");
    return TOOL_GO_ON;
}

/* Ends with NULL. What was not given is left out, so that the other process takes its own default. */
void tool_remote_say(const tool_remote_options *options, tool_remote_words *words, const char **argv)
{
    snprintf(words->priority, sizeof words->priority, "%lld", (long long)options->priority);
    snprintf(words->wait, sizeof words->wait, "%.17g", options->wait);
    const char *const pairs[][2] = {{"--rpc", options->rpc},
                                    {"--tracker", options->tracker},
                                    {"--device-class", options->device_class},
                                    {"--key-file", options->key_file},
                                    {"--user", options->user},
                                    {"--job", options->job},
                                    {"--priority", options->priority ? words->priority : NULL},
                                    {"--wait", options->wait > 0 ? words->wait : NULL}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][1]) {
            *argv++ = pairs[i][0];
            *argv++ = pairs[i][1];
        }
    *argv = NULL;
}

/* Tells the place in the queue when it changes. */
static void tell_queue(tec_rpc_lease *lease, const char *command, const char *class, int64_t *told)
{
    tec_rpc_queue q;

    if (!tec_rpc_queue_of(lease, &q) || q.ahead == *told)
        return;
    *told = q.ahead;
    fprintf(stderr, "tec %s: waiting: %lld ahead of you; %lld of %lld devices of class '%s' are leased\n",
            command, (long long)q.ahead, (long long)q.leased, (long long)q.devices, class);
}

/* Looks four times a second, so that the place in the queue is told soon. */
static bool wait_for_lease(tool_remote *remote, const char *command, const tool_remote_options *options,
                           tec_error *err)
{
    tec_rpc_lease_state state = TEC_RPC_WAITING;
    double until = tec_clock() + options->wait;
    int64_t told = -1;

    while (state == TEC_RPC_WAITING && (options->wait <= 0 || tec_clock() < until)) {
        state = tec_rpc_wait(remote->lease, 0.25, err);
        tell_queue(remote->lease, command, options->device_class, &told);
    }
    if (state == TEC_RPC_WAITING)
        return rt_fail(err, TEC_TIMEOUT, "no device of class '%s' became free within %g s",
                       options->device_class, options->wait);
    return state == TEC_RPC_GRANTED;
}

/* A connection to the tracker, a lease, and a connection to its server. */
static bool lease(tool_remote *remote, const char *command, const tool_remote_options *options,
                  const char *key_file, tec_error *err)
{
    remote->tracker =
        tec_rpc_connect(options->tracker, &(tec_rpc_options){.key_file = key_file, .program = command}, err);
    remote->lease = remote->tracker
                        ? tec_rpc_request(remote->tracker,
                                          &(tec_rpc_lease_options){.device_class = options->device_class,
                                                                   .user = options->user,
                                                                   .job = options->job,
                                                                   .priority = (int)options->priority},
                                          err)
                        : NULL;
    if (!remote->lease || !wait_for_lease(remote, command, options, err))
        return false;
    remote->server = tec_rpc_connect_leased(remote->lease, NULL, err);
    return remote->server != NULL;
}

/* What was opened before a failure is closed again. */
bool tool_remote_open(tool_remote *remote, const char *command, const tool_remote_options *options,
                      const char *device, tec_error *err)
{
    char keys[PATH_MAX];

    *remote = (tool_remote){0};
    if (!tool_key_file(options->key_file, keys, sizeof keys))
        return rt_fail(err, TEC_INVALID,
                       "cannot find the key file: --key-file is not given and HOME is not set");
    bool good;
    if (options->tracker)
        good = lease(remote, command, options, keys, err);
    else {
        remote->server =
            tec_rpc_connect(options->rpc, &(tec_rpc_options){.key_file = keys, .program = command}, err);
        good = remote->server != NULL;
    }
    if (good)
        remote->session =
            tec_rpc_open(remote->server, &(tec_rpc_session_options){.device = device, .label = command}, err);
    if (remote->session)
        return true;
    tool_remote_close(remote);
    return false;
}

void tool_remote_close(tool_remote *remote)
{
    tec_rpc_close(remote->session);
    tec_rpc_disconnect(remote->server);
    tec_rpc_give_back(remote->lease);
    tec_rpc_disconnect(remote->tracker);
    *remote = (tool_remote){0};
}
