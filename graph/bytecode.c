/* graph/bytecode.c -- see bytecode.h. One register for each value, storage and symbol of a function; regions
 * follow each other, with jumps around them:
 *
 *     v9 = if "if"(v3) {               r4 = scalar r3
 *       ...                            if r4 L12 L40
 *       output v6                =>    ...  r9 = move r6   goto L60
 *     } {                              ...  r9 = move r5
 *       output v5                 L60  ...
 *     }
 *
 * A region or a call whose results are those of the function does not come back: each branch returns, and the
 * call becomes `tail`. A symbol gets its register where graph/scope.h says that it gets its value; facts are
 * checked as soon as their symbols have registers.
 */
#include "graph/code.h"

#include <string.h>

#include "graph/coalesce.h"
#include "graph/describe.h"
#include "graph/entry.h"
#include "graph/node.h"
#include "graph/pass.h"
#include "graph/plan.h"
#include "graph/program.h"
#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"

/* ---- memory and kernels ---- */

/* Whether one tensor takes all of the storage: then one instruction makes both, where the tensor is made. */
static bool is_whole(const graph_code *code, const graph_body *body, int index)
{
    const graph_node *storage = body->nodes.at[index], *node;
    int64_t offset;

    if (code->unoptimised || graph_uses(&code->uses, storage->out[0]) != 1)
        return false;
    for (index++; index < body->nodes.n; index++) {
        node = body->nodes.at[index];
        if (node->kind == GRAPH_ALLOC_TENSOR && node->in[0] == storage->out[0])
            return ir_is_int(graph_attribute(node, "offset")->exprs[0], &offset) && offset == 0 &&
                   ir_prove_equal(ir_facts_new(code->cx, NULL), storage->out[0]->type.dim[0],
                                  graph_type_bytes(code->cx, &node->out[0]->type));
    }
    return false;
}

static void emit_storage(graph_code *code, const graph_body *body, int index)
{
    const graph_node *node = body->nodes.at[index];

    if (is_whole(code, body, index))
        return;
    int32_t bytes = graph_code_number(code, node->out[0]->type.dim[0]),
            reg = graph_code_register(code, graph_code_plain_type(code, RT_TYPE_STORAGE));

    graph_code_bind(code, node->out[0], reg);
    GRAPH_CODE(code, RT_ALLOC_STORAGE, reg, bytes, 0);
}

/* Whether all fit a word of the code as they are: then the instruction with fixed extents does, and no
 * register is spent on numbers. */
static bool small_ints(const ir_expr *const *expr, int count, int32_t *out)
{
    int64_t value;

    for (int i = 0; i < count; i++) {
        if (!ir_is_int(expr[i], &value) || value < 0 || value > INT32_MAX)
            return false;
        out[i] = (int32_t)value;
    }
    return true;
}

/* In this body: a storage is never read inside of a region, where tensors have storages of their own. */
static bool is_read_behind(const graph_body *body, int index, const graph_value *value)
{
    for (index++; index < body->nodes.n; index++) {
        const graph_node *node = body->nodes.at[index];

        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] == value)
                return true;
    }
    return false;
}

/* With a storage of its own, which has no register. */
static bool emit_whole(graph_code *code, const graph_node *node)
{
    const op_type *type = &node->out[0]->type;
    int32_t *extent = base_array(code->cx, int32_t, type->n);
    bool fixed = small_ints(type->dim, type->n, extent);

    if (!fixed && !graph_code_numbers(code, type->dim, type->n, extent))
        return false;
    GRAPH_CODE(code, fixed ? RT_NEW_TENSOR : RT_NEW_TENSOR_REG, graph_code_define(code, node->out[0]));
    graph_code_list(code, extent, type->n);
    return true;
}

/* Whether a tensor of this type is made behind the node of this index. The heap gives it the memory of one
 * that was freed before (runtime/layouts.h). */
static bool is_made_behind(const graph_body *body, int index, const op_type *type)
{
    for (index++; index < body->nodes.n; index++) {
        const graph_node *node = body->nodes.at[index];

        if (node->kind == GRAPH_ALLOC_TENSOR && graph_same_type(NULL, &node->out[0]->type, type))
            return true;
    }
    return false;
}

/* Whether the value, which is not needed any more, is left to the end of the frame: that is near, and frees
 * all that the frame holds without an instruction for each. A tensor keeps the whole storage that it lies in.
 */
static bool waits_for_end(const graph_code *code, const graph_body *body, int index, const graph_value *value)
{
    int64_t bytes;

    if (!code->ends || code->unoptimised || graph_type_of(value).kind != GRAPH_TENSOR ||
        is_made_behind(body, index, &value->type))
        return false;
    while (value->node && value->node->kind == GRAPH_ALLOC_TENSOR)
        value = value->node->in[0];
    return ir_is_int(graph_type_bytes(code->cx, &value->type), &bytes) && bytes <= GRAPH_SMALL_BYTES;
}

/* In a storage; the storage's own register is done with when no other tensor lies there. */
static bool emit_tensor(graph_code *code, const graph_body *body, int index)
{
    const graph_node *node = body->nodes.at[index];
    const op_attr *offset = graph_attribute(node, "offset");
    const op_type *type = &node->out[0]->type;
    int32_t *extent = base_array(code->cx, int32_t, type->n), at, of = graph_code_value(code, node->in[0]);

    if (of < 0)
        return emit_whole(code, node);
    bool fixed = offset && small_ints(type->dim, type->n, extent) && small_ints(offset->exprs, 1, &at);

    if (!fixed && (!graph_code_numbers(code, type->dim, type->n, extent) ||
                   (offset && (at = graph_code_number(code, offset->exprs[0])) < 0)))
        return false;
    int32_t reg = graph_code_define(code, node->out[0]);
    GRAPH_CODE(code, fixed ? RT_ALLOC_TENSOR : offset ? RT_ALLOC_TENSOR_REG : RT_RESHAPE_TENSOR, reg, of);
    if (offset)
        graph_code_put(code, at);
    graph_code_list(code, extent, type->n);
    if (offset && !is_read_behind(body, index, node->in[0]) && !waits_for_end(code, body, index, node->in[0]))
        graph_code_free(code, of);
    return true;
}

/* A kernel with the values of its symbols and its arguments, which the node lists in the kernel's order. The
 * kernel is found by name, which the verifier has looked up before. */
static bool emit_invoke(graph_code *code, const graph_node *node)
{
    const op_attr *dims = graph_attribute(node, "dims");
    int n = dims ? dims->n : 0, kernel = 0;
    int32_t *symbol = base_array(code->cx, int32_t, n),
            *arg = graph_code_arguments(code, node->in, node->n_in);

    while (!base_same(((const graph_kernel_type *)code->m->kernels.at[kernel])->name, node->callee))
        kernel++;
    if (!graph_code_numbers(code, dims ? dims->exprs : NULL, n, symbol))
        return false;
    GRAPH_CODE(code, RT_INVOKE_PACKED, kernel);
    graph_code_list(code, symbol, n);
    graph_code_list(code, arg, node->n_in);
    return true;
}

/* ---- values ---- */

static void put_adt(graph_code *code, const graph_node *node, int which)
{
    int32_t *part = graph_code_values(code, node->in, node->n_in),
            reg = graph_code_define(code, node->out[0]);

    GRAPH_CODE(code, RT_ALLOC_ADT, reg, which);
    graph_code_list(code, part, node->n_in);
}

/* Constructors are told apart at run time by their position in the data type, which is the tag. */
static void emit_construct(graph_code *code, const graph_node *node)
{
    int which = 0;

    graph_find_case(graph_find_data(code->m, node->out[0]->compound->data), node->callee, &which);
    put_adt(code, node, which);
}

/* Only tuples have fields outside of a match, and a tuple's tag is 0: the instruction checks it. */
static void emit_field(graph_code *code, const graph_node *node)
{
    int32_t of = graph_code_value(code, node->in[0]), reg = graph_code_define(code, node->out[0]);

    graph_code_field(code, reg, of, 0, (int)graph_attribute(node, "index")->i);
}

/* Functions are numbered as in the module: bodies may call functions whose code does not exist yet. */
static int function_index(const graph_code *code, const char *name)
{
    int i = 0;

    while (!base_same(((const graph_function *)code->m->functions.at[i])->name, name))
        i++;
    return i;
}

static void emit_closure(graph_code *code, const graph_node *node)
{
    int32_t *given = graph_code_values(code, node->in, node->n_in),
            reg = graph_code_define(code, node->out[0]);

    GRAPH_CODE(code, RT_ALLOC_CLOSURE, reg, function_index(code, node->callee));
    graph_code_list(code, given, node->n_in);
}

/* The first operand's register is extended, and is the result's from here on: nobody reads the operand
 * any more. */
static void emit_append(graph_code *code, const graph_node *node)
{
    int32_t *in = graph_code_values(code, node->in, node->n_in), to = in[0];

    GRAPH_CODE(code, RT_APPEND, in[0], in[0], in[1]);
    if (code->unoptimised) {
        to = graph_code_define(code, node->out[0]);
        GRAPH_CODE(code, RT_MOVE, to, in[0], RT_FREE_TENSOR, in[0]);
    }
    graph_code_bind(code, node->out[0], to);
}

/* A condition that constants alone decide needs no test: nothing is left of one that holds, and one that
 * does not hold ends the run here. The verifier of bytecode knows that
 * nothing behind `fatal` is reached. */
static void emit_check(graph_code *code, const graph_node *node)
{
    const op_constant *known = node->in[0]->constant;
    const char *text =
        base_format(code->cx, "'%s': %s", node->name, graph_attribute(node, "message")->string);

    if (known && *(const uint8_t *)known->data)
        return;
    if (known) {
        GRAPH_CODE(code, RT_FATAL, graph_code_text(code, text));
        return;
    }
    int32_t reg = graph_code_scalar(code, node->in[0]);
    GRAPH_CODE(code, RT_CHECK, reg, graph_code_text(code, text));
}

/* Each element as a number, in a register of its symbol. */
static void emit_extents(graph_code *code, const graph_node *node)
{
    tec_context *cx = code->cx;
    const op_type *type = &node->in[0]->type;
    graph_type element = graph_tensor_type(&(op_type){.dtype = type->dtype});
    int32_t of = graph_code_value(code, node->in[0]), row = of;

    for (int i = 0; i < node->n_symbols; i++) {
        int32_t number = graph_code_new_number(code);

        if (type->n == 1) {
            row = graph_code_register(code, graph_code_type(code, &element));
            GRAPH_CODE(code, RT_ROW, row, of, graph_code_number(code, ir_int(cx, i)));
        }
        GRAPH_CODE(code, RT_SCALAR, number, row);
        if (type->n == 1)
            graph_code_free(code, row);
        graph_code_bind(code, node->symbol[i], number);
        graph_code_require(code, ir_ge(cx, node->symbol[i], ir_int(cx, 0)),
                           base_format(cx, "'%s': element %d is negative", node->name, i));
    }
}

/* A call, or the application of a function value, whose first operand is the function. With `tail`, which
 * only a call has (is_last), no results are defined: the called function returns to this one's caller, in
 * this one's frame, so a recursion of any depth that ends in a call needs one frame. */
static void emit_call(graph_code *code, const graph_node *node, bool tail)
{
    bool apply = node->kind == GRAPH_APPLY;
    int32_t *in = graph_code_values(code, node->in, node->n_in),
            *out = base_array(code->cx, int32_t, node->n_out);

    for (int k = 0; k < node->n_out && !tail; k++)
        out[k] = graph_code_define(code, node->out[k]);
    if (tail)
        graph_code_end_frame(code);
    GRAPH_CODE(code,
               tail    ? RT_TAIL
               : apply ? RT_INVOKE_CLOSURE
                       : RT_INVOKE,
               apply ? in[0] : function_index(code, node->callee));
    graph_code_list(code, in + apply, node->n_in - apply);
    if (!tail)
        graph_code_list(code, out, node->n_out);
}

/* ---- regions ---- */

/* Whether the value belongs to a node of the body itself, not to one around it. An input of a match's region
 * has no node: as an output it keeps its register until the function returns. */
static bool makes(const graph_body *body, const graph_value *value)
{
    for (int i = 0; i < body->nodes.n && value->node; i++)
        if (body->nodes.at[i] == value->node)
            return true;
    return false;
}

/* The outputs go to the registers of the node around. A register that the region made is let go, or its value
 * would stay in memory until the function returns, though the node's result is read no more. A value from
 * outside stays with its own register; one that is two outputs is let go once:
 *
 *     output v6, v6          r9 = move r4    r10 = move r4    free r4
 */
static void put_outputs(graph_code *code, const graph_body *body, const int32_t *to)
{
    int n = body->outputs.n;
    int32_t *from = graph_code_values(code, (graph_value *const *)body->outputs.at, n);

    for (int k = 0; k < n; k++) {
        GRAPH_CODE(code, RT_MOVE, to[k], from[k]);
    }
    for (int k = 0; k < n; k++) {
        bool again = false;

        for (int i = 0; i < k; i++)
            again = again || from[i] == from[k];
        if (!again && makes(body, body->outputs.at[k]))
            graph_code_free(code, from[k]);
    }
}

/* The fields of a value by constructor `which` that the region uses. A field that nobody reads is fetched all
 * the same where it tells a symbol that has no register yet. */
static void put_fields(graph_code *code, const graph_body *body, int32_t of, int which)
{
    for (int k = 0; k < body->inputs.n; k++) {
        const graph_value *value = body->inputs.at[k];
        graph_type t = graph_type_of(value);

        if (graph_uses(&code->uses, value) == 0 && graph_type_each(&t, graph_code_is_bound, code))
            continue;
        graph_code_field(code, graph_code_define(code, value), of, which, k);
        graph_code_bind_symbols(code, &t, graph_code_register_of(code, value));
    }
}

/* The registers of the node's results, made before the regions: each region moves its outputs there. None
 * with `tail`, where regions return by themselves. */
static int32_t *results(graph_code *code, const graph_node *node, bool tail)
{
    int32_t *to = base_array(code->cx, int32_t, node->n_out);

    for (int k = 0; k < node->n_out && !tail; k++)
        to[k] = graph_code_define(code, node->out[k]);
    return to;
}

/* One region behind another. The places where each begins are filled into the words `jump`. */
static bool emit_regions(graph_code *code, const graph_node *node, int32_t of, const int *jump, bool tail)
{
    int32_t *to = results(code, node, tail);
    int *ends = base_array(code->cx, int, node->n_bodies);
    int n_known = code->known.n;

    for (int b = 0; b < node->n_bodies; b++) {
        graph_code_land(code, jump[b]);
        if (node->kind == GRAPH_MATCH)
            put_fields(code, node->body[b], of, b);
        if (!graph_code_body(code, node->body[b], tail, to))
            return false;
        if (!BASE_PLANT_ON(code->cx, code_known))
            code->known.n = n_known;
        if (!tail && b + 1 < node->n_bodies) {
            graph_code_put(code, RT_GOTO);
            ends[b] = graph_code_put(code, 0);
        }
    }
    for (int b = 0; b + 1 < node->n_bodies && !tail; b++)
        graph_code_land(code, ends[b]);
    return true;
}

/* `if`: both words behind the condition are places in the code, filled in when the regions are written: the
 * then-region's first. */
static bool emit_if(graph_code *code, const graph_node *node, bool tail)
{
    int32_t condition = graph_code_scalar(code, node->in[0]);
    int jump[2];

    GRAPH_CODE(code, RT_IF, condition);
    bool exchanged = BASE_PLANT_ON(code->cx, code_branch);
    jump[exchanged] = graph_code_put(code, 0);
    jump[!exchanged] = graph_code_put(code, 0);
    return emit_regions(code, node, -1, jump, tail);
}

/* One place for each constructor, chosen by the tag of the value. */
static bool emit_match(graph_code *code, const graph_node *node, bool tail)
{
    int32_t of = graph_code_value(code, node->in[0]), tag = graph_code_new_number(code);
    int *jump = base_array(code->cx, int, node->n_bodies);

    GRAPH_CODE(code, RT_GET_TAG, tag, of, RT_SWITCH, tag, node->n_bodies);
    for (int b = 0; b < node->n_bodies; b++)
        jump[b] = graph_code_put(code, 0);
    return emit_regions(code, node, of, jump, tail);
}

/* ---- nodes ---- */

/* The instructions of one node; `tail`: its results are those of the function. */
static bool emit_node(graph_code *code, const graph_body *body, int index, bool tail)
{
    const graph_node *node = body->nodes.at[index];

    graph_code_line(code, node->loc);
    switch (node->kind) {
    case GRAPH_ALLOC_STORAGE: emit_storage(code, body, index); break;
    case GRAPH_ALLOC_TENSOR: return emit_tensor(code, body, index);
    case GRAPH_INVOKE: return emit_invoke(code, node);
    case GRAPH_APPEND: emit_append(code, node); break;
    case GRAPH_KILL:
        if (!waits_for_end(code, body, index, node->in[0]))
            graph_code_free(code, graph_code_value(code, node->in[0]));
        break;
    case GRAPH_CALL:
    case GRAPH_APPLY: emit_call(code, node, tail); break;
    case GRAPH_IF: return emit_if(code, node, tail);
    case GRAPH_MATCH: return emit_match(code, node, tail);
    case GRAPH_MAKE_TUPLE: put_adt(code, node, 0); break;
    case GRAPH_FIELD: emit_field(code, node); break;
    case GRAPH_CONSTRUCT: emit_construct(code, node); break;
    case GRAPH_CLOSURE: emit_closure(code, node); break;
    case GRAPH_CHECK: emit_check(code, node); break;
    case GRAPH_EXTENTS: emit_extents(code, node); break;
    case GRAPH_LOOP: return graph_code_loop(code, node);
    case GRAPH_SCAN: return graph_code_scan(code, node);
    case GRAPH_OP:
    case GRAPH_GROUP:
    case GRAPH_PACK:
    case GRAPH_DEVICE_COPY:
        BASE_BUG(code->cx, "'%s' is not a node of a planned program", node->name);
        return false;
    }
    return !base_failed(code->cx);
}

/* Whether one of the facts waits for a symbol that the node defines. */
static bool is_awaited(const graph_code *code, const graph_node *node, const base_vec *facts)
{
    for (int i = 0; i < facts->n; i++) {
        base_vec vars = {0};

        ir_free_vars(code->cx, facts->at[i], &vars);
        for (int k = 0; k < vars.n; k++)
            for (int s = 0; s < node->n_symbols; s++)
                if (vars.at[k] == node->symbol[s])
                    return true;
    }
    return false;
}

/* Whether the node's results are the body's, with nothing to do behind it but to end lifetimes: no fact about
 * its results either. */
static bool is_last(const graph_code *code, const graph_body *body, int index, const base_vec *facts)
{
    const graph_node *node = body->nodes.at[index];

    if (code->unoptimised || is_awaited(code, node, facts))
        return false;
    if (node->kind != GRAPH_CALL && node->kind != GRAPH_IF && node->kind != GRAPH_MATCH)
        return false;
    if (node->n_out != body->outputs.n)
        return false;
    if (BASE_PLANT_ON(code->cx, code_tail))
        return true;
    for (int k = 0; k < node->n_out; k++)
        if (body->outputs.at[k] != node->out[k])
            return false;
    while (++index < body->nodes.n)
        if (((const graph_node *)body->nodes.at[index])->kind != GRAPH_KILL)
            return false;
    return true;
}

/* Whether a node neither calls a function nor has regions. */
static bool is_straight(const graph_node *node)
{
    return node->kind != GRAPH_CALL && node->kind != GRAPH_APPLY && node->n_bodies == 0;
}

/* The first node from which on the body is straight code to its end, which is near. */
static int straight_from(const graph_body *body)
{
    enum { NEAR = 64 };
    int i = body->nodes.n;

    while (i > 0 && body->nodes.n - i < NEAR && is_straight(body->nodes.at[i - 1]))
        i--;
    return i;
}

/* Behind the last node of a function. Constants that are results are loaded here, at the latest. */
static void put_return(graph_code *code, const graph_body *body)
{
    int32_t *reg = graph_code_values(code, (graph_value *const *)body->outputs.at, body->outputs.n);

    graph_code_end_frame(code);
    graph_code_put(code, RT_RET);
    graph_code_list(code, reg, body->outputs.n);
}

/* tail: the body's results are the function's; otherwise they go to the registers `to`. Facts are checked at
 * the first place where all their symbols have values, which is at the start or behind the node that gave the
 * last of them; a last node with `tail` gives none that anybody could read. */
bool graph_code_body(graph_code *code, const graph_body *body, bool tail, const int32_t *to)
{
    base_vec facts = {body->facts.at, body->facts.n, body->facts.n};
    int straight = straight_from(body);

    if (!graph_code_check_facts(code, &facts))
        return false;
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        bool last = tail && is_last(code, body, i, &facts);

        code->ends = tail && i >= straight;
        if (!emit_node(code, body, i, last))
            return false;
        if (last)
            return true;
        for (int k = 0; k < node->n_out && node->n_symbols; k++) {
            graph_type t = graph_type_of(node->out[k]);

            graph_code_bind_symbols(code, &t, graph_code_register_of(code, node->out[k]));
        }
        if (node->n_symbols && !graph_code_check_facts(code, &facts))
            return false;
    }
    if (tail)
        put_return(code, body);
    else
        put_outputs(code, body, to);
    return !base_failed(code->cx);
}

/* ---- functions ---- */

/* Registers of the parameters and of the symbols that they tell. The entry also checks what its user gave. */
static bool emit_inputs(graph_code *code, const graph_function *function)
{
    base_vec facts = {code->m->facts.at, code->m->facts.n, code->m->facts.n};

    for (int k = 0; k < function->body->inputs.n; k++)
        graph_code_define(code, function->body->inputs.at[k]);
    for (int k = 0; k < function->body->inputs.n; k++) {
        const graph_value *value = function->body->inputs.at[k];
        graph_type t = graph_type_of(value);

        graph_code_parameter_line(code, k, function->body->inputs.n, value->loc);
        graph_code_bind_symbols(code, &t, k);
    }
    if (!graph_code_solve_symbols(code, function->body))
        return false;
    if (!function->body->entry)
        return true;
    for (int k = 0; k < function->body->inputs.n; k++) {
        const graph_value *value = function->body->inputs.at[k];
        graph_type t = graph_type_of(value);

        graph_code_line(code, value->loc);
        if (!graph_code_check_input(code, value->name ? value->name : "", &t, k))
            return false;
    }
    return graph_code_check_facts(code, &facts);
}

/* The routine outlives the tables of the emitter, which the next function starts afresh. */
static const int32_t *copy_words(graph_code *code, const graph_words *words)
{
    return base_copy(code->cx, words->at, (size_t)words->n * sizeof *words->at);
}

/* The items were allocated one by one while their number was unknown; the description wants an array. */
static void *flatten(tec_context *cx, const base_vec *vec, size_t size)
{
    char *all = base_alloc_array(cx, (size_t)vec->n, size);

    for (int i = 0; i < vec->n; i++)
        memcpy(all + (size_t)i * size, vec->at[i], size);
    return all;
}

/* Where the constructors of all data types are declared, in front of the places of the parameters; of what is
 * declared in another file, as the prelude is, no line is known. */
static void place_constructors(graph_code *code, const rt_program_desc *program, int n_params,
                               const char *file)
{
    int32_t last = 0;

    for (int i = 0; i < code->m->data.n; i++) {
        const graph_data *data = code->m->data.at[i];

        for (int k = 0; k < data->cases.n; k++) {
            base_loc loc = ((const graph_case *)data->cases.at[k])->loc;
            rt_line_desc *line = base_new(code->cx, rt_line_desc);

            *line = (rt_line_desc){graph_constructor_word(program, n_params, i, k),
                                   loc.file && base_same(loc.file, file) ? loc.line : 0};
            if (line->line != last)
                base_push(code->cx, &code->lines, line);
            last = line->line;
        }
    }
    if (last) {
        rt_line_desc *end = base_new(code->cx, rt_line_desc);

        *end = (rt_line_desc){-n_params, 0}; /* the first parameter takes its place */
        base_push(code->cx, &code->lines, end);
    }
}

/* The code of one function, with the types of its registers and the lines that it came from. `program` has
 * the data types alone. */
static bool emit_function(graph_code *code, const graph_function *function, const rt_program_desc *program,
                          rt_routine_desc *out)
{
    int n = function->body->inputs.n;
    const char **params = base_array(code->cx, const char *, n);
    int32_t *result = base_array(code->cx, int32_t, function->body->outputs.n);

    code->words = code->registers = (graph_words){0};
    code->freed = -1;
    code->lines = code->known = (base_vec){0};
    code->regs = code->uses = (base_map){0};
    graph_count_uses(code->cx, function->body, &code->uses);
    if (function->body->entry)
        place_constructors(code, program, n, graph_body_file(function->body));
    for (int k = 0; k < n; k++) {
        const graph_value *value = function->body->inputs.at[k];

        params[k] = value->name ? value->name : base_format(code->cx, "input%d", k);
    }
    for (int k = 0; k < function->body->outputs.n; k++) {
        graph_type t = graph_type_of(function->body->outputs.at[k]);

        result[k] = graph_code_type(code, &t);
    }
    if (!emit_inputs(code, function) || !graph_code_body(code, function->body, true, NULL))
        return false;
    *out = (rt_routine_desc){.name = function->name,
                             .file = graph_body_file(function->body),
                             .registers = copy_words(code, &code->registers),
                             .n_registers = code->registers.n,
                             .n_params = n,
                             .params = params,
                             .n_names = n,
                             .results = result,
                             .n_results = function->body->outputs.n,
                             .words = copy_words(code, &code->words),
                             .n_words = code->words.n,
                             .lines = flatten(code->cx, &code->lines, sizeof(rt_line_desc)),
                             .n_lines = code->lines.n};
    return true;
}

/* ---- the whole ---- */

/* May name data types that come later, even itself: a list's tail is a list. Types name data by number, so
 * the order does not matter. */
static void describe_data(graph_code *code, const graph_data *data, rt_data_desc *out)
{
    rt_constructor_desc *constructor = base_array(code->cx, rt_constructor_desc, data->cases.n);

    *out = (rt_data_desc){.name = data->name, .constructors = constructor, .n_constructors = data->cases.n};
    for (int i = 0; i < data->cases.n; i++) {
        const graph_case *from = data->cases.at[i];
        int32_t *fields = base_array(code->cx, int32_t, from->n);

        for (int k = 0; k < from->n; k++)
            fields[k] = graph_code_type(code, &from->field[k]);
        constructor[i] = (rt_constructor_desc){from->name, fields, from->n};
    }
}

/* Data types first, because the types of values name them; then each function; then the tables that these
 * filled. */
bool graph_describe_program(const graph_module *module, bool unoptimised, rt_module_desc *out)
{
    graph_code e = {.cx = module->cx, .m = module, .unoptimised = unoptimised};
    rt_data_desc *data = base_array(module->cx, rt_data_desc, module->data.n);
    rt_routine_desc *functions = base_array(module->cx, rt_routine_desc, module->functions.n);

    for (int i = 0; i < module->data.n; i++)
        describe_data(&e, module->data.at[i], &data[i]);
    for (int i = 0; i < module->functions.n; i++)
        if (!emit_function(&e, module->functions.at[i],
                           &(rt_program_desc){.data = data, .n_data = module->data.n}, &functions[i]))
            return false;
    out->constants = graph_describe_constants(module->cx, &e.constants);
    out->n_constants = e.constants.n;
    out->program = (rt_program_desc){.types = flatten(module->cx, &e.types, sizeof(rt_type_desc)),
                                     .n_types = e.types.n,
                                     .data = data,
                                     .n_data = module->data.n,
                                     .dims = flatten(module->cx, &e.dims, sizeof(rt_dim)),
                                     .n_dims = e.dims.n,
                                     .dim_symbols = e.dim_symbols.at,
                                     .n_dim_symbols = e.dim_symbols.n,
                                     .texts = (const char *const *)e.texts.at,
                                     .n_texts = e.texts.n,
                                     .functions = functions,
                                     .n_functions = module->functions.n};
    return true;
}