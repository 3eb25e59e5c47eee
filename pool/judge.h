/* pool/judge.h -- inside the room: whether a device is as fast as the others of its class.
 *
 *     pool_judge_note(j, "a/cpu:0", seconds);
 *     if (!pool_judge_accepts(j, "a/cpu:0", why, sizeof why)) ... set aside, because `why` ...
 *
 * Threads: any, one at a time: the caller has a lock.
 */
#ifndef POOL_JUDGE_H
#define POOL_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

enum { POOL_JUDGED = 256, POOL_DEVICE_NAME = 160 };

typedef struct {
    char name[POOL_DEVICE_NAME];
    double first, last; /* seconds of the calibration kernel, when the device was new and now */
    bool aside;
} pool_judged;

typedef struct {
    double tolerance;
    pool_judged device[POOL_JUDGED];
    int n;
} pool_judge;

/* The device's calibration kernel took so long. */
void pool_judge_note(pool_judge *judge, const char *name, double seconds);
/* False: it is outlying, with the reason; it no longer counts for the others. */
bool pool_judge_accepts(pool_judge *judge, const char *name, char *why, size_t size);
/* Whether the device was found to be outlying before. */
bool pool_judge_has_set_aside(const pool_judge *judge, const char *name);

/* Whether the costs of one candidate scatter so much that the device is to be looked at. */
bool pool_are_outlying(const double *costs, int count);

#endif
