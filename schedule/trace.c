/* schedule/trace.c -- reading a trace back and applying it, and the C functions of the primitives.
 *
 *     y, x = split(C.y, _, 12)  the results' names hold in the lines below;
 *         what the trace prints are the tree's own names
 *
 * A replay is all or nothing: the first step that is refused leaves the schedule as it was before the first
 * line.
 */
#include <string.h>

#include "ir/text.h"
#include "schedule/state.h"

typedef struct {
    sched *s;
    tec_context *cx;
    base_lexer *lx;
    ir_scope_table scope;
    base_dict names; /* names of results in the text -> names in the tree */
} replay;

/* What the text called a result by another name than the tree; all other names are those of the tree. */
static const char *known_as(const replay *r, const char *name)
{
    const char *actual = base_dict_get(&r->names, name);

    return actual ? actual : name;
}

/* Words are no names of loops or blocks. */
static void list_name(replay *r, base_vec *names, bool word, const char *what)
{
    const char *name = base_expect_name(r->lx, what);

    if (name)
        base_push(r->s->view.cx, names, base_strdup(r->s->view.cx, word ? name : known_as(r, name)));
}

/* Names up to the end of the list. The list ends where the comma is followed by something else than a name:
 * the next argument is a number or a tuple then. */
static void read_names(replay *r, sched_arg *a, const char *what)
{
    base_vec names = {0};

    while (r->lx->tok.kind == BASE_TOK_NAME) {
        list_name(r, &names, a->kind == SCHED_ARG_WORDS, what);
        if (!(base_at(r->lx, ",") && r->lx->next.kind == BASE_TOK_NAME))
            break;
        base_advance(r->lx);
    }
    a->names = (const char *const *)names.at;
    a->n = names.n;
}

/* Whether the token can be part of a list of factors: `split(y, _, 4, guard)` ends its list at `guard`. */
static bool at_factor(const base_token *t)
{
    return t->kind == BASE_TOK_INT || (t->kind == BASE_TOK_NAME && strcmp(t->text, "_") == 0) ||
           (t->kind == BASE_TOK_SYMBOL && strcmp(t->text, "-") == 0);
}

/* Reads into an array that doubles; the old ones stay in the arena. A minus sign is accepted here, so that
 * the refusal can speak of the factor that is not positive. */
static void read_factors(replay *r, sched_arg *a)
{
    int64_t *ints = NULL;
    int cap = 0;

    while (at_factor(&r->lx->tok)) {
        if (a->n == cap) {
            int64_t *more = base_array(r->s->view.cx, int64_t, cap ? 2 * cap : 4);

            if (a->n)
                memcpy(more, ints, (size_t)a->n * sizeof *ints);
            ints = more;
            cap = cap ? 2 * cap : 4;
        }
        if (base_accept(r->lx, "_"))
            ints[a->n++] = TEC_INFER;
        else if (base_expect_int(r->lx, "a factor", &ints[a->n]))
            a->n++;
        if (!(base_at(r->lx, ",") && at_factor(&r->lx->next)))
            break;
        base_advance(r->lx);
    }
    a->ints = ints;
}

/* ---- expressions ---- */

/* Loops and buffers are no symbols: an expression in a trace may mention sizes only. */
static void know_symbols(const sched *s, tec_context *cx, ir_scope_table *scope)
{
    const ir_program *p = s->view.program;

    for (int i = 0; i < p->n_symbols; i++)
        base_dict_put(cx, &scope->vars, p->symbols[i]->var.name, p->symbols[i]);
}

/* Expressions up to the closing bracket of the call or tuple. At least one: a list that may be empty has its
 * default written by read_args. */
static void read_exprs(base_lexer *lx, ir_scope_table *scope, sched_arg *a)
{
    base_vec all = {0};

    do
        base_push(lx->cx, &all, ir_parse_expr(lx, scope));
    while (!base_failed(lx->cx) && base_accept(lx, ","));
    a->exprs = (const ir_expr *const *)all.at;
    a->n = all.n;
}

/* `()` is a tuple of nothing. */
static void read_tuple(base_lexer *lx, ir_scope_table *scope, sched_arg *a)
{
    base_expect(lx, "(");
    if (base_accept(lx, ")"))
        return;
    read_exprs(lx, scope, a);
    base_expect(lx, ")");
}

/* The variables hide symbols of the same name, in the map only. `(i, j) -> (floordiv(i, 8), j, i % 8)`: the
 * variables are made here and live in the schedule's context, since the trace keeps the map. */
static void read_map(const sched *s, base_lexer *lx, sched_arg *a)
{
    ir_scope_table scope = {0};
    base_vec vars = {0};

    know_symbols(s, lx->cx, &scope);
    base_expect(lx, "(");
    do {
        const char *name = base_expect_name(lx, "a variable");
        const ir_expr *var = name ? ir_var(s->view.cx, base_strdup(s->view.cx, name), BASE_I64) : NULL;

        if (var)
            base_dict_put(lx->cx, &scope.vars, var->var.name, var);
        base_push(s->view.cx, &vars, var);
    } while (!base_failed(lx->cx) && base_accept(lx, ","));
    base_expect(lx, ")");
    base_expect(lx, "->");
    read_tuple(lx, &scope, a);
    a->vars = (const ir_expr *const *)vars.at;
    a->n_vars = vars.n;
}

/* One case for each kind of argument. Names of loops, blocks and buffers may be names that the text gave to
 * results; words may not. */
static void read_arg(replay *r, sched_arg *a)
{
    switch (a->kind) {
    case SCHED_ARG_LOOP:
    case SCHED_ARG_BLOCK:
    case SCHED_ARG_PLACE:
    case SCHED_ARG_BUFFER: {
        const char *name = base_expect_name(r->lx, "a name");
        a->name = name ? base_strdup(r->s->view.cx, known_as(r, name)) : NULL;
        return;
    }
    case SCHED_ARG_WORD: {
        const char *word = base_expect_name(r->lx, "a word");
        a->name = word ? base_strdup(r->s->view.cx, word) : NULL;
        return;
    }
    case SCHED_ARG_LOOPS: read_names(r, a, "a loop"); return;
    case SCHED_ARG_BLOCKS: read_names(r, a, "a block"); return;
    case SCHED_ARG_WORDS: read_names(r, a, "a word"); return;
    case SCHED_ARG_FACTORS: read_factors(r, a); return;
    case SCHED_ARG_INT: base_expect_int(r->lx, "an integer", &a->i); return;
    case SCHED_ARG_EXPR: a->expr = ir_parse_expr(r->lx, &r->scope); return;
    case SCHED_ARG_EXPRS: read_exprs(r->lx, &r->scope, a); return;
    case SCHED_ARG_TUPLE: read_tuple(r->lx, &r->scope, a); return;
    case SCHED_ARG_MAP: read_map(r->s, r->lx, a); return;
    }
}

/* The words of signatures are those of the enum's list, so a kind that is added there can be read at once. */
static bool kind_of_word(const char *word, size_t n, sched_arg_kind *kind)
{
    static const char *const words[] = {
#define X(NAME, text) text,
        SCHED_ARG_LIST(X)
#undef X
    };

    for (int i = 0; i < BASE_COUNT(words); i++)
        if (strlen(words[i]) == n && strncmp(words[i], word, n) == 0) {
            *kind = (sched_arg_kind)i;
            return true;
        }
    return false;
}

/* The arguments in the order of the signature; a list or a word with a default may be missing. The signature
 * is walked word by word: `loop factors word=guard`. What may be missing takes its default. Three ways to
 * write them:
 *
 *     split(y, _, 4)              the word is missing: guard
 *     split(y, _, 4, round_up)
 *     split(y)                    the list is missing too: no factors, which the primitive refuses
 */
static int read_args(replay *r, const sched_primitive *p, sched_arg *arg)
{
    int n = 0;

    base_expect(r->lx, "(");
    for (const char *w = p->signature; *w; n++) {
        size_t word = strcspn(w, " ="), all = strcspn(w, " ");
        sched_arg *a = &arg[n];

        kind_of_word(w, word, &a->kind);
        bool may_miss = sched_is_list(a->kind) || all > word;
        if (may_miss && base_at(r->lx, ")")) {
            if (all > word)
                a->name = base_strndup(r->s->view.cx, w + word + 1, all - word - 1);
        } else {
            if (n > 0)
                base_expect(r->lx, ",");
            read_arg(r, a);
        }
        w += all;
        w += strspn(w, " ");
    }
    base_expect(r->lx, ")");
    return n;
}

/* `a, b = name(..)` or `name(..)`: a name is a result if a comma or an equals sign follows it. */
static void read_results(replay *r, base_vec *names)
{
    bool has_results = r->lx->next.kind == BASE_TOK_SYMBOL &&
                       (strcmp(r->lx->next.text, ",") == 0 || strcmp(r->lx->next.text, "=") == 0);

    if (!has_results)
        return;
    do {
        const char *name = base_expect_name(r->lx, "the name of a result");

        base_push(r->cx, names, name);
    } while (base_accept(r->lx, ","));
    base_expect(r->lx, "=");
}

/* An error of a step in the form of all others: place, reason, and the line that the user wrote. */
static void fail(replay *r, base_loc loc, const char *reason)
{
    sched *s = r->s;

    base_text t = {0};

    if (s->error)
        return;
    base_add_place(s->view.cx, &t, loc);
    base_add(s->view.cx, &t, reason);
    base_add_excerpt(s->view.cx, &t, loc);
    s->error = base_text_str(s->view.cx, &t);
}

/* "; did you mean 'split'?" */
static const char *nearest_primitive(tec_context *cx, const char *name)
{
    base_vec names = {0};

    for (int i = 0; i < sched_n_primitives; i++)
        base_push(cx, &names, (void *)(uintptr_t)sched_primitives[i].name);
    return base_did_you_mean(cx, name, &names);
}

/* One line. The names of its results are known to the lines below only after the step was applied. An example
 * in which names of results matter:
 *
 *     a, b = split(C.y, _, 4)     makes C.y.0 and C.y.1; a and b are other names for them
 *     unroll(b)                   unrolls C.y.1
 *     unroll(C.y.1)               would be refused: it is unrolled already
 *
 * The trace that is kept says C.y.1 where the text says b. */
static bool read_step(replay *r)
{
    base_vec results = {0};
    base_loc loc = r->lx->tok.loc;
    sched_arg arg[SCHED_MAX_ARGS] = {{0}};
    const char *const *made;
    int n_made;

    read_results(r, &results);
    const char *name = base_expect_name(r->lx, "a primitive");
    const sched_primitive *p = name ? sched_primitive_named(name) : NULL;
    if (name && !p)
        base_fail(r->cx, TEC_INVALID, loc, "there is no primitive '%s'%s", name,
                  nearest_primitive(r->cx, name));
    int n = p ? read_args(r, p, arg) : 0;
    if (base_failed(r->cx))
        return false;

    r->s->where = loc;
    if (!sched_apply(r->s, p->name, arg, n, &made, &n_made))
        return false;
    if (results.n && results.n != n_made) {
        fail(r, loc,
             base_format(r->s->view.cx, "%s gives %d results, %d are named", p->name, n_made, results.n));
        return false;
    }
    for (int i = 0; i < results.n; i++)
        base_dict_put(r->cx, &r->names, results.at[i], made[i]);
    return true;
}

/* What the parser left in the context belongs to the schedule: a bad trace leaves the context usable. */
static void take_error(sched *s)
{
    if (!base_failed(s->view.cx))
        return;
    if (!s->error)
        s->error = base_strdup(s->view.cx, tec_context_error(s->view.cx));
    tec_context_clear(s->view.cx);
}

/* One argument of one primitive, by itself: the C functions take expressions and tuples as text. a->kind says
 * what is expected. */
bool sched_read_text(sched *s, const char *primitive, const char *text, sched_arg *a)
{
    if (!s || !text || base_failed(s->view.cx))
        return false;
    replay r = {.s = s, .cx = s->view.cx, .lx = base_lexer_new(s->view.cx, primitive, text)};

    know_symbols(s, s->view.cx, &r.scope);
    read_arg(&r, a);
    if (!base_failed(s->view.cx) && r.lx->tok.kind != BASE_TOK_END)
        base_unexpected(r.lx, "the end");
    bool ok = !base_failed(s->view.cx);
    take_error(s);
    return ok;
}

/* All steps of the text, or none. The old state is one struct: trees and steps are immutable, and the vector
 * of steps only grows behind the old length. An error that was there before stays the one to be read. */
static bool run_steps(sched *s, base_lexer *lx)
{
    sched before = *s;
    replay r = {.s = s, .cx = s->view.cx, .lx = lx};
    bool ok = true;

    s->error = NULL;
    know_symbols(s, s->view.cx, &r.scope);
    while (ok && r.lx->tok.kind != BASE_TOK_END)
        ok = read_step(&r);
    take_error(s);
    const char *error = s->error;
    if (error)
        *s = before;
    s->where = before.where;
    s->error = before.error ? before.error : error;
    return !error;
}

bool sched_replay(sched *s, const char *file, const char *text)
{
    if (!s || !text || base_failed(s->view.cx))
        return false;
    return run_steps(s, base_lexer_new(s->view.cx, file ? file : "trace", text));
}

/* As sched_replay for a text that stands in a file behind `loc`: errors show the line of that file. */
bool sched_replay_behind(sched *s, base_loc loc, const char *text)
{
    if (!s || !text || base_failed(s->view.cx))
        return false;
    return run_steps(s, base_lexer_behind(s->view.cx, loc, text));
}
