/* jobs/prompt.h -- a measurer that lets its caller go at once when a flag is raised.
 *
 *     tune_measurer *p = job_prompt(cx, m, &cancel);
 *     int got = p->collect(p, cx, NULL, results, n, 1.0); // 0 soon after `cancel` is raised
 *     p->close(p);                // where the flag is up, `m` is cancelled; `m` stays open
 *
 * A thread of its own waits for `m`, and the caller waits for that thread, looking at the flag every 20 ms.
 * Lifetime: until it is closed; `m` must stay until then. Errors: as those of `m`. A flag that is raised is
 * no error: `collect` gives 0 with nothing in the context. A wait ends with a result or by the flag, however
 * short it was meant. Threads: one caller; the flag may be raised by any.
 */
#ifndef JOBS_PROMPT_H
#define JOBS_PROMPT_H

#include <stdatomic.h>

#include "autotune/measure.h"

/* NULL with an error: no thread can be started. */
tune_measurer *job_prompt(tec_context *cx, tune_measurer *measurer, const atomic_bool *cancel);

#endif
