/* tec/te.h -- tensor expressions: what to compute, not how.
 *
 *     tec_def *d = tec_def_new(cx, "mm");
 *     const tec_expr *n = tec_symbol(d, "n"), *m = tec_int(cx, 1024);
 *     tec_tensor *A = tec_input(d, "A", TEC_F32, n, m), *B = tec_input(d, "B", TEC_F32, m, m);
 *     const tec_expr *y = tec_axis(cx, "y", n), *x = tec_axis(cx, "x", m), *k = tec_reduce_axis(cx, "k", m);
 *     tec_tensor *C = tec_compute(d, "C", tec_sum(cx, tec_mul(cx, tec_at(A, y, k), tec_at(B, k, x)), k), y,
 *         x);
 *     tec_output(d, C);
 *
 * The constructors are macros around functions of the same name, which remember the caller's line.
 * Lifetime: everything belongs to the context and dies with it.
 * Errors: a constructor that cannot make sense of its operands records a message with the caller's line and
 *   returns NULL; NULL operands give NULL, so a whole definition is checked once, at its end. The first
 *   message wins.
 * Threads: one context, one thread; a finished definition may be read by many.
 */
#ifndef TEC_TE_H
#define TEC_TE_H

#include <stdbool.h>

#include "tec/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tec_expr tec_expr;
typedef struct tec_tensor tec_tensor;
typedef struct tec_def tec_def;
typedef struct te_scan tec_scan;

/* The data type of an element: signed and unsigned integers of 8 to 64 bits, floats, and bfloat16. */
typedef enum {
    TEC_BOOL,
    TEC_I8,
    TEC_I16,
    TEC_I32,
    TEC_I64,
    TEC_U8,
    TEC_U16,
    TEC_U32,
    TEC_U64,
    TEC_F16,
    TEC_BF16,
    TEC_F32,
    TEC_F64
} tec_dtype;

/* ---- definitions ---- */

TEC_API tec_def *tec_def_new(tec_context *cx, const char *name);
/* Reads `.te` text and gives its index-th definition, index from 0. Errors name `file`. */
TEC_API tec_def *tec_def_parse(tec_context *cx, const char *file, const char *text, int index);
/* The definition as `.te` text, which tec_def_parse reads back. */
TEC_API const char *tec_def_text(tec_context *cx, const tec_def *def);

/* A dimension that is known when the function is called; the same name gives the same symbol. */
TEC_API const tec_expr *tec_symbol(tec_def *def, const char *name);
/* A condition on symbols that callers promise to meet, such as n % 8 == 0. Each call is checked against it;
 * the compiler relies on it, for example to leave out the code for a remainder. */
TEC_API void tec_fact(tec_def *def, const tec_expr *condition);
/* The parameters of the function: first the inputs, then the scalars, then the outputs, each in the order in
 * which they were declared. The extents in `shape` are i64 expressions over symbols. */
TEC_API tec_tensor *tec_input_n(tec_def *def, const char *name, tec_dtype dtype, const tec_expr *const *shape,
                                int n);
TEC_API const tec_expr *tec_scalar(tec_def *def, const char *name, tec_dtype dtype);
TEC_API void tec_output(tec_def *def, tec_tensor *tensor);

/* An axis runs over 0..extent-1. A tensor has one axis for each dimension; reduction axes are bound by
 * tec_sum and its like. */
TEC_API const tec_expr *tec_axis(tec_context *cx, const char *name, const tec_expr *extent);
TEC_API const tec_expr *tec_reduce_axis(tec_context *cx, const char *name, const tec_expr *extent);

/* The tensor whose element at (axis...) is body. */
TEC_API tec_tensor *tec_compute_n(tec_def *def, const char *name, const tec_expr *body,
                                  const tec_expr *const *axis, int n);

/* A recurrence over the axis `time`, such as h[t] = tanh(x[t] + h[t - 1]). Three calls make one:
 * tec_scan_state declares a tensor that is carried from step to step. Its body gives the values of the first
 * steps, as many as its first axis is long (a constant): here one, h[0]. tec_scan_step says what each later
 * step computes; its first axis is `time`. If its name is that of a state, it computes the state's next
 * value. Its body may read states at earlier times (time - 1, time - 2, ...), and the results of steps that
 * were declared before it at the same time. tec_scan_close ends the recurrence. It gives false, with an
 * error, if no step computes some state.
 *
 *     const tec_expr *t0 = tec_axis(cx, "t0", tec_int(cx, 1)); // h[0] is given
 *     tec_scan *s = tec_scan_new(d, "S", t);
 *     tec_tensor *h = tec_scan_state(s, "h", tec_at(h0, j), t0, j);
 *     tec_scan_step(s, "h", tec_tanh(cx, tec_add(cx, tec_at(x, t, j), tec_at(h, tec_sub(cx, t, tec_int(cx,
 *         1)), j))), t, j);
 *     tec_scan_close(s);
 */
TEC_API tec_scan *tec_scan_new(tec_def *def, const char *name, const tec_expr *time);
TEC_API tec_tensor *tec_scan_state_n(tec_scan *scan, const char *name, const tec_expr *body,
                                     const tec_expr *const *axis, int n);
TEC_API tec_tensor *tec_scan_step_n(tec_scan *scan, const char *name, const tec_expr *body,
                                    const tec_expr *const *axis, int n);
TEC_API bool tec_scan_close(tec_scan *scan);

typedef struct {
    const char *name;
    tec_dtype dtype;
    const tec_expr *const *shape;
    int n;
} tec_extern_output;

/* A call of a C function of the user's, as a stage of the definition:
 *     int32_t f(const T *input..., T *output..., argument...)
 * Generated code asks tec_run_options.extern_function for the function of this name. The tensors that it gets
 * are compact and row-major; an argument has the C type of its dtype (bool: uint8_t; float16 and bfloat16:
 * uint16_t). The function must write all of its outputs and nothing else. It gives 0 for success; any other
 * result fails the call. */
typedef struct {
    const char *function; /* a C identifier */
    tec_tensor *const *input;
    int n_inputs;
    const tec_extern_output *output;
    int n_outputs;
    const tec_expr *const *arg; /* over symbols and scalars */
    int n_args;
    /* A definition that computes the same, so that tests can compare the function's results with it. It has
     * the same inputs and outputs; the arguments are its symbols, followed by its scalars. May be NULL. */
    const tec_def *meaning;
} tec_extern_call;
/* Adds the call; out receives the n_outputs tensors that it writes. */
TEC_API bool tec_extern(tec_def *def, const char *name, const tec_extern_call *call, tec_tensor **out);

/* A table of tensor intrinsics, declared in `.te` text. A declaration says what an instruction computes, as a
 * definition, and which text (C, LLVM IR or assembly) makes code of it (docs/tensorize.md). */
typedef struct te_intrinsics tec_intrinsics;
TEC_API tec_intrinsics *tec_intrinsics_parse(tec_context *cx, const char *file, const char *text);
TEC_API int tec_intrinsics_count(const tec_intrinsics *intrinsics);
TEC_API const char *tec_intrinsics_text(tec_context *cx,
                                        const tec_intrinsics *intrinsics); /* all of them, in order */

/* ---- expressions ---- */

/* i64, the type of indices */
TEC_API const tec_expr *tec_int(tec_context *cx, int64_t value);
TEC_API const tec_expr *tec_const(tec_context *cx, tec_dtype dtype, double value);
TEC_API const tec_expr *tec_cast(tec_context *cx, tec_dtype dtype, const tec_expr *expr);
TEC_API const tec_expr *tec_at_n(tec_tensor *tensor, const tec_expr *const *index, int n); /* an element */
/* Combines the values of expr at all points of the reduction axes. combiner: "sum", "prod", "min", "max",
 * "any" or "all". */
TEC_API const tec_expr *tec_reduce_n(tec_context *cx, const char *combiner, const tec_expr *expr,
                                     const tec_expr *const *axis, int n);

/* Both operands have the same dtype; an integer constant takes the dtype of the operand beside it. docs/ir.md
 * says what each operator computes, also on overflow and for NaN. */
/* clang-format off */
#define TEC_UNARY_LIST(X) \
    X(neg) X(abs) X(floor) X(ceil) X(trunc) X(round) X(sqrt) X(rsqrt) X(exp) X(exp2) \
    X(log) X(log2) X(tanh) X(sigmoid) X(erf) X(sin) X(cos) X(tan) X(asin) X(acos) \
    X(atan) X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(isnan) X(isinf) X(not) X(bitnot) \
    X(popcount) X(clz)
#define TEC_BINARY_LIST(X) \
    X(add) X(sub) X(mul) X(div) X(mod) X(floordiv) X(floormod) X(min) X(max) X(eq) \
    X(ne) X(lt) X(le) X(gt) X(ge) X(and) X(or) X(bitand) X(bitor) X(bitxor) \
    X(shl) X(shr) X(pow) X(copysign)
/* clang-format on */
#define TEC_TERNARY_LIST(X) X(select) X(fma)
#define X(name) TEC_API const tec_expr *tec_##name(tec_context *cx, const tec_expr *a);
TEC_UNARY_LIST(X)
#undef X
#define X(name) TEC_API const tec_expr *tec_##name(tec_context *cx, const tec_expr *a, const tec_expr *b);
TEC_BINARY_LIST(X)
#undef X
#define X(name)                                                                                              \
    TEC_API const tec_expr *tec_##name(tec_context *cx, const tec_expr *a, const tec_expr *b,                \
                                       const tec_expr *c);
TEC_TERNARY_LIST(X)
#undef X

/* ---- the caller's line ---- */

TEC_API tec_def *tec_here_def(tec_def *def, const char *file, int line);
TEC_API tec_scan *tec_here_scan(tec_scan *scan, const char *file, int line);
TEC_API tec_tensor *tec_here_tensor(tec_tensor *tensor, const char *file, int line);
#define TEC_HERE_DEF(d) tec_here_def((d), __FILE__, __LINE__)
#define TEC_HERE_SCAN(s) tec_here_scan((s), __FILE__, __LINE__)

#define TEC_EXPRS(...) TEC_LIST(const tec_expr *const, __VA_ARGS__)
#define TEC_COUNT(...) TEC_LIST_COUNT(const tec_expr *const, __VA_ARGS__)

#define tec_def_new(cx, name) (tec_def_new)(TEC_HERE(cx), (name))
#define tec_fact(d, condition) (tec_fact)(TEC_HERE_DEF(d), (condition))
#define tec_input(d, name, t, ...)                                                                           \
    tec_input_n(TEC_HERE_DEF(d), (name), (t), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scalar(d, name, t) (tec_scalar)(TEC_HERE_DEF(d), (name), (t))
#define tec_output(d, t) (tec_output)(TEC_HERE_DEF(d), (t))
#define tec_axis(cx, name, extent) (tec_axis)(TEC_HERE(cx), (name), (extent))
#define tec_reduce_axis(cx, name, extent) (tec_reduce_axis)(TEC_HERE(cx), (name), (extent))
#define tec_compute(d, name, body, ...)                                                                      \
    tec_compute_n(TEC_HERE_DEF(d), (name), (body), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scan_new(d, name, time) (tec_scan_new)(TEC_HERE_DEF(d), (name), (time))
#define tec_scan_state(s, name, body, ...)                                                                   \
    tec_scan_state_n(TEC_HERE_SCAN(s), (name), (body), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scan_step(s, name, body, ...)                                                                    \
    tec_scan_step_n(TEC_HERE_SCAN(s), (name), (body), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scan_close(s) (tec_scan_close)(TEC_HERE_SCAN(s))
#define tec_extern(d, name, call, out) (tec_extern)(TEC_HERE_DEF(d), (name), (call), (out))
#define tec_at(t, ...)                                                                                       \
    tec_at_n(tec_here_tensor((t), __FILE__, __LINE__), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_cast(cx, t, e) (tec_cast)(TEC_HERE(cx), (t), (e))
#define tec_reduce(cx, combiner, e, ...)                                                                     \
    tec_reduce_n(TEC_HERE(cx), (combiner), (e), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_sum(cx, e, ...) tec_reduce(cx, "sum", e, __VA_ARGS__)
#define tec_max_over(cx, e, ...) tec_reduce(cx, "max", e, __VA_ARGS__)
#define tec_min_over(cx, e, ...) tec_reduce(cx, "min", e, __VA_ARGS__)
#define tec_neg(cx, a) (tec_neg)(TEC_HERE(cx), (a))
#define tec_abs(cx, a) (tec_abs)(TEC_HERE(cx), (a))
#define tec_floor(cx, a) (tec_floor)(TEC_HERE(cx), (a))
#define tec_ceil(cx, a) (tec_ceil)(TEC_HERE(cx), (a))
#define tec_trunc(cx, a) (tec_trunc)(TEC_HERE(cx), (a))
#define tec_round(cx, a) (tec_round)(TEC_HERE(cx), (a))
#define tec_sqrt(cx, a) (tec_sqrt)(TEC_HERE(cx), (a))
#define tec_rsqrt(cx, a) (tec_rsqrt)(TEC_HERE(cx), (a))
#define tec_exp(cx, a) (tec_exp)(TEC_HERE(cx), (a))
#define tec_exp2(cx, a) (tec_exp2)(TEC_HERE(cx), (a))
#define tec_log(cx, a) (tec_log)(TEC_HERE(cx), (a))
#define tec_log2(cx, a) (tec_log2)(TEC_HERE(cx), (a))
#define tec_tanh(cx, a) (tec_tanh)(TEC_HERE(cx), (a))
#define tec_sigmoid(cx, a) (tec_sigmoid)(TEC_HERE(cx), (a))
#define tec_erf(cx, a) (tec_erf)(TEC_HERE(cx), (a))
#define tec_sin(cx, a) (tec_sin)(TEC_HERE(cx), (a))
#define tec_cos(cx, a) (tec_cos)(TEC_HERE(cx), (a))
#define tec_tan(cx, a) (tec_tan)(TEC_HERE(cx), (a))
#define tec_asin(cx, a) (tec_asin)(TEC_HERE(cx), (a))
#define tec_acos(cx, a) (tec_acos)(TEC_HERE(cx), (a))
#define tec_atan(cx, a) (tec_atan)(TEC_HERE(cx), (a))
#define tec_sinh(cx, a) (tec_sinh)(TEC_HERE(cx), (a))
#define tec_cosh(cx, a) (tec_cosh)(TEC_HERE(cx), (a))
#define tec_asinh(cx, a) (tec_asinh)(TEC_HERE(cx), (a))
#define tec_acosh(cx, a) (tec_acosh)(TEC_HERE(cx), (a))
#define tec_atanh(cx, a) (tec_atanh)(TEC_HERE(cx), (a))
#define tec_isnan(cx, a) (tec_isnan)(TEC_HERE(cx), (a))
#define tec_isinf(cx, a) (tec_isinf)(TEC_HERE(cx), (a))
#define tec_not(cx, a) (tec_not)(TEC_HERE(cx), (a))
#define tec_bitnot(cx, a) (tec_bitnot)(TEC_HERE(cx), (a))
#define tec_popcount(cx, a) (tec_popcount)(TEC_HERE(cx), (a))
#define tec_clz(cx, a) (tec_clz)(TEC_HERE(cx), (a))
#define tec_add(cx, a, b) (tec_add)(TEC_HERE(cx), (a), (b))
#define tec_sub(cx, a, b) (tec_sub)(TEC_HERE(cx), (a), (b))
#define tec_mul(cx, a, b) (tec_mul)(TEC_HERE(cx), (a), (b))
#define tec_div(cx, a, b) (tec_div)(TEC_HERE(cx), (a), (b))
#define tec_mod(cx, a, b) (tec_mod)(TEC_HERE(cx), (a), (b))
#define tec_floordiv(cx, a, b) (tec_floordiv)(TEC_HERE(cx), (a), (b))
#define tec_floormod(cx, a, b) (tec_floormod)(TEC_HERE(cx), (a), (b))
#define tec_min(cx, a, b) (tec_min)(TEC_HERE(cx), (a), (b))
#define tec_max(cx, a, b) (tec_max)(TEC_HERE(cx), (a), (b))
#define tec_eq(cx, a, b) (tec_eq)(TEC_HERE(cx), (a), (b))
#define tec_ne(cx, a, b) (tec_ne)(TEC_HERE(cx), (a), (b))
#define tec_lt(cx, a, b) (tec_lt)(TEC_HERE(cx), (a), (b))
#define tec_le(cx, a, b) (tec_le)(TEC_HERE(cx), (a), (b))
#define tec_gt(cx, a, b) (tec_gt)(TEC_HERE(cx), (a), (b))
#define tec_ge(cx, a, b) (tec_ge)(TEC_HERE(cx), (a), (b))
#define tec_and(cx, a, b) (tec_and)(TEC_HERE(cx), (a), (b))
#define tec_or(cx, a, b) (tec_or)(TEC_HERE(cx), (a), (b))
#define tec_bitand(cx, a, b) (tec_bitand)(TEC_HERE(cx), (a), (b))
#define tec_bitor(cx, a, b) (tec_bitor)(TEC_HERE(cx), (a), (b))
#define tec_bitxor(cx, a, b) (tec_bitxor)(TEC_HERE(cx), (a), (b))
#define tec_shl(cx, a, b) (tec_shl)(TEC_HERE(cx), (a), (b))
#define tec_shr(cx, a, b) (tec_shr)(TEC_HERE(cx), (a), (b))
#define tec_pow(cx, a, b) (tec_pow)(TEC_HERE(cx), (a), (b))
#define tec_copysign(cx, a, b) (tec_copysign)(TEC_HERE(cx), (a), (b))
#define tec_select(cx, a, b, c) (tec_select)(TEC_HERE(cx), (a), (b), (c))
#define tec_fma(cx, a, b, c) (tec_fma)(TEC_HERE(cx), (a), (b), (c))

#ifdef __cplusplus
}
#endif
#endif
