/* tree/admit.c -- whether the loops whose iterations run at the same time still have their reasons.
 *
 *     for y.0 in 0..2 {
 *       for y.1 in 0..16 vthread {
 *         for j in 0..4 { block P(x = j) { P[x] = .. } }
 *         block B(y = y.0*16 + y.1) { B[y] = P[0] }
 *     } }
 *         the uses of P stand in y.0 and y.1; y.1 needs a reason for P, and has one: each iteration writes
 *         all that it reads
 *
 * `parallel`, `vectorize` and `bind` ask for the reasons when they admit a loop. Later steps rewrite what
 * stands below it. Their results are the same, but a proof may find them harder: a loop of one iteration that
 * was split into 8 times 4 under a guard is no single element to the iterator map. So the schedule asks again
 * after each step, and refuses a step that hides a reason; lowering, which writes the reasons down, then
 * finds each of them.
 */
#include "tree/depend.h"

/* The first user; the others cut the loops that it shares with all of them. */
const tree_site *tree_common_user(const tree_sites *all, const ir_buffer *buffer, int *loops)
{
    const tree_site *first = NULL;

    *loops = 0;
    for (int i = 0; i < all->n; i++) {
        const tree_site *site = &all->at[i];

        if (!tree_reads(site->block, buffer) && !tree_writes(site->block, buffer))
            continue;
        int common = first ? tree_common_loops(first, site) : site->n_loops;
        first = first ? first : site;
        *loops = first == site || common < *loops ? common : *loops;
    }
    return first;
}

/* A loop whose reason the tree no longer shows. The schedule admitted it, so that the buffer is private to
 * its iterations or owned by them. To have a buffer in each iteration is right for both, unless a loop around
 * hands on what owners wrote: none does where the next loop around that keeps its order has the buffer
 * private, or where there is none. A loop of one iteration has nothing to hand on, and is passed over. */
static bool is_private_in_effect(const tree_view *view, const tree_sites *all, const tree_site *user, int at,
                                 const ir_buffer *buffer)
{
    const char *why;

    while (--at >= 0)
        if (!tree_needs_reason(user->loop[at], buffer) && !ir_is_value(user->loop[at]->loop.extent, 1))
            return tree_reason_of_loop(view, all, buffer, user->loop[at], &why) == TREE_PRIVATE;
    return true;
}

tree_reason tree_reason_in_effect(const tree_view *view, const tree_sites *all, const tree_site *user, int at,
                                  const ir_buffer *buffer, const char **why)
{
    tree_reason reason = tree_reason_of_loop(view, all, buffer, user->loop[at], why);

    return reason == TREE_DEPENDS && *why && is_private_in_effect(view, all, user, at, buffer) ? TREE_PRIVATE
                                                                                               : reason;
}

/* From the innermost common loop outward, as far as lowering looks: to the first loop that has the buffer
 * private. Loops that need no reason are asked only if one that does stands further out. */
static const ir_stmt *unproven_for(const tree_view *view, const tree_sites *all, const ir_buffer *buffer,
                                   const char **why)
{
    int loops, outermost = 0;
    const tree_site *user = tree_common_user(all, buffer, &loops);

    while (outermost < loops && !tree_needs_reason(user->loop[outermost], buffer))
        outermost++;
    for (int i = loops - 1; i >= outermost; i--) {
        tree_reason reason = tree_reason_in_effect(view, all, user, i, buffer, why);

        if (reason == TREE_PRIVATE)
            return NULL;
        if (reason == TREE_DEPENDS && *why)
            return user->loop[i];
    }
    return NULL;
}

/* Some loop runs its iterations at the same time; most steps of most schedules come before there is one. */
static bool any_at_once(const tree_sites *all)
{
    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < all->at[i].n_loops; k++) {
            ir_how how = all->at[i].loop[k]->loop.how;

            if (how != IR_SERIAL && how != IR_UNROLLED)
                return true;
        }
    return false;
}

const ir_stmt *tree_unproven_loop(const tree_view *view, const char **why)
{
    tree_sites all = tree_all_sites(view->cx, view->program->body);
    const ir_stmt *loop = NULL;

    for (int i = 0; any_at_once(&all) && i < view->program->n_buffers && !loop; i++)
        loop = unproven_for(view, &all, view->program->buffers[i], why);
    return loop;
}
