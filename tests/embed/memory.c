/* Running out of memory in the compiler: an error of the context, after which nothing is left behind and the
 * process compiles on.
 *
 * The n-th allocation fails, for n = 1, 2, 3 ..., and after each failure the same process compiles the same
 * input to the same bytes: a lock that was left taken, or anything else that was left half done, would show.
 * In debug builds the pieces of arenas count; in others only their chunks, of which a definition takes eight.
 * TEC_TEST_FULL takes every allocation of a definition; otherwise the step is a prime number: over the
 * passes of a compile all kinds of allocations have their turn. With TEC_TEST_FULL, the build with the leak
 * sanitizer looks for leaks after each failure.
 */
#include "base/guard.h"
#include "runtime/alloc.h"
#include "tests/embed/kit.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
static bool leaks(void)
{
    return getenv("TEC_TEST_FULL") && __lsan_do_recoverable_leak_check() != 0;
}
#else
static bool leaks(void)
{
    return false;
}
#endif

/* Whether the n-th allocation was asked for. Then the compile must have failed by it, and left the process as
 * it was. */
static bool fails_cleanly_at(const input *in, int64_t n)
{
    int files = open_files(), tasks = threads();
    tec_context *cx = tec_context_new();

    base_plan_failure(cx, n);
    bytes b = compile(cx, in);
    bool failed = base_failure_left(cx) <= 0;
    if (failed) {
        cr_assert(b.data == NULL, "allocation %lld failed, and the compile went on", (long long)n);
        cr_assert(tec_context_status(cx) == TEC_NO_MEMORY, "allocation %lld: %s", (long long)n,
                  tec_context_error(cx));
        cr_assert(strstr(tec_context_error(cx), "out of memory"), "%s", tec_context_error(cx));
    } else
        cr_assert(b.data, "%s", tec_context_error(cx));
    tec_context_free(cx);
    free(b.data);
    cr_assert(open_files() == files, "allocation %lld: a file is left open", (long long)n);
    cr_assert(threads_ended(tasks), "allocation %lld: a thread is left", (long long)n);
    cr_assert(!has_children(), "allocation %lld: a child process is left", (long long)n);
    cr_assert(!leaks(), "allocation %lld: memory is left", (long long)n);
    return failed;
}

static void compiles_to(const input *in, bytes expected)
{
    bytes again = compile_once(in);

    cr_assert(same_bytes(again, expected));
    free(again.data);
}

/* Fails allocation first, first + step ...; after each failure the same input must give the same bytes. */
static void fail_all(const input *in, int64_t first, int64_t step)
{
    bytes expected = compile_once(in);
    int failures = 0;

    for (int64_t n = first; fails_cleanly_at(in, n); n += step) {
        compiles_to(in, expected);
        failures++;
    }
    cr_assert(failures > 5, "%d failures", failures);
    free(expected.data);
}

/* The sanitizers take their time. */
#ifndef TEC_DEBUG
enum { SMALL_STEP = 1, MODEL_FIRST = 1, MODEL_STEP = 7, MODEL_FULL_STEP = 1 };
#else
enum { MODEL_FIRST = 1789, MODEL_STEP = 23993, MODEL_FULL_STEP = 1999 };
#ifdef __SANITIZE_ADDRESS__
enum { SMALL_STEP = 97 };
#else
enum { SMALL_STEP = 13 };
#endif
#endif

static bool wants_all(void)
{
    return getenv("TEC_TEST_FULL") != NULL;
}

Test(memory, may_run_out_at_any_allocation_of_a_definition, .timeout = 3600)
{
    fail_all(&small, 1, wants_all() ? 1 : SMALL_STEP);
}

Test(memory, may_run_out_anywhere_in_a_model, .timeout = 3600)
{
    input digits = {.model = TEC_SOURCE_DIR "/tests/models/digits/model.onnx", .jobs = 2};

    fail_all(&digits, MODEL_FIRST, wants_all() ? MODEL_FULL_STEP : MODEL_STEP);
}

/* The run-time side counts by itself: arrays, modules and functions that constants are computed with. */
Test(memory, may_run_out_in_the_runtime_that_computes_constants)
{
    input digits = {.model = TEC_SOURCE_DIR "/tests/models/digits/model.onnx", .jobs = 1};
    bytes expected = compile_once(&digits);
    bool failed = true;

    for (int64_t n = 1; failed; n += wants_all() ? 1 : 7) {
        tec_context *cx = tec_context_new();

        rt_alloc_fail_at(n);
        bytes b = compile(cx, &digits);
        failed = !b.data;
        rt_alloc_fail_at(0);
        if (failed)
            cr_assert(tec_context_status(cx) == TEC_NO_MEMORY, "allocation %lld: %s", (long long)n,
                      tec_context_error(cx));
        else
            cr_assert(same_bytes(b, expected), "allocation %lld", (long long)n);
        tec_context_free(cx);
        free(b.data);
        cr_assert(rt_alloc_live() == 0);
        cr_assert(!leaks(), "allocation %lld: memory is left", (long long)n);
    }
    free(expected.data);
}
