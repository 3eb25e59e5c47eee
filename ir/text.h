/* ir/text.h -- print and parse; the text forms round-trip (docs/ir.md has the grammar).
 *
 *     const ir_program *p = ir_parse_program(cx, "mm.tir", text);
 *     puts(ir_program_text(cx, p));       // prints what was parsed
 *
 * Names need not be unique in a tree; the printer adds '2, '3 to a variable or buffer whose name another one
 * that is visible there has already, and replaces characters that no name can hold. Floats print
 * shortest-exact in hexadecimal unless they are short decimals; int64 immediates bare, others as i32(7).
 */
#ifndef IR_TEXT_H
#define IR_TEXT_H

#include "base/lexer.h"
#include "ir/ir.h"

const char *ir_expr_text(tec_context *cx, const ir_expr *expr); /* "NULL" for NULL */
/* At most about `limit` characters, "..." in place of what is left out. The whole texts have a limit too, of
 * 64 MiB: an expression that shares its parts can be exponentially longer as a text. */
const char *ir_expr_text_cut(tec_context *cx, const ir_expr *expr, size_t limit);
const char *ir_stmt_text(tec_context *cx, const ir_stmt *stmt);
const char *ir_program_text(tec_context *cx, const ir_program *function);
/* "A[y*2:+17, 0:64, k]": min:+extent, 0:extent, a point */
const char *ir_region_text(tec_context *cx, const ir_region *region);

/* Names in scope while parsing. */
typedef struct ir_scope_table {
    base_dict vars;    /* const ir_expr * */
    base_dict buffers; /* const ir_buffer * */
    base_dict combiners;
    base_dict intrinsics;
    int depth; /* of nesting, while parsing; hooks that parse on hand the same table down */
} ir_scope_table;

const ir_program *ir_parse_program(tec_context *cx, const char *file, const char *text);
const ir_expr *ir_parse_expr(base_lexer *lx, ir_scope_table *scope);
/* A postfix or primary that the caller's grammar adds (te's `A[i]` of a tensor, `sum[k](...)`): tried first
 * at a name; gives NULL without consuming anything where it does not apply. */
typedef const ir_expr *ir_parse_hook(void *user, base_lexer *lx, ir_scope_table *scope);
const ir_expr *ir_parse_expr_hooked(base_lexer *lx, ir_scope_table *scope, ir_parse_hook *hook, void *user);
base_dtype ir_parse_dtype(base_lexer *lx);
/* NAME(x: t; y: t) = (e) identity (e) reorders -- behind the word `combiner`; into the scope. And back, the
 * word included. */
bool ir_parse_combiner(base_lexer *lx, ir_scope_table *scope);
const char *ir_combiner_text(tec_context *cx, const ir_combiner *combiner);

#endif
