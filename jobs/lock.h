/* jobs/lock.h -- one process at a time goes on with a job: two would measure everything twice.
 *
 *     job_lock lock;
 *     if (!job_lock_take(cx, &lock, "tune.db", name)) puts(tec_context_error(cx));
 *     job_lock_release(&lock);
 *
 * The lock is a file beside the record store. The kernel drops the lock when the process ends, however that
 * happens; the file that a killed process leaves behind is taken over by the next one.
 */
#ifndef JOBS_LOCK_H
#define JOBS_LOCK_H

#include "base/base.h"

typedef struct {
    const char *path; /* in the context */
    int fd;           /* -1: not held */
} job_lock;

/* False with an error in the context: another process has it, or the file cannot be made. */
bool job_lock_take(tec_context *cx, job_lock *lock, const char *records, const char *job);
void job_lock_release(job_lock *lock); /* one that is not held is legal */

#endif
