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
} ir_printer;

ir_printer ir_printer_new(tec_context *cx, size_t limit);
const char *ir_printer_text(ir_printer *printer);

void ir_put(ir_printer *printer, const char *text);
void ir_putf(ir_printer *printer, const char *fmt, ...) BASE_PRINTF(2, 3);
void ir_put_string(ir_printer *printer, const char *text); /* quoted */
void ir_put_name(ir_printer *printer, const char *name);   /* bare where it is a name, quoted otherwise */
void ir_put_expr(ir_printer *printer, const ir_expr *expr);
void ir_put_exprs(ir_printer *printer, const ir_expr *const *expr, int n); /* with commas */
/* in parentheses where it is an open-ended form (let) */
void ir_put_operand(ir_printer *printer, const ir_expr *expr);
void ir_put_buffer(ir_printer *printer, const ir_buffer *buffer);
void ir_put_combiner(ir_printer *printer, const ir_combiner *combiner);
void ir_put_access(ir_printer *printer, const ir_buffer *buffer, const ir_expr *const *index, int n);

#endif
