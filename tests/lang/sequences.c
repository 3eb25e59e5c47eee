/* tests/lang/sequences.c -- fold, scan and map along a tensor, and parameters from a .safetensors file. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lang/kit.h"

TestSuite(sequences, .init = open_context, .fini = close_context);

static interp_value *matrix(int64_t rows, int64_t columns)
{
    interp_value *v = interp_tensor(cx, BASE_F32, 2, (const int64_t[]){rows, columns}, NULL);

    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)v->array.data)[i] = (float)(i % 5) - 1.5F;
    return v;
}

static interp_value *zeros(void)
{
    return interp_tensor(cx, BASE_F32, 1, (const int64_t[]){3}, (const float[]){0, 0, 0});
}

Test(sequences, fold_hands_a_state_on)
{
    for (int64_t n = 0; n < 4; n++)
        agree_on(compile("def main(x: f32[n, 3], s: f32[3]) -> f32[3] { fold(x, s, (s, r) => s * 0.5 + r) }",
                         NULL),
                 (interp_value *[]){matrix(n, 3), zeros()}, 2, 1);
}

Test(sequences, the_state_may_be_a_tuple_and_the_function_may_call)
{
    const char *text = "def both(a: f32[3], b: f32[3], r: f32[3]) -> (f32[3], f32[3]) { (b + r, a * r) }\n"
                       "def main(x: f32[n, 3], s: f32[3]) -> (f32[3], f32[3]) {\n"
                       "  fold(x, (s, s + 1), ((a, b), r) => both(a, b, r))\n"
                       "}\n";

    for (int64_t n = 0; n < 4; n++)
        agree_on(compile(text, NULL), (interp_value *[]){matrix(n, 3), zeros()}, 2, 1);
}

Test(sequences, scan_collects_beside_its_state)
{
    const char *text = "def main(x: f32[n, 3], s: f32[3]) -> (f32[3], f32[n, 3]) {\n"
                       "  let twice = s + 2\n"
                       "  scan(x, s, (s, r) => { let t = s + r  (t, t * twice) })\n"
                       "}\n";

    for (int64_t n = 0; n < 4; n++)
        agree_on(compile(text, NULL), (interp_value *[]){matrix(n, 3), zeros()}, 2, 1);
}

Test(sequences, map_gives_one_element_for_each)
{
    const char *text = "def main(x: f32[n, 3]) -> f32[n, 3] { map(map(x, (r) => r * 2), (r) => relu(r)) }\n";

    for (int64_t n = 0; n < 4; n++)
        agree_on(compile(text, NULL), (interp_value *[]){matrix(n, 3)}, 1, 1);
}

/* ---- parameters ---- */

/* A file with the header and so many floats 1, 2, 3, ... behind it; the caller unlinks it. */
static char *write_params(const char *header, int floats)
{
    char *path = base_strdup(cx, "/tmp/tec-params-XXXXXX");
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "wb");
    uint64_t size = strlen(header);

    fwrite(&size, sizeof size, 1, f);
    fwrite(header, 1, size, f);
    for (int i = 1; i <= floats; i++)
        fwrite(&(float){(float)i}, sizeof(float), 1, f);
    fclose(f);
    return path;
}

#define HEADER                                                                                               \
    "{\"__metadata__\":{\"made\":\"by hand\"},\"b\":{\"data_offsets\":[8,20],\"shape\":[3],"                 \
    "\"dtype\":\"F32\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
#define WITH(param) "param " param "\ndef main(x: f32[3]) -> f32[3] { x * b }\n"

Test(sequences, parameters_are_tensors_of_a_file)
{
    char *path = write_params(HEADER, 5);
    const lang_params *params = lang_params_read(cx, path);
    const char *text = "param b: f32[3], a: f32[2]\n"
                       "def twice(x: f32[3]) -> f32[3] { x * b * 2 }\n"
                       "def main(x: f32[3]) -> (f32[3], f32[2]) { (twice(x) + b, a + 1) }\n";

    cr_assert(params, "%s", tec_context_error(cx));
    unlink(path);
    interp_value *x = interp_tensor(cx, BASE_F32, 1, (const int64_t[]){3}, (const float[]){1, 2, 3}), *y;
    compiled c = build(lang_parse(cx, "p.tecp", text, params), lang_parse(cx, "p.tecp", text, params), NULL);
    cr_assert(interp_run(cx, c.graph, NULL, &x, 1, NULL, &y, 1), "%s", tec_context_error(cx));
    cr_assert_eq(memcmp(y->part[0]->array.data, (const float[]){9, 20, 35}, 12), 0);
    cr_assert_eq(memcmp(y->part[1]->array.data, (const float[]){2, 3}, 8), 0);
    agree_on(c, &x, 1, 1);
}

static void refuses(const char *header, int floats, const char *text, const char *message)
{
    char *path = write_params(header, floats);
    const lang_params *params = lang_params_read(cx, path);

    cr_assert(!params || !lang_parse(cx, "p.tecp", text, params), "%s", text);
    cr_assert(strstr(tec_context_error(cx), message), "found: %s\nexpected: %s", tec_context_error(cx),
              message);
    unlink(path);
    tec_context_clear(cx);
}

Test(sequences, a_file_that_does_not_fit_is_refused)
{
    refuses(HEADER, 5, WITH("c: f32[3]"), "has no tensor 'c'");
    refuses(HEADER, 5, WITH("b: f32[2]"), "the parameter 'b' is F32[3] in ");
    refuses(HEADER, 5, WITH("b: i32[3]"), "the parameter 'b' is F32[3] in ");
    refuses(HEADER, 4, WITH("b: f32[3]"), "the bytes of 'b' do not lie in ");
    refuses("{\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0]}}", 3, WITH("b: f32[3]"),
            "expected two offsets");
    refuses("{\"b\":{\"size\":3}}", 3, WITH("b: f32[3]"), "a tensor has no member 'size'");
    refuses("{\"b\":3}", 3, WITH("b: f32[3]"), "expected '{', found '3'");
    cr_assert_null(lang_params_read(cx, "/dev/null"));
    cr_assert(strstr(tec_context_error(cx), "is no .safetensors file"), "%s", tec_context_error(cx));
}

/* ---- the profile of a run ---- */

Test(sequences, a_profile_tells_kernels_from_memory_and_control)
{
    compiled c = compile("def main(x: f32[n, 3], s: f32[3]) -> f32[3] { fold(x, s, (s, r) => s * 0.5 + r) }",
                         &(tec_program_options){.run = {.profile = true}});
    tec_object *in[] = {object_of(&c, matrix(4, 3)), object_of(&c, zeros())}, *out;
    int64_t calls[4] = {0};
    double share = 0;
    tec_profile_row row;

    cr_assert(tec_program_run(c.p, in, 2, &out, 1, &err), "%s", err.text);
    for (int i = 0; tec_program_profile(c.p, i, &row); i++) {
        calls[row.group] += row.calls;
        share += row.share;
        cr_assert(row.calls > 0 && row.min_s <= row.median_s && row.median_s <= row.total_s);
    }
    tec_program_counts counts;
    tec_program_count(c.p, &counts);
    cr_assert_eq(calls[TEC_ROW_KERNEL], 4);
    cr_assert_eq(calls[TEC_ROW_SHAPE_KERNEL], 0);
    cr_assert_eq(calls[TEC_ROW_MEMORY] + calls[TEC_ROW_CONTROL], counts.steps);
    cr_assert_float_eq(share, 1, 1e-6);
    tec_program_profile_reset(c.p);
    cr_assert(!tec_program_profile(c.p, 0, &row));
    for (int i = 0; i < 2; i++)
        tec_object_free(in[i]);
    tec_object_free(out);
    discard(&c);
}
