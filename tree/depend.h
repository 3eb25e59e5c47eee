/* tree/depend.h -- what iterations of a loop, or steps of a scan, hand on to each other
 * (depend.c, private.c, scan.c), and whether loops still have their reasons (admit.c).
 *
 *     // NULL: the iterations may run in any order
 *     const char *reason = tree_dependence(&view, &all, loop->loop.var);
 */
#ifndef TREE_DEPEND_H
#define TREE_DEPEND_H

#include "tree/sites.h"

/* ---- what an iteration reads of its own (private.c) ---- */

/* that of the buffer itself; NULL: none */
const ir_region *tree_access(const ir_region *region, int n, const ir_buffer *buffer);
/* While their `fixed` common loops stand still, all that reader reads lies in what writer writes, and writer
 * writes every element of that. */
bool tree_reads_within(const tree_view *view, const tree_site *reader, const ir_region *read,
                       const tree_site *writer, const ir_region *write, int fixed);
/* No iteration of the loop of `var` reads in this access what any iteration writes in the owner's. */
bool tree_reads_no_write_of_loop(const tree_view *view, const tree_site *site, const ir_region *read,
                                 const tree_site *owner, const ir_expr *var);
/* Whether all accesses of other blocks below the loop stay within box; `var`'s loop and those around stand
 * still. What the owner does not write anywhere in the loop may be read, too. */
bool tree_all_within(const tree_view *view, const tree_sites *all, const tree_site *owner,
                     const ir_buffer *buffer, const ir_expr *var, const ir_region *box);
/* Whether each iteration of the loop of `var` writes all that it reads of the buffer before it reads it, and
 * nothing else uses it. */
bool tree_private_to_iteration(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                               const ir_expr *var);

/* ---- dependence (depend.c) ---- */

/* More than one block below the loop of `var` touches the buffer. */
bool tree_shared_under(const tree_sites *all, const ir_buffer *buffer, const ir_expr *var);
/* NULL where no iteration of the loop writes an element of the buffer that another one reads or writes;
 * otherwise the reason. */
const char *tree_buffer_dependence(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                                   const ir_expr *var);
/* Why iterations of a loop that run at the same time do not disturb each other in a buffer. */
typedef enum {
    TREE_DEPENDS, /* nothing is proven */
    TREE_PRIVATE, /* each reads only what it wrote itself before: each may have a buffer of its own */
    TREE_OWNED,   /* no two write one element, and none reads what another one writes */
    TREE_ONCE,    /* no two iterations run a block */
    /* each adds its terms to the same elements by the combiner of a reduction: the pass that lowers the loop
     * makes partial results */
    TREE_COMBINED,
    TREE_OUTSIDE /* the buffer is used outside of the loop, too: all iterations have it in common */
} tree_reason;
/* What lowering has to know of a buffer that is used below the loop alone. Where iterations run one after the
 * other, or the threads of a loop have the buffer in common and meet at barriers: PRIVATE, or DEPENDS for
 * what an iteration may hand on. Where they run at the same time: any but OUTSIDE; DEPENDS, with `why`, where
 * nothing is proven. */
tree_reason tree_reason_of_loop(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                                const ir_stmt *loop, const char **why);
/* The iterations of the loop run at the same time, and it takes a reason that the buffer does not disturb
 * them. */
bool tree_needs_reason(const ir_stmt *loop, const ir_buffer *buffer);
const char *tree_reason_text(tree_reason reason);  /* "private" */
tree_reason tree_reason_of_text(const char *text); /* TREE_DEPENDS: no such reason */
/* The same for all buffers that are not private to the loop. NULL where no iteration of the loop writes what
 * another one reads or writes; otherwise the reason, for the reader. */
const char *tree_dependence(const tree_view *view, const tree_sites *all, const ir_expr *var);
/* for messages: "a reduction", of a loop that binds such a variable, or of the variable */
const char *tree_kind_text(ir_iter_kind kind);
/* NULL where instances of the block may run again, or in another place; otherwise why not. */
const char *tree_not_idempotent(tec_context *cx, const ir_block *block);
bool tree_has_effect(tec_context *cx, const ir_stmt *body); /* an impure call */

/* ---- loops that were admitted (admit.c) ---- */

/* A block that uses the buffer, and the number of its outer loops that all other users stand in, too; NULL:
 * nobody uses the buffer. */
const tree_site *tree_common_user(const tree_sites *all, const ir_buffer *buffer, int *loops);
/* The reason of loop user->loop[at], which stands around all uses of the buffer, and which the schedule has
 * admitted. PRIVATE where it only follows from this and from the loops around. DEPENDS with `why`: the loop
 * needs a reason and has none. */
tree_reason tree_reason_in_effect(const tree_view *view, const tree_sites *all, const tree_site *user, int at,
                                  const ir_buffer *buffer, const char **why);
/* A loop that needs a reason for some buffer of the program, parameters left out, and has none, with `why`;
 * NULL: there is no such loop. */
const ir_stmt *tree_unproven_loop(const tree_view *view, const char **why);

/* ---- steps of scan loops (scan.c) ---- */

/* The outer loops up to the innermost that a scan variable of the block is bound to; 0: it has none. */
int tree_step_depth(const tree_view *view, const tree_site *site);
int tree_common_loops(const tree_site *left, const tree_site *right); /* from the outermost on */
/* While the outer `fixed` loops, which the sites have in common, stand still, the accesses touch no element
 * of a buffer both. NULL: no access. */
bool tree_accesses_disjoint(const tree_view *view, const tree_site *left, const ir_region *at_a,
                            const tree_site *right, const ir_region *at_b, int fixed);
/* The same of all that the block reads and all that it writes. */
bool tree_reads_other_steps(const tree_view *view, const tree_site *site, int fixed);
/* NULL where instances of the block may run again within their step, or in another place there; without scan
 * variables, as tree_not_idempotent. Otherwise why not. */
const char *tree_not_repeatable(const tree_view *view, const tree_site *site);

#endif
