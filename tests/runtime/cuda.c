/* The row `cuda` on a driver that counts its objects: whichever call fails, a stream of the caller's, a
 * device that disappears, hangs or has no memory left, two threads. Nothing is left behind. */
#include <dlfcn.h>
#include <pthread.h>

#include "runtime/device.h"
#include "tec/device.h"
#include "tests/runtime/kit.h"
#include "tests/runtime/standin/cuda.h"

enum { UNAVAILABLE = 46 /* CUDA_ERROR_DEVICE_UNAVAILABLE */ };

static const standin_cuda *driver;
static void *library;

static void open_driver(void)
{
    library = dlopen(TEC_STANDIN_CUDA, RTLD_NOW | RTLD_GLOBAL);
    cr_assert(library, "%s", dlerror());
    driver = dlsym(library, "standin");
    cr_assert(driver);
}

/* Objects of all kinds that were made and not ended. */
static int64_t live(void)
{
    int64_t n = 0;

    for (int kind = 0; kind < STANDIN_KINDS; kind++)
        n += driver->made(kind) - driver->ended(kind);
    return n;
}

TestSuite(cuda, .init = open_driver, .timeout = 60);

/* ---- a function and a graph: y = f(x, w) by a kernel that does nothing ---- */

static const rt_param_desc params[] = {
    {.name = "a", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){CONST(8)}},
    {.name = "b", .dtype = F32, .rank = 1, .shape = (const rt_dim[]){CONST(8)}, .is_output = true}};
static const rt_launch_desc launch = {
    .kernel = "k",
    .grid = (const rt_dim[]){CONST(2), CONST(1), CONST(1)},
    .block = {4, 1, 1},
    .n_args = 3,
    .args = (const rt_arg_desc[]){{.index = 0}, {.index = 1}, {RT_ARG_WORKSPACE, 0, CONST(0)}}};
static const rt_kernel_desc kernel = {"k", (const int32_t[]){0, 0, 0}, 3};
static const rt_function_desc function = {.name = "f",
                                          .device = "cuda",
                                          .launches = &launch,
                                          .n_launches = 1,
                                          .params = params,
                                          .n_params = 2,
                                          .workspace = CONST(64)};
static const rt_code_desc code = {.target = "cuda -arch=sm_80",
                                  .device = "cuda",
                                  .format = RT_CODE_CUBIN,
                                  .kernels = &kernel,
                                  .n_kernels = 1,
                                  .bytes = "cubin",
                                  .size = 6};
static const float weights[8] = {1, 2, 3};
static const rt_constant_desc constant = {
    .name = "w", .dtype = F32, .rank = 1, .shape = (const int64_t[]){8}, .data = weights};

enum { GIVEN, THERE, HALF, RESULT, OUT, N_VALUES };

/* x to the device, two launches there, y back. */
static tec_module *open_module(tec_error *err)
{
    const rt_dim shape[] = {CONST(8)};
    const rt_tensor_desc x = {"x", F32, 1, shape}, y = {"y", F32, 1, shape};
    const rt_value_desc values[N_VALUES] = {[GIVEN] = {F32, 1, shape, RT_IN_INPUT, 0, {0}, 0},
                                            [THERE] = {F32, 1, shape, RT_IN_POOL, 0, CONST(0), 1},
                                            [HALF] = {F32, 1, shape, RT_IN_POOL, 0, CONST(64), 1},
                                            [RESULT] = {F32, 1, shape, RT_IN_POOL, 0, CONST(128), 1},
                                            [OUT] = {F32, 1, shape, RT_IN_OUTPUT, 0, {0}, 0}};
    const rt_step_desc steps[] = {
        {.function = RT_STEP_COPY, .values = (const int32_t[]){GIVEN, THERE}, .n_values = 2, .name = "copy"},
        {.function = 0, .values = (const int32_t[]){THERE, HALF}, .n_values = 2, .name = "F"},
        {.function = 0, .values = (const int32_t[]){HALF, RESULT}, .n_values = 2, .name = "F"},
        {.function = RT_STEP_COPY, .values = (const int32_t[]){RESULT, OUT}, .n_values = 2, .name = "copy"}};
    const rt_site_desc site = {"cuda", CONST(192)};
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
                             .n_steps = 4};
    const rt_module_desc m = {.target = "cuda -arch=sm_80",
                              .functions = &function,
                              .n_functions = 1,
                              .constants = &constant,
                              .n_constants = 1,
                              .codes = &code,
                              .n_codes = 1,
                              .graphs = &g,
                              .n_graphs = 1};

    return rt_module_from_memory(&m, NULL, 0, err);
}

static DLTensor tensor_of_8(float *data)
{
    static int64_t shape[] = {8};

    return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = F32, .shape = shape};
}

/* An executor of the graph with its input set, or an error. */
static tec_executor *open_executor(tec_module *m, const tec_run_options *options, tec_error *err)
{
    float data[8] = {1, 2};
    DLTensor x = tensor_of_8(data);
    tec_executor *ex = tec_executor_new(m, NULL, options, err);

    if (ex && tec_executor_set_input(ex, 0, &x, err))
        return ex;
    tec_executor_free(ex);
    return NULL;
}

typedef bool run_function(tec_function *f, DLTensor *const *args, int count, tec_error *err);

/* Calls the function on two arrays of the device. */
static bool call_on(tec_device *d, tec_module *m, void *stream, run_function *run, tec_error *err)
{
    float data[8] = {1, 2};
    DLTensor host = tensor_of_8(data);
    tec_array *a = tec_array_new_on(d, host.dtype, 1, host.shape, err),
              *b = tec_array_new_on(d, host.dtype, 1, host.shape, err);
    tec_function *f = tec_function_new(m, NULL, &(tec_run_options){.device = d, .stream = stream}, err);
    bool ok = a && b && f && tec_tensor_copy(tec_array_tensor(a), &host, err) &&
              run(f,
                  (DLTensor *[]){(DLTensor *)(uintptr_t)tec_array_tensor(a),
                                 (DLTensor *)(uintptr_t)tec_array_tensor(b)},
                  2, err) &&
              tec_function_wait(f, err) && tec_tensor_copy(&host, tec_array_tensor(b), err);

    tec_function_free(f);
    tec_array_free(a);
    tec_array_free(b);
    return ok;
}

/* ---- whichever call fails ---- */

/* Function and graph; the graph four times, so that it is recorded, and once watched from all sides. */
static bool use_all(tec_error *err)
{
    tec_device *d = tec_device_open("cuda", err);
    tec_module *m = d ? open_module(err) : NULL;
    bool ok = m && call_on(d, m, NULL, tec_function_call, err);

    for (int watched = 0; watched < 2 && ok; watched++) {
        tec_executor *ex = open_executor(
            m, &(tec_run_options){.profile = watched, .keep = watched, .check_nan = watched}, err);

        ok = ex != NULL;
        for (int i = 0; i < (watched ? 1 : 4) && ok; i++)
            ok = tec_executor_run_async(ex, err) && tec_executor_wait(ex, err);
        tec_executor_free(ex);
    }
    tec_module_free(m);
    tec_device_free(d);
    return ok;
}

Test(cuda, whatever_call_fails_says_so_and_leaves_nothing)
{
    tec_error err = {0};
    int64_t before = rt_alloc_live(), total;

    driver->fail(0, 0, 0);
    cr_assert(use_all(&err), "%s", err.text);
    total = driver->calls();
    cr_assert_gt(total, 60);
    cr_assert_eq(live(), 0, "%d objects", (int)live());
    for (int kind = 0; kind < STANDIN_KINDS; kind++)
        cr_assert(driver->made(kind) > 0, "nothing of kind %d was made", kind);
    for (int lasting = 0; lasting < 2; lasting++)
        for (int64_t n = 1; n <= total; n++) {
            tec_error failed = {0};
            bool ok;

            driver->fail(n, UNAVAILABLE, lasting);
            ok = use_all(&failed);
            cr_assert(ok == (failed.status == TEC_OK), "call %d: '%s'", (int)n, failed.text);
            cr_assert(ok || strstr(failed.text, "CUDA_ERROR_DEVICE_UNAVAILABLE"), "call %d: '%s'", (int)n,
                      failed.text);
            cr_assert(ok || strstr(failed.text, "cuda"), "call %d: '%s'", (int)n, failed.text);
            cr_assert_eq(live(), 0, "call %d leaves %d objects: %s", (int)n, (int)live(), failed.text);
            cr_assert_eq(rt_alloc_live(), before, "call %d leaves memory: %s", (int)n, failed.text);
        }
}

/* ---- code for this device, and for later ones ---- */

/* Machine code for sm_80 and for sm_90a, and PTX: what each device loads, NULL: it is refused. */
Test(cuda, takes_machine_code_before_ptx_and_ptx_on_later_devices)
{
    static const struct {
        int capability;
        const char *loads;
    } devices[] = {{75, NULL},   {80, "8.0"},  {86, "8.0"},  {89, "8.0"},
                   {90, "9.0a"}, {100, "PTX"}, {120, "PTX"}, {121, "PTX"}};
    const rt_code_desc codes[] = {{.target = "cuda -arch=sm_90a", .format = RT_CODE_CUBIN, .bytes = "9.0a"},
                                  {.target = "cuda -arch=sm_80", .format = RT_CODE_CUBIN, .bytes = "8.0"},
                                  {.target = "cuda -arch=compute_80", .format = RT_CODE_PTX, .bytes = "PTX"}};
    rt_code_desc filled[BASE_COUNT(codes)];

    for (int i = 0; i < BASE_COUNT(codes); i++) {
        filled[i] = code;
        filled[i].target = codes[i].target;
        filled[i].format = codes[i].format;
        filled[i].bytes = codes[i].bytes;
        filled[i].size = strlen(codes[i].bytes) + 1;
    }
    const rt_module_desc m = {
        .target = "cuda", .functions = &function, .n_functions = 1, .codes = filled, .n_codes = 3};
    for (int i = 0; i < BASE_COUNT(devices); i++) {
        tec_error err = {0};
        tec_module *opened = rt_module_from_memory(&m, NULL, 0, &err);
        tec_function *f;

        driver->capability(devices[i].capability);
        f = tec_function_new(opened, NULL, NULL, &err);
        cr_assert((f != NULL) == (devices[i].loads != NULL), "%d: %s", devices[i].capability, err.text);
        if (f)
            cr_assert_str_eq(driver->loaded(), devices[i].loads, "%d", devices[i].capability);
        else
            cr_assert_str_eq(
                err.text, "cuda:0: the kernel 'k' was made for 'cuda -arch=sm_90a', 'cuda -arch=sm_80' and "
                          "'cuda -arch=compute_80', which this device is not: stand-in, CUDA 12.0, compute "
                          "capability 7.5");
        tec_function_free(f);
        tec_module_free(opened);
    }
    cr_assert_eq(live(), 0);
}

/* The driver reads PTX up to a NUL. */
Test(cuda, refuses_ptx_without_an_end)
{
    rt_code_desc ptx = code;
    const rt_module_desc m = {
        .target = "cuda", .functions = &function, .n_functions = 1, .codes = &ptx, .n_codes = 1};
    tec_error err = {0};

    ptx.format = RT_CODE_PTX;
    ptx.bytes = ".version";
    ptx.size = 8;
    cr_assert_null(rt_module_from_memory(&m, NULL, 0, &err));
    cr_assert(strstr(err.text, "is PTX without a NUL at its end"), "%s", err.text);
}

/* ---- a stream of the caller's ---- */

/* Streams as other libraries of the process make them. */
static void *find(const char *name)
{
    void *found = dlsym(library, name);

    cr_assert(found, "%s", dlerror());
    return found;
}

static void push(void *context)
{
    int (*call)(void *);
    void *found = find("cuCtxPushCurrent_v2");

    memcpy(&call, &found, sizeof found);
    cr_assert_eq(call(context), 0);
}

static void *make_stream(void)
{
    int (*call)(void **, unsigned);
    void *found = find("cuStreamCreate"), *stream = NULL;

    memcpy(&call, &found, sizeof found);
    cr_assert_eq(call(&stream, 0), 0);
    return stream;
}

static void end_stream(void *stream)
{
    int (*call)(void *);
    void *found = find("cuStreamDestroy_v2");

    memcpy(&call, &found, sizeof found);
    cr_assert_eq(call(stream), 0);
}

/* A device, a module and a stream of the caller's in its context. */
typedef struct {
    tec_device *device;
    tec_module *module;
    void *stream;
} setting;

static setting open_setting(void)
{
    tec_error err = {0};
    setting s = {.device = tec_device_open("cuda", &err)};

    cr_assert(s.device, "%s", err.text);
    s.module = open_module(&err);
    cr_assert(s.module, "%s", err.text);
    push(tec_device_context(s.device));
    s.stream = make_stream();
    return s;
}

static void close_setting(setting *s)
{
    end_stream(s->stream);
    tec_module_free(s->module);
    tec_device_free(s->device);
    cr_assert_eq(live(), 0, "%d objects", (int)live());
}

Test(cuda, a_function_uses_the_callers_stream)
{
    tec_error err = {0};
    setting s = open_setting();

    cr_assert(call_on(s.device, s.module, s.stream, tec_function_call, &err), "%s", err.text);
    cr_assert_eq(driver->work(s.stream), 1);
    cr_assert(call_on(s.device, s.module, s.stream, tec_function_call_async, &err), "%s", err.text);
    cr_assert_eq(driver->work(s.stream), 2);
    cr_assert(call_on(s.device, s.module, NULL, tec_function_call, &err), "%s", err.text);
    cr_assert_eq(driver->work(s.stream), 2);
    close_setting(&s);
}

/* All copies and launches, also those that are recorded; the default streams, which cannot be recorded,
 * too. */
Test(cuda, an_executor_uses_the_callers_stream)
{
    tec_error err = {0};
    setting s = open_setting();
    void *const streams[] = {s.stream, (void *)(uintptr_t)1, (void *)(uintptr_t)2};

    for (int i = 0; i < BASE_COUNT(streams); i++) {
        tec_executor *ex =
            open_executor(s.module, &(tec_run_options){.device = s.device, .stream = streams[i]}, &err);
        int64_t graphs = driver->made(STANDIN_GRAPH), all = driver->work(NULL);
        int64_t before = driver->work(streams[i]);

        cr_assert(ex, "%s", err.text);
        for (int run = 0; run < 4; run++)
            cr_assert(tec_executor_run(ex, &err), "%s", err.text);
        /* Up, two launches, down; then three times up, a graph, down. */
        cr_assert_eq(driver->work(streams[i]) - before, 13, "%d", (int)(driver->work(streams[i]) - before));
        cr_assert_eq(driver->work(NULL) - all, 13);
        cr_assert_eq(driver->made(STANDIN_GRAPH) - graphs, 2);
        tec_executor_free(ex);
    }
    close_setting(&s);
}

/* What fills a tensor may still be in the caller's stream. */
Test(cuda, an_input_is_read_behind_the_callers_work)
{
    tec_error err = {0};
    setting s = open_setting();
    float data[8] = {0};
    DLTensor host = tensor_of_8(data);
    tec_array *a = tec_array_new_on(s.device, host.dtype, 1, host.shape, &err);
    tec_executor *ex =
        open_executor(s.module, &(tec_run_options){.device = s.device, .stream = s.stream}, &err);
    int64_t before = driver->work(s.stream), all = driver->work(NULL);

    cr_assert(a && ex && tec_executor_set_input(ex, 0, tec_array_tensor(a), &err), "%s", err.text);
    cr_assert_eq(driver->work(s.stream) - before, 1);
    cr_assert_eq(driver->work(NULL) - all, 1);
    tec_executor_free(ex);
    tec_array_free(a);
    close_setting(&s);
}

static void refuses(tec_module *m, const tec_run_options *options, const char *text)
{
    tec_error err = {0};

    cr_assert_null(tec_executor_new(m, NULL, options, &err));
    cr_assert_str_eq(err.text, text);
    err = (tec_error){0};
    cr_assert_null(tec_function_new(m, NULL, options, &err));
    cr_assert_str_eq(err.text, text);
}

Test(cuda, refuses_streams_that_cannot_order_its_work)
{
    tec_error err = {0};
    setting s = open_setting();
    void *other;

    driver->other_context();
    other = make_stream();
    refuses(s.module, &(tec_run_options){.device = s.device, .stream = other},
            "cuda:0: the caller's stream is of another context than the device's primary one");
    end_stream(other);
    refuses(s.module, &(tec_run_options){.stream = s.stream},
            "expected a device with the stream, found none");
    cr_assert_null(tec_device_open_in("cuda", &err, &err));
    cr_assert_str_eq(err.text, "cuda:0: is open in another context");
    close_setting(&s);
    err = (tec_error){0};
    cr_assert_null(tec_device_open_in("cuda", &err, &err));
    cr_assert_str_eq(err.text, "cuda:0: works in the primary context alone, but the caller gave one");
}

/* ---- a device that does not answer, has no memory, or is gone ---- */

Test(cuda, a_kernel_that_hangs_ends_the_run_at_its_deadline)
{
    tec_error err = {0};
    setting s = open_setting();
    tec_executor *ex = open_executor(s.module, &(tec_run_options){.deadline = 0.05}, &err);

    cr_assert(ex, "%s", err.text);
    cr_assert(tec_executor_run(ex, &err), "%s", err.text);
    driver->hang(1);
    cr_assert(!tec_executor_run(ex, &err));
    cr_assert_eq(err.status, TEC_TIMEOUT);
    cr_assert_str_eq(err.text, "cuda:0: its work is not done at the time limit of the run");
    err = (tec_error){0};
    cr_assert(!tec_executor_run(ex, &err));
    cr_assert_str_eq(err.text, "this executor is running: wait with tec_executor_wait");
    err = (tec_error){0};
    cr_assert(!tec_executor_wait(ex, &err));
    cr_assert_eq(err.status, TEC_TIMEOUT);
    driver->hang(0);
    err = (tec_error){0};
    cr_assert(tec_executor_wait(ex, &err) && tec_executor_run(ex, &err), "%s", err.text);
    tec_executor_free(ex);
    close_setting(&s);
}

Test(cuda, a_kernel_that_hangs_ends_a_call_at_its_deadline)
{
    tec_error err = {0};
    setting s = open_setting();
    float data[8] = {0};
    DLTensor host = tensor_of_8(data);
    tec_array *a = tec_array_new_on(s.device, host.dtype, 1, host.shape, &err),
              *b = tec_array_new_on(s.device, host.dtype, 1, host.shape, &err);
    tec_function *f = tec_function_new(s.module, NULL, &(tec_run_options){.deadline = 0.05}, &err);
    DLTensor *args[] = {(DLTensor *)(uintptr_t)tec_array_tensor(a),
                        (DLTensor *)(uintptr_t)tec_array_tensor(b)};

    cr_assert(a && b && f, "%s", err.text);
    driver->hang(1);
    cr_assert(!tec_function_call(f, args, 2, &err));
    cr_assert_eq(err.status, TEC_TIMEOUT);
    cr_assert_str_eq(err.text, "cuda:0: its work is not done at the time limit of the run");
    driver->hang(0);
    err = (tec_error){0};
    cr_assert(tec_function_wait(f, &err) && tec_function_call(f, args, 2, &err), "%s", err.text);
    tec_function_free(f);
    tec_array_free(a);
    tec_array_free(b);
    close_setting(&s);
}

/* Whatever memory there is, up to enough; then it works. */
Test(cuda, memory_that_runs_out_is_told_and_given_back)
{
    int refused = 0;

    for (size_t bytes = 16;; bytes += 16) {
        tec_error err = {0};
        bool ok;

        driver->limit_memory(bytes);
        ok = use_all(&err);
        cr_assert_eq(live(), 0, "%d objects at %d bytes", (int)live(), (int)bytes);
        if (ok)
            break;
        refused++;
        cr_assert_eq(err.status, TEC_NO_MEMORY, "%s", err.text);
        cr_assert(strstr(err.text, "cuda:0: cannot allocate ") && strstr(err.text, "OUT_OF_MEMORY"), "%s",
                  err.text);
    }
    cr_assert_gt(refused, 3);
}

/* A fault is the process's for good; others are told plainly. */
Test(cuda, a_device_that_disappears_is_told)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {{UNAVAILABLE, "cuda:0: cannot finish its work: CUDA_ERROR_DEVICE_UNAVAILABLE"},
                 {700,
                  "cuda:0: cannot finish its work: CUDA_ERROR_ILLEGAL_ADDRESS; a kernel failed, and this "
                  "process can no longer use the device"}};

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        tec_error err = {0};
        setting s = open_setting();
        tec_executor *ex = open_executor(s.module, NULL, &err);

        cr_assert(ex && tec_executor_run_async(ex, &err), "%s", err.text);
        driver->fail(1, cases[i].status, 1);
        cr_assert(!tec_executor_wait(ex, &err));
        cr_assert_eq(err.status, TEC_DEVICE);
        cr_assert_str_eq(err.text, cases[i].text);
        tec_executor_free(ex);
        driver->fail(0, 0, 0);
        close_setting(&s);
    }
}

/* ---- two threads ---- */

enum { RUNS = 200 };

static void *run_often(void *user)
{
    tec_module *m = user;
    tec_error err = {0};

    for (int i = 0; i < RUNS && !err.status; i++) {
        tec_executor *ex = open_executor(m, NULL, &err);

        for (int k = 0; k < 3 && ex; k++)
            tec_executor_run(ex, &err);
        tec_executor_free(ex);
    }
    cr_assert_eq(err.status, TEC_OK, "%s", err.text);
    return NULL;
}

/* Each thread opens and closes its executors; the device and the module's code are shared. */
Test(cuda, executors_of_two_threads_share_a_device)
{
    setting s = open_setting();
    int64_t modules = driver->made(STANDIN_MODULE), contexts = driver->made(STANDIN_CONTEXT);
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, run_often, s.module);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(driver->made(STANDIN_MODULE) - modules, 1);
    cr_assert_eq(driver->made(STANDIN_CONTEXT), contexts);
    close_setting(&s);
}

/* ---- what is made again and again ---- */

static int64_t made_so_far[STANDIN_KINDS];

/* So many objects of a kind were made since the last question. */
static void made_since(standin_kind kind, int64_t expected)
{
    int64_t n = driver->made(kind) - made_so_far[kind];

    cr_assert_eq(n, expected, "kind %d: made %d, expected %d", (int)kind, (int)n, (int)expected);
    made_so_far[kind] += n;
}

/* Copies go through the default stream, and memory of the same size is used again. */
Test(cuda, copies_and_arrays_make_nothing_anew)
{
    tec_error err = {0};
    setting s = open_setting();
    float data[8] = {1, 2}, back[8] = {0};
    DLTensor host = tensor_of_8(data), result = tensor_of_8(back);

    made_since(STANDIN_MEMORY, 0);
    made_since(STANDIN_STREAM, 1); /* the setting's */
    for (int i = 0; i < 100; i++) {
        tec_array *a = tec_array_new_on(s.device, host.dtype, 1, host.shape, &err);

        cr_assert(a && tec_tensor_copy(tec_array_tensor(a), &host, &err) &&
                      tec_tensor_copy(&result, tec_array_tensor(a), &err),
                  "%s", err.text);
        cr_assert_eq(back[1], 2);
        tec_array_free(a);
    }
    made_since(STANDIN_MEMORY, 1);
    made_since(STANDIN_STREAM, 0);
    close_setting(&s);
}

/* Inputs and outputs lie in page-locked memory, which runs do not make anew; nor does a second executor make
 * another stream, or other device memory. */
Test(cuda, runs_make_nothing_anew)
{
    tec_error err = {0};
    setting s = open_setting();

    made_since(STANDIN_STREAM, 1);
    for (int i = 0; i < 3; i++) {
        tec_executor *ex = open_executor(s.module, NULL, &err);

        cr_assert(ex, "%s", err.text);
        for (int run = 0; run < 100; run++)
            cr_assert(tec_executor_run(ex, &err), "%s", err.text);
        tec_executor_free(ex);
        made_since(STANDIN_HOST, 2);
        made_since(STANDIN_STREAM, i == 0);
        made_since(STANDIN_MEMORY, i == 0 ? 2 : 0); /* pool and workspace */
        made_since(STANDIN_EVENT, 0);
    }
    close_setting(&s);
}

/* Memory that waits for another user goes before the device has none. */
Test(cuda, spare_memory_is_given_back_where_it_is_needed)
{
    tec_error err = {0};
    setting s = open_setting();
    int64_t small = 256, large = 512; /* floats */
    tec_array *a = tec_array_new_on(s.device, (DLDataType)F32, 1, &small, &err);

    cr_assert(a, "%s", err.text);
    tec_array_free(a);
    driver->limit_memory(2048);
    a = tec_array_new_on(s.device, (DLDataType)F32, 1, &large, &err);
    cr_assert(a, "%s", err.text);
    tec_array_free(a);
    close_setting(&s);
}
