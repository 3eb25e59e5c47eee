/* space/task.h -- tuning tasks: what a schedule is looked for, under two keys; and where a schedule for a
 * task comes from.
 *
 *     const space_task *t = space_task_new(cx, def, NULL);
 *     char *trace = source->best(source, cx, t, target, &origin);
 *
 * The anchor key names the computation that decides the time: implementation and version, dtypes, shapes with
 * the ranges of symbols, attributes; nothing of names, layouts of other stages, or the epilogue. The exact
 * key adds everything else of the definition. The family is the anchor key without extents; extents are
 * `shape`, so that tasks of one family can be compared. For an operator of a graph, the caller says what the
 * anchor is, and changing the te body of its implementation orphans no record as long as the version stays.
 * For a definition that was written by hand, the keys follow from its anchor stage: the one with that role,
 * or else the one with the most work.
 * Lifetime: the context's. Errors: as everywhere. Threads: as schedule/sched.h.
 */
#ifndef SPACE_TASK_H
#define SPACE_TASK_H

#include "space/space.h"
#include "te/te.h"

/* What an operator says of itself. */
typedef struct {
    const char *impl; /* "conv.direct" */
    int version;
    const ir_buffer *const *operand; /* dtypes and shapes of its operands, as the operator sees them */
    int n_operands;
    const char *attributes; /* as text, always in the same form; "" for none */
} space_anchor;

typedef struct {
    const te_def *def;
    const char *anchor_key, *exact_key, *family;
    const char *summary; /* for people: the operators, and the extents of the anchor */
    /* extents of the anchor; a symbol counts as the geometric mean of its range, or 0 where that has no
     * end */
    const double *shape;
    int n_shape;
} space_task;

/* anchor NULL: written by hand */
const space_task *space_task_new(tec_context *cx, const te_def *def, const space_anchor *anchor);

/* Schedules for ranges of one symbol of a definition: each for its values above the last range's `to` and up
 * to its own. The last range has no end (INT64_MAX). A fixed range is one value alone, and its schedule is
 * that of the definition in which the symbol is this number. */
typedef struct {
    int64_t to;
    bool fixed;
    const char *trace;
} space_range;
typedef struct {
    int symbol; /* its number in the definition */
    const space_range *at;
    int n;
} space_ranges;

/* As text, which is no trace; and back: NULL where the text has another form. */
const char *space_ranges_text(tec_context *cx, const space_ranges *ranges);
const space_ranges *space_ranges_read(tec_context *cx, const char *text);
/* The last value of each range; INT64_MAX of the last one. */
const int64_t *space_ranges_ends(tec_context *cx, const space_ranges *ranges);
/* `standing` (or one schedule for all values where it is NULL) with fixed ranges for some values: rising,
 * each with a schedule. Fixed ranges of `standing` for other values stay as long as there is room. */
const space_ranges *space_ranges_fix(tec_context *cx, const space_ranges *standing, const char *trace,
                                     int symbol, const int64_t *value, const char *const *fixed, int count);
/* The tree of each range; ranges with one trace share one. Trees of fixed ranges have all symbols of the
 * definition. NULL with the reason in *refused if one of the traces does not apply, or the definition does
 * not have the symbol. */
const ir_program **space_ranges_trees(tec_context *cx, const te_def *def, const target *machine,
                                      const space_ranges *ranges, const char **refused);

/* Where the default schedule `start` of a definition leaves short tiles for some small numbers of rows: that
 * schedule, a second one for these numbers, and one for one row alone (space/few.c). NULL: one is good for
 * all numbers. */
const space_ranges *space_default_ranges(tec_context *cx, const te_def *def, const sched *start);

/* Implemented over the record store by autotune/. Where it has no trace, the default schedule stands in
 * (space_default). */
typedef struct tec_records space_source; /* public: tec/records.h */
struct tec_records {
    /* The best trace for the task, in cx; NULL: this source has none. *origin (may be NULL): a word on where
     * it came from. */
    const char *(*best)(const space_source *self, tec_context *cx, const space_task *task,
                        const target *machine, const char **origin);
    /* Schedules for ranges of a symbol of the very definition; NULL: there are none. May be NULL itself. */
    const space_ranges *(*ranges)(const space_source *self, tec_context *cx, const space_task *task,
                                  const target *machine);
    void *data;
};

#endif
