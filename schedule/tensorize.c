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
static const te_intrinsic *find_intrinsic(sched_call *c, const char *name)
{
    const te_intrinsic *in = c->s->intrinsics ? te_intrinsic_named(c->s->intrinsics, name) : NULL;
    const char *missing = NULL;

    if (in)
        return in;
    in = hw_intrinsic(c->cx, name, c->s->target, &missing);
    if (missing)
        return sched_refuse(c, "%s", missing);
    return in ? in
              : sched_refuse(c, "there is no intrinsic '%s': expected one of the file, or %s", name,
                             hw_names(c->cx));
}

/* ---- matching ---- */

/* What the form is written as must be something that lowering can write. */
static bool has_text(tensorizing *x, const ir_intrinsic *in, const char **reason)
{
    if (ir_intrinsic_function(x->cx, in) || ir_intrinsic_program(x->cx, in))
        return true;
    *reason =
        base_format(x->cx, "what '%s' is written as is neither 'call FUNCTION' nor statements of the IR: %s",
                    in->name, tec_context_error(x->cx));
    tec_context_clear(x->cx);
    return false;
}

/* The nest written as the form; NULL with the reason noted. The form is noted among those used only when nest
 * and text fit, since the program lists what it calls. */
static const ir_stmt *as_form(tensorizing *x, te_form form, const ir_stmt *nest, const char **reason)
{
    const ir_intrinsic *in = x->in->ir[form];
    ir_match m;

    if (!ir_match_nest(x->f, in->meaning, nest, &m)) {
        *reason = base_format(x->cx, "it is not '%s': %s", in->name, m.reason);
        return NULL;
    }
    if (!has_text(x, in, reason))
        return NULL;
    base_push(x->cx, &x->used, (void *)in);
    return ir_attribute(x->cx, IR_TENSORIZE, ir_string(x->cx, in->name), nest);
}

/* An init that is no reset stays what it is. */
static const ir_stmt *as_reset(tensorizing *x, const ir_stmt *init)
{
    const char *reason;
    const ir_stmt *reset = x->in->ir[TE_RESET] ? as_form(x, TE_RESET, init, &reason) : NULL;

    return reset ? reset : init;
}

static const ir_stmt *as_reset_and_update(tensorizing *x, const ir_stmt *body, const char **reason)
{
    const ir_stmt *update = as_form(x, TE_UPDATE, body->seq.stmt[1], reason);

    if (BASE_PLANT_ON(x->cx, tensorize_reset))
        return update;
    return update ? ir_seq2(x->cx, as_reset(x, body->seq.stmt[0]), update) : NULL;
}

static bool has_own_init(const ir_stmt *body)
{
    return body->kind == IR_SEQ && body->seq.n == 2;
}

/* A body that starts its reduction itself is the intrinsic's body, or its reset and its update. The reason of
 * the whole body, if that was tried, goes before the reason of the update. */
static const ir_stmt *as_body(tensorizing *x, const ir_block *b)
{
    const char *reason = NULL, *second = NULL;
    const ir_stmt *s = NULL;

    if (x->in->ir[TE_BODY] && !b->init)
        s = as_form(x, TE_BODY, b->body, &reason);
    if (!s && x->in->ir[TE_UPDATE]) {
        s = has_own_init(b->body) && !b->init ? as_reset_and_update(x, b->body, &second)
                                              : as_form(x, TE_UPDATE, b->body, &second);
        reason = reason ? reason : second;
    }
    if (s)
        return s;
    if (!reason)
        reason = base_format(x->cx, "it starts its reduction elsewhere, and intrinsic '%s' has no update",
                             x->in->name);
    return sched_refuse(x->c, "'%s' cannot be tensorized: %s", b->name, reason);
}

/* ---- the tree ---- */

static const ir_intrinsic *listed(const ir_program *p, const char *name)
{
    for (int i = 0; i < p->n_intrinsics; i++)
        if (base_same(p->intrinsics[i]->name, name))
            return p->intrinsics[i];
    return NULL;
}

/* Adds the forms that the program does not list yet. A form of the same name with another text or meaning is
 * refused: lowering looks forms up by name. */
static const ir_program *with_intrinsics(tensorizing *x, const ir_program *p)
{
    const ir_intrinsic **all = base_array(x->cx, const ir_intrinsic *, p->n_intrinsics + x->used.n);
    ir_program *out = ir_program_copy(x->cx, p);

    for (int i = 0; i < p->n_intrinsics; i++)
        all[i] = p->intrinsics[i];
    for (int i = 0; i < x->used.n; i++) {
        const ir_intrinsic *in = x->used.at[i], *known = listed(p, in->name);

        if (known && (!base_same(known->text, in->text) || !known->meaning ||
                      !ir_same_program(x->cx, known->meaning, in->meaning)))
            return sched_refuse(x->c, "the program calls another '%s'", in->name);
        if (!known)
            all[out->n_intrinsics++] = in;
    }
    out->intrinsics = all;
    return out;
}

static bool is_written(const ir_stmt *s)
{
    if (s->kind == IR_SEQ && s->seq.n == 2)
        return is_written(s->seq.stmt[1]);
    return s->kind == IR_ATTRIBUTE && base_same(s->attribute.key, IR_TENSORIZE);
}

bool sched_is_tensorized(const ir_block *b)
{
    return is_written(b->body);
}

/* The facts for matching are the ranges of the block's own iteration variables, as the nest inside mentions
 * nothing else. */
static const ir_program *tensorize_block(tensorizing *x, const ir_program *p, const char *name)
{
    sched_path at;

    if (!sched_find_block(x->cx, p->body, name, &at))
        return NULL;
    ir_block *b = ir_block_copy(x->cx, sched_end(&at)->block.block);
    if (sched_is_tensorized(b))
        return sched_refuse(x->c, "'%s' is tensorized already", name);
    ir_facts *f = ir_facts_new(x->cx, x->c->s->view.facts);
    for (int i = 0; i < b->n_iters; i++)
        ir_facts_range(f, b->iters[i].var, ir_int(x->cx, 0), b->iters[i].extent);
    x->f = f;
    b->body = as_body(x, b);
    if (!b->body)
        return NULL;
    b->init = b->init ? as_reset(x, b->init) : NULL;
    ir_program *out = ir_program_copy(x->cx, p);
    out->body = sched_rebuild(x->cx, &at, at.n - 1, sched_with_block(x->cx, sched_end(&at), b));
    return with_intrinsics(x, out);
}

/* tensorize(loop or block, intrinsic). A loop is blockized first, so that one instance of a block is what the
 * intrinsic does. */
const ir_program *sched_do_tensorize(sched_call *c)
{
    tensorizing x = {.c = c, .cx = c->cx};
    const ir_program *p = c->tree;
    const char *name = c->arg[0].name;
    sched_path at;

    if (!(x.in = find_intrinsic(c, c->arg[1].name)))
        return NULL;
    if (sched_find_loop(c->cx, p->body, name, &at)) {
        if (!sched_need_loop(c, name, &at) || !(p = sched_make_block(c, &at, &name)))
            return NULL;
    } else if (!sched_find_block(c->cx, p->body, name, &at))
        return sched_refuse(c, "there is no loop or block '%s'", name);
    p = tensorize_block(&x, p, name);
    if (p)
        base_push(c->cx, &c->results, name);
    return p;
}
