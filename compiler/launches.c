/* compiler/launches.c -- lists of launches as data of the module.
 *
 * A function for a device has no host code. The runtime walks its list: launch kernel "f_0" on a grid of
 * ceildiv(n, 64) x 1 x 1 blocks of 64 x 1 x 1 threads with arguments A, B and n, unless its guard says that
 * there is nothing to do. Grids and guards are dimension code over the symbols of the function.
 */
#include "compiler/launches.h"

#include "ir/reason/facts.h"
#include "lower/launches.h"

typedef struct {
    tec_context *cx;
    const ir_facts *facts;
    const ir_expr **symbols; /* of the program, then a variable or NULL for each loop around launches */
    int n_symbols;
} describer;

static bool dim(describer *d, const ir_expr *e, rt_dim *out)
{
    return comp_dim(d->cx, ir_simplify(d->facts, e), d->symbols, d->n_symbols, out);
}

static bool describe_arg(describer *d, const lower_arg *a, rt_arg_desc *out)
{
    *out = (rt_arg_desc){.kind = a->param >= 0 ? RT_ARG_PARAM
                                 : a->buffer   ? RT_ARG_WORKSPACE
                                               : RT_ARG_SIZE,
                         .index = a->param >= 0 ? a->param : 0};
    return a->param >= 0 || dim(d, a->buffer ? a->offset : a->scalar, &out->value);
}

/* The kernel's name, its grid as dimension code, its block of threads as constants, and its arguments in
 * order. */
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

/* Launch `number` may use the variables of the loops around it, among the first n. Loops that lie apart may
 * have
 * one variable, so the others have none meanwhile. */
static void enter(describer *d, const base_vec *loops, int n, int number)
{
    const ir_expr **own = d->symbols + d->n_symbols - loops->n;

    for (int i = 0; i < loops->n; i++) {
        const lower_loop *l = loops->at[i];

        own[i] = i < n && l->first <= number && number < l->end ? l->var : NULL;
    }
}

/* The loops around launches; their variables become symbols behind the program's. */
static bool describe_loops(describer *d, const ir_program *tree, const base_vec *loops, rt_function_desc *f)
{
    rt_loop_desc *out = base_array(d->cx, rt_loop_desc, loops->n);

    d->n_symbols = tree->n_symbols + loops->n;
    d->symbols = base_array(d->cx, const ir_expr *, d->n_symbols);
    for (int i = 0; i < tree->n_symbols; i++)
        d->symbols[i] = tree->symbols[i];
    for (int i = 0; i < loops->n; i++) {
        const lower_loop *l = loops->at[i];

        out[i] = (rt_loop_desc){.first = l->first, .end = l->end};
        enter(d, loops, i, l->first);
        if (!dim(d, l->min, &out[i].min) || !dim(d, l->extent, &out[i].extent))
            return false;
    }
    f->loops = out;
    f->n_loops = loops->n;
    return true;
}

/* Replaces the function's symbol by its list of launches. */
bool comp_describe_launches(tec_context *cx, const ir_program *tree, const ir_program *lowered,
                            const char *symbol, const char *device, rt_function_desc *f)
{
    describer d = {.cx = cx, .facts = ir_facts_of_program(cx, tree)};
    base_vec launches = {0}, loops = {0};

    if (!lower_launches(cx, lowered, &launches, &loops) || !describe_loops(&d, tree, &loops, f))
        return false;
    rt_launch_desc *out = base_array(cx, rt_launch_desc, launches.n);
    for (int i = 0; i < launches.n; i++) {
        enter(&d, &loops, loops.n, i);
        if (!describe_launch(&d, launches.at[i], symbol, &out[i]))
            return false;
    }
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

/* One piece of device code for the whole module, with a table of its kernels. */
bool comp_describe_device(tec_context *cx, comp_code *code)
{
    rt_code_desc *piece = base_new(cx, rt_code_desc);
    size_t size;
    int n = 0, n_codes;
    const target_code **codes = comp_codes(cx, code, true, &n_codes);

    for (int k = 0; k < code->n; k++)
        n += code->functions[k].n_launches;
    if (n_codes == 0)
        return true;
    rt_kernel_desc *kernels = base_array(cx, rt_kernel_desc, n);
    for (int k = 0, at = 0; k < code->n; k++)
        for (int i = 0; i < code->functions[k].n_launches; i++)
            kernels[at++] = describe_kernel(cx, &code->functions[k], &code->functions[k].launches[i]);
    *piece = (rt_code_desc){.target = code->desc.target,
                            .device = code->codegen->device,
                            .format = (rt_code_format)code->codegen->device_format,
                            .kernels = kernels,
                            .n_kernels = n,
                            .bytes = code->codegen->link(cx, codes, n_codes, &size)};
    piece->size = size;
    code->desc.codes = piece;
    code->desc.n_codes = 1;
    return piece->bytes != NULL;
}
