/* tests/chaos/trial.h -- one attempt at a trial, as a process of its own: leases a device, loads a module,
 * calls a kernel, reads the result, and tells its parent over a pipe where it is.
 *
 *     'O' n     a session of server n is open: from here on the attempt counts as an execution
 *     'M'       in the middle; goes on when the parent has answered with a byte
 *     'D' value done                        'F' status    failed
 *
 * A process that ends without 'D' or 'F' was killed.
 */
#ifndef TESTS_CHAOS_TRIAL_H
#define TESTS_CHAOS_TRIAL_H

#include "tests/chaos/stage.h"

typedef struct {
    int number; /* of the trial */
    fault fault;
    const char *tracker, *keys;
    const rt_bytes *module;
    int to_parent, from_parent;
} trial;

/* What the kernel adds up for a trial: hundredths of a second to sleep, and two digits of its number. */
static inline void trial_input(const trial *t, uint8_t x[3])
{
    x[0] = t->fault == NO_FAULT ? 2 : 25;
    x[1] = (uint8_t)(1 + t->number % 100);
    x[2] = (uint8_t)(1 + t->number / 100);
}

static inline int32_t trial_sum(const trial *t)
{
    uint8_t x[3];

    trial_input(t, x);
    return x[0] + x[1] + x[2];
}

static inline void trial_tell(const trial *t, char what, int32_t value)
{
    struct {
        char what;
        int32_t value;
    } __attribute__((packed)) word = {what, value};

    if (write(t->to_parent, &word, sizeof word) != (ssize_t)sizeof word)
        _exit(3);
}

static inline void trial_pause(const trial *t)
{
    char go;

    trial_tell(t, 'M', 0);
    if (read(t->from_parent, &go, 1) != 1)
        _exit(3);
}

/* Faults of the wire harm the upload, the others the call. */
static inline bool trial_harms_upload(fault f)
{
    return stage_harm(f) != PROXY_PASS;
}

static inline bool trial_compute(const trial *t, tec_rpc_session *s, int32_t y[2], tec_error *err)
{
    const char *kernel = t->fault == HUNG_KERNEL       ? "hang"
                         : t->fault == CRASHING_KERNEL ? "crash"
                         : t->fault == EATING_KERNEL   ? "eat"
                                                       : "nap";
    int64_t n = 3, two = 2;
    uint8_t x[3];
    DLTensor from = {x, {kDLCPU, 0}, 1, {kDLUInt, 8, 1}, &n, NULL, 0};
    DLTensor to = {y, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &two, NULL, 0};

    trial_input(t, x);
    if (trial_harms_upload(t->fault))
        trial_pause(t);
    int64_t m = tec_rpc_upload_bytes(s, "kernels.so", t->module->data, t->module->n, err);
    int64_t a = m ? tec_rpc_array(s, from.dtype, 1, &n, err) : 0,
            b = a ? tec_rpc_array(s, to.dtype, 1, &two, err) : 0;
    if (!b || !tec_rpc_write(s, a, &from, err))
        return false;
    if (!trial_harms_upload(t->fault))
        trial_pause(t);
    return tec_rpc_call(
               s,
               &(tec_rpc_call_options){
                   .module = m, .function = kernel, .arrays = (int64_t[]){a, b}, .n = 2, .threads = 1},
               NULL, err) &&
           tec_rpc_read(s, b, &to, err);
}

/* The tracker may be away when the trial begins. */
static inline tec_rpc *trial_find_tracker(const trial *t, tec_error *err)
{
    for (int i = 0; i < 600; i++) {
        *err = (tec_error){0};
        tec_rpc *c = tec_rpc_connect(t->tracker, &(tec_rpc_options){.key_file = t->keys, .seconds = 5}, err);
        if (c)
            return c;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return NULL;
}

/* The process; never returns. */
static inline void trial_main(const trial *t)
{
    tec_error err = {0};
    char label[32];
    int32_t y[2] = {0};
    tec_rpc_grant_info g;
    tec_rpc *tracker = trial_find_tracker(t, &err);
    tec_rpc_lease *l = tec_rpc_request(
        tracker, &(tec_rpc_lease_options){.device_class = "board", .user = "ann", .job = "chaos"}, &err);
    bool granted = l && tec_rpc_wait(l, 120, &err) == TEC_RPC_GRANTED && tec_rpc_granted(l, &g);
    tec_rpc *c = granted ? tec_rpc_connect_leased(l, &(tec_rpc_options){.seconds = 10}, &err) : NULL;
    const tec_rpc_session_options o = {.label = label,
                                       .seconds = t->fault == HUNG_KERNEL ? 0.3 : 0,
                                       .memory_bytes = t->fault == EATING_KERNEL ? 64 << 20 : 0};

    snprintf(label, sizeof label, "trial %d", t->number);
    tec_rpc_session *s = c ? tec_rpc_open(c, &o, &err) : NULL;
    if (s)
        trial_tell(t, 'O', g.server[1] - '0');
    bool good = s && trial_compute(t, s, y, &err);
    tec_rpc_close(s);
    tec_rpc_disconnect(c);
    tec_rpc_give_back(l);
    tec_rpc_disconnect(tracker);
    if (!good && getenv("TEC_CHAOS_VERBOSE"))
        fprintf(stderr, "trial %d, fault %d: %s\n", t->number, (int)t->fault, err.text);
    trial_tell(t, good ? 'D' : 'F', good ? y[0] : (int32_t)err.status);
    _exit(0);
}

#endif
