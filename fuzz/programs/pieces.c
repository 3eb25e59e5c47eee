/* fuzz/programs/pieces.c -- see inside.h: drawing, pools, and the steps that statements are made of. */
#include "fuzz/programs/inside.h"

#include "graph/scope.h"

/* Xorshift; the state must not be 0. */
uint64_t fuzz_draw(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % below;
}

graph_value *fuzz_pick(fuzz_program *self, fuzz_pool kind)
{
    const base_vec *pool = &self->pool[kind];

    return pool->n ? pool->at[fuzz_draw(&self->state, (uint64_t)pool->n)] : NULL;
}

bool fuzz_keep(fuzz_program *self, fuzz_pool kind, graph_value *value)
{
    if (value)
        base_push(self->cx, &self->pool[kind], value);
    return value;
}

graph_value *fuzz_op(fuzz_program *self, const char *op, graph_value *const *in, int n, const op_attr *attr,
                     int n_attrs)
{
    for (int k = 0; k < n; k++)
        if (!in[k])
            return NULL;
    return graph_add(self->f, op, op, in, n, attr, n_attrs);
}

graph_value *fuzz_two(fuzz_program *self, const char *op, graph_value *left, graph_value *right)
{
    return fuzz_op(self, op, (graph_value *const[]){left, right}, 2, NULL, 0);
}

static graph_value *constant(fuzz_program *self, const op_type *type, const void *data, int64_t bytes)
{
    op_constant *c = base_new(self->cx, op_constant);

    *c = (op_constant){.type = *type, .data = base_copy(self->cx, data, (size_t)bytes), .bytes = bytes};
    return graph_constant(self->f, "constant", c);
}

/* Sixteenths, which floats hold exactly, from `least` sixteenths on, `below` of them. */
static graph_value *floats(fuzz_program *self, int n, const int64_t *shape, int least, int below)
{
    const ir_expr **dim = base_array(self->cx, const ir_expr *, n);
    int64_t count = 1;

    for (int d = 0; d < n; d++) {
        dim[d] = ir_int(self->cx, shape[d]);
        count *= shape[d];
    }
    float *data = base_array(self->cx, float, (int)count);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)((int)fuzz_draw(&self->state, (uint64_t)below) + least) / 16.0F;
    return constant(self, &(op_type){BASE_F32, n, dim}, data, count * 4);
}

graph_value *fuzz_floats(fuzz_program *self, int n, const int64_t *shape)
{
    return floats(self, n, shape, -16, 33);
}

graph_value *fuzz_positive(fuzz_program *self, int64_t n)
{
    return floats(self, 1, &n, 8, 24);
}

graph_value *fuzz_number(fuzz_program *self, int64_t value)
{
    return constant(self, &(op_type){.dtype = BASE_I64}, &value, 8);
}

graph_value *fuzz_float(fuzz_program *self, float value)
{
    return constant(self, &(op_type){.dtype = BASE_F32}, &value, 4);
}

graph_value *fuzz_within(fuzz_program *self, graph_value *value, int64_t below)
{
    return fuzz_two(self, "mod", value, fuzz_number(self, below));
}

const ir_expr *fuzz_extent(fuzz_program *self, graph_value *number)
{
    const ir_expr *symbol = graph_symbol_in(self->m, self->f->body, NULL);

    return number && graph_add_extents(self->f, "extent", number, &symbol, 1) ? symbol : NULL;
}

graph_value *fuzz_shaped(fuzz_program *self, const char *op, graph_value *value, const ir_expr *const *dim,
                         int n)
{
    op_attr shape = op_attr_exprs(self->cx, "shape", dim, n);

    return fuzz_op(self, op, &value, 1, &shape, 1);
}

/* One of all statements, by weight. What needs a value that is not there yet is left out. */
static bool statement(fuzz_program *self)
{
    static const struct {
        const fuzz_statement *row;
        const int *n;
    } tables[] = {
        {fuzz_plain, &fuzz_n_plain}, {fuzz_structured, &fuzz_n_structured}, {fuzz_dynamic, &fuzz_n_dynamic}};
    int total = 0, at;

    for (int t = 0; t < BASE_COUNT(tables); t++)
        for (int i = 0; i < *tables[t].n; i++)
            total += tables[t].row[i].weight;
    at = (int)fuzz_draw(&self->state, (uint64_t)total);
    for (int t = 0; t < BASE_COUNT(tables); t++)
        for (int i = 0; i < *tables[t].n; i++)
            if ((at -= tables[t].row[i].weight) < 0)
                return tables[t].row[i].draw(self);
    return false;
}

void fuzz_statements(fuzz_program *self, int count)
{
    while (count-- > 0 && !base_failed(self->cx))
        statement(self);
}
