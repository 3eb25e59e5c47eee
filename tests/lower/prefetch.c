/* tests/lower/prefetch.c -- loops that ask for what they read later. */
#include "tests/lower/pass.h"

TestSuite(prefetch, .init = open_context, .fini = close_context);

#define ROWS                                                                                                 \
    "program p(symbol n, A: f32[n, 40], out B: f32[n, 40]) {\n"                                              \
    "  for y in 0..n @prefetch.A(2) { for x in 0..40 { B[y, x] = A[y, x] } }\n"                              \
    "}\n"

Test(prefetch, asks_for_each_line_of_a_later_row)
{
    const char *out = after("prefetch", AVX512, ROWS);

    HAS("if y + 2 < n {", out);
    HAS("for line in 0..3 unrolled {", out);
    HAS("call<i32> prefetch.0(&A, ", out);
    HAS_NOT("@prefetch", out);
    same_meaning("prefetch", AVX512, ROWS, SIZES(0, 1, 2, 3, 7));
}

/* A CPU that fetches four lines for each request: 8 lines of a whole row are two requests. Those of half a
 * row, where the next half does not follow, and the four of a short row are asked for one by one. */
Test(prefetch, asks_for_one_line_of_those_that_arrive_together)
{
#define INTEL "llvm -mcpu=sapphirerapids"
#define PARTS                                                                                                \
    "program p(symbol n, A: f32[n, %d], out B: f32[n, 128]) {\n"                                             \
    "  for y in 0..n @prefetch.A(2) { for x in 0..%d { B[y, x] = A[y, x] } }\n"                              \
    "}\n"
    const char *whole = base_format(cx, PARTS, 128, 128), *half = base_format(cx, PARTS, 256, 128),
               *low = base_format(cx, PARTS, 64, 64);

    HAS("for line in 0..8 unrolled {", after("prefetch", AVX512, whole));
    HAS("for line in 0..2 unrolled {", after("prefetch", INTEL, whole));
    HAS("prefetch.0(&A, line * 64 + (y + 2 + row) * 128, 3)", after("prefetch", INTEL, whole));
    HAS("for line in 0..8 unrolled {", after("prefetch", INTEL, half));
    HAS("for line in 0..4 unrolled {", after("prefetch", INTEL, low));
    same_meaning("prefetch", INTEL, whole, SIZES(0, 1, 2, 3, 7));
}

Test(prefetch, stays_inside_of_the_buffer)
{
    const char *text = "program p(A: f32[18], out B: f32[16]) {\n"
                       "  for i in 0..16 @prefetch.A(5) { B[i] = A[i] + A[17 - i] }\n"
                       "}\n";

    same_meaning("prefetch", AVX512, text, SIZES(1));
}

/* With n = 0 the loop runs and A has no element to ask for. */
Test(prefetch, asks_for_nothing_of_an_empty_buffer)
{
    const char *text = "program p(symbol n, A: f32[n, 4], out B: f32[n + 1, 4]) {\n"
                       "  for x in 0..4 @prefetch.A(1) {\n"
                       "    for y in 0..n + 1 { B[y, x] = select(y >= 1, A[y - 1, x], 0.0) }\n"
                       "  }\n"
                       "}\n";

    HAS("for row in 0..n {", after("prefetch", AVX512, text));
    same_meaning("prefetch", AVX512, text, SIZES(0, 1, 3));
}

/* Of a row whose number is loaded, the type alone says which it may be. */
Test(prefetch, asks_for_no_more_rows_than_there_are)
{
    const char *text =
        "program p(symbol n, I: i32[3], A: f32[n, 4], out B: f32[3, 4]) {\n"
        "  for x in 0..4 @prefetch.A(1) {\n"
        "    for y in 0..3 { B[y, x] = select(i64(I[y]) >= 0 && i64(I[y]) < n, A[i64(I[y]), x], 0.0) }\n"
        "  }\n"
        "}\n";

    HAS("for row in 0..min(2147483648, n) {", after("prefetch", AVX512, text));
    same_meaning("prefetch", AVX512, text, SIZES(0, 1, 7));
}

/* Of the operand of an intrinsic, not of all of its buffer. */
Test(prefetch, asks_for_the_operands_of_intrinsics)
{
    const char *text =
        "program p(A: f32[9, 2, 32], out B: f32[9, 2, 32]) {\n"
        "  intrinsic half \"c[ramp(0, 1, 32)] = a[ramp(0, 1, 32)]*broadcast(0.5, 32)\" "
        "{ program half(a: f32[32], out c: f32[32]) { for i in 0..32 { c[i] = a[i]*0.5 } } }\n"
        "  for y in 0..9 @prefetch.A(2) { for x in 0..2 {\n"
        "    attribute tensorize(\"half\") { for i in 0..32 { B[y, x, i] = A[y, x, i]*0.5 } }\n"
        "  } }\n"
        "}\n";
    const char *out = after("tensors,prefetch", AVX512, text);

    HAS("for line in 0..4 unrolled {", out);
    HAS("call<i32> prefetch.0(&A, ", out);
    HAS_NOT("for row", out);
    same_meaning("tensors,prefetch", AVX512, text, SIZES(1));
}

Test(prefetch, asks_for_buffers_of_several_types)
{
    const char *text = "program p(A: f32[9, 4], I: i8[9, 70], out B: f32[9, 4]) {\n"
                       "  for y in 0..9 @prefetch.A(1) @prefetch.I(2) {\n"
                       "    for x in 0..4 { B[y, x] = A[y, x] + f32(I[y, x * 20]) }\n"
                       "  }\n"
                       "}\n";

    HAS("call<i32> prefetch.1(", after("prefetch", AVX512, text));
    same_meaning("prefetch", AVX512, text, SIZES(1));
}

Test(prefetch, leaves_out_what_is_no_longer_read)
{
    const char *out =
        after("prefetch", AVX512,
              "program p(A: f32[8], out B: f32[8]) { for i in 0..8 @prefetch.P(1) { B[i] = A[i] } }\n");

    HAS_NOT("prefetch", out);
}

/* In a branch as elsewhere; what is not a box, or one number, is not asked for. Other notes stay. */
Test(prefetch, asks_for_what_loops_in_branches_read)
{
    SHOWS("program p(symbol n, A: f32[n, 40] strides(48, 1), I: i64[n], D: f64[40, n], S: f32[], out B: "
          "f32[n, 40]) {\n"
          "  intrinsic prefetch.0 {\n"
          "    program prefetch.0(a: f64[1], locality: i64) {\n"
          "    }\n"
          "  }\n"
          "  intrinsic prefetch.1 {\n"
          "    program prefetch.1(a: f32[1], locality: i64) {\n"
          "    }\n"
          "  }\n"
          "  intrinsic prefetch.2 {\n"
          "    program prefetch.2(a: i64[1], locality: i64) {\n"
          "    }\n"
          "  }\n"
          "  for y in 0..n @keep(7) {\n"
          "    if y + 1 < n {\n"
          "      for line in 0..1 unrolled {\n"
          "        evaluate call<i32> prefetch.2(&I, y + 1 + line * 8, 3)\n"
          "      }\n"
          "    }\n"
          "    if y + 2 < n {\n"
          "      for row in 0..n {\n"
          "        for line in 0..3 unrolled {\n"
          "          evaluate call<i32> prefetch.1(&A, line * 16 + row * 48, 3)\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "    if y < 5 {\n"
          "      for x in 0..40 {\n"
          "        if x + 3 < 40 {\n"
          "          for row in 0..1 unrolled {\n"
          "            for line in 0..1 unrolled {\n"
          "              evaluate call<i32> prefetch.0(&D, y + line * 8 + (x + 3 + row) * n, 3)\n"
          "            }\n"
          "          }\n"
          "        }\n"
          "        B[y, x] = A[y, x] + f32(D[x, y])\n"
          "      }\n"
          "    } else {\n"
          "      for x in 4..+30 {\n"
          "        if x + 1 < 34 {\n"
          "          for row in 0..1 unrolled {\n"
          "            for line in 0..1 unrolled {\n"
          "              evaluate call<i32> prefetch.0(&D, line * 8 + (x + 3 + row) * n, 3)\n"
          "            }\n"
          "          }\n"
          "        }\n"
          "        B[y, x] = f32(D[x + 2, 0]) + S[] + A[I[y], x]\n"
          "      }\n"
          "    }\n"
          "    B[y, 0] = f32(I[y])\n"
          "  }\n"
          "}\n",
          after("prefetch", AVX512,
                "program p(symbol n, A: f32[n, 40] strides(48, 1), I: i64[n], D: f64[40, n], S: f32[], out "
                "B: f32[n, 40]) {\n"
                "  for y in 0..n @prefetch.A(2) @prefetch.I(1) @prefetch.S(1) @keep(7) {\n"
                "    if y < 5 {\n"
                "      for x in 0..40 @prefetch.D(3) { B[y, x] = A[y, x] + f32(D[x, y]) }\n"
                "    } else {\n"
                "      for x in 4..+30 @prefetch.D(1) @prefetch.A(2) { B[y, x] = f32(D[x + 2, 0]) + S[] + "
                "A[I[y], x] }\n"
                "    }\n"
                "    B[y, 0] = f32(I[y])\n"
                "  }\n"
                "}\n"));
}
