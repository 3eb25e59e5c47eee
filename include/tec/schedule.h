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
 * Loops are named STAGE.AXIS and blocks as their stages. The names of new loops and blocks follow from the
 * steps alone, so that a trace means the same wherever it is replayed. The primitives are macros that
 * remember the caller's line, around functions of the same name (or NAME_n). docs/schedule.md shows the
 * loops before and after each, docs/loop-tree.md says when each is legal.
 * Lifetime: everything belongs to the context and dies with it.
 * Errors: a step that is not legal changes nothing, gives false or NULL, and records its reason in the
 *   schedule (not in the context); the first reason is kept until tec_schedule_clear. Later steps go on; a
 *   NULL name from a refused step refuses the steps that use it.
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
/* What a split does where the factors do not divide the extent, shown for 10 iterations in tiles of 4.
 * GUARD: three tiles, and a condition leaves out iterations 10 and 11. ROUND_UP: three tiles, no condition;
 * the loop really runs 12 iterations, in buffers that must have room for them. SHIFT_INWARDS: the last tile
 * begins at 6, so that iterations 6 and 7 run twice. */
typedef enum { TEC_GUARD, TEC_ROUND_UP, TEC_SHIFT_INWARDS } tec_tail;

/* The schedule without any step: one nest of loops for each stage of the definition. target: a target
 * description, "native"; NULL: steps are not checked against the limits of a device. */
TEC_API tec_schedule *tec_schedule_new(tec_context *cx, const tec_def *def, const char *target);
/* A copy that goes its own way. There is no undo: fork before a step, and go on with the fork to take it
 * back. */
TEC_API tec_schedule *tec_schedule_fork(const tec_schedule *schedule);
TEC_API const char *
tec_schedule_error(const tec_schedule *schedule); /* "FILE:LINE: step: reason"; NULL: none */
TEC_API void tec_schedule_clear(tec_schedule *schedule);
TEC_API const char *tec_schedule_tree(const tec_schedule *schedule);  /* the loop tree as text */
TEC_API const char *tec_schedule_trace(const tec_schedule *schedule); /* the steps, one a line */
/* Applies the lines of a trace, all or none; `file` is named in errors. */
TEC_API bool tec_schedule_replay(tec_schedule *schedule, const char *file, const char *trace);

/* The intrinsics that tec_tensorize looks for besides those of the target. The table stays the caller's. */
TEC_API void tec_use_intrinsics(tec_schedule *schedule, const tec_intrinsics *table);

/* Remembers the caller's line, for the error of a step that is refused. */
TEC_API tec_schedule *tec_here_schedule(tec_schedule *schedule, const char *file, int line);
#define TEC_HERE_SCHEDULE(s) tec_here_schedule((s), __FILE__, __LINE__)

#define TEC_NAMES(...) TEC_LIST(const char *const, __VA_ARGS__)
#define TEC_NAME_COUNT(...) TEC_LIST_COUNT(const char *const, __VA_ARGS__)
#define TEC_FACTORS(...) TEC_LIST(const int64_t, __VA_ARGS__)
#define TEC_FACTOR_COUNT(...) TEC_LIST_COUNT(const int64_t, __VA_ARGS__)

/* ---- primitives; `out` (may be NULL) receives names, outermost first ---- */

/* One loop becomes n nested loops, with the factors as extents, outermost first. At most one factor is
 * TEC_INFER. With factors (TEC_INFER, 4):
 *     for y in 0..32   becomes   for y.0 in 0..8 { for y.1 in 0..4 }   where y is y.0*4 + y.1 */
TEC_API bool tec_split_n(tec_schedule *s, const char *loop, tec_tail tail, const char **out,
                         const int64_t *factor, int n);
/* One loop becomes two, one after the other: for iterations 0 to point - 1, and for the rest. */
TEC_API bool tec_cut(tec_schedule *s, const char *loop, int64_t point, const char **out);
/* A cut at a symbolic place, as text: "a", "2 * n + 1". The place must be proven to lie in the loop. */
TEC_API bool tec_cut_at(tec_schedule *s, const char *loop, const char *point, const char **out);
/* Loops that stand directly inside each other, outermost first, become one; gives its name. */
TEC_API const char *tec_fuse_n(tec_schedule *s, const char *const *loop, int n);
/* The loops, of one nest, stand in the order of the list, outermost first; loops not named stay where they
 * are. */
TEC_API bool tec_reorder_n(tec_schedule *s, const char *const *loop, int n);
/* Splits two loops and brings the inner halves together: tiles of fy x fx iterations. out: the four loops
 * y.0, x.0, y.1, x.1. */
TEC_API bool tec_tile(tec_schedule *s, const char *y, const char *x, int64_t fy, int64_t fx,
                      const char **out);
/* How the iterations of a loop run: on the threads of the pool; as lanes of vector instructions; or written
 * out one after the other. The last two need a constant extent. */
TEC_API bool tec_parallel(tec_schedule *s, const char *loop);
TEC_API bool tec_vectorize(tec_schedule *s, const char *loop);
TEC_API bool tec_unroll(tec_schedule *s, const char *loop);
/* For GPUs: each iteration is one block or thread along the axis: "blockIdx.x", "threadIdx.y"; or a virtual
 * thread, "vthread": all of these run in one thread, in turns. */
TEC_API bool tec_bind(tec_schedule *s, const char *loop, const char *axis);
/* Moves a producer into a loop around its readers, where each iteration then computes just the elements that
 * the iteration reads. The reverse moves a consumer into a loop around its producer. */
TEC_API bool tec_compute_at(tec_schedule *s, const char *block, const char *loop);
TEC_API bool tec_reverse_compute_at(tec_schedule *s, const char *block, const char *loop);
/* The block disappears: its readers compute its value themselves. Refused where the program would grow to
 * more than 65,536 nodes. */
TEC_API bool tec_compute_inline(tec_schedule *s, const char *block);
/* compute_inline lets the program grow to 65,536 nodes, and this function to most_nodes: a value that is read
 * at places far apart is copied to each of them, so that a chain of such blocks grows n-fold with each. */
TEC_API bool tec_compute_inline_within(tec_schedule *s, const char *block, int64_t most_nodes);
/* The producer of the block applies the block's computation before it stores, and the block disappears. */
TEC_API bool tec_reverse_inline(tec_schedule *s, const char *block);
/* Moves a block back into a loop nest of its own, before the first nest that reads it. */
TEC_API bool tec_compute_root(tec_schedule *s, const char *block);
/* The readers read a copy of the buffer in another scope: "global", "shared", "local", ...; without readers,
 * all of them do. Gives the name of the block that copies. */
TEC_API const char *tec_cache_read_n(tec_schedule *s, const char *buffer, const char *scope,
                                     const char *const *reader, int n);
/* The block writes into a cache in the scope, and a new nest behind it copies the cache to the block's
 * buffer. Gives the name of the block that copies. */
TEC_API const char *tec_cache_write(tec_schedule *s, const char *block, const char *scope);
/* Such a cache, used and copied back in each iteration of `loop`. If `loop` is a reduction loop or stands
 * inside of one, sums go on over several iterations: each then begins by loading the buffer's values into
 * the cache. */
TEC_API const char *tec_cache_write_at(tec_schedule *s, const char *block, const char *scope,
                                       const char *loop);
/* Puts a buffer between blocks into another memory; the shape stays. */
TEC_API bool tec_set_scope(tec_schedule *s, const char *buffer, const char *scope);
/* A reduction's initial values are stored by a block of their own, directly before `loop`, no longer by the
 * reduction itself. Gives the name of the new block. */
TEC_API const char *tec_decompose_reduction(tec_schedule *s, const char *block, const char *loop);
/* Cuts a reduction into partial results that do not depend on each other, so that they can run in parallel.
 * Each iteration of the reduction loop gets a partial result of its own, in a new buffer whose dimension
 * number `axis` counts the iterations; the old block then combines the partial results:
 *     C = sum over 1024 k   becomes   C.rf[k.0] = sum over 32 k.1;   C = sum over 32 k.0 of C.rf[k.0]
 * Gives the name of the block that computes the partial results. */
TEC_API const char *tec_rfactor(tec_schedule *s, const char *loop, int axis);
/* Leaves unused space between the rows of a buffer, so that rows begin where the cache likes them. The
 * stride of dimension `dim` becomes the smallest number of elements that has room for a row and has the
 * remainder `offset` when divided by `factor`: rows of 60 elements with (16, 1) lie 65 apart. */
TEC_API bool tec_storage_align(tec_schedule *s, const char *buffer, int dim, int64_t factor, int64_t offset);
/* The loops below `loop`, and it itself, move into the block under them: one instance of the block then
 * computes a whole tile. Gives the block's name. */
TEC_API const char *tec_blockize(tec_schedule *s, const char *loop);
/* Replaces a tile by one tensor intrinsic. The tile is a loop with all that it holds, or a block that
 * tec_blockize made. Refused unless the tile computes exactly what the intrinsic's declaration says. */
TEC_API const char *tec_tensorize(tec_schedule *s, const char *loop_or_block, const char *intrinsic);
/* Says where the elements of a buffer lie. strides: as text, one for each dimension, "(36, 1)", in elements;
 * they may depend on symbols. offset: of the first element, in elements. align: of the address in bytes; 0
 * asks for that of one element. */
TEC_API bool tec_buffer_bind(tec_schedule *s, const char *buffer, const char *strides, int64_t offset,
                             int align);
/* Computes no element twice where neighbouring iterations of a serial loop need overlapping parts of a
 * buffer. If iteration y reads rows y to y + 2, the buffer shrinks to three rows that are used in turn, and
 * each iteration computes only the new row y + 2. Rows 0 and 1 are computed before the loop, by a new block;
 * gives its name. */
TEC_API const char *tec_rolling_buffer(tec_schedule *s, const char *buffer, const char *loop);
/* Iteration i of the loop asks the cache for the part of the buffer that iteration i + distance will read. */
TEC_API bool tec_prefetch(tec_schedule *s, const char *buffer, const char *loop, int distance);
/* The block stores only in the first iteration of the loops. Refused unless every iteration would store the
 * same values. */
TEC_API bool tec_store_predicate_n(tec_schedule *s, const char *block, const char *const *loop, int n);
/* For GPUs: puts loops over the named axes ("blockIdx.x", "threadIdx.x") around `loop`, and takes away the
 * loops over these axes that stand below it. All that `loop` does is then one launch of the device instead
 * of several. out: one new loop for each axis. */
TEC_API bool tec_env_threads_n(tec_schedule *s, const char *loop, const char **out, const char *const *axis,
                               int n);
/* Changes how a buffer is laid out: the element [i, j] moves to the index that the map gives for it, as in
 * "(i, j) -> (floordiv(i, 8), j, i % 8)". The new shape may have more elements than the old one. These are
 * filled with `pad`, a number as text; with NULL they are neither written nor read. */
TEC_API bool tec_transform_layout(tec_schedule *s, const char *buffer, const char *map, const char *pad);
/* Lets the n blocks of a loop work on different iterations at the same time. In step t a block of stage 0
 * works on iteration t, one of stage 1 on iteration t - 1, and so on; in a step the blocks run in the order
 * of the list:
 *     load stage 0, compute stage 1:   load 0;  load 1, compute 0;  load 2, compute 1;  ...
 * `async`: copies of stage 0 from global into shared memory run while the threads compute. */
TEC_API bool tec_pipeline_n(tec_schedule *s, const char *loop, const char *const *block, const int64_t *stage,
                            int n, bool async);
/* A pipeline of two stages: blocks that only fill the buffers of an iteration run one iteration ahead of the
 * blocks that use these buffers. */
TEC_API bool tec_double_buffer(tec_schedule *s, const char *loop, bool async);
/* A note on a loop or block for later passes, such as a target's. */
TEC_API bool tec_pragma(tec_schedule *s, const char *loop_or_block, const char *key, const tec_expr *value);

#define tec_cut(s, loop, point, out) (tec_cut)(TEC_HERE_SCHEDULE(s), (loop), (point), (out))
#define tec_cut_at(s, loop, point, out) (tec_cut_at)(TEC_HERE_SCHEDULE(s), (loop), (point), (out))
#define tec_fuse(s, ...) tec_fuse_n(TEC_HERE_SCHEDULE(s), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_reorder(s, ...)                                                                                  \
    tec_reorder_n(TEC_HERE_SCHEDULE(s), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_tile(s, y, x, fy, fx, out) (tec_tile)(TEC_HERE_SCHEDULE(s), (y), (x), (fy), (fx), (out))
#define tec_parallel(s, loop) (tec_parallel)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_vectorize(s, loop) (tec_vectorize)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_unroll(s, loop) (tec_unroll)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_bind(s, loop, axis) (tec_bind)(TEC_HERE_SCHEDULE(s), (loop), (axis))
#define tec_compute_at(s, block, loop) (tec_compute_at)(TEC_HERE_SCHEDULE(s), (block), (loop))
#define tec_reverse_compute_at(s, block, loop) (tec_reverse_compute_at)(TEC_HERE_SCHEDULE(s), (block), (loop))
#define tec_compute_inline(s, block) (tec_compute_inline)(TEC_HERE_SCHEDULE(s), (block))
#define tec_compute_inline_within(s, block, most_nodes)                                                      \
    (tec_compute_inline_within)(TEC_HERE_SCHEDULE(s), (block), (most_nodes))
#define tec_reverse_inline(s, block) (tec_reverse_inline)(TEC_HERE_SCHEDULE(s), (block))
#define tec_compute_root(s, block) (tec_compute_root)(TEC_HERE_SCHEDULE(s), (block))
#define tec_cache_read(s, buffer, scope, ...)                                                                \
    tec_cache_read_n(TEC_HERE_SCHEDULE(s), (buffer), (scope), TEC_NAMES(__VA_ARGS__),                        \
                     TEC_NAME_COUNT(__VA_ARGS__))
#define tec_cache_write(s, block, scope) (tec_cache_write)(TEC_HERE_SCHEDULE(s), (block), (scope))
#define tec_cache_write_at(s, block, scope, loop)                                                            \
    (tec_cache_write_at)(TEC_HERE_SCHEDULE(s), (block), (scope), (loop))
#define tec_set_scope(s, buffer, scope) (tec_set_scope)(TEC_HERE_SCHEDULE(s), (buffer), (scope))
#define tec_decompose_reduction(s, block, loop)                                                              \
    (tec_decompose_reduction)(TEC_HERE_SCHEDULE(s), (block), (loop))
#define tec_rfactor(s, loop, axis) (tec_rfactor)(TEC_HERE_SCHEDULE(s), (loop), (axis))
#define tec_storage_align(s, buffer, dim, factor, offset)                                                    \
    (tec_storage_align)(TEC_HERE_SCHEDULE(s), (buffer), (dim), (factor), (offset))
#define tec_blockize(s, loop) (tec_blockize)(TEC_HERE_SCHEDULE(s), (loop))
#define tec_tensorize(s, loop_or_block, intrinsic)                                                           \
    (tec_tensorize)(TEC_HERE_SCHEDULE(s), (loop_or_block), (intrinsic))
#define tec_buffer_bind(s, buffer, strides, offset, align)                                                   \
    (tec_buffer_bind)(TEC_HERE_SCHEDULE(s), (buffer), (strides), (offset), (align))
#define tec_rolling_buffer(s, buffer, loop) (tec_rolling_buffer)(TEC_HERE_SCHEDULE(s), (buffer), (loop))
#define tec_prefetch(s, buffer, loop, distance)                                                              \
    (tec_prefetch)(TEC_HERE_SCHEDULE(s), (buffer), (loop), (distance))
#define tec_store_predicate(s, block, ...)                                                                   \
    tec_store_predicate_n(TEC_HERE_SCHEDULE(s), (block), TEC_NAMES(__VA_ARGS__), TEC_NAME_COUNT(__VA_ARGS__))
#define tec_env_threads(s, loop, out, ...)                                                                   \
    tec_env_threads_n(TEC_HERE_SCHEDULE(s), (loop), (out), TEC_NAMES(__VA_ARGS__),                           \
                      TEC_NAME_COUNT(__VA_ARGS__))
#define tec_transform_layout(s, buffer, map, pad)                                                            \
    (tec_transform_layout)(TEC_HERE_SCHEDULE(s), (buffer), (map), (pad))
#define tec_pipeline(s, loop, block, stage, n, async)                                                        \
    tec_pipeline_n(TEC_HERE_SCHEDULE(s), (loop), (block), (stage), (n), (async))
#define tec_double_buffer(s, loop, async) (tec_double_buffer)(TEC_HERE_SCHEDULE(s), (loop), (async))
#define tec_pragma(s, loop_or_block, key, value)                                                             \
    (tec_pragma)(TEC_HERE_SCHEDULE(s), (loop_or_block), (key), (value))

/* ---- other macros ---- */

#define tec_split(s, loop, out, ...)                                                                         \
    tec_split_n(TEC_HERE_SCHEDULE(s), (loop), TEC_GUARD, (out), TEC_FACTORS(__VA_ARGS__),                    \
                TEC_FACTOR_COUNT(__VA_ARGS__))
#define tec_split_tail(s, loop, tail, out, ...)                                                              \
    tec_split_n(TEC_HERE_SCHEDULE(s), (loop), (tail), (out), TEC_FACTORS(__VA_ARGS__),                       \
                TEC_FACTOR_COUNT(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
