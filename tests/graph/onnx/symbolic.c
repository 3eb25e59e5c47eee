/* tests/graph/onnx/symbolic.c -- Split, Pad, Expand, Slice, TopK, CumSum and Resize of symbolic extents, by
 * sizes and axes that the model computes from shapes or that are inputs: compiled once, run at several
 * extents.
 *
 * The expected elements are those of ONNX Runtime.
 */
#include "tests/graph/onnx/run.h"

TestSuite(onnx_symbolic, .init = open_context, .fini = close_context);

static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static compiled now; /* the model at hand */

static void compile(void)
{
    now = compile_program(imported());
}

static void done(void)
{
    discard(&now);
}

/* A model of x: float, with these extents. */
#define open_x(opset, ...) (open_model(opset), input("x", 1, __VA_ARGS__))

/* The last node makes y, the model's output. */
#define compile_node(op, in, ...) (node(op, in, "y", __VA_ARGS__), output("y"), compile())

/* A tensor of the numbers above, or of the integers that are given. */
static tec_object *object(const int64_t *integers, int rank, const int64_t *shape)
{
    tec_error err = {0};
    const DLTensor t =
        integers ? tensor_of(i64, integers, rank, shape) : tensor_of(f32, numbers, rank, shape);
    tec_object *made = tec_object_tensor(now.program, &t, &err);

    cr_assert(made, "%s", err.text);
    return made;
}

typedef struct {
    int64_t rows, columns; /* of x; columns 0: x has one dimension */
    const int64_t *sizes;  /* a second input; NULL: there is none */
    int64_t n_sizes;
    bool image; /* x has two dimensions of 1 in front */
} call;

/* Runs the program; false where it is refused, with the reason in *err. */
static bool run(const call *c, tec_object **out, tec_error *err)
{
    const int64_t shape[] = {1, 1, c->rows, c->columns};
    tec_object *in[2] = {object(NULL, c->image ? 4 : c->columns ? 2 : 1, c->image ? shape : shape + 2), NULL};
    int n = 1;

    if (c->sizes)
        in[n++] = object(c->sizes, 1, &c->n_sizes);
    bool good = tec_program_run(now.program, in, n, out, tec_program_n_outputs(now.program), err);
    for (int i = 0; i < n; i++)
        tec_object_free(in[i]);
    return good;
}

/* Output `which` has these elements, whatever its shape. */
static void gives(call c, int which, const double *expected, int64_t count)
{
    tec_error err = {0};
    tec_object *out[4] = {NULL};

    cr_assert(run(&c, out, &err), "%s", err.text);
    has_elements(tec_object_dltensor(out[which]), expected, count, 1e-6);
    for (int i = 0; i < tec_program_n_outputs(now.program); i++)
        tec_object_free(out[i]);
}

static call x1(int64_t extent)
{
    return (call){.rows = extent};
}

static call x2(int64_t rows, int64_t columns)
{
    return (call){.rows = rows, .columns = columns};
}

static call x4(int64_t rows, int64_t columns)
{
    return (call){.rows = rows, .columns = columns, .image = true};
}

/* x and sizes. */
static call with_sizes(call c, const int64_t *sizes, int64_t count)
{
    c.sizes = sizes;
    c.n_sizes = count;
    return c;
}
#define SIZES(x, ...)                                                                                        \
    with_sizes((x), (const int64_t[]){__VA_ARGS__},                                                          \
               (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

#define GIVES(c, which, ...)                                                                                 \
    gives((c), (which), (const double[]){__VA_ARGS__},                                                       \
          (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static void refuses(call c, const char *reason)
{
    tec_error err = {0};
    tec_object *out[4] = {NULL};

    cr_assert_not(run(&c, out, &err));
    cr_assert(strstr(err.text, reason), "expected: %s\nfound:    %s", reason, err.text);
}

/* `half`: n / 2 as i64[1], of x: f32[n]. */
static void open_half(int64_t opset)
{
    open_x(opset, "n");
    INT64S("zero", 0);
    INT64S("one", 1);
    INT64S("two", 2);
    node("Shape", "x", "n", NULL);
    node("Div", "n,two", "half", NULL);
}

/* `m` as i64[1], of x: f32[2, m]. */
static void open_columns(void)
{
    open_x(13, "2", "m");
    INT64S("last", 1);
    INT64S("two", 2);
    node("Shape", "x", "shape", NULL);
    node("Gather", "shape,last", "m", NULL);
}

/* ---- split ---- */

/* Both parts are outputs. */
static void split_in_two(const char *in)
{
    node("Split", in, "a,b", NULL);
    output("a");
    output("b");
}

Test(onnx_symbolic, split_by_sizes_of_a_shape)
{
    open_half(13);
    node("Sub", "n,half", "rest", NULL);
    node("Concat", "half,rest", "sizes", attr_int("axis", 0));
    split_in_two("x,sizes");
    compile();
    GIVES(x1(6), 0, 1, 2, 3);
    GIVES(x1(7), 0, 1, 2, 3);
    GIVES(x1(7), 1, 4, 5, 6, 7);
    GIVES(x1(1), 1, 1);
    done();
}

/* Nothing proves that n is 3 or more. */
Test(onnx_symbolic, split_of_a_fixed_first_part)
{
    open_half(13);
    INT64S("three", 3);
    node("Sub", "n,three", "rest", NULL);
    node("Concat", "three,rest", "sizes", attr_int("axis", 0));
    split_in_two("x,sizes");
    compile();
    GIVES(x1(5), 0, 1, 2, 3);
    GIVES(x1(5), 1, 4, 5);
    refuses(x1(2), "n");
    done();
}

/* Parts that are equal may be multiplied with each other. */
Test(onnx_symbolic, split_in_equal_parts)
{
    open_x(13, "2", "m");
    node("Split", "x", "a,b", attr_int("axis", -1));
    compile_node("Mul", "a,b", NULL);
    GIVES(x2(2, 6), 0, 1 * 4, 2 * 5, 3 * 6, 7 * 10, 8 * 11, 9 * 12);
    refuses(x2(2, 5), "m");
    done();
}

Test(onnx_symbolic, split_in_parts_of_which_the_last_is_smaller)
{
    open_x(18, "n");
    node("Split", "x", "a,b,c", attr_int("num_outputs", 3));
    output("a");
    output("c");
    compile();
    GIVES(x1(8), 0, 1, 2, 3);
    GIVES(x1(8), 1, 7, 8);
    GIVES(x1(6), 1, 5, 6);
    done();
}

Test(onnx_symbolic, split_by_sizes_that_are_an_input)
{
    open_x(13, "n");
    input("sizes", 7, "2");
    split_in_two("x,sizes");
    compile();
    GIVES(SIZES(x1(5), 2, 3), 0, 1, 2);
    GIVES(SIZES(x1(5), 2, 3), 1, 3, 4, 5);
    GIVES(SIZES(x1(5), 5, 0), 0, 1, 2, 3, 4, 5);
    refuses(SIZES(x1(5), 2, 2), "==");
    refuses(SIZES(x1(5), 6, -1), "element 1 is negative");
    done();
}

/* Each part is empty, whatever the sizes are called. */
Test(onnx_symbolic, split_of_nothing)
{
    tec_error err = {0};
    tec_object *out[4] = {NULL};
    const call good = SIZES(x1(0), 0, 0);

    open_x(13, "0");
    input("sizes", 7, "2");
    split_in_two("x,sizes");
    compile();
    cr_assert(run(&good, out, &err), "%s", err.text);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(tec_tensor_elements(tec_object_dltensor(out[i])), 0);
        tec_object_free(out[i]);
    }
    refuses(SIZES(x1(0), 1, 0), "==");
    done();
}

Test(onnx_symbolic, split_needs_a_size_for_each_part)
{
    open_half(13);
    node("Concat", "half,half,n", "sizes", attr_int("axis", 0));
    split_in_two("x,sizes");
    refused(TEC_INVALID,
            "m.onnx: error: node 'the_a,b' (Split): expected one size for each result, found 3 sizes "
            "for 2 results");
}

/* What the one node needs and the other one needs has no input in common. */
Test(onnx_symbolic, needs_that_rule_each_other_out)
{
    open_x(13, "n");
    INT64S("crop", -1, -4);
    INT64S("two", 2);
    node("Pad", "x,crop", "y", NULL);
    node("Reshape", "x,two", "z", NULL);
    output("y");
    output("z");
    refused(TEC_INVALID,
            "m.onnx: node 'the_z' (Reshape): error: reshape 'the_z' needs n == 2, which what stands "
            "before rules out: the model could never run");
}

/* ---- pad ---- */

/* To a multiple of 4: (-n) mod 4 zeros behind. */
Test(onnx_symbolic, pad_to_a_multiple)
{
    open_half(13);
    INT64S("four", 4);
    node("Neg", "n", "minus", NULL);
    node("Mod", "minus,four", "missing", NULL);
    node("Concat", "zero,missing", "pads", attr_int("axis", 0));
    compile_node("Pad", "x,pads", NULL);
    GIVES(x1(6), 0, 1, 2, 3, 4, 5, 6, 0, 0);
    GIVES(x1(4), 0, 1, 2, 3, 4);
    done();
}

/* [half, 1] pads by each mode. */
static void open_pad(const char *mode)
{
    open_half(19);
    node("Concat", "half,one", "pads", attr_int("axis", 0));
    compile_node("Pad", "x,pads", attr_string("mode", mode));
}

Test(onnx_symbolic, pad_by_copies)
{
    open_pad("edge");
    GIVES(x1(4), 0, 1, 1, 1, 2, 3, 4, 4);
    GIVES(x1(1), 0, 1, 1);
    done();
    open_pad("reflect");
    GIVES(x1(4), 0, 3, 2, 1, 2, 3, 4, 3);
    done();
    open_pad("wrap");
    GIVES(x1(5), 0, 4, 5, 1, 2, 3, 4, 5, 1);
    refuses(x1(0), "n");
    done();
}

/* Columns cropped by half of them, with a value that is not 0 elsewhere. */
Test(onnx_symbolic, pad_by_less_than_nothing)
{
    const float seven = 7;

    open_columns();
    INT64S("none", 0, 0);
    INT64S("nothing", 0);
    raw(tensor("value", 1, NULL, 0), &seven, sizeof seven);
    node("Sub", "two,m", "change", NULL);
    node("Concat", "none,nothing,change", "pads", attr_int("axis", 0));
    compile_node("Pad", "x,pads,value", NULL);
    GIVES(x2(2, 4), 0, 1, 2, 5, 6);
    GIVES(x2(2, 1), 0, 1, 7, 2, 7);
    done();
}

Test(onnx_symbolic, pad_by_an_input)
{
    open_x(13, "n");
    input("pads", 7, "2");
    compile_node("Pad", "x,pads", NULL);
    GIVES(SIZES(x1(3), 2, 1), 0, 0, 0, 1, 2, 3, 0);
    GIVES(SIZES(x1(3), 0, 0), 0, 1, 2, 3);
    refuses(SIZES(x1(3), -1, 0), "element 0 is negative");
    done();
}

/* Fused loops over four extents that are sums with symbols are not proven parallel; the outermost is. */
Test(onnx_symbolic, pad_of_four_dimensions_by_an_input)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};

    for (int i = 0; i < BASE_COUNT(modes); i++) {
        open_x(19, "1", "1", "h", "w");
        input("pads", 7, "8");
        compile_node("Pad", "x,pads", attr_string("mode", modes[i]));
        GIVES(SIZES(x4(2, 2), 0, 0, 0, 0, 0, 0, 0, 0), 0, 1, 2, 3, 4);
        if (i == 0)
            GIVES(SIZES(x4(2, 2), 0, 0, 1, 0, 0, 0, 0, 1), 0, 0, 0, 0, 1, 2, 0, 3, 4, 0);
        else
            GIVES(SIZES(x4(2, 1), 0, 0, 0, 0, 0, 0, 1, 0), 0, 1, 2, i == 1 ? 2 : 1);
        refuses(SIZES(x4(2, 2), 0, 0, -1, 0, 0, 0, 0, 1), "element 2 is negative");
        done();
    }
}

/* ---- order ---- */

Test(onnx_symbolic, top_k_of_a_number_that_is_an_input)
{
    open_x(11, "n");
    input("k", 7, "1");
    node("TopK", "x,k", "y,at", NULL);
    output("y");
    compile();
    GIVES(SIZES(x1(5), 2), 0, 5, 4);
    GIVES(SIZES(x1(3), 3), 0, 3, 2, 1);
    refuses(SIZES(x1(5), 6), "n");
    refuses(SIZES(x1(5), -1), "element 0 is negative");
    done();
}

Test(onnx_symbolic, top_k_of_half_of_a_row)
{
    open_columns();
    node("Div", "m,two", "half", NULL);
    node("TopK", "x,half", "y,at", attr_int("largest", 0));
    output("y");
    TYPE_IS("f32[2, floordiv(m, 2)]");
    compile();
    GIVES(x2(2, 4), 0, 1, 2, 5, 6);
    GIVES(x2(2, 3), 0, 1, 4);
    done();
}

Test(onnx_symbolic, cum_sum_along_an_axis_that_is_an_input)
{
    open_x(14, "n", "m");
    input("axis", 7, "1");
    compile_node("CumSum", "x,axis", NULL);
    GIVES(SIZES(x2(2, 3), 0), 0, 1, 2, 3, 5, 7, 9);
    GIVES(SIZES(x2(2, 3), 1), 0, 1, 3, 6, 4, 9, 15);
    GIVES(SIZES(x2(3, 2), -1), 0, 1, 3, 3, 7, 5, 11);
    refuses(SIZES(x2(2, 3), 2), "< 2");
    refuses(SIZES(x2(2, 3), -3), "element 0 is negative");
    done();
}

Test(onnx_symbolic, an_axis_is_one_number)
{
    open_x(14, "n", "m");
    input("axis", 7, "2");
    node("CumSum", "x,axis", "y", NULL);
    output("y");
    refused(TEC_INVALID,
            "m.onnx: error: node 'the_y' (CumSum): expected an axis of an operand with dimensions, "
            "found 2 numbers for 2 dimensions");
}

/* ---- resize ---- */

/* x: f32[1, 1, h, w] by a size of rows and columns that is an input. */
static void open_resize(const char *mode, const char *coordinates)
{
    open_x(18, "1", "1", "h", "w");
    input("size", 7, "2");
    compile_node("Resize", "x,,,size", attr_string("mode", mode),
                 attr_string("coordinate_transformation_mode", coordinates), INTS("axes", 2, 3));
}

Test(onnx_symbolic, resize_to_a_size_that_is_an_input)
{
    open_resize("linear", "half_pixel");
    GIVES(SIZES(x4(2, 2), 2, 4), 0, 1, 1.25, 1.75, 2, 3, 3.25, 3.75, 4);
    GIVES(SIZES(x4(2, 4), 1, 2), 0, 3.5, 5.5);
    refuses(SIZES(x4(2, 2), 0, 4), ">= 1");
    done();
    open_resize("linear", "align_corners");
    GIVES(SIZES(x4(2, 2), 2, 3), 0, 1, 1.5, 2, 3, 3.5, 4);
    GIVES(SIZES(x4(1, 3), 1, 1), 0, 1);
    done();
    open_resize("cubic", "half_pixel");
    GIVES(SIZES(x4(1, 4), 1, 2), 0, 1.40625, 3.59375);
    done();
}

Test(onnx_symbolic, resize_by_the_nearest)
{
    open_resize("nearest", "half_pixel");
    GIVES(SIZES(x4(2, 2), 3, 3), 0, 1, 1, 2, 1, 1, 2, 3, 3, 4);
    done();
    open_resize("nearest", "asymmetric");
    GIVES(SIZES(x4(1, 4), 1, 3), 0, 1, 2, 4);
    done();
}

/* By whole factors elements stand beside themselves, whatever the extents are; by others they are picked. */
Test(onnx_symbolic, resize_of_symbolic_extents_by_scales)
{
    open_x(13, "1", "1", "h", "w");
    FLOATS("scales", 1, 1, 2, 1.5F);
    node("Resize", "x,,scales", "y", attr_string("coordinate_transformation_mode", "asymmetric"),
         attr_string("nearest_mode", "floor"));
    output("y");
    TYPE_IS("f32[1, 1, h * 2, floordiv(w * 3, 2)]");
    cr_assert(strstr(graph_text(cx, imported(), 0), "op repeat"));
    compile();
    GIVES(x4(2, 2), 0, 1, 1, 2, 1, 1, 2, 3, 3, 4, 3, 3, 4);
    GIVES(x4(1, 3), 0, 1, 1, 2, 3, 1, 1, 2, 3);
    done();
}

/* A second input of floats: x itself, of which the first two numbers are 1 and 2. */
Test(onnx_symbolic, resize_by_scales_of_the_run)
{
    open_x(13, "1", "2");
    INT64S("one", 2);
    node("Reshape", "x,one", "scales", NULL);
    compile_node("Resize", "x,,scales", attr_string("mode", "linear"));
    GIVES(x2(1, 2), 0, 1, 1.25, 1.75, 2);
    done();
}

/* As a decoder does: rows and columns of another tensor; batch and channels stay and cost nothing. */
Test(onnx_symbolic, resize_to_the_size_of_another_tensor)
{
    open_x(13, "1", "c", "3", "4");
    input("z", 1, "1", "2", "p", "q");
    INT64S("zero", 0);
    INT64S("two", 2);
    INT64S("four", 4);
    node("Shape", "x", "of_x", NULL);
    node("Shape", "z", "of_z", NULL);
    node("Slice", "of_x,zero,two", "outer", NULL);
    node("Slice", "of_z,two,four", "inner", NULL);
    node("Concat", "outer,inner", "size", attr_int("axis", 0));
    node("Resize", "x,,,size", "y", NULL);
    output("y");
    TYPE_IS("f32[1, c, p, q]");
}

/* A smaller result is smoothed over as many elements as the scale asks for, whatever the extents are. */
Test(onnx_symbolic, resize_with_antialias_by_scales)
{
    open_x(18, "1", "1", "h", "w");
    FLOATS("scales", 1, 1, 1, 0.5F);
    compile_node("Resize", "x,,scales", attr_string("mode", "linear"), attr_int("antialias", 1));
    GIVES(x4(2, 4), 0, 1.625, 3.375, 5.625, 7.375);
    GIVES(x4(3, 4), 0, 1.625, 3.375, 5.625, 7.375, 9.625, 11.375);
    done();
    open_x(18, "1", "1", "h", "w");
    FLOATS("scales", 1, 1, 1, 0.25F);
    compile_node("Resize", "x,,scales", attr_string("mode", "cubic"), attr_int("antialias", 1),
                 attr_int("exclude_outside", 1));
    GIVES(x4(1, 9), 0, 2.529936, 6.62458);
    done();
    /* A larger one is not. */
    open_x(18, "1", "1", "h", "w");
    FLOATS("scales", 1, 1, 1, 1.5F);
    compile_node("Resize", "x,,scales", attr_string("mode", "linear"), attr_int("antialias", 1));
    GIVES(x4(1, 2), 0, 1, 1.5, 2);
    done();
}

Test(onnx_symbolic, resize_of_a_region)
{
    static const char *const modes[] = {"linear", "nearest"};

    for (int i = 0; i < 2; i++) {
        open_x(18, "1", "1", "h", "w");
        INT64S("size", 1, 1, 2, 3);
        FLOATS("region", 0, 0, 0, .25F, 1, 1, 1, 1.25F);
        compile_node("Resize", "x,region,,size", attr_string("mode", modes[i]),
                     attr_string("coordinate_transformation_mode", "tf_crop_and_resize"),
                     attr_float("extrapolation_value", 9));
        if (i == 0)
            GIVES(x4(2, 4), 0, 1.75, 3.25, 9, 5.75, 7.25, 9);
        else
            GIVES(x4(2, 4), 0, 2, 3, 9, 6, 7, 9);
        done();
    }
    open_x(18, "1", "1", "h", "w");
    INT64S("size", 1, 1, 1, 1);
    FLOATS("region", 0, 0, 0, .25F, 1, 1, 1, 1);
    compile_node("Resize", "x,region,,size", attr_string("mode", "linear"),
                 attr_string("coordinate_transformation_mode", "tf_crop_and_resize"));
    GIVES(x4(2, 4), 0, 4.875);
    GIVES(x4(4, 3), 0, 6.75);
    done();
    /* By a scale, the result has the extent of the region times the scale. */
    open_x(18, "1", "1", "h", "w");
    FLOATS("scales", 1, 1, 1, 2);
    FLOATS("region", 0, 0, 0, .25F, 1, 1, 1, .75F);
    node("Resize", "x,region,scales", "y", attr_string("mode", "linear"),
         attr_string("coordinate_transformation_mode", "tf_crop_and_resize"));
    output("y");
    TYPE_IS("f32[1, 1, h, w]");
    compile();
    GIVES(x4(1, 3), 0, 1.5, 2, 2.5);
    done();
}

Test(onnx_symbolic, resize_that_keeps_the_ratio)
{
    open_x(18, "1", "1", "h", "w");
    input("size", 7, "2");
    compile_node("Resize", "x,,,size", attr_string("keep_aspect_ratio_policy", "not_larger"),
                 INTS("axes", 2, 3), attr_string("mode", "linear"));
    GIVES(SIZES(x4(2, 4), 4, 4), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    GIVES(SIZES(x4(2, 2), 4, 2), 0, 1, 2, 3, 4);
    refuses(SIZES(x4(2, 4), 0, 4), ">= 1");
    done();
    open_x(18, "1", "1", "h", "w");
    INT64S("size", 4, 4);
    compile_node("Resize", "x,,,size", attr_string("keep_aspect_ratio_policy", "not_smaller"),
                 INTS("axes", 2, 3));
    GIVES(x4(2, 4), 0, 1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 5, 5, 6, 6, 7,
          7, 8, 8);
    GIVES(x4(4, 3), 0, 1, 2, 2, 3, 4, 5, 5, 6, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12);
    done();
}

Test(onnx_symbolic, resize_says_what_it_expects)
{
    open_x(18, "1", "1", "h", "w");
    INT64S("size", 1, 1, 2, 3);
    node("Resize", "x,,,size", "y", attr_string("mode", "linear"), attr_int("antialias", 1));
    output("y");
    refused(
        TEC_UNSUPPORTED,
        "m.onnx: error: 1 part of the model is not supported\n"
        "m.onnx: note: node 'the_y' (Resize): a symbolic dimension is resized with antialias by sizes, or "
        "by scales of the run; expected constant extents and sizes, or constant scales");
}

/* ---- expand ---- */

Test(onnx_symbolic, expand_to_extents_that_must_fit)
{
    open_x(13, "1", "k");
    input("shape", 7, "2");
    compile_node("Expand", "x,shape", NULL);
    GIVES(SIZES(x2(1, 3), 2, 3), 0, 1, 2, 3, 1, 2, 3);
    GIVES(SIZES(x2(1, 3), 2, 1), 0, 1, 2, 3, 1, 2, 3);
    refuses(SIZES(x2(1, 3), 2, 4), "==");
    done();
}

/* The shape has dimensions of its own: m must be k. */
Test(onnx_symbolic, expand_to_the_shape_of_another_tensor)
{
    open_x(13, "1", "k");
    input("w", 1, "n", "m");
    node("Shape", "w", "shape", NULL);
    node("Expand", "x,shape", "y", NULL);
    output("y");
    TYPE_IS("f32[n, k]");
}

Test(onnx_symbolic, expand_refuses_numbers_that_differ)
{
    open_x(13, "3", "n");
    INT64S("shape", 2, 1);
    node("Expand", "x,shape", "y", NULL);
    output("y");
    cr_assert_null(import_model());
    cr_assert(strstr(tec_context_error(cx), "does not broadcast"), "%s", tec_context_error(cx));
}

/* ---- reshape ---- */

/* The product demands d1 == 3; with that, what the reshape demanded before reads d0 * d2 * 3 == 3. */
Test(onnx_symbolic, reshape_whose_extents_are_known_later)
{
    open_x(13, "3");
    input("shape", 7, "3");
    FLOATS("w", 1, 2, 3);
    node("Reshape", "x,shape", "r", NULL);
    compile_node("MatMul", "w,r", NULL);
    gives(with_sizes(x1(3), (const int64_t[]){1, 3, 1}, 3), 0, (const double[]){14}, 1);
    refuses(with_sizes(x1(3), (const int64_t[]){3, 1, 1}, 3), "must be equal: 3 and 1");
    done();
}

/* ---- two slices of one tensor ---- */

/* The halves in the other order, as rotary position codes have them; the end as exporters write it. */
static void rotate(int64_t end)
{
    open_half(13);
    int64s("end", &end, 1);
    node("Slice", "x,zero,half", "a", NULL);
    node("Slice", "x,half,end", "b", NULL);
    node("Neg", "b", "minus_b", NULL);
    compile_node("Concat", "minus_b,a", attr_int("axis", 0));
    GIVES(x1(4), 0, -3, -4, 1, 2);
    GIVES(x1(5), 0, -3, -4, -5, 1, 2);
    done();
}

Test(onnx_symbolic, two_halves)
{
    const int64_t ends[] = {INT64_MAX, (int64_t)1 << 62, INT32_MAX};

    for (int i = 0; i < BASE_COUNT(ends); i++)
        rotate(ends[i]);
}

/* Neighbours: n - 1 elements each. */
Test(onnx_symbolic, all_but_the_first_and_all_but_the_last)
{
    open_half(13);
    INT64S("minus_one", -1);
    INT64S("end", (int64_t)1 << 62);
    node("Slice", "x,zero,minus_one", "a", NULL);
    node("Slice", "x,one,end", "b", NULL);
    compile_node("Mul", "a,b", NULL);
    GIVES(x1(4), 0, 2, 6, 12);
    done();
}

/* Backwards, down to the first of at most 3 elements: 2^62 and -2^62 are no places. */
Test(onnx_symbolic, backwards_from_far_behind)
{
    open_half(13);
    INT64S("start", (int64_t)1 << 62);
    INT64S("end", -((int64_t)1 << 62));
    INT64S("step", -2);
    compile_node("Slice", "x,start,end,zero,step", NULL);
    GIVES(x1(4), 0, 4, 2);
    GIVES(x1(5), 0, 5, 3, 1);
    done();
}

/* Columns of which there may be fewer than the slice has, backwards: the extent is a difference of a minimum
 * and a maximum, and rows and columns run as one parallel loop. */
Test(onnx_symbolic, backwards_over_some_columns_of_many_rows)
{
    open_x(13, "n", "m");
    INT64S("start", 10);
    INT64S("end", -11);
    INT64S("axis", 1);
    INT64S("step", -1);
    compile_node("Slice", "x,start,end,axis,step", NULL);
    GIVES(x2(2, 4), 0, 4, 3, 2, 1, 8, 7, 6, 5);
    done();
}
