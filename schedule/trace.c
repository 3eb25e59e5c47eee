/* schedule/trace.c -- reading a trace back and applying it, and the C functions of the primitives.
 *
 *     y, x = split(C.y, _, 12)  the results' names hold in the lines below;
 *         what the trace prints are the tree's own names
 *
 * A replay is all or nothing: where a step is refused, the schedule is left as it was before the first line.
 *
 * A text that a user writes is read to its end for further errors. A step that mentions a block of a refused
 * step, or a loop of such a block, is left out with all that it mentions: its error might follow from the
 * other.
 *
 *     splitt(C.i, _, 4)            an error; C is not looked at any more
 *     unroll(C.j)                  left out
 *     unroll(D.kk)                 told: there is no such loop
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
    base_dict left;  /* what refused steps mention, see `stem` */
} replay;

/* Schedules of users have few steps: more errors than these are the first ones' echo. */
enum { MOST_ERRORS = 10 };

/* What the text called a result by another name than the tree; all other names are those of the tree. */
static const char *known_as(const replay *self, const char *name)
{
    const char *actual = base_dict_get(&self->names, name);

    return actual ? actual : name;
}

/* Words are no names of loops or blocks. */
static void list_name(replay *self, base_vec *names, bool word, const char *what)
{
    const char *name = base_expect_name(self->lx, what);

    if (name)
        base_push(self->s->view.cx, names, base_strdup(self->s->view.cx, word ? name : known_as(self, name)));
}

/* Names up to the end of the list. The list ends where the comma is followed by something else than a name:
 * the next argument is a number or a tuple then. */
static void read_names(replay *self, sched_arg *arg, const char *what)
{
    base_vec names = {0};

    while (self->lx->tok.kind == BASE_TOK_NAME) {
        list_name(self, &names, arg->kind == SCHED_ARG_WORDS, what);
        if (!(base_at(self->lx, ",") && self->lx->next.kind == BASE_TOK_NAME))
            break;
        base_advance(self->lx);
    }
    arg->names = (const char *const *)names.at;
    arg->n = names.n;
}

/* Whether the token can be part of a list of factors: `split(y, _, 4, guard)` ends its list at `guard`. */
static bool at_factor(const base_token *token)
{
    return token->kind == BASE_TOK_INT || (token->kind == BASE_TOK_NAME && strcmp(token->text, "_") == 0) ||
           (token->kind == BASE_TOK_SYMBOL && strcmp(token->text, "-") == 0);
}

/* Reads into an array that doubles; the old ones stay in the arena. A minus sign is accepted here, so that
 * the refusal can speak of the factor that is not positive. */
static void read_factors(replay *self, sched_arg *arg)
{
    int64_t *ints = NULL;
    int cap = 0;

    while (at_factor(&self->lx->tok)) {
        if (arg->n == cap) {
            int64_t *more = base_array(self->s->view.cx, int64_t, cap ? 2 * cap : 4);

            if (arg->n)
                memcpy(more, ints, (size_t)arg->n * sizeof *ints);
            ints = more;
            cap = cap ? 2 * cap : 4;
        }
        if (base_accept(self->lx, "_"))
            ints[arg->n++] = TEC_INFER;
        else if (base_expect_int(self->lx, "a factor", &ints[arg->n]))
            arg->n++;
        if (!(base_at(self->lx, ",") && at_factor(&self->lx->next)))
            break;
        base_advance(self->lx);
    }
    arg->ints = ints;
}

/* ---- expressions ---- */

/* Loops and buffers are no symbols: an expression in a trace may mention sizes only. */
static void know_symbols(const sched *schedule, tec_context *cx, ir_scope_table *scope)
{
    const ir_program *p = schedule->view.program;

    for (int i = 0; i < p->n_symbols; i++)
        base_dict_put(cx, &scope->vars, p->symbols[i]->var.name, p->symbols[i]);
}

/* Expressions up to the closing bracket of the call or tuple. At least one: a list that may be empty has its
 * default written by read_args. */
static void read_exprs(base_lexer *lx, ir_scope_table *scope, sched_arg *arg)
{
    base_vec all = {0};

    do
        base_push(lx->cx, &all, ir_parse_expr(lx, scope));
    while (!base_failed(lx->cx) && base_accept(lx, ","));
    arg->exprs = (const ir_expr *const *)all.at;
    arg->n = all.n;
}

/* `()` is a tuple of nothing. */
static void read_tuple(base_lexer *lx, ir_scope_table *scope, sched_arg *arg)
{
    base_expect(lx, "(");
    if (base_accept(lx, ")"))
        return;
    read_exprs(lx, scope, arg);
    base_expect(lx, ")");
}

/* The variables hide symbols of the same name, in the map only. `(i, j) -> (floordiv(i, 8), j, i % 8)`: the
 * variables are made here and live in the schedule's context, since the trace keeps the map. */
static void read_map(const sched *schedule, base_lexer *lx, sched_arg *arg)
{
    ir_scope_table scope = {0};
    base_vec vars = {0};

    know_symbols(schedule, lx->cx, &scope);
    base_expect(lx, "(");
    do {
        const char *name = base_expect_name(lx, "a variable");
        const ir_expr *var =
            name ? ir_var(schedule->view.cx, base_strdup(schedule->view.cx, name), BASE_I64) : NULL;

        if (var)
            base_dict_put(lx->cx, &scope.vars, var->var.name, var);
        base_push(schedule->view.cx, &vars, var);
    } while (!base_failed(lx->cx) && base_accept(lx, ","));
    base_expect(lx, ")");
    base_expect(lx, "->");
    read_tuple(lx, &scope, arg);
    arg->vars = (const ir_expr *const *)vars.at;
    arg->n_vars = vars.n;
}

/* One case for each kind of argument. Names of loops, blocks and buffers may be names that the text gave to
 * results; words may not. */
static void read_arg(replay *self, sched_arg *arg)
{
    switch (arg->kind) {
    case SCHED_ARG_LOOP:
    case SCHED_ARG_BLOCK:
    case SCHED_ARG_PLACE:
    case SCHED_ARG_BUFFER: {
        const char *name = base_expect_name(self->lx, "a name");
        arg->name = name ? base_strdup(self->s->view.cx, known_as(self, name)) : NULL;
        return;
    }
    case SCHED_ARG_WORD: {
        const char *word = base_expect_name(self->lx, "a word");
        arg->name = word ? base_strdup(self->s->view.cx, word) : NULL;
        return;
    }
    case SCHED_ARG_LOOPS: read_names(self, arg, "a loop"); return;
    case SCHED_ARG_BLOCKS: read_names(self, arg, "a block"); return;
    case SCHED_ARG_WORDS: read_names(self, arg, "a word"); return;
    case SCHED_ARG_FACTORS: read_factors(self, arg); return;
    case SCHED_ARG_INT: base_expect_int(self->lx, "an integer", &arg->i); return;
    case SCHED_ARG_EXPR: arg->expr = ir_parse_expr(self->lx, &self->scope); return;
    case SCHED_ARG_EXPRS: read_exprs(self->lx, &self->scope, arg); return;
    case SCHED_ARG_TUPLE: read_tuple(self->lx, &self->scope, arg); return;
    case SCHED_ARG_MAP: read_map(self->s, self->lx, arg); return;
    }
}

/* The words of signatures are those of the enum's list, so a kind that is added there can be read at once. */
static bool kind_of_word(const char *word, size_t size, sched_arg_kind *kind)
{
    static const char *const words[] = {
#define X(NAME, text) text,
        SCHED_ARG_LIST(X)
#undef X
    };

    for (int i = 0; i < BASE_COUNT(words); i++)
        if (strlen(words[i]) == size && strncmp(words[i], word, size) == 0) {
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
static int read_args(replay *self, const sched_primitive *primitive, sched_arg *arg)
{
    int n = 0;

    base_expect(self->lx, "(");
    for (const char *w = primitive->signature; *w; n++) {
        size_t word = strcspn(w, " ="), all = strcspn(w, " ");
        sched_arg *a = &arg[n];

        kind_of_word(w, word, &a->kind);
        bool may_miss = sched_is_list(a->kind) || all > word;
        if (may_miss && base_at(self->lx, ")")) {
            if (all > word)
                a->name = base_strndup(self->s->view.cx, w + word + 1, all - word - 1);
        } else {
            if (n > 0)
                base_expect(self->lx, ",");
            read_arg(self, a);
        }
        w += all;
        w += strspn(w, " ");
    }
    base_expect(self->lx, ")");
    return n;
}

/* `a, b = name(..)` or `name(..)`: a name is a result if a comma or an equals sign follows it. */
static void read_results(replay *self, base_vec *names)
{
    bool has_results = self->lx->next.kind == BASE_TOK_SYMBOL &&
                       (strcmp(self->lx->next.text, ",") == 0 || strcmp(self->lx->next.text, "=") == 0);

    if (!has_results)
        return;
    do {
        const char *name = base_expect_name(self->lx, "the name of a result");

        base_push(self->cx, names, name);
    } while (base_accept(self->lx, ","));
    base_expect(self->lx, "=");
}

/* An error of a step in the form of all others: place, reason, and the line that the user wrote. */
static void fail(replay *self, base_loc loc, const char *reason)
{
    sched *s = self->s;

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

/* ---- steps ---- */

/* The block that a name of the tree begins with: "C" of C.i.0, of C.y~C.x and of the block C.cache.local. */
static const char *stem(const replay *self, const char *name)
{
    return base_strndup(self->cx, name, strcspn(name, ".~'"));
}

static bool is_left(const replay *self, const char *name)
{
    return name && base_dict_has(&self->left, stem(self, name));
}

static void leave(replay *self, const char *name)
{
    if (name)
        base_dict_put(self->cx, &self->left, stem(self, name), self);
}

static bool names_places(const sched_arg *arg)
{
    return arg->kind == SCHED_ARG_LOOP || arg->kind == SCHED_ARG_BLOCK || arg->kind == SCHED_ARG_PLACE ||
           arg->kind == SCHED_ARG_BUFFER || arg->kind == SCHED_ARG_LOOPS || arg->kind == SCHED_ARG_BLOCKS;
}

/* Whether the step mentions what a refused step mentions; then all that it mentions is left out, too. */
static bool leave_out(replay *self, const sched_arg *arg, int n, const base_vec *results)
{
    bool found = false;

    for (int i = 0; i < n && self->left.n; i++)
        for (int k = 0; names_places(&arg[i]) && k < (arg[i].name ? 1 : arg[i].n); k++)
            found |= is_left(self, arg[i].name ? arg[i].name : arg[i].names[k]);
    if (!found)
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; names_places(&arg[i]) && k < (arg[i].name ? 1 : arg[i].n); k++)
            leave(self, arg[i].name ? arg[i].name : arg[i].names[k]);
    for (int i = 0; i < results->n; i++)
        leave(self, results->at[i]);
    return true;
}

/* One line. The names of its results are known to the lines below only after the step was applied. An example
 * in which names of results matter:
 *
 *     a, b = split(C.y, _, 4)     makes C.y.0 and C.y.1; a and b are other names for them
 *     unroll(b)                   unrolls C.y.1
 *     unroll(C.y.1)               would be refused: it is unrolled already
 *
 * The trace that is kept says C.y.1 where the text says b. */
static bool read_step(replay *self)
{
    base_vec results = {0};
    base_loc loc = self->lx->tok.loc;
    sched_arg arg[SCHED_MAX_ARGS] = {{0}};
    const char *const *made;
    int n_made;

    read_results(self, &results);
    const char *name = base_expect_name(self->lx, "a primitive");
    const sched_primitive *primitive = name ? sched_primitive_named(name) : NULL;
    if (name && !primitive)
        base_fail(self->cx, TEC_INVALID, loc, "there is no primitive '%s'%s", name,
                  nearest_primitive(self->cx, name));
    int n = primitive ? read_args(self, primitive, arg) : 0;
    if (base_failed(self->cx))
        return false;
    if (leave_out(self, arg, n, &results))
        return true;

    self->s->where = loc;
    if (!sched_apply(self->s, primitive->name, arg, n, &made, &n_made))
        return false;
    if (results.n && results.n != n_made) {
        fail(self, loc,
             base_format(self->s->view.cx, "%s gives %d results, but %d are named", primitive->name, n_made,
                         results.n));
        return false;
    }
    for (int i = 0; i < results.n; i++)
        base_dict_put(self->cx, &self->names, results.at[i], made[i]);
    return true;
}

/* What the parser left in the context belongs to the schedule: a bad trace leaves the context usable. */
static void take_error(sched *schedule)
{
    if (!base_failed(schedule->view.cx))
        return;
    if (!schedule->error)
        schedule->error = base_strdup(schedule->view.cx, tec_context_error(schedule->view.cx));
    tec_context_clear(schedule->view.cx);
}

/* One argument of one primitive, by itself: the C functions take expressions and tuples as text. arg->kind
 * says what is expected. */
bool sched_read_text(sched *schedule, const char *primitive, const char *text, sched_arg *arg)
{
    if (!schedule || !text || base_failed(schedule->view.cx))
        return false;
    replay r = {
        .s = schedule, .cx = schedule->view.cx, .lx = base_lexer_new(schedule->view.cx, primitive, text)};

    know_symbols(schedule, schedule->view.cx, &r.scope);
    read_arg(&r, arg);
    if (!base_failed(schedule->view.cx) && r.lx->tok.kind != BASE_TOK_END)
        base_unexpected(r.lx, "the end");
    bool ok = !base_failed(schedule->view.cx);
    take_error(schedule);
    return ok;
}

/* Steps over a step that was refused, from its first token on, and leaves out all names in it. It ends behind
 * the bracket that closes its arguments, or, without one, with its line. */
static void skip_step(replay *self, const char *from)
{
    base_lexer *lx = self->lx;
    int depth = 0;

    base_lexer_go(lx, from);
    for (int line = lx->tok.loc.line; lx->tok.kind != BASE_TOK_END && (depth || lx->tok.loc.line == line);) {
        bool closes = base_at(lx, ")");

        if (lx->tok.kind == BASE_TOK_NAME)
            leave(self, known_as(self, lx->tok.text));
        depth += base_at(lx, "(") - closes;
        base_advance(lx);
        if (closes && depth <= 0)
            break;
    }
    tec_context_clear(self->cx); /* a token that is none ends the text */
}

/* All steps of the text, or none. The old state is one struct: trees and steps are immutable, and the vector
 * of steps only grows behind the old length. An error that was there before stays the one to be read. `most`
 * errors are looked for. */
static bool run_steps(sched *schedule, base_lexer *lx, int most)
{
    sched before = *schedule;
    replay r = {.s = schedule, .cx = schedule->view.cx, .lx = lx};
    base_vec errors = {0};

    schedule->error = NULL;
    know_symbols(schedule, schedule->view.cx, &r.scope);
    while (lx->tok.kind != BASE_TOK_END && errors.n < most) {
        const char *from = lx->behind - strlen(lx->tok.text);

        if (read_step(&r))
            continue;
        take_error(schedule);
        base_push(r.cx, &errors, (void *)(uintptr_t)schedule->error);
        schedule->error = NULL;
        if (errors.n < most)
            skip_step(&r, from);
    }
    take_error(schedule); /* of a token that is none, at the beginning */
    if (schedule->error)
        base_push(r.cx, &errors, (void *)(uintptr_t)schedule->error);
    if (errors.n)
        *schedule = before;
    schedule->where = before.where;
    schedule->error = before.error ? before.error : errors.n ? errors.at[0] : NULL;
    schedule->errors = errors;
    return !errors.n;
}

bool sched_replay(sched *schedule, const char *file, const char *text)
{
    if (!schedule || !text || base_failed(schedule->view.cx))
        return false;
    return run_steps(schedule, base_lexer_new(schedule->view.cx, file ? file : "trace", text), 1);
}

bool sched_replay_file(sched *schedule, const char *file, const char *text)
{
    if (!schedule || !text || base_failed(schedule->view.cx))
        return false;
    return run_steps(schedule, base_lexer_new(schedule->view.cx, file, text), MOST_ERRORS);
}

/* As sched_replay_file for a text that stands in a file behind `loc`: errors show the line of that file. */
bool sched_replay_behind(sched *schedule, base_loc loc, const char *text)
{
    if (!schedule || !text || base_failed(schedule->view.cx))
        return false;
    return run_steps(schedule, base_lexer_behind(schedule->view.cx, loc, text), MOST_ERRORS);
}

const char *const *sched_errors(const sched *schedule, int *n)
{
    *n = schedule->errors.n;
    return (const char *const *)schedule->errors.at;
}
