/* tests/compiler/flops.c -- the work of a kernel is the definition's, whatever its schedule does. */
#include "compiler/compiler.h"
#include "tests/schedule/run.h"

TestSuite(flops, .init = open_context, .fini = close_context);

/* The operations that the module of the file's definition tells, after the file's schedule. */
static int64_t told(const char *text)
{
    te_file *file = te_parse(cx, "flops.te", text);
    cr_assert(file, "%s", tec_context_error(cx));
    te_def *def = file->defs.at[0];
    sched *s = sched_new(cx, te_tree(cx, def), target_parse(cx, "llvm -mcpu=x86-64-v3"));
    int64_t flops = -1;

    cr_assert(sched_replay(s, "flops", base_dict_get(&file->schedules, def->name)), "%s", sched_error(s));
    comp_unit unit = {.name = "f", .tree = sched_tree(s), .plain = sched_plain(s)};
    comp_code *code =
        comp_compile(cx, &unit, 1, &(comp_options){.target = sched_target(s), .jobs = 1, .lower_only = true});
    cr_assert(code, "%s", tec_context_error(cx));
    cr_assert(rt_dim_is_const(comp_desc(code)->functions[0].flops, &flops));
    return flops;
}

#define STENCIL                                                                                              \
    "def f(A: f32[66]) {\n  T[i: 66] = A[i] * 2.0\n  R[i: 64] = T[i] + T[i + 1] + T[i + 2]\n  return R\n}\n"

Test(flops, are_not_those_of_what_is_computed_again)
{
    cr_expect_eq(told(STENCIL "schedule f {\n}\n"), 66 + 2 * 64);
    cr_expect_eq(told(STENCIL "schedule f {\n  compute_inline(T)\n}\n"), 66 + 2 * 64);
}

Test(flops, are_not_those_of_two_parts_of_a_loop)
{
    const char *text = "def f(A: f32[64]) {\n  R[i] = A[i] * 2.0\n  return R\n}\n";

    cr_expect_eq(told(base_format(cx, "%sschedule f {\n  a, b = cut(R.i, 32)\n}\n", text)), 64);
}

Test(flops, count_integer_data_and_no_indices)
{
    cr_expect_eq(told("def f(A: i8[8, 16], B: i8[16, 4]) {\n"
                      "  C[y, x] = sum[k](i32(A[y, k]) * i32(B[k, x]))\n  return C\n}\nschedule f {\n}\n"),
                 2 * 8 * 16 * 4);
    cr_expect_eq(told("def f(A: f32[64]) {\n  R[i: 31] = A[2 * i + 1]\n  return R\n}\nschedule f {\n}\n"), 0);
    cr_expect_eq(
        told("def f(A: i64[64]) {\n  R[i] = (A[i] + 3) * A[63 - i]\n  return R\n}\nschedule f {\n}\n"), 128);
}
