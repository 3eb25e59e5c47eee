/* rpc/server/things.c -- what a session has made for its client: kept, filled, read, given back.
 *
 * A handle is a place in the table, counted from 1: 0 means none on the wire.
 */
#include <stdio.h>
#include <string.h>

#include "rpc/server/inside.h"
#include "runtime/alloc.h"
#include "runtime/cpu.h"

static const char *const kind_names[] = {"", "module", "array", "executor", "program", "value"};

/* The pointer is valid until the next rpc_add_thing, which may move the table. */
rpc_thing *rpc_find_thing(rpc_session *session, int64_t handle, rpc_thing_kind kind, tec_error *err)
{
    if (handle >= 1 && handle <= session->n_things && session->things[handle - 1].kind == kind)
        return &session->things[handle - 1];
    rt_fail(err, TEC_INVALID, "this session has no %s %lld", kind_names[kind], (long long)handle);
    return NULL;
}

/* The place stays, as NONE, for the next thing. */
static void free_thing(rpc_thing *thing)
{
    switch (thing->kind) {
    case RPC_THING_NONE: break;
    case RPC_THING_MODULE: tec_module_free(thing->module); break;
    case RPC_THING_ARRAY: tec_array_free(thing->array); break;
    case RPC_THING_EXECUTOR: tec_executor_free(thing->executor); break;
    case RPC_THING_PROGRAM: tec_program_free(thing->program); break;
    case RPC_THING_VALUE: tec_object_free(thing->value.object); break;
    }
    thing->kind = RPC_THING_NONE;
}

static bool grow(rpc_session *session, tec_error *err)
{
    int64_t cap = session->cap ? 2 * session->cap : 64;
    rpc_thing *things = rt_alloc_array(cap, sizeof *things, err);

    if (!things)
        return false;
    if (session->n_things)
        memcpy(things, session->things, (size_t)session->n_things * sizeof *things);
    rt_free(session->things);
    session->things = things;
    session->cap = cap;
    return true;
}

/* A handle whose thing was given back is used again by the next thing: handles stay small. Takes the thing
 * over in any case: without room for it, it is freed. */
int64_t rpc_add_thing(rpc_session *session, rpc_thing thing, tec_error *err)
{
    int64_t i = session->first_free;

    while (i < session->n_things && session->things[i].kind != RPC_THING_NONE)
        i++;
    bool room = i < session->cap || (i < RPC_MOST_THINGS && grow(session, err));
    if (!room) {
        rt_fail(err, TEC_INVALID, "a session holds at most %d modules, arrays and values", RPC_MOST_THINGS);
        free_thing(&thing);
        return 0;
    }
    session->things[i] = thing;
    session->first_free = i + 1;
    session->n_things = i < session->n_things ? session->n_things : i + 1;
    return i + 1;
}

/* Values of an instance, before the instance goes; of: its handle, or 0 for all. */
static void free_values(rpc_session *session, int64_t of)
{
    for (int64_t i = 0; i < session->n_things; i++) {
        rpc_thing *thing = &session->things[i];

        if (thing->kind == RPC_THING_VALUE && (!of || thing->value.of == of)) {
            free_thing(thing);
            session->first_free = i < session->first_free ? i : session->first_free;
        }
    }
}

void rpc_free_things(rpc_session *session)
{
    free_values(session, 0);
    for (int64_t i = 0; i < session->n_things; i++)
        free_thing(&session->things[i]);
    rt_free(session->things);
    rt_free(session->transfer.own);
    session->things = NULL;
    session->n_things = session->cap = session->first_free = 0;
}

/* Functions of a module that were kept for the next call go with the module, values of an instance with the
 * instance. */
void rpc_drop_thing(rpc_session *session, int64_t handle)
{
    rpc_thing *thing = &session->things[handle - 1];

    if (thing->kind == RPC_THING_MODULE)
        rpc_forget_functions(session, handle);
    if (thing->kind == RPC_THING_PROGRAM)
        free_values(session, handle);
    free_thing(thing);
    session->first_free = handle - 1 < session->first_free ? handle - 1 : session->first_free;
}

bool rpc_on_release(rpc_session *session, const rpc_release *message)
{
    tec_error err = {0};
    bool there = message->handle >= 1 && message->handle <= session->n_things &&
                 session->things[message->handle - 1].kind != RPC_THING_NONE;

    if (!there) {
        rt_fail(&err, TEC_INVALID, "this session has no object %lld", (long long)message->handle);
        return rpc_answer_error(session, &err);
    }
    rpc_drop_thing(session, message->handle);
    return rpc_answer_done(session, message->handle);
}

/* An array of the session's device; type and rank are checked here, as they come from outside. */
bool rpc_on_allocate(rpc_session *session, const rpc_allocate *message)
{
    tec_error err = {0};
    DLDataType t = {(uint8_t)message->code, (uint8_t)message->bits, 1};
    bool fits = message->code >= 0 && message->code <= 255 && message->bits > 0 && message->bits <= 255 &&
                message->shape.n <= 16;
    tec_array *array = NULL;

    if (!fits)
        rt_fail(&err, TEC_INVALID, "arrays of type code %lld with %lld bits and rank %lld do not exist",
                (long long)message->code, (long long)message->bits, (long long)message->shape.n);
    else
        array = session->is_cpu
                    ? tec_array_new(t, (int)message->shape.n, message->shape.at, &err)
                    : tec_array_new_on(session->device, t, (int)message->shape.n, message->shape.at, &err);
    int64_t handle = array ? rpc_add_thing(session, (rpc_thing){RPC_THING_ARRAY, {.array = array}}, &err) : 0;
    return handle ? rpc_answer_done(session, handle) : rpc_answer_error(session, &err);
}

/* The tensor behind a handle: of an array, or of a value that is a tensor. */
static const DLTensor *find_tensor(const rpc_session *session, int64_t handle, tec_error *err)
{
    bool there = handle >= 1 && handle <= session->n_things;
    const rpc_thing *thing = there ? &session->things[handle - 1] : NULL;
    const DLTensor *tensor = thing && thing->kind == RPC_THING_ARRAY ? tec_array_tensor(thing->array)
                             : thing && thing->kind == RPC_THING_VALUE
                                 ? tec_object_dltensor(thing->value.object)
                                 : NULL;

    if (!tensor)
        rt_fail(err, TEC_INVALID, "this session has no array or tensor %lld", (long long)handle);
    return tensor;
}

bool rpc_on_read(rpc_session *session, const rpc_read *message)
{
    tec_error err = {0};
    const DLTensor *tensor = find_tensor(session, message->array, &err);

    return tensor ? rpc_answer_tensor(session, tensor) : rpc_answer_error(session, &err);
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
bool rpc_fail_transfer(rpc_session *session, const tec_error *err)
{
    rt_free(session->transfer.own);
    session->transfer = (rpc_transfer){.active = true};
    return rpc_answer_error(session, err);
}

/* The bytes are read in place and may be freed afterwards: tec_module_open_bytes keeps what it needs. */
static bool finish_upload(rpc_session *session)
{
    rpc_transfer *transfer = &session->transfer;
    tec_error err = {0};
    tec_module *module = rpc_open_module(session, transfer->own, (size_t)transfer->size, &err);
    int64_t handle =
        module ? rpc_add_thing(session, (rpc_thing){RPC_THING_MODULE, {.module = module}}, &err) : 0;

    rt_free(transfer->own);
    *transfer = (rpc_transfer){0};
    return handle ? rpc_answer_done(session, handle) : rpc_answer_error(session, &err);
}

/* An array of a device gets its bytes by way of main memory. `host` has the array's type and shape and the
 * bytes that came, and is copied as a whole. The array is still there: a question that could release it ends
 * the transfer first. */
static bool finish_write(rpc_session *session)
{
    rpc_transfer *transfer = &session->transfer;
    tec_error err = {0};
    int64_t handle = transfer->array;
    rpc_thing *thing = rpc_find_thing(session, handle, RPC_THING_ARRAY, &err);
    bool good = thing != NULL;

    if (good && transfer->own) {
        DLTensor host = *tec_array_tensor(thing->array);

        host.data = transfer->own;
        host.byte_offset = 0;
        host.device = (DLDevice){kDLCPU, 0};
        good = tec_tensor_copy(tec_array_tensor(thing->array), &host, &err);
    }
    rt_free(transfer->own);
    *transfer = (rpc_transfer){0};
    return good ? rpc_answer_done(session, handle) : rpc_answer_error(session, &err);
}

/* Called behind every piece, and at the start for a transfer of no bytes. */
static bool go_on(rpc_session *session)
{
    if (session->transfer.got < session->transfer.size)
        return true;
    return session->transfer.array ? finish_write(session) : finish_upload(session);
}

/* Begins to take a module: its name, size and architecture are checked before any memory is taken. */
bool rpc_on_upload(rpc_session *session, const rpc_upload *message)
{
    rpc_transfer *transfer = &session->transfer;
    tec_error err = {0};

    *transfer = (rpc_transfer){.active = true, .size = message->size};
    if (!is_label(message->name))
        rt_fail(&err, TEC_INVALID,
                "expected a name of 1 to %d characters for an upload, without slashes and not beginning with "
                "a dot",
                (int)sizeof transfer->name - 1);
    else if (message->size <= 0)
        rt_fail(&err, TEC_INVALID, "module '%s' has %lld bytes", message->name, (long long)message->size);
    else if (message->size > session->o.memory_bytes)
        rt_fail(&err, TEC_NO_MEMORY, "module '%s' has %lld bytes; this session may use %lld", message->name,
                (long long)message->size, (long long)session->o.memory_bytes);
    else if (*message->arch && strcmp(message->arch, rt_cpu_arch()) != 0)
        rt_fail(&err, TEC_UNSUPPORTED, "module '%s' is for %s; this machine is %s", message->name,
                message->arch, rt_cpu_arch());
    else
        transfer->own = transfer->to = rt_alloc_aligned((size_t)message->size, &err);
    if (err.status != TEC_OK)
        return rpc_fail_transfer(session, &err);
    snprintf(transfer->name, sizeof transfer->name, "%s", message->name);
    return true;
}

/* Begins to fill an array: on a CPU in place, for a device in memory that is copied when all has come. */
bool rpc_on_write(rpc_session *session, const rpc_write *message)
{
    rpc_transfer *transfer = &session->transfer;
    tec_error err = {0};
    rpc_thing *thing = rpc_find_thing(session, message->array, RPC_THING_ARRAY, &err);
    const DLTensor *tensor = thing ? tec_array_tensor(thing->array) : NULL;
    int64_t bytes = tensor ? tec_tensor_bytes(tensor) : 0;

    *transfer = (rpc_transfer){.active = true, .array = message->array, .size = message->size};
    if (tensor && message->size != bytes)
        rt_fail(&err, TEC_INVALID, "array %lld has %lld bytes, but the message has %lld",
                (long long)message->array, (long long)bytes, (long long)message->size);
    else if (tensor && session->is_cpu)
        transfer->to = (uint8_t *)tensor->data + tensor->byte_offset;
    else if (tensor)
        transfer->own = transfer->to = rt_alloc_aligned((size_t)bytes, &err);
    return err.status == TEC_OK ? go_on(session) : rpc_fail_transfer(session, &err);
}

/* The next bytes of the transfer under way. Those of a refused transfer are dropped, and so are those that no
 * transfer waits for, as behind a question that ended one: data have no answer of their own, and an answer
 * that the server does not wait for would end the session. */
bool rpc_on_data(rpc_session *session, const rpc_data *message)
{
    rpc_transfer *transfer = &session->transfer;
    tec_error err = {0};

    if (!transfer->active || !transfer->to)
        return true;
    if ((int64_t)message->bytes.n > transfer->size - transfer->got) {
        rt_fail(&err, TEC_INVALID, "more data arrived than the announced %lld bytes",
                (long long)transfer->size);
        return rpc_fail_transfer(session, &err);
    }
    memcpy(transfer->to + transfer->got, message->bytes.data, message->bytes.n);
    return rpc_took_piece(session, (int64_t)message->bytes.n);
}

bool rpc_took_piece(rpc_session *session, int64_t size)
{
    session->transfer.got += size;
    return go_on(session);
}

/* A transfer that had failed before was answered then, and needs no second answer. */
bool rpc_end_transfer(rpc_session *session)
{
    rpc_transfer *transfer = &session->transfer;
    tec_error err = {0};
    bool failed_before = !transfer->to;

    rt_fail(&err, TEC_INVALID, "only %lld of %lld bytes arrived before the next request",
            (long long)transfer->got, (long long)transfer->size);
    rt_free(transfer->own);
    *transfer = (rpc_transfer){0};
    return failed_before || rpc_answer_error(session, &err);
}
