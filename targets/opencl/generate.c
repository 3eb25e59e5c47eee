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

#include "lower/meet.h"
#include "runtime/format.h"
#include "targets/opencl/opencl.h"

/* The prelude, then kernels. */
static void add_prelude(tec_context *cx, base_text *all)
{
    for (int i = 0; opencl_prelude[i]; i++)
        base_add(cx, all, opencl_prelude[i]);
}

/* What a reader or another compiler needs: one kernel's text does not compile without the prelude. */
static const char *whole_text(tec_context *cx, const char *kernels, size_t size)
{
    base_text all = {0};

    add_prelude(cx, &all);
    base_addn(cx, &all, kernels, size);
    return base_text_str(cx, &all);
}

/* The text of the kernels alone is the code, since the prelude must stand once in a module however many
 * kernels it has; `join` adds it. */
static const target_code *generate(tec_context *cx, const ir_program *const *programs, int count,
                                   const target *machine, const target_codegen_options *options)
{
    target_code *code = base_new(cx, target_code);
    const char *text;

    if (count != 1 || options->dispatch)
        return base_fail(
            cx, TEC_UNSUPPORTED, programs[0]->loc,
            "'%s' has versions for remainders of a symbol, but target '%s' cannot choose between versions",
            programs[0]->name, target_text(cx, machine));
    *code = (target_code){.target = machine,
                          .symbols = base_copy(cx, &options->symbols[0], sizeof options->symbols[0]),
                          .n = 1,
                          .format = "opencl"};
    /* Devices with warps are GPUs, whose drivers take all of this as it is. Drivers for CPUs cut kernels at
     * barriers, and use LLVM 15. Its vectorizer gives a scatter to a restricted buffer the note that this
     * buffer is not touched, so that later loads of the buffer move before the scatter. */
    const ir_program *program = programs[0];
    source_dialect dialect = machine->no_f64 ? opencl_dialect_without_f64 : opencl_dialect;
    dialect.shared_bytes = machine->shared_bytes;
    if (machine->warp_size <= 1) {
        program = lower_meet_at_barriers(cx, program);
        dialect.restricted = "";
        dialect.hides_conditions = true;
    }
    text = source_kernels(cx, &dialect, program, options->symbols[0]);
    if (!text)
        return NULL;
    code->bytes = text;
    code->size = strlen(text);
    if (target_wants_text(options, "opencl")) {
        target_code_form *form = base_new(cx, target_code_form);

        *form = (target_code_form){"opencl", whole_text(cx, text, code->size)};
        code->forms = form;
        code->n_forms = 1;
    }
    return code;
}

/* CPUs compute in 64 bits as fast as in 32. */
static const ir_program *prepare(tec_context *cx, const ir_program *program, const target *machine)
{
    return machine->warp_size > 1 ? source_narrow(cx, program) : program;
}

/* One text for all kernels, which the driver compiles when the module is loaded. */
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
const target_codegen opencl_codegen = {.texts = texts,
                                       .prepare = prepare,
                                       .generate = generate,
                                       .link = join,
                                       .device = "opencl",
                                       .device_format = RT_CODE_OPENCL_C};
