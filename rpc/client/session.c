/* rpc/client/session.c -- sessions of a client: each call is a question, and waits for its answer.
 *
 * Every function here follows one pattern, which `ask` has for questions with short answers:
 *
 *     begin        lock, deadline, is the session alive?
 *     send, await  the question and its answer
 *     end          keep what ended the session; unlock; copy the error to the caller
 *
 * An error without `fatal` belongs to its question alone: the session goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/client/inside.h"
#include "runtime/alloc.h"

/* ---- asking ---- */

/* The server has said that the session is over, and has closed its stream. So only this side's stream is
 * closed, and the reason is kept for the calls to come. */
static void give_up(tec_rpc_session *session, const tec_error *why)
{
    if (session->over.status != TEC_OK)
        return;
    session->over = *why;
    if (rpc_link_ready(session->c->link))
        rpc_link_close_stream(session->c->link, session->stream);
}

/* `asking` tells the connection which stream's frames are wanted. */
static bool begin_alone(tec_rpc_session *session, tec_error *err)
{
    bool good = rpc_begin(session->c, err);

    session->c->asking = session->stream;
    return good &&
           (session->over.status == TEC_OK || rt_fail(err, session->over.status, "%s", session->over.text));
}

/* A question and the bytes behind it. An answer that comes before the last byte is a failure: the rest is not
 * sent. Pieces of 64 KiB at most: the server's process gets to work before all has come. */
static bool send_bytes(tec_rpc_session *session, const uint8_t *from, size_t size, bool *fatal,
                       tec_error *err)
{
    rpc_frame f;
    bool has_frame;

    while (size > 0) {
        size_t piece = rpc_piece(session->c, size);

        if (!rpc_push(session->c, session->stream, piece + RPC_DATA_HEAD, &f, &has_frame, err))
            return false;
        if (has_frame)
            return rpc_take_answer(session->c, &f, session->stream, RPC_KIND_NONE, fatal, err);
        if (!rpc_link_send_piece(session->c->link, session->stream, from, piece))
            return rpc_lose(session->c, TEC_LOST, "a piece of data was not taken", err);
        from += piece;
        size -= piece;
    }
    return true;
}

/* Sends the rest of an upload that was begun behind a question, and takes its answer: another question would
 * end it. What the server has against the module is kept for tec_rpc_uploaded. False with an error: the
 * session or the connection is over. */
static bool finish_ahead(tec_rpc_session *session, tec_error *err)
{
    rpc_ahead *ahead = &session->ahead;
    size_t left = ahead->left;
    bool fatal = false;

    if (!ahead->begun || ahead->answered)
        return true;
    ahead->left = 0;
    ahead->answered = true;
    bool good = send_bytes(session, ahead->from + ahead->size - left, left, &fatal, &ahead->why) &&
                rpc_await_answer(session->c, session->stream, RPC_KIND_done, &fatal, &ahead->why);
    ahead->handle = good ? session->c->message.done.handle : 0;
    if (fatal)
        give_up(session, &ahead->why);
    return good || (!fatal && session->c->lost.status == TEC_OK) ||
           rt_fail(err, ahead->why.status, "%s", ahead->why.text);
}

static bool begin(tec_rpc_session *session, tec_error *err)
{
    return begin_alone(session, err) && finish_ahead(session, err);
}

/* Behind a question: the upload that was announced begins, and goes on while the answer is waited for. */
static bool begin_ahead(tec_rpc_session *session)
{
    rpc_ahead *ahead = &session->ahead;

    if (!ahead->announced || ahead->begun)
        return true;
    ahead->begun = true;
    session->c->ahead = session;
    return rpc_link_send(session->c->link, session->stream, RPC_KIND_upload,
                         &(rpc_upload){ahead->name, (int64_t)ahead->size, ""});
}

/* The outcome of a question: what ended this session or the connection is kept. Errors are collected in
 * `why`, and copied after the lock was given back. */
static bool end(tec_rpc_session *session, bool good, bool fatal, const tec_error *why, tec_error *err)
{
    if (!good && fatal)
        give_up(session, why);
    rpc_end(session->c);
    return good || rt_fail(err, why->status, "%s", why->text);
}

/* Puts the releases that wait before a question that is about to be sent: both go in one piece. */
static bool send_releases(tec_rpc_session *session)
{
    bool good = true;

    for (int i = 0; good && i < session->n_unused; i++)
        good = rpc_link_send(session->c->link, session->stream, RPC_KIND_release,
                             &(rpc_release){session->unused[i]});
    return good;
}

/* Their answers, which come first. A handle that the session does not know is no error of the question. */
static bool await_releases(tec_rpc_session *session, bool *fatal, tec_error *err)
{
    bool good = true;

    for (; good && session->n_unused > 0; session->n_unused--) {
        tec_error why = {0};

        good = rpc_await_answer(session->c, session->stream, RPC_KIND_done, fatal, &why) ||
               (!*fatal && session->c->lost.status == TEC_OK);
        if (!good)
            rt_fail(err, why.status, "%s", why.text);
    }
    return good;
}

/* One question without data, and its answer in session->c->message; rpc_end must follow where it is true. */
bool rpc_ask(tec_rpc_session *session, rpc_kind kind, const void *question, rpc_kind wanted, tec_error *err)
{
    tec_error why = {0};
    bool fatal = false;

    if (!session)
        return rt_fail(err, TEC_INVALID, "expected a session, found NULL");
    bool good = begin(session, &why);
    if (good && !send_releases(session))
        good = rpc_lose(session->c, TEC_LOST, "a release was not taken", &why);
    bool fits = good && rpc_link_send(session->c->link, session->stream, kind, question);
    if (fits && !begin_ahead(session))
        good = rpc_lose(session->c, TEC_LOST, "an upload was not taken", &why);
    good = good && await_releases(session, &fatal, &why);
    if (good && !fits)
        good = rt_fail(&why, TEC_INVALID, "the request does not fit into a message");
    good = good && rpc_await_answer(session->c, session->stream, wanted, &fatal, &why);
    return good || end(session, false, fatal, &why, err);
}

/* 0 is no handle, so it can stand for the error. */
int64_t rpc_ask_for_handle(tec_rpc_session *session, rpc_kind kind, const void *question, tec_error *err)
{
    if (!rpc_ask(session, kind, question, RPC_KIND_done, err))
        return 0;
    int64_t handle = session->c->message.done.handle;
    rpc_end(session->c);
    return handle;
}

/* ---- transfers ---- */

/* A question that announces bytes, the bytes, and the answer: the handle of what they became; 0 with an
 * error. */
static int64_t transfer(tec_rpc_session *session, rpc_kind kind, const void *question, const void *data,
                        size_t size, tec_error *err)
{
    tec_error why = {0};
    bool fatal = false;
    int64_t handle = 0;

    if (!session) {
        rt_fail(err, TEC_INVALID, "expected a session, found NULL");
        return 0;
    }
    bool good = begin(session, &why) && rpc_link_send(session->c->link, session->stream, kind, question) &&
                send_bytes(session, data, size, &fatal, &why) &&
                rpc_await_answer(session->c, session->stream, RPC_KIND_done, &fatal, &why);
    if (good)
        handle = session->c->message.done.handle;
    return end(session, good, fatal, &why, err) ? handle : 0;
}

/* The architecture stays empty: the server then does not compare it with its own. */
int64_t tec_rpc_upload_bytes(tec_rpc_session *session, const char *name, const void *data, size_t size,
                             tec_error *err)
{
    return transfer(session, RPC_KIND_upload, &(rpc_upload){name, (int64_t)size, ""}, data, size, err);
}

/* Nothing is sent: the upload goes behind the next question. */
bool tec_rpc_upload_ahead(tec_rpc_session *session, const char *name, const void *data, size_t size,
                          tec_error *err)
{
    tec_error why = {0};

    if (!session || !name || !data)
        return rt_fail(err, TEC_INVALID, "expected a session, a name and the bytes of a module, found NULL");
    bool good = begin(session, &why);
    if (good && session->ahead.announced)
        good = rt_fail(&why, TEC_INVALID, "the module '%s' is uploaded ahead already", session->ahead.name);
    if (good) {
        session->ahead = (rpc_ahead){.announced = true, .from = data, .size = size, .left = size};
        snprintf(session->ahead.name, sizeof session->ahead.name, "%s", name);
    }
    return end(session, good, false, &why, err);
}

/* Uploads now what no question has taken along. */
int64_t tec_rpc_uploaded(tec_rpc_session *session, tec_error *err)
{
    tec_error why = {0};

    if (!session) {
        rt_fail(err, TEC_INVALID, "expected a session, found NULL");
        return 0;
    }
    bool good = begin(session, &why);
    if (good && !session->ahead.announced)
        good = rt_fail(&why, TEC_INVALID, "no module is uploaded ahead");
    if (good && !begin_ahead(session))
        good = rpc_lose(session->c, TEC_LOST, "an upload was not taken", &why);
    good = good && finish_ahead(session, &why);
    int64_t handle = good ? session->ahead.handle : 0;
    if (good && !handle)
        why = session->ahead.why;
    session->ahead = (rpc_ahead){0};
    return end(session, handle != 0, false, &why, err) ? handle : 0;
}

/* The whole file; NULL with a reason. In aligned memory, as modules are read in place. */
static void *read_file(const char *path, size_t *size, tec_error *err)
{
    FILE *f = path ? fopen(path, "re") : NULL;
    void *data = NULL;
    long n = -1;

    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0)
        data = rt_alloc_aligned((size_t)n, err);
    *size = (size_t)n;
    if (data && fread(data, 1, *size, f) != *size) {
        rt_free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    if (!data)
        rt_fail(err, TEC_IO, "%s: cannot be read", path ? path : "(no path)");
    return data;
}

/* The label is the last part of the path, since the server takes no slashes. */
int64_t tec_rpc_upload(tec_rpc_session *session, const char *path, tec_error *err)
{
    size_t n = 0;
    void *data = read_file(path, &n, err);
    const char *slash = data ? strrchr(path, '/') : NULL;
    int64_t handle = data ? tec_rpc_upload_bytes(session, slash ? slash + 1 : path, data, n, err) : 0;

    rt_free(data);
    return handle;
}

/* Strides and devices would need a copy that the caller can make better. */
static bool is_plain(const DLTensor *tensor, tec_error *err)
{
    return (tensor && tensor->device.device_type == kDLCPU && tec_tensor_is_compact(tensor)) ||
           rt_fail(err, TEC_INVALID, "expected a compact tensor in main memory");
}

bool tec_rpc_write(tec_rpc_session *session, int64_t array, const DLTensor *from, tec_error *err)
{
    if (!is_plain(from, err))
        return false;
    int64_t n = tec_tensor_bytes(from);
    return transfer(session, RPC_KIND_write, &(rpc_write){array, n},
                    (const uint8_t *)from->data + from->byte_offset, (size_t)n, err) != 0;
}

/* The data behind `contents`. The deadline begins anew with each piece. Each piece is consumed at once, which
 * grants the server as many bytes more. */
static bool receive_bytes(tec_rpc_session *session, uint8_t *to, int64_t size, tec_error *err)
{
    tec_rpc *c = session->c;
    rpc_frame f;
    bool fatal;

    while (size > 0) {
        c->deadline = tec_clock() + c->seconds;
        if (!rpc_await(c, &f, err) || !rpc_take_answer(c, &f, session->stream, RPC_KIND_data, &fatal, err))
            return false;
        if ((int64_t)c->message.data.bytes.n > size)
            return rpc_lose(c, TEC_PROTOCOL, "more data came than was announced", err);
        memcpy(to, c->message.data.bytes.data, c->message.data.bytes.n);
        to += c->message.data.bytes.n;
        size -= (int64_t)c->message.data.bytes.n;
        rpc_link_consumed(c->link, session->stream, f.n);
    }
    return true;
}

/* A tensor of another size cannot be filled, but the bytes come all the same: the connection is given up. */
bool tec_rpc_read(tec_rpc_session *session, int64_t array, const DLTensor *to, tec_error *err)
{
    tec_error why = {0};

    if (!is_plain(to, err) || !rpc_ask(session, RPC_KIND_read, &(rpc_read){array}, RPC_KIND_contents, err))
        return false;
    int64_t n = session->c->message.contents.size;
    bool good =
        n == tec_tensor_bytes(to)
            ? receive_bytes(session, (uint8_t *)to->data + to->byte_offset, n, &why)
            : rpc_lose(session->c, TEC_INVALID, "the array and the tensor differ in their bytes", &why);
    return end(session, good, !good, &why, err);
}

/* Whether the bytes are those of the shape, and no more than this machine could ever hold: a server that lies
 * makes the client allocate nothing. */
static bool is_sound(const rpc_contents *contents)
{
    const DLTensor tensor = {.ndim = (int32_t)contents->shape.n,
                             .dtype = {(uint8_t)contents->code, (uint8_t)contents->bits, 1},
                             .shape = (int64_t *)(uintptr_t)contents->shape.at};
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

    for (int64_t i = 0; i < contents->shape.n; i++)
        if (contents->shape.at[i] < 0)
            return false;
    return contents->shape.n <= 16 && contents->bits > 0 && contents->bits <= 255 &&
           contents->size == tec_tensor_bytes(&tensor) && contents->size <= memory;
}

/* The answer tells type and shape, then the bytes come; they must agree, as the array is made from the first.
 *
 * The array is made before the bytes come, so m, which the next message overwrites, is not needed any
 * more. */
static tec_array *fetch(tec_rpc_session *session, rpc_kind kind, const void *question, tec_error *err)
{
    tec_error why = {0};

    if (!rpc_ask(session, kind, question, RPC_KIND_contents, err))
        return NULL;
    const rpc_contents *m = &session->c->message.contents;
    DLDataType t = {(uint8_t)m->code, (uint8_t)m->bits, 1};
    int64_t size = m->size;
    bool sound = is_sound(m);
    tec_array *array = sound ? tec_array_new(t, (int)m->shape.n, m->shape.at, &why) : NULL;
    bool good = array && receive_bytes(session, tec_array_data(array), size, &why);
    if (!sound)
        rpc_lose(session->c, TEC_PROTOCOL, "the output's bytes and its shape disagree", &why);
    else if (!array)
        rpc_lose(session->c, TEC_NO_MEMORY, "no memory for an output of the server", &why);
    if (end(session, good, !good, &why, err))
        return array;
    tec_array_free(array);
    return NULL;
}

tec_array *tec_rpc_fetch(tec_rpc_session *session, int64_t executor, int output, tec_error *err)
{
    return fetch(session, RPC_KIND_fetch, &(rpc_fetch){executor, output}, err);
}

tec_array *tec_rpc_fetch_tensor(tec_rpc_session *session, int64_t value, tec_error *err)
{
    return fetch(session, RPC_KIND_read, &(rpc_read){value}, err);
}

/* ---- calls ---- */

bool tec_rpc_release(tec_rpc_session *session, int64_t number, tec_error *err)
{
    return rpc_ask_for_handle(session, RPC_KIND_release, &(rpc_release){number}, err) != 0;
}

int64_t tec_rpc_array(tec_rpc_session *session, DLDataType dtype, int ndim, const int64_t *shape,
                      tec_error *err)
{
    return rpc_ask_for_handle(session, RPC_KIND_allocate,
                              &(rpc_allocate){dtype.code, dtype.bits, {shape, ndim}}, err);
}

/* `seconds` may be NULL: a caller may not want the time. */
static bool take_seconds(tec_rpc_session *session, double *seconds)
{
    if (seconds)
        *seconds = session->c->message.called.seconds;
    rpc_end(session->c);
    return true;
}

bool tec_rpc_call(tec_rpc_session *session, const tec_rpc_call_options *options, double *seconds,
                  tec_error *err)
{
    if (!options)
        return rt_fail(err, TEC_INVALID, "expected a function to call, found NULL");
    const rpc_call m = {options->module,
                        options->function ? options->function : "",
                        {options->arrays, options->n},
                        options->threads};
    return rpc_ask(session, RPC_KIND_call, &m, RPC_KIND_called, err) && take_seconds(session, seconds);
}

/* Copies field by field: the wire's structs are of the protocol, the public ones of the C API. */
bool tec_rpc_time(tec_rpc_session *session, const tec_rpc_call_options *self, const tec_time_options *options,
                  tec_timing *out, tec_error *err)
{
    const tec_time_options t = options ? *options : (tec_time_options){0};

    if (!self || !out)
        return rt_fail(err, TEC_INVALID,
                       "expected a function to measure and a place for the timing, found NULL");
    const rpc_time m = {.module = self->module,
                        .function = self->function ? self->function : "",
                        .arrays = {self->arrays, self->n},
                        .executor = self->program ? self->program : self->executor,
                        .threads = self->threads,
                        .min_seconds = t.min_seconds,
                        .repeats = t.repeats,
                        .max_repeats = t.max_repeats,
                        .warm_up = t.warmup,
                        .flush_bytes = t.flush_bytes};
    if (self->program && !rpc_can_time_programs(session, err))
        return false;
    if (!rpc_ask(session, RPC_KIND_time, &m, RPC_KIND_timed, err))
        return false;
    const rpc_timed *a = &session->c->message.timed;
    *out = (tec_timing){.min_s = a->min_s,
                        .median_s = a->median_s,
                        .p90_s = a->p90_s,
                        .p95_s = a->p95_s,
                        .p99_s = a->p99_s,
                        .mean_s = a->mean_s,
                        .repeats = (int)a->repeats,
                        .inner = a->inner};
    rpc_end(session->c);
    return true;
}

int64_t tec_rpc_prepare_with(tec_rpc_session *session, int64_t module, const char *graph,
                             const tec_rpc_prepare_options *options, tec_error *err)
{
    const tec_rpc_prepare_options o = options ? *options : (tec_rpc_prepare_options){0};
    const rpc_prepare question = {module, graph ? graph : "", o.threads, o.profile};

    if (o.profile && !rpc_server_knows(session, "profiles", PROFILES_SINCE, err))
        return 0;
    return rpc_ask_for_handle(session, RPC_KIND_prepare, &question, err);
}

int64_t tec_rpc_prepare(tec_rpc_session *session, int64_t module, const char *graph, int threads,
                        tec_error *err)
{
    return tec_rpc_prepare_with(session, module, graph, &(tec_rpc_prepare_options){.threads = threads}, err);
}

bool tec_rpc_feed(tec_rpc_session *session, int64_t executor, int input, int64_t array, tec_error *err)
{
    return rpc_ask_for_handle(session, RPC_KIND_feed, &(rpc_feed){executor, input, array}, err) != 0;
}

bool tec_rpc_run(tec_rpc_session *session, int64_t executor, double *seconds, tec_error *err)
{
    return rpc_ask(session, RPC_KIND_run, &(rpc_run){executor}, RPC_KIND_called, err) &&
           take_seconds(session, seconds);
}

/* ---- life ---- */

/* Takes a stream, asks for the session, and waits until its process has started. A session counts as open
 * only with the answer `opened`; before that its stream is closed on any error. */
tec_rpc_session *tec_rpc_open(tec_rpc *client, const tec_rpc_session_options *options, tec_error *err)
{
    const tec_rpc_session_options o = options ? *options : (tec_rpc_session_options){0};
    tec_rpc_session *session = client ? rt_alloc(sizeof *session, err) : NULL;
    tec_error why = {0};
    bool fatal;

    if (!session) {
        rt_fail(err, TEC_INVALID, "expected a connection, found NULL");
        return NULL;
    }
    session->c = client;
    bool good = rpc_begin(client, &why);
    session->stream = good ? rpc_link_open_stream(client->link) : 0;
    if (good && !session->stream)
        good = rt_fail(&why, TEC_REFUSED, "a connection has at most %d sessions", RPC_MOST_STREAMS);
    client->asking = session->stream;
    const char *device = o.device ? o.device : client->lease ? client->leased_device : "cpu:0";
    const rpc_open m = {device, o.label ? o.label : "", o.memory_bytes, o.seconds,
                        o.lease ? o.lease : client->lease};
    good = good && rpc_link_send(client->link, session->stream, RPC_KIND_open, &m) &&
           rpc_await_answer(client, session->stream, RPC_KIND_opened, &fatal, &why);
    if (good) {
        session->next = client->sessions;
        client->sessions = session;
    } else if (session->stream)
        rpc_link_close_stream(client->link, session->stream);
    rpc_end(client);
    if (good)
        return session;
    rt_fail(err, why.status ? why.status : TEC_DENIED, "%s", why.text);
    rt_free(session);
    return NULL;
}

/* The answer `closed` is waited for, so that the server has room for the next session. Frames that are not
 * the answer are of earlier questions, and are dropped. The struct is freed in any case. */
void tec_rpc_close(tec_rpc_session *session)
{
    rpc_frame f;
    tec_rpc_session **at;

    if (!session)
        return;
    tec_rpc *c = session->c;
    bool good =
        begin(session, NULL) && rpc_link_send(c->link, session->stream, RPC_KIND_close, &(rpc_close){0});
    while (good && rpc_await(c, &f, NULL) && f.kind != RPC_KIND_closed && f.kind != RPC_KIND_failure)
        ;
    rpc_link_close_stream(c->link, session->stream);
    for (at = &c->sessions; *at && *at != session; at = &(*at)->next)
        ;
    if (*at)
        *at = session->next;
    rpc_end(c);
    rt_free(session);
}

/* ---- what the server offers ---- */

/* The devices and what is missing, into memory that lasts until the next offer; texts are the message's own.
 * */
static bool copy_offer(tec_rpc *client, const rpc_listed *message, tec_error *err)
{
    const rpc_device *device = message->devices.at;
    const rpc_missing *x = message->missing.at;
    tec_rpc_device *devices = rt_arena_alloc(&client->list_arena, message->devices.n, sizeof *devices, err);
    tec_rpc_missing *missing = rt_arena_alloc(&client->list_arena, message->missing.n, sizeof *missing, err);

    if (!devices || !missing)
        return false;
    for (int64_t i = 0; i < message->devices.n; i++) {
        devices[i] = (tec_rpc_device){device[i].name,         device[i].hardware,
                                      device[i].driver,       device[i].memory_bytes,
                                      device[i].shared_bytes, device[i].units,
                                      device[i].clock_mhz,    device[i].cache_bytes,
                                      device[i].temperature,  {0}};
        for (int k = 0; k < 4 && k < device[i].caches.n; k++)
            devices[i].caches[k] = device[i].caches.at[k];
    }
    for (int64_t i = 0; i < message->missing.n; i++)
        missing[i] = (tec_rpc_missing){x[i].kind, x[i].reason};
    client->offer =
        (tec_rpc_offer){message->host, message->target,         message->sessions, message->most_sessions,
                        devices,       (int)message->devices.n, missing,           (int)message->missing.n};
    return true;
}

/* The body is copied first, because the texts of a message lie in its bytes. The list of the call before is
 * freed first: an offer is valid until the next one. */
static bool take_offer(tec_rpc *client, const rpc_frame *frame, tec_error *err)
{
    rpc_any m;

    rt_arena_free(&client->list_arena);
    uint8_t *body = rt_arena_alloc(&client->list_arena, (int64_t)frame->n + 1, 1, err);
    if (!body)
        return false;
    memcpy(body, frame->body, frame->n);
    if (frame->kind != RPC_KIND_listed ||
        !rpc_decode(&m, RPC_KIND_listed, body, frame->n, rpc_link_version(client->link), &client->list_arena))
        return rpc_lose(client, TEC_PROTOCOL, "the server's list of devices cannot be decoded", err);
    return copy_offer(client, &m.listed, err);
}

const tec_rpc_offer *tec_rpc_list(tec_rpc *client, bool refresh, tec_error *err)
{
    rpc_frame f;

    if (!client) {
        rt_fail(err, TEC_INVALID, "expected a connection, found NULL");
        return NULL;
    }
    bool good = rpc_begin(client, err) &&
                rpc_link_send(client->link, 0, RPC_KIND_list, &(rpc_list){refresh}) &&
                rpc_await(client, &f, err) && take_offer(client, &f, err);
    rpc_end(client);
    return good ? &client->offer : NULL;
}
