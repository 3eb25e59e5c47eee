/* tree/sites.c -- the blocks of a loop tree, what stands around each, and who touches a buffer.
 *
 *     for i in 0..4 {                          sites.at[0]: block A, loop = {i}, path = {i, the sequence}
 *       block A(v = i) { .. }                  sites.at[1]: block B, loop = {i, j}, path = {i, sequence, j}
 *       for j in 0..8 { block B(v = j) { .. } }
 *     }
 *
 * Trees are small (tens of nodes), so that the list is made anew for each tree; nothing has to be kept in
 * step with rewrites.
 */
#include "tree/sites.h"

#include <string.h>

/* What a block computes lies in its body, which is not part of the tree of loops: a block is a leaf. */
int tree_n_children(const ir_stmt *s)
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

/* Child i in order of execution; of a condition the branch for true is child 0. */
const ir_stmt *tree_child(const ir_stmt *s, int i)
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

/* ---- loops that may be empty ---- */

void tree_know_loop(ir_facts *f, const ir_expr *var, const ir_expr *extent, bool may_be_empty)
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
        x->found =
            s->block.block->iters[i].kind == IR_REDUCE_ITER && ir_uses_var(w->cx, s->block.bind[i], x->var);
    return false;
}

bool tree_may_be_empty(tec_context *cx, const ir_stmt *loop)
{
    reduction_search x = {.w = {.cx = cx, .stmt = look_for_reduction}, .var = loop->loop.var};

    if (loop->loop.extent->op != IR_INT)
        ir_walk_stmt(&x.w, loop->loop.body);
    return x.found;
}

/* ---- sites ---- */

typedef struct {
    tec_context *cx;
    tree_sites out;
    int cap;
    base_vec loops, path;
    base_map seen; /* statements of blocks that are listed already */
    int conditions;
} collector;

/* Lists the block of s with copies of the paths at hand. A statement that a pass shares between two places is
 * listed at the first of them. */
static void add_site(collector *c, const ir_stmt *s)
{
    if (base_map_has(&c->seen, s))
        return;
    base_map_put(c->cx, &c->seen, s, s);
    if (c->out.n == c->cap) {
        tree_site *more = base_array(c->cx, tree_site, c->cap ? 2 * c->cap : 8);

        if (c->out.n)
            memcpy(more, c->out.at, (size_t)c->out.n * sizeof *more);
        c->out.at = more;
        c->cap = c->cap ? 2 * c->cap : 8;
    }
    c->out.at[c->out.n] = (tree_site){
        .stmt = s,
        .block = s->block.block,
        .loop = base_copy(c->cx, c->loops.at, (size_t)c->loops.n * sizeof *c->loops.at),
        .n_loops = c->loops.n,
        .path = base_copy(c->cx, c->path.at, (size_t)c->path.n * sizeof *c->path.at),
        .n = c->path.n,
        .facts = base_array(c->cx, const ir_facts *, c->loops.n + 1),
        .guards = base_new(c->cx, const ir_expr *const *),
        .order = c->out.n,
        .branches = c->conditions > 0,
    };
    c->out.n++;
}

/* Walks the tree, with the loops and statements around s at hand. */
static void collect(collector *c, const ir_stmt *s)
{
    if (s->kind == IR_BLOCK) {
        add_site(c, s);
        return;
    }
    base_push(c->cx, &c->path, s);
    if (s->kind == IR_FOR)
        base_push(c->cx, &c->loops, s);
    c->conditions += s->kind == IR_IF;
    for (int i = 0, n = tree_n_children(s); i < n; i++)
        collect(c, tree_child(s, i));
    c->conditions -= s->kind == IR_IF;
    c->loops.n -= s->kind == IR_FOR;
    c->path.n--;
}

tree_sites tree_all_sites(tec_context *cx, const ir_stmt *root)
{
    collector c = {.cx = cx};

    collect(&c, root);
    return c.out;
}

int tree_depth_under(const tree_site *site, const ir_expr *var)
{
    for (int i = 0; i < site->n_loops; i++)
        if (site->loop[i]->loop.var == var)
            return i + 1;
    return 0;
}

const tree_site *tree_site_named(const tree_sites *all, const char *block)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->at[i].block->name, block) == 0)
            return &all->at[i];
    return NULL;
}

/* ---- buffers ---- */

bool tree_same_storage(const ir_buffer *a, const ir_buffer *b)
{
    return a == b || (a->alias && a->alias == b->alias);
}

static bool any_of(const ir_region *r, int n, const ir_buffer *b)
{
    for (int i = 0; i < n; i++)
        if (tree_same_storage(r[i].buffer, b))
            return true;
    return false;
}

bool tree_reads(const ir_block *b, const ir_buffer *buffer)
{
    return any_of(b->reads, b->n_reads, buffer);
}
bool tree_writes(const ir_block *b, const ir_buffer *buffer)
{
    return any_of(b->writes, b->n_writes, buffer);
}

bool tree_is_parameter(const ir_program *p, const ir_buffer *b)
{
    for (int i = 0; i < p->n_params; i++)
        if (p->params[i].buffer == b)
            return true;
    return false;
}
