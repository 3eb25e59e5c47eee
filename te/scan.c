/* te/scan.c -- recurrences: states with given first steps, and updates that read earlier steps.
 *
 *     scan cell[t: n] { init h[t: 1, j: 8] = h0[j]   update h[t, j: 8] = tanh(h[t - 1, j] + x[t, j]) }
 *
 * What holds after each constructor: every step that an update reads is given or was computed before, in this
 * step of time or an earlier one. So the updates can run in their order under one loop over time.
 */
#include "te/stage.h"

#include "ir/text.h"

/* Opens a scan: states and updates are added until te_scan_close. Only one may be open in a definition. */
te_scan *te_scan_new(te_def *def, const char *name, const ir_expr *time)
{
    if (!def || !time)
        return NULL;
    if (def->open)
        return base_fail(def->cx, TEC_INVALID, base_where(def->cx),
                         "scan '%s' is still open, so '%s' cannot begin", def->open->name, name);
    if (!te_check_axes(def, name, &time, 1) || !te_claim_name(def, name, def))
        return NULL;
    te_scan *scan = base_new(def->cx, te_scan);

    *scan = (te_scan){.def = def,
                      .name = base_strdup(def->cx, name),
                      .time = time,
                      .extent = te_axis_extent(time),
                      .loc = base_where(def->cx)};
    return def->open = scan;
}

/* True while the scan can take more. */
static bool is_open(const te_scan *scan)
{
    if (!scan || base_failed(scan->def->cx))
        return false;
    if (scan->def->open != scan)
        base_fail(scan->def->cx, TEC_INVALID, base_where(scan->def->cx), "scan '%s' is closed", scan->name);
    return scan->def->open == scan;
}

static void *fail_at_name(const te_scan *scan, const char *what, const char *name)
{
    return base_fail(scan->def->cx, TEC_INVALID, base_where(scan->def->cx),
                     "%s '%s' of scan '%s' has no time axis", what, name, scan->name);
}

/* ---- first steps ---- */

/* All states of a scan have the same number of first steps, and all are declared before the first update. */
static bool take_first(te_scan *scan, const char *name, const ir_expr *time)
{
    tec_context *cx = scan->def->cx;
    const ir_expr *extent = te_axis_extent(time);
    int64_t first;

    if (!extent || !ir_is_int(extent, &first) || first < 1)
        base_fail(cx, TEC_INVALID, base_where(cx),
                  "the number of first steps of '%s' must be a positive constant, found '%s'", name,
                  ir_expr_text(cx, extent));
    else if (scan->steps.n)
        base_fail(cx, TEC_INVALID, base_where(cx),
                  "the first steps of '%s' must stand before the updates of scan '%s'", name, scan->name);
    else if (scan->states.n && first != scan->first)
        base_fail(cx, TEC_INVALID, base_where(cx),
                  "'%s' has %lld first steps, but the other states of scan '%s' have %lld", name,
                  (long long)first, scan->name, (long long)scan->first);
    else
        scan->first = first;
    return !base_failed(cx);
}

/* Declares a state by its first steps: axis 0 is time. NULL with an error. */
te_tensor *te_scan_state(te_scan *scan, const char *name, const ir_expr *const *axis, int count,
                         const ir_expr *body)
{
    if (!is_open(scan))
        return NULL;
    if (count < 1)
        return fail_at_name(scan, "state", name);
    if (!axis[0] || !take_first(scan, name, axis[0]))
        return NULL;
    const char *stage = base_format(scan->def->cx, "%s.first", name);
    te_stage *init = te_build_stage(&(te_recipe){.def = scan->def,
                                                 .length = scan->extent,
                                                 .name = stage,
                                                 .output = &name,
                                                 .axis = axis,
                                                 .n = count,
                                                 .body = &body,
                                                 .n_bodies = 1});

    if (!init)
        return NULL;
    base_push(scan->def->cx, &scan->states, init->output[0]);
    return init->output[0];
}

/* ---- updates ---- */

static te_tensor *find_state(const te_scan *scan, const char *name)
{
    for (int i = 0; i < scan->states.n; i++) {
        te_tensor *t = scan->states.at[i];

        if (base_same(t->buffer->name, name))
            return t;
    }
    return NULL;
}

/* An update has the axes, extents and type of the state's first steps. Extents are compared by proof: 2*count
 * and count + count are one extent. */
static bool fits_state(te_scan *scan, const te_tensor *state, const ir_expr *const *axis, int count,
                       const ir_expr *body)
{
    tec_context *cx = scan->def->cx;
    const ir_buffer *buffer = state->buffer;

    if (state->stage->kind == TE_SCAN)
        base_fail(cx, TEC_INVALID, base_where(cx), "'%s' is updated twice by scan '%s'", buffer->name,
                  scan->name);
    else if (count != buffer->n)
        base_fail(cx, TEC_INVALID, base_where(cx), "'%s' has %d axes in its first steps and %d in its update",
                  buffer->name, buffer->n, count);
    else if (!base_dtype_same(body->dtype, buffer->dtype))
        base_fail(cx, TEC_INVALID, base_where(cx), "'%s' is %s in its first steps and %s in its update",
                  buffer->name, base_dtype_text(cx, buffer->dtype), base_dtype_text(cx, body->dtype));
    for (int i = 1; i < count && !base_failed(cx); i++)
        if (axis[i] && te_axis_extent(axis[i]) &&
            !ir_prove_equal(te_facts(scan->def), te_axis_extent(axis[i]), buffer->shape[i]))
            base_fail(cx, TEC_INVALID, base_where(cx),
                      "axis '%s' of '%s' runs over '%s' in its update and over '%s' in its first steps",
                      axis[i]->var.name, buffer->name, ir_expr_text(cx, te_axis_extent(axis[i])),
                      ir_expr_text(cx, buffer->shape[i]));
    return !base_failed(cx);
}

/* The first axis of all updates is the one variable of the scan's time: their loops become one loop. */
static bool is_timed(te_scan *scan, const char *name, const ir_expr *const *axis, int n)
{
    if (n < 1)
        fail_at_name(scan, "update", name);
    else if (axis[0] && axis[0] != scan->time)
        base_fail(scan->def->cx, TEC_INVALID, base_where(scan->def->cx),
                  "the first axis of '%s' must be the time '%s' of scan '%s', found '%s'", name,
                  scan->time->var.name, scan->name, ir_expr_text(scan->def->cx, axis[0]));
    return !base_failed(scan->def->cx);
}

/* A stage that updates a state has a name that is taken already, so its time is looked at before its name. */
bool te_scan_step_named(te_scan *scan, const char *name, const char *const *output,
                        const ir_expr *const *axis, int count, const ir_expr *const *body, int n_bodies,
                        te_tensor **out)
{
    if (!is_open(scan) || !is_timed(scan, name, axis, count))
        return false;
    te_tensor *state = n_bodies == 1 ? find_state(scan, output[0]) : NULL;

    if (state && (!body[0] || !fits_state(scan, state, axis, count, body[0])))
        return false;
    te_stage *step = te_build_stage(&(te_recipe){.def = scan->def,
                                                 .scan = scan,
                                                 .state = state,
                                                 .name = state ? state->buffer->name : name,
                                                 .output = output,
                                                 .axis = axis,
                                                 .n = count,
                                                 .body = body,
                                                 .n_bodies = n_bodies});
    if (!step)
        return false;
    if (state) {
        step->init = state->stage;
        state->stage = step;
    }
    base_push(scan->def->cx, &scan->steps, step);
    for (int i = 0; i < n_bodies; i++)
        out[i] = step->output[i];
    return true;
}

bool te_scan_step_n(te_scan *scan, const char *name, const ir_expr *const *axis, int n,
                    const ir_expr *const *body, int n_bodies, te_tensor **out)
{
    return scan && te_scan_step_named(scan, name, te_output_names(scan->def->cx, name, n_bodies), axis, n,
                                      body, n_bodies, out);
}

te_tensor *te_scan_step(te_scan *scan, const char *name, const ir_expr *const *axis, int n,
                        const ir_expr *body)
{
    te_tensor *t;

    return te_scan_step_n(scan, name, axis, n, &body, 1, &t) ? t : NULL;
}

/* ---- reads ---- */

/* The tensor of the scan that lies in the buffer; `computed`: it is complete in the step of the update that
 * is being made. */
static te_tensor *find_tensor(const te_scan *scan, const ir_buffer *buffer, bool *computed)
{
    *computed = true;
    for (int i = 0; i < scan->steps.n; i++) {
        const te_stage *step = scan->steps.at[i];

        for (int j = 0; j < step->n_outputs; j++)
            if (step->output[j]->buffer == buffer)
                return step->output[j];
    }
    *computed = false;
    for (int i = 0; i < scan->states.n; i++)
        if (((te_tensor *)scan->states.at[i])->buffer == buffer)
            return scan->states.at[i];
    return NULL;
}

/* Called for each load in an update. False: the buffer is no state of this scan, so reading it is an ordinary
 * read. True: it is one, and a wrong step has become an error. With 2 first steps, in step t:
 *
 *     h[t - 1], h[t - 2]     given, or computed in an earlier step
 *     h[t - 3]               refused: in step 2 that is step -1, which nobody gave
 *     h[t]                   only behind the update of h in this step
 *     h[t + 1]               refused
 *     h[t * 2], h[i]         refused: how far back is not one number
 *     g[t], g without init   behind its update; g[t - 1] never, since the first one would be missing
 */
bool te_scan_reads(te_scan *scan, const ir_expr *load)
{
    tec_context *cx = scan->def->cx;
    const char *name = load->load.buffer->name;
    bool computed;
    te_tensor *tensor = find_tensor(scan, load->load.buffer, &computed);
    int64_t back;

    if (!tensor)
        return false;
    if (!ir_is_int(ir_simplify(te_facts(scan->def), ir_sub(cx, scan->time, load->load.index[0])), &back))
        base_fail(cx, TEC_INVALID, load->loc, "'%s' is read at step '%s': expected '%s' minus a constant",
                  name, ir_expr_text(cx, load->load.index[0]), scan->time->var.name);
    else if (back < 0)
        base_fail(cx, TEC_INVALID, load->loc, "'%s' is read at step '%s', which is later than '%s'", name,
                  ir_expr_text(cx, load->load.index[0]), scan->time->var.name);
    else if (back == 0 && !computed)
        base_fail(cx, TEC_INVALID, load->loc, "'%s' is read at step '%s' before scan '%s' computes it", name,
                  scan->time->var.name, scan->name);
    else if (back > 0 && te_stage_is_partial(tensor->stage))
        base_fail(cx, TEC_INVALID, load->loc, "'%s' has no first steps, so it can only be read at step '%s'",
                  name, scan->time->var.name);
    else if (back > scan->first)
        base_fail(cx, TEC_INVALID, load->loc,
                  "'%s' is read %lld steps back, but scan '%s' has only %lld first steps", name,
                  (long long)back, scan->name, (long long)scan->first);
    return true;
}

/* ---- the end ---- */

/* Checks that each state is updated, then adds the steps to the definition in their order. */
bool te_scan_close(te_scan *scan)
{
    if (!is_open(scan))
        return false;
    tec_context *cx = scan->def->cx;

    if (scan->steps.n == 0)
        base_fail(cx, TEC_INVALID, scan->loc, "scan '%s' has no update", scan->name);
    for (int i = 0; i < scan->states.n; i++) {
        const te_tensor *tensor = scan->states.at[i];

        if (tensor->stage->kind != TE_SCAN)
            base_fail(cx, TEC_INVALID, tensor->stage->loc,
                      "'%s' has first steps, but scan '%s' never updates it", tensor->buffer->name,
                      scan->name);
    }
    if (!ir_prove_le(te_facts(scan->def), ir_int(cx, scan->first), scan->extent))
        base_fail(cx, TEC_INVALID, scan->loc,
                  "scan '%s' has %lld first steps, but it cannot be proven that its '%s' steps are at least "
                  "as many",
                  scan->name, (long long)scan->first, ir_expr_text(cx, scan->extent));
    if (base_failed(cx))
        return false;
    for (int i = 0; i < scan->steps.n; i++)
        base_push(cx, &scan->def->stages, scan->steps.at[i]);
    scan->def->open = NULL;
    return true;
}
