/* tools/tune_show.c -- see tune_show.h. Results go to standard output, progress to standard error. */
#include "tools/tune_show.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/data.h"

/* ---- numbers ---- */

/* GFLOP/s, or the time where a kernel has no arithmetic; "-": not measured. */
static const char *speed(const tune_task *t, double seconds, char *buffer, size_t size)
{
    if (!(seconds > 0) || !isfinite(seconds))
        return "-";
    if (t->flops <= 0)
        return tool_seconds(seconds, buffer, size);
    snprintf(buffer, size, "%.1f", t->flops / seconds * 1e-9);
    return buffer;
}

static const char *duration(double seconds, char *buffer, size_t size)
{
    return seconds > 0 && isfinite(seconds) ? tool_seconds(seconds, buffer, size) : "-";
}

/* 1 where one of them is unknown. */
static double ratio(double before, double after)
{
    return after > 0 && before > 0 && isfinite(before) && isfinite(after) ? before / after : 1;
}

/* What is left of the limits at the speed of this session; "" where there is none. */
static const char *time_left(const tool_tune_show *s, char *buffer, size_t size)
{
    int64_t done = tune_session_trials(s->session);
    double rate = (double)(done - s->trials_before) / fmax(tec_clock() - s->started, 1e-3), left = INFINITY;

    if (s->seconds > 0)
        left = fmax(0, s->seconds - tune_session_seconds(s->session));
    if (s->trials > 0 && rate > 0)
        left = fmin(left, (double)(s->trials - done) / rate);
    if (!isfinite(left))
        return "";
    snprintf(buffer, size, ", %d:%02d left", (int)left / 60, (int)left % 60);
    return buffer;
}

/* ---- progress ---- */

static void print_task(const tool_tune_show *s, int i)
{
    const tune_state *t = tune_session_task(s->session, i);
    char now[32], best[32];

    fprintf(stderr, "%c %-40.40s %5" PRId64 " trials, %3" PRId64 " failed  now %8s  best %8s%s  gain %5.2fx", i == tune_session_current(s->session) ? '*' : ' ',
            t->task->name, t->trials, t->failed, speed(t->task, t->now, now, sizeof now), speed(t->task, t->best, best, sizeof best),
            t->task->flops > 0 ? " GFLOP/s" : "", ratio(t->first, t->best));
}

static void draw(tool_tune_show *s)
{
    char left[32];

    if (s->lines)
        fprintf(stderr, "\033[%dA", s->lines);
    for (int i = 0; i < s->n_tasks; i++) {
        print_task(s, i);
        fprintf(stderr, "\033[K\n");
    }
    fprintf(stderr, "%" PRId64 " trials in %.0f s, end to end %.2fx%s\033[K\n", tune_session_trials(s->session), tune_session_seconds(s->session),
            ratio(tune_session_total(s->session, true), tune_session_total(s->session, false)), time_left(s, left, sizeof left));
    s->lines = s->n_tasks + 1;
    s->last = tec_clock();
}

static bool fits(const tool_tune_show *s)
{
    struct winsize w;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > s->n_tasks + 1 && w.ws_col >= 110;
}

void tool_tune_progress(tool_tune_show *s)
{
    const double between = 0.1;

    if (s->live && tec_clock() - s->last >= between && fits(s))
        draw(s);
}

static void print_json(cJSON *j)
{
    char *text = cJSON_PrintUnformatted(j);

    printf("%s\n", text ? text : "");
    fflush(stdout);
    free(text);
    cJSON_Delete(j);
}

static void add_ms(cJSON *j, const char *name, double seconds)
{
    if (seconds > 0 && isfinite(seconds))
        cJSON_AddNumberToObject(j, name, seconds * 1e3);
}

static void batch_json(const tool_tune_show *s, const tune_state *t)
{
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "event", "batch");
    cJSON_AddStringToObject(j, "task", t->task->name);
    cJSON_AddNumberToObject(j, "trials", (double)t->trials);
    cJSON_AddNumberToObject(j, "failed", (double)t->failed);
    add_ms(j, "first_ms", t->first);
    add_ms(j, "now_ms", t->now);
    add_ms(j, "best_ms", t->best);
    cJSON_AddNumberToObject(j, "all_trials", (double)tune_session_trials(s->session));
    cJSON_AddNumberToObject(j, "seconds", tune_session_seconds(s->session));
    print_json(j);
}

void tool_tune_batch(tool_tune_show *s)
{
    int64_t trials = tune_session_trials(s->session);
    char left[32];

    if (trials == s->shown)
        return;
    s->shown = trials;
    if (s->json)
        batch_json(s, tune_session_task(s->session, tune_session_current(s->session)));
    if (s->live && fits(s)) {
        draw(s);
        return;
    }
    print_task(s, tune_session_current(s->session));
    fprintf(stderr, "%s\n", time_left(s, left, sizeof left));
}

/* ---- the end ---- */

static void task_json(const tune_state *t)
{
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "event", "task");
    cJSON_AddStringToObject(j, "task", t->task->name);
    cJSON_AddStringToObject(j, "summary", t->task->task->summary);
    cJSON_AddNumberToObject(j, "uses", t->task->weight);
    cJSON_AddNumberToObject(j, "trials", (double)t->trials);
    cJSON_AddNumberToObject(j, "failed", (double)t->failed);
    cJSON_AddNumberToObject(j, "wrong", (double)t->wrong);
    cJSON_AddNumberToObject(j, "reused", (double)t->reused);
    add_ms(j, "before_ms", t->before);
    add_ms(j, "after_ms", t->after);
    cJSON_AddBoolToObject(j, "adopted", t->adopted);
    if (t->failure)
        cJSON_AddStringToObject(j, "failure", t->failure);
    print_json(j);
}

static void total_json(const tool_tune_show *s, double before, double after)
{
    tune_times times = tune_session_times(s->session);
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "event", "total");
    cJSON_AddNumberToObject(j, "trials", (double)tune_session_trials(s->session));
    cJSON_AddNumberToObject(j, "measured", (double)tune_session_measured(s->session));
    cJSON_AddNumberToObject(j, "seconds", tune_session_seconds(s->session));
    add_ms(j, "before_ms", before);
    add_ms(j, "after_ms", after);
    cJSON_AddNumberToObject(j, "propose_seconds", times.propose);
    cJSON_AddNumberToObject(j, "learn_seconds", times.learn);
    cJSON_AddNumberToObject(j, "wait_seconds", times.wait);
    cJSON_AddNumberToObject(j, "store_seconds", times.store);
    print_json(j);
}

static void print_row(const tune_state *t)
{
    char before[32], after[32], rate[32];
    const char *what = t->failure ? t->failure : t->trials == 0 ? "not reached" : t->adopted ? "adopted" : "as before";

    printf("%-40.40s %5.0f %7" PRId64 " %6" PRId64 " %12s %12s %7.2fx %9s  %s\n", t->task->name, t->task->weight, t->trials, t->failed,
           duration(t->before, before, sizeof before), duration(t->after, after, sizeof after), ratio(t->before, t->after),
           t->task->flops > 0 ? speed(t->task, t->after, rate, sizeof rate) : "-", what);
}

void tool_tune_table(tool_tune_show *s)
{
    double before = 0, after = 0;
    int unknown = 0;
    char b[32], a[32];

    if (!s->json)
        printf("%-40s %5s %7s %6s %12s %12s %8s %9s\n", "kernel", "uses", "trials", "failed", "before", "after", "gain", "GFLOP/s");
    for (int i = 0; i < s->n_tasks; i++) {
        const tune_state *t = tune_session_task(s->session, i);

        if (s->json)
            task_json(t);
        else
            print_row(t);
        before += isfinite(t->before) ? t->task->weight * t->before : 0;
        after += isfinite(t->after) ? t->task->weight * t->after : 0;
        unknown += !(t->after > 0 && isfinite(t->after));
    }
    if (s->json)
        total_json(s, before, after);
    else
        printf("%-40s %5s %7" PRId64 " %6s %12s %12s %7.2fx%s\n", "end to end", "", tune_session_trials(s->session), "", duration(before, b, sizeof b),
               duration(after, a, sizeof a), ratio(before, after), unknown ? base_format(s->cx, "  without %d kernels that have no time", unknown) : "");
}

/* ---- curves ---- */

enum { WIDTH = 640, HEIGHT = 360, LEFT = 70, TOP = 20, BELOW = 45 };

static double place_x(int64_t trial, int64_t trials)
{
    return LEFT + (double)WIDTH * (double)trial / (double)(trials > 1 ? trials : 1);
}

/* Throughput as a share of the default schedule's. */
static double gain_at(const tune_state *t, int64_t i)
{
    return isfinite(t->curve[i]) && isfinite(t->first) && t->first > 0 ? t->first / (double)t->curve[i] : 0;
}

static void add_grid(tec_context *cx, base_text *svg, int64_t trials, double most)
{
    enum { LINES = 4 };

    for (int i = 0; i <= LINES; i++) {
        double y = TOP + HEIGHT - (double)HEIGHT * i / LINES;

        base_addf(cx, svg, "<path d='M%d %.1fh%d' stroke='#ddd'/><text x='%d' y='%.1f' text-anchor='end'>%.2fx</text>\n", LEFT, y, WIDTH, LEFT - 6,
                  y + 4, most * i / LINES);
        base_addf(cx, svg, "<text x='%.1f' y='%d' text-anchor='middle'>%" PRId64 "</text>\n", place_x(trials * i / LINES, trials), TOP + HEIGHT + 18,
                  trials * i / LINES);
    }
    base_addf(cx, svg, "<text x='%d' y='%d' text-anchor='middle'>trials</text>\n", LEFT + WIDTH / 2, TOP + HEIGHT + 36);
}

/* Names come from models: they may have any characters. */
static void add_escaped(tec_context *cx, base_text *svg, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : *text == '>' ? "&gt;" : NULL;

        if (entity)
            base_add(cx, svg, entity);
        else
            base_addn(cx, svg, text, 1);
    }
}

static void add_curve(tec_context *cx, base_text *svg, const tune_state *t, int i, int n, int64_t trials, double most)
{
    const char *color = base_format(cx, "hsl(%d,70%%,42%%)", 360 * i / n);
    bool open = false;

    base_addf(cx, svg, "<path fill='none' stroke='%s' stroke-width='1.5' d='", color);
    for (int64_t k = 0; k < t->trials; k++) {
        double gain = gain_at(t, k);

        if (gain > 0)
            base_addf(cx, svg, "%c%.1f %.1f", open ? 'L' : 'M', place_x(k + 1, trials), TOP + HEIGHT - HEIGHT * gain / most);
        open |= gain > 0;
    }
    base_addf(cx, svg, "'/>\n<text x='%d' y='%d' fill='%s'>", LEFT + WIDTH + 10, TOP + 14 + 15 * i, color);
    add_escaped(cx, svg, t->task->name);
    base_add(cx, svg, "</text>\n");
}

bool tool_tune_plot(tool_tune_show *s, const char *path)
{
    int64_t trials = 1;
    double most = 1;
    base_text svg = {0};

    for (int i = 0; i < s->n_tasks; i++) {
        const tune_state *t = tune_session_task(s->session, i);

        trials = t->trials > trials ? t->trials : trials;
        most = t->trials ? fmax(most, gain_at(t, t->trials - 1)) : most;
    }
    int height = TOP + HEIGHT + BELOW, legend = TOP + 20 + 15 * s->n_tasks;
    base_addf(s->cx, &svg, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' font-size='12'>\n"
                           "<rect width='100%%' height='100%%' fill='white'/>\n",
              LEFT + WIDTH + 330, legend > height ? legend : height);
    add_grid(s->cx, &svg, trials, most);
    for (int i = 0; i < s->n_tasks; i++)
        add_curve(s->cx, &svg, tune_session_task(s->session, i), i, s->n_tasks, trials, most);
    base_add(s->cx, &svg, "</svg>\n");
    return base_write_file(s->cx, path, svg.data, svg.n);
}
