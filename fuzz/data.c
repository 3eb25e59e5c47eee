/* fuzz/data.c -- sizes and data of a case: small integers in every dtype, so that results match bit for bit;
 * and comparing. */
#include "fuzz/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/define.h"
#include "fuzz/draw.h"
#include "ir/eval.h"
#include "ir/interp/interp.h"
#include "ir/reason/facts.h"

/* ---- sizes ---- */

/* The values as the interpreter's constant evaluator takes them; symbols of program are found by name. */
static base_map values_for(tec_context *cx, const ir_program *program, const fuzz_sizes *sizes)
{
    base_map vars = {0};

    for (int i = 0; i < program->n_symbols; i++)
        for (int j = 0; j < sizes->n; j++)
            if (base_same(program->symbols[i]->var.name, sizes->name[j])) {
                ir_value *value = base_new(cx, ir_value);

                value->i = sizes->value[j];
                base_map_put(cx, &vars, program->symbols[i], value);
            }
    return vars;
}

/* Sizes that break a fact of the definition are no test: the program is not defined for them. */
static bool facts_hold(tec_context *cx, const ir_program *program, const fuzz_sizes *sizes)
{
    base_map vars = values_for(cx, program, sizes);
    ir_value v;

    for (int i = 0; i < program->n_facts; i++)
        if (!ir_eval(cx, program->facts[i], &vars, &v) || !v.i)
            return false;
    return true;
}

static bool same_sizes(const fuzz_sizes *left, const fuzz_sizes *right)
{
    return memcmp(left->value, right->value, (size_t)left->n * sizeof *left->value) == 0;
}

/* Up to FUZZ_MAX_SETS different sizes for the symbols that all hold the facts, or (`hold` false) break one.
 * The first two attempts are 0 and 1 for all. */
static int draw_sizes(tec_context *cx, const ir_program *tree, uint64_t seed, bool hold,
                      fuzz_sizes out[FUZZ_MAX_SETS])
{
    int found = 0;

    for (int attempt = 0; attempt < 300 && found < FUZZ_MAX_SETS; attempt++) {
        fuzz_sizes s = {.n = tree->n_symbols};
        bool known = false;

        for (int i = 0; i < s.n && i < FUZZ_MAX_SYMBOLS; i++) {
            s.name[i] = tree->symbols[i]->var.name;
            s.value[i] = attempt < 2 ? attempt : fuzz_below(&seed, FUZZ_SYMBOL_MAX + 1);
        }
        for (int i = 0; i < found; i++)
            known = known || same_sizes(&out[i], &s);
        if (!known && facts_hold(cx, tree, &s) == hold)
            out[found++] = s;
    }
    return found;
}

int fuzz_draw_sizes(tec_context *cx, const ir_program *tree, uint64_t seed, fuzz_sizes out[FUZZ_MAX_SETS])
{
    return draw_sizes(cx, tree, seed, true, out);
}

int fuzz_draw_refused(tec_context *cx, const ir_program *tree, uint64_t seed, fuzz_sizes out[FUZZ_MAX_SETS])
{
    return tree->n_facts ? draw_sizes(cx, tree, seed, false, out) : 0;
}

const char *fuzz_sizes_text(tec_context *cx, const fuzz_sizes *sizes)
{
    base_text t = {0};

    for (int i = 0; i < sizes->n; i++)
        base_addf(cx, &t, "%s%s = %lld", i ? ", " : " with ", sizes->name[i], (long long)sizes->value[i]);
    return base_text_str(cx, &t);
}

/* ---- values ---- */

static void put_number(base_dtype dtype, void *at, int64_t index, int64_t value)
{
    if (base_is_float(dtype) && dtype.bits == 32)
        ((float *)at)[index] = (float)value;
    else if (base_is_float(dtype))
        ((double *)at)[index] = (double)value;
    else if (dtype.bits == 8)
        ((int8_t *)at)[index] = (int8_t)(base_is_bool(dtype) ? value & 1 : value);
    else if (dtype.bits == 32)
        ((int32_t *)at)[index] = (int32_t)value;
    else
        ((int64_t *)at)[index] = value;
}

/* Numbers that wrap, and that order and arithmetic treat apart. */
static void put_extreme(base_dtype dtype, void *at, int64_t index, uint64_t *seed)
{
    static const double floats[] = {NAN, INFINITY, -INFINITY};
    static const int64_t ints[] = {INT64_MIN,        INT64_MAX, INT64_MIN + 1, INT64_MIN / 2,
                                   (int64_t)1 << 62, INT32_MIN, INT32_MAX};

    if (!base_is_float(dtype))
        put_number(dtype, at, index, ints[fuzz_below(seed, BASE_COUNT(ints))]);
    else if (dtype.bits == 32)
        ((float *)at)[index] = (float)floats[fuzz_below(seed, BASE_COUNT(floats))];
    else
        ((double *)at)[index] = floats[fuzz_below(seed, BASE_COUNT(floats))];
}

static double float_at(base_dtype dtype, const void *from, int64_t i)
{
    return dtype.bits == 32 ? ((const float *)from)[i] : ((const double *)from)[i];
}

static int64_t int_at(base_dtype dtype, const void *from, int64_t i)
{
    return dtype.bits == 8    ? ((const int8_t *)from)[i]
           : dtype.bits == 32 ? ((const int32_t *)from)[i]
                              : ((const int64_t *)from)[i];
}

static const char *number_text(tec_context *cx, base_dtype dtype, const void *from, int64_t i)
{
    return base_is_float(dtype) ? base_format(cx, "%.9g", float_at(dtype, from, i))
                                : base_format(cx, "%lld", (long long)int_at(dtype, from, i));
}

static bool same_number(base_dtype dtype, const void *a, const void *b, int64_t i)
{
    if (!base_is_float(dtype))
        return int_at(dtype, a, i) == int_at(dtype, b, i);
    double x = float_at(dtype, a, i), y = float_at(dtype, b, i);
    return x == y || (isnan(x) && isnan(y));
}

const char *fuzz_difference(tec_context *cx, const ir_buffer *buffer, int64_t n, const void *found,
                            const void *expected)
{
    for (int64_t i = 0; i < n; i++)
        if (!same_number(buffer->dtype, found, expected, i))
            return base_format(cx, "element %lld of '%s' is %s, expected %s", (long long)i, buffer->name,
                               number_text(cx, buffer->dtype, found, i),
                               number_text(cx, buffer->dtype, expected, i));
    return NULL;
}

static base_dtype dtype_of(const ir_param *param)
{
    return param->buffer ? param->buffer->dtype : param->scalar->dtype;
}

static int64_t bytes_of(const fuzz_data *data, int i)
{
    return data->elements[i] * base_dtype_bytes(dtype_of(&data->tree->params[i]));
}

static bool count_elements(tec_context *cx, const ir_buffer *buffer, const base_map *vars, int64_t *out)
{
    *out = 1;
    for (int k = 0; buffer && k < buffer->n; k++) {
        ir_value v;

        if (!ir_eval(cx, buffer->shape[k], vars, &v) || v.i < 0)
            return false;
        *out *= v.i;
    }
    return true;
}

enum { WILD_PERCENT = 25 };

/* Data sets with extreme numbers; of integers only where none becomes a float, whose sums would depend on
 * their order. */
static bool takes_extremes(const ir_program *tree, base_dtype dtype)
{
    bool floats = false;

    for (int i = 0; i < tree->n_params; i++)
        floats |= base_is_float(dtype_of(&tree->params[i]));
    for (int i = 0; i < tree->n_buffers; i++)
        floats |= base_is_float(tree->buffers[i]->dtype);
    return base_is_float(dtype) || (dtype.bits >= 32 && !floats);
}

/* Data for all parameters. A quarter of the sets has extreme values where the program's operations stay exact
 * on them. */
bool fuzz_draw_data(tec_context *cx, const ir_program *tree, const fuzz_sizes *sizes, uint64_t seed,
                    fuzz_data *out)
{
    base_map vars = values_for(cx, tree, sizes);
    bool wild_set = seed % 4 == 0; /* of sets with seeds in a row, one in four */

    *out = (fuzz_data){.tree = tree, .sizes = *sizes, .seed = seed, .n = tree->n_params};
    for (int i = 0; i < out->n && i < FUZZ_MAX_PARAMS; i++) {
        base_dtype t = dtype_of(&tree->params[i]);

        if (!count_elements(cx, tree->params[i].buffer, &vars, &out->elements[i]))
            return false;
        void *data = base_alloc(cx, (size_t)bytes_of(out, i) + 1);
        bool wild = wild_set && takes_extremes(tree, t);
        for (int64_t k = 0; k < out->elements[i] && !tree->params[i].output; k++) {
            int64_t x = base_random_below(&seed, 2 * FUZZ_DATA_MAX + 1) - FUZZ_DATA_MAX;

            /* as an unsigned number, -1 is not small */
            put_number(t, data, k, base_is_int(t) && !base_is_signed(t) ? llabs(x) : x);
            if (wild && fuzz_chance(&seed, WILD_PERCENT))
                put_extreme(t, data, k, &seed);
        }
        *(tree->params[i].output ? &out->expected[i] : &out->input[i]) = data;
    }
    return out->n <= FUZZ_MAX_PARAMS;
}

/* ---- the interpreter ---- */

/* Shape and strides of the buffer for these sizes; strides that the definition leaves open are 0, which
 * means dense. */
static bool describe(tec_context *cx, const ir_buffer *buffer, const base_map *vars, ir_array *array)
{
    *array = (ir_array){.dtype = buffer->dtype, .n = buffer->n};
    for (int k = 0; k < buffer->n; k++) {
        ir_value v;

        if (!ir_eval(cx, buffer->shape[k], vars, &v))
            return false;
        array->shape[k] = v.i;
        if (buffer->strides && ir_eval(cx, buffer->strides[k], vars, &v))
            array->strides[k] = v.i;
    }
    return true;
}

/* Without expected elements the call had to be refused: that it was accepted is the fault. */
static void compare_outputs(tec_context *cx, fuzz_data *data, void *const *found)
{
    for (int i = 0; i < data->n && !data->fault; i++)
        if (data->tree->params[i].output)
            data->fault = !data->expected[i]
                              ? "the call was accepted"
                              : fuzz_difference(cx, data->tree->params[i].buffer, data->elements[i], found[i],
                                                data->expected[i]);
}

/* A scratch context takes what a run needs, so that many runs need no more memory than one. */
static void interpret(tec_context *cx, tec_context *scratch, const ir_program *program, fuzz_data *data,
                      bool oracle)
{
    base_map vars = values_for(scratch, program, &data->sizes);
    ir_array *arrays = base_array(scratch, ir_array, data->n);
    ir_arg *args = base_array(scratch, ir_arg, data->n);
    void *found[FUZZ_MAX_PARAMS] = {0};

    for (int i = 0; i < data->n; i++) {
        base_dtype t = dtype_of(&data->tree->params[i]);

        if (!program->params[i].buffer) {
            args[i].scalar_int = base_is_float(t) ? 0 : int_at(t, data->input[i], 0);
            args[i].scalar_float = base_is_float(t) ? float_at(t, data->input[i], 0) : 0;
            continue;
        }
        if (!describe(scratch, program->params[i].buffer, &vars, &arrays[i])) {
            data->fault =
                base_format(cx, "the shape of '%s' cannot be worked out", program->params[i].buffer->name);
            return;
        }
        found[i] = oracle && data->expected[i] ? data->expected[i]
                                               : base_alloc(scratch, (size_t)bytes_of(data, i) + 1);
        if (data->input[i])
            memcpy(found[i], data->input[i], (size_t)bytes_of(data, i));
        arrays[i].data = found[i];
        args[i].array = &arrays[i];
    }
    ir_run run = {.args = args,
                  .max_steps = 50000000,
                  .parallel_seed = (int64_t)(data->seed >> 20) | 1,
                  .symbol_name = data->sizes.name,
                  .symbol_value = data->sizes.value,
                  .n_symbols = data->sizes.n,
                  .implied_barriers = data->implied_barriers};
    if (!ir_interpret(scratch, program, &run))
        data->fault = base_strdup(cx, tec_context_error(scratch));
    else if (!oracle)
        compare_outputs(cx, data, found);
}

bool fuzz_is_refusal(const fuzz_data *data)
{
    return data->fault && strstr(data->fault, "does not hold");
}

/* A schedule may compute a stage anew for every element of another one: right, and too much to interpret. */
bool fuzz_is_too_long(const fuzz_data *data)
{
    return data->fault && strstr(data->fault, "the program ran for more than");
}

/* In a context of its own, whose errors are findings and not the fuzzer's. */
bool fuzz_interpret(tec_context *cx, const ir_program *program, fuzz_data *data, bool oracle)
{
    tec_context *scratch = base_child(cx);

    data->fault = NULL;
    if (program->n_params != data->n)
        data->fault =
            base_format(cx, "the program has %d parameters, the definition %d", program->n_params, data->n);
    else
        interpret(cx, scratch, program, data, oracle);
    tec_context_free(scratch);
    return !data->fault;
}
