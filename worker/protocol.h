/* worker/protocol.h -- what a runner is asked and what it answers, as frames of worker/wire.h.
 *
 *     worker_job j = {.arguments = key, .seed = 1, .modules = {{bytes, n}}, .n_modules = 1, .repeats = 5,
 *         .min_seconds = 0.02};
 *     worker_put_job(&body, &j);
 *     worker_send(fd, WORKER_MEASURE, &body, deadline);
 *     worker_receive(fd, &kind, &body, WORKER_MAX_ANSWER, deadline);
 *     worker_answer a;
 *     if (!worker_get_answer(&r, &a)) ... cannot be decoded
 *
 * One question, one answer, in turns. WORKER_KEEP runs the first module once and keeps its outputs: those
 * that WORKER_MEASURE with `check` holds others against. What is kept is found by `arguments` and `seed`, and
 * forgotten when other arguments need the place: the answer WORKER_NO_REFERENCE asks for a WORKER_KEEP.
 */
#ifndef WORKER_PROTOCOL_H
#define WORKER_PROTOCOL_H

#include "worker/wire.h"

enum {
    WORKER_MEASURE = 1, /* a worker_job; answered by a worker_answer */
    WORKER_KEEP = 2,    /* the same */
    WORKER_ANSWER = 3
};

enum {
    WORKER_MODULES = 2,       /* of one job: measured in turns */
    WORKER_MAX_COSTS = 1000,  /* of one module */
    WORKER_MAX_JOB = 1 << 28, /* bytes of a frame */
    WORKER_MAX_ANSWER = 1 << 20
};

/* The kind of a failure behind which the device may be lost to the process: what comes next is for another
 * process, in which the device is opened anew. */
#define WORKER_DEVICE_FAULT "device"

typedef struct {
    const char *name;
    int64_t value;
} worker_dim;

typedef struct {
    uint64_t arguments; /* jobs with equal arguments have an equal number */
    uint64_t seed;      /* of their contents */
    int n_dims;
    const worker_dim *dims; /* values of symbols */
    bool check;
    int threads;
    double min_seconds, warm_up, cool_down;
    int repeats;
    int64_t flush_bytes; /* memory written before each call; 0: none */
    /* Parameters (bit i: number i) of which each call reads another copy, in turns: copies of so many bytes
     * in all. When the turn of a copy comes again, the caches hold of it what they would hold of weights if
     * so many bytes were read between two calls. 0: one copy. */
    uint64_t cold;
    int64_t cold_bytes;
    int64_t memory_limit; /* bytes that may be allocated beside the arguments */
    const char *label;    /* of the trial in logs; not sent to a local runner */
    int n_modules;
    struct {
        const void *data;
        size_t size;
    } modules[WORKER_MODULES];
} worker_job;

typedef enum { WORKER_OK, WORKER_ERROR, WORKER_WRONG, WORKER_NO_REFERENCE, WORKER_N_OUTCOMES } worker_outcome;

typedef struct {
    worker_outcome outcome;
    int culprit;              /* which module, where it is not ok */
    const char *stage, *kind; /* "load", "check", "run"; "memory", "device", "error", "wrong answer" */
    const char *error;
    double load_seconds, check_seconds, timed_seconds;
    int64_t clock_mhz;  /* of the core that measured, behind the last call; 0: unknown */
    double temperature; /* degrees Celsius, at the same time; 0: unknown */
    int n_costs;        /* of each module */
    const double *costs[WORKER_MODULES];
} worker_answer;

void worker_put_job(rt_bytes *bytes, const worker_job *job);
/* False: it is none. `dims` have room for RT_MAX_SYMBOLS. Texts and modules lie in the bytes that are
 * read. */
bool worker_get_job(worker_reader *reader, worker_job *job, worker_dim *dims);
void worker_put_answer(rt_bytes *bytes, const worker_answer *answer);
/* costs: room for WORKER_MODULES * WORKER_MAX_COSTS. */
bool worker_get_answer(worker_reader *reader, worker_answer *answer, double *costs);

#endif
