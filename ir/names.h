/* ir/names.h -- inside the room: the names that a printed tree uses, unique among those that are visible
 * at each point.
 *
 *     int mark = ir_names_mark(&names);
 *     // i, or i'2 inside another i
 *     base_add(cx, &out, ir_names_bind(&names, IR_NAME_VAR, loop->loop.var, loop->loop.var->var.name));
 *     ...
 *     ir_names_release(&names, mark);
 *
 * The invariant: at any moment no two visible variables, and no two visible buffers or combiners, have one
 * name; every name is one that the lexer reads and the grammar does not reserve.
 */
#ifndef IR_NAMES_H
#define IR_NAMES_H

#include "ir/ir.h"

/* combiners share the names of buffers */
typedef enum { IR_NAME_VAR, IR_NAME_BUFFER, IR_N_NAME_KINDS } ir_name_kind;

typedef struct {
    tec_context *cx;
    base_map of;                       /* node -> its name (char *) */
    base_dict holder[IR_N_NAME_KINDS]; /* name -> the visible node that has it */
    base_dict next[IR_N_NAME_KINDS];   /* wanted name -> the number to try next (intptr_t) */
    base_vec undo;
    /* nodes whose names a binder may take although they are visible; NULL: none */
    const base_map *unused;
    /* names are numbers, in order of binding: texts are equal where only names differ */
    bool canonical;
    int count;
} ir_names;

/* Gives the node a name like `wanted` until the release; the name. */
const char *ir_names_bind(ir_names *names, ir_name_kind kind, const void *node, const char *wanted);
/* The name of a node; one that nothing binds is bound now, for good. */
const char *ir_names_of(ir_names *names, ir_name_kind kind, const void *node, const char *wanted);
/* `wanted` with what no name can hold replaced by '_'. */
const char *ir_names_clean(tec_context *cx, const char *wanted);
bool ir_names_is_name(const char *text); /* whether the lexer reads it as one name */

int ir_names_mark(const ir_names *names);
void ir_names_release(ir_names *names, int mark);

/* Words that the grammar reads as something else than a variable or buffer. */
bool ir_is_reserved(ir_name_kind kind, const char *name);

#endif
