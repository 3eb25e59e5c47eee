/* ir/combiner_check.c -- whether a combiner that is declared to reorder may be reordered, tried on a few
 * values.
 *
 *     combiner s7(a: f32; b: f32) = (a + b) identity (7.0) reorders
 *
 * Partial results start from the identity, wherever a schedule splits the reduction, and are combined in any
 * order. So the identity must be neutral on both sides, and the combiner commutative and associative. No
 * proof is tried: a few values show nearly every slip, and are the counterexample at once. Floats may differ
 * by rounding. Values on which the combiner gives NaN, or fails, are outside of its domain and say nothing;
 * those of tuples are positive and differ, since counts, weights and indices are what tuples hold.
 *
 * In the example above, 7 is not neutral: a reduction that is split into four parts would start four times
 * from 7, and the sum be 21 too large.
 */
#include <math.h>

#include "ir/eval.h"
#include "ir/make.h"
#include "ir/text.h"
#include "ir/value.h"

enum { MAX_PARTS = 8, N_TRIALS = 4 };

/* Parts beyond the combiner's number are unused. */
typedef struct {
    ir_value part[MAX_PARTS];
} tuple;

/* `scratch` takes what evaluation needs, and its errors: a failed trial must not fail the program. */
typedef struct {
    tec_context *cx, *scratch;
    const ir_combiner *c;
} trial;

static base_dtype type_of(const trial *t, int i)
{
    return t->c->x[i]->dtype;
}

/* Small numbers, so that every type holds them. */
static ir_value value_of(base_dtype type, int64_t v)
{
    if (base_is_float(type))
        return (ir_value){.f = (double)v};
    return (ir_value){.i = base_is_bool(type) ? v & 1 : base_is_signed(type) ? v : v < 0 ? -v : v};
}

/* Values that are small enough for every type; those of tuples are positive, since counts and indices are. */
static tuple draw(const trial *t, int which)
{
    static const int8_t single[N_TRIALS] = {1, -3, 5, 2},
                        several[N_TRIALS][3] = {{1, 2, 3}, {5, 1, 2}, {3, 4, 1}, {2, 7, 5}};
    tuple v;

    for (int i = 0; i < t->c->n; i++)
        v.part[i] = value_of(type_of(t, i), t->c->n == 1 ? single[which] : several[which][i % 3]);
    return v;
}

/* Whether the value says something. */
static bool is_number(const trial *t, const tuple *v)
{
    for (int i = 0; i < t->c->n; i++)
        if (base_is_float(type_of(t, i)) && isnan(v->part[i].f))
            return false;
    return true;
}

/* Evaluates the combiner on two tuples. False where an operation fails or gives a NaN: such values lie
 * outside of the combiner's domain and prove nothing against it. */
static bool combine(const trial *t, const tuple *x, const tuple *y, tuple *out)
{
    base_map vars = {0};

    for (int i = 0; i < t->c->n; i++) {
        base_map_put(t->scratch, &vars, t->c->x[i], &x->part[i]);
        base_map_put(t->scratch, &vars, t->c->y[i], &y->part[i]);
    }
    for (int i = 0; i < t->c->n; i++)
        if (!ir_eval(t->scratch, t->c->result[i], &vars, &out->part[i])) {
            tec_context_clear(t->scratch);
            return false;
        }
    return is_number(t, out);
}

/* The limits are wide: what is looked for are wrong formulas, not rounding. */
static bool same_part(base_dtype type, ir_value a, ir_value b)
{
    if (!base_is_float(type))
        return a.i == b.i;
    double limit = (type.bits <= 16 ? 0x1p-5 : 0x1p-10) * fmax(1, fmax(fabs(a.f), fabs(b.f)));
    return a.f == b.f || fabs(a.f - b.f) <= limit;
}

static bool same(const trial *t, const tuple *a, const tuple *b)
{
    for (int i = 0; i < t->c->n; i++)
        if (!same_part(type_of(t, i), a->part[i], b->part[i]))
            return false;
    return true;
}

/* The tuple as it stands in messages: "(1, 2.5)". */
static const char *text_of(const trial *t, const tuple *v)
{
    base_text out = {0};

    for (int i = 0; i < t->c->n; i++) {
        base_dtype type = type_of(t, i);

        base_addf(t->cx, &out, "%s", i ? ", " : "(");
        if (base_is_float(type))
            base_addf(t->cx, &out, "%g", v->part[i].f);
        else
            base_addf(t->cx, &out, "%lld", (long long)v->part[i].i);
    }
    base_add(t->cx, &out, ")");
    return base_text_str(t->cx, &out);
}

/* Combining with the identity must change nothing, on either side: a split reduction starts several partial
 * results from the identity and combines them later. */
static bool is_neutral(const trial *t, const tuple *identity)
{
    tuple out;

    for (int k = 0; k < N_TRIALS; k++) {
        tuple v = draw(t, k);

        for (int side = 0; side < 2; side++) {
            if (!combine(t, side ? &v : identity, side ? identity : &v, &out) || same(t, &out, &v))
                continue;
            ir_refuse(t->cx,
                      "the identity %s of combiner '%s' is not neutral: combined with %s it gives %s%s",
                      text_of(t, identity), t->c->name, text_of(t, &v), text_of(t, &out),
                      side ? ", as the second operand" : "");
            return false;
        }
    }
    return true;
}

/* Tries one pair; the message shows it as the counterexample. */
static bool commutes(const trial *t, const tuple *a, const tuple *b)
{
    tuple ab, ba;

    if (!combine(t, a, b, &ab) || !combine(t, b, a, &ba) || same(t, &ab, &ba))
        return true;
    ir_refuse(t->cx, "combiner '%s' is declared to reorder, but %s with %s gives %s, and %s with %s gives %s",
              t->c->name, text_of(t, a), text_of(t, b), text_of(t, &ab), text_of(t, b), text_of(t, a),
              text_of(t, &ba));
    return false;
}

/* Tries one triple. */
static bool associates(const trial *t, const tuple *a, const tuple *b, const tuple *c)
{
    tuple ab, bc, left, right;

    if (!combine(t, a, b, &ab) || !combine(t, b, c, &bc) || !combine(t, &ab, c, &left) ||
        !combine(t, a, &bc, &right) || same(t, &left, &right))
        return true;
    ir_refuse(t->cx,
              "combiner '%s' is declared to reorder, but of %s, %s and %s the first two combined first give "
              "%s, the last two %s",
              t->c->name, text_of(t, a), text_of(t, b), text_of(t, c), text_of(t, &left), text_of(t, &right));
    return false;
}

/* An identity that cannot be evaluated here (it depends on a symbol) is taken on trust. */
static bool try_all(const trial *t)
{
    const base_map none = {0};
    tuple identity, v[N_TRIALS];

    for (int i = 0; i < t->c->n; i++)
        if (!ir_eval(t->scratch, t->c->identity[i], &none, &identity.part[i]))
            return true;
    for (int k = 0; k < N_TRIALS; k++)
        v[k] = draw(t, k);
    return is_neutral(t, &identity) && commutes(t, &v[0], &v[1]) && commutes(t, &v[2], &v[1]) &&
           associates(t, &v[0], &v[1], &v[2]) && associates(t, &v[3], &v[2], &v[1]);
}

bool ir_combiner_try(tec_context *cx, const ir_combiner *c)
{
    if (!c->reorders || c->n > MAX_PARTS)
        return true;
    trial t = {.cx = cx, .scratch = base_child(cx), .c = c};
    bool good = try_all(&t);

    tec_context_free(t.scratch);
    return good;
}
