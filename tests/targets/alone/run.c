/* tests/targets/alone/run.c -- calls a kernel without any library, on a processor that may be emulated: what
 * kernels import and the helpers of the architecture are here. Ends with 0 where the results are right, with
 * the number of the element + 1 where one is not (at most 100), with 101 where the call fails, and with 102
 * where a 32-bit CPU does not refuse an extent of 2^31.
 */
#include "tec/kernel.h"

enum { ROWS = 5, COLUMNS = 40, TERMS = 24 };

int32_t tec_k0_product(const tec_env *env, void *const *args, const int64_t *dims);
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest);
void begin(void);

/* ---- helpers ---- */

void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)value;
    return to;
}

/* One bit of the quotient after the other. */
uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest)
{
    uint64_t quotient = 0, left = 0;

    for (int i = 63; i >= 0; i--) {
        left = left << 1 | (a >> i & 1);
        if (left >= b) {
            left -= b;
            quotient |= (uint64_t)1 << i;
        }
    }
    *rest = left;
    return quotient;
}

#if defined(__arm__)
/* The quotient comes back in r0 and r1, the rest in r2 and r3. */
__asm__(".globl __aeabi_uldivmod\n"
        "__aeabi_uldivmod:\n"
        "  push {r4, lr}\n"
        "  sub sp, sp, #16\n"
        "  add r4, sp, #8\n"
        "  str r4, [sp]\n"
        "  bl divide\n"
        "  ldrd r2, r3, [sp, #8]\n"
        "  add sp, sp, #16\n"
        "  pop {r4, pc}\n");

static void leave(int status)
{
    register int r0 __asm__("r0") = status;
    register int r7 __asm__("r7") = 1; /* exit */

    __asm__ volatile("svc #0" : : "r"(r0), "r"(r7));
    __builtin_unreachable();
}

#elif defined(__riscv)

static void leave(int status)
{
    register long a0 __asm__("a0") = status;
    register long a7 __asm__("a7") = 93; /* exit */

    __asm__ volatile("ecall" : : "r"(a0), "r"(a7));
    __builtin_unreachable();
}

#endif

/* ---- the environment ---- */

static _Alignas(64) char workspace[1 << 16];

static int32_t parallel(const tec_env *env, tec_parallel_fn *body, void *closure, int64_t n)
{
    int32_t status = 0;

    for (int64_t i = 0; i < n && !status; i += 2)
        status = body(env, closure, i, i + 2 < n ? i + 2 : n, 0);
    return status;
}

static const char *failure;

static void fail(const tec_env *env, const char *text)
{
    (void)env;
    failure = text;
}

/* ---- the call ---- */

static float a[ROWS][TERMS], b[TERMS][COLUMNS], c[ROWS][COLUMNS];

static void fill(void)
{
    for (int i = 0; i < ROWS * TERMS; i++)
        a[0][i] = (float)(i % 9 - 4);
    for (int i = 0; i < TERMS * COLUMNS; i++)
        b[0][i] = (float)(i % 7 - 3);
}

static float expected(int y, int x)
{
    int sum = 0;

    for (int k = 0; k < TERMS; k++)
        sum += (int)a[y][k] * (int)b[k][x];
    int half = sum >> 1; /* downwards, as floor does */
    return (float)(sum - 3 > half ? sum - 3 : half);
}

static int check(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (c[0][i] != expected(i / COLUMNS, i % COLUMNS))
            return i < 99 ? i + 1 : 100;
    return 0;
}

void begin(void)
{
    tec_env env = {.abi = TEC_KERNEL_ABI,
                   .n_workers = 1,
                   .parallel = parallel,
                   .workspace = workspace,
                   .thread_workspace = workspace + (1 << 15),
                   .fail = fail};
    void *args[] = {a, b, c};
    int64_t dims[] = {ROWS, COLUMNS};

    fill();
    if (tec_k0_product(&env, args, dims))
        leave(101);
    dims[0] = INT64_C(1) << 31;
    if (sizeof args[0] == 4 && (tec_k0_product(&env, args, dims) != TEC_INVALID || !failure))
        leave(102);
    leave(check());
}
