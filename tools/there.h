/* tools/there.h -- inside the room: a model or a function of a module on a device far away, with an array
 * there for each of its parameters.
 *
 *     tool_there t = {.threads = 1, .graph = graph, .feed = feed};          // or .function
 *     if (tool_there_upload(cx, &t, session, "model.tec", &err)) {
 *         const tec_rpc_call_options call = tool_there_call(&t);
 *         tec_rpc_time(session, &call, NULL, &timing, &err);
 *     }
 *
 * Lifetime: what lies on the device lives as long as the session. Errors: in `err`. Threads: one.
 */
#ifndef TOOLS_THERE_H
#define TOOLS_THERE_H

#include "runtime/module.h"
#include "tec/rpc.h"
#include "tools/feed.h"

typedef struct {
    const rt_graph_desc *graph; /* NULL: a function */
    const char *function;
    int threads;  /* 0: all of the device */
    bool profile; /* the executor measures its steps */
    tool_feed feed;
    int64_t module, executor, *array; /* handles; an array for each port of the feed */
} tool_there;

/* Sends the module and the inputs; readies an executor for a graph. */
bool tool_there_upload(tec_context *cx, tool_there *self, tec_rpc_session *session, const char *path,
                       tec_error *err);
/* How it is called or measured. */
tec_rpc_call_options tool_there_call(const tool_there *self);

#endif
