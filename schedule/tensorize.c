/* schedule/tensorize.c -- a piece of the tree is written as a tensor intrinsic.
 *
 *     for yi in 0..16 { for ki in 0..4 {                     block C(y = yo, k reduce = ko) {
 *       block C(y = yo*16 + yi, k reduce = ko*4 + ki) {  =>    init { attribute tensorize("dot.reset") {
 *                                                                for i ... } }
 *         init { ... }                                         attribute tensorize("dot.update") {
 *                                                                for i ... C[...] sum= ... }
 *         C[y] sum= ... } } }                                }
 *
 * The nests stay as they are: they are what the intrinsic means, so every check, and the interpreter, sees a
 * plain program. That they do match is proven here (ir/region/match.h), and lower/tensors.c binds the
 * operands, by the same proof, once memory is laid out.
 */
#include "hardware/hardware.h"
#include "ir/build.h"
#include "ir/region/match.h"
#include "ir/walk.h"
#include "schedule/rewrite.h"

typedef struct {
    sched_call *c;
    tec_context *cx;
    const ir_facts *f;
    const te_intrinsic *in;
    base_vec used; /* ir_intrinsic * */
} tensorizing;

/* ---- the intrinsic ---- */

/* Intrinsics of the file come first and may have the name of one of the hardware. `missing` says that the
 * hardware has such an intrinsic, but this target lacks what it needs. */
static const te_intrinsic *find_intrinsic(sched_call *call, const char *name)
{
    const te_intrinsic *in = call->s->intrinsics ? te_intrinsic_named(call->s->intrinsics, name) : NULL;
    const char *missing = NULL;

    if (in)
        return in;
    in = hw_intrinsic(call->cx, name, call->s->target, &missing);
    if (missing)
        return sched_refuse(call, "%s", missing);
    return in ? in
              : sched_refuse(call, "there is no intrinsic '%s': expected an intrinsic of the file, or %s",
                             name, hw_names(call->cx, call->s->target));
}

/* ---- matching ---- */

/* What the form is written as must be something that lowering can write. */
static bool has_text(tensorizing *self, const ir_intrinsic *in, const char **reason)
{
    int group;

    if (ir_intrinsic_instruction(self->cx, in, &group)) {
        if (!self->c->s->target || target_offers(self->c->s->target, TARGET_THREADS))
            return true;
        *reason = base_format(self->cx, "'%s' is an instruction of GPUs, and the target is '%s'", in->name,
                              target_text(self->cx, self->c->s->target));
        return false;
    }
    if (ir_intrinsic_function(self->cx, in) || ir_intrinsic_program(self->cx, in))
        return true;
    *reason = base_format(
        self->cx,
        "what '%s' is written as is neither 'call FUNCTION', an instruction nor statements of the IR: %s",
        in->name, tec_context_error(self->cx));
    tec_context_clear(self->cx);
    return false;
}

/* ---- products in tf32 ---- */

/* The value rounded as tensor cores round it, in the words of hardware/cuda_mma.c. */
static const ir_expr *as_tf32(tec_context *cx, const ir_expr *value)
{
    const ir_expr *bits = ir_reinterpret(cx, BASE_U32, value);
    const ir_expr *up = ir_add(cx, bits, ir_imm_int(cx, BASE_U32, 4096));

    return ir_reinterpret(cx, BASE_F32, ir_bitand(cx, up, ir_imm_int(cx, BASE_U32, 4294959104)));
}

/* Each product of f32 that is added up, of factors rounded to tf32. */
static const ir_stmt *round_products(ir_rewrite *rw, const ir_stmt *stmt)
{
    const ir_stmt *update = stmt->kind == IR_UPDATE ? stmt : NULL;
    const ir_expr *value = update && update->update.combiner->n == 1 ? update->update.source[0] : NULL;

    if (!value || value->op != IR_MUL || !base_dtype_same(value->dtype, BASE_F32))
        return ir_rewrite_stmt_children(rw, stmt);
    const ir_expr *rounded = ir_mul(rw->cx, as_tf32(rw->cx, value->arg[0]), as_tf32(rw->cx, value->arg[1]));
    return rounded ? ir_update(rw->cx, update->update.combiner, update->update.buffer, update->update.index,
                               update->update.n, &rounded)
                   : NULL;
}

typedef enum { NO_FIT, NEEDS_PRECISION, ROUNDED } rounded_fit;

/* Where the target's precision lets tensor cores round, a nest that fits the form but for the rounding
 * becomes the rounding one: what stands in the tree stays what the kernel computes. */
static rounded_fit fits_rounded(tensorizing *self, const ir_intrinsic *in, const ir_stmt **nest, ir_match *m)
{
    const target *machine = self->c->s->target;
    ir_rewrite rw = {.cx = self->cx, .expr = ir_keep_expr, .stmt = round_products};

    const ir_stmt *rounded = ir_rewrite_stmt(&rw, *nest);
    if (!rounded || rounded == *nest || !ir_match_nest(self->f, in->meaning, rounded, m))
        return NO_FIT;
    if (!machine || machine->precision < TARGET_TF32)
        return NEEDS_PRECISION;
    *nest = rounded;
    return ROUNDED;
}

/* ---- conditions ---- */

/* The condition in the loops of a nest, if all of the body stands under it and it changes in none of them;
 * *rest becomes the nest without it. NULL: there is none. What the nest writes could change a condition that
 * reads memory.
 *
 *     for i { for k { if row < n { C[i] sum= ... } } }     =>     row < n,  for i { for k { C[i] sum= ... } }
 */
static const ir_expr *condition_around(tec_context *cx, const ir_stmt *nest, const ir_stmt **rest)
{
    if (nest->kind == IR_IF && !nest->branch.otherwise && !nest->branch.cond->has) {
        *rest = nest->branch.then;
        return nest->branch.cond;
    }
    if (nest->kind != IR_FOR)
        return NULL;
    const ir_expr *condition = condition_around(cx, nest->loop.body, rest);
    if (!condition || ir_uses_var(cx, condition, nest->loop.var))
        return NULL;
    *rest = ir_for(cx, nest->loop.var, nest->loop.min, nest->loop.extent, nest->loop.how, *rest);
    return *rest ? condition : NULL;
}

/* The nest written as the form; NULL with the reason noted. The form is noted among those used only when nest
 * and text fit, since the program lists what it calls. */
static const ir_stmt *match_form(tensorizing *self, te_form form, const ir_stmt *nest, const char **reason)
{
    const ir_intrinsic *in = self->in->ir[form];
    ir_match m;

    if (!ir_match_nest(self->f, in->meaning, nest, &m)) {
        *reason = base_format(self->cx, "it is not '%s': %s", in->name, m.reason);
        switch (fits_rounded(self, in, &nest, &m)) {
        case ROUNDED: break;
        case NEEDS_PRECISION:
            *reason = base_format(
                self->cx, "it is not '%s', which rounds the factors: --precision tf32 allows this", in->name);
            return NULL;
        default: return NULL;
        }
    }
    if (!has_text(self, in, reason))
        return NULL;
    base_push(self->cx, &self->used, (void *)in);
    return ir_attribute(self->cx, IR_TENSORIZE, ir_string(self->cx, in->name), nest);
}

/* A condition of the program that is one for the whole nest stays around it. */
static const ir_stmt *as_form(tensorizing *self, te_form form, const ir_stmt *nest, const char **reason)
{
    const ir_stmt *whole = match_form(self, form, nest, reason), *rest;
    const char *second;
    const ir_expr *condition = whole ? NULL : condition_around(self->cx, nest, &rest);
    const ir_stmt *inside = condition ? match_form(self, form, rest, &second) : NULL;

    return inside ? ir_if(self->cx, condition, inside, NULL) : whole;
}

/* An init that is no reset stays what it is. */
static const ir_stmt *as_reset(tensorizing *self, const ir_stmt *init)
{
    const char *reason;
    const ir_stmt *reset = self->in->ir[TE_RESET] ? as_form(self, TE_RESET, init, &reason) : NULL;

    return reset ? reset : init;
}

static const ir_stmt *as_reset_and_update(tensorizing *self, const ir_stmt *body, const char **reason)
{
    const ir_stmt *update = as_form(self, TE_UPDATE, body->seq.stmt[1], reason);

    if (BASE_PLANT_ON(self->cx, tensorize_reset))
        return update;
    return update ? ir_seq2(self->cx, as_reset(self, body->seq.stmt[0]), update) : NULL;
}

static bool has_own_init(const ir_stmt *body)
{
    return body->kind == IR_SEQ && body->seq.n == 2;
}

/* A body that starts its reduction itself is the intrinsic's body, or its reset and its update. The reason of
 * the whole body, if that was tried, goes before the reason of the update. */
static const ir_stmt *as_body(tensorizing *self, const ir_block *block)
{
    const char *reason = NULL, *second = NULL;
    const ir_stmt *stmt = NULL;

    if (self->in->ir[TE_BODY] && !block->init)
        stmt = as_form(self, TE_BODY, block->body, &reason);
    if (!stmt && self->in->ir[TE_UPDATE]) {
        stmt = has_own_init(block->body) && !block->init ? as_reset_and_update(self, block->body, &second)
                                                         : as_form(self, TE_UPDATE, block->body, &second);
        reason = reason ? reason : second;
    }
    if (stmt)
        return stmt;
    if (!reason)
        reason = base_format(self->cx, "it starts its reduction elsewhere, and intrinsic '%s' has no update",
                             self->in->name);
    return sched_refuse(self->c, "'%s' cannot be tensorized: %s", block->name, reason);
}

/* ---- the tree ---- */

static const ir_intrinsic *listed(const ir_program *program, const char *name)
{
    for (int i = 0; i < program->n_intrinsics; i++)
        if (base_same(program->intrinsics[i]->name, name))
            return program->intrinsics[i];
    return NULL;
}

/* Adds the forms that the program does not list yet. A form of the same name with another text or meaning is
 * refused: lowering looks forms up by name. */
static const ir_program *with_intrinsics(tensorizing *self, const ir_program *program)
{
    const ir_intrinsic **all =
        base_array(self->cx, const ir_intrinsic *, program->n_intrinsics + self->used.n);
    ir_program *out = ir_program_copy(self->cx, program);

    for (int i = 0; i < program->n_intrinsics; i++)
        all[i] = program->intrinsics[i];
    for (int i = 0; i < self->used.n; i++) {
        const ir_intrinsic *in = self->used.at[i], *known = listed(program, in->name);

        if (known && (!base_same(known->text, in->text) || !known->meaning ||
                      !ir_same_program(self->cx, known->meaning, in->meaning)))
            return sched_refuse(self->c, "the program calls another function with the name '%s'", in->name);
        if (!known)
            all[out->n_intrinsics++] = in;
    }
    out->intrinsics = all;
    return out;
}

static bool is_written(const ir_stmt *stmt)
{
    if (stmt->kind == IR_SEQ && stmt->seq.n == 2)
        return is_written(stmt->seq.stmt[1]);
    if (stmt->kind == IR_IF)
        return is_written(stmt->branch.then);
    return stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, IR_TENSORIZE);
}

bool sched_is_tensorized(const ir_block *block)
{
    return is_written(block->body);
}

/* The facts for matching are the ranges of the block's own iteration variables, as the nest inside mentions
 * nothing else. */
static const ir_program *tensorize_block(tensorizing *self, const ir_program *program, const char *name)
{
    sched_path at;

    if (!sched_find_block(self->cx, program->body, name, &at))
        return NULL;
    ir_block *block = ir_block_copy(self->cx, sched_end(&at)->block.block);
    if (sched_is_tensorized(block))
        return sched_refuse(self->c, "'%s' is tensorized already", name);
    ir_facts *facts = ir_facts_new(self->cx, self->c->s->view.facts);
    for (int i = 0; i < block->n_iters; i++)
        ir_facts_range(facts, block->iters[i].var, ir_int(self->cx, 0), block->iters[i].extent);
    self->f = facts;
    block->body = as_body(self, block);
    if (!block->body)
        return NULL;
    block->init = block->init ? as_reset(self, block->init) : NULL;
    ir_program *out = ir_program_copy(self->cx, program);
    out->body = sched_rebuild(self->cx, &at, at.n - 1, sched_with_block(self->cx, sched_end(&at), block));
    return with_intrinsics(self, out);
}

/* tensorize(loop or block, intrinsic). A loop is blockized first, so that one instance of a block is what the
 * intrinsic does. */
const ir_program *sched_do_tensorize(sched_call *call)
{
    tensorizing x = {.c = call, .cx = call->cx};
    const ir_program *program = call->tree;
    const char *name = call->arg[0].name;
    sched_path at;

    if (!(x.in = find_intrinsic(call, call->arg[1].name)))
        return NULL;
    if (sched_find_loop(call->cx, program->body, name, &at)) {
        if (!sched_need_loop(call, name, &at) || !(program = sched_make_block(call, &at, &name)))
            return NULL;
    } else if (!sched_find_block(call->cx, program->body, name, &at))
        return sched_refuse(call, "there is no loop or block '%s'", name);
    program = tensorize_block(&x, program, name);
    if (program)
        base_push(call->cx, &call->results, name);
    return program;
}
