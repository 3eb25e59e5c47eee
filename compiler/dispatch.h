/* compiler/dispatch.h -- residue dispatch: versions of a function for some remainders of a symbolic extent by
 * a tile.
 *
 *     comp_dispatch *d = comp_dispatch_new(cx, def, s, "n%8");        // n == 8*n_q + 0, ..., 8*n_q + 7
 *     comp_unit u = {.name = "mm", .tree = sched_tree(s), .dispatch = d};
 *
 * "n%8=0,4" asks for these remainders alone. Each version is the definition with n := 8*n_q + r, n_q >= 0,
 * under the trace of the schedule: partition leaves n_q full tiles and one tail of constant size. The
 * schedule's own tree stays the function for all other n. The function that is called looks at n and runs one
 * of them; versions whose lowered programs are equal are compiled once.
 * Lifetime: the context's. Errors: in the context: the text, a tile or a number of versions past the limit, a
 *   remainder that the facts of the definition exclude, and a step that a version refuses, with the
 *   remainder.
 */
#ifndef COMPILER_DISPATCH_H
#define COMPILER_DISPATCH_H

#include "compiler/compiler.h"
#include "schedule/sched.h"
#include "te/te.h"

enum { COMP_MAX_VERSIONS = 32, COMP_MAX_MODULUS = 4096 };

typedef struct {
    int64_t residue;
    /* its symbols are those of the unit's tree, with the quotient in the place of the symbol */
    const ir_program *tree;
} comp_version;

struct comp_dispatch {
    int symbol; /* of the unit's tree: which one */
    int64_t modulus;
    int n;
    comp_version version[COMP_MAX_VERSIONS];
};

comp_dispatch *comp_dispatch_new(tec_context *cx, const te_def *def, const sched *schedule, const char *text);

#endif
