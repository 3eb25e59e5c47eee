/* lower/tensors.c -- nests that are tensorized become calls of their intrinsics, with operands by buffer,
 * offset and strides.
 *
 *     attribute tensorize("dot.update") {                     evaluate call<i32> dot.update(&A, &B, &C,
 *                                                               yo*16, ..., yo*16)
 *       for i in 0..16 { C[yo*16 + i] = C[yo*16 + i] + ... }      =>
 *     }                                                       or, of a function:  assert call<i32> dot(&A,
 *                                                               ...) == 0
 *
 * requires  no block is left; buffers have the shapes that they are allocated with
 * provides  no tensorized nest is left
 * breaks    nothing
 *
 * The nest is matched with the intrinsic's meaning as tensorize did, both lowered to stores. What does not
 * match any more is the user's error, since only a step after tensorize can have changed the nest or the
 * strides of an operand.
 */
#include "ir/region/match.h"
#include "lower/util.h"

typedef struct {
    ir_rewrite rw;
    const lower_options *o;
    const ir_program *p;
    const ir_facts *f;
    base_vec intrinsics; /* of the new program */
} binder;

static const ir_intrinsic *listed(const base_vec *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (base_same(((const ir_intrinsic *)list->at[i])->name, name))
            return list->at[i];
    return NULL;
}

/* The meaning as it looks after the passes that stand before this one. */
static const ir_program *stores_of(binder *self, const ir_program *meaning)
{
    const ir_program *p = lower_init(self->o, meaning);

    return p ? lower_blocks(self->o, p) : NULL;
}

/* A function stands in the list under its own name. The function is listed under its own name, once for all
 * intrinsics that call it; two different meanings of one function would be a contradiction, and are
 * refused. */
static const ir_stmt *call_function(binder *self, const ir_intrinsic *in, const char *function,
                                    const ir_match *match)
{
    tec_context *cx = self->rw.cx;
    const ir_intrinsic *known = listed(&self->intrinsics, function);

    if (!known) {
        ir_intrinsic *named = base_copy(cx, in, sizeof *in);
        named->name = function;
        named->text = NULL;
        known = named;
        base_push(cx, &self->intrinsics, named);
    }
    if (!ir_same_program(cx, known->meaning, in->meaning))
        return base_fail(cx, TEC_INVALID, base_where(cx),
                         "the function '%s' has two meanings; one of them belongs to '%s'", function,
                         in->name);
    /* match speaks of the operands of `in` */
    const ir_expr *call = ir_match_call(cx, in, match), *zero = ir_imm_int(cx, BASE_I32, 0);
    if (call)
        call = ir_call(cx, call->dtype, function, known, call->call.arg, call->call.n, call->call.buffer,
                       call->call.n_buffers, false);
    return call ? ir_assert(cx, ir_eq(cx, call, zero),
                            base_format(cx, "the function '%s' of intrinsic '%s' failed", function, in->name))
                : NULL;
}

/* The nest is matched a second time, now that strides and offsets are final: the match gives the operands. */
static const ir_stmt *bind_nest(binder *self, const ir_stmt *stmt)
{
    tec_context *cx = self->rw.cx;
    const ir_expr *name = stmt->attribute.value;
    const ir_intrinsic *in = name->op == IR_STRING ? listed(&self->intrinsics, name->string) : NULL;
    const ir_program *meaning = in && in->meaning ? stores_of(self, in->meaning) : NULL;
    ir_match m;

    if (!in || !meaning)
        return base_fail(cx, TEC_INVALID, stmt->loc, "the program has no intrinsic %s",
                         ir_expr_text(cx, name));
    if (!ir_match_nest(self->f, meaning, stmt->attribute.body, &m))
        return base_fail(cx, TEC_INVALID, stmt->loc,
                         "the loops that were tensorized no longer match '%s': %s", in->name, m.reason);
    if (BASE_PLANT_ON(cx, tensors_offset))
        m.operand[0].offset = ir_int(cx, 0);
    const char *function = ir_intrinsic_function(cx, in);
    if (function)
        return call_function(self, in, function, &m);
    const ir_expr *call = ir_match_call(cx, in, &m);
    return call ? ir_evaluate(cx, call) : NULL;
}

static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    binder *b = (binder *)rw;
    const ir_facts *outer = b->f;

    if (stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, IR_TENSORIZE)) {
        ir_at(rw->cx, stmt->loc);
        return bind_nest(b, stmt);
    }
    b->f = lower_inside(outer, stmt);
    const ir_stmt *out = ir_rewrite_stmt_children(rw, stmt);
    b->f = outer;
    return out;
}

typedef struct {
    ir_walk walk;
    bool found;
} finder;

static bool find(ir_walk *walk, const ir_stmt *stmt)
{
    finder *f = (finder *)walk;

    f->found = f->found || (stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, IR_TENSORIZE));
    return !f->found;
}

/* A program without tensorized nests is left at once. */
const ir_program *lower_tensors(const lower_options *options, const ir_program *program)
{
    binder b = {.rw = {.cx = options->cx, .stmt = visit, .no_memo = true}, .o = options, .p = program};
    finder f = {.walk = {.cx = options->cx, .stmt = find}};

    ir_walk_stmt(&f.walk, program->body);
    if (!f.found)
        return program;
    b.f = ir_facts_of_program(options->cx, program);
    for (int i = 0; i < program->n_intrinsics; i++)
        base_push(options->cx, &b.intrinsics, (void *)program->intrinsics[i]);
    const ir_stmt *body = ir_rewrite_stmt(&b.rw, program->body);
    if (!body)
        return NULL;
    ir_program *out = ir_program_copy(options->cx, program);
    out->body = body;
    out->intrinsics = (const ir_intrinsic *const *)b.intrinsics.at;
    out->n_intrinsics = b.intrinsics.n;
    return out;
}
