/* compiler/generators.c -- the generators of targets/kinds.def. The table lies in this room, because the
 * rooms of generators lie above targets/. */
#include "compiler/generators.h"

#include "base/base.h"
#include "tec/device.h"

#define TARGET_KIND(name, generator, features, option, wants, help) extern const target_codegen generator;
#include "targets/kinds.def"

static const target_codegen *const generators[] = {
#define TARGET_KIND(name, generator, features, option, wants, help) &generator,
#include "targets/kinds.def"
};

const target_codegen *comp_codegen(const target *machine)
{
    return generators[target_kind_number(machine)];
}

const char *comp_unfit(tec_context *cx, const target *machine)
{
    const char *device = comp_codegen(machine)->device;
    tec_error err = {0};

    if (!device)
        return target_unfit(cx, machine);
    int n = tec_device_count(device, &err);
    return n > 0    ? NULL
           : n == 0 ? base_format(cx, "there is no device of kind '%s'", device)
                    : base_strdup(cx, err.text);
}

/* The words that --emit accepts, from all generators, each once, NULL at the end. */
const char *const *comp_code_forms(tec_context *cx)
{
    base_vec all = {0};
    base_dict seen = {0};

    for (int i = 0; i < BASE_COUNT(generators); i++)
        for (int k = 0; generators[i]->texts && generators[i]->texts[k]; k++) {
            const char *name = generators[i]->texts[k];

            if (base_dict_has(&seen, name))
                continue;
            base_dict_put(cx, &seen, name, (void *)name);
            base_push(cx, &all, name);
        }
    base_push(cx, &all, NULL);
    return (const char *const *)all.at;
}
