/* tests/rpc/server/questions.c -- a session's process under wild and damaged questions, in this process: what
 * a client with a good key can say to it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/server/inside.h"
#include "tests/rpc/grammar.h"
#include "worker/serve.h"

enum { MOST_QUESTIONS = 12, MEMORY = 64 << 20 };

typedef struct {
    int fd;
    int64_t answers, done; /* frames; those that are no failure */
} listener;

#ifdef __SANITIZE_ADDRESS__
__attribute__((visibility("default"))) const char *__asan_default_options(void);

/* The memory limit of a session; a sanitizer allows no limit of the process. Freed memory is not kept for
 * long: keeping large arrays takes most of the time otherwise. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=64:quarantine_size_mb=8";
}
#endif

static bool read_all(int fd, void *to, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t more = read(fd, (char *)to + got, n - got);

        if (more <= 0)
            return false;
        got += (size_t)more;
    }
    return true;
}

/* Counts the answers: each must be a whole frame of a kind that there is. */
static void *listen_to(void *user)
{
    static uint8_t body[1 << 21];
    listener *l = user;
    uint32_t head[2];

    while (read_all(l->fd, head, sizeof head)) {
        cr_assert(head[0] <= sizeof body && rpc_find_message(head[1]), "an answer of kind %u", head[1]);
        if (!read_all(l->fd, body, head[0]))
            break;
        l->answers++;
        l->done += head[1] != RPC_KIND_failure;
    }
    return NULL;
}

static void put_question(uint64_t *seed, rt_bytes *out, const rpc_message *m, int version)
{
    rt_bytes body = {0};
    uint32_t head[2];

    fuzz_body(seed, &body, m->record, version);
    if (fuzz_below(seed, 3) == 0)
        fuzz_damage(seed, &body);
    head[0] = (uint32_t)body.n;
    head[1] = fuzz_below(seed, 200) ? (uint32_t)m->kind : (uint32_t)fuzz_below(seed, 200);
    rt_bytes_add(out, head, sizeof head);
    rt_bytes_add(out, body.data, body.n);
    rt_bytes_free(&body);
}

/* A session that gets some questions, of which the first makes an array, so that handles are of something. */
static listener run(uint64_t *seed, tec_device *device)
{
    rpc_session s = {.o = {.device = "cpu:0",
                           .memory_bytes = MEMORY,
                           .seconds = 0.01,
                           .version = 1 + (int)fuzz_below(seed, RPC_NEWEST),
                           .piece = 4096},
                     .device = device,
                     .is_cpu = true};
    int64_t shape[] = {4};
    rpc_allocate first = {kDLInt, 32, {shape, 1}};
    rt_bytes out = {0}, body = {0};
    int ends[2];
    pthread_t thread;

    rpc_encode(&body, RPC_KIND_allocate, &first, s.o.version);
    rt_bytes_add(&out, &(uint32_t[]){(uint32_t)body.n, RPC_KIND_allocate}, 8);
    rt_bytes_add(&out, body.data, body.n);
    rt_bytes_free(&body);
    for (int64_t i = fuzz_below(seed, MOST_QUESTIONS); i > 0; i--) {
        const rpc_message *m = fuzz_kind(seed, RPC_FROM_CLIENT);

        if (m->place == RPC_ON_SESSION)
            put_question(seed, &out, m, s.o.version);
    }
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    s.socket = ends[1];
    listener l = {.fd = ends[0]};
    cr_assert_eq(pthread_create(&thread, NULL, listen_to, &l), 0);
    cr_assert_eq(send(ends[0], out.data, out.n, MSG_NOSIGNAL), (ssize_t)out.n);
    shutdown(ends[0], SHUT_WR);
    rpc_serve_questions(&s);
    rpc_free_things(&s);
    rpc_forget_functions(&s, 0);
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    rt_free(s.body.data);
    rt_bytes_free(&out);
    return l;
}

Test(rpc_questions, are_answered_whatever_they_are)
{
    uint64_t seed = fuzz_seed();
    int64_t executions = fuzz_executions(3000), answers = 0, done = 0;
    tec_error err = {0};
    tec_device *device = tec_device_open("cpu:0", &err);

    cr_assert(device, "%s", err.text);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    worker_limit_memory(MEMORY * 4);
#endif
    for (int64_t i = 0; i < executions; i++) {
        listener l = run(&seed, device);

        answers += l.answers;
        done += l.done;
    }
    printf("questions: %lld executions, %lld answers, %lld of them without a failure\n",
           (long long)executions, (long long)answers, (long long)done);
    cr_assert_gt(answers, executions);
    cr_assert_geq(10 * done, 3 * answers);
    tec_device_free(device);
}
