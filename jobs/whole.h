/* jobs/whole.h -- inside the room: a model with the schedules that stood before a job, and with those that
 * the job has adopted, run in turns.
 *
 *     job_compare_kernels(cx, &spec->from, db, session, &tasks, after, false, &lost);
 *     job_whole w;
 *     if (job_compare_whole(cx, &spec->from, db, session, &tasks, after, &w) && !w.wins)
 *         tune_take_back(session);
 */
#ifndef JOBS_WHOLE_H
#define JOBS_WHOLE_H

#include "jobs/job.h"

/* Times each kernel in the model, before and after, and tells the session the times. Unless `is_last`, what
 * stood is adopted again for each kernel that is not faster there; *lost: how many. False with an error in
 * the context. */
bool job_compare_kernels(tec_context *cx, const job_source *from, store *db, tune_session *session,
                         const job_tasks *tasks, const space_ranges *const *after, bool is_last, int *lost);

/* after[i]: what kernel i with versions gets; NULL: nothing new. False with an error in the context: one of
 * the two could not be built, or run. */
bool job_compare_whole(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                       const job_tasks *tasks, const space_ranges *const *after, job_whole *out);

#endif
