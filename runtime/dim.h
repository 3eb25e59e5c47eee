/* runtime/dim.h -- inside the room: dimension expressions: small checked stack code over int64, for all
 * that depends on run-time shapes.
 *
 *     rt_dim_writer w = {0};                       n * 4 + 64
 *     rt_dim_symbol(&w, 0);
 *     rt_dim_const(&w, 4);
 *     rt_dim_op(&w, RT_DIM_MUL);
 *     rt_dim_const(&w, 64);
 *     rt_dim_op(&w, RT_DIM_ADD);
 *     rt_dim d = rt_dim_of(&w);                    borrows the writer's words; copy them to keep them
 *     int64_t bytes;
 *     if (!rt_dim_eval(d, (int64_t[]){n}, &bytes, err)) ...
 *
 * The words are in postfix order: an operation's word, followed by one operand word for CONST and SYMBOL. A
 * comparison gives 0 or 1; a condition is true when it is not 0. Code is at most RT_DIM_MAX_WORDS long and
 * RT_DIM_MAX_DEPTH deep.
 * Lifetime: an rt_dim borrows its words. No words: an expression that is absent, where a field allows that.
 * Errors: overflow and division by zero are errors of the value that they make, not of the evaluation:
 *   `select` and a decided `and` or `or` drop those of the side that they do not take.
 * Threads: plain data.
 */
#ifndef RUNTIME_DIM_H
#define RUNTIME_DIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base.h"

enum { RT_DIM_MAX_WORDS = 1024, RT_DIM_MAX_DEPTH = 64 };

/* name, how it prints, values that it takes from the stack. The order is part of the file format. */
#define RT_DIM_OP_LIST(X)                                                                                    \
    X(CONST, "", 0)  /* the next word */                                                                     \
    X(SYMBOL, "", 0) /* the symbol that the next word names */                                               \
    X(ADD, "+", 2)                                                                                           \
    X(SUB, "-", 2)                                                                                           \
    X(MUL, "*", 2)                                                                                           \
    X(FLOORDIV, "//", 2) /* rounds towards minus infinity */                                                 \
    X(FLOORMOD, "%", 2)  /* has the sign of the divisor */                                                   \
    X(MIN, "min", 2)                                                                                         \
    X(MAX, "max", 2)                                                                                         \
    X(EQ, "==", 2)                                                                                           \
    X(NE, "!=", 2)                                                                                           \
    X(LT, "<", 2)                                                                                            \
    X(LE, "<=", 2)                                                                                           \
    X(AND, "and", 2)                                                                                         \
    X(OR, "or", 2)                                                                                           \
    X(NOT, "not", 1)                                                                                         \
    X(SELECT, "select", 3) /* condition, then, else */

typedef enum {
#define X(name, text, takes) RT_DIM_##name,
    RT_DIM_OP_LIST(X)
#undef X
        RT_DIM_N_OPS
} rt_dim_opcode;

typedef struct {
    const int64_t *word;
    int32_t n;
} rt_dim;

/* Makes code; `{0}` is empty. What no longer fits sets `full`, and rt_dim_of then gives no words. */
typedef struct {
    int64_t word[RT_DIM_MAX_WORDS];
    int32_t n;
    bool full;
} rt_dim_writer;

void rt_dim_const(rt_dim_writer *writer, int64_t value);
void rt_dim_symbol(rt_dim_writer *writer, int32_t symbol);
void rt_dim_op(rt_dim_writer *writer, rt_dim_opcode op);
rt_dim rt_dim_of(const rt_dim_writer *writer);

/* Whether the words are well-formed code over symbols 0..n_symbols-1 that leaves one value. Safe for any
 * words. */
bool rt_dim_verify(rt_dim dim, int n_symbols, tec_error *err);

/* The value of verified code. */
bool rt_dim_eval(rt_dim dim, const int64_t *symbols, int64_t *value, tec_error *err);

/* The same as a count of operations or bytes; 0, for unknown, where there are no words or no value. */
double rt_dim_count(rt_dim dim, const int64_t *symbols);

bool rt_dim_is_const(rt_dim dim, int64_t *value);
bool rt_dim_is_symbol(rt_dim dim, int32_t *symbol);
/* Whether verified code uses only symbols that are marked in known[]. */
bool rt_dim_is_known(rt_dim dim, const bool *known);
bool rt_dim_same(rt_dim left, rt_dim right);

/* Verified code as "n*4 + 64", cut to size, always terminated; gives buffer. names may be NULL ("s0", "s1",
 * ...). */
const char *rt_dim_text(rt_dim dim, const char *const *names, char *buffer, size_t size);

#endif
