/* space/gpu_banks.h -- inside the room: the banks of shared memory that a warp asks for words.
 *
 *     gpu_tile tile = {.n = 2, .extent = {64, 16}, .bytes = 4, .step = {{0, 0}, {1, 0}, ...}};  S[x, k]
 *     gpu_spread s = space_gpu_spread(&tile);         dim 0, offset 1: rows lie 17 elements apart
 *
 * Shared memory has 32 banks; word i is in bank i % 32. A bank gives one word at a time to a warp, so that
 * threads that want different words of one bank wait for each other.
 */
#ifndef SPACE_GPU_BANKS_H
#define SPACE_GPU_BANKS_H

#include "ir/ir.h"

enum { SPACE_WARP = 32 };

/* A box of an operand in shared memory, and how far from the first thread's element those of the threads of
 * a warp lie in each dimension. */
typedef struct {
    int n, bytes; /* dimensions; of an element */
    int64_t extent[IR_MAX_DIMS];
    int64_t step[SPACE_WARP][IR_MAX_DIMS];
} gpu_tile;

/* Neighbours in `dim` lie a multiple of `factor` and `offset` apart; dim -1: the tile is compact. `waits`
 * says how often threads still wait: 16 for each turn of a read, 1 for each turn of the copy. */
typedef struct {
    int dim;
    int64_t factor, offset, elements;
    int waits;
} gpu_spread;

/* The layout of the tile in which threads wait least, and of these the smallest. */
gpu_spread space_gpu_spread(const gpu_tile *tile);

#endif
