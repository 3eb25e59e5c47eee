/* lang/inside.h -- inside the room: what reads declarations, types and expressions shares.
 *
 *     graph_type t;
 *     if (lang_expect(p, ":") && lang_type(p, &scope, &t)) ...
 *
 * The parser makes nodes as it reads: declarations first, so that functions may call each other in any order,
 * then bodies. `at` is where the text is blamed: the token that is read, or the operator whose node is made.
 */
#ifndef LANG_INSIDE_H
#define LANG_INSIDE_H

#include "base/lexer.h"
#include "graph/program.h"
#include "graph/scope.h"
#include "lang/params.h"

/* What type parameters stand for while a text is read that has them. */
typedef struct {
    const base_vec *name; /* char * */
    const graph_type *type;
} lang_variables;

typedef struct {
    const char *name;
    graph_function *f;
    base_lexer body;       /* stands at the brace of the body */
    graph_body *signature; /* binds what the types of parameters and result name */
    int n_params_symbols;  /* the signature's symbols behind these stand for `?` in the result */
    const graph_type *param;
    graph_type result;
    int n_params;
    /* an instance of a function with type parameters; NULL: a function as it is written */
    const struct lang_poly *poly;
    const lang_variables *variables;
    base_vec functions; /* lang_name *: what its parameters that are functions stand for */
    base_loc used;      /* the call that made it */
} lang_def;

/* A value; or what a parameter that is a function stands for (lang/poly.h). */
typedef struct {
    const char *name;
    graph_value *value;
    const struct lang_function *function;
} lang_name;

/* A lambda that is being read, and what it has captured so far (lang/lambda.c). */
typedef struct lang_frame lang_frame;
struct lang_frame {
    lang_frame *outer;
    lang_def *def;
    graph_function *around;     /* where it stands */
    int names;                  /* the first names in scope are those of functions around */
    base_map symbols, imported; /* of `around` -> of the lambda */
    base_vec captured, types;   /* graph_value * of `around`; graph_type * of all operands */
};

/* A data type with type parameters: `type List[a] = Nil | Cons(a, List[a])`. */
typedef struct {
    const char *name, *at; /* where it is declared */
    bool prelude;
    base_vec params;       /* char * */
    base_lexer cases;      /* stands at the first constructor */
    base_vec constructors; /* lang_constructor * */
} lang_generic;

/* What the values of its fields tell about the type parameters. */
typedef struct {
    const char *name;
    base_vec fields; /* intptr_t: the number of a type parameter, LANG_SELF, LANG_OTHER */
} lang_constructor;
enum { LANG_SELF = -1, LANG_OTHER = -2 };

/* A data type that was made of a generic one: List[f32[2]]. Unknown extents of
 * arguments are `?`, one variable for all. */
typedef struct {
    const lang_generic *generic;
    const graph_type *arg;
    graph_data *data;
} lang_instance;

/* A tensor that belongs to the program: `param W: f32[4]`. */
typedef struct {
    const char *name;
    const op_constant *constant;
    base_map values; /* graph_function * -> graph_value *: a value belongs to one function */
} lang_parameter;

typedef struct {
    tec_context *cx;
    const char *file, *text, *at;
    base_lexer *lx;
    graph_module *m;
    const lang_params *params; /* NULL: a program that has parameters is refused */
    base_vec parameters;       /* lang_parameter * */
    base_vec defs;             /* lang_def * */
    base_vec uses;             /* lang_use *: names of data types, looked up when all are read */
    graph_function *f;         /* whose body is read */
    base_vec names;            /* lang_name *: what is in scope; inner ones behind */
    base_vec generics;         /* lang_generic * */
    base_vec instances;        /* lang_instance * */
    /* whose constructors are read; NULL: no instance's */
    const lang_instance *instance;
    const lang_variables *variables; /* NULL: none */
    base_vec polys;                  /* lang_poly * */
    base_vec prelude;                /* base_lexer *: the groups of the prelude that are not hidden */
    lang_frame *frame;               /* NULL: no lambda is read */
    int n_lambdas, n_uses;
    /* while a function is checked that nobody uses (lang/unused.c): the data type of values of which nothing
     * is known, otherwise NULL; those that type parameters stand for; the instances that were there before */
    const char *any;
    base_vec opaque; /* char * */
    int n_instances;
    const ir_expr *unknown;     /* `?` in the arguments of a data type */
    const graph_type *expected; /* of the expression that is read next; NULL: anything */
    base_map literals;          /* values of numbers without a type of their own */
    base_map extents;           /* symbol that a parameter binds -> char *: its first extent in the text */
    int depth;
} lang_parser;

typedef struct {
    const char *data, *at;
} lang_use;

/* Where a type stands: which symbols its extents may name, and who binds new ones. */
typedef struct {
    base_vec *symbols; /* ir_expr *; `?` goes here */
    /* of the function whose parameter it is: new names are its symbols; NULL: none are made */
    graph_body *body;
} lang_scope;

/* The lexer's functions; `at` follows. */
bool lang_at(const lang_parser *parser, const char *text);
bool lang_accept(lang_parser *parser, const char *text);
bool lang_expect(lang_parser *parser, const char *text);
void lang_advance(lang_parser *parser);
const char *lang_expect_name(lang_parser *parser, const char *what);
const char *lang_expect_constructor(lang_parser *parser);
void lang_stand(lang_parser *parser); /* blames the current token from now on */
/* Blames the place in the text for nodes that are made next. */
void lang_blame(lang_parser *parser, const char *at);
base_loc lang_place(const lang_parser *parser, const char *at);
/* An error at the place; NULL. */
void *lang_fail(lang_parser *parser, const char *at, const char *fmt, ...) BASE_PRINTF(3, 4);

bool lang_type(lang_parser *parser, const lang_scope *scope, graph_type *out);
/* Behind the parameters of a function: whether each name of their extents has a value in a call. */
bool lang_check_extents(lang_parser *parser, const graph_body *body);
const ir_expr *lang_extent(lang_parser *parser, const lang_scope *scope);
/* NAME or NAME(types): a constructor of the data type. */
bool lang_case(lang_parser *parser, graph_data *data);
/* ---- generic data types ---- */
/* Notes all `type NAME[...]` of the text, from the start. */
bool lang_find_generics(lang_parser *parser);
const lang_generic *lang_find_generic(const lang_parser *parser, const char *name);
/* [types] behind the name of a generic data type. */
const graph_type *lang_type_arguments(lang_parser *parser, const lang_generic *generic);
const lang_instance *lang_instantiate(lang_parser *parser, const lang_generic *generic, const graph_type *arg,
                                      const char *at);
/* The type as an argument: each extent that is no number is `?` (lang_parser.unknown). And back: each `?` is
 * a new symbol of the scope. */
graph_type lang_as_argument(lang_parser *parser, const graph_type *type);
graph_type lang_as_field(lang_parser *parser, const graph_type *type, const lang_scope *scope);
/* An argument as it is written in a program. */
void lang_add_type_name(lang_parser *parser, base_text *text, const graph_type *type);
/* What the type parameter stands for, where a text is read that has it; false: there is none. */
bool lang_type_variable(lang_parser *parser, const char *name, const lang_scope *scope, graph_type *out);
/* The generic data type that has the constructor; NULL: none. */
const lang_generic *lang_generic_of(const lang_parser *parser, const char *name,
                                    const lang_constructor **constructor);
/* The instance whose values have the type; NULL: the type is none. */
const lang_instance *lang_instance_of(const lang_parser *parser, const graph_type *type);
/* Type parameters that the value of field `index` tells, in bound[]; `known` says which are. */
void lang_bind_field(lang_parser *parser, const lang_generic *generic, const lang_constructor *constructor,
                     int index, const graph_value *value, graph_type *bound, bool *known);
/* The parameter of that name as a value of the function that is read; NULL: there is none. */
graph_value *lang_find_parameter(lang_parser *parser, const char *name);
const lang_def *lang_find_def(const lang_parser *parser, const char *name);
/* NAME or (pattern, ...): names for the value, or for the parts of a tuple. */
bool lang_bind_pattern(lang_parser *parser, graph_value *value);
graph_value *lang_expression(lang_parser *parser);
/* Behind a name, which stands at `at`. */
graph_value *lang_read_named(lang_parser *parser, const char *name, const char *at);
/* One result as it is, several as a tuple. */
graph_value *lang_add_operator(lang_parser *parser, const op_info *op, const char *at, graph_value *const *in,
                               int count, const op_attr *attr, int n_attrs);
/* What the name stands for: a function, or a value in *value; NULL with *value NULL: nothing. */
const struct lang_function *lang_find_function(lang_parser *parser, const char *name, graph_value **value);
/* fold, scan or map, behind its name, which stands at `at`. */
bool lang_is_sequence(const char *name);
graph_value *lang_sequence(lang_parser *parser, const char *name, const char *at, const graph_type *expected);
/* ---- types of which nothing is known (unused.c) ---- */
/* Whether a value of the type may turn out as any value: where a type parameter stands for the type, too. */
bool lang_is_open(const lang_parser *parser, const graph_type *type);
bool lang_some_are_open(const lang_parser *parser, graph_value *const *in, int n);
/* Whether nothing is known of a part of the type. */
bool lang_has_any(const lang_parser *parser, const graph_type *type);
/* Whether two types are equal for some types in the place of what nothing is known of. */
bool lang_may_fit(const lang_parser *parser, const graph_type *left, const graph_type *right);
graph_value *lang_some_value(lang_parser *parser, const graph_type *type);
graph_value *lang_any_value(lang_parser *parser);
/* The generic data type with arguments of which nothing is known. */
const lang_instance *lang_any_instance(lang_parser *parser, const lang_generic *generic, const char *at);
/* The value of an operator with operands that are open; most -1: any number. */
graph_value *lang_open_operator(lang_parser *parser, const char *name, const char *at, int least, int most,
                                int count);
/* The operand of a `match`, in place of an open one; the lexer stands at the first arm. */
graph_value *lang_open_match(lang_parser *parser, graph_value *value);
graph_value *lang_open_regions(lang_parser *parser, graph_body *const *body, int n);
bool lang_check_unused(lang_parser *parser);
bool lang_know_types(lang_parser *parser); /* whether all names of data types that were read are known */
bool lang_read_body(lang_parser *parser, const lang_def *def);

/* { let ... value }; NULL with an error. */
graph_value *lang_block(lang_parser *parser);
/* A call of a function of the program, by its declared types. */
graph_value *lang_call(lang_parser *parser, const lang_def *def, const char *at, graph_value *const *in,
                       int count);
/* The same number with the other value's element type, where `value` is a number without a type of its
 * own. */
graph_value *lang_literal_as(lang_parser *parser, graph_value *value, const graph_value *other);
graph_value *lang_literal(lang_parser *parser);

#endif
