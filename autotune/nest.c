/* autotune/nest.c -- the innermost statements of a loop tree, with their loops and operations. See
 * statement.h.
 *
 * One walk down the tree keeps the loops around and what each variable stands for (`meaning`: a loop, or the
 * expression that a block or let binds it to); a statement takes a copy of the loops. Loops of one iteration
 * are none.
 */
#include "autotune/touch.h"
#include "ir/walk.h"

typedef struct {
    tec_context *cx;
    tune_scope scope; /* loops and meanings at this place */
    const ir_block *block;
    double domain;
    int blocks;          /* around this place */
    base_vec conditions; /* around this place: ir_expr * */
    base_vec statements;
} reader;

/* ---- operations ---- */

typedef struct {
    ir_walk walk;
    tune_statement *statement;
    tune_scope *scope;
    base_vec loads;
} counter;

/* Counts an operation in its class; integers are one class, since they are mostly index arithmetic. */
static void count_op(tune_work *w, const ir_expr *e)
{
    bool real = base_is_float(e->dtype);

    switch (e->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_NEG: *(real ? &w->add : &w->integer) += 1; return;
    case IR_MUL: *(real ? &w->mul : &w->integer) += 1; return;
    case IR_FMA:
        w->add += 1;
        w->mul += 1;
        return;
    case IR_DIV:
    case IR_SQRT:
    case IR_RSQRT: *(real ? &w->div : &w->integer) += 1; return;
    case IR_MIN:
    case IR_MAX:
    case IR_ABS:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_ROUND:
    case IR_COPYSIGN: *(real ? &w->minmax : &w->integer) += 1; return;
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
    case IR_AND:
    case IR_OR:
    case IR_NOT:
    case IR_ISNAN:
    case IR_ISINF: w->compare += 1; return;
    case IR_SELECT: w->select += 1; return;
    case IR_CAST:
    case IR_REINTERPRET: w->cast += 1; return;
    case IR_CALL: w->math += 1; return;
    default:
        if (ir_is_op(e->op) && e->op != IR_LIKELY)
            *(real ? &w->math : &w->integer) += 1;
        return;
    }
}

typedef struct {
    ir_walk walk;
    tune_work work;
} condition_counter;

static bool count_condition(ir_walk *walk, const ir_expr *e)
{
    count_op(&((condition_counter *)walk)->work, e);
    return true;
}

/* What a padding asks of each element, 0 where values decide. */
static double bounds_of(tec_context *cx, const ir_expr *e)
{
    condition_counter c = {.walk = {.expr = count_condition, .cx = cx}};

    if (e->op != IR_SELECT || ir_loads(cx, e->arg[0]))
        return 0;
    ir_walk_expr(&c.walk, e->arg[0]);
    return 1 + tune_operations(&c.work);
}

static bool count_expr(ir_walk *walk, const ir_expr *e)
{
    counter *c = (counter *)walk;

    count_op(&c->statement->work, e);
    c->statement->work.bounds += bounds_of(walk->cx, e);
    if (e->op == IR_LET)
        tune_mean(c->scope, e->let.var, e->let.value);
    if (e->op == IR_LOAD || (e->op == IR_CALL && e->call.n_buffers))
        base_push(walk->cx, &c->loads, e);
    return e->op != IR_LOAD; /* indices are no work on data */
}

/* ---- statements ---- */

/* Loops that run a reduction of the block. */
static void read_reductions(reader *r, tune_statement *l)
{
    bool *reduces = base_array(r->cx, bool, l->n_loops + 1);

    for (int i = 0; r->block && i < r->block->n_iters; i++)
        if (r->block->iters[i].kind == IR_REDUCE_ITER)
            tune_depends(&r->scope, r->block->iters[i].var, reduces);
    for (int i = 0; i < l->n_loops; i++)
        l->loop[i].reduce = reduces[i];
}

static void read_steps(tec_context *cx, tune_statement *l)
{
    l->steps = base_array(cx, double, l->n_loops + 1);
    l->steps[l->n_loops] = 1;
    for (int p = l->n_loops - 1; p >= 0; p--)
        l->steps[p] = l->steps[p + 1] * l->loop[p].extent;
}

static void read_conditions(reader *r, tune_statement *l)
{
    l->guards = r->conditions.n;
    l->guarded = base_array(r->cx, bool, l->n_loops + 1);
    for (int i = 0; i < r->conditions.n; i++)
        tune_depends(&r->scope, r->conditions.at[i], l->guarded);
}

/* A statement that holds no other one, with a copy of the loops around it at this moment. */
static tune_statement *open_statement(reader *r)
{
    tune_statement *l = base_new(r->cx, tune_statement);

    l->block = r->block;
    l->n_loops = r->scope.n;
    l->loop = base_array(r->cx, tune_loop, l->n_loops + 1);
    for (int i = 0; i < l->n_loops; i++)
        l->loop[i] = r->scope.loop[i];
    l->domain = r->blocks == 1 ? r->domain : 0;
    read_steps(r->cx, l);
    read_reductions(r, l);
    read_conditions(r, l);
    base_push(r->cx, &r->statements, l);
    return l;
}

/* The targets of a statement, with `n` indices each, then what its values read. */
static void read_statement(reader *r, const ir_stmt *s, const ir_buffer *const *written, int n_written,
                           const ir_expr *const *index, const ir_expr *const *value, int n_values)
{
    tune_statement *l = open_statement(r);
    counter c = {.walk = {.cx = r->cx, .expr = count_expr}, .statement = l, .scope = &r->scope};

    for (int i = 0; i < n_values; i++)
        ir_walk_expr(&c.walk, value[i]);
    if (s->kind == IR_UPDATE)
        for (int i = 0; i < s->update.combiner->n; i++)
            ir_walk_expr(&c.walk, s->update.combiner->result[i]);
    l->update = s->kind == IR_UPDATE;
    tune_read_accesses(&r->scope, l, written, n_written, index, &c.loads);
}

static void read_stmt(reader *r, const ir_stmt *s);

static void read_loop(reader *r, const ir_stmt *s)
{
    int n = r->scope.n;

    tune_enter_loop(&r->scope, s);
    read_stmt(r, s->loop.body);
    r->scope.n = n;
}

/* Bindings tell what the iteration variables mean; conjuncts of the predicate are guards of the statements
 * inside. */
static void read_block(reader *r, const ir_stmt *s)
{
    const ir_block *b = s->block.block, *outer = r->block;
    int conditions = r->conditions.n;
    double domain = r->domain;

    r->domain = 1;
    for (int i = 0; i < b->n_iters; i++) {
        tune_mean(&r->scope, b->iters[i].var, s->block.bind[i]);
        r->domain *= tune_value(&r->scope, b->iters[i].extent);
    }
    for (const ir_expr *w = s->block.where; w; w = w->op == IR_AND ? w->arg[0] : NULL)
        base_push(r->cx, &r->conditions, w->op == IR_AND ? w->arg[1] : w);
    r->block = b;
    r->blocks++;
    read_stmt(r, b->body);
    r->blocks--;
    r->block = outer;
    r->domain = domain;
    r->conditions.n = conditions;
}

static void read_branch(reader *r, const ir_stmt *s)
{
    base_push(r->cx, &r->conditions, s->branch.cond);
    read_stmt(r, s->branch.then);
    if (s->branch.otherwise)
        read_stmt(r, s->branch.otherwise);
    r->conditions.n--;
}

/* Walks down to the innermost statements. */
static void read_stmt(reader *r, const ir_stmt *s)
{
    switch (s->kind) {
    case IR_FOR: read_loop(r, s); return;
    case IR_BLOCK: read_block(r, s); return;
    case IR_STORE: read_statement(r, s, &s->store.buffer, 1, s->store.index, &s->store.value, 1); return;
    case IR_UPDATE:
        read_statement(r, s, s->update.buffer, s->update.combiner->n, s->update.index, s->update.source,
                       s->update.combiner->n);
        return;
    case IR_EVALUATE: read_statement(r, s, NULL, 0, NULL, &s->value, 1); return;
    case IR_LET_STMT:
        tune_mean(&r->scope, s->let.var, s->let.value);
        read_stmt(r, s->let.body);
        return;
    case IR_ALLOCATE: read_stmt(r, s->allocate.body); return;
    case IR_ATTRIBUTE: read_stmt(r, s->attribute.body); return;
    case IR_IF: read_branch(r, s); return;
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            read_stmt(r, s->seq.stmt[i]);
        return;
    case IR_ASSERT: return;
    }
}

void tune_read_nest(tec_context *cx, const ir_program *p, const int64_t *dims, tune_nest *out)
{
    reader r = {.cx = cx};

    tune_open_scope(cx, p, dims, &r.scope);
    read_stmt(&r, p->body);
    *out = (tune_nest){.statement = (tune_statement **)r.statements.at, .n = r.statements.n};
    tune_place_buffers(&r.scope, p, out);
}
