/* tests/lower/intrinsics.c -- calls of intrinsics become their statements. What they compute,
 * tests/compiler/tensorize.c holds. */
#include "tests/lower/pass.h"

TestSuite(intrinsics, .init = open_context, .fini = close_context);

/* With masks, values and buffers of their own; what has no statements stays a call. */
Test(intrinsics, write_their_statements_on_the_operands)
{
    SHOWS("program p(symbol n, A: f32[64], out C: f32[64]) {\n"
          "  intrinsic none {\n"
          "    program none(a: f32[4], out c: f32[4]) {\n"
          "      for i in 0..4 {\n"
          "        c[i] = a[i] - 1.0\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "  for y in 0..2 {\n"
          "    C[ramp(y * 4 + 8, 1, 4)] = A[ramp(y * 8 + 4, 1, 4)] * broadcast(0.5, 4)\n"
          "  }\n"
          "  let f = (A[ramp(50, 1, 2)] where ramp(0, 1, 2) < broadcast(1, 2)) {\n"
          "    allocate t: f32[2] @local {\n"
          "      t[ramp(0, 1, 2)] = f\n"
          "      C[ramp(20, 1, 2)] = t[ramp(0, 1, 2)] + broadcast(f32(n), 2) where ramp(0, 1, 2) < "
          "broadcast(1, 2)\n"
          "      C[21] = A[51] + f32(n)\n"
          "    }\n"
          "  }\n"
          "  evaluate call<i32> none(&A, &C, 24, 12)\n"
          "}\n",
          after("tensors,flatten,intrinsics", AVX512,
                "program p(symbol n, A: f32[8, 8], out C: f32[64]) {\n"
                "  intrinsic half \"c[ramp(0, 1, 4)] = a[ramp(0, 1, 4)]*broadcast(0.5, 4)\" "
                "{ program half(a: f32[4], out c: f32[4]) { for i in 0..4 { c[i] = a[i]*0.5 } } }\n"
                "  intrinsic pair \"let f = (a[ramp(0, 1, 2)] where ramp(0, 1, 2) < broadcast(1, 2)) { "
                "allocate t: f32[2] @local { t[ramp(0, 1, 2)] = f c[ramp(0, 1, 2)] = t[ramp(0, 1, 2)] + "
                "broadcast(x, 2) where ramp(0, 1, 2) < broadcast(1, 2) "
                "c[1] = a[1] + x } }\" { program pair(a: f32[2], out c: f32[2], x: f32) { for i in 0..2 { "
                "c[i] = a[i] + x } } }\n"
                "  intrinsic none { program none(a: f32[4], out c: f32[4]) { for i in 0..4 { c[i] = a[i] - "
                "1.0 } } }\n"
                "  for y in 0..2 { attribute tensorize(\"half\") { for i in 0..4 { C[y*4 + i + 8] = A[y, i + "
                "4]*0.5 } } }\n"
                "  attribute tensorize(\"pair\") { for i in 0..2 { C[20 + i] = A[6, 2 + i] + f32(n) } }\n"
                "  attribute tensorize(\"none\") { for i in 0..4 { C[12 + i] = A[3, i] - 1.0 } }\n"
                "}\n"));
}

/* The operands of a call inside of the statements are those of the intrinsic, from its offsets on. */
Test(intrinsics, pass_their_operands_on)
{
    SHOWS("program p(A: f32[64], out C: f32[64]) {\n"
          "  intrinsic none {\n"
          "    program none(a: f32[2], out c: f32[2]) {\n"
          "      for i in 0..2 {\n"
          "        c[i] = a[i] - 1.0\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "  evaluate call<i32> none(&A, &C, 18, 33)\n"
          "}\n",
          after("intrinsics", AVX512,
                "program p(A: f32[64], out C: f32[64]) {\n"
                "  intrinsic none { program none(a: f32[2], out c: f32[2]) { for i in 0..2 { c[i] = a[i] - "
                "1.0 } } }\n"
                "  intrinsic outer \"evaluate call<i32> none(&a, &c, 2, 1)\" { program outer(a: f32[4], out "
                "c: f32[4]) { intrinsic none { program none(a: f32[2], out c: f32[2]) { for i in 0..2 { c[i] "
                "= a[i] - 1.0 } } } for i in 0..2 { c[i + 1] = a[i + 2] - 1.0 } } }\n"
                "  evaluate call<i32> outer(&A, &C, 16, 32)\n"
                "}\n"));
}

/* An index may be an element of another operand; what is wrong with that one is said all the same. */
Test(intrinsics, refuse_one_index_of_an_operand_with_strides)
{
    static const char *const texts[] = {
        "for i in 0..4 { c[i] = a[i] + f32(b[0]) }", "for i in 0..4 { c[i] = a[b[0]] }",
        "for i in 0..4 { c[b[0]] = a[i] }", "for i in 0..4 { c[i] = (a[i] where b[0] > 2) }"};

    for (int i = 0; i < BASE_COUNT(texts); i++) {
        HAS("operand 'b' of 'pick' has strides, so each access needs 2 indices",
            refusal("intrinsics", AVX512,
                    base_format(cx,
                                "program p(A: f32[4], I: i64[8], out C: f32[4]) {\n"
                                "  intrinsic pick \"%s\" { program pick(a: f32[4], b: i64[2, 2] strides(4, "
                                "1), out c: f32[4]) { for i in 0..4 { c[i] = a[b[0, 0]] } } }\n"
                                "  evaluate call<i32> pick(&A, &I, &C, 0, 0, 0)\n"
                                "}\n",
                                texts[i])));
        tec_context_clear(cx);
    }
}
