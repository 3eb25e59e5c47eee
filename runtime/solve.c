/* solve.c -- values of symbols from extents: a dimension that is linear in one unknown symbol is turned
 * round.
 *
 *     n*2 + m with m known to be 3 and the extent 13:    by = 2, the rest at n = 0 is 3, n = (13 - 3) / 2 = 5
 */
#include "runtime/solve.h"

#include <string.h>

#include "tec/base.h"

/* What is on the stack as far as the unknown symbol goes: by * symbol + something, which is `value` where it
 * is a constant. */
typedef struct {
    int64_t by, value;
    bool constant;
} part;

/* `value` counts only where both are constant. */
static bool add_parts(part left, part right, bool minus, part *out)
{
    *out = (part){.constant = left.constant && right.constant};
    return minus ? !__builtin_sub_overflow(left.by, right.by, &out->by) &&
                       !__builtin_sub_overflow(left.value, right.value, &out->value)
                 : !__builtin_add_overflow(left.by, right.by, &out->by) &&
                       !__builtin_add_overflow(left.value, right.value, &out->value);
}

/* A product of two expressions with the symbol is not linear; with `by` unknown but free of the symbol it
 * would be, but then the factor is not a number. */
static bool scale_part(part left, part by, part *out)
{
    *out = (part){.constant = left.constant && by.constant};
    if (!by.constant)
        return left.by == 0;
    return !__builtin_mul_overflow(left.by, by.value, &out->by) &&
           !__builtin_mul_overflow(left.value, by.value, &out->value);
}

/* One operation on the top of the stack; false where the result is not linear in the symbol. Other operations
 * pass if no operand has the symbol in it: n + m // 2 is linear in n. */
static bool apply(rt_dim_opcode op, int takes, const part *top, part *out)
{
    *out = (part){0};
    if (op == RT_DIM_ADD || op == RT_DIM_SUB)
        return add_parts(top[0], top[1], op == RT_DIM_SUB, out);
    if (op == RT_DIM_MUL)
        return scale_part(top[top[1].constant ? 0 : 1], top[top[1].constant ? 1 : 0], out);
    for (int i = 0; i < takes; i++)
        if (top[i].by != 0)
            return false;
    return true;
}

/* The factor of the symbol in verified code; 0 where the code is not linear in it or does not use it. */
static int64_t factor_of(rt_dim dim, int32_t symbol)
{
    static const int8_t takes[] = {
#define X(name, text, n) n,
        RT_DIM_OP_LIST(X)
#undef X
    };
    part stack[RT_DIM_MAX_DEPTH + 1];
    int top = 0;

    for (int32_t i = 0; i < dim.n; i++) {
        rt_dim_opcode op = (rt_dim_opcode)dim.word[i];
        part out;

        if (op == RT_DIM_CONST)
            out = (part){.value = dim.word[++i], .constant = true};
        else if (op == RT_DIM_SYMBOL)
            out = (part){.by = dim.word[++i] == symbol};
        else if (!apply(op, takes[op], stack + (top -= takes[op]), &out))
            return 0;
        stack[top++] = out;
    }
    return top == 1 ? stack[0].by : 0;
}

/* Factor 1. */
static bool find_alone(const rt_function_desc *function, int32_t symbol, rt_solution *out)
{
    int32_t found;

    for (int32_t i = 0; i < function->n_params; i++)
        for (int32_t k = 0; k < function->params[i].rank; k++)
            if (rt_dim_is_symbol(function->params[i].shape[k], &found) && found == symbol) {
                *out = (rt_solution){symbol, i, k, 1};
                return true;
            }
    return false;
}

/* A dimension that needs the symbol and others that are known. The symbol counts as known while dimensions
 * are asked, so that one is found in which nothing else is unknown. */
static bool find_linear(const rt_function_desc *function, int32_t symbol, bool *known, rt_solution *out)
{
    bool found = false;

    known[symbol] = true;
    for (int32_t i = 0; i < function->n_params && !found; i++)
        for (int32_t k = 0; k < function->params[i].rank && !found; k++) {
            rt_dim e = function->params[i].shape[k];
            int64_t by = rt_dim_is_known(e, known) ? factor_of(e, symbol) : 0;

            *out = (rt_solution){symbol, i, k, by};
            found = by != 0;
        }
    known[symbol] = found;
    return found;
}

/* Prepares which symbol is found from which extent. Symbols that are an extent by themselves come first, then
 * those linear in one unknown. Fewer solutions than symbols: the caller must give the others. An example:
 * shapes [n, n + m]. n stands alone; then n + m is linear in m, and m = extent - n. */
int rt_solve(const rt_function_desc *function, rt_solution *out)
{
    bool known[RT_MAX_SYMBOLS] = {false};
    int n = 0, before;

    for (int32_t i = 0; i < function->n_symbols; i++)
        if ((known[i] = find_alone(function, i, &out[n])))
            n++;
    do {
        before = n;
        for (int32_t i = 0; i < function->n_symbols; i++)
            if (!known[i] && find_linear(function, i, known, &out[n]))
                n++;
    } while (n > before);
    return n;
}

/* The largest value that is not negative and does not pass the extent, where one gives it. An extent that is
 * no multiple leaves a rest, and the check of shapes that follows refuses the call. */
static int64_t turn_round(int64_t extent, int64_t rest, int64_t by)
{
    int64_t n;

    if (__builtin_sub_overflow(extent, rest, &n) || (n == INT64_MIN && by == -1))
        return 0;
    return n / by > 0 ? n / by : 0;
}

/* The symbols of one call. Whether all extents agree with them is checked afterwards. In the order of the
 * solutions, since later ones need the values of earlier ones. */
void rt_take_symbols(const rt_function_desc *function, const rt_solution *solution, int count,
                     DLTensor *const *args, int64_t *symbols)
{
    for (int i = 0; i < count; i++) {
        rt_dim e = function->params[solution[i].param].shape[solution[i].dim];
        int64_t extent = args[solution[i].param]->shape[solution[i].dim], rest = 0;
        int32_t alone;

        symbols[solution[i].symbol] = 0;
        if (rt_dim_is_symbol(e, &alone))
            symbols[solution[i].symbol] = extent;
        else if (rt_dim_eval(e, symbols, &rest, NULL))
            symbols[solution[i].symbol] = turn_round(extent, rest, solution[i].by);
    }
}
