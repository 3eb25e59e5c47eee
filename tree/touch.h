/* tree/touch.h -- which elements a block touches: the box of an access (box.c), the map
 * from instances to elements and back (store.c), and whether every element of a box is written (fill.c).
 *
 *     // of the iterations of the loops from `fixed` on
 *     ir_region box = tree_box(s, site, access, fixed, false);
 *     if (tree_touches_whole_box(s, site, access, &box, fixed)) ...    // each element of it is written there
 *
 * All answers are proofs: "no" means that the fact was not proven.
 */
#ifndef TREE_TOUCH_H
#define TREE_TOUCH_H

#include "tree/sites.h"

/* ---- boxes (box.c) ---- */

/* IR_REDUCE_ITER where the loop takes part in a reduce iteration variable of the block, IR_SCAN or IR_OPAQUE
 * likewise; otherwise spatial. */
ir_iter_kind tree_kind_for(tec_context *cx, const tree_site *site, const ir_expr *var);
/* iteration variables to what they are bound to */
ir_subst tree_bindings(tec_context *cx, const tree_site *site);
/* The facts around a site with its outer `fixed` loops only. */
const ir_facts *tree_site_facts(const tree_view *view, const tree_site *site, int fixed);
/* The same where the block runs: with the conjuncts of its predicate that its outer `fixed` loops decide. */
const ir_facts *tree_running_facts(const tree_view *view, const tree_site *site, int fixed);
/* The box that one access touches while the outer `fixed` loops stand still. `covering`: points that the
 * predicate leaves out because they lie outside the block's domain count as touched: the box of a tile at the
 * edge is as large as any other. */
ir_region tree_box(const tree_view *view, const tree_site *site, const ir_region *access, int fixed,
                   bool covering);
/* Index d of an access at one point, over the loops. */
const ir_expr *tree_stored_at(tec_context *cx, const tree_site *site, const ir_region *access, int d);
/* of the loops inside the outer `fixed` ones */
ir_ranges tree_inner_ranges(tec_context *cx, const tree_site *site, int fixed);
/* The predicate without the conjuncts that only keep the block within its domain. */
const ir_expr *tree_loop_guards(const tree_view *view, const tree_site *site);
/* The conjuncts of the block's predicate that its outer `fixed` loops decide: as a list, as one condition
 * (NULL: none), and whether the predicate of a block has all conjuncts of a condition. */
void tree_outer_guards(const tree_view *view, const tree_site *site, int fixed, base_vec *out);
const ir_expr *tree_outer_guard(const tree_view *view, const tree_site *site, int fixed);
bool tree_has_guard(const tree_view *view, const tree_site *site, const ir_expr *guard);

/* ---- which element an instance writes, and back (store.c) ---- */

/* A one-to-one map of variables onto the elements of a buffer: index[d], ^ mask[d] where there is one. */
typedef struct {
    int n;                 /* dimensions */
    const ir_expr **index; /* over the variables, the masks taken off */
    /* NULL: none; otherwise below unit[d], a power of two that divides the dimension */
    const ir_expr **mask;
    int64_t *unit;
    const ir_expr **point; /* a variable for each dimension */
    /* each variable over the point; of a block's: NULL where the indices do not need it */
    const ir_expr **var;
    const ir_expr **extent; /* how far each variable may run: up to what fills the padding */
} tree_layout;

/* Whether `index`, over variables 0..extent-1, is such a map onto all elements of the shape, where the
 * variables run a little further if need be; the reason why it is not proven. */
bool tree_read_layout(const ir_facts *f, const ir_expr *const *var, const ir_expr *const *extent, int n_vars,
                      const ir_expr *const *index, const ir_expr *const *shape, int count,
                      tree_layout *layout, const char **reason);
/* The same of the spatial iteration variables of a block, which accesses region one element at a time; `var`
 * and `extent` are by iteration variable. Of a read: of those that the indices use. Of a store: of all of
 * more than one value. */
bool tree_invert_read(const tree_view *view, const ir_block *block, const ir_region *region,
                      tree_layout *layout);
bool tree_invert_store(const tree_view *view, const ir_block *block, const ir_region *written,
                       tree_layout *layout);
/* No two instances that differ in a spatial variable write one element. */
bool tree_writes_once(const tree_view *view, const ir_block *block, const ir_region *written);
/* Some of the elements are no instance's. */
bool tree_is_padded(const tree_view *view, const ir_block *block, const tree_layout *layout);

/* ---- what nobody writes (padding.c) ---- */

/* It is not proven that the blocks below the root write every element of the buffer from the first one on
 * that any of them writes. Blocks that add to what others wrote do not count. With `reader`, the name of a
 * block, those do not count either that run behind it and share no loop with it; NULL: all writers count. */
bool tree_leaves_padding(const tree_view *view, const ir_stmt *root, const ir_buffer *buffer,
                         const char *reader);

/* ---- blocks of blocks (unfold.c) ---- */

/* The block seen as one that stores an element of buffer at a time, with the loops of its body among its
 * loops, and that store; NULL: its first store to buffer is none of that form. */
const tree_site *tree_unfold(const tree_view *view, const tree_site *site, const ir_buffer *buffer,
                             ir_region *access);

/* ---- which elements a block writes (fill.c, adds.c) ---- */

/* of the block's single update; NULL: it is something else */
const ir_combiner *tree_combiner(const ir_block *block);
/* An instance goes on with what stood there before it: some update, which may lie in loops of a block of
 * blocks, comes after no store. */
bool tree_adds(tec_context *cx, const ir_block *block);
/* instances add to what others of the block wrote */
bool tree_accumulates(tec_context *cx, const ir_block *block);
/* The reduction is whole inside the loops from `fixed` on: init, and every reduce iteration variable free of
 * the outer ones. */
bool tree_completes_inside(tec_context *cx, const tree_site *site, int fixed);
/* For each iteration variable: the dimension of the written box that it alone indexes, up to a constant, or
 * -1. False where a dimension is something else than a spatial or scan variable of its own (or the same in
 * all instances), or a spatial variable of more than one value indexes nothing. */
bool tree_store_dims(const tree_view *view, const ir_block *block, const ir_region *written, int *dim_of);
/* that constant, of a dimension that a variable indexes */
int64_t tree_store_shift(const ir_region *written, int d);
/* While its outer `fixed` loops stand still, the block touches every element of `box` that lies in its
 * domain, if it runs at all (its outer guards). */
bool tree_touches_whole_box(const tree_view *view, const tree_site *site, const ir_region *access,
                            const ir_region *box, int fixed);
/* Whether distinct points of the inner loops (from `fixed` on) are distinct instances; the reason why not. */
bool tree_injective(const tree_view *view, const tree_site *site, int fixed, const char **reason);
/* Whether the written elements tell the iterations of the loop of `var`, the innermost of the outer `depth`
 * ones, apart. */
bool tree_digits_apart(const tree_view *view, const tree_site *site, const ir_region *access,
                       const ir_expr *var, int depth);

#endif
