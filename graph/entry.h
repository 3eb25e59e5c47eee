/* graph/entry.h -- what the description of a program says of its entry's inputs to those who make their
 * values: where constructors are declared.
 *
 *     graph_constructor_line(program, 0, 1) // of the second constructor of the first data type
 */
#ifndef GRAPH_ENTRY_H
#define GRAPH_ENTRY_H

#include "runtime/format.h"

/* Where the table of lines of the entry, of so many parameters, has the constructor (docs/module.md). */
int32_t graph_constructor_word(const rt_program_desc *program, int n_params, int data, int which);
/* The line of the program on which a constructor is declared; 0: unknown. */
int32_t graph_constructor_line(const rt_program_desc *program, int data, int which);

#endif
