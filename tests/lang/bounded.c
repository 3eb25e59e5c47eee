/* tests/lang/bounded.c -- kernels over extents with a constant bound, such as that of the last row of a
 * tensor. */
#include "tests/lang/kit.h"

TestSuite(bounded, .init = open_context, .fini = close_context);

/* Different numbers, as the text of a constant. */
static const char *numbers(int n)
{
    base_text all = {0};

    for (int i = 0; i < n; i++)
        base_addf(cx, &all, "%s%d.25", i ? ", " : "", i * 7 % 11 - 5);
    return base_text_str(cx, &all);
}

/* What `body` makes of v4, the last row of v2 with so many rows, and of v3, three other rows. */
static void agrees(const char *body, int rows)
{
    const char *text =
        base_format(cx,
                    "graph \"last\" { symbols p, m function \"main\" {\n"
                    "constant v0: f32[8, 8] = [%s]\nconstant v1: f32[8] = [%s]\n"
                    "input v2 \"rows\": f32[p, 8]\ninput v3 \"more\": f32[m, 8]\n"
                    "v4: f32[p - max(0, p - 1), 8] = op slice \"last\"(v2) @begin(exprs [max(0, p - 1), 0])"
                    " @extent(exprs [p - max(0, p - 1), 8]) @step([1, 1])\n%s\n} }",
                    numbers(64), numbers(8), body);
    graph_module *m = graph_parse(cx, "p.graph", text, NULL), *again = graph_parse(cx, "p.graph", text, NULL);
    float data[2][5 * 8];
    interp_value *in[2];

    cr_assert(m && again, "%s\n%s", tec_context_error(cx), text);
    again->for_vm = true;
    for (int k = 0; k < 2; k++) {
        const int64_t shape[] = {k ? 3 : rows, 8};

        for (int i = 0; i < 5 * 8; i++)
            data[k][i] = (float)((i * 5 + k) % 7) - 3;
        in[k] = interp_tensor(cx, BASE_F32, 2, shape, data[k]);
    }
    agree_on(build(m, again, NULL), in, 2, 1);
}

static void agrees_for_all(const char *body)
{
    for (int rows = 0; rows <= 5; rows += rows ? 4 : 1)
        agrees(body, rows);
}

Test(bounded, a_product_with_what_is_added)
{
    agrees_for_all("v5: f32[p - max(0, p - 1), 8] = op matmul \"mm\"(v4, v0)\n"
                   "v6: f32[p - max(0, p - 1), 8] = op add \"add\"(v5, v1)\n"
                   "output \"y\" v6");
}

/* The extent stands inside of a sum: the loop over the columns has m + e iterations. */
Test(bounded, a_product_with_rows_of_which_some_may_be_there)
{
    agrees_for_all(
        "v5: f32[m + p - max(0, p - 1), 8] = op concat \"keys\"(v3, v4) @axis(0)\n"
        "v6: f32[p - max(0, p - 1), m + p - max(0, p - 1)] = op matmul \"mm\"(v4, v5) @trans_b(1)\n"
        "v7: f32[p - max(0, p - 1), m + p - max(0, p - 1)] = op softmax \"share\"(v6) @axis(1)\n"
        "v8: f32[p - max(0, p - 1), 8] = op matmul \"mixed\"(v7, v5)\n"
        "output \"y\" v8");
}

Test(bounded, a_reduction_and_what_reads_it)
{
    agrees_for_all("v5: f32[p - max(0, p - 1), 8] = op softmax \"share\"(v4) @axis(1)\noutput \"y\" v5");
}

/* At most three columns are a single tile. */
Test(bounded, a_product_with_a_part_of_a_cache)
{
    agrees_for_all("v5: f32[min(p, 3), 8] = op slice \"part\"(v3) @begin(exprs [0, 0])"
                   " @extent(exprs [min(p, 3), 8]) @step([1, 1])\n"
                   "v6: f32[8, min(p, 3)] = op matmul \"mm\"(v0, v5) @trans_b(1)\n"
                   "v7: f32[8, min(p, 3)] = op tanh \"t\"(v6)\noutput \"y\" v7");
}

/* What `body` makes of v0: f32[n, 8] and v1: f32[8, m], where the facts bound m, for some n and all m. */
static void agrees_below(int most, const char *body)
{
    static const int rows[] = {1, 5};
    const char *text = base_format(cx,
                                   "graph \"few\" { symbols n, m fact m <= %d function \"main\" {\n"
                                   "input v0 \"a\": f32[n, 8]\ninput v1 \"b\": f32[8, m]\n%s\n} }",
                                   most, body);
    float data[2][8 * 8];

    for (int i = 0; i < 8 * 8; i++) {
        data[0][i] = (float)(i * 5 % 7) - 3;
        data[1][i] = (float)(i * 3 % 5) - 2;
    }
    for (int i = 0; i < BASE_COUNT(rows); i++)
        for (int k = 0; k < 3; k++) {
            int m = k < 2 ? k : most;
            graph_module *g = graph_parse(cx, "m.graph", text, NULL),
                         *again = graph_parse(cx, "m.graph", text, NULL);
            interp_value *in[2] = {interp_tensor(cx, BASE_F32, 2, (const int64_t[]){rows[i], 8}, data[0]),
                                   interp_tensor(cx, BASE_F32, 2, (const int64_t[]){8, m}, data[1])};

            cr_assert(g && again, "%s\n%s", tec_context_error(cx), text);
            again->for_vm = true;
            agree_on(build(g, again, NULL), in, 2, 1);
        }
}

/* m columns are one packed panel at most: of the axis over panels there is one value, or none. */
Test(bounded, columns_that_a_fact_bounds)
{
    static const int most[] = {1, 8};

    for (int i = 0; i < BASE_COUNT(most); i++) {
        agrees_below(most[i], "v2: f32[n, m] = op matmul \"mm\"(v0, v1)\noutput \"y\" v2");
        agrees_below(most[i], "v2: f32[n, m] = op matmul \"mm\"(v0, v1)\nv3: f32[n, m] = op relu \"r\"(v2)\n"
                              "output \"y\" v3");
        agrees_below(most[i], "v2: f32[8, m] = op softmax \"s\"(v1) @axis(0)\noutput \"y\" v2");
        agrees_below(most[i], "v2: f32[8, m] = op softmax \"s\"(v1) @axis(1)\noutput \"y\" v2");
    }
}
