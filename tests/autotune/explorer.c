/* tests/autotune/explorer.c -- explorers on spaces with a cost that is computed: what they find, and that
 * nothing is proposed twice. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/explore.h"
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
TestSuite(explorer, .init = open_context, .fini = close_context);

/* ---- spaces ---- */

enum { KNOBS = 6, VALUES = 10 };

/* Its knobs are all that counts: 10^6 points, of which one is best. */
static bool numbers(tec_knobs *k, tec_schedule *s, void *user)
{
    int64_t value[VALUES];

    (void)s;
    for (int i = 0; i < VALUES; i++)
        value[i] = 1 << i;
    for (int i = 0; i < (user ? *(int *)user : KNOBS); i++)
        tec_knob_choice_n(k, base_format(cx, "k%d", i), value, VALUES);
    tec_knobs_done(k);
    return true;
}

/* Half of the points are refused, and one knob counts for half of the rest only. */
static bool narrow(tec_knobs *k, tec_schedule *s, void *user)
{
    int64_t a = tec_knob_choice(k, "a", 1, 2, 3, 4), b = tec_knob_choice(k, "b", 1, 2, 3, 4);
    const char *c = tec_knob_word(k, "c", "no", "yes");

    (void)s;
    (void)user;
    tec_knob_choice(k, "d", 1, 2, 3);
    tec_knob_require(k, a + b <= 5, "too much");
    if (strcmp(c, "no") == 0)
        tec_knob_idle(k, "d");
    tec_knobs_done(k);
    return true;
}
enum { NARROW_POINTS = 10 * (1 + 3) };

static space *make_space(tec_template *f, void *user)
{
    te_file *file =
        te_parse(cx, "test.te", "def rows(A: f32[8, 64]) {\n  S[y] = sum[x](A[y, x])\n  return S\n}\n");

    return space_new(cx, sched_new(cx, te_tree(cx, file->defs.at[0]), NULL), f, user);
}

/* Seconds: a valley that bends; no two knobs can be set apart from each other. The least is 1. */
static double cost(const space_point *p)
{
    double sum = 1;

    for (int i = 0; i < p->n; i++) {
        double off = p->value[i] - (i % 2 ? 6 : 3), before = i ? p->value[i - 1] - (i % 2 ? 3 : 6) : 0;

        sum += 0.05 * off * off + 0.03 * (off - before) * (off - before);
    }
    return sum;
}

/* What a model might say: right in most cases, wrong by up to 20 %, and it knows nothing of costs above 4. */
static bool predict(void *user, const space_point *p, int n, double *score)
{
    (void)user;
    for (int i = 0; i < n; i++) {
        uint64_t state = space_hash(&p[i]);

        score[i] = -fmin(cost(&p[i]), 4) * (1 + 0.2 * base_random_unit(&state));
    }
    return true;
}

/* ---- what is found ---- */

enum { BATCH = 16, MOST = 1600 };

/* Trials until a cost of at most 1.2 was measured; MOST: never. */
static int trials_until_good(const char *kind, const space *sp, uint64_t seed)
{
    tune_explorer *e = tune_explorer_new(cx, kind, sp, seed);
    space_point p[BATCH];
    double throughput[BATCH];

    for (int done = 0; done < MOST; done += BATCH) {
        int n = tune_propose(e, BATCH, done ? predict : NULL, NULL, p);

        cr_assert_eq(n, BATCH);
        for (int i = 0; i < n; i++) {
            if (cost(&p[i]) <= 1.2)
                return done + i + 1;
            throughput[i] = i % 5 == 4 ? 0 : 1 / cost(&p[i]); /* some fail */
        }
        tune_observe(e, p, throughput, n);
    }
    return MOST;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int median_trials(const char *kind, const space *sp)
{
    enum { SEEDS = 7 };
    int found[SEEDS];

    for (int i = 0; i < SEEDS; i++)
        found[i] = trials_until_good(kind, sp, (uint64_t)i + 1);
    qsort(found, SEEDS, sizeof *found, by_number);
    return found[SEEDS / 2];
}

Test(explorer, finds_a_good_point_sooner_than_random)
{
    space *sp = make_space(numbers, NULL);
    int random = median_trials("random", sp);

    for (int i = 0; i < tune_n_explorers(); i++) {
        const char *kind = tune_explorer_name(i);
        int trials = median_trials(kind, sp);

        if (strcmp(kind, "random") == 0 || strcmp(kind, "grid") == 0)
            continue;
        cr_expect_lt(2 * trials, random, "%s needs %d trials, random %d", kind, trials, random);
        if (tune_explorer_uses_model(kind))
            cr_expect_leq(trials, 8 * BATCH, "%s needs %d trials", kind, trials);
    }
}

/* The least cost among so many trials in batches of 32, of which the model knows nothing before the first. */
static double best_of_trials(const char *kind, const space *sp, uint64_t seed, int trials)
{
    enum { LARGE = 32 };
    tune_explorer *e = tune_explorer_new(cx, kind, sp, seed);
    space_point p[LARGE];
    double throughput[LARGE], best = INFINITY;

    for (int done = 0; done < trials; done += LARGE) {
        int n = tune_propose(e, LARGE, done ? predict : NULL, NULL, p);

        for (int i = 0; i < n; i++) {
            best = fmin(best, cost(&p[i]));
            throughput[i] = 1 / cost(&p[i]);
        }
        tune_observe(e, p, throughput, n);
    }
    return best;
}

/* Three batches behind the first. With 64 chains of 8 steps, which score as many points, the mean is 1.18. */
Test(explorer, anneals_for_long_enough_to_come_near_the_best)
{
    enum { SEEDS = 20 };
    space *sp = make_space(numbers, NULL);
    double sum = 0;

    for (int i = 0; i < SEEDS; i++)
        sum += best_of_trials("anneal", sp, (uint64_t)i + 1, 128);
    cr_expect_lt(sum / SEEDS, 1.05, "%.4f in the mean", sum / SEEDS);
}

/* ---- what others found ---- */

static space_point best_point(const space *sp)
{
    space_point p = space_start(sp);

    for (int i = 0; i < p.n; i++)
        p.value[i] = i % 2 ? 6 : 3;
    return p;
}

Test(explorer, proposes_first_what_was_suggested_where_it_uses_a_model)
{
    space *sp = make_space(numbers, NULL);
    space_point good = best_point(sp), p[BATCH];

    for (int i = 0; i < tune_n_explorers(); i++) {
        const char *kind = tune_explorer_name(i);
        tune_explorer *blind = tune_explorer_new(cx, kind, sp, 1), *wise = tune_explorer_new(cx, kind, sp, 1);

        if (!tune_explorer_uses_model(kind))
            continue;
        tune_suggest(blind, &good, 1);
        tune_suggest(wise, &good, 1);
        cr_assert_eq(tune_propose(blind, BATCH, NULL, NULL, p), BATCH);
        cr_expect(space_same(&p[0], &good), "%s", kind);
        cr_assert_eq(tune_propose(wise, BATCH, predict, NULL, p), BATCH);
        cr_expect(space_same(&p[1], &good), "%s: behind its own first choice", kind);
        cr_assert_eq(tune_propose(wise, BATCH, predict, NULL, p), BATCH);
        for (int k = 0; k < BATCH; k++)
            cr_expect_not(space_same(&p[k], &good), "%s proposes it twice", kind);
    }
}

Test(explorer, takes_suggestions_in_the_order_of_the_scores)
{
    space *sp = make_space(numbers, NULL);
    space_point given[] = {space_start(sp), best_point(sp)}, p[BATCH];
    tune_explorer *e = tune_explorer_new(cx, "anneal", sp, 1);

    tune_suggest(e, given, 2);
    cr_assert_eq(tune_propose(e, BATCH, predict, NULL, p), BATCH);
    cr_expect(space_same(&p[1], &given[1]) && space_same(&p[3], &given[0]));
}

/* ---- sets ---- */

/* All that it proposes of a small space, by index; each once. */
static int exhaust(const char *kind, const space *sp, bool *seen, int size)
{
    tune_explorer *e = tune_explorer_new(cx, kind, sp, 1);
    space_point p[BATCH];
    double throughput[BATCH];
    int total = 0;

    for (int n = BATCH; n > 0; total += n) {
        n = tune_propose(e, BATCH, total ? predict : NULL, NULL, p);
        for (int i = 0; i < n; i++) {
            int index = (int)space_index(sp, &p[i]);

            cr_assert(index < size && !seen[index], "%s proposes a point twice", kind);
            cr_assert(space_check(cx, sp, &p[i], NULL), "%s proposes what the space refuses", kind);
            seen[index] = true;
            throughput[i] = 1;
        }
        if (n > 0)
            tune_observe(e, p, throughput, n);
    }
    return total;
}

Test(explorer, ends_when_each_point_of_a_small_space_was_proposed_once)
{
    space *sp = make_space(narrow, NULL);

    for (int i = 0; i < tune_n_explorers(); i++) {
        bool seen[4 * 4 * 2 * 3] = {0};

        cr_expect_eq(exhaust(tune_explorer_name(i), sp, seen, BASE_COUNT(seen)), NARROW_POINTS, "%s",
                     tune_explorer_name(i));
    }
}

Test(explorer, has_one_point_where_there_are_no_choices)
{
    int none = 0;
    space *sp = make_space(numbers, &none);

    for (int i = 0; i < tune_n_explorers(); i++) {
        bool seen[1] = {0};

        cr_expect_eq(exhaust(tune_explorer_name(i), sp, seen, 1), 1, "%s", tune_explorer_name(i));
    }
}

Test(explorer, does_not_propose_what_was_observed_of_itself)
{
    int one = 1;
    space *sp = make_space(numbers, &one);

    for (int i = 0; i < tune_n_explorers(); i++) {
        tune_explorer *e = tune_explorer_new(cx, tune_explorer_name(i), sp, 1);
        space_point start = space_start(sp), p[VALUES];

        tune_observe(e, &start, (double[]){1}, 1);
        cr_assert_eq(tune_propose(e, VALUES, NULL, NULL, p), VALUES - 1);
        for (int k = 0; k < VALUES - 1; k++)
            cr_assert_not(space_same(&p[k], &start));
    }
}

/* ---- determinism ---- */

/* A number that follows from all proposals of some batches. */
static uint64_t history(const char *kind, const space *sp, uint64_t seed)
{
    tune_explorer *e = tune_explorer_new(cx, kind, sp, seed);
    space_point p[BATCH];
    double throughput[BATCH];
    uint64_t hash = BASE_HASH_SEED;

    for (int b = 0; b < 6; b++) {
        int n = tune_propose(e, BATCH, b ? predict : NULL, NULL, p);

        for (int i = 0; i < n; i++) {
            uint64_t h = space_hash(&p[i]);

            hash = base_hash(&h, sizeof h, hash);
            throughput[i] = 1 / cost(&p[i]);
        }
        tune_observe(e, p, throughput, n);
    }
    return hash;
}

Test(explorer, proposes_the_same_again_for_the_same_seed_and_results)
{
    space *sp = make_space(numbers, NULL);

    for (int i = 0; i < tune_n_explorers(); i++) {
        const char *kind = tune_explorer_name(i);

        cr_expect_eq(history(kind, sp, 1), history(kind, sp, 1), "%s", kind);
        if (strcmp(kind, "grid") != 0)
            cr_expect_neq(history(kind, sp, 1), history(kind, sp, 2), "%s takes no notice of the seed", kind);
    }
}

/* ---- batches ---- */

/* All scores are alike, so that only the filter can make a difference. */
static bool like_all(void *user, const space_point *p, int n, double *score)
{
    (void)user;
    (void)p;
    for (int i = 0; i < n; i++)
        score[i] = 1;
    return true;
}

Test(explorer, chooses_points_that_differ)
{
    space *sp = make_space(numbers, NULL);
    tune_explorer *e = tune_explorer_new(cx, "random", sp, 1);
    tune_pool pool = tune_pool_new(cx, 40);
    space_point chosen[8];
    uint64_t state = 1;
    int far = 0;

    for (int i = 0; i < 20; i++)
        /* next to each other */
        pool.point[pool.n++] = space_at(sp, (space_number)i % VALUES + 1000 * ((space_number)i / VALUES));
    for (int i = 0; i < 20; i++)
        space_sample(cx, sp, &state, &pool.point[pool.n++]);
    like_all(NULL, pool.point, pool.n, pool.score);
    cr_assert_eq(tune_choose(e, &pool, 8, chosen), 8);
    for (int i = 0; i < 7; i++)
        for (int k = 20; k < 40; k++)
            far += space_same(&chosen[i], &pool.point[k]);
    cr_expect_geq(far, 4, "%d of 7 points lie apart from the others", far);
}

static bool refuse_most(void *user, const space_point *p, int n, double *score)
{
    (void)user;
    for (int i = 0; i < n; i++)
        score[i] = p[i].value[0] == 0 ? 1 : -INFINITY;
    return true;
}

Test(explorer, leaves_out_what_cannot_be_applied)
{
    space *sp = make_space(numbers, NULL);

    for (int i = 0; i < tune_n_explorers(); i++) {
        tune_explorer *e = tune_explorer_new(cx, tune_explorer_name(i), sp, 1);
        space_point p[20];
        int refused = 0;

        if (!tune_explorer_uses_model(tune_explorer_name(i)))
            continue;
        int n = tune_propose(e, 20, refuse_most, NULL, p);
        for (int k = 0; k < n; k++)
            refused += p[k].value[0] != 0;
        cr_expect_eq(n, 20);
        cr_expect_lt(refused, 20, "%s", tune_explorer_name(i)); /* those at random may be */
        cr_expect_neq(p[0].value[0], -1);
    }
}

static bool fail(void *user, const space_point *p, int n, double *score)
{
    (void)p;
    (void)n;
    (void)score;
    return base_fail(user, TEC_INTERNAL, (base_loc){0}, "the model is gone");
}

Test(explorer, hands_on_the_error_of_the_scorer)
{
    space *sp = make_space(numbers, NULL);
    space_point p[4];

    for (int i = 0; i < tune_n_explorers(); i++)
        if (tune_explorer_uses_model(tune_explorer_name(i)))
            cr_expect_eq(tune_propose(tune_explorer_new(cx, tune_explorer_name(i), sp, 1), 4, fail, cx, p),
                         -1);
    cr_expect(strstr(tec_context_error(cx), "the model is gone"));
}

Test(explorer, lists_the_kinds_for_an_unknown_name)
{
    cr_assert_null(tune_explorer_new(cx, "guess", make_space(numbers, NULL), 1));
    cr_assert(strstr(
        tec_context_error(cx),
        "there is no explorer 'guess'; there are anneal, epsilon-greedy, evolve, random, grid, genetic"));
}
