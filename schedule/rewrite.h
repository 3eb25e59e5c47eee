/* schedule/rewrite.h -- inside the room: new trees from old ones (rewrite.c).
 *
 *     const ir_stmt *nest = sched_rebind(f, body, loop->loop.var, value, guard);
 *     return sched_with_body(c, sched_rebuild(c->cx, &at, at.n - 1, nest));
 */
#ifndef SCHEDULE_REWRITE_H
#define SCHEDULE_REWRITE_H

#include "schedule/state.h"

/* expr simplified, but as it is where a loop's variable would be lost whose loop may have no iteration. */
const ir_expr *sched_simplify_index(const ir_facts *facts, const ir_expr *expr);
/* var := value in the bounds, bindings and predicates below stmt (blocks' insides do not mention loops),
 * simplified under facts, which holds at stmt; `guard` (may be NULL) is added to the predicate of every
 * block. */
const ir_stmt *sched_rebind(const ir_facts *facts, const ir_stmt *stmt, const ir_expr *var,
                            const ir_expr *value, const ir_expr *guard);
/* The tree without the block at the end of the path, and without the loops that are empty then. */
const ir_stmt *sched_remove(tec_context *cx, const sched_path *path);
/* A copy whose loops have new variables and, like its blocks, fresh names. */
const ir_stmt *sched_duplicate(sched_call *call, const ir_stmt *stmt);
/* Puts `node` before child `index` of body (a sequence, or a single node with index 0 or 1). */
const ir_stmt *sched_insert(tec_context *cx, const ir_stmt *body, int index, const ir_stmt *node);
const ir_program *sched_with_body(sched_call *call, const ir_stmt *body);
const ir_program *sched_add_buffer(tec_context *cx, const ir_program *program, const ir_buffer *buffer);
const ir_program *sched_drop_buffer(tec_context *cx, const ir_program *program, const ir_buffer *buffer);
/* All uses of a buffer go to another one, at the index that a map (an argument of kind MAP) makes of theirs;
 * refuses (transform.c). */
const ir_stmt *sched_reindex(sched_call *call, const ir_stmt *root, const ir_buffer *old,
                             const ir_buffer *new_one, const sched_arg *map);
const ir_program *sched_swap_buffer(tec_context *cx, const ir_program *program, const ir_buffer *old,
                                    const ir_buffer *new_one);
/* The block with its regions computed anew from its body. */
const ir_block *sched_refresh(const ir_facts *facts, const ir_block *block);
/* The statement of a block with another block of the same iteration variables in it. */
const ir_stmt *sched_with_block(tec_context *cx, const ir_stmt *stmt, const ir_block *block);
/* `where`, and bind >= 0 and bind < extent as far as facts does not prove them. */
const ir_expr *sched_domain_guard(const ir_facts *facts, const ir_expr *where, const ir_expr *bind,
                                  const ir_expr *extent);

#endif
