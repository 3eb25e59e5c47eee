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

static bool dim(describer *self, const ir_expr *expr, rt_dim *out)
{
    return comp_dim(self->cx, ir_simplify(self->facts, expr), self->symbols, self->n_symbols, out);
}

static bool describe_arg(describer *self, const lower_arg *arg, rt_arg_desc *out)
{
    *out = (rt_arg_desc){.kind = arg->param >= 0 ? RT_ARG_PARAM
                                 : arg->buffer   ? RT_ARG_WORKSPACE
                                                 : RT_ARG_SIZE,
                         .index = arg->param >= 0 ? arg->param : 0};
    return arg->param >= 0 || dim(self, arg->buffer ? arg->offset : arg->scalar, &out->value);
}

/* The kernel's name, its grid as dimension code, its block of threads as constants, and its arguments in
 * order. */
static bool describe_launch(describer *self, const lower_launch *launch, const char *symbol,
                            rt_launch_desc *out)
{
    rt_dim *grid = base_array(self->cx, rt_dim, LOWER_AXES);
    rt_arg_desc *args = base_array(self->cx, rt_arg_desc, launch->n_args);

    *out = (rt_launch_desc){.kernel = base_format(self->cx, "%s_%d", symbol, launch->number),
                            .grid = grid,
                            .shared_bytes = launch->shared_bytes,
                            .args = args,
                            .n_args = launch->n_args};
    if (launch->guard && !dim(self, launch->guard, &out->guard))
        return false;
    for (int a = 0; a < LOWER_AXES; a++) {
        out->block[a] = launch->block[a];
        if (!dim(self, launch->grid[a], &grid[a]))
            return false;
    }
    for (int i = 0; i < launch->n_args; i++)
        if (!describe_arg(self, &launch->args[i], &args[i]))
            return false;
    return true;
}

/* Launch `number` may use the variables of the loops around it, among the first n. Loops that lie apart may
 * have one variable, so the others have none meanwhile. */
static void enter(describer *self, const base_vec *loops, int n, int number)
{
    const ir_expr **own = self->symbols + self->n_symbols - loops->n;

    for (int i = 0; i < loops->n; i++) {
        const lower_loop *l = loops->at[i];

        own[i] = i < n && l->first <= number && number < l->end ? l->var : NULL;
    }
}

/* The loops around launches; their variables become symbols behind the program's. */
static bool describe_loops(describer *self, const ir_program *tree, const base_vec *loops,
                           rt_function_desc *function)
{
    rt_loop_desc *out = base_array(self->cx, rt_loop_desc, loops->n);

    self->n_symbols = tree->n_symbols + loops->n;
    self->symbols = base_array(self->cx, const ir_expr *, self->n_symbols);
    for (int i = 0; i < tree->n_symbols; i++)
        self->symbols[i] = tree->symbols[i];
    for (int i = 0; i < loops->n; i++) {
        const lower_loop *loop = loops->at[i];

        out[i] = (rt_loop_desc){.first = loop->first, .end = loop->end};
        enter(self, loops, i, loop->first);
        if (!dim(self, loop->min, &out[i].min) || !dim(self, loop->extent, &out[i].extent))
            return false;
    }
    function->loops = out;
    function->n_loops = loops->n;
    return true;
}

/* Replaces the function's symbol by its list of launches. */
bool comp_describe_launches(tec_context *cx, const ir_program *tree, const ir_program *lowered,
                            const char *symbol, const char *device, rt_function_desc *function)
{
    describer d = {.cx = cx, .facts = ir_facts_of_program(cx, tree)};
    base_vec launches = {0}, loops = {0};

    if (!lower_launches(cx, lowered, &launches, &loops) || !describe_loops(&d, tree, &loops, function))
        return false;
    rt_launch_desc *out = base_array(cx, rt_launch_desc, launches.n);
    for (int i = 0; i < launches.n; i++) {
        enter(&d, &loops, loops.n, i);
        if (!describe_launch(&d, launches.at[i], symbol, &out[i]))
            return false;
    }
    function->symbol = NULL;
    function->device = device;
    function->launches = out;
    function->n_launches = launches.n;
    return true;
}

/* ---- code ---- */

/* How the driver is to pass the arguments of a launch's kernel: the size of each scalar in bytes, 0 for
 * memory. */
static rt_kernel_desc describe_kernel(tec_context *cx, const rt_function_desc *function,
                                      const rt_launch_desc *launch)
{
    int32_t *sizes = base_array(cx, int32_t, launch->n_args);

    for (int i = 0; i < launch->n_args; i++) {
        const rt_arg_desc *arg = &launch->args[i];
        bool scalar = arg->kind == RT_ARG_PARAM && function->params[arg->index].kind == RT_PARAM_SCALAR;

        sizes[i] = scalar                     ? (int32_t)base_dtype_bytes(function->params[arg->index].dtype)
                   : arg->kind == RT_ARG_SIZE ? 8
                                              : 0;
    }
    return (rt_kernel_desc){.name = launch->kernel, .args = sizes, .n_args = launch->n_args};
}

/* The code of all units for one architecture; false with an error. `later` (NULL: not wanted) becomes the
 * piece for devices that came after it, whose bytes are NULL if there is none. */
static bool describe_piece(tec_context *cx, const comp_code *code, const target *machine, rt_code_desc *piece,
                           rt_code_desc *later)
{
    int n;
    const target_code **codes = comp_codes(cx, code, true, &n);
    size_t size = 0;

    for (int k = 0; k < n; k++) {
        target_code *own = base_copy(cx, codes[k], sizeof *own);

        own->target = machine;
        codes[k] = own;
    }
    piece->target = target_text(cx, machine);
    target_later l = {0};
    piece->bytes = later ? code->codegen->link_with_later(cx, codes, n, &size, &l)
                         : code->codegen->link(cx, codes, n, &size);
    piece->size = size;
    if (later) {
        later->target = l.target;
        later->bytes = l.bytes;
        later->size = l.size;
    }
    return piece->bytes != NULL;
}

/* The place of the last architecture whose code later ones can have, too; -1: there is none, or the generator
 * has no form of code for later devices. */
static int most_for_later(const comp_code *code, const target *const *each, int n)
{
    for (int i = 0; code->codegen->link_with_later && i < n; i++)
        if (!each[i]->own_instructions)
            return i;
    return -1;
}

/* A piece of device code for each architecture of the target, the one with the most first, and behind them
 * one for later devices: a device takes the first that fits. All have the same kernels. */
bool comp_describe_device(tec_context *cx, comp_code *code)
{
    const target *own = code->options.target, *const *each = own->n_each ? own->each : &own;
    int n = 0, n_codes, n_pieces = own->n_each ? own->n_each : 1;
    rt_code_desc *pieces = base_array(cx, rt_code_desc, n_pieces + 1), *last = &pieces[n_pieces];
    const int later = most_for_later(code, each, n_pieces);

    comp_codes(cx, code, true, &n_codes);
    if (n_codes == 0)
        return true;
    for (int k = 0; k < code->n; k++)
        n += code->functions[k].n_launches;
    rt_kernel_desc *kernels = base_array(cx, rt_kernel_desc, n);
    for (int k = 0, at = 0; k < code->n; k++)
        for (int i = 0; i < code->functions[k].n_launches; i++)
            kernels[at++] = describe_kernel(cx, &code->functions[k], &code->functions[k].launches[i]);
    for (int i = 0; i <= n_pieces; i++)
        pieces[i] = (rt_code_desc){.device = code->codegen->device,
                                   .format = (rt_code_format)code->codegen->device_format,
                                   .kernels = kernels,
                                   .n_kernels = n};
    last->format = (rt_code_format)code->codegen->later_format;
    for (int i = 0; i < n_pieces; i++)
        if (!describe_piece(cx, code, each[i], &pieces[i], i == later ? last : NULL))
            return false;
    code->desc.codes = pieces;
    code->desc.n_codes = n_pieces + (last->bytes != NULL);
    return true;
}
