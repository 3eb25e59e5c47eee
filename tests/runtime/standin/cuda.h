/* tests/runtime/standin/cuda.h -- a driver of CUDA that counts its objects, notes what went into which
 * stream, and fails, hangs or runs out of memory when a test says so. Its device has compute capability 8.0;
 * memory is main memory, and kernels do nothing.
 *
 * A shared library whose SONAME is that of the real driver: once a test has opened it by its path, the
 * runtime's dlopen gives it.
 */
#ifndef TESTS_RUNTIME_STANDIN_CUDA_H
#define TESTS_RUNTIME_STANDIN_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    STANDIN_CONTEXT, /* references to the primary context */
    STANDIN_MODULE,
    STANDIN_STREAM,
    STANDIN_EVENT,
    STANDIN_MEMORY, /* of the device */
    STANDIN_HOST,   /* page-locked memory of the host */
    STANDIN_GRAPH,  /* both kinds */
    STANDIN_KINDS
} standin_kind;

typedef struct {
    /* Objects of a kind that were made, and that were ended, since the process began. */
    int64_t (*made)(standin_kind kind);
    int64_t (*ended)(standin_kind kind);
    /* The n-th call from now on (1: the next) gives this status, and those behind it too where `lasting`; 0:
     * none. Calls that end objects never fail. */
    void (*fail)(int64_t n, int status, int lasting);
    int64_t (*calls)(void); /* since the last `fail` */
    /* Bytes of device memory that may be in use at once; 0: any number. */
    void (*limit_memory)(size_t bytes);
    /* While it hangs, no stream is done: a thread that waits for a stream waits until it hangs no longer. */
    void (*hang)(int on);
    /* Launches, copies, clearings and graphs that went into a stream; of NULL: of all streams. */
    int64_t (*work)(const void *stream);
    /* A context that is not the primary one, and makes it current. */
    void *(*other_context)(void);
    /* The compute capability of the device, 80 at first. */
    void (*capability)(int value);
    /* The first bytes of what the last module was loaded from. */
    const char *(*loaded)(void);
} standin_cuda;

#endif
