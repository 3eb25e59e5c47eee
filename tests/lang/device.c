/* tests/lang/device.c -- programs with kernels on a device (PoCL): the results of the interpreter, no more
 * copies than any other placement of the small kernels needs, and nothing held when a run fails. */
#include <math.h>
#include <stdio.h>

#include "tests/lang/kit.h"

TestSuite(device, .init = open_context, .fini = close_context);

enum { N = 2048, MOST_FREE = 5 };

/* Each takes x: f32[2048] and n: i64, and gives one tensor of floats. */
static const struct {
    const char *name, *text;
} programs[] = {
    {"count", "def go(i: i64, y: f32[2048], n: i64) -> f32[2048] {\n"
              "  if i < n { go(i + 1, tanh(y), n) } else { y }\n"
              "}\n"
              "def main(x: f32[2048], n: i64) -> f32[2048] { go(0, x, n) }\n"},
    {"converge", "def go(y: f32[2048], n: i64) -> f32[2048] {\n"
                 "  let s = reduce_sum(y * y, axes = [0], keepdims = 0)\n"
                 "  if s > 1.0 { go(y * 0.5, n + 1) } else { y }\n"
                 "}\n"
                 "def main(x: f32[2048], n: i64) -> f32[2048] { go(x, n) }\n"},
    {"gain", "def go(i: i64, g: f32[1], y: f32[2048], n: i64) -> f32[2048] {\n"
             "  if i < n { go(i + 1, g * 0.5 + 0.25, y * g, n) } else { y }\n"
             "}\n"
             "def main(x: f32[2048], n: i64) -> f32[2048] {\n"
             "  go(0, slice(x, begin = [0], extent = [1], step = [1]), x, n)\n"
             "}\n"},
    {"clip", "def main(x: f32[2048], n: i64) -> f32[2048] {\n"
             "  let norm = sqrt(reduce_sum(x * x, axes = [0], keepdims = 0))\n"
             "  if norm > 2.0 { x * (2.0 / norm) } else { x }\n"
             "}\n"},
    {"alternate", "def go(i: i64, odd: bool, y: f32[2048], n: i64) -> f32[2048] {\n"
                  "  if i < n { go(i + 1, not(odd), if odd { tanh(y) } else { y * 1.5 }, n) } else { y }\n"
                  "}\n"
                  "def main(x: f32[2048], n: i64) -> f32[2048] { go(0, n < 0, x, n) }\n"},
    {"list", "def make(i: i64, x: f32[2048]) -> List[f32[2048]] {\n"
             "  if i > 0 { Cons(x, make(i - 1, tanh(x))) } else { Nil }\n"
             "}\n"
             "def main(x: f32[2048], n: i64) -> f32[2048] {\n"
             "  fold(make(n, x), x, (s, y) => s * 0.5 + y)\n"
             "}\n"},
    {"best", "def go(i: i64, best: f32, y: f32[2048], n: i64) -> f32 {\n"
             "  if i < n {\n"
             "    go(i + 1, max(best, reduce_max(y, axes = [0], keepdims = 0)), y * 0.75 + 0.125, n)\n"
             "  } else { best }\n"
             "}\n"
             "def main(x: f32[2048], n: i64) -> f32 { go(0, -1.0, x, n) }\n"},
    {"pair", "def go(s: (i64, f32[2048]), n: i64) -> (i64, f32[2048]) {\n"
             "  let (i, y) = s\n"
             "  if i < n { go((i + 2, exp(y) * 0.25), n) } else { s }\n"
             "}\n"
             "def main(x: f32[2048], n: i64) -> f32[2048] { let (i, y) = go((0, x), n)  y }\n"},
    {"rows", "def main(x: f32[2048], n: i64) -> f32 {\n"
             "  let (m, k) = fold(reshape(x, shape = [8, 256]), (0.0, 0), ((m, k), row) =>\n"
             "    (max(m * 0.5, reduce_sum(row, axes = [0], keepdims = 0)), k + 1))\n"
             "  m\n"
             "}\n"},
    {"grow", "def go(i: i64, all: f32[?, 1024], y: f32[1, 1024], n: i64) -> f32[?, 1024] {\n"
             "  if i < n { go(i + 1, concat(all, y, axis = 0), tanh(y), n) } else { all }\n"
             "}\n"
             "def main(x: f32[2048], n: i64) -> f32 {\n"
             "  let y = reshape(x, shape = [2, 1024])\n"
             "  let first = slice(y, begin = [0, 0], extent = [1, 1024], step = [1, 1])\n"
             "  reduce_sum(go(0, y, first, n), axes = [0, 1], keepdims = 0)\n"
             "}\n"},
};

typedef struct {
    graph_build_options o;
    int n_free;
    compiled c;
} placed;

/* `given` may be NULL: by the rule. */
static placed build_placed(const char *text, graph_place_rule rule, const char *given)
{
    placed p = {.o = {.target = target_parse(cx, "opencl -device=pocl"),
                      .jobs = 1,
                      .place_rule = rule,
                      .place_given = given}};
    graph_module *m = lang_parse(cx, "p.tecp", text, NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    p.c.graph = lang_parse(cx, "p.tecp", text, NULL);
    graph_built *b = graph_build(m, &p.o);
    cr_assert(b, "%s", tec_context_error(cx));
    p.n_free = b->n_free;
    p.c.module = graph_load(b);
    p.c.p = tec_program_new(p.c.module, NULL, &(tec_program_options){.run.threads = 1}, &err);
    cr_assert(p.c.p, "%s", err.text);
    return p;
}

static interp_value *vector(void)
{
    float x[N];

    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 11 - 5) / 8;
    return interp_tensor(cx, BASE_F32, 1, (const int64_t[]){N}, x);
}

/* Runs the program, compares its result with the interpreter's, and gives the copies. */
static tec_program_counts run_placed(placed *p)
{
    interp_value *in[] = {vector(), interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){6})}, *expected;
    tec_object *given[] = {object_of(&p->c, in[0]), object_of(&p->c, in[1])}, *out;
    tec_program_counts counts;

    cr_assert(interp_run(cx, p->c.graph, NULL, in, 2, NULL, &expected, 1), "%s", tec_context_error(cx));
    cr_assert(tec_program_run(p->c.p, given, 2, &out, 1, &err), "%s", err.text);
    same(&p->c, expected, out);
    tec_program_count(p->c.p, &counts);
    tec_object_free(out);
    tec_object_free(given[0]);
    tec_object_free(given[1]);
    return counts;
}

static tec_program_counts counts_of(const char *text, graph_place_rule rule, const char *given, int *n_free)
{
    placed p = build_placed(text, rule, given);
    tec_program_counts counts = run_placed(&p);

    if (n_free)
        *n_free = p.n_free;
    discard(&p.c);
    return counts;
}

static int64_t copies(const tec_program_counts *counts)
{
    return counts->uploads + counts->downloads;
}

static int64_t bytes(const tec_program_counts *counts)
{
    return counts->upload_bytes + counts->download_bytes;
}

/* The fewest copies of all placements of the small kernels. */
static tec_program_counts fewest(const char *text, int n_free)
{
    tec_program_counts best = {0};
    char given[MOST_FREE + 1] = "";

    for (int set = 0; set < 1 << n_free; set++) {
        for (int i = 0; i < n_free; i++)
            given[i] = set >> i & 1 ? 'd' : 'h';
        tec_program_counts counts = counts_of(text, GRAPH_FEWEST_COPIES, given, NULL);
        if (set == 0 || copies(&counts) < copies(&best))
            best = counts;
    }
    return best;
}

Test(device, the_minimum_cut_makes_the_fewest_copies, .timeout = 600)
{
    printf("%-10s %5s   %-18s %-18s %-18s %s\n", "program", "free", "minimum cut", "unified",
           "all on the device", "fewest of all");
    for (int i = 0; i < BASE_COUNT(programs); i++) {
        int n_free;
        tec_program_counts cut = counts_of(programs[i].text, GRAPH_FEWEST_COPIES, NULL, &n_free),
                           unified = counts_of(programs[i].text, GRAPH_UNIFIED, NULL, NULL),
                           there = counts_of(programs[i].text, GRAPH_ON_DEVICE, NULL, NULL);
        cr_assert_leq(n_free, MOST_FREE, "%s has %d free kernels", programs[i].name, n_free);
        tec_program_counts best = fewest(programs[i].text, n_free);

        printf(
            "%-10s %5d   %3lld (%7lld bytes) %3lld (%7lld bytes) %3lld (%7lld bytes) %3lld (%7lld bytes)\n",
            programs[i].name, n_free, (long long)copies(&cut), (long long)bytes(&cut),
            (long long)copies(&unified), (long long)bytes(&unified), (long long)copies(&there),
            (long long)bytes(&there), (long long)copies(&best), (long long)bytes(&best));
        fflush(stdout);
        cr_assert_eq(copies(&cut), copies(&best), "%s: %lld copies, %lld would do", programs[i].name,
                     (long long)copies(&cut), (long long)copies(&best));
    }
}

/* ---- values that move ---- */

/* Each step appends a row on the host, and sums all rows on the device. */
static const char growing[] =
    "def go(i: i64, all: f32[?, 512], s: f32, n: i64) -> f32 {\n"
    "  if i < n {\n"
    "    let row = slice(all, begin = [0, 0], extent = [1, 512], step = [1, 1])\n"
    "    let more = concat(all, row, axis = 0)\n"
    "    go(i + 1, more, s * 0.5 + reduce_sum(more, axes = [0, 1], keepdims = 0), n)\n"
    "  } else { s }\n"
    "}\n"
    "def main(x: f32[4, 512], n: i64) -> f32 { go(0, x, 0.0, n) }\n";

Test(device, appended_rows_alone_are_copied)
{
    placed p = build_placed(growing, GRAPH_FEWEST_COPIES, NULL);
    int64_t copied[3];

    for (int i = 0; i < 3; i++) {
        float x[N] = {1}, sum = 0;
        int64_t n = 60 << i;
        interp_value *in[] = {interp_tensor(cx, BASE_F32, 2, (const int64_t[]){4, 512}, x),
                              interp_tensor(cx, BASE_I64, 0, NULL, &n)};
        tec_object *given[] = {object_of(&p.c, in[0]), object_of(&p.c, in[1])}, *out;
        tec_program_counts counts;

        cr_assert(tec_program_run(p.c.p, given, 2, &out, 1, &err), "%s", err.text);
        tec_program_count(p.c.p, &counts);
        copied[i] = counts.upload_bytes / n;
        for (int64_t k = 0; k < n;
             k++) /* the first row sums up to 1, the next three to 0, each new one to 1 */
            sum = sum * 0.5F + (float)(k + 2);
        cr_assert_float_eq(*(const float *)tec_object_dltensor(out)->data, sum, 1e-3);
        tec_object_free(out);
        tec_object_free(given[0]);
        tec_object_free(given[1]);
    }
    cr_assert_leq(copied[2], 4 * 512 * 4, "%lld bytes a step", (long long)copied[2]);
    cr_assert_leq(copied[2], copied[0] * 2, "%lld and %lld bytes a step", (long long)copied[0],
                  (long long)copied[2]);
    discard(&p.c);
}

Test(device, a_result_is_an_input_of_the_next_run_without_a_copy)
{
    placed p = build_placed(programs[0].text, GRAPH_FEWEST_COPIES, NULL);
    interp_value *in[] = {vector(), interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){2})};
    tec_object *given[] = {object_of(&p.c, in[0]), object_of(&p.c, in[1])}, *out;
    tec_program_counts counts;

    for (int i = 0; i < 3; i++) {
        cr_assert(tec_program_run(p.c.p, given, 2, &out, 1, &err), "%s", err.text);
        tec_program_count(p.c.p, &counts);
        cr_assert_eq(counts.uploads, i == 0, "run %d: %lld uploads", i, (long long)counts.uploads);
        cr_assert_eq(counts.downloads, 1);
        tec_object_free(given[0]);
        given[0] = out;
    }
    float expected = ((const float *)in[0]->array.data)[3];
    for (int i = 0; i < 6; i++)
        expected = tanhf(expected);
    cr_assert_float_eq(((const float *)tec_object_dltensor(out)->data)[3], expected, 1e-5);
    tec_object_free(given[0]);
    tec_object_free(given[1]);
    discard(&p.c);
}

/* ---- runs that fail ---- */

Test(device, a_run_that_fails_holds_nothing)
{
    placed p = build_placed(programs[0].text, GRAPH_FEWEST_COPIES, NULL);
    tec_program_options limits = {.max_steps = 40, .run.threads = 1};
    tec_program *few = tec_program_new(p.c.module, NULL, &limits, &err), *whole = p.c.p;
    tec_object *out = NULL;

    p.c.p = few;
    interp_value *in[] = {vector(), interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){100})};
    tec_object *given[] = {object_of(&p.c, in[0]), object_of(&p.c, in[1])};
    tec_program_counts before, after;
    for (int i = 0; i < 3; i++) {
        cr_assert_not(tec_program_run(few, given, 2, &out, 1, &err));
        cr_assert(strstr(err.text, "the limit of 40 steps is reached"), "%s", err.text);
        tec_program_count(few, i ? &after : &before);
    }
    cr_assert_eq(after.bytes, before.bytes, "%lld bytes, then %lld", (long long)before.bytes,
                 (long long)after.bytes);
    tec_object_free(given[0]);
    tec_object_free(given[1]);
    tec_program_free(few);
    p.c.p = whole;
    run_placed(&p);
    discard(&p.c);
}

Test(device, the_limit_of_memory_counts_the_device_as_well)
{
    placed p = build_placed(programs[0].text, GRAPH_FEWEST_COPIES, NULL);
    tec_program_options limits = {.max_bytes = 40000, .run.threads = 1};
    tec_program *small = tec_program_new(p.c.module, NULL, &limits, &err), *whole = p.c.p;
    tec_object *out = NULL;

    p.c.p = small;
    interp_value *in[] = {vector(), interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){2})};
    tec_object *given[] = {object_of(&p.c, in[0]), object_of(&p.c, in[1])};
    cr_assert_not(tec_program_run(small, given, 2, &out, 1, &err));
    cr_assert(strstr(err.text, "the limit of 40000 bytes of memory is reached"), "%s", err.text);
    tec_object_free(given[0]);
    tec_object_free(given[1]);
    tec_program_free(small);
    p.c.p = whole;
    discard(&p.c);
}
