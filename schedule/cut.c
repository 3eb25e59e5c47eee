/* schedule/cut.c -- cut: one loop becomes several that follow each other.
 *
 *     for C.y in 0..10 { block C(y = C.y) }
 * =>  cut(C.y, 4)
 *     for C.y.0 in 0..4 { block C(y = C.y.0) }
 *     for C.y.1 in 0..6 { block C'2(y = C.y.1 + 4) }
 */
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* Where l belongs to a reduction, the second part goes on with what the first began. A loop over both kinds
 * of axes is refused: for some elements the second part would begin the reduction, and for others go on. The
 * site is made up for one question, about the kind of the loop; no loops stand around it. */
static const ir_stmt *without_init(sched_call *call, const ir_stmt *stmt, const ir_expr *var)
{
    if (stmt->kind == IR_BLOCK) {
        tree_site site = {.stmt = stmt, .block = stmt->block.block};

        if (!stmt->block.block->init || tree_kind_for(call->cx, &site, var) != IR_REDUCE_ITER)
            return stmt;
        if (!sched_need_reduction_only(call, &site, var))
            return NULL;
        ir_block *block = ir_block_copy(call->cx, site.block);
        block->init = NULL;
        return sched_with_block(call->cx, stmt, block);
    }
    for (int i = 0, n = tree_n_children(stmt); stmt && i < n; i++) {
        const ir_stmt *child = without_init(call, tree_child(stmt, i), var);

        stmt = child ? sched_with_child(call->cx, stmt, i, child) : NULL;
    }
    return stmt;
}

static bool any_reads(const tree_sites *all, const ir_buffer *buffer)
{
    for (int i = 0; i < all->n; i++)
        if (tree_reads(all->at[i].block, buffer))
            return true;
    return false;
}

/* Buffers that each iteration of l fills for itself and reads: the second part gets its own, so that they
 * stay private to its loops.
 *
 *     for y { P[y] = A[y];  C[y] = P[y] }  cut(y, 4)  =>  for y.0 { P.. C.. }  for y.1 { P'2 .. C.. }
 *
 * With one buffer P, both loops would use it, and it would be private to an iteration of neither. */
static const ir_program *own_buffers(sched_call *call, const ir_expr *var, ir_subst *own)
{
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const ir_program *program = call->tree;

    for (int i = 0; i < call->tree->n_buffers; i++) {
        const ir_buffer *buffer = call->tree->buffers[i];
        const char *name = buffer->name;

        if (!any_reads(&all, buffer) || !tree_private_to_iteration(&call->s->view, &all, buffer, var))
            continue;
        for (int k = 2; sched_buffer_named(program, name); k++)
            name = base_format(call->cx, "%s'%d", buffer->name, k);
        ir_buffer *copy = ir_buffer_copy(call->cx, buffer);
        copy->name = name;
        base_map_put(call->cx, &own->buffers, buffer, copy);
        program = sched_add_buffer(call->cx, program, copy);
    }
    return program;
}

/* The loops inside the parts whose iterations run at the same time still may; lanes of a reduction always
 * may. */
static bool parts_independent(sched_call *call, const tree_sites *all, const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR && stmt->loop.how != IR_SERIAL && stmt->loop.how != IR_UNROLLED) {
        bool reduces = false;

        for (int i = 0; i < all->n; i++)
            reduces = reduces || (tree_depth_under(&all->at[i], stmt->loop.var) &&
                                  tree_kind_for(call->cx, &all->at[i], stmt->loop.var) == IR_REDUCE_ITER);
        const char *reason = reduces ? NULL : tree_dependence(&call->s->view, all, stmt->loop.var);
        if (reason)
            return sched_refuse(call, "'%s' is %s, and %s", stmt->loop.var->var.name,
                                ir_how_text(stmt->loop.how), reason);
    }
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        if (!parts_independent(call, all, tree_child(stmt, i)))
            return false;
    return true;
}

/* Symbols alone have a value in a trace: loops get other names. */
static bool is_over_symbols(sched_call *call, const ir_expr *expr)
{
    base_vec vars = {0};
    int found = 0;

    ir_free_vars(call->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        for (int k = 0; k < call->tree->n_symbols; k++)
            found += call->tree->symbols[k] == vars.at[i];
    return found == vars.n;
}

/* The point is a number or an expression over symbols, proven to lie in the range of l. Where the first part
 * may be empty, a reduction could not begin in it. Gives NULL after a refusal.
 *
 *     cut(C.k, n) of sum[k](A[k]), with n = 0: nothing would set C before the second part adds to it
 */
static const ir_expr *check_point(sched_call *call, const ir_facts *facts, const ir_stmt *l)
{
    const ir_expr *point = call->arg[1].expr, *zero = ir_int(call->cx, 0);
    const char *name = l->loop.var->var.name, *text = ir_expr_text(call->cx, point);

    if (!base_dtype_same(point->dtype, BASE_I64) || !is_over_symbols(call, point))
        return sched_refuse(call, "'%s' is no integer expression over symbols", text);
    point = ir_simplify(facts, point);
    if (!ir_prove_le(facts, zero, point) || !ir_prove_le(facts, point, l->loop.extent))
        return sched_refuse(call, "it is not proven that %s lies within 0..%s, the range of '%s'", text,
                            ir_expr_text(call->cx, l->loop.extent), name);
    if (ir_is_value(point, 0) || ir_prove_equal(facts, point, l->loop.extent))
        return sched_refuse(call, "the %s part of '%s' would be empty",
                            ir_is_value(point, 0) ? "first" : "second", name);
    return point;
}

/* What holds in a part of l with this variable and extent. */
static void know_part(sched_call *call, ir_facts *facts, const ir_stmt *l, const ir_expr *var,
                      const ir_expr *extent)
{
    const ir_stmt *part = ir_for(call->cx, var, ir_int(call->cx, 0), extent, IR_SERIAL, l->loop.body);

    tree_know_loop(facts, var, extent, tree_may_be_empty(call->cx, part));
}

/* cut(l, point): l becomes two loops, one after the other. The second one's blocks and inner loops get fresh
 * names. The point must be proven to lie in the range of the loop, and no part may be known to be empty. The
 * second part is a duplicate with fresh names, whose reductions go on without an init. */
const ir_program *sched_do_cut(sched_call *call)
{
    sched_path at;

    if (!sched_need_loop(call, call->arg[0].name, &at) || !sched_need_serial(call, sched_end(&at)))
        return NULL;
    const ir_stmt *l = sched_end(&at);
    const ir_facts *facts = sched_facts_at(call->s, &at, at.n - 1);
    const ir_expr *point = check_point(call, facts, l), *zero = ir_int(call->cx, 0);
    const char *name = l->loop.var->var.name;
    if (!point)
        return NULL;
    const ir_expr *var[2], *rest = ir_simplify(facts, ir_sub(call->cx, l->loop.extent, point));
    for (int i = 0; i < 2; i++) {
        var[i] =
            ir_var(call->cx, sched_fresh_name(call, NULL, base_format(call->cx, "%s.%d", name, i)), BASE_I64);
        base_push(call->cx, &call->results, var[i]->var.name);
    }
    const ir_stmt *second = without_init(call, l->loop.body, l->loop.var);
    if (!second)
        return NULL;
    if (second != l->loop.body && !ir_prove_le(facts, ir_int(call->cx, 1), point))
        return sched_refuse(call,
                            "'%s' belongs to a reduction, and it is not proven that %s is at least 1: where "
                            "the first part is empty, nothing would begin the reduction",
                            name, ir_expr_text(call->cx, point));
    ir_facts *in = ir_facts_new(call->cx, facts), *in2 = ir_facts_new(call->cx, facts);
    know_part(call, in, l, var[0], point);
    know_part(call, in2, l, var[1], rest);
    ir_subst own = {0};
    const ir_program *program = own_buffers(call, l->loop.var, &own);
    const ir_expr *start =
        BASE_PLANT_ON(call->cx, cut_point) ? ir_sub(call->cx, point, ir_int(call->cx, 1)) : point;
    second =
        sched_rebind(in2, sched_duplicate(call, second), l->loop.var, ir_add(call->cx, var[1], start), NULL);
    second = ir_apply_stmt(call->cx, &own, second);
    const ir_stmt *first = sched_rebind(in, l->loop.body, l->loop.var, var[0], NULL);
    const ir_stmt *both = ir_seq2(call->cx, ir_for(call->cx, var[0], zero, point, IR_SERIAL, first),
                                  ir_for(call->cx, var[1], zero, rest, IR_SERIAL, second));
    ir_program *after = ir_program_copy(call->cx, program);
    after->body = sched_rebuild(call->cx, &at, at.n - 1, both);
    tree_sites all = tree_all_sites(call->cx, after->body);
    return parts_independent(call, &all, both) ? after : NULL;
}
