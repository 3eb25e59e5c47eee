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
static bool open_guarded(guarded *g, size_t bytes, size_t align, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (bytes + MARGIN + page - 1) / page * page;

    g->mapped = inner + 2 * page;
    g->bytes = bytes;
    g->map = mmap(NULL, g->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->map == MAP_FAILED)
        return false;
    if (mprotect(g->map + page, inner, PROT_READ | PROT_WRITE) != 0)
        return false;
    memset(g->map + page, FILL, inner);
    g->data = at_end ? g->map + page + inner - bytes : g->map + page;
    g->margin_at = (size_t)((at_end ? g->data - MARGIN : g->data + bytes) - g->map);
    return (size_t)g->data % align == 0;
}

static bool margin_is_whole(const guarded *g)
{
    for (int i = 0; i < MARGIN; i++)
        if (g->map[g->margin_at + (size_t)i] != FILL)
            return false;
    return true;
}

/* The extents of a buffer for the sizes of this set. */
static bool shape_of(tec_context *cx, const fuzz_data *d, const ir_buffer *b, int64_t *shape)
{
    base_map vars = {0};

    for (int i = 0; i < d->tree->n_symbols; i++) {
        ir_value *v = base_new(cx, ir_value);

        v->i = d->sizes.value[i];
        base_map_put(cx, &vars, d->tree->symbols[i], v);
    }
    for (int k = 0; b && k < b->n; k++) {
        ir_value v;

        if (!ir_eval(cx, b->shape[k], &vars, &v))
            return false;
        shape[k] = v.i;
    }
    return true;
}

/* An argument with its data against a guard page: behind it three times out of four, before it otherwise. */
static bool open_argument(tec_context *cx, const fuzz_data *d, int i, guarded *g, DLTensor *t)
{
    const ir_param *p = &d->tree->params[i];
    base_dtype dtype = p->buffer ? p->buffer->dtype : p->scalar->dtype;
    int64_t *shape = base_array(cx, int64_t, IR_MAX_DIMS);
    size_t bytes = (size_t)(d->elements[i] * base_dtype_bytes(dtype));

    if (!shape_of(cx, d, p->buffer, shape) ||
        !open_guarded(g, bytes, (size_t)base_dtype_bytes(dtype), (d->seed + (uint64_t)i) % 4 != 0))
        return false;
    if (d->input[i])
        memcpy(g->data, d->input[i], bytes);
    *t = (DLTensor){.data = g->data,
                    .device = {kDLCPU, 0},
                    .ndim = p->buffer ? p->buffer->n : 0,
                    .dtype = dtype,
                    .shape = shape};
    return true;
}

/* Sets d->fault to the first thing that is wrong: a write beside an argument, to an input, or a wrong result.
 */
static void check_outputs(tec_context *cx, fuzz_data *d, const guarded *g)
{
    for (int i = 0; i < d->n && !d->fault; i++) {
        const ir_param *p = &d->tree->params[i];

        if (!margin_is_whole(&g[i]))
            d->fault =
                base_format(cx, "it writes beside '%s'", p->buffer ? p->buffer->name : p->scalar->var.name);
        else if (p->output && !d->expected[i])
            d->fault = "the call was accepted"; /* of sizes that break a fact */
        else if (p->output)
            d->fault = fuzz_difference(cx, p->buffer, d->elements[i], g[i].data, d->expected[i]);
        else if (memcmp(g[i].data, d->input[i], g[i].bytes) != 0)
            d->fault = base_format(cx, "it changes its input '%s'",
                                   p->buffer ? p->buffer->name : p->scalar->var.name);
    }
}

/* One call of compiled code, here or elsewhere. */
typedef struct {
    tec_function *f;
    const fuzz_elsewhere *there; /* NULL: f is called */
    int threads;
} callee;

static bool call_arrays(const callee *c, DLTensor *const *args, int n, tec_error *err)
{
    return c->there ? c->there->call(c->there->user, args, n, c->threads, err)
                    : tec_function_call(c->f, args, n, err);
}

/* Calls once; false with d->fault. The guards are gone afterwards. */
static bool call_guarded(tec_context *cx, const callee *c, fuzz_data *d)
{
    guarded *g = base_array(cx, guarded, d->n);
    DLTensor *tensors = base_array(cx, DLTensor, d->n), **args = base_array(cx, DLTensor *, d->n);
    tec_error err = {0};
    bool good = true;

    d->fault = NULL;
    for (int i = 0; i < d->n; i++) {
        good = good && open_argument(cx, d, i, &g[i], &tensors[i]);
        args[i] = &tensors[i];
    }
    if (!good)
        d->fault = "there is no memory for the arguments";
    else if (!call_arrays(c, args, d->n, &err))
        d->fault = base_strdup(cx, err.text);
    else
        check_outputs(cx, d, g);
    for (int i = 0; i < d->n; i++)
        if (g[i].map && g[i].map != MAP_FAILED)
            munmap(g[i].map, g[i].mapped);
    return !d->fault;
}

bool fuzz_call(tec_context *cx, tec_function *f, fuzz_data *d)
{
    return call_guarded(cx, &(callee){.f = f}, d);
}

bool fuzz_call_elsewhere(tec_context *cx, const fuzz_elsewhere *there, int threads, fuzz_data *d)
{
    return call_guarded(cx, &(callee){.there = there, .threads = threads}, d);
}

/* ---- on a device ---- */

/* A buffer of the device: margin, the bytes of an argument, margin. */
typedef struct {
    tec_array *array;
    unsigned char *bytes; /* what was put there, and later what is there */
    size_t size;
    DLTensor tensor; /* over `bytes` */
    int64_t shape[1];
} framed;

/* In the memory of a device there are no guard pages, so the argument lies between two margins of known
 * bytes. */
static bool open_framed(tec_context *cx, framed *fr, tec_device *device, const guarded *g, DLTensor *t,
                        tec_error *err)
{
    fr->size = g->bytes + 2 * (size_t)MARGIN;
    fr->bytes = base_alloc(cx, fr->size);
    memset(fr->bytes, FILL, fr->size);
    memcpy(fr->bytes + MARGIN, g->data, g->bytes);
    fr->shape[0] = (int64_t)fr->size;
    fr->tensor = (DLTensor){
        .data = fr->bytes, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLUInt, 8, 1}, .shape = fr->shape};
    fr->array = tec_array_new_on(device, fr->tensor.dtype, 1, fr->shape, err);
    if (!fr->array || !tec_tensor_copy(tec_array_tensor(fr->array), &fr->tensor, err))
        return false;
    t->data = tec_array_tensor(fr->array)->data;
    t->device = tec_array_tensor(fr->array)->device;
    t->byte_offset = MARGIN;
    return true;
}

/* What the device holds now, to the host's argument; false where a margin has changed. */
static bool close_framed(framed *fr, const guarded *g, tec_error *err)
{
    bool whole = tec_tensor_copy(&fr->tensor, tec_array_tensor(fr->array), err);

    for (int i = 0; i < MARGIN && whole; i++)
        whole = fr->bytes[i] == FILL && fr->bytes[fr->size - 1 - (size_t)i] == FILL;
    memcpy(g->data, fr->bytes + MARGIN, g->bytes);
    return whole;
}

/* As fuzz_call, with arguments in the memory of a device. */
bool fuzz_call_on(tec_context *cx, tec_device *device, tec_function *f, fuzz_data *d)
{
    guarded *g = base_array(cx, guarded, d->n);
    framed *fr = base_array(cx, framed, d->n);
    DLTensor *tensors = base_array(cx, DLTensor, d->n), **args = base_array(cx, DLTensor *, d->n);
    tec_error err = {0};
    bool good = true, whole = true;

    d->fault = NULL;
    for (int i = 0; i < d->n; i++) {
        args[i] = &tensors[i];
        good = good && open_argument(cx, d, i, &g[i], &tensors[i]) &&
               (!d->tree->params[i].buffer || open_framed(cx, &fr[i], device, &g[i], &tensors[i], &err));
    }
    good = good && tec_function_call(f, args, d->n, &err);
    for (int i = 0; i < d->n && good; i++)
        whole = (!fr[i].array || close_framed(&fr[i], &g[i], &err)) && whole;
    if (!good || err.status)
        d->fault = err.status ? base_strdup(cx, err.text) : "there is no memory for the arguments";
    else if (!whole)
        d->fault = "it writes beside an argument";
    else
        check_outputs(cx, d, g);
    for (int i = 0; i < d->n; i++) {
        tec_array_free(fr[i].array);
        if (g[i].map && g[i].map != MAP_FAILED)
            munmap(g[i].map, g[i].mapped);
    }
    return !d->fault;
}
