/* tracker/inside.h -- inside the room: the pool as its files share it. */
#ifndef TRACKER_INSIDE_H
#define TRACKER_INSIDE_H

#include "tracker/pool.h"

struct track_pool {
    track_options o;
    track_table servers, devices, classes, leases, weights;
    track_heap silences, deadlines;
    int64_t now, next_lease;
};

/* Time as the pool sees it: it never goes back. */
static inline int64_t track_time(track_pool *pool, int64_t now)
{
    pool->now = now > pool->now ? now : pool->now;
    return pool->now;
}

/* pool.c */
track_class *track_class_of(track_pool *pool, const char *name, const char *fingerprint, tec_error *err);
track_device *track_placeholder(track_pool *pool, const char *device, const char *class, tec_error *err);
/* Puts the device where its status belongs, and gives it away if it is free and wanted. */
void track_settle(track_pool *pool, track_device *device);
double track_weight_of(const track_pool *pool, const char *user);
bool track_check_name(const char *what, const char *name, tec_error *err);
/* lease.c: gives free devices to those who wait. */
void track_match(track_pool *pool, track_class *kind);

#endif
