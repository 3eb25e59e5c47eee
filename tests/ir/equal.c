/* tests/ir/equal.c -- structural equality and its hash. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"

static const ir_expr *grow(tec_context *cx, const ir_expr *e, int depth)
{
    for (int k = 0; k < depth; k++)
        e = ir_add(cx, e, e);
    return e;
}

Test(equal, ignores_the_names_of_bound_variables_only)
{
    tec_context *cx = tec_context_new();
    const ir_expr *a = ir_var(cx, "a", BASE_I64), *b = ir_var(cx, "b", BASE_I64),
                  *n = ir_var(cx, "n", BASE_I64), *m = ir_var(cx, "m", BASE_I64);
    const ir_expr *x = ir_let(cx, a, n, ir_add(cx, a, n)), *y = ir_let(cx, b, n, ir_add(cx, b, n));

    cr_expect(ir_same(x, y));
    cr_expect(ir_hash(x) == ir_hash(y));
    cr_expect(not(ir_same(x, ir_let(cx, b, n, ir_add(cx, b, m)))));
    cr_expect(not(ir_same(x, ir_let(cx, b, n, ir_add(cx, n, b)))));
    cr_expect(not(ir_same(ir_let(cx, a, n, ir_add(cx, a, b)), ir_let(cx, b, n, ir_add(cx, b, a)))));
    cr_expect(not(ir_same(ir_add(cx, a, n), ir_add(cx, b, n))));
    tec_context_free(cx);
}

/* The shared node means a bound variable on one side and a free one on the other. */
Test(equal, looks_into_shared_nodes_under_different_binders)
{
    tec_context *cx = tec_context_new();
    const ir_expr *a = ir_var(cx, "a", BASE_I64), *b = ir_var(cx, "b", BASE_I64),
                  *n = ir_var(cx, "n", BASE_I64), *body = ir_add(cx, a, n);

    cr_expect(not(ir_same(ir_let(cx, a, n, body), ir_let(cx, b, n, body))));
    cr_expect(ir_same(ir_let(cx, a, n, body), ir_let(cx, a, n, body)));
    tec_context_free(cx);
}

Test(equal, compares_deep_chains_in_their_own_size)
{
    tec_context *cx = tec_context_new();
    const ir_expr *n = ir_var(cx, "n", BASE_I64), *a = ir_var(cx, "a", BASE_I64),
                  *b = ir_var(cx, "b", BASE_I64);
    const ir_expr *x = grow(cx, ir_mul(cx, n, n), 10000), *y = grow(cx, ir_mul(cx, n, n), 10000);

    cr_expect(x != y && ir_same(x, y) && ir_hash(x) == ir_hash(y));
    cr_expect(not(ir_same(x, grow(cx, n, 10001))));
    cr_expect(ir_same(ir_let(cx, a, n, grow(cx, a, 10000)), ir_let(cx, b, n, grow(cx, b, 10000))));
    tec_context_free(cx);
}

Test(equal, tells_floats_apart_by_their_bits)
{
    tec_context *cx = tec_context_new();

    cr_expect(not(ir_same(ir_imm(cx, BASE_F32, 0.0), ir_imm(cx, BASE_F32, -0.0))));
    cr_expect(ir_same(ir_imm(cx, BASE_F32, 0.0 / 0.0), ir_imm(cx, BASE_F32, -(0.0 / 0.0))));
    cr_expect(not(ir_same(ir_imm(cx, BASE_F32, 1), ir_imm(cx, BASE_F64, 1))));
    tec_context_free(cx);
}

static const ir_program *parse(tec_context *cx, const char *text)
{
    const ir_program *p = ir_parse_program(cx, "t.tir", text);

    cr_assert(p != NULL, "%s", tec_context_error(cx));
    return p;
}

static void check(const char *a, const char *b, bool same)
{
    tec_context *cx = tec_context_new();
    const ir_program *x = parse(cx, a), *y = parse(cx, b);

    cr_expect(ir_same_program(cx, x, y) == same, "%s\n%s", a, b);
    cr_expect(same == (ir_hash_program(cx, x) == ir_hash_program(cx, y)), "%s\n%s", a, b);
    tec_context_free(cx);
}

Test(equal, matches_the_parameters_of_programs_by_position)
{
    const char *p = "program p(symbol n, A: f32[n], out B: f32[n]) { for i in 0..n { B[i] = A[i] } }";

    check(p, "program q(symbol m, X: f32[m], out Y: f32[m]) { for y in 0..m { Y[y] = X[y] } }", true);
    check(p, "program p(symbol n, A: f32[n], out B: f32[n]) { for i in 0..n { A[i] = B[i] } }", false);
    check(p, "program p(symbol n, A: f32[n], B: f32[n]) { for i in 0..n { B[i] = A[i] } }", false);
    check(p, "program p(symbol n, A: f32[n], out B: f32[n]) { for i in 0..n parallel { B[i] = A[i] } }",
          false);
    check(p, "program p(symbol n, A: f32[n], out B: f32[n]) where n >= 1 { for i in 0..n { B[i] = A[i] } }",
          false);
    check(p, "program p(symbol n, A: f32[n], out B: f32[n]) { for i in 0..n @k(1) { B[i] = A[i] } }", false);
    check(p, "program p(symbol n, A: f32[n], out B: f32[n] align(8)) { for i in 0..n { B[i] = A[i] } }",
          false);
}

Test(equal, tells_apart_which_variable_is_used_where)
{
    check("program p(A: f32[4, 4]) { for i in 0..4 { for j in 0..4 { A[i, j] = 1.0 } } }",
          "program p(A: f32[4, 4]) { for i in 0..4 { for j in 0..4 { A[j, i] = 1.0 } } }", false);
}

Test(equal, does_not_ask_combiners_for_their_names)
{
    check("program p(A: f32[4]) { combiner c(x: f32; y: f32) = (x * 3.0 + y) identity (0.0) A[0] c= 1.0 }",
          "program p(A: f32[4]) { combiner d(u: f32; v: f32) = (u * 3.0 + v) identity (0.0) A[0] d= 1.0 }",
          true);
    check("program p(A: f32[4]) { A[0] sum= 1.0 }",
          "program p(A: f32[4]) { combiner mine(u: f32; v: f32) = (u + v) identity (0.0) reorders A[0] mine= "
          "1.0 }",
          true);
    check("program p(A: f32[4]) { A[0] sum= 1.0 }",
          "program p(A: f32[4]) { combiner mine(u: f32; v: f32) = (u + v) identity (0.0) A[0] mine= 1.0 }",
          false);
}
