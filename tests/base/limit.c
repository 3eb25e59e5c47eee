/* Limits: their usual values, what sets them, and who sees them. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/limit.h"

static tec_context *cx;

static void set_up(void)
{
    cx = tec_context_new();
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(limit, .init = set_up, .fini = tear_down);

static void refused(const char *name, int64_t value, const char *message)
{
    cr_assert_not(tec_context_set_limit(cx, name, value));
    cr_assert_str_eq(tec_context_error(cx), message);
    cr_assert_eq(tec_context_status(cx), TEC_INVALID);
    tec_context_clear(cx);
}

Test(limit, each_has_a_name_a_value_and_a_meaning)
{
    int n = 0;

    for (; tec_limit_name(n); n++) {
        const char *name = tec_limit_name(n);

        cr_assert_eq(tec_context_limit(cx, name), base_limit_rows[n].usual, "%s", name);
        cr_assert(base_limit_rows[n].usual >= 1 && base_limit_rows[n].usual <= base_limit_rows[n].most, "%s",
                  name);
        cr_assert(strlen(tec_limit_help(name)) > 10, "%s", name);
    }
    cr_assert_eq(n, BASE_N_LIMITS);
    cr_assert_null(tec_limit_name(-1));
    cr_assert_null(tec_limit_help("no-such-limit"));
    cr_assert_eq(tec_context_limit(cx, "no-such-limit"), 0);
}

Test(limit, holds_in_all_contexts_of_its_root)
{
    tec_context *before = base_child(cx);

    cr_assert(tec_context_set_limit(cx, "nodes", 7));
    tec_context *after = base_child(cx);
    cr_assert_eq(base_limit(cx, BASE_LIMIT_nodes), 7);
    cr_assert_eq(base_limit(before, BASE_LIMIT_nodes), 7);
    cr_assert_eq(base_limit(after, BASE_LIMIT_nodes), 7);
    cr_assert_eq(base_limit(cx, BASE_LIMIT_list), 1 << 16);
    cr_assert_str_eq(base_limit_text(after, BASE_LIMIT_nodes),
                     "the limit 'nodes' is 7 (--limit nodes=N, tec_context_set_limit)");
    tec_context *other = tec_context_new();
    cr_assert_eq(base_limit(other, BASE_LIMIT_nodes), 1 << 20);
    tec_context_free(other);
}

Test(limit, refuses_other_names_and_values)
{
    refused("node", 7, "error: there is no limit 'node'; did you mean 'nodes'?");
    refused("", 7, "error: there is no limit ''");
    refused("message-depth", 0, "error: limit 'message-depth': expected a number from 1 to 1000, found 0");
    refused("message-depth", 1001,
            "error: limit 'message-depth': expected a number from 1 to 1000, found 1001");
    cr_assert_eq(tec_context_limit(cx, "message-depth"), 100);
}

/* How a worker of the tuner gets the limits of its tuner. */
Test(limit, goes_to_another_process_as_text)
{
    cr_assert_str_eq(base_set_limits_text(cx), "");
    cr_assert(base_read_limits(cx, ""));
    cr_assert(base_read_limits(cx, "nodes=7,fold-work=9000000000000"));
    cr_assert_str_eq(base_set_limits_text(cx), "nodes=7,fold-work=9000000000000");
    cr_assert_eq(base_limit(cx, BASE_LIMIT_fold_work), 9000000000000);
    cr_assert_not(base_read_limits(cx, "nodes=x"));
    tec_context_clear(cx);
    cr_assert_not(base_read_limits(cx, "nodes"));
    tec_context_clear(cx);
    cr_assert_not(base_read_limits(cx, "knots=3"));
}
