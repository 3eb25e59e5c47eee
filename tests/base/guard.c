/* Guards: what giving up records, releases and leaves alone; cancels and deadlines. */
#include "base/guard.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static tec_context *cx;
static char released[32]; /* the names of what was released, in order */

static void set_up(void)
{
    cx = tec_context_new();
    released[0] = '\0';
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(guard, .init = set_up, .fini = tear_down);

static void release(void *name)
{
    strcat(released, name);
}

static _Noreturn void give_up(tec_context *where)
{
    base_give_up(where, TEC_NO_MEMORY, "no %s", "memory");
}

/* ---- jumps ---- */

static const char *hold_two_and_give_up(tec_context *where)
{
    BASE_GUARD(where, "gave up");
    base_held a, b;

    base_hold(where, &a, release, "a");
    base_hold(where, &b, release, "b");
    give_up(where);
}

Test(guard, records_the_error_and_releases_the_newest_first)
{
    cr_assert(eq(str, (char *)hold_two_and_give_up(cx), "gave up"));
    cr_assert(eq(str, released, "ba"));
    cr_assert(eq(str, (char *)tec_context_error(cx), "error: no memory"));
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_NO_MEMORY));
}

Test(guard, leaves_what_was_held_before_it)
{
    base_held before;

    base_hold(cx, &before, release, "x");
    hold_two_and_give_up(cx);
    cr_assert(eq(str, released, "ba"));
    base_drop(&before);
    cr_assert(eq(str, released, "bax"));
}

static bool drop_and_keep(void)
{
    BASE_GUARD(cx, false);
    base_held a, b;

    base_hold(cx, &a, release, "a");
    base_hold(cx, &b, release, "b");
    base_drop(&a);
    base_keep(&b);
    give_up(cx);
}

Test(guard, releases_nothing_twice)
{
    cr_assert(not(drop_and_keep()));
    cr_assert(eq(str, released, "a"));
}

static bool give_up_in_a_child(void)
{
    BASE_GUARD(cx, false);
    base_held mine, its;
    tec_context *child = base_child(cx);

    base_hold(cx, &mine, release, "m");
    base_hold(child, &its, release, "i");
    base_fail(child, TEC_INVALID, (base_loc){0}, "its own error");
    give_up(child);
}

Test(guard, of_a_parent_ends_its_children)
{
    cr_assert(not(give_up_in_a_child()));
    cr_assert(eq(str, released, "mi"));
    cr_assert(eq(str, (char *)tec_context_error(cx), "error: no memory"));
}

static bool catch_in(tec_context *child, tec_context *who)
{
    BASE_GUARD(child, false);
    base_held its;

    base_hold(child, &its, release, "i");
    give_up(who);
}

static bool catch_around(tec_context *child, tec_context *who)
{
    BASE_GUARD(cx, false);
    return catch_in(child, who) || true;
}

Test(guard, of_a_child_keeps_the_error_there)
{
    tec_context *child = base_child(cx);

    cr_assert(catch_around(child, child));
    cr_assert(base_failed(child) && !base_failed(cx));
    cr_assert(eq(str, released, "i"));
}

/* The frame of the child's guard is gone then, and what it held with it; the child, which is older, lives on.
 * */
Test(guard, of_a_parent_takes_inner_guards_of_older_children_along)
{
    tec_context *child = base_child(cx);

    cr_assert(not(catch_around(child, cx)));
    cr_assert(eq(str, released, "i"));
    cr_assert(base_failed(cx) && !base_failed(child));
    cr_assert(not(catch_around(child, cx)));
    tec_context_free(child);
}

Test(guard, keeps_the_first_error)
{
    base_fail(cx, TEC_INVALID, (base_loc){0}, "first");
    hold_two_and_give_up(cx);
    cr_assert(eq(str, (char *)tec_context_error(cx), "error: first"));
}

static void inner(void)
{
    BASE_GUARD(cx, );
    give_up(cx);
}

static bool outer(bool passes_on)
{
    BASE_GUARD(cx, false);
    inner();
    if (passes_on)
        base_pass_on(cx);
    return true;
}

Test(guard, gives_up_again_where_it_is_asked_to)
{
    cr_assert(outer(false));
    cr_assert(not(outer(true)));
    cr_assert(eq(str, (char *)tec_context_error(cx), "error: no memory"));
    tec_context_clear(cx);
    cr_assert(base_failed(cx) == false && outer(false));
}

/* ---- memory ---- */

static int fill(int64_t planned)
{
    BASE_GUARD(cx, -1);
    base_plan_failure(cx, planned);
    for (int i = 0; i < 100; i++)
        base_alloc(i % 2 ? base_child(cx) : cx, 300000);
    return 100;
}

Test(guard, turns_a_failed_allocation_into_an_error)
{
    for (int n = 1; n <= 100; n++) {
        cr_assert(eq(int, fill(n), -1));
        cr_assert(strstr(tec_context_error(cx), "out of memory: ") != NULL);
        tec_context_clear(cx);
    }
    cr_assert(eq(int, fill(0), 100));
}

static bool fail_without_memory(void)
{
    BASE_GUARD(cx, false);
    base_plan_failure(cx, 1);
    base_fail(cx, TEC_INVALID, (base_loc){0}, "an error that nothing can hold");
    return true;
}

Test(guard, reports_a_message_for_which_there_is_no_memory)
{
    cr_assert(not(fail_without_memory()));
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_NO_MEMORY));
}

/* ---- cancels and deadlines ---- */

static bool allocate_for_ever(tec_context *where)
{
    BASE_GUARD(cx, false);
    for (;;) {
        base_mark mark = base_arena_mark(where);

        base_alloc(where, 100);
        base_arena_release(where, mark);
    }
}

static void *cancel(void *arg)
{
    tec_context_cancel(arg);
    return NULL;
}

Test(guard, ends_a_call_that_another_thread_cancels)
{
    pthread_t t;

    cr_assert(pthread_create(&t, NULL, cancel, cx) == 0);
    cr_assert(not(allocate_for_ever(base_child(cx))));
    pthread_join(t, NULL);
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_CANCELLED));
    cr_assert(strstr(tec_context_error(cx), "error: cancelled, and stopped ") != NULL, "%s",
              tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert(not(allocate_for_ever(cx)), "a cancel stands");
}

Test(guard, ends_a_call_whose_deadline_passes)
{
    tec_context_set_deadline(cx, 0.01);
    cr_assert(not(allocate_for_ever(cx)));
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_TIMEOUT));
    cr_assert(strstr(tec_context_error(cx), "error: the deadline of 0.010 s has passed by ") != NULL, "%s",
              tec_context_error(cx));
    tec_context_clear(cx);
    tec_context_set_deadline(cx, 0);
    cr_assert(eq(int, fill(0), 100));
}
