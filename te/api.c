/* te/api.c -- the public face of te/: include/tec/te.h over te/te.h. */
#include "tec/te.h"

#include "base/guard.h"
#include "te/element.h"
#include "te/te.h"
#include "te/text.h"

/* A dtype of the public header as the one used inside; all are listed, so that the compiler reports a missing
 * one. */
base_dtype te_element(tec_dtype dtype)
{
    switch (dtype) {
    case TEC_BOOL: return BASE_BOOL;
    case TEC_I8: return BASE_I8;
    case TEC_I16: return BASE_I16;
    case TEC_I32: return BASE_I32;
    case TEC_I64: return BASE_I64;
    case TEC_U8: return BASE_U8;
    case TEC_U16: return BASE_U16;
    case TEC_U32: return BASE_U32;
    case TEC_U64: return BASE_U64;
    case TEC_F16: return BASE_F16;
    case TEC_BF16: return BASE_BF16;
    case TEC_F32: return BASE_F32;
    case TEC_F64: return BASE_F64;
    }
    return BASE_F32;
}

tec_def *tec_here_def(tec_def *def, const char *file, int line)
{
    if (def)
        tec_here(def->cx, file, line);
    return def;
}

tec_tensor *tec_here_tensor(tec_tensor *tensor, const char *file, int line)
{
    if (tensor)
        tec_here(tensor->def->cx, file, line);
    return tensor;
}

tec_scan *tec_here_scan(tec_scan *scan, const char *file, int line)
{
    if (scan)
        tec_here(scan->def->cx, file, line);
    return scan;
}

tec_def *(tec_def_new)(tec_context *cx, const char *name)
{
    BASE_GUARD(cx, NULL);
    return te_def_new(cx, name);
}

tec_def *tec_def_parse(tec_context *cx, const char *file, const char *text, int index)
{
    BASE_GUARD(cx, NULL);
    if (!text)
        return base_fail(cx, TEC_INVALID, base_where(cx), "expected the text of definitions, found NULL");
    te_file *f = te_parse(cx, file ? file : "", text);

    if (f && (index < 0 || index >= f->defs.n))
        return base_fail(cx, TEC_INVALID, (base_loc){.file = file},
                         "there is no definition %d: the text holds %d", index, f->defs.n);
    return f ? f->defs.at[index] : NULL;
}

const char *tec_def_text(tec_context *cx, const tec_def *def)
{
    BASE_GUARD(cx, NULL);
    return te_text(cx, def);
}

const tec_expr *tec_symbol(tec_def *def, const char *name)
{
    BASE_GUARD(def ? def->cx : NULL, NULL);
    return te_symbol(def, name);
}

void(tec_fact)(tec_def *def, const tec_expr *condition)
{
    BASE_GUARD(def ? def->cx : NULL, );
    te_fact(def, condition);
}

tec_tensor *tec_input_n(tec_def *def, const char *name, tec_dtype dtype, const tec_expr *const *shape, int n)
{
    BASE_GUARD(def ? def->cx : NULL, NULL);
    return te_input(def, name, te_element(dtype), shape, n);
}

const tec_expr *(tec_scalar)(tec_def *def, const char *name, tec_dtype dtype)
{
    BASE_GUARD(def ? def->cx : NULL, NULL);
    return te_scalar(def, name, te_element(dtype));
}

void(tec_output)(tec_def *def, tec_tensor *tensor)
{
    BASE_GUARD(def ? def->cx : NULL, );
    te_output(def, tensor);
}

const tec_expr *(tec_axis)(tec_context *cx, const char *name, const tec_expr *extent)
{
    BASE_GUARD(cx, NULL);
    return te_axis(cx, name, extent);
}

const tec_expr *(tec_reduce_axis)(tec_context *cx, const char *name, const tec_expr *extent)
{
    BASE_GUARD(cx, NULL);
    return te_reduce_axis(cx, name, extent);
}

tec_tensor *tec_compute_n(tec_def *def, const char *name, const tec_expr *body, const tec_expr *const *axis,
                          int n)
{
    BASE_GUARD(def ? def->cx : NULL, NULL);
    return te_compute(def, name, axis, n, body);
}

tec_scan *(tec_scan_new)(tec_def *def, const char *name, const tec_expr *time)
{
    BASE_GUARD(def ? def->cx : NULL, NULL);
    return te_scan_new(def, name, time);
}

tec_tensor *tec_scan_state_n(tec_scan *scan, const char *name, const tec_expr *body,
                             const tec_expr *const *axis, int n)
{
    BASE_GUARD(scan ? scan->def->cx : NULL, NULL);
    return te_scan_state(scan, name, axis, n, body);
}

tec_tensor *tec_scan_step_n(tec_scan *scan, const char *name, const tec_expr *body,
                            const tec_expr *const *axis, int n)
{
    BASE_GUARD(scan ? scan->def->cx : NULL, NULL);
    return te_scan_step(scan, name, axis, n, body);
}

bool(tec_scan_close)(tec_scan *scan)
{
    BASE_GUARD(scan ? scan->def->cx : NULL, false);
    return te_scan_close(scan);
}

/* The public struct of an extern call, field by field into the one used inside. */
bool(tec_extern)(tec_def *def, const char *name, const tec_extern_call *call, tec_tensor **out)
{
    BASE_GUARD(def ? def->cx : NULL, false);
    if (!def)
        return false;
    te_extern_output *output = base_array(def->cx, te_extern_output, call->n_outputs);

    for (int i = 0; i < call->n_outputs; i++) {
        const tec_extern_output *o = &call->output[i];

        output[i] =
            (te_extern_output){.name = o->name, .dtype = te_element(o->dtype), .shape = o->shape, .n = o->n};
    }
    return te_extern(def,
                     &(te_call){.name = name,
                                .function = call->function,
                                .input = call->input,
                                .n_inputs = call->n_inputs,
                                .output = output,
                                .n_outputs = call->n_outputs,
                                .arg = call->arg,
                                .n_args = call->n_args,
                                .meaning = call->meaning},
                     out);
}

tec_intrinsics *tec_intrinsics_parse(tec_context *cx, const char *file, const char *text)
{
    BASE_GUARD(cx, NULL);
    if (!text)
        return base_fail(cx, TEC_INVALID, base_where(cx), "expected the text of intrinsics, found NULL");
    return te_intrinsics_parse(cx, file ? file : "", text);
}

int tec_intrinsics_count(const tec_intrinsics *intrinsics)
{
    return intrinsics ? intrinsics->list.n : 0;
}

const char *tec_intrinsics_text(tec_context *cx, const tec_intrinsics *intrinsics)
{
    BASE_GUARD(cx, NULL);
    base_text all = {0};

    if (!intrinsics)
        return NULL;
    for (int i = 0; i < intrinsics->list.n; i++)
        base_add(cx, &all, te_intrinsic_text(cx, intrinsics->list.at[i]));
    return base_text_str(cx, &all);
}

const tec_expr *tec_int(tec_context *cx, int64_t value)
{
    BASE_GUARD(cx, NULL);
    return ir_int(cx, value);
}

const tec_expr *tec_const(tec_context *cx, tec_dtype dtype, double value)
{
    BASE_GUARD(cx, NULL);
    return ir_imm(cx, te_element(dtype), value);
}

const tec_expr *(tec_cast)(tec_context *cx, tec_dtype dtype, const tec_expr *expr)
{
    BASE_GUARD(cx, NULL);
    return ir_cast(cx, te_element(dtype), expr);
}

const tec_expr *tec_at_n(tec_tensor *tensor, const tec_expr *const *index, int n)
{
    BASE_GUARD(tensor ? tensor->def->cx : NULL, NULL);
    return te_read(tensor, index, n);
}

const tec_expr *tec_reduce_n(tec_context *cx, const char *combiner, const tec_expr *expr,
                             const tec_expr *const *axis, int n)
{
    BASE_GUARD(cx, NULL);
    return te_reduce(cx, combiner, expr, axis, n);
}

#define X(name)                                                                                              \
    const tec_expr *(tec_##name)(tec_context * cx, const tec_expr *a)                                        \
    {                                                                                                        \
        BASE_GUARD(cx, NULL);                                                                                \
        return ir_##name(cx, a);                                                                             \
    }
TEC_UNARY_LIST(X)
#undef X
#define X(name)                                                                                              \
    const tec_expr *(tec_##name)(tec_context * cx, const tec_expr *a, const tec_expr *b)                     \
    {                                                                                                        \
        BASE_GUARD(cx, NULL);                                                                                \
        return ir_##name(cx, a, b);                                                                          \
    }
TEC_BINARY_LIST(X)
#undef X
#define X(name)                                                                                              \
    const tec_expr *(tec_##name)(tec_context * cx, const tec_expr *a, const tec_expr *b, const tec_expr *c)  \
    {                                                                                                        \
        BASE_GUARD(cx, NULL);                                                                                \
        return ir_##name(cx, a, b, c);                                                                       \
    }
TEC_TERNARY_LIST(X)
#undef X
