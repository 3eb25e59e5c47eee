/* The lexer: what is one token, what its value is, and which line a mistake is blamed on. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/lexer.h"
#include "tests/plain.h"

static tec_context *cx;

static void set_up(void)
{
    cx = tec_context_new();
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(lexer, .init = set_up, .fini = tear_down);

/* All tokens with their kinds: "n:a s:+ i:1". */
static char *tokens(const char *text)
{
    static const char *const kind[] = {"end", "n", "i", "f", "q", "s"};
    base_lexer *lx = base_lexer_new(cx, "t.te", text);
    base_text out = {0};

    for (; lx->tok.kind != BASE_TOK_END; base_advance(lx))
        base_addf(cx, &out, "%s%s:%s", out.n ? " " : "", kind[lx->tok.kind], lx->tok.text);
    return (char *)base_text_str(cx, &out);
}

static char *error_of(const char *text)
{
    tec_context_clear(cx);
    tokens(text);
    return (char *)(tec_context_error(cx) ? plain(cx, tec_context_error(cx)) : "no error");
}

Test(lexer, finds_nothing_in_an_empty_text)
{
    cr_assert(eq(str, tokens(""), ""));
    cr_assert(eq(str, tokens("  \n\t# only a remark"), ""));
    cr_assert(eq(int, base_lexer_new(cx, NULL, "")->tok.kind, BASE_TOK_END));
    cr_assert(not(base_failed(cx)));
}

Test(lexer, takes_loop_names_as_one_name)
{
    cr_assert(eq(str, tokens("C.y.0 C.y~C.x x'2 C.y~C.x.1'3 _ _a a_1"),
                 "n:C.y.0 n:C.y~C.x n:x'2 n:C.y~C.x.1'3 n:_ n:_a n:a_1"));
}

Test(lexer, leaves_a_dot_quote_or_tilde_at_the_end_outside_the_name)
{
    cr_assert(eq(str, tokens("a..b"), "n:a s:.. n:b"));
    cr_assert(eq(str, tokens("a. b"), "n:a s:. n:b"));
    cr_assert(eq(str, tokens("a~ b ~c"), "n:a s:~ n:b s:~ n:c"));
    cr_assert(eq(str, error_of("a' b"), "t.te:1: error: unexpected character '''"));
}

Test(lexer, reads_integers)
{
    base_lexer *lx = base_lexer_new(cx, NULL, "0 42 0x2A 9223372036854775807 18446744073709551615");

    cr_assert(eq(i64, lx->tok.i, 0));
    base_advance(lx);
    cr_assert(eq(i64, lx->tok.i, 42));
    cr_assert(eq(dbl, lx->tok.f, 42.0));
    base_advance(lx);
    cr_assert(eq(i64, lx->tok.i, 42));
    base_advance(lx);
    cr_assert(eq(i64, lx->tok.i, INT64_MAX));
    base_advance(lx);
    cr_assert(eq(i64, lx->tok.i, -1));
    cr_assert(eq(dbl, lx->tok.f, 0x1p64));
}

Test(lexer, reads_floats_in_decimal_and_in_hex)
{
    static const double expected[] = {1.5,     0.25,      1e10,           2.5e-3, 3.0,
                                      0x1.8p3, 0x1p-1074, 0x1.fffffep127, 1e5,    INFINITY};
    base_lexer *lx =
        base_lexer_new(cx, NULL, "1.5 .25 1e10 2.5E-3 3. 0x1.8p3 0x1p-1074 0X1.fffffeP+127 1.e5 1e999");

    for (int i = 0; i < BASE_COUNT(expected); i++, base_advance(lx)) {
        cr_assert(eq(int, lx->tok.kind, BASE_TOK_FLOAT), "number %d", i);
        cr_assert(eq(dbl, lx->tok.f, expected[i]), "number %d", i);
    }
    cr_assert(eq(int, lx->tok.kind, BASE_TOK_END));
}

Test(lexer, reads_floats_alike_in_every_locale)
{
    setlocale(LC_ALL, "de_DE.UTF-8");
    cr_assert(eq(dbl, base_lexer_new(cx, NULL, "1.5")->tok.f, 1.5));
    setlocale(LC_ALL, "C");
}

Test(lexer, keeps_a_range_apart_from_a_float)
{
    cr_assert(eq(str, tokens("0..16 0..n 1.5..2 0x10..0x20"),
                 "i:0 s:.. i:16 i:0 s:.. n:n f:1.5 s:.. i:2 i:0x10 s:.. i:0x20"));
}

Test(lexer, refuses_malformed_numbers)
{
    cr_assert(eq(str, error_of("12abc"), "t.te:1: error: malformed number '12a'"));
    cr_assert(eq(str, error_of("0x"), "t.te:1: error: malformed number '0x'"));
    cr_assert(eq(str, error_of("0xg"), "t.te:1: error: malformed number '0xg'"));
    cr_assert(eq(str, error_of("1e"), "t.te:1: error: malformed number '1e'"));
    cr_assert(eq(str, error_of("0x1.8p"), "t.te:1: error: malformed number '0x1.8p'"));
    cr_assert(eq(str, error_of("18446744073709551616"),
                 "t.te:1: error: number '18446744073709551616' does not fit in 64 bits"));
}

Test(lexer, refuses_a_hex_float_without_an_exponent)
{
    cr_assert(eq(str, error_of("0x1.8"), "t.te:1: error: malformed number '0x1.8'"));
}

Test(lexer, reads_strings_with_escapes)
{
    base_lexer *lx = base_lexer_new(cx, NULL, "\"a\\n\\t\\\"\\\\\\x41 # // z\" \"\" b");

    cr_assert(eq(int, lx->tok.kind, BASE_TOK_STRING));
    cr_assert(eq(str, (char *)lx->tok.text, "a\n\t\"\\A # // z"));
    base_advance(lx);
    cr_assert(eq(int, lx->tok.kind, BASE_TOK_STRING));
    cr_assert(eq(str, (char *)lx->tok.text, ""));
    base_advance(lx);
    cr_assert(base_at(lx, "b"));
}

Test(lexer, refuses_strings_without_end_and_unknown_escapes)
{
    cr_assert(
        eq(str, error_of("\n\"abc"), "t.te:2: error: the string that starts here has no end on its line"));
    cr_assert(
        eq(str, error_of("\"abc\n\""), "t.te:1: error: the string that starts here has no end on its line"));
    cr_assert(eq(str, error_of("\"abc\\"),
                 "t.te:1: error: unknown escape in a string: use \\n, \\t, \\r, \\\", \\\\ or \\xHH"));
    cr_assert(not(eq(str, error_of("\"\\q\""), "no error")));
    cr_assert(not(eq(str, error_of("\"\\x00\""), "no error")));
    cr_assert(not(eq(str, error_of("\"\\x4\""), "no error")));
}

Test(lexer, takes_the_longest_symbol)
{
    cr_assert(eq(
        str, tokens("<= < << <<= -> - > => = == != ! && & || | += .. . >>"),
        "s:<= s:< s:<< s:<< s:= s:-> s:- s:> s:=> s:= s:== s:!= s:! s:&& s:& s:|| s:| s:+= s:.. s:. s:>>"));
    cr_assert(eq(str, tokens("()[]{},;:*/%^~?@"),
                 "s:( s:) s:[ s:] s:{ s:} s:, s:; s:: s:* s:/ s:% s:^ s:~ s:? s:@"));
}

Test(lexer, skips_both_kinds_of_remarks)
{
    cr_assert(eq(str, tokens("a # b \" c\nd // e\n/ f // g"), "n:a n:d s:/ n:f"));
}

Test(lexer, blames_the_line_of_the_token)
{
    base_lexer *lx = base_lexer_new(cx, "conv.te", "a\n\n# remark\n  b c\n");

    cr_assert(eq(int, lx->tok.loc.line, 1));
    cr_assert(eq(int, lx->next.loc.line, 4));
    base_advance(lx);
    base_advance(lx);
    cr_assert(base_at(lx, "c"));
    cr_assert(eq(int, lx->tok.loc.line, 4));
    cr_assert(eq(str, (char *)lx->tok.loc.file, "conv.te"));
    cr_assert(eq(str, error_of("a\nb\n  $"), "t.te:3: error: unexpected character '$'"));
    cr_assert(eq(str, error_of("\xc3"), "t.te:1: error: unexpected byte 0xc3"));
}

Test(lexer, knows_whether_space_stands_before_a_token)
{
    base_lexer *lx = base_lexer_new(cx, NULL, "a [b]//\nc");
    static const bool expected[] = {true, true, false, false, true};

    for (int i = 0; i < BASE_COUNT(expected); i++, base_advance(lx))
        cr_assert(eq(int, lx->tok.space_before, expected[i]), "token %d", i);
}

Test(lexer, sees_one_token_ahead)
{
    base_lexer *lx = base_lexer_new(cx, NULL, "a = 1");

    cr_assert(base_at(lx, "a"));
    cr_assert(eq(str, (char *)lx->next.text, "="));
    base_advance(lx);
    cr_assert(eq(int, lx->next.kind, BASE_TOK_INT));
    base_advance(lx);
    cr_assert(eq(int, lx->next.kind, BASE_TOK_END));
}

Test(lexer, takes_a_string_for_no_name)
{
    base_lexer *lx = base_lexer_new(cx, NULL, "\"for\"");

    cr_assert(not(base_at(lx, "for")));
    cr_assert(not(base_accept(lx, "for")));
}

Test(lexer, says_what_it_expected_and_what_it_found)
{
    base_lexer *lx = base_lexer_new(cx, "t.te", "for\nx");

    cr_assert(base_accept(lx, "for"));
    cr_assert(not(base_expect(lx, "(")));
    cr_assert(eq(str, (char *)plain(cx, tec_context_error(cx)), "t.te:2: error: expected '(', found 'x'"));
}

Test(lexer, names_a_string_and_the_end_of_the_text_as_such)
{
    cr_assert(base_expect_name(base_lexer_new(cx, "t.te", "\"x\""), "the name of a stage") == NULL);
    cr_assert(eq(str, (char *)plain(cx, tec_context_error(cx)),
                 "t.te:1: error: expected the name of a stage, found \"x\""));
    tec_context_clear(cx);
    cr_assert(base_expect_name(base_lexer_new(cx, "t.te", "\n\n"), "a name") == NULL);
    cr_assert(eq(str, (char *)plain(cx, tec_context_error(cx)),
                 "t.te:3: error: expected a name, found the end of the text"));
}

Test(lexer, stops_for_good_after_a_failure)
{
    base_lexer *lx = base_lexer_new(cx, "t.te", "a b c d");

    base_expect(lx, "z");
    cr_assert(eq(int, lx->tok.kind, BASE_TOK_END));
    for (int i = 0; i < 3; i++)
        base_advance(lx);
    cr_assert(not(base_accept(lx, "a")));
    cr_assert(not(base_expect(lx, "b")));
    cr_assert(eq(int, lx->tok.kind, BASE_TOK_END));
    cr_assert(eq(str, (char *)plain(cx, tec_context_error(cx)), "t.te:1: error: expected 'z', found 'a'"));
}

Test(lexer, reads_expected_integers_to_the_last)
{
    base_lexer *lx = base_lexer_new(cx, "t.te", "7 -7 -9223372036854775808 9223372036854775807 0x10 -0");
    static const int64_t expected[] = {7, -7, INT64_MIN, INT64_MAX, 16, 0};
    int64_t i;

    for (int k = 0; k < BASE_COUNT(expected); k++) {
        cr_assert(base_expect_int(lx, "a number", &i));
        cr_assert(eq(i64, i, expected[k]));
    }
}

Test(lexer, refuses_an_integer_that_does_not_fit)
{
    int64_t i;

    cr_assert(not(base_expect_int(base_lexer_new(cx, "t.te", "9223372036854775808"), "a factor", &i)));
    cr_assert(eq(str, (char *)plain(cx, tec_context_error(cx)),
                 "t.te:1: error: expected a factor, found '9223372036854775808'"));
    tec_context_clear(cx);
    cr_assert(not(base_expect_int(base_lexer_new(cx, "t.te", "-9223372036854775809"), "a factor", &i)));
    tec_context_clear(cx);
    cr_assert(not(base_expect_int(base_lexer_new(cx, "t.te", "1.5"), "a factor", &i)));
    cr_assert(
        eq(str, (char *)plain(cx, tec_context_error(cx)), "t.te:1: error: expected a factor, found '1.5'"));
}

/* Any bytes: it must come to an end, and every token must stand in the text where nothing was escaped. */
Test(lexer, survives_any_text)
{
    static const char alphabet[] = "aZ_09.'~x\"\\#/ \n+-<=>&|eEpP(){}[],;:$\x80?";

    for (uint64_t round = 1; round <= 3000; round++) {
        uint64_t seed = round;
        char text[60];
        int64_t n = base_random_below(&seed, BASE_COUNT(text) - 1);
        for (int64_t i = 0; i < n; i++)
            text[i] = alphabet[base_random_below(&seed, BASE_COUNT(alphabet) - 1)];
        text[n] = '\0';
        tec_context_clear(cx);
        base_lexer *lx = base_lexer_new(cx, "t.te", text);
        for (int steps = 0; lx->tok.kind != BASE_TOK_END; base_advance(lx), steps++) {
            cr_assert(steps <= n, "seed %d: no end of '%s'", (int)round, text);
            cr_assert(lx->tok.kind == BASE_TOK_STRING || strstr(text, lx->tok.text), "seed %d: '%s' in '%s'",
                      (int)round, lx->tok.text, text);
        }
    }
}
