/* runtime/bytecode.h -- programs as data: data types, functions and their bytecode (docs/module.md).
 *
 *     rt_type_desc f32x4 = {.kind = RT_TYPE_TENSOR, .dtype = BASE_F32, .rank = 1, .extents = (int64_t[]){4}};
 *     rt_routine_desc f = {.name = "main", .registers = (int32_t[]){0}, .n_registers = 1, .n_params = 1,
 * ...};
 *     if (!rt_bytecode_check(&module, err)) ...
 *
 * Each register of a function has one type. Registers hold objects (runtime/object.h) or 64-bit numbers. The
 * verifier holds every word of the code against the types and follows which registers are set, so that the VM
 * need not look again; what depends on values (extents, constructors, memory) is checked while it runs.
 * Lifetime: a description borrows all that it points at. Threads: plain data.
 */
#ifndef RUNTIME_BYTECODE_H
#define RUNTIME_BYTECODE_H

#include "base/base.h"
#include "runtime/dim.h"

typedef enum {
#define RT_INSTRUCTION(name, text, operands) RT_##name,
#include "runtime/instructions.def"
    RT_N_INSTRUCTIONS
} rt_instruction;

enum {
    RT_MAX_TYPES = 4096,
    RT_MAX_REGISTERS = 1 << 14, /* of one function */
    RT_MAX_WORDS = 1 << 22,     /* of one function */
    RT_MAX_FIELDS = 1024        /* of a tuple or a constructor, parameters of a function value */
};

typedef enum {
    RT_TYPE_NUMBER,  /* an i64, no object */
    RT_TYPE_STORAGE, /* memory */
    RT_TYPE_TENSOR,
    RT_TYPE_TUPLE,
    RT_TYPE_DATA,
    RT_TYPE_FUNCTION
} rt_type_kind;

/* Parts are types that stand before this one. */
typedef struct {
    rt_type_kind kind;
    base_dtype dtype; /* of a tensor */
    int32_t rank;
    const int64_t *extents; /* of a tensor; -1: any. They count for what users hand in only */
    int32_t data;           /* which data type of the program */
    const int32_t *parts;   /* of a tuple; of a function its parameters, then its results */
    int32_t n_parts, n_params;
} rt_type_desc;

typedef struct {
    const char *name;
    const int32_t *fields; /* types */
    int32_t n_fields;
} rt_constructor_desc;

typedef struct {
    const char *name;
    const rt_constructor_desc *constructors;
    int32_t n_constructors;
} rt_data_desc;

/* The code from this word on comes from that line; -1 - i: from the place, such as a node of a model, that
 * text i of the program names. Parameter k stands at word k - n_params. In the first function, constructor c
 * of all m of the program stands at word c - m - n_params, and line 0 means that its line is not known. */
typedef struct {
    int32_t word, line;
} rt_line_desc;

typedef struct {
    const char *name;
    const char *file;         /* where it was written; may be NULL */
    const int32_t *registers; /* their types; the first are the parameters */
    int32_t n_registers, n_params;
    const char *const *params; /* names, for users */
    int32_t n_names;
    const int32_t *results; /* types */
    int32_t n_results;
    const int32_t *words;
    int32_t n_words;
    const rt_line_desc *lines; /* by rising words */
    int32_t n_lines;
} rt_routine_desc;

/* A program; without functions there is none. The first function is where a run begins. */
typedef struct {
    const rt_type_desc *types;
    int32_t n_types;
    const rt_data_desc *data;
    int32_t n_data;
    const rt_dim *dims; /* over the numbers that an instruction lists */
    int32_t n_dims;
    const int32_t *dim_symbols; /* how many each takes */
    int32_t n_dim_symbols;
    const char *const *texts;
    int32_t n_texts;
    const rt_routine_desc *functions;
    int32_t n_functions;
} rt_program_desc;

/* What an instruction is called, and its operands by the letters of instructions.def. */
const char *rt_instruction_name(int op);
const char *rt_instruction_operands(int op);
/* Operands of one word each, then so many lists. */
typedef struct {
    uint8_t n_plain, n_lists;
} rt_instruction_shape;
extern const rt_instruction_shape rt_instruction_shapes[RT_N_INSTRUCTIONS];

/* Words of an instruction that the verifier has seen. */
static inline int32_t rt_verified_words(const int32_t *words)
{
    const rt_instruction_shape shape = rt_instruction_shapes[words[0]];
    int32_t n = 1 + shape.n_plain;

    for (int32_t i = 0; i < shape.n_lists; i++)
        n += 1 + words[n];
    return n;
}

/* Words of the instruction at `at`; 0 where no instruction lies there or it does not end within count
 * words. */
int32_t rt_instruction_words(const int32_t *words, int32_t at, int32_t count);

/* For each type the first that is the same but for extents: two registers with equal ones hold the same. */
bool rt_type_classes(const rt_program_desc *program, int32_t *classes, tec_error *err);

/* The instruction at `at` as text: "r4 = get_field r1, 1, 0"; gives buffer. */
const char *rt_instruction_text(const rt_program_desc *program, const rt_routine_desc *routine, int32_t at,
                                char *buffer, size_t size);
/* The line of the word, or the number of its place (rt_line_desc); 0: unknown. */
int32_t rt_line_of(const rt_routine_desc *routine, int32_t word);
/* Fails with the place of the word, then the text: "p.tecp:3: in 'main': TEXT", or "node 'sum' (Add): TEXT".
 * Always false. */
bool rt_fail_at(const rt_program_desc *program, const rt_routine_desc *routine, int32_t word,
                tec_status status, const char *text, tec_error *err);

#endif
