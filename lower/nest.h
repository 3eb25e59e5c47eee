/* lower/nest.h -- inside the room: conditions and loops around a block, and copies of those loops for what
 * must run before or after its reduction.
 *
 *     tree_sites all = tree_all_sites(cx, p->body);
 *     // path[at] is the outermost loop of its reduction
 *     int at = lower_reduction_at(cx, site);
 *     lower_used(cx, site, at, spatial bindings, &used);             // the loops and lets that they need
 *     stmt = lower_copy_loops(cx, site, at, &used, &conjuncts, stmt);
 */
#ifndef LOWER_NEST_H
#define LOWER_NEST_H

#include "lower/util.h"
#include "tree/sites.h"

/* The variables (keys) of the loops and lets of path[at..] that expr needs, bounds of needed loops included;
 * adds to `used`. */
void lower_used(tec_context *cx, const tree_site *site, int at, const ir_expr *expr, base_map *used);

/* The variables (keys) of loops and lets around the block that its reduce variables are bound to; no symbols
 * of the program, which a binding may mention too. */
void lower_reduce_vars(tec_context *cx, const tree_site *site, base_map *out);
/* The place in the path of the outermost of those loops; site->n where there is none. */
int lower_reduction_at(const tree_site *site, const base_map *reduce_vars);

/* Whether the reduce variables of the block are all 0 when path[at] begins: surely, surely not, or it is not
 * known. facts holds at the block. */
typedef enum { LOWER_STARTS, LOWER_NEVER, LOWER_UNKNOWN } lower_start;
lower_start lower_first_point(const ir_facts *facts, const tree_site *site, int at);

/* The conditions under which the block runs, from path[at..] and its own predicate, each once. */
void lower_site_conditions(tec_context *cx, const tree_site *site, int at, base_vec *out);

/* inner inside an `if` of the conjuncts and copies of the loops and lets of path[at..] that bind the used
 * variables. */
const ir_stmt *lower_copy_loops(tec_context *cx, const tree_site *site, int at, const base_map *used,
                                const base_vec *conjuncts, const ir_stmt *inner);

/* What holds inside of such copies and their guards; `outside` holds at path[at]. */
const ir_facts *lower_inside_copies(const ir_facts *outside, const tree_site *site, int at,
                                    const base_map *used, const base_vec *guards);

/* The facts that hold at path[at] (at = site->n: at the block). */
const ir_facts *lower_site_facts(const ir_facts *facts, const tree_site *site, int at);

#endif
