/* tests/lang/params.c -- parameters of programs whose types alone are read. */
#include "lang/params.h"

#include "tests/lang/kit.h"

TestSuite(params, .init = open_context, .fini = close_context);

/* 80 GB of embeddings: to say whether the program is well typed takes no memory for them. */
Test(params, that_are_zero_take_no_memory)
{
    const graph_module *m = lang_parse(cx, "p.tecp",
                                       "param W: f32[10000000, 2048]\n"
                                       "def main(x: f32[n, 10000000]) -> f32[n, 2048] { matmul(x, W) }\n",
                                       lang_params_zero(cx));

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_lt(base_used(cx) >> 20, 64);
}
