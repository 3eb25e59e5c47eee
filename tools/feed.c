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
#include "tools/json.h"
#include "worker/tensors.h"

/* ---- what is to be fed ---- */

/* `value` counts only where `known` says so, until tool_feed_rest makes the others 1. */
static tool_feed new_feed(tec_context *cx, const char *what, int count, int n_symbols)
{
    return (tool_feed){.cx = cx,
                       .what = what,
                       .n = count,
                       .n_symbols = n_symbols,
                       .port = base_array(cx, tool_port, count),
                       .symbol = base_array(cx, const char *, n_symbols),
                       .value = base_array(cx, int64_t, n_symbols),
                       .known = base_array(cx, bool, n_symbols)};
}

/* The graph or function of that name, or the only one: its place. -1, reported: there is none, or there are
 * several. */
int tool_feed_pick(tec_context *cx, const tec_module *m, const char *kind, const char *wanted, int count,
                   const char *(*name_of)(const tec_module *module, int index))
{
    base_text names = {0};

    for (int i = 0; i < count; i++) {
        if (wanted ? strcmp(wanted, name_of(m, i)) == 0 : count == 1)
            return i;
        base_addf(cx, &names, "%s%s", i ? ", " : "", name_of(m, i));
    }
    const char *there = count ? base_text_str(cx, &names) : "none";
    if (wanted)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no %s '%s'; expected one of the module's %ss: %s",
                  kind, wanted, kind, there);
    else
        base_fail(cx, TEC_INVALID, (base_loc){0}, "choose a %s with --%s; the module has %s", kind, kind,
                  there);
    return -1;
}

/* What a graph is to be fed: its inputs with their shapes, and its symbols. */
tool_feed tool_feed_graph(tec_context *cx, const rt_graph_desc *graph)
{
    tool_feed f = new_feed(cx, base_format(cx, "graph '%s'", graph->name), graph->n_inputs, graph->n_symbols);

    for (int i = 0; i < graph->n_inputs; i++)
        f.port[i] = (tool_port){graph->inputs[i].name,
                                graph->inputs[i].dtype,
                                graph->inputs[i].rank,
                                graph->inputs[i].shape,
                                false,
                                NULL};
    for (int i = 0; i < graph->n_symbols; i++)
        f.symbol[i] = graph->symbols[i].name;
    return f;
}

tool_feed tool_feed_function(tec_context *cx, const rt_function_desc *function)
{
    tool_feed f = new_feed(cx, base_format(cx, "function '%s'", function->name), function->n_params,
                           function->n_symbols);

    for (int i = 0; i < function->n_params; i++)
        f.port[i] =
            (tool_port){function->params[i].name,  function->params[i].dtype,     function->params[i].rank,
                        function->params[i].shape, function->params[i].is_output, NULL};
    for (int i = 0; i < function->n_symbols; i++)
        f.symbol[i] = function->symbols[i];
    return f;
}

/* ---- symbols ---- */

static void *fail(tool_feed *feed, const char *text)
{
    return base_fail(feed->cx, TEC_INVALID, (base_loc){0}, "%s: %s", feed->what, text);
}

/* The names of what the feed has, for messages. */
static const char *names_of(tool_feed *feed, bool inputs)
{
    base_text list = {0};
    int count = 0;

    for (int i = 0; inputs && i < feed->n; i++)
        if (!feed->port[i].is_output)
            base_addf(feed->cx, &list, "%s%s", count++ ? ", " : "", feed->port[i].name);
    for (int i = 0; !inputs && i < feed->n_symbols; i++)
        base_addf(feed->cx, &list, "%s%s", count++ ? ", " : "", feed->symbol[i]);
    return count ? base_text_str(feed->cx, &list) : "none";
}

/* `by` names who says it, for the message about two who differ. */
static bool set_symbol(tool_feed *feed, int k, int64_t value, const char *by)
{
    if (feed->known[k] && feed->value[k] != value)
        return fail(feed, base_format(feed->cx, "%s sets '%s' to %lld, but it is already set to %lld", by,
                                      feed->symbol[k], (long long)value, (long long)feed->value[k])) != NULL;
    feed->known[k] = true;
    feed->value[k] = value;
    return true;
}

/* An extent that a file or --dim names: it gives a symbol that stands alone there its value, and must fit
 * otherwise. A dimension that is an expression is checked by the call itself, when all symbols are known. */
static bool set_extent(tool_feed *feed, const tool_port *port, int axis, int64_t extent, const char *by)
{
    int64_t fixed;
    int32_t k;

    if (rt_dim_is_symbol(port->shape[axis], &k))
        return set_symbol(feed, k, extent, by);
    if (rt_dim_is_const(port->shape[axis], &fixed) && fixed != extent)
        return fail(feed, base_format(feed->cx, "%s: expected %lld for dimension %d of '%s', found %lld", by,
                                      (long long)fixed, axis, port->name, (long long)extent)) != NULL;
    return true;
}

/* "PARAMETER.AXIS" as a port and its axis; NULL: there is none. Cut at the last dot, as names may have
 * dots. */
static const tool_port *find_axis(tool_feed *feed, const char *name, int *axis)
{
    const char *dot = strrchr(name, '.');
    int64_t n;

    if (!dot || !tool_number(dot + 1, &n))
        return NULL;
    for (int i = 0; i < feed->n; i++) {
        tool_port *port = &feed->port[i];

        if (strlen(port->name) == (size_t)(dot - name) &&
            strncmp(port->name, name, (size_t)(dot - name)) == 0 && n >= 0 && n < port->rank) {
            *axis = (int)n;
            return port;
        }
    }
    return NULL;
}

/* Each --dim names a symbol, or an axis of an input as INPUT.AXIS. A value that contradicts another one is an
 * error. */
bool tool_feed_dims(tool_feed *feed, tool_dims *dims)
{
    for (int i = 0; i < dims->n; i++) {
        const tool_dim *dim = &dims->at[i];
        const char *by = base_format(feed->cx, "--dim %s=%lld", dim->name, (long long)dim->value);
        int k = 0, axis = 0;
        const tool_port *port = find_axis(feed, dim->name, &axis);

        while (k < feed->n_symbols && strcmp(feed->symbol[k], dim->name) != 0)
            k++;
        dims->unknown = k == feed->n_symbols && !port;
        if (dims->unknown)
            return fail(feed,
                        base_format(feed->cx, "--dim %s: expected a symbol or INPUT.AXIS; the symbols are %s",
                                    dim->name, names_of(feed, false))) != NULL;
        if (k < feed->n_symbols ? !set_symbol(feed, k, dim->value, by)
                                : !set_extent(feed, port, axis, dim->value, by))
            return false;
    }
    return true;
}

/* ---- tensors ---- */

static tool_port *find_input(tool_feed *feed, const char *name)
{
    for (int i = 0; i < feed->n; i++)
        if (!feed->port[i].is_output && strcmp(feed->port[i].name, name) == 0)
            return &feed->port[i];
    return fail(feed, base_format(feed->cx, "there is no input '%s'; expected one of the inputs %s", name,
                                  names_of(feed, true)));
}

/* NAME=FILE: the tensor's extents tell the symbols that they hold. */
bool tool_feed_files(tool_feed *feed, const char *command, const tool_list *inputs)
{
    for (int i = 0; i < inputs->n; i++) {
        const char *name, *file;
        tool_port *port = tool_pair(command, inputs->at[i], &name, &file) ? find_input(feed, name) : NULL;

        if (!port)
            return false;
        if (port->tensor)
            return fail(feed, base_format(feed->cx, "input '%s' is given twice", name)) != NULL;
        port->tensor = base_ends_with(file, ".json") ? tool_read_json(feed->cx, file, port->dtype, port->rank)
                                                     : tool_read(feed->cx, file);
        if (!port->tensor)
            return false;
        /* What else is wrong with it, the call says: it knows dtypes and conditions. */
        for (int d = 0; d < port->rank && port->tensor->ndim == port->rank; d++)
            if (!set_extent(feed, port, d, port->tensor->shape[d], file))
                return false;
    }
    return true;
}

/* Whatever was not given: symbols become 1, inputs random numbers from the seed, outputs empty tensors. Each
 * input has a seed of its own, so that two inputs of one shape differ. */
bool tool_feed_rest(tool_feed *feed, int64_t seed)
{
    tec_error err = {0};

    for (int k = 0; k < feed->n_symbols; k++)
        if (!feed->known[k])
            feed->value[k] = 1;
    for (int i = 0; i < feed->n; i++) {
        tool_port *port = &feed->port[i];
        int64_t shape[RT_MAX_RANK];

        if (port->tensor)
            continue;
        if (!rt_shape_eval(port->shape, port->rank, feed->value, shape, port->name, &err))
            return fail(feed, base_strdup(feed->cx, err.text)) != NULL;
        port->tensor = tool_new_tensor(feed->cx, port->dtype, port->rank, shape);
        if (!port->tensor)
            return false;
        if (!port->is_output)
            worker_fill_random(port->tensor, (uint64_t)(seed + i));
    }
    return true;
}
