/* tests/lower/overlap.c -- software pipelines. */
#include "tests/lower/pass.h"
#include "tests/lower/remove.h"

TestSuite(overlap, .init = open_context, .fini = close_context);

Test(overlap, two_versions_with_prologue_and_epilogue)
{
    SHOWS("program p(A: f32[6, 4], out B: f32[6, 4]) {\n"
          "  allocate T: f32[2, 4] {\n"
          "    for x in 0..4 {\n"
          "      T[0, x] = A[0, x]\n"
          "    }\n"
          "    for k in 0..5 {\n"
          "      for x in 0..4 {\n"
          "        T[(k + 1) % 2, x] = A[k + 1, x]\n"
          "      }\n"
          "      for x in 0..4 {\n"
          "        B[k, x] = T[k % 2, 3 - x]\n"
          "      }\n"
          "    }\n"
          "    for x in 0..4 {\n"
          "      B[5, x] = T[1, 3 - x]\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("overlap", AVX512,
                "program p(A: f32[6, 4], out B: f32[6, 4]) {\n"
                "  for k in 0..6 @double_buffer(1) { allocate T: f32[4] {\n"
                "    for x in 0..4 { T[x] = A[k, x] }\n"
                "    for x in 0..4 { B[k, x] = T[3 - x] }\n"
                "  } }\n"
                "}\n"));
}

#define THREE                                                                                                \
    "program p(symbol n, A: f32[n], out B: f32[n], out C: f32[n]) {\n"                                       \
    "  for k in 0..n @pipeline(1) { allocate T: f32[] { allocate U: f32[] {\n"                               \
    "    attribute pipeline_stage(0) { T[] = A[k] }\n"                                                       \
    "    attribute pipeline_stage(1) { attribute pipeline_order(9) { U[] = T[]*2.0 } }\n"                    \
    "    attribute pipeline_stage(3) { B[k] = U[] + T[] }\n"                                                 \
    "    if k % 2 == 0 { attribute pipeline_stage(2) { C[k] = U[] } }\n"                                     \
    "    if k % 2 != 0 { attribute pipeline_stage(2) { C[k] = 1.0 } }\n"                                     \
    "  } } }\n"                                                                                              \
    "}\n"

Test(overlap, runs_however_few_iterations_there_are)
{
    const ir_program *p = same_meaning("overlap", AVX512, THREE, SIZES(0, 1, 2, 3, 4, 5, 9));

    HAS("allocate T: f32[4]", ir_program_text(cx, p));
    HAS("allocate U: f32[3]", ir_program_text(cx, p));
    HAS_NOT("pipeline", ir_program_text(cx, p));
    same_meaning("all", AVX512, THREE, SIZES(0, 1, 2, 3, 9));
}

Test(overlap, takes_the_stages_of_blocks)
{
    const char *text =
        "program p(symbol n, A: f32[n, 8], out C: f32[n]) {\n"
        "  buffer T: f32[n, 8]\n"
        "  for y in 0..n @pipeline(1) {\n"
        "    for x in 0..8 { block T(y = y in 0..n, x = x in 0..8) @pipeline_stage(0) {\n"
        "      reads A[y, x] writes T[y, x] T[y, x] = A[y, x]*2.0 } }\n"
        "    for k in 0..8 { block C(y = y in 0..n, k reduce = k in 0..8) @pipeline_stage(1) {\n"
        "      reads T[y, k] writes C[y] init { C[y] = 0.0 } C[y] sum= T[y, k] } }\n"
        "  }\n"
        "}\n";

    HAS("[2, 1, 8]", ir_program_text(cx, same_meaning("reasons,init,blocks,compact,trim,overlap", AVX512,
                                                      text, SIZES(0, 1, 2, 7))));
    same_meaning("all", AVX512, text, SIZES(0, 1, 2, 7));
    same_meaning("all", "cuda", text, SIZES(0, 1, 2, 7));
}

/* The init and the update of one block. */
Test(overlap, keeps_the_order_of_pieces_with_one_place_in_the_step)
{
    const char *text = "program p(symbol n, A: f32[n, 8], out C: f32[n]) {\n"
                       "  for k in 0..n @pipeline(1) { allocate T: f32[8] {\n"
                       "    attribute pipeline_stage(0) { attribute pipeline_order(1) { for x in 0..8 { T[x] "
                       "= A[k, x] } } }\n"
                       "    attribute pipeline_stage(1) { attribute pipeline_order(0) { C[k] = 1.0 } }\n"
                       "    for x in 0..8 { attribute pipeline_stage(1) { attribute pipeline_order(0) { C[k] "
                       "= C[k]*T[x] + 1.0 } } }\n"
                       "  } }\n"
                       "}\n";

    HAS("allocate T: f32[2, 8]", after("overlap", AVX512, text));
    same_meaning("overlap", AVX512, text, SIZES(0, 1, 2, 3, 9));
}

Test(overlap, keeps_the_order_of_memory_without_versions)
{
    HAS("the pipeline of 'k' would run stage 0 before stage 1 of an earlier iteration, but both touch 'B', "
        "one of them writing",
        refusal("overlap", AVX512,
                "program p(A: f32[8], out B: f32[8]) {\n"
                "  B[0] = 0.0\n"
                "  for k in 0..7 @double_buffer(1) { allocate T: f32[] {\n"
                "    T[] = B[k]\n"
                "    B[k + 1] = T[] + A[k]\n"
                "  } }\n"
                "}\n"));
}

Test(overlap, refuses_stages_against_the_order_of_the_body)
{
    HAS("would run stage 0 before stage 1 of the same iteration, but both touch 'T'",
        refusal("overlap", AVX512,
                "program p(A: f32[8], out B: f32[8]) {\n"
                "  for k in 0..8 @pipeline(1) { allocate T: f32[] {\n"
                "    attribute pipeline_stage(1) { T[] = A[k] }\n"
                "    attribute pipeline_stage(0) { B[k] = T[] }\n"
                "  } }\n"
                "}\n"));
}

Test(overlap, refuses_loops_that_do_not_run_in_order_and_single_stages)
{
    HAS("loop 'k' is parallel: only a serial loop becomes a pipeline",
        refusal("overlap", AVX512,
                "program p(out B: f32[8]) { for k in 0..8 parallel @double_buffer(1) { B[k] = 1.0 } }"));
    tec_context_clear(cx);
    HAS("the pipeline of 'k' has only one stage",
        refusal("overlap", AVX512, "program p(out B: f32[8]) { for k in 0..8 @pipeline(1) { B[k] = 1.0 } }"));
}

/* A chain of buffers, each made of the ones before; stages rise along it. */
static const char *random_program(uint64_t *state)
{
    base_text t = {0};
    int n = 2 + (int)base_random_below(state, 3), stage = 0;

    base_addf(cx, &t,
              "program p(symbol n, A: f32[n, 3], out B: f32[n, 3]) {\n  for k in 0..n @pipeline(1) {\n");
    for (int i = 0; i < n; i++)
        base_addf(cx, &t, "  allocate T%d: f32[3] {\n", i);
    for (int i = 0; i < n; i++) {
        base_addf(cx, &t, "    attribute pipeline_stage(%d) { for x in 0..3 { T%d[x] = A[k, 2 - x]", stage,
                  i);
        for (int j = 0; j < i; j++)
            if (base_random_below(state, 2))
                base_addf(cx, &t, " + T%d[%s]", j, base_random_below(state, 2) ? "x" : "2 - x");
        base_addf(cx, &t, " } }\n");
        stage += (int)base_random_below(state, 3);
    }
    base_addf(cx, &t, "    attribute pipeline_stage(%d) { for x in 0..3 { B[k, x] = T0[x] + T%d[x] } }\n",
              stage + 1, n - 1);
    for (int i = 0; i < n + 2; i++)
        base_addf(cx, &t, "  }");
    return base_text_str(cx, &t);
}

Test(overlap, keeps_the_results_of_random_pipelines)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t state = seed * 7919;

        same_meaning("overlap", AVX512, random_program(&state), SIZES(0, 1, 2, 3, 8));
    }
}

Test(overlap, waits_for_what_it_copied_asynchronously)
{
    const char *text =
        "program p(A: f32[6, 4], out B: f32[6, 4]) {\n"
        "  for b in 0..1 blockIdx.x { for k in 0..6 @double_buffer(1) { allocate T: f32[4] @shared {\n"
        "    for x in 0..4 threadIdx.x { attribute pipeline_async(1) { T[x] = A[k, x] } }\n"
        "    for x in 0..4 threadIdx.x { B[k, x] = T[3 - x] }\n"
        "  } } }\n"
        "}\n";
    const char *found = after("overlap", "cuda", text);

    HAS("            T[(k + 1) % 2, x] = A[k + 1, x]\n"
        "          }\n"
        "        }\n"
        "        evaluate call<i32> tec.async_commit()\n"
        "        evaluate call<i32> tec.async_wait(1)\n"
        "        evaluate call<i32> tec.barrier(\"shared\")\n",
        found);
    HAS_NOT("async", after("overlap", AVX512, text));
}

/* Copies that are read `later` steps afterwards: by threads, asynchronously, or in order. */
static const char *copied(int later, bool in_order)
{
    const char *threads = in_order ? "" : "threadIdx.x", *blocks = in_order ? "" : "blockIdx.x",
               *copy = in_order ? "hint" : "pipeline_async";

    return base_format(
        cx,
        "program p(symbol n, A: f32[n, 4], out B: f32[n, 4]) {\n"
        "  for b in 0..1 %s { for k in 0..n @pipeline(1) { allocate T: f32[4] @shared {\n"
        "    attribute pipeline_stage(0) { for x in 0..4 %s { attribute %s(1) { T[x] = A[k, x] } } }\n"
        "    attribute pipeline_stage(%d) { for x in 0..4 %s { B[k, x] = T[3 - x] } }\n"
        "  } } }\n"
        "}\n",
        blocks, threads, copy, later, threads);
}

/* Each group of copies is waited for before it is read: without any one commit or wait the interpreter finds
 * one that is not. */
Test(overlap, commits_and_waits_as_often_as_it_must)
{
    for (int later = 1; later <= 3; later++) {
        const ir_program *p = through("overlap,barriers", "cuda", parse(copied(later, false)), false);
        int total;

        for (int64_t n = 0; n < 7; n++)
            same_results(parse(copied(later, true)), p, n, 3, "overlap");
        without(p, -1, &total);
        cr_assert_gt(total, 0);
        for (int i = 0; i < total; i++) {
            const ir_program *less = without(p, i, &total);
            const char *why = fault(less, 7, 3);

            cr_assert(why, "call %d is not needed:\n%s", i, ir_program_text(cx, p));
            cr_assert(blames_order(why), "%s", why);
        }
    }
}

/* Threads cannot meet in a loop that some of them leave early; so each waits for its own copies at once. */
Test(overlap, copies_asynchronously_only_where_all_threads_are_in_step)
{
    static const char text[] =
        "program p(A: f32[6, 4], out B: f32[6, 4]) {\n"
        "  for x in 0..4 threadIdx.x { %s { for k in 0..%s @double_buffer(1) { allocate T: f32[4] @shared {\n"
        "    attribute pipeline_async(1) { T[x] = A[k, x] }\n"
        "    B[k, x] = T[x]\n"
        "  } } } }\n"
        "}\n";

    HAS("async_copy", after("overlap", "cuda", base_format(cx, text, "if x < 3", "6")));
    HAS("async_copy", after("overlap", "cuda", base_format(cx, text, "for i in 0..2", "5 + i")));
    HAS_NOT("async", after("overlap", "cuda", base_format(cx, text, "if x < 3", "x + 2")));
    HAS_NOT("async", after("overlap", "cuda", base_format(cx, text, "for i in 0..x", "6")));
}

#define PIPE(body)                                                                                           \
    "program p(A: f32[8], out B: f32[8]) {\n  for k in 0..8 @pipeline(1) { allocate T: f32[] {\n" body       \
    "  } }\n}\n"

Test(overlap, runs_statements_inside_of_several_conditions_and_values)
{
    const char *text =
        "program p(symbol n, A: f32[n], out B: f32[n], out C: f32[n]) {\n"
        "  for k in 0..n { B[k] = 0.0 }\n"
        "  for k in 0..n @pipeline(1) { allocate T: f32[] {\n"
        "    attribute pipeline_stage(0) { T[] = A[k] }\n"
        "    if k % 2 == 0 { let d = k + 1 { if k > 1 { let e = d * 2 { attribute pipeline_stage(1) { B[k] = "
        "T[] * f32(d + e) } } } } }\n"
        "    if A[k] > 0.0 { attribute pipeline_stage(2) { C[k] = T[] } } else { C[k] = T[] - 1.0 }\n"
        "  } }\n"
        "}\n";

    same_meaning("overlap", AVX512, text, SIZES(0, 1, 2, 3, 8));
    same_meaning("all", AVX512, text, SIZES(0, 1, 2, 3, 8));
}

Test(overlap, refuses_a_statement_of_two_stages)
{
    HAS("one statement of a pipeline has two different values of the note pipeline_stage",
        refusal("overlap", AVX512,
                PIPE("    for x in 0..1 { attribute pipeline_stage(0) { T[] = A[k] } attribute "
                     "pipeline_stage(1) { B[k] = T[] } }\n")));
    tec_context_clear(cx);
    HAS("one statement of a pipeline has two different values of the note pipeline_order",
        refusal("overlap", AVX512,
                PIPE("    attribute pipeline_order(1) { attribute pipeline_order(2) { T[] = A[k] } }\n"
                     "    attribute pipeline_stage(1) { B[k] = T[] }\n")));
}

/* In a step, parts of one order run as they stand: the next value would be there before the last one is
 * read. */
Test(overlap, keeps_parts_of_one_order_as_they_stand)
{
    static const char text[] =
        "program p(A: f32[8], out B: f32[8], out X: f32[1]) {\n"
        "  for k in 0..8 @pipeline(1) {\n"
        "    attribute pipeline_stage(0) { attribute pipeline_order(%d) { X[0] = A[k] } }\n"
        "    attribute pipeline_stage(1) { attribute pipeline_order(3) { B[k] = X[0] } }\n"
        "  }\n"
        "}\n";

    HAS("the pipeline of 'k' would run stage 0 before stage 1 of an earlier iteration, but both touch 'X', "
        "one of them writing",
        refusal("overlap", AVX512, base_format(cx, text, 3)));
    tec_context_clear(cx);
    same_meaning("overlap", AVX512, base_format(cx, text, 4), SIZES(1));
}

Test(overlap, refuses_stages_that_no_pipeline_has)
{
    HAS("expected a pipeline_stage from 0 to 15, found -1",
        refusal("overlap", AVX512,
                PIPE("    attribute pipeline_stage(-1) { T[] = A[k] }\n    B[k] = T[]\n")));
    tec_context_clear(cx);
    HAS("expected a pipeline_stage from 0 to 15, found 16",
        refusal("overlap", AVX512,
                PIPE("    T[] = A[k]\n    attribute pipeline_stage(16) { B[k] = T[] }\n")));
    tec_context_clear(cx);
    after("overlap", AVX512, PIPE("    T[] = A[k]\n    attribute pipeline_stage(15) { B[k] = T[] }\n"));
}

static const char *statements(int n)
{
    base_text t = {0};

    base_addf(cx, &t,
              "program p(A: f32[8], out B: f32[8]) {\n  for k in 0..8 @pipeline(1) { allocate T: f32[] {\n   "
              " T[] = A[k]\n");
    for (int i = 1; i < n; i++)
        base_addf(cx, &t, "    attribute pipeline_stage(1) { B[k] = T[] }\n");
    base_addf(cx, &t, "  } }\n}\n");
    return base_text_str(cx, &t);
}

Test(overlap, refuses_more_statements_than_it_keeps_order_of)
{
    HAS("a pipeline has more than 64 statements", refusal("overlap", AVX512, statements(65)));
    tec_context_clear(cx);
    after("overlap", AVX512, statements(64));
}
