/* tools/check_case.c -- compiles a model with the dimensions of its data, runs each data set, compares. */
#include "tools/check_case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "graph/build.h"
#include "graph/onnx/onnx.h"
#include "graph/pass.h"
#include "runtime/module.h"
#include "tec/program.h"
#include "tools/context.h"
#include "tools/data.h"
#include "worker/tensors.h"

enum { MOST_TENSORS = 256 }; /* of one side of a data set */

typedef struct {
    tec_context *cx;
    const char *dir;
    const target *t;
    const check_server *server; /* that runs the code; NULL: this process */
    bool verbose;
    DLTensor *input[MOST_TENSORS], *output[MOST_TENSORS];
    int n_inputs, n_outputs;
    const char *unreadable; /* why a tensor of the data set cannot be read; NULL: all could */
} a_case;

static check_result fail(const char *reason)
{
    return (check_result){.outcome = CHECK_FAIL, .reason = reason};
}

/* Tensors KIND_0.pb, KIND_1.pb, ... of a data set. One that cannot be read (a sequence, strings) leaves a
 * gap. Each file is read twice, first in a context of its own, because an error in `cx` would stay there. */
static int read_set(a_case *c, const char *set, const char *kind, DLTensor **out)
{
    int n = 0;

    for (; n < MOST_TENSORS; n++) {
        const char *path = base_format(c->cx, "%s/%s/%s_%d.pb", c->dir, set, kind, n);

        if (access(path, R_OK) != 0)
            break;
        tec_context *probe = tool_context();
        out[n] = tool_read(probe, path) ? tool_read(c->cx, path) : NULL;
        if (!out[n])
            c->unreadable = base_strdup(c->cx, tec_context_error(probe));
        tec_context_free(probe);
    }
    return n;
}

/* Inputs with gaps keep the shapes of the model. */
static graph_module *import(a_case *c)
{
    onnx_shape *shapes = base_array(c->cx, onnx_shape, c->n_inputs + 1);
    onnx_options o = {.shapes = shapes};

    for (int i = 0; i < c->n_inputs; i++)
        if (c->input[i])
            shapes[o.n_shapes++] =
                (onnx_shape){.position = i, .n = c->input[i]->ndim, .shape = c->input[i]->shape};
    return onnx_import(c->cx, base_format(c->cx, "%s/model.onnx", c->dir), &o);
}

static const graph_body *body_of(const graph_built *b)
{
    return ((const graph_function *)b->module->functions.at[0])->body;
}

static const char *node_of(const graph_built *b, int output)
{
    const graph_value *v = body_of(b)->outputs.at[output];

    return v->node ? v->node->name : "an input";
}

/* Whether an element of float32 that should be a denormal is 0: kernels flush denormals
 * (docs/code-generation.md). */
static bool flushed(const DLTensor *got, const DLTensor *want)
{
    const float *x = got->data, *y = want->data;
    int64_t n = base_dtype_same(want->dtype, BASE_F32) ? tec_tensor_bytes(want) / 4 : 0;

    for (int64_t i = 0; i < n; i++)
        if (x[i] == 0 && fabsf(y[i]) > 0 && fabsf(y[i]) < FLT_MIN)
            return true;
    return false;
}

/* The module's outputs, `found`, against those of the data set, up to the first that differs; a note where
 * denormals were lost. */
static check_result compare(a_case *c, const graph_built *b, const DLTensor *const *found)
{
    const char *note = "";
    char text[400];

    for (int k = 0; k < c->n_outputs; k++) {
        const char *name = body_of(b)->output_names.at[k];
        const DLTensor *want = c->output[k];

        if (want && !found[k])
            return fail(base_format(c->cx, "output '%s' is no tensor", name));
        if (!want || run_compare(found[k], want, text, sizeof text)) {
            note = want && flushed(found[k], want)
                       ? base_format(c->cx, "denormals in output '%s' became 0", name)
                       : note;
            continue;
        }
        return fail(c->verbose ? base_format(c->cx, "output '%s' %s; made by %s", name, text, node_of(b, k))
                               : base_format(c->cx, "output '%s' %s", name, text));
    }
    return (check_result){.outcome = CHECK_PASS, .reason = note};
}

/* Files from before ONNX had a way to hold bfloat16 in arrays keep its bits as uint16. */
static void name_bfloat(DLTensor *t, DLDataType wanted)
{
    if (t && wanted.code == kDLBfloat && base_dtype_same(t->dtype, BASE_U16))
        t->dtype = wanted;
}

/* An input that nothing reads needs no data. */
static bool is_read(const graph_built *b, int input)
{
    const graph_body *body = body_of(b);
    base_map uses = {0};

    graph_count_uses(b->cx, body, &uses);
    return graph_uses(&uses, body->inputs.at[input]) > 0;
}

/* The inputs of the data set in their order; an input that the compiled graph does not read gets any tensor.
 */
static void set_inputs(a_case *c, const graph_built *b, tec_executor *ex, tec_error *err)
{
    tec_tensor_info info;

    for (int i = 0; i < tec_executor_n_inputs(ex) && tec_executor_input_info(ex, i, &info, err); i++) {
        DLTensor *t = i < c->n_inputs ? c->input[i] : NULL;

        name_bfloat(t, info.dtype);
        if (!is_read(b, i))
            t = tool_new_tensor(c->cx, info.dtype, info.ndim, info.shape);
        if (t)
            tec_executor_set_input(ex, i, t, err);
    }
    for (int k = 0; k < tec_executor_n_outputs(ex) && k < c->n_outputs; k++)
        if (tec_executor_output_info(ex, k, &info, err))
            name_bfloat(c->output[k], info.dtype);
}

/* The inputs of the data set as values of the program; an input that the data set lacks is an error. */
static bool make_values(a_case *c, tec_program *p, tec_object **in, tec_error *err)
{
    for (int i = 0; i < tec_program_n_inputs(p); i++) {
        if (i >= c->n_inputs || !c->input[i]) {
            base_fail(c->cx, TEC_INVALID, (base_loc){0}, "the data has no value for input '%s'",
                      tec_program_input_name(p, i));
            return false;
        }
        in[i] = tec_object_tensor(p, c->input[i], err);
        if (!in[i])
            return false;
    }
    return true;
}

static check_result run_values(a_case *c, const graph_built *b, tec_program *p, tec_object **in,
                               tec_object **out, tec_error *err)
{
    int n_in = tec_program_n_inputs(p), n_out = tec_program_n_outputs(p);
    const DLTensor **found = base_array(c->cx, const DLTensor *, n_out);

    if (n_out < c->n_outputs)
        return fail(base_format(c->cx, "%d outputs, the data has %d", n_out, c->n_outputs));
    if (!make_values(c, p, in, err) || !tec_program_run(p, in, n_in, out, n_out, err))
        return fail(base_strdup(c->cx, err->text[0] ? err->text : tec_context_error(c->cx)));
    for (int k = 0; k < n_out; k++)
        found[k] = tec_object_dltensor(out[k]);
    return compare(c, b, found);
}

/* The same for a model with control flow, which the VM runs. */
static check_result run_program(a_case *c, const graph_built *b, tec_module *m)
{
    tec_error err = {0};
    tec_program *p = tec_program_new(m, NULL, &(tec_program_options){.run = {.threads = 1}}, &err);

    if (!p)
        return fail(base_strdup(c->cx, err.text));
    tec_object **in = base_array(c->cx, tec_object *, tec_program_n_inputs(p) + 1),
               **out = base_array(c->cx, tec_object *, tec_program_n_outputs(p) + 1);
    check_result r = run_values(c, b, p, in, out, &err);
    for (int i = 0; i < tec_program_n_inputs(p); i++)
        tec_object_free(in[i]);
    for (int k = 0; k < tec_program_n_outputs(p); k++)
        tec_object_free(out[k]);
    tec_program_free(p);
    return r;
}

/* Runs the module once and compares its outputs with those of the data set. */
static check_result run_here(a_case *c, const graph_built *b, tec_module *m)
{
    const DLTensor *found[MOST_TENSORS];
    tec_error err = {0};
    tec_executor *ex = tec_executor_new(m, NULL, &(tec_run_options){.threads = 1}, &err);
    check_result r;

    if (ex)
        set_inputs(c, b, ex, &err);
    if (!ex || err.status != TEC_OK || !tec_executor_run(ex, &err))
        r = fail(base_strdup(c->cx, err.text));
    else {
        for (int k = 0; k < c->n_outputs; k++)
            found[k] = tec_executor_output(ex, k);
        r = compare(c, b, found);
    }
    tec_executor_free(ex);
    return r;
}

/* The same on a server of devices. */
static check_result run_there(a_case *c, const graph_built *b)
{
    const graph_body *body = body_of(b);
    const DLTensor *got[MOST_TENSORS];
    tec_array *arrays[MOST_TENSORS] = {0};
    tec_error err = {0};
    check_result r;

    for (int i = 0; i < c->n_inputs && i < body->inputs.n; i++)
        if (is_read(b, i))
            name_bfloat(c->input[i], ((const graph_value *)body->inputs.at[i])->type.dtype);
        else
            c->input[i] = NULL;
    if (!check_rpc_run(c->server, b, c->input, c->n_inputs, arrays, c->n_outputs, &err))
        r = fail(base_strdup(c->cx, err.text));
    else {
        for (int k = 0; k < c->n_outputs; k++) {
            got[k] = tec_array_tensor(arrays[k]);
            name_bfloat(c->output[k], got[k]->dtype);
        }
        r = compare(c, b, got);
    }
    for (int k = 0; k < c->n_outputs; k++)
        tec_array_free(arrays[k]);
    return r;
}

/* Runs the compiled model where the case wants: on a server, which has no VM for control flow, or here. */
static check_result run(a_case *c, const graph_built *b)
{
    if (!b->desc.program.n_functions && body_of(b)->outputs.n < c->n_outputs)
        return fail(base_format(c->cx, "%d outputs, the data has %d", body_of(b)->outputs.n, c->n_outputs));
    if (c->server && b->desc.program.n_functions)
        return (check_result){.outcome = CHECK_UNSUPPORTED, .reason = "control flow on a server of devices"};
    if (c->server)
        return run_there(c, b);
    tec_module *module = graph_load(b);
    if (!module)
        return fail(base_strdup(c->cx, tec_context_error(c->cx)));
    check_result r = b->desc.program.n_functions ? run_program(c, b, module) : run_here(c, b, module);
    tec_module_free(module);
    return r;
}

static const char *first_note(tec_context *cx)
{
    const char *text = tec_context_error(cx), *note = text ? strstr(text, "note: ") : NULL,
               *from = note   ? note + 6
                       : text ? text
                              : "";

    return base_strndup(cx, from, strcspn(from, "\n"));
}

/* What ran where; a case that computes something and leaves all of it to the host has failed. */
static void count_operators(a_case *c, const graph_built *b, check_result *r)
{
    int count[2];
    const graph_hosted *first = b->hosted.n ? b->hosted.at[0] : NULL;

    if (target_offers(c->t, TARGET_HOST))
        return;
    graph_count_operators(b->module, count);
    r->on_host = count[0];
    r->on_device = count[1];
    if (r->outcome == CHECK_PASS && first && r->on_device == 0)
        *r = (check_result){.outcome = CHECK_FAIL,
                            .reason =
                                base_format(c->cx, "none of its operators ran on the device: %s", first->why),
                            .on_host = count[0]};
    else if (r->outcome == CHECK_PASS && first)
        r->reason = base_format(c->cx, "'%s' ran on the host: %s", first->node->name, first->why);
}

/* The model is imported for each set, since its symbolic dimensions take their sizes from the data. */
static check_result check_set(a_case *c, const char *set)
{
    c->n_inputs = read_set(c, set, "input", c->input);
    c->n_outputs = read_set(c, set, "output", c->output);
    graph_module *m = import(c);
    if (!m)
        return tec_context_status(c->cx) == TEC_UNSUPPORTED
                   ? (check_result){.outcome = CHECK_UNSUPPORTED, .reason = first_note(c->cx)}
                   : fail(base_strdup(c->cx, tec_context_error(c->cx)));
    if (c->unreadable)
        return fail(c->unreadable);
    graph_built *b = graph_build(m, &(graph_build_options){.target = c->t, .jobs = 1});
    if (!b)
        return fail(base_strdup(c->cx, tec_context_error(c->cx)));
    check_result r = run(c, b);
    count_operators(c, b, &r);
    return r;
}

/* All data sets in order, up to the first that does not pass. */
check_result check_case(tec_context *cx, const char *dir, const target *t, const check_server *server,
                        bool verbose)
{
    check_result r = fail("there is no test_data_set_0");

    for (int i = 0;; i++) {
        const char *set = base_format(cx, "test_data_set_%d", i);
        a_case c = {.cx = cx, .dir = dir, .t = t, .server = server, .verbose = verbose};

        if (access(base_format(cx, "%s/%s", dir, set), R_OK) != 0)
            return r;
        r = check_set(&c, set);
        if (r.outcome != CHECK_PASS)
            return r;
    }
}
