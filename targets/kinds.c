/* targets/kinds.c -- the table of kinds of target, made from targets/kinds.def. */
#include <string.h>

#include "targets/cpus.h"

const target_kind target_kinds[] = {
#define TARGET_KIND(name, generator, features, option, wants, help) {#name, features, option, wants, help},
#include "targets/kinds.def"
};
const int target_n_kinds = BASE_COUNT(target_kinds);

const target_kind *target_kind_find(const char *name)
{
    for (int i = 0; i < target_n_kinds; i++)
        if (!strcmp(target_kinds[i].name, name))
            return &target_kinds[i];
    return NULL;
}
