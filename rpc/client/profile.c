/* rpc/client/profile.c -- the profile of an executor or of a program, collected from several answers. */
#include <stdio.h>
#include <string.h>

#include "rpc/client/inside.h"
#include "runtime/alloc.h"
#include "tec/program.h"

enum { MOST_ROWS = 1 << 20 }; /* that a server may give */

/* The three texts of a row in one piece of memory, which begins with the name. An empty one is unknown. */
static bool copy_texts(tec_profile_row *to, const rpc_profile_row *from, tec_error *err)
{
    size_t name = strlen(from->name) + 1, nodes = strlen(from->nodes) + 1, origin = strlen(from->origin) + 1;
    char *text = rt_alloc(name + nodes + origin, err);

    if (!text)
        return false;
    memcpy(text, from->name, name);
    memcpy(text + name, from->nodes, nodes);
    memcpy(text + name + nodes, from->origin, origin);
    to->name = text;
    to->nodes = nodes > 1 ? text + name : NULL;
    to->origin = origin > 1 ? text + name + nodes : NULL;
    return true;
}

/* Adds the rows of one answer. The memory grows by the rows of this answer alone, as answers are few. */
static bool add_rows(tec_rpc_profile_rows *to, const rpc_rows *rows, tec_error *err)
{
    const rpc_profile_row *from = rows->at;
    tec_profile_row *at = rt_alloc_array(to->n + rows->n, sizeof *at, err);

    if (!at)
        return false;
    if (to->n)
        memcpy(at, to->at, (size_t)to->n * sizeof *at);
    rt_free(to->at);
    to->at = at;
    for (int64_t i = 0; i < rows->n; i++) {
        at[to->n] = (tec_profile_row){.group = from[i].group >= 0 && from[i].group <= TEC_ROW_CONTROL
                                                   ? (tec_row_group)from[i].group
                                                   : TEC_ROW_CONTROL,
                                      .calls = from[i].calls,
                                      .min_s = from[i].min_s,
                                      .median_s = from[i].median_s,
                                      .total_s = from[i].total_s,
                                      .share = from[i].share,
                                      .gflops = from[i].gflops,
                                      .gbytes = from[i].gbytes};
        if (!copy_texts(&at[to->n], &from[i], err))
            return false;
        to->n++;
    }
    return true;
}

/* One answer, and the row to go on with in *next. Rows must come and their numbers rise, or the client would
 * ask for ever. */
static bool ask_page(tec_rpc_session *session, int64_t number, int64_t *next, tec_rpc_profile_rows *out,
                     tec_error *err)
{
    const rpc_profile question = {number, *next};
    tec_error why = {0};

    if (!rpc_ask(session, RPC_KIND_profile, &question, RPC_KIND_profiled, err))
        return false;
    const rpc_profiled *answer = &session->c->message.profiled;
    bool good = answer->rows.n > 0 && answer->rows.n <= MOST_ROWS - out->n &&
                (answer->next == 0 || answer->next > *next);
    if (!good)
        rpc_lose(session->c, TEC_PROTOCOL, "the server's profile has no rows, or too many", &why);
    good = good && add_rows(out, &answer->rows, &why);
    *next = answer->next;
    rpc_end(session->c);
    return good || rt_fail(err, why.status, "%s", why.text);
}

/* Page after page. Rows that came before a failure are freed, as a part of a profile would pass for the
 * whole. */
bool tec_rpc_profile(tec_rpc_session *session, int64_t number, tec_rpc_profile_rows *out, tec_error *err)
{
    int64_t next = 0;

    if (!out)
        return rt_fail(err, TEC_INVALID, "no place for the rows of a profile");
    *out = (tec_rpc_profile_rows){0};
    if (!rpc_server_knows(session, "profiles", PROFILES_SINCE, err))
        return false;
    do {
        if (!ask_page(session, number, &next, out, err)) {
            tec_rpc_profile_free(out);
            return false;
        }
    } while (next);
    return true;
}

void tec_rpc_profile_free(tec_rpc_profile_rows *rows)
{
    if (!rows)
        return;
    for (int i = 0; i < rows->n; i++)
        rt_free((void *)(uintptr_t)rows->at[i].name);
    rt_free(rows->at);
    *rows = (tec_rpc_profile_rows){0};
}
