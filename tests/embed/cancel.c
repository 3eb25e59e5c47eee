/* A compile of a model that another thread cancels, or whose deadline passes: the call fails with that status
 * and leaves nothing behind, and the same process compiles the same model to the same bytes afterwards.
 *
 * The moments are spread over a compile, whose duration is measured first, so the test expects nothing of the
 * speed of the machine. How soon a call ends is measured by bench/bench_cancel.c.
 */
#include <pthread.h>
#include <time.h>

#include "runtime/alloc.h"
#include "tests/embed/kit.h"

enum { MOMENTS = 8 };

static const input digits = {.model = TEC_SOURCE_DIR "/tests/models/digits/model.onnx", .jobs = 2};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A compile in another thread, and what it gave. */
typedef struct {
    tec_context *cx;
    bytes made;
} call;

static void *make(void *arg)
{
    call *c = arg;

    c->made = compile(c->cx, &digits);
    return NULL;
}

/* Compiles, ends the call at the moment, and compares: all of the module, or the status and nothing left. */
static bool ends_at(double moment, tec_status status, bytes expected)
{
    int files = open_files(), tasks = threads();
    call c = {.cx = tec_context_new()};
    pthread_t thread;

    if (status == TEC_TIMEOUT)
        tec_context_set_deadline(c.cx, moment);
    cr_assert_eq(pthread_create(&thread, NULL, make, &c), 0);
    if (status == TEC_CANCELLED) {
        nanosleep(&(struct timespec){(time_t)moment, (long)((moment - (double)(time_t)moment) * 1e9)}, NULL);
        tec_context_cancel(c.cx);
    }
    pthread_join(thread, NULL);
    bool ended = !c.made.data;
    if (ended)
        cr_assert_eq(tec_context_status(c.cx), status, "at %g s: %s", moment, tec_context_error(c.cx));
    else
        cr_assert(same_bytes(c.made, expected), "at %g s", moment);
    free(c.made.data);
    tec_context_free(c.cx);
    cr_assert_eq(open_files(), files, "at %g s: a file is left open", moment);
    cr_assert(threads_ended(tasks), "at %g s: a thread is left", moment);
    cr_assert(!has_children(), "at %g s: a child process is left", moment);
    cr_assert_eq(rt_alloc_live(), 0, "at %g s: blocks of the runtime are left", moment);
    return ended;
}

/* Ends compiles at moments from the first instant of a call to half of its duration; each time the same input
 * gives the same bytes afterwards. */
static void end_all(tec_status status)
{
    double start = seconds();
    bytes expected = compile_once(&digits);
    double whole = seconds() - start;
    int ended = 0;

    for (int i = 0; i < MOMENTS; i++) {
        ended += ends_at(1e-6 + whole * i / (2 * MOMENTS), status, expected);
        bytes again = compile_once(&digits);
        cr_assert(same_bytes(again, expected));
        free(again.data);
    }
    cr_assert_gt(ended, 0, "no compile was ended");
    free(expected.data);
}

Test(cancel, by_another_thread_ends_a_compile_and_leaves_nothing, .timeout = 600)
{
    end_all(TEC_CANCELLED);
}

Test(cancel, a_deadline_ends_a_compile_and_leaves_nothing, .timeout = 600)
{
    end_all(TEC_TIMEOUT);
}
