/* graph/code_loop.c -- loops and scans as bytecode: a body that is jumped back to.
 *
 *     v3, v4 = loop "l"(v0, _, v1) {                 r9 = load_consti 0             number of the iteration
 *       input i: i64[]                               r4 = (0 rows)                  what is collected
 *       input go: bool[]                             r8 = move r1                   the carried value
 *       input c: f32[4]                       head:  r10 = dim r9 < r0,  if r10 next exit
 *       ...                                   next:  r7 = to_tensor r9
 *       output go  output c2  output e   =>          ... the body: r11, r12, r13
 *     }                                              r6 = scalar r11                whether to go on
 *                                                    r8 = move r12
 *                                                    r4 = append r4 r13
 *                                                    r9 = dim r9 + 1,  goto head
 *                                             exit:  r3 = move r8
 *
 * The carried values have registers of their own, those of the body's inputs. What the body gives goes
 * through other registers first, since a body may give its inputs in another order. Symbols of the body get
 * their registers from the carried values at the head of each iteration, so that a value may change its
 * extents on the way. What is collected is extended in place by the VM (rt_append). A scan knows how many
 * elements there will be, and takes memory for all of them at once.
 */
#include "graph/code.h"
#include "graph/node.h"
#include "graph/pass.h"
#include "graph/plan.h"
#include "ir/build.h"

/* A node with its registers. Operands, inputs, outputs and results of what is carried begin at `operand`,
 * `input`, `output` and 0; what is collected follows. */
typedef struct {
    const graph_node *node;
    const graph_body *body;
    int n, operand, input, output;
    int32_t *carried; /* the inputs of the body */
    int32_t *made;    /* all outputs of the body */
    int32_t *result;
    int32_t count; /* the number of the iteration */
    int32_t limit; /* how many there are at most; -1: no limit */
    int32_t more;  /* whether to go on; -1: always */
    int head, exits[2], n_exits;
} repeated;

static int32_t typed_register(graph_code *code, const graph_value *value)
{
    graph_type type = graph_type_of(value);

    return graph_code_register(code, graph_code_type(code, &type));
}

static int32_t constant_number(graph_code *code, int32_t number)
{
    int32_t reg = graph_code_new_number(code);

    GRAPH_CODE(code, RT_LOAD_CONSTI, reg, number);
    return reg;
}

/* dimension code `expr` into the register `to`, which may be one of the registers that the code reads. */
static bool recompute(graph_code *code, const ir_expr *expr, int32_t to)
{
    int32_t reg = graph_code_compute(code, expr);

    GRAPH_CODE(code, RT_MOVE, to, reg);
    return reg >= 0;
}

/* ---- before the first iteration ---- */

/* A sequence without elements, with memory for `length` of them; NULL: for none. */
static bool begin_sequence(graph_code *code, const op_type *type, const ir_expr *length, int32_t to)
{
    tec_context *cx = code->cx;
    const ir_expr *bytes = ir_int(cx, 0);
    int32_t storage = graph_code_register(code, graph_code_plain_type(code, RT_TYPE_STORAGE));
    int32_t *extent = base_array(cx, int32_t, type->n), zero = constant_number(code, 0);

    if (length) {
        const ir_expr **dim = base_copy(cx, type->dim, (size_t)type->n * sizeof *dim);

        dim[0] = length;
        bytes = graph_type_bytes(cx, &(op_type){type->dtype, type->n, dim});
    }
    int32_t room = graph_code_number(code, bytes);
    extent[0] = zero;
    if (room < 0 || !graph_code_numbers(code, type->dim + 1, type->n - 1, extent + 1))
        return false;
    GRAPH_CODE(code, RT_ALLOC_STORAGE, storage, room, 0);
    GRAPH_CODE(code, RT_ALLOC_TENSOR_REG, to, storage, zero);
    graph_code_list(code, extent, type->n);
    graph_code_free(code, storage);
    return true;
}

/* Registers of everything, the carried values in theirs, and empty sequences. */
static bool begin(graph_code *code, repeated *self, const ir_expr *length)
{
    tec_context *cx = code->cx;
    int n_made = self->body->outputs.n;

    self->carried = base_array(cx, int32_t, self->n);
    self->made = base_array(cx, int32_t, n_made);
    self->result = base_array(cx, int32_t, self->node->n_out);
    for (int k = 0; k < self->n; k++) {
        int32_t from = graph_code_value(code, self->node->in[self->operand + k]);

        self->carried[k] = graph_code_define(code, self->body->inputs.at[self->input + k]);
        GRAPH_CODE(code, RT_MOVE, self->carried[k], from);
    }
    for (int k = 0; k < n_made; k++)
        self->made[k] = typed_register(code, self->body->outputs.at[k]);
    for (int k = 0; k < self->node->n_out; k++)
        self->result[k] = graph_code_define(code, self->node->out[k]);
    for (int k = self->n; k < self->node->n_out; k++)
        if (!begin_sequence(code, &self->node->out[k]->type, length, self->result[k]))
            return false;
    self->count = constant_number(code, 0);
    return true;
}

/* ---- one iteration ---- */

/* Leaves the loop where the number is 0. */
static void exit_unless(graph_code *code, repeated *self, int32_t number)
{
    GRAPH_CODE(code, RT_IF, number);
    int next = graph_code_put(code, 0);
    self->exits[self->n_exits++] = graph_code_put(code, 0);
    graph_code_land(code, next);
}

/* The head: the conditions under which another iteration runs. */
static bool enter(graph_code *code, repeated *self, const ir_expr *iteration)
{
    tec_context *cx = code->cx;

    self->head = graph_code_here(code);
    if (self->limit >= 0) {
        const ir_expr *limit = ir_var(cx, "limit", BASE_I64);

        graph_code_bind(code, limit, self->limit);
        int32_t within = graph_code_compute(
            code, BASE_PLANT_ON(cx, code_limit) ? ir_le(cx, iteration, limit) : ir_lt(cx, iteration, limit));
        if (within < 0)
            return false;
        exit_unless(code, self, within);
    }
    if (self->more >= 0)
        exit_unless(code, self, self->more);
    return true;
}

/* An input of the body that holds a number, where the body reads it. */
static void give_number(graph_code *code, const graph_value *input, int32_t number)
{
    if (graph_uses(&code->uses, input) > 0)
        GRAPH_CODE(code, RT_TO_TENSOR, graph_code_define(code, input), number);
}

/* The body, and what it gives to where the next iteration finds it. */
static bool iterate(graph_code *code, repeated *self, const ir_expr *iteration)
{
    int n_known = code->known.n;

    for (int k = 0; k < self->body->inputs.n; k++) {
        graph_type type = graph_type_of(self->body->inputs.at[k]);

        graph_code_bind_symbols(code, &type, graph_code_register_of(code, self->body->inputs.at[k]));
    }
    if (!graph_code_body(code, self->body, false, self->made))
        return false;
    code->known.n = n_known;
    for (int k = 0; k < self->node->n_out; k++) {
        int32_t made = self->made[self->output + k];

        if (k < self->n)
            GRAPH_CODE(code, RT_MOVE, self->carried[k], made);
        else
            GRAPH_CODE(code, RT_APPEND, self->result[k], self->result[k], made);
        graph_code_free(code, made);
    }
    if (self->more >= 0) {
        GRAPH_CODE(code, RT_SCALAR, self->more, self->made[0]);
        graph_code_free(code, self->made[0]);
    }
    if (!recompute(code, ir_add(code->cx, iteration, ir_int(code->cx, 1)), self->count))
        return false;
    GRAPH_CODE(code, RT_GOTO, self->head);
    return true;
}

/* Behind the last iteration: the carried values are the results. */
static void leave(graph_code *code, repeated *self)
{
    for (int k = 0; k < self->n_exits; k++)
        graph_code_land(code, self->exits[k]);
    for (int k = 0; k < self->n; k++) {
        GRAPH_CODE(code, RT_MOVE, self->result[k], self->carried[k]);
        graph_code_free(code, self->carried[k]);
    }
}

/* The condition is a number that each iteration gives anew; the number of trips is a limit beside it. */
bool graph_code_loop(graph_code *code, const graph_node *node)
{
    repeated l = {.node = node,
                  .body = node->body[0],
                  .n = node->n_in - 2,
                  .operand = 2,
                  .input = 2,
                  .output = 1,
                  .limit = node->in[0] ? graph_code_scalar(code, node->in[0]) : -1};
    const ir_expr *iteration = ir_var(code->cx, "iteration", BASE_I64);

    if (!begin(code, &l, NULL))
        return false;
    graph_code_bind(code, iteration, l.count);
    l.more = constant_number(code, 1);
    if (node->in[1])
        GRAPH_CODE(code, RT_SCALAR, l.more, graph_code_value(code, node->in[1]));
    if (!enter(code, &l, iteration))
        return false;
    give_number(code, l.body->inputs.at[0], l.count);
    give_number(code, l.body->inputs.at[1], l.more);
    if (!iterate(code, &l, iteration))
        return false;
    leave(code, &l);
    return !base_failed(code->cx);
}

/* As many iterations as the sequences are long; no condition. */
bool graph_code_scan(graph_code *code, const graph_node *node)
{
    repeated l = {.node = node,
                  .body = node->body[0],
                  .n = (int)graph_attribute(node, "states")->i,
                  .limit = graph_code_new_number(code),
                  .more = -1};
    const ir_expr *iteration = ir_var(code->cx, "iteration", BASE_I64);
    int32_t *sequence = graph_code_values(code, node->in, node->n_in);

    if (!begin(code, &l, node->in[l.n]->type.dim[0]))
        return false;
    graph_code_bind(code, iteration, l.count);
    GRAPH_CODE(code, RT_EXTENT, l.limit, sequence[l.n], 0);
    if (!enter(code, &l, iteration))
        return false;
    int32_t at = BASE_PLANT_ON(code->cx, code_row) ? constant_number(code, 0) : l.count;
    for (int k = l.n; k < node->n_in; k++)
        GRAPH_CODE(code, RT_ROW, graph_code_define(code, l.body->inputs.at[k]), sequence[k], at);
    if (!iterate(code, &l, iteration))
        return false;
    leave(code, &l);
    return !base_failed(code->cx);
}
