/* env.c -- the environment of kernels: parallel loops, workspace, failures, the mode of floating point.
 *
 * A kernel gets a tec_env and calls back through it: for parallel loops, to say why it failed, for functions
 * of the host. The struct rt_env around it is found by `user`. Workspace is reserved before a call, so
 * kernels never allocate.
 */
#include "runtime/env.h"

#include <string.h>

#include "runtime/alloc.h"
#include "runtime/pool.h"
#include "runtime/routines.h"

/* ---- floating point ---- */

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { FLUSH_BITS = 0x8040 }; /* flush to zero, denormals are zero */

static unsigned read_mode(void)
{
    return _mm_getcsr();
}

static void write_mode(unsigned mode)
{
    _mm_setcsr(mode);
}

#elif defined(__aarch64__)

enum { FLUSH_BITS = 1 << 24 | 1 << 19 }; /* FZ, FZ16 */

static unsigned read_mode(void)
{
    unsigned long mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (unsigned)mode;
}

static void write_mode(unsigned mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)mode));
}

#elif defined(__arm__)

enum { FLUSH_BITS = 1 << 24 }; /* FZ; vectors flush in any mode */

static unsigned read_mode(void)
{
    unsigned mode;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(mode));
    return mode;
}

static void write_mode(unsigned mode)
{
    __asm__ volatile("vmsr fpscr, %0" : : "r"(mode));
}

#endif

/* Small numbers become 0, which spares the slow paths of the CPU; the caller's mode is given back by
 * rt_env_leave. */
unsigned rt_env_enter(const rt_env *env)
{
    unsigned mode = read_mode();

    if (!env->keep_denormals && (mode & FLUSH_BITS) != FLUSH_BITS)
        write_mode(mode | FLUSH_BITS);
    return mode;
}

void rt_env_leave(const rt_env *env, unsigned mode)
{
    if (!env->keep_denormals && (mode & FLUSH_BITS) != FLUSH_BITS)
        write_mode(mode);
}

/* ---- what tec_env offers ---- */

typedef struct {
    const tec_env *env;
    tec_parallel_fn *body;
    void *closure;
} job;

/* The mode of floating point belongs to a thread, so it is set in each worker too. */
static int32_t run_slice(void *user, int64_t begin, int64_t end, int32_t worker)
{
    const job *j = user;
    unsigned mode = rt_env_enter(j->env->user);
    int32_t status = j->body(j->env, j->closure, begin, end, worker);

    rt_env_leave(j->env->user, mode);
    return status;
}

/* With no pool the slices run one after the other on this thread. In odd turns threads take their slices from
 * the last one on, also of a loop that goes forwards within a slice: the order of slices is free. */
static int32_t run_parallel(const tec_env *env, tec_parallel_fn *body, void *closure, int64_t n)
{
    const rt_env *e = env->user;
    job j = {env, body, closure};

    return rt_pool_run(e->pool, run_slice, &j, n, env->n_workers, env->turn % 2 != 0);
}

/* Several threads may fail at once: the first text stays. The text is a constant of the kernel's code. */
static void take_failure(const tec_env *env, const char *text)
{
    rt_env *e = env->user;
    const char *none = NULL;

    atomic_compare_exchange_strong(&e->failure, &none, text);
}

/* The user's functions come first. */
static void *find_extern(const tec_env *env, const char *name)
{
    const rt_env *e = env->user;
    void *users = e->extern_function ? e->extern_function(e->extern_user, name) : NULL;

    return users ? users : rt_routine(name);
}

/* ---- life ---- */

/* Which threads run parallel loops: the caller's pool, the process's, or none for one thread. The pool is
 * kept by a reference: it may be shared, and its threads outlive this environment. */
static bool take_pool(rt_env *env, const tec_run_options *options, tec_error *err)
{
    int limit = options ? options->threads : 0;

    if (limit < 0)
        return rt_fail(err, TEC_INVALID,
                       "expected a positive number of threads, or 0 for all threads of the pool; found %d",
                       limit);
    if (limit != 1) {
        env->pool = options && options->pool ? tec_pool_ref(options->pool) : tec_pool_default(err);
        if (!env->pool)
            return false;
    }
    env->env.n_workers = env->pool ? tec_pool_threads(env->pool) : 1;
    if (limit > 0 && limit < env->env.n_workers)
        env->env.n_workers = limit;
    return true;
}

/* Fills in what kernels call back. rt_env_close gives everything back, also after a failure. */
bool rt_env_open(rt_env *env, const tec_run_options *options, bool keep_denormals, tec_error *err)
{
    memset(env, 0, sizeof *env);
    env->keep_denormals = keep_denormals;
    if (options) {
        env->extern_function = options->extern_function;
        env->extern_user = options->extern_user;
        env->rivals = options->rivals;
    }
    env->env.abi = TEC_KERNEL_ABI;
    env->env.parallel = run_parallel;
    env->env.fail = take_failure;
    env->env.extern_function = find_extern;
    env->env.user = env;
    return take_pool(env, options, err);
}

void rt_env_close(rt_env *env)
{
    rt_free(env->env.workspace);
    rt_free(env->env.thread_workspace);
    tec_pool_free(env->pool);
    memset(env, 0, sizeof *env);
}

/* The old bytes are not kept: a workspace means nothing between calls. */
static bool grow(char **bytes, int64_t *size, int64_t needed, tec_error *err)
{
    char *larger;

    if (needed <= *size)
        return true;
    larger = rt_alloc_aligned((size_t)needed, err);
    if (!larger)
        return false;
    rt_free(*bytes);
    *bytes = larger;
    *size = needed;
    return true;
}

/* Grows the workspaces; they never shrink, so that calls in turn allocate nothing. Each thread's part begins
 * on a line of the cache of its own (64 bytes), so that threads do not share lines. */
bool rt_env_reserve(rt_env *env, int64_t workspace, int64_t thread_workspace, tec_error *err)
{
    int64_t stride = env->env.thread_stride, all;

    if (workspace < 0 || thread_workspace < 0 || thread_workspace > INT64_MAX - 63)
        return rt_fail(
            err, TEC_INVALID,
            "expected workspaces of at least 0 bytes, found %lld bytes and %lld bytes for each thread",
            (long long)workspace, (long long)thread_workspace);
    if (thread_workspace > stride)
        stride = (thread_workspace + 63) / 64 * 64;
    if (__builtin_mul_overflow(stride, (int64_t)env->env.n_workers, &all))
        return rt_fail_memory(err, SIZE_MAX);
    if (!grow(&env->env.workspace, &env->workspace_size, workspace, err) ||
        !grow(&env->env.thread_workspace, &env->thread_size, all, err))
        return false;
    env->env.thread_stride = stride;
    return true;
}

/* ---- calls ---- */

/* The failure of an earlier call is forgotten first. */
int32_t rt_env_call(rt_env *env, tec_kernel_fn *code, int64_t turn, void *const *args, const int64_t *dims)
{
    env->env.turn = turn;
    atomic_store_explicit(&env->failure, NULL, memory_order_relaxed);
    return code(&env->env, args, dims);
}

/* A status that is none of ours came from a function of the host: it is told as an internal error. */
bool rt_env_fail(const rt_env *env, int32_t status, const char *who, tec_error *err)
{
    const char *text = atomic_load(&env->failure);
    bool known = status > 0 && status <= TEC_INTERNAL;

    return rt_fail(err, known ? (tec_status)status : TEC_INTERNAL, "%s: %s", who,
                   text    ? text
                   : known ? tec_status_text((tec_status)status)
                           : "the kernel failed");
}
