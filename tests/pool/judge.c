/* tests/pool/judge.c -- which device of a class is off, and what it is told. */
#include <criterion/criterion.h>
#include <string.h>

#include "pool/judge.h"

static char why[200];

static bool accepts(pool_judge *j, const char *name, double ms)
{
    pool_judge_note(j, name, ms * 1e-3);
    return pool_judge_accepts(j, name, why, sizeof why);
}

Test(judge, takes_devices_that_are_alike)
{
    pool_judge j = {.tolerance = 0.25};

    cr_assert(accepts(&j, "a", 1.00) && accepts(&j, "b", 1.10) && accepts(&j, "c", 0.95));
    cr_assert(accepts(&j, "a", 1.15));
}

Test(judge, sets_a_slow_device_aside_and_says_why)
{
    pool_judge j = {.tolerance = 0.25};

    cr_assert(accepts(&j, "a", 1.0) && accepts(&j, "b", 1.02));
    cr_assert_not(accepts(&j, "c", 1.4));
    cr_assert_str_eq(why, "the calibration kernel takes 1.4 ms; on the others of the class 1.01 ms");
    cr_assert(pool_judge_has_set_aside(&j, "c"));
    cr_assert_not(pool_judge_has_set_aside(&j, "a"));
    cr_assert(accepts(&j, "d", 1.0), "one that was set aside is no measure for others");
}

Test(judge, a_fast_device_is_another_board_too)
{
    pool_judge j = {.tolerance = 0.25};

    cr_assert(accepts(&j, "a", 1.0) && accepts(&j, "b", 1.0));
    cr_assert_not(accepts(&j, "c", 0.6));
}

Test(judge, holds_a_lonely_device_against_itself)
{
    pool_judge j = {.tolerance = 0.25};

    cr_assert(accepts(&j, "a", 1.0) && accepts(&j, "a", 1.2));
    cr_assert_not(accepts(&j, "a", 1.3));
    cr_assert_str_eq(why, "the calibration kernel takes 1.3 ms; 1 ms when the device was new");
}

Test(judge, costs_that_scatter_are_outlying)
{
    const double quiet[] = {1, 1.01, 1.02, 1, 3}, loud[] = {1, 1.6, 0.7, 1.9, 1}, two[] = {1, 9};

    cr_assert_not(pool_are_outlying(quiet, 5), "one disturbance is none of the device's");
    cr_assert(pool_are_outlying(loud, 5));
    cr_assert_not(pool_are_outlying(two, 2));
}
