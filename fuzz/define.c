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
bool fuzz_is_const(fuzz_dim d)
{
    return d.coef == 0;
}
bool fuzz_same_dim(fuzz_dim a, fuzz_dim b)
{
    return a.coef == b.coef && a.c == b.c && (a.coef == 0 || a.sym == b.sym);
}
int64_t fuzz_dim_max(fuzz_dim d)
{
    return (int64_t)d.coef * FUZZ_SYMBOL_MAX + d.c;
}
int64_t fuzz_dim_min(const fuzz_maker *m, fuzz_dim d)
{
    return (int64_t)d.coef * (d.coef ? m->at_least[d.sym] : 0) + d.c;
}

const char *fuzz_dim_text(const fuzz_maker *m, fuzz_dim d)
{
    if (!d.coef)
        return base_format(m->cx, "%lld", (long long)d.c);
    const char *scaled = d.coef == 1 ? base_format(m->cx, "%c", symbol_name[d.sym])
                                     : base_format(m->cx, "%c * %d", symbol_name[d.sym], d.coef);
    return d.c ? base_format(m->cx, "%s %c %lld", scaled, d.c < 0 ? '-' : '+',
                             (long long)(d.c < 0 ? -d.c : d.c))
               : scaled;
}

static fuzz_dim random_dim(fuzz_maker *m, int most)
{
    if (!fuzz_chance(m->state, 25))
        return fuzz_const(fuzz_chance(m->state, 2) ? 0 : 1 + fuzz_below(m->state, most));
    /* Calls tell the value of a symbol from a dimension that is the symbol alone. n - 3 has calls that must
     * be refused. */
    int sym = fuzz_below(m->state, FUZZ_SYMBOLS),
        c = m->uses[sym] && fuzz_chance(m->state, 45) ? 1 + fuzz_below(m->state, 3) : 0;
    fuzz_dim d = {1, sym, fuzz_chance(m->state, 30) ? -c : c};
    m->uses[d.sym] = true;
    return d;
}

int64_t fuzz_points(const fuzz_axis *axis, int n)
{
    int64_t points = 1;

    for (int i = 0; i < n; i++)
        points *= fuzz_dim_max(axis[i].extent);
    return points;
}

const char *fuzz_axes_text(fuzz_maker *m, const fuzz_axis *axis, int n)
{
    base_text t = {0};

    for (int i = 0; i < n; i++)
        base_addf(m->cx, &t, "%s%s: %s", i ? ", " : "", axis[i].name, fuzz_dim_text(m, axis[i].extent));
    return base_text_str(m->cx, &t);
}

/* ---- tensors ---- */

/* A new parameter; NULL where there are enough. */
fuzz_tensor *fuzz_add_input(fuzz_maker *m, base_dtype t, const fuzz_dim *shape, int rank)
{
    static const char *const names[] = {"A", "B", "D", "E", "F", "G", "H", "K"};

    if (m->n_inputs == BASE_COUNT(names))
        return NULL;
    fuzz_tensor *x = &m->at[m->n++];
    *x = (fuzz_tensor){
        .name = names[m->n_inputs++], .t = t, .rank = rank, .bound = FUZZ_DATA_MAX, .input = true};
    base_addf(m->cx, &m->params, "%s%s: %s[", m->params.n ? ", " : "", x->name, base_dtype_text(m->cx, t));
    for (int i = 0; i < rank; i++) {
        x->shape[i] = shape[i];
        base_addf(m->cx, &m->params, "%s%s", i ? ", " : "", fuzz_dim_text(m, shape[i]));
    }
    base_add(m->cx, &m->params, "]");
    return x;
}

const char *fuzz_stage_name(fuzz_maker *m)
{
    return base_format(m->cx, "S%d", ++m->n_stages);
}

fuzz_tensor *fuzz_add_tensor(fuzz_maker *m, const char *name, base_dtype t, const fuzz_axis *axis, int n,
                             int64_t bound)
{
    fuzz_tensor *x = &m->at[m->n++];

    m->open = false; /* the next stage begins */
    *x = (fuzz_tensor){.name = name, .t = t, .rank = n, .bound = bound};
    for (int i = 0; i < n; i++)
        x->shape[i] = axis[i].extent;
    return x;
}

/* The first inputs, small enough that the interpreter is quick; now and then one of lower rank or a scalar.
 */
static void add_inputs(fuzz_maker *m)
{
    fuzz_dim shape[FUZZ_MAX_RANK];
    int rank = 1 + fuzz_weighted(m->state, (const int[]){20, 45, 25, 10}, 4), most = rank == 1   ? 40
                                                                                     : rank == 2 ? 20
                                                                                                 : 7;

    for (int i = 0; i < rank; i++)
        shape[i] = random_dim(m, most);
    bool narrow = base_dtype_same(m->t, BASE_I32) && fuzz_chance(m->state, 40);
    fuzz_add_input(m, narrow ? BASE_I8 : m->t, shape, rank);
    if (fuzz_chance(m->state, 40))
        fuzz_add_input(m, m->t, shape + (rank > 1), rank - (rank > 1));
    if (fuzz_chance(m->state, 15)) {
        base_addf(m->cx, &m->params, ", alpha: %s", base_dtype_text(m->cx, m->t));
        m->has_scalar = true;
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

static void add_stage(fuzz_maker *m)
{
    int weight[BASE_COUNT(makers)];

    for (int i = 0; i < BASE_COUNT(makers); i++)
        weight[i] = makers[i].weight;
    for (int attempt = 0; attempt < 20 && m->n + 4 < FUZZ_MAX_TENSORS; attempt++) {
        const fuzz_tensor *base = &m->at[fuzz_chance(m->state, 75) ? m->n - 1 : fuzz_below(m->state, m->n)];

        if (makers[fuzz_weighted(m->state, weight, BASE_COUNT(makers))].make(m, base))
            return;
    }
}

/* Only what the body uses becomes a symbol or a fact. */
static void add_head(fuzz_maker *m, base_text *t)
{
    const char *sep = " where ";

    base_add(m->cx, t, "def f(");
    for (int i = 0; i < FUZZ_SYMBOLS; i++)
        if (m->uses[i])
            base_addf(m->cx, t, "%c, ", symbol_name[i]);
    base_addf(m->cx, t, "%s)", base_text_str(m->cx, &m->params));
    for (int i = 0; i < FUZZ_SYMBOLS; i++) {
        if (m->uses[i] && m->at_least[i]) {
            base_addf(m->cx, t, "%s%c >= %d", sep, symbol_name[i], m->at_least[i]);
            sep = ", ";
        }
        if (m->uses[i] && m->multiple[i] > 1) {
            base_addf(m->cx, t, "%s%c %% %d == 0", sep, symbol_name[i], m->multiple[i]);
            sep = ", ";
        }
    }
    base_add(m->cx, t, " {\n");
}

static void add_return(fuzz_maker *m, base_text *t)
{
    base_addf(m->cx, t, "  return %s", m->at[m->n - 1].name);
    for (int i = 0; i < m->n - 1; i++)
        if (!m->at[i].input && fuzz_chance(m->state, 12))
            base_addf(m->cx, t, ", %s", m->at[i].name);
    base_add(m->cx, t, "\n}\n");
}

/* A whole .te file from the random state: the same state gives the same text. */
const char *fuzz_definition(tec_context *cx, uint64_t *state)
{
    const base_dtype dtypes[] = {BASE_F32, BASE_I32, BASE_F64, BASE_I64};
    fuzz_maker *m = base_new(cx, fuzz_maker);
    base_text t = {0};

    m->cx = cx;
    m->state = state;
    m->t = dtypes[fuzz_weighted(state, (const int[]){60, 22, 10, 8}, 4)];
    for (int i = 0; i < FUZZ_SYMBOLS; i++) {
        m->at_least[i] = fuzz_chance(state, 40);
        m->multiple[i] = fuzz_chance(state, 20) ? 2 << fuzz_below(state, 2) : 1;
    }
    add_inputs(m);
    for (int wanted = 1 + fuzz_weighted(state, (const int[]){15, 25, 25, 15, 10, 10}, 6);
         wanted > 0 || m->n_stages == 0; wanted--)
        add_stage(m);
    add_head(m, &t);
    base_add(cx, &t, base_text_str(cx, &m->combiners));
    base_add(cx, &t, base_text_str(cx, &m->body));
    add_return(m, &t);
    base_add(cx, &t, base_text_str(cx, &m->intrinsics));
    return base_text_str(cx, &t);
}
