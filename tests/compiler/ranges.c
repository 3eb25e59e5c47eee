/* tests/compiler/ranges.c -- kernels that are several functions: names and places of their units. */
#include "compiler/ranges.h"
#include "tests/schedule/run.h"

TestSuite(units_of_ranges, .init = open_context, .fini = close_context);

static const ir_program *tree_of(const char *text)
{
    te_file *file = te_parse(cx, "f.te", text);

    cr_assert(file, "%s", tec_context_error(cx));
    return te_tree(cx, file->defs.at[0]);
}

static const ir_program *doubled(void)
{
    return tree_of("def f(m, n, A: f32[m, n]) {\n  R[i, j] = A[i, j] * 2.0\n  return R\n}\n");
}

Test(units_of_ranges, stand_behind_all_kernels)
{
    const ir_program *tree = doubled(), *trees[] = {doubled(), doubled()};
    const int64_t to[] = {3, 11};
    const comp_ranged kernels[] = {{.unit = {.name = "f", .tree = tree}, .symbol = 1, 2, to, trees},
                                   {.unit = {.name = "g", .tree = tree}},
                                   {.unit = {.name = "h", .tree = tree}, .symbol = 0, 1, to, trees}};
    static const char *const names[] = {"f", "g", "h", "f (n <= 3)", "f (n <= 11)", "h (m <= 3)"};
    int n;
    const comp_unit *units = comp_units_of_ranges(cx, kernels, 3, &n);

    cr_assert_eq(n, 6);
    for (int i = 0; i < n; i++)
        cr_expect_str_eq(units[i].name, names[i]);
    cr_assert_eq(units[0].n_ranges, 2);
    cr_expect_eq(units[0].chooser, 1);
    cr_expect_eq(units[0].ranges[0].to, 3);
    cr_expect_eq(units[0].ranges[0].function, 3);
    cr_expect_eq(units[0].ranges[1].to, 11);
    cr_expect_eq(units[0].ranges[1].function, 4);
    cr_expect_eq(units[1].n_ranges, 0);
    cr_expect_eq(units[2].ranges[0].function, 5);
    cr_expect_eq(units[3].n_ranges, 0, "a function for a range chooses no further");
}

Test(units_of_ranges, have_names_of_their_own)
{
    const ir_program *tree = doubled(), *other = doubled();
    const comp_ranged kernels[] = {
        {.unit = {.name = "f", .tree = tree}, .symbol = 1, 1, (const int64_t[]){3}, &other},
        {.unit = {.name = "f (n <= 3)", .tree = tree}}};
    int n;
    const comp_unit *units = comp_units_of_ranges(cx, kernels, 2, &n);

    cr_assert_eq(n, 3);
    cr_expect_str_eq(units[2].name, "f (n <= 3)'2");
}

/* Up to 7 as above 8, but for 0, 4 and 5. */
Test(units_of_ranges, share_functions_where_trees_are_the_same)
{
    const ir_program *tree = doubled(), *few = doubled(), *trees[] = {few, tree, few, doubled(), tree};
    const comp_ranged f = {
        .unit = {.name = "f", .tree = tree}, .symbol = 1, 5, (const int64_t[]){0, 3, 4, 5, 7}, trees};
    static const int function[] = {1, 0, 1, 2, 0};
    int n;
    const comp_unit *units = comp_units_of_ranges(cx, &f, 1, &n);

    cr_assert_eq(n, 3);
    cr_assert_eq(units[0].n_ranges, 5);
    for (int k = 0; k < 5; k++)
        cr_expect_eq(units[0].ranges[k].function, function[k]);
    cr_expect_str_eq(units[1].name, "f (n == 0)", "the name is that of the first range");
    cr_expect_str_eq(units[2].name, "f (n == 5)");
}
