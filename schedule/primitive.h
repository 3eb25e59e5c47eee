/* schedule/primitive.h -- the table of primitives, their arguments, and steps by name: for those who make
 * steps from data.
 *
 *     sched_arg a[] = {{.kind = SCHED_ARG_LOOP, .name = "C.y"}, {.kind = SCHED_ARG_LOOP, .name = "C.x"}};
 *     const char *const *names;
 *     if (!sched_apply(s, "fuse", a, 2, &names, &n))  // sched_error(s) says why the step was refused
 *
 * Lifetime, errors, threads: as in schedule/sched.h.
 */
#ifndef SCHEDULE_PRIMITIVE_H
#define SCHEDULE_PRIMITIVE_H

#include "schedule/sched.h"

/* What an argument is; the words are those of the signatures in primitives.def. */
#define SCHED_ARG_LIST(X)                                                                                    \
    X(LOOP, "loop")                                                                                          \
    X(LOOPS, "loops")                                                                                        \
    X(BLOCK, "block")                                                                                        \
    X(BLOCKS, "blocks")                                                                                      \
    X(PLACE, "place") /* a loop or a block */                                                                \
    X(BUFFER, "buffer")                                                                                      \
    X(FACTORS, "factors") /* ints, where `_` is inferred */                                                  \
    X(INT, "int")                                                                                            \
    X(WORD, "word")                                                                                          \
    X(WORDS, "words")                                                                                        \
    X(EXPR, "expr")   /* over symbols */                                                                     \
    X(EXPRS, "exprs") /* a list of them */                                                                   \
    X(TUPLE, "tuple") /* (36, 1): one of them in parentheses */                                              \
    X(MAP, "map")     /* (i, j) -> (j, i): expressions over variables of its own, and symbols */
typedef enum {
#define X(NAME, text) SCHED_ARG_##NAME,
    SCHED_ARG_LIST(X)
#undef X
} sched_arg_kind;

typedef struct {
    sched_arg_kind kind;
    const char *name;            /* LOOP, BLOCK, PLACE, BUFFER, WORD */
    const char *const *names;    /* LOOPS, BLOCKS, WORDS: n of them */
    const int64_t *ints;         /* FACTORS: n of them; TEC_INFER is `_` */
    const ir_expr *const *exprs; /* EXPRS, TUPLE, MAP: n of them */
    const ir_expr *const *vars;  /* MAP: n_vars of them */
    const ir_expr *expr;
    int64_t i;
    int n, n_vars;
} sched_arg;

static inline bool sched_is_list(sched_arg_kind kind) /* takes all arguments that fit, perhaps none */
{
    return kind == SCHED_ARG_LOOPS || kind == SCHED_ARG_BLOCKS || kind == SCHED_ARG_WORDS ||
           kind == SCHED_ARG_FACTORS || kind == SCHED_ARG_EXPRS;
}

enum { SCHED_MAX_ARGS = 4 };

typedef struct sched_primitive sched_primitive;

typedef struct {
    const sched_primitive *primitive;
    sched_arg arg[SCHED_MAX_ARGS];
    int n_args;
    const char *const *result;
    int n_results;
} sched_step;

typedef struct sched_call sched_call; /* one step under way: schedule/state.h */
typedef const ir_program *sched_primitive_fn(sched_call *call);

struct sched_primitive {
    const char *name;
    const char *signature; /* words of SCHED_ARG_LIST; `word=guard` may be left out and is then `guard` */
    sched_primitive_fn *run;
};
extern const sched_primitive sched_primitives[];
extern const int sched_n_primitives;
const sched_primitive *sched_primitive_named(const char *name);

#define SCHED_PRIMITIVE(name, signature) sched_primitive_fn sched_do_##name;
#include "schedule/primitives.def"

/* Checks, rewrites, appends; the results' names go to *results (may be NULL). */
bool sched_apply(sched *schedule, const char *primitive, const sched_arg *arg, int count,
                 const char *const **results, int *n_results);

/* Reads an argument of the kind that it has, as a trace writes it; what does not parse is recorded as a
 * refusal (trace.c). */
bool sched_read_text(sched *schedule, const char *primitive, const char *text, sched_arg *arg);

/* The steps that a schedule has taken, the oldest is number 0. */
int sched_n_steps(const sched *schedule);
const sched_step *sched_step_at(const sched *schedule, int i);
const char *sched_step_text(tec_context *cx, const sched_step *step);

#endif
