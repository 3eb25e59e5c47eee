/* base/context.h -- the context's inside; for the files of base/ alone.
 *
 *     base_chunk *top = cx->arena.top;
 *
 * Lifetime: tec_context_new or base_child to tec_context_free. The error text lies outside the arena, so that it survives
 *   base_reset and base_arena_release.
 * Errors, Threads: see tec/base.h.
 */
#ifndef BASE_CONTEXT_H
#define BASE_CONTEXT_H

#include <locale.h>

#include "base/base.h"

typedef struct base_chunk base_chunk;

/* `top` is the chunk in use, older ones behind it; `spare` waits for reuse; `large` holds allocations of a chunk each,
 * newest first. */
typedef struct {
    base_chunk *top, *spare, *large;
    size_t handed_out;
} base_arena;

void base_arena_free(base_arena *arena);
void base_arena_reset(base_arena *arena);

struct tec_context {
    base_arena arena;
    base_loc where;
    tec_status status;
    bool noting; /* the latest base_fail was recorded, so its notes are wanted */
    char *error; /* malloc; NULL where there is none */
    tec_log_fn *log;
    void *log_user;
    int log_level;
#ifdef TEC_DEBUG
    base_plant_id plant; /* the fault that is switched on; a child has its parent's */
#endif
};

/* vsnprintf that writes numbers as C does, whatever the locale of the process. */
int base_print(char *buffer, size_t size, const char *fmt, va_list args) BASE_PRINTF(3, 0);

#endif
