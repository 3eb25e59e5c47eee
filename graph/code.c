/* graph/code.c -- see code.h. */
#include "graph/code.h"

#include <string.h>

#include "compiler/compiler.h"
#include "graph/program.h"
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
static int put_word(graph_code *e, graph_words *w, int32_t word)
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

int graph_code_put(graph_code *e, int32_t word)
{
    return put_word(e, &e->words, word);
}

void graph_code_words(graph_code *e, const int32_t *word, int n)
{
    for (int i = 0; i < n; i++)
        graph_code_put(e, word[i]);
}

void graph_code_list(graph_code *e, const int32_t *reg, int n)
{
    graph_code_put(e, n);
    for (int i = 0; i < n; i++)
        graph_code_put(e, reg[i]);
}

/* The first instruction that came from a line of the model; the lines between two entries belong to the first
 * of them. Nodes without a place add nothing, so their instructions count as the line before. */
void graph_code_line(graph_code *e, base_loc loc)
{
    const rt_line_desc *last = e->lines.n ? e->lines.at[e->lines.n - 1] : NULL;
    rt_line_desc *l;

    if (loc.line <= 0 || (last && last->line == loc.line))
        return;
    l = base_new(e->cx, rt_line_desc);
    *l = (rt_line_desc){e->words.n, loc.line};
    base_push(e->cx, &e->lines, l);
}

/* The place of a jump is told later. */
void graph_code_land(graph_code *e, int word)
{
    e->words.at[word] = e->words.n;
}

/* ---- tables ---- */

/* The number of the item with this key, which is added where no item has the key yet. The dictionary holds
 * numbers + 1, since its answer for an unknown key is 0. `item` must not change afterwards: all that have the
 * same key share the first. */
static int32_t intern(graph_code *e, base_dict *index, base_vec *items, const char *key, const void *item)
{
    intptr_t found = (intptr_t)base_dict_get(index, key);

    if (found)
        return (int32_t)found - 1;
    base_push(e->cx, items, item);
    base_dict_put(e->cx, index, key, (void *)(intptr_t)items->n);
    return items->n - 1;
}

int32_t graph_code_text(graph_code *e, const char *text)
{
    return intern(e, &e->text_index, &e->texts, text, text);
}

/* The verifier has seen that the data type exists, so the search needs no end. */
static int32_t data_index(const graph_code *e, const char *name)
{
    int32_t i = 0;

    while (!base_same(((const graph_data *)e->m->data.at[i])->name, name))
        i++;
    return i;
}

int32_t graph_code_plain_type(graph_code *e, rt_type_kind kind)
{
    rt_type_desc *t = base_new(e->cx, rt_type_desc);

    t->kind = kind;
    return intern(e, &e->type_index, &e->types, kind == RT_TYPE_NUMBER ? "number" : "storage", t);
}

/* Element type and extents, unknown ones as -1; the same goes to the key that finds the type again. */
static void describe_tensor(graph_code *e, rt_type_desc *out, const op_type *t, base_text *key)
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
int32_t graph_code_type(graph_code *e, const graph_type *t)
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
            base_addf(e->cx, &key, " %d", (int)(parts[k] = graph_code_type(e, &t->part[k])));
        break;
    }
    return intern(e, &e->type_index, &e->types, base_text_str(e->cx, &key), out);
}

/* Constants are told apart as values: two with equal bytes stay two. */
static int32_t constant_index(graph_code *e, const graph_value *v)
{
    for (int i = 0; i < e->constants.n; i++)
        if (e->constants.at[i] == v)
            return i;
    base_push(e->cx, &e->constants, v);
    return e->constants.n - 1;
}

/* ---- registers ---- */

/* The register's number is the place of its type in the table of registers: both tables grow together. */
int32_t graph_code_register(graph_code *e, int32_t type)
{
    return put_word(e, &e->registers, type);
}

int32_t graph_code_new_number(graph_code *e)
{
    return graph_code_register(e, graph_code_plain_type(e, RT_TYPE_NUMBER));
}

/* -1: the value or symbol has none so far. The map holds number + 1, since 0 is its answer for "not
 * there". */
int32_t graph_code_register_of(const graph_code *e, const void *what)
{
    return (int32_t)(intptr_t)base_map_get(&e->regs, what) - 1;
}

void graph_code_bind(graph_code *e, const void *what, int32_t reg)
{
    base_map_put(e->cx, &e->regs, what, (void *)((intptr_t)reg + 1));
}

/* A register for a value that the next instruction makes. */
int32_t graph_code_define(graph_code *e, const graph_value *v)
{
    graph_type t = graph_type_of(v);
    int32_t reg = graph_code_register(e, graph_code_type(e, &t));

    graph_code_bind(e, v, reg);
    return reg;
}

/* Notes what the register holds from this instruction on, on every path that comes here. What a region adds
 * is forgotten behind it (emit_regions), since the other regions and the code behind are reached without it:
 *
 *     if "if"(v3) { ... n*4 computed into r7 ... } { ... n*4 again: r7 holds nothing on this path ... }
 */
static void remember(graph_code *e, const void *what, int32_t reg)
{
    known *k = base_new(e->cx, known);

    *k = (known){what, reg};
    base_push(e->cx, &e->known, k);
}

/* The latest first. -1: not in a register here. */
static int32_t remembered(const graph_code *e, const void *what)
{
    for (int i = e->known.n - 1; i >= 0; i--)
        if (((const known *)e->known.at[i])->what == what)
            return ((const known *)e->known.at[i])->reg;
    return -1;
}

/* The register that holds the value. A constant is loaded where it is first used in the region at hand. */
int32_t graph_code_value(graph_code *e, const graph_value *v)
{
    if (!v->constant)
        return graph_code_register_of(e, v);
    int32_t reg = remembered(e, v);
    if (reg < 0) {
        graph_type t = graph_type_of(v);

        reg = graph_code_register(e, graph_code_type(e, &t));
        GRAPH_CODE(e, RT_LOAD_CONST, reg, constant_index(e, v));
        remember(e, v, reg);
    }
    return reg;
}

/* All are put into registers before the caller writes its own opcode: loading a constant is an instruction,
 * which must not land between the words of another. */
int32_t *graph_code_values(graph_code *e, graph_value *const *v, int n)
{
    int32_t *reg = base_array(e->cx, int32_t, n);

    for (int i = 0; i < n; i++)
        reg[i] = graph_code_value(e, v[i]);
    return reg;
}

/* ---- extents ---- */

/* Dimension code over registers. -1 with an error. */
int32_t graph_code_compute(graph_code *e, const ir_expr *x)
{
    base_vec vars = {0};
    base_text key = {0};
    rt_dim *d = base_new(e->cx, rt_dim);

    ir_free_vars(e->cx, x, &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_code_register_of(e, vars.at[i]) < 0) {
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
    int32_t reg = graph_code_new_number(e);
    GRAPH_CODE(e, RT_DIM, reg, index, vars.n);
    for (int i = 0; i < vars.n; i++)
        graph_code_put(e, graph_code_register_of(e, vars.at[i]));
    return reg;
}

/* A register with the value of an extent: a symbol's own, one computed before, or a new one. -1 with an
 * error. */
int32_t graph_code_number(graph_code *e, const ir_expr *x)
{
    int32_t reg = graph_code_register_of(e, x);
    int64_t n;

    if (reg >= 0 || (reg = remembered(e, x)) >= 0)
        return reg;
    if (ir_is_int(x, &n) && n >= INT32_MIN && n <= INT32_MAX) {
        reg = graph_code_new_number(e);
        GRAPH_CODE(e, RT_LOAD_CONSTI, reg, (int32_t)n);
    } else {
        reg = graph_code_compute(e, x);
    }
    if (reg >= 0)
        remember(e, x, reg);
    return reg;
}

/* Those before the first failure may have been computed; the caller gives up, so nobody minds. */
bool graph_code_numbers(graph_code *e, const ir_expr *const *x, int n, int32_t *reg)
{
    for (int i = 0; i < n; i++)
        if ((reg[i] = graph_code_number(e, x[i])) < 0)
            return false;
    return true;
}

static void put_extent(graph_code *e, int32_t to, int32_t tensor, int axis)
{
    GRAPH_CODE(e, RT_EXTENT, to, tensor, axis);
}

void graph_code_field(graph_code *e, int32_t to, int32_t of, int which, int field)
{
    GRAPH_CODE(e, RT_GET_FIELD, to, of, which, field);
}

/* ---- symbols ---- */

/* A hook for each tensor of a type: it stops the walk, with false, at the first symbol that has no register.
 * So "each" gives true where nothing is left to bind. */
bool graph_code_is_unbound(void *user, const op_type *t)
{
    for (int d = 0; d < t->n; d++)
        if (t->dim[d]->op == IR_VAR && graph_code_register_of(user, t->dim[d]) < 0)
            return false;
    return true;
}

/* Symbols without a register so far get one from the extents of the value in `reg`. */
void graph_code_bind_symbols(graph_code *e, const graph_type *t, int32_t reg)
{
    if (graph_type_each(t, graph_code_is_unbound, e))
        return;
    for (int d = 0; t->kind == GRAPH_TENSOR && d < t->tensor.n; d++)
        if (t->tensor.dim[d]->op == IR_VAR && graph_code_register_of(e, t->tensor.dim[d]) < 0) {
            int32_t extent = graph_code_new_number(e);

            put_extent(e, extent, reg, d);
            graph_code_bind(e, t->tensor.dim[d], extent);
        }
    for (int k = 0; t->kind == GRAPH_TUPLE && k < t->n; k++) {
        if (graph_type_each(&t->part[k], graph_code_is_unbound, e))
            continue;
        int32_t part = graph_code_register(e, graph_code_type(e, &t->part[k]));

        graph_code_field(e, part, reg, 0, k);
        graph_code_bind_symbols(e, &t->part[k], part);
        GRAPH_CODE(e, RT_FREE_TENSOR, part);
    }
}

/* A fact over symbols that get their values at different nodes waits for the last of them. */
static bool all_bound(const graph_code *e, const ir_expr *x)
{
    base_vec vars = {0};

    ir_free_vars(e->cx, x, &vars);
    for (int i = 0; i < vars.n; i++)
        if (graph_code_register_of(e, vars.at[i]) < 0)
            return false;
    return true;
}

/* Writes nothing for a condition that is true already. The text is what the user sees when the condition does
 * not hold while the program runs. */
bool graph_code_require(graph_code *e, const ir_expr *condition, const char *text)
{
    int64_t holds;
    int32_t reg;

    if (ir_is_int(condition, &holds) && holds)
        return true;
    reg = graph_code_compute(e, condition);
    GRAPH_CODE(e, RT_CHECK, reg, graph_code_text(e, text));
    return reg >= 0;
}

/* Facts whose symbols all have registers now; the others stay in the list. */
bool graph_code_check_facts(graph_code *e, base_vec *facts)
{
    base_vec later = {0};

    for (int i = 0; i < facts->n; i++) {
        const ir_expr *fact = facts->at[i];

        if (!all_bound(e, fact))
            base_push(e->cx, &later, fact);
        else if (!graph_code_require(e, fact,
                                     base_format(e->cx, "'%s' does not hold", ir_expr_text(e->cx, fact))))
            return false;
    }
    *facts = later;
    return true;
}

/* A user's value: each extent that is no number has the value that its symbols say. `n` was told by the first
 * input that has it, so an input a: f32[n] checks nothing new by itself, and b: f32[n, 2*n] has its first
 * extent compared with a's n and its second with twice that. Numbers were compared with the value's type
 * before the first instruction ran. Fields of a tuple are fetched, checked and let go again one by one. */
bool graph_code_check_input(graph_code *e, const char *name, const graph_type *t, int32_t reg)
{
    int64_t n;

    for (int d = 0; t->kind == GRAPH_TENSOR && d < t->tensor.n; d++) {
        if (ir_is_int(t->tensor.dim[d], &n))
            continue;
        const ir_expr *found = ir_var(e->cx, "found", BASE_I64);
        int32_t extent = graph_code_new_number(e);

        put_extent(e, extent, reg, d);
        graph_code_bind(e, found, extent);
        if (!graph_code_require(
                e, ir_eq(e->cx, t->tensor.dim[d], found),
                base_format(e->cx, "input '%s': expected %s", name, graph_type_text(e->cx, t))))
            return false;
    }
    for (int k = 0; t->kind == GRAPH_TUPLE && k < t->n; k++) {
        int32_t part = graph_code_register(e, graph_code_type(e, &t->part[k]));

        graph_code_field(e, part, reg, 0, k);
        if (!graph_code_check_input(e, name, &t->part[k], part))
            return false;
        GRAPH_CODE(e, RT_FREE_TENSOR, part);
    }
    return true;
}

/* A number register with the value of a scalar tensor: jumps and checks read numbers, not tensors. */
int32_t graph_code_scalar(graph_code *e, const graph_value *v)
{
    int32_t of = graph_code_value(e, v), reg = graph_code_new_number(e);

    GRAPH_CODE(e, RT_SCALAR, reg, of);
    return reg;
}
