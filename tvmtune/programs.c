/* tvmtune/programs.c -- the command line of each stage of a job. */
#include <cjson/cJSON.h>
#include <string.h>

#include "base/guard.h"
#include "store/queue_tasks.h"
#include "tvmtune/slot.h"
#include "tvmtune/users.h"

enum { USUAL_TRIALS = 1000, WAIT_SECONDS = 60 };

static void free_json(void *j)
{
    cJSON_Delete(j);
}

/* What decides the code of a module. The devices of a pool have said what their target is by then. */
static bool is_for_modules(const tvm_slot *entry, const char *option)
{
    bool in_pool = *entry->device_class;

    return !base_starts_with(option, "--seed=") && !base_starts_with(option, "--device-class=") &&
           !(in_pool && (base_starts_with(option, "--target=") || base_starts_with(option, "--threads=")));
}

/* Whether the program of the present stage takes an option that the job was submitted with. */
static bool takes_option(const tvm_slot *entry, const char *option)
{
    switch (entry->stage) {
    case TVM_COMPARE:
        return base_starts_with(option, "--threads=") || base_starts_with(option, "--device-class=");
    case TVM_BUILD:
    case TVM_PLAIN: return is_for_modules(entry, option);
    default: return true;
    }
}

/* The options that the job was submitted with. */
static void add_options(tec_context *cx, base_vec *argv, const char *options, const tvm_slot *entry)
{
    base_held held;
    cJSON *all = cJSON_Parse(options);
    const cJSON *o;

    base_hold(cx, &held, free_json, all);
    cJSON_ArrayForEach(o, all) if (cJSON_IsString(o) && takes_option(entry, o->valuestring))
        base_push(cx, argv, base_strdup(cx, o->valuestring));
    base_drop(&held);
}

const char *tvm_option_of(tec_context *cx, const store_queued *queued, const char *name)
{
    base_held held;
    cJSON *all = cJSON_Parse(queued->options);
    const char *start = base_format(cx, "--%s=", name), *value = "";
    const cJSON *o;

    base_hold(cx, &held, free_json, all);
    cJSON_ArrayForEach(o, all) if (cJSON_IsString(o) && base_starts_with(o->valuestring, start)) value =
        base_strdup(cx, o->valuestring + strlen(start));
    base_drop(&held);
    return value;
}

static void push_all(tec_context *cx, base_vec *argv, const char *const *words)
{
    for (; *words; words++)
        base_push(cx, argv, *words);
}

/* The share of a limit of the whole job that the kernels to be tuned now get, rounded up. */
static int64_t share(const tvm_slot *entry, int64_t limit)
{
    return limit && entry->parts ? (limit * entry->mine + entry->parts - 1) / entry->parts : limit;
}

int64_t tvm_trials_of(const store_queued *queued)
{
    return queued->trials || queued->seconds ? queued->trials : USUAL_TRIALS;
}

/* The kernels that this job claimed, and its limits. False with an error: the store could not be read. */
static bool add_tuning(tec_context *cx, const tvm_runner *runner, base_vec *argv, const tvm_slot *entry,
                       const store_queued *queued)
{
    int n;
    const store_part *const *parts = store_parts(cx, runner->db, entry->id, NULL, &n);

    for (int i = 0; parts && i < n && entry->mine < entry->parts; i++)
        if (parts[i]->mine)
            base_push(cx, argv, base_format(cx, "--only=%s", parts[i]->key));
    if (tvm_trials_of(queued))
        base_push(cx, argv, base_format(cx, "--trials=%lld", (long long)share(entry, tvm_trials_of(queued))));
    if (queued->seconds)
        base_push(cx, argv, base_format(cx, "--seconds=%lld", (long long)share(entry, queued->seconds)));
    return parts;
}

static void add_compiling(tec_context *cx, const tvm_runner *runner, base_vec *argv, const tvm_slot *entry)
{
    bool tuned = entry->stage == TVM_BUILD;

    push_all(cx, argv,
             (const char *const[]){
                 tvm_is_definitions(entry->name) ? "te" : "compile", tvm_input(cx, runner, entry), "--json",
                 "-o", tvm_file(cx, runner, entry->id, tuned ? "module.tec" : "plain.tec"), NULL});
    if (tuned)
        push_all(cx, argv, (const char *const[]){"--records", runner->o.store, NULL});
    if (*entry->machine)
        push_all(cx, argv, (const char *const[]){"--target", entry->machine, NULL});
}

/* The tracker shares a user's devices among the jobs in proportion to their priorities, which are from 1 to
 * 100; the queue's begin below 0, and 0 is the usual one. */
static int64_t priority_of(const store_queued *queued)
{
    enum { USUAL = 10, MOST = 100 };
    int64_t most = MOST - USUAL, least = 1 - USUAL, priority = queued->priority;

    return USUAL + (priority > most ? most : priority < least ? least : priority);
}

/* Where the devices of the job's class are asked for, and whose share of them the job uses. */
static void add_pool(tec_context *cx, const tvm_runner *runner, base_vec *argv, const tvm_slot *entry,
                     const store_queued *queued)
{
    push_all(cx, argv, (const char *const[]){"--tracker", runner->o.tracker, NULL});
    if (runner->o.key_file)
        push_all(cx, argv, (const char *const[]){"--key-file", runner->o.key_file, NULL});
    if (strcmp(queued->user, TVM_OWNER) != 0)
        push_all(cx, argv, (const char *const[]){"--user", queued->user, NULL});
    if (runner->o.devices && entry->stage == TVM_TUNE)
        base_push(cx, argv, base_format(cx, "--devices=%lld", (long long)runner->o.devices));
    if (entry->stage != TVM_COMPARE)
        base_push(cx, argv, base_format(cx, "--priority=%lld", (long long)priority_of(queued)));
    if (runner->o.tolerance && entry->stage != TVM_COMPARE)
        base_push(cx, argv, base_format(cx, "--tolerance=%lld", (long long)runner->o.tolerance));
    if (entry->stage == TVM_COMPARE)
        base_push(cx, argv, base_format(cx, "--wait=%d", WAIT_SECONDS));
}

/* The command line of the job's present stage; NULL with an error. */
const char *const *tvm_command(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry,
                               const store_queued *queued)
{
    base_vec argv = {0};

    base_push(cx, &argv, runner->o.tec);
    if (entry->stage == TVM_BUILD || entry->stage == TVM_PLAIN)
        add_compiling(cx, runner, &argv, entry);
    else if (entry->stage == TVM_COMPARE)
        push_all(cx, &argv,
                 (const char *const[]){"compare", tvm_file(cx, runner, entry->id, "plain.tec"),
                                       tvm_file(cx, runner, entry->id, "module.tec"), "--json", NULL});
    else
        push_all(cx, &argv,
                 (const char *const[]){"tune", tvm_input(cx, runner, entry), "--json", "--records",
                                       runner->o.store, NULL});
    if (entry->stage == TVM_LIST)
        base_push(cx, &argv, "--kernels");
    if (entry->stage == TVM_TUNE && !add_tuning(cx, runner, &argv, entry, queued))
        return NULL;
    if (entry->stage == TVM_TUNE && runner->o.run_log && !*entry->device_class)
        push_all(cx, &argv, (const char *const[]){"--run-log", runner->o.run_log, NULL});
    if (*entry->device_class && entry->stage != TVM_BUILD && entry->stage != TVM_PLAIN)
        add_pool(cx, runner, &argv, entry, queued);
    add_options(cx, &argv, queued->options, entry);
    base_push(cx, &argv, NULL);
    return (const char *const *)argv.at;
}
