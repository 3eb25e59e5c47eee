/* tests/space/few.c -- more default schedules for one row and a few. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "space/space.h"
#include "space/task.h"
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

TestSuite(few, .init = open_context, .fini = close_context);

static const char dense[] = "def f(n, A: f32[n, 64], B: f32[64, 64]) where n >= 1 {\n"
                            "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                            "  return C\n"
                            "}\n",
                  avx512[] = "llvm -mcpu=skylake-avx512 -num-cores=1";

static const space_ranges *ranges_of(const char *text, const char *machine)
{
    const te_file *f = te_parse(cx, "few.te", text);
    const target *t = target_parse(cx, machine);
    const ir_program *tree = f ? te_tree(cx, f->defs.at[0]) : NULL;
    sched *s = tree && t ? space_default(cx, tree, t) : NULL;

    cr_assert(s && !sched_failed(s), "%s", tec_context_error(cx));
    return space_default_ranges(cx, f->defs.at[0], s);
}

/* "0: 12, 1 alone: 0, 12: 12, 15: 9, ": the last number of rows of each range, and by how many its schedule
 * splits the rows; 0: not at all. */
static const char *heights(const space_ranges *ranges)
{
    base_text out = {0};

    for (int i = 0; i < ranges->n; i++) {
        const char *at = strstr(ranges->at[i].trace, "split(C.cache.global.y, ");
        int height = 0;

        cr_assert(at == NULL || sscanf(at, "split(C.cache.global.y, _, %*d, %d)", &height) == 1 ||
                      sscanf(at, "split(C.cache.global.y, _, %d)", &height) == 1,
                  "%s", ranges->at[i].trace);
        if (i + 1 < ranges->n)
            base_addf(cx, &out, "%d%s: %d, ", (int)ranges->at[i].to, ranges->at[i].fixed ? " alone" : "",
                      height);
        else
            base_addf(cx, &out, "above: %d", height);
    }
    return base_text_str(cx, &out);
}

Test(few, numbers_with_a_short_tile_get_another_height)
{
    const space_ranges *r = ranges_of(dense, avx512);

    cr_assert(r && r->symbol == 0);
    cr_assert(eq(str, (char *)heights(r),
                 "0: 12, 1 alone: 0, 12: 12, 15: 9, 24: 12, 27: 9, 48: 12, 50: 9, "
                 "60: 12, 61: 9, above: 12"));
    cr_assert(r->at[r->n - 1].to == INT64_MAX);
}

/* A definition that excludes one row has no schedule for it, and the context stays without an error. */
Test(few, one_row_may_be_excluded)
{
    const space_ranges *r = ranges_of("def f(n, A: f32[n, 64], B: f32[64, 64]) where n >= 2 {\n"
                                      "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                                      "  return C\n"
                                      "}\n",
                                      avx512);

    cr_assert(r && !base_failed(cx));
    cr_assert(
        eq(str, (char *)heights(r), "12: 12, 15: 9, 24: 12, 27: 9, 48: 12, 50: 9, 60: 12, 61: 9, above: 12"));
}

/* Panels have 2 vectors. Of eight, one row takes four at a time; of six, three, as four do not divide six.
 * One vector in each row leaves nothing to gain. */
Test(few, one_row_takes_several_panels)
{
    static const char panels[] = "def f(n, A: f32[n, 64], B: f32[%d, 64, 32]) {\n"
                                 "  S[y, b, i] = sum[k](A[y, k] * B[b, k, i])\n"
                                 "  C[y, x: %d] = S[y, floordiv(x, 32), x %% 32]\n"
                                 "  return C\n"
                                 "}\n",
                      narrow[] = "def f(n, A: f32[n, 64], B: f32[64, 16]) {\n"
                                 "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                                 "  return C\n"
                                 "}\n";
    const space_ranges *eight = ranges_of(base_format(cx, panels, 8, 256), avx512),
                       *six = ranges_of(base_format(cx, panels, 6, 192), avx512),
                       *few = ranges_of(narrow, avx512);

    cr_assert(eight && eight->at[1].fixed && strstr(eight->at[1].trace, "split(C.x, _, 1, 8, 16)"));
    cr_assert(six && six->at[1].fixed && strstr(six->at[1].trace, "split(C.x, _, 1, 6, 16)"), "%s",
              six->at[1].trace);
    for (int i = 0; few && i < few->n; i++)
        cr_assert(not(few->at[i].fixed));
}

Test(few, one_schedule_is_enough)
{
    static const char fixed[] = "def f(A: f32[13, 64], B: f32[64, 64]) {\n"
                                "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                                "  return C\n"
                                "}\n",
                      columns[] = "def f(n, A: f32[8, 64], B: f32[64, n]) where n >= 1 {\n"
                                  "  C[y, x] = sum[k](A[y, k] * B[k, x])\n"
                                  "  return C\n"
                                  "}\n",
                      nest[] = "def f(n, A: f32[n, 64]) {\n"
                               "  C[y, x] = exp(A[y, x])\n"
                               "  return C\n"
                               "}\n";

    cr_assert(ranges_of(fixed, avx512) == NULL);
    cr_assert(ranges_of(columns, avx512) == NULL);
    cr_assert(ranges_of(nest, avx512) == NULL);
    cr_assert(ranges_of(dense, "opencl") == NULL);
}
