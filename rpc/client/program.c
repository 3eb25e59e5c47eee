/* rpc/client/program.c -- programs of a session: instances, values, runs. */
#include <stdio.h>
#include <string.h>

#include "rpc/client/inside.h"
#include "runtime/alloc.h"

enum { PROGRAMS_SINCE = 4, LIMITS_SINCE = 5 }; /* versions of the protocol */

/* An older server would take these questions for damaged ones. */
bool rpc_server_knows(const tec_rpc_session *session, const char *what, int since, tec_error *err)
{
    int version = session ? rpc_link_version(session->c->link) : since;

    return version >= since ||
           rt_fail(err, TEC_UNSUPPORTED,
                   "the server speaks version %d of the protocol, and %s need version %d: upgrade the "
                   "server",
                   version, what, since);
}

static bool knows_programs(const tec_rpc_session *session, tec_error *err)
{
    return rpc_server_knows(session, "programs", PROGRAMS_SINCE, err);
}

bool rpc_can_time_programs(const tec_rpc_session *session, tec_error *err)
{
    return rpc_server_knows(session, "measurements of programs", LIMITS_SINCE, err);
}

/* Without limits the question is one that every server of programs understands. */
int64_t tec_rpc_program_with(tec_rpc_session *session, int64_t module, const char *function,
                             const tec_rpc_program_options *options, tec_error *err)
{
    const tec_rpc_program_options o = options ? *options : (tec_rpc_program_options){0};
    bool limited = o.max_steps || o.max_depth || o.max_bytes || o.deadline > 0;
    const rpc_program question = {.module = module,
                                  .function = function ? function : "",
                                  .threads = o.threads,
                                  .max_steps = o.max_steps,
                                  .max_depth = o.max_depth,
                                  .max_bytes = o.max_bytes,
                                  .deadline = o.deadline,
                                  .profile = o.profile};

    if (!knows_programs(session, err) ||
        (limited && !rpc_server_knows(session, "limits of programs", LIMITS_SINCE, err)) ||
        (o.profile && !rpc_server_knows(session, "profiles", PROFILES_SINCE, err)))
        return 0;
    return rpc_ask_for_handle(session, RPC_KIND_program, &question, err);
}

int64_t tec_rpc_program(tec_rpc_session *session, int64_t module, const char *function, int threads,
                        tec_error *err)
{
    return tec_rpc_program_with(session, module, function, &(tec_rpc_program_options){.threads = threads},
                                err);
}

int64_t tec_rpc_tensor(tec_rpc_session *session, int64_t program, int64_t array, tec_error *err)
{
    const rpc_value question = {program, array, "", {NULL, 0}};

    if (!array) {
        rt_fail(err, TEC_INVALID, "no array to make a value of");
        return 0;
    }
    return knows_programs(session, err) ? rpc_ask_for_handle(session, RPC_KIND_value, &question, err) : 0;
}

int64_t tec_rpc_compound(tec_rpc_session *session, int64_t program, const char *constructor,
                         const int64_t *parts, int n, tec_error *err)
{
    const rpc_value question = {program, 0, constructor ? constructor : "", {parts, n}};

    if (n < 0 || (n > 0 && !parts)) {
        rt_fail(err, TEC_INVALID, "no parts to make a value of");
        return 0;
    }
    return knows_programs(session, err) ? rpc_ask_for_handle(session, RPC_KIND_value, &question, err) : 0;
}

/* A server that gives another number of results has another module than the caller believes. */
static bool take_results(tec_rpc *client, int64_t *out, int n_out, double *seconds, tec_error *err)
{
    const rpc_executed *answer = &client->message.executed;

    if (answer->values.n != n_out)
        return rt_fail(err, TEC_INVALID, "the program gives %lld results, not %d",
                       (long long)answer->values.n, n_out);
    if (n_out)
        memcpy(out, answer->values.at, (size_t)n_out * sizeof *out);
    if (seconds)
        *seconds = answer->seconds;
    return true;
}

/* The results are copied before the connection is given to others: the answer lies in its memory. */
bool tec_rpc_execute(tec_rpc_session *session, int64_t program, const int64_t *in, int n_in, int64_t *out,
                     int n_out, double *seconds, tec_error *err)
{
    const rpc_execute question = {program, {in, n_in}};
    tec_error why = {0};

    if (n_in < 0 || n_out < 0 || (n_in && !in) || (n_out && !out))
        return rt_fail(err, TEC_INVALID, "no values to run a program on, or no place for its results");
    if (!knows_programs(session, err) ||
        !rpc_ask(session, RPC_KIND_execute, &question, RPC_KIND_executed, err))
        return false;
    bool good = take_results(session->c, out, n_out, seconds, &why);
    rpc_end(session->c);
    return good || rt_fail(err, why.status, "%s", why.text);
}

static bool take_value(const rpc_seen *answer, tec_rpc_value *out, tec_error *err)
{
    out->is_tensor = answer->tensor != 0;
    out->n_parts = (int)answer->parts.n;
    snprintf(out->constructor, sizeof out->constructor, "%s", answer->constructor);
    out->parts = rt_alloc_array(answer->parts.n + 1, sizeof *out->parts, err);
    if (!out->parts)
        return false;
    if (answer->parts.n)
        memcpy(out->parts, answer->parts.at, (size_t)answer->parts.n * sizeof *out->parts);
    return true;
}

bool tec_rpc_look(tec_rpc_session *session, int64_t value, tec_rpc_value *out, tec_error *err)
{
    tec_error why = {0};

    if (!out)
        return rt_fail(err, TEC_INVALID, "no place for what a value is");
    *out = (tec_rpc_value){0};
    if (!knows_programs(session, err) ||
        !rpc_ask(session, RPC_KIND_look, &(rpc_look){value}, RPC_KIND_seen, err))
        return false;
    bool good = take_value(&session->c->message.seen, out, &why);
    rpc_end(session->c);
    return good || rt_fail(err, why.status, "%s", why.text);
}

void tec_rpc_value_free(tec_rpc_value *value)
{
    if (!value)
        return;
    rt_free(value->parts);
    *value = (tec_rpc_value){0};
}
