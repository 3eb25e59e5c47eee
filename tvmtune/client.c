/* tvmtune/client.c -- see client.h. */
#include "tvmtune/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/guard.h"

enum { ASK_SECONDS = 60 };

static const char *read_line(tec_context *cx, const char *path)
{
    size_t size;
    char *text = base_read_file(cx, path, &size);

    if (text)
        text[strcspn(text, "\r\n")] = '\0';
    return text;
}

/* What the options name goes before what lies in the folder. */
bool tvm_find_daemon(tec_context *cx, const char *folder, int64_t port, const char *token, tvm_daemon *out)
{
    const char *text =
        port ? base_format(cx, "%lld", (long long)port) : read_line(cx, base_format(cx, "%s/port", folder));

    *out = (tvm_daemon){.port = text ? atoi(text) : 0};
    if (text && (out->port < 1 || out->port > 65535))
        return port ? base_fail(cx, TEC_INVALID, (base_loc){0}, "expected a port from 1 to 65535, found %s",
                                text)
                    : base_fail(cx, TEC_INVALID, (base_loc){.file = folder},
                                "expected a port number in the file 'port', found '%s'", text);
    if (text)
        out->token = read_line(cx, token ? token : base_format(cx, "%s/token", folder));
    return out->token;
}

/* All but letters, digits and four signs become %XX, byte by byte. */
const char *tvm_escape(tec_context *cx, const char *text)
{
    base_text t = {0};

    for (; *text; text++)
        if (strchr("-._~", *text) || (*text >= '0' && *text <= '9') ||
            ((*text | 32) >= 'a' && (*text | 32) <= 'z'))
            base_addn(cx, &t, text, 1);
        else
            base_addf(cx, &t, "%%%02X", (unsigned char)*text);
    return base_text_str(cx, &t);
}

static void *fail(tec_context *cx, const tvm_daemon *daemon, const char *what)
{
    return base_fail(cx, TEC_IO, (base_loc){0}, "%s the daemon at 127.0.0.1:%d: %s", what, daemon->port,
                     errno ? strerror(errno) : "no answer");
}

/* A signal may interrupt a write; a peer that is gone is an error and no signal (MSG_NOSIGNAL). */
static bool send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

/* "HTTP/1.1 200 OK", headers, an empty line, the rest. The daemon closes the connection behind its answer. */
static bool receive(tec_context *cx, int fd, tvm_reply *out)
{
    base_text all = {0};
    char piece[1 << 16];
    ssize_t n;

    while ((n = recv(fd, piece, sizeof piece, 0)) > 0 || (n < 0 && errno == EINTR))
        base_addn(cx, &all, piece, n > 0 ? (size_t)n : 0);
    const char *text = base_text_str(cx, &all), *body = strstr(text, "\r\n\r\n");
    if (n < 0 || !body || sscanf(text, "HTTP/1.%*d %d", &out->status) != 1)
        return false;
    out->data = body + 4;
    out->size = all.n - (size_t)(out->data - text);
    return true;
}

static void close_socket(void *fd)
{
    close((int)(intptr_t)fd);
}

/* To this machine alone, with a limit on every wait. */
static bool dial(tec_context *cx, int fd, const tvm_daemon *daemon)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)daemon->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {ASK_SECONDS, 0};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || fail(cx, daemon, "cannot reach");
}

/* A daemon that refuses at its door may stop reading: its answer counts then, not our failure to send. */
static bool exchange(tec_context *cx, int fd, const tvm_daemon *daemon, const char *head, const void *body,
                     size_t size, tvm_reply *out)
{
    if (!dial(cx, fd, daemon))
        return false;
    bool sent = send_all(fd, head, strlen(head)) && send_all(fd, body, size);
    if (receive(cx, fd, out))
        return true;
    return fail(cx, daemon, sent ? "no answer from" : "cannot send to");
}

/* One connection for each request; the socket is closed also when memory runs out. */
bool tvm_ask(tec_context *cx, const tvm_daemon *daemon, const char *method, const char *path,
             const void *body, size_t size, tvm_reply *out)
{
    const char *head = base_format(
        cx,
        "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n",
        method, path, daemon->port, daemon->token, size);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    base_held held;

    *out = (tvm_reply){.status = 0};
    if (fd < 0)
        return fail(cx, daemon, "no socket for");
    base_hold(cx, &held, close_socket, (void *)(intptr_t)fd);
    bool ok = exchange(cx, fd, daemon, head, body ? body : "", size, out);
    base_drop(&held);
    return ok;
}

/* ---- the event stream ---- */

typedef struct {
    tec_context *cx;
    const tvm_daemon *daemon;
    FILE *from;
    char *line; /* of getline */
    size_t room;
} stream;

static void close_stream(void *of)
{
    stream *s = of;

    if (s->from)
        fclose(s->from);
    free(s->line);
}

/* The next line without its end; false at the end of the stream. */
static bool next_line(stream *self)
{
    errno = 0;
    if (getline(&self->line, &self->room, self->from) <= 0)
        return false;
    self->line[strcspn(self->line, "\r\n")] = '\0';
    return true;
}

/* The status line and the headers. */
static bool read_head(stream *self)
{
    int status = 0;

    if (!next_line(self) || sscanf(self->line, "HTTP/1.%*d %d", &status) != 1)
        return fail(self->cx, self->daemon, "no answer from");
    while (*self->line)
        if (!next_line(self))
            return fail(self->cx, self->daemon, "no answer from");
    return status == 200 || base_fail(self->cx, TEC_INVALID, (base_loc){0},
                                      "the daemon refuses its events: status %d", status);
}

/* An event is a line with its name and a line with its data. Between events there are empty lines and
 * comments. */
static bool read_events(stream *self, tvm_take_event *take, void *user)
{
    char event[32] = "";

    while (next_line(self)) {
        if (base_starts_with(self->line, "event: "))
            snprintf(event, sizeof event, "%s", self->line + strlen("event: "));
        if (base_starts_with(self->line, "data: ") && !take(user, event, self->line + strlen("data: ")))
            return true;
    }
    return fail(self->cx, self->daemon, "no more events from");
}

/* By HTTP/1.0, in which a stream has no chunks. */
bool tvm_listen(tec_context *cx, const tvm_daemon *daemon, tvm_take_event *take, void *user)
{
    const char *head =
        base_format(cx, "GET /v1/events HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n",
                    daemon->port, daemon->token);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    stream s = {.cx = cx, .daemon = daemon, .from = fd < 0 ? NULL : fdopen(fd, "r")};
    base_held held;

    if (!s.from) {
        fail(cx, daemon, "no socket for");
        if (fd >= 0)
            close(fd);
        return false;
    }
    base_hold(cx, &held, close_stream, &s);
    bool ok = dial(cx, fd, daemon) &&
              (send_all(fd, head, strlen(head)) || fail(cx, daemon, "cannot send to")) && read_head(&s) &&
              read_events(&s, take, user);
    base_drop(&held);
    return ok;
}
