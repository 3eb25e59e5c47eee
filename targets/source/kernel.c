/* targets/source/kernel.c -- the launches of a program as kernels.
 *
 * A dialect whose memory has addresses takes a buffer as a pointer. One whose memory has none takes memory
 * and
 * an offset in bytes, from which the kernel makes its pointer:
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
static bool add_scalar(source_printer *p, base_text *t, const ir_expr *scalar)
{
    const char *name = source_name(p, scalar, scalar->var.name), *type = p->d->type(scalar->dtype);
    char dtype[24];

    if (base_is_bool(scalar->dtype))
        type = p->d->memory_type(scalar->dtype);
    if (!type || source_is_half(scalar->dtype))
        return base_fail(p->cx, TEC_UNSUPPORTED, scalar->loc,
                         "scalar '%s' is of type %s, which a kernel of %s cannot take", name,
                         base_dtype_print(scalar->dtype, dtype, sizeof dtype), p->d->what),
               false;
    base_addf(p->cx, t, "%s %s", type, name);
    return true;
}

/* "const float *__restrict__ A"; buffers that may overlap others are not restricted. */
static bool add_buffer(source_printer *p, base_text *t, const lower_arg *a)
{
    const ir_buffer *b = a->buffer;
    const char *type = p->d->memory_type(b->dtype), *restricted = b->alias ? "" : p->d->restricted;
    const char *space = p->d->space[SOURCE_GLOBAL];
    char dtype[24];

    if (!type)
        return base_fail(p->cx, TEC_UNSUPPORTED, b->loc, "buffer '%s' holds %s, which %s has no type for",
                         b->name, base_dtype_print(b->dtype, dtype, sizeof dtype), p->d->what),
               false;
    const char *name = source_name(p, b, b->name);
    if (p->d->has_addresses)
        base_addf(p->cx, t, "%s%s *%s%s%s", a->written ? "" : "const ", type, restricted,
                  *restricted ? " " : "", name);
    else
        base_addf(p->cx, t, "%s char *%s%s%s_base, long %s_at", space, restricted, *restricted ? " " : "",
                  name, name);
    return true;
}

static void declare_pointer(source_printer *p, const lower_arg *a)
{
    const char *type = p->d->memory_type(a->buffer->dtype), *constant = a->written ? "" : "const ";
    const char *name = source_name_of(p, a->buffer), *space = p->d->space[SOURCE_GLOBAL];

    source_line(p, "%s%s %s *%s = (%s%s %s *)(%s_base + %s_at);", constant, space, type, name, constant,
                space, type, name, name);
}

/* The kernel of one launch, called SYMBOL_NUMBER. */
static bool print_kernel(source_printer *p, const lower_launch *l, const char *symbol)
{
    base_text parameters = {0};

    if (p->d->shared_bytes && l->shared_bytes > p->d->shared_bytes)
        return base_fail(
                   p->cx, TEC_UNSUPPORTED, l->body->loc,
                   "a launch uses %lld bytes of shared memory in a block; arrays of a kernel of %s have at "
                   "most %lld",
                   (long long)l->shared_bytes, p->d->what, (long long)p->d->shared_bytes),
               false;
    for (int a = 0; a < LOWER_AXES; a++)
        source_set_axis(p, (ir_how)(IR_THREAD_X + a), l->block[a]);
    for (int i = 0; i < l->n_args; i++) {
        if (i)
            base_add(p->cx, &parameters, ", ");
        if (l->args[i].scalar ? !add_scalar(p, &parameters, l->args[i].scalar)
                              : !add_buffer(p, &parameters, &l->args[i]))
            return false;
    }
    source_line(p, "\n%s", p->d->kernel(p->cx, l->block));
    source_line(p, "void %s_%d(%s)", symbol, l->number, base_text_str(p->cx, &parameters));
    source_line(p, "{");
    source_open(p);
    for (int i = 0; i < l->n_args && !p->d->has_addresses; i++)
        if (l->args[i].buffer)
            declare_pointer(p, &l->args[i]);
    source_declare_shared(p, l->body);
    source_stmt(p, l->body);
    source_close(p);
    source_line(p, "}");
    return !base_failed(p->cx);
}

/* A printer for each kernel, since names are unique within one kernel only. */
const char *source_kernels(tec_context *cx, const source_dialect *d, const ir_program *program,
                           const char *symbol)
{
    base_vec launches = {0}, loops = {0};
    base_text all = {0};

    if (!lower_launches(cx, program, &launches, &loops))
        return NULL;
    for (int i = 0; i < launches.n; i++) {
        source_printer *p = source_new(cx, d);

        if (!print_kernel(p, launches.at[i], symbol))
            return NULL;
        base_add(cx, &all, source_text(p));
    }
    return base_text_str(cx, &all);
}
