/* tools/tune_show.c -- the results of `tec tune`: the table of its kernels, where the time went, and both as
 * JSON. See tune_show.h. */
#include "tools/tune_show.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "jobs/job.h"
#include "tools/data.h"

/* ---- numbers and names ---- */

const char *tool_tune_speed(const tune_task *t, double seconds, char *buffer, size_t size)
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

double tool_tune_ratio(double before, double after)
{
    return after > 0 && before > 0 && isfinite(before) && isfinite(after) ? before / after : 1;
}

/* Behind the next `n` characters, each of which is taken for one column. */
static const char *skip(const char *p, int n)
{
    for (; n > 0 && *p; n--)
        do
            p++;
        while ((*p & 0xc0) == 0x80);
    return p;
}

static int count(const char *p)
{
    int n = 0;

    for (; *p; n++)
        p = skip(p, 1);
    return n;
}

const char *tool_tune_name(tec_context *cx, const char *name, int columns)
{
    int n = count(name), head = (columns - 2) / 2, tail = columns - 2 - head;
    char *text =
        n <= columns || columns < 4
            ? base_format(cx, "%s%*s", name, n < columns ? columns - n : 0, "")
            : base_format(cx, "%.*s..%s", (int)(skip(name, head) - name), name, skip(name, n - tail));

    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return text;
}

/* ---- JSON ---- */

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

int tool_tune_devices(const tool_tune_show *s, tec_context *cx, const tune_device **out)
{
    return s->measurer ? s->measurer->devices(s->measurer, cx, out) : 0;
}

/* What each device of a pool has measured and does; nothing where this machine measures. */
static void add_devices_json(cJSON *j, const tool_tune_show *s)
{
    tec_context *cx = base_child(s->cx);
    const tune_device *d;
    int n = tool_tune_devices(s, cx, &d);
    cJSON *all = n ? cJSON_AddArrayToObject(j, "devices") : NULL;

    for (int i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject();

        cJSON_AddStringToObject(one, "device", d[i].name);
        cJSON_AddStringToObject(one, "state", d[i].state);
        cJSON_AddNumberToObject(one, "trials", (double)d[i].trials);
        cJSON_AddItemToArray(all, one);
    }
    tec_context_free(cx);
}

/* One line of JSON for the batch that has ended. */
void tool_tune_batch_json(const tool_tune_show *s)
{
    const tune_state *t = tune_session_task(s->session, tune_session_current(s->session));
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
    add_devices_json(j, s);
    print_json(j);
}

/* ---- where the time went ---- */

enum { TIME_LINES = 16 };

/* What the breakdown says, as text and as JSON: seconds of the wall first, then of the processes that worked
 * meanwhile. */
typedef struct {
    const char *key, *label;
    double seconds;
} time_line;

/* Where the time went, as rows; those that are indented are parts of the row above. */
static int time_lines(const tool_tune_show *s, time_line out[TIME_LINES])
{
    tune_times t = tune_session_times(s->session);
    tune_measure_stats m = s->measurer->stats(s->measurer);
    double own = t.search + t.features + t.model + t.store;
    const time_line lines[] = {
        {"wall", "wall time", t.wall},
        {"wait", "  waiting for results", t.wait},
        {"compare", "  comparing the fastest", t.compare},
        {"own", "  the tuner itself", own},
        {"search", "    search", t.search},
        {"features", "    features", t.features},
        {"model", "    model", t.model},
        {"store", "    store", t.store},
        {"rest", "  reading records, starting", t.wall - t.wait - t.compare - own},
        {"build", "builders", m.build},
        {"schedule", "  schedules", m.schedule},
        {"compile", "  code", m.compile},
        {"link", "  linking", m.link},
        {"run", "runner", m.run},
        {"check", "  loading, first calls, checks", m.load + m.check},
        {"timed", "  measuring", m.timed},
    };

    memcpy(out, lines, sizeof lines);
    return BASE_COUNT(lines);
}

static cJSON *time_json(const tool_tune_show *s)
{
    time_line line[TIME_LINES];
    cJSON *j = cJSON_CreateObject();
    int n = time_lines(s, line);

    for (int i = 0; i < n; i++)
        cJSON_AddNumberToObject(j, line[i].key, line[i].seconds);
    cJSON_AddNumberToObject(j, "valid_per_second",
                            (double)s->measurer->stats(s->measurer).ok / line[0].seconds);
    return j;
}

/* Where the wall time went, with the number of measurements that it gave. */
static void print_times(const tool_tune_show *s)
{
    time_line line[TIME_LINES];
    int n = time_lines(s, line);
    tune_measure_stats m = s->measurer->stats(s->measurer);

    printf("\n%-32s %9s %7s\n", "where the time went", "seconds", "share");
    for (int i = 0; i < n; i++)
        printf("%-32s %9.2f %5.1f %%\n", line[i].label, line[i].seconds,
               100 * line[i].seconds / line[0].seconds);
    printf("%" PRId64 " of %" PRId64 " measurements valid, %.1f a second; replaced: %" PRId64
           " builders, %" PRId64 " runners",
           m.ok, m.candidates, (double)m.ok / line[0].seconds, m.builders_lost, m.runners_lost);
    if (m.repeated)
        printf("; measured again: %" PRId64, m.repeated);
    printf("\n");
}

/* A line for each device of a pool. */
static void print_devices(const tool_tune_show *s)
{
    const tune_device *d;
    int n = tool_tune_devices(s, s->cx, &d);

    if (n)
        printf("\n%-32s %6s  %s\n", "device", "trials", "state");
    for (int i = 0; i < n; i++)
        printf("%s %6" PRId64 "  %s\n", tool_tune_name(s->cx, *d[i].name ? d[i].name : "(none)", 32),
               d[i].trials, d[i].state);
}

/* ---- the end ---- */

/* For people a line with the key; for programs an object with all that identifies the kernel. */
void tool_tune_kernel(const tune_task *t, const char *fingerprint, bool json)
{
    char key[JOB_HASH_SIZE];
    cJSON *j;

    if (!json) {
        printf("%s  %4.0f x  %s\n", job_task_hash(t, key), t->weight, t->name);
        return;
    }
    j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "event", "kernel");
    cJSON_AddStringToObject(j, "key", job_task_hash(t, key));
    cJSON_AddStringToObject(j, "target", fingerprint);
    cJSON_AddStringToObject(j, "task", t->name);
    cJSON_AddStringToObject(j, "summary", t->task->summary);
    cJSON_AddNumberToObject(j, "uses", t->weight);
    cJSON_AddStringToObject(j, "codegen", tec_version());
    print_json(j);
}

/* One line of JSON for a kernel at the end. */
static void task_json(const tune_state *t)
{
    cJSON *j = cJSON_CreateObject();
    char key[JOB_HASH_SIZE];

    cJSON_AddStringToObject(j, "event", "task");
    cJSON_AddStringToObject(j, "key", job_task_hash(t->task, key));
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

/* The last line of JSON: the whole job. */
static void total_json(const tool_tune_show *s, job_times t)
{
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "event", "total");
    cJSON_AddNumberToObject(j, "trials", (double)tune_session_trials(s->session));
    cJSON_AddNumberToObject(j, "measured", (double)tune_session_measured(s->session));
    cJSON_AddNumberToObject(j, "seconds", tune_session_seconds(s->session));
    add_ms(j, "before_ms", t.before);
    add_ms(j, "after_ms", t.after);
    if (s->measurer)
        cJSON_AddItemToObject(j, "time", time_json(s));
    add_devices_json(j, s);
    print_json(j);
}

/* What the other columns leave of a terminal; 40 where that is enough, or there is none. */
static int name_columns(void)
{
    enum { OTHERS = 66, LEAST = 12, USUAL = 40 };
    struct winsize w;
    int left = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0
                   ? w.ws_col - OTHERS
                   : USUAL;

    return left < LEAST ? LEAST : left > USUAL ? USUAL : left;
}

static void print_row(tec_context *cx, const tune_state *t)
{
    char before[32], after[32], rate[32];
    const char *what = t->failure       ? t->failure
                       : t->trials == 0 ? "not reached"
                       : t->adopted     ? "adopted"
                                        : "as before";

    printf("%s%5.0f%7" PRId64 "%7" PRId64 "%10s%10s%6.2fx%8s  %s\n",
           tool_tune_name(cx, t->task->name, name_columns()), t->task->weight, t->trials, t->failed,
           duration(t->before, before, sizeof before), duration(t->after, after, sizeof after),
           tool_tune_ratio(t->before, t->after),
           t->task->flops > 0 ? tool_tune_speed(t->task, t->after, rate, sizeof rate) : "-", what);
}

static void print_total(const tool_tune_show *s, job_times t)
{
    char b[32], a[32];

    printf("%-*s%5s%7" PRId64 "%7s%10s%10s%6.2fx%s\n", name_columns(), "end to end", "",
           tune_session_trials(s->session), "", duration(t.before, b, sizeof b),
           duration(t.after, a, sizeof a), tool_tune_ratio(t.before, t.after),
           t.unknown ? base_format(s->cx, "  without %d kernels that have no time", t.unknown) : "");
}

/* What each kernel has gained, and where the time went; with --json one object per kernel and one for the
 * whole. */
void tool_tune_table(tool_tune_show *s)
{
    const job_times total = job_total(s->session, s->n_tasks);

    if (!s->json)
        printf("%-*s%5s%7s%7s%10s%10s%7s%8s\n", name_columns(), "kernel", "uses", "trials", "failed",
               "before", "after", "gain", "GFLOP/s");
    for (int i = 0; i < s->n_tasks; i++)
        if (s->json)
            task_json(tune_session_task(s->session, i));
        else
            print_row(s->cx, tune_session_task(s->session, i));
    if (s->json) {
        total_json(s, total);
        return;
    }
    print_total(s, total);
    if (s->measurer) {
        print_devices(s);
        print_times(s);
    }
}
