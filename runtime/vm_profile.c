/* vm_profile.c -- see vm_profile.h, and tec_program_profile of include/tec/program.h. */
#include "runtime/vm_profile.h"

#include <string.h>

#include "runtime/vm.h"

rt_vm_profile *rt_vm_profile_new(rt_arena *arena, int32_t n_kernels, tec_error *err)
{
    rt_vm_profile *profile = rt_arena_alloc(arena, 1, sizeof *profile, err);

    if (!profile)
        return NULL;
    memset(profile, 0, sizeof *profile);
    profile->kernel = rt_arena_alloc(arena, n_kernels, sizeof *profile->kernel, err);
    if (!profile->kernel)
        return NULL;
    memset(profile->kernel, 0, (size_t)n_kernels * sizeof *profile->kernel);
    return profile;
}

/* ---- measuring ---- */

/* The least of a few differences between two readings, so that an interrupt does not count. */
void rt_vm_profile_start(rt_vm_profile *profile)
{
    double least = 1;

    for (int i = 0; i < 32; i++) {
        double from = tec_clock(), took = tec_clock() - from;

        least = took < least ? took : least;
    }
    profile->clock_s = least;
    profile->kernels = 0;
    profile->last = tec_clock();
}

static double without_clock(double seconds, double clock_s)
{
    return seconds > clock_s ? seconds - clock_s : 0;
}

/* An instruction that called a kernel has read the clock twice more. */
void rt_vm_profile_step(rt_vm_profile *profile, int32_t op)
{
    double now = tec_clock();

    rt_profile_add(&profile->instruction[op],
                   without_clock(now - profile->last - profile->kernels, profile->clock_s));
    profile->kernels = 0;
    profile->last = tec_clock();
}

void rt_vm_profile_begin(rt_vm_profile *profile)
{
    profile->kernels = tec_clock();
}

void rt_vm_profile_kernel(rt_vm_profile *profile, int32_t index, const rt_function_desc *kernel,
                          const int64_t *dims)
{
    double before = profile->kernels, seconds = tec_clock() - before;
    rt_step_profile *row = &profile->kernel[index];

    rt_profile_add(row, without_clock(seconds, profile->clock_s));
    row->flops += rt_dim_count(kernel->flops, dims);
    row->bytes += rt_dim_count(kernel->bytes, dims);
    profile->kernels = tec_clock() - before + profile->clock_s;
}

/* ---- rows ---- */

/* Vectors and numbers of integers alone: extents of other tensors. */
static bool is_shape_kernel(const rt_function_desc *kernel)
{
    for (int32_t i = 0; i < kernel->n_params; i++)
        if (base_is_float(kernel->params[i].dtype) || kernel->params[i].rank > 1)
            return false;
    return true;
}

/* Whether the instruction makes, changes or frees an object, rather than decides what runs next. */
static bool is_memory(int32_t op)
{
    switch ((rt_instruction)op) {
    case RT_ALLOC_STORAGE:
    case RT_ALLOC_TENSOR:
    case RT_ALLOC_TENSOR_REG:
    case RT_NEW_TENSOR:
    case RT_NEW_TENSOR_REG:
    case RT_ALLOC_ADT:
    case RT_ALLOC_CLOSURE:
    case RT_FREE_STORAGE:
    case RT_FREE_TENSOR:
    case RT_FREE:
    case RT_DEVICE_COPY:
    case RT_SHAPE_OF:
    case RT_RESHAPE_TENSOR:
    case RT_TO_TENSOR:
    case RT_ROW:
    case RT_APPEND: return true;
    default: return false;
    }
}

static double seconds_of_all(const tec_program *program)
{
    double all = 0;

    for (int32_t i = 0; i < program->desc->n_functions; i++)
        all += program->profile->kernel[i].total_s;
    for (int32_t i = 0; i < RT_N_INSTRUCTIONS; i++)
        all += program->profile->instruction[i].total_s;
    return all;
}

/* Row number `index` among those that ran: kernels in the order of the module, then instructions. */
static const rt_step_profile *find_row(const tec_program *program, int index, tec_profile_row *row)
{
    const rt_vm_profile *p = program->profile;
    int32_t n = program->desc->n_functions;

    for (int32_t i = 0; i < n + RT_N_INSTRUCTIONS; i++) {
        const rt_step_profile *found = i < n ? &p->kernel[i] : &p->instruction[i - n];
        const rt_function_desc *kernel = i < n ? &program->desc->functions[i] : NULL;

        if (found->calls == 0 || index-- > 0)
            continue;
        row->name = !kernel ? rt_instruction_name(i - n) : kernel->summary ? kernel->summary : kernel->name;
        row->function = kernel ? kernel->name : NULL;
        row->origin = kernel ? kernel->origin : NULL;
        row->group = kernel             ? (is_shape_kernel(kernel) ? TEC_ROW_SHAPE_KERNEL : TEC_ROW_KERNEL)
                     : is_memory(i - n) ? TEC_ROW_MEMORY
                                        : TEC_ROW_CONTROL;
        return found;
    }
    return NULL;
}

/* The share is of all rows, kernels and instructions; rates are over all calls. */
bool tec_program_profile(const tec_program *program, int index, tec_profile_row *row)
{
    const rt_step_profile *profile;
    double all;

    if (!program || !program->profile || index < 0 || !row)
        return false;
    *row = (tec_profile_row){0};
    profile = find_row(program, index, row);
    if (!profile)
        return false;
    all = seconds_of_all(program);
    row->calls = profile->calls;
    row->min_s = profile->min_s;
    row->median_s = rt_profile_median(profile);
    row->total_s = profile->total_s;
    row->share = all > 0 ? profile->total_s / all : 0;
    if (profile->total_s > 0) {
        row->gflops = profile->flops / profile->total_s * 1e-9;
        row->gbytes = profile->bytes / profile->total_s * 1e-9;
    }
    return true;
}

void tec_program_profile_reset(tec_program *program)
{
    if (!program || !program->profile)
        return;
    for (int32_t i = 0; i < program->desc->n_functions; i++) {
        rt_profile_reset(&program->profile->kernel[i]);
        program->profile->kernel[i].flops = program->profile->kernel[i].bytes = 0;
    }
    for (int32_t i = 0; i < RT_N_INSTRUCTIONS; i++)
        rt_profile_reset(&program->profile->instruction[i]);
}
