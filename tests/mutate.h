/* tests/mutate.h -- what tests with mutations share: their number and seed from the environment, and a word
 * about the case that crashed.
 *
 *     mutation_begin();                               // TEC_MUTATION_SEED, or 1
 *     for (int64_t i = 0; i < mutation_count(4000); i++) { mutation_note(seed); ... }
 *
 * A crash prints "seed N"; TEC_MUTATION_SEED=N with TEC_MUTATIONS=1 is that case alone.
 */
#ifndef TESTS_MUTATE_H
#define TESTS_MUTATE_H

#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile uint64_t mutation_case;

static inline void mutation_crashed(int number)
{
    char text[40];
    int n = snprintf(text, sizeof text, "seed %llu\n", (unsigned long long)mutation_case);

    void *frame[40];

    if (write(2, text, (size_t)n) < 0)
        _exit(3);
    backtrace_symbols_fd(frame, backtrace(frame, 40), 2);
    signal(number, SIG_DFL);
    raise(number);
}

static inline void mutation_note(uint64_t seed)
{
    mutation_case = seed;
}

static inline uint64_t mutation_begin(void)
{
    const char *from = getenv("TEC_MUTATION_SEED");

    signal(SIGSEGV, mutation_crashed);
    signal(SIGABRT, mutation_crashed);
    signal(SIGFPE, mutation_crashed);
    return from ? strtoull(from, NULL, 10) : 1;
}

static inline int64_t mutation_count(int64_t usual)
{
    const char *count = getenv("TEC_MUTATIONS");

    return count ? atoll(count) : usual;
}

#endif
