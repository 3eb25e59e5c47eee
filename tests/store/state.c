/* Jobs and cost models. */
#include "tests/store/kit.h"

TestSuite(state, .init = set_up, .fini = tear_down);

Test(state, a_job_goes_on_where_it_stopped)
{
    store *s = open_store("a.db");
    store_job job = {.name = "resnet",
                     .arguments = "--trials 100",
                     .seed = UINT64_MAX,
                     .progress = "\0p",
                     .progress_size = 2};

    cr_assert(store_get_job(cx, s, "resnet") == NULL);
    cr_assert(not(base_failed(cx)));
    cr_assert(store_put_job(cx, s, &job));
    job.state = STORE_JOB_PAUSED;
    job.progress = "later";
    job.progress_size = 5;
    cr_assert(store_put_job(cx, s, &job));
    store_close(s);
    s = open_store("a.db");
    const store_job *got = store_get_job(cx, s, "resnet");
    cr_assert(eq(str, (char *)got->arguments, "--trials 100"));
    cr_assert(eq(u64, got->seed, UINT64_MAX));
    cr_assert(eq(int, (int)got->state, STORE_JOB_PAUSED));
    cr_assert(eq(sz, got->progress_size, 5));
    cr_assert(eq(int, memcmp(got->progress, "later", 5), 0));
    cr_assert(got->created > 0 && got->updated >= got->created);
    int n;
    cr_assert(store_put_job(cx, s, &(store_job){.name = "another"}));
    const store_job *const *all = store_jobs(cx, s, &n);
    cr_assert(eq(int, n, 2));
    cr_assert(eq(str, (char *)all[0]->name, "another"));
    cr_assert(not(store_put_job(cx, s, &(store_job){.name = "x", .state = (store_job_state)9})));
    expect_error("job 'x': there is no state 9");
    run_sql(s, "UPDATE jobs SET state = 'odd'");
    cr_assert(store_jobs(cx, s, &n) == NULL);
    expect_error("unknown state 'odd'");
    store_close(s);
}

Test(state, a_cost_model_for_each_target_name_and_version)
{
    store *s = open_store("a.db");
    store_model m = {
        .target = "cpu", .name = "rank", .version = 1, .data = "weights", .size = 7, .n_records = 40};
    int n;

    cr_assert(store_put_model(cx, s, &m));
    m.version = 2;
    cr_assert(store_put_model(cx, s, &m));
    m.data = "better!!";
    m.size = 8;
    cr_assert(store_put_model(cx, s, &m));
    const store_model *got = store_get_model(cx, s, "cpu", "rank", 2);
    cr_assert(eq(sz, got->size, 8));
    cr_assert(eq(int, memcmp(got->data, "better!!", 8), 0));
    cr_assert(eq(i64, got->n_records, 40));
    cr_assert(eq(sz, store_get_model(cx, s, "cpu", "rank", 1)->size, 7));
    cr_assert(store_get_model(cx, s, "gpu", "rank", 1) == NULL);
    cr_assert(not(base_failed(cx)));
    cr_assert(store_models(cx, s, &n) != NULL);
    cr_assert(eq(int, n, 2));
    m.target = NULL;
    cr_assert(not(store_put_model(cx, s, &m)));
    expect_error("the target of the model is missing");
    m.target = "cpu";
    m.size = STORE_MAX_BLOB + 1u;
    cr_assert(not(store_put_model(cx, s, &m)));
    expect_error("over the limit");
    run_sql(s, "UPDATE models SET hash = 1 WHERE version = 1");
    cr_assert(store_get_model(cx, s, "cpu", "rank", 1) == NULL);
    expect_error("the cost model 'rank' for target 'cpu' is damaged");
    cr_assert(eq(i64, problems(s), 1));
    store_close(s);
}
