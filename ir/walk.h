/* ir/walk.h -- memoising walk and rewrite, substitution, structural equality and hash.
 *
 *     static const ir_expr *expr(ir_rewrite *rw, const ir_expr *e)
 *     {
 *         e = ir_rewrite_children(rw, e);                      // children first; NULL flows through
 *         return e && e->op == IR_MUL ? simplify_mul(rw->cx, e) : e;
 *     }
 *     const ir_stmt *out = ir_rewrite_stmt(&(ir_rewrite){.cx = cx, .expr = expr}, s);
 *
 * A rewrite visits each shared node once (memo by address), rebuilds through the constructors with the
 * location of the old node, and gives the same pointer where nothing changed. A NULL hook means the default:
 * rewrite the children.
 */
#ifndef IR_WALK_H
#define IR_WALK_H

#include "ir/ir.h"

typedef struct ir_rewrite ir_rewrite;
struct ir_rewrite {
    tec_context *cx;
    const ir_expr *(*expr)(ir_rewrite *rw, const ir_expr *expr);
    const ir_stmt *(*stmt)(ir_rewrite *rw, const ir_stmt *stmt);
    /* At every use of a buffer; NULL: same. Of an access whose buffer became another one, `index` gets the
     * rewritten indices of the old one, and gives as many as the new one has dimensions; of a call `offset`
     * gets the argument that is the operand's offset. NULL: they stay. */
    const ir_buffer *(*buffer)(ir_rewrite *rw, const ir_buffer *buffer);
    const ir_expr *const *(*index)(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                   int count);
    const ir_expr *(*offset)(ir_rewrite *rw, const ir_buffer *old, const ir_expr *offset);
    bool no_memo; /* the result depends on where the node stands (facts, enclosing loops) */
    /* An expression without any of these variables, or of these kinds of nodes, inside stays what it is; 0:
     * every one is visited. */
    uint64_t vars; /* of ir_expr.vars */
    int kinds;     /* IR_KIND_... */
    /* an expression that changed is exchanged for its equal in this table (ir/intern.h); NULL: no table */
    struct ir_interned *equal;
    base_map memo;
};
const ir_expr *ir_rewrite_expr(ir_rewrite *rw, const ir_expr *expr); /* through the hook, memoised */
const ir_stmt *ir_rewrite_stmt(ir_rewrite *rw, const ir_stmt *stmt);
const ir_expr *ir_rewrite_children(ir_rewrite *rw, const ir_expr *expr); /* the default */
const ir_stmt *ir_rewrite_stmt_children(ir_rewrite *rw, const ir_stmt *stmt);
/* As `expr` of a rewrite that changes statements alone. */
const ir_expr *ir_keep_expr(ir_rewrite *rw, const ir_expr *expr);

/* The update that is all a statement does, possibly under conditions; NULL where it does something else. */
const ir_stmt *ir_only_update(const ir_stmt *stmt);
/* The statement with another update in the place of that one. */
const ir_stmt *ir_with_update(tec_context *cx, const ir_stmt *stmt, const ir_stmt *update);
const ir_block *ir_rewrite_block(ir_rewrite *rw, const ir_block *block);
/* the hook only; the hook visits shape, strides and offset itself */
const ir_buffer *ir_rewrite_buffer(ir_rewrite *rw, const ir_buffer *buffer);
const ir_region *ir_rewrite_region(ir_rewrite *rw, const ir_region *region);
const ir_note *ir_rewrite_notes(ir_rewrite *rw, const ir_note *notes); /* NULL for none, and after an error */

/* A walk calls the hooks on every node, parents first, each shared expression once unless `every` is set. A
 * hook gives false to leave the children out. `touch` comes before the others, for each buffer that the node
 * itself loads from or stores to; index: NULL where a call gets the buffer by its address. */
typedef struct ir_walk ir_walk;
struct ir_walk {
    bool (*expr)(ir_walk *walk, const ir_expr *expr);
    bool (*stmt)(ir_walk *walk, const ir_stmt *stmt);
    void (*touch)(ir_walk *walk, const ir_buffer *buffer, const ir_expr *const *index, bool writes);
    bool every;
    /* expressions without any of these kinds of nodes (IR_KIND_...) inside are left out; 0: none is */
    int kinds;
    bool stop;       /* set by a hook: nothing more is visited */
    tec_context *cx; /* for the memo */
    base_map seen;   /* the expressions that were visited */
};
void ir_walk_expr(ir_walk *walk, const ir_expr *expr);
void ir_walk_stmt(ir_walk *walk, const ir_stmt *stmt);
/* As `expr` of a walk that is about statements alone. */
bool ir_skip_expr(ir_walk *walk, const ir_expr *expr);
void ir_walk_block(ir_walk *walk, const ir_block *block);
/* shape, strides, offset, pad; walks do it where a buffer is allocated */
void ir_walk_buffer(ir_walk *walk, const ir_buffer *buffer);

/* Variables to expressions, all at once (not one after another); buffers to buffers. Capture is avoided. A
 * buffer that is allocated inside and whose shape changes becomes a new one. */
typedef struct {
    base_map vars;    /* ir_expr * (variable) -> ir_expr * */
    base_map buffers; /* ir_buffer * -> ir_buffer * */
} ir_subst;
const ir_expr *ir_substitute(tec_context *cx, const ir_expr *expr, const ir_expr *var, const ir_expr *value);
const ir_stmt *ir_substitute_stmt(tec_context *cx, const ir_stmt *stmt, const ir_expr *var,
                                  const ir_expr *value);
const ir_expr *ir_apply(tec_context *cx, const ir_subst *map, const ir_expr *expr);
const ir_stmt *ir_apply_stmt(tec_context *cx, const ir_subst *map, const ir_stmt *s);
const ir_region *ir_apply_region(tec_context *cx, const ir_subst *map, const ir_region *region);
/* A copy of stmt for each value of the variable. Expressions that change are exchanged for the equal ones of
 * the table `equal`. False after an error. */
bool ir_copy_for_each(tec_context *cx, const ir_stmt *stmt, const ir_expr *var, const ir_expr *const *value,
                      int count, struct ir_interned *equal, const ir_stmt **out);
/* A copy in which every loop, block, let, reduction and allocation has variables and buffers of its own. */
const ir_stmt *ir_rename(tec_context *cx, const ir_stmt *stmt);
const ir_expr *ir_rename_expr(tec_context *cx, const ir_expr *expr);

/* Equality up to the names and addresses of variables that are bound inside; free variables and buffers by
 * address. For programs: parameters, symbols and buffers match by position, and the program's own name does
 * not count. Hashes agree with it and are the same on every run. */
bool ir_same(const ir_expr *left, const ir_expr *right);
bool ir_same_stmt(tec_context *cx, const ir_stmt *left, const ir_stmt *right);
bool ir_same_program(tec_context *cx, const ir_program *left, const ir_program *right);
bool ir_same_combiner(const ir_combiner *left, const ir_combiner *right); /* names aside */
/* as ir_combiner_named makes it */
bool ir_combiner_is_named(tec_context *cx, const ir_combiner *combiner);
uint64_t ir_hash(const ir_expr *expr);
uint64_t ir_hash_program(tec_context *cx, const ir_program *function);

bool ir_uses_var(tec_context *cx, const ir_expr *expr, const ir_expr *var);
bool ir_stmt_uses_var(tec_context *cx, const ir_stmt *s, const ir_expr *var);
bool ir_loads(tec_context *cx, const ir_expr *expr); /* any load or impure call */
/* Whether the call may write its buffer operand `index`; true for each of them where the call has no
 * meaning. */
bool ir_call_writes(const ir_expr *call, int index);
void ir_free_vars(tec_context *cx, const ir_expr *expr, base_vec *out); /* in order of first use */
/* statements, and each shared expression once */
int ir_count_nodes(tec_context *cx, const ir_stmt *stmt);

#endif
