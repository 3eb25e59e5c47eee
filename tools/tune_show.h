/* tools/tune_show.h -- what `tec tune` shows: progress, the table at the end and where the time went, curves
 * as SVG.
 *
 *     tool_tune_show show = {.cx = cx, .session = s, .n_tasks = n, .live = tool_tune_is_live(json)};
 *     tool_tune_progress(&show);      // after each result
 *     tool_tune_batch(&show);         // after each batch
 *     tool_tune_table(&show);
 *
 * Progress goes to standard error: on a terminal a block of lines that is drawn again and again, one for each
 * kernel; elsewhere, or where a terminal is too small for that, a line for each batch. Results go to standard
 * output.
 */
#ifndef TOOLS_TUNE_SHOW_H
#define TOOLS_TUNE_SHOW_H

#include "jobs/job.h"

typedef struct {
    tec_context *cx;
    const tune_session *session;
    tune_measurer *measurer; /* NULL: nothing is measured */
    int n_tasks;
    int64_t trials; /* wanted; 0: no limit */
    double seconds; /* wanted; 0: no limit */
    bool json, live;
    bool adopting; /* the search is over, and the fastest are compared */
    int64_t shown; /* trials when a batch was last shown */
    /* of the block on the terminal: its lines, the width that it was drawn for, its first kernel */
    int lines, columns, top;
    double drawn;     /* when, by the clock */
    job_whole whole;  /* the model before and after; pairs 0: not measured */
    double measuring; /* since when this session measures, by the clock; 0: not yet */
} tool_tune_show;

/* Whether standard error is a terminal that can be drawn on, and results do not go there line by line. */
bool tool_tune_is_live(bool json);
/* The terminal's cursor is below the block from now on: something else was printed. */
void tool_tune_leave(tool_tune_show *show);
void tool_tune_progress(tool_tune_show *show);
void tool_tune_batch(tool_tune_show *show);
void tool_tune_table(tool_tune_show *show);
/* False with an error in the context. */
bool tool_tune_plot(tool_tune_show *show, const char *path);

/* ---- what the files of it share ---- */

/* Of a kernel in GFLOP/s, or its time where it has no arithmetic; "-": not measured. */
const char *tool_tune_speed(const tune_task *task, double seconds, char *buffer, size_t size);
/* before / after; 1 where one of them is unknown. */
double tool_tune_ratio(double before, double after);
/* The name in exactly so many columns, a long one without its middle; what a terminal would take for a
 * command is '?'. In the context. */
const char *tool_tune_name(tec_context *cx, const char *name, int columns);
void tool_tune_batch_json(const tool_tune_show *show);
/* Those of a pool, in cx; their number. 0: this machine measures, or nothing is measured. */
int tool_tune_devices(const tool_tune_show *show, tec_context *cx, const tune_device **out);

/* One kernel: key, uses, name; or a line of JSON. */
void tool_tune_kernel(tec_context *cx, const tune_task *task, const target *machine, bool json);

#endif
