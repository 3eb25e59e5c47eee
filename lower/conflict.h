/* lower/conflict.h -- inside the room: whether two accesses by different threads of one block may meet.
 *
 *     // what s itself touches, not its children
 *     lower_accesses(cx, site, s, &list);
 *     if (lower_conflict(f, a, b, &(lower_between){.common = depth})) -> a barrier has to stand between them
 *
 * What is not proven counts as a conflict.
 */
#ifndef LOWER_CONFLICT_H
#define LOWER_CONFLICT_H

#include "lower/util.h"

/* Where an access stands: the loops around it inside the launch, outermost first, those over thread axes
 * among them. */
typedef struct {
    const ir_stmt *const *loop;
    int n;
    const ir_facts *facts;
} lower_stand;

typedef struct {
    const ir_buffer *buffer;
    const ir_expr *const *index; /* NULL: any element */
    bool write;
    const lower_stand *at;
} lower_access;

/* How one follows the other: in the same iteration of the first `common` loops, or in a later one of the loop
 * that stands behind these. */
typedef struct {
    int common;
    const ir_stmt *carried; /* NULL: same iteration */
    bool next;              /* it is the very next iteration */
} lower_between;

/* of lower_access * */
void lower_accesses(tec_context *cx, const lower_stand *at, const ir_stmt *stmt, base_vec *out);
bool lower_conflict(const ir_facts *program, const lower_access *access, const lower_access *other,
                    const lower_between *how);

#endif
