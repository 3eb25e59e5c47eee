/* tests/cuda/emulator/counts.h -- counts what the threads of a warp ask memory for together: transactions of
 * global memory, conflicts of banks in shared memory.
 *
 *     counts_touch(thread, pc, address, 4, COUNTS_GLOBAL);      // as the code of each thread runs
 *     counts_block(n);                                          // its n threads have ended
 *     counts_launch("k_0");                                     // appends a line to $TEC_EMULATED_COUNTS
 *
 * The k-th access of one instruction by each thread of a warp is one request. A request of global memory
 * takes a transaction for each 32 bytes that it touches; `fewest` is how many its bytes need at least. A
 * request of shared memory takes one pass if no two threads want different words of one of the 32 banks
 * (words of 4 bytes, in turn); each further pass is a conflict. Threads that access 8 or 16 bytes take turns
 * by halves and quarters of a warp.
 *
 * The line: kernel, requests / transactions / fewest of global memory, requests / conflicts of shared memory.
 */
#ifndef TESTS_CUDA_EMULATOR_COUNTS_H
#define TESTS_CUDA_EMULATOR_COUNTS_H

#include <stdint.h>

enum { COUNTS_GLOBAL, COUNTS_SHARED };

int counts_wanted(void); /* whether $TEC_EMULATED_COUNTS is set */
void counts_touch(int thread, const void *pc, uintptr_t address, int bytes, int space);
void counts_block(int threads);
void counts_launch(const char *kernel);

#endif
