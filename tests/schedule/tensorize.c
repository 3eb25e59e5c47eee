/* tests/schedule/tensorize.c -- blocks of blocks, and pieces of trees as tensor intrinsics: what is accepted,
 * and what is refused. */
#include "ir/walk.h"
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(blockize, .init = open_context, .fini = close_context);
TestSuite(tensorize, .init = open_context, .fini = close_context);

/* ---- blockize ---- */

static const char mm[] =
    "def mm(n, m, A: f32[n, 24], B: f32[24, m]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }";

Test(blockize, keeps_the_kinds_of_variables)
{
    sched *s = schedule_of("def mv(A: f32[12, 8], x: f32[8]) { C[y] = sum[k](A[y, k] * x[k]) return C }");

    does(s, "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 2)\nreorder(yo, ko, yi, ki)\nblockize(yi)");
    looks(s, "for C.y.0 in 0..3 {\n"
             "  for C.k.0 in 0..4 {\n"
             "    block C(y = C.y.0 in 0..3, k reduce = C.k.0 in 0..4) {\n"
             "      reads A[y * 4:+4, k * 2:+2], x[k * 2:+2]\n"
             "      writes C[y * 4:+4]\n"
             "      init {\n"
             "        for C.y.1 in 0..4 {\n"
             "          C[y * 4 + C.y.1] = 0.0\n"
             "        }\n"
             "      }\n"
             "      for C.y.1 in 0..4 {\n"
             "        for C.k.1 in 0..2 {\n"
             "          C[y * 4 + C.y.1] sum= A[y * 4 + C.y.1, k * 2 + C.k.1] * x[k * 2 + C.k.1]\n"
             "        }\n"
             "      }\n"
             "    }\n"
             "  }\n"
             "}\n");
}

Test(blockize, starts_the_reduction_that_lies_inside)
{
    sched *s = schedule_of(mm);

    does(s, "C = blockize(C.k)\nparallel(C.y)");
    cr_assert(strstr(tree_text(s), "          C[y, x] = 0.0\n          for C.k in 0..24 {") ||
                  strstr(tree_text(s), "C[y, x] = 0.0\n"),
              "%s", tree_text(s));
    cr_assert_null(strstr(tree_text(s), "init"));
    does(schedule_of(mm), "blockize(C.y)");
    does(schedule_of("def f(A: f32[5]) { B[i] = A[i] * 2.0 return B }"), "blockize(B.i)");
}

Test(blockize, takes_tails_inside)
{
    does(schedule_of(mm),
         "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 5)\nreorder(yo, C.x, ko, yi, ki)\nblockize(yi)");
    does(schedule_of(mm), "yo, yi = split(C.y, _, 4)\nxo, xi = split(C.x, _, 3)\nreorder(yo, xo, C.k, yi, "
                          "xi)\nblockize(yi)\nparallel(yo)");
}

/* The loops around do not reach the end of the domain; those of compute_root would. */
Test(blockize, keeps_the_last_block_in_the_domain)
{
    sched *s = schedule_of("def f(A: f32[7]) { P[x] = A[x] * 2.0 C[y: 2, x: 3] = P[x] + 1.0 return C }");

    does(s, "compute_at(P, C.y)\nblockize(P.x)\ncompute_root(P)");
    cr_assert(strstr(tree_text(s), "for P.x in 0..3 {\n  block P(x = P.x in 0..3) {\n"), "%s", tree_text(s));
    cr_assert(strstr(tree_text(s), "    for P.x'2 in 0..3 {\n      if x * 3 + P.x'2 < 7 {\n"), "%s",
              tree_text(s));
    s = schedule_of("def f(n, A: f32[n]) where n % 4 == 0 { B[i] = A[i] + 1.0 return B }");
    does(s, "o, i = split(B.i, _, 4)\nblockize(i)");
    cr_assert_null(strstr(tree_text(s), "if "), "%s", tree_text(s));
}

/* Neither part of a cut gets other loops, so the first is what its loops say and no condition stands in
 * it. */
Test(blockize, adds_no_condition_to_a_part_of_a_cut)
{
    sched *s = schedule_of("def f(A: f32[7]) { B[i] = A[i] + 1.0 return B }");

    does(s, "B.i.0, B.i.1 = cut(B.i, 4)\nblockize(B.i.0)");
    cr_assert_null(strstr(tree_text(s), "if "), "%s", tree_text(s));
    refuses(s, "compute_root(B)", "'B' is not the only writer of 'B': 'B'2' writes it too");
}

Test(blockize, runs_in_the_loops_that_others_moved_into)
{
    does(schedule_of("def f(n, A: f32[n, 16]) { B[y, x] = A[y, x] + 1.0 C[y, x] = B[y, x] * 2.0 return C }"),
         "xo, xi = split(C.x, _, 4)\nblockize(xi)\ncompute_at(B, xo)");
    does(schedule_of(mm), "ko, ki = split(C.k, _, 6)\nreorder(C.y, ko, C.x, ki)\ninit = "
                          "decompose_reduction(C, ko)\nblockize(ki)");
}

/* What it began with lies elsewhere: it must not run again, whatever loops its updates stand in. */
Test(blockize, knows_instances_that_go_on)
{
    static const char rows[] = "def f(A: f32[10, 6]) { C[y] = sum[k](A[y, k]) return C }";

    refuses(schedule_of(rows),
            "init = decompose_reduction(C, C.k)\nblockize(C.k)\nsplit(C.y, _, 4, shift_inwards)",
            "shift_inwards repeats instances of 'C', but it does not initialise its reduction itself");
    refuses(schedule_of(rows), "init = decompose_reduction(C, C.k)\nblockize(C.k)\nstore_predicate(C, C.y)",
            "the stores of 'C' are not duplicates: it does not initialise its reduction itself");
    does(schedule_of(rows), "blockize(C.k)\nsplit(C.y, _, 4, shift_inwards)");
    does(schedule_of(rows), "init = decompose_reduction(C, C.k)\nblockize(C.k)\ncache_write(C, local)");
}

Test(blockize, refuses_what_is_no_block)
{
    refuses(schedule_of("def f(A: f32[4, 8]) { B[y, x] = A[y, x] + 1.0 return B }"),
            "vectorize(B.x)\nblockize(B.x)",
            "loop 'B.x' is vectorised; one instance of a block runs its loops one after the other");
    refuses(schedule_of("def f(A: f32[4]) { B[i] = A[i] + 1.0 C[i] = B[i] * 2.0 return C }"),
            "compute_at(B, C.i)\nblockize(C.i)",
            "expected only loops around one block below 'C.i', found other statements");
    refuses(schedule_of(mm), "blockize(C.q)", "there is no loop 'C.q'; did you mean 'C.y'?");
    refuses(schedule_of("def f(n, A: f32[n]) { B[i] = A[i] + 1.0 return B }"),
            "i0, i1 = split(B.i, 4, _)\nreorder(i1, i0)\nblockize(i0)",
            "'i = B.i.0 * floordiv(n + 3, 4) + B.i.1' does not run without gaps below 'B.i.0'");
    refuses(schedule_of("def f(A: f32[16]) { B[i] = A[i] + 1.0 return B }"),
            "i0, i1 = split(B.i, 4, 4)\nreorder(i1, i0)\nblockize(i0)",
            "'i = B.i.0 * 4 + B.i.1' does not run without gaps below 'B.i.0'");
    refuses(schedule_of("def f(A: f32[6, 4]) { B[i, j] = A[i, j] + 1.0 return B }"),
            "f = fuse(B.i, B.j)\no, i = split(f, _, 8)\nblockize(i)",
            "'i = B.i~B.j.0 * 2 + floordiv(B.i~B.j.1, 4)' does not run without gaps below 'B.i~B.j.1'");
}

/* ---- tensorize ---- */

static const char intrinsics[] =
    "intrinsic dot(a: f32[4, 4], b: f32[4]) { c[i] = sum[k](a[i, k] * b[k]) return c strides a[lda, 1] body "
    "\"call dot\" reset "
    "\"c[ramp(0, 1, 4)] = broadcast(0.0, 4)\" update \"for i in 0..4 { for k in 0..4 { c[i] = c[i] + a[i, k] "
    "* b[k] } }\" }\n"
    "intrinsic packed(a: f32[4, 4], b: f32[4]) { c[i] = sum[k](a[i, k] * b[k]) return c update \"call "
    "packed\" }\n"
    "intrinsic any(n, a: f32[n], b: f32[n]) { c[] = sum[k](a[k] * b[k]) return c update \"call any_length\" "
    "}\n"
    "intrinsic tile(a: f32[4, 2]) { c[j, i] = a[i, j] return c strides a[lda, 1] strides c[ldc, 1] body "
    "\"call transpose\" }\n"
    "intrinsic axpy(a: f32[8], alpha: f32) { y[i] = a[i] * alpha return y body \"call axpy\" }\n"
    "intrinsic aligned(a: f32[8]) { y[i] = a[i] + 1.0 return y align a 32 body \"call f\" }\n"
    "intrinsic onchip(a: f32[8]) { y[i] = a[i] + 1.0 return y scope a local body \"call f\" }\n"
    "intrinsic top(a: f32[4]) { c[] = max[k](a[k]) return c update \"call top\" }\n"
    "intrinsic clamp(a: i32[8]) { c[i] = i8(min(max(a[i], i32(-128)), i32(127))) return c body \"call "
    "clamp\" }\n"
    "intrinsic broken(a: f32[8]) { y[i] = a[i] * 3.0 return y body \"mul {a}\" }\n"
    "intrinsic second(a: f32[2, 8]) { y[i] = a[1, i] + 1.0 return y strides a[s, 1] body \"call second\" }\n"
    "intrinsic poly(a: f32[2, 4]) { combiner horner(x: f32; y: f32) = (x * 3.0 + y) identity (0.0) c[] = "
    "horner[j: 2, k: 4](a[j, k]) return c "
    "update \"call poly\" }\n"
    "intrinsic eights(n, a: f32[n]) where n % 8 == 0 { y[i] = a[i] + 1.0 return y body \"call eights\" }\n";

static sched *with_intrinsics(const char *def)
{
    sched *s = schedule_of(def);
    te_intrinsics *t = te_intrinsics_parse(cx, "intrinsics", intrinsics);

    cr_assert(t, "%s", tec_context_error(cx));
    sched_use_intrinsics(s, t);
    return s;
}

static const char mv[] =
    "def mv(n, A: f32[n, 24], x: f32[24]) where n % 4 == 0 { C[y] = sum[k](A[y, k] * x[k]) return C }";
#define TILES "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 4)\nreorder(yo, ko, yi, ki)\n"

Test(tensorize, marks_the_nests_and_keeps_their_meaning)
{
    sched *s = with_intrinsics(mv);

    does(s, "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 4)\nreorder(yo, ko, yi, ki)\nC = "
            "tensorize(yi, dot)\nparallel(yo)");
    cr_assert(strstr(tree_text(s), "attribute tensorize(\"dot.reset\") {\n          for C.y.1 in 0..4"), "%s",
              tree_text(s));
    cr_assert(strstr(tree_text(s), "attribute tensorize(\"dot.update\") {\n        for C.y.1 in 0..4"), "%s",
              tree_text(s));
    cr_assert_eq(sched_tree(s)->n_intrinsics, 2);
    cr_assert(strstr(sched_trace_text(cx, s), "\nC = tensorize(C.y.1, dot)\n"), "%s",
              sched_trace_text(cx, s));
}

/* With an init of its own the block is two statements; an intrinsic it is all the same. */
Test(tensorize, keeps_to_itself_what_starts_its_own_reduction)
{
    sched *s = with_intrinsics("def mv(A: f32[8, 4], x: f32[4]) { C[y] = sum[k](A[y, k] * x[k]) return C }");

    does(s, "yo, yi = split(C.y, _, 4)\nC = tensorize(yi, packed)");
    refuses(s, "tensorize(C, packed)", "'C' is tensorized already");
    refuses(s, "vectorize(C.y.0)", "'C' is tensorized and cannot run in lanes");
}

Test(tensorize, sees_through_order_and_names)
{
    does(with_intrinsics(mv),
         "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 4)\nreorder(yo, ko, ki, yi)\ntensorize(ki, dot)");
    does(with_intrinsics("def mv(A: f32[8, 8], x: f32[8]) { C[y] = sum[k](x[k] * A[y, k]) return C }"),
         TILES "tensorize(yi, dot)");
    does(with_intrinsics(
             "def mv(A: f32[8, 1, 8], x: f32[8]) { C[y, u: 1] = sum[k, v: 1](x[k] * A[y, v, k]) return C }"),
         "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 4)\nreorder(yo, ko, C.u, yi, ki, "
         "C.v)\ntensorize(C.u, dot)");
    does(with_intrinsics("def mv(A: f32[2, 2, 4, 4], x: f32[8]) { C[o: 2, i: 4] = sum[p: 2, q: 4](A[o, p, i, "
                         "q] * x[p * 4 + q]) return C }"),
         "reorder(C.o, C.p, C.i, C.q)\ntensorize(C.i, packed)");
    does(
        with_intrinsics("def t(A: f32[8, 6]) { B[y: 6, x: 8] = A[x, y] return B }"),
        "yo, yi = split(B.y, _, 2)\nxo, xi = split(B.x, _, 4)\nreorder(yo, xo, xi, yi)\ntensorize(xi, tile)");
    does(with_intrinsics("def s(n, A: f32[n, 8], f: f32) { B[y, x] = f * A[y, x] return B }"),
         "tensorize(B.x, axpy)");
    does(with_intrinsics(
             "def s(n, A: i32[n, 8]) { B[y, x] = i8(min(i32(127), max(i32(-128), A[y, x]))) return B }"),
         "tensorize(B.x, clamp)");
}

Test(tensorize, writes_two_blocks_as_one_intrinsic)
{
    sched *s = with_intrinsics(
        "def s(n, A: f32[n, 8], f: f32) { B[y, x] = f * A[y, x] D[y, x] = f * B[y, x] return D }");

    does(s, "tensorize(B.x, axpy)");
    int n = sched_tree(s)->n_intrinsics;
    does(s, "tensorize(D.x, axpy)");
    cr_assert_eq(sched_tree(s)->n_intrinsics, n);
}

Test(tensorize, takes_blocks_that_were_made_before)
{
    does(with_intrinsics(mv), TILES "b = blockize(yi)\ntensorize(b, dot)");
    does(with_intrinsics(mv), TILES "init = decompose_reduction(C, ko)\ntensorize(yi, dot)");
}

Test(tensorize, takes_the_part_of_a_cut_that_is_whole_tiles)
{
    does(with_intrinsics("def mv(A: f32[7, 8], x: f32[8]) { C[y] = sum[k](A[y, k] * x[k]) return C }"),
         "main, tail = cut(C.y, 4)\nyo, yi = split(main, _, 4)\nko, ki = split(C.k, _, 4)\nreorder(yo, ko, "
         "yi, ki)\ntensorize(yi, dot)");
}

/* Rows that do not exist are left out as a whole; a condition on the columns of the tile is part of it. */
Test(tensorize, leaves_a_condition_around_the_tile)
{
    sched *s = with_intrinsics(
        "def mv(n, A: f32[n, 8, 8], x: f32[8]) {\n"
        "  C[r: n, y: 8] = sum[j: 3, k: 8](A[r + j - 1, y, k] * x[k] where r + j >= 1 && r + j < n + 1)\n"
        "  return C\n"
        "}");

    does(s, "yo, yi = split(C.y, _, 4)\nko, ki = split(C.k, _, 4)\nreorder(yo, C.j, ko, yi, ki)\n"
            "C = tensorize(yi, dot)");
    cr_assert(strstr(tree_text(s), "if r + j >= 1 && r + j < n + 1 {\n"
                                   "            attribute tensorize(\"dot.update\") {"),
              "%s", tree_text(s));
    refuses(s, "tensorize(C, dot)", "'C' is tensorized already");
    refuses(with_intrinsics("def mv(A: f32[8, 8], x: f32[8]) {\n"
                            "  C[y] = sum[k](A[y, k] * x[k] where k % 3 < 2)\n"
                            "  return C\n"
                            "}"),
            TILES "tensorize(yi, dot)",
            "'C' cannot be tensorized: it is not 'dot.update': the conditions differ: the intrinsic has "
            "'nothing', the program '(k * 4 + C.k.1) % 3 < 2'");
}

Test(tensorize, has_a_body_for_whole_reductions)
{
    sched *s = with_intrinsics("def mv(A: f32[8, 4], x: f32[4]) { C[y] = sum[k](A[y, k] * x[k]) return C }");

    does(s, "yo, yi = split(C.y, _, 4)\ntensorize(yi, dot)");
    cr_assert(strstr(tree_text(s), "attribute tensorize(\"dot\") {"), "%s", tree_text(s));
    s = with_intrinsics(
        "def mv(A: f32[1, 8, 4], x: f32[4]) { C[y, z] = sum[k](A[y, z, k] * x[k]) return C }");
    does(s, "zo, zi = split(C.z, _, 4)\ntensorize(zi, packed)");
    cr_assert(strstr(tree_text(s), "attribute tensorize(\"packed.update\") {"), "%s", tree_text(s));
}

Test(tensorize, lengths_may_be_anything_and_tails_belong_to_them)
{
    does(with_intrinsics("def mv(n, m, A: f32[n, m], x: f32[m]) { C[y] = sum[k](A[y, k] * x[k]) return C }"),
         "tensorize(C.k, any)");
    does(with_intrinsics("def mv(n, m, A: f32[n, m], x: f32[m]) { C[y] = sum[k](A[y, k] * x[k]) return C }"),
         "ko, ki = split(C.k, _, 8)\ntensorize(ki, any)");
    does(with_intrinsics("def f(n, m, A: f32[n, m]) where m % 8 == 0 { B[y, x] = A[y, x] + 1.0 return B }"),
         "tensorize(B.x, eights)");
}

Test(tensorize, replays_as_text)
{
    sched *s = with_intrinsics(mv), *again = with_intrinsics(mv);

    does(s, TILES "tensorize(yi, dot)");
    does(again, sched_trace_text(cx, s));
    cr_assert_str_eq(tree_text(s), tree_text(again));
    const ir_program *read = ir_parse_program(cx, "t", ir_program_text(cx, sched_tree(s)));
    cr_assert(read && ir_same_program(cx, read, sched_tree(s)), "%s", tec_context_error(cx));
}

static void differs(const char *def, const char *trace, const char *reason)
{
    refuses(with_intrinsics(def), trace, reason);
}

#define MV(a, x, t, body) "def mv(A: " a ", x: " x ") { C[y] = sum[k](" body ") return C }"
#define NOT(form) "'C' cannot be tensorized: it is not '" form "': "

/* One case for each thing that is compared: dtype, operand, stride, extent, and so on. */
Test(tensorize, says_which_part_differs)
{
    differs(MV("f64[8, 8]", "f64[8]", , "A[y, k] * x[k]"), TILES "tensorize(yi, packed)",
            NOT("packed.update") "the dtype differs: 'c' of the intrinsic is f32, 'C' is f64");
    differs("def mv(A: f16[8, 8], x: f32[8]) { C[y] = sum[k](f32(A[y, k]) * x[k]) return C }",
            TILES "tensorize(yi, packed)",
            NOT("packed.update") "an operand differs: the intrinsic has 'a[c.i, c.k]', the program 'f32(A[y "
                                 "* 4 + C.y.1, k * 4 + C.k.1])'");
    differs(mv, TILES "tensorize(yi, packed)",
            NOT("packed.update") "the stride of 'a' along 'c.i' is 4 in the intrinsic; in the program 'A' "
                                 "has 24 along 'C.y.1'");
    differs(
        mv,
        "yo, yi = split(C.y, _, 2)\nko, ki = split(C.k, _, 4)\nreorder(yo, ko, yi, ki)\ntensorize(yi, dot)",
        NOT("dot.update") "the extent of 'c.i' is 4 in the intrinsic; in the program 'C.y.1' has 2");
    differs(
        mv, "ko, ki = split(C.k, _, 4)\ntensorize(ki, dot)",
        NOT("dot.update") "the loops differ: the intrinsic has 2 of more than one iteration, the program 1");
    differs("def mv(A: f32[8, 8], x: f32[8]) { C[y] = max[k](A[y, k] * x[k]) return C }",
            TILES "tensorize(yi, dot)",
            NOT("dot.update") "the combiner differs: the intrinsic has 'c[c.i] sum= a[c.i, c.k] * b[c.k]', "
                              "the program "
                              "'C[y * 4 + C.y.1] max= A[y * 4 + C.y.1, k * 4 + C.k.1] * x[k * 4 + C.k.1]'");
    differs(MV("f32[8, 8]", "f32[8]", , "A[y, k] - x[k]"), TILES "tensorize(yi, dot)",
            NOT("dot.update") "an operand differs: the intrinsic has 'a[c.i, c.k] * b[c.k]', the program "
                              "'A[y * 4 + C.y.1, k * 4 + C.k.1] - x[k * 4 + C.k.1]'");
    differs("def mv(n, A: f32[n, 24], x: f32[24]) { C[y] = sum[k](A[y, k] * x[k]) return C }",
            TILES "tensorize(yi, dot)",
            NOT("dot.update") "a condition differs: loop 'c.i' runs to 4 in the intrinsic; in the program a "
                              "condition ends 'C.y.1' at "
                              "min(4, n - y * 4)");
}

Test(tensorize, says_what_does_not_fit_the_place)
{
    const char *f = "def f(n, A: f32[n, 8]) { B[y, x] = A[y, x] + 1.0 return B }";

    refuses(with_intrinsics(f), "tensorize(B.x, aligned)",
            "'B' cannot be tensorized: it is not 'aligned': the alignment of 'a' is 32 bytes in the "
            "intrinsic; in the program 'A' at element "
            "y * 8 is only known to be aligned to 4");
    refuses(with_intrinsics(f), "tensorize(B.x, second)",
            "'B' cannot be tensorized: it is not 'second': where 'a' of the intrinsic begins, 's', no loop "
            "of the program tells");
    refuses(with_intrinsics(f), "tensorize(B.x, onchip)",
            "'B' cannot be tensorized: it is not 'onchip': the scope of 'a' is local in the intrinsic; in "
            "the program 'A' is global");
    does(with_intrinsics(f), "c = cache_read(A, local, B)\ncompute_at(c, B.y)\ntensorize(B.x, onchip)");
    refuses(with_intrinsics("def f(n, m, A: f32[n, m]) { B[y, x] = A[y, x] + 1.0 return B }"),
            "tensorize(B.x, eights)",
            "'B' cannot be tensorized: it is not 'eights': the intrinsic wants 'n % 8 == 0', which is not "
            "proven: 'm % 8 == 0'");
    refuses(with_intrinsics("def s(n, A: i32[n, 8]) { B[y, x] = i8(min(i32(127), A[y, x])) return B }"),
            "tensorize(B.x, clamp)",
            "'B' cannot be tensorized: it is not 'clamp': an operand differs: the intrinsic has 'max(a[c.i], "
            "i32(-128))', the program 'A[y, B.x]'");
}

Test(tensorize, says_which_operands_or_orders_do_not_fit)
{
    const char *poly = "def p(A: f32[2, 4]) { combiner horner(x: f32; y: f32) = (x * 3.0 + y) identity (0.0) "
                       "C[] = horner[%s](A[j, k]) return C }";

    refuses(with_intrinsics("def f(A: f32[4, 8], g: f32[8]) { B[y, x] = A[y, x] * g[x] return B }"),
            "tensorize(B.x, axpy)",
            "'B' cannot be tensorized: it is not 'axpy': 'alpha' of the intrinsic is one value, in the "
            "program 'g[B.x]' is not");
    refuses(with_intrinsics(
                "def f(n, x: f32[8], f: f32) where n >= 1 {\n"
                "  scan c[t: n] { init h[t: 1, j: 8] = x[j] update h[t, j] = h[t - 1, j] * f } return h }"),
            "tensorize(h.j, axpy)",
            "'h' cannot be tensorized: it is not 'axpy': 'a' and 'y' of the intrinsic would share the memory "
            "of 'h'");
    does(with_intrinsics(base_format(cx, poly, "j: 2, k: 4")), "tensorize(C.j, poly)");
    refuses(with_intrinsics(base_format(cx, poly, "k: 4, j: 2")), "tensorize(C.k, poly)",
            "'C' cannot be tensorized: it is not 'poly.update': the order of the loops differs, and the "
            "combiner 'horner' is not declared "
            "associative and commutative");
}

Test(tensorize, refuses_what_has_no_form)
{
    refuses(with_intrinsics(mv), TILES "tensorize(yi, dots)",
            "there is no intrinsic 'dots': expected an intrinsic of the file, or x86.vnni16, x86.vnni8, "
            "x86.bf16dot16, x86.bf16dot8, x86.bf16dot4, arm.sdot4, arm.udot4, bits.1x1, bits.2x1");
    refuses(
        with_intrinsics("def t(A: f32[8]) { B[] = sum[k](A[k] * 2.0) return B }"),
        "ko, ki = split(B.k, _, 4)\ntensorize(ki, axpy)",
        "'B' cannot be tensorized: it starts its reduction elsewhere, and intrinsic 'axpy' has no update");
    refuses(with_intrinsics("def t(A: f32[2, 8]) { B[y, x] = A[y, x] * 3.0 return B }"),
            "tensorize(B.x, broken)",
            "'B' cannot be tensorized: what 'broken' is written as is neither 'call FUNCTION', an "
            "instruction nor statements "
            "of the IR: the text of 'broken':2: "
            "error: unknown buffer 'mul'");
    refuses(with_intrinsics(mv), TILES "b = tensorize(yi, dot)\ntensorize(b, dot)",
            "'C' is tensorized already");
    refuses(with_intrinsics(mv), "tensorize(C.q, dot)", "there is no loop or block 'C.q'");
    refuses(with_intrinsics(MV("f32[8, 8]", "f32[8]", , "A[y, k] * x[k]")),
            TILES "tensorize(yi, dot)\nvectorize(yo)", "'C' is tensorized and cannot run in lanes");
}

Test(tensorize, asks_whether_the_target_has_it)
{
    sched *s =
        sched_new(cx,
                  sched_tree(schedule_of(
                      "def f(A: u8[4], B: i8[16, 4]) { C[i] = sum[k](i32(A[k]) * i32(B[i, k])) return C }")),
                  target_parse(cx, "llvm -mcpu=x86-64-v3"));

    refuses(s, "tensorize(C.i, x86.vnni16)",
            base_format(cx, "intrinsic 'x86.vnni16' needs x86_64 with avx512vnni; the target is '%s'",
                        target_text(cx, sched_target(s))));
    refuses(s, "tensorize(C.i, arm.sdot4)",
            base_format(cx, "intrinsic 'arm.sdot4' needs aarch64 with dotprod; the target is '%s'",
                        target_text(cx, sched_target(s))));
}

Test(tensorize, is_a_function_of_the_library)
{
    tec_schedule *s = tec_schedule_new(cx, tec_def_parse(cx, "t", mv, 0), NULL);
    const char *y[2], *k[2];

    tec_use_intrinsics(s, tec_intrinsics_parse(cx, "t", intrinsics));
    tec_split(s, "C.y", y, TEC_INFER, 4);
    tec_split(s, "C.k", k, TEC_INFER, 4);
    tec_reorder(s, y[0], k[0], y[1], k[1]);
    cr_assert_str_eq(tec_tensorize(s, tec_blockize(s, y[1]), "dot"), "C", "%s", tec_schedule_error(s));
    cr_assert_null(tec_tensorize(s, "C", "dots"));
    cr_assert(strstr(tec_schedule_error(s), "tests/schedule/tensorize.c:"), "%s", tec_schedule_error(s));
}
