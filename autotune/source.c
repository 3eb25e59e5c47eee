/* autotune/source.c -- see source.h. */
#include "autotune/source.h"

#include <inttypes.h>
#include <string.h>

#include "te/text.h"

const char *tune_target_key(tec_context *cx, const target *t)
{
    return base_format(cx, "%016" PRIx64 "-%d%s%s", target_fingerprint(t), t->num_cores, t->model ? "-" : "",
                       t->model ? t->model : "");
}

/* The intrinsics that its steps may name are declared in its definition. */
static bool applies(tec_context *cx, const space_task *task, const target *t, const store_record *r)
{
    const ir_program *tree = te_tree(cx, task->def);
    sched *s = tree ? sched_new(cx, tree, t) : NULL;
    tec_context *own = base_child(cx);
    const te_file *file =
        strstr(r->workload.definition, "intrinsic ") ? te_parse(own, "record", r->workload.definition) : NULL;

    if (s && file)
        sched_use_intrinsics(s, &file->intrinsics);
    bool good = s && sched_replay(s, "record", r->trace);
    tec_context_free(own);
    return good;
}

/* Whether the schedule ever gave a wrong answer, whoever measured it. */
static bool is_wrong(tec_context *cx, store *db, store_query q, const char *trace)
{
    bool wrong = false;
    store_record r;

    q.only_ok = false;
    q.only_failed = true;
    q.tuner = NULL;
    store_cursor *c = store_find(cx, db, &q);
    while (!wrong && store_next(cx, c, &r))
        wrong = r.status == STORE_WRONG && strcmp(r.trace, trace) == 0;
    return !store_end(c) || wrong;
}

/* What was adopted last: each winner was held against the one before it. */
static const char *adopted(tec_context *cx, store *db, const space_task *task, const target *t, store_query q)
{
    const char *last = NULL;
    store_record r;

    q.tuner = TUNE_ADOPTED;
    q.only_ok = true;
    store_cursor *c = store_find(cx, db, &q);
    while (store_next(cx, c, &r))
        if (applies(cx, task, t, &r))
            last = base_strdup(cx, r.trace);
    return store_end(c) && last && !is_wrong(cx, db, q, last) ? last : NULL;
}

/* What was adopted, otherwise the fastest that applies and never gave a wrong answer. */
static const char *fitting(tec_context *cx, store *db, const space_task *task, const target *t, store_query q)
{
    enum { TRIED = 5 };
    int n = 0;
    const char *trace = adopted(cx, db, task, t, q);
    const store_record *const *best = trace ? NULL : store_best(cx, db, &q, TRIED, &n);

    for (int i = 0; i < n; i++)
        if (applies(cx, task, t, best[i]) && !is_wrong(cx, db, q, best[i]->trace))
            return best[i]->trace;
    return trace;
}

static const char *best(const space_source *self, tec_context *cx, const space_task *task, const target *t,
                        const char **origin)
{
    store_query exact = {.exact_key = task->exact_key, .target = tune_target_key(cx, t)};
    store_query anchor = {.anchor_key = task->anchor_key, .target = exact.target};
    const char *trace = fitting(cx, self->data, task, t, exact);

    if (origin)
        *origin = trace ? "record" : "anchor record";
    return trace ? trace : fitting(cx, self->data, task, t, anchor);
}

space_source *tune_source(tec_context *cx, store *db)
{
    space_source *s = base_new(cx, space_source);

    *s = (space_source){.best = best, .data = db};
    return s;
}

/* ---- what there is ---- */

enum { NAMED = 4 };

/* Its operands, in brief: "f32[8, 64]". */
static const char *brief(const store_summary *s)
{
    return s->workload.summary && *s->workload.summary ? s->workload.summary : s->workload.exact_key;
}

/* The kernels of the first NAMED summaries whose target is `key`. */
static void add_kernels(tec_context *cx, base_text *out, const store_summary *s, int n, const char *key)
{
    int named = 0, all = 0;

    for (int i = 0; i < n; i++)
        if (s[i].n_ok && base_same(s[i].target.fingerprint, key)) {
            if (named < NAMED)
                base_addf(cx, out, "%s%s", named++ ? "; " : "", brief(&s[i]));
            all++;
        }
    if (all > named)
        base_addf(cx, out, "; and %d more", all - named);
}

/* For the message that no record fits: which targets the store has records of, and which kernels for this
 * one. */
const char *tune_records_text(tec_context *cx, store *db, const target *t)
{
    int n;
    const store_summary *s = store_summaries(cx, db, NULL, &n);
    const char *own = tune_target_key(cx, t);
    base_text out = {0}, kernels = {0};
    base_dict counts = {0}; /* text of a target -> int *: kernels with a record that is ok */

    for (int i = 0; s && i < n; i++) {
        int *count = base_dict_get(&counts, s[i].target.text);

        if (!count)
            base_dict_put(cx, &counts, s[i].target.text, count = base_new(cx, int));
        *count += s[i].n_ok > 0;
    }
    for (int i = 0; i < counts.order.n; i++) {
        int count = *(int *)base_dict_get(&counts, counts.order.at[i]);

        if (count)
            base_addf(cx, &out, "%s%d kernel%s for '%s'", out.n ? ", " : "", count, count == 1 ? "" : "s",
                      (const char *)counts.order.at[i]);
    }
    add_kernels(cx, &kernels, s, s ? n : 0, own);
    if (!out.n)
        return "it has no records at all";
    return base_format(cx, "it has records of %s; those for this target, '%s', are of: %s",
                       base_text_str(cx, &out), target_text(cx, t), kernels.n ? kernels.data : "nothing");
}
