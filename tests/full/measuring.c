/* tests/full/measuring.c -- hundreds of candidates, many of which crash, hang, allocate without end, answer
 * wrongly or lose their process: each gets the result that is its own.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "tests/autotune/candidates.h"

enum { CANDIDATES = 300, SEED = 20 };

typedef struct {
    const char *trace;
    store_status status;
    const char *kind;
} sample;

/* Half of them are good; `check` sees wrong answers. */
static sample draw(uint64_t *seed)
{
    const sample all[] = {
        {doing(crashing), STORE_RUN_ERROR, "SIGSEGV"},
        {doing(hanging), STORE_TIMEOUT, "timeout"},
        {allocating(), STORE_RUN_ERROR, "memory"},
        {doing("c[1] = 1e9f;"), STORE_WRONG, "wrong answer"},
        {doing("((float *)b)[0] = 5;"), STORE_RUN_ERROR, "SIGSEGV"},
        {killing_itself(SIGKILL), STORE_RUN_ERROR, "SIGKILL"},
        {doing("return 9;"), STORE_RUN_ERROR, "error"},
        {doing("return x;"), STORE_BUILD_ERROR, "error"},
        {"split(C.z, _, 4)\n", STORE_REFUSED, "refused"},
    };
    const sample good[] = {{"vectorize(C.x)\n", STORE_OK, ""},
                           {"reorder(C.k, C.x)\nvectorize(C.x)\n", STORE_OK, ""},
                           {doing(right), STORE_OK, ""}};

    return base_random_below(seed, 2) ? good[base_random_below(seed, BASE_COUNT(good))]
                                      : all[base_random_below(seed, BASE_COUNT(all))];
}

Test(measuring, three_hundred_candidates_that_fail_at_random, .timeout = 1800)
{
    static sample s[CANDIDATES];
    static tune_candidate c[CANDIDATES];
    static tune_result r[CANDIDATES];
    uint64_t seed = SEED;
    int got = 0;

    cx = tec_context_new();
    tune_task *t = task_for(tiled);
    tune_measurer *m = tune_measurer_local(cx, &(tune_measure_options){.builder = TEC_BINARY_DIR "/tec",
                                                                       .runner = TEC_BINARY_DIR "/tec_runner",
                                                                       .build_timeout = 120,
                                                                       .run_timeout = 2,
                                                                       .memory_limit = 256 << 20});

    cr_assert(m, "%s", tec_context_error(cx));
    for (int i = 0; i < CANDIDATES; i++) {
        s[i] = draw(&seed);
        c[i] = (tune_candidate){.task = t, .trace = s[i].trace, .seed = 1, .check = true};
    }
    cr_assert(m->submit(m, cx, c, CANDIDATES));
    while (got < CANDIDATES) {
        int n = m->collect(m, cx, NULL, r + got, CANDIDATES - got, INFINITY);

        cr_assert(n > 0, "%s", tec_context_error(cx));
        got += n;
    }
    for (int i = 0; i < CANDIDATES; i++)
        cr_expect(r[i].status == s[i].status && strcmp(r[i].error_kind, s[i].kind) == 0,
                  "%d: expected %s (%s), found %s (%s): %s: %s\n%s", i, store_status_text(s[i].status),
                  s[i].kind, store_status_text(r[i].status), r[i].error_kind, r[i].stage, r[i].error,
                  s[i].trace);
    m->close(m);
    tec_context_free(cx);
}
