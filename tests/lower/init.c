/* tests/lower/init.c -- where the start of a reduction goes. */
#include "tests/lower/pass.h"

TestSuite(init, .init = open_context, .fini = close_context);

#define ROWS(loops, bind, where, close)                                                                      \
    "program p(symbol n, A: f32[n, 8], out C: f32[n]) {\n" loops "block C(" bind ") " where " {\n"           \
    "  reads A[y, k]\n"                                                                                      \
    "  writes C[y]\n"                                                                                        \
    "  init { C[y] = 0.0 }\n"                                                                                \
    "  C[y] sum= A[y, k]\n"                                                                                  \
    "}\n" close "}\n"

Test(init, stands_before_the_outermost_loop_of_the_reduction)
{
    SHOWS("program p(symbol n, A: f32[n, 8], out C: f32[n]) {\n"
          "  for y in 0..n {\n"
          "    block C.init(y = y in 0..n) {\n"
          "      writes C[y]\n"
          "      C[y] = 0.0\n"
          "    }\n"
          "    for k in 0..8 {\n"
          "      block C(y = y in 0..n, k reduce = k in 0..8) {\n"
          "        reads A[y, k]\n"
          "        writes C[y]\n"
          "        C[y] sum= A[y, k]\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("init", AVX512,
                ROWS("for y in 0..n { for k in 0..8 {\n", "y = y in 0..n, k reduce = k in 0..8", "", "}}")));
}

Test(init, copies_the_spatial_loops_inside_the_reduction)
{
    const char *text =
        ROWS("for k in 0..8 { for y in 0..n {\n", "y = y in 0..n, k reduce = k in 0..8", "", "}}");

    HAS("  for y in 0..n {\n    block C.init(y = y in 0..n) {", after("init", AVX512, text));
    same_meaning("init", AVX512, text, SIZES(0, 1, 5));
}

Test(init, is_guarded_by_the_spatial_conjuncts_only)
{
    const char *text =
        ROWS("for k.0 in 0..3 { for y.0 in 0..floordiv(n + 3, 4) { for y.1 in 0..4 { for k.1 in 0..3 {\n",
             "y = y.0*4 + y.1 in 0..n, k reduce = k.0*3 + k.1 in 0..8",
             "where y.0*4 + y.1 < n && k.0*3 + k.1 < 8", "}}}}");

    HAS("if y.0 * 4 + y.1 < n {\n        block C.init", after("init", AVX512, text));
    same_meaning("init", AVX512, text, SIZES(0, 1, 4, 7));
}

Test(init, happens_for_an_empty_reduction)
{
    same_meaning("init", AVX512,
                 "program p(symbol n, A: f32[3, n], out C: f32[3]) {\n"
                 "  for y in 0..3 { for k in 0..n {\n"
                 "    block C(y = y in 0..3, k reduce = k in 0..n) { reads A[y, k] writes C[y] init { C[y] = "
                 "0.0 } C[y] sum= A[y, k] }\n"
                 "  } }\n"
                 "}\n",
                 SIZES(0, 1, 2));
}

Test(init, is_not_due_in_the_later_part_of_a_cut_loop)
{
    const char *text = "program p(A: f32[3, 8], out C: f32[3]) {\n"
                       "  for y in 0..3 {\n"
                       "    for k in 0..5 {\n"
                       "      block C(y = y in 0..3, k reduce = k in 0..8) { reads A[y, k] writes C[y] init "
                       "{ C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                       "    }\n"
                       "    for k in 0..3 {\n"
                       "      block C(y = y in 0..3, k reduce = k + 5 in 0..8) { reads A[y, k] writes C[y] "
                       "init { C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                       "    }\n"
                       "  }\n"
                       "}\n";

    HAS_NOT("k + 5 == 0", after("init", AVX512, text));
    same_meaning("init", AVX512, text, SIZES(1));
}

Test(init, stays_in_place_where_the_first_point_is_not_known)
{
    const char *text = "program p(symbol n, A: f32[3, 8], out C: f32[3]) where n < 8 {\n"
                       "  for y in 0..3 {\n"
                       "    for k in 0..n {\n"
                       "      block C(y = y in 0..3, k reduce = k in 0..8) { reads A[y, k] writes C[y] init "
                       "{ C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                       "    }\n"
                       "    for k in 0..8 - n {\n"
                       "      block C(y = y in 0..3, k reduce = k + n in 0..8) { reads A[y, k] writes C[y] "
                       "init { C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                       "    }\n"
                       "  }\n"
                       "}\n";

    HAS("if k + n == 0 {\n        block C.init", after("init", AVX512, text));
    same_meaning("init", AVX512, text, SIZES(1, 3, 7));
}

Test(init, of_a_loop_that_mixes_spatial_and_reduce_is_repeated)
{
    same_meaning("init", AVX512,
                 ROWS("for yk.0 in 0..floordiv(n*8 + 4, 5) { for yk.1 in 0..5 {\n",
                      "y = floordiv(yk.0*5 + yk.1, 8) in 0..n, k reduce = (yk.0*5 + yk.1) % 8 in 0..8",
                      "where yk.0*5 + yk.1 < n*8", "}}"),
                 SIZES(0, 1, 4));
}

Test(init, of_a_mixed_loop_is_refused_where_the_reduction_may_be_empty)
{
    HAS("cannot place the init of 'C': loop 'yk' mixes spatial and reduce variables, and the reduction over "
        "'k' may be empty",
        refusal("init", AVX512,
                "program p(symbol n, A: f32[3, n], out C: f32[3]) {\n"
                "  for yk in 0..n*3 {\n"
                "    block C(y = floordiv(yk, n) in 0..3, k reduce = yk % n in 0..n) { reads A[y, k] writes "
                "C[y] init { C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                "  }\n"
                "}\n"));
}

Test(init, in_place_is_refused_where_the_reduction_may_be_empty)
{
    HAS("cannot place the init of 'C': its loops are not known to start at the first point of the reduction, "
        "which may be empty",
        refusal("init", AVX512,
                "program p(symbol n, symbol m, A: f32[3, n], out C: f32[3]) where m <= n {\n"
                "  for y in 0..3 { for k in 0..n - m {\n"
                "    block C(y = y in 0..3, k reduce = k + m in 0..n) { reads A[y, k] writes C[y] init { "
                "C[y] = 0.0 } C[y] sum= A[y, k] }\n"
                "  } }\n"
                "}\n"));
}

/* With n = 10, S[6] gets its second term from 16, at j = 0 and i = 2, before its first one from 6, at j =
 * 6. */
Test(init, in_place_is_refused_where_loops_mix_spatial_and_reduce_variables)
{
    HAS("cannot place the init of 'S': its loops are not known to start at the first point of the reduction, "
        "and 'i' is not the only one that mixes spatial and reduce variables",
        refusal("init", AVX512,
                "program p(symbol n, symbol m, symbol e, A: f32[m, n], out S: f32[n]) where m >= 1 {\n"
                "  for j in 0..8 { for i in 0..e {\n"
                "    block S(y = (i*8 + j) % n in 0..n, k reduce = floordiv(i*8 + j, n) in 0..m) where "
                "floordiv(i*8 + j, n) < m {\n"
                "      reads A[k, y]\n"
                "      writes S[y]\n"
                "      init { S[y] = 0.0 }\n"
                "      S[y] sum= A[k, y]\n"
                "    }\n"
                "  } }\n"
                "}\n"));
}

/* Where a loop of n * c iterations runs, n is at least 1: 0 / n is the first point of the reduction. */
Test(init, goes_in_front_where_a_factor_of_the_extent_divides)
{
    HAS("if floordiv(i * 8 + j, n) < m {\n"
        "        block S.init(y = (i * 8 + j) % n in 0..n)",
        after("init", AVX512,
              "program p(symbol n, symbol m, A: f32[m, n], out S: f32[n]) where m >= 1 {\n"
              "  for j in 0..8 { for i in 0..n * floordiv(m + 7, 8) {\n"
              "    block S(y = (i*8 + j) % n in 0..n, k reduce = floordiv(i*8 + j, n) in 0..m) where "
              "floordiv(i*8 + j, n) < m {\n"
              "      reads A[k, y]\n"
              "      writes S[y]\n"
              "      init { S[y] = 0.0 }\n"
              "      S[y] sum= A[k, y]\n"
              "    }\n"
              "  } }\n"
              "}\n"));
}

/* The same factor does not tell that the reduction has a point, and without one the init is due. */
Test(init, of_a_fused_reduction_that_may_be_empty_is_refused)
{
    HAS("'i' mixes spatial and reduce variables, and the reduction over 'k' may be empty",
        refusal("init", AVX512,
                "program p(symbol n, symbol m, A: f32[m, n], out S: f32[n]) {\n"
                "  for i in 0..n * m {\n"
                "    block S(y = i % n in 0..n, k reduce = floordiv(i, n) in 0..m) {\n"
                "      reads A[k, y] writes S[y] init { S[y] = 0.0 } S[y] sum= A[k, y]\n"
                "    }\n"
                "  }\n"
                "}\n"));
}

Test(init, in_place_is_refused_under_a_guard_of_the_reduction)
{
    HAS("which may be guarded",
        refusal("init", AVX512,
                "program p(symbol m, A: f32[3, 8], out C: f32[3]) where m < 8 {\n"
                "  for y in 0..3 { for k in 0..8 {\n"
                "    block C(y = y in 0..3, k reduce = k + m in 0..8) where k + m < 8 {\n"
                "      reads A[y, k] writes C[y] init { C[y] = 0.0 } C[y] sum= A[y, k]\n"
                "    }\n"
                "  } }\n"
                "}\n"));
}

/* The binding of k mentions m, and so does the guard of x: that does not make it a guard of the reduction. */
Test(init, keeps_a_spatial_guard_over_a_symbol_of_the_reduction)
{
    const char *text = "program p(symbol m, A: f32[m], out C: f32[m]) where m >= 1 {\n"
                       "  for x0 in 0..floordiv(m + 1, 2) {\n"
                       "    for x1 in 0..2 {\n"
                       "      for k0 in 0..4 {\n"
                       "        for k1 in 0..floordiv(m + 3, 4) {\n"
                       "          block S(x = x0*2 + x1 in 0..m, k reduce = k0*floordiv(m + 3, 4) + k1 in "
                       "0..m) where x0*2 + x1 < m && k0*floordiv(m + 3, 4) + k1 < m {\n"
                       "            reads A[k]\n"
                       "            writes C[x]\n"
                       "            init { C[x] = 0.0 }\n"
                       "            C[x] sum= A[k]\n"
                       "          }\n"
                       "        }\n"
                       "      }\n"
                       "    }\n"
                       "  }\n"
                       "}\n";

    HAS("if x0 * 2 + x1 < m {\n        block S.init(", after("init", AVX512, text));
    same_meaning("init", AVX512, text, SIZES(1, 2, 5));
}

/* Which loops an init needs, names in between decide as well. */
Test(init, copies_the_values_with_a_name_that_its_place_depends_on)
{
    const char *text = "program p(symbol n, A: f32[n, 8], out C: f32[n]) {\n"
                       "  for k in 0..8%s { for y.0 in 0..floordiv(n + 2, 3) { let first = y.0*3 { for y.1 "
                       "in 0..min(3, n - first) { let row = first + y.1 {\n"
                       "    block C(y = row in 0..n, k reduce = k in 0..8) {\n"
                       "      reads A[y, k] writes C[y] init { C[y] = 0.0 } C[y] sum= A[y, k]\n"
                       "    }\n"
                       "  } } } } }\n"
                       "}\n";
    const char *start = "  for y.0 in 0..floordiv(n + 2, 3) {\n"
                        "    let first = y.0 * 3 {\n"
                        "      for y.1 in 0..min(3, n - first) {\n"
                        "        let row = first + y.1 {\n";

    HAS(base_format(cx, "%s          block C.init(y = row in 0..n)", start),
        after("init", AVX512, base_format(cx, text, "")));
    HAS(base_format(cx, "%s          for lane in 0..8 vectorised {\n            block C.lanes.init(", start),
        after("lanes", AVX512, base_format(cx, text, " vectorised")));
    same_meaning("all", AVX512, base_format(cx, text, ""), SIZES(0, 1, 3, 7));
    same_meaning("all", AVX512, base_format(cx, text, " vectorised"), SIZES(0, 1, 3, 7));
}
