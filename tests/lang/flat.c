/* tests/lang/flat.c -- memory of an instance: it does not grow from run to run, and has a default limit.
 *
 * TEC_RUNS=1000000 build/release/tests/test_lang_flat --timeout 3600 is the long form (tests/full/flat.sh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lang/kit.h"

TestSuite(flat, .init = open_context, .fini = close_context);

/* Pages of the process that are in memory. */
static int64_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long long all, in_memory;

    cr_assert(file && fscanf(file, "%lld %lld", &all, &in_memory) == 2);
    fclose(file);
    return in_memory * sysconf(_SC_PAGESIZE);
}

/* Lists, tuples, tensors that grow, and extents that data tell. */
#define FLAT                                                                                                 \
    "type L = Nil_ | Cons_(f32[?], L)\n"                                                                     \
    "def up(k: i64, x: f32[n], l: L) -> L {\n"                                                               \
    "  if k > 0 { up(k - 1, concat(x, x, axis = 0), Cons_(x, l)) } else { l }\n"                             \
    "}\n"                                                                                                    \
    "def sum(l: L, s: f32, x: f32[n]) -> (f32, f32[n]) {\n"                                                  \
    "  match l { Nil_ => (s, x) Cons_(y, t) => sum(t, s + reduce_sum(y, axes = [0], keepdims = 0), x) }\n"   \
    "}\n"                                                                                                    \
    "def main(k: i64, x: f32[?]) -> (f32, f32[?]) {\n"                                                       \
    "  sum(up(k, x, Nil_), 0.0, compress(x, x > 0))\n"                                                       \
    "}\n"

Test(flat, runs_ask_the_system_for_memory_in_the_first_ones_only)
{
    const char *wanted = getenv("TEC_RUNS");
    int64_t runs = wanted ? atoll(wanted) : 20000, warm = runs / 100 + 10, before = 0, asked = 0;
    compiled c = compile(FLAT, NULL);
    float data[8] = {1, 2, 3, -4, 5, -6, 7, 8};

    resident(); /* its own code comes into memory */
    for (int64_t i = 0; i < runs; i++) {
        int64_t k = i % 5, n = 1 + i % 8;
        static tec_object *given[5 * 8][2];
        tec_object **mine = given[i % (5 * 8)], *out;
        tec_program_counts counts;

        if (i < 5 * 8) {
            mine[0] = object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &k));
            mine[1] = object_of(&c, interp_tensor(cx, BASE_F32, 1, &n, data));
        }
        cr_assert(tec_program_run(c.p, mine, 2, &out, 1, &err), "%s", err.text);
        tec_object_free(out);
        tec_program_count(c.p, &counts);
        if (i == warm)
            before = resident();
        asked += i >= warm ? counts.from_system : 0;
        if (i + 1 == runs)
            for (int j = 0; j < 5 * 8 * 2; j++)
                tec_object_free(given[j / 2][j % 2]);
    }
    fprintf(stderr, "resident: %lld bytes after %lld runs, %lld after %lld\n", (long long)before,
            (long long)warm, (long long)resident(), (long long)runs);
    cr_assert_eq(asked, 0, "the system gave memory %lld times", (long long)asked);
    cr_assert_leq(resident() - before, 256 << 10, "grew by %lld bytes", (long long)(resident() - before));
    discard(&c);
}

/* 8 * 10^12 bytes: more than three quarters of the memory of a machine that runs tests. */
#define LARGE "def main(k: i64) -> i64[?] { arange(0, k, 1) }\n"

static void asks_for_too_much(int64_t max_bytes, const char *words)
{
    compiled c = compile(LARGE, &(tec_program_options){.max_bytes = max_bytes});
    tec_object *given = object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){1000000000000})), *out;

    err = (tec_error){0};
    cr_assert_not(tec_program_run(c.p, &given, 1, &out, 1, &err));
    cr_assert_eq(err.status, TEC_NO_MEMORY);
    cr_assert(strstr(err.text, words) && strstr(err.text, "p.tecp:1: in 'main'"), "found: %s\nexpected: %s",
              err.text, words);
    tec_object_free(given);
    discard(&c);
}

Test(flat, an_instance_has_a_limit_by_default)
{
    int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) / 4 * 3 * sysconf(_SC_PAGESIZE);

    asks_for_too_much(0, base_format(cx, "the limit of %lld bytes of memory is reached", (long long)most));
    asks_for_too_much(1000, "the limit of 1000 bytes of memory is reached");
    compiled c = compile(LARGE, &(tec_program_options){.max_bytes = -1}); /* none */
    agree_on(c, (interp_value *[]){interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){1000})}, 1, 1);
}
