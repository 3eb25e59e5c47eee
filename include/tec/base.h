/* tec/base.h -- status codes, the compile context, its errors and its log.
 *
 *     tec_context *cx = tec_context_new();
 *     ... constructors; each gives NULL when it, or an operand, went wrong ...
 *     if (tec_context_status(cx) != TEC_OK)
 *         fprintf(stderr, "%s\n", tec_context_error(cx));
 *     tec_context_free(cx);
 *
 * Lifetime: everything that is built in a context lives in it and dies with it.
 * Errors: the context keeps the first message of a chain, with its notes; later ones are dropped until it is cleared.
 *   The compile-time side ends the process when the system has no memory left; the run-time side reports it.
 * Threads: one context, one thread. What was finished in it may be read by many.
 */
#ifndef TEC_BASE_H
#define TEC_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TEC_API
#else
#define TEC_API __attribute__((visibility("default")))
#endif

/* Ownership words, worn only by prototypes that deal in run-time objects. GIVE: the caller owns the result. TAKE: the
 * callee owns the argument from now on. KEEP: the callee adds a reference of its own. */
#define TEC_GIVE
#define TEC_TAKE
#define TEC_KEEP

/* name, what it says to a reader */
#define TEC_STATUS_LIST(X)                                                    \
    X(OK, "ok")                                                               \
    X(INVALID, "invalid input")              /* the user's mistake */         \
    X(UNSUPPORTED, "not supported")          /* true input, beyond us */      \
    X(IO, "input or output failed")          /* the world: files, network */  \
    X(NO_MEMORY, "out of memory")                                             \
    X(DEVICE, "device failed")                                                \
    X(TIMEOUT, "timed out")                                                   \
    X(INTERNAL, "internal error")            /* our bug */

typedef enum {
#define X(name, text) TEC_##name,
    TEC_STATUS_LIST(X)
#undef X
} tec_status;

TEC_API const char *tec_status_text(tec_status status);

/* The version of the library, as "1.2.3". */
TEC_API const char *tec_version(void);

typedef struct tec_context tec_context;

TEC_API tec_context *tec_context_new(void);
TEC_API void tec_context_free(tec_context *cx);

/* The first error since the context was made or cleared; TEC_OK and NULL when there is none. The text reads
 * "FILE:LINE: error: what" with one line for each note, without a final newline; it lives until the next clear. */
TEC_API tec_status tec_context_status(const tec_context *cx);
TEC_API const char *tec_context_error(const tec_context *cx);
TEC_API void tec_context_clear(tec_context *cx);

/* Progress and decisions. Level 1: decisions and timings; 2: schedules; 3: IR after each pass; 4: generated code. */
typedef void tec_log_fn(void *user, int level, const char *text);
TEC_API void tec_context_set_log(tec_context *cx, tec_log_fn *fn, void *user, int level);

/* Remembers where the caller stands, for the errors of the next constructor; gives the context back. The public
 * constructors are macros that call this with __FILE__ and __LINE__. `file` must outlive the context. */
TEC_API tec_context *tec_here(tec_context *cx, const char *file, int line);
#define TEC_HERE(cx) tec_here((cx), __FILE__, __LINE__)

/* An error of the run-time side, which has no context: the caller's own struct, filled by the first failure. */
typedef struct {
    tec_status status;
    char text[500];
} tec_error;

#ifdef __cplusplus
}
#endif
#endif
