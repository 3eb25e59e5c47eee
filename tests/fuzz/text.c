/* tests/fuzz/text.c -- damaged `.te` files: the files of the tests and the pages, with tokens and lines
 * exchanged, read and scheduled.
 *
 *   TEC_MUTATIONS=1000000 TEC_MUTATION_SEED=7 build/asan/tests/test_fuzz_text --jobs 1
 *
 * Each text ends with an error, or as trees whose schedules were replayed, within seconds and megabytes. At
 * the end the test says how many texts there were, how many of them are definitions, and how many schedules
 * were accepted to the end.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schedule/sched.h"
#include "te/text.h"
#include "tests/mutate.h"

enum { MOST_SECONDS = 10, MOST_MEGABYTES = 2048, MOST_TOKENS = 100000 };

static uint64_t seed;
static base_vec texts;                        /* char *: whole files */
static base_vec words, numbers, marks, lines; /* char *: what they are made of */

static int below(int n)
{
    return n > 0 ? (int)base_random_below(&seed, n) : 0;
}

/* ---- what there is ---- */

static size_t token(const char *p)
{
    size_t n = 0;

    if (isalpha((unsigned char)*p) || *p == '_')
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
    else if (isdigit((unsigned char)*p))
        while (isalnum((unsigned char)p[n]) || p[n] == '.')
            n++;
    return n ? n : 1;
}

static base_vec *kind_of(const char *p)
{
    return isalpha((unsigned char)*p) || *p == '_' ? &words : isdigit((unsigned char)*p) ? &numbers : &marks;
}

static void learn(tec_context *cx, const char *text)
{
    for (const char *p = text; *p && words.n < MOST_TOKENS; p += token(p))
        if (!isspace((unsigned char)*p))
            base_push(cx, kind_of(p), base_strndup(cx, p, token(p)));
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
        base_push(cx, &lines, base_strndup(cx, p, strcspn(p, "\n")));
}

static void read_texts(tec_context *cx)
{
    static const char *const from[] = {"/tests/error/*.te", "/tests/regress/*.te", "/docs/schedule.d/*.te"};
    static const char *const rare[] = {
        "0", "-1", "9223372036854775807", "1e308", "4611686018427387904", "1000000", "4096"};

    for (int i = 0; i < BASE_COUNT(from); i++) {
        glob_t g;

        cr_assert_eq(glob(base_format(cx, "%s%s", TEC_SOURCE_DIR, from[i]), 0, NULL, &g), 0, "no %s",
                     from[i]);
        for (size_t k = 0; k < g.gl_pathc; k++) {
            char *text = base_read_file(cx, g.gl_pathv[k], NULL);

            cr_assert(text, "%s", tec_context_error(cx));
            base_push(cx, &texts, text);
            learn(cx, text);
        }
        globfree(&g);
    }
    for (int i = 0; i < BASE_COUNT(rare); i++)
        for (int k = 0; k < 40; k++)
            base_push(cx, &numbers, rare[i]);
}

/* ---- damage ---- */

/* The text with its piece at..at+n replaced. */
static char *spliced(tec_context *cx, const char *text, size_t at, size_t n, const char *by)
{
    return base_format(cx, "%.*s%s%s", (int)at, text, by, text + at + n);
}

static char *damage_token(tec_context *cx, const char *text)
{
    size_t at = (size_t)below((int)strlen(text)), n;

    while (at > 0 && token(text + at - 1) > 1 && !isspace((unsigned char)text[at - 1]))
        at--;
    n = token(text + at);
    const base_vec *like = below(10) ? kind_of(text + at) : &words;
    return isspace((unsigned char)text[at])
               ? base_strdup(cx, text)
               : spliced(cx, text, at, n, below(8) ? like->at[below(like->n)] : "");
}

static char *damage_line(tec_context *cx, const char *text)
{
    size_t at = (size_t)below((int)strlen(text));

    while (at > 0 && text[at - 1] != '\n')
        at--;
    size_t n = strcspn(text + at, "\n");
    if (below(2))
        return spliced(cx, text, at, 0, base_format(cx, "%s\n", (const char *)lines.at[below(lines.n)]));
    return spliced(cx, text, at, n, below(3) ? lines.at[below(lines.n)] : "");
}

static char *damage_byte(tec_context *cx, const char *text)
{
    char *copy = base_strdup(cx, text);

    copy[below((int)strlen(copy))] = (char)(1 + below(255));
    return copy;
}

static const char *damaged(tec_context *cx)
{
    const char *text = texts.at[below(texts.n)];

    for (int edits = below(4); edits > 0 && *text; edits--) {
        int how = below(20);

        text = how < 13 ? damage_token(cx, text) : how < 19 ? damage_line(cx, text) : damage_byte(cx, text);
    }
    return text;
}

/* ---- runs ---- */

static struct {
    int64_t texts, definitions, scheduled;
} total;

static void schedule(tec_context *cx, const te_file *f, const te_def *d, const target *t)
{
    const char *trace = base_dict_get(&f->schedules, d->name);
    const ir_program *tree = te_tree(cx, d);
    sched *s = tree ? sched_new(cx, tree, t) : NULL;

    if (!s)
        return;
    sched_use_intrinsics(s, &f->intrinsics);
    total.scheduled += !trace || sched_replay(s, "damaged.te", trace);
}

static void one(void)
{
    uint64_t start = seed;
    tec_context *cx = tec_context_new();
    const char *text = damaged(cx);
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");
    clock_t begin = clock();

    if (getenv("TEC_MUTATION_SHOW"))
        fprintf(stderr, "---- seed %llu\n%s\n", (unsigned long long)start, text);
    mutation_note(start);
    te_file *f = te_parse(cx, "damaged.te", text);
    total.texts++;
    total.definitions += f != NULL;
    cr_assert(f || tec_context_status(cx) != TEC_OK, "seed %llu: no error\n%s", (unsigned long long)start,
              text);
    for (int i = 0; f && i < f->defs.n && !base_failed(cx); i++)
        schedule(cx, f, f->defs.at[i], t);
    cr_assert_neq(tec_context_status(cx), TEC_INTERNAL, "seed %llu: %s\n%s", (unsigned long long)start,
                  tec_context_error(cx), text);
    clock_t took = (clock() - begin) / CLOCKS_PER_SEC;
    cr_assert(took <= MOST_SECONDS, "seed %llu takes %d s\n%s", (unsigned long long)start, (int)took, text);
    cr_assert(base_used(cx) >> 20 <= MOST_MEGABYTES, "seed %llu takes %zu MB\n%s", (unsigned long long)start,
              base_used(cx) >> 20, text);
    tec_context_free(cx);
}

Test(text, every_text_ends_with_an_error_or_a_schedule)
{
    int64_t n = mutation_count(1500);
    tec_context *cx = tec_context_new();

    seed = mutation_begin();
    read_texts(cx);
    for (int64_t i = 0; i < n; i++)
        one();
    fprintf(stderr, "%lld texts: %.1f %% definitions, %.1f %% scheduled to the end\n", (long long)total.texts,
            100.0 * (double)total.definitions / (double)total.texts,
            100.0 * (double)total.scheduled / (double)total.texts);
    cr_assert(total.definitions * 10 >= total.texts * 3, "too few texts are definitions");
    tec_context_free(cx);
}
