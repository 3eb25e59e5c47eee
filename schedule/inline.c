/* schedule/inline.c -- compute_inline and reverse_inline: a stage disappears into its readers, or into its
 * producer.
 *
 *     P[y] = A[y]*2                                  compute_inline(P)
 *     C[y] = P[y] + P[y]*P[y+1]                =>    C[y] = let p = A[y]*2 in p + p*(A[y+1]*2)
 *
 * The stored value has the dtype of the buffer already, so its casts stay. A value that is used more than
 * once becomes a let where at least one use is evaluated in any case; a value that is used below conditions
 * only stays there, since its loads may be out of bounds elsewhere.
 *
 * A worked example of the second rule, with A: f32[18] and C over y in 0..16:
 *
 *     C[y] = P[y] + select(y < 8, P[y + 1]*P[y + 1], P[y + 2]) + P[y]
 *
 *     C[y] = let p = A[y]*2 in
 *            p + select(y < 8, (let p' = A[y + 1]*2 in p'*p'), A[y + 2]*2) + p
 *
 * P[y] is used twice where it is evaluated in any case, so its let stands around the whole expression. P[y +
 * 1] is used twice too, but below the condition alone: a let around the whole expression would load A[y + 1]
 * where the condition does not want it. If the user wrote the condition to stay within A, this load would be
 * out of bounds. So each operand of a select, `and` or `or` after the first is a root of its own, with lets
 * of its own.
 */
#include "ir/intern.h"
#include "ir/reason/facts.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* ---- the value of a stage at an index ---- */

/* The map from elements back to instances: of P[2*i + j] = .., point = {e}, iter = {e / 2, e % 2}. What
 * follows from it: the value at index x is the stored expression with each iteration variable replaced by its
 * iter, and the point by x. */
typedef struct {
    tec_context *cx;
    const ir_buffer *buffer;
    const ir_block *block;
    const ir_stmt *store;        /* the block's only statement */
    const ir_expr *const *point; /* a variable for each dimension of the buffer, */
    const ir_expr *const *iter;  /* and each iteration variable over them; NULL: it is 0 */
    const ir_facts *facts;
    ir_interned *equal; /* equal parts of the values are one node; NULL: they stay apart */
} stage_value;

/* A let of the stage's own value gets a new variable for each place that the value goes to: two lets of one
 * variable in one expression would be told apart by nothing but their place. */
static const ir_expr *fresh_let(ir_rewrite *rw, const ir_expr *expr)
{
    expr = ir_rewrite_children(rw, expr);
    if (!expr || expr->op != IR_LET)
        return expr;
    const ir_expr *var = ir_let_var(rw->cx, expr->let.var->var.name, expr->let.value);
    return ir_let(rw->cx, var, expr->let.value, ir_substitute(rw->cx, expr->let.body, expr->let.var, var));
}

/* The iteration variable of the instance that writes the element at the index. The quick case is an iteration
 * variable that is an index itself; there is nothing to simplify. */
static const ir_expr *iter_at(const stage_value *value, int at, const ir_expr *const *index)
{
    ir_subst map = {0};

    if (!value->iter[at])
        return ir_int(value->cx, 0);
    for (int d = 0; d < value->buffer->n; d++) {
        if (value->iter[at] == value->point[d])
            return index[BASE_PLANT_ON(value->cx, compute_inline_index) ? 0 : d];
        if (value->point[d])
            base_map_put(value->cx, &map.vars, value->point[d], index[d]);
    }
    return ir_simplify(value->facts, ir_apply(value->cx, &map, value->iter[at]));
}

/* x + 1 + 1 as x + 2: the same index, reached by two ways, is one index. */
static const ir_expr *fold_sum(tec_context *cx, const ir_expr *expr)
{
    int64_t inner, outer, sum;

    if (!expr || expr->op != IR_ADD || !ir_is_int(expr->arg[1], &outer) || expr->arg[0]->op != IR_ADD ||
        !ir_is_int(expr->arg[0]->arg[1], &inner) || __builtin_add_overflow(inner, outer, &sum))
        return expr;
    const ir_expr *constant = ir_int(cx, sum);
    return base_dtype_same(constant->dtype, expr->dtype) ? ir_add(cx, expr->arg[0]->arg[0], constant) : expr;
}

static const ir_expr *share_node(ir_rewrite *rw, const ir_expr *expr)
{
    return ir_intern(rw->equal, fold_sum(rw->cx, ir_rewrite_children(rw, expr)));
}

/* The value of the stage at an index. Values at neighbouring indices have parts in common: after S[x] = A[x]
 * + A[x + 1], the values of S at x and x + 1 both hold A[x + 1]. Each such part is one node, so that a chain
 * of n stencils grows to some n * n nodes, where its text has 3^n terms. */
static const ir_expr *value_at(const stage_value *value, const ir_expr *const *index)
{
    ir_rewrite share = {.cx = value->cx, .expr = share_node, .equal = value->equal};
    ir_rewrite rw = {.cx = value->cx, .expr = fresh_let};
    ir_subst map = {0};

    for (int i = 0; i < value->block->n_iters; i++)
        base_map_put(value->cx, &map.vars, value->block->iters[i].var, iter_at(value, i, index));
    return ir_rewrite_expr(&share,
                           ir_apply(value->cx, &map, ir_rewrite_expr(&rw, value->store->store.value)));
}

/* ---- inlining into an expression ---- */

/* Loads of one index: the uses that are evaluated in any case, and the value. */
typedef struct {
    const ir_expr *load;
    const ir_expr *value;
    const ir_expr *var; /* of the let; NULL: used once, or cheap */
    int uses;
} use_group;

/* One root: an expression that is evaluated whole wherever it stands. `visits` counts how often count_uses
 * met a node. */
typedef struct {
    ir_rewrite rw;
    const stage_value *v;
    base_vec groups; /* use_group *, of the part of the expression that is evaluated in any case */
    base_map visits;
    base_map bound; /* variables of the lets inside of the expression */
} inlining;

static bool same_index(const ir_expr *left, const ir_expr *right)
{
    for (int d = 0; d < left->load.n; d++)
        if (!ir_same(left->load.index[d], right->load.index[d]))
            return false;
    return true;
}

/* Loads of one element are one group: the value is computed once for all of them. */
static use_group *group_of(inlining *self, const ir_expr *load)
{
    for (int i = 0; i < self->groups.n; i++)
        if (same_index(((use_group *)self->groups.at[i])->load, load))
            return self->groups.at[i];
    return NULL;
}

/* From which operand on the machine may skip an evaluation; 3: no operand is skipped. */
static int first_lazy_operand(const ir_expr *expr)
{
    return expr->op == IR_AND || expr->op == IR_OR || expr->op == IR_SELECT ? 1 : 3;
}

/* Whether the index mentions a variable that a let inside of the root binds: the value cannot stand in front
 * of that let. */
static bool is_inside_let(inlining *self, const ir_expr *load)
{
    base_vec vars = {0};

    for (int d = 0; self->bound.n && d < load->load.n; d++)
        ir_free_vars(self->rw.cx, load->load.index[d], &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_has(&self->bound, vars.at[i]))
            return true;
    return false;
}

/* Counts the uses that are evaluated in any case. A load in the body of a let whose index mentions the let's
 * variable is left to a root of its own, which is the body. A node that several parents share is counted
 * twice at most: that is all that matters, and shared chains stay cheap. */
static void count_uses(inlining *self, const ir_expr *expr)
{
    intptr_t visits = (intptr_t)base_map_get(&self->visits, expr);

    if (visits == 2)
        return;
    base_map_put(self->rw.cx, &self->visits, expr, (const void *)(visits + 1));
    if (expr->op == IR_LOAD && expr->load.buffer == self->v->buffer && !is_inside_let(self, expr)) {
        use_group *group = group_of(self, expr);

        if (!group) {
            group = base_new(self->rw.cx, use_group);
            group->load = expr;
            base_push(self->rw.cx, &self->groups, group);
        }
        group->uses++;
    } else if (expr->op == IR_LOAD) {
        for (int d = 0; d < expr->load.n; d++)
            count_uses(self, expr->load.index[d]);
    } else if (expr->op == IR_LET) {
        base_map_put(self->rw.cx, &self->bound, expr->let.var, expr);
        count_uses(self, expr->let.value);
        count_uses(self, expr->let.body);
    } else if (expr->op == IR_CALL) {
        for (int i = 0; i < expr->call.n; i++)
            count_uses(self, expr->call.arg[i]);
    } else if (ir_is_op(expr->op) || expr->op == IR_CAST || expr->op == IR_REINTERPRET) {
        int lazy = first_lazy_operand(expr);

        for (int i = 0; i < 3 && i < lazy && expr->arg[i]; i++)
            count_uses(self, expr->arg[i]);
    }
}

/* A variable, a constant or one load costs nothing to write twice; a let would only hide it from later
 * passes. */
static bool is_cheap(const ir_expr *expr)
{
    while (expr->op == IR_CAST)
        expr = expr->arg[0];
    return expr->op == IR_INT || expr->op == IR_FLOAT || expr->op == IR_VAR || expr->op == IR_LOAD;
}

static const ir_expr *inline_root(const stage_value *value, const ir_expr *expr);

typedef struct {
    ir_walk w;
    const ir_buffer *buffer;
    bool found;
} load_search;

static bool look_for_load(ir_walk *walk, const ir_expr *expr)
{
    load_search *x = (load_search *)walk;

    x->found = x->found || (expr->op == IR_LOAD && expr->load.buffer == x->buffer);
    return !x->found && (expr->has & IR_HAS_LOAD);
}

/* Stops at the first load of the buffer; parts of the expression without loads are not entered. */
static bool any_load(tec_context *cx, const ir_expr *expr, const ir_buffer *buffer)
{
    load_search x = {.w = {.cx = cx, .expr = look_for_load}, .buffer = buffer};

    ir_walk_expr(&x.w, expr);
    return x.found;
}

/* Operands of a condition and bodies of lets are roots of their own, after the values that exist in any case
 * were taken. `select(c, P[i], 0)`: the load stands in an operand that is evaluated only if c holds. Its
 * value is computed inside of this operand, not in front of the select, since P's own loads may lie outside
 * of their buffers where c does not hold. */
static const ir_expr *inline_node(ir_rewrite *rw, const ir_expr *expr)
{
    inlining *x = (inlining *)rw;
    int lazy = ir_is_op(expr->op) ? first_lazy_operand(expr) : 3;

    if (expr->op == IR_LOAD && expr->load.buffer == x->v->buffer) {
        use_group *group = group_of(x, expr);
        return !group ? expr : group->var ? group->var : group->value;
    }
    if (expr->op == IR_LET)
        return ir_let(rw->cx, expr->let.var, ir_rewrite_expr(rw, expr->let.value),
                      inline_root(x->v, ir_rewrite_expr(rw, expr->let.body)));
    if (lazy == 3)
        return ir_rewrite_children(rw, expr);
    const ir_expr *arg[3] = {NULL};
    for (int i = 0; i < 3 && expr->arg[i]; i++) {
        arg[i] = ir_rewrite_expr(rw, expr->arg[i]);
        if (i >= lazy)
            arg[i] = inline_root(x->v, arg[i]);
        if (!arg[i])
            return NULL;
    }
    return ir_op_raw(rw->cx, expr->op, arg);
}

/* The value of each group. Its own index may hold loads of the stage too, as in P[i64(P[y])], so the index is
 * inlined first. */
static void make_values(inlining *self)
{
    for (int i = 0; i < self->groups.n; i++) {
        use_group *group = self->groups.at[i];
        const ir_expr **index = base_array(self->rw.cx, const ir_expr *, group->load->load.n);

        for (int d = 0; d < group->load->load.n; d++)
            index[d] = inline_root(self->v, group->load->load.index[d]);
        group->value = value_at(self->v, index);
        if (group->uses > 1 && group->value && !is_cheap(group->value))
            group->var = ir_let_var(self->rw.cx, self->v->buffer->name, group->value);
    }
}

/* expr with every load of the stage replaced; expr is evaluated whole where it stands. The groups get their
 * lets from the inside out, so that the first group found is the outermost let. No value mentions another
 * group's variable. */
static const ir_expr *inline_root(const stage_value *value, const ir_expr *expr)
{
    inlining x = {.rw = {.cx = value->cx, .expr = inline_node}, .v = value};

    if (!expr || !any_load(value->cx, expr, value->buffer))
        return expr;
    count_uses(&x, expr);
    make_values(&x);
    expr = ir_rewrite_expr(&x.rw, expr);
    for (int i = x.groups.n - 1; expr && i >= 0; i--) {
        const use_group *group = x.groups.at[i];

        if (group->var)
            expr = ir_let(value->cx, group->var, group->value, expr);
    }
    return expr;
}

/* ---- statements ---- */

typedef struct {
    ir_rewrite rw;
    const stage_value *v;
} block_inlining;

static const ir_expr *each_root(ir_rewrite *rw, const ir_expr *expr)
{
    return inline_root(((block_inlining *)rw)->v, expr);
}

static const ir_block *inline_into(const stage_value *value, const ir_facts *facts, const ir_block *block)
{
    block_inlining x = {.rw = {.cx = value->cx, .expr = each_root}, .v = value};
    ir_block *copy = ir_block_copy(value->cx, block);

    copy->body = ir_rewrite_stmt(&x.rw, block->body);
    copy->init = block->init ? ir_rewrite_stmt(&x.rw, block->init) : NULL;
    return copy->body && (!block->init || copy->init) ? sched_refresh(facts, copy) : NULL;
}

/* Every block below stmt that reads the stage, except the stage's own block. */
static const ir_stmt *inline_everywhere(sched_call *call, const stage_value *value, const ir_facts *facts,
                                        const ir_stmt *stmt)
{
    if (stmt->kind == IR_BLOCK) {
        if (stmt->block.block == value->block || !tree_reads(stmt->block.block, value->buffer))
            return stmt;
        return sched_with_block(call->cx, stmt, inline_into(value, facts, stmt->block.block));
    }
    for (int i = 0, n = tree_n_children(stmt); stmt && i < n; i++) {
        const ir_stmt *child = inline_everywhere(call, value, facts, tree_child(stmt, i));

        stmt = child ? sched_with_child(call->cx, stmt, i, child) : NULL;
    }
    return stmt;
}

/* ---- checks ---- */

/* Which instance writes an element. Two ways, from cheap to general: each dimension is an iteration variable
 * plus a constant, or the indices are a one-to-one layout such as [floordiv(i, 8), i % 8]. A dimension that
 * no variable indexes must have one element; otherwise some elements would have no instance that writes them,
 * and no value. */
static bool invert_store(sched_call *call, const ir_block *block, stage_value *value)
{
    int *dim_of = base_array(call->cx, int, block->n_iters);
    const ir_expr **point = base_array(call->cx, const ir_expr *, value->buffer->n),
                  **iter = base_array(call->cx, const ir_expr *, block->n_iters);
    tree_layout l;

    value->point = point;
    value->iter = iter;
    if (tree_store_dims(&call->s->view, block, &block->writes[0], dim_of)) {
        for (int i = 0; i < block->n_iters; i++)
            if (dim_of[i] >= 0) {
                const ir_expr *shift = ir_int(call->cx, tree_store_shift(&block->writes[0], dim_of[i]));

                point[dim_of[i]] = block->iters[i].var;
                iter[i] = ir_sub(call->cx, block->iters[i].var, shift);
            }
        for (int d = 0; d < value->buffer->n; d++)
            if (!point[d] && !ir_is_value(value->buffer->shape[d], 1))
                return sched_refuse(call, "'%s' does not write all of '%s'", block->name,
                                    value->buffer->name);
        return true;
    }
    if (!tree_invert_store(&call->s->view, block, &block->writes[0], &l))
        return sched_refuse(call, "the store of '%s' cannot be inverted", block->name);
    value->point = l.point;
    value->iter = l.var;
    return true;
}

/* The block is one store that can be inverted. */
static bool read_value(sched_call *call, const ir_block *block, stage_value *value)
{
    *value =
        (stage_value){.cx = call->cx, .block = block, .store = block->body, .facts = call->s->view.facts};
    value->equal = base_new(call->cx, ir_interned);
    value->equal->cx = call->cx;
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind != IR_SPATIAL)
            return sched_refuse(call,
                                "'%s' is not a spatial axis of '%s'; only spatial stages can be inlined",
                                block->iters[i].var->var.name, block->name);
    if (block->init || block->body->kind != IR_STORE || block->n_writes != 1)
        return sched_refuse(call, "'%s' is more than one store", block->name);
    value->buffer = block->body->store.buffer;
    return invert_store(call, block, value);
}

/* The loops that P, writer and all readers of the buffer have in common. */
static int loops_around(const tree_sites *all, const tree_site *producer, const tree_site *writer,
                        const ir_buffer *buffer)
{
    int common = tree_common_loops(producer, writer);

    for (int i = 0; i < all->n; i++)
        if (tree_reads(all->at[i].block, buffer)) {
            int with = tree_common_loops(producer, &all->at[i]);
            common = with < common ? with : common;
        }
    return common;
}

/* In an iteration of those, writer writes nothing of what P reads in this access: P reads what earlier
 * iterations wrote. */
static bool earlier_only(sched_call *call, const tree_sites *all, const tree_site *producer,
                         const ir_region *read, const tree_site *writer, const ir_buffer *buffer)
{
    int around = loops_around(all, producer, writer, buffer);

    return around && tree_accesses_disjoint(
                         &call->s->view, producer, read, writer,
                         tree_access(writer->block->writes, writer->block->n_writes, read->buffer), around);
}

/* The inputs hold the same values when the readers run: nothing writes them after P, and no reader leaves a
 * loop in which one is computed.
 *
 *     P[y] = A[y];  A[y] = 0;  C[y] = P[y]       # inlined, C would read the zero
 *
 * The second check is about time, too: a reader outside of the loop that computes an input would read what
 * the last iteration left, where P read the value of its own iteration. */
static bool inputs_last(sched_call *call, const tree_sites *all, const tree_site *producer,
                        const ir_buffer *buffer)
{
    for (int i = 0; i < all->n; i++) {
        const tree_site *w = &all->at[i];

        for (int j = 0; w != producer && j < producer->block->n_reads; j++) {
            if (!tree_writes(w->block, producer->block->reads[j].buffer))
                continue;
            if (w->order > producer->order &&
                earlier_only(call, all, producer, &producer->block->reads[j], w, buffer))
                continue;
            if (w->order > producer->order)
                return sched_refuse(call, "'%s' overwrites '%s', which '%s' reads", w->block->name,
                                    producer->block->reads[j].buffer->name, producer->block->name);
            for (int k = 0; k < w->n_loops; k++)
                for (int r = 0; tree_depth_under(producer, w->loop[k]->loop.var) && r < all->n; r++)
                    if (tree_reads(all->at[r].block, buffer) &&
                        !tree_depth_under(&all->at[r], w->loop[k]->loop.var))
                        return sched_refuse(
                            call, "'%s' reads '%s' outside loop '%s', in which '%s' is computed",
                            all->at[r].block->name, buffer->name, w->loop[k]->loop.var->var.name,
                            producer->block->reads[j].buffer->name);
        }
    }
    return true;
}

static bool not_shared(sched_call *call, const ir_buffer *buffer)
{
    return !buffer->alias || sched_refuse(call, "'%s' may share memory with other buffers", buffer->name);
}

/* A buffer that is to be dropped. */
static bool may_vanish(sched_call *call, const ir_buffer *buffer)
{
    if (tree_is_parameter(call->tree, buffer))
        return sched_refuse(call, "'%s' is an argument of the program; it must be written", buffer->name);
    return not_shared(call, buffer);
}

/* Refuses unless every reader may compute P's value for itself: P may run again, its buffer may disappear,
 * no reader needs the buffer itself, and the inputs still hold their values. What would go wrong: an opaque
 * reader takes the buffer's address; a second writer would be overwritten by nothing; an input that changes
 * between P and its reader would be read too late. */
static bool may_inline(sched_call *call, const tree_sites *all, const tree_site *producer,
                       const stage_value *value)
{
    const char *reason = tree_not_idempotent(call->cx, producer->block);
    bool read = false;

    if (reason)
        return sched_refuse(call, "'%s' cannot be inlined: %s", producer->block->name, reason);
    if (!may_vanish(call, value->buffer))
        return false;
    for (int i = 0; i < all->n; i++) {
        const ir_block *r = all->at[i].block;

        read = read || tree_reads(r, value->buffer);
        for (int j = 0; j < r->n_iters; j++)
            if (tree_reads(r, value->buffer) && r->iters[j].kind == IR_OPAQUE)
                return sched_refuse(call, "'%s' is opaque, so its reads of '%s' cannot be changed", r->name,
                                    value->buffer->name);
    }
    if (!read)
        return sched_refuse(call, "nothing reads '%s'", value->buffer->name);
    return sched_need_only_writer(call, all, producer, value->buffer) &&
           inputs_last(call, all, producer, value->buffer);
}

/* A stage that reads its producer at n places, and is read at n places itself, grows n-fold with each stage
 * that is inlined, unless the values have parts in common: past this many distinct nodes the steps and passes
 * that follow take minutes. */
enum { MAX_NODES = 1 << 16 };

/* Values at places that lie far apart have no part in common: a chain of 20 stages that each read two such
 * places would hold a million loads. */
static bool stays_small(sched_call *call, const ir_stmt *body)
{
    const sched_arg *limit = &call->arg[1];
    int64_t most = limit->n ? limit->ints[0] : MAX_NODES;

    if (limit->n > 1 || most < 1)
        return sched_refuse(call, "expected at most one limit of nodes, a positive integer");
    int before = ir_count_nodes(call->cx, call->tree->body),
        after = body ? ir_count_nodes(call->cx, body) : 0;
    return after <= most || after <= before ||
           sched_refuse(call,
                        "'%s' would grow from %d to %d nodes; the limit is %lld, and compute_inline(%s, N) "
                        "allows N nodes",
                        call->tree->name, before, after, (long long)most, call->arg[0].name);
}

/* compute_inline(P): every read of P becomes P's expression there. compute_inline(P, N) allows the program to
 * grow to N nodes. */
const ir_program *sched_do_compute_inline(sched_call *call)
{
    sched_path at;
    stage_value v;

    if (!sched_need_block(call, call->arg[0].name, &at) || !read_value(call, sched_end(&at)->block.block, &v))
        return NULL;
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    if (!may_inline(call, &all, tree_site_named(&all, call->arg[0].name), &v))
        return NULL;
    const ir_stmt *body = inline_everywhere(call, &v, call->s->view.facts, sched_remove(call->cx, &at));
    const ir_program *after = stays_small(call, body) ? sched_with_body(call, body) : NULL;
    return after ? sched_drop_buffer(call->cx, after, v.buffer) : NULL;
}

/* ---- reverse_inline ---- */

/* Q reads its producer's buffer at one index, each dimension an iteration variable of Q with the producer's
 * extent. Only uses that are evaluated in any case count. A read below a condition would make P's store
 * conditional. */
static const ir_expr *single_read(sched_call *call, const ir_block *block, const ir_buffer *buffer,
                                  inlining *loads)
{
    count_uses(loads, block->body->store.value);
    if (loads->groups.n != 1)
        return sched_refuse(call, "'%s' does not read '%s' at exactly one index, in any case", block->name,
                            buffer->name);
    return ((use_group *)loads->groups.at[0])->load;
}

/* `other` is set where Q reads the buffer at another index than `load`: its value would be that of another
 * instance. */
typedef struct {
    ir_rewrite rw;
    const ir_buffer *buffer;
    const ir_expr *load, *value;
    bool other;
} exchange;

static const ir_expr *exchange_load(ir_rewrite *rw, const ir_expr *expr)
{
    exchange *x = (exchange *)rw;

    if (expr->op == IR_LOAD && expr->load.buffer == x->buffer) {
        x->other = x->other || !same_index(expr, x->load);
        return x->value;
    }
    return ir_rewrite_children(rw, expr);
}

/* Each axis of Q is one of P. Only needed where padding plays a role: without it, Q reads each element once,
 * and each element has one instance of P, so the points of P and Q correspond. */
static bool axes_match(sched_call *call, const stage_value *producer, const stage_value *consumer,
                       const ir_subst *map)
{
    for (int i = 0; i < consumer->block->n_iters; i++) {
        const ir_expr *at = base_map_get(&map->vars, consumer->block->iters[i].var);
        bool found = ir_is_value(at, 0);

        for (int k = 0; k < producer->block->n_iters; k++)
            found = found || (at == producer->block->iters[k].var &&
                              ir_prove_equal(call->s->view.facts, producer->block->iters[k].extent,
                                             consumer->block->iters[i].extent));
        if (!found)
            return false;
    }
    return true;
}

/* Q reads every element of P's buffer at one of its points: what those are, over P's.
 *
 *     P[i] = ..;   Q[y, x] = P[y*4 + x] + 1      gives y = i / 4, x = i % 4
 *
 * The read is inverted (which point of Q reads element e), then e is replaced by what P stores to. The result
 * goes to `map`, over the variables of P. */
static bool same_domain(sched_call *call, const stage_value *producer, const stage_value *consumer,
                        const ir_expr *load, ir_subst *map)
{
    ir_region read = ir_region_point(call->cx, producer->buffer, load->load.index);
    ir_facts *facts = ir_facts_new(call->cx, call->s->view.facts);
    ir_subst written = {0};
    tree_layout l;

    if (!tree_invert_read(&call->s->view, consumer->block, &read, &l))
        return sched_refuse(call, "it is not proven that '%s' reads all of '%s', each element once",
                            consumer->block->name, producer->buffer->name);
    for (int i = 0; i < producer->block->n_iters; i++)
        ir_facts_range(facts, producer->block->iters[i].var, ir_int(call->cx, 0),
                       producer->block->iters[i].extent);
    for (int d = 0; d < producer->buffer->n; d++)
        base_map_put(call->cx, &written.vars, l.point[d], producer->store->store.index[d]);
    for (int i = 0; i < consumer->block->n_iters; i++) {
        const ir_iter *axis = &consumer->block->iters[i];
        const ir_expr *at =
            l.var[i] ? ir_simplify(facts, ir_apply(call->cx, &written, l.var[i])) : ir_int(call->cx, 0);

        if (!l.var[i] && !ir_prove_equal(call->s->view.facts, axis->extent, ir_int(call->cx, 1)))
            return sched_refuse(call, "axis '%s' of '%s' does not index a dimension of '%s'",
                                axis->var->var.name, consumer->block->name, producer->buffer->name);
        base_map_put(call->cx, &map->vars, axis->var, at);
    }
    if (!axes_match(call, producer, consumer, map) &&
        (tree_is_padded(&call->s->view, consumer->block, &l) ||
         tree_leaves_padding(&call->s->view, call->tree->body, producer->buffer, NULL)))
        return sched_refuse(call, "it is not proven that '%s' has a point for each of '%s'",
                            producer->block->name, consumer->block->name);
    return true;
}

/* P's block with Q's store in place of its own. The value of P is bound by a let where Q uses it several
 * times. The store goes to Q's buffer, at Q's index over P's variables, while loops, predicate and name stay
 * those of P. */
static const ir_block *merged(sched_call *call, const stage_value *producer, const stage_value *consumer)
{
    inlining loads = {.rw = {.cx = call->cx}, .v = producer};
    const ir_expr *load = single_read(call, consumer->block, producer->buffer, &loads);
    ir_subst map = {0};

    if (!load || !same_domain(call, producer, consumer, load, &map))
        return NULL;
    const ir_expr *var = ir_let_var(call->cx, producer->buffer->name, producer->store->store.value);
    exchange x = {.rw = {.cx = call->cx, .expr = exchange_load},
                  .buffer = producer->buffer,
                  .load = load,
                  .value = var};
    bool once = ((use_group *)loads.groups.at[0])->uses == 1 || is_cheap(producer->store->store.value);
    if (once)
        x.value = producer->store->store.value;
    const ir_expr *value = ir_rewrite_expr(&x.rw, consumer->store->store.value);
    if (x.other)
        return sched_refuse(call, "'%s' reads '%s' at more than one index", consumer->block->name,
                            producer->buffer->name);
    value = ir_apply(call->cx, &map, value);
    if (!once)
        value = ir_let(call->cx, var, producer->store->store.value, value);
    const ir_expr **index = base_array(call->cx, const ir_expr *, consumer->buffer->n);
    for (int d = 0; d < consumer->buffer->n; d++)
        index[d] = d < producer->buffer->n && BASE_PLANT_ON(call->cx, reverse_inline_index)
                       ? producer->store->store.index[d]
                       : ir_apply(call->cx, &map, consumer->store->store.index[d]);
    ir_block *block = ir_block_copy(call->cx, producer->block);
    block->body = ir_store(call->cx, consumer->buffer, value, index, consumer->buffer->n);
    return block->body ? sched_refresh(call->s->view.facts, block) : NULL;
}

/* The last one: whatever else Q reads is complete before it. */
static const tree_site *last_producer(sched_call *call, const tree_sites *all, const tree_site *consumer)
{
    const tree_site *p = NULL;

    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < consumer->block->n_reads; j++) {
            if (&all->at[i] == consumer || !tree_writes(all->at[i].block, consumer->block->reads[j].buffer) ||
                p == &all->at[i])
                continue;
            if (!p || all->at[i].order > p->order)
                p = &all->at[i];
        }
    return p ? p : sched_refuse(call, "'%s' reads no other stage", consumer->block->name);
}

/* Nothing else reads what P stores. */
static bool only_reader(sched_call *call, const tree_sites *all, const tree_site *reader,
                        const ir_buffer *buffer)
{
    for (int i = 0; i < all->n; i++)
        if (&all->at[i] != reader && tree_reads(all->at[i].block, buffer))
            return sched_refuse(call, "'%s' reads '%s' too", all->at[i].block->name, buffer->name);
    return true;
}

/* reverse_inline(Q): Q's expression moves into its producer's store. The last producer is the one to merge
 * with: the other inputs of Q are then complete, since P comes after them.
 *
 *     block P(i) { P[i] = A[i] * 2 };  block Q(i) { Q[i] = P[i] + B[i] }
 *     =>  block P(i) { Q[i] = A[i] * 2 + B[i] }
 *
 * The block keeps P's name and place, and the buffer P is gone. */
const ir_program *sched_do_reverse_inline(sched_call *call)
{
    sched_path from, at;
    stage_value vp, vq;

    if (!sched_need_block(call, call->arg[0].name, &from))
        return NULL;
    tree_sites all = tree_all_sites(call->cx, call->tree->body);
    const tree_site *q = tree_site_named(&all, call->arg[0].name), *p = last_producer(call, &all, q);
    if (!p || !read_value(call, q->block, &vq) || !read_value(call, p->block, &vp))
        return NULL;
    const char *reason = tree_not_idempotent(call->cx, q->block);
    if (reason)
        return sched_refuse(call, "'%s' cannot be inlined: %s", q->block->name, reason);
    if (!may_vanish(call, vp.buffer) || !not_shared(call, vq.buffer) ||
        !sched_need_only_writer(call, &all, p, vp.buffer) ||
        !sched_need_only_writer(call, &all, q, vq.buffer) || !only_reader(call, &all, q, vp.buffer))
        return NULL;
    const ir_block *block = merged(call, &vp, &vq);
    if (!block)
        return NULL;
    const ir_stmt *rest = sched_remove(call->cx, &from);
    if (!sched_find_block(call->cx, rest, p->block->name, &at))
        return NULL;
    rest = sched_rebuild(call->cx, &at, at.n - 1, sched_with_block(call->cx, sched_end(&at), block));
    /* Loops that only ever wrote what was private to them now write what others see. */
    if (!rest || !sched_reads_are_written(call, rest, p->block->name) ||
        !sched_still_independent(call, &at, rest))
        return NULL;
    return sched_drop_buffer(call->cx, sched_with_body(call, rest), vp.buffer);
}
