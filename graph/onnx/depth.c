/* graph/onnx/depth.c -- how deep messages nest, found without unpacking them: unpacking recurses once for
 * each level.
 *
 * The walk follows the fields that the descriptors know as messages. Bytes that are no messages at all are
 * left for unpacking to refuse.
 */
#include "graph/onnx/import.h"

/* What is left of one message. */
typedef struct {
    const ProtobufCMessageDescriptor *d;
    const uint8_t *p, *end;
} cursor;

/* Seven bits to a byte, the lowest first; false at the end of the data, or after ten bytes that all go on. */
static bool read_varint(cursor *at, uint64_t *out)
{
    return onnx_wire_varint(&at->p, at->end, out);
}

static bool skip(cursor *at, uint64_t n)
{
    if (n > (uint64_t)(at->end - at->p))
        return false;
    at->p += n;
    return true;
}

/* Steps over one field; what is inside of it where it is a message, otherwise an empty cursor. False:
 * damaged. */
static bool read_field(cursor *at, cursor *inside)
{
    uint64_t key, n;

    *inside = (cursor){NULL, NULL, NULL};
    if (!read_varint(at, &key))
        return false;
    switch (key & 7) {
    case 0: return read_varint(at, &n);
    case 1: return skip(at, 8);
    case 5: return skip(at, 4);
    case 2: break;
    default: return false;
    }
    if (!read_varint(at, &n) || !skip(at, n))
        return false;
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(at->d, (unsigned)(key >> 3));
    if (f && f->type == PROTOBUF_C_TYPE_MESSAGE)
        *inside = (cursor){f->descriptor, at->p - n, at->p};
    return true;
}

/* Whether unpacking `data` as a message of this type stays within the limit of levels; an error otherwise.
 * Walks with a stack of its own. */
bool onnx_is_shallow(tec_context *cx, const char *name, const ProtobufCMessageDescriptor *self,
                     const uint8_t *data, size_t size)
{
    int deepest = (int)base_limit(cx, BASE_LIMIT_message_depth), n = 1;
    cursor *stack = base_array(cx, cursor, deepest);

    stack[0] = (cursor){self, data, data + size};
    while (n > 0) {
        cursor *top = &stack[n - 1], inside;

        if (top->p == top->end || !read_field(top, &inside)) {
            n--;
            continue;
        }
        if (!inside.d)
            continue;
        if (n == deepest) {
            base_fail(cx, TEC_INVALID, (base_loc){.file = name},
                      "messages of the file lie more than %d deep inside each "
                      "other; %s",
                      deepest, base_limit_text(cx, BASE_LIMIT_message_depth));
            return false;
        }
        stack[n++] = inside;
    }
    return true;
}
