/* tests/schedule/tuples.c -- reductions of tuples and with declared combiners, under the steps that
 * re-associate them. */
#include <math.h>

#include "tests/schedule/run.h"

TestSuite(tuples, .init = open_context, .fini = close_context);

/* Mean and sum of squared deviations of each row in one pass (Welford, Chan): partial results are (count,
 * mean, squares). */
static const char variance[] = "def f(n, m, A: f64[n, m]) where n >= 1, m >= 1 {\n"
                               "  combiner welford(c: f64, a: f64, q: f64; d: f64, b: f64, r: f64) =\n"
                               "    (c + d, a + (b - a) * (d / max(c + d, f64(1.0))), q + r + (b - a) * (b - "
                               "a) * (c * d / max(c + d, f64(1.0))))\n"
                               "    identity (f64(0.0), f64(0.0), f64(0.0)) reorders\n"
                               "  S(count, mean, squares)[i] = welford[k](f64(1.0), A[i, k], f64(0.0))\n"
                               "  V[i] = squares[i] / count[i]\n"
                               "  return mean, V\n}\n";

/* log of the sum of exponentials: partial results are (maximum, sum of the exponentials below it). */
static const char log_sum_exp[] = "def f(n, m, A: f64[n, m]) where n >= 1, m >= 1 {\n"
                                  "  combiner lse(a: f64, s: f64; b: f64, t: f64) =\n"
                                  "    (max(a, b), s * exp(a - max(a, b)) + t * exp(b - max(a, b))) identity "
                                  "(f64(-1e300), f64(0.0)) reorders\n"
                                  "  S(top, rest)[i] = lse[k](A[i, k], f64(1.0))\n"
                                  "  L[i] = top[i] + log(rest[i])\n"
                                  "  return L\n}\n";

/* Equal values: the smaller index wins, however the loop is cut. Elements may be left out, all of them
 * too. */
static const char ties[] = "def f(n, m, l, A: i32[n, m]) where n >= 1, m >= 1, l <= m {\n"
                           "  S(low, at)[i] = argmin[k](A[i, k] % 3, k)\n"
                           "  T(high, where_)[i] = argmax[k](A[i, k] % 3, k where k < l && A[i, k] > 0)\n"
                           "  return low, at, high, where_\n}\n";

/* The outputs of both are close; the combiners are associative but for rounding. */
static void stays_close(sched *s, const char *trace)
{
    const ir_program *before = sched_tree(s);

    cr_assert(sched_replay(s, "test", trace), "%s\n%s", sched_error(s), ir_program_text(cx, sched_tree(s)));
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const char *fault;
        base_text a = run_program(before, seed, &fault), b;

        cr_assert(!fault, "%s", fault);
        b = run_program(sched_tree(s), seed, &fault);
        cr_assert(!fault, "%s\n%s", fault, tree_text(s));
        cr_assert_eq(a.n, b.n);
        for (size_t i = 0; i + sizeof(double) <= a.n; i += sizeof(double)) {
            double x, y;

            memcpy(&x, a.data + i, sizeof x);
            memcpy(&y, b.data + i, sizeof y);
            cr_assert(fabs(x - y) <= 1e-12 * (1 + fabs(x)), "seed %d: %g, expected %g\n%s", (int)seed, y, x,
                      tree_text(s));
        }
    }
}

static const char *const steps[] = {
    "a, b = split(S.k, _, 4)\nparallel(S.i)",
    "a, b = split(S.k, _, 4)\nreorder(S.k.1, S.k.0)",
    "a, b = split(S.k, _, 4)\nr = rfactor(S.k.1, 0)\nparallel(S.i)",
    "a, b = split(S.k, _, 4)\nr = rfactor(S.k.0, 1)",
    "a, b = split(S.k, _, 4)\nvectorize(S.k.1)",
    "a, b = split(S.k, _, 4)\nr = rfactor(S.k.1, 0)\nc = cache_write(S, local)",
    "i = decompose_reduction(S, S.k)\na, b = split(S.i, _, 3)\nparallel(S.i.0)",
    "a, b = split(S.i, _, 3)\nreorder(S.i.0, S.k, S.i.1)\nvectorize(S.i.1)",
    "a, b = split(S.k, _, 4)\nc = cache_write(S, local, S.k.0)",
};

static void under_all_steps(const char *text, void (*check)(sched *s, const char *trace))
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        check(schedule_of(text), steps[i]);
}

Test(tuples, mean_and_variance_in_one_pass)
{
    under_all_steps(variance, stays_close);
}

Test(tuples, log_sum_exp_in_one_pass)
{
    under_all_steps(log_sum_exp, stays_close);
}

Test(tuples, the_first_of_equals_wins)
{
    under_all_steps(ties, does);
}

Test(tuples, conditions_leave_elements_out)
{
    sched *s = schedule_of(ties);

    does(s, "a, b = split(T.k, _, 4)\nr = rfactor(T.k.1, 0)");
    does(schedule_of(ties), "a, b = split(T.k, _, 4)\nreorder(T.k.1, T.k.0)\nparallel(T.i)");
    does(schedule_of(ties), "a, b = split(T.k, _, 4)\nvectorize(T.k.1)");
}
