/* rpc/client/measure.c -- see measure.h. */
#include "rpc/client/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rpc/client/inside.h"
#include "runtime/error.h"

enum { MEASURES_SINCE = 3 }; /* version of the protocol */

/* The server may say anything: what is no answer to this question ends the connection. */
static bool is_sound(const rpc_measured *m, int64_t n_modules, bool keeps)
{
    const rpc_cost *cost = m->costs.at;

    if (m->outcome < 0 || m->outcome >= RUN_N_OUTCOMES || m->culprit < 0 || m->culprit >= n_modules ||
        m->costs.n % n_modules || m->costs.n / n_modules > RUN_MAX_COSTS ||
        (m->outcome == RUN_OK && !keeps && m->costs.n == 0))
        return false;
    for (int64_t i = 0; i < m->costs.n; i++)
        if (!(cost[i].seconds > 0 && cost[i].seconds < 1e9))
            return false;
    return m->clock_mhz >= 0 && m->clock_mhz < 1000000 && fabs(m->temperature) < 1000;
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
static void take(const rpc_measured *m, int64_t n_modules, rpc_measurement *out)
{
    const rpc_cost *cost = m->costs.at;
    int n = (int)(m->costs.n / n_modules);

    copy_word(out->stage, sizeof out->stage, m->stage);
    copy_word(out->kind, sizeof out->kind, m->kind);
    snprintf(out->error, sizeof out->error, "%s", m->error);
    out->waited_seconds = m->waited_seconds;
    out->answer = (run_answer){.outcome = (run_outcome)m->outcome,
                               .culprit = (int)m->culprit,
                               .stage = out->stage,
                               .kind = out->kind,
                               .error = out->error,
                               .check_seconds = m->check_seconds,
                               .timed_seconds = m->timed_seconds,
                               .clock_mhz = m->clock_mhz,
                               .temperature = m->temperature,
                               .n_costs = n};
    for (int k = 0; k < n_modules; k++) {
        double *to = out->costs + (size_t)k * RUN_MAX_COSTS;

        for (int i = 0; i < n; i++)
            to[i] = cost[k * n + i].seconds;
        out->answer.costs[k] = to;
    }
}

/* An answer that does not fit the question ends the connection: the two sides no longer agree. */
bool rpc_ask_measure(tec_rpc_session *s, const rpc_measure *q, rpc_measurement *out, tec_error *err)
{
    int version = s ? rpc_link_version(s->c->link) : MEASURES_SINCE;

    out->signal = 0;
    if (version < MEASURES_SINCE)
        return rt_fail(
            err, TEC_UNSUPPORTED,
            "%s speaks version %d of the protocol; a server that measures for tuners speaks version "
            "%d: it must be upgraded",
            s->c->address, version, MEASURES_SINCE);
    if (!rpc_ask(s, RPC_KIND_measure, q, RPC_KIND_measured, err)) {
        out->signal = s ? s->c->signal : 0;
        return false;
    }
    const rpc_measured *m = &s->c->message.measured;
    bool good = is_sound(m, q->modules.n, q->keep != 0);
    if (good)
        take(m, q->modules.n, out);
    else
        rpc_lose(s->c, TEC_PROTOCOL, "what the server measured is no answer to the question", err);
    rpc_end(s->c);
    return good;
}
