/* tests/space/halves.c -- default schedules of operators on 16-bit floats. */
#include <criterion/criterion.h>
#include <string.h>

#include "space/space.h"
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

TestSuite(halves, .init = open_context, .fini = close_context);

/* The default schedule of sums for four columns, which read each element of P four times. */
static const char *trace(const char *type)
{
    const te_file *f =
        te_parse(cx, "halves.te",
                 base_format(cx,
                             "def f(A: %s[64, 33, 33], B: f32[2, 2, 64, 4]) {\n"
                             "  P[y: 33, x: 33, c: 64] = f32(A[c, y, x]) @role(prologue) "
                             "@keep(true)\n"
                             "  S[y: 32, x: 32, o: 4] = sum[i: 2, j: 2, c: 64](P[y + i, x + j, "
                             "c] * B[i, j, c, o]) @role(anchor)\n"
                             "  return S\n"
                             "}\n",
                             type));
    const ir_program *tree = f ? te_tree(cx, f->defs.at[0]) : NULL;
    sched *s = tree ? space_default(cx, tree, target_parse(cx, "llvm -mcpu=x86-64-v4 -num-cores=1")) : NULL;

    cr_assert(s && !sched_failed(s), "%s", tec_context_error(cx));
    return sched_trace_text(cx, s);
}

/* Computed where the sums read it, each element would be converted by an instruction of its own. */
Test(halves, what_is_widened_has_a_place_of_its_own)
{
    cr_assert(strstr(trace("f32"), "compute_inline(P)"));
    cr_assert(!strstr(trace("f16"), "compute_inline(P)"));
    cr_assert(!strstr(trace("bf16"), "compute_inline(P)"));
}
