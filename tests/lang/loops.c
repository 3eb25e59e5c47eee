/* tests/lang/loops.c -- loops and scans by the VM: what they carry, what they collect, when they end. */
#include "tests/lang/kit.h"

TestSuite(loops, .init = open_context, .fini = close_context);

static interp_value *flag(bool b)
{
    return interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){b});
}

static interp_value *count(int64_t i)
{
    return interp_tensor(cx, BASE_I64, 0, NULL, &i);
}

static interp_value *matrix(int64_t rows, int64_t columns)
{
    interp_value *v = interp_tensor(cx, BASE_F32, 2, (const int64_t[]){rows, columns}, NULL);

    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)v->array.data)[i] = (float)(i % 7) - 2.5F;
    return v;
}

/* A tensor that grows by a row in each iteration; collected: the number of the iteration and the row before.
 */
#define GROW                                                                                                 \
    "graph \"g\" { function \"main\" { symbols d, e\ninput v0 \"first\": f32[1, 3]\ninput v1 \"steps\": "    \
    "i64[]\ninput v2 \"go\": bool[]\nconstant v3: i64[] = [5]\n"                                             \
    "v9: f32[d, 3], v10: i64[e], v11: f32[e, 1, 3] = loop \"decode\"(v1, v2, v0) { symbols n\n"              \
    "input i: i64[] input go: bool[] input c: f32[n, 3]\n"                                                   \
    "v5: f32[1, 3] = op relu \"r\"(v0)\nv6: f32[n + 1, 3] = op concat \"append\"(c, v5) @axis(0)\n"          \
    "v7: bool[] = op less \"more\"(i, v3)\noutput v7 output v6 output i output v0 }\n"                       \
    "output \"y\" v9 output \"i\" v10 output \"r\" v11 } }"

Test(loops, a_carried_tensor_grows_and_what_is_collected_too)
{
    for (int64_t steps = 0; steps < 9; steps++)
        for (int go = 0; go < 2; go++)
            agree_on(compile_graph(GROW, NULL), (interp_value *[]){matrix(1, 3), count(steps), flag(go)}, 3,
                     3);
}

/* Fibonacci by two values that change places. */
Test(loops, values_that_change_places_are_not_mixed)
{
    const char *text =
        "graph \"g\" { function \"main\" { input n: i64[]\nconstant z: i64[] = [0]\nconstant o: "
        "i64[] = [1]\na: i64[], b: i64[] = loop \"l\"(n, _, z, o) {\n"
        "input i: i64[] input go: bool[] input x: i64[] input y: i64[]\n"
        "s: i64[] = op add \"s\"(x, y)\noutput go output y output s }\noutput \"a\" a output "
        "\"b\" b } }";
    const char *swap =
        "graph \"g\" { function \"main\" { input n: i64[]\nconstant z: i64[] = [0]\nconstant o: "
        "i64[] = [1]\na: i64[], b: i64[] = loop \"l\"(n, _, z, o) {\n"
        "input i: i64[] input go: bool[] input x: i64[] input y: i64[]\n"
        "output go output y output x }\noutput \"a\" a output \"b\" b } }";

    for (int64_t n = 0; n < 12; n++) {
        agree_on(compile_graph(text, NULL), (interp_value *[]){count(n)}, 1, 2);
        agree_on(compile_graph(swap, NULL), (interp_value *[]){count(n)}, 1, 2);
    }
}

Test(loops, a_loop_inside_of_a_loop_and_an_if)
{
    const char *text =
        "graph \"g\" { function \"main\" { symbols e\ninput n: i64[]\ninput v0: f32[4]\nconstant two: i64[] "
        "= [2]\n"
        "a: f32[4], b: f32[e, 4] = loop \"outer\"(n, _, v0) { input i: i64[] input go: bool[] input x: "
        "f32[4]\n"
        "y: f32[4] = loop \"inner\"(i, _, x) { input j: i64[] input go2: bool[] input z: f32[4]\n"
        "even: bool[] = op less \"l\"(j, two)\n"
        "w: f32[4] = if \"if\"(even) { p: f32[4] = op add \"p\"(z, x)\noutput p } { q: f32[4] = op neg "
        "\"q\"(z)\n"
        "output q }\noutput go2 output w }\noutput go output y output y }\noutput \"a\" a output \"b\" b } }";

    for (int64_t n = 0; n < 6; n++)
        agree_on(compile_graph(text, NULL),
                 (interp_value *[]){count(n), interp_tensor(cx, BASE_F32, 1, (const int64_t[]){4},
                                                            (const float[]){1, -2, .5F, 3})},
                 2, 2);
}

Test(loops, a_scan_hands_its_state_on)
{
    const char *text =
        "graph \"g\" { function \"main\" { symbols n\ninput v0: f32[3]\ninput v1 \"x\": f32[n, 3]\ninput v2 "
        "\"y\": "
        "i64[n]\nv5: f32[3], v6: f32[n, 3], v7: i64[n] = scan \"sums\"(v0, v1, v2) @states(1) { input s: "
        "f32[3] "
        "input x: f32[3] input y: i64[]\nt: f32[3] = op add \"add\"(s, x)\nu: i64[] = op mul \"twice\"(y, "
        "y)\n"
        "output t output t output u }\noutput \"last\" v5 output \"all\" v6 output \"squares\" v7 } }";

    for (int64_t n = 0; n < 20; n += 3) {
        interp_value *y = interp_tensor(cx, BASE_I64, 1, &n, NULL);

        for (int64_t i = 0; i < n; i++)
            ((int64_t *)y->array.data)[i] = i - 4;
        agree_on(
            compile_graph(text, NULL),
            (interp_value *[]){interp_tensor(cx, BASE_F32, 1, (const int64_t[]){3}, (const float[]){1, 2, 3}),
                               matrix(n, 3), y},
            3, 3);
    }
}

/* 10,000 rows are appended: the blocks that they lie in double, so that few are asked for. */
Test(loops, what_is_collected_is_extended_in_place)
{
    compiled c =
        compile_graph("graph \"g\" { function \"main\" { symbols e\ninput n: i64[]\nv1: i64[e] = loop "
                      "\"l\"(n, _) { input i: i64[] input go: bool[]\noutput go output i }\n"
                      "output \"y\" v1 } }",
                      NULL);
    tec_object *n = object_of(&c, count(10000)), *out;
    tec_program_counts counts;

    cr_assert(tec_program_run(c.p, &n, 1, &out, 1, &err), "%s", err.text);
    tec_program_count(c.p, &counts);
    cr_assert_eq(tec_object_dltensor(out)->shape[0], 10000);
    for (int64_t i = 0; i < 10000; i++)
        cr_assert_eq(((const int64_t *)tec_object_dltensor(out)->data)[i], i);
    cr_assert_lt(counts.from_system, 40, "%lld", (long long)counts.from_system);
    tec_object_free(out);
    tec_object_free(n);
    discard(&c);
}

Test(loops, a_loop_without_end_reaches_the_limit_of_steps)
{
    compiled c =
        compile_graph("graph \"g\" { function \"main\" { input x: f32[2]\nv1: f32[2] = loop \"l\"(_, _, x) "
                      "{ input i: i64[] input go: bool[] input y: f32[2]\noutput go output y }\n"
                      "output \"y\" v1 } }",
                      &(tec_program_options){.max_steps = 100000});
    tec_object *x =
                   object_of(&c, interp_tensor(cx, BASE_F32, 1, (const int64_t[]){2}, (const float[]){1, 2})),
               *out;

    cr_assert_not(tec_program_run(c.p, &x, 1, &out, 1, &err));
    cr_assert(strstr(err.text, "the limit of 100000 steps is reached"), "%s", err.text);
    tec_object_free(x);
    discard(&c);
}

/* ---- extents that only the run tells ---- */

#define FIRST_ROWS                                                                                           \
    "graph \"first rows\" { function \"main\" { symbols n, k\nfact k <= n\ninput v0 \"x\": f32[n, "          \
    "4]\ninput v1 "                                                                                          \
    "\"rows\": i64[]\nextents \"rows\"(v1) @symbols(exprs [k])\nv2: f32[k, 4] = op slice \"y\"(v0) "         \
    "@begin(exprs [0, 0]) @extent(exprs [k, 4]) @step([1, 1])\noutput \"y\" v2 } }"

Test(loops, an_element_of_a_tensor_becomes_an_extent)
{
    for (int64_t k = 0; k <= 5; k++)
        agree_on(compile_graph(FIRST_ROWS, NULL), (interp_value *[]){matrix(5, 4), count(k)}, 2, 1);
}

Test(loops, an_element_that_breaks_a_fact_or_is_negative_ends_the_run)
{
    static const char *const expected[] = {"'k <= n' does not hold", "'rows': element 0 is negative"};

    for (int i = 0; i < 2; i++) {
        err = (tec_error){0};
        compiled c = compile_graph(FIRST_ROWS, NULL);
        interp_value *in[] = {matrix(5, 4), count(i ? -1 : 6)}, *y;
        tec_object *given[] = {object_of(&c, in[0]), object_of(&c, in[1])}, *out;

        cr_assert_not(tec_program_run(c.p, given, 2, &out, 1, &err));
        cr_assert(strstr(err.text, expected[i]), "%s", err.text);
        cr_assert_not(interp_run(cx, c.graph, NULL, in, 2, NULL, &y, 1));
        cr_assert(strstr(tec_context_error(cx), expected[i]), "%s", tec_context_error(cx));
        tec_context_clear(cx);
        tec_object_free(given[0]);
        tec_object_free(given[1]);
        discard(&c);
    }
}
