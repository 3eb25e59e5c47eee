/* tests/lang/mutate.c -- damaged programs: those of docs/lang.md, of the tests and of the benches, with
 * tokens and lines exchanged.
 *
 *   TEC_MUTATIONS=1000000 TEC_MUTATION_SEED=7 build/asan/tests/test_lang_mutate --jobs 1
 *
 * Each text ends with an error that names a place, or as a verified module; and its layout, where it has one,
 * is the layout of itself. At the end the test says how many texts there were, and how many became modules.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <time.h>

#include "graph/build.h"
#include "graph/text.h"
#include "lang/format.h"
#include "lang/lang.h"
#include "tests/damage.h"

enum { MOST_SECONDS = 10, MOST_MEGABYTES = 2048 };

static void learn_files(tec_context *cx, const char *pattern)
{
    glob_t g;

    cr_assert_eq(glob(base_format(cx, "%s%s", TEC_SOURCE_DIR, pattern), 0, NULL, &g), 0, "no %s", pattern);
    for (size_t k = 0; k < g.gl_pathc; k++) {
        char *text = base_read_file(cx, g.gl_pathv[k], NULL);

        cr_assert(text, "%s", tec_context_error(cx));
        learn(cx, text);
    }
    globfree(&g);
}

static void read_texts(tec_context *cx)
{
    static const char *const rare[] = {"0", "9223372036854775807", "1e308", "4611686018427387904", "1000000"};

    learn_page(cx, base_read_file(cx, TEC_SOURCE_DIR "/docs/lang.md", NULL), "```tecp\n");
    learn_files(cx, "/tests/lang/golden/*.tecp");
    learn_files(cx, "/bench/programs/*.tecp");
    for (int i = 0; i < BASE_COUNT(rare); i++)
        base_push(cx, &numbers, rare[i]);
}

static struct {
    int64_t texts, modules, built, refused;
} total;

/* FILE:LINE:COLUMN: error: ...; the line; a line with a caret alone. */
static bool shows_place(const char *error)
{
    int line = 0, column = 0;

    sscanf(error, "%*[a-z.]:%d:%d: error: ", &line, &column);
    for (const char *at = strchr(error, '\n'); at; at = strchr(at + 1, '\n'))
        if (at[1 + strspn(at + 1, " \t")] == '^')
            return line > 0 && column > 0;
    return false;
}

/* What the passes and the generators refuse has a place, too. One in sixteen modules is built, as that takes
 * far longer than reading; TEC_MUTATIONS_BUILT=1 builds all. */
static void build(tec_context *cx, graph_module *module, uint64_t start)
{
    const graph_build_options options = {.target = target_parse(cx, "native"), .jobs = 1};

    if (start % 16 && !getenv("TEC_MUTATIONS_BUILT"))
        return;
    const graph_built *built = graph_build(module, &options);
    total.built += built != NULL;
    total.refused += !built;
    cr_assert(built || shows_place(tec_context_error(cx)), "seed %llu: no line, column and caret: %s",
              (unsigned long long)start, tec_context_error(cx));
    cr_assert_neq(tec_context_status(cx), TEC_INTERNAL, "seed %llu: %s", (unsigned long long)start,
                  tec_context_error(cx));
}

static void one(void)
{
    uint64_t start = seed;
    tec_context *cx = tec_context_new();
    const char *text = damaged(cx);
    clock_t begin = clock();

    mutation_note(start);
    if (getenv("TEC_MUTATION_SHOW"))
        fprintf(stderr, "---- seed %llu\n%s\n", (unsigned long long)start, text);
    const char *layout = lang_format(cx, "damaged.tecp", text);
    if (layout)
        cr_assert_str_eq(lang_format(cx, "damaged.tecp", layout), layout, "seed %llu",
                         (unsigned long long)start);
    tec_context_clear(cx);
    graph_module *module = lang_parse(cx, "damaged.tecp", text, lang_params_zero(cx));
    total.texts++;
    total.modules += module != NULL;
    cr_assert(module || tec_context_status(cx) != TEC_OK, "seed %llu: no error\n%s",
              (unsigned long long)start, text);
    cr_assert(module || strstr(tec_context_error(cx), "damaged.tecp:") ||
                  strstr(tec_context_error(cx), "prelude:"),
              "seed %llu: no place: %s\n%s", (unsigned long long)start, tec_context_error(cx), text);
    cr_assert(module || shows_place(tec_context_error(cx)), "seed %llu: no line, column and caret: %s\n%s",
              (unsigned long long)start, tec_context_error(cx), text);
    cr_assert_neq(tec_context_status(cx), TEC_INTERNAL, "seed %llu: %s\n%s", (unsigned long long)start,
                  tec_context_error(cx), text);
    if (module)
        build(cx, module, start);
    clock_t took = (clock() - begin) / CLOCKS_PER_SEC;
    cr_assert(took <= MOST_SECONDS, "seed %llu takes %d s\n%s", (unsigned long long)start, (int)took, text);
    cr_assert(base_used(cx) >> 20 <= MOST_MEGABYTES, "seed %llu takes %zu MB\n%s", (unsigned long long)start,
              base_used(cx) >> 20, text);
    tec_context_free(cx);
}

Test(mutate, every_program_ends_with_an_error_or_a_module)
{
    int64_t n = mutation_count(1500);
    tec_context *cx = tec_context_new();

    seed = mutation_begin();
    read_texts(cx);
    for (int64_t i = 0; i < n; i++)
        one();
    fprintf(stderr, "%lld programs: %.1f %% became modules; of these %lld were built, %lld refused\n",
            (long long)total.texts, 100.0 * (double)total.modules / (double)total.texts,
            (long long)total.built, (long long)total.refused);
    cr_assert(total.modules * 20 >= total.texts, "too few programs are modules");
    tec_context_free(cx);
}
