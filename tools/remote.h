/* tools/remote.h -- inside the room: a session on a device far away, for commands: of a server that is named,
 * or of a pool's tracker.
 *
 *     tool_remote_options o = {0};
 *     const tool_option options[] = {TOOL_REMOTE_OPTIONS(o), ...};
 *     if ((status = tool_remote_check("run", &o)) != TOOL_GO_ON) return status;
 *     tool_remote r = {0};
 *     if (!tool_remote_open(&r, "run", &o, NULL, &err)) return tool_fail_run("run", &err);
 *     use(r.session);
 *     tool_remote_close(&r);
 */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include "tec/rpc.h"
#include "tools/args.h"

typedef struct {
    const char *rpc, *tracker, *device_class, *key_file, *user, *job;
    int64_t priority;
    double wait; /* seconds for a device to become free; 0: as long as it takes */
} tool_remote_options;

#define TOOL_REMOTE_OPTIONS(o)                                                                               \
    {"rpc", TOOL_TEXT, &(o).rpc, "A:P", "run on the rpc_server at this address"},                            \
        {"tracker", TOOL_TEXT, &(o).tracker, "A:P",                                                          \
         "run on a device of the pool of this tracker; waits until one is free"},                            \
        {"device-class", TOOL_TEXT, &(o).device_class, "C", "of the device asked from --tracker"},           \
        {"key-file", TOOL_TEXT, &(o).key_file, "F",                                                          \
         "keys for --rpc and --tracker (those of this machine's loopback server)"},                          \
        {"user", TOOL_TEXT, &(o).user, "U", "whose share of the pool is used (the first user of the key)"},  \
        {"job", TOOL_TEXT, &(o).job, "J", "whose share of the user's is used (the command's name)"},         \
        {"priority", TOOL_COUNT, &(o).priority, "N", "of the job among the user's: 1 to 100 (10)"},          \
        {"wait", TOOL_DECIMAL, &(o).wait, "S",                                                               \
         "seconds to wait for a device of --tracker (as long as it takes)"}

/* Reports options that do not go together; TOOL_GO_ON, or a status. */
int tool_remote_check(const char *command, const tool_remote_options *options);
static inline bool tool_is_remote(const tool_remote_options *options)
{
    return options->rpc || options->tracker;
}

/* The options as words of a command line for another process; `argv` has room for TOOL_REMOTE_WORDS. */
enum { TOOL_REMOTE_WORDS = 17 };
typedef struct {
    char priority[24], wait[32];
} tool_remote_words;
void tool_remote_say(const tool_remote_options *options, tool_remote_words *words, const char **argv);

typedef struct {
    tec_rpc *tracker, *server;
    tec_rpc_lease *lease;
    tec_rpc_session *session;
} tool_remote;

/* `device` of --rpc; NULL: cpu:0. Tells on standard error how long the queue is while it waits. */
bool tool_remote_open(tool_remote *remote, const char *command, const tool_remote_options *options,
                      const char *device, tec_error *err);
void tool_remote_close(tool_remote *remote);

#endif
