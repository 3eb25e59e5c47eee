/* tests/compiler/half.c -- code for 16-bit floats: vectors are converted as a whole. */
#include "compiler/compiler.h"
#include "tests/schedule/run.h"

TestSuite(half, .init = open_context, .fini = close_context);

static const char *assembly_for(const char *words, const char *text)
{
    te_file *file = te_parse(cx, "half.te", text);
    cr_assert(file, "%s", tec_context_error(cx));
    te_def *def = file->defs.at[0];
    sched *s = sched_new(cx, te_tree(cx, def), target_parse(cx, words));

    cr_assert(sched_replay(s, "half", base_dict_get(&file->schedules, def->name)), "%s", sched_error(s));
    comp_unit unit = {.name = "f", .tree = sched_tree(s)};
    comp_code *code =
        comp_compile(cx, &unit, 1, &(comp_options){.target = sched_target(s), .jobs = 1, .text = "asm"});
    cr_assert(code, "%s", tec_context_error(cx));
    return comp_code_text(code, 0);
}

static const char *assembly(const char *text)
{
    return assembly_for("llvm -mcpu=x86-64-v4", text);
}

/* LLVM would compare and add halves themselves if it saw where the floats come from: lane by lane, as the
 * CPU has no such instructions. */
Test(half, no_lane_is_converted_by_itself)
{
    const char *const body[] = {"max(A[i], B[i])", "A[i] + B[i]", "select(A[i] < B[i], A[i], f16(1.0))"};

    for (int i = 0; i < BASE_COUNT(body); i++) {
        const char *text = assembly(base_format(cx,
                                                "def f(A: f16[64], B: f16[64]) {\n  R[i] = %s\n  return "
                                                "R\n}\nschedule f {\n  vectorize(R.i)\n}\n",
                                                body[i]));

        cr_assert(strstr(text, "vcvtph2ps"), "%s", body[i]);
        for (const char *at = text; (at = strstr(at, "vcvtph2ps")); at++)
            cr_assert(memmem(at, strcspn(at, "\n"), "zmm", 3), "%s: %.60s", body[i], at);
    }
}

/* The result of one operation on two halves is the same in floats and in halves, so a CPU that computes with
 * halves needs no floats; sums of products stay floats. */
Test(half, a_cpu_that_computes_with_halves_does_not_convert_them)
{
    const char *const operation[][2] = {{"+", "vaddph"}, {"-", "vsubph"}, {"*", "vmulph"}, {"/", "vdivph"}};
    const char cpu[] = "llvm -mcpu=sapphirerapids";
    const char sum[] = "def f(A: f16[8, 64], B: f16[8, 64]) {\n"
                       "  R[i] = sum[k](f32(A[k, i]) * f32(B[k, i]))\n"
                       "  return R\n}\nschedule f {\n  vectorize(R.i)\n}\n";

    for (int i = 0; i < BASE_COUNT(operation); i++) {
        const char *text =
            assembly_for(cpu, base_format(cx,
                                          "def f(A: f16[64], B: f16[64]) {\n  R[i] = A[i] %s B[i]\n  return "
                                          "R\n}\nschedule f {\n  vectorize(R.i)\n}\n",
                                          operation[i][0]));

        cr_assert(strstr(text, operation[i][1]) && !strstr(text, "vcvt"), "%s", text);
    }
    const char *text = assembly_for(cpu, sum);
    cr_assert(strstr(text, "vcvtph2ps") && !strstr(text, "mulph"), "%s", text);
}

/* How often code for a CPU that converts no halves makes floats of integers, which widening a vector of
 * halves needs and nothing else. */
static int conversions(const char *body)
{
    int n = 0;
    const char *text =
        assembly_for("llvm -mcpu=x86-64-v2", base_format(cx,
                                                         "def f(A: f16[4], B: f16[4]) {\n  R[i] = %s\n  "
                                                         "return R\n}\nschedule f {\n  vectorize(R.i)\n}\n",
                                                         body));

    for (const char *at = text; (at = strstr(at, "cvtdq2ps")); at++)
        n++;
    return n;
}

Test(half, what_one_operation_gives_the_next_stays_a_float)
{
    const char *const body[] = {"(A[i] + B[i]) * B[i]", "max((A[i] + B[i]) * B[i] - A[i], B[i])"};
    int one = conversions("A[i] + B[i]");

    cr_assert(one > 0);
    for (int i = 0; i < BASE_COUNT(body); i++) {
        int n = conversions(body[i]);

        cr_assert(n == one, "%s: %d conversions, not %d", body[i], n, one);
    }
}
