/* lower/vector.h -- inside the room: expressions over all lanes of a loop at once.
 *
 *     lower_vector v = {.cx = cx, .f = f, .var = x, .base = ir_int(cx, 0), .lanes = 16};
 *     // A[y*64 + x] -> A[ramp(y*64, 1, 16)]; scalar where it does not depend on x
 *     e = lower_vector_expr(&v, e);
 *     if (!e && v.why) ...               // cannot be done lane by lane: the reason
 */
#ifndef LOWER_VECTOR_H
#define LOWER_VECTOR_H

#include "lower/util.h"

typedef struct {
    tec_context *cx;
    const ir_facts *f;  /* where the statement stands, without the lanes */
    const ir_expr *var; /* the loop's variable, which is base + lane */
    const ir_expr *base;
    int lanes;
    const ir_expr *mask; /* lanes that run; NULL: all */
    bool idle;           /* the mask may hold in no lane at all */
    /* Buffers to which an iteration of some parallel loop may store while other iterations run. A load that
     * no lane asks for would be a race there. NULL: there are none. */
    const base_map *shared;
    base_map vars;    /* let variables -> what they are now */
    base_map buffers; /* buffers allocated inside -> the same with one copy for each lane */
    base_map memo;    /* valid under the current mask, for what is known here */
    const char *why;
} lower_vector;

/* A vector of vector->lanes, or a scalar where all lanes agree. NULL: see vector->why, or an error in the
 * context. */
const ir_expr *lower_vector_expr(lower_vector *vector, const ir_expr *expr);
/* a scalar broadcast; others as they are */
const ir_expr *lower_vector_of(lower_vector *vector, const ir_expr *expr);
/* The variable that a let binds now: a vector where the value is one. Copies of a loop's body bind the same
 * variable again; what was made of its uses in one copy is not for the next, where it may be a scalar or
 * another vector. */
const ir_expr *lower_vector_bind(lower_vector *vector, const ir_expr *var, const ir_expr *value);
/* The index of a buffer's access, its private copies taken into account. */
const ir_expr *lower_vector_index(lower_vector *vector, const ir_buffer *buffer, const ir_expr *index);
const ir_buffer *lower_vector_buffer(const lower_vector *vector, const ir_buffer *buffer);

#endif
