/* lower/blocks.c -- replaces each block by what it does: bindings substituted, predicate tested, updates
 * written as stores.
 *
 *     block C(y = yo*8 + yi, k reduce = k) where yo*8 + yi < n {      if yo*8 + yi < n {
 *       C[y] sum= A[y, k]                                         =>    C[yo*8 + yi] = C[yo*8 + yi] + A[yo*8
 *                                                                         + yi, k]
 *     }                                                               }
 *
 * requires  no block has an init
 * provides  no block or update is left
 * breaks    nothing
 *
 * An update of a tuple loads all targets, combines all, then stores all: (V[i], I[i]) argmax= (e, k) must not
 * store V before I was combined. A binding that is no variable or constant and is used often would be written
 * out often; the simplifier canonicalises indices anyway, and equal ones are shared again by lower/share.c,
 * so it is substituted all the same.
 */
#include "lower/util.h"

/* How often the combiner's results use a parameter. */
typedef struct {
    ir_walk walk;
    const ir_expr *var;
    int n;
} counter;

static bool count_use(ir_walk *walk, const ir_expr *expr)
{
    counter *c = (counter *)walk;

    c->n += expr == c->var;
    return true;
}

static int uses(tec_context *cx, const ir_combiner *combiner, const ir_expr *var)
{
    counter count = {.walk = {.expr = count_use, .every = true, .cx = cx}, .var = var};

    for (int i = 0; i < combiner->n; i++)
        ir_walk_expr(&count.walk, combiner->result[i]);
    return count.n;
}

static bool is_atom(const ir_expr *expr)
{
    return expr->op == IR_VAR || expr->op == IR_INT || expr->op == IR_FLOAT;
}

/* Statements around a body: lets that were needed on the way, outermost first. */
typedef struct {
    base_vec vars, values;
} lets;

/* `bound` collects the names in order of evaluation; wrap puts them around the stores. NULL stays NULL, for
 * errors. */
static const ir_expr *name_it(tec_context *cx, lets *bound, const char *name, const ir_expr *value)
{
    if (!value)
        return NULL;

    const ir_expr *var = ir_let_var(cx, name, value);
    base_push(cx, &bound->vars, var);
    base_push(cx, &bound->values, value);
    return var;
}

static const ir_stmt *wrap(tec_context *cx, const lets *bound, const ir_stmt *body)
{
    for (int i = bound->vars.n - 1; i >= 0; i--)
        body = ir_let_stmt(cx, bound->vars.at[i], bound->values.at[i], body);
    return body;
}

/* A parameter of the combiner becomes `value`, through a let where it is used more than once. */
static void bind(tec_context *cx, const ir_combiner *combiner, ir_subst *map, lets *bound,
                 const ir_expr *param, const ir_expr *value)
{
    if (value && !is_atom(value) && uses(cx, combiner, param) > 1)
        value = name_it(cx, bound, param->var.name, value);
    base_map_put(cx, &map->vars, param, value);
}

/* For one result the combiner's text is written into the store. For a tuple each result is named first:
 * stores come after all loads and all combinations.
 *
 *     (V[i], I[i]) argmax= (e, k)    =>    let x = V[i], j = I[i] in
 *                                          let v = max(x, e) in let w = select(e > x, k, j) in
 *                                          { V[i] = v; I[i] = w }
 *
 * If `V[i] = v` stood before the second combination, that one would compare e with the new V[i]. */
static const ir_stmt *lower_update(tec_context *cx, const ir_stmt *stmt)
{
    const ir_combiner *combiner = stmt->update.combiner;
    ir_subst map = {0};
    lets l = {0};
    const ir_stmt **store = base_array(cx, const ir_stmt *, combiner->n);
    const ir_expr **result = base_array(cx, const ir_expr *, combiner->n);

    for (int i = 0; i < combiner->n; i++) {
        bind(cx, combiner, &map, &l, combiner->x[i],
             ir_load(cx, stmt->update.buffer[i], stmt->update.index, stmt->update.n));
        bind(cx, combiner, &map, &l, combiner->y[i], stmt->update.source[i]);
    }
    for (int i = 0; i < combiner->n; i++) {
        result[i] = ir_apply(cx, &map, combiner->result[i]);
        if (combiner->n > 1)
            result[i] = name_it(cx, &l, stmt->update.buffer[i]->name, result[i]);
    }
    for (int i = 0; i < combiner->n; i++)
        store[i] = ir_store(cx, stmt->update.buffer[i], result[i], stmt->update.index, stmt->update.n);
    return wrap(cx, &l, ir_seq(cx, store, combiner->n));
}

/* What a pipelined loop around has to know of the block (lower/overlap.c). */
static const ir_stmt *keep_note(tec_context *cx, const ir_block *block, const char *key, const ir_stmt *body)
{
    const ir_expr *value = ir_note_get(block->notes, key);

    return body && value ? ir_attribute(cx, key, value, body) : body;
}

/* Children first: a block may contain blocks, whose bindings are over the iteration variables of the outer
 * one. */
static const ir_stmt *lower_block(ir_rewrite *rw, const ir_stmt *stmt)
{
    tec_context *cx = rw->cx;
    const ir_block *block = stmt->block.block;
    ir_subst map = {0};

    if (block->init)
        return base_fail(cx, TEC_INTERNAL, block->loc,
                         "the initialisation of block '%s' was not moved out of the block", block->name);
    const ir_stmt *body = ir_rewrite_stmt(rw, block->body);
    if (!body)
        return NULL;
    for (int i = 0; i < block->n_iters; i++)
        base_map_put(cx, &map.vars, block->iters[i].var, stmt->block.bind[i]);
    body = ir_apply_stmt(cx, &map, body);
    body = keep_note(cx, block, "pipeline_stage",
                     keep_note(cx, block, "pipeline_order", keep_note(cx, block, "pipeline_async", body)));
    return body && stmt->block.where && !BASE_PLANT_ON(cx, blocks_where)
               ? ir_if(cx, stmt->block.where, body, NULL)
               : body;
}

static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    ir_at(rw->cx, stmt->loc);
    if (stmt->kind == IR_BLOCK)
        return lower_block(rw, stmt);
    if (stmt->kind == IR_UPDATE)
        return lower_update(rw->cx, stmt);
    return ir_rewrite_stmt_children(rw, stmt);
}

const ir_program *lower_blocks(const lower_options *options, const ir_program *program)
{
    ir_rewrite rw = {.cx = options->cx, .stmt = visit};

    return lower_with_body(options->cx, program, ir_rewrite_stmt(&rw, program->body));
}
