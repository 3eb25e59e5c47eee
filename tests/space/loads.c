/* tests/space/loads.c -- the default schedule of a product of many tensors does not depend on their order. */
#include <criterion/criterion.h>
#include <string.h>

#include "space/space.h"
#include "te/text.h"

enum { TENSORS = 24 };

/* sum[k](T0[y, k, z] * T1[y, k, z] * ...), with B[k], which alone is used again for each y and z, at this
 * place. */
static const char *text_of(tec_context *cx, int place)
{
    base_text head = {0}, product = {0};

    for (int i = 0; i <= TENSORS; i++) {
        if (i == place)
            base_addf(cx, &product, "%sB[k]", i ? " * " : "");
        if (i == TENSORS)
            break;
        base_addf(cx, &head, ", T%d: f32[64, 256, 32]", i);
        base_addf(cx, &product, "%sT%d[y, k, z]", i || place == 0 ? " * " : "", i);
    }
    return base_format(cx, "def f(B: f32[256]%s) { C[y, z] = sum[k](%s) return C }", base_text_str(cx, &head),
                       base_text_str(cx, &product));
}

static const char *default_trace(tec_context *cx, int place)
{
    te_file *f = te_parse(cx, "t", text_of(cx, place));
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    sched *s = f && t ? space_default(cx, te_tree(cx, f->defs.at[0]), t) : NULL;

    cr_assert(s, "%s", tec_context_error(cx));
    return sched_trace_text(cx, s);
}

Test(loads, of_a_block_are_all_looked_at)
{
    tec_context *cx = tec_context_new();
    const char *first = default_trace(cx, 0);

    cr_assert(strstr(first, "set_scope(C.cache.global, local)"), "%s", first);
    for (int place = 1; place <= TENSORS; place += 5)
        cr_assert_str_eq(default_trace(cx, place), first);
    tec_context_free(cx);
}
