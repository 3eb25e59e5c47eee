/* te/intrinsic.h -- declarations of tensor intrinsics: what an instruction of the machine does, and how it is
 * written there.
 *
 *     const char *text[TE_N_FORMS] = {[TE_BODY] = "...", [TE_RESET] = "...", [TE_UPDATE] = "..."};
 *     const te_intrinsic *dot = te_intrinsic_new(cx, &table, behaviour, &operands, &strides, text);
 *     dot->ir[TE_UPDATE]->meaning          // c[] sum= a[k] * b[k], as a program over a, b, c
 *
 * The behaviour is a definition of one stage whose sizes are constants or symbols, which stand for any size.
 * A form is the name that calls carry, the meaning (inputs, outputs, then symbols, scalars, strides), and the
 * text that it is written as: the body computes the outputs; for a reduction, the reset writes the identity
 * and the update combines into what the outputs hold. Lifetime: the context's. A table holds each name once.
 */
#ifndef TE_INTRINSIC_H
#define TE_INTRINSIC_H

#include "te/te.h"

typedef enum { TE_BODY, TE_RESET, TE_UPDATE, TE_N_FORMS } te_form;
const char *te_form_text(te_form form); /* "body", "reset", "update" */

/* How a tensor of the behaviour must lie in memory. */
typedef struct {
    const ir_buffer *buffer;
    /* constants, or variables that take what is found; NULL: compact and row-major */
    const ir_expr *const *strides;
    int align;      /* bytes; 0: any */
    ir_scope scope; /* global: any */
} te_operand;

typedef struct {
    const char *name; /* of the behaviour */
    const te_def *behaviour;
    base_vec operands;            /* te_operand *: what is said of them */
    base_vec strides;             /* the variables in their strides, which calls hand over behind all else */
    const char *text[TE_N_FORMS]; /* NULL: there is no such form */
    const ir_intrinsic *ir[TE_N_FORMS]; /* named NAME, NAME.reset, NAME.update; NULL where text is */
    base_loc loc;
} te_intrinsic;

typedef struct te_intrinsics {
    base_dict names; /* name -> te_intrinsic * */
    base_vec list;   /* te_intrinsic *, in order of declaration */
} te_intrinsics;

/* Adds to the table; NULL with an error. */
const te_intrinsic *te_intrinsic_new(tec_context *cx, te_intrinsics *table, const te_def *behaviour,
                                     const base_vec *operands, const base_vec *strides,
                                     const char *const text[TE_N_FORMS]);
const te_intrinsic *te_intrinsic_named(const te_intrinsics *table, const char *name); /* NULL: none */
/* `intrinsic NAME(...) { ... }` */
const char *te_intrinsic_text(tec_context *cx, const te_intrinsic *in);
/* A text of intrinsics alone, at least one; a file of definitions may hold some too (te/text.h). */
te_intrinsics *te_intrinsics_parse(tec_context *cx, const char *file, const char *text);

#endif
