/* lower/differ.h -- inside the room: what differs between the threads of a launch.
 *
 *     base_map differ = lower_find_differing(cx, p->body);
 *     if (lower_varies_by_thread(cx, &differ, cond)) -> not all threads take one branch
 *
 * The map holds variables whose values differ, and buffers of which each thread has its own. What is not
 * known counts as different.
 */
#ifndef LOWER_DIFFER_H
#define LOWER_DIFFER_H

#include "lower/util.h"

base_map lower_find_differing(tec_context *cx, const ir_stmt *stmt);
bool lower_varies_by_thread(tec_context *cx, const base_map *differ, const ir_expr *expr);

/* Whether threads that come to the loop, which is not one over threads, may run different iterations of it:
 * they cannot wait for each other inside. */
bool lower_parts_threads(tec_context *cx, const base_map *differ, const ir_stmt *loop);

/* Whether `left` or `right` (NULL: none) differs between threads, and threads may have to meet inside stmt:
 * stmt has a barrier, or uses twice what it writes in memory that is not one thread's own. Then these
 * expressions must not decide which iterations or branches of stmt a thread runs. */
bool lower_parts_exchange(tec_context *cx, const base_map *differ, const ir_expr *left, const ir_expr *right,
                          const ir_stmt *stmt);

/* A call without operands in memory at which the threads of a block meet, or that is about their asynchronous
 * copies. Who has begun none may come too. */
bool lower_is_for_all(const ir_expr *call);

/* A shuffle whose reader names the lane: all threads of a warp come to it together (ir/calls.h). */
bool lower_is_shuffle_from(const ir_expr *value);

#endif
