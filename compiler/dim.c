/* compiler/dim.c -- index expressions as the runtime's dimension code.
 *
 *     ceildiv(n, 8) * 64, n being symbol 0    =>    sym 0, const 7, add, const 8, floordiv, const 64, mul
 *
 * The code runs on a small stack in the runtime (runtime/dim.h), which has no IR: it computes shapes, offsets
 * and conditions from the symbols of a call.
 */
#include "compiler/compiler.h"
#include "ir/build.h"
#include "ir/text.h"

typedef struct {
    tec_context *cx;
    rt_dim_writer w;
    const ir_expr *const *symbols;
    int n;
} writer;

static bool write(writer *w, const ir_expr *e);

static bool refuse(writer *w, const ir_expr *e)
{
    base_fail(w->cx, TEC_UNSUPPORTED, e->loc,
              "'%s' cannot be worked out when the function is called: sizes may use symbols, integers, + - * "
              "// %% min max, "
              "comparisons and select",
              ir_expr_text(w->cx, e));
    return false;
}

static bool write_symbol(writer *w, const ir_expr *e)
{
    for (int i = 0; i < w->n; i++)
        if (w->symbols[i] == e) {
            rt_dim_symbol(&w->w, i);
            return true;
        }
    return refuse(w, e);
}

static bool write_binary(writer *w, const ir_expr *e, rt_dim_opcode op, bool swapped)
{
    if (!write(w, e->arg[swapped]) || !write(w, e->arg[!swapped]))
        return false;
    rt_dim_op(&w->w, op);
    return true;
}

static bool write_negated(writer *w, const ir_expr *e)
{
    rt_dim_const(&w->w, 0);
    if (!write(w, e->arg[0]))
        return false;
    rt_dim_op(&w->w, RT_DIM_SUB);
    return true;
}

static bool write_unary(writer *w, const ir_expr *e, rt_dim_opcode op)
{
    if (!write(w, e->arg[0]))
        return false;
    rt_dim_op(&w->w, op);
    return true;
}

static bool write_select(writer *w, const ir_expr *e)
{
    for (int i = 0; i < 3; i++)
        if (!write(w, e->arg[i]))
            return false;
    rt_dim_op(&w->w, RT_DIM_SELECT);
    return true;
}

/* Emits operands first, then the operation. Widening casts need nothing, since the stack holds int64. > and
 * >= are < and <= with swapped operands. */
static bool write(writer *w, const ir_expr *e)
{
    if (e->op == IR_INT) {
        rt_dim_const(&w->w, e->i);
        return true;
    }
    if (e->op == IR_VAR)
        return write_symbol(w, e);
    if (e->op == IR_CAST && !base_is_float(e->dtype) && !base_is_float(e->arg[0]->dtype) &&
        e->dtype.bits >= e->arg[0]->dtype.bits)
        return write(w, e->arg[0]);
    if (e->op == IR_LIKELY)
        return write(w, e->arg[0]);
    if (e->op == IR_NEG)
        return write_negated(w, e);
    if (e->op == IR_NOT)
        return write_unary(w, e, RT_DIM_NOT);
    if (e->op == IR_SELECT)
        return write_select(w, e);

    static const struct {
        ir_op op;
        rt_dim_opcode code;
        bool swapped;
    } binary[] = {
        {IR_ADD, RT_DIM_ADD, false},
        {IR_SUB, RT_DIM_SUB, false},
        {IR_MUL, RT_DIM_MUL, false},
        {IR_FLOORDIV, RT_DIM_FLOORDIV, false},
        {IR_FLOORMOD, RT_DIM_FLOORMOD, false},
        {IR_MIN, RT_DIM_MIN, false},
        {IR_MAX, RT_DIM_MAX, false},
        {IR_EQ, RT_DIM_EQ, false},
        {IR_NE, RT_DIM_NE, false},
        {IR_LT, RT_DIM_LT, false},
        {IR_LE, RT_DIM_LE, false},
        {IR_GT, RT_DIM_LT, true},
        {IR_GE, RT_DIM_LE, true},
        {IR_AND, RT_DIM_AND, false},
        {IR_OR, RT_DIM_OR, false},
    };
    for (int i = 0; i < BASE_COUNT(binary); i++)
        if (binary[i].op == e->op)
            return write_binary(w, e, binary[i].code, binary[i].swapped);
    return refuse(w, e);
}

/* False with an error where an operation has no code or the expression is too long. */
bool comp_dim(tec_context *cx, const ir_expr *e, const ir_expr *const *symbols, int n, rt_dim *out)
{
    writer w = {.cx = cx, .symbols = symbols, .n = n};

    *out = (rt_dim){0};
    if (!e || !write(&w, e))
        return false;
    rt_dim d = rt_dim_of(&w.w);
    if (d.n == 0) {
        base_fail(cx, TEC_UNSUPPORTED, e->loc, "a size has over %d terms: %s", RT_DIM_MAX_WORDS / 2,
                  ir_expr_text(cx, e));
        return false;
    }
    *out = (rt_dim){base_copy(cx, d.word, (size_t)d.n * sizeof *d.word), d.n};
    return true;
}
