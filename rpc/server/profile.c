/* rpc/server/profile.c -- what the runs of an executor or of a program's instance took, as rows of a message.
 *
 * A profile may have thousands of rows, and a message holds some of them: the client asks again from the row
 * that the answer names. Rows that did not run are left out.
 */
#include "rpc/server/inside.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_ROWS = 64, /* of one message */
    NAME = 480,     /* bytes of a text, as far as it is sent */
    NODES = 1500,
    ORIGIN = 100,
    ROW_BYTES = NAME + NODES + ORIGIN + 11 * 8 /* that a row may have on the wire */
};

/* The rows of one answer, and their texts. */
typedef struct {
    rpc_profile_row row[MOST_ROWS];
    char name[MOST_ROWS][NAME], nodes[MOST_ROWS][NODES], origin[MOST_ROWS][ORIGIN];
    int n;
} page;

/* NULL becomes the empty text; what is too long ends with three dots. */
static const char *cut(char *to, size_t size, const char *text)
{
    if (!text)
        text = "";
    if (snprintf(to, size, "%s", text) >= (int)size)
        memcpy(to + size - 4, "...", 4);
    return to;
}

static rpc_profile_row *add_row(page *to, const char *name, const char *nodes, const char *origin)
{
    int i = to->n++;

    to->row[i] = (rpc_profile_row){.name = cut(to->name[i], NAME, name),
                                   .nodes = cut(to->nodes[i], NODES, nodes),
                                   .origin = cut(to->origin[i], ORIGIN, origin)};
    return &to->row[i];
}

/* Fills the page with steps from number `at` on; gives the number to go on with, or 0. */
static int add_steps(page *to, int most, const tec_executor *executor, int at)
{
    tec_profile_row r;

    for (; at < tec_executor_n_steps(executor); at++) {
        if (!tec_executor_profile(executor, at, &r) || r.calls == 0)
            continue;
        if (to->n == most)
            return at;
        rpc_profile_row *row = add_row(to, r.name, r.nodes, r.origin);
        row->calls = r.calls;
        row->min_s = r.min_s;
        row->median_s = r.median_s;
        row->total_s = r.total_s;
        row->share = r.share;
        row->gflops = r.gflops;
        row->gbytes = r.gbytes;
    }
    return 0;
}

/* The same of a program. */
static int add_program(page *to, int most, const tec_program *program, int at)
{
    tec_program_row r;

    for (; tec_program_profile(program, at, &r); at++) {
        if (to->n == most)
            return at;
        rpc_profile_row *row = add_row(to, r.name, NULL, r.origin);
        row->group = r.group;
        row->calls = r.calls;
        row->min_s = r.min_s;
        row->median_s = r.median_s;
        row->total_s = r.total_s;
        row->share = r.share;
        row->gflops = r.gflops;
        row->gbytes = r.gbytes;
    }
    return 0;
}

/* As many rows as fit into a frame of the client, and one at least: the shortest frame that a side may state
 * holds one. */
bool rpc_on_profile(rpc_session *session, const rpc_profile *message)
{
    _Static_assert(ROW_BYTES + 64 < 4096, "a row fits into the shortest frame");
    int64_t fit = (session->o.piece - 64) / ROW_BYTES;
    int most = fit < 1 ? 1 : fit < 65536 / ROW_BYTES ? (int)fit : 65536 / ROW_BYTES;
    int first = message->first >= 0 && message->first < INT32_MAX ? (int)message->first : INT32_MAX;
    bool program = message->of >= 1 && message->of <= session->n_things &&
                   session->things[message->of - 1].kind == RPC_THING_PROGRAM;
    tec_error err = {0};
    rpc_thing *thing =
        rpc_find_thing(session, message->of, program ? RPC_THING_PROGRAM : RPC_THING_EXECUTOR, &err);
    page *p = thing ? rt_alloc(sizeof *p, &err) : NULL;
    int next = 0;

    if (p)
        next = program ? add_program(p, most, thing->program, first)
                       : add_steps(p, most, thing->executor, first);
    if (p && p->n == 0)
        rt_fail(&err, TEC_INVALID,
                "%s %lld measured nothing from row %lld on: it has not run, or was made without "
                "`profile`",
                program ? "program" : "executor", (long long)message->of, (long long)message->first);
    bool sent = err.status == TEC_OK
                    ? rpc_answer_with(session, RPC_KIND_profiled, &(rpc_profiled){next, {p->row, p->n}})
                    : rpc_answer_error(session, &err);
    rt_free(p);
    return sent;
}
