/* rpc/server/session.c -- see session.h: the process from its first word to its end.
 *
 * One question after another, with plain reads and writes that wait: the process has nothing else to do, and
 * the server keeps the time.
 */
#include "rpc/server/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/server/inside.h"
#include "rpc/server/sandbox.h"
#include "runtime/alloc.h"

/* ---- the words ---- */

static const char mark[] = "--session-process";

/* Seventeen digits give the same double back. The words are the server's own, and need no checks when they
 * are read. */
void rpc_session_words(const rpc_session_options *options, char words[RPC_SESSION_WORDS][RPC_SESSION_WORD],
                       char *argv[RPC_SESSION_WORDS + 2])
{
    snprintf(words[0], RPC_SESSION_WORD, "%s", mark);
    snprintf(words[1], RPC_SESSION_WORD, "%s", options->device);
    snprintf(words[2], RPC_SESSION_WORD, "%lld", (long long)options->memory_bytes);
    snprintf(words[3], RPC_SESSION_WORD, "%.17g", options->seconds);
    snprintf(words[4], RPC_SESSION_WORD, "%d", options->weak);
    snprintf(words[5], RPC_SESSION_WORD, "%d", options->version);
    snprintf(words[6], RPC_SESSION_WORD, "%lld", (long long)options->piece);
    for (int i = 0; i < 7; i++)
        argv[1 + i] = words[i];
    argv[8] = NULL;
}

bool rpc_is_cpu(const char *device)
{
    return strncmp(device, "cpu", 3) == 0;
}

bool rpc_is_session(int argc, char **argv)
{
    return argc == 8 && strcmp(argv[1], mark) == 0;
}

static rpc_session_options read_words(char **argv)
{
    return (rpc_session_options){.device = argv[2],
                                 .memory_bytes = strtoll(argv[3], NULL, 10),
                                 .seconds = strtod(argv[4], NULL),
                                 .weak = argv[5][0] == '1',
                                 .version = atoi(argv[6]),
                                 .piece = strtoll(argv[7], NULL, 10)};
}

/* ---- frames ---- */

static bool write_all(const rpc_session *session, const void *data, size_t size)
{
    const uint8_t *from = data;

    while (size > 0) {
        ssize_t done = write(session->socket, from, size);

        if (done < 0 && errno != EINTR)
            return false;
        from += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

static bool read_all(const rpc_session *session, void *to, size_t size)
{
    uint8_t *at = to;

    while (size > 0) {
        ssize_t done = read(session->socket, at, size);

        if (done == 0 || (done < 0 && errno != EINTR))
            return false;
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* The same form as the head of `data`: two numbers of four bytes, the lower byte first. */
static void put_head(uint8_t head[RPC_SESSION_HEAD], size_t n, rpc_kind kind)
{
    for (int i = 0; i < 4; i++) {
        head[i] = (uint8_t)(n >> (8 * i));
        head[4 + i] = (uint8_t)((uint32_t)kind >> (8 * i));
    }
}

/* session->body is used again for each answer. The room for the head is eight bytes, the size of
 * RPC_SESSION_HEAD. */
bool rpc_answer_with(rpc_session *session, rpc_kind kind, const void *message)
{
    session->body.n = 0;
    worker_put_i64(&session->body, 0); /* room for the head: one write for small messages */
    rpc_encode(&session->body, kind, message, session->o.version);
    if (session->body.failed)
        return false;
    put_head(session->body.data, session->body.n - RPC_SESSION_HEAD, kind);
    return write_all(session, session->body.data, session->body.n);
}

/* `fatal` stays 0: the session goes on after an error. */
bool rpc_answer_error(rpc_session *session, const tec_error *err)
{
    return rpc_answer_with(session, RPC_KIND_failure,
                           &(rpc_failure){.status = err->status, .text = err->text, .output = ""});
}

bool rpc_answer_done(rpc_session *session, int64_t handle)
{
    return rpc_answer_with(session, RPC_KIND_done, &(rpc_done){handle});
}

/* An array as frames of data, none of them longer than the client takes. The bytes are written straight from
 * the tensor; only the heads are built. */
static bool send_pieces(rpc_session *session, const uint8_t *from, int64_t size)
{
    int64_t most = session->o.piece - RPC_DATA_HEAD;

    while (size > 0) {
        int64_t piece = size < most ? size : most;
        uint8_t head[RPC_SESSION_HEAD + RPC_DATA_HEAD] = {0};

        put_head(head, (size_t)piece + RPC_DATA_HEAD, RPC_KIND_data);
        put_head(head + RPC_SESSION_HEAD, (size_t)piece, RPC_KIND_NONE);
        if (!write_all(session, head, sizeof head) || !write_all(session, from, (size_t)piece))
            return false;
        from += piece;
        size -= piece;
    }
    return true;
}

/* Type, shape and bytes of a tensor. One on a device, or with strides, is copied first. If the write fails in
 * the middle, the session ends, so a client never takes half a tensor for a whole one. */
bool rpc_answer_tensor(rpc_session *session, const DLTensor *tensor)
{
    tec_error err = {0};
    bool direct = tensor->device.device_type == kDLCPU && tec_tensor_is_compact(tensor);
    tec_array *copy = direct ? NULL : tec_array_copy(tensor, &err);
    int64_t bytes = tec_tensor_bytes(tensor);

    if (!direct && !copy)
        return rpc_answer_error(session, &err);
    const uint8_t *from =
        direct ? (const uint8_t *)tensor->data + tensor->byte_offset : (const uint8_t *)tec_array_data(copy);
    bool sent =
        rpc_answer_with(
            session, RPC_KIND_contents,
            &(rpc_contents){tensor->dtype.code, tensor->dtype.bits, {tensor->shape, tensor->ndim}, bytes}) &&
        send_pieces(session, from, bytes);
    tec_array_free(copy);
    return sent;
}

/* ---- questions ---- */

/* Whether a question may run code of the client on any number of threads. */
static bool computes(uint32_t kind)
{
    return kind != RPC_KIND_data && kind != RPC_KIND_upload && kind != RPC_KIND_release &&
           kind != RPC_KIND_measure && kind != RPC_KIND_close;
}

/* False: the socket is gone, or this session is over. A question in the middle of a transfer ends the
 * transfer with an error of its own, which stands before the answer to the question: questions and answers
 * keep their order. Data are no question and are not counted; `close` does not count itself. */
static bool answer(rpc_session *session, uint32_t kind, const rpc_any *message)
{
    if (kind != RPC_KIND_data && session->transfer.active && !rpc_end_transfer(session))
        return false;
    if (kind != RPC_KIND_data)
        session->answered++;
    if (computes(kind))
        rpc_use_all_cpus(session);
    switch (kind) {
    case RPC_KIND_data: return rpc_on_data(session, &message->data);
    case RPC_KIND_upload: return rpc_on_upload(session, &message->upload);
    case RPC_KIND_allocate: return rpc_on_allocate(session, &message->allocate);
    case RPC_KIND_release: return rpc_on_release(session, &message->release);
    case RPC_KIND_write: return rpc_on_write(session, &message->write);
    case RPC_KIND_read: return rpc_on_read(session, &message->read);
    case RPC_KIND_call: return rpc_on_call(session, &message->call);
    case RPC_KIND_time: return rpc_on_time(session, &message->time);
    case RPC_KIND_measure: return rpc_on_measure(session, &message->measure);
    case RPC_KIND_prepare: return rpc_on_prepare(session, &message->prepare);
    case RPC_KIND_feed: return rpc_on_feed(session, &message->feed);
    case RPC_KIND_run: return rpc_on_run(session, &message->run);
    case RPC_KIND_fetch: return rpc_on_fetch(session, &message->fetch);
    case RPC_KIND_program: return rpc_on_program(session, &message->program);
    case RPC_KIND_value: return rpc_on_value(session, &message->value);
    case RPC_KIND_execute: return rpc_on_execute(session, &message->execute);
    case RPC_KIND_look: return rpc_on_look(session, &message->look);
    case RPC_KIND_profile: return rpc_on_profile(session, &message->profile);
    case RPC_KIND_close:
        session->over = true;
        return rpc_answer_with(session, RPC_KIND_closed, &(rpc_closed){session->answered - 1});
    default: return false;
    }
}

/* A piece of a transfer goes from the socket straight to its place: pieces are the bulk of what comes. False:
 * the piece is not one that simply continues the transfer, and is read like any question. */
static bool is_next_piece(const rpc_session *session, uint32_t kind, size_t size)
{
    const rpc_transfer *transfer = &session->transfer;

    return kind == RPC_KIND_data && transfer->active && transfer->to && size > RPC_DATA_HEAD &&
           (int64_t)(size - RPC_DATA_HEAD) <= transfer->size - transfer->got;
}

/* What the head of the message says of the length and what the piece says itself must agree. */
static bool take_piece(rpc_session *session, size_t size)
{
    uint8_t *to = session->transfer.to + session->transfer.got;
    uint8_t head[RPC_DATA_HEAD];
    uint64_t n = 0;
    tec_error err = {0};

    if (!read_all(session, head, sizeof head) || !read_all(session, to, size - RPC_DATA_HEAD))
        return false;
    for (int i = 0; i < RPC_DATA_HEAD; i++)
        n |= (uint64_t)head[i] << (8 * i);
    if (n == size - RPC_DATA_HEAD)
        return rpc_took_piece(session, (int64_t)n);
    rt_fail(&err, TEC_PROTOCOL, "a piece says that it has %llu bytes, and has %zu", (unsigned long long)n,
            size - RPC_DATA_HEAD);
    return rpc_fail_transfer(session, &err);
}

/* Reads one question into *frame, which is as long as the longest so far. The length comes from the server,
 * which has checked it against the limit of its message; so it may be allocated. A damaged question gets an
 * answer: the client's and this version's ideas of the message differ. */
static bool take_question(rpc_session *session, uint8_t **frame, size_t *cap)
{
    uint8_t head[RPC_SESSION_HEAD];
    uint32_t word[2] = {0};
    rt_arena arena = {0};
    rpc_any m;

    if (!read_all(session, head, sizeof head))
        return false;
    for (int i = 0; i < 8; i++)
        word[i / 4] |= (uint32_t)head[i] << (8 * (i % 4));
    if (is_next_piece(session, word[1], word[0]))
        return take_piece(session, word[0]);
    if (word[0] > *cap) {
        rt_free(*frame);
        *frame = rt_alloc(word[0], NULL);
        *cap = *frame ? word[0] : 0;
    }
    if ((word[0] && !*frame) || !read_all(session, *frame, word[0]))
        return false;
    tec_error err = {0};
    bool good = rpc_decode(&m, word[1], *frame, word[0], session->o.version, &arena);
    bool go_on = good ? answer(session, word[1], &m)
                      : (rt_fail(&err, TEC_PROTOCOL, "a message of kind %u cannot be decoded", word[1]),
                         rpc_answer_error(session, &err));
    rt_arena_free(&arena);
    return go_on;
}

void rpc_serve_questions(rpc_session *session)
{
    uint8_t *frame = NULL;
    size_t cap = 0;

    while (!session->over && take_question(session, &frame, &cap))
        ;
    rt_free(frame);
}

/* ---- the process ---- */

/* The answer `opened` ends the start; whatever fails before is answered by a failure instead. */
static bool open_device(rpc_session *session, tec_error *err)
{
    tec_device_info info;

    session->device = tec_device_open(session->o.device, err);
    return session->device && tec_device_describe(session->device, &info, err) &&
           rpc_answer_with(session, RPC_KIND_opened,
                           &(rpc_opened){info.name, session->o.memory_bytes, session->o.seconds});
}

/* The process of one session. It locks itself in before it opens a device, as a driver runs foreign code.
 * Ends by _exit, so that nothing runs that a driver or a module has registered for the exit. */
int rpc_session_main(int argc, char **argv)
{
    rpc_session s = {.o = read_words(argv), .socket = RPC_SESSION_SOCKET};
    bool listing = strcmp(s.o.device, "list") == 0, cpu = rpc_is_cpu(s.o.device);
    const rpc_sandbox box = {.has_driver = !cpu,
                             .weak = s.o.weak,
                             .memory_bytes = s.o.memory_bytes,
                             .watcher = RPC_SESSION_WATCHER};
    char layers[100];
    tec_error err = {0};

    (void)argc;
    s.is_cpu = cpu;
    signal(SIGPIPE, SIG_IGN);
    if (!rpc_sandbox_enter(&box, layers, sizeof layers, &err) || (!listing && !open_device(&s, &err))) {
        rpc_answer_error(&s, &err);
        _exit(1);
    }
    if (listing) {
        fputs(layers, stderr);
        rpc_answer_devices(&s);
    } else
        rpc_serve_questions(&s);
    rpc_free_things(&s);
    rpc_forget_functions(&s, 0);
    worker_bench_free(s.bench);
    tec_device_free(s.device);
    rt_free(s.body.data);
    _exit(0);
}
