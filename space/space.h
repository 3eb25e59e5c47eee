/* space/space.h -- spaces from the inside: knobs with their values, points, and the ways to walk among
 * points.
 *
 *     // or space_new(cx, tree, target, template, user)
 *     space *sp = space_master(cx, te_tree(cx, def), target);
 *     space_point p;
 *     for (bool more = space_sample(cx, sp, &state, &p); more; more = space_mutate(cx, sp, &state, &p, &p)) {
 *         base_mark mark = base_arena_mark(cx);
 *         sched *s = space_apply(cx, sp, &p);
 *         ... sched_failed(s), sched_tree(s), sched_trace_text(cx, s) ...
 *         base_arena_release(cx, mark);
 *     }
 *
 * A point is one place in the value list of each knob; a space is the product of these lists, less the points
 * that its template refuses. Points have an index, in mixed radix: the last knob counts fastest.
 * Lifetime: a space lives in its context and never changes; points are values. Errors: see tec/space.h.
 * Threads: any number may read one space, each with a context of its own; everything follows from the
 * arguments alone.
 */
#ifndef SPACE_SPACE_H
#define SPACE_SPACE_H

#include "schedule/sched.h"
#include "tec/space.h"

typedef struct tec_space space;
typedef tec_point space_point;
__extension__ typedef unsigned __int128 space_number; /* of points; no space has as many as 2^127 */

typedef enum { SPACE_SPLIT, SPACE_CHOICE, SPACE_WORD, SPACE_ORDER } space_knob_kind;

typedef struct {
    const char *name;
    space_knob_kind kind;
    int count; /* values */
    /* numbers of one value: of a split all factors, the first being TEC_INFER; of an order its places */
    int parts;
    const int64_t *number; /* count * parts */
    /* WORD: by number; ORDER: the names, value v being word[number[v*parts + i]] */
    const char *const *word;
    const char *const *permuted; /* ORDER: count * parts names */
    int64_t extent;              /* SPLIT: what is split; 0: unknown */
    int start;
} space_knob;

/* Points are applied to forks of `base`, which may have taken steps already; the space reads it as long as it
 * lives. NULL with an error. */
space *space_new(tec_context *cx, const sched *base, tec_template *make, void *user);
/* The space that follows from the tree and the kind of target. */
space *space_master(tec_context *cx, const ir_program *tree, const target *machine);

/* The schedule of a definition for which no record says otherwise: the start of its space. The operator of
 * the definition plays no part; what it knows, its stages say by their roles and notes. Test sched_failed for
 * a step that was refused. NULL with an error in cx. */
sched *space_default(tec_context *cx, const ir_program *tree, const target *machine);

const sched *space_base(const space *sp);
int space_n_knobs(const space *sp);
const space_knob *space_knob_at(const space *sp, int i);
int space_knob_named(const space *sp, const char *name);                         /* -1: none */
const int64_t *space_value(const space *sp, const space_point *point, int knob); /* its numbers */

space_number space_count(const space *sp); /* refused points included */
space_number space_index(const space *sp, const space_point *point);
space_point space_at(const space *sp, space_number index); /* index < count */
space_point space_start(const space *sp);
bool space_same(const space_point *left, const space_point *right);
uint64_t space_hash(const space_point *point);

/* Fast; no schedule is made. */
bool space_check(tec_context *cx, const space *sp, const space_point *point, const char **reason);
/* Of the points with the same effect the one that counts, as far as the template knows, then the check. */
bool space_settle(tec_context *cx, const space *sp, space_point *point);
bool space_sample(tec_context *cx, const space *sp, uint64_t *state, space_point *out);
bool space_mutate(tec_context *cx, const space *sp, uint64_t *state, const space_point *point,
                  space_point *out);
bool space_cross(tec_context *cx, const space *sp, uint64_t *state, const space_point *left,
                 const space_point *right, space_point *out);
/* The first point from *index on that the check accepts; *index moves behind it. False: there is none. */
bool space_next(tec_context *cx, const space *sp, space_number *index, space_point *out);
sched *space_apply(tec_context *cx, const space *sp, const space_point *point);

const char *space_point_text(tec_context *cx, const space *sp, const space_point *point);
/* false with an error in cx */
bool space_point_parse(tec_context *cx, const space *sp, const char *text, space_point *out);
/* The point that comes nearest to one of another space, by the names of its knobs: numbers by their ratios,
 * words and orders where they are the same; otherwise where this space starts. False, without an error: the
 * text is none, or the check refuses the point. */
bool space_point_near(tec_context *cx, const space *sp, const char *text, space_point *out);

#endif
