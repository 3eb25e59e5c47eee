/* tests/chaos/proxy.h -- a process between clients and one server, which passes bytes on until it is told to
 * harm them.
 *
 *     proxy p = proxy_start();                  // p.port: where clients connect
 *     p.shared->target = 9190;                  // the server's port, which may change
 *     p.shared->fault = PROXY_FLIP;             // the next piece of a client is harmed so
 *     proxy_stop(&p);
 */
#ifndef TESTS_CHAOS_PROXY_H
#define TESTS_CHAOS_PROXY_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef enum { PROXY_PASS, PROXY_CUT, PROXY_DELAY, PROXY_TRUNCATE, PROXY_FLIP } proxy_fault;

enum { PROXY_MOST = 32, PROXY_LEAST = 64, PROXY_DELAY_MS = 300 };

typedef struct {
    volatile int target, fault, hits, trial; /* trial: whose fault it is */
    volatile int least;                      /* bytes of a piece that is worth harming */
    volatile int again;                      /* the fault of every piece behind the next one */
    volatile int cut;                        /* whether all connections are cut: see proxy_cut_all */
} proxy_shared;

typedef struct {
    pid_t pid;
    int port;
    proxy_shared *shared;
} proxy;

/* A port of loopback that nobody listens at now. */
static inline int proxy_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

static inline int proxy_dial(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Passes a piece on, harmed if that is asked; false: the connection is to be cut. */
static inline bool proxy_pass(proxy_shared *s, int to, uint8_t *data, ssize_t n, bool of_client)
{
    int fault = of_client && n >= s->least ? s->fault : PROXY_PASS;

    if (fault != PROXY_PASS) {
        s->fault = s->again;
        s->hits++;
    }
    if (fault == PROXY_CUT)
        return false;
    if (fault == PROXY_DELAY)
        nanosleep(&(struct timespec){.tv_nsec = PROXY_DELAY_MS * 1000000L}, NULL);
    if (fault == PROXY_FLIP)
        data[n / 2] ^= 1;
    if (fault == PROXY_TRUNCATE)
        n /= 2;
    for (ssize_t sent = 0, done; sent < n; sent += done)
        if ((done = send(to, data + sent, (size_t)(n - sent), MSG_NOSIGNAL)) < 0)
            return false;
    return fault != PROXY_TRUNCATE;
}

static inline void proxy_close_pair(struct pollfd *p)
{
    close(p[0].fd);
    close(p[1].fd);
    p[0].fd = p[1].fd = -1;
    p[0].revents = p[1].revents = 0;
}

/* The process: pairs[2 i] is a client's socket, pairs[2 i + 1] the one to the server. */
static inline void proxy_main(int listener, proxy_shared *s)
{
    static uint8_t data[1 << 16];
    struct pollfd p[2 * PROXY_MOST + 1];

    for (int i = 0; i < 2 * PROXY_MOST; i++)
        p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    p[2 * PROXY_MOST] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        poll(p, 2 * PROXY_MOST + 1, -1);
        for (int i = 0; i < 2 * PROXY_MOST; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            ssize_t n = recv(p[i].fd, data, sizeof data, 0);
            if (n > 0 && proxy_pass(s, p[i ^ 1].fd, data, n, i % 2 == 0))
                continue;
            proxy_close_pair(&p[i & ~1]);
        }
        for (int i = 0; i < 2 * PROXY_MOST && s->cut; i += 2)
            if (p[i].fd >= 0)
                proxy_close_pair(&p[i]);
        s->cut = 0;
        if (!p[2 * PROXY_MOST].revents)
            continue;
        int client = accept(listener, NULL, NULL), server = proxy_dial(s->target), i = 0;
        while (i < 2 * PROXY_MOST && p[i].fd >= 0)
            i += 2;
        if (server < 0 || i == 2 * PROXY_MOST) {
            close(client);
            close(server);
            continue;
        }
        p[i].fd = client;
        p[i + 1].fd = server;
    }
}

static inline proxy proxy_start(void)
{
    proxy p = {.shared =
                   mmap(NULL, sizeof *p.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 64) == 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    p.port = ntohs(at.sin_port);
    p.shared->least = PROXY_LEAST;
    p.pid = fork();
    if (p.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        proxy_main(listener, p.shared);
    }
    close(listener);
    return p;
}

/* Returns when it is done. A connection of its own wakes the proxy. */
static inline void proxy_cut_all(proxy *p)
{
    p->shared->cut = 1;
    close(proxy_dial(p->port));
    while (p->shared->cut)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static inline void proxy_stop(proxy *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    munmap(p->shared, sizeof *p->shared);
}

#endif
