/* tests/fuzz/programs/draw.c -- what is drawn is a program: a finding of `tec fuzz --programs` is never one
 * of the drawing itself. */
#include <criterion/criterion.h>

#include "fuzz/programs/inside.h"
#include "graph/graph.h"
#include "lang/lang.h"

/* A text in which extents can never be equal is refused where it is read: none may be drawn. */
static void draws_a_program(uint64_t seed, bool with_main)
{
    tec_context *cx = tec_context_new();
    uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u;
    const char *text = fuzz_program_text(cx, &state, with_main);
    graph_module *m = lang_parse(cx, "p.tecp", text, NULL);
    fuzz_program p = {.cx = cx, .state = state, .m = m};

    cr_assert(m, "seed %llu: %s\n%s", (unsigned long long)seed, tec_context_error(cx), text);
    cr_assert((with_main || fuzz_program_function(&p)) && graph_verify(m), "seed %llu: %s",
              (unsigned long long)seed, tec_context_error(cx));
    tec_context_free(cx);
}

Test(draw, each_text_is_a_program)
{
    for (uint64_t seed = 1000; seed < 2000; seed++)
        draws_a_program(seed, true);
}

Test(draw, each_function_is_one)
{
    for (uint64_t seed = 0; seed < 1000; seed++)
        draws_a_program(seed, false);
}
