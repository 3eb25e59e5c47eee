/* tests/tree/private.c -- which buffers are private to the iterations of a loop: each writes all that it
 * reads before it reads it. Wherever the answer is yes, lowering with a buffer for each iteration keeps the
 * results; the tests of lowering and the fuzzer hold that. Here are the yes and the no of each rule. */
#include <criterion/criterion.h>

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
TestSuite(private, .init = setup, .fini = teardown);

/* Whether the first buffer of the program is private to the loop `i`. */
static bool is_private(const char *text)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);

    cr_assert(p, "%s\n%s", tec_context_error(cx), text);
    tree_view view = {cx, p, ir_facts_of_program(cx, p)};
    tree_sites all = tree_all_sites(cx, p->body);
    for (int k = 0; k < all.n; k++)
        for (int j = 0; j < all.at[k].n_loops; j++)
            if (base_same(all.at[k].loop[j]->loop.var->var.name, "i"))
                return tree_private_to_iteration(&view, &all, p->buffers[0], all.at[k].loop[j]->loop.var);
    cr_assert(false, "no loop 'i'");
    return false;
}

/* A program with P, whose loop i holds the statements. */
static const char *around(const char *statements)
{
    return base_format(cx,
                       "program p(symbol n, A: f32[n, 8], out B: f32[n, 8]) where n >= 1 {\n"
                       "  buffer P: f32[8]\n  for i in 0..n {\n%s  }\n}\n",
                       statements);
}

#define WRITES(loop, bind, where)                                                                            \
    "    " loop " { block P(x = " bind " in 0..8) where " where " { reads A[0, x] writes P[x] "              \
    "P[x] = A[0, x] } }\n"
#define READS(loop, bind, where, at)                                                                         \
    "    " loop " { block B(y = i in 0..n, x = " bind " in 0..8) where " where " { reads P[" at "] "         \
    "writes B[y, x] B[y, x] = P[" at "] } }\n"
#define READS_ALL READS("for l in 0..8", "l", "true", "7 - x")

Test(private, all_is_written_before_it_is_read)
{
    cr_assert(is_private(around(WRITES("for j in 0..8", "j", "true") READS_ALL)));
    cr_assert(is_private(around(WRITES("for j in 0..8", "7 - j", "true") READS_ALL)));
    cr_assert_not(is_private(around(READS_ALL WRITES("for j in 0..8", "j", "true"))), "read first");
    cr_assert_not(is_private(around(WRITES("for j in 0..7", "j", "true") READS_ALL)), "P[7] is left");
}

/* `for j in 0..3 { for k in 0..3 }` goes beyond the 8 elements: the predicate cuts the block to its domain.
 * */
Test(private, tiles_may_reach_over_the_domain)
{
    cr_assert(is_private(
        around(WRITES("for j in 0..3 { for k in 0..3", "j*3 + k", "j*3 + k < 8") "}\n" READS_ALL)));
    cr_assert_not(is_private(
        around(WRITES("for j in 0..3 { for k in 0..3", "j*3 + k", "j*3 + k < 7") "}\n" READS_ALL)));
}

/* A loop that may have no iteration writes nothing. */
Test(private, loops_that_may_not_run_fill_nothing)
{
    cr_assert(is_private(around(WRITES("for k in 0..n { for j in 0..8", "j", "true") "}\n" READS_ALL)));
    cr_assert_not(
        is_private(around(WRITES("for k in 0..n - 1 { for j in 0..8", "j", "true") "}\n" READS_ALL)));
}

/* What the first iteration alone writes, later ones find there. */
Test(private, a_writer_runs_whenever_the_reader_does)
{
    cr_assert_not(is_private(around(WRITES("for j in 0..8", "j", "i < 1") READS_ALL)));
    cr_assert(is_private(
        around(WRITES("for j in 0..8", "j", "i < 1") READS("for l in 0..8", "l", "i < 1", "7 - x"))));
    cr_assert(is_private(
        around(WRITES("for j in 0..8", "j", "i < 2") READS("for l in 0..8", "l", "i < 1", "7 - x"))));
}

/* z has no dimension in P: the iterations that it leaves out read what the first one wrote. */
Test(private, a_variable_that_indexes_nothing_may_leave_iterations_out)
{
    const char *text = "program p(A: f32[8], out B: f32[8, 8]) {\n"
                       "  buffer P: f32[8]\n"
                       "  for i in 0..8 {\n"
                       "    for j in 0..8 { block P(z = i in 0..1, x = j in 0..8) where i < 1 { reads A[x]\n"
                       "      writes P[x] P[x] = A[x] } }\n"
                       "    for l in 0..8 { block B(y = i in 0..8, x = l in 0..8) where %s { reads P[x]\n"
                       "      writes B[y, x] B[y, x] = P[x] } }\n"
                       "  }\n"
                       "}\n";

    cr_assert_not(is_private(base_format(cx, text, "true")));
    cr_assert(is_private(base_format(cx, text, "i < 1")));
}

/* The parts of a loop that was cut go on where another one ends. */
Test(private, parts_are_one_box_where_they_leave_no_gap)
{
#define PART(name, loop, bind)                                                                               \
    "    " loop " { block " name "(x = " bind " in 0..8) { reads A[0, x] writes P[x] P[x] = A[0, x] } }\n"
    cr_assert(
        is_private(around(PART("P", "for j in 0..5", "j") PART("Q", "for k in 0..3", "k + 5") READS_ALL)));
    cr_assert_not(
        is_private(around(PART("P", "for j in 0..5", "j") PART("Q", "for k in 0..2", "k + 6") READS_ALL)),
        "P[5] is left");
}

/* What lies outside of the buffer is not read, whatever the index looks like. */
Test(private, reads_stay_within_the_shape)
{
    cr_assert(is_private(around(
        WRITES("for j in 0..8", "j", "true") "    block B(y = i in 0..n) { reads P[y + 3] writes B[y, 0]\n"
                                             "      B[y, 0] = select(y + 3 < 8, P[y + 3], 1.0) }\n")));
}

/* A halo is written anew in each iteration of a loop further in. */
Test(private, a_halo_is_written_before_each_use)
{
    const char *text = "program p(A: f32[66], out B: f32[2, 64]) {\n"
                       "  buffer P: f32[66]\n"
                       "  for i in 0..2 { for t in 0..8 {\n"
                       "    for j in 0..%d { block P(x = t*8 + j in 0..66) { reads A[x] writes P[x]\n"
                       "      P[x] = A[x] } }\n"
                       "    for j in 0..8 { block B(y = i in 0..2, x = t*8 + j in 0..64) { reads P[x:+3]\n"
                       "      writes B[y, x] B[y, x] = P[x] + P[x + 2] } }\n"
                       "  } }\n"
                       "}\n";

    cr_assert(is_private(base_format(cx, text, 10)));
    cr_assert_not(is_private(base_format(cx, text, 9)));
}

/* A reduction that starts in the iteration, or goes on with what the one before left. */
Test(private, a_reduction_is_whole_within_the_iteration)
{
#define SUM(loops, init, end)                                                                                \
    "program p(A: f32[4, 8], out B: f32[4, 8]) {\n"                                                          \
    "  buffer P: f32[1]\n"                                                                                   \
    "  for i in 0..4 {\n"                                                                                    \
    "    " loops " { block S(z = 0 in 0..1, k reduce = j in 0..8) { reads A[0, k] writes P[z]\n"             \
    "      " init " P[z] sum= A[0, k] } " end "}\n"                                                          \
    "    block B(y = i in 0..4) { reads P[0] writes B[y, 0] B[y, 0] = P[0] }\n"                              \
    "  }\n"                                                                                                  \
    "}\n"
    cr_assert(is_private(SUM("for j in 0..8", "init { P[z] = 0.0 }", "")));
    cr_assert_not(is_private(SUM("for j in 0..8", "", "")));
}

/* A block of blocks is seen through: it writes a row, or the row but for what a condition leaves out. */
Test(private, a_block_of_blocks_fills_what_its_loops_fill)
{
#define ROWS(inside)                                                                                         \
    around("    block P(z = 0 in 0..1) { reads A[0, 0:8] writes P[0:8]\n"                                    \
           "      for x in 0..8 { " inside " } }\n" READS_ALL)
    cr_assert(is_private(ROWS("P[x] = A[0, x]")));
    cr_assert_not(is_private(ROWS("if x < 7 { P[x] = A[0, x] }")));
}

/* What only says something about the statements below does not hide them. */
Test(private, a_block_of_blocks_is_seen_through_an_attribute)
{
    cr_assert(is_private(ROWS("attribute tensorize(\"row\") { P[x] = A[0, x] }")));
    cr_assert_not(is_private(ROWS("attribute tensorize(\"row\") { if x < 7 { P[x] = A[0, x] } }")));
}

/* A rolling buffer: with i standing still, i % 3 is one row, whatever its number. */
Test(private, a_row_may_have_any_number)
{
#define ROLLING(columns)                                                                                     \
    "program p(A: f32[9, 8], out B: f32[9, 8]) {\n"                                                          \
    "  buffer P: f32[3, 8]\n"                                                                                \
    "  for i in 0..9 {\n"                                                                                    \
    "    for j in 0.." columns " { block P(y = i in 0..9, x = j in 0..8) {\n"                                \
    "      reads A[y, x] writes P[y % 3, x] P[y % 3, x] = A[y, x] } }\n"                                     \
    "    for l in 0..8 { block B(y = i in 0..9, x = l in 0..8) {\n"                                          \
    "      reads P[y % 3, 7 - x] writes B[y, x] B[y, x] = P[y % 3, 7 - x] } }\n"                             \
    "  }\n"                                                                                                  \
    "}\n"
    cr_assert(is_private(ROLLING("8")));
    cr_assert_not(is_private(ROLLING("7")));
}

/* Lanes that are folded: the second half is read, and the first half, which it is added to, must have been
 * put there as well. */
Test(private, a_block_needs_what_it_reads_and_what_it_adds_to)
{
#define FOLD(filled, at)                                                                                     \
    "program p(A: f32[4, 8], out B: f32[4, 4]) {\n"                                                          \
    "  buffer P: f32[8]\n"                                                                                   \
    "  for i in 0..4 {\n"                                                                                    \
    "    for j in " filled " { block P(x = " at " in 0..8) { reads A[0, x] writes P[x] P[x] = A[0, x] } }\n" \
    "    for v in 0..4 { block F(x = v in 0..4) { reads P[x + 4] writes P[x] P[x] sum= P[x + 4] } }\n"       \
    "    for l in 0..4 { block B(y = i in 0..4, x = l in 0..4) {\n"                                          \
    "      reads P[x] writes B[y, x] B[y, x] = P[x] } }\n"                                                   \
    "  }\n"                                                                                                  \
    "}\n"
    cr_assert(is_private(FOLD("0..8", "j")));
    cr_assert_not(is_private(FOLD("0..4", "j + 4")), "P[0:4] goes on from the iteration before");
    cr_assert_not(is_private(FOLD("0..4", "j")), "P[4:8] is not written");
}
