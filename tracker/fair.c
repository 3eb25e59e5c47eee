/* tracker/fair.c -- see fair.h.
 *
 * Each flow is in exactly one state: waiting (in the parent's heap `ready`), at work only (in no heap), or
 * idle (in `idle`), where it stays until the virtual time has passed its `finish`, because until then it
 * matters. A flow that was just made is in none of them.
 */
#include "tracker/fair.h"

#include "runtime/alloc.h"

/* `floor` is the virtual time at which the flow began to wait. */
static double start_tag(const track_flow *flow)
{
    return flow->finish > flow->floor ? flow->finish : flow->floor;
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
    track_flow *flow = track_flow_find(parent, name);

    if (flow)
        return flow;
    flow = rt_alloc(sizeof *flow, NULL);
    if (!flow)
        return NULL;
    flow->parent = parent;
    flow->weight = weight;
    flow->finish = parent->virtual_time;
    if (track_table_put(&parent->children, &flow->entry, name))
        return flow;
    rt_free(flow);
    return NULL;
}

/* The flow itself stays: its memory is its parent's or the pool's to free. */
void track_flow_clear(track_flow *flow)
{
    while (flow->children.first) {
        track_flow *child = TRACK_OWNER(flow->children.first, track_flow, entry);

        track_flow_clear(child);
        track_table_take(&flow->children, &child->entry);
        rt_free(child);
    }
    track_table_free(&flow->children);
    track_heap_free(&flow->ready);
    track_heap_free(&flow->idle);
}

/* Only from the heap of idle flows: nothing points to it any more. */
static void forget(track_flow *flow)
{
    track_heap_take(&flow->parent->idle, &flow->node);
    track_flow_clear(flow);
    track_table_take(&flow->parent->children, &flow->entry);
    rt_free(flow);
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
static void wake(track_flow *flow)
{
    if (flow->is_idle)
        track_heap_take(&flow->parent->idle, &flow->node);
    flow->is_idle = false;
}

/* Among the parent's flows that wait, from the root's side down to the job. A flow that waits already keeps
 * its tag. The root waits nowhere. */
static bool begin_waiting(track_flow *flow)
{
    if (!flow->parent || flow->waiting)
        return true;
    wake(flow);
    flow->floor = flow->parent->virtual_time;
    return track_heap_put(&flow->parent->ready, &flow->node, start_tag(flow));
}

/* Memory may lack for the heap; then the flow is kept without being idle, which costs memory and harms
 * nobody. */
static void rest(track_flow *flow)
{
    if (flow->waiting || flow->at_work || flow->is_idle)
        return;
    flow->is_idle = track_heap_put(&flow->parent->idle, &flow->node, flow->finish);
}

/* Makes the user wait, if need be, and then the job. Where memory lacks for the job, the user is put back.
 * Requests of one job are served in the order in which they came. */
bool track_flow_wait(track_flow *job, track_waiter *waiter)
{
    track_flow *user = job->parent;

    if (!begin_waiting(user))
        return false;
    if (!begin_waiting(job)) {
        if (!user->waiting)
            track_heap_take(&user->parent->ready, &user->node);
        return false;
    }
    for (track_flow *flow = job; flow; flow = flow->parent)
        flow->waiting++;
    *waiter = (track_waiter){.earlier = job->last};
    *(job->last ? &job->last->later : &job->first) = waiter;
    job->last = waiter;
    return true;
}

/* The counts are the caller's to keep. */
static void unlink_waiter(track_flow *job, track_waiter *waiter)
{
    *(waiter->earlier ? &waiter->earlier->later : &job->first) = waiter->later;
    *(waiter->later ? &waiter->later->earlier : &job->last) = waiter->earlier;
}

/* `rest` goes from the job upwards, as forgetting a user forgets its jobs as well; both levels are cleaned
 * afterwards. */
void track_flow_leave(track_flow *job, track_waiter *waiter)
{
    track_flow *user = job->parent, *root = user->parent;

    unlink_waiter(job, waiter);
    for (track_flow *flow = job; flow; flow = flow->parent)
        if (--flow->waiting == 0 && flow->parent)
            track_heap_take(&flow->parent->ready, &flow->node);
    for (track_flow *flow = job, *parent; (parent = flow->parent); flow = parent)
        rest(flow);
    forget_idle(user);
    forget_idle(root);
}

/* ---- serving ---- */

/* Goes down from the root to a job, at each level to the child with the least start tag, which becomes the
 * virtual time of that level. The counts change on the way down. forget_idle may not drop `child`: it is at
 * work now. */
track_waiter *track_flow_serve(track_flow *root, track_flow **job)
{
    track_flow *flow = root;

    if (!root->waiting)
        return NULL;
    root->waiting--;
    root->at_work++;
    while (flow->ready.n) {
        track_flow *child = TRACK_OWNER(track_heap_least(&flow->ready), track_flow, node);
        double start = child->node.key;

        if (start > flow->virtual_time)
            flow->virtual_time = start;
        child->finish = start;
        child->at_work++;
        child->grants++;
        if (--child->waiting == 0)
            track_heap_take(&flow->ready, &child->node);
        forget_idle(flow);
        flow = child;
    }
    track_waiter *waiter = flow->first;
    unlink_waiter(flow, waiter);
    *job = flow;
    return waiter;
}

/* How many requests of the flow get a start tag below `tag`: each lease moves the flow's tag by ms / weight.
 */
static int64_t served_before(const track_flow *flow, double tag, double ms)
{
    double n = (tag - start_tag(flow)) * flow->weight / ms;

    if (n <= 0 || n >= (double)flow->waiting)
        return n <= 0 ? 0 : flow->waiting;
    return (int64_t)n + ((double)(int64_t)n < n);
}

/* The requests of the same job that came earlier; then what those put before them at the level of the user's
 * jobs, and the users' level after that.
 *
 * Example: users of weight 1 with three requests each, all tags 0, leases of 6 s, the third request of the
 * first user: two of its own come before it, its tag will be 0 + 2 * 6 = 12, and of the other user those with
 * tags 0 and 6 are served before that: 4 in all. */
int64_t track_flow_ahead(const track_flow *job, const track_waiter *waiter, double ms)
{
    int64_t ahead = 0;

    for (const track_waiter *e = waiter->earlier; e; e = e->earlier)
        ahead++;
    for (const track_flow *flow = job; flow->parent; flow = flow->parent) {
        double tag = start_tag(flow) + (double)ahead * ms / flow->weight;

        for (const track_entry *e = flow->parent->children.first; e; e = e->later) {
            const track_flow *other = TRACK_OWNER(e, track_flow, entry);

            if (other != flow && other->waiting)
                ahead += served_before(other, tag, ms);
        }
    }
    return ahead;
}

void track_flow_charge(track_flow *job, double ms)
{
    for (track_flow *flow = job; flow->parent; flow = flow->parent) {
        flow->finish += ms / flow->weight;
        flow->used_ms += ms;
        if (flow->waiting)
            track_heap_move(&flow->parent->ready, &flow->node, start_tag(flow));
        else if (flow->is_idle)
            track_heap_move(&flow->parent->idle, &flow->node, flow->finish);
    }
}

/* For what is charged from now on; tags that exist are kept. */
void track_flow_set_weight(track_flow *flow, double weight)
{
    flow->weight = weight;
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
