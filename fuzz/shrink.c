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

/* Takes the smaller case if it still fails in the same way; `budget` bounds the number of tries. */
static bool try_case(shrinker *self, const char *te, const char *trace)
{
    fuzz_case c = self->best;

    c.te = te;
    c.trace = trace;
    if (self->budget <= 0 || (strcmp(te, self->best.te) == 0 && strcmp(trace, self->best.trace) == 0))
        return false;
    self->budget--;
    if (!self->fails(self->user, &c))
        return false;
    self->best = c;
    return true;
}

/* The definition as it prints, if it parses: candidates are compared and edited in one form. */
static const char *normal(shrinker *self, const char *te)
{
    te_file *f = te_parse(self->cx, "candidate.te", te);
    const char *text = f ? fuzz_te_text(self->cx, f) : NULL;

    tec_context_clear(self->cx);
    return text;
}

static bool try_te(shrinker *self, const char *te)
{
    const char *text = normal(self, te);

    return text && try_case(self, text, self->best.trace);
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
static bool drop_steps(shrinker *self)
{
    bool changed = false;

    for (int size = lines_of(self->cx, self->best.trace).n; size >= 1; size /= 2)
        for (int first = lines_of(self->cx, self->best.trace).n - size; first >= 0; first -= size) {
            base_vec lines = lines_of(self->cx, self->best.trace);

            if (first + size <= lines.n)
                changed |= try_case(self, self->best.te, without(self->cx, &lines, first, size, NULL));
        }
    return changed;
}

/* ---- stages ---- */

static te_def *parse_best(shrinker *self)
{
    te_file *f = te_parse(self->cx, "best.te", self->best.te);

    tec_context_clear(self->cx);
    return f ? f->defs.at[0] : NULL;
}

static const char *shape_text(tec_context *cx, const te_tensor *tensor)
{
    base_text out = {0};

    base_addf(cx, &out, "%s: %s[", tensor->buffer->name, base_dtype_text(cx, tensor->buffer->dtype));
    for (int i = 0; i < tensor->buffer->n; i++)
        base_addf(cx, &out, "%s%s", i ? ", " : "", ir_expr_text(cx, tensor->buffer->shape[i]));
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

/* The tensors of stage stage as parameters, behind the others. */
static const char *as_input(shrinker *self, const te_stage *stage)
{
    base_vec lines = lines_of(self->cx, self->best.te);
    int at = line_of_stage(&lines, stage->name);
    const char *head = lines.n ? lines.at[0] : "", *end = strstr(head, ") where ");
    size_t open = end ? (size_t)(end - head) : strlen(head) >= 3 ? strlen(head) - 3 : 0;
    base_text t = {0};

    if (at < 0)
        return NULL;
    base_addn(self->cx, &t, head, open);
    for (int i = 0; i < stage->n_outputs; i++)
        base_addf(self->cx, &t, ", %s", shape_text(self->cx, stage->output[i]));
    base_add(self->cx, &t, head + open);
    lines.at[0] = (char *)(uintptr_t)base_text_str(self->cx, &t);
    return without(self->cx, &lines, at, 1, NULL);
}

/* Returns another tensor than before, alone. */
static const char *returning(shrinker *self, const char *name)
{
    base_vec lines = lines_of(self->cx, self->best.te);

    for (int i = 0; i < lines.n; i++)
        if (strncmp(lines.at[i], "  return ", 9) == 0)
            return without(self->cx, &lines, i, 1, base_format(self->cx, "  return %s", name));
    return NULL;
}

/* Drops a stage, or makes it the last one, or an input. */
static bool drop_stages(shrinker *self)
{
    te_def *def = parse_best(self);
    bool changed = false;

    for (int i = 0; def && i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];
        base_vec lines = lines_of(self->cx, self->best.te);
        int at = line_of_stage(&lines, stage->name);

        if (stage->kind == TE_INPUT || at < 0)
            continue;
        if (try_te(self, without(self->cx, &lines, at, 1, NULL)) ||
            try_te(self, returning(self, stage->output[0]->buffer->name)) ||
            try_te(self, as_input(self, stage)))
            changed = true;
    }
    return changed;
}

/* Parameters that nothing reads any more. */
static bool drop_inputs(shrinker *self)
{
    te_def *def = parse_best(self);
    bool changed = false;

    for (int i = 0; def && i < def->inputs.n; i++) {
        const char *text = shape_text(self->cx, def->inputs.at[i]), *at = strstr(self->best.te, text);

        if (!at)
            continue;
        size_t before = (size_t)(at - self->best.te), after = before + strlen(text);
        if (strncmp(self->best.te + after, ", ", 2) == 0)
            after += 2;
        else if (before > 2 && strncmp(at - 2, ", ", 2) == 0)
            before -= 2;
        changed |=
            try_te(self, base_format(self->cx, "%.*s%s", (int)before, self->best.te, self->best.te + after));
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

/* 1, 2, half of it, one less: the first that still fails. */
static bool shrink_number(shrinker *self, const char *number)
{
    int64_t v = strtoll(number, NULL, 10), smaller[] = {1, 2, v / 2, v - 1};

    for (int i = 0; i < BASE_COUNT(smaller); i++)
        if (smaller[i] > 0 && smaller[i] < v &&
            try_te(self, with_number(self->cx, self->best.te, number,
                                     base_format(self->cx, "%lld", (long long)smaller[i]), NULL)))
            return true;
    return false;
}

static bool shrink_numbers(shrinker *self)
{
    base_dict all = numbers_in(self->cx, self->best.te);
    bool changed = false;

    for (int i = 0; i < all.order.n; i++)
        changed |= shrink_number(self, all.order.at[i]);
    return changed;
}

/* Replaces symbols by the smallest number that still fails. */
static bool fix_symbols(shrinker *self)
{
    te_def *def = parse_best(self);
    bool changed = false;

    for (int i = 0; def && i < def->symbols.n; i++)
        for (int64_t v = 1; v <= 8; v += v < 5 ? 2 : 3) {
            const ir_expr *symbol = def->symbols.at[i], *value = ir_int(self->cx, v);
            te_def *fixed = te_specialise(self->cx, def, &symbol, &value, 1);
            const char *text = fixed ? te_text(self->cx, fixed) : NULL;

            tec_context_clear(self->cx);
            if (text && try_te(self, text)) {
                def = parse_best(self);
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

static bool list_expr(ir_walk *walk, const ir_expr *expr)
{
    gather *g = (gather *)walk;

    base_push(walk->cx, &g->all, expr);
    return expr->op != IR_LOAD;
}

/* The text with the first `from` replaced. */
static const char *replaced(tec_context *cx, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    return at ? base_format(cx, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) : NULL;
}

/* Replaces an expression by one of its operands, or by 1. */
static bool simplify_expr(shrinker *self, const ir_expr *expr)
{
    const char *text = ir_expr_text(self->cx, expr);

    if (!ir_is_op(expr->op) && expr->op != IR_CAST && expr->op != IR_LOAD)
        return false;
    for (int i = 0; expr->op != IR_LOAD && i < 3 && expr->arg[i]; i++) {
        const char *to = base_dtype_same(expr->arg[i]->dtype, expr->dtype)
                             ? replaced(self->cx, self->best.te, text,
                                        base_format(self->cx, "(%s)", ir_expr_text(self->cx, expr->arg[i])))
                             : NULL;

        if (to && try_te(self, to))
            return true;
    }
    const char *one = replaced(self->cx, self->best.te, text,
                               base_is_bool(expr->dtype)    ? "true"
                               : base_is_float(expr->dtype) ? "1.0"
                                                            : "1");
    return !base_is_int(expr->dtype) && one && try_te(self, one);
}

/* Tries it for all expressions of the definition, while the budget lasts. */
static bool simplify_exprs(shrinker *self)
{
    te_def *def = parse_best(self);
    gather g = {.w = {.expr = list_expr, .cx = self->cx}};
    bool changed = false;

    for (int i = 0; def && i < def->stages.n; i++) {
        const te_stage *stage = def->stages.at[i];

        for (int j = 0; stage->kind == TE_COMPUTE && j < stage->n_outputs; j++)
            ir_walk_expr(&g.w, stage->body[j]);
    }
    for (int i = 0; i < g.all.n && self->budget > 0; i++)
        changed |= simplify_expr(self, g.all.at[i]);
    return changed;
}

/* The smallest case found that still fails. `budget`: how many cases may be tried. */
fuzz_case fuzz_shrink(tec_context *cx, const fuzz_case *sample, fuzz_fails *fails, void *user, int budget)
{
    shrinker k = {cx, *sample, fails, user, budget};
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
