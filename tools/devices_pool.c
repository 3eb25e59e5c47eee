/* tools/devices_pool.c -- `tec devices --tracker`: the state of a pool, asked from its tracker. */
#include "tools/devices_pool.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "rpc/keys.h"
#include "rpc/loop/loop.h"
#include "runtime/error.h"
#include "tools/args.h"
#include "tools/caches.h"
#include "tools/key_file.h"

enum { ANSWER_MS = 10000 };

/* The answer, which comes in pages: printed as it comes, or gathered as JSON. `has_header`: the first page
 * has come. */
typedef struct {
    rpc_loop *loop;
    const char *tracker;
    cJSON *json, *classes, *jobs, *devices; /* NULL: print text */
    bool has_header, is_done;
    tec_error err;
} asking;

/* Pages are asked for one by one; the answer to this one tells where the next begins. */
static void inquire(rpc_conn *conn, int64_t from)
{
    rpc_conn_send(conn, 0, RPC_KIND_inquire, &(rpc_inquire){from});
}

/* ---- text ---- */

static void print_class(const rpc_class_row *row)
{
    printf("%-20s %7lld %6lld %6lld %7lld %8lld %10.1f s\n", row->name, (long long)row->devices,
           (long long)row->free, (long long)row->leased, (long long)row->waiting, (long long)row->granted,
           row->mean_wait);
}

static void print_job(const rpc_job_row *row)
{
    printf("%-20s %-14s %6g %-14s %8g %7lld %6lld %8.0f s\n", row->class, row->user, row->weight, row->job,
           row->priority, (long long)row->waiting, (long long)row->leased, row->used);
}

static void print_device(const rpc_device_row *row)
{
    printf("%-24s %-14s %-11s ", row->name, row->class, row->state);
    if (row->lease)
        printf("%s, job %s, for %.0f s\n", row->user, row->job, row->held);
    else
        printf("%s\n", row->reason[0] ? row->reason : row->hardware);
    tool_print_caches("                         ", row->caches.at, row->caches.n);
}

/* The first page has the head of everything; later ones go on with devices. */
static void print_page(asking *self, const rpc_state *state)
{
    const rpc_class_row *classes = state->classes.at;
    const rpc_job_row *jobs = state->jobs.at;
    const rpc_device_row *devices = state->devices.at;

    if (!self->has_header)
        printf("%s: %lld servers, up for %lld s\n", self->tracker, (long long)state->servers,
               (long long)state->seconds);
    if (!self->has_header && state->trouble[0])
        printf("trouble: %s\n", state->trouble);
    if (state->classes.n)
        printf("\n%-20s %7s %6s %6s %7s %8s %12s\n", "CLASS", "DEVICES", "FREE", "LEASED", "WAITING",
               "GRANTED", "MEAN WAIT");
    for (int64_t i = 0; i < state->classes.n; i++)
        print_class(&classes[i]);
    if (state->jobs.n)
        printf("\n%-20s %-14s %6s %-14s %8s %7s %6s %10s\n", "CLASS", "USER", "WEIGHT", "JOB", "PRIORITY",
               "WAITING", "LEASED", "USED");
    for (int64_t i = 0; i < state->jobs.n; i++)
        print_job(&jobs[i]);
    if (!self->has_header && state->devices.n)
        printf("\n%-24s %-14s %-11s\n", "DEVICE", "CLASS", "STATE");
    for (int64_t i = 0; i < state->devices.n; i++)
        print_device(&devices[i]);
    self->has_header = true;
}

/* ---- JSON ---- */

/* A record as an object, with the names of docs/rpc-messages.md. */
#define BEGIN_ROW cJSON *o = cJSON_CreateObject()
#define TEXT(field) cJSON_AddStringToObject(o, #field, row->field)
#define NUMBER(field) cJSON_AddNumberToObject(o, #field, (double)row->field)

/* What the columns of print_class show, and what did not fit. */
static cJSON *class_json(const rpc_class_row *row)
{
    BEGIN_ROW;

    TEXT(name);
    TEXT(fingerprint);
    NUMBER(devices);
    NUMBER(free);
    NUMBER(leased);
    NUMBER(waiting);
    NUMBER(granted);
    NUMBER(expired);
    NUMBER(withdrawn);
    NUMBER(mean_wait);
    NUMBER(longest_wait);
    return o;
}

/* Seconds of device time are what the job was charged: a lease that goes on counts with its guess. */
static cJSON *job_json(const rpc_job_row *row)
{
    BEGIN_ROW;

    TEXT(class);
    TEXT(user);
    NUMBER(weight);
    TEXT(job);
    NUMBER(priority);
    NUMBER(waiting);
    NUMBER(leased);
    NUMBER(granted);
    NUMBER(used);
    return o;
}

/* A device without a lease has the lease 0 and no user. */
static cJSON *device_json(const rpc_device_row *row)
{
    BEGIN_ROW;

    TEXT(name);
    TEXT(class);
    TEXT(state);
    TEXT(reason);
    TEXT(address);
    TEXT(hardware);
    TEXT(driver);
    TEXT(user);
    TEXT(job);
    NUMBER(lease);
    NUMBER(held);
    NUMBER(grants);
    NUMBER(used);
    if (row->caches.n)
        tool_add_caches(o, row->caches.at, row->caches.n);
    return o;
}

/* As print_page: the first page makes the lists, later ones add to them. */
static void add_page(asking *self, const rpc_state *row)
{
    const rpc_class_row *classes = row->classes.at;
    const rpc_job_row *jobs = row->jobs.at;
    const rpc_device_row *devices = row->devices.at;
    cJSON *o = self->json;

    if (!self->has_header) {
        TEXT(trouble);
        NUMBER(seconds);
        NUMBER(servers);
        NUMBER(clients);
        self->classes = cJSON_AddArrayToObject(o, "classes");
        self->jobs = cJSON_AddArrayToObject(o, "jobs");
        self->devices = cJSON_AddArrayToObject(o, "devices");
    }
    for (int64_t i = 0; i < row->classes.n; i++)
        cJSON_AddItemToArray(self->classes, class_json(&classes[i]));
    for (int64_t i = 0; i < row->jobs.n; i++)
        cJSON_AddItemToArray(self->jobs, job_json(&jobs[i]));
    for (int64_t i = 0; i < row->devices.n; i++)
        cJSON_AddItemToArray(self->devices, device_json(&devices[i]));
    self->has_header = true;
}

/* ---- asking ---- */

static void on_ready(rpc_conn *conn)
{
    inquire(conn, 0);
}

/* A page: the next one is asked for, until there is none. */
static void on_state(rpc_conn *conn, asking *self, const rpc_state *state)
{
    if (self->json)
        add_page(self, state);
    else
        print_page(self, state);
    if (state->next) {
        inquire(conn, state->next);
    } else {
        self->is_done = true;
        rpc_conn_close(conn, TEC_OK, "that was all");
    }
}

/* A page, or a failure; a server of devices in the tracker's place does not know the question and closes. */
static void on_frame(rpc_conn *conn, const rpc_frame *frame)
{
    asking *a = rpc_conn_user(conn);
    rt_arena arena = {0};
    rpc_any m;

    if (!rpc_decode(&m, (uint32_t)frame->kind, frame->body, frame->n, rpc_link_version(rpc_conn_link(conn)),
                    &arena))
        rpc_conn_close(conn, TEC_PROTOCOL, "the tracker's answer cannot be decoded");
    else if (frame->kind == RPC_KIND_state)
        on_state(conn, a, &m.state);
    else if (frame->kind == RPC_KIND_failure)
        rpc_conn_close(conn, (tec_status)m.failure.status, m.failure.text);
    rt_arena_free(&arena);
}

/* The connection is closed by this side after the last page, which is no error. */
static void on_closed(rpc_conn *conn, const tec_error *why)
{
    asking *a = rpc_conn_user(conn);

    if (!a->is_done)
        rt_fail(&a->err, why->status != TEC_OK ? why->status : TEC_LOST, "%s: %s", a->tracker, why->text);
    rpc_loop_stop(a->loop);
}

static const rpc_events events = {.ready = on_ready, .frame = on_frame, .closed = on_closed};

/* The loop is stopped here, as the connection may never be closed by the other side. */
static void too_late(void *user)
{
    asking *a = user;

    rt_fail(&a->err, TEC_TIMEOUT, "%s: no answer within %d s", a->tracker, ANSWER_MS / 1000);
    rpc_loop_stop(a->loop);
}

/* A dial that fails at once leaves its reason in `err`, and the loop is not run. */
static bool ask(asking *self, const rpc_key *key)
{
    rpc_conn_options o = {.link = {.key = key, .program = "tec devices"}, .events = &events, .user = self};

    self->loop = rpc_loop_new(&self->err);
    if (!self->loop)
        return false;
    if (rpc_dial(self->loop, self->tracker, &o, &self->err)) {
        rpc_timer_start(self->loop, ANSWER_MS, 0, too_late, self);
        rpc_loop_run(self->loop);
    }
    rpc_loop_free(self->loop);
    return self->is_done && self->err.status == TEC_OK;
}

/* Reads the key, asks, prints. The first key of the file that is not revoked is used: every role may ask. */
int tool_devices_of_pool(const char *tracker, const char *key_file, bool json)
{
    asking a = {.tracker = tracker};
    char path[4096];
    rpc_keys keys = {0};
    const rpc_key_row *row = NULL;

    if (!tool_key_file(key_file, path, sizeof path))
        rt_fail(
            &a.err, TEC_INVALID,
            "cannot find the key file: --key-file is not given, and neither XDG_STATE_HOME nor HOME is set");
    else if (rpc_keys_read(&keys, path, &a.err))
        row = rpc_keys_pick(&keys, NULL, &a.err);
    a.json = json ? cJSON_CreateObject() : NULL;
    bool good = row && ask(&a, &row->key);
    if (good && a.json) {
        char *text = cJSON_Print(a.json);

        puts(text);
        cJSON_free(text);
    }
    cJSON_Delete(a.json);
    rpc_keys_free(&keys);
    if (!good)
        fprintf(stderr, "tec devices: %s\n", a.err.text);
    return good ? TOOL_OK : TOOL_FAILED;
}
