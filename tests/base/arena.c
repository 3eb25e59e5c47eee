/* The arena: zeroed and aligned pieces, marks, and a size that stays put over many resets. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"

static tec_context *cx;

static void set_up(void)
{
    cx = tec_context_new();
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(arena, .init = set_up, .fini = tear_down);

static bool holds_only(const unsigned char *p, size_t n, unsigned char value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

Test(arena, gives_zeroed_and_aligned_memory_of_any_size)
{
    for (size_t size = 0; size < 300000; size = size * 3 / 2 + 1) {
        unsigned char *p = base_alloc(cx, size);
        cr_assert(p != NULL);
        cr_assert(eq(sz, (uintptr_t)p % 16, 0));
        cr_assert(holds_only(p, size, 0), "size %zu", size);
        memset(p, 0xaa, size);
    }
}

Test(arena, keeps_every_piece_apart_from_the_others)
{
    enum { PIECES = 3000 };
    unsigned char *piece[PIECES];
    size_t size[PIECES];
    uint64_t seed = 1;

    for (int i = 0; i < PIECES; i++) {
        size[i] = (size_t)base_random_below(&seed, i % 50 ? 200 : 100000);
        piece[i] = base_alloc(cx, size[i]);
        memset(piece[i], i & 0xff, size[i]);
    }
    for (int i = 0; i < PIECES; i++)
        cr_assert(holds_only(piece[i], size[i], (unsigned char)i), "piece %d of %zu bytes", i, size[i]);
}

Test(arena, counts_what_it_handed_out)
{
    cr_assert(eq(sz, base_used(cx), 0));
    base_alloc(cx, 100);
    base_array(cx, int64_t, 5);
    cr_assert(eq(sz, base_used(cx), 140));
}

Test(arena, takes_back_what_came_after_a_mark)
{
    char *kept = base_strdup(cx, "kept");
    size_t used = base_used(cx);
    base_mark mark = base_arena_mark(cx);
    char *first = base_alloc(cx, 64);

    for (int i = 0; i < 100; i++)
        memset(base_alloc(cx, (size_t)i * 1000), 0xff, (size_t)i * 1000);
    base_arena_release(cx, mark);
    cr_assert(eq(sz, base_used(cx), used));
    cr_assert(base_alloc(cx, 64) == first, "the place behind the mark is used again");
    cr_assert(holds_only((unsigned char *)first, 64, 0));
    cr_assert(eq(str, kept, "kept"));
}

Test(arena, allows_marks_inside_marks)
{
    base_mark outer = base_arena_mark(cx);
    base_alloc(cx, 500000);
    base_mark inner = base_arena_mark(cx);
    char *text = base_strdup(cx, "inner");
    base_arena_release(cx, inner);
    cr_assert(base_strdup(cx, "again") == text);
    base_arena_release(cx, outer);
    cr_assert(eq(sz, base_used(cx), 0));
}

Test(arena, keeps_the_error_text_when_a_mark_is_released)
{
    base_mark mark = base_arena_mark(cx);

    base_fail(cx, TEC_INVALID, (base_loc){.file = "a.te", .line = 1}, "%s",
              base_format(cx, "stage '%s'", "C"));
    base_arena_release(cx, mark);
    memset(base_alloc(cx, 1000), 0xff, 1000);
    cr_assert(eq(str, (char *)tec_context_error(cx), "a.te:1: error: stage 'C'"));
}

static long resident_pages(void)
{
    long total, resident = -1;
    FILE *f = fopen("/proc/self/statm", "r");

    cr_assert(f != NULL);
    cr_assert(eq(int, fscanf(f, "%ld %ld", &total, &resident), 2));
    fclose(f);
    return resident;
}

static void use_and_reset(tec_context *child, int times)
{
    for (int i = 0; i < times; i++) {
        base_alloc(child, 300000);
        for (int k = 0; k < 8; k++)
            base_alloc(child, 50000);
        base_fail(child, TEC_INVALID, (base_loc){.file = "a.te", .line = i}, "number %d", i);
        base_reset(child);
    }
}

/* The sanitizers keep freed memory in quarantine on purpose, and are slow; the claim is about the plain
 * build. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RESETS = 500, SLACK_PAGES = 1 << 20 };
#else
/* the kernel counts in batches; ten bytes a reset would be 244 pages */
enum { RESETS = 100000, SLACK_PAGES = 256 };
#endif

Test(arena, stays_of_one_size_over_many_resets)
{
    tec_context *child = base_child(cx);

    use_and_reset(child, 100);
    long before = resident_pages();
    use_and_reset(child, RESETS);
    cr_assert(le(long, resident_pages(), before + SLACK_PAGES));
    tec_context_free(child);
}

Test(arena, copies_bytes)
{
    char *copy = base_copy(cx, "ab\0cd", 5);

    cr_assert(eq(int, memcmp(copy, "ab\0cd", 5), 0));
    cr_assert(base_copy(cx, NULL, 0) != NULL);
}

static void *guarded_array(size_t n, size_t size)
{
    BASE_GUARD(cx, NULL);
    return base_alloc_array(cx, n, size);
}

Test(arena, refuses_a_size_that_would_wrap)
{
    cr_assert(guarded_array(SIZE_MAX / 8, 16) == NULL);
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_NO_MEMORY));
}
