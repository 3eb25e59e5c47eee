/* tools/fuzz.c -- `tec fuzz`: random definitions under random schedules against the interpreter; findings are
 * shrunk and written down.
 *
 * A case is a function of the seed and its number alone. Rows come in the order of the cases, so that what is
 * printed and kept does not depend on the number of processes. With --resume the tally is kept in
 * DIR/state.json after every few cases, and the next run goes on there.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "compiler/generators.h"
#include "fuzz/fuzz.h"
#include "lower/pass.h"
#include "schedule/primitive.h"
#include "tools/command.h"
#include "tools/context.h"
#include "tools/data.h"
#include "tools/fuzz_jobs.h"
#include "tools/fuzz_plants.h"
#include "tools/fuzz_programs.h"
#include "tools/key_file.h"

enum { MAX_ROWS = 64, SAVE_EVERY = 32, MEDIAN_MOST = 64, SHRINK_BUDGET = 400 };

typedef struct {
    const char *target, *resume, *keep, *file, *plant, *rpc, *key_file;
    int64_t cases, seed, jobs, timeout, first, shrink;
    bool json, worker, programs, compile_only;
} settings;

typedef struct {
    const char *signature, *where, *what, *text;
    int64_t index, count;
} finding;

/* accepted[k] counts the cases with k steps that were accepted, for the median. */
typedef struct {
    tec_context *cx;
    const settings *s;
    const target *t;
    const char *unfit; /* why compiled code is not called; NULL: it is */
    int64_t next, outcomes[4], accepted[MEDIAN_MOST + 1], refused;
    int64_t primitives[MAX_ROWS], passes[MAX_ROWS];
    base_vec findings; /* finding *, one for each signature */
    base_dict limits;  /* what was not supported -> how often (int64_t *) */
    bool on_terminal;
    double start;
} tally;

/* ---- findings ---- */

/* Without what is quoted, and without numbers. In place. 'A': f32[4] and 'B': f32[128] become the same
 * pattern. */
static const char *pattern_of(char *text)
{
    char *to = text;
    bool quoted = false;

    for (char *from = text; *from; from++) {
        /* Names may hold quotes themselves. */
        if (*from == '\'' && (quoted ? !from[1] || strchr(" ,.:;)[]", from[1]) != NULL
                                     : from == text || strchr(" (", from[-1]) != NULL))
            quoted = !quoted;
        else if (!quoted && !(*from >= '0' && *from <= '9'))
            *to++ = *from == '\n' ? ' ' : *from;
    }
    *to = '\0';
    return text;
}

/* Where, without operands; of a crash, what it said on stderr. */
static const char *signature_of(tec_context *cx, const tool_fuzz_row *row)
{
    const char *line =
        strcmp(row->where, "crash") == 0 || strcmp(row->where, "definition") == 0 ? row->what : "";

    return pattern_of(base_format(cx, "%.*s %.160s", (int)strcspn(row->where, "("), row->where, line));
}

/* Cases are made again from seed and number, unless the row brings a text, as a case that was shrunk or that
 * died does. */
static const char *text_of(tally *sum, const tool_fuzz_row *row)
{
    if (row->text)
        return row->text;
    fuzz_case c = fuzz_make(sum->cx, (uint64_t)sum->s->seed, row->index, sum->t, NULL);
    return fuzz_case_text(sum->cx, &c, NULL);
}

/* Findings with the same signature count as one: mostly they are the same fault. */
static void add_finding(tally *sum, const tool_fuzz_row *row)
{
    const char *signature = signature_of(sum->cx, row);

    for (int i = 0; i < sum->findings.n; i++) {
        finding *f = sum->findings.at[i];

        if (strcmp(f->signature, signature) == 0) {
            f->count++;
            return;
        }
    }
    finding *f = base_new(sum->cx, finding);
    *f = (finding){signature, row->where, row->what, text_of(sum, row), row->index, 1};
    base_push(sum->cx, &sum->findings, f);
}

/* Counted by what is not supported, so that the most frequent gaps of the compiler are seen. */
static void add_limit(tally *sum, const tool_fuzz_row *row)
{
    const char *what = strstr(row->what, "error: "), *key;

    what = what ? what + strlen("error: ") : row->what;
    key = pattern_of(base_format(sum->cx, "%s: %.*s", row->where, (int)strcspn(what, "\n"), what));
    int64_t *n = base_dict_get(&sum->limits, key);

    if (!n) {
        n = base_new(sum->cx, int64_t);
        base_dict_put(sum->cx, &sum->limits, key, n);
    }
    ++*n;
}

/* ---- what is kept between runs ---- */

/* JSON has doubles: counts up to 2^53 are exact. */
static cJSON *numbers(const int64_t *at, int n)
{
    cJSON *a = cJSON_CreateArray();

    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(a, cJSON_CreateNumber((double)at[i]));
    return a;
}

/* The findings as they are kept in state.json and printed. */
static cJSON *findings_json(const tally *sum)
{
    cJSON *a = cJSON_CreateArray();

    for (int i = 0; i < sum->findings.n; i++) {
        const finding *f = sum->findings.at[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddNumberToObject(o, "case", (double)f->index);
        cJSON_AddNumberToObject(o, "count", (double)f->count);
        cJSON_AddStringToObject(o, "where", f->where);
        cJSON_AddStringToObject(o, "what", f->what);
        cJSON_AddStringToObject(o, "signature", f->signature);
        cJSON_AddStringToObject(o, "text", f->text);
        cJSON_AddItemToArray(a, o);
    }
    return a;
}

static bool write_json(tally *sum, cJSON *object, const char *path)
{
    char *text = cJSON_Print(object);
    bool good = base_write_file(sum->cx, path, text, strlen(text));

    free(text);
    cJSON_Delete(object);
    return good;
}

/* Writes the tally, so that --resume goes on behind the last case. */
static bool save(tally *sum)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "seed", (double)sum->s->seed);
    cJSON_AddStringToObject(o, "target", sum->s->target);
    cJSON_AddNumberToObject(o, "next", (double)sum->next);
    cJSON_AddNumberToObject(o, "refused", (double)sum->refused);
    cJSON_AddItemToObject(o, "outcomes", numbers(sum->outcomes, BASE_COUNT(sum->outcomes)));
    cJSON_AddItemToObject(o, "accepted", numbers(sum->accepted, BASE_COUNT(sum->accepted)));
    cJSON_AddItemToObject(o, "primitives", numbers(sum->primitives, sched_n_primitives));
    cJSON_AddItemToObject(o, "passes", numbers(sum->passes, lower_n_passes));
    cJSON_AddItemToObject(o, "findings", findings_json(sum));
    return write_json(sum, o, base_format(sum->cx, "%s/state.json", sum->s->resume));
}

static int64_t number_of(const cJSON *object, const char *key)
{
    const cJSON *n = cJSON_GetObjectItem(object, key);

    return cJSON_IsNumber(n) ? (int64_t)n->valuedouble : 0;
}

static const char *string_of(tally *sum, const cJSON *object, const char *key)
{
    const cJSON *s = cJSON_GetObjectItem(object, key);

    return cJSON_IsString(s) ? base_strdup(sum->cx, s->valuestring) : "";
}

/* Missing ones stay as they are, so that a state from before a new pass can be read. */
static void read_numbers(const cJSON *object, const char *key, int64_t *out, int n)
{
    const cJSON *a = cJSON_GetObjectItem(object, key);

    for (int i = 0; i < n && i < cJSON_GetArraySize(a); i++)
        out[i] = (int64_t)cJSON_GetArrayItem(a, i)->valuedouble;
}

/* The tally that an earlier run left. */
static void read_state(tally *sum, const cJSON *object)
{
    const cJSON *row;

    sum->next = number_of(object, "next");
    sum->refused = number_of(object, "refused");
    read_numbers(object, "outcomes", sum->outcomes, BASE_COUNT(sum->outcomes));
    read_numbers(object, "accepted", sum->accepted, BASE_COUNT(sum->accepted));
    read_numbers(object, "primitives", sum->primitives, sched_n_primitives);
    read_numbers(object, "passes", sum->passes, lower_n_passes);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(object, "findings"))
    {
        finding *f = base_new(sum->cx, finding);

        *f = (finding){string_of(sum, row, "signature"), string_of(sum, row, "where"),
                       string_of(sum, row, "what"),      string_of(sum, row, "text"),
                       number_of(row, "case"),           number_of(row, "count")};
        base_push(sum->cx, &sum->findings, f);
    }
}

/* A new directory starts at case 0; one of another seed or target is refused. Cases of another seed or target
 * would be counted together with these. */
static bool go_on(tally *sum)
{
    const char *path = base_format(sum->cx, "%s/state.json", sum->s->resume);
    size_t size;

    mkdir(sum->s->resume, 0777);
    if (access(path, F_OK) != 0)
        return true;
    char *text = base_read_file(sum->cx, path, &size);
    cJSON *o = text ? cJSON_Parse(text) : NULL;
    bool fits =
        o && number_of(o, "seed") == sum->s->seed && strcmp(string_of(sum, o, "target"), sum->s->target) == 0;
    if (fits)
        read_state(sum, o);
    else if (text)
        base_fail(sum->cx, TEC_INVALID, (base_loc){.file = path},
                  o ? "it belongs to another seed or target" : "it is not a state of 'tec fuzz'");
    cJSON_Delete(o);
    return fits;
}

/* ---- progress ---- */

/* Drawn over the line before. */
static void show_progress(const tally *sum)
{
    double seconds = tec_clock() - sum->start;
    int64_t done = sum->outcomes[0] + sum->outcomes[1] + sum->outcomes[2] + sum->outcomes[3];

    if (sum->on_terminal)
        fprintf(stderr, "\r%" PRId64 " cases, %" PRId64 " wrong, %" PRId64 " unsupported, %.1f/s ", done,
                sum->outcomes[FUZZ_WRONG], sum->outcomes[FUZZ_UNSUPPORTED],
                seconds > 0 ? (double)(sum->next - sum->s->first) / seconds : 0);
}

/* Called for each case in their order. False would end the run; a finding does not. */
static bool take_row(void *user, const tool_fuzz_row *row)
{
    tally *t = user;

    t->outcomes[row->outcome]++;
    t->accepted[row->accepted < MEDIAN_MOST ? row->accepted : MEDIAN_MOST]++;
    t->refused += row->refused;
    for (int i = 0; i < MAX_ROWS; i++) {
        t->primitives[i] += (int64_t)(row->primitives >> i & 1);
        t->passes[i] += (int64_t)(row->passes >> i & 1);
    }
    t->next = row->index + 1;
    if (row->outcome == FUZZ_UNSUPPORTED)
        add_limit(t, row);
    if (row->outcome == FUZZ_WRONG || row->outcome == FUZZ_INVALID) {
        if (!t->s->json)
            printf("%scase %" PRId64 ": %s: %s\n", t->on_terminal ? "\n" : "", row->index, row->where,
                   row->what);
        fflush(stdout);
        add_finding(t, row);
    }
    show_progress(t);
    if (t->s->resume && t->next % SAVE_EVERY == 0)
        save(t);
    return true;
}

/* ---- shrinking ---- */

/* What `still_fails` needs to ask: the file that the child reads, and the signature that must stay. */
typedef struct {
    tally *t;
    const tool_fuzz_jobs *jobs;
    const char *path, *signature;
} question;

/* Whether a smaller case fails in the same way: shrinking must not wander to another fault. */
static bool still_fails(void *user, const fuzz_case *sample)
{
    question *q = user;
    tool_fuzz_row row = {0};
    tec_context *cx = tool_context();
    tool_fuzz_jobs jobs = *q->jobs;
    const char *text = fuzz_case_text(cx, sample, NULL);

    jobs.cx = cx;
    bool bad = base_write_file(cx, q->path, text, strlen(text)) && tool_fuzz_try(&jobs, q->path, &row) &&
               (row.outcome == FUZZ_WRONG || row.outcome == FUZZ_INVALID) &&
               strcmp(signature_of(cx, &row), q->signature) == 0;
    tec_context_free(cx);
    return bad;
}

/* A finding whose text cannot be read back stays as long as it was. */
static void shrink(tally *sum, const tool_fuzz_jobs *jobs, finding *self)
{
    const char *dir = sum->s->resume ? sum->s->resume : "/tmp";
    question q = {sum, jobs, base_format(sum->cx, "%s/tec-fuzz-%d.te", dir, (int)getpid()), self->signature};
    fuzz_case c;

    if (!fuzz_case_parse(sum->cx, "case.te", self->text, &c)) {
        tec_context_clear(sum->cx);
        return;
    }
    fuzz_case small = fuzz_shrink(sum->cx, &c, still_fails, &q, SHRINK_BUDGET);
    unlink(q.path);
    self->text = fuzz_case_text(sum->cx, &small, base_format(sum->cx, "%s: %s", self->where, self->what));
}

/* Into the directory of --keep, that of --resume, or where regressions are when run from the root of the
 * sources. */
static void write_down(tally *sum, const finding *self)
{
    const char *dir = sum->s->keep                         ? sum->s->keep
                      : sum->s->resume                     ? sum->s->resume
                      : access("tests/regress", W_OK) == 0 ? "tests/regress"
                                                           : NULL;

    if (!dir)
        return;
    mkdir(dir, 0777);
    base_write_file(
        sum->cx,
        base_format(sum->cx, "%s/seed%" PRId64 "-case%" PRId64 ".te", dir, sum->s->seed, self->index),
        self->text, strlen(self->text));
}

static void look_into(tally *sum, const tool_fuzz_jobs *jobs)
{
    for (int i = 0; i < sum->findings.n; i++) {
        finding *f = sum->findings.at[i];

        if (i < sum->s->shrink)
            shrink(sum, jobs, f);
        write_down(sum, f);
        if (!sum->s->json)
            printf("\n%" PRId64 " times: %s: %s\n%s", f->count, f->where, f->what, f->text);
    }
}

/* ---- the report ---- */

/* An example: counts 0, 2, 1 are the values 1, 1, 2, whose median is 1. */
static int64_t median(const int64_t *count, int number)
{
    int64_t all = 0, seen = 0;
    int i = 0;

    for (int k = 0; k < number; k++)
        all += count[k];
    for (; i < number - 1 && (seen += count[i]) * 2 < all; i++)
        ;
    return i;
}

static double percent(int64_t n, int64_t all)
{
    return all ? 100.0 * (double)n / (double)all : 0;
}

/* Outcomes, then how often each primitive and each pass had something to do: a row of 0 is not tested at all.
 */
static void print_table(const tally *sum)
{
    int64_t all = sum->outcomes[0] + sum->outcomes[1] + sum->outcomes[2] + sum->outcomes[3];

    printf("\nseed %" PRId64 ", cases %" PRId64 " to %" PRId64 ", target %s\n", sum->s->seed, sum->s->first,
           sum->next - 1, sum->s->target);
    printf("%" PRId64 " same, %" PRId64 " unsupported, %" PRId64 " invalid, %" PRId64
           " wrong; median of %" PRId64 " steps, %" PRId64 " refused; %.1f s\n",
           sum->outcomes[FUZZ_SAME], sum->outcomes[FUZZ_UNSUPPORTED], sum->outcomes[FUZZ_INVALID],
           sum->outcomes[FUZZ_WRONG], median(sum->accepted, BASE_COUNT(sum->accepted)), sum->refused,
           tec_clock() - sum->start);
    if (sum->unfit)
        printf("code was compiled, but not called: %s\n", sum->unfit);
    printf("\n%-22s changed the tree   %-22s changed the program\n", "primitive", "pass");
    for (int i = 0; i < sched_n_primitives || i < lower_n_passes; i++) {
        printf("%-22s", i < sched_n_primitives ? sched_primitives[i].name : "");
        if (i < sched_n_primitives)
            printf("%6" PRId64 " %7.2f %%", sum->primitives[i], percent(sum->primitives[i], all));
        else
            printf("%16s", "");
        if (i < lower_n_passes)
            printf("   %2d %-19s%6" PRId64 " %7.2f %%", i + 1, lower_passes[i].name, sum->passes[i],
                   percent(sum->passes[i], all));
        printf("\n");
    }
    for (int i = 0; i < sum->limits.order.n; i++)
        printf("%snot supported, %" PRId64 " times: %s\n", i ? "" : "\n",
               *(int64_t *)base_dict_get(&sum->limits, sum->limits.order.at[i]),
               (const char *)sum->limits.order.at[i]);
}

/* The same as one JSON object. */
static void print_json(tally *sum)
{
    static const char *const words[] = {"same", "unsupported", "invalid", "wrong"};
    cJSON *o = cJSON_CreateObject(), *primitives = cJSON_AddObjectToObject(o, "primitives"),
          *passes = cJSON_AddArrayToObject(o, "passes");

    cJSON_AddNumberToObject(o, "seed", (double)sum->s->seed);
    cJSON_AddNumberToObject(o, "cases", (double)sum->next);
    for (int i = 0; i < BASE_COUNT(words); i++)
        cJSON_AddNumberToObject(o, words[i], (double)sum->outcomes[i]);
    cJSON_AddNumberToObject(o, "median_steps", (double)median(sum->accepted, BASE_COUNT(sum->accepted)));
    cJSON_AddNumberToObject(o, "refused_steps", (double)sum->refused);
    cJSON_AddNumberToObject(o, "seconds", tec_clock() - sum->start);
    cJSON_AddBoolToObject(o, "called", !sum->unfit);
    if (sum->unfit)
        cJSON_AddStringToObject(o, "why_not_called", sum->unfit);
    for (int i = 0; i < sched_n_primitives; i++)
        cJSON_AddNumberToObject(primitives, sched_primitives[i].name, (double)sum->primitives[i]);
    for (int i = 0; i < lower_n_passes; i++) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddStringToObject(row, "pass", lower_passes[i].name);
        cJSON_AddNumberToObject(row, "changed", (double)sum->passes[i]);
        cJSON_AddItemToArray(passes, row);
    }
    cJSON_AddItemToObject(o, "findings", findings_json(sum));
    char *text = cJSON_Print(o);
    printf("%s\n", text);
    free(text);
    cJSON_Delete(o);
}

/* ---- the command ---- */

/* Runs the range of cases, then looks into what failed. The state is saved even where the run was
 * interrupted. */
static int fuzz(tally *sum)
{
    const settings *s = sum->s;

    sum->next = s->first;
    if (s->resume && !go_on(sum))
        return tool_fail("fuzz", sum->cx);
    tool_fuzz_jobs jobs = {.cx = sum->cx,
                           .target = s->target,
                           .rpc = s->rpc,
                           .key_file = s->key_file,
                           .compile_only = sum->unfit != NULL,
                           .seed = (uint64_t)s->seed,
                           .first = sum->next,
                           .end = sum->next + s->cases,
                           .jobs = (int)s->jobs,
                           .timeout = (double)s->timeout,
                           .row = take_row,
                           .user = sum};
    const char *why;
    bool whole = tool_fuzz_run(&jobs, &why);
    if (why)
        fprintf(stderr, "tec fuzz: %s\n", why);
    else if (!whole)
        fprintf(stderr, "\ntec fuzz: interrupted before case %" PRId64 "\n", sum->next);
    if (whole)
        look_into(sum, &jobs);
    if (s->resume && !save(sum))
        return tool_fail("fuzz", sum->cx);
    if (s->json)
        print_json(sum);
    else
        print_table(sum);
    return !whole || sum->outcomes[FUZZ_WRONG] || sum->outcomes[FUZZ_INVALID] ? TOOL_FAILED : TOOL_OK;
}

/* The process that tries the cases, started by the one that counts and shrinks: a crash costs a case. */
static int work(const tally *sum)
{
    const settings *s = sum->s;
    const char *kind = comp_codegen(sum->t)->device;
    tool_fuzz_server server = {.address = s->rpc,
                               .key_file = s->key_file,
                               .device = kind ? base_format(sum->cx, "%s:0", kind) : NULL,
                               .compile_only = s->compile_only};

    return s->file
               ? tool_fuzz_work_file(sum->t, sum->cx, &server, s->file)
               : tool_fuzz_work(sum->t, sum->cx, &server, (uint64_t)s->seed, s->first, s->first + s->cases);
}

/* Says once, before the first case, that code is not called, and why: otherwise each case would fail by it.
 * False: the run needs the code, as programs do, which run on the target. */
static bool ask_machine(tally *sum)
{
    const settings *s = sum->s;

    if (s->worker || s->rpc || strcmp(s->plant, "list") == 0)
        return true;
    sum->unfit = s->compile_only ? "--compile-only is given" : fuzz_unfit(sum->cx, sum->t);
    if (sum->unfit && s->programs)
        return base_fail(sum->cx, TEC_UNSUPPORTED, (base_loc){0},
                         "--programs runs programs on the target, but code for '%s' cannot be called: %s",
                         s->target, sum->unfit);
    if (sum->unfit && !s->compile_only)
        fprintf(stderr, "tec fuzz: code for '%s' is compiled, but not called: %s\n", s->target, sum->unfit);
    return true;
}

/* Decides whether this process is the parent, a worker, or counts planted faults. */
static int start(const settings *given)
{
    tally t = {.cx = tool_context(),
               .s = given,
               .on_terminal = isatty(STDERR_FILENO) && !given->json,
               .start = tec_clock()};
    int status = TOOL_FAILED;

    t.t = tool_target(t.cx, given->target, 2);
    if (!t.t || (given->worker && !tool_fuzz_plant(t.cx, given->plant)) || !ask_machine(&t))
        status = tool_fail("fuzz", t.cx);
    else if (given->programs)
        status = tool_fuzz_programs_run(t.cx, &(tool_fuzz_programs){t.t, (uint64_t)given->seed, given->first,
                                                                    given->cases, given->plant});
    else if (given->worker)
        status = work(&t);
    else if (strcmp(given->plant, "none") != 0)
        status = tool_fuzz_plants(&(tool_fuzz_jobs){.cx = t.cx,
                                                    .target = given->target,
                                                    .compile_only = t.unfit != NULL,
                                                    .seed = (uint64_t)given->seed,
                                                    .first = given->first,
                                                    .end = given->first + given->cases,
                                                    .jobs = (int)given->jobs,
                                                    .timeout = (double)given->timeout},
                                  given->plant);
    else
        status = fuzz(&t);
    tec_context_free(t.cx);
    return status;
}

/* Reads the command line into *to. */
static int read_options(int argc, char **argv, settings *to)
{
    tool_list none = {0};
    const tool_option options[] = {
        {"cases", TOOL_COUNT, &to->cases, "N", "the number of cases (default: 1000)"},
        {"seed", TOOL_NUMBER, &to->seed, "S", "the seed that the cases are drawn from (default: 1)"},
        {"jobs", TOOL_COUNT, &to->jobs, "N",
         "runs N processes at the same time (default: the number of cores)"},
        {"target", TOOL_TARGET, &to->target, "T",
         "what to compile for (native); where this machine cannot call the code, it is compiled only"},
        {"compile-only", TOOL_FLAG, &to->compile_only, NULL, "compiles the code, but does not call it"},
        {"rpc", TOOL_TEXT, &to->rpc, "A:P", "an rpc_server that runs the code, instead of this machine"},
        {"key-file", TOOL_TEXT, &to->key_file, "F",
         "with --rpc: keys, of which one may submit (that of this machine's loopback server)"},
        {"resume", TOOL_TEXT, &to->resume, "DIR", "keeps its state there, and goes on where it stopped"},
        {"keep", TOOL_TEXT, &to->keep, "DIR",
         "writes each finding to this directory as a .te file (default: the directory of --resume, otherwise "
         "tests/regress if it exists)"},
        {"shrink", TOOL_NATURAL, &to->shrink, "N",
         "shrinks the first N findings to smaller cases (default: 8)"},
        {"timeout", TOOL_COUNT, &to->timeout, "S",
         "fails a case that takes more than S seconds of processor time (default: 60)"},
        {"first", TOOL_NATURAL, &to->first, "K", "begins at case K (default: 0)"},
        {"file", TOOL_TEXT, &to->file, "FILE.te", "with --worker: runs only this case"},
        {"plant", TOOL_TEXT, &to->plant, "NAME",
         "debug builds: plants a fault in the compiler and counts the cases until it is found; NAME is a "
         "name, a number, all, or list"},
        {"programs", TOOL_FLAG, &to->programs, NULL,
         "tests random programs instead: the interpreter of graphs and the VM must agree"},
        {"json", TOOL_FLAG, &to->json, NULL, "prints JSON"},
        {"worker", TOOL_FLAG, &to->worker, NULL, "internal: runs cases in this process"},
    };
    const tool_usage usage = {"fuzz",
                              "",
                              "Draws random definitions with random legal schedules. The interpreter, the "
                              "program after each pass and "
                              "the machine code must give equal bits.",
                              options,
                              BASE_COUNT(options),
                              0,
                              0};
    return tool_parse(&usage, argc, argv, &none);
}

/* The command: with --rpc the keys are found first, so that a missing file is told before any case is drawn.
 */
int tool_fuzz(int argc, char **argv)
{
    char keys[PATH_MAX];
    settings s = {.target = "native",
                  .cases = 1000,
                  .seed = 1,
                  .jobs = sysconf(_SC_NPROCESSORS_ONLN),
                  .timeout = 60,
                  .shrink = 8,
                  .plant = "none"};
    int status = read_options(argc, argv, &s);

    if (status != TOOL_GO_ON)
        return status;
    if (s.key_file && !s.rpc)
        return tool_misuse("fuzz", "--key-file needs --rpc");
    if (s.compile_only && (s.rpc || s.programs))
        return tool_misuse("fuzz", "--compile-only does not go with %s", s.rpc ? "--rpc" : "--programs");
    if (s.rpc && !tool_key_file(s.key_file, keys, sizeof keys))
        return tool_misuse("fuzz", "cannot find the key file: --key-file is not given and HOME is not set");
    if (s.rpc)
        s.key_file = keys;
    return start(&s);
}
