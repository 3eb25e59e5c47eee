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

/* What the wire does not carry is left out: the function of a step. */
static void add_row(page *to, const tec_profile_row *row)
{
    int i = to->n++;

    to->row[i] = (rpc_profile_row){.name = cut(to->name[i], NAME, row->name),
                                   .nodes = cut(to->nodes[i], NODES, row->nodes),
                                   .origin = cut(to->origin[i], ORIGIN, row->origin),
                                   .group = row->group,
                                   .calls = row->calls,
                                   .min_s = row->min_s,
                                   .median_s = row->median_s,
                                   .total_s = row->total_s,
                                   .share = row->share,
                                   .gflops = row->gflops,
                                   .gbytes = row->gbytes};
}

/* Row `index` of what was measured; false: there are no more. */
static bool find_row(const rpc_thing *thing, int index, tec_profile_row *row)
{
    if (thing->kind == RPC_THING_PROGRAM)
        return tec_program_profile(thing->program, index, row);
    return index < tec_executor_n_steps(thing->executor) && tec_executor_profile(thing->executor, index, row);
}

/* Fills the page with rows from number `at` on; gives the number to go on with, or 0. */
static int fill(page *to, int most, const rpc_thing *thing, int at)
{
    tec_profile_row row;

    for (; find_row(thing, at, &row); at++) {
        if (row.calls == 0)
            continue;
        if (to->n == most)
            return at;
        add_row(to, &row);
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
        next = fill(p, most, thing, first);
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
