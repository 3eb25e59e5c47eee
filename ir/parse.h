/* ir/parse.h -- inside the room: the parser that expressions, statements and programs share.
 *
 * Names live in the caller's scope table; a binder puts its name in, parses its scope, and puts back what the
 * name meant before. Nodes are made raw: the tree is what the text shows. The only conversions are those of
 * ir/build.h (bare integers, broadcasts).
 */
#ifndef IR_PARSE_H
#define IR_PARSE_H

#include "ir/text.h"

typedef struct {
    base_lexer *lx;
    tec_context *cx;
    ir_scope_table *scope;
    ir_parse_hook *hook;
    void *user;
} ir_parser;

const ir_expr *ir_read_expr(ir_parser *parser);
/* up to and with the closing symbol; may be empty */
bool ir_read_list(ir_parser *parser, const char *close, base_vec *out);
bool ir_read_count(ir_parser *parser, const char *what, int64_t least, int64_t most, int64_t *out);
const ir_stmt *ir_read_stmt(ir_parser *parser);
const ir_stmt *ir_read_body(ir_parser *parser);                     /* { ... } */
const ir_stmt *ir_read_stmts(ir_parser *parser, const char *close); /* up to the closing symbol */
const ir_note *ir_read_notes(ir_parser *parser);
/* NAME: f32[...] attributes; not put in the scope */
const ir_buffer *ir_read_buffer(ir_parser *parser, const char **name);
const char *ir_read_word(ir_parser *parser, const char *what); /* a name or a string */

/* the one that the current token names, stepped over; NULL with an error */
const ir_buffer *ir_find_buffer(ir_parser *parser);
/* A declared combiner, or a named one over these types; NULL with an error. */
const ir_combiner *ir_find_combiner(ir_parser *parser, base_loc loc, const char *name, int count,
                                    base_dtype dtype, base_dtype index_t);

/* One level deeper; false with an error where that is too deep. ir_leave undoes either. */
bool ir_enter(ir_parser *parser);
void ir_leave(ir_parser *parser);
const ir_expr *ir_check_depth(ir_parser *parser, const ir_expr *expr);

void *ir_complain(ir_parser *parser, base_loc loc, const char *fmt, ...) BASE_PRINTF(3, 4);

#endif
