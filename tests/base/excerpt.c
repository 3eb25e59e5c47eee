/* tests/base/excerpt.c -- the line and the caret of a message. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/base.h"

static tec_context *cx;

static void set_up(void)
{
    cx = tec_context_new();
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(excerpt, .init = set_up, .fini = tear_down);

static const char *shown(const char *text, int column)
{
    base_text t = {0};

    base_add_excerpt(cx, &t, (base_loc){"f", 1, column, text});
    return base_text_str(cx, &t);
}

Test(excerpt, puts_the_caret_below_the_column)
{
    cr_assert_str_eq(shown("ab cd\nef", 4), "\nab cd\n   ^");
    cr_assert_str_eq(shown("ab", 3), "\nab\n  ^");
    cr_assert_str_eq(shown("\ta b", 4), "\n\ta b\n\t  ^");
    cr_assert_str_eq(shown("", 1), "\n\n^");
}

Test(excerpt, counts_characters_and_not_bytes)
{
    cr_assert_str_eq(shown("\xc3\xa4\xc3\xb6 x", 6), "\n\xc3\xa4\xc3\xb6 x\n   ^");
}

Test(excerpt, does_not_steer_a_terminal)
{
    cr_assert_str_eq(shown("a\x1b[2Jb", 1), "\na?[2Jb\n^");
}

/* A line ends with "\n" or "\r\n": elsewhere "\r" is a blank of the text, which the columns count. */
Test(excerpt, shows_a_line_with_a_carriage_return_in_the_middle)
{
    cr_assert_str_eq(shown("a\rb c\r\nd", 5), "\na?b c\n    ^");
    cr_assert_str_eq(shown("ab\r\nd", 1), "\nab\n^");
}

Test(excerpt, shows_the_part_of_a_long_line_around_the_column)
{
    char line[1001];

    memset(line, 'a', 1000);
    line[1000] = '\0';
    line[499] = 'X';
    const char *found = shown(line, 500), *second = strchr(found + 1, '\n');
    cr_assert(strncmp(found, "\n...a", 5) == 0 && second && strncmp(second - 4, "a...", 4) == 0, "%s", found);
    size_t caret = strcspn(second + 1, "^");
    cr_assert(found[1 + caret] == 'X' && strlen(found) < 300, "%s", found);
}

Test(excerpt, is_nothing_where_the_line_or_column_is_not_known)
{
    cr_assert_str_eq(shown(NULL, 3), "");
    cr_assert_str_eq(shown("abc", 0), "");
    cr_assert_str_eq(shown("abc", 9), "");
}
