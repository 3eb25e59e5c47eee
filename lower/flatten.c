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
static const ir_expr *stride(tec_context *cx, const ir_buffer *b, int d)
{
    if (b->strides)
        return b->strides[d];

    const ir_expr *product = ir_int(cx, 1);
    for (int i = d + 1 + BASE_PLANT_ON(cx, flatten_stride); i < b->n; i++)
        product = ir_mul(cx, product, b->shape[i]);
    return product;
}

static bool is_flat(const ir_buffer *b)
{
    return b->n == 1 && !b->strides && !b->offset;
}

/* One twin for each buffer, made when it is first met, so that all accesses agree on it. */
static const ir_buffer *flat(flattener *f, const ir_buffer *b)
{
    tec_context *cx = f->rw.cx;
    ir_buffer *twin = base_map_get(&f->flat, b);

    if (is_flat(b) || twin)
        return twin ? twin : b;

    const ir_expr **shape = base_array(cx, const ir_expr *, 1);
    shape[0] = b->offset ? ir_add(cx, b->offset, lower_span(cx, b)) : lower_span(cx, b);
    twin = ir_buffer_copy(cx, b);
    twin->n = 1;
    twin->shape = shape;
    twin->strides = NULL;
    twin->offset = NULL;
    base_map_put(cx, &f->flat, b, twin);
    return twin;
}

static const ir_expr *element(tec_context *cx, const ir_buffer *b, const ir_expr *const *index)
{
    const ir_expr *sum = b->offset ? b->offset : ir_int(cx, 0);

    for (int i = 0; i < b->n; i++)
        sum = ir_add(cx, sum, ir_mul(cx, index[i], stride(cx, b, i)));
    return sum;
}

/* NULL where an index cannot be rewritten; the error is in the context. */
static const ir_expr *visit_load(ir_rewrite *rw, const ir_expr *e)
{
    const ir_buffer *b = e->load.buffer;
    const ir_expr **index = base_array(rw->cx, const ir_expr *, b->n);
    const ir_expr *mask = e->load.mask ? ir_rewrite_expr(rw, e->load.mask) : NULL;

    for (int i = 0; i < b->n; i++) {
        index[i] = ir_rewrite_expr(rw, e->load.index[i]);
        if (!index[i])
            return NULL;
    }
    const ir_expr *at = element(rw->cx, b, index);
    const ir_buffer *twin = flat((flattener *)rw, b);
    return mask ? ir_load_masked(rw->cx, twin, &at, 1, mask) : ir_load(rw->cx, twin, &at, 1);
}

/* The buffer operands of a call: their offsets (the first arguments) count from the address from now on. */
static const ir_expr *visit_call(ir_rewrite *rw, const ir_expr *e)
{
    const ir_expr *out = ir_rewrite_children(rw, e);
    const ir_expr **arg;

    if (!out || e->call.n_buffers == 0)
        return out;
    arg = base_copy(rw->cx, out->call.arg, (size_t)out->call.n * sizeof *arg);
    for (int i = 0; i < e->call.n_buffers; i++)
        if (e->call.buffer[i]->offset)
            arg[i] = ir_add(rw->cx, arg[i], e->call.buffer[i]->offset);
    return ir_call(rw->cx, out->dtype, out->call.name, out->call.intrinsic, arg, out->call.n,
                   out->call.buffer, out->call.n_buffers, out->call.pure);
}

static const ir_expr *visit_expr(ir_rewrite *rw, const ir_expr *e)
{
    if (e->op == IR_LOAD && !is_flat(e->load.buffer)) {
        ir_at(rw->cx, e->loc);
        return visit_load(rw, e);
    }
    return e->op == IR_CALL ? visit_call(rw, e) : ir_rewrite_children(rw, e);
}

/* Index and value are rewritten before the element number is formed: they may hold loads of other buffers. */
static const ir_stmt *visit_store(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_buffer *b = s->store.buffer;
    const ir_expr **index = base_array(rw->cx, const ir_expr *, b->n);
    const ir_expr *value = ir_rewrite_expr(rw, s->store.value);
    const ir_expr *mask = s->store.mask ? ir_rewrite_expr(rw, s->store.mask) : NULL;

    for (int i = 0; i < b->n; i++) {
        index[i] = ir_rewrite_expr(rw, s->store.index[i]);
        if (!index[i])
            return NULL;
    }
    ir_at(rw->cx, s->loc);
    const ir_expr *at = element(rw->cx, b, index);
    const ir_buffer *twin = flat((flattener *)rw, b);
    return mask ? ir_store_masked(rw->cx, twin, value, &at, 1, mask) : ir_store(rw->cx, twin, value, &at, 1);
}

static const ir_stmt *visit_stmt(ir_rewrite *rw, const ir_stmt *s)
{
    return s->kind == IR_STORE && !is_flat(s->store.buffer) ? visit_store(rw, s)
                                                            : ir_rewrite_stmt_children(rw, s);
}

static const ir_buffer *visit_buffer(ir_rewrite *rw, const ir_buffer *b)
{
    return flat((flattener *)rw, b);
}

/* Parameters are flattened too, whether or not the body uses them: callers see their new shapes. */
const ir_program *lower_flatten(const lower_options *o, const ir_program *p)
{
    flattener f = {.rw = {.cx = o->cx, .expr = visit_expr, .stmt = visit_stmt, .buffer = visit_buffer}};
    ir_param *params = base_copy(o->cx, p->params, (size_t)p->n_params * sizeof *params);
    bool same = true;

    for (int i = 0; i < p->n_params; i++) {
        if (p->params[i].buffer)
            params[i].buffer = flat(&f, p->params[i].buffer);
        same &= params[i].buffer == p->params[i].buffer;
    }
    const ir_stmt *body = ir_rewrite_stmt(&f.rw, p->body);
    if (!body || base_failed(o->cx))
        return NULL;
    if (same && body == p->body)
        return p;

    ir_program *out = ir_program_copy(o->cx, p);
    out->params = params;
    out->body = body;
    return out;
}
