/* tec/rpc.h -- devices of other machines: sessions on an rpc_server.
 *
 *     tec_error err = {0};
 *     tec_rpc *c = tec_rpc_connect("board:9190", &(tec_rpc_options){.key_file = "pool.keys"}, &err);
 *     tec_rpc_session *s = tec_rpc_open(c, &(tec_rpc_session_options){.device = "cpu:0"}, &err);
 *     int64_t m = tec_rpc_upload(s, "matmul.so", &err), a = tec_rpc_array(s, f32, 2, shape, &err), ...;
 *     if (!tec_rpc_write(s, a, &host, &err) ||
 *         !tec_rpc_call(s, &(tec_rpc_call_options){.module = m, .arrays = (int64_t[]){a, b, c}, .n = 3},
 * NULL, &err) ||
 *         !tec_rpc_read(s, c, &result, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     tec_rpc_close(s);
 *     tec_rpc_disconnect(c);
 *
 * Modules, arrays and executors of a session are known by numbers from 1; 0 is none. They go with the
 * session.
 *
 * Lifetime: sessions are closed before their connection. NULL may be closed.
 * Errors: as in tec/runtime.h. TEC_TIMEOUT, TEC_CRASHED, TEC_CANCELLED and TEC_LOST end this session, and the
 *   last two the connection; the message says why, and a message of a crash ends with what a session's
 *   process printed last.
 * Time: every call has a deadline (tec_rpc_options.seconds, tec_rpc_set_deadline): none waits for ever.
 * Threads: calls on one connection wait for each other, but for tec_rpc_cancel, which any thread may call. A
 *   thread of the library's own keeps a connection alive between calls.
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
    const char *key;      /* the id of the key; NULL: the first one in the file that is in force */
    const char *program;  /* name of the caller, for the server's log; NULL: "tec" */
    double seconds;       /* of each call, connecting included; 0: 60 */
} tec_rpc_options;

/* address: "HOST:PORT", "[::1]:PORT". */
TEC_API TEC_GIVE tec_rpc *tec_rpc_connect(const char *address, const tec_rpc_options *options,
                                          tec_error *err);
TEC_API void tec_rpc_disconnect(TEC_TAKE tec_rpc *c);
/* From now on each call may take so many seconds. */
TEC_API void tec_rpc_set_deadline(tec_rpc *c, double seconds);
/* Ends the call that is under way, and all later ones, with TEC_CANCELLED. Any thread. */
TEC_API void tec_rpc_cancel(tec_rpc *c);

typedef struct {
    const char *name, *hardware, *driver;
    int64_t memory_bytes, shared_bytes, units, clock_mhz, cache_bytes;
    double temperature; /* degrees Celsius; 0: unknown */
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

/* What the server offers: until the next tec_rpc_list, and as long as the connection. NULL: failed. */
TEC_API const tec_rpc_offer *tec_rpc_list(tec_rpc *c, bool refresh, tec_error *err);

/* ---- sessions ---- */

typedef struct tec_rpc_session tec_rpc_session;

typedef struct {
    const char *device;   /* NULL: "cpu:0" */
    const char *label;    /* for the server's log; may be NULL */
    int64_t memory_bytes; /* that it may allocate; 0: as much as the server allows */
    double seconds;       /* limit of each question, kept by the server; 0: as long as it allows */
} tec_rpc_session_options;

/* options may be NULL. */
TEC_API TEC_GIVE tec_rpc_session *tec_rpc_open(tec_rpc *c, const tec_rpc_session_options *options,
                                               tec_error *err);
TEC_API void tec_rpc_close(TEC_TAKE tec_rpc_session *s);

/* A module file; its number, or 0. */
TEC_API int64_t tec_rpc_upload(tec_rpc_session *s, const char *path, tec_error *err);
TEC_API int64_t tec_rpc_upload_bytes(tec_rpc_session *s, const char *name, const void *data, size_t size,
                                     tec_error *err);
/* Gives back a module, an array or an executor. */
TEC_API bool tec_rpc_release(tec_rpc_session *s, int64_t number, tec_error *err);

/* A compact array on the device, zeroed; its number, or 0. */
TEC_API int64_t tec_rpc_array(tec_rpc_session *s, DLDataType dtype, int ndim, const int64_t *shape,
                              tec_error *err);
/* All bytes of an array, from or to a compact tensor in main memory of as many bytes. */
TEC_API bool tec_rpc_write(tec_rpc_session *s, int64_t array, const DLTensor *from, tec_error *err);
TEC_API bool tec_rpc_read(tec_rpc_session *s, int64_t array, const DLTensor *to, tec_error *err);

typedef struct {
    int64_t module;
    const char *function;  /* NULL: the only one */
    const int64_t *arrays; /* one for each parameter, outputs too */
    int n;
    int threads;      /* 0: all of the device */
    int64_t executor; /* tec_rpc_time: to be measured instead of a function; 0: none */
} tec_rpc_call_options;

/* seconds: how long it took on the device; may be NULL. */
TEC_API bool tec_rpc_call(tec_rpc_session *s, const tec_rpc_call_options *o, double *seconds, tec_error *err);
/* Measures on the device; options as for tec_time, and may be NULL. */
TEC_API bool tec_rpc_time(tec_rpc_session *s, const tec_rpc_call_options *o, const tec_time_options *options,
                          tec_timing *out, tec_error *err);

/* ---- executors of graphs ---- */

/* graph NULL: the module's only one. The executor's number, or 0. */
TEC_API int64_t tec_rpc_prepare(tec_rpc_session *s, int64_t module, const char *graph, int threads,
                                tec_error *err);
TEC_API bool tec_rpc_feed(tec_rpc_session *s, int64_t executor, int input, int64_t array, tec_error *err);
TEC_API bool tec_rpc_run(tec_rpc_session *s, int64_t executor, double *seconds, tec_error *err);
/* An output of the last run, as an array in main memory; NULL: failed. */
TEC_API TEC_GIVE tec_array *tec_rpc_fetch(tec_rpc_session *s, int64_t executor, int output, tec_error *err);

#ifdef __cplusplus
}
#endif
#endif
