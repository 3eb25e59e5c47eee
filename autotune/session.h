/* autotune/session.h -- tuning: batches of candidates proposed, measured, recorded and learnt from, over the
 * tasks of a model.
 *
 *     tune_options o = {.tasks = tasks, .n_tasks = n, .measurer = m, .db = db, .job = "resnet-1f",
 *         .trials = 1000};
 *     tune_session *s = tune_session_new(cx, &o);
 *     while (tune_step(s))                       // one batch each
 *         ;
 *     if (tune_adopt(s)) ... tune_session_task(s, i)->after ...
 *     tune_session_close(s);
 *
 * Batch b is proposed from the results of the batches up to b - 2, while b - 1 is built and run. Everything
 * that is proposed follows from the tasks, the seed and the results; results are in the store. So a session
 * takes up a job that was interrupted, at any moment, by going through it again from its start: what the job
 * has measured it takes from the records, and goes on where they end. A replay is the same without measuring:
 * the proposals must be those of the records.
 *
 * A session of a new job seeds its cost model from the records of related tasks (seed.h) and keeps it in the
 * store under the job's name, so that all sessions of the job begin with the same; at its end it hands on
 * what was learned as the model of the target.
 *
 * A candidate that has been measured for this task and target, by this job or, before this job began, by any
 * other, is not measured again. What others add later is left alone, for otherwise a proposal would depend on
 * the hour.
 *
 * Lifetime: until it is closed; what it gives lies in the context. Tasks, store and measurer must stay.
 * Errors: in the context. When the store cannot be written, nothing that was measured is lost: see
 * tune_unsaved. Threads: one.
 */
#ifndef AUTOTUNE_SESSION_H
#define AUTOTUNE_SESSION_H

#include "autotune/measure.h"
#include "autotune/scheduler.h"

typedef struct tune_session tune_session;

typedef struct {
    const tune_task *const *tasks;
    int n_tasks;
    tune_measurer *measurer; /* NULL: replay */
    store *db;
    /* its name in the store: the same tasks, seed, explorer and model must have the same one */
    const char *job;
    const char *arguments;            /* for people */
    const char *device, *device_text; /* what measures */
    const char *explorer, *model;     /* NULL: "anneal", "rank" */
    uint64_t seed;
    /* candidates; 0: 32, or fewer where `trials` is small. A job keeps that of its first session */
    int batch;
    int64_t trials; /* of the job in all; 0: no limit */
    double seconds; /* of the job in all, before its last batch; 0: no limit */
    /* stops where the next batch is expected to save a smaller share of the end-to-end time; 0: goes on */
    double gain;
    bool (*stop)(void *user);                                  /* asked after each result; may be NULL */
    void (*progress)(void *user, const tune_session *session); /* told after each result; may be NULL */
    bool (*unsaved)(void *user, const char *why, int try); /* a write failed: true to try again. NULL: no */
    void *user;
} tune_options;

typedef enum {
    TUNE_GOES_ON,
    TUNE_TRIALS,
    TUNE_SECONDS,
    TUNE_GAIN,
    TUNE_EXHAUSTED,
    TUNE_STOPPED,
    TUNE_FAILED
} tune_end;

enum { TUNE_CANDIDATES = 3 };

/* A task as far as it has come. */
typedef struct {
    const tune_task *task;
    /* candidates with a result; of these: failed, with a wrong answer, from earlier records */
    int64_t trials, failed, wrong, reused;
    double first;        /* seconds of the default schedule; 0: not measured, INFINITY: it failed */
    double now, best;    /* of the last candidate that ran, and of the fastest; 0: none */
    const char *failure; /* why the default schedule does not run; NULL: it does */
    const float *curve;  /* seconds of the fastest after each trial; INFINITY: none yet */
    bool compared;       /* tune_adopt is through with it */
    /* tune_adopt: seconds of the schedule that would be used without this job, and of the one that is used
     * now */
    double before, after;
    double noise; /* of their ratio; see tune_wins */
    /* of a task with extents, for each of them: how much slower the schedule that is used now is than the
     * fastest candidate there, as a share; NULL: not measured */
    const double *loss;
    /* schedules for ranges of the symbol, which were adopted because a single one loses more; NULL: none */
    const space_ranges *ranges, *stood_ranges; /* the latter would be used without this job */
    bool adopted;                              /* a schedule that this job found */
    bool only_alone; /* one was faster by itself and not in the model: tune_take_back_task */
    /* The schedules with these two times; NULL: no comparison was begun in this session. */
    const char *stood, *stands;
    /* Schedules of the fastest trials of a task without extents, which tune_adopt compared by themselves: the
     * winner is the first. None is `stood`. */
    const char *candidate[TUNE_CANDIDATES];
    int n_candidates;
} tune_state;

tune_session *tune_session_new(tec_context *cx, const tune_options *options);
void tune_session_close(tune_session *session); /* NULL is legal */
/* The next batch. False: the end, or an error in the context. */
bool tune_step(tune_session *session);
/* After the end: measures the best of each task in turns with what would be used without them, and adopts
 * those that win. */
bool tune_adopt(tune_session *session);

/* After tune_adopt: what stood before is adopted again for each task whose schedule this session has changed,
 * because all of it together was not faster. */
bool tune_take_back(tune_session *session);

/* The same for one task that has no ranges, because its new schedule is not faster in the model. */
bool tune_take_back_task(tune_session *session, int task);

/* After tune_adopt: the task's candidate of that number is adopted in place of what stands, because it is the
 * fastest in the model. */
bool tune_adopt_candidate(tune_session *session, int task, int number);

/* After tune_adopt: the seconds of a task's call before and after, as measured in the model, and three
 * standard errors of their ratio, in place of those of its comparison. */
void tune_set_times(tune_session *session, int task, double before, double after, double noise);

/* After tune_adopt, and what was set or taken back since: keeps the times with the job. */
bool tune_keep_times(tune_session *session);

/* After tune_adopt: records schedules for ranges of a kernel that is none of the tasks, but whose versions
 * are, with the times of the schedule that stood for task `like`. Nothing is recorded where this session did
 * not measure it. */
bool tune_adopt_ranges(tune_session *session, const tune_task *kernel, const space_ranges *ranges, int like);

/* Before the first batch: schedules that were adopted with another version of the code generator are
 * measured again, in turns with the default schedules. Those that win are kept, of the others the default
 * is adopted. */
bool tune_remeasure(tune_session *session);
/* How many schedules tune_remeasure measured, and how many of them were kept. */
int tune_session_remeasured(const tune_session *session, int *kept);

tune_end tune_session_end(const tune_session *session);
/* words on what the cost model began with; NULL: there is none */
const char *tune_session_prior(const tune_session *session);
const tune_state *tune_session_task(const tune_session *session, int i);
int tune_session_current(const tune_session *session); /* the task of the last result */
int64_t tune_session_trials(const tune_session *session);
int64_t tune_session_measured(const tune_session *session);            /* of them, by this session */
double tune_session_seconds(const tune_session *session);              /* of the job */
double tune_session_total(const tune_session *session, bool at_first); /* end to end, seconds */
/* Records that could not be written. */
const store_record *tune_unsaved(const tune_session *session, int *n);
/* Where the wall time of this session went, in seconds. */
typedef struct {
    double wall;     /* all of it; what the others leave is reading records, and seeding the model */
    double features; /* of points: their schedules, and what the model sees of them */
    double model;    /* learning and predicting */
    double search;   /* the rest of proposing */
    double store;    /* writing */
    double wait;     /* for results */
    double compare;  /* tune_adopt: waiting for comparisons */
} tune_times;
tune_times tune_session_times(const tune_session *session);

/* Whether b is faster than a beyond the noise, from costs that were measured in turns: the median of log(a/b)
 * must be above three of its standard errors, and above 1 %. *gain gets a/b - 1, *noise three standard errors
 * as a share. Fewer than 3 pairs: no. */
bool tune_wins(const double *a, const double *b, int count, double *gain, double *noise);

#endif
