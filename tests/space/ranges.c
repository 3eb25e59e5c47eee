/* tests/space/ranges.c -- schedules for ranges of a symbol, as text and as trees. */
#include <criterion/criterion.h>
#include <string.h>

#include "ir/text.h"
#include "schedule/sched.h"
#include "space/task.h"
#include "te/text.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}

static void close_context(void)
{
    tec_context_free(cx);
}

TestSuite(ranges, .init = open_context, .fini = close_context);

static const char text[] = "when symbol 1 <= 11:\n"
                           "parallel(S.i)\n"
                           "when symbol 1 <= 90:\n"
                           "otherwise:\n"
                           "S.i.0, S.i.1 = split(S.i, _, 4)\n"
                           "unroll(S.i.1)\n";

Test(ranges, read_back_from_their_text)
{
    const space_ranges *r = space_ranges_read(cx, text);

    cr_assert(r);
    cr_assert_eq(r->n, 3);
    cr_assert_eq(r->symbol, 1);
    cr_assert_eq(r->at[0].to, 11);
    cr_assert_str_eq(r->at[0].trace, "parallel(S.i)\n");
    cr_assert_str_eq(r->at[1].trace, "");
    cr_assert_eq(r->at[2].to, INT64_MAX);
    cr_assert_str_eq(space_ranges_text(cx, r), text);
}

Test(ranges, other_texts_are_none)
{
    static const char *const wrong[] = {
        "",
        "parallel(S.i)\n",
        "otherwise:\nparallel(S.i)\n",                            /* one schedule is no choice */
        "when symbol 0 <= 4:\nparallel(S.i)\n",                   /* nothing for larger ones */
        "when symbol 0 <= 4:\nwhen symbol 0 <= 4:\notherwise:\n", /* does not rise */
        "when symbol 0 <= 4:\nwhen symbol 1 <= 8:\notherwise:\n", /* two symbols choose */
        "when symbol 0 <= 4:\notherwise:\nwhen symbol 0 <= 9:\n", /* behind the end */
        "when symbol -1 <= 4:\notherwise:\n",
        "when symbol 0 < 4:\notherwise:\n",
        "when symbol 0 <= 4\notherwise:\n",
        "when symbol 0 <= 9223372036854775807:\notherwise:\n",
        "when symbol 0 <= x:\notherwise:\n",
        "steps\nwhen symbol 0 <= 4:\notherwise:\n",
    };

    for (int i = 0; i < BASE_COUNT(wrong); i++)
        cr_assert_null(space_ranges_read(cx, wrong[i]), "%s", wrong[i]);
}

/* One that was cut off anywhere says less, or nothing; it is never read past its end. */
Test(ranges, a_text_that_was_cut_off_is_refused_or_whole)
{
    for (size_t n = 0; n < sizeof text; n++) {
        const space_ranges *r = space_ranges_read(cx, base_strndup(cx, text, n));

        cr_assert(!r || (r->n == 3 && n > strlen(text) - 50), "%d bytes", (int)n);
    }
}

static const te_def *definition(void)
{
    const te_file *file = te_parse(cx, "s.te",
                                   "def s(m, n, X: f32[m, n]) {\n  S[i, j] = X[i, j] * 2\n"
                                   "  return S\n}\n");

    cr_assert(file, "%s", tec_context_error(cx));
    return file->defs.at[0];
}

Test(ranges, each_has_a_tree_of_its_own)
{
    const target *machine = target_parse(cx, "llvm -mcpu=x86-64-v3");
    const te_def *def = definition();
    const char *refused = NULL;
    const ir_program **tree = space_ranges_trees(cx, def, machine, space_ranges_read(cx, text), &refused);

    cr_assert(tree, "%s", refused);
    cr_assert(strstr(ir_program_text(cx, tree[0]), "parallel"));
    cr_assert_null(strstr(ir_program_text(cx, tree[1]), "parallel"));
    cr_assert(strstr(ir_program_text(cx, tree[2]), "unroll"));
    const char *one = "when symbol 0 <= 4:\nparallel(S.x)\notherwise:\n";
    cr_assert_null(space_ranges_trees(cx, def, machine, space_ranges_read(cx, one), &refused));
    cr_assert(strstr(refused, "S.x"), "%s", refused);
}

/* With "==" the symbol is a number in the tree, which keeps the symbols that its callers pass. */
Test(ranges, a_fixed_one_has_a_tree_with_constant_extents)
{
    const char *fixed = "when symbol 1 <= 7:\nparallel(S.i)\n"
                        "when symbol 1 == 8:\nunroll(S.j)\n"
                        "when symbol 1 <= 20:\nparallel(S.i)\notherwise:\n";
    const space_ranges *r = space_ranges_read(cx, fixed);
    const char *refused = NULL;

    cr_assert(r && r->at[1].fixed && !r->at[2].fixed);
    cr_assert_str_eq(space_ranges_text(cx, r), fixed);
    const ir_program **tree =
        space_ranges_trees(cx, definition(), target_parse(cx, "llvm -mcpu=x86-64-v3"), r, &refused);
    cr_assert(tree, "%s", refused);
    cr_assert(strstr(ir_program_text(cx, tree[1]), "0..8 unroll"), "%s", ir_program_text(cx, tree[1]));
    cr_assert_eq(tree[1]->n_symbols, 2);
    cr_assert_eq(tree[0], tree[2], "one schedule is one tree");
    cr_assert_neq(tree[0], tree[3]);
    cr_assert_null(space_ranges_read(cx, "when symbol 0 <= 4:\nwhen symbol 0 == 8:\notherwise:\n"),
                   "more values");
    cr_assert_null(space_ranges_read(cx, "when symbol 0 == 1:\notherwise:\n"), "0 and 1");
    cr_assert(space_ranges_read(cx, "when symbol 0 == 0:\notherwise:\n"));
}

static const char *fixed_text(const char *standing, const char *trace, const int64_t *value, int n)
{
    static const char *const traces[] = {"x\n", "y\n"};

    return space_ranges_text(cx, space_ranges_fix(cx, standing ? space_ranges_read(cx, standing) : NULL,
                                                  trace, 0, value, traces, n));
}

Test(ranges, values_are_cut_out_of_what_stands)
{
    const char *one = fixed_text(NULL, "a\n", (int64_t[]){1, 8}, 2);
    const char *two = fixed_text("when symbol 0 <= 20:\na\notherwise:\nb\n", NULL, (int64_t[]){20, 32}, 2);

    cr_assert_str_eq(one, "when symbol 0 <= 0:\na\nwhen symbol 0 == 1:\nx\nwhen symbol 0 <= 7:\na\n"
                          "when symbol 0 == 8:\ny\notherwise:\na\n");
    cr_assert_str_eq(two, "when symbol 0 <= 19:\na\nwhen symbol 0 == 20:\nx\nwhen symbol 0 <= 31:\nb\n"
                          "when symbol 0 == 32:\ny\notherwise:\nb\n");
    cr_assert_str_eq(fixed_text(one, NULL, (int64_t[]){1, 8}, 2), one, "the same again");
    cr_assert_str_eq(fixed_text(one, NULL, (int64_t[]){2}, 1),
                     "when symbol 0 <= 0:\na\nwhen symbol 0 == 1:\nx\nwhen symbol 0 == 2:\nx\n"
                     "when symbol 0 <= 7:\na\nwhen symbol 0 == 8:\ny\notherwise:\na\n");
}

/* A reader that knows traces alone refuses the text, and does not take one of its schedules. */
Test(ranges, are_no_trace)
{
    sched *s = sched_new(cx, te_tree(cx, definition()), target_parse(cx, "llvm -mcpu=x86-64-v3"));

    cr_assert_not(sched_replay(s, "record", text));
}
