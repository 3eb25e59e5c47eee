/* ir/interp/block.c -- blocks, and when the init of a reduction runs.
 *
 * A block sets its iteration variables from its bindings and runs its body, where its predicate holds. The
 * init of a reduction runs before L, the outermost loop that feeds one of its reduce variables, under copies
 * of those loops from L inward that feed its spatial variables:
 *
 *     for y in 0..n {                              for y in 0..n {
 *       for k in 0..m {                              for x in 0..p { init C(y, x) where y < 5 }
 *         for x in 0..p {                            for k in 0..m {
 *           block C(y, x, k reduce)         =>         for x in 0..p {
 *             where y < 5 && k < q                       block C(y, x, k reduce) where y < 5 && k < q
 *
 * so that an empty reduction still initialises (m = 0), and a predicate on reduce variables guards the update
 * alone. A loop that feeds both kinds (a fused one) is copied too: its inits repeat, always before the first
 * update. A condition is one on reduce variables if it depends on a loop that is not copied, or on loops
 * through reduce bindings alone (a literal is not). If one block stands in a tree several times (a loop was
 * cut), only the copy that starts its reduction, all reduce variables at 0, initialises.
 */
#include "ir/interp/build.h"

#include "ir/walk.h"

/* ---- running ---- */

/* The message is about the place of the block: its own iteration variables have no values yet. */
static void blame_domain(ir_vm *vm, const vm_code *c, int j, int64_t value, int64_t extent)
{
    vm->scope = c->block.outer;
    ir_vm_fail(vm, TEC_INVALID, c->s->loc,
               "iteration variable '%s' of block '%s' is %lld, its extent is %lld",
               c->s->block.block->iters[j].var->var.name, c->s->block.block->name, (long long)value,
               (long long)extent);
}

/* Evaluates the bindings. A value outside of the iteration variable's domain is the program's error: a
 * schedule that is right never binds one. A binding that is absent (NULL) belongs to a copied init, where the
 * reduce variable is 0. */
static bool set_iters(ir_vm *vm, const vm_code *c)
{
    for (int j = 0; j < c->block.n && !vm->failed; j++) {
        int64_t v, extent;
        if (!c->block.bind[j]) {
            vm->var[c->block.slot[j]].i = 0;
            continue;
        }
        v = vm_run(vm, c->block.bind[j], 0).i;
        extent = vm_run(vm, c->block.extent[j], 0).i;
        if ((uint64_t)v >= (uint64_t)extent && !vm->failed)
            blame_domain(vm, c, j, v, extent);
        vm->var[c->block.slot[j]].i = v;
    }
    return !vm->failed;
}

/* Predicates first: where one does not hold the bindings need not make sense. False: this instance does not
 * run. */
bool ir_vm_bind_block(ir_vm *vm, const vm_code *c)
{
    vm->scope = c->block.outer;
    for (int j = 0; j < c->block.n_where; j++)
        if (!vm_run(vm, c->block.where[j], 0).i || vm->failed)
            return false;
    return set_iters(vm, c);
}

static void run_block(ir_vm *vm, const vm_code *c)
{
    if (ir_vm_bind_block(vm, c))
        vm_step(vm, c->block.body);
}

/* ---- what feeds what ---- */

/* Adds the variables that e mentions. */
static void feed_vars(vm_builder *b, base_map *set, const ir_expr *e)
{
    base_vec vars = {0};

    if (e)
        ir_free_vars(b->vm->mem, e, &vars);
    for (int i = 0; i < vars.n; i++)
        base_map_put(b->vm->mem, set, vars.at[i], vars.at[i]);
}

static void feed_from_block(vm_builder *b, base_map *set, const ir_stmt *s)
{
    for (int j = 0; j < s->block.block->n_iters; j++)
        if (base_map_has(set, s->block.block->iters[j].var))
            feed_vars(b, set, s->block.bind[j]);
}

/* From the inside outward, so that one pass over the path is enough. */
static void close_over_path(vm_builder *b, base_map *set, bool bounds)
{
    for (const vm_path *p = b->path; p; p = p->up)
        if (p->s->kind == IR_LET_STMT && base_map_has(set, p->s->let.var))
            feed_vars(b, set, p->s->let.value);
        else if (p->s->kind == IR_BLOCK)
            feed_from_block(b, set, p->s);
        else if (bounds && p->s->kind == IR_FOR && base_map_has(set, p->s->loop.var)) {
            feed_vars(b, set, p->s->loop.min);
            feed_vars(b, set, p->s->loop.extent);
        }
}

void ir_vm_feeders(vm_builder *b, base_map *set, const ir_expr *e, bool bounds)
{
    feed_vars(b, set, e);
    close_over_path(b, set, bounds);
}

/* The variables that the block's reduce bindings (or the spatial ones) depend on, directly or through lets on
 * the path. */
static void feed_bindings(vm_builder *b, base_map *set, const ir_stmt *s, bool reduce)
{
    const ir_block *block = s->block.block;

    for (int j = 0; j < block->n_iters; j++)
        if ((block->iters[j].kind == IR_REDUCE_ITER) == reduce)
            feed_vars(b, set, s->block.bind[j]);
    close_over_path(b, set, !reduce);
}

/* ---- blocks and their inits as codes ---- */

typedef struct {
    const ir_stmt *s;
    const vm_path *top; /* L; NULL: the init stands at the block itself */
    base_map spatial;   /* variables that spatial bindings are made of */
    base_map dropped;   /* variables of the path from L inward that the copies do not have */
    bool first_only;    /* run where all reduce variables are 0 */
} vm_init;

static bool uses_any(vm_builder *b, const ir_expr *e, const base_map *set)
{
    base_vec vars = {0};

    ir_free_vars(b->vm->mem, e, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(set, vars.at[i]))
            return true;
    return false;
}

/* Whether e is what a reduce variable is bound to: such an expression is the variable itself, under another
 * name. */
static bool is_reduce_binding(const vm_init *in, const ir_expr *e)
{
    const ir_block *block = in->s->block.block;

    for (int j = 0; j < block->n_iters; j++)
        if (block->iters[j].kind == IR_REDUCE_ITER && ir_same(e, in->s->block.bind[j]))
            return true;
    return false;
}

/* Whether variables stand in e inside of reduce bindings only: `1 <= f % 6` where f % 6 is bound to k. */
static bool is_about_reduce(const vm_init *in, const ir_expr *e)
{
    if (!e || e->op == IR_INT || is_reduce_binding(in, e))
        return true;
    if (!ir_is_op(e->op) && e->op != IR_CAST)
        return false;
    return is_about_reduce(in, e->arg[0]) && is_about_reduce(in, e->arg[1]) && is_about_reduce(in, e->arg[2]);
}

/* The conjuncts of e that guard an init (in NULL: all of them). */
static void keep_conjuncts(vm_builder *b, base_vec *out, const ir_expr *e, const vm_init *in)
{
    if (!e)
        return;
    if (e->op == IR_LIKELY)
        keep_conjuncts(b, out, e->arg[0], in);
    else if (e->op == IR_AND) {
        keep_conjuncts(b, out, e->arg[0], in);
        keep_conjuncts(b, out, e->arg[1], in);
    } else if (!in || e->op == IR_INT || !(uses_any(b, e, &in->dropped) || is_about_reduce(in, e)))
        base_push(b->vm->mem, out, ir_vm_expr(b, e));
}

static ir_value eval_is_zero(ir_vm *vm, const vm_node *n, int lane)
{
    return (ir_value){.i = vm_run(vm, n->op.arg[0], lane).i == 0};
}

/* Adds the condition that e is 0: the first step of the reduction. */
static void require_zero(vm_builder *b, base_vec *out, const ir_expr *e)
{
    vm_node *n = base_new(b->vm->mem, vm_node);

    n->eval = eval_is_zero;
    n->e = e;
    n->lanes = 1;
    n->op.arg[0] = ir_vm_expr(b, e);
    base_push(b->vm->mem, out, n);
}

/* The code of a block with its conditions `where`; bindings and body are set by the caller, since the block
 * itself and its init take different ones. */
static vm_code *new_block(vm_builder *b, const ir_stmt *s, const base_vec *where)
{
    const ir_block *block = s->block.block;
    vm_code *c = ir_vm_new_code(b, s, run_block);
    int *slot = base_array(b->vm->mem, int, block->n_iters);
    const vm_node **extent = base_array(b->vm->mem, const vm_node *, block->n_iters);

    for (int j = 0; j < block->n_iters; j++) {
        slot[j] = ir_vm_slot(b, block->iters[j].var);
        extent[j] = ir_vm_expr(b, block->iters[j].extent);
    }
    c->block.n = block->n_iters;
    c->block.slot = slot;
    c->block.extent = extent;
    c->block.where = (const vm_node *const *)where->at;
    c->block.n_where = where->n;
    c->block.outer = b->scope;
    return c;
}

static const vm_node *const *bind(vm_builder *b, const ir_stmt *s, bool spatial_only)
{
    const ir_block *block = s->block.block;
    const vm_node **out = base_array(b->vm->mem, const vm_node *, block->n_iters);

    for (int j = 0; j < block->n_iters; j++)
        if (!spatial_only || block->iters[j].kind != IR_REDUCE_ITER)
            out[j] = ir_vm_expr(b, s->block.bind[j]);
    return out;
}

/* Builds `body` inside the block's scope: messages then tell the values of its iteration variables. */
static const vm_code *build_inside(vm_builder *b, const ir_stmt *s, const ir_stmt *body)
{
    const ir_block *block = s->block.block;
    const ir_expr **var = base_array(b->vm->mem, const ir_expr *, block->n_iters);
    const vm_scope *scope = b->scope;
    vm_path path = {.up = b->path, .s = s};
    const vm_code *c;

    for (int j = 0; j < block->n_iters; j++)
        var[j] = block->iters[j].var;
    ir_vm_push_scope(b, VM_IN_BLOCK, block->name, block->n_iters, var);
    b->path = &path;
    c = ir_vm_build(b, body);
    b->scope = scope;
    b->path = path.up;
    return c;
}

/* The block without its init. */
static const vm_code *build_main(vm_builder *b, const ir_stmt *s)
{
    base_vec where = {0};
    vm_code *c;

    keep_conjuncts(b, &where, s->block.where, NULL);
    c = new_block(b, s, &where);
    c->block.bind = bind(b, s, false);
    c->block.body = build_inside(b, s, s->block.block->body);
    c->lockstep = c->block.body && c->block.body->lockstep;
    return c;
}

/* The init itself with the conditions and bindings that do not depend on reduce variables. Where a block
 * stands in the tree more than once, only the instance at the start of the reduction initialises. */
static const vm_code *build_leaf(vm_builder *b, const vm_init *in)
{
    const ir_block *block = in->s->block.block;
    base_vec where = {0};
    vm_code *c;

    keep_conjuncts(b, &where, in->s->block.where, in);
    for (int j = 0; in->first_only && j < block->n_iters; j++)
        if (block->iters[j].kind == IR_REDUCE_ITER)
            require_zero(b, &where, in->s->block.bind[j]);
    c = new_block(b, in->s, &where);
    c->block.bind = bind(b, in->s, true);
    c->block.body = build_inside(b, in->s, block->init);
    c->lockstep = c->block.body && c->block.body->lockstep;
    return c;
}

/* ---- the nest around an init ---- */

static void drop(vm_builder *b, vm_init *in, const ir_expr *var)
{
    if (!base_map_has(&in->spatial, var))
        base_map_put(b->vm->mem, &in->dropped, var, var);
}

/* Loops, lets and blocks on the path that serve the reduction alone are not copied around the init. */
static void find_dropped(vm_builder *b, vm_init *in)
{
    for (const vm_path *p = b->path; in->top && p != in->top->up; p = p->up)
        if (p->s->kind == IR_FOR)
            drop(b, in, p->s->loop.var);
        else if (p->s->kind == IR_LET_STMT)
            drop(b, in, p->s->let.var);
        else if (p->s->kind == IR_BLOCK)
            for (int j = 0; j < p->s->block.block->n_iters; j++)
                drop(b, in, p->s->block.block->iters[j].var);
}

/* A dropped loop stays at its first value, for the question whether this copy is the first. */
static const vm_code *wrap_for(vm_builder *b, const vm_init *in, const ir_stmt *s, const vm_code *c)
{
    if (base_map_has(&in->spatial, s->loop.var))
        return ir_vm_wrap_loop(b, s, c);
    return in->first_only ? ir_vm_wrap_let(b, s, s->loop.var, s->loop.min, c) : c;
}

/* Conditions that depend on what was dropped are left out; behind an else the whole condition counts. */
static const vm_code *wrap_branch(vm_builder *b, const vm_init *in, const vm_path *p, const vm_code *c)
{
    base_vec conds = {0};

    if (p->otherwise)
        return uses_any(b, p->s->branch.cond, &in->dropped)
                   ? c
                   : ir_vm_wrap_if(b, p->s, ir_vm_expr(b, p->s->branch.cond), NULL, c);
    keep_conjuncts(b, &conds, p->s->branch.cond, in);
    for (int i = conds.n - 1; i >= 0; i--)
        c = ir_vm_wrap_if(b, p->s, conds.at[i], c, NULL);
    return c;
}

/* Puts an enclosing block around the init on its way out, without the variables that only the reduction
 * needs. */
static const vm_code *wrap_outer_block(vm_builder *b, const vm_init *in, const ir_stmt *s,
                                       const vm_code *body)
{
    const ir_block *block = s->block.block;
    const vm_node **binds = base_array(b->vm->mem, const vm_node *, block->n_iters);
    base_vec where = {0};
    vm_code *c;

    keep_conjuncts(b, &where, s->block.where, in);
    c = new_block(b, s, &where);
    for (int j = 0; j < block->n_iters; j++)
        if (!base_map_has(&in->dropped, block->iters[j].var))
            binds[j] = ir_vm_expr(b, s->block.bind[j]);
    c->block.bind = binds;
    c->block.body = body;
    c->lockstep = body && body->lockstep;
    return c;
}

/* Copies one step of the path from the block outwards around the init. Steps that bind or restrict nothing
 * for the init are left out. */
static const vm_code *wrap_step(vm_builder *b, const vm_init *in, const vm_path *p, const vm_code *c)
{
    switch (p->s->kind) {
    case IR_FOR: return wrap_for(b, in, p->s, c);
    case IR_IF: return wrap_branch(b, in, p, c);
    case IR_BLOCK: return wrap_outer_block(b, in, p->s, c);
    case IR_LET_STMT:
        return base_map_has(&in->dropped, p->s->let.var)
                   ? c
                   : ir_vm_wrap_let(b, p->s, p->s->let.var, p->s->let.value, c);
    case IR_STORE:
    case IR_UPDATE:
    case IR_ALLOCATE:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: break;
    }
    return c;
}

/* The outermost loop that feeds a reduce variable. */
static const vm_path *find_top(vm_builder *b, const ir_stmt *s)
{
    const vm_path *top = NULL;
    base_map reduce = {0};

    feed_bindings(b, &reduce, s, true);
    for (const vm_path *p = b->path; p; p = p->up)
        if (p->s->kind == IR_FOR && base_map_has(&reduce, p->s->loop.var)) {
            top = p;
            if (p->s->loop.how >= IR_BLOCK_X && p->s->loop.how <= IR_BLOCK_Z)
                ir_vm_fail(b->vm, TEC_UNSUPPORTED, p->s->loc,
                           "stage '%s': the interpreter does not run a reduction across %s ('%s')",
                           s->block.block->name, ir_how_text(p->s->loop.how), p->s->loop.var->var.name);
        }
    return top;
}

static bool stands_again(const vm_builder *b, const ir_block *block)
{
    return (intptr_t)base_dict_get(&b->copies, block->name) > 1;
}

/* The thread axes that the loops around an init bind: those outside L, and the copies. */
static int axes_around(const vm_builder *b, const vm_init *in)
{
    bool inside = in->top != NULL;
    int axes = 0;

    for (const vm_path *p = b->path; p; p = p->up) {
        if (p->s->kind == IR_FOR && (!inside || base_map_has(&in->spatial, p->s->loop.var)))
            axes |= ir_vm_axis_bit(p->s->loop.how);
        inside &= p != in->top;
    }
    return axes;
}

/* Builds the init from the inside out: the leaf first, then each statement around it up to loop L (`top`). */
static const vm_code *build_init(vm_builder *b, const ir_stmt *s, const vm_path **top)
{
    vm_init in = {.s = s, .first_only = stands_again(b, s->block.block)};
    int bound = b->bound;
    const vm_code *c;

    in.top = *top = find_top(b, s);
    feed_bindings(b, &in.spatial, s, false);
    find_dropped(b, &in);
    b->bound = axes_around(b, &in);
    c = build_leaf(b, &in);
    for (const vm_path *p = b->path; in.top && p != in.top->up && !b->vm->failed; p = p->up)
        c = wrap_step(b, &in, p, c);
    b->bound = bound;
    return c;
}

/* The code of a block. The code of its init goes in front of loop L, or in front of the block itself where no
 * loop feeds a reduce variable. */
const vm_code *ir_vm_block(vm_builder *b, const ir_stmt *s)
{
    const vm_code *main = build_main(b, s), *init;
    base_vec both = {0};
    const vm_path *top;

    if (!s->block.block->init || b->vm->failed)
        return main;
    init = build_init(b, s, &top);
    if (top) {
        base_push(b->vm->mem, top->before, init);
        return main;
    }
    base_push(b->vm->mem, &both, init);
    base_push(b->vm->mem, &both, main);
    return ir_vm_seq(b, s, &both);
}

/* ---- how often each block stands ---- */

/* Counts for each block name how often it stands in the tree, which build_leaf needs to know. */
static void count(vm_builder *b, const ir_stmt *s, int depth)
{
    if (!s || depth > VM_MAX_NESTING)
        return;
    switch (s->kind) {
    case IR_FOR: count(b, s->loop.body, depth + 1); break;
    case IR_BLOCK:
        base_dict_put(b->vm->mem, &b->copies, s->block.block->name,
                      (void *)((intptr_t)base_dict_get(&b->copies, s->block.block->name) + 1));
        count(b, s->block.block->body, depth + 1);
        break;
    case IR_LET_STMT: count(b, s->let.body, depth + 1); break;
    case IR_ALLOCATE: count(b, s->allocate.body, depth + 1); break;
    case IR_IF:
        count(b, s->branch.then, depth + 1);
        count(b, s->branch.otherwise, depth + 1);
        break;
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            count(b, s->seq.stmt[i], depth + 1);
        break;
    case IR_ATTRIBUTE: count(b, s->attribute.body, depth + 1); break;
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
}

void ir_vm_count_blocks(vm_builder *b, const ir_stmt *s)
{
    count(b, s, 0);
}
