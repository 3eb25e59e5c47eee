/* space/steps.c -- knobs named after stages, and steps of schedules that several templates take.
 *
 * Knobs are named STAGE.WHAT, as in "C.unroll", or STAGE.WHAT.AXIS for splits, so that a record says what it
 * set even in another version of the template. A stage that is not open declares nothing, and each helper
 * then gives the start: templates need not ask.
 */
#include <string.h>

#include "ir/build.h"
#include "space/master.h"

/* ---- knobs ---- */

/* STAGE.WHAT; lives as long as the context of the knobs. */
static const char *knob_name(tec_knobs *knobs, const space_stage *stage, const char *what)
{
    return base_format(knobs->cx, "%s.%s", stage->name, what);
}

/* The value of knob STAGE.WHAT. A stage that is not open has no knobs and takes the start, as does a knob
 * with one value. */
int64_t space_pick(tec_knobs *knobs, const space_stage *stage, const char *what, const int64_t *value, int n,
                   int64_t start)
{
    if (!stage->open || n < 2)
        return start;
    const char *name = knob_name(knobs, stage, what);
    int64_t v = tec_knob_choice_n(knobs, name, value, n);

    tec_knob_start(knobs, name, start);
    return v;
}

/* As space_pick, giving the place of the word in the list. The words are few, so the place is searched. */
int space_pick_word(tec_knobs *knobs, const space_stage *stage, const char *what, const char *const *word,
                    int count, int start)
{
    if (!stage->open || count < 2)
        return start;
    const char *name = knob_name(knobs, stage, what), *chosen = tec_knob_word_n(knobs, name, word, count);
    int place = 0;

    tec_knob_start(knobs, name, start);
    while (place < count - 1 && strcmp(word[place], chosen) != 0)
        place++;
    return place;
}

/* As space_pick, for a split of the loop `axis`. */
const int64_t *space_pick_split(tec_knobs *knobs, const space_stage *stage, const char *what,
                                const char *axis, int64_t extent, const tec_split_domain *domain)
{
    if (stage->open)
        return tec_knob_split(knobs, base_format(knobs->cx, "%s.%s.%s", stage->name, what, axis), extent,
                              domain);
    int64_t *fixed = base_array(knobs->cx, int64_t, domain->parts);
    fixed[0] = TEC_INFER;
    memcpy(fixed + 1, domain->start, (size_t)(domain->parts - 1) * sizeof *fixed);
    return fixed;
}

/* Four names have 24 orders; five would have 120, which is more than is worth a search. */
static bool has_order(const space_stage *stage, int n)
{
    enum { MOST = 4 };

    return stage->open && n > 1 && n <= MOST;
}

/* The names in the chosen order; in the given order where the stage is not open. */
const char *const *space_pick_order(tec_knobs *knobs, const space_stage *stage, const char *what,
                                    const char *const *name, int n)
{
    return has_order(stage, n) ? tec_knob_order_n(knobs, knob_name(knobs, stage, what), name, n) : name;
}

void space_group_order(tec_knobs *knobs, const space_stage *stage, const char *what, const int *group, int n)
{
    if (has_order(stage, n))
        tec_knob_order_groups(knobs, knob_name(knobs, stage, what), group);
}

/* While the space is learnt: two values of one knob that make the same schedule for this stage. Only the
 * first is counted as a point. */
void space_leave_alias(tec_knobs *knobs, const space_stage *stage, const char *what, int64_t value,
                       int64_t other)
{
    if (stage->open)
        tec_knob_alias(knobs, knob_name(knobs, stage, what), value, other);
}

void space_leave_idle(tec_knobs *knobs, const space_stage *stage, const char *what, bool idle)
{
    if (stage->open && idle)
        tec_knob_idle(knobs, knob_name(knobs, stage, what));
}

/* ---- steps ---- */

/* 0: not known, or no such loop. */
int64_t space_extent(const sched *schedule, const char *loop)
{
    int64_t n;

    return sched_extent(schedule, loop, &n) ? n : 0;
}

/* NULL: there is nothing to do. A loop of one iteration is left alone: an annotation would only make the
 * trace longer. So is a loop of an unknown extent n: where facts say that n is less than the lanes, a split
 * by the lanes leaves n iterations. */
bool space_unroll(sched *schedule, const char *loop)
{
    return !loop || space_extent(schedule, loop) <= 1 || sched_annotate(schedule, loop, IR_UNROLLED);
}

bool space_vectorise(sched *schedule, const char *loop)
{
    return !loop || space_extent(schedule, loop) <= 1 || sched_annotate(schedule, loop, IR_VECTORISED);
}

bool space_run_in_parallel(sched *schedule, const char *loop)
{
    bool blocks = target_offers(sched_target(schedule), TARGET_CORES);

    return sched_annotate(schedule, loop, blocks ? IR_BLOCK_X : IR_PARALLEL);
}

/* One loop out of all; NULL for none. Loops must lie directly in each other, outermost first. */
const char *space_fuse(sched *schedule, const char *const *loop, int n)
{
    return n > 1 ? sched_fuse(schedule, loop, n) : n == 1 ? loop[0] : NULL;
}

/* Loops inside `outer` are those of the block after it was computed there; the loops above belong to its
 * reader. After compute_at(P, i.1) the loops of P are i.0, i.1, ax0, k: with outer = i.1 these are ax0
 * (spatial) and k (reduce). */
int space_own_loops(const sched *schedule, const char *block, const char *outer, const char **spatial,
                    const char **reduce, int *n_reduce)
{
    const char **all;
    int n = sched_loops_of(schedule, block, &all), first = 0, n_spatial = 0;

    *n_reduce = 0;
    if (outer) {
        while (first < n && strcmp(all[first], outer) != 0)
            first++;
        first++;
    }
    for (int i = first; i < n; i++)
        if (sched_loop_kind(schedule, all[i]) == IR_REDUCE_ITER)
            reduce[(*n_reduce)++] = all[i];
        else
            spatial[n_spatial++] = all[i];
    return n_spatial;
}

/* A loop no longer than the lanes becomes one vector; a longer one is cut, the rest being guarded. Lanes are
 * the block's last spatial loop, whatever else is inside of `outer`. */
bool space_vectorise_inside(sched *schedule, const char *block, const char *outer, int64_t lanes)
{
    const char *spatial[64], *reduce[64], *part[2];
    int n_reduce, n = space_own_loops(schedule, block, outer, spatial, reduce, &n_reduce);

    if (n == 0 || lanes < 2)
        return true;
    int64_t extent = space_extent(schedule, spatial[n - 1]);
    if (extent > 0 && extent <= lanes)
        return space_vectorise(schedule, spatial[n - 1]);
    return sched_split(schedule, spatial[n - 1], TEC_GUARD, part, (int64_t[]){TEC_INFER, lanes}, 2) &&
           space_vectorise(schedule, part[1]);
}
