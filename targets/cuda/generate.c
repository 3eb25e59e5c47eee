/* targets/cuda/generate.c -- kernels of programs, and the one piece of device code of a module. */
#include <string.h>

#include "runtime/format.h"
#include "targets/cuda/cuda.h"

static const char *with_prelude(tec_context *cx, const target_code *const *codes, int n)
{
    base_text all = {0};

    for (int i = 0; cuda_prelude[i]; i++)
        base_add(cx, &all, cuda_prelude[i]);
    for (int i = 0; cuda_prelude_tensor[i]; i++)
        base_add(cx, &all, cuda_prelude_tensor[i]);
    for (int i = 0; i < n; i++)
        base_addn(cx, &all, codes[i]->bytes, codes[i]->size);
    return base_text_str(cx, &all);
}

/* Registers, spills and shared memory of each kernel; of several architectures, below the name of each. */
static const char *usage_text(tec_context *cx, const char *text, const target *machine)
{
    base_text all = {0};
    cuda_code code;

    if (machine->n_each == 0)
        return cuda_compile(cx, text, machine, &code) ? code.usage : NULL;
    for (int i = 0; i < machine->n_each; i++) {
        if (!cuda_compile(cx, text, machine->each[i], &code))
            return NULL;
        base_addf(cx, &all, "%s:\n%s", machine->each[i]->cpu, code.usage);
    }
    return base_text_str(cx, &all);
}

/* One program becomes CUDA C text. Other targets choose among versions for the remainder of a symbol in host
 * code, but a function for a device has none, so such versions are refused here. */
static const target_code *generate(tec_context *cx, const ir_program *const *programs, int count,
                                   const target *machine, const target_codegen_options *options)
{
    target_code *code = base_new(cx, target_code);
    target_code_form *forms = base_array(cx, target_code_form, 2);
    const target_code *one = code;

    if (count != 1 || options->dispatch)
        return base_fail(
            cx, TEC_UNSUPPORTED, (base_loc){0},
            "'%s' has versions for remainders of a symbol, but target '%s' cannot choose between versions",
            options->symbols[0], target_text(cx, machine));
    source_dialect dialect = cuda_dialect;
    dialect.shared_bytes = machine->shared_bytes;
    const char *text = source_kernels(cx, &dialect, programs[0], options->symbols[0]);
    if (!text)
        return NULL;
    *code = (target_code){.target = machine,
                          .symbols = base_copy(cx, &options->symbols[0], sizeof options->symbols[0]),
                          .n = 1,
                          .format = "cuda",
                          .bytes = text,
                          .size = strlen(text)};
    code->forms = forms;
    if (target_wants_text(options, "cuda"))
        forms[code->n_forms++] = (target_code_form){"cuda", with_prelude(cx, &one, 1)};
    if (target_wants_text(options, "registers")) {
        const char *usage = usage_text(cx, with_prelude(cx, &one, 1), machine);

        if (!usage)
            return NULL;
        forms[code->n_forms++] = (target_code_form){"registers", usage};
    }
    return code;
}

/* The driver takes so many blocks along y and z. */
enum { MOST_BLOCKS_Y_Z = 65535 };

static const ir_program *prepare(tec_context *cx, const ir_program *program, const target *machine)
{
    const ir_program *folded = source_fold(cx, program, MOST_BLOCKS_Y_Z);

    (void)machine;
    return folded ? source_narrow(cx, folded) : NULL;
}

static const void *join(tec_context *cx, const target_code *const *codes, int n, size_t *size)
{
    cuda_code code;

    if (!cuda_compile(cx, with_prelude(cx, codes, n), codes[0]->target, &code))
        return NULL;
    *size = code.cubin_size;
    return code.cubin;
}

/* Architectures whose name has a letter ("sm_90a") have instructions that no other one has. */
static const void *join_with_later(tec_context *cx, const target_code *const *codes, int n, size_t *size,
                                   target_later *later)
{
    const target *machine = codes[0]->target;
    cuda_code code;

    *later = (target_later){0};
    if (!cuda_compile(cx, with_prelude(cx, codes, n), machine, &code))
        return NULL;
    if (!machine->own_instructions)
        *later =
            (target_later){base_format(cx, "cuda -arch=compute_%d%s%s", machine->capability,
                                       machine->precision ? " -precision=" : "",
                                       machine->precision ? target_precision_name(machine->precision) : ""),
                           code.ptx, code.ptx_size};
    *size = code.cubin_size;
    return code.cubin;
}

static const char *const texts[] = {"cuda", "registers", NULL};
const target_codegen cuda_codegen = {.texts = texts,
                                     .prepare = prepare,
                                     .generate = generate,
                                     .link = join,
                                     .device = "cuda",
                                     .device_format = RT_CODE_CUBIN,
                                     .link_with_later = join_with_later,
                                     .later_format = RT_CODE_PTX};
