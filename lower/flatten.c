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
static const ir_expr *element(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index)
{
    const ir_expr *sum = buffer->offset ? buffer->offset : ir_int(cx, 0);

    for (int i = 0; i < buffer->n; i++)
        sum = ir_add(cx, sum, ir_mul(cx, index[i], stride(cx, buffer, i)));
    return sum;
}

/* NULL where an index cannot be rewritten; the error is in the context. */
static const ir_expr *visit_load(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_buffer *buffer = expr->load.buffer;
    const ir_expr **index = base_array(rw->cx, const ir_expr *, buffer->n);
    const ir_expr *mask = expr->load.mask ? ir_rewrite_expr(rw, expr->load.mask) : NULL;

    for (int i = 0; i < buffer->n; i++) {
        index[i] = ir_rewrite_expr(rw, expr->load.index[i]);
        if (!index[i])
            return NULL;
    }
    const ir_expr *at = element(rw->cx, buffer, index);
    const ir_buffer *twin = flat((flattener *)rw, buffer);
    return mask ? ir_load_masked(rw->cx, twin, &at, 1, mask) : ir_load(rw->cx, twin, &at, 1);
}

/* The buffer operands of a call: their offsets (the first arguments) count from the address from now on. */
static const ir_expr *visit_call(ir_rewrite *rw, const ir_expr *expr)
{
    const ir_expr *out = ir_rewrite_children(rw, expr);
    const ir_expr **arg;

    if (!out || expr->call.n_buffers == 0)
        return out;
    arg = base_copy(rw->cx, out->call.arg, (size_t)out->call.n * sizeof *arg);
    for (int i = 0; i < expr->call.n_buffers; i++)
        if (expr->call.buffer[i]->offset)
            arg[i] = ir_add(rw->cx, arg[i], expr->call.buffer[i]->offset);
    return ir_call(rw->cx, out->dtype, out->call.name, out->call.intrinsic, arg, out->call.n,
                   out->call.buffer, out->call.n_buffers, out->call.pure);
}

static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *expr)
{
    if (expr->op == IR_LOAD && !is_flat(expr->load.buffer)) {
        ir_at(rw->cx, expr->loc);
        return visit_load(rw, expr);
    }
    return expr->op == IR_CALL ? visit_call(rw, expr) : ir_rewrite_children(rw, expr);
}

/* Index and value are rewritten before the element number is formed: they may hold loads of other buffers. */
static const ir_stmt *visit_store(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_buffer *buffer = stmt->store.buffer;
    const ir_expr **index = base_array(rw->cx, const ir_expr *, buffer->n);
    const ir_expr *value = ir_rewrite_expr(rw, stmt->store.value);
    const ir_expr *mask = stmt->store.mask ? ir_rewrite_expr(rw, stmt->store.mask) : NULL;

    for (int i = 0; i < buffer->n; i++) {
        index[i] = ir_rewrite_expr(rw, stmt->store.index[i]);
        if (!index[i])
            return NULL;
    }
    ir_at(rw->cx, stmt->loc);
    const ir_expr *at = element(rw->cx, buffer, index);
    const ir_buffer *twin = flat((flattener *)rw, buffer);
    return mask ? ir_store_masked(rw->cx, twin, value, &at, 1, mask) : ir_store(rw->cx, twin, value, &at, 1);
}

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    return stmt->kind == IR_STORE && !is_flat(stmt->store.buffer) ? visit_store(rw, stmt)
                                                                  : ir_rewrite_stmt_children(rw, stmt);
}

static const ir_buffer *visit_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    return flat((flattener *)rw, buffer);
}

/* Parameters are flattened too, whether or not the body uses them: callers see their new shapes. */
const ir_program *lower_flatten(const lower_options *options, const ir_program *program)
{
    flattener f = {.rw = {.cx = options->cx, .expr = visit_expr, .stmt = visit_stmt, .buffer = visit_buffer}};
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
