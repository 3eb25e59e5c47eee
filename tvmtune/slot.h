/* tvmtune/slot.h -- inside the room: a running job as the runner sees it: its stage, the child process of
 * that stage, and how far the output of the child was read.
 *
 * folder.c has its files, programs.c the command lines, stages.c the way from stage to stage; run.c gives
 * each slot its turn.
 */
#ifndef TVMTUNE_SLOT_H
#define TVMTUNE_SLOT_H

#include "tvmtune/child.h"
#include "tvmtune/run.h"

/* The kernels are listed; those that nobody tuned are tuned; those that other jobs tune are waited for.
 * Then all is compiled with the records and without them, and the two modules run in turns. A job whose
 * state cannot be written is held until it can. */
typedef enum { TVM_LIST, TVM_TUNE, TVM_WAIT, TVM_BUILD, TVM_PLAIN, TVM_COMPARE, TVM_HELD } tvm_stage;

typedef struct {
    int64_t id; /* 0: free */
    tvm_stage stage;
    tvm_child child;
    char name[STORE_MAX_NAME];
    char device_class[256]; /* whose devices measure; "": this machine */
    char machine[4096];     /* the target of these devices, as the first stage finds it out */
    int64_t seen;           /* bytes of the child's output */
    int64_t tried, told;    /* trials, and as the store knows them */
    int64_t earlier;        /* of them, by tuning that is over */
    int stale, kept;        /* schedules of an earlier code generator: measured again; kept */
    int parts, mine;        /* kernels; of them, those that this job tunes now */
    char codegen[128];
    int64_t heard;  /* when the child last said something, by tvm_seconds */
    int64_t looked; /* when it was last asked whether other jobs are through */
    bool asked, cancel, silent;
    bool over; /* the child has ended with `status`, and the store does not know yet what follows */
    int status;
    int64_t renewed; /* when the lease was, by tvm_milliseconds */
    char held[512];  /* why, in the stage TVM_HELD */
} tvm_slot;

struct tvm_runner {
    tec_context *cx;
    tvm_runner_options o;
    store *db;
    tvm_slot slots[TVM_AT_ONCE];
    int64_t swept, revived;
    int64_t looked; /* when the queue had nothing to take, by tvm_milliseconds */
};

/* run.c: a clock that no correction of the time of day moves. */
int64_t tvm_milliseconds(const tvm_runner *runner);
int64_t tvm_seconds(const tvm_runner *runner);

/* folder.c */
const char *tvm_file(tec_context *cx, const tvm_runner *runner, int64_t id, const char *file);
bool tvm_is_definitions(const char *name);
const char *tvm_input(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry);
/* What a stage is called, and the file that its program prints into. */
const char *tvm_doing(tvm_stage stage);
const char *tvm_output(const tvm_slot *entry);
void tvm_clear_folder(tec_context *cx, const tvm_runner *runner, int64_t id);
/* Removes the folders of all jobs, before any of them runs. */
void tvm_sweep_folders(tec_context *cx, const tvm_runner *runner);
/* Writes the submitted file into an empty folder. False with an error. */
bool tvm_lay_out(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry);
/* Notices what the child has printed since the last call. */
void tvm_listen_to(tec_context *cx, const tvm_runner *runner, tvm_slot *entry);
/* All that the child has printed; "" where it printed nothing. */
const char *tvm_said(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry);
const char *tvm_first_error(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry);

/* programs.c: the command line of the job's present stage; NULL with an error. */
const char *const *tvm_command(tec_context *cx, const tvm_runner *runner, const tvm_slot *entry,
                               const store_queued *queued);
int64_t tvm_trials_of(const store_queued *queued);
/* The value of an option that the job was submitted with; "" where it has none. */
const char *tvm_option_of(tec_context *cx, const store_queued *queued, const char *name);

/* stages.c: each false with an error, where the store or a program cannot be used. */
bool tvm_begin_stage(tec_context *cx, tvm_runner *runner, tvm_slot *entry);
bool tvm_choose(tec_context *cx, tvm_runner *runner, tvm_slot *entry);
bool tvm_end_job(tec_context *cx, tvm_runner *runner, tvm_slot *entry, const char *failure);
bool tvm_go_on(tec_context *cx, tvm_runner *runner, tvm_slot *entry, int status);

#endif
