/* autotune/task.c -- see task.h. */
#include "autotune/task.h"

#include "compiler/compiler.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "te/text.h"

/* What a symbol is when nobody says. */
enum { USUAL_EXTENT = 256 };

static int64_t usual_extent(const ir_facts *f, const ir_expr *symbol)
{
    ir_interval range = ir_bounds(f, symbol);
    ir_modular m = ir_modulus(f, symbol);
    int64_t n = range.max < USUAL_EXTENT ? range.max : range.min > USUAL_EXTENT ? range.min : USUAL_EXTENT;

    if (m.coefficient > 1) {
        n -= ((n - m.base) % m.coefficient + m.coefficient) % m.coefficient;
        n += n < range.min ? m.coefficient : 0;
    }
    return n;
}

static const int64_t *usual_dims(tec_context *cx, const tune_task *t)
{
    const ir_facts *facts = ir_facts_of_program(cx, t->tree);
    int64_t *dims = base_array(cx, int64_t, t->def->symbols.n);

    for (int i = 0; i < t->def->symbols.n; i++)
        dims[i] = usual_extent(facts, t->def->symbols.at[i]);
    return dims;
}

/* 0 where it depends on more than the symbols. */
static double flops_of(tec_context *cx, const tune_task *t)
{
    const ir_expr *flops = comp_flops(cx, t->tree);
    int64_t n = 0;

    for (int i = 0; i < t->def->symbols.n; i++)
        flops = ir_substitute(cx, flops, t->def->symbols.at[i], ir_int(cx, t->dims[i]));
    return ir_is_int(flops, &n) ? (double)n : 0;
}

static const char *definition_of(tec_context *cx, const tune_task *t)
{
    base_text all = {0};

    for (int i = 0; t->intrinsics && i < t->intrinsics->list.n; i++)
        base_add(cx, &all, te_intrinsic_text(cx, t->intrinsics->list.at[i]));
    base_add(cx, &all, te_text(cx, t->def));
    return base_text_str(cx, &all);
}

sched *tune_task_schedule(tec_context *cx, const tune_task *t)
{
    sched *s = sched_new(cx, t->tree, t->target);

    if (t->intrinsics)
        sched_use_intrinsics(s, t->intrinsics);
    return s;
}

/* Completes `spec`: whatever the caller left open is derived from the definition. NULL: an error, in the
 * context. */
tune_task *tune_task_new(tec_context *cx, const tune_task *spec)
{
    if (!spec->def || !spec->target)
        return NULL;
    tune_task *t = base_copy(cx, spec, sizeof *spec);

    t->name = t->name ? t->name : t->def->name;
    t->definition = t->definition ? t->definition : definition_of(cx, t);
    t->tree = t->tree ? t->tree : te_tree(cx, t->def);
    if (!t->tree)
        return NULL;
    t->task = t->task ? t->task : space_task_new(cx, t->def, NULL);
    t->space = t->space ? t->space : space_master(cx, t->tree, t->target);
    if (!t->task || !t->space)
        return NULL;
    t->default_trace = t->default_trace ? t->default_trace : "";
    t->dims = t->dims ? t->dims : usual_dims(cx, t);
    t->weight = t->weight > 0 ? t->weight : 1;
    t->flops = t->flops > 0 ? t->flops : flops_of(cx, t);
    return t;
}
