/* dim.c -- dimension expressions: making, verifying, evaluating and printing stack code.
 *
 * A value on the evaluation stack that could not be computed carries its fault along, and a fault that
 * reaches the top fails the evaluation. Verification runs the same code over stack depths alone, so that
 * evaluation need not check anything but values.
 *
 * An example: (n + 3) // 4 is the code
 *
 *     symbol 0, const 3, +, const 4, //       stack for n = 5:  5 | 5 3 | 8 | 8 4 | 2
 *
 * Why faults are carried along instead of failing at once: in select(n > 0, 100 // n, 0) both branches are
 * computed, and for n = 0 the division has a fault that the select drops. The same holds for n == 0 or 100 //
 * n > 3.
 */
#include "runtime/dim.h"

#include <stdio.h>
#include <string.h>

#include "runtime/error.h"

static const struct {
    const char *text;
    int takes;
} op_table[RT_DIM_N_OPS] = {
#define X(name, text, takes) {text, takes},
    RT_DIM_OP_LIST(X)
#undef X
};

static bool has_operand(int64_t op)
{
    return op == RT_DIM_CONST || op == RT_DIM_SYMBOL;
}

/* ---- making ---- */

/* Once full, a writer stays full, and rt_dim_of gives no code: callers check once, at the end. */
static void put_words(rt_dim_writer *writer, int n, int64_t first, int64_t second)
{
    if (writer->full || writer->n + n > RT_DIM_MAX_WORDS) {
        writer->full = true;
        return;
    }
    writer->word[writer->n++] = first;
    if (n == 2)
        writer->word[writer->n++] = second;
}

void rt_dim_const(rt_dim_writer *writer, int64_t value)
{
    put_words(writer, 2, RT_DIM_CONST, value);
}

void rt_dim_symbol(rt_dim_writer *writer, int32_t symbol)
{
    put_words(writer, 2, RT_DIM_SYMBOL, symbol);
}

void rt_dim_op(rt_dim_writer *writer, rt_dim_opcode op)
{
    put_words(writer, 1, op, 0);
}

rt_dim rt_dim_of(const rt_dim_writer *writer)
{
    return (rt_dim){writer->word, writer->full ? 0 : writer->n};
}

/* ---- verifying ---- */

/* The depth after the operation at word[i], or -1 with an error. An operation takes its operands off and puts
 * one value on: 1 - takes is the change. */
static int verify_op(rt_dim dim, int32_t index, int depth, int n_symbols, tec_error *err)
{
    int64_t op = dim.word[index];

    if (op < 0 || op >= RT_DIM_N_OPS)
        return rt_fail(err, TEC_INVALID, "dimension code: unknown operation %lld at word %d", (long long)op,
                       (int)index),
               -1;
    if (has_operand(op) && index + 1 >= dim.n)
        return rt_fail(err, TEC_INVALID, "dimension code: ends inside an operation"), -1;
    if (op == RT_DIM_SYMBOL && (dim.word[index + 1] < 0 || dim.word[index + 1] >= n_symbols))
        return rt_fail(err, TEC_INVALID, "dimension code: symbol %lld of %d", (long long)dim.word[index + 1],
                       n_symbols),
               -1;
    if (depth < op_table[op].takes)
        return rt_fail(err, TEC_INVALID, "dimension code: '%s' lacks an operand", op_table[op].text), -1;
    depth += 1 - op_table[op].takes;
    if (depth > RT_DIM_MAX_DEPTH)
        return rt_fail(err, TEC_INVALID, "dimension code: deeper than %d", RT_DIM_MAX_DEPTH), -1;
    return depth;
}

/* Every word is checked, so that evaluation, which runs at each call, need not. */
bool rt_dim_verify(rt_dim dim, int n_symbols, tec_error *err)
{
    int depth = 0;

    if (dim.n < 1 || dim.n > RT_DIM_MAX_WORDS)
        return rt_fail(err, TEC_INVALID, "dimension code: %d words; expected 1 to %d", (int)dim.n,
                       RT_DIM_MAX_WORDS);
    for (int32_t i = 0; i < dim.n; i += has_operand(dim.word[i]) ? 2 : 1) {
        depth = verify_op(dim, i, depth, n_symbols, err);
        if (depth < 0)
            return false;
    }
    return depth == 1 || rt_fail(err, TEC_INVALID, "dimension code: leaves %d values; expected 1", depth);
}

/* ---- evaluating ---- */

typedef enum { FAULT_NONE, FAULT_OVERFLOW, FAULT_ZERO } fault;

/* `v` means nothing with a fault. */
typedef struct {
    int64_t v;
    fault fault;
} slot;

/* A comparison never overflows; it gives 0 or 1. */
static slot checked(bool overflow, int64_t v)
{
    return (slot){overflow ? 0 : v, overflow ? FAULT_OVERFLOW : FAULT_NONE};
}

/* Rounds down: -7 // 2 is -4. The smallest number by -1 is the only quotient that does not fit. */
static slot floor_div(int64_t a, int64_t b)
{
    if (b == 0)
        return (slot){0, FAULT_ZERO};
    if (a == INT64_MIN && b == -1)
        return (slot){0, FAULT_OVERFLOW};
    return (slot){a / b - (a % b != 0 && (a < 0) != (b < 0)), FAULT_NONE};
}

/* Has the sign of the divisor, so that a == b * (a // b) + a % b. By -1 it is 0; the machine would trap for
 * the smallest number. */
static slot floor_mod(int64_t a, int64_t b)
{
    if (b == 0)
        return (slot){0, FAULT_ZERO};
    if (b == -1)
        return (slot){0, FAULT_NONE};
    return (slot){a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0), FAULT_NONE};
}

/* One operation on two values, with a fault where the result does not fit or the divisor is 0. */
static slot arithmetic(rt_dim_opcode op, int64_t left, int64_t right)
{
    int64_t r = 0;
    bool overflow = false;

    switch (op) {
    case RT_DIM_ADD: overflow = __builtin_add_overflow(left, right, &r); break;
    case RT_DIM_SUB: overflow = __builtin_sub_overflow(left, right, &r); break;
    case RT_DIM_MUL: overflow = __builtin_mul_overflow(left, right, &r); break;
    case RT_DIM_FLOORDIV: return floor_div(left, right);
    case RT_DIM_FLOORMOD: return floor_mod(left, right);
    case RT_DIM_MIN: return checked(false, left < right ? left : right);
    case RT_DIM_MAX: return checked(false, left > right ? left : right);
    case RT_DIM_EQ: return checked(false, left == right);
    case RT_DIM_NE: return checked(false, left != right);
    case RT_DIM_LT: return checked(false, left < right);
    case RT_DIM_LE: return checked(false, left <= right);
    case RT_DIM_AND: return checked(false, left && right);
    case RT_DIM_OR: return checked(false, left || right);
    case RT_DIM_CONST:
    case RT_DIM_SYMBOL:
    case RT_DIM_NOT:
    case RT_DIM_SELECT:
    case RT_DIM_N_OPS: break;
    }
    return checked(overflow, r);
}

/* Whether one side of `and` or `or` settles it whatever the other holds. */
static bool decides(rt_dim_opcode op, slot entry)
{
    return entry.fault == FAULT_NONE && ((op == RT_DIM_AND && !entry.v) || (op == RT_DIM_OR && entry.v));
}

/* A fault on one side counts unless the other side settles the result. */
static slot binary(rt_dim_opcode op, slot left, slot right)
{
    if (decides(op, left) || decides(op, right))
        return checked(false, op == RT_DIM_OR);
    if (left.fault || right.fault)
        return left.fault ? left : right;
    return arithmetic(op, left.v, right.v);
}

/* The result of an operation on the values under `top`. The condition of a select comes first on the stack,
 * at top[-3]. */
static slot apply(rt_dim_opcode op, const slot *top)
{
    if (op == RT_DIM_NOT)
        return top[-1].fault ? top[-1] : checked(false, !top[-1].v);
    if (op == RT_DIM_SELECT)
        return top[-3].fault ? top[-3] : top[-3].v ? top[-2] : top[-1];
    return binary(op, top[-2], top[-1]);
}

/* The value of the code for these symbols; false with an error. The code was verified when the module was
 * read. */
bool rt_dim_eval(rt_dim dim, const int64_t *symbols, int64_t *value, tec_error *err)
{
    slot stack[RT_DIM_MAX_DEPTH + 1];
    slot *top = stack;

    for (int32_t i = 0; i < dim.n; i++) {
        rt_dim_opcode op = (rt_dim_opcode)dim.word[i];

        if (has_operand(op)) {
            i++;
            *top++ = checked(false, op == RT_DIM_CONST ? dim.word[i] : symbols[dim.word[i]]);
        } else {
            slot r = apply(op, top);

            top -= op_table[op].takes;
            *top++ = r;
        }
    }
    *value = stack[0].v;
    if (stack[0].fault == FAULT_NONE)
        return true;
    return rt_fail(err, TEC_INVALID, "%s",
                   stack[0].fault == FAULT_ZERO ? "division by zero in a dimension"
                                                : "a dimension overflows 64 bits");
}

double rt_dim_count(rt_dim dim, const int64_t *symbols)
{
    int64_t value;

    return dim.n && rt_dim_eval(dim, symbols, &value, NULL) ? (double)value : 0;
}

/* ---- asking ---- */

bool rt_dim_is_const(rt_dim dim, int64_t *value)
{
    if (dim.n != 2 || dim.word[0] != RT_DIM_CONST)
        return false;
    *value = dim.word[1];
    return true;
}

bool rt_dim_is_symbol(rt_dim dim, int32_t *symbol)
{
    if (dim.n != 2 || dim.word[0] != RT_DIM_SYMBOL)
        return false;
    *symbol = (int32_t)dim.word[1];
    return true;
}

/* Needs no evaluation: a symbol whose value is not known makes the whole unknown, even if the value would not
 * matter. */
bool rt_dim_is_known(rt_dim dim, const bool *known)
{
    for (int32_t i = 0; i < dim.n; i += has_operand(dim.word[i]) ? 2 : 1)
        if (dim.word[i] == RT_DIM_SYMBOL && !known[dim.word[i + 1]])
            return false;
    return true;
}

bool rt_dim_same(rt_dim left, rt_dim right)
{
    return left.n == right.n &&
           (left.n == 0 || memcmp(left.word, right.word, (size_t)left.n * sizeof *left.word) == 0);
}

/* ---- printing ---- */

/* How tightly an operation binds; operands that bind less are bracketed. */
static int strength(int64_t op)
{
    switch (op) {
    case RT_DIM_OR: return 1;
    case RT_DIM_AND: return 2;
    case RT_DIM_NOT: return 3;
    case RT_DIM_EQ:
    case RT_DIM_NE:
    case RT_DIM_LT:
    case RT_DIM_LE: return 4;
    case RT_DIM_ADD:
    case RT_DIM_SUB: return 5;
    case RT_DIM_MUL:
    case RT_DIM_FLOORDIV:
    case RT_DIM_FLOORMOD: return 6;
    default: return 7;
    }
}

/* Where the operation that ends before `end` keeps its own word, and where each operand ends. */
typedef struct {
    int32_t start[RT_DIM_MAX_WORDS]; /* of the whole subexpression whose operation stands at this word */
    bool is_op[RT_DIM_MAX_WORDS];
} layout;

/* `stack` holds, for each value of the evaluation, where the code that computes it begins. */
static void find_starts(rt_dim dim, layout *self)
{
    int32_t stack[RT_DIM_MAX_DEPTH + 1];
    int depth = 0;

    for (int32_t i = 0; i < dim.n; i += has_operand(dim.word[i]) ? 2 : 1) {
        int takes = op_table[dim.word[i]].takes;

        self->is_op[i] = true;
        self->start[i] = takes ? stack[depth - takes] : i;
        depth -= takes;
        stack[depth++] = self->start[i];
    }
}

/* The operation word of the subexpression whose words end before `end`. A word that is no operation is the
 * operand of the word before it. */
static int32_t root_before(const layout *self, int32_t end)
{
    return end >= 2 && !self->is_op[end - 1] ? end - 2 : end - 1;
}

typedef struct {
    rt_dim d;
    const char *const *names;
    const layout *l;
    rt_line *out;
} printer;

static void print(const printer *self, int32_t root, int outer);

static void print_leaf(const printer *self, int32_t root)
{
    long long operand = self->d.word[root + 1];

    if (self->d.word[root] == RT_DIM_CONST)
        rt_put(self->out, "%lld", operand);
    else if (self->names)
        rt_put(self->out, "%s", self->names[operand]);
    else
        rt_put(self->out, "s%lld", operand);
}

static void print_call(const printer *self, const int32_t *operand, int n, const char *name)
{
    rt_put(self->out, "%s(", name);
    for (int i = 0; i < n; i++) {
        rt_put(self->out, i ? ", " : "");
        print(self, operand[i], 0);
    }
    rt_put(self->out, ")");
}

/* Parentheses only where precedence asks for them: an operand of equal strength on the right gets them. An
 * example: a - (b - c) needs its parentheses and (a - b) - c does not. Comparisons are never chained, so both
 * of their sides ask for more. */
static void print_infix(const printer *self, int32_t root, const int32_t *operand, int outer)
{
    int own = strength(self->d.word[root]);
    const char *text = op_table[self->d.word[root]].text;
    const char *space = own == 6 && self->d.word[root] == RT_DIM_MUL ? "" : " ";

    rt_put(self->out, own < outer ? "(" : "");
    if (self->d.word[root] == RT_DIM_NOT) {
        rt_put(self->out, "not ");
        print(self, operand[0], own);
    } else {
        print(self, operand[0], own == 4 ? own + 1 : own);
        rt_put(self->out, "%s%s%s", space, text, space);
        print(self, operand[1], own + 1);
    }
    rt_put(self->out, own < outer ? ")" : "");
}

/* Prints the expression whose last operation is at `root`, which stands behind its operands. */
static void print(const printer *self, int32_t root, int outer)
{
    int64_t op = self->d.word[root];
    int takes = op_table[op].takes;
    int32_t operand[3], end = root;

    for (int i = takes - 1; i >= 0; i--) {
        operand[i] = root_before(self->l, end);
        end = self->l->start[operand[i]];
    }
    if (takes == 0)
        print_leaf(self, root);
    else if (op == RT_DIM_MIN || op == RT_DIM_MAX || op == RT_DIM_SELECT)
        print_call(self, operand, takes, op_table[op].text);
    else
        print_infix(self, root, operand, outer);
}

const char *rt_dim_text(rt_dim dim, const char *const *names, char *buffer, size_t size)
{
    layout l = {0};
    rt_line out = {buffer, size, 0};

    if (size)
        buffer[0] = '\0';
    if (dim.n) {
        find_starts(dim, &l);
        print(&(printer){dim, names, &l, &out}, root_before(&l, dim.n), 0);
    }
    return buffer;
}
