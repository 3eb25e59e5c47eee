/* rpc/server/things.c -- modules, arrays and executors of a session: made, filled, read, given back.
 *
 * A handle is a place in the table, counted from 1: 0 means none on the wire.
 */
#include <stdio.h>
#include <string.h>

#include "rpc/server/inside.h"
#include "runtime/alloc.h"
#include "runtime/cpu.h"

static const char *const kind_names[] = {"", "module", "array", "executor"};

/* The pointer is valid until the next rpc_add_thing, which may move the table. */
rpc_thing *rpc_find_thing(rpc_session *s, int64_t handle, rpc_thing_kind kind, tec_error *err)
{
    if (handle >= 1 && handle <= s->n_things && s->things[handle - 1].kind == kind)
        return &s->things[handle - 1];
    rt_fail(err, TEC_INVALID, "this session has no %s %lld", kind_names[kind], (long long)handle);
    return NULL;
}

/* The place stays, as NONE, for the next thing. */
static void free_thing(rpc_thing *t)
{
    switch (t->kind) {
    case RPC_THING_NONE: break;
    case RPC_THING_MODULE: tec_module_free(t->module); break;
    case RPC_THING_ARRAY: tec_array_free(t->array); break;
    case RPC_THING_EXECUTOR: tec_executor_free(t->executor); break;
    }
    t->kind = RPC_THING_NONE;
}

static bool grow(rpc_session *s, tec_error *err)
{
    int64_t cap = s->cap ? 2 * s->cap : 64;
    rpc_thing *things = rt_alloc_array(cap, sizeof *things, err);

    if (!things)
        return false;
    if (s->n_things)
        memcpy(things, s->things, (size_t)s->n_things * sizeof *things);
    rt_free(s->things);
    s->things = things;
    s->cap = cap;
    return true;
}

/* A handle whose thing was given back is used again by the next thing: handles stay small. Takes the thing
 * over in any case: without room for it, it is freed. The first free place is searched, which is short beside
 * what made the thing. */
int64_t rpc_add_thing(rpc_session *s, rpc_thing t, tec_error *err)
{
    int64_t i = 0;

    while (i < s->n_things && s->things[i].kind != RPC_THING_NONE)
        i++;
    bool room = i < s->cap || (i < RPC_MOST_THINGS && grow(s, err));
    if (!room) {
        rt_fail(err, TEC_INVALID, "a session holds at most %d modules, arrays and executors",
                RPC_MOST_THINGS);
        free_thing(&t);
        return 0;
    }
    s->things[i] = t;
    s->n_things = i < s->n_things ? s->n_things : i + 1;
    return i + 1;
}

void rpc_free_things(rpc_session *s)
{
    for (int64_t i = 0; i < s->n_things; i++)
        free_thing(&s->things[i]);
    rt_free(s->things);
    rt_free(s->transfer.own);
    s->things = NULL;
    s->n_things = s->cap = 0;
}

/* Frees an array, executor or module. Functions of a module that were kept for the next call go with the
 * module. */
bool rpc_on_release(rpc_session *s, const rpc_release *m)
{
    tec_error err = {0};
    bool there =
        m->handle >= 1 && m->handle <= s->n_things && s->things[m->handle - 1].kind != RPC_THING_NONE;

    if (!there) {
        rt_fail(&err, TEC_INVALID, "this session has no thing %lld", (long long)m->handle);
        return rpc_answer_error(s, &err);
    }
    if (s->things[m->handle - 1].kind == RPC_THING_MODULE)
        rpc_forget_functions(s, m->handle);
    free_thing(&s->things[m->handle - 1]);
    return rpc_answer_done(s, m->handle);
}

/* An array of the session's device; type and rank are checked here, as they come from outside. */
bool rpc_on_allocate(rpc_session *s, const rpc_allocate *m)
{
    tec_error err = {0};
    DLDataType t = {(uint8_t)m->code, (uint8_t)m->bits, 1};
    bool fits = m->code >= 0 && m->code <= 255 && m->bits > 0 && m->bits <= 255 && m->shape.n <= 16;
    tec_array *a = NULL;

    if (!fits)
        rt_fail(&err, TEC_INVALID, "there are no arrays of type code %lld with %lld bits and rank %lld",
                (long long)m->code, (long long)m->bits, (long long)m->shape.n);
    else
        a = s->is_cpu ? tec_array_new(t, (int)m->shape.n, m->shape.at, &err)
                      : tec_array_new_on(s->device, t, (int)m->shape.n, m->shape.at, &err);
    int64_t handle = a ? rpc_add_thing(s, (rpc_thing){RPC_THING_ARRAY, {.array = a}}, &err) : 0;
    return handle ? rpc_answer_done(s, handle) : rpc_answer_error(s, &err);
}

bool rpc_on_read(rpc_session *s, const rpc_read *m)
{
    tec_error err = {0};
    rpc_thing *t = rpc_find_thing(s, m->array, RPC_THING_ARRAY, &err);

    return t ? rpc_answer_tensor(s, tec_array_tensor(t->array)) : rpc_answer_error(s, &err);
}

/* ---- transfers ---- */

/* A label for messages: no path, nothing that spoils a log. */
static bool is_label(const char *name)
{
    if (!*name || strlen(name) >= sizeof((rpc_transfer *)0)->name || *name == '.')
        return false;
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f || *name == '/' || *name == '\\')
            return false;
    return true;
}

/* The transfer fails now; what comes of it is dropped. The transfer stays active with nowhere to put bytes:
 * those that are under way arrive, and are no error of their own. */
static bool refuse(rpc_session *s, const tec_error *err)
{
    rt_free(s->transfer.own);
    s->transfer = (rpc_transfer){.active = true};
    return rpc_answer_error(s, err);
}

/* The bytes are read in place and may be freed afterwards: tec_module_open_bytes keeps what it needs. */
static bool finish_upload(rpc_session *s)
{
    rpc_transfer *t = &s->transfer;
    tec_error err = {0};
    tec_module *m = tec_module_open_bytes(t->own, (size_t)t->size, NULL, &err);
    int64_t handle = m ? rpc_add_thing(s, (rpc_thing){RPC_THING_MODULE, {.module = m}}, &err) : 0;

    rt_free(t->own);
    *t = (rpc_transfer){0};
    return handle ? rpc_answer_done(s, handle) : rpc_answer_error(s, &err);
}

/* An array of a device gets its bytes by way of main memory. `host` has the array's type and shape and the
 * bytes that came, and is copied as a whole. The array is still there: a question that could release it ends
 * the transfer first. */
static bool finish_write(rpc_session *s)
{
    rpc_transfer *t = &s->transfer;
    tec_error err = {0};
    int64_t handle = t->array;
    rpc_thing *thing = rpc_find_thing(s, handle, RPC_THING_ARRAY, &err);
    bool good = thing != NULL;

    if (good && t->own) {
        DLTensor host = *tec_array_tensor(thing->array);

        host.data = t->own;
        host.byte_offset = 0;
        host.device = (DLDevice){kDLCPU, 0};
        good = tec_tensor_copy(tec_array_tensor(thing->array), &host, &err);
    }
    rt_free(t->own);
    *t = (rpc_transfer){0};
    return good ? rpc_answer_done(s, handle) : rpc_answer_error(s, &err);
}

/* Called behind every piece, and at the start for a transfer of no bytes. */
static bool go_on(rpc_session *s)
{
    if (s->transfer.got < s->transfer.size)
        return true;
    return s->transfer.array ? finish_write(s) : finish_upload(s);
}

/* Begins to take a module: its name, size and architecture are checked before any memory is taken. */
bool rpc_on_upload(rpc_session *s, const rpc_upload *m)
{
    rpc_transfer *t = &s->transfer;
    tec_error err = {0};

    *t = (rpc_transfer){.active = true, .size = m->size};
    if (!is_label(m->name))
        rt_fail(&err, TEC_INVALID,
                "the name of an upload is a label of 1 to %d characters, without slashes and not beginning "
                "with a dot",
                (int)sizeof t->name - 1);
    else if (m->size <= 0)
        rt_fail(&err, TEC_INVALID, "module '%s' has %lld bytes", m->name, (long long)m->size);
    else if (m->size > s->o.memory_bytes)
        rt_fail(&err, TEC_NO_MEMORY, "module '%s' has %lld bytes; this session may use %lld", m->name,
                (long long)m->size, (long long)s->o.memory_bytes);
    else if (*m->arch && strcmp(m->arch, rt_cpu_arch()) != 0)
        rt_fail(&err, TEC_UNSUPPORTED, "module '%s' is for %s; this machine is %s", m->name, m->arch,
                rt_cpu_arch());
    else
        t->own = t->to = rt_alloc_aligned((size_t)m->size, &err);
    if (err.status != TEC_OK)
        return refuse(s, &err);
    snprintf(t->name, sizeof t->name, "%s", m->name);
    return true;
}

/* Begins to fill an array: on a CPU in place, for a device in memory that is copied when all has come. */
bool rpc_on_write(rpc_session *s, const rpc_write *m)
{
    rpc_transfer *t = &s->transfer;
    tec_error err = {0};
    rpc_thing *thing = rpc_find_thing(s, m->array, RPC_THING_ARRAY, &err);
    const DLTensor *tensor = thing ? tec_array_tensor(thing->array) : NULL;
    int64_t bytes = tensor ? tec_tensor_bytes(tensor) : 0;

    *t = (rpc_transfer){.active = true, .array = m->array, .size = m->size};
    if (tensor && m->size != bytes)
        rt_fail(&err, TEC_INVALID, "array %lld has %lld bytes, not %lld", (long long)m->array,
                (long long)bytes, (long long)m->size);
    else if (tensor && s->is_cpu)
        t->to = (uint8_t *)tensor->data + tensor->byte_offset;
    else if (tensor)
        t->own = t->to = rt_alloc_aligned((size_t)bytes, &err);
    return err.status == TEC_OK ? go_on(s) : refuse(s, &err);
}

/* The next bytes of the transfer under way. Those of a refused transfer are dropped until it is over. */
bool rpc_on_data(rpc_session *s, const rpc_data *m)
{
    rpc_transfer *t = &s->transfer;
    tec_error err = {0};

    if (!t->active) {
        rt_fail(&err, TEC_INVALID, "data came that no upload or write had announced");
        return rpc_answer_error(s, &err);
    }
    if (!t->to)
        return true;
    if ((int64_t)m->bytes.n > t->size - t->got) {
        rt_fail(&err, TEC_INVALID, "more than the %lld bytes came that were announced", (long long)t->size);
        return refuse(s, &err);
    }
    memcpy(t->to + t->got, m->bytes.data, m->bytes.n);
    t->got += (int64_t)m->bytes.n;
    return go_on(s);
}

/* A transfer that had failed before was answered then, and needs no second answer. */
bool rpc_end_transfer(rpc_session *s)
{
    rpc_transfer *t = &s->transfer;
    tec_error err = {0};
    bool failed_before = !t->to;

    rt_fail(&err, TEC_INVALID, "%lld of %lld bytes came before the next question", (long long)t->got,
            (long long)t->size);
    rt_free(t->own);
    *t = (rpc_transfer){0};
    return failed_before || rpc_answer_error(s, &err);
}
