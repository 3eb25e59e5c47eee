/* tec/schedule.h -- schedules: how a definition is computed, as checked rewrites of its loop tree.
 *
 *     tec_schedule *s = tec_schedule_new(cx, def, "native");
 *     const char *y[2], *x[2];
 *     tec_split(s, "C.y", y, TEC_INFER, 12);
 *     tec_split(s, "C.x", x, TEC_INFER, 32);
 *     tec_reorder(s, y[0], x[0], "C.k", y[1], x[1]);
 *     tec_vectorize(s, x[1]);
 *     if (tec_schedule_error(s)) puts(tec_schedule_error(s));
 *     puts(tec_schedule_tree(s));
 *
 * Loops are named STAGE.AXIS, blocks as their stages; what a step makes is named by rule, so that a trace means the same
 * everywhere. The primitives are macros around functions of the same name (or NAME_n), which remember the caller's line.
 * docs/loop-tree.md says what each does and when it is legal.
 * Lifetime: everything belongs to the context and dies with it.
 * Errors: a step that is not legal changes nothing, gives false or NULL, and records its reason in the schedule (not in the
 *   context); the first reason is kept until tec_schedule_clear. Later steps go on; a NULL name from a refused step refuses the
 *   steps that use it.
 * Threads: one schedule, one thread.
 */
#ifndef TEC_SCHEDULE_H
#define TEC_SCHEDULE_H

#include <stdbool.h>

#include "tec/te.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tec_schedule tec_schedule;

#define TEC_INFER (-1) /* a factor of split that follows from the others */
typedef enum { TEC_GUARD, TEC_ROUND_UP, TEC_SHIFT_INWARDS } tec_tail;

/* The default tree of a definition. target: a target description, or NULL: no limits of a device are known. */
TEC_API tec_schedule *tec_schedule_new(tec_context *cx, const tec_def *d, const char *target);
/* An independent continuation; to undo, go on with an earlier fork. */
TEC_API tec_schedule *tec_schedule_fork(const tec_schedule *s);
TEC_API const char *tec_schedule_error(const tec_schedule *s); /* "FILE:LINE: step: reason"; NULL: none */
TEC_API void tec_schedule_clear(tec_schedule *s);
TEC_API const char *tec_schedule_tree(const tec_schedule *s);  /* the loop tree as text */
TEC_API const char *tec_schedule_trace(const tec_schedule *s); /* the steps, one a line */
/* Applies the lines of a trace, all or none; `file` is named in errors. */
TEC_API bool tec_schedule_replay(tec_schedule *s, const char *file, const char *trace);

/* ---- primitives; `out` (may be NULL) receives names, outermost first ---- */

TEC_API bool tec_split_n(tec_schedule *s, const char *loop, tec_tail tail, const char **out, const int64_t *factor, int n);
TEC_API bool tec_cut(tec_schedule *s, const char *loop, int64_t point, const char **out); /* two loops, one after the other */
TEC_API const char *tec_fuse_n(tec_schedule *s, const char *const *loop, int n);
TEC_API bool tec_reorder_n(tec_schedule *s, const char *const *loop, int n);
TEC_API bool tec_tile(tec_schedule *s, const char *y, const char *x, int64_t fy, int64_t fx,
                      const char **out); /* y.0 x.0 y.1 x.1 */
TEC_API bool tec_parallel(tec_schedule *s, const char *loop);
TEC_API bool tec_vectorize(tec_schedule *s, const char *loop);
TEC_API bool tec_unroll(tec_schedule *s, const char *loop);
TEC_API bool tec_bind(tec_schedule *s, const char *loop, const char *axis); /* "blockIdx.x", "threadIdx.y", "vthread" */
TEC_API bool tec_compute_at(tec_schedule *s, const char *block, const char *loop);
TEC_API bool tec_reverse_compute_at(tec_schedule *s, const char *block, const char *loop);
TEC_API bool tec_compute_inline(tec_schedule *s, const char *block);
TEC_API bool tec_reverse_inline(tec_schedule *s, const char *block);
TEC_API bool tec_compute_root(tec_schedule *s, const char *block);
/* The copy block. scope: "global", "shared", "local", ...; no readers: all of them. */
TEC_API const char *tec_cache_read_n(tec_schedule *s, const char *buffer, const char *scope, const char *const *reader, int n);
TEC_API const char *tec_cache_write(tec_schedule *s, const char *block, const char *scope);
/* The same in each iteration of a loop; under reduction loops the cache takes up what earlier iterations left. */
TEC_API const char *tec_cache_write_at(tec_schedule *s, const char *block, const char *scope, const char *loop);
TEC_API bool tec_set_scope(tec_schedule *s, const char *buffer, const char *scope);
TEC_API const char *tec_decompose_reduction(tec_schedule *s, const char *block, const char *loop); /* the init block */
/* The block of the partial results, one for each iteration of a reduction loop, in a buffer with dimension `axis` for it. */
TEC_API const char *tec_rfactor(tec_schedule *s, const char *loop, int axis);
/* The stride of the dimension becomes the least that has room and is `offset` more than a multiple of `factor`. */
TEC_API bool tec_storage_align(tec_schedule *s, const char *buffer, int dim, int64_t factor, int64_t offset);
/* All that runs below the loop becomes one instance of its block; its name. */
TEC_API const char *tec_blockize(tec_schedule *s, const char *loop);
/* The same, written as a tensor intrinsic: one of the table that the schedule uses (it stays the caller's), or of the hardware's. Also takes a
 * block that tec_blockize made. Refused unless the loops do exactly what the intrinsic means. */
TEC_API void tec_use_intrinsics(tec_schedule *s, const tec_intrinsics *table);
TEC_API const char *tec_tensorize(tec_schedule *s, const char *loop_or_block, const char *intrinsic);
/* Strides as text, "(36, 1)", over symbols; an offset in elements; an alignment of the address in bytes, 0: that of an element. */
TEC_API bool tec_buffer_bind(tec_schedule *s, const char *buffer, const char *strides, int64_t offset, int align);
/* The serial loop keeps the window of the buffer that its iterations share: each computes what is new in its own. The block that computes
 * what the first one needs, ahead of the loop. */
TEC_API const char *tec_rolling_buffer(tec_schedule *s, const char *buffer, const char *loop);
/* Each iteration of the loop asks for what the one `distance` later reads of the buffer. */
TEC_API bool tec_prefetch(tec_schedule *s, const char *buffer, const char *loop, int distance);
/* The block stores in the first iteration of the loops only; refused unless all iterations store the same. */
TEC_API bool tec_store_predicate_n(tec_schedule *s, const char *block, const char *const *loop, int n);
/* Loops over the axes, "blockIdx.x", around a loop in place of those below it: all that runs below is one launch. A loop for each axis. */
TEC_API bool tec_env_threads_n(tec_schedule *s, const char *loop, const char **out, const char *const *axis, int n);
/* Element [i, j] lies at the index that the map gives: "(i, j) -> (floordiv(i, 8), j, i % 8)". What the map does not give is filled
 * with `pad`, a number as text (NULL: it stays undefined, and unread). */
TEC_API bool tec_transform_layout(tec_schedule *s, const char *buffer, const char *map, const char *pad);
/* In a step of the loop its n blocks run in this order, each for the iteration that its stage lies behind. `async`: copies of stage 0
 * from global into shared memory run beside the threads. */
TEC_API bool tec_pipeline_n(tec_schedule *s, const char *loop, const char *const *block, const int64_t *stage, int n, bool async);
TEC_API bool tec_double_buffer(tec_schedule *s, const char *loop, bool async); /* what fills the buffers of an iteration runs one ahead */
TEC_API bool tec_pragma(tec_schedule *s, const char *loop_or_block, const char *key, const tec_expr *value);

/* ---- the caller's line ---- */

TEC_API tec_schedule *tec_here_schedule(tec_schedule *s, const char *file, int line);
#define TEC_HERE_SCHEDULE(s) tec_here_schedule((s), __FILE__, __LINE__)

#define TEC_NAMES(...)                                                                                                           \
    (const char *const[])                                                                                                        \
    {                                                                                                                            \
        __VA_ARGS__                                                                                                              \
    }
#define TEC_NAME_COUNT(...) ((int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))
#define TEC_FACTORS(...)                                                                                                         \
    (const int64_t[])                                                                                                            \
    {                                                                                                                            \
        __VA_ARGS__                                                                                                              \
    }
#define TEC_FACTOR_COUNT(...) ((int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

#define tec_split(s, loop, out, ...)                                                                                             \
    tec_split_n(TEC_HERE_SCHEDULE(s), (loop), TEC_GUARD, (out), TEC_FACTORS(__VA_ARGS__), TEC_FACTOR_COUNT(__VA_ARGS__))
#define tec_split_tail(s, loop, tail, out, ...)                                                                                  \
    tec_split_n(TEC_HERE_SCHEDULE(s), (loop), (tail), (out), TEC_FACTORS(__VA_ARGS__), TEC_FACTOR_COUNT(__VA_ARGS__))
#define tec_cut(s, loop, point, out) (tec_cut)(TEC_HERE_SCHEDULE(s), (loop), (point), (out))
#define tec_fuse(s, ...) tec_fuse_n(TEC_HERE_SCHEDULE(s), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_reorder(s, ...) tec_reorder_n(TEC_HERE_SCHEDULE(s), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_tile(s, y, x, fy, fx, out) (tec_tile)(TEC_HERE_SCHEDULE(s), (y), (x), (fy), (fx), (out))
#define tec_parallel(s, loop) (tec_parallel)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_vectorize(s, loop) (tec_vectorize)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_unroll(s, loop) (tec_unroll)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_bind(s, loop, axis) (tec_bind)(TEC_HERE_SCHEDULE(s), (loop), (axis))
#define tec_compute_at(s, block, loop) (tec_compute_at)(TEC_HERE_SCHEDULE(s), (block), (loop))
#define tec_reverse_compute_at(s, block, loop) (tec_reverse_compute_at)(TEC_HERE_SCHEDULE(s), (block), (loop))
#define tec_compute_inline(s, block) (tec_compute_inline)(TEC_HERE_SCHEDULE(s), (block))
#define tec_reverse_inline(s, block) (tec_reverse_inline)(TEC_HERE_SCHEDULE(s), (block))
#define tec_compute_root(s, block) (tec_compute_root)(TEC_HERE_SCHEDULE(s), (block))
#define tec_cache_read(s, buffer, scope, ...)                                                                                    \
    tec_cache_read_n(TEC_HERE_SCHEDULE(s), (buffer), (scope), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_cache_write(s, block, scope) (tec_cache_write)(TEC_HERE_SCHEDULE(s), (block), (scope))
#define tec_cache_write_at(s, block, scope, loop) (tec_cache_write_at)(TEC_HERE_SCHEDULE(s), (block), (scope), (loop))
#define tec_set_scope(s, buffer, scope) (tec_set_scope)(TEC_HERE_SCHEDULE(s), (buffer), (scope))
#define tec_decompose_reduction(s, block, loop) (tec_decompose_reduction)(TEC_HERE_SCHEDULE(s), (block), (loop))
#define tec_rfactor(s, loop, axis) (tec_rfactor)(TEC_HERE_SCHEDULE(s), (loop), (axis))
#define tec_storage_align(s, buffer, dim, factor, offset) (tec_storage_align)(TEC_HERE_SCHEDULE(s), (buffer), (dim), (factor), (offset))
#define tec_blockize(s, loop) (tec_blockize)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_tensorize(s, place, intrinsic) (tec_tensorize)(TEC_HERE_SCHEDULE(s), (place), (intrinsic))
#define tec_buffer_bind(s, buffer, strides, offset, align) (tec_buffer_bind)(TEC_HERE_SCHEDULE(s), (buffer), (strides), (offset), (align))
#define tec_rolling_buffer(s, buffer, loop) (tec_rolling_buffer)(TEC_HERE_SCHEDULE(s), (buffer), (loop))
#define tec_prefetch(s, buffer, loop, distance) (tec_prefetch)(TEC_HERE_SCHEDULE(s), (buffer), (loop), (distance))
#define tec_store_predicate(s, block, ...)                                                                                       \
    tec_store_predicate_n(TEC_HERE_SCHEDULE(s), (block), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_env_threads(s, loop, out, ...)                                                                                       \
    tec_env_threads_n(TEC_HERE_SCHEDULE(s), (loop), (out), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_transform_layout(s, buffer, map, pad) (tec_transform_layout)(TEC_HERE_SCHEDULE(s), (buffer), (map), (pad))
#define tec_pipeline(s, loop, block, stage, n, async) tec_pipeline_n(TEC_HERE_SCHEDULE(s), (loop), (block), (stage), (n), (async))
#define tec_double_buffer(s, loop, async) (tec_double_buffer)(TEC_HERE_SCHEDULE(s), (loop), (async))
#define tec_pragma(s, place, key, value) (tec_pragma)(TEC_HERE_SCHEDULE(s), (place), (key), (value))

#ifdef __cplusplus
}
#endif
#endif
