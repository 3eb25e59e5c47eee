/* tests/lower/columns.c -- columns of local squares are shuffled together from rows. */
#include "tests/lower/pass.h"

TestSuite(columns, .init = open_context, .fini = close_context);

#define P(body)                                                                                              \
    "program p(symbol n, A: f32[64], out B: f32[64]) {\n  for i in 0..64 { B[i] = 7.0 }\n"                   \
    "  allocate T: f32[64] @local {\n    for i in 0..64 { T[i] = A[i] }\n" body "  }\n}\n"

/* All columns of a square, which starts behind other elements, and rows that are further apart. */
Test(columns, come_from_rows)
{
    const char *text = P("    B[ramp(0, 1, 4)] = T[ramp(16, 4, 4)]\n"
                         "    B[ramp(4, 1, 4)] = T[ramp(17, 4, 4)]\n"
                         "    B[ramp(8, 1, 4)] = T[ramp(18, 4, 4)]\n"
                         "    B[ramp(12, 1, 4)] = T[ramp(19, 4, 4)]\n"
                         "    B[ramp(16, 1, 8)] = T[ramp(3, 8, 8)]\n"
                         "    B[ramp(24, 1, 4)] = T[ramp(7, 16, 4)]\n");
    const char *now = after("columns", AVX512, text);

    HAS("shuffle([shuffle([T[ramp(16, 1, 4)], T[ramp(24, 1, 4)]], [0, 4, 1, 5]), "
        "shuffle([T[ramp(20, 1, 4)], T[ramp(28, 1, 4)]], [0, 4, 1, 5])], [0, 4, 1, 5])",
        now);
    HAS_NOT(", 4, 4)", now);
    HAS_NOT(", 8, 8)", now);
    same_meaning("columns", AVX512, text, SIZES(1));
    same_meaning("columns,promote", AVX512, text, SIZES(1));
}

/* Rows whose lanes the mask leaves out are not read: the square may end before them. */
Test(columns, of_few_rows_read_no_others)
{
    const char *text =
        P("    B[ramp(0, 1, 8)] = (T[ramp(44, 8, 8)] where ramp(0, 1, 8) < broadcast(3, 8))\n");
    const char *now = after("columns", AVX512, text);

    HAS("T[ramp(56, 1, 8)]", now);
    HAS("broadcast(0.0, 8)", now);
    HAS_NOT("T[ramp(64", now);
    same_meaning("columns", AVX512, text, SIZES(1));
}

Test(columns, leaves_other_accesses_alone)
{
    static const char *const loads[] = {
        "B[ramp(0, 1, 4)] = A[ramp(1, 4, 4)]",
        "B[ramp(0, 1, 4)] = T[ramp(1, 3, 4)]",
        "B[ramp(0, 1, 4)] = T[ramp(1, 6, 4)]",
        "B[ramp(0, 1, 2)] = T[ramp(1, 2, 2)]",
        "B[ramp(0, 1, 4)] = T[ramp(n, 4, 4)]",
        "B[ramp(0, 1, 3)] = T[ramp(1, 3, 3)]",
        "B[ramp(0, 1, 4)] = T[ramp(1, -4, 4)]",
        "B[ramp(0, 1, 4)] = (T[ramp(1, 4, 4)] where ramp(0, 1, 4) < broadcast(n, 4))",
    };

    for (int i = 0; i < (int)(sizeof loads / sizeof *loads); i++) {
        const char *text = base_format(cx, P("    %s\n"), loads[i]);

        HAS_NOT("shuffle", after("columns", AVX512, text));
    }
}
