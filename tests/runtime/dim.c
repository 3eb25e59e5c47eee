#include <criterion/criterion.h>
#include <string.h>

#include "base/base.h"
#include "runtime/dim.h"
#include "runtime/error.h"

static int64_t eval(const rt_dim_writer *w, const int64_t *symbols)
{
    tec_error err = {0};
    int64_t v = -999;

    cr_assert(rt_dim_verify(rt_dim_of(w), 3, &err), "%s", err.text);
    cr_assert(rt_dim_eval(rt_dim_of(w), symbols, &v, &err), "%s", err.text);
    return v;
}

static int64_t binary(rt_dim_opcode op, int64_t a, int64_t b)
{
    rt_dim_writer w = {0};

    rt_dim_const(&w, a);
    rt_dim_const(&w, b);
    rt_dim_op(&w, op);
    return eval(&w, NULL);
}

static tec_error failure(rt_dim_opcode op, int64_t a, int64_t b)
{
    rt_dim_writer w = {0};
    tec_error err = {0};
    int64_t v;

    rt_dim_const(&w, a);
    rt_dim_const(&w, b);
    rt_dim_op(&w, op);
    cr_assert(!rt_dim_eval(rt_dim_of(&w), NULL, &v, &err));
    return err;
}

Test(dim, computes_each_operation)
{
    cr_assert_eq(binary(RT_DIM_ADD, 3, 4), 7);
    cr_assert_eq(binary(RT_DIM_SUB, 3, 4), -1);
    cr_assert_eq(binary(RT_DIM_MUL, -3, 4), -12);
    cr_assert_eq(binary(RT_DIM_MIN, -3, 4), -3);
    cr_assert_eq(binary(RT_DIM_MAX, -3, 4), 4);
    cr_assert_eq(binary(RT_DIM_EQ, 4, 4), 1);
    cr_assert_eq(binary(RT_DIM_NE, 4, 4), 0);
    cr_assert_eq(binary(RT_DIM_LT, 4, 4), 0);
    cr_assert_eq(binary(RT_DIM_LE, 4, 4), 1);
    cr_assert_eq(binary(RT_DIM_AND, 4, 0), 0);
    cr_assert_eq(binary(RT_DIM_AND, 4, 2), 1);
    cr_assert_eq(binary(RT_DIM_OR, 0, 2), 1);
    cr_assert_eq(binary(RT_DIM_OR, 0, 0), 0);
}

Test(dim, divides_towards_minus_infinity)
{
    for (int64_t a = -9; a <= 9; a++)
        for (int64_t b = -4; b <= 4; b++) {
            if (b == 0)
                continue;
            int64_t q = binary(RT_DIM_FLOORDIV, a, b), r = binary(RT_DIM_FLOORMOD, a, b);

            cr_assert_eq(q * b + r, a);
            cr_assert(r == 0 || ((r < 0) == (b < 0) && llabs(r) < llabs(b)), "%d %% %d = %d", (int)a, (int)b,
                      (int)r);
        }
    cr_assert_eq(binary(RT_DIM_FLOORMOD, INT64_MIN, -1), 0);
}

Test(dim, reports_overflow_and_division_by_zero)
{
    cr_assert_str_eq(failure(RT_DIM_FLOORDIV, 1, 0).text, "division by zero in a dimension");
    cr_assert_str_eq(failure(RT_DIM_FLOORMOD, 1, 0).text, "division by zero in a dimension");
    cr_assert_str_eq(failure(RT_DIM_ADD, INT64_MAX, 1).text, "a dimension overflows 64 bits");
    cr_assert_str_eq(failure(RT_DIM_SUB, INT64_MIN, 1).text, "a dimension overflows 64 bits");
    cr_assert_str_eq(failure(RT_DIM_MUL, INT64_MAX / 2, 3).text, "a dimension overflows 64 bits");
    cr_assert_str_eq(failure(RT_DIM_FLOORDIV, INT64_MIN, -1).text, "a dimension overflows 64 bits");
    cr_assert_eq(failure(RT_DIM_ADD, INT64_MAX, 1).status, TEC_INVALID);
}

/* select(s0 != 0, 10 // s0, 7) */
static rt_dim_writer guarded_division(void)
{
    rt_dim_writer w = {0};

    rt_dim_symbol(&w, 0);
    rt_dim_const(&w, 0);
    rt_dim_op(&w, RT_DIM_NE);
    rt_dim_const(&w, 10);
    rt_dim_symbol(&w, 0);
    rt_dim_op(&w, RT_DIM_FLOORDIV);
    rt_dim_const(&w, 7);
    rt_dim_op(&w, RT_DIM_SELECT);
    return w;
}

Test(dim, select_drops_the_fault_of_the_side_that_it_does_not_take)
{
    rt_dim_writer w = guarded_division();

    cr_assert_eq(eval(&w, (int64_t[]){5, 0, 0}), 2);
    cr_assert_eq(eval(&w, (int64_t[]){0, 0, 0}), 7);
}

Test(dim, a_decided_and_drops_the_fault_of_the_other_side)
{
    rt_dim_writer w = {0};

    rt_dim_symbol(&w, 0);
    rt_dim_const(&w, 10);
    rt_dim_const(&w, 0);
    rt_dim_op(&w, RT_DIM_FLOORDIV);
    rt_dim_op(&w, RT_DIM_AND);
    cr_assert_eq(eval(&w, (int64_t[]){0, 0, 0}), 0);
    int64_t v;
    cr_assert(!rt_dim_eval(rt_dim_of(&w), (int64_t[]){1}, &v, NULL));
}

static bool refused(const int64_t *word, int32_t n, const char *part)
{
    tec_error err = {0};
    bool ok = rt_dim_verify((rt_dim){word, n}, 2, &err);

    return !ok && strstr(err.text, part);
}

Test(dim, refuses_malformed_code)
{
    cr_assert(refused(NULL, 0, "0 words"));
    cr_assert(refused((int64_t[]){99}, 1, "unknown operation 99"));
    cr_assert(refused((int64_t[]){-1}, 1, "unknown operation -1"));
    cr_assert(refused((int64_t[]){RT_DIM_CONST}, 1, "ends inside"));
    cr_assert(refused((int64_t[]){RT_DIM_SYMBOL, 2}, 2, "symbol 2 of 2"));
    cr_assert(refused((int64_t[]){RT_DIM_SYMBOL, -1}, 2, "symbol -1 of 2"));
    cr_assert(refused((int64_t[]){RT_DIM_CONST, 1, RT_DIM_ADD}, 3, "'+' lacks an operand"));
    cr_assert(refused((int64_t[]){RT_DIM_CONST, 1, RT_DIM_CONST, 1}, 4, "leaves 2 values"));
}

Test(dim, refuses_code_that_is_too_deep_or_too_long)
{
    int64_t deep[2 * (RT_DIM_MAX_DEPTH + 1)];
    rt_dim_writer w = {0};

    for (int i = 0; i <= RT_DIM_MAX_DEPTH; i++) {
        deep[2 * i] = RT_DIM_CONST;
        deep[2 * i + 1] = i;
    }
    cr_assert(refused(deep, 2 * (RT_DIM_MAX_DEPTH + 1), "deeper than"));
    for (int i = 0; i <= RT_DIM_MAX_WORDS / 2; i++)
        rt_dim_const(&w, i);
    cr_assert(w.full);
    cr_assert_eq(rt_dim_of(&w).n, 0);
}

Test(dim, random_words_never_break_the_verifier_and_what_passes_evaluates)
{
    uint64_t seed = 20240607, passed = 0;
    int64_t symbols[2] = {3, -2};

    for (int i = 0; i < 200000; i++) {
        int64_t word[8];
        int32_t n = (int32_t)base_random_below(&seed, 8) + 1;
        int64_t v;
        char text[100];

        for (int k = 0; k < n; k++)
            word[k] = base_random_below(&seed, RT_DIM_N_OPS + 2) - 1;
        if (!rt_dim_verify((rt_dim){word, n}, 2, NULL))
            continue;
        passed++;
        rt_dim_eval((rt_dim){word, n}, symbols, &v, NULL);
        cr_assert(strlen(rt_dim_text((rt_dim){word, n}, NULL, text, sizeof text)) > 0);
    }
    cr_assert(passed > 100, "%d programs passed", (int)passed);
}

static void assert_text(const rt_dim_writer *w, const char *expected)
{
    const char *const names[] = {"n", "m"};
    char text[100];

    cr_assert_str_eq(rt_dim_text(rt_dim_of(w), names, text, sizeof text), expected);
}

Test(dim, prints_infix_with_the_brackets_that_are_needed)
{
    rt_dim_writer w = {0};

    rt_dim_symbol(&w, 0);
    rt_dim_const(&w, 3);
    rt_dim_op(&w, RT_DIM_ADD);
    rt_dim_const(&w, 4);
    rt_dim_op(&w, RT_DIM_FLOORDIV);
    rt_dim_const(&w, 4);
    rt_dim_op(&w, RT_DIM_MUL);
    assert_text(&w, "(n + 3) // 4*4");
    rt_dim_symbol(&w, 1);
    rt_dim_symbol(&w, 0);
    rt_dim_const(&w, 1);
    rt_dim_op(&w, RT_DIM_SUB);
    rt_dim_op(&w, RT_DIM_SUB);
    rt_dim_op(&w, RT_DIM_MAX);
    assert_text(&w, "max((n + 3) // 4*4, m - (n - 1))");
    rt_dim_const(&w, 8);
    rt_dim_op(&w, RT_DIM_LE);
    rt_dim_op(&w, RT_DIM_NOT);
    assert_text(&w, "not max((n + 3) // 4*4, m - (n - 1)) <= 8");
}

Test(dim, text_is_cut_to_the_buffer)
{
    rt_dim_writer w = {0};
    char text[4];

    rt_dim_const(&w, 123456);
    cr_assert_str_eq(rt_dim_text(rt_dim_of(&w), NULL, text, sizeof text), "123");
}

Test(dim, knows_constants_symbols_and_what_is_known)
{
    rt_dim_writer w = guarded_division(), c = {0}, s = {0};
    int64_t value;
    int32_t symbol;

    rt_dim_const(&c, 12);
    rt_dim_symbol(&s, 2);
    cr_assert(rt_dim_is_const(rt_dim_of(&c), &value) && value == 12);
    cr_assert(rt_dim_is_symbol(rt_dim_of(&s), &symbol) && symbol == 2);
    cr_assert(!rt_dim_is_const(rt_dim_of(&s), &value) && !rt_dim_is_symbol(rt_dim_of(&w), &symbol));
    cr_assert(rt_dim_is_known(rt_dim_of(&w), (bool[]){true, false, false}));
    cr_assert(!rt_dim_is_known(rt_dim_of(&w), (bool[]){false, true, true}));
    cr_assert(rt_dim_same(rt_dim_of(&c), rt_dim_of(&c)) && !rt_dim_same(rt_dim_of(&c), rt_dim_of(&s)));
}
