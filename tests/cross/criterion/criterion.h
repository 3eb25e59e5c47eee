/* tests/cross/criterion/criterion.h -- as much of Criterion's interface as the tests of what runs on boards
 * use: there is no Criterion for a board. Each test runs in a process of its own; a failed assertion ends
 * it.
 *
 *     Test(pool, splits_a_range) { cr_assert_eq(parts(10, 3), 4, "of %d", 10); }
 */
#ifndef TESTS_CROSS_CRITERION_H
#define TESTS_CROSS_CRITERION_H

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CR_LEFT_OUT
#define CR_LEFT_OUT "" /* the test of this name */
#endif

typedef struct {
    void (*init)(void), (*fini)(void);
    int signal; /* that must end the test's process; 0: none */
    bool disabled;
    double timeout;
} cr_options;

typedef struct cr_test {
    const char *suite, *name;
    void (*run)(void); /* NULL: the options of a suite */
    cr_options options;
    struct cr_test *next;
} cr_test;

static cr_test *cr_tests;
static bool cr_failed; /* of this process */

#define CR_REGISTER(id, ...)                                                                                 \
    __attribute__((constructor)) static void id##_register(void)                                             \
    {                                                                                                        \
        static cr_test test = {__VA_ARGS__};                                                                 \
        test.next = cr_tests;                                                                                \
        cr_tests = &test;                                                                                    \
    }
#define Test(suite_, name_, ...)                                                                             \
    static void suite_##_##name_(void);                                                                      \
    CR_REGISTER(suite_##_##name_, #suite_, #name_, suite_##_##name_, {__VA_ARGS__}, NULL)                    \
    static void suite_##_##name_(void)
#define TestSuite(suite_, ...) CR_REGISTER(suite_##_suite, #suite_, NULL, NULL, {__VA_ARGS__}, NULL)

/* Prints where and what; FORMAT and what follows may be missing. */
#define CR_SAY(what, ...)                                                                                    \
    do {                                                                                                     \
        cr_failed = true;                                                                                    \
        fprintf(stderr, "%s:%d: %s; ", __FILE__, __LINE__, what);                                            \
        fprintf(stderr, "" __VA_ARGS__);                                                                     \
        fputc('\n', stderr);                                                                                 \
    } while (0)
#define CR_CHECK(condition, what, ...)                                                                       \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            CR_SAY(what, __VA_ARGS__);                                                                       \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

#define cr_assert(a, ...) CR_CHECK(a, #a, __VA_ARGS__)
#define cr_assert_not(a, ...) CR_CHECK(!(a), "not " #a, __VA_ARGS__)
#define cr_assert_null(a, ...) CR_CHECK((a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) CR_CHECK((a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_eq(a, b, ...) CR_CHECK((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) CR_CHECK((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) CR_CHECK((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) CR_CHECK((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) CR_CHECK((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) CR_CHECK((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) CR_CHECK(strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) CR_CHECK(strcmp(a, b) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                                     \
    CR_CHECK(fabs((double)(a) - (b)) <= (e), #a " is about " #b, __VA_ARGS__)
#define cr_assert_fail(...) CR_CHECK(false, "failed", __VA_ARGS__)
#define cr_expect_null(a, ...) cr_assert_null(a, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) cr_assert_str_eq(a, b, __VA_ARGS__)

/* ---- the program ---- */

static const cr_options *cr_suite(const char *name)
{
    static const cr_options none;

    for (const cr_test *t = cr_tests; t; t = t->next)
        if (!t->run && strcmp(t->suite, name) == 0)
            return &t->options;
    return &none;
}

static void cr_run_here(const cr_test *t)
{
    const cr_options *suite = cr_suite(t->suite);
    void (*init)(void) = t->options.init ? t->options.init : suite->init;
    void (*fini)(void) = t->options.fini ? t->options.fini : suite->fini;

    if (init)
        init();
    t->run();
    if (fini)
        fini();
    fflush(NULL);
    _exit(cr_failed);
}

/* Whether the test ended as it should. */
static bool cr_run(const cr_test *t)
{
    int status = 0, wanted = t->options.signal;

    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        cr_run_here(t);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    return wanted ? WIFSIGNALED(status) && WTERMSIG(status) == wanted
                  : WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(void)
{
    int n = 0, failed = 0;

    for (const cr_test *t = cr_tests; t; t = t->next) {
        if (!t->run || t->options.disabled)
            continue;
        if (strcmp(t->name, CR_LEFT_OUT) == 0) {
            printf("left out under an emulator: %s::%s\n", t->suite, t->name);
            continue;
        }
        n++;
        if (!cr_run(t)) {
            failed++;
            printf("failed: %s::%s\n", t->suite, t->name);
        }
    }
    printf("%d tests, %d failed\n", n, failed);
    return failed != 0;
}

#endif
