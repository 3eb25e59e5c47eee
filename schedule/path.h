/* schedule/path.h -- paths from the root of a loop tree to its loops and blocks, and trees with another node
 * at the end of a path.
 *
 *     sched_path at;
 *     if (sched_find_loop(cx, tree->body, "C.x", &at))
 *         body = sched_rebuild(cx, &at, at.n - 1, replacement);
 */
#ifndef SCHEDULE_PATH_H
#define SCHEDULE_PATH_H

#include "ir/build.h"
#include "ir/region/region.h"
#include "ir/walk.h"
#include "schedule/sched.h"
#include "tree/sites.h"

typedef struct {
    const ir_stmt *stmt;
    int child; /* the one that the path goes on to */
} sched_link;

/* From the root down to a node, link[n-1]. */
typedef struct {
    sched_link *link;
    int n;
} sched_path;

static inline const ir_stmt *sched_end(const sched_path *path)
{
    return path->link[path->n - 1].stmt;
}

/* stmt with another child; where that is the empty sequence, a loop, let or attribute around it
 * disappears. */
const ir_stmt *sched_with_child(tec_context *cx, const ir_stmt *stmt, int index, const ir_stmt *child);
/* The root with node `depth` of the path replaced. */
const ir_stmt *sched_rebuild(tec_context *cx, const sched_path *path, int depth, const ir_stmt *node);
bool sched_is_nothing(const ir_stmt *stmt);

bool sched_find_loop(tec_context *cx, const ir_stmt *root, const char *name, sched_path *out);
bool sched_find_block(tec_context *cx, const ir_stmt *root, const char *name, sched_path *out);
/* the loop of that variable */
bool sched_find_var(tec_context *cx, const ir_stmt *root, const ir_expr *var, sched_path *out);
bool sched_name_taken(const ir_stmt *root, const char *name);

/* The child of a sequence that holds the named loop or block (of anything else: 0); -1: none. */
int sched_child_with(const ir_stmt *body, const char *name);
bool sched_is_named(const char *const *names, int n, const char *name); /* one of the names */

/* What holds at link `depth` of the path: symbols, ranges of loops above, conditions, lets. */
ir_facts *sched_facts_at(const sched *schedule, const sched_path *path, int depth);

const ir_buffer *sched_buffer_named(const ir_program *program, const char *name);
bool sched_is_tensorized(const ir_block *block); /* (tensorize.c) */

#endif
