/* bench/bench_peak.c -- a worker of bench/run: what the machine can do at most, as float multiply-adds on
 * registers.
 *
 *     bench_peak THREADS
 *     < sample 0.2
 *     > 307.2            // 1e9 operations per second, of all threads together; a multiply-add is two
 *
 * Compiled for the machine that it runs on. Twenty independent sums hide the latency of two units.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tec/runtime.h"

#if defined(__AVX512F__)
enum { BYTES = 64 };
#elif defined(__AVX__)
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { SUMS = 20, ROUNDS = 100000, MAX_THREADS = 256 };

typedef float vector __attribute__((vector_size(BYTES)));

/* Multiplies and adds, and says how long it took. */
static void *work(void *seconds)
{
    vector sum[SUMS] = {0}, a = {0}, b = {0};
    double start = tec_clock();

    a += 0.9999f;
    b += 0.0001f;
    for (int i = 0; i < SUMS; i++)
        sum[i] += (float)i; /* equal sums would be one sum */
    for (int r = 0; r < ROUNDS; r++)
#pragma GCC unroll 20
        for (int i = 0; i < SUMS; i++)
            sum[i] = sum[i] * a + b;
    for (int i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    *(double *)seconds = sum[0][0] >= 0 ? tec_clock() - start : 0;
    return NULL;
}

/* One round on all threads at once; the slowest counts. */
static double measure(int threads)
{
    pthread_t thread[MAX_THREADS];
    double seconds[MAX_THREADS] = {0}, slowest = 0;
    int started = 1;

    while (started < threads && pthread_create(&thread[started], NULL, work, &seconds[started]) == 0)
        started++;
    work(&seconds[0]);
    for (int i = 0; i < started; i++) {
        if (i)
            pthread_join(thread[i], NULL);
        slowest = seconds[i] > slowest ? seconds[i] : slowest;
    }
    return 2.0 * BYTES / sizeof(float) * SUMS * ROUNDS * started / slowest * 1e-9;
}

int main(int argc, char **argv)
{
    int threads = argc == 2 ? atoi(argv[1]) : 0;
    char line[64];
    double wanted;

    if (threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: bench_peak THREADS\n");
        return 2;
    }
    printf("ready 0\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "sample %lf", &wanted) == 1) {
        double best = 0;

        for (double end = tec_clock() + wanted; tec_clock() < end;) {
            double rate = measure(threads);

            best = rate > best ? rate : best;
        }
        printf("%.3f\n", best);
        fflush(stdout);
    }
    return 0;
}
