/* targets/source/fold.c -- launches whose blocks along y or z are more than a device takes.
 *
 *     for i in 0..70000 blockIdx.z { for j in 0..4 blockIdx.x { B[i * 4 + j] = ... } }
 *
 * Devices of CUDA take 2^31 - 1 blocks along x, but 65535 along y and z. The loops over blocks become one
 * along x, which counts all blocks:
 *
 *     for f in 0..280000 blockIdx.x { B[f div 4 * 4 + f mod 4] = ... }
 *
 * With a symbol n in place of 70000 the launch becomes two, one of which runs, so that the usual sizes cost
 * no division:
 *
 *     if n < 65536 { attribute launch(0) { for i in 0..n blockIdx.z ... } }
 *     else { attribute launch(1) { for f in 0..n * 4 blockIdx.x ... } }
 *
 * If other statements stand between the loops over blocks, they cannot become one. Then such a launch with
 * more blocks is refused: here, with the loop's name, if the extent is a constant, else when it is started.
 */
#include "ir/build.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "lower/launches.h"
#include "targets/source/source.h"

typedef struct {
    ir_rewrite rw;
    const ir_facts *facts; /* of the program, and of the loops around launches */
    int64_t most;          /* blocks along y and z */
    int n_launches;
} folder;

static bool is_limited(const ir_stmt *loop)
{
    return loop->loop.how == IR_BLOCK_Y || loop->loop.how == IR_BLOCK_Z;
}

static bool is_blocks(const ir_stmt *stmt)
{
    return stmt->kind == IR_FOR && stmt->loop.how >= IR_BLOCK_X && stmt->loop.how <= IR_BLOCK_Z;
}

typedef struct {
    ir_walk walk;
    const ir_stmt *found;
} finder;

static bool look_at(ir_walk *walk, const ir_stmt *stmt)
{
    finder *self = (finder *)walk;

    if (!is_blocks(stmt))
        return true;
    self->found = stmt;
    walk->stop = true;
    return false;
}

/* The first loop over blocks; NULL: there is none. */
static const ir_stmt *find_blocks(tec_context *cx, const ir_stmt *stmt)
{
    finder f = {.walk = {.cx = cx, .stmt = look_at, .expr = ir_skip_expr}};

    ir_walk_stmt(&f.walk, stmt);
    return f.found;
}

/* The loops over blocks that stand directly inside of each other, the outermost first; gives what is
 * inside. */
static const ir_stmt *take_chain(tec_context *cx, const ir_stmt *body, base_vec *chain)
{
    while (is_blocks(body)) {
        base_push(cx, chain, body);
        body = body->loop.body;
    }
    return body;
}

/* Whether all loops have few enough blocks, as a condition; NULL: it is proven. *never: it is refuted. */
static const ir_expr *within(const folder *self, const base_vec *chain, bool *never)
{
    tec_context *cx = self->rw.cx;
    const ir_expr *all = NULL;

    *never = false;
    for (int i = 0; i < chain->n; i++) {
        const ir_stmt *loop = chain->at[i];
        ir_interval extent = ir_bounds(self->facts, loop->loop.extent);

        if (!is_limited(loop) || extent.max <= self->most)
            continue;
        *never = *never || extent.min > self->most;
        all = ir_all(cx, all, ir_le(cx, loop->loop.extent, ir_int(cx, self->most)));
    }
    return all;
}

/* The example of the file. Extents are known before the launch, so none depends on a loop of the chain. */
static const ir_stmt *fold(folder *self, const base_vec *chain, const ir_stmt *inside)
{
    tec_context *cx = self->rw.cx;
    const ir_stmt *first = chain->at[0];
    const ir_expr *all = ir_int(cx, 1), *var, *rest;
    ir_subst map = {0};

    for (int i = 0; i < chain->n; i++)
        all = ir_mul(cx, all, ((const ir_stmt *)chain->at[i])->loop.extent);
    all = ir_simplify(self->facts, all);
    if (ir_bounds(self->facts, all).min > INT32_MAX)
        return base_fail(cx, TEC_UNSUPPORTED, first->loc,
                         "the loops over blocks from '%s' inwards have %s iterations: expected at most %d",
                         first->loop.var->var.name, ir_expr_text(cx, all), INT32_MAX);
    var = ir_var(cx, base_format(cx, "%s.blocks", first->loop.var->var.name), first->loop.var->dtype);
    rest = var;
    for (int i = chain->n - 1; i >= 0; i--) {
        const ir_stmt *loop = chain->at[i];
        const ir_expr *index = i ? ir_floormod(cx, rest, loop->loop.extent) : rest;

        base_map_put(cx, &map.vars, loop->loop.var, ir_add(cx, loop->loop.min, index));
        rest = ir_floordiv(cx, rest, loop->loop.extent);
    }
    return ir_for(cx, var, ir_int(cx, 0), all, IR_BLOCK_X, ir_apply_stmt(cx, &map, inside));
}

/* A loop inside of a launch that has too many blocks by its constant extent, and cannot be folded. */
static bool refuse_inside(const folder *self, const ir_stmt *inside)
{
    const ir_stmt *loop = find_blocks(self->rw.cx, inside);

    if (!loop || !is_limited(loop) || ir_bounds(self->facts, loop->loop.extent).min <= self->most)
        return false;
    base_fail(self->rw.cx, TEC_UNSUPPORTED, loop->loc,
              "the loop '%s' over blocks has %s iterations: expected at most %lld along y and z, or a loop "
              "directly inside of the other loops over blocks",
              loop->loop.var->var.name, ir_expr_text(self->rw.cx, loop->loop.extent), (long long)self->most);
    return true;
}

static const ir_stmt *launch(folder *self, const ir_stmt *body)
{
    return ir_attribute(self->rw.cx, LOWER_LAUNCH, ir_int(self->rw.cx, self->n_launches++), body);
}

/* One launch, or two of which a condition chooses one. Loops of two launches have variables of their own. */
static const ir_stmt *fold_launch(folder *self, const ir_stmt *body)
{
    tec_context *cx = self->rw.cx;
    base_vec chain = {0};
    const ir_stmt *inside = take_chain(cx, body, &chain);
    bool never;
    const ir_expr *few = within(self, &chain, &never);

    if (refuse_inside(self, inside))
        return NULL;
    if (!few || find_blocks(cx, inside))
        return launch(self, body);
    if (never)
        return launch(self, fold(self, &chain, inside));
    const ir_stmt *plain = launch(self, body), *folded = fold(self, &chain, inside);
    return folded ? ir_if(cx, few, plain, launch(self, ir_rename(cx, folded))) : NULL;
}

/* Launches are numbered anew in the order of the text. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    folder *self = (folder *)rw;
    const ir_facts *before = self->facts;

    if (stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, LOWER_LAUNCH))
        return fold_launch(self, stmt->attribute.body);
    if (stmt->kind == IR_FOR)
        self->facts = ir_facts_inside(self->facts, stmt, false);
    stmt = ir_rewrite_stmt_children(rw, stmt);
    self->facts = before;
    return stmt;
}

const ir_program *source_fold(tec_context *cx, const ir_program *program, int64_t most)
{
    folder self = {.rw = {.cx = cx, .expr = ir_keep_expr, .stmt = visit, .no_memo = true},
                   .facts = ir_facts_of_program(cx, program),
                   .most = most};
    ir_program *out = ir_program_copy(cx, program);

    out->body = ir_rewrite_stmt(&self.rw, program->body);
    return base_failed(cx) ? NULL : out;
}
