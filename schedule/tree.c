/* schedule/tree.c -- finding loops and blocks, where they stand, and what is known there.
 *
 * Trees are small (tens of nodes), so a search walks them; no index has to be kept in step with the rewrites. Children are
 * numbered in order of execution.
 */
#include <string.h>

#include "ir/facts.h"
#include "schedule/state.h"

int sched_n_children(const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR:
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return 1;
    case IR_IF: return s->branch.otherwise ? 2 : 1;
    case IR_SEQ: return s->seq.n;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: return 0;
    }
    return 0;
}

const ir_stmt *sched_child(const ir_stmt *s, int i)
{
    switch (s->kind) {
    case IR_FOR: return s->loop.body;
    case IR_LET_STMT: return s->let.body;
    case IR_ALLOCATE: return s->allocate.body;
    case IR_ATTRIBUTE: return s->attribute.body;
    case IR_IF: return i ? s->branch.otherwise : s->branch.then;
    case IR_SEQ: return s->seq.stmt[i];
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return NULL;
}

bool sched_is_nothing(const ir_stmt *s)
{
    return s->kind == IR_SEQ && s->seq.n == 0;
}

static const ir_stmt *replace_in_seq(tec_context *cx, const ir_stmt *s, int i, const ir_stmt *child)
{
    const ir_stmt **stmt = base_array(cx, const ir_stmt *, s->seq.n);

    for (int j = 0; j < s->seq.n; j++)
        stmt[j] = j == i ? child : s->seq.stmt[j];
    return ir_seq(cx, stmt, s->seq.n);
}

const ir_stmt *sched_with_child(tec_context *cx, const ir_stmt *s, int i, const ir_stmt *child)
{
    if (!child || child == sched_child(s, i))
        return child ? s : NULL;
    if (s->kind == IR_SEQ)
        return replace_in_seq(cx, s, i, child);
    if (s->kind != IR_IF && sched_is_nothing(child))
        return child;

    ir_stmt *copy = ir_stmt_copy(cx, s);
    if (s->kind == IR_FOR)
        copy->loop.body = child;
    else if (s->kind == IR_LET_STMT)
        copy->let.body = child;
    else if (s->kind == IR_ALLOCATE)
        copy->allocate.body = child;
    else if (s->kind == IR_ATTRIBUTE)
        copy->attribute.body = child;
    else if (i)
        copy->branch.otherwise = child;
    else
        copy->branch.then = child;
    return copy;
}

const ir_stmt *sched_rebuild(tec_context *cx, const sched_path *p, int depth, const ir_stmt *node)
{
    for (int i = depth - 1; node && i >= 0; i--)
        node = sched_with_child(cx, p->link[i].stmt, p->link[i].child, node);
    return node;
}

/* ---- search ---- */

typedef struct {
    ir_stmt_kind kind;
    const char *name;   /* of a loop or block, or */
    const ir_expr *var; /* of a loop */
} wanted;

static const char *name_of(const ir_stmt *s)
{
    if (s->kind == IR_FOR)
        return s->loop.var->var.name;
    return s->kind == IR_BLOCK ? s->block.block->name : NULL;
}

static bool matches(const ir_stmt *s, const wanted *w)
{
    if (s->kind != w->kind)
        return false;
    return w->var ? s->loop.var == w->var : strcmp(name_of(s), w->name) == 0;
}

static bool find(tec_context *cx, const ir_stmt *s, const wanted *w, int depth, sched_path *out)
{
    bool here = matches(s, w);

    if (here) {
        out->n = depth + 1;
        out->link = base_array(cx, sched_link, depth + 1);
        out->link[depth].stmt = s;
    }
    for (int i = 0, n = sched_n_children(s); !here && i < n; i++)
        if (find(cx, sched_child(s, i), w, depth + 1, out)) {
            out->link[depth] = (sched_link){s, i};
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

bool sched_need_loop(sched_call *c, const char *name, sched_path *out)
{
    if (!sched_find_loop(c->cx, c->tree->body, name, out)) {
        sched_refuse(c, "there is no loop '%s'", name);
        return false;
    }
    if (!ir_is_value(sched_end(out)->loop.min, 0)) {
        sched_refuse(c, "loop '%s' does not start at 0", name);
        return false;
    }
    return true;
}

bool sched_need_block(sched_call *c, const char *name, sched_path *out)
{
    if (sched_find_block(c->cx, c->tree->body, name, out))
        return true;
    sched_refuse(c, "there is no block '%s'", name);
    return false;
}

/* ---- names ---- */

bool sched_name_taken(const ir_stmt *root, const char *name)
{
    const char *own = name_of(root);

    if (own && strcmp(own, name) == 0)
        return true;
    for (int i = 0, n = sched_n_children(root); i < n; i++)
        if (sched_name_taken(sched_child(root, i), name))
            return true;
    return false;
}

const char *sched_fresh_name(sched_call *c, const ir_stmt *also, const char *name)
{
    const char *fresh = name;

    for (int i = 2; sched_name_taken(c->tree->body, fresh) || (also && sched_name_taken(also, fresh)); i++)
        fresh = base_format(c->cx, "%s'%d", name, i);
    return fresh;
}

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

void sched_know_loop(ir_facts *f, const ir_expr *var, const ir_expr *extent, bool may_be_empty)
{
    int64_t n;

    if (!ir_is_int(extent, &n) || n > 0)
        (may_be_empty ? ir_facts_span : ir_facts_range)(f, var, ir_int(ir_facts_context(f), 0), extent);
}

typedef struct {
    ir_walk w;
    const ir_expr *var;
    bool found;
} reduction_search;

static bool look_for_reduction(ir_walk *w, const ir_stmt *s)
{
    reduction_search *x = (reduction_search *)w;

    if (s->kind != IR_BLOCK || !s->block.block->init)
        return true;
    for (int i = 0; i < s->block.block->n_iters && !x->found; i++)
        x->found = s->block.block->iters[i].kind == IR_REDUCE_ITER && sched_mentions(w->cx, s->block.bind[i], x->var);
    return false;
}

bool sched_may_be_empty(tec_context *cx, const ir_stmt *loop)
{
    reduction_search x = {.w = {.cx = cx, .stmt = look_for_reduction}, .var = loop->loop.var};

    if (loop->loop.extent->op != IR_INT)
        ir_walk_stmt(&x.w, loop->loop.body);
    return x.found;
}

static void enter(ir_facts *f, const ir_stmt *s, int child)
{
    if (s->kind == IR_FOR)
        sched_know_loop(f, s->loop.var, s->loop.extent, sched_may_be_empty(ir_facts_context(f), s));
    else if (s->kind == IR_LET_STMT)
        ir_facts_value(f, s->let.var, s->let.value);
    else if (s->kind == IR_IF && child == 0)
        ir_facts_assume(f, s->branch.cond);
}

ir_facts *sched_facts_at(const sched *s, const sched_path *p, int depth)
{
    ir_facts *f = ir_facts_new(s->cx, s->facts);

    for (int i = 0; i < depth; i++)
        enter(f, p->link[i].stmt, p->link[i].child);
    return f;
}

/* ---- sites ---- */

typedef struct {
    tec_context *cx;
    sched_sites out;
    int cap;
    base_vec loops;
    int conditions;
} collector;

static void add_site(collector *c, const ir_stmt *s)
{
    if (c->out.n == c->cap) {
        sched_site *more = base_array(c->cx, sched_site, c->cap ? 2 * c->cap : 8);

        if (c->out.n)
            memcpy(more, c->out.at, (size_t)c->out.n * sizeof *more);
        c->out.at = more;
        c->cap = c->cap ? 2 * c->cap : 8;
    }
    c->out.at[c->out.n] = (sched_site){
        .stmt = s,
        .block = s->block.block,
        .loop = base_copy(c->cx, c->loops.at, (size_t)c->loops.n * sizeof *c->loops.at),
        .n_loops = c->loops.n,
        .facts = base_array(c->cx, const ir_facts *, c->loops.n + 1),
        .guards = base_new(c->cx, const ir_expr *const *),
        .order = c->out.n,
        .branches = c->conditions > 0,
    };
    c->out.n++;
}

static void collect(collector *c, const ir_stmt *s)
{
    if (s->kind == IR_BLOCK) {
        add_site(c, s);
        return;
    }
    if (s->kind == IR_FOR)
        base_push(c->cx, &c->loops, s);
    c->conditions += s->kind == IR_IF;
    for (int i = 0, n = sched_n_children(s); i < n; i++)
        collect(c, sched_child(s, i));
    c->conditions -= s->kind == IR_IF;
    c->loops.n -= s->kind == IR_FOR;
}

sched_sites sched_all_sites(tec_context *cx, const ir_stmt *root)
{
    collector c = {.cx = cx};

    collect(&c, root);
    return c.out;
}

int sched_depth_under(const sched_site *site, const ir_expr *var)
{
    for (int i = 0; i < site->n_loops; i++)
        if (site->loop[i]->loop.var == var)
            return i + 1;
    return 0;
}

const sched_site *sched_site_named(const sched_sites *all, const char *block)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->at[i].block->name, block) == 0)
            return &all->at[i];
    return NULL;
}

/* ---- buffers ---- */

bool sched_same_storage(const ir_buffer *a, const ir_buffer *b)
{
    return a == b || (a->alias && a->alias == b->alias);
}

static bool any_of(const ir_region *r, int n, const ir_buffer *b)
{
    for (int i = 0; i < n; i++)
        if (sched_same_storage(r[i].buffer, b))
            return true;
    return false;
}

bool sched_reads(const ir_block *b, const ir_buffer *buffer)
{
    return any_of(b->reads, b->n_reads, buffer);
}
bool sched_writes(const ir_block *b, const ir_buffer *buffer)
{
    return any_of(b->writes, b->n_writes, buffer);
}

bool sched_is_output(const ir_program *p, const ir_buffer *b)
{
    for (int i = 0; i < p->n_params; i++)
        if (p->params[i].buffer == b)
            return true;
    return false;
}

const ir_buffer *sched_buffer_named(const ir_program *p, const char *name)
{
    for (int i = 0; i < p->n_params; i++)
        if (p->params[i].buffer && strcmp(p->params[i].buffer->name, name) == 0)
            return p->params[i].buffer;
    for (int i = 0; i < p->n_buffers; i++)
        if (strcmp(p->buffers[i]->name, name) == 0)
            return p->buffers[i];
    return NULL;
}
