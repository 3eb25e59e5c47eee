/* lower/reasons.c -- notes on each loop whose iterations run at the same time why they do not disturb each
 * other in the buffers that they use.
 *
 *     for i in 0..8 parallel {                   for i in 0..8 parallel @reason.P("private") {
 *       for j in 0..4 { block P(x = j) }           for j in 0..4 { block P(x = j) }
 *       for j in 0..4 { block B(y = i, x = j) }    for j in 0..4 { block B(y = i, x = j) }
 *     }                                          }
 *
 * requires  a loop tree as the schedule left it
 * provides  a note for each buffer of the program that is used below such a loop only
 * breaks    nothing
 *
 * The schedule admitted the loop, since tree/depend.h gave a reason for each buffer; the same proof gives the
 * same reason here, so that lowering and scheduling cannot differ. Passes that make buffers of their own
 * place them so that they are private to the loops around, and note nothing. A buffer without a reason is
 * what the loop reduces to: its lanes or threads get partial results.
 * The loops in the body of a block all run one after the other (schedule/blockize.c): they have no notes.
 */
#include "lower/reasons.h"

#include <string.h>

#define KEY "reason."

const char *lower_reason(tec_context *cx, const ir_stmt *loop, const ir_buffer *b)
{
    const ir_expr *value = ir_note_get(loop->loop.notes, base_format(cx, KEY "%s", b->name));

    return value && value->op == IR_STRING ? value->string : NULL;
}

static bool is_reason(const ir_note *note)
{
    return strncmp(note->key, KEY, strlen(KEY)) == 0;
}

const ir_stmt *lower_without_reasons(tec_context *cx, const ir_stmt *loop)
{
    const ir_note *notes = loop->loop.notes;

    for (const ir_note *n = notes; n; n = n->next)
        if (is_reason(n))
            notes = ir_note_set(cx, notes, n->key, NULL);
    if (notes == loop->loop.notes)
        return loop;
    ir_stmt *copy = ir_stmt_copy(cx, loop);
    copy->loop.notes = notes;
    return copy;
}

typedef struct {
    ir_rewrite rw;
    tree_view view;
    tree_sites sites;
} noting;

static bool runs_at_once(const ir_stmt *s)
{
    return s->kind == IR_FOR && s->loop.how != IR_SERIAL && s->loop.how != IR_UNROLLED;
}

/* Whether a block outside of the loop uses the buffer, which is allocated outside then, whatever the reason.
 * */
static bool is_used_outside(const noting *n, const ir_expr *var, const ir_buffer *b)
{
    for (int i = 0; i < n->sites.n; i++) {
        const tree_site *site = &n->sites.at[i];

        if (!tree_depth_under(site, var) && (tree_reads(site->block, b) || tree_writes(site->block, b)))
            return true;
    }
    return false;
}

/* The buffers of the program that are written below the loop and used nowhere else. */
static void list_written(const noting *n, const ir_expr *var, base_vec *out)
{
    base_map done = {0};

    for (int i = 0; i < n->sites.n; i++) {
        const ir_block *b = n->sites.at[i].block;

        for (int j = 0; tree_depth_under(&n->sites.at[i], var) && j < b->n_writes; j++) {
            const ir_buffer *buffer = b->writes[j].buffer;

            if (base_map_has(&done, buffer) || tree_is_parameter(n->view.program, buffer))
                continue;
            base_map_put(n->rw.cx, &done, buffer, buffer);
            if (!is_used_outside(n, var, buffer))
                base_push(n->rw.cx, out, buffer);
        }
    }
}

/* The loop s with notes that stand for `loop`, the same one before its inside was rewritten: the sites know
 * that. */
static const ir_stmt *note_loop(const noting *n, const ir_stmt *s, const ir_stmt *loop)
{
    tec_context *cx = n->rw.cx;
    ir_stmt *copy = ir_stmt_copy(cx, lower_without_reasons(cx, s));
    base_vec written = {0};

    list_written(n, loop->loop.var, &written);
    for (int i = 0; i < written.n; i++) {
        const ir_buffer *b = written.at[i];
        const char *why;
        tree_reason reason = tree_reason_for(&n->view, &n->sites, b, loop->loop.var, &why);

        if (reason != TREE_DEPENDS)
            copy->loop.notes = ir_note_set(cx, copy->loop.notes, base_format(cx, KEY "%s", b->name),
                                           ir_string(cx, tree_reason_text(reason)));
    }
    return copy;
}

static const ir_stmt *visit(ir_rewrite *rw, const ir_stmt *s)
{
    const ir_stmt *out = s->kind == IR_BLOCK ? s : ir_rewrite_stmt_children(rw, s);

    return out && runs_at_once(s) ? note_loop((const noting *)rw, out, s) : out;
}

const ir_program *lower_reasons(const lower_options *o, const ir_program *p)
{
    noting n = {.rw = {.cx = o->cx, .expr = ir_keep_expr, .stmt = visit},
                .view = {.cx = o->cx, .program = p}};

    if (p->n_buffers == 0)
        return p;
    n.view.facts = ir_facts_of_program(o->cx, p);
    n.sites = tree_all_sites(o->cx, p->body);
    return lower_with_body(o->cx, p, ir_rewrite_stmt(&n.rw, p->body));
}
