/* schedule/place.h -- inside the room: a block on its way to another place: what compute_at, compute_root
 * (place.c) and reverse_compute_at (reverse.c) share (move.c, place.c).
 *
 *     sched_move m;
 *     if (!sched_move_start(c, &m, block, loop) || !sched_move_allowed(&m) || ...)
 *         return NULL;                                 // refused
 *     ... m.min, m.extent: what its new loops run over
 *     root = sched_move_carry_out(&m, reader, false);  // the new tree
 */
#ifndef SCHEDULE_PLACE_H
#define SCHEDULE_PLACE_H

#include "schedule/state.h"
#include "tree/touch.h"

typedef struct {
    sched_call *c;
    sched_path from;       /* to the block */
    sched_path to;         /* to the loop whose body receives it; n = 0: the root */
    const ir_expr *loop;   /* that loop's variable; NULL: the root */
    const char *loop_name; /* for messages */
    tree_sites all;        /* of the tree before */
    const tree_site *site; /* of the block */
    /* its outer loops that a step of its scan is one iteration of; 0: it has no scan variables */
    int step;
    const ir_expr **min, **extent; /* of its new loops, per iteration variable */
    /* conditions over the loops around the target under which the neighbours run */
    base_vec guards;
    /* ir_stmt *: loops over threads around the target whose threads share what the block writes */
    base_vec threads;
    base_vec last_steps; /* conditions on those loops that all steps of its inputs are made */
} sched_move;

/* compute_at of a block in a loop, by their names, without a look at the loops around: the caller places
 * several tiles before it asks whether the iterations of those loops are independent. NULL: refused. */
const ir_program *sched_place_tile(sched_call *call, const char *block, const char *loop);

/* From the names of the block and of the loop, NULL: the root; refuses where there is none. Its loops are
 * those of its whole domain. */
bool sched_move_start(sched_call *call, sched_move *move, const char *block, const char *loop);
/* All points; of a scan: all of the step. */
void sched_move_whole_domain(sched_move *move);
/* The block alone writes its buffers (in a step), and may run anywhere (there). What else lies in the loops
 * that it leaves stays there. Refuses. */
bool sched_move_allowed(sched_move *move);
/* No instance of the block overwrites what another one wrote in that step, as those of a rolled window do:
 * where more of them run before the readers, these find the same. Refuses. */
bool sched_move_writes_once(sched_move *move);
/* Nobody reads from an earlier step what the block is about to overwrite, and would find it overwritten.
 * Refuses. */
bool sched_move_overtakes_nobody(sched_move *move);

/* Whether a site lies under the target loop; everything lies under the root. */
bool sched_move_under(const sched_move *move, const tree_site *site);
/* The loops around a site, up to and including the target. */
int sched_move_fixed_loops(const sched_move *move, const tree_site *site);
/* The writer stands in the step of the scan that the block moves in; everything does where it has none. */
bool sched_move_in_step(const sched_move *move, const tree_site *writer);
/* All that the block reads is complete in front of child `index` of the target's body. Refuses. */
bool sched_move_inputs_complete(sched_move *move, int index);
/* writer comes after the block and writes nothing that it reads in this access in the same iteration of those
 * loops: the block reads what earlier iterations wrote. */
bool sched_move_earlier_only(const sched_move *move, const ir_region *access, const tree_site *writer);
/* expr reads no buffer, and its variables are loops around the target, symbols or scalars: what the readers'
 * own lets define is out of reach. */
bool sched_move_in_reach(const sched_move *move, const ir_expr *expr);
/* The interval of a variable over the elements of a box. */
bool sched_span_in_box(const ir_facts *facts, const tree_layout *layout, const ir_expr *var,
                       const ir_region *box, const ir_expr **min, const ir_expr **extent);

/* Takes the block out and puts it in front of (or, `behind`, after) the child of the target's body that holds
 * block `neighbour`. */
const ir_stmt *sched_move_carry_out(sched_move *move, const char *neighbour, bool behind);
/* In the new tree, each step of the block still writes all that it wrote before: later steps, and what
 * follows the scan, may read it. */
bool sched_move_keeps_step(sched_move *move, const ir_stmt *root);

#endif
