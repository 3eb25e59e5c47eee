/* Records as lines of JSON, from friends and from enemies. */
#include <time.h>

#include "tests/store/kit.h"

TestSuite(json, .init = set_up, .fini = tear_down);

static const store_record *parse(const char *line)
{
    return store_json_parse(cx, line, strlen(line));
}

static void expect_refused(const char *line, const char *part)
{
    cr_assert(parse(line) == NULL, "accepted: %s", line);
    expect_error(part);
}

#define KEYS "\"workload\":{\"anchor_key\":\"a\",\"exact_key\":\"e\"},\"target\":{\"fingerprint\":\"t\"}"
#define LINE(rest) "{\"tec_record\":1," KEYS ",\"status\":\"timeout\"" rest "}"

Test(json, a_record_reads_back_to_the_last_bit)
{
    uint64_t seed = 1;

    for (int i = 0; i < 200; i++) {
        store_record r = record(4, i, 1e-6 + base_random_unit(&seed));
        unsigned char features[64];
        char hash[2][STORE_HASH_SIZE];

        for (int k = 0; k < 64; k++)
            features[k] = (unsigned char)base_random(&seed);
        r.features = features;
        r.features_size = (size_t)i % 65;
        r.features_version = 2;
        r.seed = base_random(&seed);
        r.point = "{\"C.y\": [4, 12], \"pack\": \"panel\"}";
        r.driver = "PoCL 3.1";
        r.clock_mhz = 1500;
        r.temperature = i - 40.25; /* a board in the cold */
        r.trace = "tab\t \"quoted\" back\\slash\nline \xc3\xa4 \x7f\x01 \\u0000 end";
        const char *line = store_json(cx, &r);
        cr_assert(strchr(line, '\n') == NULL);
        const store_record *got = parse(line);
        cr_assert(got != NULL, "%s", tec_context_error(cx));
        cr_assert(eq(str, (char *)store_record_hash(got, hash[0]),
                     (char *)store_record_hash(store_complete(cx, &r), hash[1])));
        cr_assert(eq(str, (char *)store_json(cx, got), (char *)line));
        cr_assert(eq(str, (char *)got->point, (char *)r.point));
        cr_assert(eq(str, (char *)got->driver, (char *)r.driver));
        cr_assert(eq(i64, got->clock_mhz, 1500));
        cr_assert(eq(dbl, got->temperature, r.temperature));
        cr_assert(eq(sz, got->features_size, r.features_size));
        cr_assert(r.features_size == 0 || memcmp(got->features, features, r.features_size) == 0);
    }
}

Test(json, unknown_fields_are_passed_over_and_missing_ones_are_empty)
{
    const store_record *r = parse(LINE(",\"from the future\":{\"x\":[1,2,{}]},\"seed\":\"7\""));

    cr_assert(r != NULL, "%s", tec_context_error(cx));
    cr_assert(eq(int, (int)r->status, STORE_TIMEOUT));
    cr_assert(eq(u64, r->seed, 7));
    cr_assert(eq(int, r->n_costs, 0));
    cr_assert(r->features == NULL);
    cr_assert(eq(i64, r->clock_mhz, 0));
    cr_assert(strstr(store_json(cx, r), "clock_mhz") == NULL);
    cr_assert(parse(LINE("")) != NULL);
}

Test(json, refuses_what_is_no_record_and_says_why)
{
    expect_refused("", "not JSON, at byte 1");
    expect_refused("{\"tec_record\":1", "not JSON");
    expect_refused(LINE("") "x", "not JSON");
    expect_refused("[]", "expected a JSON object");
    expect_refused("{}", "not a record: there is no \"tec_record\"");
    expect_refused("{\"tec_record\":2}",
                   "the record has version 2 of the format, but tec " TEC_VERSION " reads version 1");
    expect_refused("{\"tec_record\":1}", "status: expected a known status");
    expect_refused("{\"tec_record\":1,\"status\":\"timeout\"}", "workload.anchor_key is missing");
    expect_refused("{\"tec_record\":1,\"workload\":7}", "workload: expected an object");
    expect_refused("{\"tec_record\":1," KEYS ",\"status\":\"fine\"}", "status: expected a known status");
    expect_refused("{\"tec_record\":1," KEYS ",\"status\":\"ok\"}",
                   "a record that is ok needs at least one cost");
    expect_refused(LINE(",\"costs\":[1,\"2\"]"), "costs: expected numbers alone");
    expect_refused(LINE(",\"costs\":[1e999]"), "costs[0] is inf; expected a finite number");
    expect_refused(LINE(",\"costs\":[-1]"), "costs[0] is -1; expected a finite number, not below zero");
    expect_refused(LINE(",\"costs\":{}"), "costs: expected an array of at most 4096 numbers");
    expect_refused(LINE(",\"seed\":7"), "seed: expected a string of digits below 2^64");
    expect_refused(LINE(",\"seed\":\"-7\""), "seed: expected a string of digits below 2^64");
    expect_refused(LINE(",\"seed\":\"18446744073709551616\""),
                   "seed: expected a string of digits below 2^64");
    expect_refused(LINE(",\"trial\":1.5"), "trial: expected a whole number");
    expect_refused(LINE(",\"trial\":1e300"), "trial: expected a whole number");
    expect_refused(LINE(",\"trace\":7"), "trace: expected a string");
    expect_refused(LINE(",\"trace\":\"\xff\""), "trace is not UTF-8 text");
    expect_refused(LINE(",\"features\":\"abc\""), "features: expected base64 text");
    expect_refused(LINE(",\"features\":\"ab=c\""), "features: expected base64 text");
    expect_refused(LINE(",\"features\":\"a===\""), "features: expected base64 text");
    expect_refused(LINE(",\"trace\":\"a\\u0000b\""), "unexpected NUL character at byte");
    expect_refused(LINE(",\"hash\":\"0123\""), "the record does not match its hash");
    cr_assert(store_json_parse(cx, "{}\0", 3) == NULL);
    expect_error("unexpected NUL character at byte 3");
}

Test(json, a_backslash_before_u0000_is_no_nul)
{
    const store_record *r = parse(LINE(",\"trace\":\"a\\\\u0000b\""));

    cr_assert(r != NULL, "%s", tec_context_error(cx));
    cr_assert(eq(str, (char *)r->trace, "a\\u0000b"));
}

Test(json, limits_hold_before_anything_is_built)
{
    size_t size = STORE_MAX_LINE + 1;
    char *line = malloc(size + 1);

    memset(line, '[', size);
    line[size] = '\0';
    cr_assert(store_json_parse(cx, line, size) == NULL);
    expect_error("expected at most 33554432 bytes, found 33554433");
    cr_assert(store_json_parse(cx, line, 50000) == NULL);
    expect_error("not JSON");
    memset(line, ',', size);
    cr_assert(store_json_parse(cx, line, 1000000) == NULL);
    expect_error("expected at most 100000 values, found 1000000");
    free(line);
}

/* Flips, drops, doubles and cuts bytes of good lines: whatever comes out is a record that is whole, or an
 * error. */
static void mutate(char *line, size_t *size, uint64_t *seed)
{
    static const char likely[] = "{}[]\",:\\0123456789eE+-.untf\xff\x80\xc3";
    size_t at = (size_t)base_random_below(seed, (int64_t)*size);

    switch (base_random_below(seed, 4)) {
    case 0: line[at] = (char)base_random(seed); break;
    case 1: line[at] = likely[base_random_below(seed, sizeof likely)]; break;
    case 2: memmove(line + at, line + at + 1, --*size - at); break;
    case 3: *size = at + 1; break;
    }
}

Test(json, damaged_lines_are_refused_or_read_but_never_crash)
{
    uint64_t seed = (uint64_t)time(NULL);
    store_record r = record(4, 1, 0.25);
    int accepted = 0;

    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    r.features = "feature";
    r.features_size = 7;
    const char *line = base_format(cx, "%s", store_json(cx, &r));
    size_t length = strlen(line);
    tec_context *own = base_child(cx);
    for (int i = 0; i < 20000; i++, base_reset(own)) {
        char *copy = malloc(length);
        size_t size = length;

        memcpy(copy, line, length);
        for (int64_t n = 1 + base_random_below(&seed, 4); n > 0 && size > 1; n--)
            mutate(copy, &size, &seed);
        const store_record *got = store_json_parse(own, copy, size);
        free(copy);
        if (!got) {
            cr_assert(base_failed(own));
            continue;
        }
        accepted++;
        cr_assert(store_complete(own, got) != NULL);
        cr_assert(store_json(own, got) != NULL);
    }
    tec_context_free(own);
    cr_assert(accepted < 20000);
}
