/* tests/targets/opencl/text.c -- the text of kernels: what statements and expressions become. That it means
 * the same, tec fuzz and tests/tools/te_opencl.sh show by running it. */
#include <criterion/criterion.h>
#include <string.h>

#include "ir/text.h"
#include "lower/pass.h"
#include "targets/opencl/opencl.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(opencl_text, .init = open_context, .fini = close_context);

/* The kernels, for such a target, of a program after these passes; NULL with an error in cx. */
static const char *kernels_through(const char *const *pass, int n, const char *machine, const char *text)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);
    const target *t = target_parse(cx, machine);
    const char *const symbol = "k";

    p = p ? lower_run_passes(&(lower_options){.cx = cx, .target = t}, p, pass, n) : NULL;
    cr_assert(p, "%s", tec_context_error(cx));
    const target_code *code =
        opencl_codegen.generate(cx, &p, 1, t, &(target_codegen_options){.symbols = &symbol});
    return code ? code->bytes : NULL;
}

/* Of a program that needs the pass `split` only. */
static const char *kernels_for(const char *machine, const char *text)
{
    return kernels_through((const char *const[]){"split"}, 1, machine, text);
}

static const char *kernels(const char *text)
{
    return kernels_for("opencl", text);
}

/* Of `body` over A: f32[64], I: i32[64], J: i64[64], H: f16[64], M: bool[64], out B: f32[64], out K: i32[64],
 * out G: f16[64], in one launch. */
static const char *body_text(const char *body)
{
    return kernels(base_format(cx,
                               "program p(symbol n, A: f32[64], I: i32[64], J: i64[64], H: f16[64], M: "
                               "bool[64], out B: f32[64], out K: i32[64], "
                               "out G: f16[64], out N: bool[64]) {\nfor b in 0..64 blockIdx.x { %s }\n}\n",
                               body));
}

static void has(const char *body, const char *line)
{
    const char *text = body_text(body);

    cr_assert(text, "%s", tec_context_error(cx));
    cr_assert(strstr(text, line), "'%s' is not in\n%s", line, text);
}

Test(opencl_text, a_kernel_takes_places_and_values)
{
    const char *text = kernels("program p(symbol n, A: f32[n], f: i32, out B: f32[n]) {\n"
                               "  for b in 0..n blockIdx.x { for t in 0..4 threadIdx.x { B[b] = A[b] * "
                               "f32(f) } for t in 0..2 threadIdx.x { B[b] = 1.0 } }\n"
                               "}\n");

    cr_assert_str_eq(text,
                     "\n__kernel __attribute__((reqd_work_group_size(4, 1, 1)))\n"
                     "void k_0(__global char *A_base, long A_at, int f, __global char *B_base, long B_at)\n"
                     "{\n"
                     "    const __global float *A = (const __global float *)(A_base + A_at);\n"
                     "    __global float *B = (__global float *)(B_base + B_at);\n"
                     "    {\n"
                     "        const long b = (long)get_group_id(0);\n"
                     "        {\n"
                     "            const long t = (long)get_local_id(0);\n"
                     "            B[b] = A[b] * (float)f;\n"
                     "        }\n"
                     "        if ((long)get_local_id(0) < 2) {\n"
                     "            const long t_2 = (long)get_local_id(0);\n"
                     "            B[b] = 1.0f;\n"
                     "        }\n"
                     "    }\n"
                     "}\n",
                     "%s", text);
}

Test(opencl_text, ints_wrap_and_indices_are_plain)
{
    has("K[b] = I[b] * 3 + I[b + 1]", "K[b] = (int)((uint)(int)((uint)I[b] * (uint)3) + (uint)I[b + 1]);");
    has("K[floordiv(b, 4) * 4 + b % 4] = 1", "K[b / 4 * 4 + b % 4] = 1;");
    has("K[b] = truncmod(I[b], 3)", "K[b] = tec_mod_int(I[b], 3);");
    has("K[b] = I[b] << 2", "K[b] = (int)((uint)I[b] << ((int)2 & 31));");
}

Test(opencl_text, what_is_lazy_stays_lazy)
{
    has("B[b] = select(b < 3, A[b], 0.0)", "B[b] = (b < 3 ? A[b] : 0.0f);");
    has("B[b] = select(b < 3, let x = A[b] in x * x, 0.0)",
        "float v1;\n        if (b < 3) {\n            const float x = A[b];\n            v1 = (x * x);\n     "
        "   } else {\n");
}

Test(opencl_text, small_types_are_held_as_larger_ones)
{
    has("G[b] = H[b] + H[b + 1]",
        "G[b] = tec_f16_store(tec_f16_round(tec_f16_load(H[b]) + tec_f16_load(H[b + 1])));");
    has("N[b] = M[b] && b < 3", "N[b] = (M[b] != 0) && b < 3;");
    has("K[b] = i32(A[b])", "K[b] = convert_int_sat(A[b]);");
}

Test(opencl_text, shared_memory_and_barriers)
{
    has("allocate S: f32[4] @shared { for t in 0..4 threadIdx.x { S[t] = A[t] } evaluate call<i32> "
        "tec.barrier(\"shared\") B[b] = S[1] }",
        "    __attribute__((aligned(16))) __local float S[4];\n");
    has("evaluate call<i32> tec.barrier(\"shared\")", "barrier(CLK_LOCAL_MEM_FENCE);");
    has("evaluate call<i32> tec.barrier(\"global\")", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
}

/* What lies in the workspace is __global memory, which a fence of local memory does not order. */
Test(opencl_text, fences_are_of_the_memory_that_a_buffer_is_in)
{
    static const struct {
        const char *body, *memory, *fence;
    } cases[] = {
        {"for t in 0..4 threadIdx.x { allocate S: f32[4] @shared { S[t] = A[t]  B[t] = S[3 - t] } }",
         "__local float S[4];", "barrier(CLK_LOCAL_MEM_FENCE);"},
        {"allocate S: f32[4] @shared { for t in 0..4 threadIdx.x { S[t] = A[t]  B[t] = S[3 - t] } }",
         "__local float S[4];", "barrier(CLK_LOCAL_MEM_FENCE);"},
        {"allocate S: f32[4] @shared { for t in 0..4 threadIdx.x { S[t] = A[t]  B[t] = S[3 - t] }\n"
         "for b in 0..2 blockIdx.x { B[b] = S[b] } }",
         "__global char *S_base", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"},
        {"allocate S: f32[4] @warp { for t in 0..4 threadIdx.x { S[t] = A[t]  B[t] = S[3 - t] }\n"
         "for b in 0..2 blockIdx.x { B[b] = S[b] } }",
         "__global char *S_base", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        const char *text =
            kernels_through((const char *const[]){"barriers", "split"}, 2, "opencl",
                            base_format(cx, "program p(A: f32[4], out B: f32[4]) { %s }", cases[i].body));

        cr_assert(text, "%s", tec_context_error(cx));
        cr_assert(strstr(text, cases[i].memory), "'%s' is not in\n%s", cases[i].memory, text);
        cr_assert(strstr(text, cases[i].fence), "'%s' is not in\n%s", cases[i].fence, text);
    }
}

static void refuses(const char *body, const char *says)
{
    cr_assert_null(body_text(body), "%s", body);
    cr_assert(strstr(tec_context_error(cx), says), "'%s' is not in '%s'", says, tec_context_error(cx));
    tec_context_clear(cx);
}

/* Each buffer fits alone. The size of a buffer is rounded up to 64 bytes, as the launch counts. */
Test(opencl_text, shared_memory_of_a_launch_has_the_target_s_limit)
{
    const char *body = "allocate S: f32[%d] @shared { allocate R: f32[4096] @shared { S[b] = A[b] "
                       "R[b] = S[b] B[b] = R[b] } }";

    cr_assert(body_text(base_format(cx, body, 4096)), "%s", tec_context_error(cx));
    refuses(base_format(cx, body, 4097),
            "kernel 'k_0' uses 32832 bytes of shared memory in a block, the target has 32768");
}

Test(opencl_text, the_limit_of_shared_memory_is_of_each_launch_alone)
{
    const char *text =
        "program p(A: f32[8], out B: f32[8]) {\n"
        "for b in 0..2 blockIdx.x { allocate S: f32[5000] @shared { S[b] = A[b] B[b] = S[b] } }\n"
        "for c in 0..2 blockIdx.x { allocate R: f32[%d] @shared { R[c] = B[c] B[c] = R[c] } }\n"
        "}\n";

    cr_assert(kernels(base_format(cx, text, 5000)), "%s", tec_context_error(cx));
    cr_assert(kernels_for("opencl -device=pocl", base_format(cx, text, 9000)), "%s", tec_context_error(cx));
    cr_assert_null(kernels(base_format(cx, text, 9000)));
    cr_assert(strstr(tec_context_error(cx), "kernel 'k_1' uses 36032 bytes of shared memory in a block"),
              "%s", tec_context_error(cx));
    tec_context_clear(cx);
}

Test(opencl_text, pointers_are_restricted_for_gpus_alone)
{
    const char *text = "program p(A: f32[4], out B: f32[4]) { for b in 0..4 blockIdx.x { B[b] = A[b] } }";

    cr_assert(strstr(kernels_for("opencl -device=mali", text), "__global char *restrict A_base"));
    cr_assert_not(strstr(kernels_for("opencl -device=pocl", text), "restrict"));
    cr_assert_not(strstr(kernels_for("opencl", text), "restrict"));
}

/* Drivers for CPUs cut kernels at barriers; LLVM must not copy code on the ways between them. */
Test(opencl_text, conditions_are_hidden_from_compilers_for_cpus)
{
    const char *text = "program p(A: f32[4], out B: f32[4]) { for b in 0..4 blockIdx.x {\n"
                       "let taken = b < 3 { if taken { B[b] = A[b] } } } }";

    cr_assert(strstr(kernels_for("opencl", text), "const volatile bool taken = b < 3;"));
    cr_assert(strstr(kernels_for("opencl -device=mali", text), "const bool taken = b < 3;"));
}

static int barriers_in(const char *text)
{
    int n = 0;

    for (; (text = strstr(text, "barrier(CLK")) != NULL; text++)
        n++;
    return n;
}

/* PoCL fails where a loop around barriers begins with a nest of loops, or ends with a condition that
 * LLVM sees through. */
Test(opencl_text, loops_around_barriers_have_edges_that_pocl_compiles)
{
    static const struct {
        const char *body;
        int barriers; /* in all */
        bool named;   /* the condition at the end */
    } cases[] = {
        {"S[t] = A[t]  BARRIER  B[t] = S[3 - t]", 1, false},
        {"for j in 0..n { S[t] = A[j] }  BARRIER  B[t] = S[3 - t]", 1, false},
        {"for j in 0..3 { for k in 0..2 { S[t] = A[j + k] } }  BARRIER  B[t] = S[3 - t]", 2, false},
        {"for j in 0..3 { for k in 0..j { S[t] = A[j + k] } }  BARRIER  B[t] = S[3 - t]", 2, false},
        {"B[t] = 0.0  for j in 0..3 { for k in 0..j { S[t] = A[j + k] } }  BARRIER  B[t] = S[3 - t]", 2,
         false},
        {"S[t] = A[t]  BARRIER  for j in 0..3 { for k in 0..j { B[t] = S[3 - t] } }", 1, false},
        {"if t < 2 { S[t] = A[t] }  BARRIER  B[t] = S[t]", 1, false},
        {"S[t] = A[t]  BARRIER  if t < 2 { B[t] = S[3 - t] }", 1, true},
        {"S[t] = A[t]  BARRIER  if t < 2 { B[t] = S[3 - t] }  B[3 - t] = 1.0", 1, true},
        {"S[t] = A[t]  let low = n - 3 { BARRIER  if t < low { B[t] = S[3 - t] } }", 1, true},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        const char *at = strstr(cases[i].body, "BARRIER");
        const char *text =
            base_format(cx,
                        "program p(symbol n, A: f32[8], out B: f32[4]) { for b in 0..1 blockIdx.x {\n"
                        "allocate S: f32[4] @shared { for t in 0..4 threadIdx.x { for i in 0..4 {\n"
                        "%.*sevaluate call<i32> tec.barrier(\"shared\")%s } } } } }",
                        (int)(at - cases[i].body), cases[i].body, at + strlen("BARRIER"));
        const char *cpu = kernels_for("opencl", text), *gpu = kernels_for("opencl -device=mali", text);

        cr_assert_eq(barriers_in(cpu), cases[i].barriers, "%s", cases[i].body);
        cr_assert_eq(strstr(cpu, "const volatile bool taken = ") != NULL, cases[i].named, "%s",
                     cases[i].body);
        cr_assert(barriers_in(gpu) == 1 && !strstr(gpu, "taken"), "%s", cases[i].body);
    }
}

/* The host runs it, and no iteration where there is none. */
Test(opencl_text, a_loop_around_launches_with_barriers_may_be_empty)
{
    const char *text =
        kernels("program p(symbol n, A: f32[n, 4], out B: f32[n, 4]) { for i in 0..n {\n"
                "for b in 0..1 blockIdx.x { allocate S: f32[4] @shared { for t in 0..4 threadIdx.x {\n"
                "S[t] = A[i, t]  evaluate call<i32> tec.barrier(\"shared\")  B[i, t] = S[3 - t]\n"
                "} } } } }");

    cr_assert(text, "%s", tec_context_error(cx));
    cr_assert_not(strstr(text, "mine"), "%s", text);
}

Test(opencl_text, vectorised_loops_are_vectors)
{
    has("for c in 0..8 vectorised { B[b*8 + c] = A[b*8 + c] * 2.0 + A[b] }",
        "vstore8(((vload8(0, &A[b * 8]) * (float8)(2.0f)) + (float8)(A[b])), 0, &B[b * 8]);");
    has("for c in 0..4 vectorised { B[c + b] = fma(A[c], -A[b], max(A[c + 4], 0.0)) }",
        "vstore4(fma(vload4(0, &A[0]), (float4)(-A[b]), tec_max_float4(vload4(0, &A[4]), (float4)(0.0f))), "
        "0, &B[b]);");
    has("for c in 0..4 vectorised { K[c] = max(I[c] * 3, -I[c + 4]) }",
        "vstore4(max(as_int4(as_uint4(vload4(0, &I[0])) * as_uint4((int4)(3))), "
        "as_int4((uint4)(0) - as_uint4(vload4(0, &I[4])))), 0, &K[0]);");
    has("for c in 0..8 vectorised { B[c] = f32(I[c]) }",
        "vstore8(convert_float8(vload8(0, &I[0])), 0, &B[0]);");
    has("for c in 0..2 vectorised { if b < 3 { K[c] = I[c + b] } }", "vstore2(vload2(0, &I[b]), 0, &K[0]);");
    has("for c in 0..16 vectorised { B[c] = select(b < 3, A[c + b], 0.0) }",
        "vstore16((b < 3 ? vload16(0, &A[b]) : (float16)(0.0f)), 0, &B[0]);");
    has("for c in 0..8 vectorised { let x = A[c] { B[c] = x * x } }",
        "const float8 x = vload8(0, &A[0]);\n        vstore8((x * x), 0, &B[0]);");
    has("for c in 0..8 vectorised { let x = A[b] { B[c] = A[c] * x } }",
        "const float x = A[b];\n        vstore8((vload8(0, &A[0]) * (float8)(x)), 0, &B[0]);");
    has("for c in 0..4 vectorised { B[c] = (let x = A[c] in x * x) + (let y = A[b] in y * A[c]) }",
        "vstore4(((x * x) + ((float4)(y) * vload4(0, &A[0]))), 0, &B[0]);");
}

/* Each of these loops has something that is no vector of neighbours, or no arithmetic on floats. */
Test(opencl_text, other_vectorised_loops_stay_loops)
{
    const char *const bodies[] = {"B[c] = A[c*2]",
                                  "B[c*2] = A[c]",
                                  "K[c] = floordiv(I[c], 3)",
                                  "G[c] = H[c]",
                                  "N[c] = M[c]",
                                  "B[c] = select(c < b, A[c], 0.0)",
                                  "K[c] = i32(A[c])",
                                  "B[c] = f32(c)",
                                  "if c < b { B[c] = A[c] }",
                                  "let i = I[c] { B[c] = A[i64(i)] }",
                                  "let x = A[c] { if x > 0.0 { B[c] = x } }"};

    for (int i = 0; i < BASE_COUNT(bodies); i++)
        has(base_format(cx, "for c in 0..8 vectorised { %s }", bodies[i]), "for (long c = 0; c < 8; c++) {");
    has("for c in 0..6 vectorised { B[c] = A[c] }", "for (long c = 0; c < 6; c++) {");
    has("for c in 0..32 vectorised { B[c] = A[c] }", "for (long c = 0; c < 32; c++) {");
}

Test(opencl_text, refuses_what_the_language_has_no_words_for)
{
    refuses("let v = call<f32> tec.shuffle_xor(A[b], 1) { B[b] = v }",
            "'call<f32> tec.shuffle_xor(A[b], 1)' cannot be written in OpenCL C");
    refuses("evaluate call<i32> tec.barrier(\"warp\")", "cannot be written in OpenCL C");
    refuses("assert b < 3, \"b is small\"", "the check 'b is small' cannot be written in OpenCL C");
    refuses("B[ramp(b, 1, 4)] = broadcast(1.0, 4)",
            "a store of several lanes to 'B' cannot be written in OpenCL C");
    refuses("B[b] = shuffle([A[ramp(b, 1, 4)]], [2])", "cannot be written in OpenCL C");
}
