/* autotune/measure.h -- what measures candidates: an interface, and the local measurer behind it.
 *
 *     tune_measurer *m = tune_measurer_local(cx, &(tune_measure_options){.threads = 1});
 *     m->submit(m, cx, candidates, n);                          // queued; builders start at once
 *     int got = m->collect(m, cx, NULL, results, n, INFINITY);  // in the order of submission
 *     m->close(m);
 *
 * Several candidates may be measured at once, by several devices, and end in any order. Their results are
 * handed on in the order of submission: of each task by itself, so that no task waits for another one.
 *
 * The local measurer builds and runs in processes of their own, which last: builders (`tec build-worker`) and
 * one runner (`tec_runner`, which links the runtime alone). A crash, hang or over-allocation of a candidate
 * is that candidate's result, and the process that it befell is replaced. The cores under measurement run
 * nothing else: builders, and the thread that opened the measurer, are kept off them until it is closed, and
 * others that measure on this machine wait for their turn (worker/cores.h).
 * Where all cores are under measurement, building and running take turns, and candidates run only while
 * somebody waits in `collect` or `collect_pair`.
 *
 * Lifetime: until it is closed; what candidates point at must stay until they are collected. Results live in
 * the context given to `collect`. Errors: of the measurer itself (no process can be started) in the context.
 * Threads: one, but for `cancel`.
 */
#ifndef AUTOTUNE_MEASURE_H
#define AUTOTUNE_MEASURE_H

#include "autotune/task.h"
#include "store/store.h"

typedef struct {
    const tune_task *task;
    const char *trace; /* NULL: the task's default */
    uint64_t seed;     /* of the inputs */
    bool check;        /* hold the outputs against those of the default schedule */
} tune_candidate;

typedef struct {
    store_status status;
    const char *stage; /* "schedule", "build", "load", "reference", "check", "run"; "" where it is ok */
    /* "refused", "timeout", "memory", "SIGSEGV", "wrong answer", ...; "" where it is ok */
    const char *error_kind;
    const char *error;   /* its first line */
    const double *costs; /* seconds for one call: of each repeat the median of its calls */
    int n_costs;
    double median, spread; /* as store_summarise gives them */
    /* What the default schedule takes on the same device at that time, in seconds: see autotune/anchor.c.
     * 0: unknown */
    double anchor;
    bool checked;
    double build_seconds, run_seconds; /* wall time that the processes spent on it */
    /* What measured it. NULL: what the caller knows as its own device, or nothing came that far */
    const char *device, *device_text, *driver;
    int64_t clock_mhz;  /* of the device, behind the last call; 0: unknown */
    double temperature; /* degrees Celsius, at the same time; 0: unknown */
} tune_result;

typedef struct {
    int threads; /* of the kernel under test; 0: 1 */
    /* processes; 0: one for each core that no measurement uses, at least 1 */
    int builders;
    double min_seconds; /* timed in total for each candidate; 0: 0.02 */
    /* into which that time is divided; 0: 5. A call of more than a part makes it fewer */
    int repeats;
    /* seconds of unmeasured calls, and of rest, before the measurement; at least one call is unmeasured */
    double warm_up, cool_down;
    /* trials of a task on a device after which its default schedule is measured again; 0: 8, -1: never */
    int anchor_every;
    bool flush_cache;                  /* before each call */
    double build_timeout, run_timeout; /* 0: 10 s, 5 s */
    /* bytes that a candidate may allocate beside its arguments; 0: 4 GiB (as a builder at least) */
    int64_t memory_limit;
    const char *builder, *runner; /* programs; NULL: `tec` and `tec_runner` beside the running one */
    /* Of the local measurer: a file to which each run of a trial is added before it begins, as "LOG_NAME:
     * measures 'HASH'", HASH that of the trace; two of them for a comparison. NULL: none. */
    const char *log, *log_name;
    /* Of the local measurer: the folder where its runners keep what a device's driver compiled, up to so many
     * bytes (tec_device_cache). NULL: they keep nothing, as most candidates run once. */
    const char *device_cache;
    int64_t device_cache_bytes;
} tune_measure_options;

/* Where the wall time went, in seconds since the measurer was opened. */
typedef struct {
    double wall;
    double build;                   /* all builders together: */
    double schedule, compile, link; /* its parts */
    /* of all runners: arguments and code; calls for outputs, and the reference; measurements with warm-up */
    double load, check, timed;
    double run;                          /* of the runners in all */
    double collect;                      /* the caller waited in collect and collect_pair */
    int64_t candidates, ok;              /* collected; those of pairs included */
    int64_t builders_lost, runners_lost; /* processes and devices that were replaced */
    int64_t repeated;                    /* trials that were queued again, since their device was lost */
    int64_t ahead;                       /* modules that were with the device before they were asked for */
} tune_measure_stats;

/* A device that measures, for people. */
typedef struct {
    const char *name;
    const char *state; /* "measures", "waits for a device of class 'pi4'", "set aside: ..." */
    int64_t trials;    /* that it has measured */
} tune_device;

typedef struct tune_measurer tune_measurer;
struct tune_measurer {
    bool (*submit)(tune_measurer *measurer, tec_context *cx, const tune_candidate *candidate, int count);
    /* Two candidates of one task, in turns on one device: as many costs of each, cost i of both from the same
     * moments. Queued behind what was submitted before. */
    bool (*submit_pair)(tune_measurer *measurer, tec_context *cx, const tune_candidate *left,
                        const tune_candidate *right);
    /* The next results of the task, or of any where it is NULL, at most `max`; fewer, or 0, where they are
     * not there yet or nothing else is queued. With `seconds` above 0 it waits so long until there is at
     * least one; a wait ends no earlier than the candidate that it disturbs. -1: an error in cx. */
    int (*collect)(tune_measurer *measurer, tec_context *cx, const tune_task *task, tune_result *out, int max,
                   double seconds);
    /* The oldest pair: 1; 0: it is not there yet, or there is none; -1: an error in cx. */
    int (*collect_pair)(tune_measurer *measurer, tec_context *cx, tune_result out[2], double seconds);
    /* From any thread: drops what is queued and runs, and lets go those who wait. After that `collect` gives
     * 0, and only `close` makes sense. */
    void (*cancel)(tune_measurer *measurer);
    tune_measure_stats (*stats)(tune_measurer *measurer);
    /* How many, in cx; 0 where there is only the caller's own device. */
    int (*devices)(tune_measurer *measurer, tec_context *cx, const tune_device **out);
    void (*close)(tune_measurer *measurer); /* drops what is queued */
};

/* NULL with an error */
tune_measurer *tune_measurer_local(tec_context *cx, const tune_measure_options *options);

#endif
