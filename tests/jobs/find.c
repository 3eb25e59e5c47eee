/* tests/jobs/find.c -- the tasks of a file: of definitions, of a model, those with given keys, and the
 * messages about what cannot be a task. */
#include "jobs/find.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tec_context *cx;
static char path[64];
static job_source from;
static job_tasks tasks;

static const char both[] =
    "def mm(A: f32[16, 16], B: f32[16, 16]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n"
    "def scale(n, A: f32[n]) {\n  S[i] = A[i] * 2.0\n  return S\n}\n";

static void write_to(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");

    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void set_up(void)
{
    cx = tec_context_new();
    snprintf(path, sizeof path, "/tmp/tec_jobs_find_%d.te", (int)getpid());
    write_to(path, both);
    from = (job_source){.path = path, .target = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2")};
    cr_assert(from.target);
}

static void tear_down(void)
{
    unlink(path);
    tec_context_free(cx);
}

TestSuite(find, .init = set_up, .fini = tear_down);

static void expect_failure(const char *words)
{
    cr_assert_not(job_find_tasks(cx, &from, &tasks));
    cr_expect(strstr(tec_context_error(cx), words), "'%s' is not in '%s'", words, tec_context_error(cx));
}

Test(find, gives_a_task_for_each_definition)
{
    from.dims = &(onnx_dim){"n", 100};
    from.n_dims = 1;
    cr_assert(job_find_tasks(cx, &from, &tasks), "%s", tec_context_error(cx));
    cr_assert_eq(tasks.n, 2);
    cr_expect_str_eq(tasks.at[0]->name, "mm");
    cr_expect_str_eq(tasks.at[1]->name, "scale");
    cr_expect_eq(tasks.at[0]->flops, 2 * 16 * 16 * 16);
}

Test(find, takes_one_definition_by_name)
{
    from.definition = "mm";
    cr_assert(job_find_tasks(cx, &from, &tasks), "%s", tec_context_error(cx));
    cr_assert_eq(tasks.n, 1);
}

Test(find, leaves_out_tasks_with_other_keys)
{
    from.dims = &(onnx_dim){"n", 100};
    from.n_dims = 1;
    cr_assert(job_find_tasks(cx, &from, &tasks));
    const char *key[] = {tasks.at[1]->task->exact_key, "no such key"};
    from.keys = key;
    from.n_keys = 2;
    cr_assert(job_find_tasks(cx, &from, &tasks));
    cr_assert_eq(tasks.n, 1);
    cr_expect_str_eq(tasks.at[0]->name, "scale");
    from.keys = &key[1];
    from.n_keys = 1;
    cr_assert(job_find_tasks(cx, &from, &tasks), "a file whose tasks all belong to others is no error");
    cr_expect_eq(tasks.n, 0);
}

Test(find, finds_the_kernels_of_a_model)
{
    from.path = TEC_SOURCE_DIR "/tests/models/digits/model.onnx";
    from.dims = &(onnx_dim){"batch", 1};
    from.n_dims = 1;
    cr_assert(job_find_tasks(cx, &from, &tasks), "%s", tec_context_error(cx));
    cr_expect_gt(tasks.n, 1);
    for (int i = 0; i < tasks.n; i++)
        cr_expect(strchr(tasks.at[i]->name, '('), "'%s' does not name its node", tasks.at[i]->name);
    /* Named after operators and extents, as records are, then the node. */
    const char *second = tasks.at[1]->name, *fourth = tasks.at[3]->name;
    cr_expect(base_starts_with(second, base_format(cx, "%s (/1/", tasks.at[1]->task->summary)), "%s", second);
    cr_expect(base_starts_with(fourth, base_format(cx, "%s (/2/", tasks.at[3]->task->summary)), "%s", fourth);
    cr_expect(base_starts_with(second, "conv_packed+relu [1, "), "%s", second);
}

Test(find, names_a_symbol_without_a_value)
{
    expect_failure("'scale' has a symbolic extent 'n': give it a value with --dim n=N");
}

Test(find, names_a_dimension_that_nothing_has)
{
    from.dims = (const onnx_dim[]){{"n", 100}, {"m", 3}};
    from.n_dims = 2;
    expect_failure("--dim m: no definition has a symbol of this name");
}

Test(find, says_that_a_definition_is_not_there)
{
    from.definition = "none";
    expect_failure("there is no definition 'none'");
}

Test(find, says_that_a_file_has_no_definition)
{
    write_to(path, "");
    expect_failure("no definition found");
}

Test(find, refuses_a_schedule_for_several_tasks)
{
    from.dims = &(onnx_dim){"n", 100};
    from.n_dims = 1;
    from.schedules = (const char *const[]){"a.schedule"};
    from.n_schedules = 1;
    expect_failure("--schedule needs a single kernel, but there are 2: choose one with --name");
}

Test(find, refuses_more_schedules_than_can_be_tried_first)
{
    from.definition = "mm";
    from.n_schedules = 101;
    from.schedules = calloc(101, sizeof *from.schedules);
    expect_failure("expected at most 100 schedules with --schedule, found 101");
    free((void *)(uintptr_t)from.schedules);
}

Test(find, names_the_line_of_a_refused_schedule)
{
    char schedule[80];

    snprintf(schedule, sizeof schedule, "%s.schedule", path);
    write_to(schedule, "y0, y1 = split(C.y, _, 4)\nreorder(y0, C.z)\n");
    from.definition = "mm";
    from.schedules = (const char *const[]){schedule};
    from.n_schedules = 1;
    expect_failure(".schedule:2:");
    unlink(schedule);
}

Test(find, says_that_a_file_is_not_there)
{
    from.path = "/nowhere/a.te";
    expect_failure("/nowhere/a.te");
}
