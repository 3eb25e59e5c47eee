/* fuzz/define.c -- random definitions: one to six stages on top of each other, of the shapes that operators
 * have.
 *
 * Text is written directly; the parser of `te/` then checks it as it checks a user's. Extents are constants
 * or `k*n + c`, so that indices can be kept within bounds without proofs.
 */
#include "fuzz/define.h"

#include "fuzz/draw.h"
#include "fuzz/fuzz.h"

static const char symbol_name[FUZZ_SYMBOLS] = {'n', 'm'};

/* ---- extents ---- */

fuzz_dim fuzz_const(int64_t c)
{
    return (fuzz_dim){.c = c};
}
bool fuzz_is_const(fuzz_dim dim)
{
    return dim.coef == 0;
}
bool fuzz_same_dim(fuzz_dim left, fuzz_dim right)
{
    return left.coef == right.coef && left.c == right.c && (left.coef == 0 || left.sym == right.sym);
}
int64_t fuzz_dim_max(fuzz_dim dim)
{
    return (int64_t)dim.coef * FUZZ_SYMBOL_MAX + dim.c;
}
int64_t fuzz_dim_min(const fuzz_maker *maker, fuzz_dim dim)
{
    return (int64_t)dim.coef * (dim.coef ? maker->at_least[dim.sym] : 0) + dim.c;
}

const char *fuzz_dim_text(const fuzz_maker *maker, fuzz_dim dim)
{
    if (!dim.coef)
        return base_format(maker->cx, "%lld", (long long)dim.c);
    const char *scaled = dim.coef == 1 ? base_format(maker->cx, "%c", symbol_name[dim.sym])
                                       : base_format(maker->cx, "%c * %d", symbol_name[dim.sym], dim.coef);
    return dim.c ? base_format(maker->cx, "%s %c %lld", scaled, dim.c < 0 ? '-' : '+',
                               (long long)(dim.c < 0 ? -dim.c : dim.c))
                 : scaled;
}

static fuzz_dim random_dim(fuzz_maker *maker, int most)
{
    if (!fuzz_chance(maker->state, 25))
        return fuzz_const(fuzz_chance(maker->state, 2) ? 0 : 1 + fuzz_below(maker->state, most));
    /* Calls tell the value of a symbol from a dimension that is the symbol alone. n - 3 has calls that must
     * be refused. */
    int sym = fuzz_below(maker->state, FUZZ_SYMBOLS),
        c = maker->uses[sym] && fuzz_chance(maker->state, 45) ? 1 + fuzz_below(maker->state, 3) : 0;
    fuzz_dim d = {1, sym, fuzz_chance(maker->state, 30) ? -c : c};
    maker->uses[d.sym] = true;
    return d;
}

int64_t fuzz_points(const fuzz_axis *axis, int n)
{
    int64_t points = 1;

    for (int i = 0; i < n; i++)
        points *= fuzz_dim_max(axis[i].extent);
    return points;
}

const char *fuzz_axes_text(fuzz_maker *maker, const fuzz_axis *axis, int n)
{
    base_text t = {0};

    for (int i = 0; i < n; i++)
        base_addf(maker->cx, &t, "%s%s: %s", i ? ", " : "", axis[i].name,
                  fuzz_dim_text(maker, axis[i].extent));
    return base_text_str(maker->cx, &t);
}

/* ---- tensors ---- */

/* A new parameter; NULL where there are enough. */
fuzz_tensor *fuzz_add_input(fuzz_maker *maker, base_dtype dtype, const fuzz_dim *shape, int rank)
{
    static const char *const names[] = {"A", "B", "D", "E", "F", "G", "H", "K"};

    if (maker->n_inputs == BASE_COUNT(names))
        return NULL;
    fuzz_tensor *x = &maker->at[maker->n++];
    *x = (fuzz_tensor){
        .name = names[maker->n_inputs++], .t = dtype, .rank = rank, .bound = FUZZ_DATA_MAX, .input = true};
    base_addf(maker->cx, &maker->params, "%s%s: %s[", maker->params.n ? ", " : "", x->name,
              base_dtype_text(maker->cx, dtype));
    for (int i = 0; i < rank; i++) {
        x->shape[i] = shape[i];
        base_addf(maker->cx, &maker->params, "%s%s", i ? ", " : "", fuzz_dim_text(maker, shape[i]));
    }
    base_add(maker->cx, &maker->params, "]");
    return x;
}

const char *fuzz_stage_name(fuzz_maker *maker)
{
    return base_format(maker->cx, "S%d", ++maker->n_stages);
}

/* `bound` is the greatest absolute value that an element can have: expressions are built so that integers
 * never wrap, and floats stay exact. */
fuzz_tensor *fuzz_add_tensor(fuzz_maker *maker, const char *name, base_dtype dtype, const fuzz_axis *axis,
                             int n, int64_t bound)
{
    fuzz_tensor *x = &maker->at[maker->n++];

    maker->open = false; /* the next stage begins */
    *x = (fuzz_tensor){.name = name, .t = dtype, .rank = n, .bound = bound};
    for (int i = 0; i < n; i++)
        x->shape[i] = axis[i].extent;
    return x;
}

/* The first inputs, small enough that the interpreter is quick; now and then one of lower rank or a scalar.
 */
static void add_inputs(fuzz_maker *maker)
{
    fuzz_dim shape[FUZZ_MAX_RANK];
    int rank = 1 + fuzz_weighted(maker->state, (const int[]){20, 45, 25, 10}, 4), most = rank == 1   ? 40
                                                                                         : rank == 2 ? 20
                                                                                                     : 7;

    for (int i = 0; i < rank; i++)
        shape[i] = random_dim(maker, most);
    bool narrow = base_dtype_same(maker->t, BASE_I32) && fuzz_chance(maker->state, 40);
    fuzz_add_input(maker, narrow ? BASE_I8 : maker->t, shape, rank);
    if (fuzz_chance(maker->state, 40))
        fuzz_add_input(maker, maker->t, shape + (rank > 1), rank - (rank > 1));
    if (fuzz_chance(maker->state, 15)) {
        base_addf(maker->cx, &maker->params, ", alpha: %s", base_dtype_text(maker->cx, maker->t));
        maker->has_scalar = true;
    }
}

/* ---- the whole ---- */

static const struct {
    fuzz_stage_maker *make;
    int weight;
} makers[] = {
    {fuzz_elementwise, 30}, {fuzz_reduction, 16}, {fuzz_reshape, 8}, {fuzz_padding, 6},
    {fuzz_matmul, 9},       {fuzz_window, 7},     {fuzz_conv, 6},    {fuzz_arg_reduction, 4},
    {fuzz_moments, 3},      {fuzz_horner, 3},     {fuzz_several, 4}, {fuzz_triangle, 4},
    {fuzz_gather, 3},       {fuzz_predicate, 3},  {fuzz_scan, 4},    {fuzz_pattern, 7},
    {fuzz_bits, 1},         {fuzz_extern, 2},
};

/* Usually on the last tensor, so that chains grow long; at times on an earlier one, which then has two
 * readers. A maker may find that it does not fit, and another is drawn. */
static void add_stage(fuzz_maker *maker)
{
    int weight[BASE_COUNT(makers)];

    for (int i = 0; i < BASE_COUNT(makers); i++)
        weight[i] = makers[i].weight;
    for (int attempt = 0; attempt < 20 && maker->n + 4 < FUZZ_MAX_TENSORS; attempt++) {
        const fuzz_tensor *base =
            &maker->at[fuzz_chance(maker->state, 75) ? maker->n - 1 : fuzz_below(maker->state, maker->n)];

        if (makers[fuzz_weighted(maker->state, weight, BASE_COUNT(makers))].make(maker, base))
            return;
    }
}

/* Only what the body uses becomes a symbol or a fact. */
static void add_head(fuzz_maker *maker, base_text *text)
{
    const char *sep = " where ";

    base_add(maker->cx, text, "def f(");
    for (int i = 0; i < FUZZ_SYMBOLS; i++)
        if (maker->uses[i])
            base_addf(maker->cx, text, "%c, ", symbol_name[i]);
    base_addf(maker->cx, text, "%s)", base_text_str(maker->cx, &maker->params));
    for (int i = 0; i < FUZZ_SYMBOLS; i++) {
        if (maker->uses[i] && maker->at_least[i]) {
            base_addf(maker->cx, text, "%s%c >= %d", sep, symbol_name[i], maker->at_least[i]);
            sep = ", ";
        }
        if (maker->uses[i] && maker->multiple[i] > 1) {
            base_addf(maker->cx, text, "%s%c %% %d == 0", sep, symbol_name[i], maker->multiple[i]);
            sep = ", ";
        }
    }
    base_add(maker->cx, text, " {\n");
}

static void add_return(fuzz_maker *maker, base_text *text)
{
    base_addf(maker->cx, text, "  return %s", maker->at[maker->n - 1].name);
    for (int i = 0; i < maker->n - 1; i++)
        if (!maker->at[i].input && fuzz_chance(maker->state, 12))
            base_addf(maker->cx, text, ", %s", maker->at[i].name);
    base_add(maker->cx, text, "\n}\n");
}

/* Values are left at which no extent is negative and every open index stays inside. An open index that was
 * drawn before an extent such as m - 2 did not know of it:
 *
 *     x: m - 3 as an index of a dimension 3, m a multiple of 4:     m is 4
 *     then an axis z: m - 5:                                        no m is left, since 4 - 5 < 0
 */
static bool has_sizes(const fuzz_maker *maker)
{
    for (int i = 0; i < maker->n; i++)
        for (int d = 0; d < maker->at[i].rank; d++) {
            fuzz_dim dim = maker->at[i].shape[d];
            int multiple = maker->multiple[dim.sym], high = maker->high[dim.sym] / multiple * multiple;

            if (dim.coef && (int64_t)dim.coef * high + dim.c < 0)
                return false;
        }
    return true;
}

/* `closed`: without open indices. NULL: no sizes fit. */
static const char *draw_definition(tec_context *cx, uint64_t *state, bool closed)
{
    const base_dtype dtypes[] = {BASE_F32, BASE_I32, BASE_F64, BASE_I64};
    fuzz_maker *maker = base_new(cx, fuzz_maker);
    base_text t = {0};

    maker->cx = cx;
    maker->state = state;
    maker->closed = closed;
    maker->t = dtypes[fuzz_weighted(state, (const int[]){60, 22, 10, 8}, 4)];
    for (int i = 0; i < FUZZ_SYMBOLS; i++) {
        maker->at_least[i] = fuzz_chance(state, 40);
        maker->multiple[i] = fuzz_chance(state, 20) ? 2 << fuzz_below(state, 2) : 1;
        maker->low[i] = maker->at_least[i];
        maker->high[i] = FUZZ_SYMBOL_MAX;
    }
    add_inputs(maker);
    for (int wanted = 1 + fuzz_weighted(state, (const int[]){15, 25, 25, 15, 10, 10}, 6);
         wanted > 0 || maker->n_stages == 0; wanted--)
        add_stage(maker);
    if (!has_sizes(maker))
        return NULL;
    add_head(maker, &t);
    base_add(cx, &t, base_text_str(cx, &maker->combiners));
    base_add(cx, &t, base_text_str(cx, &maker->body));
    add_return(maker, &t);
    base_add(cx, &t, base_text_str(cx, &maker->intrinsics));
    return base_text_str(cx, &t);
}

/* A whole .te file from the random state: the same state gives the same text. */
const char *fuzz_definition(tec_context *cx, uint64_t *state)
{
    const char *text = draw_definition(cx, state, false);

    return text ? text : draw_definition(cx, state, true);
}
