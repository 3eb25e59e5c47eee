/* Devices on a driver that fails at every one of its calls in turn, and one that is gone for good: a message
 * each, and nothing left behind. */
#include <pthread.h>

#include "runtime/device.h"
#include "tec/device.h"
#include "tests/runtime/kit.h"
#include "tests/runtime/standin/use.h"

/* Of 2 new arrays, 3 copies, the function, the stream; they are two queues in turns. */
enum { CLOSED_QUEUES = 7, QUEUES = 2 };

TestSuite(driver, .init = open_driver);

static const rt_launch_desc launch = {
    .kernel = "k",
    .grid = (const rt_dim[]){CONST(2), CONST(1), CONST(1)},
    .block = {4, 1, 1},
    .n_args = 4,
    .args = (const rt_arg_desc[]){{.index = 0}, {.index = 1}, {.index = 2}, {RT_ARG_WORKSPACE, 0, CONST(0)}}};
static const rt_kernel_desc kernel = {"k", (const int32_t[]){0, 4, 0, 0}, 4};
static const rt_function_desc function = {.name = "f",
                                          .device = "opencl",
                                          .launches = &launch,
                                          .n_launches = 1,
                                          .params = scale_params,
                                          .n_params = 3,
                                          .symbols = (const char *const[]){"n"},
                                          .n_symbols = 1,
                                          .workspace = CONST(64)};
static const rt_code_desc code = {.target = "opencl",
                                  .device = "opencl",
                                  .format = RT_CODE_OPENCL_C,
                                  .kernels = &kernel,
                                  .n_kernels = 1,
                                  .bytes = "text",
                                  .size = 4};

/* Opens a device, loads a module, copies there, calls, times, copies back. */
static bool use_device(tec_error *err)
{
    rt_module_desc desc = {
        .target = "opencl", .functions = &function, .n_functions = 1, .codes = &code, .n_codes = 1};
    float data[8] = {1, 2}, back[8] = {0}, factor = 2;
    int64_t shape[] = {8};
    DLTensor host = tensor_of(data, 1, shape), back_host = tensor_of(back, 1, shape),
             scalar = tensor_of(&factor, 0, NULL);
    tec_device *d = tec_device_open("opencl", err);
    tec_array *x = tec_array_new_on(d, host.dtype, 1, shape, err),
              *y = tec_array_new_on(d, host.dtype, 1, shape, err);
    tec_module *m = rt_module_from_memory(&desc, NULL, 0, err);
    tec_function *f = d ? tec_function_new(m, NULL, &(tec_run_options){.device = d}, err) : NULL;
    rt_stream s = {0};
    void *begin = NULL, *end = NULL;
    double seconds;
    bool ok = x && y && f && tec_tensor_copy(tec_array_tensor(x), &host, err) &&
              tec_tensor_copy(tec_array_tensor(y), tec_array_tensor(x), err);

    ok = ok && tec_function_call(f,
                                 (DLTensor *[]){(DLTensor *)(uintptr_t)tec_array_tensor(x), &scalar,
                                                (DLTensor *)(uintptr_t)tec_array_tensor(y)},
                                 3, err);
    ok = ok && tec_tensor_copy(&back_host, tec_array_tensor(y), err) && back[1] == 2;
    ok = ok && rt_stream_open(&s, d, err) && (begin = d->kind->mark(&s, err)) &&
         (end = d->kind->mark(&s, err)) && d->kind->wait(&s, err) &&
         d->kind->between(d, begin, end, &seconds, err);
    if (d) {
        d->kind->drop_mark(d, begin);
        d->kind->drop_mark(d, end);
    }
    rt_stream_close(&s);
    tec_function_free(f);
    tec_module_free(m);
    tec_array_free(x);
    tec_array_free(y);
    tec_device_free(d);
    return ok;
}

/* ---- graphs ---- */

static const rt_param_desc three[] = {
    {.name = "a", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){CONST(8)}},
    {.name = "b", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){CONST(8)}},
    {.name = "c", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){CONST(8)}, .is_output = true}};
static const rt_launch_desc add_launch = {
    .kernel = "k",
    .grid = (const rt_dim[]){CONST(2), CONST(1), CONST(1)},
    .block = {4, 1, 1},
    .n_args = 4,
    .args = (const rt_arg_desc[]){{.index = 0}, {.index = 1}, {.index = 2}, {RT_ARG_WORKSPACE, 0, CONST(0)}}};
static const rt_kernel_desc add_kernel = {"k", (const int32_t[]){0, 0, 0, 0}, 4};
static const rt_code_desc add_code = {.target = "opencl",
                                      .device = "opencl",
                                      .format = RT_CODE_OPENCL_C,
                                      .kernels = &add_kernel,
                                      .n_kernels = 1,
                                      .bytes = "text",
                                      .size = 4};
static const rt_function_desc add_function = {.name = "add",
                                              .device = "opencl",
                                              .launches = &add_launch,
                                              .n_launches = 1,
                                              .params = three,
                                              .n_params = 3,
                                              .workspace = CONST(64)};
static const float add_weights[8] = {1, 2, 3};
static const rt_constant_desc add_constant = {
    .name = "w", .dtype = F32, .rank = 1, .shape = (const int64_t[]){8}, .data = add_weights};

enum { GIVEN, THERE, WEIGHTS, SUM, RESULT, N_VALUES };

/* x to the device, add there to the constant, back to y; with a loop around the addition, or without. */
static tec_module *open_graph_with(const rt_loop_desc *loop, tec_error *err)
{
    rt_function_desc add = add_function;
    const rt_dim shape[] = {CONST(8)};
    const rt_tensor_desc x = {"x", F32, 1, shape}, y = {"y", F32, 1, shape};
    const rt_value_desc values[N_VALUES] = {[GIVEN] = {F32, 1, shape, RT_IN_INPUT, 0, {0}, 0},
                                            [THERE] = {F32, 1, shape, RT_IN_POOL, 0, CONST(0), 1},
                                            [WEIGHTS] = {F32, 1, shape, RT_IN_CONSTANT, 0, {0}, 1},
                                            [SUM] = {F32, 1, shape, RT_IN_POOL, 0, CONST(64), 1},
                                            [RESULT] = {F32, 1, shape, RT_IN_OUTPUT, 0, {0}, 0}};
    const rt_step_desc steps[] = {
        {.function = RT_STEP_COPY, .values = (const int32_t[]){GIVEN, THERE}, .n_values = 2, .name = "copy"},
        {.function = 0, .values = (const int32_t[]){THERE, WEIGHTS, SUM}, .n_values = 3, .name = "Add"},
        {.function = RT_STEP_COPY, .values = (const int32_t[]){SUM, RESULT}, .n_values = 2, .name = "copy"}};
    const rt_site_desc site = {"opencl", CONST(128)};
    const rt_graph_desc g = {.name = "net",
                             .inputs = &x,
                             .n_inputs = 1,
                             .outputs = &y,
                             .n_outputs = 1,
                             .values = values,
                             .n_values = N_VALUES,
                             .sites = &site,
                             .n_sites = 1,
                             .steps = steps,
                             .n_steps = 3};
    const rt_module_desc m = {.target = "opencl",
                              .functions = &add,
                              .n_functions = 1,
                              .constants = &add_constant,
                              .n_constants = 1,
                              .codes = &add_code,
                              .n_codes = 1,
                              .graphs = &g,
                              .n_graphs = 1};

    add.loops = loop;
    add.n_loops = loop != NULL;
    return rt_module_from_memory(&m, NULL, 0, err);
}

static tec_module *open_graph(tec_error *err)
{
    return open_graph_with(NULL, err);
}

/* Runs it twice: plainly, and watched from all sides. */
static bool use_graph(tec_error *err)
{
    float data[8] = {1, 2};
    int64_t shape[] = {8};
    DLTensor x = tensor_of(data, 1, shape);
    tec_module *m = open_graph(err);
    bool ok = m != NULL;

    for (int watched = 0; watched < 2 && ok; watched++) {
        const tec_run_options options = {.profile = watched, .keep = watched, .check_nan = watched};
        tec_executor *ex = tec_executor_new(m, NULL, &options, err);

        ok = ex && tec_executor_set_input(ex, 0, &x, err) && tec_executor_run_async(ex, err) &&
             tec_executor_wait(ex, err);
        tec_executor_free(ex);
    }
    tec_module_free(m);
    return ok;
}

Test(driver, whatever_call_fails_a_graph_says_so_and_leaves_nothing)
{
    let_each_call_fail(use_graph, 30);
}

Test(driver, whatever_allocation_fails_a_graph_leaves_nothing)
{
    let_each_allocation_fail(use_graph, 600);
}

/* ---- two threads ---- */

enum { RUNS = 200 };

static void *run_often(void *user)
{
    tec_error err = {0};
    float data[8] = {1, 2};
    int64_t shape[] = {8};
    DLTensor x = tensor_of(data, 1, shape);

    for (int i = 0; i < RUNS && !err.status; i++) {
        tec_executor *ex = tec_executor_new(user, NULL, NULL, &err);

        for (int k = 0; k < 3 && ex && tec_executor_set_input(ex, 0, &x, &err); k++)
            tec_executor_run(ex, &err);
        tec_executor_free(ex);
    }
    cr_assert_eq(err.status, TEC_OK, "%s", err.text);
    return NULL;
}

/* Each thread opens and closes its executors; in the end no object of the driver is left. */
Test(driver, executors_of_two_threads_share_a_device)
{
    tec_error err = {0};
    tec_module *m = open_graph(&err);
    pthread_t thread[2];

    fail_at(0, 0, 0);
    cr_assert(m, "%s", err.text);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, run_often, m), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    tec_module_free(m);
    cr_assert_eq(live(), 0);
}

/* ---- limits ---- */

/* Around the launch: more iterations than any run can end, and three. */
static const rt_loop_desc endless = {0, 1, CONST(1), CONST(INT64_C(1) << 62)},
                          three_times = {0, 1, CONST(1), CONST(3)};

typedef struct {
    tec_module *module;
    tec_executor *ex;
    tec_function *f;
    tec_array *arg[3];
} limited;

/* The graph and its function, each with the same limits. */
static limited open_limited(const rt_loop_desc *loop, tec_run_options options)
{
    tec_error err = {0};
    static float data[8] = {1, 2};
    int64_t shape[] = {8};
    DLTensor x = tensor_of(data, 1, shape);
    tec_device *d = tec_device_open("opencl", &err);
    limited out = {.module = open_graph_with(loop, &err)};

    fail_at(0, 0, 0);
    options.device = d;
    out.ex = tec_executor_new(out.module, NULL, &options, &err);
    out.f = tec_function_new(out.module, "add", &options, &err);
    cr_assert(out.ex && out.f && tec_executor_set_input(out.ex, 0, &x, &err), "%s", err.text);
    for (int i = 0; i < 3; i++)
        cr_assert(out.arg[i] = tec_array_new_on(d, x.dtype, 1, shape, &err), "%s", err.text);
    tec_device_free(d);
    return out;
}

static void close_limited(limited *self)
{
    tec_executor_free(self->ex);
    tec_function_free(self->f);
    tec_module_free(self->module);
    for (int i = 0; i < 3; i++)
        tec_array_free(self->arg[i]);
    cr_assert_eq(live(), 0);
}

static bool call_limited(const limited *self, tec_error *err)
{
    DLTensor *arg[3];

    for (int i = 0; i < 3; i++)
        arg[i] = (DLTensor *)(uintptr_t)tec_array_tensor(self->arg[i]);
    return tec_function_call(self->f, arg, 3, err);
}

/* Both end so, as often as they are begun. */
static void both_end(const limited *self, tec_status status, const char *words)
{
    for (int i = 0; i < 4; i++) {
        tec_error err = {0};

        cr_assert(!(i % 2 ? tec_executor_run(self->ex, &err) : call_limited(self, &err)));
        cr_assert(err.status == status && strstr(err.text, words), "%s", err.text);
    }
}

static void both_run(const limited *self)
{
    tec_error err = {0};

    cr_assert(tec_executor_run(self->ex, &err) && call_limited(self, &err), "%s", err.text);
}

Test(driver, loops_around_launches_end_at_the_limit_of_steps, .timeout = 60)
{
    limited l = open_limited(&endless, (tec_run_options){.max_steps = 5000});

    both_end(&l, TEC_INVALID, "the limit of 5000 steps is reached");
    close_limited(&l);
    l = open_limited(&three_times, (tec_run_options){.max_steps = 3});
    both_run(&l);
    close_limited(&l);
    l = open_limited(&three_times, (tec_run_options){.max_steps = 2});
    both_end(&l, TEC_INVALID, "the limit of 2 steps is reached");
    close_limited(&l);
}

Test(driver, loops_around_launches_end_at_the_deadline, .timeout = 60)
{
    limited l = open_limited(&endless, (tec_run_options){.deadline = 0.05});

    both_end(&l, TEC_TIMEOUT, "the time limit of the run is reached");
    close_limited(&l);
    l = open_limited(&three_times, (tec_run_options){.deadline = 100});
    both_run(&l);
    close_limited(&l);
}

static void *cancel_soon(void *user)
{
    limited *l = user;
    double end = tec_clock() + 0.05;

    while (tec_clock() < end)
        ;
    tec_executor_cancel(l->ex);
    tec_function_cancel(l->f);
    return NULL;
}

Test(driver, another_thread_cancels_a_run, .timeout = 60)
{
    limited l = open_limited(&endless, (tec_run_options){0});
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        tec_error err = {0};

        pthread_create(&thread, NULL, cancel_soon, &l);
        cr_assert(!(i ? call_limited(&l, &err) : tec_executor_run(l.ex, &err)));
        pthread_join(thread, NULL);
        cr_assert(err.status == TEC_CANCELLED && strstr(err.text, "the run was cancelled"), "%s", err.text);
    }
    close_limited(&l);
}

/* Without a run under way the next one ends, and none behind it. */
Test(driver, a_cancel_is_taken_once)
{
    limited l = open_limited(&three_times, (tec_run_options){0});
    tec_error err = {0};

    tec_executor_cancel(l.ex);
    tec_function_cancel(l.f);
    cr_assert(!tec_executor_run(l.ex, &err));
    cr_assert(err.status == TEC_CANCELLED && strstr(err.text, "the run was cancelled"), "%s", err.text);
    err = (tec_error){0};
    cr_assert(!call_limited(&l, &err));
    cr_assert(err.status == TEC_CANCELLED && strstr(err.text, "the run was cancelled"), "%s", err.text);
    both_run(&l);
    close_limited(&l);
    tec_executor_cancel(NULL);
    tec_function_cancel(NULL);
}

Test(driver, limits_are_not_negative)
{
    tec_error err = {0};
    tec_module *m = open_graph(&err);

    cr_assert_null(tec_executor_new(m, NULL, &(tec_run_options){.max_steps = -1}, &err));
    cr_assert_str_eq(err.text, "expected limits of a run that are not negative");
    cr_assert_null(tec_function_new(m, NULL, &(tec_run_options){.deadline = -1}, &err));
    tec_module_free(m);
    cr_assert_eq(live(), 0);
}

Test(driver, while_a_run_is_under_way_nothing_may_be_changed)
{
    tec_error err = {0};
    float data[8] = {1, 2};
    int64_t shape[] = {8};
    DLTensor x = tensor_of(data, 1, shape);

    fail_at(0, 0, 0);
    tec_module *m = open_graph(&err);
    tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
    cr_assert(ex && tec_executor_set_input(ex, 0, &x, &err) && tec_executor_run_async(ex, &err), "%s",
              err.text);
    cr_assert_null(tec_executor_output(ex, 0));
    cr_assert(!tec_executor_set_input(ex, 0, &x, &err));
    cr_assert_str_eq(err.text, "this executor is running: wait with tec_executor_wait");
    cr_assert(!tec_executor_bind_output(ex, 0, NULL, &err) && !tec_executor_run(ex, &err));
    cr_assert(tec_executor_wait(ex, &err) && tec_executor_wait(ex, &err));
    cr_assert(tec_executor_output(ex, 0));

    DLTensor there = x;
    err = (tec_error){0};
    there.device = (DLDevice){kDLOpenCL, 0};
    cr_assert(!tec_executor_bind_input(ex, 0, &there, &err));
    cr_assert_str_eq(err.text, "input 'x': expected a tensor in main memory, found one on opencl:0");
    tec_executor_free(ex);
    tec_module_free(m);
}

Test(driver, whatever_call_fails_says_so_and_leaves_nothing)
{
    /* Nobody is told what fails while a queue is closed, for its user and in the end for good. Where the
     * failure lasts, these are the last two and the queues themselves. */
    int64_t unseen = let_each_call_fail(use_device, 30);

    cr_assert_eq(unseen, CLOSED_QUEUES + QUEUES + 2 + QUEUES, "%d", (int)unseen);
}

Test(driver, whatever_allocation_fails_leaves_nothing)
{
    let_each_allocation_fail(use_device, 400);
}

Test(driver, quotes_the_line_of_the_log_that_names_an_error)
{
    tec_error err = {0};
    int64_t n = 0;

    do {
        err = (tec_error){0};
        fail_at(++n, -11, 0);
        use_device(&err);
    } while (!strstr(err.text, "build") && n < 100);
    cr_assert_str_eq(err.text,
                     "opencl:0: cannot build the module's code: CL_BUILD_PROGRAM_FAILURE: an error here");
}
