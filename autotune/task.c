/* autotune/task.c -- see task.h. */
#include "autotune/task.h"

#include "compiler/compiler.h"
#include "ir/reason/facts.h"
#include "ir/walk.h"
#include "te/text.h"

/* What a symbol is when nobody says. */
enum { USUAL_EXTENT = 256 };

static int64_t usual_extent(const ir_facts *facts, const ir_expr *symbol)
{
    ir_interval range = ir_bounds(facts, symbol);
    ir_modular m = ir_modulus(facts, symbol);
    int64_t n = range.max < USUAL_EXTENT ? range.max : range.min > USUAL_EXTENT ? range.min : USUAL_EXTENT;

    if (m.coefficient > 1) {
        n -= ((n - m.base) % m.coefficient + m.coefficient) % m.coefficient;
        n += n < range.min ? m.coefficient : 0;
    }
    return n;
}

static const int64_t *usual_dims(tec_context *cx, const tune_task *task)
{
    const ir_facts *facts = ir_facts_of_program(cx, task->tree);
    int64_t *dims = base_array(cx, int64_t, task->def->symbols.n);

    for (int i = 0; i < task->def->symbols.n; i++)
        dims[i] = usual_extent(facts, task->def->symbols.at[i]);
    return dims;
}

/* 0 where it depends on more than the symbols. */
static double flops_of(tec_context *cx, const tune_task *task)
{
    const ir_expr *flops = comp_flops(cx, task->tree);
    int64_t n = 0;

    for (int i = 0; i < task->def->symbols.n; i++)
        flops = ir_substitute(cx, flops, task->def->symbols.at[i], ir_int(cx, task->dims[i]));
    return ir_is_int(flops, &n) ? (double)n : 0;
}

static const char *definition_of(tec_context *cx, const tune_task *task)
{
    base_text all = {0};

    for (int i = 0; task->intrinsics && i < task->intrinsics->list.n; i++)
        base_add(cx, &all, te_intrinsic_text(cx, task->intrinsics->list.at[i]));
    base_add(cx, &all, te_text(cx, task->def));
    return base_text_str(cx, &all);
}

sched *tune_task_schedule(tec_context *cx, const tune_task *task)
{
    sched *s = sched_new(cx, task->tree, task->target);

    if (task->intrinsics)
        sched_use_intrinsics(s, task->intrinsics);
    return s;
}

/* Completes `spec`: whatever the caller left open is derived from the definition. NULL: an error, in the
 * context. */
tune_task *tune_task_new(tec_context *cx, const tune_task *spec)
{
    if (!spec->def || !spec->target)
        return NULL;
    tune_task *task = base_copy(cx, spec, sizeof *spec);

    task->name = task->name ? task->name : task->def->name;
    task->definition = task->definition ? task->definition : definition_of(cx, task);
    task->tree = task->tree ? task->tree : te_tree(cx, task->def);
    if (!task->tree)
        return NULL;
    task->task = task->task ? task->task : space_task_new(cx, task->def, NULL);
    task->space = task->space ? task->space : space_master(cx, task->tree, task->target);
    if (!task->task || !task->space)
        return NULL;
    task->default_trace = task->default_trace ? task->default_trace : "";
    task->dims = task->dims ? task->dims : usual_dims(cx, task);
    task->weight = task->weight > 0 ? task->weight : 1;
    task->flops = task->flops > 0 ? task->flops : flops_of(cx, task);
    return task;
}
