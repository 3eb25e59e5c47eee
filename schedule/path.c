/* schedule/path.c -- finding loops and blocks by name, and what is known where they stand.
 *
 * Trees are small (tens of nodes), so a search walks them; no index has to be kept in step with the rewrites.
 * Children are numbered in order of execution.
 *
 * A rewrite never changes a node. It makes a new node at the end of a path, and new copies of the nodes above
 * it up to the root; everything beside the path is shared by the old tree and the new one:
 *
 *     seq [ for y { block C }, for x { block D } ]      path to C: seq, child 0; for y, child 0; block C
 *
 *     sched_rebuild(path, 2, block C')  =>  seq' [ for y' { block C' }, for x { block D } ]
 *
 * So a refused step has nothing to undo, and a path is only good for the tree that it was found in: after a
 * rewrite the nodes of the path are searched again by name or variable.
 */
#include <string.h>

#include "ir/reason/facts.h"
#include "schedule/rewrite.h"

/* The one form in which an empty statement stands in a tree. */
bool sched_is_nothing(const ir_stmt *stmt)
{
    return stmt->kind == IR_SEQ && stmt->seq.n == 0;
}

/* Through the constructor, which flattens: a child that is a sequence itself is opened, an empty one
 * disappears. */
static const ir_stmt *replace_in_seq(tec_context *cx, const ir_stmt *statement, int i, const ir_stmt *child)
{
    const ir_stmt **stmt = base_array(cx, const ir_stmt *, statement->seq.n);

    for (int j = 0; j < statement->seq.n; j++)
        stmt[j] = j == i ? child : statement->seq.stmt[j];
    return ir_seq(cx, stmt, statement->seq.n);
}

/* Shares stmt where nothing changes. A loop, let, allocation or attribute around an empty sequence does
 * nothing and becomes the empty sequence itself, so removing the last block of a nest removes the nest. An
 * `if` stays: its other branch may do something. */
const ir_stmt *sched_with_child(tec_context *cx, const ir_stmt *stmt, int index, const ir_stmt *child)
{
    if (!child || child == tree_child(stmt, index))
        return child ? stmt : NULL;
    if (stmt->kind == IR_SEQ)
        return replace_in_seq(cx, stmt, index, child);
    if (stmt->kind != IR_IF && sched_is_nothing(child))
        return child;

    ir_stmt *copy = ir_stmt_copy(cx, stmt);
    if (stmt->kind == IR_FOR)
        copy->loop.body = child;
    else if (stmt->kind == IR_LET_STMT)
        copy->let.body = child;
    else if (stmt->kind == IR_ALLOCATE)
        copy->allocate.body = child;
    else if (stmt->kind == IR_ATTRIBUTE)
        copy->attribute.body = child;
    else if (index)
        copy->branch.otherwise = child;
    else
        copy->branch.then = child;
    return copy;
}

/* The tree with `node` in the place of link `depth`: each node above gets a copy with one child exchanged.
 * NULL stays NULL, so that a primitive hands on what a constructor refused. */
const ir_stmt *sched_rebuild(tec_context *cx, const sched_path *path, int depth, const ir_stmt *node)
{
    for (int i = depth - 1; node && i >= 0; i--)
        node = sched_with_child(cx, path->link[i].stmt, path->link[i].child, node);
    return node;
}

/* ---- search ---- */

typedef struct {
    ir_stmt_kind kind;
    const char *name;   /* of a loop or block, or */
    const ir_expr *var; /* of a loop */
} wanted;

/* NULL for statements that have no name. */
static const char *name_of(const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR)
        return stmt->loop.var->var.name;
    return stmt->kind == IR_BLOCK ? stmt->block.block->name : NULL;
}

/* By variable where one is given: two loops may have one name in trees that were read as text, never one
 * variable. */
static bool matches(const ir_stmt *stmt, const wanted *self)
{
    if (stmt->kind != self->kind)
        return false;
    return self->var ? stmt->loop.var == self->var : strcmp(name_of(stmt), self->name) == 0;
}

/* Fills the links on the way back up, when the depth of the match is known, so that the array has the right
 * size at once. */
static bool find(tec_context *cx, const ir_stmt *stmt, const wanted *self, int depth, sched_path *out)
{
    bool here = matches(stmt, self);

    if (here) {
        out->n = depth + 1;
        out->link = base_array(cx, sched_link, depth + 1);
        out->link[depth].stmt = stmt;
    }
    for (int i = 0, n = tree_n_children(stmt); !here && i < n; i++)
        if (find(cx, tree_child(stmt, i), self, depth + 1, out)) {
            out->link[depth] = (sched_link){stmt, i};
            return true;
        }
    return here;
}

bool sched_find_loop(tec_context *cx, const ir_stmt *root, const char *name, sched_path *out)
{
    return find(cx, root, &(wanted){.kind = IR_FOR, .name = name}, 0, out);
}

bool sched_find_block(tec_context *cx, const ir_stmt *root, const char *name, sched_path *out)
{
    return find(cx, root, &(wanted){.kind = IR_BLOCK, .name = name}, 0, out);
}

bool sched_find_var(tec_context *cx, const ir_stmt *root, const ir_expr *var, sched_path *out)
{
    return find(cx, root, &(wanted){.kind = IR_FOR, .var = var}, 0, out);
}

typedef struct {
    ir_walk w;
    ir_stmt_kind kind;
    base_vec names;
} name_list;

static bool list_name(ir_walk *walk, const ir_stmt *stmt)
{
    name_list *l = (name_list *)walk;

    if (stmt->kind == l->kind)
        base_push(
            walk->cx, &l->names,
            (void *)(uintptr_t)(stmt->kind == IR_FOR ? stmt->loop.var->var.name : stmt->block.block->name));
    return true;
}

/* "; did you mean 'C.x.0'?", a loop or a block of the tree. */
static const char *nearest(sched_call *call, const char *name, ir_stmt_kind kind)
{
    name_list l = {.w = {.stmt = list_name, .cx = call->cx}, .kind = kind};

    ir_walk_stmt(&l.w, call->tree->body);
    return base_did_you_mean(call->cx, name, &l.names);
}

/* The check of the lower bound is for trees that were read as text; primitives make none that start
 * elsewhere. */
bool sched_need_loop(sched_call *call, const char *name, sched_path *out)
{
    if (!sched_find_loop(call->cx, call->tree->body, name, out)) {
        sched_refuse(call, "there is no loop '%s'%s", name, nearest(call, name, IR_FOR));
        return false;
    }
    if (!ir_is_value(sched_end(out)->loop.min, 0)) {
        sched_refuse(call, "loop '%s' does not start at 0", name);
        return false;
    }
    return true;
}

bool sched_need_block(sched_call *call, const char *name, sched_path *out)
{
    if (sched_find_block(call->cx, call->tree->body, name, out))
        return true;
    sched_no_block(call, name);
    return false;
}

void *sched_no_block(sched_call *call, const char *name)
{
    return sched_refuse(call, "there is no block '%s'%s", name, nearest(call, name, IR_BLOCK));
}

void *sched_no_buffer(sched_call *call, const char *name)
{
    base_vec names = {0};

    for (int i = 0; i < call->tree->n_params; i++)
        if (call->tree->params[i].buffer)
            base_push(call->cx, &names, call->tree->params[i].buffer->name);
    for (int i = 0; i < call->tree->n_buffers; i++)
        base_push(call->cx, &names, call->tree->buffers[i]->name);
    return sched_refuse(call, "there is no buffer '%s'%s", name, base_did_you_mean(call->cx, name, &names));
}

/* ---- names ---- */

/* Loops and blocks share one set of names, because steps find both by name. */
bool sched_name_taken(const ir_stmt *root, const char *name)
{
    const char *own = name_of(root);

    if (own && strcmp(own, name) == 0)
        return true;
    for (int i = 0, n = tree_n_children(root); i < n; i++)
        if (sched_name_taken(tree_child(root, i), name))
            return true;
    return false;
}

/* `also`: a subtree that is not part of the tree yet, whose names count too; NULL: none. */
const char *sched_fresh_name(sched_call *call, const ir_stmt *also, const char *name)
{
    const char *fresh = name;

    for (int i = 2; sched_name_taken(call->tree->body, fresh) || (also && sched_name_taken(also, fresh)); i++)
        fresh = base_format(call->cx, "%s'%d", name, i);
    return fresh;
}

/* Which child of a sequence holds the loop or block; another statement is its own child 0. -1: none does. */
int sched_child_with(const ir_stmt *body, const char *name)
{
    if (body->kind != IR_SEQ)
        return sched_name_taken(body, name) ? 0 : -1;
    for (int i = 0; i < body->seq.n; i++)
        if (sched_name_taken(body->seq.stmt[i], name))
            return i;
    return -1;
}

bool sched_is_named(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* ---- facts ---- */

/* Adds the facts that hold inside child `child` of stmt. The `then` child of a condition knows it; for the
 * other child its negation is not added. */
static void enter(ir_facts *facts, const ir_stmt *stmt, int child)
{
    if (stmt->kind == IR_FOR)
        tree_know_loop(facts, stmt->loop.var, stmt->loop.extent,
                       tree_may_be_empty(ir_facts_context(facts), stmt));
    else if (stmt->kind == IR_LET_STMT)
        ir_facts_value(facts, stmt->let.var, stmt->let.value);
    else if (stmt->kind == IR_IF && child == 0)
        ir_facts_assume(facts, stmt->branch.cond);
}

/* What is known inside link `depth - 1` of the path, at the place of link `depth`. */
ir_facts *sched_facts_at(const sched *schedule, const sched_path *path, int depth)
{
    ir_facts *f = ir_facts_new(schedule->view.cx, schedule->view.facts);

    for (int i = 0; i < depth; i++)
        enter(f, path->link[i].stmt, path->link[i].child);
    return f;
}

/* ---- buffers ---- */

/* Parameters first; names of buffers are unique among both. */
const ir_buffer *sched_buffer_named(const ir_program *program, const char *name)
{
    for (int i = 0; i < program->n_params; i++)
        if (program->params[i].buffer && strcmp(program->params[i].buffer->name, name) == 0)
            return program->params[i].buffer;
    for (int i = 0; i < program->n_buffers; i++)
        if (strcmp(program->buffers[i]->name, name) == 0)
            return program->buffers[i];
    return NULL;
}
