/* Every scalar operation and cast, on every dtype and several vector lengths, against the evaluator of the
 * interpreter. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "ir/eval.h"
#include "tests/targets/llvm/run.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(operations, .init = setup, .fini = teardown, .timeout = 600);

enum { N = 192 };

static const base_dtype dtypes[] = {
    {kDLBool, 8, 1}, {kDLInt, 8, 1},    {kDLInt, 16, 1},    {kDLInt, 32, 1},   {kDLInt, 64, 1},
    {kDLUInt, 8, 1}, {kDLUInt, 16, 1},  {kDLUInt, 32, 1},   {kDLUInt, 64, 1},  {kDLInt, 4, 1},
    {kDLUInt, 4, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1},
};

/* ---- values ---- */

static ir_value int_value(uint64_t *state, base_dtype t, int i)
{
    static const int64_t corners[] = {0,  1,         -1,        2,         -2,        3,   7,   8,
                                      -8, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 127, -128};
    int64_t v =
        i < BASE_COUNT(corners) ? corners[i] : (int64_t)base_random(state) >> (base_random(state) % 64);
    return ir_eval_cast(BASE_I64, t, (ir_value){.i = v});
}

static ir_value float_value(uint64_t *state, base_dtype t, int i)
{
    static const double corners[] = {0,        -0.0,      1,   -1,    0.5,   1.5,    2.5,          -2.5,
                                     INFINITY, -INFINITY, NAN, 127.5, 255.9, -128.9, 2147483648.0, 1e19,
                                     -1e19,    65504};
    double v = i < BASE_COUNT(corners)
                   ? corners[i]
                   : (base_random_unit(state) - 0.5) * exp2((double)(int)(base_random(state) % 24) - 6);
    return ir_eval_cast(BASE_F64, t, (ir_value){.f = v});
}

static ir_value random_value(uint64_t *state, base_dtype t, int i)
{
    return base_is_float(t) ? float_value(state, t, i) : int_value(state, t, i);
}

/* An operation sees pairs of corners: the second operand runs through them faster. */
static int corner(int operand, int i)
{
    return operand == 0 ? i / 12 : operand == 1 ? i % 12 : i % 7;
}

static void put(void *array, base_dtype t, int i, ir_value v)
{
    char *at = (char *)array + (size_t)i * (size_t)base_dtype_bytes(t);
    uint16_t half = t.code == kDLBfloat ? base_double_to_bfloat(v.f) : base_double_to_half(v.f);
    float single = (float)v.f;
    if (base_is_float(t))
        memcpy(at,
               t.bits == 16   ? (void *)&half
               : t.bits == 32 ? (void *)&single
                              : (void *)&v.f,
               (size_t)t.bits / 8);
    else
        memcpy(at, &v.i, (size_t)base_dtype_bytes(t));
}

static ir_value get(const void *array, base_dtype t, int i)
{
    const char *at = (const char *)array + (size_t)i * (size_t)base_dtype_bytes(t);
    uint16_t half;
    float single;
    double twice;
    int64_t v = 0;
    memcpy(&half, at, sizeof half);
    memcpy(&single, at, sizeof single);
    memcpy(&twice, at, sizeof twice);
    memcpy(&v, at, (size_t)base_dtype_bytes(t));
    if (base_is_float(t))
        return (ir_value){.f = t.bits == 64          ? twice
                               : t.bits == 32        ? (double)single
                               : t.code == kDLBfloat ? (double)base_bfloat_to_float(half)
                                                     : (double)base_half_to_float(half)};
    return base_is_bool(t) ? (ir_value){.i = v} : ir_eval_cast(BASE_I64, t, (ir_value){.i = v});
}

/* A result below the normal numbers may have been flushed. */
static bool agrees(base_dtype t, ir_value got, ir_value want)
{
    if (!base_is_float(t))
        return got.i == want.i;
    double least = t.bits == 64 ? DBL_MIN : FLT_MIN;
    return (isnan(got.f) && isnan(want.f)) || got.f == want.f ||
           (fabs(want.f) < least && fabs(got.f) <= least);
}

/* ---- operations ---- */

static bool takes(const ir_op_info *op, base_dtype t)
{
    switch (op->operands) {
    case IR_NUM: return !base_is_bool(t);
    case IR_INTS: return base_is_int(t);
    case IR_FLT: return base_is_float(t);
    case IR_BOOL: return base_is_bool(t);
    default: return true;
    }
}

static bool is_inexact(ir_op op)
{
    return (op >= IR_RSQRT && op <= IR_ATANH);
}

static int usable_ops(base_dtype t, ir_op *ops)
{
    int n = 0;
    for (int op = IR_REDUCE + 1; op < IR_N_OPS; op++)
        if (takes(&ir_ops[op], t) && !is_inexact((ir_op)op))
            ops[n++] = (ir_op)op;
    return n;
}

static base_dtype result_of(ir_op op, base_dtype t)
{
    return ir_ops[op].result == IR_BOOLEAN ? BASE_BOOL : t;
}

/* in0, in1, in2 of dtype t, cond of bool; one output for each operation. */
static const ir_program *all_ops(base_dtype t, const ir_op *ops, int n, int lanes)
{
    const ir_buffer **buffers = base_array(cx, const ir_buffer *, n + 4);
    const ir_expr *i = ir_var(cx, "i", BASE_I64),
                  *at = lanes_from(cx, ir_mul(cx, i, ir_int(cx, lanes)), lanes), *in[4];
    const ir_stmt **stores = base_array(cx, const ir_stmt *, n);
    for (int k = 0; k < 4; k++) {
        buffers[k] = array(cx, base_format(cx, "in%d", k), k == 3 ? BASE_BOOL : t, N);
        in[k] = load_at(cx, buffers[k], at);
    }
    for (int k = 0; k < n; k++) {
        bool select = ir_ops[ops[k]].operands == IR_COND;
        const ir_expr *args[] = {select ? in[3] : in[0], select ? in[0] : in[1], select ? in[1] : in[2]};
        buffers[k + 4] = array(cx, base_format(cx, "out%d", k), result_of(ops[k], t), N);
        stores[k] = store_at(cx, buffers[k + 4], at, ir_op_raw(cx, ops[k], args));
    }
    const ir_stmt *body =
        ir_for(cx, i, ir_int(cx, 0), ir_int(cx, N / lanes), IR_SERIAL, ir_seq(cx, stores, n));
    return program_of(cx, base_format(cx, "ops_%s", base_dtype_text(cx, t)), buffers, n + 4, body);
}

static void check_op(const char *words, base_dtype t, ir_op op, int lanes, void *const *in, const void *out)
{
    bool select = ir_ops[op].operands == IR_COND;
    for (int i = 0; i < N; i++) {
        ir_value v[3] = {get(in[0], t, i), get(in[1], t, i), get(in[2], t, i)}, want;
        ir_value args[] = {select ? get(in[3], BASE_BOOL, i) : v[0], select ? v[0] : v[1],
                           select ? v[1] : v[2]};
        cr_assert(ir_eval_op(op, t, args, &want), "%s has no value", ir_ops[op].name);
        ir_value got = get(out, result_of(op, t), i);
        cr_assert(agrees(result_of(op, t), got, want),
                  "%s of %s x %d on '%s', case %d: (%lld %a, %lld %a, %lld %a) gives %lld %a, not %lld %a",
                  ir_ops[op].name, base_dtype_text(cx, t), lanes, words, i, (long long)v[0].i, v[0].f,
                  (long long)v[1].i, v[1].f, (long long)v[2].i, v[2].f, (long long)got.i, got.f,
                  (long long)want.i, want.f);
    }
}

static void fill_operands(base_dtype t, void **in)
{
    uint64_t state = 5;
    for (int k = 0; k < 4; k++) {
        in[k] = base_alloc(cx, N * 8);
        for (int i = 0; i < N; i++) {
            ir_value v = k == 3 ? (ir_value){.i = i / 3 % 2} : random_value(&state, t, corner(k, i));
            /* The first 144 are pairs of corners; a divisor is never 0. */
            if (i >= 144 && k < 3)
                v = random_value(&state, t, 100);
            if (k == 1 && base_is_int(t) && v.i == 0)
                v.i = 1;
            put(in[k], k == 3 ? BASE_BOOL : t, i, v);
        }
    }
}

static void all_dtypes(const char *words, int lanes)
{
    ir_op ops[IR_N_OPS];
    if (!runs_here(cx, words))
        return;
    for (int k = 0; k < BASE_COUNT(dtypes); k++) {
        base_dtype t = dtypes[k];
        int n = usable_ops(t, ops);
        void *args[IR_N_OPS + 4];
        fill_operands(t, args);
        for (int j = 0; j < n; j++)
            args[j + 4] = base_alloc(cx, N * 8);
        kernel kernel_of = compile(cx, all_ops(t, ops, n, lanes), words);
        cr_assert(eq(int, call(&kernel_of, args, NULL), 0));
        for (int j = 0; j < n; j++)
            check_op(words, t, ops[j], lanes, args, args[j + 4]);
        close_kernel(&kernel_of);
    }
}

Test(operations, of_scalars_mean_what_the_interpreter_says)
{
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        all_dtypes(test_targets[i], 1);
}

Test(operations, of_vectors_mean_what_the_interpreter_says)
{
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        all_dtypes(test_targets[i], i % 2 ? 8 : 16);
}

Test(operations, of_odd_vectors_mean_what_the_interpreter_says)
{
    all_dtypes("native", 3);
    all_dtypes("llvm -mcpu=x86-64", 6);
}

static const char *const elsewhere[] = {"llvm -mcpu=cortex-a53",
                                        "llvm -mcpu=neoverse-v1",
                                        "llvm -mcpu=znver4",
                                        "llvm -mcpu=skylake-avx512",
                                        "llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9",
                                        "llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a53"};

/* What cannot run here can still be generated, with nothing to import but the architecture's helpers. */
static void exists_on(const char *words, const ir_program *p)
{
    lower_options lowering = {.cx = cx, .target = target_parse(cx, words)};
    const ir_program *q = lower_math(&lowering, p);
    const target_code *code = q ? llvm_generate(cx, &q, 1, lowering.target, NULL) : NULL;
    cr_assert(code != NULL, "%s on '%s': %s", p->name, words, tec_context_error(cx));
    cr_assert(code->helpers == NULL || !strcmp(target_arch_name(lowering.target), "armv7"),
              "%s on '%s' calls %s", p->name, words, code->helpers);
}

Test(operations, exist_on_other_architectures)
{
    ir_op ops[IR_N_OPS];
    for (int i = 0; i < BASE_COUNT(elsewhere); i++)
        for (int k = 0; k < BASE_COUNT(dtypes); k++) {
            int n = usable_ops(dtypes[k], ops);
            exists_on(elsewhere[i], all_ops(dtypes[k], ops, n, k % 2 ? 1 : 8));
        }
}

/* ---- casts ---- */

static const ir_program *all_casts(base_dtype t, int lanes)
{
    int n = BASE_COUNT(dtypes);
    const ir_buffer **buffers = base_array(cx, const ir_buffer *, n + 1);
    const ir_expr *i = ir_var(cx, "i", BASE_I64),
                  *at = lanes_from(cx, ir_mul(cx, i, ir_int(cx, lanes)), lanes);
    const ir_stmt **stores = base_array(cx, const ir_stmt *, n);
    buffers[0] = array(cx, "in", t, N);
    for (int k = 0; k < n; k++) {
        buffers[k + 1] = array(cx, base_format(cx, "out%d", k), dtypes[k], N);
        stores[k] = store_at(cx, buffers[k + 1], at,
                             ir_cast(cx, base_dtype_lanes(dtypes[k], lanes), load_at(cx, buffers[0], at)));
    }
    const ir_stmt *body =
        ir_for(cx, i, ir_int(cx, 0), ir_int(cx, N / lanes), IR_SERIAL, ir_seq(cx, stores, n));
    return program_of(cx, base_format(cx, "casts_%s", base_dtype_text(cx, t)), buffers, n + 1, body);
}

static void casts_from(const char *words, base_dtype t, int lanes)
{
    void *args[BASE_COUNT(dtypes) + 1];
    uint64_t state = 6;
    for (int k = 0; k <= BASE_COUNT(dtypes); k++)
        args[k] = base_alloc(cx, N * 8);
    for (int i = 0; i < N; i++)
        put(args[0], t, i, random_value(&state, t, i));
    kernel k = compile(cx, all_casts(t, lanes), words);
    cr_assert(eq(int, call(&k, args, NULL), 0));
    for (int j = 0; j < BASE_COUNT(dtypes); j++)
        for (int i = 0; i < N; i++) {
            ir_value v = get(args[0], t, i), want = ir_eval_cast(t, dtypes[j], v),
                     got = get(args[j + 1], dtypes[j], i);
            cr_assert(agrees(dtypes[j], got, want),
                      "%s to %s x %d on '%s': %lld %a gives %lld %a, not %lld %a", base_dtype_text(cx, t),
                      base_dtype_text(cx, dtypes[j]), lanes, words, (long long)v.i, v.f, (long long)got.i,
                      got.f, (long long)want.i, want.f);
        }
    close_kernel(&k);
}

Test(operations, casts_saturate_wrap_and_round_once)
{
    for (int i = 0; i < BASE_COUNT(test_targets); i++)
        for (int k = 0; k < BASE_COUNT(dtypes); k++)
            if (runs_here(cx, test_targets[i]))
                casts_from(test_targets[i], dtypes[k], k % 2 ? 8 : 1);
    for (int k = 0; k < BASE_COUNT(dtypes); k++)
        casts_from("native", dtypes[k], 16);
}

Test(operations, casts_exist_on_other_architectures)
{
    for (int i = 0; i < BASE_COUNT(elsewhere); i++)
        for (int k = 0; k < BASE_COUNT(dtypes); k++)
            for (int lanes = 1; lanes <= 8; lanes *= 8)
                exists_on(elsewhere[i], all_casts(dtypes[k], lanes));
}

/* All 65,536 bit patterns of both types, widened and narrowed: the value is the same, or a NaN again. A
 * denormal bfloat16 may become zero, as denormals are flushed. */
Test(operations, every_half_survives_the_way_through_a_float)
{
    static uint16_t in[1 << 16], out[1 << 16];
    const base_dtype halves[] = {BASE_F16, BASE_BF16};
    for (int i = 0; i < 2 * BASE_COUNT(test_targets); i++) {
        const char *words = test_targets[i / 2];
        base_dtype t = halves[i % 2];
        if (!runs_here(cx, words))
            continue;
        const ir_buffer *a = array(cx, "a", t, 1 << 16), *b = array(cx, "b", t, 1 << 16);
        const ir_expr *v = ir_var(cx, "i", BASE_I64), *at = lanes_from(cx, ir_mul(cx, v, ir_int(cx, 8)), 8);
        const ir_expr *there = ir_cast(cx, base_dtype_lanes(BASE_F32, 8), load_at(cx, a, at));
        const ir_stmt *body = store_at(cx, b, at, ir_cast(cx, base_dtype_lanes(t, 8), there));
        const ir_buffer *buffers[] = {a, b};
        kernel k = compile(cx,
                           program_of(cx, "through", buffers, 2,
                                      ir_for(cx, v, ir_int(cx, 0), ir_int(cx, 1 << 13), IR_SERIAL, body)),
                           words);
        for (int h = 0; h < 1 << 16; h++)
            in[h] = (uint16_t)h;
        cr_assert(eq(int, call(&k, (void *[]){in, out}, NULL), 0));
        for (int h = 0; h < 1 << 16; h++) {
            float f = t.code == kDLBfloat ? base_bfloat_to_float(in[h]) : base_half_to_float(in[h]);
            float g = t.code == kDLBfloat ? base_bfloat_to_float(out[h]) : base_half_to_float(out[h]);
            bool kept =
                (isnan(f) && isnan(g)) || f == g || (t.code == kDLBfloat && fabsf(f) < FLT_MIN && g == 0);
            cr_assert(kept, "%s %#x on '%s' becomes %#x", base_dtype_text(cx, t), h, words, out[h]);
        }
        close_kernel(&k);
    }
}

/* Numbers around each half and each middle between two, and what is too small or too large for one: rounded
 * to a half and widened again in one program, where the half never becomes 16 bits. */
Test(operations, floats_round_to_halves_and_stay_floats)
{
    static const uint32_t low[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
    enum { MANY = BASE_COUNT(low) << 19 };
    float *in = malloc(MANY * sizeof *in), *out = malloc(MANY * sizeof *out);

    for (uint32_t k = 0; k < MANY; k++) {
        uint32_t bits = (k / BASE_COUNT(low)) << 13 | low[k % BASE_COUNT(low)];
        memcpy(&in[k], &bits, sizeof bits);
    }
    for (int i = 0; i < 2 * BASE_COUNT(test_targets); i++) {
        const char *words = test_targets[i / 2];
        int lanes = i % 2 ? 8 : 1;
        if (!runs_here(cx, words))
            continue;
        const ir_buffer *a = array(cx, "a", BASE_F32, MANY), *b = array(cx, "b", BASE_F32, MANY);
        const ir_expr *v = ir_var(cx, "i", BASE_I64),
                      *at = lanes_from(cx, ir_mul(cx, v, ir_int(cx, lanes)), lanes);
        const ir_expr *half = ir_cast(cx, base_dtype_lanes(BASE_F16, lanes), load_at(cx, a, at));
        const ir_stmt *body = store_at(cx, b, at, ir_cast(cx, base_dtype_lanes(BASE_F32, lanes), half));
        const ir_buffer *buffers[] = {a, b};
        kernel k =
            compile(cx,
                    program_of(cx, "rounded", buffers, 2,
                               ir_for(cx, v, ir_int(cx, 0), ir_int(cx, MANY / lanes), IR_SERIAL, body)),
                    words);
        cr_assert(eq(int, call(&k, (void *[]){in, out}, NULL), 0));
        for (int n = 0; n < MANY; n++) {
            float want = base_half_to_float(base_float_to_half(in[n]));
            bool same =
                (isnan(want) && isnan(out[n])) || (want == out[n] && signbit(want) == signbit(out[n]));
            cr_assert(same, "%a on '%s' becomes %a, not %a", (double)in[n], words, (double)out[n],
                      (double)want);
        }
        close_kernel(&k);
    }
    free(in);
    free(out);
}
