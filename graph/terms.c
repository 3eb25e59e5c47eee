/* graph/terms.c -- how large the expression of a kernel grows when the operators in front are written into
 * it.
 *
 * An operator that reads an element twice doubles what stands behind it: after v = v + v, sixteen times, one
 * element of the result is an expression of 65,536 reads. So a pass that joins operators counts terms:
 *
 *     terms(node) = its own + for each operand: how often it is read * (terms of the node that makes it,
 *         where that is joined, otherwise 1)
 */
#include "graph/terms.h"

#include "graph/node.h"
#include "ir/build.h"
#include "ir/walk.h"

typedef struct {
    ir_walk walk; /* first, so that the hook finds the rest */
    const ir_expr *const *arg;
    int n, *reads;
    int own;
} count;

/* Visits every occurrence, also of nodes that are shared: code is written out once for each. */
static bool count_one(ir_walk *walk, const ir_expr *expr)
{
    count *c = (count *)walk;

    for (int k = 0; k < c->n; k++)
        if (expr == c->arg[k]) {
            c->reads[k]++;
            return true;
        }
    c->own++;
    return true;
}

/* How large the operator's own expression is; reads[k]: how often it reads an element of operand k. For
 * add(x, y): one read of each, and 2 terms, for the sum and for the operator itself. */
int graph_own_terms(const graph_module *module, const graph_node *node, int *reads)
{
    enum { OTHER = 8 }; /* of operators that are no scalar functions: indices, conditions, a reduction */
    const ir_expr **arg = base_array(module->cx, const ir_expr *, node->n_in);
    op_call call;

    if (node->kind != GRAPH_OP || !node->op->scalar) {
        for (int k = 0; k < node->n_in; k++)
            reads[k] = 1;
        return OTHER;
    }
    graph_call(module, node, NULL, &call);
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k])
            arg[k] = ir_var(module->cx, "x", node->in[k]->type.dtype);
    count c = {.walk = {.expr = count_one, .every = true}, .arg = arg, .n = node->n_in, .reads = reads};
    ir_walk_expr(&c.walk, node->op->scalar(&call, arg));
    return c.own + 1;
}

int64_t graph_add_terms(int64_t terms, int reads, int64_t of_operand)
{
    int64_t sum;

    /* Saturates: a sum that is too large stays so. */
    if (__builtin_mul_overflow(of_operand, (int64_t)reads, &sum) || __builtin_add_overflow(sum, terms, &sum))
        return INT64_MAX;
    return sum;
}
