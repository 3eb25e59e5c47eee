/* tests/compiler/api.c -- the public build functions. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tec/build.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(build_api, .init = open_context, .fini = close_context);

/* B[i] = A[i] * factor, over n elements. */
static tec_schedule *scale(const char *name, double factor, const char *target)
{
    tec_def *d = tec_def_new(cx, name);
    const tec_expr *n = tec_symbol(d, "n"), *i = tec_axis(cx, "i", n);
    tec_tensor *A = tec_input(d, "A", TEC_F32, n);

    tec_output(d, tec_compute(d, "B", tec_mul(cx, tec_at(A, i), tec_const(cx, TEC_F32, factor)), i));
    return tec_schedule_new(cx, d, target);
}

static void check_scales(tec_module *m, const char *name, float factor)
{
    tec_error err = {0};
    tec_function *f = tec_function_new(m, name, NULL, &err);
    float a[5] = {1, 2, 3, 4, 5}, b[5] = {0};
    int64_t n = 5;
    DLTensor A = {.data = a, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = &n},
             B = A;

    B.data = b;
    cr_assert(tec_function_call(f, (DLTensor *[]){&A, &B}, 2, &err), "%s", err.text);
    for (int i = 0; i < 5; i++)
        cr_assert_float_eq(b[i], a[i] * factor, 1e-6);
    tec_function_free(f);
}

Test(build_api, builds_a_schedule_into_this_process)
{
    tec_module *m = tec_build(scale("twice", 2, "native"), NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    cr_assert_eq(tec_module_n_functions(m), 1);
    check_scales(m, "twice", 2);
    tec_module_free(m);
}

Test(build_api, a_module_outlives_its_context)
{
    tec_module *m = tec_build(scale("twice", 2, NULL), NULL);

    cr_assert(m, "%s", tec_context_error(cx));
    tec_context_free(cx);
    check_scales(m, "twice", 2);
    tec_module_free(m);
    cx = tec_context_new();
}

Test(build_api, writes_several_functions_into_one_file)
{
    const tec_schedule *s[] = {scale("twice", 2, "native"), scale("thrice", 3, "native")};
    char path[] = "/tmp/tec-build-api-XXXXXX";
    tec_error err = {0};
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && close(fd) == 0);
    cr_assert(tec_build_file_n(cx, s, 2, NULL, path), "%s", tec_context_error(cx));
    tec_module *m = tec_module_open(path, NULL, &err);
    cr_assert(m, "%s", err.text);
    check_scales(m, "twice", 2);
    check_scales(m, "thrice", 3);
    tec_module_free(m);
    unlink(path);
}

Test(build_api, prints_what_was_made)
{
    const tec_schedule *s = scale("twice", 2, "native");
    const char *lowered = tec_build_text(s, NULL, TEC_TEXT_LOWERED),
               *llvm = tec_build_text(s, NULL, TEC_TEXT_LLVM),
               *assembly = tec_build_text(s, NULL, TEC_TEXT_ASM);

    cr_assert(lowered && strstr(lowered, "program twice"), "%s", lowered);
    cr_assert(llvm && strstr(llvm, "define"), "%s", llvm);
    cr_assert(assembly && strstr(assembly, "ret"), "%s", assembly);
}

Test(build_api, takes_the_target_that_the_options_name)
{
    const char *assembly = tec_build_text(
        scale("thrice", 3, NULL),
        &(tec_build_options){.target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"}, TEC_TEXT_ASM);

    cr_assert(assembly && strstr(assembly, "fmul"), "%s", tec_context_error(cx));
    cr_assert_null(tec_build(scale("thrice", 3, NULL), &(tec_build_options){.target = "abacus"}));
    cr_assert(strstr(tec_context_error(cx), "abacus"), "%s", tec_context_error(cx));
}

static void refused(tec_module *m, const char *words)
{
    cr_assert_null(m);
    cr_assert(tec_context_error(cx) && strstr(tec_context_error(cx), words), "expected '%s', found '%s'",
              words, tec_context_error(cx));
}

Test(build_api, takes_no_records_for_a_schedule)
{
    int none;

    refused(tec_build(scale("twice", 2, "native"),
                      &(tec_build_options){.records = (const tec_records *)(void *)&none}),
            "'records' is only for graphs");
}

Test(build_api, builds_nothing_after_a_refused_step)
{
    tec_schedule *s = scale("twice", 2, "native");

    cr_assert_not(tec_parallel(s, "B.j"));
    refused(tec_build(s, NULL), "the schedule of 'twice' has a step that was refused");
    cr_assert(strstr(tec_context_error(cx), "'B.j'"), "the note says which: %s", tec_context_error(cx));
    tec_context_clear(cx);
    tec_schedule_clear(s);
    tec_module *m = tec_build(s, NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_module_free(m);
}

Test(build_api, names_a_function_that_is_there_twice)
{
    refused(tec_build_n(cx, (const tec_schedule *[]){scale("f", 2, NULL), scale("f", 3, NULL)}, 2, NULL),
            "two functions of one module are named 'f'");
}

Test(build_api, one_module_has_one_target)
{
    const tec_schedule *s[] = {scale("f", 2, "llvm -mcpu=x86-64-v3"), scale("g", 3, "llvm -mcpu=x86-64")};

    refused(tec_build_n(cx, s, 2, NULL), "one module has one target");
}

Test(build_api, a_module_without_functions_is_refused)
{
    refused(tec_build_n(cx, NULL, 0, NULL), "a module needs at least one function");
}

Test(build_api, nothing_comes_of_nothing)
{
    cr_assert_null(tec_build(NULL, NULL));
    cr_assert_not(tec_build_file(NULL, NULL, "/nowhere"));
    cr_assert_null(tec_build_text(NULL, NULL, TEC_TEXT_ASM));
}

Test(build_api, refuses_a_function_whose_symbols_no_call_can_tell)
{
    tec_def *d = tec_def_new(cx, "square");
    const tec_expr *n = tec_symbol(d, "n"), *size = tec_mul(cx, n, n), *i = tec_axis(cx, "i", size);
    tec_tensor *A = tec_input(d, "A", TEC_F32, size);

    tec_output(d, tec_compute(d, "B", tec_mul(cx, tec_at(A, i), tec_const(cx, TEC_F32, 2)), i));
    cr_assert_null(tec_build(tec_schedule_new(cx, d, "native"), NULL));
    cr_assert(
        strstr(tec_context_error(cx),
               "'square' could never be called: no dimension of a parameter determines the value of 'n'") !=
            NULL,
        "%s", tec_context_error(cx));
}

Test(build_api, takes_a_symbol_from_a_dimension_that_is_linear_in_it)
{
    tec_error err = {0};
    tec_def *d = tec_def_new(cx, "halo");
    const tec_expr *n = tec_symbol(d, "n"),
                   *i = tec_axis(cx, "i", tec_add(cx, tec_mul(cx, n, tec_int(cx, 3)), tec_int(cx, 2)));
    tec_tensor *A = tec_input(d, "A", TEC_F32, tec_add(cx, tec_mul(cx, n, tec_int(cx, 3)), tec_int(cx, 2)));

    tec_output(d, tec_compute(d, "B", tec_mul(cx, tec_at(A, i), tec_const(cx, TEC_F32, 2)), i));
    tec_module *m = tec_build(tec_schedule_new(cx, d, "native"), NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_function *f = tec_function_new(m, "halo", NULL, &err);
    float a[5] = {1, 2, 3, 4, 5}, b[5] = {0};
    DLTensor x = {.data = a,
                  .ndim = 1,
                  .dtype = {kDLFloat, 32, 1},
                  .device = {kDLCPU, 0},
                  .shape = (int64_t[]){5}},
             y = x;

    y.data = b;
    cr_assert(tec_function_call(f, (DLTensor *[]){&x, &y}, 2, &err), "%s", err.text);
    cr_assert_float_eq(b[4], 10, 1e-6);
    x.shape[0] = 4;
    cr_assert_not(tec_function_call(f, (DLTensor *[]){&x, &y}, 2, &err));
    cr_assert_str_eq(err.text, "halo: argument 'A': expected f32[n*3 + 2] where n = 0, found f32[4]");
    tec_function_free(f);
    tec_module_free(m);
}
