/* targets/codegen.c -- what the compiler and all code generators share. */
#include "targets/codegen.h"

#include <string.h>

#include "targets/cpus.h"

const target_codegen target_no_codegen = {0};

const char *target_code_text(const target_code *code, const char *name)
{
    for (int i = 0; i < code->n_forms; i++)
        if (!strcmp(code->forms[i].name, name))
            return code->forms[i].text;
    return NULL;
}

bool target_wants_text(const target_codegen_options *options, const char *name)
{
    for (int i = 0; options->texts && options->texts[i]; i++)
        if (!strcmp(options->texts[i], name))
            return true;
    return false;
}

int target_kind_number(const target *machine)
{
    return (int)(machine->kind - target_kinds);
}
