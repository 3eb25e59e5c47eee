/* base/guard.h -- leaving a call from its depths: out of memory, cancelled, past its deadline.
 *
 *     const char *tec_file_text(tec_context *cx, const char *path)
 *     {
 *         base_held file;
 *
 *         BASE_GUARD(cx, NULL);                        // whatever gives up below makes this call return NULL
 *         FILE *f = fopen(path, "r");
 *         base_hold(cx, &file, close_file, f);         // giving up closes f first
 *         const char *text = read_all(cx, f);          // allocates: may give up
 *         base_drop(&file);                            // closes f now
 *         return text;
 *     }
 *
 * Every allocation of a context may give up. Giving up goes to the innermost guard of the context, or else to
 * that of its parent, and so on. It records the error there, releases all that this context and those below
 * it have come to hold since the guard was set (a context holds its children, so that scratch contexts go
 * too), and jumps to the guard. So a function that has anything besides memory of contexts while it allocates
 * holds it, and a lock is never held while something allocates. A guard is a local of the function that sets
 * it, and ends with the function.
 *
 * Lifetime: a base_held is the holder's, usually a local, and lies still until it is dropped or kept.
 * Errors: NO_MEMORY, CANCELLED, TIMEOUT. What the call was changing is then incomplete: its context may be
 *   asked for the error and freed.
 * Threads: a jump stays in its thread: a thread that is given a child context sets a guard on it before it
 *   allocates. tec_context_cancel alone may be called by any thread.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <setjmp.h>

#include "base/base.h"

typedef struct base_held {
    struct base_held *older, *newer;
    tec_context *cx; /* NULL: nothing is held */
    int64_t serial;  /* later ones are greater, guards included */
    void (*release)(void *what);
    void *what;
} base_held;

void base_hold(tec_context *cx, base_held *held, void (*release)(void *what), void *what);
void base_drop(base_held *held); /* releases it */
void base_keep(base_held *held); /* somebody else has it from now on */

typedef struct base_guard {
    jmp_buf jump;
    tec_context *cx;          /* NULL: not set */
    struct base_guard *outer; /* of the same context */
    int64_t serial;
} base_guard;

/* The rest of the function is guarded; what follows `context` is returned when something gives up, and at
 * once where the context is NULL. The function's variables are undefined after a jump, so the value may not
 * depend on any that is changed after this line. */
#define BASE_GUARD(context, ...)                                                                             \
    base_guard guard_ __attribute__((cleanup(base_unguard))) = {.cx = NULL};                                 \
    if (!base_guarded((context), &guard_) || setjmp(guard_.jump))                                            \
    return __VA_ARGS__

bool base_guarded(tec_context *cx, base_guard *guard); /* true where there is a context */
void base_unguard(base_guard *guard);

/* Gives up: the error is recorded, what is held released, and the guard jumped to. Never returns. */
_Noreturn void base_give_up(tec_context *cx, tec_status status, const char *fmt, ...) BASE_PRINTF(3, 4);
_Noreturn void base_no_memory(tec_context *cx, size_t size);
/* Gives up again where a guard of cx has been jumped to: after a callback of the user's, which is returned
 * from and not jumped over. */
void base_pass_on(tec_context *cx);

/* Gives up where the context was cancelled or its deadline has passed. Allocating does this every few hundred
 * times; what computes long without allocating, or waits, calls it a hundred times a second or more often. */
void base_check(tec_context *cx);
/* How long something may wait before it looks again, in milliseconds. */
enum { BASE_LOOK_MS = 20 };

/* For programs of our own, which set no guards: called where nothing guards, with the error in the root
 * context; it ends the process. */
void base_set_last_resort(tec_context *root, void (*end)(tec_context *root));

/* ---- memory outside the arenas, and tests of running out ---- */

/* Zeroed, and freed with free; gives up where there is no memory. */
void *base_calloc(tec_context *cx, size_t n, size_t size);

/* Whether memory may be had now: takes part in the failures that tests plan. */
bool base_may_allocate(tec_context *cx);
/* The n-th allocation from now on of the root context and all below it fails, once (1: the next); 0: none.
 * Chunks of arenas count, and what comes from base_calloc; in builds with TEC_DEBUG each piece of an arena
 * counts too. Any thread may be the one that fails. For tests. */
void base_plan_failure(tec_context *root, int64_t n);
/* How many allocations are left until the planned one; 0 or less: it has failed. */
int64_t base_failure_left(const tec_context *root);

#endif
