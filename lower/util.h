/* lower/util.h -- inside the room: what several passes need: facts on the way down, solving a
 * comparison for a loop variable.
 *
 *     // and of the then branch of an if, the body of a let
 *     const ir_facts *inside = lower_inside(f, loop);
 *
 * A rewrite of statements whose result depends on facts makes the facts on the way down and forgets them on
 * the way up.
 */
#ifndef LOWER_UTIL_H
#define LOWER_UTIL_H

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "lower/pass.h"

/* program with another body: program itself where it is the same pointer, NULL for NULL. */
const ir_program *lower_with_body(tec_context *cx, const ir_program *program, const ir_stmt *body);

/* Adds to the end of a list among lists, by their keys: base_map_get gives the base_vec. */
void lower_list_add(tec_context *cx, base_map *lists, const void *key, const void *what);

/* The facts that hold inside stmt, and in the second branch of an if. */
static inline ir_facts *lower_inside(const ir_facts *facts, const ir_stmt *stmt)
{
    return ir_facts_inside(facts, stmt, false);
}
static inline ir_facts *lower_inside_else(const ir_facts *facts, const ir_stmt *stmt)
{
    return ir_facts_inside(facts, stmt, true);
}

/* The values of `var` for which `cond`, a comparison of index expressions, is sure to hold whatever the
 * variables `inner` are within their ranges in facts: lo <= var < hi, NULL for no bound on that side; both
 * are free of var and inner. False: not of that form. */
typedef struct {
    const ir_expr *lo, *hi;
} lower_interval;
bool lower_solve(const ir_facts *facts, const ir_expr *cond, const ir_expr *var, const base_vec *inner,
                 lower_interval *out);

/* A condition free of the variables `inner` that implies `cond`, a comparison of index expressions, whatever
 * these are within their ranges in facts; NULL where there is none. */
const ir_expr *lower_worst(const ir_facts *facts, const ir_expr *cond, const base_vec *inner);
/* One that `cond` implies: it holds wherever cond does for some of their values. */
const ir_expr *lower_best(const ir_facts *facts, const ir_expr *cond, const base_vec *inner);

/* Whether expr, evaluated where facts holds, may divide by zero: what stands in a loop that may be empty must
 * not be asked outside of it then. */
bool lower_may_fail(const ir_facts *facts, const ir_expr *expr);

/* Adds the buffers around the statement, as keys, that it stores to: those that are not allocated inside. */
void lower_stored_outside(tec_context *cx, const ir_stmt *stmt, base_map *out);

/* max(0, end - min) without the max where that is proven. */
const ir_expr *lower_extent(const ir_facts *facts, const ir_expr *min, const ir_expr *end);

/* expr for lanes of `mask` only: a select by that mask is its first arm (lower/masks.c). */
const ir_expr *lower_under_mask(tec_context *cx, const ir_expr *mask, const ir_expr *expr);

/* stmt with blocks that have names of their own: where two have one name, as C.init of a reduction C and the
 * user's C.init, the later gets a number. */
const ir_stmt *lower_name_blocks(tec_context *cx, const ir_stmt *stmt);

/* `if guard { stmt }` with the condition at the single statements: barriers and the bounds of loops stay
 * outside of the condition, so that all threads meet (lower/barriers.c). */
const ir_stmt *lower_push_guard(tec_context *cx, const ir_expr *guard, const ir_stmt *stmt);

/* Loops, lets and allocations as they are, but with another body; stmt itself where it is the same. */
const ir_stmt *lower_with_inner(tec_context *cx, const ir_stmt *stmt, const ir_stmt *body);
/* stmt with each child exchanged for what `visit` gives of it, which is told what holds there; stmt itself
 * where all are the same, NULL where one is NULL. */
typedef const ir_stmt *lower_visit(void *user, const ir_facts *facts, const ir_stmt *stmt);
const ir_stmt *lower_visit_children(const ir_facts *facts, const ir_stmt *stmt, lower_visit *visit,
                                    void *user);
/* The body of a loop, let, allocation or attribute; NULL for other statements. */
const ir_stmt *lower_inner(const ir_stmt *stmt);

/* A loop over threads; a loop over blocks of them. */
static inline bool lower_is_thread(const ir_stmt *stmt)
{
    return stmt->kind == IR_FOR && stmt->loop.how >= IR_THREAD_X && stmt->loop.how <= IR_THREAD_Z;
}
static inline bool lower_is_blocks(const ir_stmt *stmt)
{
    return stmt->kind == IR_FOR && stmt->loop.how >= IR_BLOCK_X && stmt->loop.how <= IR_BLOCK_Z;
}
/* A loop over blocks that holds no other one: a launch begins there. */
bool lower_launches_blocks(tec_context *cx, const ir_stmt *stmt);

/* The first statement inside stmt, stmt included, for which `is` gives true; NULL: none. */
const ir_stmt *lower_find_stmt(tec_context *cx, const ir_stmt *stmt, bool (*is)(const ir_stmt *));

/* How many elements buffer reaches over, from its first to its last, by its shape and strides. */
const ir_expr *lower_span(tec_context *cx, const ir_buffer *buffer);
/* The elements of a buffer by its shape, or -1 where they are not constant. */
int64_t lower_constant_elements(const ir_buffer *buffer);

#endif
