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

/* 0: no tile. A constant extent gets one that divides it, so that intrinsics match often. */
static int64_t draw_tile(fuzz_maker *maker, fuzz_dim dim)
{
    int64_t any = 1 + fuzz_below(maker->state, 4), tile = 1 + fuzz_below(maker->state, MAX_TILE);

    if (!fuzz_is_const(dim))
        return fuzz_chance(maker->state, 75) ? 0 : any;
    if (fuzz_chance(maker->state, 20))
        return fuzz_chance(maker->state, 50) ? 0 : any;
    while (dim.c % tile)
        tile--;
    return tile;
}

static void shuffle(fuzz_maker *maker, int *at, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = fuzz_below(maker->state, i + 1), swap = at[i];

        at[i] = at[j];
        at[j] = swap;
    }
}

/* The axes of the base, one more now and then; at least one is of the result. */
static void draw_axes(pattern *self, const fuzz_tensor *base)
{
    static const char *const names[MAX_AXES] = {"y", "x", "k", "z"};

    for (; self->n < base->rank; self->n++)
        self->at[self->n] = (pattern_axis){names[self->n], base->shape[self->n], 0,
                                           self->n > 0 && fuzz_chance(self->m->state, 50)};
    if (fuzz_chance(self->m->state, 50))
        self->at[self->n++] =
            (pattern_axis){names[MAX_AXES - 1], fuzz_const(1 + fuzz_below(self->m->state, 12)), 0, false};
    for (int i = 0; i < self->n; i++) {
        self->at[i].tile = draw_tile(self->m, self->at[i].extent);
        if (!self->at[i].reduce)
            self->out[self->n_out++] = i;
        else
            self->combiner = fuzz_chance(self->m->state, 70) ? "sum" : "max";
    }
    if (fuzz_chance(self->m->state, 30))
        shuffle(self->m, self->out, self->n_out);
}

static void read_base(pattern *self, const fuzz_tensor *base)
{
    operand *o = &self->read[self->n_reads++];

    *o = (operand){.name = base->name, .local = "a", .t = base->t, .n = base->rank};
    for (int i = 0; i < o->n; i++)
        o->dim[i] = i;
}

/* Some of the axes in any order; an axis that the base lacks in any case. */
static bool read_input(pattern *self, const fuzz_tensor *base)
{
    operand *o = &self->read[self->n_reads];
    fuzz_dim shape[FUZZ_MAX_RANK];

    *o = (operand){.local = "b", .t = self->m->t};
    for (int i = 0; i < self->n; i++)
        if (o->n < 3 && (i >= base->rank || fuzz_chance(self->m->state, 60)))
            o->dim[o->n++] = i;
    if (o->n == 0 || (self->n == base->rank && fuzz_chance(self->m->state, 20)))
        return self->n == base->rank;
    shuffle(self->m, o->dim, o->n);
    for (int i = 0; i < o->n; i++)
        shape[i] = self->at[o->dim[i]].extent;
    const fuzz_tensor *tensor = fuzz_add_input(self->m, o->t, shape, o->n);
    o->name = tensor ? tensor->name : NULL;
    self->n_reads += tensor != NULL;
    return tensor != NULL;
}

/* Points bound the time of the interpreter; the bound keeps sums from wrapping. */
static bool fits(pattern *self, const fuzz_tensor *base)
{
    int64_t points = 1, reduced = 1, other = FUZZ_DATA_MAX;

    for (int i = 0; i < self->n; i++) {
        points *= fuzz_dim_max(self->at[i].extent);
        reduced *= self->at[i].reduce ? fuzz_dim_max(self->at[i].extent) : 1;
    }
    self->way = fuzz_chance(self->m->state, 70) ? " * " : " + ";
    self->bound = (base->bound + 1) * (other + 1) * (reduced + 1);
    return points <= MAX_POINTS && self->bound <= fuzz_limit(self->m->t) / 64;
}

/* ---- text ---- */

static const char *element(const pattern *self, const operand *given, bool local)
{
    const char *sep = "", *dtype = base_dtype_text(self->m->cx, self->m->t);
    bool cast = !base_dtype_same(given->t, self->m->t);
    base_text t = {0};

    base_addf(self->m->cx, &t, "%s%s%s[", cast ? dtype : "", cast ? "(" : "",
              local ? given->local : given->name);
    for (int i = 0; i < given->n; i++, sep = ", ")
        base_addf(self->m->cx, &t, "%s%s", sep, self->at[given->dim[i]].name);
    base_addf(self->m->cx, &t, "]%s", cast ? ")" : "");
    return base_text_str(self->m->cx, &t);
}

/* What is computed at a point, with the operands of the intrinsic or those of the stage, in any order. */
static const char *value(const pattern *self, bool local)
{
    const char *a = element(self, &self->read[0], local);

    if (self->n_reads < 2)
        return base_format(self->m->cx, "%s%s%s", a, self->way, fuzz_literal(self->m, 2));
    const char *b = element(self, &self->read[1], local);
    return fuzz_chance(self->m->state, 50) ? base_format(self->m->cx, "%s%s%s", a, self->way, b)
                                           : base_format(self->m->cx, "%s%s%s", b, self->way, a);
}

static const char *extent_of(const pattern *self, int i, bool local)
{
    if (!local)
        return fuzz_dim_text(self->m, self->at[i].extent);
    return self->at[i].tile ? base_format(self->m->cx, "%lld", (long long)self->at[i].tile)
                            : base_format(self->m->cx, "m%d", i);
}

/* The axes of the result or of the reduction, with extents of the stage or (`local`) of the intrinsic. */
static const char *axes(const pattern *self, bool reduce, bool local)
{
    const char *sep = "";
    base_text t = {0};

    for (int k = 0; k < (reduce ? self->n : self->n_out); k++) {
        int i = reduce ? k : self->out[k];

        if (self->at[i].reduce == reduce) {
            base_addf(self->m->cx, &t, "%s%s: %s", sep, self->at[i].name, extent_of(self, i, local));
            sep = ", ";
        }
    }
    return base_text_str(self->m->cx, &t);
}

static void add_computation(const pattern *self, base_text *text, const char *name, bool local)
{
    base_addf(self->m->cx, text, "  %s[%s] = ", name, axes(self, false, local));
    if (self->combiner)
        base_addf(self->m->cx, text, "%s[%s](%s)\n", self->combiner, axes(self, true, local),
                  value(self, local));
    else
        base_addf(self->m->cx, text, "%s\n", value(self, local));
}

/* Symbols for the sizes that are not fixed, then the operands. */
static void add_params(const pattern *self, base_text *text)
{
    const char *sep = "";

    for (int i = 0; i < self->n; i++)
        if (!self->at[i].tile) {
            base_addf(self->m->cx, text, "%sm%d", sep, i);
            sep = ", ";
        }
    for (int i = 0; i < self->n_reads; i++, sep = ", ") {
        base_addf(self->m->cx, text, "%s%s: %s[", sep, self->read[i].local,
                  base_dtype_text(self->m->cx, self->read[i].t));
        for (int d = 0; d < self->read[i].n; d++)
            base_addf(self->m->cx, text, "%s%s", d ? ", " : "", extent_of(self, self->read[i].dim[d], true));
        base_add(self->m->cx, text, "]");
    }
}

static void add_strides(const pattern *self, base_text *text, const char *name, int n)
{
    if (n == 0 || fuzz_chance(self->m->state, 10))
        return;
    base_addf(self->m->cx, text, "  strides %s[", name);
    for (int d = 0; d < n; d++)
        base_addf(self->m->cx, text, "%s%s%d", d ? ", " : "", name, d);
    base_add(self->m->cx, text, "]\n");
}

static const char *result(const pattern *self)
{
    base_text t = {0};

    base_add(self->m->cx, &t, "c[");
    for (int k = 0; k < self->n_out; k++)
        base_addf(self->m->cx, &t, "%s%s", k ? ", " : "", self->at[self->out[k]].name);
    base_add(self->m->cx, &t, "]");
    return base_text_str(self->m->cx, &t);
}

/* Loops over axes in any order, around a statement; now and then those of the result are parallel. */
static const char *nest(const pattern *self, bool all, const char *statement)
{
    int order[MAX_AXES], n = 0, parallel = fuzz_chance(self->m->state, 50) ? 70 : 0;

    for (int i = 0; i < self->n; i++)
        if (all || !self->at[i].reduce)
            order[n++] = i;
    shuffle(self->m, order, n);
    for (int k = 0; k < n; k++)
        statement = base_format(
            self->m->cx, "for %s in 0..%s %s{ %s }", self->at[order[k]].name, extent_of(self, order[k], true),
            !self->at[order[k]].reduce && fuzz_chance(self->m->state, parallel) ? "parallel " : "",
            statement);
    return statement;
}

static const char *update(const pattern *self)
{
    const char *c = result(self), *e = value(self, true);

    return nest(self, true,
                base_same(self->combiner, "sum") ? base_format(self->m->cx, "%s = %s + %s", c, c, e)
                                                 : base_format(self->m->cx, "%s = max(%s, %s)", c, c, e));
}

/* Any forms that make sense for the combiner. */
static void add_forms(const pattern *self, base_text *text)
{
    bool sum = self->combiner && base_same(self->combiner, "sum");
    const char *reset =
        sum ? nest(self, false, base_format(self->m->cx, "%s = %s", result(self), fuzz_literal(self->m, 0)))
            : "";

    if (!self->combiner) {
        base_addf(self->m->cx, text, "  body \"%s\"\n",
                  nest(self, true, base_format(self->m->cx, "%s = %s", result(self), value(self, true))));
        return;
    }
    if (sum && fuzz_chance(self->m->state, 30))
        base_addf(self->m->cx, text, "  body \"%s %s\"\n", reset, update(self));
    if (sum && fuzz_chance(self->m->state, 60))
        base_addf(self->m->cx, text, "  reset \"%s\"\n", reset);
    base_addf(self->m->cx, text, "  update \"%s\"\n", update(self));
}

/* The declaration, in text, behind the definition. */
static void add_intrinsic(pattern *self, const char *stage)
{
    base_text *text = &self->m->intrinsics;

    base_addf(self->m->cx, text, "intrinsic %s.tile(", stage);
    add_params(self, text);
    base_add(self->m->cx, text, ") {\n");
    add_computation(self, text, "c", true);
    base_add(self->m->cx, text, "  return c\n");
    for (int i = 0; i < self->n_reads; i++)
        add_strides(self, text, self->read[i].local, self->read[i].n);
    add_strides(self, text, "c", self->n_out);
    add_forms(self, text);
    base_add(self->m->cx, text, "}\n");
}

/* A stage and an intrinsic that fits on a tile of it. False where the tensor does not suit. */
bool fuzz_pattern(fuzz_maker *maker, const fuzz_tensor *base)
{
    pattern p = {.m = maker};
    fuzz_axis kept[MAX_AXES];

    if (base->rank == 0 || base->rank > 3 || base_is_bool(base->t))
        return false;
    draw_axes(&p, base);
    if (!fits(&p, base))
        return false;
    read_base(&p, base);
    if (!read_input(&p, base))
        return false;
    const char *name = fuzz_stage_name(maker);
    add_computation(&p, &maker->body, name, false);
    add_intrinsic(&p, name);
    for (int k = 0; k < p.n_out; k++)
        kept[k] = (fuzz_axis){p.at[p.out[k]].name, p.at[p.out[k]].extent};
    fuzz_add_tensor(maker, name, maker->t, kept, p.n_out, p.bound);
    return true;
}

/* Rows of bits by rows of bits, for the intrinsic bits.1x1: multiples of 8 rows and 8 words. */
bool fuzz_bits(fuzz_maker *maker, const fuzz_tensor *base)
{
    fuzz_dim words = fuzz_const(8 * (1 + fuzz_below(maker->state, 2)));
    fuzz_axis axis[] = {{"y", base->rank ? base->shape[0] : fuzz_const(3)},
                        {"x", fuzz_const(8 * (1 + fuzz_below(maker->state, 2)))},
                        {"k", words}};
    fuzz_dim shape[2][2] = {{axis[1].extent, words}, {axis[0].extent, words}};

    if (fuzz_points(axis, 3) > MAX_POINTS || maker->n_inputs > 5)
        return false;
    const char *w = fuzz_add_input(maker, BASE_U64, shape[0], 2)->name,
               *v = fuzz_add_input(maker, BASE_U64, shape[1], 2)->name, *name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body, "  %s[%s] = sum[%s](i32(popcount(%s[x, k] & %s[y, k])))\n", name,
              fuzz_axes_text(maker, axis, 2), fuzz_axes_text(maker, axis + 2, 1), w, v);
    fuzz_add_tensor(maker, name, BASE_I32, axis, 2, 64 * words.c);
    return true;
}
