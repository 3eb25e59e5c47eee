/* tests/tree/padding.c -- whether the blocks that write a buffer write all of it. What a "no padding" rests
 * on is held by tests/schedule/padding.c, which runs the trees; here are the yes and the no of each rule. */
#include <criterion/criterion.h>

#include "ir/text.h"
#include "tree/touch.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}
TestSuite(padding, .init = setup, .fini = teardown);

/* Of the buffer P: [n + 1, 8], which these statements use, for the reader (NULL: any). */
static bool leaves(const char *statements, const char *reader)
{
    const char *text = base_format(cx,
                                   "program p(symbol n, out B: f32[n]) where n >= 1 {\n"
                                   "  buffer P: f32[n + 1, 8]\n%s}\n",
                                   statements);
    const ir_program *p = ir_parse_program(cx, "test.tir", text);

    cr_assert(p, "%s\n%s", tec_context_error(cx), text);
    tree_view view = {cx, p, ir_facts_of_program(cx, p)};
    return tree_leaves_padding(&view, p->body, p->buffers[0], reader);
}

/* rows and columns from `y` and `x` on */
#define WRITES(name, rows, columns, y, x)                                                                    \
    "  for " name ".i in 0.." rows " { for " name ".j in 0.." columns " { block " name "(v = " name          \
    ".i in 0.." rows ", w = " name ".j in 0.." columns ") { writes P[v + " y ", w + " x "] P[v + " y         \
    ", w + " x "] = 1.0 } } }\n"
#define READS "  for C.i in 0..n { block C(v = C.i in 0..n) { reads P[v, 0] writes B[v] B[v] = P[v, 0] } }\n"

Test(padding, one_block_writes_up_to_the_end_or_does_not)
{
    cr_assert_not(leaves(WRITES("W", "n + 1", "8", "0", "0"), NULL));
    cr_assert(leaves(WRITES("W", "n", "8", "0", "0"), NULL), "the last row");
    cr_assert(leaves(WRITES("W", "n + 1", "7", "0", "0"), NULL), "the last column");
    cr_assert_not(leaves(READS, NULL), "nobody writes");
}

Test(padding, what_lies_in_front_of_the_first_element_does_not_count)
{
    cr_assert_not(leaves(WRITES("W", "n", "8", "1", "0"), NULL));
}

Test(padding, one_block_goes_on_where_another_ends)
{
    cr_assert_not(leaves(WRITES("V", "1", "8", "0", "0") WRITES("W", "n", "8", "1", "0"), NULL));
    cr_assert_not(leaves(WRITES("W", "n", "8", "1", "0") WRITES("V", "1", "8", "0", "0"), NULL));
    cr_assert(leaves(WRITES("V", "1", "8", "0", "0") WRITES("W", "n", "7", "1", "0"), NULL));
    cr_assert(leaves(WRITES("V", "1", "7", "0", "0") WRITES("W", "n", "8", "1", "0"), NULL));
    cr_assert_not(leaves(WRITES("V", "n + 1", "3", "0", "0") WRITES("W", "n + 1", "3", "0", "5")
                             WRITES("U", "n + 1", "2", "0", "3"),
                         NULL));
    cr_assert(leaves(WRITES("V", "n + 1", "3", "0", "0") WRITES("W", "n + 1", "3", "0", "5"), NULL));
}

Test(padding, two_corners_leave_the_other_two)
{
    cr_assert(leaves(WRITES("V", "1", "4", "0", "0") WRITES("W", "n", "4", "1", "4"), NULL));
    cr_assert(leaves(WRITES("V", "1", "8", "0", "0") WRITES("W", "n", "4", "1", "4"), NULL), "front columns");
    cr_assert_not(leaves(WRITES("V", "1", "8", "0", "0") WRITES("W", "n", "4", "1", "4")
                             WRITES("U", "n", "4", "1", "0"),
                         NULL));
}

/* Two that begin alike are taken for pieces of one block, of which each runs its part alone. */
Test(padding, pieces_write_what_they_have_in_common)
{
    cr_assert_not(leaves(WRITES("V", "n + 1", "8", "0", "0") WRITES("W", "n + 1", "8", "0", "0"), NULL));
    cr_assert(leaves(WRITES("V", "n + 1", "8", "0", "0") WRITES("W", "n + 1", "7", "0", "0"), NULL));
}

Test(padding, a_writer_behind_the_reader_comes_too_late)
{
    const char *late = WRITES("V", "1", "8", "0", "0") READS WRITES("W", "n", "8", "1", "0");

    cr_assert(leaves(late, "C"));
    cr_assert_not(leaves(late, NULL));
    cr_assert_not(leaves(WRITES("V", "1", "8", "0", "0") WRITES("W", "n", "8", "1", "0") READS, "C"));
    cr_assert_not(leaves("for t in 0..2 {\n" WRITES("V", "1", "8", "0", "0")
                             READS WRITES("W", "n", "8", "1", "0") "}\n",
                         "C"),
                  "an iteration before has written");
}

Test(padding, blocks_that_add_write_nothing_anew)
{
    cr_assert(leaves(
        WRITES(
            "V", "n", "8", "0",
            "0") "  for U.i in 0..n + 1 { for U.j in 0..8 { block U(v = U.i in 0..n + 1, w = U.j in 0..8) {\n"
                 "    reads P[v, w] writes P[v, w] P[v, w] sum= 1.0 } } }\n",
        NULL));
}
