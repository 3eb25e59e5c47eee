/* tests/graph/onnx/control.c -- If, Loop and Scan of ONNX by the VM: captured values, trips that only the run
 * knows, values that grow, bodies inside of bodies.
 */
#include "tests/graph/onnx/bodies.h"
#include "tests/graph/onnx/run.h"

TestSuite(onnx_control, .init = open_context, .fini = close_context);

static void scalar_input(const char *name, int elem_type)
{
    input_of(name, elem_type, (const char *const[]){NULL});
}

/* ---- runs ---- */

/* Runs the program on tensors: output `which` has this shape and these elements. */
static void gives(const compiled *c, const DLTensor *in, int n, int which, int rank, const int64_t *shape,
                  const float *expected)
{
    tec_error err = {0};
    tec_object *given[4], *out[4] = {NULL};
    int n_out = tec_program_n_outputs(c->program);
    int64_t count = 1;

    for (int i = 0; i < n; i++)
        cr_assert(given[i] = tec_object_tensor(c->program, &in[i], &err), "%s", err.text);
    cr_assert(tec_program_run(c->program, given, n, out, n_out, &err), "%s", err.text);
    const DLTensor *y = tec_object_dltensor(out[which]);
    cr_assert_eq(y->ndim, rank);
    for (int d = 0; d < rank; d++) {
        cr_assert_eq(y->shape[d], shape[d], "extent %d is %lld, expected %lld", d, (long long)y->shape[d],
                     (long long)shape[d]);
        count *= shape[d];
    }
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(((const float *)y->data)[i], expected[i], 1e-5, "element %lld is %g, expected %g",
                           (long long)i, (double)((const float *)y->data)[i], (double)expected[i]);
    for (int i = 0; i < n_out; i++)
        tec_object_free(out[i]);
    for (int i = 0; i < n; i++)
        tec_object_free(given[i]);
}

/* The run on these tensors ends with these words. */
static void fails(const compiled *c, const DLTensor *in, int n, const char *words)
{
    tec_error err = {0};
    tec_object *given[4], *out[4] = {NULL};

    for (int i = 0; i < n; i++)
        cr_assert(given[i] = tec_object_tensor(c->program, &in[i], &err), "%s", err.text);
    cr_assert_not(tec_program_run(c->program, given, n, out, tec_program_n_outputs(c->program), &err));
    cr_assert(strstr(err.text, words), "found: %s\nexpected: %s", err.text, words);
    for (int i = 0; i < n; i++)
        tec_object_free(given[i]);
}

/* ---- If ---- */

Test(onnx_control, branches_may_give_other_extents)
{
    open_model(13);
    input("x", 1, "n");
    scalar_input("c", 9);
    open_body();
    node("Concat", "x,x", "both", attr_int("axis", 0)); /* x is captured */
    output("both");
    Onnx__AttributeProto *then = close_body("then_branch");
    open_body();
    node("Neg", "x", "minus", NULL);
    output("minus");
    Onnx__AttributeProto *otherwise = close_body("else_branch");
    node("If", "c", "y", then, otherwise);
    output("y");
    compiled c = compile_program(imported());
    const float x[] = {1, 2, 3};
    for (uint8_t yes = 0; yes < 2; yes++) {
        const DLTensor in[] = {tensor_of(f32, x, 1, (const int64_t[]){3}), tensor_of(boolean, &yes, 0, NULL)};

        gives(&c, in, 2, 0, 1, (const int64_t[]){yes ? 6 : 3},
              yes ? (const float[]){1, 2, 3, 1, 2, 3} : (const float[]){-1, -2, -3});
    }
    discard(&c);
}

/* ---- Loop ---- */

/* cache = concat(cache, 2 * x[i]); rows that it passes are collected; the trips are an input. */
static void growing_model(void)
{
    open_model(13);
    input("x", 1, "n", "2");
    scalar_input("trips", 7);
    input("first", 1, "1", "2");
    open_body();
    body_input("i");
    body_input("go");
    body_input("cache");
    node("Gather", "x,i", "row", attr_int("axis", 0));
    node("Reshape", "row,one_two", "flat", NULL);
    node("Add", "flat,flat", "twice", NULL);
    node("Concat", "cache,twice", "longer", attr_int("axis", 0));
    node("Identity", "go", "on", NULL);
    output("on");
    output("longer");
    output("row");
    Onnx__AttributeProto *body = close_body("body");
    raw(tensor("one_two", 7, (const int64_t[]){2}, 1), (const int64_t[]){1, 2}, 16);
    node("Loop", "trips,,first", "y,rows", body);
    output("y");
    output("rows");
}

Test(onnx_control, a_carried_tensor_grows_for_as_many_trips_as_the_run_says)
{
    const float x[] = {1, 2, 3, 4, 5, 6}, first[] = {9, 9}, y[] = {9, 9, 2, 4, 6, 8, 10, 12};

    growing_model();
    compiled c = compile_program(imported());
    for (int64_t trips = 0; trips <= 3; trips++) {
        const DLTensor in[] = {tensor_of(f32, x, 2, (const int64_t[]){3, 2}), tensor_of(i64, &trips, 0, NULL),
                               tensor_of(f32, first, 2, (const int64_t[]){1, 2})};

        gives(&c, in, 3, 0, 2, (const int64_t[]){trips + 1, 2}, y);
        gives(&c, in, 3, 1, 2, (const int64_t[]){trips, 2}, x);
    }
    discard(&c);
}

/* s += sum over j < i of x[j], by a loop inside of a loop; the inner one captures the outer's number. */
Test(onnx_control, bodies_nest_and_capture)
{
    open_model(13);
    input("x", 1, "4");
    scalar_input("zero", 1);
    raw(tensor("n", 7, NULL, 0), (const int64_t[]){4}, 8);
    open_body();
    body_input("i");
    body_input("go");
    body_input("s");
    open_body();
    body_input("j");
    body_input("go2");
    body_input("t");
    node("Gather", "x,j", "element", attr_int("axis", 0));
    node("Add", "t,element", "t2", NULL);
    node("Identity", "go2", "on2", NULL);
    output("on2");
    output("t2");
    Onnx__AttributeProto *inner = close_body("body");
    node("Loop", "i,,s", "s2", inner);
    node("Identity", "go", "on", NULL);
    output("on");
    output("s2");
    Onnx__AttributeProto *body = close_body("body");
    node("Loop", "n,,zero", "y", body);
    output("y");
    compiled c = compile_program(imported());
    const float x[] = {1, 10, 100, 1000}, zero = 0, expected = 1 + 11 + 111;
    const DLTensor in[] = {tensor_of(f32, x, 1, (const int64_t[]){4}), tensor_of(f32, &zero, 0, NULL)};
    gives(&c, in, 2, 0, 0, NULL, &expected);
    discard(&c);
}

/* s doubles while it is below the limit, which the body captures; also where it never is. */
Test(onnx_control, a_loop_ends_when_its_condition_does)
{
    static const struct {
        int64_t trips, rows;
        float start, end;
    } runs[] = {{100, 4, 1, 16}, {100, 1, 5, 10}, {100, 0, 20, 20}, {2, 2, 1, 4}, {0, 0, 1, 1}};

    open_model(13);
    scalar_input("trips", 7);
    scalar_input("start", 1);
    scalar_input("limit", 1);
    node("Less", "start,limit", "below", NULL);
    open_body();
    body_input("i");
    body_input("go");
    body_input("s");
    node("Add", "s,s", "twice", NULL);
    node("Less", "twice,limit", "on", NULL);
    node("Identity", "s", "seen", NULL);
    output("on");
    output("twice");
    output("seen");
    Onnx__AttributeProto *body = close_body("body");
    node("Loop", "trips,below,start", "y,rows", body);
    output("y");
    output("rows");
    compiled c = compile_program(imported());
    for (int i = 0; i < BASE_COUNT(runs); i++) {
        const float limit = 10, rows[] = {runs[i].start, runs[i].start * 2, 4, 8};
        const DLTensor in[] = {tensor_of(i64, &runs[i].trips, 0, NULL),
                               tensor_of(f32, &runs[i].start, 0, NULL), tensor_of(f32, &limit, 0, NULL)};

        gives(&c, in, 3, 0, 0, NULL, &runs[i].end);
        gives(&c, in, 3, 1, 1, &runs[i].rows, rows);
    }
    discard(&c);
}

/* v = the sum of x times v, or minus the sum of x: a loop, in it a scan, in it an If, whose branches read
 * values of all four graphs. */
static void three_bodies(void)
{
    open_model(13);
    scalar_input("trips", 7);
    scalar_input("times", 9);
    scalar_input("start", 1);
    input("x", 1, "n");
    raw(tensor("zero", 1, NULL, 0), (const float[]){0}, 4);
    open_body();
    body_input("i");
    body_input("go");
    body_input("v");
    open_body();
    body_input("a");
    body_input("e");
    open_body();
    node("Mul", "e,v", "part", NULL);
    node("Add", "a,part", "more", NULL);
    output("more");
    Onnx__AttributeProto *then = close_body("then_branch");
    open_body();
    node("Sub", "a,e", "less", NULL);
    output("less");
    Onnx__AttributeProto *otherwise = close_body("else_branch");
    node("If", "times", "next", then, otherwise);
    output("next");
    Onnx__AttributeProto *scan = close_body("body");
    node("Scan", "zero,x", "sum", scan, attr_int("num_scan_inputs", 1));
    node("Identity", "go", "on", NULL);
    output("on");
    output("sum");
    Onnx__AttributeProto *loop = close_body("body");
    node("Loop", "trips,,start", "y", loop);
    output("y");
}

Test(onnx_control, an_if_in_a_scan_in_a_loop_reads_values_of_all_bodies)
{
    static const struct {
        int64_t trips, n;
        uint8_t times;
        float y;
    } runs[] = {{2, 2, 1, 18}, {3, 3, 1, 432}, {2, 2, 0, -3}, {0, 2, 1, 2}, {2, 0, 1, 0}, {1, 0, 0, 0}};

    three_bodies();
    compiled c = compile_program(imported());
    for (int i = 0; i < BASE_COUNT(runs); i++) {
        const float start = 2, x[] = {1, 2, 3};
        const DLTensor in[] = {tensor_of(i64, &runs[i].trips, 0, NULL),
                               tensor_of(boolean, &runs[i].times, 0, NULL), tensor_of(f32, &start, 0, NULL),
                               tensor_of(f32, x, 1, &runs[i].n)};

        gives(&c, in, 4, 0, 0, NULL, &runs[i].y);
    }
    discard(&c);
}

/* ---- Scan ---- */

/* Over the second axis, backwards; what is collected lies along the second axis too. Without a column the
 * state stays as it is. */
Test(onnx_control, a_scan_runs_over_other_axes_and_backwards)
{
    open_model(13);
    input("x", 1, "2", "n");
    input("s", 1, "2");
    open_body();
    body_input("sum");
    body_input("column");
    node("Add", "sum,column", "next", NULL);
    node("Identity", "next", "seen", NULL);
    output("next");
    output("seen");
    Onnx__AttributeProto *body = close_body("body");
    node("Scan", "s,x", "last,all", body, attr_int("num_scan_inputs", 1), INTS("scan_input_axes", 1),
         INTS("scan_input_directions", 1), INTS("scan_output_axes", 1));
    output("last");
    output("all");
    compiled c = compile_program(imported());
    const float x[] = {1, 2, 3, 10, 20, 30}, s[] = {0, 100};
    const DLTensor in[] = {tensor_of(f32, x, 2, (const int64_t[]){2, 3}),
                           tensor_of(f32, s, 1, (const int64_t[]){2})};
    gives(&c, in, 2, 0, 1, (const int64_t[]){2}, (const float[]){6, 160});
    gives(&c, in, 2, 1, 2, (const int64_t[]){2, 3}, (const float[]){3, 5, 6, 130, 150, 160});
    const DLTensor none[] = {tensor_of(f32, x, 2, (const int64_t[]){2, 0}), in[1]};
    gives(&c, none, 2, 0, 1, (const int64_t[]){2}, s);
    gives(&c, none, 2, 1, 2, (const int64_t[]){2, 0}, NULL);
    discard(&c);
}

/* ---- extents that only the run tells ---- */

Test(onnx_control, elements_that_are_not_zero_are_counted_by_the_run)
{
    open_model(13);
    input("x", 1, "n");
    node("NonZero", "x", "at", NULL);
    node("Transpose", "at", "rows", NULL);
    node("GatherND", "x,rows", "y", NULL);
    output("y");
    compiled c = compile_program(imported());
    const float x[] = {0, 3, 0, -1, 2, 0};
    const DLTensor some = tensor_of(f32, x, 1, (const int64_t[]){6}),
                   none = tensor_of(f32, x, 1, (const int64_t[]){1});
    gives(&c, &some, 1, 0, 1, (const int64_t[]){3}, (const float[]){3, -1, 2});
    gives(&c, &none, 1, 0, 1, (const int64_t[]){0}, NULL);
    discard(&c);
}

/* ---- refusals ---- */

Test(onnx_control, a_body_that_changes_the_type_is_refused)
{
    open_model(13);
    scalar_input("trips", 7);
    input("x", 1, "2");
    open_body();
    body_input("i");
    body_input("go");
    body_input("v");
    node("Cast", "v", "w", attr_int("to", 7));
    node("Identity", "go", "on", NULL);
    output("on");
    output("w");
    Onnx__AttributeProto *body = close_body("body");
    node("Loop", "trips,,x", "y", body);
    output("y");
    cr_assert_null(import_model());
    cr_assert(strstr(tec_context_error(cx), "its body takes value 0 as f32[2], but gives it as i64[2]"), "%s",
              tec_context_error(cx));
}

/* The number of columns that a loop collects grows with each iteration, here by a factor. */
Test(onnx_control, rows_whose_extents_differ_are_refused)
{
    open_model(13);
    scalar_input("trips", 7);
    input("x", 1, "2");
    open_body();
    body_input("i");
    body_input("go");
    body_input("v");
    node("Concat", "v,v", "twice", attr_int("axis", 0));
    node("Concat", "twice,twice", "row", attr_int("axis", 0));
    node("Identity", "go", "on", NULL);
    output("on");
    output("twice");
    output("row");
    Onnx__AttributeProto *body = close_body("body");
    node("Loop", "trips,,x", "y,rows", body);
    output("rows");
    cr_assert_null(import_model());
    cr_assert_eq(tec_context_status(cx), TEC_UNSUPPORTED);
    cr_assert(strstr(tec_context_error(cx), "'the_y,rows': result 1 collects values of f32[d2 * 4], whose "
                                            "extents may differ between iterations"),
              "%s", tec_context_error(cx));
}

Test(onnx_control, what_a_body_does_not_support_is_named)
{
    open_model(13);
    scalar_input("c", 9);
    open_body();
    node("Foo", "c", "a", NULL);
    output("a");
    Onnx__AttributeProto *then = close_body("then_branch");
    open_body();
    node("Bar", "c", "b", NULL);
    output("b");
    Onnx__AttributeProto *otherwise = close_body("else_branch");
    node("If", "c", "y", then, otherwise);
    output("y");
    cr_assert_null(import_model());
    cr_assert(strstr(tec_context_error(cx), "'the_a' (Foo)") &&
                  strstr(tec_context_error(cx), "'the_b' (Bar)"),
              "%s", tec_context_error(cx));
}

/* ---- extents that must be equal ---- */

/* x + y, of two unknown extents. */
static void open_sum(void)
{
    open_model(13);
    input("x", 1, "n");
    input("y", 1, "m");
    node("Neg", "y", "minus", NULL);
    node("Add", "x,minus", "z", NULL);
    output("z");
}

Test(onnx_control, two_unknown_extents_are_compared_by_the_run)
{
    const float x[] = {1, 2, 3, 4}, y[] = {5, 5, 5, 5}, expected[] = {-4, -3, -2};
    const int64_t three = 3;

    open_sum();
    compiled c = compile_program(imported());
    for (int64_t n = 1; n < 5; n++) {
        const DLTensor in[] = {tensor_of(f32, x, 1, &three), tensor_of(f32, y, 1, &n)};

        if (n == 3)
            gives(&c, in, 2, 0, 1, &three, expected);
        else
            fails(&c, in, 2,
                  base_format(cx,
                              "dimension 0 of operand 0 'x' and dimension 0 of operand 1 'minus' must be "
                              "equal: 3 and %d",
                              (int)n));
    }
    discard(&c);
}

Test(onnx_control, two_unknown_extents_are_compared_when_a_static_model_is_called)
{
    const float x[] = {1, 2, 3, 4};

    open_sum();
    compiled c = compile_model(imported());
    for (int64_t n = 1; n < 5; n++) {
        const DLTensor a = tensor_of(f32, x, 1, &(int64_t){3}), b = tensor_of(f32, x, 1, &n);
        tec_error err = {0};
        bool ran = tec_executor_set_input(c.executor, 0, &a, &err) &&
                   tec_executor_set_input(c.executor, 1, &b, &err) && tec_executor_run(c.executor, &err);

        cr_assert_eq(ran, n == 3, "%s", err.text);
        cr_assert(ran ||
                      strstr(err.text, "operand 1 'minus' must be equal), which does not hold where n = 3"),
                  "%s", err.text);
    }
    discard(&c);
}

/* A scan over two sequences of lengths that only the run knows. */
Test(onnx_control, sequences_of_a_scan_are_as_long_as_each_other)
{
    const float x[] = {1, 2, 3, 4}, zero = 0, sum = 12;

    open_model(13);
    scalar_input("s", 1);
    input("x", 1, "n");
    input("y", 1, "m");
    open_body();
    body_input("t");
    body_input("a");
    body_input("b");
    node("Add", "t,a", "u", NULL);
    node("Add", "u,b", "next", NULL);
    output("next");
    Onnx__AttributeProto *body = close_body("body");
    node("Scan", "s,x,y", "z", body, attr_int("num_scan_inputs", 2));
    output("z");
    compiled c = compile_program(imported());
    const DLTensor s = tensor_of(f32, &zero, 0, NULL), a = tensor_of(f32, x, 1, &(int64_t){3}),
                   b = tensor_of(f32, x, 1, &(int64_t){4});
    gives(&c, (const DLTensor[]){s, a, a}, 3, 0, 0, NULL, &sum);
    fails(&c, (const DLTensor[]){s, a, b}, 3,
          "operand 2 runs along i64[m], expected i64[n]: dimension 0 differs: 4 and 3");
    discard(&c);
}

/* ---- errors name the node ---- */

/* A loop whose body gathers from x by the number that it is given; `name`: of the node, or "". */
static void open_gather_loop(const char *name)
{
    open_model(13);
    input("x", 1, "n");
    input("y", 1, "m");
    scalar_input("times", 7);
    open_body();
    body_input("i");
    body_input("go");
    body_input("s");
    node("Add", "s,y", "next", NULL);
    g->node[g->n_node - 1]->name = (char *)(uintptr_t)name;
    node("Identity", "go", "on", NULL);
    output("on");
    output("next");
    Onnx__AttributeProto *body = close_body("body");
    node("Loop", "times,,x", "z", body);
    output("z");
}

/* The run of the loop with 3 and 4 elements ends with these words. */
static void loop_says(const char *name, const char *words)
{
    const float x[] = {1, 2, 3, 4};
    const int64_t times = 2;

    open_gather_loop(name);
    compiled c = compile_program(imported());
    const DLTensor in[] = {tensor_of(f32, x, 1, &(int64_t){3}), tensor_of(f32, x, 1, &(int64_t){4}),
                           tensor_of(i64, &times, 0, NULL)};
    fails(&c, in, 3, words);
    discard(&c);
}

Test(onnx_control, an_error_in_a_body_names_the_node)
{
    loop_says("grow", "node 'grow' (Add): add 'grow': dimension 0 of operand 0 's'");
    loop_says("", "node 'next' (Add): add 'next': dimension 0 of operand 0 's'");
}

/* An input belongs to no node: the model's file is its place. */
Test(onnx_control, an_input_that_does_not_fit_names_the_model)
{
    const float x[] = {1, 2, 3, 4};

    open_model(13);
    scalar_input("c", 9);
    input("x", 1, "n");
    input("y", 1, "n");
    open_body();
    node("Add", "x,y", "sum", NULL);
    output("sum");
    Onnx__AttributeProto *then = close_body("then_branch");
    open_body();
    node("Sub", "x,y", "difference", NULL);
    output("difference");
    Onnx__AttributeProto *otherwise = close_body("else_branch");
    node("If", "c", "z", then, otherwise);
    output("z");
    compiled c = compile_program(imported());
    const DLTensor in[] = {tensor_of(boolean, &(bool){true}, 0, NULL), tensor_of(f32, x, 1, &(int64_t){3}),
                           tensor_of(f32, x, 1, &(int64_t){4})};
    fails(&c, in, 3, "m.onnx: input 'y': expected f32[n]; dimension 0, expected and found: 3 and 4");
    fails(&c, (const DLTensor[]){in[0], in[1], in[0]}, 3, "m.onnx: input 'y': expected f32[?], found bool");
    discard(&c);
}
