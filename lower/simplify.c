/* lower/simplify.c -- the simplifier as a pass: expressions under the facts around them; what cannot run
 * goes.
 *
 *     for i in 0..8 { if i < 8 { B[i + 0] = A[(i*4 + 3) % 4] } }     =>     for i in 0..8 { B[i] = A[3] }
 *
 * requires  nothing
 * provides  canonical indices; conditions that hold or fail always are gone
 * breaks    nothing
 */
#include "lower/util.h"

const ir_program *lower_simplify(const lower_options *options, const ir_program *program)
{
    ir_facts *f = ir_facts_new(options->cx, ir_facts_of_program(options->cx, program));

    for (int i = 0; i < program->n_symbols && BASE_PLANT_ON(options->cx, simplify_symbols); i++)
        ir_facts_assume(f, ir_ge(options->cx, program->symbols[i], ir_int(options->cx, 2)));
    return lower_with_body(options->cx, program, ir_simplify_stmt(f, program->body));
}
