/* graph/code.c -- see code.h. */
#include "graph/code.h"

#include <string.h>

#include "compiler/compiler.h"
#include "graph/program.h"
#include "graph/scope.h"
#include "ir/build.h"
#include "ir/text.h"
#include "ir/walk.h"

/* What a register was computed from: an expression, or a constant that was loaded. */
typedef struct {
    const void *what;
    int32_t reg;
} known;

/* ---- words ---- */

/* Appends one word to a table and gives the word's place there, which a caller keeps where the word is filled
 * in later. The words move when the table grows: places are numbers, never pointers. */
static int put_word(graph_code *code, graph_words *words, int32_t word)
{
    if (words->n == words->cap) {
        int32_t *larger = base_array(code->cx, int32_t, words->cap ? 2 * words->cap : 64);

        if (words->n)
            memcpy(larger, words->at, (size_t)words->n * sizeof *larger);
        words->at = larger;
        words->cap = words->cap ? 2 * words->cap : 64;
    }
    words->at[words->n] = word;
    return words->n++;
}

int graph_code_put(graph_code *code, int32_t word)
{
    code->freed = -1;
    return put_word(code, &code->words, word);
}

void graph_code_words(graph_code *code, const int32_t *word, int n)
{
    for (int i = 0; i < n; i++)
        graph_code_put(code, word[i]);
}

void graph_code_list(graph_code *code, const int32_t *reg, int n)
{
    graph_code_put(code, n);
    for (int i = 0; i < n; i++)
        graph_code_put(code, reg[i]);
}

/* An entry of the table of lines, which replaces one of the same word. */
static void put_line(graph_code *code, int32_t word, base_loc loc)
{
    const rt_line_desc *last = code->lines.n ? code->lines.at[code->lines.n - 1] : NULL;
    int32_t place = loc.line > 0 ? loc.line : loc.file ? -1 - graph_code_text(code, loc.file) : 0;
    rt_line_desc *line;

    if (!place || (last && last->line == place))
        return;
    if (last && last->word == word)
        code->lines.n--;
    line = base_new(code->cx, rt_line_desc);
    *line = (rt_line_desc){word, place};
    base_push(code->cx, &code->lines, line);
}

/* The first instruction that came from a line of the program, or from a node of an ONNX model, whose place is
 * a text; the instructions between two entries belong to the first of them. Nodes without a place add
 * nothing, so their instructions count as those before. A node that gave no instruction leaves no entry. */
void graph_code_line(graph_code *code, base_loc loc)
{
    put_line(code, code->words.n, loc);
}

void graph_code_parameter_line(graph_code *code, int k, int n, base_loc loc)
{
    put_line(code, k - n, loc);
}

int graph_code_here(graph_code *code)
{
    code->freed = -1;
    return code->words.n;
}

/* The place of a jump is told later. */
void graph_code_land(graph_code *code, int word)
{
    code->words.at[word] = graph_code_here(code);
}

/* Neighbours become one instruction, unless a jump leads between them:
 *
 *     free_tensor r3   free_tensor r5   =>   free (r3, r5)
 */
void graph_code_free(graph_code *code, int32_t reg)
{
    bool storage = ((const rt_type_desc *)code->types.at[code->registers.at[reg]])->kind == RT_TYPE_STORAGE;
    int at = code->freed;

    if (code->unoptimised) {
        GRAPH_CODE(code, storage ? RT_FREE_STORAGE : RT_FREE_TENSOR, reg);
    } else if (at < 0) {
        at = code->words.n;
        GRAPH_CODE(code, RT_FREE, 1, reg);
    } else {
        graph_code_put(code, reg);
        code->words.at[at + 1]++;
    }
    code->freed = code->unoptimised ? -1 : at;
}

/* The end of a frame lets go of all its objects. Lines that begin in the words that go begin behind them. */
void graph_code_end_frame(graph_code *code)
{
    if (code->freed < 0)
        return;
    code->words.n = code->freed;
    code->freed = -1;
    for (int i = code->lines.n - 1; i >= 0; i--) {
        const rt_line_desc *before = code->lines.at[i];
        rt_line_desc *line = base_new(code->cx, rt_line_desc);

        if (before->word <= code->words.n)
            return;
        *line = (rt_line_desc){code->words.n, before->line};
        code->lines.at[i] = line;
    }
}

/* ---- tables ---- */

/* The number of the item with this key, which is added where no item has the key yet. The dictionary holds
 * numbers + 1, since its answer for an unknown key is 0. `item` must not change afterwards: all that have the
 * same key share the first. */
static int32_t intern(graph_code *code, base_dict *index, base_vec *items, const char *key, const void *item)
{
    intptr_t found = (intptr_t)base_dict_get(index, key);

    if (found)
        return (int32_t)found - 1;
    base_push(code->cx, items, item);
    base_dict_put(code->cx, index, key, (void *)(intptr_t)items->n);
    return items->n - 1;
}

int32_t graph_code_text(graph_code *code, const char *text)
{
    return intern(code, &code->text_index, &code->texts, text, text);
}

/* The verifier has seen that the data type exists, so the search needs no end. */
static int32_t data_index(const graph_code *code, const char *name)
{
    int32_t i = 0;

    while (!base_same(((const graph_data *)code->m->data.at[i])->name, name))
        i++;
    return i;
}

int32_t graph_code_plain_type(graph_code *code, rt_type_kind kind)
{
    rt_type_desc *t = base_new(code->cx, rt_type_desc);

    t->kind = kind;
    return intern(code, &code->type_index, &code->types, kind == RT_TYPE_NUMBER ? "number" : "storage", t);
}

/* Element type and extents, unknown ones as -1; the same goes to the key that finds the type again. */
static void describe_tensor(graph_code *code, rt_type_desc *out, const op_type *type, base_text *key)
{
    int64_t *extents = base_array(code->cx, int64_t, type->n);
    char text[24];

    out->dtype = type->dtype;
    out->rank = type->n;
    out->extents = extents;
    base_addf(code->cx, key, "tensor %s", base_dtype_print(type->dtype, text, sizeof text));
    for (int d = 0; d < type->n; d++) {
        if (!ir_is_int(type->dim[d], &extents[d]))
            extents[d] = -1;
        base_addf(code->cx, key, " %lld", (long long)extents[d]);
    }
}

/* The number of a type in the table; its parts get theirs first, because a type stands behind its parts. */
int32_t graph_code_type(graph_code *code, const graph_type *type)
{
    rt_type_desc *out = base_new(code->cx, rt_type_desc);
    int32_t *parts = base_array(code->cx, int32_t, type->n);
    base_text key = {0};

    switch (type->kind) {
    case GRAPH_TENSOR:
        out->kind = RT_TYPE_TENSOR;
        describe_tensor(code, out, &type->tensor, &key);
        break;
    case GRAPH_DATA:
        out->kind = RT_TYPE_DATA;
        out->data = data_index(code, type->data);
        base_addf(code->cx, &key, "data %d", (int)out->data);
        break;
    case GRAPH_TUPLE:
    case GRAPH_FUNCTION:
        out->kind = type->kind == GRAPH_TUPLE ? RT_TYPE_TUPLE : RT_TYPE_FUNCTION;
        out->n_parts = type->n;
        out->n_params = type->kind == GRAPH_FUNCTION ? type->n_params : 0;
        out->parts = parts;
        base_addf(code->cx, &key, "parts %d %d", (int)out->kind, (int)out->n_params);
        for (int k = 0; k < type->n; k++)
            base_addf(code->cx, &key, " %d", (int)(parts[k] = graph_code_type(code, &type->part[k])));
        break;
    }
    return intern(code, &code->type_index, &code->types, base_text_str(code->cx, &key), out);
}

/* Constants are told apart as values: two with equal bytes stay two. */
static int32_t constant_index(graph_code *code, const graph_value *value)
{
    for (int i = 0; i < code->constants.n; i++)
        if (code->constants.at[i] == value)
            return i;
    base_push(code->cx, &code->constants, value);
    return code->constants.n - 1;
}

/* ---- registers ---- */

/* The register's number is the place of its type in the table of registers: both tables grow together. */
int32_t graph_code_register(graph_code *code, int32_t type)
{
    return put_word(code, &code->registers, type);
}

int32_t graph_code_new_number(graph_code *code)
{
    return graph_code_register(code, graph_code_plain_type(code, RT_TYPE_NUMBER));
}

/* -1: the value or symbol has none so far. The map holds number + 1, since 0 is its answer for "not
 * there". */
int32_t graph_code_register_of(const graph_code *code, const void *what)
{
    return (int32_t)(intptr_t)base_map_get(&code->regs, what) - 1;
}

void graph_code_bind(graph_code *code, const void *what, int32_t reg)
{
    base_map_put(code->cx, &code->regs, what, (void *)((intptr_t)reg + 1));
}

/* A register for a value that the next instruction makes. */
int32_t graph_code_define(graph_code *code, const graph_value *value)
{
    graph_type t = graph_type_of(value);
    int32_t reg = graph_code_register(code, graph_code_type(code, &t));

    graph_code_bind(code, value, reg);
    return reg;
}

/* Notes what the register holds from this instruction on, on every path that comes here. What a region adds
 * is forgotten behind it (emit_regions), since the other regions and the code behind are reached without it:
 *
 *     if "if"(v3) { ... n*4 computed into r7 ... } { ... n*4 again: r7 holds nothing on this path ... }
 */
static void remember(graph_code *code, const void *what, int32_t reg)
{
    known *k = base_new(code->cx, known);

    *k = (known){what, reg};
    base_push(code->cx, &code->known, k);
}

/* The latest first. -1: not in a register here. */
static int32_t remembered(const graph_code *code, const void *what)
{
    for (int i = code->known.n - 1; i >= 0 && !code->unoptimised; i--)
        if (((const known *)code->known.at[i])->what == what)
            return ((const known *)code->known.at[i])->reg;
    return -1;
}

/* The register that holds the value. A constant is loaded where it is first used in the region at hand. */
int32_t graph_code_value(graph_code *code, const graph_value *value)
{
    if (!value->constant)
        return graph_code_register_of(code, value);
    int32_t reg = remembered(code, value);
    if (reg < 0) {
        graph_type t = graph_type_of(value);

        reg = graph_code_register(code, graph_code_type(code, &t));
        GRAPH_CODE(code, RT_LOAD_CONST, reg, constant_index(code, value));
        remember(code, value, reg);
    }
    return reg;
}

/* All are put into registers before the caller writes its own opcode: loading a constant is an instruction,
 * which must not land between the words of another. */
int32_t *graph_code_values(graph_code *code, graph_value *const *value, int n)
{
    int32_t *reg = base_array(code->cx, int32_t, n);

    for (int i = 0; i < n; i++)
        reg[i] = graph_code_value(code, value[i]);
    return reg;
}

int32_t *graph_code_arguments(graph_code *code, graph_value *const *value, int n)
{
    int32_t *arg = base_array(code->cx, int32_t, n);

    for (int i = 0; i < n; i++)
        arg[i] = value[i]->constant && !code->unoptimised ? -1 - constant_index(code, value[i])
                                                          : graph_code_value(code, value[i]);
    return arg;
}

/* ---- extents ---- */

/* Dimension code over registers. -1 with an error. */
int32_t graph_code_compute(graph_code *code, const ir_expr *expr)
{
    base_vec vars = {0};
    base_text key = {0};
    rt_dim *dim = base_new(code->cx, rt_dim);

    ir_free_vars(code->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_code_register_of(code, vars.at[i]) < 0) {
            base_fail(
                code->cx, TEC_UNSUPPORTED, expr->loc,
                "the value of extent '%s' is needed here, but no tensor before this place has the extent",
                ((const ir_expr *)vars.at[i])->var.name);
            return -1;
        }
    if (!comp_dim(code->cx, expr, (const ir_expr *const *)vars.at, vars.n, dim))
        return -1;
    base_addf(code->cx, &key, "%d", vars.n);
    for (int i = 0; i < dim->n; i++)
        base_addf(code->cx, &key, " %lld", (long long)dim->word[i]);
    int32_t before = code->dims.n,
            index = intern(code, &code->dim_index, &code->dims, base_text_str(code->cx, &key), dim);
    if (code->dims.n > before)
        put_word(code, &code->dim_symbols, vars.n);
    int32_t reg = graph_code_new_number(code);
    GRAPH_CODE(code, RT_DIM, reg, index, vars.n);
    for (int i = 0; i < vars.n; i++)
        graph_code_put(code, graph_code_register_of(code, vars.at[i]));
    return reg;
}

/* A register with the value of an extent: a symbol's own, one computed before, or a new one. -1 with an
 * error. */
int32_t graph_code_number(graph_code *code, const ir_expr *expr)
{
    int32_t reg = graph_code_register_of(code, expr);
    int64_t n;

    if (reg >= 0 || (reg = remembered(code, expr)) >= 0)
        return reg;
    if (ir_is_int(expr, &n) && n >= INT32_MIN && n <= INT32_MAX) {
        reg = graph_code_new_number(code);
        GRAPH_CODE(code, RT_LOAD_CONSTI, reg, (int32_t)n);
    } else {
        reg = graph_code_compute(code, expr);
    }
    if (reg >= 0)
        remember(code, expr, reg);
    return reg;
}

/* Those before the first failure may have been computed; the caller gives up, so nobody minds. */
bool graph_code_numbers(graph_code *code, const ir_expr *const *expr, int n, int32_t *reg)
{
    for (int i = 0; i < n; i++)
        if ((reg[i] = graph_code_number(code, expr[i])) < 0)
            return false;
    return true;
}

static void put_extent(graph_code *code, int32_t to, int32_t tensor, int axis)
{
    GRAPH_CODE(code, RT_EXTENT, to, tensor, axis);
}

void graph_code_field(graph_code *code, int32_t to, int32_t of, int which, int field)
{
    GRAPH_CODE(code, RT_GET_FIELD, to, of, which, field);
}

/* ---- symbols ---- */

/* Whether each extent that is a symbol has a register. A hook of graph_type_each: the walk over a type stops
 * with false at the first tensor with an unbound symbol. */
bool graph_code_is_bound(void *user, const op_type *type)
{
    for (int d = 0; d < type->n; d++)
        if (type->dim[d]->op == IR_VAR && graph_code_register_of(user, type->dim[d]) < 0)
            return false;
    return true;
}

/* Symbols without a register so far get one from the extents of the value in `reg`. */
void graph_code_bind_symbols(graph_code *code, const graph_type *type, int32_t reg)
{
    if (graph_type_each(type, graph_code_is_bound, code))
        return;
    for (int d = 0; type->kind == GRAPH_TENSOR && d < type->tensor.n; d++)
        if (type->tensor.dim[d]->op == IR_VAR && graph_code_register_of(code, type->tensor.dim[d]) < 0) {
            int32_t extent = graph_code_new_number(code);

            put_extent(code, extent, reg, d);
            graph_code_bind(code, type->tensor.dim[d], extent);
        }
    for (int k = 0; type->kind == GRAPH_TUPLE && k < type->n; k++) {
        if (graph_type_each(&type->part[k], graph_code_is_bound, code))
            continue;
        int32_t part = graph_code_register(code, graph_code_type(code, &type->part[k]));

        graph_code_field(code, part, reg, 0, k);
        graph_code_bind_symbols(code, &type->part[k], part);
        graph_code_free(code, part);
    }
}

/* The only symbol in the extent that has no register; NULL: there is none, or more than one. */
static const ir_expr *only_unbound(const graph_code *code, const ir_expr *extent)
{
    const ir_expr *only = NULL;
    base_vec vars = {0};

    ir_free_vars(code->cx, extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_code_register_of(code, vars.at[i]) < 0) {
            if (only)
                return NULL;
            only = vars.at[i];
        }
    return only;
}

/* From x: f32[n * 2 + m], n is (the extent of x - m) // 2. The caller of the function has checked that this
 * is exact and not negative. What the user gives to the entry is not checked yet: there, n is 0 where the
 * quotient is negative. Then n * 2 + m differs from the extent of x, which graph_code_check_input finds. */
static bool solve_symbol(graph_code *code, const ir_expr *extent, int32_t tensor, int axis, bool entry)
{
    tec_context *cx = code->cx;
    const ir_expr *symbol = only_unbound(code, extent), *rest, *found = ir_var(cx, "found", BASE_I64);
    int64_t by;

    if (!symbol || !graph_extent_tells(cx, extent, symbol, &by, &rest))
        return false;
    int32_t reg = graph_code_new_number(code);
    put_extent(code, reg, tensor, axis);
    graph_code_bind(code, found, reg);
    const ir_expr *value = graph_extent_value(cx, by, rest, found);
    reg = graph_code_compute(code, entry ? ir_max(cx, value, ir_int(cx, 0)) : value);
    graph_code_bind(code, symbol, reg);
    return reg >= 0;
}

/* A hook of graph_type_each: false where an extent has a symbol without a register. */
static bool is_solved(void *code, const op_type *type)
{
    base_vec vars = {0};

    for (int d = 0; d < type->n; d++)
        ir_free_vars(((graph_code *)code)->cx, type->dim[d], &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_code_register_of(code, vars.at[i]) < 0)
            return false;
    return true;
}

/* Whether a symbol got its register here. Parts of a tuple are fetched as in graph_code_bind_symbols. */
static bool solve_symbols_of(graph_code *code, const graph_type *type, int32_t reg, bool entry)
{
    bool solved = false;

    if (graph_type_each(type, is_solved, code))
        return false;
    for (int d = 0; type->kind == GRAPH_TENSOR && d < type->tensor.n; d++)
        solved = solve_symbol(code, type->tensor.dim[d], reg, d, entry) || solved;
    for (int k = 0; type->kind == GRAPH_TUPLE && k < type->n; k++) {
        if (graph_type_each(&type->part[k], is_solved, code))
            continue;
        int32_t part = graph_code_register(code, graph_code_type(code, &type->part[k]));

        graph_code_field(code, part, reg, 0, k);
        solved = solve_symbols_of(code, &type->part[k], part, entry) || solved;
        graph_code_free(code, part);
    }
    return solved;
}

/* Again and again, as a value may be what another extent lacks. */
bool graph_code_solve_symbols(graph_code *code, const graph_body *body)
{
    base_vec open = {0};
    bool solved = true;

    for (int i = 0; i < body->symbols.n; i++)
        if (graph_code_register_of(code, body->symbols.at[i]) < 0)
            base_push(code->cx, &open, body->symbols.at[i]);
    while (solved && open.n && !base_failed(code->cx)) {
        solved = false;
        for (int k = 0; k < body->inputs.n; k++) {
            graph_type t = graph_type_of(body->inputs.at[k]);

            solved =
                solve_symbols_of(code, &t, graph_code_register_of(code, body->inputs.at[k]), body->entry) ||
                solved;
        }
    }
    return !base_failed(code->cx);
}

/* A fact over symbols that get their values at different nodes waits for the last of them. */
static bool all_bound(const graph_code *code, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(code->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_code_register_of(code, vars.at[i]) < 0)
            return false;
    return true;
}

/* Writes nothing for a condition that is true already, and ends the run for one that is false. The text is
 * what the user sees when the condition does not hold while the program runs. */
bool graph_code_require(graph_code *code, const ir_expr *condition, const char *text)
{
    int64_t holds;
    int32_t reg;

    if (ir_is_int(condition, &holds)) {
        if (!holds)
            GRAPH_CODE(code, RT_FATAL, graph_code_text(code, text));
        return true;
    }
    reg = graph_code_compute(code, condition);
    GRAPH_CODE(code, RT_CHECK, reg, graph_code_text(code, text));
    return reg >= 0;
}

/* An equality compares two numbers, so that the error can tell both. */
static bool require_fact(graph_code *code, const ir_expr *fact)
{
    const char *text = graph_meaning(code->m, fact);
    int32_t reg[2];

    graph_code_line(code, fact->loc);
    if (fact->op != IR_EQ)
        return graph_code_require(code, fact, text);
    if (!graph_code_numbers(code, fact->arg, 2, reg))
        return false;
    if (BASE_PLANT_ON(code->cx, code_equal))
        return true;
    GRAPH_CODE(code, RT_EQUAL, reg[0], reg[1], graph_code_text(code, text));
    return true;
}

/* Facts whose symbols all have registers now; the others stay in the list. */
bool graph_code_check_facts(graph_code *code, base_vec *facts)
{
    base_vec later = {0};

    for (int i = 0; i < facts->n; i++) {
        const ir_expr *fact = facts->at[i];

        if (!all_bound(code, fact))
            base_push(code->cx, &later, fact);
        else if (!require_fact(code, fact))
            return false;
    }
    *facts = later;
    return true;
}

/* A user's value: each extent that is no number has the value that its symbols say. `n` was told by the first
 * input that has it, so an input a: f32[n] checks nothing new by itself, and b: f32[n, 2*n] has its first
 * extent compared with a's n and its second with twice that. Numbers were compared with the value's type
 * before the first instruction ran. Fields of a tuple are fetched, checked and let go again one by one. */
bool graph_code_check_input(graph_code *code, const char *name, const graph_type *type, int32_t reg)
{
    int64_t n;

    for (int d = 0; type->kind == GRAPH_TENSOR && d < type->tensor.n; d++) {
        if (ir_is_int(type->tensor.dim[d], &n))
            continue;
        const char *text = base_format(code->cx, "input '%s': expected %s; dimension %d, expected and found",
                                       name, graph_type_text(code->cx, type), d);
        int32_t expected = graph_code_number(code, type->tensor.dim[d]), found = graph_code_new_number(code);

        if (expected < 0)
            return false;
        put_extent(code, found, reg, d);
        GRAPH_CODE(code, RT_EQUAL, expected, found, graph_code_text(code, text));
    }
    for (int k = 0; type->kind == GRAPH_TUPLE && k < type->n; k++) {
        int32_t part = graph_code_register(code, graph_code_type(code, &type->part[k]));

        graph_code_field(code, part, reg, 0, k);
        if (!graph_code_check_input(code, name, &type->part[k], part))
            return false;
        graph_code_free(code, part);
    }
    return true;
}

/* A number register with the value of a scalar tensor: jumps and checks read numbers, not tensors. */
int32_t graph_code_scalar(graph_code *code, const graph_value *value)
{
    int32_t of = graph_code_value(code, value), reg = graph_code_new_number(code);

    GRAPH_CODE(code, RT_SCALAR, reg, of);
    return reg;
}
