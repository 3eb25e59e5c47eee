/* Devices: names, memory, copies, launches. What needs a driver runs on the first OpenCL device, which the
 * packages of the tests bring. */
#include "tec/device.h"

#include <pthread.h>
#include <unistd.h>

#include "runtime/device.h"
#include "runtime/file.h"
#include "runtime/opencl.h"
#include "tests/runtime/kit.h"

static const char program[] =
    "__kernel void scale(__global char *x_base, long x_at, __global char *y_base, long y_at, float factor, "
    "long n)\n"
    "{\n"
    "    const __global float *x = (const __global float *)(x_base + x_at);\n"
    "    __global float *y = (__global float *)(y_base + y_at);\n"
    "    long i = get_group_id(0) * 16 + get_local_id(0);\n"
    "    if (i < n)\n"
    "        y[i] = x[i] * factor;\n"
    "}\n"
    "__kernel void add(__global char *y_base, long y_at, __global char *t_base, long t_at, long n)\n"
    "{\n"
    "    __global float *y = (__global float *)(y_base + y_at);\n"
    "    __global float *t = (__global float *)(t_base + t_at);\n"
    "    long i = get_group_id(0) * 16 + get_local_id(0);\n"
    "    if (i < n) {\n"
    "        t[i] = 1.0f;\n"
    "        y[i] += t[i];\n"
    "    }\n"
    "}\n";

#define N_BY_16 WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 15, RT_DIM_ADD, RT_DIM_CONST, 16, RT_DIM_FLOORDIV)

static const rt_dim grid[] = {N_BY_16, CONST(1), CONST(1)};

static const rt_launch_desc launches[] = {
    {.kernel = "scale",
     .grid = grid,
     .block = {16, 1, 1},
     .n_args = 4,
     .args = (const rt_arg_desc[]){{.index = 0}, {.index = 2}, {.index = 1}, {RT_ARG_SIZE, 0, SYMBOL(0)}}},
    {.kernel = "add",
     .guard = WORDS(RT_DIM_CONST, 20, RT_DIM_SYMBOL, 0, RT_DIM_LT),
     .grid = grid,
     .block = {16, 1, 1},
     .n_args = 3,
     .args =
         (const rt_arg_desc[]){{.index = 2}, {RT_ARG_WORKSPACE, 0, CONST(64)}, {RT_ARG_SIZE, 0, SYMBOL(0)}}},
};

static const rt_kernel_desc kernels[] = {
    {"scale", (const int32_t[]){0, 0, 4, 8}, 4},
    {"add", (const int32_t[]){0, 0, 8}, 3},
};

/* y = x * factor, and 1 more where n is over 20. */
static const rt_function_desc scale_function = {
    .name = "scale",
    .device = "opencl",
    .launches = launches,
    .n_launches = 2,
    .params = scale_params,
    .n_params = 3,
    .symbols = (const char *const[]){"n"},
    .n_symbols = 1,
    .workspace = WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 4, RT_DIM_MUL, RT_DIM_CONST, 64, RT_DIM_ADD)};

/* The description of a module with that function; the parts may be changed. */
typedef struct {
    rt_module_desc m;
    rt_function_desc f;
    rt_code_desc code[2]; /* m.n_codes is 1, and may be made 2 */
    rt_launch_desc launches[2];
} description;

static void describe(description *d)
{
    *d = (description){.f = scale_function, .launches = {launches[0], launches[1]}};
    d->f.launches = d->launches;
    d->code[0] = (rt_code_desc){.target = "opencl",
                                .device = "opencl",
                                .format = RT_CODE_OPENCL_C,
                                .kernels = kernels,
                                .n_kernels = 2,
                                .bytes = program,
                                .size = sizeof program - 1};
    d->code[1] = d->code[0];
    d->code[1].target = "opencl -device=mali";
    d->m = (rt_module_desc){
        .target = "opencl", .functions = &d->f, .n_functions = 1, .codes = d->code, .n_codes = 1};
}

static tec_module *open_module(const description *d, tec_error *err)
{
    return rt_module_from_memory(&d->m, NULL, 0, err);
}

static tec_device *open_device(tec_error *err)
{
    tec_device *d = tec_device_open("opencl", err);

    cr_assert(d, "%s (the packages of tier opencl have a driver)", err->text);
    return d;
}

/* ---- names ---- */

Test(device, lists_its_kinds)
{
    cr_assert_str_eq(tec_device_kind(0), "cpu");
    cr_assert_str_eq(tec_device_kind(1), "cuda");
    cr_assert_str_eq(tec_device_kind(2), "opencl");
    cr_assert_null(tec_device_kind(-1));
    cr_assert_eq(tec_device_count("cpu", NULL), 1);
}

Test(device, refuses_names_that_no_device_has)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"gpu", "there is no kind of device 'gpu'; expected one of cpu, cuda, opencl"},
        {"cpu:1", "there is no device 'cpu:1': this machine has 1 of that kind"},
        {"cpu:", "the device 'cpu:' has no number: expected a name like 'opencl:0'"},
        {"cpu:x", "the device 'cpu:x' has no number"},
        {"cpu:-1", "the device 'cpu:-1' has no number"},
        {NULL, "there is no device ''"},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        tec_error err = {0};

        cr_assert_null(tec_device_open(cases[i].name, &err));
        ASSERT_SAYS(err, cases[i].text);
    }
}

Test(device, is_one_object_however_often_it_is_opened)
{
    tec_error err = {0};
    tec_device *a = tec_device_open("cpu", &err), *b = tec_device_open("cpu:0", &err);
    tec_device_info info;

    cr_assert(a && a == b, "%s", err.text);
    cr_assert(tec_device_describe(a, &info, &err));
    cr_assert_str_eq(info.name, "cpu:0");
    cr_assert_gt(info.memory_bytes, 0);
    cr_assert_not(tec_device_describe(NULL, &info, &err));
    ASSERT_SAYS(err, "expected a device, found NULL");
    tec_device_free(a);
    tec_device_free(b);
}

/* ---- memory ---- */

static void copies_both_ways(const char *name)
{
    tec_error err = {0};
    tec_device *d = tec_device_open(name, &err);
    float data[12], back[12] = {0};
    int64_t shape[] = {3, 4}, strides[] = {1, 3};
    DLTensor from = tensor_of(data, 2, shape), to = tensor_of(back, 2, shape);
    tec_array *a = tec_array_new_on(d, from.dtype, 2, shape, &err),
              *b = tec_array_new_on(d, from.dtype, 2, shape, &err);

    cr_assert(a && b, "%s", err.text);
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    cr_assert(tec_tensor_copy(&to, tec_array_tensor(a), &err), "%s", err.text);
    for (int i = 0; i < 12; i++)
        cr_assert_eq(back[i], 0);
    from.strides = strides; /* element (i, j) is number i + 3j */
    cr_assert(tec_tensor_copy(tec_array_tensor(a), &from, &err) &&
                  tec_tensor_copy(tec_array_tensor(b), tec_array_tensor(a), &err) &&
                  tec_tensor_copy(&to, tec_array_tensor(b), &err),
              "%s", err.text);
    for (int i = 0; i < 12; i++)
        cr_assert_eq(back[i], (float)(i / 4 + i % 4 * 3));
    to.strides = strides;
    cr_assert(tec_tensor_copy(&to, tec_array_tensor(b), &err), "%s", err.text);
    for (int i = 0; i < 12; i++)
        cr_assert_eq(back[i], (float)i);
    tec_array_free(a);
    tec_array_free(b);
    tec_device_free(d);
}

Test(device, copies_both_ways_on_a_cpu)
{
    copies_both_ways("cpu");
}

Test(device, copies_both_ways_on_opencl)
{
    copies_both_ways("opencl");
}

Test(device, refuses_copies_that_it_cannot_do)
{
    tec_error err = {0}, strided = {0}, closed = {0}, large = {0}, host = {0};
    tec_device *d = open_device(&err);
    float data[4] = {0};
    int64_t shape[] = {2, 2}, strides[] = {1, 2}, huge[] = {1ll << 50, 1};
    tec_array *a = tec_array_new_on(d, (DLDataType)F32, 2, shape, &err);
    DLTensor t = *tec_array_tensor(a), on_host = tensor_of(data, 2, shape);

    t.strides = strides;
    cr_assert_not(tec_tensor_copy(&on_host, &t, &strided));
    ASSERT_SAYS(strided, "copy from: expected compact row-major strides on a device, found others");
    t.strides = NULL;
    t.device.device_id = 7;
    cr_assert_not(tec_tensor_copy(&on_host, &t, &closed));
    ASSERT_SAYS(closed, "copy from: lies on opencl:7, which is not open");
    cr_assert_null(tec_array_new_on(d, (DLDataType)F32, 2, huge, &large));
    cr_assert_eq(large.status, TEC_NO_MEMORY);
    ASSERT_SAYS(large,
                "opencl:0: cannot allocate 4503599627370496 bytes: CL_INVALID_BUFFER_SIZE (a buffer of "
                "this device has at most ");
    cr_assert_null(tec_array_new_on(NULL, (DLDataType)F32, 2, shape, &host));
    ASSERT_SAYS(host, "expected a device for the array, found NULL");
    tec_array_free(a);
    tec_device_free(d);
}

/* ---- functions ---- */

/* x[i] = i, in the middle of a larger array, so that it has an offset. */
static void call_scale_times(tec_function *f, tec_device *d, int64_t n, int added)
{
    tec_error err = {0};
    float data[200] = {0}, back[200], factor = 3;
    int64_t whole[] = {200}, shape[] = {n};
    DLTensor host = tensor_of(data, 1, whole), back_host = tensor_of(back, 1, whole),
             scalar = tensor_of(&factor, 0, NULL);
    tec_array *x = tec_array_new_on(d, host.dtype, 1, whole, &err),
              *y = tec_array_new_on(d, host.dtype, 1, whole, &err);
    DLTensor tx = *tec_array_tensor(x), ty = *tec_array_tensor(y);

    for (int i = 0; i < 200; i++)
        data[i] = (float)i;
    tx.shape = ty.shape = shape;
    tx.byte_offset = 4 * 5;
    ty.byte_offset = 4 * 7;
    cr_assert(tec_tensor_copy(tec_array_tensor(x), &host, &err), "%s", err.text);
    cr_assert(tec_function_call(f, (DLTensor *[]){&tx, &scalar, &ty}, 3, &err), "%s", err.text);
    cr_assert(tec_tensor_copy(&back_host, tec_array_tensor(y), &err), "%s", err.text);
    for (int64_t i = 0; i < 200; i++)
        cr_assert_eq(back[i], i >= 7 && i < 7 + n ? (float)(i - 2) * 3 + (float)(n > 20 ? added : 0) : 0,
                     "n = %d, element %d is %g", (int)n, (int)i, back[i]);
    tec_array_free(x);
    tec_array_free(y);
}

static void call_scale(tec_function *f, tec_device *d, int64_t n)
{
    call_scale_times(f, d, n, 1);
}

/* `add` runs n - 30 times, in a loop around which another one is done twice. */
static const rt_loop_desc twice[] = {{0, 2, CONST(5), CONST(2)},
                                     {1, 2, CONST(1), WORDS(RT_DIM_SYMBOL, 0, RT_DIM_CONST, 30, RT_DIM_SUB)}};

Test(device, runs_launches_in_loops)
{
    tec_error err = {0};
    description desc;
    tec_device *d = open_device(&err);

    describe(&desc);
    desc.f.loops = twice;
    desc.f.n_loops = 2;
    tec_module *m = open_module(&desc, &err);
    tec_function *f = tec_function_new(m, NULL, &(tec_run_options){.device = d}, &err);

    cr_assert(f, "%s", err.text);
    call_scale_times(f, d, 33, 3); /* `scale` begins anew in each of the two */
    call_scale_times(f, d, 29, 0);
    tec_function_free(f);
    tec_module_free(m);
    tec_device_free(d);
}

Test(device, runs_lists_of_launches_of_any_size)
{
    tec_error err = {0};
    description desc;
    tec_device *d = open_device(&err);

    describe(&desc);
    tec_module *m = open_module(&desc, &err);
    tec_function *f = tec_function_new(m, NULL, &(tec_run_options){.device = d}, &err);

    cr_assert(f, "%s", err.text);
    for (int64_t n = 0; n < 190; n += n < 40 ? 1 : 37)
        call_scale(f, d, n);
    tec_function_free(f);
    tec_module_free(m);
    tec_device_free(d);
}

static void refuses(const description *d, const char *says)
{
    tec_error err = {0};

    cr_assert_null(open_module(d, &err));
    ASSERT_SAYS(err, says);
}

/* Up to 50 another function runs, which launches `scale` alone: nothing is added there. */
Test(device, runs_the_launches_of_the_range)
{
    tec_error err = {0};
    description desc;
    tec_device *d = open_device(&err);

    describe(&desc);
    rt_function_desc two[] = {desc.f, desc.f};
    two[0].ranges = (const rt_range_desc[]){{50, 1}};
    two[0].n_ranges = 1;
    two[1].name = "scale (n <= 50)";
    two[1].n_launches = 1;
    two[1].workspace = (rt_dim){0};
    desc.m.functions = two;
    desc.m.n_functions = 2;
    tec_module *m = open_module(&desc, &err);
    tec_function *f = tec_function_new(m, NULL, &(tec_run_options){.device = d}, &err);

    cr_assert(f, "%s", err.text);
    call_scale_times(f, d, 33, 0);
    call_scale_times(f, d, 51, 1);
    call_scale_times(f, d, 50, 0);
    call_scale_times(f, d, 190, 1);
    tec_function_free(f);
    tec_module_free(m);
    tec_device_free(d);
    /* A range on another kind of device, or on the host. */
    two[1].device = NULL;
    two[1].symbol = "f";
    two[1].n_launches = 0;
    desc.m.arch = "x86_64";
    refuses(&desc,
            "function 'scale': range 0 calls 'scale (n <= 50)', which takes other arguments, runs elsewhere "
            "or has ranges");
}

Test(device, names_the_argument_that_lies_elsewhere)
{
    tec_error err = {0}, where = {0}, scalar_where = {0}, align = {0}, overlap = {0};
    description desc;
    tec_device *d = open_device(&err);
    float data[8] = {0}, factor = 2;
    int64_t shape[] = {8};
    DLTensor host = tensor_of(data, 1, shape), scalar = tensor_of(&factor, 0, NULL), odd, one;

    describe(&desc);
    tec_module *m = open_module(&desc, &err);
    tec_function *f = tec_function_new(m, "scale", NULL, &err);
    tec_array *a = tec_array_new_on(d, host.dtype, 1, shape, &err),
              *b = tec_array_new_on(d, host.dtype, 1, shape, &err),
              *c = tec_array_new_on(d, host.dtype, 0, NULL, &err);
    DLTensor x = *tec_array_tensor(a), y = *tec_array_tensor(b);

    cr_assert_not(tec_function_call(f, (DLTensor *[]){&host, &scalar, &y}, 3, &where));
    ASSERT_SAYS(where, "scale: argument 'x': expected a tensor on opencl:0, found one on cpu");
    one = *tec_array_tensor(c);
    cr_assert_not(tec_function_call(f, (DLTensor *[]){&x, &one, &y}, 3, &scalar_where));
    ASSERT_SAYS(scalar_where,
                "scale: argument 'factor': expected a tensor in main memory, found one on opencl:0");
    odd = x;
    odd.byte_offset = 2;
    cr_assert_not(tec_function_call(f, (DLTensor *[]){&odd, &scalar, &y}, 3, &align));
    ASSERT_SAYS(align, "scale: argument 'x': expected a byte offset that is a multiple of 4, found 2");
    cr_assert_not(tec_function_call(f, (DLTensor *[]){&x, &scalar, &x}, 3, &overlap));
    ASSERT_SAYS(overlap, "arguments 'x' and 'y' overlap in memory");
    tec_array_free(a);
    tec_array_free(b);
    tec_array_free(c);
    tec_function_free(f);
    tec_module_free(m);
    tec_device_free(d);
}

/* What making the function says of a changed description. */
static tec_error refused_function(const description *desc, const char *device)
{
    tec_error err = {0};
    tec_device *d = tec_device_open(device, &err);
    tec_module *m = open_module(desc, &err);

    cr_assert(m && d, "%s", err.text);
    cr_assert_null(tec_function_new(m, NULL, &(tec_run_options){.device = d}, &err));
    tec_module_free(m);
    tec_device_free(d);
    return err;
}

Test(device, refuses_what_the_device_cannot_do)
{
    description d;
    tec_error err;

    describe(&d);
    d.launches[0].block[0] = 1 << 16;
    err = refused_function(&d, "opencl");
    ASSERT_SAYS(err, "scale: kernel 'scale' has 65536 threads in a block; opencl:0 takes at most");
    describe(&d);
    d.launches[1].shared_bytes = 1ll << 40;
    err = refused_function(&d, "opencl");
    ASSERT_SAYS(err, "scale: kernel 'add' uses 1099511627776 bytes of shared memory; opencl:0 has");
    describe(&d);
    err = refused_function(&d, "cpu");
    ASSERT_SAYS(err, "scale: is code for opencl, and cannot run on cpu:0");
    describe(&d);
    d.code[0].bytes = "__kernel void scale(int a) { undeclared = a; }";
    d.code[0].size = strlen(d.code[0].bytes);
    err = refused_function(&d, "opencl");
    ASSERT_SAYS(err, "opencl:0: cannot build the module's code: CL_BUILD_PROGRAM_FAILURE: ");
    ASSERT_SAYS(err, "undeclared");
}

/* ---- module files ---- */

Test(device, code_goes_through_a_file)
{
    char path[] = "/tmp/tec-device-XXXXXX";
    int fd = mkstemp(path);
    tec_error err = {0};
    description desc;

    close(fd);
    describe(&desc);
    cr_assert(rt_module_write(&desc.m, "", 0, path, 0, &err), "%s", err.text);
    tec_module *m = tec_module_open(path, NULL, &err);
    cr_assert(m, "%s", err.text);
    const rt_module_desc *back = rt_module_describe(m);
    cr_assert_eq(back->n_codes, 1);
    cr_assert(back->codes[0].size == sizeof program - 1 &&
              memcmp(back->codes[0].bytes, program, sizeof program - 1) == 0);
    cr_assert_eq(back->functions[0].n_launches, 2);
    cr_assert_str_eq(back->functions[0].launches[1].kernel, "add");
    tec_device *d = open_device(&err);
    tec_function *f = tec_function_new(m, NULL, NULL, &err);
    cr_assert(f, "%s", err.text);
    call_scale(f, d, 33);
    tec_function_free(f);
    tec_module_free(m);
    tec_device_free(d);
    unlink(path);
}

#define CHANGED(says, ...)                                                                                   \
    do {                                                                                                     \
        describe(&d);                                                                                        \
        __VA_ARGS__;                                                                                         \
        refuses(&d, says);                                                                                   \
    } while (0)

/* Of several pieces the first that fits serves; where none does, the message has all of them. */
Test(device, takes_the_piece_that_fits)
{
    tec_error err = {0};
    tec_device *d = open_device(&err);
    const tec_run_options options = {.device = d};
    description desc;

    describe(&desc);
    desc.m.n_codes = 2;
    desc.code[0].format = RT_CODE_CUBIN;
    tec_module *module = open_module(&desc, &err);
    tec_function *f = tec_function_new(module, NULL, &options, &err);
    cr_assert(f, "%s", err.text);
    tec_function_free(f);
    tec_module_free(module);
    desc.code[0].target = "opencl -device=first";
    desc.code[1].format = RT_CODE_CUBIN;
    module = open_module(&desc, &err);
    cr_assert_null(tec_function_new(module, NULL, &options, &err));
    ASSERT_SAYS(err, "opencl:0: the kernel 'scale' was made for 'opencl -device=first' and 'opencl "
                     "-device=mali', which this device is not: ");
    ASSERT_SAYS(err, d->info.hardware);
    tec_module_free(module);
    tec_device_free(d);
}

static const rt_arg_desc beyond[] = {
    {.index = 3}, {RT_ARG_WORKSPACE, 0, CONST(64)}, {RT_ARG_SIZE, 0, SYMBOL(0)}};
static const rt_arg_desc swapped[] = {
    {RT_ARG_SIZE, 0, SYMBOL(0)}, {RT_ARG_WORKSPACE, 0, CONST(64)}, {.index = 2}};
static const rt_arg_desc odd[] = {
    {.kind = (rt_arg_kind)9}, {RT_ARG_WORKSPACE, 0, CONST(64)}, {RT_ARG_SIZE, 0, SYMBOL(0)}};
static const rt_dim wide[] = {SYMBOL(4), CONST(1), CONST(1)};
static const rt_kernel_desc long_arg[] = {{"scale", (const int32_t[]){0, 0, 4, 16}, 4}},
                            nameless[] = {{NULL, NULL, 0}},
                            one_arg[] = {{"scale", (const int32_t[]){0}, 1},
                                         {"add", (const int32_t[]){0, 0, 8}, 3}},
                            four_bytes[] = {{"scale", (const int32_t[]){0, 0, 4, 4}, 4},
                                            {"add", (const int32_t[]){0, 0, 8}, 3}};

static const rt_loop_desc too_far[] = {{0, 3, CONST(0), CONST(1)}}, empty[] = {{1, 1, CONST(0), CONST(1)}},
                          crossing[] = {{1, 2, CONST(0), CONST(1)}, {0, 2, CONST(0), CONST(1)}},
                          unbound[] = {{0, 1, CONST(0), SYMBOL(1)}};

Test(device, holds_launches_against_the_code)
{
    description d;

    CHANGED("function 'scale': launches kernel 'mul', which no code for 'opencl' has",
            d.launches[0].kernel = "mul");
    CHANGED("function 'scale': launches 'scale' with 0 threads along an axis", d.launches[0].block[1] = 0);
    CHANGED("function 'scale': launches 'scale' with -1 bytes of shared memory",
            d.launches[0].shared_bytes = -1);
    CHANGED("function 'scale': gives kernel 'add' 2 arguments; expected 3", d.launches[1].n_args = 2);
    CHANGED("function 'scale': argument 0 of kernel 'add' is not what that takes",
            d.launches[1].args = beyond);
    CHANGED("function 'scale': argument 0 of kernel 'add' is not what that takes",
            d.launches[1].args = swapped);
    CHANGED("function 'scale': argument 0 of kernel 'add' is not what that takes", d.launches[1].args = odd);
    CHANGED("function 'scale': the grid of a launch: ", d.launches[0].grid = wide);
    CHANGED("function 'scale': a loop around launches 0 to 2 of 2", d.f.loops = too_far, d.f.n_loops = 1);
    CHANGED("function 'scale': a loop around launches 1 to 0 of 2", d.f.loops = empty, d.f.n_loops = 1);
    CHANGED("function 'scale': loops 0 and 1 around launches overlap", d.f.loops = crossing, d.f.n_loops = 2);
    CHANGED("function 'scale': the extent of a loop around launches: ", d.f.loops = unbound, d.f.n_loops = 1);
    CHANGED("function 'scale': launches kernels, but names no device", d.f.device = NULL, d.f.symbol = "f",
            d.m.arch = "x86_64");
    CHANGED("function 'scale': is for a device without a name, or has host code as well", d.f.symbol = "f");
    CHANGED("device code 'opencl': names no target or no device", d.code[0].target = NULL);
    CHANGED("device code 'opencl': is of unknown format 77", d.code[0].format = (rt_code_format)77);
    CHANGED("device code 'opencl': is empty", d.code[0].size = 0);
    CHANGED("device code 'opencl': argument 3 of kernel 'scale' has 16 bytes; expected 0 to 8",
            d.code[0].kernels = long_arg, d.code[0].n_kernels = 1);
    CHANGED("device code 'opencl': a kernel has no name", d.code[0].kernels = nameless,
            d.code[0].n_kernels = 1);
    /* What the first piece has right does not excuse the second one. */
    CHANGED("function 'scale': gives kernel 'scale' 4 arguments; expected 1", d.code[1].kernels = one_arg,
            d.m.n_codes = 2);
    CHANGED("function 'scale': argument 3 of kernel 'scale' is not what that takes",
            d.code[1].kernels = four_bytes, d.m.n_codes = 2);
    CHANGED("device code 'opencl': is there twice for 'opencl'", d.code[1].target = "opencl",
            d.m.n_codes = 2);
    CHANGED("device code 'opencl': is empty", d.code[1].bytes = NULL, d.m.n_codes = 2);
}

Test(device, damaged_code_is_refused)
{
    tec_error err = {0};
    description desc;
    rt_bytes bytes = {0};
    unsigned kept = 0;

    describe(&desc);
    cr_assert(rt_module_encode(&desc.m, RT_SECTION_CODE, &bytes, &err), "%s", err.text);
    /* Whatever byte is changed, the decoder ends, inside its bytes; the sanitizers watch. */
    for (size_t i = 0; i < bytes.n; i++) {
        rt_module_desc out = {0};
        rt_arena arena = {0};

        bytes.data[i] ^= 0x55;
        kept += rt_module_decode(&out, RT_SECTION_CODE, bytes.data, bytes.n, &arena, NULL);
        rt_arena_free(&arena);
        bytes.data[i] ^= 0x55;
    }
    cr_assert(kept > 0 && kept < bytes.n);
    rt_bytes_free(&bytes);
}

/* ---- a queue of the caller's ---- */

/* A context and a queue as another library makes them, on the device that opencl:0 is. */
typedef struct {
    const rt_opencl *cl;
    void *id, *context, *queue;
} others;

static others open_others(uint64_t properties)
{
    tec_error err = {0};
    others o = {.cl = rt_opencl_driver(&err)};
    tec_device *d = open_device(&err);
    int32_t status = 0;

    cr_assert_eq(o.cl->GetContextInfo(tec_device_context(d), RT_CL_CONTEXT_DEVICES, sizeof o.id, &o.id, NULL),
                 0);
    tec_device_free(d);
    o.context = o.cl->CreateContext(NULL, 1, &o.id, NULL, NULL, &status);
    cr_assert(o.context, "%d", (int)status);
    o.queue = o.cl->CreateCommandQueue(o.context, o.id, properties, &status);
    cr_assert(o.queue, "%d", (int)status);
    return o;
}

static void close_others(others *o)
{
    o->cl->ReleaseCommandQueue(o->queue);
    o->cl->ReleaseContext(o->context);
}

static tec_function *open_scale(tec_device *device, void *queue, tec_error *err)
{
    description d;
    tec_module *m;
    tec_function *f;

    describe(&d);
    m = open_module(&d, err);
    f = tec_function_new(m, NULL, &(tec_run_options){.device = device, .stream = queue}, err);
    tec_module_free(m); /* the function keeps it */
    return f;
}

/* Buffers of the caller's, filled and read in the caller's queue, with launches between that nobody waited
 * for. Twice, with and without growing workspace. */
Test(device, puts_launches_between_the_callers_work)
{
    tec_error err = {0};
    others o = open_others(0);
    tec_device *d = tec_device_open_in("opencl", o.context, &err);
    tec_function *f = open_scale(d, o.queue, &err);
    const float three = 3;
    float factor = 2, out[4096];

    cr_assert(d && f, "%s", err.text);
    cr_assert_eq(tec_device_context(d), o.context);
    for (int64_t n = 16; n <= BASE_COUNT(out); n *= 256) {
        size_t bytes = (size_t)n * sizeof *out;
        int32_t status;
        void *x = o.cl->CreateBuffer(o.context, RT_CL_MEM_READ_WRITE, bytes, NULL, &status);
        void *y = o.cl->CreateBuffer(o.context, RT_CL_MEM_READ_WRITE, bytes, NULL, &status);
        DLTensor tx = {.data = x, .device = {kDLOpenCL, 0}, .ndim = 1, .dtype = F32, .shape = &n}, ty = tx;
        DLTensor tf = {.data = &factor, .device = {kDLCPU, 0}, .dtype = F32};

        ty.data = y;
        o.cl->EnqueueFillBuffer(o.queue, x, &three, sizeof three, 0, bytes, 0, NULL, NULL);
        cr_assert(tec_function_call_async(f, (DLTensor *[]){&tx, &tf, &ty}, 3, &err), "%s", err.text);
        o.cl->EnqueueReadBuffer(o.queue, y, 1, 0, bytes, out, 0, NULL, NULL);
        for (int64_t i = 0; i < n; i++)
            cr_assert_eq(out[i], n > 20 ? 7 : 6, "%f at %d", out[i], (int)i);
        o.cl->ReleaseMemObject(x);
        o.cl->ReleaseMemObject(y);
    }
    tec_function_free(f);
    tec_device_free(d);
    close_others(&o);
}

Test(device, refuses_queues_that_cannot_order_its_work)
{
    tec_error err = {0};
    others o = open_others(0), loose = open_others(RT_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    tec_device *d = open_device(&err);

    cr_assert_null(open_scale(d, o.queue, &err));
    ASSERT_SAYS(err, "opencl:0: the caller's queue is of another context than the device's");
    err = (tec_error){0};
    cr_assert_null(tec_device_open_in("opencl", o.context, &err));
    ASSERT_SAYS(err, "opencl:0: is open in another context");
    tec_device_free(d);

    err = (tec_error){0};
    d = tec_device_open_in("opencl:0", loose.context, &err);
    cr_assert(d, "%s", err.text);
    cr_assert_null(open_scale(d, loose.queue, &err));
    ASSERT_SAYS(err, "opencl:0: the caller's queue does not run its commands in order");
    tec_device_free(d);

    err = (tec_error){0};
    d = tec_device_open("cpu", &err);
    cr_assert_null(tec_device_context(d));
    cr_assert_null(open_scale(d, &err, &err));
    ASSERT_SAYS(err, "cpu:0: has no streams, but the options name one");
    tec_device_free(d);
    err = (tec_error){0};
    cr_assert_null(tec_device_open_in("cpu", &err, &err));
    ASSERT_SAYS(err, "cpu:0: has no contexts, but the caller gave one");
    close_others(&o);
    close_others(&loose);
}

/* ---- two threads ---- */

typedef struct {
    tec_module *module;
    tec_device *device;
    float factor;
} worker;

/* Opens and closes functions, and compares what they give; each waits until a deadline that is far. */
static void *call_often(void *user)
{
    const worker *w = user;

    for (int i = 0; i < 50; i++) {
        tec_error err = {0};
        int64_t n = 1000 + i;
        tec_array *x = tec_array_new_on(w->device, (DLDataType)F32, 1, &n, &err);
        tec_array *y = tec_array_new_on(w->device, (DLDataType)F32, 1, &n, &err);
        tec_function *f = tec_function_new(w->module, NULL, &(tec_run_options){.deadline = 100}, &err);
        float in[1050], out[1050], factor = w->factor + (float)i;
        DLTensor host = {.data = in, .device = {kDLCPU, 0}, .ndim = 1, .dtype = F32, .shape = &n};
        DLTensor tf = {.data = &factor, .device = {kDLCPU, 0}, .dtype = F32};

        for (int64_t k = 0; k < n; k++)
            in[k] = (float)k;
        cr_assert(x && y && f && tec_tensor_copy(tec_array_tensor(x), &host, &err), "%s", err.text);
        cr_assert(tec_function_call(f,
                                    (DLTensor *[]){(DLTensor *)(uintptr_t)tec_array_tensor(x), &tf,
                                                   (DLTensor *)(uintptr_t)tec_array_tensor(y)},
                                    3, &err),
                  "%s", err.text);
        host.data = out;
        cr_assert(tec_tensor_copy(&host, tec_array_tensor(y), &err), "%s", err.text);
        for (int64_t k = 0; k < n; k++)
            cr_assert_eq(out[k], (float)k * factor + 1);
        tec_function_free(f);
        tec_array_free(x);
        tec_array_free(y);
    }
    return NULL;
}

Test(device, functions_of_two_threads_share_a_device, .timeout = 120)
{
    tec_error err = {0};
    tec_device *device = open_device(&err);
    description d;
    worker w[2];
    pthread_t thread[2];

    describe(&d);
    tec_module *m = open_module(&d, &err);
    cr_assert(m, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        w[i] = (worker){m, device, (float)(100 * i)};
        pthread_create(&thread[i], NULL, call_often, &w[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    tec_module_free(m);
    tec_device_free(device);
}
