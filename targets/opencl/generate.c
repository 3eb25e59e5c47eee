/* targets/opencl/generate.c -- kernels of programs, and the one text of a module.
 *
 *     __kernel __attribute__((reqd_work_group_size(32, 1, 1)))
 *     void tec_k0_relu_0(__global char *restrict A_base, long A_at, ..., long n)
 *     {
 *         const __global float *A = (const __global float *)(A_base + A_at);
 *         __global float *B = (__global float *)(B_base + B_at);
 *         ...
 */
#include <string.h>

#include "lower/launches.h"
#include "targets/opencl/opencl.h"

typedef struct {
    tec_context *cx;
    const ir_program *p;
    const char *symbol;
    source_printer *out;
} generator;

/* "__global char *restrict A_base, long A_at"; buffers that may overlap are not restricted. */
static bool add_parameter(generator *g, base_text *t, const lower_arg *a)
{
    const char *type, *name;
    char dtype[24];

    if (a->scalar) {
        type = opencl_dialect.type(a->scalar->dtype);
        name = source_name(g->out, a->scalar, a->scalar->var.name);
        if (base_is_bool(a->scalar->dtype))
            type = "uchar";
        if (!type || (base_is_float(a->scalar->dtype) && a->scalar->dtype.bits == 16))
            return base_fail(g->cx, TEC_UNSUPPORTED, a->scalar->loc,
                             "scalar '%s' is of type %s, which a kernel of OpenCL C cannot take", name,
                             base_dtype_print(a->scalar->dtype, dtype, sizeof dtype)),
                   false;
        base_addf(g->cx, t, "%s %s", type, name);
        return true;
    }
    if (!opencl_dialect.memory_type(a->buffer->dtype))
        return base_fail(g->cx, TEC_UNSUPPORTED, a->buffer->loc,
                         "buffer '%s' holds %s, which OpenCL C has no type for", a->buffer->name,
                         base_dtype_print(a->buffer->dtype, dtype, sizeof dtype)),
               false;
    name = source_name(g->out, a->buffer, a->buffer->name);
    base_addf(g->cx, t, "__global char *%s%s_base, long %s_at", a->buffer->alias ? "" : "restrict ", name,
              name);
    return true;
}

static void declare_pointer(generator *g, const lower_arg *a)
{
    const char *type = opencl_dialect.memory_type(a->buffer->dtype), *constant = a->written ? "" : "const ";
    const char *name = source_name_of(g->out, a->buffer);

    source_line(g->out, "%s__global %s *%s = (%s__global %s *)(%s_base + %s_at);", constant, type, name,
                constant, type, name, name);
}

static bool print_kernel(generator *g, const lower_launch *l)
{
    base_text parameters = {0};

    for (int a = 0; a < LOWER_AXES; a++)
        source_set_axis(g->out, (ir_how)(IR_THREAD_X + a), l->block[a]);
    for (int i = 0; i < l->n_args; i++) {
        if (i)
            base_add(g->cx, &parameters, ", ");
        if (!add_parameter(g, &parameters, &l->args[i]))
            return false;
    }
    source_line(g->out, "\n__kernel __attribute__((reqd_work_group_size(%d, %d, %d)))", l->block[0],
                l->block[1], l->block[2]);
    source_line(g->out, "void %s_%d(%s)", g->symbol, l->number, base_text_str(g->cx, &parameters));
    source_line(g->out, "{");
    source_open(g->out);
    for (int i = 0; i < l->n_args; i++)
        if (l->args[i].buffer)
            declare_pointer(g, &l->args[i]);
    source_declare_shared(g->out, l->body);
    source_stmt(g->out, l->body);
    source_close(g->out);
    source_line(g->out, "}");
    return !base_failed(g->cx);
}

static const char *print_program(tec_context *cx, const ir_program *p, const char *symbol)
{
    base_vec launches = {0};
    base_text all = {0};

    if (!lower_launches(cx, p, &launches))
        return NULL;
    for (int i = 0; i < launches.n; i++) {
        generator g = {.cx = cx, .p = p, .symbol = symbol, .out = source_new(cx, &opencl_dialect)};

        if (!print_kernel(&g, launches.at[i]))
            return NULL;
        base_add(cx, &all, source_text(g.out));
    }
    return base_text_str(cx, &all);
}

/* The prelude, then kernels. */
static void add_prelude(tec_context *cx, base_text *all)
{
    for (int i = 0; opencl_prelude[i]; i++)
        base_add(cx, all, opencl_prelude[i]);
}

static const char *whole_text(tec_context *cx, const char *kernels, size_t size)
{
    base_text all = {0};

    add_prelude(cx, &all);
    base_addn(cx, &all, kernels, size);
    return base_text_str(cx, &all);
}

static const target_code *generate(tec_context *cx, const ir_program *const *programs, int n, const target *t,
                                   const target_codegen_options *o)
{
    target_code *code = base_new(cx, target_code);
    const char *text;

    if (n != 1 || o->dispatch)
        return base_fail(
            cx, TEC_UNSUPPORTED, programs[0]->loc,
            "'%s' has versions for remainders of a symbol, which target '%s' cannot choose among",
            programs[0]->name, target_text(cx, t));
    *code = (target_code){.target = t,
                          .symbols = base_copy(cx, &o->symbols[0], sizeof o->symbols[0]),
                          .n = 1,
                          .format = "opencl"};
    text = print_program(cx, programs[0], o->symbols[0]);
    if (!text)
        return NULL;
    code->bytes = text;
    code->size = strlen(text);
    if (target_wants_text(o, "opencl")) {
        target_code_form *form = base_new(cx, target_code_form);

        *form = (target_code_form){"opencl", whole_text(cx, text, code->size)};
        code->forms = form;
        code->n_forms = 1;
    }
    return code;
}

static const void *join(tec_context *cx, const target_code *const *codes, int n, size_t *size)
{
    base_text all = {0};

    add_prelude(cx, &all);
    for (int i = 0; i < n; i++)
        base_addn(cx, &all, codes[i]->bytes, codes[i]->size);
    *size = strlen(base_text_str(cx, &all));
    return base_text_str(cx, &all);
}

static const char *const texts[] = {"opencl", NULL};
const target_codegen opencl_codegen = {
    .texts = texts, .generate = generate, .link = join, .device = "opencl"};
