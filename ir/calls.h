/* ir/calls.h -- calls and attributes that mean something to every room: threads that wait for each other, and
 * asynchronous copies.
 *
 *     ir_evaluate(cx, ir_call(cx, ..., IR_CALL_BARRIER, ...))       // evaluate tec.barrier("shared")
 */
#ifndef IR_CALLS_H
#define IR_CALLS_H

#include "ir/ir.h"

/* The barrier between the threads of one block: evaluate tec.barrier("shared"). "shared" orders accesses to
 * shared memory, "global" those to global memory as well; both wait for all threads of the block. "warp"
 * waits for 32 threads, and orders everything between them. */
#define IR_CALL_BARRIER "tec.barrier"

/* The value that the thread at the place p ^ mask of the warp gives, where p is the caller's: all of a let,
 * `let other = call<f32> tec.shuffle_xor(x, mask)`. Both threads have to come to it together. */
#define IR_CALL_SHUFFLE "tec.shuffle_xor"

/* The value that the thread `lane` of the caller's warp gives, counted modulo 32: all of a let,
 * `let other = call<f32> tec.shuffle(x, lane)`. The lane may differ from thread to thread. All threads of the
 * warp have to come to it together. */
#define IR_CALL_SHUFFLE_FROM "tec.shuffle"

/* Stores to shared memory inside `attribute async_copy(1)` begin a copy. `evaluate tec.async_commit()` makes
 * one group of those that the thread began since the last one; `evaluate tec.async_wait(n)` waits for all but
 * its n last groups. Until then nobody may touch the elements; other threads see them after a barrier behind
 * that. */
#define IR_ASYNC_COPY "async_copy"
#define IR_CALL_COMMIT "tec.async_commit"
#define IR_CALL_WAIT "tec.async_wait"

#endif
