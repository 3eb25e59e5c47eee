/* graph/code.h -- inside the room: bytecode of one function while it is written: words, registers, and what
 * is in them.
 *
 *     int32_t to = graph_code_define(c, node->out[0]);
 *     GRAPH_CODE(c, RT_GET_FIELD, to, graph_code_value(c, node->in[0]), 0, 1);
 *
 * A register is made for each value, each symbol, and each number on the way. A symbol has its register from
 * the place on where it gets its value. Constants and numbers that were computed are found again inside of
 * the region that computed them: `known` is cut back where a region ends. Lifetime: the context's. Errors: in
 * the context; -1 or false tells.
 */
#ifndef GRAPH_CODE_H
#define GRAPH_CODE_H

#include "graph/bytecode.h"
#include "graph/type.h"

/* 32-bit words that grow. */
typedef struct {
    int32_t *at;
    int n, cap;
} graph_words;

typedef struct {
    tec_context *cx;
    const graph_module *m;
    bool unoptimised; /* no calls in the place of their callers, nothing found again in a register */
    base_dict type_index, dim_index, text_index; /* key -> index + 1 */
    base_vec types, dims, texts;                 /* rt_type_desc *, rt_dim *, char * */
    graph_words dim_symbols;
    base_vec constants; /* graph_value * */
    /* of the function that is written */
    graph_words words, registers;
    bool ends;      /* straight code up to the end of the frame: small values may wait for that end */
    int freed;      /* where the words end with an instruction `free`, its place; -1: they do not */
    base_vec lines; /* rt_line_desc * */
    base_map regs;  /* graph_value *, ir_expr * (symbols) -> register + 1 */
    base_vec known; /* what is in a register here; inner regions behind */
    base_map uses;  /* of values */
} graph_code;

/* Adds a word; gives its place. */
int graph_code_put(graph_code *code, int32_t word);
/* Adds an instruction: its number, then its operands. */
#define GRAPH_CODE(code, ...)                                                                                \
    graph_code_words((code), (const int32_t[]){__VA_ARGS__},                                                 \
                     (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))
void graph_code_words(graph_code *code, const int32_t *word, int n);
void graph_code_list(graph_code *code, const int32_t *reg, int n); /* the number of items, then the items */
void graph_code_line(graph_code *code, base_loc loc);              /* what follows comes from there */
/* Of parameter k of n; before any code. */
void graph_code_parameter_line(graph_code *code, int k, int n, base_loc loc);
void graph_code_land(graph_code *code, int word); /* the jump in that word leads here */
int graph_code_here(graph_code *code);            /* a jump leads here */
/* Lets go of the object in a register. */
void graph_code_free(graph_code *code, int32_t reg);
/* What was let go just before need not be: the instruction that follows ends the frame. */
void graph_code_end_frame(graph_code *code);

/* Places in the program's tables. */
int32_t graph_code_text(graph_code *code, const char *text);
int32_t graph_code_plain_type(graph_code *code, rt_type_kind kind);
int32_t graph_code_type(graph_code *code, const graph_type *type);

int32_t graph_code_register(graph_code *code, int32_t type);
int32_t graph_code_new_number(graph_code *code);
/* The register of a value or a symbol; -1: none. */
int32_t graph_code_register_of(const graph_code *code, const void *what);
void graph_code_bind(graph_code *code, const void *what, int32_t reg);
/* A register for a value that the next instruction makes. */
int32_t graph_code_define(graph_code *code, const graph_value *value);
int32_t graph_code_value(graph_code *code, const graph_value *value);
int32_t *graph_code_values(graph_code *code, graph_value *const *value, int n);
/* The same for the arguments of a kernel, which may be constants: constant c is -1 - c. */
int32_t *graph_code_arguments(graph_code *code, graph_value *const *value, int n);

/* Numbers: extents, sizes, conditions over symbols. */
int32_t graph_code_compute(graph_code *code, const ir_expr *expr);
int32_t graph_code_number(graph_code *code, const ir_expr *expr);
bool graph_code_numbers(graph_code *code, const ir_expr *const *expr, int n, int32_t *reg);
int32_t graph_code_scalar(graph_code *code, const graph_value *value); /* the number in a tensor of rank 0 */
void graph_code_field(graph_code *code, int32_t to, int32_t of, int which, int field);

/* Symbols that a value's type names. */
bool graph_code_is_bound(void *code, const op_type *type);
void graph_code_bind_symbols(graph_code *code, const graph_type *type, int32_t reg);
/* Symbols that the inputs of the function tell in sums or multiples alone. */
bool graph_code_solve_symbols(graph_code *code, const graph_body *body);
/* Fails with the text where the condition, whose symbols have registers, does not hold. */
bool graph_code_require(graph_code *code, const ir_expr *condition, const char *text);
bool graph_code_check_facts(graph_code *code, base_vec *facts);
bool graph_code_check_input(graph_code *code, const char *name, const graph_type *type, int32_t reg);

/* The instructions of a region (graph/bytecode.c). tail: its results are the function's; otherwise they go to
 * the registers `to`. */
bool graph_code_body(graph_code *code, const graph_body *body, bool tail, const int32_t *to);
/* A loop or a scan, and its body (graph/code_loop.c). */
bool graph_code_loop(graph_code *code, const graph_node *node);
bool graph_code_scan(graph_code *code, const graph_node *node);

#endif
