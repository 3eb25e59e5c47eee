/* ir/reason/itermap.h -- iterator maps: whether bindings over loops are one-to-one, and their inverse.
 *
 *     ir_iter_map m;
 *     if (!ir_iter_map_detect(f, loops, extents, n, bindings, domains, n_bindings, where,
 *         &m)) -> m.reason says why not
 *
 * For example `y0*8 + y1` over y0 in 0..4 and y1 in 0..8 is a bijection onto 0..32, and y0 = y//8, y1 = y%8
 * is its inverse.
 */
#ifndef IR_ITERMAP_H
#define IR_ITERMAP_H

#include "ir/reason/facts.h"

/* The proof that quasi-affine bindings over loops (0..extent-1) are a bijection from the points that satisfy
 * `where` onto the domain (0..dom[j]-1 each). */
typedef struct {
    bool bijective;              /* onto the whole domain, each point once */
    bool injective;              /* each point at most once (covers part of it) */
    const char *reason;          /* why not, for the reader; NULL where bijective */
    struct ir_iter_marks *marks; /* what the proof found: for the inverse */
} ir_iter_map;
bool ir_iter_map_detect(const ir_facts *facts, const ir_expr *const *loop, const ir_expr *const *extent,
                        int n_loops, const ir_expr *const *bind, const ir_expr *const *dom, int n_bind,
                        const ir_expr *where, ir_iter_map *out);

/* Inverts a bijective map: each loop variable as an expression over `point` (one per binding). */
bool ir_iter_map_inverse(const ir_facts *facts, const ir_iter_map *map, const ir_expr *const *point,
                         const ir_expr *const *loop, int n_loops, const ir_expr **out);

#endif
