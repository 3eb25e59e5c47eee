/* autotune/source.c -- see source.h. */
#include "autotune/source.h"

#include <inttypes.h>

const char *tune_target_key(tec_context *cx, const target *t)
{
    return base_format(cx, "%016" PRIx64 "-%d", target_fingerprint(t), t->num_cores);
}

static bool applies(tec_context *cx, const space_task *task, const target *t, const char *trace)
{
    const ir_program *tree = te_tree(cx, task->def);

    return tree && sched_replay(sched_new(cx, tree, t), "record", trace);
}

/* The fastest that applies; a record that was adopted comes before all others. */
static const char *fitting(tec_context *cx, store *db, const space_task *task, const target *t, store_query q)
{
    enum { TRIED = 5 };

    for (int adopted = 1; adopted >= 0; adopted--) {
        int n = 0;

        q.tuner = adopted ? TUNE_ADOPTED : NULL;
        const store_record *const *best = store_best(cx, db, &q, TRIED, &n);
        for (int i = 0; best && i < n; i++)
            if (applies(cx, task, t, best[i]->trace))
                return best[i]->trace;
    }
    return NULL;
}

static const char *best(const space_source *self, tec_context *cx, const space_task *task, const target *t, const char **origin)
{
    store_query exact = {.exact_key = task->exact_key, .target = tune_target_key(cx, t)};
    store_query anchor = {.anchor_key = task->anchor_key, .target = exact.target};
    const char *trace = fitting(cx, self->data, task, t, exact);

    if (origin)
        *origin = trace ? "record" : "anchor record";
    return trace ? trace : fitting(cx, self->data, task, t, anchor);
}

const space_source *tune_source(tec_context *cx, store *db)
{
    space_source *s = base_new(cx, space_source);

    *s = (space_source){.best = best, .data = db};
    return s;
}
