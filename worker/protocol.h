/* worker/protocol.h -- what a runner is asked and what it answers, as frames of worker/wire.h.
 *
 *     run_job j = {.arguments = key, .seed = 1, .modules = {{bytes, n}}, .n_modules = 1, .repeats = 5,
 *         .min_seconds = 0.02};
 *     run_put_job(&body, &j);
 *     run_send(fd, RUN_MEASURE, &body, deadline);
 *     run_receive(fd, &kind, &body, RUN_MAX_ANSWER, deadline);
 *     run_answer a;
 *     if (!run_get_answer(&r, &a)) ... garbled
 *
 * One question, one answer, in turns. RUN_KEEP runs the first module once and keeps its outputs: those that
 * RUN_MEASURE with `check` holds others against. What is kept is found by `arguments` and `seed`, and
 * forgotten when other arguments need the place: the answer RUN_NO_REFERENCE asks for a RUN_KEEP.
 */
#ifndef WORKER_PROTOCOL_H
#define WORKER_PROTOCOL_H

#include "worker/wire.h"

enum {
    RUN_MEASURE = 1, /* a run_job; answered by a run_answer */
    RUN_KEEP = 2,    /* the same */
    RUN_ANSWER = 3
};

enum {
    RUN_MODULES = 2,       /* of one job: measured in turns */
    RUN_MAX_COSTS = 1000,  /* of one module */
    RUN_MAX_JOB = 1 << 28, /* bytes of a frame */
    RUN_MAX_ANSWER = 1 << 20
};

typedef struct {
    const char *name;
    int64_t value;
} run_dim;

typedef struct {
    uint64_t arguments; /* jobs with equal arguments have an equal number */
    uint64_t seed;      /* of their contents */
    int n_dims;
    const run_dim *dims; /* values of symbols */
    bool check;
    int threads;
    double min_seconds, warm_up, cool_down;
    int repeats;
    int64_t flush_bytes;  /* memory written before each call; 0: none */
    int64_t memory_limit; /* bytes that may be allocated beside the arguments */
    int n_modules;
    struct {
        const void *data;
        size_t size;
    } modules[RUN_MODULES];
} run_job;

typedef enum { RUN_OK, RUN_ERROR, RUN_WRONG, RUN_NO_REFERENCE, RUN_N_OUTCOMES } run_outcome;

typedef struct {
    run_outcome outcome;
    int culprit;              /* which module, where it is not ok */
    const char *stage, *kind; /* "load", "check", "run"; "memory", "error", "wrong answer" */
    const char *error;
    double load_seconds, check_seconds, timed_seconds;
    int64_t clock_mhz;  /* of the core that measured, behind the last call; 0: unknown */
    double temperature; /* degrees Celsius, at the same time; 0: unknown */
    int n_costs;        /* of each module */
    const double *costs[RUN_MODULES];
} run_answer;

void run_put_job(rt_bytes *b, const run_job *j);
/* False: it is none. `dims` have room for RT_MAX_SYMBOLS. Texts and modules lie in the bytes that are
 * read. */
bool run_get_job(run_reader *r, run_job *j, run_dim *dims);
void run_put_answer(rt_bytes *b, const run_answer *a);
/* costs: room for RUN_MODULES * RUN_MAX_COSTS. */
bool run_get_answer(run_reader *r, run_answer *a, double *costs);

#endif
