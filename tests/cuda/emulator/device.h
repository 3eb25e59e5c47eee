/* tests/cuda/emulator/device.h -- gives the text of a kernel its meaning on a CPU: this file is included in
 * front of the prelude of targets/cuda/prelude.c, and the whole is compiled as C++.
 *
 * A thread of a block is a fiber of the emulator (driver.c). What threads do together (barriers, shuffles,
 * asynchronous copies) are calls of the emulator, through the table `tec_emulated`, which the driver sets
 * when
 * it loads the kernels. It includes nothing, as NVRTC includes nothing.
 */
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static __attribute__((section("tec_shared"), aligned(16)))

#define TEC_DYNAMIC_SHARED(name, bytes)                                                                      \
    static unsigned char name[bytes] __attribute__((section("tec_shared"), aligned(64)))

struct tec_place {
    unsigned x, y, z;
};
struct tec_thread {
    tec_place thread, block, size;
};
/* As in driver.c. */
struct tec_emulator {
    const tec_thread *now; /* whose code runs */
    void (*wait)(int kind, const void *give, void *take, int bytes,
                 int mask); /* mask: of a group, how many */
    void (*copy)(void *to, const void *from, int bytes);
    void (*commit)();
    void (*settle)(int groups);
    void (*touch)(const void *pc, const void *address, int bytes);
};
extern "C" {
tec_emulator *tec_emulated;
}
#define threadIdx (tec_emulated->now->thread)
#define blockIdx (tec_emulated->now->block)
#define blockDim (tec_emulated->now->size)

enum { TEC_WAIT_BLOCK = 1, TEC_WAIT_WARP, TEC_WAIT_SHUFFLE, TEC_WAIT_GROUP };

static inline void __syncthreads()
{
    tec_emulated->wait(TEC_WAIT_BLOCK, nullptr, nullptr, 0, 0);
}
static inline void __syncwarp()
{
    tec_emulated->wait(TEC_WAIT_WARP, nullptr, nullptr, 0, 0);
}
template <typename T> static inline T tec_shuffle_xor(T value, int mask)
{
    T other;
    tec_emulated->wait(TEC_WAIT_SHUFFLE, &value, &other, sizeof value, mask);
    return other;
}
template <typename T> static inline T tec_shuffle(T value, int lane)
{
    unsigned own = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return tec_shuffle_xor(value, (int)((own ^ (unsigned)lane) % 32));
}
/* Waits for the others of a group of threads; then `work` is done once, with what each of them gives. */
static inline void tec_together(int threads, const void *give, void (*work)(const void *const *given))
{
    tec_emulated->wait(TEC_WAIT_GROUP, give, (void *)work, 0, threads);
}
template <int bytes> static inline void tec_async_copy(void *to, const void *from)
{
    tec_emulated->copy(to, from, bytes);
}
static inline void tec_async_commit()
{
    tec_emulated->commit();
}
template <int groups> static inline void tec_async_wait()
{
    tec_emulated->settle(groups);
}

/* One access of so many bytes, which the code that is traced makes as one. */
template <int bytes> struct tec_piece {
    typedef unsigned char word __attribute__((vector_size(bytes), may_alias));
    template <typename T> static inline void load(const T *from, T *to)
    {
        word all = *(const volatile word *)from;
        __builtin_memcpy(to, &all, bytes);
    }
    template <typename T> static inline void store(T *to, const T *from)
    {
        word all;
        __builtin_memcpy(&all, from, bytes);
        *(volatile word *)to = all;
    }
};

/* ---- accesses: called by code compiled with -fsanitize-coverage=func,trace-loads,trace-stores ---- */

#define TEC_TRACED(bytes)                                                                                    \
    extern "C" __attribute__((noinline, no_sanitize("coverage"))) void __sanitizer_cov_load##bytes(          \
        const void *address)                                                                                 \
    {                                                                                                        \
        tec_emulated->touch(__builtin_return_address(0), address, bytes);                                    \
    }                                                                                                        \
    extern "C" __attribute__((noinline, no_sanitize("coverage"))) void __sanitizer_cov_store##bytes(         \
        const void *address)                                                                                 \
    {                                                                                                        \
        tec_emulated->touch(__builtin_return_address(0), address, bytes);                                    \
    }
TEC_TRACED(1)
TEC_TRACED(2)
TEC_TRACED(4)
TEC_TRACED(8)
TEC_TRACED(16)

/* ---- functions of CUDA ---- */

static inline int __popcll(unsigned long long a)
{
    return __builtin_popcountll(a);
}
static inline int __clzll(long long a)
{
    return a ? __builtin_clzll((unsigned long long)a) : 64;
}
static inline float tec_f16_load(unsigned short a)
{
    return (float)__builtin_bit_cast(_Float16, a);
}
static inline unsigned short tec_f16_store(float a)
{
    return __builtin_bit_cast(unsigned short, (_Float16)a);
}

#define TEC_FUNCTION(name)                                                                                   \
    extern "C" double name(double);                                                                          \
    extern "C" float name##f(float);                                                                         \
    static inline float name(float a)                                                                        \
    {                                                                                                        \
        return name##f(a);                                                                                   \
    }
#define TEC_FUNCTION_2(name)                                                                                 \
    extern "C" double name(double, double);                                                                  \
    extern "C" float name##f(float, float);                                                                  \
    static inline float name(float a, float b)                                                               \
    {                                                                                                        \
        return name##f(a, b);                                                                                \
    }
TEC_FUNCTION(fabs)
TEC_FUNCTION(floor)
TEC_FUNCTION(ceil)
TEC_FUNCTION(trunc)
TEC_FUNCTION(rint)
TEC_FUNCTION(sqrt)
TEC_FUNCTION(exp)
TEC_FUNCTION(exp2)
TEC_FUNCTION(log)
TEC_FUNCTION(log2)
TEC_FUNCTION(tanh)
TEC_FUNCTION(erf)
TEC_FUNCTION(sin)
TEC_FUNCTION(cos)
TEC_FUNCTION(tan)
TEC_FUNCTION(asin)
TEC_FUNCTION(acos)
TEC_FUNCTION(atan)
TEC_FUNCTION(sinh)
TEC_FUNCTION(cosh)
TEC_FUNCTION(asinh)
TEC_FUNCTION(acosh)
TEC_FUNCTION(atanh)
TEC_FUNCTION_2(pow)
TEC_FUNCTION_2(fmod)
TEC_FUNCTION_2(copysign)
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
static inline float fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}

/* ---- calls from addresses of arguments ---- */

template <int... I> struct tec_places {};
template <typename T, T... I> struct tec_sequence {
    typedef tec_places<(int)I...> places;
};
template <typename... A, int... I> static void tec_call_at(void (*kernel)(A...), void **at, tec_places<I...>)
{
    kernel(*(A *)at[I]...);
}
template <typename... A> static void tec_call(void (*kernel)(A...), void **at)
{
    tec_call_at(kernel, at, typename __make_integer_seq<tec_sequence, int, sizeof...(A)>::places());
}

template <typename... A> static int tec_count(void (*)(A...))
{
    return sizeof...(A);
}

#include "tensor.h"

/* The shared memory of a block: all that the kernels declare. */
extern "C" {
extern char __start_tec_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_tec_shared[] __attribute__((weak, visibility("hidden")));
char *tec_shared_begin()
{
    return __start_tec_shared;
}
char *tec_shared_end()
{
    return __stop_tec_shared;
}
}
