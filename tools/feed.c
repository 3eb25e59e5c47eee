/* tools/feed.c -- see feed.h.
 *
 * An example: a function f(x: f32[n, 4], y: f32[n + m]) with --input x=x.npy of shape [3, 4] and --dim m=2.
 * The file makes n = 3, since n stands alone in its shape; --dim makes m = 2; y is filled with random numbers
 * in shape [5].
 */
#include "tools/feed.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/shape.h"
#include "tools/data.h"
#include "worker/tensors.h"

/* ---- what is to be fed ---- */

/* `value` counts only where `known` says so, until tool_feed_rest makes the others 1. */
static tool_feed new_feed(tec_context *cx, const char *what, int n, int n_symbols)
{
    return (tool_feed){.cx = cx,
                       .what = what,
                       .n = n,
                       .n_symbols = n_symbols,
                       .port = base_array(cx, tool_port, n),
                       .symbol = base_array(cx, const char *, n_symbols),
                       .value = base_array(cx, int64_t, n_symbols),
                       .known = base_array(cx, bool, n_symbols)};
}

/* The graph or function of that name, or the only one: its place. -1, reported: there is none, or there are
 * several. */
int tool_feed_pick(tec_context *cx, const tec_module *m, const char *kind, const char *wanted, int n,
                   const char *(*name_of)(const tec_module *m, int i))
{
    base_text names = {0};

    for (int i = 0; i < n; i++) {
        if (wanted ? strcmp(wanted, name_of(m, i)) == 0 : n == 1)
            return i;
        base_addf(cx, &names, "%s%s", i ? ", " : "", name_of(m, i));
    }
    const char *there = n ? base_text_str(cx, &names) : "none";
    if (wanted)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no %s '%s'; the module's %ss are %s", kind,
                  wanted, kind, there);
    else
        base_fail(cx, TEC_INVALID, (base_loc){0}, "name the %s that is to run with --%s; the module's are %s",
                  kind, kind, there);
    return -1;
}

tool_feed tool_feed_graph(tec_context *cx, const rt_graph_desc *g)
{
    tool_feed f = new_feed(cx, base_format(cx, "graph '%s'", g->name), g->n_inputs, g->n_symbols);

    for (int i = 0; i < g->n_inputs; i++)
        f.port[i] = (tool_port){
            g->inputs[i].name, g->inputs[i].dtype, g->inputs[i].rank, g->inputs[i].shape, false, NULL};
    for (int i = 0; i < g->n_symbols; i++)
        f.symbol[i] = g->symbols[i].name;
    return f;
}

tool_feed tool_feed_function(tec_context *cx, const rt_function_desc *d)
{
    tool_feed f = new_feed(cx, base_format(cx, "function '%s'", d->name), d->n_params, d->n_symbols);

    for (int i = 0; i < d->n_params; i++)
        f.port[i] = (tool_port){d->params[i].name,  d->params[i].dtype,     d->params[i].rank,
                                d->params[i].shape, d->params[i].is_output, NULL};
    for (int i = 0; i < d->n_symbols; i++)
        f.symbol[i] = d->symbols[i];
    return f;
}

/* ---- symbols ---- */

static void *fail(tool_feed *f, const char *text)
{
    return base_fail(f->cx, TEC_INVALID, (base_loc){0}, "%s: %s", f->what, text);
}

/* The names of what the feed has, for messages. */
static const char *names_of(tool_feed *f, bool inputs)
{
    base_text list = {0};
    int count = 0;

    for (int i = 0; inputs && i < f->n; i++)
        if (!f->port[i].is_output)
            base_addf(f->cx, &list, "%s%s", count++ ? ", " : "", f->port[i].name);
    for (int i = 0; !inputs && i < f->n_symbols; i++)
        base_addf(f->cx, &list, "%s%s", count++ ? ", " : "", f->symbol[i]);
    return count ? base_text_str(f->cx, &list) : "none";
}

/* `by` names who says it, for the message about two who differ. */
static bool set_symbol(tool_feed *f, int k, int64_t value, const char *by)
{
    if (f->known[k] && f->value[k] != value)
        return fail(f, base_format(f->cx, "%s makes '%s' %lld, but it is %lld already", by, f->symbol[k],
                                   (long long)value, (long long)f->value[k])) != NULL;
    f->known[k] = true;
    f->value[k] = value;
    return true;
}

/* An extent that a file or --dim names: it gives a symbol that stands alone there its value, and must fit
 * otherwise. A dimension that is an expression is checked by the call itself, when all symbols are known. */
static bool set_extent(tool_feed *f, const tool_port *p, int axis, int64_t extent, const char *by)
{
    int64_t fixed;
    int32_t k;

    if (rt_dim_is_symbol(p->shape[axis], &k))
        return set_symbol(f, k, extent, by);
    if (rt_dim_is_const(p->shape[axis], &fixed) && fixed != extent)
        return fail(f, base_format(f->cx, "%s: dimension %d of '%s' is %lld, found %lld", by, axis, p->name,
                                   (long long)fixed, (long long)extent)) != NULL;
    return true;
}

/* "PARAMETER.AXIS" as a port and its axis; NULL: there is none. Cut at the last dot, as names may have
 * dots. */
static const tool_port *find_axis(tool_feed *f, const char *name, int *axis)
{
    const char *dot = strrchr(name, '.');
    int64_t n;

    if (!dot || !tool_number(dot + 1, &n))
        return NULL;
    for (int i = 0; i < f->n; i++) {
        tool_port *p = &f->port[i];

        if (strlen(p->name) == (size_t)(dot - name) && strncmp(p->name, name, (size_t)(dot - name)) == 0 &&
            n >= 0 && n < p->rank) {
            *axis = (int)n;
            return p;
        }
    }
    return NULL;
}

/* Each --dim names a symbol, or an axis of an input as INPUT.AXIS. A value that contradicts another one is an
 * error. */
bool tool_feed_dims(tool_feed *f, tool_dims *dims)
{
    for (int i = 0; i < dims->n; i++) {
        const tool_dim *d = &dims->at[i];
        const char *by = base_format(f->cx, "--dim %s=%lld", d->name, (long long)d->value);
        int k = 0, axis = 0;
        const tool_port *p = find_axis(f, d->name, &axis);

        while (k < f->n_symbols && strcmp(f->symbol[k], d->name) != 0)
            k++;
        if (k == f->n_symbols && !p)
            return fail(f, base_format(f->cx, "--dim %s: neither a symbol nor INPUT.AXIS; the symbols are %s",
                                       d->name, names_of(f, false))) != NULL;
        if (k < f->n_symbols ? !set_symbol(f, k, d->value, by) : !set_extent(f, p, axis, d->value, by))
            return false;
    }
    return true;
}

/* ---- tensors ---- */

static tool_port *find_input(tool_feed *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (!f->port[i].is_output && strcmp(f->port[i].name, name) == 0)
            return &f->port[i];
    return fail(f, base_format(f->cx, "there is no input '%s'; the inputs are %s", name, names_of(f, true)));
}

/* NAME=FILE: the tensor's extents tell the symbols that they hold. */
bool tool_feed_files(tool_feed *f, const tool_list *inputs)
{
    for (int i = 0; i < inputs->n; i++) {
        const char *name, *file;
        tool_port *p = tool_pair("run", inputs->at[i], &name, &file) ? find_input(f, name) : NULL;

        if (!p)
            return false;
        if (p->tensor)
            return fail(f, base_format(f->cx, "input '%s' is given twice", name)) != NULL;
        p->tensor = tool_read(f->cx, file);
        if (!p->tensor)
            return false;
        /* What else is wrong with it, the call says: it knows dtypes and conditions. */
        for (int d = 0; d < p->rank && p->tensor->ndim == p->rank; d++)
            if (!set_extent(f, p, d, p->tensor->shape[d], file))
                return false;
    }
    return true;
}

/* Whatever was not given: symbols become 1, inputs random numbers from the seed, outputs empty tensors. Each
 * input has a seed of its own, so that two inputs of one shape differ. */
bool tool_feed_rest(tool_feed *f, int64_t seed)
{
    tec_error err = {0};

    for (int k = 0; k < f->n_symbols; k++)
        if (!f->known[k])
            f->value[k] = 1;
    for (int i = 0; i < f->n; i++) {
        tool_port *p = &f->port[i];
        int64_t shape[RT_MAX_RANK];

        if (p->tensor)
            continue;
        if (!rt_shape_eval(p->shape, p->rank, f->value, shape, p->name, &err))
            return fail(f, base_strdup(f->cx, err.text)) != NULL;
        p->tensor = tool_new_tensor(f->cx, p->dtype, p->rank, shape);
        if (!p->tensor)
            return false;
        if (!p->is_output)
            run_fill_random(p->tensor, (uint64_t)(seed + i));
    }
    return true;
}
