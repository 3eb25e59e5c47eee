/* tests/autotune/model.c -- cost models: what they learn, what they refuse, saving and seeding. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/prior.h"
#include "autotune/source.h"
#include "space/space.h"
#include "te/text.h"

enum { N = 160, HELD_OUT = 80 };

static tec_context *cx;
static const target *cpu;

static void open_context(void)
{
    cx = tec_context_new();
    cpu = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=4");
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(model, .init = open_context, .fini = close_context);

/* ---- rows of real candidates, with a cost that is made up ---- */

static const te_def *product(int y, int k, int x)
{
    const char *text = base_format(
        cx,
        "def mm(A: f32[%d, %d], B: f32[%d, %d]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n", y,
        k, k, x);
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    return f->defs.at[0];
}

/* n rows of different candidates of the product. */
static float *sample(int y, int k, int x, uint64_t seed, int n)
{
    float *rows = base_array(cx, float, (size_t)n *TUNE_N_FEATURES);
    space *sp = space_master(cx, te_tree(cx, product(y, k, x)), cpu);

    cr_assert(sp, "%s", tec_context_error(cx));
    for (int i = 0; i < n;) {
        base_mark mark = base_arena_mark(cx);
        space_point p;
        sched *s = space_sample(cx, sp, &seed, &p) ? space_apply(cx, sp, &p) : NULL;

        if (s && !sched_failed(s))
            cr_assert(tune_features(cx, sched_tree(s), cpu, NULL, rows + (size_t)i++ * TUNE_N_FEATURES));
        base_arena_release(cx, mark);
    }
    return rows;
}

static const float *row_at(const float *rows, int i)
{
    return rows + (size_t)i * TUNE_N_FEATURES;
}

/* A machine that is not quite what the estimate takes it for: it waits for its L1 cache more, and minds
 * scalars and spills in its own way. */
static double made_up_cost(const float *row)
{
    const float *statement = row + TUNE_N_PROGRAM;
    double spill = fmax(0, statement[TUNE_STATEMENT_pressure]),
           scalar = statement[TUNE_STATEMENT_vector] == 0;

    return 1e-9 * exp2(0.7 * row[TUNE_PROGRAM_estimate] + 0.7 * statement[TUNE_STATEMENT_traffic_l1]) *
           (1 + 2 * spill + 3 * scalar + 0.5 * statement[TUNE_STATEMENT_imbalance]);
}

static tune_model *model_of(const char *kind)
{
    tune_model *m = tune_model_new(cx, kind, 7);

    cr_assert(m, "%s", tec_context_error(cx));
    return m;
}

static void add(tune_model *m, uint64_t task, const float *rows, int n)
{
    for (int i = 0; i < n; i++)
        cr_assert(tune_model_add(cx, m, task, row_at(rows, i), made_up_cost(row_at(rows, i))), "%s",
                  tec_context_error(cx));
}

static const double *scores(tune_model *m, const float *rows, int n)
{
    double *out = base_array(cx, double, n);

    cr_assert(tune_model_fit(cx, m) && tune_model_predict(cx, m, rows, n, out), "%s", tec_context_error(cx));
    return out;
}

/* How many are less, and half of those that are equal. */
static double rank_of(const double *values, int n, int i)
{
    double rank = 0;

    for (int j = 0; j < n; j++)
        rank += values[j] < values[i] ? 1 : values[j] == values[i] ? 0.5 : 0;
    return rank;
}

/* Spearman's rank correlation of scores with throughput. */
static double correlation(tune_model *m, const float *rows, int n)
{
    const double *score = scores(m, rows, n);
    double *speed = base_array(cx, double, n), xy = 0, xx = 0, yy = 0;

    for (int i = 0; i < n; i++)
        speed[i] = 1 / made_up_cost(row_at(rows, i));
    for (int i = 0; i < n; i++) {
        double x = rank_of(score, n, i) - n / 2.0, y = rank_of(speed, n, i) - n / 2.0;

        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    return xx > 0 ? xy / sqrt(xx * yy) : 0;
}

static void expect_equal_scores(tune_model *m, const float *rows, int n)
{
    const double *s = scores(m, rows, n);

    for (int i = 1; i < n; i++)
        cr_assert_eq(s[i], s[0]);
    cr_assert(isfinite(s[0]));
}

/* The model has learned nothing: the higher the estimate, the lower the score. */
static void expect_scores_of_estimates(tune_model *m, const float *rows, int n)
{
    const double *s = scores(m, rows, n);

    for (int i = 1; i < n; i++) {
        double a = row_at(rows, i - 1)[TUNE_PROGRAM_estimate], b = row_at(rows, i)[TUNE_PROGRAM_estimate];

        cr_assert_eq(a<b, s[i - 1]> s[i]);
        cr_assert_eq(a > b, s[i - 1] < s[i]);
    }
}

/* ---- learning ---- */

static void learns(const char *kind)
{
    const float *rows = sample(64, 96, 128, 1, N), *held_out = sample(64, 96, 128, 2, HELD_OUT);
    tune_model *m = model_of(kind);

    add(m, 1, rows, N);
    double rho = correlation(m, held_out, HELD_OUT);
    tune_model_close(m);
    cr_assert(rho > 0.8, "the rank correlation is %g", rho);
}

Test(model, of_ranks_learns)
{
    learns("rank");
}
Test(model, of_regression_learns)
{
    learns("regression");
}

Test(model, of_none_tells_nothing_apart)
{
    const float *rows = sample(64, 96, 128, 1, 40);
    tune_model *m = model_of("none");

    add(m, 1, rows, 40);
    expect_equal_scores(m, rows, 40);
    tune_model_close(m);
}

Test(model, costs_count_within_their_task)
{
    const float *rows = sample(64, 96, 128, 1, N), *held_out = sample(64, 96, 128, 2, HELD_OUT);
    tune_model *m = model_of("rank");

    /* Every other row is of a task of the same program on a clock that is a thousand times as fast. */
    for (int i = 0; i < N; i++)
        cr_assert(tune_model_add(cx, m, (uint64_t)i % 2, row_at(rows, i),
                                 made_up_cost(row_at(rows, i)) * (i % 2 ? 1 : 1000)));
    double rho = correlation(m, held_out, HELD_OUT);
    tune_model_close(m);
    cr_assert(rho > 0.8, "the rank correlation is %g", rho);
}

Test(model, goes_by_estimates_with_no_one_or_failed_samples)
{
    const float *rows = sample(64, 96, 128, 1, 20);
    const char *const kind[] = {"rank", "regression", "none"};

    for (int k = 0; k < BASE_COUNT(kind); k++) {
        void (*expect)(tune_model *, const float *, int) =
            k < 2 ? expect_scores_of_estimates : expect_equal_scores;
        tune_model *m = model_of(kind[k]);

        cr_assert_eq(tune_model_knows(m), k < 2);
        expect(m, rows, 20);
        add(m, 1, rows, 1);
        expect(m, rows, 20);
        tune_model_close(m);
        m = model_of(kind[k]);
        for (int i = 0; i < 20; i++)
            cr_assert(tune_model_add(cx, m, 1, row_at(rows, i), INFINITY));
        expect(m, rows, 20);
        tune_model_close(m);
    }
}

Test(model, learns_nothing_of_rows_that_are_all_equal)
{
    const float *rows = sample(64, 64, 64, 5, 1);

    for (int kind = 0; kind < 2; kind++) {
        tune_model *m = model_of(kind ? "rank" : "regression");

        for (int i = 0; i < 6; i++)
            cr_assert(tune_model_add(cx, m, 1, rows, 0.001 * (i + 1)), "%s", tec_context_error(cx));
        cr_assert(tune_model_fit(cx, m), "%s", tec_context_error(cx));
        expect_equal_scores(m, rows, 1);
        tune_model_close(m);
    }
}

Test(model, ranks_failures_last)
{
    const float *rows = sample(64, 96, 128, 1, N);
    tune_model *m = model_of("rank");
    double good = 0, bad = 0, n_bad = 0;

    /* What has more than 64 results in a tile fails. */
    for (int i = 0; i < N; i++) {
        bool fails = row_at(rows, i)[TUNE_N_PROGRAM + TUNE_STATEMENT_tile_elements] > 6;

        cr_assert(tune_model_add(cx, m, 1, row_at(rows, i), fails ? INFINITY : 1e-3));
    }
    const double *s = scores(m, rows, N);
    for (int i = 0; i < N; i++) {
        bool fails = row_at(rows, i)[TUNE_N_PROGRAM + TUNE_STATEMENT_tile_elements] > 6;

        *(fails ? &bad : &good) += s[i];
        n_bad += fails;
    }
    tune_model_close(m);
    cr_assert(n_bad > 5 && n_bad < N - 5);
    cr_assert(good / (N - n_bad) > bad / n_bad + 0.5);
}

Test(model, scores_follow_from_the_rows_not_from_when_it_was_fitted)
{
    const float *rows = sample(64, 96, 128, 1, 120), *held_out = sample(64, 96, 128, 2, 50);
    tune_model *a = model_of("rank"), *b = model_of("rank");

    add(a, 1, rows, 120);
    for (int i = 0; i < 120; i += 40) {
        add(b, 1, row_at(rows, i), 40);
        cr_assert(tune_model_fit(cx, b));
    }
    cr_assert_arr_eq(scores(a, held_out, 50), scores(b, held_out, 50), 50 * sizeof(double));
    tune_model_close(a);
    tune_model_close(b);
}

Test(model, predicts_nothing_of_no_rows)
{
    tune_model *m = model_of("rank");

    cr_assert(tune_model_predict(cx, m, NULL, 0, NULL));
    tune_model_close(m);
}

Test(model, says_which_features_took_part)
{
    const float *rows = sample(64, 96, 128, 1, N);
    double gain[TUNE_N_FEATURES], sum = 0;
    tune_model *m = model_of("regression");

    cr_assert(tune_model_importance(cx, m, gain));
    cr_assert_eq(gain[0], 0);
    add(m, 1, rows, N);
    cr_assert(tune_model_fit(cx, m) && tune_model_importance(cx, m, gain));
    for (int i = 0; i < TUNE_N_FEATURES; i++)
        sum += gain[i];
    cr_assert_float_eq(sum, 1, 1e-6);
    tune_model_close(m);
}

/* ---- what is refused ---- */

static void expect_error(const char *part)
{
    cr_assert(tec_context_error(cx) && strstr(tec_context_error(cx), part), "expected '%s' in '%s'", part,
              tec_context_error(cx));
    tec_context_clear(cx);
}

Test(model, names_the_kinds_there_are)
{
    cr_assert_null(tune_model_new(cx, "oracle", 1));
    expect_error("there is no cost model 'oracle': expected rank, regression or none");
}

Test(model, refuses_numbers_that_are_none)
{
    float row[TUNE_N_FEATURES] = {0};
    tune_model *m = model_of("rank");
    double score;

    cr_assert_not(tune_model_add(cx, m, 1, row, NAN));
    expect_error("expected a cost above 0 (infinity for a failure), found nan seconds");
    cr_assert_not(tune_model_add(cx, m, 1, row, 0));
    expect_error("expected a cost above 0 (infinity for a failure), found 0 seconds");
    row[1] = NAN;
    cr_assert_not(tune_model_add(cx, m, 1, row, 1));
    expect_error("feature 'bytes' is nan: expected a finite number");
    cr_assert_not(tune_model_predict(cx, m, row, 1, &score));
    expect_error("row 0: feature 'bytes' is nan: expected a finite number");
    cr_assert_eq(tune_model_count(m), 0);
    tune_model_close(m);
}

/* ---- saving ---- */

static const void *saved(tune_model *m, size_t *size)
{
    const void *data;

    cr_assert(tune_model_save(cx, m, &data, size), "%s", tec_context_error(cx));
    return data;
}

Test(model, predicts_the_same_after_loading)
{
    const float *rows = sample(64, 96, 128, 1, N), *more = sample(64, 96, 128, 3, 40),
                *held_out = sample(64, 96, 128, 2, 50);
    tune_model *m = model_of("rank");
    size_t size;

    add(m, 1, rows, N);
    cr_assert(tune_model_settle(cx, m));
    add(m, 2, more, 40);
    const void *data = saved(m, &size);
    tune_model *back = tune_model_load(cx, data, size, 7);
    cr_assert(back, "%s", tec_context_error(cx));
    cr_assert_str_eq(tune_model_kind(back), "rank");
    cr_assert_eq(tune_model_count(back), N + 40);
    cr_assert_arr_eq(scores(m, held_out, 50), scores(back, held_out, 50), 50 * sizeof(double));
    add(back, 3, more, 40);
    cr_assert(correlation(back, held_out, 50) > 0.7);
    tune_model_close(m);
    tune_model_close(back);
}

Test(model, that_learned_nothing_can_be_saved)
{
    tune_model *m = model_of("regression");
    size_t size;
    const void *data = saved(m, &size);
    tune_model *back = tune_model_load(cx, data, size, 7);

    cr_assert(back, "%s", tec_context_error(cx));
    expect_scores_of_estimates(back, sample(64, 96, 128, 1, 5), 5);
    tune_model_close(m);
    tune_model_close(back);
}

/* A saved model, and what loading says of it after one byte was changed. */
Test(model, refuses_damaged_bytes)
{
    tune_model *m = model_of("rank");
    uint64_t state = 5;
    size_t size;

    add(m, 1, sample(64, 96, 128, 1, 60), 60);
    const uint8_t *data = saved(m, &size);
    for (int i = 0; i < 2000; i++) {
        size_t length = i % 4 == 0 ? (size_t)base_random_below(&state, (int64_t)size) : size;
        uint8_t *copy = malloc(length + 1); /* so that a sanitizer sees what is read behind it */

        memcpy(copy, data, length);
        if (length == size)
            copy[i < 200 ? i % 40 : base_random_below(&state, (int64_t)size)] ^=
                (uint8_t)(1 + base_random_below(&state, 255));
        cr_assert_null(tune_model_load(cx, copy, length, 1));
        expect_error("cannot load a cost model: ");
        free(copy);
    }
    tune_model_close(m);
}

Test(model, refuses_other_bytes_and_says_why)
{
    tune_model *m = model_of("rank");
    char text[200] = "a text that is no model, but long enough for a header and a little more than that, so "
                     "that it is read";
    size_t size;

    add(m, 1, sample(64, 96, 128, 1, 10), 10);
    const void *data = saved(m, &size);
    cr_assert_null(tune_model_load(cx, data, 5, 1));
    expect_error("its 5 bytes are too few for a header");
    cr_assert_null(tune_model_load(cx, text, sizeof text, 1));
    expect_error("the bytes are not a cost model");
    cr_assert_null(tune_model_load(cx, data, size - 1, 1));
    expect_error("it is damaged");
    tune_model_close(m);
}

Test(model, can_be_settled_a_few_times)
{
    const float *rows = sample(64, 96, 128, 1, 10);
    tune_model *m = model_of("rank");
    int n = 0;

    do
        add(m, 1, rows, 10);
    while (tune_model_settle(cx, m) && ++n < 100);
    expect_error("a cost model can be settled at most 4 times: make a new model from records");
    cr_assert_eq(n, 4);
    tune_model_close(m);
}

/* ---- transfer ---- */

Test(model, learns_of_a_shape_from_others)
{
    const float *held_out = sample(96, 48, 160, 2, HELD_OUT), *few = sample(96, 48, 160, 3, 16);
    tune_model *alone = model_of("rank"), *seeded = model_of("rank");

    add(seeded, 1, sample(64, 96, 128, 1, 160), 160);
    add(seeded, 2, sample(128, 64, 64, 1, 160), 160);
    add(seeded, 3, sample(32, 128, 256, 1, 160), 160);
    cr_assert(tune_model_settle(cx, seeded), "%s", tec_context_error(cx));
    double before = correlation(seeded, held_out, HELD_OUT), nothing = correlation(alone, held_out, HELD_OUT);
    add(alone, 4, few, 16);
    add(seeded, 4, few, 16);
    double without = correlation(alone, held_out, HELD_OUT), with = correlation(seeded, held_out, HELD_OUT);
    tune_model_close(alone);
    tune_model_close(seeded);
    cr_assert(before > nothing + 0.1, "of a shape that it never saw: %g, by the estimate alone: %g", before,
              nothing);
    cr_assert(with > without + 0.05, "with %g, without %g", with, without);
}

/* As where others' best is this task's worst. */
Test(model, outgrows_a_prior_that_is_wrong)
{
    const float *rows = sample(64, 96, 128, 1, 160), *held_out = sample(64, 96, 128, 2, HELD_OUT);
    tune_model *m = model_of("rank");

    for (int i = 0; i < 160; i++)
        cr_assert(tune_model_add(cx, m, 1, row_at(rows, i), 1e-6 / made_up_cost(row_at(rows, i))));
    cr_assert(tune_model_settle(cx, m), "%s", tec_context_error(cx));
    double wrong = correlation(m, held_out, HELD_OUT);
    add(m, 2, sample(64, 96, 128, 3, 128), 128);
    double right = correlation(m, held_out, HELD_OUT);
    tune_model_close(m);
    cr_assert(wrong < -0.2, "%g", wrong); /* the estimate has a say in it */
    cr_assert(right > 0.5, "%g", right);
}

/* ---- the store ---- */

static char path[64];
static store *db;

static void open_store(void)
{
    open_context();
    strcpy(path, "/tmp/tec_model_XXXXXX");
    cr_assert(mkstemp(path) >= 0);
    unlink(path);
    db = store_open(cx, path, NULL);
    cr_assert(db, "%s", tec_context_error(cx));
}

static void close_store(void)
{
    store_close(db);
    unlink(path);
    unlink(base_format(cx, "%s-wal", path));
    unlink(base_format(cx, "%s-shm", path));
    close_context();
}

TestSuite(seed, .init = open_store, .fini = close_store);
TestSuite(prior, .init = open_store, .fini = close_store);

/* A record of the task for each row; every fifth failed; `version` of the features. */
static void store_rows(const space_task *task, const float *rows, int n, int version)
{
    const char *key = tune_target_key(cx, cpu);

    for (int i = 0; i < n; i++) {
        double cost = made_up_cost(row_at(rows, i));
        store_record r = {.workload = {.anchor_key = task->anchor_key,
                                       .exact_key = task->exact_key,
                                       .family = task->family,
                                       .shape = task->shape,
                                       .n_shape = task->n_shape},
                          .target = {.fingerprint = key},
                          .trace = base_format(cx, "point %d", i),
                          .status = STORE_OK,
                          .costs = &cost,
                          .n_costs = 1,
                          .trial = i};

        if (i % 5 == 4) {
            r.status = STORE_BUILD_ERROR;
            r.n_costs = 0;
        }
        tune_record_features(cx, &r, row_at(rows, i));
        r.features_version = version;
        cr_assert(store_add(cx, db, &r, 1, NULL, NULL), "%s", tec_context_error(cx));
    }
}

static tune_taught seed_for(tune_model *m, const space_task *task, const tune_teach_options *o)
{
    tune_taught r;

    cr_assert(tune_teach(cx, m, db, &task, 1, cpu, o, &r), "%s", tec_context_error(cx));
    return r;
}

Test(seed, records_give_their_rows_back)
{
    const space_task *task = space_task_new(cx, product(64, 96, 128), NULL);
    const float *rows = sample(64, 96, 128, 1, 10);
    float back[TUNE_N_FEATURES];
    int n = 0;

    store_rows(task, rows, 10, TUNE_FEATURES_VERSION);
    store_cursor *c = store_find(cx, db, &(store_query){.exact_key = task->exact_key});
    for (store_record r; store_next(cx, c, &r); n++) {
        cr_assert(tune_features_of_record(cx, &r, cpu, back));
        cr_assert_arr_eq(back, row_at(rows, n), sizeof back);
        cr_assert_eq(isinf(tune_cost_of_record(&r)) != 0, n % 5 == 4);
    }
    cr_assert(store_end(c) && n == 10);
}

Test(seed, takes_the_records_of_the_task_that_others_made_and_those_of_other_shapes)
{
    const space_task *own = space_task_new(cx, product(96, 48, 160), NULL),
                     *other = space_task_new(cx, product(64, 96, 128), NULL);
    const float *held_out = sample(96, 48, 160, 2, HELD_OUT);
    tune_model *m = model_of("rank");

    store_rows(own, sample(96, 48, 160, 1, 30), 30, TUNE_FEATURES_VERSION);
    store_rows(other, sample(64, 96, 128, 1, N), N, TUNE_FEATURES_VERSION);
    double nothing = correlation(m, held_out, HELD_OUT);
    tune_taught r = seed_for(m, own, &(tune_teach_options){.rows = 120});
    cr_assert_eq(r.workloads, 2);
    cr_assert_eq(r.rows, 30 + 120);
    cr_assert_eq(r.passed_over, 0);
    cr_assert_eq(tune_model_count(m), 30 + 120);
    double rho = correlation(m, held_out, HELD_OUT);
    tune_model_close(m);
    cr_assert(rho > nothing + 0.1, "the rank correlation is %g, by the estimate alone %g", rho, nothing);
}

Test(seed, takes_the_nearest_shapes_of_its_family_first)
{
    const space_task *own = space_task_new(cx, product(64, 64, 64), NULL);
    tune_model *m = model_of("rank"), *near = model_of("rank");
    const float *far_rows = sample(16, 512, 16, 1, 20), *near_rows = sample(64, 64, 128, 1, 20),
                *held_out = sample(64, 64, 64, 2, 20);

    store_rows(space_task_new(cx, product(16, 512, 16), NULL), far_rows, 20, TUNE_FEATURES_VERSION);
    const space_task *neighbour = space_task_new(cx, product(64, 64, 128), NULL);
    store_rows(neighbour, near_rows, 20, TUNE_FEATURES_VERSION);
    tune_taught r = seed_for(m, own, &(tune_teach_options){.workloads = 1});
    cr_assert_eq(r.workloads, 1);
    for (int i = 0; i < 20; i++)
        cr_assert(tune_model_add(cx, near, 1, row_at(near_rows, i),
                                 i % 5 == 4 ? INFINITY : made_up_cost(row_at(near_rows, i))));
    cr_assert(tune_model_settle(cx, near), "%s", tec_context_error(cx));
    cr_assert_arr_eq(scores(m, held_out, 20), scores(near, held_out, 20), 20 * sizeof(double));
    tune_model_close(m);
    tune_model_close(near);
}

Test(seed, passes_over_features_that_cannot_be_had)
{
    const space_task *own = space_task_new(cx, product(64, 64, 64), NULL);
    tune_model *m = model_of("rank");

    store_rows(space_task_new(cx, product(64, 64, 128), NULL), sample(64, 64, 128, 1, 10), 10,
               TUNE_FEATURES_VERSION + 1);
    tune_taught r = seed_for(m, own, NULL);
    cr_assert_eq(r.rows, 0);
    cr_assert_eq(r.passed_over, 10);
    expect_scores_of_estimates(m, sample(64, 64, 64, 2, 5), 5);
    tune_model_close(m);
}

Test(seed, schedules_records_without_features_again)
{
    const space_task *own = space_task_new(cx, product(64, 64, 64), NULL),
                     *other = space_task_new(cx, product(64, 64, 128), NULL);
    const char *trace = "C.x.0, C.x.1 = split(C.x, _, 8)\nvectorize(C.x.1)\n",
               *key = tune_target_key(cx, cpu);
    sched *s = sched_new(cx, te_tree(cx, product(64, 64, 128)), cpu);
    float row[TUNE_N_FEATURES], again[TUNE_N_FEATURES];
    tune_model *m = model_of("rank");
    double cost = 1e-3;
    store_record r = {.workload = {.anchor_key = other->anchor_key,
                                   .exact_key = other->exact_key,
                                   .family = other->family,
                                   .shape = other->shape,
                                   .n_shape = other->n_shape,
                                   .definition = te_text(cx, product(64, 64, 128))},
                      .target = {.fingerprint = key},
                      .trace = trace,
                      .status = STORE_OK,
                      .costs = &cost,
                      .n_costs = 1};

    cr_assert(sched_replay(s, "trace", trace) && tune_features(cx, sched_tree(s), cpu, NULL, row));
    cr_assert(tune_features_of_record(cx, &r, cpu, again));
    cr_assert_arr_eq(row, again, sizeof row);
    cr_assert(store_add(cx, db, &r, 1, NULL, NULL));
    tune_taught seeded = seed_for(m, own, NULL);
    cr_assert(seeded.rows == 1 && seeded.passed_over == 0);
    r.trace = "vectorize(C.z)\n";
    cr_assert_not(tune_features_of_record(cx, &r, cpu, again));
    cr_assert_null(tec_context_error(cx));
    tune_model_close(m);
}

Test(seed, a_model_is_kept_for_its_target)
{
    const float *rows = sample(64, 96, 128, 1, 40);
    const target *other = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2");
    tune_model *m = model_of("rank");

    add(m, 1, rows, 40);
    cr_assert(tune_keep_model(cx, m, db, cpu, "rank mm"), "%s", tec_context_error(cx));
    tune_model *back = tune_kept_model(cx, db, cpu, "rank mm", 7);
    cr_assert(back, "%s", tec_context_error(cx));
    cr_assert_arr_eq(scores(m, rows, 40), scores(back, rows, 40), 40 * sizeof(double));
    cr_assert_null(tune_kept_model(cx, db, other, "rank mm", 7));
    cr_assert_null(tune_kept_model(cx, db, cpu, "rank conv", 7));
    cr_assert_null(tec_context_error(cx));
    tune_model_close(m);
    tune_model_close(back);
}

Test(seed, of_an_empty_store_is_nothing)
{
    tune_model *m = model_of("rank");
    tune_taught r = seed_for(m, space_task_new(cx, product(64, 64, 64), NULL), NULL);

    cr_assert(r.rows == 0 && r.workloads == 0);
    tune_model_close(m);
}

/* ---- what a tuner begins with ---- */

static const char *prior_for(const space_task *task, tune_model **m)
{
    const char *what;

    *m = tune_prior(cx, db, "rank", 7, &task, 1, cpu, &what);
    cr_assert(*m, "%s", tec_context_error(cx));
    return what;
}

Test(prior, is_nothing_in_an_empty_store)
{
    tune_model *m;

    cr_assert_str_eq(prior_for(space_task_new(cx, product(64, 64, 64), NULL), &m),
                     "an estimate: the store has no records for this target");
    cr_assert_eq(tune_model_count(m), 0);
    tune_model_close(m);
}

Test(prior, is_learned_from_records_or_is_the_kept_model_where_they_were_lost)
{
    const space_task *own = space_task_new(cx, product(64, 64, 64), NULL),
                     *other = space_task_new(cx, product(64, 64, 128), NULL);
    const float *rows = sample(64, 64, 128, 1, 40), *held_out = sample(64, 64, 64, 2, 20);
    tune_model *wise = model_of("rank"), *m;

    store_rows(other, rows, 40, TUNE_FEATURES_VERSION);
    add(wise, 1, rows, 40);
    cr_assert(tune_keep_model(cx, wise, db, cpu, "rank"), "%s", tec_context_error(cx));
    cr_assert_str_eq(prior_for(own, &m), "40 measurements of 1 related kernels",
                     "as many as the kept model has seen");
    tune_model_close(m);
    cr_assert(store_compact(cx, db, 3, &(store_compacted){0}), "%s", tec_context_error(cx));
    cr_assert_str_eq(prior_for(own, &m), "the model kept for this target, learned from 40 measurements");
    cr_assert_arr_eq(scores(m, held_out, 20), scores(wise, held_out, 20), 20 * sizeof(double));
    tune_model_close(wise);
    tune_model_close(m);
}

Test(prior, says_that_the_kept_model_is_damaged_and_does_without_it)
{
    const store_model bad = {.target = tune_target_key(cx, cpu),
                             .name = "rank",
                             .version = TUNE_FEATURES_VERSION,
                             .data = "none",
                             .size = 4,
                             .n_records = 9};
    tune_model *m;

    cr_assert(store_put_model(cx, db, &bad), "%s", tec_context_error(cx));
    const char *what = prior_for(space_task_new(cx, product(64, 64, 64), NULL), &m);
    cr_assert(strstr(what, "an estimate: ") && strstr(what, "cannot load a cost model: "), "%s", what);
    cr_assert_null(tec_context_error(cx));
    tune_model_close(m);
}
