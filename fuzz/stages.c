/* fuzz/stages.c -- stages over whole dimensions: element-wise, reductions (also of tuples, also nested),
 * reshapes, gathers, predicates. */
#include "fuzz/define.h"
#include "fuzz/draw.h"

enum { MAX_POINTS = 4000, MAX_STORED = 1500 };

static const char *const spatial_names[] = {"y", "x", "c", "b", "z"}, *const reduce_names[] = {"k", "l", "p",
                                                                                               "q", "r"};

static int axes_of(const fuzz_tensor *base, fuzz_axis *axis)
{
    for (int i = 0; i < base->rank; i++)
        axis[i] = (fuzz_axis){spatial_names[i], base->shape[i]};
    return base->rank;
}

static void shuffle(fuzz_maker *maker, fuzz_axis *axis, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = fuzz_below(maker->state, i + 1);
        fuzz_dim e = axis[i].extent;

        axis[i].extent = axis[j].extent;
        axis[j].extent = e;
    }
}

/* "  S2[y: n, x: 4] = " and the tensor that it makes. */
static void open_stage(fuzz_maker *maker, const char *name, const fuzz_axis *axis, int n)
{
    base_addf(maker->cx, &maker->body, "  %s[%s] = ", name, fuzz_axes_text(maker, axis, n));
}

/* Axes in any order, now and then one more. */
bool fuzz_elementwise(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK];
    int n = axes_of(base, axis);
    int64_t bound;

    if (fuzz_chance(maker->state, 20))
        shuffle(maker, axis, n);
    if (n < 3 && fuzz_chance(maker->state, 10))
        axis[n] = (fuzz_axis){spatial_names[n], fuzz_const(2 + fuzz_below(maker->state, 3))}, n++;
    if (fuzz_points(axis, n) > MAX_STORED)
        return false;
    const char *e = fuzz_expr(maker, base, axis, n, 1 + fuzz_below(maker->state, 3), &bound),
               *name = fuzz_stage_name(maker);
    open_stage(maker, name, axis, n);
    base_addf(maker->cx, &maker->body, "%s\n", e);
    fuzz_add_tensor(maker, name, maker->t, axis, n, bound);
    return true;
}

/* Some axes of base reduce, at least one; `all` has the spatial ones first. Gives how many are spatial. */
static int split_axes(fuzz_maker *maker, const fuzz_tensor *base, fuzz_axis *all)
{
    fuzz_axis reduce[FUZZ_MAX_RANK];
    int spatial = 0, reduces = 0, kept = fuzz_below(maker->state, base->rank);

    for (int i = 0; i < base->rank; i++)
        if (i == kept || (base->rank > 2 && fuzz_chance(maker->state, 30)))
            reduce[reduces] = (fuzz_axis){reduce_names[reduces], base->shape[i]}, reduces++;
        else
            all[spatial] = (fuzz_axis){spatial_names[spatial], base->shape[i]}, spatial++;
    for (int i = 0; i < reduces; i++)
        all[spatial + i] = reduce[i];
    return spatial;
}

/* How much a sum or product over the axes may grow; 0: too much. */
static int64_t grown(const char *op, int64_t bound, int64_t points, int64_t limit)
{
    int64_t result = 1;

    if (*op == 's')
        return bound * points <= limit ? bound * points : 0;
    if (*op != 'p')
        return bound;
    for (int64_t i = 0; i < points && result <= limit; i++)
        result *= bound;
    return result <= limit ? result : 0;
}

/* sum[k](...) with a bound that holds for the sum; NULL where it would not. */
static const char *reduction_text(fuzz_maker *maker, const fuzz_tensor *base, const fuzz_axis *axis,
                                  int spatial, int count, int64_t *bound)
{
    static const char *const ops[] = {"sum", "max", "min", "prod"};
    const char *op = ops[fuzz_weighted(maker->state, (const int[]){50, 20, 20, 10}, 4)];
    int64_t points = fuzz_points(axis + spatial, count - spatial), limit = fuzz_limit(maker->t) / 64;
    const char *e = fuzz_expr(maker, base, axis, count, fuzz_below(maker->state, 3), bound), *where = "";

    e = fuzz_clamp(maker, e, *op == 's' ? limit / (points + 1) : limit, bound);
    int64_t result = grown(op, *bound, points, limit);
    if (!result)
        return NULL;
    if (fuzz_chance(maker->state, 15))
        where = maker->open ? "" : base_format(maker->cx, " where %s", fuzz_condition(maker, axis, count));
    e = base_format(maker->cx, "%s[%s](%s%s)", op, fuzz_axes_text(maker, axis + spatial, count - spatial), e,
                    where);
    /* Over nothing, the least and the greatest are infinite or the ends of the dtype. */
    if (*op == 'm')
        return base_format(maker->cx, "min(max(%s, %s), %s)", e, fuzz_literal(maker, -(*bound = result)),
                           fuzz_literal(maker, result));
    *bound = result;
    return e;
}

/* Reduces any of the axes of `base`. */
bool fuzz_reduction(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    int64_t bound;

    if (base->rank == 0)
        return false;
    int spatial = split_axes(maker, base, axis), n = base->rank;
    if (fuzz_points(axis, n) > MAX_POINTS)
        return false;
    const char *e = reduction_text(maker, base, axis, spatial, n, &bound);
    if (!e)
        return false;
    const char *name = fuzz_stage_name(maker);
    open_stage(maker, name, axis, spatial);
    base_addf(maker->cx, &maker->body, "%s\n", e);
    fuzz_add_tensor(maker, name, maker->t, axis, spatial, bound);
    return true;
}

/* ---- reshapes ---- */

/* A reshape that makes one dimension of two; false where the second extent is symbolic. */
static bool merge(fuzz_maker *maker, const fuzz_tensor *base, int dim)
{
    fuzz_axis axis[FUZZ_MAX_RANK];
    base_text index = {0};
    fuzz_dim a = base->shape[dim], b = base->shape[dim + 1];

    if (!fuzz_is_const(b))
        return false;
    for (int i = 0; i < base->rank - 1; i++)
        axis[i] = (fuzz_axis){spatial_names[i], base->shape[i + (i > dim)]};
    axis[dim].extent = (fuzz_dim){a.coef * (int)b.c, a.sym, a.c * b.c};
    for (int i = 0; i < base->rank; i++) {
        const char *from = spatial_names[i > dim ? i - 1 : i];

        base_addf(maker->cx, &index, i ? ", " : "");
        base_addf(maker->cx, &index,
                  i == dim       ? "floordiv(%s, %lld)"
                  : i == dim + 1 ? "%s %% %lld"
                                 : "%s",
                  from, (long long)b.c);
    }
    const char *name = fuzz_stage_name(maker);
    open_stage(maker, name, axis, base->rank - 1);
    base_addf(maker->cx, &maker->body, "%s[%s]\n", base->name, base_text_str(maker->cx, &index));
    fuzz_add_tensor(maker, name, base->t, axis, base->rank - 1, base->bound);
    return true;
}

/* A reshape that makes two dimensions of one; false where nothing divides the extent. */
static bool divide(fuzz_maker *maker, const fuzz_tensor *base, int dim)
{
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    base_text index = {0};
    fuzz_dim e = base->shape[dim];
    int f = 2 + fuzz_below(maker->state, 3);

    if (base->rank == FUZZ_MAX_RANK || e.coef % f || e.c % f)
        return false;
    for (int i = 0; i <= base->rank; i++)
        axis[i] = (fuzz_axis){spatial_names[i], base->shape[i > dim ? i - 1 : i]};
    axis[dim].extent = (fuzz_dim){e.coef / f, e.sym, e.c / f};
    axis[dim + 1].extent = fuzz_const(f);
    for (int i = 0; i < base->rank; i++) {
        base_addf(maker->cx, &index, i ? ", %s" : "%s", spatial_names[i > dim ? i + 1 : i]);
        if (i == dim)
            base_addf(maker->cx, &index, " * %d + %s", f, spatial_names[dim + 1]);
    }
    const char *name = fuzz_stage_name(maker);
    open_stage(maker, name, axis, base->rank + 1);
    base_addf(maker->cx, &maker->body, "%s[%s]\n", base->name, base_text_str(maker->cx, &index));
    fuzz_add_tensor(maker, name, base->t, axis, base->rank + 1, base->bound);
    return true;
}

bool fuzz_reshape(fuzz_maker *maker, const fuzz_tensor *base)
{
    if (base->rank == 0)
        return false;
    if (base->rank >= 2 && fuzz_chance(maker->state, 50))
        return merge(maker, base, fuzz_below(maker->state, base->rank - 1));
    return divide(maker, base, fuzz_below(maker->state, base->rank));
}

/* ---- tuples ---- */

/* argmax or argmin over the last axis: two results. */
bool fuzz_arg_reduction(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK];

    if (base->rank == 0 || base_is_bool(base->t))
        return false;
    int last = base->rank - 1;
    axes_of(base, axis);
    axis[last].name = "k";
    if (fuzz_points(axis, base->rank) > MAX_POINTS || fuzz_dim_min(maker, axis[last].extent) < 1)
        return false;
    const char *name = fuzz_stage_name(maker), *value = base_format(maker->cx, "%sv", name),
               *index = base_format(maker->cx, "%si", name);
    base_text read = {0};
    for (int i = 0; i < base->rank; i++)
        base_addf(maker->cx, &read, "%s%s", i ? ", " : "", axis[i].name);
    base_addf(maker->cx, &maker->body, "  %s(%s, %s)[%s] = %s[%s](%s[%s], k)\n", name, value, index,
              fuzz_axes_text(maker, axis, last), fuzz_chance(maker->state, 50) ? "argmax" : "argmin",
              fuzz_axes_text(maker, axis + last, 1), base->name, base_text_str(maker->cx, &read));
    int64_t points = fuzz_dim_max(axis[last].extent);
    fuzz_add_tensor(maker, value, base->t, axis, last, base->bound);
    fuzz_add_tensor(maker, index, BASE_I64, axis, last, points);
    return true;
}

/* A user's combiner over (sum, sum of squares): what mean and variance are made of. */
bool fuzz_moments(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    const char *t = base_dtype_text(maker->cx, maker->t), *zero = fuzz_literal(maker, 0);
    int64_t bound;

    if (base->rank == 0)
        return false;
    int spatial = split_axes(maker, base, axis), n = base->rank;
    int64_t points = fuzz_points(axis + spatial, n - spatial);
    if (fuzz_points(axis, n) > MAX_POINTS)
        return false;
    const char *e = fuzz_expr(maker, base, axis, n, 1, &bound), *name = fuzz_stage_name(maker);
    e = fuzz_clamp(maker, e, 9, &bound);
    const char *c = base_format(maker->cx, "moments%d", maker->n_stages);
    base_addf(maker->cx, &maker->combiners,
              "  combiner %s(a: %s, b: %s; s: %s, q: %s) = (a + s, b + q) identity (%s, %s)%s\n", c, t, t, t,
              t, zero, zero, fuzz_chance(maker->state, 70) ? " reorders" : "");
    base_addf(maker->cx, &maker->body, "  %s(%sa, %sq)[%s] = %s[%s](%s, %s * %s)\n", name, name, name,
              fuzz_axes_text(maker, axis, spatial), c, fuzz_axes_text(maker, axis + spatial, n - spatial), e,
              e, e);
    fuzz_add_tensor(maker, base_format(maker->cx, "%sa", name), maker->t, axis, spatial, bound * points);
    fuzz_add_tensor(maker, base_format(maker->cx, "%sq", name), maker->t, axis, spatial,
                    bound * bound * points);
    return true;
}

/* A combiner that is neither associative nor commutative: every change of order shows. */
bool fuzz_horner(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    const char *t = base_dtype_text(maker->cx, maker->t);
    int64_t bound;

    if (base->rank == 0)
        return false;
    int spatial = split_axes(maker, base, axis), n = base->rank;
    int64_t points = fuzz_points(axis + spatial, n - spatial);
    if (fuzz_points(axis, n) > MAX_POINTS || points > (base_is_float(maker->t) ? 14 : 22))
        return false;
    const char *e = fuzz_expr(maker, base, axis, n, 1, &bound), *name = fuzz_stage_name(maker),
               *c = base_format(maker->cx, "horner%d", maker->n_stages);
    e = fuzz_clamp(maker, e, 9, &bound);
    base_addf(maker->cx, &maker->combiners, "  combiner %s(a: %s; b: %s) = (a * %s + b) identity (%s)\n", c,
              t, t, fuzz_literal(maker, 2), fuzz_literal(maker, 0));
    open_stage(maker, name, axis, spatial);
    base_addf(maker->cx, &maker->body, "%s[%s](%s)\n", c, fuzz_axes_text(maker, axis + spatial, n - spatial),
              e);
    fuzz_add_tensor(maker, name, maker->t, axis, spatial, (bound + 1) << points);
    return true;
}

/* A stage with two results over the same axes. */
bool fuzz_several(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK];
    int n = axes_of(base, axis);
    int64_t one, two;

    if (fuzz_points(axis, n) > MAX_STORED)
        return false;
    const char *a = fuzz_expr(maker, base, axis, n, 1, &one), *b = fuzz_expr(maker, base, axis, n, 2, &two),
               *name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body, "  %s(%sa, %sb)[%s] = %s, %s\n", name, name, name,
              fuzz_axes_text(maker, axis, n), a, b);
    fuzz_add_tensor(maker, base_format(maker->cx, "%sa", name), maker->t, axis, n, one);
    fuzz_add_tensor(maker, base_format(maker->cx, "%sb", name), maker->t, axis, n, two);
    return true;
}

/* ---- others ---- */

/* Sums of the beginnings: the condition of the reduction depends on a spatial axis. */
bool fuzz_triangle(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK + 1];
    base_text read = {0};
    int n = axes_of(base, axis), d = n ? fuzz_below(maker->state, n) : 0;
    int64_t points = n ? fuzz_dim_max(axis[d].extent) : 0, bound = base->bound * (points + 1);

    if (n == 0 || base_is_bool(base->t) || fuzz_points(axis, n) * points > MAX_POINTS ||
        bound > fuzz_limit(maker->t) / 64)
        return false;
    axis[n] = (fuzz_axis){"k", axis[d].extent};
    for (int i = 0; i < n; i++)
        base_addf(maker->cx, &read, "%s%s", i ? ", " : "", i == d ? "k" : axis[i].name);
    const char *name = fuzz_stage_name(maker),
               *e = base_format(maker->cx, "%s[%s]", base->name, base_text_str(maker->cx, &read));
    open_stage(maker, name, axis, n);
    base_addf(maker->cx, &maker->body, "sum[%s](%s where k %s %s)\n", fuzz_axes_text(maker, axis + n, 1),
              base_dtype_same(base->t, maker->t)
                  ? e
                  : base_format(maker->cx, "%s(%s)", base_dtype_text(maker->cx, maker->t), e),
              fuzz_chance(maker->state, 50) ? "<=" : "<", axis[d].name);
    fuzz_add_tensor(maker, name, maker->t, axis, n, bound);
    return true;
}

/* Elements at the places that an input says, where those exist. */
bool fuzz_gather(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_dim places = fuzz_const(1 + fuzz_below(maker->state, 9));
    fuzz_axis axis[FUZZ_MAX_RANK];
    base_text read = {0};

    if (base->rank == 0 || base_is_bool(base->t))
        return false;
    fuzz_tensor *at = fuzz_add_input(maker, BASE_I32, &places, 1);
    if (!at)
        return false;
    int n = axes_of(base, axis);
    axis[0].extent = places;
    base_addf(maker->cx, &read, "i64(%s[y])", at->name);
    for (int i = 1; i < n; i++)
        base_addf(maker->cx, &read, ", %s", axis[i].name);
    const char *name = fuzz_stage_name(maker), *index = base_format(maker->cx, "i64(%s[y])", at->name);
    open_stage(maker, name, axis, n);
    base_addf(maker->cx, &maker->body, "select(%s >= 0 && %s < %s, %s[%s], %s(0))\n", index, index,
              fuzz_dim_text(maker, base->shape[0]), base->name, base_text_str(maker->cx, &read),
              base_dtype_text(maker->cx, base->t));
    fuzz_add_tensor(maker, name, base->t, axis, n, base->bound);
    return true;
}

/* A tensor of truth values, sometimes reduced. */
bool fuzz_predicate(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_axis axis[FUZZ_MAX_RANK + 1] = {{0}};
    int n = axes_of(base, axis), kept = n;

    if (fuzz_points(axis, n) > MAX_STORED)
        return false;
    const char *e = fuzz_condition(maker, axis, n), *name = fuzz_stage_name(maker);
    if (n > 0 && fuzz_chance(maker->state, 40)) {
        kept = n - 1;
        e = base_format(maker->cx, "%s[%s](%s)", fuzz_chance(maker->state, 50) ? "any" : "all",
                        fuzz_axes_text(maker, axis + kept, 1), e);
    }
    open_stage(maker, name, axis, kept);
    base_addf(maker->cx, &maker->body, "%s\n", e);
    fuzz_add_tensor(maker, name, BASE_BOOL, axis, kept, 1);
    return true;
}
