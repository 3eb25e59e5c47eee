/* space/knobs.h -- inside the room: what a template talks to, and a space from within.
 *
 * One run of a template learns knobs, checks a point, or applies it. Knobs are found by their place: a
 * template declares the same ones, in the same order, each time.
 */
#ifndef SPACE_KNOBS_H
#define SPACE_KNOBS_H

#include "space/space.h"

struct tec_space {
    tec_context *cx;
    const sched *base;
    tec_template *f;
    void *user;
    int n;
    space_knob knob[TEC_MAX_KNOBS];
    space_number count;
};

typedef enum { SPACE_LEARN, SPACE_CHECK, SPACE_APPLY } space_mode;

struct tec_knobs {
    tec_context *cx;
    space_mode mode;
    space *learnt; /* LEARN: the space that grows */
    const space *sp;
    const space_point *p; /* otherwise */
    int next;             /* the knob that is declared next */
    bool done;            /* tec_knobs_done was asked */
    /* bit k: of the points that differ in knob k alone and have this one's effect, the one with value[k]
     * counts */
    uint64_t bound;
    int32_t value[TEC_MAX_KNOBS];
    const char *reason; /* why the point is refused; NULL: it is not */
};

/* Runs the template; false: knobs->reason, or the error of schedule. */
bool space_run(tec_knobs *knobs, sched *schedule);
void space_refuse(tec_knobs *knobs, const char *fmt, ...) BASE_PRINTF(2, 3); /* the first reason stays */

/* The values of a split: count * parts numbers, in falling order of size of nothing but themselves (as a
 * dictionary). *start is the place of domain->start. NULL with an error in cx. */
const int64_t *space_split_values(tec_context *cx, const char *name, int64_t extent,
                                  const tec_split_domain *domain, int *count, int *start);

#endif
