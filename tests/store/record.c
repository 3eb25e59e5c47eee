/* What a record is: its numbers, its limits, its hash. */
#include <math.h>

#include "tests/store/kit.h"

TestSuite(record, .init = set_up, .fini = tear_down);

Test(record, median_and_spread_of_its_costs)
{
    double m, s;

    store_summarise((double[]){5, 1, 3}, 3, &m, &s);
    cr_assert(eq(dbl, m, 3));
    cr_assert(eq(dbl, s, 2));
    store_summarise((double[]){1, 1, 1, 100}, 4, &m, &s);
    cr_assert(eq(dbl, m, 1));
    cr_assert(eq(dbl, s, 0));
    store_summarise((double[]){4, 2}, 2, &m, &s);
    cr_assert(eq(dbl, m, 3));
    cr_assert(eq(dbl, s, 1));
    store_summarise(NULL, 0, &m, &s);
    cr_assert(eq(dbl, m, 0));
}

Test(record, words_of_statuses_read_back)
{
    for (int i = STORE_OK; i <= STORE_CANCELLED; i++) {
        store_status s;

        cr_assert(store_status_parse(store_status_text((store_status)i), &s));
        cr_assert(eq(int, (int)s, i));
    }
    store_status s;
    cr_assert(not(store_status_parse("", &s)));
    cr_assert(eq(str, (char *)store_status_text((store_status)99), "unknown status"));
}

Test(record, completion_fills_in_version_time_and_sums)
{
    store_record r = record(4, 1, 0.5);

    r.time = 0;
    const store_record *c = store_complete(cx, &r);
    cr_assert(c != NULL);
    cr_assert(eq(str, (char *)c->version, (char *)tec_version()));
    cr_assert(c->time > 1700000000);
    cr_assert(eq(dbl, c->median, 0.5 * 1.01));
    cr_assert(eq(u64, c->workload.exact_hash, store_bytes_hash("conv 4 + relu", 13)));
}

Test(record, the_first_line_of_an_error_is_kept_as_text)
{
    store_record r = failure(4, 1, STORE_BUILD_ERROR, "llvm", "bad \xff\x01 here\tend\nsecond line");
    char lengthy[2000];

    cr_assert(eq(str, (char *)store_complete(cx, &r)->error, "bad ?? here end"));
    memset(lengthy, 'x', sizeof lengthy);
    memcpy(lengthy + STORE_MAX_ERROR - 1, "\xc3\xa4", 2);
    lengthy[sizeof lengthy - 1] = '\0';
    r.error = lengthy;
    const char *cut = store_complete(cx, &r)->error;
    cr_assert(eq(sz, strlen(cut), STORE_MAX_ERROR));
    cr_assert(eq(int, cut[STORE_MAX_ERROR - 1], '?'), "a character that is cut in two is none");
}

static void expect_bad(store_record r, const char *part)
{
    cr_assert(store_complete(cx, &r) == NULL, "%s", part);
    expect_error(part);
}

Test(record, says_what_is_wrong_with_it)
{
    store_record r = record(4, 1, 0.5);
    double costs[] = {1, NAN};

    r.workload.exact_key = NULL;
    expect_bad(r, "workload.exact_key is missing");
    r = record(4, 1, 0.5);
    r.target.fingerprint = "";
    expect_bad(r, "target.fingerprint is missing");
    r = record(4, 1, 0.5);
    r.trace = "\xc0\x80";
    expect_bad(r, "trace is not UTF-8 text");
    r.trace = "\xed\xa0\x80";
    expect_bad(r, "trace is not UTF-8 text");
    r = record(4, 1, 0.5);
    r.n_costs = 0;
    expect_bad(r, "a record that is ok needs at least one cost");
    r = record(4, 1, 0);
    expect_bad(r, "costs[0] is 0 seconds; expected more than zero");
    r = record(4, 1, 0.5);
    r.costs = costs;
    r.n_costs = 2;
    expect_bad(r, "costs[1] is nan; expected a finite number, not below zero");
    r.n_costs = STORE_MAX_COSTS + 1;
    expect_bad(r, "costs has 4097 numbers; 0 to 4096 are allowed");
    r = record(4, 1, 0.5);
    r.status = (store_status)77;
    expect_bad(r, "there is no status 77");
    r = record(4, 1, 0.5);
    r.features = "x";
    r.features_size = STORE_MAX_FEATURES + 1;
    expect_bad(r, "features has 4194305 bytes, over the limit of 4194304");
    r = record(4, 1, 0.5);
    r.trial = INT64_MAX;
    expect_bad(r, "trial is 9223372036854775807; expected a number between -2^53 and 2^53");
    r = record(4, 1, 0.5);
    char *name = base_alloc(cx, STORE_MAX_NAME + 2);
    memset(name, 'n', STORE_MAX_NAME + 1);
    r.tuner = name;
    expect_bad(r, "tuner has 4097 bytes, over the limit of 4096");
}

static const char *hash_of(store_record r)
{
    char hash[STORE_HASH_SIZE];

    return base_strdup(cx, store_record_hash(&r, hash));
}

Test(record, its_hash_depends_on_what_was_measured_and_not_on_what_was_added)
{
    store_record r = record(4, 1, 0.5), other = record(4, 1, 0.5);
    const char *hash = hash_of(r);

    other.id = 9;
    other.job = "a job";
    other.features = "abc";
    other.features_size = 3;
    other.workload.definition = "written anew";
    cr_assert(eq(str, (char *)hash_of(other), (char *)hash));
    other = r;
    other.trial = 2;
    cr_assert(ne(str, (char *)hash_of(other), (char *)hash));
    other = r;
    other.n_costs = 2;
    cr_assert(ne(str, (char *)hash_of(other), (char *)hash));
    other = r;
    other.stage = "a";
    other.error_kind = "b";
    const char *one = hash_of(other);
    other.stage = "ab";
    other.error_kind = "";
    cr_assert(ne(str, (char *)hash_of(other), (char *)one), "texts do not run together");
}

/* Stores that lie on disks today must find their records again. */
Test(record, the_hash_is_the_same_for_ever)
{
    store_record r = record(4, 1, 0.5);

    r.version = "0.1.0";
    cr_assert(eq(str, (char *)hash_of(r), "a4ebb31f613772c1b32c432124bdce28"));
}
