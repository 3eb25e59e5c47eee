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
static const char *element(const scan *self, const char *tensor, const char *when)
{
    base_text t = {0};

    base_addf(self->m->cx, &t, "%s[%s", tensor, when);
    for (int i = 1; i < self->n; i++) {
        fuzz_dim last = self->axis[i].extent;

        last.c -= 1;
        if (i == self->n - 1 && fuzz_chance(self->m->state, 25))
            base_addf(self->m->cx, &t, ", %s - %s", fuzz_dim_text(self->m, last), self->axis[i].name);
        else
            base_addf(self->m->cx, &t, ", %s", self->axis[i].name);
    }
    base_add(self->m->cx, &t, "]");
    return base_text_str(self->m->cx, &t);
}

static const char *clamped(const scan *self, const char *e)
{
    return base_format(self->m->cx, "min(max(%s, %s), %s)", e, fuzz_literal(self->m, -LIMIT),
                       fuzz_literal(self->m, LIMIT));
}

static const char *value(const scan *self, const fuzz_axis *axis, int n, int64_t *bound)
{
    const char *e = fuzz_expr(self->m, self->base, axis, n, 1, bound);

    return fuzz_clamp(self->m, e, 1000, bound);
}

static void put_init(const scan *self, int index)
{
    fuzz_axis first[FUZZ_MAX_RANK + 1];
    int64_t bound;

    for (int i = 0; i < self->n; i++)
        first[i] = self->axis[i];
    first[0].extent = fuzz_const(1);
    base_addf(self->m->cx, &self->m->body, "    init %s[%s] = %s\n", self->state[index],
              fuzz_axes_text(self->m, first, self->n),
              clamped(self, value(self, first + 1, self->n - 1, &bound)));
}

static const char *spatial_names(const scan *self)
{
    base_text t = {0};

    for (int i = 1; i < self->n; i++)
        base_addf(self->m->cx, &t, ", %s", self->axis[i].name);
    return base_text_str(self->m->cx, &t);
}

/* A state's update reads an earlier step, or what this step has computed already. */
static void put_update(const scan *self, int index)
{
    static const char *const ops[] = {"+", "-"};
    const char *other = self->state[fuzz_below(self->m->state, self->n_states)], *from;
    int64_t bound;

    /* States that were updated before this one may be read within the step. */
    if (self->inner && fuzz_chance(self->m->state, 70))
        from = element(self, base_format(self->m->cx, "%sg", self->name), "t");
    else if (index > 0 && fuzz_chance(self->m->state, 40))
        from = element(self, self->state[0], "t");
    else
        from = element(self, other, "t - 1");
    base_addf(self->m->cx, &self->m->body, "    update %s[t%s] = %s\n", self->state[index],
              spatial_names(self),
              clamped(self, base_format(self->m->cx, "%s %s %s", from, ops[fuzz_below(self->m->state, 2)],
                                        value(self, self->axis, self->n, &bound))));
}

static void put_inner(const scan *self)
{
    int64_t bound;

    base_addf(self->m->cx, &self->m->body, "    update %sg[t%s%s] = %s + %s\n", self->name,
              self->n > 1 ? ", " : "", fuzz_axes_text(self->m, self->axis + 1, self->n - 1),
              element(self, self->state[0], "t - 1"), value(self, self->axis, self->n, &bound));
}

/* A recurrence over `base`. False where it would be too large. */
bool fuzz_scan(fuzz_maker *maker, const fuzz_tensor *base)
{
    static const char *const names[] = {"y", "x", "c", "b", "z"};
    scan s = {.m = maker,
              .base = base,
              .n = base->rank + 1,
              .n_states = 1 + fuzz_chance(maker->state, 40),
              .inner = fuzz_chance(maker->state, 40)};

    if (base->rank + 1 > 3 || base_is_bool(base->t) || maker->n + 2 >= FUZZ_MAX_TENSORS)
        return false;
    s.axis[0] = (fuzz_axis){"t", fuzz_const(1 + fuzz_below(maker->state, 5))};
    for (int i = 1; i < s.n; i++)
        s.axis[i] = (fuzz_axis){names[i - 1], base->shape[i - 1]};
    if (fuzz_points(s.axis, s.n) > MAX_STORED)
        return false;
    s.name = fuzz_stage_name(maker);
    for (int k = 0; k < s.n_states; k++)
        s.state[k] = base_format(maker->cx, "%s%c", s.name, 'a' + k);
    base_addf(maker->cx, &maker->body, "  scan %sr[t: %s] {\n", s.name,
              fuzz_dim_text(maker, s.axis[0].extent));
    for (int k = 0; k < s.n_states; k++)
        put_init(&s, k);
    if (s.inner)
        put_inner(&s);
    for (int k = 0; k < s.n_states; k++)
        put_update(&s, k);
    base_add(maker->cx, &maker->body, "  }\n");
    for (int k = 0; k < s.n_states; k++)
        fuzz_add_tensor(maker, s.state[k], maker->t, s.axis, s.n, LIMIT);
    return true;
}
