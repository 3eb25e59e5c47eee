/* ir/region/matcher.h -- inside the room: one comparison of a nest with a meaning, shared by the files of
 * match.h.
 *
 *     if (!ir_match_access(m, p, p_index, t, t_index)) return false;      // the reason is noted
 *
 * match.c assigns loops and compares statements and expressions; match_operand.c reads nests and binds sizes,
 * strides and memory. A part that differs is noted with how much agreed before it; the reason of the furthest
 * attempt is the one to show. The caller undoes the bindings of a failed attempt before the next one.
 */
#ifndef IR_MATCHER_H
#define IR_MATCHER_H

#include "ir/region/match.h"

enum { IR_MATCH_LOOPS = 8 };

/* Loops and conditions around a statement. */
typedef struct {
    const ir_expr *var[IR_MATCH_LOOPS], *extent[IR_MATCH_LOOPS];
    bool cut[IR_MATCH_LOOPS]; /* a condition ends it early; its extent says where */
    int n;
    base_vec conditions;
    const ir_stmt *leaf;
} ir_nest;

typedef struct {
    tec_context *cx;
    const ir_facts *f; /* of the program that the nest stands in */
    const ir_program *meaning;
    const ir_nest *p, *t;
    const ir_expr *image[IR_MATCH_LOOPS]; /* of the meaning's loops */
    ir_match m;
    int score, best; /* parts that agreed; of the attempt that is reported */
    const char *reason;
} ir_matcher;

/* notes the reason; always false */
bool ir_match_differ(ir_matcher *matcher, const char *fmt, ...) BASE_PRINTF(2, 3);
const char *ir_match_shown(ir_matcher *matcher, const ir_expr *expr); /* cut where it is long */

/* Loops of one iteration stand for their value. False: more loops than are compared. */
bool ir_match_read_nest(tec_context *cx, const ir_stmt *stmt, ir_nest *out);
/* conditions that only end a loop early become part of its extent */
void ir_match_cut_loops(ir_matcher *matcher, ir_nest *nest);
int ir_match_loop_index(const ir_nest *nest, const ir_expr *var); /* -1: none */
bool ir_match_uses_loops(const ir_matcher *matcher, const ir_nest *nest, const ir_expr *expr);
bool ir_match_is_constant(const ir_expr *expr);

const ir_expr *ir_match_value_of(const ir_matcher *matcher, const ir_expr *var); /* NULL: not known yet */
bool ir_match_is_param(const ir_matcher *matcher, const ir_expr *var);
bool ir_match_set_value(ir_matcher *matcher, const ir_expr *var, const ir_expr *value);
/* of the meaning, with what is known of its values */
const ir_expr *ir_match_applied(ir_matcher *matcher, const ir_expr *expr);
/* A size of the meaning against one of the program: a symbol that is not known yet takes it. */
bool ir_match_same_size(ir_matcher *matcher, const ir_expr *pattern, const ir_expr *target);

bool ir_match_same_dtype(ir_matcher *matcher, const ir_buffer *pattern, const ir_buffer *target);
/* The element of pattern at these indices is that of target at those, for all values of the loops: binds the
 * operand. */
bool ir_match_access(ir_matcher *matcher, const ir_buffer *pattern, const ir_expr *const *pi,
                     const ir_buffer *target, const ir_expr *const *ti);

#endif
