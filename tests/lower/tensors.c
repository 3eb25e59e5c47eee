/* tests/lower/tensors.c -- tensorized nests become calls. What calls compute, tests/compiler/tensorize.c
 * holds. */
#include "tests/lower/pass.h"

TestSuite(tensors, .init = open_context, .fini = close_context);

#define INTRINSIC(name, text, value)                                                                         \
    "  intrinsic " name text " { program " name                                                              \
    "(a: f32[4], out c: f32[4]) { for i in 0..4 { c[i] = a[i]*" value " } } }\n"
#define NEST(name, at, from, value)                                                                          \
    "  attribute tensorize(\"" name "\") { for i in 0..4 { C[" at " + i] = A[" from " + i]*" value " } }\n"
#define PROGRAM(body) "program p(A: f32[8], out C: f32[16]) {\n" body "}\n"
#define FUNCTION " \"call twice\""

Test(tensors, become_calls_with_offsets)
{
    HAS("  for y in 0..2 {\n    evaluate call<i32> twice(&A, &C, y * 4, y * 4 + 8)\n  }\n}",
        after("tensors", AVX512,
              PROGRAM(INTRINSIC("twice", "", "2.0") "  for y in 0..2 {\n" NEST("twice", "y*4 + 8", "y*4",
                                                                               "2.0") "  }\n")));
}

/* A function is listed once, under its own name, whichever intrinsics are written as it. */
Test(tensors, of_one_function_call_it)
{
    const char *text = after("tensors", AVX512,
                             PROGRAM(INTRINSIC("one", FUNCTION, "2.0") INTRINSIC("two", FUNCTION, "2.0")
                                         NEST("one", "0", "4", "2.0") NEST("two", "8", "2", "2.0")));
    const char *listed = strstr(text, "intrinsic twice {");

    HAS("  assert call<i32> twice(&A, &C, 4, 0) == i32(0), \"the function 'twice' of intrinsic 'one' "
        "failed\"\n"
        "  assert call<i32> twice(&A, &C, 2, 8) == i32(0), \"the function 'twice' of intrinsic 'two' "
        "failed\"\n",
        text);
    cr_assert(listed && !strstr(listed + 1, "intrinsic twice {"), "%s", text);
}

Test(tensors, refuse_a_function_of_two_meanings)
{
    HAS("the function 'twice' has two meanings; one of them belongs to 'two'",
        refusal("tensors", AVX512,
                PROGRAM(INTRINSIC("one", FUNCTION, "2.0") INTRINSIC("two", FUNCTION, "3.0")
                            NEST("one", "0", "4", "2.0") NEST("two", "8", "2", "3.0"))));
}

Test(tensors, refuse_what_is_no_longer_the_intrinsic)
{
    HAS("the loops that were tensorized no longer match 'twice': a constant differs: the intrinsic has "
        "'2.0', the program "
        "'3.0'",
        refusal("tensors", AVX512, PROGRAM(INTRINSIC("twice", "", "2.0") NEST("twice", "0", "4", "3.0"))));
    tec_context_clear(cx);
    HAS("the program has no intrinsic \"none\"",
        refusal("tensors", AVX512, PROGRAM(INTRINSIC("twice", "", "2.0") NEST("none", "0", "4", "2.0"))));
}
