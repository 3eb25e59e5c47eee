/* autotune/run.h -- inside the room: a session from the inside, for the files that it is made of: session.c
 * (batches), propose.c (candidates), journal.c (records), adopt.c.
 */
#ifndef AUTOTUNE_RUN_H
#define AUTOTUNE_RUN_H

#include "autotune/explorer.h"
#include "autotune/features.h"
#include "autotune/model.h"
#include "autotune/points.h"
#include "autotune/session.h"
#include "autotune/source.h"

enum { TUNE_MAX_BATCH = 256, TUNE_BATCH = 32 };

/* A candidate with what is known of it. */
typedef struct {
    const char *trace, *tuner;
    space_point point;
    bool has_point; /* default schedules and others that came from outside of the space have none */
    bool is_default;
    const float *features; /* NULL: it could not be lowered */
    int64_t batch, number;
    const store_record *record; /* from the store; NULL: it must be measured */
    tune_result result;
    bool reused, submitted;
} tune_sample;

/* Rows of features by a point's number. */
typedef struct {
    tec_context *cx; /* holds them */
    tune_points points;
} tune_rows;

typedef struct {
    const tune_task *task;
    tune_state state;
    tune_explorer *explorer;
    /* of this proposal, and of the one before, where explorers stand that go on from there */
    tune_rows rows, rows_before;
    uint64_t hash;
    base_dict recorded; /* trace -> store_record *: of this job, and of others before it */
    base_dict tried;    /* trace -> tune_sample *: proposed in this session */
    base_vec trials;    /* those with a result, in order */
    float *curve;
    int cap;
    tune_sample *candidate[TUNE_CANDIDATES]; /* as in state */
    tune_result stood; /* of state.stood, as the first comparison measured it; not STORE_OK: it was not */
} tune_tuned;

typedef struct {
    int number, task;
    tune_sample *trial[TUNE_MAX_BATCH];
    int n, done;
} tune_batch;

struct tune_session {
    tec_context *cx, *scratch; /* scratch: one candidate's schedule */
    tune_options o;
    tune_tuned *task;
    tune_curve *curve;
    tune_model *model;
    const char *prior;     /* words on what the model began with */
    bool model_knows;      /* something that can be predicted from */
    tune_tuned *scored;    /* the task that is proposed for */
    tune_batch *under_way; /* the last one that was proposed; NULL: none */
    tune_end end;
    int n_batches, current;
    int64_t n_trials, n_assigned, n_measured; /* with a result; handed out; measured by this session */
    int64_t recorded;                         /* trials of the job that were there when this session began */
    int64_t base;                             /* id of the last record that was there when the job began */
    int64_t adopted;                          /* trials when the job adopted last; -1: never */
    int n_stale, n_kept;                      /* see tune_remeasure */
    double (*told)[2]; /* of each task: before and after, as an earlier session found */
    int batch;
    double earlier, started; /* seconds of earlier sessions; the clock */
    store_record *unsaved;
    int n_unsaved;
    tune_times times;
};

/* session.c: asks the functions that may stop the session; the end is TUNE_STOPPED from then on. */
bool tune_is_stopped(tune_session *session);
/* propose.c */
tune_batch *tune_next_batch(tune_session *session); /* NULL: the end (session->end), or an error */
/* extents.c: the traces at each extent of the task: loss[i * extents->n + e] is that of trace i at extent e,
 * INFINITY where it does not run; result[i] is that of the last extent. False: stopped, or an error. */
bool tune_measure_extents(tune_session *session, const tune_task *task, const char *const *trace, int count,
                          tune_result *result, double *loss);
double tune_mean_loss(const tune_extents *extents, const double *loss);
/* journal.c */
bool tune_read_job(tune_session *session);
bool tune_read_records(tune_session *session, tune_tuned *tuned);
/* Those of the batch that were measured now, in one transaction with the job; nothing where all were
 * known. */
bool tune_write_trials(tune_session *session, tune_tuned *tuned, tune_sample *const *trial, int n,
                       store_job_state state);
bool tune_write_records(tune_session *session, store_record *record, int count, store_job_state state);
store_record tune_record(const tune_session *session, const tune_tuned *tuned, const tune_sample *trial);

static inline bool tune_is_replay(const tune_session *session)
{
    return !session->o.measurer;
}

#endif
