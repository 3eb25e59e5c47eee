/* tests/regress/regress.c -- what the fuzzer found: every .te file of this folder, a definition with the
 * schedule that broke it, must now give the same results in the default tree, after the schedule, after every
 * pass and as machine code. A file whose schedule is refused now says so in a line "# refused"; any other
 * must be accepted to its last line.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>

#include "fuzz/fuzz.h"

static void check_file(const char *path, const char *target_text_)
{
    tec_context *cx = tec_context_new();
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    const target *t = target_parse(cx, target_text_);
    fuzz_case c;
    fuzz_result r;

    cr_assert(text && t && fuzz_case_parse(cx, path, text, &c), "%s", tec_context_error(cx));
    fuzz_check(cx, &c, t, &r);
    cr_assert(r.outcome == FUZZ_SAME, "%s for %s: %s: %s", path, target_text_, r.where, r.what);
    if (strstr(text, "\n# refused"))
        cr_assert(r.refused > 0, "%s: it is said that a step is refused, but all are accepted", path);
    else
        cr_assert(r.refused == 0, "%s: %d steps are refused", path, r.refused);
    tec_context_free(cx);
}

static void check_all(const char *target_text_)
{
    glob_t g;

    cr_assert(glob(TEC_SOURCE_DIR "/tests/regress/*.te", 0, NULL, &g) == 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        check_file(g.gl_pathv[i], target_text_);
    globfree(&g);
}

Test(regress, all_files_on_this_machine)
{
    check_all("native");
}
Test(regress, all_files_without_masks)
{
    check_all("llvm -mcpu=x86-64");
}
