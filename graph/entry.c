/* graph/entry.c -- see entry.h. */
#include "graph/entry.h"

int32_t graph_constructor_word(const rt_program_desc *program, int n_params, int data, int which)
{
    int32_t behind = -which;

    for (int i = data; i < program->n_data; i++)
        behind += program->data[i].n_constructors;
    return -n_params - behind;
}

int32_t graph_constructor_line(const rt_program_desc *program, int data, int which)
{
    const rt_routine_desc *entry = &program->functions[0];
    int32_t line = rt_line_of(entry, graph_constructor_word(program, entry->n_params, data, which));

    return line > 0 ? line : 0;
}
