/* tools/tune_show.h -- what `tec tune` shows: progress, the table at the end, curves as SVG.
 *
 *     tune_show show = tool_tune_show(session, n_tasks, json);
 *     tool_tune_progress(&show);      // after each result
 *     tool_tune_batch(&show);         // after each batch
 *     tool_tune_table(&show);
 */
#ifndef TOOLS_TUNE_SHOW_H
#define TOOLS_TUNE_SHOW_H

#include "autotune/session.h"

typedef struct {
    tec_context *cx;
    const tune_session *session;
    int n_tasks;
    int64_t trials; /* wanted; 0: no limit */
    double seconds; /* wanted; 0: no limit */
    bool json, live; /* live: standard error is a terminal, and each task has a line on it that changes */
    int lines;       /* that are on the terminal */
    int64_t shown;   /* trials when a batch was last shown */
    double started, last; /* this session's first trial and the last update, by the clock */
    int64_t trials_before;
} tool_tune_show;

void tool_tune_progress(tool_tune_show *s);
void tool_tune_batch(tool_tune_show *s);
void tool_tune_table(tool_tune_show *s);
/* False with an error in the context. */
bool tool_tune_plot(tool_tune_show *s, const char *path);

#endif
