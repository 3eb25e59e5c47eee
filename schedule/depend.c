/* schedule/depend.c -- refusals where a step would break a dependence that tree/depend.h finds.
 *
 *     for y { P[y] = ..;  Q[y] = P[y] }           # reads_are_written: P's box {y} covers Q's {y}
 *     for y { P[y] = ..;  Q[y] = P[y + 1] }       # refused: P[y + 1] is written one iteration later
 *     for y { Q[y] = P[y - 1];  P[y] = .. }       # passes: in one iteration Q reads nothing that P writes
 *
 * These questions are asked of the tree as it will be, after the rewrite. The loops that the block was in
 * before play a role in the third line: there an earlier iteration wrote the element. This stays true only
 * for loops that the step did not change.
 */
#include "schedule/depend.h"

#include "tree/depend.h"

/* The loops that the block was in before the step as well; all of them where it is new. */
static int loops_kept(sched_call *call, const tree_site *now)
{
    tree_sites before = tree_all_sites(call->cx, call->tree->body);
    const tree_site *old = tree_site_named(&before, now->block->name);

    return old ? tree_common_loops(old, now) : now->n_loops;
}

/* Only writers that share a loop can fall short: the others have covered their whole domain. Nor can those
 * that in an iteration of loops, which the block does not leave, write nothing that it reads: earlier
 * iterations have, and come before as they did. */
bool sched_reads_are_written(sched_call *call, const ir_stmt *root, const char *block)
{
    tree_sites all = tree_all_sites(call->cx, root);
    const tree_site *q = tree_site_named(&all, block);
    int kept = loops_kept(call, q);

    for (int i = 0; i < all.n; i++) {
        const tree_site *w = &all.at[i];
        int fixed = tree_common_loops(w, q);

        for (int j = 0; w != q && fixed && j < q->block->n_reads; j++) {
            const ir_region *read = &q->block->reads[j],
                            *write = tree_access(w->block->writes, w->block->n_writes, read->buffer);

            if (!write || tree_reads_within(&call->s->view, q, read, w, write, fixed) ||
                tree_accesses_disjoint(&call->s->view, w, write, q, read, fixed < kept ? fixed : kept))
                continue;
            sched_refuse(call,
                         "it is not proven that '%s' finds all of '%s' that it reads complete in one "
                         "iteration of '%s'",
                         q->block->name, read->buffer->name, q->loop[fixed - 1]->loop.var->var.name);
            return false;
        }
    }
    return true;
}

/* `vectorize` checked the body as it was then: bounds that all lanes share, no opaque block. A nest that
 * comes later would be unchecked. */
bool sched_takes_loops(sched_call *call, const sched_path *to)
{
    for (int i = 0; i < to->n; i++) {
        const ir_stmt *stmt = to->link[i].stmt;

        if (stmt->kind == IR_FOR && stmt->loop.how == IR_VECTORISED) {
            sched_refuse(call, "'%s' is vectorised and takes no further loops", stmt->loop.var->var.name);
            return false;
        }
    }
    return true;
}

/* The loops of the path were independent before the step; the new tree may have changed what they hold. The
 * step may have brought a block into a parallel loop, or changed what an iteration touches. Serial loops
 * keep their order whatever they hold. */
bool sched_still_independent(sched_call *call, const sched_path *to, const ir_stmt *root)
{
    tree_sites all = {0};

    for (int i = 0; i < to->n; i++) {
        const ir_stmt *l = to->link[i].stmt;

        if (l->kind != IR_FOR || l->loop.how == IR_SERIAL || l->loop.how == IR_UNROLLED)
            continue;
        if (!all.n)
            all = tree_all_sites(call->cx, root);
        const char *reason = tree_dependence(&call->s->view, &all, l->loop.var);
        if (reason) {
            sched_refuse(call, "'%s' is %s, and %s", l->loop.var->var.name, ir_how_text(l->loop.how), reason);
            return false;
        }
    }
    return true;
}
