/* A running graph allocates nothing: malloc and its kin are counted here, below the runtime's own
 * allocator. */
#include "tests/runtime/kit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tec/runtime.h"

static atomic_llong calls;

/* Sanitizers have an allocator of their own: there, these tests only run the graph. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNTING = 0 };
#else
enum { COUNTING = 1 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(p, size);
}

int posix_memalign(void **data, size_t align, size_t size)
{
    atomic_fetch_add(&calls, 1);
    *data = __libc_memalign(align, size);
    return *data ? 0 : ENOMEM;
}
#endif

static void run_without_allocation(const tec_run_options *options)
{
    float x[64 * 8];
    int64_t shape[] = {64, 8};
    DLTensor input = tensor_of(x, 2, shape);
    tec_module *m = kit_open();
    tec_executor *ex = tec_executor_new(m, NULL, options, NULL);
    long long before = atomic_load(&calls);

    kit_fill(x, 64);
    cr_assert(tec_executor_set_input(ex, 0, &input, NULL) && tec_executor_run(ex, NULL));
    cr_assert(!COUNTING || atomic_load(&calls) > before, "the counter counts");
    before = atomic_load(&calls);
    for (int i = 0; i < 200; i++)
        if (!tec_executor_set_input(ex, 0, &input, NULL) || !tec_executor_run(ex, NULL))
            abort();
    cr_assert_eq(atomic_load(&calls), before);
    shape[0] = 32;
    if (!tec_executor_set_input(ex, 0, &input, NULL) || !tec_executor_run(ex, NULL))
        abort();
    cr_assert_eq(atomic_load(&calls), before, "a smaller shape fits into the memory that is there");
    kit_check(tec_executor_output(ex, 0), 32);
    tec_executor_free(ex);
    tec_module_free(m);
}

Test(quiet, runs_allocate_nothing_on_one_thread)
{
    run_without_allocation(&(tec_run_options){.threads = 1});
}

Test(quiet, runs_allocate_nothing_on_a_pool)
{
    tec_pool *pool = tec_pool_new(3, NULL);

    run_without_allocation(&(tec_run_options){.pool = pool});
    tec_pool_free(pool);
}

Test(quiet, observed_runs_allocate_nothing_either)
{
    run_without_allocation(
        &(tec_run_options){.threads = 1, .profile = true, .keep = true, .check_nan = true});
}
