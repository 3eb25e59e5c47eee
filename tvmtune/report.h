/* tvmtune/report.h -- inside the room: what a job has come to, from the store: for each kernel the time
 * before and after, how the best time fell with the trials, the schedule in use, and the errors by kind.
 *
 *     const char *json = tvm_report_json(cx, db, 7, NULL), *page = tvm_report_html(cx, db, 7, NULL);
 *
 * Both can be asked for at any time, also while the job runs. `whole` is for the report of a job that is
 * about to be done: what is known of its module end to end, as JSON (docs/api.md). NULL with an error in
 * the context.
 */
#ifndef TVMTUNE_REPORT_H
#define TVMTUNE_REPORT_H

#include "store/queue_tasks.h"

const char *tvm_report_json(tec_context *cx, store *db, int64_t job, const char *whole);
/* A page that needs nothing but itself: the curves are SVG inside of it, and it has no script. */
const char *tvm_report_html(tec_context *cx, store *db, int64_t job, const char *whole);

#endif
