/* tvmtune/doctor.c -- `tvmtune doctor`: the way of a job step by step, from the folder of the daemon to a
 * kernel that is measured. The first step that fails is named with what to do.
 */
#include <cjson/cJSON.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/guard.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tvmtune/child.h"
#include "tvmtune/client.h"
#include "tvmtune/commands.h"
#include "tvmtune/field.h"
#include "tvmtune/probe.h"

typedef struct {
    tec_context *cx;
    const char *state, *tracker, *device_class;
    bool json;
    tvm_daemon daemon;
    tvm_reply reply;
    tvm_probe probe;
} patient;

/* ---- the steps: each false with a reason in the context, in the probe, or in the reply ---- */

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

static void free_json(void *object)
{
    cJSON_Delete(object);
}

/* Which pool the daemon uses, and a class of its devices, unless the user names them. The daemon answers what
 * it knows, and asks its tracker behind that, so a second question finds the devices. */
static bool ask_for_pool(patient *self)
{
    base_held held;
    const cJSON *device;

    if (!tvm_ask(self->cx, &self->daemon, "GET", "/v1/devices", NULL, 0, &self->reply))
        return false;
    cJSON *o = cJSON_Parse(self->reply.data);
    base_hold(self->cx, &held, free_json, o);
    self->probe.tracker = self->tracker ? self->tracker : base_strdup(self->cx, tvm_text_of(o, "tracker"));
    if (self->device_class)
        self->probe.device_class = self->device_class;
    else
        cJSON_ArrayForEach(device,
                           cJSON_GetObjectItemCaseSensitive(o, "devices")) if (!*self->probe.device_class)
            self->probe.device_class = base_strdup(self->cx, tvm_text_of(device, "class"));
    base_drop(&held);
    return true;
}

/* Until a class of devices is known, or the tracker has had time to tell one. */
static bool reach_tracker(patient *self)
{
    enum { QUESTIONS = 25, SLICE_MS = 200 };

    for (int i = 0; i < QUESTIONS; i++) {
        if (!ask_for_pool(self))
            return false;
        if (!*self->probe.tracker || *self->probe.device_class)
            break;
        if (i == 0 && !tvm_probe_tracker(&self->probe))
            return false;
        poll(NULL, 0, SLICE_MS);
    }
    return self->probe.at_tracker || tvm_probe_tracker(&self->probe);
}

static bool match(patient *self)
{
    return tvm_probe_match(&self->probe);
}

static bool open_session(patient *self)
{
    return tvm_probe_session(&self->probe);
}

static bool ping(patient *self)
{
    return tvm_probe_ping(&self->probe);
}

static bool time_noop(patient *self)
{
    return tvm_probe_noop(&self->probe);
}

static bool calibrate(patient *self)
{
    return tvm_probe_calibration(&self->probe);
}

static const struct {
    const char *name;
    bool (*go)(patient *self);
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
    {"tracker", reach_tracker,
     "start 'rpc_tracker', and give its address (--tracker) and its keys (--key-file) to 'tvmtune serve' and "
     "to this command"},
    {"match", match,
     "'tec devices --tracker HOST:PORT' shows the classes and who has their devices; 'rpc_server --tracker' "
     "announces one"},
    {"session", open_session,
     "the server of the device does not answer or opens no session: its log on standard error says why"},
    {"ping", ping,
     "the server is there and does not answer: look at the load and the network of its machine"},
    {"no-op", time_noop,
     "no kernel can be compiled or run: the same commands by hand are 'tec te' and 'tec run'"},
    {"calibration", calibrate,
     "the clock of the device is of no use, or its sessions have no core of their own: look at its load"},
};

/* A line, or an object of JSON: what was found, or why the step failed and what to do. */
static void print_step(const patient *self, const char *name, bool ok, const char *why, const char *remedy)
{
    cJSON *o;

    if (self->json) {
        o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "step", name);
        cJSON_AddBoolToObject(o, "ok", ok);
        cJSON_AddStringToObject(o, "found", ok ? self->probe.note : why);
        if (!ok)
            cJSON_AddStringToObject(o, "remedy", remedy);
        char *text = cJSON_PrintUnformatted(o);
        printf("%s\n", text ? text : "{}");
        cJSON_free(text);
        cJSON_Delete(o);
    } else if (ok)
        printf("ok      %s%s%s\n", name, *self->probe.note ? ": " : "", self->probe.note);
    else
        printf("FAILED  %s: %s\n        %s\n", name, why, remedy);
}

/* The steps in their order, up to the first that fails. */
static int walk(patient *self)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        self->probe.note[0] = '\0';
        bool ok = steps[i].go(self);
        const char *why = *self->probe.why              ? self->probe.why
                          : tec_context_error(self->cx) ? tec_context_error(self->cx)
                                                        : self->reply.data;

        print_step(self, steps[i].name, ok, why, steps[i].remedy);
        if (!ok)
            return TOOL_FAILED;
    }
    return TOOL_OK;
}

/* Ends with status 1 at the first step that fails. */
int tvm_doctor(int argc, char **argv)
{
    patient p = {.state = TVM_STATE, .probe = {.tracker = "", .device_class = ""}};
    tool_list none = {0};
    const tool_option options[] = {
        {"state", TOOL_TEXT, &p.state, "DIR", "the folder of the daemon (default: " TVM_STATE ")"},
        {"tracker", TOOL_TEXT, &p.tracker, "HOST:PORT", "the tracker of the pool (default: the daemon's)"},
        {"device-class", TOOL_TEXT, &p.device_class, "CLASS",
         "the class of the device that is tried (default: the first one of the pool)"},
        {"key-file", TOOL_TEXT, &p.probe.key_file, "F",
         "the keys of the pool (default: those of this machine's loopback servers)"},
        {"json", TOOL_FLAG, &p.json, NULL, "prints a line of JSON for each step"},
    };
    const tool_usage usage = {
        "doctor",
        "",
        "Walks the way of a job: folder, daemon, token, record store, tracker, match, session, ping, a no-op "
        "and "
        "a calibration kernel that are compiled and timed. Names the first step that fails, and what to do.",
        options,
        BASE_COUNT(options),
        0,
        0};
    int status = tool_parse(&usage, argc, argv, &none);

    if (status != TOOL_GO_ON)
        return status;
    p.probe.cx = p.cx = tool_context();
    p.probe.tec = tvm_beside(p.cx, "tec");
    status = walk(&p);
    tvm_probe_close(&p.probe);
    tec_context_free(p.cx);
    return status;
}
