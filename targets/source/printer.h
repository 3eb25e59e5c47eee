/* targets/source/printer.h -- inside the room: the printer's state. */
#ifndef TARGETS_SOURCE_PRINTER_H
#define TARGETS_SOURCE_PRINTER_H

#include "base/base.h"
#include "ir/reason/facts.h"
#include "targets/source/source.h"

/* A node whose value has a name from here to the end of the text's block. */
typedef struct {
    const ir_expr *key;
    const char *name;
} source_known;

struct source_printer {
    tec_context *cx;
    const source_dialect *d;
    base_text out;
    int indent;
    base_map names;      /* buffer or variable -> char * */
    base_dict taken;     /* names in use */
    base_map uses;       /* of the statement under way: node -> int *, how many others use it */
    source_known *known; /* a stack */
    int n_known, cap_known;
    int n_values; /* named so far */
    int64_t axis[IR_N_HOWS];
    bool copies;            /* inside of `attribute async_copy` */
    bool narrow;            /* indices have 32 bits */
    const ir_facts *facts;  /* of the place where the text is */
    const ir_expr *along_x; /* the variable of the loop around over several threads along x; NULL: none */
    base_map fragments;     /* buffer -> how many threads share it (instruction.c) */
    base_map arrays;        /* buffers that are arrays of the thread's own */
    base_map nonnegative;   /* variables that are never negative */
};

/* The text of an expression, wrapped in parentheses where it binds weaker than `level`; NULL after an
 * error. */
enum {
    SOURCE_ANY = 0,
    SOURCE_OR,
    SOURCE_AND,
    SOURCE_BITOR,
    SOURCE_BITXOR,
    SOURCE_BITAND,
    SOURCE_EQUAL,
    SOURCE_LESS,
    SOURCE_SHIFT,
    SOURCE_SUM,
    SOURCE_PRODUCT,
    SOURCE_UNARY,
    SOURCE_PRIMARY
};
const char *source_expr(source_printer *printer, const ir_expr *expr, int level);

/* Index arithmetic: of 64 bits, and of nothing that was read. */
bool source_is_index(const ir_expr *expr);
/* The key of an attribute around the code of a launch: 32 bits hold its indices. */
#define SOURCE_NARROW "narrow"
/* The type of a scalar value in the text: that of its dtype, or of 32 bits for indices that fit. */
const char *source_type(const source_printer *printer, const ir_expr *expr);

/* Starts a statement: counts how often its parts are used. */
void source_count(source_printer *printer, const ir_expr *expr);
void source_forget(source_printer *printer); /* the counts */

/* The name of a node's value; NULL: it has none yet. */
const char *source_recall(const source_printer *printer, const ir_expr *expr);
void source_remember(source_printer *printer, const ir_expr *expr, const char *name);
const char *source_new_value(source_printer *printer); /* a name that nothing has: "v7" */

/* Prints a vectorised loop as statements over vectors; false, with nothing printed, where it must stay a
 * loop (vector.c). */
bool source_vector_loop(source_printer *printer, const ir_stmt *loop);

bool source_nonnegative(source_printer *printer, const ir_expr *expr);

/* Whether the statement is an instruction (ir/intrinsic.h), done by *group threads together; prints it. */
bool source_is_instruction(source_printer *printer, const ir_stmt *stmt, int *group);
void source_instruction(source_printer *printer, const ir_stmt *stmt);
/* Notes the local buffers that instructions of several threads work on. */
void source_find_fragments(source_printer *printer, const ir_stmt *stmt);
/* How many threads share the buffer as a fragment; 0: it is none. */
int source_fragment(const source_printer *printer, const ir_buffer *buffer);
/* Whether single elements may be read and written; false with an error for a fragment. */
bool source_is_plain(source_printer *printer, const ir_buffer *buffer, base_loc loc);
/* The words that each thread has of so many elements; 0 with an error. */
int64_t source_fragment_words(source_printer *printer, const ir_buffer *buffer, int64_t elements);

static inline bool source_is_half(base_dtype dtype)
{
    return base_is_float(dtype) && dtype.bits == 16;
}
/* "f16", "bf16" */
static inline const char *source_half(base_dtype dtype)
{
    return dtype.code == kDLBfloat ? "bf16" : "f16";
}

#endif
