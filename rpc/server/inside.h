/* rpc/server/inside.h -- inside the room: a session's process and the things that its client made. */
#ifndef RPC_SERVER_INSIDE_H
#define RPC_SERVER_INSIDE_H

#include "rpc/message.h"
#include "rpc/server/session.h"
#include "tec/device.h"
#include "tec/program.h"
#include "worker/bench.h"
#include "worker/cores.h"

typedef enum {
    RPC_THING_NONE,
    RPC_THING_MODULE,
    RPC_THING_ARRAY,
    RPC_THING_EXECUTOR,
    RPC_THING_PROGRAM,
    RPC_THING_VALUE
} rpc_thing_kind;

typedef struct {
    rpc_thing_kind kind;
    union {
        tec_module *module;
        tec_array *array;
        tec_executor *executor;
        tec_program *program;
        struct {
            tec_object *object;
            int64_t of; /* handle of its instance */
        } value;
    };
} rpc_thing;

enum { RPC_MOST_THINGS = 1 << 20, RPC_KEPT_FUNCTIONS = 16 };

/* A function that was called lately. */
typedef struct {
    int64_t module;
    int threads;
    char *name;
    tec_function *f;
} rpc_kept_function;

/* Bytes that come as data: of a module, or for an array. */
typedef struct {
    bool active;
    int64_t module; /* handle that the module gets; 0: for an array */
    int64_t array;
    uint8_t *to;  /* NULL: the question failed already, and the bytes are dropped */
    uint8_t *own; /* to be freed */
    int64_t size, got;
    char name[100], arch[32];
} rpc_transfer;

typedef struct {
    rpc_session_options o;
    int socket; /* to the server */
    tec_device *device;
    bool is_cpu;
    rpc_thing *things;                 /* [n_things]: handle - 1 */
    int64_t n_things, cap, first_free; /* first_free: no place before it is free */
    rpc_kept_function kept[RPC_KEPT_FUNCTIONS];
    int next_kept;
    rpc_transfer transfer;
    worker_bench *bench; /* NULL: nothing was measured for a tuner yet */
    worker_cores cores;  /* of the last measurement; `all`: that this process may use */
    bool measures;       /* it has measured: `cores` are for so many `threads` */
    int threads;
    bool aside; /* this process is kept off the measured cores */
    int64_t answered;
    bool over;
    rt_bytes body;
} rpc_session;

/* session.c */
/* Answers the questions on this session's socket until one of them ends this session, or the socket closes.
 */
void rpc_serve_questions(rpc_session *session);
bool rpc_answer_with(rpc_session *session, rpc_kind kind, const void *message);
/* Sends the error as a failure that does not end this session. */
bool rpc_answer_error(rpc_session *session, const tec_error *err);
bool rpc_answer_done(rpc_session *session, int64_t handle);
/* The tensor as contents and data. */
bool rpc_answer_tensor(rpc_session *session, const DLTensor *tensor);

/* things.c: each answers its question. */
void rpc_drop_thing(rpc_session *session, int64_t handle); /* one that is there */
rpc_thing *rpc_find_thing(rpc_session *session, int64_t handle, rpc_thing_kind kind, tec_error *err);
bool rpc_on_upload(rpc_session *session, const rpc_upload *message);
bool rpc_on_allocate(rpc_session *session, const rpc_allocate *message);
bool rpc_on_release(rpc_session *session, const rpc_release *message);
bool rpc_on_write(rpc_session *session, const rpc_write *message);
bool rpc_on_read(rpc_session *session, const rpc_read *message);
bool rpc_on_data(rpc_session *session, const rpc_data *message);
/* `size` bytes more lie in their place; the last ones end the transfer. */
bool rpc_took_piece(rpc_session *session, int64_t size);
bool rpc_fail_transfer(rpc_session *session, const tec_error *err); /* what still comes of it is dropped */
bool rpc_end_transfer(rpc_session *session); /* before another question: one that is not whole fails */
void rpc_free_things(rpc_session *session);

/* calls.c: each answers its question. */
bool rpc_on_call(rpc_session *session, const rpc_call *message);
bool rpc_on_time(rpc_session *session, const rpc_time *message);
bool rpc_on_prepare(rpc_session *session, const rpc_prepare *message);
bool rpc_on_feed(rpc_session *session, const rpc_feed *message);
bool rpc_on_run(rpc_session *session, const rpc_run *message);
bool rpc_on_fetch(rpc_session *session, const rpc_fetch *message);
void rpc_forget_functions(rpc_session *session, int64_t module); /* 0: of all modules */
int64_t rpc_add_thing(rpc_session *session, rpc_thing thing,
                      tec_error *err); /* takes what it holds; 0: failed */

tec_run_options rpc_run_options(const rpc_session *session, int64_t threads);
bool rpc_are_threads(int64_t threads, tec_error *err); /* a number that a function may have */

/* programs.c: values of one instance, for its calls; NULL with an error. */
tec_object **rpc_find_values(rpc_session *session, int64_t program, const rpc_numbers *handles,
                             rt_arena *arena, tec_error *err);
/* Each answers its question. */
bool rpc_on_program(rpc_session *session, const rpc_program *message);
bool rpc_on_value(rpc_session *session, const rpc_value *message);
bool rpc_on_execute(rpc_session *session, const rpc_execute *message);
bool rpc_on_look(rpc_session *session, const rpc_look *message);

/* profile.c: answers its question. */
bool rpc_on_profile(rpc_session *session, const rpc_profile *message);

/* measure.c: answers its question. */
bool rpc_on_measure(rpc_session *session, const rpc_measure *self);
/* A module of these bytes, which are needed no longer than the call. NULL with an error. */
tec_module *rpc_open_module(rpc_session *session, const void *data, size_t size, tec_error *err);
/* A session that has measured stays off the measured CPUs; before anything else that computes it gets all
 * back. */
void rpc_use_all_cpus(rpc_session *session);

/* devices.c: answers with what this machine offers. */
bool rpc_answer_devices(rpc_session *session);

#endif
