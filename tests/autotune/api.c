/* tests/autotune/api.c -- measured schedules for those who build with the public API. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "autotune/source.h"
#include "tec/tec.h"

static tec_context *cx;
static char path[64];

static const tec_def *rows(void)
{
    return tec_def_parse(cx, "rows.te",
                         "def rows(A: f32[8, 64]) {\n  S[y] = sum[x](A[y, x])\n  return S\n}\n", 0);
}

/* A store with one record, for the native target with so many cores. */
static void write_store(const char *trace, int cores)
{
    store *db = store_open(cx, path, NULL);
    const space_task *task = space_task_new(cx, rows(), NULL);
    target *t = base_copy(cx, target_parse(cx, "native"), sizeof *t);
    double cost = 1e-6;

    t->num_cores = cores;
    store_record r = {.workload = {.anchor_key = task->anchor_key, .exact_key = task->exact_key},
                      .target = {.fingerprint = tune_target_key(cx, t)},
                      .trace = trace,
                      .costs = &cost,
                      .n_costs = 1,
                      .status = STORE_OK};
    cr_assert(db && store_add(cx, db, &r, 1, NULL, NULL), "%s", tec_context_error(cx));
    store_close(db);
}

static void begin(void)
{
    strcpy(path, "/tmp/tec_records_XXXXXX");
    cr_assert(mkstemp(path) >= 0);
    unlink(path);
    cx = tec_context_new();
}

static void end(void)
{
    unlink(path);
    unlink(base_format(cx, "%s-wal", path));
    unlink(base_format(cx, "%s-shm", path));
    tec_context_free(cx);
}

TestSuite(records_api, .init = begin, .fini = end);

Test(records_api, gives_the_steps_for_a_definition_a_target_and_its_threads)
{
    write_store("unroll(S.x)\n", 3);
    tec_records *r = tec_records_open(cx, path);
    cr_assert(r, "%s", tec_context_error(cx));
    const char *trace = tec_records_trace(r, rows(), &(tec_build_options){.threads = 3});
    cr_assert_str_eq(trace, "unroll(S.x)\n");
    cr_assert_null(tec_records_trace(r, rows(), &(tec_build_options){.threads = 2}));
    cr_assert_null(tec_records_trace(
        r, tec_def_parse(cx, "a.te", "def a(A: f32[8]) {\n  S[y] = A[y] + 1.0\n  return S\n}\n", 0),
        &(tec_build_options){.threads = 3}));
    cr_assert_null(tec_context_error(cx), "that there is no record is no error");
    tec_records_close(r);
    tec_schedule *s = tec_schedule_new(cx, rows(), "native");
    cr_assert(tec_schedule_replay(s, "records", trace), "it outlives the store: %s", tec_schedule_error(s));
    tec_module *m = tec_build(s, NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_module_free(m);
}

Test(records_api, says_which_store_is_missing_and_which_target_is_unknown)
{
    tec_records_close(NULL);
    cr_assert_null(tec_records_trace(NULL, rows(), NULL));
    write_store("unroll(S.x)\n", 3);
    tec_records *r = tec_records_open(cx, path);
    cr_assert_null(tec_records_trace(r, rows(), &(tec_build_options){.target = "abacus"}));
    cr_assert(strstr(tec_context_error(cx), "abacus"));
    tec_records_close(r);
    tec_context_clear(cx);
    cr_assert_null(tec_records_open(cx, "/tmp/no-such-folder/tune.db"));
    cr_assert(strstr(tec_context_error(cx), "/tmp/no-such-folder/tune.db"), "%s", tec_context_error(cx));
}
