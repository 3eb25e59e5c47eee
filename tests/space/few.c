/* tests/space/few.c -- a second default schedule for a few rows. */
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
    return space_default_ranges(cx, tree, s);
}

/* "12: 12, 14: 7, ": the last number of rows of each range, and by how many its schedule splits the rows. */
static const char *heights(const space_ranges *ranges)
{
    base_text out = {0};

    for (int i = 0; i < ranges->n; i++) {
        const char *at = strstr(ranges->at[i].trace, "split(C.cache.global.y, ");
        int height = 0;

        cr_assert(at && (sscanf(at, "split(C.cache.global.y, _, %*d, %d)", &height) == 1 ||
                         sscanf(at, "split(C.cache.global.y, _, %d)", &height) == 1),
                  "%s", ranges->at[i].trace);
        if (i + 1 < ranges->n)
            base_addf(cx, &out, "%d: %d, ", (int)ranges->at[i].to, height);
        else
            base_addf(cx, &out, "above: %d", height);
    }
    return base_text_str(cx, &out);
}

Test(few, numbers_with_a_short_tile_get_another_height)
{
    const space_ranges *r = ranges_of(dense, avx512);

    cr_assert(r && r->symbol == 0);
    cr_assert(
        eq(str, (char *)heights(r), "12: 12, 15: 9, 24: 12, 27: 9, 48: 12, 50: 9, 60: 12, 61: 9, above: 12"));
    cr_assert(r->at[r->n - 1].to == INT64_MAX);
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
