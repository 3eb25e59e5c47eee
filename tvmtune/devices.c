/* tvmtune/devices.c -- see devices.h. */
#include "tvmtune/devices.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "tvmtune/child.h"

/* Seconds. */
enum { WANTED = 30, BETWEEN = 3, PATIENCE = 30, MEMORY = 1 << 30 };

struct tvm_devices {
    tvm_devices_options o;
    char out[4096], errors[4096];
    tvm_child child;
    time_t started;       /* the child, the last time */
    pthread_mutex_t lock; /* of all below */
    char *state;          /* NULL: nothing is known yet */
    time_t wanted;
};

static time_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

tvm_devices *tvm_devices_open(tec_context *cx, const tvm_devices_options *options)
{
    tvm_devices *self = calloc(1, sizeof *self);

    if (!self)
        return base_fail(cx, TEC_NO_MEMORY, (base_loc){0}, "out of memory");
    self->o = *options;
    snprintf(self->out, sizeof self->out, "%s/devices.json", options->folder);
    snprintf(self->errors, sizeof self->errors, "%s/devices.errors", options->folder);
    pthread_mutex_init(&self->lock, NULL);
    return self;
}

void tvm_devices_close(tvm_devices *self)
{
    if (!self)
        return;
    tvm_child_kill(&self->child);
    unlink(self->out);
    unlink(self->errors);
    pthread_mutex_destroy(&self->lock);
    free(self->state);
    free(self);
}

/* ---- asking ---- */

static void start(tvm_devices *self)
{
    const char *argv[] = {self->o.tec, "devices",    "--tracker",      self->o.tracker,
                          "--json",    "--key-file", self->o.key_file, NULL};

    if (!self->o.key_file)
        argv[5] = NULL;
    self->started = now();
    tvm_child_start(&self->child, argv, self->out, self->errors, MEMORY);
}

/* {"trouble": the first line of what the program said}; the caller frees it. */
static char *trouble(tec_context *cx, const char *errors)
{
    size_t size;
    const char *text = base_read_file(cx, errors, &size);
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "trouble",
                            text && *text ? base_format(cx, "%.*s", (int)strcspn(text, "\n"), text)
                                          : "the tracker does not answer");
    char *json = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    return json;
}

/* What the program printed, as long as it is an object; the caller frees it. */
static char *read_answer(const tvm_devices *self, tec_context *cx, int status)
{
    size_t size;

    BASE_GUARD(cx, NULL);
    const char *text =
        WIFEXITED(status) && WEXITSTATUS(status) == 0 ? base_read_file(cx, self->out, &size) : NULL;
    cJSON *object = text ? cJSON_Parse(text) : NULL;
    bool good = cJSON_IsObject(object);
    cJSON_Delete(object);
    return good ? strdup(text) : trouble(cx, self->errors);
}

static void collect(tvm_devices *self, int status)
{
    tec_context *cx = tec_context_new();
    char *state = cx ? read_answer(self, cx, status) : NULL;

    tec_context_free(cx);
    pthread_mutex_lock(&self->lock);
    free(self->state);
    self->state = state;
    pthread_mutex_unlock(&self->lock);
}

static bool is_wanted(tvm_devices *self)
{
    pthread_mutex_lock(&self->lock);
    bool wanted = self->wanted && now() - self->wanted < WANTED;
    pthread_mutex_unlock(&self->lock);
    return wanted;
}

void tvm_devices_tick(tvm_devices *self)
{
    int status;

    if (!self->o.tracker)
        return;
    if (self->child.pid > 0) {
        if (now() - self->started > PATIENCE)
            tvm_child_ask(&self->child);
        if (tvm_child_ended(&self->child, &status))
            collect(self, status);
    } else if ((!self->started || now() - self->started >= BETWEEN) && is_wanted(self))
        start(self);
}

const char *tvm_devices_state(tec_context *cx, tvm_devices *self)
{
    if (!self || !self->o.tracker)
        return "";
    pthread_mutex_lock(&self->lock);
    self->wanted = now();
    char *state = self->state ? strdup(self->state) : NULL;
    pthread_mutex_unlock(&self->lock);
    base_held held;
    base_hold(cx, &held, free, state);
    const char *copy = base_strdup(cx, state ? state : "");
    base_drop(&held);
    return copy;
}
