/* Compaction, and the check of files that are whole, that were changed, and that were damaged. */
#include "tests/store/kit.h"

TestSuite(check, .init = set_up, .fini = tear_down);

/* ---- compaction ---- */

Test(check, compaction_keeps_the_best_and_counts_the_rest)
{
    store *s = open_store("a.db");
    store_compacted c;
    int n;

    fill_store(s, 600);
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
    fill_store(s, 600);
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

/* ---- changes from outside ---- */

Test(check, names_what_was_changed)
{
    static const char *const changes[][2] = {
        {"UPDATE records SET trace = 'x' WHERE id = 2", "record 2: its contents do not match its hash"},
        {"UPDATE records SET median = 0.5 WHERE id = 1",
         "record 1: its median or spread is not that of its costs"},
        {"UPDATE records SET status = 'fine' WHERE id = 1", "record 1: its status is unknown"},
        {"UPDATE records SET id = -5 WHERE id = 1; UPDATE records SET trace = 'x'", "record -5: "},
        {"UPDATE workloads SET exact_key = 'x' WHERE id = 1", "contents do not match its hash"},
        {"UPDATE workloads SET anchor_hash = 0 WHERE id = 1",
         "a key of its workload does not match its hash"},
        {"UPDATE jobs SET state = 'lost'", "job 'j' has the unknown state 'lost'"},
        {"ALTER TABLE models DROP COLUMN n_records", "missing"},
    };

    for (int i = 0; i < BASE_COUNT(changes); i++)
        expect_problem(base_format(cx, "%d.db", i), changes[i][0], changes[i][1]);
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

    fill_store(s, 6);
    cr_assert(
        eq(i64, store_check(cx, s, &(store_check_options){.readable = not_the_third, .user = &asked}), 1));
    cr_assert(eq(int, asked, 4));
    store_close(s);
}
