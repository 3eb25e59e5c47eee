/* Vector, map and dictionary against models that are too simple to be wrong; hash and generator. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "base/base.h"

static tec_context *cx;

static void set_up(void)
{
    cx = tec_context_new();
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(containers, .init = set_up, .fini = tear_down);

Test(containers, vector_keeps_what_was_pushed_in_order)
{
    static char items[5000];
    base_vec v = {0};

    for (int i = 0; i < BASE_COUNT(items); i++)
        base_push(cx, &v, &items[i]);
    cr_assert(eq(int, v.n, BASE_COUNT(items)));
    for (int i = 0; i < v.n; i++)
        cr_assert(v.at[i] == &items[i]);
}

/* The model of a map: value of key i, or -1 where it was never put. */
enum { KEYS = 700 };

Test(containers, map_agrees_with_a_plain_array)
{
    static char keys[KEYS], values[KEYS];
    base_map m = {0};

    for (uint64_t round = 1; round <= 50; round++) {
        int model[KEYS], n = 0;
        uint64_t seed = round;
        base_map_clear(&m);
        memset(model, -1, sizeof model);
        for (int step = 0; step < 40 * (int)round; step++) {
            int64_t key = base_random_below(&seed, KEYS), value = base_random_below(&seed, KEYS);
            n += model[key] < 0;
            model[key] = (int)value;
            base_map_put(cx, &m, &keys[key], &values[value]);
        }
        cr_assert(eq(int, m.n, n));
        for (int i = 0; i < KEYS; i++) {
            cr_assert(base_map_has(&m, &keys[i]) == (model[i] >= 0), "seed %d, key %d", (int)round, i);
            cr_assert(base_map_get(&m, &keys[i]) == (model[i] < 0 ? NULL : &values[model[i]]),
                      "seed %d, key %d", (int)round, i);
        }
    }
}

Test(containers, map_tells_a_null_value_from_no_value)
{
    base_map m = {0};

    cr_assert(not(base_map_has(&m, &m)));
    cr_assert(base_map_get(&m, &m) == NULL);
    base_map_put(cx, &m, &m, NULL);
    cr_assert(base_map_has(&m, &m));
    cr_assert(base_map_get(&m, &m) == NULL);
    cr_assert(not(base_map_has(&m, NULL)));
}

Test(containers, dictionary_agrees_with_a_plain_array)
{
    static char values[KEYS];

    for (uint64_t round = 1; round <= 30; round++) {
        int model[KEYS], order[KEYS], n = 0;
        uint64_t seed = round;
        base_dict d = {0};
        memset(model, -1, sizeof model);
        for (int step = 0; step < 60 * (int)round; step++) {
            int64_t key = base_random_below(&seed, KEYS), value = base_random_below(&seed, KEYS);
            if (model[key] < 0)
                order[n++] = (int)key;
            model[key] = (int)value;
            base_dict_put(cx, &d, base_format(cx, "key%d", (int)key), &values[value]);
        }
        cr_assert(eq(int, d.n, n));
        cr_assert(eq(int, d.order.n, n));
        for (int i = 0; i < n; i++)
            cr_assert(eq(str, d.order.at[i], base_format(cx, "key%d", order[i])));
        for (int i = 0; i < KEYS; i++) {
            const char *key = base_format(cx, "key%d", i);
            cr_assert(base_dict_has(&d, key) == (model[i] >= 0), "seed %d, key %d", (int)round, i);
            cr_assert(base_dict_get(&d, key) == (model[i] < 0 ? NULL : &values[model[i]]), "seed %d, key %d",
                      (int)round, i);
        }
    }
}

Test(containers, dictionary_knows_the_empty_string)
{
    base_dict d = {0};

    cr_assert(not(base_dict_has(&d, "")));
    base_dict_put(cx, &d, "", "value");
    cr_assert(eq(str, base_dict_get(&d, ""), "value"));
    cr_assert(not(base_dict_has(&d, "a")));
}

/* Stored keys depend on these numbers: a change here makes old records unreadable. */
Test(containers, hash_is_the_same_on_every_run_and_machine)
{
    cr_assert(eq(u64, base_hash("", 0, 0), 0));
    uint64_t first = base_hash("conv2d 1x64x56x56", 17, BASE_HASH_SEED);
    cr_assert(eq(u64, first, 0x7ff25536a0d7ead6u));
    cr_assert(eq(u64, base_hash("conv2d 1x64x56x5", 16, BASE_HASH_SEED), 0x39c43f1b8789e260u));
}

Test(containers, hash_sees_every_byte_the_length_and_the_seed)
{
    unsigned char data[40] = {0};
    uint64_t plain[41];

    for (size_t n = 0; n <= sizeof data; n++) {
        plain[n] = base_hash(data, n, 1);
        cr_assert(ne(u64, plain[n], base_hash(data, n, 2)));
        for (size_t shorter = 0; shorter < n; shorter++)
            cr_assert(ne(u64, plain[n], plain[shorter]));
        for (size_t i = 0; i < n; i++) {
            data[i] = 1;
            cr_assert(ne(u64, plain[n], base_hash(data, n, 1)), "length %zu, byte %zu", n, i);
            data[i] = 0;
        }
    }
}

/* The reference values of SplitMix64 for the seed 1234567, as published with the algorithm. */
Test(containers, generator_is_splitmix64)
{
    uint64_t state = 1234567;

    cr_assert(eq(u64, base_random(&state), 6457827717110365317u));
    cr_assert(eq(u64, base_random(&state), 3203168211198807973u));
    cr_assert(eq(u64, base_random(&state), 9817491932198370423u));
}

Test(containers, generator_stays_below_its_limit_and_reaches_everything)
{
    uint64_t state = 3;
    int seen[7] = {0};

    for (int i = 0; i < 70000; i++) {
        int64_t x = base_random_below(&state, 7);
        cr_assert(x >= 0 && x < 7);
        seen[x]++;
    }
    for (int i = 0; i < 7; i++)
        cr_assert(seen[i] > 9500 && seen[i] < 10500, "%d came %d times", i, seen[i]);
    cr_assert(eq(i64, base_random_below(&state, 1), 0));
    for (int i = 0; i < 1000; i++)
        cr_assert(base_random_below(&state, INT64_MAX) >= 0);
}

Test(containers, generator_draws_evenly_from_zero_to_one)
{
    uint64_t state = 4;
    double sum = 0;

    for (int i = 0; i < 100000; i++) {
        double x = base_random_unit(&state);
        cr_assert(x >= 0 && x < 1);
        sum += x;
    }
    cr_assert(fabs(sum / 100000 - 0.5) < 0.01, "mean %g", sum / 100000);
}

Test(containers, the_middle_by_ratio_is_nearer_to_the_left)
{
    static const struct {
        int64_t left, right, middle;
    } cases[] = {{4, 8, 5}, {1, 2, 1}, {1, 4, 2}, {2, 8, 4}, {3, 12, 6}, {7, 8, 7}, {1, 1024, 32}};

    for (int i = 0; i < BASE_COUNT(cases); i++)
        cr_expect(eq(i64, base_ratio_middle(cases[i].left, cases[i].right), cases[i].middle), "%d", i);
    cr_expect(eq(i64, base_ratio_middle(INT64_MAX - 1, INT64_MAX), INT64_MAX - 1));
    cr_expect(eq(i64, base_ratio_middle(1, INT64_MAX) >> 16, 46340));
}
