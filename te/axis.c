/* te/axis.c -- axes: int64 variables that know their extent, and whether they are reduced over. */
#include "te/axis.h"

#include "ir/text.h"

/* What the owner field of an axis variable points to. */
typedef struct {
    const ir_expr *extent; /* NULL until te_axis_set_extent */
    bool reduce;
} axis_info;

static bool is_axis(const ir_expr *expr)
{
    return expr && expr->op == IR_VAR && expr->var.owner;
}

/* True where the extent can be one, otherwise an error. */
static bool check_extent(tec_context *cx, const char *name, const ir_expr *extent)
{
    int64_t n;

    if (!base_dtype_same(extent->dtype, BASE_I64))
        base_fail(cx, TEC_INVALID, base_where(cx),
                  "expected an i64 expression as the extent of axis '%s', found '%s' of type %s", name,
                  ir_expr_text(cx, extent), base_dtype_text(cx, extent->dtype));
    else if (ir_is_int(extent, &n) && n < 0)
        base_fail(cx, TEC_INVALID, base_where(cx), "the extent of axis '%s' is negative: %lld", name,
                  (long long)n);
    else
        return true;
    return false;
}

/* The owner field marks the variable as an axis; it is the only thing that tells an axis from a symbol. */
const ir_expr *te_axis_open(tec_context *cx, const char *name, const ir_expr *extent, bool reduce)
{
    const ir_expr *plain = ir_var(cx, name, BASE_I64);

    if (!plain || (extent && !check_extent(cx, name, extent)))
        return NULL;
    axis_info *info = base_new(cx, axis_info);
    ir_expr *v = base_copy(cx, plain, sizeof *plain);

    info->extent = extent;
    info->reduce = reduce;
    v->var.owner = info;
    return v;
}

/* Changes a variable that is in expressions already, which is why a body can be parsed first. Only once, and
 * only for an axis that was made without an extent. */
void te_axis_set_extent(const ir_expr *axis, const ir_expr *extent)
{
    ((axis_info *)axis->var.owner)->extent = extent;
}

const ir_expr *te_axis(tec_context *cx, const char *name, const ir_expr *extent)
{
    return extent ? te_axis_open(cx, name, extent, false) : NULL;
}

const ir_expr *te_reduce_axis(tec_context *cx, const char *name, const ir_expr *extent)
{
    return extent ? te_axis_open(cx, name, extent, true) : NULL;
}

const ir_expr *te_axis_extent(const ir_expr *axis)
{
    return is_axis(axis) ? ((const axis_info *)axis->var.owner)->extent : NULL;
}

bool te_axis_is_reduce(const ir_expr *axis)
{
    return is_axis(axis) && ((const axis_info *)axis->var.owner)->reduce;
}
