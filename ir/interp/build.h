/* ir/interp/build.h -- inside the room: from the tree to the interpreter's compiled form.
 *
 *     vm_builder b = {.vm = vm, .names = &names};
 *     const vm_code *code = ir_vm_build(&b, p->body);   // NULL: vm->failed
 *
 * A builder walks one program, keeping the path from the root; an intrinsic's meaning is built by a builder
 * of its own that shares the numbering of slots.
 */
#ifndef IR_INTERP_BUILD_H
#define IR_INTERP_BUILD_H

#include "ir/interp/vm.h"

/* One step of the path from the root to the place being built. */
typedef struct vm_path {
    const struct vm_path *up;
    const ir_stmt *s; /* FOR, LET_STMT, IF, BLOCK */
    bool otherwise;   /* of an IF: in its second branch */
    base_vec *before; /* of a FOR: codes to run before it, inits of the reductions under it */
} vm_path;

/* Slots, buffers and meanings: shared by the builders of one run. */
typedef struct {
    base_map slots;    /* variable -> slot + 1 */
    base_map buffers;  /* ir_buffer -> vm_buffer */
    base_map meanings; /* ir_intrinsic -> vm_meaning */
    base_map launches; /* loop -> vm_launch */
    base_vec listed;   /* vm_buffer * that some builder's program lists */
} vm_names;

typedef struct {
    ir_vm *vm;
    vm_names *names;
    base_map nodes; /* memo of the expression being built */
    const vm_path *path;
    const vm_place *place;
    const vm_scope *scope;
    base_dict copies; /* block name -> how often it stands in the program, as a pointer-sized count */
    vm_launch *launch;
    int bound;  /* thread axes bound by loops on the path */
    bool async; /* inside the attribute of asynchronous copies */
    int depth;  /* of the recursion */
} vm_builder;

enum { VM_MAX_NESTING = 4000, VM_MAX_NODES = 1 << 23 };

bool ir_vm_may_grow(vm_builder *b, base_loc loc); /* counts a node; false: failed, too many or too deep */

/* Slots */
/* numbers it at the first call */
int ir_vm_slot(vm_builder *b, const ir_expr *var);
vm_buffer *ir_vm_declare(vm_builder *b, const ir_buffer *buffer, bool listed); /* numbers it */
/* builds its shape, strides and offset */
void ir_vm_size_buffer(vm_builder *b, vm_buffer *vb);
/* NULL: failed, nothing declares it */
vm_buffer *ir_vm_use(vm_builder *b, const ir_buffer *buffer, base_loc loc);

/* Expressions (interp_expr.c) */
const vm_node *ir_vm_expr(vm_builder *b, const ir_expr *e); /* NULL stays NULL */
const vm_node *ir_vm_part(vm_builder *b, const ir_expr *e); /* a part of the expression that is being built */
const vm_node *const *ir_vm_exprs(vm_builder *b, const ir_expr *const *e, int n);
vm_access *ir_vm_access(vm_builder *b, const ir_buffer *buffer, const ir_expr *const *index, int n,
                        const ir_expr *mask, base_loc loc);
vm_call *ir_vm_call(vm_builder *b, const ir_expr *e);
int64_t ir_vm_cost(const vm_node *n); /* steps that an expression counts as */

/* Statements (interp_stmt.c) */
const vm_code *ir_vm_build(vm_builder *b, const ir_stmt *s);
vm_code *ir_vm_new_code(vm_builder *b, const ir_stmt *s, vm_do *run);
const vm_code *ir_vm_seq(vm_builder *b, const ir_stmt *s, const base_vec *codes);
vm_code *ir_vm_wrap_loop(vm_builder *b, const ir_stmt *loop, const vm_code *body);
vm_code *ir_vm_wrap_let(vm_builder *b, const ir_stmt *s, const ir_expr *var, const ir_expr *value,
                        const vm_code *body);
vm_code *ir_vm_wrap_if(vm_builder *b, const ir_stmt *s, const vm_node *cond, const vm_code *then,
                       const vm_code *otherwise);
const vm_scope *ir_vm_push_scope(vm_builder *b, int kind, const char *name, int n, const ir_expr *const *var);

/* Blocks (interp_block.c) */
const vm_code *ir_vm_block(vm_builder *b, const ir_stmt *s);
void ir_vm_count_blocks(vm_builder *b, const ir_stmt *s);
/* Variables that a set of expressions is made of, through the lets, loop bounds and blocks of the path: `set`
 * maps variable -> variable. With `bounds` also what the extents of such loops are made of. */
void ir_vm_feeders(vm_builder *b, base_map *set, const ir_expr *e, bool bounds);

/* Launches (interp_launch.c) */
static inline int ir_vm_axis_bit(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z ? 1 << (how - IR_THREAD_X) : 0;
}
vm_launch *ir_vm_find_launch(vm_builder *b, const ir_stmt *loop); /* NULL: the loop starts none */
/* Where listed buffers get their memory, once everything is built: per group, per strand, or for the run
 * (those go to `once`). */
void ir_vm_place_buffers(vm_builder *b, base_vec *once);

#endif
