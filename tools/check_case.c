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

typedef struct {
    tec_context *cx;
    const char *dir;
    const target *t;
    const check_where *where; /* that runs the code; NULL: this process */
    bool verbose, compile_only;
    DLTensor **input, **output; /* n_inputs and n_outputs of them; NULL: a gap */
    int n_inputs, n_outputs;
    const char *unreadable; /* why a tensor of the data set cannot be read; NULL: all could */
} a_case;

static check_result fail(const char *reason)
{
    return (check_result){.outcome = CHECK_FAIL, .reason = reason};
}

static const char *path_of(const a_case *test, const char *set, const char *kind, int i)
{
    return base_format(test->cx, "%s/%s/%s_%d.pb", test->dir, set, kind, i);
}

/* The file is read twice, first in a context of its own, because an error in `cx` would stay there. NULL: it
 * cannot be read (a sequence, strings), which is noted. */
static DLTensor *read_one(a_case *test, const char *path)
{
    tec_context *probe = tool_context();
    DLTensor *tensor = tool_read(probe, path) ? tool_read(test->cx, path) : NULL;

    if (!tensor)
        test->unreadable = base_strdup(test->cx, tec_context_error(probe));
    tec_context_free(probe);
    return tensor;
}

/* All tensors KIND_0.pb, KIND_1.pb, ... of a data set; one that cannot be read leaves a gap. */
static DLTensor **read_set(a_case *test, const char *set, const char *kind, int *count)
{
    int n = 0;

    while (access(path_of(test, set, kind, n), R_OK) == 0)
        n++;
    DLTensor **tensors = base_array(test->cx, DLTensor *, n + 1);
    for (int i = 0; i < n; i++)
        tensors[i] = read_one(test, path_of(test, set, kind, i));
    *count = n;
    return tensors;
}

/* Inputs with gaps keep the shapes of the model. */
static graph_module *import(a_case *test)
{
    onnx_shape *shapes = base_array(test->cx, onnx_shape, test->n_inputs + 1);
    onnx_options o = {.shapes = shapes};

    for (int i = 0; i < test->n_inputs; i++)
        if (test->input[i])
            shapes[o.n_shapes++] =
                (onnx_shape){.position = i, .n = test->input[i]->ndim, .shape = test->input[i]->shape};
    return onnx_import(test->cx, base_format(test->cx, "%s/model.onnx", test->dir), &o);
}

static const graph_body *body_of(const graph_built *built)
{
    return ((const graph_function *)built->module->functions.at[0])->body;
}

static const char *node_of(const graph_built *built, int output)
{
    const graph_value *v = body_of(built)->outputs.at[output];

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
static check_result compare(a_case *test, const graph_built *built, const DLTensor *const *found)
{
    const char *note = "";
    char text[400];

    for (int k = 0; k < test->n_outputs; k++) {
        const char *name = body_of(built)->output_names.at[k];
        const DLTensor *want = test->output[k];

        if (want && !found[k])
            return fail(base_format(test->cx, "output '%s' is not a tensor", name));
        if (!want || worker_compare_model(found[k], want, text, sizeof text)) {
            note = want && flushed(found[k], want)
                       ? base_format(test->cx, "denormals in output '%s' became 0", name)
                       : note;
            continue;
        }
        return fail(test->verbose
                        ? base_format(test->cx, "output '%s' %s; made by %s", name, text, node_of(built, k))
                        : base_format(test->cx, "output '%s' %s", name, text));
    }
    return (check_result){.outcome = CHECK_PASS, .reason = note};
}

/* Files from before ONNX had a way to hold bfloat16 in arrays keep its bits as uint16. */
static void name_bfloat(DLTensor *tensor, DLDataType wanted)
{
    if (tensor && wanted.code == kDLBfloat && base_dtype_same(tensor->dtype, BASE_U16))
        tensor->dtype = wanted;
}

/* Which inputs of the graph are read: one that nothing reads needs no data. */
static const bool *inputs_read(const graph_built *built)
{
    const graph_body *body = body_of(built);
    bool *read = base_array(built->cx, bool, body->inputs.n + 1);
    base_map uses = {0};

    graph_count_uses(built->cx, body, &uses);
    for (int i = 0; i < body->inputs.n; i++)
        read[i] = graph_uses(&uses, body->inputs.at[i]) > 0;
    return read;
}

/* The inputs of the data set in their order; an input that the compiled graph does not read gets any tensor.
 */
static void set_inputs(a_case *test, const graph_built *built, tec_executor *ex, tec_error *err)
{
    const bool *read = inputs_read(built);
    tec_tensor_info info;

    for (int i = 0; i < tec_executor_n_inputs(ex) && tec_executor_input_info(ex, i, &info, err); i++) {
        DLTensor *t = i < test->n_inputs ? test->input[i] : NULL;

        name_bfloat(t, info.dtype);
        if (!read[i])
            t = tool_new_tensor(test->cx, info.dtype, info.ndim, info.shape);
        if (t)
            tec_executor_set_input(ex, i, t, err);
    }
    for (int k = 0; k < tec_executor_n_outputs(ex) && k < test->n_outputs; k++)
        if (tec_executor_output_info(ex, k, &info, err))
            name_bfloat(test->output[k], info.dtype);
}

/* The inputs of the data set as values of the program; an input that the data set lacks is an error. */
static bool make_values(a_case *test, tec_program *program, tec_object **in, tec_error *err)
{
    for (int i = 0; i < tec_program_n_inputs(program); i++) {
        if (i >= test->n_inputs || !test->input[i]) {
            base_fail(test->cx, TEC_INVALID, (base_loc){0}, "the test data have no value for input '%s'",
                      tec_program_input_name(program, i));
            return false;
        }
        in[i] = tec_object_tensor(program, test->input[i], err);
        if (!in[i])
            return false;
    }
    return true;
}

/* For models with control flow: inputs and outputs are objects, of which tensors are one kind. */
static check_result run_values(a_case *test, const graph_built *built, tec_program *program, tec_object **in,
                               tec_object **out, tec_error *err)
{
    int n_in = tec_program_n_inputs(program), n_out = tec_program_n_outputs(program);
    const DLTensor **found = base_array(test->cx, const DLTensor *, n_out);

    if (!make_values(test, program, in, err) || !tec_program_run(program, in, n_in, out, n_out, err))
        return fail(base_strdup(test->cx, err->text[0] ? err->text : tec_context_error(test->cx)));
    for (int k = 0; k < n_out; k++)
        found[k] = tec_object_dltensor(out[k]);
    return compare(test, built, found);
}

/* The same for a model with control flow, which the VM runs. */
static check_result run_program(a_case *test, const graph_built *built, tec_module *module)
{
    tec_error err = {0};
    tec_program *program = tec_program_new(module, NULL, &(tec_program_options){.run = {.threads = 1}}, &err);

    if (!program)
        return fail(base_strdup(test->cx, err.text));
    tec_object **in = base_array(test->cx, tec_object *, tec_program_n_inputs(program) + 1),
               **out = base_array(test->cx, tec_object *, tec_program_n_outputs(program) + 1);
    check_result r = run_values(test, built, program, in, out, &err);
    for (int i = 0; i < tec_program_n_inputs(program); i++)
        tec_object_free(in[i]);
    for (int k = 0; k < tec_program_n_outputs(program); k++)
        tec_object_free(out[k]);
    tec_program_free(program);
    return r;
}

/* Runs the module once and compares its outputs with those of the data set. */
static check_result run_here(a_case *test, const graph_built *built, tec_module *module)
{
    const DLTensor **found = base_array(test->cx, const DLTensor *, test->n_outputs + 1);
    tec_error err = {0};
    tec_executor *ex = tec_executor_new(module, NULL, &(tec_run_options){.threads = 1}, &err);
    check_result r;

    if (ex)
        set_inputs(test, built, ex, &err);
    if (!ex || err.status != TEC_OK || !tec_executor_run(ex, &err))
        r = fail(base_strdup(test->cx, err.text));
    else {
        for (int k = 0; k < test->n_outputs; k++)
            found[k] = tec_executor_output(ex, k);
        r = compare(test, built, found);
    }
    tec_executor_free(ex);
    return r;
}

/* The same on a device far away. */
static check_result run_there(a_case *test, const graph_built *built)
{
    const graph_body *body = body_of(built);
    const DLTensor **got = base_array(test->cx, const DLTensor *, test->n_outputs + 1);
    tec_array **arrays = base_array(test->cx, tec_array *, test->n_outputs + 1);
    const bool *read = inputs_read(built);
    tec_error err = {0};
    check_result r;

    for (int i = 0; i < test->n_inputs && i < body->inputs.n; i++)
        if (built->desc.program.n_functions || read[i])
            name_bfloat(test->input[i], ((const graph_value *)body->inputs.at[i])->type.dtype);
        else
            test->input[i] = NULL;
    if (!check_there(test->where, built, test->input, test->n_inputs, arrays, test->n_outputs, &err))
        r = fail(base_strdup(test->cx, err.text));
    else {
        for (int k = 0; k < test->n_outputs; k++) {
            got[k] = arrays[k] ? tec_array_tensor(arrays[k]) : NULL;
            if (got[k])
                name_bfloat(test->output[k], got[k]->dtype);
        }
        r = compare(test, built, got);
    }
    for (int k = 0; k < test->n_outputs; k++)
        tec_array_free(arrays[k]);
    return r;
}

/* Runs the compiled model where the case wants. */
static check_result run(a_case *test, const graph_built *built)
{
    if (body_of(built)->outputs.n < test->n_outputs)
        return fail(base_format(test->cx, "the model has %d outputs, but the test data have %d",
                                body_of(built)->outputs.n, test->n_outputs));
    if (test->where)
        return run_there(test, built);
    tec_module *module = graph_load(built);
    if (!module)
        return fail(base_strdup(test->cx, tec_context_error(test->cx)));
    check_result r =
        built->desc.program.n_functions ? run_program(test, built, module) : run_here(test, built, module);
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
static void count_operators(a_case *test, const graph_built *built, check_result *result)
{
    int count[2];
    const graph_hosted *first = built->hosted.n ? built->hosted.at[0] : NULL;

    if (target_offers(test->t, TARGET_HOST))
        return;
    if (built->desc.program.n_functions)
        memcpy(count, built->counted, sizeof count);
    else
        graph_count_operators(built->module, count);
    result->on_host = count[0];
    result->on_device = count[1];
    if (result->outcome == CHECK_PASS && first && result->on_device == 0)
        *result = (check_result){
            .outcome = CHECK_FAIL,
            .reason = base_format(test->cx, "none of its operators ran on the device: %s", first->why),
            .on_host = count[0]};
    else if (result->outcome == CHECK_PASS && first)
        result->reason = base_format(test->cx, "'%s' ran on the host: %s", first->node->name, first->why);
}

/* The model is imported for each set, since its symbolic dimensions take their sizes from the data. */
static check_result check_set(a_case *test, const char *set)
{
    test->input = read_set(test, set, "input", &test->n_inputs);
    test->output = read_set(test, set, "output", &test->n_outputs);
    graph_module *module = import(test);
    if (!module)
        return tec_context_status(test->cx) == TEC_UNSUPPORTED
                   ? (check_result){.outcome = CHECK_UNSUPPORTED, .reason = first_note(test->cx)}
                   : fail(base_strdup(test->cx, tec_context_error(test->cx)));
    if (test->unreadable)
        return fail(test->unreadable);
    graph_built *built = graph_build(
        module, &(graph_build_options){.target = test->t, .jobs = 1, .place_rule = GRAPH_ON_DEVICE});
    if (!built)
        return fail(base_strdup(test->cx, tec_context_error(test->cx)));
    check_result r =
        test->compile_only ? (check_result){.outcome = CHECK_PASS, .reason = ""} : run(test, built);
    count_operators(test, built, &r);
    return r;
}

/* All data sets in order, up to the first that does not pass. */
check_result check_case(tec_context *cx, const char *dir, const target *machine, const check_options *options)
{
    check_result r = fail("expected a folder test_data_set_0, found none");

    for (int i = 0;; i++) {
        const char *set = base_format(cx, "test_data_set_%d", i);
        a_case c = {.cx = cx,
                    .dir = dir,
                    .t = machine,
                    .where = options->where,
                    .verbose = options->verbose,
                    .compile_only = options->compile_only};

        if (access(base_format(cx, "%s/%s", dir, set), R_OK) != 0)
            return r;
        r = check_set(&c, set);
        if (r.outcome != CHECK_PASS)
            return r;
    }
}
