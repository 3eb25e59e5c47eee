/* lower/reasons.c -- notes on loops what their iterations are to each other in each buffer.
 *
 *     for i in 0..8 parallel {                   for i in 0..8 parallel @reason.P("private") {
 *       for j in 0..4 { block P(x = j) }           for j in 0..4 { block P(x = j) }
 *       for j in 0..4 { block B(y = i, x = j) }    for j in 0..4 { block B(y = i, x = j) }
 *     }                                          }
 *
 * requires  a loop tree as the schedule left it
 * provides  for each buffer that is no parameter: a note on each loop around all its uses, from the innermost
 *           one outward to the first to whose iterations the buffer is private
 * breaks    nothing
 *
 * The schedule admitted the loops whose iterations run at the same time, since tree/depend.h gave a reason
 * for each buffer; the same proof gives the same reason here, so that lowering and scheduling cannot differ.
 * A pass that needs a reason later, as lower/compact.c does to place a buffer, reads the note. Passes that
 * make buffers of their own note what they know of them (lower/lanes.c). The loops in the body of a block, as
 * blockize makes them, run one after the other and have no notes: a buffer does not stand inside of them.
 *
 * Debug builds hold the notes against the tree after each pass that leaves blocks (lower_check_reasons): each
 * is proven anew from the tree as the pass left it. So the notes that lower/lanes.c writes are proven, too,
 * and a pass that moves a use or an init out of a loop, or starts fewer elements than are used, is caught
 * there. One kind of note is only checked for its place and its start: where the elements that start a
 * private buffer are no box, as those of a loop with a stride. */
#include "lower/reasons.h"
#include "tree/touch.h"

#include <string.h>

#define KEY "reason."

static const char *key_of(tec_context *cx, const ir_buffer *buffer)
{
    return base_format(cx, KEY "%s", buffer->name);
}

tree_reason lower_reason(tec_context *cx, const ir_stmt *loop, const ir_buffer *buffer)
{
    const ir_expr *value = ir_note_get(loop->loop.notes, key_of(cx, buffer));

    return value && value->op == IR_STRING ? tree_reason_of_text(value->string) : TREE_DEPENDS;
}

const ir_stmt *lower_with_reason(tec_context *cx, const ir_stmt *loop, const ir_buffer *buffer,
                                 tree_reason reason)
{
    ir_stmt *copy = ir_stmt_copy(cx, loop);

    copy->loop.notes =
        ir_note_set(cx, loop->loop.notes, key_of(cx, buffer), ir_string(cx, tree_reason_text(reason)));
    return copy;
}

const ir_stmt *lower_without_reasons(tec_context *cx, const ir_stmt *loop)
{
    const ir_note *notes = loop->loop.notes;

    for (const ir_note *n = notes; n; n = n->next)
        if (strncmp(n->key, KEY, strlen(KEY)) == 0)
            notes = ir_note_set(cx, notes, n->key, NULL);
    if (notes == loop->loop.notes)
        return loop;
    ir_stmt *copy = ir_stmt_copy(cx, loop);
    copy->loop.notes = notes;
    return copy;
}

/* ---- planted faults ---- */

/* A wrong reason instead of the right one, for the fuzzer to find. */
static tree_reason planted(tec_context *cx, const ir_stmt *loop, const ir_buffer *buffer, tree_reason reason)
{
    bool at_once = tree_needs_reason(loop, buffer);

    (void)cx;
    if (BASE_PLANT_ON(cx, reason_carried) && reason == TREE_DEPENDS && !at_once)
        return TREE_PRIVATE;
    if (BASE_PLANT_ON(cx, reason_private) && reason == TREE_PRIVATE && at_once)
        return TREE_OWNED;
    if (BASE_PLANT_ON(cx, reason_owned) && reason == TREE_OWNED)
        return TREE_PRIVATE;
    if (BASE_PLANT_ON(cx, reason_once) && reason == TREE_ONCE)
        return TREE_PRIVATE;
    if (BASE_PLANT_ON(cx, reason_combined) && reason == TREE_COMBINED)
        return TREE_OWNED;
    return reason;
}

/* ---- which loops, and why ---- */

typedef struct {
    const ir_buffer *buffer;
    tree_reason reason;
} note;

typedef struct {
    ir_rewrite rw;
    tree_view view;
    tree_sites sites;
    base_map notes; /* loop -> base_vec of note */
} noting;

static void add_note(noting *self, const ir_stmt *loop, const ir_buffer *buffer, tree_reason reason)
{
    lower_list_add(self->rw.cx, &self->notes, loop,
                   base_copy(self->rw.cx, &(note){buffer, reason}, sizeof(note)));
}

/* From the innermost common loop outward: what lies outside of a loop to which the buffer is private has a
 * buffer for each iteration, whatever that is to others. */
static bool find_reasons(noting *self, const tree_site *user, int loops, const ir_buffer *buffer)
{
    tree_reason reason = TREE_DEPENDS;

    for (int i = loops - 1; i >= 0 && reason != TREE_PRIVATE; i--) {
        const ir_stmt *loop = user->loop[i];
        const char *why;

        reason = planted(self->rw.cx, loop, buffer,
                         tree_reason_in_effect(&self->view, &self->sites, user, i, buffer, &why));
        if (reason != TREE_DEPENDS)
            add_note(self, loop, buffer, reason);
        else if (why)
            return base_fail(self->rw.cx, TEC_INTERNAL, loop->loc, "loop '%s' is %s, and %s",
                             loop->loop.var->var.name, ir_how_text(loop->loop.how), why);
    }
    return true;
}

/* The loops further in, which do not hold all uses. Readers that later turn out to read nothing, as a select
 * with a constant condition does, may leave such a loop around all uses that are left: those are writes. */
static void note_outside(noting *self, int loops, const ir_buffer *buffer)
{
    for (int i = 0; i < self->sites.n; i++) {
        const tree_site *site = &self->sites.at[i];

        if (tree_writes(site->block, buffer))
            for (int k = loops; k < site->n_loops; k++)
                if (tree_needs_reason(site->loop[k], buffer))
                    add_note(self, site->loop[k], buffer, TREE_OUTSIDE);
    }
}

/* Two sorts of notes: on the loops around all uses what was proven, on those further in that the buffer
 * reaches beyond them. */
static bool note_buffer(noting *self, const ir_buffer *buffer)
{
    int loops;
    const tree_site *user = tree_common_user(&self->sites, buffer, &loops);

    note_outside(self, loops, buffer);
    return !user || find_reasons(self, user, loops, buffer);
}

/* ---- the rewrite ---- */

/* Puts the notes that were found onto the loops, in the place of older ones. */
static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *stmt)
{
    noting *n = (noting *)rw;
    const base_vec *notes = base_map_get(&n->notes, stmt);

    const ir_stmt *out = stmt->kind == IR_BLOCK ? stmt : ir_rewrite_stmt_children(rw, stmt);
    if (!out || stmt->kind != IR_FOR)
        return out;
    out = lower_without_reasons(rw->cx, out);
    for (int i = 0; notes && i < notes->n; i++) {
        const note *one = notes->at[i];

        out = lower_with_reason(rw->cx, out, one->buffer, one->reason);
    }
    return out;
}

static noting start(tec_context *cx, const ir_program *program)
{
    return (noting){.rw = {.cx = cx, .expr = ir_keep_expr, .stmt = visit, .no_memo = true},
                    .view = {.cx = cx, .program = program, .facts = ir_facts_of_program(cx, program)},
                    .sites = tree_all_sites(cx, program->body)};
}

const ir_program *lower_reasons(const lower_options *options, const ir_program *program)
{
    if (program->n_buffers == 0)
        return program;
    noting n = start(options->cx, program);
    for (int i = 0; i < program->n_buffers; i++)
        if (!note_buffer(&n, program->buffers[i]))
            return NULL;
    return lower_with_body(options->cx, program, ir_rewrite_stmt(&n.rw, program->body));
}

/* ---- the check ---- */

static bool contradicts(const noting *self, const ir_stmt *loop, const ir_buffer *buffer, const char *what)
{
    return base_fail(self->rw.cx, TEC_INTERNAL, loop->loc,
                     "the note @reason.%s(\"%s\") on loop '%s' is wrong: %s", buffer->name,
                     tree_reason_text(lower_reason(self->rw.cx, loop, buffer)), loop->loop.var->var.name,
                     what);
}

/* Where the uses stand: `all` blocks that use the buffer are below the loop, or only some of them. */
static bool check_place(const noting *self, const ir_stmt *loop, const ir_buffer *buffer, bool all)
{
    tree_reason noted = lower_reason(self->rw.cx, loop, buffer);

    if (noted == TREE_PRIVATE && !all)
        return contradicts(self, loop, buffer, "the buffer is used outside of the loop");
    if (noted == TREE_OUTSIDE && all)
        return contradicts(self, loop, buffer, "nothing outside of the loop uses the buffer");
    if (noted == TREE_DEPENDS && all && tree_needs_reason(loop, buffer) && !ir_is_value(loop->loop.extent, 1))
        return base_fail(self->rw.cx, TEC_INTERNAL, loop->loc, "loop '%s' is %s and has no note @reason.%s",
                         loop->loop.var->var.name, ir_how_text(loop->loop.how), buffer->name);
    return true;
}

/* Some block below the loop starts elements of the buffer: writes, and neither reads it nor adds to it; but
 * the elements that it writes are no box, so that the engine cannot say which they are:
 *
 *     for c.1 in 0..4 @reason.P("private") { for c.0 in 0..2 { P[c.0*4 + c.1] = 0 }; .. the same elements }
 */
static bool is_started_with_gaps(const noting *self, const ir_stmt *loop, const ir_buffer *buffer)
{
    for (int i = 0; i < self->sites.n; i++) {
        const tree_site *site = &self->sites.at[i];
        const ir_region *write = tree_access(site->block->writes, site->block->n_writes, buffer);
        int depth = tree_depth_under(site, loop->loop.var);

        if (!depth || !write || tree_reads(site->block, buffer) || tree_adds(self->rw.cx, site->block))
            continue;
        ir_region box = tree_box(&self->view, site, write, depth, true);
        if (!tree_touches_whole_box(&self->view, site, write, &box, depth))
            return true;
    }
    return false;
}

/* The loop or one around it is empty: whatever is said of its iterations holds. */
static bool never_runs(const noting *self, const tree_site *site, int at)
{
    for (int i = 0; i <= at; i++)
        if (ir_prove_le(self->view.facts, site->loop[i]->loop.extent, ir_int(self->rw.cx, 0)))
            return true;
    return false;
}

/* The proof of the note, made anew: the reason must follow from the tree as it stands. A loop that keeps its
 * order, as one that lower/lanes.c has made serial, needs no reason, and only "private" says something of it.
 * Behind the pass that wrote the note a buffer may turn out to be private that was owned, since the reduction
 * that kept it is gone. */
static bool check_proof(const noting *self, const tree_site *user, int at, const ir_buffer *buffer,
                        bool fresh)
{
    const ir_stmt *loop = user->loop[at];
    tree_reason noted = lower_reason(self->rw.cx, loop, buffer);
    const char *why = NULL;

    if (noted == TREE_DEPENDS || (noted != TREE_PRIVATE && !tree_needs_reason(loop, buffer)) ||
        never_runs(self, user, at))
        return true;
    tree_reason found = tree_reason_in_effect(&self->view, &self->sites, user, at, buffer, &why);
    return found == noted || (!fresh && found == TREE_PRIVATE) ||
           (!fresh && noted == TREE_PRIVATE && is_started_with_gaps(self, loop, buffer)) ||
           contradicts(self, loop, buffer,
                       found != TREE_DEPENDS ? base_format(self->rw.cx, "it is %s", tree_reason_text(found))
                       : why                 ? why
                                             : "a later iteration may read what an earlier one wrote");
}

/* The notes of one buffer on the loops around each block that uses it, up to the first that has it private.
 * The outer loops, which all of these blocks share, are proven for the first of them alone. */
static bool check_buffer(const noting *self, const ir_buffer *buffer, bool fresh)
{
    int loops;
    const tree_site *user = tree_common_user(&self->sites, buffer, &loops);

    for (int i = 0; i < self->sites.n; i++) {
        const tree_site *site = &self->sites.at[i];
        bool private = !tree_reads(site->block, buffer) && !tree_writes(site->block, buffer);

        for (int k = site->n_loops - 1; k >= 0 && !private; k--) {
            private = lower_reason(self->rw.cx, site->loop[k], buffer) == TREE_PRIVATE;
            if (!check_place(self, site->loop[k], buffer, k < loops) ||
                (k < loops && site == user && !check_proof(self, site, k, buffer, fresh)))
                return false;
        }
    }
    return true;
}

typedef struct {
    ir_rewrite rw;
    const ir_expr *where; /* the conditions around, as one; NULL: none */
} folding;

/* A condition around blocks becomes part of their predicates, where the proofs look for it:
 *
 *     if i < 7 { for v in 0..4 { block S.init(..) } }    =>    for v in 0..4 { block S.init(..) where i < 7 }
 *
 * The passes lanes and init guard what they add in this way. A condition that reads memory, and one with two
 * branches, stays: of blocks below it nothing is proven to be filled. */
static const ir_stmt *fold_conditions(ir_rewrite *rw, const ir_stmt *stmt)
{
    folding *f = (folding *)rw;
    const ir_expr *around = f->where;

    if (stmt->kind == IR_BLOCK)
        return ir_block_stmt(rw->cx, stmt->block.block, stmt->block.bind,
                             ir_all(rw->cx, around, stmt->block.where));
    if (stmt->kind != IR_IF || stmt->branch.otherwise || (stmt->branch.cond->has & IR_HAS_LOAD))
        return ir_rewrite_stmt_children(rw, stmt);
    f->where = ir_all(rw->cx, around, stmt->branch.cond);
    const ir_stmt *out = ir_rewrite_stmt(rw, stmt->branch.then);
    f->where = around;
    return out;
}

/* On a copy of the program whose conditions are folded, with sites of its own; the notes travel with the
 * loops. */
bool lower_check_reasons(tec_context *cx, const ir_program *program, bool fresh)
{
    folding fold = {.rw = {.cx = cx, .expr = ir_keep_expr, .stmt = fold_conditions, .no_memo = true}};
    ir_program *folded = ir_program_copy(cx, program);

    folded->body = ir_rewrite_stmt(&fold.rw, program->body);
    if (!folded->body)
        return false;
    noting n = start(cx, folded);

    for (int i = 0; i < program->n_buffers; i++)
        if (!check_buffer(&n, program->buffers[i], fresh))
            return false;
    return true;
}
