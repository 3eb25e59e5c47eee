/* tests/graph/kit.h -- small graphs from text, one pass over them, and runs of them by the interpreter.
 *
 *     graph_module *m = parsed("graph \"g\" { function \"main\" { ... } }");
 *     becomes(graph_simplify, before, after);
 */
#ifndef TESTS_GRAPH_KIT_H
#define TESTS_GRAPH_KIT_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "graph/node.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "ir/interp/interp.h"

static tec_context *cx;

static inline void open_context(void)
{
    cx = tec_context_new();
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

static inline graph_module *parsed(const char *text)
{
    graph_module *m = graph_parse(cx, "test.graph", text, NULL);

    cr_assert(m, "%s\n%s", tec_context_error(cx), text);
    return m;
}

/* A module of one function with these lines, over the symbols n and m. */
static inline graph_module *lines(const char *text)
{
    return parsed(base_format(cx, "graph \"g\" { symbols n, m function \"main\" {\n%s} }", text));
}

/* What stands inside the function "main". */
static inline const char *lines_of(const graph_module *m)
{
    const char *text = graph_text(cx, m, 0), *begin = strstr(text, "function \"main\" {\n"), *end;

    begin += strlen("function \"main\" {\n");
    for (end = begin; strncmp(end, "\n  }\n", 5); end++)
        ;
    return base_strndup(cx, begin, (size_t)(end - begin) + 1);
}

/* The same without the spaces at the beginnings of lines, which no one wants to count. */
static inline const char *flush_left(const char *text)
{
    base_text out = {0};
    bool begin = true;

    for (; *text; text++) {
        if (begin && *text == ' ')
            continue;
        base_addn(cx, &out, text, 1);
        begin = *text == '\n';
    }
    return base_text_str(cx, &out);
}

static inline const target *any_target(void)
{
    return target_parse(cx, "llvm -mcpu=x86-64-v3");
}

static inline graph_module *after(graph_pass_fn *pass, const char *text)
{
    graph_module *m = pass(lines(text), any_target());

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert(graph_verify(m), "%s\n%s", tec_context_error(cx), graph_text(cx, m, 0));
    return m;
}

static inline void becomes(graph_pass_fn *pass, const char *before, const char *expected)
{
    const char *found = flush_left(lines_of(after(pass, before)));

    cr_assert_str_eq(found, flush_left(expected), "expected:\n%s\nfound:\n%s", flush_left(expected), found);
}

static inline void keeps(graph_pass_fn *pass, const char *text)
{
    graph_module *m = lines(text);

    cr_assert_eq(pass(m, any_target()), m);
}

/* ---- runs: f32 only, extents constant ---- */

static inline int64_t elements(const op_type *t)
{
    int64_t n = 1, extent;

    for (int i = 0; i < t->n; i++) {
        cr_assert(ir_is_int(t->dim[i], &extent));
        n *= extent;
    }
    return n;
}

static inline ir_array array_for(const op_type *t, void *data)
{
    ir_array a = {.dtype = t->dtype, .n = t->n, .data = data};

    for (int i = 0; i < t->n; i++)
        ir_is_int(t->dim[i], &a.shape[i]);
    return a;
}

static inline void *data_of(base_map *data, const graph_value *v)
{
    if (v->constant)
        return (void *)v->constant->data;
    if (!base_map_has(data, v))
        base_map_put(cx, data, v, base_alloc(cx, (size_t)(elements(&v->type) + 1) * 8));
    return base_map_get(data, v);
}

static inline void interpret_node(const graph_module *m, base_map *data, const graph_node *node)
{
    te_def *d = graph_definition(m, node, any_target());
    const ir_program *p = te_tree(cx, d);
    base_vec operands = {0};

    cr_assert(p, "%s", tec_context_error(cx));
    graph_distinct_operands(cx, node, &operands);
    ir_arg *args = base_array(cx, ir_arg, operands.n + node->n_out);
    ir_array *arrays = base_array(cx, ir_array, operands.n + node->n_out);
    for (int k = 0; k < operands.n + node->n_out; k++) {
        const graph_value *v = k < operands.n ? operands.at[k] : node->out[k - operands.n];

        arrays[k] = array_for(&v->type, data_of(data, v));
        args[k].array = &arrays[k];
    }
    cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "%s", tec_context_error(cx));
}

/* Runs the first function; `data` maps its inputs to their elements, and the other values afterwards. */
static inline void interpret(const graph_module *m, base_map *data)
{
    const graph_body *body = ((const graph_function *)m->functions.at[0])->body;

    for (int i = 0; i < body->nodes.n; i++)
        interpret_node(m, data, body->nodes.at[i]);
}

static inline const graph_body *main_body(const graph_module *m)
{
    return ((const graph_function *)m->functions.at[0])->body;
}

#endif
