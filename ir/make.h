/* ir/make.h -- inside ir/: nodes without folding, and the checks that all constructors share.
 *
 *     ir_expr *e = ir_make(cx, IR_CAST, t);
 *     e->arg[0] = x;
 *     // hash, depth and content flags; not to be changed any more
 *     return ir_finish(e);
 *
 * The raw constructors check types and convert operands as those of ir/build.h do, and fold nothing: the
 * parser uses them, so that a text gives exactly the tree that it shows.
 * Errors: as in ir/build.h.
 */
#ifndef IR_MAKE_H
#define IR_MAKE_H

#include "ir/build.h"

ir_expr *ir_make(tec_context *cx, ir_op op, base_dtype dtype); /* stands where base_where says */
const ir_expr *ir_finish(ir_expr *expr);

/* An INVALID error at base_where; NULL. */
void *ir_refuse(tec_context *cx, const char *fmt, ...) BASE_PRINTF(2, 3);
/* "'x + 1' (i64)" for messages: the text is cut where it is long. */
const char *ir_shown(tec_context *cx, const ir_expr *expr);
const char *ir_brief(tec_context *cx, const ir_expr *expr);

/* An int64 immediate as one of element type dtype, where dtype can hold it exactly; every other expression is
 * given back. */
const ir_expr *ir_adopt(tec_context *cx, const ir_expr *expr, base_dtype dtype);
/* adopt, then broadcast a scalar to the lanes of dtype; an expression that still is not of type dtype is
 * given back as it is. */
const ir_expr *ir_convert(tec_context *cx, const ir_expr *expr, base_dtype dtype);

/* Checks and converts the operands of an operation in place. */
bool ir_unify(tec_context *cx, ir_op op, const ir_expr **arg);
const ir_expr *ir_cast_raw(tec_context *cx, base_dtype dtype, const ir_expr *expr);
const ir_expr *ir_broadcast_raw(tec_context *cx, const ir_expr *expr, int lanes);
const ir_expr *ir_ramp_raw(tec_context *cx, const ir_expr *base, const ir_expr *stride, int lanes);

/* Checks with an error each; some convert their operand in place. NULL operands give false without one. */
bool ir_check_index(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index, int count,
                    int *lanes);
/* a mask of NULL is fine */
bool ir_check_mask(tec_context *cx, const char *name, const ir_expr **mask, int lanes);
bool ir_check_var(tec_context *cx, const char *what, const ir_expr *var);
bool ir_check_binding(tec_context *cx, const ir_expr *var, const ir_expr **value);
bool ir_check_sources(tec_context *cx, const ir_combiner *combiner, const ir_expr **source);

/* False where one of them is NULL. */
bool ir_all_there(const ir_expr *const *expr, int n);
const ir_expr *const *ir_copy_exprs(tec_context *cx, const ir_expr *const *expr, int n);

#endif
