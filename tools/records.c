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

static int fail(const session *x)
{
    return tool_fail("records", x->cx);
}

static const char *hash_text(tec_context *cx, uint64_t hash)
{
    return base_format(cx, "%016" PRIx64, hash);
}

static void print_json(cJSON *j)
{
    char *text = cJSON_PrintUnformatted(j);

    printf("%s\n", text ? text : "");
    free(text);
    cJSON_Delete(j);
}

/* A workload is named by its key, or by the hash that `list` prints. Sets the query's key; without --workload
 * all are meant. */
static bool name_workload(session *x)
{
    int n;
    const store_summary *sum = x->s->workload ? store_summaries(x->cx, x->db, NULL, &n) : NULL;

    if (!x->s->workload)
        return true;
    for (int i = 0; sum && i < n; i++) {
        const store_workload *w = &sum[i].workload;

        if (strcmp(w->exact_key, x->s->workload) == 0 ||
            strcmp(hash_text(x->cx, w->exact_hash), x->s->workload) == 0) {
            x->q.exact_key = w->exact_key;
            return true;
        }
    }
    return base_fail(x->cx, TEC_INVALID, (base_loc){.file = store_path(x->db)},
                     "there is no workload '%s'; 'tec records list' names them", x->s->workload);
}

/* 0 where there is no time. */
static double gflops(const store_workload *w, double seconds)
{
    return seconds > 0 ? w->flops / seconds * 1e-9 : 0;
}

/* ---- list ---- */

/* What failed, with counts and an example each. */
static void add_failures(cJSON *root, const store_failure *f, int n)
{
    cJSON *all = cJSON_AddArrayToObject(root, "failures");

    for (int i = 0; i < n; i++) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "status", store_status_text(f[i].status));
        cJSON_AddStringToObject(j, "stage", f[i].stage);
        cJSON_AddStringToObject(j, "error_kind", f[i].error_kind);
        cJSON_AddStringToObject(j, "example", f[i].example);
        cJSON_AddNumberToObject(j, "count", (double)f[i].count);
        cJSON_AddItemToArray(all, j);
    }
}

static void add_jobs(cJSON *root, const store_job *const *jobs, int n)
{
    cJSON *all = cJSON_AddArrayToObject(root, "jobs");

    for (int i = 0; i < n; i++) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "name", jobs[i]->name);
        cJSON_AddStringToObject(j, "state", store_job_state_text(jobs[i]->state));
        cJSON_AddStringToObject(j, "arguments", jobs[i]->arguments);
        cJSON_AddNumberToObject(j, "updated", (double)jobs[i]->updated);
        cJSON_AddItemToArray(all, j);
    }
}

/* One object per workload and target. */
static cJSON *summaries_json(tec_context *cx, const store_summary *sum, int n)
{
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "workloads");

    for (int i = 0; i < n; i++) {
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
static void print_summaries(tec_context *cx, const store_summary *sum, int n)
{
    char time[32];

    printf("%-16s %-16s %6s %6s %7s %12s %9s  %s\n", "workload", "target", "ok", "failed", "dropped", "best",
           "GFLOP/s", "what");
    for (int i = 0; i < n; i++) {
        const store_workload *w = &sum[i].workload;

        printf("%-16s %-16s %6" PRId64 " %6" PRId64 " %7" PRId64 " %12s %9.2f  %s\n",
               hash_text(cx, w->exact_hash), sum[i].target.fingerprint, sum[i].n_ok, sum[i].n_failed,
               sum[i].n_dropped, sum[i].n_ok ? tool_seconds(sum[i].best, time, sizeof time) : "-",
               gflops(w, sum[i].best), *w->summary ? w->summary : w->exact_key);
    }
}

/* What was tuned, what failed, which jobs there are. */
static int list(session *x)
{
    int n, n_failures, n_jobs;
    const store_summary *sum = store_summaries(x->cx, x->db, &x->q, &n);
    const store_failure *f = store_failures(x->cx, x->db, &x->q, &n_failures);
    const store_job *const *jobs = store_jobs(x->cx, x->db, &n_jobs);

    if (!sum || !f || !jobs)
        return fail(x);
    if (x->s->json) {
        cJSON *root = summaries_json(x->cx, sum, n);

        add_failures(root, f, n_failures);
        add_jobs(root, jobs, n_jobs);
        print_json(root);
        return TOOL_OK;
    }
    print_summaries(x->cx, sum, n);
    for (int i = 0; i < n_failures; i++)
        printf("%" PRId64 " x %s%s%s %s: %s\n", f[i].count, store_status_text(f[i].status),
               *f[i].stage ? " in " : "", f[i].stage, f[i].error_kind, f[i].example);
    for (int i = 0; i < n_jobs; i++)
        printf("job %s: %s\n", jobs[i]->name, store_job_state_text(jobs[i]->state));
    return TOOL_OK;
}

/* ---- best ---- */

/* One record of `best`: its time and its trace. False: it cannot be written as JSON. */
static bool print_record(session *x, const store_record *r)
{
    char time[32];

    if (x->s->json) {
        const char *line = store_json(x->cx, r);

        printf("%s\n", line ? line : "");
        return line;
    }
    printf("record %" PRId64 ": %s, %.2f GFLOP/s on %s: %s\n%s%s", r->id,
           tool_seconds(r->median, time, sizeof time), gflops(&r->workload, r->median), r->target.fingerprint,
           *r->workload.summary ? r->workload.summary : r->workload.exact_key, r->trace,
           *r->trace && r->trace[strlen(r->trace) - 1] == '\n' ? "" : "\n");
    return true;
}

/* One workload: its fastest; else the fastest of each workload on each target. */
static int best(session *x)
{
    int n, found;
    const store_summary *sum = store_summaries(x->cx, x->db, &x->q, &n);

    if (!sum)
        return fail(x);
    for (int i = 0; i < n; i++) {
        store_query one = x->q;

        one.exact_key = sum[i].workload.exact_key;
        one.anchor_key = sum[i].workload.anchor_key;
        one.target = sum[i].target.fingerprint;
        const store_record *const *r =
            store_best(x->cx, x->db, &one, x->s->limit > 0 ? (int)x->s->limit : 1, &found);
        for (int k = 0; k < found; k++)
            if (!print_record(x, r[k]))
                return fail(x);
        if (!r)
            return fail(x);
    }
    return TOOL_OK;
}

/* ---- export, import, merge ---- */

/* -1 with an error. */
static int64_t export_to(session *x, FILE *to)
{
    x->q.limit = x->s->limit;
    return store_export(x->cx, x->db, &x->q, to);
}

/* Beside the file, then in its place. The file gets the rights that a new file would have: mkstemp makes it
 * for the user alone. */
static int64_t export_file(session *x)
{
    char *part = base_format(x->cx, "%s.XXXXXX", x->s->output);
    int fd = mkstemp(part);
    FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    mode_t mask = umask(0);

    umask(mask);
    int64_t n = to && fchmod(fd, 0666 & ~mask) == 0 ? export_to(x, to) : -1;
    if (!to || fclose(to) != 0 || (n >= 0 && rename(part, x->s->output) != 0)) {
        base_fail(x->cx, TEC_IO, (base_loc){.file = x->s->output}, "cannot write: %s", strerror(errno));
        n = -1;
    }
    if (n < 0 && fd >= 0)
        unlink(part);
    return n;
}

static int export(session *x)
{
    tool_hold_interrupts(x->s->output != NULL);
    int64_t n = x->s->output ? export_file(x) : export_to(x, stdout);

    tool_hold_interrupts(false);
    if (n < 0)
        return fail(x);
    fprintf(stderr, "%" PRId64 " records\n", n);
    return TOOL_OK;
}

static void report_line(void *user, int64_t line, const char *why)
{
    fprintf(stderr, "%s:%" PRId64 ": %s\n", (const char *)user, line, why);
}

/* What an import or merge has added. */
static void print_counts(const session *x, const char *from, int64_t added, int64_t duplicates, int64_t bad)
{
    if (!x->s->json) {
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
static int import_file(session *x, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    FILE *from = standard ? stdin : fopen(path, "r");
    const store_import_options o = {.refuse = x->s->strict,
                                    .name = name,
                                    .bad_line = x->s->strict ? NULL : report_line,
                                    .user = (void *)name};
    store_imported got = {0};

    if (!from) {
        base_fail(x->cx, TEC_IO, (base_loc){.file = path}, "%s", strerror(errno));
        return fail(x);
    }
    bool ok = store_import(x->cx, x->db, from, &o, &got);
    if (!standard)
        fclose(from);
    if (!ok)
        return fail(x);
    print_counts(x, name, got.added, got.duplicates, got.bad);
    return got.bad && got.added + got.duplicates == 0 ? TOOL_FAILED : TOOL_OK;
}

static int import(session *x)
{
    int status = x->n_files ? TOOL_OK : import_file(x, "-");

    for (int i = 0; i < x->n_files && status == TOOL_OK; i++)
        status = import_file(x, x->files[i]);
    return status;
}

/* A store that cannot be opened ends the merge; those before it are in. */
static int merge(session *x)
{
    for (int i = 0; i < x->n_files; i++) {
        store *from = store_open(x->cx, x->files[i], &(store_options){.read_only = true});
        store_added added;
        bool ok = from && store_merge(x->cx, x->db, from, &added);

        store_close(from);
        if (!ok)
            return fail(x);
        print_counts(x, x->files[i], added.added, added.duplicates, 0);
    }
    return TOOL_OK;
}

/* ---- compact, check ---- */

/* Keeps the fastest records and says what that has freed. */
static int compact(session *x)
{
    store_compacted c;

    if (!store_compact(x->cx, x->db, (int)x->s->keep, &c))
        return fail(x);
    if (x->s->json) {
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

/* The trace, applied to the definition that the store has for it. Nothing is compiled: a trace that applies
 * is taken for good. */
static bool is_readable(void *user, tec_context *cx, const store_record *r)
{
    const target *t = target_parse(cx, r->target.text);
    const te_file *file = t ? te_parse(cx, "definition", r->workload.definition) : NULL;

    (void)user;
    if (!file)
        return false;
    if (file->defs.n != 1)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "expected one definition, found %d", file->defs.n);
    const ir_program *tree = te_tree(cx, file->defs.at[0]);
    sched *s = tree ? sched_new(cx, tree, t) : NULL;
    if (!s)
        return false;
    sched_use_intrinsics(s, &file->intrinsics);
    return sched_replay(s, "trace", r->trace) ||
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
static int check(session *x)
{
    cJSON *all = x->s->json ? cJSON_CreateArray() : NULL;
    const store_check_options o = {x->s->no_traces ? NULL : is_readable, print_problem, all};
    int64_t n = store_check(x->cx, x->db, &o);

    if (all)
        print_json(all);
    if (n < 0)
        return fail(x);
    if (!all)
        printf("%s: %" PRId64 " problems\n", store_path(x->db), n);
    return n ? TOOL_FAILED : TOOL_OK;
}

/* For a tec that knows no newer version of the schema. */
static int downgrade(session *x)
{
    if (!x->s->to)
        return tool_misuse("records", "which version the file gets is missing: --to N");
    if (!store_step_back(x->cx, x->db, (int)x->s->to))
        return fail(x);
    printf("%s: version %" PRId64 " of the schema\n", store_path(x->db), x->s->to);
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
static const char *idle_option(const action *a, const settings *s)
{
    const struct {
        const char *name;
        bool given;
    } given[] = {{"workload", s->workload}, {"target", s->target},       {"job", s->job},
                 {"o", s->output},          {"limit", s->limit != 0},    {"keep", s->keep != KEEP},
                 {"strict", s->strict},     {"no-traces", s->no_traces}, {"json", s->json},
                 {"to", s->to != 0}};
    char word[16];

    for (int i = 0; i < BASE_COUNT(given); i++) {
        snprintf(word, sizeof word, " %s ", given[i].name);
        if (given[i].given && !strstr(a->options, word))
            return given[i].name;
    }
    return NULL;
}

/* The store is opened as the action asks: reading never makes a store. */
static int run(const action *a, const settings *s, const tool_list *operands)
{
    session x = {.cx = tool_context(), .s = s, .files = operands->at + 2, .n_files = operands->n - 2};

    x.q.target = s->target;
    x.q.job = s->job;
    x.db = store_open(x.cx, operands->at[1], &a->open);
    int status = x.db && name_workload(&x) ? a->run(&x) : fail(&x);
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
