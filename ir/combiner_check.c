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

static base_dtype type_of(const trial *self, int i)
{
    return self->c->x[i]->dtype;
}

/* Small numbers, so that every type holds them. */
static ir_value value_of(base_dtype type, int64_t v)
{
    if (base_is_float(type))
        return (ir_value){.f = (double)v};
    return (ir_value){.i = base_is_bool(type) ? v & 1 : base_is_signed(type) ? v : v < 0 ? -v : v};
}

/* Values that are small enough for every type; those of tuples are positive, since counts and indices are. */
static tuple draw(const trial *self, int which)
{
    static const int8_t single[N_TRIALS] = {1, -3, 5, 2},
                        several[N_TRIALS][3] = {{1, 2, 3}, {5, 1, 2}, {3, 4, 1}, {2, 7, 5}};
    tuple v;

    for (int i = 0; i < self->c->n; i++)
        v.part[i] = value_of(type_of(self, i), self->c->n == 1 ? single[which] : several[which][i % 3]);
    return v;
}

/* Whether the value says something. */
static bool is_number(const trial *self, const tuple *values)
{
    for (int i = 0; i < self->c->n; i++)
        if (base_is_float(type_of(self, i)) && isnan(values->part[i].f))
            return false;
    return true;
}

/* Evaluates the combiner on two tuples. False where an operation fails or gives a NaN: such values lie
 * outside of the combiner's domain and prove nothing against it. */
static bool combine(const trial *self, const tuple *left, const tuple *right, tuple *out)
{
    base_map vars = {0};

    for (int i = 0; i < self->c->n; i++) {
        base_map_put(self->scratch, &vars, self->c->x[i], &left->part[i]);
        base_map_put(self->scratch, &vars, self->c->y[i], &right->part[i]);
    }
    for (int i = 0; i < self->c->n; i++)
        if (!ir_eval(self->scratch, self->c->result[i], &vars, &out->part[i])) {
            tec_context_clear(self->scratch);
            return false;
        }
    return is_number(self, out);
}

/* The limits are wide: what is looked for are wrong formulas, not rounding. */
static bool same_part(base_dtype type, ir_value value, ir_value other)
{
    if (!base_is_float(type))
        return value.i == other.i;
    double limit = (type.bits <= 16 ? 0x1p-5 : 0x1p-10) * fmax(1, fmax(fabs(value.f), fabs(other.f)));
    return value.f == other.f || fabs(value.f - other.f) <= limit;
}

static bool same(const trial *self, const tuple *left, const tuple *right)
{
    for (int i = 0; i < self->c->n; i++)
        if (!same_part(type_of(self, i), left->part[i], right->part[i]))
            return false;
    return true;
}

/* The tuple as it stands in messages: "(1, 2.5)". */
static const char *text_of(const trial *self, const tuple *values)
{
    base_text out = {0};

    for (int i = 0; i < self->c->n; i++) {
        base_dtype type = type_of(self, i);

        base_addf(self->cx, &out, "%s", i ? ", " : "(");
        if (base_is_float(type))
            base_addf(self->cx, &out, "%g", values->part[i].f);
        else
            base_addf(self->cx, &out, "%lld", (long long)values->part[i].i);
    }
    base_add(self->cx, &out, ")");
    return base_text_str(self->cx, &out);
}

/* Combining with the identity must change nothing, on either side: a split reduction starts several partial
 * results from the identity and combines them later. */
static bool is_neutral(const trial *self, const tuple *identity)
{
    tuple out;

    for (int k = 0; k < N_TRIALS; k++) {
        tuple v = draw(self, k);

        for (int side = 0; side < 2; side++) {
            if (!combine(self, side ? &v : identity, side ? identity : &v, &out) || same(self, &out, &v))
                continue;
            ir_refuse(self->cx,
                      "the identity %s of combiner '%s' is not neutral: combined with %s it gives %s%s",
                      text_of(self, identity), self->c->name, text_of(self, &v), text_of(self, &out),
                      side ? ", as the second operand" : "");
            return false;
        }
    }
    return true;
}

/* Tries one pair; the message shows it as the counterexample. */
static bool commutes(const trial *self, const tuple *left, const tuple *right)
{
    tuple ab, ba;

    if (!combine(self, left, right, &ab) || !combine(self, right, left, &ba) || same(self, &ab, &ba))
        return true;
    ir_refuse(self->cx,
              "combiner '%s' is declared to reorder, but %s with %s gives %s, and %s with %s gives %s",
              self->c->name, text_of(self, left), text_of(self, right), text_of(self, &ab),
              text_of(self, right), text_of(self, left), text_of(self, &ba));
    return false;
}

/* Tries one triple. */
static bool associates(const trial *self, const tuple *a, const tuple *b, const tuple *third)
{
    tuple ab, bc, left, right;

    if (!combine(self, a, b, &ab) || !combine(self, b, third, &bc) || !combine(self, &ab, third, &left) ||
        !combine(self, a, &bc, &right) || same(self, &left, &right))
        return true;
    ir_refuse(self->cx,
              "combiner '%s' is declared to reorder, but of %s, %s and %s the first two combined first give "
              "%s, the last two %s",
              self->c->name, text_of(self, a), text_of(self, b), text_of(self, third), text_of(self, &left),
              text_of(self, &right));
    return false;
}

/* An identity that cannot be evaluated here (it depends on a symbol) is taken on trust. */
static bool try_all(const trial *self)
{
    const base_map none = {0};
    tuple identity, v[N_TRIALS];

    for (int i = 0; i < self->c->n; i++)
        if (!ir_eval(self->scratch, self->c->identity[i], &none, &identity.part[i]))
            return true;
    for (int k = 0; k < N_TRIALS; k++)
        v[k] = draw(self, k);
    return is_neutral(self, &identity) && commutes(self, &v[0], &v[1]) && commutes(self, &v[2], &v[1]) &&
           associates(self, &v[0], &v[1], &v[2]) && associates(self, &v[3], &v[2], &v[1]);
}

bool ir_combiner_try(tec_context *cx, const ir_combiner *combiner)
{
    if (!combiner->reorders || combiner->n > MAX_PARTS)
        return true;
    trial t = {.cx = cx, .scratch = base_child(cx), .c = combiner};
    bool good = try_all(&t);

    tec_context_free(t.scratch);
    return good;
}
