/* schedule/state.c -- making and forking schedules, their error slot, and looking at the tree. */
#include <string.h>

#include "ir/reason/facts.h"
#include "schedule/state.h"
#include "tree/touch.h"

/* `tree` is shared and never changed. Facts are those of the program's symbols; what a place in the tree
 * knows beside them is added for each question (sched_facts_at). */
sched *sched_new(tec_context *cx, const ir_program *tree, const target *machine)
{
    if (!tree)
        return NULL;
    sched *s = base_new(cx, sched);

    s->view.cx = cx;
    s->view.program = tree;
    s->plain = tree;
    s->target = machine;
    s->view.facts = ir_facts_of_program(cx, tree);
    return s;
}

/* Steps and tree are immutable and shared; the facts belong to the new context. */
sched *sched_fork(tec_context *cx, const sched *schedule)
{
    if (!schedule)
        return NULL;
    sched *f = base_copy(cx, schedule, sizeof *schedule);

    f->view.cx = cx;
    f->view.facts = ir_facts_of_program(cx, schedule->view.program);
    f->steps = (base_vec){0};
    for (int i = 0; i < schedule->steps.n; i++)
        base_push(cx, &f->steps, schedule->steps.at[i]);
    return f;
}

const ir_program *sched_tree(const sched *schedule)
{
    return schedule ? schedule->view.program : NULL;
}
const ir_program *sched_plain(const sched *schedule)
{
    return schedule ? schedule->plain : NULL;
}
tec_context *sched_context(const sched *schedule)
{
    return schedule->view.cx;
}
int sched_n_steps(const sched *schedule)
{
    return schedule->steps.n;
}
const sched_step *sched_step_at(const sched *schedule, int i)
{
    return schedule->steps.at[i];
}
const target *sched_target(const sched *schedule)
{
    return schedule->target;
}
const te_def *sched_def(const sched *schedule)
{
    return schedule->def;
}
void sched_set_def(sched *schedule, const te_def *def)
{
    schedule->def = def;
}
const te_intrinsics *sched_intrinsics(const sched *schedule)
{
    return schedule->intrinsics;
}
void sched_use_intrinsics(sched *schedule, const te_intrinsics *table)
{
    schedule->intrinsics = table;
}
bool sched_failed(const sched *schedule)
{
    return !schedule || schedule->error;
}
const char *sched_error(const sched *schedule)
{
    return schedule ? schedule->error : NULL;
}
void sched_clear(sched *schedule)
{
    schedule->error = NULL;
}

/* For rules of templates and tuners that are no step: the error reads like a refusal of the schedule. The
 * first reason stays: what follows from a refusal would hide it. */
bool sched_reject(sched *schedule, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!schedule->error)
        schedule->error = base_vformat(schedule->view.cx, fmt, args);
    va_end(args);
    return false;
}

/* The loop of that name in the tree of this moment; NULL: there is none. The node is not part of the tree any
 * more after the next step. */
const ir_stmt *sched_loop(const sched *schedule, const char *loop)
{
    sched_path p;

    return loop && sched_find_loop(schedule->view.cx, schedule->view.program->body, loop, &p) ? sched_end(&p)
                                                                                              : NULL;
}

/* As sched_loop: the statement, whose `block` holds what is written and whose `bind` says where. */
const ir_stmt *sched_block(const sched *schedule, const char *block)
{
    sched_path p;

    return block && sched_find_block(schedule->view.cx, schedule->view.program->body, block, &p)
               ? sched_end(&p)
               : NULL;
}

/* A copy of the list that stays as it is when the schedule goes on. */
static int give(const sched *schedule, const base_vec *names, const char ***out)
{
    *out = base_copy(schedule->view.cx, names->at, (size_t)names->n * sizeof *names->at);
    return names->n;
}

/* The names of the loops around the block, outermost first; none where there is no such block. Lets,
 * conditions and allocations between them are left out. */
int sched_loops_of(const sched *schedule, const char *block, const char ***names)
{
    sched_path p;
    base_vec all = {0};

    if (block && sched_find_block(schedule->view.cx, schedule->view.program->body, block, &p))
        for (int i = 0; i < p.n; i++)
            if (p.link[i].stmt->kind == IR_FOR)
                base_push(schedule->view.cx, &all, p.link[i].stmt->loop.var->var.name);
    return give(schedule, &all, names);
}

/* In the order in which they run. */
int sched_blocks(const sched *schedule, const char ***names)
{
    tree_sites sites = tree_all_sites(schedule->view.cx, schedule->view.program->body);
    base_vec all = {0};

    for (int i = 0; i < sites.n; i++)
        base_push(schedule->view.cx, &all, sites.at[i].block->name);
    return give(schedule, &all, names);
}

/* The first one in the order of execution. */
const char *sched_block_with_role(const sched *schedule, ir_role role)
{
    tree_sites sites = tree_all_sites(schedule->view.cx, schedule->view.program->body);

    for (int i = 0; i < sites.n; i++)
        if (sites.at[i].block->role == role)
            return sites.at[i].block->name;
    return NULL;
}

/* False where the extent is no number, or the loop does not exist; *extent is not touched then. */
bool sched_extent(const sched *schedule, const char *loop, int64_t *extent)
{
    const ir_stmt *l = sched_loop(schedule, loop);

    return l && ir_is_int(l->loop.extent, extent);
}

/* Where several blocks below the loop differ, the kind that restricts most is given: the order of the enum.
 * In
 *
 *     for y { block C(y = y)  block S(i reduce = y) }
 *
 * y is spatial for C and a reduction for S, so it counts as a reduction: what is allowed with it is allowed
 * for both. */
ir_iter_kind sched_loop_kind(const sched *schedule, const char *loop)
{
    const ir_stmt *l = sched_loop(schedule, loop);
    ir_iter_kind kind = IR_SPATIAL;

    if (!l)
        return kind;
    tree_sites below = tree_all_sites(schedule->view.cx, l->loop.body);
    for (int i = 0; i < below.n; i++) {
        ir_iter_kind k = tree_kind_for(schedule->view.cx, &below.at[i], l->loop.var);
        kind = k > kind ? k : kind;
    }
    return kind;
}

/* Names of the blocks that read what the named one writes, in order of execution, each once. The array
 * belongs to the schedule's context. */
int sched_readers_of(const sched *schedule, const char *block, const char ***blocks)
{
    tree_sites sites = tree_all_sites(schedule->view.cx, schedule->view.program->body);
    const tree_site *p = block ? tree_site_named(&sites, block) : NULL;
    base_vec all = {0};

    for (int i = 0; p && i < sites.n; i++)
        for (int j = 0; j < p->block->n_writes; j++)
            if (&sites.at[i] != p && tree_reads(sites.at[i].block, p->block->writes[j].buffer)) {
                base_push(schedule->view.cx, &all, sites.at[i].block->name);
                break;
            }
    return give(schedule, &all, blocks);
}

/* The same in the other direction: the blocks that write what the named one reads. */
int sched_producers_of(const sched *schedule, const char *block, const char ***blocks)
{
    tree_sites sites = tree_all_sites(schedule->view.cx, schedule->view.program->body);
    const tree_site *q = block ? tree_site_named(&sites, block) : NULL;
    base_vec all = {0};

    for (int i = 0; q && i < sites.n; i++)
        for (int j = 0; j < q->block->n_reads; j++)
            if (&sites.at[i] != q && tree_writes(sites.at[i].block, q->block->reads[j].buffer)) {
                base_push(schedule->view.cx, &all, sites.at[i].block->name);
                break;
            }
    return give(schedule, &all, blocks);
}
