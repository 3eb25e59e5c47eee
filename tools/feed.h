/* tools/feed.h -- tensors for every parameter of a graph or of a function: from files, or random.
 *
 *     tool_feed f = tool_feed_graph(cx, &desc->graphs[0]);
 *     if (!tool_feed_files(&f, "run", &inputs) || !tool_feed_dims(&f, &dims) || !tool_feed_rest(&f,
 *         seed)) return tool_fail("run", cx);
 *     use(f.port[0].tensor);
 *
 * Symbols take their values from the files, then from --dim (by a symbol's name, or as PARAMETER.AXIS), else
 * they are 1.
 * Lifetime: the context's. Errors: in the context: a name that is not there, a shape that disagrees with
 * another one.
 */
#ifndef TOOLS_FEED_H
#define TOOLS_FEED_H

#include "runtime/format.h"
#include "tools/dims.h"

typedef struct {
    const char *name;
    base_dtype dtype;
    int rank;
    const rt_dim *shape; /* over the feed's symbols */
    bool is_output;
    DLTensor *tensor; /* NULL: not there yet */
} tool_port;

typedef struct {
    tec_context *cx;
    const char *what; /* "graph 'main'", for messages */
    int n, n_symbols;
    tool_port *port;
    const char **symbol;
    int64_t *value;
    bool *known; /* whose value a file or --dim gave */
} tool_feed;

/* The graph or function ("kind") of that name in a module, or for NULL the only one: its place. -1: there is
 * none, or there are several. */
int tool_feed_pick(tec_context *cx, const tec_module *m, const char *kind, const char *wanted, int count,
                   const char *(*name_of)(const tec_module *module, int index));
tool_feed tool_feed_graph(tec_context *cx, const rt_graph_desc *graph); /* its inputs */
tool_feed tool_feed_function(tec_context *cx,
                             const rt_function_desc *function); /* its parameters, outputs too */

/* --input NAME=FILE, .npy or .pb. */
bool tool_feed_files(tool_feed *feed, const char *command, const tool_list *inputs);
bool tool_feed_dims(tool_feed *feed, tool_dims *dims);
/* Random numbers for inputs without a file, zeros for outputs; symbols without a value become 1. */
bool tool_feed_rest(tool_feed *feed, int64_t seed);

#endif
