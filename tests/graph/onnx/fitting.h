/* tests/graph/onnx/fitting.h -- random nodes whose operands fit each other: recurrent operators, subgraphs,
 * windows and extents that only the run knows. Nodes with operands drawn from all values rarely get behind
 * the first check of such operators.
 */
#ifndef TESTS_GRAPH_ONNX_FITTING_H
#define TESTS_GRAPH_ONNX_FITTING_H

#include "tests/graph/onnx/bodies.h"
#include "tests/graph/onnx/draw.h"

/* A name of a value that others of the model may use. */
static inline const char *fresh(void)
{
    return base_format(cx, "f%d", n_values * 100 + below(100));
}

/* ---- recurrent operators ---- */

/* A recurrent operator whose operands fit: weights that fit by chance are too rare. */
static inline void add_recurrent(void)
{
    static const char *const ops[] = {"RNN", "GRU", "LSTM"}, *const directions[] = {"forward", "reverse",
                                                                                    "bidirectional"};
    static const float zeros[4096];
    int which = below(3), gates = which == 0 ? 1 : which == 1 ? 3 : 4, way = below(3), two = way == 2 ? 2 : 1;
    const char *x = base_format(cx, "x%d", n_values), *w = base_format(cx, "w%d", n_values),
               *r = base_format(cx, "r%d", n_values), *b = base_format(cx, "b%d", n_values);

    input_of(x, 1, (const char *const[]){chance(90) ? "3" : "n", "2", "4", NULL});
    raw(tensor(w, 1, (const int64_t[]){two, gates * 2, 4}, 3), zeros, (size_t)(two * gates * 8 * 4));
    raw(tensor(r, 1, (const int64_t[]){two, gates * 2, 2}, 3), zeros, (size_t)(two * gates * 4 * 4));
    raw(tensor(b, 1, (const int64_t[]){two, gates * 4}, 2), zeros, (size_t)(two * gates * 4 * 4));
    Onnx__NodeProto *p = node_of(
        ops[which], base_format(cx, "%s,%s,%s%s%s", x, w, r, chance(60) ? "," : "", chance(60) ? b : ""),
        base_format(cx, "v%d,v%d", n_values, n_values + 1), (Onnx__AttributeProto *const[]){NULL});
    new_value();
    new_value();
    PUSH(p, attribute, attr_string("direction", directions[way]));
    if (chance(30))
        PUSH(p, attribute, attr_float("clip", (float)some_int() / 2));
    if (chance(30))
        PUSH(p, attribute, attr_int("hidden_size", 2));
    if (which == 1 && chance(50))
        PUSH(p, attribute, attr_int("linear_before_reset", 1));
}

/* ---- subgraphs ---- */

static inline const char *element_wise(void)
{
    static const char *const ops[] = {"Neg", "Relu", "Identity", "Exp", "Foo", "NonZero", "Shape", "Not"};

    return chance(85) ? ops[below(3)] : PICK(ops);
}

/* A few nodes that begin with `from`, or with a value of the graph around; the name of the last one. */
static inline const char *add_chain(const char *from)
{
    const char *at = from && chance(80) ? from : value[below(n_values)];

    for (int i = below(3); i >= 0; i--) {
        const char *next = fresh();

        if (chance(25))
            node("Concat", base_format(cx, "%s,%s", at, chance(70) ? at : value[below(n_values)]), next,
                 attr_int("axis", 0));
        else if (chance(30))
            node("Add", base_format(cx, "%s,%s", at, chance(70) ? at : value[below(n_values)]), next, NULL);
        else
            node(element_wise(), at, next, NULL);
        at = next;
    }
    return at;
}

static inline const char *scalar_input(int elem_type)
{
    const char *name = new_value();

    input_of(name, elem_type, (const char *const[]){NULL});
    return name;
}

/* Outputs of a body that are missing, doubled or unknown now and then. */
static inline void body_output(const char *name)
{
    if (chance(98))
        output(chance(98) ? name : "nowhere");
    if (chance(1))
        output(name);
}

static inline Onnx__AttributeProto *branch(const char *name, int n_out)
{
    open_body();
    for (int k = 0; k < n_out; k++)
        body_output(add_chain(NULL));
    return close_body(name);
}

static inline const char *list_of(const char *stem, int n)
{
    base_text t = {0};

    for (int k = 0; k < n; k++)
        base_addf(cx, &t, "%s%s%d", k ? "," : "", stem, k);
    return base_text_str(cx, &t);
}

static inline void take_results(const char *stem, int n)
{
    for (int k = 0; k < n && n_values < MOST_VALUES; k++)
        value[n_values++] = base_format(cx, "%s%d", stem, k);
}

static inline void add_if(void)
{
    const char *condition = chance(80) ? scalar_input(9) : value[below(n_values)], *stem = fresh();
    int n = 1 + below(2);

    if (chance(20)) {
        condition = fresh();
        raw(tensor(condition, 9, NULL, 0), (const uint8_t[]){(uint8_t)below(2)}, 1);
    }
    node("If", condition, list_of(stem, n), branch("then_branch", n), branch("else_branch", n));
    take_results(stem, n);
}

/* Values that go around, some of which grow, and rows that are collected. */
static inline void add_loop(void)
{
    const char *trips = chance(50) ? scalar_input(7) : "", *go = chance(30) ? scalar_input(9) : "",
               *stem = fresh(), *in[3];
    int carried = below(3), rows = below(2) + !carried;
    base_text operands = {0};

    if (chance(30)) {
        trips = fresh();
        raw(tensor(trips, 7, NULL, 0), (const int64_t[]){some_int()}, 8);
    }
    base_addf(cx, &operands, "%s,%s", trips, go);
    for (int k = 0; k < carried; k++)
        base_addf(cx, &operands, ",%s", value[below(n_values)]);
    open_body();
    body_input("step");
    body_input("go_on");
    for (int k = 0; k < carried; k++)
        body_input(in[k] = fresh());
    node("Identity", chance(90) ? "go_on" : "step", "goes_on", NULL);
    body_output("goes_on");
    for (int k = 0; k < carried; k++)
        body_output(add_chain(in[k]));
    for (int k = 0; k < rows; k++)
        body_output(add_chain(carried ? in[0] : NULL));
    if (chance(10))
        add_if();
    node("Loop", base_text_str(cx, &operands), list_of(stem, carried + rows), close_body("body"));
    take_results(stem, carried + rows);
}

static inline Onnx__AttributeProto *small_ints(const char *name, int n, int below_what)
{
    int64_t v[4];

    for (int k = 0; k < 4; k++)
        v[k] = chance(95) ? below(below_what) : some_int();
    return attr_ints(name, v, (size_t)(chance(95) ? n : below(4)));
}

static inline void add_scan(int64_t opset)
{
    const char *stem = fresh(), *x = new_value(), *s = new_value(), *sum = fresh(), *row = fresh();
    const char *rows = chance(50) ? "n" : "3";

    input_of(x, 1,
             opset < 9 ? (const char *const[]){"2", rows, "3", NULL}
                       : (const char *const[]){rows, "3", NULL});
    input_of(s, 1, opset < 9 ? (const char *const[]){"2", "3", NULL} : (const char *const[]){"3", NULL});
    open_body();
    body_input(sum);
    body_input(row);
    node("Add", base_format(cx, "%s,%s", sum, row), "added", NULL);
    body_output("added");
    body_output(add_chain("added"));
    Onnx__NodeProto *p = node("Scan", base_format(cx, "%s%s,%s", opset < 9 ? "," : "", s, x),
                              list_of(stem, 2), close_body("body"));
    PUSH(p, attribute, attr_int("num_scan_inputs", chance(97) ? 1 : some_int()));
    if (opset >= 9 && chance(40))
        PUSH(p, attribute, small_ints("scan_input_axes", 1, 2));
    if (chance(30))
        PUSH(p, attribute, small_ints(opset < 9 ? "directions" : "scan_input_directions", 1, 2));
    if (opset >= 9 && chance(30))
        PUSH(p, attribute, small_ints("scan_output_axes", 1, 2));
    if (opset >= 9 && chance(30))
        PUSH(p, attribute, small_ints("scan_output_directions", 1, 2));
    take_results(stem, 2);
}

/* ---- Resize ---- */

static inline void add_resize(void)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "area"},
                             *const places[] = {"half_pixel",   "pytorch_half_pixel", "align_corners",
                                                "asymmetric",   "tf_crop_and_resize", "half_pixel_symmetric",
                                                "tf_half_pixel"},
                             *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const float scales[] = {2, 0.5f, 1, 3, 1.5f, 0.3f, 0, -1, 1e9f, 0.1f};
    const char *x = new_value(), *scale = fresh(), *sizes = fresh(), *roi = "";
    float by[4] = {1, 1};
    const int64_t to[4] = {1, 2, 1 + below(9), chance(95) ? 1 + below(9) : some_int()};
    bool by_sizes = chance(40);

    input_of(x, 1,
             (const char *const[]){"1", chance(95) ? "2" : "n", chance(50) ? "n" : "4",
                                   chance(30) ? "m" : "5", NULL});
    for (int k = 2; k < 4; k++)
        by[k] = chance(90) ? scales[below(4)] : PICK(scales);
    raw(tensor(scale, 1, (const int64_t[]){4}, 1), by, sizeof by);
    int64s(sizes, to, chance(97) ? 4 : 3);
    const char *place = PICK(places);
    if (base_same(place, "tf_crop_and_resize") || chance(10)) {
        static const float box[8] = {0, 0, 0.2f, 0.1f, 1, 1, 0.8f, 1.2f};

        roi = fresh();
        raw(tensor(roi, 1, (const int64_t[]){8}, 1), box, sizeof box);
    }
    Onnx__NodeProto *p = node("Resize",
                              by_sizes ? base_format(cx, "%s,%s,,%s", x, roi, sizes)
                                       : base_format(cx, "%s,%s,%s", x, roi, scale),
                              new_value(), attr_string("mode", chance(97) ? modes[below(3)] : PICK(modes)));
    PUSH(p, attribute, attr_string("coordinate_transformation_mode", place));
    if (chance(50))
        PUSH(p, attribute, attr_string("nearest_mode", PICK(nearest)));
    if (chance(30))
        PUSH(p, attribute, attr_int("exclude_outside", below(2)));
    if (chance(20))
        PUSH(p, attribute, attr_float("extrapolation_value", 7));
    if (chance(20))
        PUSH(p, attribute, attr_int("antialias", below(2)));
    if (by_sizes && chance(20))
        PUSH(p, attribute,
             attr_string("keep_aspect_ratio_policy", chance(50)   ? "not_larger"
                                                     : chance(50) ? "not_smaller"
                                                                  : "stretch"));
}

/* ---- extents from shapes ---- */

/* Integers that the import follows: an extent of x, or the difference of two, or what an input holds. */
static inline const char *add_size(const char *x)
{
    const char *shape = fresh(), *size = fresh(), *zero = fresh(), *sum = fresh();

    if (chance(10)) {
        const char *name = new_value();

        input_of(name, 7, (const char *const[]){"1", NULL});
        return name;
    }
    INT64S(zero, below(2));
    node("Shape", x, shape, NULL);
    node("Gather", base_format(cx, "%s,%s", shape, zero), size, attr_int("axis", 0));
    if (chance(60))
        return size;
    node(chance(50)   ? "Add"
         : chance(50) ? "Sub"
                      : "Mul",
         base_format(cx, "%s,%s", size, chance(50) ? zero : size), sum, NULL);
    return sum;
}

/* Pad, Split, Expand, Slice or Reshape of f32[n, 4] by numbers that shapes give. */
static inline void add_sized(int64_t opset)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const char *x = new_value(), *numbers = fresh(), *stem = fresh();
    int which = below(5), n = which == 0 ? 4 : 2;
    base_text parts = {0};

    input_of(x, 1, (const char *const[]){"n", chance(70) ? "4" : "m", NULL});
    for (int k = 0; k < n; k++) {
        const char *part = fresh();

        if (chance(50))
            INT64S(part, chance(90) ? below(4) - (which == 0) : some_int());
        else
            part = add_size(x);
        base_addf(cx, &parts, "%s%s", k ? "," : "", part);
    }
    node("Concat", base_text_str(cx, &parts), numbers, attr_int("axis", 0));
    if (which == 0)
        node("Pad", base_format(cx, "%s,%s", x, numbers), list_of(stem, 1), attr_string("mode", PICK(modes)));
    else if (which == 1)
        node("Split", opset >= 13 && chance(80) ? base_format(cx, "%s,%s", x, numbers) : x, list_of(stem, 2),
             attr_int("axis", below(2)));
    else if (which == 2)
        node("Slice", base_format(cx, "%s,%s,%s", x, chance(50) ? numbers : add_size(x), numbers),
             list_of(stem, 1), NULL);
    else
        node(which == 3 ? "Expand" : "Reshape", base_format(cx, "%s,%s", x, numbers), list_of(stem, 1), NULL);
    take_results(stem, which == 1 ? 2 : 1);
}

#endif
