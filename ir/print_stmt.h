/* ir/print_stmt.h -- inside the room: the pieces of statements that the printer of programs uses too. */
#ifndef IR_PRINT_STMT_H
#define IR_PRINT_STMT_H

#include "ir/print.h"

void ir_put_line(ir_printer *printer); /* a new line, indented */
void ir_put_stmt(ir_printer *printer, const ir_stmt *stmt);
void ir_put_body(ir_printer *printer, const ir_stmt *stmt); /* " { ... }" */
void ir_put_notes(ir_printer *printer, const ir_note *notes);
void ir_put_region(ir_printer *printer, const ir_region *region);
void ir_put_declaration(ir_printer *printer,
                        const ir_buffer *buffer); /* binds its name; "T: f32[8] @local align(64)" */

#endif
