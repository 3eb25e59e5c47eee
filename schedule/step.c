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
#include "tree/depend.h"

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
static void add_names(tec_context *cx, base_text *text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        base_addf(cx, text, "%s%s", i ? ", " : "", names[i]);
}

static void add_factors(tec_context *cx, base_text *text, const sched_arg *arg)
{
    for (int i = 0; i < arg->n; i++) {
        base_add(cx, text, i ? ", " : "");
        if (arg->ints[i] == TEC_INFER)
            base_add(cx, text, "_");
        else
            base_addf(cx, text, "%lld", (long long)arg->ints[i]);
    }
}

static void add_exprs(tec_context *cx, base_text *text, const ir_expr *const *expr, int n)
{
    for (int i = 0; i < n; i++)
        base_addf(cx, text, "%s%s", i ? ", " : "", ir_expr_text(cx, expr[i]));
}

static void add_tuple(tec_context *cx, base_text *text, const ir_expr *const *expr, int n)
{
    base_add(cx, text, "(");
    add_exprs(cx, text, expr, n);
    base_add(cx, text, ")");
}

/* The text is the one that trace.c reads back; _ stands for a factor that is inferred. */
static void add_arg(tec_context *cx, base_text *text, const sched_arg *arg)
{
    switch (arg->kind) {
    case SCHED_ARG_LOOP:
    case SCHED_ARG_BLOCK:
    case SCHED_ARG_PLACE:
    case SCHED_ARG_BUFFER:
    case SCHED_ARG_WORD: base_add(cx, text, arg->name ? arg->name : "(none)"); return;
    case SCHED_ARG_LOOPS:
    case SCHED_ARG_BLOCKS:
    case SCHED_ARG_WORDS: add_names(cx, text, arg->names, arg->n); return;
    case SCHED_ARG_FACTORS: add_factors(cx, text, arg); return;
    case SCHED_ARG_INT: base_addf(cx, text, "%lld", (long long)arg->i); return;
    case SCHED_ARG_EXPR: base_add(cx, text, ir_expr_text(cx, arg->expr)); return;
    case SCHED_ARG_EXPRS: add_exprs(cx, text, arg->exprs, arg->n); return;
    case SCHED_ARG_TUPLE: add_tuple(cx, text, arg->exprs, arg->n); return;
    case SCHED_ARG_MAP:
        add_tuple(cx, text, arg->vars, arg->n_vars);
        base_add(cx, text, " -> ");
        add_tuple(cx, text, arg->exprs, arg->n);
        return;
    }
}

/* The default of the last word of a signature; NULL: none. */
static const char *default_word(const sched_primitive *primitive)
{
    const char *equals = strrchr(primitive->signature, '=');

    return equals ? equals + 1 : NULL;
}

/* The default is known for the last word only, since only that may be missing. */
static bool left_out(const sched_primitive *primitive, const sched_arg *arg)
{
    if (sched_is_list(arg->kind))
        return arg->n == 0;
    return arg->kind == SCHED_ARG_WORD && base_same(arg->name, default_word(primitive));
}

/* Arguments that have their default are left out, so that a trace reads like what a person would write. */
static void add_call(tec_context *cx, base_text *text, const sched_primitive *primitive, const sched_arg *arg,
                     int count)
{
    const char *comma = "";

    base_addf(cx, text, "%s(", primitive->name);
    for (int i = 0; i < count; i++) {
        if (left_out(primitive, &arg[i]))
            continue;
        base_add(cx, text, comma);
        add_arg(cx, text, &arg[i]);
        comma = ", ";
    }
    base_add(cx, text, ")");
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
const char *sched_trace_text(tec_context *cx, const sched *schedule)
{
    base_text t = {0};

    for (int i = 0; i < schedule->steps.n; i++)
        base_addf(cx, &t, "%s\n", sched_step_text(cx, schedule->steps.at[i]));
    return base_text_str(cx, &t);
}

/* ---- applying ---- */

/* The first reason counts: a check that finds more than one fault names what it saw first. NULL, so that a
 * primitive can return it as its tree. */
void *sched_refuse(sched_call *call, const char *fmt, ...)
{
    va_list args;

    if (!call->reason) {
        va_start(args, fmt);
        call->reason = base_vformat(call->cx, fmt, args);
        va_end(args);
    }
    return NULL;
}

/* The reason is the primitive's, or else the first error of the context, which a constructor left. */
static bool refused(sched_call *call, const sched_primitive *primitive, int count)
{
    base_text t = {0};
    sched *s = call->s;

    if (s->error)
        return false;
    base_add_place(call->cx, &t, s->where);
    add_call(call->cx, &t, primitive, call->arg, count);
    base_addf(call->cx, &t, ": %s", call->reason ? call->reason : tec_context_error(call->cx));
    base_add_excerpt(call->cx, &t, s->where);
    s->error = base_text_str(call->cx, &t);
    return false;
}

/* The step outlives the caller's strings, so names, integers and lists are copied to the context. Expressions
 * are the context's already. */
static const sched_arg *copy_args(tec_context *cx, const sched_arg *arg, int count)
{
    sched_arg *copy = base_copy(cx, arg, (size_t)count * sizeof *arg);

    for (int i = 0; i < count; i++) {
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
static void append(sched_call *call, const sched_primitive *primitive, int count)
{
    sched_step *step = base_new(call->cx, sched_step);

    step->primitive = primitive;
    step->n_args = count;
    memcpy(step->arg, call->arg, (size_t)count * sizeof *call->arg);
    step->result = (const char *const *)call->results.at;
    step->n_results = call->results.n;
    base_push(call->cx, &call->s->steps, step);
}

/* A NULL name comes from an earlier step that was refused; that one's reason is the one to read. */
static bool names_missing(const sched_arg *arg, int count)
{
    for (int i = 0; i < count; i++) {
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
 * mean nothing there. In the same way a step may hide why the iterations of a loop may run at the same
 * time. */
static void keep_promises(sched_call *call, const ir_program *after)
{
    tree_view view = {.cx = call->cx, .program = after, .facts = call->s->view.facts};
    const char *why = sched_hidden_result(call->cx, after);
    const ir_stmt *loop;

    why = why ? why : sched_broken_pipeline(call->s, after);
    if (why)
        sched_refuse(call, "%s", why);
    else if ((loop = tree_unproven_loop(&view, &why)) != NULL)
        sched_refuse(call, "'%s' is %s, and after this step %s", loop->loop.var->var.name,
                     ir_how_text(loop->loop.how), why);
    else
        sched_threads_fit(call, after);
}

/* All or nothing: the schedule gets the new tree only if the primitive gave one without a reason, and the
 * rules that earlier steps rely on hold of it. A primitive that gives neither is our bug. Debug builds verify
 * the tree afterwards. */
bool sched_apply(sched *schedule, const char *primitive, const sched_arg *arg, int count,
                 const char *const **results, int *n_results)
{
    if (!schedule)
        return false;
    const sched_primitive *p = sched_primitive_named(primitive);
    sched_call c = {.s = schedule,
                    .cx = schedule->view.cx,
                    .tree = schedule->view.program,
                    .arg = copy_args(schedule->view.cx, arg, count)};
    const ir_program *after = NULL;

    if (names_missing(arg, count))
        sched_refuse(
            &c, "the step names a loop or block that does not exist, because an earlier step was refused");
    else
        after = p->run(&c);
    if (!after && !c.reason && !base_failed(schedule->view.cx))
        BASE_BUG(schedule->view.cx, "%s gives neither a tree nor a reason", p->name);
    if (after && !c.reason)
        keep_promises(&c, after);
    if (!after || c.reason)
        return refused(&c, p, count);
    schedule->view.program = after;
    append(&c, p, count);
#ifdef TEC_DEBUG
    if (!sched_verify(schedule))
        BASE_BUG(schedule->view.cx, "the tree after %s is broken: %s",
                 sched_step_text(schedule->view.cx, schedule->steps.at[schedule->steps.n - 1]),
                 tec_context_error(schedule->view.cx));
#endif
    if (results) {
        *results = (const char *const *)c.results.at;
        *n_results = c.results.n;
    }
    return true;
}
