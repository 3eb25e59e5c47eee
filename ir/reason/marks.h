/* ir/reason/marks.h -- inside the room: the parts of the iterator map, shared by its files.
 *
 * A mark is something that runs through 0..extent-1, each value once: a loop, or loops fused by mixed radix
 * (a*12 + b), perhaps cut short by a predicate. A digit of a mark is (mark // lower) % extent, or, reversed,
 * extent - 1 minus that. A mix is a sum of digits with scales plus what no loop changes.
 */
#ifndef IR_MARKS_H
#define IR_MARKS_H

#include "ir/reason/itermap.h"
#include "ir/reason/reason.h"

typedef struct ir_mark ir_mark;

typedef struct {
    ir_mark *of;
    const ir_expr *lower, *extent, *scale;
    bool reversed;
    const ir_expr *value; /* of the inverse, else NULL */
} ir_part;

enum { IR_MAX_PARTS = 24 };
typedef struct {
    ir_part part[IR_MAX_PARTS];
    int n;
    const ir_expr *base;
} ir_mix;

struct ir_mark {
    const ir_expr *loop; /* NULL: fused */
    const ir_expr *extent, *value;
    ir_mix inside; /* fused: its digits, the least scale first */
    bool trimmed;  /* by a predicate */
    bool single;   /* found in a sum, where it adds nothing: it has one value there */
    bool used;
    base_vec uses; /* ir_part * */
};

typedef struct ir_iter_marks {
    const ir_facts *f; /* with the ranges of the loops */
    ir_facts *where;   /* and the predicate; NULL: none */
    base_vec marks;    /* the loops, then fused ones, each after what it is made of */
    int n_loops;
    const char *reason; /* the first that went wrong */
    bool restart;       /* a fused mark was found that all bindings must be read with */
    const ir_expr *const *bind;
    ir_mix *mix; /* of each binding */
    int n_bind;
} ir_iter_marks;

bool ir_iter_refuse(ir_iter_marks *marks, const char *fmt, ...) BASE_PRINTF(2, 3);
bool ir_iter_mentions_loop(const ir_iter_marks *marks, const ir_expr *expr);
bool ir_iter_read(ir_iter_marks *marks, const ir_expr *expr, ir_mix *out);
/* Sorts by radix; false where the scales do not fit the extents. *extent: how many values the sum has. */
bool ir_iter_chain(ir_iter_marks *marks, const ir_expr *expr, ir_mix *mix, const ir_expr **extent);
ir_mark *ir_iter_fuse(ir_iter_marks *marks, const ir_mix *chain, const ir_expr *extent);

/* Arithmetic on positive sizes. */
const ir_expr *ir_iter_mul(const ir_iter_marks *marks, const ir_expr *left, const ir_expr *right);
/* NULL: does not divide */
const ir_expr *ir_iter_quotient(const ir_iter_marks *marks, const ir_expr *a, const ir_expr *b);
bool ir_iter_same(const ir_iter_marks *marks, const ir_expr *left, const ir_expr *right);

#endif
