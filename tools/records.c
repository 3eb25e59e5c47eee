/* tools/records.c -- `tec records`: what a record store holds; exchange, merging and care of stores. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/op.h"
#include "schedule/sched.h"
#include "space/task.h"
#include "store/store.h"
#include "te/text.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"

enum { KEEP = 10 };

typedef struct {
    const char *workload, *target, *job, *output;
    int64_t limit, keep, to;
    bool strict, no_traces, json;
} settings;

/* One call of the command: store, query and files. */
typedef struct {
    tec_context *cx;
    const settings *s;
    store *db;
    store_query q;
    const char *const *files; /* the operands behind the store */
    int n_files;
} session;

/* ---- helpers ---- */

static int fail(const session *self)
{
    return tool_fail("records", self->cx);
}

static const char *hash_text(tec_context *cx, uint64_t hash)
{
    return base_format(cx, "%016" PRIx64, hash);
}

static void print_json(cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);

    printf("%s\n", text ? text : "");
    free(text);
    cJSON_Delete(json);
}

/* A workload is named by its key, or by the hash that `list` prints. Sets the query's key; without --workload
 * all are meant. */
static bool name_workload(session *self)
{
    int n;
    const store_summary *sum = self->s->workload ? store_summaries(self->cx, self->db, NULL, &n) : NULL;

    if (!self->s->workload)
        return true;
    for (int i = 0; sum && i < n; i++) {
        const store_workload *workload = &sum[i].workload;

        if (strcmp(workload->exact_key, self->s->workload) == 0 ||
            strcmp(hash_text(self->cx, workload->exact_hash), self->s->workload) == 0) {
            self->q.exact_key = workload->exact_key;
            return true;
        }
    }
    return base_fail(self->cx, TEC_INVALID, (base_loc){.file = store_path(self->db)},
                     "there is no workload '%s'; 'tec records list' names them", self->s->workload);
}

/* 0 where there is no time. */
static double gflops(const store_workload *workload, double seconds)
{
    return seconds > 0 ? workload->flops / seconds * 1e-9 : 0;
}

/* ---- list ---- */

/* What failed, with counts and an example each. */
static void add_failures(cJSON *root, const store_failure *failure, int count)
{
    cJSON *all = cJSON_AddArrayToObject(root, "failures");

    for (int i = 0; i < count; i++) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "status", store_status_text(failure[i].status));
        cJSON_AddStringToObject(j, "stage", failure[i].stage);
        cJSON_AddStringToObject(j, "error_kind", failure[i].error_kind);
        cJSON_AddStringToObject(j, "example", failure[i].example);
        cJSON_AddNumberToObject(j, "count", (double)failure[i].count);
        cJSON_AddItemToArray(all, j);
    }
}

static void add_jobs(cJSON *root, const store_job *const *jobs, int count)
{
    cJSON *all = cJSON_AddArrayToObject(root, "jobs");

    for (int i = 0; i < count; i++) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "name", jobs[i]->name);
        cJSON_AddStringToObject(j, "state", store_job_state_text(jobs[i]->state));
        cJSON_AddStringToObject(j, "arguments", jobs[i]->arguments);
        cJSON_AddNumberToObject(j, "updated", (double)jobs[i]->updated);
        cJSON_AddItemToArray(all, j);
    }
}

/* One object per workload and target. */
static cJSON *summaries_json(tec_context *cx, const store_summary *sum, int count)
{
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "workloads");

    for (int i = 0; i < count; i++) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "workload", hash_text(cx, sum[i].workload.exact_hash));
        cJSON_AddStringToObject(j, "exact_key", sum[i].workload.exact_key);
        cJSON_AddStringToObject(j, "summary", sum[i].workload.summary);
        cJSON_AddStringToObject(j, "target", sum[i].target.fingerprint);
        cJSON_AddNumberToObject(j, "ok", (double)sum[i].n_ok);
        cJSON_AddNumberToObject(j, "failed", (double)sum[i].n_failed);
        cJSON_AddNumberToObject(j, "dropped", (double)sum[i].n_dropped);
        cJSON_AddNumberToObject(j, "best_ms", sum[i].best * 1e3);
        cJSON_AddNumberToObject(j, "gflops", gflops(&sum[i].workload, sum[i].best));
        cJSON_AddItemToArray(all, j);
    }
    return root;
}

/* The same as a table. */
static void print_summaries(tec_context *cx, const store_summary *sum, int count)
{
    char time[32];

    printf("%-16s %-16s %6s %6s %7s %12s %9s  %s\n", "workload", "target", "ok", "failed", "dropped", "best",
           "GFLOP/s", "what");
    for (int i = 0; i < count; i++) {
        const store_workload *workload = &sum[i].workload;

        printf("%-16s %-16s %6" PRId64 " %6" PRId64 " %7" PRId64 " %12s %9.2f  %s\n",
               hash_text(cx, workload->exact_hash), sum[i].target.fingerprint, sum[i].n_ok, sum[i].n_failed,
               sum[i].n_dropped, sum[i].n_ok ? tool_seconds(sum[i].best, time, sizeof time) : "-",
               gflops(workload, sum[i].best), *workload->summary ? workload->summary : workload->exact_key);
    }
}

/* What was tuned, what failed, which jobs there are. */
static int list(session *self)
{
    int n, n_failures, n_jobs;
    const store_summary *sum = store_summaries(self->cx, self->db, &self->q, &n);
    const store_failure *failure = store_failures(self->cx, self->db, &self->q, &n_failures);
    const store_job *const *jobs = store_jobs(self->cx, self->db, &n_jobs);

    if (!sum || !failure || !jobs)
        return fail(self);
    if (self->s->json) {
        cJSON *root = summaries_json(self->cx, sum, n);

        add_failures(root, failure, n_failures);
        add_jobs(root, jobs, n_jobs);
        print_json(root);
        return TOOL_OK;
    }
    print_summaries(self->cx, sum, n);
    for (int i = 0; i < n_failures; i++)
        printf("%" PRId64 " x %s%s%s %s: %s\n", failure[i].count, store_status_text(failure[i].status),
               *failure[i].stage ? " in " : "", failure[i].stage, failure[i].error_kind, failure[i].example);
    for (int i = 0; i < n_jobs; i++)
        printf("job %s: %s\n", jobs[i]->name, store_job_state_text(jobs[i]->state));
    return TOOL_OK;
}

/* ---- best ---- */

/* One record of `best`: its time and its trace. False: it cannot be written as JSON. */
static bool print_record(session *self, const store_record *record)
{
    char time[32];

    if (self->s->json) {
        const char *line = store_json(self->cx, record);

        printf("%s\n", line ? line : "");
        return line;
    }
    printf("record %" PRId64 ": %s, %.2f GFLOP/s on %s: %s\n%s%s", record->id,
           tool_seconds(record->median, time, sizeof time), gflops(&record->workload, record->median),
           record->target.fingerprint,
           *record->workload.summary ? record->workload.summary : record->workload.exact_key, record->trace,
           *record->trace && record->trace[strlen(record->trace) - 1] == '\n' ? "" : "\n");
    return true;
}

/* One workload: its fastest; else the fastest of each workload on each target. */
static int best(session *self)
{
    int n, found;
    const store_summary *sum = store_summaries(self->cx, self->db, &self->q, &n);

    if (!sum)
        return fail(self);
    for (int i = 0; i < n; i++) {
        store_query one = self->q;

        one.exact_key = sum[i].workload.exact_key;
        one.anchor_key = sum[i].workload.anchor_key;
        one.target = sum[i].target.fingerprint;
        const store_record *const *record =
            store_best(self->cx, self->db, &one, self->s->limit > 0 ? (int)self->s->limit : 1, &found);
        for (int k = 0; k < found; k++)
            if (!print_record(self, record[k]))
                return fail(self);
        if (!record)
            return fail(self);
    }
    return TOOL_OK;
}

/* ---- export, import, merge ---- */

/* -1 with an error. */
static int64_t export_to(session *self, FILE *to)
{
    self->q.limit = self->s->limit;
    return store_export(self->cx, self->db, &self->q, to);
}

/* Beside the file, then in its place. The file gets the rights that a new file would have: mkstemp makes it
 * for the user alone. */
static int64_t export_file(session *self)
{
    char *part = base_format(self->cx, "%s.XXXXXX", self->s->output);
    int fd = mkstemp(part);
    FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    mode_t mask = umask(0);

    umask(mask);
    int64_t n = to && fchmod(fd, 0666 & ~mask) == 0 ? export_to(self, to) : -1;
    if (!to || fclose(to) != 0 || (n >= 0 && rename(part, self->s->output) != 0)) {
        base_fail(self->cx, TEC_IO, (base_loc){.file = self->s->output}, "cannot write: %s", strerror(errno));
        n = -1;
    }
    if (n < 0 && fd >= 0)
        unlink(part);
    return n;
}

static int export(session *self)
{
    tool_hold_interrupts(self->s->output != NULL);
    int64_t n = self->s->output ? export_file(self) : export_to(self, stdout);

    tool_hold_interrupts(false);
    if (n < 0)
        return fail(self);
    fprintf(stderr, "%" PRId64 " records\n", n);
    return TOOL_OK;
}

static void report_line(void *user, int64_t line, const char *why)
{
    fprintf(stderr, "%s:%" PRId64 ": %s\n", (const char *)user, line, why);
}

/* What an import or merge has added. */
static void print_counts(const session *self, const char *from, int64_t added, int64_t duplicates,
                         int64_t bad)
{
    if (!self->s->json) {
        printf("%s: %" PRId64 " records added, %" PRId64 " were there already, %" PRId64
               " bad lines skipped\n",
               from, added, duplicates, bad);
        return;
    }
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "from", from);
    cJSON_AddNumberToObject(j, "added", (double)added);
    cJSON_AddNumberToObject(j, "duplicates", (double)duplicates);
    cJSON_AddNumberToObject(j, "bad", (double)bad);
    print_json(j);
}

/* "-" is standard input. Fails if nothing could be taken in. With --strict the first bad line ends the
 * import, and nothing of the file is kept. */
static int import_file(session *self, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    FILE *from = standard ? stdin : fopen(path, "r");
    const store_import_options o = {.refuse = self->s->strict,
                                    .name = name,
                                    .bad_line = self->s->strict ? NULL : report_line,
                                    .user = (void *)name};
    store_imported got = {0};

    if (!from) {
        base_fail(self->cx, TEC_IO, (base_loc){.file = path}, "%s", strerror(errno));
        return fail(self);
    }
    bool ok = store_import(self->cx, self->db, from, &o, &got);
    if (!standard)
        fclose(from);
    if (!ok)
        return fail(self);
    print_counts(self, name, got.added, got.duplicates, got.bad);
    return got.bad && got.added + got.duplicates == 0 ? TOOL_FAILED : TOOL_OK;
}

static int import(session *self)
{
    int status = self->n_files ? TOOL_OK : import_file(self, "-");

    for (int i = 0; i < self->n_files && status == TOOL_OK; i++)
        status = import_file(self, self->files[i]);
    return status;
}

/* A store that cannot be opened ends the merge; those before it are in. */
static int merge(session *self)
{
    for (int i = 0; i < self->n_files; i++) {
        store *from = store_open(self->cx, self->files[i], &(store_options){.read_only = true});
        store_added added;
        bool ok = from && store_merge(self->cx, self->db, from, &added);

        store_close(from);
        if (!ok)
            return fail(self);
        print_counts(self, self->files[i], added.added, added.duplicates, 0);
    }
    return TOOL_OK;
}

/* ---- compact, check ---- */

/* Keeps the fastest records and says what that has freed. */
static int compact(session *self)
{
    store_compacted c;

    if (!store_compact(self->cx, self->db, (int)self->s->keep, &c))
        return fail(self);
    if (self->s->json) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddNumberToObject(j, "kept", (double)c.kept);
        cJSON_AddNumberToObject(j, "dropped", (double)c.dropped);
        cJSON_AddNumberToObject(j, "bytes_before", (double)c.bytes_before);
        cJSON_AddNumberToObject(j, "bytes_after", (double)c.bytes_after);
        print_json(j);
        return TOOL_OK;
    }
    printf("%" PRId64 " records kept, %" PRId64 " dropped; %.2f MB before, %.2f MB after\n", c.kept,
           c.dropped, (double)c.bytes_before / 1e6, (double)c.bytes_after / 1e6);
    return TOOL_OK;
}

/* The trace, or that of each range, applied to the definition that the store has for it. Nothing is compiled:
 * a trace that applies is taken for good. */
static bool is_readable(void *user, tec_context *cx, const store_record *record)
{
    const target *t = target_parse(cx, record->target.text);
    const te_file *file = t ? te_parse(cx, "definition", record->workload.definition) : NULL;

    (void)user;
    if (!file)
        return false;
    if (file->defs.n != 1)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "expected one definition, found %d", file->defs.n);
    const ir_program *tree = te_tree(cx, file->defs.at[0]);
    const space_ranges *ranges = tree ? space_ranges_read(cx, record->trace) : NULL;
    const char *refused = NULL;
    if (ranges)
        return space_ranges_trees(cx, file->defs.at[0], t, ranges, &refused) ||
               base_fail(cx, TEC_INVALID, (base_loc){0}, "%s", refused);
    sched *s = tree ? sched_new(cx, tree, t) : NULL;
    if (!s)
        return false;
    sched_use_intrinsics(s, &file->intrinsics);
    return sched_replay(s, "trace", record->trace) ||
           base_fail(cx, TEC_INVALID, (base_loc){0}, "%s", sched_error(s));
}

static void print_problem(void *user, const char *what)
{
    cJSON *all = user;

    if (all)
        cJSON_AddItemToArray(all, cJSON_CreateString(what));
    else
        printf("%s\n", what);
}

/* Problems are no failure of the command itself, but of its status. */
static int check(session *self)
{
    cJSON *all = self->s->json ? cJSON_CreateArray() : NULL;
    const store_check_options o = {self->s->no_traces ? NULL : is_readable, print_problem, all};
    int64_t n = store_check(self->cx, self->db, &o);

    if (all)
        print_json(all);
    if (n < 0)
        return fail(self);
    if (!all)
        printf("%s: %" PRId64 " problems\n", store_path(self->db), n);
    return n ? TOOL_FAILED : TOOL_OK;
}

/* For a tec that knows no newer version of the schema. */
static int downgrade(session *self)
{
    if (!self->s->to)
        return tool_misuse("records", "which version the file gets is missing: --to N");
    if (!store_step_back(self->cx, self->db, (int)self->s->to))
        return fail(self);
    printf("%s: version %" PRId64 " of the schema\n", store_path(self->db), self->s->to);
    return TOOL_OK;
}

/* ---- the command ---- */

/* `options` has a blank around each word, so that they can be searched. */
typedef struct {
    const char *name;
    int (*run)(session *x);
    const store_options open;
    int most; /* files behind the store; -1: any number */
    int least;
    const char *options; /* that it takes, as words */
} action;

static const action actions[] = {
    {"list", list, {.read_only = true}, 0, 0, " workload target job json "},
    {"best", best, {.read_only = true}, 0, 0, " workload target job limit json "},
    {"export", export, {.read_only = true}, 0, 0, " workload target job limit o "},
    {"import", import, {0}, -1, 0, " strict json "},
    {"merge", merge, {0}, -1, 1, " json "},
    {"compact", compact, {.must_exist = true}, 0, 0, " keep json "},
    {"check", check, {.read_only = true}, 0, 0, " no-traces json "},
    {"downgrade", downgrade, {.must_exist = true}, 0, 0, " to "},
};

static int misuse(const char *what, const char *about)
{
    return tool_misuse("records", "%s '%s'", what, about);
}

static const action *find_action(const char *name)
{
    for (int i = 0; i < BASE_COUNT(actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

/* An option that this action would not heed; NULL: there is none. */
static const char *idle_option(const action *self, const settings *options)
{
    const struct {
        const char *name;
        bool given;
    } given[] = {{"workload", options->workload}, {"target", options->target},
                 {"job", options->job},           {"o", options->output},
                 {"limit", options->limit != 0},  {"keep", options->keep != KEEP},
                 {"strict", options->strict},     {"no-traces", options->no_traces},
                 {"json", options->json},         {"to", options->to != 0}};
    char word[16];

    for (int i = 0; i < BASE_COUNT(given); i++) {
        snprintf(word, sizeof word, " %s ", given[i].name);
        if (given[i].given && !strstr(self->options, word))
            return given[i].name;
    }
    return NULL;
}

/* The store is opened as the action asks: reading never makes a store. */
static int run(const action *self, const settings *given, const tool_list *operands)
{
    session x = {.cx = tool_context(), .s = given, .files = operands->at + 2, .n_files = operands->n - 2};

    x.q.target = given->target;
    x.q.job = given->job;
    x.db = store_open(x.cx, operands->at[1], &self->open);
    int status = x.db && name_workload(&x) ? self->run(&x) : fail(&x);
    store_close(x.db);
    tec_context_free(x.cx);
    return status;
}

/* The command: options, then the action that the first operand names. */
int tool_records(int argc, char **argv)
{
    settings s = {.keep = KEEP};
    tool_list operands = {0};
    const tool_option options[] = {
        {"workload", TOOL_TEXT, &s.workload, "W",
         "list, best, export: only records of this workload, given by its key or by the hash that list "
         "prints"},
        {"target", TOOL_TEXT, &s.target, "F",
         "list, best, export: only records of the target with this fingerprint"},
        {"job", TOOL_TEXT, &s.job, "NAME", "list, best, export: only records of this tuning job"},
        {"limit", TOOL_COUNT, &s.limit, "N",
         "best: records of each workload (default: 1); export: records in all (default: all)"},
        {"o", TOOL_TEXT, &s.output, "FILE", "export: the file to write (default: standard output)"},
        {"strict", TOOL_FLAG, &s.strict, NULL,
         "import: refuses the whole file for one bad line (default: skips bad lines)"},
        {"keep", TOOL_COUNT, &s.keep, "N",
         "compact: how many of the fastest stay, for each workload and target (10)"},
        {"no-traces", TOOL_FLAG, &s.no_traces, NULL, "check: do not apply the traces to their definitions"},
        {"to", TOOL_COUNT, &s.to, "N", "downgrade: the version of the schema that the file is to have"},
        {"json", TOOL_FLAG, &s.json, NULL, "print JSON"},
    };
    const tool_usage usage = {
        "records",
        "list|best|export|import|merge|compact|check|downgrade DB [FILE...]",
        "Looks into a record store, exchanges its records as JSON lines, and takes care of it.",
        options,
        BASE_COUNT(options),
        2,
        -1};
    int status = tool_parse(&usage, argc, argv, &operands);

    if (status != TOOL_GO_ON)
        return status;
    const action *a = find_action(operands.at[0]);
    if (!a)
        return misuse("there is no action", operands.at[0]);
    if (operands.n - 2 < a->least)
        return misuse("expected files behind the store for", a->name);
    if (a->most >= 0 && operands.n - 2 > a->most)
        return misuse("one operand too many:", operands.at[2 + a->most]);
    const char *idle = idle_option(a, &s);
    if (idle)
        return misuse("this action takes no option", idle);
    return run(a, &s, &operands);
}
