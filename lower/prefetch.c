/* lower/prefetch.c -- loops that ask for what they read later (the schedule's prefetch) get the statements
 * that do.
 *
 *     for y in 0..64 @prefetch.A(2) {         for y in 0..64 {
 *       for x in 0..32 { .. A[y, x] .. }  =>    if y + 2 < 64 { for line in 0..2 { prefetch(&A[y + 2,
 *                                                 line*16], 3) } }
 *     }                                         for x in 0..32 { .. A[y, x] .. }
 *                                             }
 *
 * requires  no block is left; loops are cut where they will be
 * provides  no note of prefetch is left
 * breaks    nothing
 *
 * What an iteration reads is a box (ir_touched); one element of each cache line of its last dimension is
 * asked for. The box may reach over the buffer; what lies inside counts. A buffer that no longer is what the
 * loop reads from is left alone: it is a hint.
 */
#include <string.h>

#include "ir/region/region.h"
#include "lower/util.h"

enum { LINE = 64, KEEP = 3 };

static const char prefix[] = "prefetch.";

typedef struct {
    tec_context *cx;
    base_vec intrinsics; /* one for each dtype: the meaning has operands of that */
} prefetcher;

/* ---- the intrinsic ---- */

/* prefetch.N(a: t[1], locality) does nothing to values; the numbers tell the dtypes apart. One intrinsic for
 * each dtype that is prefetched, listed in the program when it is first needed. */
static const ir_intrinsic *intrinsic_for(prefetcher *p, base_dtype t)
{
    const ir_expr *one = ir_int(p->cx, 1);

    for (int i = 0; i < p->intrinsics.n; i++) {
        const ir_intrinsic *in = p->intrinsics.at[i];
        if (base_dtype_same(in->meaning->params[0].buffer->dtype, t))
            return in;
    }
    ir_program *meaning = base_new(p->cx, ir_program);
    ir_param *param = base_array(p->cx, ir_param, 2);
    ir_intrinsic *in = base_new(p->cx, ir_intrinsic);

    param[0].buffer = ir_buffer_new(p->cx, "a", t, &one, 1);
    param[1].scalar = ir_var(p->cx, "locality", BASE_I64);
    meaning->name = in->name = base_format(p->cx, "prefetch.%d", p->intrinsics.n);
    meaning->params = param;
    meaning->n_params = 2;
    meaning->body = ir_nothing(p->cx);
    in->meaning = meaning;
    base_push(p->cx, &p->intrinsics, in);
    return in;
}

/* ---- one box ---- */

static const ir_expr *element(tec_context *cx, const ir_buffer *b, const ir_expr *const *index)
{
    const ir_expr *at = ir_int(cx, 0), *stride = ir_int(cx, 1);

    for (int d = b->n - 1; d >= 0; d--) {
        at = ir_add(cx, at, ir_mul(cx, index[d], b->strides ? b->strides[d] : stride));
        stride = ir_mul(cx, stride, b->shape[d]);
    }
    return at;
}

/* What lies in the buffer of min .. min+extent-1, in a dimension of that many elements: a box may reach over
 * the edge, and of an index that was loaded nothing but its type may be known. */
static void clip(const ir_facts *f, const ir_expr *shape, const ir_expr **min, const ir_expr **extent)
{
    tec_context *cx = ir_facts_context(f);
    const ir_expr *end;

    if (BASE_PLANT_ON(cx, prefetch_outside))
        return;
    end = ir_simplify(f, ir_min(cx, ir_add(cx, *min, *extent), shape));
    *min = ir_simplify(f, ir_max(cx, *min, ir_int(cx, 0)));
    *extent = lower_extent(f, *min, end);
}

/* Loops over the lines of the box with loop variable `var` at `later`. Rows by loops over the outer
 * dimensions, lines by steps of 64 bytes in the last one. The bounds are those of the iteration `later`, so
 * they are substituted before they are clipped to the buffer. */
static const ir_stmt *ask_for(prefetcher *p, const ir_facts *f, const ir_region *box, const ir_expr *var,
                              const ir_expr *later)
{
    tec_context *cx = p->cx;
    const ir_buffer *b = box->buffer;
    const ir_expr **index = base_array(cx, const ir_expr *, b->n),
                  **loop = base_array(cx, const ir_expr *, b->n),
                  **lines = base_array(cx, const ir_expr *, b->n);
    int per_line = LINE / base_dtype_bytes(b->dtype);

    for (int d = 0; d < b->n; d++) {
        const ir_expr *by = ir_int(cx, d == b->n - 1 && per_line > 1 ? per_line : 1),
                      *min = ir_substitute(cx, box->min[d], var, later),
                      *extent = ir_substitute(cx, box->extent[d], var, later);

        clip(f, b->shape[d], &min, &extent);
        loop[d] = ir_var(cx, d == b->n - 1 ? "line" : "row", BASE_I64);
        lines[d] = ir_simplify(f, ir_ceildiv(cx, extent, by));
        index[d] = ir_add(cx, min, ir_mul(cx, loop[d], by));
    }
    const ir_expr *arg[] = {element(cx, b, index), ir_int(cx, KEEP)};
    const ir_intrinsic *in = intrinsic_for(p, b->dtype);
    const ir_stmt *s = ir_evaluate(cx, ir_call(cx, BASE_I32, in->name, in, arg, 2, &b, 1, false));
    for (int d = b->n - 1; d >= 0; d--)
        s = ir_for(cx, loop[d], ir_int(cx, 0), lines[d], IR_SERIAL, s);
    return s;
}

/* ---- loops ---- */

static const ir_region *read_of(const base_vec *reads, const char *name)
{
    for (int i = 0; i < reads->n; i++) {
        const ir_region *r = reads->at[i];
        bool loads = false;

        for (int d = 0; d < r->buffer->n; d++)
            loads = loads || (r->min[d]->has & IR_HAS_LOAD) || (r->extent[d]->has & IR_HAS_LOAD);
        if (strcmp(r->buffer->name, name) == 0)
            return loads || r->buffer->n == 0 ? NULL : r;
    }
    return NULL;
}

static const ir_stmt *without_notes(tec_context *cx, const ir_stmt *loop, const ir_stmt *body)
{
    ir_stmt *out = ir_stmt_copy(cx, loop);

    out->loop.body = body;
    out->loop.notes = NULL;
    for (const ir_note *n = loop->loop.notes; n; n = n->next)
        if (!base_starts_with(n->key, prefix))
            out->loop.notes = ir_note_set(cx, out->loop.notes, n->key, n->value);
    return out;
}

/* A hint is not worth a division by zero: where the box cannot be computed in any case, nothing is asked
 * for. */
static bool is_safe(const ir_facts *f, const ir_region *box)
{
    for (int d = 0; d < box->buffer->n; d++)
        if (lower_may_fail(f, box->min[d]) || lower_may_fail(f, box->extent[d]))
            return false;
    return true;
}

/* The statements stand in front of the body, under the condition that the iteration exists. */
static const ir_stmt *visit_loop(prefetcher *p, const ir_facts *f, const ir_stmt *loop, const ir_stmt *body)
{
    tec_context *cx = p->cx;
    const ir_facts *inside = lower_inside(f, loop);
    const ir_expr *end = ir_add(cx, loop->loop.min, loop->loop.extent);
    base_vec reads = {0}, writes = {0};
    bool any = false;

    for (const ir_note *n = loop->loop.notes; n; n = n->next)
        any = any || base_starts_with(n->key, prefix);
    if (!any)
        return lower_with_inner(cx, loop, body);
    ir_touched(inside, body, &reads, &writes);
    for (const ir_note *n = loop->loop.notes; n; n = n->next) {
        const ir_region *box =
            base_starts_with(n->key, prefix) ? read_of(&reads, n->key + strlen(prefix)) : NULL;
        const ir_expr *later = box ? ir_add(cx, loop->loop.var, n->value) : NULL,
                      *runs = box ? ir_lt(cx, later, end) : NULL;

        if (!box || !is_safe(inside, box))
            continue;
        ir_facts *there = ir_facts_new(cx, inside);
        ir_facts_assume(there, runs);
        body = ir_seq2(cx, ir_if(cx, runs, ask_for(p, there, box, loop->loop.var, later), NULL), body);
    }
    return without_notes(cx, loop, body);
}

/* The body first: the region that the loop reads is that of what stands inside now. */
static const ir_stmt *visit(prefetcher *p, const ir_facts *f, const ir_stmt *s)
{
    if (s->kind == IR_SEQ) {
        const ir_stmt **stmt = base_array(p->cx, const ir_stmt *, s->seq.n);
        bool same = true;

        for (int i = 0; i < s->seq.n; i++) {
            stmt[i] = visit(p, f, s->seq.stmt[i]);
            same = same && stmt[i] == s->seq.stmt[i];
        }
        return same ? s : ir_seq(p->cx, stmt, s->seq.n);
    }
    if (s->kind == IR_IF) {
        const ir_stmt *then = visit(p, lower_inside(f, s), s->branch.then),
                      *otherwise =
                          s->branch.otherwise ? visit(p, lower_inside_else(f, s), s->branch.otherwise) : NULL;

        return then == s->branch.then && otherwise == s->branch.otherwise
                   ? s
                   : ir_if(p->cx, s->branch.cond, then, otherwise);
    }
    if (!lower_inner(s))
        return s;
    const ir_stmt *body = visit(p, lower_inside(f, s), lower_inner(s));
    return s->kind == IR_FOR ? visit_loop(p, f, s, body) : lower_with_inner(p->cx, s, body);
}

static const ir_program *with_intrinsics(prefetcher *p, const ir_program *program)
{
    ir_program *out = ir_program_copy(p->cx, program);
    base_vec all = {0};

    for (int i = 0; i < program->n_intrinsics; i++)
        base_push(p->cx, &all, program->intrinsics[i]);
    for (int i = 0; i < p->intrinsics.n; i++)
        base_push(p->cx, &all, p->intrinsics.at[i]);
    out->intrinsics = (const ir_intrinsic *const *)all.at;
    out->n_intrinsics = all.n;
    return out;
}

const ir_program *lower_prefetch(const lower_options *o, const ir_program *program)
{
    prefetcher p = {.cx = o->cx};
    const ir_program *out =
        lower_with_body(o->cx, program, visit(&p, ir_facts_of_program(o->cx, program), program->body));

    return out && p.intrinsics.n ? with_intrinsics(&p, out) : out;
}
