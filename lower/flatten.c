/* lower/flatten.c -- makes all buffers one-dimensional: indices become element numbers from the address.
 *
 *     buffer A: f32[n, 64], B: f32[n, 8] strides [16, 1] offset 4
 *     B[y, x] = A[y, x*2]          =>         B[4 + y*16 + x] = A[y*64 + x*2]
 *
 * requires  no block is left
 * provides  every access has one dimension; no buffer has strides or an offset
 * breaks    the shapes of parameters: a flat buffer has as many elements as reach from its address to its
 *           last element
 *
 * Buffers of scope, alignment and alias class stay as they are. The element offsets that calls hand over
 * become absolute.
 */
#include "lower/util.h"

typedef struct {
    ir_rewrite rw;
    base_map flat; /* buffer -> its one-dimensional twin */
} flattener;

/* Elements from one index of dimension d to the next. */
static const ir_expr *stride(tec_context *cx, const ir_buffer *buffer, int d)
{
    if (buffer->strides)
        return buffer->strides[d];

    const ir_expr *product = ir_int(cx, 1);
    for (int i = d + 1 + BASE_PLANT_ON(cx, flatten_stride); i < buffer->n; i++)
        product = ir_mul(cx, product, buffer->shape[i]);
    return product;
}

static bool is_flat(const ir_buffer *buffer)
{
    return buffer->n == 1 && !buffer->strides && !buffer->offset;
}

/* One twin for each buffer, made when it is first met, so that all accesses agree on it. */
static const ir_buffer *flat(flattener *self, const ir_buffer *buffer)
{
    tec_context *cx = self->rw.cx;
    ir_buffer *twin = base_map_get(&self->flat, buffer);

    if (is_flat(buffer) || twin)
        return twin ? twin : buffer;

    const ir_expr **shape = base_array(cx, const ir_expr *, 1);
    shape[0] = buffer->offset ? ir_add(cx, buffer->offset, lower_span(cx, buffer)) : lower_span(cx, buffer);
    twin = ir_buffer_copy(cx, buffer);
    twin->n = 1;
    twin->shape = shape;
    twin->strides = NULL;
    twin->offset = NULL;
    base_map_put(cx, &self->flat, buffer, twin);
    return twin;
}

/* offset + sum of index * stride. Strides of a buffer without its own are the products of the extents
 * further in. */
static const ir_expr *const *element(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                     int count)
{
    tec_context *cx = rw->cx;
    const ir_expr **sum = base_array(cx, const ir_expr *, 1);

    sum[0] = old->offset ? old->offset : ir_int(cx, 0);
    for (int i = 0; i < count; i++)
        sum[0] = ir_add(cx, sum[0], ir_mul(cx, index[i], stride(cx, old, i)));
    return sum;
}

/* The offset of a call's operand counts from the address from now on. */
static const ir_expr *absolute(ir_rewrite *rw, const ir_buffer *old, const ir_expr *offset)
{
    return old->offset ? ir_add(rw->cx, offset, old->offset) : offset;
}

static const ir_buffer *visit_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    return flat((flattener *)rw, buffer);
}

/* Parameters are flattened too, whether or not the body uses them: callers see their new shapes. */
const ir_program *lower_flatten(const lower_options *options, const ir_program *program)
{
    flattener f = {.rw = {.cx = options->cx, .buffer = visit_buffer, .index = element, .offset = absolute}};
    ir_param *params = base_copy(options->cx, program->params, (size_t)program->n_params * sizeof *params);
    bool same = true;

    for (int i = 0; i < program->n_params; i++) {
        if (program->params[i].buffer)
            params[i].buffer = flat(&f, program->params[i].buffer);
        same &= params[i].buffer == program->params[i].buffer;
    }
    const ir_stmt *body = ir_rewrite_stmt(&f.rw, program->body);
    if (!body || base_failed(options->cx))
        return NULL;
    if (same && body == program->body)
        return program;

    ir_program *out = ir_program_copy(options->cx, program);
    out->params = params;
    out->body = body;
    return out;
}
