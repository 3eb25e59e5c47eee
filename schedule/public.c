/* schedule/public.c -- the public face of schedule/: include/tec/schedule.h over schedule/sched.h. */
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

bool tec_split_n(tec_schedule *s, const char *loop, tec_tail tail, const char **out, const int64_t *factor,
                 int n)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_split(s, loop, factor, n, (sched_tail)tail, out);
}

bool(tec_parallel)(tec_schedule *s, const char *loop)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_annotate(s, loop, IR_PARALLEL);
}
bool(tec_vectorize)(tec_schedule *s, const char *loop)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_annotate(s, loop, IR_VECTORISED);
}
bool(tec_unroll)(tec_schedule *s, const char *loop)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_annotate(s, loop, IR_UNROLLED);
}

bool(tec_bind)(tec_schedule *s, const char *loop, const char *axis)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    sched_arg arg[] = {{.kind = SCHED_ARG_LOOP, .name = loop}, {.kind = SCHED_ARG_WORD, .name = axis}};

    return sched_apply(s, "bind", arg, 2, NULL, NULL);
}

/* A step with one result, a name. */
static const char *named_result(tec_schedule *s, const char *primitive, const sched_arg *arg, int n)
{
    const char *const *made;
    int n_made;

    return sched_apply(s, primitive, arg, n, &made, &n_made) ? made[0] : NULL;
}

const char *tec_cache_read_n(tec_schedule *s, const char *buffer, const char *scope,
                             const char *const *reader, int n)
{
    BASE_GUARD(s ? s->view.cx : NULL, NULL);
    sched_arg arg[] = {{.kind = SCHED_ARG_BUFFER, .name = buffer},
                       {.kind = SCHED_ARG_WORD, .name = scope},
                       {.kind = SCHED_ARG_BLOCKS, .names = reader, .n = n}};

    return named_result(s, "cache_read", arg, 3);
}

const char *(tec_cache_write)(tec_schedule *s, const char *block, const char *scope)
{
    BASE_GUARD(s ? s->view.cx : NULL, NULL);
    sched_arg arg[] = {{.kind = SCHED_ARG_BLOCK, .name = block},
                       {.kind = SCHED_ARG_WORD, .name = scope},
                       {.kind = SCHED_ARG_LOOPS}};

    return named_result(s, "cache_write", arg, 3);
}

const char *(tec_cache_write_at)(tec_schedule *s, const char *block, const char *scope, const char *loop)
{
    BASE_GUARD(s ? s->view.cx : NULL, NULL);
    sched_arg arg[] = {{.kind = SCHED_ARG_BLOCK, .name = block},
                       {.kind = SCHED_ARG_WORD, .name = scope},
                       {.kind = SCHED_ARG_LOOPS, .names = &loop, .n = 1}};

    return named_result(s, "cache_write", arg, 3);
}

bool(tec_set_scope)(tec_schedule *s, const char *buffer, const char *scope)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    sched_arg arg[] = {{.kind = SCHED_ARG_BUFFER, .name = buffer}, {.kind = SCHED_ARG_WORD, .name = scope}};

    return sched_apply(s, "set_scope", arg, 2, NULL, NULL);
}

void tec_use_intrinsics(tec_schedule *s, const tec_intrinsics *table)
{
    BASE_GUARD(s ? s->view.cx : NULL, );
    if (s)
        sched_use_intrinsics(s, table);
}

bool(tec_buffer_bind)(tec_schedule *s, const char *buffer, const char *strides, int64_t offset, int align)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_buffer_bind(s, buffer, strides, offset, align);
}

bool tec_env_threads_n(tec_schedule *s, const char *loop, const char **out, const char *const *axis, int n)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_env_threads(s, loop, axis, n, out);
}

bool(tec_transform_layout)(tec_schedule *s, const char *buffer, const char *map, const char *pad)
{
    BASE_GUARD(s ? s->view.cx : NULL, false);
    return sched_transform_layout(s, buffer, map, pad);
}
