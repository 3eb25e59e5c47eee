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

static bool dim(describer *d, const ir_expr *e, rt_dim *out)
{
    return comp_dim(d->cx, ir_simplify(d->facts, e), d->p->symbols, d->p->n_symbols, out);
}

static bool dims(describer *d, const ir_expr *const *e, int n, const rt_dim **out)
{
    rt_dim *all = base_array(d->cx, rt_dim, n);

    *out = all;
    for (int i = 0; i < n; i++)
        if (!dim(d, e[i], &all[i]))
            return false;
    return true;
}

/* Shapes as dimension code over the function's symbols, which the runtime evaluates and checks for each call.
 */
static bool describe_buffer(describer *d, const ir_param *p, rt_param_desc *out)
{
    const ir_buffer *b = p->buffer;

    *out = (rt_param_desc){.name = base_strdup(d->cx, b->name),
                           .kind = RT_PARAM_BUFFER,
                           .dtype = b->dtype,
                           .is_output = p->output,
                           .rank = b->n,
                           .alignment = b->align};
    if (b->n > RT_MAX_RANK) {
        base_fail(d->cx, TEC_UNSUPPORTED, b->loc, "'%s' has %d dimensions; a parameter has at most %d",
                  b->name, b->n, RT_MAX_RANK);
        return false;
    }
    return dims(d, b->shape, b->n, &out->shape) && (!b->strides || dims(d, b->strides, b->n, &out->strides));
}

/* Parameters in the order in which callers pass them. */
static bool describe_params(describer *d, rt_function_desc *f)
{
    rt_param_desc *params = base_array(d->cx, rt_param_desc, d->p->n_params);

    f->n_params = d->p->n_params;
    f->params = params;
    for (int i = 0; i < d->p->n_params; i++) {
        const ir_param *p = &d->p->params[i];

        if (!p->buffer)
            params[i] = (rt_param_desc){.name = base_strdup(d->cx, p->scalar->var.name),
                                        .kind = RT_PARAM_SCALAR,
                                        .dtype = p->scalar->dtype};
        else if (!describe_buffer(d, p, &params[i]))
            return false;
    }
    return true;
}

static void describe_aliases(describer *d, rt_function_desc *f)
{
    int n = d->p->n_params;
    rt_alias_desc *pairs = base_array(d->cx, rt_alias_desc, n * n / 2 + 1);

    f->aliases = pairs;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            const ir_buffer *x = d->p->params[a].buffer, *y = d->p->params[b].buffer;

            if (x && y && x->alias && x->alias == y->alias)
                pairs[f->n_aliases++] = (rt_alias_desc){a, b};
        }
}

static const char *fact_text(const describer *d, int i)
{
    const char *text = ir_expr_text(d->cx, d->p->facts[i]), *reason = d->p->reasons ? d->p->reasons[i] : NULL;

    return reason ? base_format(d->cx, "%s (%s)", text, reason) : text;
}

/* Facts become conditions that the runtime checks before a call; each has a text for the message. */
static bool describe_facts(describer *d, rt_function_desc *f)
{
    const char **names = base_array(d->cx, const char *, d->p->n_symbols);
    rt_fact_desc *facts = base_array(d->cx, rt_fact_desc, d->p->n_facts);

    for (int i = 0; i < d->p->n_symbols; i++)
        names[i] = base_strdup(d->cx, d->p->symbols[i]->var.name);
    f->symbols = names;
    f->n_symbols = d->p->n_symbols;
    f->facts = facts;
    f->n_facts = d->p->n_facts;
    for (int i = 0; i < d->p->n_facts; i++) {
        facts[i].text = fact_text(d, i);
        if (!comp_dim(d->cx, d->p->facts[i], d->p->symbols, d->p->n_symbols, &facts[i].condition))
            return false;
    }
    return true;
}

/* What moves at least: every buffer once. */
static const ir_expr *moved_bytes(describer *d)
{
    const ir_expr *sum = ir_int(d->cx, 0);

    for (int i = 0; i < d->p->n_params; i++) {
        const ir_buffer *b = d->p->params[i].buffer;
        const ir_expr *size = b ? ir_int(d->cx, base_dtype_bytes(b->dtype)) : NULL;

        for (int j = 0; b && j < b->n; j++)
            size = ir_mul(d->cx, size, b->shape[j]);
        if (size)
            sum = ir_add(d->cx, sum, size);
    }
    return sum;
}

/* The most that the unit's program or one of its versions asks for, over the unit's symbols. */
static bool describe_note(describer *d, const comp_dispatch *versions, const ir_program *lowered,
                          const ir_program *const *version, const char *key, rt_dim *out)
{
    const ir_expr *most = ir_note_get(lowered->notes, key);

    for (int i = 0; versions && i < versions->n; i++) {
        const ir_expr *e = ir_note_get(version[i]->notes, key),
                      *quotient = versions->version[i].tree->symbols[versions->symbol];

        e = e ? ir_substitute(
                    d->cx, e, quotient,
                    ir_floordiv(d->cx, d->p->symbols[versions->symbol], ir_int(d->cx, versions->modulus)))
              : NULL;
        most = e && most ? ir_max(d->cx, most, e) : e ? e : most;
    }
    *out = (rt_dim){0};
    return !most || dim(d, most, out);
}

/* A call finds the values of symbols in the extents of its arguments; a graph knows them otherwise. */
static bool can_be_called(describer *d, const comp_unit *u, const rt_function_desc *f)
{
    rt_solution s[RT_MAX_SYMBOLS];
    bool told[RT_MAX_SYMBOLS] = {false};
    int n = u->of_graph || f->n_symbols > RT_MAX_SYMBOLS ? 0 : rt_solve(f, s);

    for (int i = 0; i < n; i++)
        told[s[i].symbol] = true;
    for (int i = 0; i < f->n_symbols && !u->of_graph; i++)
        if (i < RT_MAX_SYMBOLS && !told[i])
            return base_fail(
                d->cx, TEC_INVALID, d->p->loc,
                "'%s' could never be called: no dimension of a parameter tells the value of '%s'; "
                "one that is '%s', or a constant multiple of it plus what others tell, would",
                f->name, f->symbols[i], f->symbols[i]);
    return true;
}

bool comp_describe(tec_context *cx, const comp_unit *u, const ir_program *lowered,
                   const ir_program *const *version, const char *symbol, rt_function_desc *out)
{
    describer d = {.cx = cx, .p = u->tree, .facts = ir_facts_of_program(cx, u->tree)};

    *out = (rt_function_desc){.name = base_strdup(cx, u->name),
                              .symbol = symbol,
                              .origin = u->origin ? base_strdup(cx, u->origin) : NULL};
    describe_aliases(&d, out);
    return describe_params(&d, out) && describe_facts(&d, out) && can_be_called(&d, u, out) &&
           describe_note(&d, u->dispatch, lowered, version, "workspace", &out->workspace) &&
           describe_note(&d, u->dispatch, lowered, version, "thread_workspace", &out->thread_workspace) &&
           dim(&d, comp_flops(cx, u->tree), &out->flops) && dim(&d, moved_bytes(&d), &out->bytes);
}
