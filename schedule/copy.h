/* schedule/copy.h -- inside the room: nests that copy boxes between buffers, and blocks that use one
 * buffer in place of another; what caches are made of.
 *
 *     sched_copy k = {.name = "A.cache.local", .role = IR_ROLE_CACHE, .from = &A, .to = &cache, .n = 1,
 *         .axis = axes};
 *     sched_copy_written(c, &all, A, &k);
 *     // for ax0 in 0..8 { block A.cache.local { cache[ax0] = A[ax0] } }
 *     nest = sched_copy_nest(c, facts, &k);
 */
#ifndef SCHEDULE_COPY_H
#define SCHEDULE_COPY_H

#include "schedule/state.h"

typedef struct {
    const char *name; /* of the block; its loops start with it */
    ir_role role;
    const ir_buffer *const *from, *const *to;
    int n;                               /* pairs of buffers, all of one shape */
    const char *const *axis;             /* names of the dimensions */
    const ir_expr **min, **extent;       /* of the part to copy */
    const ir_expr *const *first_written; /* nothing writes what lies in front of it */
    const ir_expr *where;                /* over loops around; NULL: always */
    /* Loops around that carry what is copied from one iteration to the next: iteration variables of the
     * block, of kind scan. */
    const ir_stmt *const *carried;
    int n_carried;
    /* What is stored in their first iteration instead of a copy, over `index`; NULL: nothing else. */
    const ir_expr *const *first;
    const ir_expr *const *index; /* the variables of `first`, one for each dimension, or NULL */
} sched_copy;

/* All of buffer that blocks write (what lives within the steps of a scan begins behind those that are given);
 * of an input, all. */
void sched_copy_written(sched_call *call, const tree_sites *all, const ir_buffer *buffer, sched_copy *copy);
/* Refuses where a copy of the buffer would read padding of its layout that was never written. */
bool sched_may_copy(sched_call *call, const ir_buffer *buffer);
const ir_stmt *sched_copy_nest(sched_call *call, const ir_facts *facts, const sched_copy *copy);

const char *const *sched_numbered_axes(sched_call *call, int n); /* ax0, ax1, ... */
/* Names of the dimensions of a written box: those of the variables that index them. */
const char *const *sched_written_axes(sched_call *call, const ir_block *block, const ir_region *written);

bool sched_read_scope(sched_call *call, const char *word, ir_scope *scope); /* refuses */
/* A compact buffer of b's shape in another scope, with a name that no other buffer has. */
const ir_buffer *sched_cache_of(sched_call *call, const ir_buffer *buffer, const char *name, ir_scope scope);

/* The tree with the named blocks using to[i] in place of from[i]. */
const ir_stmt *sched_redirect(sched_call *call, const ir_stmt *stmt, int n_buffers,
                              const ir_buffer *const *from, const ir_buffer *const *to,
                              const char *const *names, int count);

/* cache_write with a loop (accumulate.c). */
const ir_program *sched_cache_inside(sched_call *call);

#endif
