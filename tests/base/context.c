/* The context: which error is kept, how it reads, what a child inherits, what reaches the log. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static tec_context *cx;

static void set_up(void)
{
    cx = tec_context_new();
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(context, .init = set_up, .fini = tear_down);

Test(context, has_no_error_at_first)
{
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_OK));
    cr_assert(tec_context_error(cx) == NULL);
    cr_assert(not(base_failed(cx)));
}

Test(context, says_file_line_and_message)
{
    cr_assert(base_fail(cx, TEC_INVALID, (base_loc){.file = "conv.te", .line = 41}, "cannot unroll '%s'",
                        "rc") == NULL);
    cr_assert(eq(str, (char *)tec_context_error(cx), "conv.te:41: error: cannot unroll 'rc'"));
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_INVALID));
}

Test(context, leaves_out_the_line_where_there_is_none)
{
    base_fail(cx, TEC_IO, (base_loc){.file = "model.onnx"}, "cannot open");
    cr_assert(eq(str, (char *)tec_context_error(cx), "model.onnx: error: cannot open"));
}

Test(context, leaves_out_the_file_where_there_is_none)
{
    base_fail(cx, TEC_UNSUPPORTED, (base_loc){.line = 7}, "no such thing");
    cr_assert(eq(str, (char *)tec_context_error(cx), "error: no such thing"));
}

Test(context, puts_each_note_on_a_line_of_its_own)
{
    base_fail(cx, TEC_INVALID, (base_loc){.file = "a.te", .line = 3}, "no '%s'", "k");
    base_note(cx, (base_loc){.file = "a.te", .line = 1}, "'%s' was declared here", "i");
    base_note(cx, (base_loc){0}, "so was '%s'", "j");
    cr_assert(eq(str, (char *)tec_context_error(cx),
                 "a.te:3: error: no 'k'\na.te:1: note: 'i' was declared here\nnote: so was 'j'"));
}

Test(context, keeps_the_first_error_and_drops_the_notes_of_later_ones)
{
    base_fail(cx, TEC_INVALID, (base_loc){.file = "a.te", .line = 3}, "first");
    base_fail(cx, TEC_IO, (base_loc){.file = "b.te", .line = 4}, "second");
    base_note(cx, (base_loc){.file = "b.te", .line = 5}, "note of the second");
    cr_assert(eq(str, (char *)tec_context_error(cx), "a.te:3: error: first"));
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_INVALID));
}

Test(context, takes_a_new_error_after_it_was_cleared)
{
    base_fail(cx, TEC_INVALID, (base_loc){.file = "a.te", .line = 3}, "first");
    tec_context_clear(cx);
    cr_assert(tec_context_error(cx) == NULL);
    base_note(cx, (base_loc){.file = "a.te", .line = 3}, "of an error that is gone");
    cr_assert(tec_context_error(cx) == NULL);
    base_fail(cx, TEC_IO, (base_loc){.file = "b.te", .line = 4}, "second");
    cr_assert(eq(str, (char *)tec_context_error(cx), "b.te:4: error: second"));
}

Test(context, never_reports_a_failure_as_ok)
{
    base_fail(cx, TEC_OK, (base_loc){0}, "slip of a caller");
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_INTERNAL));
}

Test(context, keeps_a_message_of_any_length)
{
    char long_name[5000];

    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    base_fail(cx, TEC_INVALID, (base_loc){.file = long_name, .line = 1}, "'%s'", long_name);
    cr_assert(eq(sz, strlen(tec_context_error(cx)), 2 * 4999 + strlen(":1: error: ''")));
}

Test(context, remembers_where_the_caller_stands)
{
    cr_assert(tec_here(cx, "user.c", 12) == cx);
    cr_assert(eq(str, (char *)base_where(cx).file, "user.c"));
    cr_assert(eq(int, base_where(cx).line, 12));
    base_set_where(cx, (base_loc){.file = "other.te", .line = 3});
    cr_assert(eq(str, (char *)base_where(cx).file, "other.te"));
    cr_assert(tec_here(NULL, "user.c", 1) == NULL);
}

Test(context, of_a_child_has_an_error_slot_of_its_own)
{
    tec_context *child = base_child(cx);

    base_fail(child, TEC_INVALID, (base_loc){0}, "only the child's");
    cr_assert(base_failed(child));
    cr_assert(not(base_failed(cx)));
    base_reset(child);
    cr_assert(not(base_failed(child)));
    tec_context_free(child);
}

struct heard {
    int n, level;
    char text[200];
};

static void listen(void *user, int level, const char *text)
{
    struct heard *heard = user;

    heard->n++;
    heard->level = level;
    strncpy(heard->text, text, sizeof heard->text - 1);
}

Test(context, logs_up_to_the_level_that_was_asked_for)
{
    struct heard heard = {0};

    base_log(cx, 1, "nobody listens yet");
    cr_assert(eq(int, base_log_level(cx), 0));
    tec_context_set_log(cx, listen, &heard, 2);
    base_log(cx, 2, "stage %s", "C");
    base_log(cx, 3, "too much detail");
    cr_assert(eq(int, heard.n, 1));
    cr_assert(eq(int, heard.level, 2));
    cr_assert(eq(str, heard.text, "stage C"));
}

Test(context, of_a_child_logs_as_its_parent_does)
{
    struct heard heard = {0};

    tec_context_set_log(cx, listen, &heard, 1);
    tec_context *child = base_child(cx);
    base_log(child, 1, "from the child");
    cr_assert(eq(str, heard.text, "from the child"));
    tec_context_free(child);
}

#ifdef TEC_DEBUG
Test(context, ends_the_process_on_our_own_bug, .signal = SIGABRT)
{
    BASE_BUG(cx, "a walker met kind %d", 99);
}
#else
Test(context, reports_our_own_bug_as_internal)
{
    cr_assert(BASE_BUG(cx, "a walker met kind %d", 99) == NULL);
    cr_assert(eq(int, (int)tec_context_status(cx), TEC_INTERNAL));
    cr_assert(strstr(tec_context_error(cx), "error: a walker met kind 99") != NULL);
}
#endif

Test(context, names_every_status)
{
    cr_assert(eq(str, (char *)tec_status_text(TEC_OK), "ok"));
    cr_assert(eq(str, (char *)tec_status_text(TEC_INTERNAL), "internal error"));
    cr_assert(eq(str, (char *)tec_status_text((tec_status)1000), "unknown status"));
}

Test(context, may_be_freed_when_it_is_null)
{
    tec_context_free(NULL);
}

Test(context, knows_the_version_of_the_library)
{
    int major, minor, patch, end = 0;

    cr_assert(eq(int, sscanf(tec_version(), "%d.%d.%d%n", &major, &minor, &patch, &end), 3));
    cr_assert(eq(chr, tec_version()[end], '\0'));
}

Test(context, adopts_the_error_of_another_with_its_notes)
{
    tec_context *a = tec_context_new(), *b = base_child(a);

    base_fail(b, TEC_UNSUPPORTED, (base_loc){.file = "f.te", .line = 3}, "what");
    base_note(b, (base_loc){0}, "why");
    base_adopt(a, b);
    base_note(a, (base_loc){0}, "where");
    base_adopt(a, b);
    tec_context_free(b);
    cr_assert(eq(int, tec_context_status(a), TEC_UNSUPPORTED));
    cr_assert_str_eq(tec_context_error(a), "f.te:3: error: what\nnote: why\nnote: where");
    tec_context_free(a);
}
