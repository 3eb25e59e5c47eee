/* fuzz/programs/inside.h -- inside the room: a program while it is drawn.
 *
 *     graph_value *v = fuzz_pick(p, FUZZ_VECTOR);
 *     fuzz_keep(p, FUZZ_VECTOR, fuzz_op(p, "tanh", &v, 1, NULL, 0));
 *
 * What was drawn so far lies in pools, one for each kind of value; a statement picks operands from pools and
 * keeps its results there. A region sees the pools around it, and what it keeps is forgotten behind it.
 * Everything follows from the seed. Values stay small, so that rounding does not grow, and no condition and
 * no extent depends on a float. Lifetime: the context's.
 */
#ifndef FUZZ_PROGRAMS_INSIDE_H
#define FUZZ_PROGRAMS_INSIDE_H

#include "fuzz/programs/programs.h"
#include "graph/program.h"

enum { FUZZ_WIDTH = 4, FUZZ_LARGEST = 7, FUZZ_INTS_BELOW = 5 };

typedef enum {
    FUZZ_VECTOR,  /* f32[4], within -2 and 2 */
    FUZZ_ROWS,    /* f32[n, 4] */
    FUZZ_NUMBER,  /* i64[], 0 to 6 */
    FUZZ_FLAG,    /* bool[] */
    FUZZ_INTS,    /* i64[n], 0 to 4 */
    FUZZ_LIST,    /* List */
    FUZZ_TREE,    /* Tree */
    FUZZ_CLOSURE, /* f32[4] -> f32[4] */
    FUZZ_N_POOLS
} fuzz_pool;

typedef struct {
    tec_context *cx;
    uint64_t state;
    graph_module *m;
    graph_function *f;
    base_vec pool[FUZZ_N_POOLS]; /* graph_value * */
    int depth;                   /* of regions around what is drawn */
} fuzz_program;

uint64_t fuzz_draw(uint64_t *state, uint64_t below);

/* ---- pieces ---- */
graph_value *fuzz_pick(fuzz_program *self, fuzz_pool kind);
/* False for NULL: the statement could not be drawn. */
bool fuzz_keep(fuzz_program *self, fuzz_pool kind, graph_value *value);
graph_value *fuzz_op(fuzz_program *self, const char *op, graph_value *const *in, int n, const op_attr *attr,
                     int n_attrs);
graph_value *fuzz_two(fuzz_program *self, const char *op, graph_value *left, graph_value *right);
graph_value *fuzz_floats(fuzz_program *self, int n, const int64_t *shape); /* a constant, drawn */
graph_value *fuzz_positive(fuzz_program *self, int64_t n);                 /* f32[n], above 0 */
graph_value *fuzz_number(fuzz_program *self, int64_t value);               /* a constant i64[] */
graph_value *fuzz_float(fuzz_program *self, float value);                  /* a constant f32[] */
/* The value within 0 and below - 1. */
graph_value *fuzz_within(fuzz_program *self, graph_value *value, int64_t below);
/* The integer in i64[] as a new symbol. */
const ir_expr *fuzz_extent(fuzz_program *self, graph_value *number);
graph_value *fuzz_shaped(fuzz_program *self, const char *op, graph_value *value, const ir_expr *const *dim,
                         int n);

/* ---- statements ---- */
typedef struct {
    const char *name;
    int weight;
    bool (*draw)(fuzz_program *self);
} fuzz_statement;
extern const fuzz_statement fuzz_plain[], fuzz_structured[], fuzz_dynamic[];
extern const int fuzz_n_plain, fuzz_n_structured, fuzz_n_dynamic;
void fuzz_statements(fuzz_program *self, int count);

/* ---- text ---- */

/* A type of the text, and a name that has it where an expression stands. */
typedef struct fuzz_type fuzz_type;
struct fuzz_type {
    enum {
        FUZZ_OF_VECTOR,
        FUZZ_OF_ROWS,
        FUZZ_OF_NUMBER,
        FUZZ_OF_TREE,
        FUZZ_PAIR,
        FUZZ_BOTH,
        FUZZ_SEQ,
        FUZZ_OPTION
    } kind;
    const fuzz_type *part[2];
};
typedef struct {
    const fuzz_type *type;
    const char *name;
} fuzz_named;

/* Everything is drawn from `state`, so a text is a function of its seed. Names are numbered: v3 is the fourth
 * vector. */
typedef struct {
    tec_context *cx;
    uint64_t state;
    base_text text;
    int n_vectors, n_rows, n_trees; /* names so far: v0.., m0.., t0.. */
    base_vec others;                /* fuzz_named *: of other types */
} fuzz_text;

#define FUZZ_ADD(text_, ...) base_addf((text_)->cx, &(text_)->text, __VA_ARGS__)

/* Expressions of type f32[4] and f32[?, 4] that are not deeper than `depth`, and a condition. */
void fuzz_add_vector(fuzz_text *self, int depth);
void fuzz_add_rows(fuzz_text *self, int depth);
void fuzz_add_condition(fuzz_text *self);
/* Functions with type parameters, and functions `blend` and `stretch` without, which use them. */
void fuzz_add_generics(fuzz_text *self);
/* An expression of the type by functions with type parameters. */
void fuzz_add_by_generics(fuzz_text *self, const fuzz_type *type, int depth);
extern const fuzz_type fuzz_vector_type, fuzz_rows_type, fuzz_tree_type, fuzz_number_type;

/* ---- whole programs ---- */
/* The text of types and functions, and of a drawn `main`, or of one that gives its argument. */
const char *fuzz_program_text(tec_context *cx, uint64_t *state, bool with_main);
/* A function "drawn" of the module, out of statements. */
bool fuzz_program_function(fuzz_program *self);

#endif
