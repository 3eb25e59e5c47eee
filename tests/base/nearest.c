/* The nearest name: slips of the pen are found, other words are not. */
#include <criterion/criterion.h>

#include "base/base.h"

static const char *nearest(const char *name)
{
    static const char *const known[] = {"batch", "seq_len", "C.k.0", "f32", "vectorize", "n"};
    tec_context *cx = tec_context_new();
    base_vec names = {0};

    for (int i = 0; i < BASE_COUNT(known); i++)
        base_push(cx, &names, known[i]);
    const char *found = base_nearest(name, &names);
    tec_context_free(cx);
    return found;
}

Test(nearest, finds_what_a_slip_of_the_pen_meant)
{
    static const char *const pairs[][2] = {
        {"bacth", "batch"},         {"Batch", "batch"}, {"seqlen", "seq_len"}, {"C.k.1", "C.k.0"},
        {"vectorise", "vectorize"}, {"fp32", "f32"},    {"batches", "batch"}};

    for (int i = 0; i < BASE_COUNT(pairs); i++)
        cr_expect_str_eq(nearest(pairs[i][0]), pairs[i][1], "%s", pairs[i][0]);
}

Test(nearest, says_nothing_of_a_word_that_is_like_none)
{
    cr_expect_null(nearest("rows"));
    cr_expect_null(nearest(""));
    cr_expect_null(nearest("m"));
    cr_expect_null(nearest("a_name_of_more_than_sixty_three_letters_is_compared_with_no_other_name_at_all"));
}

Test(nearest, makes_the_end_of_a_message)
{
    tec_context *cx = tec_context_new();
    base_vec names = {0};

    base_push(cx, &names, "batch");
    cr_expect_str_eq(base_did_you_mean(cx, "btach", &names), "; did you mean 'batch'?");
    cr_expect_str_eq(base_did_you_mean(cx, "rows", &names), "");
    tec_context_free(cx);
}
