/* jobs/whole.h -- inside the room: a model with the schedules that stood before a job, and with those that
 * the job has adopted, run in turns.
 *
 *     job_choose_kernels(cx, &spec->from, db, session, &tasks, after, spec->seconds / 10, &changed);
 *     if (changed)
 *         job_time_kernels(cx, &spec->from, db, session, &tasks, after);
 *     job_whole w;
 *     if (job_compare_whole(cx, &spec->from, db, session, &tasks, after, &w) && !w.wins)
 *         tune_take_back(session);
 */
#ifndef JOBS_WHOLE_H
#define JOBS_WHOLE_H

#include "jobs/job.h"

/* Times each kernel in the model, with what stood and with each of its candidates, and tells the session the
 * times with the first candidates. Of each kernel the fastest one there is adopted, or else what stood;
 * *changed: how many kernels got another schedule by that. The first candidates are always tried, the further
 * ones within so many seconds (0: no limit). False with an error in the context. */
bool job_choose_kernels(tec_context *cx, const job_source *from, store *db, tune_session *session,
                        const job_tasks *tasks, const space_ranges *const *after, double budget,
                        int *changed);

/* Times each kernel in the model, with what stood and with what stands, and tells the session the times. A
 * kernel that is slower there gets back what stood, and all are timed again, at most twice. */
bool job_time_kernels(tec_context *cx, const job_source *from, store *db, tune_session *session,
                      const job_tasks *tasks, const space_ranges *const *after);

/* after[i]: what kernel i with versions gets; NULL: nothing new. False with an error in the context: one of
 * the two could not be built, or run. */
bool job_compare_whole(tec_context *cx, const job_source *from, store *db, const tune_session *session,
                       const job_tasks *tasks, const space_ranges *const *after, job_whole *out);

#endif
