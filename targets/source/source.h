/* targets/source/source.h -- lowered programs as text of a language like C: expressions, statements, memory.
 *
 *     source_printer *p = source_new(cx, &dialect);
 *     source_name(p, buffer, "A");                       // what a buffer or variable is called in the text
 *     source_line(p, "{");
 *     source_stmt(p, body);
 *     const char *text = source_text(p);
 *
 * A dialect says what differs between languages: names of types, of functions, qualifiers of memory, how the
 * index along an axis of threads is asked for. The printer knows no device; what is special is a function
 * that the dialect's own prelude defines, called tec_NAME or tec_NAME_TYPE.
 *
 * Values of 16-bit floats are held as f32 that was rounded, so that a language needs no type for them:
 * memory holds their bits, and the prelude has tec_f16_load, tec_f16_store, tec_f16_round, and the same for
 * bf16. Arithmetic on ints is done on unsigned ones, which wrap; but not that of indices, which is assumed
 * not to overflow (ir/ir.h).
 *
 * An expression is text within a statement, as long as every part is evaluated where and once as it should
 * be. A part that several others use, a let, and a lazy operand that needs statements of its own, become
 * named values before the statement.
 * Lifetime: the context's. Errors: in the context, UNSUPPORTED for what a dialect has no words for.
 */
#ifndef TARGETS_SOURCE_SOURCE_H
#define TARGETS_SOURCE_SOURCE_H

#include "ir/ir.h"

typedef enum { SOURCE_GLOBAL, SOURCE_SHARED, SOURCE_LOCAL } source_space;

typedef struct {
    const char *what; /* "OpenCL C", for messages */
    /* Of a scalar value, and of an element in memory: "float", "uchar"; NULL: there is no such type. */
    const char *(*type)(base_dtype dtype);
    const char *(*memory_type)(base_dtype dtype);
    /* Of so many elements side by side: "float8", with vloadN and vstoreN; NULL: there is no such type. The
     * hook is NULL in a language without them. */
    const char *(*vector)(tec_context *cx, base_dtype dtype, int lanes);
    /* Vectors are classes of C++ with operators, and functions of the prelude: tec_load<16>(A, i) and
     * tec_store<16>(A, i, v) for an i at which pieces of so many bytes begin if A does, which they find out,
     * tec_gather(A, i) and tec_scatter(A, i, v) for others, tec_min, tec_max, tec_convert<float>(v). */
    bool vector_classes;
    const char *space[3]; /* qualifiers by source_space: "__global" */
    /* A buffer of a kernel is one argument, its address; otherwise two: memory and a `long` offset. */
    bool has_addresses;
    bool has_instructions; /* the prelude has a function for each instruction of hardware/ */
    int64_t shared_bytes;  /* of a block, that the arrays of a kernel may take together; 0: any number */
    /* Beyond so many, arrays of shared memory are parts of one that the launch makes as large as it says: the
     * statement that declares that one. NULL: they are always arrays of their own. */
    int64_t static_shared_bytes;
    const char *(*dynamic_shared)(tec_context *cx, const char *name, int64_t bytes);
    const char *restricted; /* qualifier of a pointer to memory that no other one points to */
    /* Named conditions are volatile: the compiler must not copy code, and barriers with it, to the ways on
     * which a condition is known. */
    bool hides_conditions;
    /* The line in front of `void NAME(...)` of a kernel for blocks of so many threads. */
    const char *(*kernel)(tec_context *cx, const int block[3]);
    /* The function that an operation on floats is: "exp"; NULL: none. */
    const char *(*function)(ir_op op, base_dtype dtype);
    /* The index of this thread or block along an axis: "get_group_id(0)"; NULL: the language has none. */
    const char *(*index)(ir_how how);
    /* The statement that a call of an intrinsic (tec.barrier) is, without its semicolon; NULL: none. */
    const char *(*call)(tec_context *cx, const ir_expr *expr);
    /* The value of a call of an intrinsic (tec.shuffle_xor) whose arguments are these texts; NULL: no call
     * has a value. */
    const char *(*value)(tec_context *cx, const ir_expr *expr, const char *const *arg);
    /* The statement that begins an asynchronous copy of one element, so many bytes wide, from global to
     * shared memory, given both addresses; NULL, also where the hook is: the element is copied at once. */
    const char *(*copy)(tec_context *cx, int bytes, const char *to, const char *from);
    /* Casts from floats to ints saturate and take NaN to 0. */
    const char *(*to_int)(tec_context *cx, base_dtype from, base_dtype to, const char *value);
    const char *(*reinterpret)(tec_context *cx, base_dtype to, const char *value);
} source_dialect;

typedef struct source_printer source_printer;

/* The usual name of the function that an operation on floats is, for a dialect's `function`; NULL: there is
 * none. */
const char *source_function(ir_op op);

/* The words that languages share: bool, short, ulong, float; `signed_byte` is that of signed 8 bits. NULL: no
 * scalar of the language. */
const char *source_scalar(base_dtype dtype, const char *signed_byte);
/* What the memory of kernels has in place of the scalar `type`: a bool is a byte, a 16-bit float its bits. */
const char *source_in_memory(base_dtype dtype, const char *type);

source_printer *source_new(tec_context *cx, const source_dialect *dialect);
const char *source_text(source_printer *printer); /* all lines so far */

/* Reserves a name like `wanted` (letters that the language does not know become '_') for a buffer or
 * variable, and gives it. */
const char *source_name(source_printer *printer, const void *what, const char *wanted);
const char *source_name_of(source_printer *printer, const void *what); /* NULL: it has none */
void source_line(source_printer *printer, const char *fmt, ...)
    BASE_PRINTF(2, 3);                     /* indented, with its newline */
void source_open(source_printer *printer); /* deeper by a level from here on */
void source_close(source_printer *printer);

/* How many iterations the launch has along an axis; a loop over it that has fewer is a condition. 0: not
 * known. */
void source_set_axis(source_printer *printer, ir_how how, int64_t size);

/* The program with launches that have at most so many blocks along y and z: what may have more becomes a
 * launch along x (fold.c). NULL with an error. */
const ir_program *source_fold(tec_context *cx, const ir_program *program, int64_t most);

/* The program with launches whose indices are computed in 32 bits, each beside one for greater sizes where
 * sizes decide (narrow.c). NULL with an error. */
const ir_program *source_narrow(tec_context *cx, const ir_program *program);

/* All kernels of a program whose launches were split (lower/launches.h), called SYMBOL_0, SYMBOL_1, ... NULL
 * with an error. */
const char *source_kernels(tec_context *cx, const source_dialect *dialect, const ir_program *program,
                           const char *symbol);

void source_stmt(source_printer *printer, const ir_stmt *stmt);
/* Elements of shared memory are declared once for a function: all that stmt allocates, `bytes` together. */
void source_declare_shared(source_printer *printer, const ir_stmt *stmt, int64_t bytes);

#endif
