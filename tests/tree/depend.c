/* tests/tree/depend.c -- why iterations of a loop do not disturb each other in a buffer: each reason, and
 * what is
 * said where there is none. */
#include <criterion/criterion.h>
#include <string.h>

#include "ir/text.h"
#include "tree/depend.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}
TestSuite(depend, .init = setup, .fini = teardown);

static const ir_stmt *at_once(const ir_stmt *loop)
{
    ir_stmt *copy = ir_stmt_copy(cx, loop);

    copy->loop.how = IR_PARALLEL;
    return copy;
}

/* The reason, if its iterations ran at the same time, for the named loop and the first buffer of the
 * program. */
static tree_reason reason_of(const char *text, const char *loop, const char **why)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);

    cr_assert(p, "%s", tec_context_error(cx));
    tree_view view = {cx, p, ir_facts_of_program(cx, p)};
    tree_sites all = tree_all_sites(cx, p->body);
    for (int i = 0; i < all.n; i++)
        for (int j = 0; j < all.at[i].n_loops; j++)
            if (base_same(all.at[i].loop[j]->loop.var->var.name, loop))
                return tree_reason_of_loop(&view, &all, p->buffers[0], at_once(all.at[i].loop[j]), why);
    cr_assert(false, "no loop '%s'", loop);
    return TREE_DEPENDS;
}

/* P under i, written in tiles of `stored` and read in the same iteration from `read` on; k repeats the loop.
 * */
static const char *tiles(const char *stored, const char *read)
{
    return base_format(cx,
                       "program p(A: f32[64], out B: f32[8, 8]) {\n"
                       "  buffer P: f32[64]\n"
                       "  for i in 0..8 {\n"
                       "    for j in 0..8 { block P(v = i*8 + j in 0..64) where %s { reads A[v] writes P[v]\n"
                       "      P[v] = A[v] } }\n"
                       "    for j in 0..8 { block B(y = i in 0..8, x = j in 0..8) { reads P[%s]\n"
                       "      writes B[y, x] B[y, x] = P[%s] } }\n"
                       "  }\n"
                       "}\n",
                       stored, read, read);
}

Test(depend, a_buffer_that_each_iteration_fills_before_it_reads_is_private)
{
    const char *why;

    cr_assert_eq(reason_of(tiles("true", "y*8 + 7 - x"), "i", &why), TREE_PRIVATE);
    cr_assert_eq(why, NULL);
}

/* Only half of the tile is written, or another one is read. */
Test(depend, what_an_iteration_does_not_fill_is_not_private)
{
    const char *why;

    cr_assert_neq(reason_of(tiles("j < 4", "y*8 + 7 - x"), "i", &why), TREE_PRIVATE);
    cr_assert_eq(reason_of(tiles("true", "63 - y*8 - x"), "i", &why), TREE_DEPENDS);
    cr_assert(strstr(why, "uses only its own elements of 'P'"), "%s", why);
}

#define STEPS(from)                                                                                          \
    "program p(A: f32[9, 4], out B: f32[4]) {\n"                                                             \
    "  buffer C: f32[9, 4]\n"                                                                                \
    "  for j in 0..4 { block C.first(x = j in 0..4) { reads A[0, x] writes C[0, x] C[0, x] = A[0, x] } }\n"  \
    "  for t in 0..8 { for l in 0..4 {\n"                                                                    \
    "    block C(s scan = t in 0..8, x = l in 0..4) { reads C[s, " from "], A[s + 1, x]\n"                   \
    "      writes C[s + 1, x] C[s + 1, x] = C[s, " from "] + A[s + 1, x] } } }\n"                            \
    "  for j in 0..4 { block B(x = j in 0..4) { reads C[8, x] writes B[x] B[x] = C[8, x] } }\n"              \
    "}\n"

Test(depend, lanes_of_a_scan_own_their_elements)
{
    const char *why;

    cr_assert_eq(reason_of(STEPS("x"), "l", &why), TREE_OWNED);
    cr_assert_eq(why, NULL);
}

Test(depend, steps_of_a_scan_depend_on_each_other)
{
    const char *why;

    cr_assert_eq(reason_of(STEPS("x"), "t", &why), TREE_DEPENDS);
    cr_assert_str_eq(why, "'t' is a scan loop of 'C'");
}

/* A reduction over one iteration, and over several. */
Test(depend, a_loop_that_runs_a_block_once_disturbs_nobody)
{
    const char *text = "program p(A: f32[4], out B: f32[1]) {\n"
                       "  buffer S: f32[1]\n"
                       "  for i in 0..%d { block S(k reduce = i in 0..%d) { reads A[k] writes S[0]\n"
                       "    init { S[0] = 0.0 } S[0] sum= A[k] } }\n"
                       "  block B(x = 0 in 0..1) { reads S[x] writes B[x] B[x] = S[x] }\n"
                       "}\n";
    const char *why;

    cr_assert_eq(reason_of(base_format(cx, text, 1, 1), "i", &why), TREE_ONCE);
    cr_assert_eq(reason_of(base_format(cx, text, 4, 4), "i", &why), TREE_COMBINED);
    cr_assert_str_eq(why, "'i' is a reduction loop of 'S'");
}
