/* tests/lower/imports.c -- what pragmas import, listed in the notes of the program. */
#include "tests/lower/pass.h"

TestSuite(imports, .init = open_context, .fini = close_context);

Test(imports, lists_equal_ones_once_and_keeps_other_notes)
{
    SHOWS("program p(A: f32[4, 8], out B: f32[4, 8]) @import_c.0(\"a.c\") @import_c.2(\"b.c\") "
          "@import_llvm.1(\"a.c\") {\n"
          "  for y in 0..4 @unroll(2) {\n"
          "    for x in 0..8 {\n"
          "      block B(y = y in 0..4, x = x in 0..8) @keep(1) {\n"
          "        reads A[y, x]\n"
          "        writes B[y, x]\n"
          "        B[y, x] = A[y, x]\n"
          "      }\n"
          "    }\n"
          "  }\n"
          "  for z in 0..1 {\n"
          "    block C(y = z in 0..1) {\n"
          "      writes B[y, 0]\n"
          "      B[y, 0] = 1.0\n"
          "    }\n"
          "  }\n"
          "}\n",
          after("imports", AVX512,
                "program p(A: f32[4, 8], out B: f32[4, 8]) {\n"
                "  for y in 0..4 @import_c(\"a.c\") @import_llvm(\"a.c\") @unroll(2) {\n"
                "    for x in 0..8 @import_c(\"a.c\") { block B(y = y in 0..4, x = x in 0..8) "
                "@import_c(\"b.c\") @keep(1) {\n"
                "      reads A[y, x] writes B[y, x] B[y, x] = A[y, x] } } }\n"
                "  for z in 0..1 @import_llvm(\"a.c\") { block C(y = z in 0..1) { writes B[y, 0] B[y, 0] = "
                "1.0 } }\n"
                "}\n"));
}

Test(imports, leaves_a_program_without_them)
{
    const ir_program *p = parse("program p(out B: f32[8]) @note(1) {\n  for x in 0..8 { block B(x = x in "
                                "0..8) { writes B[x] B[x] = 1.0 } }\n}\n");

    cr_assert(through("imports", AVX512, p, false) == p);
}

Test(imports, wants_a_text)
{
    HAS("expected a text or a file name in quotes as the value of the pragma import_llvm, found 3",
        refusal("imports", AVX512,
                "program p(out B: f32[8]) {\n  for x in 0..8 @import_llvm(3) { block B(x = x in 0..8) { "
                "writes B[x] B[x] = 1.0 } }\n}\n"));
}
