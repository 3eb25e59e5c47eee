/* tests/lower/threads.c -- reductions over the threads of a block. */
#include "tests/lower/pass.h"

TestSuite(threads, .init = open_context, .fini = close_context);

/* Row sums of A: `how` runs the inner loop of the reduction; its extent does not divide the row. */
static const char *row_sums(int threads, const char *how, const char *around)
{
    return base_format(cx,
                       "program p(symbol n, A: f32[n, 70], out C: f32[n]) {\n"
                       "  for y in 0..n %s { for k.0 in 0..%d { for k.1 in 0..%d %s {\n"
                       "    block C(y = y in 0..n, k reduce = k.0*%d + k.1 in 0..70) where k.0*%d + k.1 < 70 {\n"
                       "      reads A[y, k] writes C[y] init { C[y] = 1.0 } C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } } }\n"
                       "}\n",
                       around, (70 + threads - 1) / threads, threads, how, threads, threads);
}

/* The same as the serial loop. */
static const ir_program *same_as_serial(int threads, const char *axis)
{
    const ir_program *serial = parse(row_sums(threads, "", "")), *p;

    p = through("all", "cuda", parse(row_sums(threads, axis, "blockIdx.x")), false);
    cr_assert(p, "%s", tec_context_error(cx));
    for (int64_t n = 0; n <= 3; n++)
        same_results(serial, p, n, 5, "all");
    return p;
}

Test(threads, combine_by_halves_through_shared_memory)
{
    const char *text = ir_program_text(cx, same_as_serial(64, "threadIdx.x"));

    HAS("@shared", text);
    HAS("tec.barrier(\"shared\")", text);
}

Test(threads, of_one_warp_combine_through_its_memory)
{
    const char *text = ir_program_text(cx, same_as_serial(32, "threadIdx.x"));

    HAS("@warp", text);
    HAS("tec.barrier(\"warp\")", text);
    HAS_NOT("\"shared\"", text);
    HAS("@warp", ir_program_text(cx, same_as_serial(8, "threadIdx.x")));
}

Test(threads, along_other_axes_and_in_odd_numbers)
{
    HAS("@shared", ir_program_text(cx, same_as_serial(16, "threadIdx.y")));
    same_as_serial(12, "threadIdx.x");
    same_as_serial(7, "threadIdx.z");
    same_as_serial(1, "threadIdx.x");
}

Test(threads, keep_an_order_that_must_be_kept)
{
    lower_options o = {.cx = cx, .target = target_parse(cx, "cuda"), .strict = true};

    cr_assert_not(lower_run(&o, parse(row_sums(32, "threadIdx.x", "blockIdx.x"))));
    HAS("the reduction of 'C' cannot be shared between the threads of loop 'k.1': the floating-point policy is strict",
        tec_context_error(cx));
}

Test(threads, random_shapes)
{
    uint64_t state = 77;

    for (int i = 0; i < 25; i++)
        same_as_serial(1 + (int)base_random_below(&state, 70), base_random_below(&state, 2) ? "threadIdx.x" : "threadIdx.y");
}
