/* store/store.h -- the record store: every measurement of a tuner in one file, safe against crashes.
 *
 *     store *s = store_open(cx, "tune.db", NULL);
 *     // one batch, one transaction; the job's progress with it
 *     store_add(cx, s, records, n, &job, NULL);
 *     store_query q = {.exact_key = key, .target = fingerprint, .only_ok = true, .fastest_first = true,
 *         .limit = 10};
 *     store_cursor *c = store_find(cx, s, &q);
 *     for (store_record r; store_next(cx, c, &r);)
 *         printf("%g s\n%s", r.median, r.trace);
 *     if (!store_end(c))
 *         fprintf(stderr, "%s\n", tec_context_error(cx));
 *     store_close(s);
 *
 * What store_add has acknowledged survives the end of the process at any moment, and a loss of power. Several
 * processes may read and write one file; a writer waits for the others. The file lies on a local file system:
 * the write-ahead log needs memory that all its users share.
 *
 * Lifetime: a store and a cursor live until they are closed; lists that are given back lie in the context.
 * Errors: in the context that the call names, with the path; NULL or false. A call that fails has changed
 * nothing.
 * Threads: one store, one thread at a time. A child made by fork must not use its parent's store (an error;
 * closing is safe).
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdio.h>

#include "base/base.h"

typedef struct store store;
typedef struct store_cursor store_cursor;

/* The version of the schema that this library writes; older files are brought up to it, newer ones are
 * refused. */
enum { STORE_VERSION = 6 };

/* Nothing longer is stored or imported. Bytes, but for the numbers of costs and of a shape. */
enum {
    STORE_MAX_NAME = 4096,    /* tuner, job, device, status words */
    STORE_MAX_KEY = 1 << 16,  /* keys, target text, summary */
    STORE_MAX_TEXT = 1 << 20, /* definition, trace, arguments of a job */
    STORE_MAX_ERROR = 500,    /* longer first lines of errors are cut, not refused */
    STORE_MAX_COSTS = 4096,
    STORE_MAX_SHAPE = 64,
    STORE_MAX_FEATURES = 4 << 20,
    STORE_MAX_BLOB = 256 << 20, /* a cost model, the progress of a job */
    STORE_MAX_LINE = 32 << 20,  /* of an import */
    STORE_MAX_VALUES = 100000,  /* of one line of an import */
};

/* name, the word in the file and in JSON */
#define STORE_STATUS_LIST(X)                                                                                 \
    X(OK, "ok")                                                                                              \
    X(REFUSED, "refused") /* a step of the trace was not legal */                                            \
    X(BUILD_ERROR, "build error")                                                                            \
    X(RUN_ERROR, "run error")                                                                                \
    X(TIMEOUT, "timeout")                                                                                    \
    X(WRONG, "wrong answer")                                                                                 \
    X(DEVICE_ERROR, "device error") /* the device's fault, not the candidate's */                            \
    X(CANCELLED, "cancelled")

typedef enum {
#define X(name, text) STORE_##name,
    STORE_STATUS_LIST(X)
#undef X
} store_status;

const char *store_status_text(store_status status);
bool store_status_parse(const char *text, store_status *out);

/* ---- what a record says ---- */

/* In all structs below a text that is NULL is stored as "". */
typedef struct {
    const char *anchor_key, *exact_key; /* together they name the workload; both needed */
    const char *definition;             /* .te; the last one written for these keys is kept */
    const char *family;                 /* workloads whose shapes can be compared have the same one */
    const char *summary;                /* dtypes and shapes, for people */
    const double *shape;                /* for store_nearest: extents, all >= 0 */
    int n_shape;
    double flops;
    uint64_t anchor_hash, exact_hash; /* of the keys, given by the store */
} store_workload;

typedef struct {
    const char *fingerprint; /* of what decides the generated code; needed */
    const char *text;        /* parses to the target */
} store_target;

typedef struct {
    const char *name; /* "" where no device was reached */
    const char *text;
} store_device;

typedef struct {
    int64_t id; /* given by the store; rises in the order of insertion */
    store_workload workload;
    store_target target;
    store_device device;
    const char *trace;
    /* of the space that the trace came from, as text: what related workloads begin with. "": none */
    const char *point;
    const double *costs; /* seconds; a record that is ok has at least one, all above zero */
    int n_costs;
    double median, spread; /* of the costs, computed by the store: see store_summarise */
    store_status status;
    const char *stage;      /* where it failed: "build", "upload", "run" ... */
    const char *error_kind; /* a short word to count by */
    const char *error;      /* its first line; the rest is dropped */
    int features_version;   /* of the extractor that made `features` */
    const void *features;   /* NULL: none */
    size_t features_size;
    const char *tuner, *job;
    uint64_t seed;
    int64_t batch, trial;
    const char *codegen; /* version of the code generator */
    const char *version; /* of tec; NULL: this one */
    int64_t time;        /* seconds since 1970; 0: now */
    /* what the device said when it measured: its driver, "" where it has none; MHz; degrees Celsius */
    const char *driver;
    int64_t clock_mhz;  /* 0: unknown */
    double temperature; /* 0: unknown */
} store_record;

/* Median, and median distance from it; both 0 without costs. */
void store_summarise(const double *costs, int count, double *median, double *spread);

/* What a record that a store gave says, as 32 hexadecimal digits: equal records have equal hashes, in every
 * store. The features (which can be computed again), the point, the job and all that the store adds play no
 * part, nor do the definition, family, summary, shape and work of the workload. */
enum { STORE_HASH_SIZE = 33 };
const char *store_record_hash(const store_record *record, char out[STORE_HASH_SIZE]);

/* A deep copy in the context. */
store_record *store_keep(tec_context *cx, const store_record *record);

/* ---- opening ---- */

typedef struct {
    bool read_only;    /* never writes; the file must exist */
    bool must_exist;   /* a missing file is an error, not made */
    int busy_ms;       /* how long to wait for other writers; 0: 30 s */
    int64_t max_bytes; /* the file grows no larger; 0: no limit */
} store_options;

/* Opens, makes or migrates the file; NULL options: the defaults. A file or folder that this process may not
 * write is opened for reading only, and each write then says so. */
store *store_open(tec_context *cx, const char *path, const store_options *options);
void store_close(store *db); /* NULL is legal */
bool store_is_read_only(const store *db);

/* Turns the file into one of an older version of the schema, for a tec that knows no newer one; what only the
 * newer versions hold is lost. The store is to be closed afterwards. */
enum { STORE_OLDEST = 4 };
bool store_step_back(tec_context *cx, store *db, int version);
const char *store_path(const store *db); /* without a password */
bool store_is_server(const store *db);
/* Whether the last error was that the server could not be reached. The store connects again by itself. */
bool store_is_away(const store *db);
/* On a server: holds a name until the store is closed; false with an error where another process has it. In a
 * file nothing is held, and processes of one machine use files. */
bool store_lock(tec_context *cx, store *db, const char *name);

/* What a network file system is called by its number in statfs; NULL: local, or FUSE, which may be either. */
const char *store_network_name(long magic);

/* ---- writing ---- */

/* name, the word in the file */
#define STORE_JOB_LIST(X)                                                                                    \
    X(RUNNING, "running")                                                                                    \
    X(PAUSED, "paused")                                                                                      \
    X(DONE, "done")                                                                                          \
    X(FAILED, "failed")                                                                                      \
    X(CANCELLED, "cancelled")

typedef enum {
#define X(name, text) STORE_JOB_##name,
    STORE_JOB_LIST(X)
#undef X
} store_job_state;

const char *store_job_state_text(store_job_state state);

/* A tuning job, so that a restarted one goes on. */
typedef struct {
    const char *name; /* needed */
    const char *arguments;
    uint64_t seed;
    store_job_state state;
    const void *progress; /* the tuner's own */
    size_t progress_size;
    int64_t created, updated; /* set by the store; when merged: kept */
} store_job;

typedef struct {
    int64_t added, duplicates;
} store_added;

/* Adds a batch in one transaction, with the job's new state where `job` is not NULL. Records that the store
 * has already (by hash) are counted as duplicates. All or nothing; `added` may be NULL. */
bool store_add(tec_context *cx, store *db, const store_record *records, int number, const store_job *job,
               store_added *added);

/* Makes the job or replaces what it says. */
bool store_put_job(tec_context *cx, store *db, const store_job *job);
/* NULL without an error: there is none of that name. In the context. */
const store_job *store_get_job(tec_context *cx, store *db, const char *name);
/* All jobs by name (without progress); NULL on an error. */
const store_job *const *store_jobs(tec_context *cx, store *db, int *count);

/* A cost model: bytes of the tuner's for one target, one name and one version (of its features and
 * format). */
typedef struct {
    const char *target; /* fingerprint; needed */
    const char *name;   /* which model: its family, its kind; needed */
    int64_t version;
    const void *data;
    size_t size;
    int64_t n_records; /* that it was trained on */
    int64_t time;      /* 0: now */
} store_model;

bool store_put_model(tec_context *cx, store *db, const store_model *model); /* replaces */
const store_model *store_get_model(tec_context *cx, store *db, const char *target, const char *name,
                                   int64_t version);
const store_model *const *store_models(tec_context *cx, store *db, int *count); /* without data */

/* ---- reading ---- */

/* Which records, in which order; zero is all of them in the order of insertion. */
typedef struct {
    const char *exact_key, *anchor_key, *family; /* NULL: any */
    const char *target;                          /* fingerprint; NULL: any */
    /* further fingerprints: those that the caller found compatible */
    const char *const *targets;
    int n_targets;
    const char *device, *job, *tuner, *codegen; /* NULL: any */
    bool only_ok, only_failed;
    int64_t after;      /* ids above this one */
    bool fastest_first; /* by median; ties in the order of insertion */
    int64_t limit;      /* 0: none */
} store_query;

/* A cursor sees the store as it was at its first record, whatever other processes write. While it is open,
 * its own store is not to be written. NULL cursors give false. */
store_cursor *store_find(tec_context *cx, store *db, const store_query *query);
/* The next record, which lives until the next call; false at the end, and with an error in the context. */
bool store_next(tec_context *cx, store_cursor *cursor, store_record *out);
/* Before store_close; whether all went well so far. NULL: false. */
bool store_end(store_cursor *cursor);

/* The most fastest records that are ok (`query` may narrow further), in the context; NULL on an error. */
const store_record *const *store_best(tec_context *cx, store *db, const store_query *query, int most,
                                      int *count);
int64_t store_count(tec_context *cx, store *db, const store_query *query); /* -1 on an error */
/* the highest id; 0: no records, -1 on an error */
int64_t store_last(tec_context *cx, store *db);

typedef struct {
    double distance; /* Euclidean, of the logarithms of extent + 1 */
    const store_record *best;
} store_near;

/* The most workloads with a shape of this length that come nearest, the nearest first, each with its fastest
 * record that is ok; workloads without one do not count. `query` narrows (its family, in most cases). NULL on
 * an error. */
const store_near *store_nearest(tec_context *cx, store *db, const store_query *query, const double *shape,
                                int n_shape, int most, int *count);

/* One workload on one target: how often it was tried and what came of it. */
typedef struct {
    store_workload workload;
    store_target target;
    int64_t n_ok, n_failed, n_dropped; /* dropped: by store_compact */
    double best;                       /* median; 0 where none is ok */
} store_summary;

/* All pairs of workload and target, in the order of their first record; `query` narrows. NULL on an error. */
const store_summary *store_summaries(tec_context *cx, store *db, const store_query *query, int *count);

/* What failed how often, the records that store_compact dropped included. */
typedef struct {
    store_status status;
    const char *stage, *error_kind;
    const char *example; /* one first line */
    int64_t count;
} store_failure;
const store_failure *store_failures(tec_context *cx, store *db, const store_query *query, int *count);

/* ---- exchange ---- */

typedef struct {
    /* the first bad line ends the import, and nothing of it is kept; otherwise bad lines are skipped */
    bool refuse;
    const char *name;                                            /* of what is read, for errors */
    void (*bad_line)(void *user, int64_t line, const char *why); /* NULL: not told */
    void *user;
} store_import_options;

typedef struct {
    int64_t lines, added, duplicates, bad;
} store_imported;

/* One record as a line of JSON without its newline; NULL with an error. Numbers read back exactly. */
const char *store_json(tec_context *cx, const store_record *record);
/* Reads such a line (not terminated: `size` bytes); what it gives lies in the context. The line may be
 * hostile. */
const store_record *store_json_parse(tec_context *cx, const char *line, size_t size);

/* The records of `query` as JSON lines; the number of them, -1 on an error. */
int64_t store_export(tec_context *cx, store *db, const store_query *query, FILE *to);
bool store_import(tec_context *cx, store *db, FILE *from, const store_import_options *options,
                  store_imported *out);

/* Adds what `from` has and `db` has not: records, jobs, models (of two the newer). */
bool store_merge(tec_context *cx, store *db, store *from, store_added *added);

/* ---- care ---- */

typedef struct {
    int64_t kept, dropped;
    int64_t bytes_before, bytes_after;
} store_compacted;

/* Keeps the `keep` fastest records of each workload on each target and all records of jobs that are not
 * finished; of the others only how many there were, by status, stage and kind. Then gives the space back to
 * the file system. */
bool store_compact(tec_context *cx, store *db, int keep, store_compacted *out);

typedef struct {
    /* Whether the trace applies to the definition; false with the reason in `cx`. NULL: traces are not looked
     * at. */
    bool (*readable)(void *user, tec_context *cx, const store_record *record);
    void (*problem)(void *user, const char *what); /* NULL: not told */
    void *user;
} store_check_options;

/* The number of problems: damaged pages, broken links between tables, contents that do not match their
 * hashes, traces that cannot be read. -1 with an error when the file cannot be read at all. */
int64_t store_check(tec_context *cx, store *db, const store_check_options *options);

#endif
