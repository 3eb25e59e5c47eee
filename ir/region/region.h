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

/* The interval that index `e` spans while the inner variables run, as min and extent free of them; false: not
 * expressible (caller takes the whole dimension). `where` (may be NULL) holds for the points that count. */
bool ir_span(const ir_facts *f, const ir_expr *e, const ir_ranges *inner, const ir_expr *where,
             const ir_expr **min, const ir_expr **extent);

/* The ends of index e over the inner variables, at the points where `where` holds: min <= e <= max, free of
 * the inner variables. Ends may be minima and maxima, and may contradict each other where no point counts;
 * `empty` is such a case. False: there are no ends to name. */
typedef struct {
    const ir_expr *min, *max;
    /* a condition under which no point counts, beside an inner extent below 1; NULL: none was found */
    const ir_expr *empty;
    bool exact;      /* where points count, both ends are values of e */
    bool understood; /* all of `where` was taken into account */
} ir_reach;
bool ir_reach_of(const ir_facts *f, const ir_expr *e, const ir_ranges *inner, const ir_expr *where,
                 ir_reach *out);

/* The least and the greatest value of e, each point tried: exact for whatever can be evaluated, where the
 * variables that neither e nor `where` mentions have values at all. False: a range is not constant, there are
 * too many points, or e or `where` depend on more than the variables. */
typedef struct {
    int64_t min, max;
    bool any; /* false: no point counts */
} ir_tried;
bool ir_try_points(const ir_facts *f, const ir_expr *e, const ir_ranges *inner, const ir_expr *where,
                   ir_tried *out);

/* The box that r covers while the inner variables run; dimensions that cannot be expressed become 0..shape. A
 * hull that is proven to reach the buffer's shape becomes exactly 0..shape. */
ir_region ir_region_over(const ir_facts *f, const ir_region *r, const ir_ranges *inner, const ir_expr *where);

/* The hull of boxes of one buffer. */
ir_region ir_region_union(const ir_facts *f, const ir_region *boxes, int n);
bool ir_region_contains(const ir_facts *f, const ir_region *outer, const ir_region *inner); /* proven */
bool ir_region_disjoint(const ir_facts *f, const ir_region *a, const ir_region *b);         /* proven */
ir_region ir_region_whole(tec_context *cx, const ir_buffer *b);
ir_region ir_region_point(tec_context *cx, const ir_buffer *b, const ir_expr *const *index);
/* of ir_region *: their values, as an array */
const ir_region *ir_regions_of(tec_context *cx, const base_vec *v);

/* Reads and writes of a statement (a block's init and body): one hull for each buffer, in order of first
 * touch. Variables bound inside (loops, lets) are eliminated. Updates write their targets; their targets are
 * not listed as reads. The condition of an if narrows what stands under it, unless it loads; those of select
 * and && narrow nothing here. */
void ir_touched(const ir_facts *f, const ir_stmt *s, base_vec *reads, base_vec *writes); /* of ir_region * */
/* of this buffer alone */
void ir_touched_of(const ir_facts *f, const ir_stmt *s, const ir_buffer *b, base_vec *reads,
                   base_vec *writes);

#endif
