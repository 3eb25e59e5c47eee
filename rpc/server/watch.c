/* rpc/server/watch.c -- see watch.h.
 *
 * The listener comes over a socket of its own, as the first and only message: the session sends it before
 * anything foreign runs, and closes the socket.
 */
#define _GNU_SOURCE /* process_vm_readv, O_PATH */
#include "rpc/server/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

#include "rpc/server/filter.h"
#include "rpc/server/sandbox.h"
#include "runtime/alloc.h"

enum { MOST_TOLD = 100, PATH = RPC_WATCH_PATH };

struct rpc_watch {
    rpc_watch_options o;
    uv_loop_t *loop;
    uv_poll_t door, calls; /* the socket that the listener comes over; the listener */
    int socket, listener;  /* -1: not open */
    int handles;           /* that are not closed */
    int told;
    bool blind; /* the server may not read the session's memory, and has said so */
    bool ending;
};

/* ---- handing the listener over ---- */

typedef union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr head; /* for the alignment */
} one_file;

/* One byte, as a message without any is none, with the file as its rights. */
bool rpc_watch_hand_over(int socket, int listener)
{
    one_file room = {{0}};
    struct iovec byte = {(char[]){0}, 1};
    struct msghdr message = {
        .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    bool good = false;

    if (listener >= 0) {
        *head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof listener), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &listener, sizeof listener);
        good = sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
        close(listener);
    }
    close(socket);
    return good;
}

/* -1: none came. */
static int take_listener(int socket)
{
    one_file room = {{0}};
    struct iovec byte = {(char[1]){0}, 1};
    struct msghdr message = {
        .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    int listener = -1;

    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof listener))
        memcpy(&listener, CMSG_DATA(head), sizeof listener);
    return listener;
}

/* ---- paths ---- */

/* Many systems have /lib as a link to usr/lib, and libraries name their files from there: /lib/x/../../share
 * is /usr/share. Links of other places are taken for folders. */
static void follow_lib(char path[PATH])
{
    char link[32];

    if (strcmp(path, "/lib") != 0 && strcmp(path, "/lib64") != 0)
        return;
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n <= 0 || link[0] == '/' || link[0] == '.')
        return;
    snprintf(path, PATH, "/%.*s", (int)n, link);
}

/* Appends a part of a path to `to`, which has no slash at its end; ".." takes the last part away. */
static bool append_part(char to[PATH], const char *part, size_t n)
{
    size_t have = strlen(to);

    if (n == 0 || (n == 1 && part[0] == '.'))
        return true;
    if (n == 2 && part[0] == '.' && part[1] == '.') {
        char *last = strrchr(to, '/');
        if (last)
            *last = '\0';
        return true;
    }
    if (have + 1 + n >= PATH)
        return false;
    to[have] = '/';
    memcpy(to + have + 1, part, n);
    to[have + 1 + n] = '\0';
    follow_lib(to);
    return true;
}

static bool append_path(char to[PATH], const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");

        if (!append_part(to, path, n))
            return false;
        path += n + (path[n] == '/');
    }
    return true;
}

/* A process finds its own files below /proc under several names; they become that of the list. An example for
 * process 12: /proc/12/maps and /proc/thread-self/maps become /proc/self/maps. */
static void name_self(char path[PATH], long pid)
{
    char names[2][40], rest[PATH];

    snprintf(names[0], sizeof names[0], "/proc/%ld", pid);
    snprintf(names[1], sizeof names[1], "/proc/thread-self");
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(names[i]);

        if (strncmp(path, names[i], n) == 0 && (path[n] == '/' || !path[n])) {
            snprintf(rest, sizeof rest, "%s", path + n);
            snprintf(path, PATH, "/proc/self%.*s", PATH - 12, rest);
            return;
        }
    }
}

/* A path from the root replaces the folder. */
bool rpc_watch_path(long pid, long thread, int from, const char *path, char to[PATH])
{
    char link[64], base[PATH];
    ssize_t n = 0;

    to[0] = '\0';
    if (path[0] != '/') {
        if (from == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/%ld/cwd", thread);
        else
            snprintf(link, sizeof link, "/proc/%ld/fd/%d", thread, from);
        n = readlink(link, base, sizeof base - 1);
        if (n <= 0 || base[0] != '/')
            return false;
        base[n] = '\0';
    }
    bool good = (n == 0 || append_path(to, base)) && append_path(to, path);
    name_self(to, pid);
    return good;
}

/* A text of the process's memory, which may end at the end of what is mapped. False, and `errno`: it cannot
 * be read. */
static bool read_text(long thread, uint64_t address, char to[PATH])
{
    size_t got = 0;

    while (got < PATH) { /* by pages, as the next one may not be there */
        size_t room = 4096 - (address + got) % 4096;
        const struct iovec here = {to + got, room < PATH - got ? room : PATH - got},
                           there = {(void *)(uintptr_t)(address + got), here.iov_len};
        ssize_t n = process_vm_readv((pid_t)thread, &here, 1, &there, 1, 0);

        if (n <= 0)
            return false;
        if (memchr(to + got, '\0', (size_t)n))
            return true;
        got += (size_t)n;
    }
    return false;
}

/* ---- what is told ---- */

/* What a module names may be anything, and as often as it likes: a log line is plain text, and a session has
 * a bounded number of them. */
static void tell(rpc_watch *watch, const char *what, const char *name)
{
    char text[400];

    if (watch->told++ >= MOST_TOLD)
        return;
    snprintf(text, sizeof text, "tried %s '%.200s', which it may not%s", what, name,
             watch->told == MOST_TOLD ? " (what more it tries is not logged)" : "");
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    watch->o.tells(watch->o.user, text);
}

/* Where the server lacks the right to trace the session, as root in some containers. */
static void tell_blind(rpc_watch *watch)
{
    if (!watch->blind)
        watch->o.tells(watch->o.user, "opens files whose names the server may not read");
    watch->blind = true;
}

/* A path that cannot be read is none for the kernel either. */
static void look_at_path(rpc_watch *watch, const struct seccomp_notif *n)
{
    const __u64 *argument = n->data.args;
    bool at = n->data.nr == __NR_openat;
    int flags = (int)argument[at ? 2 : 1];
    char path[PATH], full[PATH];

    if (flags & O_PATH) /* which opens nothing */
        return;
    if (!read_text(n->pid, argument[at ? 1 : 0], path)) {
        if (errno == EPERM)
            tell_blind(watch);
        return;
    }
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
    if (rpc_watch_path(watch->o.pid, n->pid, at ? (int)argument[0] : AT_FDCWD, path, full) &&
        !rpc_sandbox_lists(watch->o.has_driver, watch->o.folder, full, writes))
        tell(watch, writes ? "to write" : "to open", full);
}

/* ---- the life of a watch ---- */

static void end(rpc_watch *watch)
{
    watch->o.ended(watch->o.user);
    rt_free(watch);
}

static void on_closed(uv_handle_t *handle)
{
    rpc_watch *watch = handle->data;

    if (--watch->handles == 0 && watch->ending)
        end(watch);
}

/* libuv must not poll a file that is closed already. */
static void stop(uv_poll_t *poll, int *file)
{
    if (*file < 0)
        return;
    uv_close((uv_handle_t *)poll, on_closed);
    close(*file);
    *file = -1;
}

static bool start(rpc_watch *watch, uv_poll_t *poll, int file, uv_poll_cb ready)
{
    if (uv_poll_init(watch->loop, poll, file) != 0)
        return false;
    poll->data = watch;
    watch->handles++;
    uv_poll_start(poll, UV_READABLE, ready);
    return true;
}

/* One call that waits for its answer; others are reported again. */
static void on_call(uv_poll_t *poll, int status, int events)
{
    rpc_watch *watch = poll->data;
    struct seccomp_notif call = {0};

    (void)events;
    if (status < 0 || ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
        if (status < 0 || (errno != ENOENT && errno != EINTR))
            stop(poll, &watch->listener);
        return; /* ENOENT: the thread has died meanwhile */
    }
    struct seccomp_notif_resp answer = {.id = call.id};
    if (rpc_filter_opens(call.data.nr)) {
        look_at_path(watch, &call);
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else {
        const char *name = rpc_filter_name(call.data.nr);

        tell(watch, "the system call", name ? name : "?");
        answer.error = -EPERM;
    }
    ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* The end of the socket without a listener: the system of the session asks nobody. */
static void on_door(uv_poll_t *poll, int status, int events)
{
    rpc_watch *watch = poll->data;
    int listener = status < 0 ? -1 : take_listener(watch->socket);

    (void)events;
    if (listener >= 0 && start(watch, &watch->calls, listener, on_call))
        watch->listener = listener;
    else if (listener >= 0)
        close(listener);
    stop(poll, &watch->socket);
}

rpc_watch *rpc_watch_start(rpc_loop *loop, int socket, const rpc_watch_options *options, tec_error *err)
{
    rpc_watch *watch = rt_alloc(sizeof *watch, err);

    if (watch) {
        *watch = (rpc_watch){.o = *options, .loop = rpc_loop_uv(loop), .socket = socket, .listener = -1};
        if (start(watch, &watch->door, socket, on_door))
            return watch;
        rt_fail(err, TEC_NO_MEMORY, "out of memory");
        rt_free(watch);
    }
    close(socket);
    return NULL;
}

void rpc_watch_end(rpc_watch *watch)
{
    watch->ending = true;
    stop(&watch->door, &watch->socket);
    stop(&watch->calls, &watch->listener);
    if (watch->handles == 0)
        end(watch);
}
