/* tests/graph/onnx/known.c -- shapes, pads and bounds that nodes compute from constants and from symbolic
 * dimensions. */
#include "tests/graph/onnx/kit.h"

TestSuite(onnx_known, .init = open_context, .fini = close_context);

/* A constant of any rank. */
static void table(const char *name, const int64_t *v, size_t n, const int64_t *dims, size_t rank)
{
    raw(tensor(name, 7, dims, rank), v, n * sizeof *v);
}

/* Pairs of pads from the last dimension on, turned round and taken apart: the way exporters write a Pad. */
Test(onnx_known, pads_that_were_turned_round_by_slice_and_transpose)
{
    open_model(13);
    input("x", 1, "2", "3", "n");
    INT64S("some", 1, 2, 0, 3);
    INT64S("two", 2);
    INT64S("pairs", -1, 2);
    INT64S("last", -1);
    INT64S("before_first", -9223372036854775807);
    INT64S("rows", 0);
    Onnx__AttributeProto *zero = attr_int("value", 0);
    zero->has_i = false;
    zero->t = tensor("zero", 7, (const int64_t[]){1}, 1);
    raw(zero->t, (const int64_t[]){0}, sizeof(int64_t));
    node("ConstantOfShape", "two", "zeros", zero);
    node("Concat", "some,zeros", "all", attr_int("axis", 0));
    node("Reshape", "all,pairs", "matrix", NULL);
    node("Slice", "matrix,last,before_first,rows,last", "turned", NULL);
    node("Transpose", "turned", "columns", INTS("perm", 1, 0));
    node("Reshape", "columns,last", "flat", NULL);
    node("Cast", "flat", "pads", attr_int("to", 7));
    node("Pad", "x,pads", "y", NULL);
    output("y");
    TYPE_IS("f32[2, 6, n + 3]");
}

/* A shape from one piece for each of many inputs, as an exporter writes the sum of their lengths. */
Test(onnx_known, a_concatenation_of_many_pieces)
{
    enum { MANY = 100 };
    const char *pieces = "";

    open_model(13);
    input("x", 1, "n", "100");
    for (int i = 0; i < MANY; i++) {
        INT64S(base_format(cx, "p%d", i), i == 1 ? -1 : 1);
        pieces = base_format(cx, "%s%sp%d", pieces, i ? "," : "", i);
    }
    node("Concat", pieces, "all", attr_int("axis", 0));
    INT64S("first", 0);
    INT64S("third", 3);
    node("Slice", "all,first,third", "shape", NULL);
    node("Reshape", "x,shape", "y", NULL);
    output("y");
    TYPE_IS("f32[1, n * 100, 1]");
}

Test(onnx_known, shapes_with_minus_one_for_what_stays)
{
    open_model(13);
    input("x", 1, "n", "1", "4");
    INT64S("want", -1, 5, 4);
    INT64S("minus_one", -1);
    INT64S("ones", 1, 1, 1);
    node("Equal", "want,minus_one", "stays", NULL);
    node("Where", "stays,ones,want", "shape", NULL);
    node("Expand", "x,shape", "y", NULL);
    output("y");
    TYPE_IS("f32[n, 5, 4]");
}

Test(onnx_known, comparisons_choose_between_dimensions)
{
    static const struct {
        const char *op, *type;
    } cases[] = {{"Less", "f32[n, 10, 21, 22]"},
                 {"Greater", "f32[n, 20, 11, 22]"},
                 {"LessOrEqual", "f32[n, 10, 21, 12]"},
                 {"GreaterOrEqual", "f32[n, 20, 11, 12]"}};

    for (int i = 0; i < BASE_COUNT(cases); i++) {
        open_model(13);
        input("x", 1, "n", "1", "1", "1");
        INT64S("a", 0, 3, 5, 4);
        INT64S("b", 1, 8, 2, 4);
        INT64S("yes", 9, 10, 11, 12);
        INT64S("no", 9, 20, 21, 22);
        INT64S("axes", 0, 1, 2, 3);
        INT64S("first", 0);
        node("Shape", "x", "extents", NULL);
        node(cases[i].op, "a,b", "which", NULL);
        node("Where", "which,yes,no", "picked", NULL);
        node("Equal", "axes,first", "is_batch", NULL);
        node("Where", "is_batch,extents,picked", "shape", NULL);
        node("Expand", "x,shape", "y", NULL);
        output("y");
        TYPE_IS(cases[i].type);
    }
}

Test(onnx_known, elements_of_tables)
{
    static const int64_t six[] = {1, 2, 3, 4, 5, 6}, dims[] = {2, 3}, pick[] = {-1, 0}, pick_dims[] = {2, 1};

    open_model(13);
    input("x", 1, "1", "1");
    table("table", six, 6, dims, 2);
    table("pick", pick, 2, pick_dims, 2);
    INT64S("flat", -1);
    INT64S("twice", 1, 1, 2);
    INT64S("starts", 2);
    node("Gather", "table,pick", "columns", attr_int("axis", 1));
    node("Tile", "columns,twice", "tiled", NULL);
    node("Reshape", "tiled,flat", "all", NULL);
    node("Slice", "all,starts,flat", "inner", NULL);
    INT64S("some", 0, 2);
    node("Gather", "inner,some", "shape", NULL);
    node("Expand", "x,shape", "y", NULL);
    output("y");
    TYPE_IS("f32[1, 6]");
}

/* x[:, ::-1] of no columns has none. */
Test(onnx_known, slices_backwards_over_an_empty_axis)
{
    open_model(13);
    input("x", 1, "3", "0");
    INT64S("starts", -1);
    INT64S("ends", -9223372036854775807);
    INT64S("axes", 1);
    INT64S("steps", -1);
    node("Slice", "x,starts,ends,axes,steps", "y", NULL);
    output("y");
    TYPE_IS("f32[3, 0]");
}
