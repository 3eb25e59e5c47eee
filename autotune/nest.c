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
static void count_op(tune_work *work, const ir_expr *expr)
{
    bool real = base_is_float(expr->dtype);

    switch (expr->op) {
    case IR_ADD:
    case IR_SUB:
    case IR_NEG: *(real ? &work->add : &work->integer) += 1; return;
    case IR_MUL: *(real ? &work->mul : &work->integer) += 1; return;
    case IR_FMA:
        work->add += 1;
        work->mul += 1;
        return;
    case IR_DIV:
    case IR_SQRT:
    case IR_RSQRT: *(real ? &work->div : &work->integer) += 1; return;
    case IR_MIN:
    case IR_MAX:
    case IR_ABS:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_ROUND:
    case IR_COPYSIGN: *(real ? &work->minmax : &work->integer) += 1; return;
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
    case IR_ISINF: work->compare += 1; return;
    case IR_SELECT: work->select += 1; return;
    case IR_CAST:
    case IR_REINTERPRET: work->cast += 1; return;
    case IR_CALL: work->math += 1; return;
    default:
        if (ir_is_op(expr->op) && expr->op != IR_LIKELY)
            *(real ? &work->math : &work->integer) += 1;
        return;
    }
}

typedef struct {
    ir_walk walk;
    tune_work work;
} condition_counter;

static bool count_condition(ir_walk *walk, const ir_expr *expr)
{
    count_op(&((condition_counter *)walk)->work, expr);
    return true;
}

/* What a padding asks of each element, 0 where values decide. */
static double bounds_of(tec_context *cx, const ir_expr *expr)
{
    condition_counter c = {.walk = {.expr = count_condition, .cx = cx}};

    if (expr->op != IR_SELECT || ir_loads(cx, expr->arg[0]))
        return 0;
    ir_walk_expr(&c.walk, expr->arg[0]);
    return 1 + tune_operations(&c.work);
}

static bool count_expr(ir_walk *walk, const ir_expr *expr)
{
    counter *c = (counter *)walk;

    count_op(&c->statement->work, expr);
    c->statement->work.bounds += bounds_of(walk->cx, expr);
    if (expr->op == IR_LET)
        tune_mean(c->scope, expr->let.var, expr->let.value);
    if (expr->op == IR_LOAD || (expr->op == IR_CALL && expr->call.n_buffers))
        base_push(walk->cx, &c->loads, expr);
    return expr->op != IR_LOAD; /* indices are no work on data */
}

/* ---- statements ---- */

/* Loops that run a reduction of the block. */
static void read_reductions(reader *in, tune_statement *statement)
{
    bool *reduces = base_array(in->cx, bool, statement->n_loops + 1);

    for (int i = 0; in->block && i < in->block->n_iters; i++)
        if (in->block->iters[i].kind == IR_REDUCE_ITER)
            tune_depends(&in->scope, in->block->iters[i].var, reduces);
    for (int i = 0; i < statement->n_loops; i++)
        statement->loop[i].reduce = reduces[i];
}

static void read_steps(tec_context *cx, tune_statement *statement)
{
    statement->steps = base_array(cx, double, statement->n_loops + 1);
    statement->steps[statement->n_loops] = 1;
    for (int p = statement->n_loops - 1; p >= 0; p--)
        statement->steps[p] = statement->steps[p + 1] * statement->loop[p].extent;
}

static void read_conditions(reader *in, tune_statement *statement)
{
    statement->guards = in->conditions.n;
    statement->guarded = base_array(in->cx, bool, statement->n_loops + 1);
    for (int i = 0; i < in->conditions.n; i++)
        tune_depends(&in->scope, in->conditions.at[i], statement->guarded);
}

/* A statement that holds no other one, with a copy of the loops around it at this moment. */
static tune_statement *open_statement(reader *in)
{
    tune_statement *l = base_new(in->cx, tune_statement);

    l->block = in->block;
    l->n_loops = in->scope.n;
    l->loop = base_array(in->cx, tune_loop, l->n_loops + 1);
    for (int i = 0; i < l->n_loops; i++)
        l->loop[i] = in->scope.loop[i];
    l->domain = in->blocks == 1 ? in->domain : 0;
    read_steps(in->cx, l);
    read_reductions(in, l);
    read_conditions(in, l);
    base_push(in->cx, &in->statements, l);
    return l;
}

/* The targets of a statement, with `n` indices each, then what its values read. */
static void read_statement(reader *in, const ir_stmt *stmt, const ir_buffer *const *written, int n_written,
                           const ir_expr *const *index, const ir_expr *const *value, int n_values)
{
    tune_statement *l = open_statement(in);
    counter c = {.walk = {.cx = in->cx, .expr = count_expr}, .statement = l, .scope = &in->scope};

    for (int i = 0; i < n_values; i++)
        ir_walk_expr(&c.walk, value[i]);
    if (stmt->kind == IR_UPDATE)
        for (int i = 0; i < stmt->update.combiner->n; i++)
            ir_walk_expr(&c.walk, stmt->update.combiner->result[i]);
    l->update = stmt->kind == IR_UPDATE;
    tune_read_accesses(&in->scope, l, written, n_written, index, &c.loads);
}

static void read_stmt(reader *in, const ir_stmt *stmt);

static void read_loop(reader *in, const ir_stmt *stmt)
{
    int n = in->scope.n;

    tune_enter_loop(&in->scope, stmt);
    read_stmt(in, stmt->loop.body);
    in->scope.n = n;
}

/* Bindings tell what the iteration variables mean; conjuncts of the predicate are guards of the statements
 * inside. */
static void read_block(reader *in, const ir_stmt *stmt)
{
    const ir_block *block = stmt->block.block, *outer = in->block;
    int conditions = in->conditions.n;
    double domain = in->domain;

    in->domain = 1;
    for (int i = 0; i < block->n_iters; i++) {
        tune_mean(&in->scope, block->iters[i].var, stmt->block.bind[i]);
        in->domain *= tune_value(&in->scope, block->iters[i].extent);
    }
    for (const ir_expr *w = stmt->block.where; w; w = w->op == IR_AND ? w->arg[0] : NULL)
        base_push(in->cx, &in->conditions, w->op == IR_AND ? w->arg[1] : w);
    in->block = block;
    in->blocks++;
    read_stmt(in, block->body);
    in->blocks--;
    in->block = outer;
    in->domain = domain;
    in->conditions.n = conditions;
}

static void read_branch(reader *in, const ir_stmt *stmt)
{
    base_push(in->cx, &in->conditions, stmt->branch.cond);
    read_stmt(in, stmt->branch.then);
    if (stmt->branch.otherwise)
        read_stmt(in, stmt->branch.otherwise);
    in->conditions.n--;
}

/* Walks down to the innermost statements. */
static void read_stmt(reader *in, const ir_stmt *stmt)
{
    switch (stmt->kind) {
    case IR_FOR: read_loop(in, stmt); return;
    case IR_BLOCK: read_block(in, stmt); return;
    case IR_STORE:
        read_statement(in, stmt, &stmt->store.buffer, 1, stmt->store.index, &stmt->store.value, 1);
        return;
    case IR_UPDATE:
        read_statement(in, stmt, stmt->update.buffer, stmt->update.combiner->n, stmt->update.index,
                       stmt->update.source, stmt->update.combiner->n);
        return;
    case IR_EVALUATE: read_statement(in, stmt, NULL, 0, NULL, &stmt->value, 1); return;
    case IR_LET_STMT:
        tune_mean(&in->scope, stmt->let.var, stmt->let.value);
        read_stmt(in, stmt->let.body);
        return;
    case IR_ALLOCATE: read_stmt(in, stmt->allocate.body); return;
    case IR_ATTRIBUTE: read_stmt(in, stmt->attribute.body); return;
    case IR_IF: read_branch(in, stmt); return;
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            read_stmt(in, stmt->seq.stmt[i]);
        return;
    case IR_ASSERT: return;
    }
}

void tune_read_nest(tec_context *cx, const ir_program *program, const int64_t *dims, tune_nest *out)
{
    reader r = {.cx = cx};

    tune_open_scope(cx, program, dims, &r.scope);
    read_stmt(&r, program->body);
    *out = (tune_nest){.statement = (tune_statement **)r.statements.at, .n = r.statements.n};
    tune_place_buffers(&r.scope, program, out);
}
