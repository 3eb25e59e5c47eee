/* tests/space/stream.c -- which products ask early for the operand that passes through the core. */
#include <criterion/criterion.h>
#include <string.h>

#include "space/space.h"
#include "te/text.h"

/* The default schedule as text, of a definition on a CPU with vectors of eight floats. */
static const char *trace_of(tec_context *cx, const char *text)
{
    te_file *f = te_parse(cx, "t", text);
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    sched *s = f && t ? space_default(cx, te_tree(cx, f->defs.at[0]), t) : NULL;

    cr_assert(s, "%s", tec_context_error(cx));
    return sched_trace_text(cx, s);
}

static void expect(const char *text, const char *step)
{
    tec_context *cx = tec_context_new();
    const char *trace = trace_of(cx, text);

    cr_expect(strstr(trace, step), "%s\nexpected %s:\n%s", text, step, trace);
    tec_context_free(cx);
}

static void expect_no(const char *text, const char *step)
{
    tec_context *cx = tec_context_new();
    const char *trace = trace_of(cx, text);

    cr_expect(!strstr(trace, step), "%s\nexpected no %s:\n%s", text, step, trace);
    tec_context_free(cx);
}

Test(stream, a_product_with_one_row_asks_half_a_kib_early)
{
    expect("def f(A: f32[1, 512], B: f32[512, 2048]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
           "prefetch(B, C.k, 2)");
    expect("def f(A: f32[512], B: f32[16, 512, 64]) {\n"
           "  C[x: 1024] = sum[k](A[k] * B[floordiv(x, 64), k, x % 64])\n"
           "  return C\n"
           "}",
           "prefetch(B, C.k, 2)");
}

Test(stream, a_product_of_unknown_length_asks_two_kib_early)
{
    expect("def f(n, A: f32[n, 512], B: f32[512, 2048]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
           "prefetch(B, C.k.0, 8)");
}

Test(stream, what_is_read_again_or_near_is_not_asked_for)
{
    /* 64 rows read each element of B */
    expect_no("def f(A: f32[64, 512], B: f32[512, 2048]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
              "prefetch");
    /* 16 KiB */
    expect_no("def f(A: f32[1, 64], B: f32[64, 64]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
              "prefetch");
    /* made by the kernel itself */
    expect_no("def f(A: f32[1, 512], B: f32[512, 2048]) {\n"
              "  D[k: 512, x: 2048] = exp(B[k, x])\n"
              "  C[y: 1, x: 2048] = sum[k: 512](A[y, k] * D[k, x])\n"
              "  return C\n"
              "}",
              "prefetch");
}

/* 4 MiB are more than any second cache holds, 128 KiB are not. */
Test(stream, what_the_second_cache_cannot_hold_is_read_from_both_ends_in_turns)
{
    expect("def f(A: f32[1, 512], B: f32[512, 2048]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
           "alternate");
    expect_no("def f(A: f32[1, 512], B: f32[512, 64]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
              "alternate");
    expect("def f(n, A: f32[n, 512], B: f32[512, 2048]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
           "alternate");
    expect_no("def f(n, A: f32[n, 512], B: f32[512, 64]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }",
              "alternate");
}
