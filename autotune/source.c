/* autotune/source.c -- see source.h. */
#include "autotune/source.h"

#include <inttypes.h>
#include <string.h>

#include "te/text.h"

const char *tune_target_key(tec_context *cx, const target *machine)
{
    return base_format(cx, "%016" PRIx64 "-%d%s%s", target_fingerprint(machine), machine->num_cores,
                       machine->model ? "-" : "", machine->model ? machine->model : "");
}

/* The intrinsics that its steps may name are declared in its definition. */
static bool applies(tec_context *cx, const space_task *task, const target *machine,
                    const store_record *record)
{
    const ir_program *tree = te_tree(cx, task->def);
    sched *s = tree ? sched_new(cx, tree, machine) : NULL;
    tec_context *own = base_child(cx);
    const te_file *file = strstr(record->workload.definition, "intrinsic ")
                              ? te_parse(own, "record", record->workload.definition)
                              : NULL;

    if (s && file)
        sched_use_intrinsics(s, &file->intrinsics);
    bool good = s && sched_replay(s, "record", record->trace);
    tec_context_free(own);
    return good;
}

/* Whether the schedule ever gave a wrong answer, in whichever job. */
static bool is_wrong(tec_context *cx, store *db, store_query query, const char *trace)
{
    bool wrong = false;
    store_record r;

    query.only_ok = false;
    query.only_failed = true;
    query.tuner = NULL;
    store_cursor *cursor = store_find(cx, db, &query);
    while (!wrong && store_next(cx, cursor, &r))
        wrong = r.status == STORE_WRONG && strcmp(r.trace, trace) == 0;
    return !store_end(cursor) || wrong;
}

/* What was adopted last: each winner was compared with the one before it. */
static const char *adopted(tec_context *cx, store *db, const space_task *task, const target *machine,
                           store_query query)
{
    const char *last = NULL;
    store_record r;

    query.tuner = TUNE_ADOPTED;
    query.only_ok = true;
    store_cursor *cursor = store_find(cx, db, &query);
    while (store_next(cx, cursor, &r))
        if (applies(cx, task, machine, &r))
            last = base_strdup(cx, r.trace);
    return store_end(cursor) && last && !is_wrong(cx, db, query, last) ? last : NULL;
}

/* What was adopted, otherwise the fastest that applies and never gave a wrong answer. */
static const char *fitting(tec_context *cx, store *db, const space_task *task, const target *machine,
                           store_query query)
{
    enum { TRIED = 5 };
    int n = 0;
    const char *trace = adopted(cx, db, task, machine, query);
    const store_record *const *best = trace ? NULL : store_best(cx, db, &query, TRIED, &n);

    for (int i = 0; i < n; i++)
        if (applies(cx, task, machine, best[i]) && !is_wrong(cx, db, query, best[i]->trace))
            return best[i]->trace;
    return trace;
}

static const char *best(const space_source *self, tec_context *cx, const space_task *task,
                        const target *machine, const char **origin)
{
    store_query exact = {.exact_key = task->exact_key, .target = tune_target_key(cx, machine)};
    store_query anchor = {.anchor_key = task->anchor_key, .target = exact.target};
    const char *trace = fitting(cx, self->data, task, machine, exact);

    if (origin)
        *origin = trace ? "record" : "anchor record";
    return trace ? trace : fitting(cx, self->data, task, machine, anchor);
}

/* Those that were adopted last, unless something else was adopted behind them. */
static const space_ranges *ranges(const space_source *self, tec_context *cx, const space_task *task,
                                  const target *machine)
{
    store_query query = {.exact_key = task->exact_key,
                         .target = tune_target_key(cx, machine),
                         .tuner = TUNE_ADOPTED,
                         .only_ok = true};
    const space_ranges *last = NULL;
    store_record r;

    store_cursor *cursor = store_find(cx, self->data, &query);
    while (store_next(cx, cursor, &r))
        last = space_ranges_read(cx, r.trace);
    const char *refused = NULL;
    bool good = store_end(cursor) && last && space_ranges_trees(cx, task->def, machine, last, &refused);
    for (int i = 0; good && i < last->n; i++)
        good = last->at[i].fixed || !is_wrong(cx, self->data, query, last->at[i].trace);
    return good ? last : NULL;
}

space_source *tune_source(tec_context *cx, store *db)
{
    space_source *s = base_new(cx, space_source);

    *s = (space_source){.best = best, .ranges = ranges, .data = db};
    return s;
}

/* ---- what there is ---- */

enum { NAMED = 4 };

/* Its operands, in brief: "f32[8, 64]". */
static const char *brief(const store_summary *summary)
{
    return summary->workload.summary && *summary->workload.summary ? summary->workload.summary
                                                                   : summary->workload.exact_key;
}

/* The kernels of the first NAMED summaries whose target is `key`. */
static void add_kernels(tec_context *cx, base_text *out, const store_summary *summary, int count,
                        const char *key)
{
    int named = 0, all = 0;

    for (int i = 0; i < count; i++)
        if (summary[i].n_ok && base_same(summary[i].target.fingerprint, key)) {
            if (named < NAMED)
                base_addf(cx, out, "%s%s", named++ ? "; " : "", brief(&summary[i]));
            all++;
        }
    if (all > named)
        base_addf(cx, out, "; and %d more", all - named);
}

/* For the message that no record fits: which targets the store has records of, and which kernels for this
 * one. */
const char *tune_records_text(tec_context *cx, store *db, const target *machine)
{
    int n;
    const store_summary *summary = store_summaries(cx, db, NULL, &n);
    const char *own = tune_target_key(cx, machine);
    base_text out = {0}, kernels = {0};
    base_dict counts = {0}; /* text of a target -> int *: kernels with a record that is ok */

    for (int i = 0; summary && i < n; i++) {
        int *count = base_dict_get(&counts, summary[i].target.text);

        if (!count)
            base_dict_put(cx, &counts, summary[i].target.text, count = base_new(cx, int));
        *count += summary[i].n_ok > 0;
    }
    for (int i = 0; i < counts.order.n; i++) {
        int count = *(int *)base_dict_get(&counts, counts.order.at[i]);

        if (count)
            base_addf(cx, &out, "%s%d kernel%s for '%s'", out.n ? ", " : "", count, count == 1 ? "" : "s",
                      (const char *)counts.order.at[i]);
    }
    add_kernels(cx, &kernels, summary, summary ? n : 0, own);
    if (!out.n)
        return "it has no records at all";
    return base_format(cx, "it has records of %s; those for this target, '%s', are of: %s",
                       base_text_str(cx, &out), target_text(cx, machine),
                       kernels.n ? kernels.data : "nothing");
}
