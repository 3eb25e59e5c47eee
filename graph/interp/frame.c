/* graph/interp/frame.c -- values and symbols of a body that is being run: who has which value, which extents
 * are known, which facts were checked. */
#include "graph/interp/frame.h"

#include "graph/constant.h"
#include "graph/scope.h"
#include "ir/eval.h"
#include "ir/text.h"

/* ---- values ---- */

/* The value in this frame or one around it; a constant is made when it is first asked for. NULL for an absent
 * operand. */
interp_value *interp_value_of(const interp_frame *frame, const graph_value *value)
{
    if (!value)
        return NULL;
    for (const interp_frame *at = frame; at; at = at->outer) {
        interp_value *found = base_map_get(&at->values, value);

        if (found)
            return found;
    }
    if (!value->constant)
        return BASE_BUG(frame->in->cx, "a value is used before it is made");
    interp_value *constant = base_new(frame->in->cx, interp_value);
    graph_constant_align(frame->in->m->cx, value->constant);
    constant->array =
        (ir_array){.dtype = value->type.dtype, .n = value->type.n, .data = (void *)value->constant->data};
    for (int d = 0; d < value->type.n; d++)
        ir_is_int(value->type.dim[d], &constant->array.shape[d]);
    return constant;
}

int64_t interp_count(const ir_array *array)
{
    int64_t n = 1;

    for (int d = 0; d < array->n; d++)
        n *= array->shape[d];
    return n;
}

/* With data NULL the elements are 0. The data is copied: a value never changes after it was made. */
interp_value *interp_tensor(tec_context *cx, base_dtype dtype, int count, const int64_t *shape,
                            const void *data)
{
    interp_value *value = base_new(cx, interp_value);

    value->array = (ir_array){.dtype = dtype, .n = count};
    for (int d = 0; d < count; d++)
        value->array.shape[d] = shape[d];
    size_t bytes = (size_t)interp_count(&value->array) * (size_t)base_dtype_bytes(dtype);
    value->array.data = data ? base_copy(cx, data, bytes) : base_alloc(cx, bytes);
    return value;
}

interp_value *interp_tuple(tec_context *cx, interp_value *const *part, int n)
{
    interp_value *v = base_new(cx, interp_value);

    *v = (interp_value){.kind = INTERP_TUPLE, .n = n, .part = base_copy(cx, part, (size_t)n * sizeof *part)};
    return v;
}

interp_value *interp_data(tec_context *cx, const graph_data *data, int which, interp_value *const *field,
                          int n)
{
    interp_value *v = interp_tuple(cx, field, n);

    v->kind = INTERP_DATA;
    v->data = data;
    v->which = which;
    return v;
}

/* ---- symbols ---- */

static ir_value *symbol_value(const interp_frame *frame, const ir_expr *symbol)
{
    for (const interp_frame *at = frame; at; at = at->outer)
        if (base_map_has(&at->symbols, symbol))
            return base_map_get(&at->symbols, symbol);
    return base_map_get(&frame->in->globals, symbol);
}

/* All variables of expr with their values; false where one has none. */
static bool gather(const interp_frame *frame, const ir_expr *expr, base_map *vars, const ir_expr **missing)
{
    base_vec found = {0};

    ir_free_vars(frame->in->cx, expr, &found);
    for (int i = 0; i < found.n; i++) {
        ir_value *value = symbol_value(frame, found.at[i]);

        *missing = found.at[i];
        if (!value)
            return false;
        base_map_put(frame->in->cx, vars, found.at[i], value);
    }
    return true;
}

/* The number that an extent has in this run. False with an error where a symbol has none. */
bool interp_extent(const interp_frame *frame, base_loc loc, const ir_expr *expr, int64_t *out)
{
    base_map vars = {0};
    const ir_expr *missing;
    ir_value v;

    if (ir_is_int(expr, out))
        return true;
    if (!gather(frame, expr, &vars, &missing)) {
        base_fail(frame->in->cx, TEC_INVALID, loc, "symbol '%s' in '%s' has no value yet", missing->var.name,
                  ir_expr_text(frame->in->cx, expr));
        return false;
    }
    if (!ir_eval(frame->in->cx, expr, &vars, &v)) {
        base_fail(frame->in->cx, TEC_INVALID, loc, "the value of '%s' cannot be computed",
                  ir_expr_text(frame->in->cx, expr));
        return false;
    }
    *out = v.i;
    return true;
}

/* "n = 3, m = 4": the values of a condition's variables; of two numbers that differ, both: "3 and 4". */
static const char *values_text(tec_context *cx, const ir_expr *fact, const base_map *vars)
{
    base_text values = {0};
    ir_value left, right;

    if (fact->op == IR_EQ && ir_eval(cx, fact->arg[0], vars, &left) &&
        ir_eval(cx, fact->arg[1], vars, &right))
        return base_format(cx, "%lld and %lld", (long long)left.i, (long long)right.i);
    for (int k = 0; k < vars->cap; k++)
        if (vars->slots[k].key)
            base_addf(cx, &values, "%s%s = %lld", values.n ? ", " : "",
                      ((const ir_expr *)vars->slots[k].key)->var.name,
                      (long long)((const ir_value *)vars->slots[k].value)->i);
    return base_text_str(cx, &values);
}

/* Facts whose symbols all have values now must hold; the others wait. */
static bool check_facts(interp_frame *frame, base_loc loc)
{
    base_vec later = {0};

    for (int i = 0; i < frame->facts_left.n; i++) {
        const ir_expr *fact = frame->facts_left.at[i], *missing;
        base_map vars = {0};
        ir_value v;

        if (!gather(frame, fact, &vars, &missing))
            base_push(frame->in->cx, &later, fact);
        else if (!ir_eval(frame->in->cx, fact, &vars, &v) || !v.i) {
            const char *values = values_text(frame->in->cx, fact, &vars);

            base_fail(frame->in->cx, TEC_INVALID, fact->loc.line > 0 ? fact->loc : loc, "%s%s%s",
                      graph_meaning(frame->in->m, fact), *values ? ": " : "", values);
            return false;
        }
    }
    frame->facts_left = later;
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

static bool wrong(const binding *self, const graph_type *type, const char *found)
{
    base_fail(self->f->in->cx, TEC_INVALID, self->loc, "%s %d: expected %s, found %s", self->what, self->k,
              graph_type_text(self->f->in->cx, type), found);
    return false;
}

static const char *array_text(tec_context *cx, const ir_array *array)
{
    const ir_expr **dim = base_array(cx, const ir_expr *, array->n);

    for (int d = 0; d < array->n; d++)
        dim[d] = ir_int(cx, array->shape[d]);
    return op_type_text(cx, &(op_type){array->dtype, array->n, dim});
}

/* Which symbols an extent may give a value to: with a list, those of the node whose results are bound;
 * without one, those of the body, and for the entry function those of the module. All others must have a
 * value by now, and an extent is compared with it. */
static bool may_bind(const binding *self, const ir_expr *expr)
{
    const interp_frame *frame = self->f;

    if (self->symbol) {
        for (int i = 0; i < self->n_symbols; i++)
            if (self->symbol[i] == expr)
                return true;
        return false;
    }
    return graph_binds_symbol(frame->body, expr) ||
           (frame->body->entry && graph_sees_symbol(frame->in->m, NULL, expr));
}

/* A symbol of the body lives in the frame, one of the module in the interpreter, so that all functions see
 * it. */
void interp_bind_symbol(interp_frame *frame, const ir_expr *symbol, int64_t value)
{
    ir_value *v = base_new(frame->in->cx, ir_value);

    v->i = value;
    base_map_put(frame->in->cx,
                 graph_binds_symbol(frame->body, symbol) ? &frame->symbols : &frame->in->globals, symbol, v);
}

/* An extent that is a symbol alone gives the symbol its value; one like 2*n + 1 is only checked, by
 * check_facts and bind_value. */
static void bind_extents(const binding *self, const op_type *type, const ir_array *array)
{
    interp_frame *f = self->f;

    for (int d = 0; d < type->n; d++) {
        if (!may_bind(self, type->dim[d]) || symbol_value(f, type->dim[d]))
            continue;
        interp_bind_symbol(f, type->dim[d], array->shape[d]);
    }
}

/* The part of a type that needs no symbols: kind, rank, element type, number of parts. */
static bool has_kind(const graph_type *type, const interp_value *value)
{
    switch (type->kind) {
    case GRAPH_TENSOR:
        return value->kind == INTERP_TENSOR && value->array.n == type->tensor.n &&
               base_dtype_same(value->array.dtype, type->tensor.dtype);
    case GRAPH_TUPLE: return value->kind == INTERP_TUPLE && value->n == type->n;
    case GRAPH_DATA: return value->kind == INTERP_DATA && base_same(value->data->name, type->data);
    case GRAPH_FUNCTION:
        return value->kind == INTERP_CLOSURE && value->function->body->inputs.n - value->n == type->n_params;
    }
    return false;
}

/* The first walk gives values to symbols, the second holds the extents against them. */
static bool bind_value(const binding *self, const graph_type *type, const interp_value *value, bool check)
{
    static const char *const kinds[] = {"another tensor", "a tuple", "a value of a data type", "a function"};
    tec_context *cx = self->f->in->cx;
    int64_t n;

    if (!has_kind(type, value))
        return wrong(self, type,
                     value->kind == INTERP_TENSOR ? array_text(cx, &value->array)
                     : value->kind == INTERP_DATA ? value->data->name
                                                  : kinds[value->kind]);
    if (type->kind == GRAPH_TENSOR && !check)
        bind_extents(self, &type->tensor, &value->array);
    for (int d = 0; check && type->kind == GRAPH_TENSOR && d < type->tensor.n; d++)
        if (!interp_extent(self->f, self->loc, type->tensor.dim[d], &n) ||
            (n != value->array.shape[d] && !wrong(self, type, array_text(cx, &value->array))))
            return false;
    for (int k = 0; type->kind == GRAPH_TUPLE && k < type->n; k++)
        if (!bind_value(self, &type->part[k], value->part[k], check))
            return false;
    return true;
}

/* The value of an extent that is linear in the one symbol without a value: from its values at 0 and at 1. An
 * extent of 7 of f32[n * 2] gives n = 3, and the check of extents behind refuses it. */
static bool solve_extent(const binding *self, const ir_expr *extent, int64_t found, bool *solved)
{
    tec_context *cx = self->f->in->cx;
    const ir_expr *unknown = NULL;
    base_vec vars = {0};
    ir_value at[2], number;
    base_map values = {0};

    ir_free_vars(cx, extent, &vars);
    for (int i = 0; i < vars.n; i++) {
        ir_value *value = symbol_value(self->f, vars.at[i]);

        if (value)
            base_map_put(cx, &values, vars.at[i], value);
        else if (unknown || !may_bind(self, vars.at[i]))
            return true;
        else
            unknown = vars.at[i];
    }
    if (!unknown)
        return true;
    for (int i = 0; i < 2; i++) {
        number = (ir_value){.i = i};
        base_map_put(cx, &values, unknown, &number);
        if (!ir_eval(cx, extent, &values, &at[i]))
            return true;
    }
    if (at[1].i == at[0].i)
        return true;
    bool grows = at[1].i > at[0].i;
    if (grows ? found < at[0].i : found > at[0].i)
        return false;
    interp_bind_symbol(self->f, unknown, (found - at[0].i) / (at[1].i - at[0].i));
    *solved = true;
    return true;
}

/* Of all extents of the value; false with an error where a symbol would be negative. */
static bool solve_value(const binding *self, const graph_type *type, const interp_value *value, bool *solved)
{
    if (!has_kind(type, value))
        return true;
    for (int d = 0; type->kind == GRAPH_TENSOR && d < type->tensor.n; d++)
        if (!solve_extent(self, type->tensor.dim[d], value->array.shape[d], solved))
            return wrong(self, type, array_text(self->f->in->cx, &value->array));
    for (int k = 0; type->kind == GRAPH_TUPLE && k < type->n; k++)
        if (!solve_value(self, &type->part[k], value->part[k], solved))
            return false;
    return true;
}

/* Again and again, as a value may be what another extent lacks. */
static bool solve_all(binding *self, graph_value *const *to, interp_value *const *value, int count)
{
    bool solved = true;

    while (solved) {
        solved = false;
        for (self->k = 0; self->k < count; self->k++) {
            graph_type t = graph_type_of(to[self->k]);

            if (!solve_value(self, &t, value[self->k], &solved))
                return false;
        }
    }
    return true;
}

/* Twice over all values: first the symbols that stand alone as an extent, from every value, then the checks
 * of all extents. So [n + 1] in front of [n] is no matter of order. In between, symbols that no value tells
 * alone are solved for. */
static bool bind_all(binding *self, graph_value *const *to, interp_value *const *value, int count)
{
    for (int check = 0; check < 2; check++) {
        if (check && !self->symbol && !solve_all(self, to, value, count))
            return false;
        for (self->k = 0; self->k < count; self->k++) {
            graph_type t = graph_type_of(to[self->k]);

            if (!bind_value(self, &t, value[self->k], check))
                return false;
        }
    }
    for (int k = 0; k < count; k++)
        base_map_put(self->f->in->cx, &self->f->values, to[k], value[k]);
    return check_facts(self->f, self->loc);
}

/* The facts of the body, and once, for the entry, those of the module, wait in the frame until all of their
 * symbols are known. */
bool interp_enter(interp_frame *frame, base_loc loc, interp_value *const *in)
{
    binding b = {.f = frame, .loc = loc, .what = "input"};

    for (int i = 0; i < frame->body->facts.n; i++)
        base_push(frame->in->cx, &frame->facts_left, frame->body->facts.at[i]);
    for (int i = 0; frame->body->entry && frame->in->globals.n == 0 && i < frame->in->m->facts.n; i++)
        base_push(frame->in->cx, &frame->facts_left, frame->in->m->facts.at[i]);
    return bind_all(&b, (graph_value *const *)frame->body->inputs.at, in, frame->body->inputs.n);
}

bool interp_bind_results(interp_frame *frame, const graph_node *node, interp_value *const *out)
{
    static const ir_expr *const none[1];
    binding b = {.f = frame,
                 .loc = node->loc,
                 .what = base_format(frame->in->cx, "'%s': result", node->name),
                 .symbol = node->n_symbols ? node->symbol : none,
                 .n_symbols = node->n_symbols};

    return bind_all(&b, node->out, out, node->n_out);
}
