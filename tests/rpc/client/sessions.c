/* tests/rpc/client/sessions.c -- sessions on a server over loopback: what they do, and how they end. */
#include <pthread.h>
#include <time.h>

#include "rpc/client/inside.h"
#include "tests/rpc/client/kit.h"
#include "worker/health.h"

#define PLAIN ((const char *[]){NULL})

Test(sessions, call_a_function_and_give_its_result)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];

    cr_assert(kit_call(&f, s, "sum", "ab", y), "%s", f.err.text);
    cr_assert(y[0] == 'a' + 'b' && y[1] == 'a' + 'b' + 1);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(sessions, measure_a_function_on_the_device)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];
    tec_timing t;

    cr_assert(kit_call(&f, s, "sum", "ab", y), "%s", f.err.text);
    const tec_rpc_call_options o = {.module = 1, .function = "sum", .arrays = (int64_t[]){2, 3}, .n = 2};
    cr_assert(tec_rpc_time(s, &o, &(tec_time_options){.min_seconds = 0.001, .repeats = 5}, &t, &f.err), "%s",
              f.err.text);
    cr_assert(t.repeats >= 5 && t.min_s > 0 && t.min_s <= t.median_s);
    cr_assert_not(tec_rpc_time(s, &o, &(tec_time_options){.min_seconds = 1e9}, &t, &f.err));
    cr_assert(strstr(f.err.text, "cannot measure for 1e+09 seconds"), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(sessions, move_arrays_that_are_longer_than_a_window)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int64_t n = 3000001;
    tec_array *from = tec_array_new((DLDataType){kDLInt, 32, 1}, 1, &n, NULL),
              *to = tec_array_new((DLDataType){kDLInt, 32, 1}, 1, &n, NULL);
    int32_t *x = tec_array_data(from);

    for (int64_t i = 0; i < n; i++)
        x[i] = (int32_t)(i * 7);
    int64_t a = tec_rpc_array(s, (DLDataType){kDLInt, 32, 1}, 1, &n, &f.err);
    cr_assert(tec_rpc_write(s, a, tec_array_tensor(from), &f.err), "%s", f.err.text);
    cr_assert(tec_rpc_read(s, a, tec_array_tensor(to), &f.err), "%s", f.err.text);
    cr_assert(memcmp(x, tec_array_data(to), (size_t)n * 4) == 0);
    tec_array_free(from);
    tec_array_free(to);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* A module that goes ahead is sent while a call is answered: nothing of it is left when the answer is there.
 * Other questions, also before it is asked for, do not disturb it. */
Test(sessions, upload_a_module_while_a_function_runs)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];

    cr_assert(kit_call(&f, s, "nap", "x", y), "%s", f.err.text);
    const tec_rpc_call_options nap = {.module = 1, .function = "nap", .arrays = (int64_t[]){2, 3}, .n = 2};
    cr_assert(tec_rpc_upload_ahead(s, "next", f.module.data, f.module.n, &f.err), "%s", f.err.text);
    cr_assert_eq(s->ahead.left, f.module.n);
    cr_assert_not(tec_rpc_upload_ahead(s, "third", f.module.data, f.module.n, &f.err));
    cr_assert_str_eq(f.err.text, "the module 'next' is uploaded ahead already");
    f.err = (tec_error){0};
    cr_assert(tec_rpc_call(s, &nap, NULL, &f.err), "%s", f.err.text);
    cr_assert_eq(s->ahead.left, 0, "%zu bytes were not sent while the function ran", s->ahead.left);
    int64_t array = tec_rpc_array(s, (DLDataType){kDLInt, 32, 1}, 0, NULL, &f.err),
            module = tec_rpc_uploaded(s, &f.err);
    cr_assert(array && module && array != module, "%s", f.err.text);
    tec_rpc_call_options sum = nap;
    sum.module = module;
    sum.function = "sum";
    cr_assert(tec_rpc_call(s, &sum, NULL, &f.err), "%s", f.err.text);
    cr_assert_eq(tec_rpc_uploaded(s, &f.err), 0);
    cr_assert_str_eq(f.err.text, "no module is uploaded ahead");
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* More than a window goes ahead as far as the window; what is no module is said when it is asked for, and the
 * session goes on. One that nothing was asked after is uploaded when it is asked for. */
Test(sessions, upload_ahead_what_is_long_or_no_module)
{
    enum { LONG = 5 << 20 };
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    uint8_t *junk = rt_alloc(LONG, NULL);
    int32_t y[2];

    cr_assert(kit_call(&f, s, "nap", "x", y), "%s", f.err.text);
    const tec_rpc_call_options nap = {.module = 1, .function = "nap", .arrays = (int64_t[]){2, 3}, .n = 2};
    cr_assert(tec_rpc_upload_ahead(s, "junk", junk, LONG, &f.err), "%s", f.err.text);
    cr_assert(tec_rpc_call(s, &nap, NULL, &f.err), "%s", f.err.text);
    cr_assert(s->ahead.left > 0 && s->ahead.left < LONG, "%zu bytes are left", s->ahead.left);
    cr_assert(tec_rpc_call(s, &nap, NULL, &f.err), "%s", f.err.text);
    cr_assert_eq(tec_rpc_uploaded(s, &f.err), 0);
    cr_assert(strstr(f.err.text, "not a module"), "%s", f.err.text);
    f.err = (tec_error){0};
    cr_assert(tec_rpc_upload_ahead(s, "again", f.module.data, f.module.n, &f.err), "%s", f.err.text);
    cr_assert(tec_rpc_uploaded(s, &f.err), "%s", f.err.text);
    cr_assert(tec_rpc_upload_ahead(s, "never", junk, LONG, &f.err), "%s", f.err.text);
    cr_assert(tec_rpc_call(s, &nap, NULL, &f.err), "%s", f.err.text);
    tec_rpc_close(s);
    rt_free(junk);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* One kernel that ends its session: the cause comes back, and the server has another session for the next. */
static void end_by(const char *kernel, const char *const *options, tec_status status, const char *text)
{
    fixture f = kit_start(options);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];

    cr_assert_not(kit_call(&f, s, kernel, "x", y));
    cr_assert_eq(f.err.status, status, "%s", f.err.text);
    cr_assert(strstr(f.err.text, text), "%s", f.err.text);
    tec_error again = {0};
    cr_assert_eq(tec_rpc_array(s, (DLDataType){kDLInt, 32, 1}, 0, NULL, &again), 0);
    cr_assert_eq(again.status, status, "%s", again.text);
    tec_rpc_close(s);
    s = kit_open(&f, c);
    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* A sanitizer takes the signal of a crash for itself, and more memory than a limit allows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

Test(sessions, that_crash_are_reported_with_their_signal, .disabled = SANITIZED)
{
    end_by("crash", PLAIN, TEC_CRASHED, "signal 11");
}

Test(sessions, that_end_by_themselves_are_reported_with_their_status)
{
    end_by("leave", PLAIN, TEC_CRASHED, "status 7");
}

Test(sessions, that_hang_are_ended_when_their_time_is_up)
{
    end_by("hang", (const char *[]){"--seconds", "0.3", NULL}, TEC_TIMEOUT, "longer than the 0.3 s");
}

/* Each request of this session ends in time; a thread goes on behind it. A session that waits in peace beside
 * it goes on too. */
Test(sessions, that_compute_between_requests_are_ended)
{
    fixture f = kit_start((const char *[]){"--seconds", "0.3", NULL});
    tec_rpc *c = kit_connect(&f), *d = kit_connect(&f);
    tec_rpc_session *quiet = kit_open(&f, c), *s = kit_open(&f, d);
    int32_t y[2];

    cr_assert(kit_call(&f, quiet, "sum", "x", y), "%s", f.err.text);
    cr_assert(kit_call(&f, s, "linger", "x", y), "%s", f.err.text);
    cr_assert(kit_logged(&f, "session 2: over after"));
    cr_assert(kit_has_logged(&f, "this session computed for more than 0.3 s between two requests"));
    cr_assert_not(kit_call(&f, s, "sum", "x", y));
    cr_assert_eq(f.err.status, TEC_TIMEOUT, "%s", f.err.text);
    cr_assert(kit_call(&f, quiet, "sum", "x", y), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_close(quiet);
    tec_rpc_disconnect(d);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(sessions, that_print_without_end_are_ended)
{
    end_by("flood", PLAIN, TEC_CRASHED, "printed more than 1048576 bytes");
}

Test(sessions, that_abort_are_reported_with_their_last_words)
{
    end_by("murmur", PLAIN, TEC_CRASHED, "these are its last words");
}

Test(sessions, that_send_no_answers_are_ended)
{
    end_by("lie", PLAIN, TEC_CRASHED, "sent what is no answer");
}

Test(sessions, get_no_more_memory_than_their_limit, .disabled = SANITIZED)
{
    fixture f = kit_start((const char *[]){"--memory", "64", NULL});
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2] = {0};
    int64_t n = 1 << 27;

    /* memory that the limit does not count is not to be had, or bounded by the limit of addresses */
    cr_assert(kit_call(&f, s, "eat", "shared", y), "%s", f.err.text);
    cr_assert_eq(y[0], 0, "%d MiB of shared maps", y[0]);
    cr_assert(kit_call(&f, s, "eat", "downwards", y), "%s", f.err.text);
    cr_assert_eq(y[0], 0, "%d MiB of maps that grow downwards", y[0]);
    cr_assert(kit_call(&f, s, "eat", "malloc", y), "%s", f.err.text);
    cr_assert(y[0] > 0 && y[0] <= 64, "%d MiB", y[0]);
    cr_assert_eq(tec_rpc_array(s, (DLDataType){kDLInt, 8, 1}, 1, &n, &f.err), 0);
    cr_assert_eq(f.err.status, TEC_NO_MEMORY, "%s", f.err.text);
    cr_assert(kit_logged(&f, "session 1: 'allocate' failed: "));
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

/* A map that becomes read-only leaves the count of RLIMIT_DATA. */
Test(sessions, get_no_more_addresses_than_their_limit)
{
    fixture f = kit_start((const char *[]){"--memory", "64", NULL});
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2] = {0};

    cr_assert(kit_call(&f, s, "eat", "read-only", y), "%s", f.err.text);
    cr_assert(y[0] > 64 && y[0] <= 2 * 64 + 1024, "%d MiB", y[0]);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

static void *cancel_later(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    tec_rpc_cancel(user);
    return NULL;
}

Test(sessions, are_cancelled_from_another_thread)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    pthread_t other;
    int32_t y[2];

    pthread_create(&other, NULL, cancel_later, c);
    cr_assert_not(kit_call(&f, s, "hang", "x", y));
    pthread_join(other, NULL);
    cr_assert_eq(f.err.status, TEC_CANCELLED, "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    c = kit_connect(&f);
    s = kit_open(&f, c);
    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(sessions, end_at_the_deadline_of_the_client)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];

    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    tec_rpc_set_deadline(c, 0.3);
    cr_assert_not(kit_call(&f, s, "hang", "x", y));
    cr_assert_eq(f.err.status, TEC_TIMEOUT, "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(sessions, are_refused_beyond_their_number)
{
    fixture f = kit_start((const char *[]){"--sessions", "1", NULL});
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);

    cr_assert_null(tec_rpc_open(c, NULL, &f.err));
    cr_assert_eq(f.err.status, TEC_REFUSED, "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(server, lists_its_devices)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);

    for (int i = 0; i < 2; i++) {
        const tec_rpc_offer *o = tec_rpc_list(c, i > 0, &f.err);

        cr_assert(o, "%s", f.err.text);
        cr_assert(o->n_devices >= 1 && strcmp(o->devices[0].name, "cpu:0") == 0);
        cr_assert(o->most_sessions == 4 && strstr(o->target, KIT_ARCH));
        int64_t caches[WORKER_N_CACHES];
        worker_caches(caches); /* the process that looks for devices is in a sandbox, and may read them */
        for (int k = 0; k < WORKER_N_CACHES; k++)
            cr_assert_eq(o->devices[0].caches[k], caches[k], "cache %d", k);
    }
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}

Test(server, ends_with_its_first_client_when_told_so)
{
    fixture f = kit_start((const char *[]){"--once", NULL});
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);

    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_end(&f), 0);
}

Test(server, drains_before_it_ends)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);
    int32_t y[2];

    kill(f.pid, SIGTERM);
    cr_assert(kit_logged(&f, "draining"));
    cr_assert(kit_call(&f, s, "sum", "x", y), "%s", f.err.text);
    cr_assert_null(tec_rpc_open(c, NULL, &f.err));
    cr_assert(strstr(f.err.text, "takes no more sessions"), "%s", f.err.text);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_end(&f), 0); /* it ends by itself, as nobody is left */
}

/* A server that neither answers nor calls is gone, long before the deadline of a call that may take long. */
Test(sessions, notice_a_server_that_is_frozen)
{
    fixture f = kit_start(PLAIN);
    tec_rpc *c = kit_connect(&f);
    tec_rpc_session *s = kit_open(&f, c);

    tec_rpc_set_deadline(c, 600);
    c->silence = 0.5;
    kill(f.pid, SIGSTOP);
    double begun = tec_clock();
    cr_assert_not(tec_rpc_release(s, 1, &f.err));
    cr_assert_eq(f.err.status, TEC_LOST);
    cr_assert(strstr(f.err.text, "the server was silent for 0.5 s"), "%s", f.err.text);
    cr_assert_lt(tec_clock() - begun, 60);
    kill(f.pid, SIGCONT);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    cr_assert_eq(kit_stop(&f), 0);
}
