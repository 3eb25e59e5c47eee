/* What can only happen to a store in a file: full disks, files that are cut or damaged, changed schemas. */
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/store/kit.h"

TestSuite(file, .init = set_up, .fini = tear_down);

/* ---- no space ---- */

/* Adds until it is refused; the number of records that were acknowledged. */
static int fill_up(store *s, const char *part)
{
    int n = 0;

    for (;; n += 8) {
        store_record r[8];

        cr_assert(n < 100000);
        for (int i = 0; i < 8; i++)
            r[i] = record(4, n + i, 0.1);
        if (!store_add(cx, s, r, 8, NULL, NULL))
            break;
    }
    expect_error(part);
    cr_assert(n > 0);
    return n;
}

Test(file, a_full_store_says_so_and_loses_nothing)
{
    store *s = store_open(cx, in_dir("a.db"), &(store_options){.max_bytes = 200000});
    int n = fill_up(s, "no space left");

    cr_assert(eq(i64, count(s), n));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
    s = open_store("a.db");
    cr_assert(eq(i64, count(s), n));
    add(s, record(4, n, 1));
    cr_assert(eq(i64, count(s), n + 1), "with room again it goes on");
    store_close(s);
}

/* A write that the system cuts off, as a full disk does. */
Test(file, a_write_that_fails_loses_nothing)
{
    store *s = open_store("a.db");
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 300000;
    setrlimit(RLIMIT_FSIZE, &limit);
    int n = fill_up(s, "a.db: error: ");
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert(eq(i64, count(s), n));
    store_close(s);
    s = open_store("a.db");
    cr_assert(eq(i64, count(s), n));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
}

/* A disk of 400 KB, where this process may mount one. */
Test(file, a_full_disk_says_so_and_loses_nothing)
{
    if (system(base_format(cx, "mount -t tmpfs -o size=400k none '%s' 2>/dev/null", dir)) != 0)
        cr_skip_test("tmpfs cannot be mounted here");
    store *s = open_store("a.db");
    int n = fill_up(s, "no space left");

    cr_assert(eq(i64, count(s), n));
    store_close(s);
    s = store_open(cx, in_dir("a.db"), &(store_options){.read_only = true});
    cr_assert(s != NULL, "%s", tec_context_error(cx));
    cr_assert(eq(i64, count(s), n));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
    cr_assert(eq(int, system(base_format(cx, "umount '%s'", dir)), 0));
}

Test(file, compaction_on_a_full_store_loses_nothing)
{
    store *s = open_store("a.db");
    store_compacted c;

    fill_store(s, 600);
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

Test(file, names_what_was_changed)
{
    static const char *const changes[][2] = {
        {"UPDATE records SET features = x'00' WHERE id = 2",
         "record 2: its features do not match their hash"},
        {"UPDATE records SET costs = x'0102' WHERE id = 1",
         "record 1: a list of numbers has an impossible size"},
        {"PRAGMA foreign_keys = OFF; DELETE FROM targets", "names a row of 'targets' that is not there"},
        {"DROP INDEX records_best", "missing or changed in the schema: CREATE INDEX records_best"},
    };

    for (int i = 0; i < BASE_COUNT(changes); i++)
        expect_problem(base_format(cx, "%d.db", i), changes[i][0], changes[i][1]);
}

Test(file, a_column_that_is_missing_is_an_error_of_its_queries)
{
    store *s = open_store("a.db");

    run_sql(s, "DROP TABLE devices");
    cr_assert(store_find(cx, s, NULL) == NULL);
    expect_error("not a record store of this version: no such table: devices");
    cr_assert(eq(i64, store_count(cx, s, &(store_query){.device = "host"}), -1));
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

    fill_store(s, 60);
    store_close(s);
    return base_read_file(cx, in_dir("good.db"), size);
}

Test(file, a_truncated_file_is_an_error)
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
Test(file, random_damage_never_crashes)
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
