/* tests/lower/masks.c -- masks that constants decide. */
#include "tests/lower/pass.h"

TestSuite(masks, .init = open_context, .fini = close_context);

#define P(body)                                                                                              \
    "program p(symbol n, A: f32[64], out B: f32[64]) {\n  for i in 0..64 { B[i] = 7.0 }\n" body "}\n"
#define BELOW(first, k) "ramp(" #first ", 1, 8) < broadcast(" #k ", 8)"

Test(masks, of_all_lanes_go)
{
    const char *text =
        P("  B[ramp(0, 1, 8)] = (A[ramp(8, 1, 8)] where " BELOW(0, 8) ") where !(" BELOW(8, 8) ")\n");

    HAS("  B[ramp(0, 1, 8)] = A[ramp(8, 1, 8)]\n}", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}

Test(masks, of_no_lane_take_the_store_with_them)
{
    const char *text = P("  B[ramp(0, 1, 8)] = A[ramp(8, 1, 8)] where " BELOW(
        8, 8) "\n"
              "  B[ramp(8, 1, 8)] = A[ramp(8, 1, 8)] where " BELOW(0, 4) " && " BELOW(9, 2) "\n");

    HAS("B[i] = 7.0\n  }\n}", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}

Test(masks, of_no_lane_make_a_load_zero)
{
    const char *text = P("  B[ramp(0, 1, 8)] = (A[ramp(60, 1, 8)] where " BELOW(8, 8) ") + select(" BELOW(
        0, 1) " || " BELOW(0, 9) ", broadcast(1.0, 8), A[ramp(0, 1, 8)])\n");

    HAS("broadcast(0.0, 8) + broadcast(1.0, 8)", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}

Test(masks, of_some_lanes_stay)
{
    const char *text =
        P("  B[ramp(0, 1, 8)] = A[ramp(8, 1, 8)] where " BELOW(0, 5) " && ramp(0, 1, 8) < broadcast(n, 8)\n");

    SHOWS(after("", AVX512, text), after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(0, 3, 9));
}

Test(masks, are_not_tested_twice)
{
    const char *text = P("  B[ramp(0, 1, 8)] = select(" BELOW(
        0, 5) ", A[ramp(8, 1, 8)], broadcast(0.0, 8)) where " BELOW(0, 5) "\n");

    HAS("B[ramp(0, 1, 8)] = A[ramp(8, 1, 8)] where", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}

Test(masks, stay_on_the_lanes_of_a_shuffle)
{
    const char *text = P("  B[ramp(0, 1, 8)] = shuffle([select(" BELOW(
        0, 5) ", A[ramp(8, 1, 8)], broadcast(0.0, 8))], [7, 6, 5, 4, 3, 2, 1, 0])"
              " where " BELOW(0, 5) "\n");

    HAS("select(", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}

Test(masks, stay_where_they_keep_a_load_inside)
{
    const char *text = P("  B[ramp(0, 1, 8)] = select(" BELOW(
        0, 5) ", A[ramp(n + 60, 1, 8)], broadcast(0.0, 8)) where " BELOW(0, 5) "\n");

    HAS("select(", after("masks", AVX512, text));
}

/* Only lanes of a small i load T, whose end the loop passes. */
Test(masks, stay_where_they_keep_a_load_inside_of_local_memory)
{
    const char *text =
        P("  allocate T: f32[2] @local {\n    T[0] = 1.0\n    T[1] = 2.0\n    for i in 0..64 {\n"
          "      B[ramp(0, 1, 2)] = select(broadcast(i, 2) < ramp(0, 1, 2), broadcast(T[i], 2), "
          "broadcast(0.0, 2))"
          " where broadcast(i, 2) < ramp(0, 1, 2)\n    }\n  }\n");

    HAS("select(", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}

/* Index arithmetic must not divide by 0 in any lane; data may. */
Test(masks, stay_where_they_keep_a_divisor_from_zero)
{
    const char *index = "program p(A: i64[8], out B: i64[8]) {\n  for i in 0..8 { B[i] = 7 }\n"
                        "  B[ramp(0, 1, 8)] = broadcast(6, 8) / select(" BELOW(
                            0, 5) ", ramp(-5, 1, 8), broadcast(1, 8)) where " BELOW(0, 5) "\n}\n";
    const char *data = "program p(A: i32[8], out B: i32[8]) {\n  for i in 0..8 { B[i] = i32(7) }\n"
                       "  B[ramp(0, 1, 8)] = broadcast(i32(6), 8) / select(" BELOW(
                           0, 5) ", A[ramp(0, 1, 8)], broadcast(i32(1), 8)) where " BELOW(0, 5) "\n}\n";

    HAS("/ select(", after("masks", AVX512, index));
    HAS("/ A[", after("masks", AVX512, data));
}

/* Whether lane `value` passes the comparison with 2. */
static bool passes(const char *op, int value)
{
    return base_same(op, "==")   ? value == 2
           : base_same(op, "!=") ? value != 2
           : base_same(op, "<")  ? value < 2
           : base_same(op, "<=") ? value <= 2
           : base_same(op, ">")  ? value > 2
                                 : value >= 2;
}

static void decides(const char *op, int base, int stride)
{
    const char *text =
        base_format(cx, P("  B[ramp(0, 1, 4)] = A[ramp(8, 1, 4)] where ramp(%d, %d, 4) %s broadcast(2, 4)\n"),
                    base, stride, op);
    const char *now = ir_program_text(cx, same_meaning("masks", AVX512, text, SIZES(1)));
    int lanes = 0;

    for (int i = 0; i < 4; i++)
        lanes += passes(op, base + stride * i);
    cr_assert_eq(strstr(now, "where") != NULL, lanes > 0 && lanes < 4, "%d lanes:\n%s", lanes, now);
    cr_assert_eq(strstr(now, "B[ramp(0, 1, 4)]") != NULL, lanes > 0, "%d lanes:\n%s", lanes, now);
}

Test(masks, are_decided_by_every_comparison)
{
    static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};

    for (int i = 0; i < BASE_COUNT(ops); i++)
        for (int base = -4; base <= 8; base++)
            for (int stride = -2; stride <= 2; stride++)
                decides(ops[i], base, stride);
}

#define MIXED "ramp(0, 1, 8) < broadcast(n, 8)"

Test(masks, that_one_side_decides_are_the_other)
{
    static const char *const all[] = {BELOW(0, 8) " && " MIXED, MIXED " && " BELOW(0, 8),
                                      BELOW(8, 8) " || " MIXED, MIXED " || " BELOW(8, 8)};
    static const char *const none[] = {BELOW(8, 8) " && " MIXED, MIXED " && " BELOW(8, 8)};
    static const char *const every[] = {BELOW(0, 8) " || " MIXED, MIXED " || " BELOW(0, 8)};
    const char *store = P("  B[ramp(0, 1, 8)] = A[ramp(8, 1, 8)] where %s\n");

    for (int i = 0; i < BASE_COUNT(all); i++)
        SHOWS(after("", AVX512, base_format(cx, store, MIXED)),
              after("masks", AVX512, base_format(cx, store, all[i])));
    for (int i = 0; i < BASE_COUNT(none); i++) {
        HAS_NOT("ramp", after("masks", AVX512, base_format(cx, store, none[i])));
        HAS("B[ramp(0, 1, 8)] = A[ramp(8, 1, 8)]\n",
            after("masks", AVX512, base_format(cx, store, every[i])));
    }
}

Test(masks, that_are_decided_leave_one_value_of_a_select)
{
    const char *text = P("  B[ramp(0, 1, 8)] = select(" BELOW(
        0, 8) ", A[ramp(0, 1, 8)], A[ramp(8, 1, 8)])"
              " + select(" BELOW(8, 8) ", A[ramp(16, 1, 8)], A[ramp(24, 1, 8)])\n");

    HAS("B[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] + A[ramp(24, 1, 8)]\n", after("masks", AVX512, text));
}

/* Of a conjunction or a disjunction with a side that all lanes agree on, the other side is left, or that
 * one. */
Test(masks, logic_with_a_decided_side_is_the_other_or_that_one)
{
    static const struct {
        const char *mask, *store;
    } cases[] = {
        {"broadcast(true, 4) && ramp(0, 1, 4) < broadcast(n, 4)",
         "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] where ramp(0, 1, 4) < broadcast(n, 4)\n"},
        {"ramp(0, 1, 4) < broadcast(n, 4) && broadcast(true, 4)",
         "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] where ramp(0, 1, 4) < broadcast(n, 4)\n"},
        {"broadcast(false, 4) || ramp(0, 1, 4) < broadcast(n, 4)",
         "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] where ramp(0, 1, 4) < broadcast(n, 4)\n"},
        {"ramp(0, 1, 4) < broadcast(n, 4) || broadcast(false, 4)",
         "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] where ramp(0, 1, 4) < broadcast(n, 4)\n"},
        {"broadcast(true, 4) || ramp(0, 1, 4) < broadcast(n, 4)", "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)]\n"},
        {"ramp(0, 1, 4) < broadcast(n, 4) || broadcast(true, 4)", "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)]\n"},
    };

    for (int i = 0; i < BASE_COUNT(cases); i++)
        HAS(cases[i].store, after("masks", AVX512,
                                  base_format(cx,
                                              "program p(symbol n, A: f32[4], out B: f32[4]) {\n"
                                              "  B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] where %s\n"
                                              "}\n",
                                              cases[i].mask)));
}

/* Both leave a constant number of the first lanes: the last vector of a tile of 12 at an edge of 16. */
Test(masks, of_two_that_leave_first_lanes_the_narrower_stays)
{
    const char *text =
        P("  B[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] where " BELOW(0, 6) " && " BELOW(12, 16) "\n");

    HAS("where ramp(12, 1, 8) < broadcast(16, 8)\n", after("masks", AVX512, text));
    same_meaning("masks", AVX512, text, SIZES(1));
}
