/* space/public.c -- the public face of space/: include/tec/space.h over space/space.h. */
#include "base/guard.h"
#include "space/space.h"
#include "te/te.h"

/* A call lacks something; the context says what, unless an earlier error does already. */
static bool lacks(tec_context *cx, const void *given, const char *what)
{
    if (!given)
        base_fail(cx, TEC_INVALID, base_where(cx), "no %s", what);
    return !given;
}

/* With f NULL, the space that follows from the definition and the target. */
tec_space *tec_space_new(tec_context *cx, const tec_def *d, const char *device, tec_template *f, void *user)
{
    BASE_GUARD(cx, NULL);
    const ir_program *tree = d ? te_tree(cx, d) : NULL;
    const target *t = device ? target_parse(cx, device) : NULL;

    if (!tree || (device && !t))
        return NULL;
    return f ? space_new(cx, sched_new(cx, tree, t), f, user) : space_master(cx, tree, t);
}

int tec_space_knobs(const tec_space *sp)
{
    return sp ? space_n_knobs(sp) : 0;
}
const char *tec_space_knob_name(const tec_space *sp, int knob)
{
    return sp && knob >= 0 && knob < space_n_knobs(sp) ? space_knob_at(sp, knob)->name : NULL;
}
int tec_space_knob_values(const tec_space *sp, int knob)
{
    return sp && knob >= 0 && knob < space_n_knobs(sp) ? space_knob_at(sp, knob)->count : 0;
}
double tec_space_count(const tec_space *sp)
{
    return sp ? (double)space_count(sp) : 0;
}
tec_point tec_space_start(const tec_space *sp)
{
    return sp ? space_start(sp) : (tec_point){0};
}

bool tec_space_check(tec_context *cx, const tec_space *sp, const tec_point *p, const char **reason)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, p, "point"))
        return false;
    return space_check(cx, sp, p, reason);
}
bool tec_space_sample(tec_context *cx, const tec_space *sp, uint64_t *state, tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, state, "state of random numbers") ||
        lacks(cx, out, "place for the result"))
        return false;
    return space_sample(cx, sp, state, out);
}
bool tec_space_mutate(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *p,
                      tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, state, "state of random numbers") || lacks(cx, p, "point") ||
        lacks(cx, out, "place for the result"))
        return false;
    return space_mutate(cx, sp, state, p, out);
}
bool tec_space_cross(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *a,
                     const tec_point *b, tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, state, "state of random numbers") || lacks(cx, a, "point") ||
        lacks(cx, b, "second point") || lacks(cx, out, "place for the result"))
        return false;
    return space_cross(cx, sp, state, a, b, out);
}
tec_schedule *tec_space_apply(tec_context *cx, const tec_space *sp, const tec_point *p)
{
    BASE_GUARD(cx, NULL);
    if (lacks(cx, sp, "space") || lacks(cx, p, "point"))
        return NULL;
    return space_apply(cx, sp, p);
}

const char *tec_point_text(tec_context *cx, const tec_space *sp, const tec_point *p)
{
    BASE_GUARD(cx, NULL);
    if (lacks(cx, sp, "space") || lacks(cx, p, "point"))
        return NULL;
    return space_point_text(cx, sp, p);
}
bool tec_point_parse(tec_context *cx, const tec_space *sp, const char *text, tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, text, "text of a point") ||
        lacks(cx, out, "place for the result"))
        return false;
    return space_point_parse(cx, sp, text, out);
}
