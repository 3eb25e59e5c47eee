/* tests/ops/kit.h -- one operator on small arrays: the definition and its default schedules run by the
 * interpreter, compared with values that the test computes in plain C.
 *
 *     nd x = random_nd(BASE_F32, SHAPE(2, 3, 5)), y = new_nd(BASE_F32, SHAPE(2, 3, 5));
 *     for (int64_t i = 0; i < y.size; i++) y.v[i] = x.v[i] > 0 ? x.v[i] : 0;
 *     gives("relu", NO_ATTRS, IN(x), y, 0);
 *
 * Values are small integers where results must match exactly. Every check runs for three targets, whose
 * vectors differ in length; one of bfloat16 also for a CPU with dot products of pairs.
 */
#ifndef TESTS_OPS_KIT_H
#define TESTS_OPS_KIT_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "ir/text.h"
#include "ir/verify/verify.h"
#include "ops/op.h"
#include "space/space.h"

static tec_context *cx;
static const ir_expr *batch; /* the symbol n, for shapes that are known when the function is called */
static uint64_t seed;

static inline void open_context(void)
{
    cx = tec_context_new();
    batch = ir_var(cx, "n", BASE_I64);
    seed = 12345;
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

/* ---- arrays of doubles that stand for elements of a dtype ---- */

typedef struct {
    base_dtype t;
    int n;
    int64_t shape[8], size;
    double *v;
    bool symbolic; /* its first extent is the symbol n */
    bool absent;
} nd;

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define SCALAR_SHAPE 0, NULL
#define IN(...) (nd[]){__VA_ARGS__}, (int)(sizeof((nd[]){__VA_ARGS__}) / sizeof(nd))
#define NO_INPUTS NULL, 0
#define ATTRS(...) (op_attr[]){__VA_ARGS__}, (int)(sizeof((op_attr[]){__VA_ARGS__}) / sizeof(op_attr))
#define NO_ATTRS NULL, 0
#define INTS(name, ...)                                                                                      \
    op_attr_ints(cx, name, (const int64_t[]){__VA_ARGS__},                                                   \
                 (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define EXPRS(name, ...)                                                                                     \
    op_attr_exprs(cx, name, (const ir_expr *const[]){__VA_ARGS__},                                           \
                  (int)(sizeof((const ir_expr *const[]){__VA_ARGS__}) / sizeof(const ir_expr *)))
#define I(value) ir_int(cx, value)

static inline nd new_nd(base_dtype t, int n, const int64_t *shape)
{
    nd a = {.t = t, .n = n, .size = 1};

    for (int i = 0; i < n; i++) {
        a.shape[i] = shape[i];
        a.size *= shape[i];
    }
    a.v = base_array(cx, double, a.size + 1);
    return a;
}

static inline nd random_nd_between(base_dtype t, int low, int high, int n, const int64_t *shape)
{
    nd a = new_nd(t, n, shape);

    for (int64_t i = 0; i < a.size; i++)
        a.v[i] = (double)(low + base_random_below(&seed, high - low + 1));
    return a;
}

static inline nd random_nd(base_dtype t, int n, const int64_t *shape)
{
    return random_nd_between(t, t.code == kDLUInt || t.code == kDLBool ? 0 : -4, t.code == kDLBool ? 1 : 4, n,
                             shape);
}

static inline nd symbolic(nd a)
{
    a.symbolic = true;
    return a;
}

static inline int64_t offset_of(const nd *a, const int64_t *index)
{
    int64_t at = 0;

    for (int i = 0; i < a->n; i++)
        at = at * a->shape[i] + index[i];
    return at;
}

/* The index of element k. */
static inline void unravel(const nd *a, int64_t k, int64_t *index)
{
    for (int i = a->n - 1; i >= 0; i--) {
        index[i] = k % a->shape[i];
        k /= a->shape[i];
    }
}

/* [n, c, spatial] as [n, c / block, spatial, block]. */
static inline nd packed(const nd *a, int64_t block)
{
    int64_t shape[8], at[8];

    memcpy(shape, a->shape, sizeof shape);
    shape[1] /= block;
    shape[a->n] = block;
    nd p = new_nd(a->t, a->n + 1, shape);
    p.symbolic = a->symbolic;
    for (int64_t k = 0; k < a->size; k++) {
        unravel(a, k, at);
        at[a->n] = at[1] % block;
        at[1] /= block;
        p.v[offset_of(&p, at)] = a->v[k];
    }
    return p;
}

/* The operand's value at an index of the result, under NumPy's rules. */
static inline double broadcast_at(const nd *a, const int64_t *index, int n)
{
    int64_t mine[8];

    for (int i = 0; i < a->n; i++)
        mine[i] = a->shape[i] == 1 ? 0 : index[n - a->n + i];
    return a->v[offset_of(a, mine)];
}

/* ---- elements in memory ---- */

static inline void store_element(base_dtype t, void *data, int64_t i, double v)
{
    if (base_is_float(t)) {
        if (t.bits == 64)
            ((double *)data)[i] = v;
        else if (t.bits == 32)
            ((float *)data)[i] = (float)v;
        else
            ((uint16_t *)data)[i] = t.code == kDLBfloat ? base_double_to_bfloat(v) : base_double_to_half(v);
        return;
    }
    int64_t whole = (int64_t)v;
    memcpy((char *)data + i * base_dtype_bytes(t), &whole, (size_t)base_dtype_bytes(t));
}

static inline double load_element(base_dtype t, const void *data, int64_t i)
{
    if (base_is_float(t)) {
        if (t.bits == 64)
            return ((const double *)data)[i];
        if (t.bits == 32)
            return (double)((const float *)data)[i];
        uint16_t h = ((const uint16_t *)data)[i];
        return (double)(t.code == kDLBfloat ? base_bfloat_to_float(h) : base_half_to_float(h));
    }
    int64_t whole = 0;
    memcpy(&whole, (const char *)data + i * base_dtype_bytes(t), (size_t)base_dtype_bytes(t));
    int unused = 64 - 8 * base_dtype_bytes(t);
    return t.code == kDLInt ? (double)((int64_t)((uint64_t)whole << unused) >> unused) : (double)whole;
}

static inline ir_array array_of(const nd *a)
{
    ir_array r = {.dtype = a->t,
                  .n = a->n,
                  .data = base_alloc(cx, (size_t)(a->size + 1) * (size_t)base_dtype_bytes(a->t))};

    for (int i = 0; i < a->n; i++)
        r.shape[i] = a->shape[i];
    for (int64_t i = 0; i < a->size; i++)
        store_element(a->t, r.data, i, a->v[i]);
    return r;
}

/* ---- calls ---- */

static inline op_type type_of(const nd *a)
{
    const ir_expr **dim = base_array(cx, const ir_expr *, a->n);

    if (a->absent)
        return (op_type){.n = -1};
    for (int i = 0; i < a->n; i++)
        dim[i] = i == 0 && a->symbolic ? batch : ir_int(cx, a->shape[i]);
    return (op_type){a->t, a->n, dim};
}

static inline op_call call_of(const char *op, const op_attr *attr, int n_attrs, const nd *in, int n)
{
    op_type *types = base_array(cx, op_type, n);
    ir_facts *f = ir_facts_new(cx, NULL);
    const op_info *info = op_find(op);

    cr_assert(info, "there is no operator '%s'", op);
    ir_facts_assume(f, ir_ge(cx, batch, ir_int(cx, 0)));
    for (int k = 0; k < n; k++)
        types[k] = type_of(&in[k]);
    return (op_call){.cx = cx,
                     .op = info,
                     .name = op,
                     .n_inputs = n,
                     .input = types,
                     .n_attrs = n_attrs,
                     .attr = attr,
                     .facts = f};
}

/* The relation refuses the call; the message, whatever stands before and behind it. */
static inline void refuses(const char *message, const char *op, const op_attr *attr, int n_attrs,
                           const nd *in, int n)
{
    op_call c = call_of(op, attr, n_attrs, in, n);

    cr_assert_not(op_infer(&c), "expected an error: %s", message);
    cr_assert(strstr(tec_context_error(cx), message), "expected: %s\nfound:    %s", message,
              tec_context_error(cx));
    tec_context_clear(cx);
}

static inline void infers(const char *type, const char *op, const op_attr *attr, int n_attrs, const nd *in,
                          int n)
{
    op_call c = call_of(op, attr, n_attrs, in, n);

    cr_assert(op_infer(&c), "%s", tec_context_error(cx));
    const ir_expr **dim = base_array(cx, const ir_expr *, c.output[0].n);
    for (int i = 0; i < c.output[0].n; i++)
        dim[i] = ir_simplify(c.facts, c.output[0].dim[i]);
    c.output[0].dim = dim;
    cr_assert_str_eq(op_type_text(cx, &c.output[0]), type);
}

/* ---- runs ---- */

/* Sums of pairs are written as an instruction, whatever the sizes are. */
static inline void check_pairs(const ir_program *p, const sched *s)
{
    if (strstr(ir_program_text(cx, p), "@pairs(true)"))
        cr_assert(strstr(sched_trace_text(cx, s), "tensorize("), "%s", ir_program_text(cx, sched_tree(s)));
}

static inline bool same_value(double found, double expected, double tolerance)
{
    if (isnan(expected) || isinf(expected))
        return isnan(expected) ? isnan(found) : found == expected;
    return fabs(found - expected) <= tolerance * (1 + fabs(expected));
}

static inline void compare(const char *what, const ir_program *p, const nd *expected, const ir_array *found,
                           double tolerance)
{
    for (int64_t i = 0; i < expected->size; i++) {
        double f = load_element(expected->t, found->data, i);

        cr_assert(same_value(f, expected->v[i], tolerance), "%s: element %lld is %.9g, expected %.9g\n%s",
                  what, (long long)i, f, expected->v[i], ir_program_text(cx, p));
    }
}

static inline void run_tree(const char *what, const ir_program *p, const nd *in, int n, const nd *expected,
                            double tolerance)
{
    ir_array *arrays = base_array(cx, ir_array, n + 1);
    ir_arg *args = base_array(cx, ir_arg, n + 1);
    int n_args = 0;

    for (int k = 0; k < n; k++)
        if (!in[k].absent) {
            arrays[n_args] = array_of(&in[k]);
            args[n_args].array = &arrays[n_args];
            n_args++;
        }
    arrays[n_args] = array_of(expected);
    memset(arrays[n_args].data, 0xa5, (size_t)expected->size * (size_t)base_dtype_bytes(expected->t));
    args[n_args].array = &arrays[n_args];
    cr_assert_eq(n_args + 1, p->n_params);
    cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "%s: %s\n%s", what, tec_context_error(cx),
              ir_program_text(cx, p));
    compare(what, p, expected, &arrays[n_args], tolerance);
}

static inline const ir_program *tree_of(op_call *c, const op_impl *impl)
{
    te_def *d = te_def_new(cx, "test");
    te_tensor *in[8] = {NULL}, *out = NULL;

    for (int k = 0; k < c->n_inputs; k++)
        for (int i = 0; i < c->input[k].n; i++)
            te_use_symbols(d, c->input[k].dim[i]);
    for (int i = 0; i < c->output[0].n; i++)
        te_use_symbols(d, c->output[0].dim[i]);
    for (int k = 0; k < c->n_inputs; k++)
        if (op_has_input(c, k))
            in[k] =
                te_input(d, base_format(cx, "in%d", k), c->input[k].dtype, c->input[k].dim, c->input[k].n);
    d->role = c->op->kind == OP_COMPLEX ? IR_ROLE_ANCHOR : IR_ROLE_NONE;
    cr_assert(op_emit(c, impl, d, in, false, &out), "%s", tec_context_error(cx));
    te_output(d, out);
    const ir_program *p = te_tree(cx, d);
    cr_assert(p, "%s", tec_context_error(cx));
    return p;
}

static inline void check_type(const op_call *c, const nd *expected)
{
    cr_assert_eq(c->output[0].n, expected->n, "the result is %s", op_type_text(cx, &c->output[0]));
    cr_assert(base_dtype_same(c->output[0].dtype, expected->t), "the result is %s",
              op_type_text(cx, &c->output[0]));
    for (int i = 0; i < expected->n; i++) {
        int64_t n;

        if (ir_is_int(ir_simplify(c->facts, c->output[0].dim[i]), &n))
            cr_assert_eq(n, expected->shape[i], "the result is %s", op_type_text(cx, &c->output[0]));
    }
}

static inline void gives(const char *op, const op_attr *attr, int n_attrs, const nd *in, int n, nd expected,
                         double tolerance)
{
    static const char *const targets[] = {"native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64",
                                          "llvm -mcpu=znver4"};
    int n_targets = BASE_COUNT(targets) - (n == 0 || in[0].t.code != kDLBfloat);

    for (int t = 0; t < n_targets; t++) {
        op_call c = call_of(op, attr, n_attrs, in, n);

        c.target = target_parse(cx, targets[t]);
        cr_assert(op_infer(&c), "%s", tec_context_error(cx));
        check_type(&c, &expected);
        cr_assert(op_choose(&c), "%s", tec_context_error(cx));
        for (int i = 0; i < c.op->n_impls; i++) {
            const op_impl *impl = &c.op->impls[i];

            if (impl->applies && !impl->applies(&c))
                continue;
            const ir_program *p = tree_of(&c, impl);
            cr_assert(ir_verify(cx, p, IR_VERIFY_TREE), "%s\n%s", tec_context_error(cx),
                      ir_program_text(cx, p));
            run_tree(base_format(cx, "%s, as defined for %s", impl->name, targets[t]), p, in, n, &expected,
                     tolerance);
            const sched *s = space_default(cx, p, c.target);
            cr_assert(s, "%s for %s: %s", impl->name, targets[t], tec_context_error(cx));
            cr_assert_not(sched_failed(s), "%s for %s: %s\n%s", impl->name, targets[t], sched_error(s),
                          ir_program_text(cx, sched_tree(s)));
            check_pairs(p, s);
            run_tree(base_format(cx, "%s, scheduled for %s", impl->name, targets[t]), sched_tree(s), in, n,
                     &expected, tolerance);
        }
    }
}

#endif
