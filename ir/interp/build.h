/* ir/interp/build.h -- inside the room: from the tree to the interpreter's compiled form.
 *
 *     exec_builder b = {.exec = exec, .names = &names};
 *     const exec_code *code = ir_exec_build(&b, p->body);   // NULL: exec->failed
 *
 * A builder walks one program, keeping the path from the root; an intrinsic's meaning is built by a builder
 * of its own that shares the numbering of slots.
 */
#ifndef IR_INTERP_BUILD_H
#define IR_INTERP_BUILD_H

#include "ir/interp/exec.h"

/* One step of the path from the root to the place being built. */
typedef struct exec_path {
    const struct exec_path *up;
    const ir_stmt *s; /* FOR, LET_STMT, IF, BLOCK */
    bool otherwise;   /* of an IF: in its second branch */
    base_vec *before; /* of a FOR: codes to run before it, inits of the reductions under it */
} exec_path;

/* Slots, buffers and meanings: shared by the builders of one run. */
typedef struct {
    base_map slots;    /* variable -> slot + 1 */
    base_map buffers;  /* ir_buffer -> exec_buffer */
    base_map meanings; /* ir_intrinsic -> exec_meaning */
    base_map launches; /* loop -> exec_launch */
    base_vec listed;   /* exec_buffer * that some builder's program lists */
} exec_names;

typedef struct {
    ir_exec *exec;
    exec_names *names;
    base_map nodes; /* memo of the expression being built */
    const exec_path *path;
    const exec_place *place;
    const exec_scope *scope;
    base_dict copies; /* block name -> how often it stands in the program, as a pointer-sized count */
    exec_launch *launch;
    int bound;  /* thread axes bound by loops on the path */
    bool async; /* inside the attribute of asynchronous copies */
    int depth;  /* of the recursion */
} exec_builder;

enum { EXEC_MAX_NESTING = 4000, EXEC_MAX_NODES = 1 << 23 };

bool ir_exec_may_grow(exec_builder *builder,
                      base_loc loc); /* counts a node; false: failed, too many or too deep */

/* Slots */
/* numbers it at the first call */
int ir_exec_slot(exec_builder *builder, const ir_expr *var);
exec_buffer *ir_exec_declare(exec_builder *builder, const ir_buffer *buffer, bool listed); /* numbers it */
/* builds its shape, strides and offset */
void ir_exec_size_buffer(exec_builder *builder, exec_buffer *vb);
/* NULL: failed, nothing declares it */
exec_buffer *ir_exec_use(exec_builder *builder, const ir_buffer *buffer, base_loc loc);

/* Expressions (interp_expr.c) */
const exec_node *ir_exec_expr(exec_builder *builder, const ir_expr *expr); /* NULL stays NULL */
const exec_node *ir_exec_part(exec_builder *builder,
                              const ir_expr *expr); /* a part of the expression that is being built */
const exec_node *const *ir_exec_exprs(exec_builder *builder, const ir_expr *const *expr, int n);
exec_access *ir_exec_access(exec_builder *builder, const ir_buffer *buffer, const ir_expr *const *index,
                            int count, const ir_expr *mask, base_loc loc);
exec_call *ir_exec_call(exec_builder *builder, const ir_expr *expr);
int64_t ir_exec_cost(const exec_node *node); /* steps that an expression counts as */

/* Statements (interp_stmt.c) */
const exec_code *ir_exec_build(exec_builder *builder, const ir_stmt *stmt);
exec_code *ir_exec_new_code(exec_builder *builder, const ir_stmt *stmt, exec_do *run);
const exec_code *ir_exec_seq(exec_builder *builder, const ir_stmt *stmt, const base_vec *codes);
exec_code *ir_exec_wrap_loop(exec_builder *builder, const ir_stmt *loop, const exec_code *body);
exec_code *ir_exec_wrap_let(exec_builder *builder, const ir_stmt *stmt, const ir_expr *var,
                            const ir_expr *value, const exec_code *body);
exec_code *ir_exec_wrap_if(exec_builder *builder, const ir_stmt *stmt, const exec_node *cond,
                           const exec_code *then, const exec_code *otherwise);
const exec_scope *ir_exec_push_scope(exec_builder *builder, int kind, const char *name, int count,
                                     const ir_expr *const *var);

/* Blocks (interp_block.c) */
const exec_code *ir_exec_block(exec_builder *builder, const ir_stmt *stmt);
void ir_exec_count_blocks(exec_builder *builder, const ir_stmt *stmt);
/* Variables that a set of expressions is made of, through the lets, loop bounds and blocks of the path: `set`
 * maps variable -> variable. With `bounds` also what the extents of such loops are made of. */
void ir_exec_feeders(exec_builder *builder, base_map *set, const ir_expr *expr, bool bounds);

/* Launches (interp_launch.c) */
static inline int ir_exec_axis_bit(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z ? 1 << (how - IR_THREAD_X) : 0;
}
exec_launch *ir_exec_find_launch(exec_builder *builder, const ir_stmt *loop); /* NULL: the loop starts none */
/* Whether no launch has as its own what the statement allocates. */
bool ir_exec_is_outside(const exec_builder *builder, const ir_stmt *allocation);
/* Where listed buffers get their memory, once everything is built: per group, per strand, or for the run
 * (those go to `once`). */
void ir_exec_place_buffers(exec_builder *builder, base_vec *once);

#endif
