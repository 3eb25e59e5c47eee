/* fuzz/scans.c -- recurrences of one or two states, with what lives within a step.
 *
 *     scan R3[t: n + 1] {
 *       init S3a[t: 1, x: 7] = ...
 *       update S3g[t, x: 7] = S3a[t - 1, x] + ...
 *       update S3a[t, x] = min(max(S3g[t, 6 - x] - A[x], -9.0), 9.0)
 *     }
 */
#include "fuzz/define.h"
#include "fuzz/draw.h"

enum { MAX_STORED = 800, LIMIT = 9, MAX_STATES = 2 };

typedef struct {
    fuzz_maker *m;
    const fuzz_tensor *base;
    fuzz_axis axis[FUZZ_MAX_RANK + 1]; /* time first */
    int n;
    const char *name, *state[MAX_STATES];
    int n_states;
    bool inner; /* a tensor that lives within a step */
} scan;

/* An element of `tensor` at time `when`; the last axis may run backwards, the others stand in their
 * places. */
static const char *element(const scan *s, const char *tensor, const char *when)
{
    base_text t = {0};

    base_addf(s->m->cx, &t, "%s[%s", tensor, when);
    for (int i = 1; i < s->n; i++) {
        fuzz_dim last = s->axis[i].extent;

        last.c -= 1;
        if (i == s->n - 1 && fuzz_chance(s->m->state, 25))
            base_addf(s->m->cx, &t, ", %s - %s", fuzz_dim_text(s->m, last), s->axis[i].name);
        else
            base_addf(s->m->cx, &t, ", %s", s->axis[i].name);
    }
    base_add(s->m->cx, &t, "]");
    return base_text_str(s->m->cx, &t);
}

static const char *clamped(const scan *s, const char *e)
{
    return base_format(s->m->cx, "min(max(%s, %s), %s)", e, fuzz_literal(s->m, -LIMIT),
                       fuzz_literal(s->m, LIMIT));
}

static const char *value(const scan *s, const fuzz_axis *axis, int n, int64_t *bound)
{
    const char *e = fuzz_expr(s->m, s->base, axis, n, 1, bound);

    return fuzz_clamp(s->m, e, 1000, bound);
}

static void put_init(const scan *s, int k)
{
    fuzz_axis first[FUZZ_MAX_RANK + 1];
    int64_t bound;

    for (int i = 0; i < s->n; i++)
        first[i] = s->axis[i];
    first[0].extent = fuzz_const(1);
    base_addf(s->m->cx, &s->m->body, "    init %s[%s] = %s\n", s->state[k], fuzz_axes_text(s->m, first, s->n),
              clamped(s, value(s, first + 1, s->n - 1, &bound)));
}

static const char *spatial_names(const scan *s)
{
    base_text t = {0};

    for (int i = 1; i < s->n; i++)
        base_addf(s->m->cx, &t, ", %s", s->axis[i].name);
    return base_text_str(s->m->cx, &t);
}

/* A state's update reads an earlier step, or what this step has computed already. */
static void put_update(const scan *s, int k)
{
    static const char *const ops[] = {"+", "-"};
    const char *other = s->state[fuzz_below(s->m->state, s->n_states)], *from;
    int64_t bound;

    /* States that were updated before this one may be read within the step. */
    if (s->inner && fuzz_chance(s->m->state, 70))
        from = element(s, base_format(s->m->cx, "%sg", s->name), "t");
    else if (k > 0 && fuzz_chance(s->m->state, 40))
        from = element(s, s->state[0], "t");
    else
        from = element(s, other, "t - 1");
    base_addf(s->m->cx, &s->m->body, "    update %s[t%s] = %s\n", s->state[k], spatial_names(s),
              clamped(s, base_format(s->m->cx, "%s %s %s", from, ops[fuzz_below(s->m->state, 2)],
                                     value(s, s->axis, s->n, &bound))));
}

static void put_inner(const scan *s)
{
    int64_t bound;

    base_addf(s->m->cx, &s->m->body, "    update %sg[t%s%s] = %s + %s\n", s->name, s->n > 1 ? ", " : "",
              fuzz_axes_text(s->m, s->axis + 1, s->n - 1), element(s, s->state[0], "t - 1"),
              value(s, s->axis, s->n, &bound));
}

/* A recurrence over `base`. False where it would be too large. */
bool fuzz_scan(fuzz_maker *m, const fuzz_tensor *base)
{
    static const char *const names[] = {"y", "x", "c", "b", "z"};
    scan s = {.m = m,
              .base = base,
              .n = base->rank + 1,
              .n_states = 1 + fuzz_chance(m->state, 40),
              .inner = fuzz_chance(m->state, 40)};

    if (base->rank + 1 > 3 || base_is_bool(base->t) || m->n + 2 >= FUZZ_MAX_TENSORS)
        return false;
    s.axis[0] = (fuzz_axis){"t", fuzz_const(1 + fuzz_below(m->state, 5))};
    for (int i = 1; i < s.n; i++)
        s.axis[i] = (fuzz_axis){names[i - 1], base->shape[i - 1]};
    if (fuzz_points(s.axis, s.n) > MAX_STORED)
        return false;
    s.name = fuzz_stage_name(m);
    for (int k = 0; k < s.n_states; k++)
        s.state[k] = base_format(m->cx, "%s%c", s.name, 'a' + k);
    base_addf(m->cx, &m->body, "  scan %sr[t: %s] {\n", s.name, fuzz_dim_text(m, s.axis[0].extent));
    for (int k = 0; k < s.n_states; k++)
        put_init(&s, k);
    if (s.inner)
        put_inner(&s);
    for (int k = 0; k < s.n_states; k++)
        put_update(&s, k);
    base_add(m->cx, &m->body, "  }\n");
    for (int k = 0; k < s.n_states; k++)
        fuzz_add_tensor(m, s.state[k], m->t, s.axis, s.n, LIMIT);
    return true;
}
