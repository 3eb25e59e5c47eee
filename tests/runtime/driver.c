/* Devices on a driver that fails at every one of its calls in turn, and one that is gone for good: a message
 * each, and nothing left behind. */
#include <dlfcn.h>

#include "runtime/device.h"
#include "tec/device.h"
#include "tests/runtime/kit.h"
#include "tests/runtime/standin/opencl.h"

enum { OUT_OF_RESOURCES = -5, CLOSED_QUEUES = 7 }; /* of 2 new arrays, 3 copies, the function, the stream */

static standin_live_fn *live;
static standin_fail_fn *fail_at;
static standin_calls_fn *calls;

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);

    cr_assert(found, "%s", dlerror());
    return found;
}

static void open_driver(void)
{
    void *library = dlopen(TEC_STANDIN_OPENCL, RTLD_NOW | RTLD_GLOBAL), *found;

    cr_assert(library, "%s", dlerror());
    found = find(library, "standin_live");
    memcpy(&live, &found, sizeof found);
    found = find(library, "standin_fail");
    memcpy(&fail_at, &found, sizeof found);
    found = find(library, "standin_calls");
    memcpy(&calls, &found, sizeof found);
}
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

Test(driver, whatever_call_fails_says_so_and_leaves_nothing)
{
    tec_error err = {0};
    int64_t before = rt_alloc_live(), total, unseen = 0;

    fail_at(0, 0, 0);
    cr_assert(use_device(&err), "%s", err.text);
    total = calls();
    cr_assert_gt(total, 30);
    cr_assert_eq(live(), 0);
    cr_assert_eq(rt_alloc_live(), before);
    for (int lasting = 0; lasting < 2; lasting++)
        for (int64_t n = 1; n <= total; n++) {
            tec_error failed = {0};
            bool ok;

            fail_at(n, OUT_OF_RESOURCES, lasting);
            ok = use_device(&failed);
            cr_assert(ok == (failed.status == TEC_OK), "call %d: '%s'", (int)n, failed.text);
            unseen += ok;
            cr_assert(ok || strstr(failed.text, "opencl"), "call %d: '%s'", (int)n, failed.text);
            cr_assert_eq(live(), 0, "call %d leaves %d objects: %s", (int)n, (int)live(), failed.text);
            cr_assert_eq(rt_alloc_live(), before, "call %d leaves memory: %s", (int)n, failed.text);
        }
    /* What is done while a queue is closed has nobody to tell; all else has. Where the failure lasts, these
     * are the last two. */
    cr_assert_eq(unseen, CLOSED_QUEUES + 2, "%d", (int)unseen);
}

Test(driver, whatever_allocation_fails_leaves_nothing)
{
    tec_error err = {0};
    int64_t before;

    fail_at(0, 0, 0);
    cr_assert(use_device(&err), "%s", err.text);
    before = rt_alloc_live();
    for (int64_t n = 1; n < 400; n++) {
        tec_error failed = {0};
        bool ok;

        rt_alloc_fail_at(n);
        ok = use_device(&failed);
        rt_alloc_fail_at(0);
        cr_assert_eq(live(), 0, "allocation %d leaves objects: %s", (int)n, failed.text);
        cr_assert_eq(rt_alloc_live(), before, "allocation %d leaves memory: %s", (int)n, failed.text);
        if (ok)
            return;
        cr_assert_eq(failed.status, TEC_NO_MEMORY, "%s", failed.text);
    }
    cr_assert_fail("it never succeeds");
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
