/* tests/fuzz/programs/threads.c -- any number of threads share a module: each has instances of its
 * own, and gets from its inputs what the interpreter of graphs gets from them. The thread sanitizer looks on
 * in the build that has it.
 */
#include <pthread.h>

#include "tests/fuzz/programs/kit.h"

enum { THREADS = 6, INPUTS = 3, ROUNDS = 8, DRAWN = 4 };

/* A program with several inputs, and what the interpreter makes of them; NULL where it stops. */
typedef struct {
    sample s;
    interp_value *in[INPUTS][FUZZ_MAX_VALUES], *out[INPUTS][MAX_OUT];
    bool stops[INPUTS];
} shared;

typedef struct {
    const shared *of;
    int first, wrong;
} work;

/* Whether a run gives what is expected of it. */
static bool agrees(tec_program *p, const shared *of, int which)
{
    tec_object *given[FUZZ_MAX_VALUES] = {NULL}, *out[MAX_OUT] = {NULL};
    bool ok = give(p, &of->s, of->in[which], given),
         ran = ok && tec_program_run(p, given, of->s.n_in, out, of->s.n_out, NULL);

    ok = ok && ran != of->stops[which];
    for (int k = 0; ran && ok && k < of->s.n_out; k++)
        ok = fuzz_same_value(p, of->out[which][k], out[k]);
    take_back(out, MAX_OUT);
    take_back(given, FUZZ_MAX_VALUES);
    return ok;
}

/* Each thread begins with another input than its neighbour, and makes a new instance in each round. */
static void *run_all(void *arg)
{
    const tec_program_options o = {.run = {.threads = 1}};
    work *w = arg;

    for (int round = 0; round < ROUNDS; round++) {
        tec_program *p = tec_program_new(w->of->s.module, w->of->s.entry, &o, NULL);

        w->wrong += !p;
        for (int i = 0; p && i < INPUTS; i++)
            w->wrong += !agrees(p, w->of, (w->first + i) % INPUTS);
        tec_program_free(p);
    }
    return NULL;
}

static shared share(tec_context *cx, int which)
{
    shared s = {.s = make_sample(cx, which)};

    for (int i = 0; i < INPUTS; i++) {
        draw_inputs(&s.s, (uint64_t)i, s.in[i]);
        s.stops[i] = !interp_run(cx, s.s.graph, s.s.entry, s.in[i], s.s.n_in, NULL, s.out[i], s.s.n_out);
        tec_context_clear(cx);
    }
    return s;
}

Test(threads, many_share_a_program_and_get_what_each_gets_alone, .timeout = 600)
{
    for (int which = 0; which < N_OWN + DRAWN; which++) {
        tec_context *cx = tec_context_new();
        shared s = share(cx, which);
        pthread_t thread[THREADS];
        work w[THREADS];

        for (int t = 0; t < THREADS; t++) {
            w[t] = (work){.of = &s, .first = t};
            cr_assert_eq(pthread_create(&thread[t], NULL, run_all, &w[t]), 0);
        }
        for (int t = 0; t < THREADS; t++) {
            cr_assert_eq(pthread_join(thread[t], NULL), 0);
            cr_assert_eq(w[t].wrong, 0, "%s: thread %d: %d runs are wrong", s.s.name, t, w[t].wrong);
        }
        tec_module_free(s.s.module);
        tec_context_free(cx);
    }
}
