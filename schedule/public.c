/* schedule/public.c -- include/tec/schedule.h over schedule/sched.h, without the primitives (api.c). */
#include "tec/schedule.h"

#include "base/guard.h"
#include "ir/text.h"
#include "schedule/state.h"
#include "te/te.h"

tec_schedule *tec_schedule_new(tec_context *cx, const tec_def *d, const char *device)
{
    BASE_GUARD(cx, NULL);
    const ir_program *tree = d ? te_tree(cx, d) : NULL;
    const target *t = device ? target_parse(cx, device) : NULL;
    sched *s = tree && (t || !device) ? sched_new(cx, tree, t) : NULL;

    if (s)
        sched_set_def(s, d);
    return s;
}

tec_schedule *tec_schedule_fork(const tec_schedule *s)
{
    BASE_GUARD(s ? s->view.cx : NULL, NULL);
    return s ? sched_fork(s->view.cx, s) : NULL;
}
const char *tec_schedule_error(const tec_schedule *s)
{
    return sched_error(s);
}

void tec_schedule_clear(tec_schedule *s)
{
    BASE_GUARD(s ? s->view.cx : NULL, );
    if (s)
        sched_clear(s);
}

const char *tec_schedule_tree(const tec_schedule *s)
{
    BASE_GUARD(s ? s->view.cx : NULL, NULL);
    return s ? ir_program_text(s->view.cx, s->view.program) : NULL;
}
const char *tec_schedule_trace(const tec_schedule *s)
{
    BASE_GUARD(s ? s->view.cx : NULL, NULL);
    return s ? sched_trace_text(s->view.cx, s) : NULL;
}
bool tec_schedule_replay(tec_schedule *s, const char *file, const char *trace)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_replay(s, file, trace);
}

tec_schedule *tec_here_schedule(tec_schedule *s, const char *file, int line)
{
    if (s) {
        s->where = (base_loc){.file = file, .line = line};
        tec_here(s->view.cx, file, line);
    }
    return s;
}

void tec_use_intrinsics(tec_schedule *s, const tec_intrinsics *table)
{
    BASE_GUARD(s ? s->view.cx : NULL, );
    if (s)
        sched_use_intrinsics(s, table);
}
