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

const ir_program *lower_simplify(const lower_options *o, const ir_program *p)
{
    ir_facts *f = ir_facts_new(o->cx, ir_facts_of_program(o->cx, p));

    for (int i = 0; i < p->n_symbols && BASE_PLANT_ON(o->cx, simplify_symbols); i++)
        ir_facts_assume(f, ir_ge(o->cx, p->symbols[i], ir_int(o->cx, 2)));
    return lower_with_body(o->cx, p, ir_simplify_stmt(f, p->body));
}
