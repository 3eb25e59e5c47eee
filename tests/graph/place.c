/* tests/graph/place.c -- which device runs which node, and the copies between them. */
#include "graph/place.h"
#include "graph/build.h"
#include "tec/runtime.h"
#include "tests/graph/kit.h"

TestSuite(place, .init = open_context, .fini = close_context);

static graph_module *placed_for(const char *device, const char *text, graph_placed *p)
{
    graph_module *m = graph_place_nodes(lines(text), &(comp_options){.target = target_parse(cx, device)}, p);

    if (m)
        cr_assert(graph_verify(m), "%s\n%s", tec_context_error(cx), graph_text(cx, m, 0));
    return m;
}

static void becomes_placed(const char *device, const char *before, const char *after)
{
    graph_placed p = {0};
    graph_module *m = placed_for(device, before, &p);

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_str_eq(flush_left(lines_of(m)), after);
}

Test(place, a_node_runs_on_the_device_between_two_copies)
{
    becomes_placed("opencl", "input v0 \"x\": f32[n, 8]\nv1: f32[n, 8] = op neg \"a\"(v0)\noutput \"y\" v1\n",
                   "input v0 \"x\": f32[n, 8]\n"
                   "v1 \"x\": f32[n, 8] device 1 = device_copy \"x\"(v0)\n"
                   "v2: f32[n, 8] device 1 = op neg \"a\"(v1)\n"
                   "v3: f32[n, 8] = device_copy \"a\"(v2)\n"
                   "output \"y\" v3\n");
}

Test(place, a_value_is_copied_once_for_all_its_readers)
{
    becomes_placed("opencl",
                   "input v0 \"x\": f32[4]\nv1: f32[4] = op neg \"a\"(v0)\nv2: f32[4] = op exp \"b\"(v0)\n"
                   "v3: f32[4] = op add \"c\"(v1, v2)\noutput \"y\" v3\noutput \"z\" v3\n",
                   "input v0 \"x\": f32[4]\n"
                   "v1 \"x\": f32[4] device 1 = device_copy \"x\"(v0)\n"
                   "v2: f32[4] device 1 = op neg \"a\"(v1)\n"
                   "v3: f32[4] device 1 = op exp \"b\"(v1)\n"
                   "v4: f32[4] device 1 = op add \"c\"(v2, v3)\n"
                   "v5: f32[4] = device_copy \"c\"(v4)\n"
                   "output \"y\" v5\noutput \"z\" v5\n");
}

Test(place, a_constant_is_on_the_device_from_the_start)
{
    graph_placed p = {0};
    graph_module *m = placed_for("opencl",
                                 "constant v9 \"w\": f32[4] = [1.0, 2.0, 3.0, 4.0]\ninput v0 \"x\": f32[4]\n"
                                 "v1: f32[4] = op add \"a\"(v0, v9)\noutput \"y\" v1\noutput \"w\" v9\n",
                                 &p);

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(strstr(lines_of(m), "constant v0 \"w\": f32[4] device 1"), "%s", lines_of(m));
    cr_assert(strstr(lines_of(m), "constant v1 \"w\": f32[4] = "), "%s", lines_of(m));
}

Test(place, shape_arithmetic_stays_on_the_host)
{
    becomes_placed("opencl",
                   "input v0 \"x\": f32[n]\nv1: i64[2] = op values \"s\"() @values(exprs [n, 3]) @scalar(0)\n"
                   "v2: i64[2] = op add \"t\"(v1, v1)\noutput \"y\" v2\n",
                   "input v0 \"x\": f32[n]\n"
                   "v1: i64[2] = op values \"s\"() @values(exprs [n, 3]) @scalar(0)\n"
                   "v2: i64[2] = op add \"t\"(v1, v1)\n"
                   "output \"y\" v2\n");
}

/* v0 is doubles, which a Mali has not. */
static const char doubles[] = "input v0 \"x\": f64[4]\nv1: f64[4] = op neg \"a\"(v0)\n"
                              "v2: f32[4] = op cast \"b\"(v1) @to(dtype f32)\nv3: f32[4] = op exp \"c\"(v2)\n"
                              "output \"y\" v3\n";

Test(place, what_the_device_cannot_do_runs_on_the_host_with_the_reason)
{
    graph_placed p = {0};
    graph_module *m = placed_for("opencl -device=mali", doubles, &p);

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_str_eq(flush_left(lines_of(m)), "input v0 \"x\": f64[4]\n"
                                              "v1: f64[4] = op neg \"a\"(v0)\n"
                                              "v2: f32[4] = op cast \"b\"(v1) @to(dtype f32)\n"
                                              "v3: f32[4] device 1 = device_copy \"b\"(v2)\n"
                                              "v4: f32[4] device 1 = op exp \"c\"(v3)\n"
                                              "v5: f32[4] = device_copy \"c\"(v4)\n"
                                              "output \"y\" v5\n");
    cr_assert_eq(p.hosted.n, 2);
    const graph_hosted *h = p.hosted.at[0];
    cr_assert_str_eq(h->node->name, "a");
    cr_assert_str_eq(
        h->why,
        "buffer 'in0' has elements of type f64, which does not exist in OpenCL C for a device without f64");

    int count[2];
    graph_count_operators(m, count);
    cr_assert_eq(count[0], 2);
    cr_assert_eq(count[1], 1);
}

Test(place, strict_refuses_the_first_node_that_would_run_on_the_host)
{
    graph_placed p = {.strict = true};

    cr_assert_null(placed_for("opencl -device=mali", doubles, &p));
    cr_assert(strstr(tec_context_error(cx),
                     "'a' cannot run on target 'opencl -device=mali', and --place "
                     "strict forbids to run it on the host: buffer 'in0' has elements of type f64"),
              "%s", tec_context_error(cx));
}

Test(place, a_target_without_a_generator_is_refused)
{
    graph_placed p = {0};

    cr_assert_null(placed_for("vdla", doubles, &p));
    cr_assert(strstr(tec_context_error(cx), "there is no code generator for target 'vdla"), "%s",
              tec_context_error(cx));
}

/* ---- run ---- */

Test(place, a_graph_on_two_devices_gives_what_the_host_gives)
{
    static const char text[] =
        "constant v9 \"w\": f32[3] = [1.0, 2.0, 4.0]\ninput v0 \"x\": f64[n, 3]\n"
        "v1: f64[n, 3] = op neg \"a\"(v0)\nv2: f32[n, 3] = op cast \"b\"(v1) @to(dtype f32)\n"
        "v3: f32[n, 3] = op softmax \"c\"(v2) @axis(1)\nv4: f32[n, 3] = op mul \"d\"(v3, v9)\n"
        "output \"y\" v4\noutput \"z\" v1\n";
    double x[6] = {1, 2, 3, -4, 5, 6.5};
    float results[2][6];

    for (int k = 0; k < 2; k++) {
        const target *t = k ? target_parse(cx, "opencl -device=mali") : target_native(cx);
        graph_built *b = graph_build(lines(text), &(graph_build_options){.target = t});
        tec_error err = {0};
        tec_module *m = b ? graph_load(b) : NULL;
        cr_assert(m, "%s", tec_context_error(cx));
        tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
        DLTensor in = {
            .data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = BASE_F64, .shape = (int64_t[]){2, 3}};

        for (int again = 0; again < 2; again++)
            cr_assert(ex && tec_executor_set_input(ex, 0, &in, &err) && tec_executor_run(ex, &err), "%s",
                      err.text);
        memcpy(results[k], tec_executor_output(ex, 0)->data, sizeof results[k]);
        cr_assert_eq(((const double *)tec_executor_output(ex, 1)->data)[5], -6.5);
        tec_executor_free(ex);
        tec_module_free(m);
    }
    for (int i = 0; i < 6; i++)
        cr_assert_float_eq(results[0][i], results[1][i], 1e-5, "%d: %g, not %g", i, (double)results[1][i],
                           (double)results[0][i]);
}
