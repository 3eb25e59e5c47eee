/* tests/targets/cuda/text.c -- the text of kernels in CUDA C: what differs from OpenCL C. That the text means
 * what the program means is shown by running it. */
#include <criterion/criterion.h>
#include <string.h>

#include "ir/text.h"
#include "lower/pass.h"
#include "targets/cuda/cuda.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(cuda_text, .init = open_context, .fini = close_context);

/* A program that needs the pass `split` only, with its launches prepared. */
static const ir_program *prepared(const char *text, const target *t)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);
    const char *const pass = "split";

    p = p ? lower_run_passes(&(lower_options){.cx = cx, .target = t}, p, &pass, 1) : NULL;
    p = p ? cuda_codegen.prepare(cx, p, t) : NULL;
    cr_assert(p, "%s", tec_context_error(cx));
    return p;
}

/* The kernels of the program; NULL with an error in cx. */
static const char *kernels(const char *text)
{
    const target *t = target_parse(cx, "cuda");
    const ir_program *p = prepared(text, t);
    const char *const symbol = "k";
    const target_code *code =
        cuda_codegen.generate(cx, &p, 1, t, &(target_codegen_options){.symbols = &symbol});

    return code ? code->bytes : NULL;
}

static void has(const char *body, const char *line)
{
    const char *text =
        kernels(base_format(cx,
                            "program p(symbol n, A: f32[64], I: i32[64], J: i64[64], "
                            "H: f16[64], M: bool[64], out B: f32[64], out K: i32[64]) {\n"
                            "for b in 0..2 blockIdx.x { for t in 0..32 threadIdx.x { %s } }\n}\n",
                            body));

    cr_assert(text, "%s", tec_context_error(cx));
    cr_assert(strstr(text, line), "'%s' is not in\n%s", line, text);
}

/* The grid is symbolic, so there is a second kernel, for 2^30 blocks and more, with indices of 64 bits. */
Test(cuda_text, a_kernel_takes_pointers_and_values)
{
    cr_assert_str_eq(kernels("program p(symbol n, A: f32[n], f: i32, g: bool, out B: f32[n]) {\n"
                             "  for b in 0..n blockIdx.x { for t in 0..4 threadIdx.x { "
                             "B[b] = select(g, A[b], f32(f)) } }\n"
                             "}\n"),
                     "\nextern \"C\" __global__ __launch_bounds__(4)\n"
                     "void k_0(const float *__restrict__ A, int f, uchar g, float *__restrict__ B)\n"
                     "{\n"
                     "    {\n"
                     "        const int b = (long)blockIdx.x;\n"
                     "        {\n"
                     "            const int t = (long)threadIdx.x;\n"
                     "            B[b] = (g ? A[b] : (float)f);\n"
                     "        }\n"
                     "    }\n"
                     "}\n"
                     "\nextern \"C\" __global__ __launch_bounds__(4)\n"
                     "void k_1(const float *__restrict__ A, int f, uchar g, float *__restrict__ B)\n"
                     "{\n"
                     "    {\n"
                     "        const long b = (long)blockIdx.x;\n"
                     "        {\n"
                     "            const long t = (long)threadIdx.x;\n"
                     "            B[b] = (g ? A[b] : (float)f);\n"
                     "        }\n"
                     "    }\n"
                     "}\n");
}

Test(cuda_text, types_are_named_by_one_word)
{
    has("B[t] = f32(i8(I[t]))", "(float)(schar)I[t]");
    has("K[t] = i32(A[t])", "K[t] = tec_to_int(A[t]);");
    has("B[t] = f32(H[t] + H[0])", "tec_f16_round(tec_f16_load(H[t]) + tec_f16_load(H[0]))");
    has("B[t] = select(M[t], 1.0, 0.0)", "(M[t] != 0)");
}

Test(cuda_text, indices_have_32_bits_where_these_are_proven_to_be_enough)
{
    has("B[b * 32 + t] = A[t]", "const int t = (long)threadIdx.x;");
    has("for i in 0..67108863 { B[t] = A[b * 32 + t] + f32(i * 32) }", "for (int i = 0;");
    has("for i in 0..67108865 { B[t] = A[b * 32 + t] + f32(i * 32) }", "for (long i = 0;"); /* 2^31 */
    has("for i in 0..n { B[t] = A[t] + f32(i) }", "const long t = (long)threadIdx.x;");
    has("K[t] = i32(min(J[t], t))", "(int)tec_min_long(J[t], t)");
    has("K[t] = i32(min(t, J[t]))", "(int)tec_min_long(t, J[t])");
    has("K[t] = i32(popcount(b + t))", "const long t = (long)threadIdx.x;");
}

Test(cuda_text, threads_meet)
{
    has("allocate S: f32[32] @shared { S[t] = A[t] evaluate call<i32> tec.barrier(\"shared\") B[t] = "
        "S[0] }",
        "tec_barrier();");
    has("allocate S: f32[32] @shared { S[t] = A[t] B[t] = S[t] }", "__shared__ __align__(16) float S[32];");
    has("let other = call<f32> tec.shuffle_xor(A[t], 4) { B[t] = other }",
        "const float other = tec_shuffle_xor(A[t], (int)(4));");
    has("let other = call<f32> tec.shuffle(A[t], t + 1) { B[t] = other }",
        "const float other = tec_shuffle(A[t], (int)(t + 1));");
}

Test(cuda_text, much_shared_memory_is_one_array_that_the_launch_makes)
{
    has("allocate S: f32[12289] @shared { allocate R: f32[3] @shared { S[t] = A[t] R[0] = 1.0 B[t] = S[t] } "
        "}",
        "TEC_DYNAMIC_SHARED(shared_memory, 49280);");
    has("allocate S: f32[12289] @shared { allocate R: f32[3] @shared { S[t] = A[t] R[0] = 1.0 B[t] = S[t] } "
        "}",
        "float *const R = (float *)(shared_memory + 49216);");
    cr_assert_null(kernels("program p(A: f32[64], out B: f32[64]) {\n"
                           "for b in 0..2 blockIdx.x { for t in 0..32 threadIdx.x { "
                           "allocate S: f32[41729] @shared { S[t] = A[t] B[t] = S[t] } } }\n}\n"));
    cr_assert(strstr(tec_context_error(cx),
                     "kernel 'k_0' uses 166976 bytes of shared memory in a block, the target has 166912"),
              "%s", tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert_null(kernels("program p(A: f32[64], out B: f32[64]) {\n"
                           "for b in 0..2 blockIdx.x { for t in 0..32 threadIdx.x { "
                           "allocate S: f32[21000] @shared { allocate R: f32[21000] @shared { "
                           "S[t] = A[t] R[t] = S[t] B[t] = R[t] } } } }\n}\n"));
    cr_assert(strstr(tec_context_error(cx), "kernel 'k_0' uses 168064 bytes"), "%s", tec_context_error(cx));
    tec_context_clear(cx);
}

/* A program with the instruction add4 of a warp: f = f + s over 2 rows of 64, a word of each for a thread. */
static const char *with_instruction(const char *body)
{
    return base_format(cx,
                       "program p(A: f32[512], out B: f32[512]) {\n"
                       "intrinsic add4 \"warp tec_add4\" { program add4(symbol ld, symbol to, "
                       "s: f32[2, 64] align(16) strides(ld, 1), out f: f32[2, 64] @local strides(to, 1), ld, "
                       "to) { for i in 0..2 { for j in 0..64 { "
                       "f[i, j] = f[i, j] + s[i, j] } } } }\n"
                       "for b in 0..2 blockIdx.x { %s }\n}\n",
                       body);
}

static void prints(const char *body, const char *line)
{
    const char *text = kernels(with_instruction(body));

    cr_assert(text, "%s", tec_context_error(cx));
    cr_assert(strstr(text, line), "'%s' is not in\n%s", line, text);
}
static void refuses(const char *body, const char *says)
{
    cr_assert_null(kernels(with_instruction(body)));
    cr_assert(strstr(tec_context_error(cx), says), "'%s' is not in '%s'", says, tec_context_error(cx));
    tec_context_clear(cx);
}

#define THREADS "for t in 0..32 threadIdx.x { B[t] = 0.0 } "
Test(cuda_text, fragments_are_shared_out_among_the_threads_of_a_warp)
{
    const char *one = "allocate F: f32[128] @local { " THREADS
                      "evaluate call<i32> add4(&A, &F, b * 4, 0, 64, 64) }",
               *four = "allocate F: f32[512] @local { " THREADS "for i in 0..2 { for j in 0..2 { "
                       "evaluate call<i32> add4(&A, &F, b * 4, i * 256 + j * 64, 64, 128) } } }";

    prints(one, "uint F[4];");
    prints(one, "tec_add4(&A[b * 4], 64, &F[0]);");
    prints(four, "uint F[16];");
    prints(four, "&F[i * 8 + j * 4]);");
}

Test(cuda_text, instructions_of_a_warp_are_refused_where_a_warp_does_not_come_together)
{
    refuses("allocate F: f32[128] @local { for t in 0..16 threadIdx.x { B[t] = 0.0 } "
            "evaluate call<i32> add4(&A, &F, b * 4, 0, 64, 64) }",
            "'add4' is done by 32 threads together, and the launch has 16 along x");
    refuses("allocate F: f32[128] @local { for t in 0..32 threadIdx.x { "
            "evaluate call<i32> add4(&A, &F, b * 4, 0, 64, 64) } }",
            "'add4' is done by 32 threads together, and stands in the loop 't' over threadIdx.x");
    refuses("allocate F: f32[128] @local { " THREADS "evaluate call<i32> add4(&A, &F, b * 4, 0, 64, 64) "
            "B[b] = F[0] }",
            "'F' lies in the registers of 32 threads, where instructions of these alone read and write it");
    refuses("allocate F: f32[256] @local { " THREADS "evaluate call<i32> add4(&A, &F, b * 4, 32, 64, 128) }",
            "the operand 'F' of 'add4' at '32' is not proven to be one of the tiles");
    refuses(
        "allocate F: f32[128] @local { " THREADS "evaluate call<i32> add4(&A, &F, b * 4, 0, 65, 64) }",
        "the rows of 'A' are '65' elements apart, which is no multiple of the 16 bytes that 'add4' wants");
}

Test(cuda_text, copies_are_begun_where_the_element_has_four_or_eight_bytes)
{
    const char *begin = "allocate S: f32[32] @shared { attribute async_copy(1) { S[t] = A[t] } "
                        "evaluate call<i32> tec.async_commit() "
                        "evaluate call<i32> tec.async_wait(0) B[t] = S[t] }";

    has(begin, "tec_async_copy<4>(&S[t], &A[t]);");
    has(begin, "tec_async_commit();");
    has(begin, "tec_async_wait<0>();");
    has("allocate S: f16[32] @shared { attribute async_copy(1) { S[t] = H[t] } B[t] = f32(S[t]) }",
        "S[t] = tec_f16_store(tec_f16_load(H[t]));");
}

static const char *prepared_text(const char *text)
{
    return ir_program_text(cx, prepared(text, target_parse(cx, "cuda")));
}

static void is_guarded(const char *program, const char *condition)
{
    const char *text = prepared_text(program);

    cr_assert(strstr(text, condition ? condition : "narrow"), "'%s' is not in\n%s", condition, text);
    cr_assert(condition || !strstr(text, "if "), "a condition in\n%s", text);
}

Test(cuda_text, sizes_below_a_power_of_two_are_computed_in_32_bits)
{
    is_guarded("program p(symbol n, symbol m, A: f32[n * m], out B: f32[n * m]) {\n"
               "  for b in 0..n blockIdx.x { for j in 0..m { B[b * m + j] = A[b * m + j] } }\n}\n",
               "if n < 65536 && m < 32768 {");
    is_guarded("program p(symbol n, symbol m, A: f32[n * 1024], out B: f32[n * 1024]) {\n"
               "  for b in 0..n blockIdx.x { for t in 0..1024 threadIdx.x { B[b * 1024 + t] = A[b * 1024 + "
               "t] } }\n}\n",
               "if n < 2097152 {");
    /* the variable of a loop around the launches is bounded by its range */
    is_guarded("program p(symbol n, A: f32[n], out B: f32[n]) {\n"
               "  for i in 0..n { for t in 0..32 threadIdx.x { B[i] = A[i] } }\n}\n",
               "if n < 1073741824 {");
    is_guarded(
        "program p(symbol n, A: f32[n * 64], out B: f32[n * 64]) where n <= 100 {\n"
        "  for b in 0..n blockIdx.x { for t in 0..64 threadIdx.x { B[b * 64 + t] = A[b * 64 + t] } }\n}\n",
        NULL);
}

Test(cuda_text, an_index_beyond_32_bits_at_every_size_has_64_bits_alone)
{
    const char *text = prepared_text("program p(symbol n, A: f32[4], out B: f32[n]) {\n"
                                     "  for b in 0..n blockIdx.x { B[b] = A[b * 4294967296 % 3] }\n}\n");

    cr_assert_null(strstr(text, "narrow"), "%s", text);
    cr_assert_null(strstr(text, "if "), "%s", text);
    text = prepared_text("program p(symbol n, A: f32[4], out B: f32[n]) where n >= 100000 {\n"
                         "  for b in 0..n blockIdx.x { B[b] = A[b * 65536 % 3] }\n}\n");
    cr_assert_null(strstr(text, "narrow"), "%s", text);
}
