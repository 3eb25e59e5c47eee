/* tools/tune_live.c -- the progress of `tec tune`: a block of lines on a terminal, or a line for each batch.
 *
 * A frame is one write, so that no other message comes into the middle of it. Its lines are shorter than the
 * terminal is wide: none wraps, and the next frame finds the first one by going up as many lines as there
 * are. Where the terminal has become narrower since, the old lines may have wrapped, and a new block begins
 * below.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tec/runtime.h"
#include "tools/tune_show.h"

enum { LEAST_COLUMNS = 40, LEAST_ROWS = 5, MOST_NAME = 56 };

/* ---- what is left ---- */

static const char *clock_text(double seconds, char *buffer, size_t size)
{
    int64_t s = (int64_t)(seconds + 0.5);

    if (s < 3600)
        snprintf(buffer, size, "%" PRId64 ":%02" PRId64, s / 60, s % 60);
    else
        snprintf(buffer, size, "%" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60, s % 60);
    return buffer;
}

/* What is left of the limits at the speed of this session's measuring; "" where that is not known. */
static const char *time_left(const tool_tune_show *show, char *buffer, size_t size)
{
    int64_t measured = tune_session_measured(show->session);
    double took = tec_clock() - show->measuring, left = INFINITY;
    char text[32];

    if (show->seconds > 0)
        left = fmax(0, show->seconds - tune_session_seconds(show->session));
    if (show->trials > 0 && measured > 1 && took > 0)
        left =
            fmin(left, (double)(show->trials - tune_session_trials(show->session)) * took / (double)measured);
    if (!isfinite(left))
        return "";
    snprintf(buffer, size, ", %s left", clock_text(left, text, sizeof text));
    return buffer;
}

/* ---- a block on a terminal ---- */

typedef struct {
    int rows, columns;
} extent;

static bool terminal_extent(extent *out)
{
    struct winsize w;

    *out = (extent){0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0)
        *out = (extent){w.ws_row, w.ws_col};
    return out->rows >= LEAST_ROWS && out->columns >= LEAST_COLUMNS;
}

bool tool_tune_is_live(bool json)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && !(json && isatty(STDOUT_FILENO)) && term && *term &&
           strcmp(term, "dumb") != 0;
}

void tool_tune_leave(tool_tune_show *show)
{
    show->lines = 0;
}

/* A line that fits, and nothing behind it. */
static void add_line(tec_context *cx, base_text *frame, const char *text, int columns)
{
    base_addf(cx, frame, "%.*s\033[K\n", columns - 1, text);
}

/* Columns that a narrow terminal has no room for are left out, from the least important one. */
static void add_row(tec_context *cx, base_text *frame, const char *name, const char *const cell[5],
                    int columns)
{
    static const struct {
        int width, least; /* of the terminal */
    } column[5] = {{7, 0}, {7, 72}, {10, 60}, {10, 0}, {8, 0}};
    base_text line = {0};
    int rest = columns - 1;

    for (int i = 0; i < BASE_COUNT(column); i++)
        rest -= columns >= column[i].least ? column[i].width : 0;
    base_add(cx, &line, tool_tune_name(cx, name, rest < MOST_NAME ? rest : MOST_NAME));
    for (int i = 0; i < BASE_COUNT(column); i++)
        if (columns >= column[i].least)
            base_addf(cx, &line, "%*s", column[i].width, cell[i]);
    base_addf(cx, frame, "%s\033[K\n", base_text_str(cx, &line));
}

/* One row: trials, failures, speed now and at best, the gain. */
static void add_task(tec_context *cx, base_text *frame, const tool_tune_show *show, int index, int columns)
{
    const tune_state *t = tune_session_task(show->session, index);
    bool current = index == tune_session_current(show->session);
    char text[5][32];
    const char *cell[5] = {text[0], text[1], tool_tune_speed(t->task, t->now, text[2], 32),
                           tool_tune_speed(t->task, t->best, text[3], 32), text[4]};

    snprintf(text[0], 32, "%" PRId64, t->trials);
    snprintf(text[1], 32, "%" PRId64, t->failed);
    snprintf(text[4], 32, "%.2fx", tool_tune_ratio(t->first, t->best));
    if (t->failure)
        cell[4] = "fails";
    add_row(cx, frame, base_format(cx, "%c %s", current ? '*' : ' ', t->task->name), cell, columns);
}

/* The last line: how far tuning is, and what it is estimated to have gained: the sum of the
 * kernels, since the whole is measured at the end only. */
static void add_total(tec_context *cx, base_text *frame, const tool_tune_show *show, int columns)
{
    char left[64], took[32], wanted[32] = "";
    int64_t done = tune_session_trials(show->session), before = done - tune_session_measured(show->session);
    base_text line = {0};

    if (show->trials)
        snprintf(wanted, sizeof wanted, " of %" PRId64, show->trials);
    base_addf(cx, &line, "%" PRId64 "%s trials in %s", done, wanted,
              clock_text(tune_session_seconds(show->session), took, sizeof took));
    if (show->adopting)
        base_addf(cx, &line, "; comparing the fastest with what is used: kernel %d of %d",
                  tune_session_current(show->session) + 1, show->n_tasks);
    else
        base_addf(cx, &line, "%s, estimated %.2fx", time_left(show, left, sizeof left),
                  tool_tune_ratio(tune_session_total(show->session, true),
                                  tune_session_total(show->session, false)));
    if (before)
        base_addf(cx, &line, " (%" PRId64 " known before)", before);
    add_line(cx, frame, base_text_str(cx, &line), columns);
}

/* A line for each device of a pool: its name, what it has measured, and what it does. */
static int add_devices(tec_context *cx, base_text *frame, const tool_tune_show *show, int columns, int room)
{
    const tune_device *device;
    int n = tool_tune_devices(show, cx, &device), shown = n > room ? room : n;

    for (int i = 0; i < shown; i++)
        add_line(cx, frame,
                 base_format(cx, "  %s %6" PRId64 "  %s",
                             tool_tune_name(cx, *device[i].name ? device[i].name : "(no device)", 24),
                             device[i].trials, tool_tune_name(cx, device[i].state, MOST_NAME)),
                 columns);
    return shown > 0 ? shown : 0;
}

/* The kernels that there is room for: those that were shown, unless the one at work is not among them. */
static int scroll(tool_tune_show *show, int rows)
{
    enum { OTHERS = 3 }; /* the heading, the total, the cursor */
    int room = rows - OTHERS, current = tune_session_current(show->session);

    if (room >= show->n_tasks) {
        show->top = 0;
        return show->n_tasks;
    }
    if (current < show->top)
        show->top = current;
    if (current >= show->top + room)
        show->top = current - room + 1;
    if (show->top > show->n_tasks - room)
        show->top = show->n_tasks - room;
    return room;
}

/* One frame, over the last one. */
static void draw(tool_tune_show *show, extent self)
{
    static const char *const heading[] = {"trials", "failed", "GF/s now", "best", "gain"};
    tec_context *cx = base_child(show->cx);
    base_text frame = {0};
    int n = scroll(show, self.rows);

    if (self.columns < show->columns)
        show->lines = 0;
    if (show->lines)
        base_addf(cx, &frame, "\033[%dA", show->lines);
    base_add(cx, &frame, "\r");
    add_row(cx, &frame,
            n == show->n_tasks
                ? "  kernel"
                : base_format(cx, "  kernel %d-%d of %d", show->top + 1, show->top + n, show->n_tasks),
            heading, self.columns);
    for (int i = show->top; i < show->top + n; i++)
        add_task(cx, &frame, show, i, self.columns);
    int devices = add_devices(cx, &frame, show, self.columns, self.rows - n - 3);
    add_total(cx, &frame, show, self.columns);
    base_add(cx, &frame, "\033[J");
    fwrite(frame.data, 1, frame.n, stderr);
    show->lines = n + devices + 2;
    show->columns = self.columns;
    show->drawn = tec_clock();
    tec_context_free(cx);
}

/* ---- lines ---- */

/* ", 3 devices"; "" where this machine measures. */
static const char *count_devices(const tool_tune_show *show, tec_context *cx)
{
    const tune_device *d;
    int n = tool_tune_devices(show, cx, &d), at_work = 0;

    for (int i = 0; i < n; i++)
        at_work += *d[i].name != '\0';
    return n ? base_format(cx, ", %d device%s", at_work, at_work == 1 ? "" : "s") : "";
}

static void print_batch(const tool_tune_show *show)
{
    const tune_state *t = tune_session_task(show->session, tune_session_current(show->session));
    char now[32], best[32], left[64];
    tec_context *cx = base_child(show->cx);

    fprintf(stderr, "%s %5" PRId64 " trials, %3" PRId64 " failed  now %8s  best %8s%s  gain %5.2fx%s%s\n",
            tool_tune_name(cx, t->task->name, 64), t->trials, t->failed,
            tool_tune_speed(t->task, t->now, now, sizeof now),
            tool_tune_speed(t->task, t->best, best, sizeof best), t->task->flops > 0 ? " GFLOP/s" : "",
            tool_tune_ratio(t->first, t->best), time_left(show, left, sizeof left), count_devices(show, cx));
    tec_context_free(cx);
}

/* Drawn ten times a second at most; the clock of the estimate starts with the first measured trial. */
void tool_tune_progress(tool_tune_show *show)
{
    const double between = 0.1;
    extent e;

    if (tune_session_measured(show->session) <= 1)
        show->measuring = tec_clock();
    if (show->live && tec_clock() - show->drawn >= between && terminal_extent(&e))
        draw(show, e);
}

/* After each batch: a frame on a terminal, otherwise a line. */
void tool_tune_batch(tool_tune_show *show)
{
    int64_t trials = tune_session_trials(show->session);
    extent e;

    if (trials == show->shown && !show->adopting)
        return;
    show->shown = trials;
    if (show->json && !show->adopting)
        tool_tune_batch_json(show);
    if (show->live && terminal_extent(&e))
        draw(show, e);
    else if (!show->adopting)
        print_batch(show);
}
