/* fuzz/call.c -- calls compiled code on arrays that lie against guard pages: a read or write outside ends the
 * process, a write on the other side is seen in the margin.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/data.h"
#include "ir/eval.h"
#include "ir/interp/interp.h"
#include "tec/device.h"

enum { MARGIN = 64, FILL = 0xA5 };

typedef struct {
    unsigned char *map, *data;
    size_t mapped, bytes, margin_at;
} guarded;

/* Pages for the bytes and a margin, one untouchable page before them and one behind. */
static bool open_guarded(guarded *self, size_t bytes, size_t align, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (bytes + MARGIN + page - 1) / page * page;

    self->mapped = inner + 2 * page;
    self->bytes = bytes;
    self->map = mmap(NULL, self->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self->map == MAP_FAILED)
        return false;
    if (mprotect(self->map + page, inner, PROT_READ | PROT_WRITE) != 0)
        return false;
    memset(self->map + page, FILL, inner);
    self->data = at_end ? self->map + page + inner - bytes : self->map + page;
    self->margin_at = (size_t)((at_end ? self->data - MARGIN : self->data + bytes) - self->map);
    return (size_t)self->data % align == 0;
}

static bool margin_is_whole(const guarded *self)
{
    for (int i = 0; i < MARGIN; i++)
        if (self->map[self->margin_at + (size_t)i] != FILL)
            return false;
    return true;
}

/* The extents of a buffer for the sizes of this set. */
static bool shape_of(tec_context *cx, const fuzz_data *data, const ir_buffer *buffer, int64_t *shape)
{
    base_map vars = {0};

    for (int i = 0; i < data->tree->n_symbols; i++) {
        ir_value *v = base_new(cx, ir_value);

        v->i = data->sizes.value[i];
        base_map_put(cx, &vars, data->tree->symbols[i], v);
    }
    for (int k = 0; buffer && k < buffer->n; k++) {
        ir_value v;

        if (!ir_eval(cx, buffer->shape[k], &vars, &v))
            return false;
        shape[k] = v.i;
    }
    return true;
}

/* An argument with its data against a guard page: behind it three times out of four, before it otherwise. */
static bool open_argument(tec_context *cx, const fuzz_data *data, int index, guarded *self, DLTensor *tensor)
{
    const ir_param *param = &data->tree->params[index];
    base_dtype dtype = param->buffer ? param->buffer->dtype : param->scalar->dtype;
    int64_t *shape = base_array(cx, int64_t, IR_MAX_DIMS);
    size_t bytes = (size_t)(data->elements[index] * base_dtype_bytes(dtype));

    if (!shape_of(cx, data, param->buffer, shape) ||
        !open_guarded(self, bytes, (size_t)base_dtype_bytes(dtype), (data->seed + (uint64_t)index) % 4 != 0))
        return false;
    if (data->input[index])
        memcpy(self->data, data->input[index], bytes);
    *tensor = (DLTensor){.data = self->data,
                         .device = {kDLCPU, 0},
                         .ndim = param->buffer ? param->buffer->n : 0,
                         .dtype = dtype,
                         .shape = shape};
    return true;
}

/* Sets data->fault to the first thing that is wrong: a write beside an argument, to an input, or a wrong
 * result.
 */
static void check_outputs(tec_context *cx, fuzz_data *data, const guarded *self)
{
    for (int i = 0; i < data->n && !data->fault; i++) {
        const ir_param *param = &data->tree->params[i];

        if (!margin_is_whole(&self[i]))
            data->fault = base_format(cx, "it writes beside '%s'",
                                      param->buffer ? param->buffer->name : param->scalar->var.name);
        else if (param->output && !data->expected[i])
            data->fault = "the call was accepted"; /* of sizes that break a fact */
        else if (param->output)
            data->fault =
                fuzz_difference(cx, param->buffer, data->elements[i], self[i].data, data->expected[i]);
        else if (memcmp(self[i].data, data->input[i], self[i].bytes) != 0)
            data->fault = base_format(cx, "it changes its input '%s'",
                                      param->buffer ? param->buffer->name : param->scalar->var.name);
    }
}

/* One call of compiled code, here or elsewhere. */
typedef struct {
    tec_function *f;
    const fuzz_elsewhere *there; /* NULL: f is called */
    int threads;
} callee;

static bool call_arrays(const callee *self, DLTensor *const *args, int n, tec_error *err)
{
    return self->there ? self->there->call(self->there->user, args, n, self->threads, err)
                       : tec_function_call(self->f, args, n, err);
}

/* Calls once; false with data->fault. The guards are gone afterwards. */
static bool call_guarded(tec_context *cx, const callee *self, fuzz_data *data)
{
    guarded *g = base_array(cx, guarded, data->n);
    DLTensor *tensors = base_array(cx, DLTensor, data->n), **args = base_array(cx, DLTensor *, data->n);
    tec_error err = {0};
    bool good = true;

    data->fault = NULL;
    for (int i = 0; i < data->n; i++) {
        good = good && open_argument(cx, data, i, &g[i], &tensors[i]);
        args[i] = &tensors[i];
    }
    if (!good)
        data->fault = "there is no memory for the arguments";
    else if (!call_arrays(self, args, data->n, &err))
        data->fault = base_strdup(cx, err.text);
    else
        check_outputs(cx, data, g);
    for (int i = 0; i < data->n; i++)
        if (g[i].map && g[i].map != MAP_FAILED)
            munmap(g[i].map, g[i].mapped);
    return !data->fault;
}

bool fuzz_call(tec_context *cx, tec_function *function, fuzz_data *data)
{
    return call_guarded(cx, &(callee){.f = function}, data);
}

bool fuzz_call_elsewhere(tec_context *cx, const fuzz_elsewhere *there, int threads, fuzz_data *data)
{
    return call_guarded(cx, &(callee){.there = there, .threads = threads}, data);
}

/* ---- on a device ---- */

/* A buffer of the device: margin, the bytes of an argument, margin. */
typedef struct {
    tec_array *array;
    unsigned char *bytes; /* what was put there, and later what is there */
    size_t size, margin;  /* the latter in front */
    DLTensor tensor;      /* over `bytes` */
    int64_t shape[1];
} framed;

/* In the memory of a device there are no guard pages, so the argument lies between two margins of known
 * bytes. The first one is `margin` bytes long, so that an argument may begin between two vectors. */
static bool open_framed(tec_context *cx, framed *fr, tec_device *device, const guarded *self, size_t margin,
                        DLTensor *tensor, tec_error *err)
{
    fr->margin = margin;
    fr->size = self->bytes + margin + MARGIN;
    fr->bytes = base_alloc(cx, fr->size);
    memset(fr->bytes, FILL, fr->size);
    memcpy(fr->bytes + margin, self->data, self->bytes);
    fr->shape[0] = (int64_t)fr->size;
    fr->tensor = (DLTensor){
        .data = fr->bytes, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLUInt, 8, 1}, .shape = fr->shape};
    fr->array = tec_array_new_on(device, fr->tensor.dtype, 1, fr->shape, err);
    if (!fr->array || !tec_tensor_copy(tec_array_tensor(fr->array), &fr->tensor, err))
        return false;
    tensor->data = tec_array_tensor(fr->array)->data;
    tensor->device = tec_array_tensor(fr->array)->device;
    tensor->byte_offset = margin;
    return true;
}

/* What the device holds now, to the host's argument; false where a margin has changed. */
static bool close_framed(framed *fr, const guarded *self, tec_error *err)
{
    bool whole = tec_tensor_copy(&fr->tensor, tec_array_tensor(fr->array), err);

    for (size_t i = 0; i < fr->size && whole; i++)
        whole = (i >= fr->margin && i < fr->margin + self->bytes) || fr->bytes[i] == FILL;
    memcpy(self->data, fr->bytes + fr->margin, self->bytes);
    return whole;
}

/* Every second argument begins an element behind a multiple of any vector, unless it is declared aligned. */
static size_t margin_of(const fuzz_data *data, int i)
{
    const ir_buffer *buffer = data->tree->params[i].buffer;

    return MARGIN + (i % 2 && buffer->align == 0 ? (size_t)base_dtype_bytes(buffer->dtype) : 0);
}

/* As fuzz_call, with arguments in the memory of a device. */
bool fuzz_call_on(tec_context *cx, tec_device *device, tec_function *function, fuzz_data *data)
{
    guarded *g = base_array(cx, guarded, data->n);
    framed *fr = base_array(cx, framed, data->n);
    DLTensor *tensors = base_array(cx, DLTensor, data->n), **args = base_array(cx, DLTensor *, data->n);
    tec_error err = {0};
    bool good = true, whole = true;

    data->fault = NULL;
    for (int i = 0; i < data->n; i++) {
        args[i] = &tensors[i];
        good = good && open_argument(cx, data, i, &g[i], &tensors[i]) &&
               (!data->tree->params[i].buffer ||
                open_framed(cx, &fr[i], device, &g[i], margin_of(data, i), &tensors[i], &err));
    }
    good = good && tec_function_call(function, args, data->n, &err);
    for (int i = 0; i < data->n && good; i++)
        whole = (!fr[i].array || close_framed(&fr[i], &g[i], &err)) && whole;
    if (!good || err.status)
        data->fault = err.status ? base_strdup(cx, err.text) : "there is no memory for the arguments";
    else if (!whole)
        data->fault = "it writes beside an argument";
    else
        check_outputs(cx, data, g);
    for (int i = 0; i < data->n; i++) {
        tec_array_free(fr[i].array);
        if (g[i].map && g[i].map != MAP_FAILED)
            munmap(g[i].map, g[i].mapped);
    }
    return !data->fault;
}
