/* tests/schedule/padding.c -- steps that read more of a buffer than the tree read before, where several
 * blocks write it. What is accepted must run: the interpreter reports elements that nobody wrote. */
#include "tests/schedule/run.h"

TestSuite(schedule_padding, .init = open_context, .fini = close_context);

/* The step is refused, or the tree, whose output has `count` elements, runs without a fault. Gives whether it
 * was accepted. */
static bool is_sound(const char *tree, int64_t count, const char *step)
{
    sched *s = schedule_of_tree(tree);
    float out[64] = {0}, in[64] = {0};
    ir_arg args[] = {{.array = &(ir_array){.dtype = BASE_F32, .n = 1, .shape = {64}, .data = in}},
                     {.array = &(ir_array){.dtype = BASE_F32, .n = 1, .shape = {count}, .data = out}}};

    cr_assert(ir_interpret(cx, sched_tree(s), &(ir_run){.args = args}), "%s", tec_context_error(cx));
    if (!sched_replay(s, "trace", step))
        return false;
    cr_assert(ir_interpret(cx, sched_tree(s), &(ir_run){.args = args}), "%s\n%s", tec_context_error(cx),
              ir_program_text(cx, sched_tree(s)));
    return true;
}

/* A block `name` of 4 x 4 elements of P, from row y and column x on. */
#define QUARTER(name, y, x)                                                                                  \
    "  for " name ".i in 0..4 { for " name ".j in 0..4 { block " name "(v = " name ".i in 0..4, w = " name   \
    ".j in 0..4) { reads A[v*8 + w] writes P[v + " y ", w + " x "] P[v + " y ", w + " x                      \
    "] = A[v*8 + w] } } }\n"
/* C reads the diagonal of P. */
#define QUARTERS(writers)                                                                                    \
    "program p(A: f32[64], out B: f32[8]) {\n  buffer P: f32[8, 8]\n" writers                                \
    "  for C.i in 0..8 { block C(v = C.i in 0..8) { reads P[v, v] writes B[v] B[v] = P[v, v] } }\n}\n"

Test(schedule_padding, a_copy_does_not_read_corners_that_nobody_writes)
{
    cr_assert_not(
        is_sound(QUARTERS(QUARTER("P", "0", "0") QUARTER("Q", "4", "4")), 8, "cache_read(P, local)"));
    cr_assert(is_sound(
        QUARTERS(QUARTER("P", "0", "0") QUARTER("Q", "4", "4") QUARTER("R", "0", "4") QUARTER("S", "4", "0")),
        8, "cache_read(P, local)"));
}

/* The last element of P is written by a block of its own, behind C or in front of it. */
#define FIRST "  for P.i in 0..7 { block P(v = P.i in 0..7) { reads A[v] writes P[v] P[v] = A[v] } }\n"
#define LAST "  for Q.i in 0..1 { block Q(v = Q.i in 0..1) { reads A[v] writes P[v + 7] P[v + 7] = A[v] } }\n"
#define DOUBLES                                                                                              \
    "  for C.i in 0..7 { block C(v = C.i in 0..7) { reads P[v] writes C[v] C[v] = P[v] * 2.0 } }\n"
#define AROUND(blocks)                                                                                       \
    "program p(A: f32[64], out B: f32[7]) {\n  buffer P: f32[8]\n  buffer C: f32[8]\n" blocks                \
    "  for S.i in 0..7 { block S(v = S.i in 0..7) { reads C[v], P[v + 1] writes B[v] "                       \
    "B[v] = C[v] + P[v + 1] } }\n}\n"

Test(schedule_padding, a_reader_is_not_rounded_up_to_what_is_written_behind_it)
{
    cr_assert_not(is_sound(AROUND(FIRST DOUBLES LAST), 7, "split(C.i, _, 4, round_up)"));
    cr_assert(is_sound(AROUND(FIRST LAST DOUBLES), 7, "split(C.i, _, 4, round_up)"));
}
