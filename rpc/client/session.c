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

#include "rpc/client/inside.h"
#include "runtime/alloc.h"

enum { PIECE = 1 << 16 };

/* ---- asking ---- */

/* The server has said that the session is over, and has closed its stream. So only this side's stream is
 * closed, and the reason is kept for the calls to come. */
static void give_up(tec_rpc_session *s, const tec_error *why)
{
    if (s->over.status != TEC_OK)
        return;
    s->over = *why;
    if (rpc_link_ready(s->c->link))
        rpc_link_close_stream(s->c->link, s->stream);
}

/* `asking` tells the connection which stream's frames are wanted. */
static bool begin(tec_rpc_session *s, tec_error *err)
{
    bool good = rpc_begin(s->c, err);

    s->c->asking = s->stream;
    return good && (s->over.status == TEC_OK || rt_fail(err, s->over.status, "%s", s->over.text));
}

/* The outcome of a question: what ended this session or the connection is kept. Errors are collected in
 * `why`, and copied after the lock was given back. */
static bool end(tec_rpc_session *s, bool good, bool fatal, const tec_error *why, tec_error *err)
{
    if (!good && fatal)
        give_up(s, why);
    rpc_end(s->c);
    return good || rt_fail(err, why->status, "%s", why->text);
}

/* One question without data, and its answer in s->c->message; rpc_end must follow where it is true. */
bool rpc_ask(tec_rpc_session *s, rpc_kind kind, const void *question, rpc_kind wanted, tec_error *err)
{
    tec_error why = {0};
    bool fatal = false;

    if (!s)
        return rt_fail(err, TEC_INVALID, "no session to ask");
    bool good = begin(s, &why);
    if (good && !rpc_link_send(s->c->link, s->stream, kind, question))
        good = rt_fail(&why, TEC_INVALID, "the question does not fit into a message");
    good = good && rpc_await_answer(s->c, s->stream, wanted, &fatal, &why);
    return good || end(s, false, fatal, &why, err);
}

/* 0 is no handle, so it can stand for the error. */
static int64_t ask_for_handle(tec_rpc_session *s, rpc_kind kind, const void *question, tec_error *err)
{
    if (!rpc_ask(s, kind, question, RPC_KIND_done, err))
        return 0;
    int64_t handle = s->c->message.done.handle;
    rpc_end(s->c);
    return handle;
}

/* ---- transfers ---- */

/* A question and the bytes behind it. An answer that comes before the last byte is a failure: the rest is not
 * sent. Pieces of 64 KiB at most: the server's process gets to work before all has come. */
static bool send_bytes(tec_rpc_session *s, const uint8_t *from, size_t n, bool *fatal, tec_error *err)
{
    size_t most = rpc_link_max_body(s->c->link) - RPC_DATA_HEAD;
    rpc_frame f;
    bool has_frame;

    most = most < PIECE - RPC_DATA_HEAD ? most : PIECE - RPC_DATA_HEAD;
    while (n > 0) {
        size_t piece = n < most ? n : most;

        if (!rpc_push(s->c, s->stream, piece + RPC_DATA_HEAD, &f, &has_frame, err))
            return false;
        if (has_frame)
            return rpc_take_answer(s->c, &f, s->stream, RPC_KIND_NONE, fatal, err);
        if (!rpc_link_send_piece(s->c->link, s->stream, from, piece))
            return rpc_lose(s->c, TEC_LOST, "a piece of data was not taken", err);
        from += piece;
        n -= piece;
    }
    return true;
}

/* A question that announces bytes, the bytes, and the answer: the handle of what they became; 0 with an
 * error. */
static int64_t transfer(tec_rpc_session *s, rpc_kind kind, const void *question, const void *data, size_t n,
                        tec_error *err)
{
    tec_error why = {0};
    bool fatal = false;
    int64_t handle = 0;

    if (!s) {
        rt_fail(err, TEC_INVALID, "no session to ask");
        return 0;
    }
    bool good = begin(s, &why) && rpc_link_send(s->c->link, s->stream, kind, question) &&
                send_bytes(s, data, n, &fatal, &why) &&
                rpc_await_answer(s->c, s->stream, RPC_KIND_done, &fatal, &why);
    if (good)
        handle = s->c->message.done.handle;
    return end(s, good, fatal, &why, err) ? handle : 0;
}

/* The architecture stays empty: the server then does not compare it with its own. */
int64_t tec_rpc_upload_bytes(tec_rpc_session *s, const char *name, const void *data, size_t size,
                             tec_error *err)
{
    return transfer(s, RPC_KIND_upload, &(rpc_upload){name, (int64_t)size, ""}, data, size, err);
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
int64_t tec_rpc_upload(tec_rpc_session *s, const char *path, tec_error *err)
{
    size_t n = 0;
    void *data = read_file(path, &n, err);
    const char *slash = data ? strrchr(path, '/') : NULL;
    int64_t handle = data ? tec_rpc_upload_bytes(s, slash ? slash + 1 : path, data, n, err) : 0;

    rt_free(data);
    return handle;
}

/* Strides and devices would need a copy that the caller can make better. */
static bool is_plain(const DLTensor *t, tec_error *err)
{
    return (t && t->device.device_type == kDLCPU && tec_tensor_is_compact(t)) ||
           rt_fail(err, TEC_INVALID, "expected a compact tensor in main memory");
}

bool tec_rpc_write(tec_rpc_session *s, int64_t array, const DLTensor *from, tec_error *err)
{
    if (!is_plain(from, err))
        return false;
    int64_t n = tec_tensor_bytes(from);
    return transfer(s, RPC_KIND_write, &(rpc_write){array, n},
                    (const uint8_t *)from->data + from->byte_offset, (size_t)n, err) != 0;
}

/* The data behind `contents`. The deadline begins anew with each piece. Each piece is consumed at once, which
 * grants the server as many bytes more. */
static bool receive_bytes(tec_rpc_session *s, uint8_t *to, int64_t n, tec_error *err)
{
    tec_rpc *c = s->c;
    rpc_frame f;
    bool fatal;

    while (n > 0) {
        c->deadline = tec_clock() + c->seconds;
        if (!rpc_await(c, &f, err) || !rpc_take_answer(c, &f, s->stream, RPC_KIND_data, &fatal, err))
            return false;
        if ((int64_t)c->message.data.bytes.n > n)
            return rpc_lose(c, TEC_PROTOCOL, "more data came than was announced", err);
        memcpy(to, c->message.data.bytes.data, c->message.data.bytes.n);
        to += c->message.data.bytes.n;
        n -= (int64_t)c->message.data.bytes.n;
        rpc_link_consumed(c->link, s->stream, f.n);
    }
    return true;
}

/* A tensor of another size cannot be filled, but the bytes come all the same: the connection is given up. */
bool tec_rpc_read(tec_rpc_session *s, int64_t array, const DLTensor *to, tec_error *err)
{
    tec_error why = {0};

    if (!is_plain(to, err) || !rpc_ask(s, RPC_KIND_read, &(rpc_read){array}, RPC_KIND_contents, err))
        return false;
    int64_t n = s->c->message.contents.size;
    bool good = n == tec_tensor_bytes(to)
                    ? receive_bytes(s, (uint8_t *)to->data + to->byte_offset, n, &why)
                    : rpc_lose(s->c, TEC_INVALID, "the array and the tensor differ in their bytes", &why);
    return end(s, good, !good, &why, err);
}

/* The answer tells type and shape, then the bytes come; they must agree, as the array is made from the first.
 *
 * The array is made before the bytes come, so m, which the next message overwrites, is not needed any
 * more. */
tec_array *tec_rpc_fetch(tec_rpc_session *s, int64_t executor, int output, tec_error *err)
{
    tec_error why = {0};

    if (!rpc_ask(s, RPC_KIND_fetch, &(rpc_fetch){executor, output}, RPC_KIND_contents, err))
        return NULL;
    const rpc_contents *m = &s->c->message.contents;
    DLDataType t = {(uint8_t)m->code, (uint8_t)m->bits, 1};
    int64_t size = m->size;
    tec_array *a = m->shape.n <= 16 ? tec_array_new(t, (int)m->shape.n, m->shape.at, &why) : NULL;
    bool good = a && tec_tensor_bytes(tec_array_tensor(a)) == size
                    ? receive_bytes(s, tec_array_data(a), size, &why)
                    : rpc_lose(s->c, TEC_PROTOCOL, "the output's bytes and its shape disagree", &why);
    if (end(s, good, !good, &why, err))
        return a;
    tec_array_free(a);
    return NULL;
}

/* ---- calls ---- */

bool tec_rpc_release(tec_rpc_session *s, int64_t number, tec_error *err)
{
    return ask_for_handle(s, RPC_KIND_release, &(rpc_release){number}, err) != 0;
}

int64_t tec_rpc_array(tec_rpc_session *s, DLDataType dtype, int ndim, const int64_t *shape, tec_error *err)
{
    return ask_for_handle(s, RPC_KIND_allocate, &(rpc_allocate){dtype.code, dtype.bits, {shape, ndim}}, err);
}

/* `seconds` may be NULL: a caller may not want the time. */
static bool take_seconds(tec_rpc_session *s, double *seconds)
{
    if (seconds)
        *seconds = s->c->message.called.seconds;
    rpc_end(s->c);
    return true;
}

bool tec_rpc_call(tec_rpc_session *s, const tec_rpc_call_options *o, double *seconds, tec_error *err)
{
    if (!o)
        return rt_fail(err, TEC_INVALID, "no function to call");
    const rpc_call m = {o->module, o->function ? o->function : "", {o->arrays, o->n}, o->threads};
    return rpc_ask(s, RPC_KIND_call, &m, RPC_KIND_called, err) && take_seconds(s, seconds);
}

/* Copies field by field: the wire's structs are of the protocol, the public ones of the C API. */
bool tec_rpc_time(tec_rpc_session *s, const tec_rpc_call_options *o, const tec_time_options *options,
                  tec_timing *out, tec_error *err)
{
    const tec_time_options t = options ? *options : (tec_time_options){0};

    if (!o || !out)
        return rt_fail(err, TEC_INVALID, "no function to measure, or no place for the timing");
    const rpc_time m = {.module = o->module,
                        .function = o->function ? o->function : "",
                        .arrays = {o->arrays, o->n},
                        .executor = o->executor,
                        .threads = o->threads,
                        .min_seconds = t.min_seconds,
                        .repeats = t.repeats,
                        .max_repeats = t.max_repeats,
                        .warm_up = t.warmup,
                        .flush_bytes = t.flush_bytes};
    if (!rpc_ask(s, RPC_KIND_time, &m, RPC_KIND_timed, err))
        return false;
    const rpc_timed *a = &s->c->message.timed;
    *out = (tec_timing){.min_s = a->min_s,
                        .median_s = a->median_s,
                        .p90_s = a->p90_s,
                        .p95_s = a->p95_s,
                        .p99_s = a->p99_s,
                        .mean_s = a->mean_s,
                        .repeats = (int)a->repeats,
                        .inner = a->inner};
    rpc_end(s->c);
    return true;
}

int64_t tec_rpc_prepare(tec_rpc_session *s, int64_t module, const char *graph, int threads, tec_error *err)
{
    return ask_for_handle(s, RPC_KIND_prepare, &(rpc_prepare){module, graph ? graph : "", threads}, err);
}

bool tec_rpc_feed(tec_rpc_session *s, int64_t executor, int input, int64_t array, tec_error *err)
{
    return ask_for_handle(s, RPC_KIND_feed, &(rpc_feed){executor, input, array}, err) != 0;
}

bool tec_rpc_run(tec_rpc_session *s, int64_t executor, double *seconds, tec_error *err)
{
    return rpc_ask(s, RPC_KIND_run, &(rpc_run){executor}, RPC_KIND_called, err) && take_seconds(s, seconds);
}

/* ---- life ---- */

/* Takes a stream, asks for the session, and waits until its process has started. A session counts as open
 * only with the answer `opened`; before that its stream is closed on any error. */
tec_rpc_session *tec_rpc_open(tec_rpc *c, const tec_rpc_session_options *options, tec_error *err)
{
    const tec_rpc_session_options o = options ? *options : (tec_rpc_session_options){0};
    tec_rpc_session *s = c ? rt_alloc(sizeof *s, err) : NULL;
    tec_error why = {0};
    bool fatal;

    if (!s) {
        rt_fail(err, TEC_INVALID, "no connection to open a session on");
        return NULL;
    }
    s->c = c;
    bool good = rpc_begin(c, &why);
    s->stream = good ? rpc_link_open_stream(c->link) : 0;
    if (good && !s->stream)
        good = rt_fail(&why, TEC_REFUSED, "a connection has at most %d sessions", RPC_MOST_STREAMS);
    c->asking = s->stream;
    const char *device = o.device ? o.device : c->lease ? c->leased_device : "cpu:0";
    const rpc_open m = {device, o.label ? o.label : "", o.memory_bytes, o.seconds,
                        o.lease ? o.lease : c->lease};
    good = good && rpc_link_send(c->link, s->stream, RPC_KIND_open, &m) &&
           rpc_await_answer(c, s->stream, RPC_KIND_opened, &fatal, &why);
    if (good) {
        s->next = c->sessions;
        c->sessions = s;
    } else if (s->stream)
        rpc_link_close_stream(c->link, s->stream);
    rpc_end(c);
    if (good)
        return s;
    rt_fail(err, why.status ? why.status : TEC_DENIED, "%s", why.text);
    rt_free(s);
    return NULL;
}

/* The answer `closed` is waited for, so that the server has room for the next session. Frames that are not
 * the answer are of earlier questions, and are dropped. The struct is freed in any case. */
void tec_rpc_close(tec_rpc_session *s)
{
    rpc_frame f;
    tec_rpc_session **at;

    if (!s)
        return;
    tec_rpc *c = s->c;
    bool good = begin(s, NULL) && rpc_link_send(c->link, s->stream, RPC_KIND_close, &(rpc_close){0});
    while (good && rpc_await(c, &f, NULL) && f.kind != RPC_KIND_closed && f.kind != RPC_KIND_failure)
        ;
    rpc_link_close_stream(c->link, s->stream);
    for (at = &c->sessions; *at && *at != s; at = &(*at)->next)
        ;
    if (*at)
        *at = s->next;
    rpc_end(c);
    rt_free(s);
}

/* ---- what the server offers ---- */

/* The devices and what is missing, into memory that lasts until the next offer; texts are the message's own.
 * */
static bool copy_offer(tec_rpc *c, const rpc_listed *m, tec_error *err)
{
    const rpc_device *d = m->devices.at;
    const rpc_missing *x = m->missing.at;
    tec_rpc_device *devices = rt_arena_alloc(&c->list_arena, m->devices.n, sizeof *devices, err);
    tec_rpc_missing *missing = rt_arena_alloc(&c->list_arena, m->missing.n, sizeof *missing, err);

    if (!devices || !missing)
        return false;
    for (int64_t i = 0; i < m->devices.n; i++)
        devices[i] = (tec_rpc_device){d[i].name,         d[i].hardware,     d[i].driver,
                                      d[i].memory_bytes, d[i].shared_bytes, d[i].units,
                                      d[i].clock_mhz,    d[i].cache_bytes,  d[i].temperature};
    for (int64_t i = 0; i < m->missing.n; i++)
        missing[i] = (tec_rpc_missing){x[i].kind, x[i].reason};
    c->offer = (tec_rpc_offer){m->host, m->target,         m->sessions, m->most_sessions,
                               devices, (int)m->devices.n, missing,     (int)m->missing.n};
    return true;
}

/* The body is copied first, because the texts of a message lie in its bytes. The list of the call before is
 * freed first: an offer is valid until the next one. */
static bool take_offer(tec_rpc *c, const rpc_frame *f, tec_error *err)
{
    rpc_any m;

    rt_arena_free(&c->list_arena);
    uint8_t *body = rt_arena_alloc(&c->list_arena, (int64_t)f->n + 1, 1, err);
    if (!body)
        return false;
    memcpy(body, f->body, f->n);
    if (f->kind != RPC_KIND_listed ||
        !rpc_decode(&m, RPC_KIND_listed, body, f->n, rpc_link_version(c->link), &c->list_arena))
        return rpc_lose(c, TEC_PROTOCOL, "the server's list of devices is garbled", err);
    return copy_offer(c, &m.listed, err);
}

const tec_rpc_offer *tec_rpc_list(tec_rpc *c, bool refresh, tec_error *err)
{
    rpc_frame f;

    if (!c) {
        rt_fail(err, TEC_INVALID, "no connection to ask");
        return NULL;
    }
    bool good = rpc_begin(c, err) && rpc_link_send(c->link, 0, RPC_KIND_list, &(rpc_list){refresh}) &&
                rpc_await(c, &f, err) && take_offer(c, &f, err);
    rpc_end(c);
    return good ? &c->offer : NULL;
}
