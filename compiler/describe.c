/* compiler/describe.c -- what a module says about a function, derived from its programs before and after
 * lowering.
 *
 * Shapes, strides and facts come from the tree, where buffers still have their dimensions; workspace sizes
 * from the lowered program.
 */
#include "compiler/describe.h"

#include "compiler/dispatch.h"

#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "runtime/solve.h"

typedef struct {
    tec_context *cx;
    const ir_program *p;
    const ir_facts *facts;
} describer;

static bool dim(describer *self, const ir_expr *expr, rt_dim *out)
{
    return comp_dim(self->cx, ir_simplify(self->facts, expr), self->p->symbols, self->p->n_symbols, out);
}

static bool dims(describer *self, const ir_expr *const *expr, int n, const rt_dim **out)
{
    rt_dim *all = base_array(self->cx, rt_dim, n);

    *out = all;
    for (int i = 0; i < n; i++)
        if (!dim(self, expr[i], &all[i]))
            return false;
    return true;
}

/* Shapes as dimension code over the function's symbols, which the runtime evaluates and checks for each call.
 */
static bool describe_buffer(describer *self, const ir_param *param, rt_param_desc *out)
{
    const ir_buffer *buffer = param->buffer;

    *out = (rt_param_desc){.name = base_strdup(self->cx, buffer->name),
                           .kind = RT_PARAM_BUFFER,
                           .dtype = buffer->dtype,
                           .is_output = param->output,
                           .rank = buffer->n,
                           .alignment = buffer->align};
    if (buffer->n > RT_MAX_RANK) {
        base_fail(self->cx, TEC_UNSUPPORTED, buffer->loc,
                  "parameter '%s' has %d dimensions; expected at most %d", buffer->name, buffer->n,
                  RT_MAX_RANK);
        return false;
    }
    return dims(self, buffer->shape, buffer->n, &out->shape) &&
           (!buffer->strides || dims(self, buffer->strides, buffer->n, &out->strides));
}

/* Parameters in the order in which callers pass them. */
static bool describe_params(describer *self, rt_function_desc *function)
{
    rt_param_desc *params = base_array(self->cx, rt_param_desc, self->p->n_params);

    function->n_params = self->p->n_params;
    function->params = params;
    for (int i = 0; i < self->p->n_params; i++) {
        const ir_param *param = &self->p->params[i];

        if (!param->buffer)
            params[i] = (rt_param_desc){.name = base_strdup(self->cx, param->scalar->var.name),
                                        .kind = RT_PARAM_SCALAR,
                                        .dtype = param->scalar->dtype};
        else if (!describe_buffer(self, param, &params[i]))
            return false;
    }
    return true;
}

static void describe_aliases(describer *self, rt_function_desc *function)
{
    int n = self->p->n_params;
    rt_alias_desc *pairs = base_array(self->cx, rt_alias_desc, n * n / 2 + 1);

    function->aliases = pairs;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            const ir_buffer *x = self->p->params[a].buffer, *y = self->p->params[b].buffer;

            if (x && y && x->alias && x->alias == y->alias)
                pairs[function->n_aliases++] = (rt_alias_desc){a, b};
        }
}

static const char *fact_text(const describer *self, int i)
{
    const char *text = ir_expr_text(self->cx, self->p->facts[i]),
               *reason = self->p->reasons ? self->p->reasons[i] : NULL;

    return reason ? base_format(self->cx, "%s (%s)", text, reason) : text;
}

/* Facts become conditions that the runtime checks before a call; each has a text for the message. */
static bool describe_facts(describer *self, rt_function_desc *function)
{
    const char **names = base_array(self->cx, const char *, self->p->n_symbols);
    rt_fact_desc *facts = base_array(self->cx, rt_fact_desc, self->p->n_facts);

    for (int i = 0; i < self->p->n_symbols; i++)
        names[i] = base_strdup(self->cx, self->p->symbols[i]->var.name);
    function->symbols = names;
    function->n_symbols = self->p->n_symbols;
    function->facts = facts;
    function->n_facts = self->p->n_facts;
    for (int i = 0; i < self->p->n_facts; i++) {
        facts[i].text = fact_text(self, i);
        if (!comp_dim(self->cx, self->p->facts[i], self->p->symbols, self->p->n_symbols, &facts[i].condition))
            return false;
    }
    return true;
}

/* What moves at least: every buffer once. */
static const ir_expr *moved_bytes(describer *self)
{
    const ir_expr *sum = ir_int(self->cx, 0);

    for (int i = 0; i < self->p->n_params; i++) {
        const ir_buffer *buffer = self->p->params[i].buffer;
        const ir_expr *size = buffer ? ir_int(self->cx, base_dtype_bytes(buffer->dtype)) : NULL;

        for (int j = 0; buffer && j < buffer->n; j++)
            size = ir_mul(self->cx, size, buffer->shape[j]);
        if (size)
            sum = ir_add(self->cx, sum, size);
    }
    return sum;
}

/* The most that the unit's program or one of its versions asks for, over the unit's symbols. */
static bool describe_note(describer *self, const comp_dispatch *versions, const ir_program *lowered,
                          const ir_program *const *version, const char *key, rt_dim *out)
{
    const ir_expr *most = ir_note_get(lowered->notes, key);

    for (int i = 0; versions && i < versions->n; i++) {
        const ir_expr *expr = ir_note_get(version[i]->notes, key),
                      *quotient = versions->version[i].tree->symbols[versions->symbol];

        expr = expr ? ir_substitute(self->cx, expr, quotient,
                                    ir_floordiv(self->cx, self->p->symbols[versions->symbol],
                                                ir_int(self->cx, versions->modulus)))
                    : NULL;
        most = expr && most ? ir_max(self->cx, most, expr) : expr ? expr : most;
    }
    *out = (rt_dim){0};
    return !most || dim(self, most, out);
}

/* A call finds the values of symbols in the extents of its arguments; a graph knows them otherwise. */
static bool can_be_called(describer *self, const comp_unit *unit, const rt_function_desc *function)
{
    rt_solution s[RT_MAX_SYMBOLS];
    bool told[RT_MAX_SYMBOLS] = {false};
    int n = unit->of_graph || function->n_symbols > RT_MAX_SYMBOLS ? 0 : rt_solve(function, s);

    for (int i = 0; i < n; i++)
        told[s[i].symbol] = true;
    for (int i = 0; i < function->n_symbols && !unit->of_graph; i++)
        if (i < RT_MAX_SYMBOLS && !told[i])
            return base_fail(
                self->cx, TEC_INVALID, self->p->loc,
                "'%s' could never be called: no dimension of a parameter determines the value of '%s'; "
                "expected a dimension that is '%s', or a constant multiple of it plus known symbols",
                function->name, function->symbols[i], function->symbols[i]);
    return true;
}

/* What the module says of one function, from its programs before and after lowering. */
bool comp_describe(tec_context *cx, const comp_unit *unit, const ir_program *lowered,
                   const ir_program *const *version, const char *symbol, rt_function_desc *out)
{
    describer d = {.cx = cx, .p = unit->tree, .facts = ir_facts_of_program(cx, unit->tree)};

    *out = (rt_function_desc){.name = base_strdup(cx, unit->name),
                              .symbol = symbol,
                              .origin = unit->origin ? base_strdup(cx, unit->origin) : NULL,
                              .chooser = unit->chooser,
                              .ranges = unit->ranges,
                              .n_ranges = unit->n_ranges,
                              .summary = unit->summary ? base_strdup(cx, unit->summary) : NULL};
    describe_aliases(&d, out);
    return describe_params(&d, out) && describe_facts(&d, out) && can_be_called(&d, unit, out) &&
           describe_note(&d, unit->dispatch, lowered, version, "workspace", &out->workspace) &&
           describe_note(&d, unit->dispatch, lowered, version, "thread_workspace", &out->thread_workspace) &&
           dim(&d, comp_flops(cx, unit->plain ? unit->plain : unit->tree), &out->flops) &&
           dim(&d, moved_bytes(&d), &out->bytes);
}
