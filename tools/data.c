/* tools/data.c -- see data.h. */
#include "tools/data.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/onnx/onnx.h"
#include "tools/args.h"

/* ---- making ---- */

/* Zeroed and aligned to 64 bytes, as kernels may ask for; in the context. */
DLTensor *tool_new_tensor(tec_context *cx, DLDataType dtype, int ndim, const int64_t *shape)
{
    DLTensor *x = base_new(cx, DLTensor);
    int64_t *dims = base_array(cx, int64_t, ndim + 1);

    for (int i = 0; i < ndim; i++)
        dims[i] = shape[i];
    *x = (DLTensor){.device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = dims};
    if (tec_tensor_bytes(x) < 0)
        return base_fail(cx, TEC_INVALID, (base_loc){0}, "a tensor of %s is larger than the address space",
                         tec_tensor_text(x, (char[256]){0}, 256));
    char *data = base_alloc(cx, (size_t)tec_tensor_bytes(x) + 64);
    x->data = (void *)(((uintptr_t)data + 63) & ~(uintptr_t)63);
    return x;
}

/* ---- files ---- */

/* For "-" a temporary file: modules are written in pieces and in place, which a pipe does not allow. */
const char *tool_begin_output(tec_context *cx, const char *path)
{
    char *name = base_strdup(cx, "/tmp/tec-XXXXXX");
    int fd;

    if (strcmp(path, "-") != 0)
        return path;
    fd = mkstemp(name);
    if (fd < 0)
        return base_fail(cx, TEC_IO, (base_loc){0}, "%s: %s", name, strerror(errno));
    close(fd);
    return name;
}

/* Copies the temporary file out and removes it. */
bool tool_finish_output(tec_context *cx, const char *path, const char *written)
{
    size_t size;
    char *bytes;

    if (strcmp(path, "-") != 0)
        return true;
    bytes = base_read_file(cx, written, &size);
    unlink(written);
    if (!bytes)
        return false;
    fwrite(bytes, 1, size, stdout); /* what does not arrive, the end of the program reports */
    return true;
}

static void take_error(tec_context *cx, const tec_error *err)
{
    base_fail(cx, err->status, (base_loc){0}, "%s", err->text);
}

/* The array of the file as a tensor in the context. */
static DLTensor *read_npy(tec_context *cx, const char *path)
{
    tec_error err = {0};
    tec_array *array = tec_npy_read(path, &err);
    DLTensor *t = NULL;

    if (array) {
        const DLTensor *from = tec_array_tensor(array);

        t = tool_new_tensor(cx, from->dtype, from->ndim, from->shape);
        if (!tec_tensor_copy(t, from, &err))
            t = NULL;
    }
    if (!t)
        take_error(cx, &err);
    tec_array_free(array);
    return t;
}

/* Its dimensions are constants. */
static DLTensor *read_pb(tec_context *cx, const char *path)
{
    const op_constant *constant = onnx_read_tensor(cx, path, NULL);

    if (!constant)
        return NULL;
    int64_t *shape = base_array(cx, int64_t, constant->type.n);
    for (int i = 0; i < constant->type.n; i++)
        ir_is_int(constant->type.dim[i], &shape[i]);
    DLTensor *t = tool_new_tensor(cx, constant->type.dtype, constant->type.n, shape);
    if (constant->bytes)
        memcpy(t->data, constant->data, (size_t)constant->bytes);
    return t;
}

DLTensor *tool_read(tec_context *cx, const char *path)
{
    if (base_ends_with(path, ".npy"))
        return read_npy(cx, path);
    if (base_ends_with(path, ".pb"))
        return read_pb(cx, path);
    return base_fail(cx, TEC_INVALID, (base_loc){.file = path}, "expected a .npy or .pb file");
}

/* As .pb or .npy, by the ending of the path. */
bool tool_write(tec_context *cx, const char *path, const DLTensor *tensor)
{
    tec_error err = {0};

    if (base_ends_with(path, ".pb")) {
        const ir_expr **dim = base_array(cx, const ir_expr *, tensor->ndim);

        for (int i = 0; i < tensor->ndim; i++)
            dim[i] = ir_int(cx, tensor->shape[i]);
        op_constant c = {.type = {tensor->dtype, tensor->ndim, dim},
                         .data = (char *)tensor->data + tensor->byte_offset,
                         .bytes = tec_tensor_bytes(tensor)};
        return onnx_write_tensor(cx, path, "", &c);
    }
    if (tec_npy_write(path, tensor, &err))
        return true;
    take_error(cx, &err);
    return false;
}

/* ---- what commands share ---- */

int tool_fail(const char *command, const tec_context *cx)
{
    fprintf(stderr, "%s %s: %s\n", program_invocation_short_name, command,
            tec_context_error(cx) ? tec_context_error(cx) : "failed without a reason");
    return TOOL_FAILED;
}

int tool_fail_run(const char *command, const tec_error *err)
{
    fprintf(stderr, "%s %s: %s\n", program_invocation_short_name, command, err->text);
    return TOOL_FAILED;
}

/* --threads takes the place of the number of cores in the target. */
const target *tool_target(tec_context *cx, const char *text, int64_t threads)
{
    const target *t = target_parse(cx, text);

    if (!t || threads <= 0)
        return t;
    target *with = base_copy(cx, t, sizeof *t);
    with->num_cores = (int)threads;
    return with;
}

/* Held signals come when they are no longer held. */
void tool_hold_interrupts(bool hold)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Four digits or so, in the unit that fits. */
const char *tool_seconds(double seconds, char *buffer, size_t size)
{
    if (seconds < 1e-6)
        snprintf(buffer, size, "%.0f ns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(buffer, size, "%.2f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(buffer, size, "%.3f ms", seconds * 1e3);
    else
        snprintf(buffer, size, "%.3f s", seconds);
    return buffer;
}

/* Names of tensors may hold signs that a file's name may not. */
bool tool_write_output(tec_context *cx, const char *dir, const char *format, const char *name,
                       const DLTensor *tensor)
{
    char *file = base_strdup(cx, name);

    for (char *p = file; *p; p++)
        if (*p == '/' || *p == ':')
            *p = '_';
    return tool_write(cx, base_format(cx, "%s/%s.%s", dir, file, format), tensor);
}
