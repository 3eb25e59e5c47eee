/* fuzz/programs/programs.h -- random programs, by the interpreter of graphs and by the VM.
 *
 *     fuzz_program_counts counts = fuzz_program_no_counts();
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

/* How functions with type parameters are used. */
typedef enum {
    FUZZ_USED,          /* with types */
    FUZZ_USED_OFTEN,    /* one of them with two lists of types at least */
    FUZZ_WITH_FUNCTION, /* with an operand that is a function */
    FUZZ_WITH_COMPOUND, /* with a type that is made of others */
    FUZZ_N_USES
} fuzz_program_use;
extern const char *const fuzz_program_uses[FUZZ_N_USES]; /* in words */

/* In how many cases each occurred at all. */
typedef struct {
    int64_t cases;
    int64_t node[GRAPH_N_KINDS];            /* in the module at some stage of its build */
    int64_t instruction[RT_N_INSTRUCTIONS]; /* in the bytecode */
    const char *pass[FUZZ_MAX_PASSES];      /* stages that changed the module, all passes first */
    int64_t passed[FUZZ_MAX_PASSES];
    int n_passes;
    int64_t use[FUZZ_N_USES]; /* of functions with type parameters */
    int64_t stops;            /* whose run ends at extents that are not equal, as it must */
} fuzz_program_counts;

/* With a place for each pass. */
fuzz_program_counts fuzz_program_no_counts(void);
/* Whether a program may have the node or the instruction: some are for modules of other kinds only. */
bool fuzz_program_has_node(graph_node_kind kind);
bool fuzz_program_has_instruction(int instruction);

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
