/* What the programs of a job print, as they print it and damaged: a hostile file decides much of it.
 *
 * TEC_MUTATIONS is the number of random outputs, TEC_MUTATION_SEED repeats one.
 */
#include "tvmtune/kernels.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static const char good[] =
    "{\"event\":\"kernel\",\"key\":\"0123456789abcdef\",\"target\":\"llvm\",\"task\":\"mm\",\"summary\":"
    "\"f32\",\"uses\":2,"
    "\"codegen\":\"0.1.0\"}\n"
    "{\"event\":\"kernel\",\"key\":\"fedcba9876543210\",\"target\":\"llvm\",\"task\":\"add\",\"codegen\":\"0."
    "1.0\",\"machine\":\"llvm -mcpu=x\"}\n"
    "{\"event\":\"remeasured\",\"tasks\":3,\"kept\":2}\n"
    "{\"event\":\"task\",\"key\":\"0123456789abcdef\",\"before_ms\":2,\"after_ms\":1}\n";

Test(kernels, are_read_as_they_were_printed)
{
    tec_context *cx = tec_context_new();
    int n, kept;
    const tvm_kernels found = tvm_read_kernels(cx, good);
    const store_part *parts = found.parts;

    cr_assert(eq(int, found.n, 2));
    cr_assert(eq(str, (char *)parts[0].name, "mm"));
    cr_assert(eq(dbl, parts[0].uses, 2));
    cr_assert(eq(dbl, parts[1].uses, 1));
    cr_assert(eq(str, (char *)found.codegen, "0.1.0"));
    cr_assert(eq(str, (char *)found.machine, "llvm -mcpu=x"));
    const store_part_report *reports = tvm_read_outcomes(cx, good, &n);
    cr_assert(eq(int, n, 1));
    cr_assert(strstr(reports[0].report, "before_ms") != NULL);
    cr_assert(eq(int, tvm_read_remeasured(cx, good, &kept), 3));
    cr_assert(eq(int, kept, 2));
    tec_context_free(cx);
}

Test(kernels, a_key_that_is_none_or_came_before_is_left_out)
{
    tec_context *cx = tec_context_new();
    tvm_kernels found = tvm_read_kernels(
        cx,
        "{\"event\":\"kernel\",\"key\":\"1' OR 1=1 --xxxxx\"}\n{\"event\":\"kernel\",\"key\":7}\nnot JSON\n");
    cr_assert(eq(int, found.n, 0));
    cr_assert(eq(str, (char *)found.codegen, "unknown"));
    base_text twice = {0};
    base_addf(cx, &twice, "%s%s", good, good);
    found = tvm_read_kernels(cx, base_text_str(cx, &twice));
    cr_assert(eq(int, found.n, 2));
    tec_context_free(cx);
}

Test(kernels, counts_without_end_stay_numbers)
{
    tec_context *cx = tec_context_new();
    static const char many[] = "{\"event\":\"remeasured\",\"tasks\":2147483647,\"kept\":1e300}\n"
                               "{\"event\":\"remeasured\",\"tasks\":2147483647,\"kept\":-5}\n";
    int kept;

    cr_assert(eq(int, tvm_read_remeasured(cx, many, &kept), 200000));
    cr_assert(eq(int, kept, 100000));
    tec_context_free(cx);
}

/* ---- damaged outputs ---- */

static const char *const pieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     "\"",
                                     ":",
                                     ",",
                                     "null",
                                     "true",
                                     "-1e999",
                                     "9e99",
                                     "\\u0000",
                                     "\\ud800",
                                     "\"event\":",
                                     "\n",
                                     "\n\n",
                                     "\"kernel\"",
                                     "\"task\"",
                                     "\"key\":",
                                     "\"uses\":",
                                     "\"kept\":",
                                     "\xff",
                                     "\"0123456789abcdef\"",
                                     "[[[[[[[[[[[[[[[["};

/* Pieces of the grammar and single bytes put in, and stretches taken out or doubled. */
static char *damage(tec_context *cx, uint64_t *seed)
{
    base_text t = {0};

    base_add(cx, &t, good);
    for (int64_t k = 1 + base_random_below(seed, 6); k > 0; k--) {
        const char *old = base_text_str(cx, &t), *piece = pieces[base_random_below(seed, BASE_COUNT(pieces))];
        size_t n = strlen(old), at = (size_t)base_random_below(seed, (int64_t)n + 1);
        size_t gone = base_random_below(seed, 2) ? (size_t)base_random_below(seed, 12) : 0;
        base_text next = {0};

        base_addn(cx, &next, old, at);
        base_add(cx, &next, piece);
        at = at + gone < n ? at + gone : n;
        base_add(cx, &next, old + (base_random_below(seed, 8) ? at : 0));
        t = next;
    }
    return base_strdup(cx, base_text_str(cx, &t));
}

static void read_all(tec_context *cx, const char *text)
{
    int n, kept;
    const tvm_kernels found = tvm_read_kernels(cx, text);

    for (int i = 0; i < found.n; i++)
        cr_assert(eq(sz, strspn(found.parts[i].key, "0123456789abcdef"), 16), "%s", found.parts[i].key);
    const store_part_report *reports = tvm_read_outcomes(cx, text, &n);
    for (int i = 0; i < n; i++)
        cr_assert(reports[i].report != NULL);
    tvm_read_remeasured(cx, text, &kept);
}

Test(kernels, damaged_outputs_are_read_as_far_as_they_are_whole)
{
    const char *given = getenv("TEC_MUTATION_SEED"), *often = getenv("TEC_MUTATIONS");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)getpid();

    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    for (int64_t i = often ? strtoll(often, NULL, 10) : 3000; i > 0; i--) {
        tec_context *cx = tec_context_new();

        read_all(cx, damage(cx, &seed));
        tec_context_free(cx);
    }
}
