/* compiler/launches.c -- lists of launches as data of the module. */
#include "compiler/launches.h"

#include "ir/facts.h"
#include "lower/launches.h"

typedef struct {
    tec_context *cx;
    const ir_program *tree;
    const ir_facts *facts;
} describer;

static bool dim(describer *d, const ir_expr *e, rt_dim *out)
{
    return comp_dim(d->cx, ir_simplify(d->facts, e), d->tree->symbols, d->tree->n_symbols, out);
}

static bool describe_arg(describer *d, const lower_arg *a, rt_arg_desc *out)
{
    *out = (rt_arg_desc){.kind = a->param >= 0 ? RT_ARG_PARAM
                                 : a->buffer   ? RT_ARG_WORKSPACE
                                               : RT_ARG_SIZE,
                         .index = a->param >= 0 ? a->param : 0};
    return a->param >= 0 || dim(d, a->buffer ? a->offset : a->scalar, &out->value);
}

static bool describe_launch(describer *d, const lower_launch *l, const char *symbol, rt_launch_desc *out)
{
    rt_dim *grid = base_array(d->cx, rt_dim, LOWER_AXES);
    rt_arg_desc *args = base_array(d->cx, rt_arg_desc, l->n_args);

    *out = (rt_launch_desc){.kernel = base_format(d->cx, "%s_%d", symbol, l->number),
                            .grid = grid,
                            .shared_bytes = l->shared_bytes,
                            .args = args,
                            .n_args = l->n_args};
    if (l->guard && !dim(d, l->guard, &out->guard))
        return false;
    for (int a = 0; a < LOWER_AXES; a++) {
        out->block[a] = l->block[a];
        if (!dim(d, l->grid[a], &grid[a]))
            return false;
    }
    for (int i = 0; i < l->n_args; i++)
        if (!describe_arg(d, &l->args[i], &args[i]))
            return false;
    return true;
}

bool comp_describe_launches(tec_context *cx, const ir_program *tree, const ir_program *lowered,
                            const char *symbol, const char *device, rt_function_desc *f)
{
    describer d = {.cx = cx, .tree = tree, .facts = ir_facts_of_program(cx, tree)};
    base_vec launches = {0};

    if (!lower_launches(cx, lowered, &launches))
        return false;
    rt_launch_desc *out = base_array(cx, rt_launch_desc, launches.n);
    for (int i = 0; i < launches.n; i++)
        if (!describe_launch(&d, launches.at[i], symbol, &out[i]))
            return false;
    f->symbol = NULL;
    f->device = device;
    f->launches = out;
    f->n_launches = launches.n;
    return true;
}

/* ---- code ---- */

static rt_kernel_desc describe_kernel(tec_context *cx, const rt_function_desc *f, const rt_launch_desc *l)
{
    int32_t *sizes = base_array(cx, int32_t, l->n_args);

    for (int i = 0; i < l->n_args; i++) {
        const rt_arg_desc *a = &l->args[i];
        bool scalar = a->kind == RT_ARG_PARAM && f->params[a->index].kind == RT_PARAM_SCALAR;

        sizes[i] = scalar                   ? (int32_t)base_dtype_bytes(f->params[a->index].dtype)
                   : a->kind == RT_ARG_SIZE ? 8
                                            : 0;
    }
    return (rt_kernel_desc){.name = l->kernel, .args = sizes, .n_args = l->n_args};
}

bool comp_describe_device(tec_context *cx, comp_code *code)
{
    rt_code_desc *piece = base_new(cx, rt_code_desc);
    size_t size;
    int n = 0;

    for (int k = 0; k < code->n; k++)
        n += code->functions[k].n_launches;
    rt_kernel_desc *kernels = base_array(cx, rt_kernel_desc, n);
    for (int k = 0, at = 0; k < code->n; k++)
        for (int i = 0; i < code->functions[k].n_launches; i++)
            kernels[at++] = describe_kernel(cx, &code->functions[k], &code->functions[k].launches[i]);
    *piece = (rt_code_desc){.target = code->desc.target,
                            .device = code->codegen->device,
                            .format = RT_CODE_OPENCL_C,
                            .kernels = kernels,
                            .n_kernels = n,
                            .bytes = code->codegen->link(cx, code->codes, code->n, &size)};
    piece->size = size;
    code->desc.codes = piece;
    code->desc.n_codes = 1;
    return piece->bytes != NULL;
}
