/* tests/te/te.c -- constructors of definitions: what they make, and what they refuse in which words. */
#include "tests/te/kit.h"

static te_def *d;
static const ir_expr *n, *y, *x, *k;
static te_tensor *A;

static void open_definition(void)
{
    open_context();
    d = te_def_new(cx, "f");
    n = te_symbol(d, "n");
    y = te_axis(cx, "y", n);
    x = te_axis(cx, "x", ir_int(cx, 4));
    k = te_reduce_axis(cx, "k", ir_int(cx, 4));
    A = te_input(d, "A", BASE_F32, (const ir_expr *[]){n, ir_int(cx, 4)}, 2);
}

TestSuite(te, .init = open_definition, .fini = close_context);

#define AXES(...)                                                                                            \
    (const ir_expr *[]){__VA_ARGS__},                                                                        \
        (int)(sizeof((const ir_expr *[]){__VA_ARGS__}) / sizeof(const ir_expr *))

/* ---- errors ---- */

Test(te, an_axis_has_an_i64_extent_that_is_not_negative)
{
    te_axis(cx, "z", ir_int(cx, -1));
    fails_with("error: the extent of axis 'z' is negative: -1");
    te_axis(cx, "z", ir_imm(cx, BASE_F32, 2));
    fails_with("error: expected an i64 expression as the extent of axis 'z', found '2.0' of type f32");
}

Test(te, a_name_is_defined_once)
{
    te_input(d, "A", BASE_F32, NULL, 0);
    fails_with("error: 'A' is defined twice in 'f'");
    te_compute(d, "A", AXES(y), te_at(A, y, ir_int(cx, 0)));
    fails_with("error: 'A' is defined twice in 'f'");
}

Test(te, a_tensor_is_read_with_an_index_for_each_dimension)
{
    te_at(A, y);
    fails_with("error: 'A' has 2 dimensions, but is read with 1 index");
}

Test(te, a_fact_is_a_condition)
{
    te_fact(d, ir_add(cx, n, ir_int(cx, 1)));
    fails_with("error: expected a condition as a fact, found 'n + 1'");
}

Test(te, an_input_is_no_output)
{
    te_output(d, A);
    fails_with("error: input 'A' of 'f' cannot be its output as well");
}

Test(te, an_output_is_given_once)
{
    te_tensor *B = te_compute(d, "B", AXES(y, x), te_at(A, y, x));

    te_output(d, B);
    te_output(d, B);
    fails_with("error: 'B' is an output of 'f' already");
}

Test(te, a_definition_has_an_output)
{
    cr_assert_null(te_tree(cx, d));
    fails_with("error: 'f' has no output");
}

Test(te, axes_of_a_stage_are_spatial_and_distinct)
{
    te_compute(d, "B", AXES(y, k), te_at(A, y, k));
    fails_with("error: 'k' cannot be an axis of 'B': it is not a spatial axis");
    te_compute(d, "B", AXES(y, n), te_at(A, y, x));
    fails_with("error: 'n' cannot be an axis of 'B': it is not a spatial axis");
    te_compute(d, "B", AXES(y, y), te_at(A, y, ir_int(cx, 0)));
    fails_with("error: axis 'y' is used twice by 'B'");
}

Test(te, a_body_mentions_its_own_axes_only)
{
    te_compute(d, "B", AXES(y), te_at(A, y, x));
    fails_with("error: 'x' is neither an axis of this stage nor a symbol of 'f'");
    te_compute(d, "B", AXES(y), te_at(A, y, k));
    fails_with("error: reduction axis 'k' is used outside its reduction");
}

Test(te, a_body_reads_tensors_of_its_definition)
{
    te_def *other = te_def_new(cx, "g");
    te_tensor *B = te_input(other, "B", BASE_F32, (const ir_expr *[]){ir_int(cx, 4)}, 1);

    te_compute(d, "C", AXES(x), te_at(B, x));
    fails_with("error: 'B' is not a tensor of 'f'");
}

Test(te, reductions_run_over_reduction_axes)
{
    te_sum(cx, te_at(A, y, x), x);
    fails_with("error: 'sum' reduces over 'x', which is not a reduction axis");
    te_reduce(cx, "average", te_at(A, y, k), &k, 1);
    fails_with("error: no reduction of one value is named 'average'");
    te_reduce(cx, "argmax", te_at(A, y, k), &k, 1);
    fails_with("error: no reduction of one value is named 'argmax'");
}

Test(te, outputs_of_one_stage_come_from_one_reduction)
{
    const ir_expr *body[] = {te_sum(cx, te_at(A, y, k), k), te_at(A, y, ir_int(cx, 0))};
    te_tensor *out[2];

    cr_assert_not(te_compute_n(d, "B", AXES(y), body, 2, out));
    fails_with("error: output 0 of 'B' is not a component of the reduction that computes the other outputs");
}

Test(te, the_callers_line_stands_in_the_message)
{
    tec_here(cx, "conv.c", 41);
    te_at(A, y);
    fails_with("conv.c:41: error: 'A' has 2 dimensions, but is read with 1 index");
}

Test(te, nothing_gives_nothing)
{
    cr_assert_null(te_compute(d, "B", AXES(y, NULL), te_at(A, y, x)));
    cr_assert_null(te_compute(d, "B", AXES(y, x), NULL));
    cr_assert_null(te_read(NULL, &y, 1));
    cr_assert_null(te_reduce(cx, "sum", NULL, &k, 1));
    te_output(d, NULL);
    te_fact(d, NULL);
    cr_assert_null(te_axis(cx, "z", NULL));
    cr_assert_not(base_failed(cx));
}

/* ---- what they make ---- */

Test(te, a_reduction_below_the_root_becomes_a_stage)
{
    te_tensor *B =
        te_compute(d, "B", AXES(y), ir_add(cx, te_sum(cx, te_at(A, y, k), k), ir_imm(cx, BASE_F32, 1)));

    te_output(d, B);
    cr_assert_str_eq(te_text(cx, d), "def f(n, A: f32[n, 4]) {\n"
                                     "  B.r[y: n] = sum[k: 4](A[y, k])\n"
                                     "  B[y: n] = B.r[y] + 1.0\n"
                                     "  return B\n}\n");
}

Test(te, equal_reductions_become_one_stage)
{
    const ir_expr *sum = te_sum(cx, te_at(A, y, k), k);
    te_tensor *B = te_compute(
        d, "B", AXES(y),
        ir_mul(cx, sum, ir_add(cx, sum, te_sum(cx, ir_mul(cx, te_at(A, y, k), te_at(A, y, k)), k))));

    te_output(d, B);
    cr_assert_str_eq(te_text(cx, d), "def f(n, A: f32[n, 4]) {\n"
                                     "  B.r[y: n] = sum[k: 4](A[y, k])\n"
                                     "  B.r2[y: n] = sum[k: 4](A[y, k] * A[y, k])\n"
                                     "  B[y: n] = B.r[y] * (B.r[y] + B.r2[y])\n"
                                     "  return B\n}\n");
}

/* Bound axes are told by their places, free ones by what they are. */
Test(te, reductions_that_differ_in_the_names_of_their_axes_become_one_stage)
{
    const ir_expr *j = te_reduce_axis(cx, "j", ir_int(cx, 4)),
                  *shorter = te_reduce_axis(cx, "k", ir_int(cx, 3));
    const ir_expr *one = te_sum(cx, te_at(A, y, k), k), *same = te_sum(cx, te_at(A, y, j), j),
                  *part = te_sum(cx, te_at(A, y, shorter), shorter),
                  *larger = te_reduce(cx, "max", te_at(A, y, j), &j, 1),
                  *few = te_reduce_where(cx, "sum", te_at(A, y, j), &j, 1, ir_lt(cx, j, n));

    te_output(d, te_compute(d, "B", AXES(y),
                            ir_add(cx, ir_mul(cx, ir_mul(cx, one, same), ir_mul(cx, part, larger)), few)));
    cr_assert_str_eq(te_text(cx, d), "def f(n, A: f32[n, 4]) {\n"
                                     "  B.r[y: n] = sum[k: 4](A[y, k])\n"
                                     "  B.r2[y: n] = sum[k: 3](A[y, k])\n"
                                     "  B.r3[y: n] = max[j: 4](A[y, j])\n"
                                     "  B.r4[y: n] = sum[j: 4](A[y, j] where j < n)\n"
                                     "  B[y: n] = B.r[y] * B.r[y] * (B.r2[y] * B.r3[y]) + B.r4[y]\n"
                                     "  return B\n}\n");
}

/* Each component has axes of its own, as a program that makes them one by one has. */
Test(te, components_whose_axes_have_other_names_are_one_stage)
{
    const ir_combiner *argmax = ir_combiner_named(cx, "argmax", BASE_F32, BASE_I64);
    const ir_expr *j = te_reduce_axis(cx, "j", ir_int(cx, 4)), *four = ir_int(cx, 4), *body[2];
    te_tensor *out[2];

    body[0] = ir_reduce(cx, argmax, (const ir_expr *[]){te_at(A, y, k), k}, &k, &four, 1, NULL, 0);
    body[1] = ir_reduce(cx, argmax, (const ir_expr *[]){te_at(A, y, j), j}, &j, &four, 1, NULL, 1);
    cr_assert(te_compute_n(d, "B", AXES(y), body, 2, out), "%s", tec_context_error(cx));
    te_output(d, out[1]);
    te_def *fixed = te_specialise(cx, d, &n, &(const ir_expr *){ir_int(cx, 2)}, 1);
    cr_assert(fixed, "%s", tec_context_error(cx));
    cr_assert(strstr(te_text(cx, fixed), "B(B.v0, B.v1)[y: 2] = argmax[k: 4](A[y, k], k)\n"), "%s",
              te_text(cx, fixed));
    float a[8] = {1, 9, 3, 4, 7, 6, 5, 8};
    int64_t at[2];
    RUN(fixed, F32(a, 2, 4), I64(at, 2));
    cr_assert(at[0] == 1 && at[1] == 3);
}

Test(te, a_reduction_of_a_reduction_becomes_two_stages)
{
    const ir_expr *j = te_reduce_axis(cx, "j", n);
    te_tensor *B = te_compute(d, "B", NULL, 0, te_reduce(cx, "max", te_sum(cx, te_at(A, j, k), k), &j, 1));

    te_output(d, B);
    cr_assert_str_eq(te_text(cx, d), "def f(n, A: f32[n, 4]) {\n"
                                     "  B.r[j: n] = sum[k: 4](A[j, k])\n"
                                     "  B[] = max[j: n](B.r[j])\n"
                                     "  return B\n}\n");
}

Test(te, names_that_are_taken_are_not_taken_again)
{
    te_compute(d, "B.r", AXES(y, x), te_at(A, y, x));
    te_tensor *B = te_compute(d, "B", AXES(y), ir_neg(cx, te_sum(cx, te_at(A, y, k), k)));

    te_output(d, B);
    cr_assert(te_tensor_named(d, "B.r2"));
    cr_assert_eq(te_tensor_named(d, "B"), B);
    cr_assert_null(te_tensor_named(d, "C"));
}

/* ---- trees ---- */

Test(te, default_tree)
{
    const ir_expr *j = te_axis(cx, "j", n);
    te_tensor *S = te_compute(d, "S", AXES(y), te_sum(cx, te_at(A, y, k), k)),
              *B = te_compute(d, "B", AXES(j), ir_neg(cx, te_at(S, j)));

    te_note(S, "keep", ir_bool(cx, true));
    te_output(d, B);
    const char *text = ir_program_text(cx, te_tree(cx, d));
    cr_assert_str_eq(text,
                     "program f(symbol n, A: f32[n, 4], out B: f32[n]) {\n"
                     "  buffer S: f32[n]\n"
                     "  for S.y in 0..n {\n"
                     "    for S.k in 0..4 {\n"
                     "      block S(y = S.y in 0..n, k reduce = S.k in 0..4) @keep(true) {\n"
                     "        reads A[y, k]\n"
                     "        writes S[y]\n"
                     "        init {\n"
                     "          S[y] = 0.0\n"
                     "        }\n"
                     "        S[y] sum= A[y, k]\n"
                     "      }\n"
                     "    }\n"
                     "  }\n"
                     "  for B.j in 0..n {\n"
                     "    block B(j = B.j in 0..n) {\n"
                     "      reads S[j]\n"
                     "      writes B[j]\n"
                     "      B[j] = -S[j]\n"
                     "    }\n"
                     "  }\n"
                     "}\n",
                     "%s", text);
}

/* ---- runs ---- */

Test(te, computes_what_it_says)
{
    const te_def *mm = defined("def mm(n, A: f32[n, 3], B: f32[3, 2], alpha: f32) {\n"
                               "  C[y, x] = alpha * sum[k](A[y, k] * B[k, x])\n  return C\n}\n");
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, -1, 2, 0, 3, 5}, c[4];

    RUN(mm, F32(a, 2, 3), F32(b, 3, 2), {.scalar_float = 2}, F32(c, 2, 2));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            cr_assert_eq(c[i * 2 + j],
                         2 * (a[i * 3] * b[j] + a[i * 3 + 1] * b[2 + j] + a[i * 3 + 2] * b[4 + j]));
}

/* The second sum, the second sum of exponentials and the second largest element are those before them under
 * other names. The definition that writes each once computes the same. */
Test(te, computes_equal_reductions_once)
{
    const te_def
        *twice = defined(
            "def f(A: f32[3, 4]) {\n"
            "  S[i] = sum[j](A[i, j]) * 2.0 - sum[k](A[i, k])\n"
            "  V[i] = sum[j](exp(A[i, j] - max[k](A[i, k]))) / sum[b](exp(A[i, b] - max[c](A[i, c])))\n"
            "  M[i] = f32(argmax[j](A[i, j], j)@1) + argmax[k](A[i, k], k)@0\n"
            "  return S, V, M\n}\n"),
        *once = defined("def g(A: f32[3, 4]) {\n"
                        "  s[i] = sum[j](A[i, j])\n  S[i] = s[i] * 2.0 - s[i]\n"
                        "  V[i: 3] = 1.0\n"
                        "  m(v, at)[i] = argmax[j](A[i, j], j)\n  M[i] = f32(at[i]) + v[i]\n"
                        "  return S, V, M\n}\n");
    float a[12] = {1, 5, 9, 7, 3, 3, 1, 8, -1, -2, -3, 4}, left[9], right[9];
    const char *text = te_text(cx, twice);

    RUN(twice, F32(a, 3, 4), F32(left, 3), F32(left + 3, 3), F32(left + 6, 3));
    RUN(once, F32(a, 3, 4), F32(right, 3), F32(right + 3, 3), F32(right + 6, 3));
    cr_assert_arr_eq(left, right, sizeof left);
    cr_assert_not(strstr(text, "S.r2"), "%s", text);
    cr_assert_not(strstr(text, "V.r2["), "%s", text);
    cr_assert_not(strstr(text, "M.r2"), "%s", text);
}

Test(te, computes_tuples_and_conditions)
{
    const te_def *f = defined("def f(m, A: f32[3, 4]) where m <= 4 {\n"
                              "  S(V, I)[i] = argmax[k](A[i, k], k where k < m)\n  return V, I\n}\n");
    float a[12] = {1, 5, 9, 7, 3, 3, 1, 8, -1, -2, -3, 4}, v[3];
    int64_t at[3];
    const ir_program *p = te_tree(cx, f);
    ir_arg args[] = {F32(a, 3, 4), F32(v, 3), I64(at, 3)};

    cr_assert(ir_interpret(cx, p,
                           &(ir_run){.args = args,
                                     .symbol_name = (const char *const[]){"m"},
                                     .symbol_value = (const int64_t[]){3},
                                     .n_symbols = 1}),
              "%s", tec_context_error(cx));
    cr_assert(v[0] == 9 && v[1] == 3 && v[2] == -1);
    cr_assert(at[0] == 2 && at[1] == 0 && at[2] == 0);
}

Test(te, reductions_over_nothing_give_the_identity)
{
    const te_def *f =
        defined("def f(n, A: f32[2, n]) { S[i] = sum[k](A[i, k]) P[i] = prod[k](A[i, k]) return S, P }");
    float none[1], s[2], p[2];

    RUN(f, F32(none, 2, 0), F32(s, 2), F32(p, 2));
    cr_assert(s[0] == 0 && s[1] == 0 && p[0] == 1 && p[1] == 1);
}
