/* Compaction, and the check of files that are whole, that were changed, and that were damaged. */
#include <time.h>

#include "tests/store/kit.h"

TestSuite(check, .init = set_up, .fini = tear_down);

static void fill(store *s, int n)
{
    store_record *r = base_array(cx, store_record, n);

    for (int i = 0; i < n; i++) {
        r[i] = i % 3 == 2 ? failure(16, i, STORE_TIMEOUT, "", "too slow")
                          : record(16 << i % 2, i, 1 + 0.001 * ((i * 7919) % 1000));
        r[i].features = "features";
        r[i].features_size = 8;
    }
    cr_assert(store_add(cx, s, r, n, NULL, NULL), "%s", tec_context_error(cx));
}

/* ---- compaction ---- */

Test(check, compaction_keeps_the_best_and_counts_the_rest)
{
    store *s = open_store("a.db");
    store_compacted c;
    int n;

    fill(s, 600);
    const char *best = store_best(cx, s, &(store_query){.anchor_key = "conv 32"}, 3, &n)[2]->trace;
    double third = store_best(cx, s, &(store_query){.anchor_key = "conv 32"}, 3, &n)[2]->median;
    cr_assert(store_compact(cx, s, 3, &c), "%s", tec_context_error(cx));
    cr_assert(eq(i64, c.kept, 6));
    cr_assert(eq(i64, c.dropped, 594));
    cr_assert(c.bytes_after < c.bytes_before);
    cr_assert(eq(i64, count(s), 6));
    cr_assert(eq(dbl, store_best(cx, s, &(store_query){.anchor_key = "conv 32"}, 3, &n)[2]->median, third));
    cr_assert(best != NULL);
    const store_summary *sum = store_summaries(cx, s, NULL, &n);
    cr_assert(eq(int, n, 2));
    cr_assert(eq(i64, sum[0].n_dropped + sum[1].n_dropped, 594));
    const store_failure *f = store_failures(cx, s, NULL, &n);
    cr_assert(eq(int, n, 1));
    cr_assert(eq(i64, f[0].count, 200));
    cr_assert(eq(str, (char *)f[0].example, "too slow"));
    cr_assert(eq(i64, problems(s), 0));
    fill(s, 600);
    cr_assert(store_compact(cx, s, 1, &c));
    cr_assert(eq(i64, store_failures(cx, s, NULL, &n)[0].count, 400), "counts add up");
    cr_assert(eq(i64, count(s), 2));
    store_close(s);
}

Test(check, compaction_spares_jobs_that_go_on_and_the_trace_of_what_only_failed)
{
    store *s = open_store("a.db");
    store_compacted c;

    for (int i = 0; i < 6; i++) {
        store_record r = record(16, i, 1 + i);

        r.job = i < 2 ? "running" : i < 4 ? "done" : NULL;
        add(s, r);
        add(s, failure(99, i, STORE_BUILD_ERROR, "llvm", "no"));
    }
    cr_assert(store_put_job(cx, s, &(store_job){.name = "running", .state = STORE_JOB_PAUSED}));
    cr_assert(store_put_job(cx, s, &(store_job){.name = "done", .state = STORE_JOB_DONE}));
    cr_assert(store_compact(cx, s, 1, &c));
    cr_assert(eq(i64, store_count(cx, s, &(store_query){.job = "running"}), 2));
    cr_assert(eq(i64, store_count(cx, s, &(store_query){.job = "done"}), 0));
    cr_assert(eq(i64, store_count(cx, s, &(store_query){.anchor_key = "conv 99"}), 1));
    cr_assert(not(store_compact(cx, s, 0, &c)));
    expect_error("expected to keep at least 1 record of each workload, not 0");
    store_close(s);
}

Test(check, compaction_on_a_full_store_loses_nothing)
{
    store *s = open_store("a.db");
    store_compacted c;

    fill(s, 600);
    store_close(s);
    s = store_open(cx, in_dir("a.db"), &(store_options){.max_bytes = 4096});
    /* The limit lies below what the file has, so that no page can be added. */
    bool ok = store_compact(cx, s, 200, &c);
    if (!ok)
        expect_error("no space left");
    cr_assert(eq(i64, problems(s), 0));
    int64_t n = count(s);
    cr_assert(n == 600 || n == 400, "%lld", (long long)n);
    store_close(s);
}

/* ---- changes from outside ---- */

static void tell(void *user, const char *what)
{
    base_addf(cx, user, "%s\n", what);
}

/* Changes a good store by SQL; the check names what is wrong. */
static void expect_problem(const char *sql, const char *part)
{
    store *s = open_store("a.db");
    base_text told = {0};

    fill(s, 6);
    cr_assert(eq(i64, problems(s), 0));
    cr_assert(store_put_job(cx, s, &(store_job){.name = "j"}));
    run_sql(s, "PRAGMA foreign_keys = OFF");
    run_sql(s, sql);
    cr_assert(store_check(cx, s, &(store_check_options){.problem = tell, .user = &told}) > 0, "%s", sql);
    cr_assert(strstr(told.data, part) != NULL, "expected '%s' in '%s'", part, told.data);
    store_close(s);
    cr_assert(eq(int, unlink(in_dir("a.db")), 0));
}

Test(check, names_what_was_changed)
{
    expect_problem("UPDATE records SET trace = 'x' WHERE id = 2",
                   "record 2: its contents do not match its hash");
    expect_problem("UPDATE records SET features = x'00' WHERE id = 2",
                   "record 2: its features do not match their hash");
    expect_problem("UPDATE records SET median = 0.5 WHERE id = 1",
                   "record 1: its median or spread is not that of its costs");
    expect_problem("UPDATE records SET status = 'fine' WHERE id = 1", "record 1: its status is unknown");
    expect_problem("UPDATE records SET costs = x'0102' WHERE id = 1",
                   "record 1: a list of numbers has an impossible size");
    expect_problem("UPDATE records SET id = -5 WHERE id = 1; UPDATE records SET trace = 'x'", "record -5: ");
    expect_problem("UPDATE workloads SET exact_key = 'x' WHERE id = 1", "contents do not match its hash");
    expect_problem("UPDATE workloads SET anchor_hash = 0 WHERE id = 1",
                   "a key of its workload does not match its hash");
    expect_problem("DELETE FROM targets", "names a row of 'targets' that is not there");
    expect_problem("DROP INDEX records_best", "missing or changed in the schema: CREATE INDEX records_best");
    expect_problem("UPDATE jobs SET state = 'lost'", "job 'j' has the unknown state 'lost'");
}

static bool not_the_third(void *user, tec_context *own, const store_record *r)
{
    ++*(int *)user;
    return r->trial != 3 || base_fail(own, TEC_INVALID, (base_loc){0}, "no loop 'q'");
}

Test(check, asks_whether_traces_of_good_records_can_be_read)
{
    store *s = open_store("a.db");
    int asked = 0;

    fill(s, 6);
    cr_assert(
        eq(i64, store_check(cx, s, &(store_check_options){.readable = not_the_third, .user = &asked}), 1));
    cr_assert(eq(int, asked, 4));
    store_close(s);
}

Test(check, a_column_that_is_missing_is_an_error_of_its_queries)
{
    store *s = open_store("a.db");

    run_sql(s, "DROP TABLE devices");
    cr_assert(store_find(cx, s, NULL) == NULL);
    expect_error("not a record store of this version: no such table: devices");
    cr_assert(eq(i64, store_count(cx, s, NULL), -1));
    expect_error("not a record store of this version: no such table: devices");
    cr_assert(problems(s) > 1);
    store_close(s);
}

/* ---- damage ---- */

/* Does everything that reads; it may fail, but not crash. Whether all of it went well. */
static bool use(const char *name)
{
    tec_context *own = tec_context_new();
    store *s = store_open(own, in_dir(name), NULL);
    int n;

    if (s) {
        store_cursor *c = store_find(own, s, NULL);
        for (store_record r; store_next(own, c, &r);)
            store_keep(own, &r);
        store_end(c);
        store_best(own, s, NULL, 10, &n);
        store_nearest(own, s, NULL, (double[]){16, 64}, 2, 3, &n);
        store_summaries(own, s, NULL, &n);
        store_failures(own, s, NULL, &n);
        store_jobs(own, s, &n);
        store_record r = record(4, 5000, 1);
        store_add(own, s, &r, 1, NULL, NULL);
        tec_context *checking = base_child(own);
        if (store_check(checking, s, NULL) != 0)
            base_fail(own, TEC_IO, (base_loc){0}, "problems");
        tec_context_free(checking);
    } else {
        cr_assert(base_failed(own), "no store and no error");
    }
    bool ok = !base_failed(own);
    store_close(s);
    tec_context_free(own);
    return ok;
}

static char *good_file(size_t *size)
{
    store *s = open_store("good.db");

    fill(s, 60);
    store_close(s);
    return base_read_file(cx, in_dir("good.db"), size);
}

Test(check, a_truncated_file_is_an_error)
{
    size_t size;
    const char *good = good_file(&size);

    for (size_t n = 1; n < size; n += 1 + n / 3) {
        write_file("bad.db", good, n);
        cr_assert(not(use("bad.db")), "%zu of %zu bytes passed for a store", n, size);
        unlink(in_dir("bad.db-wal"));
        unlink(in_dir("bad.db-shm"));
    }
    write_file("bad.db", good, size);
    cr_assert(use("bad.db"));
}

/* Some damage lies in free space, and may pass; none may crash. */
Test(check, random_damage_never_crashes)
{
    uint64_t seed = (uint64_t)time(NULL);
    size_t size;
    const char *good = good_file(&size);
    int found = 0;

    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 100; i++) {
        char *bad = malloc(size);

        memcpy(bad, good, size);
        size_t at = (size_t)base_random_below(&seed, i % 4 ? (int64_t)size : 200);
        for (size_t k = at; k < size && k < at + (size_t)(1 << i % 9); k++)
            bad[k] = (char)base_random(&seed);
        write_file("bad.db", bad, size);
        free(bad);
        found += !use("bad.db");
        unlink(in_dir("bad.db-wal"));
        unlink(in_dir("bad.db-shm"));
    }
    cr_assert(found > 5, "%d of 100 found", found);
}
