/* tests/lower/split.c -- launches taken out of programs, and the list that is read off them. */
#include "lower/launches.h"
#include "tests/lower/pass.h"

TestSuite(split, .init = open_context, .fini = close_context);

/* Statements beside the loops over blocks are launches of one thread. S and T outlive a launch, so both have
 * places in the workspace. */
Test(split, names_launches_and_places_what_lies_between_them)
{
    const char *text = "program p(symbol n, A: f32[n], out B: f32[n]) where n >= 1 {\n"
                       "  allocate S: f32[n] { allocate T: f32[2] {\n"
                       "    for b in 0..n blockIdx.x { S[b] = A[b] * 2.0 }\n"
                       "    T[0] = 1.0\n"
                       "    T[1] = S[0]\n"
                       "    if n > 1 {\n"
                       "      for b in 0..floordiv(n + 3, 4) blockIdx.x { for t in 0..4 threadIdx.x {\n"
                       "        if b * 4 + t < n { B[b * 4 + t] = S[b * 4 + t] + T[1] }\n"
                       "      } }\n"
                       "    } else { B[0] = T[0] }\n"
                       "  } }\n"
                       "}\n";

    SHOWS("program p(symbol n, A: f32[n], out B: f32[n]) where n >= 1 @workspace(floordiv(n + 15, 16) * 64 + "
          "64) {\n"
          "  allocate S: f32[n] @workspace(0) {\n"
          "    allocate T: f32[2] @workspace(floordiv(n + 15, 16) * 64) {\n"
          "      attribute launch(0) {\n"
          "        for b in 0..n blockIdx.x {\n"
          "          S[b] = A[b] * 2.0\n"
          "        }\n"
          "      }\n"
          "      attribute launch(1) {\n"
          "        T[0] = 1.0\n"
          "        T[1] = S[0]\n"
          "      }\n"
          "      if n > 1 {\n"
          "        attribute launch(2) {\n"
          "          for b in 0..floordiv(n + 3, 4) blockIdx.x {\n"
          "            for t in 0..4 threadIdx.x {\n"
          "              if b * 4 + t < n {\n"
          "                B[b * 4 + t] = S[b * 4 + t] + T[1]\n"
          "              }\n"
          "            }\n"
          "          }\n"
          "        }\n"
          "      } else {\n"
          "        attribute launch(3) {\n"
          "          B[0] = T[0]\n"
          "        }\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("split", OPENCL, text));
    same_meaning("split", OPENCL, text, SIZES(1, 2, 9, 33));
}

Test(split, gives_memory_of_a_block_or_a_thread_its_scope)
{
    const char *text = "program p(A: f32[8], out B: f32[8]) {\n"
                       "  for b in 0..2 blockIdx.x { allocate S: f32[4] {\n"
                       "    for t in 0..4 threadIdx.x { S[t] = A[b * 4 + t] }\n"
                       "    evaluate call<i32> tec.barrier(\"global\")\n"
                       "    for t in 0..4 threadIdx.x { allocate T: f32[1] {\n"
                       "      T[0] = S[3 - t]\n"
                       "      B[b * 4 + t] = T[0]\n"
                       "    } }\n"
                       "  } }\n"
                       "}\n";
    const char *out = after("split", OPENCL, text);

    cr_assert(strstr(out, "allocate S: f32[4] @shared {"), "%s", out);
    cr_assert(strstr(out, "allocate T: f32[1] @local {"), "%s", out);
    same_meaning("split", OPENCL, text, SIZES(1));
}

Test(split, keeps_shared_memory_of_a_launch_without_blocks_inside_of_it)
{
    const char *text = "program p(A: f32[8], out B: f32[8]) {\n"
                       "  for t in 0..8 threadIdx.x { allocate S: f32[8] @shared {\n"
                       "    S[t] = A[t]\n"
                       "    B[t] = S[7 - t]\n"
                       "  } }\n"
                       "}\n";

    SHOWS("program p(A: f32[8], out B: f32[8]) @workspace(0) {\n"
          "  attribute launch(0) {\n"
          "    allocate S: f32[8] @shared {\n"
          "      for t in 0..8 threadIdx.x {\n"
          "        S[t] = A[t]\n"
          "        evaluate call<i32> tec.barrier(\"shared\")\n"
          "        B[t] = S[7 - t]\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("barriers,split", OPENCL, text));
    same_with_barriers("barriers,split", OPENCL, text, SIZES(1));
}

/* ---- the list ---- */

static base_vec launches_in(const char *text, base_vec *loops)
{
    base_vec all = {0};
    const ir_program *p = through("split", OPENCL, parse(text), false);

    cr_assert(p && lower_launches(cx, p, &all, loops), "%s", tec_context_error(cx));
    return all;
}

static base_vec launches_of(const char *text)
{
    base_vec loops = {0}, all = launches_in(text, &loops);

    cr_assert_eq(loops.n, 0);
    return all;
}

Test(split, tells_sizes_and_arguments)
{
    base_vec all = launches_of(
        "program p(symbol n, symbol m, A: f32[n * m], f: f32, B: f32[n], out C: f32[n * m]) {\n"
        "  allocate S: f32[m] {\n"
        "    for b in 0..m blockIdx.y { S[b] = f }\n"
        "    if m > 2 { for by in 0..m blockIdx.y { for bx in 0..n blockIdx.x { allocate T: f32[24] @shared "
        "{\n"
        "      for ty in 0..4 threadIdx.y { for tx in 0..6 threadIdx.x { T[ty * 6 + tx] = A[bx] } }\n"
        "      for tx in 0..2 threadIdx.x { C[bx * m + by] = T[tx] + S[by] }\n"
        "    } } } }\n"
        "  }\n"
        "}\n");
    const lower_launch *first = all.at[0], *second = all.at[1];

    cr_assert_eq(all.n, 2);
    cr_assert_eq(first->n_args, 2);
    cr_assert(first->args[0].param == 1 && first->args[0].scalar && !first->args[0].buffer);
    cr_assert(first->args[1].param == -1 && first->args[1].buffer && ir_is_value(first->args[1].offset, 0) &&
              first->args[1].written);
    cr_assert_null(first->guard);
    cr_assert_str_eq(ir_expr_text(cx, first->grid[1]), "m");
    cr_assert(ir_is_value(first->grid[0], 1) && first->block[0] == 1);
    cr_assert_str_eq(ir_expr_text(cx, second->guard), "m > 2");
    cr_assert(second->block[0] == 6 && second->block[1] == 4 && second->block[2] == 1);
    cr_assert_eq(second->shared_bytes, 128);
    cr_assert_eq(second->n_args, 4); /* A, C, S, m */
    cr_assert(second->args[0].param == 0 && !second->args[0].written && second->args[1].param == 3 &&
              second->args[1].written);
    cr_assert_str_eq(second->args[3].scalar->var.name, "m");
}

Test(split, leaves_loops_around_launches_to_the_host)
{
    base_vec loops = {0},
             all = launches_in("program p(symbol n, A: f32[n * n], out C: f32[n * n]) {\n"
                               "  C[0] = 0.0\n"
                               "  for t in 1..+(n - 1) {\n"
                               "    allocate S: f32[8] {\n"
                               "      for b in 0..t blockIdx.x { S[0] = A[b] }\n"
                               "      for u in 0..t { for b in 0..8 blockIdx.x { C[b] = S[b] + A[t * u] } }\n"
                               "    }\n"
                               "  }\n"
                               "}\n",
                               &loops);
    const lower_loop *outer = loops.at[0], *inner = loops.at[1];
    const lower_launch *second = all.at[1], *third = all.at[2];

    cr_assert(all.n == 3 && loops.n == 2);
    cr_assert(outer->first == 1 && outer->end == 3 && inner->first == 2 && inner->end == 3);
    cr_assert_str_eq(ir_expr_text(cx, outer->extent), "n - 1");
    cr_assert_str_eq(ir_expr_text(cx, inner->extent), "t");
    cr_assert_str_eq(ir_expr_text(cx, second->grid[0]), "t");
    cr_assert_eq(second->n_args, 2); /* A, S: only the host uses the number of blocks */
    cr_assert_eq(third->n_args, 5);  /* A, C, S, t, u */
    cr_assert(ir_is_value(third->args[2].offset, 0));
    cr_assert_str_eq(third->args[3].scalar->var.name, "t");
    cr_assert_str_eq(third->args[4].scalar->var.name, "u");
}

static void refuses(const char *body, const char *says)
{
    base_vec all = {0}, loops = {0};
    const ir_program *p =
        through("split", OPENCL,
                parse(base_format(
                    cx, "program p(symbol n, A: f32[64], out B: f32[64]) where n >= 1 {\n%s\n}\n", body)),
                false);

    cr_assert(p, "%s", tec_context_error(cx));
    cr_assert_not(lower_launches(cx, p, &all, &loops), "%s", body);
    cr_assert(strstr(tec_context_error(cx), says), "'%s' is not in '%s'", says, tec_context_error(cx));
    tec_context_clear(cx);
}

Test(split, refuses_what_a_list_of_launches_cannot_say)
{
    refuses("for i in 0..4 { allocate S: f32[i + 1] { for b in 0..4 blockIdx.x { S[0] = A[i] } } }",
            "the number of elements of buffer 'S', 'i + 1', changes in a loop around launches");
    refuses("for i in 0..i64(A[0]) { for b in 0..4 blockIdx.x { B[b] = A[i] } }",
            "the bounds of loop 'i' around launches are read from the device's memory");
    refuses("if A[0] > 1.0 { for b in 0..4 blockIdx.x { B[b] = A[b] } }",
            "the host cannot decide the condition 'A[0] > 1.0' of a launch: it reads the device's memory");
    refuses("let x = A[0] { for b in 0..4 blockIdx.x { B[b] = x } }",
            "a launch uses 'x', which is read from the device's memory outside of it");
    refuses("for y in 0..4 blockIdx.y { for x in 0..4 blockIdx.x { B[x] = A[y] } B[9] = 1.0 }",
            "loop 'x' over blockIdx.x and other statements are together inside a loop over blocks");
    refuses("for y in 0..4 blockIdx.x { for x in 0..4 blockIdx.x { B[x] = A[y] } }",
            "loop 'x' is over blockIdx.x inside another loop over the same axis");
    refuses("for y in 0..4 blockIdx.y { for x in 0..y blockIdx.x { B[x] = A[y] } }",
            "the number of blocks along x, 'y', depends on 'y'");
    refuses("for t in 0..n threadIdx.x { B[t] = A[t] }",
            "expected a constant number of threads: loop 't' over threadIdx.x has 'n' iterations");
    refuses(
        "for b in 0..4 blockIdx.x { allocate T: f32[n] @local { T[0] = A[b] B[b] = T[0] } }",
        "buffer 'T' is allocated inside a launch, where sizes must be constants, but it has 'n' elements");
    refuses("for t in 0..4 threadIdx.y { allocate T: f32[4] { for u in 0..4 threadIdx.x { T[u] = A[u] B[t] = "
            "T[u] } } }",
            "buffer 'T' is allocated inside a launch, where only shared and local memory exist, but its "
            "scope is global");
}
