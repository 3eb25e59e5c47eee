/* rpc/client/measure.c -- see measure.h. */
#include "rpc/client/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rpc/client/inside.h"
#include "runtime/error.h"

enum { MEASURES_SINCE = 3 }; /* version of the protocol */

/* The server may say anything: what is no answer to this question ends the connection. */
static bool is_sound(const rpc_measured *measured, int64_t n_modules, bool keeps)
{
    const rpc_cost *cost = measured->costs.at;

    if (measured->outcome < 0 || measured->outcome >= WORKER_N_OUTCOMES || measured->culprit < 0 ||
        measured->culprit >= n_modules || measured->costs.n % n_modules ||
        measured->costs.n / n_modules > WORKER_MAX_COSTS ||
        (measured->outcome == WORKER_OK && !keeps && measured->costs.n == 0))
        return false;
    for (int64_t i = 0; i < measured->costs.n; i++)
        if (!(cost[i].seconds > 0 && cost[i].seconds < 1e9))
            return false;
    return measured->clock_mhz >= 0 && measured->clock_mhz < 1000000 && fabs(measured->temperature) < 1000;
}

/* Words for records: whatever the server sends, they are plain text. */
static void copy_word(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
    for (; *to; to++)
        if (*to < ' ' || *to > '~')
            *to = '?';
}

/* Copies the answer, since the message lies in memory of the connection. */
static void take(const rpc_measured *measured, int64_t n_modules, rpc_measurement *out)
{
    const rpc_cost *cost = measured->costs.at;
    int n = (int)(measured->costs.n / n_modules);

    copy_word(out->stage, sizeof out->stage, measured->stage);
    copy_word(out->kind, sizeof out->kind, measured->kind);
    snprintf(out->error, sizeof out->error, "%s", measured->error);
    out->waited_seconds = measured->waited_seconds;
    out->answer = (worker_answer){.outcome = (worker_outcome)measured->outcome,
                                  .culprit = (int)measured->culprit,
                                  .stage = out->stage,
                                  .kind = out->kind,
                                  .error = out->error,
                                  .check_seconds = measured->check_seconds,
                                  .timed_seconds = measured->timed_seconds,
                                  .clock_mhz = measured->clock_mhz,
                                  .temperature = measured->temperature,
                                  .n_costs = n};
    for (int k = 0; k < n_modules; k++) {
        double *to = out->costs + (size_t)k * WORKER_MAX_COSTS;

        for (int i = 0; i < n; i++)
            to[i] = cost[k * n + i].seconds;
        out->answer.costs[k] = to;
    }
}

/* An answer that does not fit the question ends the connection: the two sides no longer agree. */
bool rpc_ask_measure(tec_rpc_session *session, const rpc_measure *measure, rpc_measurement *out,
                     tec_error *err)
{
    int version = session ? rpc_link_version(session->c->link) : MEASURES_SINCE;

    out->signal = 0;
    if (version < MEASURES_SINCE)
        return rt_fail(
            err, TEC_UNSUPPORTED,
            "%s speaks version %d of the protocol; a server that measures for tuners speaks version "
            "%d: it must be upgraded",
            session->c->address, version, MEASURES_SINCE);
    if (!rpc_ask(session, RPC_KIND_measure, measure, RPC_KIND_measured, err)) {
        out->signal = session ? session->c->signal : 0;
        return false;
    }
    const rpc_measured *measured = &session->c->message.measured;
    bool good = is_sound(measured, measure->modules.n, measure->keep != 0);
    if (good)
        take(measured, measure->modules.n, out);
    else
        rpc_lose(session->c, TEC_PROTOCOL, "the server's measurement does not answer the request", err);
    rpc_end(session->c);
    return good;
}

void rpc_release_later(tec_rpc_session *session, int64_t handle)
{
    if (!session)
        return;
    if (session->n_unused == BASE_COUNT(session->unused))
        tec_rpc_release(session, handle, NULL);
    else
        session->unused[session->n_unused++] = handle;
}
