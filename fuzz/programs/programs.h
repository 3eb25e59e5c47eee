/* fuzz/programs/programs.h -- random programs, by the interpreter of graphs and by the VM.
 *
 *     fuzz_program_counts counts = {0};
 *     fuzz_program_case c = {.cx = cx, .target = t, .seed = 1, .index = 17, .counts = &counts};
 *     if (!fuzz_program_try(&c)) printf("%s\n%s", c.why, c.text);
 *
 * A case is a module and inputs, both made of its seed and number. The interpreter of graphs runs the module
 * as it was read; the VM runs it optimised, and with every optimisation off. All three give the same values.
 * Lifetime: the context's. Errors: a case that fails to compile is a finding like a wrong result.
 */
#ifndef FUZZ_PROGRAMS_PROGRAMS_H
#define FUZZ_PROGRAMS_PROGRAMS_H

#include "compiler/cache.h"
#include "graph/graph.h"
#include "runtime/bytecode.h"
#include "targets/target.h"

enum { FUZZ_MAX_PASSES = 24 };

/* In how many cases each occurred at all. */
typedef struct {
    int64_t cases;
    int64_t node[GRAPH_N_KINDS];            /* in the module at some stage of its build */
    int64_t instruction[RT_N_INSTRUCTIONS]; /* in the bytecode */
    const char *pass[FUZZ_MAX_PASSES];      /* stages that changed the module */
    int64_t passed[FUZZ_MAX_PASSES];
    int n_passes;
} fuzz_program_counts;

typedef struct {
    tec_context *cx;
    const target *target;
    uint64_t seed;
    int64_t index;
    const char *plant;           /* the fault that the VM's module is built with; NULL: none */
    fuzz_program_counts *counts; /* may be NULL */
    comp_cache *cache;           /* of kernels; may be NULL */
    const char *text, *why;      /* results: the program; why it is a finding, or NULL */
} fuzz_program_case;

/* Whether all agree. */
bool fuzz_program_try(fuzz_program_case *self);

#endif
