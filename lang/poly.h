/* lang/poly.h -- inside the room: functions that are read anew for each use, since they have type parameters
 * or parameters that are functions (poly.c), and the functions that such parameters stand for (lambda.c).
 *
 *     def map[a, b](l: List[a], f: fn(a) -> b) -> List[b] { ... }
 *     def main(l: List[f32[2]]) -> List[f32[4]] { map(l, (x) => concat(x, x, axis = 0)) }
 *
 * becomes two more functions of the module: "main#1", the body of the lambda, and
 * "map[f32[2], f32[4]; main#1]", which calls it.
 */
#ifndef LANG_POLY_H
#define LANG_POLY_H

#include "lang/inside.h"

typedef enum {
    LANG_VARIABLE, /* a type parameter */
    LANG_PARTS,    /* a tuple */
    LANG_APPLIED,  /* a generic data type with its types */
    LANG_FUNCTION, /* fn(parts) -> the last part */
    LANG_PLAIN     /* any other type: it has no type parameters in it */
} lang_pattern_kind;

/* The type of a parameter as it is written, before the type parameters are known. */
typedef struct lang_pattern lang_pattern;
struct lang_pattern {
    lang_pattern_kind kind;
    intptr_t variable;           /* the number of a type parameter */
    const lang_generic *generic; /* of LANG_APPLIED */
    base_vec part;               /* lang_pattern * */
    base_lexer at;               /* stands at the type */
    const char *from, *to;       /* the text of the type */
};

typedef struct {
    const char *name;
    const lang_pattern *type;
} lang_poly_param;

typedef struct lang_poly {
    const char *name;
    base_vec types;  /* char *: type parameters */
    base_vec params; /* lang_poly_param * */
    const lang_pattern *result;
    base_lexer body; /* stands at the brace of the body */
    bool prelude;    /* of the prelude, not of the program */
} lang_poly;

/* What type parameters stand for, as far as the operands of a call have told. An extent that is no number is
 * `?` (lang_parser.unknown). `hint` is what the expected result of the call would say: it counts where no
 * operand tells more. */
typedef struct {
    graph_type *type, *hint;
    bool *known, *hinted;
} lang_bindings;

/* What a parameter that is a function stands for. Its last operands are the values that the function has
 * captured: values of the function that is read. */
typedef struct lang_function {
    const lang_def *def;
    bool made; /* for this operand alone */
    int n_captured;
    graph_value *const *captured;
} lang_function;

/* ---- patterns (pattern.c) ---- */

/* NULL with an error. */
lang_pattern *lang_read_pattern(lang_parser *parser, const lang_poly *poly);
intptr_t lang_type_number(const lang_poly *poly,
                          const char *name); /* of a type parameter; -1: there is none */
lang_bindings lang_new_bindings(lang_parser *parser, const lang_poly *poly);
lang_bindings lang_copy_bindings(lang_parser *parser, const lang_poly *poly, const lang_bindings *bindings);
/* Whether what was known before has the same types still. */
bool lang_keeps_bindings(const lang_poly *poly, const lang_bindings *before, const lang_bindings *after);
bool lang_pattern_is_known(const lang_pattern *pattern, const lang_bindings *bindings);
const char *lang_pattern_text(lang_parser *parser, const lang_pattern *pattern); /* as it is written */
/* For messages: the pattern, or the type that a type parameter alone has by now. */
const char *lang_expected_text(lang_parser *parser, const lang_pattern *pattern,
                               const lang_bindings *bindings);
/* The type of the pattern where its type parameters are known, with new symbols of the scope for `?`. */
bool lang_pattern_type(lang_parser *parser, const lang_poly *poly, const lang_pattern *pattern,
                       const lang_bindings *bindings, const lang_scope *scope, graph_type *out);
/* Type parameters that a value of this type tells. False: the type does not fit the pattern. */
bool lang_match_type(lang_parser *parser, const lang_pattern *pattern, const graph_type *found,
                     lang_bindings *bindings);

/* ---- declarations and uses (poly.c) ---- */

/* Behind `def NAME`: whether type parameters follow, or some parameter is a function. */
bool lang_is_poly(const lang_parser *parser);
bool lang_read_poly(lang_parser *parser, const char *name);
const lang_poly *lang_find_poly(const lang_parser *parser, const char *name);
/* [types](operands) behind the name, which stands at `at`. `first` is the first operand, which has been read
 * together with the parenthesis and its comma; NULL: nothing of them. */
graph_value *lang_call_poly(lang_parser *parser, const lang_poly *poly, const char *at, graph_value *first,
                            const graph_type *expected);
/* Parameters and result of an instance: operands that are values, then what the functions have captured. */
bool lang_poly_signature(lang_parser *parser, lang_def *def, const lang_bindings *bindings,
                         lang_function *const *functions);
/* The names of the functions that the parameters of `def` stand for, with their captured values. */
void lang_bind_functions(lang_parser *parser, const lang_def *def);
/* The function of the module for these types and functions: found, or made. */
const lang_def *lang_instance_of_poly(lang_parser *parser, const lang_poly *poly, const char *at,
                                      const lang_bindings *bindings, lang_function *const *functions);

/* ---- the prelude (prelude.c) ---- */

/* Data types, but for those that the text, at whose start the lexer stands, declares itself. */
bool lang_prelude_types(lang_parser *parser);
/* Functions, but for those that the program has declared. */
bool lang_prelude_functions(lang_parser *parser);

/* ---- operands that are functions (lambda.c) ---- */

/* (patterns) => value, or the name of a function, an operator or a parameter that is a function. Its result
 * tells more of the type parameters. NULL with an error. */
lang_function *lang_read_function(lang_parser *parser, const lang_poly *poly, const lang_poly_param *param,
                                  lang_bindings *bindings);
/* The value in the function that is read, where it is one of a function around a lambda: an operand more of
 * the lambda. */
graph_value *lang_import(lang_parser *parser, int name, graph_value *value);
/* The same for what a name stands for. */
const lang_function *lang_import_function(lang_parser *parser, int name, const lang_function *function);
/* A call of what a parameter stands for. */
graph_value *lang_call_function(lang_parser *parser, const char *name, const lang_function *function,
                                const char *at, const base_vec *values);
/* The type with symbols of this body in place of those of another function: the same one wherever `symbols`
 * (other symbol -> symbol) has one, and new ones for the rest. */
graph_type lang_import_type(lang_parser *parser, base_map *symbols, lang_def *def, const graph_type *type);

#endif
