#include "tests/runtime/kit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "tec/runtime.h"

enum { MAX_ROWS = 64 };

typedef struct {
    tec_module *module;
    tec_executor *ex;
    tec_error err;
    float x[MAX_ROWS * 8];
    int64_t shape[2];
    DLTensor input;
} net;

static void open_net(net *t, const tec_run_options *options)
{
    *t = (net){.module = kit_open(), .shape = {0, 8}};
    t->ex = tec_executor_new(t->module, NULL, options, &t->err);
    cr_assert(t->ex, "%s", t->err.text);
    kit_fill(t->x, MAX_ROWS);
    t->input = tensor_of(t->x, 2, t->shape);
}

static void close_net(net *t)
{
    tec_executor_free(t->ex);
    tec_module_free(t->module);
}

static void run_rows(net *t, int64_t rows)
{
    t->shape[0] = rows;
    cr_assert(tec_executor_set_input(t->ex, 0, &t->input, &t->err), "%s", t->err.text);
    cr_assert(tec_executor_run(t->ex, &t->err), "%s", t->err.text);
}

static int64_t seen[8];
static int n_seen;

static int32_t see_turn(const tec_env *env, void *const *args, const int64_t *dims)
{
    seen[n_seen++] = env->turn;
    return kernel_relu(env, args, dims);
}

static tec_kernel_fn *resolve_seen(void *user, const char *symbol)
{
    return strcmp(symbol, "kernel_relu") == 0 ? see_turn : kit_resolve(user, symbol);
}

Test(executor, counts_the_calls_of_each_kernel)
{
    rt_module_desc desc = kit_module();
    net t = {.shape = {0, 8}};

    t.module = rt_module_from_memory(&desc, &(rt_memory_code){.resolve = resolve_seen}, 0, &t.err);
    t.ex = tec_executor_new(t.module, NULL, NULL, &t.err);
    cr_assert(t.ex, "%s", t.err.text);
    t.input = tensor_of(t.x, 2, t.shape);
    for (int i = 0; i < 3; i++)
        run_rows(&t, 1);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(seen[i], i);
    close_net(&t);
}

Test(executor, runs_a_graph_at_changing_shapes)
{
    const int64_t rows[] = {5, 1, 64, 64, 3, 17};
    net t;

    open_net(&t, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const DLTensor *flat;

        run_rows(&t, rows[i]);
        kit_check(tec_executor_output(t.ex, 0), rows[i]);
        flat = tec_executor_output(t.ex, 1);
        cr_assert_eq(flat->shape[0], 4 * rows[i]);
        cr_assert(memcmp(flat->data, tec_executor_output(t.ex, 0)->data, (size_t)(rows[i] * 16)) == 0);
    }
    cr_assert_eq(tec_executor_pool_bytes(t.ex), 64 * 16);
    close_net(&t);
}

Test(executor, tells_about_inputs_and_outputs)
{
    tec_tensor_info info;
    net t;

    open_net(&t, NULL);
    cr_assert_eq(tec_executor_n_inputs(t.ex), 1);
    cr_assert_eq(tec_executor_n_outputs(t.ex), 2);
    cr_assert_str_eq(tec_executor_input_name(t.ex, 0), "x");
    cr_assert_eq(tec_executor_find_output(t.ex, "flat"), 1);
    cr_assert_eq(tec_executor_find_input(t.ex, "z"), -1);
    cr_assert(tec_executor_output_info(t.ex, 1, &info, NULL));
    cr_assert_str_eq(info.text, "f32[n*4]");
    cr_assert_eq(info.shape[0], -1);
    cr_assert(tec_executor_input_info(t.ex, 0, &info, NULL));
    cr_assert_str_eq(info.text, "f32[n, 8]");
    cr_assert_eq(info.shape[1], 8);
    cr_assert(!tec_executor_input_info(t.ex, 1, &info, &t.err));
    cr_assert_str_eq(t.err.text, "input 1 of 1");
    cr_assert_null(tec_executor_output(t.ex, 0));
    close_net(&t);
}

Test(executor, refuses_inputs_that_do_not_fit)
{
    tec_error err = {0}, other = {0}, third = {0};
    net t;

    open_net(&t, NULL);
    cr_assert(!tec_executor_run(t.ex, &t.err));
    cr_assert_str_eq(t.err.text, "input 'x' has not been set");
    t.shape[0] = 4;
    t.shape[1] = 7;
    cr_assert(tec_executor_set_input(t.ex, 0, &t.input, NULL));
    cr_assert(!tec_executor_run(t.ex, &err));
    cr_assert_str_eq(err.text, "input 'x': expected f32[n, 8] where n = 4, found f32[4, 7]");
    t.input.dtype = BASE_I32;
    cr_assert(!tec_executor_set_input(t.ex, 0, &t.input, &other));
    cr_assert_str_eq(other.text, "input 'x': expected f32[n, 8], found i32[4, 7]");
    t.input.dtype = BASE_F32;
    t.shape[0] = 8;
    t.shape[1] = 8;
    t.input.data = NULL;
    cr_assert(!tec_executor_set_input(t.ex, 0, &t.input, &third));
    cr_assert_str_eq(third.text, "input 'x': has no data");
    t.input.data = t.x;
    run_rows(&t, 4);
    kit_check(tec_executor_output(t.ex, 0), 4);
    close_net(&t);
}

Test(executor, quotes_a_condition_of_the_graph_that_does_not_hold)
{
    float *x = calloc(1001 * 8, sizeof *x);
    int64_t shape[] = {1001, 8};
    DLTensor input = tensor_of(x, 2, shape);
    net t;

    open_net(&t, NULL);
    cr_assert(tec_executor_set_input(t.ex, 0, &input, NULL));
    cr_assert(!tec_executor_run(t.ex, &t.err));
    cr_assert_str_eq(t.err.text, "net: needs n <= 1000, which does not hold where n = 1001");
    close_net(&t);
    free(x);
}

Test(executor, reads_and_writes_the_callers_bytes_where_bound)
{
    _Alignas(64) float y[MAX_ROWS * 4], other[MAX_ROWS * 4];
    int64_t y_shape[] = {6, 4};
    DLTensor output = tensor_of(y, 2, y_shape);
    net t;

    open_net(&t, NULL);
    t.shape[0] = 6;
    cr_assert(tec_executor_bind_input(t.ex, 0, &t.input, &t.err), "%s", t.err.text);
    cr_assert(tec_executor_bind_output(t.ex, 0, &output, &t.err), "%s", t.err.text);
    cr_assert(tec_executor_run(t.ex, &t.err), "%s", t.err.text);
    kit_check(&output, 6);
    cr_assert_eq(tec_executor_output(t.ex, 0)->data, (void *)y);

    for (int i = 0; i < 6 * 8; i++)
        t.x[i] = -t.x[i];
    output.data = other;
    cr_assert(tec_executor_bind_output(t.ex, 0, &output, &t.err));
    cr_assert(tec_executor_run(t.ex, &t.err), "%s", t.err.text);
    cr_assert(memcmp(y, other, 6 * 16) != 0);

    cr_assert(tec_executor_bind_output(t.ex, 0, NULL, &t.err));
    cr_assert(tec_executor_run(t.ex, &t.err), "%s", t.err.text);
    cr_assert_neq(tec_executor_output(t.ex, 0)->data, (void *)other);
    cr_assert(memcmp(tec_executor_output(t.ex, 0)->data, other, 6 * 16) == 0);
    close_net(&t);
}

Test(executor, an_input_that_is_no_longer_bound_must_be_set)
{
    net t;

    open_net(&t, NULL);
    t.shape[0] = 6;
    cr_assert(tec_executor_bind_input(t.ex, 0, &t.input, NULL));
    cr_assert(tec_executor_run(t.ex, NULL));
    cr_assert(tec_executor_bind_input(t.ex, 0, NULL, NULL));
    cr_assert(!tec_executor_run(t.ex, &t.err));
    cr_assert_str_eq(t.err.text, "input 'x' has not been set");
    close_net(&t);
}

Test(executor, refuses_bindings_that_do_not_fit)
{
    _Alignas(64) float y[MAX_ROWS * 4];
    int64_t y_shape[] = {7, 4}, strides[] = {1, 8};
    DLTensor output = tensor_of(y, 2, y_shape), input;
    tec_error err[4] = {0};
    net t;

    open_net(&t, NULL);
    t.shape[0] = 6;
    input = t.input;
    input.strides = strides;
    cr_assert(!tec_executor_bind_input(t.ex, 0, &input, &err[0]));
    cr_assert_str_eq(err[0].text, "input 'x': expected compact row-major strides, found others");
    input = t.input;
    input.byte_offset = 1;
    cr_assert(!tec_executor_bind_input(t.ex, 0, &input, &err[1]));
    ASSERT_SAYS(err[1], "input 'x': expected an address that is a multiple of 4, found");
    cr_assert(tec_executor_bind_input(t.ex, 0, &t.input, NULL));
    cr_assert(tec_executor_bind_output(t.ex, 0, &output, NULL));
    cr_assert(!tec_executor_run(t.ex, &err[2]));
    cr_assert_str_eq(err[2].text, "output 'y': expected f32[n, 4] where n = 6, found f32[7, 4]");
    y_shape[0] = 6;
    output.data = t.x + 8;
    cr_assert(tec_executor_bind_output(t.ex, 0, &output, NULL));
    cr_assert(!tec_executor_run(t.ex, &err[3]));
    cr_assert_str_eq(err[3].text, "output 'y' overlaps input 'x' in memory");
    close_net(&t);
}

Test(executor, measures_each_step_when_asked)
{
    tec_run_options options = {.profile = true};
    tec_profile_row row;
    double share = 0;
    net t;

    open_net(&t, &options);
    for (int i = 0; i < 300; i++)
        run_rows(&t, 64);
    cr_assert_eq(tec_executor_n_steps(t.ex), 3);
    for (int i = 0; i < 3; i++) {
        cr_assert(tec_executor_profile(t.ex, i, &row));
        cr_assert_eq(row.calls, 300);
        cr_assert(row.min_s > 0 && row.min_s <= row.median_s * 1.0001 &&
                  row.total_s >= 300 * row.min_s * 0.9999);
        share += row.share;
    }
    cr_assert(fabs(share - 1) < 1e-9);
    cr_assert(tec_executor_profile(t.ex, 0, &row));
    cr_assert_str_eq(row.name, "MatMul");
    cr_assert_str_eq(row.nodes, "fc1");
    cr_assert_str_eq(row.function, "matmul");
    cr_assert_str_eq(row.origin, "default");
    cr_assert(fabs(row.gflops * row.median_s * 1e9 - 2 * 64 * 8 * 4) < 1e-3);
    tec_executor_profile_reset(t.ex);
    cr_assert(tec_executor_profile(t.ex, 0, &row) && row.calls == 0 && row.median_s == 0);
    cr_assert(!tec_executor_profile(t.ex, 3, &row));
    close_net(&t);
}

Test(executor, keeps_what_each_step_wrote_when_asked)
{
    tec_run_options options = {.keep = true};
    tec_kept kept;
    net t;

    open_net(&t, &options);
    run_rows(&t, 5);
    run_rows(&t, 9);
    cr_assert_eq(tec_executor_n_kept(t.ex), 3);
    cr_assert(tec_executor_kept(t.ex, 0, &kept));
    cr_assert_str_eq(kept.name, "MatMul");
    cr_assert_str_eq(kept.param, "c");
    cr_assert_eq(kept.tensor->shape[0], 9);
    bool negative = false;
    for (int i = 0; i < 9 * 4; i++)
        negative = negative || ((float *)kept.tensor->data)[i] < 0;
    cr_assert(negative, "the product before relu has negative elements");
    cr_assert(tec_executor_kept(t.ex, 1, &kept));
    kit_check(kept.tensor, 9);
    close_net(&t);
}

Test(executor, names_the_step_that_writes_a_nan)
{
    tec_run_options options = {.check_nan = true};
    net t;

    open_net(&t, &options);
    run_rows(&t, 5);
    t.x[2 * 8] = NAN;
    cr_assert(tec_executor_set_input(t.ex, 0, &t.input, &t.err));
    cr_assert(!tec_executor_run(t.ex, &t.err));
    cr_assert_str_eq(t.err.text, "step 0 'MatMul' (fc1): wrote a NaN at element 8 of 'c'");
    close_net(&t);
}

/* A graph that copies its input, of one dtype, to its output. */
static tec_module *open_copier(base_dtype dtype)
{
    const rt_dim shape[] = {SYMBOL(0)};
    rt_tensor_desc in = {"x", dtype, 1, shape}, out = {"y", dtype, 1, shape};
    rt_value_desc values[] = {{dtype, 1, shape, RT_IN_INPUT, 0, {0}, 0},
                              {dtype, 1, shape, RT_IN_OUTPUT, 0, {0}, 0}};
    rt_step_desc step = {
        .function = RT_STEP_COPY, .values = (const int32_t[]){0, 1}, .n_values = 2, .name = "Identity"};
    rt_graph_desc g = {.name = "copier",
                       .symbols = (const rt_symbol_desc[]){{"n", 0, 0}},
                       .n_symbols = 1,
                       .inputs = &in,
                       .n_inputs = 1,
                       .outputs = &out,
                       .n_outputs = 1,
                       .values = values,
                       .n_values = 2,
                       .steps = &step,
                       .n_steps = 1};
    rt_module_desc m = {.graphs = &g, .n_graphs = 1};
    tec_error err = {0};
    tec_module *module = rt_module_from_memory(&m, NULL, 0, &err);

    cr_assert(module, "%s", err.text);
    return module;
}

/* The error of copying three elements, the second of these bits. */
static tec_error copy_with(base_dtype dtype, uint64_t bits)
{
    tec_run_options options = {.check_nan = true};
    tec_module *m = open_copier(dtype);
    tec_executor *ex = tec_executor_new(m, NULL, &options, NULL);
    uint8_t data[3 * 8] = {0};
    int64_t shape[] = {3};
    DLTensor x = tensor_of(data, 1, shape);
    tec_error err = {0};

    x.dtype = dtype;
    memcpy(data + dtype.bits / 8, &bits, dtype.bits / 8);
    if (tec_executor_set_input(ex, 0, &x, &err))
        tec_executor_run(ex, &err);
    tec_executor_free(ex);
    tec_module_free(m);
    return err;
}

Test(executor, knows_the_nans_of_every_float)
{
    const struct {
        base_dtype dtype;
        uint64_t infinity, nan;
    } floats[] = {{BASE_F16, 0xfc00, 0xfc01},
                  {BASE_BF16, 0x7f80, 0x7f81},
                  {BASE_F32, 0xff800000, 0x7fc00000},
                  {BASE_F64, 0x7ff0000000000000, 0xfff0000000000001}};

    for (int i = 0; i < BASE_COUNT(floats); i++) {
        tec_error err = copy_with(floats[i].dtype, floats[i].infinity);

        cr_assert_eq(err.status, TEC_OK, "%s", err.text);
        err = copy_with(floats[i].dtype, floats[i].nan);
        cr_assert_str_eq(err.text, "step 0 'Identity': wrote a NaN at element 1 of 'copy'");
    }
    cr_assert_eq(copy_with(BASE_I32, 0x7fc00000).status, TEC_OK);
}

Test(executor, is_found_by_the_name_of_its_graph)
{
    tec_module *m = kit_open();
    tec_error err = {0}, other = {0};
    rt_module_desc none = {0};

    cr_assert_null(tec_executor_new(m, "decoder", NULL, &err));
    cr_assert_str_eq(err.text, "module in memory: has no graph 'decoder'");
    tec_module_free(m);
    m = rt_module_from_memory(&none, NULL, 0, NULL);
    cr_assert_null(tec_executor_new(m, NULL, NULL, &other));
    cr_assert_str_eq(other.text, "module in memory: has 0 graphs; expected the name of one");
    tec_module_free(m);
}

/* relu on a pool of three threads, limited to two: the kernel may count on no more workers than it was
 * told. */
Test(executor, uses_no_more_threads_than_it_may)
{
    tec_pool *pool = tec_pool_new(3, NULL);
    tec_run_options options = {.pool = pool, .threads = 2};
    net t;

    open_net(&t, &options);
    for (int i = 0; i < 200; i++)
        run_rows(&t, 64);
    kit_check(tec_executor_output(t.ex, 0), 64);
    close_net(&t);
    tec_pool_free(pool);
}

Test(executor, refuses_outputs_that_overlap)
{
    _Alignas(64) float y[MAX_ROWS * 4];
    int64_t y_shape[] = {6, 4}, flat_shape[] = {24};
    DLTensor a = tensor_of(y, 2, y_shape), b = tensor_of(y + 16, 1, flat_shape);
    net t;

    open_net(&t, NULL);
    t.shape[0] = 6;
    cr_assert(tec_executor_set_input(t.ex, 0, &t.input, NULL));
    cr_assert(tec_executor_bind_output(t.ex, 0, &a, NULL) && tec_executor_bind_output(t.ex, 1, &b, NULL));
    cr_assert(!tec_executor_run(t.ex, &t.err));
    cr_assert_str_eq(t.err.text, "output 'y' overlaps output 'flat' in memory");
    b.data = y + 24;
    cr_assert(tec_executor_bind_output(t.ex, 1, &b, NULL));
    cr_assert(tec_executor_run(t.ex, NULL));
    kit_check(&a, 6);
    cr_assert(memcmp(y, y + 24, 24 * sizeof *y) == 0);
    close_net(&t);
}

static void *run_often(void *user)
{
    net *t = user;

    for (int i = 0; i < 300; i++) {
        int64_t rows = 1 + i / 50;

        t->shape[0] = rows;
        if (!tec_executor_set_input(t->ex, 0, &t->input, &t->err) || !tec_executor_run(t->ex, &t->err))
            return t->err.text;
        for (int64_t k = 0; k < rows * 4; k++)
            if (((float *)tec_executor_output(t->ex, 0)->data)[k] != kit_expected(k / 4, k % 4))
                return "a wrong result";
    }
    return NULL;
}

Test(executor, two_share_a_module_and_a_pool_from_two_threads)
{
    tec_pool *pool = tec_pool_new(3, NULL);
    tec_run_options options = {.pool = pool};
    tec_module *m = kit_open();
    net t[2];
    pthread_t thread;
    void *said;

    for (int i = 0; i < 2; i++) {
        t[i] = (net){.shape = {0, 8}, .ex = tec_executor_new(m, "net", &options, NULL)};
        kit_fill(t[i].x, MAX_ROWS);
        t[i].input = tensor_of(t[i].x, 2, t[i].shape);
    }
    tec_module_free(m);
    tec_pool_free(pool);
    pthread_create(&thread, NULL, run_often, &t[1]);
    cr_assert_null(run_often(&t[0]));
    pthread_join(thread, &said);
    cr_assert_null(said, "%s", (char *)said);
    tec_executor_free(t[0].ex);
    tec_executor_free(t[1].ex);
}

Test(executor, blames_the_step_whose_kernel_fails)
{
    rt_value_desc values[] = {{F32, 1, (const rt_dim[]){SYMBOL(0)}, RT_IN_INPUT, 0, {0}, 0}};
    rt_step_desc step = {.function = 3,
                         .values = (const int32_t[]){0},
                         .n_values = 1,
                         .dims = (const rt_dim[]){SYMBOL(0)},
                         .n_dims = 1,
                         .name = "Check",
                         .nodes = "check7"};
    rt_graph_desc g = {.name = "g",
                       .symbols = (const rt_symbol_desc[]){{"n", 0, 0}},
                       .n_symbols = 1,
                       .inputs = (const rt_tensor_desc[]){{"x", F32, 1, (const rt_dim[]){SYMBOL(0)}}},
                       .n_inputs = 1,
                       .values = values,
                       .n_values = 1,
                       .steps = &step,
                       .n_steps = 1};
    rt_module_desc m = kit_module();
    tec_error err = {0};
    float x[2] = {-1, 0};
    int64_t shape[] = {2};
    DLTensor input = tensor_of(x, 1, shape);

    m.graphs = &g;
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);
    cr_assert(module, "%s", err.text);
    tec_executor *ex = tec_executor_new(module, "g", NULL, &err);
    cr_assert(tec_executor_set_input(ex, 0, &input, &err), "%s", err.text);
    cr_assert(!tec_executor_run(ex, &err));
    cr_assert_str_eq(err.text, "step 0 'Check' (check7): x[0] is negative");
    tec_executor_free(ex);
    tec_module_free(module);
}

/* The small net with one thing changed must be refused when it is prepared. */
static tec_error prepare_changed(const rt_graph_desc *g)
{
    rt_module_desc m = kit_module();
    tec_error err = {0};
    float x[8] = {0};
    int64_t shape[] = {1, 8};
    DLTensor input = tensor_of(x, 2, shape);

    m.graphs = g;
    tec_module *module = rt_module_from_memory(&m, &kit_code, 0, &err);
    tec_executor *ex = module ? tec_executor_new(module, NULL, NULL, &err) : NULL;
    if (ex && tec_executor_set_input(ex, 0, &input, &err))
        cr_assert(!tec_executor_prepare(ex, &err));
    tec_executor_free(ex);
    tec_module_free(module);
    return err;
}

Test(executor, refuses_a_plan_that_reaches_beyond_its_storage)
{
    rt_graph_desc g = kit_graphs[0];
    tec_error err;

    g.pool_size = (rt_dim){(const int64_t[]){RT_DIM_CONST, 8}, 2};
    err = prepare_changed(&g);
    cr_assert_str_eq(err.text, "graph 'net': value 2 needs 16 bytes from byte 0 on, but its storage has 8");
}

Test(executor, refuses_a_plan_whose_arguments_do_not_fit_their_parameters)
{
    rt_graph_desc g = kit_graphs[0];
    rt_step_desc steps[3];
    tec_error err;

    memcpy(steps, kit_steps, sizeof steps);
    steps[1].dims = (const rt_dim[]){SYMBOL(0), CONST(5)};
    g.steps = steps;
    err = prepare_changed(&g);
    cr_assert_str_eq(err.text, "step 1 'Relu' (relu1): 'x' cannot be f32[1, 4]");
}

Test(executor, refuses_a_plan_that_writes_over_what_a_step_reads)
{
    rt_graph_desc g = kit_graphs[0];
    rt_step_desc steps[3];
    tec_error err;

    memcpy(steps, kit_steps, sizeof steps);
    steps[1].values = (const int32_t[]){VALUE_PRODUCT, VALUE_PRODUCT};
    g.steps = steps;
    err = prepare_changed(&g);
    cr_assert_str_eq(err.text,
                     "step 1 'Relu' (relu1): 'x' and 'y' overlap in memory, but one of them is written");
}

Test(executor, a_chain_of_nulls_keeps_the_first_error)
{
    tec_error err = {0};
    tec_module *m = tec_module_open("/nowhere/net.so", NULL, &err);
    tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);

    cr_assert(!tec_executor_run(ex, &err));
    cr_assert_str_eq(err.text, "/nowhere/net.so: cannot open it: No such file or directory");
    cr_assert_eq(err.status, TEC_IO);
    tec_executor_free(ex);
    tec_module_free(m);
}
