/* capture.c -- see capture.h. */
#include "runtime/capture.h"

#include "runtime/executor.h"

/* Whichever range the shapes fall into. */
static bool has_loops(const rt_step *step)
{
    for (int32_t k = 0; k < step->n_launchers; k++)
        if (step->launchers[k].f->n_loops > 0)
            return true;
    return false;
}

/* The site in whose stream all of a step's work lies, without main memory; 0: there is none. Loops around
 * launches are left out: a recording would hold each of their iterations. */
static int32_t site_of_step(const tec_executor *ex, int32_t index)
{
    const rt_step_desc *step = &ex->graph->steps[index];
    int32_t first = step->n_values ? ex->graph->values[step->values[0]].site : 0;

    if (step->function == RT_STEP_COPY)
        return ex->graph->values[step->values[1]].site == first ? first : 0;
    return ex->steps[index].site && !has_loops(&ex->steps[index]) ? first : 0;
}

/* How many steps from `first` on may be recorded together. An example: of the steps
 *
 *     copy from the host, launch, launch, copy to the host, launch
 *
 * the second and the third may, and nothing from the others on. */
static int32_t length_at(const tec_executor *ex, int32_t first)
{
    int32_t site = site_of_step(ex, first), n = 0;

    if (site == 0 || !ex->sites[site - 1].device->kind->begin_capture)
        return 0;
    while (first + n < ex->graph->n_steps && site_of_step(ex, first + n) == site)
        n++;
    return n;
}

/* A single step gains nothing. There are at most half as many captures as steps. */
bool rt_captures_open(tec_executor *ex, tec_error *err)
{
    ex->captures = rt_arena_alloc(&ex->arena, ex->graph->n_steps / 2, sizeof *ex->captures, err);
    for (int32_t i = 0, n; ex->captures && i < ex->graph->n_steps; i += n ? n : 1) {
        n = length_at(ex, i);
        if (n > 1)
            ex->captures[ex->n_captures++] = (rt_capture){.first = i, .end = i + n};
    }
    return ex->captures != NULL;
}

static rt_site *site_of(const tec_executor *ex, const rt_capture *capture)
{
    return &ex->sites[site_of_step(ex, capture->first) - 1];
}

void rt_captures_forget(tec_executor *ex)
{
    for (int32_t i = 0; i < ex->n_captures; i++) {
        rt_capture *c = &ex->captures[i];
        tec_device *device = site_of(ex, c)->device;

        if (c->recorded)
            device->kind->drop_capture(device, c->recorded);
        *c = (rt_capture){.first = c->first, .end = c->end};
    }
}

void rt_captures_close(tec_executor *ex)
{
    rt_captures_forget(ex);
    ex->n_captures = 0;
}

rt_capture *rt_capture_at(const tec_executor *ex, int32_t step)
{
    for (int32_t i = 0; i < ex->n_captures; i++)
        if (ex->captures[i].first == step)
            return &ex->captures[i];
    return NULL;
}

static bool run_steps(tec_executor *ex, const rt_capture *capture, tec_error *err)
{
    for (int32_t i = capture->first; i < capture->end; i++)
        if (!rt_run_step(ex, i, err))
            return false;
    return true;
}

/* The stream leaves the recording after an error, too; the first error is the one to tell. */
static bool record_in(tec_executor *ex, rt_capture *capture, rt_stream *stream, tec_error *err)
{
    const rt_device_kind *kind = stream->device->kind;
    bool ok;

    if (!kind->begin_capture(stream, err))
        return false;
    ok = run_steps(ex, capture, err);
    capture->recorded = kind->end_capture(stream, ok ? err : NULL);
    if (ok || !capture->recorded)
        return ok && capture->recorded;
    kind->drop_capture(stream->device, capture->recorded);
    capture->recorded = NULL;
    return false;
}

/* A stream of the caller's is left alone: it may be a default stream, which the driver does not record, or
 * the caller may be recording it. A recording is made in a stream of ours then, and holds for any other. */
static bool record(tec_executor *ex, rt_capture *capture, tec_error *err)
{
    rt_stream *stream = &site_of(ex, capture)->stream, theirs = *stream;
    bool ok;

    if (!stream->borrowed)
        return record_in(ex, capture, stream, err);
    if (!rt_stream_open(stream, theirs.device, err)) {
        *stream = theirs;
        return false;
    }
    ok = record_in(ex, capture, stream, err);
    rt_stream_close(stream);
    *stream = theirs;
    return ok;
}

bool rt_capture_run(tec_executor *ex, rt_capture *capture, tec_error *err)
{
    rt_stream *stream = &site_of(ex, capture)->stream;

    if (!capture->recorded && capture->runs++ == 0)
        return run_steps(ex, capture, err);
    if (!capture->recorded && !record(ex, capture, err))
        return false;
    return stream->device->kind->replay(stream, capture->recorded, err);
}
