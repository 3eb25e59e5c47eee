/* space/public.c -- the public face of space/: include/tec/space.h over space/space.h. */
#include "space/space.h"
#include "te/te.h"

tec_space *tec_space_new(tec_context *cx, const tec_def *d, const char *device, tec_template *f, void *user)
{
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
    return space_knob_at(sp, knob)->name;
}
int tec_space_knob_values(const tec_space *sp, int knob)
{
    return space_knob_at(sp, knob)->count;
}
double tec_space_count(const tec_space *sp)
{
    return sp ? (double)space_count(sp) : 0;
}
tec_point tec_space_start(const tec_space *sp)
{
    return space_start(sp);
}

bool tec_space_check(tec_context *cx, const tec_space *sp, const tec_point *p, const char **reason)
{
    return space_check(cx, sp, p, reason);
}
bool tec_space_sample(tec_context *cx, const tec_space *sp, uint64_t *state, tec_point *out)
{
    return space_sample(cx, sp, state, out);
}
bool tec_space_mutate(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *p, tec_point *out)
{
    return space_mutate(cx, sp, state, p, out);
}
bool tec_space_cross(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *a, const tec_point *b, tec_point *out)
{
    return space_cross(cx, sp, state, a, b, out);
}
tec_schedule *tec_space_apply(tec_context *cx, const tec_space *sp, const tec_point *p)
{
    return space_apply(cx, sp, p);
}

const char *tec_point_text(tec_context *cx, const tec_space *sp, const tec_point *p)
{
    return space_point_text(cx, sp, p);
}
bool tec_point_parse(tec_context *cx, const tec_space *sp, const char *text, tec_point *out)
{
    return space_point_parse(cx, sp, text, out);
}
