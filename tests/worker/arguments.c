/* tests/worker/arguments.c -- the arguments of a job: copies of cold inputs, which calls take in turns. */
#include "worker/arguments.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/module.h"
#include "worker/time.h"

#define ELEMENTS(n) {(const int64_t[]){RT_DIM_CONST, n}, 2}

/* x and the weights w are read, y is written. */
static const rt_param_desc params[] = {
    {.name = "x", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){ELEMENTS(8)}},
    {.name = "w", .dtype = {kDLFloat, 32, 1}, .rank = 1, .shape = (const rt_dim[]){ELEMENTS(40)}},
    {.name = "y",
     .dtype = {kDLFloat, 32, 1},
     .rank = 1,
     .shape = (const rt_dim[]){ELEMENTS(8)},
     .is_output = true}};
static const rt_function_desc described = {.name = "f", .symbol = "f", .params = params, .n_params = 3};

static worker_shelf shelf;

static const worker_arguments *made(uint64_t cold, int64_t bytes)
{
    static uint64_t key;
    tec_error err = {0};
    const worker_arguments *a = worker_arguments_for(
        &shelf, &described, &(worker_job){.arguments = ++key, .seed = 3, .cold = cold, .cold_bytes = bytes},
        &err);

    cr_assert(a != NULL, "%s", err.text);
    return a;
}

static void clear(void)
{
    worker_shelf_clear(&shelf);
}

TestSuite(arguments, .fini = clear);

Test(arguments, one_set_where_nothing_is_cold)
{
    cr_assert(eq(int, made(0, 1 << 20)->n_sets, 1));
    cr_assert(eq(int, made(2, 0)->n_sets, 1));
    cr_assert(eq(int, made(4, 1 << 20)->n_sets, 1), "outputs have no copies");
    cr_assert(eq(int, made(2, 100)->n_sets, 1), "the weights alone are as much");
}

/* 160 bytes of weights take 192 of memory. */
Test(arguments, copies_of_cold_inputs_have_the_bytes_that_were_asked_for)
{
    const worker_arguments *a = made(2, 1920);

    cr_assert(eq(int, a->n_sets, 10));
    cr_assert(a->sets[0] == a->args);
    for (int k = 1; k < a->n_sets; k++) {
        const DLTensor *copy = a->sets[k][1], *before = a->sets[k - 1][1];

        cr_assert(a->sets[k][0] == a->args[0] && a->sets[k][2] == a->args[2]);
        cr_assert(copy->data != before->data && (uintptr_t)copy->data % 64 == 0);
        cr_assert(memcmp(copy->data, a->args[1]->data, 160) == 0);
    }
    cr_assert(eq(int, made(2, INT64_MAX)->n_sets, 1024));
}

/* ---- calls ---- */

static const void *seen[4096];
static int calls;

static int32_t note(const tec_env *env, void *const *args, const int64_t *dims)
{
    (void)env, (void)dims;
    seen[calls++ % 4096] = args[1];
    return 0;
}

static tec_kernel_fn *resolve(void *user, const char *symbol)
{
    (void)user, (void)symbol;
    return note;
}

Test(arguments, measured_calls_take_the_sets_in_turns)
{
    tec_error err = {0};
    tec_module *m = rt_module_from_memory(&(rt_module_desc){.n_functions = 1, .functions = &described},
                                          &(rt_memory_code){.resolve = resolve}, 0, &err);
    cr_assert(m != NULL, "%s", err.text);
    tec_function *f = tec_function_new(m, NULL, &(tec_run_options){.threads = 1}, &err);
    const worker_arguments *a = made(2, 576);
    const worker_job job = {.min_seconds = 1e-4, .repeats = 1, .cold = 2, .cold_bytes = 576};
    worker_call call = {f, a->args, a->n, a->sets, a->n_sets};
    /* Said and not measured: a first call that the machine held up would be the whole measurement. */
    const double first = 1e-6;
    double *costs = calloc(WORKER_MAX_COSTS, sizeof *costs);

    cr_assert(eq(int, a->n_sets, 3));
    cr_assert(f && worker_time(&call, 1, &job, &first, costs, &err) == 1 && costs[0] > 0, "%s", err.text);
    int last = calls < 4096 ? calls : 4096;
    cr_assert(last > 10, "%d calls", last);
    for (int i = last - 9; i < last; i++)
        cr_assert(seen[i] != seen[i - 1] && seen[i] != seen[i - 2], "call %d", i);
    free(costs);
    tec_function_free(f);
    tec_module_free(m);
}
