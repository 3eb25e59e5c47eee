/* tools/there.c -- see there.h. */
#include "tools/there.h"

/* An array for each parameter, filled where the parameter is an input. */
static bool send_arrays(tec_context *cx, tool_there *self, tec_rpc_session *session, tec_error *err)
{
    self->array = base_array(cx, int64_t, self->feed.n);
    for (int i = 0; i < self->feed.n; i++) {
        const DLTensor *t = self->feed.port[i].tensor;

        self->array[i] = tec_rpc_array(session, t->dtype, t->ndim, t->shape, err);
        if (!self->array[i] ||
            (!self->feed.port[i].is_output && !tec_rpc_write(session, self->array[i], t, err)))
            return false;
    }
    return true;
}

static bool ready_executor(tool_there *self, tec_rpc_session *session, tec_error *err)
{
    const tec_rpc_prepare_options o = {self->threads, self->profile};

    self->executor = tec_rpc_prepare_with(session, self->module, self->graph->name, &o, err);
    for (int i = 0; self->executor && i < self->feed.n; i++)
        if (!tec_rpc_feed(session, self->executor, i, self->array[i], err))
            return false;
    return self->executor;
}

bool tool_there_upload(tec_context *cx, tool_there *self, tec_rpc_session *session, const char *path,
                       tec_error *err)
{
    self->module = tec_rpc_upload(session, path, err);
    return self->module && send_arrays(cx, self, session, err) &&
           (!self->graph || ready_executor(self, session, err));
}

tec_rpc_call_options tool_there_call(const tool_there *self)
{
    return (tec_rpc_call_options){.module = self->module,
                                  .function = self->function,
                                  .arrays = self->array,
                                  .n = self->executor ? 0 : self->feed.n,
                                  .threads = self->threads,
                                  .executor = self->executor};
}
