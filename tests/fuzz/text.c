/* tests/fuzz/text.c -- damaged `.te` files: the files of the tests and the pages, with tokens and lines
 * exchanged, read and scheduled.
 *
 *   TEC_MUTATIONS=1000000 TEC_MUTATION_SEED=7 build/asan/tests/test_fuzz_text --jobs 1 --timeout 9000
 *
 * Each text ends with an error, or as trees whose schedules were replayed and as texts that say the same,
 * within seconds and megabytes. At the end the test says how many texts there were, how many of them are
 * definitions, and how many schedules were accepted to the end. tests/fuzz/steps.c damages schedules alone.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "schedule/sched.h"
#include "te/text.h"
#include "tests/damage.h"

enum { MOST_SECONDS = 10, MOST_MEGABYTES = 2048 };

static void read_texts(tec_context *cx)
{
    static const char *const from[] = {"/tests/error/*.te", "/tests/regress/*.te", "/docs/schedule.d/*.te",
                                       "/examples/*.te", "/tests/compiler/lowered/*.te"};
    static const char *const pages[] = {"te", "tensorize", "space", "gpu"};
    static const char *const rare[] = {
        "0", "-1", "9223372036854775807", "1e308", "4611686018427387904", "1000000", "4096"};

    for (int i = 0; i < BASE_COUNT(from); i++) {
        glob_t g;

        cr_assert_eq(glob(base_format(cx, "%s%s", TEC_SOURCE_DIR, from[i]), 0, NULL, &g), 0, "no %s",
                     from[i]);
        for (size_t k = 0; k < g.gl_pathc; k++) {
            char *text = base_read_file(cx, g.gl_pathv[k], NULL);

            cr_assert(text, "%s", tec_context_error(cx));
            learn(cx, text);
        }
        globfree(&g);
    }
    for (int i = 0; i < BASE_COUNT(pages); i++)
        for (int k = 0; k < 20;
             k++) /* a page has all constructs, and few of the files have externs and scans */
            learn_page(cx,
                       base_read_file(cx, base_format(cx, "%s/docs/%s.md", TEC_SOURCE_DIR, pages[i]), NULL),
                       "```te\n");
    for (int i = 0; i < BASE_COUNT(rare); i++)
        for (int k = 0; k < 40; k++)
            base_push(cx, &numbers, rare[i]);
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

/* The text of a definition is that of what is read from it, if a name is no longer than a line. */
static void print(tec_context *cx, const te_def *d)
{
    const char *text = te_text(cx, d);
    te_file *again = text ? te_parse(cx, "printed.te", text) : NULL;

    cr_assert(!text || again, "%s\n%s", tec_context_error(cx), text);
    if (again)
        cr_assert_str_eq(te_text(cx, again->defs.at[0]), text);
}

static void one(const target *t)
{
    uint64_t start = seed;
    tec_context *cx = tec_context_new();
    const char *text = damaged(cx);
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
    for (int i = 0; f && i < f->defs.n && !base_failed(cx) && !below(4); i++)
        print(cx, f->defs.at[i]);
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

    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3"); /* once: it asks the machine what it is */
    seed = mutation_begin();
    read_texts(cx);
    for (int64_t i = 0; i < n; i++)
        one(t);
    fprintf(stderr, "%lld texts: %.1f %% definitions, %.1f %% scheduled to the end\n", (long long)total.texts,
            100.0 * (double)total.definitions / (double)total.texts,
            100.0 * (double)total.scheduled / (double)total.texts);
    cr_assert(total.definitions * 10 >= total.texts * 3, "too few texts are definitions");
    tec_context_free(cx);
}
