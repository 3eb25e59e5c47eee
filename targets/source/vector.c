/* targets/source/vector.c -- vectorised loops as statements over the vector types of a language.
 *
 *     for c in 0..8 vectorised { S[y*8 + c] = fma(A[k], B[k*8 + c], S[y*8 + c]) }
 *     =>  vstore8(fma((float8)(A[k]), vload8(0, &B[k * 8]), vload8(0, &S[y * 8])), 0, &S[y * 8]);
 *
 * A loop becomes such a statement if all of these hold; otherwise it stays a loop over single elements.
 *
 * - The language has a vector type of as many elements as the loop has iterations.
 * - The loop variable occurs in indices of loads and stores alone, with the coefficient 1: neighbouring
 *   lanes are neighbouring elements in memory.
 * - What differs between lanes is arithmetic, a conversion that loses nothing or rounds once, a copy, or a
 *   named value (let) of these. Conditions are the same for all lanes.
 * - An arm of a select needs no statements of its own: those would run whatever the condition is.
 *
 * In a language with classes (CUDA C) the same loop is
 *
 *     tec_scatter(S, y * 8,
 *                 fma((tec_vec<float, 8>)(A[k]), tec_load<8, 16>(B, k * 8), tec_gather<8>(S, y * 8)));
 *
 * where B is global or shared memory, touched in pieces of 16 bytes, and S is the thread's own array, which
 * stays in registers only if each element is touched by itself. That k * 8 is a multiple of the vector is
 * proven here; whether B begins at one, the kernel asks, since an argument may begin anywhere.
 *
 * For example, A[c*2] has the coefficient 2, and select(c < n, ..) another condition for each lane: both stay
 * loops.
 */
#include "ir/build.h"
#include "ir/walk.h"
#include "targets/source/printer.h"

typedef struct {
    source_printer *p;
    const ir_expr *lane; /* the loop variable */
    int lanes;
    base_map *fitting; /* nodes that are known to fit: a shared one is looked at once */
    base_vec *varying; /* variables of lets whose values differ between lanes */
} vector;

/* Whether the value differs between lanes because of a let. */
static bool names_varying(const vector *self, const ir_expr *expr)
{
    for (int i = 0; i < self->varying->n; i++)
        if (ir_uses_var(self->p->cx, expr, self->varying->at[i]))
            return true;
    return false;
}

static bool differs(const vector *self, const ir_expr *expr)
{
    return ir_uses_var(self->p->cx, expr, self->lane) || names_varying(self, expr);
}

static const char *vector_type(const vector *self, base_dtype dtype)
{
    return self->p->d->vector ? self->p->d->vector(self->p->cx, dtype, self->lanes) : NULL;
}

/* The index of lane 0, where that of lane c is c more; NULL: lanes are no neighbours. */
static const ir_expr *first_index(const vector *self, const ir_expr *index)
{
    const ir_expr *first;
    int64_t step;

    return ir_linear(self->p->facts, index, &self->lane, 1, &step, &first) && step == 1 &&
                   !names_varying(self, first)
               ? first
               : NULL;
}

/* ---- whether a loop fits ---- */

typedef struct {
    ir_walk walk;
    const source_printer *p;
} arm_walk;

/* A let, or a part that the statement uses more than once, would become a named value before the select.
 * Index arithmetic may stand there, as long as it cannot divide by zero. */
static bool needs_no_statement(ir_walk *walk, const ir_expr *expr)
{
    const int *uses = base_map_get(&((arm_walk *)walk)->p->uses, expr);
    bool shared = uses && *uses > 1 && expr->depth > 1,
         divides = ir_is_op(expr->op) && (ir_ops[expr->op].flags & IR_ZERO_FAILS) &&
                   !base_is_float(expr->dtype) && expr->arg[1]->op != IR_INT;

    walk->stop |= expr->op == IR_LET || divides || (shared && !source_is_index(expr));
    return !walk->stop;
}

static bool fits_arm(const vector *self, const ir_expr *expr)
{
    arm_walk w = {.walk = {.cx = self->p->cx, .expr = needs_no_statement}, .p = self->p};

    ir_walk_expr(&w.walk, expr);
    return !w.walk.stop;
}

/* From ints to floats, which rounds once, or to wider ints. */
static bool fits_cast(const vector *self, base_dtype from, base_dtype to)
{
    return vector_type(self, from) && vector_type(self, to) && !base_is_float(from) &&
           (base_is_float(to) || (to.bits > from.bits && (base_is_signed(to) || !base_is_signed(from))));
}

static bool fits_load(const vector *self, const ir_expr *expr)
{
    return !expr->load.mask && !source_fragment(self->p, expr->load.buffer) &&
           vector_type(self, expr->dtype) && first_index(self, expr->load.index[0]);
}

static bool fits(const vector *self, const ir_expr *expr);

/* Whether a let can: its value is a vector, or a scalar that all lanes have in common. */
static bool fits_let(const vector *self, const ir_expr *var, const ir_expr *value)
{
    if (!differs(self, value))
        return value->dtype.lanes == 1;
    if (!fits(self, value))
        return false;
    base_push(self->p->cx, self->varying, (void *)(uintptr_t)var);
    return true;
}

/* Whether a value that differs between lanes can be written as a vector. */
static bool fits_node(const vector *self, const ir_expr *expr)
{
    if (expr->op == IR_LOAD)
        return fits_load(self, expr);
    if (expr->op == IR_VAR)
        return expr != self->lane;
    if (expr->op == IR_LET)
        return fits_let(self, expr->let.var, expr->let.value) && fits(self, expr->let.body);
    if (expr->op == IR_SELECT)
        return !differs(self, expr->arg[0]) && fits_arm(self, expr->arg[1]) && fits_arm(self, expr->arg[2]) &&
               fits(self, expr->arg[1]) && fits(self, expr->arg[2]);
    if (expr->op == IR_CAST)
        return fits_cast(self, expr->arg[0]->dtype, expr->dtype) && fits(self, expr->arg[0]);
    if (!ir_has_vectors(expr->op, expr->dtype) || !vector_type(self, expr->dtype))
        return false;
    for (int i = 0; i < ir_ops[expr->op].arity; i++)
        if (!base_dtype_same(expr->arg[i]->dtype, expr->dtype) || !fits(self, expr->arg[i]))
            return false;
    return true;
}

/* Whether the value can be written as a vector. One that is the same for all lanes is a scalar's text. */
static bool fits(const vector *self, const ir_expr *expr)
{
    if (base_map_has(self->fitting, expr))
        return true;
    if (!(differs(self, expr) ? fits_node(self, expr) : vector_type(self, expr->dtype) != NULL))
        return false;
    base_map_put(self->p->cx, self->fitting, expr, expr);
    return true;
}

static bool fits_store(const vector *self, const ir_stmt *stmt)
{
    bool fit;

    if (stmt->store.mask || stmt->store.value->dtype.lanes != 1 ||
        source_fragment(self->p, stmt->store.buffer) || !first_index(self, stmt->store.index[0]))
        return false;
    source_forget(self->p);
    source_count(self->p, stmt->store.value);
    fit = fits(self, stmt->store.value);
    source_forget(self->p);
    return fit;
}

static bool fits_named(const vector *self, const ir_stmt *stmt)
{
    bool fit;

    source_forget(self->p);
    source_count(self->p, stmt->let.value);
    fit = fits_let(self, stmt->let.var, stmt->let.value);
    source_forget(self->p);
    return fit;
}

/* Stores, one after the other, under a condition that all lanes have in common, or behind a named value. */
static bool fits_body(const vector *self, const ir_stmt *stmt)
{
    if (stmt->kind == IR_STORE)
        return fits_store(self, stmt);
    if (stmt->kind == IR_LET_STMT)
        return fits_named(self, stmt) && fits_body(self, stmt->let.body);
    if (stmt->kind == IR_IF)
        return !stmt->branch.otherwise && !differs(self, stmt->branch.cond) &&
               fits_body(self, stmt->branch.then);
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        if (!fits_body(self, stmt->seq.stmt[i]))
            return false;
    return stmt->kind == IR_SEQ;
}

/* ---- text ---- */

/* What stands for the elements from that of lane 0 on. */
typedef struct {
    const char *address; /* &A[i]; NULL: an error */
    bool aligned;        /* the address is that of a vector */
    /* in a language with classes: A and i as arguments, and whether vectors begin at i if one begins at A */
    const char *arguments;
    bool whole;
} place;

/* Arrays of a thread's own begin at multiples of any vector. A driver that takes vloadN apart would keep
 * halves of sums in registers, and put them together for each step of a reduction. */
static place place_of(const vector *self, const ir_buffer *buffer, const ir_expr *index)
{
    const ir_expr *first = first_index(self, index);
    const char *name = source_name_of(self->p, buffer), *at = source_expr(self->p, first, SOURCE_ANY);
    ir_modular m = ir_modulus(self->p->facts, first);

    bool multiple = m.coefficient % self->lanes == 0 && m.base % self->lanes == 0,
         own = base_map_has(&self->p->arrays, buffer);

    return (place){.address = name && at ? base_format(self->p->cx, "&%s[%s]", name, at) : NULL,
                   .aligned = own && multiple,
                   .arguments = name && at ? base_format(self->p->cx, "%s, %s", name, at) : NULL,
                   .whole = !own && multiple};
}

/* How many bytes a piece of a vector in memory has: the whole vector, at most 16. */
static int piece_of(const vector *self, base_dtype dtype)
{
    int bytes = base_dtype_bytes(dtype) * self->lanes;

    return bytes < 16 ? bytes : 16;
}

static const char *print_vector(const vector *self, const ir_expr *expr);

/* (a + b); of signed ints as_int8(as_uint8(a) + as_uint8(b)), since unsigned ones wrap. */
static const char *print_infix(const vector *self, const ir_expr *expr, const char *op)
{
    base_dtype plain = {.code = kDLUInt, .bits = expr->dtype.bits, .lanes = 1};
    const char *a = print_vector(self, expr->arg[0]), *b = print_vector(self, expr->arg[1]),
               *type = vector_type(self, expr->dtype), *wraps = vector_type(self, plain);

    if (!a || !b)
        return NULL;
    return base_is_float(expr->dtype) || !base_is_signed(expr->dtype) || self->p->d->vector_classes
               ? base_format(self->p->cx, "(%s %s %s)", a, op, b)
               : base_format(self->p->cx, "as_%s(as_%s(%s) %s as_%s(%s))", type, wraps, a, op, wraps, b);
}

/* -a, where signed ints wrap. */
static const char *print_negated(const vector *self, const ir_expr *expr)
{
    base_dtype plain = {.code = kDLUInt, .bits = expr->dtype.bits, .lanes = 1};
    const char *a = print_vector(self, expr->arg[0]), *type = vector_type(self, expr->dtype),
               *wraps = vector_type(self, plain);

    if (!a)
        return NULL;
    return base_is_float(expr->dtype) || self->p->d->vector_classes
               ? base_format(self->p->cx, "(-%s)", a)
               : base_format(self->p->cx, "as_%s((%s)(0) - as_%s(%s))", type, wraps, wraps, a);
}

/* The language's own min and max of ints, and those of the prelude for floats. */
static const char *name_of_extreme(const vector *self, const ir_expr *expr)
{
    const char *name = expr->op == IR_MIN ? "min" : "max";

    if (self->p->d->vector_classes)
        return base_format(self->p->cx, "tec_%s", name);
    return base_is_float(expr->dtype)
               ? base_format(self->p->cx, "tec_%s_%s", name, vector_type(self, expr->dtype))
               : name;
}

/* NAME(a, b, ...) */
static const char *print_function(const vector *self, const ir_expr *expr, const char *name)
{
    base_text t = {0};

    base_addf(self->p->cx, &t, "%s(", name);
    for (int i = 0; i < ir_ops[expr->op].arity; i++) {
        const char *arg = print_vector(self, expr->arg[i]);

        if (!arg)
            return NULL;
        base_addf(self->p->cx, &t, i ? ", %s" : "%s", arg);
    }
    base_add(self->p->cx, &t, ")");
    return base_text_str(self->p->cx, &t);
}

static const char *print_load(const vector *self, const ir_expr *expr)
{
    place at = place_of(self, expr->load.buffer, expr->load.index[0]);

    if (!at.address)
        return NULL;
    if (self->p->d->vector_classes)
        return at.whole ? base_format(self->p->cx, "tec_load<%d, %d>(%s)", self->lanes,
                                      piece_of(self, expr->dtype), at.arguments)
                        : base_format(self->p->cx, "tec_gather<%d>(%s)", self->lanes, at.arguments);
    return at.aligned ? base_format(self->p->cx, "*(%s *)%s", vector_type(self, expr->dtype), at.address)
                      : base_format(self->p->cx, "vload%d(0, %s)", self->lanes, at.address);
}

static const char *print_select(const vector *self, const ir_expr *expr)
{
    const char *cond = source_expr(self->p, expr->arg[0], SOURCE_OR), *a = print_vector(self, expr->arg[1]),
               *b = print_vector(self, expr->arg[2]);

    return cond && a && b ? base_format(self->p->cx, "(%s ? %s : %s)", cond, a, b) : NULL;
}

/* Names the value of a let, a vector or a scalar; false with an error. */
static bool name_value(const vector *self, const ir_expr *var, const ir_expr *value)
{
    bool vary = differs(self, value);
    const char *text = vary ? print_vector(self, value) : source_expr(self->p, value, SOURCE_ANY),
               *type = vary ? vector_type(self, value->dtype) : source_type(self->p, value);

    if (text)
        source_line(self->p, "const %s %s = %s;", type, source_name(self->p, var, var->var.name), text);
    return text != NULL;
}

/* The text of a value that differs between lanes. */
static const char *print_node(const vector *self, const ir_expr *expr)
{
    const char *a;

    switch (expr->op) {
    case IR_LOAD: return print_load(self, expr);
    case IR_VAR: return source_name_of(self->p, expr);
    case IR_LET:
        return name_value(self, expr->let.var, expr->let.value) ? print_vector(self, expr->let.body) : NULL;
    case IR_CAST:
        a = print_vector(self, expr->arg[0]);
        return !a ? NULL
               : self->p->d->vector_classes
                   ? base_format(self->p->cx, "tec_convert<%s>(%s)", self->p->d->type(expr->dtype), a)
                   : base_format(self->p->cx, "convert_%s(%s)", vector_type(self, expr->dtype), a);
    case IR_SELECT: return print_select(self, expr);
    case IR_ADD: return print_infix(self, expr, "+");
    case IR_SUB: return print_infix(self, expr, "-");
    case IR_MUL: return print_infix(self, expr, "*");
    case IR_DIV: return print_infix(self, expr, "/");
    case IR_NEG: return print_negated(self, expr);
    case IR_MIN:
    case IR_MAX: return print_function(self, expr, name_of_extreme(self, expr));
    default: return print_function(self, expr, self->p->d->function(expr->op, expr->dtype));
    }
}

/* A value as a vector: of a scalar, all lanes are that value. A value that is used again gets a name. */
static const char *print_vector(const vector *self, const ir_expr *expr)
{
    const int *uses = base_map_get(&self->p->uses, expr);
    const char *type = vector_type(self, expr->dtype), *text;

    if (!differs(self, expr)) {
        text = source_expr(self->p, expr, SOURCE_ANY);
        return text ? base_format(self->p->cx, "(%s)(%s)", type, text) : NULL;
    }
    text = source_recall(self->p, expr);
    if (text)
        return text;
    text = print_node(self, expr);
    if (!text || !uses || *uses < 2 || expr->depth < 2)
        return text;
    const char *name = source_new_value(self->p);
    source_line(self->p, "const %s %s = %s;", type, name, text);
    source_remember(self->p, expr, name);
    return name;
}

/* `value` goes to neighbouring elements. Names of its parts end with the statement. */
static void print_store(const vector *self, const ir_stmt *stmt)
{
    int known = self->p->n_known;

    source_forget(self->p);
    source_count(self->p, stmt->store.value);
    const char *value = print_vector(self, stmt->store.value),
               *type = vector_type(self, stmt->store.value->dtype);
    place at = place_of(self, stmt->store.buffer, stmt->store.index[0]);
    source_forget(self->p);
    if (value && at.address && self->p->d->vector_classes && at.whole)
        source_line(self->p, "tec_store<%d>(%s, %s);", piece_of(self, stmt->store.value->dtype), at.arguments,
                    value);
    else if (value && at.address && self->p->d->vector_classes)
        source_line(self->p, "tec_scatter(%s, %s);", at.arguments, value);
    else if (value && at.address && at.aligned)
        source_line(self->p, "*(%s *)%s = %s;", type, at.address, value);
    else if (value && at.address)
        source_line(self->p, "vstore%d(%s, 0, %s);", self->lanes, value, at.address);
    self->p->n_known = known;
}

/* Names of the value's parts end with it. */
static void print_named(const vector *self, const ir_stmt *stmt)
{
    int known = self->p->n_known;

    source_forget(self->p);
    source_count(self->p, stmt->let.value);
    name_value(self, stmt->let.var, stmt->let.value);
    source_forget(self->p);
    self->p->n_known = known;
}

/* The statements of a loop that fits_body has accepted: no loop stands around them any more. */
static void print_body(const vector *self, const ir_stmt *stmt)
{
    if (stmt->kind == IR_STORE) {
        print_store(self, stmt);
    } else if (stmt->kind == IR_LET_STMT) {
        print_named(self, stmt);
        print_body(self, stmt->let.body);
    } else if (stmt->kind == IR_IF) {
        const char *cond = source_expr(self->p, stmt->branch.cond, SOURCE_ANY);

        source_line(self->p, "if (%s) {", cond ? cond : "");
        source_open(self->p);
        print_body(self, stmt->branch.then);
        source_close(self->p);
        source_line(self->p, "}");
    }
    for (int i = 0; stmt->kind == IR_SEQ && i < stmt->seq.n; i++)
        print_body(self, stmt->seq.stmt[i]);
}

/* Nothing is printed before all of the body is known to fit. */
bool source_vector_loop(source_printer *printer, const ir_stmt *loop)
{
    int64_t lanes;
    base_map fitting = {0};
    base_vec varying = {0};
    vector v = {.p = printer, .lane = loop->loop.var, .fitting = &fitting, .varying = &varying};

    if (loop->loop.how != IR_VECTORISED || !ir_is_value(loop->loop.min, 0) ||
        !ir_is_int(loop->loop.extent, &lanes) || lanes < 2 || lanes > 16 || lanes & (lanes - 1))
        return false;
    v.lanes = (int)lanes;
    if (!fits_body(&v, loop->loop.body))
        return false;
    print_body(&v, loop->loop.body);
    return true;
}
