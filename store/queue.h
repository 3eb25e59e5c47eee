/* store/queue.h -- the queue of a tuning daemon: jobs that wait, run, are paused, or are over, with their
 * files.
 *
 *     store_queued j = {.name = "resnet.onnx", .trials = 500};
 *     int64_t id = store_queue_add(cx, s, &j, model, size);
 *     while (store_queue_take(cx, s, "host-1", 30, &id) && id) {   // queued -> running, for 30 seconds
 *         ...                                                      // store_queue_renew every ten
 *         store_queue_end(cx, s, &(store_queue_end_of){id, "host-1", STORE_QUEUE_DONE, .files = f, .n = n});
 *     }
 *
 * The whole state of a job is in the store, and each call is one transaction. Several daemons may share a
 * queue: each has a name of its own, takes jobs for the time of a lease, and renews the lease while it runs
 * the job. A daemon that is killed at any moment leaves jobs marked as running. It takes them again when it
 * calls store_queue_recover, and any other daemon takes them when the lease is over. Such jobs go first.
 *
 * Lifetime: what is given back lies in the context. Errors: in the context; a job that does not exist is an
 * error (TEC_INVALID). Threads: as the store.
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "store/store.h"

/* name, the word in the file and in JSON */
#define STORE_QUEUE_LIST(X)                                                                                  \
    X(QUEUED, "queued")                                                                                      \
    X(RUNNING, "running")                                                                                    \
    X(PAUSED, "paused")                                                                                      \
    X(DONE, "done")                                                                                          \
    X(FAILED, "failed")                                                                                      \
    X(INTERRUPTED, "interrupted") /* its daemon ended while the job was running */

typedef enum {
#define X(name, text) STORE_QUEUE_##name,
    STORE_QUEUE_LIST(X)
#undef X
} store_queue_state;

const char *store_queue_state_text(store_queue_state state);

/* What somebody asks of a job; one that runs cannot follow at once. */
typedef enum { STORE_QUEUE_NO_WISH, STORE_QUEUE_PAUSE, STORE_QUEUE_CANCEL } store_queue_wish;

typedef struct {
    int64_t id;                        /* given by the store; rises in the order of submission */
    const char *name;                  /* of the submitted file; needed. Its ending says what the file is */
    const char *options;               /* what the daemon needs besides, as JSON */
    int64_t trials, seconds, priority; /* a greater priority is taken earlier */
    store_queue_state state;
    const char *cause;     /* of paused and failed; "" otherwise */
    int64_t tried;         /* trials so far */
    const char *user;      /* who submitted the job */
    store_queue_wish wish; /* of a running job: asked for, not done yet */
    int64_t created, updated;
    const char *owner; /* the daemon that runs the job; the last one that did, once the job is over */
} store_queued;

typedef struct {
    const char *name; /* "input", "module", "report"; needed */
    const void *data;
    size_t size;
} store_queue_file;

/* Adds a job in the state queued, with its file "input". The job's id; 0 with an error. */
int64_t store_queue_add(tec_context *cx, store *db, const store_queued *queued, const void *input,
                        size_t size);
const store_queued *store_queue_get(tec_context *cx, store *db, int64_t id);
/* All jobs by id; NULL on an error. */
const store_queued *const *store_queue_all(tec_context *cx, store *db, int *count);
/* Makes the next job running, by this daemon for so many seconds: interrupted ones first, then by priority,
 * then by id. *id 0: none waits. */
bool store_queue_take(tec_context *cx, store *db, const char *owner, int64_t seconds, int64_t *id);
/* Prolongs the lease of a running job. *held false: the job is no longer this daemon's. */
bool store_queue_renew(tec_context *cx, store *db, int64_t id, const char *owner, int64_t seconds,
                       bool *held);
/* Moves the job from one state to another. False with an error where the job is in another state than
 * `from`. */
bool store_queue_move(tec_context *cx, store *db, int64_t id, store_queue_state from, store_queue_state to,
                      const char *cause);
/* Pauses or cancels the job. One that is running only gets the wish, which its daemon follows: *done is false
 * then. The
 * wish is in the store, so a daemon that is killed forgets none. An error where the job is over. */
bool store_queue_ask(tec_context *cx, store *db, int64_t id, store_queue_wish wish, bool *done);
bool store_queue_progress(tec_context *cx, store *db, int64_t id, int64_t tried);
/* Ends a running job as done, failed or paused, and keeps its files: all of it or nothing. An error where
 * another daemon runs the job. */
typedef struct {
    int64_t id;
    const char *owner;
    store_queue_state to;
    const char *cause;
    const store_queue_file *files;
    int n;
} store_queue_end_of;
bool store_queue_end(tec_context *cx, store *db, const store_queue_end_of *of);
/* Every job that this daemon left as running becomes interrupted, or what was asked of it; owner NULL:
 * those of any daemon whose lease is over; owner "": all, where this daemon is the only one of the store. */
bool store_queue_recover(tec_context *cx, store *db, const char *owner);
/* A file of the job; NULL with an error where the job has none of this name. */
const void *store_queue_read(tec_context *cx, store *db, int64_t id, const char *name, size_t *size);
/* Removes a job that is not running, with its files. Its records stay. */
bool store_queue_remove(tec_context *cx, store *db, int64_t id);

/* Paused jobs whose cause begins so are queued again. */
bool store_queue_revive(tec_context *cx, store *db, const char *cause);
/* A number that is another one after each change of the store, by whomever. */
bool store_queue_stamp(tec_context *cx, store *db, int64_t *stamp);

#endif
