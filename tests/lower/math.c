/* tests/lower/math.c -- functions that a target has no instruction for. What their expansions compute, tests/targets/llvm/math.c holds. */
#include "tests/lower/pass.h"

TestSuite(math, .init = open_context, .fini = close_context);

#define ROUND(f) "program p(A: f32[8], out B: f32[8]) {\n  for x in 0..8 { B[x] = " f "(A[x]) }\n}\n"

Test(math, keeps_rounding_where_the_target_has_it)
{
    static const char *const having[] = {"llvm -mcpu=x86-64-v2", AVX2, "llvm -mcpu=x86-64 -mattr=+sse4.1", "llvm -mcpu=x86-64 -mattr=+avx",
                                         "llvm -mtriple=aarch64-linux-gnu"};
    static const char *const functions[] = {"floor", "ceil", "round", "trunc"};

    for (int i = 0; i < BASE_COUNT(functions); i++) {
        const char *text = base_format(cx, ROUND("%s"), functions[i]), *call = base_format(cx, "%s(A[x])", functions[i]);

        for (int j = 0; j < BASE_COUNT(having); j++)
            HAS(call, after("math", having[j], text));
        HAS_NOT(call, after("math", SSE2, text));
        same_meaning("math", SSE2, text, SIZES(1));
    }
}
