/* tests/autotune/candidates.h -- candidates of all kinds for the tests of measuring: a product whose inner
 * tile is a C function that does anything.
 *
 *     cx = tec_context_new();
 *     tune_task *t = task_for(tiled);
 *     tune_candidate c = {.task = t, .trace = doing(crashing)};
 */
#ifndef TESTS_AUTOTUNE_CANDIDATES_H
#define TESTS_AUTOTUNE_CANDIDATES_H

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/measure.h"
#include "te/text.h"

static tec_context *cx;

static inline tune_task *task_for(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    tune_task *t = tune_task_new(
        cx, &(tune_task){.def = f->defs.at[0], .definition = text, .target = target_native(cx)});
    cr_assert(t, "%s", tec_context_error(cx));
    return t;
}

/* A product whose inner tile a C function does; the trace brings the function along. */
static const char tiled[] =
    "intrinsic tile(m, a: f32[4, m], b: f32[m, 8]) {\n"
    "  c[i: 4, j: 8] = sum[k: m](a[i, k] * b[k, j])\n  return c\n"
    "  strides a[lda, 1] strides b[ldb, 1] strides c[ldc, 1]\n  update \"call tile_update\"\n"
    "}\n"
    "def mm(A: f32[64, 64], B: f32[64, 64]) {\n  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n";

static const char right[] =
    "for (int i = 0; i < 4; i++) for (long k = 0; k < m; k++) for (int j = 0; j < 8; j++) "
    "c[i * ldc + j] += a[i * lda + k] * b[k * ldb + j];";

#ifdef __x86_64__
#define SYSTEM_CALL                                                                                          \
    "static long sys(long n, long a, long b, long c, long d, long e) { long r; register long r10 "           \
    "__asm__(\\\"r10\\\") = d; "                                                                             \
    "register long r8 __asm__(\\\"r8\\\") = e; register long r9 __asm__(\\\"r9\\\") = 0; __asm__ "           \
    "volatile(\\\"syscall\\\" : \\\"=a\\\"(r) : "                                                            \
    "\\\"a\\\"(n), \\\"D\\\"(a), \\\"S\\\"(b), \\\"d\\\"(c), \\\"r\\\"(r10), \\\"r\\\"(r8), \\\"r\\\"(r9) "  \
    ": \\\"rcx\\\", \\\"r11\\\", \\\"memory\\\"); return r; } "
enum { SYS_MMAP_ = 9, SYS_GETPID_ = 39, SYS_KILL_ = 62, SYS_EXIT_ = 231 };
#else
#define SYSTEM_CALL                                                                                          \
    "static long sys(long n, long a, long b, long c, long d, long e) { register long x8 "                    \
    "__asm__(\\\"x8\\\") = n; "                                                                              \
    "register long x0 __asm__(\\\"x0\\\") = a; register long x1 __asm__(\\\"x1\\\") = b; register long x2 "  \
    "__asm__(\\\"x2\\\") = c; "                                                                              \
    "register long x3 __asm__(\\\"x3\\\") = d; register long x4 __asm__(\\\"x4\\\") = e; register long x5 "  \
    "__asm__(\\\"x5\\\") = 0; "                                                                              \
    "__asm__ volatile(\\\"svc 0\\\" : \\\"+r\\\"(x0) : \\\"r\\\"(x8), \\\"r\\\"(x1), \\\"r\\\"(x2), "        \
    "\\\"r\\\"(x3), \\\"r\\\"(x4), \\\"r\\\"(x5) : \\\"memory\\\"); return x0; } "
enum { SYS_MMAP_ = 222, SYS_GETPID_ = 172, SYS_KILL_ = 129, SYS_EXIT_ = 94 };
#endif

static inline const char *doing(const char *body)
{
    return base_format(cx,
                       "y0, y1 = split(C.y, _, 4)\nx0, x1 = split(C.x, _, 8)\nreorder(y0, x0, C.k, y1, "
                       "x1)\ntensorize(C.k, tile)\n"
                       "pragma(y0, import_c, \"%sint tile_update(const float *a, const float *b, float *c, "
                       "long m, long lda, long ldb, long ldc) "
                       "{ %s return 0; }\")\n",
                       strstr(body, "sys(") ? SYSTEM_CALL : "", body);
}

static inline const char *killing_itself(int signal_number)
{
    return doing(base_format(cx, "sys(%d, sys(%d, 0, 0, 0, 0, 0), %d, 0, 0, 0);", SYS_KILL_, SYS_GETPID_,
                             signal_number));
}

static inline const char *allocating(void)
{
    return doing(base_format(cx,
                             "for (;;) { char *p = (char *)sys(%d, 0, 1 << 20, 3, 0x22, -1); for (int i = 0; "
                             "i < 1 << 20; i += 4096) p[i] = 1; }",
                             SYS_MMAP_));
}

static const char hanging[] = "for (;;) __asm__ volatile(\\\"\\\");";
static const char crashing[] = "*(volatile int *)8 = 1;";

#endif
