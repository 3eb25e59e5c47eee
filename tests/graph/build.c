/* tests/graph/build.c -- random networks, optimised, compiled and run in this process, against the
 * interpreter on the graph as it was written. */
#include "graph/build.h"
#include "tec/runtime.h"
#include "tests/graph/kit.h"

TestSuite(build, .init = open_context, .fini = close_context);

static uint64_t seed;
static graph_module *m;
static graph_function *f;

static graph_value *random_constant(int n, const int64_t *shape)
{
    op_constant *c = base_new(cx, op_constant);
    const ir_expr **dim = base_array(cx, const ir_expr *, n);
    int64_t size = 1;

    for (int i = 0; i < n; i++) {
        dim[i] = ir_int(cx, shape[i]);
        size *= shape[i];
    }
    float *data = base_array(cx, float, size);
    for (int64_t i = 0; i < size; i++)
        data[i] = (float)base_random_below(&seed, 5) - 2;
    *c = (op_constant){.type = {BASE_F32, n, dim}, .data = data, .bytes = size * 4};
    return graph_constant(f, NULL, c);
}

static int64_t extent(const graph_value *v, int i)
{
    int64_t n = 0;

    ir_is_int(v->type.dim[i], &n);
    return n;
}

static graph_value *add_conv(graph_value *x, int i)
{
    int64_t out = 1 + base_random_below(&seed, 9), k = 1 + 2 * base_random_below(&seed, 2), pad = k / 2;
    op_attr pads = op_attr_ints(cx, "pads", (const int64_t[]){pad, pad, pad, pad}, 4);

    return GRAPH_ADD(f, "conv", base_format(cx, "conv%d", i), &pads, 1, x,
                     random_constant(4, (const int64_t[]){out, extent(x, 1), k, k}),
                     random_constant(1, &out));
}

static graph_value *add_norm(graph_value *x, int i)
{
    int64_t c = extent(x, 1);
    op_attr epsilon = op_attr_float("epsilon", 1);
    graph_value *p = random_constant(1, &c), *positive = random_constant(1, &c);
    float *data = (float *)positive->constant->data;

    for (int64_t k = 0; k < c; k++)
        data[k] = data[k] * data[k] + 3;
    return GRAPH_ADD(f, "batch_norm", base_format(cx, "bn%d", i), &epsilon, 1, x, p, p, p, positive);
}

static graph_value *add_random(graph_value *x, graph_value *y, int i)
{
    const char *name = base_format(cx, "node%d", i);
    op_attr pool = op_attr_ints(cx, "kernel", (const int64_t[]){2, 1}, 2),
            perm = op_attr_ints(cx, "perm", (const int64_t[]){0, 1, 3, 2}, 4);
    op_attr axis = op_attr_int("axis", 1);
    bool same = graph_same_type(NULL, &x->type, &y->type);

    switch (base_random_below(&seed, 9)) {
    case 0: return GRAPH_ADD(f, "relu", name, NULL, 0, x);
    case 1: return add_conv(x, i);
    case 2: return add_norm(x, i);
    case 3: return extent(x, 2) > 1 ? GRAPH_ADD(f, "max_pool", name, &pool, 1, x) : x;
    case 4: return GRAPH_ADD(f, "transpose", name, &perm, 1, x);
    case 5: return same ? GRAPH_ADD(f, "add", name, NULL, 0, x, y) : GRAPH_ADD(f, "neg", name, NULL, 0, x);
    case 6:
        return same ? GRAPH_ADD(f, "concat", name, &axis, 1, x, y)
                    : GRAPH_ADD(f, "identity", name, NULL, 0, x);
    case 7: return GRAPH_ADD(f, "mul", name, NULL, 0, x, random_constant(0, NULL));
    default: return GRAPH_ADD(f, "clip", name, NULL, 0, x, random_constant(0, NULL));
    }
}

static void random_network(void)
{
    const ir_expr *shape[] = {
        ir_int(cx, 1 + base_random_below(&seed, 2)), ir_int(cx, 1 + base_random_below(&seed, 5)),
        ir_int(cx, 2 + base_random_below(&seed, 6)), ir_int(cx, 2 + base_random_below(&seed, 18))};
    graph_value *v[9];
    int n = 4 + (int)base_random_below(&seed, 5);

    m = graph_new(cx, "net");
    f = graph_function_new(m, "main");
    v[0] = graph_input(f, "x", (op_type){BASE_F32, 4, base_copy(cx, shape, sizeof shape)});
    for (int i = 1; i < n; i++) {
        v[i] = add_random(v[i - 1], v[base_random_below(&seed, i)], i);
        cr_assert(v[i], "%s", tec_context_error(cx));
    }
    graph_output(f, "y", v[n - 1]);
    graph_output(f, "z", v[n / 2]);
}

/* Rows of 64 bytes, joined along the first dimension: results in their places, in each other, read between,
 * shown, joined twice, and beside what the plan cannot place. */
static void random_rows(void)
{
    op_attr axis = op_attr_int("axis", 0), perm = op_attr_ints(cx, "perm", (const int64_t[]){1, 0}, 2);
    graph_value *v[12];
    int n = 8 + (int)base_random_below(&seed, 5);

    m = graph_new(cx, "rows");
    f = graph_function_new(m, "main");
    v[0] = graph_input(f, "x", (op_type){BASE_F32, 2, (const ir_expr *[]){ir_int(cx, 2), ir_int(cx, 16)}});
    for (int i = 1; i < n; i++) {
        const char *name = base_format(cx, "node%d", i);
        graph_value *a = v[base_random_below(&seed, i)], *b = v[base_random_below(&seed, i)], *c = v[i - 1];
        int kind = (int)base_random_below(&seed, 6);

        if (kind < 3)
            v[i] = extent(a, 0) + extent(b, 0) + extent(c, 0) > 64
                       ? GRAPH_ADD(f, "neg", name, NULL, 0, a)
                       : GRAPH_ADD(f, "concat", name, &axis, 1, a, b, c);
        else if (kind == 3)
            v[i] = GRAPH_ADD(f, "softmax", name, NULL, 0, c);
        else if (kind == 4)
            v[i] = GRAPH_ADD(f, "transpose", name, &perm, 1,
                             GRAPH_ADD(f, "transpose", base_format(cx, "turn%d", i), &perm, 1,
                                       GRAPH_ADD(f, "relu", base_format(cx, "r%d", i), NULL, 0, a)));
        else
            v[i] = GRAPH_ADD(f, "neg", name, NULL, 0, a);
        cr_assert(v[i], "%s", tec_context_error(cx));
    }
    graph_output(f, "y", v[n - 1]);
    graph_output(f, "z", v[1 + base_random_below(&seed, n - 1)]);
}

static DLTensor tensor_for(const op_type *t, void *data)
{
    int64_t *shape = base_array(cx, int64_t, t->n);

    for (int i = 0; i < t->n; i++)
        ir_is_int(t->dim[i], &shape[i]);
    return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = t->n, .dtype = t->dtype, .shape = shape};
}

static void compare(const char *what, const graph_value *v, const float *expected, const float *found,
                    uint64_t first)
{
    for (int64_t i = 0; i < elements(&v->type); i++)
        cr_assert(fabsf(found[i] - expected[i]) <= 1e-4f * (1 + fabsf(expected[i])),
                  "seed %llu, output '%s', element %lld: %g, expected %g\n%s", (unsigned long long)first,
                  what, (long long)i, (double)found[i], (double)expected[i], graph_text(cx, m, 0));
}

static void check(void (*random_graph)(void), uint64_t first)
{
    base_map data = {0};
    tec_error err = {0};

    seed = first;
    random_graph();
    const graph_body *body = f->body;
    const graph_value *x = body->inputs.at[0], *y = body->outputs.at[0], *z = body->outputs.at[1];
    float *in = data_of(&data, x);
    if (y == x || z == x)
        return;
    for (int64_t i = 0; i < elements(&x->type); i++)
        in[i] = (float)base_random_below(&seed, 7) - 3;
    interpret(m, &data);

    graph_built *built = graph_build(m, &(graph_build_options){.target = target_native(cx), .jobs = 1});
    cr_assert(built, "seed %llu: %s\n%s", (unsigned long long)first, tec_context_error(cx),
              graph_text(cx, m, 0));
    tec_module *module = graph_load(built);
    cr_assert(module, "%s", tec_context_error(cx));
    tec_executor *e = tec_executor_new(module, NULL, &(tec_run_options){.threads = 2}, &err);
    cr_assert(e, "%s", err.text);
    DLTensor t = tensor_for(&x->type, in);
    cr_assert(tec_executor_set_input(e, 0, &t, &err) && tec_executor_run(e, &err), "seed %llu: %s",
              (unsigned long long)first, err.text);
    compare("y", y, data_of(&data, y), tec_executor_output(e, 0)->data, first);
    compare("z", z, data_of(&data, z), tec_executor_output(e, 1)->data, first);
    tec_executor_free(e);
    tec_module_free(module);
}

Test(build, random_networks_compute_what_they_say)
{
    for (uint64_t k = 1; k <= 12; k++)
        check(random_network, k * 7919);
}

Test(build, what_is_joined_lies_in_its_place)
{
    for (uint64_t k = 1; k <= 40; k++)
        check(random_rows, k * 7919);
}

/* ---- a batch that is known when it runs ---- */

#define NETWORK                                                                                              \
    "constant v0: f32[4, 2, 3, 3] = [1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0, 1.0, -1.0, 2.0, 0.0, "   \
    "1.0, 1.0, -2.0, 1.0, 0.0,\n"                                                                            \
    "1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0, 1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0,\n"        \
    "1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0, 1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0,\n"        \
    "1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0, 1.0, -1.0, 2.0, 0.0, 1.0, 1.0, -2.0, 1.0, 0.0]\n"        \
    "constant v1: f32[4] = [0.5, 1.0, -1.0, 2.0]\n"                                                          \
    "constant v2: f32[4, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0]\n"          \
    "input v3 \"x\": f32[n, 2, 6, 7]\n"                                                                      \
    "v4: f32[n, 4, 6, 7] = op conv \"c\"(v3, v0, v1) @pads([1, 1, 1, 1])\n"                                  \
    "v5: f32[n, 4, 6, 7] = op relu \"r\"(v4)\n"                                                              \
    "v6: f32[n, 4, 3, 3] = op max_pool \"p\"(v5) @kernel([2, 2]) @strides([2, 2])\n"                         \
    "v7: f32[n, 4] = op reduce_mean \"g\"(v6) @axes([2, 3]) @keepdims(0)\n"                                  \
    "v8: f32[n, 3] = op matmul \"fc\"(v7, v2)\n"                                                             \
    "v9: f32[n, 3] = op softmax \"s\"(v8)\n"                                                                 \
    "v10: f32[n, 36] = op reshape \"f\"(v6) @shape(exprs [n, 36])\noutput \"y\" v9\noutput \"z\" v10\n"

/* The lines with a number for each n that stands alone as an extent. */
static graph_module *with_batch(const char *text, int64_t n)
{
    base_text t = {0};

    for (; *text; text++) {
        if (text[0] == '[' && text[1] == 'n' && text[2] == ',') {
            base_addf(cx, &t, "[%lld", (long long)n);
            text++;
        } else
            base_addn(cx, &t, text, 1);
    }
    return lines(base_text_str(cx, &t));
}

static void check_batch(tec_executor *e, int64_t n)
{
    base_map data = {0};
    tec_error err = {0};
    graph_module *fixed = with_batch(NETWORK, n);
    const graph_body *body = main_body(fixed);
    const graph_value *x = body->inputs.at[0];
    float *in = data_of(&data, x);
    DLTensor t = tensor_for(&x->type, in);

    for (int64_t i = 0; i < elements(&x->type); i++)
        in[i] = (float)base_random_below(&seed, 7) - 3;
    interpret(fixed, &data);
    cr_assert(tec_executor_set_input(e, 0, &t, &err) && tec_executor_run(e, &err), "%s", err.text);
    for (int k = 0; k < 2; k++) {
        const graph_value *v = body->outputs.at[k];

        cr_assert_eq(tec_executor_output(e, k)->shape[0], n);
        compare(k ? "z" : "y", v, data_of(&data, v), tec_executor_output(e, k)->data, (uint64_t)n);
    }
}

Test(build, a_symbolic_batch_runs_at_every_size)
{
    tec_error err = {0};

    seed = 3;
    m = lines(NETWORK);
    graph_built *built = graph_build(m, &(graph_build_options){.target = target_native(cx), .jobs = 1});
    cr_assert(built, "%s", tec_context_error(cx));
    tec_module *module = graph_load(built);
    cr_assert(module, "%s", tec_context_error(cx));
    tec_executor *e = tec_executor_new(module, NULL, &(tec_run_options){.threads = 2}, &err);
    cr_assert(e, "%s", err.text);
    check_batch(e, 3);
    check_batch(e, 1);
    check_batch(e, 17);
    tec_executor_free(e);
    tec_module_free(module);
}

Test(build, an_extent_that_no_input_tells_is_refused)
{
    m = lines("input v0 \"x\": f32[n]\nv1: f32[m] = op fill \"f\"() @shape(exprs [m]) @dtype(dtype "
              "f32)\noutput \"y\" v1\n");

    cr_assert_null(graph_build(m, &(graph_build_options){.target = target_native(cx), .jobs = 1}));
    cr_assert(
        strstr(
            tec_context_error(cx),
            "dimension 'm' is not the extent of any input, so its value is not known before the model runs"),
        "%s", tec_context_error(cx));
}

/* An extent that only the weights know becomes a condition, which the executor checks before anything reads
 * past the input. */
Test(build, checks_a_symbolic_extent_that_weights_settle)
{
    tec_error err = {0};
    float data[2 * 8] = {0};
    int64_t shape[2] = {2, 4};
    DLTensor x = {.data = data, .device = {kDLCPU, 0}, .ndim = 2, .dtype = BASE_F32, .shape = shape};

    m = graph_new(cx, "net");
    f = graph_function_new(m, "main");
    graph_value *in =
        graph_input(f, "x", (op_type){BASE_F32, 2, (const ir_expr *[]){ir_int(cx, 2), graph_symbol(m, "c")}});
    graph_output(f, "y",
                 GRAPH_ADD(f, "matmul", "dense", NULL, 0, in, random_constant(2, (const int64_t[]){5, 3})));
    graph_built *b = graph_build(m, &(graph_build_options){.target = target_native(cx)});
    cr_assert(b, "%s", tec_context_error(cx));
    tec_module *module = graph_load(b);
    tec_executor *ex = tec_executor_new(module, NULL, &(tec_run_options){.threads = 1}, &err);
    cr_assert(ex, "%s", err.text);

    cr_expect(!tec_executor_set_input(ex, 0, &x, &err) || !tec_executor_run(ex, &err));
    cr_expect(strstr(err.text, "c == 5"), "%s", err.text);
    err = (tec_error){0};
    shape[1] = 5;
    cr_expect(tec_executor_set_input(ex, 0, &x, &err) && tec_executor_run(ex, &err), "%s", err.text);
    tec_executor_free(ex);
    tec_module_free(module);
}

/* The steps of a recurrence use one weight: the module holds it once, packed. */
Test(build, holds_the_weight_of_all_steps_once)
{
    enum { N = 128, STEPS = 16 };
    int64_t bytes = 0;

    m = graph_new(cx, "net");
    f = graph_function_new(m, "main");
    graph_value *h = graph_input(
        f, "h", (op_type){BASE_F32, 2, (const ir_expr *[]){graph_symbol(m, "batch"), ir_int(cx, N)}});
    graph_value *w = random_constant(2, (const int64_t[]){N, N});
    for (int i = 0; i < STEPS; i++)
        h = GRAPH_ADD(f, "tanh", base_format(cx, "t%d", i), NULL, 0,
                      GRAPH_ADD(f, "matmul", base_format(cx, "mm%d", i), NULL, 0, h, w));
    graph_output(f, "y", h);
    graph_built *b = graph_build(m, &(graph_build_options){.target = target_native(cx)});
    cr_assert(b, "%s", tec_context_error(cx));
    for (int i = 0; i < b->desc.n_constants; i++) {
        const rt_constant_desc *c = &b->desc.constants[i];
        int64_t size = base_dtype_bytes(c->dtype);

        for (int k = 0; k < c->rank; k++)
            size *= c->shape[k];
        bytes += size;
    }
    cr_expect_eq(bytes, N * N * 4, "%lld bytes of constants", (long long)bytes);
}

/* ---- tasks, and schedules from elsewhere ---- */

#define TWO_EQUAL_KERNELS                                                                                    \
    "input v0 \"x\": f32[4, 64]\nv1: f32[4, 64] = op softmax \"a\"(v0) @axis(1)\nv2: f32[4, 64] = op "       \
    "softmax \"b\"(v1) @axis(1)\noutput \"y\" v2\n"

Test(build, equal_kernels_are_one_task)
{
    graph_kernels *k = graph_tasks(lines(TWO_EQUAL_KERNELS), any_target());

    cr_assert(k, "%s", tec_context_error(cx));
    cr_assert_eq(k->entries.n, 1);
    const graph_kernel_entry *e = graph_kernel_at(k, 0);
    cr_assert_eq(e->uses, 2);
    cr_assert_str_eq(e->node, "a");
    cr_assert(sched_replay(sched_new(cx, e->plain, any_target()), "default", e->trace));
    cr_assert(e->task && e->task->exact_key);
}

/* A weight that one layer reads, and one that three steps read, one behind the other. */
Test(build, tasks_say_how_far_away_their_weights_are)
{
    const int64_t wide[] = {64, 32}, square[] = {32, 32};

    m = graph_new(cx, "net");
    f = graph_function_new(m, "main");
    graph_value *x =
        graph_input(f, "x", (op_type){BASE_F32, 2, (const ir_expr *[]){ir_int(cx, 4), ir_int(cx, 64)}});
    graph_value *h = GRAPH_ADD(f, "matmul", "layer", NULL, 0, x, random_constant(2, wide));
    graph_value *w = random_constant(2, square);
    for (int i = 0; i < 3; i++)
        h = GRAPH_ADD(f, "tanh", base_format(cx, "t%d", i), NULL, 0,
                      GRAPH_ADD(f, "matmul", base_format(cx, "step%d", i), NULL, 0, h, w));
    graph_output(f, "y", h);
    graph_kernels *k = graph_tasks(m, target_native(cx));
    cr_assert(k, "%s", tec_context_error(cx));

    cr_assert_eq(k->constant_bytes, (64 * 32 + 3 * 32 * 32) * 4, "%lld bytes", (long long)k->constant_bytes);
    for (int i = 0; i < k->entries.n; i++) {
        const graph_kernel_entry *e = graph_kernel_at(k, i);
        bool step = strncmp(e->node, "step", 4) == 0;

        cr_expect_eq(e->constants, 2, "%s: %llx", e->node, (unsigned long long)e->constants);
        cr_expect_eq(e->again, step ? 32 * 32 * 4 : 0, "%s: %lld", e->node, (long long)e->again);
    }
}

static const char *one_trace(const space_source *self, tec_context *into, const space_task *task,
                             const target *t, const char **origin)
{
    (void)into, (void)task, (void)t;
    *origin = "elsewhere";
    return self->data;
}

Test(build, takes_schedules_from_a_source_and_the_default_where_they_do_not_apply)
{
    graph_kernels *k = graph_tasks(lines(TWO_EQUAL_KERNELS), any_target());
    space_source source = {.best = one_trace, .data = (void *)graph_kernel_at(k, 0)->trace};
    graph_built *b = graph_build(lines(TWO_EQUAL_KERNELS),
                                 &(graph_build_options){.target = any_target(), .source = &source});

    cr_assert(b, "%s", tec_context_error(cx));
    cr_assert_str_eq(graph_kernel_at(b->kernels, 0)->unit.origin, "elsewhere");
    cr_assert_null(graph_kernel_at(b->kernels, 0)->refused);
    source.data = "parallel(no_loop)\n";
    b = graph_build(lines(TWO_EQUAL_KERNELS),
                    &(graph_build_options){.target = any_target(), .source = &source});
    cr_assert_str_eq(graph_kernel_at(b->kernels, 0)->unit.origin, "default");
    cr_assert(strstr(graph_kernel_at(b->kernels, 0)->refused, "no_loop"));
}
