/* tracker/fair.h -- who is served next: start-time fair queueing among users, and among the jobs of each.
 *
 * Source: P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing: A Scheduling Algorithm for Integrated
 * Services Packet Switching Networks", SIGCOMM 1996; as a tree of queues in P. Goyal, X. Guo, H. M. Vin,
 * "A Hierarchical CPU Scheduler for Multimedia Operating Systems", OSDI 1996.
 *
 * A flow is a user, or a job of a user. The packet of the paper is a lease here, and its length is the time
 * for which the lease holds a device. Each flow has a weight w. A level of the tree has a virtual time v.
 *
 *     a flow that begins to wait gets the start tag    S = max(v, F)
 *     the flow with the least start tag is served:     v = S,  F = S + length / w,  and S = F if it still
 * waits
 *
 * So flows that always wait get device time in proportion to their weights, and a flow that was away gets no
 * credit for it: F lags behind v, and S begins at v. Every weight is positive, so every start tag is reached:
 * nobody starves.
 *
 * How long a lease will last is not known when it is given. The caller charges a guess then, and the
 * difference later (track_flow_charge with a positive or negative length), which moves F and with it the
 * place of the flow among those that wait.
 *
 * Example: user `ann` of weight 2, user `bob` of weight 1, one device, leases of 6 s. Both begin to wait at
 * v = 0.
 *
 *     served   v   F of ann       F of bob       (first come first where tags are equal)
 *     ann      0   0 + 6/2 = 3    0
 *     bob      0   3              0 + 6/1 = 6
 *     ann      3   3 + 3 = 6      6
 *     bob      6   6              12             (bob reached the tag 6 before ann)
 *     ann      6   9              12
 *     ann      9   12             12             four for ann, two for bob, and so on
 *
 * Operations cost O(log n) in the number of flows of a level. A flow without work is forgotten as soon as its
 * F is no more than v, since it would begin at v anyway.
 * Lifetime: a flow belongs to its parent; flows come and go by themselves. Errors: false or NULL without
 * memory. Threads: one at a time.
 */
#ifndef TRACKER_FAIR_H
#define TRACKER_FAIR_H

#include "tracker/heap.h"
#include "tracker/table.h"

typedef struct track_waiter {
    struct track_waiter *earlier, *later; /* of the same job */
} track_waiter;

typedef struct track_flow {
    struct track_flow *parent;
    track_entry entry; /* among the parent's children */
    track_node node;   /* in the parent's heap `ready` or `idle` */
    double weight;
    double finish;       /* F */
    double floor;        /* v of the parent when the flow last began to wait */
    double virtual_time; /* of the children */
    int64_t waiting;     /* requests below */
    int64_t at_work;     /* leases below */
    bool is_idle;        /* in `idle`: nothing waits and nothing is at work */
    track_heap ready;    /* children with requests, by start tag */
    track_heap idle;     /* children without any work, by F */
    track_table children;
    track_waiter *first, *last; /* of a job */
    int64_t grants;
    double used_ms;
    double mean_ms; /* of the last leases; 0: there was none */
} track_flow;

/* The child of this name, made with the weight if it is not there; NULL: no memory. */
track_flow *track_flow_child(track_flow *parent, const char *name, double weight);
track_flow *track_flow_find(const track_flow *parent, const char *name);
void track_flow_set_weight(track_flow *flow, double weight);

bool track_flow_wait(track_flow *job, track_waiter *waiter);  /* false: no memory */
void track_flow_leave(track_flow *job, track_waiter *waiter); /* without being served */
/* The next to be served, and its job; NULL: nobody waits. The job has one lease more at work. */
track_waiter *track_flow_serve(track_flow *root, track_flow **job);
/* How many requests are likely served before waiter, if each lease lasts so long and nobody else comes. */
int64_t track_flow_ahead(const track_flow *job, const track_waiter *waiter, double ms);
void track_flow_charge(track_flow *job, double ms);
/* A lease of the job that was never waited for: after a restart. */
void track_flow_resume(track_flow *job);
/* A lease of the job is over; the job may be gone then. */
void track_flow_done(track_flow *job);
void track_flow_clear(track_flow *root); /* frees all below */

#endif
