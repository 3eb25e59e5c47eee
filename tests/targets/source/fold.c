/* tests/targets/source/fold.c -- launches with many blocks along y and z become launches along x. That folded
 * kernels compute the same, tests/cuda/grids.sh shows by running them. */
#include <criterion/criterion.h>
#include <string.h>

#include "ir/text.h"
#include "lower/pass.h"
#include "targets/source/source.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(fold, .init = open_context, .fini = close_context);

enum { MOST = 65535 };

/* The program behind the passes `split` and this one; NULL with an error in cx. */
static const char *folded(const char *text)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);
    const char *const pass = "split";

    p = p ? lower_run_passes(&(lower_options){.cx = cx, .target = target_parse(cx, "opencl")}, p, &pass, 1)
          : NULL;
    cr_assert(p, "%s", tec_context_error(cx));
    p = source_fold(cx, p, MOST);
    return p ? ir_program_text(cx, p) : NULL;
}

/* What a single launch becomes: its line of the loop over blocks, or the part from `from` on. */
static void holds(const char *text, const char *part)
{
    const char *out = folded(text);

    cr_assert(out && strstr(out, part), "%s", out ? out : tec_context_error(cx));
}

Test(fold, leaves_what_the_device_takes)
{
    holds("program p(out B: f32[262140]) {\n"
          "  for i in 0..65535 blockIdx.y { for t in 0..4 threadIdx.x { B[i * 4 + t] = 1.0 } }\n"
          "}\n",
          "  attribute launch(0) {\n"
          "    for i in 0..65535 blockIdx.y {\n");
    holds("program p(symbol n, out B: f32[n]) where n <= 100 {\n"
          "  for i in 0..n blockIdx.z { B[i] = 1.0 }\n"
          "}\n",
          "  attribute launch(0) {\n"
          "    for i in 0..n blockIdx.z {\n");
}

Test(fold, counts_all_blocks_along_x)
{
    holds("program p(out B: f32[131072]) {\n"
          "  for i in 0..65536 blockIdx.y { for j in 1..+2 blockIdx.x { B[i * 2 + j - 1] = 1.0 } }\n"
          "}\n",
          "  attribute launch(0) {\n"
          "    for i.blocks in 0..131072 blockIdx.x {\n"
          "      B[floordiv(i.blocks, 2) * 2 + (1 + i.blocks % 2) - 1] = 1.0\n");
}

/* Launches behind one that became two have greater numbers. */
Test(fold, chooses_by_the_sizes)
{
    holds("program p(symbol n, out B: f32[n], out C: f32[1]) {\n"
          "  for i in 0..n blockIdx.z { B[i] = 1.0 }\n"
          "  C[0] = 2.0\n"
          "}\n",
          "  if n <= 65535 {\n"
          "    attribute launch(0) {\n"
          "      for i in 0..n blockIdx.z {\n"
          "        B[i] = 1.0\n"
          "      }\n"
          "    }\n"
          "  } else {\n"
          "    attribute launch(1) {\n"
          "      for i.blocks in 0..n blockIdx.x {\n"
          "        B[i.blocks] = 1.0\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "  attribute launch(2) {\n");
}

static void refuses(const char *text, const char *message)
{
    cr_assert_null(folded(text));
    cr_assert(strstr(tec_context_error(cx), message), "%s", tec_context_error(cx));
}

Test(fold, refuses_more_blocks_than_x_holds)
{
    refuses("program p(out B: f32[4900000000]) {\n"
            "  for i in 0..70000 blockIdx.y { for j in 0..70000 blockIdx.x { B[i * 70000 + j] = 1.0 } }\n"
            "}\n",
            "the loops over blocks from 'i' inwards have 4900000000 iterations: expected at most 2147483647");
}

Test(fold, refuses_loops_that_stand_apart)
{
    refuses("program p(A: f32[1], out B: f32[70000]) {\n"
            "  for i in 0..1 blockIdx.x { if A[0] > 0.0 { for j in 0..70000 blockIdx.y { B[j] = 1.0 } } }\n"
            "}\n",
            "the loop 'j' over blocks has 70000 iterations: expected at most 65535 along y and z, or a loop "
            "directly inside of the other loops over blocks");
}
