/* tec/te.h -- tensor expressions: what to compute, not how.
 *
 *     tec_def *d = tec_def_new(cx, "mm");
 *     const tec_expr *n = tec_symbol(d, "n"), *m = tec_int(cx, 1024);
 *     tec_tensor *A = tec_input(d, "A", TEC_F32, n, m), *B = tec_input(d, "B", TEC_F32, m, m);
 *     const tec_expr *y = tec_axis(cx, "y", n), *x = tec_axis(cx, "x", m), *k = tec_reduce_axis(cx, "k", m);
 *     tec_tensor *C = tec_compute(d, "C", tec_sum(cx, tec_mul(cx, tec_at(A, y, k), tec_at(B, k, x)), k), y, x);
 *     tec_output(d, C);
 *
 * The constructors are macros around functions of the same name, which remember the caller's line.
 * Lifetime: everything belongs to the context and dies with it.
 * Errors: a constructor that cannot make sense of its operands records a message with the caller's line and returns NULL; NULL operands
 *   give NULL, so a whole definition is checked once, at its end. The first message wins.
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

/* dtypes of one element. */
typedef enum { TEC_BOOL, TEC_I8, TEC_I16, TEC_I32, TEC_I64, TEC_U8, TEC_U16, TEC_U32, TEC_U64, TEC_F16, TEC_BF16, TEC_F32, TEC_F64 } tec_dtype;

/* ---- definitions ---- */

TEC_API tec_def *tec_def_new(tec_context *cx, const char *name);
/* Reads definitions from `.te` text; `file` is named in errors. The k-th definition of the text. */
TEC_API tec_def *tec_def_parse(tec_context *cx, const char *file, const char *text, int k);
TEC_API const char *tec_def_text(tec_context *cx, const tec_def *d);

/* A dimension that is known when the function is called; the same name gives the same symbol. */
TEC_API const tec_expr *tec_symbol(tec_def *d, const char *name);
/* A promise of the caller about symbols, checked at each call: n % 8 == 0. */
TEC_API void tec_fact(tec_def *d, const tec_expr *condition);
/* Parameters, in order: inputs, then scalars, then outputs. Shape: i64 expressions over symbols. */
TEC_API tec_tensor *tec_input_n(tec_def *d, const char *name, tec_dtype t, const tec_expr *const *shape, int n);
TEC_API const tec_expr *tec_scalar(tec_def *d, const char *name, tec_dtype t);
TEC_API void tec_output(tec_def *d, tec_tensor *t);

/* An axis runs over 0..extent-1. A tensor has one axis for each dimension; reduction axes are bound by tec_sum and its like. */
TEC_API const tec_expr *tec_axis(tec_context *cx, const char *name, const tec_expr *extent);
TEC_API const tec_expr *tec_reduce_axis(tec_context *cx, const char *name, const tec_expr *extent);

/* The tensor whose element at (axis...) is body. */
TEC_API tec_tensor *tec_compute_n(tec_def *d, const char *name, const tec_expr *body, const tec_expr *const *axis, int n);

/* A recurrence over `time`, an axis. States come first, each with a constant number of given steps (over an axis of that extent), then what
 * is computed in each further step, in order; that reads states at time - 1, time - 2, ... and what stands before it at time. The first
 * axis of an update is `time`; the name of a state updates the state. tec_scan_close gives false, with an error, where a state has no update.
 *
 *     tec_scan *s = tec_scan_new(d, "S", t);
 *     tec_tensor *h = tec_scan_state(s, "h", tec_at(h0, j), t0, j);
 *     tec_scan_step(s, "h", tec_tanh(cx, tec_add(cx, tec_at(x, t, j), tec_at(h, tec_sub(cx, t, tec_int(cx, 1)), j))), t, j);
 *     tec_scan_close(s);
 */
TEC_API tec_scan *tec_scan_new(tec_def *d, const char *name, const tec_expr *time);
TEC_API tec_tensor *tec_scan_state_n(tec_scan *s, const char *name, const tec_expr *body, const tec_expr *const *axis, int n);
TEC_API tec_tensor *tec_scan_step_n(tec_scan *s, const char *name, const tec_expr *body, const tec_expr *const *axis, int n);
TEC_API bool tec_scan_close(tec_scan *s);

typedef struct {
    const char *name;
    tec_dtype dtype;
    const tec_expr *const *shape;
    int n;
} tec_extern_output;

/* A function of the user's that generated code finds by its name, in tec_run_options.extern_function:
 *     int32_t f(const T *input..., T *output..., argument...)
 * gets compact row-major tensors, and arguments as the C types of their dtypes (bool: uint8_t; float16 and bfloat16: uint16_t). It writes all
 * of its outputs and nothing else, and gives 0; anything else fails the call. */
typedef struct {
    const char *function; /* a C identifier */
    tec_tensor *const *input;
    int n_inputs;
    const tec_extern_output *output;
    int n_outputs;
    const tec_expr *const *arg; /* over symbols and scalars */
    int n_args;
    const tec_def *meaning; /* what it computes, for checks: inputs and outputs as here; its symbols, then scalars, are the arguments. May be NULL */
} tec_extern_call;
TEC_API bool tec_extern(tec_def *d, const char *name, const tec_extern_call *call, tec_tensor **out); /* out: n_outputs */

/* Declarations of tensor intrinsics, from `.te` text: what an instruction does, and the texts that write it. */
typedef struct te_intrinsics tec_intrinsics;
TEC_API tec_intrinsics *tec_intrinsics_parse(tec_context *cx, const char *file, const char *text);
TEC_API int tec_intrinsics_count(const tec_intrinsics *t);
TEC_API const char *tec_intrinsics_text(tec_context *cx, const tec_intrinsics *t); /* all of them, in order */

/* ---- expressions ---- */

TEC_API const tec_expr *tec_int(tec_context *cx, int64_t value);                      /* i64, the type of indices */
TEC_API const tec_expr *tec_const(tec_context *cx, tec_dtype t, double value);
TEC_API const tec_expr *tec_cast(tec_context *cx, tec_dtype t, const tec_expr *e);
TEC_API const tec_expr *tec_at_n(tec_tensor *t, const tec_expr *const *index, int n); /* an element */
/* "sum", "prod", "min", "max", "any", "all" over reduction axes. */
TEC_API const tec_expr *tec_reduce_n(tec_context *cx, const char *combiner, const tec_expr *e, const tec_expr *const *axis, int n);

/* Arithmetic takes operands of one dtype; an integer constant beside another dtype takes that. Semantics: docs/ir.md. */
#define TEC_UNARY_LIST(X) \
    X(neg) X(abs) X(floor) X(ceil) X(trunc) X(round) X(sqrt) X(rsqrt) X(exp) X(exp2) \
    X(log) X(log2) X(tanh) X(sigmoid) X(erf) X(sin) X(cos) X(tan) X(asin) X(acos) \
    X(atan) X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(isnan) X(isinf) X(not) X(bitnot) \
    X(popcount) X(clz)
#define TEC_BINARY_LIST(X) \
    X(add) X(sub) X(mul) X(div) X(mod) X(floordiv) X(floormod) X(min) X(max) X(eq) \
    X(ne) X(lt) X(le) X(gt) X(ge) X(and) X(or) X(bitand) X(bitor) X(bitxor) \
    X(shl) X(shr) X(pow) X(copysign)
#define TEC_TERNARY_LIST(X) \
    X(select) X(fma)
#define X(name) TEC_API const tec_expr *tec_##name(tec_context *cx, const tec_expr *a);
TEC_UNARY_LIST(X)
#undef X
#define X(name) TEC_API const tec_expr *tec_##name(tec_context *cx, const tec_expr *a, const tec_expr *b);
TEC_BINARY_LIST(X)
#undef X
#define X(name) TEC_API const tec_expr *tec_##name(tec_context *cx, const tec_expr *a, const tec_expr *b, const tec_expr *c);
TEC_TERNARY_LIST(X)
#undef X

/* ---- the caller's line ---- */

TEC_API tec_def *tec_here_def(tec_def *d, const char *file, int line);
TEC_API tec_scan *tec_here_scan(tec_scan *s, const char *file, int line);
TEC_API tec_tensor *tec_here_tensor(tec_tensor *t, const char *file, int line);
#define TEC_HERE_DEF(d) tec_here_def((d), __FILE__, __LINE__)
#define TEC_HERE_SCAN(s) tec_here_scan((s), __FILE__, __LINE__)

#define TEC_EXPRS(...) (const tec_expr *const[]){__VA_ARGS__}
#define TEC_COUNT(...) ((int)(sizeof((const tec_expr *const[]){__VA_ARGS__}) / sizeof(const tec_expr *)))

#define tec_def_new(cx, name) (tec_def_new)(TEC_HERE(cx), (name))
#define tec_fact(d, condition) (tec_fact)(TEC_HERE_DEF(d), (condition))
#define tec_input(d, name, t, ...) tec_input_n(TEC_HERE_DEF(d), (name), (t), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scalar(d, name, t) (tec_scalar)(TEC_HERE_DEF(d), (name), (t))
#define tec_output(d, t) (tec_output)(TEC_HERE_DEF(d), (t))
#define tec_axis(cx, name, extent) (tec_axis)(TEC_HERE(cx), (name), (extent))
#define tec_reduce_axis(cx, name, extent) (tec_reduce_axis)(TEC_HERE(cx), (name), (extent))
#define tec_compute(d, name, body, ...) tec_compute_n(TEC_HERE_DEF(d), (name), (body), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scan_new(d, name, time) (tec_scan_new)(TEC_HERE_DEF(d), (name), (time))
#define tec_scan_state(s, name, body, ...) tec_scan_state_n(TEC_HERE_SCAN(s), (name), (body), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scan_step(s, name, body, ...) tec_scan_step_n(TEC_HERE_SCAN(s), (name), (body), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_scan_close(s) (tec_scan_close)(TEC_HERE_SCAN(s))
#define tec_extern(d, name, call, out) (tec_extern)(TEC_HERE_DEF(d), (name), (call), (out))
#define tec_at(t, ...) tec_at_n(tec_here_tensor((t), __FILE__, __LINE__), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
#define tec_cast(cx, t, e) (tec_cast)(TEC_HERE(cx), (t), (e))
#define tec_reduce(cx, combiner, e, ...) tec_reduce_n(TEC_HERE(cx), (combiner), (e), TEC_EXPRS(__VA_ARGS__), TEC_COUNT(__VA_ARGS__))
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
