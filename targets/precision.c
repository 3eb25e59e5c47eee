/* targets/precision.c -- which precisions there are, and which machines have them.
 *
 *     "cuda -arch=sm_80 -precision=tf32"    a schedule may use the tensor cores for products of f32
 *     "opencl -precision=fast"              the driver may approximate
 *
 * A precision that would change nothing is refused, so that nobody takes exact code for faster code.
 */
#include <string.h>

#include "targets/cpus.h"

static const char *const names[] = {[TARGET_EXACT] = "exact", [TARGET_TF32] = "tf32", [TARGET_FAST] = "fast"};

const char *target_precision_name(target_precision precision)
{
    return names[precision];
}

/* The least capability of an NVIDIA GPU with products of tf32. */
enum { TF32_CAPABILITY = 80 };

/* What the machine lacks for it, as the end of a sentence; NULL: nothing. */
static const char *lacks(const target *machine, target_precision precision)
{
    switch (precision) {
    case TARGET_TF32:
        return machine->capability >= TF32_CAPABILITY ? NULL : "only tensor cores of sm_80 or later have it";
    case TARGET_FAST: return target_offers(machine, TARGET_THREADS) ? NULL : "only GPUs have it";
    default: return NULL;
    }
}

/* A copy of the machine, and of each device that it names, with the precision. The capability of a machine
 * that names several is the least of them, so what one of them lacks is refused for all. */
const target *target_with_precision(tec_context *cx, const target *machine, const char *name)
{
    int wanted = 0;

    while (wanted < BASE_COUNT(names) && strcmp(names[wanted], name))
        wanted++;
    if (wanted == BASE_COUNT(names))
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "there is no precision '%s': expected exact, tf32 or fast", name);
    const char *missing = lacks(machine, (target_precision)wanted);
    if (missing)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){0}, "target '%s' has no precision '%s': %s",
                         target_text(cx, machine), name, missing);
    target *with = base_copy(cx, machine, sizeof *with);
    with->precision = (target_precision)wanted;
    if (machine->n_each) {
        const target **each = base_array(cx, const target *, machine->n_each);

        for (int i = 0; i < machine->n_each; i++) {
            target *one = base_copy(cx, machine->each[i], sizeof *one);
            one->precision = with->precision;
            each[i] = one;
        }
        with->each = each;
    }
    return with;
}
