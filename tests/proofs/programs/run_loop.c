/* run_loop.c -- runs a module again and again between two marks, for a program that watches what the process
 * does meanwhile.
 *
 *     run_loop MODULE THREADS [disturb]
 *
 * The marks are calls of getppid, which nothing else makes, and of watch_begin and watch_end where a
 * preloaded library has them. Between them inputs are set, the module runs, outputs are read. `disturb`: each
 * round allocates and calls the system as well, to show that the watcher sees it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tec/runtime.h>

enum { RUNS = 200, IMAGES = 32 };

extern void watch_begin(void) __attribute__((weak));
extern long watch_end(void) __attribute__((weak));

static int fail(const tec_error *err)
{
    fprintf(stderr, "run_loop: %s\n", err->text);
    return 1;
}

static int loop(tec_executor *ex, const DLTensor *image, int disturb, tec_error *err)
{
    float sum = 0;

    for (int i = 0; i < RUNS; i++) {
        if (!tec_executor_set_input(ex, 0, image, err) || !tec_executor_run(ex, err))
            return fail(err);
        sum += *(const float *)tec_executor_output(ex, 0)->data;
        if (disturb) {
            free(strdup("seen?"));
            syscall(SYS_getuid);
        }
    }
    return sum != sum;
}

/* The number of allocations where somebody counts them, otherwise 0; -1 after a failure. */
static long watched_loop(tec_executor *ex, const DLTensor *image, int disturb, tec_error *err)
{
    syscall(SYS_getppid);
    if (watch_begin)
        watch_begin();
    int failed = loop(ex, image, disturb, err);
    long allocations = watch_end ? watch_end() : 0;
    syscall(SYS_getppid);
    return failed ? -1 : allocations;
}

int main(int argc, char **argv)
{
    static float pixels[IMAGES * 8 * 8];
    int64_t shape[] = {IMAGES, 1, 8, 8};
    DLTensor image = {
        .data = pixels, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = shape};
    tec_error err = {0};

    if (argc < 3)
        return 2;
    for (int i = 0; i < IMAGES * 8 * 8; i++)
        pixels[i] = (float)(i % 17) / 16;
    tec_module *m = tec_module_open(argv[1], NULL, &err);
    tec_executor *ex = tec_executor_new(m, NULL, &(tec_run_options){.threads = atoi(argv[2])}, &err);
    if (!tec_executor_set_input(ex, 0, &image, &err) || !tec_executor_run(ex, &err))
        return fail(&err);
    long allocations = watched_loop(ex, &image, argc > 3, &err);
    tec_executor_free(ex);
    tec_module_free(m);
    if (allocations >= 0)
        printf("%d runs, %ld allocations%s\n", RUNS, allocations, watch_end ? "" : " (nobody counts)");
    return allocations < 0;
}
