/* tests/lower/everywhere.c -- a pass does to a statement the same wherever it stands: in a sequence, in
 * either branch of a condition, in a let, an allocation, an attribute or a loop. What it makes of the
 * statement alone has to stand in its place.
 *
 *     trim:  for x in 0..8 { if x < 5 { .. } }                =>  for x in 0..5 { .. }
 *            if n > 3 { S } else { for x in 0..8 { if .. } }  =>  if n > 3 { S }
 *                                                                   else { for x in 0..5 { .. } }
 */
#include "tests/lower/pass.h"

TestSuite(everywhere, .init = open_context, .fini = close_context);

#define HEAD "program p(symbol n, A: f32[64], A2: f32[8, 8], out B: f32[64], out B2: f32[8, 8]) {\n"

/* Statements and the pass that changes them; none declares a buffer or knows more where it stands deeper. */
static const struct {
    const char *pass, *cpu, *stmt;
} changes[] = {
    {"blocks", AVX512, "block S(x = 3 in 0..64) where n > 2 { reads A[x] writes B[x] B[x] = A[x] }\n"},
    {"trim", AVX512, "for x in 0..8 { if x < 5 { B[x] = A[x] } }\n"},
    {"overlap", AVX512,
     "for k in 0..6 @double_buffer(1) { allocate T: f32[] { T[] = A[k]\n B[k] = T[]\n } }\n"},
    {"vthread", "cuda", "for v in 0..2 vthread { B[v] = A[v]\n B[v + 4] = A[v]\n }\n"},
    {"partition", AVX512, "for x in 0..8 { B[x] = select(x >= 1, A[x - 1], 0.0) }\n"},
    {"barriers", "cuda",
     "for tx in 0..8 threadIdx.x { allocate S: f32[8] @shared { S[tx] = A[tx]\n B[tx] = S[7 - tx]\n } }\n"},
    {"flatten", AVX512, "B2[3, 2] = A2[2, 3]\n"},
    {"vectorize", AVX512, "for x in 0..8 vectorised { B[x] = A[x] }\n"},
    {"unroll", AVX512, "for x in 0..2 unrolled { B[x] = A[x] }\n"},
    {"simplify", AVX512, "for x in 0..8 { B[x + 2 - 2] = A[x] + 0.0*1.0 }\n"},
    {"masks", AVX512, "B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] where broadcast(true, 4)\n"},
    {"promote", AVX512, "allocate T: f32[2] @local { T[0] = A[0]\n T[1] = A[1]\n B[0] = T[0] + T[1]\n }\n"},
    {"fma", AVX512, "B[0] = A[0]*A[1] + A[2]\n"},
    {"math", SSE2, "B[0] = floor(A[0])\n"},
};

/* Where S may stand. */
static const char *const places[] = {
    "B[1] = 0.0\n %s",
    "%s B[1] = 0.0\n",
    "%s %s",
    "%s B[1] = 0.0\n %s",
    "if 4 <= n { %s }\n",
    "if 4 <= n { %s } else { B[1] = 0.0 }\n",
    "if 4 <= n { B[1] = 0.0 } else { %s }\n",
    "if 4 <= n { %s } else { %s }\n",
    "let q = A[7] { B[1] = q\n %s }\n",
    "attribute hint(1) { %s }\n",
    "allocate K: f32[n] { K[0] = 1.0\n %s }\n",
    "for z in 0..n { %s }\n",
    "for z in 0..n parallel { %s }\n",
    "for z in 0..n { %s for y in 0..n { if 4 <= n { B[1] = 0.0\n %s } else { let q = A[7] { B[1] = q\n %s } "
    "} } }\n",
};

static const char *with(const char *place, const char *stmt)
{
    base_text t = {0};

    for (const char *at = place; *at; at++) {
        bool hole = at[0] == '%' && at[1] == 's';

        base_addn(cx, &t, hole ? stmt : at, hole ? strlen(stmt) : 1);
        at += hole;
    }
    return base_text_str(cx, &t);
}

static const char *program_of(const char *body)
{
    return base_format(cx, "%s%s}\n", HEAD, body);
}

/* What stands between the first line of a printed program and its last. */
static const char *body_of(const char *text)
{
    const char *from = strchr(text, '\n') + 1, *to = strrchr(text, '}');

    return base_format(cx, "%.*s", (int)(to - from), from);
}

Test(everywhere, passes_change_a_statement_as_they_do_alone)
{
    for (int i = 0; i < BASE_COUNT(changes); i++) {
        const char *alone = program_of(changes[i].stmt), *before = ir_program_text(cx, parse(alone));
        const char *now = after(changes[i].pass, changes[i].cpu, alone), *result = body_of(now);

        cr_assert(strcmp(before, now) != 0, "%s changes nothing:\n%s", changes[i].pass, now);
        for (int k = 0; k < BASE_COUNT(places); k++)
            SHOWS(body_of(ir_program_text(cx, parse(program_of(with(places[k], result))))),
                  body_of(
                      after(changes[i].pass, changes[i].cpu, program_of(with(places[k], changes[i].stmt)))));
    }
}
