/* tracker/fair.c -- see fair.h.
 *
 * Each flow is in exactly one state: waiting (in the parent's heap `ready`), at work only (in no heap), or
 * idle (in `idle`), where it stays until the virtual time has passed its `finish`, because until then it
 * matters. A flow that was just made is in none of them.
 */
#include "tracker/fair.h"

#include "runtime/alloc.h"

/* `floor` is the virtual time at which the flow began to wait. */
static double start_tag(const track_flow *f)
{
    return f->finish > f->floor ? f->finish : f->floor;
}

/* ---- coming and going of flows ---- */

track_flow *track_flow_find(const track_flow *parent, const char *name)
{
    track_entry *e = track_table_get(&parent->children, name);

    return e ? TRACK_OWNER(e, track_flow, entry) : NULL;
}

/* A new flow begins at the virtual time of its level: it has no credit and no debt. */
track_flow *track_flow_child(track_flow *parent, const char *name, double weight)
{
    track_flow *f = track_flow_find(parent, name);

    if (f)
        return f;
    f = rt_alloc(sizeof *f, NULL);
    if (!f)
        return NULL;
    f->parent = parent;
    f->weight = weight;
    f->finish = parent->virtual_time;
    if (track_table_put(&parent->children, &f->entry, name))
        return f;
    rt_free(f);
    return NULL;
}

/* The flow itself stays: its memory is its parent's or the pool's affair. */
void track_flow_clear(track_flow *f)
{
    while (f->children.first) {
        track_flow *child = TRACK_OWNER(f->children.first, track_flow, entry);

        track_flow_clear(child);
        track_table_take(&f->children, &child->entry);
        rt_free(child);
    }
    track_table_free(&f->children);
    track_heap_free(&f->ready);
    track_heap_free(&f->idle);
}

/* Only from the heap of idle flows: nothing points to it any more. */
static void forget(track_flow *f)
{
    track_heap_take(&f->parent->idle, &f->node);
    track_flow_clear(f);
    track_table_take(&f->parent->children, &f->entry);
    rt_free(f);
}

/* Drops the children that would begin at the virtual time anyway. When the last work of a level ends, the
 * virtual time catches up with all of them, as the paper has it for the end of a busy period. An example: ann
 * has finish 3000 and nobody waits or works; the virtual time becomes 3000 and ann is dropped. If she comes
 * again she begins at 3000, as everybody does: nothing has been lost. */
static void forget_idle(track_flow *parent)
{
    track_node *least;

    while ((least = track_heap_least(&parent->idle))) {
        if (least->key > parent->virtual_time && (parent->waiting || parent->at_work))
            return;
        if (least->key > parent->virtual_time)
            parent->virtual_time = least->key;
        forget(TRACK_OWNER(least, track_flow, node));
    }
}

/* ---- waiting ---- */

/* To be called before the flow's node goes into another heap: a node has one place. */
static void wake(track_flow *f)
{
    if (f->is_idle)
        track_heap_take(&f->parent->idle, &f->node);
    f->is_idle = false;
}

/* Among the parent's flows that wait, from the root's side down to the job. A flow that waits already keeps
 * its tag. The root waits nowhere. */
static bool begin_waiting(track_flow *f)
{
    if (!f->parent || f->waiting)
        return true;
    wake(f);
    f->floor = f->parent->virtual_time;
    return track_heap_put(&f->parent->ready, &f->node, start_tag(f));
}

/* Memory may lack for the heap; then the flow is kept without being idle, which costs memory and harms
 * nobody. */
static void rest(track_flow *f)
{
    if (f->waiting || f->at_work || f->is_idle)
        return;
    f->is_idle = track_heap_put(&f->parent->idle, &f->node, f->finish);
}

/* Makes the user wait, if need be, and then the job. Where memory lacks for the job, the user is put back.
 * Requests of one job are served in the order in which they came. */
bool track_flow_wait(track_flow *job, track_waiter *w)
{
    track_flow *user = job->parent;

    if (!begin_waiting(user))
        return false;
    if (!begin_waiting(job)) {
        if (!user->waiting)
            track_heap_take(&user->parent->ready, &user->node);
        return false;
    }
    for (track_flow *f = job; f; f = f->parent)
        f->waiting++;
    *w = (track_waiter){.earlier = job->last};
    *(job->last ? &job->last->later : &job->first) = w;
    job->last = w;
    return true;
}

/* The counts are the caller's affair. */
static void unlink_waiter(track_flow *job, track_waiter *w)
{
    *(w->earlier ? &w->earlier->later : &job->first) = w->later;
    *(w->later ? &w->later->earlier : &job->last) = w->earlier;
}

/* `rest` goes from the job upwards, as forgetting a user forgets its jobs as well; both levels are cleaned
 * afterwards. */
void track_flow_leave(track_flow *job, track_waiter *w)
{
    track_flow *user = job->parent, *root = user->parent;

    unlink_waiter(job, w);
    for (track_flow *f = job; f; f = f->parent)
        if (--f->waiting == 0 && f->parent)
            track_heap_take(&f->parent->ready, &f->node);
    for (track_flow *f = job, *parent; (parent = f->parent); f = parent)
        rest(f);
    forget_idle(user);
    forget_idle(root);
}

/* ---- serving ---- */

/* Goes down from the root to a job, at each level to the child with the least start tag, which becomes the
 * virtual time of that level. The counts change on the way down. forget_idle may not drop `child`: it is at
 * work now. */
track_waiter *track_flow_serve(track_flow *root, track_flow **job)
{
    track_flow *f = root;

    if (!root->waiting)
        return NULL;
    root->waiting--;
    root->at_work++;
    while (f->ready.n) {
        track_flow *child = TRACK_OWNER(track_heap_least(&f->ready), track_flow, node);
        double start = child->node.key;

        if (start > f->virtual_time)
            f->virtual_time = start;
        child->finish = start;
        child->at_work++;
        child->grants++;
        if (--child->waiting == 0)
            track_heap_take(&f->ready, &child->node);
        forget_idle(f);
        f = child;
    }
    track_waiter *w = f->first;
    unlink_waiter(f, w);
    *job = f;
    return w;
}

/* How many requests of the flow get a start tag below `tag`: each lease moves the flow's tag by ms / weight.
 */
static int64_t served_before(const track_flow *f, double tag, double ms)
{
    double n = (tag - start_tag(f)) * f->weight / ms;

    if (n <= 0 || n >= (double)f->waiting)
        return n <= 0 ? 0 : f->waiting;
    return (int64_t)n + ((double)(int64_t)n < n);
}

/* The requests of the same job that came earlier; then what those put before them at the level of the user's
 * jobs, and the users' level after that.
 *
 * Example: users of weight 1 with three requests each, all tags 0, leases of 6 s, the third request of the
 * first user: two of its own come before it, its tag will be 0 + 2 * 6 = 12, and of the other user those with
 * tags 0 and 6 are served before that: 4 in all. */
int64_t track_flow_ahead(const track_flow *job, const track_waiter *w, double ms)
{
    int64_t ahead = 0;

    for (const track_waiter *e = w->earlier; e; e = e->earlier)
        ahead++;
    for (const track_flow *f = job; f->parent; f = f->parent) {
        double tag = start_tag(f) + (double)ahead * ms / f->weight;

        for (const track_entry *e = f->parent->children.first; e; e = e->later) {
            const track_flow *other = TRACK_OWNER(e, track_flow, entry);

            if (other != f && other->waiting)
                ahead += served_before(other, tag, ms);
        }
    }
    return ahead;
}

void track_flow_charge(track_flow *job, double ms)
{
    for (track_flow *f = job; f->parent; f = f->parent) {
        f->finish += ms / f->weight;
        f->used_ms += ms;
        if (f->waiting)
            track_heap_move(&f->parent->ready, &f->node, start_tag(f));
        else if (f->is_idle)
            track_heap_move(&f->parent->idle, &f->node, f->finish);
    }
}

/* For what is charged from now on; tags that exist are kept. */
void track_flow_set_weight(track_flow *f, double weight)
{
    f->weight = weight;
}

/* For a lease that was granted before a restart: at work without having waited. */
void track_flow_resume(track_flow *job)
{
    for (track_flow *f = job; f; f = f->parent) {
        if (f->parent)
            wake(f);
        f->at_work++;
    }
}

/* The user may be dropped by the last line, and the job by the one before it: neither may be used
 * afterwards. */
void track_flow_done(track_flow *job)
{
    track_flow *root = job->parent->parent, *user = job->parent;

    job->at_work--;
    user->at_work--;
    root->at_work--;
    rest(job);
    rest(user);
    forget_idle(user);
    forget_idle(root);
}
