/* rpc/server/host.c -- see host.h.
 *
 * A session's process is not trusted: a module that it loaded may have taken it over. So the server reads
 * only lengths and kinds of what it says (`is_answer`), passes the bodies on, bounds how much it prints and
 * how long it computes, and ends it by SIGKILL. Whatever happens, the order at the end is the same:
 *
 *     the process exits -> its two pipes end, or half a second passes -> all handles are closed -> `ended`
 *
 * The pipes are read to their end first, because the last answer and the last lines printed lie in them, and
 * those lines are often the only hint why a process crashed.
 */
#define _GNU_SOURCE /* FTW_PHYS */
#include "rpc/server/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "rpc/server/watch.h"
#include "runtime/alloc.h"

enum {
    TAIL = 4000,
    MOST_WAITING = 1024,
    START_SECONDS = 30,
    AFTER_EXIT_MS = 500, /* that pipes may stay open behind the process */
    READ = 1 << 18,
    NOBODY = 65534
};

/* `handles` counts what libuv has not closed: the struct is freed with the last one. `waiting` is the number
 * of questions without an answer. in[begin_in..n_in) begins with a head; what is there while `stuck` was read
 * and is not yet taken by the client, and nothing more is read meanwhile, so that a slow client makes the
 * process wait and not the server grow. `why` is set at most once and wins over the status of the exit. */
struct rpc_host {
    rpc_loop *loop;
    rpc_host_options o;
    uv_process_t process;
    uv_pipe_t socket, print;
    uv_timer_t clock;
    rpc_watch *watch; /* NULL: the process was not started */
    int handles;      /* that are not closed, the watch among them */
    bool exited, socket_ended, print_ended, closing, started, has_process;
    uint8_t *in; /* [begin_in, n_in): what came from the process and was not handed on */
    size_t begin_in, n_in, cap_in;
    bool stuck; /* the client takes no more now */
    int64_t waiting, printed;
    double cpu_seconds; /* that the process had computed at the last message before it had nothing to do */
    uint16_t asked[MOST_WAITING]; /* kinds of the questions that wait, from first_asked on, in a ring */
    int64_t first_asked;
    char tail[TAIL + 1], print_buffer[4096];
    size_t n_tail;
    char folder[400], *real_folder; /* as given, and without symbolic links */
    int lock;                       /* of the folder; -1: there is none */
    tec_error why;
    int signal;
};

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    remove(path); /* one that stays keeps none of the next from being tried */
    return 0;
}

static void close_lock(rpc_host *host)
{
    if (host->lock >= 0)
        close(host->lock);
    host->lock = -1;
}

/* A folder whose lock nobody holds is of a server that was killed. */
static void sweep_one(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    close(fd);
}

void rpc_host_sweep(const char *folder)
{
    DIR *d = opendir(folder);
    char path[400];

    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, "session-", 8) == 0 &&
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path)
            sweep_one(path);
    if (d)
        closedir(d);
}

/* The folder is locked for as long as this process lives, so that no other server takes it for a dead one's.
 */
static bool make_folder(rpc_host *host, tec_error *err)
{
    snprintf(host->folder, sizeof host->folder, "%s/session-%ld-%lld", host->o.folder, (long)getpid(),
             (long long)host->o.number);
    if (mkdir(host->folder, 0700) != 0)
        return rt_fail_io(err, host->folder, "make the folder", errno);
    if (geteuid() == 0 && chown(host->folder, NOBODY, NOBODY) != 0)
        return rt_fail_io(err, host->folder, "give the folder away", errno);
    host->real_folder = realpath(host->folder, NULL);
    if (!host->real_folder)
        return rt_fail_io(err, host->folder, "find the folder", errno);
    host->lock = open(host->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (host->lock >= 0 && flock(host->lock, LOCK_EX) == 0) ||
           rt_fail_io(err, host->folder, "lock the folder", errno);
}

/* ---- the end ---- */

/* The folder is removed before `ended`, so that the next session finds room on the disk. */
static void finish(rpc_host *host)
{
    rpc_host_end end = {host->why.status, host->signal, host->why.text, host->tail};

    nftw(host->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    close_lock(host);
    host->o.events->ended(host->o.user, &end);
    free(host->real_folder);
    rt_free(host->in);
    rt_free(host);
}

static void count_closed(rpc_host *host)
{
    if (--host->handles == 0)
        finish(host);
}

static void on_closed(uv_handle_t *handle)
{
    count_closed(handle->data);
}

static void on_watch_tells(void *user, const char *text)
{
    rpc_host *host = user;

    host->o.events->tells(host->o.user, text);
}

static void on_watch_ended(void *user)
{
    count_closed(user);
}

/* A reason that the server had for killing the process was set before, and stays. */
static void say_why(rpc_host *host, int64_t status, int signal)
{
    if (host->why.status != TEC_OK)
        return;
    if (signal == SIGSYS)
        rt_fail(&host->why, TEC_CRASHED,
                "a session's process was ended: it made a system call that sessions "
                "may not make (signal %d, %s)",
                signal, strsignal(signal));
    else if (signal == SIGALRM)
        rt_fail(&host->why, TEC_TIMEOUT,
                "the measured function did not end within the time limit of the request");
    else if (signal)
        rt_fail(&host->why, TEC_CRASHED, "a session's process ended by signal %d (%s)", signal,
                strsignal(signal));
    else if (status)
        rt_fail(&host->why, TEC_CRASHED, "a session's process ended by itself with status %lld",
                (long long)status);
}

/* All is known: the process has ended and its pipes are empty, or it left pipes open for too long. */
static void close_all(rpc_host *host)
{
    if (host->closing)
        return;
    host->closing = true;
    if (host->has_process)
        uv_close((uv_handle_t *)&host->process, on_closed);
    uv_close((uv_handle_t *)&host->socket, on_closed);
    uv_close((uv_handle_t *)&host->print, on_closed);
    uv_close((uv_handle_t *)&host->clock, on_closed);
    if (host->watch)
        rpc_watch_end(host->watch); /* what closes later than it counts too, so the host is still there */
}

static void close_when_done(rpc_host *host)
{
    if (host->exited && host->socket_ended && host->print_ended)
        close_all(host);
}

/* Grandchildren may have inherited the pipes. They were killed with the group, which the sandbox lets nobody
 * leave; a weak sandbox may be none. */
static void on_late_pipes(uv_timer_t *timer)
{
    close_all(timer->data);
}

/* `started` is false for a process that could not be started: its pid is 0, which would mean the server's own
 * group. */
static void kill_all(const rpc_host *host)
{
    if (!host->exited && host->started) {
        kill(-host->process.pid, SIGKILL); /* the group, which the process leads */
        kill(host->process.pid, SIGKILL);
    }
}

void rpc_host_kill(rpc_host *host, tec_status status, const char *text)
{
    if (host->why.status == TEC_OK)
        rt_fail(&host->why, status, "%s", text);
    kill_all(host);
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
    rpc_host *host = process->data;

    kill(-process->pid, SIGKILL); /* what the process started and left */
    host->exited = true;
    host->signal = signal;
    say_why(host, status, signal);
    uv_timer_start(&host->clock, on_late_pipes, AFTER_EXIT_MS, 0);
    close_when_done(host);
}

/* ---- the clock ---- */

static void on_late(uv_timer_t *timer)
{
    rpc_host *h = timer->data;
    char text[100];

    snprintf(text, sizeof text, "a question took longer than the %g s that its session allows",
             h->o.session.seconds);
    rpc_host_kill(h, TEC_TIMEOUT, text);
}

/* That the process and its threads have computed so far. 0: unknown, as behind the end of the process. */
static double count_cpu_seconds(const rpc_host *host)
{
    clockid_t clock;
    struct timespec t;

    if (clock_getcpuclockid(host->process.pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A module may have left a thread that computes on, while no question waits. */
static void on_idle(uv_timer_t *timer)
{
    rpc_host *h = timer->data;
    char text[100];

    if (count_cpu_seconds(h) - h->cpu_seconds <= h->o.session.seconds)
        return;
    snprintf(text, sizeof text, "this session computed for more than %g s between two requests",
             h->o.session.seconds);
    rpc_host_kill(h, TEC_TIMEOUT, text);
}

/* Called after each message in either direction: the time begins anew. An idle session may wait for as long
 * as it wants, and compute as long as a question may take. */
static void wind_clock(rpc_host *host)
{
    uint64_t ms = (uint64_t)(host->o.session.seconds * 1e3) + 1;

    if (host->exited)
        return;
    if (host->waiting) {
        uv_timer_start(&host->clock, on_late, ms, 0);
        return;
    }
    host->cpu_seconds = count_cpu_seconds(host);
    uv_timer_start(&host->clock, on_idle, ms, ms);
}

/* ---- from the process ---- */

/* What came before was handed on; the rest is thrown away, as no frame's beginning can be found again. */
static void on_garbled(rpc_host *host)
{
    rpc_host_kill(host, TEC_CRASHED, "a session's process sent what is no answer");
    host->begin_in = host->n_in = 0;
}

/* What the process may say: it may have been taken over by a module. Answers are only taken while a question
 * waits: otherwise a process could fill the client's buffers. `data` follows the answer `contents` that
 * announced it, so it may come when nothing waits. */
static bool is_answer(const rpc_host *host, uint32_t kind, size_t size)
{
    const rpc_message *row = rpc_find_message(kind);

    switch (kind) {
    case RPC_KIND_failure:
    case RPC_KIND_listed:
    case RPC_KIND_opened:
    case RPC_KIND_closed:
    case RPC_KIND_done:
    case RPC_KIND_contents:
    case RPC_KIND_called:
    case RPC_KIND_measured:
    case RPC_KIND_executed:
    case RPC_KIND_profiled:
    case RPC_KIND_seen:
    case RPC_KIND_timed: return size <= row->limit && host->waiting > 0;
    case RPC_KIND_data: return size <= (size_t)host->o.session.piece;
    default: return false;
    }
}

/*     length (4) kind (4) body        unsealed, as both ends are on this machine
 *
 * The kind is checked before the body has come: an impossible length is refused at once, and needs no memory.
 * A frame that the client does not take now stays at the front, and rpc_host_resume tries it again. */
static void hand_on(rpc_host *host)
{
    host->stuck = false;
    while (host->n_in - host->begin_in >= RPC_SESSION_HEAD) {
        const uint8_t *p = host->in + host->begin_in;
        size_t n = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
        uint32_t kind = p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 24;

        if (!is_answer(host, kind, n)) {
            on_garbled(host);
            return;
        }
        if (host->n_in - host->begin_in - RPC_SESSION_HEAD < n)
            break;
        if (!host->o.events->answer(host->o.user, (rpc_kind)kind, p + RPC_SESSION_HEAD, n)) {
            host->stuck = true;
            break;
        }
        if (kind != RPC_KIND_data) {
            host->waiting--;
            host->first_asked = (host->first_asked + 1) % MOST_WAITING;
        }
        wind_clock(host);
        host->begin_in += RPC_SESSION_HEAD + n;
    }
    if (host->begin_in == host->n_in)
        host->begin_in = host->n_in = 0;
}

/* Moves what is there to the front, or for too little memory into more of it. */
static void make_room(rpc_host *host)
{
    size_t used = host->n_in - host->begin_in, cap = used + 2 * (size_t)READ;
    uint8_t *in = host->cap_in - used < READ ? rt_alloc(cap, NULL) : NULL;

    if (used)
        memmove(in ? in : host->in, host->in + host->begin_in, used);
    if (in) {
        rt_free(host->in);
        host->in = in;
        host->cap_in = cap;
    }
    host->begin_in = 0;
    host->n_in = used;
}

/* Without memory the buffer has what is left, and libuv reports UV_ENOBUFS for none. */
static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    rpc_host *host = handle->data;

    (void)suggested;
    if (host->cap_in - host->n_in < READ)
        make_room(host);
    *buf = uv_buf_init((char *)host->in + host->n_in, (unsigned)(host->cap_in - host->n_in));
}

/* A reason to read on is never lost: reading stops only while `stuck`, and rpc_host_resume starts it. */
static void on_socket(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    rpc_host *host = stream->data;

    (void)buf;
    if (size > 0) {
        host->n_in += (size_t)size;
        hand_on(host);
        if (host->stuck)
            uv_read_stop(stream);
    } else if (size == UV_ENOBUFS) {
        rpc_host_kill(host, TEC_NO_MEMORY, "the server has no memory for a session's answers");
    } else if (size < 0) {
        uv_read_stop(stream);
        host->socket_ended = true;
        close_when_done(host);
    }
}

/* Does nothing unless the host waits, so it may be called at each occasion. */
void rpc_host_resume(rpc_host *host)
{
    if (!host->stuck || host->closing)
        return;
    hand_on(host);
    if (!host->stuck && !host->socket_ended)
        uv_read_start((uv_stream_t *)&host->socket, give_room, on_socket);
}

/* ---- what the process prints ---- */

static void give_print_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    rpc_host *h = handle->data;

    (void)suggested;
    *buf = uv_buf_init(h->print_buffer, sizeof h->print_buffer);
}

/* The last TAIL bytes are kept. What is no text would spoil a message of the wire, so it becomes '?'. */
static void keep_tail(rpc_host *host, const char *text, size_t size)
{
    if (size > TAIL) {
        text += size - TAIL;
        size = TAIL;
    }
    if (host->n_tail + size > TAIL) {
        size_t drop = host->n_tail + size - TAIL;

        memmove(host->tail, host->tail + drop, host->n_tail - drop);
        host->n_tail -= drop;
    }
    for (size_t i = 0; i < size; i++)
        host->tail[host->n_tail++] = (text[i] >= ' ' && text[i] < 0x7f) || text[i] == '\n' ? text[i] : '?';
    host->tail[host->n_tail] = '\0';
}

/* Output is counted over the life of the session, not by the second: a session in a loop that prints ends in
 * the end. */
static void on_print(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    rpc_host *host = stream->data;
    char text[100];

    if (size > 0) {
        keep_tail(host, buf->base, (size_t)size);
        host->printed += size;
        if (host->printed > host->o.output_bytes) {
            snprintf(text, sizeof text, "this session printed more than %lld bytes",
                     (long long)host->o.output_bytes);
            rpc_host_kill(host, TEC_CRASHED, text);
        }
    } else if (size < 0) {
        uv_read_stop(stream);
        host->print_ended = true;
        close_when_done(host);
    }
}

/* ---- to the process ---- */

/* What the socket did not take at once: the rest of head and body, freed by on_sent. The host outlives its
 * packets: libuv calls on_sent before the handle's closing is reported. */
typedef struct {
    uv_write_t request;
    rpc_host *host;
    size_t data; /* bytes of a data message's body */
    uint8_t bytes[];
} packet;

/* `taken` opens the client's window again: a client sends no faster than the process reads. */
static void note_taken(rpc_host *host, size_t data)
{
    if (data && !host->closing) {
        host->o.events->taken(host->o.user, data);
        wind_clock(host);
    }
}

static void on_sent(uv_write_t *request, int status)
{
    packet *p = (packet *)request;

    if (status == 0)
        note_taken(p->host, p->data);
    rt_free(p);
}

/* Keeps what is left of the two buffers, and sends it when the process has read what is before. */
static void send_later(rpc_host *host, const uv_buf_t buf[2], size_t done, size_t data)
{
    size_t size = buf[0].len + buf[1].len, of_head = done < buf[0].len ? buf[0].len - done : 0;
    packet *p = rt_alloc(sizeof *p + size - done, NULL);

    if (!p) {
        rpc_host_kill(host, TEC_NO_MEMORY, "the server has no memory for a session's questions");
        return;
    }
    p->host = host;
    p->data = data;
    if (of_head)
        memcpy(p->bytes, buf[0].base + done, of_head);
    if (size - done > of_head)
        memcpy(p->bytes + of_head, buf[1].base + buf[1].len - (size - done - of_head), size - done - of_head);
    uv_buf_t rest = uv_buf_init((char *)p->bytes, (unsigned)(size - done));
    if (uv_write(&p->request, (uv_stream_t *)&host->socket, &rest, 1, on_sent) != 0)
        rt_free(p); /* the process has gone: its end will tell */
}

/* Straight from the caller's memory, as far as the socket takes it; libuv takes nothing while packets wait,
 * so the order is kept. */
static void send_to_process(rpc_host *host, rpc_kind kind, const uint8_t *body, size_t size)
{
    uint8_t head[RPC_SESSION_HEAD];
    size_t data = kind == RPC_KIND_data ? size : 0;

    for (int i = 0; i < 4; i++) {
        head[i] = (uint8_t)(size >> (8 * i));
        head[4 + i] = (uint8_t)((uint32_t)kind >> (8 * i));
    }
    const uv_buf_t buf[2] = {uv_buf_init((char *)head, sizeof head),
                             uv_buf_init((char *)(uintptr_t)body, (unsigned)size)};
    int done = uv_try_write((uv_stream_t *)&host->socket, buf, size ? 2 : 1);
    if (done == (int)(sizeof head + size))
        note_taken(host, data);
    else
        send_later(host, buf, done > 0 ? (size_t)done : 0, data);
}

/* True also where the question is dropped because the process ends: its client hears of the end instead.
 * `data` has no answer of its own and is bounded by the window. */
bool rpc_host_question(rpc_host *host, rpc_kind kind, const uint8_t *body, size_t size)
{
    if (host->exited || host->why.status != TEC_OK)
        return true; /* the end is on its way */
    if (kind != RPC_KIND_data && host->waiting >= MOST_WAITING)
        return false;
    if (kind != RPC_KIND_data)
        host->asked[(host->first_asked + host->waiting++) % MOST_WAITING] = (uint16_t)kind;
    wind_clock(host);
    send_to_process(host, kind, body, size);
    return true;
}

int64_t rpc_host_waiting(const rpc_host *host)
{
    return host->waiting;
}

rpc_kind rpc_host_asked(const rpc_host *host)
{
    return (rpc_kind)host->asked[host->first_asked];
}

/* ---- the beginning ---- */

/* A pair whose two ends end with their processes. */
static bool make_pair(rpc_host *host, int pair[2], tec_error *err)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 ||
           rt_fail_io(err, host->folder, "make a pair of sockets for this session", errno);
}

/* The buffers take several pieces of data, so that neither process waits for the other at each piece. */
static bool make_socket(rpc_host *host, int *other, tec_error *err)
{
    int pair[2];

    if (!make_pair(host, pair, err))
        return false;
    int size = 1 << 20;
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    uv_pipe_open(&host->socket, pair[0]);
    *other = pair[1];
    return true;
}

/* The environment has nothing of the server's; compilers of drivers keep their files in the folder, whose
 * whole path PoCL wants. */
static int spawn(rpc_host *host, int socket, int watcher)
{
    char words[RPC_SESSION_WORDS][RPC_SESSION_WORD], *argv[RPC_SESSION_WORDS + 2] = {(char *)"rpc_session"};
    char home[sizeof host->folder + 8], tmp[sizeof host->folder + 8], pocl[sizeof host->folder + 16];
    char *environment[] = {(char *)"PATH=/usr/bin:/bin", home, tmp, pocl, (char *)"LC_ALL=C", NULL};
    uv_stdio_container_t stdio[] = {[0] = {.flags = UV_IGNORE},
                                    [RPC_SESSION_SOCKET] = {.flags = UV_INHERIT_FD, .data.fd = socket},
                                    [RPC_SESSION_WATCHER] = {.flags = UV_INHERIT_FD, .data.fd = watcher}};
    int print[2];

    snprintf(home, sizeof home, "HOME=%s", host->folder);
    snprintf(tmp, sizeof tmp, "TMPDIR=%s", host->folder);
    snprintf(pocl, sizeof pocl, "POCL_CACHE_DIR=%s", host->folder);
    if (pipe2(print, O_CLOEXEC) != 0)
        return UV_EMFILE;
    uv_pipe_open(&host->print, print[0]);
    stdio[1] = stdio[2] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = print[1]};
    rpc_session_words(&host->o.session, words, argv);
    const uv_process_options_t o = {.file = host->o.program ? host->o.program : "/proc/self/exe",
                                    .args = argv,
                                    .env = environment,
                                    .cwd = host->folder,
                                    .flags = UV_PROCESS_DETACHED,
                                    .stdio = stdio,
                                    .stdio_count = BASE_COUNT(stdio),
                                    .exit_cb = on_exit_of};
    host->has_process = true;
    host->handles++;
    int rc = uv_spawn(rpc_loop_uv(host->loop), &host->process, &o);
    close(print[1]);
    return rc;
}

/* A process that nobody watches would wait for ever at its first file. */
static void watch_process(rpc_host *host, int socket)
{
    tec_error err = {0};

    host->watch = rpc_watch_start(host->loop, socket,
                                  &(rpc_watch_options){.has_driver = !rpc_is_cpu(host->o.session.device),
                                                       .folder = host->real_folder,
                                                       .pid = host->process.pid,
                                                       .tells = on_watch_tells,
                                                       .ended = on_watch_ended,
                                                       .user = host},
                                  &err);
    if (host->watch)
        host->handles++;
    else
        rpc_host_kill(host, err.status, err.text);
}

/* A process that could not be started ends like one that could: by `ended`. The handles are initialized
 * before anything can fail, so that one way of closing fits all. */
rpc_host *rpc_host_start(rpc_loop *loop, const rpc_host_options *options, tec_error *err)
{
    rpc_host *host = rt_alloc(sizeof *host, err);
    int other = -1;

    if (!host)
        return NULL;
    host->loop = loop;
    host->o = *options;
    host->lock = -1;
    if (!make_folder(host, err)) {
        rmdir(host->folder);
        close_lock(host);
        free(host->real_folder);
        rt_free(host);
        return NULL;
    }
    uv_loop_t *uv = rpc_loop_uv(loop);
    uv_pipe_init(uv, &host->socket, 0);
    uv_pipe_init(uv, &host->print, 0);
    uv_timer_init(uv, &host->clock);
    host->socket.data = host->print.data = host->clock.data = host->process.data = host;
    host->handles = 3;
    host->waiting = 1; /* `opened` or `listed` answers the start */
    int watch[2] = {-1, -1};
    bool made = make_socket(host, &other, &host->why) && make_pair(host, watch, &host->why);
    int rc = made ? spawn(host, other, watch[1]) : UV_EMFILE;
    if (other >= 0)
        close(other);
    if (watch[1] >= 0)
        close(watch[1]);
    if (rc) {
        if (watch[0] >= 0)
            close(watch[0]);
        rt_fail(&host->why, TEC_IO, "a session's process cannot be started: %s", uv_strerror(rc));
        host->exited = true;
        close_all(host);
        return host;
    }
    host->started = true;
    watch_process(host, watch[0]);
    uv_read_start((uv_stream_t *)&host->socket, give_room, on_socket);
    uv_read_start((uv_stream_t *)&host->print, give_print_room, on_print);
    uv_timer_start(&host->clock, on_late, START_SECONDS * 1000, 0);
    return host;
}
