/* autotune/source.h -- schedules from the record store, for compilers.
 *
 *     const space_source *s = tune_source(cx, db);
 *     graph_build(m, &(graph_build_options){.target = t, .source = s});
 *
 * For a task: the schedule that a tuner adopted last, otherwise the fastest record; of this very definition,
 * otherwise of the same anchor in another company ("anchor record"). A trace that does not apply is passed
 * over, and so is one that ever gave a wrong answer. Records of other targets, or of another number of cores,
 * are not looked at.
 * For a kernel with a symbol there may be schedules for ranges of the symbol, too: a record that was adopted,
 * whose trace has the form of space/ranges.c. It counts until something else is adopted.
 * Lifetime: the context's; the store must stay open. Threads: as the store: one.
 */
#ifndef AUTOTUNE_SOURCE_H
#define AUTOTUNE_SOURCE_H

#include "space/task.h"
#include "store/store.h"

/* The `tuner` of a record that won against the schedule that would be used without it, measured in turns with
 * it. */
#define TUNE_ADOPTED "adopted"

space_source *tune_source(tec_context *cx, store *db);

/* What records call a target: what decides the code, the cores that schedules are made for, and the class of
 * devices where one was meant: times of boards that only look alike are not compared with each other. */
const char *tune_target_key(tec_context *cx, const target *machine);

/* One line about what the store has, for a user who misses a record: how many kernels for which targets, and
 * some of those for this one. */
const char *tune_records_text(tec_context *cx, store *db, const target *machine);

#endif
