/* rpc/link.h -- one side of a connection as a state machine: bytes in, frames out; messages in, bytes out.
 * No sockets.
 *
 *     rpc_link *l = rpc_link_new(&(rpc_link_options){.key = &key, .program = "tec 0.1"}, err);
 *     for (;;) {
 *         size_t n = write(fd, rpc_link_output(l, &left), left);          rpc_link_sent(l, n);
 *         uint8_t *room = rpc_link_room(l, &size, err);                   rpc_link_received(l, read(fd,
 *                                                                           room, size));
 *         while (rpc_link_next(l, &frame) == RPC_FRAME) ... frame.kind, frame.body
 *     }
 *
 * The link does the handshake (rpc/seal.h), exchanges hello, opens and seals frames, holds each frame
 * against the row of its message (who may send it, where, how long) and keeps the windows of the streams: a
 * side may send so many bytes of `data` on a stream as the other has granted; other messages are short, and
 * each waits for its answer. Stream 0 is the connection. A client opens a stream by the message `open`;
 * numbers of streams rise. Frames that arrive for a stream that is closed are dropped: they were under way.
 *
 * Lifetime: one owner; a frame's body is valid until the next call.
 * Errors: what is wrong stays in the link (rpc_link_error); a broken link gives no frames and takes no
 *   messages, but may still have output: the answer that says why.
 * Threads: one at a time.
 */
#ifndef RPC_LINK_H
#define RPC_LINK_H

#include "rpc/message.h"
#include "rpc/seal.h"

enum {
    RPC_FRAME_HEAD = 4 + 8, /* length; stream, kind, reserved */
    RPC_LEAST_FRAME = 4096, /* bodies of this length every side accepts */
    RPC_USUAL_FRAME = 1 << 17,
    RPC_MOST_FRAME = 1 << 20,
    RPC_USUAL_WINDOW = 1 << 21,
    RPC_MOST_WINDOW = 1 << 30,
    RPC_MOST_STREAMS = 64 /* of one connection at once */
};

/* Versions of the protocol, both ends included. */
typedef struct {
    int oldest, newest;
} rpc_range;

extern const rpc_range rpc_spoken; /* by this program */

/* What a server knows of a key. */
typedef struct {
    rpc_key key;
    unsigned roles;
    const char *why; /* not to be let in: the reason, for the log */
} rpc_grant;

typedef struct {
    const rpc_key *key; /* the client's; NULL: this side is a server */
    bool (*find)(void *user, const uint8_t id[RPC_ID_BYTES], rpc_grant *grant); /* of a server */
    void *user;
    bool full;                 /* a server that takes no more connections: says so */
    int oldest, newest;        /* versions to speak; 0: those of rpc_spoken */
    int64_t max_frame, window; /* 0: the usual ones */
    const char *program;
} rpc_link_options;

typedef struct rpc_link rpc_link;

/* NULL: without memory or random numbers. */
rpc_link *rpc_link_new(const rpc_link_options *options, tec_error *err);
void rpc_link_free(rpc_link *link);

/* ---- bytes from and to the other side ---- */

uint8_t *rpc_link_room(rpc_link *link, size_t *size); /* where to read to; NULL: broken */
void rpc_link_received(rpc_link *link, size_t n);
const uint8_t *rpc_link_output(const rpc_link *link, size_t *n);
void rpc_link_sent(rpc_link *link, size_t n);

/* ---- frames ---- */

typedef struct {
    uint32_t stream;
    rpc_kind kind;
    const rpc_message *row;
    const uint8_t *body;
    size_t n;
} rpc_frame;

typedef enum { RPC_NOTHING, RPC_FRAME, RPC_BROKEN } rpc_event;

/* The next frame; the link handles windows and hello itself. A server's owner refuses the frames of a key
 * that lacks the role for them: those of sessions come even where their stream is not open. */
rpc_event rpc_link_next(rpc_link *link, rpc_frame *frame);
/* The receiver has done with so many bytes of `data` bodies of a stream: the other side may send as many
 * again. */
void rpc_link_consumed(rpc_link *link, uint32_t stream, size_t size);

/* False: broken, or the stream is closed. */
bool rpc_link_send(rpc_link *link, uint32_t stream, rpc_kind kind, const void *message);
bool rpc_link_send_body(rpc_link *link, uint32_t stream, rpc_kind kind, const void *body, size_t n);
/* The message `data` with this piece. */
bool rpc_link_send_piece(rpc_link *link, uint32_t stream, const void *piece, size_t n);
/* Bytes of `data` bodies that may be sent on the stream now; 0 for a closed one. */
size_t rpc_link_may_send(const rpc_link *link, uint32_t stream);
size_t rpc_link_max_body(const rpc_link *link); /* that the other side accepts */

/* A client's next stream; 0: there are too many. The message `open` must follow on it. */
uint32_t rpc_link_open_stream(rpc_link *link);
void rpc_link_close_stream(rpc_link *link, uint32_t stream);

/* ---- a link that carries another one ---- */

/* From now on no frames are opened or sealed: bytes that come are taken by rpc_link_raw, bytes that are put
 * go out behind the frames that wait. */
void rpc_link_make_raw(rpc_link *link);
const uint8_t *rpc_link_raw(rpc_link *link, size_t *n); /* all that is there; it is taken by this call */
bool rpc_link_put_raw(rpc_link *link, const void *data, size_t n);

/* ---- asking ---- */

bool rpc_link_ready(const rpc_link *link); /* hello has come: messages may be sent */
const tec_error *rpc_link_error(const rpc_link *link);
void rpc_link_break(rpc_link *link, tec_status status, const char *fmt, ...) BASE_PRINTF(3, 4);
int rpc_link_version(const rpc_link *link);
unsigned rpc_link_roles(const rpc_link *link);                          /* a server's: of the client's key */
bool rpc_link_lacks_role(const rpc_link *link, const rpc_frame *frame); /* a server's: the key, for it */
const uint8_t *rpc_link_id(const rpc_link *link);                       /* of the key */
const char *rpc_link_peer(const rpc_link *link);                        /* the other side's program */

/* "1f2e3d4c5b6a7988". */
typedef struct {
    char text[2 * RPC_ID_BYTES + 1];
} rpc_id_text;
rpc_id_text rpc_show_id(const uint8_t id[RPC_ID_BYTES]);

#endif
