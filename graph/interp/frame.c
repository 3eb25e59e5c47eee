/* graph/interp/frame.c -- values and symbols of a body that is being run: who has which value, which extents
 * are known, which facts were checked. */
#include "graph/interp/frame.h"

#include "graph/scope.h"
#include "ir/eval.h"
#include "ir/text.h"

/* ---- values ---- */

/* The value in this frame or one around it; a constant is made when it is first asked for. NULL for an absent
 * operand. */
interp_value *interp_value_of(const interp_frame *f, const graph_value *v)
{
    if (!v)
        return NULL;
    for (const interp_frame *at = f; at; at = at->outer) {
        interp_value *found = base_map_get(&at->values, v);

        if (found)
            return found;
    }
    if (!v->constant)
        return BASE_BUG(f->in->cx, "a value is used before it is made");
    interp_value *constant = base_new(f->in->cx, interp_value);
    constant->array = (ir_array){.dtype = v->type.dtype, .n = v->type.n, .data = (void *)v->constant->data};
    for (int d = 0; d < v->type.n; d++)
        ir_is_int(v->type.dim[d], &constant->array.shape[d]);
    return constant;
}

int64_t interp_count(const ir_array *a)
{
    int64_t n = 1;

    for (int d = 0; d < a->n; d++)
        n *= a->shape[d];
    return n;
}

interp_value *interp_tensor(tec_context *cx, base_dtype t, int n, const int64_t *shape, const void *data)
{
    interp_value *v = base_new(cx, interp_value);

    v->array = (ir_array){.dtype = t, .n = n};
    for (int d = 0; d < n; d++)
        v->array.shape[d] = shape[d];
    size_t bytes = (size_t)interp_count(&v->array) * (size_t)base_dtype_bytes(t);
    v->array.data = data ? base_copy(cx, data, bytes) : base_alloc(cx, bytes);
    return v;
}

interp_value *interp_tuple(tec_context *cx, interp_value *const *part, int n)
{
    interp_value *v = base_new(cx, interp_value);

    *v = (interp_value){.kind = INTERP_TUPLE, .n = n, .part = base_copy(cx, part, (size_t)n * sizeof *part)};
    return v;
}

interp_value *interp_data(tec_context *cx, const graph_data *d, int which, interp_value *const *field, int n)
{
    interp_value *v = interp_tuple(cx, field, n);

    v->kind = INTERP_DATA;
    v->data = d;
    v->which = which;
    return v;
}

/* ---- symbols ---- */

static ir_value *symbol_value(const interp_frame *f, const ir_expr *symbol)
{
    for (const interp_frame *at = f; at; at = at->outer)
        if (base_map_has(&at->symbols, symbol))
            return base_map_get(&at->symbols, symbol);
    return base_map_get(&f->in->globals, symbol);
}

/* All variables of e with their values; false where one has none. */
static bool gather(const interp_frame *f, const ir_expr *e, base_map *vars, const ir_expr **missing)
{
    base_vec found = {0};

    ir_free_vars(f->in->cx, e, &found);
    for (int i = 0; i < found.n; i++) {
        ir_value *v = symbol_value(f, found.at[i]);

        *missing = found.at[i];
        if (!v)
            return false;
        base_map_put(f->in->cx, vars, found.at[i], v);
    }
    return true;
}

/* The number that an extent has in this run. False with an error where a symbol has none. */
bool interp_extent(const interp_frame *f, base_loc loc, const ir_expr *e, int64_t *out)
{
    base_map vars = {0};
    const ir_expr *missing;
    ir_value v;

    if (ir_is_int(e, out))
        return true;
    if (!gather(f, e, &vars, &missing)) {
        base_fail(f->in->cx, TEC_INVALID, loc, "symbol '%s' in '%s' has no value yet", missing->var.name,
                  ir_expr_text(f->in->cx, e));
        return false;
    }
    if (!ir_eval(f->in->cx, e, &vars, &v)) {
        base_fail(f->in->cx, TEC_INVALID, loc, "'%s' cannot be computed", ir_expr_text(f->in->cx, e));
        return false;
    }
    *out = v.i;
    return true;
}

/* Facts whose symbols all have values now must hold; the others wait. */
static bool check_facts(interp_frame *f, base_loc loc)
{
    base_vec later = {0};

    for (int i = 0; i < f->facts_left.n; i++) {
        const ir_expr *fact = f->facts_left.at[i], *missing;
        base_map vars = {0};
        ir_value v;

        if (!gather(f, fact, &vars, &missing))
            base_push(f->in->cx, &later, fact);
        else if (!ir_eval(f->in->cx, fact, &vars, &v) || !v.i) {
            base_text values = {0};

            for (int k = 0; k < vars.cap; k++)
                if (vars.slots[k].key)
                    base_addf(f->in->cx, &values, "%s%s = %lld", values.n ? ", " : "",
                              ((const ir_expr *)vars.slots[k].key)->var.name,
                              (long long)((const ir_value *)vars.slots[k].value)->i);
            base_fail(f->in->cx, TEC_INVALID, loc, "'%s' does not hold%s%s", ir_expr_text(f->in->cx, fact),
                      values.n ? ": " : "", base_text_str(f->in->cx, &values));
            return false;
        }
    }
    f->facts_left = later;
    return true;
}

/* ---- types ---- */

/* Where a value is bound: to an input or a result, for messages. */
typedef struct {
    interp_frame *f;
    base_loc loc;
    const char *what;
    int k;
    const ir_expr *const
        *symbol; /* those that may get a value here; NULL: the body's (and the module's, in the entry) */
    int n_symbols;
} binding;

static bool wrong(const binding *b, const graph_type *t, const char *found)
{
    base_fail(b->f->in->cx, TEC_INVALID, b->loc, "%s %d: expected %s, found %s", b->what, b->k,
              graph_type_text(b->f->in->cx, t), found);
    return false;
}

static const char *array_text(tec_context *cx, const ir_array *a)
{
    const ir_expr **dim = base_array(cx, const ir_expr *, a->n);

    for (int d = 0; d < a->n; d++)
        dim[d] = ir_int(cx, a->shape[d]);
    return op_type_text(cx, &(op_type){a->dtype, a->n, dim});
}

static bool may_bind(const binding *b, const ir_expr *e)
{
    const interp_frame *f = b->f;

    if (b->symbol) {
        for (int i = 0; i < b->n_symbols; i++)
            if (b->symbol[i] == e)
                return true;
        return false;
    }
    return graph_binds_symbol(f->body, e) || (f->body->entry && graph_sees_symbol(f->in->m, NULL, e));
}

void interp_bind_symbol(interp_frame *f, const ir_expr *symbol, int64_t value)
{
    ir_value *v = base_new(f->in->cx, ir_value);

    v->i = value;
    base_map_put(f->in->cx, graph_binds_symbol(f->body, symbol) ? &f->symbols : &f->in->globals, symbol, v);
}

static void bind_extents(const binding *b, const op_type *t, const ir_array *a)
{
    interp_frame *f = b->f;

    for (int d = 0; d < t->n; d++) {
        if (!may_bind(b, t->dim[d]) || symbol_value(f, t->dim[d]))
            continue;
        interp_bind_symbol(f, t->dim[d], a->shape[d]);
    }
}

static bool has_kind(const graph_type *t, const interp_value *v)
{
    switch (t->kind) {
    case GRAPH_TENSOR:
        return v->kind == INTERP_TENSOR && v->array.n == t->tensor.n &&
               base_dtype_same(v->array.dtype, t->tensor.dtype);
    case GRAPH_TUPLE: return v->kind == INTERP_TUPLE && v->n == t->n;
    case GRAPH_DATA: return v->kind == INTERP_DATA && base_same(v->data->name, t->data);
    case GRAPH_FUNCTION:
        return v->kind == INTERP_CLOSURE && v->function->body->inputs.n - v->n == t->n_params;
    }
    return false;
}

/* The first walk gives values to symbols, the second holds the extents against them. */
static bool bind_value(const binding *b, const graph_type *t, const interp_value *v, bool check)
{
    static const char *const kinds[] = {"another tensor", "a tuple", "a value of a data type", "a function"};
    tec_context *cx = b->f->in->cx;
    int64_t n;

    if (!has_kind(t, v))
        return wrong(b, t,
                     v->kind == INTERP_TENSOR ? array_text(cx, &v->array)
                     : v->kind == INTERP_DATA ? v->data->name
                                              : kinds[v->kind]);
    if (t->kind == GRAPH_TENSOR && !check)
        bind_extents(b, &t->tensor, &v->array);
    for (int d = 0; check && t->kind == GRAPH_TENSOR && d < t->tensor.n; d++)
        if (!interp_extent(b->f, b->loc, t->tensor.dim[d], &n) ||
            (n != v->array.shape[d] && !wrong(b, t, array_text(cx, &v->array))))
            return false;
    for (int k = 0; t->kind == GRAPH_TUPLE && k < t->n; k++)
        if (!bind_value(b, &t->part[k], v->part[k], check))
            return false;
    return true;
}

static bool bind_all(binding *b, graph_value *const *to, interp_value *const *v, int n)
{
    for (int check = 0; check < 2; check++)
        for (b->k = 0; b->k < n; b->k++) {
            graph_type t = graph_type_of(to[b->k]);

            if (!bind_value(b, &t, v[b->k], check))
                return false;
        }
    for (int k = 0; k < n; k++)
        base_map_put(b->f->in->cx, &b->f->values, to[k], v[k]);
    return check_facts(b->f, b->loc);
}

bool interp_enter(interp_frame *f, base_loc loc, interp_value *const *in)
{
    binding b = {.f = f, .loc = loc, .what = "input"};

    for (int i = 0; i < f->body->facts.n; i++)
        base_push(f->in->cx, &f->facts_left, f->body->facts.at[i]);
    for (int i = 0; f->body->entry && f->in->globals.n == 0 && i < f->in->m->facts.n; i++)
        base_push(f->in->cx, &f->facts_left, f->in->m->facts.at[i]);
    return bind_all(&b, (graph_value *const *)f->body->inputs.at, in, f->body->inputs.n);
}

bool interp_bind_results(interp_frame *f, const graph_node *node, interp_value *const *out)
{
    static const ir_expr *const none[1];
    binding b = {.f = f,
                 .loc = node->loc,
                 .what = base_format(f->in->cx, "'%s': result", node->name),
                 .symbol = node->n_symbols ? node->symbol : none,
                 .n_symbols = node->n_symbols};

    return bind_all(&b, node->out, out, node->n_out);
}
