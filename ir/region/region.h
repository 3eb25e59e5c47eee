/* ir/region/region.h -- which box of a buffer a piece of the tree touches.
 *
 *     ir_region r = ir_region_union(f, boxes, n);
 *     if (ir_region_contains(f, &outer, &r)) -> every element of r lies in outer, proven
 *
 * The rules are docs/loop-tree.md, "Regions": the minimum of an affine index takes each inner variable at the
 * end that its sign says, the extent is the sum of |coefficient| * (extent - 1) plus 1, so that variables
 * shared by both ends cancel. What cannot be proven takes the whole dimension.
 */
#ifndef IR_REGION_H
#define IR_REGION_H

#include "ir/reason/facts.h"

/* Inner variables with their ranges (0 or min .. min+extent-1). */
typedef struct {
    const ir_expr *const *var, *const *min, *const *extent;
    int n;
} ir_ranges;

/* The interval that index `expr` spans while the inner variables run, as min and extent free of them; false:
 * not expressible (caller takes the whole dimension). `where` (may be NULL) holds for the points that
 * count. */
bool ir_span(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
             const ir_expr **min, const ir_expr **extent);

/* The ends of index expr over the inner variables, at the points where `where` holds: min <= expr <= max,
 * free of the inner variables. Ends may be minima and maxima, and may contradict each other where no point
 * counts; `empty` is such a case. False: there are no ends to name. */
typedef struct {
    const ir_expr *min, *max;
    /* a condition under which no point counts, beside an inner extent below 1; NULL: none was found */
    const ir_expr *empty;
    bool exact;      /* where points count, both ends are values of expr */
    bool understood; /* all of `where` was taken into account */
} ir_reach;
bool ir_reach_of(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
                 ir_reach *out);

/* The least and the greatest value of expr, each point tried: exact for whatever can be evaluated, where the
 * variables that neither expr nor `where` mentions have values at all. False: a range is not constant, there
 * are too many points, or expr or `where` depend on more than the variables. */
typedef struct {
    int64_t min, max;
    bool any; /* false: no point counts */
} ir_tried;
bool ir_try_points(const ir_facts *facts, const ir_expr *expr, const ir_ranges *inner, const ir_expr *where,
                   ir_tried *out);

/* The box that region covers while the inner variables run; dimensions that cannot be expressed become
 * 0..shape. A hull that is proven to reach the buffer's shape becomes exactly 0..shape. */
ir_region ir_region_over(const ir_facts *facts, const ir_region *region, const ir_ranges *inner,
                         const ir_expr *where);

/* The hull of boxes of one buffer. */
ir_region ir_region_union(const ir_facts *facts, const ir_region *boxes, int count);
bool ir_region_contains(const ir_facts *facts, const ir_region *outer, const ir_region *inner); /* proven */
bool ir_region_disjoint(const ir_facts *facts, const ir_region *left, const ir_region *right);  /* proven */
ir_region ir_region_whole(tec_context *cx, const ir_buffer *buffer);
ir_region ir_region_point(tec_context *cx, const ir_buffer *buffer, const ir_expr *const *index);
/* of ir_region *: their values, as an array */
const ir_region *ir_regions_of(tec_context *cx, const base_vec *vec);

/* Reads and writes of a statement (a block's init and body): one hull for each buffer, in order of first
 * touch. Variables bound inside (loops, lets) are eliminated. Updates write their targets; their targets are
 * not listed as reads. The condition of an if narrows what stands under it, unless it loads; those of select
 * and && narrow nothing here. */
void ir_touched(const ir_facts *facts, const ir_stmt *stmt, base_vec *reads,
                base_vec *writes); /* of ir_region * */
/* of this buffer alone */
void ir_touched_of(const ir_facts *facts, const ir_stmt *stmt, const ir_buffer *buffer, base_vec *reads,
                   base_vec *writes);

#endif
