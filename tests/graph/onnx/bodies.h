/* tests/graph/onnx/bodies.h -- subgraphs of If, Loop and Scan.
 *
 *     open_body();
 *     body_input("i");
 *     node("Neg", "i", "minus", NULL);
 *     output("minus");
 *     node("Loop", "trips,,x", "y", close_body("body"));
 */
#ifndef TESTS_GRAPH_ONNX_BODIES_H
#define TESTS_GRAPH_ONNX_BODIES_H

#include "tests/graph/onnx/kit.h"

static Onnx__GraphProto *outer[4];
static int depth;

/* What is added from here on belongs to a subgraph. */
static inline void open_body(void)
{
    outer[depth++] = g;
    g = MESSAGE(Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
}

static inline Onnx__AttributeProto *close_body(const char *name)
{
    Onnx__AttributeProto *a = MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);

    a->name = (char *)name;
    a->has_type = true;
    a->type = 5;
    a->g = g;
    g = outer[--depth];
    return a;
}

/* An input of a body: only its name is read. */
static inline void body_input(const char *name)
{
    Onnx__ValueInfoProto *info = MESSAGE(Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);

    info->name = (char *)name;
    PUSH(g, input, info);
}

#endif
