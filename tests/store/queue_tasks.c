/* Kernels that jobs share: each is tuned by one job; what another tuned with a like budget counts; claims end
 * with their
 * job. */
#include "store/queue_tasks.h"

#include "tests/store/kit.h"

TestSuite(queue_tasks, .init = set_up, .fini = tear_down);

static const store_part a = {.key = "000000000000000a", .target = "t", .name = "a", .summary = "", .uses = 1},
                        b = {.key = "000000000000000b", .target = "t", .name = "b", .summary = "", .uses = 2},
                        other = {
                            .key = "000000000000000a", .target = "u", .name = "a", .summary = "", .uses = 1};

/* A running job of these kernels. */
static int64_t run_job(store *s, const store_part *p, int n)
{
    int64_t id = store_queue_add(cx, s, &(store_queued){.name = "m.onnx", .trials = 8}, "x", 1), taken;

    cr_assert(store_queue_take(cx, s, "here", 60, &taken), "%s", tec_context_error(cx));
    cr_assert(eq(i64, taken, id));
    cr_assert(store_parts_set(cx, s, id, p, n), "%s", tec_context_error(cx));
    return id;
}

static store_budget trials(double n)
{
    return (store_budget){.trials = n, .codegen = "1"};
}

/* The kernels of the job as letters: m(ine), t(uned), o(thers tune it), f(ree). */
static const char *look(store *s, int64_t job, store_budget budget)
{
    int n;
    const store_part *const *p = store_parts(cx, s, job, &budget, &n);
    char *letters = base_array(cx, char, n + 1);

    cr_assert(p != NULL, "%s", tec_context_error(cx));
    for (int i = 0; i < n; i++)
        letters[i] = p[i]->mine ? 'm' : p[i]->tuned ? 't' : p[i]->claimed ? 'o' : 'f';
    return letters;
}

static void claim(store *s, int64_t job, store_budget budget)
{
    cr_assert(store_parts_claim(cx, s, job, &budget), "%s", tec_context_error(cx));
}

Test(queue_tasks, are_tuned_by_one_job_at_a_time)
{
    store *s = open_store("a.db");
    int64_t one = run_job(s, (store_part[]){a, b}, 2), two = run_job(s, (store_part[]){a, other}, 2);
    const store_budget budget = trials(4);

    claim(s, one, budget);
    claim(s, two, budget);
    cr_assert(eq(str, (char *)look(s, one, budget), "mm"));
    cr_assert(eq(str, (char *)look(s, two, budget), "om"));
    cr_assert(store_parts_tuned(cx, s, one, &budget, &(store_part_report){a.key, "{}"}, 1));
    cr_assert(eq(str, (char *)look(s, one, budget), "tt"));
    cr_assert(eq(str, (char *)look(s, two, budget), "tm"));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
}

Test(queue_tasks, count_as_tuned_with_half_the_budget_and_the_same_code_generator)
{
    store *s = open_store("a.db");
    int64_t one = run_job(s, &a, 1);
    const store_budget four = trials(4), newer = {.trials = 4, .codegen = "2"},
                       time = {.seconds = 1, .codegen = "1"};

    claim(s, one, four);
    cr_assert(store_parts_tuned(cx, s, one, &four, NULL, 0));
    cr_assert(eq(str, (char *)look(s, one, trials(8)), "t"));
    cr_assert(eq(str, (char *)look(s, one, trials(9)), "f"));
    cr_assert(eq(str, (char *)look(s, one, newer), "f"));
    cr_assert(eq(str, (char *)look(s, one, time), "f"));
    store_close(s);
}

Test(queue_tasks, stay_with_a_job_that_will_go_on_unless_another_one_takes_them_over)
{
    store *s = open_store("a.db");
    int64_t one = run_job(s, &a, 1), two = run_job(s, &b, 1);
    bool done;

    claim(s, one, trials(4));
    claim(s, two, trials(4));
    cr_assert(store_queue_ask(cx, s, one, STORE_QUEUE_PAUSE, &done));
    cr_assert(not(done));
    cr_assert(store_queue_recover(cx, s, "here"));
    cr_assert(eq(int, (int)store_queue_get(cx, s, one)->state, STORE_QUEUE_PAUSED));
    cr_assert(eq(int, (int)store_queue_get(cx, s, two)->state, STORE_QUEUE_INTERRUPTED));
    cr_assert(eq(str, (char *)look(s, one, trials(4)), "m"));
    cr_assert(eq(str, (char *)look(s, two, trials(4)), "m"));
    cr_assert(store_queue_ask(cx, s, two, STORE_QUEUE_CANCEL, &done));
    cr_assert(eq(str, (char *)look(s, two, trials(4)), "f"));
    int64_t three = run_job(s, &a, 1);
    claim(s, three, trials(4));
    cr_assert(eq(str, (char *)look(s, one, trials(4)), "o"));
    cr_assert(eq(str, (char *)look(s, three, trials(4)), "m"));
    store_close(s);
}

Test(queue_tasks, keep_a_cancel_that_came_before_the_end_of_the_daemon)
{
    store *s = open_store("a.db");
    int64_t one = run_job(s, &a, 1);
    bool done;

    cr_assert(store_queue_ask(cx, s, one, STORE_QUEUE_CANCEL, &done));
    cr_assert(store_queue_ask(cx, s, one, STORE_QUEUE_PAUSE, &done));
    cr_assert(eq(int, (int)store_queue_get(cx, s, one)->wish, STORE_QUEUE_CANCEL));
    cr_assert(store_queue_recover(cx, s, "here"));
    const store_queued *j = store_queue_get(cx, s, one);
    cr_assert(eq(int, (int)j->state, STORE_QUEUE_FAILED));
    cr_assert(eq(str, (char *)j->cause, "cancelled"));
    cr_assert(not(store_queue_ask(cx, s, one, STORE_QUEUE_PAUSE, &done)));
    expect_error("job 1 is over: failed");
    store_close(s);
}

Test(queue_tasks, show_their_trials_and_what_failed)
{
    store *s = open_store("a.db");
    store_record ok = record(4, 1, 0.5), slow = record(4, 2, 0.75), bad = record(4, 3, 0.5);
    int n;
    double seconds;

    ok.n_costs = slow.n_costs = 1;
    ok.costs = &(double){0.5};
    slow.costs = &(double){0.75};
    bad.status = STORE_RUN_ERROR;
    bad.n_costs = 0;
    bad.error_kind = "signal";
    bad.error = "signal 11";
    add(s, slow);
    add(s, bad);
    add(s, ok);
    const char *key = base_format(
        cx, "%016llx",
        (unsigned long long)base_hash(ok.workload.exact_key, strlen(ok.workload.exact_key), BASE_HASH_SEED));
    const store_part p = {.key = key, .target = ok.target.fingerprint};
    const double *curve = store_part_curve(cx, s, &p, &n);
    cr_assert(eq(int, n, 3));
    cr_assert(eq(dbl, curve[0], 0.75));
    cr_assert(eq(dbl, curve[1], 0));
    cr_assert(eq(dbl, curve[2], 0.5));
    const store_part_failure *f = store_part_failures(cx, s, &p, &n);
    cr_assert(eq(int, n, 1));
    cr_assert(eq(i64, f->count, 1));
    cr_assert(eq(str, (char *)f->example, "signal 11"));
    cr_assert(eq(str, (char *)store_part_best(cx, s, &p, &seconds), (char *)ok.trace));
    cr_assert(eq(dbl, seconds, 0.5));
    store_close(s);
}
