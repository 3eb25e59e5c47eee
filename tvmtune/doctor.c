/* tvmtune/doctor.c -- `tvmtune doctor`: the way of a request step by step. The first step that fails is named
 * with what to do. */
#include <stdio.h>

#include "tools/context.h"
#include "tvmtune/client.h"
#include "tvmtune/commands.h"

typedef struct {
    tec_context *cx;
    const char *state;
    tvm_daemon daemon;
    tvm_reply reply;
} patient;

/* ---- the steps: each false with a reason in the context, or in the reply ---- */

static bool read_folder(patient *self)
{
    return tvm_find_daemon(self->cx, self->state, 0, NULL, &self->daemon);
}

static bool reach_daemon(patient *self)
{
    return tvm_ask(self->cx, &self->daemon, "GET", "/v1/jobs", NULL, 0, &self->reply);
}

static bool show_token(patient *self)
{
    return self->reply.status != 401 && self->reply.status != 403;
}

static bool read_store(patient *self)
{
    return self->reply.status == 200;
}

static const struct {
    const char *name;
    bool (*go)(patient *p);
    const char *remedy;
} steps[] = {
    {"folder", read_folder,
     "start the daemon with 'tvmtune serve --state DIR', and name its folder with --state; its user alone "
     "may read it"},
    {"daemon", reach_daemon,
     "the daemon that wrote the port is gone or hangs: start it again with 'tvmtune serve --state DIR'"},
    {"token", show_token,
     "the token of the folder is not the daemon's: start the daemon again after a change of the file "
     "'token'"},
    {"store", read_store,
     "the daemon cannot read its record store: look at 'tec records check DIR/tune.db' and at the space on "
     "the disk"},
};

/* Stops at the first step that fails: the later ones need it. Each step has a remedy to print. */
static int walk(patient *self)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].go(self)) {
            printf("ok      %s\n", steps[i].name);
            continue;
        }
        const char *why = tec_context_error(self->cx) ? tec_context_error(self->cx) : self->reply.data;

        printf("FAILED  %s: %s\n        %s\n", steps[i].name, why, steps[i].remedy);
        return TOOL_FAILED;
    }
    return TOOL_OK;
}

/* Ends with status 1 at the first step that fails. */
int tvm_doctor(int argc, char **argv)
{
    patient p = {.state = TVM_STATE};
    tool_list none = {0};
    const tool_option options[] = {
        {"state", TOOL_TEXT, &p.state, "DIR", "the folder of the daemon (default: " TVM_STATE ")"}};
    const tool_usage usage = {"doctor",
                              "",
                              "Checks the folder, the daemon, the token and the record store in this order, "
                              "and names the first fault.",
                              options,
                              1,
                              0,
                              0};
    int status = tool_parse(&usage, argc, argv, &none);

    if (status != TOOL_GO_ON)
        return status;
    p.cx = tool_context();
    status = walk(&p);
    tec_context_free(p.cx);
    return status;
}
