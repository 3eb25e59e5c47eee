/* tests/runtime/standin/opencl.h -- a driver of OpenCL that counts its objects, and fails when a test says
 * so. It runs one kernel: "copy", whose arguments are a buffer to read, one to write, and how many bytes.
 * Launches of others do nothing.
 *
 * A shared library whose SONAME is that of the real loader: once a test has opened it by its path, the
 * runtime's dlopen gives it.
 */
#ifndef TESTS_RUNTIME_STANDIN_OPENCL_H
#define TESTS_RUNTIME_STANDIN_OPENCL_H

#include <stdint.h>

/* A launch of "copy" that names no buffer, or bytes outside of one, fails with CL_OUT_OF_RESOURCES.
 *
 * Contexts, queues, buffers, programs, kernels and events that are alive. */
typedef int64_t standin_live_fn(void);
/* The n-th call from now on (1: the next) gives this status, and those behind it too where `lasting`; 0:
 * none. */
typedef void standin_fail_fn(int64_t n, int32_t status, int lasting);
/* Calls since the last `fail`. */
typedef int64_t standin_calls_fn(void);

#endif
