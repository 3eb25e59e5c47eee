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

#include "autotune/source.h"
#include "jobs/job.h"
#include "tools/data.h"

/* ---- numbers and names ---- */

const char *tool_tune_speed(const tune_task *task, double seconds, char *buffer, size_t size)
{
    if (!(seconds > 0) || !isfinite(seconds))
        return "-";
    if (task->flops <= 0)
        return tool_seconds(seconds, buffer, size);
    snprintf(buffer, size, "%.1f", task->flops / seconds * 1e-9);
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

/* The middle of a long name is left out, since names of kernels differ at both ends. Signs that would move
 * the cursor become question marks. */
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

static void print_json(cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);

    printf("%s\n", text ? text : "");
    fflush(stdout);
    free(text);
    cJSON_Delete(json);
}

static void add_ms(cJSON *json, const char *name, double seconds)
{
    if (seconds > 0 && isfinite(seconds))
        cJSON_AddNumberToObject(json, name, seconds * 1e3);
}

int tool_tune_devices(const tool_tune_show *show, tec_context *cx, const tune_device **out)
{
    return show->measurer ? show->measurer->devices(show->measurer, cx, out) : 0;
}

/* What each device of a pool has measured and does; nothing where this machine measures. */
static void add_devices_json(cJSON *json, const tool_tune_show *show)
{
    tec_context *cx = base_child(show->cx);
    const tune_device *device;
    int n = tool_tune_devices(show, cx, &device);
    cJSON *all = n ? cJSON_AddArrayToObject(json, "devices") : NULL;

    for (int i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject();

        cJSON_AddStringToObject(one, "device", device[i].name);
        cJSON_AddStringToObject(one, "state", device[i].state);
        cJSON_AddNumberToObject(one, "trials", (double)device[i].trials);
        cJSON_AddItemToArray(all, one);
    }
    tec_context_free(cx);
}

/* One line of JSON for the batch that has ended. */
void tool_tune_batch_json(const tool_tune_show *show)
{
    const tune_state *t = tune_session_task(show->session, tune_session_current(show->session));
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "event", "batch");
    cJSON_AddStringToObject(j, "task", t->task->name);
    cJSON_AddNumberToObject(j, "trials", (double)t->trials);
    cJSON_AddNumberToObject(j, "failed", (double)t->failed);
    add_ms(j, "first_ms", t->first);
    add_ms(j, "now_ms", t->now);
    add_ms(j, "best_ms", t->best);
    cJSON_AddNumberToObject(j, "all_trials", (double)tune_session_trials(show->session));
    cJSON_AddNumberToObject(j, "seconds", tune_session_seconds(show->session));
    add_devices_json(j, show);
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
static int time_lines(const tool_tune_show *show, time_line out[TIME_LINES])
{
    tune_times t = tune_session_times(show->session);
    tune_measure_stats m = show->measurer->stats(show->measurer);
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

static cJSON *time_json(const tool_tune_show *show)
{
    time_line line[TIME_LINES];
    cJSON *j = cJSON_CreateObject();
    int n = time_lines(show, line);

    for (int i = 0; i < n; i++)
        cJSON_AddNumberToObject(j, line[i].key, line[i].seconds);
    cJSON_AddNumberToObject(j, "valid_per_second",
                            (double)show->measurer->stats(show->measurer).ok / line[0].seconds);
    return j;
}

/* Where the wall time went, with the number of measurements that it gave. */
static void print_times(const tool_tune_show *show)
{
    time_line line[TIME_LINES];
    int n = time_lines(show, line);
    tune_measure_stats m = show->measurer->stats(show->measurer);

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
static void print_devices(const tool_tune_show *show)
{
    const tune_device *device;
    int n = tool_tune_devices(show, show->cx, &device);

    if (n)
        printf("\n%-32s %6s  %s\n", "device", "trials", "state");
    for (int i = 0; i < n; i++)
        printf("%s %6" PRId64 "  %s\n",
               tool_tune_name(show->cx, *device[i].name ? device[i].name : "(none)", 32), device[i].trials,
               device[i].state);
}

/* ---- the end ---- */

/* Versions of a kernel count by parts of its uses. */
static int decimals(double uses)
{
    return uses == floor(uses) ? 0 : 2;
}

/* For people a line with the key; for programs an object with all that identifies the kernel. */
void tool_tune_kernel(tec_context *cx, const tune_task *task, const target *machine, bool json)
{
    char key[JOB_HASH_SIZE];
    cJSON *j;

    if (!json) {
        printf("%s  %4.*f x  %s\n", job_task_hash(task, key), decimals(task->weight), task->weight,
               task->name);
        return;
    }
    j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "event", "kernel");
    cJSON_AddStringToObject(j, "key", job_task_hash(task, key));
    cJSON_AddStringToObject(j, "target", tune_target_key(cx, machine));
    cJSON_AddStringToObject(j, "machine", target_text(cx, machine));
    cJSON_AddStringToObject(j, "task", task->name);
    cJSON_AddStringToObject(j, "summary", task->task->summary);
    cJSON_AddNumberToObject(j, "uses", task->weight);
    cJSON_AddStringToObject(j, "codegen", tec_version());
    print_json(j);
}

/* One line of JSON for a kernel at the end. */
/* {"1": 0.02, "2": 0, ...}: by extent. */
static void add_losses(cJSON *j, const tune_extents *extents, const double *loss)
{
    cJSON *all = cJSON_AddObjectToObject(j, "loss");
    char name[24];

    for (int e = 0; e < extents->n; e++) {
        snprintf(name, sizeof name, "%" PRId64, extents->at[e]);
        cJSON_AddNumberToObject(all, name, loss[e]);
    }
}

/* [11, 45]: the ends of all ranges but the last. */
static void add_ranges(cJSON *j, const space_ranges *ranges)
{
    cJSON *ends = cJSON_AddArrayToObject(j, "ranges");

    for (int k = 0; k + 1 < ranges->n; k++)
        cJSON_AddItemToArray(ends, cJSON_CreateNumber((double)ranges->at[k].to));
}

/* A kernel's line of JSON: what --json prints in place of a row of the table. */
static void task_json(const tune_state *state)
{
    cJSON *j = cJSON_CreateObject();
    char key[JOB_HASH_SIZE];

    cJSON_AddStringToObject(j, "event", "task");
    cJSON_AddStringToObject(j, "key", job_task_hash(state->task, key));
    cJSON_AddStringToObject(j, "task", state->task->name);
    cJSON_AddStringToObject(j, "summary", state->task->task->summary);
    cJSON_AddNumberToObject(j, "uses", state->task->weight);
    cJSON_AddNumberToObject(j, "trials", (double)state->trials);
    cJSON_AddNumberToObject(j, "failed", (double)state->failed);
    cJSON_AddNumberToObject(j, "wrong", (double)state->wrong);
    cJSON_AddNumberToObject(j, "reused", (double)state->reused);
    add_ms(j, "before_ms", state->before);
    add_ms(j, "after_ms", state->after);
    cJSON_AddBoolToObject(j, "adopted", state->adopted);
    if (state->only_alone)
        cJSON_AddBoolToObject(j, "only_alone", true);
    if (state->failure)
        cJSON_AddStringToObject(j, "failure", state->failure);
    if (state->task->extents && state->loss)
        add_losses(j, state->task->extents, state->loss);
    if (state->ranges)
        add_ranges(j, state->ranges);
    print_json(j);
}

static cJSON *whole_json(const job_whole *whole)
{
    cJSON *j = cJSON_CreateObject();

    add_ms(j, "before_ms", whole->before);
    add_ms(j, "after_ms", whole->after);
    cJSON_AddNumberToObject(j, "gain", whole->gain);
    cJSON_AddNumberToObject(j, "noise", whole->noise);
    cJSON_AddNumberToObject(j, "pairs", whole->pairs);
    cJSON_AddBoolToObject(j, "wins", whole->wins);
    return j;
}

/* The last line of JSON: the whole job. */
static void total_json(const tool_tune_show *show, job_times times)
{
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "event", "total");
    cJSON_AddNumberToObject(j, "trials", (double)tune_session_trials(show->session));
    cJSON_AddNumberToObject(j, "measured", (double)tune_session_measured(show->session));
    cJSON_AddNumberToObject(j, "seconds", tune_session_seconds(show->session));
    add_ms(j, "before_ms", times.before);
    add_ms(j, "after_ms", times.after);
    if (show->whole.pairs)
        cJSON_AddItemToObject(j, "end_to_end", whole_json(&show->whole));
    if (show->measurer)
        cJSON_AddItemToObject(j, "time", time_json(show));
    add_devices_json(j, show);
    print_json(j);
}

/* What the other columns leave of a terminal; 64 where that is enough, or there is none. */
static int name_columns(void)
{
    enum { OTHERS = 66, LEAST = 12, USUAL = 64 };
    struct winsize w;
    int left = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0
                   ? w.ws_col - OTHERS
                   : USUAL;

    return left < LEAST ? LEAST : left > USUAL ? USUAL : left;
}

/* One task as a row: weight, trials, failures, times before and after, and what became of it. */
static void print_row(tec_context *cx, const tune_state *state)
{
    char before[32], after[32], rate[32];
    const char *what = state->failure       ? state->failure
                       : state->trials == 0 ? "not reached"
                       : state->adopted     ? "adopted"
                       : state->only_alone  ? "faster alone, not in the model"
                                            : "as before";

    printf("%s%5.*f%7" PRId64 "%7" PRId64 "%10s%10s%6.2fx%8s  %s\n",
           tool_tune_name(cx, state->task->name, name_columns()), decimals(state->task->weight),
           state->task->weight, state->trials, state->failed, duration(state->before, before, sizeof before),
           duration(state->after, after, sizeof after), tool_tune_ratio(state->before, state->after),
           state->task->flops > 0 ? tool_tune_speed(state->task, state->after, rate, sizeof rate) : "-",
           what);
}

/* The model itself, with the schedules before and after in turns. */
static void print_whole(const job_whole *whole)
{
    char b[32], a[32];

    printf("%-*s%5s%7s%7s%10s%10s%6.2fx  %.1f %% noise, %d pairs%s\n", name_columns(), "end to end", "", "",
           "", duration(whole->before, b, sizeof b), duration(whole->after, a, sizeof a), 1 + whole->gain,
           100 * whole->noise, whole->pairs,
           whole->wins ? "" : ": the model is not faster, so nothing was adopted");
}

static void print_total(const tool_tune_show *show, job_times times)
{
    char b[32], a[32];

    printf("%-*s%5s%7" PRId64 "%7s%10s%10s%6.2fx%s\n", name_columns(), "sum of the kernels", "",
           tune_session_trials(show->session), "", duration(times.before, b, sizeof b),
           duration(times.after, a, sizeof a), tool_tune_ratio(times.before, times.after),
           times.unknown ? base_format(show->cx, "  without %d kernels that have no time", times.unknown)
                         : "");
}

/* How much slower the chosen schedules are than the fastest candidates, extent by extent. */
static void print_losses(const tool_tune_show *show)
{
    for (int i = 0; i < show->n_tasks; i++) {
        const tune_state *state = tune_session_task(show->session, i);
        const tune_extents *extents = state->task->extents;

        if (!extents || !state->loss)
            continue;
        printf("%s, loss by extent:", state->task->name);
        for (int e = 0; e < extents->n; e++)
            printf("%s %" PRId64 ": %.1f %%", e ? "," : "", extents->at[e], 100 * state->loss[e]);
        if (state->ranges) {
            printf("; schedules for %d ranges, up to", state->ranges->n);
            for (int k = 0; k + 1 < state->ranges->n; k++)
                printf("%s %" PRId64, k ? "," : "", state->ranges->at[k].to);
            printf(" and above");
        }
        printf("\n");
    }
}

/* What each kernel has gained, and where the time went; with --json one object per kernel and one for the
 * whole. */
void tool_tune_table(tool_tune_show *show)
{
    const job_times total = job_total(show->session, show->n_tasks);

    if (!show->json)
        printf("%-*s%5s%7s%7s%10s%10s%7s%8s\n", name_columns(), "kernel", "uses", "trials", "failed",
               "before", "after", "gain", "GFLOP/s");
    for (int i = 0; i < show->n_tasks; i++)
        if (show->json)
            task_json(tune_session_task(show->session, i));
        else
            print_row(show->cx, tune_session_task(show->session, i));
    if (show->json) {
        total_json(show, total);
        return;
    }
    print_losses(show);
    print_total(show, total);
    if (show->whole.pairs)
        print_whole(&show->whole);
    if (show->measurer) {
        print_devices(show);
        print_times(show);
    }
}
