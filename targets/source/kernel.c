/* targets/source/kernel.c -- the launches of a program as kernels.
 *
 * A dialect whose memory has addresses takes a buffer as a pointer. One whose memory has none takes memory
 * and an offset in bytes, from which the kernel makes its pointer:
 *
 *     addresses:      void k_0(const float *A, float *B, const long n) { ... }
 *     no addresses:   void k_0(__global char *A_base, long A_at, ...)
 *                     {
 *                         const __global float *A = (const __global float *)(A_base + A_at);
 */
#include "lower/launches.h"
#include "targets/source/printer.h"

/* A boolean is passed as its type in memory, since kernels cannot take `bool`; half floats cannot be passed
 * at all. */
static bool add_scalar(source_printer *printer, base_text *text, const ir_expr *scalar)
{
    const char *name = source_name(printer, scalar, scalar->var.name),
               *type = printer->d->type(scalar->dtype);
    char dtype[24];

    if (base_is_bool(scalar->dtype))
        type = printer->d->memory_type(scalar->dtype);
    if (!type || source_is_half(scalar->dtype))
        return base_fail(printer->cx, TEC_UNSUPPORTED, scalar->loc,
                         "scalar '%s' has type %s, which cannot be a parameter of a kernel in %s", name,
                         base_dtype_print(scalar->dtype, dtype, sizeof dtype), printer->d->what),
               false;
    base_addf(printer->cx, text, "%s %s", type, name);
    return true;
}

/* "const float *__restrict__ A"; buffers that may overlap others are not restricted. */
static bool add_buffer(source_printer *printer, base_text *text, const lower_arg *arg)
{
    const ir_buffer *buffer = arg->buffer;
    const char *type = printer->d->memory_type(buffer->dtype),
               *restricted = buffer->alias ? "" : printer->d->restricted;
    const char *space = printer->d->space[SOURCE_GLOBAL];
    char dtype[24];

    if (!type)
        return base_fail(printer->cx, TEC_UNSUPPORTED, buffer->loc,
                         "buffer '%s' has elements of type %s, which does not exist in %s", buffer->name,
                         base_dtype_print(buffer->dtype, dtype, sizeof dtype), printer->d->what),
               false;
    const char *name = source_name(printer, buffer, buffer->name);
    if (printer->d->has_addresses)
        base_addf(printer->cx, text, "%s%s *%s%s%s", arg->written ? "" : "const ", type, restricted,
                  *restricted ? " " : "", name);
    else
        base_addf(printer->cx, text, "%s char *%s%s%s_base, long %s_at", space, restricted,
                  *restricted ? " " : "", name, name);
    return true;
}

/* A size is passed in 64 bits. A kernel that computes in 32 bits converts it first, or every sum with it
 * would have 64. */
static void declare_narrow(source_printer *printer, const ir_expr *scalar)
{
    const char *type = source_type(printer, scalar), *wide = source_name_of(printer, scalar);

    source_line(printer, "const %s %s = (%s)%s;", type,
                source_name(printer, scalar, base_format(printer->cx, "%s_int", wide)), type, wide);
}

static void declare_pointer(source_printer *printer, const lower_arg *arg)
{
    const char *type = printer->d->memory_type(arg->buffer->dtype), *constant = arg->written ? "" : "const ";
    const char *name = source_name_of(printer, arg->buffer), *space = printer->d->space[SOURCE_GLOBAL];

    source_line(printer, "%s%s %s *%s = (%s%s %s *)(%s_base + %s_at);", constant, space, type, name, constant,
                space, type, name, name);
}

/* The kernel of one launch, called SYMBOL_NUMBER. */
static bool print_kernel(source_printer *printer, const lower_launch *launch, const char *symbol)
{
    base_text parameters = {0};

    if (printer->d->shared_bytes && launch->shared_bytes > printer->d->shared_bytes)
        return base_fail(printer->cx, TEC_UNSUPPORTED, launch->body->loc,
                         "kernel '%s_%d' uses %lld bytes of shared memory in a block, the target has %lld",
                         symbol, launch->number, (long long)launch->shared_bytes,
                         (long long)printer->d->shared_bytes),
               false;
    printer->narrow =
        launch->body->kind == IR_ATTRIBUTE && base_same(launch->body->attribute.key, SOURCE_NARROW);
    for (int a = 0; a < LOWER_AXES; a++)
        source_set_axis(printer, (ir_how)(IR_THREAD_X + a), launch->block[a]);
    for (int i = 0; i < launch->n_args; i++) {
        if (i)
            base_add(printer->cx, &parameters, ", ");
        const lower_arg *arg =
            &launch->args[BASE_PLANT_ON(printer->cx, source_args) && i < 2 && launch->n_args > 1 ? 1 - i : i];

        if (arg->scalar ? !add_scalar(printer, &parameters, arg->scalar)
                        : !add_buffer(printer, &parameters, arg))
            return false;
    }
    source_line(printer, "\n%s", printer->d->kernel(printer->cx, launch->block));
    source_line(printer, "void %s_%d(%s)", symbol, launch->number, base_text_str(printer->cx, &parameters));
    source_line(printer, "{");
    source_open(printer);
    for (int i = 0; i < launch->n_args && !printer->d->has_addresses; i++)
        if (launch->args[i].buffer)
            declare_pointer(printer, &launch->args[i]);
    for (int i = 0; i < launch->n_args && printer->narrow; i++)
        if (launch->args[i].scalar && source_is_index(launch->args[i].scalar))
            declare_narrow(printer, launch->args[i].scalar);
    source_find_fragments(printer, launch->body);
    source_declare_shared(printer, launch->body, launch->shared_bytes);
    source_stmt(printer, launch->body);
    source_close(printer);
    source_line(printer, "}");
    return !base_failed(printer->cx);
}

/* A printer for each kernel, since names are unique within one kernel only. */
const char *source_kernels(tec_context *cx, const source_dialect *dialect, const ir_program *program,
                           const char *symbol)
{
    base_vec launches = {0}, loops = {0};
    base_text all = {0};
    const ir_facts *facts = ir_facts_of_program(cx, program);

    if (!lower_launches(cx, program, &launches, &loops))
        return NULL;
    for (int i = 0; i < launches.n; i++) {
        source_printer *printer = source_new(cx, dialect);

        printer->facts = facts;
        if (!print_kernel(printer, launches.at[i], symbol))
            return NULL;
        base_add(cx, &all, source_text(printer));
    }
    return base_text_str(cx, &all);
}
