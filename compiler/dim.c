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

static bool write(writer *out, const ir_expr *expr);

static bool refuse(writer *out, const ir_expr *expr)
{
    base_fail(out->cx, TEC_UNSUPPORTED, expr->loc,
              "'%s' cannot be computed when the function is called: sizes may use symbols, integers, + - * "
              "// %% min max, comparisons and select",
              ir_expr_text(out->cx, expr));
    return false;
}

static bool write_symbol(writer *out, const ir_expr *expr)
{
    for (int i = 0; i < out->n; i++)
        if (out->symbols[i] == expr) {
            rt_dim_symbol(&out->w, i);
            return true;
        }
    return refuse(out, expr);
}

static bool write_binary(writer *out, const ir_expr *expr, rt_dim_opcode op, bool swapped)
{
    if (!write(out, expr->arg[swapped]) || !write(out, expr->arg[!swapped]))
        return false;
    rt_dim_op(&out->w, op);
    return true;
}

static bool write_negated(writer *out, const ir_expr *expr)
{
    rt_dim_const(&out->w, 0);
    if (!write(out, expr->arg[0]))
        return false;
    rt_dim_op(&out->w, RT_DIM_SUB);
    return true;
}

static bool write_unary(writer *out, const ir_expr *expr, rt_dim_opcode op)
{
    if (!write(out, expr->arg[0]))
        return false;
    rt_dim_op(&out->w, op);
    return true;
}

static bool write_select(writer *out, const ir_expr *expr)
{
    for (int i = 0; i < 3; i++)
        if (!write(out, expr->arg[i]))
            return false;
    rt_dim_op(&out->w, RT_DIM_SELECT);
    return true;
}

/* Emits operands first, then the operation. Widening casts need nothing, since the stack holds int64. > and
 * >= are < and <= with swapped operands. */
static bool write(writer *out, const ir_expr *expr)
{
    if (expr->op == IR_INT) {
        rt_dim_const(&out->w, expr->i);
        return true;
    }
    if (expr->op == IR_VAR)
        return write_symbol(out, expr);
    if (expr->op == IR_CAST && !base_is_float(expr->dtype) && !base_is_float(expr->arg[0]->dtype) &&
        expr->dtype.bits >= expr->arg[0]->dtype.bits)
        return write(out, expr->arg[0]);
    if (expr->op == IR_LIKELY)
        return write(out, expr->arg[0]);
    if (expr->op == IR_NEG)
        return write_negated(out, expr);
    if (expr->op == IR_NOT)
        return write_unary(out, expr, RT_DIM_NOT);
    if (expr->op == IR_SELECT)
        return write_select(out, expr);

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
        if (binary[i].op == expr->op)
            return write_binary(out, expr, binary[i].code, binary[i].swapped);
    return refuse(out, expr);
}

/* False with an error where an operation has no code or the expression is too long. */
bool comp_dim(tec_context *cx, const ir_expr *expr, const ir_expr *const *symbols, int count, rt_dim *out)
{
    writer w = {.cx = cx, .symbols = symbols, .n = count};

    *out = (rt_dim){0};
    if (!expr || !write(&w, expr))
        return false;
    rt_dim d = rt_dim_of(&w.w);
    if (d.n == 0) {
        base_fail(cx, TEC_UNSUPPORTED, expr->loc, "a size has more than %d terms: %s", RT_DIM_MAX_WORDS / 2,
                  ir_expr_text(cx, expr));
        return false;
    }
    *out = (rt_dim){base_copy(cx, d.word, (size_t)d.n * sizeof *d.word), d.n};
    return true;
}
