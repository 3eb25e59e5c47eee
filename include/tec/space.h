/* tec/space.h -- spaces of schedules: a template makes a schedule and leaves choices open, its knobs; a point chooses.
 *
 *     static bool tiles(tec_knobs *k, tec_schedule *s, void *user)
 *     {
 *         const int64_t *y = tec_knob_split(k, "y", 960, &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_FACTORS});
 *         const int64_t *x = tec_knob_split(k, "x", 960, &(tec_split_domain){.parts = 2, .policy = TEC_SPLIT_POWERS});
 *         tec_knob_require(k, y[1] * x[1] <= 384, "a tile of %d elements is too large", (int)(y[1] * x[1]));
 *         if (!tec_knobs_done(k))
 *             return true;
 *         const char *ys[2], *xs[2];
 *         tec_split_n(s, "C.y", TEC_GUARD, ys, y, 2);
 *         tec_split_n(s, "C.x", TEC_GUARD, xs, x, 2);
 *         return tec_reorder(s, ys[0], xs[0], "C.k", ys[1], xs[1]) && tec_vectorize(s, xs[1]);
 *     }
 *
 *     tec_space *sp = tec_space_new(cx, def, "native", tiles, NULL);
 *     uint64_t state = 1;
 *     tec_point p;
 *     if (tec_space_sample(cx, sp, &state, &p))
 *         puts(tec_schedule_trace(tec_space_apply(cx, sp, &p)));
 *
 * A template is run often: once to learn the knobs, then to check points, then to apply them. It declares its knobs, always the
 * same in the same order; states what it requires of their values; asks tec_knobs_done; and only then rewrites the schedule.
 * Without a template, the space follows from the definition and the target (docs/space.md).
 * Lifetime: a space is its context's and never changes; a point is a value. What is made from a point belongs to the context that
 *   the call names. Errors: a definition or template that makes no sense fails in the context; a point that does not fit is
 *   refused with a reason. Threads: any number may read one space, each with a context of its own.
 */
#ifndef TEC_SPACE_H
#define TEC_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tec_space tec_space;
typedef struct tec_knobs tec_knobs;

enum { TEC_MAX_KNOBS = 64, TEC_MAX_PARTS = 8 };

/* The value of each knob, by its place in the knob's list of values. */
typedef struct {
    int n;
    int32_t value[TEC_MAX_KNOBS];
} tec_point;

/* False where a step was refused, or after tec_knob_require. */
typedef bool tec_template(tec_knobs *k, tec_schedule *s, void *user);

/* ---- declaring knobs (in a template) ---- */

typedef enum {
    TEC_SPLIT_FACTORS,   /* the product of all parts is the extent */
    TEC_SPLIT_POWERS,    /* inner parts are powers of two */
    TEC_SPLIT_VERBOSE,   /* inner parts are factors, powers of two, or cut what is left into nearly equal pieces */
    TEC_SPLIT_CANDIDATES /* what the list says */
} tec_split_policy;

/* How a loop may be split. The first part always follows from the others and is TEC_INFER; the others are the inner parts. Of an
 * unknown extent (0), inner parts are powers of two up to 64, or `most`, or those of the list. */
typedef struct {
    tec_split_policy policy;
    int parts;                /* loops that come out, 2 to TEC_MAX_PARTS */
    const int64_t *most;      /* of each inner part, 0: any; NULL: no limits */
    const int64_t *candidate; /* n_candidates times parts - 1 inner parts: for TEC_SPLIT_CANDIDATES; with others, added */
    int n_candidates;
    const int64_t *start;     /* inner parts of the space's start, added where they are missing; NULL: the first value */
    bool (*keep)(const int64_t *inner, int n, void *user); /* leaves others out; NULL: all stay */
    void *user;
} tec_split_domain;

/* Each gives the value at the point: `parts` factors for tec_split_n; a number; a word; the names in their order. While knobs are
 * learnt, the first. */
TEC_API const int64_t *tec_knob_split(tec_knobs *k, const char *name, int64_t extent, const tec_split_domain *d);
TEC_API int64_t tec_knob_choice_n(tec_knobs *k, const char *name, const int64_t *value, int n);
TEC_API const char *tec_knob_word_n(tec_knobs *k, const char *name, const char *const *word, int n);
TEC_API const char *const *tec_knob_order_n(tec_knobs *k, const char *name, const char *const *loop, int n); /* permutations; n <= 5 */
#define tec_knob_choice(k, name, ...) tec_knob_choice_n((k), (name), TEC_FACTORS(__VA_ARGS__), TEC_FACTOR_COUNT(__VA_ARGS__))
#define tec_knob_word(k, name, ...) tec_knob_word_n((k), (name), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_knob_order(k, name, ...) tec_knob_order_n((k), (name), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))

/* The start of the space has this value of the choice (for words: this place in the list); otherwise it has the first one. */
TEC_API void tec_knob_start(tec_knobs *k, const char *name, int64_t value);
/* Of points with the same effect one alone is to be tried: only that one counts, the check refuses the others, and sampling makes them that one.
 *
 *     tec_knob_idle(k, "steps");                                                     // no effect here: only the value that it starts with counts
 *     tec_knob_alias(k, "place", INNER, OUTER);                                      // INNER has the effect of OUTER here, which counts
 *     tec_knob_order_groups(k, "order", (int[]){0, 0, xs[0] == 1 ? 1 : 0});          // a loop that runs once may stand anywhere
 *
 * Values are numbers of a choice, or places in a list of words. group[i] is that of the i-th name of an order: where names of different groups
 * stand towards each other has no effect here; of the orders with the same effect the first in the list counts. */
TEC_API void tec_knob_idle(tec_knobs *k, const char *name);
TEC_API void tec_knob_alias(tec_knobs *k, const char *name, int64_t value, int64_t other);
TEC_API void tec_knob_order_groups(tec_knobs *k, const char *name, const int *group);
/* The point is refused unless ok. */
TEC_API void tec_knob_require(tec_knobs *k, bool ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* All knobs are declared and all that is required is said. False: there is no schedule to rewrite, the template returns. */
TEC_API bool tec_knobs_done(tec_knobs *k);

/* Marks a loop as a word says: "serial" (nothing happens), "parallel", "vectorised", "unrolled" or a thread axis. */
TEC_API bool tec_annotate(tec_schedule *s, const char *loop, const char *word);

/* ---- spaces and points ---- */

/* template NULL: derived from the definition for this kind of target. target NULL: no limits of a device are known. */
TEC_API tec_space *tec_space_new(tec_context *cx, const tec_def *d, const char *target, tec_template *f, void *user);
TEC_API int tec_space_knobs(const tec_space *sp);
TEC_API const char *tec_space_knob_name(const tec_space *sp, int knob);
TEC_API int tec_space_knob_values(const tec_space *sp, int knob);
TEC_API double tec_space_count(const tec_space *sp); /* points, refused ones included */
TEC_API tec_point tec_space_start(const tec_space *sp); /* what is best without measuring, as far as the template knows */

/* Whether the template accepts the values; fast. reason (may be NULL) says why not. */
TEC_API bool tec_space_check(tec_context *cx, const tec_space *sp, const tec_point *p, const char **reason);
/* A point that the check accepts. The next number of the generator comes from *state alone. False: none was found. */
TEC_API bool tec_space_sample(tec_context *cx, const tec_space *sp, uint64_t *state, tec_point *out);
/* Another value for one knob, often a neighbouring one. */
TEC_API bool tec_space_mutate(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *p, tec_point *out);
/* Each knob from one of the parents. */
TEC_API bool tec_space_cross(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *a, const tec_point *b, tec_point *out);
/* The schedule of a point; a refusal is its tec_schedule_error. */
TEC_API tec_schedule *tec_space_apply(tec_context *cx, const tec_space *sp, const tec_point *p);
/* A point as JSON, and back: {"y": [10], "x": [32], "unroll": 4}. */
TEC_API const char *tec_point_text(tec_context *cx, const tec_space *sp, const tec_point *p);
TEC_API bool tec_point_parse(tec_context *cx, const tec_space *sp, const char *text, tec_point *out);

#ifdef __cplusplus
}
#endif
#endif
