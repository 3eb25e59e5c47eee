/* Export, import, merging. */
#include "tests/store/kit.h"

TestSuite(exchange, .init = set_up, .fini = tear_down);

static store *fill(const char *name, int from, int to)
{
    store *s = open_store(name);
    store_record *r = base_array(cx, store_record, to - from);

    for (int i = from; i < to; i++)
        r[i - from] = i % 4 == 3 ? failure(16, i, STORE_RUN_ERROR, "signal", "killed")
                                 : record(16 + i % 3, i, 0.001 * (i + 1));
    cr_assert(store_add(cx, s, r, to - from, NULL, NULL), "%s", tec_context_error(cx));
    return s;
}

static const char *export_text(store *s, const store_query *q)
{
    const char *path = in_dir("export.jsonl");
    FILE *to = fopen(path, "w");
    size_t size;

    cr_assert(store_export(cx, s, q, to) >= 0, "%s", tec_context_error(cx));
    fclose(to);
    return base_read_file(cx, path, &size);
}

static bool import_text(store *s, const char *text, const store_import_options *o, store_imported *out)
{
    FILE *from = fmemopen((void *)text, strlen(text), "r");
    bool ok = store_import(cx, s, from, o, out);

    fclose(from);
    return ok;
}

Test(exchange, an_exported_store_imports_as_the_same)
{
    store *a = fill("a.db", 0, 1203), *b = open_store("b.db");
    store_imported got;
    const char *text = export_text(a, NULL);

    cr_assert(import_text(b, text, NULL, &got), "%s", tec_context_error(cx));
    cr_assert(eq(i64, got.added, 1203));
    cr_assert(eq(i64, got.lines, 1203));
    cr_assert(eq(i64, got.bad, 0));
    cr_assert(eq(str, (char *)export_text(b, NULL), (char *)text));
    cr_assert(import_text(b, text, &(store_import_options){.refuse = true}, &got));
    cr_assert(eq(i64, got.added, 0));
    cr_assert(eq(i64, got.duplicates, 1203));
    cr_assert(eq(i64, problems(b), 0));
    const char *failed = export_text(a, &(store_query){.only_failed = true, .limit = 5});
    cr_assert(import_text(b, failed, NULL, &got));
    cr_assert(eq(i64, got.lines, 5));
    store_close(a);
    store_close(b);
}

static void collect(void *user, int64_t line, const char *why)
{
    base_addf(cx, user, "%lld: %s\n", (long long)line, why);
}

static const char *mixed_lines(void)
{
    store_record a = record(4, 1, 1), b = record(4, 2, 1);

    return base_format(cx, "%s\nnonsense\n\n  \n{\"tec_record\":1}\r\n%s", store_json(cx, &a),
                       store_json(cx, &b));
}

Test(exchange, bad_lines_are_named_and_skipped)
{
    store *s = open_store("a.db");
    base_text told = {0};
    store_imported got;

    cr_assert(
        import_text(s, mixed_lines(), &(store_import_options){.bad_line = collect, .user = &told}, &got));
    cr_assert(eq(str, told.data, "2: not JSON, at byte 1\n5: status: expected a known status\n"));
    cr_assert(eq(i64, got.added, 2), "the last line needs no newline");
    cr_assert(eq(i64, got.bad, 2));
    cr_assert(eq(i64, got.lines, 6));
    cr_assert(eq(i64, count(s), 2));
    store_close(s);
}

Test(exchange, a_refused_import_leaves_nothing_behind)
{
    store *s = open_store("a.db");
    store_imported got;

    cr_assert(not(import_text(s, mixed_lines(), &(store_import_options){.refuse = true}, &got)));
    expect_error("records:2: error: not JSON, at byte 1; nothing was imported");
    cr_assert(eq(i64, got.added, 0));
    cr_assert(eq(i64, count(s), 0));
    add(s, record(4, 1, 1));
    store_close(s);
}

Test(exchange, an_endless_line_is_a_bad_line)
{
    store *s = open_store("a.db");
    store_record r = record(4, 1, 1);
    const char *path = in_dir("long.jsonl");
    FILE *f = fopen(path, "w");
    base_text told = {0};
    store_imported got;

    for (int i = 0; i < STORE_MAX_LINE / 1024 + 2; i++)
        fprintf(f, "%1024d", 0);
    fprintf(f, "\n%s\n", store_json(cx, &r));
    fclose(f);
    f = fopen(path, "r");
    cr_assert(store_import(cx, s, f, &(store_import_options){.bad_line = collect, .user = &told}, &got));
    cr_assert(eq(str, told.data, "1: expected at most 33554432 bytes, found 33554433\n"));
    cr_assert(eq(i64, got.added, 1));
    fclose(f);
    store_close(s);
}

Test(exchange, an_import_into_a_store_that_may_not_be_written_fails_at_once)
{
    store *s = open_store("a.db");
    store_imported got;

    store_close(s);
    s = store_open(cx, place("a.db"), &(store_options){.read_only = true});
    cr_assert(not(import_text(s, mixed_lines(), NULL, &got)));
    expect_error("cannot write");
    store_close(s);
}

Test(exchange, an_export_to_a_full_disk_fails)
{
    store *s = fill("a.db", 0, 10);
    FILE *full = fopen("/dev/full", "w");

    cr_assert(eq(i64, store_export(cx, s, NULL, full), -1));
    expect_error("cannot write the records: No space left on device");
    fclose(full);
    store_close(s);
}

Test(exchange, merging_keeps_what_both_have_once)
{
    store *a = fill("a.db", 0, 700), *b = fill("b.db", 300, 1000);
    store_added added;

    cr_assert(store_merge(cx, a, b, &added), "%s", tec_context_error(cx));
    cr_assert(eq(i64, added.added, 300));
    cr_assert(eq(i64, added.duplicates, 400));
    cr_assert(eq(i64, count(a), 1000));
    cr_assert(store_merge(cx, a, b, &added));
    cr_assert(eq(i64, added.added, 0));
    cr_assert(eq(i64, problems(a), 0));
    cr_assert(eq(i64, count(b), 700));
    cr_assert(not(store_merge(cx, a, a, NULL)));
    expect_error("cannot merge a record store into itself");
    store_close(a);
    store_close(b);
}

Test(exchange, merging_takes_jobs_and_models_that_are_newer)
{
    store *a = open_store("a.db"), *b = open_store("b.db");
    store_model m = {.target = "cpu", .name = "rank", .version = 1, .data = "old", .size = 3, .time = 100};

    cr_assert(store_put_model(cx, a, &m));
    m.data = "new";
    m.time = 200;
    cr_assert(store_put_model(cx, b, &m));
    m.name = "other";
    cr_assert(store_put_model(cx, b, &m));
    cr_assert(store_put_job(cx, a, &(store_job){.name = "both", .arguments = "ours"}));
    cr_assert(store_put_job(cx, b, &(store_job){.name = "both", .arguments = "theirs"}));
    cr_assert(store_put_job(cx, b, &(store_job){.name = "theirs"}));
    run_sql(a, "UPDATE jobs SET updated = 500");
    run_sql(b, "UPDATE jobs SET updated = 400");
    cr_assert(store_merge(cx, a, b, NULL), "%s", tec_context_error(cx));
    cr_assert(eq(int, memcmp(store_get_model(cx, a, "cpu", "rank", 1)->data, "new", 3), 0));
    cr_assert(store_get_model(cx, a, "cpu", "other", 1) != NULL);
    cr_assert(eq(str, (char *)store_get_job(cx, a, "both")->arguments, "ours"));
    cr_assert(eq(i64, store_get_job(cx, a, "theirs")->updated, 400), "as it was there");
    run_sql(b, "UPDATE jobs SET updated = 600");
    cr_assert(store_merge(cx, a, b, NULL));
    cr_assert(eq(str, (char *)store_get_job(cx, a, "both")->arguments, "theirs"));
    store_close(a);
    store_close(b);
}
