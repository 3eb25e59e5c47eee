/* fuzz/patterns.c -- stages that a tensor intrinsic fits on, with the intrinsic: it means a tile of the
 * stage.
 *
 *     def f(A: f32[12, 6], B: f32[9, 6]) { S1[y: 12, x: 9] = sum[k: 6](B[x, k] * A[y, k]) ... }
 *     intrinsic S1.tile(m2, a: f32[4, m2], b: f32[3, m2]) {
 *       c[y: 4, x: 3] = sum[k: m2](a[y, k] * b[x, k])
 *       return c
 *       strides a[a0, a1]
 *       update "for k in 0..m2 { for y in 0..4 { for x in 0..3 { c[y, x] = c[y, x] + a[y, k] * b[x, k] } } }"
 *     }
 *
 * Operands are commuted and transposed, tiles may be the whole of an axis, any part of it (a symbol), or a
 * constant that does not divide it.
 */
#include "fuzz/define.h"
#include "fuzz/draw.h"

enum { MAX_AXES = 4, MAX_POINTS = 5000, MAX_TILE = 8 };

typedef struct {
    const char *name;
    fuzz_dim extent;
    int64_t tile; /* 0: any, a symbol of the intrinsic */
    bool reduce;
} pattern_axis;

/* A tensor of the stage; `local` in the intrinsic. */
typedef struct {
    const char *name, *local;
    base_dtype t;
    int dim[MAX_AXES], n; /* axes */
} operand;

typedef struct {
    fuzz_maker *m;
    pattern_axis at[MAX_AXES];
    int n, out[MAX_AXES], n_out; /* the spatial axes, in the order of the result */
    operand read[2];
    int n_reads;
    const char *combiner, *way; /* NULL: element by element; how two operands meet */
    int64_t bound;
} pattern;

/* ---- drawing ---- */

static int64_t draw_tile(fuzz_maker *m, fuzz_dim d)
{
    int64_t any = 1 + fuzz_below(m->state, 4), tile = 1 + fuzz_below(m->state, MAX_TILE);

    if (!fuzz_is_const(d))
        return fuzz_chance(m->state, 75) ? 0 : any;
    if (fuzz_chance(m->state, 20))
        return fuzz_chance(m->state, 50) ? 0 : any;
    while (d.c % tile)
        tile--;
    return tile;
}

static void shuffle(fuzz_maker *m, int *at, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = fuzz_below(m->state, i + 1), swap = at[i];

        at[i] = at[j];
        at[j] = swap;
    }
}

/* The axes of the base, one more now and then; at least one is of the result. */
static void draw_axes(pattern *p, const fuzz_tensor *base)
{
    static const char *const names[MAX_AXES] = {"y", "x", "k", "z"};

    for (; p->n < base->rank; p->n++)
        p->at[p->n] =
            (pattern_axis){names[p->n], base->shape[p->n], 0, p->n > 0 && fuzz_chance(p->m->state, 50)};
    if (fuzz_chance(p->m->state, 50))
        p->at[p->n++] =
            (pattern_axis){names[MAX_AXES - 1], fuzz_const(1 + fuzz_below(p->m->state, 12)), 0, false};
    for (int i = 0; i < p->n; i++) {
        p->at[i].tile = draw_tile(p->m, p->at[i].extent);
        if (!p->at[i].reduce)
            p->out[p->n_out++] = i;
        else
            p->combiner = fuzz_chance(p->m->state, 70) ? "sum" : "max";
    }
    if (fuzz_chance(p->m->state, 30))
        shuffle(p->m, p->out, p->n_out);
}

static void read_base(pattern *p, const fuzz_tensor *base)
{
    operand *o = &p->read[p->n_reads++];

    *o = (operand){.name = base->name, .local = "a", .t = base->t, .n = base->rank};
    for (int i = 0; i < o->n; i++)
        o->dim[i] = i;
}

/* Some of the axes in any order; an axis that the base lacks in any case. */
static bool read_input(pattern *p, const fuzz_tensor *base)
{
    operand *o = &p->read[p->n_reads];
    fuzz_dim shape[FUZZ_MAX_RANK];

    *o = (operand){.local = "b", .t = p->m->t};
    for (int i = 0; i < p->n; i++)
        if (o->n < 3 && (i >= base->rank || fuzz_chance(p->m->state, 60)))
            o->dim[o->n++] = i;
    if (o->n == 0 || (p->n == base->rank && fuzz_chance(p->m->state, 20)))
        return p->n == base->rank;
    shuffle(p->m, o->dim, o->n);
    for (int i = 0; i < o->n; i++)
        shape[i] = p->at[o->dim[i]].extent;
    const fuzz_tensor *t = fuzz_add_input(p->m, o->t, shape, o->n);
    o->name = t ? t->name : NULL;
    p->n_reads += t != NULL;
    return t != NULL;
}

static bool fits(pattern *p, const fuzz_tensor *base)
{
    int64_t points = 1, reduced = 1, other = FUZZ_DATA_MAX;

    for (int i = 0; i < p->n; i++) {
        points *= fuzz_dim_max(p->at[i].extent);
        reduced *= p->at[i].reduce ? fuzz_dim_max(p->at[i].extent) : 1;
    }
    p->way = fuzz_chance(p->m->state, 70) ? " * " : " + ";
    p->bound = (base->bound + 1) * (other + 1) * (reduced + 1);
    return points <= MAX_POINTS && p->bound <= fuzz_limit(p->m->t) / 64;
}

/* ---- text ---- */

static const char *element(const pattern *p, const operand *o, bool local)
{
    const char *sep = "", *dtype = base_dtype_text(p->m->cx, p->m->t);
    bool cast = !base_dtype_same(o->t, p->m->t);
    base_text t = {0};

    base_addf(p->m->cx, &t, "%s%s%s[", cast ? dtype : "", cast ? "(" : "", local ? o->local : o->name);
    for (int i = 0; i < o->n; i++, sep = ", ")
        base_addf(p->m->cx, &t, "%s%s", sep, p->at[o->dim[i]].name);
    base_addf(p->m->cx, &t, "]%s", cast ? ")" : "");
    return base_text_str(p->m->cx, &t);
}

/* What is computed at a point, with the operands of the intrinsic or those of the stage, in any order. */
static const char *value(const pattern *p, bool local)
{
    const char *a = element(p, &p->read[0], local);

    if (p->n_reads < 2)
        return base_format(p->m->cx, "%s%s%s", a, p->way, fuzz_literal(p->m, 2));
    const char *b = element(p, &p->read[1], local);
    return fuzz_chance(p->m->state, 50) ? base_format(p->m->cx, "%s%s%s", a, p->way, b)
                                        : base_format(p->m->cx, "%s%s%s", b, p->way, a);
}

static const char *extent_of(const pattern *p, int i, bool local)
{
    if (!local)
        return fuzz_dim_text(p->m, p->at[i].extent);
    return p->at[i].tile ? base_format(p->m->cx, "%lld", (long long)p->at[i].tile)
                         : base_format(p->m->cx, "m%d", i);
}

/* The axes of the result or of the reduction, with extents of the stage or (`local`) of the intrinsic. */
static const char *axes(const pattern *p, bool reduce, bool local)
{
    const char *sep = "";
    base_text t = {0};

    for (int k = 0; k < (reduce ? p->n : p->n_out); k++) {
        int i = reduce ? k : p->out[k];

        if (p->at[i].reduce == reduce) {
            base_addf(p->m->cx, &t, "%s%s: %s", sep, p->at[i].name, extent_of(p, i, local));
            sep = ", ";
        }
    }
    return base_text_str(p->m->cx, &t);
}

static void add_computation(const pattern *p, base_text *t, const char *name, bool local)
{
    base_addf(p->m->cx, t, "  %s[%s] = ", name, axes(p, false, local));
    if (p->combiner)
        base_addf(p->m->cx, t, "%s[%s](%s)\n", p->combiner, axes(p, true, local), value(p, local));
    else
        base_addf(p->m->cx, t, "%s\n", value(p, local));
}

/* Symbols for the sizes that are not fixed, then the operands. */
static void add_params(const pattern *p, base_text *t)
{
    const char *sep = "";

    for (int i = 0; i < p->n; i++)
        if (!p->at[i].tile) {
            base_addf(p->m->cx, t, "%sm%d", sep, i);
            sep = ", ";
        }
    for (int i = 0; i < p->n_reads; i++, sep = ", ") {
        base_addf(p->m->cx, t, "%s%s: %s[", sep, p->read[i].local, base_dtype_text(p->m->cx, p->read[i].t));
        for (int d = 0; d < p->read[i].n; d++)
            base_addf(p->m->cx, t, "%s%s", d ? ", " : "", extent_of(p, p->read[i].dim[d], true));
        base_add(p->m->cx, t, "]");
    }
}

static void add_strides(const pattern *p, base_text *t, const char *name, int n)
{
    if (n == 0 || fuzz_chance(p->m->state, 10))
        return;
    base_addf(p->m->cx, t, "  strides %s[", name);
    for (int d = 0; d < n; d++)
        base_addf(p->m->cx, t, "%s%s%d", d ? ", " : "", name, d);
    base_add(p->m->cx, t, "]\n");
}

static const char *result(const pattern *p)
{
    base_text t = {0};

    base_add(p->m->cx, &t, "c[");
    for (int k = 0; k < p->n_out; k++)
        base_addf(p->m->cx, &t, "%s%s", k ? ", " : "", p->at[p->out[k]].name);
    base_add(p->m->cx, &t, "]");
    return base_text_str(p->m->cx, &t);
}

/* Loops over axes in any order, around a statement; now and then those of the result are parallel. */
static const char *nest(const pattern *p, bool all, const char *statement)
{
    int order[MAX_AXES], n = 0, parallel = fuzz_chance(p->m->state, 50) ? 70 : 0;

    for (int i = 0; i < p->n; i++)
        if (all || !p->at[i].reduce)
            order[n++] = i;
    shuffle(p->m, order, n);
    for (int k = 0; k < n; k++)
        statement = base_format(
            p->m->cx, "for %s in 0..%s %s{ %s }", p->at[order[k]].name, extent_of(p, order[k], true),
            !p->at[order[k]].reduce && fuzz_chance(p->m->state, parallel) ? "parallel " : "", statement);
    return statement;
}

static const char *update(const pattern *p)
{
    const char *c = result(p), *e = value(p, true);

    return nest(p, true,
                base_same(p->combiner, "sum") ? base_format(p->m->cx, "%s = %s + %s", c, c, e)
                                              : base_format(p->m->cx, "%s = max(%s, %s)", c, c, e));
}

/* Any forms that make sense for the combiner. */
static void add_forms(const pattern *p, base_text *t)
{
    bool sum = p->combiner && base_same(p->combiner, "sum");
    const char *reset =
        sum ? nest(p, false, base_format(p->m->cx, "%s = %s", result(p), fuzz_literal(p->m, 0))) : "";

    if (!p->combiner) {
        base_addf(p->m->cx, t, "  body \"%s\"\n",
                  nest(p, true, base_format(p->m->cx, "%s = %s", result(p), value(p, true))));
        return;
    }
    if (sum && fuzz_chance(p->m->state, 30))
        base_addf(p->m->cx, t, "  body \"%s %s\"\n", reset, update(p));
    if (sum && fuzz_chance(p->m->state, 60))
        base_addf(p->m->cx, t, "  reset \"%s\"\n", reset);
    base_addf(p->m->cx, t, "  update \"%s\"\n", update(p));
}

/* The declaration, in text, behind the definition. */
static void add_intrinsic(pattern *p, const char *stage)
{
    base_text *t = &p->m->intrinsics;

    base_addf(p->m->cx, t, "intrinsic %s.tile(", stage);
    add_params(p, t);
    base_add(p->m->cx, t, ") {\n");
    add_computation(p, t, "c", true);
    base_add(p->m->cx, t, "  return c\n");
    for (int i = 0; i < p->n_reads; i++)
        add_strides(p, t, p->read[i].local, p->read[i].n);
    add_strides(p, t, "c", p->n_out);
    add_forms(p, t);
    base_add(p->m->cx, t, "}\n");
}

/* A stage and an intrinsic that fits on a tile of it. False where the tensor does not suit. */
bool fuzz_pattern(fuzz_maker *m, const fuzz_tensor *base)
{
    pattern p = {.m = m};
    fuzz_axis kept[MAX_AXES];

    if (base->rank == 0 || base->rank > 3 || base_is_bool(base->t))
        return false;
    draw_axes(&p, base);
    if (!fits(&p, base))
        return false;
    read_base(&p, base);
    if (!read_input(&p, base))
        return false;
    const char *name = fuzz_stage_name(m);
    add_computation(&p, &m->body, name, false);
    add_intrinsic(&p, name);
    for (int k = 0; k < p.n_out; k++)
        kept[k] = (fuzz_axis){p.at[p.out[k]].name, p.at[p.out[k]].extent};
    fuzz_add_tensor(m, name, m->t, kept, p.n_out, p.bound);
    return true;
}

/* Rows of bits by rows of bits, for the intrinsic bits.1x1: multiples of 8 rows and 8 words. */
bool fuzz_bits(fuzz_maker *m, const fuzz_tensor *base)
{
    fuzz_dim words = fuzz_const(8 * (1 + fuzz_below(m->state, 2)));
    fuzz_axis axis[] = {{"y", base->rank ? base->shape[0] : fuzz_const(3)},
                        {"x", fuzz_const(8 * (1 + fuzz_below(m->state, 2)))},
                        {"k", words}};
    fuzz_dim shape[2][2] = {{axis[1].extent, words}, {axis[0].extent, words}};

    if (fuzz_points(axis, 3) > MAX_POINTS || m->n_inputs > 5)
        return false;
    const char *w = fuzz_add_input(m, BASE_U64, shape[0], 2)->name,
               *v = fuzz_add_input(m, BASE_U64, shape[1], 2)->name, *name = fuzz_stage_name(m);
    base_addf(m->cx, &m->body, "  %s[%s] = sum[%s](i32(popcount(%s[x, k] & %s[y, k])))\n", name,
              fuzz_axes_text(m, axis, 2), fuzz_axes_text(m, axis + 2, 1), w, v);
    fuzz_add_tensor(m, name, BASE_I32, axis, 2, 64 * words.c);
    return true;
}
