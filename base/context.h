/* base/context.h -- inside the room: what a context holds.
 *
 *     base_chunk *top = cx->arena.top;
 *
 * Lifetime: tec_context_new or base_child to tec_context_free. The error text lies outside the arena, so that
 *   it survives base_reset and base_arena_release.
 * Errors, Threads: see tec/base.h.
 */
#ifndef BASE_CONTEXT_H
#define BASE_CONTEXT_H

#include <locale.h>
#include <stdatomic.h>

#include "base/guard.h"
#include "base/limit.h"

typedef struct base_chunk base_chunk;

/* `top` is the chunk in use, older ones behind it; `spare` waits for reuse; `large` holds allocations of a
 * chunk each, newest first. */
typedef struct {
    base_chunk *top, *spare, *large;
    size_t handed_out;
} base_arena;

void base_arena_free(base_arena *arena);
void base_arena_reset(base_arena *arena);

/* What ends the calls of a root context and of all contexts below it, and what they refuse. Times are
 * nanoseconds of the monotonic clock. */
typedef struct {
    atomic_llong cancelled;      /* when; 0: not */
    atomic_llong planned;        /* base_plan_failure */
    atomic_llong serial;         /* the last one given to a guard or to something held */
    int64_t started, deadline;   /* 0: no deadline */
    double seconds;              /* from started to deadline */
    int64_t most[BASE_N_LIMITS]; /* limits.def; 0: the usual value */
} base_limits;

struct tec_context {
    base_arena arena;
    tec_context *parent; /* NULL: a root */
    base_held as_held;   /* of a child: its entry in the parent's list */
    base_held *held;     /* newest first */
    base_guard *guard;   /* the innermost */
    int patience;        /* allocations until the next look at the limits */
    base_limits *limits; /* the root's own_limits */
    base_limits own_limits;
    void (*last_resort)(tec_context *root);
    base_loc where;
    tec_status status;
    bool gave_up;       /* a guard of it was jumped to, and the error is still there */
    bool noting;        /* the latest base_fail was recorded, so its notes are wanted */
    char *error;        /* malloc, or in_place; NULL where there is none */
    char in_place[200]; /* the text of an error for which there may be no memory */
    tec_log_fn *log;
    void *log_user;
    int log_level;
    const char *cuda; /* a child has its parent's */
#ifdef TEC_DEBUG
    base_plant_id plant; /* the fault that is switched on; a child has its parent's */
#endif
};

/* The `release` of a child context, by which a list of what is held tells children from other things. */
void base_free_child(void *cx);
#define ERROR_PREFIX "error: " /* of an error without a place */

/* Records an error without any allocation, if it is the first. */
void base_fail_in_place(tec_context *cx, tec_status status, const char *fmt, va_list args) BASE_PRINTF(3, 0);

/* vsnprintf that writes numbers as C does, whatever the locale of the process. */
int base_print(char *buffer, size_t size, const char *fmt, va_list args) BASE_PRINTF(3, 0);

#endif
