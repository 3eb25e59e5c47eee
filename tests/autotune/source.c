/* tests/autotune/source.c -- which schedule a store of records gives to a task. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "autotune/source.h"
#include "te/text.h"

static tec_context *cx;
static char path[64];
static store *db;
static const space_task *task;
static const target *t;

static const space_task *task_for(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    return space_task_new(cx, f->defs.at[0], NULL);
}

static void open_store(void)
{
    strcpy(path, "/tmp/tec_source_XXXXXX");
    cr_assert(mkstemp(path) >= 0);
    unlink(path);
    cx = tec_context_new();
    db = store_open(cx, path, NULL);
    t = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2");
    task = task_for("def rows(A: f32[8, 64]) {\n  S[y] = sum[x](A[y, x])\n  return S\n}\n");
    cr_assert(db && t && task, "%s", tec_context_error(cx));
}

static void close_store(void)
{
    store_close(db);
    unlink(path);
    unlink(base_format(cx, "%s-wal", path));
    unlink(base_format(cx, "%s-shm", path));
    tec_context_free(cx);
}

TestSuite(source, .init = open_store, .fini = close_store);

static void add(const space_task *of, const char *target_key, const char *trace, double cost,
                const char *tuner)
{
    static int64_t trial;
    store_record r = {
        .workload = {.anchor_key = of->anchor_key, .exact_key = of->exact_key, .summary = of->summary},
        .target = {.fingerprint = target_key},
        .trace = trace,
        .costs = &cost,
        .n_costs = 1,
        .status = STORE_OK,
        .tuner = tuner,
        .trial = ++trial};

    cr_assert(store_add(cx, db, &r, 1, NULL, NULL), "%s", tec_context_error(cx));
}

/* What is found, and where. */
static void gives(const char *trace, const char *origin)
{
    const space_source *s = tune_source(cx, db);
    const char *from = NULL, *found = s->best(s, cx, task, t, &from);

    cr_assert_eq(found == NULL, trace == NULL);
    if (!trace)
        return;
    cr_assert_str_eq(found, trace);
    cr_assert_str_eq(from, origin);
}

Test(source, has_nothing_for_a_task_without_records)
{
    gives(NULL, NULL);
}

Test(source, gives_the_fastest_record_that_applies)
{
    const char *key = tune_target_key(cx, t);

    add(task, key, "unroll(S.y)\n", 0.004, "anneal");
    gives("unroll(S.y)\n", "record");
    add(task, key, "parallel(S.y)\n", 0.002, "anneal");
    gives("parallel(S.y)\n", "record");
    add(task, key, "parallel(S.z)\n", 0.001, "anneal");
    gives("parallel(S.y)\n", "record");
}

Test(source, prefers_what_was_adopted)
{
    const char *key = tune_target_key(cx, t);

    add(task, key, "parallel(S.y)\n", 0.001, "anneal");
    add(task, key, "unroll(S.y)\n", 0.002, TUNE_ADOPTED);
    gives("unroll(S.y)\n", "record");
}

Test(source, looks_at_no_other_target_and_no_other_number_of_cores)
{
    add(task, tune_target_key(cx, target_parse(cx, "llvm -mcpu=x86-64-v4 -num-cores=2")), "unroll(S.y)\n",
        0.001, "anneal");
    add(task, tune_target_key(cx, target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=1")), "unroll(S.y)\n",
        0.001, "anneal");
    gives(NULL, NULL);
}

Test(source, says_which_records_there_are)
{
    const target *other = target_parse(cx, "llvm -mcpu=x86-64-v4 -num-cores=2");

    cr_assert_str_eq(tune_records_text(cx, db, t), "it has no records at all");
    add(task, tune_target_key(cx, other), "unroll(S.y)\n", 0.001, "anneal");
    const char *text = tune_records_text(cx, db, t);
    cr_assert(strstr(text, "it has records of 1 kernel for '"), "%s", text);
    cr_assert(strstr(text, "are of: nothing"), "%s", text);
    add(task, tune_target_key(cx, t), "unroll(S.y)\n", 0.001, "anneal");
    text = tune_records_text(cx, db, t);
    cr_assert(strstr(text, task->summary), "%s", text);
}

Test(source, takes_a_record_of_the_same_anchor_in_other_company)
{
    const space_task *other =
        task_for("def rows(A: f32[8, 64]) {\n  S[y] = sum[x](A[y, x])\n  T[y] = S[y] + 1.0\n  return T\n}\n");

    cr_assert_str_eq(other->anchor_key, task->anchor_key);
    cr_assert_str_neq(other->exact_key, task->exact_key);
    add(other, tune_target_key(cx, t), "unroll(S.y)\n", 0.001, "anneal");
    gives("unroll(S.y)\n", "anchor record");
    add(task, tune_target_key(cx, t), "parallel(S.y)\n", 0.002, "anneal");
    gives("parallel(S.y)\n", "record");
}

Test(source, passes_over_what_ever_gave_a_wrong_answer)
{
    const char *key = tune_target_key(cx, t);
    store_record wrong = {.workload = {.anchor_key = task->anchor_key, .exact_key = task->exact_key},
                          .target = {.fingerprint = key},
                          .trace = "parallel(S.y)\n",
                          .status = STORE_WRONG,
                          .tuner = "anneal",
                          .error = "S[0] is 1, expected 2"};

    add(task, key, "parallel(S.y)\n", 0.001, "anneal");
    add(task, key, "unroll(S.y)\n", 0.002, "anneal");
    cr_assert(store_add(cx, db, &wrong, 1, NULL, NULL), "%s", tec_context_error(cx));
    gives("unroll(S.y)\n", "record");
    add(task, key, "parallel(S.y)\n", 0.001, TUNE_ADOPTED);
    gives("unroll(S.y)\n", "record");
}

/* ---- ranges of an extent ---- */

#define FEW "parallel(S.y)\n"
#define MANY "unroll(S.x)\n"
#define RANGES "when symbol 0 <= 5:\n" FEW "otherwise:\n" MANY

static const space_ranges *ranges(void)
{
    const space_source *s = tune_source(cx, db);

    return s->ranges(s, cx, task, t);
}

static void with_a_symbol(void)
{
    task = task_for("def rows(n, A: f32[n, 64]) {\n  S[y] = sum[x](A[y, x])\n  return S\n}\n");
}

Test(source, gives_schedules_for_ranges)
{
    const char *key = tune_target_key(cx, t);

    with_a_symbol();
    cr_assert_null(ranges());
    add(task, key, FEW, 0.001, TUNE_ADOPTED);
    cr_assert_null(ranges());
    add(task, key, RANGES, 0.001, TUNE_ADOPTED);
    cr_assert(ranges());
    cr_assert_eq(ranges()->n, 2);
    cr_assert_str_eq(ranges()->at[0].trace, FEW);
    gives(FEW, "record"); /* who knows nothing of ranges gets the best single one */
    add(task, key, MANY, 0.001, TUNE_ADOPTED);
    cr_assert_null(ranges(), "something else was adopted since");
    gives(MANY, "record");
}

Test(source, gives_no_ranges_of_which_one_does_not_apply)
{
    const char *key = tune_target_key(cx, t);

    with_a_symbol();
    add(task, key, "when symbol 0 <= 5:\nparallel(S.z)\notherwise:\n" MANY, 0.001, TUNE_ADOPTED);
    cr_assert_null(ranges());
    add(task, key, "when symbol 1 <= 5:\n" FEW "otherwise:\n" MANY, 0.001, TUNE_ADOPTED);
    cr_assert_null(ranges(), "there is no symbol 1");
}

Test(source, gives_no_ranges_of_which_one_ever_gave_a_wrong_answer)
{
    const char *key = tune_target_key(cx, t);

    with_a_symbol();
    store_record wrong = {.workload = {.anchor_key = task->anchor_key, .exact_key = task->exact_key},
                          .target = {.fingerprint = key},
                          .trace = MANY,
                          .status = STORE_WRONG,
                          .tuner = "anneal",
                          .error = "S[0] is 1, expected 2"};
    add(task, key, RANGES, 0.001, TUNE_ADOPTED);
    cr_assert(ranges());
    cr_assert(store_add(cx, db, &wrong, 1, NULL, NULL), "%s", tec_context_error(cx));
    cr_assert_null(ranges());
}

Test(source, gives_what_was_adopted_last)
{
    const char *key = tune_target_key(cx, t);

    add(task, key, "unroll(S.y)\n", 0.001, TUNE_ADOPTED);
    add(task, key, "parallel(S.y)\n", 0.002, TUNE_ADOPTED); /* won, on a slower day */
    gives("parallel(S.y)\n", "record");
}
