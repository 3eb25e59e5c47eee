/* ir/build.h -- constructors of nodes; they check types, and fold what is constant at no cost.
 *
 *     // folds 0 + x, x * 1, 2 + 3 for ints
 *     const ir_expr *e = ir_add(cx, ir_mul(cx, yo, ir_int(cx, 12)), yi);
 *     const ir_stmt *s = ir_store(cx, C, e, (const ir_expr *[]){y, x}, 2);   // the index array is copied
 *
 * A new node stands where base_where(cx) says; passes set that to the node that they rewrite (ir_at). All
 * arrays that are handed in are copied. NULL operands give NULL. An operand that does not fit is an error
 * that names the operation and both types: "'+' of 'x' (f32) and 'i' (i64)". A scalar operand beside a vector
 * one is broadcast; there is no other implicit conversion, except that an integer immediate beside a typed
 * operand takes its dtype.
 */
#ifndef IR_BUILD_H
#define IR_BUILD_H

#include "ir/ir.h"

static inline void ir_at(tec_context *cx, base_loc loc)
{
    base_set_where(cx, loc);
}

const ir_expr *ir_int(tec_context *cx, int64_t value); /* int64, the index type */
const ir_expr *ir_bool(tec_context *cx, bool value);
/* of a vector dtype: a broadcast of the scalar */
const ir_expr *ir_imm(tec_context *cx, base_dtype dtype, double value);
/* exact for 64-bit ints; wraps to dtype */
const ir_expr *ir_imm_int(tec_context *cx, base_dtype dtype, int64_t value);
const ir_expr *ir_string(tec_context *cx, const char *text);
/* a new index variable at each call */
const ir_expr *ir_var(tec_context *cx, const char *name, base_dtype dtype);
/* The same for a value that may be any number (ir/ir.h, Semantics), and for what a let binds: data where the
 * value is. */
const ir_expr *ir_data_var(tec_context *cx, const char *name, base_dtype dtype);
const ir_expr *ir_let_var(tec_context *cx, const char *name, const ir_expr *value);
const ir_expr *ir_load(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index, int n);
const ir_expr *ir_load_masked(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index,
                              int count, const ir_expr *mask);
/* lanes of dtype: those of expr or 1 */
const ir_expr *ir_cast(tec_context *cx, base_dtype dtype, const ir_expr *expr);
const ir_expr *ir_reinterpret(tec_context *cx, base_dtype dtype, const ir_expr *expr);
const ir_expr *ir_ramp(tec_context *cx, const ir_expr *base, const ir_expr *stride, int lanes);
const ir_expr *ir_broadcast(tec_context *cx, const ir_expr *expr, int lanes);
const ir_expr *ir_shuffle(tec_context *cx, const ir_expr *const *vectors, int count, const int *pick,
                          int lanes);
const ir_expr *ir_let(tec_context *cx, const ir_expr *var, const ir_expr *value, const ir_expr *body);
const ir_expr *ir_call(tec_context *cx, base_dtype dtype, const char *name, const ir_intrinsic *intrinsic,
                       const ir_expr *const *arg, int count, const ir_buffer *const *buffer, int n_buffers,
                       bool pure);
const ir_expr *ir_reduce(tec_context *cx, const ir_combiner *combiner, const ir_expr *const *source,
                         const ir_expr *const *axis, const ir_expr *const *extent, int n_axes,
                         const ir_expr *condition, int which);

/* Any operation of the table. */
const ir_expr *ir_op1(tec_context *cx, ir_op op, const ir_expr *left);
const ir_expr *ir_op2(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right);
const ir_expr *ir_op3(tec_context *cx, ir_op op, const ir_expr *left, const ir_expr *right,
                      const ir_expr *cond);
/* The operation `old` with other operands, as many as it has. A division of data stays one (ir/ir.h,
 * Semantics), also where the new operands hold no data. */
const ir_expr *ir_op_again(tec_context *cx, const ir_expr *old, const ir_expr *const *arg);
/* Any operation without any folding, for parsers of exact text and for tests. */
const ir_expr *ir_op_raw(tec_context *cx, ir_op op, const ir_expr *const *arg);

/* ir_add(cx, a, b), ir_sqrt(cx, a), ir_select(cx, c, a, b), ...: one inline function for each row. */
#define IR_DEFINE_1(NAME, name)                                                                              \
    static inline const ir_expr *ir_##name(tec_context *cx, const ir_expr *a)                                \
    {                                                                                                        \
        return ir_op1(cx, IR_##NAME, a);                                                                     \
    }
#define IR_DEFINE_2(NAME, name)                                                                              \
    static inline const ir_expr *ir_##name(tec_context *cx, const ir_expr *a, const ir_expr *b)              \
    {                                                                                                        \
        return ir_op2(cx, IR_##NAME, a, b);                                                                  \
    }
#define IR_DEFINE_3(NAME, name)                                                                              \
    static inline const ir_expr *ir_##name(tec_context *cx, const ir_expr *a, const ir_expr *b,              \
                                           const ir_expr *c)                                                 \
    {                                                                                                        \
        return ir_op3(cx, IR_##NAME, a, b, c);                                                               \
    }
#define IR_OP(NAME, name, text, form, arity, ...) IR_DEFINE_##arity(NAME, name)
#include "ir/ops.def"
#undef IR_DEFINE_1
#undef IR_DEFINE_2
#undef IR_DEFINE_3

const ir_expr *ir_ceildiv(tec_context *cx, const ir_expr *a, const ir_expr *b); /* floordiv(a + b - 1, b) */
/* and, where NULL stands for true */
const ir_expr *ir_all(tec_context *cx, const ir_expr *left, const ir_expr *right);
/* The operands of nested &&, from left to right: "a && (likely(b) && c)" gives a, likely(b), c. With
 * IR_DROP_LIKELY a hint is taken off, and what it holds is split as well: a, b, c. NULL and `true` have no
 * conjuncts. ir_conjoin puts a list together again; NULL for none. */
typedef enum { IR_KEEP_LIKELY, IR_DROP_LIKELY } ir_hints;
void ir_conjuncts(tec_context *cx, const ir_expr *expr, ir_hints hints, base_vec *out);
const ir_expr *ir_conjoin(tec_context *cx, const base_vec *conjuncts);

/* Constants. */
bool ir_is_int(const ir_expr *expr, int64_t *value); /* an IR_INT immediate, or a broadcast of one */
bool ir_is_value(const ir_expr *expr, int64_t value);
bool ir_is_true(const ir_expr *expr); /* NULL counts as true */

/* The identities that reductions start from. */
const ir_expr *ir_lowest(tec_context *cx, base_dtype dtype);  /* -inf for floats */
const ir_expr *ir_highest(tec_context *cx, base_dtype dtype); /* inf for floats */

/* "sum", "prod", "min", "max", "any", "all" over dtype dtype; "argmin", "argmax" over (value: dtype, index:
 * index_t), where the smaller index wins among equals. NULL for another name (no error), and with an error
 * for a dtype that it does not combine. All of them are declared to reorder. */
const ir_combiner *ir_combiner_named(tec_context *cx, const char *name, base_dtype dtype, base_dtype index_t);
bool ir_names_combiner(const char *name); /* one of these words, whatever the dtype */
/* Whether combiner, which is declared to reorder, does so on a few values, and its identity is neutral; false
 * with an error that has the counterexample. */
bool ir_combiner_try(tec_context *cx, const ir_combiner *combiner);
const ir_combiner *ir_combiner_new(tec_context *cx, const char *name, int count, const ir_expr *const *left,
                                   const ir_expr *const *right, const ir_expr *const *result,
                                   const ir_expr *const *identity, bool reorders);

const ir_buffer *ir_buffer_new(tec_context *cx, const char *name, base_dtype dtype,
                               const ir_expr *const *shape, int count);
/* A copy to change before it is used: the only struct whose fields the caller sets. */
ir_buffer *ir_buffer_copy(tec_context *cx, const ir_buffer *buffer);

const ir_stmt *ir_for(tec_context *cx, const ir_expr *var, const ir_expr *min, const ir_expr *extent,
                      ir_how how, const ir_stmt *body);
/* var, how, notes kept */
const ir_stmt *ir_for_like(tec_context *cx, const ir_stmt *loop, const ir_expr *min, const ir_expr *extent,
                           const ir_stmt *body);
const ir_stmt *ir_block_stmt(tec_context *cx, const ir_block *block, const ir_expr *const *bind,
                             const ir_expr *where);
const ir_stmt *ir_store(tec_context *cx, const ir_buffer *buffer, const ir_expr *value,
                        const ir_expr *const *index, int n);
const ir_stmt *ir_store_masked(tec_context *cx, const ir_buffer *buffer, const ir_expr *value,
                               const ir_expr *const *index, int count, const ir_expr *mask);
const ir_stmt *ir_update(tec_context *cx, const ir_combiner *combiner, const ir_buffer *const *buffer,
                         const ir_expr *const *index, int count, const ir_expr *const *source);
const ir_stmt *ir_let_stmt(tec_context *cx, const ir_expr *var, const ir_expr *value, const ir_stmt *body);
const ir_stmt *ir_allocate(tec_context *cx, const ir_buffer *buffer, const ir_stmt *body);
const ir_stmt *ir_if(tec_context *cx, const ir_expr *cond, const ir_stmt *then, const ir_stmt *otherwise);
/* flattens nested sequences; number = 1 gives stmt[0] */
const ir_stmt *ir_seq(tec_context *cx, const ir_stmt *const *stmt, int number);
const ir_stmt *ir_seq2(tec_context *cx, const ir_stmt *left, const ir_stmt *right);
const ir_stmt *ir_nothing(tec_context *cx); /* the empty sequence */
const ir_stmt *ir_assert(tec_context *cx, const ir_expr *cond, const char *message);
const ir_stmt *ir_attribute(tec_context *cx, const char *key, const ir_expr *value, const ir_stmt *body);
const ir_stmt *ir_evaluate(tec_context *cx, const ir_expr *value);

/* A mutable copy of a statement or block, for a rewrite that changes one field; the copy is then const for
 * ever. */
ir_stmt *ir_stmt_copy(tec_context *cx, const ir_stmt *stmt);
ir_block *ir_block_copy(tec_context *cx, const ir_block *block);
ir_program *ir_program_copy(tec_context *cx, const ir_program *program);

/* Notes: a list with the key set (value NULL removes it), and the value of a key or NULL. */
const ir_note *ir_note_set(tec_context *cx, const ir_note *notes, const char *key, const ir_expr *value);
const ir_expr *ir_note_get(const ir_note *notes, const char *key);

#endif
