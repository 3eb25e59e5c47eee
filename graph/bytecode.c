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
#include "graph/bytecode.h"

#include <string.h>

#include "compiler/compiler.h"
#include "graph/node.h"
#include "graph/pass.h"
#include "graph/rules.h"
#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"

/* 32-bit words that grow. */
typedef struct {
    int32_t *at;
    int n, cap;
} words;

/* What a register was computed from: an expression, or a constant that was loaded. */
typedef struct {
    const void *what;
    int32_t reg;
} known;

typedef struct {
    tec_context *cx;
    const graph_module *m;
    base_dict type_index, dim_index, text_index; /* key -> index + 1 */
    base_vec types, dims, texts;                 /* rt_type_desc *, rt_dim *, char * */
    words dim_symbols;
    base_vec constants; /* graph_value * */
    /* of the function that is written */
    words code, registers;
    base_vec lines; /* rt_line_desc * */
    base_map regs;  /* graph_value *, ir_expr * (symbols) -> register + 1 */
    base_vec known; /* known *: what is in a register here; inner regions behind */
    base_map uses;  /* of values */
} emitter;

/* ---- words ---- */

/* Appends one word to a table and gives the word's place there, which a caller keeps where the word is filled
 * in later. The words move when the table grows: places are numbers, never pointers. */
static int put_word(emitter *e, words *w, int32_t word)
{
    if (w->n == w->cap) {
        int32_t *larger = base_array(e->cx, int32_t, w->cap ? 2 * w->cap : 64);

        if (w->n)
            memcpy(larger, w->at, (size_t)w->n * sizeof *larger);
        w->at = larger;
        w->cap = w->cap ? 2 * w->cap : 64;
    }
    w->at[w->n] = word;
    return w->n++;
}

static int put(emitter *e, int32_t word)
{
    return put_word(e, &e->code, word);
}

static void put_list(emitter *e, const int32_t *reg, int n)
{
    put(e, n);
    for (int i = 0; i < n; i++)
        put(e, reg[i]);
}

/* The first instruction that came from a line of the model; the lines between two entries belong to the first
 * of them. Nodes without a place add nothing, so their instructions count as the line before. */
static void put_line(emitter *e, base_loc loc)
{
    const rt_line_desc *last = e->lines.n ? e->lines.at[e->lines.n - 1] : NULL;
    rt_line_desc *l;

    if (loc.line <= 0 || (last && last->line == loc.line))
        return;
    l = base_new(e->cx, rt_line_desc);
    *l = (rt_line_desc){e->code.n, loc.line};
    base_push(e->cx, &e->lines, l);
}

/* The place of a jump is told later. */
static void land(emitter *e, int word)
{
    e->code.at[word] = e->code.n;
}

/* ---- tables ---- */

/* The number of the item with this key, which is added where no item has the key yet. The dictionary holds
 * numbers + 1, since its answer for an unknown key is 0. `item` must not change afterwards: all that have the
 * same key share the first. */
static int32_t intern(emitter *e, base_dict *index, base_vec *items, const char *key, const void *item)
{
    intptr_t found = (intptr_t)base_dict_get(index, key);

    if (found)
        return (int32_t)found - 1;
    base_push(e->cx, items, item);
    base_dict_put(e->cx, index, key, (void *)(intptr_t)items->n);
    return items->n - 1;
}

static int32_t text_index(emitter *e, const char *text)
{
    return intern(e, &e->text_index, &e->texts, text, text);
}

/* The verifier has seen that the data type exists, so the search needs no end. */
static int32_t data_index(const emitter *e, const char *name)
{
    int32_t i = 0;

    while (!base_same(((const graph_data *)e->m->data.at[i])->name, name))
        i++;
    return i;
}

static int32_t plain_type(emitter *e, rt_type_kind kind)
{
    rt_type_desc *t = base_new(e->cx, rt_type_desc);

    t->kind = kind;
    return intern(e, &e->type_index, &e->types, kind == RT_TYPE_NUMBER ? "number" : "storage", t);
}

static int32_t type_index(emitter *e, const graph_type *t);

/* Element type and extents, unknown ones as -1; the same goes to the key that finds the type again. */
static void describe_tensor(emitter *e, rt_type_desc *out, const op_type *t, base_text *key)
{
    int64_t *extents = base_array(e->cx, int64_t, t->n);
    char text[24];

    out->dtype = t->dtype;
    out->rank = t->n;
    out->extents = extents;
    base_addf(e->cx, key, "tensor %s", base_dtype_print(t->dtype, text, sizeof text));
    for (int d = 0; d < t->n; d++) {
        if (!ir_is_int(t->dim[d], &extents[d]))
            extents[d] = -1;
        base_addf(e->cx, key, " %lld", (long long)extents[d]);
    }
}

/* The number of a type in the table; its parts get theirs first, because a type stands behind its parts. */
static int32_t type_index(emitter *e, const graph_type *t)
{
    rt_type_desc *out = base_new(e->cx, rt_type_desc);
    int32_t *parts = base_array(e->cx, int32_t, t->n);
    base_text key = {0};

    switch (t->kind) {
    case GRAPH_TENSOR:
        out->kind = RT_TYPE_TENSOR;
        describe_tensor(e, out, &t->tensor, &key);
        break;
    case GRAPH_DATA:
        out->kind = RT_TYPE_DATA;
        out->data = data_index(e, t->data);
        base_addf(e->cx, &key, "data %d", (int)out->data);
        break;
    case GRAPH_TUPLE:
    case GRAPH_FUNCTION:
        out->kind = t->kind == GRAPH_TUPLE ? RT_TYPE_TUPLE : RT_TYPE_FUNCTION;
        out->n_parts = t->n;
        out->n_params = t->kind == GRAPH_FUNCTION ? t->n_params : 0;
        out->parts = parts;
        base_addf(e->cx, &key, "parts %d %d", (int)out->kind, (int)out->n_params);
        for (int k = 0; k < t->n; k++)
            base_addf(e->cx, &key, " %d", (int)(parts[k] = type_index(e, &t->part[k])));
        break;
    }
    return intern(e, &e->type_index, &e->types, base_text_str(e->cx, &key), out);
}

/* Constants are told apart as values: two with equal bytes stay two. */
static int32_t constant_index(emitter *e, const graph_value *v)
{
    for (int i = 0; i < e->constants.n; i++)
        if (e->constants.at[i] == v)
            return i;
    base_push(e->cx, &e->constants, v);
    return e->constants.n - 1;
}

/* ---- registers ---- */

/* The register's number is the place of its type in the table of registers: both tables grow together. */
static int32_t new_register(emitter *e, int32_t type)
{
    return put_word(e, &e->registers, type);
}

static int32_t new_number(emitter *e)
{
    return new_register(e, plain_type(e, RT_TYPE_NUMBER));
}

/* -1: the value or symbol has none so far. The map holds number + 1, since 0 is its answer for "not
 * there". */
static int32_t register_of(const emitter *e, const void *what)
{
    return (int32_t)(intptr_t)base_map_get(&e->regs, what) - 1;
}

static void bind(emitter *e, const void *what, int32_t reg)
{
    base_map_put(e->cx, &e->regs, what, (void *)((intptr_t)reg + 1));
}

/* A register for a value that the next instruction makes. */
static int32_t define(emitter *e, const graph_value *v)
{
    graph_type t = graph_type_of(v);
    int32_t reg = new_register(e, type_index(e, &t));

    bind(e, v, reg);
    return reg;
}

/* Notes what the register holds from this instruction on, on every path that comes here. What a region adds
 * is forgotten behind it (emit_regions), since the other regions and the code behind are reached without it:
 *
 *     if "if"(v3) { ... n*4 computed into r7 ... } { ... n*4 again: r7 holds nothing on this path ... }
 */
static void remember(emitter *e, const void *what, int32_t reg)
{
    known *k = base_new(e->cx, known);

    *k = (known){what, reg};
    base_push(e->cx, &e->known, k);
}

/* The latest first. -1: not in a register here. */
static int32_t remembered(const emitter *e, const void *what)
{
    for (int i = e->known.n - 1; i >= 0; i--)
        if (((const known *)e->known.at[i])->what == what)
            return ((const known *)e->known.at[i])->reg;
    return -1;
}

/* The register that holds the value. A constant is loaded where it is first used in the region at hand. */
static int32_t value(emitter *e, const graph_value *v)
{
    if (!v->constant)
        return register_of(e, v);
    int32_t reg = remembered(e, v);
    if (reg < 0) {
        graph_type t = graph_type_of(v);

        reg = new_register(e, type_index(e, &t));
        put(e, RT_LOAD_CONST);
        put(e, reg);
        put(e, constant_index(e, v));
        remember(e, v, reg);
    }
    return reg;
}

/* All are put into registers before the caller writes its own opcode: loading a constant is an instruction,
 * which must not land between the words of another. */
static int32_t *values(emitter *e, graph_value *const *v, int n)
{
    int32_t *reg = base_array(e->cx, int32_t, n);

    for (int i = 0; i < n; i++)
        reg[i] = value(e, v[i]);
    return reg;
}

/* ---- extents ---- */

/* Dimension code over registers. -1 with an error. */
static int32_t compute(emitter *e, const ir_expr *x)
{
    base_vec vars = {0};
    base_text key = {0};
    rt_dim *d = base_new(e->cx, rt_dim);

    ir_free_vars(e->cx, x, &vars);
    for (int i = 0; i < vars.n; i++)
        if (register_of(e, vars.at[i]) < 0) {
            base_fail(e->cx, TEC_UNSUPPORTED, x->loc, "the extent '%s' is not known where it is needed",
                      ((const ir_expr *)vars.at[i])->var.name);
            return -1;
        }
    if (!comp_dim(e->cx, x, (const ir_expr *const *)vars.at, vars.n, d))
        return -1;
    base_addf(e->cx, &key, "%d", vars.n);
    for (int i = 0; i < d->n; i++)
        base_addf(e->cx, &key, " %lld", (long long)d->word[i]);
    int32_t before = e->dims.n, index = intern(e, &e->dim_index, &e->dims, base_text_str(e->cx, &key), d);
    if (e->dims.n > before)
        put_word(e, &e->dim_symbols, vars.n);
    int32_t reg = new_number(e);
    put(e, RT_DIM);
    put(e, reg);
    put(e, index);
    put(e, vars.n);
    for (int i = 0; i < vars.n; i++)
        put(e, register_of(e, vars.at[i]));
    return reg;
}

/* A register with the value of an extent: a symbol's own, one computed before, or a new one. -1 with an
 * error. */
static int32_t number(emitter *e, const ir_expr *x)
{
    int32_t reg = register_of(e, x);
    int64_t n;

    if (reg >= 0 || (reg = remembered(e, x)) >= 0)
        return reg;
    if (ir_is_int(x, &n) && n >= INT32_MIN && n <= INT32_MAX) {
        reg = new_number(e);
        put(e, RT_LOAD_CONSTI);
        put(e, reg);
        put(e, (int32_t)n);
    } else {
        reg = compute(e, x);
    }
    if (reg >= 0)
        remember(e, x, reg);
    return reg;
}

/* Those before the first failure may have been computed; the caller gives up, so nobody minds. */
static bool numbers(emitter *e, const ir_expr *const *x, int n, int32_t *reg)
{
    for (int i = 0; i < n; i++)
        if ((reg[i] = number(e, x[i])) < 0)
            return false;
    return true;
}

static void put_extent(emitter *e, int32_t to, int32_t tensor, int axis)
{
    put(e, RT_EXTENT);
    put(e, to);
    put(e, tensor);
    put(e, axis);
}

static void put_field(emitter *e, int32_t to, int32_t of, int which, int field)
{
    put(e, RT_GET_FIELD);
    put(e, to);
    put(e, of);
    put(e, which);
    put(e, field);
}

/* ---- symbols ---- */

/* A hook for each tensor of a type: it stops the walk, with false, at the first symbol that has no register.
 * So "each" gives true where nothing is left to bind. */
static bool is_unbound(void *user, const op_type *t)
{
    for (int d = 0; d < t->n; d++)
        if (t->dim[d]->op == IR_VAR && register_of(user, t->dim[d]) < 0)
            return false;
    return true;
}

/* Symbols without a register so far get one from the extents of the value in `reg`. */
static void bind_symbols(emitter *e, const graph_type *t, int32_t reg)
{
    if (graph_type_each(t, is_unbound, e))
        return;
    for (int d = 0; t->kind == GRAPH_TENSOR && d < t->tensor.n; d++)
        if (t->tensor.dim[d]->op == IR_VAR && register_of(e, t->tensor.dim[d]) < 0) {
            int32_t extent = new_number(e);

            put_extent(e, extent, reg, d);
            bind(e, t->tensor.dim[d], extent);
        }
    for (int k = 0; t->kind == GRAPH_TUPLE && k < t->n; k++) {
        if (graph_type_each(&t->part[k], is_unbound, e))
            continue;
        int32_t part = new_register(e, type_index(e, &t->part[k]));

        put_field(e, part, reg, 0, k);
        bind_symbols(e, &t->part[k], part);
        put(e, RT_FREE_TENSOR);
        put(e, part);
    }
}

/* A fact over symbols that get their values at different nodes waits for the last of them. */
static bool all_bound(const emitter *e, const ir_expr *x)
{
    base_vec vars = {0};

    ir_free_vars(e->cx, x, &vars);
    for (int i = 0; i < vars.n; i++)
        if (register_of(e, vars.at[i]) < 0)
            return false;
    return true;
}

/* Writes nothing for a condition that is true already. The text is what the user sees when the condition does
 * not hold while the program runs. */
static bool put_check(emitter *e, const ir_expr *condition, const char *text)
{
    int64_t holds;
    int32_t reg;

    if (ir_is_int(condition, &holds) && holds)
        return true;
    reg = compute(e, condition);
    put(e, RT_CHECK);
    put(e, reg);
    put(e, text_index(e, text));
    return reg >= 0;
}

/* Facts whose symbols all have registers now; the others stay in the list. */
static bool check_facts(emitter *e, base_vec *facts)
{
    base_vec later = {0};

    for (int i = 0; i < facts->n; i++) {
        const ir_expr *fact = facts->at[i];

        if (!all_bound(e, fact))
            base_push(e->cx, &later, fact);
        else if (!put_check(e, fact, base_format(e->cx, "'%s' does not hold", ir_expr_text(e->cx, fact))))
            return false;
    }
    *facts = later;
    return true;
}

/* A user's value: each extent that is no number has the value that its symbols say. `n` was told by the first
 * input that has it, so an input a: f32[n] checks nothing new by itself, and b: f32[n, 2*n] has its first
 * extent compared with a's n and its second with twice that. Numbers were compared with the value's type
 * before the first instruction ran. Fields of a tuple are fetched, checked and let go again one by one. */
static bool check_input(emitter *e, const char *name, const graph_type *t, int32_t reg)
{
    int64_t n;

    for (int d = 0; t->kind == GRAPH_TENSOR && d < t->tensor.n; d++) {
        if (ir_is_int(t->tensor.dim[d], &n))
            continue;
        const ir_expr *found = ir_var(e->cx, "found", BASE_I64);
        int32_t extent = new_number(e);

        put_extent(e, extent, reg, d);
        bind(e, found, extent);
        if (!put_check(e, ir_eq(e->cx, t->tensor.dim[d], found),
                       base_format(e->cx, "input '%s': expected %s", name, graph_type_text(e->cx, t))))
            return false;
    }
    for (int k = 0; t->kind == GRAPH_TUPLE && k < t->n; k++) {
        int32_t part = new_register(e, type_index(e, &t->part[k]));

        put_field(e, part, reg, 0, k);
        if (!check_input(e, name, &t->part[k], part))
            return false;
        put(e, RT_FREE_TENSOR);
        put(e, part);
    }
    return true;
}

/* ---- memory and kernels ---- */

static void emit_storage(emitter *e, const graph_node *node)
{
    int32_t bytes = number(e, node->out[0]->type.dim[0]),
            reg = new_register(e, plain_type(e, RT_TYPE_STORAGE));

    bind(e, node->out[0], reg);
    put(e, RT_ALLOC_STORAGE);
    put(e, reg);
    put(e, bytes);
    put(e, 0);
}

/* Whether all fit a word of the code as they are: then the instruction with fixed extents does, and no
 * register is spent on numbers. */
static bool small_ints(const ir_expr *const *x, int n, int32_t *out)
{
    int64_t value;

    for (int i = 0; i < n; i++) {
        if (!ir_is_int(x[i], &value) || value < 0 || value > INT32_MAX)
            return false;
        out[i] = (int32_t)value;
    }
    return true;
}

/* In this body: a storage is never read inside of a region, where tensors have storages of their own. */
static bool is_read_behind(const graph_body *body, int i, const graph_value *v)
{
    for (i++; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] == v)
                return true;
    }
    return false;
}

/* In a storage; the storage's own register is done with when no other tensor lies there. */
static bool emit_tensor(emitter *e, const graph_body *body, int i)
{
    const graph_node *node = body->nodes.at[i];
    const op_attr *offset = graph_attribute(node, "offset");
    const op_type *t = &node->out[0]->type;
    int32_t *extent = base_array(e->cx, int32_t, t->n), at, of = value(e, node->in[0]);
    bool fixed = offset && small_ints(t->dim, t->n, extent) && small_ints(offset->exprs, 1, &at);

    if (!fixed && (!numbers(e, t->dim, t->n, extent) || (offset && (at = number(e, offset->exprs[0])) < 0)))
        return false;
    int32_t reg = define(e, node->out[0]);
    put(e, fixed ? RT_ALLOC_TENSOR : offset ? RT_ALLOC_TENSOR_REG : RT_RESHAPE_TENSOR);
    put(e, reg);
    put(e, of);
    if (offset)
        put(e, at);
    put_list(e, extent, t->n);
    if (offset && !is_read_behind(body, i, node->in[0])) {
        put(e, RT_FREE_STORAGE);
        put(e, of);
    }
    return true;
}

/* A kernel with the values of its symbols and its arguments, which the node lists in the kernel's order. The
 * kernel is found by name, which the verifier has looked up before. */
static bool emit_invoke(emitter *e, const graph_node *node)
{
    const op_attr *dims = graph_attribute(node, "dims");
    int n = dims ? dims->n : 0, kernel = 0;
    int32_t *symbol = base_array(e->cx, int32_t, n), *arg = values(e, node->in, node->n_in);

    while (!base_same(((const graph_kernel_type *)e->m->kernels.at[kernel])->name, node->callee))
        kernel++;
    if (!numbers(e, dims ? dims->exprs : NULL, n, symbol))
        return false;
    put(e, RT_INVOKE_PACKED);
    put(e, kernel);
    put_list(e, symbol, n);
    put_list(e, arg, node->n_in);
    return true;
}

/* ---- values ---- */

static void put_adt(emitter *e, const graph_node *node, int which)
{
    int32_t *part = values(e, node->in, node->n_in), reg = define(e, node->out[0]);

    put(e, RT_ALLOC_ADT);
    put(e, reg);
    put(e, which);
    put_list(e, part, node->n_in);
}

/* Constructors are told apart at run time by their position in the data type, which is the tag. */
static void emit_construct(emitter *e, const graph_node *node)
{
    int which = 0;

    graph_find_case(graph_find_data(e->m, node->out[0]->compound->data), node->callee, &which);
    put_adt(e, node, which);
}

/* Only tuples have fields outside of a match, and a tuple's tag is 0: the instruction checks it. */
static void emit_field(emitter *e, const graph_node *node)
{
    int32_t of = value(e, node->in[0]), reg = define(e, node->out[0]);

    put_field(e, reg, of, 0, (int)graph_attribute(node, "index")->i);
}

/* Functions are numbered as in the module: bodies may call functions whose code does not exist yet. */
static int function_index(const emitter *e, const char *name)
{
    int i = 0;

    while (!base_same(((const graph_function *)e->m->functions.at[i])->name, name))
        i++;
    return i;
}

static void emit_closure(emitter *e, const graph_node *node)
{
    int32_t *given = values(e, node->in, node->n_in), reg = define(e, node->out[0]);

    put(e, RT_ALLOC_CLOSURE);
    put(e, reg);
    put(e, function_index(e, node->callee));
    put_list(e, given, node->n_in);
}

/* A number register with the value of a scalar tensor: jumps and checks read numbers, not tensors. */
static int32_t scalar(emitter *e, const graph_value *v)
{
    int32_t of = value(e, v), reg = new_number(e);

    put(e, RT_SCALAR);
    put(e, reg);
    put(e, of);
    return reg;
}

static void emit_check(emitter *e, const graph_node *node)
{
    int32_t reg = scalar(e, node->in[0]);

    put(e, RT_CHECK);
    put(e, reg);
    put(e,
        text_index(e, base_format(e->cx, "'%s': %s", node->name, graph_attribute(node, "message")->string)));
}

/* A call, or the application of a function value, whose first operand is the function. With `tail`, which
 * only a call has (is_last), no results are defined: the called function returns to this one's caller, in
 * this one's frame, so a recursion of any depth that ends in a call needs one frame. */
static void emit_call(emitter *e, const graph_node *node, bool tail)
{
    bool apply = node->kind == GRAPH_APPLY;
    int32_t *in = values(e, node->in, node->n_in), *out = base_array(e->cx, int32_t, node->n_out);

    for (int k = 0; k < node->n_out && !tail; k++)
        out[k] = define(e, node->out[k]);
    put(e, tail ? RT_TAIL : apply ? RT_INVOKE_CLOSURE : RT_INVOKE);
    put(e, apply ? in[0] : function_index(e, node->callee));
    put_list(e, in + apply, node->n_in - apply);
    if (!tail)
        put_list(e, out, node->n_out);
}

/* ---- regions ---- */

static bool emit_body(emitter *e, const graph_body *body, bool tail, const int32_t *to);

/* Whether the value belongs to a node of the body itself, not to one around it. An input of a match's region
 * has no node: as an output it keeps its register until the function returns. */
static bool makes(const graph_body *body, const graph_value *v)
{
    for (int i = 0; i < body->nodes.n && v->node; i++)
        if (body->nodes.at[i] == v->node)
            return true;
    return false;
}

/* The outputs go to the registers of the node around. A register that the region made is let go, or its value
 * would stay in memory until the function returns, though the node's result is read no more. A value from
 * outside stays with its own register; one that is two outputs is let go once:
 *
 *     output v6, v6          r9 = move r4    r10 = move r4    free r4
 */
static void put_outputs(emitter *e, const graph_body *body, const int32_t *to)
{
    int n = body->outputs.n;
    int32_t *from = values(e, (graph_value *const *)body->outputs.at, n);

    for (int k = 0; k < n; k++) {
        put(e, RT_MOVE);
        put(e, to[k]);
        put(e, from[k]);
    }
    for (int k = 0; k < n; k++) {
        bool again = false;

        for (int i = 0; i < k; i++)
            again = again || from[i] == from[k];
        if (!again && makes(body, body->outputs.at[k])) {
            put(e, RT_FREE_TENSOR);
            put(e, from[k]);
        }
    }
}

/* The fields of a value by constructor `which` that the region uses. A field that nobody reads is fetched all
 * the same where it tells a symbol that has no register yet. */
static void put_fields(emitter *e, const graph_body *body, int32_t of, int which)
{
    for (int k = 0; k < body->inputs.n; k++) {
        const graph_value *v = body->inputs.at[k];
        graph_type t = graph_type_of(v);

        if (graph_uses(&e->uses, v) == 0 && graph_type_each(&t, is_unbound, e))
            continue;
        put_field(e, define(e, v), of, which, k);
        bind_symbols(e, &t, register_of(e, v));
    }
}

/* The registers of the node's results, made before the regions: each region moves its outputs there. None
 * with `tail`, where regions return by themselves. */
static int32_t *results(emitter *e, const graph_node *node, bool tail)
{
    int32_t *to = base_array(e->cx, int32_t, node->n_out);

    for (int k = 0; k < node->n_out && !tail; k++)
        to[k] = define(e, node->out[k]);
    return to;
}

/* One region behind another. The places where each begins are filled into the words `jump`. */
static bool emit_regions(emitter *e, const graph_node *node, int32_t of, const int *jump, bool tail)
{
    int32_t *to = results(e, node, tail);
    int *ends = base_array(e->cx, int, node->n_bodies);
    int n_known = e->known.n;

    for (int b = 0; b < node->n_bodies; b++) {
        land(e, jump[b]);
        if (node->kind == GRAPH_MATCH)
            put_fields(e, node->body[b], of, b);
        if (!emit_body(e, node->body[b], tail, to))
            return false;
        e->known.n = n_known;
        if (!tail && b + 1 < node->n_bodies) {
            put(e, RT_GOTO);
            ends[b] = put(e, 0);
        }
    }
    for (int b = 0; b + 1 < node->n_bodies && !tail; b++)
        land(e, ends[b]);
    return true;
}

/* `if`: both words behind the condition are places in the code, filled in when the regions are written: the
 * then-region's first. */
static bool emit_if(emitter *e, const graph_node *node, bool tail)
{
    int32_t condition = scalar(e, node->in[0]);
    int jump[2];

    put(e, RT_IF);
    put(e, condition);
    jump[0] = put(e, 0);
    jump[1] = put(e, 0);
    return emit_regions(e, node, -1, jump, tail);
}

/* One place for each constructor, chosen by the tag of the value. */
static bool emit_match(emitter *e, const graph_node *node, bool tail)
{
    int32_t of = value(e, node->in[0]), tag = new_number(e);
    int *jump = base_array(e->cx, int, node->n_bodies);

    put(e, RT_GET_TAG);
    put(e, tag);
    put(e, of);
    put(e, RT_SWITCH);
    put(e, tag);
    put(e, node->n_bodies);
    for (int b = 0; b < node->n_bodies; b++)
        jump[b] = put(e, 0);
    return emit_regions(e, node, of, jump, tail);
}

/* ---- nodes ---- */

/* The instructions of one node; `tail`: its results are those of the function. */
static bool emit_node(emitter *e, const graph_body *body, int i, bool tail)
{
    const graph_node *node = body->nodes.at[i];

    put_line(e, node->loc);
    switch (node->kind) {
    case GRAPH_ALLOC_STORAGE: emit_storage(e, node); break;
    case GRAPH_ALLOC_TENSOR: return emit_tensor(e, body, i);
    case GRAPH_INVOKE: return emit_invoke(e, node);
    case GRAPH_KILL:
        put(e, RT_FREE_TENSOR);
        put(e, value(e, node->in[0]));
        break;
    case GRAPH_CALL:
    case GRAPH_APPLY: emit_call(e, node, tail); break;
    case GRAPH_IF: return emit_if(e, node, tail);
    case GRAPH_MATCH: return emit_match(e, node, tail);
    case GRAPH_MAKE_TUPLE: put_adt(e, node, 0); break;
    case GRAPH_FIELD: emit_field(e, node); break;
    case GRAPH_CONSTRUCT: emit_construct(e, node); break;
    case GRAPH_CLOSURE: emit_closure(e, node); break;
    case GRAPH_CHECK: emit_check(e, node); break;
    case GRAPH_LOOP:
    case GRAPH_SCAN:
        base_fail(e->cx, TEC_UNSUPPORTED, node->loc, "'%s': a %s cannot be compiled yet", node->name,
                  node->kind == GRAPH_LOOP ? "loop" : "scan");
        return false;
    case GRAPH_OP:
    case GRAPH_GROUP:
    case GRAPH_PACK:
    case GRAPH_DEVICE_COPY: BASE_BUG(e->cx, "'%s' is no node of a planned program", node->name); return false;
    }
    return !base_failed(e->cx);
}

/* Whether the node's results are the body's, with nothing to do behind it but to end lifetimes. */
static bool is_last(const graph_body *body, int i)
{
    const graph_node *node = body->nodes.at[i];

    if (node->kind != GRAPH_CALL && node->kind != GRAPH_IF && node->kind != GRAPH_MATCH)
        return false;
    if (node->n_out != body->outputs.n)
        return false;
    for (int k = 0; k < node->n_out; k++)
        if (body->outputs.at[k] != node->out[k])
            return false;
    while (++i < body->nodes.n)
        if (((const graph_node *)body->nodes.at[i])->kind != GRAPH_KILL)
            return false;
    return true;
}

/* Behind the last node of a function. Constants that are results are loaded here, at the latest. */
static void put_return(emitter *e, const graph_body *body)
{
    int32_t *reg = values(e, (graph_value *const *)body->outputs.at, body->outputs.n);

    put(e, RT_RET);
    put_list(e, reg, body->outputs.n);
}

/* tail: the body's results are the function's; otherwise they go to the registers `to`. Facts are checked at
 * the first place where all their symbols have values, which is at the start or behind the node that gave the
 * last of them; a last node with `tail` gives none that anybody could read. */
static bool emit_body(emitter *e, const graph_body *body, bool tail, const int32_t *to)
{
    base_vec facts = {body->facts.at, body->facts.n, body->facts.n};

    if (!check_facts(e, &facts))
        return false;
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        bool last = tail && is_last(body, i);

        if (!emit_node(e, body, i, last))
            return false;
        if (last)
            return true;
        for (int k = 0; k < node->n_out && node->n_symbols; k++) {
            graph_type t = graph_type_of(node->out[k]);

            bind_symbols(e, &t, register_of(e, node->out[k]));
        }
        if (node->n_symbols && !check_facts(e, &facts))
            return false;
    }
    if (tail)
        put_return(e, body);
    else
        put_outputs(e, body, to);
    return !base_failed(e->cx);
}

/* ---- functions ---- */

/* Registers of the parameters and of the symbols that they tell. The entry also checks what its user gave. */
static bool emit_inputs(emitter *e, const graph_function *f)
{
    base_vec facts = {e->m->facts.at, e->m->facts.n, e->m->facts.n};

    for (int k = 0; k < f->body->inputs.n; k++)
        define(e, f->body->inputs.at[k]);
    for (int k = 0; k < f->body->inputs.n; k++) {
        graph_type t = graph_type_of(f->body->inputs.at[k]);

        bind_symbols(e, &t, k);
    }
    if (!f->body->entry)
        return true;
    for (int k = 0; k < f->body->inputs.n; k++) {
        const graph_value *v = f->body->inputs.at[k];
        graph_type t = graph_type_of(v);

        if (!check_input(e, v->name ? v->name : "", &t, k))
            return false;
    }
    return check_facts(e, &facts);
}

/* The routine outlives the tables of the emitter, which the next function starts afresh. */
static const int32_t *copy_words(emitter *e, const words *w)
{
    return base_copy(e->cx, w->at, (size_t)w->n * sizeof *w->at);
}

/* The items were allocated one by one while their number was unknown; the description wants an array. */
static void *flatten(tec_context *cx, const base_vec *v, size_t size)
{
    char *all = base_alloc_array(cx, (size_t)v->n, size);

    for (int i = 0; i < v->n; i++)
        memcpy(all + (size_t)i * size, v->at[i], size);
    return all;
}

/* One file for the whole function: lines of others would be looked up in the wrong text, but models come as
 * one file. */
static const char *file_of(const graph_body *body)
{
    for (int i = 0; i < body->nodes.n; i++)
        if (((const graph_node *)body->nodes.at[i])->loc.file)
            return ((const graph_node *)body->nodes.at[i])->loc.file;
    return NULL;
}

/* The code of one function, with the types of its registers and the lines that it came from. */
static bool emit_function(emitter *e, const graph_function *f, rt_routine_desc *out)
{
    int n = f->body->inputs.n;
    const char **params = base_array(e->cx, const char *, n);
    int32_t *result = base_array(e->cx, int32_t, f->body->outputs.n);

    e->code = e->registers = (words){0};
    e->lines = e->known = (base_vec){0};
    e->regs = e->uses = (base_map){0};
    graph_count_uses(e->cx, f->body, &e->uses);
    for (int k = 0; k < n; k++) {
        const graph_value *v = f->body->inputs.at[k];

        params[k] = v->name ? v->name : base_format(e->cx, "input%d", k);
    }
    for (int k = 0; k < f->body->outputs.n; k++) {
        graph_type t = graph_type_of(f->body->outputs.at[k]);

        result[k] = type_index(e, &t);
    }
    if (!emit_inputs(e, f) || !emit_body(e, f->body, true, NULL))
        return false;
    *out = (rt_routine_desc){.name = f->name,
                             .file = file_of(f->body),
                             .registers = copy_words(e, &e->registers),
                             .n_registers = e->registers.n,
                             .n_params = n,
                             .params = params,
                             .n_names = n,
                             .results = result,
                             .n_results = f->body->outputs.n,
                             .words = copy_words(e, &e->code),
                             .n_words = e->code.n,
                             .lines = flatten(e->cx, &e->lines, sizeof(rt_line_desc)),
                             .n_lines = e->lines.n};
    return true;
}

/* ---- the whole ---- */

/* May name data types that come later, even itself: a list's tail is a list. Types name data by number, so
 * the order does not matter. */
static void describe_data(emitter *e, const graph_data *d, rt_data_desc *out)
{
    rt_constructor_desc *c = base_array(e->cx, rt_constructor_desc, d->cases.n);

    *out = (rt_data_desc){.name = d->name, .constructors = c, .n_constructors = d->cases.n};
    for (int i = 0; i < d->cases.n; i++) {
        const graph_case *from = d->cases.at[i];
        int32_t *fields = base_array(e->cx, int32_t, from->n);

        for (int k = 0; k < from->n; k++)
            fields[k] = type_index(e, &from->field[k]);
        c[i] = (rt_constructor_desc){from->name, fields, from->n};
    }
}

/* Type and bytes of each constant that some function loads. */
static const rt_constant_desc *describe_constants(const emitter *e)
{
    rt_constant_desc *c = base_array(e->cx, rt_constant_desc, e->constants.n);

    for (int i = 0; i < e->constants.n; i++) {
        const graph_value *v = e->constants.at[i];
        int64_t *shape = base_array(e->cx, int64_t, v->type.n);

        for (int d = 0; d < v->type.n; d++)
            ir_is_int(v->type.dim[d], &shape[d]);
        c[i] = (rt_constant_desc){.name = v->name,
                                  .dtype = v->type.dtype,
                                  .rank = v->type.n,
                                  .shape = shape,
                                  .data = v->constant->data};
    }
    return c;
}

/* Data types first, because the types of values name them; then each function; then the tables that these
 * filled. */
bool graph_describe_program(const graph_module *m, rt_module_desc *out)
{
    emitter e = {.cx = m->cx, .m = m};
    rt_data_desc *data = base_array(m->cx, rt_data_desc, m->data.n);
    rt_routine_desc *functions = base_array(m->cx, rt_routine_desc, m->functions.n);

    for (int i = 0; i < m->data.n; i++)
        describe_data(&e, m->data.at[i], &data[i]);
    for (int i = 0; i < m->functions.n; i++)
        if (!emit_function(&e, m->functions.at[i], &functions[i]))
            return false;
    out->constants = describe_constants(&e);
    out->n_constants = e.constants.n;
    out->program = (rt_program_desc){.types = flatten(m->cx, &e.types, sizeof(rt_type_desc)),
                                     .n_types = e.types.n,
                                     .data = data,
                                     .n_data = m->data.n,
                                     .dims = flatten(m->cx, &e.dims, sizeof(rt_dim)),
                                     .n_dims = e.dims.n,
                                     .dim_symbols = e.dim_symbols.at,
                                     .n_dim_symbols = e.dim_symbols.n,
                                     .texts = (const char *const *)e.texts.at,
                                     .n_texts = e.texts.n,
                                     .functions = functions,
                                     .n_functions = m->functions.n};
    return true;
}
