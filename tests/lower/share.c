/* tests/lower/share.c -- equal expressions become one node. */
#include "tests/lower/pass.h"

TestSuite(share, .init = open_context, .fini = close_context);

Test(share, makes_equal_operands_one_node)
{
    const ir_program *p = parse("program p(A: f32[4], out B: f32[4]) {\n  for i in 0..4 { B[i] = exp(A[i] + "
                                "1.0)/(exp(A[i] + 1.0) + 1.0) }\n}\n");
    const ir_program *now = through("share", AVX512, p, false);
    const ir_expr *value = now->body->loop.body->store.value;

    cr_assert_eq(value->arg[0], value->arg[1]->arg[0]);
    SHOWS(ir_program_text(cx, p), ir_program_text(cx, now));
}

Test(share, keeps_calls_with_effects_apart)
{
    const ir_program *p = parse("program p(A: f32[4], out B: f32[4]) {\n  intrinsic foo\n  for i in 0..4 { "
                                "B[i] = call<f32> foo(A[i]) + call<f32> foo(A[i]) }\n}\n");
    const ir_expr *value = through("share", AVX512, p, false)->body->loop.body->store.value;

    cr_assert_neq(value->arg[0], value->arg[1]);
}

Test(share, keeps_what_holds_a_call_with_effects_apart)
{
    const ir_program *p =
        parse("program p(A: f32[4], out B: f32[4]) {\n  intrinsic foo\n"
              "  for i in 0..4 { B[i] = (call<f32> foo(A[i]) + 1.0) * (call<f32> foo(A[i]) + 1.0) }\n}\n");
    const ir_expr *value = through("share", AVX512, p, false)->body->loop.body->store.value;

    cr_assert_neq(value->arg[0], value->arg[1]);
}
