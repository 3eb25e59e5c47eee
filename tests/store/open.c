/* Opening: what is made, migrated, refused, and opened for reading only. */
#include "tests/store/kit.h"

TestSuite(open, .init = set_up, .fini = tear_down);

Test(open, makes_a_store_that_opens_again)
{
    store *s = open_store("a.db");
    int64_t n;

    cr_assert(not(store_is_read_only(s)));
    cr_assert(store_number(cx, s, "PRAGMA user_version", &n));
    cr_assert(eq(i64, n, STORE_VERSION));
    cr_assert(store_number(cx, s, "PRAGMA synchronous", &n));
    cr_assert(eq(i64, n, 2), "FULL");
    add(s, record(4, 1, 0.5));
    store_close(s);
    s = open_store("a.db");
    cr_assert(eq(i64, count(s), 1));
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
}

Test(open, names_that_mean_something_to_sqlite_are_just_names)
{
    cr_assert(eq(int, chdir(dir), 0));
    const char *const names[] = {":memory:", "file:x?mode=memory", "a%20b#c", "it's"};
    for (int i = 0; i < BASE_COUNT(names); i++) {
        store *s = store_open(cx, names[i], NULL);

        cr_assert(s != NULL, "%s", tec_context_error(cx));
        cr_assert(eq(int, access(names[i], F_OK), 0), "%s", names[i]);
        store_close(s);
    }
}

Test(open, refuses_a_newer_schema_and_names_both_versions)
{
    store *s = open_store("a.db");

    run_sql(s, "PRAGMA user_version = 7");
    store_close(s);
    expect_refusal("a.db", NULL,
                   base_format(cx,
                               "has version 7 of the schema, but tec " TEC_VERSION
                               " knows versions up to %d: use a newer tec",
                               STORE_VERSION));
    expect_refusal("a.db", &(store_options){.read_only = true}, "version 7");
}

/* As the first version left it. */
static void make_version_1(const char *name)
{
    store *s = open_store(name);

    add(s, record(4, 1, 0.5));
    cr_assert(store_step_back(cx, s, 4), "%s", tec_context_error(cx));
    run_sql(s, "ALTER TABLE records DROP COLUMN point; DROP TABLE queue_files; DROP TABLE queue_parts; "
               "DROP TABLE queue_tasks; DROP TABLE users; DROP TABLE audit; DROP TABLE queue; PRAGMA "
               "user_version = 1");
    store_close(s);
}

Test(open, brings_a_store_of_version_1_up_and_loses_nothing)
{
    store_record r = record(4, 2, 0.25), got;
    int64_t n;

    make_version_1("a.db");
    expect_refusal("a.db", &(store_options){.read_only = true},
                   "has version 1 of the schema and must be opened for writing once");
    store *s = open_store("a.db");
    cr_assert(store_number(cx, s, "PRAGMA user_version", &n));
    cr_assert(eq(i64, n, STORE_VERSION));
    cr_assert(eq(i64, count(s), 1));
    cr_assert(eq(i64, problems(s), 0));
    r.point = "{}";
    add(s, r);
    store_cursor *c = store_find(cx, s, NULL);
    cr_assert(store_next(cx, c, &got));
    cr_assert(eq(str, (char *)got.point, ""));
    cr_assert(store_next(cx, c, &got));
    cr_assert(eq(str, (char *)got.point, "{}"));
    store_end(c);
    store_close(s);
}

Test(open, makes_a_store_of_version_4_again)
{
    store_record r = record(4, 1, 0.5), got;
    store *s = open_store("a.db");
    int64_t n;

    r.clock_mhz = 1500;
    add(s, r);
    cr_assert(not(store_step_back(cx, s, 3)));
    expect_error("cannot downgrade the schema to version 3; expected 4 to");
    cr_assert(store_step_back(cx, s, 4), "%s", tec_context_error(cx));
    store_close(s);
    s = open_store("a.db");
    cr_assert(store_number(cx, s, "PRAGMA user_version", &n));
    cr_assert(eq(i64, n, STORE_VERSION));
    cr_assert(eq(i64, problems(s), 0));
    store_cursor *c = store_find(cx, s, NULL);
    cr_assert(store_next(cx, c, &got));
    cr_assert(eq(dbl, got.costs[0], 0.5));
    cr_assert(eq(i64, got.clock_mhz, 0), "what version 4 cannot hold is lost");
    store_end(c);
    store_close(s);
}

Test(open, refuses_files_of_other_programs_and_leaves_them_alone)
{
    sqlite3 *db;

    cr_assert(eq(int, sqlite3_open(in_dir("a.db"), &db), SQLITE_OK));
    sqlite3_exec(db, "CREATE TABLE x (y)", NULL, NULL, NULL);
    sqlite3_close(db);
    size_t before, after;
    const char *old = base_read_file(cx, in_dir("a.db"), &before);
    expect_refusal("a.db", NULL, "not a record store: a SQLite file of another program");
    const char *now = base_read_file(cx, in_dir("a.db"), &after);
    cr_assert(eq(sz, before, after));
    cr_assert(eq(int, memcmp(old, now, after), 0));
    char text[1000];
    memset(text, 'x', sizeof text);
    write_file("b.db", text, sizeof text);
    expect_refusal("b.db", NULL, "the file is not a SQLite file");
    write_file("c.db", text, 100);
    expect_refusal("c.db", NULL, "a file of 100 bytes cannot be a SQLite file");
}

Test(open, says_what_is_in_the_way)
{
    expect_refusal("", NULL, "not a record store: a folder");
    expect_refusal("no/such/a.db", NULL, "No such file or directory");
    expect_refusal("a.db", &(store_options){.must_exist = true}, "the record store does not exist");
    expect_refusal("a.db", &(store_options){.read_only = true}, "the record store does not exist");
    cr_assert(eq(int, mkfifo(in_dir("pipe"), 0600), 0));
    expect_refusal("pipe", NULL, "not a record store: no regular file");
    write_file("empty", "", 0);
    expect_refusal("empty", &(store_options){.read_only = true}, "not a record store: the file is empty");
    cr_assert(store_open(cx, "", NULL) == NULL);
    expect_error("a record store needs a path");
}

static void expect_read_only(store *s, const char *why)
{
    store_record r = record(4, 99, 1);

    cr_assert(s != NULL, "%s", tec_context_error(cx));
    cr_assert(store_is_read_only(s));
    cr_assert(eq(i64, count(s), 1));
    cr_assert(not(store_add(cx, s, &r, 1, NULL, NULL)));
    expect_error(why);
    cr_assert(not(store_put_job(cx, s, &(store_job){.name = "j"})));
    expect_error("cannot write");
    cr_assert(not(store_compact(cx, s, 1, &(store_compacted){0})));
    expect_error("cannot write");
    store_close(s);
}

Test(open, for_reading_only_when_asked)
{
    store *s = open_store("a.db");

    add(s, record(4, 1, 0.5));
    expect_read_only(store_open(cx, in_dir("a.db"), &(store_options){.read_only = true}),
                     "it was opened for reading only");
    store_close(s);
    expect_read_only(store_open(cx, in_dir("a.db"), &(store_options){.read_only = true}),
                     "it was opened for reading only");
}

/* The superuser may write everything: go on as nobody. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        cr_assert(eq(int, seteuid(65534), 0));
}

static void become_yourself(void)
{
    cr_assert(eq(int, seteuid(getuid()), 0));
    cr_assert(eq(int, chmod(dir, 0755), 0));
}

Test(open, for_reading_only_when_the_folder_may_not_be_written)
{
    store *s = open_store("a.db");

    add(s, record(4, 1, 0.5));
    store_close(s);
    cr_assert(eq(int, chmod(in_dir("a.db"), 0666), 0));
    cr_assert(eq(int, chmod(dir, 0555), 0));
    become_nobody();
    expect_read_only(store_open(cx, in_dir("a.db"), NULL), "its folder may not be written by this user");
    expect_refusal("new.db", NULL, "unable to open database file");
    become_yourself();
}

Test(open, for_reading_only_when_the_file_may_not_be_written)
{
    store *s = open_store("a.db");

    add(s, record(4, 1, 0.5));
    store_close(s);
    cr_assert(eq(int, chmod(in_dir("a.db"), 0444), 0));
    cr_assert(eq(int, chmod(dir, 0777), 0));
    become_nobody();
    expect_read_only(store_open(cx, in_dir("a.db"), NULL), "the file may not be written by this user");
    become_yourself();
}

Test(open, a_log_that_cannot_be_taken_in_is_not_passed_over)
{
    store *s = open_store("a.db");

    add(s, record(4, 1, 0.5));
    cr_assert(eq(int,
                 system(base_format(
                     cx, "mkdir %s/c && cp %s/a.db %s/a.db-wal %s/c && chmod 0555 %s/c && chmod 0755 %s", dir,
                     dir, dir, dir, dir, dir)),
                 0));
    become_nobody();
    expect_refusal("c/a.db", NULL,
                   "has changes that only a process with write permission for the folder can apply");
    become_yourself();
    store_close(s);
}

Test(open, knows_network_file_systems)
{
    cr_assert(eq(str, (char *)store_network_name(0x6969), "NFS"));
    cr_assert(eq(str, (char *)store_network_name((long)0xff534d42), "CIFS"));
    cr_assert(eq(str, (char *)store_network_name((int)0xff534d42), "CIFS"),
              "where the kernel's number is signed");
    cr_assert(eq(str, (char *)store_network_name(0x01021997), "9p"));
    cr_assert(store_network_name(0xef53) == NULL);
    cr_assert(store_network_name(0x01021994) == NULL);
}

Test(open, a_child_of_fork_may_not_use_its_parents_store)
{
    store *s = open_store("a.db");
    int status;

    add(s, record(4, 1, 0.5));
    pid_t pid = fork();
    if (pid == 0) {
        store_record r = record(4, 2, 0.5);
        bool refused = !store_add(cx, s, &r, 1, NULL, NULL) &&
                       strstr(tec_context_error(cx), "was opened by process") != NULL;

        store_close(s);
        _exit(refused && store_count(cx, NULL, NULL) == -1 ? 0 : 1);
    }
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    cr_assert(eq(int, status, 0));
    add(s, record(4, 3, 0.5));
    cr_assert(eq(i64, count(s), 2));
    store_close(s);
}
