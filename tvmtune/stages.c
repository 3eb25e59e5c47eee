/* tvmtune/stages.c -- how a job goes from one stage to the next, and how it ends. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/guard.h"
#include "store/queue_tasks.h"
#include "tvmtune/kernels.h"
#include "tvmtune/report.h"
#include "tvmtune/routes.h"
#include "tvmtune/slot.h"

/* ---- the end ---- */

static void free_json(void *j)
{
    cJSON_Delete(j);
}

static void set_file(store_queue_file *file, const char *name, const char *text)
{
    *file = (store_queue_file){name, text, text ? strlen(text) : 0};
}

/* What is known of the module end to end, as JSON: `compared` is what the comparison said, `why` why there
 * is none. *keeps: the tuned module is used. */
static const char *end_to_end(tec_context *cx, const tvm_slot *entry, const char *compared, const char *why,
                              bool *keeps)
{
    base_held held;
    cJSON *o = compared ? cJSON_Parse(compared) : NULL, *all = cJSON_CreateObject();
    const cJSON *wins = cJSON_GetObjectItemCaseSensitive(o, "wins");
    static const char *const names[][2] = {{"first_ms", "untuned_ms"},
                                           {"second_ms", "tuned_ms"},
                                           {"pairs", "pairs"},
                                           {"gain", "gain"},
                                           {"noise", "noise"}};

    base_hold(cx, &held, free_json, o);
    *keeps = !cJSON_IsFalse(wins);
    for (int i = 0; i < BASE_COUNT(names); i++) {
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, names[i][0]);

        if (cJSON_IsNumber(x))
            cJSON_AddNumberToObject(all, names[i][1], x->valuedouble);
    }
    cJSON_AddStringToObject(all, "module", *keeps ? "tuned" : "untuned");
    if (why)
        cJSON_AddStringToObject(all, "not_compared", why);
    if (entry->stale) {
        cJSON_AddNumberToObject(all, "remeasured", entry->stale);
        cJSON_AddNumberToObject(all, "kept", entry->kept);
    }
    base_drop(&held);
    return tvm_json_text(cx, all);
}

/* A tuned module that does not win end to end is not used: the job gives the untuned one. */
static bool finish(tec_context *cx, tvm_runner *runner, tvm_slot *entry, const char *compared,
                   const char *why)
{
    store_queue_file files[3] = {{.name = "module"}};
    bool keeps;
    const char *whole = end_to_end(cx, entry, compared, why, &keeps);

    files[0].data = base_read_file(cx, tvm_file(cx, runner, entry->id, keeps ? "module.tec" : "plain.tec"),
                                   &files[0].size);
    set_file(&files[1], "report", tvm_report_json(cx, runner->db, entry->id, whole));
    set_file(&files[2], "report.html", tvm_report_html(cx, runner->db, entry->id, whole));
    return files[0].data && files[1].data && files[2].data &&
           store_queue_progress(cx, runner->db, entry->id, entry->tried) &&
           store_queue_end(cx, runner->db,
                           &(store_queue_end_of){.id = entry->id,
                                                 .owner = runner->o.name,
                                                 .to = STORE_QUEUE_DONE,
                                                 .files = files,
                                                 .n = BASE_COUNT(files)});
}

/* ---- stages ---- */

/* `heard` is when the child last said something: a child that is silent for too long is killed (see
 * run.c). */
bool tvm_begin_stage(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);
    const char *const *argv = j ? tvm_command(cx, runner, entry, j) : NULL;

    if (!argv)
        return false;
    entry->seen = 0;
    entry->heard = tvm_seconds(runner);
    if (tvm_child_start(&entry->child, argv, tvm_file(cx, runner, entry->id, tvm_output(entry)),
                        tvm_file(cx, runner, entry->id, "errors"), runner->o.memory))
        return true;
    return base_fail(cx, TEC_IO, (base_loc){0}, "cannot start %s: %s", runner->o.tec, strerror(errno));
}

/* In this order: silence, a signal, the first error that the child printed, its exit status. */
static const char *why_it_failed(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry, int status)
{
    const char *what = tvm_doing(entry->stage), *line = tvm_first_error(cx, runner, entry);

    if (entry->silent)
        return base_format(cx, "%s was ended: nothing was heard of it for %lld seconds", what,
                           (long long)runner->o.patience);
    if (WIFSIGNALED(status))
        return base_format(cx, "%s was ended by signal %d (%s)%s%s", what, WTERMSIG(status),
                           strsignal(WTERMSIG(status)), *line ? ": " : "", line);
    return *line ? line
                 : base_format(cx, "%s ended with status %d and said nothing", what, WEXITSTATUS(status));
}

/* ---- which kernels are tuned ---- */

/* Of each kernel, so that jobs with more of them can be compared. */
static bool budget_of(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry, store_budget *budget)
{
    const store_queued *j = store_queue_get(cx, runner->db, entry->id);
    double parts = entry->parts ? entry->parts : 1;

    *budget = (store_budget){.codegen = entry->codegen};
    if (j) {
        budget->trials = (double)tvm_trials_of(j) / parts;
        budget->seconds = (double)j->seconds / parts;
    }
    return j;
}

/* The next stage: what nobody tuned is tuned by this job, unless another one is at it. */
bool tvm_choose(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    store_budget b;
    int n, tuned = 0;

    entry->looked = tvm_seconds(runner);
    if (!budget_of(cx, runner, entry, &b) || !store_parts_claim(cx, runner->db, entry->id, &b))
        return false;
    const store_part *const *parts = store_parts(cx, runner->db, entry->id, &b, &n);
    entry->mine = 0;
    for (int i = 0; parts && i < n; i++) {
        entry->mine += parts[i]->mine;
        tuned += parts[i]->tuned;
    }
    entry->stage = entry->mine ? TVM_TUNE : tuned < n ? TVM_WAIT : TVM_BUILD;
    return parts && (entry->stage == TVM_WAIT || tvm_begin_stage(cx, runner, entry));
}

static bool keep_kernels(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    const tvm_kernels found = tvm_read_kernels(cx, tvm_said(cx, runner, entry));

    entry->parts = found.n;
    snprintf(entry->codegen, sizeof entry->codegen, "%s", found.codegen);
    snprintf(entry->machine, sizeof entry->machine, "%s", *entry->device_class ? found.machine : "");
    return store_parts_set(cx, runner->db, entry->id, found.parts, found.n) && tvm_choose(cx, runner, entry);
}

/* What tuning said of each kernel, written with the trials that it took, in one step. */
static bool keep_outcomes(tec_context *cx, tvm_runner *runner, tvm_slot *entry)
{
    store_budget b;
    int n;
    const store_part_report *reports = tvm_read_outcomes(cx, tvm_said(cx, runner, entry), &n);

    int kept;

    entry->earlier = entry->tried;
    entry->stale += tvm_read_remeasured(cx, tvm_said(cx, runner, entry), &kept);
    entry->kept += kept;
    return budget_of(cx, runner, entry, &b) && store_parts_tuned(cx, runner->db, entry->id, &b, reports, n) &&
           tvm_choose(cx, runner, entry);
}

/* ---- how a job goes on ---- */

/* What the store, SQLite, PostgreSQL, the system and the pool say of troubles that pass, and what the job
 * waits for. The program of a daemon that was killed may hold the lock of its job for a moment longer. */
static const struct {
    const char *said, *wait;
} passing[] = {
    {"no space left", TVM_WAITING "space on the disk"},
    {"disk is full", TVM_WAITING "space on the disk"},
    {"the record store cannot be reached", TVM_WAITING "the record store"},
    {"another process holds", TVM_WAITING "another process"},
    {"another process is tuning this", TVM_WAITING "another process"},
    {"cannot connect to", TVM_WAITING "the pool"},
    {"no device of class", TVM_WAITING "a device of the pool"},
};

/* NULL: the failure stays. */
static const char *what_it_waits_for(const char *failure)
{
    for (int i = 0; i < BASE_COUNT(passing); i++)
        if (strcasestr(failure, passing[i].said))
            return passing[i].wait;
    return NULL;
}

/* A job that waits for what is nobody's mistake is paused until revive. False with an error. */
bool tvm_end_job(tec_context *cx, tvm_runner *runner, tvm_slot *entry, const char *failure)
{
    const char *wait = entry->asked ? NULL : what_it_waits_for(failure);
    bool paused = wait || (entry->asked && !entry->cancel);
    const char *cause = wait           ? base_format(cx, "%s: %s", wait, failure)
                        : paused       ? "on request"
                        : entry->asked ? "cancelled"
                                       : failure;

    return store_queue_progress(cx, runner->db, entry->id, entry->tried) &&
           store_queue_end(cx, runner->db,
                           &(store_queue_end_of){.id = entry->id,
                                                 .owner = runner->o.name,
                                                 .to = paused ? STORE_QUEUE_PAUSED : STORE_QUEUE_FAILED,
                                                 .cause = cause});
}

/* Code generation gives equal bytes for equal schedules. */
static bool is_untuned(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry)
{
    size_t n, m;
    const char *tuned = base_read_file(cx, tvm_file(cx, runner, entry->id, "module.tec"), &n);
    const char *plain = base_read_file(cx, tvm_file(cx, runner, entry->id, "plain.tec"), &m);

    return tuned && plain && n == m && memcmp(tuned, plain, n) == 0;
}

static bool next_stage(tec_context *cx, tvm_runner *runner, tvm_slot *entry, tvm_stage next)
{
    entry->stage = next;
    return tvm_begin_stage(cx, runner, entry);
}

/* What becomes of a job whose child has ended. A comparison that fails fails no job. False with an error:
 * the store could not be written. */
bool tvm_go_on(tec_context *cx, tvm_runner *runner, tvm_slot *entry, int status)
{
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const char *failure = well || entry->asked ? "" : why_it_failed(cx, runner, entry, status);

    if (entry->asked || (!well && (entry->stage != TVM_COMPARE || what_it_waits_for(failure))))
        return tvm_end_job(cx, runner, entry, failure);
    switch (entry->stage) {
    case TVM_LIST: return keep_kernels(cx, runner, entry);
    case TVM_TUNE: return keep_outcomes(cx, runner, entry);
    case TVM_BUILD: return next_stage(cx, runner, entry, TVM_PLAIN);
    case TVM_PLAIN:
        return is_untuned(cx, runner, entry)
                   ? finish(cx, runner, entry, NULL, "no other schedule was adopted")
                   : next_stage(cx, runner, entry, TVM_COMPARE);
    case TVM_COMPARE:
        return well ? finish(cx, runner, entry, tvm_said(cx, runner, entry), NULL)
                    : finish(cx, runner, entry, NULL, failure);
    case TVM_WAIT:
    case TVM_HELD: break;
    }
    return true;
}
