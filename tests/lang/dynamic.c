/* tests/lang/dynamic.c -- operators with results of unknown extents: by the VM, by the interpreter of graphs,
 * and by plain loops.
 */
#include "tests/lang/kit.h"

TestSuite(dynamic, .init = open_context, .fini = close_context);

static interp_value *integers(int n, const int64_t *data)
{
    return interp_tensor(cx, BASE_I64, 1, (const int64_t[]){n}, data);
}

static interp_value *number(int64_t value)
{
    return interp_tensor(cx, BASE_I64, 0, NULL, &value);
}

/* Drawn, so that values repeat. */
static int draw(uint64_t *state, int below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)(*state >> 33) % below;
}

/* The one result of the interpreter; the VM has agreed. */
static const interp_value *result_of(const char *text, interp_value *const *in, int n)
{
    compiled c = compile(text, NULL);
    interp_value *out;

    cr_assert(interp_run(cx, c.graph, NULL, in, n, NULL, &out, 1), "%s", tec_context_error(cx));
    agree_on(c, in, n, 1);
    return out;
}

static void holds(const interp_value *value, int n, const int64_t *expected)
{
    cr_assert_eq(value->array.shape[value->array.n - 1], n);
    for (int i = 0; i < n; i++)
        cr_assert_eq(((const int64_t *)value->array.data)[i], expected[i], "element %d: %lld, expected %lld",
                     i, (long long)((const int64_t *)value->array.data)[i], (long long)expected[i]);
}

Test(dynamic, unique_counts_and_finds_first_places)
{
    for (uint64_t seed = 1; seed < 12; seed++) {
        int64_t x[40], value[40], first[40], often[40], inverse[40];
        uint64_t state = seed;
        int n = (int)(seed * 3) % 29, k = 0;

        for (int i = 0; i < n; i++)
            x[i] = draw(&state, 6) - 3;
        for (int64_t v = -3; v < 3; v++) {
            bool found = false;

            for (int i = 0; i < n; i++)
                if (x[i] == v) {
                    if (!found) {
                        value[k] = v;
                        first[k] = i;
                        often[k++] = 0;
                    }
                    found = true;
                    often[k - 1]++;
                    inverse[i] = k - 1;
                }
        }
        interp_value *in = integers(n, x);
        const interp_value *y =
            result_of("def main(x: i64[n]) -> (i64[?], i64[?], i64[?], i64[?]) { unique(x) }", &in, 1);
        holds(y->part[0], k, value);
        holds(y->part[1], k, first);
        holds(y->part[2], n, inverse);
        holds(y->part[3], k, often);
    }
}

Test(dynamic, values_may_stay_in_the_order_in_which_they_came)
{
    const int64_t x[] = {2, 1, 1, 3, 4, 3}, value[] = {2, 1, 3, 4}, first[] = {0, 1, 3, 4},
                  inverse[] = {0, 1, 1, 2, 3, 2}, often[] = {1, 2, 2, 1};
    interp_value *in = integers(6, x);
    const interp_value *y = result_of(
        "def main(x: i64[n]) -> (i64[?], i64[?], i64[?], i64[?]) { unique(x, sorted = 0) }", &in, 1);

    holds(y->part[0], 4, value);
    holds(y->part[1], 4, first);
    holds(y->part[2], 6, inverse);
    holds(y->part[3], 4, often);
}

Test(dynamic, a_range_has_as_many_numbers_as_the_run_says)
{
    static const struct {
        int64_t start, limit, step;
    } cases[] = {{0, 5, 1}, {2, 11, 3}, {5, 0, -2}, {3, 3, 1}, {4, 1, 1}, {-3, 4, 7}};

    for (int c = 0; c < BASE_COUNT(cases); c++) {
        int64_t expected[16];
        int k = 0;

        for (int64_t i = cases[c].start; cases[c].step > 0 ? i < cases[c].limit : i > cases[c].limit;
             i += cases[c].step)
            expected[k++] = i;
        holds(result_of(
                  "def main(a: i64, b: i64, c: i64) -> i64[?] { arange(a, b, c) }",
                  (interp_value *[]){number(cases[c].start), number(cases[c].limit), number(cases[c].step)},
                  3),
              k, expected);
    }
}

Test(dynamic, a_range_with_a_step_of_0_ends_the_run)
{
    compiled c = compile("def main(a: i64, b: i64, c: i64) -> i64[?] {\n  arange(a, b, c)\n}", NULL);
    tec_object *in[] = {object_of(&c, number(0)), object_of(&c, number(3)), object_of(&c, number(0))}, *out;

    cr_assert_not(tec_program_run(c.p, in, 3, &out, 1, &err));
    cr_assert(strstr(err.text, "p.tecp:2: in 'main': 'arange': the step is 0"), "%s", err.text);
    for (int i = 0; i < 3; i++)
        tec_object_free(in[i]);
    discard(&c);
}

Test(dynamic, what_is_not_zero_and_what_a_flag_picks)
{
    for (int n = 0; n < 40; n += 13) {
        int64_t x[40], place[40], picked[40];
        uint64_t seed = (uint64_t)n + 5;
        int k = 0, m = 0;

        for (int i = 0; i < n; i++) {
            x[i] = draw(&seed, 3);
            if (x[i])
                place[k++] = i;
            if (x[i] > 1)
                picked[m++] = x[i];
        }
        interp_value *in = integers(n, x);
        holds(result_of("def main(x: i64[n]) -> i64[1, ?] { non_zero(x) }", &in, 1), k, place);
        holds(result_of("def main(x: i64[n]) -> i64[?] { compress(x, x > 1) }", &in, 1), m, picked);
    }
}

/* The greatest probabilities until they reach 0.75: 0.5 and 0.25; 0.125 is not needed any more. */
Test(dynamic, top_p_takes_the_beginning_of_what_is_sorted)
{
    const float p[] = {0.125F, 0.5F, 0.25F, 0.0625F, 0.0625F}, limits[] = {0.75F, 0.8F, 0.0F, 2.0F};
    const int64_t places[] = {1, 2, 0, 3, 4};
    const int counts[] = {2, 3, 0, 5};

    for (int i = 0; i < 4; i++) {
        const interp_value *y =
            result_of("def main(p: f32[n], limit: f32) -> (f32[?], i64[?]) { top_p(p, limit) }",
                      (interp_value *[]){interp_tensor(cx, BASE_F32, 1, (const int64_t[]){5}, p),
                                         interp_tensor(cx, BASE_F32, 0, NULL, &limits[i])},
                      2);
        holds(y->part[1], counts[i], places);
    }
}

static float overlap(const float *a, const float *b)
{
    float top = a[0] > b[0] ? a[0] : b[0], left = a[1] > b[1] ? a[1] : b[1],
          bottom = a[2] < b[2] ? a[2] : b[2], right = a[3] < b[3] ? a[3] : b[3];
    float both = bottom > top && right > left ? (bottom - top) * (right - left) : 0;
    float all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;

    return both / all;
}

/* The best box first, as long as there are any; what overlaps a box that was taken by more than half is left
 * out. */
static int suppress(int n, const float (*box)[4], const float *score, int most, int64_t *out)
{
    bool gone[40] = {false};
    int taken = 0;

    for (int i = 0; i < n; i++)
        gone[i] = score[i] <= 0.25F;
    while (taken < most) {
        int best = -1;

        for (int i = 0; i < n; i++)
            if (!gone[i] && (best < 0 || score[i] > score[best]))
                best = i;
        if (best < 0)
            break;
        out[taken++] = best;
        gone[best] = true;
        for (int i = 0; i < n; i++)
            gone[i] = gone[i] || overlap(box[best], box[i]) > 0.45F;
    }
    return taken;
}

Test(dynamic, boxes_that_overlap_a_better_one_are_left_out)
{
    for (uint64_t seed = 1; seed < 8; seed++) {
        uint64_t state = seed;
        int n = draw(&state, 14) + 1, most = draw(&state, 6) + 1;
        float box[40][4], score[40], limit = 0.45F, least = 0.25F;
        int64_t expected[40];

        for (int i = 0; i < n; i++) {
            for (int d = 0; d < 2; d++) {
                box[i][d] = (float)draw(&state, 12);
                box[i][d + 2] = box[i][d] + 1 + (float)draw(&state, 9);
            }
            score[i] = (float)(draw(&state, 1000) * 16 + i) / 16000.0F;
        }
        int k = suppress(n, (const float(*)[4])box, score, most, expected);
        const interp_value *y = result_of(
            "def main(b: f32[1, n, 4], s: f32[1, 1, n], most: i64, limit: f32, least: f32) -> i64[?, 3] {\n"
            "  non_max_suppression(b, s, most, limit, least)\n}",
            (interp_value *[]){interp_tensor(cx, BASE_F32, 3, (const int64_t[]){1, n, 4}, box),
                               interp_tensor(cx, BASE_F32, 3, (const int64_t[]){1, 1, n}, score),
                               number(most), interp_tensor(cx, BASE_F32, 0, NULL, &limit),
                               interp_tensor(cx, BASE_F32, 0, NULL, &least)},
            5);
        cr_assert_eq(y->array.shape[0], k);
        for (int i = 0; i < k; i++)
            cr_assert_eq(((const int64_t *)y->array.data)[i * 3 + 2], expected[i]);
    }
}

Test(dynamic, operands_that_do_not_fit_are_named)
{
    cr_assert_null(lang_parse(cx, "p.tecp", "def main(x: i64[n]) -> i64[?] { compress(x) }", NULL));
    cr_assert(strstr(tec_context_error(cx), "'compress': compress takes 2 to 2 operands, found 1"), "%s",
              tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert_null(
        lang_parse(cx, "p.tecp", "def main(x: i64[n], y: f32) -> i64[?] { arange(x, x, x) }", NULL));
    cr_assert(strstr(tec_context_error(cx), "operand 0 is i64[n]: expected three numbers of one type"), "%s",
              tec_context_error(cx));
}

/* ---- checks that constants decide ---- */

static bool emits(const char *text, int32_t instruction)
{
    const graph_build_options o = {.target = target_parse(cx, "native"), .jobs = 1};
    graph_built *b = graph_build(lang_parse(cx, "p.tecp", text, NULL), &o);

    cr_assert(b, "%s", tec_context_error(cx));
    for (int i = 0; i < b->desc.program.n_functions; i++) {
        const rt_routine_desc *f = &b->desc.program.functions[i];

        for (int32_t at = 0; at < f->n_words; at += rt_instruction_words(f->words, at, f->n_words))
            if (f->words[at] == instruction)
                return true;
    }
    return false;
}

#define STEP_OF_0                                                                                            \
    "def main(more: bool, n: i64) -> i64[?] {\n"                                                             \
    "  if more { arange(0, n, 0) } else { arange(0, n, 1) }\n"                                               \
    "}\n"

Test(dynamic, a_check_that_cannot_hold_is_fatal_where_it_is_reached)
{
    interp_value *in[] = {interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){0}), number(4)}, *out;

    cr_assert(emits(STEP_OF_0, RT_FATAL));
    holds(result_of(STEP_OF_0, in, 2), 4, (const int64_t[]){0, 1, 2, 3});
    in[0] = interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){1});
    compiled c = compile(STEP_OF_0, NULL);
    tec_object *given[] = {object_of(&c, in[0]), object_of(&c, in[1])}, *result = NULL;
    cr_assert_not(tec_program_run(c.p, given, 2, &result, 1, &err));
    cr_assert(strstr(err.text, "the step is 0") && strstr(err.text, "p.tecp:2"), "%s", err.text);
    cr_assert_not(interp_run(cx, c.graph, NULL, in, 2, NULL, &out, 1));
    cr_assert(strstr(tec_context_error(cx), "the step is 0"), "%s", tec_context_error(cx));
    tec_object_free(given[0]);
    tec_object_free(given[1]);
    discard(&c);
}

Test(dynamic, a_check_that_always_holds_leaves_no_code)
{
    const char *text = "def main(n: i64) -> i64[?] { arange(0, n, 1) }\n";

    cr_assert_not(emits(text, RT_FATAL));
    cr_assert(emits("def main(n: i64, k: i64) -> i64[?] { arange(0, n, k) }\n", RT_CHECK));
    interp_value *in[] = {number(3)};
    holds(result_of(text, in, 1), 3, (const int64_t[]){0, 1, 2});
}
