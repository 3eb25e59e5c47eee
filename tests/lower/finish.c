/* tests/lower/finish.c -- what code generators do not know goes. */
#include "tests/lower/pass.h"

TestSuite(finish, .init = open_context, .fini = close_context);

Test(finish, runs_inner_parallel_loops_serially)
{
    const char *now = after("finish", AVX512,
                            "program p(out B: f32[8]) {\n"
                            "  for i in 0..2 parallel { for j in 0..4 parallel { B[i*4 + j] = 1.0 } }\n"
                            "}\n");

    HAS("for i in 0..2 parallel {\n    for j in 0..4 {\n", now);
    HAS("finish: parallel loop 'j' runs serially inside another\n",
        logged("finish", AVX512,
               parse("program p(out B: f32[8]) {\n  for i in 0..2 parallel { for j in 0..4 parallel { B[i*4 "
                     "+ j] = 1.0 } }\n}\n"),
               false));
}

Test(finish, takes_hints_and_attributes_away)
{
    SHOWS("program p(symbol n, out B: f32[8]) {\n  if n < 3 {\n    B[0] = 1.0\n  }\n}\n",
          after("finish", AVX512,
                "program p(symbol n, out B: f32[8]) {\n  attribute colour(7) { if likely(n < 3) { B[0] = 1.0 "
                "} }\n}\n"));
}

Test(finish, refuses_loops_over_threads)
{
    HAS("loop 'i' is threadIdx.x, which target 'llvm -mcpu=x86-64-v4 -num-cores=1' cannot run",
        refusal("finish", AVX512,
                "program p(out B: f32[8]) {\n  for i in 0..8 threadIdx.x { B[i] = 1.0 }\n}\n"));
}
