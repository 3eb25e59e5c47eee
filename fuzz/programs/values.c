/* fuzz/programs/values.c -- see values.h. */
#include "fuzz/programs/values.h"

#include <math.h>
#include <string.h>

#include "fuzz/programs/inside.h"

enum { WIDTH = FUZZ_WIDTH };

typedef struct {
    tec_context *cx;
    uint64_t state;
} source;

static uint64_t draw(source *self, uint64_t n)
{
    return fuzz_draw(&self->state, n);
}

/* ---- inputs ---- */

/* Sixteenths between -1 and 1, which floats hold exactly. */
static interp_value *tensor(source *self, int n, const int64_t *shape)
{
    interp_value *v = interp_tensor(self->cx, BASE_F32, n, shape, NULL);

    for (int64_t i = 0; i < interp_count(&v->array); i++)
        ((float *)v->array.data)[i] = (float)draw(self, 33) / 16.0F - 1;
    return v;
}

/* Depth 3 at most. */
static interp_value *tree(source *self, const graph_data *data, int depth)
{
    const int64_t shape[] = {WIDTH};
    interp_value *part[3];

    if (depth == 0 || draw(self, 3) == 0) {
        part[0] = tensor(self, 1, shape);
        return interp_data(self->cx, data, 0, part, 1);
    }
    part[0] = tree(self, data, depth - 1);
    part[1] = tensor(self, 1, shape);
    part[2] = tree(self, data, depth - 1);
    return interp_data(self->cx, data, 1, part, 3);
}

/* May be empty, and so may its tensors. */
static interp_value *list(source *self, const graph_data *data)
{
    interp_value *l = interp_data(self->cx, data, 0, NULL, 0);

    for (int n = (int)draw(self, 4); n > 0; n--) {
        const int64_t shape[] = {(int64_t)draw(self, 3), WIDTH};
        interp_value *cell[] = {tensor(self, 2, shape), l};

        l = interp_data(self->cx, data, 1, cell, 2);
    }
    return l;
}

static interp_value *integers(source *self)
{
    const int64_t n = (int64_t)draw(self, 6);
    interp_value *v = interp_tensor(self->cx, BASE_I64, 1, &n, NULL);

    for (int64_t i = 0; i < n; i++)
        ((int64_t *)v->array.data)[i] = (int64_t)draw(self, FUZZ_INTS_BELOW);
    return v;
}

/* All inputs are drawn for each case, so that those of `main` do not depend on the rest. */
int fuzz_program_inputs(tec_context *cx, uint64_t *state, const graph_module *module, bool drawn,
                        interp_value **in)
{
    source s = {cx, *state};
    const int64_t shape[] = {(int64_t)draw(&s, 4), WIDTH};

    in[0] = tree(&s, graph_find_data(module, "Tree"), 3);
    in[1] = list(&s, graph_find_data(module, "List"));
    in[2] = tensor(&s, 1, shape + 1);
    in[3] = tensor(&s, 2, shape);
    in[4] = interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){(uint8_t)draw(&s, 2)});
    in[5] = interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){(int64_t)draw(&s, FUZZ_LARGEST)});
    in[6] = integers(&s);
    *state = s.state;
    return drawn ? 7 : 5;
}

/* The same value for the VM. NULL with an error. */
tec_object *fuzz_object(tec_program *program, const interp_value *value, tec_error *err)
{
    tec_object *part[8] = {NULL}, *object = NULL;
    bool good = value->n <= BASE_COUNT(part);

    if (value->kind == INTERP_TENSOR) {
        DLTensor t = {.data = value->array.data,
                      .device = {kDLCPU, 0},
                      .ndim = value->array.n,
                      .dtype = value->array.dtype,
                      .shape = (int64_t *)(uintptr_t)value->array.shape};
        return tec_object_tensor(program, &t, err);
    }
    for (int i = 0; i < value->n && good; i++)
        good = (part[i] = fuzz_object(program, value->part[i], err)) != NULL;
    if (good)
        object =
            value->kind == INTERP_TUPLE
                ? tec_object_tuple(program, part, value->n, err)
                : tec_object_data(program, ((const graph_case *)value->data->cases.at[value->which])->name,
                                  part, value->n, err);
    for (int i = 0; i < value->n && i < BASE_COUNT(part); i++)
        tec_object_free(part[i]);
    return object;
}

/* ---- comparing ---- */

/* Relative for large values, absolute for small ones. */
static bool close_enough(double a, double b)
{
    return fabs(a - b) <= 1e-3 * (1 + fabs(a)) || (isnan(a) && isnan(b)) || (isinf(a) && isinf(b));
}

/* Shapes and integers are equal, floats are close. */
static bool same_tensor(const ir_array *array, const DLTensor *tensor)
{
    int64_t n = interp_count(array);

    if (!tensor || tensor->ndim != array->n || !base_dtype_same(tensor->dtype, array->dtype))
        return false;
    for (int d = 0; d < array->n; d++)
        if (tensor->shape[d] != array->shape[d])
            return false;
    for (int64_t i = 0; i < n; i++)
        if (base_dtype_same(array->dtype, BASE_F32)
                ? !close_enough((double)((const float *)array->data)[i],
                                (double)((const float *)tensor->data)[i])
                : ((const int64_t *)array->data)[i] != ((const int64_t *)tensor->data)[i])
            return false;
    return true;
}

/* As deep as the value; trees are shallow. */
bool fuzz_same_value(const tec_program *program, const interp_value *value, const tec_object *object)
{
    if (value->kind == INTERP_TENSOR)
        return same_tensor(&value->array, tec_object_dltensor(object));
    if (tec_object_n_parts(object) != value->n ||
        (value->kind == INTERP_DATA && strcmp(((const graph_case *)value->data->cases.at[value->which])->name,
                                              tec_object_constructor(program, object)) != 0))
        return false;
    for (int i = 0; i < value->n; i++)
        if (!fuzz_same_value(program, value->part[i], tec_object_part(object, i)))
            return false;
    return true;
}
