/* fuzz/programs/function.c -- a function out of statements.
 *
 *     function "drawn" {
 *       input "t": Tree   input "l": List   input "v": f32[4]   input "m": f32[n, 4]
 *       input "c": bool[]   input "k": i64[]   input "j": i64[p]
 *       ... statements ...
 *       output a vector, rows, a number, integers, a list, a tree
 *     }
 */
#include "fuzz/programs/inside.h"
#include "graph/scope.h"
#include "ir/build.h"

static void add_input(fuzz_program *self, fuzz_pool kind, const graph_type *type)
{
    fuzz_keep(self, kind, graph_typed_input(self->f, "given", type));
}

static void add_tensor(fuzz_program *self, fuzz_pool kind, base_dtype dtype, const ir_expr *const *dim, int n)
{
    graph_type type = graph_tensor_type(&(op_type){dtype, n, dim});

    add_input(self, kind, &type);
}

/* In the order of fuzz_program_inputs (values.c). */
static void open_function(fuzz_program *self)
{
    tec_context *cx = self->cx;
    graph_type tree = graph_data_type("Tree"), list = graph_data_type("List");

    self->f = graph_function_new(self->m, "drawn");
    const ir_expr *width = ir_int(cx, FUZZ_WIDTH), *n = graph_symbol_in(self->m, self->f->body, "n"),
                  *p = graph_symbol_in(self->m, self->f->body, "p"), *matrix[] = {n, width};
    add_input(self, FUZZ_TREE, &tree);
    add_input(self, FUZZ_LIST, &list);
    add_tensor(self, FUZZ_VECTOR, BASE_F32, &width, 1);
    add_tensor(self, FUZZ_ROWS, BASE_F32, matrix, 2);
    add_tensor(self, FUZZ_FLAG, BASE_BOOL, NULL, 0);
    add_tensor(self, FUZZ_NUMBER, BASE_I64, NULL, 0);
    add_tensor(self, FUZZ_INTS, BASE_I64, &p, 1);
}

/* False with an error in the context. */
bool fuzz_program_function(fuzz_program *self)
{
    static const fuzz_pool results[] = {FUZZ_VECTOR, FUZZ_ROWS, FUZZ_NUMBER, FUZZ_INTS, FUZZ_LIST, FUZZ_TREE};

    open_function(self);
    fuzz_statements(self, 6 + (int)fuzz_draw(&self->state, 8));
    for (int i = 0; i < BASE_COUNT(results); i++) {
        const base_vec *pool = &self->pool[results[i]];

        graph_output(self->f, "result", pool->at[pool->n - 1]);
    }
    return !base_failed(self->cx);
}
