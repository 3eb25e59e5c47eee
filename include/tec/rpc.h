/* tec/rpc.h -- devices of other machines: sessions on an rpc_server.
 *
 *     tec_error err = {0};
 *     tec_rpc *board = tec_rpc_connect("board:9190", &(tec_rpc_options){.key_file = "pool.keys"}, &err);
 *     tec_rpc_session *s = tec_rpc_open(board, &(tec_rpc_session_options){.device = "cpu:0"}, &err);
 *     int64_t m = tec_rpc_upload(s, "matmul.so", &err), a = tec_rpc_array(s, f32, 2, shape, &err), ...;
 *     tec_rpc_call_options add = {.module = m, .arrays = (int64_t[]){a, b, c}, .n = 3};
 *     if (!tec_rpc_write(s, a, &host, &err) || !tec_rpc_call(s, &add, NULL, &err) ||
 *         !tec_rpc_read(s, c, &result, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     tec_rpc_close(s);
 *     tec_rpc_disconnect(board);
 *
 * A number from 1 names a module, an array or an executor of a session; 0 stands for none. They are freed
 * when the session ends.
 *
 * Lifetime: close the sessions before their connection. Closing NULL does nothing.
 * Errors: as in tec/runtime.h. TEC_TIMEOUT, TEC_CRASHED, TEC_CANCELLED and TEC_LOST end the session;
 *   TEC_CANCELLED and TEC_LOST end the connection too. The message says why. The message of a crash ends with
 *   the last text that the session's process printed.
 * Time: every call has a deadline (tec_rpc_options.seconds, tec_rpc_set_deadline), so no call waits for ever.
 * Threads: calls on one connection run one after the other. Only tec_rpc_cancel may be called at any time, by
 *   any thread. A thread of the library keeps a connection alive between calls.
 */
#ifndef TEC_RPC_H
#define TEC_RPC_H

#include "tec/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- connections ---- */

typedef struct tec_rpc tec_rpc;

typedef struct {
    const char *key_file; /* needed: see 'tec keys' */
    const char *key;      /* the id of the key; NULL: the first active key in the file */
    const char *program;  /* name of the caller, for the server's log; NULL: "tec" */
    double seconds;       /* of each call, connecting included; 0: 60 */
} tec_rpc_options;

/* address: "HOST:PORT", "[::1]:PORT". */
TEC_API TEC_GIVE tec_rpc *tec_rpc_connect(const char *address, const tec_rpc_options *options,
                                          tec_error *err);
TEC_API void tec_rpc_disconnect(TEC_TAKE tec_rpc *client);
/* From now on each call may take so many seconds. */
TEC_API void tec_rpc_set_deadline(tec_rpc *client, double seconds);
/* Ends the present call, and all later ones, with TEC_CANCELLED. Any thread may call it. */
TEC_API void tec_rpc_cancel(tec_rpc *client);

typedef struct {
    const char *name, *hardware, *driver;
    int64_t memory_bytes, shared_bytes, units, clock_mhz, cache_bytes;
    double temperature; /* degrees Celsius; 0: unknown */
    int64_t caches[4];  /* bytes, of a core: L1 for data, L1 for code, L2, L3; 0: unknown */
} tec_rpc_device;

typedef struct {
    const char *kind, *reason;
} tec_rpc_missing;

typedef struct {
    const char *host, *target;
    int64_t sessions, most_sessions;
    const tec_rpc_device *devices;
    int n_devices;
    const tec_rpc_missing *missing;
    int n_missing;
} tec_rpc_offer;

/* What the server offers. The answer is valid until the next tec_rpc_list or the end of the connection. NULL:
 * the call failed. */
TEC_API const tec_rpc_offer *tec_rpc_list(tec_rpc *client, bool refresh, tec_error *err);

/* ---- leases: devices of a pool, asked from its tracker ----
 *
 *     tec_rpc *tracker = tec_rpc_connect("tracker:9190", &(tec_rpc_options){.key_file = "pool.keys"}, &err);
 *     tec_rpc_lease *l = tec_rpc_request(tracker, &(tec_rpc_lease_options){.device_class = "rpi4"}, &err);
 *     while (tec_rpc_wait(l, 1, &err) == TEC_RPC_WAITING)
 *         if (tec_rpc_queue_of(l, &q)) printf("waiting: %lld ahead of you\n", (long long)q.ahead);
 *     tec_rpc *server = tec_rpc_connect_leased(l, NULL, &err);
 *     tec_rpc_session *s = tec_rpc_open(server, NULL, &err);           // on the leased device
 *     ...
 *     tec_rpc_close(s);  tec_rpc_disconnect(server);  tec_rpc_give_back(l);  tec_rpc_disconnect(tracker);
 *
 * A thread of the library renews the leases as long as the connection to the tracker exists. If the
 * connection is lost, the thread dials the tracker every second; once it is connected again, it renews each
 * lease and repeats each request. A lease stays valid while the tracker is restarted. A connection to a
 * tracker may have many requests and leases.
 */

typedef struct tec_rpc_lease tec_rpc_lease;

typedef struct {
    const char *device_class; /* needed */
    const char *user;         /* the user whose share of the class is charged; NULL: the user of the key */
    const char *job;          /* the job of the user that is charged; NULL: the program's name */
    int priority;             /* of the job: 1 to 100; 0: 10 */
    const char *prefer;       /* "SERVER/DEVICE" to take if it is free; NULL: any */
    double term_seconds;      /* how long the lease lasts without a renewal; 0: the tracker's default */
} tec_rpc_lease_options;

typedef enum { TEC_RPC_FAILED, TEC_RPC_WAITING, TEC_RPC_GRANTED } tec_rpc_lease_state;

/* Sends a request and does not wait for the grant. Free the result with tec_rpc_give_back, whether the lease
 * was granted or not. */
TEC_API TEC_GIVE tec_rpc_lease *tec_rpc_request(tec_rpc *tracker, const tec_rpc_lease_options *options,
                                                tec_error *err);
/* Waits for the grant, at most this many seconds (0: does not wait). TEC_RPC_FAILED: the request was refused,
 * or the lease has ended; the error says why. For a lease that was granted before, tells whether it still
 * exists. */
TEC_API tec_rpc_lease_state tec_rpc_wait(tec_rpc_lease *lease, double seconds, tec_error *err);

typedef struct {
    int64_t ahead;   /* requests that are likely served before this one */
    int64_t devices; /* of the class, those in service */
    int64_t leased;  /* of these */
    double waited_s;
} tec_rpc_queue;

/* The place of a waiting request in the queue, which the tracker reports about once a second. False: the
 * request is not waiting, or the tracker has not reported yet. */
TEC_API bool tec_rpc_queue_of(tec_rpc_lease *lease, tec_rpc_queue *out);

typedef struct {
    int64_t number;
    const char *server, *address, *device, *device_class;
} tec_rpc_grant_info;

/* The granted device; valid as long as the lease. False: no lease was granted. */
TEC_API bool tec_rpc_granted(const tec_rpc_lease *lease, tec_rpc_grant_info *out);
/* Renews the lease now and waits for the tracker's answer. False: the lease has ended. */
TEC_API bool tec_rpc_renew(tec_rpc_lease *lease, tec_error *err);
/* How many requests of other jobs waited for a device of the class when the lease was renewed last. A client
 * that has had the device for a while may give it back, and ask again. An older tracker does not tell: 0. */
TEC_API int64_t tec_rpc_wanted(tec_rpc_lease *lease);
/* Ends the lease, or withdraws the request. Call it before the tracker is disconnected. NULL is allowed. */
TEC_API void tec_rpc_give_back(TEC_TAKE tec_rpc_lease *lease);
/* Connects to the server of the lease with the key of the tracker's connection. options may be NULL; their
 * key is ignored. */
TEC_API TEC_GIVE tec_rpc *tec_rpc_connect_leased(tec_rpc_lease *lease, const tec_rpc_options *options,
                                                 tec_error *err);
/* Takes the leased device out of service: the tracker no longer leases it, and lists the reason. */
TEC_API bool tec_rpc_set_aside(tec_rpc_lease *lease, const char *reason, tec_error *err);

/* ---- administration: what a key with the role administer may tell a tracker ----
 *
 *     tec_rpc *tracker = tec_rpc_connect("tracker:9190", &(tec_rpc_options){.key_file = "admin.keys"}, &err);
 *     if (!tec_rpc_set_device_aside(tracker, "shelf-1/cpu:0", "the fan is broken", NULL, &err) ||
 *         !tec_rpc_restore(tracker, "shelf-1/cpu:0", &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     tec_rpc_disconnect(tracker);
 *
 * The names are those that `tec devices --tracker` lists: "SERVER/DEVICE" of a device, "SERVER" of a server.
 * The functions return when the tracker has carried out what they say; they keep no text that they are given.
 * Leases that exist go on. TEC_DENIED: the key lacks the role; TEC_INVALID: the tracker knows no such device
 * or server. After both the connection is as good as before.
 */

/* Takes a device out of service: the tracker no longer leases it, also after a restart, and lists the reason.
 * The holder of a lease on the device may do so too. leases: 1 if the device is leased now; may be NULL. */
TEC_API bool tec_rpc_set_device_aside(tec_rpc *tracker, const char *device, const char *reason,
                                      int64_t *leases, tec_error *err);
/* Takes a server out of service until it is restored, or registers again. leases: how many leases its devices
 * have now, so at 0 the server may be switched off; may be NULL. */
TEC_API bool tec_rpc_drain(tec_rpc *tracker, const char *server, int64_t *leases, tec_error *err);
/* Puts a device that was set aside, or a server that was drained, into service again. One that is in service
 * stays so. */
TEC_API bool tec_rpc_restore(tec_rpc *tracker, const char *name, tec_error *err);

/* ---- sessions ---- */

typedef struct tec_rpc_session tec_rpc_session;

typedef struct {
    const char *device;   /* NULL: the device of the connection's lease, or else "cpu:0" */
    const char *label;    /* for the server's log; may be NULL */
    int64_t memory_bytes; /* limit of the session's memory; 0: the server's limit */
    double seconds;       /* time limit of each request to the server; 0: the server's limit */
    int64_t lease;        /* number of the lease on the device; 0: the lease of the connection */
} tec_rpc_session_options;

/* options may be NULL. */
TEC_API TEC_GIVE tec_rpc_session *tec_rpc_open(tec_rpc *client, const tec_rpc_session_options *options,
                                               tec_error *err);
TEC_API void tec_rpc_close(TEC_TAKE tec_rpc_session *session);

/* Uploads a module file. Gives the number of the module, or 0. */
TEC_API int64_t tec_rpc_upload(tec_rpc_session *session, const char *path, tec_error *err);
TEC_API int64_t tec_rpc_upload_bytes(tec_rpc_session *session, const char *name, const void *data,
                                     size_t size, tec_error *err);
/* Uploads a module file while the next call of the session is answered. Between the two functions the session
 * is used as always; `data` must stay until tec_rpc_uploaded or tec_rpc_close. tec_rpc_uploaded gives the
 * number of the module, or 0; it waits for what is still under way. */
TEC_API bool tec_rpc_upload_ahead(tec_rpc_session *session, const char *name, const void *data, size_t size,
                                  tec_error *err);
TEC_API int64_t tec_rpc_uploaded(tec_rpc_session *session, tec_error *err);
/* Frees a module, an array or an executor. */
TEC_API bool tec_rpc_release(tec_rpc_session *session, int64_t number, tec_error *err);

/* Makes a compact array of zeros on the device. Gives the number of the array, or 0. */
TEC_API int64_t tec_rpc_array(tec_rpc_session *session, DLDataType dtype, int ndim, const int64_t *shape,
                              tec_error *err);
/* Copy a whole array from or to main memory. The tensor must be compact and have as many bytes as the
 * array. */
TEC_API bool tec_rpc_write(tec_rpc_session *session, int64_t array, const DLTensor *from, tec_error *err);
TEC_API bool tec_rpc_read(tec_rpc_session *session, int64_t array, const DLTensor *to, tec_error *err);

typedef struct {
    int64_t module;
    const char *function;  /* NULL: the only one */
    const int64_t *arrays; /* one for each parameter, outputs too */
    int n;
    int threads;      /* 0: as many as the device has */
    int64_t executor; /* tec_rpc_time measures this executor instead of a function; 0: none */
    int64_t program;  /* tec_rpc_time measures this instance on the values `arrays`; 0: none */
} tec_rpc_call_options;

/* Calls the function. seconds: the time on the device; may be NULL. */
TEC_API bool tec_rpc_call(tec_rpc_session *session, const tec_rpc_call_options *options, double *seconds,
                          tec_error *err);
/* Measures on the device; options as for tec_time, and may be NULL. */
TEC_API bool tec_rpc_time(tec_rpc_session *session, const tec_rpc_call_options *self,
                          const tec_time_options *options, tec_timing *out, tec_error *err);

/* ---- executors of graphs ---- */

/* Makes an executor of a graph (NULL: the only graph of the module). Gives the executor's number, or 0. */
TEC_API int64_t tec_rpc_prepare(tec_rpc_session *session, int64_t module, const char *graph, int threads,
                                tec_error *err);
typedef struct {
    int threads;  /* 0: as many as the device has */
    bool profile; /* measures each step of each run, for tec_rpc_profile; the server must speak version 6 */
} tec_rpc_prepare_options;

/* The same with options, which may be NULL. */
TEC_API int64_t tec_rpc_prepare_with(tec_rpc_session *session, int64_t module, const char *graph,
                                     const tec_rpc_prepare_options *options, tec_error *err);
TEC_API bool tec_rpc_feed(tec_rpc_session *session, int64_t executor, int input, int64_t array,
                          tec_error *err);
TEC_API bool tec_rpc_run(tec_rpc_session *session, int64_t executor, double *seconds, tec_error *err);
/* Copies an output of the last run into a new array in main memory. NULL: the call failed. */
TEC_API TEC_GIVE tec_array *tec_rpc_fetch(tec_rpc_session *session, int64_t executor, int output,
                                          tec_error *err);

/* ---- programs: control flow, lists, trees (tec/program.h) ----
 *
 *     int64_t p = tec_rpc_program(s, m, NULL, 0, &err), x = tec_rpc_tensor(s, p, array, &err), y;
 *     int64_t leaf = tec_rpc_compound(s, p, "Leaf", &x, 1, &err);
 *     if (tec_rpc_execute(s, p, &leaf, 1, &y, 1, NULL, &err)) result = tec_rpc_fetch_tensor(s, y, &err);
 *
 * A value has a number, as an array has. tec_rpc_release frees it; if it is not called, the value is freed
 * with the instance of the program that it was made for.
 */

/* Makes an instance of a program of the module. function NULL: the first one of the module. Gives the number
 * of the instance, or 0. */
TEC_API int64_t tec_rpc_program(tec_rpc_session *session, int64_t module, const char *function, int threads,
                                tec_error *err);
/* Zero is the default, as in tec/program.h. */
typedef struct {
    int threads;
    int64_t max_steps, max_depth, max_bytes;
    double deadline; /* seconds for one run */
    bool profile;    /* measures kernels and instructions of each run, for tec_rpc_profile */
} tec_rpc_program_options;

/* The same, with limits for each run. The server must speak version 5 of the protocol, or 6 for a profile.
 * options may be NULL. */
TEC_API int64_t tec_rpc_program_with(tec_rpc_session *session, int64_t module, const char *function,
                                     const tec_rpc_program_options *options, tec_error *err);
/* Copies an array into a new value. Gives the number of the value, or 0. */
TEC_API int64_t tec_rpc_tensor(tec_rpc_session *session, int64_t program, int64_t array, tec_error *err);
/* Makes a value of other values: data by a constructor of the program, or a tuple if constructor is NULL.
 * Gives the number of the new value, or 0. */
TEC_API int64_t tec_rpc_compound(tec_rpc_session *session, int64_t program, const char *constructor,
                                 const int64_t *parts, int n, tec_error *err);
/* Runs the program on one value for each input. The numbers of its n_out results go to `out`. seconds: how
 * long the run took on the device; may be NULL. */
TEC_API bool tec_rpc_execute(tec_rpc_session *session, int64_t program, const int64_t *in, int n_in,
                             int64_t *out, int n_out, double *seconds, tec_error *err);

typedef struct {
    bool is_tensor;
    char constructor[128]; /* of data; empty: a tuple or a tensor */
    int n_parts;
    int64_t *parts; /* new numbers: the parts stay valid when the whole value is released */
} tec_rpc_value;

/* Describes a value: a tensor, or its constructor and parts. Free the description with tec_rpc_value_free.
 * False: the call failed. */
TEC_API bool tec_rpc_look(tec_rpc_session *session, int64_t value, tec_rpc_value *out, tec_error *err);
TEC_API void tec_rpc_value_free(tec_rpc_value *value);
/* Copies a value that is a tensor into a new array in main memory. NULL: the call failed. */
TEC_API TEC_GIVE tec_array *tec_rpc_fetch_tensor(tec_rpc_session *session, int64_t value, tec_error *err);

/* ---- profiles ----
 *
 *     tec_rpc_profile_rows rows;
 *     if (tec_rpc_profile(s, executor, &rows, &err))
 *         for (int i = 0; i < rows.n; i++) printf("%s %g\n", rows.at[i].name, rows.at[i].median_s);
 *     tec_rpc_profile_free(&rows);
 */

/* The rows of an executor or of a program. Texts of more than a few hundred characters end with three dots;
 * the function is unknown. */
typedef struct {
    int n;
    tec_profile_row *at;
} tec_rpc_profile_rows;

/* What the runs of an executor or of an instance of a program took on the device, step by step. It must have
 * been made with the option `profile`, and have run. Free the rows with tec_rpc_profile_free. False: the
 * call failed, and there are no rows. */
TEC_API bool tec_rpc_profile(tec_rpc_session *session, int64_t number, tec_rpc_profile_rows *out,
                             tec_error *err);
TEC_API void tec_rpc_profile_free(tec_rpc_profile_rows *rows);

#ifdef __cplusplus
}
#endif
#endif
