/* tests/ir/intern.c -- equal expressions become one node, and what must stay apart does. */
#include <criterion/criterion.h>

#include "ir/build.h"
#include "ir/intern.h"

static tec_context *cx;
static ir_interned table;
static const ir_expr *i, *j;

static void setup(void)
{
    cx = tec_context_new();
    table = (ir_interned){.cx = cx};
    i = ir_var(cx, "i", BASE_I64);
    j = ir_var(cx, "j", BASE_I64);
}

static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(intern, .init = setup, .fini = teardown);

static const ir_expr *place(int64_t by, int64_t c)
{
    return ir_add(cx, ir_mul(cx, i, ir_int(cx, by)), ir_int(cx, c));
}

Test(intern, gives_the_first_of_equal_expressions)
{
    const ir_expr *first = place(4, 1);

    cr_expect_eq(ir_intern(&table, first), first);
    cr_expect_eq(ir_intern(&table, place(4, 1)), first);
    cr_expect_neq(ir_intern(&table, place(4, 2)), first);
    cr_expect_null(ir_intern(&table, NULL));
}

Test(intern, finds_them_all_again_after_it_has_grown)
{
    enum { N = 5000 };
    const ir_expr **first = base_array(cx, const ir_expr *, N);

    for (int k = 0; k < N; k++)
        first[k] = ir_intern(&table, place(k + 2, k));
    for (int k = 0; k < N; k++)
        cr_assert_eq(ir_intern(&table, place(k + 2, k)), first[k], "%d", k);
}

Test(intern, tells_namesakes_apart)
{
    const ir_expr *namesake = ir_var(cx, "i", BASE_I64), *n = ir_int(cx, 8);
    const ir_buffer *A = ir_buffer_new(cx, "A", BASE_F32, &n, 1),
                    *other = ir_buffer_new(cx, "A", BASE_F32, &n, 1);

    cr_expect_neq(ir_intern(&table, ir_add(cx, i, j)), ir_intern(&table, ir_add(cx, namesake, j)));
    cr_expect_neq(ir_intern(&table, ir_load(cx, A, &i, 1)), ir_intern(&table, ir_load(cx, other, &i, 1)));
    cr_expect_eq(ir_intern(&table, ir_load(cx, A, &i, 1)), ir_intern(&table, ir_load(cx, A, &i, 1)));
}

Test(intern, keeps_what_has_an_effect_inside)
{
    const ir_expr *call[2], *sum[2];

    for (int k = 0; k < 2; k++) {
        call[k] = ir_call(cx, BASE_I64, "next", NULL, &i, 1, NULL, 0, false);
        sum[k] = ir_add(cx, call[k], j);
    }
    cr_expect_neq(ir_intern(&table, call[0]), ir_intern(&table, call[1]));
    cr_expect_neq(ir_intern(&table, sum[0]), ir_intern(&table, sum[1]));
}
