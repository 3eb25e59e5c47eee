/* The table of paths against docs/openapi.json, and requests that are damaged at random: each gets one
 * answer. */
#include "tvmtune/routes.h"

#include <cjson/cJSON.h>
#include <ctype.h>

#include "tests/store/kit.h"

TestSuite(routes, .init = set_up, .fini = tear_down);

static cJSON *page(void)
{
    size_t size;
    const char *text = base_read_file(cx, TEC_SOURCE_DIR "/docs/openapi.json", &size);
    cJSON *j = cJSON_Parse(text);

    cr_assert(j != NULL, "docs/openapi.json is no JSON");
    return j;
}

/* Every row is in the page, and the page has as many operations as the table has rows. */
Test(routes, are_those_of_the_page)
{
    cJSON *j = page();
    const cJSON *paths = cJSON_GetObjectItemCaseSensitive(j, "paths"), *p;
    const char *method, *path;
    int rows = 0, operations = 0;

    for (; tvm_route_row(cx, rows, &method, &path); rows++) {
        char *lower = base_strdup(cx, method);

        for (char *c = lower; *c; c++)
            *c = (char)tolower(*c);
        const cJSON *operation =
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(paths, path), lower);
        cr_assert(operation != NULL, "docs/openapi.json has no '%s %s'", method, path);
    }
    cJSON_ArrayForEach(p, paths) operations += cJSON_GetArraySize(p);
    cr_assert(eq(int, rows, operations));
    cJSON_Delete(j);
}

/* A job has the members that the page requires, and no others. */
Test(routes, show_a_job_as_the_page_says)
{
    cJSON *j = page();
    cJSON *job = cJSON_Parse(tvm_job_json(cx, &(store_queued){.id = 1, .name = "a.te", .cause = ""}));
    const cJSON *schemas = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "components"), "schemas");
    const cJSON *required = cJSON_GetObjectItem(cJSON_GetObjectItemCaseSensitive(schemas, "Job"), "required"),
                *name;

    cr_assert(eq(int, cJSON_GetArraySize(job), cJSON_GetArraySize(required)));
    cJSON_ArrayForEach(name, required)
        cr_assert(cJSON_HasObjectItem(job, name->valuestring), "a job has no '%s'", name->valuestring);
    cJSON_Delete(job);
    cJSON_Delete(j);
}

/* ---- damaged requests ---- */

static const char *const methods[] = {"GET", "POST", "DELETE", "PUT", ""};
static const char *const pieces[] = {
    "/v1",     "/jobs",     "/1",        "/2",          "/0",         "/99999999999999999999",
    "/pause",  "/resume",   "/cancel",   "/files",      "/module",    "/input",
    "/report", "/v1/users", "/v1/audit", "/v1/records", "/v1/events", "/v1/devices",
    "/ada",    "/..",       "/",         "%00",         "\xff",       "/metrics"};
static const char *const keys[] = {"name", "trials",     "seconds", "priority",     "target", "threads",
                                   "dim",  "definition", "seed",    "device-class", "",       "x"};
static const char *const values[] = {
    "a.te", "b.onnx",  "-1",          "0",   "7",           "99999999999999999999",
    "",     "../a.te", "\xc3\x28.te", "n=4", "--records=x", "a\"b\\.te"};

static const char *pick(uint64_t *seed, const char *const *from, int n)
{
    return from[base_random_below(seed, n)];
}

static const char *random_path(tec_context *in, uint64_t *seed)
{
    base_text t = {0};

    base_add(in, &t, base_random_below(seed, 3) ? "/v1/jobs" : "");
    for (int64_t n = base_random_below(seed, 4); n > 0; n--)
        base_add(in, &t, pick(seed, pieces, BASE_COUNT(pieces)));
    if (t.n && base_random_below(seed, 4) == 0)
        t.data[base_random_below(seed, (int64_t)t.n)] = (char)(1 + base_random_below(seed, 255));
    return base_text_str(in, &t);
}

static int ask_at_random(store *s, uint64_t *seed)
{
    tec_context *in = tec_context_new();
    const char *k[4], *v[4];
    int n = (int)base_random_below(seed, 5);

    for (int i = 0; i < n; i++) {
        k[i] = i == 0 && base_random_below(seed, 2) ? "name" : pick(seed, keys, BASE_COUNT(keys));
        v[i] = base_random_below(seed, 20) ? pick(seed, values, BASE_COUNT(values)) : NULL;
    }
    const tvm_request r = {.db = s,
                           .user = base_random_below(seed, 2) ? "owner" : "ada",
                           .admin = base_random_below(seed, 2),
                           .quota = base_random_below(seed, 3),
                           .tracker = base_random_below(seed, 2) ? "127.0.0.1:1" : NULL,
                           .method = pick(seed, methods, BASE_COUNT(methods)),
                           .path = random_path(in, seed),
                           .keys = k,
                           .values = v,
                           .n_pairs = n,
                           .body = "def",
                           .body_size = (size_t)base_random_below(seed, 4)};
    const tvm_answer a = tvm_route(in, &r);
    bool json = strcmp(a.type, "application/json") == 0;
    cJSON *parsed = json ? cJSON_ParseWithLength(a.data, a.size) : NULL;
    cr_assert(a.status >= 200 && a.status != 500 && a.status < 600, "%s '%s' is answered with %d", r.method,
              r.path, a.status);
    cr_assert(json == (parsed != NULL), "%s '%s' is answered with '%s'", r.method, r.path,
              (const char *)a.data);
    cJSON_Delete(parsed);
    tec_context_free(in);
    return a.status;
}

Test(routes, answer_damaged_requests_without_a_failure_of_their_own)
{
    const char *given = getenv("TEC_MUTATION_SEED"), *often = getenv("TEC_MUTATIONS");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)getpid();
    int64_t seen[600] = {0}, running;
    store *s = open_store("a.db");

    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    cr_assert(eq(i64, store_queue_add(cx, s, &(store_queued){.name = "a.te", .user = "ada"}, "def", 3), 1));
    cr_assert(store_queue_take(cx, s, "here", 60, &running));
    for (int64_t i = often ? strtoll(often, NULL, 10) : 5000; i > 0; i--)
        seen[ask_at_random(s, &seed)]++;
    cr_assert(seen[200] && seen[400] && seen[404] && seen[405]);
    /* one in some hundred requests changes a job or may not: which of these answers come is up to the seed */
    cr_assert_gt(seen[201] + seen[202] + seen[409], 0);
    cr_assert_gt(seen[403], 0);
    cr_assert(eq(i64, problems(s), 0));
    store_close(s);
}
