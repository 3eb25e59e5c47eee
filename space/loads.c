/* space/loads.c -- what a block reads, for the analysis of stages (space/loads.h). */
#include "space/loads.h"

#include <string.h>

const ir_iter *space_iter_named(const ir_block *block, const char *name)
{
    for (int i = 0; i < block->n_iters; i++)
        if (strcmp(block->iters[i].var->var.name, name) == 0)
            return &block->iters[i];
    return NULL;
}

static bool list_load(ir_walk *walk, const ir_expr *expr)
{
    space_load_list *l = (space_load_list *)walk;

    if (expr->op == IR_LOAD && expr->load.n > 0)
        base_push(walk->cx, &l->found, (void *)(uintptr_t)expr);
    return true;
}

space_load_list space_loads_of(tec_context *cx, const ir_block *block)
{
    space_load_list l = {.w = {.expr = list_load, .cx = cx}};

    ir_walk_stmt(&l.w, block->body);
    l.load = (const ir_expr *const *)l.found.at;
    l.n = l.found.n;
    return l;
}

const ir_expr *space_only_load(tec_context *cx, const ir_block *block, const ir_buffer *buffer)
{
    space_load_list l = space_loads_of(cx, block);
    const ir_expr *found = NULL;

    for (int i = 0; i < l.n; i++)
        if (l.load[i]->load.buffer == buffer) {
            if (found)
                return NULL;
            found = l.load[i];
        }
    return found;
}

bool space_load_uses(tec_context *cx, const ir_expr *load, const ir_expr *var)
{
    for (int i = 0; i < load->load.n; i++)
        if (ir_uses_var(cx, load->load.index[i], var))
            return true;
    return false;
}
