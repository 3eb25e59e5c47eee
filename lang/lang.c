/* lang/lang.c -- declarations: data types and functions, then the bodies of functions.
 *
 * Two passes over the text: the first reads all data types and signatures and steps over the bodies, the
 * second reads the bodies. So functions may call each other in any order, and every call has a declared type,
 * also a recursive one whose body is not read yet.
 */
#include "lang/lang.h"

#include <string.h>

#include "lang/inside.h"

/* ---- data types ---- */

/* In any data type: names of constructors are unique, or a call would not say which type it means. */
static bool is_constructor(const lang_parser *p, const char *name)
{
    int which;

    for (int i = 0; i < p->m->data.n; i++)
        if (graph_find_case(p->m->data.at[i], name, &which))
            return true;
    return false;
}

/* NAME or NAME(types) of a data type. Each `?` of the fields becomes a symbol of this constructor. */
static bool read_case(lang_parser *p, graph_data *d)
{
    const char *at = p->at, *name = lang_expect_name(p, "a constructor");
    base_vec symbols = {0};
    graph_type field[64];
    int n = 0;

    if (!name)
        return false;
    if (is_constructor(p, name))
        return lang_fail(p, at, "there is a constructor '%s' already", name);
    if (lang_accept(p, "("))
        do {
            if (n == BASE_COUNT(field))
                return lang_fail(p, p->at, "a constructor has at most %d fields", n);
            if (!lang_type(p, &(lang_scope){&symbols, NULL}, &field[n++]))
                return false;
        } while (lang_accept(p, ","));
    if (n > 0 && !lang_expect(p, ")"))
        return false;
    graph_data_case(p->m, d, name, field, n)->symbols = symbols;
    return true;
}

/* The type is known before its constructors are read, since a field may be of the type itself. */
static bool read_data(lang_parser *p)
{
    const char *at = p->at, *name = lang_expect_name(p, "the name of a data type");

    if (!name)
        return false;
    if (graph_find_data(p->m, name))
        return lang_fail(p, at, "there is a data type '%s' already", name);
    graph_data *d = graph_data_new(p->m, name);
    if (!lang_expect(p, "="))
        return false;
    do {
        if (!read_case(p, d))
            return false;
    } while (lang_accept(p, "|"));
    return true;
}

/* Names of data types may stand in the text before the type itself. */
static bool know_all_types(lang_parser *p)
{
    for (int i = 0; i < p->uses.n; i++) {
        const lang_use *use = p->uses.at[i];

        if (!graph_find_data(p->m, use->data))
            return lang_fail(p, use->at, "there is no type '%s'", use->data);
    }
    return true;
}

/* ---- functions ---- */

const lang_def *lang_find_def(const lang_parser *p, const char *name)
{
    for (int i = 0; i < p->defs.n; i++)
        if (base_same(((const lang_def *)p->defs.at[i])->name, name))
            return p->defs.at[i];
    return NULL;
}

/* The first time that a name of an extent occurs it becomes a symbol of the function; after that it means the
 * same one. */
static bool read_param(lang_parser *p, lang_def *d, graph_type *out)
{
    const char *name = lang_expect_name(p, "a parameter");

    if (!name || !lang_expect(p, ":"))
        return false;
    if (!lang_type(p, &(lang_scope){&d->signature->symbols, d->f->body}, out))
        return false;
    graph_typed_input(d->f, base_strdup(p->cx, name), out);
    return true;
}

/* (name: type, ...) -> type Symbols that are new in the result are the `?` of it: names must come from the
 * parameters. n_params_symbols is where they begin. */
static bool read_signature(lang_parser *p, lang_def *d)
{
    graph_type param[64];

    if (!lang_expect(p, "("))
        return false;
    while (!lang_at(p, ")")) {
        if (d->n_params == BASE_COUNT(param))
            return lang_fail(p, p->at, "a function has at most %d parameters", d->n_params);
        if (!read_param(p, d, &param[d->n_params++]))
            return false;
        if (!lang_accept(p, ","))
            break;
    }
    d->param = base_copy(p->cx, param, (size_t)d->n_params * sizeof *param);
    d->n_params_symbols = d->signature->symbols.n;
    return lang_expect(p, ")") && lang_expect(p, "->") &&
           lang_type(p, &(lang_scope){&d->signature->symbols, NULL}, &d->result);
}

/* Steps over the body, which is read when all functions are known. */
static bool skip_body(lang_parser *p)
{
    int depth = 0;

    if (!lang_at(p, "{"))
        return lang_expect(p, "{");
    do {
        depth += lang_at(p, "{") ? 1 : lang_at(p, "}") ? -1 : 0;
        lang_advance(p);
    } while (depth > 0 && p->lx->tok.kind != BASE_TOK_END);
    return depth == 0 || lang_expect(p, "}");
}

/* `main` is made at the start, as it is function 0 of the module whatever order the text has. The place of
 * the body is kept as a copy of the lexer. */
static bool read_def(lang_parser *p)
{
    const char *at = p->at, *name = lang_expect_name(p, "the name of a function");
    lang_def *d = base_new(p->cx, lang_def);

    if (!name)
        return false;
    if (lang_find_def(p, name))
        return lang_fail(p, at, "there is a function '%s' already", name);
    *d = (lang_def){.name = name, .signature = base_new(p->cx, graph_body)};
    d->f = base_same(name, "main") ? p->m->functions.at[0] : graph_function_new(p->m, name);
    if (!read_signature(p, d))
        return false;
    base_push(p->cx, &p->defs, d);
    d->body = *p->lx;
    return skip_body(p);
}

/* Whether the body gives what was declared; each `?` of the result may be any extent. An example: declared
 * f32[?], found f32[n * 2]; ? is bound to n * 2, and then both types are the same. With f32[m] declared, no
 * extent but m would do. */
static bool fits_result(lang_parser *p, const lang_def *d, const graph_value *v)
{
    graph_instance i = {.cx = p->cx,
                        .symbol = (const ir_expr *const *)d->signature->symbols.at + d->n_params_symbols,
                        .n = d->signature->symbols.n - d->n_params_symbols};
    graph_type found = graph_type_of(v);

    graph_instance_bind(&i, &d->result, &found);
    graph_type expected = graph_instance_type(&i, &d->result);
    if (graph_types_same(graph_facts_in(p->m, d->f->body), &expected, &found))
        return true;
    return lang_fail(p, p->at, "'%s' gives %s, expected %s", d->name, graph_type_text(p->cx, &found),
                     graph_type_text(p->cx, &d->result));
}

/* Parameters are names like any other. */
static bool read_body(lang_parser *p, const lang_def *d)
{
    *p->lx = d->body;
    p->f = d->f;
    p->names.n = 0;
    lang_stand(p);
    const char *at = p->at;
    for (int k = 0; k < d->n_params; k++) {
        graph_value *v = d->f->body->inputs.at[k];
        lang_name *n = base_new(p->cx, lang_name);

        *n = (lang_name){v->name, v};
        base_push(p->cx, &p->names, n);
    }
    graph_value *v = lang_block(p);
    if (!v)
        return false;
    lang_blame(p, at);
    if (!fits_result(p, d, v))
        return false;
    graph_output(d->f, "result", v);
    return true;
}

/* ---- the whole ---- */

/* The names of types are checked at the end, when all are known. */
static bool read_declarations(lang_parser *p)
{
    lang_stand(p);
    while (p->lx->tok.kind != BASE_TOK_END) {
        if (lang_accept(p, "type")) {
            if (!read_data(p))
                return false;
        } else if (lang_accept(p, "def")) {
            if (!read_def(p))
                return false;
        } else {
            base_unexpected(p->lx, "'type' or 'def'");
            return false;
        }
    }
    return !base_failed(p->cx) && know_all_types(p);
}

/* Verified at the end, once for all functions: after that no other code need look for errors. */
static bool read_program(lang_parser *p)
{
    if (!read_declarations(p))
        return false;
    if (!lang_find_def(p, "main"))
        return lang_fail(p, p->text + strlen(p->text), "the program has no function 'main'");
    for (int i = 0; i < p->defs.n; i++)
        if (!read_body(p, p->defs.at[i]))
            return false;
    return graph_verify(p->m);
}

/* The text is copied by the lexer, so the caller may free it. */
graph_module *lang_parse(tec_context *cx, const char *file, const char *text)
{
    lang_parser p = {.cx = cx, .file = base_strdup(cx, file)};

    p.lx = base_lexer_new(cx, p.file, text);
    p.text = p.at = p.lx->source;
    p.m = graph_new(cx, "program");
    graph_function_new(p.m, "main");
    return read_program(&p) ? p.m : NULL;
}
