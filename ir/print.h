/* ir/print.h -- inside the room: the printer that expressions and statements share. */
#ifndef IR_PRINT_H
#define IR_PRINT_H

#include "ir/names.h"

typedef struct {
    tec_context *cx;
    base_text out;
    size_t limit; /* characters; what comes after them is left out */
    ir_names names;
    int indent, nesting;
    /* Of a large expression (ir_put_operand): how often each node is used, NULL: print every use in full; the
     * names of those that were printed apart, and their text. */
    base_map *uses;
    base_map named;
    base_text parts;
    int binders; /* lets and reductions around the present node */
} ir_printer;

ir_printer ir_printer_new(tec_context *cx, size_t limit);
const char *ir_printer_text(ir_printer *printer);

void ir_put(ir_printer *printer, const char *text);
void ir_putf(ir_printer *printer, const char *fmt, ...) BASE_PRINTF(2, 3);
void ir_put_string(ir_printer *printer, const char *text); /* quoted */
void ir_put_name(ir_printer *printer, const char *name);   /* bare where it is a name, quoted otherwise */
void ir_put_expr(ir_printer *printer, const ir_expr *expr);
void ir_put_exprs(ir_printer *printer, const ir_expr *const *expr, int n); /* with commas */
/* In parentheses where it is an open-ended form (let). Of a large expression, parts that are used several
 * times are printed once: (share part = A[i] + A[i + 1] in share part'2 = part * part in part'2 + part) */
void ir_put_operand(ir_printer *printer, const ir_expr *expr);
void ir_put_buffer(ir_printer *printer, const ir_buffer *buffer);
void ir_put_combiner(ir_printer *printer, const ir_combiner *combiner);
void ir_put_access(ir_printer *printer, const ir_buffer *buffer, const ir_expr *const *index, int n);

#endif
