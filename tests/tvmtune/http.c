/* Requests as bytes, made of the pieces that a request has and then damaged: each gets an answer or a closed
 * connection, or is left waiting for its rest; none stops the doors.
 *
 *   TEC_MUTATIONS=1000000 build/asan/tests/test_tvmtune_http --timeout 36000
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/mutate.h"
#include "tests/store/kit.h"
#include "tvmtune/http.h"

TestSuite(http, .init = set_up, .fini = tear_down);

static const char token[] = "0123456789abcdef0123456789abcdef";

static uint64_t seed;
static tvm_doors *doors;
static tvm_ahead ahead;
static bool whole;                /* the request has all that its headers promise */
static int64_t seen[600], closed; /* answers by status; connections without an answer */

static int below(int n)
{
    return (int)base_random_below(&seed, n);
}

static const char *pick(const char *const *from, int n)
{
    return from[below(n)];
}
#define PICK(...)                                                                                            \
    pick((const char *const[]){__VA_ARGS__},                                                                 \
         (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

/* ---- requests ---- */

/* Nine of ten times what a client would say, otherwise one of the rest. */
#define MOSTLY(right, ...) (below(10) ? (right) : PICK(__VA_ARGS__))

static void add_path(tec_context *in, base_text *t)
{
    base_add(in, t,
             below(2) ? "/v1/jobs"
                      : PICK("/v1/jobs/1", "/v1/jobs/2", "/", "/page.js", "/v1/events", "/v1/records",
                             "/v1/devices", "/v1/metrics", "/v1/users", "/v1/users/ada", "/v1/audit", "", "*",
                             "http://evil.example/v1/jobs", "/v1/jobs/99999999999999999999"));
    if (below(4) == 0)
        base_add(in, t,
                 PICK("/pause", "/resume", "/cancel", "/files/module", "/files/report", "/files/input",
                      "/files/report.html", "/..", "/%2e%2e/token", "//", "/%00", "%", "%zz", "/\xff"));
    if (below(2) == 0)
        base_add(in, t, "?name=a.te");
    for (int n = below(3); n > 0; n--)
        base_addf(in, t, "%s%s=%s", t->n && strchr(base_text_str(in, t), '?') ? "&" : "?",
                  PICK("name", "name", "trials", "priority", "seconds", "dim", "search", "role", "target",
                       "device-class", "", "%6eame"),
                  PICK("a.te", "b.onnx", "7", "-1", "0", "%ff.te", "..%2Fa.te", "%3Cscript%3E.te", "n=4", "+",
                       "%", "99999999999999999999", "admin", "--records=x", "%00"));
}

static void add_headers(tec_context *in, base_text *t, int64_t length)
{
    int port = tvm_doors_port(doors);

    if (below(30))
        base_addf(in, t, "Host: %s:%d\r\n", MOSTLY("127.0.0.1", "localhost", "evil.example", ""),
                  below(20) ? port : port + 1);
    if (below(20))
        base_addf(in, t, "Authorization: %s%s\r\n", MOSTLY("Bearer ", "Basic ", "bearer", ""),
                  below(20) ? token : PICK("", "x", "0123456789abcdef0123456789abcde", "\x80"));
    if (below(12) == 0)
        base_addf(in, t, "Origin: %s\r\n", PICK("null", "http://evil.example", "http://127.0.0.1", ""));
    whole = below(12);
    if (whole)
        base_addf(in, t, "Content-Length: %lld\r\n", (long long)length);
    else
        base_addf(in, t, "%s\r\n",
                  PICK("Content-Length: -1", "Content-Length: 99999999999999999999",
                       "Content-Length: 268435457", "Content-Length: 0x10", "Transfer-Encoding: chunked",
                       "Transfer-Encoding: chunked, gzip", "Content-Length: 3\r\nContent-Length: 4",
                       "Content-Length: 3\r\nTransfer-Encoding: chunked"));
    if (below(6) == 0)
        base_addf(in, t, "%s\r\n",
                  PICK("Expect: 100-continue", "Connection: close", "Connection: keep-alive", "X: y",
                       " folded", ":", "Cookie: a=b; c", "Upgrade: websocket",
                       "Content-Type: multipart/form-data; boundary="));
    if (below(40) == 0)
        base_addf(in, t, "X: %0*d\r\n", 1 + below(40000), 7);
}

static void add_body(tec_context *in, base_text *t)
{
    base_add(
        in, t,
        PICK("def", "def", "", "3\r\ndef\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "0\r\n\r\n", "-1\r\nx"));
}

static const char *request(tec_context *in, size_t *size)
{
    base_text body = {0}, t = {0};

    add_body(in, &body);
    base_addf(in, &t, "%s ",
              PICK("GET", "GET", "POST", "POST", "DELETE", "HEAD", "PUT", "OPTIONS", "get", ""));
    add_path(in, &t);
    base_addf(in, &t, " %s\r\n", MOSTLY("HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "", "HTTP/1.1 x"));
    int64_t length = below(15) ? (int64_t)body.n : below(10);
    add_headers(in, &t, length);
    whole = whole && length <= (int64_t)body.n;
    base_add(in, &t, "\r\n");
    base_addn(in, &t, body.data ? body.data : "", body.n);
    *size = t.n;
    return base_text_str(in, &t);
}

/* Some bytes are changed, taken out, or doubled; seven of ten requests stay as they are. */
static char *damage(tec_context *in, const char *text, size_t *size)
{
    char *bytes = base_array(in, char, (int)(2 * *size + 8));

    memcpy(bytes, text, *size);
    for (int edits = below(10) < 7 ? 0 : 1 + below(4); edits > 0 && *size > 2; edits--) {
        whole = false;
        size_t at = (size_t)below((int)*size), n = (size_t)below(12);

        n = n > *size - at ? *size - at : n;
        switch (below(3)) {
        case 0: bytes[at] = (char)below(256); break;
        case 1:
            memmove(bytes + at, bytes + at + n, *size - at - n);
            *size -= n;
            break;
        default:
            if (*size + n > 2 * strlen(text))
                break;
            memmove(bytes + at + n, bytes + at, *size - at);
            *size += n;
        }
    }
    return bytes;
}

/* ---- answers ---- */

/* Until the doors close, an event stream has begun, or nothing comes: a request that is not whole is waited
 * for by the doors, and given up here. */
static void take_answer(int fd, uint64_t start)
{
    char text[4096] = "";
    size_t all = 0;
    ssize_t n = 1;
    int status = 0;

    while (n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, whole && all == 0 ? 2000 : 10) == 0)
            break;
        n = recv(fd, text + (all < 2000 ? all : 2000), sizeof text - 2001, 0);
        all += n > 0 ? (size_t)n : 0;
        text[all < 4000 ? all : 4000] = '\0';
        if (strstr(text, "text/event-stream"))
            break;
    }
    if (all == 0) {
        closed++;
        return;
    }
    cr_assert(all > 12 && strncmp(text, "HTTP/1.", 7) == 0, "seed %llu: %.40s", (unsigned long long)start,
              text);
    status = atoi(text + 9);
    cr_assert(status >= 100 && status < 600 && status != 500, "seed %llu is answered with %d",
              (unsigned long long)start, status);
    seen[status]++;
}

static void one(void)
{
    uint64_t start = seed;
    tec_context *in = tec_context_new();
    size_t size;
    int pair[2];

    mutation_note(start);
    const char *text = request(in, &size);
    const char *bytes = damage(in, text, &size);
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 &&
              tvm_doors_serve(doors, pair[1]));
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(pair[0], bytes + sent, size - sent, MSG_NOSIGNAL);

        if (n <= 0)
            break; /* refused before it was read */
        sent += (size_t)n;
    }
    take_answer(pair[0], start);
    close(pair[0]);
    tec_context_free(in);
}

Test(http, any_bytes_get_an_answer_or_a_closed_door)
{
    static const int statuses[] = {200, 201, 400, 401, 403, 404, 405, 413};
    int64_t count = mutation_count(5000);

    seed = mutation_begin();
    doors = tvm_doors_open(
        cx, &(tvm_doors_options){
                .store = base_format(cx, "%s/h.db", dir), .token = token, .quota = 1000, .ahead = &ahead});
    cr_assert(doors != NULL, "%s", tec_context_error(cx));
    for (int64_t i = 0; i < count; i++) {
        one();
        if (i % 50 == 0) { /* clients of the event stream that are gone are noticed when something is sent */
            ahead += 20000;
            tvm_doors_tick(doors);
        }
    }
    fprintf(stderr, "%lld requests: %lld closed without an answer", (long long)count, (long long)closed);
    for (int i = 0; i < 600; i++)
        if (seen[i])
            fprintf(stderr, ", %d: %lld", i, (long long)seen[i]);
    fprintf(stderr, "\n");
    for (int i = 0; i < BASE_COUNT(statuses); i++)
        cr_assert_gt(seen[statuses[i]], 0, "no request is answered with %d", statuses[i]);
    tvm_doors_close(doors);
}
