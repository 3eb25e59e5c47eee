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
 * update. A condition is one on reduce variables if it depends on a loop that feeds these alone, or on loops
 * through parts of reduce bindings alone (one on symbols is not). All other conditions guard the init, and a
 * loop that feeds neither kind is copied for the condition that names it: in `for g in 0..8 { for k { for u
 * in 0..3 { block C(y, k reduce = k) where g*3 + u < 1` the init runs for g = 0 alone, where some update runs
 * too. If one block stands in a tree several times (a loop was cut), only the copy that starts its reduction,
 * all reduce variables at 0, initialises. No init runs where a spatial variable has no values: there is no
 * element to store.
 */
#include "ir/build.h"
#include "ir/interp/build.h"

#include "ir/walk.h"

/* ---- running ---- */

/* The message is about the place of the block: its own iteration variables have no values yet. */
static void blame_domain(ir_exec *exec, const exec_code *code, int j, int64_t value, int64_t extent)
{
    exec->scope = code->block.outer;
    ir_exec_fail(exec, TEC_INVALID, code->s->loc,
                 "iteration variable '%s' of block '%s' is %lld, its extent is %lld",
                 code->s->block.block->iters[j].var->var.name, code->s->block.block->name, (long long)value,
                 (long long)extent);
}

/* Evaluates the bindings. A value outside of the iteration variable's domain is the program's error: a
 * schedule that is right never binds one. A binding that is absent (NULL) belongs to a copied init, where the
 * reduce variable is 0. */
static bool set_iters(ir_exec *exec, const exec_code *code)
{
    for (int j = 0; j < code->block.n && !exec->failed; j++) {
        int64_t v, extent;
        if (!code->block.bind[j]) {
            exec->var[code->block.slot[j]].i = 0;
            continue;
        }
        v = exec_run(exec, code->block.bind[j], 0).i;
        extent = exec_run(exec, code->block.extent[j], 0).i;
        if ((uint64_t)v >= (uint64_t)extent && !exec->failed)
            blame_domain(exec, code, j, v, extent);
        exec->var[code->block.slot[j]].i = v;
    }
    return !exec->failed;
}

/* Predicates first: where one does not hold the bindings need not make sense. False: this instance does not
 * run. */
bool ir_exec_bind_block(ir_exec *exec, const exec_code *code)
{
    exec->scope = code->block.outer;
    for (int j = 0; j < code->block.n_where; j++)
        if (!exec_run(exec, code->block.where[j], 0).i || exec->failed)
            return false;
    return set_iters(exec, code);
}

static void run_block(ir_exec *exec, const exec_code *code)
{
    if (ir_exec_bind_block(exec, code))
        exec_step(exec, code->block.body);
}

/* ---- what feeds what ---- */

/* Adds the variables that expr mentions. */
static void feed_vars(exec_builder *builder, base_map *set, const ir_expr *expr)
{
    base_vec vars = {0};

    if (expr)
        ir_free_vars(builder->exec->mem, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        base_map_put(builder->exec->mem, set, vars.at[i], vars.at[i]);
}

static void feed_from_block(exec_builder *builder, base_map *set, const ir_stmt *stmt)
{
    for (int j = 0; j < stmt->block.block->n_iters; j++)
        if (base_map_has(set, stmt->block.block->iters[j].var))
            feed_vars(builder, set, stmt->block.bind[j]);
}

/* From the inside outward, so that one pass over the path is enough. */
static void close_over_path(exec_builder *builder, base_map *set, bool bounds)
{
    for (const exec_path *path = builder->path; path; path = path->up)
        if (path->s->kind == IR_LET_STMT && base_map_has(set, path->s->let.var))
            feed_vars(builder, set, path->s->let.value);
        else if (path->s->kind == IR_BLOCK)
            feed_from_block(builder, set, path->s);
        else if (bounds && path->s->kind == IR_FOR && base_map_has(set, path->s->loop.var)) {
            feed_vars(builder, set, path->s->loop.min);
            feed_vars(builder, set, path->s->loop.extent);
        }
}

void ir_exec_feeders(exec_builder *builder, base_map *set, const ir_expr *expr, bool bounds)
{
    feed_vars(builder, set, expr);
    close_over_path(builder, set, bounds);
}

/* The variables that the block's reduce bindings (or the spatial ones) depend on, directly or through lets on
 * the path. */
static void feed_bindings(exec_builder *builder, base_map *set, const ir_stmt *stmt, bool reduce)
{
    const ir_block *block = stmt->block.block;

    for (int j = 0; j < block->n_iters; j++)
        if ((block->iters[j].kind == IR_REDUCE_ITER) == reduce)
            feed_vars(builder, set, stmt->block.bind[j]);
    close_over_path(builder, set, !reduce);
}

/* ---- blocks and their inits as codes ---- */

typedef struct {
    const ir_stmt *s;
    const exec_path *top; /* L; NULL: the init stands at the block itself */
    base_map spatial;     /* variables that spatial bindings are made of */
    base_map dropped;     /* variables of the path from L inward that the copies do not have */
    bool first_only;      /* run where all reduce variables are 0 */
} exec_init;

static bool uses_any(exec_builder *builder, const ir_expr *expr, const base_map *set)
{
    base_vec vars = {0};

    ir_free_vars(builder->exec->mem, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(set, vars.at[i]))
            return true;
    return false;
}

typedef struct {
    ir_walk walk;
    const ir_expr *wanted;
    bool found;
} search;

static bool compare(ir_walk *walk, const ir_expr *expr)
{
    search *self = (search *)walk;

    self->found = self->found || ir_same(expr, self->wanted);
    return !self->found;
}

/* Whether expr stands in what a reduce variable is bound to (or a spatial one). */
static bool stands_in_bindings(exec_builder *builder, const exec_init *in, const ir_expr *expr, bool reduce)
{
    const ir_block *block = in->s->block.block;
    search s = {.walk = {.expr = compare, .cx = builder->exec->mem}, .wanted = expr};

    for (int j = 0; j < block->n_iters; j++)
        if ((block->iters[j].kind == IR_REDUCE_ITER) == reduce)
            ir_walk_expr(&s.walk, in->s->block.bind[j]);
    return s.found;
}

/* A variable of a loop, a let or a block around. Others are symbols of the program. */
static bool is_of_path(const exec_builder *builder, const ir_expr *var)
{
    for (const exec_path *path = builder->path; path; path = path->up) {
        if ((path->s->kind == IR_FOR && path->s->loop.var == var) ||
            (path->s->kind == IR_LET_STMT && path->s->let.var == var))
            return true;
        for (int j = 0; path->s->kind == IR_BLOCK && j < path->s->block.block->n_iters; j++)
            if (path->s->block.block->iters[j].var == var)
                return true;
    }
    return false;
}

/* Whether the loops in expr stand in parts of reduce bindings only, parts that no spatial binding has. *any:
 * there is such a part. Of f = y*8 + k.0, which is bound as y = f/8 and k = f % 8 * c + k.1:
 *
 *     f % 8 * c < m     is one on k, since f % 8 stands in its binding alone
 *     f < 12            is none: f stands in both
 */
static bool is_about_reduce(exec_builder *builder, const exec_init *in, const ir_expr *expr, bool *any)
{
    if (!expr || expr->op == IR_INT)
        return true;
    if (expr->op == IR_VAR && !is_of_path(builder, expr))
        return true;
    if (stands_in_bindings(builder, in, expr, true) && !stands_in_bindings(builder, in, expr, false)) {
        *any = true;
        return true;
    }
    if (!ir_is_op(expr->op) && expr->op != IR_CAST)
        return false;
    return is_about_reduce(builder, in, expr->arg[0], any) &&
           is_about_reduce(builder, in, expr->arg[1], any) && is_about_reduce(builder, in, expr->arg[2], any);
}

/* A condition on reduce variables, which guards the update alone. */
static bool guards_update_alone(exec_builder *builder, const exec_init *in, const ir_expr *condition)
{
    bool any = false;

    return uses_any(builder, condition, &in->dropped) ||
           (is_about_reduce(builder, in, condition, &any) && any);
}

/* The conjuncts of expr that guard an init (in NULL: all of them). */
static void keep_conjuncts(exec_builder *builder, base_vec *out, const ir_expr *expr, const exec_init *in)
{
    if (!expr)
        return;
    if (expr->op == IR_LIKELY)
        keep_conjuncts(builder, out, expr->arg[0], in);
    else if (expr->op == IR_AND) {
        keep_conjuncts(builder, out, expr->arg[0], in);
        keep_conjuncts(builder, out, expr->arg[1], in);
    } else if (!in || !guards_update_alone(builder, in, expr))
        base_push(builder->exec->mem, out, ir_exec_expr(builder, expr));
}

static ir_value eval_is_zero(ir_exec *exec, const exec_node *node, int lane)
{
    return (ir_value){.i = exec_run(exec, node->op.arg[0], lane).i == 0};
}

/* Adds the condition that expr is 0: the first step of the reduction. */
static void require_zero(exec_builder *builder, base_vec *out, const ir_expr *expr)
{
    exec_node *n = base_new(builder->exec->mem, exec_node);

    n->eval = eval_is_zero;
    n->e = expr;
    n->lanes = 1;
    n->op.arg[0] = ir_exec_expr(builder, expr);
    base_push(builder->exec->mem, out, n);
}

/* Adds the conditions that each spatial variable has a value. */
static void require_domain(exec_builder *builder, base_vec *out, const ir_block *block)
{
    tec_context *cx = builder->exec->mem;

    for (int j = 0; j < block->n_iters; j++)
        if (block->iters[j].kind != IR_REDUCE_ITER && block->iters[j].extent->op != IR_INT)
            base_push(cx, out, ir_exec_expr(builder, ir_lt(cx, ir_int(cx, 0), block->iters[j].extent)));
}

/* The code of a block with its conditions `where`; bindings and body are set by the caller, since the block
 * itself and its init take different ones. */
static exec_code *new_block(exec_builder *builder, const ir_stmt *stmt, const base_vec *where)
{
    const ir_block *block = stmt->block.block;
    exec_code *code = ir_exec_new_code(builder, stmt, run_block);
    int *slot = base_array(builder->exec->mem, int, block->n_iters);
    const exec_node **extent = base_array(builder->exec->mem, const exec_node *, block->n_iters);

    for (int j = 0; j < block->n_iters; j++) {
        slot[j] = ir_exec_slot(builder, block->iters[j].var);
        extent[j] = ir_exec_expr(builder, block->iters[j].extent);
    }
    code->block.n = block->n_iters;
    code->block.slot = slot;
    code->block.extent = extent;
    code->block.where = (const exec_node *const *)where->at;
    code->block.n_where = where->n;
    code->block.outer = builder->scope;
    return code;
}

static const exec_node *const *bind(exec_builder *builder, const ir_stmt *stmt, bool spatial_only)
{
    const ir_block *block = stmt->block.block;
    const exec_node **out = base_array(builder->exec->mem, const exec_node *, block->n_iters);

    for (int j = 0; j < block->n_iters; j++)
        if (!spatial_only || block->iters[j].kind != IR_REDUCE_ITER)
            out[j] = ir_exec_expr(builder, stmt->block.bind[j]);
    return out;
}

/* Builds `body` inside the block's scope: messages then tell the values of its iteration variables. */
static const exec_code *build_inside(exec_builder *builder, const ir_stmt *stmt, const ir_stmt *body)
{
    const ir_block *block = stmt->block.block;
    const ir_expr **var = base_array(builder->exec->mem, const ir_expr *, block->n_iters);
    const exec_scope *scope = builder->scope;
    exec_path path = {.up = builder->path, .s = stmt};
    const exec_code *code;

    for (int j = 0; j < block->n_iters; j++)
        var[j] = block->iters[j].var;
    ir_exec_push_scope(builder, EXEC_IN_BLOCK, block->name, block->n_iters, var);
    builder->path = &path;
    code = ir_exec_build(builder, body);
    builder->scope = scope;
    builder->path = path.up;
    return code;
}

/* The block without its init. */
static const exec_code *build_main(exec_builder *builder, const ir_stmt *stmt)
{
    base_vec where = {0};
    exec_code *code;

    keep_conjuncts(builder, &where, stmt->block.where, NULL);
    code = new_block(builder, stmt, &where);
    code->block.bind = bind(builder, stmt, false);
    code->block.body = build_inside(builder, stmt, stmt->block.block->body);
    code->lockstep = code->block.body && code->block.body->lockstep;
    return code;
}

/* The init itself with the conditions and bindings that do not depend on reduce variables. Where a block
 * stands in the tree more than once, only the instance at the start of the reduction initialises. */
static const exec_code *build_leaf(exec_builder *builder, const exec_init *in)
{
    const ir_block *block = in->s->block.block;
    base_vec where = {0};
    exec_code *code;

    require_domain(builder, &where, block);
    keep_conjuncts(builder, &where, in->s->block.where, in);
    for (int j = 0; in->first_only && j < block->n_iters; j++)
        if (block->iters[j].kind == IR_REDUCE_ITER)
            require_zero(builder, &where, in->s->block.bind[j]);
    code = new_block(builder, in->s, &where);
    code->block.bind = bind(builder, in->s, true);
    code->block.body = build_inside(builder, in->s, block->init);
    code->lockstep = code->block.body && code->block.body->lockstep;
    return code;
}

/* ---- the nest around an init ---- */

static void drop(exec_builder *builder, exec_init *in, const ir_expr *var)
{
    if (!base_map_has(&in->spatial, var))
        base_map_put(builder->exec->mem, &in->dropped, var, var);
}

/* Loops, lets and blocks on the path that serve the reduction alone are not copied around the init. */
static void find_dropped(exec_builder *builder, exec_init *in)
{
    for (const exec_path *path = builder->path; in->top && path != in->top->up; path = path->up)
        if (path->s->kind == IR_FOR)
            drop(builder, in, path->s->loop.var);
        else if (path->s->kind == IR_LET_STMT)
            drop(builder, in, path->s->let.var);
        else if (path->s->kind == IR_BLOCK)
            for (int j = 0; j < path->s->block.block->n_iters; j++)
                drop(builder, in, path->s->block.block->iters[j].var);
}

/* A dropped loop stays at its first value, for the question whether this copy is the first. */
static const exec_code *wrap_for(exec_builder *builder, const exec_init *in, const ir_stmt *stmt,
                                 const exec_code *code)
{
    if (base_map_has(&in->spatial, stmt->loop.var))
        return ir_exec_wrap_loop(builder, stmt, code);
    return in->first_only ? ir_exec_wrap_let(builder, stmt, stmt->loop.var, stmt->loop.min, code) : code;
}

/* Adds the variables of the condition if it guards the init: if no loop that feeds reduce variables alone
 * stands in it. */
static void feed_from_condition(exec_builder *builder, const exec_init *in, const base_map *reduce,
                                const ir_expr *expr, base_map *out)
{
    base_vec vars = {0};
    bool any = false;

    if (is_about_reduce(builder, in, expr, &any))
        return;
    ir_free_vars(builder->exec->mem, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(reduce, vars.at[i]) && !base_map_has(&in->spatial, vars.at[i]))
            return;
    feed_vars(builder, out, expr);
}

static void feed_from_conjuncts(exec_builder *builder, const exec_init *in, const base_map *reduce,
                                const ir_expr *expr, base_map *out)
{
    if (expr && (expr->op == IR_LIKELY || expr->op == IR_AND)) {
        feed_from_conjuncts(builder, in, reduce, expr->arg[0], out);
        feed_from_conjuncts(builder, in, reduce, expr->op == IR_AND ? expr->arg[1] : NULL, out);
    } else if (expr)
        feed_from_condition(builder, in, reduce, expr, out);
}

/* Counts the variables of conditions that guard the init as spatial ones: their loops are copied. Behind an
 * else the whole condition counts, as in wrap_branch. */
static void feed_guards(exec_builder *builder, exec_init *in)
{
    base_map reduce = {0}, guards = {0};

    feed_bindings(builder, &reduce, in->s, true);
    feed_from_conjuncts(builder, in, &reduce, in->s->block.where, &guards);
    for (const exec_path *path = builder->path; in->top && path != in->top->up; path = path->up)
        if (path->s->kind == IR_IF)
            (path->otherwise ? feed_from_condition : feed_from_conjuncts)(builder, in, &reduce,
                                                                          path->s->branch.cond, &guards);
        else if (path->s->kind == IR_BLOCK)
            feed_from_conjuncts(builder, in, &reduce, path->s->block.where, &guards);
    for (int i = 0; i < guards.cap; i++)
        if (guards.slots[i].key)
            base_map_put(builder->exec->mem, &in->spatial, guards.slots[i].key, guards.slots[i].value);
    close_over_path(builder, &in->spatial, true);
}

/* Conditions that depend on what was dropped are left out; behind an else the whole condition counts. */
static const exec_code *wrap_branch(exec_builder *builder, const exec_init *in, const exec_path *path,
                                    const exec_code *code)
{
    base_vec conds = {0};

    if (path->otherwise)
        return uses_any(builder, path->s->branch.cond, &in->dropped)
                   ? code
                   : ir_exec_wrap_if(builder, path->s, ir_exec_expr(builder, path->s->branch.cond), NULL,
                                     code);
    keep_conjuncts(builder, &conds, path->s->branch.cond, in);
    for (int i = conds.n - 1; i >= 0; i--)
        code = ir_exec_wrap_if(builder, path->s, conds.at[i], code, NULL);
    return code;
}

/* Puts an enclosing block around the init on its way out, without the variables that only the reduction
 * needs. */
static const exec_code *wrap_outer_block(exec_builder *builder, const exec_init *in, const ir_stmt *stmt,
                                         const exec_code *body)
{
    const ir_block *block = stmt->block.block;
    const exec_node **binds = base_array(builder->exec->mem, const exec_node *, block->n_iters);
    base_vec where = {0};
    exec_code *code;

    keep_conjuncts(builder, &where, stmt->block.where, in);
    code = new_block(builder, stmt, &where);
    for (int j = 0; j < block->n_iters; j++)
        if (!base_map_has(&in->dropped, block->iters[j].var))
            binds[j] = ir_exec_expr(builder, stmt->block.bind[j]);
    code->block.bind = binds;
    code->block.body = body;
    code->lockstep = body && body->lockstep;
    return code;
}

/* Copies one step of the path from the block outwards around the init. Steps that bind or restrict nothing
 * for the init are left out. */
static const exec_code *wrap_step(exec_builder *builder, const exec_init *in, const exec_path *path,
                                  const exec_code *code)
{
    switch (path->s->kind) {
    case IR_FOR: return wrap_for(builder, in, path->s, code);
    case IR_IF: return wrap_branch(builder, in, path, code);
    case IR_BLOCK: return wrap_outer_block(builder, in, path->s, code);
    case IR_LET_STMT:
        return base_map_has(&in->dropped, path->s->let.var)
                   ? code
                   : ir_exec_wrap_let(builder, path->s, path->s->let.var, path->s->let.value, code);
    case IR_STORE:
    case IR_UPDATE:
    case IR_ALLOCATE:
    case IR_SEQ:
    case IR_ASSERT:
    case IR_ATTRIBUTE:
    case IR_EVALUATE: break;
    }
    return code;
}

/* The outermost loop that feeds a reduce variable. */
static const exec_path *find_top(exec_builder *builder, const ir_stmt *stmt)
{
    const exec_path *top = NULL;
    base_map reduce = {0};

    feed_bindings(builder, &reduce, stmt, true);
    for (const exec_path *path = builder->path; path; path = path->up)
        if (path->s->kind == IR_FOR && base_map_has(&reduce, path->s->loop.var)) {
            top = path;
            if (path->s->loop.how >= IR_BLOCK_X && path->s->loop.how <= IR_BLOCK_Z)
                ir_exec_fail(builder->exec, TEC_UNSUPPORTED, path->s->loc,
                             "stage '%s': the interpreter does not run a reduction across %s ('%s')",
                             stmt->block.block->name, ir_how_text(path->s->loop.how),
                             path->s->loop.var->var.name);
        }
    return top;
}

static bool stands_again(const exec_builder *builder, const ir_block *block)
{
    return (intptr_t)base_dict_get(&builder->copies, block->name) > 1;
}

/* The thread axes that the loops around an init bind: those outside L, and the copies. */
static int axes_around(const exec_builder *builder, const exec_init *in)
{
    bool inside = in->top != NULL;
    int axes = 0;

    for (const exec_path *path = builder->path; path; path = path->up) {
        if (path->s->kind == IR_FOR && (!inside || base_map_has(&in->spatial, path->s->loop.var)))
            axes |= ir_exec_axis_bit(path->s->loop.how);
        inside &= path != in->top;
    }
    return axes;
}

/* Builds the init from the inside out: the leaf first, then each statement around it up to loop L (`top`). */
static const exec_code *build_init(exec_builder *builder, const ir_stmt *stmt, const exec_path **top)
{
    exec_init in = {.s = stmt, .first_only = stands_again(builder, stmt->block.block)};
    int bound = builder->bound;
    const exec_code *code;

    in.top = *top = find_top(builder, stmt);
    feed_bindings(builder, &in.spatial, stmt, false);
    feed_guards(builder, &in);
    find_dropped(builder, &in);
    builder->bound = axes_around(builder, &in);
    code = build_leaf(builder, &in);
    for (const exec_path *path = builder->path; in.top && path != in.top->up && !builder->exec->failed;
         path = path->up)
        code = wrap_step(builder, &in, path, code);
    builder->bound = bound;
    return code;
}

/* The code of a block. The code of its init goes in front of loop L, or in front of the block itself where no
 * loop feeds a reduce variable. */
const exec_code *ir_exec_block(exec_builder *builder, const ir_stmt *stmt)
{
    const exec_code *main = build_main(builder, stmt), *init;
    base_vec both = {0};
    const exec_path *top;

    if (!stmt->block.block->init || builder->exec->failed)
        return main;
    init = build_init(builder, stmt, &top);
    if (top) {
        base_push(builder->exec->mem, top->before, init);
        return main;
    }
    base_push(builder->exec->mem, &both, init);
    base_push(builder->exec->mem, &both, main);
    return ir_exec_seq(builder, stmt, &both);
}

/* ---- how often each block stands ---- */

/* Counts for each block name how often it stands in the tree, which build_leaf needs to know. */
static void count(exec_builder *builder, const ir_stmt *stmt, int depth)
{
    if (!stmt || depth > EXEC_MAX_NESTING)
        return;
    switch (stmt->kind) {
    case IR_FOR: count(builder, stmt->loop.body, depth + 1); break;
    case IR_BLOCK:
        base_dict_put(builder->exec->mem, &builder->copies, stmt->block.block->name,
                      (void *)((intptr_t)base_dict_get(&builder->copies, stmt->block.block->name) + 1));
        count(builder, stmt->block.block->body, depth + 1);
        break;
    case IR_LET_STMT: count(builder, stmt->let.body, depth + 1); break;
    case IR_ALLOCATE: count(builder, stmt->allocate.body, depth + 1); break;
    case IR_IF:
        count(builder, stmt->branch.then, depth + 1);
        count(builder, stmt->branch.otherwise, depth + 1);
        break;
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            count(builder, stmt->seq.stmt[i], depth + 1);
        break;
    case IR_ATTRIBUTE: count(builder, stmt->attribute.body, depth + 1); break;
    case IR_STORE:
    case IR_UPDATE:
    case IR_ASSERT:
    case IR_EVALUATE: break;
    }
}

void ir_exec_count_blocks(exec_builder *builder, const ir_stmt *stmt)
{
    count(builder, stmt, 0);
}
