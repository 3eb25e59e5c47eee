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
int tree_n_children(const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR:
    case IR_LET_STMT:
    case IR_ALLOCATE:
    case IR_ATTRIBUTE: return 1;
    case IR_IF: return stmt->branch.otherwise ? 2 : 1;
    case IR_SEQ: return stmt->seq.n;
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: return 0;
    }
    return 0;
}

/* Child index in order of execution; of a condition the branch for true is child 0. */
const ir_stmt *tree_child(const ir_stmt *stmt, int index)
{
    switch (stmt->kind) {
    case IR_FOR: return stmt->loop.body;
    case IR_LET_STMT: return stmt->let.body;
    case IR_ALLOCATE: return stmt->allocate.body;
    case IR_ATTRIBUTE: return stmt->attribute.body;
    case IR_IF: return index ? stmt->branch.otherwise : stmt->branch.then;
    case IR_SEQ: return stmt->seq.stmt[index];
    case IR_BLOCK:
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
    return NULL;
}

/* ---- loops that may be empty ---- */

/* Adds 0 <= var < extent to the facts, where that says something that stays true when an expression is
 * moved:
 *
 *     for k in 0..n { block S(k reduce = k) { init S[] = 0; S[] sum= A[min(k, n - 1)] } }
 *
 * S initialises itself even for n = 0. If `k < n` were added as it stands, 1 <= n would follow inside the
 * loop, and an expression that was simplified by it would be wrong in the init, which a pass moves in front
 * of the loop. With may_be_empty only "k lies between the ends, if there are any" is added (ir_facts_span).
 * A constant extent of 0 adds nothing at all. */
void tree_know_loop(ir_facts *facts, const ir_expr *var, const ir_expr *extent, bool may_be_empty)
{
    int64_t n;

    if (!ir_is_int(extent, &n) || n > 0)
        (may_be_empty ? ir_facts_span : ir_facts_range)(facts, var, ir_int(ir_facts_context(facts), 0),
                                                        extent);
}

/* An init runs even if its reduction has no points, so it is placed outside the loops of the reduction. A
 * loop that was fused from both kinds may look like one of the reduction, once its spatial part is known to
 * be 0:
 *
 *     for f in 0..(m - 1)*2 { block S(x = f % (m - 1) in 0..m - 1, k reduce = f / (m - 1)) }     1 <= m <= 2
 *     for f in 0..(m - 1)*2 { block S(x = 0 in 0..m - 1, k reduce = f) }                         simplified
 *
 * For m = 1 there is no x, and the init in front of f may not store S[0]. If every spatial axis has an
 * element, each iteration of the loops that remain around the init belongs to an iteration of the block. */
void tree_domain_guards(const ir_facts *facts, const ir_stmt *stmt, base_vec *out)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_block *block = stmt->block.block;
    const ir_expr *zero = ir_int(cx, 0);

    for (int i = 0; i < block->n_iters; i++) {
        const ir_expr *bind = stmt->block.bind[i], *extent = block->iters[i].extent;
        base_vec vars = {0};

        ir_free_vars(cx, bind, &vars);
        if (vars.n > 0 && ir_is_value(extent, 0))
            continue; /* a loop that the binding mentions never runs */
        if (block->iters[i].kind != IR_REDUCE_ITER && !ir_prove_lt(facts, zero, extent) &&
            !(ir_prove_le(facts, zero, bind) && ir_prove_lt(facts, bind, extent)))
            base_push(cx, out, ir_lt(cx, zero, extent));
    }
}

typedef struct {
    ir_walk w;
    const ir_expr *var;
    bool found;
} reduction_search;

/* Stops at the first block with an init that has a reduce variable bound to an expression over the loop.
 * What lies inside of a block is not visited: its bindings say all. */
static bool look_for_reduction(ir_walk *walk, const ir_stmt *stmt)
{
    reduction_search *x = (reduction_search *)walk;

    if (stmt->kind != IR_BLOCK || !stmt->block.block->init)
        return true;
    for (int i = 0; i < stmt->block.block->n_iters && !x->found; i++)
        x->found = stmt->block.block->iters[i].kind == IR_REDUCE_ITER &&
                   ir_uses_var(walk->cx, stmt->block.bind[i], x->var);
    return false;
}

/* Only a loop with a symbolic extent can be empty; a loop over 0 iterations is gone by now. */
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

/* Lists the block of stmt with copies of the paths at hand. A statement that a pass shares between two places
 * is listed at the first of them. */
static void add_site(collector *self, const ir_stmt *stmt)
{
    if (base_map_has(&self->seen, stmt))
        return;
    base_map_put(self->cx, &self->seen, stmt, stmt);
    if (self->out.n == self->cap) {
        tree_site *more = base_array(self->cx, tree_site, self->cap ? 2 * self->cap : 8);

        if (self->out.n)
            memcpy(more, self->out.at, (size_t)self->out.n * sizeof *more);
        self->out.at = more;
        self->cap = self->cap ? 2 * self->cap : 8;
    }
    self->out.at[self->out.n] = (tree_site){
        .stmt = stmt,
        .block = stmt->block.block,
        .loop = base_copy(self->cx, self->loops.at, (size_t)self->loops.n * sizeof *self->loops.at),
        .n_loops = self->loops.n,
        .path = base_copy(self->cx, self->path.at, (size_t)self->path.n * sizeof *self->path.at),
        .n = self->path.n,
        .facts = base_array(self->cx, const ir_facts *, self->loops.n + 1),
        .guards = base_new(self->cx, const ir_expr *const *),
        .order = self->out.n,
        .branches = self->conditions > 0,
    };
    self->out.n++;
}

/* Walks the tree, with the loops and statements around stmt at hand. */
static void collect(collector *self, const ir_stmt *stmt)
{
    if (stmt->kind == IR_BLOCK) {
        add_site(self, stmt);
        return;
    }
    base_push(self->cx, &self->path, stmt);
    if (stmt->kind == IR_FOR)
        base_push(self->cx, &self->loops, stmt);
    self->conditions += stmt->kind == IR_IF;
    for (int i = 0, n = tree_n_children(stmt); i < n; i++)
        collect(self, tree_child(stmt, i));
    self->conditions -= stmt->kind == IR_IF;
    self->loops.n -= stmt->kind == IR_FOR;
    self->path.n--;
}

tree_sites tree_all_sites(tec_context *cx, const ir_stmt *root)
{
    collector c = {.cx = cx};

    collect(&c, root);
    return c.out;
}

/* 1 for the outermost loop, so that the result is the number of loops that stand still when the iterations
 * of this loop are looked at one by one: what the other files call `fixed`. */
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

/* Buffers of one alias class may be the same memory (an operand that a caller may pass as the result, too).
 * Nothing is known of how their elements correspond, so that a use of the one counts as a use of the other.
 */
bool tree_same_storage(const ir_buffer *left, const ir_buffer *buffer)
{
    return left == buffer || (left->alias && left->alias == buffer->alias);
}

static bool any_of(const ir_region *region, int n, const ir_buffer *buffer)
{
    for (int i = 0; i < n; i++)
        if (tree_same_storage(region[i].buffer, buffer))
            return true;
    return false;
}

bool tree_reads(const ir_block *block, const ir_buffer *buffer)
{
    return any_of(block->reads, block->n_reads, buffer);
}
bool tree_writes(const ir_block *block, const ir_buffer *buffer)
{
    return any_of(block->writes, block->n_writes, buffer);
}

/* A parameter is seen by the caller behind the program: what is written there is a result, even where a block
 * of the program reads it, too. */
bool tree_is_parameter(const ir_program *program, const ir_buffer *buffer)
{
    for (int i = 0; i < program->n_params; i++)
        if (program->params[i].buffer == buffer)
            return true;
    return false;
}
