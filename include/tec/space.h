/* tec/space.h -- spaces of schedules, which a tuner searches. A template is a function that makes a
 * schedule, but leaves some choices open, such as tile sizes: its knobs. A point has one value for each
 * knob, and so stands for one schedule. The space is the set of all points.
 *
 *     static bool tiles(tec_knobs *k, tec_schedule *s, void *user)
 *     {
 *         const int64_t *y = tec_knob_split(k, "y", 960, &(tec_split_domain){.parts = 2,
 *             .policy = TEC_SPLIT_FACTORS});
 *         const int64_t *x = tec_knob_split(k, "x", 960, &(tec_split_domain){.parts = 2,
 *             .policy = TEC_SPLIT_POWERS});
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
 * The library calls a template many times: once to learn which knobs there are, then to check points, then
 * to make their schedules. Each call goes through the same steps: declare the knobs, always the same ones in
 * the same order; say with tec_knob_require which values do not go together; return if tec_knobs_done says
 * so; rewrite the schedule. Without a template, the library derives a space from the definition and the
 * target (docs/space.md).
 * Lifetime: a space is its context's and never changes; a point is a value. What is made from a point
 *   belongs to the context that the call names. Errors: a definition or template that makes no sense fails
 *   in the context; a point that does not fit is refused with a reason. Threads: any number may read one
 *   space, each with a context of its own.
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

/* One value for each knob: value[i] is the place of knob i's value in its list of values, from 0. */
typedef struct {
    int n;
    int32_t value[TEC_MAX_KNOBS];
} tec_point;

/* Gives false if a step of the schedule was refused or if tec_knob_require refused the point. */
typedef bool tec_template(tec_knobs *knobs, tec_schedule *schedule, void *user);

/* ---- declaring knobs (in a template) ---- */

typedef enum {
    TEC_SPLIT_FACTORS, /* the product of all parts is the extent */
    TEC_SPLIT_POWERS,  /* inner parts are powers of two */
    /* inner parts are factors or powers of two, or cut the extent that is left into nearly equal parts: 100
     * into 3 parts of 34 */
    TEC_SPLIT_VERBOSE,
    TEC_SPLIT_CANDIDATES /* inner parts are those of the list `candidate` */
} tec_split_policy;

/* How a loop may be split. The first part is the outermost loop: it is always TEC_INFER and follows from the
 * others, which are called the inner parts. If the extent is not known when compiling (extent 0), inner
 * parts are powers of two up to 64 or up to `most`, or those of the list. */
typedef struct {
    tec_split_policy policy;
    int parts;           /* loops that come out, 2 to TEC_MAX_PARTS */
    const int64_t *most; /* the largest value of each inner part, 0: any; NULL: no limits */
    /* n_candidates rows of parts - 1 inner parts. TEC_SPLIT_CANDIDATES has these alone; the other policies
     * have them as well. */
    const int64_t *candidate;
    int n_candidates;
    /* The inner parts that the start of the space has; they are added to the values if the policy does not
     * give them. NULL: the first value. */
    const int64_t *start;
    bool (*keep)(const int64_t *inner, int count,
                 void *user); /* false: this value is left out; NULL: none is */
    void *user;
} tec_split_domain;

/* Declares a knob and gives its value at the point: the `parts` factors for tec_split_n; a number; a word;
 * the names in some order. In the call that learns the knobs, each gives its first value. */
TEC_API const int64_t *tec_knob_split(tec_knobs *knobs, const char *name, int64_t extent,
                                      const tec_split_domain *domain);
TEC_API int64_t tec_knob_choice_n(tec_knobs *knobs, const char *name, const int64_t *value, int count);
TEC_API const char *tec_knob_word_n(tec_knobs *knobs, const char *name, const char *const *word, int count);
/* The values are all orders of the names; count <= 5. */
TEC_API const char *const *tec_knob_order_n(tec_knobs *knobs, const char *name, const char *const *loop,
                                            int count);
#define tec_knob_choice(k, name, ...)                                                                        \
    tec_knob_choice_n((k), (name), TEC_FACTORS(__VA_ARGS__), TEC_FACTOR_COUNT(__VA_ARGS__))
#define tec_knob_word(k, name, ...)                                                                          \
    tec_knob_word_n((k), (name), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_knob_order(k, name, ...)                                                                         \
    tec_knob_order_n((k), (name), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))

/* The value that a choice has at the start of the space; for words, its place in the list. Without this call
 * it is the first one. */
TEC_API void tec_knob_start(tec_knobs *knobs, const char *name, int64_t value);
/* These tell the library that different points make the same schedule, so that a tuner does not measure it
 * twice. One of such points represents them: the check refuses the others, and sampling replaces them by it.
 *
 *     // at this point the knob has no effect: the value of the start represents all of its values
 *     tec_knob_idle(k, "steps");
 *     // at this point the value INNER has the same effect as OUTER, which represents both
 *     tec_knob_alias(k, "place", INNER, OUTER);
 *     // the third loop may run only once; then it has the same effect wherever it stands
 *     tec_knob_order_groups(k, "order", (int[]){0, 0, xs[0] == 1 ? 1 : 0});
 *
 * A value is the number of a choice, or the place in a list of words. group[i] belongs to the i-th name of
 * an order. Only the order of names within a group has an effect; the first order in the list of values
 * represents those with the same effect. */
TEC_API void tec_knob_idle(tec_knobs *knobs, const char *name);
TEC_API void tec_knob_alias(tec_knobs *knobs, const char *name, int64_t value, int64_t other);
TEC_API void tec_knob_order_groups(tec_knobs *knobs, const char *name, const int *group);
/* Refuses the point unless `ok`; the text is the reason. */
TEC_API void tec_knob_require(tec_knobs *knobs, bool ok, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* To be asked after the last knob and the last requirement. False: this call only learns the knobs or checks
 * a point, there is no schedule to rewrite, and the template must return. */
TEC_API bool tec_knobs_done(tec_knobs *knobs);

/* Says how a loop runs by a word, such as the value of a knob: "parallel", "vectorised", "unrolled", or a
 * thread axis as tec_bind takes it. "serial" changes nothing. */
TEC_API bool tec_annotate(tec_schedule *schedule, const char *loop, const char *word);

/* ---- spaces and points ---- */

/* make NULL: the space is derived from the definition and the kind of target. target NULL: schedules are not
 * checked against the limits of a device. */
TEC_API tec_space *tec_space_new(tec_context *cx, const tec_def *def, const char *target, tec_template *make,
                                 void *user);
TEC_API int tec_space_knobs(const tec_space *sp);
TEC_API const char *tec_space_knob_name(const tec_space *sp, int knob);
TEC_API int tec_space_knob_values(const tec_space *sp, int knob);
TEC_API double tec_space_count(const tec_space *sp); /* points, refused ones included */
/* The point that the template believes to be best, before anything was measured. */
TEC_API tec_point tec_space_start(const tec_space *sp);

/* Whether the template accepts the values. This takes microseconds, since it stops at tec_knobs_done; a step
 * of the schedule may still be refused later. reason (may be NULL) says why not. */
TEC_API bool tec_space_check(tec_context *cx, const tec_space *sp, const tec_point *point,
                             const char **reason);
/* A random point that the check accepts. All random numbers follow from *state, which the call changes: the
 * same state gives the same point. False: none was found. */
TEC_API bool tec_space_sample(tec_context *cx, const tec_space *sp, uint64_t *state, tec_point *out);
/* point with another value for one knob; half of the time a neighbouring one, such as the next larger
 * tile. */
TEC_API bool tec_space_mutate(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *point,
                              tec_point *out);
/* Takes the value of each knob from a or from right. */
TEC_API bool tec_space_cross(tec_context *cx, const tec_space *sp, uint64_t *state, const tec_point *left,
                             const tec_point *right, tec_point *out);
/* Makes the schedule of a point. If a step is refused, tec_schedule_error says so. */
TEC_API tec_schedule *tec_space_apply(tec_context *cx, const tec_space *sp, const tec_point *point);
/* A point as JSON, and back: {"y": [10], "x": [32], "unroll": 4}. */
TEC_API const char *tec_point_text(tec_context *cx, const tec_space *sp, const tec_point *point);
TEC_API bool tec_point_parse(tec_context *cx, const tec_space *sp, const char *text, tec_point *out);

#ifdef __cplusplus
}
#endif
#endif
