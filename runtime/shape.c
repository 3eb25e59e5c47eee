/* shape.c -- shapes as dimension code: evaluated and printed. */
#include "runtime/shape.h"

#include "runtime/error.h"

/* No code means 0, as for a workspace that is not needed. */
bool rt_size_eval(rt_dim dim, const int64_t *symbols, int64_t *size, const char *what, tec_error *err)
{
    tec_error inner = {0};

    *size = 0;
    if (dim.n == 0)
        return true;
    if (!rt_dim_eval(dim, symbols, size, &inner))
        return rt_fail(err, TEC_INVALID, "%s: %s", what, inner.text);
    return *size >= 0 || rt_fail(err, TEC_INVALID, "%s: %lld is negative", what, (long long)*size);
}

bool rt_shape_eval(const rt_dim *shape, int32_t rank, const int64_t *symbols, int64_t *extents,
                   const char *what, tec_error *err)
{
    for (int32_t i = 0; i < rank; i++)
        if (!rt_size_eval(shape[i], symbols, &extents[i], what, err))
            return false;
    return true;
}

const char *rt_shape_text(base_dtype dtype, const rt_dim *shape, int32_t rank, const char *const *names,
                          char *buffer, size_t size)
{
    char text[128];
    rt_line line = {buffer, size, 0};

    rt_put(&line, "%s[", base_dtype_print(dtype, text, sizeof text));
    for (int32_t i = 0; i < rank; i++)
        rt_put(&line, "%s%s", i ? ", " : "", rt_dim_text(shape[i], names, text, sizeof text));
    rt_put(&line, "]");
    return buffer;
}

/* By pretending that only this symbol is unknown. */
static bool uses(rt_dim dim, int32_t symbol, int32_t n_symbols)
{
    bool known[RT_MAX_SYMBOLS];

    for (int32_t i = 0; i < n_symbols; i++)
        known[i] = i != symbol;
    return !rt_dim_is_known(dim, known);
}

/* " where count = 3, m = 4": the symbols that the dimensions mention. For messages. */
const char *rt_where_text(const rt_dim *dims, int32_t count, const char *const *names, const int64_t *symbols,
                          int32_t n_symbols, char *buffer, size_t size)
{
    rt_line line = {buffer, size, 0};

    if (size)
        buffer[0] = '\0';
    for (int32_t s = 0; s < n_symbols; s++) {
        bool used = false;

        for (int32_t i = 0; i < count; i++)
            used = used || uses(dims[i], s, n_symbols);
        if (used)
            rt_put(&line, "%s%s = %lld", line.n ? ", " : " where ", names[s], (long long)symbols[s]);
    }
    return buffer;
}

/* Checks the conditions of a function or graph; the error says which one fails for which sizes. */
bool rt_facts_hold(const rt_fact_desc *facts, int32_t count, const char *const *names, const int64_t *symbols,
                   int32_t n_symbols, const char *who, tec_error *err)
{
    for (int32_t i = 0; i < count; i++) {
        tec_error inner = {0};
        int64_t holds;
        char where[200];

        if (!rt_dim_eval(facts[i].condition, symbols, &holds, &inner))
            return rt_fail(err, TEC_INVALID, "%s: condition '%s': %s", who, facts[i].text, inner.text);
        if (!holds)
            return rt_fail(
                err, TEC_INVALID, "%s: needs %s, which does not hold%s", who, facts[i].text,
                rt_where_text(&facts[i].condition, 1, names, symbols, n_symbols, where, sizeof where));
    }
    return true;
}
