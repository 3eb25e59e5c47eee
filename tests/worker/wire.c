/* tests/worker/wire.c -- messages between processes: what goes in comes out, and what is hostile, late or cut
 * off is seen. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/alloc.h"
#include "worker/protocol.h"

static int fd[2];

static void open_pair(void)
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}
static void close_pair(void)
{
    close(fd[0]);
    close(fd[1]);
}
TestSuite(wire, .init = open_pair, .fini = close_pair);

static double soon(void)
{
    return tec_clock() + 0.05;
}

/* ---- fields ---- */

Test(wire, fields_come_back)
{
    rt_bytes b = {0};
    size_t n;

    worker_put_i64(&b, -5);
    worker_put_f64(&b, 0.1);
    worker_put_text(&b, "C[y, x]");
    worker_put_text(&b, NULL);
    worker_put_bytes(&b, "\0\1\2", 3);
    worker_reader r = worker_read(b.data, b.n);
    cr_assert_eq(worker_get_i64(&r), -5);
    cr_assert_eq(worker_get_f64(&r), 0.1);
    cr_assert_str_eq(worker_get_text(&r), "C[y, x]");
    cr_assert_str_eq(worker_get_text(&r), "");
    cr_assert_eq(memcmp(worker_get_bytes(&r, &n), "\0\1\2", 3), 0);
    cr_assert(n == 3 && worker_read_all(&r));
    rt_bytes_free(&b);
}

/* Every beginning of a message is refused, and reads as zeros behind its end. */
Test(wire, what_is_cut_off_is_no_message)
{
    double costs[] = {1, 2, 3}, room[WORKER_MODULES * WORKER_MAX_COSTS];
    worker_answer a = {.stage = "run", .kind = "error", .error = "no", .n_costs = 3, .costs = {costs, costs}},
                  got;
    rt_bytes b = {0};

    worker_put_answer(&b, &a);
    for (size_t n = 0; n <= b.n; n++) {
        char *part = memcpy(malloc(n ? n : 1), b.data, n);
        worker_reader r = worker_read(part, n);

        cr_assert_eq(worker_get_answer(&r, &got, room), n == b.n, "%zu of %zu bytes", n, b.n);
        free(part);
    }
    rt_bytes_free(&b);
}

/* One byte changed at random: read without harm, whatever it says. */
Test(wire, damaged_messages_do_no_harm)
{
    worker_dim dims[RT_MAX_SYMBOLS], d = {"n", 8};
    worker_job j = {.dims = &d,
                    .n_dims = 1,
                    .repeats = 5,
                    .threads = 1,
                    .n_modules = 2,
                    .modules = {{"abc", 3}, {"defg", 4}}},
               got;
    uint64_t seed = 7;
    rt_bytes b = {0};

    worker_put_job(&b, &j);
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)base_random_below(&seed, (int64_t)b.n);
        uint8_t was = b.data[at];
        worker_reader r = worker_read(b.data, b.n);

        b.data[at] = (uint8_t)base_random(&seed);
        if (worker_get_job(&r, &got, dims))
            for (int k = 0; k < got.n_modules; k++)
                cr_assert((const uint8_t *)got.modules[k].data + got.modules[k].size <= b.data + b.n);
        b.data[at] = was;
    }
    rt_bytes_free(&b);
}

Test(wire, jobs_come_back)
{
    worker_dim dims[RT_MAX_SYMBOLS], d[2] = {{"n", 8}, {"m", -1}};
    worker_job j = {.arguments = ~0ull,
                    .seed = 3,
                    .dims = d,
                    .n_dims = 2,
                    .check = true,
                    .threads = 2,
                    .min_seconds = 0.02,
                    .warm_up = 1,
                    .cool_down = 2,
                    .repeats = 5,
                    .flush_bytes = 64,
                    .cold = 5,
                    .cold_bytes = 4096,
                    .memory_limit = 1 << 20,
                    .n_modules = 1,
                    .modules = {{"abc", 3}}};
    worker_job got;
    rt_bytes b = {0};

    worker_put_job(&b, &j);
    worker_reader r = worker_read(b.data, b.n);
    cr_assert(worker_get_job(&r, &got, dims));
    cr_assert(got.arguments == j.arguments && got.seed == 3 && got.n_dims == 2 && got.check &&
              got.threads == 2 && got.min_seconds == 0.02);
    cr_assert(got.warm_up == 1 && got.cool_down == 2 && got.repeats == 5 && got.flush_bytes == 64 &&
              got.cold == 5 && got.cold_bytes == 4096 && got.memory_limit == 1 << 20);
    cr_assert(strcmp(dims[1].name, "m") == 0 && dims[1].value == -1 && got.modules[0].size == 3 &&
              memcmp(got.modules[0].data, "abc", 3) == 0);
    rt_bytes_free(&b);
}

/* ---- frames ---- */

static void *send_slowly(void *text)
{
    rt_bytes b = {0};

    worker_put_text(&b, text);
    worker_send(fd[0], 9, &b, WORKER_NO_DEADLINE);
    rt_bytes_free(&b);
    return NULL;
}

/* Larger than a socket holds at once. */
Test(wire, a_long_frame_arrives_whole)
{
    enum { SIZE = 5 << 20 };
    char *text = memset(malloc(SIZE), 'x', SIZE);
    rt_bytes b = {0};
    pthread_t sender;
    uint32_t kind;

    text[SIZE - 1] = '\0';
    pthread_create(&sender, NULL, send_slowly, text);
    cr_assert_eq(worker_receive(fd[1], &kind, &b, 2 * SIZE, tec_clock() + 60), WORKER_DONE);
    pthread_join(sender, NULL);
    worker_reader r = worker_read(b.data, b.n);
    cr_assert(kind == 9 && strcmp(worker_get_text(&r), text) == 0);
    rt_bytes_free(&b);
    free(text);
}

Test(wire, what_does_not_come_is_late)
{
    rt_bytes b = {0};
    uint32_t kind;

    cr_assert_eq(worker_receive(fd[1], &kind, &b, 100, soon()), WORKER_LATE);
    cr_assert_eq(write(fd[0], "tec1\1\0\0\0\5\0\0\0\0\0\0\0ab", 18), 18);
    cr_assert_eq(worker_receive(fd[1], &kind, &b, 100, soon()), WORKER_LATE);
    cr_assert_null(b.data);
}

Test(wire, what_nobody_reads_is_late)
{
    rt_bytes b = {0};
    char *zeros = calloc(1, 8 << 20);

    rt_bytes_add(&b, zeros, 8 << 20);
    cr_assert_eq(worker_send(fd[0], 1, &b, soon()), WORKER_LATE);
    rt_bytes_free(&b);
    free(zeros);
}

Test(wire, an_end_in_the_middle_is_seen)
{
    rt_bytes b = {0};
    uint32_t kind;

    cr_assert_eq(write(fd[0], "tec1\1\0\0\0\5\0\0\0\0\0\0\0ab", 18), 18);
    shutdown(fd[0], SHUT_WR);
    cr_assert_eq(worker_receive(fd[1], &kind, &b, 100, WORKER_NO_DEADLINE), WORKER_CLOSED);
    close(fd[1]);
    cr_assert_eq(worker_send(fd[0], 1, &b, WORKER_NO_DEADLINE), WORKER_CLOSED);
    fd[1] = dup(fd[0]);
}

Test(wire, babble_and_length_without_end_are_refused)
{
    rt_bytes b = {0};
    uint32_t kind;

    cr_assert_eq(write(fd[0], "Hello, I am a program that prints things.", 41), 41);
    cr_assert_eq(worker_receive(fd[1], &kind, &b, 100, soon()), WORKER_GARBLED);
    close_pair();
    open_pair();
    cr_assert_eq(write(fd[0], "tec1\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f", 16), 16);
    cr_assert_eq(worker_receive(fd[1], &kind, &b, 100, soon()), WORKER_GARBLED);
}

Test(wire, memory_that_is_not_there_is_a_state)
{
    rt_bytes b = {0};
    uint32_t kind;

    cr_assert_eq(write(fd[0], "tec1\1\0\0\0\5\0\0\0\0\0\0\0abcde", 21), 21);
    rt_alloc_fail_at(1);
    cr_assert_eq(worker_receive(fd[1], &kind, &b, 100, soon()), WORKER_NO_MEMORY);
    b.failed = true;
    cr_assert_eq(worker_send(fd[0], 1, &b, soon()), WORKER_NO_MEMORY);
}
