/* tests/tools/tune_show.c -- names of kernels in columns: they come from models, and may have any
 * characters. */
#include "tools/tune_show.h"

#include <criterion/criterion.h>
#include <math.h>

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(tune_show, .init = open_context, .fini = close_context);

Test(tune_show, fills_a_short_name_up)
{
    cr_expect_str_eq(tool_tune_name(cx, "mm", 6), "mm    ");
    cr_expect_str_eq(tool_tune_name(cx, "", 3), "   ");
    cr_expect_str_eq(tool_tune_name(cx, "matmul", 6), "matmul");
}

Test(tune_show, takes_the_middle_out_of_a_long_name)
{
    cr_expect_str_eq(tool_tune_name(cx, "abcdefghijkl", 8), "abc..jkl");
    cr_expect_str_eq(tool_tune_name(cx, "abcdefghijkl", 7), "ab..jkl");
}

Test(tune_show, counts_characters_and_not_bytes)
{
    cr_expect_str_eq(tool_tune_name(cx, "größe", 6), "größe ");
    cr_expect_str_eq(tool_tune_name(cx, "äöüäöüäöü", 6), "äö..öü");
}

Test(tune_show, lets_no_name_command_the_terminal)
{
    cr_expect_str_eq(tool_tune_name(cx, "a\033[2Jb\n\177", 9), "a?[2Jb?? ");
}

Test(tune_show, a_gain_of_unknown_times_is_1)
{
    cr_expect_eq(tool_tune_ratio(2, 1), 2);
    cr_expect_eq(tool_tune_ratio(0, 1), 1);
    cr_expect_eq(tool_tune_ratio(1, 0), 1);
    cr_expect_eq(tool_tune_ratio(INFINITY, 1), 1);
}
