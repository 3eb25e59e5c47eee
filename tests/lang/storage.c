/* tests/lang/storage.c -- the memory of programs: storages that are shared, tensors that are extended where
 * they stand, and what the system is asked for.
 */
#include "tests/lang/kit.h"

TestSuite(storage, .init = open_context, .fini = close_context);

/* Four kernels in a row, whose results nobody keeps, then a branch. */
#define CHAIN                                                                                                \
    "def main(x: f32[n, 4], k: bool) -> f32[n, 4] {\n"                                                       \
    "  let y = softmax(softmax(softmax(softmax(x, axis = 1), axis = 0), axis = 1), axis = 0)\n"              \
    "  if k { softmax(y, axis = 1) } else { x }\n}\n"

/* A cache that gets a row in each step. */
#define DECODE                                                                                               \
    "graph \"g\" { function \"main\" { symbols d\ninput v0 \"row\": f32[1, 16]\ninput v1 \"steps\": i64[]\n" \
    "v9: f32[d, 16] = loop \"decode\"(v1, _, v0) { symbols n\n"                                              \
    "input i: i64[] input go: bool[] input c: f32[n, 16]\n"                                                  \
    "v5: f32[1, 16] = op neg \"r\"(v0)\nv6: f32[n + 1, 16] = op concat \"append\"(c, v5) @axis(0)\n"         \
    "output go output v6 }\noutput \"y\" v9 } }"

static const char *planned(const char *text)
{
    graph_built *b = graph_build(lang_parse(cx, "p.tecp", text, NULL),
                                 &(graph_build_options){.target = target_parse(cx, "native"), .jobs = 1});

    cr_assert(b, "%s", tec_context_error(cx));
    return graph_text(cx, b->planned, 0);
}

/* In turns two places, as two of the results live at one time. The last result is read in a region, and has a
 * storage of its own. */
Test(storage, short_lived_tensors_share_one_storage)
{
    const char *text = planned(CHAIN);

    cr_assert(strstr(text, "= alloc_storage \"softmax\"()\n"
                           "    v3: f32[n, 4] = alloc_tensor \"softmax\"(v2) @offset(exprs [0])\n"),
              "%s", text);
    cr_assert(strstr(text, "    v4: f32[n, 4] = alloc_tensor \"softmax\"(v2) @offset(exprs "
                           "[floordiv(n + 3, 4) * 64])\n"),
              "%s", text);
    cr_assert(strstr(text, "    v5: f32[n, 4] = alloc_tensor \"softmax\"(v2) @offset(exprs [0])\n"), "%s",
              text);
    cr_assert(strstr(text, "    v6: u8[n * 16] = alloc_storage \"softmax\"()\n"), "%s", text);
}

Test(storage, a_plan_in_which_tensors_overlap_is_refused)
{
    const char *text = planned(CHAIN), *second = strstr(text, "@offset(exprs [floordiv(n + 3, 4) * 64])");

    cr_assert(second);
    cr_assert_null(graph_parse(
        cx, "plan",
        base_format(cx, "%.*s@offset(exprs [0])%s", (int)(second - text), text, strchr(second, ')') + 6),
        NULL));
    cr_assert(tec_context_error(cx));
}

/* A box of a vector, which two vectors follow that live for a short while. */
#define BOXED(n)                                                                                             \
    "type Box = Box(f32[" n "])\n"                                                                           \
    "def main(x: f32[" n "]) -> (Box, f32[" n "]) {\n"                                                       \
    "  let y = softmax(x, axis = 0)\n  let b = Box(y)\n"                                                     \
    "  (b, softmax(softmax(softmax(y, axis = 0), axis = 0), axis = 0))\n}\n"

Test(storage, what_a_value_holds_shares_nothing)
{
    const char *text = planned(BOXED("1040"));

    cr_assert(strstr(text, "v1: u8[4160] = alloc_storage \"softmax\"()"), "%s", text);
    cr_assert(strstr(text, "u8[8320] = alloc_storage \"softmax\"()"), "%s", text);
}

/* The heap keeps tensors of a known shape for the next one. */
Test(storage, small_tensors_of_a_known_shape_share_nothing)
{
    const char *text = planned(BOXED("1024"));

    cr_assert_null(strstr(text, "u8[8192] = alloc_storage"), "%s", text);
}

/* All probabilities are sorted; the result is a view of their beginning, not a copy. */
Test(storage, the_beginning_of_a_tensor_is_a_view)
{
    const char *text = planned("def main(p: f32[n], limit: f32) -> (f32[?], i64[?]) { top_p(p, limit) }");

    cr_assert_null(strstr(text, "slice"), "%s", text);
    cr_assert(strstr(text, ": f32[d0] = alloc_tensor \"top_p\"("), "%s", text);
}

/* A view would be an object; as a part of the kernel that reads it, the beginning costs nothing. */
Test(storage, the_beginning_of_a_tensor_goes_into_the_kernel_that_reads_it)
{
    const char *text =
        planned("def main(x: f32[2, 4]) -> f32[1, 4] {\n"
                "  tanh(slice(softmax(x, axis = 1), begin = [0, 0], extent = [1, 4], step = [1, 1]))\n"
                "}\n");

    cr_assert(strstr(text, "invoke \"slice+tanh\""), "%s", text);
}

static tec_program_counts counts_of(const compiled *c, tec_object *const *in, int n)
{
    tec_program_counts counts;
    tec_object *out;

    cr_assert(tec_program_run(c->p, in, n, &out, 1, &err), "%s", err.text);
    cr_assert(tec_program_count(c->p, &counts));
    tec_object_free(out);
    return counts;
}

static compiled compile_with(const char *text, bool unoptimised)
{
    compiled c = {.graph = lang_parse(cx, "p.tecp", text, NULL)};
    graph_built *b = graph_build(
        lang_parse(cx, "p.tecp", text, NULL),
        &(graph_build_options){.target = target_parse(cx, "native"), .jobs = 1, .unoptimised = unoptimised});

    cr_assert(b, "%s", tec_context_error(cx));
    c.module = graph_load(b);
    c.p = tec_program_new(c.module, NULL, &(tec_program_options){.run = {.threads = 1}}, &err);
    cr_assert(c.p, "%s", err.text);
    return c;
}

Test(storage, planning_saves_allocations_and_bytes)
{
    tec_program_counts counts[2];

    for (int k = 0; k < 2; k++) {
        compiled c = compile_with(CHAIN, k);
        tec_object *in[] = {object_of(&c, interp_tensor(cx, BASE_F32, 2, (const int64_t[]){100, 4}, NULL)),
                            object_of(&c, interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){1}))};

        counts[k] = counts_of(&c, in, 2);
        tec_object_free(in[0]);
        tec_object_free(in[1]);
        discard(&c);
    }
    cr_assert_eq(counts[0].storages, 3, "%lld", (long long)counts[0].storages);
    cr_assert_eq(counts[1].storages, 5, "%lld", (long long)counts[1].storages);
    cr_assert_lt(counts[0].storage_bytes, counts[1].storage_bytes);
    cr_assert_lt(counts[0].peak, counts[1].peak);
}

/* The blocks double, so each row is moved twice at most in the mean, and copied once: 192 bytes for one of
 * 64, however many steps there are. */
Test(storage, bytes_copied_for_each_step_do_not_grow_with_the_length)
{
    compiled c = compile_graph(DECODE, NULL);
    float data[16] = {1};
    tec_object *row = object_of(&c, interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 16}, data));

    for (int64_t steps = 100; steps <= 2000; steps += 100) {
        tec_object *in[] = {row, object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &steps))};
        tec_program_counts counts = counts_of(&c, in, 2);

        cr_assert_geq(counts.copied, steps * 64);
        cr_assert_leq(counts.copied, steps * 64 * 3, "%lld steps: %lld bytes", (long long)steps,
                      (long long)counts.copied);
        tec_object_free(in[1]);
    }
    tec_object_free(row);
    discard(&c);
}

#define CALLS                                                                                                \
    "def go(i: i64, all: f32[?, 16], y: f32[1, 16], n: i64) -> f32[?, 16] {\n"                               \
    "  if i < n { go(i + 1, concat(all, y, axis = 0), tanh(y), n) } else { all }\n}\n"                       \
    "def main(y: f32[1, 16], n: i64) -> f32[?, 16] { go(0, y, y, n) }\n"

/* The cache belongs to the function, and is extended in a branch, behind which nothing reads it. */
Test(storage, a_function_that_calls_itself_extends_its_tensor)
{
    compiled c = compile(CALLS, NULL);
    tec_object *row = object_of(&c, interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 16}, NULL));

    for (int64_t steps = 100; steps <= 2000; steps += 100) {
        tec_object *in[] = {row, object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &steps))};
        tec_program_counts counts = counts_of(&c, in, 2);

        cr_assert_geq(counts.copied, steps * 64, "%lld steps: %lld bytes", (long long)steps,
                      (long long)counts.copied);
        cr_assert_leq(counts.copied, steps * 64 * 4, "%lld steps: %lld bytes", (long long)steps,
                      (long long)counts.copied);
        tec_object_free(in[1]);
    }
    tec_object_free(row);
    discard(&c);
    for (int64_t steps = 0; steps < 40; steps += 13)
        agree_on(compile(CALLS, NULL),
                 (interp_value *[]){
                     interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 16}, (const float[16]){3, -1, 2}),
                     interp_tensor(cx, BASE_I64, 0, NULL, &steps)},
                 2, 1);
}

/* Where the branch is not the last of the function, or the value is read again, it stays as it is. */
Test(storage, a_tensor_that_is_read_behind_a_branch_is_left_as_it_is)
{
    for (uint8_t flag = 0; flag < 2; flag++)
        agree_on(
            compile("def main(x: f32[n, 2], c: bool) -> (f32[?, 2], f32[n, 2]) {\n"
                    "  let a = if c { concat(x, x * 2, axis = 0) } else { x }\n"
                    "  (concat(a, x, axis = 0), x * 3)\n}",
                    NULL),
            (interp_value *[]){interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 2}, (const float[]){1, 2}),
                               interp_tensor(cx, BASE_BOOL, 0, NULL, &flag)},
            2, 1);
}

Test(storage, a_cache_that_was_extended_has_the_right_rows)
{
    for (int64_t steps = 0; steps < 40; steps += 13)
        agree_on(compile_graph(DECODE, NULL),
                 (interp_value *[]){
                     interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 16}, (const float[16]){3, -1, 2}),
                     interp_tensor(cx, BASE_I64, 0, NULL, &steps)},
                 2, 1);
}

/* A value that is read later is not extended: both of its readers see what it was. */
Test(storage, a_tensor_that_is_read_again_is_left_as_it_is)
{
    interp_value *x = interp_tensor(cx, BASE_F32, 2, (const int64_t[]){1, 2}, (const float[]){1, 2});

    agree_on(compile("def main(x: f32[n, 2]) -> (f32[?, 2], f32[?, 2], f32[n, 2]) {\n"
                     "  let a = concat(x, x * 2, axis = 0)\n"
                     "  (concat(a, x, axis = 0), concat(a, x * 3, axis = 0), x)\n}",
                     NULL),
             &x, 1, 1);
}

#define LOOP                                                                                                 \
    "graph \"g\" { function \"main\" { input n: i64[]\ninput x: f32[64, 4]\n"                                \
    "v1: f32[64, 4] = loop \"l\"(n, _, x) { input i: i64[] input go: bool[] input y: f32[64, 4]\n"           \
    "a: f32[64, 4] = op softmax \"a\"(y) @axis(1)\nb: f32[64, 4] = op softmax \"b\"(a) @axis(0)\n"           \
    "output go output b }\noutput \"y\" v1 } }"

Test(storage, a_loop_asks_the_system_for_memory_in_its_first_iterations_only)
{
    int64_t asked[2];

    for (int k = 0; k < 2; k++) {
        compiled c = compile_graph(LOOP, NULL);
        int64_t n = k ? 1000 : 3;
        tec_object *in[] = {object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &n)),
                            object_of(&c, interp_tensor(cx, BASE_F32, 2, (const int64_t[]){64, 4}, NULL))};

        asked[k] = counts_of(&c, in, 2).from_system;
        cr_assert_eq(counts_of(&c, in, 2).from_system, 0, "a second run finds all blocks");
        tec_object_free(in[0]);
        tec_object_free(in[1]);
        discard(&c);
    }
    cr_assert_eq(asked[0], asked[1], "%lld, %lld", (long long)asked[0], (long long)asked[1]);
}
