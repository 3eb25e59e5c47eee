/* base/limit.h -- limits on what is read and made, by name; base/limits.def lists them.
 *
 *     if (n > base_limit(cx, BASE_LIMIT_nodes))
 *         base_fail(cx, TEC_UNSUPPORTED, loc, "the model has %lld nodes; %s", n,
 *                   base_limit_text(cx, BASE_LIMIT_nodes));
 *
 * Lifetime: a limit belongs to the root context, and holds for all contexts below it, also those that are
 *   there already.
 * Errors: tec_context_set_limit and base_read_limits record INVALID for a name that is none and for a value
 *   that is out of range.
 * Threads: limits are set while no other thread works in a context of the same root.
 */
#ifndef BASE_LIMIT_H
#define BASE_LIMIT_H

#include "base/base.h"

typedef enum {
#define BASE_LIMIT(id, name, usual, most, what) BASE_LIMIT_##id,
#include "base/limits.def"
#undef BASE_LIMIT
    BASE_N_LIMITS
} base_limit_id;

typedef struct {
    const char *name;
    int64_t usual, most;
    const char *what;
} base_limit_row;
extern const base_limit_row base_limit_rows[BASE_N_LIMITS];

int64_t base_limit(const tec_context *cx, base_limit_id id);
/* "the limit 'nodes' is 1048576 (--limit nodes=N, tec_context_set_limit)": the end of a refusal's message. */
const char *base_limit_text(tec_context *cx, base_limit_id id);
/* The limits that were set, as "nodes=10,list=5"; base_read_limits sets those of such a text. */
const char *base_set_limits_text(tec_context *cx);
bool base_read_limits(tec_context *cx, const char *text);

#endif
