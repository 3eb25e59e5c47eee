/* tests/store/kit.h -- a folder, a context and records for tests of the store.
 *
 * With TEC_TEST_STORE=postgresql://... the stores of a test are schemas of that database, one for each name:
 * tests/store/postgres.sh runs the tests so. A schema is made when its name is first used.
 */
#ifndef TESTS_STORE_KIT_H
#define TESTS_STORE_KIT_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/postgres.h"

static tec_context *cx;
static char dir[PATH_MAX];
static int test_number; /* of this test: children of fork use the stores of the test */

static inline void set_up(void)
{
    cx = tec_context_new();
    test_number = getpid();
    strcpy(dir, "/tmp/tec_store_XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
}

static inline void tear_down(void)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    cr_assert(eq(int, system(command), 0));
    tec_context_free(cx);
}

static inline const char *in_dir(const char *name)
{
    return base_format(cx, "%s/%s", dir, name);
}

static inline void run_on_server(const char *address, const char *sql)
{
    store s = {.engine = &store_postgres,
               .pid = getpid(),
               .busy_ms = 30000,
               .path = (char *)(uintptr_t)address,
               .real_path = (char *)(uintptr_t)address};

    cr_assert(store_pg_connect(cx, &s, &(store_options){0}) != NULL, "%s", tec_context_error(cx));
    cr_assert(store_pg_run(cx, &s, sql), "%s", tec_context_error(cx));
    store_pg_close(s.server);
}

/* Where the store of this name lies: a file of the folder, or a schema of the server. */
static inline const char *place(const char *name)
{
    static char made[16][64];
    const char *server = getenv("TEC_TEST_STORE");
    char *schema = base_format(cx, "t%d_%s", test_number, name);
    int i = 0;

    if (!server)
        return in_dir(name);
    for (char *p = schema; *p; p++)
        *p = strchr("./-", *p) ? '_' : *p;
    while (i < 15 && *made[i] && strcmp(made[i], schema) != 0)
        i++;
    if (!*made[i]) {
        snprintf(made[i], sizeof made[i], "%s", schema);
        run_on_server(server,
                      base_format(cx, "DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s", schema, schema));
    }
    return base_format(cx, "%s&options=-csearch_path%%3D%s", server, schema);
}

static inline store *open_store(const char *name)
{
    store *s = store_open(cx, place(name), NULL);

    cr_assert(s != NULL, "%s", tec_context_error(cx));
    return s;
}

static inline void expect_error(const char *part)
{
    cr_assert(tec_context_error(cx) != NULL, "expected an error with '%s'", part);
    cr_assert(strstr(tec_context_error(cx), part) != NULL, "expected '%s' in '%s'", part,
              tec_context_error(cx));
    tec_context_clear(cx);
}

static inline void expect_refusal(const char *name, const store_options *o, const char *part)
{
    store *s = store_open(cx, place(name), o);

    cr_assert(s == NULL);
    expect_error(part);
}

/* A record that is ok, of workload "conv <n>" on target "cpu"; its trial makes it unlike others. */
static inline store_record record(int n, int trial, double seconds)
{
    double *costs = base_array(cx, double, 3), *shape = base_array(cx, double, 2);
    store_record r = {0};

    for (int i = 0; i < 3; i++)
        costs[i] = seconds * (1 + 0.01 * i);
    shape[0] = n;
    shape[1] = 64;
    r.workload = (store_workload){.anchor_key = base_format(cx, "conv %d", n),
                                  .exact_key = base_format(cx, "conv %d + relu", n),
                                  .definition = "def conv",
                                  .family = "conv f32",
                                  .summary = "f32 conv",
                                  .shape = shape,
                                  .n_shape = 2,
                                  .flops = 1e9 * n};
    r.target = (store_target){.fingerprint = "cpu", .text = "llvm -mcpu=x86-64-v3"};
    r.device = (store_device){.name = "host", .text = "4 cores"};
    r.trace = "split(C.y, _, 8)\nvectorize(C.x)";
    r.costs = costs;
    r.n_costs = 3;
    r.tuner = "random";
    r.seed = 0xfedcba9876543210u;
    r.batch = trial / 8;
    r.trial = trial;
    r.codegen = "7";
    r.time = 1700000000 + trial;
    return r;
}

static inline store_record failure(int n, int trial, store_status status, const char *kind, const char *error)
{
    store_record r = record(n, trial, 1);

    r.costs = NULL;
    r.n_costs = 0;
    r.status = status;
    r.stage = "build";
    r.error_kind = kind;
    r.error = error;
    return r;
}

static inline void add(store *s, store_record r)
{
    cr_assert(store_add(cx, s, &r, 1, NULL, NULL), "%s", tec_context_error(cx));
}

static inline int64_t count(store *s)
{
    int64_t n = store_count(cx, s, NULL);

    cr_assert(n >= 0, "%s", tec_context_error(cx));
    return n;
}

static inline void run_sql(store *s, const char *sql)
{
    cr_assert(store_run(cx, s, sql), "%s", tec_context_error(cx));
}

static inline int64_t problems(store *s)
{
    return store_check(cx, s, NULL);
}

static inline void fill_store(store *s, int n)
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

static inline void note_problem(void *user, const char *what)
{
    base_addf(cx, user, "%s\n", what);
}

/* Changes a good store by SQL; the check names what is wrong. */
static inline void expect_problem(const char *name, const char *sql, const char *part)
{
    store *s = open_store(name);
    base_text told = {0};

    fill_store(s, 6);
    cr_assert(eq(i64, problems(s), 0));
    cr_assert(store_put_job(cx, s, &(store_job){.name = "j"}));
    run_sql(s, sql);
    cr_assert(store_check(cx, s, &(store_check_options){.problem = note_problem, .user = &told}) > 0, "%s",
              sql);
    cr_assert(strstr(told.data, part) != NULL, "expected '%s' in '%s'", part, told.data);
    store_close(s);
}

static inline void write_file(const char *name, const void *data, size_t size)
{
    cr_assert(base_write_file(cx, in_dir(name), data, size));
}

#endif
