/* tests/autotune/task.c -- what a task takes from its definition when it is not told. */
#include <criterion/criterion.h>

#include "autotune/task.h"
#include "te/text.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(task, .init = open_context, .fini = close_context);

static tune_task *task_for(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    tune_task *t =
        tune_task_new(cx, &(tune_task){.def = f->defs.at[0],
                                       .target = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2")});
    cr_assert(t, "%s", tec_context_error(cx));
    return t;
}

Test(task, follows_from_the_definition)
{
    tune_task *t = task_for(
        "def mm(A: f32[8, 16], B: f32[16, 32]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n");

    cr_assert_str_eq(t->name, "mm");
    cr_assert_str_eq(t->default_trace, "");
    cr_assert_eq(t->flops, 2 * 8 * 16 * 32);
    cr_assert_eq(t->weight, 1);
    cr_assert(t->task && space_count(t->space) > 1);
    te_file *again = te_parse(cx, "again.te", t->definition);
    cr_assert(again, "%s", tec_context_error(cx));
    cr_assert_str_eq(te_text(cx, again->defs.at[0]), t->definition);
}

Test(task, gives_symbols_values_that_their_facts_allow)
{
    tune_task *t =
        task_for("def f(n, m, k, A: f32[n], B: f32[m], D: f32[k]) where n % 24 == 0, m <= 10, k >= 1000 {\n"
                 "  C[i: n, j: m, l: k] = A[i] + B[j] * D[l]\n  return C\n}\n");

    cr_assert_eq(t->dims[0], 240);
    cr_assert_eq(t->dims[1], 10);
    cr_assert_eq(t->dims[2], 1000);
    cr_assert_eq(t->flops, 2 * 240. * 10 * 1000);
}

Test(task, keeps_what_it_is_told)
{
    te_file *f = te_parse(cx, "test.te", "def f(n, A: f32[n]) {\n  C[i] = A[i] + 1.0\n  return C\n}\n");
    tune_task *t = tune_task_new(cx, &(tune_task){.name = "mine",
                                                  .def = f->defs.at[0],
                                                  .target = target_parse(cx, "llvm -mcpu=x86-64-v3"),
                                                  .dims = (int64_t[]){7},
                                                  .weight = 3,
                                                  .default_trace = "parallel(C.i)\n"});

    cr_assert(t, "%s", tec_context_error(cx));
    cr_assert_str_eq(t->name, "mine");
    cr_assert_eq(t->dims[0], 7);
    cr_assert_eq(t->flops, 7);
    cr_assert_eq(t->weight, 3);
    cr_assert_str_eq(t->default_trace, "parallel(C.i)\n");
}
