/* lower/math.h -- inside the room: how the expansions of math functions are written.
 *
 *     math m = lower_math_open(options, dtype);
 *     // is used twice
 *     const ir_expr *r = lower_math_let(&m, lower_math_mul_add(&m, n, lower_math_real(&m, -0x1p-3), x));
 *     // the lets around it
 *     return lower_math_close(&m, lower_math_poly(&m, &lower_math_table.EXP_F32, r));
 *
 * An expansion is one expression over lanes of any number. All of them assume the rounding of the dtype
 * itself (each operation rounds once) and run with denormals flushed: a denormal argument counts as zero, a
 * denormal result may be zero; strict options keep them. Accuracy does not rest on a fused multiply-add;
 * where the target has one it saves instructions.
 */
#ifndef LOWER_MATH_H
#define LOWER_MATH_H

#include "ir/build.h"
#include "lower/pass.h"

/* ---- tables ---- */

typedef struct {
    int n;
    double c[20];
} math_numbers;

typedef struct {
#define MATH_TABLE(NAME, n, ...) math_numbers NAME;
#include "lower/math_coefficients.def"
} math_tables;
extern const math_tables lower_math_table;

/* ---- building (math_build.c) ---- */

typedef struct {
    tec_context *cx;
    const lower_options *o;
    const target *t;
    base_dtype real, bits; /* float32 or float64 with lanes; uint32 or uint64 with the same */
    bool is_double, fma;
    bool denormals;        /* they are kept, and must be right */
    base_vec vars, values; /* the lets so far */
} math;

math lower_math_open(const lower_options *options, base_dtype real);
const ir_expr *lower_math_close(math *build, const ir_expr *result);
/* An expansion in the other precision, within the same lets: float32 <-> float64. */
math lower_math_switch(math *build, bool to_double);
void lower_math_return(math *build, const math *inner); /* takes over what inner let */

const ir_expr *lower_math_let(math *build, const ir_expr *value);
const ir_expr *lower_math_real(const math *build, double value);
const ir_expr *lower_math_bits(const math *build, uint64_t value);
const ir_expr *lower_math_mul_add(const math *build, const ir_expr *left, const ir_expr *right,
                                  const ir_expr *add); /* left*right + add, once or twice rounded */
const ir_expr *lower_math_poly(const math *build, const math_numbers *numbers, const ir_expr *x);
const ir_expr *lower_math_as_bits(const math *build, const ir_expr *x);
const ir_expr *lower_math_as_real(const math *build, const ir_expr *bits);
/* 2^k, where magic is k + lower_math_magic; k within the exponents */
const ir_expr *lower_math_scale(const math *build, const ir_expr *magic);
/* x * 2^power, for powers up to twice the exponents */
const ir_expr *lower_math_times_power(math *build, const ir_expr *x, const ir_expr *power);
/* A number which, added to another one, rounds that to an integer in the low bits of the sum. */
double lower_math_magic(const math *build);
/* x, but `special` where condition holds. */
const ir_expr *lower_math_where(const math *build, const ir_expr *condition, const ir_expr *special,
                                const ir_expr *x);

/* ---- functions of let arguments (math_exp.c, math_log.c, math_trig.c, math_pow.c, math_round.c) ---- */

const ir_expr *lower_math_exp(math *build, const ir_expr *x);
const ir_expr *lower_math_exp2(math *build, const ir_expr *x);
const ir_expr *lower_math_sigmoid(math *build, const ir_expr *x);
const ir_expr *lower_math_tanh(math *build, const ir_expr *x);
const ir_expr *lower_math_erf(math *build, const ir_expr *x);
const ir_expr *lower_math_sinh(math *build, const ir_expr *x);
const ir_expr *lower_math_cosh(math *build, const ir_expr *x);
const ir_expr *lower_math_log(math *build, const ir_expr *x);
const ir_expr *lower_math_log2(math *build, const ir_expr *x);
const ir_expr *lower_math_asinh(math *build, const ir_expr *x);
const ir_expr *lower_math_acosh(math *build, const ir_expr *x);
const ir_expr *lower_math_atanh(math *build, const ir_expr *x);
const ir_expr *lower_math_rsqrt(math *build, const ir_expr *x);
const ir_expr *lower_math_sin(math *build, const ir_expr *x);
const ir_expr *lower_math_cos(math *build, const ir_expr *x);
const ir_expr *lower_math_tan(math *build, const ir_expr *x);
const ir_expr *lower_math_asin(math *build, const ir_expr *x);
const ir_expr *lower_math_acos(math *build, const ir_expr *x);
const ir_expr *lower_math_atan(math *build, const ir_expr *x);
const ir_expr *lower_math_pow(math *build, const ir_expr *x, const ir_expr *y);
/* The same for exponents that are known and need no logarithm: 0, 1, 2, 3, 4, 0.5, -1; NULL for others. */
const ir_expr *lower_math_power(math *build, const ir_expr *x, const ir_expr *y);

/* Instructions on most targets; these give the operation itself there. */
const ir_expr *lower_math_rounding(math *build, ir_op op, const ir_expr *x);
const ir_expr *lower_math_fma(math *build, const ir_expr *a, const ir_expr *b, const ir_expr *c);

/* A number significand * 2^exponent, the significand about 1 (from sqrt(1/2) to sqrt(2)). x: positive,
 * finite. */
typedef struct {
    const ir_expr *less_one; /* significand - 1, exact */
    const ir_expr *exponent;
} math_parts;
math_parts lower_math_take_apart(math *build, const ir_expr *x);

#endif
