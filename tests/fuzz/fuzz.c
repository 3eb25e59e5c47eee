/* tests/fuzz/fuzz.c -- the fuzzer tested: definitions are valid and round-trip, traces replay, a wrong result
 * is seen, a failure shrinks. */
#include <criterion/criterion.h>
#include <string.h>

#include "fuzz/data.h"
#include "fuzz/draw.h"
#include "fuzz/fuzz.h"
#include "fuzz/stepper.h"
#include "ir/text.h"
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

TestSuite(fuzz, .init = open_context, .fini = close_context);

Test(fuzz, definitions_parse_and_round_trip)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t state = seed;
        const char *text = fuzz_definition(cx, &state);
        te_file *f = te_parse(cx, "case.te", text);

        cr_assert(f, "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx), text);
        const char *printed = te_text(cx, f->defs.at[0]);
        cr_assert_str_eq(te_text(cx, te_parse(cx, "printed.te", printed)->defs.at[0]), printed);
        printed = fuzz_te_text(cx, f);
        cr_assert_str_eq(fuzz_te_text(cx, te_parse(cx, "printed.te", printed)), printed);
    }
}

/* A symbol that is a multiple of 4 and at most 6 for an open index is 4, so that n - 5 is no extent. */
Test(fuzz, sizes_are_left_for_open_indices_of_multiples)
{
    fuzz_case c = fuzz_make(cx, 62951413, 16876, target_parse(cx, "llvm -mcpu=x86-64-v3"), NULL);

    cr_assert(te_parse(cx, "case.te", c.te), "%s\n%s", tec_context_error(cx), c.te);
}

Test(fuzz, a_case_depends_on_its_number_alone)
{
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");

    for (int64_t i = 0; i < 20; i++) {
        fuzz_case a = fuzz_make(cx, 5, i, t, NULL), b = fuzz_make(cx, 5, i, t, NULL),
                  other = fuzz_make(cx, 6, i, t, NULL);

        cr_assert_str_eq(fuzz_case_text(cx, &a, NULL), fuzz_case_text(cx, &b, NULL));
        cr_assert_str_neq(a.te, other.te);
    }
}

Test(fuzz, traces_are_long_and_replay)
{
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    int steps = 0;

    for (int64_t i = 0; i < 40; i++) {
        fuzz_case c = fuzz_make(cx, 9, i, t, NULL);
        te_file *f = te_parse(cx, "case.te", c.te);
        sched *s = sched_new(cx, te_tree(cx, f->defs.at[0]), t);

        sched_use_intrinsics(s, &f->intrinsics);
        cr_assert(sched_replay(s, "trace", c.trace), "case %d: %s\n%s", (int)i, sched_error(s),
                  fuzz_case_text(cx, &c, NULL));
        steps += c.accepted;
    }
    cr_assert_geq(steps, 40 * 8);
}

Test(fuzz, a_case_file_gives_the_case_back)
{
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    fuzz_case c = fuzz_make(cx, 9, 3, t, NULL), again;

    cr_assert(fuzz_case_parse(cx, "case.te", fuzz_case_text(cx, &c, "why\nand how"), &again));
    cr_assert_eq(again.data, c.data);
    cr_assert_eq(again.index, 3);
    cr_assert_str_eq(
        fuzz_case_text(cx, &again, NULL),
        fuzz_case_text(
            cx,
            &(fuzz_case){
                .seed = 9, .index = 3, .data = c.data, .target = c.target, .te = again.te, .trace = c.trace},
            NULL));
}

Test(fuzz, a_part_of_the_cases_is_for_a_gpu_and_binds_threads)
{
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    int bound = 0;

    for (int64_t i = 0; i < 60; i++) {
        fuzz_case c = fuzz_make(cx, 9, i, t, NULL);

        bound += strcmp(c.target, "cuda") == 0 && strstr(c.trace, "threadIdx");
    }
    cr_assert_gt(bound, 3);
}

/* A primitive whose arguments are always refused would be tried by no case, and nobody would see it. */
Test(fuzz, each_primitive_is_a_step_of_some_case)
{
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    base_map seen = {0};

    for (int64_t i = 0; i < 400; i++) {
        fuzz_case c = fuzz_make(cx, 9, i, t, NULL);

        for (const sched_primitive *q = sched_primitives; q < sched_primitives + sched_n_primitives; q++) {
            const char *at = strstr(c.trace, base_format(cx, "%s(", q->name));

            if (at && (at == c.trace || !strchr("_abcdefghijklmnopqrstuvwxyz", at[-1])))
                base_map_put(cx, &seen, q, (void *)(uintptr_t)q);
        }
    }
    for (const sched_primitive *q = sched_primitives; q < sched_primitives + sched_n_primitives; q++)
        cr_assert(base_map_get(&seen, q), "no case of 400 has a step %s", q->name);
}

#ifdef TEC_DEBUG
static void finds(const char *fault, const char *where, const char *text)
{
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    tec_context *faulty = base_child(cx);
    fuzz_result r;
    fuzz_case c;

    cr_assert(fuzz_case_parse(cx, "case.te", text, &c));
    fuzz_check(cx, &c, t, &r);
    cr_assert_eq(r.outcome, FUZZ_SAME, "%s: %s", r.where, r.what);
    cr_assert_eq(r.refused, 0);
    cr_assert(base_set_plant(faulty, fault));
    fuzz_check(faulty, &c, t, &r);
    cr_assert_eq(r.outcome, FUZZ_WRONG);
    cr_assert(base_starts_with(r.where, where), "%s", r.where);
    tec_context_free(faulty);
}

Test(fuzz, one_threads_work_done_by_two_is_found)
{
    finds("alone_two", "pass: blocks",
          "# tec fuzz: case 1 of seed 1, data 5, target cuda\n"
          "def f(A: f32[8]) { S1[y: 8] = A[y] * 2.0 S2[y: 8] = S1[y] + S1[y] return S2 }\n"
          "schedule f {\n  S2.y.0, S2.y.1 = split(S2.y, _, 4)\n  compute_at(S1, S2.y.0)\n  set_scope(S1, "
          "shared)\n"
          "  bind(S2.y.1, threadIdx.x)\n  bind(S2.y.0, blockIdx.x)\n}\n");
}

Test(fuzz, a_parallel_loop_in_a_parallel_one_that_ends_early_is_found)
{
    finds("finish_extent", "pass: finish",
          "intrinsic S1.tile(a: f32[4]) { c[y: 4] = a[y] * 2.0 return c strides a[a0] strides c[c0]\n"
          "  body \"for y in 0..4 parallel { c[y] = a[y] * 2.0 }\" }\n"
          "def f(A: f32[8]) { S1[y: 8] = A[y] * 2.0 return S1 }\n"
          "schedule f {\n  S1.y.0, S1.y.1 = split(S1.y, _, 4)\n  tensorize(S1.y.1, S1.tile)\n  "
          "parallel(S1.y.0)\n}\n");
}

/* A split without its predicate is found at once; without the fault the same case passes. */
Test(fuzz, a_planted_fault_is_found)
{
    const char *text =
        "def f(A: f32[5]) {\n  S1[y: 5] = A[y] * 2.0\n  return S1\n}\nschedule f {\n  split(S1.y, _, 4)\n}\n";
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    tec_context *faulty = base_child(cx);
    fuzz_result r;
    fuzz_case c;

    cr_assert(fuzz_case_parse(cx, "case.te", text, &c));
    fuzz_check(cx, &c, t, &r);
    cr_assert_eq(r.outcome, FUZZ_SAME, "%s: %s", r.where, r.what);
    cr_assert(base_set_plant(faulty, "split_guard"));
    fuzz_check(faulty, &c, t, &r);
    cr_assert_eq(r.outcome, FUZZ_WRONG);
    cr_assert_str_eq(r.where, "schedule: split");
    cr_assert_not(base_set_plant(faulty, "no such fault"));
    tec_context_free(faulty);
}
#endif

/* A rewrite that is wrong for one row only. */
/* What lowering cannot do is told of the pass that cannot, past those that do not run for the target. */
Test(fuzz, a_limit_has_the_name_of_its_pass)
{
    const char *text = "# tec fuzz: case 1 of seed 1, data 5\n"
                       "def f(A: f32[512, 512]) {\n"
                       "  C[y: 512, x: 512] = A[y, x] * 2.0\n"
                       "  return C\n}\n"
                       "schedule f {\n  unroll(C.y)\n  unroll(C.x)\n}\n";
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    fuzz_result r;
    fuzz_case c;

    cr_assert(fuzz_case_parse(cx, "case.te", text, &c));
    fuzz_check(cx, &c, t, &r);
    cr_assert_eq(r.outcome, FUZZ_UNSUPPORTED, "%s: %s", r.where, r.what);
    cr_assert(base_starts_with(r.where, "pass: unroll"), "%s: %s", r.where, r.what);
}

Test(fuzz, a_wrong_rewrite_is_seen)
{
    const char *right =
        "program p(symbol n, A: f32[n], out C: f32[n]) { for i in 0..n { C[i] = A[i] * 2.0 } }";
    const char *wrong = "program p(symbol n, A: f32[n], out C: f32[n]) { for i in 0..n { C[i] = A[i] * "
                        "select(i == 11, 3.0, 2.0) } }";
    const ir_program *p = ir_parse_program(cx, "p", right), *q = ir_parse_program(cx, "q", wrong);
    fuzz_sizes sizes[FUZZ_MAX_SETS];
    int n = fuzz_draw_sizes(cx, p, 1, sizes), seen = 0;

    cr_assert_geq(n, 3);
    cr_assert_eq(sizes[0].value[0], 0);
    cr_assert_eq(sizes[1].value[0], 1);
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int i = 0; i < fuzz_draw_sizes(cx, p, seed, sizes); i++) {
            fuzz_data d;

            cr_assert(fuzz_draw_data(cx, p, &sizes[i], seed, &d) && fuzz_interpret(cx, p, &d, true), "%s",
                      d.fault);
            cr_assert(fuzz_interpret(cx, p, &d, false));
            seen += !fuzz_interpret(cx, q, &d, false);
        }
    cr_assert_gt(seen, 0);
}

Test(fuzz, races_are_seen)
{
    const ir_program *p =
        ir_parse_program(cx, "p", "program p(A: f32[4], out C: f32[4]) { for i in 0..4 { C[i] = A[i] } }");
    const ir_program *q = ir_parse_program(
        cx, "q",
        "program p(A: f32[4], out C: f32[4]) { for i in 0..4 parallel { for j in 0..4 { C[j] = A[j] } } }");
    fuzz_sizes none = {0};
    fuzz_data d;

    cr_assert(fuzz_draw_data(cx, p, &none, 1, &d) && fuzz_interpret(cx, p, &d, true));
    cr_assert_not(fuzz_interpret(cx, q, &d, false));
    cr_assert(strstr(d.fault, "race"));
}

/* "Fails" where a maximum is taken somewhere and its loop is split. */
static bool has_max_and_split(void *user, const fuzz_case *c)
{
    te_file *f = te_parse(cx, "case.te", c->te);

    (void)user;
    tec_context_clear(cx);
    return f && strstr(c->te, "max(") && strstr(c->trace, "split(S2.x");
}

Test(fuzz, a_failure_shrinks_to_what_it_takes)
{
    fuzz_case c = {.data = 1,
                   .te = "def f(n, A: f32[n, 12], B: f32[12]) {\n  S1[y: n, x: 12] = A[y, x] * 2.0 + B[x]\n  "
                         "S2[y: n, x: 12] = max(S1[y, x] + "
                         "B[x], A[y, x])\n  S3[y: n] = sum[k: 12](S2[y, k] * B[k])\n  return S3, S1\n}\n",
                   .trace = "S1.y.0, S1.y.1 = split(S1.y, _, 4)\nparallel(S3.y)\nS2.x.0, S2.x.1 = "
                            "split(S2.x, _, 4)\nvectorize(S2.x.1)\n"};
    fuzz_case small = fuzz_shrink(cx, &c, has_max_and_split, NULL, 500);

    cr_assert(has_max_and_split(NULL, &small));
    cr_assert_str_eq(small.trace, "S2.x.0, S2.x.1 = split(S2.x, _, 4)\n");
    cr_assert_not(strstr(small.te, "S1["), "%s", small.te);
    cr_assert_not(strstr(small.te, "S3["), "%s", small.te);
    cr_assert_not(strstr(small.te, "12"), "%s", small.te);
}
