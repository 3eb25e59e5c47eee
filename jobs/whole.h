/* jobs/whole.h -- inside the room: a model with the schedules that stood before a job, and with those that
 * the job has adopted, run in turns.
 *
 *     job_whole w;
 *     if (job_compare_whole(cx, &spec->from, db, session, &tasks, after, &w) && !w.wins)
 *         tune_take_back(session);
 */
#ifndef JOBS_WHOLE_H
#define JOBS_WHOLE_H

#include "jobs/job.h"

/* after[i]: what kernel i with versions gets; NULL: nothing new. False with an error in the context: one of
 * the two could not be built, or run. */
bool job_compare_whole(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                       const job_tasks *tasks, const space_ranges *const *after, job_whole *out);

#endif
