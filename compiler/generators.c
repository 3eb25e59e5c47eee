/* compiler/generators.c -- the generators of targets/kinds.def. The table lies in this room, because the
 * rooms of generators lie above targets/. */
#include "compiler/generators.h"

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
