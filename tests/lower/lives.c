/* tests/lower/lives.c -- intervals that meet, compared with looking at all of them. */
#include "lower/lives.h"

#include <criterion/criterion.h>

enum { MOST = 70 };

static bool meet(const lower_life *a, const lower_life *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The answer holds each entered one that meets `one`, once, and no other. */
static void check(const lower_life *life, const bool *entered, int n, const lower_life *one,
                  const base_vec *found, uint64_t seed)
{
    int expected = 0;

    for (int i = 0; i < n; i++)
        expected += entered[i] && meet(&life[i], one);
    cr_assert(found->n == expected, "%d of %d found, seed %llu", found->n, expected,
              (unsigned long long)seed);
    for (int k = 0; k < found->n; k++) {
        const lower_life *l = found->at[k];

        cr_assert(entered[l - life] && meet(l, one) &&
                  (k == 0 || ((const lower_life *)found->at[k - 1])->rank < l->rank));
    }
}

Test(lives, finds_what_a_look_at_all_finds)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        tec_context *cx = tec_context_new();
        uint64_t state = seed;
        lower_life life[MOST], *all[MOST];
        bool entered[MOST] = {false};
        int n = (int)base_random_below(&state, MOST + 1);

        for (int i = 0; i < n; i++) {
            int first = (int)base_random_below(&state, 40) - 1;

            life[i] = (lower_life){
                .first = first, .last = first + (int)base_random_below(&state, 12), .owner = &life[i]};
            all[i] = &life[i];
        }
        lower_lives *l = lower_lives_new(cx, all, n);
        for (int i = 0; i < n; i++) {
            int next = (int)base_random_below(&state, (uint64_t)n);
            base_vec found = {0};

            lower_lives_meeting(l, &life[i], &found);
            check(life, entered, n, &life[i], &found, seed);
            lower_lives_enter(l, &life[next]);
            entered[next] = true;
        }
        tec_context_free(cx);
    }
}

Test(lives, finds_nothing_among_none)
{
    tec_context *cx = tec_context_new();
    base_vec found = {0};

    lower_lives_meeting(lower_lives_new(cx, NULL, 0), &(lower_life){.first = 0, .last = 5}, &found);
    cr_assert(found.n == 0);
    tec_context_free(cx);
}
