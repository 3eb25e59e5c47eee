/* space/look.h -- inside the room: what a tree tells a template.
 *
 *     // "conv1.acc.ib", wherever it is now
 *     const char *loop = space_loop_of(s, "conv1.acc", "ib");
 *     // sums that fit in registers
 *     space_tile t = space_tile_choose(sched_target(s), rows, vectors);
 *
 * Errors: none; what is not there is NULL, 0 or false. The rest as schedule/sched.h.
 */
#ifndef SPACE_LOOK_H
#define SPACE_LOOK_H

#include "schedule/sched.h"

/* The innermost loop that iteration variable `iter` of a block depends on, by the variable's name; NULL:
 * none. */
const char *space_loop_of(const sched *schedule, const char *block, const char *iter);
bool space_is_among(const char *name, const char *const *list, int n);
/* the block has a note of that key that is true */
bool space_has_note(const sched *schedule, const char *block, const char *key);
bool space_reduces(const ir_block *block);
/* The one update of a reduction, which may stand under a condition; NULL: the body is something else. */
const ir_stmt *space_update_of(const ir_block *block);

/* Producers are computed where they are read if that computes nothing dear twice; what cannot be moved stays,
 * and the blocks of `but`. */
void space_inline_cheap(sched *schedule, const char *const *but, int n_but);

/* the store of an element-wise block computes a root, an exponential, ... */
bool space_has_math(tec_context *cx, const ir_block *block);

/* Every access is the element at the same position of a tensor of the same shape, and nothing else depends on
 * the position: one loop over all elements will do. */
bool space_is_flat(tec_context *cx, const ir_block *block);
/* The dimension along which neighbouring elements of what is loaded lie in memory: the last one that has more
 * than one element. */
int space_row_dimension(const ir_expr *load);
/* Neighbouring results read elements that lie side by side, or the same ones: vectors of results pay. */
bool space_has_columns(tec_context *cx, const ir_block *block);
/* The loops of a reduction, outermost first, each with the axis of the block that it runs. */
typedef struct {
    const ir_block *block;
    const char **loop;
    const ir_iter **axis;
    int n;
} space_reduction;
/* How many of the last loops run along rows of what is read, as one loop: vectors of partial results pay. */
int space_count_rows(const ir_facts *facts, const space_reduction *reduction);
/* Whether the last loops, so many, run along rows of what is read, as one loop. */
bool space_runs_along_rows(const ir_facts *facts, const space_reduction *reduction, int take);
/* The same loops in the order of the dimensions that they move along. */
space_reduction space_order_by_memory(tec_context *cx, const space_reduction *reduction);

bool space_unroll(sched *schedule, const char *loop); /* nothing where the loop is NULL or runs once */
bool space_vectorise(sched *schedule, const char *loop);
/* Each core takes iterations: of a parallel loop of the host, or as blocks of a launch. */
bool space_run_in_parallel(sched *schedule, const char *loop);
/* The results of one vector stay in a register while the loops inside `loop` run; where that is refused, in
 * memory. */
bool space_keep_in_register(sched *schedule, const char *block, const char *loop);

/* A register tile of `rows` broadcast operands times `vectors` vectors of sums. */
typedef struct {
    int rows, vectors;
} space_tile;
/* How many vectors of sums a tile may have; machine NULL: few enough for any CPU. */
int space_most_sums(const target *machine);
/* The tile with the least time for a problem of so many rows (0: unknown) and vectors, by counting
 * multiply-adds and loads; never more sums than the target's registers hold safely. */
space_tile space_tile_choose(const target *machine, int64_t rows, int64_t vectors);
/* The time by the same count, in cycles of all columns of tiles for one step of the reduction. */
double space_tile_time(const target *machine, int64_t rows, int64_t vectors, space_tile tile);

#endif
