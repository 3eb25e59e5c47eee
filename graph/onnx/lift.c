/* graph/onnx/lift.c -- leaves the bytes of large weights where they are: a copy of the model's message
 * without them is what gets unpacked.
 *
 *     ModelProto { graph { initializer { name: "w", raw_data: <9 MB> } } }
 *  => ModelProto { graph { initializer { name: "w", 1999: 0 } } }       weights->spans[0] = those 9 MB
 *
 * Unpacking copies every field. Models of gigabytes consist of weights nearly entirely, which the file's
 * mapping holds already. The field 1999 is none of ONNX's, so unpacking keeps it as an unknown one; its value
 * is the number of the span. A file that has such a field itself gets another tensor's bytes, or none, but no
 * others.
 *
 * A message is a sequence of fields: a key (number and kind), and for kind 2 a length and as many bytes. The
 * lengths of the messages around a weight shrink with it, so they are written anew.
 */
#include "graph/onnx/import.h"

enum {
    LIFTED_FIELD = 1999,
    RAW_DATA_FIELD = 9,
    TENSOR_LEVEL = 2,      /* model, graph, tensor */
    LEAST_MODEL = 1 << 20, /* bytes; smaller ones are unpacked as they are */
    LEAST_WEIGHT = 1 << 12
};

/* The field of the message at each level that leads to the next. */
static const unsigned inner_field[TENSOR_LEVEL] = {7 /* graph */, 5 /* initializer */};

typedef struct {
    unsigned number, kind;
    const uint8_t *start, *body, *end; /* key, content and end */
} field;

bool onnx_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;

        *out |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return true;
    }
    return false;
}

/* Steps over a field; false where the message is damaged. */
static bool next_field(const uint8_t **at, const uint8_t *end, field *out)
{
    uint64_t key, size = 0;

    out->start = *at;
    if (!onnx_wire_varint(at, end, &key))
        return false;
    out->number = (unsigned)(key >> 3);
    out->kind = key & 7;
    switch (out->kind) {
    case 0: out->body = *at; return onnx_wire_varint(at, end, &size) && (out->end = *at);
    case 1: size = 8; break;
    case 2:
        if (!onnx_wire_varint(at, end, &size))
            return false;
        break;
    case 5: size = 4; break;
    default: return false;
    }
    if (size > (uint64_t)(end - *at))
        return false;
    out->body = *at;
    out->end = *at += size;
    return true;
}

static void put_varint(tec_context *cx, base_text *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;

    do {
        bytes[n] = (char)((value & 127) | (value > 127 ? 128 : 0));
        n++;
        value >>= 7;
    } while (value);
    base_addn(cx, out, bytes, n);
}

static void put_span(tec_context *cx, base_text *out, onnx_weights *weights, const field *raw)
{
    onnx_span *span = base_new(cx, onnx_span);

    *span = (onnx_span){raw->body, (size_t)(raw->end - raw->body)};
    put_varint(cx, out, (uint64_t)LIFTED_FIELD << 3);
    put_varint(cx, out, (uint64_t)weights->spans.n);
    base_push(cx, &weights->spans, span);
}

/* Copies the message at..end, which is a model (level 0), a graph (1) or a tensor (2). */
static bool copy_message(tec_context *cx, int level, const uint8_t *at, const uint8_t *end, base_text *out,
                         onnx_weights *weights)
{
    while (at < end) {
        base_text inside = {0};
        field f;

        if (!next_field(&at, end, &f))
            return false;
        if (level == TENSOR_LEVEL && f.number == RAW_DATA_FIELD && f.kind == 2 &&
            f.end - f.body >= LEAST_WEIGHT) {
            put_span(cx, out, weights, &f);
        } else if (level < TENSOR_LEVEL && f.number == inner_field[level] && f.kind == 2) {
            if (!copy_message(cx, level + 1, f.body, f.end, &inside, weights))
                return false;
            put_varint(cx, out, (uint64_t)f.number << 3 | 2);
            put_varint(cx, out, inside.n);
            base_addn(cx, out, inside.data ? inside.data : "", inside.n);
        } else {
            base_addn(cx, out, (const char *)f.start, (size_t)(f.end - f.start));
        }
    }
    return true;
}

/* The message to unpack: *data itself where it is small or damaged. */
void onnx_lift_weights(tec_context *cx, const uint8_t **data, size_t *size, onnx_weights *weights)
{
    base_text out = {0};

    if (*size < LEAST_MODEL)
        return;
    if (copy_message(cx, 0, *data, *data + *size, &out, weights) && weights->spans.n) {
        *data = (const uint8_t *)out.data;
        *size = out.n;
    }
}

/* The bytes that were left out of an unpacked tensor; NULL: none were. A later field of the data counts, as
 * everywhere in such messages. */
const onnx_span *onnx_lifted(const onnx_weights *weights, const Onnx__TensorProto *tensor)
{
    for (unsigned i = tensor->base.n_unknown_fields; weights && i-- > 0;) {
        const ProtobufCMessageUnknownField *f = &tensor->base.unknown_fields[i];
        const uint8_t *at = f->data;
        uint64_t number;

        if (f->tag == LIFTED_FIELD && onnx_wire_varint(&at, f->data + f->len, &number) &&
            number < (uint64_t)weights->spans.n)
            return weights->spans.at[number];
    }
    return NULL;
}
