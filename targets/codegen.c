/* targets/codegen.c -- what the compiler and all code generators share. */
#include "targets/codegen.h"

#include <string.h>

#include "targets/cpus.h"

const target_codegen target_no_codegen = {0};

const char *target_code_text(const target_code *c, const char *name)
{
    for (int i = 0; i < c->n_forms; i++)
        if (!strcmp(c->forms[i].name, name))
            return c->forms[i].text;
    return NULL;
}

bool target_wants_text(const target_codegen_options *o, const char *name)
{
    for (int i = 0; o->texts && o->texts[i]; i++)
        if (!strcmp(o->texts[i], name))
            return true;
    return false;
}

int target_kind_number(const target *t)
{
    return (int)(t->kind - target_kinds);
}
