/* runtime/solve.h -- which dimensions tell a call the values of its symbols.
 *
 *     X: f32[n + 2, 3*m]        n is the extent less 2, m a third of the extent
 *
 *     rt_solution s[RT_MAX_SYMBOLS];
 *     int n = rt_solve(desc, s);                  each symbol that some dimension tells,
 *                                                   in an order in which they can be taken
 *     rt_take_symbols(desc, s, n, args, symbols);
 *
 * A symbol is told by a dimension that is the symbol alone, or else by one that is a constant times the
 * symbol plus what earlier symbols tell. An extent that the symbol cannot give (n + 2 of 1, 3*m of 4) gives
 * it another value, which the check of shapes refuses.
 * Errors: none. Threads: plain data.
 */
#ifndef RUNTIME_SOLVE_H
#define RUNTIME_SOLVE_H

#include "runtime/format.h"

typedef struct {
    int32_t symbol, param, dim;
    int64_t by; /* the factor of the symbol; not 0 */
} rt_solution;

/* Fills out[] with one solution for each symbol that has one, and says how many. */
int rt_solve(const rt_function_desc *function, rt_solution *out);
void rt_take_symbols(const rt_function_desc *function, const rt_solution *solution, int count,
                     DLTensor *const *args, int64_t *symbols);

#endif
