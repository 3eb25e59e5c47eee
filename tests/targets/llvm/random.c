/* Random expressions and loops, generated code against the interpreter: how lets, shared nodes, lazy arms,
 * masks and casts meet.
 *
 * Each case stores a few expressions of random dtypes. Floats come from small integers by exactly rounded
 * operations, so that both sides agree to the bit. Loads that would leave their array stand under conditions
 * only. A failure prints its seed and the program.
 */
#include <math.h>
#include <stdio.h>

#include "ir/interp/interp.h"
#include "ir/text.h"
#include "tests/targets/llvm/run.h"

enum { N = 64, CASES = 50, N_TYPES = 9 };

static const base_dtype types[N_TYPES] = {
    {kDLBool, 8, 1},  {kDLInt, 32, 1},   {kDLInt, 64, 1},   {kDLInt, 8, 1},     {kDLUInt, 8, 1},
    {kDLUInt, 32, 1}, {kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1},
};

typedef struct {
    tec_context *cx;
    uint64_t state;
    int lanes;
    const ir_buffer *in[N_TYPES], *out[N_TYPES];
    const ir_expr *i; /* the position, of all lanes; 0 .. N-1 */
    base_vec pool;    /* expressions made so far, to be shared */
    base_vec vars;    /* lets around the expression that is being made */
} maker;

static int64_t below(maker *m, int64_t n)
{
    return base_random_below(&m->state, n);
}

static const ir_expr *any(maker *m, base_dtype t, int depth);

static base_dtype random_type(maker *m)
{
    return types[below(m, N_TYPES)];
}

static int type_index(base_dtype t)
{
    for (int k = 0; k < N_TYPES; k++)
        if (base_dtype_same(types[k], base_dtype_lanes(t, 1)))
            return k;
    return -1;
}

static const ir_expr *whole(const maker *m, const ir_expr *e)
{
    return e && e->dtype.lanes != m->lanes ? ir_broadcast(m->cx, e, m->lanes) : e;
}

static const ir_expr *constant(maker *m, base_dtype t)
{
    return whole(m, ir_imm(m->cx, t,
                           base_is_bool(t)
                               ? (double)below(m, 2)
                               : (double)(below(m, 9) - (base_is_int(t) && !base_is_signed(t) ? 0 : 4))));
}

/* Near i: inside the array for the indices that the condition of `guarded` keeps. */
static const ir_expr *load_near(maker *m, base_dtype t, int64_t shift, int64_t stride)
{
    const ir_expr *at = ir_add(m->cx, ir_mul(m->cx, m->i, ir_int(m->cx, stride)), ir_int(m->cx, shift));
    return load_at(m->cx, m->in[type_index(t)], at);
}

/* select(0 <= i*stride + shift < N, in[...], other), whose arm is out of bounds elsewhere. */
static const ir_expr *guarded(maker *m, base_dtype t, int depth)
{
    int64_t shift = below(m, 40) - 20, stride = below(m, 5) - 2;
    const ir_expr *at = ir_add(m->cx, ir_mul(m->cx, m->i, ir_int(m->cx, stride)), ir_int(m->cx, shift));
    const ir_expr *inside =
        ir_and(m->cx, ir_ge(m->cx, at, ir_int(m->cx, 0)), ir_lt(m->cx, at, ir_int(m->cx, N)));
    const ir_expr *value = load_near(m, t, shift, stride), *other = any(m, t, depth - 1);
    if (below(m, 2))
        value = ir_op1(m->cx, base_is_bool(t) ? IR_NOT : IR_NEG, value);
    if (below(m, 3))
        return ir_select(m->cx, whole(m, inside), whole(m, value), whole(m, other));
    return ir_select(m->cx, ir_not(m->cx, whole(m, inside)), whole(m, other), whole(m, value));
}

static const ir_expr *through_let(maker *m, base_dtype t, int depth)
{
    const ir_expr *value = whole(m, any(m, t, depth - 1)), *v = ir_var(m->cx, "v", value->dtype);
    int pool = m->pool.n;
    base_push(m->cx, &m->vars, v);
    const ir_expr *body = whole(m, any(m, t, depth - 1));
    m->vars.n--;
    m->pool.n = pool; /* what may use v stays inside */
    return ir_let(m->cx, v, value, body);
}

static const ir_expr *compared(maker *m, int depth)
{
    base_dtype t = random_type(m);
    ir_op op = base_is_bool(t) ? IR_EQ : (ir_op)(IR_EQ + below(m, 6));
    return ir_op2(m->cx, op, whole(m, any(m, t, depth - 1)), whole(m, any(m, t, depth - 1)));
}

static ir_op random_op(maker *m, base_dtype t)
{
    static const ir_op of_bools[] = {IR_AND, IR_OR, IR_AND, IR_OR},
                       of_floats[] = {IR_ADD, IR_SUB, IR_MUL, IR_MIN, IR_MAX, IR_FMA};
    static const ir_op of_ints[] = {IR_ADD, IR_SUB,      IR_MUL,      IR_MIN,    IR_MAX,
                                    IR_DIV, IR_FLOORDIV, IR_FLOORMOD, IR_BITAND, IR_BITXOR,
                                    IR_SHL, IR_SHR,      IR_FLOORMOD, IR_MOD};
    if (base_is_bool(t))
        return of_bools[below(m, BASE_COUNT(of_bools))];
    return base_is_float(t) ? of_floats[below(m, BASE_COUNT(of_floats))]
                            : of_ints[below(m, BASE_COUNT(of_ints))];
}

/* The divisor of data may be 0. That of indices is a constant, or guarded by the condition that it stands
 * under. */
static const ir_expr *division(maker *m, ir_op op, base_dtype t, const ir_expr *a, int depth)
{
    const ir_expr *zero = whole(m, ir_imm_int(m->cx, t, 0)), *d = whole(m, any(m, t, depth - 1));
    if (below(m, 2))
        return ir_op2(m->cx, op, a, whole(m, ir_imm_int(m->cx, t, below(m, 2) ? 4 : 1 + below(m, 9))));
    const ir_expr *divided = ir_op2(m->cx, op, a, d);
    return ir_divides_data(divided) ? divided : ir_select(m->cx, ir_ne(m->cx, d, zero), divided, a);
}

static const ir_expr *operation(maker *m, base_dtype t, int depth)
{
    ir_op op = random_op(m, t);
    const ir_expr *a = whole(m, any(m, t, depth - 1));
    if (ir_ops[op].flags & IR_ZERO_FAILS)
        return division(m, op, t, a, depth);
    const ir_expr *b = whole(m, any(m, t, depth - 1));
    return op == IR_FMA ? ir_fma(m->cx, a, b, whole(m, any(m, t, depth - 1))) : ir_op2(m->cx, op, a, b);
}

static const ir_expr *leaf(maker *m, base_dtype t)
{
    for (int k = m->vars.n - 1; k >= 0 && below(m, 2); k--)
        if (base_dtype_same(base_dtype_lanes(((const ir_expr *)m->vars.at[k])->dtype, 1), t))
            return m->vars.at[k];
    return below(m, 3) ? load_near(m, t, 0, 1) : constant(m, t);
}

static const ir_expr *shared(maker *m, base_dtype t)
{
    for (int tries = 0; tries < 4 && m->pool.n; tries++) {
        const ir_expr *e = m->pool.at[below(m, m->pool.n)];
        if (base_dtype_same(base_dtype_lanes(e->dtype, 1), t))
            return e;
    }
    return leaf(m, t);
}

static const ir_expr *any(maker *m, base_dtype t, int depth)
{
    const ir_expr *e;
    int choice = depth <= 0 ? 0 : (int)below(m, 12);
    if (choice == 0)
        return leaf(m, t);
    if (choice == 1)
        return shared(m, t);
    if (choice == 2)
        e = guarded(m, t, depth);
    else if (choice == 3)
        e = through_let(m, t, depth);
    else if (choice == 4)
        e = ir_cast(m->cx, base_dtype_lanes(t, m->lanes), whole(m, any(m, random_type(m), depth - 1)));
    else if (choice == 5)
        e = ir_select(m->cx, whole(m, compared(m, depth)), whole(m, any(m, t, depth - 1)),
                      whole(m, any(m, t, depth - 1)));
    else
        e = base_is_bool(t) && choice < 9 ? compared(m, depth) : operation(m, t, depth);
    if (m->vars.n == 0)
        base_push(m->cx, &m->pool, e);
    return e;
}

/* ---- one case ---- */

static const ir_program *random_program(maker *m)
{
    const ir_expr *j = ir_var(m->cx, "j", BASE_I64);
    const ir_buffer *buffers[2 * N_TYPES];
    const ir_stmt *stores[N_TYPES];
    m->i = lanes_from(m->cx, ir_mul(m->cx, j, ir_int(m->cx, m->lanes)), m->lanes);
    for (int k = 0; k < N_TYPES; k++) {
        buffers[k] = m->in[k] = array(m->cx, base_format(m->cx, "in%d", k), types[k], N);
        buffers[N_TYPES + k] = m->out[k] = array(m->cx, base_format(m->cx, "out%d", k), types[k], N);
    }
    for (int k = 0; k < N_TYPES; k++)
        stores[k] = store_at(m->cx, m->out[k], m->i,
                             whole(m, any(m, types[k],
                                          m->lanes <= 4   ? 5
                                          : m->lanes <= 8 ? 4
                                                          : 3)));
    ir_how how = below(m, 3) ? IR_SERIAL : IR_PARALLEL;
    const ir_stmt *body =
        ir_for(m->cx, j, ir_int(m->cx, 0), ir_int(m->cx, N / m->lanes), how, ir_seq(m->cx, stores, N_TYPES));
    ir_program *p = ir_program_copy(m->cx, program_of(m->cx, "random", buffers, 2 * N_TYPES, body));
    for (int k = 0; k < N_TYPES; k++)
        ((ir_param *)(uintptr_t)p->params)[N_TYPES + k].output = true;
    return p;
}

static void fill(maker *m, void *data, base_dtype t)
{
    for (int i = 0; i < N; i++) {
        int64_t v =
            base_is_bool(t) ? below(m, 2) : below(m, 17) - (base_is_int(t) && !base_is_signed(t) ? 0 : 8);
        float f = (float)v;
        uint16_t half = t.code == kDLBfloat ? base_float_to_bfloat(f) : base_float_to_half(f);
        const void *from = !base_is_float(t) ? (const void *)&v
                           : t.bits == 32    ? (const void *)&f
                                             : (const void *)&half;
        memcpy((char *)data + i * base_dtype_bytes(t), from, (size_t)base_dtype_bytes(t));
    }
}

static bool same_element(const void *a, const void *b, base_dtype t, int i)
{
    const char *x = (const char *)a + i * base_dtype_bytes(t), *y = (const char *)b + i * base_dtype_bytes(t);
    if (memcmp(x, y, (size_t)base_dtype_bytes(t)) == 0)
        return true;
    float f[2];
    uint16_t h[2];
    if (t.bits == 32)
        memcpy(&f[0], x, 4), memcpy(&f[1], y, 4);
    memcpy(&h[0], x, base_dtype_bytes(t) > 1 ? 2 : 1);
    memcpy(&h[1], y, base_dtype_bytes(t) > 1 ? 2 : 1);
    for (int k = 0; k < 2 && t.bits == 16; k++)
        f[k] = t.code == kDLBfloat ? base_bfloat_to_float(h[k]) : base_half_to_float(h[k]);
    return base_is_float(t) && (f[0] == f[1] || (isnan(f[0]) && isnan(f[1])));
}

static void run_case(uint64_t seed)
{
    static const int lanes[] = {1, 4, 8, 16, 32, 2};
    tec_context *cx = tec_context_new();
    maker m = {.cx = cx, .state = seed, .lanes = lanes[seed % 6]};
    const char *words = test_targets[seed / 6 % BASE_COUNT(test_targets)];
    const ir_program *p = random_program(&m);
    ir_array arrays[2 * N_TYPES];
    ir_arg args[2 * N_TYPES];
    void *data[2 * N_TYPES];
    for (int k = 0; k < 2 * N_TYPES; k++) {
        data[k] = base_alloc(cx, N * 8);
        if (k < N_TYPES)
            fill(&m, data[k], types[k]);
        arrays[k] = (ir_array){.dtype = types[k % N_TYPES],
                               .n = 1,
                               .shape = {N},
                               .data = k < N_TYPES ? data[k] : base_alloc(cx, N * 8)};
        args[k] = (ir_arg){.array = &arrays[k]};
    }
    if (runs_here(cx, words)) {
        cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "seed %llu: %s", (unsigned long long)seed,
                  tec_context_error(cx));
        kernel k = compile(cx, p, words);
        cr_assert(eq(int, call(&k, data, NULL), 0));
        for (int j = 0; j < N_TYPES; j++)
            for (int i = 0; i < N; i++)
                cr_assert(same_element(data[N_TYPES + j], arrays[N_TYPES + j].data, types[j], i),
                          "seed %llu on '%s': out%d[%d] differs\n%s", (unsigned long long)seed, words, j, i,
                          ir_program_text(cx, p));
        close_kernel(&k);
    }
    tec_context_free(cx);
}

TestSuite(random, .timeout = 3600);

Test(random, programs_mean_what_the_interpreter_says)
{
    const char *asked = getenv("TEC_TEST_SEED"), *many = getenv("TEC_TEST_FULL");
    uint64_t first = asked ? strtoull(asked, NULL, 10) : 1, n = asked ? 1 : many ? 100 * CASES : CASES;
    for (uint64_t seed = first; seed < first + n; seed++)
        run_case(seed);
}
