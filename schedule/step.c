/* schedule/step.c -- what every step goes through: check and rewrite by the primitive's function, verify,
 * append to the trace; and how a step prints.
 *
 *     C.y.0, C.y.1 = split(C.y, _, 12)
 *
 * Nothing here knows a primitive: the table gives the function and the kinds of the arguments.
 *
 * What a refusal leaves behind: nothing but s->error, the text of the first refusal. The tree, the trace and
 * the names are those of before, so that a search may try a step and go on without it. While s->error is set,
 * later refusals are not recorded: they often follow from the first.
 */
#include <string.h>

#include "ir/text.h"
#include "schedule/loops.h"

const sched_primitive sched_primitives[] = {
#define SCHED_PRIMITIVE(name, signature) {#name, signature, sched_do_##name},
#include "schedule/primitives.def"
};
const int sched_n_primitives = BASE_COUNT(sched_primitives);

/* NULL: there is no such primitive. A few dozen rows are searched; a step costs far more than that. */
const sched_primitive *sched_primitive_named(const char *name)
{
    for (int i = 0; i < sched_n_primitives; i++)
        if (strcmp(sched_primitives[i].name, name) == 0)
            return &sched_primitives[i];
    return NULL;
}

/* ---- printing ---- */

/* Names are words of the lexer, so they need no quotes. */
static void add_names(tec_context *cx, base_text *t, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", names[i]);
}

static void add_factors(tec_context *cx, base_text *t, const sched_arg *a)
{
    for (int i = 0; i < a->n; i++) {
        base_add(cx, t, i ? ", " : "");
        if (a->ints[i] == TEC_INFER)
            base_add(cx, t, "_");
        else
            base_addf(cx, t, "%lld", (long long)a->ints[i]);
    }
}

static void add_exprs(tec_context *cx, base_text *t, const ir_expr *const *e, int n)
{
    for (int i = 0; i < n; i++)
        base_addf(cx, t, "%s%s", i ? ", " : "", ir_expr_text(cx, e[i]));
}

static void add_tuple(tec_context *cx, base_text *t, const ir_expr *const *e, int n)
{
    base_add(cx, t, "(");
    add_exprs(cx, t, e, n);
    base_add(cx, t, ")");
}

/* The text is the one that trace.c reads back; _ stands for a factor that is inferred. */
static void add_arg(tec_context *cx, base_text *t, const sched_arg *a)
{
    switch (a->kind) {
    case SCHED_ARG_LOOP:
    case SCHED_ARG_BLOCK:
    case SCHED_ARG_PLACE:
    case SCHED_ARG_BUFFER:
    case SCHED_ARG_WORD: base_add(cx, t, a->name ? a->name : "(none)"); return;
    case SCHED_ARG_LOOPS:
    case SCHED_ARG_BLOCKS:
    case SCHED_ARG_WORDS: add_names(cx, t, a->names, a->n); return;
    case SCHED_ARG_FACTORS: add_factors(cx, t, a); return;
    case SCHED_ARG_INT: base_addf(cx, t, "%lld", (long long)a->i); return;
    case SCHED_ARG_EXPR: base_add(cx, t, ir_expr_text(cx, a->expr)); return;
    case SCHED_ARG_EXPRS: add_exprs(cx, t, a->exprs, a->n); return;
    case SCHED_ARG_TUPLE: add_tuple(cx, t, a->exprs, a->n); return;
    case SCHED_ARG_MAP:
        add_tuple(cx, t, a->vars, a->n_vars);
        base_add(cx, t, " -> ");
        add_tuple(cx, t, a->exprs, a->n);
        return;
    }
}

/* The default of the last word of a signature; NULL: none. */
static const char *default_word(const sched_primitive *p)
{
    const char *equals = strrchr(p->signature, '=');

    return equals ? equals + 1 : NULL;
}

/* The default is known for the last word only, since only that may be missing. */
static bool left_out(const sched_primitive *p, const sched_arg *a)
{
    if (sched_is_list(a->kind))
        return a->n == 0;
    return a->kind == SCHED_ARG_WORD && base_same(a->name, default_word(p));
}

/* Arguments that have their default are left out, so that a trace reads like what a person would write. */
static void add_call(tec_context *cx, base_text *t, const sched_primitive *p, const sched_arg *arg, int n)
{
    const char *comma = "";

    base_addf(cx, t, "%s(", p->name);
    for (int i = 0; i < n; i++) {
        if (left_out(p, &arg[i]))
            continue;
        base_add(cx, t, comma);
        add_arg(cx, t, &arg[i]);
        comma = ", ";
    }
    base_add(cx, t, ")");
}

const char *sched_step_text(tec_context *cx, const sched_step *step)
{
    base_text t = {0};

    add_names(cx, &t, step->result, step->n_results);
    if (step->n_results)
        base_add(cx, &t, " = ");
    add_call(cx, &t, step->primitive, step->arg, step->n_args);
    return base_text_str(cx, &t);
}

/* Read back by sched_replay on the same tree it gives the same tree: a record in the store is this text. */
const char *sched_trace_text(tec_context *cx, const sched *s)
{
    base_text t = {0};

    for (int i = 0; i < s->steps.n; i++)
        base_addf(cx, &t, "%s\n", sched_step_text(cx, s->steps.at[i]));
    return base_text_str(cx, &t);
}

/* ---- applying ---- */

/* The first reason counts: a check that finds more than one fault names what it saw first. NULL, so that a
 * primitive can return it as its tree. */
void *sched_refuse(sched_call *c, const char *fmt, ...)
{
    va_list args;

    if (!c->reason) {
        va_start(args, fmt);
        c->reason = base_vformat(c->cx, fmt, args);
        va_end(args);
    }
    return NULL;
}

/* The reason is the primitive's, or else the first error of the context, which a constructor left. */
static bool refused(sched_call *c, const sched_primitive *p, int n)
{
    base_text t = {0};
    sched *s = c->s;

    if (s->error)
        return false;
    base_add_place(c->cx, &t, s->where);
    add_call(c->cx, &t, p, c->arg, n);
    base_addf(c->cx, &t, ": %s", c->reason ? c->reason : tec_context_error(c->cx));
    base_add_excerpt(c->cx, &t, s->where);
    s->error = base_text_str(c->cx, &t);
    return false;
}

/* The step outlives the caller's strings, so names, integers and lists are copied to the context. Expressions
 * are the context's already. */
static const sched_arg *copy_args(tec_context *cx, const sched_arg *arg, int n)
{
    sched_arg *copy = base_copy(cx, arg, (size_t)n * sizeof *arg);

    for (int i = 0; i < n; i++) {
        copy[i].name = arg[i].name ? base_strdup(cx, arg[i].name) : NULL;
        if (arg[i].names)
            copy[i].names = base_copy(cx, arg[i].names, (size_t)arg[i].n * sizeof *arg[i].names);
        for (int j = 0; arg[i].names && j < arg[i].n; j++)
            ((const char **)copy[i].names)[j] = arg[i].names[j] ? base_strdup(cx, arg[i].names[j]) : NULL;
        if (arg[i].ints)
            copy[i].ints = base_copy(cx, arg[i].ints, (size_t)arg[i].n * sizeof *arg[i].ints);
        if (arg[i].exprs)
            copy[i].exprs = base_copy(cx, arg[i].exprs, (size_t)arg[i].n * sizeof *arg[i].exprs);
    }
    return copy;
}

/* Results are those names that the primitive gave; they lie in the schedule's context. */
static void append(sched_call *c, const sched_primitive *p, int n)
{
    sched_step *step = base_new(c->cx, sched_step);

    step->primitive = p;
    step->n_args = n;
    memcpy(step->arg, c->arg, (size_t)n * sizeof *c->arg);
    step->result = (const char *const *)c->results.at;
    step->n_results = c->results.n;
    base_push(c->cx, &c->s->steps, step);
}

/* A NULL name comes from an earlier step that was refused; that one's reason is the one to read. */
static bool names_missing(const sched_arg *arg, int n)
{
    for (int i = 0; i < n; i++) {
        bool named = arg[i].kind <= SCHED_ARG_BUFFER || arg[i].kind == SCHED_ARG_WORD;
        bool list = arg[i].kind == SCHED_ARG_LOOPS || arg[i].kind == SCHED_ARG_BLOCKS ||
                    arg[i].kind == SCHED_ARG_WORDS;

        if (named && !list && !arg[i].name)
            return true;
        for (int j = 0; list && j < arg[i].n; j++)
            if (!arg[i].names[j])
                return true;
    }
    return false;
}

/* What earlier steps rely on, and every later one has to keep. A primitive checks itself; these rules are
 * about steps of before, of which it knows nothing: a loop that became a pipeline gave each statement below a
 * stage, and a step that moves such a statement out of the loop may be right by itself, but its stage would
 * mean nothing there. */
static void keep_promises(sched_call *c, const ir_program *after)
{
    const char *why = sched_hidden_result(c->cx, after);

    why = why ? why : sched_broken_pipeline(c->s, after);
    if (why)
        sched_refuse(c, "%s", why);
    else
        sched_threads_fit(c, after);
}

/* All or nothing: the schedule gets the new tree only if the primitive gave one without a reason, and the
 * rules that earlier steps rely on hold of it. A primitive that gives neither is our bug. Debug builds verify
 * the tree afterwards. */
bool sched_apply(sched *s, const char *primitive, const sched_arg *arg, int n, const char *const **results,
                 int *n_results)
{
    if (!s)
        return false;
    const sched_primitive *p = sched_primitive_named(primitive);
    sched_call c = {.s = s, .cx = s->view.cx, .tree = s->view.program, .arg = copy_args(s->view.cx, arg, n)};
    const ir_program *after = NULL;

    if (names_missing(arg, n))
        sched_refuse(&c, "a loop or block that it names was not made");
    else
        after = p->run(&c);
    if (!after && !c.reason && !base_failed(s->view.cx))
        BASE_BUG(s->view.cx, "%s gives neither a tree nor a reason", p->name);
    if (after && !c.reason)
        keep_promises(&c, after);
    if (!after || c.reason)
        return refused(&c, p, n);
    s->view.program = after;
    append(&c, p, n);
#ifdef TEC_DEBUG
    if (!sched_verify(s))
        BASE_BUG(s->view.cx, "the tree after %s is broken: %s",
                 sched_step_text(s->view.cx, s->steps.at[s->steps.n - 1]), tec_context_error(s->view.cx));
#endif
    if (results) {
        *results = (const char *const *)c.results.at;
        *n_results = c.results.n;
    }
    return true;
}
