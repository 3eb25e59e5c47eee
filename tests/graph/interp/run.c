/* tests/graph/interp/run.c -- programs run by the interpreter of graphs, against what C says. */
#include "graph/interp/interp.h"
#include "tests/graph/kit.h"

TestSuite(interp, .init = open_context, .fini = close_context);

static interp_value *floats(int n, const float *x)
{
    return interp_tensor(cx, BASE_F32, 1, (const int64_t[]){n}, x);
}

static interp_value *matrix(int64_t rows, int64_t columns, const float *x)
{
    return interp_tensor(cx, BASE_F32, 2, (const int64_t[]){rows, columns}, x);
}

static interp_value *flag(bool b)
{
    return interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){b});
}

static interp_value *count(int64_t i)
{
    return interp_tensor(cx, BASE_I64, 0, NULL, &i);
}

static const float *data(const interp_value *v)
{
    return v->array.data;
}

static void runs(const graph_module *m, interp_value *const *in, int n_in, interp_value **out, int n_out)
{
    cr_assert(interp_run(cx, m, NULL, in, n_in, NULL, out, n_out), "%s", tec_context_error(cx));
}

static void fails(const graph_module *m, interp_value *const *in, int n_in, const char *expected)
{
    interp_value *out[4];

    cr_assert_not(interp_run(cx, m, NULL, in, n_in, NULL, out,
                             ((const graph_function *)m->functions.at[0])->body->outputs.n));
    cr_assert(strstr(tec_context_error(cx), expected), "found: %s\nexpected: %s", tec_context_error(cx),
              expected);
    tec_context_clear(cx);
}

/* ---- trees ---- */

#define TREE                                                                                                 \
    "graph \"g\" { data \"Tree\" { case \"Leaf\" over k (f32[k, 4]) case \"Node\" (\"Tree\", \"Tree\") }\n"  \
    "function \"main\" { input v0 \"t\": \"Tree\"\n"                                                         \
    "v8: f32[4], v9: i64[] = match \"which\"(v0) { symbols n input v1: f32[n, 4] constant c1: i64[] = [1]\n" \
    "v2: f32[4] = op reduce_sum \"rows\"(v1) @axes([0]) @keepdims(0)\noutput v2 output c1 }\n"               \
    "{ input v3: \"Tree\" input v4: \"Tree\"\n"                                                              \
    "v5: f32[4], a: i64[] = call \"main\" \"l\"(v3)\nv6: f32[4], b: i64[] = call \"main\" \"r\"(v4)\n"       \
    "v7: f32[4] = op add \"sum\"(v5, v6)\nc: i64[] = op add \"leaves\"(a, b)\nd: i64[] = op identity "       \
    "\"same\"(c)\noutput v7 output d }\n"                                                                    \
    "output \"y\" v8 output \"leaves\" v9 } }"

/* A tree of that many leaves, of 0 to 3 rows; adds up what is in them. */
static interp_value *random_tree(const graph_data *d, uint64_t *seed, int leaves, float *sum)
{
    if (leaves == 1) {
        float x[12];
        int64_t rows = base_random_below(seed, 4);

        for (int i = 0; i < 4 * (int)rows; i++) {
            x[i] = (float)base_random_below(seed, 100);
            sum[i % 4] += x[i];
        }
        interp_value *field = matrix(rows, 4, x);
        return interp_data(cx, d, 0, &field, 1);
    }
    int left = 1 + (int)base_random_below(seed, leaves - 1);
    interp_value *both[] = {random_tree(d, seed, left, sum), NULL};
    both[1] = random_tree(d, seed, leaves - left, sum);
    return interp_data(cx, d, 1, both, 2);
}

Test(interp, recursion_over_trees_adds_up_their_leaves)
{
    graph_module *m = parsed(TREE), *optimised = graph_optimise(parsed(TREE), any_target());
    const graph_data *d = graph_find_data(m, "Tree");
    uint64_t seed = 18;

    for (int leaves = 1; leaves <= 40; leaves += 13) {
        float sum[4] = {0};
        interp_value *t = random_tree(d, &seed, leaves, sum), *out[2];

        for (int k = 0; k < 2; k++) {
            runs(k ? optimised : m, &t, 1, out, 2);
            cr_assert_eq(memcmp(data(out[0]), sum, sizeof sum), 0, "leaves %d, seed 18", leaves);
            cr_assert_eq(*(const int64_t *)out[1]->array.data, leaves);
        }
    }
}

Test(interp, the_depth_of_calls_is_limited)
{
    graph_module *m = parsed(TREE);
    const graph_data *d = graph_find_data(m, "Tree");
    interp_value *field = matrix(0, 4, NULL), *t = interp_data(cx, d, 0, &field, 1), *leaf = t, *out[2];

    for (int i = 0; i < 50; i++)
        t = interp_data(cx, d, 1, (interp_value *[]){t, leaf}, 2);
    runs(m, &t, 1, out, 2);
    cr_assert_not(interp_run(cx, m, NULL, &t, 1, &(interp_options){.max_depth = 20}, out, 2));
    cr_assert(strstr(tec_context_error(cx), "calls nest too deeply, in a call of 'main'"), "%s",
              tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert_not(interp_run(cx, m, NULL, &t, 1, &(interp_options){.max_nodes = 20}, out, 2));
    cr_assert(strstr(tec_context_error(cx), "the limit on nodes is reached"), "%s", tec_context_error(cx));
}

/* ---- loops ---- */

#define DECODE                                                                                               \
    "graph \"g\" { function \"main\" { symbols n0, d, e input v0: f32[n0, 2] input v1: i64[] input v2: "     \
    "bool[]\n"                                                                                               \
    "v9: f32[d, 2], v10: f32[e, 2] = loop \"decode\"(v1, v2, v0) { symbols n fact n <= 6\n"                  \
    "input i: i64[] input go: bool[] input c: f32[n, 2]\n"                                                   \
    "s: f32[1, 2] = op reduce_sum \"s\"(c) @axes([0]) @keepdims(1)\nc2: f32[n + 1, 2] = op concat "          \
    "\"grow\"(c, s) @axis(0)\n"                                                                              \
    "r: f32[2] = op reduce_sum \"r\"(c) @axes([0]) @keepdims(0)\noutput go output c2 output r }\n"           \
    "output \"y\" v9 output \"z\" v10 } }"

/* Each iteration appends the sum of all rows: 1, 1, 2, 4, 8. */
Test(interp, a_loop_carries_a_tensor_that_grows)
{
    graph_module *m = parsed(DECODE);
    interp_value *in[] = {matrix(1, 2, (const float[]){1, 10}), count(4), flag(true)}, *out[2];

    runs(m, in, 3, out, 2);
    cr_assert_eq(out[0]->array.shape[0], 5);
    cr_assert_eq(memcmp(data(out[0]), (const float[]){1, 10, 1, 10, 2, 20, 4, 40, 8, 80}, 40), 0);
    cr_assert_eq(out[1]->array.shape[0], 4);
    cr_assert_eq(memcmp(data(out[1]), (const float[]){1, 10, 2, 20, 4, 40, 8, 80}, 32), 0);
}

Test(interp, a_loop_without_iterations_gives_what_it_got)
{
    graph_module *m = parsed(DECODE);
    interp_value *in[] = {matrix(3, 2, (const float[]){1, 2, 3, 4, 5, 6}), count(4), flag(false)}, *out[2];

    runs(m, in, 3, out, 2);
    cr_assert_eq(out[0]->array.shape[0], 3);
    cr_assert_eq(out[1]->array.shape[0], 0);
    cr_assert_eq(out[1]->array.shape[1], 2);
}

Test(interp, a_fact_of_an_iteration_is_checked_in_each)
{
    interp_value *in[] = {matrix(1, 2, (const float[]){1, 10}), count(9), flag(true)};

    fails(parsed(DECODE), in, 3, "'n <= 6' does not hold: n = 7");
}

Test(interp, a_scan_hands_its_state_on)
{
    graph_module *m = parsed(
        "graph \"g\" { function \"main\" { symbols n input v0: f32[2] input v1: f32[n, 2]\n"
        "v5: f32[2], v6: f32[n, 2] = scan \"sums\"(v0, v1) @states(1) { input s: f32[2] input x: f32[2]\n"
        "t: f32[2] = op add \"a\"(s, x)\noutput t output t }\noutput \"y\" v5 output \"z\" v6 } }");
    interp_value *in[] = {floats(2, (const float[]){1, 2}), matrix(3, 2, (const float[]){1, 1, 2, 2, 3, 3})},
                 *out[2];

    runs(m, in, 2, out, 2);
    cr_assert_eq(memcmp(data(out[0]), (const float[]){7, 8}, 8), 0);
    cr_assert_eq(memcmp(data(out[1]), (const float[]){2, 3, 4, 5, 7, 8}, 24), 0);
    in[1] = matrix(0, 2, NULL);
    runs(m, in, 2, out, 2);
    cr_assert_eq(out[1]->array.shape[0], 0);
}

/* ---- calls ---- */

/* halve(x: f32[n]) = n < 2 ? x : halve(x[0 .. n / 2]): each call has its own n. */
Test(interp, symbols_belong_to_one_call)
{
    graph_module *m = parsed(
        "graph \"g\" { function \"halve\" { symbols n, r input x: f32[n]\n"
        "two: i64[] = op values \"n\"() @scalar(1) @values(exprs [n])\nconstant c: i64[] = [2]\n"
        "small: bool[] = op less \"l\"(two, c)\ny: f32[r] = if \"i\"(small) { output x } {\n symbols q\n"
        "half: f32[n / 2] = op slice \"s\"(x) @begin(exprs [0]) @extent(exprs [n / 2]) @step([1])\n"
        "rest: f32[q] = call \"halve\" \"again\"(half)\noutput rest }\noutput \"y\" y } }");
    float x[11];
    for (int i = 0; i < 11; i++)
        x[i] = (float)i + 3;
    interp_value *in = floats(11, x), *out;

    runs(m, &in, 1, &out, 1);
    cr_assert_eq(out->array.shape[0], 1);
    cr_assert_eq(data(out)[0], 3);
}

Test(interp, function_values_hold_their_first_parameters)
{
    graph_module *m = parsed(
        "graph \"g\" { function \"main\" { symbols n input v0: f32[n] input v1: f32[n] input v2: bool[]\n"
        "v9: fn(f32[n]) -> (f32[n]) = if \"i\"(v2) { a: fn(f32[n]) -> (f32[n]) = closure \"plus\" \"p\"(v0) "
        "output a }\n"
        "{ b: fn(f32[n]) -> (f32[n]) = closure \"times\" \"t\"(v0) output b }\n"
        "v3: f32[n] = apply \"use\"(v9, v1)\noutput \"y\" v3 }\n"
        "function \"plus\" { symbols k input v11: f32[k] input v12: f32[k] v13: f32[k] = op add \"s\"(v11, "
        "v12) output \"y\" v13 }\n"
        "function \"times\" { symbols k input v21: f32[k] input v22: f32[k] v23: f32[k] = op mul \"s\"(v21, "
        "v22) output \"y\" v23 } }");

    for (int k = 0; k < 2; k++) {
        interp_value *in[] = {floats(2, (const float[]){2, 3}), floats(2, (const float[]){5, 7}), flag(k)},
                     *out;

        runs(m, in, 3, &out, 1);
        cr_assert_eq(data(out)[0], k ? 7 : 10);
        cr_assert_eq(data(out)[1], k ? 10 : 21);
    }
}

/* ---- checks ---- */

Test(interp, checks_facts_and_types_are_held)
{
    graph_module *m = parsed("graph \"g\" { function \"main\" { symbols n fact 2 <= n input v0: f32[n] input "
                             "v1: f32[n, n] input v2: bool[]\n"
                             "check \"sane\"(v2) @message(\"the flag must be set\")\noutput \"y\" v0 } }");
    float x[9] = {0};
    interp_value *in[] = {floats(2, x), matrix(2, 2, x), flag(false)};

    fails(m, in, 3, "'sane': the flag must be set");
    in[0] = floats(3, x);
    fails(m, in, 3, "input 1: expected f32[n, n], found f32[2, 2]");
    in[0] = floats(1, x);
    in[1] = matrix(1, 1, x);
    fails(m, in, 3, "'2 <= n' does not hold: n = 1");
    in[2] = count(1);
    fails(m, in, 3, "input 2: expected bool[], found i64[]");
    in[2] = interp_tuple(cx, in, 1);
    fails(m, in, 3, "input 2: expected bool[], found a tuple");
}
