/* tools/te_run.c -- see te_run.h. */
#include "tools/te_run.h"

#include <stdio.h>

#include "runtime/module.h"
#include "tools/data.h"
#include "tools/report.h"

typedef struct {
    tool_call call;
    tool_feed feed;
    tec_error err;
} kernel;

/* Sizes come first, so that a file of other extents is told apart from them. */
bool tool_te_feed(te_run *run, const te_size *sizes, int n_sizes, int64_t seed, tool_feed *out)
{
    *out = tool_feed_function(run->cx, run->function);
    for (int k = 0; k < out->n_symbols; k++)
        for (int i = 0; i < n_sizes; i++)
            if (base_same(out->symbol[k], sizes[i].symbol)) {
                out->value[k] = sizes[i].value;
                out->known[k] = true;
            }
    if (!tool_feed_files(out, "te", run->inputs))
        return false;
    for (int k = 0; k < out->n_symbols; k++)
        if (!out->known[k])
            return base_fail(
                run->cx, TEC_INVALID, run->def->loc,
                "'%s' has symbolic extents: give each symbol a value with --dim NAME=N; no value "
                "was given for '%s'",
                run->function->name, out->symbol[k]);
    return tool_feed_rest(out, seed);
}

static tec_status call_once(void *user)
{
    kernel *k = user;

    return tool_call_once(&k->call, &k->err) ? TEC_OK : k->err.status;
}

/* Times the kernel for at least half a second. */
int tool_te_time(te_run *run)
{
    kernel k = {0};
    tec_timing timing;
    int64_t flops = 0;

    if (!tool_te_feed(run, NULL, 0, 1, &k.feed))
        return tool_fail("te", run->cx);
    rt_dim_is_const(run->function->flops, &flops);
    bool good = tool_call_open(&k.call, &k.feed, run->module, run->function, run->on,
                               &(tec_run_options){.threads = run->threads}, &k.err) &&
                tec_time(call_once, &k, &(tec_time_options){.min_seconds = 0.5}, &timing, &k.err);
    tool_call_close(&k.call);
    if (!good)
        return tool_fail_run("te", &k.err);
    tool_print_timing(run->function->name, &timing, (double)flops, run->json);
    return TOOL_OK;
}
