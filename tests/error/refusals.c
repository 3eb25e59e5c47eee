/* tests/error/refusals.c -- one file for each way in which a step of a schedule is refused.
 *
 *     # The iterations of a tile must reach the end of the loop.
 *     def f(A: f32[10]) { C[i] = A[i] * 2.0 return C }
 *
 *     schedule f {
 *       # refused: split(C.i, 2, 3): the factors make 6 iterations;
 *           it is not proven that they reach the extent 10 of 'C.i'
 *       split(C.i, 2, 3)
 *       split(C.i, 2, 5)
 *     }
 *
 * Of every .te file (a definition) and .tir file (a tree, where no definition has one like it) of this
 * folder:
 * - the steps above the comment are accepted;
 * - the step below it is refused with that message, behind the file and the line where it stands;
 * - tree and trace print as they did before it, and the steps that follow are accepted: it would have been
 *   the only mistake;
 * - a replay of the whole schedule gives the same message and changes nothing.
 * `# target: NAME` says for what the schedule is made. No two files show the same message of the same
 * primitive, and every message in schedule/ has a file, or a test in api.c where the text form cannot say it.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <fnmatch.h>
#include <glob.h>
#include <string.h>

#include "ir/text.h"
#include "schedule/sched.h"
#include "te/text.h"
#include "tests/plain.h"

#define FOLDER TEC_SOURCE_DIR "/tests/error/"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}

TestSuite(refusals, .init = open_context, .fini = close_context);

/* ---- files ---- */

/* Parts of a trace keep their lines: what belongs to another part is left empty. */
typedef struct {
    const char *path; /* from the folder of the sources, as a user would give it */
    const char *tree; /* what the schedule is made for */
    base_text before, wrong, after;
    const char *expected; /* the message without file and line */
    const char *target;
    int line;
} refusal;

static const char *behind(const char *line, const char *prefix)
{
    line += strspn(line, " ");
    return strncmp(line, prefix, strlen(prefix)) == 0 ? line + strlen(prefix) : NULL;
}

/* The part of the trace that a line belongs to, which is the one after the step that is refused once that was
 * seen. */
static base_text *part_of(refusal *r, const char *line, int number, bool in_schedule)
{
    bool step = in_schedule && !behind(line, "#") && *behind(line, "");

    if (!step)
        return NULL;
    if (!r->expected)
        return &r->before;
    if (r->line)
        return &r->after;
    r->line = number;
    return &r->wrong;
}

static void read_line(refusal *r, const char *line, int number, bool in_schedule)
{
    base_text *parts[] = {&r->before, &r->wrong, &r->after}, *own = part_of(r, line, number, in_schedule);

    if (behind(line, "# refused: "))
        r->expected = behind(line, "# refused: ");
    if (behind(line, "# target: "))
        r->target = behind(line, "# target: ");
    for (int i = 0; i < BASE_COUNT(parts); i++)
        base_addf(cx, parts[i], "%s\n", parts[i] == own ? line : "");
}

static refusal read_refusal(const char *path)
{
    size_t size;
    refusal r = {.path = path + strlen(TEC_SOURCE_DIR "/")};
    const char *text = base_read_file(cx, path, &size), *schedule = strstr(text, "\nschedule ");
    bool inside = false;

    cr_assert(schedule, "%s has no schedule", r.path);
    r.tree = base_strndup(cx, text, (size_t)(schedule + 1 - text));
    for (int number = 1; *text; number++) {
        size_t n = strcspn(text, "\n");
        const char *line = base_strndup(cx, text, n);

        if (strcmp(line, "}") == 0)
            inside = false;
        read_line(&r, line, number, inside);
        inside = inside || behind(line, "schedule ");
        text += n + (text[n] == '\n');
    }
    cr_assert(r.expected && r.line, "%s has no line '# refused: MESSAGE' with a step below it", r.path);
    return r;
}

static void each_file(void (*visit)(const refusal *r, void *data), void *data)
{
    static const char *const patterns[] = {FOLDER "*.te", FOLDER "*.tir"};
    glob_t g;

    for (int i = 0; i < BASE_COUNT(patterns); i++)
        cr_assert(glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &g) == 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        refusal r = read_refusal(g.gl_pathv[i]);

        visit(&r, data);
    }
    globfree(&g);
}

/* ---- what each file says, holds ---- */

static sched *start(const refusal *r)
{
    const target *t = r->target ? target_parse(cx, r->target) : NULL;
    const te_intrinsics *intrinsics = NULL;
    const ir_program *tree;

    if (strcmp(strrchr(r->path, '.'), ".tir") == 0) {
        tree = ir_parse_program(cx, r->path, r->tree);
    } else {
        te_file *f = te_parse(cx, r->path, r->tree);
        tree = f ? te_tree(cx, f->defs.at[0]) : NULL;
        intrinsics = f ? &f->intrinsics : NULL;
    }
    cr_assert(tree && (t || !r->target), "%s: %s", r->path, tec_context_error(cx));
    sched *s = sched_new(cx, tree, t);
    sched_use_intrinsics(s, intrinsics);
    return s;
}

static const char *state_text(const sched *s)
{
    return base_format(cx, "%s%s", ir_program_text(cx, sched_tree(s)), sched_trace_text(cx, s));
}

/* Replays a trace that must be refused; NULL where the message is the expected one and the schedule is as it
 * was. */
static const char *refuses(sched *s, const refusal *r, const char *trace)
{
    const char *before = state_text(s),
               *expected = base_format(cx, "%s:%d: %s", r->path, r->line, r->expected);

    if (sched_replay(s, r->path, trace))
        return "it is accepted";
    if (strcmp(plain(cx, sched_error(s)), expected) != 0)
        return base_format(cx, "the message is %s", sched_error(s));
    if (strcmp(state_text(s), before) != 0)
        return "it is refused, and yet the schedule has changed";
    if (tec_context_status(cx) != TEC_OK)
        return "it leaves an error in the context";
    sched_clear(s);
    return NULL;
}

static const char *whole_trace(const refusal *r)
{
    base_text t = {0};
    const char *part[] = {r->before.data, r->wrong.data, r->after.data};

    for (const char *end = part[0]; *end;) {
        for (int i = 0; i < 3; i++) {
            base_addn(cx, &t, part[i], strcspn(part[i], "\n"));
            part[i] += strcspn(part[i], "\n") + 1;
        }
        base_add(cx, &t, "\n");
        end = part[0];
    }
    return base_text_str(cx, &t);
}

/* NULL where all of it holds. */
static const char *complaint(const refusal *r)
{
    sched *s = start(r), *whole = start(r);
    const char *reason;

    if (!sched_replay(s, r->path, r->before.data))
        return sched_error(s);
    if ((reason = refuses(s, r, r->wrong.data)))
        return reason;
    const char *before = sched_trace_text(cx, s);
    if (!sched_replay(s, r->path, r->after.data))
        return base_format(cx, "a step that follows: %s", sched_error(s));
    if (strcmp(before, sched_trace_text(cx, s)) == 0)
        return "no step follows the one that is refused";
    return (reason = refuses(whole, r, whole_trace(r))) ? base_format(cx, "as a whole: %s", reason) : NULL;
}

static void check_file(const refusal *r, void *data)
{
    const char *reason = complaint(r);

    if (reason)
        base_addf(cx, data, "%s:%d: expected: %s\n    %s\n", r->path, r->line, r->expected, reason);
}

Test(refusals, every_file_is_refused_where_it_says_and_goes_on)
{
    base_text complaints = {0};

    each_file(check_file, &complaints);
    cr_assert(complaints.n == 0, "%s", complaints.data);
}

/* ---- the messages ---- */

/* Without the primitive and its arguments. */
static const char *reason_of(const refusal *r)
{
    const char *end = strstr(r->expected, "): ");

    return end ? end + 3 : r->expected;
}

/* Without quoted names and numbers. */
static const char *general(const char *message)
{
    base_text t = {0};
    bool quoted = false;

    for (const char *p = message; *p; p++) {
        bool apostrophe = *p == '\'' && (quoted ? !isdigit((unsigned char)p[1]) : true);

        quoted = quoted != apostrophe;
        if (!quoted && !isdigit((unsigned char)*p))
            base_addn(cx, &t, p, 1);
    }
    return base_text_str(cx, &t);
}

typedef struct {
    base_dict shown;    /* primitive and message -> path */
    base_dict messages; /* message */
    int n;
    base_text twice;
} messages;

static void note_message(const refusal *r, void *data)
{
    messages *m = data;
    const char *message = general(reason_of(r)),
               *key = base_format(cx, "%.*s %s", (int)strcspn(r->expected, "("), r->expected, message),
               *other = base_dict_get(&m->shown, key);

    if (other)
        base_addf(cx, &m->twice, "%s and %s: %s\n", other, r->path, key);
    base_dict_put(cx, &m->shown, key, r->path);
    m->n += !base_dict_has(&m->messages, message);
    base_dict_put(cx, &m->messages, message, r->path);
}

Test(refusals, are_distinct_and_many)
{
    messages m = {0};

    each_file(note_message, &m);
    cr_assert(m.twice.n == 0, "%s", m.twice.data);
    cr_assert(m.n >= 120, "the files show %d messages", m.n);
}

/* ---- every message in the sources has a file ---- */

/* The string literals of C source, neighbours joined. Comments count as space. */
static const char *next_literal(const char *p, base_text *out)
{
    bool any = false;

    *out = (base_text){0};
    while (*p) {
        if (strncmp(p, "/*", 2) == 0 && strstr(p + 2, "*/"))
            p = strstr(p + 2, "*/") + 2;
        else if (*p == '\'')
            p += p[1] == '\\' ? 4 : 3;
        else if (*p == '"') {
            any = true;
            for (p++; *p && *p != '"'; p++) {
                p += *p == '\\';
                base_addn(cx, out, p, 1);
            }
            p += *p == '"';
        } else if (any && !isspace((unsigned char)*p))
            break;
        else
            p++;
    }
    return any ? p : NULL;
}

/* A message is a string of three words or more. */
static bool is_message(const char *s)
{
    int words = 0;

    for (; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");

        words += n > 1 || isalpha((unsigned char)*s);
        s += n;
    }
    return words >= 3;
}

/* A format as a pattern for fnmatch. */
static const char *pattern_of(const char *format)
{
    base_text t = {0};

    for (const char *p = format; *p; p++) {
        if (*p == '%') {
            p += strcspn(p, "sd");
            base_add(cx, &t, "*");
            continue;
        }
        if (strchr("[]?*\\", *p))
            base_add(cx, &t, "\\");
        base_addn(cx, &t, p, 1);
    }
    return base_text_str(cx, &t);
}

static void note_reason(const refusal *r, void *data)
{
    base_push(cx, data, base_strdup(cx, reason_of(r)));
}

/* What api.c provokes: it holds the texts of those messages. */
static void note_texts_of_api(base_vec *shown)
{
    size_t size;
    base_text literal;
    const char *p = base_read_file(cx, FOLDER "api.c", &size);

    while ((p = next_literal(p, &literal)))
        base_push(cx, shown, base_text_str(cx, &literal));
}

/* A part of a message begins or ends it, or is what a parser expected. */
static bool is_shown(const base_vec *shown, const char *format)
{
    static const char *const places[] = {"%s*", "*%s", "*expected %s, found*"};

    for (int k = 0; k < BASE_COUNT(places); k++) {
        const char *pattern = base_format(cx, places[k], pattern_of(format));

        for (int i = 0; i < shown->n; i++)
            if (fnmatch(pattern, shown->at[i], 0) == 0)
                return true;
    }
    return false;
}

/* verify.c and BASE_BUG speak of our own mistakes. */
static void look_at_source(const char *path, const base_vec *shown, base_text *missing)
{
    size_t size;
    base_text literal;
    const char *text = base_read_file(cx, path, &size), *next;

    for (const char *p = text; (next = next_literal(p, &literal)); p = next) {
        const char *message = base_text_str(cx, &literal), *bug = strstr(p, "BASE_BUG");

        if (is_message(message) && !(bug && bug < next) && !is_shown(shown, message))
            base_addf(cx, missing, "%s: %s\n", path + strlen(TEC_SOURCE_DIR "/"), message);
    }
}

Test(refusals, every_message_of_the_primitives_has_a_file)
{
    base_vec shown = {0};
    base_text missing = {0};
    glob_t g;

    each_file(note_reason, &shown);
    note_texts_of_api(&shown);
    cr_assert(glob(TEC_SOURCE_DIR "/schedule/*.c", 0, NULL, &g) == 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        if (!strstr(g.gl_pathv[i], "/verify.c"))
            look_at_source(g.gl_pathv[i], &shown, &missing);
    globfree(&g);
    cr_assert(missing.n == 0, "messages without a file:\n%s", missing.data);
}
