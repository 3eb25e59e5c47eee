/* compiler/ranges.h -- kernels that are several functions of a module: a loop tree for each range of the
 * values of a symbol, of which the runtime chooses (runtime/ranges.h).
 *
 *     comp_ranged k = {.unit = u, .symbol = 0, .n = 1, .to = (int64_t[]){11}, .tree = &few};
 *     const comp_unit *units = comp_units_of_ranges(cx, &k, 1, &n);    // "f" above 11, "f (n <= 11)"
 *     comp_code *code = comp_compile(cx, units, n, &options);
 *
 * Lifetime: the context's. Errors: none. Threads: plain data.
 */
#ifndef COMPILER_RANGES_H
#define COMPILER_RANGES_H

#include "compiler/compiler.h"

typedef struct {
    comp_unit unit; /* for the values above the last end, or for all: n is 0 */
    int symbol, n;
    const int64_t *to; /* [n] the last value of each range; rising */
    /* [n] of the same definition as the unit's. Ranges with one tree have one function; that of the unit's
     * tree is the kernel's own */
    const ir_program *const *tree;
} comp_ranged;

/* Units of all kernels, *n of them: kernels keep their numbers, and units for ranges stand behind them, named
 * after the first of their ranges: "f (n <= 11)", or "f (n == 8)" where that is one value. */
const comp_unit *comp_units_of_ranges(tec_context *cx, const comp_ranged *kernels, int count, int *n);

#endif
