/* hardware/hardware.c -- the table of intrinsics, and looking into it: a row is declared in a context when it
 * is asked for. */
#include "hardware/hardware.h"

#include <string.h>

#include "ir/ir.h"

static const hw_row *const rows[] = {
#define HW_INTRINSIC(row) &hw_##row,
#include "hardware/intrinsics.def"
};

static const hw_row *find(const char *name)
{
    for (int i = 0; i < BASE_COUNT(rows); i++)
        if (base_same(rows[i]->name, name))
            return rows[i];
    return NULL;
}

static const char *wants_gpu(tec_context *cx, const hw_row *row, const target *machine)
{
    return base_format(cx, "intrinsic '%s' needs an NVIDIA GPU of sm_%d%s; the target is '%s'", row->name,
                       row->capability, row->own ? "a" : " or later", target_text(cx, machine));
}

static bool has(const target *machine, const hw_row *row)
{
    if (!row->capability)
        return target_is_cpu_with(machine, row->arch, row->feature, row->or_feature);
    return row->own ? machine->capability == row->capability && machine->own_instructions
                    : machine->capability >= row->capability;
}

static const char *wants(tec_context *cx, const hw_row *row, const target *machine)
{
    return base_format(cx, "intrinsic '%s' needs %s%s%s%s%s; the target is '%s'", row->name,
                       row->arch ? row->arch : "a CPU", row->feature ? " with " : "",
                       row->feature ? row->feature : "", row->or_feature ? " or " : "",
                       row->or_feature ? row->or_feature : "", target_text(cx, machine));
}

/* NULL where there is none of the name, or where the target lacks it: *missing then says what it lacks. */
const te_intrinsic *hw_intrinsic(tec_context *cx, const char *name, const target *machine,
                                 const char **missing)
{
    const hw_row *row = find(name);

    *missing = NULL;
    if (!row)
        return NULL;
    if (machine && !has(machine, row)) {
        *missing = row->capability ? wants_gpu(cx, row, machine) : wants(cx, row, machine);
        return NULL;
    }
    te_intrinsics *table = te_intrinsics_parse(cx, row->name, row->text);
    if (!table)
        BASE_BUG(cx, "intrinsic '%s' does not parse: %s", row->name, tec_context_error(cx));
    return table ? table->list.at[0] : NULL;
}

bool hw_rounds_to_tf32(const ir_program *program)
{
    size_t n = strlen(hw_cuda_mma_tf32.name);

    for (int i = 0; i < program->n_intrinsics; i++)
        if (strncmp(program->intrinsics[i]->name, hw_cuda_mma_tf32.name, n) == 0)
            return true;
    return false;
}

const char *hw_names(tec_context *cx, const target *machine)
{
    base_text t = {0};

    bool gpu = machine && machine->capability;

    for (int i = 0; i < BASE_COUNT(rows); i++)
        if (gpu == (rows[i]->capability != 0))
            base_addf(cx, &t, "%s%s", t.n ? ", " : "", rows[i]->name);
    return base_text_str(cx, &t);
}
