/* tests/store/kit.h -- a folder, a context and records for tests of the store. */
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

#include "store/sql.h"

static tec_context *cx;
static char dir[PATH_MAX];

static inline void set_up(void)
{
    cx = tec_context_new();
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

static inline store *open_store(const char *name)
{
    store *s = store_open(cx, in_dir(name), NULL);

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
    store *s = store_open(cx, in_dir(name), o);

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

static inline void write_file(const char *name, const void *data, size_t size)
{
    cr_assert(base_write_file(cx, in_dir(name), data, size));
}

#endif
