/* tests/recipes/programs/inside.c -- what recipes add and no command shows: an operator of the table, the C
 * function of a primitive. */
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "ops/op.h"
#include "te/te.h"
#include "tec/tec.h"

/* The tree of one operator on a vector; NULL with an error in cx. */
static const char *tree_of(tec_context *cx, const char *name)
{
    const ir_expr *extent = ir_int(cx, 8);
    op_type type = {.dtype = BASE_F32, .n = 1, .dim = &extent};
    op_call c = {.cx = cx,
                 .op = op_find(name),
                 .name = "toy",
                 .n_inputs = 1,
                 .input = &type,
                 .facts = ir_facts_new(cx, NULL)};
    te_def *d = te_def_new(cx, "toy");
    te_tensor *in = te_input(d, "x", type.dtype, type.dim, 1), *out;

    if (!c.op || !op_infer(&c) || !op_emit(&c, op_choose(&c), d, &in, false, &out))
        return NULL;
    te_output(d, out);
    const ir_program *p = te_tree(cx, d);
    return p ? ir_program_text(cx, p) : NULL;
}

static const char *trace_of(tec_context *cx)
{
    tec_def *d = tec_def_new(cx, "scale");
    const tec_expr *i = tec_axis(cx, "i", tec_int(cx, 4));
    tec_tensor *A = tec_input(d, "A", TEC_F32, tec_int(cx, 4));

    tec_output(d, tec_compute(d, "B", tec_mul(cx, tec_at(A, i), tec_const(cx, TEC_F32, 3)), i));
    tec_schedule *s = tec_schedule_new(cx, d, NULL);
    return tec_toy(s, "B.i") ? tec_schedule_trace(s) : tec_schedule_error(s);
}

int main(void)
{
    tec_context *cx = tec_context_new();
    const char *tree = tree_of(cx, "toy_square"), *trace = trace_of(cx);
    bool good = tree && strstr(tree, "x[a0] * x[a0]") && trace && strstr(trace, "toy(B.i)");

    if (!good)
        printf("%s\n%s\n", tree ? tree : tec_context_error(cx), trace);
    tec_context_free(cx);
    return !good;
}
