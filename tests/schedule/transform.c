/* tests/schedule/transform.c -- transform_layout, and stores that the other steps have to invert. */
#include "tec/schedule.h"
#include "tests/schedule/run.h"

TestSuite(transform, .init = open_context, .fini = close_context);

static const char shifted[] =
    "def f(n, A: f32[n, 30]) { P[i, j] = A[i, j] * 2 C[i, j: 29] = P[i, j + 1] return C }";
static const char even[] = "def f(A: f32[16, 32]) { P[i, j] = A[i, j] * 2 C[i, j] = P[i, j] + 1 return C }";
static const char window[] = "def f(A: f32[18, 32]) { P[i, j] = A[i, j] * 2 C[i: 16, j] = P[i, j] + P[i + 1, "
                             "j] + P[i + 2, j] return C }";

#define TILED "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8))\n"
#define SWIZZLED "transform_layout(P, (i, j) -> (i, j ^ (i % 8)))\n"

static void has_text(const sched *s, const char *text)
{
    cr_assert(strstr(ir_program_text(cx, sched_tree(s)), text), "no '%s' in\n%s", text,
              ir_program_text(cx, sched_tree(s)));
}

Test(transform, tiles_a_buffer_of_unknown_length)
{
    sched *s = schedule_of(shifted);

    does(s, TILED);
    has_text(s, "buffer P: f32[floordiv(n + 7, 8), 30, 8]\n");
    has_text(s, "writes P[floordiv(i, 8), j, i % 8]\n");
    cr_assert_str_eq(sched_trace_text(cx, s), "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8))\n");
}

Test(transform, transposes)
{
    sched *s = schedule_of(shifted);

    does(s, "transform_layout(P, (a, b) -> (b, a))");
    has_text(s, "buffer P: f32[30, n]\n");
    does(s, "compute_at(P, C.i)\nparallel(C.i)");
}

Test(transform, swizzles)
{
    sched *s = schedule_of(even);

    does(s, SWIZZLED);
    has_text(s, "writes P[i, j ^ i % 8]");
    does(s, "compute_at(P, C.i)\nparallel(C.i)");
}

Test(transform, follows_a_reduction_and_its_cache)
{
    does(schedule_of("def f(A: f32[9, 12], B: f32[12, 7]) { C[y, x] = sum[k](A[y, k] * B[k, x]) E[y, x] = "
                     "C[y, x] + 1 return E }"),
         "transform_layout(C, (y, x) -> (floordiv(x, 4), y, x % 4))\ncache_read(B, local)\n"
         "transform_layout(B.cache.local, (k, x) -> (x, k))\ndecompose_reduction(C, C.k)");
}

Test(transform, keeps_what_the_loops_are_allowed)
{
    does(schedule_of(shifted), "parallel(P.i)\nvectorize(P.j)\n" TILED);
    does(schedule_of(shifted), TILED "parallel(P.i)\nvectorize(P.j)");
    does(schedule_of(shifted), TILED "split(P.i, _, 8)\nparallel(P.i.0)\nreorder(P.j, P.i.1)");
    does(schedule_of(even), SWIZZLED "split(P.j, _, 8)\nparallel(P.j.0)\nvectorize(P.j.1)");
}

Test(transform, is_a_function_of_the_library)
{
    sched *s = schedule_of(shifted);

    cr_assert(tec_transform_layout(s, "P", "(i, j) -> (j, i)", NULL));
    cr_assert_str_eq(sched_trace_text(cx, s), "transform_layout(P, (i, j) -> (j, i))\n");
    cr_assert(!tec_transform_layout(s, "P", "(i, j) -> (j, ", NULL));
    cr_assert(strstr(tec_schedule_error(s), "transform_layout"), "%s", tec_schedule_error(s));
}

/* ---- moving blocks whose stores are packed ---- */

Test(transform, compute_at_inverts_a_packed_store)
{
    sched *s = schedule_of(even);

    does(s, TILED "split(C.i, _, 8)\ncompute_at(P, C.i.0)\nparallel(C.i.0)");
    has_text(s, "for P.i in 0..8 {");
    has_text(s, "for P.j in 0..32 {");
}

Test(transform, compute_at_inverts_what_is_padded)
{
    sched *s = schedule_of(shifted);

    does(s, TILED "split(C.i, _, 8)\ncompute_at(P, C.i.0)\nparallel(C.i.0)");
    has_text(s, "for P.i in 0..8 {");
    does(schedule_of(shifted), TILED "compute_at(P, C.i)\ncompute_root(P)");
}

/* The largest unit that a layout is rounded up to. */
Test(transform, compute_at_inverts_tiles_of_up_to_65536)
{
    sched *s = schedule_of("def f(A: f32[70000]) { P[i] = A[i] * 2 C[i] = P[i] + 1 return C }");

    does(s, "transform_layout(P, (i) -> (floordiv(i, 65536), i % 65536))\nsplit(C.i, _, "
            "65536)\ncompute_at(P, C.i.0)\nparallel(C.i.0)");
    refuses(
        schedule_of("def f(A: f32[140000]) { P[i] = A[i] * 2 C[i] = P[i] + 1 return C }"),
        "transform_layout(P, (i) -> (floordiv(i, 131072), i % 131072))",
        "the map is not proven to be one-to-one: the parts of 'i' in use tell 262144 values apart, but it "
        "takes 140000");
}

Test(transform, compute_at_inverts_a_swizzle)
{
    sched *s = schedule_of(even);

    does(s, SWIZZLED "split(C.j, _, 16)\nreorder(C.j.0, C.i)\ncompute_at(P, C.j.0)\nparallel(C.j.0)");
    has_text(s, "for P.i in 0..16 {");
    has_text(s, "for P.j in 0..16 {");
}

Test(transform, compute_at_takes_a_window_of_a_packed_store)
{
    does(schedule_of(window), TILED "split(C.i, _, 8)\ncompute_at(P, C.i.0)");
    does(schedule_of(window), TILED "compute_at(P, C.i)");
    does(schedule_of(window), SWIZZLED "compute_at(P, C.i)");
}

Test(transform, reverse_compute_at_inverts_a_packed_read)
{
    sched *s = schedule_of(even);

    does(s, TILED "split(P.i, _, 8)\nreverse_compute_at(C, P.i.0)");
    has_text(s, "for C.i in 0..8 {");
    does(schedule_of(even), SWIZZLED "reverse_compute_at(C, P.i)");
    does(schedule_of("def f(n, A: f32[n, 30]) { P[i, j] = A[i, j] * 2 C[i, j] = P[i, j] return C }"),
         TILED "split(P.i, _, 8)\nreverse_compute_at(C, P.i.0)\nparallel(P.i.0)");
}

Test(transform, packed_stages_of_the_definition_move_too)
{
    static const char packed[] = "def f(A: f32[16, 30]) { P[io: 2, j: 30, ii: 8] = A[io * 8 + ii, j] * 2 "
                                 "C[i: 16, j: 30] = P[floordiv(i, 8), j, i % 8] + 1 return C }";

    does(schedule_of(packed), "reverse_compute_at(C, P.io)");
    does(schedule_of(packed), "compute_inline(P)");
    does(schedule_of(packed), "reverse_inline(C)");
}

Test(transform, compute_inline_inverts_a_packed_store)
{
    sched *s = schedule_of(even);

    does(s, TILED "compute_inline(P)");
    has_text(s, "C[i, j] = A[i, j] * 2.0 + 1.0");
    s = schedule_of(even);
    does(s, SWIZZLED "compute_inline(P)");
    has_text(s, "C[i, j] = A[i, j] * 2.0 + 1.0");
    does(schedule_of(shifted), TILED "compute_inline(P)");
}

Test(transform, reverse_inline_inverts_a_packed_store)
{
    sched *s = schedule_of(even);

    does(s, TILED "reverse_inline(C)");
    has_text(s, "C[i, j] = A[i, j] * 2.0 + 1.0");
    does(schedule_of(even), SWIZZLED "reverse_inline(C)");
}

Test(transform, a_store_that_is_not_one_to_one_is_not_inverted)
{
    static const char folded[] = "program f(A: f32[16], out C: f32[16]) {\n  buffer P: f32[8]\n"
                                 "  for i in 0..16 {\n    block P(v = i in 0..16) {\n      reads A[v]\n      "
                                 "writes P[v % 8]\n      P[v % 8] = A[v]\n    }\n  }\n"
                                 "  for j in 0..16 {\n    block C(v = j in 0..16) {\n      reads P[v % 8]\n  "
                                 "    writes C[v]\n      C[v] = P[v % 8]\n    }\n  }\n}\n";

    refuses(schedule_of_tree(folded), "compute_inline(P)", "the store of 'P' cannot be inverted");
    refuses(schedule_of_tree(folded), "compute_at(P, j)", "the store of 'P' to 'P' cannot be inverted");
    refuses(schedule_of_tree(folded), "reverse_compute_at(C, i)", "the store of 'P' cannot be inverted");
}

/* ---- padding ---- */

static const char thirteen[] =
    "def f(A: f32[13, 6]) { P[i, j] = A[i, j] * 2 C[i, j] = P[i, j] + 1 S[i, j] = C[i, j] return S }";

Test(transform, the_writer_fills_the_padding)
{
    sched *s = schedule_of(thirteen);

    does(s, "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 7)");
    has_text(s, "buffer P: f32[2, 6, 8] pad(7.0)\n");
    has_text(s, "P[floordiv(i, 8), j, i % 8] = select(i < 13, A[i, j] * 2.0, 7.0)");
    has_text(s, "for P.i in 0..16 {");
    cr_assert_str_eq(sched_trace_text(cx, s),
                     "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 7)\n");
}

Test(transform, readers_span_padding_that_is_filled)
{
    does(schedule_of(thirteen),
         "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 0)\n"
         "transform_layout(C, (i, j) -> (floordiv(i, 8), j, i % 8))\nsplit(C.i, _, 8, round_up)");
}

Test(transform, readers_do_not_span_what_nobody_fills)
{
    sched *s = schedule_of(thirteen);

    does(s, "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8))\ntransform_layout(C, (i, j) -> "
            "(floordiv(i, 8), j, i % 8))");
    refuses(s, "split(C.i, _, 8, round_up)",
            "rounded up, 'C' would read the padding of 'P', which nothing fills");
}

Test(transform, caches_do_not_copy_what_nobody_fills)
{
    static const char reason[] = "the layout of 'P' has padding that nothing fills, which a copy would read";
    sched *s = schedule_of(thirteen);

    does(s, "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8))");
    refuses(s, "cache_read(P, local)", reason);
    refuses(s, "cache_write(P, local)", reason);
    refuses(s, "cache_write(P, local, P.i)", reason);
    does(schedule_of(thirteen),
         "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 1)\ncache_read(P, local)");
}

Test(transform, refuses_a_writer_that_cannot_fill)
{
    sched *s = schedule_of("def f(A: f32[13, 6]) { P[i] = sum[k](A[i, k]) C[i] = P[i] return C }");

    refuses(s, "transform_layout(P, (i) -> (floordiv(i, 8), i % 8), 0)",
            "'P' is not a plain store, so it cannot fill the padding: use cache_write first");
    does(s, "cache_write(P, local)\ntransform_layout(P, (i) -> (floordiv(i, 8), i % 8), 0)");
    s = schedule_of(thirteen);
    does(s, "split(P.i, _, 4)");
    refuses(s, "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 0)",
            "to fill the padding, axis 'i' of 'P' must be one loop that runs over all of it");
    s = schedule_of(thirteen);
    does(s, "reverse_compute_at(C, P.i)");
    refuses(s, "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 0)",
            "to fill the padding, loop 'P.i' must hold nothing but 'P'");
    s = schedule_of(thirteen);
    does(s, "cut(P.i, 4)");
    refuses(s, "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 0)",
            "'P' and 'P'2' write 'P'; only one can fill its padding");
    refuses(schedule_of(thirteen), "transform_layout(P, (i, j) -> (floordiv(i, 8), j, i % 8), 0, 1)",
            "expected one value for the padding of 'P', found several");
    refuses(schedule_of("def f(n, A: f32[n]) { P[i] = A[i] C[i] = P[i] return C }"),
            "transform_layout(P, (i) -> (floordiv(i, 8), i % 8), n)",
            "the padding of 'P' is filled with a number, not with 'n'");
}

/* ---- refusals ---- */

Test(transform, refuses_maps_that_do_not_fit)
{
    sched *s = schedule_of(shifted);

    refuses(s, "transform_layout(Q, (i, j) -> (j, i))", "there is no buffer 'Q'");
    refuses(s, "transform_layout(A, (i, j) -> (j, i))",
            "'A' is an argument of the program, and the caller determines its layout");
    refuses(s, "transform_layout(C, (i, j) -> (j, i))",
            "'C' is an argument of the program, and the caller determines its layout");
    refuses(s, "transform_layout(P, (i) -> (i))",
            "expected one variable for each dimension: the map has 1 variables, but 'P' has 2 dimensions");
    refuses(s, "transform_layout(P, (i, j) -> (i + 1, j))",
            "expected an index that starts at 0, but 'i + 1' starts at 1");
    refuses(schedule_of("def f(A: f32[8]) { P[] = A[3] C[i: 4] = P[] return C }"),
            "transform_layout(P, (i) -> (i))", "'P' has no dimensions that a map could change");
    does(s, "storage_align(P, 0, 16, 4)");
    refuses(s, "transform_layout(P, (i, j) -> (j, i))", "'P' has strides already");
}

Test(transform, refuses_maps_that_are_not_one_to_one)
{
    sched *s = schedule_of(even);

    refuses(
        s, "transform_layout(P, (i, j) -> (i))",
        "the map is not proven to be one-to-one: no binding uses 'j', which takes 32 values: points repeat");
    refuses(s, "transform_layout(P, (i, j) -> (i, j % 8))",
            "the map is not proven to be one-to-one: the parts of 'j' in use tell 8 values apart, but it "
            "takes 32");
    refuses(s, "transform_layout(P, (i, j) -> (i ^ (j % 8), j ^ (i % 8)))",
            "the map is not proven to be one-to-one: its swizzles follow from one another");
    refuses(s, "transform_layout(P, (i, j) -> (i, j ^ (i * 3)))",
            "the map is not proven to be one-to-one: 'j' takes 32 values, but its domain has 64");
    refuses(
        s, "transform_layout(P, (i, j) -> (i * 2, j))",
        "the map is not proven to be one-to-one: 'i * 2' leaves gaps, since none of its terms steps by 1");
}

Test(transform, refuses_what_others_share)
{
    refuses(
        schedule_of("def f(A: f32[4, 6]) { S(V, I)[y] = argmax[k](A[y, k], k) W[y] = V[y] + 1 return W, I }"),
        "transform_layout(V, (y) -> (floordiv(y, 2), y % 2))",
        "'V' is updated together with others, which keep their layout");
}
