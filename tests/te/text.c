/* tests/te/text.c -- `.te` text: round trips, errors, hostile text, the examples of the documentation;
 * specialisation. */
#include "tests/te/kit.h"

TestSuite(te_text, .init = open_context, .fini = close_context);

Test(te_text, infers_extents_and_prints_them)
{
    round_trips("def mm(n, A: f32[n, 1024], B: f32[1024, 8]) where n >= 1 { C[y, x] = sum[k](A[y, k] * B[k, "
                "x]) return C }",
                "def mm(n, A: f32[n, 1024], B: f32[1024, 8]) where n >= 1 {\n"
                "  C[y: n, x: 8] = sum[k: 1024](A[y, k] * B[k, x])\n"
                "  return C\n}\n");
}

Test(te_text, keeps_roles_and_notes)
{
    round_trips("def f(A: f32[8]) { B[i] = A[i] + 1.0 @role(anchor) @keep(true) @unroll(4) C[i] = B[i] "
                "@role(epilogue) return C }",
                "def f(A: f32[8]) {\n"
                "  B[i: 8] = A[i] + 1.0 @role(anchor) @keep(true) @unroll(4)\n"
                "  C[i: 8] = B[i] @role(epilogue)\n"
                "  return C\n}\n");
}

Test(te_text, keeps_tuples_and_conditions)
{
    round_trips("def f(m, A: f32[3, 4]) { S(V, I)[i] = argmax[k](A[i, k], k where k < m) T(P, Q)[i] = V[i], "
                "-V[i] return I, P, Q }",
                "def f(m, A: f32[3, 4]) {\n"
                "  S(V, I)[i: 3] = argmax[k: 4](A[i, k], k where k < m)\n"
                "  T(P, Q)[i: 3] = V[i], -V[i]\n"
                "  return I, P, Q\n}\n");
}

Test(te_text, takes_one_component_of_a_tuple)
{
    round_trips("def f(A: f32[3, 4]) { I[i] = argmax[k](A[i, k], k)@1 return I }",
                "def f(A: f32[3, 4]) {\n"
                "  I.r(I.r.v0, I.r.v1)[i: 3] = argmax[k: 4](A[i, k], k)\n"
                "  I[i: 3] = I.r.v1[i]\n"
                "  return I\n}\n");
}

Test(te_text, keeps_scalars_and_tensors_without_dimensions)
{
    round_trips(
        "def f(n, A: f16[n], alpha: f32, t: bool[]) { B[i] = select(t[], f32(A[i]) * alpha, 0.0) return B }",
        "def f(n, A: f16[n], t: bool[], alpha: f32) {\n"
        "  B[i: n] = select(t[], f32(A[i]) * alpha, 0.0)\n"
        "  return B\n}\n");
}

/* An axis that hides a symbol of the same name, as batches called n do. */
Test(te_text, tells_an_axis_from_a_symbol_of_its_name)
{
    te_def *d = te_def_new(cx, "f");
    const ir_expr *n = te_symbol(d, "n"), *i = te_axis(cx, "n", n);
    te_tensor *A = te_input(d, "A", BASE_I64, &n, 1),
              *B = te_compute(d, "B", &i, 1, ir_sub(cx, te_at(A, i), ir_sub(cx, n, i)));
    int64_t a[3] = {10, 20, 30}, b[3];

    te_output(d, B);
    const te_def *same = defined(te_text(cx, d));
    RUN(same, I64(a, 3), I64(b, 3));
    cr_assert(b[0] == 7 && b[1] == 18 && b[2] == 29, "%s", te_text(cx, d));
}

Test(te_text, reads_several_definitions_and_schedules)
{
    te_file *f = te_parse(cx, "t",
                          "def f(A: f32[8]) { B[i] = A[i] return B }\n"
                          "schedule f {\n  split(B.i, _, 4)\n}\n"
                          "def g(A: f32[8]) { B[i] = -A[i] return B }\n");

    cr_assert(f, "%s", tec_context_error(cx));
    cr_assert_eq(f->defs.n, 2);
    cr_assert(strstr(base_dict_get(&f->schedules, "f"), "split(B.i, _, 4)"));
    cr_assert_eq(((base_loc *)base_dict_get(&f->schedule_at, "f"))->line, 2);
    cr_assert_not(base_dict_has(&f->schedules, "g"));
}

/* ---- errors ---- */

Test(te_text, names_what_is_wrong)
{
    refuses("", "t: error: no definition found: expected 'def NAME(...) { ... }'");
    refuses("define f", "t:1: error: expected 'def', 'schedule' or 'intrinsic', found 'define'");
    refuses("def (", "t:1: error: expected the name of a definition, found '('");
    refuses("def f(A: f32[4]) {\n B[i] = A[i, i]\n return B }",
            "t:2: error: 'A' has 1 dimension, and 2 indices are given");
    refuses("def f(A: f32[4]) {\n B[i] = A[i + 0]\n return B }",
            "t:2: error: the extent of axis 'i' is not given, and no tensor is indexed by 'i' alone");
    refuses(
        "def f(n, A: f32[n, n]) {\n B[i: n, j: i + 1] = A[i, j]\n return B }",
        "t:2: error: the extent of axis 'j' depends on axis 'i': extents are made of symbols and numbers");
    refuses(
        "def f(n, A: f32[n, n]) {\n B[i: n] = sum[k: i + 1](A[i, k])\n return B }",
        "t:2: error: the extent of axis 'k' depends on axis 'i': extents are made of symbols and numbers");
    refuses("def f(A: f32[8]) {\n B[k: 5] = sum[k](A[k])\n return B }",
            "t:2: error: two axes of one stage are named 'k'");
    refuses("def f(A: f32[8, 8]) {\n B[k, k] = A[k, k]\n return B }",
            "t:2: error: two axes of one stage are named 'k'");
    refuses("def f(A: f32[]) {\n B[i] = A[i]\n return B }",
            "t:2: error: the extent of axis 'i' is not given, and no tensor is indexed by 'i' alone");
    refuses("def f(A: f32[4]) {\n B[i] = A[i]\n return C }", "t:3: error: 'C' is not a tensor of 'f'");
    refuses("def f(A: f32[4]) {\n return A }", "t:2: error: input 'A' of 'f' cannot be its output as well");
    refuses("def f(A: f32[4]) {\n B[i] = A[i] @role(boss)\n return B }",
            "t:2: error: there is no role 'boss'");
    refuses("def f(A: f32[4]) {\n B[i] = A[i]\n B[i] = A[i]\n return B }",
            "t:3: error: 'B' is defined twice in 'f'");
    refuses("def f(A: f32[4]) {\n B[] = argmax[k](A[k])\n return B }",
            "t:2: error: 'argmax' combines 2 values, found 1");
    refuses("def f(A: f32[4]) {\n B[] = argmax[k](A[k], k)@2\n return B }",
            "t:2: error: 'argmax' has 2 components: component 2 does not exist");
    refuses("def f(A: f32[4]) {\n B[i] = A[i]\n return B, B }",
            "t:3: error: 'B' is an output of 'f' already");
    refuses("def f(n, A: f32[n]) where n {\n B[i] = A[i]\n return B }",
            "t:1: error: expected a condition as a fact, found 'n'");
    refuses("def f(n, A: f32[n]) {\n S = sum[i](A[i])\n return S }",
            "t:2: error: expected '[' and the axes of 'S' (a scalar has none: S[] = ...), found '='");
    refuses("def f(n, A: f32[n]) {\n S(v, at) = argmax[i](A[i], i)\n return v, at }",
            "t:2: error: expected '[' and the axes of 'S' (a scalar has none: S(v, at)[] = ...), found '='");
}

/* Mutations of a good text never crash: they give a definition that has a tree, or an error. */
Test(te_text, survives_hostile_text)
{
    static const char good[] = "def f(n, m, A: f32[n, 8], b: f32) where n >= 1 {\n"
                               "  S(V, I)[i: n] = argmax[k](A[i, k], k where k < m) @role(anchor)\n"
                               "  C[y, x: 8] = b * sum[k](A[y, k] * A[y, x]) + V[y] @keep(1)\n"
                               "  return C, I\n}\nschedule f { split(C.y, _, 4) }\n";
    static const char bits[] = "(){}[],:=@_n01289 .-+*<\n";
    uint64_t seed = 11;

    for (int round = 0; round < 4000; round++) {
        tec_context *mine = tec_context_new();
        char *text = base_strdup(mine, good);
        int64_t edits = 1 + base_random_below(&seed, 3), size = (int64_t)sizeof good - 1;

        for (int64_t e = 0; e < edits; e++) {
            int64_t at = base_random_below(&seed, size), from = base_random_below(&seed, size);

            if (base_random_below(&seed, 3) == 0)
                text[at] = '\0';
            else if (base_random_below(&seed, 2))
                text[at] = bits[base_random_below(&seed, (int64_t)sizeof bits - 1)];
            else
                memmove(text + at, text + from, (size_t)(size - (at > from ? at : from)));
        }
        te_file *f = te_parse(mine, "hostile", text);
        cr_assert((f != NULL) == (tec_context_status(mine) == TEC_OK), "%s", text);
        for (int i = 0; f && i < f->defs.n; i++)
            cr_assert(te_tree(mine, f->defs.at[i]) || tec_context_error(mine), "%s", text);
        cr_assert_neq(tec_context_status(mine), TEC_INTERNAL, "%s\n%s", tec_context_error(mine), text);
        tec_context_free(mine);
    }
}

/* ---- specialisation ---- */

static te_def *specialised(const char *text, const char *symbol, const ir_expr *value)
{
    te_def *d = defined(text);
    const ir_expr *s = te_symbol(d, symbol);

    return te_specialise(cx, d, &s, &value, 1);
}

#define COPY                                                                                                 \
    "def f(n, A: f32[n, 4]) where n % 2 == 0 { B[i, j] = A[i, j] @keep(n) S[i] = sum[k](A[i, k] where k < "  \
    "n) return B, S }"

Test(te_text, specialises_to_a_constant)
{
    te_def *d = specialised(COPY, "n", ir_int(cx, 6));

    cr_assert(d, "%s", tec_context_error(cx));
    cr_assert_str_eq(te_text(cx, d), "def f(A: f32[6, 4]) {\n"
                                     "  B[i: 6, j: 4] = A[i, j] @keep(6)\n"
                                     "  S[i: 6] = sum[k: 4](A[i, k] where k < 6)\n"
                                     "  return B, S\n}\n");
}

Test(te_text, specialises_to_a_remainder)
{
    const ir_expr *q = ir_var(cx, "q", BASE_I64), *value = ir_mul(cx, q, ir_int(cx, 8));
    te_def *d = specialised(COPY, "n", value);

    cr_assert(d, "%s", tec_context_error(cx));
    cr_assert_str_eq(te_text(cx, d), "def f(q, A: f32[q * 8, 4]) where q * 8 % 2 == 0 {\n"
                                     "  B[i: q * 8, j: 4] = A[i, j] @keep(q * 8)\n"
                                     "  S[i: q * 8] = sum[k: 4](A[i, k] where k < q * 8)\n"
                                     "  return B, S\n}\n");
}

Test(te_text, specialising_holds_promises)
{
    cr_assert_null(specialised(COPY, "n", ir_int(cx, 5)));
    cr_assert(
        strstr(tec_context_error(cx), "'f' requires n % 2 == 0, which does not hold for the given sizes"),
        "%s", tec_context_error(cx));
}

Test(te_text, a_special_definition_computes_the_same)
{
    te_def *d = specialised(COPY, "n", ir_int(cx, 2));
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8], s[2];

    RUN(d, F32(a, 2, 4), F32(b, 2, 4), F32(s, 2));
    cr_assert_arr_eq(a, b, sizeof a);
    cr_assert(s[0] == 3 && s[1] == 11);
}

/* ---- documentation ---- */

/* The text between the next line "```te" and its "```". */
static char *next_example(char **at)
{
    char *begin = strstr(*at, "\n```te\n"), *end = begin ? strstr(begin + 7, "\n```\n") : NULL;

    if (!end)
        return NULL;
    *at = end + 4;
    return base_strndup(cx, begin + 7, (size_t)(end + 1 - begin - 7));
}

Test(te_text, the_examples_of_the_documentation_are_definitions)
{
    size_t size;
    char *doc = base_read_file(cx, TEC_SOURCE_DIR "/docs/te.md", &size), *example;
    int n = 0;

    cr_assert(doc, "%s", tec_context_error(cx));
    for (; (example = next_example(&doc)); n++) {
        te_file *f = te_parse(cx, "docs/te.md", example);

        cr_assert(f, "%s\n%s", tec_context_error(cx), example);
        for (int i = 0; i < f->defs.n; i++) {
            const char *text = te_text(cx, f->defs.at[i]);

            cr_assert(te_tree(cx, f->defs.at[i]), "%s\n%s", tec_context_error(cx), example);
            cr_assert_str_eq(te_text(cx, defined(text)), text);
        }
    }
    cr_assert_geq(n, 6);
}

Test(te_text, reductions_of_truth_values)
{
    round_trips(
        "def f(A: f32[3, 4]) { C[y] = any[k](A[y, k] > 0) D[y] = all[k](A[y, k] > 1 && C[y]) return D }",
        "def f(A: f32[3, 4]) {\n  C[y: 3] = any[k: 4](A[y, k] > 0.0)\n  D[y: 3] = all[k: 4](A[y, k] > 1.0 && "
        "C[y])\n  return D\n}\n");
}

Test(te_text, a_reduction_that_does_not_combine_its_dtype)
{
    refuses("def f(A: f32[3]) { C[] = any[k](A[k]) return C }", "t:1: error: 'any' does not combine f32");
}

/* ---- combiners that are declared to reorder ---- */

#define COMBINER(text) "def f(A: i32[4]) {\n combiner c" text " reorders\n C[] = c[k](A[k])\n return C }"
#define COMBINER_OF_FLOATS(text)                                                                             \
    "def f(A: f32[4]) {\n combiner c" text " reorders\n C[] = c[k](A[k])\n return C }"

Test(te_text, refuses_an_identity_that_is_not_neutral)
{
    refuses(COMBINER_OF_FLOATS("(a: f32; b: f32) = (a + b) identity (7.0)"),
            "t:2: error: the identity (7) of combiner 'c' is not neutral: combined with (1) it gives (8)");
    refuses(COMBINER("(a: i32; b: i32) = (max(a, b)) identity (0)"),
            "t:2: error: the identity (0) of combiner 'c' is not neutral: combined with (-3) it gives (0)");
    refuses(COMBINER("(a: i32; b: i32) = (select(a == 0, b, a)) identity (1)"),
            "t:2: error: the identity (1) of combiner 'c' is not neutral: combined with (-3) it gives (1)");
    refuses(COMBINER("(a: i32; b: i32) = (a*3 + b) identity (0)"),
            "t:2: error: the identity (0) of combiner 'c' is not neutral: combined with (1) it gives (3), as "
            "the second operand");
    refuses("def f(A: f32[4]) {\n combiner c(v: f32, i: i64; w: f32, j: i64) = (select(w < v, w, v), "
            "select(w < v, j, i)) identity (0.0, 0) reorders\n"
            " M(V, I)[] = c[k](A[k], k)\n return V }",
            "t:2: error: the identity (0, 0) of combiner 'c' is not neutral: combined with (1, 2) it gives "
            "(0, 0)");
}

Test(te_text, refuses_what_does_not_reorder)
{
    refuses(COMBINER("(a: i32; b: i32) = (select(a == 0, b, select(b == 0, a, a*3 + b))) identity (0)"),
            "t:2: error: combiner 'c' is declared to reorder, but (1) with (-3) gives (0), and (-3) with (1) "
            "gives (-8)");
    refuses(COMBINER("(a: i32; b: i32) = (a + b + a*a*b*b) identity (0)"),
            "t:2: error: combiner 'c' is declared to reorder, but of (1), (-3) and (5) the first two "
            "combined first give (1237), the last two (51757)");
}

/* In order, any start is right; so is a start that is neutral up to rounding, for numbers that the combiner
 * knows. */
Test(te_text, takes_combiners_whose_identity_does_no_harm)
{
    cr_assert(defined("def f(A: i32[4]) { combiner c(a: i32; b: i32) = (a*31 + b) identity (17) C[] = "
                      "c[k](A[k]) return C }"));
    cr_assert(defined(COMBINER("(a: i32; b: i32) = (a + b + a*b) identity (0)")));
    cr_assert(defined(COMBINER_OF_FLOATS("(a: f32; b: f32) = (max(a, b) + log(exp(a - max(a, b)) + exp(b - "
                                         "max(a, b)))) identity (f32(-inf))")));
    cr_assert(defined(COMBINER_OF_FLOATS("(a: f32; b: f32) = (exp(log(a) + log(b))) identity (1.0)")));
    cr_assert(defined("def f(A: f32[4]) { combiner c(n: f32, m: f32, s: f32; k: f32, l: f32, t: f32) = (n + "
                      "k, (n*m + k*l) / (n + k),"
                      " s + t + (l - m)*(l - m)*n*k / (n + k)) identity (0.0, 0.0, 0.0) reorders W(N, M, "
                      "S)[] = c[k](1.0, A[k], 0.0) return S }"));
}

/* ---- one name, one thing ---- */

Test(te_text, a_name_is_that_of_one_definition_and_one_schedule)
{
    static const char *const def = "def f(A: f32[4]) { B[i] = A[i] return B }\n";

    refuses(base_format(cx, "%s%s", def, def),
            "t:2: error: there are two definitions 'f'\nt:1: note: the first is here");
    refuses(base_format(cx, "%sschedule f {\n unroll(B.i) }\nschedule f { }", def),
            "t:4: error: there are two schedules of 'f'\nt:2: note: the first is here");
    refuses(base_format(cx, "%sschedule g { }", def),
            "t:2: error: a schedule of 'g', but there is no definition of this name");
    refuses("def gemm(A: f32[4]) { B[i] = A[i] return B }\nschedule gem { }",
            "t:2: error: a schedule of 'gem', but there is no definition of this name; did you mean 'gemm'?");
}
