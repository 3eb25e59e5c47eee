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

/* With make NULL, the space that follows from the definition and the target. */
tec_space *tec_space_new(tec_context *cx, const tec_def *def, const char *device, tec_template *make,
                         void *user)
{
    BASE_GUARD(cx, NULL);
    const ir_program *tree = def ? te_tree(cx, def) : NULL;
    const target *t = device ? target_parse(cx, device) : NULL;

    if (!tree || (device && !t))
        return NULL;
    return make ? space_new(cx, sched_new(cx, tree, t), make, user) : space_master(cx, tree, t);
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

bool tec_space_check(tec_context *cx, const tec_space *sp, const tec_point *point, const char **reason)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, point, "point"))
        return false;
    return space_check(cx, sp, point, reason);
}
bool tec_space_sample(tec_context *cx, const tec_space *sp, uint64_t *state, tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, state, "state of random numbers") ||
        lacks(cx, out, "place for the result"))
        return false;
    return space_sample(cx, sp, state, out);
}
bool tec_space_mutate(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *point,
                      tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, state, "state of random numbers") || lacks(cx, point, "point") ||
        lacks(cx, out, "place for the result"))
        return false;
    return space_mutate(cx, sp, state, point, out);
}
bool tec_space_cross(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *left,
                     const tec_point *right, tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, state, "state of random numbers") || lacks(cx, left, "point") ||
        lacks(cx, right, "second point") || lacks(cx, out, "place for the result"))
        return false;
    return space_cross(cx, sp, state, left, right, out);
}
tec_schedule *tec_space_apply(tec_context *cx, const tec_space *sp, const tec_point *point)
{
    BASE_GUARD(cx, NULL);
    if (lacks(cx, sp, "space") || lacks(cx, point, "point"))
        return NULL;
    return space_apply(cx, sp, point);
}

const char *tec_point_text(tec_context *cx, const tec_space *sp, const tec_point *point)
{
    BASE_GUARD(cx, NULL);
    if (lacks(cx, sp, "space") || lacks(cx, point, "point"))
        return NULL;
    return space_point_text(cx, sp, point);
}
bool tec_point_parse(tec_context *cx, const tec_space *sp, const char *text, tec_point *out)
{
    BASE_GUARD(cx, false);
    if (lacks(cx, sp, "space") || lacks(cx, text, "text of a point") ||
        lacks(cx, out, "place for the result"))
        return false;
    return space_point_parse(cx, sp, text, out);
}
