/* guard.c -- guards, what contexts hold, and the looks at deadlines and cancels; see guard.h.
 *
 * All contexts below one root share its limits. What a context holds is a list, newest first; a child context
 * is an entry of its parent's list, so that freeing or unwinding a context takes its children with it.
 */
#include "base/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/context.h"

/* ---- what a context holds ---- */

static int64_t next_serial(tec_context *cx)
{
    return atomic_fetch_add_explicit(&cx->limits->serial, 1, memory_order_relaxed) + 1;
}

void base_hold(tec_context *cx, base_held *held, void (*release)(void *what), void *what)
{
    *held =
        (base_held){.older = cx->held, .cx = cx, .serial = next_serial(cx), .release = release, .what = what};
    if (cx->held)
        cx->held->newer = held;
    cx->held = held;
}

void base_keep(base_held *held)
{
    if (!held->cx)
        return;
    if (held->newer)
        held->newer->older = held->older;
    else
        held->cx->held = held->older;
    if (held->older)
        held->older->newer = held->newer;
    held->cx = NULL;
}

void base_drop(base_held *held)
{
    if (!held->cx)
        return;
    base_keep(held);
    held->release(held->what);
}

/* Releases what cx and the contexts below it have come to hold after `serial`, and forgets the guards that
 * were set after it: their functions are about to be left. A child that is older stays, but what it got since
 * then goes. */
static void unwind(tec_context *cx, int64_t serial)
{
    while (cx->held && cx->held->serial > serial)
        base_drop(cx->held);
    while (cx->guard && cx->guard->serial > serial)
        cx->guard = cx->guard->outer;
    for (base_held *h = cx->held; h; h = h->older)
        if (h->release == base_free_child)
            unwind(h->what, serial);
}

/* ---- guards ---- */

bool base_guarded(tec_context *cx, base_guard *guard)
{
    if (!cx)
        return false;
    guard->cx = cx;
    guard->outer = cx->guard;
    guard->serial = next_serial(cx);
    cx->guard = guard;
    cx->patience = 0;
    return true;
}

void base_unguard(base_guard *guard)
{
    if (guard->cx)
        guard->cx->guard = guard->outer;
}

/* The nearest context, from cx upwards, that has a guard. NULL: none has. */
static tec_context *guarded_context(tec_context *cx)
{
    while (cx && !cx->guard)
        cx = cx->parent;
    return cx;
}

static tec_context *root_of(tec_context *cx)
{
    while (cx->parent)
        cx = cx->parent;
    return cx;
}

/* Nothing guards: the last resort of the program, if it has set one. A caller of the public functions never
 * gets here, since each of them is a guard (scripts/checks/guards). */
static _Noreturn void strand(tec_context *root)
{
    if (root->last_resort)
        root->last_resort(root);
    for (;;)
        __builtin_trap();
}

_Noreturn void base_give_up(tec_context *cx, tec_status status, const char *fmt, ...)
{
    tec_context *to = guarded_context(cx), *at = to ? to : root_of(cx);
    va_list args;

    va_start(args, fmt);
    base_fail_in_place(at, status, fmt, args);
    va_end(args);
    if (!to)
        strand(at);
    to->gave_up = true;
    unwind(to, to->guard->serial);
    longjmp(to->guard->jump, 1);
}

_Noreturn void base_no_memory(tec_context *cx, size_t size)
{
    base_give_up(cx, TEC_NO_MEMORY, "out of memory: %zu bytes more were asked for", size);
}

void base_pass_on(tec_context *cx)
{
    if (cx->gave_up)
        base_give_up(cx, cx->status, "%s",
                     base_starts_with(cx->error, ERROR_PREFIX) ? cx->error + strlen(ERROR_PREFIX)
                                                               : cx->error);
}

void base_set_last_resort(tec_context *root, void (*end)(tec_context *root))
{
    root->last_resort = end;
}

/* ---- deadlines and cancels ---- */

/* Allocations between two looks: some 10 microseconds of work. */
enum { PATIENCE = 256 };

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void tec_context_cancel(tec_context *cx)
{
    long long none = 0;

    if (!cx)
        return;
    atomic_compare_exchange_strong(&cx->limits->cancelled, &none, now());
}

void tec_context_set_deadline(tec_context *cx, double seconds)
{
    base_limits *l = cx ? cx->limits : NULL;

    if (!l)
        return;
    l->started = now();
    l->seconds = seconds;
    l->deadline = seconds > 0 ? l->started + (int64_t)(seconds < 1e9 ? seconds * 1e9 : 1e18) : 0;
}

/* Leaves the call by a jump where it was cancelled or its deadline has passed; otherwise returns at once. */
void base_check(tec_context *cx)
{
    const base_limits *limits = cx->limits;
    int64_t cancelled = atomic_load_explicit(&limits->cancelled, memory_order_relaxed);

    cx->patience = PATIENCE;
    if (!cancelled && !limits->deadline)
        return;
    int64_t t = now();
    if (cancelled)
        base_give_up(cx, TEC_CANCELLED, "cancelled, and stopped %.1f ms later",
                     (double)(t - cancelled) / 1e6);
    if (t > limits->deadline)
        base_give_up(cx, TEC_TIMEOUT, "the deadline of %.3f s has passed by %.1f ms", limits->seconds,
                     (double)(t - limits->deadline) / 1e6);
}

/* ---- memory outside the arenas, and tests of running out ---- */

void *base_calloc(tec_context *cx, size_t n, size_t size)
{
    void *p = base_may_allocate(cx) ? calloc(n ? n : 1, size) : NULL;

    if (!p)
        base_no_memory(cx, n * size);
    return p;
}

bool base_may_allocate(tec_context *cx)
{
    atomic_llong *planned = &cx->limits->planned;

    if (atomic_load_explicit(planned, memory_order_relaxed) <= 0)
        return true;
    return atomic_fetch_sub(planned, 1) != 1;
}

void base_plan_failure(tec_context *root, int64_t n)
{
    atomic_store(&root->limits->planned, n);
}

int64_t base_failure_left(const tec_context *root)
{
    return atomic_load(&root->limits->planned);
}
