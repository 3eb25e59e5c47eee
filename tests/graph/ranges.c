/* tests/graph/ranges.c -- a kernel with schedules for ranges of a symbol: several functions of the module, of
 * which the run chooses. */
#include "graph/build.h"
#include "tec/program.h"
#include "tec/runtime.h"
#include "tests/graph/kit.h"

TestSuite(ranges, .init = open_context, .fini = close_context);

static const char *no_trace(const space_source *self, tec_context *into, const space_task *task,
                            const target *t, const char **origin)
{
    (void)self, (void)into, (void)task, (void)t, (void)origin;
    return NULL;
}

static const space_ranges *from_data(const space_source *self, tec_context *into, const space_task *task,
                                     const target *t)
{
    (void)task, (void)t;
    return space_ranges_read(into, self->data);
}

#define DOUBLE "input v0 \"x\": f32[n, 3]\nv1: f32[n, 3] = op add \"a\"(v0, v0)\noutput \"y\" v1\n"

static graph_built *built(const char *ranges, bool for_vm)
{
    space_source *source = base_new(cx, space_source);
    graph_module *m = lines(DOUBLE);

    *source = (space_source){.best = no_trace, .ranges = from_data, .data = (void *)(uintptr_t)ranges};
    m->for_vm = for_vm;
    graph_built *b =
        graph_build(m, &(graph_build_options){.target = target_parse(cx, "native"), .source = source});
    cr_assert(b, "%s", tec_context_error(cx));
    return b;
}

static const char ranges[] = "when symbol 0 <= 3:\n"
                             "when symbol 0 <= 7:\nunroll(add.a1)\n"
                             "otherwise:\nparallel(add.a0)\n";
static const struct {
    int64_t n;
    const char *function;
} runs[] = {{0, "add (n <= 3)"}, {3, "add (n <= 3)"}, {4, "add (n <= 7)"}, {7, "add (n <= 7)"},
            {8, "add"},          {100, "add"},        {2, "add (n <= 3)"}};

static void fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n * 3; i++)
        x[i] = (float)i;
}

static void is_double(const DLTensor *y, int64_t n)
{
    cr_assert_eq(y->shape[0], n);
    for (int64_t i = 0; i < n * 3; i++)
        cr_assert_eq(((const float *)y->data)[i], 2.0F * (float)i);
}

Test(ranges, the_executor_runs_the_function_of_the_extent)
{
    tec_error err = {0};
    tec_module *module = graph_load(built(ranges, false));
    tec_executor *ex =
        tec_executor_new(module, NULL, &(tec_run_options){.threads = 1, .profile = true}, &err);
    float x[300];

    cr_assert(ex, "%s", err.text);
    cr_assert_eq(tec_module_n_functions(module), 1);
    for (int i = 0; i < BASE_COUNT(runs); i++) {
        int64_t shape[] = {runs[i].n, 3};
        DLTensor in = {x, {kDLCPU, 0}, 2, BASE_F32, shape, NULL, 0};
        tec_profile_row row;

        fill(x, runs[i].n);
        cr_assert(tec_executor_set_input(ex, 0, &in, &err) && tec_executor_run(ex, &err), "%s", err.text);
        is_double(tec_executor_output(ex, 0), runs[i].n);
        cr_assert(tec_executor_profile(ex, 0, &row));
        cr_assert_str_eq(row.function, runs[i].function, "n = %d", (int)runs[i].n);
        cr_assert_str_eq(row.origin, "record");
    }
    tec_executor_free(ex);
    tec_module_free(module);
}

/* A version for one value computes with constants; ranges with one schedule share a function, which may be
 * the kernel's own. */
Test(ranges, of_one_value_have_a_version_of_the_kernel)
{
    static const char fixed[] = "when symbol 0 <= 3:\nparallel(add.a0)\n"
                                "when symbol 0 == 4:\nunroll(add.a1)\n"
                                "when symbol 0 <= 7:\n"
                                "when symbol 0 == 8:\n"
                                "when symbol 0 <= 20:\n"
                                "otherwise:\nparallel(add.a0)\n";
    static const char *const function[] = {[3] = "add",          [4] = "add (n == 4)", [5] = "add (n <= 7)",
                                           [8] = "add (n == 8)", [9] = "add (n <= 7)", [21] = "add"};
    tec_error err = {0};
    graph_built *b = built(fixed, false);
    tec_module *module = graph_load(b);
    tec_executor *ex =
        tec_executor_new(module, NULL, &(tec_run_options){.threads = 1, .profile = true}, &err);
    float x[300];

    cr_assert(ex, "%s", err.text);
    cr_assert_eq(b->desc.n_functions, 4);
    cr_assert_eq(tec_module_n_functions(module), 1);
    for (int64_t n = 0; n < BASE_COUNT(function); n++) {
        int64_t shape[] = {n, 3};
        DLTensor in = {x, {kDLCPU, 0}, 2, BASE_F32, shape, NULL, 0};
        tec_profile_row row;

        if (!function[n])
            continue;
        fill(x, n);
        cr_assert(tec_executor_set_input(ex, 0, &in, &err) && tec_executor_run(ex, &err), "%s", err.text);
        is_double(tec_executor_output(ex, 0), n);
        cr_assert(tec_executor_profile(ex, 0, &row));
        cr_assert_str_eq(row.function, function[n], "n = %d", (int)n);
    }
    tec_executor_free(ex);
    tec_module_free(module);
}

/* The name of the function in the profile tells which one ran; results alone would not. */
Test(ranges, so_does_the_vm)
{
    tec_error err = {0};
    tec_module *module = graph_load(built(ranges, true));
    const tec_program_options options = {.run = {.threads = 1, .profile = true}};
    tec_program *p = tec_program_new(module, NULL, &options, &err);
    float x[300];

    cr_assert(p, "%s", err.text);
    for (int i = 0; i < BASE_COUNT(runs); i++) {
        int64_t shape[] = {runs[i].n, 3};
        DLTensor in = {x, {kDLCPU, 0}, 2, BASE_F32, shape, NULL, 0};
        tec_profile_row row;
        tec_object *given, *out = NULL;

        fill(x, runs[i].n);
        tec_program_profile_reset(p);
        given = tec_object_tensor(p, &in, &err);
        cr_assert(tec_program_run(p, &given, 1, &out, 1, &err), "%s", err.text);
        is_double(tec_object_dltensor(out), runs[i].n);
        cr_assert(tec_program_profile(p, 0, &row));
        cr_assert_str_eq(row.function, runs[i].function, "n = %d", (int)runs[i].n);
        tec_object_free(out);
        tec_object_free(given);
    }
    tec_program_free(p);
    tec_module_free(module);
}

Test(ranges, the_function_by_itself_chooses_as_well)
{
    tec_error err = {0};
    tec_module *module = graph_load(built(ranges, false));
    tec_function *f = tec_function_new(module, NULL, &(tec_run_options){.threads = 1}, &err);
    float x[300], y[300];

    cr_assert(f, "%s", err.text);
    for (int i = 0; i < BASE_COUNT(runs); i++) {
        int64_t shape[] = {runs[i].n, 3};
        DLTensor in = {x, {kDLCPU, 0}, 2, BASE_F32, shape, NULL, 0}, out = in;

        out.data = y;
        fill(x, runs[i].n);
        cr_assert(tec_function_call(f, (DLTensor *[]){&in, &out}, 2, &err), "%s", err.text);
        is_double(&out, runs[i].n);
    }
    tec_function_free(f);
    tec_module_free(module);
}

Test(ranges, what_does_not_apply_leaves_the_default)
{
    const graph_built *b = built("when symbol 0 <= 3:\nparallel(no_loop)\notherwise:\n", false);
    const graph_kernel_entry *entry = graph_kernel_at(b->kernels, 0);

    cr_assert_str_eq(entry->unit.origin, "default");
    cr_assert(strstr(entry->refused, "no_loop"));
    cr_assert_eq(b->desc.n_functions, 1);
    b = built("when symbol 1 <= 3:\notherwise:\n", false);
    cr_assert_eq(b->desc.n_functions, 1, "there is no symbol 1");
}
