/* Finding records. */
#include "tests/store/kit.h"

static store *s;

/* Three workloads on two targets. Trials 0 to 29; the cost falls with the trial; every fifth fails. */
static void fill(void)
{
    set_up();
    s = open_store("a.db");
    for (int i = 0; i < 30; i++) {
        int n = 16 << i % 3;
        store_record r = i % 5 == 4
                             ? failure(n, i, i % 2 ? STORE_TIMEOUT : STORE_BUILD_ERROR, "kind", "why\nmore")
                             : record(n, i, 1.0 / (i + 1));

        r.target.fingerprint = i < 15 ? "cpu" : "gpu";
        r.job = i % 2 ? "odd" : NULL;
        r.device.name = i % 2 ? "a" : "b";
        add(s, r);
    }
}

static void drain(void)
{
    store_close(s);
    tear_down();
}

TestSuite(query, .init = fill, .fini = drain);

static int64_t count_of(store_query q)
{
    store_cursor *c = store_find(cx, s, &q);
    int64_t n = 0;

    for (store_record r; store_next(cx, c, &r); n++)
        ;
    cr_assert(store_end(c), "%s", tec_context_error(cx));
    if (!q.limit)
        cr_assert(eq(i64, store_count(cx, s, &q), n));
    return n;
}

Test(query, narrows_by_every_field)
{
    cr_assert(eq(i64, count_of((store_query){0}), 30));
    cr_assert(eq(i64, count_of((store_query){.exact_key = "conv 16 + relu"}), 10));
    cr_assert(eq(i64, count_of((store_query){.anchor_key = "conv 32"}), 10));
    cr_assert(eq(i64, count_of((store_query){.family = "conv f32"}), 30));
    cr_assert(eq(i64, count_of((store_query){.family = "other"}), 0));
    cr_assert(eq(i64, count_of((store_query){.target = "gpu"}), 15));
    cr_assert(
        eq(i64, count_of((store_query){.targets = (const char *const[]){"gpu", "cpu"}, .n_targets = 2}), 30));
    cr_assert(
        eq(i64,
           count_of((store_query){.target = "cpu", .targets = (const char *const[]){"gpu"}, .n_targets = 1}),
           30));
    cr_assert(eq(i64, count_of((store_query){.job = "odd"}), 15));
    cr_assert(eq(i64, count_of((store_query){.job = ""}), 15));
    cr_assert(eq(i64, count_of((store_query){.device = "b", .target = "cpu"}), 8));
    cr_assert(eq(i64, count_of((store_query){.tuner = "random", .codegen = "7"}), 30));
    cr_assert(eq(i64, count_of((store_query){.codegen = "8"}), 0));
    cr_assert(eq(i64, count_of((store_query){.only_ok = true}), 24));
    cr_assert(eq(i64, count_of((store_query){.only_failed = true}), 6));
    cr_assert(eq(i64, count_of((store_query){.after = 20}), 10));
    cr_assert(eq(i64, count_of((store_query){.limit = 7}), 7));
    cr_assert(eq(i64, count_of((store_query){.exact_key = "' OR 1 --"}), 0));
}

Test(query, gives_records_in_the_order_of_insertion)
{
    store_cursor *c = store_find(cx, s, &(store_query){.anchor_key = "conv 64"});
    int64_t trial = 2;

    for (store_record r; store_next(cx, c, &r); trial += 3)
        cr_assert(eq(i64, r.trial, trial));
    cr_assert(eq(i64, trial, 32));
    cr_assert(store_end(c));
}

Test(query, the_best_are_the_fastest_that_are_ok)
{
    int n;
    const store_record *const *best = store_best(cx, s, &(store_query){.exact_key = "conv 64 + relu"}, 3, &n);

    cr_assert(eq(int, n, 3));
    cr_assert(eq(i64, best[0]->trial, 26), "29 failed");
    cr_assert(eq(i64, best[1]->trial, 23));
    cr_assert(eq(i64, best[2]->trial, 20));
    cr_assert(eq(int, (int)best[0]->status, STORE_OK));
    best = store_best(cx, s, &(store_query){.anchor_key = "conv 64", .target = "cpu"}, 100, &n);
    cr_assert(eq(int, n, 4));
    cr_assert(eq(i64, best[0]->trial, 11), "14 failed");
    best = store_best(cx, s, &(store_query){.anchor_key = "none"}, 3, &n);
    cr_assert(best != NULL);
    cr_assert(eq(int, n, 0));
    best = store_best(cx, s, NULL, 0, &n);
    cr_assert(best != NULL && n == 0);
}

Test(query, equal_costs_keep_the_order_of_insertion)
{
    int n;

    for (int i = 0; i < 4; i++)
        add(s, record(5, 100 - i, 0.25));
    const store_record *const *best = store_best(cx, s, &(store_query){.anchor_key = "conv 5"}, 4, &n);
    for (int i = 0; i < 4; i++)
        cr_assert(eq(i64, best[i]->trial, 100 - i));
}

Test(query, the_nearest_shapes_by_ratio)
{
    int n;
    const store_near *near =
        store_nearest(cx, s, &(store_query){.family = "conv f32"}, (double[]){40, 64}, 2, 2, &n);

    cr_assert(eq(int, n, 2));
    cr_assert(eq(str, (char *)near[0].best->workload.anchor_key, "conv 32"));
    cr_assert(eq(str, (char *)near[1].best->workload.anchor_key, "conv 64"));
    cr_assert(near[0].distance < near[1].distance);
    cr_assert(eq(i64, near[0].best->trial, 28));
    near = store_nearest(cx, s, NULL, (double[]){16, 64}, 2, 10, &n);
    cr_assert(eq(int, n, 3));
    cr_assert(eq(dbl, near[0].distance, 0));
    near = store_nearest(cx, s, NULL, (double[]){16}, 1, 10, &n);
    cr_assert(near != NULL && n == 0, "a shape of another length is no neighbour");
    cr_assert(store_nearest(cx, s, NULL, (double[]){16}, 0, 10, &n) == NULL);
    expect_error("a shape has 1 to 64 numbers, not 0");
}

Test(query, a_workload_that_only_failed_is_nobodys_neighbour)
{
    int n;

    add(s, failure(41, 50, STORE_TIMEOUT, "", ""));
    const store_near *near = store_nearest(cx, s, NULL, (double[]){41, 64}, 2, 1, &n);
    cr_assert(eq(str, (char *)near[0].best->workload.anchor_key, "conv 32"));
}

Test(query, sums_up_each_workload_on_each_target)
{
    int n;
    const store_summary *sum = store_summaries(cx, s, NULL, &n);

    cr_assert(eq(int, n, 6));
    cr_assert(eq(str, (char *)sum[0].workload.exact_key, "conv 16 + relu"));
    cr_assert(eq(str, (char *)sum[0].target.fingerprint, "cpu"));
    cr_assert(eq(i64, sum[0].n_ok, 4));
    cr_assert(eq(i64, sum[0].n_failed, 1));
    cr_assert(eq(i64, sum[0].n_dropped, 0));
    cr_assert(epsilon_eq(dbl, sum[0].best, 1.01 / 13, 1e-12));
    cr_assert(eq(str, (char *)sum[3].target.fingerprint, "gpu"));
}

Test(query, counts_what_failed)
{
    int n;
    const store_failure *f = store_failures(cx, s, NULL, &n);

    cr_assert(eq(int, n, 2));
    cr_assert(eq(int, (int)f[0].status, STORE_BUILD_ERROR));
    cr_assert(eq(i64, f[0].count, 3));
    cr_assert(eq(str, (char *)f[0].stage, "build"));
    cr_assert(eq(str, (char *)f[0].example, "why"));
    cr_assert(eq(int, (int)f[1].status, STORE_TIMEOUT));
    f = store_failures(cx, s, &(store_query){.anchor_key = "none"}, &n);
    cr_assert(f != NULL && n == 0);
}

Test(query, a_cursor_sees_one_state_while_others_write)
{
    store *other = open_store("a.db");
    store_cursor *c = store_find(cx, s, NULL);
    store_record r;
    int n = 1;

    cr_assert(store_next(cx, c, &r));
    add(other, record(4, 1000, 1));
    while (store_next(cx, c, &r))
        n++;
    cr_assert(eq(int, n, 30));
    cr_assert(store_end(c));
    cr_assert(eq(i64, count(s), 31));
    store_close(other);
}

/* The connection of a walk ends between two blocks: the server forgets the cursor, and the walk goes on where
 * it was, or says that it cannot. */
static void lose_connection(void)
{
    int64_t own;
    char stop[80];
    store *other = open_store("long.db");

    cr_assert(store_number(cx, s, "SELECT pg_backend_pid()", &own));
    snprintf(stop, sizeof stop, "SELECT pg_terminate_backend(%lld)", (long long)own);
    run_sql(other, stop);
    store_close(other);
}

Test(query, a_walk_outlives_its_connection)
{
    enum { N = 2500 };
    store_record r;
    int n = 0;

    if (!getenv("TEC_TEST_STORE"))
        cr_skip_test("a file has no connection");
    store_close(s);
    s = open_store("long.db");
    fill_store(s, N);
    store_cursor *c = store_find(cx, s, NULL);
    for (; store_next(cx, c, &r); n++) {
        cr_assert(eq(int, r.trial, n));
        if (n == 0 || n == 999 || n == 1500)
            lose_connection();
    }
    cr_assert(store_end(c), "%s", tec_context_error(cx));
    cr_assert(eq(int, n, N));

    c = store_find(cx, s, NULL);
    for (n = 0; n < 1000; n++)
        cr_assert(store_next(cx, c, &r));
    run_sql(s, "DELETE FROM records WHERE id = (SELECT MIN(id) FROM records)");
    lose_connection();
    cr_assert(not(store_next(cx, c, &r)));
    cr_assert(not(store_end(c)));
    expect_error("the records changed while the connection to the server was lost");
}

Test(query, nothing_comes_of_nothing)
{
    store_record r;
    int n;

    cr_assert(store_find(cx, NULL, NULL) == NULL);
    cr_assert(not(store_next(cx, NULL, &r)));
    cr_assert(not(store_end(NULL)));
    cr_assert(store_best(cx, NULL, NULL, 1, &n) == NULL);
    cr_assert(store_summaries(cx, NULL, NULL, &n) == NULL);
}
