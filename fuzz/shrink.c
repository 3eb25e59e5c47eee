/* fuzz/shrink.c -- a failing case becomes small: fewer steps, fewer stages, smaller numbers, simpler
 * expressions.
 *
 * Every candidate is a whole case as text, and the caller says whether it still fails, so nothing here needs
 * to know what is legal: what does not parse, or reads outside its tensors, does not fail in the same way.
 * Rounds go on until one changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "te/text.h"

typedef struct {
    tec_context *cx;
    fuzz_case best;
    fuzz_fails *fails;
    void *user;
    int budget;
} shrinker;

static bool try_case(shrinker *k, const char *te, const char *trace)
{
    fuzz_case c = k->best;

    c.te = te;
    c.trace = trace;
    if (k->budget <= 0 || (strcmp(te, k->best.te) == 0 && strcmp(trace, k->best.trace) == 0))
        return false;
    k->budget--;
    if (!k->fails(k->user, &c))
        return false;
    k->best = c;
    return true;
}

/* The definition as it prints, if it parses: candidates are compared and edited in one form. */
static const char *normal(shrinker *k, const char *te)
{
    te_file *f = te_parse(k->cx, "candidate.te", te);
    const char *text = f ? fuzz_te_text(k->cx, f) : NULL;

    tec_context_clear(k->cx);
    return text;
}

static bool try_te(shrinker *k, const char *te)
{
    const char *text = normal(k, te);

    return text && try_case(k, text, k->best.trace);
}

/* ---- lines ---- */

static base_vec lines_of(tec_context *cx, const char *text)
{
    base_vec lines = {0};

    while (*text) {
        size_t n = strcspn(text, "\n");

        base_push(cx, &lines, base_strndup(cx, text, n));
        text += n + (text[n] == '\n');
    }
    return lines;
}

/* All lines but `count` from `first` on; line `first` may have a successor. */
static const char *without(tec_context *cx, const base_vec *lines, int first, int count, const char *instead)
{
    base_text t = {0};

    for (int i = 0; i < lines->n; i++) {
        if (i == first && instead)
            base_addf(cx, &t, "%s\n", instead);
        if (i < first || i >= first + count)
            base_addf(cx, &t, "%s\n", (const char *)lines->at[i]);
    }
    return base_text_str(cx, &t);
}

/* ---- steps ---- */

/* Halves, quarters, ... single lines, from the end: later steps depend on earlier ones. */
static bool drop_steps(shrinker *k)
{
    bool changed = false;

    for (int size = lines_of(k->cx, k->best.trace).n; size >= 1; size /= 2)
        for (int first = lines_of(k->cx, k->best.trace).n - size; first >= 0; first -= size) {
            base_vec lines = lines_of(k->cx, k->best.trace);

            if (first + size <= lines.n)
                changed |= try_case(k, k->best.te, without(k->cx, &lines, first, size, NULL));
        }
    return changed;
}

/* ---- stages ---- */

static te_def *parse_best(shrinker *k)
{
    te_file *f = te_parse(k->cx, "best.te", k->best.te);

    tec_context_clear(k->cx);
    return f ? f->defs.at[0] : NULL;
}

static const char *shape_text(tec_context *cx, const te_tensor *t)
{
    base_text out = {0};

    base_addf(cx, &out, "%s: %s[", t->buffer->name, base_dtype_text(cx, t->buffer->dtype));
    for (int i = 0; i < t->buffer->n; i++)
        base_addf(cx, &out, "%s%s", i ? ", " : "", ir_expr_text(cx, t->buffer->shape[i]));
    base_add(cx, &out, "]");
    return base_text_str(cx, &out);
}

static int line_of_stage(const base_vec *lines, const char *name)
{
    size_t n = strlen(name);

    for (int i = 0; i < lines->n; i++) {
        const char *line = lines->at[i];

        if (strncmp(line, "  ", 2) == 0 && strncmp(line + 2, name, n) == 0 &&
            (line[n + 2] == '[' || line[n + 2] == '('))
            return i;
    }
    return -1;
}

/* The tensors of stage s as parameters, behind the others. */
static const char *as_input(shrinker *k, const te_stage *s)
{
    base_vec lines = lines_of(k->cx, k->best.te);
    int at = line_of_stage(&lines, s->name);
    const char *head = lines.n ? lines.at[0] : "", *end = strstr(head, ") where ");
    size_t open = end ? (size_t)(end - head) : strlen(head) >= 3 ? strlen(head) - 3 : 0;
    base_text t = {0};

    if (at < 0)
        return NULL;
    base_addn(k->cx, &t, head, open);
    for (int i = 0; i < s->n_outputs; i++)
        base_addf(k->cx, &t, ", %s", shape_text(k->cx, s->output[i]));
    base_add(k->cx, &t, head + open);
    lines.at[0] = (char *)(uintptr_t)base_text_str(k->cx, &t);
    return without(k->cx, &lines, at, 1, NULL);
}

/* Returns another tensor than before, alone. */
static const char *returning(shrinker *k, const char *name)
{
    base_vec lines = lines_of(k->cx, k->best.te);

    for (int i = 0; i < lines.n; i++)
        if (strncmp(lines.at[i], "  return ", 9) == 0)
            return without(k->cx, &lines, i, 1, base_format(k->cx, "  return %s", name));
    return NULL;
}

/* Drops a stage, or makes it the last one, or an input. */
static bool drop_stages(shrinker *k)
{
    te_def *d = parse_best(k);
    bool changed = false;

    for (int i = 0; d && i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];
        base_vec lines = lines_of(k->cx, k->best.te);
        int at = line_of_stage(&lines, s->name);

        if (s->kind == TE_INPUT || at < 0)
            continue;
        if (try_te(k, without(k->cx, &lines, at, 1, NULL)) ||
            try_te(k, returning(k, s->output[0]->buffer->name)) || try_te(k, as_input(k, s)))
            changed = true;
    }
    return changed;
}

/* Parameters that nothing reads any more. */
static bool drop_inputs(shrinker *k)
{
    te_def *d = parse_best(k);
    bool changed = false;

    for (int i = 0; d && i < d->inputs.n; i++) {
        const char *text = shape_text(k->cx, d->inputs.at[i]), *at = strstr(k->best.te, text);

        if (!at)
            continue;
        size_t before = (size_t)(at - k->best.te), after = before + strlen(text);
        if (strncmp(k->best.te + after, ", ", 2) == 0)
            after += 2;
        else if (before > 2 && strncmp(at - 2, ", ", 2) == 0)
            before -= 2;
        changed |= try_te(k, base_format(k->cx, "%.*s%s", (int)before, k->best.te, k->best.te + after));
    }
    return changed;
}

/* ---- numbers ---- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

/* Every number `from` (or the one at `only`) as `to`. */
static const char *with_number(tec_context *cx, const char *text, const char *from, const char *to,
                               const char *only)
{
    size_t n = strlen(from);
    base_text t = {0};

    for (const char *p = text; *p;) {
        bool here = strncmp(p, from, n) == 0 && (p == text || !is_word(p[-1])) && !is_word(p[n]) &&
                    (!only || only == p);

        base_addn(cx, &t, here ? to : p, here ? strlen(to) : 1);
        p += here ? n : 1;
    }
    return base_text_str(cx, &t);
}

/* Numbers of the text, each one once, as text. */
static base_dict numbers_in(tec_context *cx, const char *text)
{
    base_dict all = {0};

    for (const char *p = text; *p; p++)
        if (*p >= '2' && *p <= '9' + 0 && (p == text || !is_word(p[-1])))
            base_dict_put(cx, &all, base_strndup(cx, p, strspn(p, "0123456789")), p);
        else if (*p == '1' && p[1] >= '0' && p[1] <= '9' && (p == text || !is_word(p[-1])))
            base_dict_put(cx, &all, base_strndup(cx, p, strspn(p, "0123456789")), p);
    return all;
}

static bool shrink_number(shrinker *k, const char *number)
{
    int64_t v = strtoll(number, NULL, 10), smaller[] = {1, 2, v / 2, v - 1};

    for (int i = 0; i < BASE_COUNT(smaller); i++)
        if (smaller[i] > 0 && smaller[i] < v &&
            try_te(k, with_number(k->cx, k->best.te, number,
                                  base_format(k->cx, "%lld", (long long)smaller[i]), NULL)))
            return true;
    return false;
}

static bool shrink_numbers(shrinker *k)
{
    base_dict all = numbers_in(k->cx, k->best.te);
    bool changed = false;

    for (int i = 0; i < all.order.n; i++)
        changed |= shrink_number(k, all.order.at[i]);
    return changed;
}

/* Replaces symbols by the smallest number that still fails. */
static bool fix_symbols(shrinker *k)
{
    te_def *d = parse_best(k);
    bool changed = false;

    for (int i = 0; d && i < d->symbols.n; i++)
        for (int64_t v = 1; v <= 8; v += v < 5 ? 2 : 3) {
            const ir_expr *symbol = d->symbols.at[i], *value = ir_int(k->cx, v);
            te_def *fixed = te_specialise(k->cx, d, &symbol, &value, 1);
            const char *text = fixed ? te_text(k->cx, fixed) : NULL;

            tec_context_clear(k->cx);
            if (text && try_te(k, text)) {
                d = parse_best(k);
                changed = true;
                break;
            }
        }
    return changed;
}

/* ---- expressions ---- */

typedef struct {
    ir_walk w;
    base_vec all;
} gather;

static bool list_expr(ir_walk *w, const ir_expr *e)
{
    gather *g = (gather *)w;

    base_push(w->cx, &g->all, e);
    return e->op != IR_LOAD;
}

/* The text with the first `from` replaced. */
static const char *replaced(tec_context *cx, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    return at ? base_format(cx, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) : NULL;
}

/* Replaces an expression by one of its operands, or by 1. */
static bool simplify_expr(shrinker *k, const ir_expr *e)
{
    const char *text = ir_expr_text(k->cx, e);

    if (!ir_is_op(e->op) && e->op != IR_CAST && e->op != IR_LOAD)
        return false;
    for (int i = 0; e->op != IR_LOAD && i < 3 && e->arg[i]; i++) {
        const char *to = base_dtype_same(e->arg[i]->dtype, e->dtype)
                             ? replaced(k->cx, k->best.te, text,
                                        base_format(k->cx, "(%s)", ir_expr_text(k->cx, e->arg[i])))
                             : NULL;

        if (to && try_te(k, to))
            return true;
    }
    const char *one = replaced(k->cx, k->best.te, text,
                               base_is_bool(e->dtype)    ? "true"
                               : base_is_float(e->dtype) ? "1.0"
                                                         : "1");
    return !base_is_int(e->dtype) && one && try_te(k, one);
}

/* Tries it for all expressions of the definition, while the budget lasts. */
static bool simplify_exprs(shrinker *k)
{
    te_def *d = parse_best(k);
    gather g = {.w = {.expr = list_expr, .cx = k->cx}};
    bool changed = false;

    for (int i = 0; d && i < d->stages.n; i++) {
        const te_stage *s = d->stages.at[i];

        for (int j = 0; s->kind == TE_COMPUTE && j < s->n_outputs; j++)
            ir_walk_expr(&g.w, s->body[j]);
    }
    for (int i = 0; i < g.all.n && k->budget > 0; i++)
        changed |= simplify_expr(k, g.all.at[i]);
    return changed;
}

/* The smallest case found that still fails. `budget`: how many cases may be tried. */
fuzz_case fuzz_shrink(tec_context *cx, const fuzz_case *c, fuzz_fails *fails, void *user, int budget)
{
    shrinker k = {cx, *c, fails, user, budget};
    bool changed = true;

    while (changed && k.budget > 0) {
        changed = drop_steps(&k);
        changed |= drop_stages(&k);
        changed |= drop_inputs(&k);
        changed |= fix_symbols(&k);
        changed |= simplify_exprs(&k);
        changed |= shrink_numbers(&k);
    }
    return k.best;
}
