/* schedule/move.c -- a block on its way to another place (place.h): what compute_at, compute_root and
 * reverse_compute_at ask before it leaves, and the nest that it gets there.
 *
 *     for P.y in 0..18 { block P(y = P.y) }                  sched_move_carry_out, with m.min = C.y.0*8,
 *     for C.y.0 { for C.y.1 { .. } }                   =>    m.extent = 10
 *
 *     for C.y.0 { for P.y in 0..10 { block P(y = C.y.0*8 + P.y) where C.y.0*8 + P.y < 18 }
 *                 for C.y.1 { .. } }
 *
 * The loops that held nothing but the block are gone from its old place. The new loops have the names of the
 * old ones. The predicate keeps the block in its domain where the new loops reach beyond its end.
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/place.h"
#include "schedule/rewrite.h"

/* A scan variable is no loop of the block's own: it keeps its binding, and the block stays in the step. */
void sched_move_whole_domain(sched_move *move)
{
    const ir_block *b = move->site->block;

    for (int i = 0; i < b->n_iters; i++) {
        move->min[i] = b->iters[i].kind == IR_SCAN ? move->site->stmt->block.bind[i] : ir_int(move->c->cx, 0);
        move->extent[i] = b->iters[i].extent;
    }
}

/* `min` and `extent` begin as the whole domain; compute_at and reverse_compute_at narrow them. */
bool sched_move_start(sched_call *call, sched_move *move, const char *block, const char *loop)
{
    *move = (sched_move){.c = call, .loop_name = loop};
    if (!sched_need_block(call, block, &move->from) || (loop && !sched_need_loop(call, loop, &move->to)))
        return false;
    move->loop = loop ? sched_end(&move->to)->loop.var : NULL;
    move->all = tree_all_sites(call->cx, call->tree->body);
    move->site = tree_site_named(&move->all, block);
    move->step = tree_step_depth(&call->s->view, move->site);
    move->min = base_array(call->cx, const ir_expr *, move->site->block->n_iters);
    move->extent = base_array(call->cx, const ir_expr *, move->site->block->n_iters);
    sched_move_whole_domain(move);
    return true;
}

bool sched_move_under(const sched_move *move, const tree_site *site)
{
    return !move->loop || tree_depth_under(site, move->loop);
}

int sched_move_fixed_loops(const sched_move *move, const tree_site *site)
{
    return move->loop ? tree_depth_under(site, move->loop) : 0;
}

static bool encloses_target(const sched_move *move, const ir_expr *var)
{
    for (int i = 0; i < move->to.n; i++)
        if (move->to.link[i].stmt->kind == IR_FOR && move->to.link[i].stmt->loop.var == var)
            return true;
    return false;
}

/* ---- checks ---- */

/* The loops around the target that `site` and the block to be moved have in common: neither crosses their
 * iterations. An exchange between iterations of such a loop is not touched by the move. */
static int kept_loops(const sched_move *move, const tree_site *site)
{
    int n = tree_common_loops(site, move->site);

    while (n > 0 && !encloses_target(move, move->site->loop[n - 1]->loop.var))
        n--;
    return n;
}

bool sched_move_earlier_only(const sched_move *move, const ir_region *access, const tree_site *writer)
{
    const ir_region *write = tree_access(writer->block->writes, writer->block->n_writes, access->buffer);
    int kept = kept_loops(move, writer);

    return kept && writer->order > move->site->order &&
           tree_accesses_disjoint(&move->c->s->view, move->site, access, writer, write, kept);
}

/* The same step: writer lies under the loops that count the steps of the block, if it has any. */
bool sched_move_in_step(const sched_move *move, const tree_site *writer)
{
    return tree_common_loops(writer, move->site) >= move->step;
}

/* Moving means running in other iterations of other loops, perhaps more often. A block under an `if` would
 * lose its condition. A second writer in the step would write before or after the moved block, where the
 * order of the two decided the value. */
bool sched_move_allowed(sched_move *move)
{
    const ir_block *block = move->site->block;
    const char *reason = tree_not_repeatable(&move->c->s->view, move->site);

    if (reason)
        return sched_refuse(move->c, "'%s' cannot move: %s", block->name, reason);
    if (move->step && !encloses_target(move, move->site->loop[move->step - 1]->loop.var))
        return sched_refuse(move->c, "'%s' stays in its scan loop '%s'", block->name,
                            move->site->loop[move->step - 1]->loop.var->var.name);
    if (move->site->branches)
        return sched_refuse(move->c, "'%s' stands under a condition", block->name);
    for (int i = 0; i < move->all.n; i++) {
        const tree_site *other = &move->all.at[i];

        for (int j = 0; other != move->site && sched_move_in_step(move, other) && j < block->n_writes; j++)
            if (tree_writes(other->block, block->writes[j].buffer))
                return sched_refuse(move->c, "'%s' is not the only writer of '%s': '%s' writes it too",
                                    block->name, block->writes[j].buffer->name, other->block->name);
    }
    return true;
}

/* Moving a block that stores an element several times may change which of the stores is the last one before
 * a reader. */
bool sched_move_writes_once(sched_move *move)
{
    const ir_block *block = move->site->block;

    for (int j = 0; j < block->n_writes; j++)
        if (!tree_writes_once(&move->c->s->view, block, &block->writes[j]))
            return sched_refuse(move->c,
                                "cannot prove that only one instance of '%s' writes each element of '%s': "
                                "readers would see the value of the last one",
                                block->name, block->writes[j].buffer->name);
    return true;
}

static const ir_stmt *target_body(const sched_move *move, const ir_stmt *root)
{
    sched_path p;

    if (!move->loop)
        return root;
    return sched_find_var(move->c->cx, root, move->loop, &p) ? sched_end(&p)->loop.body : NULL;
}

/* Everything that the block reads is complete before child `index` of the target's (old) body, and is not
 * overwritten on the way. Three dangers, in the order of the checks: a writer that comes after the block
 * today would overwrite the input on the way; the block would leave a loop that computes its input; the
 * writer lies in the target's body, at the place where the block shall go, or behind. */
bool sched_move_inputs_complete(sched_move *move, int index)
{
    const ir_stmt *body = target_body(move, move->c->tree->body);
    const ir_block *block = move->site->block;

    for (int i = 0; i < move->all.n; i++) {
        const tree_site *w = &move->all.at[i];

        for (int j = 0; w != move->site && j < block->n_reads; j++) {
            const ir_buffer *input = block->reads[j].buffer;

            if (!tree_writes(w->block, input) || sched_move_earlier_only(move, &block->reads[j], w))
                continue;
            if (w->order > move->site->order)
                return sched_refuse(move->c, "'%s' overwrites '%s', which '%s' reads", w->block->name,
                                    input->name, block->name);
            for (int k = 0; k < w->n_loops; k++) {
                const ir_expr *var = w->loop[k]->loop.var;
                if (tree_depth_under(move->site, var) && !encloses_target(move, var))
                    return sched_refuse(move->c,
                                        "'%s' would leave loop '%s', in which its input '%s' is computed",
                                        block->name, var->var.name, input->name);
            }
            if (sched_move_under(move, w) && sched_child_with(body, w->block->name) >= index)
                return sched_refuse(
                    move->c,
                    "'%s', which '%s' reads, is not complete before the body of '%s': '%s' writes it there",
                    input->name, block->name, move->loop ? move->loop_name : "the program", w->block->name);
        }
    }
    return true;
}

/* ---- the new nest ---- */

static const ir_stmt *thread_loop(const sched_move *move, int i)
{
    return move->threads.at[i];
}

/* Whether another loop around loop i of those over threads runs over the same axis: a tile that threads fetch
 * together binds its own loops to their axes.
 *
 *     for threadIdx.x { ..; for ax in threadIdx.x { fill } ..}    the block moves into the fill's loop
 *
 * One thread of each axis does the work; which one is said once, by the outermost loop over the axis. */
static bool is_bound_outside(const sched_move *move, int i)
{
    for (int j = 0; j < i; j++)
        if (thread_loop(move, j)->loop.how == thread_loop(move, i)->loop.how)
            return true;
    return false;
}

/* What the loops of the new nest are: for each iteration variable of the block its loop (NULL: none) and what
 * it is bound to; for each loop of threads around, a loop of one iteration (NULL: none). */
typedef struct {
    const ir_expr **var, **bind, **alone;
    ir_facts *inside;
} nest_loops;

/* Fresh names are asked of the tree without the block (c->tree is exchanged meanwhile), so that a block which
 * moves back and forth has the same names each time. `root` is that tree. */
static nest_loops name_loops(sched_move *move, const ir_facts *facts, const ir_stmt *root)
{
    const ir_block *block = move->site->block;
    tec_context *cx = move->c->cx;
    nest_loops nest = {.var = base_array(cx, const ir_expr *, block->n_iters),
                       .bind = base_array(cx, const ir_expr *, block->n_iters),
                       .alone = base_array(cx, const ir_expr *, move->threads.n),
                       .inside = ir_facts_new(cx, facts)};
    const ir_program *before = move->c->tree;
    ir_program rest = *before;

    rest.body = root;
    move->c->tree = &rest;
    for (int i = 0; i < block->n_iters; i++) {
        const char *name = base_format(cx, "%s.%s", block->name, block->iters[i].var->var.name);

        nest.bind[i] = move->min[i];
        if (block->iters[i].kind == IR_SCAN)
            continue;
        nest.var[i] = ir_var(cx, sched_fresh_name(move->c, NULL, name), BASE_I64);
        nest.bind[i] = ir_add(cx, move->min[i], nest.var[i]);
        tree_know_loop(nest.inside, nest.var[i], move->extent[i],
                       block->init && block->iters[i].kind == IR_REDUCE_ITER);
    }
    for (int i = 0; i < move->threads.n; i++)
        if (!is_bound_outside(move, i)) {
            const char *axis = ir_how_text(thread_loop(move, i)->loop.how) + strlen("threadIdx.");
            const char *name = base_format(cx, "%s.first.%s", block->name, axis);

            nest.alone[i] = ir_var(cx, sched_fresh_name(move->c, NULL, name), BASE_I64);
        }
    move->c->tree = before;
    return nest;
}

/* Where the block runs in its new loops: within its domain, and under the guards that it takes over. */
static const ir_expr *nest_guard(const sched_move *move, const nest_loops *nest)
{
    const ir_block *block = move->site->block;
    const ir_expr *where = NULL;

    for (int i = 0; i < block->n_iters; i++)
        if (nest->bind[i] != nest->var[i] || move->extent[i] != block->iters[i].extent)
            where = sched_domain_guard(nest->inside, where, nest->bind[i], block->iters[i].extent);
    for (int i = 0; i < move->guards.n; i++)
        where = ir_all(move->c->cx, where, move->guards.at[i]);
    for (int i = 0; i < move->last_steps.n; i++)
        where = ir_all(move->c->cx, where, move->last_steps.at[i]);
    return where;
}

/* The block under new loops over min .. min+extent-1; facts holds at the target. `root`: the tree that
 * receives it. Loops of threads get a loop of one iteration: one thread of each axis does the work, until
 * loops of the nest are bound to the axis (bind.c). */
static const ir_stmt *new_nest(sched_move *move, const ir_facts *facts, const ir_stmt *root)
{
    const ir_block *block = move->site->block;
    tec_context *cx = move->c->cx;
    nest_loops nest = name_loops(move, facts, root);
    const ir_stmt *stmt = ir_block_stmt(cx, block, nest.bind, nest_guard(move, &nest));
    const ir_expr *zero = ir_int(cx, 0), *one = ir_int(cx, 1);

    for (int i = block->n_iters - 1; i >= 0; i--) {
        bool lost = i == 0 && move->loop && BASE_PLANT_ON(cx, compute_at_extent);

        if (nest.var[i])
            stmt = ir_for(cx, nest.var[i], zero, lost ? ir_sub(cx, move->extent[i], one) : move->extent[i],
                          IR_SERIAL, stmt);
    }
    for (int i = move->threads.n - 1; i >= 0; i--)
        if (nest.alone[i])
            stmt = ir_for(cx, nest.alone[i], zero, one, thread_loop(move, i)->loop.how, stmt);
    return stmt;
}

/* At the root the nest goes before the child that holds the neighbour. Without a neighbour, since nobody
 * reads the block, it goes to the end. */
const ir_stmt *sched_move_carry_out(sched_move *move, const char *neighbour, bool behind)
{
    tec_context *cx = move->c->cx;
    const ir_stmt *rest = sched_remove(cx, &move->from), *body, *nest;
    sched_path to;

    if (!move->loop) {
        int index = neighbour              ? sched_child_with(rest, neighbour) + behind
                    : rest->kind == IR_SEQ ? rest->seq.n
                                           : 1;

        nest = new_nest(move, move->c->s->view.facts, rest);
        return sched_insert(cx, rest, index, nest);
    }
    if (!sched_find_var(cx, rest, move->loop, &to))
        return NULL;
    nest = new_nest(move, sched_facts_at(move->c->s, &to, to.n), rest);
    body = sched_end(&to)->loop.body;
    body = sched_insert(cx, body, sched_child_with(body, neighbour) + behind, nest);
    return sched_rebuild(cx, &to, to.n - 1, body ? sched_with_child(cx, sched_end(&to), 0, body) : NULL);
}

/* A bound over anything else would mention a variable that is not defined where the new loops stand.
 *
 *     for i { for j { reader } } with the block computed at i: a bound with i is in reach, one with j is not
 */
bool sched_move_in_reach(const sched_move *move, const ir_expr *expr)
{
    const ir_program *program = move->c->tree;
    base_vec vars = {0};

    if (expr->has & IR_HAS_LOAD)
        return false;
    ir_free_vars(move->c->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++) {
        bool known = encloses_target(move, vars.at[i]);

        for (int j = 0; j < program->n_symbols; j++)
            known = known || program->symbols[j] == vars.at[i];
        for (int j = 0; j < program->n_params; j++)
            known = known || program->params[j].scalar == vars.at[i];
        if (!known)
            return false;
    }
    return true;
}
