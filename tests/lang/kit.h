/* tests/lang/kit.h -- programs compiled for the VM, and compared with the interpreter of graphs. */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/build.h"
#include "graph/interp/interp.h"
#include "graph/text.h"
#include "lang/lang.h"
#include "runtime/module.h"
#include "tec/program.h"

static tec_context *cx;
static tec_error err;

static inline void open_context(void)
{
    cx = tec_context_new();
    err = (tec_error){0};
}

static inline void close_context(void)
{
    tec_context_free(cx);
}

/* A program with an instance of it; `limits` may be NULL. */
typedef struct {
    const graph_module *graph; /* as it was read, for the oracle */
    tec_module *module;
    tec_program *p;
} compiled;

/* A module of one program for the VM; `again` is another reading of the same text, which the build may
 * change. */
static inline compiled build(const graph_module *graph, graph_module *again,
                             const tec_program_options *limits)
{
    compiled c = {.graph = graph};
    const graph_build_options o = {.target = target_parse(cx, "native"), .jobs = 1};

    cr_assert(graph && again, "%s", tec_context_error(cx));
    graph_built *b = graph_build(again, &o);
    cr_assert(b, "%s", tec_context_error(cx));
    c.module = graph_load(b);
    cr_assert(c.module, "%s", tec_context_error(cx));
    tec_program_options with = limits ? *limits : (tec_program_options){0};
    with.run.threads = 1;
    c.p = tec_program_new(c.module, NULL, &with, &err);
    cr_assert(c.p, "%s", err.text);
    return c;
}

static inline compiled compile(const char *text, const tec_program_options *limits)
{
    return build(lang_parse(cx, "p.tecp", text, NULL), lang_parse(cx, "p.tecp", text, NULL), limits);
}

static inline compiled compile_graph(const char *text, const tec_program_options *limits)
{
    return build(graph_parse(cx, "p.graph", text, NULL), graph_parse(cx, "p.graph", text, NULL), limits);
}

static inline void discard(compiled *c)
{
    tec_program_free(c->p);
    tec_module_free(c->module);
}

/* The same value for the VM. */
static inline tec_object *object_of(const compiled *c, const interp_value *v)
{
    tec_object *part[8], *o = NULL;

    if (v->kind == INTERP_TENSOR) {
        DLTensor t = {.data = v->array.data,
                      .device = {kDLCPU, 0},
                      .ndim = v->array.n,
                      .dtype = v->array.dtype,
                      .shape = (int64_t *)(uintptr_t)v->array.shape};
        o = tec_object_tensor(c->p, &t, &err);
    } else {
        for (int i = 0; i < v->n; i++)
            part[i] = object_of(c, v->part[i]);
        o = v->kind == INTERP_TUPLE
                ? tec_object_tuple(c->p, part, v->n, &err)
                : tec_object_data(c->p,
                                  base_format(cx, "%s.%s", v->data->name,
                                              ((const graph_case *)v->data->cases.at[v->which])->name),
                                  part, v->n, &err);
        for (int i = 0; i < v->n; i++)
            tec_object_free(part[i]);
    }
    cr_assert(o, "%s", err.text);
    return o;
}

static inline void same(const compiled *c, const interp_value *v, const tec_object *o)
{
    const DLTensor *t = tec_object_dltensor(o);

    if (v->kind != INTERP_TENSOR) {
        cr_assert_eq(tec_object_n_parts(o), v->n);
        if (v->kind == INTERP_DATA)
            cr_assert_str_eq(tec_object_constructor(c->p, o),
                             ((const graph_case *)v->data->cases.at[v->which])->name);
        for (int i = 0; i < v->n; i++)
            same(c, v->part[i], tec_object_part(o, i));
        return;
    }
    cr_assert(t && t->ndim == v->array.n);
    for (int d = 0; d < t->ndim; d++)
        cr_assert_eq(t->shape[d], v->array.shape[d]);
    for (int64_t i = 0; i < interp_count(&v->array); i++)
        if (base_dtype_same(t->dtype, BASE_F32))
            cr_assert_float_eq(((const float *)t->data)[i], ((const float *)v->array.data)[i], 1e-4);
        else
            cr_assert_eq(((const int64_t *)t->data)[i], ((const int64_t *)v->array.data)[i]);
}

/* Runs both on the same values and compares all results; frees the program. */
static inline void agree_on(compiled c, interp_value *const *in, int n, int n_out)
{
    tec_object *given[8], *out[8] = {NULL};
    interp_value *expected[8];

    for (int i = 0; i < n; i++)
        given[i] = object_of(&c, in[i]);
    cr_assert(interp_run(cx, c.graph, NULL, in, n, NULL, expected, n_out), "%s", tec_context_error(cx));
    cr_assert(tec_program_run(c.p, given, n, out, n_out, &err), "%s", err.text);
    for (int i = 0; i < n_out; i++)
        same(&c, expected[i], out[i]);
    for (int i = 0; i < n_out; i++)
        tec_object_free(out[i]);
    for (int i = 0; i < n; i++)
        tec_object_free(given[i]);
    discard(&c);
}
