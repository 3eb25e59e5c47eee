/* tec/base.h -- status codes, the compile context, its errors and its log.
 *
 *     tec_context *cx = tec_context_new();
 *     ... constructors; each gives NULL when it, or an operand, went wrong ...
 *     if (tec_context_status(cx) != TEC_OK)
 *         fprintf(stderr, "%s\n", tec_context_error(cx));
 *     tec_context_free(cx);
 *
 * Lifetime: everything that is built in a context lives in it and dies with it.
 * Errors: the context keeps the first message of a chain, with its notes; later ones are dropped until it is
 *   cleared. After NO_MEMORY, CANCELLED and TIMEOUT what the call was making or changing is incomplete: ask
 *   the context for its error and free it.
 * Threads: one context, one thread. What was finished in it may be read by many.
 */
#ifndef TEC_BASE_H
#define TEC_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/dlpack.h"

/* TEC_LIST makes an array of its arguments and evaluates each of them once; TEC_LIST_COUNT is their number.
 * In C++ the array lives until the end of the whole expression: pass the list to a call directly. */
#ifdef __cplusplus
#include <initializer_list>
template <int N> struct tec_list_size {
    char bytes[N + 1];
};
template <class... T> tec_list_size<sizeof...(T)> tec_measure_list(T...);
#define TEC_LIST(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#define TEC_LIST_COUNT(type, ...) ((int)sizeof(tec_measure_list(__VA_ARGS__).bytes) - 1)
#else
#define TEC_LIST(type, ...) ((type[]){__VA_ARGS__})
#define TEC_LIST_COUNT(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TEC_API
#else
#define TEC_API __attribute__((visibility("default")))
#endif

/* Who owns a run-time object; these words expand to nothing. GIVE: the caller owns the result. TAKE: the
 * callee owns the argument from now on. KEEP: the callee adds a reference of its own. */
#define TEC_GIVE
#define TEC_TAKE
#define TEC_KEEP

/* the name, and the text of tec_status_text */
#define TEC_STATUS_LIST(X)                                                                                   \
    X(OK, "ok")                                                                                              \
    X(INVALID, "invalid input")     /* the user's mistake */                                                 \
    X(UNSUPPORTED, "not supported") /* valid input that tec does not support */                              \
    X(IO, "input or output failed") /* files, network */                                                     \
    X(NO_MEMORY, "out of memory")                                                                            \
    X(DEVICE, "device failed")                                                                               \
    X(TIMEOUT, "timed out")                                                                                  \
    X(INTERNAL, "internal error") /* a bug of tec */                                                         \
    X(CANCELLED, "cancelled")                                                                                \
    X(CRASHED, "crashed")          /* a process, by a signal */                                              \
    X(PROTOCOL, "protocol broken") /* bytes that mean nothing */                                             \
    X(DENIED, "access denied")     /* a key, or what it may do */                                            \
    X(REFUSED, "refused")          /* by the other side, now */                                              \
    X(LOST, "connection lost")

typedef enum {
#define X(name, text) TEC_##name,
    TEC_STATUS_LIST(X)
#undef X
} tec_status;

TEC_API const char *tec_status_text(tec_status status);

/* The version of the library, as "1.2.3". */
TEC_API const char *tec_version(void);

typedef struct tec_context tec_context;

/* NULL: out of memory. */
TEC_API tec_context *tec_context_new(void);
TEC_API void tec_context_free(tec_context *cx);

/* The first error since the context was made or cleared; TEC_OK and NULL when there is none. The text reads
 * "FILE:LINE: error: what" with one line for each note, without a final newline; it lives until the next
 * clear. */
TEC_API tec_status tec_context_status(const tec_context *cx);
TEC_API const char *tec_context_error(const tec_context *cx);
TEC_API void tec_context_clear(tec_context *cx);

/* Both end long calls early (compiling, building, importing, searching). The call that is under way, or else
 * the next one, fails with CANCELLED or TIMEOUT and leaves no file, thread or lock behind. A call notices a
 * cancel or a deadline within 100 ms; docs/embedding.md lists the exceptions. tec_context_cancel may be
 * called by any thread, and the context stays cancelled. tec_context_set_deadline is called by the thread
 * that uses the context: the deadline is so many seconds from now and holds for all calls that follow; 0 or
 * less: none. */
TEC_API void tec_context_cancel(tec_context *cx);
TEC_API void tec_context_set_deadline(tec_context *cx, double seconds);

/* Limits on what is read and made, so that a damaged or hostile input does not take hours or all memory.
 * docs/limits.md lists them; an input that is refused for a limit names it. The limit holds for all calls
 * that follow, in all contexts of the calls. False, with an error: there is no limit of that name, or the
 * value is out of its range. */
TEC_API bool tec_context_set_limit(tec_context *cx, const char *name, int64_t value);
/* The limit's value; 0: there is no limit of that name. */
TEC_API int64_t tec_context_limit(const tec_context *cx, const char *name);
/* The k-th limit's name, k from 0; NULL behind the last. */
TEC_API const char *tec_limit_name(int k);
/* What a limit counts; NULL: there is no limit of that name. */
TEC_API const char *tec_limit_help(const char *name);

/* Progress and decisions. Level 1: decisions and timings; 2: schedules; 3: IR after each pass; 4: generated
 * code. */
typedef void tec_log_fn(void *user, int level, const char *text);
TEC_API void tec_context_set_log(tec_context *cx, tec_log_fn *fn, void *user, int level);

/* The folder of NVRTC (libnvrtc.so.*, also in its lib64/ or lib/), which compiling for CUDA loads; borrowed
 * for as long as the context lives. NULL: where the system's loader looks, then /usr/local/cuda. */
TEC_API void tec_context_set_cuda(tec_context *cx, const char *folder);

/* Remembers the caller's file and line for the error of the next constructor, and gives the context back. The
 * public constructors are macros that call this function with __FILE__ and __LINE__. `file` must outlive the
 * context. */
TEC_API tec_context *tec_here(tec_context *cx, const char *file, int line);
#define TEC_HERE(cx) tec_here((cx), __FILE__, __LINE__)

/* An error of the runtime, which has no context. The caller owns the struct; the first call that fails fills
 * it. */
typedef struct {
    tec_status status;
    char text[500];
} tec_error;

#ifdef __cplusplus
}
#endif
#endif
