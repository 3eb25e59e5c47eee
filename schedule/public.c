/* schedule/public.c -- include/tec/schedule.h over schedule/sched.h, without the primitives (api.c). */
#include "tec/schedule.h"

#include "base/guard.h"
#include "ir/text.h"
#include "schedule/state.h"
#include "te/te.h"

tec_schedule *tec_schedule_new(tec_context *cx, const tec_def *def, const char *device)
{
    BASE_GUARD(cx, NULL);
    const ir_program *tree = def ? te_tree(cx, def) : NULL;
    const target *t = device ? target_parse(cx, device) : NULL;
    sched *s = tree && (t || !device) ? sched_new(cx, tree, t) : NULL;

    if (s)
        sched_set_def(s, def);
    return s;
}

tec_schedule *tec_schedule_fork(const tec_schedule *schedule)
{
    BASE_GUARD(schedule ? schedule->view.cx : NULL, NULL);
    return schedule ? sched_fork(schedule->view.cx, schedule) : NULL;
}
const char *tec_schedule_error(const tec_schedule *schedule)
{
    return sched_error(schedule);
}

void tec_schedule_clear(tec_schedule *schedule)
{
    BASE_GUARD(schedule ? schedule->view.cx : NULL, );
    if (schedule)
        sched_clear(schedule);
}

const char *tec_schedule_tree(const tec_schedule *schedule)
{
    BASE_GUARD(schedule ? schedule->view.cx : NULL, NULL);
    return schedule ? ir_program_text(schedule->view.cx, schedule->view.program) : NULL;
}
const char *tec_schedule_trace(const tec_schedule *schedule)
{
    BASE_GUARD(schedule ? schedule->view.cx : NULL, NULL);
    return schedule ? sched_trace_text(schedule->view.cx, schedule) : NULL;
}
bool tec_schedule_replay(tec_schedule *schedule, const char *file, const char *trace)
{
    BASE_GUARD(schedule ? schedule->view.cx : NULL, false);
    return sched_replay(schedule, file, trace);
}

tec_schedule *tec_here_schedule(tec_schedule *schedule, const char *file, int line)
{
    if (schedule) {
        schedule->where = (base_loc){.file = file, .line = line};
        tec_here(schedule->view.cx, file, line);
    }
    return schedule;
}

void tec_use_intrinsics(tec_schedule *schedule, const tec_intrinsics *table)
{
    BASE_GUARD(schedule ? schedule->view.cx : NULL, );
    if (schedule)
        sched_use_intrinsics(schedule, table);
}
